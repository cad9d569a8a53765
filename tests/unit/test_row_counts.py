"""How many rows commits have added and removed, by what their snapshots say."""

from types import SimpleNamespace
from typing import Any

import pytest
from pyiceberg.table.snapshots import Operation, Snapshot, Summary

from dbt.adapters.sparkevolve.iceberg.row_counts import (
    Commits,
    Counted,
    counted_since,
    creation,
    inserting_since,
    snapshots_since,
)
from dbt.adapters.sparkevolve.load.results import Rows, rows_of
from dbt.adapters.sparkevolve.settings import Strategy


def metadata(*summaries: dict[str, int]) -> Any:
    """Return a table whose snapshots 1, 2, … have these summaries, each after the one before."""
    found = {
        number: Snapshot(
            snapshot_id=number,
            parent_snapshot_id=number - 1 or None,
            timestamp_ms=number,
            manifest_list="m",
            summary=Summary(Operation.OVERWRITE, **{k.replace("_", "-"): str(v) for k, v in summary.items()}),
        )
        for number, summary in enumerate(summaries, 1)
    }
    newest = len(summaries) or None
    return SimpleNamespace(
        snapshot_by_id=found.get,
        current_snapshot=lambda: found.get(newest),
        current_snapshot_id=newest,
        current_schema_id=2,
    )


FIRST = {"added_records": 10, "total_records": 10, "total_position_deletes": 0}
MARKED = {"added_position_deletes": 3, "total_records": 10, "total_position_deletes": 3}
INSERTED = {"added_records": 4, "total_records": 14, "total_position_deletes": 3}


@pytest.mark.parametrize(
    ("summaries", "base", "expected"),
    [
        ([FIRST], None, Counted(10, 0)),
        ([FIRST, MARKED, INSERTED], 1, Counted(4, 3)),
        ([FIRST, MARKED, INSERTED], 3, Counted(0, 0)),
        # A file of deletes takes the place of another, which it contains.
        ([FIRST, MARKED, {"added_position_deletes": 5, "removed_position_deletes": 3}], 2, Counted(0, 2)),
        # Copy-on-write: seven of ten rows are written again.
        ([FIRST, {"added_records": 7, "deleted_records": 10}], 1, Counted(7, 10, rewrites=True)),
        # Of the rows of the file that goes, three were gone already, or not.
        ([FIRST, MARKED, {"deleted_records": 10}], 2, Counted(0, None, rewrites=True)),
        ([FIRST, {"added_equality_deletes": 1}], 1, Counted(0, None)),
    ],
)
def test_what_snapshots_say(summaries: list[dict[str, int]], base: int | None, expected: Counted) -> None:
    assert counted_since(metadata(*summaries), len(summaries), base) == expected


def test_what_has_expired_is_not_known() -> None:
    table = metadata(FIRST, MARKED, INSERTED)
    assert counted_since(table, 3, 7) is None
    assert counted_since(table, 9, 1) is None
    odd: Any = {"added_records": "many"}
    assert counted_since(metadata(FIRST, odd), 2, 1) is None
    assert [snapshots_since(table, 3, base) for base in (3, 1, None, 7)] == [0, 2, 3, None]


@pytest.mark.parametrize(
    ("counts", "strategy", "expected"),
    [
        (Counted(4, 3), Strategy.DELETE_INSERT, Rows(4, None, 3)),
        # Three rows are deleted, and seven written again beside the four of the batch.
        (Counted(11, 10, rewrites=True), Strategy.DELETE_INSERT, Rows(4, None, 3)),
        (Counted(4, None), Strategy.INSERT_OVERWRITE, Rows(4)),
        (None, Strategy.APPEND, Rows(4)),
        (Counted(4, 3), Strategy.MERGE, Rows(1, 3, 0)),
        (Counted(11, 10, rewrites=True), Strategy.MERGE, Rows(1, None, 0)),
        (Counted(4, None), Strategy.MERGE, Rows()),
        (None, Strategy.MERGE, Rows()),
    ],
)
def test_what_a_strategy_makes_of_it(counts: Counted | None, strategy: Strategy, expected: Rows) -> None:
    assert rows_of(counts, strategy, 4) == expected


def test_a_table_was_made_by_its_first_snapshot() -> None:
    """What a post-hook has committed since is not what the run has loaded."""
    assert creation(metadata(FIRST)) == Commits(Counted(10, 0), 2, 1)
    assert creation(metadata(FIRST, MARKED, INSERTED)) == Commits(Counted(10, 0), 2, 1)
    assert creation(metadata()) == Commits(None, 2, None)
    table = metadata(FIRST, INSERTED)
    expired = SimpleNamespace(**{**vars(table), "snapshot_by_id": {}.get})
    assert creation(expired) == Commits(None, 2, 2)


def test_which_snapshots_have_new_rows_only() -> None:
    """Not those that have taken files away, whose rows may be among those that they have written."""
    rewritten = {"added_records": 7, "deleted_records": 10, "deleted_data_files": 1}
    table = metadata(FIRST, MARKED, INSERTED, rewritten, INSERTED)
    assert inserting_since(table, 5, 1) == [5, 3, 2]
    assert inserting_since(table, 5, 3) == [5]
    assert inserting_since(table, 5, 5) == []
    # Rolled back since: the one is among those that the other comes from.
    assert inserting_since(table, 2, 5) == []
    # What comes before one that has expired is not known, and what the other has, too, counts for nothing.
    assert inserting_since(table, 9, 1) == []
    found = {number: table.snapshot_by_id(number) for number in range(1, 6)}
    for number, summary in ((5, Summary(Operation.REPLACE)), (3, None)):
        found[number] = found[number].model_copy(update={"summary": summary})
    other: Any = SimpleNamespace(snapshot_by_id=found.get)
    assert inserting_since(other, 5, 1) == [2]
