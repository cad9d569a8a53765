"""Connections to Spark: an in-process session, or a Thrift server."""

import re
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

from dbt.adapters.contracts.connection import Connection, ConnectionState
from dbt.adapters.events.logging import AdapterLogger
from dbt.adapters.spark.connections import SparkConnectionManager, SparkConnectionMethod
from dbt_common.exceptions import DbtBaseException, DbtRuntimeError

from dbt.adapters.sparkevolve.credentials import SparkEvolveCredentials
from dbt.adapters.sparkevolve.errors import SettingError, short_message
from dbt.adapters.sparkevolve.session import SESSIONS, SessionHandle
from dbt.adapters.sparkevolve.spark_settings import changes_settings, check_settings
from dbt.adapters.sparkevolve.thrift import open_thrift, server_message

logger = AdapterLogger("SparkEvolve")

# Spark has no transactions, and would not parse it.
_COMMIT = re.compile(r"\s*(/\*.*?\*/)?\s*commit;?\s*", re.DOTALL | re.IGNORECASE)


class SparkEvolveConnectionManager(SparkConnectionManager):
    """Opens connections and translates their errors."""

    TYPE = "sparkevolve"

    @contextmanager
    def exception_handler(self, sql: str) -> Generator[None, None, None]:
        """Turn whatever a connection raises into an error that dbt shows, short."""
        try:
            yield
        except DbtBaseException:
            raise
        except Exception as exc:
            raise DbtRuntimeError(short_message(server_message(exc))) from exc

    def add_query(self, sql: str, *args: Any, **kwargs: Any) -> tuple[Connection, Any]:
        """Send a statement, unless it is the COMMIT that dbt puts before hooks outside a transaction."""
        if _COMMIT.fullmatch(sql):
            connection = self.get_thread_connection()
            return connection, connection.handle.cursor()
        sent: tuple[Connection, Any] = super().add_query(sql, *args, **kwargs)
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

    def reconnect(self) -> None:
        """Open this thread's connection anew, after it was lost."""
        connection = self.get_thread_connection()
        self.close(connection)
        self.open(connection)

    @classmethod
    def open(cls, connection: Connection) -> Connection:
        """Open a connection.

        Raises:
            FailedToConnectError: Spark cannot be reached.
        """
        if connection.state == ConnectionState.OPEN:
            return connection
        credentials: SparkEvolveCredentials = connection.credentials
        if credentials.method == SparkConnectionMethod.SESSION:
            connection.handle = _session_handle(credentials, connection.name or "connection")
            connection.state = ConnectionState.OPEN
            return connection
        opened = cls.retry_connection(
            connection,
            connect=lambda: open_thrift(credentials),
            logger=logger,
            retryable_exceptions=[Exception] if credentials.retry_all else [OSError],
            retry_limit=credentials.connect_retries,
            retry_timeout=credentials.connect_timeout,
        )
        _check_server(opened.handle, credentials)
        return opened


def _session_handle(credentials: SparkEvolveCredentials, name: str) -> SessionHandle:
    def session(more: dict[str, str]) -> Any:
        return SESSIONS.get(
            credentials.catalog_settings(),
            credentials.spark_config,
            # Last, since they are set last.
            {**credentials.server_side_parameters, **more},
            credentials.base_dir,
            credentials.schema,
        )

    handle = SessionHandle(session({}), name, session)
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
    except SettingError:
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
        handle.execute(f"SET {exc.setting}=false")
        raise
