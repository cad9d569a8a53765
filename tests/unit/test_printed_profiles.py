"""The profiles of docs/catalogs.md are those that functional tests run, but for names, addresses and keys."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from dbt.adapters.sparkevolve.iceberg.capabilities import Kind, kind_of
from dbt.adapters.sparkevolve.iceberg.catalog_settings import resolve
from tests.functional.mysql import MariaDb
from tests.functional.object_stores import KEYS, Moto, SeaweedFs
from tests.functional.postgres import Postgres

PAGE = Path(__file__).parents[2] / "docs" / "catalogs.md"
BLOCK = re.compile(r"^## (?P<section>.+?)$|^```yaml\n(?P<text>.*?)^```", re.MULTILINE | re.DOTALL)


def printed() -> list[tuple[str, dict[str, Any]]]:
    """Return the properties of each catalog that the page prints, with the section that it is in."""
    section, found = "", []
    for match in BLOCK.finditer(PAGE.read_text(encoding="utf-8")):
        section = match["section"] or section
        text = match["text"] or ""
        if "catalog_properties:" in text:
            found.append((section, yaml.safe_load(text)["catalog_properties"]))
        if "\n      catalogs:" in text:
            outputs = yaml.safe_load(text)["shop"]["outputs"]["dev"]
            found += [(section, properties) for properties in outputs["catalogs"].values()]
    return found


def run_by_tests(tmp_path: Path) -> dict[str, dict[str, Any]]:
    """Return the properties with which functional tests run, by what tells their kind on the page."""
    moto, weed = Moto(tmp_path), SeaweedFs(tmp_path)
    moto.address, weed.rest_port, weed.s3_port = "http://127.0.0.1:1", 1, 2
    sql = {"type": "sql", "warehouse": "file:///w"}
    return {
        "postgresql": {**sql, "uri": Postgres().uri},
        "mysql": {**sql, "uri": MariaDb().uri},
        "sqlite": {**sql, "uri": "sqlite:////c.db"},
        Kind.S3_TABLES.value: weed.properties,
        Kind.GLUE.value: moto.properties,
        Kind.HIVE.value: {"type": "hive", "uri": "thrift://127.0.0.1:1", "warehouse": "file:///w"},
        Kind.REST.value: {"type": "rest", "uri": "http://127.0.0.1:1"},
    }


# What a page says in words of its own, or leaves to AWS: keys, and where its services are not AWS's.
ADDED = {
    Kind.S3_TABLES.value: {*KEYS, "s3.endpoint"} - {"client.region"},
    Kind.GLUE.value: {*KEYS, "glue.endpoint"} - {"client.region"},
}
# What the page has more of.
LEFT_OUT = {Kind.REST.value: {"warehouse"}}


def label(properties: dict[str, Any]) -> str:
    kind = kind_of(properties)
    return kind.value if kind is not Kind.SQL else str(properties["uri"]).partition(":")[0].partition("+")[0]


def test_what_is_printed_is_what_is_run(tmp_path: Path) -> None:
    ran = run_by_tests(tmp_path)
    seen = set()
    for section, properties in printed():
        if "pyiceberg" in properties:
            continue
        name = label(properties)
        seen.add(name)
        there = ran[name]
        assert set(properties) - LEFT_OUT.get(name, set()) == set(there) - ADDED.get(name, set()), section
        same = {key for key in properties if key not in ("uri", "warehouse", "client.region")}
        assert {key: properties[key] for key in same if str(there[key]) != str(properties[key]).lower()} == {}
        scheme = str(properties.get("uri", "")).partition(":")[0]
        assert str(there.get("uri", "")).partition(":")[0] in (scheme, scheme.replace("https", "http")), (
            section
        )
    assert seen == set(ran)


@pytest.mark.parametrize("number", range(len(printed())))
def test_what_is_printed_can_be_said_to_both_sides(number: int, tmp_path: Path) -> None:
    _, properties = printed()[number]
    settings = resolve("lake", properties, tmp_path)
    settings.check()
    assert settings.differences == ""
