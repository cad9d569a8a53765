"""Hooks, around a load and in it: a run looks at what is there after its pre-hooks."""

from typing import Any

import pytest

from tests.functional.harness import Run, Scenario

TABLE: dict[str, Any] = {"materialized": "table", "unique_key": None, "on_schema_change": None}

VIEW: dict[str, Any] = {**TABLE, "materialized": "view"}


def messages(run: Run) -> dict[str, str]:
    """What dbt says of each node, by its name."""
    return {node.node.name: str(node.message) for node in run.result.result}


def test_pre_hooks_make_what_was_not_there(scenario: Scenario) -> None:
    """A table that a hook makes is loaded into: its columns, properties and rows stay."""
    scenario.model(
        "select 1 as id, 'new' as v",
        pre_hook=[
            "create table {{ this }} (id bigint, old string) using iceberg "
            "tblproperties ('made' = 'by hook')",
            "insert into {{ this }} values (7, 'kept')",
        ],
    )
    scenario.model("select 2 as id", "over_view", pre_hook="create view {{ this }} as select 5 as id")
    scenario.model("select 3 as id", "made", **TABLE, pre_hook="create view {{ this }} as select 5 as id")
    scenario.model(
        "select 4 as id", "seen", **VIEW, pre_hook="create table {{ this }} (id int) using iceberg"
    )
    scenario.run()
    assert scenario.rows() == [(1, None, "new"), (7, "kept", None)]
    assert scenario.types()["id"] == "long"
    assert scenario.table().properties["made"] == "by hook"
    assert scenario.rows("over_view") == [(2,)]
    assert scenario.rows("made") == [(3,)]
    assert scenario.sql(f"select * from {scenario.relation('seen')}") == [(4,)]


def test_pre_hooks_drop_alter_and_replace_what_was_there(scenario: Scenario) -> None:
    for name in ("t", "asks", "asks_far", "looks", "hook_asks", "reads", "altered", "to_view"):
        scenario.model("select 1 as id, 'a' as v", name)
    scenario.run()
    drop = "drop table {{ this }}"
    scenario.file("macros/far.sql", "{% macro far() %}{{ 'where id > 1' if is_incremental() }}{% endmacro %}")
    scenario.model("select 2 as id", "t", pre_hook=drop)
    scenario.model("select 2 as id {% if is_incremental() %} where true {% endif %}", "asks", pre_hook=drop)
    scenario.model("select * from (select 2 as id) {{ far() }}", "asks_far", pre_hook=drop)
    looks = "select 2 as id {% if load_relation(this) %} where true {% endif %}"
    scenario.model(looks, "looks", pre_hook=drop)
    # What a hook asks is none of the model's rows.
    asks = "{% if is_incremental() %}select * from (select 1 as id) {{ far() }}{% endif %}"
    scenario.model("select 2 as id", "hook_asks", pre_hook=[drop, asks])
    scenario.model("select 1 + max(id) as id from {{ this }}", "reads", pre_hook=drop)
    scenario.model(
        "select 1 as id, 5 as w", "altered", pre_hook="alter table {{ this }} rename column v to w2"
    )
    scenario.model("select 2 as id", "to_view", pre_hook=[drop, "create view {{ this }} as select 5 as id"])
    run = scenario.fail()
    found = messages(run)
    assert scenario.rows("t") == [(2,)]
    assert scenario.columns("t") == ["id"]
    assert scenario.rows("hook_asks") == [(2,)]
    for name in ("asks", "asks_far", "looks"):
        assert (
            f"{scenario.relation(name)} was there when dbt compiled the model, and is not a table any more"
            in (found[name])
        )
    assert "TABLE_OR_VIEW_NOT_FOUND" in found["reads"]
    assert (
        f"{scenario.relation('reads')} was there when dbt compiled the model, and has been dropped or "
        "replaced since, by a hook of this run or by another writer. Nothing was loaded."
    ) in " ".join(found["reads"].splitlines())
    assert scenario.columns("altered") == ["id", "w2", "w"]
    assert scenario.rows("altered") == [(1, None, 5)]
    assert scenario.rows("to_view") == [(2,)]
    assert scenario.tables() == ["altered", "hook_asks", "t", "to_view"]


def test_hooks_of_the_run_and_of_other_models_come_between(scenario: Scenario) -> None:
    """What hooks of the run make and drop is seen, though dbt lists its schemas before they run."""
    scenario.model("select 1 as id")
    scenario.run()
    scenario.write_project(
        **{
            "on-run-start": [
                "drop table {{ target.schema }}.t",
                "create table {{ target.schema }}.u (id int, kept int) using iceberg",
            ]
        }
    )
    scenario.model("select 2 as id")
    scenario.model("select 2 as id", "u")
    scenario.run()
    assert scenario.rows() == [(2,)]
    assert scenario.rows("u") == [(2, None)]


def test_snapshots_and_seeds_look_after_their_pre_hooks(scenario: Scenario) -> None:
    def snapshot(value: str, **config: str) -> None:
        chosen = {"strategy": "check", "check_cols": "all", "unique_key": "id", **config}
        scenario.file(
            "snapshots/snap.sql",
            "{% snapshot snap %}{{ config(**" + repr(chosen) + f") }}}}select 1 as id, '{value}' as v"
            "{% endsnapshot %}",
        )

    scenario.file("seeds/s.csv", "id,v\n1,a\n")
    snapshot("a")
    run = scenario.dbt("build")
    assert run.success, run.message
    scenario.write_project(seeds={"+pre-hook": "drop table {{ this }}"})
    snapshot("b", pre_hook="drop table {{ this }}")
    run = scenario.dbt("build")
    assert run.success, run.message
    assert scenario.rows("s") == [(1, "a")]
    assert [row[1] for row in scenario.rows("snap")] == ["b"]
    scenario.write_project(seeds={"+pre-hook": "select 1"})
    snapshot("c")
    run = scenario.dbt("build")
    assert run.success, run.message
    assert sorted(row[1] for row in scenario.rows("snap")) == ["b", "c"]


@pytest.mark.core
def test_hooks_run_around_the_load(scenario: Scenario) -> None:
    """Before and after the load, those outside a transaction outermost, each once."""
    scenario.model("select 1 as id")
    scenario.run()
    notes = scenario.relation("notes")
    scenario.sql(f"create table {notes} (who string, n int, columns int) using iceberg")

    def hook(who: str, transaction: bool, column: str) -> dict[str, Any]:
        return {
            "sql": f"insert into {notes} select '{who}', count(*), count({column}) from {{{{ this }}}}",
            "transaction": transaction,
        }

    scenario.model(
        "select 2 as id, 'x' as n",
        pre_hook=[hook("pre-in", True, "id"), hook("pre-out", False, "id")],
        post_hook=[hook("post-out", False, "n"), hook("post-in", True, "n")],
    )
    run = scenario.run()
    assert scenario.rows("notes") == [
        ("post-in", 2, 1),
        ("post-out", 2, 1),
        ("pre-in", 1, 1),
        ("pre-out", 1, 1),
    ]
    order = [
        "select 'pre-out'",
        "select 'pre-in'",
        "DELETE FROM",
        "INSERT INTO",
        "select 'post-in'",
        "select 'post-out'",
    ]
    found = [run.log.index(text) for text in order]
    assert found == sorted(found)
    assert scenario.rows() == [(1, None), (2, "x")]
    assert scenario.tables() == ["notes", "t"]


def test_failing_hooks(scenario: Scenario) -> None:
    """A hook that selects runs too: one that fails before the load stops it, one after it fails the run."""
    names = ("before", "after")
    for name in names:
        scenario.model("select 1 as id", name=name)
    scenario.run()
    state = scenario.state("before")
    check = "select assert_true(count(*) = 99, 'not 99 rows') from {{ this }}"
    scenario.model("select 2 as id, 'x' as n", name="before", pre_hook=check)
    scenario.model("select 2 as id, 'x' as n", name="after", post_hook=check)
    run = scenario.fail()
    for node in run.result.result:
        assert "not 99 rows" in str(node.message), node.node.name
    assert scenario.state("before") == state
    assert scenario.rows("after") == [(1, None), (2, "x")]
    assert scenario.tables() == sorted(names)
