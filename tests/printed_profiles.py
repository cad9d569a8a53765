"""The profiles that pages print, of which tests run all but what differs here."""

import re
import textwrap
from pathlib import Path
from typing import Any

import yaml

from dbt.adapters.sparkevolve.iceberg.capabilities import Kind, kind_of

_ROOT = Path(__file__).parents[1]
PAGE = _ROOT / "docs" / "catalogs.md"
_BLOCK = re.compile(r"^## (?P<section>.+?)$|^```yaml\n(?P<text>.*?)^```", re.MULTILINE | re.DOTALL)
# Addresses, warehouses and keys: all else of what a test runs is the page's.
OWN = {
    "uri",
    "warehouse",
    "client.region",
    "client.access-key-id",
    "client.secret-access-key",
    "s3.endpoint",
    "glue.endpoint",
}


def printed() -> list[tuple[str, dict[str, Any]]]:
    """Return the properties of each catalog that the page prints, with the section that it is in."""
    section, found = "", []
    for match in _BLOCK.finditer(PAGE.read_text(encoding="utf-8")):
        section = match["section"] or section
        text = match["text"] or ""
        if "catalog_properties:" in text:
            found.append((section, yaml.safe_load(text)["catalog_properties"]))
        if "\n      catalogs:" in text:
            outputs = yaml.safe_load(text)["shop"]["outputs"]["dev"]
            found += [(section, properties) for properties in outputs["catalogs"].values()]
    return found


def label(properties: dict[str, Any]) -> str:
    """Return what tells a catalog's kind on the page, and of SQL databases which one it is."""
    kind = kind_of(properties)
    return kind.value if kind is not Kind.SQL else str(properties["uri"]).partition(":")[0].partition("+")[0]


def as_printed(kind: str, **here: str | None) -> dict[str, Any]:
    """Return the properties that the page prints for a kind of catalog, for a server that runs here.

    Args:
        kind: what ``label`` returns of them.
        here: those that have another value here, with ``_`` for a dot or a hyphen; None for one left out.
    """
    found = next(
        properties
        for _, properties in printed()
        if "pyiceberg" not in properties and label(properties) == kind
    )
    names = {re.sub("[.-]", "_", name): name for name in OWN}
    own = {names[name]: value for name, value in here.items()}
    scheme, printed_scheme = (str(each.get("uri") or "").partition(":")[0] for each in (own, found))
    assert scheme in (printed_scheme, printed_scheme.replace("https", "http")), (scheme, printed_scheme)
    return {name: value for name, value in {**found, **own}.items() if value is not None}


def output_of(page: str, word: str) -> dict[str, Any]:
    """Return the output of the one profile of a page that has a word in it."""
    blocks = re.findall(r"^ *```yaml\n(.*?)^ *```", (_ROOT / page).read_text(encoding="utf-8"), re.M | re.S)
    (text,) = (block for block in blocks if word in block)
    (profile,) = yaml.safe_load(textwrap.dedent(text)).values()
    (output,) = profile["outputs"].values()
    assert isinstance(output, dict)
    return output


def stock_settings(**here: str) -> dict[str, str]:
    """Return the settings of the catalog that the package's page prints for a session of stock dbt-spark.

    Args:
        here: `uri` and `warehouse`, which are others here.
    """
    printed_here = output_of("dbt_package/README.md", "server_side_parameters")["server_side_parameters"]
    own = {f"spark.sql.catalog.lake.{name}": value for name, value in here.items()}
    assert own.keys() < printed_here.keys()
    settings = {**printed_here, **own}
    return {
        key: value
        for key, value in settings.items()
        if key.startswith(("spark.sql.catalog.", "spark.sql.default"))
    }
