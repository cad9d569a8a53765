"""Which columns of a batch are looked at value by value, and by what SQL."""

import pytest
from pyiceberg.schema import Schema
from pyiceberg.types import (
    DecimalType,
    DoubleType,
    IcebergType,
    IntegerType,
    ListType,
    LongType,
    MapType,
    NestedField,
    StringType,
    StructType,
    UUIDType,
)

from dbt.adapters.sparkevolve.evolution.conversions import (
    Unchanged,
    Whole,
    conversions,
    converted_schema,
    lossless,
)
from dbt.adapters.sparkevolve.evolution.policy import Policy
from tests.unit.helpers import columns

INT, LONG, TEXT = IntegerType(), LongType(), StringType()


def schema(*types: IcebergType, required: bool = False, ids: tuple[int, ...] = ()) -> Schema:
    fields = [NestedField(n, f"c{n}", type_, required=required) for n, type_ in enumerate(types, start=1)]
    return Schema(*fields, identifier_field_ids=list(ids))


def struct(type_: IcebergType, required: bool = False) -> StructType:
    return StructType(NestedField(11, "a", type_, required=required), NestedField(12, "b", TEXT))


@pytest.mark.parametrize(
    ("table", "batch", "widening"),
    [
        (INT, INT, True),
        (LONG, INT, True),
        (INT, LONG, True),
        (DoubleType(), INT, False),
        (INT, struct(INT), True),
    ],
)
def test_what_the_plan_does_or_refuses_is_left_to_it(
    table: IcebergType, batch: IcebergType, widening: bool
) -> None:
    (member,) = conversions(schema(table), schema(batch), Policy(type_widening=widening))
    assert member.conversion == Unchanged()
    assert not member.is_needed


def test_a_column_that_may_not_be_widened_takes_the_values_that_fit() -> None:
    (member,) = conversions(schema(INT), schema(LONG), Policy(type_widening=False))
    assert member.conversion == Whole(("c1",), LONG, INT)
    assert member.conversion.render("x") == "TRY_CAST(x AS int)"
    assert list(member.failures("x", 0)) == [
        (
            "`c1`: the value does not convert to int without loss",
            "x IS NOT NULL AND TRY_CAST(x AS int) IS NULL",
        )
    ]


def test_values_inside_are_converted_and_the_rest_of_the_batch_is_as_it_was() -> None:
    inside = [struct(INT), ListType(21, INT), MapType(31, TEXT, 32, struct(INT))]
    returned = [struct(TEXT), ListType(21, TEXT), MapType(31, TEXT, 32, struct(TEXT))]
    members = conversions(schema(*inside), schema(*returned), Policy())
    cast = "CASE WHEN {0} RLIKE '(?s)^(?:0|-?[1-9][0-9]*)(?!.)' THEN TRY_CAST({0} AS int) END"
    rebuilt = "IF({0} IS NULL, NULL, named_struct('a', {1}, 'b', {0}.`b`))"
    assert [m.conversion.render("x") for m in members] == [
        rebuilt.format("x", cast.format("x.`a`")),
        f"transform(x, value_0 -> {cast.format('value_0')})",
        f"transform_values(x, (key_0, value_0) -> {rebuilt.format('value_0', cast.format('value_0.`a`'))})",
    ]
    failing = "{0} IS NOT NULL AND " + cast + " IS NULL"
    assert [list(m.failures("x", 0)) for m in members] == [
        [
            (
                "`c1`.`a`: the value does not convert to int without loss",
                f"x IS NOT NULL AND {failing.format('x.`a`')}",
            )
        ],
        [
            (
                "`c2`.`element`: the value does not convert to int without loss",
                f"coalesce(exists(x, value_0 -> {failing.format('value_0')}), false)",
            )
        ],
        [
            (
                "`c3`.`value`.`a`: the value does not convert to int without loss",
                "coalesce(exists(map_values(x), value_0 -> value_0 IS NOT NULL AND "
                f"{failing.format('value_0.`a`')}), false)",
            )
        ],
    ]
    assert [f.field_type for f in converted_schema(schema(*returned), members).fields] == inside


def test_null_is_looked_for_where_the_table_takes_none_for_good() -> None:
    table = schema(INT, required=True)
    null = [("`c1`: NULL, and the column is NOT NULL", "x IS NULL")]
    for policy, expected in (
        (Policy(), []),
        (Policy(relax_not_null=False), null),
        (Policy(relax_not_null=False, columns_without_null=frozenset({"c1"})), []),
    ):
        (member,) = conversions(table, schema(INT), policy)
        assert list(member.failures("x", 0)) == expected
    (member,) = conversions(schema(INT, required=True, ids=(1,)), schema(INT), Policy())
    assert list(member.failures("x", 0)) == null


def test_a_renamed_column_is_compared_with_the_one_that_it_was() -> None:
    table, batch = Schema(NestedField(1, "old", INT)), Schema(NestedField(1, "NEW", TEXT))
    (member,) = conversions(table, batch, Policy(renames={"old": "new"}))
    assert member.conversion == Whole(("NEW",), TEXT, INT)
    (member,) = conversions(table, batch, Policy())
    assert member.conversion == Unchanged()


def test_a_type_that_spark_does_not_know_is_checked_and_not_converted() -> None:
    (member,) = conversions(schema(UUIDType()), schema(TEXT), Policy())
    assert not member.conversion.converts
    assert member.is_needed
    assert [reason for reason, _ in member.failures("x", 0)] == ["`c1`: the value is no uuid"]
    assert converted_schema(schema(TEXT), [member]) == schema(TEXT)


def test_a_decimal_keeps_its_digits() -> None:
    sql = lossless("x", DecimalType(12, 3), DecimalType(10, 2))
    assert sql == "CASE WHEN x % CAST('0.01' AS decimal(3,2)) = 0 THEN TRY_CAST(x AS decimal(10,2)) END"
    sql = lossless("x", DecimalType(12, 3), DecimalType(10, 0))
    assert sql == "CASE WHEN x % CAST('1' AS decimal(1,0)) = 0 THEN TRY_CAST(x AS decimal(10,0)) END"


def test_a_column_that_is_retired_and_replaced_is_not_converted() -> None:
    target, source = columns("id int, amount string"), columns("id int, amount int")
    members = conversions(target, source, Policy(renames={"amount": "amount_old"}))
    assert converted_schema(source, members) == source
    assert converted_schema(source, conversions(target, source, Policy())) != source
