"""A SQL catalog's database that ends a connection at each point of a commit, as by KILL or in a fail-over."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pyiceberg.catalog import Catalog, load_catalog
from pyiceberg.schema import Schema
from pyiceberg.types import IntegerType, NestedField
from sqlalchemy import create_engine, event, text
from sqlalchemy.engine import Connection, Engine

from dbt.adapters.sparkevolve.iceberg.catalog import IcebergCatalog
from dbt.adapters.sparkevolve.iceberg.catalog_settings import resolve
from tests.functional.conftest import running_catalog
from tests.unit.helpers import relation

TABLE = relation("t")
# What asks for a connection's number, and what ends the one of that number.
ENDING = {
    "postgresql": ("SELECT pg_backend_pid()", "SELECT pg_terminate_backend({})"),
    "mysql": ("SELECT connection_id()", "KILL {}"),
}


@pytest.fixture(scope="module", params=["postgresql", pytest.param("mysql", marks=pytest.mark.servers)])
def properties(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[str, str]]:
    """PyIceberg's properties of a SQL catalog on a server, with one table."""
    with running_catalog(request.param, tmp_path_factory.mktemp(request.param)) as found:
        direct = load_catalog("lake", **found)
        direct.create_namespace("db")
        yield found


@pytest.fixture
def direct(properties: dict[str, str]) -> Iterator[Catalog]:
    """The catalog, opened by PyIceberg alone, with a table that goes at the end."""
    catalog = load_catalog("lake", **properties)
    catalog.create_table("db.t", Schema(NestedField(1, "id", IntegerType())))
    yield catalog
    catalog.drop_table("db.t")


class Killer:
    """Ends each connection that is about to do something, so many times."""

    def __init__(self, properties: dict[str, str]) -> None:
        self._engine = create_engine(properties["uri"], isolation_level="AUTOCOMMIT")
        self._number, self._end = ENDING[self._engine.dialect.name]
        self.left = 0

    def kill(self, connection: Any) -> None:
        """End a connection of the driver."""
        self.left -= 1
        with connection.cursor() as cursor:
            cursor.execute(self._number)
            number = cursor.fetchone()[0]
        with self._engine.connect() as other:
            other.execute(text(self._end.format(number)))

    def wait_for(self, engine: Engine, point: str, times: int) -> None:
        """End connections at a point: before the UPDATE, before the COMMIT, or when that has been made."""
        self.left = times

        def before_statement(connection: Connection, cursor: Any, statement: str, *rest: Any) -> None:
            if self.left > 0 and statement.startswith("UPDATE iceberg_tables"):
                self.kill(connection.connection.dbapi_connection)

        def before_commit(connection: Connection) -> None:
            if self.left > 0:
                raw = connection.connection.dbapi_connection
                assert raw is not None
                if point == "committed":
                    raw.commit()
                self.kill(raw)

        if point == "statement":
            event.listen(engine, "before_cursor_execute", before_statement)
        else:
            event.listen(engine, "commit", before_commit)


def set_docs(lake: IcebergCatalog) -> None:
    assert lake.set_docs(TABLE, "what it is", {"id": "a number"}, 0) != []


def set_properties(lake: IcebergCatalog) -> None:
    lake.set_properties(TABLE, {"comment": "what it is"}, 0)


@pytest.mark.parametrize("point", ["statement", "commit", "committed"])
@pytest.mark.parametrize("change", [set_docs, set_properties])
def test_a_commit_whose_connection_is_ended_is_made(
    properties: dict[str, str],
    direct: Catalog,
    tmp_path: Path,
    point: str,
    change: Callable[[IcebergCatalog], None],
) -> None:
    lake = IcebergCatalog(resolve("lake", properties, tmp_path), None, 20)
    lake.check()
    killer = Killer(properties)
    engine = lake.access.opened.engine  # type: ignore[attr-defined]
    killer.wait_for(engine, point, 2 if point != "committed" else 1)
    change(lake)
    assert killer.left == 0
    table = direct.load_table("db.t")
    assert table.properties["comment"] == "what it is"
    if change is set_docs:
        # What has been committed is seen, and is not committed again.
        assert len(table.metadata.metadata_log) == 1
