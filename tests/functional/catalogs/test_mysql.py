"""A SQL catalog whose database takes different names for one: it is refused, and says how that is changed."""

from pathlib import Path

import pytest
from pyiceberg.catalog import load_catalog
from pyiceberg.schema import Schema
from pyiceberg.types import IntegerType, NestedField
from sqlalchemy import create_engine, text

from dbt.adapters.sparkevolve.errors import ProfileError
from dbt.adapters.sparkevolve.iceberg.catalog import IcebergCatalog
from dbt.adapters.sparkevolve.iceberg.catalog_settings import resolve
from tests.functional.mysql import MariaDb
from tests.unit.helpers import relation

pytestmark = pytest.mark.servers
TABLES = ("iceberg_tables", "iceberg_namespace_properties")


def test_a_table_is_never_found_under_the_name_of_another(tmp_path: Path) -> None:
    if MariaDb.programs() is None:
        pytest.skip("needs a MariaDB server's programs (Debian: mariadb-server-core, mariadb-client-core)")
    pytest.importorskip("pymysql", reason="needs PyMySQL: pip install pymysql")
    with MariaDb(collation="utf8mb4_general_ci") as server:
        properties = {"type": "sql", "uri": server.uri, "warehouse": f"file://{tmp_path}/warehouse"}
        direct = load_catalog("lake", **properties)
        direct.create_namespace("db")
        direct.create_table("db.orders", Schema(NestedField(1, "id", IntegerType())))
        assert direct.table_exists("db.órders"), "why it has to be refused"
        settings = resolve("lake", properties, tmp_path)
        with pytest.raises(ProfileError) as raised:
            IcebergCatalog(settings).check()
        assert "compares names by the collation utf8mb4_general_ci, for which" in raised.value.msg
        assert server.password not in raised.value.msg

        # What the error says.
        with create_engine(server.uri).begin() as connection:
            connection.execute(text("ALTER DATABASE lake COLLATE utf8mb4_bin"))
            for table in TABLES:
                connection.execute(
                    text(f"ALTER TABLE {table} CONVERT TO CHARACTER SET utf8mb4 COLLATE utf8mb4_bin")
                )
        lake = IcebergCatalog(settings)
        lake.check()
        assert lake.find(relation("orders")) is not None
        assert lake.find(relation("órders")) is None
        assert lake.find(relation("Orders")) is None
