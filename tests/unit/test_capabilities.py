"""What is known of each kind of catalog, and what a REST catalog says of itself."""

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from pyiceberg.catalog.rest import DEFAULT_ENDPOINTS

from dbt.adapters.sparkevolve.iceberg.capabilities import (
    Kind,
    Names,
    Origin,
    Purge,
    capabilities_of,
    kind_of,
)
from dbt.adapters.sparkevolve.iceberg.catalog import IcebergCatalog
from dbt.adapters.sparkevolve.iceberg.catalog_settings import resolve

BUCKET = "arn:aws:s3tables:eu-west-1:111122223333:bucket/lake"
VIEWS = "POST /v1/{prefix}/namespaces/{namespace}/views"
RENAME = "POST /v1/{prefix}/tables/rename"


@pytest.mark.parametrize(
    ("properties", "kind"),
    [
        ({"type": "sql"}, Kind.SQL),
        ({"type": "Hive"}, Kind.HIVE),
        ({"type": "glue"}, Kind.GLUE),
        ({"type": "rest"}, Kind.REST),
        ({"type": "rest", "uri": "https://polaris.internal/s3tables", "warehouse": "glue"}, Kind.REST),
        ({"type": "rest", "rest.signing-name": "execute-api"}, Kind.REST),
        ({"type": "rest", "rest.signing-name": "S3Tables"}, Kind.S3_TABLES),
        ({"type": "rest", "uri": "https://s3tables.eu-west-1.amazonaws.com/iceberg"}, Kind.S3_TABLES),
        ({"type": "rest", "uri": "https://proxy.internal", "warehouse": BUCKET}, Kind.S3_TABLES),
        ({"type": "rest", "warehouse": BUCKET.replace("aws", "aws-us-gov")}, Kind.S3_TABLES),
        ({"type": "rest", "rest.signing-name": "glue"}, Kind.GLUE_REST),
        ({"type": "rest", "uri": "https://glue.eu-west-1.amazonaws.com/iceberg"}, Kind.GLUE_REST),
        ({"type": "rest", "uri": "HTTPS://Glue-FIPS.us-east-1.amazonaws.com/iceberg"}, Kind.GLUE_REST),
        ({"type": "rest", "uri": "https://glue.eu-west-1.api.aws:443/iceberg"}, Kind.GLUE_REST),
        ({"type": "rest", "uri": "https://glue.eusc-de-east-1.amazonaws.eu/iceberg"}, Kind.GLUE_REST),
        ({"type": "rest", "uri": "https://s3tables.eusc-de-east-1.amazonaws.eu/iceberg"}, Kind.S3_TABLES),
        ({"type": "rest", "uri": "https://glue.us-iso-east-1.c2s.ic.gov/iceberg"}, Kind.GLUE_REST),
        ({"type": "rest", "uri": "https://glue.us-isob-east-1.sc2s.sgov.gov/iceberg"}, Kind.GLUE_REST),
        ({"type": "rest", "uri": "https://glue.eu-isoe-west-1.cloud.adc-e.uk/iceberg"}, Kind.GLUE_REST),
        ({"type": "rest", "uri": "https://glue.us-isof-south-1.csp.hci.ic.gov/iceberg"}, Kind.GLUE_REST),
        ({"type": "rest", "uri": "https://s3tables.us-east-1.amazonaws.com.:443/iceberg"}, Kind.S3_TABLES),
        ({"type": "rest", "uri": "https://u:p@glue.us-east-1.amazonaws.com?x=/"}, Kind.GLUE_REST),
        ({"type": "rest", "uri": "https://glue.us-east-1.amazonaws.com@lake.example/"}, Kind.REST),
        ({"type": "rest", "uri": "https://glue.us-east-1.amazonaws.com.example/"}, Kind.REST),
        ({"type": "rest", "uri": "https://glue.us-east-1.amazonaws.de/"}, Kind.REST),
        ({"type": "rest", "uri": "https://vpce-0a.s3tables.us-east-1.vpce.amazonaws.com"}, Kind.S3_TABLES),
        ({"type": "rest", "uri": "http://glue-catalog:8181"}, Kind.REST),
        ({"type": "rest", "uri": "http://s3tables.internal:8181/api"}, Kind.REST),
        (
            {"type": "rest", "rest.signing-name": "glue", "warehouse": "111122223333:s3tablescatalog/lake"},
            Kind.GLUE_REST_S3_TABLES,
        ),
    ],
)
def test_which_kind_it_is(properties: dict[str, str], kind: Kind) -> None:
    assert kind_of(properties) == kind


def answers(properties: dict[str, Any], said: frozenset[str] | None = None) -> dict[str, Any]:
    return {fact.name: fact.value for fact in capabilities_of(properties, said).facts}


USUAL = {
    "stages_creations": True,
    "purge": Purge.EITHER,
    "has_views": True,
    "names": Names.ANY,
    "has_nested_schemas": True,
    "wants_location": False,
    "renames": True,
    "writes_metadata": False,
    "reads_types": False,
    "keeps_branches": True,
}
OF_REST = {**USUAL, "has_views": False, "writes_metadata": True}
OF_AWS = {**OF_REST, "stages_creations": False, "has_nested_schemas": False}


@pytest.mark.parametrize(
    ("properties", "expected"),
    [
        ({"type": "sql"}, USUAL),
        (
            {"type": "hive"},
            {**USUAL, "has_nested_schemas": False, "reads_types": True, "names": Names.NO_UPPER},
        ),
        (
            {"type": "glue"},
            {**USUAL, "has_nested_schemas": False, "has_views": False, "names": Names.LOWER},
        ),
        (
            {"type": "glue", "glue.skip-name-validation": "true"},
            {**USUAL, "has_nested_schemas": False, "has_views": False},
        ),
        ({"type": "rest"}, OF_REST),
        ({"type": "rest", "nessie.is-nessie-catalog": "true"}, {**OF_REST, "keeps_branches": False}),
        ({"type": "rest", "nessie.is-nessie-catalog": "false"}, OF_REST),
        ({"type": "rest", "view-endpoints-supported": "True"}, {**OF_REST, "has_views": True}),
        (
            {"type": "rest", "rest.signing-name": "s3tables"},
            {**OF_AWS, "purge": Purge.ALWAYS, "names": Names.LOWER_BEGUN},
        ),
        (
            {"type": "rest", "rest.signing-name": "glue"},
            {**OF_AWS, "purge": Purge.NEVER, "renames": False, "wants_location": True, "names": Names.LOWER},
        ),
        (
            {"type": "rest", "rest.signing-name": "glue", "warehouse": "1:s3tablescatalog/b"},
            {**OF_AWS, "names": Names.LOWER_BEGUN, "renames": False},
        ),
    ],
)
def test_what_is_known_of_each_kind(properties: dict[str, str], expected: dict[str, Any]) -> None:
    assert answers(properties) == expected


def test_what_a_server_says_goes_before_what_is_known() -> None:
    properties = {"type": "rest", "rest.signing-name": "glue"}
    can = capabilities_of(properties, frozenset({VIEWS, RENAME}))
    assert (can.has_views, can.renames, can.stages_creations) == (True, True, False)
    assert [fact.name for fact in can.facts if fact.origin == Origin.SAID] == ["has_views", "renames"]
    assert [fact.name for fact in can.facts if fact.origin == Origin.ASSUMED] == ["has_nested_schemas"]
    can = capabilities_of({"type": "rest"}, frozenset())
    assert (can.has_views, can.renames) == (False, False)


def test_dbt_debug_prints_the_answer_alone() -> None:
    fact = capabilities_of({"type": "rest", "rest.signing-name": "glue"}, {VIEWS}).facts[2]
    assert (fact.text, str(fact)) == ("has views: yes", f"has views: yes (said by the server: {VIEWS})")


def test_each_fact_says_how_it_is_known() -> None:
    lines = [
        str(fact) for fact in capabilities_of({"type": "rest", "rest.signing-name": "glue"}, {VIEWS}).facts
    ]
    assert lines[:6] == [
        "makes a table with its rows in one commit: no (documented: AWS Glue Developer Guide, AWS Glue REST "
        "APIs for Apache Iceberg specifications)",
        "drops a table: without its files only (documented: AWS Glue Developer Guide, AWS Glue REST APIs for "
        "Apache Iceberg specifications)",
        f"has views: yes (said by the server: {VIEWS})",
        "takes names: of lower-case letters, digits and underscores only (documented: AWS Glue Developer "
        "Guide, Table API: for Hive compatibility, names are lower-case)",
        "has schemas inside schemas: no (assumed)",
        "wants to be told where a new table is to be: yes (reported by users: apache/iceberg issue 11921, "
        "duckdb/duckdb-iceberg issue 1128)",
    ]


@pytest.mark.parametrize(
    ("name", "s3_tables", "glue"),
    [
        ("orders", True, True),
        ("2024_orders", True, True),
        ("orders__dbt_tmp_0123456789ab", True, True),
        ("Orders", False, False),
        ("_orders", False, True),
        ("or-ders", False, False),
        ("or.ders", False, False),
        ("bestellungen_größe", False, False),
    ],
)
def test_which_names_awss_catalogs_take(name: str, s3_tables: bool, glue: bool, tmp_path: Path) -> None:
    assert capabilities_of({"type": "rest", "rest.signing-name": "s3tables"}).takes_name(name) is s3_tables
    assert capabilities_of({"type": "rest", "rest.signing-name": "glue"}).takes_name(name) is glue
    assert capabilities_of({"type": "sql"}).takes_name(name)
    properties = {"type": "glue", "warehouse": "s3://lake/w"}
    assert capabilities_of(resolve("lake", properties, tmp_path).known).takes_name(name) is glue
    skips = {"glue.skip-name-validation": "true"}
    for given in ({**properties, **skips}, {**properties, "spark": skips}):
        assert capabilities_of(resolve("lake", given, tmp_path).known).takes_name(name)


@pytest.mark.parametrize(("name", "is_taken"), [("orders", True), ("or-ders", True), ("oRders", False)])
def test_a_metastore_keeps_names_in_lower_case(name: str, is_taken: bool) -> None:
    hive = capabilities_of({"type": "hive"})
    assert hive.takes_name(name) is is_taken
    assert hive.takes_schema(name)
    assert capabilities_of({"type": "glue"}).takes_schema("oRders") is False


@pytest.fixture
def config_server() -> Iterator[ThreadingHTTPServer]:
    """A server that answers `GET /v1/config` with its attribute `config`, and counts requests."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.server.asked += 1  # type: ignore[attr-defined]
            content = json.dumps(self.server.config).encode()  # type: ignore[attr-defined]
            self.send_response(200)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.asked = 0  # type: ignore[attr-defined]
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


@pytest.mark.parametrize(
    ("config", "has_views"),
    [
        ({}, False),
        ({"overrides": {"view-endpoints-supported": "true"}}, True),
        ({"endpoints": [VIEWS, "GET /v1/{prefix}/namespaces"]}, True),
        ({"endpoints": ["GET /v1/{prefix}/namespaces"]}, False),
    ],
)
def test_pyiceberg_keeps_what_a_server_says_that_it_takes(
    config_server: Any, tmp_path: Path, config: dict[str, Any], has_views: bool
) -> None:
    config_server.config = {"defaults": {}, "overrides": {}, **config}
    uri = f"http://127.0.0.1:{config_server.server_address[1]}"
    catalog = IcebergCatalog(resolve("lake", {"type": "rest", "uri": uri}, tmp_path))
    assert config_server.asked == 0
    assert catalog.capabilities.has_views is has_views
    assert catalog.capabilities.renames is ("endpoints" not in config)
    assert catalog.capabilities is catalog.access.capabilities
    assert config_server.asked == 1
    assert len(DEFAULT_ENDPOINTS) == 12
