"""A Hive metastore: what it refuses, its locks, what it keeps of a table."""

import time
from concurrent.futures import ThreadPoolExecutor
from datetime import date, datetime, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hive_metastore.ttypes import (
    FieldSchema,
    LockComponent,
    LockLevel,
    LockRequest,
    LockType,
    SerDeInfo,
    ShowLocksRequest,
    StorageDescriptor,
    Table,
    UnlockRequest,
)
from pyiceberg.catalog import load_catalog
from pyiceberg.exceptions import CommitFailedException
from pyiceberg.schema import Schema
from pyiceberg.types import IntegerType, NestedField, StringType

from dbt.adapters.sparkevolve.errors import ProfileError
from dbt.adapters.sparkevolve.iceberg.catalog import IcebergCatalog
from dbt.adapters.sparkevolve.iceberg.catalog_settings import resolve
from dbt.adapters.sparkevolve.iceberg.metastore import Client
from dbt.adapters.sparkevolve.relation import SparkEvolveRelation
from dbt.adapters.sparkevolve.spark.session import SESSIONS
from tests.functional.conftest import scenario_of
from tests.functional.harness import Scenario, session_runner
from tests.functional.metastore import HiveMetastore
from tests.functional.servers import HOST, free_port

# Iceberg's setting in Hadoop's; a session hands its own on to Hadoop.
LOCK_TIMEOUT = "iceberg.hive.lock-timeout-ms"
# Each type of Spark that a table of format version 2 stores -> an expression of it.
TYPES = {
    "boolean": "true",
    "tiny": "cast(7 as tinyint)",
    "int": "7",
    "long": "5000000000",
    "float": "cast(1.5 as float)",
    "double": "1.5D",
    "decimal": "cast(7.25 as decimal(38,2))",
    "string": "'abc'",
    "varchar": "cast('abc' as varchar(5))",
    "binary": "X'61'",
    "date": "date'2024-01-02'",
    "instant": "timestamp'2024-01-02 03:04:05 UTC'",
    "wall": "timestamp_ntz'2024-01-02 03:04:05'",
}
ALL = ", ".join(f"{value} as `{name}`" for name, value in TYPES.items())
INSTANT = datetime(2024, 1, 2, 3, 4, 5, tzinfo=timezone.utc)
WALL = datetime(2024, 1, 2, 3, 4, 5)
NESTED = (
    f"named_struct('at', {TYPES['instant']}, 'wall', {TYPES['wall']}) as st, "
    f"array({TYPES['instant']}) as li, map('k', {TYPES['instant']}) as ma, "
    f"array(named_struct('m', map({TYPES['date']}, array({TYPES['wall']})))) as deep"
)


def check_all_types(scenario: Scenario, publish: str) -> None:
    """Create, load, evolve and publish a table of all types, which are compared as the reader has them."""
    scenario.model(f"select 1 as id, {ALL}, {NESTED}", publish=publish)
    scenario.run()
    scenario.run()
    scenario.model(
        f"select 2 as id, {ALL}, {NESTED}, {TYPES['instant']} as later, array({TYPES['wall']}) as walls",
        publish=publish,
    )
    scenario.run()
    columns = [field.name for field in scenario.table().schema().fields]
    first, second = (dict(zip(columns, row, strict=True)) for row in scenario.rows())
    for row in (first, second):
        assert row["decimal"] == Decimal("7.25")
        assert (row["long"], row["binary"], row["date"]) == (5000000000, b"a", date(2024, 1, 2))
        assert (row["instant"], row["wall"]) == (INSTANT, WALL)
        assert row["st"] == {"at": INSTANT, "wall": WALL}
        assert (row["li"], row["ma"]) == ([INSTANT], [("k", INSTANT)])
        assert row["deep"] == [{"m": [(date(2024, 1, 2), [WALL])]}]
    assert (first["later"], first["walls"]) == (None, None)
    assert (second["later"], second["walls"]) == (INSTANT, [WALL])
    assert scenario.sql(f"select id, later, st.at, walls[0] from {scenario.relation()} where id = 2") == [
        (2, INSTANT.astimezone().replace(tzinfo=None), INSTANT.astimezone().replace(tzinfo=None), WALL)
    ]
    assert set(scenario.table().metadata.refs) == {"main"}
    assert scenario.tables() == ["t"]


@pytest.mark.parametrize("publish", ["branch", "direct"])
def test_every_type_evolves_by_the_profile_alone(
    hive_scenario: Scenario, metastore: HiveMetastore, publish: str
) -> None:
    """Spark calls a timestamp `timestamp` in a metastore of any version, and so does this adapter."""
    check_all_types(hive_scenario, publish)
    with metastore.client() as hive:
        types = {column.name: column.type for column in hive.get_table(hive_scenario.schema, "t").sd.cols}
    assert (types["instant"], types["wall"], types["later"]) == ("timestamp",) * 3
    assert types["deep"] == "array<struct<m:map<date,array<timestamp>>>>"


def gateway(metastore: HiveMetastore, **properties: str) -> Any:
    """PyIceberg's catalog as the adapter opens it."""
    given = {"type": "hive", "uri": metastore.uri, **properties}
    given["warehouse"] = f"file://{metastore.work_dir}/warehouse"
    return IcebergCatalog(resolve("lake", given, metastore.work_dir)).access.opened


@pytest.mark.parametrize("locks", ["table", "profile"])
def test_a_commit_without_locks_is_refused_where_another_was_first(
    metastore: HiveMetastore, monkeypatch: pytest.MonkeyPatch, locks: str
) -> None:
    """As Spark commits where locks are turned off: the metastore itself compares what is replaced."""
    of_profile = {"hadoop.iceberg.engine.hive.lock-enabled": "false"} if locks == "profile" else {}
    of_table = {"engine.hive.lock-enabled": "false"} if locks == "table" else {}
    catalog = gateway(metastore, **of_profile)
    catalog.create_namespace_if_not_exists("raced")
    name = f"raced.without_{locks}"
    with metastore.client() as hive:
        before = hive.show_locks(ShowLocksRequest()).locks
    table = catalog.create_table(name, Schema(NestedField(1, "id", IntegerType())), properties=of_table)
    other = gateway(metastore, **of_profile).load_table(name)
    alter = Client.alter_table_with_environment_context
    pending = [True]

    def altered(*args: Any, **named: Any) -> None:
        if pending:
            pending.clear()
            with other.update_schema() as update:
                update.add_column("theirs", StringType())
        alter(*args, **named)

    monkeypatch.setattr(Client, "alter_table_with_environment_context", altered)
    with pytest.raises(CommitFailedException, match="The table has been modified"):
        table.transaction().set_properties(ours="1").commit_transaction()
    now = catalog.load_table(name)
    assert [field.name for field in now.schema().fields] == ["id", "theirs"]
    assert "ours" not in now.properties
    now.transaction().set_properties(ours="1").commit_transaction()
    assert catalog.load_table(name).properties["ours"] == "1"
    with metastore.client() as hive:
        assert hive.show_locks(ShowLocksRequest()).locks == before


def test_each_thread_has_a_connection_of_its_own_to_a_metastore_that_answers(
    metastore: HiveMetastore,
) -> None:
    """PyIceberg's one transport for all threads is closed by whoever is done first."""
    catalog = gateway(metastore, uri=f"thrift://{HOST}:{free_port()},{metastore.uri}")
    catalog.create_namespace_if_not_exists("many")
    for number in range(4):
        catalog.create_table(f"many.t{number}", Schema(NestedField(1, "id", IntegerType())))

    def evolve(number: int) -> list[str]:
        for column in range(5):
            with catalog.load_table(f"many.t{number}").update_schema() as update:
                update.add_column(f"c{column}", IntegerType())
        return [field.name for field in catalog.load_table(f"many.t{number}").schema().fields]

    with ThreadPoolExecutor(4) as threads:
        found = list(threads.map(evolve, range(4)))
    assert found == [["id", "c0", "c1", "c2", "c3", "c4"]] * 4


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
    with metastore.client() as hive:
        columns = hive.get_table(scenario.schema, "t").sd.cols
    assert [column.name for column in columns] == ["customerid", "fullname", "loyaltytier"]
    assert scenario.tables() == ["t"]


def test_a_name_that_the_metastore_would_keep_in_other_letters_is_refused(hive_scenario: Scenario) -> None:
    hive_scenario.model("select 1 as id", alias="Orders")
    failed = hive_scenario.fail()
    assert "takes names without upper-case letters" in failed.message
    assert hive_scenario.tables() == []


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
    with metastore.client() as hive:
        lock = hive.lock(LockRequest(component=[part], user="killed", hostname="gone"))
    scenario.model("select 1 as id, 2 as v, 3 as n", commit_retries=1)
    started = time.monotonic()
    run = scenario.fail()
    # Two attempts, in each of which PyIceberg looks four times at the lock.
    assert time.monotonic() - started < 60
    assert (
        f"The columns of {scenario.relation()} could not be changed in 2 attempts (add column `n` int), "
        "because other writers changed or locked the table each time (last answer: Failed to acquire lock "
        f"for ('{scenario.schema}', 't'), state: 2. The catalog `lake` at {HOST}:{metastore.port} says who "
        f"holds it: lock {lock.lockid} of `killed` at gone, since "
    ) in run.message
    assert (
        "). None of it was done, and no row was written. Somebody else holds the metastore's lock of "
        f"{scenario.schema}.t. If that is a writer that is at work, run again once it is done. If it is one "
        "that was killed, its lock stays, and no run succeeds before it is removed: docs/catalogs.md says "
        'how, under "A lock that was left".'
    ) in run.message
    assert "commit_retries" not in run.message
    assert "delete from" not in run.log.lower()
    assert scenario.state() == before
    with metastore.client() as hive:
        hive.unlock(UnlockRequest(lockid=lock.lockid))
    scenario.run()
    assert scenario.rows() == [(1, 2, 3)]
    assert scenario.tables() == ["t"]


def test_a_lock_that_is_left_stops_a_load_in_bounded_time(
    metastore: HiveMetastore, profile_target: dict[str, Any], tmp_path: Path
) -> None:
    """Without a change of the columns, it is Spark that waits for it first, and for minutes by default."""
    bounded = {**profile_target, "spark_config": {**profile_target["spark_config"], LOCK_TIMEOUT: "2000"}}
    for scenario in scenario_of(metastore.properties, bounded, tmp_path):
        scenario.model("select 1 as id, 1 as v")
        scenario.run()
        before = scenario.state()
        part = LockComponent(LockType.EXCLUSIVE, LockLevel.TABLE, scenario.schema, "t", isTransactional=True)
        with metastore.client() as hive:
            lock = hive.lock(LockRequest(component=[part], user="killed", hostname="gone"))
        scenario.model("select 1 as id, 2 as v")
        started = time.monotonic()
        run = scenario.fail()
        assert time.monotonic() - started < 60
        assert f"waiting for lock on {scenario.schema}.t" in run.message
        advice = f"Somebody else holds the metastore's lock of {scenario.schema}.t. If that is a writer that"
        assert run.message.count(advice) == 1
        assert (
            f"The catalog `lake` at {HOST}:{metastore.port} says who holds it: lock {lock.lockid} of "
            "`killed` at gone, since "
        ) in run.message
        assert scenario.state() == before
        # As docs/catalogs.md says.
        with metastore.client() as hive:
            held = hive.show_locks(ShowLocksRequest(dbname=scenario.schema, tablename="t")).locks
            assert [each.lockid for each in held] == [lock.lockid]
            hive.unlock(UnlockRequest(lockid=held[0].lockid))
        scenario.run()
        assert scenario.rows() == [(1, 2)]
        assert scenario.tables() == ["t"]


@pytest.mark.parametrize(
    ("of_catalog", "of_all", "expected"),
    [({}, {}, "30000"), ({f"hadoop.{LOCK_TIMEOUT}": "5"}, {}, "5"), ({}, {LOCK_TIMEOUT: "7"}, "7")],
)
def test_a_lock_is_waited_for_as_long_as_somebody_says(
    metastore: HiveMetastore,
    profile_target: dict[str, Any],
    tmp_path: Path,
    of_catalog: dict[str, str],
    of_all: dict[str, str],
    expected: str,
) -> None:
    """As Iceberg makes up Hadoop's settings for a catalog of the session."""
    settings = resolve("lake", {**metastore.properties, **of_catalog}, tmp_path)
    session = SESSIONS.get(settings, {**profile_target["spark_config"], **of_all}, {}, tmp_path)
    java: Any = session._jvm
    found = java.org.apache.iceberg.spark.SparkUtil.hadoopConfCatalogOverrides(session._jsparkSession, "lake")
    assert found.get(LOCK_TIMEOUT) == expected
    # What PyIceberg does not see. One side would lock, and the other overwrite its commits.
    unseen = {**profile_target["spark_config"], "iceberg.engine.hive.lock-enabled": "false"}
    with pytest.raises(ProfileError, match=r"Put `hadoop.iceberg.engine.hive.lock-enabled: false` there"):
        SESSIONS.get(settings, unseen, {}, tmp_path)
    stated = {**metastore.properties, **of_catalog, "hadoop.iceberg.engine.hive.lock-enabled": "false"}
    SESSIONS.get(resolve("lake", stated, tmp_path), unseen, {}, tmp_path)


def test_what_the_metastore_knows_of_a_table_stays(hive_scenario: Scenario, metastore: HiveMetastore) -> None:
    scenario = hive_scenario
    scenario.model("select 1 as id")
    scenario.run()
    with metastore.client() as hive:
        table = hive.get_table(scenario.schema, "t")
        table.owner = "the owner"
        table.parameters.update({"retention": "forever", "comment": "what it is", "numRows": "17"})
        hive.alter_table(scenario.schema, "t", table)
    scenario.model("select 1 as id, 2 as n")
    scenario.run()
    with metastore.client() as hive:
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
    """Hive 2.3 does, unless its operator says else; from Hive 3 on, this adapter says so for its commits."""
    scenario = hive_scenario
    scenario.model("select 1 as id, named_struct('x', 1, 'y', 2) as s")
    scenario.run()
    before = scenario.state()
    scenario.model("select 1 as id, named_struct('x', 1, 'z', 3) as s, 5 as n")
    run = scenario.fail()
    assert (
        f"The columns of {scenario.relation()} could not be changed (add field `s`.`z` int; add column `n` "
        "int). The catalog's answer: InvalidOperationException(message='The following columns have types "
        "incompatible with the existing columns in their respective positions :\\ns. Iceberg needs no such "
        "rule: have the operator of the metastore set "
        "hive.metastore.disallow.incompatible.col.type.changes to false'). None of these changes was made, "
        "and no row was written."
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
    with metastore.client() as hive:
        hive.create_table(table)
    scenario.model("select 1 as id, 2 as n")
    run = scenario.fail("--select", "t")
    catalog = IcebergCatalog(resolve("lake", {"type": "hive", "uri": metastore.uri}, metastore.work_dir))
    found = catalog.find(SparkEvolveRelation.create("lake", scenario.schema, "t"))
    with metastore.client() as hive:
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
