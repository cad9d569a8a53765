"""The text of the statements that cut a branch of a table, publish it through Spark, and remove it."""

from dbt.adapters.sparkevolve.evolution.names import quote, string_literal


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
