"""`insert_overwrite` replaces exactly the partitions of the batch, whatever values they have, in any zone."""

import re
from datetime import date, datetime
from typing import Any

import pytest
from pyiceberg.utils.datetime import date_to_days, datetime_to_micros

from tests.functional.harness import Scenario

LONG = "x" * 120
# By column: its type, what it is partitioned by, its values before, and those of the batch. A row has a value
# in one of the columns and NULL in the others, so that all of them can be in one table.
CASES: dict[str, tuple[str, str, list[str], list[str]]] = {
    "texts": (
        *("string", "p"),
        ["''", "' '", "'\\u00e9'", "'e\\u0301'", "'a/b=c%2F'", f"'{LONG}'", "'null'", "'x'"],
        ["''", "'\\u00e9'", "'a/b=c%2F'", f"'{LONG}'", "'new'"],
    ),
    "truncated_texts": (
        *("string", "truncate(2, p)"),
        ["''", "'\\u00e9ab'", "'e\\u0301b'", "'😀😀b'", "'😀a'", f"'{LONG}'", "'xy'"],
        ["'\\u00e9az'", "'😀😀'", "'xx'"],
    ),
    "buckets": (
        *("string", "bucket(5, p)"),
        ["''", "'a'", "'b'", "'c'", "'d'", "'😀'", f"'{LONG}'"],
        ["'a'", "'😀'"],
    ),
    "doubles": (
        *("double", "p"),
        ["double('NaN')", "0D", "1.5D", "double('Infinity')"],
        ["double('NaN')", "double('Infinity')"],
    ),
    "decimals": (
        *("decimal(20,2)", "p"),
        ["0.00", "-1.10", "123456789012345678.90", "1.10"],
        ["123456789012345678.90", "-1.10", "7.00"],
    ),
    "truncated_decimals": (
        *("decimal(9,2)", "truncate(100, p)"),
        ["0.05", "-0.05", "-1.00", "1.99", "2.00"],
        ["-0.99", "1.00"],
    ),
    "bucketed_decimals": (
        *("decimal(38,2)", "bucket(7, p)"),
        ["0.00", "-1.10", "999999999999999999999999.90", "1.10", "2.20"],
        ["999999999999999999999999.90", "-1.10"],
    ),
    "bytes": (*("binary", "p"), ["X''", "X'00'", "X'FF00'", "X'61'"], ["X''", "X'FF00'"]),
    "bucketed_bytes": (
        *("binary", "bucket(5, p)"),
        ["X''", "X'00'", "X'FF00'", "X'61'"],
        ["X''", "X'61'"],
    ),
    "old_dates": (
        *("date", "p"),
        ["date'0001-01-01'", "date'1500-02-28'", "date'1582-10-04'", "date'1582-10-15'"],
        ["date'0001-01-01'", "date'1582-10-04'"],
    ),
    "old_months": (
        *("date", "months(p)"),
        ["date'0001-01-31'", "date'1500-03-01'", "date'1582-10-04'", "date'1969-12-31'"],
        ["date'0001-01-01'", "date'1582-10-31'", "date'1969-12-01'"],
    ),
    "years": (
        *("timestamp_ntz", "years(p)"),
        ["timestamp_ntz'1969-12-31 23:59:59'", "timestamp_ntz'1970-01-01 00:00:00'"],
        ["timestamp_ntz'1969-01-01 00:00:00'"],
    ),
    # 01:30 is there twice in New York on this day, and half an hour of it in Lord Howe.
    "hours": (
        *("timestamp", "hours(p)"),
        [
            *(
                "timestamp'2024-11-03 05:30:00Z'",
                "timestamp'2024-11-03 06:30:00Z'",
            ),
            *("timestamp'2024-04-06 14:45:00Z'", "timestamp'2024-04-06 15:15:00Z'"),
            *("timestamp'1969-12-31 23:59:59.999999Z'", "timestamp'1900-01-01 04:10:00Z'"),
        ],
        [
            *("timestamp'2024-11-03 06:00:00Z'", "timestamp'2024-04-06 14:15:00Z'"),
            *("timestamp'1969-12-31 23:00:00Z'", "timestamp'1900-01-01 04:59:00Z'"),
        ],
    ),
    "days": (
        *("timestamp", "days(p)"),
        [
            "timestamp'2024-11-03 03:59:00Z'",
            "timestamp'2024-11-04 04:30:00Z'",
            "timestamp'2024-11-05 00:00:00Z'",
        ],
        ["timestamp'2024-11-04 23:59:59Z'"],
    ),
    "days_without_a_zone": (
        *("timestamp_ntz", "days(p)"),
        [
            "timestamp_ntz'2024-03-10 02:30:00'",
            "timestamp_ntz'2024-03-09 23:59:59'",
            "timestamp_ntz'2024-03-11 00:00:00'",
        ],
        ["timestamp_ntz'2024-03-10 02:15:00'"],
    ),
}


def values(case: int) -> str:
    """Return a query for the rows before (2) or for those of the batch (3), the first one all NULL."""
    rows = [["null"] * len(CASES)]
    for column, found in enumerate(CASES.values()):
        for value in found[case]:
            row = ["null"] * len(CASES)
            row[column] = value
            rows.append(row)
    lines = ", ".join(f"({100 * case + i}, {', '.join(row)})" for i, row in enumerate(rows))
    casts = ", ".join(f"cast({name} as {found[0]}) as {name}" for name, found in CASES.items())
    return f"select id, {casts} from values {lines} as v(id, {', '.join(CASES)})"


def internal(value: Any) -> Any:
    """Return a value as Iceberg's transforms take it."""
    if isinstance(value, datetime):
        return datetime_to_micros(value)
    return date_to_days(value) if isinstance(value, date) else value


@pytest.mark.parametrize("zone", ["America/New_York", "Australia/Lord_Howe"])
def test_exactly_the_partitions_of_the_batch_are_replaced(scenario_factory: Any, zone: str) -> None:
    """Of a partition spec that is the table's first one, and of one that came after its rows."""
    scenario: Scenario = scenario_factory(server_side_parameters={"spark.sql.session.timeZone": zone})
    scenario.sql(f"create schema if not exists `lake`.`{scenario.schema}`")
    parts = [re.sub(r"\bp\b", name, found[1]) for name, found in CASES.items()]
    columns = ", ".join(f"{name} {found[0]}" for name, found in CASES.items())
    config = {"incremental_strategy": "insert_overwrite", "partition_by": parts, "unique_key": None}
    for name in ("first", "later"):
        table = scenario.relation(name)
        partitioned = f"partitioned by ({', '.join(parts)})" if name == "first" else ""
        scenario.sql(f"create table {table} (id int, {columns}) using iceberg {partitioned}")
        scenario.sql(f"insert into {table} {values(2)}")
        for part in parts if name == "later" else ():
            scenario.sql(f"alter table {table} add partition field {part}")
        scenario.model(values(3), name, **config)
    scenario.model(values(3), "batch", materialized="table", unique_key=None, on_schema_change=None)
    before = scenario.table("first").scan().to_arrow().to_pylist()
    scenario.run()
    batch = scenario.table("batch").scan().to_arrow().to_pylist()
    table = scenario.table("first")
    schema = table.schema()
    transforms = {
        schema.find_column_name(f.source_id): f.transform.transform(schema.find_type(f.source_id))
        for f in table.spec().fields
    }

    def partition(row: dict[str, Any]) -> str:
        return repr([transform(internal(row[name])) for name, transform in transforms.items()])

    replaced = {partition(row) for row in batch}
    kept = [row for row in before if partition(row) not in replaced]
    for name in CASES:
        assert any(row[name] is not None for row in kept), name
        assert any(row[name] is not None and partition(row) in replaced for row in before), name
    expected = sorted(map(repr, [*kept, *batch]))
    for name in ("first", "later"):
        assert sorted(map(repr, scenario.table(name).scan().to_arrow().to_pylist())) == expected
