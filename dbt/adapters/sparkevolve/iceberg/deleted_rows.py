"""How many rows of data files are left, where files of deletes have marked rows as removed."""

from dataclasses import dataclass, field

from pyiceberg.manifest import DataFile, DataFileContent, ManifestContent, ManifestEntry
from pyiceberg.table import Table
from pyiceberg.table.snapshots import Snapshot

# The field of a file of position deletes in which the paths of data files are, by the specification.
_PATH_FIELD_ID = 2147483546


@dataclass
class DeletedRows:
    """The files of deletes of a snapshot.

    Attributes:
        of_file: those of which the bounds say that they are about one data file, by its path.
        others: those that may be about any file of a partition, or of the table, with sequence numbers.
    """

    of_file: dict[str, list[DataFile]] = field(default_factory=dict)
    others: list[tuple[DataFile, int]] = field(default_factory=list)

    def add(self, delete: DataFile, number: int) -> None:
        """Add a file of deletes, with its sequence number."""
        path = _path_of(delete)
        if path is None:
            self.others.append((delete, number))
        else:
            self.of_file.setdefault(path, []).append(delete)

    def rows_left(self, entry: ManifestEntry) -> tuple[int, bool]:
        """Return how many rows of a data file are left, and whether that is exact: if not, it is the most.

        Args:
            entry: the data file, as a manifest has it.
        """
        data = entry.data_file
        rows, mine = data.record_count, self.of_file.get(data.file_path, [])
        if any(_may_apply(delete, number, entry) for delete, number in self.others):
            return rows, False
        if len(mine) > 1:
            # Both may have the same rows.
            return rows - max(delete.record_count for delete in mine), False
        return rows - sum(delete.record_count for delete in mine), True


def deleted_rows(table: Table, snapshot: Snapshot) -> DeletedRows:
    """Return the files of deletes of a snapshot."""
    found = DeletedRows()
    for manifest in snapshot.manifests(table.io):
        if manifest.content != ManifestContent.DELETES:
            continue
        for entry in manifest.fetch_manifest_entry(table.io, discard_deleted=True):
            found.add(entry.data_file, entry.sequence_number or 0)
    return found


def _path_of(delete: DataFile) -> str | None:
    lower = (delete.lower_bounds or {}).get(_PATH_FIELD_ID)
    upper = (delete.upper_bounds or {}).get(_PATH_FIELD_ID)
    is_of_one = delete.content == DataFileContent.POSITION_DELETES and lower is not None and lower == upper
    return lower.decode() if is_of_one and lower is not None else None


def _may_apply(delete: DataFile, number: int, entry: ManifestEntry) -> bool:
    data, written = entry.data_file, entry.sequence_number or 0
    is_equality = delete.content == DataFileContent.EQUALITY_DELETES
    # By the specification, equality deletes are about rows that were there before, and in any partition if
    # their own spec has none.
    if is_equality and len(delete.partition) == 0:
        return written < number
    is_same = delete.spec_id == data.spec_id and delete.partition == data.partition
    return is_same and (written < number if is_equality else written <= number)
