"""The SQL of dbt's snapshots: the MERGE of their changes, and how rows of both sides are compared."""

from collections.abc import Collection, Sequence

from dbt.adapters.sparkevolve.evolution.names import fold, quote
from dbt.adapters.sparkevolve.evolution.projection import (
    ProjectedColumn,
    RebuildList,
    RebuildMap,
    RebuildStruct,
)
from dbt.adapters.sparkevolve.sql.dml import SOURCE_ALIAS, TARGET_ALIAS, column_list


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
        f"  THEN INSERT ({column_list(columns)})\nVALUES (\n  {values}\n)"
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


def snapshot_row_changed(names: Sequence[str], variants: Collection[str] = ()) -> str:
    """Return the condition that a row of a dbt snapshot's query differs from the version that is valid now.

    Args:
        names: the columns to compare, one or more, as both sides have them.
        variants: those of them that are variants or have some in them, which Spark compares as JSON only.
    """

    def value(side: str, name: str) -> str:
        return f"to_json({side}.{quote(name)})" if name in variants else f"{side}.{quote(name)}"

    compared = (f"{value('snapshotted_data', name)} <=> {value('source_data', name)}" for name in names)
    return f"(not ({' and '.join(compared)}))"
