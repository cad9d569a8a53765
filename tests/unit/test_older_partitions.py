"""Files of an older partition spec: how they are noticed, and by what their rows are found."""

from typing import Any

import pytest
from pyiceberg.catalog import Catalog
from pyiceberg.transforms import BucketTransform, DayTransform, TruncateTransform, YearTransform
from pyiceberg.types import IntegerType, StringType

from dbt.adapters.sparkevolve.evolution.changes import RenameField
from dbt.adapters.sparkevolve.evolution.partitions import PartitionValue
from dbt.adapters.sparkevolve.evolution.plan import EvolutionPlan
from dbt.adapters.sparkevolve.iceberg.catalog import IcebergCatalog
from dbt.adapters.sparkevolve.iceberg.facts import table_facts
from dbt.adapters.sparkevolve.iceberg.older_partitions import (
    has_older_partitions,
    partition_values,
    refused_partitions,
)
from dbt.adapters.sparkevolve.iceberg.publication import overwrote_other_partitions
from dbt.adapters.sparkevolve.iceberg.staged_batch import StagedBatch
from dbt.adapters.sparkevolve.load.batch_plan import plan_batch
from dbt.adapters.sparkevolve.load.load import Load
from dbt.adapters.sparkevolve.load.strategies import overwrites_older_partitions
from dbt.adapters.sparkevolve.settings import IncrementalSettings
from tests.unit.conftest import MakeTable
from tests.unit.helpers import append, columns, model_settings, relation, struct

TARGET, STAGED = relation("t"), relation("t__dbt_tmp_0123456789ab")
OVERWRITE = model_settings(strategy="insert_overwrite", partition_by="id", publish="direct")


def test_files_are_older_from_the_change_of_the_spec_until_they_are_gone(
    make_table: MakeTable, other: Catalog
) -> None:
    make_table(columns("id int, x int"))
    table = other.load_table("db.t")
    assert not has_older_partitions(table, None)
    append(table, [{"id": 1, "x": 1}])
    before = table.metadata.current_snapshot_id
    assert not has_older_partitions(table, before)
    with table.update_spec() as update:
        update.add_identity("id")
    assert has_older_partitions(table, before)
    append(table, [{"id": 1, "x": 2}])
    assert has_older_partitions(table, table.metadata.current_snapshot_id)
    table.delete()
    assert not has_older_partitions(table, table.metadata.current_snapshot_id)
    assert has_older_partitions(table, before)
    with table.update_spec() as update:
        update.remove_field("id")
    # The first spec is the current one again.
    assert table.metadata.default_spec_id == 0
    assert not has_older_partitions(table, before)


def test_it_is_seen_by_which_spec_rows_were_written(make_table: MakeTable, other: Catalog) -> None:
    make_table(columns("id int, x int"))
    table = other.load_table("db.t")
    append(table, [{"id": 1, "x": 1}])
    before = head = table.metadata.current_snapshot_id
    assert head is not None
    with table.update_spec() as update:
        update.add_identity("id")
    # What another writer changes after the rows were written does not matter.
    assert not overwrote_other_partitions(table, head, None, 0)
    append(table, [{"id": 1, "x": 2}])
    append(table, [{"id": 1, "x": 3}])
    with table.update_spec() as update:
        update.remove_field("id")
    assert table.metadata.default_spec_id == 0
    head = table.metadata.current_snapshot_id
    assert head is not None
    assert overwrote_other_partitions(table, head, before, 0)
    assert not overwrote_other_partitions(table, head, before, 1)
    assert overwrote_other_partitions(table, head, None, 1)


@pytest.mark.parametrize(
    ("change", "answer"),
    [
        ({}, True),
        ({"partition_by": None}, False),
        ({"strategy": "full_refresh"}, False),
        ({"strategy": "delete+insert"}, False),
        ({"strategy": "append"}, False),
    ],
)
def test_only_an_overwrite_of_partitions_minds_them(
    lake: IcebergCatalog, make_table: MakeTable, other: Catalog, change: dict[str, Any], answer: bool
) -> None:
    make_table(columns("id int"), [{"id": 1}])
    with other.load_table("db.t").update_spec() as update:
        update.add_identity("id")
    base = lake.base(TARGET, lambda: None)
    assert overwrites_older_partitions(base, model_settings(OVERWRITE, **change)) is answer


def test_what_makes_a_partition_is_said_in_iceberg_s_functions(make_table: MakeTable, other: Catalog) -> None:
    make_table(
        columns("Id int, a.b string, s, D date, E date, gone int", s=struct(7, **{"x.y": StringType()})),
        properties={"format-version": "1"},
    )
    table = other.load_table("db.t")
    with table.update_spec() as update:
        update.add_identity("gone")
        update.add_field("Id", BucketTransform(4))
        update.add_field("a.b", TruncateTransform(2))
        update.add_identity("s.x.y")
        update.add_field("D", DayTransform())
        update.add_field("E", YearTransform())
    with table.update_spec() as update:
        update.remove_field("gone")
    values = partition_values(table)
    assert values == (
        PartitionValue("bucket", ("Id",), "4"),
        PartitionValue("truncate", ("a.b",), "2"),
        PartitionValue("identity", ("s", "x.y")),
        PartitionValue("days", ("D",)),
        PartitionValue("years", ("E",)),
    )
    assert [value.render("S.`c`", "lake") for value in values] == [
        "`lake`.system.bucket(4, S.`c`)",
        "`lake`.system.truncate(2, S.`c`)",
        "S.`c`.`x.y`",
        "`lake`.system.days(S.`c`)",
        "`lake`.system.years(S.`c`)",
    ]
    assert refused_partitions(table) == []
    table.metadata = table.metadata.model_copy(
        update={"format_version": 1, "properties": {"write.delete.mode": "merge-on-read"}}
    )
    (refusal,) = refused_partitions(table)
    assert "Iceberg's format version 1 and `write.delete.mode` = 'merge-on-read'" in str(refusal)
    assert refused_partitions(table, {"write.delete.mode": "copy-on-write"}) == []


def test_the_bucket_of_a_uuid_cannot_be_told(make_table: MakeTable, other: Catalog) -> None:
    make_table(columns("u uuid, id int"))
    table = other.load_table("db.t")
    with table.update_spec() as update:
        update.add_identity("u")
        update.add_field("u", BucketTransform(4))
        update.add_field("id", BucketTransform(4))
    (refusal,) = refused_partitions(table)
    assert (refusal.columns, refusal.types) == (("u",), ("uuid",))
    assert str(refusal) == (
        "The table has files from before its partitioning was changed, which an overwrite of partitions "
        "would leave in place, and Spark has no function for the partition `bucket[4]` of `u` (uuid), by "
        "which their rows could be deleted. Rewrite the files: `CALL … system.rewrite_data_files(table => "
        "'…', options => map('rewrite-all', 'true'))`."
    )


def test_a_load_deletes_by_value_and_inserts(
    lake: IcebergCatalog, make_table: MakeTable, other: Catalog
) -> None:
    make_table(columns("id bigint, s", s=struct(3, a=IntegerType())), [{"id": 1, "s": {"a": 1}}])
    with other.load_table("db.t").update_spec() as update:
        update.add_field("id", BucketTransform(4))
        update.add_identity("s.a")
    make_table(columns("ID int, S", S=struct(3, b=IntegerType())), name=str(STAGED.identifier))
    append(other.load_table(("db", str(STAGED.identifier))), [{"ID": 1, "S": {"b": 1}}])
    load = started(lake, model_settings(OVERWRITE, column_renames={"s.a": "b"}))
    assert RenameField(("s", "a"), "b") in load.plan.changes
    assert load.partition_overwrite is None
    delete, insert = load.statements
    assert delete == (
        "DELETE FROM `lake`.`db`.`t` AS DBT_INTERNAL_DEST\n"
        "WHERE EXISTS (SELECT 1 FROM (SELECT "
        "`lake`.system.bucket(4, CAST(DBT_INTERNAL_SOURCE.`ID` AS bigint)) AS key_0, "
        "DBT_INTERNAL_SOURCE.`S`.`b` AS key_1 "
        "FROM `lake`.`db`.`t__dbt_tmp_0123456789ab` AS DBT_INTERNAL_SOURCE) AS DBT_INTERNAL_SOURCE WHERE "
        "DBT_INTERNAL_SOURCE.key_0 <=> `lake`.system.bucket(4, DBT_INTERNAL_DEST.`id`) AND "
        "DBT_INTERNAL_SOURCE.key_1 <=> DBT_INTERNAL_DEST.`s`.`b`)"
    )
    assert insert.startswith("INSERT INTO `lake`.`db`.`t` (`id`, `s`)\n")
    assert load.warnings("", {}) == [
        f"{TARGET}: The table has files from before its partitioning was changed: rows are replaced one by "
        "one, which reads the whole table and takes long in a large one. To have partitions replaced again: "
        "`CALL `lake`.system.rewrite_data_files(table => '`db`.`t`', options => map('rewrite-all', 'true'))`."
    ]


def test_functions_and_procedures_are_those_of_the_tables_own_catalog(
    lake: IcebergCatalog, other: Catalog, make_table: MakeTable
) -> None:
    """Also where `generate_database_name` returns none, so that the table's name has no catalog."""
    append(other.create_table("db.t", columns("id int, x int")), [{"id": 1, "x": 1}])
    with other.load_table("db.t").update_spec() as update:
        update.add_field("id", BucketTransform(4))
    make_table(columns("id int, x int"), name=str(STAGED.identifier))
    append(other.load_table(("db", str(STAGED.identifier))), [{"id": 1, "x": 2}])
    target, staged = (one.replace_path(database=None) for one in (TARGET, STAGED))
    batch, base = lake.staged_batch(staged), lake.base(target, lambda: None)
    settings = model_settings(OVERWRITE, partition_by=["bucket(4, id)"])
    plan = plan_batch(batch, settings, {}, base.table.schema(), table_facts(base.table))
    load = Load(target, staged, base, batch, plan, settings, 0)
    assert load.statements[0] == (
        "DELETE FROM `db`.`t` AS DBT_INTERNAL_DEST\n"
        "WHERE EXISTS (SELECT 1 FROM (SELECT `lake`.system.bucket(4, DBT_INTERNAL_SOURCE.`id`) AS key_0 "
        "FROM `db`.`t__dbt_tmp_0123456789ab` AS DBT_INTERNAL_SOURCE) AS DBT_INTERNAL_SOURCE WHERE "
        "DBT_INTERNAL_SOURCE.key_0 <=> `lake`.system.bucket(4, DBT_INTERNAL_DEST.`id`))"
    )
    (warning,) = load.warnings("", {})
    assert "`CALL `lake`.system.rewrite_data_files(table => '`db`.`t`', " in warning


def started(lake: IcebergCatalog, settings: IncrementalSettings) -> Load:
    base = lake.base(TARGET, lambda: None)
    batch: StagedBatch = lake.staged_batch(STAGED)
    settings = model_settings(settings, partition_by=["bucket(4, id)", "s.b"])
    plan: EvolutionPlan = plan_batch(batch, settings, {}, base.table.schema(), table_facts(base.table))
    assert plan.refusals == ()
    return Load(TARGET, STAGED, base, batch, plan, settings, 0)
