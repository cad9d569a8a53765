"""What each strategy does to the rows, with columns that come and go, and how its result becomes visible."""

import re
from collections.abc import Callable
from typing import Any

import pytest

from tests.functional.harness import Run, Scenario

PUBLISH = pytest.mark.parametrize("publish", ["branch", "direct"])
OLD = "select 1 as id, 'a' as v, 10 as gone union all select 2, 'b', 20"
NEW = "select 2 as id, 'B' as v, 7 as n union all select 3, 'C', 8"
APPENDED = [(1, "a", 10, None), (2, "B", None, 7), (2, "b", 20, None), (3, "C", None, 8)]
REPLACED = [(1, "a", 10, None), (2, "B", None, 7), (3, "C", None, 8)]
KEPT = [(1, "a", 10, None), (2, "B", 20, 7), (3, "C", None, 8)]
V_NOT_UPDATED = [(1, "a", 10, None), (2, "b", 20, 7), (3, "C", None, 8)]
OVERWRITTEN = [(2, "B", None, 7), (3, "C", None, 8)]


def loads(run: Run) -> list[str]:
    """The first lines of the statements of a run that write."""
    sent = re.findall(r"^On model\.case\.t: /\*.*?\*/\s*(\S+)(.*?)$", run.log, re.DOTALL | re.MULTILINE)
    return [verb + rest for verb, rest in sent if verb in ("ALTER", "DELETE", "INSERT", "MERGE")]


def history(scenario: Scenario, name: str = "t") -> list[int]:
    """The snapshots that readers of the table have seen, oldest first."""
    return [entry.snapshot_id for entry in scenario.table(name).metadata.snapshot_log]


@PUBLISH
@pytest.mark.parametrize(
    ("strategy", "config", "rows"),
    [
        ("append", {"unique_key": None}, APPENDED),
        ("append", {}, APPENDED),
        ("delete+insert", {}, REPLACED),
        ("delete+insert", {"removed_columns": "keep"}, KEPT),
        ("merge", {}, KEPT),
        ("merge", {"unique_key": None}, APPENDED),
        ("merge", {"merge_update_columns": ["N"]}, V_NOT_UPDATED),
        ("merge", {"merge_exclude_columns": ["`V`"]}, V_NOT_UPDATED),
        ("insert_overwrite", {}, OVERWRITTEN),
        ("insert_overwrite", {"partition_by": ["id"]}, REPLACED),
        ("insert_overwrite", {"partition_by": "id"}, REPLACED),
    ],
)
def test_every_strategy_pads_evolves_and_publishes(
    scenario: Scenario, publish: str, strategy: str, config: dict[str, Any], rows: list[Any]
) -> None:
    scenario.model(OLD, incremental_strategy=strategy, publish=publish, **config)
    scenario.run()
    ids, seen = scenario.field_ids(), history(scenario)
    scenario.model(NEW, incremental_strategy=strategy, publish=publish, **config)
    scenario.run()
    assert scenario.columns() == ["id", "v", "gone", "n"]
    assert scenario.rows() == rows
    assert scenario.field_ids() == {**ids, "n": 4}
    assert scenario.schemas() == 2
    assert list(scenario.table().metadata.refs) == ["main"]
    assert scenario.tables() == ["t"]
    # Readers see the table before the run and after it; a DELETE and an INSERT of their own are two,
    # but where a run that ended between them would lose the values that are to be kept.
    is_direct = publish == "direct" and strategy == "delete+insert" and "removed_columns" not in config
    steps = 2 if is_direct else 1
    assert history(scenario)[:-steps] == seen
    assert len(history(scenario)) == len(seen) + steps


def test_statements_of_a_load(scenario: Scenario) -> None:
    scenario.model(OLD)
    scenario.run()
    base = scenario.table().current_snapshot()
    assert base is not None
    scenario.model("select 2 as id, 'B' as v, 1 as gone")
    run = scenario.run()
    branch = re.search(r"CREATE BRANCH `(sparkevolve_[0-9a-f]{8}_\d+_[0-9a-f]{8}_[0-9a-f]{8})`", run.log)
    assert branch is not None
    target = scenario.relation()
    assert loads(run) == [
        f"ALTER TABLE {target} CREATE BRANCH `{branch[1]}` AS OF VERSION {base.snapshot_id} "
        "RETAIN 2880 MINUTES",
        f"DELETE FROM {target}.`branch_{branch[1]}` AS DBT_INTERNAL_DEST",
        f"INSERT INTO {target}.`branch_{branch[1]}` (`id`, `v`, `gone`)",
    ]
    assert (
        "DBT_INTERNAL_DEST.`id` >= CAST('2' AS int) AND DBT_INTERNAL_DEST.`id` <= CAST('2' AS int)" in run.log
    )


@PUBLISH
def test_an_empty_batch_makes_no_snapshot(scenario: Scenario, publish: str) -> None:
    strategies = {
        "append": {"unique_key": None},
        "delete+insert": {},
        "merge": {},
        "insert_overwrite": {"partition_by": ["id"]},
    }
    for sql in (OLD, f"select * from ({OLD}) where false"):
        for strategy, config in strategies.items():
            name = strategy.replace("+", "_")
            scenario.model(sql, name=name, incremental_strategy=strategy, publish=publish, **config)
        if sql == OLD:
            scenario.run()
            before = {name: scenario.state(name) for name in scenario.tables()}
    scenario.run()
    assert {name: scenario.state(name) for name in scenario.tables()} == before
    assert len(before) == 4


def test_an_empty_batch_empties_a_table_that_is_overwritten_whole(scenario: Scenario) -> None:
    scenario.model(OLD, incremental_strategy="insert_overwrite")
    scenario.run()
    scenario.model(f"select * from ({OLD}) where false", incremental_strategy="insert_overwrite")
    scenario.run()
    assert scenario.rows() == []


def test_partitions_are_those_of_hidden_transforms_too(scenario: Scenario) -> None:
    config = {"incremental_strategy": "insert_overwrite", "partition_by": ["days(ts)"], "unique_key": None}
    scenario.model(
        "select 1 as id, timestamp_ntz'2024-01-01 05:00:00' as ts union all "
        "select 2, timestamp_ntz'2024-01-02 05:00:00' union all select 3, timestamp_ntz'2024-01-02 06:00:00'",
        **config,
    )
    scenario.run()
    scenario.model("select 9 as id, timestamp_ntz'2024-01-02 23:00:00' as ts", **config)
    scenario.run()
    assert [row[0] for row in scenario.rows()] == [1, 9]


def test_partitions_of_a_table_without_any_are_refused(scenario: Scenario) -> None:
    scenario.model(OLD, incremental_strategy="insert_overwrite")
    scenario.run()
    before = scenario.state()
    scenario.model(NEW, incremental_strategy="insert_overwrite", partition_by=["id"])
    assert (
        "The model is partitioned by id and the table by nothing: to overwrite the partitions that the batch "
        "has rows for would replace other rows than the model means." in scenario.fail().message
    )
    assert scenario.state() == before


def test_partitions_that_are_not_the_models_are_refused(scenario: Scenario) -> None:
    """A batch of one day would overwrite the whole month."""
    config = {"incremental_strategy": "insert_overwrite", "unique_key": None}
    scenario.model(
        "select 1 as id, date'2026-01-05' as d union all select 2, date'2026-01-06'",
        partition_by="months(d)",
        **config,
    )
    scenario.run()
    before = scenario.state()
    scenario.model("select 3 as id, date'2026-01-06' as d", partition_by="d", **config)
    assert "The model is partitioned by d and the table by months(d): " in scenario.fail().message
    assert scenario.state() == before
    scenario.model("select 3 as id, date'2026-01-06' as d", partition_by=["month(`D`)"], **config)
    scenario.run()
    assert [row[0] for row in scenario.rows()] == [3]


# Merge


@pytest.mark.parametrize("setting", ["merge_update_columns", "merge_exclude_columns"])
def test_merge_columns_that_are_nowhere_are_refused(scenario: Scenario, setting: str) -> None:
    scenario.model(OLD, incremental_strategy="merge")
    scenario.run()
    before = scenario.state()
    scenario.model(NEW, incremental_strategy="merge", **{setting: ["v", "typo", "n"]})
    message = scenario.fail().message
    assert (
        f"`{setting}` names `typo`, which neither the table nor the model has. Change `{setting}`." in message
    )
    assert scenario.state() == before


def test_merge_columns_of_both_kinds_are_refused(scenario: Scenario) -> None:
    both = {"merge_update_columns": ["v"], "merge_exclude_columns": ["n"]}
    scenario.model(NEW, incremental_strategy="merge", **both)
    message = scenario.fail().message
    assert (
        "merge_update_columns and merge_exclude_columns are both set in model.case.t. Set one of" in message
    )


@PUBLISH
def test_a_merge_of_repeated_keys_says_which(scenario: Scenario, publish: str) -> None:
    config = {"incremental_strategy": "merge", "publish": publish, "unique_key": ["id", "k"]}
    scenario.model("select 1 as id, cast(null as string) as k, 'a' as v", **config)
    scenario.run()
    before = scenario.rows()
    twice = "select 1 as id, cast(null as string) as k, 'x' as v"
    scenario.model(f"{twice} union all {twice} union all select 2, 'once', 'y'", **config)
    message = scenario.fail().message
    assert (
        "The model returns several rows with the same unique_key, and `merge` cannot tell which of them is "
        f"to update {scenario.relation()}: id = 1, k = NULL (2 rows). No row was written." in message
    )
    assert scenario.rows() == before
    assert list(scenario.table().metadata.refs) == ["main"]


def test_a_merge_of_odd_names_and_null_keys(scenario: Scenario) -> None:
    config = {"incremental_strategy": "merge", "unique_key": ["客户 id", "`select`"]}
    scenario.model(
        "select 1 as `客户 id`, cast(null as int) as `select`, 'a' as `q``q`, 1 as `a.b` "
        "union all select 1, 2, 'b', 2",
        **config,
    )
    scenario.run()
    scenario.model(
        "select 1 as `客户 ID`, cast(null as int) as `select`, 'A' as `q``q`, 5 as `c d`", **config
    )
    scenario.run()
    assert scenario.rows() == [(1, None, "A", 1, 5), (1, 2, "b", 2, None)]


def test_a_merge_keeps_removed_fields_of_structs(scenario: Scenario) -> None:
    config = {"incremental_strategy": "merge"}
    scenario.model("select 1 as id, named_struct('x', 1, 'y', named_struct('p', 2, 'q', 3)) as s", **config)
    scenario.run()
    scenario.model("select 1 as id, named_struct('y', named_struct('q', 30, 'r', 40)) as s", **config)
    scenario.run()
    assert scenario.rows() == [(1, {"x": 1, "y": {"p": 2, "q": 30, "r": 40}})]


# Predicates


@pytest.mark.parametrize("strategy", ["delete+insert", "merge"])
def test_predicates_limit_what_is_replaced(scenario: Scenario, strategy: str) -> None:
    config = {
        "incremental_strategy": strategy,
        "incremental_predicates": [
            "DBT_INTERNAL_DEST.day >= date'2024-01-02' or DBT_INTERNAL_DEST.day is null"
        ],
    }
    scenario.model(
        "select 1 as id, date'2024-01-01' as day, 'old' as v union all select 2, date'2024-01-02', 'old'",
        **config,
    )
    scenario.run()
    scenario.model(
        "select 1 as id, date'2024-01-03' as day, 'new' as v union all select 2, date'2024-01-03', 'new'",
        **config,
    )
    scenario.run()
    assert [(row[0], str(row[1]), row[2]) for row in scenario.rows()] == [
        (1, "2024-01-01", "old"),
        (1, "2024-01-03", "new"),
        (2, "2024-01-03", "new"),
    ]


# Removed columns


@PUBLISH
def test_keep_finds_the_row_by_its_whole_key_null_too(scenario: Scenario, publish: str) -> None:
    config = {"removed_columns": "keep", "unique_key": ["a", "b"], "publish": publish}
    scenario.model(
        "select 1 as a, cast(null as int) as b, 'x' as gone, array(1) as l, map('k', 1) as m "
        "union all select 1, 2, 'y', array(2), null union all select 2, 2, null, null, map('z', 3)",
        **config,
    )
    scenario.run()
    scenario.model(
        "select 1 as a, cast(null as int) as b, 10 as n union all select 1, 2, 20 union all select 2, 2, 30 "
        "union all select 3, null, 40",
        **config,
    )
    scenario.run()
    found = scenario.sql(f"select a, b, gone, l, m['k'], n from {scenario.relation()} order by a, b")
    assert [tuple(str(value) for value in row) for row in found] == [
        ("1", "None", "x", str(found[0][3]), "1", "10"),
        ("1", "2", "y", str(found[1][3]), "None", "20"),
        ("2", "2", "None", "None", "None", "30"),
        ("3", "None", "None", "None", "None", "40"),
    ]
    assert scenario.rows()[0][3] == [1]
    assert list(scenario.table().metadata.refs) == ["main"]


def test_keep_reaches_into_structs_and_not_into_lists(scenario: Scenario) -> None:
    config = {"removed_columns": "keep"}
    scenario.model(
        "select 1 as id, named_struct('x', 1, 'y', 2) as s, array(named_struct('x', 1, 'y', 2)) as l "
        "union all select 2, null, null union all select 3, named_struct('x', 5, 'y', 6), null",
        **config,
    )
    scenario.run()
    scenario.model(
        "select 1 as id, named_struct('x', 10) as s, array(named_struct('x', 10)) as l "
        "union all select 2, named_struct('x', 20), null union all select 3, null, null",
        **config,
    )
    scenario.run()
    # Through Spark: PyIceberg 0.12 reads a NULL list of structs as an empty one.
    found = scenario.sql(f"select id, to_json(s), to_json(l) from {scenario.relation()} order by id")
    assert found == [(1, '{"x":10,"y":2}', '[{"x":10}]'), (2, '{"x":20}', None), (3, None, None)]


@PUBLISH
def test_keep_refuses_keys_that_the_table_has_twice(scenario: Scenario, publish: str) -> None:
    config = {"removed_columns": "keep", "publish": publish, "unique_key": ["id", "k"]}
    twice = "select 2 as id, cast(null as string) as k, 'b' as gone"
    scenario.model(f"{twice} union all {twice}", **config)
    scenario.run()
    before = scenario.rows()
    scenario.model("select 2 as id, cast(null as string) as k", **config)
    message = scenario.fail().message
    assert (
        "removed_columns is keep, but the table has several rows with the same unique_key, so there is no "
        "one previous value to keep. Remove the duplicates, or set removed_columns to null. "
        "The key: 2, NULL"
    ) in message
    if publish == "branch":
        assert scenario.rows() == before
    # A key that the batch does not have may be there twice.
    scenario.model("select 3 as id, 'k' as k", **config)
    scenario.run()
    assert (3, "k", None) in scenario.rows()


@pytest.mark.parametrize("strategy", ["insert_overwrite", "microbatch"])
def test_keep_without_a_key_is_refused(scenario: Scenario, strategy: str) -> None:
    event = (
        {"event_time": "ts", "begin": "2024-01-01", "batch_size": "day"} if strategy == "microbatch" else {}
    )
    scenario.model(
        "select timestamp'2024-01-01 00:00:00' as ts",
        incremental_strategy=strategy,
        removed_columns="keep",
        **event,
    )
    run = scenario.dbt(
        "run", *(["--event-time-start", "2024-01-01", "--event-time-end", "2024-01-02"] if event else [])
    )
    assert not run.success
    assert f"removed_columns is 'keep' in model.case.t, but {strategy} replaces rows without a key" in run.log


# Microbatch

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
def test_j12_a_batch_replaces_its_window(scenario: Scenario, publish: str, type_: str) -> None:
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


# Full refresh


def test_j03_a_full_refresh_keeps_columns_and_history(scenario: Scenario) -> None:
    scenario.model(OLD, tblproperties={"owner.of.it": "us"})
    scenario.run()
    first, ids, uuid = (
        scenario.table().current_snapshot(),
        scenario.field_ids(),
        scenario.table().metadata.table_uuid,
    )
    assert first is not None
    scenario.model(NEW, tblproperties={"owner.of.it": "us"}, on_schema_change="fail")
    scenario.run("--full-refresh")
    assert scenario.rows() == OVERWRITTEN
    assert scenario.field_ids() == {**ids, "n": 4}
    table = scenario.table()
    assert table.metadata.table_uuid == uuid
    assert table.properties["owner.of.it"] == "us"
    then = table.scan(snapshot_id=first.snapshot_id).to_arrow().to_pylist()
    assert sorted(row["gone"] for row in then) == [10, 20]
    assert list(table.metadata.refs) == ["main"]
    current = table.current_snapshot()
    assert current is not None
    assert current.parent_snapshot_id == first.snapshot_id
    assert history(scenario) == [first.snapshot_id, current.snapshot_id]


def test_a_full_refresh_may_read_the_table(scenario: Scenario) -> None:
    scenario.model("select 1 as id, 1 as n")
    scenario.run()
    scenario.model("select id, n + 1 as n from {{ this }} union all select 9, 9")
    scenario.run("--full-refresh")
    assert scenario.rows() == [(1, 2), (9, 9)]


def test_a_full_refresh_that_cannot_keep_says_how_to_replace(scenario: Scenario) -> None:
    scenario.model("select 1 as id, 5 as n")
    scenario.run()
    before = scenario.state()
    scenario.model("select 1 as id, 'text' as n")
    message = scenario.fail("--full-refresh").message
    assert "Column `n` is int in the table, and the model returns string" in message
    assert (
        "With `full_refresh_schema: replace` the full refresh takes the model's columns as they are"
        in message
    )
    assert scenario.state() == before
    scenario.model("select 1 as id, 'text' as n", full_refresh_schema="replace")
    scenario.run("--full-refresh")
    assert scenario.rows() == [(1, "text")]


def test_a_full_refresh_to_the_models_columns_says_which_go(scenario: Scenario) -> None:
    scenario.model(OLD)
    scenario.run()
    first = scenario.table().current_snapshot()
    assert first is not None
    scenario.model(NEW, full_refresh_schema="replace")
    run = scenario.run("--full-refresh")
    assert (
        f"The full refresh of {scenario.relation()} takes away the columns that the model no longer returns: "
        "gone, since full_refresh_schema is `replace`." in run.log
    )
    assert scenario.columns() == ["id", "v", "n"]
    then = scenario.table().scan(snapshot_id=first.snapshot_id).to_arrow().to_pylist()
    assert sorted(row["gone"] for row in then) == [10, 20]


# Audits


@pytest.mark.parametrize("strategy", ["append", "delete+insert", "merge", "insert_overwrite"])
@pytest.mark.parametrize("mode", ["merge-on-read", "copy-on-write"])
def test_a_failed_audit_leaves_main_untouched(scenario: Scenario, strategy: str, mode: str) -> None:
    modes = {f"write.{verb}.mode": mode for verb in ("delete", "update", "merge")}
    config = {"incremental_strategy": strategy, "tblproperties": modes}
    # A row that is not loaded need not satisfy the audit.
    scenario.model(OLD + " union all select 0, null, 0", **config)
    scenario.run()
    before = history(scenario), scenario.rows()
    audits = ["v is not null", "id > 0 and n <> 5"]
    scenario.model(
        "select 2 as id, cast(null as string) as v, 1 as n union all select 3, 'C', 5",
        audits=audits,
        **config,
    )
    message = scenario.fail().message
    assert (
        f"The batch of {scenario.relation()} was not published, since rows in it do not satisfy the model's "
        "audits. The rows of the table are as they were.\n" in message
    )
    assert "  * v is not null: 1 row, such as id = 2" in message
    assert "  * id > 0 and n <> 5: 1 row, such as id = 3" in message
    assert (history(scenario), [row[:-1] for row in scenario.rows()]) == before
    assert list(scenario.table().metadata.refs) == ["main"]
    assert scenario.tables() == ["t"]
    scenario.model("select 2 as id, 'ok' as v, 1 as n", audits=audits, **config)
    scenario.run()
    assert (2, "ok", 20 if strategy == "merge" else None, 1) in scenario.rows()


@pytest.mark.parametrize("existing", ["none", "view", "refreshed", "replaced"])
def test_an_audit_comes_before_the_table_too(scenario: Scenario, existing: str) -> None:
    if existing == "view":
        scenario.model("select 1 as id", materialized="view")
    elif existing != "none":
        scenario.model("select 1 as id")
    if existing != "none":
        scenario.run()
    schema = "replace" if existing == "replaced" else "keep"
    scenario.model(
        "select id, id % 2 = 0 as even from range(10)",
        audits="even",
        unique_key=["id"],
        full_refresh_schema=schema,
    )
    message = scenario.fail(*(["--full-refresh"] if existing[:2] == "re" else [])).message
    assert "even: 5 rows, such as id = 1; id = 3; id = 5" in message
    if existing == "none":
        assert scenario.tables() == []
    else:
        assert scenario.sql(f"select id from {scenario.relation()}") == [(1,)]


def test_audits_need_a_branch(scenario: Scenario) -> None:
    scenario.model(OLD, audits=["v is not null"], publish="direct")
    message = scenario.fail().message
    assert (
        "audits are set in model.case.t, but publish is 'direct': rows would be visible before they are"
        in message
    )


# Format version 3, and a branch that the operator has reserved


def test_a_table_of_format_3_is_published_through_spark(scenario: Scenario) -> None:
    scenario.model(OLD, tblproperties={"format-version": "3"})
    scenario.run()
    seen = history(scenario)
    scenario.model("select 2 as id, 'B' as v, 1 as gone")
    scenario.run()
    assert scenario.sql(f"select * from {scenario.relation()} order by id") == [(1, "a", 10), (2, "B", 1)]
    assert list(scenario.table().metadata.refs) == ["main"]
    assert len(history(scenario)) == len(seen) + 1


def test_h13_a_reserved_branch_gets_the_rows(scenario_factory: Callable[..., Scenario]) -> None:
    scenario = scenario_factory(server_side_parameters={"spark.wap.branch": "audit"})
    scenario.model("select 1 as id, 'a' as v")
    scenario.run()
    scenario.sql(f"alter table {scenario.relation()} set tblproperties ('write.wap.enabled' = 'true')")
    before = history(scenario)
    for sql, rows in (
        ("select 1 as id, 'z' as v, 2 as n", [(1, "z", 2)]),
        ("select 3 as id, 'y' as v, n + 1 as n from {{ this }}", [(1, "z", 2), (3, "y", 3)]),
    ):
        scenario.model(sql)
        scenario.run()
        audited = scenario.table().scan().use_ref("audit").to_arrow().to_pylist()
        assert sorted(tuple(row.values()) for row in audited) == rows
        assert scenario.rows() == [(1, "a", None)]
        assert history(scenario) == before
        assert sorted(scenario.table().metadata.refs) == ["audit", "main"]


def test_a_sql_header_is_not_run_in_silence(scenario: Scenario) -> None:
    scenario.model("select 1 as id", sql_header="set time zone 'Asia/Tokyo';")
    message = scenario.fail().message
    assert (
        "sql_header is \"set time zone 'Asia/Tokyo';\" in model.case.t. It is not run: Spark runs one"
        in message
    )
    assert scenario.sql(f"show tables in `lake`.`{scenario.schema}`") == []


@pytest.mark.parametrize("setting", ["audits", "incremental_predicates"])
@pytest.mark.parametrize("value", [5, True, {"id > 0": 1}, [None], ["id > 0", " "], ""])
def test_conditions_are_texts(scenario: Scenario, setting: str, value: Any) -> None:
    scenario.model(OLD, **{setting: value})
    assert f"{setting} is " in scenario.fail().message
    assert scenario.sql(f"show tables in `lake`.`{scenario.schema}`") == []


def test_rows_that_are_kept_apart_are_refused(scenario: Scenario) -> None:
    """`spark.wap.id` takes each statement's rows off every branch: they could not be checked or published."""
    scenario.model("select 1 as id, 'a' as v", tblproperties={"write.wap.enabled": "true"})
    scenario.run()
    before = scenario.state()
    hooks = {"pre_hook": "set spark.wap.id=abc", "post_hook": "reset spark.wap.id"}
    scenario.model("select 1 as id, 'bad' as v", audits=["v = 'a'"], **hooks)
    message = scenario.fail().message
    scenario.model("select 1 as id, 'b' as v", post_hook="reset spark.wap.id")
    assert "the session's `spark.wap.id` keeps each statement's rows apart. Unset `spark.wap.id`" in message
    assert scenario.state() == before


def test_the_log_says_what_removed_columns_get(scenario: Scenario) -> None:
    configs = {
        "kept": {"removed_columns": "keep"},
        "merged": {"incremental_strategy": "merge"},
        "padded": {},
    }
    for name, config in configs.items():
        scenario.model(OLD, name, **config)
    scenario.run()
    for name, config in configs.items():
        scenario.model(NEW, name, **config)
    log = scenario.run().log
    kept = "column `gone` is not in the model, rows that are replaced keep its value, new ones get NULL"
    assert f"{scenario.relation('kept')}: {kept}" in log
    assert f"{scenario.relation('merged')}: {kept}" in log
    assert f"{scenario.relation('padded')}: column `gone` is not in the model, padded with NULL" in log
