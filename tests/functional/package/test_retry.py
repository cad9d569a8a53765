"""A full refresh of a microbatch model that fails half-way, and what dbt commands do after it."""

from datetime import datetime, timezone
from typing import Any

from tests.functional.harness import Run, Scenario

# Five batches, the last one of now: without `--event-time-start` they begin at `begin`.
YEARS = range(datetime.now(timezone.utc).year - 4, datetime.now(timezone.utc).year + 1)
BATCHES: dict[str, Any] = {
    "unique_key": None,
    "incremental_strategy": "microbatch",
    "event_time": "ts",
    "begin": f"{YEARS[0]}-01-01",
    "batch_size": "year",
    "concurrent_batches": True,
    "on_schema_change": "append_new_columns",
}


def write(project: Scenario, version: str, bad: str = "()") -> None:
    """Write the model so that the batches of some numbers fail."""
    fails = f"id in {bad}" if bad != "()" else "false"
    project.model(
        f"select id, ts, if({fails}, raise_error('not yet'), '{version}') as v from {{{{ ref('events') }}}}",
        "batches",
        **BATCHES,
    )


def since(number: int) -> list[str]:
    """Return the arguments for the batches from this one on."""
    return ["--event-time-start", f"{YEARS[number - 1]}-01-01", "--event-time-end", f"{YEARS[-1] + 1}-01-01"]


def refresh(project: Scenario, *arguments: str) -> Run:
    return project.dbt("run", "-s", "batches", "--full-refresh", *arguments)


def statuses(run: Run) -> list[str]:
    return [str(node.status) for node in run.result.result if node.node.name == "batches"]


def values(project: Scenario) -> list[tuple[Any, ...]]:
    return [(row[0], row[2]) for row in project.rows("batches")]


def test_a_full_refresh_that_failed_half_way_goes_on(project: Scenario) -> None:
    project.writes_artifacts = True
    rows = ", ".join(f"({number}, timestamp'{year}-01-01 05:00:00')" for number, year in enumerate(YEARS, 1))
    project.file(
        "models/events.sql",
        "{{ config(materialized='table', file_format='iceberg', event_time='ts') }}\n"
        f"select * from values {rows} as source(id, ts)",
    )
    project.run("-s", "events")
    table = project.relation("batches")
    project.sql(
        f"create table {table} using iceberg as select 9 as id, timestamp'2024-01-09' as ts, 'x' as v"
    )
    write(project, "new", "(3, 4)")
    assert statuses(refresh(project, "--threads", "4")) == ["partial success"]
    assert values(project) == [(1, "new"), (2, "new"), (5, "new")]
    # A retry that fails in its first batch, too, after which dbt tries none of the others.
    assert statuses(project.dbt("retry")) == ["error"]
    assert values(project) == [(1, "new"), (2, "new"), (5, "new")]
    write(project, "fixed")
    retried = project.dbt("retry")
    assert retried.success, retried.log
    assert values(project) == [(1, "new"), (2, "new"), (3, "fixed"), (4, "fixed"), (5, "new")]
    # A full refresh of its own replaces all rows, wherever it begins, and a run after it adds to them.
    write(project, "newer", "(5)")
    assert statuses(refresh(project, *since(4))) == ["partial success"]
    assert values(project) == [(4, "newer")]
    write(project, "newest")
    project.run("-s", "batches", *since(5))
    assert values(project) == [(4, "newer"), (5, "newest")]
