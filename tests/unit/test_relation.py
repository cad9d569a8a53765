"""Names of relations in SQL and in the catalog."""

import pytest
from dbt.adapters.base.relation import BaseRelation

from dbt.adapters.sparkevolve.column import SparkEvolveColumn
from dbt.adapters.sparkevolve.relation import (
    SparkEvolveRelation,
    namespace,
    schema_name,
    schema_problem,
    table_identifier,
)
from tests.unit.helpers import relation


@pytest.mark.parametrize(
    ("database", "schema", "identifier", "sql"),
    [
        ("lake", "db", "t", "`lake`.`db`.`t`"),
        ("lake", "Db", "MyTable", "`lake`.`Db`.`MyTable`"),
        ("lake", "d b", "a.b", "`lake`.`d b`.`a.b`"),
        ("lake", "a.B.c", "t", "`lake`.`a`.`B`.`c`.`t`"),
        ("lake", "`a.b`.c", "t", "`lake`.`a.b`.`c`.`t`"),
        ("lake", "a..b", "t", "`lake`.`a..b`.`t`"),
        ("lake", "d`b", "`t`", "`lake`.`d``b`.```t```"),
        ("spark_catalog", "select", "Größe", "`spark_catalog`.`select`.`Größe`"),
        (None, "db", "t", "`db`.`t`"),
    ],
)
def test_each_part_is_quoted(database: str | None, schema: str, identifier: str, sql: str) -> None:
    named = relation(identifier, schema, database)
    assert named.render() == sql
    assert str(named) == sql


def test_a_part_can_be_left_out() -> None:
    named = relation("t")
    assert str(named.include(database=False)) == "`db`.`t`"
    assert str(named.include(database=False, schema=False)) == "`t`"
    assert str(named.include(identifier=False)) == "`lake`.`db`"
    assert str(named.without_identifier()) == "`lake`.`db`"


def test_a_part_can_be_left_unquoted() -> None:
    assert str(relation("t").quote(identifier=False)) == "`lake`.`db`.t"
    assert str(relation("t").quote(database=False, schema=False)) == "lake.db.`t`"


def test_the_catalog_knows_a_table_by_schema_and_name() -> None:
    assert table_identifier(relation("My `t`", "d b")) == ("d b", "My `t`")
    assert table_identifier(relation("t", "a.b")) == ("a", "b", "t")
    assert table_identifier(relation("t").without_identifier()) == ("db", "")
    assert table_identifier(SparkEvolveRelation.create(database="lake")) == ("",)


@pytest.mark.parametrize(
    ("schema", "levels"),
    [
        ("db", ("db",)),
        ("a.b.c", ("a", "b", "c")),
        ("`a.b`", ("a.b",)),
        ("`a.b`.c.`d``.e`", ("a.b", "c", "d`.e")),
        ("a`b", ("a`b",)),
        ("", ()),
        (None, ()),
        *(
            (broken, (broken,))
            for broken in ("a..b", ".a", "a.", ".", "`a.b", "`a`.b.`c", "`a`b", "`a`..`b`")
        ),
    ],
)
def test_the_levels_of_a_schema(schema: str | None, levels: tuple[str, ...]) -> None:
    assert namespace(schema) == levels


@pytest.mark.parametrize("levels", [("a",), ("a", "b"), ("a.b", "c"), ("`a", "b`"), ("a`.b",)])
def test_the_levels_make_a_name_again(levels: tuple[str, ...]) -> None:
    assert namespace(schema_name(levels)) == levels


NO_NAME = (
    "a dot stands between the levels of a nested schema, and each needs a name (in backticks, if it has a "
)


@pytest.mark.parametrize(
    ("schema", "kind", "problem"),
    [
        ("db", "hive", ""),
        ("a.b", "rest", ""),
        ("a.b", "sql", ""),
        ("`a.b`", "glue", ""),
        (
            "a.b",
            "hive",
            "this catalog (hive) has no schemas inside schemas. Write a name without a dot.",
        ),
        (
            "a.b",
            "glue",
            "this catalog (glue) has no schemas inside schemas. Write a name without a dot.",
        ),
        ("lake", "rest", ""),
        ("a.lake", "rest", ""),
        ("lake.b.c", "rest", "'lake' is the profile's catalog, which `catalog` names. Write 'b.c'."),
        ("Lake.b", "rest", "'Lake' is the profile's catalog, which `catalog` names. Write 'b'."),
        (
            "other.b",
            "rest",
            "'other' is a catalog of Spark. Write 'b' to build in the profile's catalog, which is "
            "'lake'; another one is named by `database` or `target_database`, and stated under `catalogs`.",
        ),
        (
            "spark_catalog.b",
            "sql",
            "'spark_catalog' is a catalog of Spark. Write 'b' to build in the profile's catalog, which is "
            "'lake'; another one is named by `database` or `target_database`, and stated under `catalogs`.",
        ),
        (" ", "rest", "a schema needs a name."),
        *((broken, "rest", f"{NO_NAME}dot itself).") for broken in ("a..b", ".a", "a.", "a. .b", "`a.b")),
    ],
)
def test_what_is_wrong_with_a_schema(schema: str, kind: str, problem: str) -> None:
    assert (
        schema_problem(schema, "lake", {"lake", "other"}, kind=kind, is_nested=kind not in ("hive", "glue"))
        == problem
    )


def test_a_schema_whose_name_the_catalog_does_not_take() -> None:
    def problem(schema: str) -> str:
        return schema_problem(
            schema,
            "lake",
            (),
            kind="Amazon S3 Tables by REST",
            is_nested=False,
            takes_name=str.islower,
            names="of lower-case letters only",
        )

    assert (
        problem("Shop") == "this catalog (Amazon S3 Tables by REST) takes names of lower-case letters only."
    )
    assert problem("shop") == ""
    assert problem("a.b").startswith("this catalog (Amazon S3 Tables by REST) has no schemas inside")


def test_another_name_keeps_the_rest() -> None:
    renamed = relation("t").incorporate(path={"identifier": "u v"})
    assert str(renamed) == "`lake`.`db`.`u v`"
    assert isinstance(renamed, SparkEvolveRelation)


def test_a_relation_is_a_base_relation_with_three_parts() -> None:
    named = relation("t")
    assert isinstance(named, BaseRelation)
    assert (named.database, named.schema, named.identifier) == ("lake", "db", "t")
    assert repr(named) == "<SparkEvolveRelation `lake`.`db`.`t`>"
    assert named == relation("t") != relation("T")
    assert len({named, relation("t")}) == 1
    assert (
        named.quote_policy.to_dict()
        == named.include_policy.to_dict()
        == {
            "database": True,
            "schema": True,
            "identifier": True,
        }
    )


@pytest.mark.parametrize(("name", "quoted"), [("Id", "`Id`"), ("a.b", "`a.b`"), ("a`b", "`a``b`")])
def test_a_column_quotes_its_name(name: str, quoted: str) -> None:
    column = SparkEvolveColumn(column=name, dtype="int")
    assert column.quoted == quoted
    assert column.name == name
