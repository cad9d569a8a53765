"""Plain values in SQL: a query of rows, as a seed has them, and the literal of one value."""

from collections.abc import Sequence
from datetime import datetime
from decimal import Decimal
from typing import Any

from dbt.adapters.sparkevolve.evolution.names import quote, string_literal


def values_query(columns: Sequence[str], types: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """Return a query of rows of plain values, each cast to the type of its column.

    Without rows it returns none, and has the columns all the same.
    Values stand in the text: Spark takes a time that grows with the square of the number of bindings.

    Args:
        columns: the name of each column.
        types: the Spark SQL type of each column.
        rows: None, bool, numbers, dates, times and texts.
    """
    lines = (
        "(" + ", ".join(f"CAST({literal(v)} AS {t})" for v, t in zip(row, types, strict=True)) + ")"
        for row in rows or [[None] * len(types)]
    )
    query = "VALUES\n" + ",\n".join(lines) + f"\nAS `seed` ({', '.join(map(quote, columns))})"
    return query if rows else f"SELECT * FROM {query} WHERE 1 = 0"


def literal(value: Any) -> str:
    """Return a plain value as a SQL literal from which a CAST gets it back without loss.

    Numbers go as text: a seed's are decimals, and a float would round a large one.
    """
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, Decimal):
        return string_literal(format(value, "f"))
    if isinstance(value, datetime):
        return string_literal(value.isoformat(sep=" "))
    return string_literal(str(value))
