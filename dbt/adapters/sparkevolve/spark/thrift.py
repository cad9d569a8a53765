"""A connection to a Spark Thrift server, through PyHive."""

import getpass
import threading
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from dbt.adapters.events.logging import AdapterLogger
from dbt.adapters.spark.connections import CONNECTION_LOST_EXCEPTIONS, PyhiveConnectionWrapper
from dbt_common.exceptions import DbtRuntimeError

from dbt.adapters.sparkevolve.cancellation import Cancellation, stopped
from dbt.adapters.sparkevolve.credentials import SparkEvolveCredentials
from dbt.adapters.sparkevolve.errors import ConnectionLostError, ProfileError, StatementError
from dbt.adapters.sparkevolve.messages import (
    is_commit_unknown,
    is_result_without_columns,
    server_message,
    short_message,
)
from dbt.adapters.sparkevolve.redaction import safe
from dbt.adapters.sparkevolve.spark.bindings import literal_value
from dbt.adapters.sparkevolve.spark.progress import PROGRESS
from dbt.adapters.sparkevolve.spark.sql_settings import PARTITION_OVERWRITE_MODE

if TYPE_CHECKING:
    from pyhive import hive

    from dbt.adapters.sparkevolve.spark.transport import BoundedSocket

logger = AdapterLogger("SparkEvolve")

_FIRST_POLL_SECONDS = 0.005
_POLL_GROWTH = 1.5
# What the server may still take to say that it stops, or that it closes.
LAST_WORDS_SECONDS = 5.0


class ThriftHandle(PyhiveConnectionWrapper):
    """A connection to a Spark Thrift server.

    It asks after a statement soon at first and then ever more rarely, and it never sends a statement
    twice: an INSERT whose answer was lost may have taken effect.
    """

    def __init__(
        self,
        connection: "hive.Connection",
        bounded: "BoundedSocket",
        poll_interval: float,
        query_timeout: int | None,
        cancellation: Cancellation | None = None,
    ) -> None:
        super().__init__(
            connection,
            poll_interval=poll_interval,  # type: ignore[arg-type]  # dbt-spark: whole seconds
            query_timeout=query_timeout,
        )
        self._overwrite_mode: str | None = None
        self._socket = bounded
        self._cancellation = cancellation or Cancellation()
        self._stop = threading.Event()

    def execute(self, sql: str, bindings: Sequence[Any] | None = None) -> None:
        """Run one statement; ``%s`` in it stands for a binding.

        Raises:
            StatementError: the server's answer, shortened.
            ConnectionLostError: the connection broke; the statement's fate is unknown.
            RunCancelledError: the run was cancelled.
        """
        self._cancellation.check_statement(sql)
        with self._cancellation.of_statement(self.cancel):
            self._execute(sql, bindings)

    def _execute(self, sql: str, bindings: Sequence[Any] | None) -> None:
        from pyhive import hive
        from TCLIService.ttypes import TOperationState

        values = [literal_value(value) for value in bindings] if bindings else None
        running = (
            TOperationState.INITIALIZED_STATE,
            TOperationState.PENDING_STATE,
            TOperationState.RUNNING_STATE,
        )
        self._stop.clear()
        cursor = self._cursor if self._cursor is not None else self.handle.cursor()
        ends_at = None if self.query_timeout is None else time.monotonic() + self.query_timeout
        is_begun = False
        try:
            # A server that does not even say that it is still at work has not got longer than one that does.
            # This server tells that a statement runs, and not how far it is.
            with self._until(ends_at), PROGRESS.watched(lambda: None):
                cursor.execute(sql, values, async_=True)
                is_begun = True
                wait = _FIRST_POLL_SECONDS
                status = cursor.poll()
                while status.operationState in running:
                    if ends_at is not None and time.monotonic() > ends_at:
                        self._cancel(cursor)
                        text = f"The statement ran longer than {self.query_timeout} s"
                        raise StatementError(text, sql, is_fate_unknown=True)
                    until_end = self.poll_interval if ends_at is None else ends_at - time.monotonic()
                    wait = max(0, min(wait, self.poll_interval, until_end))
                    if self._stop.wait(wait) or self._cancellation.is_cancelled:
                        self._stop.clear()
                        self._cancel(cursor)
                        if self._cancellation.is_cancelled:
                            raise stopped(sql)
                    wait = max(wait * _POLL_GROWTH, _FIRST_POLL_SECONDS)
                    status = cursor.poll()
        except CONNECTION_LOST_EXCEPTIONS as exc:  # type: ignore[misc]  # a tuple of classes
            if self._cancellation.is_cancelled:
                raise stopped(sql) from exc
            raise ConnectionLostError(sql, f"{type(exc).__name__}: {exc}") from safe(exc)
        except hive.Error as exc:
            # A server that does not know a statement any more, which it has begun, says so.
            text = server_message(exc)
            said = short_message(text) or type(exc).__name__
            is_fate_unknown = is_begun or is_commit_unknown(text)
            raise StatementError(said, sql, is_fate_unknown=is_fate_unknown) from safe(exc)
        if status.operationState != TOperationState.FINISHED_STATE:
            state = TOperationState._VALUES_TO_NAMES.get(status.operationState, "unknown")
            message = status.errorMessage or f"The statement ended in the state {state}"
            # Somebody may have stopped it, or the server its session, after its commit.
            was_stopped = status.operationState != TOperationState.ERROR_STATE
            is_fate_unknown = was_stopped or is_commit_unknown(message)
            raise StatementError(short_message(message), sql, is_fate_unknown=is_fate_unknown)

    @contextmanager
    def _until(self, ends_at: float | None) -> Generator[None, None, None]:
        """Have nothing that is said meanwhile waited for any longer; None for no such end."""
        before = self._socket.deadline
        self._socket.deadline = None if ends_at is None else ends_at + LAST_WORDS_SECONDS
        try:
            yield
        finally:
            self._socket.deadline = before

    def _cancel(self, cursor: Any) -> None:
        """Tell the server to stop a statement; one that does not answer is left to itself."""
        try:
            with self._until(time.monotonic()):
                cursor.cancel()
        except CONNECTION_LOST_EXCEPTIONS as exc:  # type: ignore[misc]  # a tuple of classes
            logger.debug(f"The server did not answer when it was told to stop: {exc}")

    def set_partition_overwrite(self, mode: str | None) -> None:
        """Let INSERT OVERWRITE replace everything (``static``), or the partitions that it has rows for.

        The server's session is this connection's own.

        Args:
            mode: ``static``, ``dynamic``, or None for what it was: RESET would go to what the server says,
                not to what the profile or a hook has set.
        """
        if self._overwrite_mode is None:
            if mode is None:
                # The connection that was told is lost, and this one has what the profile says.
                return
            self._overwrite_mode = self.settings(PARTITION_OVERWRITE_MODE)[PARTITION_OVERWRITE_MODE]
        self.execute(f"SET {PARTITION_OVERWRITE_MODE}={mode or self._overwrite_mode}")
        if mode is None:
            self._overwrite_mode = None

    def change_setting(self, name: str, value: str | None) -> str | None:
        """Give a setting a value, or with None the one of Spark; return what was set, None if nothing was."""
        before = self.settings().get(name)
        self.execute(f"RESET {name}" if value is None else f"SET {name}={value}")
        return before

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
        with self._cancellation.of_statement(self.cancel):
            return self._fetched(fetch)

    def _fetched(self, fetch: Callable[[Any], list[Any]]) -> list[Any]:
        ends_at = None if self.query_timeout is None else time.monotonic() + self.query_timeout
        try:
            with self._until(ends_at):
                return fetch(self._cursor)
        except CONNECTION_LOST_EXCEPTIONS as exc:  # type: ignore[misc]  # a tuple of classes
            self._cancellation.check("The rows of a statement were not fetched")
            raise ConnectionLostError("", f"{type(exc).__name__}: {exc}") from safe(exc)
        except TypeError as exc:
            # Spark 3.5's server sends no columns after a statement without a result: PyHive cannot read it.
            if not is_result_without_columns(exc):
                raise
            return []

    def cancel(self) -> None:
        """Have the running statement stopped, from whatever thread, by the thread that asks how it goes.

        Two calls at once on one socket would get each other's answers.
        """
        self._stop.set()

    def close(self) -> None:
        """Close the connection; one that is lost already is closed."""
        try:
            with self._until(time.monotonic()):
                super().close()
        except CONNECTION_LOST_EXCEPTIONS as exc:  # type: ignore[misc]  # a tuple of classes
            logger.debug(f"The connection was lost before it was closed: {exc}")


def open_thrift(
    credentials: SparkEvolveCredentials, cancellation: Cancellation | None = None
) -> ThriftHandle:
    """Connect to the server that a profile names.

    Raises:
        OSError: it cannot be reached.
        DbtRuntimeError: it refuses the connection.
    """
    cancellation = cancellation or Cancellation()
    try:
        connection, bounded = _connect(credentials, cancellation)
    except DbtRuntimeError:
        raise
    except Exception as exc:
        unreachable = isinstance(exc, (OSError, *CONNECTION_LOST_EXCEPTIONS))
        kind = OSError if unreachable else DbtRuntimeError
        message = short_message(server_message(exc)) or type(exc).__name__
        raise kind(f"Cannot connect to {credentials.host}:{credentials.port}: {message}") from safe(exc)
    return ThriftHandle(
        connection, bounded, credentials.poll_interval, credentials.query_timeout, cancellation
    )


def _connect(
    credentials: SparkEvolveCredentials, cancellation: Cancellation
) -> "tuple[hive.Connection, BoundedSocket]":
    from pyhive import hive

    from dbt.adapters.sparkevolve.spark.transport import open_socket

    bounded = open_socket(credentials, cancellation)
    # All that it takes to connect: the handshakes, a session, the first statement.
    bounded.deadline = time.monotonic() + credentials.connect_timeout
    # PyHive says `USE <database>` when it connects. The catalog is always there, its default namespace
    # makes the model's schema the current one, and that need not exist yet.
    connection = hive.connect(
        thrift_transport=_transport(credentials, bounded),
        username=_user_name(credentials),
        database=credentials.catalog,
        configuration=thrift_configuration(credentials),
    )
    bounded.deadline = None
    return connection, bounded


def _transport(credentials: SparkEvolveCredentials, bounded: "BoundedSocket") -> Any:
    """Return Thrift's transport over a socket: with the profile's user and password, if it asks for them.

    Raises:
        ProfileError: settings that do not fit together.
    """
    from thrift.transport.TTransport import TBufferedTransport

    auth = credentials.auth or "NONE"
    if auth == "NOSASL":
        return TBufferedTransport(bounded)
    if auth not in ("NONE", "LDAP", "CUSTOM", "KERBEROS"):
        raise ProfileError(
            "auth", f"`auth` of the profile is NONE, NOSASL, LDAP, CUSTOM or KERBEROS, not {auth!r}."
        )
    if (credentials.kerberos_service_name is not None) != (auth == "KERBEROS"):
        raise ProfileError(
            "kerberos_service_name", "`kerberos_service_name` goes with `auth: KERBEROS`, and only with that."
        )
    # With TLS a server may take a password with NONE, too, and nobody else can read it.
    if auth in ("LDAP", "CUSTOM") and credentials.password is None:
        raise ProfileError("password", f"`auth: {auth}` needs a `password`.")
    if auth in ("NONE", "KERBEROS") and credentials.password is not None and not credentials.use_ssl:
        raise ProfileError(
            "password",
            f"`password` is set, but `auth: {auth}` sends none: leave it out, or set `auth: LDAP`.",
        )
    import thrift_sasl
    from pyhive.hive import get_installed_sasl

    mechanism = "GSSAPI" if auth == "KERBEROS" else "PLAIN"
    return thrift_sasl.TSaslClientTransport(
        lambda: get_installed_sasl(
            host=credentials.host,
            sasl_auth=mechanism,
            service=credentials.kerberos_service_name,
            username=_user_name(credentials),
            # Of no matter, but it must not be empty.
            password=credentials.password or "x",
        ),
        mechanism,
        bounded,
    )


def _user_name(credentials: SparkEvolveCredentials) -> str:
    """Return the user of a session: the profile's, or this process's."""
    if credentials.user:
        return str(credentials.user)
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a container may have no name for its user
        return "dbt"


def thrift_configuration(credentials: SparkEvolveCredentials) -> dict[str, str]:
    """Return the settings with which a session is opened on the server.

    The server takes a setting for Spark only with the prefix ``set:hiveconf:``. Each session has catalogs
    of its own; with a cache in each, one would not see what another has committed, even after its
    REFRESH TABLE.
    """
    settings = {
        "spark.sql.defaultCatalog": str(credentials.catalog),
        f"spark.sql.catalog.{credentials.catalog}.default-namespace": credentials.default_namespace,
        **{f"spark.sql.catalog.{name}.cache-enabled": "false" for name in credentials.catalog_names},
        # Otherwise Spark replaces ${...} in any text, a seed's values and descriptions included.
        "spark.sql.variable.substitute": "false",
        **credentials.server_side_parameters,
    }
    return {f"set:hiveconf:{name}": value for name, value in settings.items()}
