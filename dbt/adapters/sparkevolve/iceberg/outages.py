"""When a catalog is away: what tells that, where it should have been, and how long it is waited for."""

import re
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlsplit

from dbt.adapters.events.logging import AdapterLogger

from dbt.adapters.sparkevolve.cancellation import Cancellation
from dbt.adapters.sparkevolve.errors import CatalogUnavailableError, answer_of

if TYPE_CHECKING:
    from dbt.adapters.sparkevolve.iceberg.catalog_settings import CatalogSettings

logger = AdapterLogger("SparkEvolve")
Result = TypeVar("Result")

_LONGEST_PAUSE_SECONDS = 2.0
_DEFAULT_PORTS = {"postgresql": 5432, "http": 80, "https": 443, "thrift": 9083}
# Answers of a gateway, or of a server that is starting, stopping or asked too often. Others are answers.
_HTTP_AWAY = (429, 502, 503, 504)
# What libraries say, each in its own words; the first that fits tells most.
_REASONS = {
    "its name cannot be resolved": re.compile(
        "could not translate host name|name resolution|Name or service not known|getaddrinfo failed"
        "|No address associated|nodename nor servname|failed to resolve|UnknownHostException",
        re.IGNORECASE,
    ),
    "it refuses connections": re.compile("refused|Could not connect to any of", re.IGNORECASE),
    "it is starting or stopping": re.compile(
        "is starting up|is shutting down|terminating connection|not yet accepting", re.IGNORECASE
    ),
    "it does not answer": re.compile("timed? ?out|timeout expired|did not answer", re.IGNORECASE),
    "there is no way to it": re.compile("no route to host|unreachable", re.IGNORECASE),
    "it closed the connection": re.compile(
        "closed the connection|connection .*closed|Connection reset|Connection aborted|read 0 bytes"
        "|broken pipe|SSL SYSCALL error|Bad file descriptor|could not receive data|could not send data",
        re.IGNORECASE,
    ),
}
_FILE = re.compile("unable to open database file|disk I/O error|readonly database|not a database")
# What Spark says when its Java library cannot reach the catalog.
_SPARK = re.compile(
    r"UncheckedSQLException|HttpHostConnectException|ConnectException|Connect to .* failed"
    r"|UnknownHostException|Connection (?:to \S+ )?refused|SocketTimeoutException|PSQLException"
    r"|MetaException|TTransportException"
    r"|Cannot (?:connect|communicate)|Failed to connect|RuntimeMetaException|SQLITE_CANTOPEN"
)


class Watch:
    """How a catalog is asked: no question waits for ever, and an outage during a run is waited out.

    Before the catalog has answered once, nothing is waited out: more likely, the profile names another.
    """

    def __init__(self, settings: "CatalogSettings", seconds: float, cancellation: Cancellation) -> None:
        """Watch a catalog.

        Args:
            settings: the catalog's.
            seconds: how long it may be away, or silent.
            cancellation: what ends all waiting.
        """
        self._name = settings.name
        self._properties = settings.pyiceberg
        self._is_file = settings.sqlite_file is not None
        self._seconds = seconds
        self._cancellation = cancellation
        self.has_answered = False

    def ask(self, question: Callable[[], Result], undone: str = "", *, is_waited_out: bool = True) -> Result:
        """Return the answer to a question that changes nothing.

        Args:
            question: asks it.
            undone: what is not done if there is no answer, as a sentence.
            is_waited_out: whether to ask again until the time is over.

        Raises:
            CatalogUnavailableError: the catalog is away.
        """
        started = time.monotonic()
        number = 0
        while True:
            try:
                answer = self.limited(question)
            except CatalogUnavailableError:
                raise
            except Exception as exc:
                reason = outage(exc)
                if reason is None:
                    self.has_answered = True
                    raise
                waited = time.monotonic() - started
                waits = is_waited_out and self.has_answered and not self._is_file
                if not waits or waited >= self._seconds or self._cancellation.is_cancelled:
                    # Once is enough: what is left of a run does not wait for it again.
                    self.has_answered = False
                    was_waited_for = number > 0 or isinstance(exc, TimeoutError)
                    raise self.error(reason, undone, waited if was_waited_for else 0) from exc
                if number == 0:
                    logger.info(
                        f"The catalog `{self._name}` is away ({reason}); waiting for it, at most "
                        f"{self._seconds:g} s"
                    )
                self._cancellation.pause(min(0.1 * 2**number, _LONGEST_PAUSE_SECONDS))
                number += 1
            else:
                self.has_answered = True
                return answer

    def error(self, reason: str, undone: str = "", waited: float = 0) -> CatalogUnavailableError:
        """Return the error that says that the catalog is away."""
        return CatalogUnavailableError(self._name, address(self._properties), reason, undone, waited)

    def limited(self, call: Callable[[], Result]) -> Result:
        """Return what a call of PyIceberg's returns, whose libraries would wait for a silent server for ever.

        Raises:
            TimeoutError: the time is over. The call may still have an effect.
        """
        if self._is_file:
            return call()  # SQLite limits its waiting itself
        answers: list[Result] = []
        failures: list[BaseException] = []

        def run() -> None:
            try:
                answers.append(call())
            except BaseException as exc:
                failures.append(exc)

        thread = threading.Thread(
            target=run, daemon=True, name=f"{threading.current_thread().name} (catalog)"
        )
        thread.start()
        thread.join(self._seconds)
        if failures:
            raise failures[0]
        if not answers:
            raise TimeoutError(f"The catalog did not answer within {self._seconds:g} s")
        return answers[0]


def outage(exc: BaseException) -> str | None:
    """Return why a catalog could not be reached, in a few words; None if it was reached."""
    for part in _chain(exc):
        answer = getattr(part, "response", None)
        status = getattr(answer, "status_code", None)
        if isinstance(status, int):
            return f"it answers with HTTP {status}" if status in _HTTP_AWAY else None
        if not _may_be_outage(part):
            continue
        text = str(part)
        if _FILE.search(text):
            return "its file cannot be opened"
        for reason, pattern in _REASONS.items():
            if pattern.search(text):
                return reason
        if isinstance(part, ConnectionRefusedError):
            return "it refuses connections"
        if isinstance(part, TimeoutError):
            return "it does not answer"
        if isinstance(part, socket.gaierror):
            return "its name cannot be resolved"
        if isinstance(part, ConnectionError):
            return "it closed the connection"
    return None


def refusal(exc: BaseException) -> str | None:
    """Return in short why a catalog that answers, or its file, lets nobody in; None if it is not that."""
    for part in _chain(exc):
        names = _class_names(part)
        if "sqlalchemy.DBAPIError" in names:
            said = str(getattr(part, "orig", part)).strip().splitlines()[0]
            return f"it refuses: {said.rpartition('FATAL:')[2].strip()}"
        if "pyiceberg.RESTError" in names:
            return f"it refuses: {answer_of(part)}"
        if "sqlite3.Error" in names or (isinstance(part, OSError) and part.filename is not None):
            return f"its file cannot be opened ({part})"
    return None


def may_be_outage_in_spark(message: str) -> bool:
    """Tell whether a statement may have failed because Spark could not reach the catalog."""
    return _SPARK.search(message) is not None


def _may_be_outage(exc: BaseException) -> bool:
    if isinstance(exc, ConnectionError | TimeoutError | socket.gaierror):
        return True
    # By name: which of these libraries is there depends on the catalog.
    return bool(
        _class_names(exc)
        & {
            "requests.ConnectionError",
            "requests.Timeout",
            "urllib3.HTTPError",
            "sqlalchemy.OperationalError",
            "sqlalchemy.InterfaceError",
            "psycopg2.OperationalError",
            "thrift.TTransportException",
            "botocore.HTTPClientError",
        }
    )


def _class_names(exc: BaseException) -> set[str]:
    """Return the names of an exception's classes, each with the package that it is from."""
    return {f"{kind.__module__.partition('.')[0]}.{kind.__name__}" for kind in type(exc).__mro__}


def _chain(exc: BaseException) -> Iterator[BaseException]:
    seen: set[int] = set()
    waiting: list[BaseException | None] = [exc]
    while waiting:
        part = waiting.pop(0)
        if part is None or id(part) in seen:
            continue
        seen.add(id(part))
        yield part
        waiting += [part.__cause__, part.__context__ if not part.__suppress_context__ else None]


def address(properties: Mapping[str, Any]) -> str:
    """Return where a catalog is, without user and password: ``host:port``, or the path of a file."""
    uri = str(properties.get("uri", ""))
    if not uri:
        region = properties.get("glue.region") or properties.get("client.region")
        return f"AWS{f' in {region}' if region else ''}" if properties.get("type") == "glue" else "no address"
    try:
        parts = urlsplit(uri)
        port = parts.port
    except ValueError:
        return "an address that cannot be read"
    scheme = parts.scheme.partition("+")[0]
    if scheme == "sqlite":
        return parts.path.removeprefix("/") if parts.path.startswith("//") else parts.path
    port = port or _DEFAULT_PORTS.get(scheme)
    return f"{parts.hostname or 'localhost'}{f':{port}' if port else ''}"
