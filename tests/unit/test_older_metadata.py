"""What older metadata files tell of snapshots that have expired, and of properties that are gone."""

import gzip
from collections.abc import Callable
from pathlib import Path
from threading import Barrier

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyiceberg.catalog import Catalog
from pyiceberg.io import InputFile
from pyiceberg.io.pyarrow import PyArrowFileIO
from pyiceberg.table import Table
from pyiceberg.table.snapshots import MetadataLogEntry
from pyiceberg.table.update import RemoveSnapshotsUpdate, SetPropertiesUpdate

from dbt.adapters.sparkevolve.iceberg.older_metadata import (
    has_lost,
    has_rows_of,
    properties_since,
    read,
    read_all,
)
from tests.unit.conftest import MakeTable
from tests.unit.helpers import append, columns

# What others do to a table, and to which of its snapshots.
STEPS = st.lists(
    st.tuples(st.sampled_from(["append", "roll back", "expire"]), st.integers(0, 99)), min_size=2, max_size=9
)


def files_of(table: Table) -> list[Path]:
    return [Path(entry.metadata_file.removeprefix("file://")) for entry in table.metadata.metadata_log]


def expire(other: Catalog, name: str, *snapshots: int) -> None:
    table = other.load_table(name)
    gone = RemoveSnapshotsUpdate.model_validate({"snapshot-ids": list(snapshots)})
    other.commit_table(table, (), (gone,))


@pytest.fixture
def new_table(other: Catalog, make_table: MakeTable) -> Callable[[], str]:
    """Make one more empty table; return its name."""
    made: list[str] = []

    def make() -> str:
        made.append(f"t{len(made)}")
        make_table(columns("id int"), name=made[-1])
        return f"db.{made[-1]}"

    return make


@settings(
    max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture], database=None
)
@given(STEPS)
def test_whose_rows_a_snapshot_has_is_known_whatever_has_expired(
    other: Catalog, new_table: Callable[[], str], steps: list[tuple[str, int]]
) -> None:
    name = new_table()
    parents: dict[int, int | None] = {}
    for step, place in steps:
        table = other.load_table(name)
        head = table.metadata.current_snapshot_id
        there = [s.snapshot_id for s in table.metadata.snapshots]
        if step == "append" or head is None:
            append(table, [{"id": place}])
            made = table.metadata.current_snapshot_id
            assert made is not None
            parents[made] = head
        elif step == "roll back":
            with table.manage_snapshots() as manage:
                manage.set_current_snapshot(there[place % len(there)])
        elif others := [s for s in there if s != head]:
            expire(other, name, others[place % len(others)])
    table = other.load_table(name)
    head = table.metadata.current_snapshot_id
    before: set[int] = set()
    at = head
    while at is not None:
        before.add(at)
        at = parents[at]
    assert {s: has_rows_of(table, head, s) for s in parents} == {s: s in before for s in parents}
    assert not any(has_rows_of(table, None, s) for s in parents)

    # Once these files have been removed too, an answer is right, or there is none: a number one without them
    # need not be the first.
    for file in files_of(table):
        file.unlink()
    answers = {s: has_rows_of(table, head, s) for s in parents}
    assert all(answer in (None, s in before) for s, answer in answers.items())
    there = {s.snapshot_id for s in table.metadata.snapshots}
    assert not before <= there or all(answers[s] for s in before)


def test_rows_that_were_picked_from_a_snapshot_are_its_rows(
    other: Catalog, new_table: Callable[[], str]
) -> None:
    """As `cherrypick_snapshot` does after a roll-back, and as the audited rows of a WAP id are published."""
    name = new_table()
    table = other.load_table(name)
    append(table, [{"id": 1}])
    first = table.metadata.current_snapshot_id
    append(table, [{"id": 2}])
    second = table.metadata.current_snapshot_id
    assert first is not None
    assert second is not None
    with table.manage_snapshots() as manage:
        manage.rollback_to_snapshot(first)
    assert has_rows_of(table, table.metadata.current_snapshot_id, second) is False
    rows = pa.Table.from_pylist([{"id": 2}], schema=table.schema().as_arrow())
    table.append(rows, snapshot_properties={"source-snapshot-id": str(second)})
    picked = table.metadata.current_snapshot_id
    assert has_rows_of(table, picked, second) is True
    append(table, [{"id": 3}])
    assert picked is not None
    expire(other, name, picked)
    table = other.load_table(name)
    assert has_rows_of(table, table.metadata.current_snapshot_id, second) is True
    for file in files_of(table):
        file.write_text("no JSON")
    assert has_rows_of(table, table.metadata.current_snapshot_id, second) is None


@pytest.mark.parametrize("removes", [False, True])
def test_the_first_number_of_an_upgraded_table_is_not_its_first_snapshot(
    other: Catalog, make_table: MakeTable, removes: bool
) -> None:
    make_table(columns("id int"), name="old", properties={"format-version": "1"})
    table = other.load_table("db.old")
    append(table, [{"id": 1}])
    first = table.metadata.current_snapshot_id
    assert first is not None
    with table.transaction() as change:
        change.upgrade_table_version(2)
    if removes:
        table.delete("id = 1")
    else:
        append(table, [{"id": 2}])
    numbered = table.metadata.snapshots[-1]
    assert (numbered.sequence_number, numbered.parent_snapshot_id) == (1, first)
    expire(other, "db.old", first)
    table = other.load_table("db.old")
    assert [s.parent_snapshot_id for s in table.metadata.snapshots] == [None]
    head = table.metadata.current_snapshot_id
    assert has_rows_of(table, head, first) is True
    assert has_rows_of(table, head, 1) is False
    for file in files_of(table):
        file.unlink()
    assert has_rows_of(table, head, first) is None


def test_the_first_rows_after_a_delete_and_an_upgrade_are_not_the_first(
    other: Catalog, make_table: MakeTable
) -> None:
    """The first snapshot with a number has files of its own only, and has removed none."""
    make_table(columns("id int"), name="old", properties={"format-version": "1"})
    table = other.load_table("db.old")
    append(table, [{"id": 1}])
    first = table.metadata.current_snapshot_id
    assert first is not None
    table.delete("id = 1")
    with table.transaction() as change:
        change.upgrade_table_version(2)
    append(table, [{"id": 2}])
    head = table.metadata.snapshots[-1]
    assert head.sequence_number == 1
    assert has_rows_of(table, head.snapshot_id, first) is True
    expire(other, "db.old", *(s.snapshot_id for s in table.metadata.snapshots[:-1]))
    table = other.load_table("db.old")
    assert [s.parent_snapshot_id for s in table.metadata.snapshots] == [None]
    # The files say more than the number does.
    assert has_rows_of(table, head.snapshot_id, first) is True
    assert has_rows_of(table, head.snapshot_id, 1) is False
    assert has_lost(table, head.snapshot_id)
    for file in files_of(table):
        file.unlink()
    assert has_rows_of(table, head.snapshot_id, first) is None
    assert has_lost(table, head.snapshot_id)


def test_snapshots_that_have_expired_are_missed_whatever_their_children_say(
    other: Catalog, new_table: Callable[[], str]
) -> None:
    """PyIceberg takes the parent away from a snapshot when that one expires."""
    name = new_table()
    table = other.load_table(name)
    for number in range(2):
        append(table, [{"id": number}])
    first, head = (s.snapshot_id for s in table.metadata.snapshots)
    assert not has_lost(table, head)
    expire(other, name, first)
    table = other.load_table(name)
    assert [s.parent_snapshot_id for s in table.metadata.snapshots] == [None]
    assert has_lost(table, head)
    assert not has_lost(table, None)


def test_properties_that_came_and_went_are_seen(other: Catalog, new_table: Callable[[], str]) -> None:
    name = new_table()

    def put(value: str) -> None:
        other.commit_table(other.load_table(name), (), (SetPropertiesUpdate(updates={"p": value}),))

    def since(then: Table) -> list[str | None]:
        found = [properties.get("p") for properties in properties_since(other.load_table(name), then)]
        return [value for number, value in enumerate(found) if not number or found[number - 1] != value]

    put("0")
    then = other.load_table(name)
    assert since(then) == ["0"]
    for value in ("1", "2", "3"):
        put(value)
    assert since(then) == ["0", "1", "2", "3"]
    files_of(other.load_table(name))[-1].unlink()
    assert since(then) == ["0", "1", "3"]
    # Of a table whose list does not have the file any more, all that is listed may have come since.
    with other.load_table(name).transaction() as change:
        change.set_properties({"write.metadata.previous-versions-max": "1"})
    put("4")
    assert since(then) == ["0", "3", "4"]


def test_a_file_that_is_cut_off_or_spoiled_tells_nothing(
    other: Catalog, new_table: Callable[[], str]
) -> None:
    table = other.load_table(new_table())
    append(table, [{"id": 1}])
    whole = gzip.compress(b'{"snapshots": [], "properties": {}}')
    spoiled = whole[:10] + b"\xff" * 20
    for number, content in enumerate((whole[:-9], spoiled, b"no gzip", b"", b"[]")):
        file = files_of(table)[0].with_name(f"{number}.gz.metadata.json")
        file.write_bytes(content)
        entry = MetadataLogEntry(metadata_file=f"file://{file}", timestamp_ms=0)
        assert read(table, entry) is None


class DistantIO(PyArrowFileIO):
    """Gives no file before a second one is asked for, as an object store that is slow to answer may."""

    def __init__(self, table: Table) -> None:
        super().__init__(table.io.properties)
        self._two = Barrier(2)

    def new_input(self, location: str) -> InputFile:
        self._two.wait(20)
        return super().new_input(location)


def test_files_are_asked_for_at_once_and_told_in_their_order(
    other: Catalog, new_table: Callable[[], str]
) -> None:
    table = other.load_table(new_table())
    for number in range(20):
        with table.transaction() as transaction:
            transaction.set_properties({"number": str(number)})
    log = table.metadata.metadata_log
    assert len(log) == 20
    files_of(table)[7].unlink()
    distant = Table(table.name(), table.metadata, table.metadata_location, DistantIO(table), table.catalog)
    found = list(read_all(distant, log))
    assert found.pop(7) is None
    assert found.pop(0) is not None
    numbers = [file["properties"]["number"] for file in found if file is not None]
    assert numbers == [str(n) for n in range(19) if n != 6]
    assert list(read_all(distant, [])) == []
