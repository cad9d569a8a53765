"""A load of a batch, with a real catalog, and a list of statements in place of Spark."""

import json
import os
import re
import threading
import time
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from dbt.adapters.contracts.connection import AdapterResponse
from dbt_common.clients.agate_helper import empty_table
from dbt_common.exceptions import DbtRuntimeError
from pyiceberg.catalog import Catalog
from pyiceberg.exceptions import CommitFailedException
from pyiceberg.types import IntegerType, StringType, TimeType

import dbt.include.sparkevolve
from dbt.adapters.sparkevolve.cancellation import stopped
from dbt.adapters.sparkevolve.errors import (
    AuditError,
    AuditFailure,
    CatalogUnavailableError,
    ColumnsMovedError,
    ConnectionLostError,
    DetectionError,
    EvolutionRefusedError,
    ModelMovedError,
    NotIcebergError,
    NotOnBranchError,
    PublishConflictError,
    RepeatedKeyError,
    RunCancelledError,
    SessionEndedError,
    StatementError,
    TableChangedError,
    UnreadableQueryError,
)
from dbt.adapters.sparkevolve.evolution.detection import Detected
from dbt.adapters.sparkevolve.iceberg import retry
from dbt.adapters.sparkevolve.iceberg.base import Base
from dbt.adapters.sparkevolve.iceberg.branches import branch_name
from dbt.adapters.sparkevolve.iceberg.catalog import IcebergCatalog
from dbt.adapters.sparkevolve.iceberg.catalogs import Catalogs
from dbt.adapters.sparkevolve.iceberg.publication import Claim, Published
from dbt.adapters.sparkevolve.iceberg.staging import HOST, OWNER_PROPERTY, staging_properties
from dbt.adapters.sparkevolve.listing import Listing
from dbt.adapters.sparkevolve.load.batches import Batches
from dbt.adapters.sparkevolve.load.dead_letters import DeadLetters
from dbt.adapters.sparkevolve.load.letters import Letters, PublishedLetters
from dbt.adapters.sparkevolve.load.load import Load
from dbt.adapters.sparkevolve.load.node import Node
from dbt.adapters.sparkevolve.load.queries import Queries
from dbt.adapters.sparkevolve.load.runner import LoadRunner
from dbt.adapters.sparkevolve.load.shared import SharedByThreads
from dbt.adapters.sparkevolve.spark.session_errors import translated
from dbt.adapters.sparkevolve.spark.sql_settings import whole_plans
from dbt.adapters.sparkevolve.sql.audit_queries import count_violations, loaded_rows, some_violations
from dbt.adapters.sparkevolve.sql.batch_queries import repeated_keys
from dbt.adapters.sparkevolve.sql.branch_statements import drop_branch
from dbt.adapters.sparkevolve.sql.spark_types import no_rows, types_query
from tests.unit.conftest import MakeTable
from tests.unit.helpers import (
    DEFAULTS,
    answering,
    append,
    columns,
    model_settings,
    relation,
    struct,
    written_at,
)
from tests.unit.macros import detect_schema_change

TARGET, STAGED = relation("t"), relation("t__dbt_tmp_0123456789ab")
MAIN = "`lake`.`db`.`t`"
ROW: dict[str, object] = {"ID": 1, "x": 2}
SAME: dict[str, list[str]] = {"new": [], "removed": []}
LEFT_OVER = "sparkevolve_ffffffff_1_00000000_0123abcd"


def by_name(base: Base, batch: str) -> dict[str, list[str]]:
    """Return what the macros detect of a batch of these columns."""
    return detect_schema_change([f.name for f in columns(batch).fields], base.columns)


Answer = Exception | list[list[Any]] | Callable[[str], None] | None


class Session:
    """Takes statements down in place of Spark, and gives the next of the answers to each."""

    def __init__(self) -> None:
        self.sent: list[str] = []
        self.answers: list[Answer] = []

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        self.sent.append(sql)
        answer = self.answers.pop(0) if self.answers else None
        if isinstance(answer, Exception):
            raise answer
        if callable(answer):
            answer(sql)
            answer = None
        return [tuple(row) for row in answer or []]

    def run(self, sql: str) -> tuple[Any, Any]:
        self.rows(sql)
        return AdapterResponse("sent"), empty_table()

    def setting(self, name: str) -> str | None:
        rows = self.rows(f"SET {name}")
        return str(rows[0][1]) if rows and rows[0][1] != "<undefined>" else None

    def explain(self, sql: str) -> str:
        return str(self.rows(f"EXPLAIN EXTENDED {sql}")[0][0])

    def columns_of(self, sql: str) -> Any:
        self.sent.append(sql)
        return self.answers.pop(0) if self.answers else ((), None)

    def reconnect(self) -> None:
        self.sent.append("-- reconnect")

    def set_partition_overwrite(self, mode: str | None) -> None:
        self.sent.append(f"-- {mode}")


class Run:
    """All that one node uses, with a real catalog."""

    def __init__(self, catalog: IcebergCatalog, shared: SharedByThreads | None = None) -> None:
        self.catalog = catalog
        self.spark = Session()
        self.node = Node()
        self.shared = shared or SharedByThreads()
        self.runner = LoadRunner(catalog, self.spark, self.node, self.shared)
        self.queries = Queries(self.spark, catalog.capabilities.reads_types, self.node)
        self.batches = Batches(catalog, Cache(), self.node)

    def load_all(self, load: Load) -> None:
        for step in range(len(load.steps)):
            self.runner.run_step(load, step)


class Cache:
    """dbt's cache of relations."""

    def __init__(self, *listed: Any) -> None:
        self.listed = listed
        self.dropped: list[Any] = []

    def list_relations(self, database: str | None, schema: str) -> Any:
        return self.listed

    def cache_dropped(self, relation: Any) -> str:
        self.dropped.append(relation)
        return ""


@pytest.fixture(autouse=True)
def _waits_are_short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retry, "FIRST_WAIT_SECONDS", 0.001)


@pytest.fixture
def run(lake: IcebergCatalog) -> Run:
    return Run(lake)


@pytest.fixture
def start(run: Run, make_table: MakeTable) -> Callable[..., Load]:
    """Begin a load of rows into a table that has a row."""

    def started(*rows: dict[str, object], batch: str = "ID int, x int", **settings: Any) -> Load:
        make_table(columns("id int, x int"), [{"id": 1, "x": 1}])
        make_table(columns(batch), *([list(rows)] if rows else []), name=str(STAGED.identifier))
        base = run.runner.begin_load(TARGET)
        return run.runner.evolve(base, TARGET, STAGED, model_settings(**settings), {}, by_name(base, batch))

    return started


Start = Callable[..., Load]


def cut(other: Catalog, load: Load, branch: str | None = None) -> None:
    """Do what the statement that cuts a branch off does."""
    with other.load_table("db.t").manage_snapshots() as manage:
        manage.create_branch(load.base.cut_at or 0, branch or str(load.branch), max_ref_age_ms=86_400_000)


def insert(other: Catalog, load: Load, x: int = 5) -> None:
    """Do what an INSERT into the branch does."""
    append(other.load_table("db.t"), [{"id": 1, "x": x}], str(load.branch))


def xs(lake: IcebergCatalog) -> list[int]:
    return sorted(row["x"] for row in lake.load(TARGET).scan().to_arrow().to_pylist())


def refs(lake: IcebergCatalog) -> set[str]:
    return set(lake.load(TARGET).metadata.refs)


# Beginning


def test_a_run_takes_back_half_a_change_of_case_before_it_looks_at_its_model(
    run: Run, lake: IcebergCatalog, make_table: MakeTable
) -> None:
    between = "x__sparkevolve_rename_9dd4e461"
    make_table(columns(f"id int, {between} int, y__sparkevolve_rename int"), [{"id": 1, between: 2}])
    frozen = model_settings(frozen_for="model.p.t")
    base = run.runner.begin_load(TARGET)
    change = f"rename `{between}` to `x`"
    with pytest.raises(EvolutionRefusedError, match=f"would change the table's schema: {change}."):
        run.runner.end_renames(base, TARGET, frozen)
    # A preview is as if it was done.
    assert base.as_before.columns == ["id", "x", "y__sparkevolve_rename"]
    assert list(map(str, base.as_before.ends)) == [change]
    assert base.columns == lake.load(TARGET).schema().column_names

    base = run.runner.end_renames(base, TARGET, model_settings())
    assert base.columns == ["id", "x", "y__sparkevolve_rename"] == lake.load(TARGET).schema().column_names
    assert run.node.changed == [change]
    assert xs(lake) == [2]
    assert base.as_before is base
    assert run.runner.end_renames(base, TARGET, frozen) is base


def test_a_run_removes_branches_that_others_have_left(
    run: Run, other: Catalog, make_table: MakeTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_table(columns("id int"), [{"id": 1}])
    for name in (LEFT_OVER, LEFT_OVER.replace("_1_", "_2_"), branch_name(), "somebody_s"):
        with other.load_table("db.t").manage_snapshots() as manage:
            manage.create_branch(other.load_table("db.t").metadata.current_snapshot_id or 0, name)
    real = time.time
    monkeypatch.setattr(time, "time", lambda: 10.0**10)
    assert run.runner.begin_load(TARGET).left_over == ()  # our clock may be ahead
    written_at(other.load_table("db.t"), 10**13)
    monkeypatch.setattr(time, "time", real)
    assert run.runner.begin_load(TARGET).left_over == ()  # somebody's clock was ahead
    monkeypatch.setattr(time, "time", lambda: 10.0**10)
    assert run.spark.sent == []
    run.spark.answers = [DbtRuntimeError("another run has removed it")]
    base = run.runner.begin_load(TARGET)
    assert run.spark.sent == [
        drop_branch(MAIN, LEFT_OVER),
        drop_branch(MAIN, LEFT_OVER.replace("_1_", "_2_")),
    ]
    assert base.head == other.load_table("db.t").metadata.current_snapshot_id


@pytest.mark.parametrize(("shown", "ref"), [("<undefined>", "main"), ("audit", "audit")])
def test_spark_is_asked_for_the_branch_that_writes_are_reserved_to(
    run: Run, make_table: MakeTable, shown: str, ref: str
) -> None:
    make_table(columns("id int"), [{"id": 1}], properties={"write.wap.enabled": "true"})
    unset = [["spark.wap.id", "<undefined>"]]
    run.spark.answers = [[["spark.wap.branch", shown]], unset]
    assert run.runner.begin_load(TARGET).ref == ref
    assert run.spark.sent == ["SET spark.wap.branch", "SET spark.wap.id"]


def test_a_session_that_keeps_each_statements_rows_apart_is_refused(run: Run, make_table: MakeTable) -> None:
    make_table(columns("id int"), [{"id": 1}], properties={"write.wap.enabled": "true"})
    run.spark.answers = [[["spark.wap.branch", "<undefined>"]], [["spark.wap.id", "abc"]]]
    with pytest.raises(
        NotOnBranchError, match=r"the session's `spark\.wap\.id` keeps each statement's rows apart"
    ):
        run.runner.begin_load(TARGET)


def test_a_run_that_has_nothing_to_remove_asks_spark_nothing(run: Run, start: Start) -> None:
    load = start(ROW)
    assert run.spark.sent == []
    assert run.node.load is load
    assert load.batch.rows == 1


def test_a_batch_that_cannot_be_loaded_is_refused_before_anything_is_cut(run: Run, start: Start) -> None:
    with pytest.raises(EvolutionRefusedError) as raised:
        start({"ID": "a"}, batch="ID string", strategy="full_refresh")
    assert "With `full_refresh_schema: replace`" in raised.value.msg
    assert raised.value.relation == MAIN
    with pytest.raises(EvolutionRefusedError) as raised:
        run.runner.evolve(run.runner.begin_load(TARGET), TARGET, STAGED, DEFAULTS, {}, SAME)
    assert "full_refresh_schema" not in raised.value.msg
    assert run.node.load is None


def test_a_plan_that_differs_from_what_was_detected_is_not_carried_out(
    run: Run, other: Catalog, make_table: MakeTable
) -> None:
    """Python is told in vain of what is not so: nobody may be told one thing while another is done."""
    make_table(columns("id int, x int"), [{"id": 1, "x": 1}])
    make_table(columns("ID int, New int"), [{"ID": 1, "New": 2}], name=str(STAGED.identifier))
    base = run.runner.begin_load(TARGET)
    detected = {"new": [], "removed": ["x"]}
    with pytest.raises(DetectionError) as raised:
        run.runner.evolve(base, TARGET, STAGED, DEFAULTS, {}, detected)
    assert raised.value.msg == (
        f"The columns of {MAIN} were compared twice, with different results, so nothing more was written. By "
        "name: In the model only: none. In the table only: x. By the plan: In the model only: New. In the "
        "table only: x. This is a fault of dbt-sparkevolve: please report it with this text."
    )
    assert raised.value.relation == MAIN
    assert raised.value.detected == Detected([], ["x"])
    assert raised.value.planned == Detected(("New",), ("x",))
    assert [f.name for f in other.load_table("db.t").schema().fields] == ["id", "x"]
    run.runner.evolve(base, TARGET, STAGED, DEFAULTS, {}, by_name(base, "ID int, New int"))
    assert [f.name for f in other.load_table("db.t").schema().fields] == ["id", "x", "New"]


def test_columns_that_another_writer_has_changed_meanwhile_are_planned_or_refused(
    run: Run, other: Catalog, make_table: MakeTable
) -> None:
    """What was detected is of the table as it was before the model was computed."""
    make_table(columns("id int, x int"), [{"id": 1, "x": 1}])
    make_table(columns("id int, x int"), [{"id": 1, "x": 2}], name=str(STAGED.identifier))
    base = run.runner.begin_load(TARGET)
    failing = model_settings(on_schema_change="fail", add_columns=False)
    with other.load_table("db.t").update_schema() as change:
        change.add_column("theirs", StringType())
    with pytest.raises(ColumnsMovedError) as raised:
        run.runner.evolve(base, TARGET, STAGED, failing, {}, SAME)
    assert raised.value.msg == (
        f"Another writer has changed the columns of {MAIN} while this run computed its model. They differ "
        "from the model's now, and on_schema_change is 'fail', so nothing was written. In the model only: "
        "none. In the table only: theirs. Change the model, or set on_schema_change to "
        "'append_new_columns_preserve'."
    )
    assert raised.value.relation == MAIN
    assert (raised.value.new, raised.value.removed) == ((), ("theirs",))
    load = run.runner.evolve(base, TARGET, STAGED, DEFAULTS, {}, SAME)
    assert list(load.removed) == ["`theirs`"]
    # A full refresh under `fail` may change the table's columns, and so may this.
    refreshed = model_settings(failing, strategy="full_refresh", add_columns=True)
    assert run.runner.evolve(base, TARGET, STAGED, refreshed, {}, SAME).removed == load.removed
    # Or it was changed to what the model returns.
    with other.load_table("db.t").update_schema() as change:
        change.delete_column("theirs")
    assert run.runner.evolve(base, TARGET, STAGED, failing, {}, SAME).changes == []


def test_columns_that_the_model_has_gained_since_its_analysis_are_planned_or_refused(
    run: Run, other: Catalog, make_table: MakeTable
) -> None:
    """A folder of files that the model reads may get one with another column in between."""
    make_table(columns("id int, x int"), [{"id": 1, "x": 1}])
    make_table(columns("id int, New int"), [{"id": 1, "New": 2}], name=str(STAGED.identifier))
    base = run.runner.begin_load(TARGET)
    failing = model_settings(on_schema_change="fail", add_columns=False)
    with pytest.raises(ColumnsMovedError) as raised:
        run.runner.evolve(base, TARGET, STAGED, failing, {}, SAME, ["ID", "X"])
    assert raised.value.msg == (
        f"The columns that the model of {MAIN} returns have changed while this run computed it, with "
        "something that it reads. They differ from the table's now, and on_schema_change is 'fail', so "
        "nothing was written. In the model only: New. In the table only: x. Change the model, or set "
        "on_schema_change to 'append_new_columns_preserve'."
    )
    assert (raised.value.new, raised.value.removed) == (("New",), ("x",))
    assert [f.name for f in other.load_table("db.t").schema().fields] == ["id", "x"]
    load = run.runner.evolve(base, TARGET, STAGED, DEFAULTS, {}, SAME, ["ID", "X"])
    assert (load.changes, list(load.removed)) == (["add column `New` int"], ["`x`"])


def test_what_was_detected_is_checked_if_the_model_still_returns_the_same_columns(
    run: Run, make_table: MakeTable
) -> None:
    make_table(columns("id int"), [{"id": 1}])
    make_table(columns("id int, New int"), [{"id": 1, "New": 2}], name=str(STAGED.identifier))
    base = run.runner.begin_load(TARGET)
    with pytest.raises(DetectionError):
        run.runner.evolve(base, TARGET, STAGED, DEFAULTS, {}, SAME, ["new", "id"])
    # dbt's own columns in the query are none of the batch's.
    ours = model_settings(DEFAULTS, bookkeeping=("dbt_change_type",))
    with pytest.raises(DetectionError):
        run.runner.evolve(base, TARGET, STAGED, ours, {}, SAME, ["New", "id", "DBT_change_type"])


def test_a_refusal_after_another_writers_change_says_what_the_run_has_changed(
    run: Run, other: Catalog, start: Start
) -> None:
    """In each place where a later attempt may be refused."""
    start({"ID": 1, "n": 5}, batch="ID int, n int")
    with other.load_table("db.t").update_schema() as change:
        change.delete_column("n")
    with other.load_table("db.t").update_schema() as change:
        change.add_column("n", StringType())
    base = run.runner.begin_load(TARGET)
    text = "This run has changed the table before (add column `n` int), and that stays:"
    query = {"sql": "select 1", "columns": ["ID", "n"]}
    for attempt in (
        lambda: run.runner.evolve(base, TARGET, STAGED, DEFAULTS, {}, SAME),
        lambda: run.runner.conform_snapshot(base, TARGET, STAGED, DEFAULTS, query),
    ):
        with pytest.raises(EvolutionRefusedError) as raised:
            attempt()
        assert text in raised.value.msg
        assert "nothing was written" not in raised.value.msg
        assert raised.value.changed == ("add column `n` int",)
    with other.load_table("db.t").update_schema() as change:
        change.add_column("clock", TimeType())
    with pytest.raises(EvolutionRefusedError) as raised:
        run.runner.begin_load(TARGET)
    assert text in raised.value.msg


def test_a_snapshot_adds_no_field_to_a_table_that_has_taken_the_name(
    run: Run, other: Catalog, make_table: MakeTable
) -> None:
    make_table(columns("id int, s", s=struct(3, x=IntegerType())))
    make_table(
        columns("id int, s", s=struct(3, x=IntegerType(), y=IntegerType())), name=str(STAGED.identifier)
    )
    base = run.runner.begin_load(TARGET)
    query = {"sql": "select 1", "columns": ["id", "s"]}
    other.drop_table("db.t")
    make_table(columns("id int, s", s=struct(3, x=IntegerType())))
    schema = other.load_table("db.t").schema()
    with pytest.raises(TableChangedError):
        run.runner.conform_snapshot(base, TARGET, STAGED, DEFAULTS, query)
    assert other.load_table("db.t").schema() == schema
    conforming = run.runner.conform_snapshot(run.runner.begin_load(TARGET), TARGET, STAGED, DEFAULTS, query)
    assert conforming["changes"] == ["add field `s`.`y` int"]
    assert other.load_table("db.t").schema().find_field("s.y").field_id == 4


# Publishing


def test_a_load_is_published(run: Run, lake: IcebergCatalog, other: Catalog, start: Start) -> None:
    load = start(ROW)
    cut(other, load)
    insert(other, load)
    assert run.runner.publish(load, is_last=False)
    assert load.branch is None
    assert xs(lake) == [1, 5]
    assert refs(lake) == {"main"}
    assert run.spark.sent == []


def test_a_load_that_changes_nothing_leaves_no_branch(
    run: Run, lake: IcebergCatalog, other: Catalog, start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    load = start(ROW, unique_key="id", strategy="merge", merge_update_columns=["id"])
    cut(other, load)
    assert run.runner.publish(load, is_last=False)
    assert load.branch is None
    assert refs(lake) == {"main"}


def test_rows_that_are_not_on_their_branch_are_an_error(
    run: Run, lake: IcebergCatalog, other: Catalog, start: Start
) -> None:
    load = start(ROW)
    cut(other, load)
    with pytest.raises(NotOnBranchError) as raised:
        run.runner.publish(load, is_last=True)
    assert raised.value.relation == MAIN
    assert "its rows are not on the branch that they were written to" in raised.value.msg
    assert xs(lake) == [1]


def test_a_branch_of_nothing_that_cannot_be_removed_is_no_error(
    run: Run, lake: IcebergCatalog, other: Catalog, start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    load = start(ROW, unique_key="id", strategy="merge")
    cut(other, load)
    answering(lake, monkeypatch, OSError("disk full"))
    assert run.runner.publish(load, is_last=True)
    assert xs(lake) == [1]


def test_a_table_that_has_moved_is_loaded_again_unless_it_was_the_last_time(
    run: Run, lake: IcebergCatalog, other: Catalog, start: Start
) -> None:
    load = start(ROW, commit_retries=2)
    cut(other, load)
    insert(other, load)
    append(other.load_table("db.t"), [{"id": 9, "x": 9}])
    with pytest.raises(PublishConflictError) as raised:
        run.runner.publish(load, is_last=True)
    assert (raised.value.relation, raised.value.attempts) == (MAIN, 3)
    assert refs(lake) == {"main", load.branch}
    assert not run.runner.publish(load, is_last=False)
    assert refs(lake) == {"main"}
    assert xs(lake) == [1, 9]


EXPIRED = "Cannot set `sparkevolve_x` to unknown snapshot: 7"


@pytest.mark.parametrize("config", [{}, {"publish": "direct", "removed_columns": "keep"}])
@pytest.mark.parametrize("is_last", [False, True])
def test_a_base_that_has_expired_is_a_reason_to_begin_again(
    run: Run, start: Start, config: dict[str, Any], is_last: bool
) -> None:
    load = start({"ID": 1}, batch="ID int", unique_key="id", **config)
    run.spark.answers = [DbtRuntimeError(EXPIRED)]
    cut_at_first = load.steps[0]
    assert cut_at_first.startswith("ALTER TABLE")
    run.load_all(load)
    run.runner.audit(load)
    assert run.spark.sent == [cut_at_first]
    if not is_last:
        assert run.runner.publish(load, is_last) is False
        return
    with pytest.raises(PublishConflictError) as raised:
        run.runner.publish(load, is_last)
    assert (raised.value.attempts, raised.value.is_loaded) == (5, False)


def test_a_base_that_has_expired_when_a_load_is_tried_again(
    run: Run, start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retry, "FIRST_WAIT_SECONDS", 0.0)
    load = start(ROW, unique_key="id")
    cut_off, first = load.steps[:2]
    run.runner.run_step(load, 0)
    run.spark.answers = [DbtRuntimeError("Cannot commit"), DbtRuntimeError(EXPIRED)]
    run.runner.run_step(load, 1)
    assert len(load.lost_branches) == 1
    assert run.spark.sent == [cut_off, first, load.cut]
    for step in (1, 2):
        run.runner.run_step(load, step)
    assert len(run.spark.sent) == 3
    assert run.runner.publish(load, is_last=False) is False


@pytest.mark.parametrize("text", [EXPIRED, "Cannot find snapshot with ID 7", "no such thing"])
def test_only_the_cut_can_tell_that_a_base_has_expired(run: Run, start: Start, text: str) -> None:
    """Another statement's text may have the words from anywhere."""
    load = start(ROW, unique_key="id")
    run.runner.run_step(load, 0)
    run.spark.answers = [DbtRuntimeError(text)]
    with pytest.raises(DbtRuntimeError):
        run.runner.run_step(load, 1)
    assert not load.is_overtaken


def test_a_name_that_is_newer_than_what_a_branch_is_cut_from(
    run: Run, lake: IcebergCatalog, other: Catalog, start: Start
) -> None:
    """Which Iceberg finds in the table's last snapshot, but no more once another writer has made one."""
    load = start(ROW, unique_key="id")
    run.runner.run_step(load, 0)
    unknown = "Cannot find field 'n' in struct: struct<1: id: optional int>"
    run.spark.answers = [DbtRuntimeError(unknown), DbtRuntimeError(unknown)]
    with pytest.raises(DbtRuntimeError):
        run.runner.run_step(load, 1)
    append(other.load_table("db.t"), [{"id": 9, "x": 9}])
    for step in (1, 2):
        run.runner.run_step(load, step)
    assert len(run.spark.sent) == 3
    assert run.runner.publish(load, is_last=False) is False


def test_a_conflict_without_retries_is_told_as_what_it_is(
    run: Run, lake: IcebergCatalog, other: Catalog, start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    load = start(ROW, commit_retries=0)
    cut(other, load)
    insert(other, load)
    real = lake.access.opened.commit_table

    def commit_table(*args: Any) -> Any:
        append(other.load_table("db.t"), [{"id": 9, "x": 9}])
        return real(*args)

    monkeypatch.setattr(lake.access.opened, "commit_table", commit_table)
    with pytest.raises(PublishConflictError):
        run.runner.publish(load, is_last=True)
    assert xs(lake) == [1, 9]


@pytest.mark.parametrize("rows", [[ROW], []])
def test_a_direct_load_and_an_empty_one_have_nothing_to_publish(
    run: Run, lake: IcebergCatalog, start: Start, rows: list[dict[str, object]]
) -> None:
    load = start(*rows, publish="direct" if rows else "branch")
    before = lake.load(TARGET).metadata_location
    assert run.runner.publish(load, is_last=True)
    assert lake.load(TARGET).metadata_location == before


def test_at_its_end_a_node_gives_back_what_it_has(
    run: Run, lake: IcebergCatalog, other: Catalog, start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    load = start(ROW)
    cut(other, load)
    run.node.staged.append(STAGED)
    assert run.runner.wait_for_turn(load)
    lock = run.node.lock
    assert lock is not None
    assert lock.locked()
    run.batches.give_back()
    assert refs(lake) == {"main"}
    assert lake.find(STAGED) is None
    assert not lock.locked()


# Several threads


def test_a_second_thread_waits_and_finds_out_whether_the_table_has_moved(
    run: Run, lake: IcebergCatalog, other: Catalog, start: Start
) -> None:
    first = start(ROW)
    cut(other, first)
    insert(other, first)
    assert run.runner.wait_for_turn(first)
    answers: dict[str, bool] = {}
    waiting = threading.Event()

    def work(name: str) -> None:
        mine = Run(lake, run.shared)
        load = mine.runner.evolve(mine.runner.begin_load(TARGET), TARGET, STAGED, DEFAULTS, {}, SAME)
        waiting.set()
        answers[name] = mine.runner.wait_for_turn(load)
        answers[f"{name} again"] = mine.runner.wait_for_turn(load)
        mine.batches.give_back()

    second = threading.Thread(target=work, args=("moved",), daemon=True)
    second.start()
    assert waiting.wait(20)
    assert run.runner.publish(first, is_last=True)
    run.batches.give_back()
    second.join(20)
    assert answers == {"moved": False, "moved again": True}
    assert xs(lake) == [1, 5]


def test_a_second_thread_that_waits_for_nothing_new_goes_on(run: Run, start: Start) -> None:
    first = start(ROW)
    assert run.runner.wait_for_turn(first)
    answers: list[bool] = []
    waiting = threading.Event()

    def work() -> None:
        mine = Run(run.catalog, run.shared)
        load = mine.runner.evolve(mine.runner.begin_load(TARGET), TARGET, STAGED, DEFAULTS, {}, SAME)
        waiting.set()
        answers.append(mine.runner.wait_for_turn(load))
        mine.batches.give_back()

    second = threading.Thread(target=work, daemon=True)
    second.start()
    assert waiting.wait(20)
    run.batches.give_back()
    second.join(20)
    assert answers == [True]


def test_direct_loads_do_not_wait(run: Run, start: Start) -> None:
    assert run.runner.wait_for_turn(start(ROW, publish="direct"))
    assert run.node.lock is None


# Audits


AUDITS = ["x > 0", "id is not null"]


def test_loaded_rows_are_audited(run: Run, lake: IcebergCatalog, other: Catalog, start: Start) -> None:
    load = start(ROW, audits=AUDITS, unique_key="id")
    cut(other, load)
    insert(other, load)
    rows = loaded_rows(load.written, lake.added_files(TARGET, str(load.branch)), str(STAGED), None)
    run.spark.answers = [[[2, 0]], [["7"], [None]]]
    with pytest.raises(AuditError) as raised:
        run.runner.audit(load)
    assert raised.value.failures == (AuditFailure("x > 0", 2, ("id",), (("7",), (None,))),)
    assert raised.value.relation == MAIN
    assert run.spark.sent == [
        count_violations(rows, AUDITS),
        some_violations(rows, "x > 0", ["id"], 3),
    ]
    run.spark.answers = [[[0, 0]]]
    run.runner.audit(load)


def test_rows_without_a_key_are_told_apart_by_their_first_columns(
    run: Run, lake: IcebergCatalog, other: Catalog, start: Start
) -> None:
    load = start({"a": 1, "b": 1, "c": 1}, batch="a int, b int, c int", audits=["c > 1"], strategy="append")
    cut(other, load)
    insert(other, load)
    run.spark.answers = [[[1]], [["1", "2", "3", "4"]]]
    with pytest.raises(AuditError) as raised:
        run.runner.audit(load)
    assert raised.value.failures[0].columns == ("id", "x", "a", "b")


def test_of_a_merge_only_rows_of_the_batch_are_audited(
    run: Run, lake: IcebergCatalog, other: Catalog, start: Start
) -> None:
    load = start(
        ROW, audits=["x > 0"], unique_key="id", strategy="merge", predicates=["DBT_INTERNAL_SOURCE.x > 1"]
    )
    cut(other, load)
    insert(other, load)
    run.spark.answers = [[[0]]]
    run.runner.audit(load)
    files = lake.added_files(TARGET, str(load.branch))
    assert run.spark.sent == [
        count_violations(loaded_rows(load.written, files, str(STAGED), load.merge_key), ["x > 0"])
    ]
    assert "DBT_INTERNAL_SOURCE.x > 1" not in run.spark.sent[0]


def test_what_has_no_audits_or_loads_no_rows_is_not_audited(run: Run, other: Catalog, start: Start) -> None:
    load = start(audits=["x > 0"], strategy="full_refresh")
    cut(other, load)
    insert(other, load)
    run.runner.audit(load)
    bare = run.runner.evolve(load.base, TARGET, STAGED, DEFAULTS, {}, SAME)
    run.runner.audit(bare)
    assert run.spark.sent == []


def test_a_branch_to_which_no_file_was_added_is_not_audited(run: Run, other: Catalog, start: Start) -> None:
    load = start(ROW, audits=["x > 0"])
    run.runner.audit(load)
    assert run.spark.sent == []


@pytest.mark.parametrize(("unique_key", "shown"), [(None, ["a", "b", "c", "d"]), ("`c`", ["c"])])
def test_the_rows_of_a_new_table_are_audited_where_they_are_staged(
    run: Run, make_table: MakeTable, unique_key: str | None, shown: list[str]
) -> None:
    make_table(columns("a int, b int, c int, d int, e int"), name=str(STAGED.identifier))
    settings = model_settings(audits=["a > 0"], unique_key=unique_key)
    run.spark.answers = [[[1]], [["1"] * len(shown)]]
    with pytest.raises(AuditError) as raised:
        run.runner.audit_staged(TARGET, STAGED, settings)
    assert raised.value.failures == (AuditFailure("a > 0", 1, tuple(shown), (tuple(["1"] * len(shown)),)),)
    rows = f"SELECT * FROM {STAGED}"
    assert run.spark.sent == [
        count_violations(rows, ["a > 0"]),
        some_violations(rows, "a > 0", shown, 3),
    ]
    run.spark.sent.clear()
    run.runner.audit_staged(TARGET, STAGED, DEFAULTS)
    assert run.spark.sent == []


# Statements that fail, and connections that are lost


UNKNOWN = "org.apache.iceberg.exceptions.CommitStateUnknownException"
NO_ANSWER = "org.apache.iceberg.exceptions.RESTException: Error occurred while processing POST request"
NO_DATABASE = (
    "org.apache.iceberg.jdbc.UncheckedSQLException: Unknown failure\n"
    "Caused by: org.postgresql.util.PSQLException: An I/O error occurred while sending to the backend.\n"
    "Caused by: java.io.EOFException"
)
LOST = ConnectionLostError("a statement", "BrokenPipeError")


def test_a_statement_of_a_direct_load_is_not_sent_again(run: Run, start: Start) -> None:
    load = start(ROW, publish="direct")
    run.spark.answers = [LOST]
    with pytest.raises(ConnectionLostError):
        run.runner.run_step(load, 0)
    assert run.spark.sent == [load.steps[0]]


def test_a_step_that_has_committed_is_not_sent_again(run: Run, other: Catalog, start: Start) -> None:
    load = start(ROW)
    steps = load.steps
    assert len(steps) == 2

    def loses(what: Callable[[], None]) -> Callable[[str], None]:
        def answer(sql: str) -> None:
            what()
            raise LOST

        return answer

    run.spark.answers = [loses(lambda: cut(other, load)), loses(lambda: insert(other, load))]
    run.runner.run_step(load, 0)
    response, rows = run.runner.run_step(load, 1)
    assert str(response) == "OK"
    assert len(rows) == 0
    assert run.spark.sent == [steps[0], "-- reconnect", steps[1], "-- reconnect"]
    assert load.steps == steps


def test_a_step_that_has_not_committed_is_done_again_on_a_new_branch(
    run: Run, lake: IcebergCatalog, other: Catalog, start: Start
) -> None:
    load = start(ROW, unique_key="id")
    old, steps = str(load.branch), load.steps
    cut(other, load)
    run.spark.answers = [LOST]
    run.runner.run_step(load, 2)
    assert load.branch != old
    assert run.spark.sent == [steps[2], "-- reconnect", *load.steps]
    assert load.steps == [step.replace(old, str(load.branch)) for step in steps]
    # The server may still write to the old one, and would recreate it if it were gone.
    assert load.lost_branches == [old]
    assert refs(lake) == {"main", old}


def test_what_was_done_again_is_looked_at_when_that_is_lost_too(
    run: Run, other: Catalog, start: Start
) -> None:
    load = start(ROW)

    def commits_and_is_lost(sql: str) -> None:
        cut(other, load)
        insert(other, load)
        raise LOST

    run.spark.answers = [LOST, None, commits_and_is_lost]
    run.runner.run_step(load, 1)
    assert [sql for sql in run.spark.sent if sql.startswith("INSERT")][1:] == [load.steps[1]]
    assert run.spark.sent.count("-- reconnect") == 2


CONFLICT = DbtRuntimeError("Table metadata refresh is required")
# As Spark says them, of which the names of Iceberg's exceptions are cut off.
LATER_IN_A_DATABASE, NOBODY_KNOWS = (
    translated(Exception(f"org.apache.iceberg.exceptions.{text}"), "INSERT")
    for text in (
        "CommitFailedException: Failed to update table shop.t from catalog lake",
        "CommitStateUnknownException: bad gateway\nCannot determine whether the commit was successful or not",
    )
)


@pytest.mark.parametrize("number", [0, 1, 2])
@pytest.mark.parametrize(
    "error", [CONFLICT, LATER_IN_A_DATABASE, NOBODY_KNOWS], ids=["met", "sql", "unknown"]
)
def test_a_step_that_met_another_writer_is_done_again_on_a_new_branch(
    run: Run, start: Start, error: Exception, number: int
) -> None:
    load = start(ROW, unique_key="id")
    old, steps = str(load.branch), load.steps
    run.spark.answers = [error]
    run.runner.run_step(load, number)
    assert load.lost_branches == [old]
    assert run.spark.sent == [steps[number], *load.steps[: number + 1]]
    assert old not in "".join(load.steps)


def test_other_writers_each_time_are_an_error(run: Run, start: Start) -> None:
    load = start(ROW, commit_retries=2)
    run.spark.answers = [CONFLICT] * 4
    with pytest.raises(DbtRuntimeError, match=r"^Runtime Error\n  Table metadata refresh is required$"):
        run.runner.run_step(load, 0)
    assert len(run.spark.sent) == 4
    assert len(set(run.spark.sent)) == 4


def test_any_other_failure_stays_one(run: Run, start: Start) -> None:
    load = start(ROW)
    run.spark.answers = [DbtRuntimeError("DIVIDE_BY_ZERO")]
    with pytest.raises(DbtRuntimeError, match="DIVIDE_BY_ZERO"):
        run.runner.run_step(load, 0)
    assert len(run.spark.sent) == 1


def test_a_connection_that_is_lost_again_and_again_is_an_error(run: Run, start: Start) -> None:
    load = start(ROW)
    run.spark.answers = [LOST] * 4
    with pytest.raises(ConnectionLostError):
        run.runner.run_step(load, 0)
    assert run.spark.sent.count("-- reconnect") == 3
    assert len({sql for sql in run.spark.sent if sql.startswith("ALTER")}) == 4


@pytest.mark.parametrize(
    ("options", "mode"),
    [
        ({"strategy": "insert_overwrite", "partition_by": None}, ["-- static"]),
        ({"strategy": "full_refresh"}, ["-- static"]),
        ({"strategy": "append"}, []),
    ],
)
def test_a_new_connection_overwrites_what_the_old_one_would_have(
    run: Run, start: Start, options: dict[str, Any], mode: list[str]
) -> None:
    load = start(ROW, **options)
    run.spark.answers = [LOST]
    run.runner.run_step(load, 1)
    assert run.spark.sent[1:] == ["-- reconnect", *mode, *load.steps]


def test_a_new_connection_overwrites_no_more_partitions_than_the_old_one(
    run: Run, other: Catalog, start: Start
) -> None:
    """Its session knows nothing of the setting, and would replace the whole table."""
    load = start(ROW)
    table = other.load_table("db.t")
    table.delete()  # its files are of the older spec
    with table.update_spec() as update:
        update.add_identity("id")
    settings = model_settings(strategy="insert_overwrite", partition_by="id")
    load = run.runner.evolve(run.runner.begin_load(TARGET), TARGET, STAGED, settings, {}, SAME)
    run.spark.answers = [LOST]
    run.runner.run_step(load, 1)
    assert run.spark.sent[1:] == ["-- reconnect", "-- dynamic", *load.steps]


def test_what_follows_a_lost_statement_that_has_committed_overwrites_the_same(
    run: Run, other: Catalog, start: Start
) -> None:
    load = start(ROW, strategy="insert_overwrite", partition_by=None)

    def cuts(sql: str) -> None:
        cut(other, load)
        raise LOST

    run.spark.answers = [cuts]
    run.load_all(load)
    first, second = load.steps
    assert run.spark.sent == [first, "-- reconnect", "-- static", second]


VIOLATION = DbtRuntimeError("[MERGE_CARDINALITY_VIOLATION] The ON search condition of the MERGE")


@pytest.mark.parametrize("publish", ["branch", "direct"])
def test_a_merge_that_met_a_repeated_key_says_which(run: Run, start: Start, publish: str) -> None:
    load = start(ROW, strategy="merge", unique_key="ID", publish=publish)
    run.spark.answers = [VIOLATION, [["1", 2], [None, 3]]]
    with pytest.raises(RepeatedKeyError) as raised:
        run.runner.run_step(load, len(load.steps) - 1)
    assert raised.value.relation == MAIN
    assert raised.value.unique_key == ("id",)
    assert raised.value.examples == (("1", "2"), (None, "3"))
    assert raised.value.__cause__ is VIOLATION
    assert load.merge_key is not None
    assert run.spark.sent[1:] == [repeated_keys(str(STAGED), load.merge_key, 3)]


def test_another_error_of_a_merge_is_told_as_it_is(run: Run, start: Start) -> None:
    load = start(ROW, strategy="merge", unique_key="ID")
    error = DbtRuntimeError("[DIVIDE_BY_ZERO]")
    run.spark.answers = [error]
    with pytest.raises(DbtRuntimeError) as raised:
        run.runner.run_step(load, 1)
    assert raised.value is error


@pytest.mark.parametrize(
    ("error", "stays"),
    [
        (stopped("INSERT"), True),
        (StatementError("The statement ran longer than 1 s", "INSERT", is_fate_unknown=True), True),
        (translated(Exception(f"{UNKNOWN}: no"), "INSERT"), True),
        (translated(Exception("[WRITE] aborted\nCaused by: " + UNKNOWN + ": no"), "INSERT"), True),
        (translated(Exception("[WRITE] aborted\nCaused by: " + NO_ANSWER), "INSERT"), True),
        (translated(Exception(NO_DATABASE), "INSERT"), True),
        (SessionEndedError("INSERT", "killed"), True),
        (LOST, True),
        (RunCancelledError("This statement was not sent: INSERT", is_unsent=True), False),
        (StatementError("[DIVIDE_BY_ZERO]", "INSERT"), False),
    ],
    ids=[
        "stopped",
        "timed out",
        "unknown",
        "caused",
        "no answer",
        "no database",
        "ended",
        "lost",
        "not sent",
        "refused",
    ],
)
@pytest.mark.parametrize("step", [0, 1])
def test_letters_stay_if_a_direct_load_may_have_committed(
    run: Run, start: Start, error: Exception, step: int, stays: bool
) -> None:
    load = start(ROW, publish="direct", unique_key="id")
    run.node.letters = letters = Letters(TARGET, relation("t__dead_letters"), STAGED, STAGED, "t")
    run.spark.answers = [error]
    with pytest.raises(DbtRuntimeError) as raised:
        run.runner.run_step(load, step)
    assert letters.stay is stays
    is_ended = isinstance(error, SessionEndedError)
    is_unknown = is_ended or (isinstance(error, StatementError) and error.is_fate_unknown)
    assert ("nobody has told whether this" in raised.value.msg) is is_unknown


@pytest.mark.parametrize(("publish", "stays"), [("direct", [False, True]), ("branch", [False, False])])
def test_letters_stay_once_the_rows_of_a_direct_load_are_visible(
    run: Run, start: Start, publish: str, stays: list[bool]
) -> None:
    """Whatever fails then, such as resetting the session, finds the table loaded."""
    load = start(ROW, publish=publish, unique_key="id")
    run.node.letters = letters = Letters(TARGET, relation("t__dead_letters"), STAGED, STAGED, "t")
    found = []
    for step in range(2):
        run.runner.run_step(load, step)
        found.append(letters.stay)
    assert found == stays


@pytest.mark.parametrize("is_visible", [True, False])
@pytest.mark.parametrize(
    ("error", "is_unknown"),
    [
        (stopped("CREATE TABLE"), True),
        (DbtRuntimeError("explained"), True),
        (RunCancelledError("The batch was not published", "t", False), False),
        (CatalogUnavailableError("lake", "http://127.0.0.1:1", "nobody answers", 0), False),
        (None, False),
    ],
    ids=["stopped", "explained", "not published", "an outage", "none"],
)
def test_letters_are_taken_back_only_if_their_rows_are_not_visible(
    run: Run,
    other: Catalog,
    make_table: MakeTable,
    error: Exception | None,
    is_unknown: bool,
    is_visible: bool,
) -> None:
    """A first run looks at its table once its rows are visible: an outage then leaves the letters."""
    if error is not None and str(error.msg) == "explained":  # type: ignore[attr-defined]
        error.__cause__ = StatementError("stopped", "CREATE TABLE", is_fate_unknown=True)
    dead = make_table(columns("id int"), [{"id": 1}], name="t__dead_letters")
    base = run.catalog.base(dead, lambda: None)
    claim = "sparkevolve_letters_ffffffff_1_00000000_5"
    with other.load_table("db.t__dead_letters").manage_snapshots() as manage:
        manage.create_branch(base.cut_at or 0, "b", max_ref_age_ms=86_400_000)
    append(other.load_table("db.t__dead_letters"), [{"id": 2}], "b")
    head = other.load_table("db.t__dead_letters").metadata.refs["b"].snapshot_id
    assert run.catalog.publish(dead, base, "b", 0, claim=Claim(claim, 60)) == Published.YES
    published = PublishedLetters(base, head, claim, "i", 5)
    run.node.letters = Letters(TARGET, dead, STAGED, STAGED, "t", published=published)
    if is_visible:
        run.node.rows_are_visible(TARGET)
    DeadLetters(run.catalog, run.spark, run.node).give_back(error)
    table = other.load_table("db.t__dead_letters")
    stays = is_unknown or is_visible
    ids = sorted(row["id"] for row in table.scan().to_arrow().to_pylist())
    assert (ids, set(table.metadata.refs)) == ([1, 2] if stays else [1], {"main"})


@pytest.mark.parametrize(
    ("macro", "file"),
    [
        ("materialization incremental", "materializations/incremental/incremental.sql"),
        ("materialization snapshot", "snapshot.sql"),
    ],
)
def test_no_step_that_can_fail_comes_before_the_note_that_rows_are_visible(macro: str, file: str) -> None:
    folder = Path(dbt.include.sparkevolve.__file__).parent
    text = (folder / "macros" / file).read_text()
    made = re.search(r"sparkevolve__create_(?:table|from_model)\(.*\n\s*(.*)\n\s*(.*)", text)
    assert macro in text
    assert made is not None
    assert "sparkevolve__rows_are_visible(target_relation" in made[1]
    assert "check_creation(target_relation)" in made[2]


def test_a_direct_load_that_fails_half_way_says_what_readers_see(run: Run, start: Start) -> None:
    load = start(ROW, publish="direct", unique_key="id")
    run.spark.answers = [DbtRuntimeError("[DIVIDE_BY_ZERO]")]
    with pytest.raises(DbtRuntimeError) as raised:
        run.runner.run_step(load, 0)
    assert raised.value.msg == "[DIVIDE_BY_ZERO]"
    run.spark.answers = [DbtRuntimeError("[DIVIDE_BY_ZERO]")]
    with pytest.raises(DbtRuntimeError) as raised:
        run.runner.run_step(load, 1)
    assert raised.value.msg == (
        "[DIVIDE_BY_ZERO]\nThe model's `publish` is 'direct', so the statement before this one has taken "
        f"effect: readers of {MAIN} do not see the rows that this run was to replace until it runs again."
    )
    unknown = StatementError("Unknown failure", "INSERT", is_fate_unknown=True)
    # As where the catalog was lost with the answer to a commit.
    away = CatalogUnavailableError("lake", "http://127.0.0.1:1", "nobody answers", 0)
    away.__cause__ = unknown
    for step, error in product(range(2), (unknown, away)):
        run.spark.answers = [error]
        with pytest.raises(DbtRuntimeError) as raised:
            run.runner.run_step(load, step)
        assert raised.value.msg == f"{error.msg}\nThe model's `publish` is 'direct', " + (
            "so the statement before this one has taken effect, and nobody has told whether this one has: if "
            f"not, readers of {MAIN} do not see the rows that this run was to replace until it runs again."
            if step
            else f"and nobody has told whether this statement has taken effect: look whether {MAIN} has the "
            "rows of this run before you run it again."
        )


@pytest.mark.parametrize("publish", ["branch", "direct"])
@pytest.mark.parametrize("strategy", ["append", "merge"])
@pytest.mark.parametrize(
    "text",
    [
        "Found conflicting files that can contain records matching true: [file:/f]",
        "Missing required files to delete: file:/f",
        "Cannot commit: stale table metadata",
        "Cannot determine whether the commit was successful or not",
    ],
)
def test_after_a_conflict_only_a_load_into_a_branch_is_done_again(
    run: Run, start: Start, monkeypatch: pytest.MonkeyPatch, text: str, strategy: str, publish: str
) -> None:
    """Whoever has committed after all, whose answer was lost, would have its rows twice."""
    monkeypatch.setattr(retry, "FIRST_WAIT_SECONDS", 0.0)
    key = {"unique_key": "id"} if strategy == "merge" else {}
    load = start(ROW, publish=publish, strategy=strategy, **key)
    first = load.steps
    last = len(first) - 1
    if publish == "branch":
        run.runner.run_step(load, 0)
    run.spark.answers = [DbtRuntimeError(text)]
    if publish == "direct":
        with pytest.raises(DbtRuntimeError):
            run.runner.run_step(load, last)
        assert run.spark.sent == first
        return
    run.runner.run_step(load, last)
    assert str(load.branch) not in "".join(first)
    assert run.spark.sent == [*first, *load.steps]


@pytest.mark.parametrize("publish", ["branch", "direct"])
def test_a_statement_that_misses_a_column_says_that_it_was_dropped(
    run: Run, other: Catalog, start: Start, publish: str
) -> None:
    load = start(ROW, publish=publish)
    with other.load_table("db.t").update_schema(allow_incompatible_changes=True) as update:
        update.delete_column("x")
    missing = DbtRuntimeError("[UNRESOLVED_COLUMN.WITH_SUGGESTION] A column named `x` cannot be resolved")
    run.spark.answers = [missing]
    with pytest.raises(TableChangedError) as raised:
        run.runner.run_step(load, len(load.steps) - 1)
    assert raised.value.msg == (
        f"Another writer has dropped or renamed `x` of {MAIN} while this run loaded its batch. Run the model "
        "again: it begins with the table as it is then."
    )
    assert (raised.value.relation, raised.value.columns) == (MAIN, ("`x`",))
    assert raised.value.__cause__ is missing


@pytest.mark.parametrize("is_recreated", [False, True])
def test_a_statement_that_misses_its_table_says_that_it_was_dropped(
    run: Run, other: Catalog, make_table: MakeTable, start: Start, is_recreated: bool
) -> None:
    load = start(ROW)
    other.drop_table("db.t")
    if is_recreated:
        make_table(columns("id int, x int"), [{"id": 1, "x": 1}])
    run.spark.answers = [DbtRuntimeError("Cannot use branch (does not exist): b")]
    with pytest.raises(TableChangedError) as raised:
        run.runner.run_step(load, len(load.steps) - 1)
    assert raised.value.msg.startswith(f"Another writer has dropped {MAIN}, or dropped and recreated it,")
    assert raised.value.columns == ()
    assert len(run.spark.sent) == 1


def test_an_error_stays_what_it_is_if_the_catalog_does_not_answer(
    run: Run, lake: IcebergCatalog, start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    load = start(ROW)
    error = DbtRuntimeError("[DIVIDE_BY_ZERO]")
    run.spark.answers = [error]

    def load_table(*_: object) -> None:
        raise OSError("no catalog")

    monkeypatch.setattr(lake.access.opened, "load_table", load_table)
    with pytest.raises(DbtRuntimeError) as raised:
        run.runner.run_step(load, len(load.steps) - 1)
    assert raised.value is error


def test_a_query_reads_a_table_if_its_plan_names_it(run: Run) -> None:
    run.spark.answers = [[["RelationV2[id#1] lake.db.Orders"]], [["RelationV2[id#1] lake.db.u"]]]
    assert run.queries.reads("select * from v", relation("orders"))
    assert not run.queries.reads("select * from w", relation("orders"))
    sent = ["EXPLAIN EXTENDED select * from v", "EXPLAIN EXTENDED select * from w"]
    assert run.spark.sent == sent


@pytest.mark.parametrize("cut", ["Truncated plan of 4 characters", "Relation lake.db.*********(redacted)"])
def test_a_plan_that_is_not_whole_may_read_any_table(run: Run, cut: str) -> None:
    run.spark.answers = [[[cut]]]
    assert run.queries.reads("select * from w", relation("orders"))


class Connection:
    """Has settings that can be changed."""

    def __init__(self, **given: str | None) -> None:
        self.set = given

    def change_setting(self, name: str, value: str | None) -> str | None:
        before = self.set.get(name)
        self.set[name] = value
        return before


def test_what_cuts_a_plan_is_set_meanwhile_and_set_back() -> None:
    given: dict[str, str | None] = {"spark.sql.maxPlanStringLength": "10"}
    connection = Connection(**given)
    meanwhile: dict[str, str | None] = {}

    def fail() -> None:
        with whole_plans(connection):
            meanwhile.update(connection.set)
            raise DbtRuntimeError("no")

    with pytest.raises(DbtRuntimeError, match="no"):
        fail()
    assert meanwhile == {
        "spark.sql.maxPlanStringLength": "2147483632",
        "spark.sql.debug.maxToStringFields": "1000000",
        "spark.sql.redaction.string.regex": "(?!)",
    }
    assert {name: v for name, v in connection.set.items() if v is not None} == given


# Staging


@pytest.mark.parametrize(
    ("options", "kept"),
    [
        (None, set()),
        ({}, set()),
        ({"unique_key": "`ID`"}, {"Id"}),
        ({"unique_key": ["A.B", "gone"]}, {"a.b"}),
    ],
)
def test_bounds_of_the_key_columns_are_kept_as_the_batch_spells_them(
    run: Run, options: dict[str, Any] | None, kept: set[str]
) -> None:
    settings = model_settings(**options) if options is not None else None
    properties = run.batches.properties(settings, ["Id", "a.b", "x"])
    prefix = "write.metadata.metrics.column."
    assert {name.removeprefix(prefix) for name in properties if name.startswith(prefix)} == kept


def test_conflicts_of_a_removal_are_tried_again(
    run: Run, lake: IcebergCatalog, other: Catalog, start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    load = start(ROW)
    cut(other, load)
    answering(lake, monkeypatch, CommitFailedException("busy"))
    run.batches.give_back()
    assert refs(lake) == {"main"}


def test_batches_that_killed_runs_have_left_are_removed(
    run: Run, lake: IcebergCatalog, make_table: MakeTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    killed = {OWNER_PROPERTY: f"{HOST}:{os.getpid()}:{'0' * 32}"}
    names = ["t", "u", "t__dbt_tmp_000000000001", "t__dbt_tmp_000000000002", "u__dbt_tmp_000000000003"]
    for name in names:
        owner = staging_properties() if name.endswith("2") else killed
        make_table(columns("id int"), name=name, properties=owner)
    listed = [relation(name) for name in (*names, "t__dbt_tmp_000000000004")]
    cache = Cache(*listed)
    Batches(lake, cache, Node()).remove_abandoned(TARGET)
    assert lake.table_names("db") == set(names) - {"t__dbt_tmp_000000000001"}
    assert cache.dropped == [relation("t__dbt_tmp_000000000001")]


def test_a_staged_batch_belongs_to_its_node(run: Run) -> None:
    staged = run.batches.new_name(TARGET)
    assert run.node.staged == [staged]
    assert str(staged.identifier).startswith("t__dbt_tmp_")


def test_a_staged_batch_that_cannot_be_removed_is_no_error_and_the_others_go(
    run: Run, lake: IcebergCatalog, make_table: MakeTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_table(columns("id int"), name=str(STAGED.identifier))
    purge = lake.purge

    def refusing(table: Any, location: str | None) -> None:
        if table.identifier == "stuck":
            raise OSError("disk full")
        purge(table, location)

    monkeypatch.setattr(lake, "purge", refusing)
    run.node.staged += [relation("stuck"), STAGED]
    run.batches.give_back()
    assert lake.table_names("db") == frozenset()


NAMES = ("ID", "n", "i", "x")
TYPES = ["int", "void", "interval day", "int"]


def test_a_query_is_made_storable_with_a_warning_for_what_is_not_known(run: Run) -> None:
    run.spark.answers = [(NAMES, None), [TYPES], (NAMES, None), [TYPES]]
    settings = model_settings(unique_key="id")
    query = run.queries.as_stored(TARGET, "select 1", settings)
    assert query["columns"] == ["ID", "i", "x"]
    assert len(query["warnings"]) == 2
    known = run.queries.as_stored(TARGET, "select 1", settings, columns("N string"))
    assert known["columns"] == ["ID", "n", "i", "x"]
    assert known["warnings"] == query["warnings"][1:]
    assert "CAST(DBT_INTERNAL_MODEL.`n` AS string) as `n`" in known["sql"]
    assert run.node.nulls == ("n",)
    assert run.spark.sent == [no_rows("select 1"), types_query("select 1", NAMES)] * 2


def test_a_query_that_names_columns_is_compared_with_what_the_model_returns_since(run: Run) -> None:
    run.spark.answers = [(NAMES, None), [TYPES]]
    query = run.queries.as_stored(TARGET, "select 1", DEFAULTS)
    run.spark.answers = [(NAMES, None), [TYPES]]
    run.queries.check_described_still(TARGET, query)
    run.spark.answers = [((*NAMES, "late"), None), [[*TYPES, "int"]]]
    with pytest.raises(ModelMovedError) as raised:
        run.queries.check_described_still(TARGET, query)
    assert raised.value.msg == (
        f"What the model of {MAIN} returns has changed while this run computed it, with something that it "
        "reads. It would be left out of the rows, so nothing was written. Run the model again."
    )
    wider = ["bigint" if name == "x" else type_ for name, type_ in zip(NAMES, TYPES, strict=True)]
    run.spark.answers = [(NAMES, None), [wider]]
    with pytest.raises(ModelMovedError) as raised:
        run.queries.check_described_still(TARGET, query, is_made=True)
    assert raised.value.msg.endswith(
        f"{MAIN} was made without that, and its rows are visible. Run the model again with --full-refresh: "
        "another run would leave NULL in the rows that are there."
    )
    # Of what the model's own query has returned, the batch tells.
    run.spark.answers = [(("a",), None), [["int"]]]
    query = run.queries.as_stored(TARGET, "select 1", DEFAULTS)
    sent = list(run.spark.sent)
    run.queries.check_described_still(TARGET, query)
    assert run.spark.sent == sent


def test_a_session_gives_the_types_of_a_query_as_json(run: Run) -> None:
    field = {"name": "a:int,b", "type": "long", "nullable": True, "metadata": {}}
    run.spark.answers = [((), json.dumps({"type": "struct", "fields": [field]}))]
    assert run.queries.as_stored(TARGET, "select 1", DEFAULTS)["columns"] == ["a:int,b"]
    assert run.spark.sent == [no_rows("select 1")]


def test_names_that_are_there_twice_are_refused_before_their_types_are_asked(run: Run) -> None:
    run.spark.answers = [(("a", "A"), None)]
    with pytest.raises(EvolutionRefusedError) as raised:
        run.queries.as_stored(TARGET, "select 1", DEFAULTS)
    assert [refusal.columns for refusal in raised.value.refusals] == [("a", "A")]


@pytest.mark.parametrize(
    ("settings_", "columns_"),
    [
        ({"unmappable_types": "fail"}, [("i",)]),
        ({"unique_key": "absent"}, [("absent",)]),
        ({"unmappable_types": "fail", "unique_key": "absent"}, [("absent",), ("i",)]),
        ({"strategy": "microbatch", "event_time": "ts"}, [("ts",)]),
    ],
)
def test_a_query_that_cannot_be_staged_is_refused(
    run: Run, settings_: dict[str, Any], columns_: list[tuple[str, ...]]
) -> None:
    run.spark.answers = [(NAMES, None), [TYPES]]
    with pytest.raises(EvolutionRefusedError) as raised:
        run.queries.as_stored(TARGET, "select 1", model_settings(**settings_))
    assert [refusal.columns for refusal in raised.value.refusals] == columns_


def test_a_query_whose_types_cannot_be_told_is_refused(run: Run) -> None:
    run.spark.answers = [(("a",), None), [["struct<a:b"]]]
    with pytest.raises(UnreadableQueryError) as raised:
        run.queries.as_stored(TARGET, "select 1", DEFAULTS)
    assert (raised.value.relation, raised.value.types) == (MAIN, "struct<a:b")


# What is there now, by name

SHOWN = "show {} in `lake`.`db` like '{}'"
DESCRIBED = "describe table extended `lake`.`db`.`n`"
# Its column has the name of the fact.
PARQUET = [["Provider", "iceberg", None], ["", "", ""], ["Provider", "parquet", ""], ["Owner", "me", ""]]
UNKNOWN = DbtRuntimeError("[TABLE_OR_VIEW_NOT_FOUND] The table or view `lake`.`db`.`n` cannot be found.")
TO_SPARK = [["id", "int", None], ["", "", ""], ["Provider", "iceberg", ""], ["Owner", "me", ""]]


@pytest.mark.parametrize(
    ("was_view", "answers", "sent", "found"),
    [
        (True, [[["db", "n", False]]], ["views"], "view"),
        # Of a view that another writer has replaced or dropped.
        (True, [[], [["db", "n", False]], PARQUET], ["views", "tables", None], "table"),
        (True, [[], []], ["views", "tables"], None),
        (False, [[["db", "n", False]]], ["views"], "view"),
        (False, [[], [["db", "n", False]], PARQUET], ["views", "tables", None], "table"),
        # A table of Hive's, in a catalog that can only list it.
        (False, [[], [["db", "n", False]], UNKNOWN], ["views", "tables", None], "table"),
        # A temporary view, and a name that the pattern fits as well.
        (False, [[["", "n", True]], [["db", "N", False]]], ["views", "tables"], None),
        # A catalog without views.
        (False, [DbtRuntimeError("[MISSING_CATALOG_ABILITY.VIEWS]"), []], ["views", "tables"], None),
    ],
)
def test_what_there_is_under_a_name(
    run: Run, was_view: bool, answers: list[Answer], sent: list[str | None], found: str | None
) -> None:
    run.spark.answers = answers
    now, table = Listing(Catalogs([run.catalog]), run.spark).relation_now(relation("n"), was_view=was_view)
    assert run.spark.sent == [SHOWN.format(kind, "n") if kind else DESCRIBED for kind in sent]
    assert table is None
    assert (str(now.type) if now is not None else None) == found
    assert now is None or (str(now) == "`lake`.`db`.`n`" and now.is_iceberg is False)


def test_a_table_that_is_iceberg_to_spark_alone_is_none_of_another_format(run: Run) -> None:
    run.spark.answers = [[], [["db", "n", False]], TO_SPARK]
    with pytest.raises(NotIcebergError, match="name another catalog than the one that Spark uses"):
        Listing(Catalogs([run.catalog]), run.spark).relation_now(relation("n"), was_view=False)


def test_a_table_of_which_spark_does_not_tell_the_format_is_none_of_another_one(run: Run) -> None:
    run.spark.answers = [[], [["db", "n", False]], DbtRuntimeError("Connection reset")]
    with pytest.raises(DbtRuntimeError, match="Connection reset"):
        Listing(Catalogs([run.catalog]), run.spark).relation_now(relation("n"), was_view=False)


def test_a_table_that_is_made_at_this_moment_is_found(
    run: Run, make_table: MakeTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_table(columns("id int"))
    find, looks = run.catalog.find, [None]

    def find_later(it: Any) -> Any:
        return looks.pop() if looks else find(it)

    monkeypatch.setattr(run.catalog, "find", find_later)
    run.spark.answers = [[], [["db", TARGET.identifier, False]], TO_SPARK]
    now, table = Listing(Catalogs([run.catalog]), run.spark).relation_now(TARGET, was_view=False)
    assert now is not None
    assert now.is_iceberg
    assert table is not None


def test_an_iceberg_table_is_found_without_a_statement(run: Run, make_table: MakeTable) -> None:
    make_table(columns("id int"))
    now, table = Listing(Catalogs([run.catalog]), run.spark).relation_now(TARGET, was_view=False)
    assert now is not None
    assert (str(now.type), now.is_iceberg) == ("table", True)
    assert table is not None
    assert run.spark.sent == []


@pytest.mark.parametrize(
    ("name", "pattern"),
    [("a*b|c", "a.b.c"), ("it's", "it.s"), ("a.b\\", "a.b."), ("Ünder (1)+", ".nder..1..")],
)
def test_a_name_is_no_pattern(run: Run, name: str, pattern: str) -> None:
    run.spark.answers = [[["db", pattern, False], ["db", name, False]]]
    now, _ = Listing(Catalogs([run.catalog]), run.spark).relation_now(relation(name), was_view=True)
    assert run.spark.sent == [SHOWN.format("views", pattern)]
    assert now is not None
    assert now.identifier == name


def test_a_load_begins_with_the_table_that_was_looked_at_once(run: Run, make_table: MakeTable) -> None:
    make_table(columns("id int"))
    table = run.node.table = run.catalog.load(TARGET)
    assert run.runner.begin_load(TARGET).table is table
    # When it begins again, it looks again.
    assert run.runner.begin_load(TARGET).table is not table


def test_rows_that_are_there_are_no_failure_though_nothing_can_be_told_of_them(
    run: Run, start: Start, other: Catalog
) -> None:
    """As where Spark alone may read the files of metadata, or a catalog answers 500 to one question."""
    load = start(ROW, publish="direct")
    run.load_all(load)
    Path(other.load_table("db.t").metadata_location.removeprefix("file://")).unlink()
    assert run.runner.publish(load, is_last=True)
    made = Run(run.catalog)
    assert made.runner.note_made(TARGET, "the model") == []
    assert made.runner.note_made(relation("n"), "the model") == [
        "`lake`.`db`.`n` was built by Spark, and PyIceberg does not find it in the catalog `lake`. Unless it "
        "has been dropped or renamed since, as by a post-hook, `catalog_properties` of the profile name "
        "another catalog than the one that Spark uses (`dbt debug` tells): then it is in Spark's, and the "
        "next run does not replace it."
    ]
    for rows, text in ((None, "OK"), (3, "OK 3 rows")):
        assert str(made.runner.response(TARGET, AdapterResponse("OK"), rows=rows)) == text
