"""The text of what is asked of a staged batch."""

from collections.abc import Sequence

from dbt.adapters.sparkevolve.evolution.names import quote
from dbt.adapters.sparkevolve.sql.dml import SOURCE_ALIAS, Key


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
