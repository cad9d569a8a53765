"""A plan of a model whose pre-hooks would run first, or that reads what a run would build first."""

from typing import Any

import pytest

from tests.functional.harness import Run, Scenario

PLAN = ("--vars", "sparkevolve_plan_only: true")
VIEW: dict[str, Any] = {"materialized": "view", "unique_key": None, "on_schema_change": None}


def messages(run: Run) -> dict[str, str]:
    """What dbt says of each node, by its name."""
    return {node.node.name: str(node.message) for node in run.result.result}


def test_a_model_whose_pre_hook_may_change_something_is_not_planned(scenario: Scenario) -> None:
    scenario.model("select 1 as id", "seen", **VIEW)
    scenario.model("select * from {{ ref('seen') }}")
    scenario.model("select 1 as id", "hidden", **{**VIEW, "materialized": "ephemeral"})
    scenario.model("select 1 as id, current_date() as d", "reads")
    scenario.model("select id, 1 as n from {{ ref('reads') }}", "later")
    scenario.run()
    before = scenario.state()
    hook = f"/* make */ create or replace view {scenario.relation('seen')} as select 'x' as id"
    scenario.model("select * from {{ ref('seen') }}", pre_hook=["set spark.x.y = 1", hook])
    scenario.model(
        "select 1 as id, 2 as n from {{ ref('seen') }}",
        "reads",
        pre_hook=["set spark.x.y = 1", "select * from {{ this }}", ""],
    )
    scenario.model("select id, n from {{ ref('reads') }}", "later")
    run = scenario.fail(*PLAN)
    found = messages(run)
    assert (
        f"{scenario.relation()} cannot be planned: its pre-hook `{hook}` runs before the model" in found["t"]
    )
    assert found["reads"] == "planned, nothing was changed"
    assert "`n` cannot be resolved" in found["later"]
    assert "a run would build `reads` first. If what is missing comes with that, plan" in found["later"]
    assert (
        f"{scenario.relation('reads')}\n"
        "  change     add column `n` int\n"
        "  pad        `d`\n"
        "  reads      `seen`, planned as now: a run would build that first\n"
    ) in run.log
    assert scenario.state() == before
    assert scenario.sql(f"select * from {scenario.relation('seen')}") == [(1,)]
    alone = scenario.run("--select", "reads", *PLAN)
    assert "planned as now" not in alone.log


@pytest.mark.parametrize("ending", ["; -- end; '", "\n;\n/* ; '\n */ ;", " -- ;", ";\n"])
def test_a_model_may_end_in_a_semicolon_and_comments(scenario: Scenario, ending: str) -> None:
    """In every kind of model, with a contract, in a plan, a test, a snapshot and `dbt show`."""
    sql = "select 1 as id, ';--' as v" + ending
    scenario.model(sql)
    scenario.model(sql, "seen", **VIEW)
    scenario.model(sql, "made", **{**VIEW, "materialized": "table"})
    scenario.model(sql, "checked", on_schema_change="append_new_columns")
    scenario.file(
        "models/c.yml",
        "models: [{name: checked, config: {contract: {enforced: true}}, "
        "columns: [{name: id, data_type: int}, {name: v, data_type: string}]}]",
    )
    scenario.file(
        "snapshots/s.sql",
        "{% snapshot s %}{{ config(strategy='check', check_cols='all', unique_key='id') }}"
        + sql
        + "{% endsnapshot %}",
    )
    scenario.file("tests/none.sql", "select * from {{ ref('t') }} where id > 1" + ending)
    for _ in range(2):
        run = scenario.dbt("build")
        assert run.success, run.message
        scenario.run(*PLAN)
    for name in ("t", "made", "checked"):
        assert scenario.rows(name) == [(1, ";--")]
    assert len(scenario.rows("s")) == 1
    assert scenario.sql(f"select * from {scenario.relation('seen')}") == [(1, ";--")]
    run = scenario.dbt("show", "--select", "t")
    assert run.success, run.message


def test_two_statements_in_one_model_are_refused(scenario: Scenario) -> None:
    scenario.model("set spark.x.y = 1; select 1 as id")
    message = scenario.fail().message
    assert "The SQL is 2 statements with semicolons between them, and it has to be one query" in message
    assert scenario.tables() == []


def test_a_clone_is_a_view_onto_the_other_target(scenario: Scenario) -> None:
    scenario.writes_artifacts = True
    scenario.model("select 1 as id, 'a' as v")
    scenario.model("select 1 as id", "seen", **VIEW)
    scenario.run()
    state = scenario.folder / "state"
    (scenario.folder / "target").rename(state)
    other = f"{scenario.schema}_clone"
    profiles = scenario.folder / "profiles.yml"
    profiles.write_text(profiles.read_text().replace(f"schema: {scenario.schema}", f"schema: {other}"))
    try:
        run = scenario.dbt("clone", "--state", str(state))
        assert run.success, run.message
        assert scenario.sql(f"select * from lake.{other}.t") == [(1, "a")]
        assert {row[1] for row in scenario.sql(f"show views in lake.{other}")} == {"t", "seen"}
        scenario.sql(f"insert into {scenario.relation()} values (2, 'b')")
        assert len(scenario.sql(f"select * from lake.{other}.t")) == 2

        scenario.sql(f"drop view lake.{other}.t")
        scenario.sql(f"create table lake.{other}.t (id int) using iceberg")
        assert scenario.dbt("clone", "--state", str(state)).success
        run = scenario.dbt("clone", "--state", str(state), "--full-refresh")
        assert (
            f"`lake`.`{other}`.`t` cannot become a clone, which is a view here: a table is there"
            in run.message
        )
        scenario.sql(f"select id from lake.{other}.t")
    finally:
        scenario.sql(f"drop view if exists lake.{other}.seen")
        scenario.sql(f"drop table if exists lake.{other}.t")
        scenario.sql(f"drop schema lake.{other}")
