"""Fixtures of the unit tests: a real Iceberg catalog in a SQLite file, and a second view of it."""

from collections.abc import Callable
from pathlib import Path

import pytest
from pyiceberg.catalog import Catalog, load_catalog
from pyiceberg.schema import Schema

from dbt.adapters.sparkevolve.iceberg.catalog import IcebergCatalog
from dbt.adapters.sparkevolve.iceberg.catalog_settings import CatalogSettings, resolve
from dbt.adapters.sparkevolve.relation import SparkEvolveRelation
from tests.unit.helpers import append, relation

MakeTable = Callable[..., SparkEvolveRelation]


@pytest.fixture
def settings(tmp_path: Path) -> CatalogSettings:
    """The embedded catalog of a project in a folder with a space."""
    return resolve("lake", {}, tmp_path / "my project")


@pytest.fixture
def other(settings: CatalogSettings) -> Catalog:
    """The catalog, with one schema, ``db``, as somebody else has opened it."""
    settings.prepare()
    catalog = load_catalog("lake", **settings.pyiceberg)
    catalog.create_namespace("db")
    return catalog


@pytest.fixture
def lake(settings: CatalogSettings, other: Catalog) -> IcebergCatalog:
    """The gateway under test."""
    return IcebergCatalog(settings)


@pytest.fixture
def make_table(other: Catalog) -> MakeTable:
    """Make a table with a schema and rows; the names of the rows' fields are the schema's."""

    def make(
        schema: Schema,
        *appends: list[dict[str, object]],
        name: str = "t",
        properties: dict[str, str] | None = None,
    ) -> SparkEvolveRelation:
        table = other.create_table(("db", name), schema, properties=properties or {})
        for rows in appends:
            append(table, rows)
        return relation(name)

    return make
