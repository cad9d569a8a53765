"""What keeps a commit from taking a table back, in numbers or in time: all commits of ours go through here.

A REST catalog checks requirements and builds the metadata itself. The others (SQL, Hive, Glue) are clients:
PyIceberg checks the requirements and builds the metadata in this process, with this process's clock. Where it
cannot, since the table's format version is newer, Spark does both: see ``newer_format``.
"""

from contextlib import suppress
from typing import Any, ClassVar, cast

from pyiceberg.catalog import MetastoreCatalog
from pyiceberg.exceptions import CommitFailedException
from pyiceberg.table import CommitTableResponse, Table, TableProperties
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.snapshots import SnapshotLogEntry
from pyiceberg.table.update import (
    AssertCurrentSchemaId,
    AssertDefaultSpecId,
    AssertLastAssignedFieldId,
    AssertLastAssignedPartitionId,
    AssertTableUUID,
    TableRequirement,
    TableUpdate,
    ValidatableTableRequirement,
    _apply_table_update,
    _TableMetadataUpdateContext,
)

from dbt.adapters.sparkevolve.iceberg.checksums import remove_checksum
from dbt.adapters.sparkevolve.iceberg.newer_format import CatalogInSpark


def commit(
    table: Table,
    requirements: tuple[TableRequirement, ...],
    updates: tuple[TableUpdate, ...],
    *,
    seen_ms: int = 0,
    decided_on_schema: bool = False,
) -> CommitTableResponse:
    """Commit updates that were decided on for ``table``; return the catalog's answer.

    Args:
        table: the table as it was loaded directly before.
        requirements: what has to hold in the catalog besides.
        updates: the updates.
        seen_ms: a time that another writer's clock has passed, in milliseconds since the epoch.
        decided_on_schema: whether they depend on the table's schemas, partition specs or properties.

    Raises:
        CommitFailedException: the table is not any more what the updates were decided on for.
    """
    metadata = table.metadata
    required = same_table(metadata) + (same_schema(metadata) if decided_on_schema else ())
    kinds = {type(requirement) for requirement in required}
    required += tuple(r for r in requirements if type(r) not in kinds)
    catalog: object = table.catalog
    if isinstance(catalog, CatalogInSpark):
        return catalog.commit(table, required, updates, as_seen=decided_on_schema)
    if isinstance(catalog, MetastoreCatalog):
        times: Any = TakeTime(seen_ms)
        # It has to see the metadata before the first update and after the last one.
        updates = (times, *updates, times)
        if decided_on_schema:
            required += (cast("TableRequirement", AssertSameShape.of(metadata)),)
    response = table.catalog.commit_table(table, required, updates)
    remove_old_metadata(table, response.metadata)
    return response


def same_table(metadata: TableMetadata) -> tuple[TableRequirement, ...]:
    """Require that no other table has taken the name."""
    return (AssertTableUUID(uuid=metadata.table_uuid),)


def same_schema(metadata: TableMetadata) -> tuple[TableRequirement, ...]:
    """Require that nobody has changed the schema or the partitioning since, not even there and back.

    Whoever adds a column and drops it again brings the current schema's id back, but not the last field id.
    """
    required: tuple[TableRequirement, ...] = (
        AssertCurrentSchemaId.model_validate({"current-schema-id": metadata.current_schema_id}),
        AssertLastAssignedFieldId.model_validate({"last-assigned-field-id": metadata.last_column_id}),
        AssertDefaultSpecId.model_validate({"default-spec-id": metadata.default_spec_id}),
    )
    last = metadata.last_partition_id
    if last is not None:
        partition = AssertLastAssignedPartitionId.model_validate({"last-assigned-partition-id": last})
        required += (partition,)
    return required


class AssertSameShape(ValidatableTableRequirement):
    """The table's schemas, specs, sort orders and properties must be the ones that were looked at.

    Not one of the specification's requirements, so only for catalogs whose requirements are checked here. A
    column that is renamed there and back changes none of those; but the metadata have one schema more, with
    the id that ours was to get. A REST catalog gives that id itself.

    Attributes:
        shape: see ``shape``.
    """

    type: str = "assert-same-shape"
    shape: Any

    @classmethod
    def of(cls, metadata: TableMetadata) -> "AssertSameShape":
        """Return the requirement that a table still has the shape that it has in ``metadata``."""
        return cls(shape=shape(metadata))

    def validate(self, base_metadata: TableMetadata | None) -> None:  # type: ignore[override]
        """Compare.

        Raises:
            CommitFailedException: there is no table, or one of another shape.
        """
        if base_metadata is None or shape(base_metadata) != self.shape:
            raise CommitFailedException(
                "Requirement failed: schemas, partitioning or properties have changed"
            )


def shape(metadata: TableMetadata) -> tuple[Any, ...]:
    """Return everything of a table that a change of its schema or its properties depends on."""
    return (
        metadata.format_version,
        metadata.current_schema_id,
        metadata.last_column_id,
        tuple(schema.schema_id for schema in metadata.schemas),
        metadata.default_spec_id,
        metadata.last_partition_id,
        tuple(spec.spec_id for spec in metadata.partition_specs),
        metadata.default_sort_order_id,
        tuple(order.order_id for order in metadata.sort_orders),
        tuple(sorted(metadata.properties.items())),
    )


class TakeTime:
    """An update, to stand first and last: a commit's time follows from the table's times, not from our clock.

    PyIceberg takes this process's clock. Behind that of the writer before, it makes logs that are not sorted,
    and Iceberg cannot read such a table any more; ahead of it, all others are refused until they catch up.
    """

    action: ClassVar[str] = "take-time"

    def __init__(self, seen_ms: int) -> None:
        self._seen_ms = seen_ms
        self._before: TableMetadata | None = None

    def apply(self, metadata: TableMetadata, context: _TableMetadataUpdateContext) -> TableMetadata:
        """Note the metadata at first; at last return them with the time of the commit in them."""
        if self._before is None:
            self._before = metadata
            return metadata
        before, self._before = self._before, None
        return with_time(before, metadata, self._seen_ms) if context.has_changes() else metadata


def _take_time(
    update: TakeTime, base_metadata: TableMetadata, context: _TableMetadataUpdateContext
) -> TableMetadata:
    return update.apply(base_metadata, context)


# PyIceberg's own union of updates is closed for the type checker only.
_apply_table_update.register(cast("Any", TakeTime), _take_time)


def with_time(before: TableMetadata, after: TableMetadata, seen_ms: int) -> TableMetadata:
    """Return ``after`` as made at the earliest time that is later than ``seen_ms`` and all of ``before``.

    Args:
        before: the metadata that the commit starts from.
        after: the metadata that its updates have made.
        seen_ms: a time that another writer's clock has passed, in milliseconds since the epoch.
    """
    time_ms = max(newest_ms(before) + 1, seen_ms)
    # Entries may have gone, those of a snapshot that has been removed.
    known = {(entry.snapshot_id, entry.timestamp_ms) for entry in before.snapshot_log}
    log = [
        entry
        if (entry.snapshot_id, entry.timestamp_ms) in known
        else SnapshotLogEntry.model_validate({"snapshot-id": entry.snapshot_id, "timestamp-ms": time_ms})
        for entry in after.snapshot_log
    ]
    return after.model_copy(update={"last_updated_ms": time_ms, "snapshot_log": log})


def newest_ms(metadata: TableMetadata) -> int:
    """Return the newest time that a table's metadata know of, in milliseconds since the epoch."""
    moved = [entry.timestamp_ms for entry in metadata.snapshot_log]
    made = [entry.timestamp_ms for entry in metadata.metadata_log]
    return max([metadata.last_updated_ms, *moved, *made])


def remove_old_metadata(table: Table, committed: TableMetadata) -> None:
    """Delete the metadata files that a commit has taken off a table's list, if the table is set up for that.

    PyIceberg does so after a commit by its transactions, and Iceberg's Java library after each of its own;
    neither looks for files that another's commit has left.

    Args:
        table: the table as it was before the commit.
        committed: the metadata that the commit has made.
    """
    # As Iceberg's Java library reads it: what is no boolean is false, and no error after a commit.
    setting = TableProperties.METADATA_DELETE_AFTER_COMMIT_ENABLED
    if committed.properties.get(setting, "").lower() != "true":
        return
    listed = {entry.metadata_file for entry in committed.metadata_log}
    for entry in table.metadata.metadata_log:
        if entry.metadata_file not in listed:
            # Maintenance was faster, or may do it. The commit is made, and each store's client has exceptions
            # of its own.
            with suppress(Exception):
                table.io.delete(entry.metadata_file)
            remove_checksum(entry.metadata_file)
