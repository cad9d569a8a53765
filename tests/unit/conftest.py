"""Fixtures of the unit tests: a real Iceberg catalog in a SQLite file, and a second view of it."""

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from pyiceberg.catalog import Catalog, load_catalog
from pyiceberg.schema import Schema
from pyiceberg.table import Table

from dbt.adapters.sparkevolve.catalog import IcebergCatalog
from dbt.adapters.sparkevolve.catalog_settings import CatalogSettings, resolve
from dbt.adapters.sparkevolve.relation import SparkEvolveRelation

MakeTable = Callable[..., SparkEvolveRelation]


def relation(identifier: str, schema: str = "db", database: str | None = "lake") -> SparkEvolveRelation:
    """Return a table's relation in the catalog of these tests."""
    return SparkEvolveRelation.create(  # type: ignore[return-value]
        database=database, schema=schema, identifier=identifier, type="table"
    )


@pytest.fixture
def settings(tmp_path: Path) -> CatalogSettings:
    """The embedded catalog of a project in a folder with a space."""
    return resolve("lake", {}, tmp_path / "my project")


@pytest.fixture
def lake(settings: CatalogSettings) -> IcebergCatalog:
    """The gateway under test, with one schema, ``db``."""
    gateway = IcebergCatalog(settings)
    gateway.table_names("db")  # makes the folder and the file
    load_catalog("lake", **settings.pyiceberg).create_namespace("db")
    return gateway


@pytest.fixture
def other(lake: IcebergCatalog, settings: CatalogSettings) -> Catalog:
    """The same catalog, opened by somebody else."""
    return load_catalog("lake", **settings.pyiceberg)


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


def append(table: Table, rows: list[dict[str, object]]) -> None:
    """Append rows in one commit; without any, append an empty file."""
    table.append(pa.Table.from_pylist(rows, schema=table.schema().as_arrow()))
