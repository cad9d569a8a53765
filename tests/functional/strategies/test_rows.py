"""What each strategy does to the rows of a table whose columns come and go; what an empty batch does."""

import re
from typing import Any

import pytest

from tests.functional.harness import Run, Scenario
from tests.functional.samples import (
    APPENDED,
    KEPT,
    NEW,
    OLD,
    OVERWRITTEN,
    PUBLISH,
    REPLACED,
    V_NOT_UPDATED,
    history,
)


def loads(run: Run) -> list[str]:
    """The first lines of the statements of a run that write."""
    sent = re.findall(r"^On model\.case\.t: /\*.*?\*/\s*(\S+)(.*?)$", run.log, re.DOTALL | re.MULTILINE)
    return [verb + rest for verb, rest in sent if verb in ("ALTER", "DELETE", "INSERT", "MERGE")]


# With how many rows are inserted, updated and deleted; None where that is not told.
CASES: dict[str, list[tuple[dict[str, Any], list[Any], tuple[int | None, ...]]]] = {
    "append": [({"unique_key": None}, APPENDED, (2, None, 0)), ({}, APPENDED, (2, None, 0))],
    "delete+insert": [
        ({}, REPLACED, (2, None, 1)),
        ({"removed_columns": "keep"}, KEPT, (2, None, 1)),
    ],
    "merge": [
        ({}, KEPT, (1, 1, 0)),
        ({"tblproperties": {"write.merge.mode": "copy-on-write"}}, KEPT, (1, None, 0)),
        ({"unique_key": None}, APPENDED, (2, 0, 0)),
        ({"merge_update_columns": ["N"]}, V_NOT_UPDATED, (1, 1, 0)),
        ({"merge_exclude_columns": ["`V`"]}, V_NOT_UPDATED, (1, 1, 0)),
    ],
    "insert_overwrite": [
        ({}, OVERWRITTEN, (2, None, 2)),
        ({"partition_by": ["id"]}, REPLACED, (2, None, 1)),
        ({"partition_by": "id"}, REPLACED, (2, None, 1)),
    ],
}


@pytest.mark.parametrize("strategy", ["append", "delete+insert", "merge", "insert_overwrite"])
@pytest.mark.core
def test_every_strategy_pads_evolves_and_publishes(scenario: Scenario, strategy: str) -> None:
    """Its settings, and both ways to publish, are models of one run; each says what it has done."""
    models = {
        f"{publish}_{number}": ({"publish": publish, **config}, rows, counts)
        for publish in ("branch", "direct")
        for number, (config, rows, counts) in enumerate(CASES[strategy])
    }
    for name, (config, *_) in models.items():
        scenario.model(OLD, name, incremental_strategy=strategy, **config)
    run = scenario.run()
    for name in models:
        created = {"rows_affected": 2, "rows_inserted": 2, **scenario.at(name)}
        assert run.done(name) == ("OK 2 rows", created), name
    ids = {name: scenario.field_ids(name) for name in models}
    seen = {name: history(scenario, name) for name in models}
    for name, (config, *_) in models.items():
        scenario.model(NEW, name, incremental_strategy=strategy, **config)
    run = scenario.run()
    assert scenario.tables() == sorted(models)
    for name, (config, rows, counts) in models.items():
        assert scenario.columns(name) == ["id", "v", "gone", "n"], config
        assert scenario.rows(name) == rows, config
        assert scenario.field_ids(name) == {**ids[name], "n": 4}, config
        assert scenario.schemas(name) == 2, config
        assert list(scenario.table(name).metadata.refs) == ["main"], config
        # Readers see the table before the run and after it; a DELETE and an INSERT of their own are two,
        # but where a run that ended between them would lose the values that are to be kept.
        is_direct = config == {"publish": "direct"} and strategy == "delete+insert"
        steps = 2 if is_direct else 1
        assert history(scenario, name)[:-steps] == seen[name], config
        assert len(history(scenario, name)) == len(seen[name]) + steps, config
        keeps = (strategy == "merge" and config.get("unique_key", "id")) or "removed_columns" in config
        known = dict(zip(("rows_inserted", "rows_updated", "rows_deleted"), counts, strict=True))
        assert run.done(name) == (
            f"OK 2 rows, +1 column, 1 {'kept' if keeps else 'padded'}",
            {
                "rows_affected": sum(number or 0 for number in counts[:2]),
                **{key: number for key, number in known.items() if number is not None},
                "columns_added": ["`n`"],
                "columns_kept" if keeps else "columns_padded": ["`gone`"],
                **scenario.at(name),
            },
        ), config


@pytest.mark.core
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


def test_predicates_limit_what_is_replaced(scenario: Scenario) -> None:
    models = {"replaced": "delete+insert", "merged": "merge"}
    predicate = "DBT_INTERNAL_DEST.day >= date'2024-01-02' or DBT_INTERNAL_DEST.day is null"
    for sql in (
        "select 1 as id, date'2024-01-01' as day, 'old' as v union all select 2, date'2024-01-02', 'old'",
        "select 1 as id, date'2024-01-03' as day, 'new' as v union all select 2, date'2024-01-03', 'new'",
    ):
        for name, strategy in models.items():
            scenario.model(sql, name, incremental_strategy=strategy, incremental_predicates=[predicate])
        scenario.run()
    for name in models:
        assert [(row[0], str(row[1]), row[2]) for row in scenario.rows(name)] == [
            (1, "2024-01-01", "old"),
            (1, "2024-01-03", "new"),
            (2, "2024-01-03", "new"),
        ], name


def test_conditions_are_texts(scenario: Scenario) -> None:
    settings = ("audits", "incremental_predicates")
    values: list[Any] = [5, True, {"id > 0": 1}, [None], ["id > 0", " "], ""]
    models = {f"{setting}_{n}": (setting, value) for setting in settings for n, value in enumerate(values)}
    for name, (setting, value) in models.items():
        scenario.model(OLD, name, **{setting: value})
    said = scenario.fail().said
    for name, (setting, value) in models.items():
        assert f"{setting} is " in said[name], value
    assert scenario.sql(f"show tables in `lake`.`{scenario.schema}`") == []


def test_empty_batch(scenario: Scenario) -> None:
    """No rows: no snapshot, but a new column is added."""
    strategies: dict[str, Any] = {"t": "id", "appended": None}
    for name, key in strategies.items():
        scenario.model("select 1 as id, 'a' as v", name=name, unique_key=key)
    scenario.run()
    snapshots = {name: scenario.snapshots(name) for name in strategies}
    for name, key in strategies.items():
        scenario.model("select 1 as id, 2 as n where false", name=name, unique_key=key)
    run = scenario.run()
    for name in strategies:
        assert scenario.snapshots(name) == snapshots[name], name
        assert scenario.rows(name) == [(1, "a", None)], name
        assert scenario.field_ids(name) == {"id": 1, "v": 2, "n": 3}, name
        assert scenario.schemas(name) == 2, name
    assert "delete from" not in run.log.lower()
    before = {name: scenario.state(name) for name in strategies}
    scenario.run()
    assert {name: scenario.state(name) for name in strategies} == before
    assert scenario.tables() == ["appended", "t"]
