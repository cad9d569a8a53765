"""What a table's metadata tell of its rows, files and age, without a look at any of its files.

The keys of a snapshot's summary are those of the Iceberg table spec ("Optional Snapshot Summary Fields"), so
each may be missing.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from pyiceberg.table import Table
from pyiceberg.table.snapshots import Operation, Snapshot

from dbt.adapters.sparkevolve.iceberg.base import changes_files, partitions
from dbt.adapters.sparkevolve.iceberg.older_metadata import may_have_been_upgraded
from dbt.adapters.sparkevolve.times import iso_of

# The names of all that there can be, in the order in which they are shown.
STATISTICS = (
    *("rows", "bytes", "files", "last_modified"),
    *("snapshots", "partitioned_by", "format_version"),
)

# The sequence number of a table's first commit, unless it was upgraded: in format version 1 all have 0.
_FIRST = 1


@dataclass(frozen=True)
class Statistic:
    """One fact of a table, as ``dbt docs`` shows it.

    Attributes:
        id: its name in ``catalog.json``.
        label: its name for readers.
        value: a number, or a text.
        description: what it is exactly.
    """

    id: str
    label: str
    value: int | str
    description: str


def statistics(table: Table) -> list[Statistic]:
    """Return what the metadata of a table tell: of ``main``, unless the description says else.

    What is not known, such as the number of rows of a table with equality deletes, is left out.
    """
    head = table.current_snapshot()
    found = [] if head is None else list(_of_snapshot(head))
    changed = last_change(table)
    text = None if changed is None else iso_of(changed)
    if text is not None:
        found.append(Statistic("last_modified", "Last modified", text, "When rows were last changed, in UTC"))
    found.append(
        Statistic("snapshots", "Snapshots", len(table.metadata.snapshots), "Those kept, of all branches")
    )
    parts = ", ".join(str(part) for part in partitions(table))
    if parts:
        found.append(Statistic("partitioned_by", "Partitioned by", parts, "Of files written from now on"))
    version = table.metadata.format_version
    found.append(Statistic("format_version", "Format version", version, "Iceberg's version of the table"))
    return found


def _of_snapshot(snapshot: Snapshot) -> Iterator[Statistic]:
    summary = dict(snapshot.summary.additional_properties) if snapshot.summary is not None else {}
    rows = rows_of(snapshot)
    if rows is not None:
        label, exactness = "Row count", "Number of rows"
        if _number(summary, "total-position-deletes"):
            label = "Approximate row count"
            exactness = "Rows in files, less those deleted: too few if compaction has left deletes behind"
        yield Statistic("rows", label, rows, exactness)
    size = _number(summary, "total-files-size")
    if size is not None:
        yield Statistic("bytes", "Approximate size", size, "Bytes of the files of data and of deletes")
    files = _number(summary, "total-data-files")
    if files is not None:
        yield Statistic("files", "Data files", files, "Number of data files")


def rows_of(snapshot: Snapshot) -> int | None:
    """Return how many rows a snapshot has, as far as its summary tells; None if it does not."""
    summary = dict(snapshot.summary.additional_properties) if snapshot.summary is not None else {}
    total, deleted = _number(summary, "total-records"), _number(summary, "total-position-deletes")
    if total is None or deleted is None or _number(summary, "total-equality-deletes") != 0:
        return None
    return max(total - deleted, 0)


def _number(summary: dict[str, str], key: str) -> int | None:
    text = summary.get(key, "")
    return int(text) if text.isascii() and text.isdigit() else None


def last_change(table: Table) -> int | None:
    """Return when rows of ``main`` were last changed, in ms since the epoch; None if it never had any.

    A commit that replaces files by others with the same rows (the operation ``replace``, which compaction is)
    changes none, and neither does one that adds and removes no file, such as an empty append. Where
    everything before such a commit has expired, the oldest commit that is known bounds the time from above.
    """
    snapshot = table.current_snapshot()
    while snapshot is not None and _keeps_rows(snapshot):
        if snapshot.parent_snapshot_id is None:
            # Nothing has been before the first commit of all. A table that was replaced begins again as well.
            return None if _is_first(table, snapshot) else snapshot.timestamp_ms
        before = table.snapshot_by_id(snapshot.parent_snapshot_id)
        if before is None:
            break
        snapshot = before
    return None if snapshot is None else snapshot.timestamp_ms


def _is_first(table: Table, snapshot: Snapshot) -> bool:
    """Tell whether a snapshot that has kept the rows there were is the first one of all, and so has none."""
    summary = snapshot.summary.additional_properties if snapshot.summary is not None else {}
    is_empty = not _number(summary, "total-data-files")
    return snapshot.sequence_number == _FIRST and is_empty and not may_have_been_upgraded(table)


def _keeps_rows(snapshot: Snapshot) -> bool:
    if snapshot.summary is None:
        return False
    summary = snapshot.summary.additional_properties
    # Each field is optional. Who counts the files that there are, counts those that are new, too.
    is_counted = _number(summary, "total-data-files") is not None
    return snapshot.summary.operation == Operation.REPLACE or (is_counted and not changes_files(snapshot))
