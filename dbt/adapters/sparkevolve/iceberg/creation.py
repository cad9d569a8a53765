"""Tables of a catalog that makes none with its rows: made empty, and replaced by the table with its rows.

The replacement is one commit. Until then the table is not there for us, whatever has become of the run that
has made it: it has this property, with the id of that run, and has never had a snapshot.
"""

from dbt.adapters.base.relation import BaseRelation
from dbt.adapters.events.logging import AdapterLogger
from pyiceberg.table import Table

from dbt.adapters.sparkevolve.errors import FilesLeftError
from dbt.adapters.sparkevolve.iceberg.access import CatalogAccess
from dbt.adapters.sparkevolve.iceberg.purge import purge

logger = AdapterLogger("SparkEvolve")
CREATED_EMPTY = "sparkevolve.created-empty"


def is_unfilled(table: Table) -> bool:
    """Tell whether a table was made to be replaced by one with rows, and was not yet.

    The property stays once it was. A table that has lost its snapshots since, such as by a CREATE OR REPLACE
    without a query and an expiry, is told by the numbers that they have had.
    """
    metadata = table.metadata
    # Format version 1 has no such numbers.
    last_number = getattr(metadata, "last_sequence_number", 0)
    return CREATED_EMPTY in metadata.properties and not metadata.snapshots and not last_number


def is_to_be_made(access: CatalogAccess, relation: BaseRelation) -> bool:
    """Tell whether a table has to be made empty before one with rows can replace it.

    One that another run has made and not filled goes first, and with it what that run may still be about to
    commit: a replacement is one of the very table that it began with.
    """
    table = access.find(relation)
    if table is None:
        return True
    if is_unfilled(table):
        _remove(access, relation, table)
        return True
    return False


def remove_unfilled(access: CatalogAccess, relation: BaseRelation, maker: str) -> None:
    """Remove a table that was made empty, if nothing has replaced it.

    One that another run has made under its name since stays: it is about to be filled.

    Args:
        access: the catalog.
        relation: the table.
        maker: the id of the run that has made it.
    """
    table = access.find(relation)
    if table is not None and is_unfilled(table) and table.properties[CREATED_EMPTY] == maker:
        _remove(access, relation, table)


def _remove(access: CatalogAccess, relation: BaseRelation, table: Table) -> None:
    try:
        purge(access, relation, table.location())
    except FilesLeftError as exc:
        # It has no files of rows, and its name is free.
        logger.debug(exc.msg)
