"""Connections to Spark: an in-process session, or a Thrift server."""

import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import Any

from dbt.adapters.contracts.connection import Connection, ConnectionState
from dbt.adapters.events.logging import AdapterLogger
from dbt.adapters.spark.connections import (
    CONNECTION_LOST_EXCEPTIONS,
    PyhiveConnectionWrapper,
    SparkConnectionManager,
    SparkConnectionMethod,
    build_ssl_transport,
)
from dbt_common.exceptions import DbtBaseException, DbtRuntimeError

from dbt.adapters.sparkevolve.credentials import SparkEvolveCredentials
from dbt.adapters.sparkevolve.errors import ConnectionLostError, StatementError, short_message
from dbt.adapters.sparkevolve.session import SESSIONS, SessionHandle, literal_value

logger = AdapterLogger("SparkEvolve")

_FIRST_POLL_SECONDS = 0.005
_POLL_GROWTH = 1.5


class ThriftHandle(PyhiveConnectionWrapper):
    """A connection to a Spark Thrift server.

    It asks after a statement soon at first and then ever more rarely, and it never sends a statement
    twice: an INSERT whose answer was lost may have taken effect.
    """

    def execute(self, sql: str, bindings: Sequence[Any] | None = None) -> None:
        """Run one statement; ``%s`` in it stands for a binding.

        Raises:
            StatementError: the server's answer, shortened.
            ConnectionLostError: the connection broke; the statement's fate is unknown.
        """
        from pyhive import hive
        from TCLIService.ttypes import TOperationState

        values = [literal_value(value) for value in bindings] if bindings else None
        running = (
            TOperationState.INITIALIZED_STATE,
            TOperationState.PENDING_STATE,
            TOperationState.RUNNING_STATE,
        )
        cursor = self._cursor if self._cursor is not None else self.handle.cursor()
        started = time.monotonic()
        try:
            cursor.execute(sql, values, async_=True)
            wait = _FIRST_POLL_SECONDS
            status = cursor.poll()
            while status.operationState in running:
                if self.query_timeout is not None and time.monotonic() - started > self.query_timeout:
                    cursor.cancel()
                    raise StatementError(f"The statement ran longer than {self.query_timeout} s", sql)
                time.sleep(min(wait, self.poll_interval))
                wait *= _POLL_GROWTH
                status = cursor.poll()
        except CONNECTION_LOST_EXCEPTIONS as exc:  # type: ignore[misc]  # a tuple of classes
            raise ConnectionLostError(sql, f"{type(exc).__name__}: {exc}") from exc
        except hive.Error as exc:
            raise StatementError(short_message(server_message(exc)), sql) from exc
        if status.operationState != TOperationState.FINISHED_STATE:
            state = TOperationState._VALUES_TO_NAMES.get(status.operationState, "unknown")
            message = status.errorMessage or f"The statement ended in the state {state}"
            raise StatementError(short_message(message), sql)

    def fetchmany(self, size: int) -> list[Any]:
        """Return at most ``size`` rows of the result."""
        rows: list[Any] = self._cursor.fetchmany(size) if self._cursor is not None else []
        return rows


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
        return cls.retry_connection(
            connection,
            connect=lambda: _thrift_handle(credentials),
            logger=logger,
            retryable_exceptions=[Exception] if credentials.retry_all else [OSError],
            retry_limit=credentials.connect_retries,
            retry_timeout=credentials.connect_timeout,
        )


def _session_handle(credentials: SparkEvolveCredentials, name: str) -> SessionHandle:
    session = SESSIONS.get(
        credentials.catalog_settings(),
        credentials.spark_config,
        credentials.server_side_parameters,
        credentials.base_dir,
    )
    return SessionHandle(session, name)


def _thrift_handle(credentials: SparkEvolveCredentials) -> ThriftHandle:
    from pyhive import hive

    reach: dict[str, Any] = {
        "host": credentials.host,
        "port": credentials.port,
        "username": credentials.user,
        "auth": credentials.auth,
        "kerberos_service_name": credentials.kerberos_service_name,
        "password": credentials.password,
    }
    if credentials.use_ssl:
        reach = {"thrift_transport": build_ssl_transport(**reach)}
    try:
        # PyHive says `USE <database>` when it connects. The catalog is always there, its default namespace
        # makes the model's schema the current one, and that need not exist yet.
        connection = hive.connect(
            **reach, database=credentials.catalog, configuration=thrift_configuration(credentials)
        )
    except Exception as exc:
        message = short_message(server_message(exc))
        kind = (
            OSError if isinstance(exc, (OSError, EOFError, *CONNECTION_LOST_EXCEPTIONS)) else DbtRuntimeError
        )
        raise kind(f"Cannot connect to {credentials.host}:{credentials.port}: {message}") from exc
    return ThriftHandle(
        connection,
        poll_interval=credentials.poll_interval,  # type: ignore[arg-type]  # dbt-spark: whole seconds
        query_timeout=credentials.query_timeout,
    )


def thrift_configuration(credentials: SparkEvolveCredentials) -> dict[str, str]:
    """Return the settings with which a session is opened on the server.

    The server takes a setting for Spark only with the prefix ``set:hiveconf:``. Each session has catalogs
    of its own; with a cache in each, one would not see what another has committed, even after its
    REFRESH TABLE.
    """
    catalog = f"spark.sql.catalog.{credentials.catalog}"
    settings = {
        "spark.sql.defaultCatalog": str(credentials.catalog),
        f"{catalog}.default-namespace": str(credentials.schema),
        f"{catalog}.cache-enabled": "false",
        **credentials.server_side_parameters,
    }
    return {f"set:hiveconf:{name}": value for name, value in settings.items()}


def server_message(exc: Exception) -> str:
    """Return the server's message in an exception of PyHive, or the exception's own text."""
    status = getattr(exc.args[0], "status", None) if exc.args else None
    return str(getattr(status, "errorMessage", None) or exc)
