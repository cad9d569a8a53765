"""A Thrift server that is silent, refuses, or is not the one that it should be."""

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing import get_context
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from dbt.adapters.contracts.connection import Connection
from dbt.adapters.exceptions import FailedToConnectError

from dbt.adapters.sparkevolve.cancellation import Cancellation
from dbt.adapters.sparkevolve.credentials import SparkEvolveCredentials
from dbt.adapters.sparkevolve.errors import (
    ConnectionLostError,
    ProfileError,
    RunCancelledError,
    StatementError,
    UntrustedServerError,
    may_have_taken_effect,
)
from dbt.adapters.sparkevolve.spark import thrift, transport
from dbt.adapters.sparkevolve.spark.connections import SparkEvolveConnectionManager
from dbt.adapters.sparkevolve.spark.thrift import ThriftHandle, open_thrift
from tests.unit.thrift_fake import HOST, FakeServer, make_certificate, server_tls

PASSWORD = "not-for-others"


@pytest.fixture(autouse=True)
def _last_words_are_short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(thrift, "LAST_WORDS_SECONDS", 0.3)
    monkeypatch.setattr(transport, "CANCELLED_SECONDS", 0.5)


CATALOG = {"type": "rest", "uri": "http://127.0.0.1:1"}


def profile(port: int, **given: Any) -> SparkEvolveCredentials:
    output = {"method": "thrift", "host": HOST, "port": port, "schema": "s", "catalog": "lake", "user": "me"}
    return SparkEvolveCredentials.from_dict(
        {**output, "auth": "NOSASL", "catalog_properties": CATALOG, **given}
    )


@contextmanager
def within(seconds: float) -> Iterator[None]:
    started = time.monotonic()
    yield
    assert time.monotonic() - started < seconds


@contextmanager
def listener() -> Iterator[tuple[int, list[bytes]]]:
    """A port that accepts and never answers, and what it has received."""
    received: list[bytes] = []
    server = socket.create_server((HOST, 0))

    def accept() -> None:
        while True:
            try:
                client, _ = server.accept()
            except OSError:
                return
            threading.Thread(target=keep, args=(client,), daemon=True).start()

    def keep(client: socket.socket) -> None:
        while found := client.recv(1 << 16):
            received.append(found)

    threading.Thread(target=accept, daemon=True).start()
    yield server.getsockname()[1], received
    server.close()


def closed_port() -> int:
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        return int(probe.getsockname()[1])


# Silence


@pytest.mark.parametrize("auth", [{}, {"auth": "NONE"}, {"auth": "LDAP", "password": PASSWORD}])
@pytest.mark.parametrize("use_ssl", [False, True])
def test_a_server_that_accepts_and_says_nothing(auth: dict[str, str], use_ssl: bool) -> None:
    with (
        listener() as (port, received),
        within(4),
        pytest.raises(OSError, match=f"Cannot connect to {HOST}:{port}: .*(answer|time)") as error,
    ):
        open_thrift(profile(port, connect_timeout=0.5, use_ssl=use_ssl, **auth))
    assert PASSWORD not in str(error.value)
    if use_ssl:
        assert not any(PASSWORD.encode() in part for part in received)


@pytest.mark.parametrize("call", ["OpenSession", "use"])
def test_a_server_that_falls_silent_while_a_session_is_opened(call: str) -> None:
    with FakeServer(call) as server, within(4), pytest.raises(OSError, match="did not answer in time"):
        open_thrift(profile(server.port, connect_timeout=0.5))


@pytest.fixture
def connected() -> Iterator[Callable[..., tuple[FakeServer, ThriftHandle, Cancellation]]]:
    """Connect to a server of its own that then falls silent at a call."""
    servers: list[FakeServer] = []

    def connect(silent_at: str = "", **given: Any) -> tuple[FakeServer, ThriftHandle, Cancellation]:
        server = FakeServer()
        servers.append(server)
        cancellation = Cancellation()
        handle = open_thrift(profile(server.port, **given), cancellation).cursor()
        server.silent_at = silent_at
        return server, handle, cancellation

    yield connect
    for server in servers:
        server.__exit__(None, None, None)


Connected = Callable[..., tuple[FakeServer, ThriftHandle, Cancellation]]


@pytest.mark.parametrize("how", [{"response_timeout": 0.5}, {"query_timeout": 1}])
@pytest.mark.parametrize("call", ["ExecuteStatement", "GetOperationStatus"])
def test_a_server_that_falls_silent_in_a_statement(
    connected: Connected, call: str, how: dict[str, float]
) -> None:
    _, handle, _ = connected(call, **how)
    with within(4):
        with pytest.raises(ConnectionLostError, match="did not answer in time") as error:
            handle.execute("select 1")
        handle.close()
    assert error.value.statement == "select 1"


def test_a_server_that_falls_silent_while_rows_are_fetched(connected: Connected) -> None:
    _, handle, _ = connected("FetchResults", response_timeout=0.5)
    handle.execute("select 1")
    with within(4):
        with pytest.raises(ConnectionLostError, match="did not answer in time"):
            handle.fetchall()
        handle.close()


@pytest.mark.parametrize("call", ["CloseOperation", "CloseSession"])
def test_a_server_that_falls_silent_when_a_connection_is_closed(connected: Connected, call: str) -> None:
    _, handle, _ = connected(call)
    handle.execute("select 1")
    with within(4):
        handle.close()


def test_a_long_statement_of_a_live_server_is_waited_for(connected: Connected) -> None:
    server, handle, _ = connected(response_timeout=0.4)
    threading.Timer(1.5, lambda: setattr(server, "endless", "nothing")).start()
    started = time.monotonic()
    handle.execute("select endless")
    assert time.monotonic() - started >= 1.5


def test_a_statement_that_is_too_long_is_cancelled(connected: Connected) -> None:
    server, handle, _ = connected(query_timeout=1)
    with within(4), pytest.raises(StatementError, match="The statement ran longer than 1 s") as raised:
        handle.execute("select endless")
    assert may_have_taken_effect(raised.value)
    assert server.calls[-1] == "CancelOperation"


def test_a_statement_that_somebody_else_has_stopped_may_have_committed(connected: Connected) -> None:
    server, handle, _ = connected()
    threading.Timer(0.3, lambda: server.CancelOperation(None)).start()
    with within(4), pytest.raises(StatementError, match="ended in the state CANCELED_STATE") as raised:
        handle.execute("select endless")
    assert may_have_taken_effect(raised.value)


def test_a_silent_server_is_not_waited_for_when_a_long_statement_is_cancelled(connected: Connected) -> None:
    _, handle, _ = connected("CancelOperation", query_timeout=1)
    with within(4), pytest.raises(StatementError, match="The statement ran longer than 1 s"):
        handle.execute("select endless")


# Cancellation


def test_a_statement_is_stopped_and_no_other_sent(connected: Connected) -> None:
    server, handle, cancellation = connected()

    def cancel() -> None:
        cancellation.cancel()
        handle.cancel()

    threading.Timer(0.5, cancel).start()
    with within(4), pytest.raises(RunCancelledError, match="stopped while it ran: insert endless") as ran:
        handle.execute("insert endless")
    assert server.calls[-1] == "CancelOperation"
    before = list(server.calls)
    with pytest.raises(RunCancelledError, match="not sent: insert again") as unsent:
        handle.execute("insert again")
    assert server.calls == before
    assert [may_have_taken_effect(one.value) for one in (ran, unsent)] == [True, False]


@pytest.mark.parametrize("call", ["ExecuteStatement", "GetOperationStatus", "CancelOperation"])
def test_a_silent_server_does_not_keep_a_cancelled_run(connected: Connected, call: str) -> None:
    _, handle, cancellation = connected(call)

    def cancel() -> None:
        cancellation.cancel()
        handle.cancel()

    threading.Timer(0.3, cancel).start()
    with within(5), pytest.raises(RunCancelledError):
        handle.execute("select endless")


# Refusal


@pytest.mark.parametrize("use_ssl", [False, True])
def test_a_refused_port_is_tried_again(monkeypatch: pytest.MonkeyPatch, use_ssl: bool) -> None:
    monkeypatch.setattr("dbt.adapters.sparkevolve.spark.connections.LONGEST_PAUSE_SECONDS", 0)
    opened: list[int] = []
    real = transport.BoundedSocket.open

    def count(self: transport.BoundedSocket) -> None:
        opened.append(1)
        real(self)

    monkeypatch.setattr(transport.BoundedSocket, "open", count)
    credentials = profile(closed_port(), use_ssl=use_ssl, connect_retries=2)
    connection = Connection("sparkevolve", "c", credentials)  # type: ignore[arg-type]
    with pytest.raises(FailedToConnectError, match="Connection refused"):
        SparkEvolveConnectionManager.open(connection)
    assert len(opened) == 3


def test_each_later_use_says_why_there_is_no_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not that None has no attribute; and without another attempt, unless one is asked for."""
    opened: list[int] = []
    real = transport.BoundedSocket.open

    def count(self: transport.BoundedSocket) -> None:
        opened.append(1)
        real(self)

    monkeypatch.setattr(transport.BoundedSocket, "open", count)
    port = closed_port()
    profile_ = SimpleNamespace(credentials=profile(port, connect_retries=0), query_comment=None)
    manager = SparkEvolveConnectionManager(profile_, get_context("spawn"))
    connection = manager.set_connection_name("first")
    for _ in range(3):
        with pytest.raises(FailedToConnectError, match=rf"Cannot connect to {HOST}:{port}: .*refused"):
            manager.execute("select 1")
    assert len(opened) == 1
    assert connection.state == "init"
    with pytest.raises(FailedToConnectError):
        manager.reconnect()
    manager.release()
    manager.set_connection_name("second")
    with pytest.raises(FailedToConnectError):
        manager.execute("select 1")
    assert len(opened) == 3


# Who the server is


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Certificates for this host, and for another."""
    folder = tmp_path_factory.mktemp("tls")
    return {
        "right": make_certificate(folder, "right", f"IP:{HOST}", "DNS:localhost"),
        "other": make_certificate(folder, "other", "DNS:warehouse.example"),
    }


@pytest.mark.parametrize("host", [HOST, "localhost"])
def test_a_server_with_the_right_certificate(certificates: dict[str, Path], host: str) -> None:
    trusted = {"use_ssl": True, "ssl_ca_file": str(certificates["right"])}
    with FakeServer(tls=server_tls(certificates["right"])) as server:
        handle = open_thrift(profile(server.port, host=host, **trusted)).cursor()
        handle.execute("select 1")
        handle.close()
        assert server.calls[-1] == "CloseSession"


@pytest.mark.parametrize(
    ("presented", "trusted", "reason"),
    [
        ("right", None, "self-signed certificate"),
        ("right", "other", "self-signed certificate"),
        ("other", "other", "IP address mismatch, certificate is not valid for '127.0.0.1'"),
    ],
)
def test_another_server_gets_neither_user_nor_password(
    certificates: dict[str, Path], presented: str, trusted: str | None, reason: str
) -> None:
    secrets = {"auth": "LDAP", "user": "alice", "password": PASSWORD, "connect_retries": 3}
    ca = str(certificates[trusted]) if trusted else None
    with FakeServer(tls=server_tls(certificates[presented])) as server:
        credentials = profile(server.port, use_ssl=True, ssl_ca_file=ca, **secrets)
        connection = Connection("sparkevolve", "c", credentials)  # type: ignore[arg-type]
        with within(5), pytest.raises(Exception, match=reason) as error:
            SparkEvolveConnectionManager.open(connection)
    assert PASSWORD not in str(error.value)
    cause = error.value if isinstance(error.value, UntrustedServerError) else error.value.__context__
    assert isinstance(cause, UntrustedServerError)
    assert (cause.host, cause.port, cause.reason.rstrip(".")) == (HOST, server.port, reason)
    assert "Neither user nor password was sent to it." in str(cause)
    assert server.calls == []


def test_what_another_server_receives_is_a_handshake(certificates: dict[str, Path]) -> None:
    """Seen by somebody in between: before the certificate has come, and after it."""
    received: list[bytes] = []
    with (
        FakeServer(tls=server_tls(certificates["other"])) as server,
        socket.create_server((HOST, 0)) as front,
    ):

        def hand_on() -> None:
            client, _ = front.accept()
            behind = socket.create_connection((HOST, server.port))
            threading.Thread(target=_copy, args=(behind, client, []), daemon=True).start()
            _copy(client, behind, received)

        thread = threading.Thread(target=hand_on, daemon=True)
        thread.start()
        secrets = {"auth": "LDAP", "user": "alice", "password": PASSWORD}
        with pytest.raises(UntrustedServerError):
            open_thrift(profile(front.getsockname()[1], use_ssl=True, **secrets))
        thread.join(5)
    sent = b"".join(received)
    assert sent
    # TLS records: a handshake (22), its end (20), an alert (21); none of data (23), as far as they are plain.
    assert sent[0] == 22
    assert PASSWORD.encode() not in sent
    assert b"alice" not in sent


def _copy(source: socket.socket, target: socket.socket, kept: list[bytes]) -> None:
    try:
        while found := source.recv(1 << 16):
            kept.append(found)
            target.sendall(found)
    except OSError:
        pass
    target.close()


def test_a_profile_that_trusts_everybody_is_warned_once(
    certificates: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    warnings: list[str] = []
    monkeypatch.setattr("dbt.adapters.sparkevolve.spark.connections.warn", warnings.append)
    with FakeServer(tls=server_tls(certificates["other"])) as server:
        credentials = profile(server.port, use_ssl=True, ssl_verify=False)
        profile_ = SimpleNamespace(credentials=credentials, query_comment=None)
        manager = SparkEvolveConnectionManager(profile_, get_context("spawn"))
        for name in ("first", "second"):
            handle = manager.set_connection_name(name).handle.cursor()
            handle.execute("select 1")
            manager.release()
        assert server.calls[-1] == "CloseSession"
    assert len(warnings) == 1
    assert warnings[0].startswith(
        "`ssl_verify` is false in the profile: user, password and data are sent to "
    )
    assert f"{HOST}:{server.port}" in warnings[0]


def test_a_server_without_tls_is_not_reached() -> None:
    with FakeServer() as server, within(5), pytest.raises(OSError, match="Cannot connect to"):
        open_thrift(profile(server.port, use_ssl=True, connect_timeout=1))


@pytest.mark.parametrize("content", [None, "no certificate"])
def test_a_file_without_certificates_is_named(tmp_path: Path, content: str | None) -> None:
    path = tmp_path / "ca.pem"
    if content is not None:
        path.write_text(content)
    with pytest.raises(ProfileError, match=r"`ssl_ca_file` of the profile is '.*ca\.pem', and no") as error:
        open_thrift(profile(1, use_ssl=True, ssl_ca_file=str(path)))
    assert error.value.setting == "ssl_ca_file"


@pytest.mark.parametrize(
    ("given", "setting"),
    [
        ({"auth": "LDAP"}, "password"),
        ({"auth": "CUSTOM"}, "password"),
        ({"auth": "NONE", "password": "x"}, "password"),
        ({"auth": "KERBEROS"}, "kerberos_service_name"),
        ({"auth": "LDAP", "password": "x", "kerberos_service_name": "hive"}, "kerberos_service_name"),
        ({"auth": "PAM"}, "auth"),
    ],
)
def test_settings_that_do_not_fit_together(given: dict[str, str], setting: str) -> None:
    with pytest.raises(ProfileError) as error:
        open_thrift(profile(1, **given))
    assert error.value.setting == setting
