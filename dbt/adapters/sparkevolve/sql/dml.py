"""The text of the statements that load a staged batch: DELETE, INSERT, INSERT OVERWRITE, MERGE.

Each function returns one statement, without ``;``.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

from dbt.adapters.sparkevolve.evolution.names import fold, quote, string_literal
from dbt.adapters.sparkevolve.evolution.partitions import PartitionValue
from dbt.adapters.sparkevolve.evolution.projection import (
    ProjectedColumn,
)
from dbt.adapters.sparkevolve.sql.values import literal

# dbt's own names for the two sides: users write them in `incremental_predicates`.
TARGET_ALIAS = "DBT_INTERNAL_DEST"
SOURCE_ALIAS = "DBT_INTERNAL_SOURCE"
PREVIOUS_ALIAS = "DBT_INTERNAL_PREVIOUS"

_SEVERAL = (
    "removed_columns is keep, but the table has several rows with the same unique_key, so there is no one "
    "previous value to keep. Remove the duplicates, or set removed_columns to null. The key: "
)


@dataclass(frozen=True)
class Key:
    """The key by which the rows of a batch and those of the table find each other.

    Attributes:
        names: one or more columns, spelled as the table has them.
        null_safe: NULL equals NULL. Needed only if the batch has a NULL in a key column; it costs 1.3 to
            1.5 times the other form.
        predicates: SQL conditions that limit the rows of the table to look at.
        rebuilt: those of the columns whose staged values are not yet what is stored. They are compared as
            they will be: Spark compares structs by position, whatever their fields are called.
    """

    names: tuple[str, ...]
    null_safe: bool = False
    predicates: tuple[str, ...] = ()
    rebuilt: tuple[ProjectedColumn, ...] = ()

    def __post_init__(self) -> None:
        if not self.names:
            # Without one, a DELETE would take every row.
            raise ValueError("a key needs at least one column")

    def staged_values(self, alias: str) -> list[str]:
        """Return the expression of each key column of a staged row, as the table will hold it."""
        rebuilt = {column.name: column.render(alias) for column in self.rebuilt}
        return [rebuilt.get(name, f"{alias}.{quote(name)}") for name in self.names]

    def match(self, staged: str, stored: str) -> str:
        """Return the condition that two rows have the same key, which NULL in it may or may not meet.

        Args:
            staged: the alias of a row of the batch.
            stored: the alias of a row of the table.
        """
        equals = "<=>" if self.null_safe else "="
        values = zip(self.staged_values(staged), self.names, strict=True)
        return " AND ".join(f"{value} {equals} {stored}.{quote(name)}" for value, name in values)

    def in_batch(self, staged: str) -> str:
        """Return the condition that a row of the table has a key of the batch, and meets the predicates."""
        if self.null_safe:
            stored = [f"{TARGET_ALIAS}.{quote(name)}" for name in self.names]
            condition = _is_among(staged, self.staged_values(SOURCE_ALIAS), stored)
        else:
            left = ", ".join(f"{TARGET_ALIAS}.{quote(name)}" for name in self.names)
            right = ", ".join(self.staged_values(SOURCE_ALIAS))
            left = left if len(self.names) == 1 else f"({left})"
            condition = f"{left} IN (SELECT {right} FROM {staged} AS {SOURCE_ALIAS})"
        return "\n  AND ".join([condition, *map(enclosed, self.predicates)])


def _is_among(staged: str, values: Sequence[str], stored: Sequence[str]) -> str:
    """Return the condition that some row of the batch has the same values as a row of the table, NULL too.

    Args:
        staged: the rendered name of the staged batch.
        values: the expressions of a row of the batch.
        stored: those of a row of the table, in the same order.
    """
    # In a subquery Spark takes its own columns first: a struct of the batch that is called as the alias of
    # the table would be taken for that. So nothing but these values is there.
    names = [f"key_{n}" for n, _ in enumerate(values)]
    items = ", ".join(f"{value} AS {name}" for value, name in zip(values, names, strict=True))
    match = " AND ".join(
        f"{SOURCE_ALIAS}.{name} <=> {value}" for name, value in zip(names, stored, strict=True)
    )
    batch = f"(SELECT {items} FROM {staged} AS {SOURCE_ALIAS}) AS {SOURCE_ALIAS}"
    return f"EXISTS (SELECT 1 FROM {batch} WHERE {match})"


def delete_statement(target: str, staged: str, key: Key) -> str:
    """Return the DELETE of the target's rows whose whole key is in the batch.

    Args:
        target: the rendered name of the table.
        staged: the rendered name of the staged batch, which is read by the same column names.
        key: the key.
    """
    return f"DELETE FROM {target} AS {TARGET_ALIAS}\nWHERE {key.in_batch(staged)}"


def delete_partitions(
    target: str,
    staged: str,
    columns: Sequence[ProjectedColumn],
    values: Sequence[PartitionValue],
    catalog: str,
) -> str:
    """Return the DELETE of the target's rows in the partitions that the batch has rows for, by value.

    Args:
        target: the rendered name of the table.
        staged: the rendered name of the staged batch.
        columns: the refreshed columns.
        values: what makes a row's partition, one or more; paths as the columns are called.
        catalog: the name of the table's catalog in Spark.
    """
    if not values:
        raise ValueError("a table without partitions is one partition")
    by_name = {column.name: column for column in columns}
    batch = [value.render(by_name[value.path[0]].render(SOURCE_ALIAS), catalog) for value in values]
    stored = [value.render(f"{TARGET_ALIAS}.{quote(value.path[0])}", catalog) for value in values]
    return f"DELETE FROM {target} AS {TARGET_ALIAS}\nWHERE {_is_among(staged, batch, stored)}"


def delete_where(target: str, conditions: Sequence[str]) -> str:
    """Return the DELETE of the target's rows that meet all of one or more conditions."""
    if not conditions:
        raise ValueError("a DELETE needs at least one condition")
    return f"DELETE FROM {target} AS {TARGET_ALIAS}\nWHERE " + "\n  AND ".join(map(enclosed, conditions))


def insert_statement(
    target: str, staged: str, columns: Sequence[ProjectedColumn], *, overwrite: bool = False
) -> str:
    """Return the INSERT of the whole batch into every column of the target, removed ones padded.

    Args:
        target: the rendered name of the table.
        staged: the rendered name of the staged batch.
        columns: the refreshed columns in table order.
        overwrite: replace what is there: all of it, or under Spark's dynamic partition overwrite the
            partitions that the batch has rows for.
    """
    verb = "INSERT OVERWRITE" if overwrite else "INSERT INTO"
    values = ",\n  ".join(_select_item(column) for column in columns)
    return f"{verb} {target} ({column_list(columns)})\nSELECT\n  {values}\nFROM {staged} AS {SOURCE_ALIAS}"


def insert_and_keep(
    target: str, staged: str, columns: Sequence[ProjectedColumn], key: Key, previous: str
) -> str:
    """Return the INSERT that fills removed columns with what the replaced rows have there.

    A key with several rows in the table has no one previous value: the statement fails and names it.

    Args:
        target: the rendered name of the table.
        staged: the rendered name of the staged batch.
        columns: the refreshed columns in table order.
        key: the key.
        previous: the rendered name under which the table can be read as it was before the DELETE.
    """
    kept = [column.name for column in columns if column.may_keep]
    if not kept:
        return insert_statement(target, staged, columns)
    # NULL in the rows of the batch that replace none, which get the default and not what such a join gives.
    marker = _name_beside("replaces", {column.name for column in columns})
    marked = [column.name for column in columns if column.pads_with_default]
    values = ",\n  ".join(
        f"IF({PREVIOUS_ALIAS}.{quote(marker)}, {column.render(SOURCE_ALIAS, PREVIOUS_ALIAS)}, "
        f"{column.render(SOURCE_ALIAS)}) AS {quote(column.name)}"
        if column.name in marked
        else _select_item(column, PREVIOUS_ALIAS)
        for column in columns
    )
    keys = [f"{TARGET_ALIAS}.{quote(name)}" for name in key.names]
    shown = ", ', ', ".join(f"coalesce(CAST({name} AS STRING), 'NULL')" for name in keys)
    several = f"raise_error(concat({string_literal(_SEVERAL)}, {shown}))"
    once = [
        f"IF(COUNT(*) = 1, FIRST({TARGET_ALIAS}.{quote(name)}), {several}) AS {quote(name)}"
        for name in kept
        if name not in key.names
    ]
    items = ",\n    ".join([*keys, *once, *([f"true AS {quote(marker)}"] if marked else [])])
    return (
        f"INSERT INTO {target} ({column_list(columns)})\nSELECT\n  {values}\n"
        f"FROM {staged} AS {SOURCE_ALIAS}\n"
        f"LEFT JOIN (\n  SELECT\n    {items}\n  FROM {previous} AS {TARGET_ALIAS}\n"
        f"  WHERE {key.in_batch(staged)}\n  GROUP BY {', '.join(keys)}\n) AS {PREVIOUS_ALIAS}\n"
        f"ON {key.match(SOURCE_ALIAS, PREVIOUS_ALIAS)}"
    )


def merge_statement(
    target: str,
    staged: str,
    columns: Sequence[ProjectedColumn],
    key: Key,
    update: Sequence[str],
) -> str:
    """Return the MERGE that updates rows whose key is in the batch, and inserts the others of the batch.

    What the model does not return keeps its value in an updated row, and is padded in an inserted one.

    Args:
        target: the rendered name of the table.
        staged: the rendered name of the staged batch.
        columns: the refreshed columns in table order.
        key: the key.
        update: names of the columns to update, as the table has them; none to leave matching rows alone.
    """
    conditions = [key.match(SOURCE_ALIAS, TARGET_ALIAS), *map(enclosed, key.predicates)]
    sets = [
        f"{TARGET_ALIAS}.{quote(column.name)} = {column.render(SOURCE_ALIAS, TARGET_ALIAS)}"
        for column in columns
        if column.name in update and column.source is not None
    ]
    updates = ["WHEN MATCHED THEN UPDATE SET\n  " + ",\n  ".join(sets)] if sets else []
    values = ",\n  ".join(column.render(SOURCE_ALIAS) for column in columns)
    return "\n".join(
        [
            f"MERGE INTO {target} AS {TARGET_ALIAS}",
            f"USING {staged} AS {SOURCE_ALIAS}",
            "ON " + "\n  AND ".join(conditions),
            *updates,
            f"WHEN NOT MATCHED THEN INSERT ({column_list(columns)})\nVALUES (\n  {values}\n)",
        ]
    )


def between(
    column: str, type_: str, low: Any, high: Any, *, or_null: bool = False, open_end: bool = False
) -> str:
    """Return the condition that a column of the target is between two plain values.

    Args:
        column: its name.
        type_: its Spark SQL type.
        low: the least value, itself included.
        high: the greatest value.
        or_null: NULL meets the condition too.
        open_end: the greatest value itself does not meet it.
    """
    name = f"{TARGET_ALIAS}.{quote(column)}"
    low_, high_ = (f"CAST({literal(value)} AS {type_})" for value in (low, high))
    condition = f"{name} >= {low_} AND {name} {'<' if open_end else '<='} {high_}"
    return f"{condition} OR {name} IS NULL" if or_null else condition


def enclosed(condition: str) -> str:
    """Return a condition that a user has written in parentheses, which a comment at its end leaves alone."""
    return f"({condition}\n)" if "--" in condition else f"({condition})"


def unmet(condition: str) -> str:
    """Return the condition of rows for which enclosed ones are false or NULL; an error if one is no boolean.

    Spark 3.5.0 pushes a negated `coalesce` down to Iceberg with an internal error.
    """
    return f"({condition} AND true) IS NOT TRUE"


def _name_beside(name: str, others: Collection[str]) -> str:
    """Return a name that none of the others is, in any case."""
    folded = {fold(other) for other in others}
    while name in folded:
        name += "_"
    return name


def _select_item(column: ProjectedColumn, previous_alias: str | None = None) -> str:
    return f"{column.render(SOURCE_ALIAS, previous_alias)} AS {quote(column.name)}"


def column_list(columns: Sequence[ProjectedColumn]) -> str:
    """Return the names of columns as they stand between the parentheses of an INSERT."""
    return ", ".join(quote(column.name) for column in columns)
