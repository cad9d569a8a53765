"""Whether the columns that a new table gets can be what it is to be partitioned by."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from dbt.adapters.sparkevolve.evolution import refusals
from dbt.adapters.sparkevolve.evolution.partitions import Part

_TIMES = ("timestamp", "timestamp_ntz")
_WITH_ORDER = ("int", "bigint", "decimal", "string", "binary")
_DATES = ("date", *_TIMES), "a date or a timestamp"
# Iceberg's transforms -> the types that they take, and how one says that. Any other is left to Spark.
_TAKES = {
    "years": _DATES,
    "months": _DATES,
    "days": _DATES,
    "hours": (_TIMES, "a timestamp"),
    "bucket": (
        (*_WITH_ORDER, "date", *_TIMES),
        "a whole number, a decimal, a string, a binary, a date or a timestamp",
    ),
    "truncate": (_WITH_ORDER, "a whole number, a decimal, a string or a binary"),
}
_NO_VALUES = ("struct<", "array<", "map<", "variant")


def partition_refusals(
    setting: str, parts: Iterable[Part], types: Mapping[str, str], returned: Sequence[tuple[str, str]]
) -> Iterator[refusals.Refusal]:
    """Yield why a table cannot be partitioned as its model says.

    Args:
        setting: ``partition_by`` or ``clustered_by``.
        parts: what it says.
        types: the type of each column and field that is inside of no list or map, by its folded path with
            dots in between.
        returned: the names and types of the columns.
    """
    for part in parts:
        type_ = types.get(part.column)
        if part.transform != "identity" and part.transform not in _TAKES:
            continue
        if type_ is None:
            yield refusals.no_partition_source(setting, str(part), part.column, returned)
        elif part.transform == "identity":
            if type_.startswith(_NO_VALUES):
                fitting = "it takes anything but a struct, list, map or variant"
                yield refusals.other_partition_source(setting, str(part), part.column, type_, fitting)
        else:
            taken, text = _TAKES[part.transform]
            if type_.partition("(")[0] not in taken:
                fitting = f"`{part.transform}` takes {text}"
                yield refusals.other_partition_source(setting, str(part), part.column, type_, fitting)
