"""Texts of a configuration reach tables and views as they are written, and are never SQL."""

from typing import Any

import pytest
import yaml

from tests.functional.harness import Run, Scenario

# What breaks out of a literal that escapes quotes only, and what else SQL, Jinja and Spark might read.
AWKWARD = (
    "\\' as select 1 -- it's \"quoted\" \\ `ticked`; \\\\ end\\\n"
    "second -- line /* not a comment */ ${spark.app.name} { { x } } %s ? \U0001f389 日本 \\u0041 \\n"
)
BREAKOUT = "out\\' as select 666 as id -- "
TABLE: dict[str, Any] = {"materialized": "table", "unique_key": None, "on_schema_change": None}
VIEW: dict[str, Any] = {**TABLE, "materialized": "view"}


def messages(run: Run) -> dict[str, str]:
    """What dbt says of each node, by its name."""
    return {node.node.name: str(node.message) for node in run.result.result}


def comments(scenario: Scenario, name: str) -> tuple[str | None, dict[str, str | None]]:
    """The comment of a view or table and those of its columns, as Spark tells them."""
    rows = scenario.sql(f"describe extended {scenario.relation(name)}")
    end = next(n for n, row in enumerate(rows) if not row[0] or row[0].startswith("#"))
    comment = next((row[1] for row in rows[end:] if row[0] == "Comment"), None)
    return comment, {row[0]: row[2] for row in rows[:end]}


@pytest.mark.parametrize("text", [AWKWARD, BREAKOUT], ids=["awkward", "breakout"])
def test_descriptions_are_stored_as_they_are(scenario: Scenario, text: str) -> None:
    """Of a view, a table, an incremental model and a seed; nothing in them runs."""
    docs = {"persist_docs": {"relation": True, "columns": True}}
    columns = [{"name": "id", "description": text}, {"name": "it's", "description": text}]
    described = {"description": text, "columns": columns}
    scenario.model("select 1 as ID, 'a' as `it's`", "seen", **VIEW)
    scenario.model("select 1 as ID, 'a' as `it's`", "made", **TABLE)
    scenario.model("select 1 as ID, 'a' as `it's`", "t")
    scenario.file("seeds/s.csv", "id,it's\n1,a\n")
    scenario.file(
        "models/m.yml",
        # Jinja would read braces.
        yaml.safe_dump(
            {
                "models": [{"name": n, "config": docs, **described} for n in ("seen", "made", "t")],
                "seeds": [{"name": "s", "config": docs, **described}],
            }
        ),
    )
    for _ in range(2):
        run = scenario.dbt("build")
        assert run.success, run.message
        for name in ("made", "t", "s"):
            assert scenario.table(name).properties["comment"] == text
            assert list(scenario.docs(name).values()) == [text, text]
            assert scenario.rows(name) == [(1, "a")]
        assert comments(scenario, "seen") == (text, {"ID": text, "it's": text})
        assert scenario.sql(f"select * from {scenario.relation('seen')}") == [(1, "a")]


def test_names_and_locations_are_never_sql(scenario: Scenario) -> None:
    root = f"{scenario.folder}/it's a \\' place"
    scenario.model(
        "select 1 as id, 'x' as `a b`, named_struct('c', 2) as s",
        location_root=root,
        partition_by=["a b", "s.c", "bucket(4, id)"],
        tblproperties={"key'\\' --": "value \\' --"},
    )
    scenario.model("select 1 as id", "bad_partition", partition_by="id) tblproperties ('x'='y'")
    scenario.model("select 1 as id", "bad_format", **TABLE, file_format="parquet as select 666 --")
    scenario.file("seeds/s.csv", "id\n1\n")
    scenario.write_project(seeds={"+column_types": {"id": "int, more int"}})
    run = scenario.dbt("build")
    found = messages(run)
    table = scenario.table()
    assert table.location().endswith("/it's a \\' place/t")
    assert table.properties["key'\\' --"] == "value \\' --"
    assert [str(f.transform) for f in table.spec().fields] == ["identity", "identity", "bucket[4]"]
    assert scenario.rows() == [(1, "x", {"c": 2})]
    assert "id) tblproperties ('x'='y'" in found["bad_partition"]  # no such column
    assert (
        "file_format is 'parquet as select 666 --', which is not the name of a format" in found["bad_format"]
    )
    assert "column_types of id is 'int, more int', which is not a type of Spark's" in found["s"]
    assert scenario.tables() == ["t"]


def test_a_unit_test_of_dbt_reads_its_rows_as_they_are(scenario: Scenario) -> None:
    scenario.model("select 1 as id, 'x' as v", "source", **TABLE)
    scenario.model("select id, v from {{ ref('source') }}", **VIEW)
    scenario.run()
    rows = [{"id": 1, "v": "\\' it's \\ \\n"}]
    unit = {"name": "u", "model": "t", "given": [{"input": "ref('source')", "rows": rows}]}
    scenario.file("models/u.yml", yaml.safe_dump({"unit_tests": [{**unit, "expect": {"rows": rows}}]}))
    run = scenario.dbt("test")
    assert run.success, run.message
    rows = [{"id": 1, "v": "it's \\ other"}]
    scenario.file("models/u.yml", yaml.safe_dump({"unit_tests": [{**unit, "expect": {"rows": rows}}]}))
    assert not scenario.dbt("test").success
