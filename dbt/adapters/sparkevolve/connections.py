"""Connections to Spark: an in-process session, or a Thrift server."""

import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import Any

from dbt.adapters.contracts.connection import Connection, ConnectionState
from dbt.adapters.events.logging import AdapterLogger
from dbt.adapters.exceptions import FailedToConnectError
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
from dbt.adapters.sparkevolve.evolution.names import quote
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
        except CONNECTION_LOST_EXCEPTIONS as exc:
            raise ConnectionLostError(sql, f"{type(exc).__name__}: {exc}") from exc
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
            status = getattr(exc.args[0], "status", None) if exc.args else None
            text = getattr(status, "errorMessage", None) or str(exc)
            raise DbtRuntimeError(short_message(text)) from exc

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
            retryable_exceptions=[Exception] if credentials.retry_all else [OSError, EOFError],
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
    raise NotImplementedError
