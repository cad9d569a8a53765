"""What the statements of a backfill say to Spark: which rows a batch has, and what a cast keeps."""

import datetime as dt
import decimal
import uuid
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.catalog import Catalog
from pyiceberg.schema import Schema
from pyiceberg.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FixedType,
    FloatType,
    IcebergType,
    IntegerType,
    ListType,
    LongType,
    NestedField,
    StringType,
    TimestampType,
    TimestamptzType,
    UUIDType,
)

from dbt.adapters.sparkevolve.messages import planning_problem
from dbt.adapters.sparkevolve.sql import backfill as sql
from dbt.adapters.sparkevolve.sql.dml import TARGET_ALIAS
from dbt.adapters.sparkevolve.sql.spark_types import Leaf, parse_type
from tests.functional.harness import Scenario, SqlRunner

UTC = dt.timezone.utc
# In the order in which Spark has them, NULL first; of equal ones, the ids of all.
KEYS: dict[str, tuple[IcebergType, list[Any]]] = {
    "boolean": (BooleanType(), [None, False, True]),
    "int": (IntegerType(), [None, -(2**31), -1, 0, 2**31 - 1]),
    "bigint": (LongType(), [None, -(2**63), 0, 2**63 - 1]),
    "float": (FloatType(), [None, float("-inf"), -0.5, 0.25, float("inf"), float("nan")]),
    "double": (DoubleType(), [None, float("-inf"), -1e300, 0.0, 0.1, 5e-324 + 1, float("inf"), float("nan")]),
    "decimal": (
        DecimalType(38, 18),
        [None, *map(decimal.Decimal, ("-99999999999999999999.999999999999999999", "0.000000000000000001"))],
    ),
    "string": (StringType(), [None, "", " ", "'", "A", "\\", "`a", "a", "a\nb", "é", "😀"]),
    "uuid": (
        UUIDType(),
        [None, *(uuid.UUID(int=n).bytes for n in (0, 1, 2**63, 2**127 - 1, 2**127, 2**128 - 1))],
    ),
    "date": (DateType(), [None, dt.date(1, 1, 1), dt.date(1969, 12, 31), dt.date(9999, 12, 31)]),
    "timestamp": (
        TimestamptzType(),
        # The hour that comes twice, in zones with a summer time.
        [None, *(dt.datetime(2025, 10, 26, hour, 30, 0, 1, UTC) for hour in (0, 1))],
    ),
    "timestamp_ntz": (
        TimestampType(),
        [None, dt.datetime(1900, 1, 1), dt.datetime(2025, 3, 30, 2, 30), dt.datetime(2025, 3, 30, 3, 30)],
    ),
    "binary": (BinaryType(), [None, b"", b"\x00", b"'", b"\xff", b"\xff\x00"]),
    "fixed": (FixedType(2), [None, b"\x00\x00", b"\x00\xff", b"\xff\xff"]),
}


@pytest.fixture
def keys(scenario: Scenario, lake: Catalog) -> str:
    """A table with a column of each type, in the order of its values, each row in a file of its own."""
    scenario.sql(f"create schema lake.`{scenario.schema}`")
    fields = [NestedField(1, "id", IntegerType())]
    fields += [
        NestedField(number, name, type_) for number, (name, (type_, _)) in enumerate(KEYS.items(), start=2)
    ]
    table = lake.create_table((scenario.schema, "t"), Schema(*fields))
    for place in range(max(len(listed) for _, listed in KEYS.values())):
        row = {name: listed[min(place, len(listed) - 1)] for name, (_, listed) in KEYS.items()}
        table.append(pa.Table.from_pylist([{"id": place, **row}], schema=table.schema().as_arrow()))
    return scenario.relation()


def test_each_row_is_in_one_batch_whatever_the_type_of_the_key(keys: str, scenario: Scenario) -> None:
    value, convert = "1", sql.Conversion(lambda v: v)
    count = max(len(listed) for _, listed in KEYS.values())
    for name, (type_, listed) in KEYS.items():
        # Rows beyond a type's values repeat its last one.
        places = [min(place, len(listed) - 1) for place in range(count)]
        key = (sql.KeyPart(f"{TARGET_ALIAS}.`{name}`", type_, name),)
        for rows in (1, None):
            found = scenario.sql(sql.batches_query(keys, value, convert, key, [], rows))
            assert [row[1] for row in found] == [places.count(p) for p in range(len(listed))], name
            bounds = [(row[0],) for row in found]
            lows = [None, *bounds[:-1]]
            conditions = [sql.between(key, low, high) for low, high in zip(lows, bounds, strict=True)]
            union = " UNION ALL ".join(
                f"SELECT {number} AS batch, id FROM {keys} AS {TARGET_ALIAS} WHERE {' AND '.join(condition)}"
                for number, condition in enumerate(conditions)
            )
            assert sorted(map(tuple, scenario.sql(union))) == [
                (place, number) for number, place in enumerate(places)
            ], (name, rows)


ZEROS_AND_NAN = "(1, '-1'), (2, '-0.0'), (3, '0'), (4, 'Infinity'), (5, 'NaN'), (6, null)"


@pytest.mark.parametrize("partitioned", ["", "partitioned by (v)", "partitioned by (v, id)"])
def test_a_nan_and_zeros_of_both_signs_are_in_their_batches(scenario: Scenario, partitioned: str) -> None:
    """Iceberg keeps bounds of the numbers in a file, between which NaN is not, and takes -0.0 for less."""
    scenario.sql(f"create schema if not exists lake.`{scenario.schema}`")
    for type_, of in (("float", FloatType()), ("double", DoubleType())):
        table = scenario.relation(type_)
        values = f"select id, cast(v as {type_}) as v from values {ZEROS_AND_NAN} as s(id, v)"
        scenario.sql(f"create table {table} using iceberg {partitioned} as {values}")
        parts = {
            "v": sql.KeyPart(f"{TARGET_ALIAS}.`v`", of, "v"),
            "id": sql.KeyPart(f"{TARGET_ALIAS}.`id`", IntegerType(), "id"),
        }
        for names, wanted in (
            (["v"], [[6], [1], [2, 3], [4], [5]]),
            (["v", "id"], [[6], [1], [2], [3], [4], [5]]),
        ):
            key = [parts[name] for name in names]
            found = scenario.sql(sql.batches_query(table, "1", sql.Conversion(lambda v: v), key, [], 1))
            bounds = [tuple(row[: len(key)]) for row in found]
            ranges = [
                sql.between(key, low, high) for low, high in zip([None, *bounds[:-1]], bounds, strict=True)
            ]
            queries = [
                f"SELECT id FROM {table} AS {TARGET_ALIAS} WHERE {' AND '.join(conditions)}"
                for conditions in ranges
            ]
            ids = [sorted(row[0] for row in scenario.sql(query)) for query in queries]
            # By one key each, zeros of both signs are one value, and go in by their ids.
            assert ids == wanted, (type_, names, queries)


def test_a_key_of_several_columns_is_an_order_too(keys: str, scenario: Scenario) -> None:
    key = tuple(
        sql.KeyPart(f"{TARGET_ALIAS}.`{name}`", KEYS[name][0], name)
        for name in ("boolean", "double", "string")
    )
    for size in (1, 2, 4):
        found = scenario.sql(sql.batches_query(keys, "1", sql.Conversion(lambda v: v), key, [], size))
        bounds = [tuple(row[:3]) for row in found]
        conditions = [
            " AND ".join(sql.between(key, low, high))
            for low, high in zip([None, *bounds[:-1]], bounds, strict=True)
        ]
        ids = [
            [row[0] for row in scenario.sql(f"SELECT id FROM {keys} AS {TARGET_ALIAS} WHERE {condition}")]
            for condition in conditions
        ]
        assert sorted(place for listed in ids for place in listed) == list(range(len(KEYS["string"][1])))
        assert [len(listed) for listed in ids] == [row[3] for row in found]


def test_an_explain_says_why_an_update_cannot_be_planned(keys: str, scenario: Scenario) -> None:
    def explained(value: str) -> str:
        return "\n".join(str(row[0]) for row in scenario.sql(f"EXPLAIN UPDATE {keys} SET `int` = {value}"))

    assert planning_problem(explained("id + 1")) == ""
    # Which of Spark's rules finds it first depends on whether the table rewrites files.
    problem = planning_problem(explained("max(id)"))
    assert problem.startswith(("[MISSING_GROUP_BY] ", "[UNSUPPORTED_EXPR_FOR_OPERATOR] ")), problem


# The type of the value, that of the column, values that stay what they are, and values that would not.
CASTS: list[tuple[str, IcebergType, dict[str, Any], list[str]]] = [
    ("bigint", IntegerType(), {"7L": 7, "null": None}, ["3000000000L"]),
    ("double", IntegerType(), {"7.0D": 7}, ["7.5D", "double('NaN')", "1e30D"]),
    ("double", LongType(), {"-7.0D": -7}, ["9.3e18D", "9223372036854775808D"]),
    (
        "bigint",
        DoubleType(),
        {"9007199254740992L": 9007199254740992.0},
        ["9007199254740993L", "9223372036854775807L"],
    ),
    ("bigint", FloatType(), {"16777216L": 16777216.0}, ["16777217L", "9223372036854775807L"]),
    ("double", FloatType(), {"0.5D": 0.5}, ["0.1D", "1e300D"]),
    ("decimal(3,1)", DoubleType(), {"cast(0.1 as decimal(3,1))": 0.1}, []),
    (
        "decimal(12,4)",
        DecimalType(5, 2),
        {"cast(1.2300 as decimal(12,4))": decimal.Decimal("1.23")},
        ["cast(1.2345 as decimal(12,4))", "cast(12345.0 as decimal(12,4))"],
    ),
    ("string", IntegerType(), {"'12'": 12, "cast(null as string)": None}, ["'1.5'", "'abc'", "'3000000000'"]),
    ("string", DecimalType(5, 2), {"'1.20'": decimal.Decimal("1.20")}, ["'1.234'", "'12345'", "'x'"]),
    ("string", DoubleType(), {"'1.50'": 1.5, "'-Infinity'": float("-inf")}, ["'1e400'", "'1e-400'", "'x'"]),
    ("string", FloatType(), {"'0.5'": 0.5}, ["'1e39'", "'0.123456789'"]),
    ("string", BooleanType(), {"'true'": True}, ["'maybe'"]),
    ("string", DateType(), {"'2026-01-02'": dt.date(2026, 1, 2)}, ["'2026-01-02 10:00:00'", "'soon'"]),
    (
        "string",
        TimestampType(),
        {"'2026-01-02 03:04:05.123456'": dt.datetime(2026, 1, 2, 3, 4, 5, 123456)},
        ["'2026-01-02 03:04:05.1234567'", "'2026-01-02 03:04:05+02:00'", "'2026-01-02 03:04:05Z'"],
    ),
    (
        "timestamp",
        DateType(),
        {"timestamp'2026-01-02 00:00:00'": dt.date(2026, 1, 2)},
        ["timestamp'2026-01-02 01:00:00'"],
    ),
    ("int", StringType(), {"7": "7"}, []),
    (
        "string",
        UUIDType(),
        {"'ABCDEF00-0000-0000-0000-000000000000'": "abcdef00-0000-0000-0000-000000000000"},
        ["'abc'"],
    ),
    ("binary", FixedType(2), {"X'0001'": b"\x00\x01"}, ["X'00'"]),
    ("void", IntegerType(), {"null": None}, []),
]


def test_a_cast_keeps_a_value_or_fails(spark_sql: SqlRunner) -> None:
    for source, target, kept, lost in CASTS:
        convert = sql.conversion(parse_type(source), target)
        assert convert is not None, (source, target)
        for value, expected in kept.items():
            (row,) = spark_sql(f"SELECT {convert.checked(value, 'lost: ')}, {convert.is_lossy(f'({value})')}")
            found = bytes(row[0]) if isinstance(expected, bytes) else row[0]
            assert (found, row[1]) == (expected, False), (source, target, value)
        for value in lost:
            ((is_lossy,),) = spark_sql(f"SELECT {convert.is_lossy(f'({value})')}")
            assert is_lossy is True, (source, target, value)
            with pytest.raises(Exception, match="lost: "):
                spark_sql(f"SELECT {convert.checked(value, 'lost: ')}")


@pytest.mark.parametrize(
    ("source", "target"),
    [
        ("boolean", IntegerType()),
        ("int", BooleanType()),
        ("int", DateType()),
        ("date", IntegerType()),
        ("binary", StringType()),
        ("array<int>", StringType()),
        ("int", ListType(1, IntegerType())),
        ("array<bigint>", ListType(1, IntegerType())),
        ("interval day to second", StringType()),
    ],
)
def test_types_that_have_no_cast_that_keeps_values_are_refused(source: str, target: IcebergType) -> None:
    assert sql.conversion(parse_type(source), target) is None
    assert sql.conversion(Leaf("void"), target) is not None
