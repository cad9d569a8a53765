"""The way to a Thrift server: nothing waits for ever on it, and TLS proves who the server is."""

import socket
import ssl
import time
from pathlib import Path

from thrift.transport.TTransport import TTransportBase, TTransportException

from dbt.adapters.sparkevolve.cancellation import Cancellation
from dbt.adapters.sparkevolve.credentials import SparkEvolveCredentials
from dbt.adapters.sparkevolve.errors import ProfileError, UntrustedServerError

DEFAULT_PORT = 10000
# How often a wait for an answer looks whether the run was cancelled, and how long it goes on if it was.
_LOOK_SECONDS = 0.5
CANCELLED_SECONDS = 5.0
# A host that is gone is noticed after about two minutes, and a firewall does not forget the connection.
_KEEP_ALIVE = {"TCP_KEEPIDLE": 60, "TCP_KEEPINTVL": 10, "TCP_KEEPCNT": 6}


class BoundedSocket(TTransportBase):  # type: ignore[misc]  # thrift has no types
    """A TCP connection, with TLS or without, on which each call is answered in time or is the last one.

    Attributes:
        answer_seconds: how long the server may be silent after a call.
        deadline: the end of all waiting, by ``time.monotonic()``; None if there is no such end.
    """

    def __init__(
        self,
        host: str,
        port: int,
        context: ssl.SSLContext | None,
        answer_seconds: float,
        cancellation: Cancellation,
    ) -> None:
        self.answer_seconds = answer_seconds
        self.deadline: float | None = None
        self._host = host
        self._port = port
        self._context = context
        self._cancellation = cancellation
        self._cancelled_at: float | None = None
        self._called_at = 0.0
        self._socket: socket.socket | None = None

    def isOpen(self) -> bool:  # thrift's name
        """Tell whether it was opened, and neither closed nor given up."""
        return self._socket is not None

    def open(self) -> None:
        """Connect; with TLS also see to it that the server is the one that the profile names.

        Raises:
            OSError: it cannot be reached.
            UntrustedServerError: it is another, or cannot prove that it is not. Nothing was sent to it.
        """
        self._called_at = time.monotonic()
        problem: OSError | None = None
        for family, kind, protocol, _, address in socket.getaddrinfo(
            self._host, self._port, type=socket.SOCK_STREAM
        ):
            connection = socket.socket(family, kind, protocol)
            try:
                connection.settimeout(self._left())
                connection.connect(address)
                self._socket = self._secured(connection)
                return
            except UntrustedServerError:
                connection.close()
                raise
            except OSError as exc:
                connection.close()
                problem = exc
        raise problem or OSError(f"{self._host} has no address")

    def _secured(self, connection: socket.socket) -> socket.socket:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for name, value in _KEEP_ALIVE.items():
            if hasattr(socket, name):  # not on every system
                connection.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
        if self._context is None:
            return connection
        connection.settimeout(self._left())
        try:
            return self._context.wrap_socket(connection, server_hostname=self._host)
        except ssl.SSLCertVerificationError as exc:
            reason = exc.verify_message or str(exc)
            raise UntrustedServerError(self._host, self._port, reason) from exc

    def _left(self) -> float:
        """Return for how many seconds an answer may still be waited for."""
        end = self._called_at + self.answer_seconds
        if self.deadline is not None:
            end = min(end, self.deadline)
        if self._cancellation.is_cancelled:
            self._cancelled_at = self._cancelled_at or time.monotonic()
            end = min(end, max(self._cancelled_at, self._called_at) + CANCELLED_SECONDS)
        left = end - time.monotonic()
        if left <= 0:
            raise TimeoutError(f"{self._host}:{self._port} did not answer in time")
        return left

    def read(self, size: int) -> bytes:
        """Return what has come of an answer, at least one byte."""
        if self._socket is None:
            raise TTransportException(TTransportException.NOT_OPEN, "The connection is closed")
        while True:
            try:
                self._socket.settimeout(min(self._left(), _LOOK_SECONDS))
            except TimeoutError as exc:
                raise self._given_up(exc, TTransportException.TIMED_OUT) from exc
            try:
                found = self._socket.recv(size)
            except TimeoutError:
                continue
            except OSError as exc:
                raise self._given_up(exc, TTransportException.UNKNOWN) from exc
            if not found:
                end = EOFError("The server closed the connection")
                raise self._given_up(end, TTransportException.END_OF_FILE)
            # A long answer takes its time: what counts is silence.
            self._called_at = time.monotonic()
            return found

    def write(self, data: bytes) -> None:
        """Send a call."""
        if self._socket is None:
            raise TTransportException(TTransportException.NOT_OPEN, "The connection is closed")
        self._called_at = time.monotonic()
        try:
            self._socket.settimeout(self._left())
            self._socket.sendall(data)
        except TimeoutError as exc:
            raise self._given_up(exc, TTransportException.TIMED_OUT) from exc
        except OSError as exc:
            raise self._given_up(exc, TTransportException.UNKNOWN) from exc

    def _given_up(self, exc: Exception, kind: int) -> Exception:
        """Close the connection, since the next answer on it might be to this call."""
        self.close()
        error: Exception = TTransportException(kind, str(exc), inner=exc)
        return error

    def flush(self) -> None:
        """Do nothing: what is written is sent."""

    def close(self) -> None:
        """Close the connection, without a word to the server."""
        connection, self._socket = self._socket, None
        if connection is not None:
            connection.close()


def open_socket(credentials: SparkEvolveCredentials, cancellation: Cancellation) -> BoundedSocket:
    """Return the socket to a profile's server, not connected yet.

    Raises:
        ProfileError: ``ssl_ca_file`` cannot be used.
    """
    return BoundedSocket(
        str(credentials.host),
        credentials.port or DEFAULT_PORT,
        tls_context(credentials) if credentials.use_ssl else None,
        credentials.response_timeout,
        cancellation,
    )


def tls_context(credentials: SparkEvolveCredentials) -> ssl.SSLContext:
    """Return how the server has to prove who it is.

    Raises:
        ProfileError: ``ssl_ca_file`` cannot be used.
    """
    given = credentials.ssl_ca_file
    try:
        context = ssl.create_default_context(cafile=str(Path(given).expanduser()) if given else None)
    except OSError as exc:
        raise ProfileError(
            "ssl_ca_file",
            f"`ssl_ca_file` of the profile is {given!r}, and no certificates can be read from it ({exc}). It "
            "names a file in PEM format with the certificate of the authority that the server's is from.",
        ) from exc
    if not credentials.ssl_verify:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context
