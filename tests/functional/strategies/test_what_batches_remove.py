"""What a batch removes: after a full refresh that failed half-way, under `--empty`, within its predicates."""

from typing import Any

from tests.functional.harness import Scenario

DAYS = ", ".join(f"({day}, timestamp'2024-01-0{day} 05:00:00', 'v{day}')" for day in (1, 2, 3))
BATCHES: dict[str, Any] = {
    "unique_key": None,
    "incremental_strategy": "microbatch",
    "event_time": "ts",
    "begin": "2024-01-01",
    "batch_size": "day",
}
WINDOW = ("--event-time-start", "2024-01-01", "--event-time-end", "2024-01-04")


def events(scenario: Scenario) -> None:
    scenario.file(
        "models/events.sql",
        "{{ config(materialized='table', event_time='ts') }}\n"
        f"select * from values {DAYS} as source(id, ts, v)",
    )


def values(scenario: Scenario, name: str = "t") -> list[tuple[Any, ...]]:
    return [(row[0], *row[2:]) for row in scenario.rows(name)]


def test_a_full_refresh_that_is_retried_leaves_what_it_has_loaded(scenario: Scenario) -> None:
    """Whatever the schema becomes, and also where the setting of the model asks for it."""
    scenario.writes_artifacts = True
    models: dict[str, dict[str, Any]] = {
        "t": {},
        "replaced": {"full_refresh_schema": "replace"},
        "by_setting": {"full_refresh": True},
    }
    events(scenario)
    for name, config in models.items():
        scenario.model("select id, ts, v, 7 as gone from {{ ref('events') }}", name, **BATCHES, **config)
    scenario.run(*WINDOW)
    for name, config in models.items():
        scenario.model(
            "select id, ts, if(id = 2, raise_error('not yet'), upper(v)) as v from {{ ref('events') }}",
            name,
            **BATCHES,
            **config,
        )
    run = scenario.fail("-s", *models, "--full-refresh", *WINDOW)
    statuses = {node.node.name: str(node.status) for node in run.result.result if node.node.name in models}
    assert statuses == dict.fromkeys(models, "partial success")
    for name, config in models.items():
        scenario.model("select id, ts, upper(v) as v from {{ ref('events') }}", name, **BATCHES, **config)
    run = scenario.dbt("retry")
    assert run.success, run.log
    assert run.log.count("OK created batch") == 3
    kept = [(1, "V1", None), (2, "V2", None), (3, "V3", None)]
    assert values(scenario) == values(scenario, "by_setting") == kept
    assert values(scenario, "replaced") == [row[:2] for row in kept]
    # A run of its own is a full refresh as ever.
    scenario.run("-s", "t", "--full-refresh", "--event-time-start", "2024-01-03", *WINDOW[2:])
    assert values(scenario) == [(3, "V3", None)]


def test_all_batches_of_a_full_refresh_may_change_the_table(scenario: Scenario) -> None:
    """Not its first one only, which has replaced all rows when the second one is refused."""
    events(scenario)
    config = {**BATCHES, "on_schema_change": "fail"}
    scenario.model("select id, ts, v, 1 as gone, 1 as n from {{ ref('events') }}", **config)
    scenario.run(*WINDOW)
    scenario.model("select id, ts, v, cast(id as bigint) as n, 'x' as new from {{ ref('events') }}", **config)
    assert "on_schema_change is 'fail'" in scenario.fail("-s", "t", *WINDOW).log
    assert values(scenario) == [(day, f"v{day}", 1, 1) for day in (1, 2, 3)]
    scenario.run("-s", "t", "--full-refresh", *WINDOW)
    assert values(scenario) == [(day, f"v{day}", None, day, "x") for day in (1, 2, 3)]


def test_empty_replaces_nothing_by_nothing(scenario: Scenario) -> None:
    """`--empty` makes what a model reads look empty: that is no reason to remove rows of its table."""
    models: dict[str, dict[str, Any]] = {
        "t": {},
        "direct": {"publish": "direct"},
        "whole": {**dict.fromkeys(BATCHES), "incremental_strategy": "insert_overwrite"},
    }
    events(scenario)
    for name, config in models.items():
        scenario.model("select id, ts, v from {{ ref('events') }}", name, **{**BATCHES, **config})
    scenario.run(*WINDOW)
    before = {name: scenario.snapshots(name) for name in models}
    for name, config in models.items():
        scenario.model("select id, ts, v, 1 as n from {{ ref('events') }}", name, **{**BATCHES, **config})
    scenario.run("-s", *models, "--empty", *WINDOW)
    rows = [(day, f"v{day}", None) for day in (1, 2, 3)]
    assert {name: values(scenario, name) for name in models} == dict.fromkeys(models, rows)
    assert {name: scenario.snapshots(name) for name in models} == before
    # What is asked for by name is done.
    scenario.run("-s", "whole", "--empty", "--full-refresh")
    assert values(scenario, "whole") == []


def test_what_a_batch_leaves_alone(scenario: Scenario) -> None:
    """Predicates limit what a microbatch removes; a column that is to stay does not go with its row."""
    events(scenario)
    scenario.model("select id, ts, v from {{ ref('events') }}", **BATCHES)
    scenario.model("select 1 as id, 'first' as seen, 1 as n", "keyed")
    scenario.model("select 1 as id", "appended", unique_key=None, incremental_predicates=["true"])
    run = scenario.run(*WINDOW)
    assert run.log.count("`incremental_predicates` has no effect with the incremental_strategy append") == 1
    scenario.model(
        "select id, ts, upper(v) as v from {{ ref('events') }} where id <> 2",
        incremental_predicates="DBT_INTERNAL_DEST.v <> 'v2' and DBT_INTERNAL_DEST.id < 9",
        **BATCHES,
    )
    scenario.run("-s", "t", *WINDOW)
    assert values(scenario) == [(1, "V1"), (2, "v2"), (3, "V3")]
    scenario.model("select 1 as id, 'last' as seen, 2 as n", "keyed", merge_exclude_columns=["seen"])
    assert (
        "merge_exclude_columns is set in model.case.keyed, but delete+insert replaces whole rows: columns "
        "that are to stay as they are would be overwritten. Set incremental_strategy to 'merge'."
    ) in scenario.fail("-s", "keyed").message
    assert scenario.rows("keyed") == [(1, "first", 1)]
    scenario.model(
        "select 1 as id, 'last' as seen, 2 as n",
        "keyed",
        merge_exclude_columns=["seen"],
        incremental_strategy="merge",
    )
    scenario.run("-s", "keyed")
    assert scenario.rows("keyed") == [(1, "first", 2)]
