"""Tables of a catalog that makes none with its rows: made empty, and replaced by the table with its rows.

The replacement is one commit. Until then the table is not there for us, whatever has become of the run that
has made it: it has this property and no snapshot.
"""

from dbt.adapters.base.relation import BaseRelation
from pyiceberg.table import Table

from dbt.adapters.sparkevolve.iceberg.access import CatalogAccess
from dbt.adapters.sparkevolve.iceberg.purge import purge

CREATED_EMPTY = "sparkevolve.created-empty"


def is_unfilled(table: Table) -> bool:
    """Tell whether a table was made to be replaced by one with rows, and was not yet."""
    return CREATED_EMPTY in table.metadata.properties and not table.metadata.snapshots


def is_to_be_made(access: CatalogAccess, relation: BaseRelation) -> bool:
    """Tell whether a table has to be made empty before one with rows can replace it.

    One that another run has made and not filled goes first, and with it what that run may still be about to
    commit: a replacement is one of the very table that it began with.
    """
    table = access.find(relation)
    if table is None:
        return True
    if is_unfilled(table):
        purge(access, relation, table.location())
        return True
    return False


def remove_unfilled(access: CatalogAccess, relation: BaseRelation) -> None:
    """Remove a table that was made empty, if nothing has replaced it."""
    table = access.find(relation)
    if table is not None and is_unfilled(table):
        purge(access, relation, table.location())
