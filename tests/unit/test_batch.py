"""What a staged batch's manifests tell of its keys."""

from collections.abc import Callable
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyiceberg.conversions import to_bytes
from pyiceberg.manifest import DataFile, DataFileContent
from pyiceberg.schema import Schema
from pyiceberg.types import (
    DateType,
    DecimalType,
    IcebergType,
    IntegerType,
    LongType,
    NestedField,
    StringType,
    TimestampType,
    TimestamptzType,
)

from dbt.adapters.sparkevolve.iceberg.catalog import IcebergCatalog
from dbt.adapters.sparkevolve.iceberg.staged_batch import StagedBatch
from dbt.adapters.sparkevolve.iceberg.staging import staging_properties
from tests.unit.conftest import MakeTable
from tests.unit.helpers import TYPES, array, columns, mapping, struct

UTC = timezone.utc
Rows = list[dict[str, object]]


@pytest.fixture
def stage(lake: IcebergCatalog, make_table: MakeTable) -> Callable[..., StagedBatch]:
    """Stage files of rows as a run does, and read what is known of them."""

    def staged(schema: Schema, *files: Rows, keys: tuple[str, ...], **options: Any) -> StagedBatch:
        target = make_table(schema, *files, properties=staging_properties(keys))
        return lake.staged_batch(target, **options)

    return staged


Stage = Callable[..., StagedBatch]


@pytest.mark.parametrize(
    ("type_", "first", "second", "low", "high"),
    [
        ("int", [3, -5], [7], -5, 7),
        ("int", [-(2**31)], [2**31 - 1], -(2**31), 2**31 - 1),
        ("bigint", [2**63 - 1], [-(2**63)], -(2**63), 2**63 - 1),
        ("string", ["b", "B"], ["a", "zé"], "B", "{"),
        ("string", [""], ["it's"], "", "it's"),
        (
            "decimal(10,2)",
            [Decimal("-0.01"), Decimal("5.10")],
            [Decimal("-10.00")],
            Decimal("-10.00"),
            Decimal("5.10"),
        ),
        (
            "decimal(38,0)",
            [Decimal(10**38 - 1)],
            [Decimal(-(10**38) + 1)],
            Decimal(-(10**38) + 1),
            Decimal(10**38 - 1),
        ),
        (
            "date",
            [date(1969, 12, 31)],
            [date(1, 1, 1), date(9999, 12, 31)],
            date(1, 1, 1),
            date(9999, 12, 31),
        ),
        (
            "timestamp_ntz",
            [datetime(1969, 12, 31, 23, 59, 59, 999999)],
            [datetime(2024, 1, 1)],
            datetime(1969, 12, 31, 23, 59, 59, 999999),
            datetime(2024, 1, 1),
        ),
        (
            "timestamp",
            [datetime(2024, 1, 1, tzinfo=UTC)],
            [datetime(2024, 1, 1, tzinfo=timezone(timedelta(hours=2)))],
            datetime(2023, 12, 31, 22, tzinfo=UTC),
            datetime(2024, 1, 1, tzinfo=UTC),
        ),
    ],
)
def test_the_bounds_of_a_key_span_all_its_files(
    stage: Stage, type_: str, first: list[object], second: list[object], low: object, high: object
) -> None:
    files = [[{"K": value} for value in values] for values in (first, second)]
    batch = stage(columns(f"K {type_}"), *files, keys=("K",))
    assert batch.bounds == {"k": (low, high)}
    assert [type(value) for value in batch.bounds["k"]] == [type(low), type(high)]


@pytest.mark.parametrize(
    ("type_", "value"),
    [("boolean", True), ("float", 1.5), ("double", 0.0), ("binary", b"x"), ("fixed", b"0" * 16)],
)
def test_a_key_of_a_type_with_an_order_or_literals_of_its_own_has_no_bounds(
    stage: Stage, type_: str, value: object
) -> None:
    batch = stage(columns(f"k {type_}"), [{"k": value}], keys=("k",))
    assert batch.bounds == {}
    assert batch.columns_without_null == {"k"}


def test_nested_columns_have_no_bounds(stage: Stage) -> None:
    schema = columns(
        "s, l, m",
        s=struct(10, k=IntegerType()),
        l=array(20, IntegerType()),
        m=mapping(30, IntegerType(), IntegerType()),
    )
    batch = stage(schema, [{"s": {"k": 1}, "l": [1], "m": [(1, 1)]}], keys=("s", "l", "m", "s.k"))
    assert batch.bounds == {}


def test_only_keys_have_bounds(stage: Stage) -> None:
    batch = stage(columns("Key int, x int"), [{"Key": 1, "x": 2}], keys=("Key",))
    assert batch.bounds == {"key": (1, 1)}
    assert batch.columns_without_null == {"key", "x"}


def test_a_long_text_is_between_its_bounds(stage: Stage) -> None:
    """Bounds of texts are cut after 16 characters, the upper one to something that is greater."""
    long = "a" * 15 + "bz"
    batch = stage(columns("k string"), [{"k": long}, {"k": "a" * 15 + "by"}], keys=("k",))
    low, high = batch.bounds["k"]
    assert (low, high) == ("a" * 15 + "b", "a" * 15 + "c")
    assert low <= long <= high


def test_a_text_that_nothing_short_is_greater_than_has_no_bounds(stage: Stage) -> None:
    batch = stage(columns("k string"), [{"k": "\U0010ffff" * 17}], keys=("k",))
    assert batch.bounds == {}


def test_null_is_not_within_bounds_and_is_known_of(stage: Stage) -> None:
    batch = stage(columns("k int"), [{"k": None}, {"k": 4}, {"k": 2}], keys=("k",))
    assert batch.bounds == {"k": (2, 4)}
    assert batch.columns_without_null == frozenset()


@pytest.mark.parametrize("files", [[[{"k": None}]], [[{"k": 1}], [{"k": None}]], [[]], []])
def test_a_file_without_a_value_leaves_the_bounds_unknown(stage: Stage, files: list[Rows]) -> None:
    assert stage(columns("k int"), *files, keys=("k",)).bounds == {}


def test_bookkeeping_is_left_out_of_everything_but_the_rows(stage: Stage) -> None:
    schema = columns("id int, DBT_change_type string, x int")
    rows: Rows = [{"id": 1, "DBT_change_type": "insert", "x": None}]
    batch = stage(schema, rows, keys=("id", "DBT_change_type"), bookkeeping=["dbt_change_type"])
    assert [field.name for field in batch.schema.fields] == ["id", "x"]
    assert [field.field_id for field in batch.schema.fields] == [1, 3]
    assert batch.columns_without_null == {"id"}
    assert batch.bounds == {"id": (1, 1)}
    assert batch.rows == 1


class Staged:
    """A table that has files with the given metrics."""

    metadata = SimpleNamespace(last_updated_ms=0)

    def __init__(self, field: NestedField, *files: DataFile) -> None:
        self._schema, self._files = Schema(field), files

    def location(self) -> str:
        return "file:///warehouse/db/t"

    def current_snapshot(self) -> None:
        return None

    def schema(self) -> Schema:
        return self._schema

    def scan(self) -> "Staged":
        return self

    def plan_files(self) -> list[Any]:
        return [type("Task", (), {"file": file}) for file in self._files]


def data_file(
    low: bytes | None, high: bytes | None, content: DataFileContent = DataFileContent.DATA
) -> DataFile:
    return DataFile.from_args(
        content=content,
        record_count=1,
        lower_bounds=None if low is None else {1: low},
        upper_bounds=None if high is None else {1: high},
        null_value_counts={1: 0},
    )


def bounds_of(type_: IcebergType, *files: DataFile) -> tuple[Any, Any] | None:
    return StagedBatch(Staged(NestedField(1, "K", type_, required=False), *files)).bounds.get("k")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("type_", "low", "high"),
    [
        (DateType(), 2932897, 2932897),  # 10000-01-01
        (DateType(), -719163, 0),  # the day before 0001-01-01
        (TimestampType(), 253402300800000000, 253402300800000000),
        (TimestamptzType(), -62135596800000001, 0),
    ],
)
def test_a_year_that_python_does_not_have_leaves_the_bounds_unknown(
    type_: IcebergType, low: int, high: int
) -> None:
    assert bounds_of(type_, data_file(to_bytes(type_, low), to_bytes(type_, high))) is None
    inside = data_file(to_bytes(type_, 0), to_bytes(type_, 0))
    assert bounds_of(type_, inside) is not None
    assert bounds_of(type_, inside, data_file(to_bytes(type_, low), to_bytes(type_, high))) is None


def test_half_a_character_leaves_the_bounds_unknown() -> None:
    assert bounds_of(StringType(), data_file("é".encode()[:1], b"z")) is None
    assert bounds_of(StringType(), data_file(b"a", "é".encode()[:1])) is None
    assert bounds_of(StringType(), data_file(b"", "zé".encode())) == ("", "{")


@pytest.mark.parametrize(
    ("low", "high", "found"),
    [
        ("aé", "axyé", ("a", "axz")),
        ("a\ufffd", "a\ufffdb", ("a", "b")),
        ("é", "z", ("", "z")),
        ("a" * 15 + "\ufffe", "b", ("a" * 15, "b")),
        ("", "\x7f\u0080", ("", "\u0080")),
        ("é", "é", None),
        ("A", "\ufffd", None),
    ],
)
def test_bounds_of_texts_are_ascii(low: str, high: str, found: tuple[str, str] | None) -> None:
    """Iceberg has U+FFFD for what is no UTF-8: X'C3' is less than that, and X'FF' is greater."""
    assert bounds_of(StringType(), data_file(low.encode(), high.encode())) == found


# Pieces of texts of which some are no UTF-8.
_PIECES = st.sampled_from([b"A", b"B", b"\x7f", b"\xc3", b"\xa9", b"\xff", "é".encode()])
_TEXTS = st.lists(st.lists(_PIECES, max_size=4).map(b"".join), min_size=1, max_size=3)


@settings(deadline=None)
@given(st.lists(_TEXTS, min_size=1, max_size=3), st.data())
def test_no_file_is_left_out_that_has_a_text_of_a_batch(
    files: list[list[bytes]], data: st.DataObject
) -> None:
    """Texts are ordered by their bytes, and bounds have what Iceberg makes of these."""

    def shown(text: bytes) -> str:
        return text.decode(errors="replace")

    staged = [data_file(shown(min(f)).encode(), shown(max(f)).encode()) for f in files]
    found = bounds_of(StringType(), *staged)
    key = data.draw(st.sampled_from([key for file in files for key in file]))
    target = [key, *data.draw(_TEXTS)]
    if found is not None:
        assert found[0].encode() <= key <= found[1].encode()
        assert shown(min(target)) <= found[1]
        assert shown(max(target)) >= found[0]


@pytest.mark.parametrize(("low", "high"), [(None, b"z"), (b"a", None), (None, None)])
def test_one_missing_bound_leaves_both_unknown(low: bytes | None, high: bytes | None) -> None:
    assert bounds_of(StringType(), data_file(low, high)) is None
    assert bounds_of(StringType(), data_file(b"a", b"z"), data_file(low, high)) is None


def test_only_data_files_hold_rows() -> None:
    files = (data_file(b"a", b"b"), data_file(b"a", b"b", DataFileContent.POSITION_DELETES))
    staged: Any = Staged(NestedField(1, "k", StringType(), required=False), *files)
    assert StagedBatch(staged).rows == 1


_VALUES: dict[IcebergType, st.SearchStrategy[Any]] = {
    IntegerType(): st.integers(-(2**31), 2**31 - 1),
    LongType(): st.integers(-(2**63), 2**63 - 1),
    StringType(): st.text(st.characters(codec="ascii"), max_size=8),
    DecimalType(10, 2): st.decimals(min_value=-99999999, max_value=99999999, places=2),
    DateType(): st.dates(),
    TimestampType(): st.datetimes(),
    TimestamptzType(): st.datetimes(timezones=st.just(UTC)),
}


@settings(deadline=None)
@given(st.data(), st.sampled_from(sorted(_VALUES, key=str)))
def test_every_value_of_a_batch_is_between_its_bounds(data: st.DataObject, type_: IcebergType) -> None:
    values = data.draw(st.lists(st.lists(_VALUES[type_], min_size=1, max_size=3), min_size=1, max_size=3))
    files = [data_file(to_bytes(type_, min(v)), to_bytes(type_, max(v))) for v in values]
    every = [value for file in values for value in file]
    assert bounds_of(type_, *files) == (min(every), max(every))


def test_the_types_with_bounds_are_those_that_have_one_order_everywhere() -> None:
    known = {name for name, type_ in TYPES.items() if type_ in _VALUES}
    assert known == {"int", "bigint", "string", "date", "timestamp", "timestamp_ntz"}
