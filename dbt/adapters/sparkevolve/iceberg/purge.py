"""How a table goes, with all of its files."""

from collections.abc import Callable
from itertools import count
from typing import NoReturn

from dbt.adapters.base.relation import BaseRelation
from pyiceberg.catalog import delete_data_files, delete_files
from pyiceberg.exceptions import NoSuchTableError
from pyiceberg.table import Table

from dbt.adapters.sparkevolve.errors import FilesLeftError, removing
from dbt.adapters.sparkevolve.iceberg.access import CatalogAccess
from dbt.adapters.sparkevolve.iceberg.capabilities import Kind, Purge
from dbt.adapters.sparkevolve.iceberg.checksums import remove_leftovers
from dbt.adapters.sparkevolve.iceberg.retry import MOST_OUTAGES, wait_seconds
from dbt.adapters.sparkevolve.iceberg.staging import is_made_up
from dbt.adapters.sparkevolve.messages import answer_of, is_answer, outage
from dbt.adapters.sparkevolve.relation import table_identifier


@removing()
def purge(
    access: CatalogAccess,
    relation: BaseRelation,
    location: str | None = None,
    is_meant: Callable[[Table], bool] | None = None,
) -> bool:
    """Remove a table and its files, if it is there; at least the table, if the files cannot be removed.

    A catalog drops what has a name, whichever table that is by now.

    Args:
        access: the catalog.
        relation: the table.
        location: where its files are, if that is known.
        is_meant: asked of the table that has the name now, right before it goes: with False it stays.

    Returns:
        whether there is no such table any more.

    Raises:
        ForeignCatalogError: it is in another catalog; what has its name in this one stays.
        FilesLeftError: the table is gone, and files of it may be left.
        Exception: the table is still there, for the reason that the catalog gives.
    """
    access.refuse_foreign(relation)
    name = table_identifier(relation)
    try:
        if location is None or is_meant is not None:
            table = access.find(relation)
            if table is not None and is_meant is not None and not is_meant(table):
                return False
            location = location or (table.location() if table is not None else None)
        if _deletes_files(access):
            _purge(access, name)
        else:
            _drop_and_delete(access, name)
    except NoSuchTableError:
        return True
    except FilesLeft as exc:
        raise FilesLeftError(str(relation), answer_of(exc.cause)) from exc.cause
    except TimeoutError as exc:
        # It may be removing the table still: to ask for more would only take as long again.
        undone = f"{relation} could not be removed, as far as is known"
        raise access.watch.error(outage(exc) or answer_of(exc), undone) from exc
    except Exception as exc:
        if access.capabilities.purge is not Purge.EITHER:
            # There is no other way: the table is still there.
            _raise(access, relation, exc)
        # Files of it are gone already, or may not be removed, or the catalog does not do this.
        try:
            access.watch.limited(lambda: access.opened.drop_table(name))
        except NoSuchTableError:
            pass  # dropped before its files
        except Exception:
            _raise(access, relation, exc)
        raise FilesLeftError(str(relation), answer_of(exc)) from exc
    if location is not None:
        remove_leftovers(location)
    return True


def _raise(access: CatalogAccess, relation: BaseRelation, exc: Exception) -> NoReturn:
    """Raise the error of a table that is still there, with catalog and address if the reason is theirs."""
    undone = f"{relation} could not be removed"
    reason = outage(exc)
    if reason is not None:
        raise access.watch.error(reason, undone) from exc
    if is_answer(exc):
        raise access.answered(str(relation), exc, undone) from exc
    raise exc


class FilesLeft(Exception):
    """A table was dropped, and its files could not be deleted.

    Attributes:
        cause: why not.
    """

    def __init__(self, cause: Exception) -> None:
        super().__init__(str(cause))
        self.cause = cause


def _deletes_files(access: CatalogAccess) -> bool:
    """Tell whether the catalog deletes the files of a table that it drops: PyIceberg does for most kinds."""
    can = access.capabilities
    return can.purge is not Purge.NEVER and can.kind not in (Kind.SQL, Kind.HIVE, Kind.GLUE)


def _purge(access: CatalogAccess, name: tuple[str, ...]) -> None:
    """Have the catalog remove a table and its files.

    A batch of ours is asked for again if the catalog is away for a moment: once it is dropped without its
    files, nobody finds those. Of another name the answer may be lost and the name be another table's by then.
    """
    for number in count():
        try:
            access.watch.limited(lambda: access.opened.purge_table(name))
            return
        except Exception as exc:
            is_away = outage(exc) is not None and not isinstance(exc, TimeoutError)
            if not is_away or number == MOST_OUTAGES or not is_made_up(name[-1]):
                raise
            access.watch.pause(exc, wait_seconds(number))


def _drop_and_delete(access: CatalogAccess, name: tuple[str, ...]) -> None:
    """Drop a table, and delete its files.

    They are read with what the catalog gave for the table: nobody gets that once it is dropped. How long that
    takes depends on how many there are; a request to the catalog takes limited time.

    Raises:
        FilesLeft: the table is dropped, and files of it are left.
    """
    table = access.watch.limited(lambda: access.opened.load_table(name))
    metadata, io = table.metadata, table.io
    try:
        manifests = [manifest for snapshot in metadata.snapshots for manifest in snapshot.manifests(io)]
    except Exception as exc:
        access.watch.limited(lambda: access.opened.drop_table(name))
        raise FilesLeft(exc) from exc
    access.watch.limited(lambda: access.opened.drop_table(name))
    try:
        delete_data_files(io, manifests)
        delete_files(io, {manifest.manifest_path for manifest in manifests}, "manifest")
        delete_files(io, {snapshot.manifest_list for snapshot in metadata.snapshots}, "manifest list")
        files = {log.metadata_file for log in metadata.metadata_log} | {table.metadata_location}
        delete_files(io, files, "metadata")
    except Exception as exc:
        raise FilesLeft(exc) from exc
