"""The text of the queries that check loaded rows against a model's audits."""

from collections.abc import Sequence
from dataclasses import replace

from dbt.adapters.sparkevolve.evolution.names import quote, string_literal
from dbt.adapters.sparkevolve.sql.dml import TARGET_ALIAS, Key, enclosed, unmet


def loaded_rows(table: str, files: Sequence[str], staged: str, key: Key | None) -> str:
    """Return the query of the rows that a load has written.

    Args:
        table: the rendered name of the branch.
        files: the data files that the load has added.
        staged: the rendered name of the staged batch.
        key: the key of a MERGE: it may have copied rows that it did not change into its files. None if the
            files hold nothing else. Its predicates do not count: an inserted row need not meet them.
    """
    paths = ", ".join(string_literal(path) for path in files)
    matching = f"\n  AND {replace(key, predicates=()).in_batch(staged)}" if key is not None else ""
    # Without the alias: a struct of the table that is called as this one would be asked for such a field.
    return f"SELECT *\nFROM {table} AS {TARGET_ALIAS}\nWHERE `_file` IN ({paths}){matching}"


def count_violations(rows: str, audits: Sequence[str]) -> str:
    """Return the query of how many rows fail each audit; a predicate that is NULL fails."""
    counts = ",\n  ".join(
        f"count_if({unmet(enclosed(audit))}) AS {quote(f'audit_{n}')}" for n, audit in enumerate(audits)
    )
    return f"SELECT\n  {counts}\nFROM (\n{rows}\n) AS {TARGET_ALIAS}"


def some_violations(rows: str, audit: str, columns: Sequence[str], limit: int) -> str:
    """Return the query of some columns of a few rows that fail an audit, each column as text."""
    # By name: what DISTINCT leaves has no other, and numbers are positions under one setting only.
    texts = {quote(f"text_{n}"): f"CAST({TARGET_ALIAS}.{quote(c)} AS STRING)" for n, c in enumerate(columns)}
    shown = ", ".join(f"{text} AS {name}" for name, text in texts.items())
    return (
        f"SELECT DISTINCT {shown}\nFROM (\n{rows}\n) AS {TARGET_ALIAS}\n"
        f"WHERE {unmet(enclosed(audit))}\nORDER BY {', '.join(texts)}\nLIMIT {limit}"
    )
