"""One catalog that Spark and PyIceberg share, with a cache between them."""

import json
import time
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest
from pyiceberg.catalog import Catalog
from pyiceberg.table import Table
from pyiceberg.types import IntegerType, StringType

from dbt.adapters.sparkevolve.iceberg import columns
from tests.functional.harness import Scenario

# A cached table never expires by itself.
CACHE_ON = {
    "spark.sql.catalog.lake.cache-enabled": "true",
    "spark.sql.catalog.lake.cache.expiration-interval-ms": "-1",
}


def test_spark_sees_the_new_column_through_its_cache(
    scenario_factory: Callable[..., Scenario],
) -> None:
    """The catalog's cache is on, and this session holds the table from before the change."""
    scenario = scenario_factory(server_side_parameters=CACHE_ON)
    for name, key in (("t", "id"), ("appended", None)):
        scenario.model("select 1 as id", name=name, unique_key=key)
    scenario.run()
    ids = scenario.field_ids()
    # Read by the hook, by the batch itself, and by a model that comes after.
    hooks = {"pre_hook": "select count(*) from {{ this }}", "post_hook": "select n from {{ this }}"}
    scenario.model("select id, 'x' as n from {{ this }}", **hooks)
    scenario.model(
        "select max(id) + 1 as id, 'x' as n from {{ this }}", name="appended", unique_key=None, **hooks
    )
    setting = "run_query('set `spark.sql.catalog.lake.cache-enabled`').columns[1].values()[0] if execute"
    scenario.model(
        "select id, n, '{{ " + setting + " }}' as cached from {{ ref('t') }}",
        name="after",
        materialized="table",
    )
    run = scenario.run("--threads", "1")
    assert scenario.rows() == [(1, "x")]
    assert scenario.rows("appended") == [(1, None), (2, "x")]
    assert scenario.rows("after") == [(1, "x", "true")], "the cache is on"
    assert scenario.field_ids() == {**ids, "n": 2}
    assert scenario.schemas() == scenario.schemas("appended") == 2
    log = run.log.lower()
    added = log.index(f"{scenario.relation()}: add column `n` string")
    assert added < log.index(f"refresh table {scenario.relation()}", added) < log.index("delete from")
    scenario.run()
    assert scenario.rows() == [(1, "x")]
    assert scenario.rows("appended") == [(1, None), (2, "x"), (3, "x")]
    assert scenario.schemas() == scenario.schemas("appended") == 2
    assert scenario.tables() == ["after", "appended", "t"]


def test_the_batch_reads_what_another_writer_has_committed(
    scenario_factory: Callable[..., Scenario],
) -> None:
    """A batch that is computed from a stale table would overwrite the other writer's row."""
    scenario = scenario_factory(server_side_parameters=CACHE_ON)
    scenario.model("select 1 as id, 'ours' as v", post_hook="select count(*) from {{ this }}")
    scenario.run()
    scenario.sql(f"alter table {scenario.relation()} add column other int")
    scenario.sql(f"insert into {scenario.relation()} values (2, 'theirs', 7)")
    scenario.model("select max(id) + 1 as id, 'ours' as v from {{ this }}")
    scenario.run()
    assert scenario.rows() == [(1, "ours", None), (2, "theirs", 7), (3, "ours", None)]
    assert scenario.schemas() == 2
    assert scenario.tables() == ["t"]


def commit_first(monkeypatch: pytest.MonkeyPatch, other_writer: Callable[[], None]) -> None:
    """Let another writer commit once, between the plan of our run and its commit."""
    ours = columns.commit_changes
    waiting = [other_writer]

    def commit(table: Table, *arguments: Any) -> None:
        if waiting:
            waiting.pop()()
        ours(table, *arguments)

    monkeypatch.setattr(columns, "commit_changes", commit)


@pytest.mark.core
def test_two_writers_add_columns(scenario: Scenario, lake: Catalog, monkeypatch: pytest.MonkeyPatch) -> None:
    scenario.model("select 1 as id")
    scenario.run()

    def other_writer() -> None:
        with lake.load_table((scenario.schema, "t")).update_schema() as update:
            update.add_column("b", StringType())
            update.add_column("C", IntegerType())

    commit_first(monkeypatch, other_writer)
    scenario.model("select 1 as id, 2 as a, 3 as c")
    run = scenario.run()
    # What the other writer has added in the meantime is not added again, and is not said to be ours.
    assert f"{scenario.relation()}: add column `a` int" in run.log
    assert "add column `c`" not in run.log
    assert scenario.field_ids() == {"id": 1, "b": 2, "C": 3, "a": 4}
    assert scenario.types() == {"id": "int", "b": "string", "C": "int", "a": "int"}
    assert scenario.rows() == [(1, None, 3, 2)]
    assert scenario.schemas() == 3
    assert scenario.tables() == ["t"]
    entry = json.loads(scenario.table().properties["sparkevolve.schema.2"])
    assert entry["added"] == ["`a`"]
    scenario.run()
    assert scenario.schemas() == 3


def test_the_other_writer_s_column_has_another_type(
    scenario: Scenario, lake: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    scenario.model("select 1 as id")
    scenario.run()
    before = scenario.rows()

    def other_writer() -> None:
        with lake.load_table((scenario.schema, "t")).update_schema() as update:
            update.add_column("c", StringType())

    commit_first(monkeypatch, other_writer)
    scenario.model("select 1 as id, 2 as a, 3 as c")
    run = scenario.fail()
    assert "Column `c` is string in the table, and the model returns int." in run.message
    assert "delete from" not in run.log.lower()
    assert scenario.columns() == ["id", "c"]
    assert scenario.rows() == [(*before[0], None)]
    assert len(scenario.snapshots()) == 1
    assert scenario.schemas() == 2
    assert scenario.tables() == ["t"]


@pytest.mark.core
def test_another_writer_each_time(scenario: Scenario, lake: Catalog, monkeypatch: pytest.MonkeyPatch) -> None:
    scenario.model("select 1 as id")
    scenario.run()
    ours = columns.commit_changes
    times: list[float] = []

    def commit(table: Table, *arguments: Any) -> None:
        times.append(time.monotonic())
        with lake.load_table((scenario.schema, "t")).update_schema() as update:
            update.add_column(f"b{len(times)}", StringType())
        ours(table, *arguments)

    monkeypatch.setattr(columns, "commit_changes", commit)
    scenario.model("select 1 as id, 2 as a", commit_retries=3)
    run = scenario.fail()
    assert (
        f"The columns of {scenario.relation()} could not be changed in 4 attempts (add column `a` int), "
        "because other writers changed or locked the table each time (last answer: Requirement failed: "
        "current schema id has changed: expected 3, found 4). None of it was done, and no row was written. "
        "Run the model again, or raise `commit_retries`."
    ) in run.message
    # Each wait is at least half of 50, 100, 200 ms.
    waits = [after - before for before, after in pairwise(times)]
    assert all(wait >= least for wait, least in zip(waits, (0.025, 0.05, 0.1), strict=True))
    assert scenario.columns() == ["id", "b1", "b2", "b3", "b4"]
    assert len(scenario.snapshots()) == 1
    assert scenario.tables() == ["t"]


def test_the_answer_of_the_schema_commit_is_lost(scenario: Scenario, monkeypatch: pytest.MonkeyPatch) -> None:
    scenario.model("select 1 as id")
    scenario.run()
    ours = columns.commit_changes

    def commit(table: Table, *arguments: Any) -> None:
        ours(table, *arguments)
        raise OSError("the connection was reset")

    monkeypatch.setattr(columns, "commit_changes", commit)
    scenario.model("select 1 as id, 2 as n")
    run = scenario.run()
    assert f"{scenario.relation()}: add column `n` int" in run.log
    assert scenario.rows() == [(1, 2)]
    assert scenario.schemas() == 2


def test_the_schema_commit_did_not_happen(scenario: Scenario, monkeypatch: pytest.MonkeyPatch) -> None:
    scenario.model("select 1 as id")
    scenario.run()
    before = scenario.state()

    def commit(table: Table, *arguments: Any) -> None:
        raise OSError("the connection was reset")

    monkeypatch.setattr(columns, "commit_changes", commit)
    scenario.model("select 1 as id, 2 as n, 3 as o")
    run = scenario.fail()
    assert (
        f"The columns of {scenario.relation()} could not be changed (add column `n` int; add column `o` "
        "int). The catalog's answer: the connection was reset. None of these changes was made, and no row "
        "was written."
    ) in run.message
    assert scenario.state() == before
    assert scenario.tables() == ["t"]


def test_downstream_models_see_the_new_column_at_once(scenario: Scenario) -> None:
    """Models on other threads and connections select the column in the invocation that adds it."""
    kinds = {"d_table": "table", "d_view": "view", "d_incremental": "incremental"}

    def write_downstream(column: str) -> None:
        for name, kind in kinds.items():
            scenario.model(
                f"select id, {column} from {{{{ ref('t') }}}}",
                name=name,
                materialized=kind,
                unique_key="id" if kind == "incremental" else None,
                on_schema_change="append_new_columns_preserve" if kind == "incremental" else None,
            )

    scenario.model("select 1 as id, 'v' as v")
    write_downstream("v")
    scenario.run()
    scenario.model("select 1 as id, 'v' as v, 'new' as n")
    write_downstream("n")
    run = scenario.run("--threads", "4")
    assert scenario.rows() == [(1, "v", "new")]
    assert scenario.rows("d_table") == [(1, "new")]
    assert scenario.rows("d_incremental") == [(1, None, "new")]
    assert scenario.sql(f"select * from {scenario.relation('d_view')}") == [(1, "new")]
    assert scenario.schemas() == 2
    assert scenario.schemas("d_incremental") == 2
    assert scenario.tables() == ["d_incremental", "d_table", "t"]
    assert {str(node.status) for node in run.result.result} == {"success"}
