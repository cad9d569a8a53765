"""The profiles of docs/catalogs.md are those that functional tests run, but for names, addresses and keys."""

import re
from pathlib import Path
from typing import Any

import pytest

from dbt.adapters.sparkevolve.iceberg.capabilities import Kind
from dbt.adapters.sparkevolve.iceberg.catalog_settings import resolve
from dbt.adapters.sparkevolve.spark.jars import ICEBERG_RUNTIMES
from dbt.adapters.sparkevolve.spark.session_config import EXTENSIONS
from tests.functional.thrift_server import MAIN_CLASS
from tests.printed_profiles import as_printed, label, output_of, printed, stock_settings

FUNCTIONAL = Path(__file__).parents[1] / "functional"
# Each of these is run by a fixture with what `as_printed` returns.
RUN = re.compile(r"""as_printed\(\s*(?:Kind\.(?P<kind>\w+)\.value|"(?P<database>\w+)")""")
# Two sides of one catalog by themselves, with classes of somebody's own.
ALONE = {"pyiceberg", "spark"}
PLAIN = ("Hive metastore", "REST")


def test_what_is_printed_is_what_is_run() -> None:
    ran = set()
    for source in FUNCTIONAL.rglob("*.py"):
        for match in RUN.finditer(source.read_text(encoding="utf-8")):
            ran.add(match["database"] or Kind[match["kind"]].value)
    seen = {label(properties) for _, properties in printed() if not ALONE & set(properties)}
    assert seen == ran == {"postgresql", "mysql", "sqlite", "Amazon S3 Tables by REST", "Glue", *PLAIN}


def test_a_test_differs_from_the_page_in_addresses_warehouses_and_keys_only() -> None:
    page = {label(properties): properties for _, properties in printed()}
    rest = as_printed("REST", uri="http://127.0.0.1:1", warehouse=None)
    assert rest == {"type": "rest", "uri": "http://127.0.0.1:1"}
    here = {"uri": "http://127.0.0.1:1", "warehouse": "s3://lake", "client_region": "us-east-1"}
    signed = as_printed("Amazon S3 Tables by REST", s3_endpoint="http://127.0.0.1:2", **here)
    assert signed == {
        **page["Amazon S3 Tables by REST"],
        "uri": "http://127.0.0.1:1",
        "warehouse": "s3://lake",
        "client.region": "us-east-1",
        "s3.endpoint": "http://127.0.0.1:2",
    }
    assert signed["rest.sigv4-enabled"] is True
    with pytest.raises(KeyError):
        as_printed("REST", uri="http://127.0.0.1:1", rest_signing_name="s3tables")
    # The driver of the page is the one that is run.
    with pytest.raises(AssertionError):
        as_printed("postgresql", uri="postgresql+psycopg://127.0.0.1/lake")


@pytest.mark.parametrize("number", range(len(printed())))
def test_what_is_printed_can_be_said_to_both_sides(number: int, tmp_path: Path) -> None:
    given: dict[str, Any] = printed()[number][1]
    settings = resolve("lake", given, tmp_path)
    settings.check()
    assert settings.differences == ""


def test_the_profile_of_the_package_is_of_the_catalog_that_the_page_on_moving_has(tmp_path: Path) -> None:
    stock, moved = (
        output_of("dbt_package/README.md", "server_side_parameters"),
        output_of("docs/moving.md", "sqlite:"),
    )
    assert (stock["type"], moved["type"]) == ("spark", "sparkevolve")
    assert stock["schema"] == moved["schema"]
    settings = resolve("lake", moved["catalog_properties"], tmp_path)
    settings.check()
    assert stock_settings() == {**settings.spark, "spark.sql.defaultCatalog": moved["catalog"]}
    jars = stock["server_side_parameters"]["spark.jars.packages"].split(",")
    assert jars == [ICEBERG_RUNTIMES["4.1"], *settings.packages]
    page = (FUNCTIONAL.parents[1] / "dbt_package/README.md").read_text(encoding="utf-8")
    for jar in ICEBERG_RUNTIMES.values():
        assert f"`{jar.partition('spark-runtime-')[2]}`" in page


def test_the_thrift_server_of_the_page_has_the_catalog_of_its_profile(tmp_path: Path) -> None:
    text = (FUNCTIONAL.parents[1] / "docs" / "thrift.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"^```properties\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    server = dict(line.split() for line in block.splitlines())
    catalog = resolve("lake", output_of("docs/thrift.md", "method: thrift")["catalog_properties"], tmp_path)
    derived = {**catalog.spark, "spark.sql.extensions": EXTENSIONS}
    stated = {key: value for key, value in server.items() if key != "spark.sql.catalogImplementation"}
    assert stated == {key: derived[key] for key in stated}
    assert {f"spark.sql.catalog.lake{rest}" for rest in ("", ".type", ".uri", ".warehouse")} <= stated.keys()
    assert f"--class {MAIN_CLASS} spark-internal" in text
