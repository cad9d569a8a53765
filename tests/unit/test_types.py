"""Types: the Spark SQL name of an Iceberg type, and which type can hold the values of another."""

from itertools import product

import pytest
from pyiceberg.types import (
    DecimalType,
    DoubleType,
    FixedType,
    FloatType,
    IcebergType,
    IntegerType,
    ListType,
    LongType,
    MapType,
    NestedField,
    StringType,
    StructType,
    TimestampNanoType,
    TimestamptzNanoType,
    TimeType,
    UnknownType,
)

from dbt.adapters.sparkevolve.evolution.types import (
    NoSparkType,
    VariantType,
    fields_within,
    has_variant,
    is_safe_upcast,
    is_same,
    is_widening,
    spark_type,
    type_text,
)
from tests.unit.helpers import TYPES, array, mapping, struct

INT, LONG, STRING = IntegerType(), LongType(), StringType()


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("boolean", "boolean"),
        ("int", "int"),
        ("bigint", "bigint"),
        ("float", "float"),
        ("double", "double"),
        ("date", "date"),
        ("timestamp", "timestamp_ltz"),
        ("timestamp_ntz", "timestamp_ntz"),
        ("string", "string"),
        ("uuid", "string"),
        ("fixed", "binary"),
        ("binary", "binary"),
    ],
)
def test_each_primitive_type_has_the_name_that_spark_reads_it_as(name: str, text: str) -> None:
    assert spark_type(TYPES[name]) == text
    # A person reads Spark's own name for it; in SQL that means another type under spark.sql.timestampType.
    assert type_text(TYPES[name]) == ("timestamp" if name == "timestamp" else text)


@pytest.mark.parametrize(
    ("iceberg_type", "text"),
    [
        (DecimalType(38, 18), "decimal(38,18)"),
        (DecimalType(1, 0), "decimal(1,0)"),
        (array(1, INT), "array<int>"),
        (mapping(1, STRING, LONG), "map<string,bigint>"),
        (struct(1, x=INT), "struct<`x`:int>"),
        (struct(1, X=INT, **{"a.b": STRING, "q`q": LONG}), "struct<`X`:int,`a.b`:string,`q``q`:bigint>"),
        (
            array(1, struct(2, m=mapping(4, STRING, struct(6, d=DecimalType(9, 2), u=TYPES["uuid"])))),
            "array<struct<`m`:map<string,struct<`d`:decimal(9,2),`u`:string>>>>",
        ),
    ],
)
def test_nested_types_quote_each_name(iceberg_type: IcebergType, text: str) -> None:
    assert spark_type(iceberg_type) == text
    assert type_text(iceberg_type) == text


def test_a_nested_timestamp_is_named_in_sql_so_that_no_setting_changes_its_meaning() -> None:
    nested = array(1, struct(2, t=TYPES["timestamp"], n=TYPES["timestamp_ntz"]))
    assert spark_type(nested) == "array<struct<`t`:timestamp_ltz,`n`:timestamp_ntz>>"
    assert type_text(nested) == "array<struct<`t`:timestamp,`n`:timestamp_ntz>>"


@pytest.mark.parametrize(
    ("iceberg_type", "own_name"),
    [
        (TimeType(), "time"),
        (TimestampNanoType(), "timestamp_ns"),
        (TimestamptzNanoType(), "timestamptz_ns"),
    ],
)
def test_a_type_without_a_spark_name_is_refused_and_shown_by_its_own(
    iceberg_type: IcebergType, own_name: str
) -> None:
    with pytest.raises(NoSparkType) as raised:
        spark_type(iceberg_type)
    assert str(raised.value) == f"Spark SQL has no type for Iceberg's {own_name}"
    assert raised.value.iceberg_type == iceberg_type
    assert isinstance(raised.value, ValueError)
    assert type_text(iceberg_type) == own_name


@pytest.mark.parametrize(
    "iceberg_type",
    [array(1, TimeType()), mapping(1, TimeType(), INT), mapping(1, INT, TimeType()), struct(1, t=TimeType())],
)
def test_a_nested_type_without_a_spark_name_is_refused_for_its_part(iceberg_type: IcebergType) -> None:
    with pytest.raises(NoSparkType) as raised:
        spark_type(iceberg_type)
    assert raised.value.iceberg_type == TimeType()
    assert type_text(iceberg_type) == str(iceberg_type)


def test_types_of_format_version_3_have_names_too() -> None:
    assert spark_type(struct(1, v=VariantType(), u=UnknownType())) == "struct<`v`:variant,`u`:void>"
    assert VariantType().minimum_format_version() == 3


@pytest.mark.parametrize(
    ("iceberg_type", "expected"),
    [
        (VariantType(), True),
        (array(1, struct(2, v=VariantType())), True),
        (mapping(1, STRING, VariantType()), True),
        (struct(1, v=STRING), False),
    ],
)
def test_whether_there_is_a_variant_in_a_type(iceberg_type: IcebergType, expected: bool) -> None:
    assert has_variant(iceberg_type) is expected


@pytest.mark.parametrize("wanted", [INT, STRING, TYPES["timestamp"], DecimalType(38, 9), VariantType()])
def test_a_column_without_a_type_takes_any_primitive_one(wanted: IcebergType) -> None:
    assert is_widening(UnknownType(), wanted)


@pytest.mark.parametrize("wanted", [UnknownType(), array(1, INT), struct(1, x=INT), TimeType()])
def test_a_column_without_a_type_takes_no_other(wanted: IcebergType) -> None:
    assert not is_widening(UnknownType(), wanted)


PRIMITIVES: list[IcebergType] = [
    *TYPES.values(),
    DecimalType(9, 2),
    DecimalType(10, 2),
    DecimalType(10, 3),
    FixedType(8),
]
UPCASTS = {
    (IntegerType(), LongType()),
    (IntegerType(), DoubleType()),
    (DecimalType(9, 2), DecimalType(10, 3)),
    (FloatType(), DoubleType()),
    (DecimalType(9, 2), DecimalType(10, 2)),
}


def test_a_primitive_type_is_the_same_as_itself_only() -> None:
    same = {(s, t) for s, t in product(PRIMITIVES, repeat=2) if is_same(s, t)}
    assert same == {(t, t) for t in PRIMITIVES}


def test_exactly_the_lossless_casts_are_safe() -> None:
    safe = {(s, t) for s, t in product(PRIMITIVES, repeat=2) if is_safe_upcast(s, t)}
    assert safe == UPCASTS


WIDENINGS = {
    (IntegerType(), LongType()),
    (FloatType(), DoubleType()),
    (DecimalType(9, 2), DecimalType(10, 2)),
}


def test_exactly_the_promotions_of_the_spec_are_widenings() -> None:
    assert {(s, t) for s, t in product(PRIMITIVES, repeat=2) if is_widening(s, t)} == WIDENINGS


@pytest.mark.parametrize(
    ("source", "target", "safe"),
    [
        (INT, DecimalType(10, 0), True),
        (INT, DecimalType(9, 0), False),
        (INT, DecimalType(12, 2), True),
        (INT, DecimalType(12, 3), False),
        (LONG, DecimalType(19, 0), True),
        (LONG, DecimalType(18, 0), False),
        (LONG, DecimalType(38, 19), True),
        (LONG, DecimalType(38, 20), False),
        (DecimalType(9, 2), DecimalType(9, 1), False),
        (DecimalType(9, 2), DecimalType(11, 4), True),
        (DecimalType(9, 2), DecimalType(10, 4), False),
        (DecimalType(9, 2), DoubleType(), False),
        (INT, FloatType(), False),
        (LONG, DoubleType(), False),
        (DecimalType(9, 0), LONG, False),
    ],
)
def test_a_number_is_cast_only_where_each_digit_has_room(
    source: IcebergType, target: IcebergType, safe: bool
) -> None:
    assert is_safe_upcast(source, target) is safe


@pytest.mark.parametrize(
    ("source", "target"),
    [
        (array(1, INT), array(1, LONG)),
        (struct(1, x=INT), struct(1, x=LONG)),
        (mapping(1, STRING, INT), mapping(1, STRING, LONG)),
        (INT, array(1, LONG)),
        (DecimalType(9, 2), DecimalType(9, 2)),
    ],
)
def test_nothing_else_is_a_safe_upcast(source: IcebergType, target: IcebergType) -> None:
    assert is_safe_upcast(source, target) is False


@pytest.mark.parametrize(
    ("source", "target"),
    [
        (struct(1, a=INT, b=STRING), struct(71, A=INT, B=STRING)),
        (struct(1, İ=INT), struct(1, i̇=INT)),
        (array(1, struct(2, a=INT)), array(9, struct(5, A=INT))),
        (mapping(1, struct(3, k=INT), struct(4, v=INT)), mapping(7, struct(9, K=INT), struct(10, V=INT))),
        (
            StructType(NestedField(1, "a", INT, required=True, doc="x")),
            StructType(NestedField(2, "a", INT, required=False)),
        ),
        (ListType(1, INT, element_required=True), ListType(1, INT, element_required=False)),
        (MapType(1, INT, 2, INT, value_required=True), MapType(1, INT, 2, INT, value_required=False)),
        (StructType(), StructType()),
    ],
)
def test_ids_docs_nullability_and_case_make_no_other_type(source: IcebergType, target: IcebergType) -> None:
    assert is_same(source, target)
    assert is_same(target, source)


@pytest.mark.parametrize(
    ("source", "target"),
    [
        (struct(1, a=INT, b=INT), struct(1, b=INT, a=INT)),
        (struct(1, a=INT), struct(1, a=INT, b=INT)),
        (struct(1, a=INT), struct(1, b=INT)),
        (struct(1, a=INT), struct(1, a=LONG)),
        (struct(1, a=INT), StructType()),
        (struct(1, a=INT), INT),
        (array(1, INT), array(1, LONG)),
        (array(1, INT), INT),
        (array(1, INT), struct(1, element=INT)),
        (mapping(1, INT, STRING), mapping(1, LONG, STRING)),
        (mapping(1, INT, STRING), mapping(1, INT, LONG)),
        (mapping(1, INT, INT), array(1, INT)),
        (struct(1, straße=INT), struct(1, STRASSE=INT)),
    ],
)
def test_another_shape_is_another_type(source: IcebergType, target: IcebergType) -> None:
    assert not is_same(source, target)
    assert not is_same(target, source)


def test_fields_are_found_at_every_level_outer_ones_first() -> None:
    inner = struct(4, x=IntegerType(), l=array(6, StringType()))
    nested = struct(1, a=LongType(), m=mapping(2, StringType(), inner), z=StringType())
    found = [(".".join(path), f.field_id) for path, f in fields_within(nested)]
    assert found == [
        ("a", 1),
        ("m", 2),
        ("m.key", 2),
        ("m.value", 3),
        ("m.value.x", 4),
        ("m.value.l", 5),
        ("m.value.l.element", 6),
        ("z", 3),
    ]
    assert list(fields_within(IntegerType())) == []
