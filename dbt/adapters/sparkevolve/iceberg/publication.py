"""How the result of a run becomes visible, and what its table must be like for that."""

from enum import Enum

from pyiceberg.schema import index_by_id
from pyiceberg.table import Table
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.refs import SnapshotRef
from pyiceberg.table.update import (
    AssertCurrentSchemaId,
    AssertRefSnapshotId,
    RemoveSnapshotRefUpdate,
    SetSnapshotRefUpdate,
    TableRequirement,
    TableUpdate,
)
from pyiceberg.types import IcebergType

from dbt.adapters.sparkevolve.evolution.types import is_widening
from dbt.adapters.sparkevolve.iceberg.base import Base

# What a snapshot's summary says if it changes anything (spec, "Snapshot Summary").
_NEWS = ("added-data-files", "deleted-data-files", "added-delete-files", "removed-delete-files")


class Published(Enum):
    """What has become of a branch that was to be published."""

    YES = "yes"
    NOTHING_NEW = "nothing new"
    MOVED = "moved"


def is_as_cut(branch: SnapshotRef | None) -> bool:
    """Tell whether a branch is there, and the one that a run has cut off.

    If somebody removes it while an INSERT is under way, the INSERT's commit recreates it: from the head of
    `main`, without what the run had deleted before. Only the one that was cut off says how long it is kept.
    """
    return branch is not None and branch.max_ref_age_ms is not None


def can_read(metadata: TableMetadata, snapshot_id: int) -> bool:
    """Tell whether the table's schema reads what a snapshot has written, as the same columns.

    Not in a table that was replaced meanwhile (`CREATE OR REPLACE TABLE`): its columns take the ids of those
    that had their names, whatever types they have.
    """
    snapshot = metadata.snapshot_by_id(snapshot_id)
    if snapshot is None or snapshot.schema_id is None or snapshot.schema_id == metadata.current_schema_id:
        return True
    written = metadata.schema_by_id(snapshot.schema_id)
    if written is None:
        return True
    now = index_by_id(metadata.schema())
    return all(
        _reads(field.field_type, now[field_id].field_type)
        for field_id, field in index_by_id(written).items()
        if field_id in now
    )


def _reads(written: IcebergType, now: IcebergType) -> bool:
    if written.is_primitive and now.is_primitive:
        return written == now or is_widening(written, now)
    return type(written) is type(now)


def written_ms(metadata: TableMetadata, snapshot_id: int) -> int:
    """Return when a snapshot was made, by the clock of whoever made it, in milliseconds since the epoch."""
    snapshot = metadata.snapshot_by_id(snapshot_id)
    return snapshot.timestamp_ms if snapshot is not None else 0


def has_news(table: Table, head: int, base: int | None) -> bool:
    """Tell whether a snapshot since ``base`` has added or removed anything."""
    snapshot = table.metadata.snapshot_by_id(head)
    while snapshot is not None and snapshot.snapshot_id != base:
        summary = snapshot.summary.additional_properties if snapshot.summary else {}
        if any(summary.get(name, "0") != "0" for name in _NEWS):
            return True
        parent = snapshot.parent_snapshot_id
        snapshot = table.metadata.snapshot_by_id(parent) if parent is not None else None
    return False


def overwrote_other_partitions(table: Table, head: int, base: int | None, spec_id: int) -> bool:
    """Tell whether rows since ``base`` were written by another partition spec than the run has seen.

    Spark overwrites partitions of the spec that the table has when the INSERT begins. If somebody changes it
    just before, even there and back, other rows are replaced than those that the run was to replace.
    """
    snapshot = table.metadata.snapshot_by_id(head)
    while snapshot is not None and snapshot.snapshot_id != base:
        for manifest in snapshot.manifests(table.io):
            is_new = manifest.added_snapshot_id == snapshot.snapshot_id and manifest.added_files_count != 0
            if is_new and manifest.partition_spec_id != spec_id:
                return True
        parent = snapshot.parent_snapshot_id
        snapshot = table.metadata.snapshot_by_id(parent) if parent is not None else None
    return False


def descends_from(table: Table, head: int | None, snapshot_id: int) -> bool:
    """Tell whether ``snapshot_id`` is ``head`` or one of its ancestors."""
    while head is not None and head != snapshot_id:
        snapshot = table.metadata.snapshot_by_id(head)
        head = snapshot.parent_snapshot_id if snapshot is not None else None
    return head is not None


def publication(
    metadata: TableMetadata, base: Base, branch: str, head: int
) -> tuple[tuple[TableRequirement, ...], tuple[TableUpdate, ...]]:
    """Return what must hold for a publication, and what it changes: one compare-and-swap."""
    kept = metadata.refs.get(base.ref)
    retention = {
        "min-snapshots-to-keep": kept.min_snapshots_to_keep if kept else None,
        "max-snapshot-age-ms": kept.max_snapshot_age_ms if kept else None,
        "max-ref-age-ms": kept.max_ref_age_ms if kept else None,
    }
    moved = {"ref-name": base.ref, "type": "branch", "snapshot-id": head, **retention}
    requirements = (
        # What was loaded can be read with this schema, see `can_read`.
        AssertCurrentSchemaId.model_validate({"current-schema-id": metadata.current_schema_id}),
        AssertRefSnapshotId.model_validate({"ref": base.ref, "snapshot-id": base.head}),
        AssertRefSnapshotId.model_validate({"ref": branch, "snapshot-id": head}),
    )
    return requirements, (SetSnapshotRefUpdate.model_validate(moved), removal(branch))


def removal(branch: str) -> RemoveSnapshotRefUpdate:
    """Return the update that removes a branch."""
    return RemoveSnapshotRefUpdate.model_validate({"ref-name": branch})
