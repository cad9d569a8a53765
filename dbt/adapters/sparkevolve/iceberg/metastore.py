"""Connections to a Hive metastore: one for each thread, and commits that lose nobody else's."""

import threading
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Any

from dbt.adapters.events.logging import AdapterLogger
from pyiceberg.exceptions import CommitFailedException

from dbt.adapters.sparkevolve.times import iso_of

logger = AdapterLogger("SparkEvolve")

# The setting of a metastore that compares the types of columns by their place.
COMPARES_TYPES = "hive.metastore.disallow.incompatible.col.type.changes"
# Iceberg's setting of whether commits take a lock: of a table, and below `spark.sql.catalog.<name>`.
LOCKS_OF_TABLE = "engine.hive.lock-enabled"
LOCKS_OF_CATALOG = f"hadoop.iceberg.{LOCKS_OF_TABLE}"
LOCKS_OF_ALL = f"spark.{LOCKS_OF_CATALOG}"

_LOCATION = "metadata_location"
_PREVIOUS_LOCATION = "previous_metadata_location"
# What a metastore compares itself, at the moment of the change (HIVE-26882: Hive 2.3.10, and 4.0).
_EXPECTED_KEY = "expected_parameter_key"
_EXPECTED_VALUE = "expected_parameter_value"
_MODIFIED = "The table has been modified"
_INCOMPATIBLE = "incompatible with the existing columns"
_NOTHING_LOCKED = -1


def guard(catalog: Any, takes_locks: bool) -> None:
    """Have a catalog of PyIceberg that is a Hive metastore commit as Iceberg's in Spark does.

    Nothing happens to any other catalog.

    Args:
        catalog: the catalog.
        takes_locks: whether commits take a lock, unless a table says else.
    """
    if not hasattr(catalog, "_create_hive_client"):
        return

    def connect(uri: str) -> Any:
        return catalog._create_hive_client({**catalog.properties, "uri": uri})

    uris = [uri.strip() for uri in str(catalog.properties["uri"]).split(",")]
    catalog._client = Connections(uris, connect, takes_locks)


class Connections:
    """Opens a connection for each ``with``, to the first metastore that answers.

    PyIceberg 0.12 has one transport for all threads: whoever leaves first closes that of the others. And of
    several addresses it takes the first, whether anybody answers there or not.
    """

    def __init__(self, uris: list[str], connect: Callable[[str], Any], takes_locks: bool) -> None:
        """Open nothing yet.

        Args:
            uris: the addresses of the metastores, each of which has all tables.
            connect: returns PyIceberg's client of an address, which is a context manager.
            takes_locks: whether commits take a lock, unless a table says else.
        """
        self._uris = uris
        self._connect = connect
        self._takes_locks = takes_locks
        self._open = threading.local()

    def __enter__(self) -> "Client":
        """Open a connection."""
        stack = self._open.__dict__.setdefault("stack", [])
        for number, uri in enumerate(self._uris, start=1):
            connection = self._connect(uri)
            try:
                client = connection.__enter__()
            except Exception as exc:
                if number == len(self._uris):
                    raise
                logger.debug(f"The metastore at {uri} does not answer, and the next one is asked: {exc}")
            else:
                stack.append(connection)
                return Client(client, self._takes_locks)
        raise AssertionError("a metastore has an address")

    def __exit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close this thread's last connection."""
        self._open.stack.pop().__exit__(kind, exc, trace)


class Client:
    """A metastore's client, whose changes of a table say which metadata they were made for."""

    def __init__(self, client: Any, takes_locks: bool) -> None:
        """Ask nothing yet.

        Args:
            client: the client that Thrift has generated.
            takes_locks: whether commits take a lock, unless a table says else.
        """
        self._thrift = client
        self._takes_locks = takes_locks

    def __getattr__(self, name: str) -> Any:
        """Hand on all other calls."""
        return getattr(self._thrift, name)

    def get_table(self, dbname: str, tbl_name: str) -> Any:
        """Return a table. Hive 4 has no more the call that PyIceberg makes, and Hive before 2.3 no other."""
        from hive_metastore.ttypes import GetTableRequest

        try:
            return self._thrift.get_table_req(GetTableRequest(dbName=dbname, tblName=tbl_name)).table
        except Exception as exc:
            _refuse_unless_unknown(exc)
            return self._thrift.get_table(dbname=dbname, tbl_name=tbl_name)

    def get_table_objects_by_name(self, dbname: str, tbl_names: list[str]) -> list[Any]:
        """Return several tables of a schema."""
        from hive_metastore.ttypes import GetTablesRequest

        request = GetTablesRequest(dbName=dbname, tblNames=tbl_names)
        try:
            return list(self._thrift.get_table_objects_by_name_req(request).tables)
        except Exception as exc:
            _refuse_unless_unknown(exc)
            return list(self._thrift.get_table_objects_by_name(dbname=dbname, tbl_names=tbl_names))

    def lock(self, request: Any) -> Any:
        """Take a lock, unless the table or the profile says that commits take none: Spark obeys too."""
        from hive_metastore.ttypes import LockResponse, LockState

        table = request.component[0]
        parameters = self._parameters(table.dbname, table.tablename)
        said = parameters.get(LOCKS_OF_TABLE)
        if self._takes_locks if said is None else said.strip().lower() == "true":
            return self._thrift.lock(request)
        return LockResponse(lockid=_NOTHING_LOCKED, state=LockState.ACQUIRED)

    def unlock(self, request: Any) -> None:
        """Give a lock back, if one was taken."""
        if request.lockid != _NOTHING_LOCKED:
            self._thrift.unlock(request)

    def _parameters(self, schema: str, name: str) -> Mapping[str, str]:
        from hive_metastore.ttypes import NoSuchObjectException

        try:
            return self.get_table(schema, name).parameters or {}
        except NoSuchObjectException:
            return {}

    def alter_table_with_environment_context(
        self, dbname: str, tbl_name: str, new_tbl: Any, environment_context: Any
    ) -> None:
        """Change a table, if its metadata are still those that the change was made for.

        A lock keeps away only those who take one too. What was expected is what the metastore itself
        compares, if it is new enough; an older one overlooks it.

        Raises:
            CommitFailedException: another writer has committed.
            InvalidOperationException: the metastore refuses the change.
        """
        from hive_metastore.ttypes import InvalidOperationException, MetaException

        expected = (new_tbl.parameters or {}).get(_PREVIOUS_LOCATION)
        is_renamed = (new_tbl.dbName, new_tbl.tableName) != (dbname, tbl_name)
        if expected is not None and not is_renamed:
            environment_context.properties.update({_EXPECTED_KEY: _LOCATION, _EXPECTED_VALUE: expected})
        call = (dbname, tbl_name, new_tbl, environment_context)
        try:
            try:
                self._thrift.alter_table_with_environment_context(*call)
            except InvalidOperationException as exc:
                if _INCOMPATIBLE not in str(exc.message):
                    raise
                self._compare_no_types(exc)
                self._thrift.alter_table_with_environment_context(*call)
        except MetaException as exc:
            if _MODIFIED in str(exc.message):
                raise CommitFailedException(exc.message) from exc
            raise

    def _compare_no_types(self, refusal: Any) -> None:
        """Have the metastore compare no types in this connection: Iceberg reads columns by their ids.

        Args:
            refusal: its answer to the change.

        Raises:
            InvalidOperationException: it lets nobody but its operator decide that (before Hive 3).
        """
        from hive_metastore.ttypes import InvalidOperationException, MetaException

        try:
            self._thrift.setMetaConf(COMPARES_TYPES, "false")
        except MetaException as exc:
            raise InvalidOperationException(
                f"{refusal.message}. Iceberg needs no such rule: have the operator of the metastore set "
                f"{COMPARES_TYPES} to false"
            ) from exc


def _refuse_unless_unknown(exc: Exception) -> None:
    """Raise a metastore's answer again, unless it is that it has no such call."""
    from thrift.Thrift import TApplicationException

    if not isinstance(exc, TApplicationException) or exc.type != TApplicationException.UNKNOWN_METHOD:
        raise exc


def holders_of_lock(catalog: Any, schema: str, table: str) -> str:
    """Return who holds the locks of a table, in words; empty if nobody does any more."""
    from hive_metastore.ttypes import LockState, ShowLocksRequest

    with catalog._client as client:
        found = client.show_locks(ShowLocksRequest(dbname=schema, tablename=table)).locks or []
    held = [
        f"lock {lock.lockid} of `{lock.user}` at {lock.hostname}, since {iso_of(lock.acquiredat)}"
        for lock in found
        if lock.state == LockState.ACQUIRED and (lock.dbname, lock.tablename) == (schema, table)
    ]
    return "; ".join(held)
