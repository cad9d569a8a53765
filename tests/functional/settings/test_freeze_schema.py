"""A run that freezes schemas changes the columns of no table, whatever a model's configuration says."""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from pyiceberg.catalog import load_catalog

from tests.functional.harness import Run, Scenario, SqlRunner

FREEZE = ("--vars", "sparkevolve_freeze_schema: true")
V1 = "select 1 as id, 1 as v, named_struct('a', 1) as s"
REPLACE: dict[str, Any] = {"full_refresh": True, "full_refresh_schema": "replace"}
TABLE: dict[str, Any] = {"materialized": "table", "unique_key": None, "on_schema_change": None}
STOPPED: dict[str, tuple[str, dict[str, Any], str]] = {
    "added": (f"{V1}, 5 as n", {}, "add column `n` int"),
    "widened": (
        "select 1 as id, 5000000000 as v, named_struct('a', 1) as s",
        {"incremental_strategy": "merge"},
        "widen `v` from int to bigint",
    ),
    "renamed": (
        "select 1 as id, 2 as w, named_struct('a', 1) as s",
        {"column_renames": {"v": "w"}, "unique_key": None},
        "rename `v` to `w`",
    ),
    "nested": (
        "select 1 as id, 2 as v, named_struct('a', 1, 'b', 2) as s",
        {"incremental_strategy": "insert_overwrite", "unique_key": None, "publish": "direct"},
        "add field `s`.`b` int",
    ),
    "refreshed": (f"{V1}, 5 as n, 6 as o", {"full_refresh": True}, "add column `n` int; add column `o` int"),
    "replaced": ("select 1 as id, 2.5d as v", REPLACE, "leave out column `s` struct<`a`:int>; change `v`"),
    "rebuilt": (f"{V1}, 5 as n", TABLE, "add column `n` int"),
    "hidden": ("select 1 as id", {**TABLE, "materialized": "view"}, "drop the table for a view"),
}  # fmt: skip
"""What each model returns in the second run, its configuration, and what would have changed."""
GOES_ON: dict[str, tuple[str, dict[str, Any]]] = {
    "padded": ("select 2 as id, named_struct('a', 2) as s", {}),
    "left_out": (f"{V1}, 5 as n", {"on_schema_change": "ignore"}),
    "described": (V1, {"tblproperties": {"team": "us"}}),
    "same": ("select 2 as id, 3 as v, named_struct('a', 1) as s", REPLACE),
    "same_table": ("select 2 as id, 3 as v, named_struct('a', 1) as s", TABLE),
}


@dataclass(frozen=True)
class Frozen:
    scenario: Scenario
    run: Run
    said: dict[str, str]
    before: dict[str, tuple[Any, ...]]


@pytest.fixture(scope="module")
def frozen(
    profile_target: dict[str, Any],
    catalog_properties: dict[str, str],
    spark_sql: SqlRunner,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Frozen]:
    schema = f"frozen_{os.getpid()}"
    lake = load_catalog("lake", **catalog_properties)
    folder = tmp_path_factory.mktemp("frozen") / "project"
    scenario = Scenario(folder, schema, profile_target, spark_sql, lake)
    for name, (_, config) in {**{n: c[:2] for n, c in STOPPED.items()}, **GOES_ON}.items():
        first = {"column_renames": None, "full_refresh": None, "tblproperties": None}
        scenario.model(V1, name, **{**config, **first, **(TABLE if name == "hidden" else {})})
    scenario.file("seeds/listed.csv", "id,v\n1,10\n")
    scenario.file("seeds/kept.csv", "id,v\n1,10\n")
    snapshot = "{% snapshot history %}{{ config(unique_key='id', strategy='check', check_cols='all') }}"
    scenario.file("snapshots/history.sql", f"{snapshot} select 1 as id, 1 as v {{% endsnapshot %}}")
    built = scenario.dbt("build")
    assert built.success, built.message or built.log
    for name, (sql, config, _) in STOPPED.items():
        scenario.model(sql, name, **config)
    for name, (sql, config) in GOES_ON.items():
        scenario.model(sql, name, **config)
    scenario.model("select 1 as id, 2 as fresh", "fresh")
    scenario.file("seeds/listed.csv", "id,v,n\n1,10,100\n")
    scenario.file("seeds/kept.csv", "id,v\n2,20\n")
    scenario.file("snapshots/history.sql", f"{snapshot} select 1 as id, 1 as v, 2 as n {{% endsnapshot %}}")
    before = {name: scenario.state(name) for name in (*STOPPED, "listed", "history")}
    run = scenario.dbt("build", *FREEZE)
    said = {node.node.name: str(node.message) for node in run.result.result if str(node.status) == "error"}
    yield Frozen(scenario, run, said, before)
    scenario.clean_up()


def test_every_change_of_a_schema_is_refused_by_name(frozen: Frozen) -> None:
    expected = {name: case[2] for name, case in STOPPED.items()}
    expected |= {"listed": "add column `n` ", "history": "add column `n` int"}
    assert set(frozen.said) == set(expected)
    for name, change in expected.items():
        kind = {"listed": "seed", "history": "snapshot"}.get(name, "model")
        text = frozen.said[name]
        assert change in text, text
        assert f"{kind}.case.{name} " in text, text
        assert "`sparkevolve_freeze_schema` is true in this run" in text
        assert "nothing was written" in text
        assert "full_refresh_schema: replace" not in text, "that is refused in such a run, too"
        assert frozen.scenario.relation(name) in text
        assert frozen.scenario.state(name) == frozen.before[name], name


def test_what_changes_no_schema_goes_on(frozen: Frozen) -> None:
    scenario = frozen.scenario
    assert scenario.rows("padded") == [(1, 1, {"a": 1}), (2, None, {"a": 2})]
    assert scenario.rows("left_out") == [(1, 1, {"a": 1})]
    assert scenario.table("described").properties["team"] == "us"
    assert scenario.rows("same") == scenario.rows("same_table") == [(2, 3, {"a": 1})]
    assert scenario.rows("kept") == [(2, 20)]
    assert scenario.rows("fresh") == [(1, 2)]


def test_a_plan_shows_the_refusal_and_false_freezes_nothing(frozen: Frozen) -> None:
    scenario = frozen.scenario
    plan = scenario.dbt(
        *("run", "--select", "added", "replaced", "padded", "--vars"),
        "{sparkevolve_freeze_schema: yes, sparkevolve_plan_only: true}",
    )
    said = {node.node.name: str(node.message) for node in plan.result.result}
    stop = "The run would be refused: `sparkevolve_freeze_schema` is true in this run, and model.case."
    assert f"{stop}added would change the table's schema: add column `n` int." in said["added"]
    assert f"{stop}replaced would change the table's schema: leave out column `s`" in said["replaced"]
    assert said["padded"] == "planned, nothing was changed"
    assert scenario.state("added") == frozen.before["added"]
    wrong = scenario.fail("--select", "added", "--vars", "sparkevolve_freeze_schema: perhaps")
    assert (
        'The variable `sparkevolve_freeze_schema` is "perhaps", which is neither true nor false'
        in wrong.message
    )
    assert scenario.state("added") == frozen.before["added"]
    scenario.run("--select", "added", "rebuilt", "--vars", "sparkevolve_freeze_schema: 'false'")
    assert scenario.rows("added") == scenario.rows("rebuilt") == [(1, 1, {"a": 1}, 5)]
