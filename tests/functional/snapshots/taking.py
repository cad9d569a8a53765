"""Snapshots that are taken of a source, and the versions in them."""

from typing import Any

from tests.functional.harness import Run, Scenario

SOURCE = "{{ config(materialized='table') }}\n"


def snapshot(scenario: Scenario, sql: str, **config: Any) -> None:
    scenario.file("models/src.sql", SOURCE + sql)
    settings = {"unique_key": "id", "strategy": "check", "check_cols": "all", **config}
    body = "{{ config(schema=target.schema, **" + repr(settings) + ") }}\nselect * from {{ ref('src') }}"
    scenario.file(
        "macros/schema.sql", "{% macro generate_schema_name(n, node) %}{{ target.schema }}{% endmacro %}"
    )
    scenario.file("snapshots/snap.sql", "{% snapshot snap %}" + body + "{% endsnapshot %}")


def take(scenario: Scenario) -> Run:
    """Take a snapshot."""
    run = scenario.dbt("build", "--full-refresh")
    assert run.success, run.message or run.log
    return run


def versions(scenario: Scenario, *columns: str) -> list[tuple[Any, ...]]:
    rows = scenario.table("snap").scan().to_arrow().to_pylist()
    return sorted(
        (tuple(row[name] for name in (*columns, "dbt_valid_to")) for row in rows),
        key=lambda row: (row[0], row[-1] is None, str(row)),
    )
