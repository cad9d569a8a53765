"""A project of ten nodes that evolves three times, run as a job of a hosted dbt, and by the adapter."""

import shutil
from collections.abc import Callable
from typing import Any

import pytest
import yaml

from tests.functional.harness import Run, Scenario, sort_rows

ICEBERG = {"file_format": "iceberg"}
PRESERVE = "append_new_columns"
# What each model returns in a step; the last one stands for those after it.
QUERIES: dict[str, list[str]] = {
    "orders": [
        "select 1 as id, 'new' as status, cast(10 as int) as amount union all select 2, 'new', 20",
        "select 2 as id, cast(25 as bigint) as amount, date '2024-01-02' as paid "
        "union all select 3, 30, null",
        "select 3 as ID, 'late' as status, cast('x' as string) as `a note`",
        "select 4 as id, 'gone' as `STATUS`",
    ],
    "events": [
        "select 1 as id, 'a' as kind",
        "select 2 as id, 'b' as kind, map('x', 1) as tags",
        "select cast(3 as bigint) as id",
        "select 4 as id, null as kind",
    ],
    "customers": [
        "select 1 as id, 'Ann' as name, 'x' as note union all select 2, 'Bob', 'y'",
        "select 2 as id, 'Rob' as name, 'r@b' as mail",
        "select 2 as id, 'z' as note union all select 3, 'n'",
        "select 1 as id, 'Anne' as name",
    ],
    "days": [
        "select date '2024-01-01' as day, 1 as n union all select date '2024-01-02', 2",
        "select date '2024-01-02' as day, 3 as n, 'x' as why union all select date '2024-01-03', 4, 'y'",
        "select date '2024-01-03' as day, cast(5 as bigint) as n",
        "select date '2024-01-01' as day, 'z' as why",
    ],
    "hours": [
        "select id, at, 'one' as v from {{ ref('raw') }}",
        "select id, at, cast(2 as int) as w from {{ ref('raw') }}",
        "select id, at, 'three' as v, w from (select *, cast(3 as bigint) as w from {{ ref('raw') }})",
        "select id, at from {{ ref('raw') }}",
    ],
    "kept": [
        "select 1 as id, 'a' as x, named_struct('p', 1, 'q', 'one') as s union all select 2, 'b', null",
        "select 1 as id, named_struct('q', 'two', 'r', cast(1.5 as double)) as s",
        "select 2 as id, 'c' as x union all select 3, 'd'",
        "select 3 as id, named_struct('p', cast(7 as bigint)) as s",
    ],
}
CONFIGS: dict[str, dict[str, Any]] = {
    "orders": {"unique_key": "id"},
    "events": {"incremental_strategy": "append"},
    "customers": {"incremental_strategy": "merge", "unique_key": ["ID"], "merge_exclude_columns": ["mail"]},
    "days": {
        "incremental_strategy": "insert_overwrite",
        "meta": {"sparkevolve": {"partition_by": ["day"]}},
    },
    "hours": {
        "incremental_strategy": "microbatch",
        "event_time": "at",
        "begin": "2024-01-01",
        "batch_size": "day",
    },
    "kept": {"unique_key": "id", "meta": {"sparkevolve": {"removed_columns": "keep"}}},
}
RAW = (
    "select 1 as id, timestamp '2024-01-01 10:00:00' as at "
    "union all select 2, timestamp '2024-01-02 11:00:00'"
)
STEPS = len(QUERIES["orders"])
# What the snapshot reads: rows change, one goes, and a column comes.
TRACKED = [
    "select 1 as id, timestamp '2024-01-01 00:00:00' as at, 'a' as v "
    "union all select 2, timestamp '2024-01-01 00:00:00', 'a'",
    "select 1 as id, timestamp '2024-01-02 00:00:00' as at, 'b' as v, 7 as n "
    "union all select 2, timestamp '2024-01-01 00:00:00', 'a', 8",
    "select 2 as id, timestamp '2024-01-03 00:00:00' as at, 'c' as v, 9 as n",
    "select 3 as id, timestamp '2024-01-04 00:00:00' as at, 'd' as v, 9 as n",
]
SNAPSHOT = """{% snapshot tracked %}
{{ config(unique_key='id', strategy='timestamp', updated_at='at', file_format='iceberg') }}
QUERY
{% endsnapshot %}
"""


def write(project: Scenario, step: int) -> None:
    """Write the project as it is in a step."""
    project.file("seeds/kinds.csv", "kind,title\na,First\nb,Second\n")
    project.file(
        "models/raw.sql",
        "{{ config(materialized='table', file_format='iceberg', event_time='at') }}\n" + RAW,
    )
    project.file("models/latest.sql", "select * from {{ ref('orders') }}\n")
    project.file("snapshots/tracked.sql", SNAPSHOT.replace("QUERY", TRACKED[step]))
    for name, queries in QUERIES.items():
        config = {"on_schema_change": PRESERVE, "unique_key": None, **ICEBERG, **CONFIGS[name]}
        project.model(queries[step], name, **config)


def job(project: Scenario, *arguments: str) -> Run:
    window = ["--event-time-start", "2024-01-01", "--event-time-end", "2024-01-03"]
    run = project.dbt("build", *window, *arguments)
    assert run.success, run.message or run.log
    return run


def test_a_job_has_the_rows_and_columns_of_the_adapter(
    package_factory: Callable[..., Scenario], adapter_project: Scenario, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in (("RUN_ID", "1"), ("JOB_ID", "2"), ("RUN_REASON_CATEGORY", "scheduled")):
        monkeypatch.setenv(f"DBT_CLOUD_{name}", value)
    monkeypatch.setenv("DBT_CLOUD_INVOCATION_CONTEXT", "prod")
    project = package_factory()
    # One side after the other: to change adapters, dbt reads all macros again.
    ours = [built(project, step) for step in range(STEPS)]
    theirs = [built(adapter_project, step) for step in range(STEPS)]
    for step, sides in enumerate(zip(ours, theirs, strict=True)):
        for name, found in sides[0].items():
            assert (step, name, found) == (step, name, sides[1][name])
            assert found[1]
    assert project.tables() == adapter_project.tables() == sorted({*ours[0]} - {"latest"})
    assert all(list(project.table(name).metadata.refs) == ["main"] for name in QUERIES)


def built(project: Scenario, step: int) -> dict[str, tuple[Any, ...]]:
    """Build the project as it is in a step; return the columns, the rows and the properties of each node."""
    write(project, step)
    job(project)
    found: dict[str, tuple[Any, ...]] = {}
    for name in ("kinds", "raw", "tracked", *QUERIES):
        properties = project.table(name).properties
        # The package leaves other nodes to dbt-spark, and with them the properties of their tables.
        own = {k: v for k, v in properties.items() if not k.startswith("sparkevolve.") and name in QUERIES}
        # With field ids, what is NOT NULL, and descriptions.
        found[name] = (str(project.table(name).schema()), sort_rows(project.rows(name)), own)
    # A connection of its own to Spark may know the table's columns of the step before.
    project.sql(f"refresh table {project.relation('orders')}")
    view = f"lake.{project.schema}.latest"
    found["latest"] = (project.sql(f"describe {view}"), sort_rows(project.sql(f"select * from {view}")))
    return found


def test_a_ci_job_builds_what_has_changed_into_a_schema_of_its_own(
    package_factory: Callable[..., Scenario], monkeypatch: pytest.MonkeyPatch
) -> None:
    project = package_factory()
    project.writes_artifacts = True
    pr = f"dbt_cloud_pr_{project.schema}"
    profiles = project.folder / "profiles.yml"
    profile = yaml.safe_load(profiles.read_text(encoding="utf-8"))
    outputs = profile["case"]["outputs"]
    outputs["pr"] = {**outputs["t"], "schema": pr}
    profiles.write_text(yaml.safe_dump(profile), encoding="utf-8")
    project.model("select 1 as id, 'a' as b", "base", on_schema_change=PRESERVE)
    project.model("select id, b, 'up' as c from {{ ref('base') }}", "top", on_schema_change=PRESERVE)
    project.file(
        "models/sources.yml",
        yaml.safe_dump(
            {
                "sources": [
                    {
                        "name": "made",
                        "schema": project.schema,
                        "config": {
                            "loaded_at_field": "current_timestamp()",
                            "freshness": {"warn_after": {"count": 1, "period": "day"}},
                        },
                        "tables": [{"name": "base"}],
                    }
                ]
            }
        ),
    )
    assert project.dbt("build").success
    fresh = project.dbt("source", "freshness")
    assert fresh.success, fresh.message or fresh.log
    shutil.copytree(project.folder / "target", project.folder / "prod")

    monkeypatch.setenv("DBT_CLOUD_PR_ID", "7")
    monkeypatch.setenv("DBT_CLOUD_INVOCATION_CONTEXT", "ci")
    changed = "select id, b, cast(2 as bigint) as d from {{ ref('base') }}"
    project.model(changed, "top", on_schema_change=PRESERVE)
    ci = ["--target", "pr", "--select", "state:modified+", "--defer", "--state", str(project.folder / "prod")]
    run = project.dbt("build", *ci)
    assert run.success, run.message or run.log
    try:
        # A first build: the columns of the model alone, from the table of production.
        assert project.sql(f"select * from lake.{pr}.top") == [(1, "a", 2)]
        assert [row[1] for row in project.sql(f"show tables in lake.{pr}")] == ["top"]
        assert project.columns("top") == ["id", "b", "c"]
        project.run()
        assert project.rows("top") == [(1, "a", None, 2)]
    finally:
        project.sql(f"drop table if exists lake.{pr}.top")
        project.sql(f"drop schema if exists lake.{pr}")


def test_a_job_goes_on_where_it_has_failed(package_factory: Callable[..., Scenario]) -> None:
    project = package_factory()
    project.writes_artifacts = True
    project.model("select 1 as id", "good", on_schema_change=PRESERVE)
    project.model("select id, n from {{ ref('bad') }}", "after", on_schema_change=PRESERVE)
    project.model(
        "select id, cast(raise_error('no value') as int) as n from {{ ref('good') }}",
        "bad",
        on_schema_change=PRESERVE,
    )
    assert not project.dbt("build").success
    assert project.tables() == ["good"]
    snapshots = project.snapshots("good")
    project.model("select id, 2 as n from {{ ref('good') }}", "bad", on_schema_change=PRESERVE)
    retried = project.dbt("retry")
    assert retried.success, retried.message or retried.log
    assert project.rows("after") == [(1, 2)]
    assert project.snapshots("good") == snapshots
