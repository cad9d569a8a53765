"""Plain values in SQL: a query of rows, as a seed has them, and the literal of one value."""

import json
import re
from collections.abc import Iterator, Sequence
from datetime import datetime
from decimal import Decimal
from typing import Any

from dbt.adapters.sparkevolve.evolution.names import quote, string_literal

_IS_TEXT = re.compile(r"\s*(string|varchar|char|character)\b", re.IGNORECASE)
_IS_FLOAT = re.compile(r"\s*(float|real|double)\b", re.IGNORECASE)
# Between rows, so that a statement has no line of megabytes.
_JOINT = ",\n"
# Spark's reader of JSON takes a text of at most 20,000,000 UTF-16 units, of which a character has two at the
# most, and returns NULL for the whole document otherwise. The reader of seeds stops far below that.
_LONGEST_TEXT = 10_000_000


def values_queries(
    columns: Sequence[str], types: Sequence[str], rows: Sequence[Sequence[Any]], characters: int
) -> list[str]:
    """Return queries that together return rows of plain values, each cast to the type of its column.

    All rows of a query stand in it as one text, of JSON: Spark takes many times as long for an expression a
    value, and for bindings a time that grows with the square of their number. Without rows there is one
    query, which returns none and has the columns all the same.

    Args:
        columns: the name of each column.
        types: the Spark SQL type of each column.
        rows: None, bool, numbers, dates, times and texts.
        characters: how long a query's text of JSON may be; a longer row has a query of its own.

    Raises:
        ValueError: a text is so long that Spark would return no row for it.
    """
    booleans = [any(isinstance(row[index], bool) for row in rows) for index in range(len(columns))]
    values = (
        f"{_converted(f'r[{index}]', name, type_, is_boolean)} AS {quote(name)}"
        for index, (name, type_, is_boolean) in enumerate(zip(columns, types, booleans, strict=True))
    )
    select = "SELECT " + ", ".join(values)
    return [
        f"{select}\nFROM (SELECT explode(from_json({string_literal(text)}, 'array<array<string>>')) AS r)"
        for text in _json_texts(rows, len(columns), characters)
    ]


def _converted(text: str, name: str, type_: str, is_boolean: bool) -> str:
    """Return the SQL of a text in a column's type, which fails if it has no such value, ANSI mode or not."""
    value = f"CAST({text} AS boolean)" if is_boolean else text
    if _IS_TEXT.match(type_):
        return f"CAST({value} AS {type_})"
    converted = f"TRY_CAST({value} AS {type_})"
    if _IS_FLOAT.match(type_):
        # Spark reads a number that is too great as infinity.
        is_named = f"lower({text}) LIKE '%inf%'"
        converted = f"CASE WHEN {is_named} OR abs({converted}) <> double('Infinity') THEN {converted} END"
    reason = string_literal(f"The value of column {quote(name)} is no {type_}: ")
    problem = f"raise_error(concat({reason}, {text}))"
    return f"CASE WHEN {text} IS NOT NULL THEN coalesce({converted}, {problem}) END"


def _json_texts(rows: Sequence[Sequence[Any]], width: int, characters: int) -> Iterator[str]:
    lines: list[str] = []
    length = 0
    for row in rows:
        texts = [_text(value) for _, value in zip(range(width), row, strict=True)]
        longest = max((len(text) for text in texts if text is not None), default=0)
        if longest > _LONGEST_TEXT:
            raise ValueError(
                f"A value has {longest} characters, and at most {_LONGEST_TEXT} can be written in a query."
            )
        line = json.dumps(texts, ensure_ascii=False, separators=(",", ":"))
        if lines and length + len(line) > characters:
            yield f"[{_JOINT.join(lines)}]"
            lines, length = [], 0
        lines.append(line)
        length += len(line)
    yield f"[{_JOINT.join(lines)}]"


def literal(value: Any) -> str:
    """Return a plain value as a SQL literal from which a CAST gets it back without loss.

    Numbers go as text: a seed's are decimals, and a float would round a large one.
    """
    text = _text(value)
    if text is None:
        return "NULL"
    return text if isinstance(value, bool) else string_literal(text)


def _text(value: Any) -> str | None:
    if value is None:
        return None
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, Decimal):
        return format(value, "f")
    if isinstance(value, datetime):
        return value.isoformat(sep=" ")
    return str(value)
