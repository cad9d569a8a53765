"""`microbatch`: the window that a batch replaces."""

import pytest

from tests.functional.harness import Run, Scenario
from tests.functional.samples import PUBLISH

EVENTS = (
    "select 1 as id, {0}'2024-01-01 05:00:00' as ts, 'a' as v, 1 as gone union all "
    "select 2, {0}'2024-01-02 05:00:00', 'b', 2 union all select 3, {0}'2024-01-03 23:59:59', 'c', 3"
)

BATCHES = {
    "unique_key": None,
    "incremental_strategy": "microbatch",
    "event_time": "TS",
    "begin": "2024-01-01",
    "batch_size": "day",
}


def run_batches(scenario: Scenario, start: str, end: str, *arguments: str) -> Run:
    run = scenario.dbt("run", "--event-time-start", start, "--event-time-end", end, *arguments)
    assert run.success, run.log
    return run


@PUBLISH
@pytest.mark.parametrize("type_", ["timestamp", "timestamp_ntz", "date"])
def test_a_batch_replaces_its_window(scenario: Scenario, publish: str, type_: str) -> None:
    config = {**BATCHES, "publish": publish}
    events = EVENTS.format("timestamp" if type_ == "date" else type_)
    scenario.file(
        "models/src.sql",
        "{{ config(materialized='table', event_time='ts') }}\n"
        f"select id, cast(ts as {type_}) as ts, v, gone from ({events})",
    )
    scenario.model("select * from {{ ref('src') }}", **config)
    run_batches(scenario, "2024-01-01", "2024-01-04")
    assert [(row[0], *row[2:]) for row in scenario.rows()] == [(1, "a", 1), (2, "b", 2), (3, "c", 3)]
    scenario.model("select id, ts, upper(v) as v, 9 as n from {{ ref('src') }} where id <> 2", **config)
    # The source has no row left for the second day: its rows go.
    run_batches(scenario, "2024-01-02", "2024-01-04")
    assert [(row[0], *row[2:]) for row in scenario.rows()] == [(1, "a", 1, None), (3, "C", None, 9)]
    assert list(scenario.table().metadata.refs) == ["main"]
    assert scenario.tables() == ["src", "t"]


@pytest.mark.core
def test_batches_in_parallel_lose_nothing(scenario: Scenario) -> None:
    days = " union all ".join(
        f"select {day} as id, timestamp'2024-01-{day:02} 05:00:00' as ts" for day in range(1, 9)
    )
    scenario.file("models/src.sql", "{{ config(materialized='table', event_time='ts') }}\n" + days)
    scenario.model("select * from {{ ref('src') }}", commit_retries=0, **BATCHES)
    run_batches(scenario, "2024-01-01", "2024-01-02")
    run = run_batches(scenario, "2024-01-01", "2024-01-09", "--select", "t", "--threads", "4")
    assert [row[0] for row in scenario.rows()] == list(range(1, 9))
    assert run.log.count("OK created batch") == 8
    # The first day was there.
    assert run.log.splitlines().count(f"{scenario.relation()}: 8 batches, 8 rows") == 1
    assert run.log.count("OK 1 row") == 8


def test_a_full_refresh_of_a_microbatch_model_runs_all_batches(scenario: Scenario) -> None:
    scenario.file(
        "models/src.sql", "{{ config(materialized='table', event_time='ts') }}\n" + EVENTS.format("timestamp")
    )
    scenario.model("select * from {{ ref('src') }}", **BATCHES)
    run_batches(scenario, "2024-01-01", "2024-01-04")
    ids = scenario.field_ids()
    scenario.model("select id, ts, upper(v) as v from {{ ref('src') }}", **BATCHES)
    run_batches(scenario, "2024-01-01", "2024-01-04", "--full-refresh", "--select", "t")
    assert [(row[0], *row[2:]) for row in scenario.rows()] == [(1, "A", None), (2, "B", None), (3, "C", None)]
    assert scenario.field_ids() == ids


def test_an_event_time_that_the_model_does_not_return_is_refused(scenario: Scenario) -> None:
    scenario.model("select 1 as id, 2 as n", **BATCHES)
    run = scenario.dbt("run", "--event-time-start", "2024-01-01", "--event-time-end", "2024-01-02")
    assert not run.success
    assert "The event_time `TS` is not produced by the model, which returns `id`, `n`." in run.log
    assert scenario.tables() == []
