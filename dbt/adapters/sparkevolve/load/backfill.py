"""A backfill: a column of a table that is there is filled, batch by batch, each in one compare-and-swap.

Where it is stands in the table's properties. Each batch changes that in the commit that makes its rows
visible, so however a backfill ends, no batch is left out, and none is filled twice.
"""

import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime, timezone
from typing import Any

from dbt_common.exceptions import DbtRuntimeError
from dbt_common.invocation import get_invocation_id

from dbt.adapters.sparkevolve.errors import (
    BackfillError,
    ConnectionLostError,
    OperationError,
    PublishError,
    RunCancelledError,
    backfill_done,
)
from dbt.adapters.sparkevolve.evolution import backfills
from dbt.adapters.sparkevolve.evolution.backfills import Bound, Position, Request
from dbt.adapters.sparkevolve.evolution.names import path_text
from dbt.adapters.sparkevolve.evolution.types import type_text
from dbt.adapters.sparkevolve.iceberg.base import Base
from dbt.adapters.sparkevolve.iceberg.catalog import IcebergCatalog, LoadedTable
from dbt.adapters.sparkevolve.iceberg.publication import Published
from dbt.adapters.sparkevolve.load.backfill_batch import (
    Arguments,
    BackfillLoad,
    Batch,
    batches_text,
    duration_text,
    rows_text,
)
from dbt.adapters.sparkevolve.load.backfill_checks import BackfillChecks, checked_value
from dbt.adapters.sparkevolve.load.backfill_plan import Batching, batching, column_to_fill
from dbt.adapters.sparkevolve.load.backfill_positions import Positions
from dbt.adapters.sparkevolve.load.batches import drop_branches
from dbt.adapters.sparkevolve.load.steps import Steps
from dbt.adapters.sparkevolve.relation import SparkEvolveRelation
from dbt.adapters.sparkevolve.settings import IncrementalSettings
from dbt.adapters.sparkevolve.spark.interface import Spark
from dbt.adapters.sparkevolve.sql import backfill as sql
from dbt.adapters.sparkevolve.sql import branch_statements
from dbt.adapters.sparkevolve.sql.by_field_ids import by_field_ids
from dbt.adapters.sparkevolve.times import iso

# How many values a message shows.
_SHOWN = 3
_MAIN = "main"


class Backfill:
    """Fills a column.

    Args:
        catalog: the catalog.
        spark: where it runs.
        begin: returns the base of a table, and removes branches that killed runs have left.
        target: the table.
        settings: those of its model.
        given: what the user has asked for.
    """

    def __init__(
        self,
        catalog: IcebergCatalog,
        spark: Spark,
        begin: Callable[[SparkEvolveRelation], Base],
        target: SparkEvolveRelation,
        settings: IncrementalSettings,
        given: Arguments,
    ) -> None:
        self._catalog = catalog
        self._spark = spark
        self._begin = begin
        self._target = target
        self._settings = settings
        self._given = given
        self._steps = Steps(catalog, spark)
        # What other commands do from here on is done beside this one.
        self._seen = table = catalog.load(target)
        checks = BackfillChecks(spark, target, given)
        checks.table(table)
        self._column, self._field_id = column_to_fill(target, table.schema(), given.column)
        self._batching = self._batches_of(table)
        checks.texts()
        by_ids = [int(n) for n in self._batching.identities] if given.batch_by else []
        base = catalog.base(target, lambda: spark.setting("spark.wap.branch"), table)
        checks.branch(base, self._field_id, by_ids)
        self._convert = checks.conversion(self._column)
        checks.names(table, by_ids)
        self._request = Request(
            path_text(self._column.path),
            given.value,
            given.where,
            self._batching.labels,
            given.only_null,
            self._batching.identities,
            (by_field_ids(given.value, table.schema()), by_field_ids(given.where, table.schema())),
        )
        self._positions = Positions(catalog, self._request, self._field_id)
        # The head of the table when its batches were counted, or after the last one that was published here.
        self._counted_at: int | None = None
        self._position: Position | None = None
        self._until: Bound = ()
        # Whether the position is one that the table has, and not one to be forgotten.
        self._is_begun = False
        # Whether others have removed it, and another command of the same would not go on with it.
        self._is_forgotten = False
        # Whether it is one of before a full refresh that has not removed it.
        self._is_refreshed = False
        self._done = self._rows_done = 0
        self._seconds = 0.0
        self._log: Callable[..., object] = lambda text, info: None

    # What the user gets

    def plan(self) -> dict[str, Any]:
        """Return what a run would do; nothing is written.

        Returns:
            ``lines`` (texts) and what these say as ``data``.
        """
        position = None if self._given.restart else self._known_position()
        found = self._batches(position)
        rows = sum(batch.rows for batch in found)
        lines = [f"{self._title}: {rows_text(rows)} in {batches_text(len(found))}, nothing was changed"]
        if position is not None:
            lines.append(f"  goes on after {self._state(position)}")
        if self._column.is_required and self._given.only_null:
            lines.append("  the column is NOT NULL: `only_null: false` replaces the values that are there")
        for number, batch in enumerate(found, start=1):
            blank = f", of which {batch.blank} would be NULL" if batch.blank else ""
            upto = f", up to {self._shown(batch.last)}" if batch.last else ""
            lines.append(f"  batch {number}: {rows_text(batch.rows)}{upto}{blank}")
        listed = [
            {"rows": b.rows, "null_values": b.blank, "up_to": self._shown(b.last) or None} for b in found
        ]
        return {"lines": lines, "data": self._data(rows_left=rows, batches_left=len(found), batches=listed)}

    def run(self, log: Callable[..., object]) -> dict[str, Any]:
        """Fill the column, or as many batches of it as are wanted.

        Args:
            log: dbt's own, for what is said meanwhile: our logger would put the adapter's name before it.

        Returns:
            ``lines`` (texts) and what these say as ``data``.

        Raises:
            OperationError: nothing was written, and why.
            BackfillError: it has stopped at a batch, and why.
        """
        self._log = log
        position = None if self._given.restart else self._known_position()
        if position is not None and position.finished:
            # It ended after its last batch, before the user was told.
            self._position = position
            return self._finished("had been finished already, by an earlier command; nothing was changed")
        self._position, self._is_begun = position, position is not None
        waiting = self._batches(position)
        self._refuse_lossy(str(self._target), waiting)
        if position is not None:
            self._say(f"{self._title} goes on after {self._state(position)}")
        rows = sum(batch.rows for batch in waiting)
        self._say(f"{self._title}: {rows_text(rows)} in {batches_text(len(waiting))}")
        most = self._given.max_batches
        try:
            while waiting and (most is None or self._done < most):
                if self._done and self._given.pause_seconds:
                    self._catalog.pause(self._given.pause_seconds)
                waiting = self._next(waiting)
        except DbtRuntimeError as exc:
            raise self._explained(exc) from exc
        except KeyboardInterrupt:
            self._say(f"{self._title} was interrupted: the same command finds out where, and goes on.")
            raise
        if waiting:
            return self._stopped(waiting)
        if self._position is not None:
            # Of the batches that were left when it began, others may have filled or removed all rows.
            self._position = replace(self._position, finished=True)
        return self._finished("is finished")

    def forget(self) -> None:
        """Remove what a finished backfill has left in the table's properties, once the user has been told."""
        table = self._catalog.load(self._target)
        seen = table.properties.get(self._property)
        is_forgotten = (self._given.restart or self._is_refreshed) and not self._is_begun
        is_done = self._is_finished and self._positions.own(table.properties) is not None
        if seen is None or not (is_forgotten or is_done):
            return
        retries = self._settings.commit_retries
        self._catalog.replace_property(self._target, self._property, seen, None, retries)

    # Before anything is written

    def _batches_of(self, table: LoadedTable) -> Batching:
        given = self._given
        return batching(
            self._target, table, self._column, given.batch_by, given.rows_per_batch, self._settings
        )

    # Where it is

    def _known_position(self) -> Position | None:
        """Return where the backfill is in the branch that it fills, which `spark.wap.branch` may name."""
        base = self._catalog.base(self._target, lambda: self._spark.setting("spark.wap.branch"))
        return self._position_in(base.table, base.ref)

    def _position_in(self, table: LoadedTable, ref: str) -> Position | None:
        """Return where the backfill is by a table's properties; None if it has not begun.

        Raises:
            OperationError: another one of the same column is not finished, or the table has lost its rows.
        """
        try:
            found = backfills.read(table.properties, self._field_id)
        except backfills.SpoiledPosition as exc:
            raise OperationError(
                f"The property {self._property} of {self._target} is not what a backfill has written: {exc}. "
                "`restart: true` begins at the first row, and forgets it."
            ) from exc
        if found is None:
            return None
        try:
            settled = self._positions.settled(table, ref, found)
        except backfills.UnknownPosition as exc:
            raise self._unknown_position(exc) from exc
        self._is_refreshed = settled is None
        if settled is None:
            return None
        found = settled
        has_rows = self._positions.has_rows(table, ref, found)
        if self._request.is_of(found) and has_rows is not False:
            if has_rows is None and found.only_null:
                # Rows that are filled still are left alone from the first one on.
                self._is_refreshed = True
                return None
            if has_rows is None:
                raise OperationError(
                    f"A backfill of {found.column} in {self._target} is not finished, and whether the table "
                    "still has the rows of its last batch is not known any more, since the table's older "
                    "snapshots and metadata files are gone: rows might be filled twice, or never. Look at "
                    "the rows, and leave out by `where` those that are filled; `restart: true` begins at the "
                    f"first row, and forgets where it is.{self._unwritten}"
                )
            return found
        if found.finished:
            return None
        if has_rows is False:
            raise OperationError(
                f"A backfill of {found.column} in {self._target} is not finished, and the table was replaced "
                f"or rolled back since its last batch, at {found.at or 'an unknown time'}: which rows it has "
                "filled is not known any more. `restart: true` begins at the first row, and forgets it."
                f"{self._unwritten}"
            )
        where = f", where {found.where}" if found.where else ""
        by = f", by {', '.join(found.batch_by)}" if found.batch_by else ""
        column = self._request.column
        former = f" ({found.column} when it was begun)" if found.column != column else ""
        raise OperationError(
            f"Another backfill of {column}{former} in {self._target} is not finished: {found.value}{where}"
            f"{by}{'' if found.only_null else ', only_null: false'}. It has done "
            f"{batches_text(found.batches)} ({rows_text(found.rows)}), the last at {found.at}. "
            f"{self._other_key(found)}Give the same arguments to go on with it, or "
            f"`restart: true` to forget where it is.{self._twice(found)}{self._unwritten}"
        )

    def _twice(self, found: Position) -> str:
        """Return which rows are filled again by a backfill that begins at the first row, if any are."""
        if found.only_null or self._given.only_null or not found.rows:
            return ""
        is_shown = found.batch_by == self._batching.labels and found.after
        rows = f", those up to {self._shown(found.after or ())}" if is_shown else ""
        return f" That fills rows again that it has filled{rows}: leave them out by `where`."

    def _unknown_position(self, unknown: object) -> OperationError:
        return OperationError(
            f"A backfill of {self._request.column} in {self._target} is not finished, and whether {unknown} "
            "was published is not known any more, since the table's older snapshots have expired or others "
            "have committed after it: rows might be filled twice. Look at the rows, and leave out by `where` "
            "those that are filled; `restart: true` begins at the first row, and forgets where it is."
            f"{self._unwritten}"
        )

    def _other_key(self, found: Position) -> str:
        """Return why the same arguments are another backfill: what the batches go by has changed."""
        request = self._request
        given = backfills.begun(request, (), None)
        same = ("value", "where", "only_null")
        if self._given.batch_by and found.batch_by != given.batch_by:
            return ""
        if any(getattr(found, name) != getattr(given, name) for name in same):
            return ""
        now = ", ".join(request.batch_by) or "nothing"
        if found.batch_by == given.batch_by and request.by_ids != (request.value, request.where):
            what = (
                f"{now}, or a column that `value` or `where` names,"
                if request.batch_by
                else "A column that `value` or `where` names"
            )
            return f"{what} is another one now than when it was begun: say what its columns are called now. "
        if found.batch_by == given.batch_by:
            return f"{now} is another column now than when it was begun, so its batches cannot go by that. "
        return (
            "By the table's partitions and the model's `unique_key` as they are now, its batches would go "
            f"by {now}: name in `batch_by` what they have gone by. "
        )

    def _batches(self, position: Position | None) -> list[Batch]:
        """Return the batches that are left, by the rows that the table has now."""
        head = self._catalog.load(self._target).metadata.refs.get(_MAIN)
        self._counted_at = head.snapshot_id if head is not None else None
        self._spark.run(branch_statements.refresh_table(str(self._target)))
        low, high = (position.after, position.until) if position is not None else (None, None)
        key = self._batching.key
        rows = self._spark.rows(
            sql.batches_query(
                str(self._target),
                self._given.value,
                self._convert,
                key,
                [*self._to_fill, *sql.between(key, low, high)],
                self._batching.rows,
            )
        )
        width = len(key)
        found = [
            Batch(tuple(None if t is None else str(t) for t in row[:width]), *map(int, row[width:]))
            for row in rows
        ]
        found = [batch for batch in found if batch.rows]
        if position is not None:
            self._until = position.until
        elif found:
            self._until = found[-1].last
        return found

    def _count(self, load: BackfillLoad, batch: Batch) -> Batch:
        """Return a batch as it is on its branch: others have changed the table since it was counted."""
        conditions = self._conditions(batch)
        query = sql.batches_query(load.written, self._given.value, self._convert, (), conditions, None)
        (row,) = self._spark.rows(query)
        found = Batch(batch.last, *map(int, row))
        self._refuse_lossy(load.written, [found], conditions)
        return found

    @property
    def _to_fill(self) -> list[str]:
        return sql.row_conditions(self._column, self._given.where, only_null=self._given.only_null)

    def _conditions(self, batch: Batch | None) -> list[str]:
        """Return the conditions that a row is one of a batch, or of all of them."""
        key = self._batching.key
        if batch is None or not key:
            return self._to_fill
        # A batch of one partition, too, takes those that have appeared before it since it was counted.
        low = self._position.after if self._position is not None else None
        return [*self._to_fill, *sql.between(key, low, batch.last)]

    def _refuse_lossy(self, table: str, batches: list[Batch], conditions: list[str] | None = None) -> None:
        lossy = sum(batch.lossy for batch in batches)
        blank = sum(batch.blank for batch in batches)
        where = self._to_fill if conditions is None else conditions
        name, type_ = path_text(self._column.path), type_text(self._column.type)
        if lossy:
            query = sql.lossy_values(table, self._given.value, self._convert, where, _SHOWN)
            shown = ", ".join(repr(row[0]) for row in self._spark.rows(query))
            raise OperationError(
                f"`value` does not fit into {name} of {self._target}, which is {type_}, in "
                f"{rows_text(lossy)}, such as {shown}: something of it would be lost. Say in `value` what is "
                f"to become of these, such as by round() or CAST(… AS {type_}), or leave them "
                f"out by `where`.{self._unwritten}"
            )
        if blank and self._column.is_required:
            raise OperationError(
                f"`value` is NULL in {rows_text(blank)}, and {name} of {self._target} is NOT NULL. Use "
                f"coalesce() in `value`, or leave them out by `where`.{self._unwritten}"
            )

    @property
    def _unwritten(self) -> str:
        # Batches of this command are published; the error in which this stands says how many.
        return "" if self._done else " Nothing was written."

    # One batch

    def _next(self, waiting: list[Batch]) -> list[Batch]:
        """Fill the first of the batches that are left, and return the others.

        If another command goes on with the same backfill, those are returned that it has left.
        """
        batch = waiting[0]
        retries = self._settings.commit_retries
        started = time.monotonic()
        lost, others = 0, None
        while True:
            base = self._begin(self._target)
            now = self._others_in(base.table)
            # Those lost to batches of another column's backfill do not count: of them there is an end.
            lost += others is not None and now == others
            if lost > retries:
                break
            others = now
            self._check_column(base.table)
            if self._is_elsewhere(base):
                does = "has finished" if self._is_finished else "goes on with"
                self._say(f"Another command {does} the backfill of {self._request.column}")
                return [] if self._is_finished else self._batches(self._position)
            changed = self._fill(base, batch, is_last=len(waiting) == 1)
            if changed is not None:
                self._is_begun = True
                self._done += 1
                self._rows_done += changed
                self._seconds += time.monotonic() - started
                self._tell(changed, time.monotonic() - started, waiting)
                return waiting[1:]
            self._say(f"{self._target} has changed since this batch was begun: filling it again")
        times = "once" if retries == 0 else f"{retries + 1} times"
        raise OperationError(
            f"its next batch was filled {times}, and other writers had committed to the table meanwhile, so "
            "it was not published. Run it when the table is quieter, or raise `commit_retries`"
        )

    def _others_in(self, table: LoadedTable) -> dict[str, str]:
        """Return where the backfills of other columns are."""
        names = backfills.properties_in(table.properties)
        return {name: table.properties[name] for name in names if name != self._property}

    def _check_column(self, table: LoadedTable) -> None:
        """See whether what is filled, and what the batches go by, is what it was.

        Raises:
            OperationError: others have changed it.
        """
        column, field_id = column_to_fill(self._target, table.schema(), self._given.column)
        if (field_id, column) != (self._field_id, self._column) or self._batches_of(table) != self._batching:
            raise OperationError(
                "another writer has changed the column, or what its batches go by, since it was begun. Look "
                "at what there is now, and begin again"
            )

    def _is_elsewhere(self, base: Base) -> bool:
        """Tell, and note, whether the backfill is not where this command has left it."""
        if not self._is_begun and self._given.restart:
            return False
        found = self._position_in(base.table, base.ref)
        # Where only NULL is filled, what another command has done before the first batch is not done twice.
        if found is None and (self._is_begun or not self._given.only_null):
            left = self._position if self._is_begun else None
            try:
                found = self._positions.last(base.table, base.ref, self._seen, left)
            except backfills.UnknownPosition as exc:
                raise self._unknown_position(exc) from exc
            if found is not None and not found.finished:
                self._position, self._is_begun, self._is_forgotten = found, True, True
                raise OperationError(
                    "another command has finished it, or has made the table forget where it is"
                )
        known = self._position.after if self._position is not None else None
        if found is None:
            return False
        # With what others, or this command itself, have noted of snapshots that they did not publish.
        self._position, self._is_begun = found, True
        return found.after != known or found.finished

    @property
    def _is_finished(self) -> bool:
        return self._position is not None and self._position.finished

    def _fill(self, base: Base, batch: Batch, *, is_last: bool) -> int | None:
        """Fill a batch on a branch of a base, and publish it with the position that follows.

        Returns:
            How many rows were changed; None if others have committed meanwhile, or the base is gone.
        """
        load = BackfillLoad(
            self._target,
            base,
            self._settings,
            self._column.path[0],
            lambda table: sql.update_statement(
                table,
                self._column,
                checked_value(self._column, self._given.value, self._convert),
                self._conditions(batch),
            ),
            int(time.time() * 1000),
        )
        is_cut = False
        try:
            counted = batch
            if base.head != self._counted_at:
                self._steps.run(load, 0)
                is_cut = True
                if load.is_overtaken:
                    return None
                counted = self._count(load, batch)
            # NULL for NULL changes nothing.
            changed = counted.rows - counted.blank if self._given.only_null else counted.rows
            before = self._position or replace(
                backfills.begun(self._request, self._until, base.head),
                refreshes=backfills.awaited(base.table.properties, self._field_id, base.head),
            )
            then = before.advanced(
                batch.last,
                changed,
                finished=is_last,
                at=iso(datetime.now(timezone.utc)),
                invocation_id=get_invocation_id(),
            )
            if not changed:
                return self._moved_on(base, then, None)
            if not is_cut:
                self._steps.run(load, 0)
                is_cut = True
            self._steps.run(load, 1)
            load.ended_at = time.monotonic()
            return None if load.is_overtaken else self._published(load, before, then, changed)
        finally:
            if is_cut:
                drop_branches(self._catalog, load)

    def _published(self, load: BackfillLoad, before: Position, then: Position, changed: int) -> int | None:
        assert load.branch is not None
        head = self._catalog.head(self._target, load.branch)
        if head is None:
            return None
        snapshot = head.snapshot_id
        then = then.published(snapshot, then.refreshes)
        name, note = self._property, None
        if not self._catalog.is_atomic(load.base.table):
            # Rows and position are two commits here: what is between them is noted before.
            note = before.trying(snapshot, then, load.base.head).text
            seen = load.base.table.properties.get(name)
            if not self._catalog.set_property(self._target, load.base, name, seen, note):
                return None

        def advance(now: Mapping[str, str]) -> Mapping[str, str | None]:
            # A full refresh may have made its note while the batch was filled.
            awaited = backfills.awaited(now, self._field_id, load.base.head)
            return {name: then.published(snapshot, awaited).text}

        outcome = self._catalog.publish(
            self._target,
            load.base,
            load.branch,
            self._settings.commit_retries,
            load.elapsed_ms,
            properties=advance if note is None else None,
        )
        if outcome == Published.MOVED:
            return None
        if outcome == Published.NOTHING_NEW:
            return self._moved_on(load.base, then, note)
        load.branch = None
        # Whatever is stopped from here on, the rows are visible.
        self._position, self._is_begun = then, True
        self._counted_at = snapshot
        if note is not None:
            retries = self._settings.commit_retries
            self._catalog.replace_property(self._target, name, note, then.text, retries)
        self._refresh()
        return changed

    def _moved_on(self, base: Base, then: Position, note: str | None) -> int | None:
        """Set the position where no row was to be changed; return 0, or None if others have committed.

        Args:
            base: the state of the table in which there was none.
            then: the new position.
            note: what the property has become since; None if it is as it was.
        """
        seen = note or base.table.properties.get(self._property)
        then = replace(then, snapshot=base.head)
        if not self._catalog.set_property(self._target, base, self._property, seen, then.text):
            return None
        self._position = then
        return 0

    def _refresh(self) -> None:
        """Let Spark see what was published. A new connection sees it anyway."""
        try:
            self._spark.run(branch_statements.refresh_table(str(self._target)))
        except ConnectionLostError:
            self._spark.reconnect()

    # What is said

    def _say(self, text: str) -> None:
        self._log(text, info=True)

    @property
    def _property(self) -> str:
        return backfills.property_of(self._field_id)

    @property
    def _title(self) -> str:
        return f"Backfill of {self._request.column} in {self._target}"

    def _explained(self, exc: DbtRuntimeError) -> DbtRuntimeError:
        """Return the error of a backfill that has stopped at a batch, for what has stopped it."""
        position = self._position if self._is_begun else None
        batches, rows = (position.batches, position.rows) if position is not None else (0, 0)
        if isinstance(exc, RunCancelledError):
            done = backfill_done("the backfill", batches, rows, is_forgotten=self._is_forgotten)
            if exc.is_unknown:
                done = f"The same command finds out. {done if batches else ''}".rstrip()
            return RunCancelledError(exc.undone, str(self._target), done=done)
        cause = str(exc.msg)
        if isinstance(exc, PublishError):
            cause = f"a batch could not be published ({exc.answer})"
            if exc.snapshot_id is not None:
                cause += ", or whether it was is not known: the same command finds out"
        return BackfillError(
            str(self._target),
            self._request.column,
            cause,
            batches,
            rows,
            is_forgotten=self._is_forgotten,
        )

    def _state(self, position: Position) -> str:
        return f"{batches_text(position.batches)} ({rows_text(position.rows)})"

    def _shown(self, bound: Bound) -> str:
        return ", ".join(
            f"{part.label} = {part.shown(text)}" for part, text in zip(self._batching.key, bound, strict=True)
        )

    def _tell(self, changed: int, seconds: float, waiting: list[Batch]) -> None:
        assert self._position is not None
        left = waiting[1:]
        in_all = self._position.batches + len(left)
        rest = f"; {self._left(left)}" if left else ""
        self._say(
            f"{self._title}: batch {self._position.batches} of {in_all}, {rows_text(changed)} in "
            f"{duration_text(seconds)}{rest}"
        )

    def _left(self, left: list[Batch]) -> str:
        rows = sum(batch.rows for batch in left)
        text = f"{rows_text(rows)} in {batches_text(len(left))} left"
        return f"{text}, about {duration_text(self._estimate(left))}" if self._done else text

    def _estimate(self, left: list[Batch]) -> float:
        """Return how long what is left takes, in seconds, if it goes on as it has."""
        pauses = self._given.pause_seconds * len(left)
        if self._rows_done:
            return pauses + self._seconds / self._rows_done * sum(batch.rows for batch in left)
        return pauses + self._seconds / max(self._done, 1) * len(left)

    def _stopped(self, waiting: list[Batch]) -> dict[str, Any]:
        lines = [
            f"{self._title} has stopped as `max_batches` says, after {batches_text(self._done)}: "
            f"{self._left(waiting)}. The same command goes on."
        ]
        rows = sum(batch.rows for batch in waiting)
        return {"lines": lines, "data": self._data(rows_left=rows, batches_left=len(waiting))}

    def _finished(self, text: str) -> dict[str, Any]:
        position = self._position
        in_all = (
            f"{rows_text(position.rows)} in {batches_text(position.batches)}"
            if position is not None
            else "there was no row to fill"
        )
        return {"lines": [f"{self._title} {text}: {in_all}"], "data": self._data(is_finished=True)}

    def _data(
        self,
        *,
        rows_left: int = 0,
        batches_left: int = 0,
        is_finished: bool = False,
        batches: list[dict[str, Any]] | None = None,
    ) -> dict[str, Any]:
        position = self._position
        found = {
            "relation": str(self._target),
            "column": self._request.column,
            "plan": self._given.plan_only,
            "finished": is_finished,
            "rows": self._rows_done,
            "batches": self._done,
            "rows_in_all": position.rows if position is not None else 0,
            "batches_in_all": position.batches if position is not None else 0,
            "rows_left": rows_left,
            "batches_left": batches_left,
            "seconds": round(self._seconds, 1),
        }
        return found if batches is None else {**found, "planned": batches}
