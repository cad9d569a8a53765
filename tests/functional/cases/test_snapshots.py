"""dbt's snapshots of a source that gains, loses and widens columns."""

from typing import Any

import pytest

from tests.functional.harness import Scenario

SOURCE = "{{ config(materialized='table') }}\n"


def snapshot(scenario: Scenario, sql: str, **config: Any) -> None:
    scenario.file("models/src.sql", SOURCE + sql)
    settings = {"unique_key": "id", "strategy": "check", "check_cols": "all", **config}
    body = "{{ config(schema=target.schema, **" + repr(settings) + ") }}\nselect * from {{ ref('src') }}"
    scenario.file(
        "macros/schema.sql", "{% macro generate_schema_name(n, node) %}{{ target.schema }}{% endmacro %}"
    )
    scenario.file("snapshots/snap.sql", "{% snapshot snap %}" + body + "{% endsnapshot %}")


def take(scenario: Scenario) -> None:
    run = scenario.dbt("build", "--full-refresh")
    assert run.success, run.message or run.log


def versions(scenario: Scenario, *columns: str) -> list[tuple[Any, ...]]:
    rows = scenario.table("snap").scan().to_arrow().to_pylist()
    return sorted(
        (tuple(row[name] for name in (*columns, "dbt_valid_to")) for row in rows),
        key=lambda row: (row[0], row[-1] is None, str(row)),
    )


@pytest.mark.parametrize("hard_deletes", ["ignore", "invalidate", "new_record"])
def test_j10_a_source_gains_loses_and_widens_columns(scenario: Scenario, hard_deletes: str) -> None:
    config = {"hard_deletes": hard_deletes}
    snapshot(scenario, "select 1 as id, 'a' as v, 5 as n union all select 2, 'b', 6", **config)
    take(scenario)
    ids = scenario.field_ids("snap")
    snapshot(scenario, "select 1 as id, 7000000000 as n, 'new' as w union all select 3, 8, 'three'", **config)
    take(scenario)
    assert scenario.types("snap")["n"] == "long"
    after = scenario.field_ids("snap")
    assert {name: after[name] for name in ids} == ids
    found = [(*row[:-1], row[-1] is None) for row in versions(scenario, "id", "v", "n", "w")]
    deleted = {
        "ignore": [(2, "b", 6, None, True)],
        "invalidate": [(2, "b", 6, None, False)],
        "new_record": [(2, "b", 6, None, False), (2, None, 6, None, True)],
    }[hard_deletes]
    assert found == [
        (1, "a", 5, None, False),
        (1, None, 7000000000, "new", True),
        *deleted,
        (3, None, 8, "three", True),
    ]
    schemas = scenario.schemas("snap")
    take(scenario)
    assert scenario.schemas("snap") == schemas
    assert scenario.tables() == ["snap", "src"]


def test_a_struct_gains_and_loses_fields(scenario: Scenario) -> None:
    snapshot(scenario, "select 1 as id, named_struct('x', 1, 'gone', 2) as s union all select 2, null")
    take(scenario)
    snapshot(scenario, "select 1 as id, named_struct('y', 3, 'x', 1) as s union all select 2, null")
    take(scenario)
    assert [(*row[:-1], row[-1] is None) for row in versions(scenario, "id", "s")] == [
        (1, {"x": 1, "gone": 2, "y": None}, False),
        (1, {"x": 1, "gone": None, "y": 3}, True),
        (2, None, True),
    ]


def test_a_composite_key_leaves_no_column_of_its_own(scenario: Scenario) -> None:
    snapshot(scenario, "select 1 as a, 2 as b, 'x' as v", unique_key=["a", "b"])
    take(scenario)
    columns = scenario.columns("snap")
    snapshot(scenario, "select 1 as a, 2 as b, 'y' as v, 3 as n", unique_key=["a", "b"])
    take(scenario)
    assert scenario.columns("snap") == [*columns, "n"]
    assert [(*row[:-1], row[-1] is None) for row in versions(scenario, "a", "b", "v", "n")] == [
        (1, 2, "x", None, False),
        (1, 2, "y", 3, True),
    ]


def test_a_snapshot_that_would_lose_something_is_refused(scenario: Scenario) -> None:
    snapshot(scenario, "select 1 as id, 5 as n")
    take(scenario)
    before = scenario.state("snap")
    snapshot(scenario, "select 1 as id, 'text' as n")
    run = scenario.dbt("build", "--full-refresh")
    assert not run.success
    assert "Column `n` is int in the table, and the model returns string" in run.message
    assert scenario.state("snap") == before


def test_dbts_own_columns_may_be_dates(scenario: Scenario) -> None:
    """`updated_at` is a date, and dbt's time of a deletion is a timestamp: Spark casts it as it writes."""
    config = {"strategy": "timestamp", "updated_at": "day", "hard_deletes": "invalidate", "check_cols": None}
    snapshot(
        scenario, "select 1 as id, date'2024-01-01' as day union all select 2, date'2024-01-01'", **config
    )
    take(scenario)
    snapshot(scenario, "select 1 as id, date'2024-01-02' as day", **config)
    take(scenario)
    assert {name: scenario.types("snap")[name] for name in ("dbt_valid_from", "dbt_valid_to")} == {
        "dbt_valid_from": "date",
        "dbt_valid_to": "date",
    }
    found = versions(scenario, "id", "day")
    assert [(key, str(day)) for key, day, _ in found] == [
        (1, "2024-01-01"),
        (1, "2024-01-02"),
        (2, "2024-01-01"),
    ]
    assert [str(end) for *_, end in found[:2]] == ["2024-01-02", "None"]
    assert found[2][-1] is not None
