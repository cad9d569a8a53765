"""Where a backfill was that another command has finished, when the table does not say it any more."""

from collections.abc import Callable
from dataclasses import replace

import pytest
from pyiceberg.catalog import Catalog
from pyiceberg.table import Table
from pyiceberg.table.update import RemoveSnapshotsUpdate

from dbt.adapters.sparkevolve.evolution import backfills
from dbt.adapters.sparkevolve.evolution.backfills import Position, Request, UnknownPosition
from dbt.adapters.sparkevolve.iceberg.catalog import IcebergCatalog
from dbt.adapters.sparkevolve.load.backfill_positions import Positions
from tests.unit.conftest import MakeTable
from tests.unit.helpers import append, columns, relation

REQUEST = Request("`status`", "status || '+'", "", (), only_null=False)
PROPERTY = backfills.property_of(2)


class Writer:
    """Another command, and whoever else commits to the table."""

    def __init__(self, catalog: Catalog) -> None:
        self.catalog = catalog

    @property
    def table(self) -> Table:
        """The table, as it is now."""
        return self.catalog.load_table("db.t")

    @property
    def head(self) -> int:
        """Its current snapshot."""
        snapshot = self.table.current_snapshot()
        assert snapshot is not None
        return snapshot.snapshot_id

    def put(self, position: Position | None) -> None:
        """Set the property, or remove it."""
        with self.table.transaction() as change:
            if position is None:
                change.remove_properties(PROPERTY)
            else:
                change.set_properties({PROPERTY: position.text})

    def fill(self, before: Position | None, *, finished: bool, key: str = "9", at: str = "then") -> Position:
        """Publish a batch and its position."""
        begun = before or backfills.begun(REQUEST, ("9",), self.head)
        append(self.table, [{"id": 7, "status": "x+"}])
        then = begun.advanced((key,), 1, finished=finished, at=at, invocation_id="another")
        then = then.published(self.head, ())
        self.put(then)
        return then

    def roll_back(self, snapshot: int) -> None:
        """Take rows back."""
        with self.table.manage_snapshots() as manage:
            manage.rollback_to_snapshot(snapshot)


@pytest.fixture
def writer(other: Catalog, make_table: MakeTable) -> Writer:
    """Of a table with rows to fill."""
    make_table(columns("id int, status string"), [{"id": 1, "status": "x"}])
    return Writer(other)


Last = Callable[[Table, Position | None], Position | None]


@pytest.fixture
def last(lake: IcebergCatalog) -> Last:
    """What a command finds that has begun with a table, and has left the backfill at a position."""

    def find(since: Table, position: Position | None) -> Position | None:
        return Positions(lake, REQUEST, 2).last(lake.load(relation("t")), "main", since, position)

    return find


def test_a_backfill_that_another_command_has_finished_is_finished(writer: Writer, last: Last) -> None:
    since = writer.table
    assert last(since, None) is None
    first = writer.fill(None, finished=False, key="1")
    done = writer.fill(first, finished=True)
    writer.put(None)
    assert last(since, None) == last(since, first) == done


def test_a_backfill_that_was_finished_and_rolled_back_is_to_be_done(writer: Writer, last: Last) -> None:
    since, before = writer.table, writer.head
    first = writer.fill(None, finished=False, key="1")
    done = writer.fill(first, finished=True)
    writer.put(None)
    writer.roll_back(before)
    assert last(since, None) is None
    # A full refresh has failed before the roll-back.
    writer.put(done.refreshing(None, done.snapshot))
    writer.put(done)
    writer.put(None)
    assert last(since, None) is None
    # One that has filled rows of its own meanwhile is not finished by that.
    assert last(since, first) == first


def test_what_is_left_by_a_roll_back_is_not_filled_twice(writer: Writer, last: Last) -> None:
    since = writer.table
    first = writer.fill(None, finished=False, key="1")
    writer.fill(first, finished=True)
    writer.put(None)
    assert first.snapshot is not None
    writer.roll_back(first.snapshot)
    assert last(since, None) == first


@pytest.mark.parametrize("is_rolled_back", [True, False])
def test_the_note_of_a_full_refresh_does_not_make_an_old_position_a_new_one(
    writer: Writer, last: Last, is_rolled_back: bool
) -> None:
    before = writer.head
    old = writer.fill(None, finished=True)
    if is_rolled_back:
        writer.roll_back(before)
    since = writer.table
    for noted in (old.refreshing(None, writer.head), old, None):
        writer.put(noted)
    assert last(since, None) is None
    own = replace(old, at="now", finished=False)
    assert last(since, own) == own


@pytest.mark.parametrize("kept", ["1", "2", "100"])
def test_a_position_of_before_does_not_come_back_as_the_log_is_trimmed(
    writer: Writer, last: Last, kept: str
) -> None:
    with writer.table.transaction() as change:
        change.set_properties({"write.metadata.previous-versions-max": kept})
    writer.fill(None, finished=True)
    # `restart: true` begins at the first row, though the rows of before are there.
    since = writer.table
    own = writer.fill(None, finished=False, key="1", at="now")
    writer.put(None)
    for number in range(3):
        with writer.table.transaction() as change:
            change.set_properties({"other": str(number)})
    assert last(since, own) == own


def test_what_was_noted_and_not_published_is_not_filled(writer: Writer, last: Last) -> None:
    """As in a table whose rows and position are two commits."""
    since, before = writer.table, writer.head
    done = writer.fill(None, finished=True)
    assert done.snapshot is not None
    note = backfills.begun(REQUEST, ("9",), before).trying(done.snapshot, done, before)
    writer.put(note)
    writer.put(None)
    assert last(since, None) == replace(done, at="", invocation_id="")
    writer.roll_back(before)
    assert last(since, None) is None


def test_nobody_says_finished_where_a_full_refresh_or_an_expiry_hides_it(writer: Writer, last: Last) -> None:
    since = writer.table
    done = writer.fill(None, finished=True)
    assert done.snapshot is not None
    writer.put(done.refreshing(None, done.snapshot))
    append(writer.table, [{"id": 1, "status": "x"}])
    writer.put(None)
    with pytest.raises(UnknownPosition, match=r"^a full refresh$"):
        last(since, None)
    own = replace(done, at="now", finished=False)
    assert last(since, own) == own


def test_an_unknown_position_is_none_that_is_finished(writer: Writer, last: Last) -> None:
    with writer.table.transaction() as change:
        change.set_properties({"write.metadata.previous-versions-max": "1"})
    since = writer.table
    done = writer.fill(None, finished=True)
    append(writer.table, [{"id": 1, "status": "x"}])
    assert done.snapshot is not None
    gone = [each.snapshot_id for each in writer.table.metadata.snapshots if each.snapshot_id != writer.head]
    table = writer.table
    writer.catalog.commit_table(table, (), (RemoveSnapshotsUpdate(snapshot_ids=gone),))
    writer.put(done)
    writer.put(None)
    with pytest.raises(UnknownPosition, match=r"^its last batch$"):
        last(since, None)
    own = replace(done, at="now", finished=False)
    assert last(since, own) == own
