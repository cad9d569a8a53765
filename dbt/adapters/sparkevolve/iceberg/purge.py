"""How a table goes, with all of its files."""

from typing import cast

from dbt.adapters.base.relation import BaseRelation
from pyiceberg.catalog import MetastoreCatalog
from pyiceberg.exceptions import NoSuchTableError

from dbt.adapters.sparkevolve.errors import FilesLeftError
from dbt.adapters.sparkevolve.iceberg.access import CatalogAccess
from dbt.adapters.sparkevolve.iceberg.checksums import remove_leftovers
from dbt.adapters.sparkevolve.messages import answer_of, outage
from dbt.adapters.sparkevolve.relation import table_identifier


def purge(access: CatalogAccess, relation: BaseRelation, location: str | None = None) -> None:
    """Remove a table and its files, if it is there; at least the table, if the files cannot be removed.

    Args:
        access: the catalog.
        relation: the table.
        location: where its files are, if that is known.

    Raises:
        ForeignCatalogError: it is in another catalog; what has its name in this one stays.
        FilesLeftError: the table is gone, and files of it may be left.
        Exception: the table is still there, for the reason that the catalog gives.
    """
    access.refuse_foreign(relation)
    name = table_identifier(relation)
    try:
        if location is None:
            table = access.find(relation)
            location = table.location() if table is not None else None
        try:
            access.opened.purge_table(name)
        except NotImplementedError:
            # PyIceberg 0.12 hides this for Hive alone, whose catalog has all that it needs.
            MetastoreCatalog.purge_table(cast("MetastoreCatalog", access.opened), name)
    except NoSuchTableError:
        return
    except Exception as exc:
        # Files of it are gone already, or may not be removed, or the catalog does not do this.
        try:
            access.opened.drop_table(name)
        except NoSuchTableError:
            pass  # dropped before its files
        except Exception as dropping:
            reason = outage(exc)
            if reason is not None:
                raise access.watch.error(reason, f"{relation} could not be removed") from dropping
            raise exc from dropping
        raise FilesLeftError(str(relation), answer_of(exc)) from exc
    if location is not None:
        remove_leftovers(location)
