"""Names of relations in SQL and in the catalog."""

import pytest
from dbt.adapters.base.relation import BaseRelation

from dbt.adapters.sparkevolve.column import SparkEvolveColumn
from dbt.adapters.sparkevolve.relation import SparkEvolveRelation, table_identifier
from tests.unit.helpers import relation


@pytest.mark.parametrize(
    ("database", "schema", "identifier", "sql"),
    [
        ("lake", "db", "t", "`lake`.`db`.`t`"),
        ("lake", "Db", "MyTable", "`lake`.`Db`.`MyTable`"),
        ("lake", "d.b", "a b", "`lake`.`d.b`.`a b`"),
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
    assert table_identifier(relation("My `t`", "d.b")) == ("d.b", "My `t`")
    assert table_identifier(relation("t").without_identifier()) == ("db", "")
    assert table_identifier(SparkEvolveRelation.create(database="lake")) == ("", "")


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
