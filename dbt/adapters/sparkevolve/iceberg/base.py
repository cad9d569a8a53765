"""What a run starts from: the state of a table before its model is evaluated, and if it still is that."""

import time
from collections.abc import Callable
from copy import copy
from dataclasses import dataclass, replace
from typing import Any

from pyiceberg.table import Table
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.refs import MAIN_BRANCH
from pyiceberg.table.snapshots import Snapshot
from pyiceberg.transforms import BucketTransform, Transform, TruncateTransform, VoidTransform

from dbt.adapters.sparkevolve.evolution.changes import RenameField
from dbt.adapters.sparkevolve.evolution.partitions import Part, part
from dbt.adapters.sparkevolve.evolution.renames import as_before, ends_of_renames
from dbt.adapters.sparkevolve.iceberg import branches, staging
from dbt.adapters.sparkevolve.iceberg.guards import newest_ms

# What a snapshot's summary says if it changes anything (spec, "Snapshot Summary").
_CHANGES = ("added-data-files", "deleted-data-files", "added-delete-files", "removed-delete-files")
# Lets a session keep what it writes out of `main`: "Write-Audit-Publish".
WAP_ENABLED = "write.wap.enabled"


@dataclass(frozen=True)
class Base:
    """The state of a table that a run has seen before it evaluated its model.

    Attributes:
        table: the table as it was loaded.
        ref: the branch that readers read, and that the run publishes to.
        head: the snapshot that this branch has to be at still when the run publishes; None if it has none.
        cut_at: the snapshot from which the run starts.
        left_over: branches of runs that have ended without removing them.
        ends: the renames with which the table would be as it says, see ``as_before``.
    """

    table: Table
    ref: str
    head: int | None
    cut_at: int | None
    left_over: tuple[str, ...] = ()
    ends: tuple[RenameField, ...] = ()

    @property
    def columns(self) -> list[str]:
        """The names of the table's columns."""
        return [field.name for field in self.table.schema().fields]

    @property
    def as_before(self) -> "Base":
        """The same, as if each change of a name's case that has ended half-way was taken back."""
        schema, metadata = self.table.schema(), self.table.metadata
        ends = ends_of_renames(schema.as_struct())
        if not ends:
            return self
        schemas = [as_before(s) if s.schema_id == schema.schema_id else s for s in metadata.schemas]
        table = copy(self.table)
        table.metadata = metadata.model_copy(update={"schemas": schemas})
        return replace(self, table=table, ends=ends)

    @property
    def is_main(self) -> bool:
        """Whether readers read the branch that they read if nothing says otherwise."""
        return self.ref == MAIN_BRANCH

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


def base_of(table: Table, wap_branch: Callable[[], str | None]) -> Base:
    """Return the state of a table that a run starts from.

    Args:
        table: the table, as it was loaded.
        wap_branch: asks Spark for the branch that the session's writes are reserved to; asked only if the
            table is set up for that.
    """
    ref = (wap_branch() if is_wap_enabled(table) else None) or MAIN_BRANCH
    refs = table.metadata.refs
    head = refs[ref].snapshot_id if ref in refs else None
    cut_at = head if head is not None else table.metadata.current_snapshot_id
    return Base(table, ref, head, cut_at, left_over(table, int(time.time() * 1000)))


def head_of(table: Table, branch: str) -> Head | None:
    """Return the last snapshot of a branch; None if there is no such branch."""
    snapshot = table.snapshot_by_name(branch)
    if snapshot is None:
        return None
    operation = snapshot.summary.operation.value if snapshot.summary else ""
    return Head(snapshot.snapshot_id, snapshot.parent_snapshot_id, operation)


def changes_files(snapshot: Snapshot) -> bool:
    """Tell whether a commit has added or removed any file, as far as its summary says."""
    summary = snapshot.summary.additional_properties if snapshot.summary else {}
    return any(summary.get(name, "0") != "0" for name in _CHANGES)


def is_wap_enabled(table: Table) -> bool:
    """Tell whether the writes of a session that names a branch (`spark.wap.branch`) go to that branch."""
    return table.properties.get(WAP_ENABLED, "").lower() == "true"


def partitions(table: Table) -> tuple[Part, ...]:
    """Return what a table is partitioned by now."""
    found = []
    for f in table.spec().fields:
        # A void one was taken away from a table of format version 1.
        if not isinstance(f.transform, VoidTransform):
            found.append(part_of(f.transform, table.schema().find_column_name(f.source_id) or ""))
    return tuple(found)


def part_of(transform: Transform[Any, Any], column: str) -> Part:
    """Return what a transform of Iceberg's is called as a part of a partitioning."""
    if isinstance(transform, BucketTransform):
        return part("bucket", column, str(transform.num_buckets))
    if isinstance(transform, TruncateTransform):
        return part("truncate", column, str(transform.width))
    return part(str(transform), column)


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


def is_same_table(metadata: TableMetadata, base: Base) -> bool:
    """Tell whether the table is the one of ``base``, and not another that was made under its name."""
    return metadata.table_uuid == base.table.metadata.table_uuid


def has_moved(metadata: TableMetadata, base: Base) -> bool:
    """Tell whether somebody has committed to the table's branch since ``base``, or made another table.

    Also if the branch is back where it was: the model may have read a commit that was rolled back since. The
    log of `main` tells. Other branches have none: there a snapshot that was made since, and is on no branch
    any more, counts as such a commit. Nor is such a branch the same if it is not what readers of `main` see
    any more: Iceberg's Spark looks names in a filter up in the schema that it was written under then, where
    they may be those of other columns.
    """
    before = base.table.metadata
    ref = metadata.refs.get(base.ref)
    if not is_same_table(metadata, base) or (ref.snapshot_id if ref is not None else None) != base.head:
        return True
    if base.is_main:
        return metadata.snapshot_log[-1:] != before.snapshot_log[-1:]
    if base.cut_at == before.current_snapshot_id != metadata.current_snapshot_id:
        cut = before.snapshot_by_id(base.cut_at) if base.cut_at is not None else None
        if cut is not None and cut.schema_id != metadata.current_schema_id:
            return True
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
