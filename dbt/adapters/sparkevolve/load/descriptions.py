"""Descriptions of columns that a table does not have, of which dbt warns once it stores the others."""

from collections.abc import Collection, Iterable, Mapping
from typing import Any

from dbt.adapters.sparkevolve.evolution.names import fold


def undescribed(
    relation: object, columns: Mapping[str, Mapping[str, Any]], names: Collection[str]
) -> list[str]:
    """Return what dbt's macro `validate_doc_columns` would warn of, word for word; nothing if it would not.

    Args:
        relation: the table.
        columns: what a node's properties say of its columns, by name.
        names: the columns that the table has, or will have.
    """
    missing = [
        name for name, of in columns.items() if not _is_there(name, names, is_quoted=bool(of.get("quote")))
    ]
    if not missing:
        return []
    return [
        f"In relation {relation}: The following columns are specified in the schema but are not present in "
        f"the database: {', '.join(missing)}"
    ]


def _is_there(name: str, names: Iterable[str], *, is_quoted: bool) -> bool:
    return name in names if is_quoted else fold(name) in map(fold, names)
