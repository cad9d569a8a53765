"""Iceberg types: how one is written in Spark SQL, and which one can hold the values of another."""

import re
from collections.abc import Iterator
from typing import Literal

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
    MapType,
    NestedField,
    PrimitiveType,
    StringType,
    StructType,
    TimestampType,
    TimestamptzType,
    UnknownType,
    UUIDType,
)

from dbt.adapters.sparkevolve.evolution.names import Path, fold, quote

VARIANT: Literal["variant"] = "variant"
# Spark's names of types that a CAST takes for each other, and between which of these there is one.
_FAMILIES = {
    "number": r"int|bigint|float|double|decimal.*",
    "time": r"date|timestamp.*",
    "text": "string",
    "truth": "boolean",
    "bytes": "binary",
}
_CASTS = (
    {"number", "text"},
    {"number", "truth"},
    {"time", "text"},
    {"truth", "text"},
    {"text", "bytes"},
)


class VariantType(PrimitiveType):
    """Iceberg's `variant`, of format version 3, which PyIceberg 0.12 does not know."""

    root: Literal["variant"] = VARIANT

    def minimum_format_version(self) -> Literal[3]:
        """Return the first format version that has it."""
        return 3


# Iceberg's "timestamp" has no zone and is Spark's timestamp_ntz; Iceberg's "timestamptz" is Spark's
# timestamp, which SQL has to name timestamp_ltz: under `spark.sql.timestampType` the word `timestamp` may
# mean the other one. Spark reads and writes uuid as string, and fixed as binary.
_SPARK_NAMES: dict[type[IcebergType], str] = {
    BooleanType: "boolean",
    IntegerType: "int",
    LongType: "bigint",
    FloatType: "float",
    DoubleType: "double",
    DateType: "date",
    TimestampType: "timestamp_ntz",
    StringType: "string",
    UUIDType: "string",
    FixedType: "binary",
    BinaryType: "binary",
    UnknownType: "void",
    VariantType: VARIANT,
}

_BY_NAME = {name: type_ for type_, name in reversed(_SPARK_NAMES.items()) if type_ is not FixedType}

# How many decimal digits the integers of a type can have.
_INTEGER_DIGITS: dict[type[IcebergType], int] = {IntegerType: 10, LongType: 19}


class NoSparkType(ValueError):
    """An Iceberg type that Spark SQL has no name for.

    Attributes:
        iceberg_type: the type.
    """

    def __init__(self, iceberg_type: IcebergType) -> None:
        super().__init__(f"Spark SQL has no type for Iceberg's {iceberg_type}")
        self.iceberg_type = iceberg_type


def column_type(text: str) -> IcebergType:
    """Return the type of a column from what ``type_text`` says of it; of a nested one, that it is nested."""
    if text == "timestamp":
        return TimestamptzType()
    decimal = re.fullmatch(r"decimal\((\d+),(\d+)\)", text)
    if decimal is not None:
        return DecimalType(int(decimal[1]), int(decimal[2]))
    return _BY_NAME[text]() if text in _BY_NAME else StructType()


def spark_type(iceberg_type: IcebergType, timestamptz: str = "timestamp_ltz") -> str:
    """Return the Spark SQL type as which Spark reads ``iceberg_type``, the same under every setting.

    Nested names are quoted, so that the text can be used in a CAST whatever they are.

    Args:
        iceberg_type: the type.
        timestamptz: the word for Iceberg's timestamptz.

    Raises:
        NoSparkType: Spark has no such type (``time``, and whatever a later Iceberg brings).
    """

    def inner(type_: IcebergType) -> str:
        return spark_type(type_, timestamptz)

    if isinstance(iceberg_type, TimestamptzType):
        return timestamptz
    if isinstance(iceberg_type, DecimalType):
        return f"decimal({iceberg_type.precision},{iceberg_type.scale})"
    if isinstance(iceberg_type, StructType):
        fields = ",".join(f"{quote(f.name)}:{inner(f.field_type)}" for f in iceberg_type.fields)
        return f"struct<{fields}>"
    if isinstance(iceberg_type, ListType):
        return f"array<{inner(iceberg_type.element_type)}>"
    if isinstance(iceberg_type, MapType):
        return f"map<{inner(iceberg_type.key_type)},{inner(iceberg_type.value_type)}>"
    try:
        return _SPARK_NAMES[type(iceberg_type)]
    except KeyError:
        raise NoSparkType(iceberg_type) from None


def has_spark_type(iceberg_type: IcebergType) -> bool:
    """Tell whether Spark has a type for ``iceberg_type`` and all that is in it."""
    try:
        spark_type(iceberg_type)
    except NoSparkType:
        return False
    return True


def type_text(iceberg_type: IcebergType) -> str:
    """Return a type as a person reads it in a message: Spark's name for it, or Iceberg's own."""
    try:
        return spark_type(iceberg_type, timestamptz="timestamp")
    except NoSparkType:
        return str(iceberg_type)


def is_same(source: IcebergType, target: IcebergType) -> bool:
    """Tell whether the two types store the same values in the same shape.

    Field ids, documentation and nullability do not matter, and names compare by folded name. The order
    of struct fields does matter: Spark writes structs by position.
    """
    if isinstance(source, StructType) and isinstance(target, StructType):
        return len(source.fields) == len(target.fields) and all(
            map(_is_same_field, source.fields, target.fields)
        )
    if isinstance(source, ListType) and isinstance(target, ListType):
        return is_same(source.element_type, target.element_type)
    if isinstance(source, MapType) and isinstance(target, MapType):
        return is_same(source.key_type, target.key_type) and is_same(source.value_type, target.value_type)
    return source == target


def _is_same_field(source: NestedField, target: NestedField) -> bool:
    return fold(source.name) == fold(target.name) and is_same(source.field_type, target.field_type)


def is_safe_upcast(source: IcebergType, target: IcebergType) -> bool:
    """Tell whether each value of ``source`` can be cast to the wider ``target`` without any loss."""
    if isinstance(target, DecimalType):
        digits = _INTEGER_DIGITS.get(type(source))
        if digits is not None:
            return target.precision - target.scale >= digits
        return (
            isinstance(source, DecimalType)
            and source != target
            and target.scale >= source.scale
            and target.precision - target.scale >= source.precision - source.scale
        )
    if isinstance(source, IntegerType):
        return isinstance(target, LongType | DoubleType)
    return isinstance(source, FloatType) and isinstance(target, DoubleType)


def is_widening(old: IcebergType, new: IcebergType) -> bool:
    """Tell whether a column of the type ``old`` may become ``new`` without rewriting any data.

    Three are what the table spec allows in format version 2 ("Schema Evolution", type promotion). Of what
    version 3 adds, a column without a type gets one: it has no values yet. Iceberg 1.12 refuses the other, a
    date that becomes a timestamp. PyIceberg 0.12 accepts more, a changed decimal scale among it, after which
    old data is read wrong.
    """
    if isinstance(old, UnknownType):
        return new.is_primitive and not isinstance(new, UnknownType) and has_spark_type(new)
    if isinstance(old, DecimalType) and isinstance(new, DecimalType):
        return old.scale == new.scale and old.precision < new.precision
    if isinstance(old, IntegerType):
        return isinstance(new, LongType)
    return isinstance(old, FloatType) and isinstance(new, DoubleType)


def can_take(old: IcebergType, new: IcebergType, *, widens: bool = True) -> bool:
    """Tell whether a place of the type ``old`` can take each value of the type ``new``.

    It may be widened for that, and fields may be added to and missing in structs.

    Args:
        old: the type that a table has.
        new: the type that a model returns.
        widens: whether types may be widened.
    """

    def inner(one: IcebergType, other: IcebergType) -> bool:
        return can_take(one, other, widens=widens)

    if isinstance(old, StructType) and isinstance(new, StructType):
        there = {fold(f.name): f.field_type for f in old.fields}
        return all(inner(there[fold(f.name)], f.field_type) for f in new.fields if fold(f.name) in there)
    if isinstance(old, ListType) and isinstance(new, ListType):
        return inner(old.element_type, new.element_type)
    if isinstance(old, MapType) and isinstance(new, MapType):
        return is_same(new.key_type, old.key_type) and inner(old.value_type, new.value_type)
    as_text = (isinstance(old, UUIDType) and isinstance(new, StringType)) or (
        isinstance(old, FixedType) and isinstance(new, BinaryType)
    )
    return is_same(new, old) or is_safe_upcast(new, old) or as_text or (widens and is_widening(old, new))


def children(iceberg_type: IcebergType) -> tuple[NestedField, ...]:
    """Return the fields directly inside a type: of a struct, a list's element, a map's key and value."""
    if isinstance(iceberg_type, StructType):
        return iceberg_type.fields
    if isinstance(iceberg_type, ListType):
        return (iceberg_type.element_field,)
    if isinstance(iceberg_type, MapType):
        return (iceberg_type.key_field, iceberg_type.value_field)
    return ()


def fields_within(iceberg_type: IcebergType) -> Iterator[tuple[Path, NestedField]]:
    """Yield each field inside a type, however deep, with its path from there; outer ones first."""
    for child in children(iceberg_type):
        yield (child.name,), child
        for path, field in fields_within(child.field_type):
            yield (child.name, *path), field


def named_by_sql(table: IcebergType, path: Path) -> Path:
    """Return the folded path by which an expression names a field: without levels of lists and maps.

    Args:
        table: the columns of the table.
        path: the path of one of its fields, or of one that is to be added.
    """
    found: list[str] = []
    parent = table
    for name in path[:-1]:
        # What is in a list or a map directly has no name of its own.
        if isinstance(parent, StructType):
            found.append(fold(name))
        parent = next((f.field_type for f in children(parent) if f.name == name), StructType())
    return (*found, fold(path[-1]))


def may_be_cast(source: IcebergType, target: IcebergType) -> bool:
    """Tell whether some values of a type come through a CAST to another one, as the values they are."""
    if not (has_spark_type(source) and has_spark_type(target)):
        return False
    one, other = (_family(spark_type(type_)) for type_ in (source, target))
    return {one, other} in _CASTS or (one == other and one in ("number", "time"))


def _family(name: str) -> str:
    return next((family for family, word in _FAMILIES.items() if re.fullmatch(word, name)), "")


def has_map(iceberg_type: IcebergType) -> bool:
    """Tell whether a type is a map or has one in it."""
    return isinstance(iceberg_type, MapType) or any(has_map(f.field_type) for f in children(iceberg_type))


def has_variant(iceberg_type: IcebergType) -> bool:
    """Tell whether a type is a variant or has one in it."""
    inside = (has_variant(f.field_type) for f in children(iceberg_type))
    return isinstance(iceberg_type, VariantType) or any(inside)
