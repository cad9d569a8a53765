"""The metadata files that a table has had before: what they say that the table does not know any more."""

import json
import zlib
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from io import BytesIO
from itertools import chain
from typing import Any

from pyiceberg.serializers import Compressor
from pyiceberg.table import Table
from pyiceberg.table.snapshots import MetadataLogEntry

# Of a snapshot that was made of another one's changes (`cherrypick_snapshot`): which one that was.
_SOURCE = "source-snapshot-id"
# How many files are asked for at once: an object store takes longer to answer than it takes to read one. No
# more than these are in memory, as they are stored; one at a time is read, which takes many times as much.
_AT_ONCE = 16


def read(table: Table, entry: MetadataLogEntry) -> Mapping[str, Any] | None:
    """Return what is in a metadata file; None if it was removed, or is spoiled."""
    return _content(entry, _stored(table, entry))


def read_all(table: Table, entries: Sequence[MetadataLogEntry]) -> Iterator[Mapping[str, Any] | None]:
    """Yield what ``read`` returns of each of some metadata files, in their order."""
    if not entries:
        return
    with ThreadPoolExecutor(min(_AT_ONCE, len(entries))) as threads:
        for first in range(0, len(entries), _AT_ONCE):
            some = entries[first : first + _AT_ONCE]
            yield from map(_content, some, threads.map(partial(_stored, table), some))


def _stored(table: Table, entry: MetadataLogEntry) -> bytes | None:
    """Return the bytes of a metadata file; None if it was removed."""
    try:
        with table.io.new_input(entry.metadata_file).open() as file:
            return file.read()
    except OSError:
        return None


def _content(entry: MetadataLogEntry, stored: bytes | None) -> Mapping[str, Any] | None:
    """Return what is in a metadata file; None if it was removed, or is spoiled.

    As JSON: PyIceberg takes 30 times as long to make its objects of all schemas.
    """
    if stored is None:
        return None
    compressor = Compressor.get_compressor(entry.metadata_file)
    try:
        with compressor.stream_decompressor(BytesIO(stored)) as text:
            found = json.loads(text.read())
    except (OSError, ValueError, EOFError, zlib.error):
        return None
    return found if isinstance(found, dict) else None


def properties_since(table: Table, since: Table) -> Iterator[Mapping[str, str]]:
    """Yield the properties that a table has had since it was loaded, as far as its files are there.

    Args:
        table: the table now.
        since: the table then. What it had then comes first.
    """
    yield since.properties
    if table.metadata_location == since.metadata_location:
        return
    log = table.metadata.metadata_log
    places = [n for n, entry in enumerate(log) if entry.metadata_file == since.metadata_location]
    for found in read_all(table, log[places[-1] + 1 :] if places else log):
        if found is not None:
            yield found.get("properties") or {}
    yield table.properties


@dataclass(frozen=True)
class Made:
    """How a snapshot was made.

    Attributes:
        snapshot_id: its id.
        parent_id: the id of the one before it; None if there was none, or it is not known.
        picked_from: the id of the one whose changes it has made once more, as text; None if it made its own.
        is_first: whether it is known that there was none before it.
        is_number_one: whether its number says so, unless the table had format version 1 before.
    """

    snapshot_id: int
    parent_id: int | None = None
    picked_from: str | None = None
    is_first: bool = False
    is_number_one: bool = False

    @classmethod
    def of(cls, snapshot: Mapping[str, Any], *, is_new: bool = False) -> "Made":
        """Return what a metadata file says, with whether the one before it had no such snapshot."""
        parent_id = snapshot.get("parent-snapshot-id")
        summary = snapshot.get("summary") or {}
        is_number_one = snapshot.get("sequence-number") == 1 and _has_only_its_own(summary)
        is_first = parent_id is None and is_new
        source = summary.get(_SOURCE)
        return cls(snapshot["snapshot-id"], parent_id, source, is_first, is_number_one)


def _has_only_its_own(summary: Mapping[str, Any]) -> bool:
    """Tell whether all files that a snapshot has are its own, and it has removed none."""
    total = summary.get("total-data-files")
    is_own = total is not None and total == summary.get("added-data-files", "0")
    return is_own and summary.get("deleted-data-files", "0") == "0"


def may_have_been_upgraded(table: Table) -> bool:
    """Tell whether a table may have had format version 1, in which snapshots had no numbers.

    The first one with a number need not be the first then: it may have files of before, have removed them, or
    come after a DELETE of all rows. The oldest metadata file that the table lists tells. Where that list was
    cut since, only the files of the snapshot itself do.
    """
    if table.metadata.format_version == 1:
        return True
    log = table.metadata.metadata_log
    oldest = read(table, log[0]) if log else {"format-version": table.metadata.format_version}
    return oldest is None or oldest.get("format-version", 1) == 1


def ancestors(table: Table, head: int | None) -> Iterator[Made | None]:
    """Yield a snapshot and all that it comes from, newest first; at the end None if there may be more.

    Of what has expired older metadata files tell. Some writers (PyIceberg is one) take the parent away from
    a snapshot when that one expires, so to have none does not mean that there was none.

    Args:
        table: the table.
        head: the snapshot; None for none.
    """
    known = {made.snapshot_id: made for made in map(Made.of, _snapshots(table))}
    is_complete = False
    while head is not None:
        made = known.get(head, Made(head))
        if made.parent_id is None and made.is_number_one and not made.is_first:
            made = replace(made, is_first=not may_have_been_upgraded(table))
        if made.parent_id is None and not made.is_first and not is_complete:
            known, is_complete = _all_known(table), True
            made = known.get(head, made)
        yield made
        if made.parent_id is None and not made.is_first:
            yield None
        head = made.parent_id


def _snapshots(table: Table) -> list[dict[str, Any]]:
    return [s.model_dump(mode="json", by_alias=True) for s in table.metadata.snapshots]


def _all_known(table: Table) -> dict[int, Made]:
    """Return how the snapshots were made that any metadata file knows: the first that has one, as it was."""
    found: dict[int, Made] = {}
    files = read_all(table, table.metadata.metadata_log)
    has_previous = False
    for file in chain(files, [{"snapshots": _snapshots(table)}]):
        for snapshot in (file or {}).get("snapshots") or ():
            if snapshot["snapshot-id"] not in found:
                made = Made.of(snapshot, is_new=has_previous)
                found[made.snapshot_id] = made
        has_previous = file is not None
    return found


def has_rows_of(table: Table, head: int | None, snapshot_id: int) -> bool | None:
    """Tell whether a snapshot has the rows of another one, as it comes from it; None if nobody knows.

    Args:
        table: the table.
        head: the snapshot; None for none.
        snapshot_id: the other one.
    """
    for made in ancestors(table, head):
        if made is None:
            return None
        if snapshot_id == made.snapshot_id or str(snapshot_id) == made.picked_from:
            return True
    return False


def has_lost(table: Table, head: int | None) -> bool:
    """Tell whether a snapshot that another one comes from has expired, or may have.

    Args:
        table: the table.
        head: the snapshot; None for none.
    """
    there = {s.snapshot_id for s in table.metadata.snapshots}
    return any(made is None or made.snapshot_id not in there for made in ancestors(table, head))
