"""How changes of a table become one commit of PyIceberg."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timezone
from typing import Any

from pyiceberg.table import Table, TableProperties
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.update.schema import UpdateSchema
from pyiceberg.utils.properties import property_as_bool

from dbt.adapters.sparkevolve.evolution import record
from dbt.adapters.sparkevolve.evolution.changes import (
    AddColumn,
    AddField,
    Change,
    RelaxNotNull,
    RenameField,
    WidenType,
)

COMMENT_PROPERTY = "comment"


def commit_changes(table: Table, changes: Sequence[Change], invocation_id: str, source: str) -> None:
    """Commit the changes; PyIceberg makes the catalog check that the schema is still the one they are for."""
    if not changes:
        return
    with _in_short(table, changes).transaction() as transaction:
        with transaction.update_schema() as update:
            for change in changes:
                _stage(update, change)
        schema_id = transaction.table_metadata.current_schema_id
        now = iso(datetime.now(timezone.utc))
        outdated = record.outdated_properties(table.properties)
        if outdated:
            transaction.remove_properties(*outdated)
        transaction.set_properties(record.new_properties(schema_id, changes, invocation_id, now, source))


def commit_docs(table: Table, comment: str | None, docs: Mapping[str, str]) -> None:
    """Commit descriptions of a table, if not None, and of columns by their exact names."""
    with _in_short(table).transaction() as transaction:
        if docs:
            with transaction.update_schema() as update:
                for name, doc in docs.items():
                    update.update_column((name,), doc=doc)
        if comment is not None:
            transaction.set_properties({COMMENT_PROPERTY: comment})


def remove_old_metadata(table: Table, committed: TableMetadata) -> None:
    """Delete the metadata files that a commit has taken off a table's list, if the table is set up for that.

    PyIceberg does so after a commit by its transactions, and Iceberg's Java library after each of its own;
    neither looks for files that another's commit has left.

    Args:
        table: the table as it was before the commit.
        committed: the metadata that the commit has made.
    """
    default = TableProperties.METADATA_DELETE_AFTER_COMMIT_ENABLED_DEFAULT
    setting = TableProperties.METADATA_DELETE_AFTER_COMMIT_ENABLED
    if not property_as_bool(committed.properties, setting, default):
        return
    listed = {entry.metadata_file for entry in committed.metadata_log}
    for entry in table.metadata.metadata_log:
        if entry.metadata_file not in listed:
            try:
                table.io.delete(entry.metadata_file)
            except OSError:
                continue  # maintenance was faster, or may do it: the commit is made


def iso(moment: datetime) -> str:
    """Return a time to the second, with its offset."""
    return moment.isoformat(timespec="seconds")


def _in_short(table: Table, changes: Sequence[Change] = ()) -> Table:
    """Return the table without what a change of its schema does not look at.

    A transaction of PyIceberg 0.12 copies the metadata with all that is in it about ten times: a second,
    after a hundred runs with a column more in each. The catalog makes the commit from a copy of its own.
    """
    metadata = table.metadata
    slim: dict[str, Any] = {name: [] for name in ("snapshots", "snapshot_log", "statistics")}
    if any(isinstance(change, AddColumn | AddField) for change in changes):
        # A new field has a new id, so what comes out is no older schema; the newest one gives the next id.
        newest = max(schema.schema_id for schema in metadata.schemas)
        needed = {metadata.current_schema_id, newest}
        slim["schemas"] = [schema for schema in metadata.schemas if schema.schema_id in needed]
    in_short = metadata.model_copy(update=slim)
    return Table(table.name(), in_short, table.metadata_location, table.io, table.catalog, table.config)


def _stage(update: UpdateSchema, change: Change) -> None:
    # Paths are tuples: a dot in a name is part of it.
    if isinstance(change, AddColumn):
        update.add_column(change.path, change.type, doc=change.doc, required=False)
    elif isinstance(change, AddField):
        update.add_column(change.path, change.type, required=False)
    elif isinstance(change, WidenType):
        update.update_column(change.path, field_type=change.new)
    elif isinstance(change, RelaxNotNull):
        update.make_column_optional(change.path)
    elif isinstance(change, RenameField):
        update.rename_column(change.path, change.new_name)
    else:
        update.update_column(change.path, doc=change.doc)
