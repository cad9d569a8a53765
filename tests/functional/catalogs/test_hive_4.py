"""A metastore of Hive 4 without Spark, whose client of Hive 2.3 cannot talk to one."""

from collections.abc import Iterator

import pytest
from pyiceberg.catalog.hive import HiveCatalog
from pyiceberg.schema import Schema
from pyiceberg.types import IntegerType, LongType, NestedField, StructType, TimestampType, TimestamptzType
from thrift.Thrift import TApplicationException

from dbt.adapters.sparkevolve.errors import StatementError
from dbt.adapters.sparkevolve.iceberg.catalog import IcebergCatalog
from dbt.adapters.sparkevolve.iceberg.catalog_settings import resolve
from dbt.adapters.sparkevolve.messages import is_metastore_too_new
from tests.functional.metastore import Hive4Metastore

pytestmark = pytest.mark.servers


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hive4Metastore]:
    if not Hive4Metastore.can_run():
        pytest.skip("needs Maven, and Derby's tools in pyspark")
    with Hive4Metastore(tmp_path_factory.mktemp("hive_4")) as metastore:
        yield metastore


def test_tables_are_found_and_evolve_inside_of_columns_too(server: Hive4Metastore) -> None:
    """The rule that compares types by place is one that a client of Hive 4 can turn off for its commits."""
    properties = {"type": "hive", "uri": server.uri, "warehouse": f"file://{server.work_dir}/warehouse"}
    access = IcebergCatalog(resolve("lake", properties, server.work_dir)).access
    catalog = access.opened
    catalog.create_namespace("n")
    fields = StructType(NestedField(4, "x", IntegerType()), NestedField(5, "wall", TimestampType()))
    catalog.create_table(
        "n.t",
        Schema(
            NestedField(1, "id", IntegerType()),
            NestedField(2, "at", TimestamptzType()),
            NestedField(3, "s", fields),
        ),
    )
    with catalog.load_table("n.t").update_schema() as update:
        update.add_column("later", TimestamptzType())
    with catalog.load_table("n.t").update_schema() as update:
        update.add_column(("s", "at"), TimestamptzType())
        update.update_column(("s", "x"), LongType())
    assert access.table_names("n") == {"t"}
    with server.client() as hive:
        assert hive.getVersion().startswith("4.0")
        found = [(column.name, column.type) for column in hive.get_table("n", "t").sd.cols]
    assert found == [
        ("id", "int"),
        ("at", "timestamp"),
        ("s", "struct<x:bigint,wall:timestamp,at:timestamp>"),
        ("later", "timestamp"),
    ]


def test_hive_4_has_no_get_table(server: Hive4Metastore) -> None:
    """What Spark's client calls, and PyIceberg by itself."""
    catalog = HiveCatalog("direct", uri=server.uri)
    with pytest.raises(TApplicationException) as raised:
        catalog.load_table("default.t")
    assert is_metastore_too_new(str(raised.value))
    error = StatementError(str(raised.value), "select 1")
    assert "Use a metastore before Hive 4, or a REST catalog." in error.msg
