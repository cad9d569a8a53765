"""Features of dbt with the package: renames, refreshes, hooks, samples, unit tests, grants, clones."""

import json
import shutil
from collections.abc import Callable
from typing import Any

import pytest
import yaml
from dbt.adapters.spark.connections import SparkConnectionManager

from tests.functional.harness import Scenario

ADDS = {"on_schema_change": "append_new_columns"}


def ends_at(monkeypatch: pytest.MonkeyPatch, part: str) -> None:
    """Let statements fail that have this in them."""
    real: Callable[..., Any] = SparkConnectionManager.add_query

    def add_query(self: Any, sql: str, *args: Any, **kwargs: Any) -> Any:
        if part in sql.rpartition("*/")[2]:
            raise RuntimeError("the server is gone")
        return real(self, sql, *args, **kwargs)

    monkeypatch.setattr(SparkConnectionManager, "add_query", add_query)


def test_renames_that_end_half_way_are_taken_up(project: Scenario, monkeypatch: pytest.MonkeyPatch) -> None:
    project.model("select 1 as id, 'a' as b, named_struct('p', 1) as s", "renamed", **ADDS)
    project.run("--select", "renamed")
    ids = project.field_ids("renamed")
    config = {**ADDS, "column_renames": {"b": "c", "s.p": "q"}}
    struct = "named_struct('q', cast(2 as bigint), 'r', 1) as s"
    project.model(f"select 2 as id, 'x' as c, {struct}, 5 as d", "renamed", **config)
    table = f"{project.schema}.renamed: "
    made = [f"{table}rename `s`.`p` to `q`", f"{table}rename `b` to `c`"]
    # What was made is told before the error.
    for statement, told in (("TYPE", made), ("ADD COLUMNS", [f"{table}widen `s`.`q` from int to bigint"])):
        with monkeypatch.context() as patched:
            ends_at(patched, statement)
            run = project.fail("--select", "renamed")
            assert "the server is gone" in run.message
            assert [line for line in run.log.splitlines() if line.startswith(table)] == told
    project.run("--select", "renamed")
    assert project.rows("renamed") == [(1, "a", {"q": 1, "r": None}, None), (2, "x", {"q": 2, "r": 1}, 5)]
    assert project.field_ids("renamed")["c"] == ids["b"]


def test_the_case_of_a_name_is_changed(project: Scenario, monkeypatch: pytest.MonkeyPatch) -> None:
    """Which Spark refuses in one statement, as a name that is taken."""
    project.model("select 1 as id, 'a' as qty, named_struct('x', 1) as st", "cased", **ADDS)
    project.run("--select", "cased")
    ids = project.field_ids("cased")
    nested = project.table("cased").schema().find_field("st.x").field_id
    config = {**ADDS, "column_renames": {"qty": "Qty", "st.x": "X"}}
    # Reads a column of its table, which has another name after half of it.
    known = "{% if is_incremental() %}where 0 < (select max(length(qty)) from {{ this }}){% endif %}"
    sql = "select * from (select 2 as id, 'b' as Qty, named_struct('X', 2) as st) "
    project.model(sql + known, "cased", **config)
    between = "qty__sparkevolve_rename_f44fc6cd"
    # Half-way in the first of them, and in the second.
    for statement, columns in (("TO `X`", ["id", "qty", "st"]), ("TO `Qty`", ["id", between, "st"])):
        with monkeypatch.context() as patched:
            ends_at(patched, statement)
            assert "the server is gone" in project.fail("--select", "cased").message
        assert project.columns("cased") == columns
    planned = project.fail("--select", "cased", "--vars", "sparkevolve_plan_only: true")
    assert (
        f"and the next one takes that back first (rename `{between}` to `qty`). A plan changes nothing: if "
        "what is missing is the old name, the model cannot be planned before it has run."
    ) in planned.message
    # Without the rename the name of before is taken back; so it would be in each other run.
    project.model("select 2 as id, 'b' as qty, named_struct('X', 2) as st", "cased", **ADDS)
    frozen = project.fail("--select", "cased", "--vars", "sparkevolve_freeze_schema: true")
    assert f"would change the table's schema: rename `{between}` to `qty`" in frozen.message
    run = project.run("--select", "cased")
    assert (
        f"rename `{between}` to `qty`, since a run has ended while it changed the case of that name"
        in run.log
    )
    assert project.columns("cased") == ["id", "qty", "st"]
    assert project.rows("cased") == [(1, "a", {"X": 1}), (2, "b", {"X": 2})]
    project.sql(f"alter table {project.relation('cased')} rename column qty to {between}")
    # A hook reads it, too.
    hook = "select {{ 'qty' if is_incremental() else 1 }} from {{ this }}"
    project.model(sql + known, "cased", **config, pre_hook=hook)
    for _ in range(2):
        project.run("--select", "cased")
        assert project.columns("cased") == ["id", "Qty", "st"]
        assert project.rows("cased") == [(1, "a", {"X": 1}), (2, "b", {"X": 2})]
    assert list(project.field_ids("cased").values()) == list(ids.values())
    assert project.table("cased").schema().find_field("st.X").field_id == nested


@pytest.mark.parametrize("kind", ["keep", "replace"])
def test_a_full_refresh_that_ends_half_way_leaves_the_rows(
    project: Scenario, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    name = f"refreshed_{kind}"
    config = {**ADDS, "full_refresh_schema": kind}
    project.model("select 1 as id, 'a' as b union all select 2, 'b'", name, **config)
    project.run("--select", name)
    rows = project.rows(name)
    # Iceberg takes no format version back.
    project.sql(f"alter table {project.relation(name)} set tblproperties ('format-version' = '3')")
    project.model("select 3 as id, 1.5 as n", name, **config)
    with monkeypatch.context() as patched:
        ends_at(patched, "CALL" if kind == "keep" else "create or replace")
        assert "the server is gone" in project.fail("--select", name, "--full-refresh").message
    assert [row[:2] for row in project.rows(name)] == rows
    run = project.run("--select", name, "--full-refresh")
    assert [row[0] for row in project.rows(name)] == [3]
    assert project.columns(name) == (["id", "b", "n"] if kind == "keep" else ["id", "n"])
    assert ("since full_refresh_schema is `replace`" in run.log) == (kind == "replace")
    assert project.table(name).metadata.format_version == 3
    assert [table for table in project.tables() if "__dbt_tmp_" in table] == []


def test_hooks_grants_and_clones(project: Scenario) -> None:
    project.writes_artifacts = True
    log = f"{project.schema}.hook_log"
    project.sql(f"create schema if not exists lake.{project.schema}")
    project.sql(f"create table lake.{log} (at string, n bigint) using iceberg")
    count = f"insert into {log} select '%s', count(*) from {{{{ this }}}}"
    outside = {"sql": count % "outside", "transaction": False}
    config = {**ADDS, "pre_hook": [count % "before", outside], "post_hook": [count % "after", outside]}
    project.model("select 1 as id", "hooked", **ADDS)
    project.run("--select", "hooked")
    project.model("select 2 as id union all select 3", "hooked", **config)
    project.run("--select", "hooked")
    # Those outside of a transaction too, which dbt-spark's own materialization leaves out.
    assert project.rows("hook_log") == [("after", 3), ("before", 1), ("outside", 1), ("outside", 3)]
    project.model("select 4 as id", "hooked", **{**config, "post_hook": ["select nope"]})
    assert "nope" in project.fail("--select", "hooked").message
    # It is visible by then, as the README says.
    assert project.rows("hooked") == [(1,), (2,), (3,), (4,)]
    project.model("select 5 as id", "hooked", **{**config, "grants": {"select": ["somebody"]}})
    run = project.fail("--select", "hooked")
    assert "GRANT is not valid" in run.message
    assert "Spark has no GRANT: take `grants` out of model.case.hooked" in run.log
    assert project.rows("hooked") == [(1,), (2,), (3,), (4,)]
    assert len(project.rows("hook_log")) == 6
    state = project.folder / "state"
    shutil.copytree(project.folder / "target", state)
    cloned = project.dbt("clone", "--select", "hooked", "--state", str(state), "--full-refresh")
    # dbt-spark's own.
    assert "shallow clone requires file_format be set to 'delta'" in cloned.message
    assert project.rows("hooked") == [(1,), (2,), (3,), (4,)]


def test_empty_runs_samples_docs_and_unit_tests(project: Scenario) -> None:
    project.file(
        "models/src.sql",
        "{{ config(materialized='table', file_format='iceberg', event_time='at') }}\n"
        "select 1 as id, timestamp '2024-01-01 00:00:00' as at, 10 as v "
        "union all select 2, current_timestamp(), 20",
    )
    project.model(
        "select id, at, v * 2 as v from {{ ref('src') }}\n{% if is_incremental() %}\n"
        "where id > (select max(id) from {{ this }})\n{% endif %}",
        "tested",
        **ADDS,
        persist_docs={"relation": True, "columns": True},
    )
    key = {"name": "id", "description": "The 'key'"}
    new = [{"id": 5, "v": 7}, {"id": 1, "v": 1}]
    unit_test = {
        "name": "only_new",
        "model": "tested",
        "overrides": {"macros": {"is_incremental": True}},
        "given": [{"input": "ref('src')", "rows": new}, {"input": "this", "rows": [{"id": 3, "v": 2}]}],
        "expect": {"rows": [{"id": 5, "v": 14}]},
    }
    model = {"name": "tested", "description": "It's \\ one.", "columns": [key]}
    project.file("models/tested.yml", yaml.safe_dump({"models": [model], "unit_tests": [unit_test]}))
    project.run("--select", "src", "tested")
    assert [row[0] for row in project.rows("tested")] == [1, 2]
    assert project.docs("tested")["id"] == "The 'key'"
    assert project.table("tested").properties["comment"] == "It's \\ one."
    unit = project.dbt("test", "--select", "test_type:unit")
    assert unit.success, unit.log
    before = project.rows("tested")
    project.model("select id, at, v + 1 as v, 1 as extra from {{ ref('src') }}", "tested", **ADDS)
    project.run("--select", "tested", "--empty")
    assert project.columns("tested") == ["id", "at", "v", "extra"]
    assert [row[:3] for row in project.rows("tested")] == before
    project.run("--select", "tested", "--sample", "1 day")
    assert [(row[0], *row[2:]) for row in project.rows("tested")] == [(1, 20, None), (2, 21, 1)]
    docs = project.dbt("docs", "generate")
    assert docs.success, docs.log
    catalog = json.loads((project.folder / "target/catalog.json").read_text(encoding="utf-8"))
    assert list(catalog["nodes"]["model.case.tested"]["columns"]) == ["id", "at", "v", "extra"]
