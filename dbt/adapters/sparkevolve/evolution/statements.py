"""The text of the statements that load a staged batch. Each function returns one statement, without ``;``."""

from collections.abc import Sequence
from datetime import datetime
from decimal import Decimal
from typing import Any

from dbt.adapters.sparkevolve.evolution.names import quote, string_literal
from dbt.adapters.sparkevolve.evolution.projection import ProjectedColumn

# dbt's own names for the two sides: users write them in `incremental_predicates`.
TARGET_ALIAS = "DBT_INTERNAL_DEST"
SOURCE_ALIAS = "DBT_INTERNAL_SOURCE"


def delete_statement(
    target: str,
    staged: str,
    unique_key: Sequence[str],
    *,
    null_safe: bool,
    predicates: Sequence[str] = (),
) -> str:
    """Return the DELETE of the target's rows whose whole key is in the batch.

    Args:
        target: the rendered name of the table.
        staged: the rendered name of the staged batch.
        unique_key: names of one or more key columns; the staged batch is read by the same names, in
            whatever case it spells them.
        null_safe: NULL equals NULL. Needed only if the batch has a NULL in a key column; it costs 1.3 to
            1.5 times the other form.
        predicates: SQL conditions on the target that limit the rows to look at.

    Raises:
        ValueError: no key; the statement would delete every row.
    """
    if not unique_key:
        raise ValueError("a DELETE needs at least one key column")
    keys = [quote(name) for name in unique_key]
    if null_safe:
        matches = " AND ".join(f"{SOURCE_ALIAS}.{key} <=> {TARGET_ALIAS}.{key}" for key in keys)
        condition = f"EXISTS (SELECT 1 FROM {staged} AS {SOURCE_ALIAS} WHERE {matches})"
    else:
        left = ", ".join(f"{TARGET_ALIAS}.{key}" for key in keys)
        right = ", ".join(f"{SOURCE_ALIAS}.{key}" for key in keys)
        left = left if len(keys) == 1 else f"({left})"
        condition = f"{left} IN (SELECT {right} FROM {staged} AS {SOURCE_ALIAS})"
    conditions = [condition, *(f"({predicate})" for predicate in predicates)]
    return f"DELETE FROM {target} AS {TARGET_ALIAS}\nWHERE " + "\n  AND ".join(conditions)


def insert_statement(target: str, staged: str, columns: Sequence[ProjectedColumn]) -> str:
    """Return the INSERT of the whole batch into every column of the target, removed ones padded.

    Args:
        target: the rendered name of the table.
        staged: the rendered name of the staged batch.
        columns: the refreshed columns in table order.
    """
    names = ", ".join(quote(column.name) for column in columns)
    values = ",\n  ".join(_select_item(column) for column in columns)
    return f"INSERT INTO {target} ({names})\nSELECT\n  {values}\nFROM {staged} AS {SOURCE_ALIAS}"


def values_statement(target: str, types: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """Return the INSERT of rows of plain values, each cast to the type of its column.

    Values stand in the text: Spark takes a time that grows with the square of the number of bindings.

    Args:
        target: the rendered name of the table.
        types: the Spark SQL type of each column.
        rows: None, bool, numbers, dates, times and texts.
    """
    lines = (
        "(" + ", ".join(f"CAST({literal(v)} AS {t})" for v, t in zip(row, types, strict=True)) + ")"
        for row in rows
    )
    return f"INSERT INTO {target} VALUES\n" + ",\n".join(lines)


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


def _select_item(column: ProjectedColumn) -> str:
    return f"{column.render(SOURCE_ALIAS)} AS {quote(column.name)}"
