"""What Nessie is told of a new schema, which PyIceberg does not say."""

import json
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from types import SimpleNamespace
from typing import Any

import pytest
from pyiceberg.catalog import load_catalog
from pyiceberg.schema import Schema
from pyiceberg.table.update import AddSchemaUpdate, SetCurrentSchemaUpdate
from pyiceberg.types import IntegerType, ListType, MapType, NestedField, StringType, StructType
from requests import Session
from requests.adapters import HTTPAdapter

from dbt.adapters.sparkevolve.cancellation import Cancellation
from dbt.adapters.sparkevolve.iceberg.access import CatalogAccess
from dbt.adapters.sparkevolve.iceberg.catalog_settings import resolve
from dbt.adapters.sparkevolve.iceberg.nessie import complete_commits, completed

INT = IntegerType()
A = NestedField(1, "a", INT)
STRUCT = StructType(NestedField(3, "x", INT), NestedField(4, "y", ListType(5, INT)))
VALUES = StructType(NestedField(5, "z", INT))


def request(schema: Schema, *requirements: dict[str, Any]) -> dict[str, Any]:
    updates = [AddSchemaUpdate(schema=schema), SetCurrentSchemaUpdate()]
    said = {"requirements": requirements, "updates": [json.loads(one.model_dump_json()) for one in updates]}
    assert "last-column-id" not in said["updates"][0], "PyIceberg says it by itself: this module can go"
    return said


@pytest.mark.parametrize(
    ("schema", "last"),
    [
        (Schema(A), 1),
        (Schema(A, NestedField(2, "s", STRUCT)), 5),
        (Schema(NestedField(2, "m", MapType(3, StringType(), 4, VALUES)), A), 5),
        (Schema(NestedField(2, "m", MapType(3, StringType(), 4, INT)), A), 4),
    ],
)
def test_a_new_schema_says_the_highest_id_of_its_columns(schema: Schema, last: int) -> None:
    said = request(schema, {"type": "assert-table-uuid", "uuid": "u"})
    found = json.loads(completed(json.dumps(said).encode()))
    assert found["updates"][0].pop("last-column-id") == last
    assert found == json.loads(json.dumps(said))


def test_a_column_that_is_gone_keeps_its_id() -> None:
    said = request(Schema(A), {"type": "assert-last-assigned-field-id", "last-assigned-field-id": 7})
    assert json.loads(completed(json.dumps(said).encode()))["updates"][0]["last-column-id"] == 7


def test_only_nessie_is_told() -> None:
    for properties, is_told in (({}, False), ({"nessie.is-nessie-catalog": "true"}, True)):
        session = Session()
        catalog = SimpleNamespace(properties=properties, uri="http://127.0.0.1:1/iceberg", _session=session)
        complete_commits(catalog)
        assert (type(session.get_adapter("http://127.0.0.1:1/iceberg/v1")) is not HTTPAdapter) is is_told
    complete_commits(load_catalog("lake", type="in-memory"))


def test_its_connections_are_kept(tmp_path: Path) -> None:
    """Each question of a run goes over those that are there."""
    asked: list[str] = []

    class Nessie(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            answer = b'{"defaults": {}, "overrides": {"nessie.is-nessie-catalog": "true"}, "namespaces": []}'
            self.send_response(200)
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)
            asked.append(str(self.client_address[1]))

        def log_message(self, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Nessie)
    Thread(target=server.serve_forever, daemon=True).start()
    try:
        given = {"type": "rest", "uri": f"http://127.0.0.1:{server.server_address[1]}"}
        access = CatalogAccess(resolve("lake", given, tmp_path), Cancellation(), 5)
        for _ in range(3):
            assert access.opened.list_namespaces() == []
        access.opened.close()
    finally:
        server.shutdown()
        server.server_close()
    # The first is of the configuration, which is asked for before it is known to be Nessie.
    assert len(set(asked[1:])) == 1
