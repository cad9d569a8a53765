"""A REST catalog that refuses what AWS's two refuse, in front of one that takes everything.

What lies behind it is Iceberg's own server, so whatever is not refused behaves as Iceberg has it. Each rule
says where it is documented; those marked "reported" are in no documentation, but in what users have met.
"""

import http.client
import json
import re
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from tests.functional.servers import HOST, Server

_SPACE = "/v1/{prefix}/namespaces/{namespace}"
_TABLE = f"{_SPACE}/tables/{{table}}"
# The operations that S3 Tables' endpoint has, by Amazon S3 User Guide, Accessing tables using the Amazon S3
# Tables Iceberg REST endpoint.
_OF_S3_TABLES = (
    "GET /v1/{prefix}/namespaces",
    "POST /v1/{prefix}/namespaces",
    f"GET {_SPACE}",
    f"HEAD {_SPACE}",
    f"DELETE {_SPACE}",
    f"GET {_SPACE}/tables",
    f"POST {_SPACE}/tables",
    f"GET {_TABLE}",
    f"HEAD {_TABLE}",
    f"POST {_TABLE}",
    f"DELETE {_TABLE}",
    "POST /v1/{prefix}/tables/rename",
)


@dataclass(frozen=True)
class Request:
    """A request of a client."""

    method: str
    path: str
    query: dict[str, list[str]]
    body: dict[str, Any]

    @property
    def levels(self) -> list[str]:
        """The levels of the namespace that it is about or makes; none if it is about none."""
        if self.method == "POST" and self.path == "/v1/namespaces":
            return list(self.body["namespace"])
        found = re.match("/v1/namespaces/([^/]+)", self.path)
        return unquote(found[1]).split("\x1f") if found else []

    @property
    def new_name(self) -> str | None:
        """The name of the table that it makes."""
        is_creation = self.method == "POST" and re.fullmatch("/v1/namespaces/[^/]+/tables", self.path)
        return str(self.body["name"]) if is_creation else None

    @property
    def drops(self) -> bool:
        """Whether it drops a table."""
        return self.method == "DELETE" and "/tables/" in self.path

    @property
    def purges(self) -> bool:
        """Whether a table is to go with its files."""
        return self.query.get("purgeRequested", ["false"])[0].lower() == "true"


# Returns why a request is refused; empty if it is not.
Rule = Callable[[Request], str]


def no_stage_create(request: Request) -> str:
    """That page, and AWS Glue Developer Guide, AWS Glue REST APIs for Apache Iceberg specifications."""
    return "Stage create is not supported" if request.body.get("stage-create") else ""


def no_views(request: Request) -> str:
    """The same pages, and Glue's Considerations and limitations."""
    return "View operations are not supported" if "/views" in request.path else ""


def one_level(request: Request) -> str:
    """Documented for S3 Tables; Glue's databases have no levels."""
    return "Multi-level namespaces are not supported" if len(request.levels) > 1 else ""


def purge_only(request: Request) -> str:
    """S3 User Guide, Deleting an Amazon S3 table."""
    text = "DropTable operation failed. S3 Tables only supports dropping tables with purge enabled."
    return text if request.drops and not request.purges else ""


def plain_names(request: Request) -> str:
    """S3 User Guide, Amazon S3 table bucket, table, and namespace naming rules."""
    made = [request.new_name] if request.new_name is not None else []
    made += request.levels if request.method == "POST" and request.path == "/v1/namespaces" else []
    wrong = [name for name in made if not re.fullmatch("[a-z0-9][a-z0-9_]{0,254}", name)]
    return f"The name {wrong[0]} is not valid." if wrong else ""


def owner_only(request: Request) -> str:
    """Reported: a namespace has no properties but its owner, and they do not change."""
    if request.path.endswith("/properties"):
        return "UpdateNamespaceProperties is not supported"
    made = request.method == "POST" and request.path == "/v1/namespaces"
    others = set(request.body.get("properties") or {}) - {"owner"} if made else ()
    return f"Namespace properties are not supported: {sorted(others)}" if others else ""


def nothing_else(request: Request) -> str:
    """S3 Tables has the operations of the list only."""
    last = request.path.rsplit("/", 1)[-1]
    return f"{last} is not supported" if last in ("register", "commit", "metrics", "plan") else ""


def no_purge(request: Request) -> str:
    """Glue Developer Guide, AWS Glue REST APIs for Apache Iceberg specifications."""
    text = "PurgeRequested cannot be true for Glue iceberg tables."
    return text if request.drops and request.purges else ""


def with_location(request: Request) -> str:
    """Reported: apache/iceberg issue 11921, duckdb/duckdb-iceberg issue 1128."""
    is_missing = request.new_name is not None and not request.body.get("location")
    return "Location information cannot be null while creating an iceberg table" if is_missing else ""


def no_rename(request: Request) -> str:
    """Glue Developer Guide, Considerations and limitations when using AWS Glue Iceberg REST Catalog APIs."""
    return "RenameTable is not supported" if request.path == "/v1/tables/rename" else ""


@dataclass(frozen=True)
class Rules:
    """What one service refuses.

    Attributes:
        kind: what `dbt debug` calls it.
        signing_name: what its requests are signed for, by which the adapter knows it.
        refusals: its rules.
        endpoints: the requests that it says that it takes; None if it does not say.
    """

    kind: str
    signing_name: str
    refusals: tuple[Rule, ...]
    endpoints: tuple[str, ...] | None


RULES = {
    "s3tables": Rules(
        "Amazon S3 Tables by REST",
        "s3tables",
        (no_stage_create, no_views, one_level, purge_only, plain_names, owner_only, nothing_else),
        _OF_S3_TABLES,
    ),
    "glue": Rules(
        "Glue by REST",
        "glue",
        (no_stage_create, no_views, one_level, no_purge, no_rename, with_location),
        None,
    ),
}


@dataclass
class StrictRest(Server):
    """Refuses what a service refuses, and hands on the rest; used as a context manager.

    Attributes:
        rules: what it refuses.
        behind: the address of the catalog that it is in front of.
        refused: what it has refused, as method, path and reason.
        taken: what it has handed on, as method and path.
        closed: a table to which it takes no commit, and which it does not drop: as for a run that has died.
    """

    rules: Rules
    behind: str
    refused: list[tuple[str, str, str]] = field(default_factory=list)
    taken: list[tuple[str, str]] = field(default_factory=list)
    closed: str = ""

    @property
    def kind(self) -> str:
        """What `dbt debug` calls it."""
        return self.rules.kind

    @property
    def properties(self) -> dict[str, str]:
        """The profile's properties of it: nothing has to be signed here."""
        return {
            "type": "rest",
            "uri": f"http://{HOST}:{self._server.server_address[1]}",
            "rest.signing-name": self.rules.signing_name,
        }

    def __enter__(self) -> "StrictRest":
        """Start it."""
        handler = type("Handler", (_Handler,), {"double": self})
        self._server = ThreadingHTTPServer((HOST, 0), handler)
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def stop(self) -> None:
        """Stop it."""
        self._server.shutdown()
        self._server.server_close()

    def reason(self, request: Request) -> str:
        """Return why a request is refused; empty if it is not."""
        is_change = request.method in ("POST", "DELETE")
        if self.closed and is_change and request.path.endswith(f"/tables/{self.closed}"):
            return "The table is closed"
        return next(filter(None, (rule(request) for rule in self.rules.refusals)), "")


class _Handler(BaseHTTPRequestHandler):
    double: StrictRest
    protocol_version = "HTTP/1.1"

    def _answer(self) -> None:
        content = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        url = urlsplit(self.path)
        is_json = content.startswith(b"{")
        request = Request(self.command, url.path, parse_qs(url.query), json.loads(content) if is_json else {})
        reason = self.double.reason(request)
        if reason:
            self.double.refused.append((self.command, url.path, reason))
            error = {"message": reason, "type": "BadRequestException", "code": 400}
            self._send(400, json.dumps({"error": error}).encode())
            return
        self.double.taken.append((self.command, self.path))
        behind = urlsplit(self.double.behind)
        connection = http.client.HTTPConnection(str(behind.hostname), behind.port)
        kept = {name: value for name, value in self.headers.items() if name.lower() != "host"}
        connection.request(self.command, self.path, content, kept)
        answer = connection.getresponse()
        body = answer.read()
        connection.close()
        if url.path == "/v1/config":
            config = json.loads(body)
            config.pop("endpoints", None)
            if self.double.rules.endpoints is not None:
                config["endpoints"] = self.double.rules.endpoints
            body = json.dumps(config).encode()
        self._send(answer.status, body)

    def _send(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    do_GET = do_POST = do_DELETE = do_HEAD = _answer

    def log_message(self, *_: Any) -> None:
        pass
