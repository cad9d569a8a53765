"""Columns of the type VARIANT, which a table of format version 3 keeps and one of version 2 has as JSON."""

from typing import Any

import pytest

from tests.functional.dead_letters.reading import letters
from tests.functional.harness import Scenario

V3 = {"format-version": "3"}
MODES = dict.fromkeys(("write.delete.mode", "write.merge.mode", "write.update.mode"), "merge-on-read")
FIRST = """select id, parse_json(v) as v, named_struct('x', parse_json(v)) as s, array(parse_json(v)) as l
  from values (1, '{"a": 1}'), (2, '[2]') as t(id, v)"""
THEN = """select 2 as id, parse_json('"q"') as w,
  named_struct('x', parse_json('7'), 'y', parse_json('8')) as s, array(parse_json('9')) as l"""


def read(scenario: Scenario) -> list[tuple[object, ...]]:
    scenario.sql(f"refresh table {scenario.relation()}")
    columns = [f"to_json({c})" if c in "vw" else c for c in scenario.columns() if c in ("id", "v", "w")]
    nested = "to_json(s.x), l[0]"
    return scenario.sql(f"select {', '.join(columns)}, {nested} from {scenario.relation()} order by id")


@pytest.mark.parametrize("strategy", ["delete+insert", "merge", "insert_overwrite"])
def test_a_variant_stays_one(scenario: Scenario, strategy: str) -> None:
    keyed = strategy in ("delete+insert", "merge")
    chosen = {"incremental_strategy": strategy, "unique_key": "id" if keyed else None}
    scenario.model(FIRST, tblproperties={**V3, **MODES}, audits=["id > 0"], **chosen)
    scenario.run()
    assert scenario.types() == {
        "id": "int",
        "v": "variant",
        "s": "struct<5: x: optional variant>",
        "l": "list<string>",
    }
    first = [(1, '{"a":1}', '{"a":1}', '{"a":1}'), (2, "[2]", "[2]", "[2]")]
    assert read(scenario) == first
    # The key is there; v is padded, w is new, and so is a field that the struct gets.
    scenario.model(
        THEN,
        tblproperties={**V3, **MODES},
        audits=["to_json(w) = '\"q\"'"],
        **chosen,
    )
    scenario.run()
    assert scenario.types()["w"] == "variant"
    assert scenario.types()["s"] == "struct<5: x: optional variant, 7: y: optional variant>"
    added = (2, None, '"q"', "7", "9")
    old = [(*row[:2], None, *row[2:]) for row in first]
    # A MERGE leaves what the model does not return.
    replaced = (2, "[2]", *added[2:]) if strategy == "merge" else added
    assert read(scenario) == ([old[0], replaced] if keyed else [added])
    assert list(scenario.table().metadata.refs) == ["main"]
    assert scenario.tables() == ["t"]


def test_a_variant_is_json_where_it_cannot_be_one(scenario: Scenario) -> None:
    sql = "select 1 as id, parse_json('[1]') as v"
    scenario.model(sql, "v2")
    scenario.model("select 1 as id, '[0]' as v", "texts", tblproperties=V3)
    scenario.model(sql, "key", tblproperties=V3, unique_key="v")
    scenario.run("--select", "v2", "texts")
    assert scenario.rows("v2") == [(1, "[1]")]
    scenario.model(sql, "texts", tblproperties=V3)
    scenario.run("--select", "v2", "texts")
    assert (scenario.types("texts"), scenario.rows("texts")) == ({"id": "int", "v": "string"}, [(1, "[1]")])
    scenario.sql(f"create table {scenario.relation('key')} tblproperties ('format-version' = '3') as {sql}")
    message = scenario.fail("--select", "key").message
    assert "The unique_key `v` is of type variant, and Spark cannot compare variants" in message
    assert "such as `to_json(`v`)`" in message


def test_iceberg_reads_no_variant_in_a_list(scenario: Scenario) -> None:
    """So that a table gets none."""
    scenario.sql(f"create schema lake.{scenario.schema}")
    sql = "select 1 as id, array(parse_json('1')) as v"
    scenario.sql(f"create table {scenario.relation()} tblproperties ('format-version' = '3') as {sql}")
    assert scenario.types() == {"id": "int", "v": "list<variant>"}
    with pytest.raises(Exception, match="Only non-nested columns are supported for vectorized reads"):
        scenario.sql(f"select id from {scenario.relation()}")


def test_a_snapshot_of_variants_is_of_their_json(scenario: Scenario, method: str) -> None:
    if method != "session":
        pytest.skip("dbt asks the view for a row, and the server answers `Unrecognized type name: variant`")
    scenario.model("select 1 as id, parse_json('1') as v", "src", materialized="view", unique_key=None)
    scenario.file(
        "snapshots/s.sql",
        "{% snapshot s %}{{ config(target_schema=target.schema, unique_key='id', strategy='check', "
        "check_cols='all', tblproperties={'format-version': '3'}) }}"
        "select * from {{ ref('src') }}{% endsnapshot %}",
    )
    for value in ("1", "1", "2"):
        scenario.model(
            f"select 1 as id, parse_json('{value}') as v", "src", materialized="view", unique_key=None
        )
        assert scenario.dbt("build").success
    assert scenario.types("s")["v"] == "variant"
    found = f"select to_json(v), dbt_valid_to is null from {scenario.relation('s')} order by 1"
    assert scenario.sql(found) == [("1", False), ("2", True)]


def test_a_column_without_a_type_gets_one(scenario: Scenario, method: str) -> None:
    scenario.sql(f"create schema if not exists lake.{scenario.schema}")
    scenario.sql(
        f"create table {scenario.relation()} (id int, u void) using iceberg "
        "tblproperties ('format-version' = '3')"
    )
    scenario.model("select 1 as id, null as u", tblproperties=V3)
    scenario.run()
    assert scenario.types() == {"id": "int", "u": "unknown"}
    if method != "session":
        return  # Spark's ALTER TABLE refuses it
    scenario.model("select 2 as id, 'x' as u", tblproperties=V3)
    scenario.run()
    assert (scenario.types(), scenario.field_ids()) == ({"id": "int", "u": "string"}, {"id": 1, "u": 2})
    assert scenario.rows() == [(1, None), (2, "x")]
    assert scenario.sql(f"select * from {scenario.relation()} order by id") == [(1, None), (2, "x")]


def test_rows_with_variants_are_set_aside(scenario: Scenario) -> None:
    """A replay leaves what JSON does not tell the types of, and loads NULL in such columns."""
    audited: dict[str, Any] = {
        "tblproperties": V3,
        "on_bad_rows": "dead_letter",
        "audits": [{"sql": "n > 0", "severity": "row"}],
    }
    scenario.model("select 0 as id, 1 as n, parse_json('0') as v, map(1, 'a') as m", **audited)
    scenario.run()
    bad = (
        "(1, -1, '{\"a\": 1}', map(1, 'b')), (2, -1, null, null), (4, -1, null, map(2, 'c')), "
        "(5, -1, 'null', null)"
    )
    sql = f"select id, n, parse_json(v) as v, m from values {bad}, (3, 1, '[3]', null) as t(id, n, v, m)"
    scenario.model(sql, **audited)
    scenario.run()
    read = f"select id, to_json(v), m from {scenario.relation()} order by id"
    loaded = [(0, "0", {1: "a"}), (3, "[3]", None)]
    scenario.sql(f"refresh table {scenario.relation()}")
    assert scenario.sql(read) == loaded
    assert [row["payload"] for row in letters(scenario)] == [
        {"id": 1, "n": -1, "v": {"a": 1}, "m": [{"key": 1, "value": "b"}]},
        {"id": 2, "n": -1, "v": None, "m": None},
        {"id": 4, "n": -1, "v": None, "m": [{"key": 2, "value": "c"}]},
        # The null of JSON is a value of a variant, and not NULL.
        {"id": 5, "n": -1, "v": "null", "m": None},
    ]
    scenario.model(sql, **{**audited, "audits": []})
    replayed = scenario.dbt("run-operation", "replay_dead_letters", "--args", "{model: t}")
    assert replayed.success, replayed.message
    scenario.sql(f"refresh table {scenario.relation()}")
    assert scenario.sql(read) == [loaded[0], (2, None, None), loaded[1]]
    assert [row["failureReason"] for row in letters(scenario)] == [
        "`v`: cannot be read back as variant",
        "`m`: cannot be read back as map<int,string>",
        "`v`: cannot be read back as variant",
    ]
