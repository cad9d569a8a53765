"""A connection to a Spark Thrift server, through PyHive."""

import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from dbt.adapters.events.logging import AdapterLogger
from dbt.adapters.spark.connections import (
    CONNECTION_LOST_EXCEPTIONS,
    PyhiveConnectionWrapper,
    build_ssl_transport,
)
from dbt_common.exceptions import DbtRuntimeError

from dbt.adapters.sparkevolve.credentials import SparkEvolveCredentials
from dbt.adapters.sparkevolve.errors import ConnectionLostError, StatementError, short_message
from dbt.adapters.sparkevolve.session import literal_value
from dbt.adapters.sparkevolve.spark_settings import PARTITION_OVERWRITE_MODE

if TYPE_CHECKING:
    from pyhive import hive

logger = AdapterLogger("SparkEvolve")

_FIRST_POLL_SECONDS = 0.005
_POLL_GROWTH = 1.5


class ThriftHandle(PyhiveConnectionWrapper):
    """A connection to a Spark Thrift server.

    It asks after a statement soon at first and then ever more rarely, and it never sends a statement
    twice: an INSERT whose answer was lost may have taken effect.
    """

    def __init__(
        self,
        connect: Callable[[], "hive.Connection"],
        poll_interval: float,
        query_timeout: int | None,
    ) -> None:
        super().__init__(
            connect(),
            poll_interval=poll_interval,  # type: ignore[arg-type]  # dbt-spark: whole seconds
            query_timeout=query_timeout,
        )
        self._connect = connect
        self._overwrite_mode: str | None = None

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

    def set_partition_overwrite(self, mode: str | None) -> None:
        """Let INSERT OVERWRITE replace everything (``static``), or the partitions that it has rows for.

        The server's session is this connection's own.

        Args:
            mode: ``static``, ``dynamic``, or None for what it was: RESET would go to what the server says,
                not to what the profile or a hook has set.
        """
        if mode is not None and self._overwrite_mode is None:
            self._overwrite_mode = self.settings(PARTITION_OVERWRITE_MODE)[PARTITION_OVERWRITE_MODE]
        self.execute(f"SET {PARTITION_OVERWRITE_MODE}={mode or self._overwrite_mode}")
        if mode is None:
            self._overwrite_mode = None

    def settings(self, name: str = "") -> dict[str, str]:
        """Return the settings of this connection that are not Spark's own, or the value of one of them."""
        self.cursor()
        self.execute(f"SET {name}")
        return {str(row[0]): str(row[1]) for row in self.fetchall()}

    def fetchall(self) -> list[Any]:
        """Return all remaining rows; none after a statement without a result."""
        return self._fetch(lambda cursor: cursor.fetchall())

    def fetchmany(self, size: int) -> list[Any]:
        """Return at most ``size`` rows of the result."""
        return self._fetch(lambda cursor: cursor.fetchmany(size))

    def fetchone(self) -> Any:
        """Return the next row, or None."""
        rows = self.fetchmany(1)
        return rows[0] if rows else None

    def _fetch(self, fetch: Callable[[Any], list[Any]]) -> list[Any]:
        try:
            return fetch(self._cursor)
        except TypeError as exc:
            # Spark 3.5's server sends no columns after a statement without a result: PyHive cannot read it.
            if "'NoneType' object is not iterable" not in str(exc):
                raise
            return []

    def cancel(self) -> None:
        """Stop the running statement, from whatever thread.

        The question how it goes is under way on this connection, so the order to stop needs one of its own:
        two calls at once on one socket get each other's answers.
        """
        from TCLIService.ttypes import TCancelOperationReq

        operation = getattr(self._cursor, "_operationHandle", None)
        if operation is None:
            return
        other = self._connect()
        try:
            other.client.CancelOperation(TCancelOperationReq(operationHandle=operation))
        finally:
            other.close()

    def close(self) -> None:
        """Close the connection; one that is lost already is closed."""
        try:
            super().close()
        except CONNECTION_LOST_EXCEPTIONS as exc:  # type: ignore[misc]  # a tuple of classes
            logger.debug(f"The connection was lost before it was closed: {exc}")


def open_thrift(credentials: SparkEvolveCredentials) -> ThriftHandle:
    """Connect to the server that a profile names.

    Raises:
        OSError: it cannot be reached.
        DbtRuntimeError: it refuses the connection.
    """
    try:
        return ThriftHandle(
            lambda: _connect(credentials), credentials.poll_interval, credentials.query_timeout
        )
    except Exception as exc:
        unreachable = isinstance(exc, (OSError, *CONNECTION_LOST_EXCEPTIONS))
        kind = OSError if unreachable else DbtRuntimeError
        message = short_message(server_message(exc))
        raise kind(f"Cannot connect to {credentials.host}:{credentials.port}: {message}") from exc


def _connect(credentials: SparkEvolveCredentials) -> "hive.Connection":
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
    # PyHive says `USE <database>` when it connects. The catalog is always there, its default namespace
    # makes the model's schema the current one, and that need not exist yet.
    return hive.connect(
        **reach, database=credentials.catalog, configuration=thrift_configuration(credentials)
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
        # Otherwise Spark replaces ${...} in any text, a seed's values and descriptions included.
        "spark.sql.variable.substitute": "false",
        **credentials.server_side_parameters,
    }
    return {f"set:hiveconf:{name}": value for name, value in settings.items()}


def server_message(exc: Exception) -> str:
    """Return the server's message in an exception of PyHive, or the exception's own text."""
    status = getattr(exc.args[0], "status", None) if exc.args else None
    return str(getattr(status, "errorMessage", None) or exc)
