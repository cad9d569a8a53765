"""The text of the statements that load a staged batch. Each function returns one statement, without ``;``."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from decimal import Decimal
from typing import Any

from dbt.adapters.sparkevolve.evolution.names import fold, quote, string_literal
from dbt.adapters.sparkevolve.evolution.partitions import PartitionValue
from dbt.adapters.sparkevolve.evolution.projection import (
    ProjectedColumn,
    RebuildList,
    RebuildMap,
    RebuildStruct,
)

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
            match = self.match(SOURCE_ALIAS, TARGET_ALIAS)
            condition = f"EXISTS (SELECT 1 FROM {staged} AS {SOURCE_ALIAS} WHERE {match})"
        else:
            left = ", ".join(f"{TARGET_ALIAS}.{quote(name)}" for name in self.names)
            right = ", ".join(self.staged_values(SOURCE_ALIAS))
            left = left if len(self.names) == 1 else f"({left})"
            condition = f"{left} IN (SELECT {right} FROM {staged} AS {SOURCE_ALIAS})"
        return "\n  AND ".join([condition, *map(_enclosed, self.predicates)])


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
    match = " AND ".join(
        f"{value.render(by_name[value.path[0]].render(SOURCE_ALIAS), catalog)} <=> "
        f"{value.render(f'{TARGET_ALIAS}.{quote(value.path[0])}', catalog)}"
        for value in values
    )
    return (
        f"DELETE FROM {target} AS {TARGET_ALIAS}\n"
        f"WHERE EXISTS (SELECT 1 FROM {staged} AS {SOURCE_ALIAS} WHERE {match})"
    )


def delete_where(target: str, conditions: Sequence[str]) -> str:
    """Return the DELETE of the target's rows that meet all of one or more conditions."""
    if not conditions:
        raise ValueError("a DELETE needs at least one condition")
    return f"DELETE FROM {target} AS {TARGET_ALIAS}\nWHERE " + "\n  AND ".join(map(_enclosed, conditions))


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
    return f"{verb} {target} ({_names(columns)})\nSELECT\n  {values}\nFROM {staged} AS {SOURCE_ALIAS}"


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
    values = ",\n  ".join(_select_item(column, PREVIOUS_ALIAS) for column in columns)
    keys = [f"{TARGET_ALIAS}.{quote(name)}" for name in key.names]
    shown = ", ', ', ".join(f"coalesce(CAST({name} AS STRING), 'NULL')" for name in keys)
    several = f"raise_error(concat({string_literal(_SEVERAL)}, {shown}))"
    once = [
        f"IF(COUNT(*) = 1, FIRST({TARGET_ALIAS}.{quote(name)}), {several}) AS {quote(name)}"
        for name in kept
        if name not in key.names
    ]
    items = ",\n    ".join([*keys, *once])
    return (
        f"INSERT INTO {target} ({_names(columns)})\nSELECT\n  {values}\nFROM {staged} AS {SOURCE_ALIAS}\n"
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

    What the model does not return keeps its value in an updated row, and is NULL in an inserted one.

    Args:
        target: the rendered name of the table.
        staged: the rendered name of the staged batch.
        columns: the refreshed columns in table order.
        key: the key.
        update: names of the columns to update, as the table has them; none to leave matching rows alone.
    """
    conditions = [key.match(SOURCE_ALIAS, TARGET_ALIAS), *map(_enclosed, key.predicates)]
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
            f"WHEN NOT MATCHED THEN INSERT ({_names(columns)})\nVALUES (\n  {values}\n)",
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


def snapshot_statement(
    target: str,
    staged: str,
    columns: Sequence[ProjectedColumn],
    *,
    scd_id: str,
    valid_to: str,
    valid_to_current: str | None,
) -> str:
    """Return the MERGE that brings the staged changes of a dbt snapshot into its table.

    Args:
        target: the rendered name of the table.
        staged: the rendered name of the staged changes, each with its ``dbt_change_type``.
        columns: the refreshed columns in table order.
        scd_id: the column that identifies a version of a row.
        valid_to: the column that says until when a version is valid.
        valid_to_current: the SQL expression of that time in a version which is valid now, beside NULL.
    """
    end = f"{TARGET_ALIAS}.{quote(valid_to)}"
    open_ = f"{end} IS NULL" if valid_to_current is None else f"({end} IS NULL OR {end} = {valid_to_current})"
    values = ",\n  ".join(column.render(SOURCE_ALIAS) for column in columns)
    ends = next(
        (c.render(SOURCE_ALIAS) for c in columns if fold(c.name) == fold(valid_to)),
        f"{SOURCE_ALIAS}.{quote(valid_to)}",
    )
    return (
        f"MERGE INTO {target} AS {TARGET_ALIAS}\nUSING {staged} AS {SOURCE_ALIAS}\n"
        f"ON {SOURCE_ALIAS}.{quote(scd_id)} = {TARGET_ALIAS}.{quote(scd_id)}\n"
        f"WHEN MATCHED AND {open_} AND {SOURCE_ALIAS}.dbt_change_type IN ('update', 'delete')\n"
        f"  THEN UPDATE SET {end} = {ends}\n"
        f"WHEN NOT MATCHED AND {SOURCE_ALIAS}.dbt_change_type = 'insert'\n"
        f"  THEN INSERT ({_names(columns)})\nVALUES (\n  {values}\n)"
    )


def conforming_query(sql: str, names: Sequence[str], columns: Sequence[ProjectedColumn]) -> str:
    """Return a query for the rows of ``sql``, with columns and fields spelled and ordered as in the table.

    Args:
        sql: a query.
        names: the names that it returns.
        columns: the refreshed columns; those that are not nested are returned as they are.
    """
    by_source = {column.source: column for column in columns if column.source is not None}
    items = []
    for name in names:
        column = by_source.get(name)
        is_nested = column is not None and isinstance(
            column.projection, RebuildStruct | RebuildList | RebuildMap
        )
        value = column.render(SOURCE_ALIAS) if column and is_nested else f"{SOURCE_ALIAS}.{quote(name)}"
        items.append(f"{value} AS {quote(column.name if column else name)}")
    return f"select {', '.join(items)} from (\n{sql}\n) as {SOURCE_ALIAS}"


def snapshot_row_changed(names: Sequence[str]) -> str:
    """Return the condition that a row of a dbt snapshot's query differs from the version that is valid now.

    Args:
        names: the columns to compare, one or more, as both sides have them.
    """
    compared = (f"snapshotted_data.{quote(name)} <=> source_data.{quote(name)}" for name in names)
    return f"(not ({' and '.join(compared)}))"


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


def _enclosed(condition: str) -> str:
    """Return a condition that a user has written in parentheses, which a comment at its end leaves alone."""
    return f"({condition}\n)" if "--" in condition else f"({condition})"


def _select_item(column: ProjectedColumn, previous_alias: str | None = None) -> str:
    return f"{column.render(SOURCE_ALIAS, previous_alias)} AS {quote(column.name)}"


def _names(columns: Sequence[ProjectedColumn]) -> str:
    return ", ".join(quote(column.name) for column in columns)


# Branches


def branch_of(table: str, branch: str) -> str:
    """Return the rendered name of a branch of a table, to read it and to write it."""
    return f"{table}.{quote('branch_' + branch)}"


def create_branch(table: str, branch: str, snapshot_id: int | None, retain_minutes: int) -> str:
    """Return the statement that cuts a branch off.

    Args:
        table: the rendered name of the table.
        branch: the branch's name.
        snapshot_id: where; None in a table without snapshots, which then gets an empty one on the branch.
        retain_minutes: how long after its last snapshot `expire_snapshots` leaves the branch alone.
    """
    at = f" AS OF VERSION {snapshot_id}" if snapshot_id is not None else ""
    return f"ALTER TABLE {table} CREATE BRANCH {quote(branch)}{at} RETAIN {retain_minutes} MINUTES"


def drop_branch(table: str, branch: str) -> str:
    """Return the statement that removes a branch, if it is there."""
    return f"ALTER TABLE {table} DROP BRANCH IF EXISTS {quote(branch)}"


def refresh_table(table: str) -> str:
    """Return the statement by which Spark reads a table's metadata again."""
    return f"REFRESH TABLE {table}"


def fast_forward(catalog: str, table: str, ref: str, branch: str) -> str:
    """Return the statement that moves ``ref`` to the head of ``branch``, if that has come from it.

    Args:
        catalog: the name of the catalog.
        table: the rendered name of the table inside it.
        ref: the branch that moves.
        branch: the branch whose head it gets.
    """
    return (
        f"CALL {quote(catalog)}.system.fast_forward(table => {string_literal(table)}, "
        f"branch => {string_literal(ref)}, to => {string_literal(branch)})"
    )


# Descriptions


def describe(table: str, comment: str | None, docs: Mapping[str, str]) -> list[str]:
    """Return the statements that give a table and its columns descriptions, each a commit of its own.

    Args:
        table: the rendered name of the table.
        comment: the literal of its description; None to leave it as it is.
        docs: the literals of those of columns, by name.
    """
    alter = f"ALTER TABLE {table}"
    of_columns = [f"{alter} ALTER COLUMN {quote(name)} COMMENT {doc}" for name, doc in docs.items()]
    return [f"{alter} SET TBLPROPERTIES ('comment' = {comment})", *of_columns] if comment else of_columns


# Questions about a batch


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


# Audits


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
    return f"SELECT *\nFROM {table} AS {TARGET_ALIAS}\nWHERE {TARGET_ALIAS}._file IN ({paths}){matching}"


def count_violations(rows: str, audits: Sequence[str]) -> str:
    """Return the query of how many rows fail each audit; a predicate that is NULL fails."""
    counts = ",\n  ".join(
        f"count_if(NOT coalesce({_enclosed(audit)}, false)) AS {quote(f'audit_{n}')}"
        for n, audit in enumerate(audits)
    )
    return f"SELECT\n  {counts}\nFROM (\n{rows}\n) AS {TARGET_ALIAS}"


def some_violations(rows: str, audit: str, columns: Sequence[str], limit: int) -> str:
    """Return the query of some columns of a few rows that fail an audit, each column as text."""
    # By name: what DISTINCT leaves has no other, and numbers are positions under one setting only.
    texts = {quote(f"text_{n}"): f"CAST({TARGET_ALIAS}.{quote(c)} AS STRING)" for n, c in enumerate(columns)}
    shown = ", ".join(f"{text} AS {name}" for name, text in texts.items())
    return (
        f"SELECT DISTINCT {shown}\nFROM (\n{rows}\n) AS {TARGET_ALIAS}\n"
        f"WHERE NOT coalesce({_enclosed(audit)}, false)\nORDER BY {', '.join(texts)}\nLIMIT {limit}"
    )
