"""How many rows commits have added and removed, where the summaries of their snapshots say it exactly."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.snapshots import Operation, Snapshot


@dataclass(frozen=True)
class Counted:
    """What some commits, one after the other, have done to the rows of a table.

    Attributes:
        added: rows of the data files that they have added.
        removed: rows that were there and are not any more, also those that were written again into another
            file; None if the summaries do not say it exactly.
        rewrites: whether whole files have gone: rows that stay what they were have then been written again.
    """

    added: int = 0
    removed: int | None = 0
    rewrites: bool = False

    def __add__(self, other: "Counted") -> "Counted":
        known = self.removed is not None and other.removed is not None
        return Counted(
            self.added + other.added,
            (self.removed or 0) + (other.removed or 0) if known else None,
            self.rewrites or other.rewrites,
        )


@dataclass(frozen=True)
class Commits:
    """What is known of some commits to a table.

    Attributes:
        counts: what they have done to rows; None if that is not known.
        schema_id: the table's schema.
        head: the last of them, or the snapshot that they would have come after; None if there is none.
    """

    counts: Counted | None
    schema_id: int
    head: int | None


def commits_since(metadata: TableMetadata, head: int, base: int | None) -> Commits:
    """Return what is known of the snapshots after ``base`` up to ``head``."""
    return Commits(counted_since(metadata, head, base), metadata.current_schema_id, head)


def commits_now(metadata: TableMetadata, ref: str, base: int | None, most: int) -> Commits:
    """Return what is known of the snapshots after ``base`` in a branch, if there are just so many.

    If there are others, nobody knows which of them are whose.
    """
    found = metadata.refs.get(ref)
    head = found.snapshot_id if found is not None else None
    is_alone = snapshots_since(metadata, head, base) == most
    counts = (counted_since(metadata, head, base) if head is not None else Counted()) if is_alone else None
    return Commits(counts, metadata.current_schema_id, head)


def creation(metadata: TableMetadata) -> Commits:
    """Return what is known of the commit that has made a table with its rows: a post-hook may have others."""
    snapshot = metadata.current_snapshot()
    while snapshot is not None and snapshot.parent_snapshot_id is not None:
        snapshot = metadata.snapshot_by_id(snapshot.parent_snapshot_id)
    if snapshot is None:
        return Commits(None, metadata.current_schema_id, metadata.current_snapshot_id)
    return commits_since(metadata, snapshot.snapshot_id, None)


def counted_since(metadata: TableMetadata, head: int, base: int | None) -> Counted | None:
    """Return what the snapshots after ``base`` up to ``head`` have done.

    None if one of them has expired, or says something that is no number.
    """
    try:
        return _counted_since(metadata, head, base)
    except ValueError:
        return None


def _counted_since(metadata: TableMetadata, head: int, base: int | None) -> Counted | None:
    found = Counted()
    snapshot = metadata.snapshot_by_id(head)
    while snapshot is None or snapshot.snapshot_id != base:
        if snapshot is None:
            return None
        parent_id = snapshot.parent_snapshot_id
        parent = metadata.snapshot_by_id(parent_id) if parent_id is not None else None
        found += _counted(snapshot, parent if parent_id is not None else snapshot)
        if parent_id is None:
            return found if base is None else None
        snapshot = parent
    return found


def snapshots_since(metadata: TableMetadata, head: int | None, base: int | None) -> int | None:
    """Return how many snapshots there are after ``base`` up to ``head``; None if one has expired."""
    number = 0
    while head != base:
        snapshot = metadata.snapshot_by_id(head) if head is not None else None
        if snapshot is None:
            return None
        number, head = number + 1, snapshot.parent_snapshot_id
    return number


def inserting_since(metadata: TableMetadata, head: int | None, base: int) -> list[int]:
    """Return the snapshots in one history and not in another that have written no row again that was there.

    All rows of the files that such a snapshot has added were loaded by it. Where files have gone, as in a
    compaction or with copy-on-write, some of the rows are those of the files before.

    Args:
        metadata: the table's.
        head: the last snapshot of the one history.
        base: that of the other.
    """
    before = {snapshot.snapshot_id for snapshot in _history(metadata, base)}
    return [
        snapshot.snapshot_id
        for snapshot in _history(metadata, head)
        if snapshot.snapshot_id not in before
        and snapshot.summary is not None
        and snapshot.summary.operation in (Operation.APPEND, Operation.OVERWRITE)
        and "deleted-data-files" not in _summary(snapshot)
    ]


def _history(metadata: TableMetadata, head: int | None) -> Iterator[Snapshot]:
    while head is not None and (snapshot := metadata.snapshot_by_id(head)) is not None:
        yield snapshot
        head = snapshot.parent_snapshot_id


def _counted(snapshot: Snapshot, before: Snapshot | None) -> Counted:
    """Count a commit.

    Args:
        snapshot: the commit.
        before: the one before it; itself if there was none, None if that is not known.
    """
    summary = _summary(snapshot)
    added, gone = _number(summary, "added-records"), _number(summary, "deleted-records")
    # A file of deletes may take the place of one that marks some of the same rows.
    marked = _number(summary, "added-position-deletes") - _number(summary, "removed-position-deletes")
    if "added-equality-deletes" in summary or "removed-equality-deletes" in summary:
        return Counted(added, None)
    if not gone:
        return Counted(added, marked)
    if before is None:
        return Counted(added, None, rewrites=True)
    had = _summary(before) if before is not snapshot else {}
    # Of rows of a file that has gone, some may have been marked as removed before.
    if _number(had, "total-position-deletes") or _number(had, "total-equality-deletes"):
        return Counted(added, None, rewrites=True)
    return Counted(added, gone + marked, rewrites=True)


def _summary(snapshot: Snapshot) -> Mapping[str, str]:
    return snapshot.summary.additional_properties if snapshot.summary is not None else {}


def _number(summary: Mapping[str, str], name: str) -> int:
    return int(summary.get(name, "0"))
