"""A REST catalog behind TLS, which wants a password and a header of both sides."""

import base64
import http.client
import ssl
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from pyiceberg.catalog import load_catalog

from tests.functional.conftest import scenario_of
from tests.functional.harness import Scenario
from tests.functional.servers import HOST
from tests.unit.thrift_fake import make_certificate, server_tls

PASSWORD = "hidden-word"
HEADERS = {
    "Authorization": "Basic " + base64.b64encode(f"dbt:{PASSWORD}".encode()).decode(),
    "X-Realm": "shop",
}


@pytest.fixture
def guarded(
    server_properties: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[tuple[dict[str, Any], dict[str, int], Callable[[], None]]]:
    """The properties of the guarded catalog, how often each client was let in, what renews certificates."""
    # The library below PyIceberg takes these before what it is told.
    for name in ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"):
        monkeypatch.delenv(name, raising=False)
    if server_properties["type"] != "rest":
        pytest.skip("is about REST")
    behind = urlsplit(server_properties["uri"])
    let_in: dict[str, int] = {}

    class Guard(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _answer(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            if any(self.headers.get(name) != value for name, value in HEADERS.items()):
                status, content = 401, b'{"error": {"message": "who are you?", "type": "Auth", "code": 401}}'
            else:
                client = "java" if "java" in self.headers.get("User-Agent", "").lower() else "python"
                let_in[client] = let_in.get(client, 0) + 1
                connection = http.client.HTTPConnection(str(behind.hostname), behind.port)
                kept = {name: value for name, value in self.headers.items() if name.lower() != "host"}
                connection.request(self.command, self.path, body, kept)
                answer = connection.getresponse()
                status, content = answer.status, answer.read()
                connection.close()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
            self.send_header("Connection", "close")
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(content)

        do_GET = do_POST = do_DELETE = do_HEAD = _answer

        def log_message(self, *_: Any) -> None:
            pass

    certificate = make_certificate(tmp_path, "server", f"IP:{HOST}")
    server = ThreadingHTTPServer((HOST, 0), Guard)
    tls = server_tls(certificate)
    # Each connection shows its certificate: none is kept, and none is taken up again.
    tls.num_tickets = 0
    tls.minimum_version = ssl.TLSVersion.TLSv1_3
    server.socket = tls.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    properties = {
        "type": "rest",
        "uri": f"https://{HOST}:{server.server_address[1]}",
        "auth": {"type": "basic", "basic": {"username": "dbt", "password": PASSWORD}},
        "ssl": {"cabundle": str(certificate)},
        "header.X-Realm": "shop",
    }

    def renew() -> None:
        """Have another certificate, and another authority in the file that the profile names."""
        tls.load_cert_chain(make_certificate(tmp_path, "server", f"IP:{HOST}"))

    yield properties, let_in, renew
    server.shutdown()
    server.server_close()


def test_both_sides_trust_the_server_and_say_who_they_are(
    guarded: tuple[dict[str, Any], dict[str, int], Callable[[], None]],
    profile_target: dict[str, Any],
    tmp_path: Path,
) -> None:
    properties, let_in, renew = guarded
    for scenario in scenario_of(properties, profile_target, tmp_path):
        check(scenario, properties, let_in)
        renew()
        let_in.clear()
        # Of the same process, and by the same profile.
        scenario.model("select 3 as id, 'c' as v, 4 as n")
        scenario.run()
        assert scenario.rows() == [(1, "a", None), (2, "b", 3), (3, "c", 4)]
        assert set(let_in) == {"java", "python"}


def check(scenario: Scenario, properties: dict[str, Any], let_in: dict[str, int]) -> None:
    scenario.model("select 1 as id, 'a' as v")
    log = scenario.run().log
    scenario.model("select 2 as id, 'b' as v, 3 as n")
    log += scenario.run().log
    assert scenario.rows() == [(1, "a", None), (2, "b", 3)]
    assert set(let_in) == {"java", "python"}
    assert PASSWORD not in log + (scenario.folder / "logs" / "dbt.log").read_text()
    with pytest.raises(Exception, match="who are you"):
        load_catalog("lake", **{**properties, "auth": {"type": "noop"}}).list_namespaces()
