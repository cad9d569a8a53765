"""Tables of a catalog that makes none with its rows: made empty, and replaced by the table with its rows.

The replacement is one commit. Until then the table is not there for us, whatever has become of the run that
has made it: it has a property with the id of that run and its own name, and nothing tells of a snapshot that
it has ever had. The name is there since others may copy a table's properties (CREATE TABLE LIKE): the copy is
theirs.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from dbt.adapters.base.relation import BaseRelation
from dbt.adapters.events.logging import AdapterLogger
from pyiceberg.table import Table

from dbt.adapters.sparkevolve.errors import FilesLeftError
from dbt.adapters.sparkevolve.evolution.names import fold
from dbt.adapters.sparkevolve.iceberg.access import CatalogAccess
from dbt.adapters.sparkevolve.iceberg.older_metadata import read
from dbt.adapters.sparkevolve.iceberg.purge import purge
from dbt.adapters.sparkevolve.relation import schema_name, table_identifier

logger = AdapterLogger("SparkEvolve")
CREATED_EMPTY = "sparkevolve.created-empty"


def mark(relation: BaseRelation, maker: str) -> dict[str, str]:
    """Return the properties of a table that a run makes to be filled.

    Args:
        relation: the table.
        maker: the id of the run.
    """
    return {CREATED_EMPTY: f"{maker} {_name(table_identifier(relation))}"}


def _name(identifier: Sequence[str]) -> str:
    # A catalog may return names in other letters than it was given.
    return fold(schema_name(identifier))


def _maker(table: Table) -> str:
    """Return the id of the run that has made a table to be filled; empty if none has, or it is a copy."""
    maker, _, name = table.properties.get(CREATED_EMPTY, "").partition(" ")
    return maker if name == _name(table.name()) else ""


def is_unfilled(table: Table) -> bool:
    """Tell whether a table was made to be replaced by one with rows, and was not yet.

    The property stays once it was. A table that has lost its snapshots since, such as by a CREATE OR REPLACE
    without a query and an expiry, is told by the numbers that they have had. Format version 1 has no such
    numbers: what was committed to such a table counts as rows, also after it was upgraded.
    """
    metadata = table.metadata
    last_number: int = getattr(metadata, "last_sequence_number", 0)
    if not _maker(table) or metadata.snapshots or last_number:
        return False
    return not any(_may_have_had_rows(read(table, entry)) for entry in metadata.metadata_log)


def _may_have_had_rows(older: Mapping[str, Any] | None) -> bool:
    """Tell whether a table may have had rows, by an older metadata file of it; None for one that is gone."""
    return older is None or older.get("format-version") == 1 or bool(older.get("snapshots"))


def is_to_be_made(access: CatalogAccess, relation: BaseRelation) -> bool:
    """Tell whether a table has to be made empty before one with rows can replace it.

    One that another run has made and not filled goes first, and with it what that run may still be about to
    commit: a replacement is one of the very table that it began with.
    """
    table = access.find(relation)
    if table is None:
        return True
    return is_unfilled(table) and _remove(access, relation, table)


def replaced_snapshot(access: CatalogAccess, relation: BaseRelation, maker: str) -> int | None:
    """Return the last snapshot that readers saw in a table before its rows replaced that; None if none was.

    A replacement is one of the table that its statement has met: others may have made the empty one anew, and
    filled it, since. Which snapshots readers saw, and which run has set the table's properties then, its
    metadata files say: there are branches that were never published, and a third run may have replaced ours.

    Args:
        access: the catalog.
        relation: the table.
        maker: the id of the run that has replaced the empty one.
    """
    table = access.find(relation)
    if table is None:
        return None
    files = [read(table, entry) or {} for entry in table.metadata.metadata_log]
    files.append(table.metadata.model_dump(mode="json", by_alias=True))
    name = _name(table.name())
    parents = {
        snapshot["snapshot-id"]: snapshot.get("parent-snapshot-id")
        for file in files
        for snapshot in file.get("snapshots") or ()
    }

    def first(snapshot_id: int) -> int:
        while parents.get(snapshot_id) in parents:
            snapshot_id = parents[snapshot_id]
        return snapshot_id

    previous: int | None = None
    begun: list[int | None] = []
    begun_by_maker: list[int | None] = []
    for file in files:
        head: int = file.get("current-snapshot-id") or -1
        if head not in parents:
            continue
        if previous is None or first(head) != first(previous):
            begun.append(previous)
            if file.get("properties", {}).get(CREATED_EMPTY) == f"{maker} {name}":
                begun_by_maker.append(previous)
        previous = head
    return next(reversed(begun_by_maker or begun), None)


def remove_unfilled(access: CatalogAccess, relation: BaseRelation, maker: str) -> None:
    """Remove a table that was made empty, if nothing has replaced it.

    One that another run has made under its name since stays: it is about to be filled.

    Args:
        access: the catalog.
        relation: the table.
        maker: the id of the run that has made it.
    """
    table = access.find(relation)
    if table is not None and is_unfilled(table) and _maker(table) == maker:
        _remove(access, relation, table)


def _remove(access: CatalogAccess, relation: BaseRelation, table: Table) -> bool:
    """Remove a table, and tell whether it is gone: it stays if it was filled meanwhile, or recreated."""
    uuid = table.metadata.table_uuid

    def is_same(now: Table) -> bool:
        return now.metadata.table_uuid == uuid and is_unfilled(now)

    try:
        return purge(access, relation, table.location(), is_same)
    except FilesLeftError as exc:
        # It has no files of rows, and its name is free.
        logger.debug(exc.msg)
        return True
