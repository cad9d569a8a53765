"""Runs, readers and streams at the same time: nobody sees a run half done."""

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from tests.functional.harness import Scenario
from tests.functional.intruders import append, is_clean
from tests.functional.worker import Worker


def test_two_processes_run_the_same_models(scenario: Scenario) -> None:
    """Each process runs twice beside the other; rows of both are there, and each run that succeeds counts."""
    writer = "{{ var('writer') }}"
    models = {
        "appended": ("select {0} as writer, {1} as round", {"unique_key": None}),
        "keyed": ("select {0} * 10 + {1} as id, {0} as writer, {1} as `w{0}`, 7 as both", {}),
        "total": (
            "select 0 as id, coalesce(max(n), 0) + 1 as n from "
            "{{% if is_incremental() %}} {{{{ this }}}} {{% else %}} values (0) as source(n) {{% endif %}}",
            {},
        ),
    }
    for name, (sql, config) in models.items():
        scenario.model(sql.format(writer, "{{ var('round') }}"), name, commit_retries=20, **config)

    def command(writer: int, number: int) -> tuple[str, ...]:
        return ("run", "--threads", "3", "--vars", json.dumps({"writer": writer, "round": number}))

    assert scenario.dbt(*command(0, 0)).success
    with Worker() as worker:
        assert worker.run(scenario, command(2, 0))[0].success
        worker.start(scenario, *[command(2, number) for number in (1, 2)])
        ours = [scenario.dbt(*command(1, number)) for number in (1, 2)]
        theirs = worker.wait()
    assert [run.message for run in ours] == [outcome.message for outcome in theirs] == ["", ""]
    rounds = [(0, 0), (1, 1), (1, 2), (2, 0), (2, 1), (2, 2)]
    assert scenario.rows("appended") == rounds
    columns = ["id", "writer", "w0", "both", "w1", "w2"]
    assert sorted(scenario.columns("keyed")) == sorted(columns)
    found = scenario.table("keyed").scan().to_arrow().to_pylist()
    expected = [
        {**dict.fromkeys(columns), "id": w * 10 + r, "writer": w, f"w{w}": r, "both": 7} for w, r in rounds
    ]
    assert sorted(found, key=lambda row: row["id"]) == expected
    assert scenario.rows("total") == [(0, 6)]
    assert is_clean(scenario, *models)


@contextmanager
def repeatedly(action: Callable[[], None], seconds: float) -> Iterator[list[None]]:
    """Do something again and again in another thread; say how often, and fail if it failed."""
    stop = threading.Event()
    done: list[None] = []
    failed: list[BaseException] = []

    def work() -> None:
        try:
            while True:
                action()
                done.append(None)
                if stop.wait(seconds):
                    return
        except BaseException as exc:
            failed.append(exc)

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield done
    finally:
        stop.set()
        thread.join()
    assert not failed, failed


@pytest.mark.another_writer_at_once
def test_a_stream_appends_during_runs(scenario: Scenario) -> None:
    """It commits about each second. A run gets in between, or says that it did not."""
    scenario.model("select 0 as id, 0 as v")
    scenario.run()
    loaded = 0
    with repeatedly(lambda: append(scenario, [{"id": 9, "v": 1}]), 1.0) as appended:
        for number in (1, 2, 3):
            scenario.model(f"select 0 as id, {number} as v", commit_retries=20)
            run = scenario.dbt("run")
            assert run.success or "other writers had committed" in run.message
            loaded = number if run.success else loaded
    assert scenario.rows() == [(0, loaded), *[(9, 1)] * len(appended)]
    assert is_clean(scenario)


def test_microbatches_in_parallel(scenario: Scenario) -> None:
    days = range(1, 9)
    source = ", ".join(f"({day}, timestamp'2024-01-0{day} 05:00:00')" for day in days)
    scenario.model(
        f"select * from values {source} as source(id, ts)",
        name="events",
        materialized="table",
        unique_key=None,
        on_schema_change=None,
        event_time="ts",
    )
    config = {
        "unique_key": None,
        "incremental_strategy": "microbatch",
        "event_time": "ts",
        "begin": "2024-01-01",
        "batch_size": "day",
    }
    window = ("--event-time-start", "2024-01-01", "--event-time-end", "2024-01-09")
    scenario.model("select id, ts, 'old' as v from {{ ref('events') }}", **config)
    scenario.run(*window, "--threads", "4")
    before = scenario.snapshots()
    scenario.model("select id, ts, 'new' as v, id * 2 as n from {{ ref('events') }}", **config)
    run = scenario.run("-s", "t", *window, "--threads", "4")
    assert [(row[0], *row[2:]) for row in scenario.rows()] == [(day, "new", day * 2) for day in days]
    (result,) = run.result.result
    assert (len(result.batch_results.successful), result.batch_results.failed) == (8, [])
    assert len(scenario.snapshots()) == len(before) + 16
    assert scenario.schemas() == 2
    assert is_clean(scenario, "t", "events")


@pytest.mark.core
def test_readers_never_see_the_gap(scenario: Scenario) -> None:
    scenario.model("select cast(id as int) as id, 0 as v from range(1000)")
    scenario.run()
    seen: list[tuple[int, int]] = []

    def read() -> None:
        rows = scenario.table().scan().to_arrow().to_pylist()
        seen.append((len({row["id"] for row in rows}), len({row["v"] for row in rows})))
        assert len(rows) == 1000

    with repeatedly(read, 0.0):
        for number in (1, 2):
            scenario.model(f"select cast(id as int) as id, {number} as v from range(1000)")
            scenario.run()
    assert len(seen) > 10
    assert set(seen) == {(1000, 1)}
    assert {row[1] for row in scenario.rows()} == {2}


def test_overwriting_models_leave_no_setting_behind(scenario: Scenario) -> None:
    """A plain INSERT OVERWRITE, in their own hooks or in a model at the same time, replaces everything."""
    first, second = (
        "select * from values (1, 1), (2, 2) as s(v, day)",
        "select * from values (7, 2) as s(v, day)",
    )
    plain = {"materialized": "table", "unique_key": None, "on_schema_change": None, "partition_by": "day"}
    days = {"incremental_strategy": "insert_overwrite", "unique_key": None, "partition_by": ["day"]}
    models = {"days": days, "whole": {**days, "partition_by": None}, "other": plain}
    overwrite = "insert overwrite {{ this.schema }}.{{ this.identifier }}_hook values (9, %d)"
    for name in models:
        scenario.model(first, f"{name}_hook", **plain)
    scenario.run()
    for day, sql in ((3, first), (4, second)):
        for name, config in models.items():
            scenario.model(sql, name, **config, post_hook=overwrite % day)
        scenario.run("--threads", "3", "-s", *models)
    assert {name: scenario.rows(name) for name in models} == {
        "days": [(1, 1), (7, 2)],
        "whole": [(7, 2)],
        "other": [(7, 2)],
    }
    assert [scenario.rows(f"{name}_hook") for name in models] == [[(9, 4)]] * 3
