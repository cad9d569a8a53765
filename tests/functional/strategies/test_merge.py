"""`merge`: the columns it sets, and the rows it finds."""

import pytest

from tests.functional.harness import Scenario
from tests.functional.samples import NEW, OLD, PUBLISH


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
    assert scenario.tables() == []


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


@pytest.mark.core
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
