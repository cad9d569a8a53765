"""`removed_columns: keep`: values of removed columns in rows that are replaced."""

import pytest

from tests.functional.harness import Scenario
from tests.functional.samples import KEPT, NEW, OLD, PUBLISH, REPLACED


@PUBLISH
@pytest.mark.core
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
    assert scenario.tables() == []


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
    lines = log.splitlines()
    said = {
        name: str([line for line in lines if line.startswith(scenario.relation(name))]) for name in configs
    }
    assert kept in said["kept"]
    assert kept in said["merged"]
    assert "column `gone` is not in the model, padded with NULL" in said["padded"]
    assert scenario.rows("kept") == scenario.rows("merged") == KEPT
    assert scenario.rows("padded") == REPLACED
