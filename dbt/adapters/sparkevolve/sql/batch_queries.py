"""The text of what is asked of a staged batch."""

from collections.abc import Sequence

from dbt.adapters.sparkevolve.evolution.names import quote
from dbt.adapters.sparkevolve.evolution.projection import ProjectedColumn
from dbt.adapters.sparkevolve.sql.dml import SOURCE_ALIAS, TARGET_ALIAS, Key, enclosed
from dbt.adapters.sparkevolve.sql.mentions import has_query


def count_nulls(staged: str, names: Sequence[str]) -> str:
    """Return the query of how many NULLs each of these columns of a staged batch has."""
    counts = ", ".join(f"count_if({SOURCE_ALIAS}.{quote(name)} IS NULL)" for name in names)
    return f"SELECT {counts}\nFROM {staged} AS {SOURCE_ALIAS}"


def repeated_keys(staged: str, key: Key, limit: int) -> str:
    """Return the query of a few keys that the batch has several rows of, as texts, with their number."""
    names = [f"{SOURCE_ALIAS}.{quote(name)}" for name in key.names]
    shown = ", ".join(f"CAST({name} AS STRING)" for name in names)
    values = zip(key.staged_values(SOURCE_ALIAS), key.names, strict=True)
    items = ", ".join(f"{value} AS {quote(name)}" for value, name in values)
    return (
        f"SELECT {shown}, count(*)\nFROM (SELECT {items} FROM {staged} AS {SOURCE_ALIAS}) AS {SOURCE_ALIAS}\n"
        f"GROUP BY {', '.join(names)}\nHAVING count(*) > 1\nORDER BY {shown}\nLIMIT {limit}"
    )


def planned_rows(staged: str, columns: Sequence[ProjectedColumn]) -> str:
    """Return the query of a staged batch's rows as the table will have them.

    Args:
        staged: the rendered name of the staged batch.
        columns: all columns of the table after the evolution.
    """
    items = ",\n  ".join(f"{column.render(SOURCE_ALIAS)} AS {quote(column.name)}" for column in columns)
    return f"SELECT\n  {items}\nFROM {staged} AS {SOURCE_ALIAS}"


def limited_rows(rows: str, staged: str, predicates: Sequence[str], *, with_source: bool) -> str:
    """Return a query in which `incremental_predicates` are read as a load reads them.

    Args:
        rows: a query of rows with the columns of the table.
        staged: the rendered name of the staged batch.
        predicates: one or more of them.
        with_source: whether they may name columns of the batch too.
    """
    beside = f"{staged} AS {SOURCE_ALIAS}" if with_source else "(SELECT 1 AS `sparkevolve_row`)"
    # As in MERGE and DELETE, and not in WHERE, what is not deterministic is refused in a join's condition;
    # but so are some queries, too.
    joined = [text for text in predicates if not has_query(text)] or ["true"]
    on, where = ("\n  AND ".join(map(enclosed, texts)) for texts in (joined, predicates))
    return f"SELECT 1 AS found\nFROM {beside}\nJOIN (\n{rows}\n) AS {TARGET_ALIAS}\nON {on}\nWHERE {where}"
