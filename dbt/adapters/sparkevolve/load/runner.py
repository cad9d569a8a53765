"""One run of a model into the table that is there: from the state it starts from to the published rows."""

import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from dbt.adapters.contracts.connection import AdapterResponse
from dbt.adapters.events.logging import AdapterLogger
from dbt_common.exceptions import DbtRuntimeError
from dbt_common.invocation import get_invocation_id
from pyiceberg.schema import Schema

from dbt.adapters.sparkevolve.errors import (
    NO_TABLE_MADE,
    ROWS_AS_THEY_WERE,
    AfterLoadError,
    ConnectionLostError,
    EvolutionRefusedError,
    NotOnBranchError,
    OperationError,
    PublishConflictError,
    PublishError,
    RunCancelledError,
    may_have_taken_effect,
)
from dbt.adapters.sparkevolve.evolution import record, refusals
from dbt.adapters.sparkevolve.evolution.changes import AddColumn, AddField, Change, RenameField, WidenType
from dbt.adapters.sparkevolve.evolution.detection import Detected, planned
from dbt.adapters.sparkevolve.evolution.names import fold, quote
from dbt.adapters.sparkevolve.evolution.plan import EvolutionPlan
from dbt.adapters.sparkevolve.evolution.policy import TableFacts, optional_columns
from dbt.adapters.sparkevolve.evolution.renames import as_before, ends_of_renames
from dbt.adapters.sparkevolve.evolution.replacement import fields_without, loss_text
from dbt.adapters.sparkevolve.evolution.types import has_spark_type
from dbt.adapters.sparkevolve.iceberg.base import Base, is_wap_enabled
from dbt.adapters.sparkevolve.iceberg.catalog import IcebergCatalog, LoadedTable
from dbt.adapters.sparkevolve.iceberg.publication import Published
from dbt.adapters.sparkevolve.iceberg.row_counts import commits_now, commits_since, creation
from dbt.adapters.sparkevolve.iceberg.staged_batch import StagedBatch
from dbt.adapters.sparkevolve.load import gone_metrics
from dbt.adapters.sparkevolve.load.audits import SHOWN_COLUMNS, check_audits
from dbt.adapters.sparkevolve.load.backfill import Backfill
from dbt.adapters.sparkevolve.load.backfill_batch import Arguments
from dbt.adapters.sparkevolve.load.batch_plan import plan_batch, plan_defaults
from dbt.adapters.sparkevolve.load.batches import drop_branches, end_replacement
from dbt.adapters.sparkevolve.load.checks import refuse_without_branches
from dbt.adapters.sparkevolve.load.compared import Compared
from dbt.adapters.sparkevolve.load.creation import Creation
from dbt.adapters.sparkevolve.load.dead_letters import DeadLetters
from dbt.adapters.sparkevolve.load.descriptions import undescribed
from dbt.adapters.sparkevolve.load.known_shapes import KnownShape
from dbt.adapters.sparkevolve.load.load import Load
from dbt.adapters.sparkevolve.load.local_times import with_instants
from dbt.adapters.sparkevolve.load.node import Node
from dbt.adapters.sparkevolve.load.plan_report import columns_of, not_returned
from dbt.adapters.sparkevolve.load.planned_texts import (
    not_found_in_branch,
    unreadable_key,
    unreadable_texts,
)
from dbt.adapters.sparkevolve.load.readers import replaced_warnings
from dbt.adapters.sparkevolve.load.refresh_notes import RefreshNotes, forgotten
from dbt.adapters.sparkevolve.load.replay import Arguments as ReplayArguments
from dbt.adapters.sparkevolve.load.replay import Replay, Replayed
from dbt.adapters.sparkevolve.load.results import Response
from dbt.adapters.sparkevolve.load.shared import SharedByThreads
from dbt.adapters.sparkevolve.load.steps import Steps
from dbt.adapters.sparkevolve.load.strategies import is_loaded, refused_overwrite
from dbt.adapters.sparkevolve.operations import NamedNode
from dbt.adapters.sparkevolve.relation import SparkEvolveRelation
from dbt.adapters.sparkevolve.settings import IncrementalSettings, Strategy
from dbt.adapters.sparkevolve.spark.interface import Spark
from dbt.adapters.sparkevolve.sql import audit_queries, batch_queries, branch_statements, snapshots
from dbt.adapters.sparkevolve.warning import are_errors, not_removed, warn_of_rest

if TYPE_CHECKING:
    import agate

logger = AdapterLogger("SparkEvolve")


class LoadRunner:
    """Loads batches into their tables, and publishes them.

    Args:
        catalog: the catalog.
        spark: where the node runs.
        node: the node that runs.
        shared: what it shares with other nodes.
    """

    def __init__(self, catalog: IcebergCatalog, spark: Spark, node: Node, shared: SharedByThreads) -> None:
        self._catalog = catalog
        self._spark = spark
        self._node = node
        self._shared = shared
        self._steps = Steps(catalog, spark)
        self._notes = RefreshNotes(catalog)
        self._dead_letters = DeadLetters(catalog, spark, node)

    def begin_load(self, target: SparkEvolveRelation, *, is_plan: bool = False) -> Base:
        """Return the state of ``target`` that the run starts from; remove what killed runs have left of it.

        That is branches, and the batch of a full refresh, which may still run.

        Args:
            target: the model's table.
            is_plan: whether nothing will be loaded: nothing is removed then.

        Raises:
            NotIcebergError: the target is not an Iceberg table.
            EvolutionRefusedError: Spark cannot read the table, since it has no such type.
            NotOnBranchError: the session keeps what it writes to this table out of every branch.
        """
        table, self._node.table = self._node.table, None
        base = self._catalog.base(target, lambda: self._spark.setting("spark.wap.branch"), table)
        self._node.format_version = base.table.metadata.format_version
        if is_wap_enabled(base.table) and self._spark.setting("spark.wap.id") is not None:
            raise NotOnBranchError(
                str(target), "the session's `spark.wap.id` keeps each statement's rows apart"
            )
        _refuse_unreadable(target, base.table.schema(), self._node.changed)
        if is_plan:
            self._node.taken_back = list(map(str, ends_of_renames(base.table.schema().as_struct())))
            return base
        end_replacement(self._catalog, target, base.table)
        for branch in base.left_over:
            logger.info(f"Removing the branch {branch} of {target}, which an earlier run left behind")
            try:
                self._spark.run(branch_statements.drop_branch(str(target), branch))
            except DbtRuntimeError as exc:
                # Another run may be removing it, too.
                warn_of_rest(not_removed(f"The branch {branch} of {target}", exc))
        return base

    def end_renames(self, base: Base, target: SparkEvolveRelation, settings: IncrementalSettings) -> Base:
        """Take back each change of a name's case that has ended half-way; return what the run starts from.

        All goes on as if the run that made half of it had not begun: a model that reads its table would not
        find the column.

        Args:
            base: what ``begin_load`` returned.
            target: the model's table.
            settings: the model's.

        Raises:
            EvolutionRefusedError: the run freezes the schemas of tables.
            CommitConflictError: other writers were faster each time.
            SchemaCommitError: the catalog refused the changes.
        """
        schema = base.table.schema()
        wanted = ends_of_renames(schema.as_struct())
        if not wanted:
            return base
        if settings.frozen_for:
            refused = refusals.frozen_schema(settings.frozen_for, [str(change) for change in wanted])
            raise EvolutionRefusedError(str(target), [refused], changed=self._node.changed)
        plan = self._catalog.evolve(
            target,
            lambda now, facts: EvolutionPlan(changes=ends_of_renames(now.as_struct())),
            settings.commit_retries,
            source=schema,
            invocation_id=get_invocation_id(),
            base=base,
        )
        self._node.note_changes(plan.changes)
        for change in plan.changes:
            logger.info(f"{target}: {change}, since a run has ended while it changed the case of that name")
        return self.begin_load(target)

    def evolve(
        self,
        base: Base,
        target: SparkEvolveRelation,
        staged: SparkEvolveRelation,
        settings: IncrementalSettings,
        column_docs: Mapping[str, str],
        detected: Mapping[str, Sequence[str]],
        returned: Sequence[str] | None = None,
        unique_id: str = "",
        graph: Mapping[str, Any] | None = None,
    ) -> Load:
        """Add the new columns to ``target`` in one commit, and return how to load the batch.

        Args:
            base: what ``begin_load`` returned.
            target: the model's table.
            staged: the batch.
            settings: the model's.
            column_docs: descriptions of columns, stored with those that are added.
            detected: what ``sparkevolve__detect_schema_change`` has found in the columns of ``base``.
            returned: the columns that the query returned then; None if the batch is known to have these.
            unique_id: dbt's id of the model; empty if nobody is told what there is to warn of.
            graph: dbt's ``graph``, for the same.

        Raises:
            EvolutionRefusedError: nothing was written, and why.
            WarningsError: there is something to warn of, and warnings are errors.
            ColumnsMovedError: the table's columns have changed since ``base``, or the model's since it was
                compared with that, and a difference is to fail.
            DetectionError: what was detected is not what is planned.
            CommitConflictError: other writers were faster each time.
        """
        found = refused_overwrite(base, settings)
        if found:
            raise EvolutionRefusedError(str(target), found, changed=self._node.changed)
        batch = self._catalog.staged_batch(staged, settings.bookkeeping)
        if self._node.letters is not None:
            batch.filled = self._node.letters.filled
        uncounted = batch.uncounted(base.table.schema())
        if uncounted:
            rows = self._spark.rows(batch_queries.count_nulls(str(staged), uncounted))
            batch.add_counts(dict(zip(uncounted, map(int, rows[0]), strict=True)))

        compared = Compared(
            Detected(**detected),
            table=base.columns,
            source=None if returned is None else _without(returned, settings.bookkeeping),
            may_differ=settings.on_schema_change != "fail" or settings.add_columns,
            written=tuple(self._node.changed),
        )
        known = KnownShape(batch, settings, column_docs, get_invocation_id())
        # Of two clocks the later one: a branch that is kept too long does no harm.
        now_ms = max(int(time.time() * 1000), batch.written_ms)
        # Each batch of a microbatch model, and each new beginning of a run, is a load of its own.
        told = (get_invocation_id(), str(target))

        def load_of(plan: EvolutionPlan) -> Load:
            load = Load(target, staged, base, batch, plan, settings, now_ms)
            load.properties = {**known.properties(plan), **record.told(plan.notes, base.table.properties)}
            load.is_new_shape = known.is_new
            load.older = known.older(plan)
            load.has_said_differences = told in self._shared.told_of_differences
            return load

        def check(plan: EvolutionPlan) -> None:
            if is_loaded(batch, settings):
                found = not_found_in_branch(base, target, batch, plan, settings)
                found += unreadable_texts(self._spark, target, str(staged), plan, settings)
                if found:
                    raise EvolutionRefusedError(str(target), found, changed=self._node.changed)
            if unique_id and are_errors():
                warnings = load_of(plan).warnings(unique_id, graph or {})
                node = (graph or {}).get("nodes", {}).get(unique_id, {}) if column_docs else {}
                warnings += undescribed(target, node.get("columns", {}), plan.refreshed)
                self._node.refuse_warnings(warnings)

        plan = self._commit_plan(
            base, target, batch, settings, column_docs, compared, known=known, check=check
        )
        load = load_of(plan)
        # Not before: a thread that has failed has told nobody.
        load.has_said_differences = not self._shared.is_first(self._shared.told_of_differences, told)
        self._node.load = load
        return load

    def wait_for_turn(self, load: Load) -> bool:
        """Wait until no other thread of this run loads into the same table; tell whether one has, meanwhile.

        Batches of a microbatch model are loaded in parallel: one after the other they do not get in each
        other's way.
        """
        node = self._node
        if not load.goes_on_branch or node.lock is not None:
            return True
        lock = self._shared.turn_at(str(load.target))
        at_once = lock.acquire(blocking=False)
        if not at_once:
            lock.acquire()
        node.lock = lock
        return at_once or not self._catalog.has_moved(load.target, load.base)

    def set_partition_overwrite(self, load: Load) -> None:
        """Let INSERT OVERWRITE on this connection replace what the load is to replace."""
        self._spark.set_partition_overwrite(load.partition_overwrite)

    def reset_partition_overwrite(self, load: Load) -> None:
        """Let INSERT OVERWRITE replace again what the profile says, if the load has changed that."""
        if load.partition_overwrite:
            self._spark.set_partition_overwrite(None)

    def run_step(self, load: Load, step: int) -> "tuple[Any, agate.Table]":
        """Run one statement of a load, exactly once whatever comes between; see ``Steps.run``."""
        if step == 0 and not load.goes_on_branch:
            self._notes.note(load, None)
        try:
            answer = self._steps.run(load, step)
        except DbtRuntimeError as exc:
            if not load.goes_on_branch:
                if may_have_taken_effect(exc):
                    self._dead_letters.leave()
                elif step == 0 and not isinstance(exc, RunCancelledError):
                    self._notes.withdraw(load)
            raise
        if not load.goes_on_branch and step == len(load.steps) - 1:
            # The rows are visible before anything has noted it.
            self._dead_letters.leave()
        return answer

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
        files = self._catalog.added_files(load.target, load.branch)
        if not files:
            return
        rows = audit_queries.loaded_rows(load.written, files, str(load.staged), load.merge_key)
        columns = load.plan.unique_key or load.plan.refreshed[:SHOWN_COLUMNS]
        check_audits(self._spark, str(load.target), rows, audits, columns)

    def audit_staged(
        self, target: SparkEvolveRelation, staged: SparkEvolveRelation, settings: IncrementalSettings
    ) -> None:
        """Check a staged batch, also against the model's audits, before a table is made from it.

        Raises:
            AuditError: rows fail; nothing was made.
            HiddenBatchError: a table would be made without its rows.
        """
        batch = self._catalog.staged_batch(staged)
        if settings.audits:
            columns = settings.unique_key or [f.name for f in batch.schema.fields][:SHOWN_COLUMNS]
            left = ROWS_AS_THEY_WERE if self._node.is_replacing else NO_TABLE_MADE
            rows = f"SELECT * FROM {staged}"
            check_audits(self._spark, str(target), rows, settings.audits, columns, left)

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
            logger.info(f"This run cannot go on from what it started from in {load.target}: loading again")
            drop_branches(self._catalog, load)
            return False
        if load.branch is None or not load.goes_on_branch:
            self.publish_letters(load.settings)
            self._note_loaded(load)
            return True
        if load.settings.strategy == Strategy.FULL_REFRESH and not self._catalog.is_atomic(load.base.table):
            head = self._catalog.head(load.target, load.branch)
            self._notes.note(load, head.snapshot_id if head is not None else None)
        if self._node.letters is not None and self._node.letters.query is not None:
            # Before they are written: what is not published is not to be taken back.
            if self._catalog.has_moved(load.target, load.base):
                return self._has_moved(load, is_last)
            self.publish_letters(load.settings)

        try:
            outcome = self._catalog.publish(
                load.target,
                load.base,
                load.branch,
                retries,
                load.elapsed_ms,
                load.overwritten_spec,
                lambda now: {**load.properties, **dict.fromkeys(forgotten(load, now))},
                seen=lambda metadata, head: self._node.result.note_commits(
                    commits_since(metadata, head, load.base.cut_at), load.settings.strategy, load.batch.rows
                ),
            )
        except (PublishError, RunCancelledError) as exc:
            is_known = exc.snapshot_id is None if isinstance(exc, PublishError) else exc.is_published is False
            if not is_known:
                # The rows may be visible.
                self._dead_letters.leave()
            raise
        if outcome == Published.MOVED:
            self._dead_letters.take_back()
            return self._has_moved(load, is_last)
        if outcome == Published.NOTHING_NEW:
            # A MERGE may find nothing to update; what else has rows has written some.
            if load.batch.rows and load.settings.strategy not in (Strategy.MERGE, Strategy.SNAPSHOT):
                raise NotOnBranchError(
                    str(load.target), "its rows are not on the branch that they were written to"
                )
            drop_branches(self._catalog, load)
            self._node.result.snapshot_id = load.base.head
        load.branch = None
        load.is_visible = outcome == Published.YES
        if not load.is_visible or not self._catalog.is_atomic(load.base.table):
            self._notes.forget(load)
        return True

    def _note_loaded(self, load: Load) -> None:
        """Take note of what a load has done that went straight into the table, or had nothing to load."""
        try:
            metadata = self._catalog.load(load.target).metadata
        except Exception as exc:
            # The rows are there, and so for whatever the catalog or a library says.
            logger.debug(f"What was loaded into {load.target} is not known: {exc}")
            return
        commits = commits_now(metadata, load.base.ref, load.base.head, len(load.statements))
        self._node.result.note_commits(commits, load.settings.strategy, load.batch.rows)

    def note_batch(
        self, unique_id: str, relation: SparkEvolveRelation, response: Response, as_json: bool
    ) -> None:
        """Take note that a batch of a microbatch model is done; see ``BatchSums.add``."""
        self._shared.batch_sums.add(unique_id, relation, response, as_json)

    def note_made(self, relation: SparkEvolveRelation, source: str = "") -> list[str]:
        """Take note of the table that a node has made, if it has loaded nothing into one that was there.

        Args:
            relation: the table, in a catalog that the profile states.
            source: what its rows are from, in words; empty if nobody is to be told what it has no more.

        Returns:
            what to warn of: the columns that the table had before and has not now, or that PyIceberg does
            not find what Spark has just made.
        """
        node = self._node
        if node.load is not None:
            return []
        try:
            table = self._catalog.find(relation)
        except Exception as exc:
            # The rows are there, whatever can be told of them.
            logger.debug(f"What was loaded into {relation} is not known: {exc}")
            return []
        if table is None:
            return [
                f"{relation} was built by Spark, and PyIceberg does not find it in the catalog "
                f"`{self._catalog.name}`. Unless it has been dropped or renamed since, as by a post-hook, "
                f"`{self._catalog.stated_by}` of the profile name another catalog than the one that Spark "
                "uses (`dbt debug` tells): then it is in Spark's, and the next run does not replace it."
            ]
        node.result.note_creation(creation(table.metadata))
        if node.table is None:
            return []
        # A name that a run has changed half-way is the one that it was.
        old, new = as_before(node.table.schema()), table.schema()
        lost = fields_without(old, new)
        node.result.columns |= {"columns_added": fields_without(new, old), "columns_lost": lost}
        if not (lost and source):
            return []
        return [f"{relation}: {loss_text(lost, source, node.table.metadata.current_snapshot_id)}"]

    def response(
        self,
        relation: SparkEvolveRelation,
        response: AdapterResponse,
        *,
        rows: int | None = None,
    ) -> Response:
        """Return dbt's response to a node's last statement with what the node has done.

        Args:
            relation: its table.
            response: that response.
            rows: how many rows it was made with, if that is known.
        """
        node = self._node
        if rows is not None:
            node.result.note_rows(rows)
        if node.load is not None:
            node.result.columns |= columns_of(node.evolved) | not_returned(node.load.removed)
            node.result.columns |= {"columns_left_out": node.load.ignored}
        return node.result.response(response, node.letters)

    def check_dead_letters(
        self,
        target: SparkEvolveRelation,
        settings: IncrementalSettings,
        others: Mapping[str, Sequence[str]],
        other_kind: str,
        *,
        is_plan: bool = False,
    ) -> None:
        """See whether bad rows can be set aside, before anything runs; see ``DeadLetters.check``."""
        self._dead_letters.check(target, settings, others, other_kind, is_plan=is_plan)

    def route(
        self,
        target: SparkEvolveRelation,
        base: Base | None,
        staged: SparkEvolveRelation,
        settings: IncrementalSettings,
        model: str,
        location: str | None = None,
    ) -> SparkEvolveRelation:
        """Return what is to be loaded of a staged batch: all of it, or its good rows; see ``DeadLetters``.

        Args:
            target: the model's table.
            base: what ``begin_load`` returned; None if there is no table.
            staged: the batch.
            settings: the model's.
            model: the model's name.
            location: the literal of where the table for dead letters is to be; None if the catalog chooses.
        """
        if not settings.sets_aside:
            return staged
        table = base.table if base is not None else None
        return self._dead_letters.route(target, table, staged, settings, model, location)

    def publish_letters(self, settings: IncrementalSettings) -> None:
        """Publish what was set aside of a batch, before its other rows.

        Args:
            settings: the model's.

        Raises:
            PublishConflictError: others have committed to the dead letters each time.
            PublishError: the catalog refused.
        """
        letters = self._node.letters
        if letters is None or letters.query is None:
            return
        with self._shared.turn_at(str(letters.relation)):
            self._dead_letters.publish(settings.commit_retries)

    def _has_moved(self, load: Load, is_last: bool) -> bool:
        """Let the run begin again: the table is not any more what it started from.

        Raises:
            PublishConflictError: this was the last attempt.
        """
        if is_last:
            raise PublishConflictError(str(load.target), load.settings.commit_retries + 1)
        logger.info(f"{load.target} has changed since this run read it: loading again")
        drop_branches(self._catalog, load)
        return False

    def replay(self, node: NamedNode, given: Mapping[str, Any]) -> Replayed:
        """Load dead letters of a model again; see ``Replay``.

        Args:
            node: the model.
            given: the arguments of `replay_dead_letters`, as `OPERATIONS` has them.

        Raises:
            OperationError: it cannot be done, and why.
        """
        arguments = ReplayArguments(**{name: value for name, value in given.items() if name != "model"})
        self._end_renames_first(node, is_plan=arguments.plan_only)
        settings = with_instants(node.settings, self._spark)
        return Replay(self._catalog, self._spark, self, self._node, node, settings, arguments).run()

    def note_shape(self, load: Load) -> None:
        """Record a new shape, and no backfill, after a load that went straight into the table."""
        if load.goes_on_branch or not load.statements:
            return
        self._notes.forget(load)
        shape = load.properties
        if not (shape and (load.is_new_shape or record.TOLD in shape)):
            return
        try:
            self._catalog.set_properties(load.target, shape, load.settings.commit_retries)
        except Exception as exc:
            # The rows are there; the next run plans again, and records it.
            logger.debug(f"The shape of the batch was not recorded in {load.target}: {exc}")

    def conform_snapshot(
        self,
        base: Base,
        target: SparkEvolveRelation,
        staged: SparkEvolveRelation,
        settings: IncrementalSettings,
        query: Mapping[str, Any],
        unique_id: str = "",
        graph: Mapping[str, Any] | None = None,
    ) -> dict[str, Any]:
        """Add a snapshot's new fields to the structs of its table, and return its query in the table's order.

        New columns are not added yet: dbt makes new versions of rows since the table lacks a column. But what
        is replaced is, since dbt would compare the new values with the old ones of another type.

        Args:
            base: what ``begin_load`` returned.
            target: the snapshot's table.
            staged: the query's columns, without rows.
            settings: the snapshot's.
            query: what ``Queries.snapshot`` has returned.
            unique_id: dbt's id of the snapshot.
            graph: dbt's ``graph``, for who reads a column that is replaced.

        Returns:
            ``sql``, ``changes`` and ``warnings`` (texts).

        Raises:
            EvolutionRefusedError: nothing was written, and why.
            TableChangedError: another table has taken the name.
            CommitConflictError: other writers were faster each time.
        """
        batch = self._catalog.staged_batch(staged)
        warnings: list[str] = []

        def check(plan: EvolutionPlan) -> None:
            if any(_before_versions_are_compared(plan)):
                unreadable = unreadable_key(self._spark, str(staged), plan, settings)
                if unreadable:
                    raise EvolutionRefusedError(str(target), unreadable, changed=self._node.changed)
            found = replaced_warnings(plan, unique_id, graph or {}) if plan.replaced else []
            warnings[:] = [f"{target}: {text}" for text in found]
            if are_errors():
                self._node.refuse_warnings(warnings)

        plan = self._commit_plan(
            base, target, batch, settings, {}, wanted=_before_versions_are_compared, check=check
        )
        sql = snapshots.conforming_query(query["sql"], query["columns"], plan.columns)
        return {"sql": sql, "changes": [str(change) for change in plan.changes], "warnings": warnings}

    def not_null_not_applied(self, relation: SparkEvolveRelation, names: Sequence[str]) -> str:
        """Return what to say, once in each run, of columns that a contract wants NOT NULL; empty for nothing.

        Args:
            relation: the table, with the rows of this run.
            names: the columns for which the contract has `not_null`.
        """
        told = (get_invocation_id(), str(relation))
        if not names or not self._shared.is_first(self._shared.told_of_not_null, told):
            return ""
        table = self._catalog.find_readable(relation)
        found = optional_columns(table.schema(), names) if table is not None else []
        if not found:
            return ""
        return (
            f"{relation}: the contract's not_null of {', '.join(map(quote, found))} is not applied: in the "
            "table such a column stays optional, so that it can be padded once the model no longer returns "
            "it. dbt's test `not_null` checks it, and so do `audits` before rows are visible."
        )

    def begin_creation(
        self, relation: SparkEvolveRelation, query: str, clauses: str, *, is_new: bool = False
    ) -> bool:
        """Let a table be made from a query, and tell whether by replacing one; see ``Creation.begin``."""
        creation = Creation(self._catalog, self._spark, self._node)
        return creation.begin(relation, query, clauses, is_new=is_new)

    def refuse_hidden(self, relation: SparkEvolveRelation, clauses: str) -> None:
        """Refuse a table whose rows no reader would see; see ``Creation.refuse_hidden``."""
        Creation(self._catalog, self._spark, self._node).refuse_hidden(relation, clauses)

    def check_creation(self, relation: SparkEvolveRelation) -> None:
        """See whether a table that was made so has replaced nothing of others; see ``Creation.check``."""
        Creation(self._catalog, self._spark, self._node).check(relation)

    def unset_gone_metrics(self, relation: SparkEvolveRelation, properties: Mapping[str, object]) -> None:
        """Let Spark change the properties of a table that was just replaced; see ``gone_metrics.unset``."""
        gone_metrics.unset(self._catalog, relation, self._node.table, properties)

    def store_defaults(self, target: SparkEvolveRelation, settings: IncrementalSettings) -> list[str]:
        """Give the columns of a table that was just made the defaults of its model, in one commit.

        Args:
            target: the table.
            settings: the model's.

        Returns:
            What to warn of.

        Raises:
            CommitConflictError: other writers were faster each time.
            SchemaCommitError: the catalog refused the changes.
        """
        if not settings.defaults:
            return []
        schema = self._catalog.load(target).schema()
        plan = self._catalog.evolve(
            target,
            lambda table, facts: plan_defaults(table, settings, facts),
            settings.commit_retries,
            source=schema,
            invocation_id=get_invocation_id(),
        )
        self._node.note_changes(plan.changes)
        for change in plan.changes:
            logger.info(f"{target}: {change}")
        self._shared.told_of_differences.add((get_invocation_id(), str(target)))
        if plan.notes:
            told = record.told(plan.notes, {})
            self._catalog.set_properties(target, told, settings.commit_retries)
        return list(plan.reminders)

    def backfill(self, node: NamedNode, given: Mapping[str, Any]) -> Backfill:
        """Return what fills a column of the table of a model.

        Args:
            node: the model.
            given: the arguments of `backfill_column`, as `OPERATIONS` has them.

        Raises:
            OperationError: it cannot be done, and why.
        """
        refuse_without_branches(
            self._catalog,
            node.relation,
            f"No column of {node.relation} can be filled",
            "Fill it with an UPDATE. Nothing was written.",
        )
        arguments = Arguments(**{name: value for name, value in given.items() if name != "model"})
        self._end_renames_first(node, is_plan=arguments.plan_only)
        return Backfill(self._catalog, self._spark, self.begin_load, node.relation, node.settings, arguments)

    def _end_renames_first(self, node: NamedNode, *, is_plan: bool) -> None:
        """Let an operation begin with the names that a run begins with; see ``end_renames``.

        Raises:
            OperationError: they would have to be changed for that, and nothing is to be done but to plan.
        """
        table = self._catalog.find(node.relation)
        ends = ends_of_renames(table.schema().as_struct()) if table is not None else ()
        if not ends:
            return
        if is_plan:
            texts = "; ".join(map(str, ends))
            raise OperationError(
                f"A run has ended while it changed the case of a name in {node.relation}, and this would "
                f"take that back first ({texts}). A plan changes nothing, and can be made once that is "
                "done: by the next run of the model, or by this without `plan_only`."
            )
        self.end_renames(self.begin_load(node.relation), node.relation, node.settings)

    def may_have_rows(self, relation: SparkEvolveRelation) -> bool:
        """Tell whether Spark is to be asked for the rows of a table; see ``IcebergCatalog.may_have_rows``."""
        return self._catalog.may_have_rows(relation)

    def refresh(self, relation: SparkEvolveRelation) -> None:
        """Let Spark see what was published. A new connection sees it anyway, so a lost one is no failure."""
        try:
            self._spark.run(branch_statements.refresh_table(str(relation)))
        except AfterLoadError as exc:
            if not isinstance(exc.__cause__, ConnectionLostError):
                raise
            logger.debug(f"The connection was lost after the batch was published: {exc.__cause__}")
            self._spark.reconnect()

    def _commit_plan(
        self,
        base: Base,
        target: SparkEvolveRelation,
        batch: StagedBatch,
        settings: IncrementalSettings,
        column_docs: Mapping[str, str],
        compared: Compared | None = None,
        wanted: Callable[[EvolutionPlan], Iterable[Change]] = lambda plan: plan.changes,
        known: KnownShape | None = None,
        check: Callable[[EvolutionPlan], None] = lambda plan: None,
    ) -> EvolutionPlan:
        """Make the changes that a batch needs, or those of them that are wanted now, and return the plan.

        ``check`` gets the plan before anything is made of it, and may raise an error.
        """

        def decide(schema: Schema, facts: TableFacts) -> EvolutionPlan:
            plan = plan_batch(batch, settings, column_docs, schema, facts, self._node.name)
            if plan.refusals:
                helps = settings.may_be_replaced
                raise EvolutionRefusedError(str(target), plan.refusals, helps, self._node.changed)
            if compared is not None:
                compared.check(target, planned(plan, schema), schema, batch.schema)
            check(plan)
            return replace(plan, changes=tuple(wanted(plan)))

        def recognise(table: LoadedTable) -> EvolutionPlan | None:
            plan = known.recognise(table) if known is not None else None
            if plan is None:
                return None
            logger.debug(f"{target}: the shape of the batch is known, so that nothing is planned")
            if compared is not None:
                compared.check(target, planned(plan, table.schema()), table.schema(), batch.schema)
            check(plan)
            return plan

        try:
            plan = self._catalog.evolve(
                target,
                decide,
                settings.commit_retries,
                source=batch.schema,
                invocation_id=get_invocation_id(),
                base=base,
                seen_ms=batch.written_ms,
                recognise=recognise,
            )
        except RunCancelledError as exc:
            if not self._node.changed:
                raise
            undone = f"{exc.undone} any more than before ({'; '.join(self._node.changed)})"
            raise RunCancelledError(undone, exc.relation, exc.is_published) from exc
        self._node.note_changes(plan.changes)
        return plan


def _refuse_unreadable(target: SparkEvolveRelation, schema: Schema, changed: Sequence[str] = ()) -> None:
    """Refuse a table that has a column for which Spark has no type: Spark cannot even open it.

    Args:
        target: the table.
        schema: its schema.
        changed: what this run has changed of its columns.

    Raises:
        EvolutionRefusedError: names these columns.
    """
    found = [
        refusals.no_spark_type((field.name,), field.field_type)
        for field in schema.fields
        if not has_spark_type(field.field_type)
    ]
    if found:
        raise EvolutionRefusedError(str(target), found, changed=changed)


def _without(names: Sequence[str], left_out: Collection[str]) -> list[str]:
    return [name for name in names if fold(name) not in left_out]


def _before_versions_are_compared(plan: EvolutionPlan) -> Iterator[Change]:
    """Yield the changes that have to be made before rows of a snapshot are compared with its versions."""
    replaced = [path for path in plan.replaced if len(path) == 1]
    for change in plan.changes:
        is_in_a_column = isinstance(change, AddField | WidenType | RenameField) and len(change.path) > 1
        # One rename may make room for another.
        makes_room = isinstance(change, RenameField) and bool(replaced)
        if is_in_a_column or makes_room or (isinstance(change, AddColumn) and change.path in replaced):
            yield change
