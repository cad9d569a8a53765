"""A plan changes nothing, and says what a run would do."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.functional.harness import Scenario
from tests.functional.precreated import PLAN_ONLY


@pytest.mark.core
def test_the_plan_changes_nothing(scenario: Scenario) -> None:
    scenario.model("select 1 as id, 'a' as note")
    scenario.model("select 1 as x", "other", materialized="table")
    scenario.run("--select", "t")
    before = scenario.state()
    scenario.model("select 1 as id, 5 as extra")
    run = scenario.run("--vars", "sparkevolve_plan_only: true")
    table = f"""{scenario.relation()}
  change     add column `extra` int
  pad        `note`"""
    assert table in run.log
    # What is as it was is not in it.
    assert "DBT_INTERNAL_SOURCE" not in run.log.split(table)[1].split("planned, nothing was changed")[0]
    assert scenario.state() == before
    assert scenario.tables() == ["t"]

    run = scenario.run("--vars", "sparkevolve_plan_only: true", "--select", "t", "--log-format", "json")
    line = next(line for line in run.log.splitlines() if line.startswith("{") and "projections" in line)
    plan = json.loads(line)
    assert plan["changes"] == ["add column `extra` int"]
    assert plan["removed"] == ["`note`"]
    assert plan["refusals"] == []

    scenario.model("select 1 as id, 5 as note")
    run = scenario.fail("--vars", "sparkevolve_plan_only: true", "--select", "t")
    assert "Column `note` is string in the table, and the model returns int." in run.message
    assert scenario.state() == before
    assert scenario.tables() == ["t"]


def test_the_plan_of_several_models_of_which_some_are_refused(scenario: Scenario) -> None:
    """Each is planned, and dbt fails; nothing is staged, no post-hook runs, no snapshot is made."""
    for name in ("t", "refused"):
        scenario.model("select 1 as id, 'a' as note, named_struct('x', 1) as s", name)
    scenario.run()
    before = [scenario.state(name) for name in ("t", "refused")]
    hook = "insert into {{ this }} values (9, 'hook', null)"
    scenario.model(
        "select cast(1 as bigint) as id, named_struct('x', cast(2 as bigint), 'y', 3) as s",
        post_hook=hook,
    )
    scenario.model("select 1 as id, 5 as note, 6 as n", "refused")
    scenario.model("select id, null as nothing from {{ ref('t') }}", "fresh")
    scenario.model("select 1 as _file", "fresh_refused")
    scenario.model("select * from {{ ref('plain') }}", "fresh_on_fresh", unique_key=None)
    scenario.model("select 1 as z", "plain", materialized="table", unique_key=None, on_schema_change=None)
    run = scenario.fail(*PLAN_ONLY)
    messages = {node.node.name: str(node.message) for node in run.result.result or ()}
    assert {name: messages[name] for name in ("t", "fresh", "fresh_on_fresh", "plain")} == {
        "t": "planned, nothing was changed",
        "fresh": "planned, nothing was changed",
        "fresh_on_fresh": "planned, nothing was changed",
        "plain": "not incremental, not run",
    }
    assert (
        "The run would be refused: Column `note` is string in the table, and the model returns int."
        in messages["refused"]
    )
    refused = messages["fresh_refused"]
    assert "The run would be refused:\n    * The model returns the column `_file`, a name that" in refused
    assert "\n    * The unique_key `id` is not produced by the model, which returns `_file`." in refused
    assert (
        f"{scenario.relation()}\n"
        "  change     widen `id` from int to bigint\n"
        "  change     widen `s`.`x` from int to bigint\n"
        "  change     add field `s`.`y` int\n"
        "  pad        `note`\n"
    ) in run.log
    assert (
        f"{scenario.relation('fresh')}: would be created from the model\n"
        "  column     `id`\n"
        "  warning    `nothing` is a bare NULL, which has no type, and is left out."
    ) in run.log
    assert (
        f"{scenario.relation('fresh_on_fresh')}: would be created from the model\n"
        "  warning    The model cannot be analysed: [TABLE_OR_VIEW_NOT_FOUND]"
    ) in run.log
    assert [scenario.state(name) for name in ("t", "refused")] == before
    assert scenario.tables() == ["refused", "t"]


def test_the_plan_of_a_full_refresh_lists_what_goes(scenario: Scenario) -> None:
    scenario.model("select 1 as id, 'a' as note, 2 as n")
    scenario.run()
    before = scenario.state()
    scenario.model(
        "select 1 as id, 3 as more, 2 as N",
        full_refresh_schema="replace",
        tblproperties={"format-version": "3"},
        column_defaults={"More": "7", "n": "random()", "other": "1"},
    )
    run = scenario.run("--full-refresh", *PLAN_ONLY)
    assert (
        f"{scenario.relation()}: would be created from the model\n"
        "  column     `id`\n"
        "  column     `more`\n"
        "  column     `N`\n"
        "  loses      `note`\n"
        "  default    `More`: 7\n"
        "  warning    The default random() of `N` is skipped: "
    ) in run.log
    assert "  warning    The default of `other` is skipped: neither the table nor the model has" in run.log
    assert set(written(scenario)[0]["model.case.t"]) == on_page("a new table")
    assert written(scenario)[0]["model.case.t"]["columns_lost"] == ["`note`"]
    scenario.model("select 1 as id, 3 as more, 2 as N")
    run = scenario.run("--full-refresh", *PLAN_ONLY)
    assert f"{scenario.relation()}\n  change     add column `more` int\n  pad        `note`\n" in run.log
    assert scenario.state() == before
    assert scenario.tables() == ["t"]


def test_the_plan_knows_the_policy_fail(scenario: Scenario) -> None:
    scenario.model("select 1 as id, 'a' as note")
    scenario.run()
    before = scenario.state()
    scenario.model("select 1 as id, 3 as more", on_schema_change="fail")
    for arguments in (PLAN_ONLY, ()):
        run = scenario.fail(*arguments)
        assert "In the model only: more. In the table only: note." in run.message
        assert ("  refused    see the error below" in run.log) == (arguments == PLAN_ONLY)
        # The reason is said once, without the macros that have led to it.
        assert run.message.count("In the model only") == 1
        assert "in macro" not in run.message
    scenario.model("select 1 as id, 'b' as note", on_schema_change="fail")
    scenario.run(*PLAN_ONLY)
    assert scenario.state() == before
    assert scenario.tables() == ["t"]


def written(scenario: Scenario) -> tuple[dict[str, dict[str, Any]], str]:
    """What the files of the last plan say: of each model, and the table."""
    data = json.loads((scenario.folder / "target" / "sparkevolve_plan.json").read_text())
    assert data["metadata"]["format"] == 1
    return (
        {model["unique_id"]: model for model in data["models"]},
        (scenario.folder / "target" / "sparkevolve_plan.md").read_text(),
    )


def on_page(kind: str) -> set[str]:
    """The names that docs/plan.md lists for one kind of plan."""
    page = (Path(__file__).parents[3] / "docs" / "plan.md").read_text()
    rows = re.findall(r"^\| (`.*?) \| ([a-z, ]+) \| ", page, re.MULTILINE)
    return {
        name
        for names, kinds in rows
        if kinds == "all" or kind in kinds.split(", ")
        for name in re.findall(r"`(\w+)`", names)
    }


@pytest.mark.core
def test_the_plan_is_written_for_a_change_request(scenario: Scenario) -> None:
    """All models of a command, who reads what changes, and what cannot be planned."""
    scenario.model("select 1 as id, 'a' as note, 2 as n, 'x' as old_name")
    scenario.model("select 1 as id", "hooked")
    scenario.model("select 1 as id, 'a' as note, 1 as gone", "refused")
    scenario.run()
    scenario.model(
        "select 1 as id, cast(5 as bigint) as n, 'y' as new_name", column_renames={"old_name": "new_name"}
    )
    scenario.model("select 1 as id", "hooked", pre_hook="insert into {{ this }} values (2)")
    scenario.model("select 1 as id, 5 as note, 1 as more", "refused")
    view = {"materialized": "view", "unique_key": None, "on_schema_change": None}
    scenario.model("select * from {{ ref('t') }}", "everything", **{**view, "materialized": "ephemeral"})
    scenario.model("select old_name, count(*) as c from {{ ref('everything') }} group by 1", "far", **view)
    scenario.model("select id, NOTE from {{ ref('t') }}", "near", **view)
    scenario.model("select id from {{ ref('t') }}", "other", **view)
    run = scenario.fail(*PLAN_ONLY)
    assert run.result.exception is None
    models, table = written(scenario)
    assert {name: model["status"] for name, model in models.items()} == {
        "model.case.t": "changes",
        "model.case.hooked": "not planned",
        "model.case.refused": "refused",
    }
    assert set(models["model.case.hooked"]) == on_page("not planned")
    refused = models["model.case.refused"]
    assert set(refused) == set(models["model.case.t"]) == on_page("a load")
    # What is known beside the refusal.
    assert (refused["changes"], refused["columns_added"]) == (["add column `more` int"], ["`more`"])
    assert (refused["columns_padded"], refused["projections"]) == (["`gone`"], [])
    assert (
        f"{scenario.relation('refused')}\n"
        "  change     add column `more` int\n"
        "  pad        `gone`\n"
        "  refused    see the error below; so a run would do none of this"
    ) in run.log
    planned = models["model.case.t"]
    assert {name: planned[name] for name in planned if name.startswith("columns_")} == {
        "columns_added": [],
        "columns_widened": ["`n`"],
        "columns_relaxed": [],
        "columns_renamed": {"`old_name`": "`new_name`"},
        "columns_padded": ["`note`"],
        "columns_kept": [],
        "columns_left_out": [],
        "columns_replaced": [],
    }
    everything, far = "model.case.everything", "model.case.far"
    assert sorted(planned["changes"]) == ["rename `old_name` to `new_name`", "widen `n` from int to bigint"]
    readers = planned["readers"]
    assert [(r["column"], r["change"], r["node"][11:], r["how"], r["through"]) for r in readers] == [
        ("`old_name`", "renamed", "everything", "reads all columns", []),
        ("`old_name`", "renamed", "far", "names it", [everything]),
        ("`n`", "widened", "everything", "reads all columns", []),
        ("`note`", "not returned by the model", "everything", "reads all columns", []),
        ("`note`", "not returned by the model", "near", "names it", []),
    ]
    assert (
        f"  read by    `old_name` (renamed): {everything} (all columns), {far} through {everything}\n"
        f"  read by    `n` (widened): {everything} (all columns)\n"
        f"  read by    `note` (not returned by the model): {everything} (all columns), model.case.near\n"
    ) in run.log
    assert table.splitlines()[:3] == [
        "## Plan of the schemas",
        "",
        "3 incremental models, 1 with changes, 2 refused.",
    ]
    assert (
        f"| model.case.t | changes | {'<br>'.join(planned['changes'])} | `note`: padded with NULL "
        "| `old_name`: model.case.everything<br>`old_name`: model.case.far<br>"
        "`n`: model.case.everything<br>`note`: model.case.everything<br>`note`: model.case.near |"
    ) in table
    assert "| model.case.refused | refused | add column `more` int | `gone`: padded with NULL |" in table
    assert "* **model.case.refused**: Column `note` is string in the table, and the model returns" in table
    assert f"* **model.case.hooked**: {scenario.relation('hooked')} cannot be planned: its pre-hook" in table
    # The next command has files of its own.
    scenario.run(*PLAN_ONLY, "--select", "t")
    assert set(written(scenario)[0]) == {"model.case.t"}


def test_the_plan_refuses_what_a_run_refuses_before_it_reads_a_row(scenario: Scenario) -> None:
    """Bad rows that nobody can set aside, grants that Spark lacks, partitions that it cannot overwrite.

    And conditions that Spark cannot read, whether columns change or not.
    """
    old = ("aside", "granted", "limited", "audited")
    for name in old:
        scenario.model("select 1 as id, 'a' as p", name)
    scenario.run()
    for statement in (
        f"create table {scenario.relation('parts')} (id int, p string) using iceberg partitioned by (p) "
        "tblproperties ('format-version' = '1', 'write.delete.mode' = 'merge-on-read')",
        f"insert into {scenario.relation('parts')} values (1, 'a')",
        f"alter table {scenario.relation('parts')} add partition field bucket(2, id)",
        f"create table {scenario.relation('aside_dlt')} (x int) using iceberg",
    ):
        scenario.sql(statement)
    names = (*old, "parts")
    before = {name: scenario.state(name) for name in names}

    scenario.model("select 2 as id, 'b' as p", "aside", on_bad_rows="dead_letter")
    scenario.model("select 2 as id, 'b' as p", "granted", grants={"select": ["somebody"]})
    overwrite = {"incremental_strategy": "insert_overwrite", "partition_by": ["p", "bucket(2, id)"]}
    scenario.model("select 1 as id, 'a' as p", "parts", unique_key=None, **overwrite)
    limits = ["DBT_INTERNAL_DEST.missing > 0", "DBT_INTERNAL_DEST.n is not null", "_file is not null"]
    sql = "select 2 as id, 'b' as p, 3 as n"
    scenario.model(sql, "limited", incremental_predicates=limits, audits=["n > 0", "width_of(p) > 0"])
    own = f"id > (select count(*) from {scenario.relation('audited')})"
    scenario.model("select 2 as id, 'b' as p", "audited", audits=[own, "width_of(p) > 0"])
    scenario.model("select 2 as id, 'b' as p", "new", audits=["id > 0", "width_of(p) > 0"])
    runs = [scenario.fail("--vars", "sparkevolve_plan_only: true")]
    assert {name: scenario.state(name) for name in names} == before
    runs.append(scenario.fail())
    planned, ran = ({r.node.name: str(r.message) for r in run.result.result} for run in runs)
    letters = f"would go to {scenario.relation('aside_dlt')}, and that table has no column `messageId`"
    audit = "Spark cannot evaluate one of the model's `audits` (width_of(p) > 0) over the columns"
    for name in ("limited", "audited", "new"):
        assert planned[name].count("Spark cannot evaluate") == (2 if name == "limited" else 1)
        assert audit in planned[name]
    for name, text in {
        "limited": "one of the model's `incremental_predicates` (DBT_INTERNAL_DEST.missing > 0) over the",
        "audited": "width_of(p) > 0",
        "new": "width_of(p) > 0",
        "aside": f"Bad rows of {scenario.relation('aside')} {letters} of the type string.",
        "granted": f"The `grants` of {scenario.relation('granted')} cannot be applied: this Spark has no",
        "parts": "The table has Iceberg's format version 1 and `write.delete.mode` = 'merge-on-read'",
    }.items():
        assert text in planned[name]
        assert text in ran[name]
    # On a branch the run evaluates audits of what was loaded.
    assert scenario.rows("audited") == before.pop("audited")[1]
    assert {name: scenario.state(name) for name in before} == before
    assert "new" not in scenario.tables()
