"""What the catalog knows of a staged batch without reading its rows."""

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from decimal import Decimal
from typing import Any

from pyiceberg.conversions import from_bytes
from pyiceberg.manifest import DataFile, DataFileContent
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.types import (
    DateType,
    DecimalType,
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
)
from pyiceberg.utils.datetime import days_to_date, micros_to_timestamp, micros_to_timestamptz

from dbt.adapters.sparkevolve.evolution.names import fold

# Types whose order and whose literals are the same for Iceberg, Spark and Python.
_PLAIN_VALUES: dict[type, Callable[[Any], Any]] = {
    IntegerType: int,
    LongType: int,
    StringType: str,
    DecimalType: Decimal,
    DateType: days_to_date,
    TimestampType: micros_to_timestamp,
    TimestamptzType: micros_to_timestamptz,
}
_NOT_ASCII = re.compile(r"[^\x00-\x7f]")


class StagedBatch:
    """What the catalog knows of a staged batch without reading it.

    Attributes:
        schema: the exact types of what the model returned.
        location: where its files are.
        written_ms: when it was staged, by Spark's clock, in milliseconds since the epoch.
        rows: how many rows it has.
        columns_without_null: folded names of the top-level columns that are known to hold no NULL. Of a
            struct, a list or a map Iceberg counts none: they are known once the rows were asked.
        filled: folded paths inside columns that are known to hold no NULL, since its rows were looked at.
        bounds: by folded name a value that no other in the column is less than, and one that no other is
            greater than; for columns of some simple types whose bounds were kept.
    """

    def __init__(self, table: Table, bookkeeping: Collection[str] = ()) -> None:
        """Read the table's schema and manifests.

        Args:
            table: the staged batch.
            bookkeeping: folded names of columns that are not for the target.
        """
        fields = [field for field in table.schema().fields if fold(field.name) not in bookkeeping]
        self.schema: Schema = Schema(*fields)
        self.location: str = table.location()
        snapshot = table.current_snapshot()
        self.written_ms: int = snapshot.timestamp_ms if snapshot else table.metadata.last_updated_ms
        files = [task.file for task in table.scan().plan_files()]
        self.rows: int = sum(f.record_count for f in files if f.content == DataFileContent.DATA)
        # Neither in Avro nor where the catalog wants no metrics is anything counted.
        self._counted = frozenset(
            fold(field.name)
            for field in self.schema.fields
            if all(field.field_id in (f.null_value_counts or {}) for f in files)
        )
        self.columns_without_null = frozenset(
            fold(field.name)
            for field in self.schema.fields
            if not self.rows
            or (
                not isinstance(field.field_type, StructType | ListType | MapType)
                and all((f.null_value_counts or {}).get(field.field_id) == 0 for f in files)
            )
        )
        self.filled: frozenset[tuple[str, ...]] = frozenset()
        found = {fold(field.name): _bounds(field, files) for field in self.schema.fields}
        self.bounds = {name: pair for name, pair in found.items() if pair is not None}

    def may_have_bounds(self, name: str) -> bool:
        """Tell whether a column is of a type whose bounds are read, if there are rows and they were kept."""
        found = (f for f in self.schema.fields if fold(f.name) == fold(name))
        return any(type(f.field_type) in _PLAIN_VALUES for f in found)

    def uncounted(self, target: Schema) -> list[str]:
        """Return the names of columns that are NOT NULL in the target, whose NULLs are not counted here."""
        wanted = {fold(f.name) for f in target.fields if f.required}
        nested = {fold(f.name) for f in self.schema.fields if not f.field_type.is_primitive}
        wanted -= self.columns_without_null | (self._counted - nested)
        return [f.name for f in self.schema.fields if fold(f.name) in wanted]

    def add_counts(self, nulls: Mapping[str, int]) -> None:
        """Take note of how many NULLs there are in columns."""
        self.columns_without_null |= {fold(name) for name, number in nulls.items() if number == 0}


def _bounds(field: NestedField, files: Sequence[DataFile]) -> tuple[Any, Any] | None:
    """Return a lower and an upper bound of a column over all its files, or None if they are not known."""
    convert = _PLAIN_VALUES.get(type(field.field_type))
    if convert is None or not isinstance(field.field_type, PrimitiveType):
        return None
    lows, highs = [], []
    for file in files:
        low = (file.lower_bounds or {}).get(field.field_id)
        high = (file.upper_bounds or {}).get(field.field_id)
        if low is None or high is None:
            return None
        try:
            lows.append(convert(from_bytes(field.field_type, low)))
            highs.append(convert(from_bytes(field.field_type, high)))
        except (OverflowError, ValueError):
            return None  # a year that Python's calendar does not have, or half a character
    if not lows:
        return None
    if isinstance(field.field_type, StringType):
        return _bounds_of_texts(min(lows), max(highs))
    return min(lows), max(highs)


def _bounds_of_texts(low: str, high: str) -> tuple[str, str] | None:
    """Return the next wider bounds that are ASCII; None if there are none.

    A string that is not valid UTF-8 has U+FFFD in Iceberg's bounds, of a batch and of a file of the target,
    and is less or greater than these. With the ASCII that it begins with, its bounds begin, too.
    """
    start, end = _NOT_ASCII.split(low)[0], _NOT_ASCII.split(high)[0]
    if end == high:
        return start, high
    return (start, end[:-1] + chr(ord(end[-1]) + 1)) if end else None
