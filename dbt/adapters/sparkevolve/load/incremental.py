"""The part of the adapter that loads batches into their tables, and publishes them."""

import re
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from multiprocessing.context import SpawnContext
from typing import TYPE_CHECKING, Any

from dbt.adapters.base.meta import available
from dbt.adapters.contracts.connection import AdapterResponse
from dbt.adapters.events.logging import AdapterLogger
from dbt_common.exceptions import DbtRuntimeError
from dbt_common.invocation import get_invocation_id
from pyiceberg.schema import Schema

from dbt.adapters.sparkevolve.errors import (
    AuditError,
    AuditFailure,
    ColumnsMovedError,
    ConnectionLostError,
    DetectionError,
    NotOnBranchError,
    PublishConflictError,
    RepeatedKeyError,
    RunCancelledError,
    TableChangedError,
)
from dbt.adapters.sparkevolve.evolution import names
from dbt.adapters.sparkevolve.evolution.changes import AddField, Change, RenameField, WidenType
from dbt.adapters.sparkevolve.evolution.detection import Detected, has_same_columns, planned
from dbt.adapters.sparkevolve.evolution.plan import EvolutionPlan
from dbt.adapters.sparkevolve.evolution.policy import TableFacts
from dbt.adapters.sparkevolve.iceberg.base import Base, is_wap_enabled
from dbt.adapters.sparkevolve.iceberg.catalog import wait_seconds
from dbt.adapters.sparkevolve.iceberg.older_partitions import refused_partitions
from dbt.adapters.sparkevolve.iceberg.publication import Published
from dbt.adapters.sparkevolve.iceberg.staged_batch import StagedBatch
from dbt.adapters.sparkevolve.load.load import Load
from dbt.adapters.sparkevolve.load.loading import (
    overwrites_older_partitions,
    plan_batch,
)
from dbt.adapters.sparkevolve.load.planning import PlanningAdapter, refuse_unreadable
from dbt.adapters.sparkevolve.messages import is_conflict_in_spark, is_merge_ambiguous, is_snapshot_gone
from dbt.adapters.sparkevolve.relation import SparkEvolveRelation
from dbt.adapters.sparkevolve.settings import IncrementalSettings, Strategy
from dbt.adapters.sparkevolve.spark.sql_settings import may_lack_names, whole_plans
from dbt.adapters.sparkevolve.sql import (
    audit_queries,
    batch_queries,
    branch_statements,
    snapshots,
    spark_types,
    storable,
)

if TYPE_CHECKING:
    import agate

logger = AdapterLogger("SparkEvolve")

# How many rows, or keys, a message shows.
_SHOWN = 3
_SHOWN_COLUMNS = 4
_MOST_CONNECTIONS_LOST = 3


class IncrementalAdapter(PlanningAdapter):
    """The part of the adapter that loads batches into their tables, and publishes them."""

    def __init__(self, config: Any, mp_context: SpawnContext) -> None:
        super().__init__(config, mp_context)
        self._locks: dict[str, threading.Lock] = {}
        self._told_of_differences: set[tuple[str, str]] = set()

    @available.parse_none
    def begin_load(self, target: SparkEvolveRelation) -> Base:
        """Return the state of ``target`` that the run starts from; remove branches that killed runs left.

        Raises:
            NotIcebergError: the target is not an Iceberg table.
            EvolutionRefusedError: Spark cannot read the table, since it has no such type.
            NotOnBranchError: the session keeps what it writes to this table out of every branch.
        """
        table, self._node.table = self._node.table, None
        base = self.catalog.base(target, self._wap_branch, table)
        if is_wap_enabled(base.table) and self._setting("spark.wap.id") is not None:
            raise NotOnBranchError(
                str(target), "the session's `spark.wap.id` keeps each statement's rows apart"
            )
        refuse_unreadable(target, base.table.schema(), self._node.changed)
        for branch in base.left_over:
            logger.info(f"Removing the branch {branch} of {target}, which an earlier run left behind")
            try:
                self.execute(branch_statements.drop_branch(str(target), branch))
            except DbtRuntimeError as exc:
                # Another run may be removing it, too.
                logger.warning(f"The branch {branch} of {target} could not be removed: {exc}")
        return base

    def _wap_branch(self) -> str | None:
        return self._setting("spark.wap.branch")

    def _setting(self, name: str) -> str | None:
        _, rows = self.execute(f"SET {name}", fetch=True)
        value = str(rows[0][1])
        return None if value == "<undefined>" else value

    @available.parse_none
    def evolve(
        self,
        base: Base,
        target: SparkEvolveRelation,
        staged: SparkEvolveRelation,
        settings: IncrementalSettings,
        column_docs: Mapping[str, str],
        detected: Mapping[str, Sequence[str]],
    ) -> Load:
        """Add the new columns to ``target`` in one commit, and return how to load the batch.

        Args:
            base: what ``begin_load`` returned.
            target: the model's table.
            staged: the batch.
            settings: the model's.
            column_docs: descriptions of columns, stored with those that are added.
            detected: what ``sparkevolve__detect_schema_change`` has found in the columns of ``base``.

        Raises:
            EvolutionRefusedError: nothing was written, and why.
            ColumnsMovedError: another writer has changed the columns since ``base``, and that is to fail.
            DetectionError: what was detected is not what is planned.
            CommitConflictError: other writers were faster each time.
        """
        if overwrites_older_partitions(base, settings):
            found = refused_partitions(base.table, settings.tblproperties)
            if found:
                raise self._refusal(target, found)
        batch = self.catalog.staged_batch(staged, settings.bookkeeping)
        uncounted = batch.uncounted(base.table.schema())
        if uncounted:
            _, rows = self.execute(batch_queries.count_nulls(str(staged), uncounted), fetch=True)
            batch.add_counts(dict(zip(uncounted, map(int, rows[0]), strict=True)))

        plan = self._commit_plan(base, target, batch, settings, column_docs, Detected(**detected))
        # Of two clocks the later one: a branch that is kept too long does no harm.
        now_ms = max(int(time.time() * 1000), batch.written_ms)
        load = Load(target, staged, base, batch, plan, settings, now_ms)
        # Each batch of a microbatch model, and each new beginning of a run, is a load of its own.
        told = (get_invocation_id(), str(target))
        load.has_said_differences = told in self._told_of_differences
        self._told_of_differences.add(told)
        self._node.load = load
        return load

    def _commit_plan(
        self,
        base: Base,
        target: SparkEvolveRelation,
        batch: StagedBatch,
        settings: IncrementalSettings,
        column_docs: Mapping[str, str],
        detected: Detected | None = None,
        wanted: Callable[[Change], bool] = lambda change: True,
    ) -> EvolutionPlan:
        """Make the changes that a batch needs, or those of them that are wanted now, and return the plan."""

        def decide(schema: Schema, facts: TableFacts) -> EvolutionPlan:
            plan = plan_batch(batch, settings, column_docs, schema, facts)
            if plan.refusals:
                raise self._refusal(target, plan.refusals, settings.strategy == Strategy.FULL_REFRESH)
            if detected is not None:
                may_differ = settings.on_schema_change != "fail" or settings.add_columns
                _check_detected(target, base, detected, planned(plan, schema), schema, may_differ)
            return replace(plan, changes=tuple(filter(wanted, plan.changes)))

        plan = self.catalog.evolve(
            target,
            decide,
            settings.commit_retries,
            source=batch.schema,
            invocation_id=get_invocation_id(),
            base=base,
            seen_ms=batch.written_ms,
        )
        self._node.changed += map(str, plan.changes)
        return plan

    @available.parse(lambda *a, **k: True)
    def is_still_at_base(self, load: Load) -> bool:
        """Wait until no other thread of this run loads into the same table; tell whether one has, meanwhile.

        Batches of a microbatch model are loaded in parallel: one after the other they do not get in each
        other's way.
        """
        node = self._node
        if not load.is_published or node.lock is not None:
            return True
        lock = self._locks.setdefault(str(load.target), threading.Lock())
        at_once = lock.acquire(blocking=False)
        if not at_once:
            lock.acquire()
        node.lock = lock
        return at_once or not self.catalog.has_moved(load.target, load.base)

    @available.parse_none
    def set_partition_overwrite(self, mode: str | None) -> None:
        """Let INSERT OVERWRITE on this connection replace everything, or the partitions it has rows for.

        Args:
            mode: ``static``, ``dynamic``, or None for what the profile says.
        """
        self.connections.get_thread_connection().handle.set_partition_overwrite(mode)

    @available.parse_none
    def audit(self, load: Load) -> None:
        """Check what was loaded into the branch against the model's audits.

        Raises:
            AuditError: rows fail; nothing was published.
        """
        load.ended_at = time.monotonic()
        audits = load.settings.audits
        # Without rows in the batch, files on the branch hold what a DELETE has copied.
        if not audits or load.branch is None or not load.batch.rows or load.is_overtaken:
            return
        files = self.catalog.added_files(load.target, load.branch)
        if not files:
            return
        rows = audit_queries.loaded_rows(load.written, files, str(load.staged), load.merge_key)
        columns = load.plan.unique_key or load.plan.refreshed[:_SHOWN_COLUMNS]
        self._check_audits(load.target, rows, audits, columns)

    @available.parse_none
    def audit_staged(
        self, target: SparkEvolveRelation, staged: SparkEvolveRelation, settings: IncrementalSettings
    ) -> None:
        """Check a staged batch, also against the model's audits, before a table is made from it.

        Raises:
            AuditError: rows fail; nothing was made.
            HiddenBatchError: a table would be made without its rows.
        """
        batch = self.catalog.staged_batch(staged)
        if settings.audits:
            columns = settings.unique_key or [f.name for f in batch.schema.fields][:_SHOWN_COLUMNS]
            self._check_audits(target, f"SELECT * FROM {staged}", settings.audits, columns)

    def _check_audits(
        self, target: SparkEvolveRelation, rows: str, audits: Sequence[str], columns: Sequence[str]
    ) -> None:
        _, counted = self.execute(audit_queries.count_violations(rows, audits), fetch=True)
        failures = []
        for audit, count in zip(audits, counted[0], strict=True):
            if count:
                query = audit_queries.some_violations(rows, audit, columns, _SHOWN)
                _, found = self.execute(query, fetch=True)
                examples = tuple(tuple(row) for row in found)
                failures.append(AuditFailure(audit, int(count), tuple(columns), examples))
        if failures:
            raise AuditError(str(target), failures)

    @available.parse(lambda *a, **k: True)
    def publish(self, load: Load, is_last: bool) -> bool:
        """Make a loaded batch visible in one commit, unless the table has moved since the run read it.

        Args:
            load: the load.
            is_last: there is no further attempt.

        Returns:
            Whether the run is done; if not, it has to begin again from what the table is now.

        Raises:
            PublishConflictError: the table has moved, and this was the last attempt.
            PublishError: the catalog refused.
        """
        retries = load.settings.commit_retries
        if load.is_overtaken:
            if is_last:
                raise PublishConflictError(str(load.target), retries + 1, is_loaded=False)
            logger.info(f"What this run started from in {load.target} has expired: loading again")
            self._drop_branches(load)
            return False
        if load.branch is None or not load.is_published:
            return True

        def fast_forward() -> None:
            for sql in load.fast_forward:
                self.execute(sql)

        outcome = self.catalog.publish(
            load.target,
            load.base,
            load.branch,
            retries,
            fast_forward,
            load.elapsed_ms,
            load.overwritten_spec,
        )
        if outcome == Published.MOVED:
            if is_last:
                raise PublishConflictError(str(load.target), retries + 1)
            logger.info(f"{load.target} has changed since this run read it: loading again")
            self._drop_branches(load)
            return False
        if outcome == Published.NOTHING_NEW:
            # A MERGE may find nothing to update; what else has rows has written some.
            if load.batch.rows and load.settings.strategy not in (Strategy.MERGE, Strategy.SNAPSHOT):
                raise NotOnBranchError(
                    str(load.target), "its rows are not on the branch that they were written to"
                )
            self._drop_branches(load)
        load.branch = None
        load.is_visible = outcome == Published.YES
        return True

    @available.parse(lambda *a, **k: {})
    def snapshot_query(
        self, target: SparkEvolveRelation, sql: str, settings: IncrementalSettings, table: Schema
    ) -> dict[str, Any]:
        """Return whether a snapshot's query is like its table; if not, also in types that it can store.

        Like it are columns and fields that are spelled and ordered as in the table. dbt compares structs, and
        unites rows, by position, and it minds the case of names.

        Args:
            target: the snapshot's table.
            sql: the query.
            settings: see ``storable_query``.
            table: the table's schema.

        Returns:
            ``is_like``, ``sql``, ``columns`` (names) and ``without_rows`` (a query for no rows of it).
        """
        columns = self._query_columns(target, sql)
        if storable.is_like(columns, table):
            return {"is_like": True, "sql": sql, "columns": [name for name, _ in columns.fields]}
        query = self.storable_query(target, sql, settings, table)
        return {**query, "is_like": False, "without_rows": spark_types.no_rows(query["sql"])}

    @available.parse(lambda *a, **k: {})
    def conform_snapshot(
        self,
        base: Base,
        target: SparkEvolveRelation,
        staged: SparkEvolveRelation,
        settings: IncrementalSettings,
        query: Mapping[str, Any],
    ) -> dict[str, Any]:
        """Add a snapshot's new fields to the structs of its table, and return its query in the table's order.

        New columns are not added yet: dbt makes new versions of rows since the table lacks a column.

        Args:
            base: what ``begin_load`` returned.
            target: the snapshot's table.
            staged: the query's columns, without rows.
            settings: the snapshot's.
            query: what ``snapshot_query`` has returned.

        Returns:
            ``sql`` and ``changes`` (texts).

        Raises:
            EvolutionRefusedError: nothing was written, and why.
            TableChangedError: another table has taken the name.
            CommitConflictError: other writers were faster each time.
        """
        batch = self.catalog.staged_batch(staged)
        plan = self._commit_plan(base, target, batch, settings, {}, wanted=_is_in_a_column)
        sql = snapshots.conforming_query(query["sql"], query["columns"], plan.columns)
        return {"sql": sql, "changes": [str(change) for change in plan.changes]}

    @available.parse(lambda *a, **k: "")
    def snapshot_row_changed(self, table: Schema, check_cols: Any, columns: Sequence[str]) -> str:
        """Return the condition that a row differs from the version of it that is valid now.

        Args:
            table: the table's schema.
            check_cols: dbt's setting: ``all``, or the names of columns.
            columns: the names that the snapshot's query returns.
        """
        spelled = {names.fold(f.name): f.name for f in table.fields}
        compared = columns if check_cols == "all" else [names.unquote(str(name)) for name in check_cols]
        if any(names.fold(name) not in spelled for name in compared):
            return "(true)"  # as dbt has it, each row has a new version since there is a new column
        return snapshots.snapshot_row_changed([spelled[names.fold(name)] for name in compared])

    @available.parse(lambda *a, **k: True)
    def reads(self, sql: str, target: SparkEvolveRelation) -> bool:
        """Tell whether a query may read a table, through views too: whether its plan has the table's name."""
        with whole_plans(self.connections.get_thread_connection().handle):
            _, rows = self.execute(f"EXPLAIN EXTENDED {sql}", fetch=True)
        if may_lack_names(str(rows[0][0])):
            return True
        # As a whole word: a table `t` is not in each plan, and its model would be computed again for nothing.
        word = rf"(?<!\w){re.escape(names.fold(str(target.identifier)))}(?!\w)"
        return re.search(word, names.fold(str(rows[0][0]))) is not None

    @available.parse(lambda *a, **k: ("", None))
    def execute(
        self, sql: str, auto_begin: bool = False, fetch: bool = False, limit: int | None = None
    ) -> "tuple[Any, agate.Table]":
        """Run a statement; a step of a load also once more where that is safe, and with errors that help."""
        load = self._node.load
        if load is not None and load.is_overtaken and sql.strip() in load.steps:
            return _done()
        try:
            answer: tuple[Any, agate.Table] = super().execute(sql, auto_begin, fetch, limit)
            return answer
        except RunCancelledError as exc:
            raise self._cancelled(exc) from exc
        except ConnectionLostError:
            load = self._node.load
            step = _step(load, sql)
            if load is None or step is None:
                raise
            return self._go_on(load, step)
        except DbtRuntimeError as exc:
            load = self._node.load
            if load is None or sql.strip() not in load.steps:
                raise
            if load.merge_key is not None and is_merge_ambiguous(str(exc)):
                raise self._repeated_key(load) from exc
            self._see_what_others_did(load, exc)
            if _is_overtaken(load, sql, exc):
                return _done()
            step = _step(load, sql)
            if step is None or not is_conflict_in_spark(str(exc)):
                raise
            return self._try_again(load, step)

    def _cancelled(self, error: RunCancelledError) -> RunCancelledError:
        """Return an error that also says what readers of the table see, where that is known."""
        load = self._node.load
        if load is None or not load.is_published or error.is_published is not None:
            return error
        return RunCancelledError(error.undone, str(load.target), load.is_visible)

    def _see_what_others_did(self, load: Load, error: DbtRuntimeError) -> None:
        """Raise an error that explains another one, if others have taken away what the batch goes into."""
        try:
            self.catalog.check_columns(load.target, load.base, load.plan.refreshed)
        except TableChangedError as changed:
            raise changed from error
        except Exception as exc:
            logger.debug(f"Why a statement failed cannot be looked up in the catalog: {exc}")

    def _try_again(self, load: Load, step: int) -> "tuple[Any, agate.Table]":
        """Have the steps of a load up to ``step`` done on a new branch: a commit met another writer's.

        Spark tries the commits of an INSERT again, and not those of a CREATE BRANCH. Whether a commit was
        made after all does not matter: nobody publishes the old branch.

        Raises:
            DbtRuntimeError: Spark's last answer.
        """
        retries = load.settings.commit_retries
        for number in range(retries + 1):
            time.sleep(wait_seconds(number))
            load.cut_again()
            try:
                return self._run_steps(load, step)
            except DbtRuntimeError as exc:
                if (
                    isinstance(exc, ConnectionLostError)
                    or number == retries
                    or not is_conflict_in_spark(str(exc))
                ):
                    raise
        raise AssertionError("retries is negative")

    def _run_steps(self, load: Load, step: int) -> "tuple[Any, agate.Table]":
        answer: tuple[Any, agate.Table] | None = None
        for sql in load.steps[: step + 1]:
            try:
                answer = super().execute(sql)
            except DbtRuntimeError as exc:
                if not _is_overtaken(load, sql, exc):
                    raise
                return _done()
        assert answer is not None
        return answer

    def _go_on(self, load: Load, step: int) -> "tuple[Any, agate.Table]":
        """Have the steps of a load up to ``step`` done, each exactly once, after a connection was lost.

        The server may still be running the statement. If the catalog shows that it has committed, it is done;
        if not, all is done again on a new branch, so that what it writes later is never published. The old
        branch stays until the node ends: a commit to one that is gone would recreate it, to stay for ever.

        Raises:
            ConnectionLostError: the connection was lost again and again.
        """
        lost: ConnectionLostError | None = None
        for _ in range(_MOST_CONNECTIONS_LOST):
            self.connections.reconnect()
            try:
                # A new connection is a new session, for the statements that follow as well.
                if load.partition_overwrite:
                    self.set_partition_overwrite(load.partition_overwrite)
                if load.has_committed(step, self.catalog.head(load.target, str(load.branch))):
                    return _done()
                logger.info(
                    f"The connection to Spark was lost: loading into {load.target} again, on a new branch"
                )
                load.cut_again()
                return self._run_steps(load, step)
            except ConnectionLostError as exc:
                lost = exc
        assert lost is not None
        raise lost

    def _repeated_key(self, load: Load) -> RepeatedKeyError:
        assert load.merge_key is not None
        query = batch_queries.repeated_keys(str(load.staged), load.merge_key, _SHOWN)
        _, rows = super().execute(query, fetch=True)
        examples = [tuple(None if value is None else str(value) for value in row) for row in rows]
        return RepeatedKeyError(str(load.target), load.plan.unique_key, examples)


def _done() -> "tuple[Any, agate.Table]":
    """Return the answer to a statement that has been run already, or is not to be."""
    from dbt_common.clients.agate_helper import empty_table

    return AdapterResponse("OK"), empty_table()  # type: ignore[no-untyped-call]


def _is_overtaken(load: Load, sql: str, error: DbtRuntimeError) -> bool:
    """Tell, and note, whether a branch cannot be cut because the snapshot to cut it from has expired."""
    if sql.strip() == load.cut and is_snapshot_gone(str(error)):
        load.is_overtaken = True
    return load.is_overtaken


def _step(load: Load | None, sql: str) -> int | None:
    """Return which step of a load a statement is, if it is one that may be done again on another branch."""
    if load is None or load.branch is None or not load.is_published:
        return None
    return load.steps.index(sql.strip()) if sql.strip() in load.steps else None


def _check_detected(
    target: SparkEvolveRelation,
    base: Base,
    detected: Detected,
    by_plan: Detected,
    schema: Schema,
    may_differ: bool,
) -> None:
    """Compare what was detected before the batch was staged with what is planned for the table as it is now.

    Args:
        target: the table.
        base: what its columns were when they were compared.
        detected: what was found then.
        by_plan: what the plan says.
        schema: the schema that it is made for.
        may_differ: whether the batch may have other columns than the table.

    Raises:
        DetectionError: the columns are those of ``base``, and what was found in them is not what is planned.
        ColumnsMovedError: another writer has changed them since, and they may not differ from the batch's.
    """
    if has_same_columns(schema, base.columns):
        if not detected.agrees_with(by_plan):
            raise DetectionError(str(target), detected, by_plan)
    elif not may_differ and (by_plan.new or by_plan.removed):
        raise ColumnsMovedError(str(target), by_plan.new, by_plan.removed)


def _is_in_a_column(change: Change) -> bool:
    """Tell whether a change has to be made before rows of a snapshot are compared."""
    return isinstance(change, AddField | WidenType | RenameField) and len(change.path) > 1
