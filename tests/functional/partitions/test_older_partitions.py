"""Partitions are overwritten by value where the table has files from before its partitioning was changed."""

from datetime import datetime
from typing import Any

import pytest

from dbt.adapters.sparkevolve.impl import SparkEvolveAdapter
from tests.functional.harness import Scenario
from tests.functional.intruders import Intrude, cut, is_clean

# Of each table: its columns, its first partitioning, what changes that, the model's partition_by, the rows
# before, the batch, and the rows after.
OLD = "select * from values (1, 'x', 'a'), (2, 'y', 'b'), (3, null, 'c') as v(id, d, e)"
CASES: dict[str, tuple[str, str, list[str], str, str, str, list[tuple[Any, ...]]]] = {
    "from_none": (
        *("id int, d string, e string", "", ["add partition field d"], "d", OLD),
        "select 9 as id, 'x' as d, 'n' as e union all select 9, null, 'n'",
        [(2, "y", "b"), (9, None, "n"), (9, "x", "n")],
    ),
    "to_a_bucket": (
        *("id int, d string, e string", "d", ["replace partition field d with bucket(4, id)"]),
        *("bucket(4, id)", OLD, "select 9 as id, 'z' as d, 'n' as e"),
        # 3 and 9 are in one bucket, 1 and 2 in another.
        [(1, "x", "a"), (2, "y", "b"), (9, "z", "n")],
    ),
    "to_truncate": (
        *("id int, d string, e string", "bucket(2, id)", ["drop partition field bucket(2, id)"]),
        *("truncate(1, d)", OLD, "select 9 as id, 'xyz' as d, 'n' as e"),
        [(2, "y", "b"), (3, None, "c"), (9, "xyz", "n")],
    ),
    "fewer": (
        *("id int, d string, e string", "d, e", ["drop partition field e"], "d", OLD),
        "select 9 as id, 'x' as d, 'n' as e",
        [(2, "y", "b"), (3, None, "c"), (9, "x", "n")],
    ),
    "hours_to_days": (
        *(
            "id int, ts timestamp",
            "hours(ts)",
            ["replace partition field hours(ts) with days(ts)"],
            "days(ts)",
        ),
        "select 1, timestamp'2020-01-01 05:00:00Z' union all select 2, timestamp'2020-01-02 00:00:00Z' "
        "union all select 3, timestamp'1969-12-31 23:00:00Z'",
        "select 9 as id, timestamp'2020-01-01 23:59:59Z' as ts "
        "union all select 9, timestamp'1969-12-31 01:00:00Z'",
        [
            (2, "2020-01-02T00:00:00+00:00"),
            (9, "1969-12-31T01:00:00+00:00"),
            (9, "2020-01-01T23:59:59+00:00"),
        ],
    ),
    "in_a_struct": (
        *("id int, s struct<a: int, b: int>", "", ["add partition field s.a"], "s.a"),
        "select 1, named_struct('a', 1, 'b', 1) union all select 2, named_struct('a', 2, 'b', 2)",
        "select 9 as id, named_struct('B', 2, 'a', 1) as s",
        [(2, {"a": 2, "b": 2}), (9, {"a": 1, "b": 2})],
    ),
}


def plain(value: Any) -> Any:
    return value.isoformat() if isinstance(value, datetime) else value


@pytest.mark.parametrize("version", ["2", "1"])
def test_rows_in_files_of_an_older_spec_are_replaced(scenario: Scenario, version: str) -> None:
    scenario.sql(f"create schema if not exists `lake`.`{scenario.schema}`")
    for name, (columns, parts, changes, partition_by, before, batch, _) in CASES.items():
        table = scenario.relation(name)
        partitioned = f"partitioned by ({parts})" if parts else ""
        scenario.sql(
            f"create table {table} ({columns}) using iceberg {partitioned} "
            f"tblproperties ('format-version' = '{version}')"
        )
        scenario.sql(f"insert into {table} {before}")
        for change in [*changes, *(["add partition field truncate(1, d)"] if name == "to_truncate" else [])]:
            scenario.sql(f"alter table {table} {change}")
        scenario.model(
            batch, name, incremental_strategy="insert_overwrite", partition_by=partition_by, unique_key=None
        )
    run = scenario.run()
    for name, (*_, rows) in CASES.items():
        read = scenario.table(name).scan().to_arrow().to_pylist()
        found = sorted((tuple(map(plain, row.values())) for row in read), key=str)
        assert found == sorted(rows, key=str), name
        assert f"{scenario.relation(name)}: The table has files from before its partitioning" in run.log
        assert scenario.table(name).refs().keys() == {"main"}


def test_the_partitioning_changes_just_before_an_overwrite(scenario: Scenario, intrude: Intrude) -> None:
    """Spark overwrites partitions of the new spec, to which none of the rows belongs that are there."""
    scenario.sql(f"create schema if not exists `lake`.`{scenario.schema}`")
    table = scenario.relation()
    scenario.sql(f"create table {table} (id int, d string, e string) using iceberg partitioned by (d)")
    scenario.sql(f"insert into {table} {OLD}")
    overwrite = {"incremental_strategy": "insert_overwrite", "unique_key": None, "partition_by": "d"}
    scenario.model("select 9 as id, 'x' as d, 'n' as e", **overwrite)

    def change(spec: str) -> None:
        scenario.sql(f"refresh table {table}")
        scenario.sql(f"alter table {table} replace partition field {spec}")

    # There and back.
    before = intrude(SparkEvolveAdapter, "execute", lambda: change("d with bucket(4, id) as b"), sql="INSERT")
    after = intrude(SparkEvolveAdapter, "execute", lambda: change("b with d"), after=True, sql="INSERT")
    run = scenario.run()
    assert (len(before), len(after), cut(run)) == (1, 1, 2)
    assert scenario.rows() == [(2, "y", "b"), (3, None, "c"), (9, "x", "n")]
    # To the same partitions in a spec of its own, to which a run begins again.
    intrude(SparkEvolveAdapter, "execute", lambda: change("d with d as again"), sql="INSERT")
    scenario.model("select 8 as id, 'y' as d, 'n' as e", **overwrite)
    run = scenario.run()
    assert cut(run) == 2
    assert scenario.rows() == [(3, None, "c"), (8, "y", "n"), (9, "x", "n")]
    # To others: the model is refused then as it would have been.
    scenario.sql(f"delete from {table}")
    scenario.sql(f"insert into {table} {OLD}")
    rows = scenario.rows()
    intrude(SparkEvolveAdapter, "execute", lambda: change("again with truncate(1, e)"), sql="INSERT")
    scenario.model("select 7 as id, 'x' as d, 'n' as e", **overwrite)
    message = scenario.fail().message
    assert "truncate(1, e)" in message
    assert scenario.rows() == rows
    assert is_clean(scenario)
