"""Files without field ids, in which Iceberg's library would give the name of one column to another."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.functional.harness import Scenario

ADDS = {"on_schema_change": "append_new_columns"}
PLAN = ("--vars", "sparkevolve_plan_only: true")
MAPPING = "schema.name-mapping.default"
OF_S = json.dumps(
    [
        {"field-id": 1, "names": ["id"]},
        {
            "field-id": 2,
            "names": ["s"],
            "fields": [{"field-id": 3, "names": ["x"]}, {"field-id": 4, "names": ["y"]}],
        },
    ]
)
SAYS = "and the table has the property `schema.name-mapping.default`"
HIDDEN = "Spark hides its value, since a name in it looks like an address or a secret"


@pytest.fixture(scope="module")
def lake(project: Scenario) -> Scenario:
    project.sql(f"create schema if not exists lake.{project.schema}")
    return project


def import_files(project: Scenario, folder: Path, name: str, columns: str, query: str, *after: str) -> None:
    table = f"lake.{project.schema}.{name}"
    project.sql(f"create table {table} ({columns}) using iceberg")
    project.sql(f"insert overwrite directory '{folder / name}' using parquet {query}")
    project.sql(
        f"call lake.system.add_files(table => '{project.schema}.{name}', "
        f"source_table => '`parquet`.`{folder / name}`')"
    )
    for statement in after:
        project.sql(statement.replace("{table}", table))


def as_spark_reads(project: Scenario, name: str) -> list[tuple[Any, ...]]:
    # A connection of its own to Spark may know the table as it was.
    project.sql(f"refresh table lake.{project.schema}.{name}")
    return [tuple(row) for row in project.sql(f"select * from lake.{project.schema}.{name} order by id")]


def test_a_name_that_such_files_have_for_another_column_is_refused(lake: Scenario, tmp_path: Path) -> None:
    """And nothing is written: the values of one column would be read in another, or none at all."""
    cases: dict[str, tuple[str, str, tuple[str, ...], str, dict[str, str], str]] = {
        "swapped": (
            "id int, a int, b int",
            "10 as a, 20 as b, 1 as id",
            (),
            "2 as id, 11 as a2, 12 as a",
            {"a": "a2", "b": "a"},
            "`column_renames` wants `b` to become `a`",
        ),
        "retired": (
            "id int, v string",
            "1 as id, 'x' as v",
            (),
            "2 as id, 2 as v",
            {"v": "v_old"},
            "The model returns the new column `v`",
        ),
        "dropped": (
            "id int, v int",
            "1 as id, 42 as v",
            ("alter table {table} drop column v",),
            "2 as id, 2 as v",
            {},
            "The model returns the new column `v`",
        ),
        # The mapping has the struct under the name that it has in the files.
        "field": (
            "id int, S struct<x: int, y: int>",
            "1 as id, named_struct('x', 1, 'y', 2) as s",
            (
                "alter table {table} set tblproperties ('" + MAPPING + "' = '" + OF_S + "')",
                "alter table {table} drop column S.y",
            ),
            "2 as id, named_struct('x', 1, 'y', 3) as S",
            {},
            "The model returns the new column `S`.`y`",
        ),
        "item": (
            "id int, l array<struct<m: int, n: int>>",
            "1 as id, array(named_struct('m', 1, 'n', 2)) as l",
            (),
            "2 as id, array(named_struct('o', 1, 'm', 3)) as l",
            {"l.element.m": "o", "l.element.n": "m"},
            "`column_renames` wants `l`.`element`.`n` to become `m`",
        ),
        "hidden": (
            "id int, url string",
            "1 as id, 'x' as url",
            (),
            "2 as id, 'y' as url, 1 as n",
            {},
            "The model returns the new column `n`",
        ),
    }
    for name, (columns, imported, after, query, renames, _) in cases.items():
        import_files(lake, tmp_path, name, columns, f"select {imported}", *after)
        lake.model(f"select {query}", name, **ADDS, column_renames=renames)
    before = {name: (lake.state(name), as_spark_reads(lake, name)) for name in cases}
    planned, said = lake.fail("--select", *cases, *PLAN).said, lake.fail("--select", *cases).said
    for name, case in cases.items():
        assert f"{case[-1]}, {SAYS}" in said[name]
        assert f"{case[-1]}, {SAYS}" in planned[name]
        assert (HIDDEN in said[name]) == (name == "hidden")
        assert "nothing was written to it:" in said[name]
        assert (lake.state(name), as_spark_reads(lake, name)) == before[name]
    # What the error says to do does it.
    lake.sql(f"alter table lake.{lake.schema}.swapped create tag imported")
    mapping = lake.table("swapped").properties[MAPPING]
    call, alter = re.findall(r"`(CALL [^`]*|ALTER TABLE [^`]* UNSET [^`]*)`", said["swapped"])
    for statement in (call, alter):
        lake.sql(
            statement.replace("CALL system", "CALL lake.system").replace(
                "ALTER TABLE ", "ALTER TABLE " + ("" if "lake" in statement else "lake.")
            )
        )
    lake.run("--select", "swapped")
    assert as_spark_reads(lake, "swapped") == [(1, 10, 20), (2, 11, 12)] == lake.rows("swapped")
    # Whose files have their columns in another order than the table.
    tagged = f"select id, a, b from lake.{lake.schema}.swapped version as of 'imported'"
    assert lake.sql(tagged) == [(10, 20, 1)]
    lake.sql(f"alter table lake.{lake.schema}.swapped set tblproperties ('{MAPPING}' = '{mapping}')")
    assert lake.sql(tagged) == [(1, 10, 20)]
    assert as_spark_reads(lake, "swapped") == [(1, 10, 20), (2, 11, 12)] == lake.rows("swapped")


def test_other_changes_are_made(lake: Scenario, tmp_path: Path) -> None:
    """A column keeps the names that it has had: a rename may go back to one, and nobody else gets one.

    Names that differ by their case are not the same in files.
    """
    drop = "alter table {table} drop column N"
    import_files(lake, tmp_path, "other", "id int, a int, N int", "select 1 as id, 10 as a, 9 as N", drop)
    for query, renames, rows in (
        ("2 as id, 11 as a2, 5 as n", {"a": "a2"}, [(1, 10, None), (2, 11, 5)]),
        ("3 as id, 12 as a", {"a2": "a"}, [(1, 10, None), (2, 11, 5), (3, 12, None)]),
        ("4 as id, 13L as a", {}, [(1, 10, None), (2, 11, 5), (3, 12, None), (4, 13, None)]),
    ):
        lake.model(f"select {query}", "other", **ADDS, column_renames=renames)
        lake.run("--select", "other")
        assert as_spark_reads(lake, "other") == rows == lake.rows("other")
    lake.model("select 5 as id, 14L as a3", "other", **ADDS, column_renames={"a": "a3"})
    lake.run("--select", "other")
    lake.model("select 6 as id, 15L as a3, 1 as a2", "other", **ADDS)
    before = lake.state("other")
    message = lake.fail("--select", "other").message
    assert f"The model returns the new column `a2`, {SAYS}" in message
    assert lake.state("other") == before
    assert MAPPING in lake.table("other").properties
