"""A Hive metastore: what it refuses, its locks, what it keeps of a table."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from hive_metastore.ttypes import (
    FieldSchema,
    LockComponent,
    LockLevel,
    LockRequest,
    LockType,
    SerDeInfo,
    StorageDescriptor,
    Table,
    UnlockRequest,
)
from pyiceberg.catalog import load_catalog

from dbt.adapters.sparkevolve.iceberg.catalog import IcebergCatalog
from dbt.adapters.sparkevolve.iceberg.catalog_settings import resolve
from dbt.adapters.sparkevolve.relation import SparkEvolveRelation
from tests.functional.harness import Scenario, session_runner
from tests.functional.metastore import HiveMetastore


@contextmanager
def client(metastore: HiveMetastore) -> Iterator[Any]:
    """Open a connection to the metastore itself, past Iceberg."""
    catalog = load_catalog("direct", type="hive", uri=metastore.uri)
    with catalog._client as opened:  # type: ignore[attr-defined]
        yield opened


def test_iceberg_keeps_the_case_that_the_metastore_lowers(
    hive_scenario: Scenario, metastore: HiveMetastore
) -> None:
    scenario = hive_scenario
    scenario.model("select 1 as CustomerId, 'a' as FullName", unique_key="customerid")
    scenario.run()
    scenario.model("select 1 as customerid, 'b' as fullname, 3 as LoyaltyTier", unique_key="CUSTOMERID")
    scenario.run()
    scenario.model("select 1 as customerid, 'c' as fullname, 4 as loyaltytier", unique_key="CUSTOMERID")
    scenario.run()
    assert scenario.field_ids() == {"CustomerId": 1, "FullName": 2, "LoyaltyTier": 3}
    assert scenario.rows() == [(1, "c", 4)]
    assert scenario.schemas() == 2
    with client(metastore) as hive:
        columns = hive.get_table(scenario.schema, "t").sd.cols
    assert [column.name for column in columns] == ["customerid", "fullname", "loyaltytier"]
    assert scenario.tables() == ["t"]


def test_a_column_name_that_the_metastore_takes(hive_scenario: Scenario) -> None:
    """Hive 2.3 takes a comma in the name of a column; Spark's own tables are what cannot have it."""
    scenario = hive_scenario
    scenario.model("select 1 as id")
    scenario.run()
    scenario.model("select 1 as id, 2 as `a,b`, named_struct('a.b c$', 3, 'ключ', 4) as s")
    scenario.run()
    scenario.run()
    assert scenario.rows() == [(1, 2, {"a.b c$": 3, "ключ": 4})]
    assert scenario.schemas() == 2
    # PyIceberg's own Hive catalog does not purge: the staged batches and their files are gone all the same.
    assert scenario.tables() == ["t"]
    folder = Path(scenario.table().location().removeprefix("file:")).parent
    files = [path for path in folder.rglob("[!.]*") if path.is_file()]
    assert files != []
    assert [path for path in files if "__dbt_tmp" in str(path)] == []


def test_a_column_name_that_the_metastore_rejects(hive_scenario: Scenario) -> None:
    """Its database has 767 characters for a name."""
    scenario = hive_scenario
    scenario.model("select 1 as id")
    scenario.run()
    before = scenario.state()
    scenario.model(f"select 1 as id, 2 as `{'n' * 768}`")
    run = scenario.fail()
    assert "COLUMNS_V2" in run.message
    assert "delete from" not in run.log.lower()
    assert scenario.state() == before
    assert scenario.tables() == ["t"]


def test_a_field_name_that_the_metastore_cannot_read(hive_scenario: Scenario) -> None:
    """It would store the type, and then refuse each later commit of the table, Spark's too."""
    scenario = hive_scenario
    scenario.model("select 1 as id")
    scenario.run()
    before = scenario.state()
    names = ["a,b", "x:y", "we`ird", "net-price", "#x", "🔑"]
    fields = ", ".join(f"'{name}', 1" for name in names)
    value = f"named_struct('ok', array(named_struct({fields})))"
    scenario.model(f"select 1 as id, {value} as s")
    scenario.model(f"select 1 as id, {value} as s", "other")
    for model in ("t", "other"):
        run = scenario.fail("--select", model)
        for name in names:
            quoted = name.replace("`", "``")
            assert (
                f"The model returns the field `s`.`ok`.`element`.`{quoted}`, and a Hive metastore cannot "
                "read a type with such a name in it: after it is stored, the metastore refuses every other "
                "change of the table. Give the field a name of letters, digits, underscores, dots and spaces "
                "in the model."
            ) in run.message
    assert scenario.state() == before
    assert scenario.tables() == ["t"]


def test_a_lock_that_is_left_stops_the_run_in_bounded_time(
    hive_scenario: Scenario, metastore: HiveMetastore
) -> None:
    scenario = hive_scenario
    scenario.model("select 1 as id, 1 as v")
    scenario.run()
    before = scenario.state()
    part = LockComponent(LockType.EXCLUSIVE, LockLevel.TABLE, scenario.schema, "t", isTransactional=True)
    with client(metastore) as hive:
        lock = hive.lock(LockRequest(component=[part], user="killed", hostname="gone"))
    scenario.model("select 1 as id, 2 as v, 3 as n", commit_retries=1)
    started = time.monotonic()
    run = scenario.fail()
    # Two attempts, in each of which PyIceberg looks four times at the lock.
    assert time.monotonic() - started < 60
    assert (
        f"The columns of {scenario.relation()} could not be changed in 2 attempts (add column `n` int), "
        "because other writers changed or locked the table each time (last answer: Failed to acquire lock "
        f"for ('{scenario.schema}', 't'), state: 2). None of it was done, and no row was written."
    ) in run.message
    assert "delete from" not in run.log.lower()
    assert scenario.state() == before
    with client(metastore) as hive:
        hive.unlock(UnlockRequest(lockid=lock.lockid))
    scenario.run()
    assert scenario.rows() == [(1, 2, 3)]
    assert scenario.tables() == ["t"]


def test_what_the_metastore_knows_of_a_table_stays(hive_scenario: Scenario, metastore: HiveMetastore) -> None:
    scenario = hive_scenario
    scenario.model("select 1 as id")
    scenario.run()
    with client(metastore) as hive:
        table = hive.get_table(scenario.schema, "t")
        table.owner = "the owner"
        table.parameters.update({"retention": "forever", "comment": "what it is", "numRows": "17"})
        hive.alter_table(scenario.schema, "t", table)
    scenario.model("select 1 as id, 2 as n")
    scenario.run()
    with client(metastore) as hive:
        after = hive.get_table(scenario.schema, "t")
    kept = {key: after.parameters[key] for key in ("retention", "comment")}
    assert kept == {"retention": "forever", "comment": "what it is"}
    assert (after.owner, after.sd.location) == ("the owner", table.sd.location)
    assert [(column.name, column.type) for column in after.sd.cols] == [("id", "int"), ("n", "int")]
    assert scenario.rows() == [(1, 2)]


def test_columns_never_move(hive_scenario: Scenario) -> None:
    scenario = hive_scenario
    scenario.model("select 1 as id, 'x' as s, 2 as gone")
    scenario.run()
    scenario.model("select 9 as n, cast(5000000000 as bigint) as gone, 1 as id, 'y' as s")
    scenario.run()
    assert scenario.field_ids() == {"id": 1, "s": 2, "gone": 3, "n": 4}
    assert scenario.rows() == [(1, "y", 5000000000, 9)]
    scenario.model("select 8 as n, 'z' as s, 2 as id")
    scenario.run()
    assert scenario.rows() == [(1, "y", 5000000000, 9), (2, "z", None, 8)]
    assert scenario.schemas() == 2


def test_a_metastore_that_compares_types_refuses_nested_evolution(hive_scenario: Scenario) -> None:
    """Unless ``hive.metastore.disallow.incompatible.col.type.changes`` is false, which is not its default."""
    scenario = hive_scenario
    scenario.model("select 1 as id, named_struct('x', 1, 'y', 2) as s")
    scenario.run()
    before = scenario.state()
    scenario.model("select 1 as id, named_struct('x', 1, 'z', 3) as s, 5 as n")
    run = scenario.fail()
    assert (
        f"The columns of {scenario.relation()} could not be changed (add field `s`.`z` int; add column `n` "
        "int). The catalog's answer: InvalidOperationException(message='The following columns have types "
        "incompatible with the existing columns in their respective positions :\\ns'). None of these changes "
        "was made, and no row was written."
    ) in run.message
    assert scenario.state() == before
    assert scenario.tables() == ["t"]
    # What needs no other type is padded.
    scenario.model("select 1 as id, named_struct('y', 3) as s")
    scenario.run()
    assert scenario.rows() == [(1, {"x": None, "y": 3})]


def test_a_hive_table_is_not_an_iceberg_table(hive_scenario: Scenario, metastore: HiveMetastore) -> None:
    scenario = hive_scenario
    scenario.model("select 1 as id", "other")
    scenario.run()
    columns = [FieldSchema("id", "int", "")]
    serde = SerDeInfo(serializationLib="org.apache.hadoop.hive.serde2.lazy.LazySimpleSerDe")
    storage = StorageDescriptor(
        cols=columns,
        location=f"file://{metastore.work_dir}/plain_{scenario.schema}",
        inputFormat="org.apache.hadoop.mapred.TextInputFormat",
        outputFormat="org.apache.hadoop.hive.ql.io.HiveIgnoreKeyTextOutputFormat",
        serdeInfo=serde,
    )
    table = Table(
        tableName="t", dbName=scenario.schema, owner="x", sd=storage, partitionKeys=[], parameters={},
        tableType="MANAGED_TABLE",
    )  # fmt: skip
    with client(metastore) as hive:
        hive.create_table(table)
    scenario.model("select 1 as id, 2 as n")
    run = scenario.fail("--select", "t")
    catalog = IcebergCatalog(resolve("lake", {"type": "hive", "uri": metastore.uri}, metastore.work_dir))
    found = catalog.find(SparkEvolveRelation.create("lake", scenario.schema, "t"))
    with client(metastore) as hive:
        names = [column.name for column in hive.get_table(scenario.schema, "t").sd.cols]
        hive.drop_table(scenario.schema, "t", True)
    assert f"Not an iceberg table: lake.{scenario.schema}.t (type=null)" in run.message
    assert found is None
    assert names == ["id"]


def test_the_session_catalog_of_a_metastore(
    metastore: HiveMetastore, profile_target: dict[str, Any], tmp_path: Path
) -> None:
    """Named with two and with three parts."""
    properties = {"type": "hive", "uri": metastore.uri, "warehouse": f"file://{metastore.work_dir}/warehouse"}
    profile = {**profile_target, "catalog": "spark_catalog", "catalog_properties": properties}
    schema = "of_the_session_catalog"
    lake = load_catalog("spark_catalog", **properties)
    # Spark was started without Hive here, so a schema that dbt makes is Spark's alone.
    lake.create_namespace(schema)
    scenario = Scenario(tmp_path / schema, schema, profile, session_runner(profile, tmp_path), lake)
    scenario.model("select 1 as id")
    scenario.run()
    scenario.model("select id + 1 as id, 2 as n from {{ this.include(database=false) }}")
    scenario.run()
    assert scenario.rows() == [(1, None), (2, 2)]
    assert scenario.schemas() == 2
    assert scenario.tables() == ["t"]
