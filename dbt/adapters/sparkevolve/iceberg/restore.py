"""A column that somebody dropped, back under its old id: what that brings, and the commit of it."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Any

from dbt.adapters.base.relation import BaseRelation
from pyiceberg.manifest import ManifestContent
from pyiceberg.table import Table
from pyiceberg.table.refs import MAIN_BRANCH
from pyiceberg.table.update import (
    AddSchemaUpdate,
    RemovePropertiesUpdate,
    SetCurrentSchemaUpdate,
    SetPropertiesUpdate,
    TableUpdate,
)
from pyiceberg.types import PrimitiveType

from dbt.adapters.sparkevolve.counts import agreeing, counted
from dbt.adapters.sparkevolve.errors import RestoreRefusedError, SchemaCommitError
from dbt.adapters.sparkevolve.evolution import backfills, record, restore_refusals
from dbt.adapters.sparkevolve.evolution.column_properties import NAME_MAPPING, changed_properties, is_unnamed
from dbt.adapters.sparkevolve.evolution.defaults import DefaultValue
from dbt.adapters.sparkevolve.evolution.names import path_text, quote
from dbt.adapters.sparkevolve.evolution.refusals import Refusal
from dbt.adapters.sparkevolve.evolution.restore import RestoreField, plan_restore, restore_command
from dbt.adapters.sparkevolve.evolution.types import fields_within, type_text
from dbt.adapters.sparkevolve.iceberg import guards
from dbt.adapters.sparkevolve.iceberg.access import CatalogAccess
from dbt.adapters.sparkevolve.iceberg.deleted_rows import deleted_rows
from dbt.adapters.sparkevolve.iceberg.facts import heads_of_branches, orc_files, partition_names
from dbt.adapters.sparkevolve.iceberg.newer_format import is_atomic
from dbt.adapters.sparkevolve.iceberg.retry import MOST_OUTAGES, answer, retry
from dbt.adapters.sparkevolve.iceberg.schema_history import since
from dbt.adapters.sparkevolve.messages import is_conflict_in_pyiceberg, outage
from dbt.adapters.sparkevolve.times import iso


@dataclass(frozen=True)
class Files:
    """Data files of the table as it is now.

    Attributes:
        files: how many there are.
        rows: how many rows are in them, without those that are marked as removed.
        is_most: whether some of these may be removed too.
    """

    files: int = 0
    rows: int = 0
    is_most: bool = False

    def __str__(self) -> str:
        most = "at most " if self.is_most else ""
        return f"{most}{counted(self.rows, 'row')} in {counted(self.files, 'file')}"

    @property
    def data(self) -> dict[str, Any]:
        """The same as plain data."""
        found: dict[str, Any] = {"files": self.files, "rows": self.rows}
        return {**found, "is_most": True} if self.is_most else found

    def and_one(self, rows: int, *, is_exact: bool) -> "Files":
        """Return these and one more file."""
        return Files(self.files + 1, self.rows + rows, self.is_most or not is_exact)


@dataclass(frozen=True)
class Restored:
    """What a restore does, or has done.

    Attributes:
        relation: the rendered name of the table.
        change: the change.
        dropped_at: since when the field is known to be gone, in ISO 8601; empty if nobody knows.
        written_with: the files that were written while the table had the field.
        written_without: those that were not, so that it is NULL there.
        unknown: those of which the table's metadata do not say any more.
        rewrites: how many snapshots since it was dropped have rewritten files without it (compaction).
        schema_id: the schema that the table has now.
        is_done: whether it was done; otherwise it is the plan.
        is_unnamed: whether it is NULL in files without field ids, whatever they have of it.
    """

    relation: str
    change: RestoreField
    dropped_at: str
    written_with: Files
    written_without: Files
    unknown: Files
    rewrites: int
    schema_id: int
    is_done: bool
    is_unnamed: bool = False

    @property
    def data(self) -> dict[str, Any]:
        """The same as plain data."""
        dropped = self.change.dropped
        return {
            "relation": self.relation,
            "change": str(self.change),
            "column": path_text(self.change.path),
            "field_id": self.change.field.field_id,
            "type": type_text(self.change.field.field_type),
            "first_schema_id": dropped.first_schema_id,
            "last_schema_id": dropped.last_schema_id,
            "dropped_by_schema_id": dropped.dropped_by_schema_id,
            "dropped_at": self.dropped_at,
            "files_with_values": self.written_with.data,
            "files_without_values": self.written_without.data,
            "files_unknown": self.unknown.data,
            "rewrites_since": self.rewrites,
            "schema_id": self.schema_id,
            "is_done": self.is_done,
            "is_unnamed": self.is_unnamed,
        }

    @property
    def lines(self) -> list[str]:
        """What to tell a person of it."""
        dropped, path = self.change.dropped, path_text(self.change.path)
        gone = f"dropped by schema {dropped.dropped_by_schema_id}"
        lines = [
            f"change   {self.change}, at the end"
            + (f" of {path_text(dropped.parent)}" if dropped.parent else "")
            + (", no longer NOT NULL" if dropped.field.required else ""),
            f"history  in {dropped.schemas}, {gone}" + (f" ({self.dropped_at})" if self.dropped_at else ""),
            f"values   {self.written_with}, written while the table had {path}: what they have of it is read",
        ]
        if self.written_without.files:
            rewritten = ""
            if self.rewrites:
                times = f"{counted(self.rewrites, 'compaction')} {agreeing(self.rewrites, 'has', 'have')}"
                rewritten = f"; {times} rewritten files without it since, and values in these are lost"
            default, type_ = self.change.field.initial_default, self.change.field.field_type
            read, is_default = "NULL   ", ""
            if default is not None and isinstance(type_, PrimitiveType):
                read, is_default = "default", f", where {DefaultValue(type_, default)} is read"
            lines.append(f"{read}  {self.written_without}, written without it{is_default}{rewritten}")
        if self.is_unnamed:
            lines.append(
                "no ids   files without field ids (`add_files`, `migrate`) are read as if they had no "
                f"{path}: `{NAME_MAPPING}` has no name for field {self.change.field.field_id}. To read it "
                "there, take the name that these files have for it from the other field's entry, and give "
                "it to this one"
            )
        if self.unknown.files:
            lines.append(
                f"unknown  {self.unknown}, whose snapshots have expired and whose statistics do not name it"
            )
        return lines

    def command(self, model: str) -> str:
        """Return the command that does it."""
        return restore_command(model, self.change.path, self.change.field.field_id)


def restore_column(
    access: CatalogAccess,
    relation: BaseRelation,
    column: str,
    field_id: int | None,
    *,
    retries: int,
    invocation_id: str,
    plan_only: bool = False,
) -> Restored:
    """Put a dropped field back under its old id, in one commit; or only say what that would bring.

    Args:
        access: the catalog.
        relation: the table.
        column: the name of the column, or the dotted path of a field.
        field_id: the field's id; None if there is only one that it can be.
        retries: how often to try again after a conflict.
        invocation_id: of the dbt command, for the record.
        plan_only: change nothing.

    Raises:
        NotIcebergError: the catalog has no such table.
        RestoreRefusedError: it cannot be put back; the table stays as it was.
        CommitConflictError: each attempt met another writer.
        SchemaCommitError: the catalog refused.
    """
    tried: Restored | None = None
    outages = 0

    def attempt(table: Table) -> Restored:
        nonlocal tried, outages
        if tried is not None and _has(table, tried.change):
            # The catalog had committed before its answer was lost.
            return _done(table, tried)
        change = plan_restore(
            table.metadata.schemas,
            table.schema(),
            column,
            field_id,
            last_column_id=table.metadata.last_column_id,
            partition_names=partition_names(table),
        )
        if not isinstance(change, Refusal) and not is_atomic(table):
            change = restore_refusals.format_v3(change.path)
        if not isinstance(change, Refusal):
            change = _unreadable(str(relation), table, change) or change
        if isinstance(change, Refusal):
            raise RestoreRefusedError(str(relation), change)
        found = _planned(str(relation), table, change)
        if plan_only:
            return found
        access.cancellation.check(f"The columns of {relation} were not changed", str(relation), False)
        tried = found
        try:
            access.commit(table, lambda: _commit(table, change, invocation_id))
        except Exception as exc:
            if is_conflict_in_pyiceberg(exc):
                raise
            outages += 1
            try:
                again = access.load(relation)
            except Exception:
                said = answer(access, exc)
                raise SchemaCommitError(str(relation), [change], said, outcome_known=False) from exc
            if _has(again, change):
                return _done(again, found)
            if outage(exc) is None or outages > MOST_OUTAGES:
                raise SchemaCommitError(str(relation), [change], answer(access, exc)) from exc
            return attempt(again)
        return _done(access.load(relation), found)

    return retry(access, relation, attempt, retries)


def _has(table: Table, change: RestoreField) -> bool:
    """Tell whether a table has the field where it was to be put."""
    found = table.schema().find_column_name(change.field.field_id)
    return found == ".".join(change.path)


def _done(table: Table, planned: Restored) -> Restored:
    values = {**vars(planned), "schema_id": table.metadata.current_schema_id, "is_done": True}
    return Restored(**values)


def _planned(relation: str, table: Table, change: RestoreField) -> Restored:
    field_ids = {change.field.field_id, *(f.field_id for _, f in fields_within(change.field.field_type))}
    written = _written(table, change.field.field_id, field_ids)
    wanted, _ = changed_properties(table.properties, table.schema(), change.schema)
    return Restored(
        relation,
        change,
        since(table, change.dropped.dropped_by_schema_id, change.dropped.last_schema_id),
        written["with"],
        written["without"],
        written["unknown"],
        _rewrites_without(table, change.field.field_id),
        table.metadata.current_schema_id,
        is_done=False,
        is_unnamed=is_unnamed({**table.properties, **wanted}, change.schema, change.field.field_id),
    )


def _written(table: Table, field_id: int, all_ids: Collection[int]) -> Mapping[str, Files]:
    """Return which data files were written, or rewritten, with a field in the schema, and which without."""
    counts = {"with": Files(), "without": Files(), "unknown": Files()}
    snapshot = table.current_snapshot()
    if snapshot is None:
        return counts
    deleted = deleted_rows(table, snapshot)
    knows: dict[int | None, bool | None] = {}
    for manifest in snapshot.manifests(table.io):
        if manifest.content != ManifestContent.DATA:
            continue
        for entry in manifest.fetch_manifest_entry(table.io, discard_deleted=True):
            if entry.snapshot_id not in knows:
                knows[entry.snapshot_id] = _had(table, entry.snapshot_id, field_id)
            had = knows[entry.snapshot_id]
            named = {*(entry.data_file.value_counts or {}), *(entry.data_file.column_sizes or {})}
            kind = "with" if had or named & set(all_ids) else "unknown" if had is None else "without"
            rows, is_exact = deleted.rows_left(entry)
            counts[kind] = counts[kind].and_one(rows, is_exact=is_exact)
    return counts


def _unreadable(relation: str, table: Table, change: RestoreField) -> Refusal | None:
    """Return why the field cannot come back if its default for older rows were asked of an ORC file.

    Iceberg's Java library cannot read one that lacks it: every query of the field would fail. To leave the
    default out would change what older rows have had in the field, which no commit may.
    """
    fields = [change.field, *(f for _, f in fields_within(change.field.field_type))]
    defaults = {f.field_id for f in fields if f.initial_default is not None}
    if not defaults:
        return None
    lacking: dict[str, dict[str, int]] = {}
    others = False
    for branch, head in heads_of_branches(table).items():
        for entry in orc_files(table, [head]):
            file = entry.data_file
            named = {*(file.value_counts or {}), *(file.column_sizes or {})}
            if all(i in named or _had(table, entry.snapshot_id, i) for i in defaults):
                others = True
            else:
                lacking.setdefault(branch, {})[file.file_path] = file.record_count
    if not lacking:
        return None
    counts = {path: rows for files in lacking.values() for path, rows in files.items()}
    return restore_refusals.orc_files(
        change.path,
        relation,
        [
            relation if branch == MAIN_BRANCH else f"{relation}.{quote(f'branch_{branch}')}"
            for branch in sorted(lacking, key=lambda branch: (branch != MAIN_BRANCH, branch))
        ],
        f"{counted(sum(counts.values()), 'row')} in {counted(len(counts), 'ORC file')}",
        table.schema().fields[0].name,
        only=sorted(counts) if others else (),
    )


def _had(table: Table, snapshot_id: int | None, field_id: int) -> bool | None:
    """Tell whether a table had a field when a snapshot was made; None if nobody knows any more."""
    snapshot = table.metadata.snapshot_by_id(snapshot_id) if snapshot_id is not None else None
    schema = None
    if snapshot is not None and snapshot.schema_id is not None:
        schema = table.metadata.schema_by_id(snapshot.schema_id)
    return None if schema is None else schema.find_column_name(field_id) is not None


def _rewrites_without(table: Table, field_id: int) -> int:
    """Return how many snapshots of the table's history have rewritten files when it did not have a field.

    What rewrites manifests or files of deletes alone is a replacement to Iceberg, too.
    """
    found, snapshot = 0, table.current_snapshot()
    while snapshot is not None:
        summary = snapshot.summary
        is_rewrite = (
            summary is not None
            and summary.operation.value == "replace"
            and summary.additional_properties.get("deleted-data-files", "0") != "0"
        )
        if is_rewrite and _had(table, snapshot.snapshot_id, field_id) is False:
            found += 1
        parent = snapshot.parent_snapshot_id
        snapshot = table.metadata.snapshot_by_id(parent) if parent is not None else None
    return found


def _commit(table: Table, change: RestoreField, invocation_id: str) -> None:
    """Commit the schema with the field in it, and the record of it.

    PyIceberg's own ``UpdateSchema`` gives every field that it adds a new id.
    """
    metadata = table.metadata
    # As Iceberg does: a schema that the table has had keeps its id.
    known = next((s.schema_id for s in metadata.schemas if s == change.schema), None)
    schema_id = max(s.schema_id for s in metadata.schemas) + 1 if known is None else known
    schema = change.schema.model_copy(update={"schema_id": schema_id})
    updates: list[TableUpdate] = []
    if known is None:
        updates.append(AddSchemaUpdate(schema=schema))
    current = {"schema-id": -1 if known is None else schema_id}
    updates.append(SetCurrentSchemaUpdate.model_validate(current))
    wanted, removed = changed_properties(metadata.properties, metadata.schema(), schema)
    if known is None:
        removed += record.outdated_properties(metadata.properties)
    back = [change.field, *(f for _, f in fields_within(change.field.field_type))]
    removed += backfills.lost_by_restore(metadata.properties, (f.field_id for f in back))
    now = iso(datetime.now(timezone.utc))
    wanted |= record.restored(metadata.properties, schema_id, path_text(change.path), invocation_id, now)
    # What others have done to other columns stays untold: the next run looks at that, and warns of it.
    told = record.known_schema_id(metadata.properties)
    told = min(s.schema_id for s in metadata.schemas) if told is None else told
    wanted |= dict([record.looked_at({**metadata.properties, **wanted}, told)])
    if removed:
        updates.append(RemovePropertiesUpdate(removals=removed))
    updates.append(SetPropertiesUpdate(updates=wanted))
    guards.commit(table, (), tuple(updates), decided_on_schema=True)
