"""The text of what fills a column of a table, batch by batch, and of what is asked before."""

import math
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta, timezone

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
    StringType,
    StructType,
    TimestampType,
    TimestamptzType,
    UUIDType,
)

from dbt.adapters.sparkevolve.evolution.backfills import Bound
from dbt.adapters.sparkevolve.evolution.conversions import is_utf8, lossless
from dbt.adapters.sparkevolve.evolution.names import Path, fold, path_text, quote, string_literal
from dbt.adapters.sparkevolve.evolution.types import spark_type
from dbt.adapters.sparkevolve.sql.dml import TARGET_ALIAS, enclosed
from dbt.adapters.sparkevolve.sql.spark_types import Array, Leaf, Map, SparkType, Struct

VALUE = "dbt_internal_value"
_BOUNDS = (
    BooleanType,
    IntegerType,
    LongType,
    FloatType,
    DoubleType,
    DecimalType,
    StringType,
    UUIDType,
    DateType,
    TimestampType,
    TimestamptzType,
    BinaryType,
    FixedType,
)
_INTEGERS = ("tinyint", "smallint", "int", "bigint")
_FLOATS = ("float", "double")
_NAN = "NaN"


@dataclass(frozen=True)
class Column:
    """The column, or the field of a struct, that is filled.

    Attributes:
        path: its path, as the table spells it.
        type: its type.
        is_required: whether it is NOT NULL.
    """

    path: Path
    type: IcebergType
    is_required: bool

    @property
    def rendered(self) -> str:
        """Its name in SQL, with the alias of the table."""
        return f"{TARGET_ALIAS}.{path_text(self.path)}"

    def is_filled(self, *, only_null: bool) -> list[str]:
        """Return the conditions that a row is one to fill: a struct that is NULL has no fields to fill."""
        inside = [
            f"{TARGET_ALIAS}.{path_text(self.path[:depth])} IS NOT NULL" for depth in range(1, len(self.path))
        ]
        return [*inside, *([f"{self.rendered} IS NULL"] if only_null else [])]


@dataclass(frozen=True)
class KeyPart:
    """One of the things by which rows are put in an order, NULL first.

    Attributes:
        rendered: its expression in SQL.
        type: the Iceberg type of its values.
        label: how a person reads it.
        identity: the same by field ids: names and types of a column may become others.
    """

    rendered: str
    type: IcebergType
    label: str
    identity: str = ""

    @property
    def compared(self) -> str:
        """The expression that is compared: Iceberg orders a uuid otherwise than its text."""
        return f"lower({self.rendered})" if isinstance(self.type, UUIDType) else self.rendered

    def text(self, value: str) -> str:
        """Return the expression of a value's text, from which ``literal`` gets exactly the value back."""
        if isinstance(self.type, DateType):
            value = f"unix_date({value})"
        elif isinstance(self.type, TimestamptzType):
            value = f"unix_micros({value})"
        elif isinstance(self.type, BinaryType | FixedType):
            value = f"hex({value})"
        elif isinstance(self.type, FloatType):
            # The column may become a double, in which 0.1 is another value.
            value = f"CAST({value} AS DOUBLE)"
        elif isinstance(self.type, StringType):
            return f"IF({is_utf8(value)}, {value}, raise_error({string_literal(self._no_utf8)}))"
        return f"CAST({value} AS STRING)"

    @property
    def _no_utf8(self) -> str:
        # As a bound it would be another text, and rows of later batches before it, or of none.
        return (
            f"a string in {self.label} is not valid UTF-8, so rows cannot be put in an order by it: leave "
            "such rows out by `where`, or name other columns in `batch_by`"
        )

    def literal(self, text: str) -> str:
        """Return the value of a text that ``text`` has made, as SQL."""
        if isinstance(self.type, DateType):
            return f"date_from_unix_date(CAST({string_literal(text)} AS INT))"
        if isinstance(self.type, TimestamptzType):
            return f"timestamp_micros(CAST({string_literal(text)} AS BIGINT))"
        if isinstance(self.type, BinaryType | FixedType):
            return f"X'{text}'"
        if isinstance(self.type, StringType | UUIDType):
            return string_literal(text)
        # To Iceberg, which looks for files and partitions, -0.0 is less than 0.0. To Spark they are equal.
        return f"CAST({string_literal('0.0' if text == '-0.0' else text)} AS {spark_type(self.type)})"

    @property
    def _least_zero(self) -> str:
        return f"CAST('-0.0' AS {spark_type(self.type)})"

    def shown(self, text: str | None) -> str:
        """Return a text that ``text`` has made as a person reads it."""
        if text is None:
            return "NULL"
        try:
            if isinstance(self.type, DateType):
                return str(date(1970, 1, 1) + timedelta(days=int(text)))
            if isinstance(self.type, TimestamptzType):
                moment = datetime(1970, 1, 1, tzinfo=timezone.utc) + timedelta(microseconds=int(text))
                return moment.isoformat(sep=" ")
            if isinstance(self.type, FloatType):
                return _shortest(text)
        except OverflowError:
            pass
        return text

    def is_after(self, text: str | None) -> str:
        """Return the condition that a value comes after another one, of which this is the text."""
        if text is None:
            return f"{self.compared} IS NOT NULL"
        if not self._is_float:
            return f"{self.compared} > {self.literal(text)}"
        # NaN comes last. Iceberg has no literal for it, and leaves out a file with it if the greatest number
        # there is not greater.
        is_nan = f"isnan({self.compared})"
        return "false" if text == _NAN else f"({self.compared} > {self.literal(text)} OR {is_nan})"

    def is_before(self, text: str | None) -> str:
        """Return the condition that a value comes before another one."""
        if text is None:
            return "false"
        if text == _NAN and self._is_float:
            return f"({self.compared} IS NULL OR NOT isnan({self.compared}))"
        bound = self._least_zero if self._is_zero(text) else self.literal(text)
        return f"({self.compared} < {bound} OR {self.compared} IS NULL)"

    def is_up_to(self, text: str | None) -> str:
        """Return the condition that a value comes before another one or is it."""
        if text is None:
            return f"{self.compared} IS NULL"
        if text == _NAN and self._is_float:
            return "true"
        return f"({self.compared} <= {self.literal(text)} OR {self.compared} IS NULL)"

    def is_same(self, text: str | None) -> str:
        """Return the condition that a value is another one."""
        if text is None:
            return f"{self.compared} IS NULL"
        if text == _NAN and self._is_float:
            return f"isnan({self.compared})"
        if self._is_zero(text):
            return f"({self.compared} >= {self._least_zero} AND {self.compared} <= {self.literal(text)})"
        return f"{self.compared} = {self.literal(text)}"

    def _is_zero(self, text: str) -> bool:
        return self._is_float and text in ("0.0", "-0.0")

    @property
    def _is_float(self) -> bool:
        return isinstance(self.type, FloatType | DoubleType)


def _shortest(text: str) -> str:
    """Return the shortest text that is read as the same value of single precision as the text of a double."""
    value = float(text)
    if "E" in text or not math.isfinite(value):
        return text
    shorter = (str(float(f"{value:.{digits}g}")) for digits in range(1, 10))
    return next((t for t in shorter if struct.pack("f", float(t)) == struct.pack("f", value)), text)


def is_orderable(type_: IcebergType) -> bool:
    """Tell whether rows can be put in an order by values of a type."""
    return isinstance(type_, _BOUNDS)


def after(key: Sequence[KeyPart], bound: Bound) -> str:
    """Return the condition that a row's key comes after a bound."""
    condition = key[-1].is_after(bound[-1])
    for part, text in reversed(list(zip(key[:-1], bound[:-1], strict=True))):
        condition = f"({part.is_after(text)} OR ({part.is_same(text)} AND {condition}))"
    return condition


def up_to(key: Sequence[KeyPart], bound: Bound) -> str:
    """Return the condition that a row's key comes before a bound or is it."""
    condition = key[-1].is_up_to(bound[-1])
    for part, text in reversed(list(zip(key[:-1], bound[:-1], strict=True))):
        condition = f"({part.is_before(text)} OR ({part.is_same(text)} AND {condition}))"
    return condition


def between(key: Sequence[KeyPart], low: Bound | None, high: Bound | None) -> list[str]:
    """Return the conditions that a row's key is after one bound, and up to another; None is no bound."""
    if not key:
        return []
    # What both bounds have in common is one partition, or one value: Iceberg leaves out the files of others.
    same = []
    if low is not None and high is not None:
        for part, one, other in zip(key[:-1], low[:-1], high[:-1], strict=True):
            if one != other:
                break
            same.append(part.is_same(one))
    return [
        *same,
        *([] if low is None else [after(key, low)]),
        *([] if high is None else [up_to(key, high)]),
    ]


@dataclass(frozen=True)
class Conversion:
    """How a value becomes one of the column's type, and whether anything of it is lost.

    Attributes:
        cast: returns the expression of the new value, for the expression of the value.
        keeps: returns the condition that nothing is lost; None if nothing ever is.
    """

    cast: Callable[[str], str]
    keeps: Callable[[str], str] | None = None

    def checked(self, value: str, message: str) -> str:
        """Return the expression of the new value, which fails where something would be lost.

        Args:
            value: the SQL of the value, which is evaluated once.
            message: what the error says before the value.
        """
        if self.keeps is None:
            return self.cast(f"({value}\n)")
        failing = f"raise_error(concat({string_literal(message)}, CAST({VALUE} AS STRING)))"
        checked = f"IF({self.keeps(VALUE)}, {self.cast(VALUE)}, {failing})"
        return f"element_at(transform(array({value}\n), {VALUE} -> {checked}), 1)"

    def is_lossy(self, value: str) -> str:
        """Return the condition that something of a value would be lost."""
        return "false" if self.keeps is None else f"NOT {self.keeps(value)}"


def conversion(source: SparkType, target: IcebergType) -> Conversion | None:
    """Return how values of a Spark type become those of a column; None if they do not.

    Args:
        source: the type of the values.
        target: the type of the column.
    """
    if isinstance(source, Leaf) and source.is_void:
        return Conversion(lambda value: f"CAST({value} AS {spark_type(target)})")
    if isinstance(target, StructType | ListType | MapType):
        return Conversion(_same) if _is_same_shape(source, target) else None
    if not isinstance(source, Leaf):
        return None
    text = "string" if source.text.startswith(("char(", "varchar(")) else source.text
    if isinstance(target, UUIDType):
        return Conversion(lambda v: f"lower({v})", _is_uuid) if text == "string" else None
    if isinstance(target, FixedType):
        length = len(target)
        found = Conversion(_same, lambda v: f"({v} IS NULL OR octet_length({v}) = {length})")
        return found if text == "binary" else None
    return _of_leaf(text, spark_type(target), target)


def _of_leaf(source: str, name: str, target: IcebergType) -> Conversion | None:
    if source == ("timestamp" if name == "timestamp_ltz" else name):
        return Conversion(_same)

    def cast(value: str) -> str:
        return f"try_cast({value} AS {name})"

    def back(value: str) -> str:
        same = f"try_cast({cast(value)} AS {source}) <=> {value}"
        # Spark takes the first number that is no bigint for the greatest one, and rounds that up to it.
        if source == "bigint" and name in _FLOATS:
            same = f"({cast(value)} < CAST('9223372036854775808' AS {name}) AND {same})"
        elif source in _FLOATS and name == "bigint":
            same = f"({value} < CAST('9223372036854775808' AS {source}) AND {same})"
        return f"({value} IS NULL OR {same})"

    times = {"date", "timestamp", "timestamp_ntz"}
    kinds = [{*_INTEGERS, *_FLOATS, "decimal"}, times]
    kind_of_name = "timestamp" if name == "timestamp_ltz" else name.split("(")[0]
    if any(source.split("(")[0] in kind and kind_of_name in kind for kind in kinds):
        return Conversion(cast, back)
    if name == "string" and source.split("(")[0] in {*_INTEGERS, *_FLOATS, "decimal", "boolean", *times}:
        return Conversion(cast)
    if source == "string":
        return Conversion(cast, lambda v: f"({v} IS NULL OR ({_is_read(v, cast(v), name, target)}))")
    return None


def _is_read(value: str, cast: str, name: str, target: IcebergType) -> str:
    """Return the condition that a text is that of a value of the target's type, to its last digit."""
    found = f"{cast} IS NOT NULL"
    if isinstance(target, DecimalType):
        wide = f"decimal(38,{38 - (target.precision - target.scale)})"
        return f"{found} AND try_cast({cast} AS {wide}) <=> try_cast({value} AS {wide})"
    if isinstance(target, DateType):
        return f"{found} AND CAST({cast} AS timestamp_ntz) <=> try_cast({value} AS timestamp_ntz)"
    if isinstance(target, FloatType | DoubleType):
        # Spark reads a number that is too great as infinity, one that is too small as 0.
        return f"({lossless(value, StringType(), target)}) IS NOT NULL"
    if isinstance(target, TimestampType | TimestamptzType):
        found += f" AND NOT {value} RLIKE '[.][0-9]{{6}}[0-9]*[1-9]'"
    if isinstance(target, TimestampType):
        # Spark would leave out a time zone.
        found += f" AND NOT {value} RLIKE ':.*[-+A-Za-z]'"
    return found


def _same(value: str) -> str:
    return value


def _is_uuid(value: str) -> str:
    pattern = "'^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}'"
    return f"({value} IS NULL OR (length({value}) = 36 AND {value} RLIKE {pattern}))"


def _is_same_shape(source: SparkType, target: IcebergType) -> bool:
    if isinstance(target, StructType):
        return (
            isinstance(source, Struct)
            and len(source.fields) == len(target.fields)
            and all(
                fold(name) == fold(f.name) and _is_same_shape(type_, f.field_type)
                for (name, type_), f in zip(source.fields, target.fields, strict=True)
            )
        )
    if isinstance(target, ListType):
        return isinstance(source, Array) and _is_same_shape(source.element, target.element_type)
    if isinstance(target, MapType):
        return (
            isinstance(source, Map)
            and _is_same_shape(source.key, target.key_type)
            and _is_same_shape(source.value, target.value_type)
        )
    return isinstance(source, Leaf) and source.text == spark_type(target, timestamptz="timestamp")


def value_query(table: str, value: str) -> str:
    """Return the query of the value of each row."""
    return f"SELECT ({value}\n) AS {quote(VALUE)} FROM {table} AS {TARGET_ALIAS}"


def rows_query(table: str, condition: str) -> str:
    """Return a query of the rows that meet a condition; of an aggregate, Spark refuses it."""
    return f"SELECT 1 AS one FROM {table} AS {TARGET_ALIAS} WHERE ({condition}\n)"


def _matched(conditions: Sequence[str]) -> str:
    return "WHERE " + "\n  AND ".join(conditions) if conditions else ""


def batches_query(
    table: str,
    value: str,
    convert: Conversion,
    key: Sequence[KeyPart],
    conditions: Sequence[str],
    rows_per_batch: int | None,
) -> str:
    """Return the query of the batches, in order, one a row.

    Each has the texts of its last key, how many rows it has, for how many of them the value is NULL, and for
    how many something of it would be lost.

    Args:
        table: the rendered name of the table.
        value: the SQL of the value.
        convert: how it becomes one of the column's type.
        key: by what rows are put in an order; empty for one batch of all rows.
        conditions: those that a row meets.
        rows_per_batch: how many rows a batch has at least, if there are more; None for a batch of each key.
    """
    alias = quote(VALUE)
    counts = (
        f"count(*) AS `n`, count_if({alias} IS NULL) AS `blank`, "
        f"count_if({convert.is_lossy(alias)}) AS `lossy`"
    )
    keys = [quote(f"key_{number}") for number, _ in enumerate(key)]
    items = [f"{part.compared} AS {name}" for part, name in zip(key, keys, strict=True)]
    rows = (
        f"SELECT {', '.join([*items, f'({value}{chr(10)}) AS {alias}'])}\n"
        f"FROM {table} AS {TARGET_ALIAS}\n{_matched(conditions)}"
    )
    if not key:
        return f"SELECT {counts}\nFROM (\n{rows}\n)"
    listed = ", ".join(keys)
    order = f"OVER (ORDER BY {', '.join(f'{name} ASC NULLS FIRST' for name in keys)}"
    running = f"sum(`n`) {order} ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW)"
    number = (
        f"row_number() {order})" if rows_per_batch is None else f"({running} - `n`) DIV {int(rows_per_batch)}"
    )
    last = ", ".join(f"max_by({part.text(name)}, `seen`)" for part, name in zip(key, keys, strict=True))
    return (
        f"SELECT {last}, sum(`n`), sum(`blank`), sum(`lossy`)\nFROM (\n"
        f"SELECT *, {running} AS `seen`, {number} AS `batch`\nFROM (\n"
        f"SELECT {listed}, {counts}\nFROM (\n{rows}\n)\nGROUP BY {listed}\n)\n)\n"
        "GROUP BY `batch`\nORDER BY `batch`"
    )


def lossy_values(table: str, value: str, convert: Conversion, conditions: Sequence[str], limit: int) -> str:
    """Return the query of a few values of which something would be lost, as texts."""
    alias = quote(VALUE)
    return (
        f"SELECT DISTINCT CAST({alias} AS STRING)\nFROM (\n"
        f"SELECT ({value}\n) AS {alias}\nFROM {table} AS {TARGET_ALIAS}\n{_matched(conditions)}\n)\n"
        f"WHERE {convert.is_lossy(alias)}\nORDER BY 1\nLIMIT {limit}"
    )


def update_statement(table: str, column: Column, value: str, conditions: Sequence[str]) -> str:
    """Return the UPDATE that fills a column in rows that meet conditions.

    Args:
        table: the rendered name of the table, or of a branch of it.
        column: the column.
        value: the SQL of the new value.
        conditions: those that a row meets.
    """
    matched = _matched(conditions)
    end = f"\n{matched}" if matched else ""
    return f"UPDATE {table} AS {TARGET_ALIAS}\nSET {column.rendered} = {value}{end}"


def row_conditions(column: Column, where: str, *, only_null: bool) -> list[str]:
    """Return the conditions that a row is one to fill, whatever its key."""
    return [*column.is_filled(only_null=only_null), *([enclosed(where)] if where else [])]
