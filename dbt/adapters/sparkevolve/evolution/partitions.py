"""What a table is partitioned by: as Iceberg has it, and as one writes it in ``partition_by``."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from dbt.adapters.sparkevolve.evolution.names import Path, fold, quote

# Other names that Spark's DDL has for a transform of Iceberg's.
_OTHER_NAMES = {
    "year": "years",
    "month": "months",
    "day": "days",
    "date": "days",
    "hour": "hours",
    "date_hour": "hours",
}
_CALL = re.compile(r"(\w+)\s*\((.*)\)", re.DOTALL)


@dataclass(frozen=True, order=True)
class Part:
    """One thing that a table is partitioned by.

    Attributes:
        transform: ``identity``, ``years``, ``months``, ``days``, ``hours``, ``bucket`` or ``truncate``.
        column: the folded path of the column, without backticks.
        width: the number of a ``bucket`` or ``truncate``, else empty.
    """

    transform: str
    column: str
    width: str = ""

    def __str__(self) -> str:
        if self.transform == "identity":
            return self.column
        return (
            f"{self.transform}({self.width}, {self.column})"
            if self.width
            else f"{self.transform}({self.column})"
        )


@dataclass(frozen=True)
class PartitionValue:
    """One of the values by which a table chooses the partition of a row.

    Attributes:
        transform: as in ``Part``.
        path: the path of the column or field, spelled as the table has it.
        width: as in ``Part``.
    """

    transform: str
    path: Path
    width: str = ""

    def render(self, value: str, catalog: str) -> str:
        """Return the expression of the value, of which Iceberg's functions give what Iceberg stores.

        Args:
            value: the expression of the column.
            catalog: the name of the table's catalog in Spark.
        """
        inner = ".".join([value, *map(quote, self.path[1:])])
        if self.transform == "identity":
            return inner
        arguments = f"{self.width}, {inner}" if self.width else inner
        return f"{quote(catalog)}.system.{self.transform}({arguments})"


def part(transform: str, column: str, width: str = "") -> Part:
    """Return a part, whatever way its transform and its column are written."""
    name = transform.lower()
    return Part(_OTHER_NAMES.get(name, name), column_key(column), width.strip())


def column_key(column: str) -> str:
    """Return what a column, or the path of a field, is found by: folded and without backticks."""
    return fold(column.replace("`", "").strip())


def parse_partitions(partition_by: str | Sequence[str] | None) -> tuple[Part, ...]:
    """Return what ``partition_by`` says: a string or a list, as dbt-spark takes it."""
    texts = [partition_by] if isinstance(partition_by, str) else list(partition_by or ())
    return tuple(_parse(text) for listed in texts for text in split_terms(str(listed)))


def same_partitions(one: Iterable[Part], other: Iterable[Part], renames: Mapping[str, str]) -> bool:
    """Tell whether two tables would be partitioned the same, once columns are renamed from old to new."""
    flat = {fold(str(old).replace("`", "")): str(name) for old, name in renames.items()}
    # A dot parts a field from its struct, or is part of a column's name: only the table knows.
    nested = {old: old[: old.rfind(".") + 1] + name for old, name in flat.items()}

    def renamed(column: str, new: Mapping[str, str]) -> str:
        # Fields before the structs that they are in, whose old names their paths have.
        for old in sorted(new, key=len, reverse=True):
            if column == old or column.startswith(f"{old}."):
                column = new[old] + column[len(old) :]
        return column

    def after(parts: Iterable[Part], new: Mapping[str, str]) -> set[Part]:
        return {part(p.transform, renamed(p.column, new), p.width) for p in parts}

    return any(after(one, new) == after(other, new) for new in (flat, nested))


def _parse(text: str) -> Part:
    call = parse_call(text)
    if call is None:
        return part("identity", text)
    transform, arguments = call
    numbers = [argument for argument in arguments if argument.strip().isdigit()]
    columns = [argument for argument in arguments if argument not in numbers]
    return part(transform, ",".join(columns), ",".join(numbers))


def parse_call(text: str) -> tuple[str, list[str]] | None:
    """Return the transform of a term and what stands between its commas; None for what is no call."""
    call = _CALL.fullmatch(text.strip())
    return None if call is None else (call[1], list(split_terms(call[2])))


def split_terms(text: str) -> Iterator[str]:
    """Yield what stands between the commas that are neither in parentheses nor in backticks."""
    start, depth, is_quoted = 0, 0, False
    for position, character in enumerate(text):
        if character == "`":
            is_quoted = not is_quoted
        elif is_quoted:
            continue
        elif character in "()":
            depth += 1 if character == "(" else -1
        elif character == "," and depth == 0:
            yield text[start:position]
            start = position + 1
    yield text[start:]
