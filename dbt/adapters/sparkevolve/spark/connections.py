"""Connections to Spark: an in-process session, or a Thrift server."""

import re
from collections.abc import Callable, Generator
from contextlib import contextmanager
from multiprocessing.context import SpawnContext
from typing import Any, Protocol

from dbt.adapters.contracts.connection import Connection, ConnectionState, LazyHandle
from dbt.adapters.events.logging import AdapterLogger
from dbt.adapters.spark.connections import SparkConnectionManager, SparkConnectionMethod
from dbt_common.exceptions import DbtBaseException, DbtRuntimeError

from dbt.adapters.sparkevolve.cancellation import Cancellation
from dbt.adapters.sparkevolve.credentials import SparkEvolveCredentials
from dbt.adapters.sparkevolve.errors import SettingError, StatementError
from dbt.adapters.sparkevolve.interrupts import INTERRUPTS
from dbt.adapters.sparkevolve.messages import is_type_unreturnable, server_message, short_message
from dbt.adapters.sparkevolve.redaction import safe
from dbt.adapters.sparkevolve.spark.session import SESSIONS
from dbt.adapters.sparkevolve.spark.session_handle import SessionHandle
from dbt.adapters.sparkevolve.spark.sql_settings import changes_settings, check_settings, value_instead
from dbt.adapters.sparkevolve.spark.thrift import open_thrift
from dbt.adapters.sparkevolve.warning import warn

logger = AdapterLogger("SparkEvolve")

# Between two attempts to connect.
LONGEST_PAUSE_SECONDS = 10
# Spark has no transactions, and would not parse it.
_COMMIT = re.compile(r"\s*(/\*.*?\*/)?\s*commit;?\s*", re.DOTALL | re.IGNORECASE)


class Watched(Protocol):
    """The catalogs of the profile.

    Each method raises a ``CatalogUnavailableError`` that names the one that is away.
    """

    def check_at_start(self) -> None:
        """See whether the one in which each connection begins answers, unless it has answered before."""

    def check_before(self, sql: str) -> None:
        """See whether those answer that a statement names, unless they have answered before."""

    def check_after(self, error: StatementError, sql: str) -> None:
        """See whether one is away, or has answered so, after a statement that may have failed for that."""


class SparkEvolveConnectionManager(SparkConnectionManager):
    """Opens connections and translates their errors."""

    TYPE = "sparkevolve"

    def __init__(self, profile: Any, mp_context: SpawnContext) -> None:
        super().__init__(profile, mp_context)
        self.cancellation = Cancellation()
        self._has_warned = False
        self._has_warned_of_cache = False
        self._catalogs: Watched | None = None

    def watch_catalogs(self, catalogs: "Watched") -> None:
        """Say how to see whether the catalogs are there: before Spark is asked, and after it has failed.

        Spark itself takes minutes to say that a catalog is away, and says it in Java's words.
        """
        self._catalogs = catalogs

    def set_connection_name(self, name: str | None = None) -> Connection:
        """Return this thread's connection, which is opened when it is first used, and can be cancelled."""
        connection: Connection = super().set_connection_name(name)
        if connection.state != ConnectionState.OPEN:
            connection.handle = LazyHandle(self._open_cancellable)
        return connection

    def cancel_open(self) -> list[str]:
        """Cancel what all other threads do: what they run now, and all that they would do after it.

        Returns:
            The names of their connections.
        """
        self.cancellation.cancel()
        this_connection = self.get_if_exists()
        with self.lock:
            others = [c for c in self.thread_connections.values() if c is not this_connection]
        for connection in others:
            if connection.state != ConnectionState.OPEN:
                continue
            try:
                connection.handle.cancel()
            except Exception as exc:
                # The others have to be cancelled all the same, and this one's thread stops at its next step.
                logger.debug(f"What {connection.name} runs could not be cancelled: {exc}")
        return [connection.name for connection in others if connection.name is not None]

    @contextmanager
    def exception_handler(self, sql: str) -> Generator[None, None, None]:
        """Turn whatever a connection raises into an error that dbt shows, short."""
        try:
            yield
        except DbtBaseException:
            raise
        except Exception as exc:
            raise DbtRuntimeError(short_message(server_message(exc)) or type(exc).__name__) from safe(exc)

    def add_query(self, sql: str, *args: Any, **kwargs: Any) -> tuple[Connection, Any]:
        """Send a statement, unless it is the COMMIT that dbt puts before hooks outside a transaction."""
        if _COMMIT.fullmatch(sql):
            connection = self.get_thread_connection()
            return connection, connection.handle.cursor()
        if self._catalogs is not None:
            self._catalogs.check_before(sql)
        try:
            sent: tuple[Connection, Any] = super().add_query(sql, *args, **kwargs)
        except StatementError as exc:
            if self._catalogs is not None:
                self._catalogs.check_after(exc, sql)
            raise
        return sent

    def execute(
        self, sql: str, auto_begin: bool = False, fetch: bool = False, limit: int | None = None
    ) -> Any:
        """Run a statement to its end, whether or not its rows are wanted."""
        answer = super().execute(sql, auto_begin, fetch, limit)
        handle = self.get_thread_connection().handle
        if not fetch and isinstance(handle, SessionHandle):
            handle.finish()
        if changes_settings(sql):
            _check_changed(handle)
        return answer

    def columns_of(self, sql: str) -> tuple[tuple[str, ...], str | None]:
        """Return the names of a query's columns or, if Spark is in this process, the JSON of its schema."""
        try:
            connection, cursor = self.add_query(sql, auto_begin=False)
            if isinstance(connection.handle, SessionHandle):
                return (), connection.handle.schema_json
            return tuple(str(column[0]) for column in cursor.description), None
        except Exception as exc:
            if not is_type_unreturnable(str(exc)):
                raise
        # What the server cannot return it describes.
        _, cursor = self.add_query(f"DESCRIBE QUERY {sql}", auto_begin=False)
        return tuple(str(row[0]) for row in cursor.fetchall()), None

    def reconnect(self) -> None:
        """Open this thread's connection again, after it was lost."""
        connection = self.get_thread_connection()
        self.close(connection)
        self._open_cancellable(connection)

    def _open_cancellable(self, connection: Connection) -> Connection:
        credentials: SparkEvolveCredentials = connection.credentials
        is_unverified = credentials.use_ssl and not credentials.ssl_verify
        if is_unverified and credentials.method == SparkConnectionMethod.THRIFT and not self._has_warned:
            self._has_warned = True
            warn(
                "`ssl_verify` is false in the profile: user, password and data are sent to whoever answers "
                f"at {credentials.host}:{credentials.port}, since nobody looks at the server's certificate. "
                "Name its authority's certificate in `ssl_ca_file` instead."
            )
        cached = [] if self._has_warned_of_cache else credentials.cached_catalogs
        self._has_warned_of_cache = True
        for catalog in cached:
            warn(
                f"`cache-enabled` of the catalog `{catalog}` is true in the profile: of a table "
                "that others write to, a model may read what was there when Spark read the table first. Take "
                "it out, unless nobody else writes."
            )
        if self._catalogs is not None:
            self._catalogs.check_at_start()
        try:
            return self.open(connection, self.cancellation)
        except Exception as exc:
            # dbt leaves None in the place of the handle, of which whoever asks next would say that it has no
            # attribute.
            connection.handle, connection.state = LazyHandle(_fails(exc)), ConnectionState.INIT
            raise

    @classmethod
    def open(cls, connection: Connection, cancellation: Cancellation | None = None) -> Connection:
        """Open a connection.

        Args:
            connection: the connection.
            cancellation: what cancels it.

        Raises:
            FailedToConnectError: Spark cannot be reached.
            RunCancelledError: the run has been cancelled.
        """
        if connection.state == ConnectionState.OPEN:
            return connection
        cancellation = cancellation or Cancellation()
        cancellation.check("No connection to Spark was opened")
        credentials: SparkEvolveCredentials = connection.credentials
        if credentials.method == SparkConnectionMethod.SESSION:
            connection.handle = _session_handle(credentials, connection.name or "connection", cancellation)
            connection.state = ConnectionState.OPEN
            return connection
        with INTERRUPTS.admitted():
            opened = cls.retry_connection(
                connection,
                connect=lambda: open_thrift(credentials, cancellation),
                logger=logger,
                retryable_exceptions=[Exception] if credentials.retry_all else [OSError],
                retry_limit=credentials.connect_retries,
                retry_timeout=min(credentials.connect_timeout, LONGEST_PAUSE_SECONDS),
            )
        _check_server(opened.handle, credentials)
        return opened


def _fails(exc: Exception) -> Callable[[Connection], Connection]:
    """Return what says again why a connection could not be opened, without another attempt to open it."""

    def fail(connection: Connection) -> Connection:
        raise exc

    return fail


def _session_handle(
    credentials: SparkEvolveCredentials, name: str, cancellation: Cancellation
) -> SessionHandle:
    def session(more: dict[str, str]) -> Any:
        own, *further = credentials.all_catalog_settings()
        return SESSIONS.get(
            own,
            credentials.spark_config,
            # Last, since they are set last.
            {**credentials.server_side_parameters, **more},
            credentials.base_dir,
            credentials.default_namespace,
            further,
        )

    handle = SessionHandle(session({}), name, session, cancellation)
    check_settings(handle.setting)
    return handle


# Servers, each with the settings asked for, that were found to have none that is refused.
_CHECKED: set[tuple[object, ...]] = set()


def _check_server(handle: Any, credentials: SparkEvolveCredentials) -> None:
    """Look at the settings of a server that this process has not looked at yet.

    Raises:
        SettingError: one of them is refused.
    """
    asked_for = tuple(sorted(credentials.server_side_parameters.items()))
    server = (credentials.host, credentials.port, credentials.user, asked_for)
    if server in _CHECKED:
        return
    try:
        check_settings(handle.settings().get)
    except Exception:
        handle.close()
        raise
    _CHECKED.add(server)


def _check_changed(handle: Any) -> None:
    """Look at the settings after a statement that has changed some, and take back what is refused.

    Raises:
        SettingError: one of them is refused.
    """
    value_of = handle.setting if isinstance(handle, SessionHandle) else handle.settings().get
    try:
        check_settings(value_of)
    except SettingError as exc:
        # A session goes on for other threads, and for later runs in this process.
        handle.execute(f"SET {exc.setting}={value_instead(exc.setting)}")
        raise
