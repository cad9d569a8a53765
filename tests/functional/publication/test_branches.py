"""Where the rows of a run become visible: `main`, a branch of the table, or neither."""

import json
from collections.abc import Callable

import pytest

from tests.functional.harness import Scenario
from tests.functional.samples import OLD, history


def test_a_table_of_format_3_is_published_through_spark(scenario: Scenario) -> None:
    scenario.model(OLD, tblproperties={"format-version": "3"})
    scenario.run()
    seen = history(scenario)
    scenario.model("select 2 as id, 'B' as v, 1 as gone")
    scenario.run()
    assert scenario.sql(f"select * from {scenario.relation()} order by id") == [(1, "a", 10), (2, "B", 1)]
    assert list(scenario.table().metadata.refs) == ["main"]
    assert len(history(scenario)) == len(seen) + 1


@pytest.mark.core
def test_a_reserved_branch_gets_the_rows(scenario_factory: Callable[..., Scenario]) -> None:
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
    # Iceberg looks names in a filter up among the columns that the branch had when it was written.
    table = scenario.relation()
    write = f"INSERT INTO {table} SELECT * FROM {table} WHERE false"

    def refusal(setting: str, name: str, first: str) -> str:
        return (
            f"The model's `{setting}` names `{name}`, which the rows of the branch `audit`, that of "
            "`spark.wap.branch`, do not have by that name: nothing was written to it since. In such a branch "
            f"Iceberg cannot look for rows by it. {first} to the branch, with that setting: `{write}`. Then "
            "run again."
        )

    alter = "Change the column with `ALTER TABLE`, and then write"
    for sql, setting, name, config in (
        (
            "select 1 as id, 'x' as v, 3 as n, 1 as m",
            "incremental_predicates",
            "m",
            {"incremental_predicates": ["m > 0"]},
        ),
        (
            "select 1 as id, 'x' as w, 3 as n",
            "incremental_predicates",
            "w",
            {"incremental_predicates": ["w > ''"], "column_renames": {"v": "w"}},
        ),
        (
            "select 1 as key, 'x' as v, 3 as n",
            "unique_key",
            "key",
            {"unique_key": "key", "column_renames": {"id": "key"}},
        ),
    ):
        scenario.model(sql, **config)
        for arguments in ((), ("--vars", "sparkevolve_plan_only: true")):
            run = scenario.dbt("run", *arguments)
            assert not run.success
            assert refusal(setting, name, alter) in " ".join(run.log.split()), run.log
        assert scenario.table().schema().column_names == ["id", "v", "n"]
    scenario.sql(f"alter table {table} rename column v to w")
    scenario.model("select 1 as id, 'x' as w, 3 as n", incremental_predicates=["w > ''"])
    run = scenario.dbt("run")
    assert refusal("incremental_predicates", "w", "Write") in " ".join(run.log.split()), run.log
    scenario.sql("set spark.wap.branch = audit")
    scenario.sql(write)
    scenario.sql("reset spark.wap.branch")
    scenario.run()
    audited = scenario.table().scan().use_ref("audit").to_arrow().to_pylist()
    assert sorted(tuple(row.values()) for row in audited) == [(1, "x", 3), (3, "y", 3)]


@pytest.mark.parametrize("strategy", ["delete+insert", "merge"])
def test_operations_look_at_the_reserved_branch(
    scenario_factory: Callable[..., Scenario], strategy: str
) -> None:
    """What a replay takes for newer rows, and where a backfill is, are told by what is on that branch."""
    scenario = scenario_factory(server_side_parameters={"spark.wap.branch": "audit"})
    config = {"on_bad_rows": "dead_letter", "incremental_strategy": strategy}
    audits = {"audits": [{"sql": "n > 0", "severity": "row"}]}
    scenario.model("select 1 as id, 10 as n union all select 2, 20", **config, **audits)
    scenario.run()
    scenario.sql(f"alter table {scenario.relation()} set tblproperties ('write.wap.enabled' = 'true')")
    # The last one is the newest that the source says, though it is what the table had before.
    for sql in ("select 1 as id, -1 as n union all select 3, -3", "select 1 as id, 10 as n"):
        scenario.model(sql, **config, **audits)
        scenario.run()
    scenario.model("select 1 as id, 10 as n", **config)

    def audited() -> list[tuple[object, ...]]:
        found = scenario.table().scan().use_ref("audit").to_arrow().sort_by("id").to_pylist()
        return [tuple(row.values()) for row in found]

    run = scenario.dbt("run-operation", "replay_dead_letters", "--args", "{model: t}")
    assert run.success, run.log
    assert "  1 stays: the table has rows of this key that were loaded after it\n" in run.log
    assert audited() == [(1, 10), (2, 20), (3, -3)]
    arguments = "{model: t, column: n, value: n * 2, only_null: false, rows_per_batch: 2, max_batches: 1}"
    for rows in ([(1, 20), (2, 40), (3, -3)], [(1, 20), (2, 40), (3, -6)]):
        run = scenario.dbt("run-operation", "backfill_column", "--args", arguments)
        assert run.success, run.log
        assert audited() == rows
    assert scenario.rows() == [(1, 10), (2, 20)]
    # Iceberg looks for rows by the columns that the branch had when it was written.
    table = scenario.relation()
    scenario.sql(f"alter table {table} add columns (x int)")
    fill = ("run-operation", "backfill_column", "--args", "{model: t, column: x, value: n}")
    write = f"INSERT INTO {table} SELECT * FROM {table} WHERE false"
    assert (
        "`column` names `x`, which the rows of the branch `audit`, that of `spark.wap.branch`, do not have "
        "by that name: nothing was written to it since. In such a branch Iceberg cannot look for rows by it. "
        f"Write to the branch, with that setting: `{write}`. Then run again. Nothing was written."
    ) in scenario.dbt(*fill).log
    scenario.sql("set spark.wap.branch = audit")
    scenario.sql(write)
    scenario.sql("reset spark.wap.branch")
    run = scenario.dbt(*fill)
    assert run.success, run.log
    assert audited() == [(1, 20, 20), (2, 40, 40), (3, -6, -6)]


def test_rows_that_are_kept_apart_are_refused(scenario: Scenario) -> None:
    """`spark.wap.id` takes each statement's rows off every branch: they could not be checked or published."""
    # Behind `SET spark.wap.id`, too.
    scenario.write_project(**{"query-comment": {"comment": "run by dbt;", "append": True}})
    scenario.model("select 1 as id, 'a' as v", tblproperties={"write.wap.enabled": "true"})
    scenario.run()
    before = scenario.state()
    hooks = {"pre_hook": "set `spark.wap.id` = `abc`", "post_hook": "reset `spark.wap.id`"}
    scenario.model("select 1 as id, 'bad' as v", audits=["v = 'a'"], **hooks)
    message = scenario.fail().message
    scenario.model("select 1 as id, 'b' as v", post_hook="reset `spark.wap.id`")
    assert "the session's `spark.wap.id` keeps each statement's rows apart. Unset `spark.wap.id`" in message
    assert scenario.state() == before


def test_no_table_is_made_of_rows_that_nobody_would_see(scenario: Scenario) -> None:
    """Not a new one, nor one in the place of another, whose rows would be gone for readers."""
    enabled = {"tblproperties": {"write.wap.enabled": "true"}}
    table = {"materialized": "table", "unique_key": None, "on_schema_change": None}
    replacing = {"full_refresh_schema": "replace"}
    scenario.file("seeds/s.csv", "id,v\n1,a\n")

    def write(value: str, hook: str) -> None:
        # The session of a node that has failed keeps what that has set.
        hooks = {"pre_hook": ["reset spark.wap.id", hook]}
        scenario.model(f"select 1 as id, '{value}' as v", "i", **hooks, **enabled, **replacing)
        scenario.model(f"select 1 as id, '{value}' as v", "m", **hooks, **enabled, **table)
        seed = {"name": "s", "config": {**hooks, **enabled}}
        scenario.file("seeds/s.yml", json.dumps({"seeds": [seed]}))

    def messages() -> dict[str, str]:
        build = scenario.dbt("build", "--full-refresh", "--threads", "1")
        return {node.node.name: str(node.message) for node in build.result.result or ()}

    def refused(name: str, setting: str, done: str, state: str) -> str:
        return (
            f"No reader would see the rows of {scenario.relation(name)} once it is {done}: it would have "
            f"`write.wap.enabled`, by which the session's `{setting}` keeps them out of `main`. Unset "
            f"`{setting}` for this node, or set `write.wap.enabled` to false. {state}"
        )

    write("a", "set spark.wap.id=abc")
    found = messages()
    for name in ("i", "m", "s"):
        assert refused(name, "spark.wap.id", "made", "Nothing was made.") in found[name]
    assert scenario.tables() == []
    write("a", "reset spark.wap.id")
    assert scenario.dbt("build", "--threads", "1").success
    before = [scenario.snapshots(name) for name in ("i", "m", "s")]
    for setting in ("spark.wap.id", "spark.wap.branch"):
        write("b", f"set {setting}=audit")
        found = messages()
        for name in ("i", "m", "s"):
            assert refused(name, setting, "replaced", "The table is as it was.") in found[name]
            assert scenario.rows(name) == [(1, "a")]
        assert [scenario.snapshots(name) for name in ("i", "m", "s")] == before
        assert scenario.tables() == ["i", "m", "s"]
    scenario.model("select 1 as id, 'a' as v", "n", pre_hook="set spark.wap.branch=audit", **enabled)
    scenario.run("-s", "n", "--threads", "1")
    audited = scenario.table("n").scan().use_ref("audit").to_arrow().to_pylist()
    assert audited == [{"id": 1, "v": "a"}]
    scenario.model("select 1 as id, 'b' as v", "n", pre_hook="reset spark.wap.branch", **enabled)
    scenario.run("-s", "n", "--threads", "1")
    assert scenario.rows("n") == [(1, "b")]


def test_what_is_in_the_place_of_such_a_table_stays(scenario: Scenario) -> None:
    """A view has to be dropped before a table has its name: not before it is known that readers see rows."""
    view = {"materialized": "view", "unique_key": None, "on_schema_change": None}
    for name in ("i", "m"):
        scenario.model("select 5 as id", name, **view)
    scenario.run()
    hidden = {"pre_hook": "set spark.wap.id=abc", "tblproperties": {"write.wap.enabled": "true"}}
    scenario.model("select 1 as id", "i", **hidden)
    scenario.model("select 1 as id", "m", **{**view, "materialized": "table"}, **hidden)
    build = scenario.dbt("build", "--full-refresh", "--threads", "1")
    messages = {node.node.name: str(node.message) for node in build.result.result or ()}
    for name in ("i", "m"):
        assert f"No reader would see the rows of {scenario.relation(name)} once it is made" in messages[name]
        assert scenario.sql(f"select * from {scenario.relation(name)}") == [(5,)]
    for name in ("i", "m"):
        scenario.model("select 5 as id", name, **view, pre_hook="reset spark.wap.id")
    scenario.run()
