"""A Thrift server behind TLS. Run with ``--profile thrift``."""

import select
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.functional.harness import Scenario
from tests.functional.servers import HOST
from tests.unit.thrift_fake import make_certificate, server_tls


@pytest.fixture(autouse=True)
def _only_thrift(method: str) -> None:
    if method != "thrift":
        pytest.skip("needs --profile thrift")


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A certificate for this host, which no authority has signed."""
    return make_certificate(tmp_path_factory.mktemp("tls"), "server", f"IP:{HOST}")


@pytest.fixture(scope="module")
def tls_port(certificate: Path, profile_target: dict[str, Any]) -> Iterator[int]:
    """The port of a proxy that speaks TLS with clients and hands on what they say."""
    listener = socket.create_server((HOST, 0))
    context = server_tls(certificate)

    def accept() -> None:
        while True:
            try:
                client, _ = listener.accept()
            except OSError:
                return
            threading.Thread(target=serve, args=(client,), daemon=True).start()

    def serve(client: socket.socket) -> None:
        try:
            tls = context.wrap_socket(client, server_side=True)
            _hand_on(tls, socket.create_connection((HOST, profile_target["port"])))
        except OSError:
            client.close()

    threading.Thread(target=accept, daemon=True).start()
    yield int(listener.getsockname()[1])
    listener.close()


def _hand_on(tls: ssl.SSLSocket, plain: socket.socket) -> None:
    # One thread for both ways: a TLS connection is not to be read and written at once.
    with tls, plain:
        while True:
            ready, _, _ = select.select([tls, plain], [], [])
            for source, target in ((tls, plain), (plain, tls)):
                if source not in ready:
                    continue
                found = source.recv(1 << 16)
                while tls.pending():
                    found += tls.recv(1 << 16)
                if not found:
                    return
                target.sendall(found)


def test_a_project_on_a_verified_server(
    scenario_factory: Callable[..., Scenario], tls_port: int, certificate: Path
) -> None:
    scenario = scenario_factory(port=tls_port, use_ssl=True, ssl_ca_file=str(certificate))
    scenario.model("select 1 as id, 'a' as v")
    scenario.run()
    scenario.model("select 1 as id, 2 as n")
    assert "`ssl_verify` is false" not in scenario.run().log
    assert scenario.rows() == [(1, None, 2)]


def test_a_server_that_proves_nothing_is_refused(
    scenario_factory: Callable[..., Scenario], tls_port: int, certificate: Path
) -> None:
    scenario = scenario_factory(port=tls_port, use_ssl=True)
    scenario.model("select 1 as id")
    run = scenario.fail()
    refusal = f"The server at {HOST}:{tls_port} cannot prove that it is {HOST}: self-signed certificate."
    assert refusal in run.message
    # In the proxy's certificate stands the address alone.
    other = scenario_factory(
        port=tls_port, host="localhost", use_ssl=True, ssl_ca_file=str(certificate), connect_retries=5
    )
    other.model("select 1 as id")
    assert "cannot prove that it is localhost: Hostname mismatch" in other.fail().message


def test_a_profile_that_trusts_everybody_says_so(
    scenario_factory: Callable[..., Scenario], tls_port: int
) -> None:
    scenario = scenario_factory(port=tls_port, use_ssl=True, ssl_verify=False)
    scenario.model("select 1 as id")
    run = scenario.run("--threads", "2")
    assert run.log.count("`ssl_verify` is false in the profile") == 1
    assert scenario.rows() == [(1,)]
