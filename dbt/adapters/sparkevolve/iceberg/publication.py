"""What a run starts from, and what a table must be like for its result to become visible."""

from dataclasses import dataclass
from enum import Enum

from pyiceberg.schema import index_by_id
from pyiceberg.table import Table
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.refs import MAIN_BRANCH, SnapshotRef
from pyiceberg.table.update import (
    AssertCurrentSchemaId,
    AssertRefSnapshotId,
    RemoveSnapshotRefUpdate,
    SetSnapshotRefUpdate,
    TableRequirement,
    TableUpdate,
)
from pyiceberg.transforms import VoidTransform
from pyiceberg.types import IcebergType

from dbt.adapters.sparkevolve.evolution.partitions import Part, part
from dbt.adapters.sparkevolve.evolution.types import is_widening
from dbt.adapters.sparkevolve.iceberg import branches, staging
from dbt.adapters.sparkevolve.iceberg.guards import newest_ms

# What a snapshot's summary says if it changes anything (spec, "Snapshot Summary").
_NEWS = ("added-data-files", "deleted-data-files", "added-delete-files", "removed-delete-files")


@dataclass(frozen=True)
class Base:
    """The state of a table that a run has seen before it evaluated its model.

    Attributes:
        table: the table as it was loaded.
        ref: the branch that readers read, and that the run publishes to.
        head: the snapshot that this branch has to be at still when the run publishes; None if it has none.
        cut_at: the snapshot from which the run starts.
        left_over: branches of runs that have ended without removing them.
    """

    table: Table
    ref: str
    head: int | None
    cut_at: int | None
    left_over: tuple[str, ...] = ()

    @property
    def columns(self) -> list[str]:
        """The names of the table's columns."""
        return [field.name for field in self.table.schema().fields]

    @property
    def partition_by(self) -> tuple[Part, ...]:
        """What the table is partitioned by."""
        return partitions(self.table)

    @property
    def cut_at_ms(self) -> int | None:
        """When the snapshot was made from which the run starts, in milliseconds since the epoch."""
        snapshot = self.table.metadata.snapshot_by_id(self.cut_at) if self.cut_at is not None else None
        return None if snapshot is None else snapshot.timestamp_ms


@dataclass(frozen=True)
class Head:
    """The last snapshot of a branch.

    Attributes:
        snapshot_id: its id.
        parent_id: the id of the one before, None if there is none.
        operation: what made it: ``append``, ``delete``, ``overwrite`` or ``replace``.
    """

    snapshot_id: int
    parent_id: int | None
    operation: str


class Published(Enum):
    """What has become of a branch that was to be published."""

    YES = "yes"
    NOTHING_NEW = "nothing new"
    MOVED = "moved"


def is_wap_enabled(table: Table) -> bool:
    """Tell whether the writes of a session that names a branch (`spark.wap.branch`) go to that branch."""
    return table.properties.get("write.wap.enabled", "").lower() == "true"


def partitions(table: Table) -> tuple[Part, ...]:
    """Return what a table is partitioned by now."""
    found = []
    for f in table.spec().fields:
        # A void one was taken away from a table of format version 1.
        if not isinstance(f.transform, VoidTransform):
            transform, _, width = str(f.transform).rstrip("]").partition("[")
            found.append(part(transform, table.schema().find_column_name(f.source_id) or "", width))
    return tuple(found)


def left_over(table: Table, own_ms: int) -> tuple[str, ...]:
    """Return the branches of ours whose runs have ended, sorted.

    Args:
        table: the table.
        own_ms: the time by this machine's clock, in milliseconds since the epoch.
    """
    now_ms = staging.certain_ms(own_ms, newest_ms(table.metadata))
    found = []
    for name, ref in table.metadata.refs.items():
        snapshot = table.metadata.snapshot_by_id(ref.snapshot_id)
        head_ms = snapshot.timestamp_ms if snapshot is not None else 0
        if branches.is_left_over(name, head_ms + (ref.max_ref_age_ms or branches.RETAIN_MS), now_ms):
            found.append(name)
    return tuple(sorted(found))


def is_as_cut(branch: SnapshotRef | None) -> bool:
    """Tell whether a branch is there, and the one that a run has cut off.

    If somebody removes it while an INSERT is under way, the INSERT's commit recreates it: from the head of
    `main`, without what the run had deleted before. Only the one that was cut off says how long it is kept.
    """
    return branch is not None and branch.max_ref_age_ms is not None


def is_same_table(metadata: TableMetadata, base: Base) -> bool:
    """Tell whether the table is the one of ``base``, and not another that was made under its name."""
    return metadata.table_uuid == base.table.metadata.table_uuid


def has_moved(metadata: TableMetadata, base: Base) -> bool:
    """Tell whether somebody has committed to the table's branch since ``base``, or made another table.

    Also if the branch is back where it was: the model may have read a commit that was rolled back since. The
    log of `main` tells. Other branches have none: there a snapshot that was made since, and is on no branch
    any more, counts as such a commit.
    """
    before = base.table.metadata
    ref = metadata.refs.get(base.ref)
    if not is_same_table(metadata, base) or (ref.snapshot_id if ref is not None else None) != base.head:
        return True
    if base.ref == MAIN_BRANCH:
        return metadata.snapshot_log[-1:] != before.snapshot_log[-1:]
    known = {snapshot.snapshot_id for snapshot in before.snapshots}
    made = [s.snapshot_id for s in metadata.snapshots if s.parent_snapshot_id == base.head]
    return not {snapshot_id for snapshot_id in made if snapshot_id not in known} <= _on_branches(metadata)


def _on_branches(metadata: TableMetadata) -> set[int]:
    found: set[int] = set()
    for ref in metadata.refs.values():
        head: int | None = ref.snapshot_id
        while head is not None and head not in found:
            found.add(head)
            snapshot = metadata.snapshot_by_id(head)
            head = snapshot.parent_snapshot_id if snapshot is not None else None
    return found


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
