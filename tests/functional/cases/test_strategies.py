"""What each strategy does to the rows, with columns that come and go, and how its result becomes visible."""

from typing import Any

import pytest

from tests.functional.harness import Scenario

PUBLISH = pytest.mark.parametrize("publish", ["branch", "direct"])
OLD = "select 1 as id, 'a' as v, 10 as gone union all select 2, 'b', 20"
NEW = "select 2 as id, 'B' as v, 7 as n union all select 3, 'C', 8"


def operations(scenario: Scenario, name: str = "t") -> list[str]:
    return [s.summary.operation.value for s in scenario.table(name).metadata.snapshots if s.summary]


@PUBLISH
@pytest.mark.parametrize(
    ("strategy", "config", "rows"),
    [
        (
            "append",
            {"unique_key": None},
            [(1, "a", 10, None), (2, "B", None, 7), (2, "b", 20, None), (3, "C", None, 8)],
        ),
        ("delete+insert", {}, [(1, "a", 10, None), (2, "B", None, 7), (3, "C", None, 8)]),
        (
            "delete+insert",
            {"removed_columns": "keep"},
            [(1, "a", 10, None), (2, "B", 20, 7), (3, "C", None, 8)],
        ),
        ("merge", {}, [(1, "a", 10, None), (2, "B", 20, 7), (3, "C", None, 8)]),
        (
            "merge",
            {"unique_key": None},
            [(1, "a", 10, None), (2, "B", None, 7), (2, "b", 20, None), (3, "C", None, 8)],
        ),
        ("merge", {"merge_update_columns": ["N"]}, [(1, "a", 10, None), (2, "b", 20, 7), (3, "C", None, 8)]),
        ("merge", {"merge_exclude_columns": ["V"]}, [(1, "a", 10, None), (2, "b", 20, 7), (3, "C", None, 8)]),
        ("insert_overwrite", {}, [(2, "B", None, 7), (3, "C", None, 8)]),
        (
            "insert_overwrite",
            {"partition_by": ["id"]},
            [(1, "a", 10, None), (2, "B", None, 7), (3, "C", None, 8)],
        ),
    ],
)
def test_every_strategy_pads_evolves_and_publishes(
    scenario: Scenario, publish: str, strategy: str, config: dict[str, Any], rows: list[Any]
) -> None:
    scenario.model(OLD, incremental_strategy=strategy, publish=publish, **config)
    scenario.run()
    ids = scenario.field_ids()
    scenario.model(NEW, incremental_strategy=strategy, publish=publish, **config)
    scenario.run()
    assert scenario.columns() == ["id", "v", "gone", "n"]
    assert scenario.rows() == rows
    assert scenario.field_ids() == {**ids, "n": 4}
    assert scenario.schemas() == 2
    assert list(scenario.table().metadata.refs) == ["main"]
    assert scenario.tables() == ["t"]


def test_a_full_refresh_keeps_history(scenario: Scenario) -> None:
    scenario.model(OLD)
    scenario.run()
    first, ids = scenario.table().current_snapshot(), scenario.field_ids()
    assert first is not None
    scenario.model(NEW)
    scenario.run("--full-refresh")
    assert scenario.rows() == [(2, "B", None, 7), (3, "C", None, 8)]
    assert scenario.field_ids() == {**ids, "n": 4}
    then = scenario.table().scan(snapshot_id=first.snapshot_id).to_arrow().to_pylist()
    assert sorted(row["gone"] for row in then) == [10, 20]
    assert list(scenario.table().metadata.refs) == ["main"]
    current = scenario.table().current_snapshot()
    assert current is not None and current.parent_snapshot_id == first.snapshot_id


def test_a_failed_audit_leaves_main_untouched(scenario: Scenario) -> None:
    scenario.model(OLD, audits=["v is not null"])
    scenario.run()
    before = scenario.snapshots()
    scenario.model(
        "select 2 as id, cast(null as string) as v union all select 3, 'C'",
        audits=["v is not null", "id > 0"],
    )
    run = scenario.fail()
    assert "v is not null: 1 row, such as id = 2" in run.message
    assert scenario.rows() == [(1, "a", 10), (2, "b", 20)]
    assert list(scenario.table().metadata.refs) == ["main"]
    assert scenario.tables() == ["t"]
    assert scenario.snapshots()[: len(before)] == before


def test_a_merge_of_repeated_keys_says_which(scenario: Scenario) -> None:
    scenario.model(OLD, incremental_strategy="merge")
    scenario.run()
    scenario.model("select 2 as id, 'x' as v union all select 2, 'y'", incremental_strategy="merge")
    assert "id = 2 (2 rows)" in scenario.fail().message
    assert scenario.rows() == [(1, "a", 10), (2, "b", 20)]


def test_keep_refuses_repeated_keys(scenario: Scenario) -> None:
    scenario.model(OLD + " union all select 2, 'bb', 21", removed_columns="keep")
    scenario.run()
    scenario.model("select 2 as id, 'x' as v", removed_columns="keep")
    print(scenario.fail().message)
    assert scenario.rows() == [(1, "a", 10), (2, "b", 20), (2, "bb", 21)]


def test_microbatch(scenario: Scenario) -> None:
    scenario.file(
        "models/src.sql",
        "{{ config(materialized='table', event_time='ts') }}\n"
        "select 1 as id, timestamp'2024-01-01 05:00:00' as ts, 'a' as v, 1 as gone union all select 2, timestamp'2024-01-02 05:00:00', 'b', 2 union all select 3, timestamp'2024-01-03 05:00:00', 'c', 3",
    )
    conf = dict(
        unique_key=None,
        incremental_strategy="microbatch",
        event_time="ts",
        begin="2024-01-01",
        batch_size="day",
        lookback=1,
    )
    scenario.model("select * from {{ ref('src') }}", **conf)
    r = scenario.dbt("run", "--event-time-start", "2024-01-01", "--event-time-end", "2024-01-04")
    assert r.success, r.log
    assert len(scenario.rows()) == 3
    scenario.model("select id, ts, upper(v) as v, 9 as n from {{ ref('src') }}", **conf)
    r = scenario.dbt(
        "run",
        "-s",
        "t",
        "--event-time-start",
        "2024-01-02",
        "--event-time-end",
        "2024-01-04",
        "--threads",
        "4",
    )
    assert r.success, r.log
    print(r.log[-6000:])
    assert [(x[0], *x[2:]) for x in scenario.rows()] == [
        (1, "a", 1, None),
        (2, "B", None, 9),
        (3, "C", None, 9),
    ]
    assert list(scenario.table().metadata.refs) == ["main"]
