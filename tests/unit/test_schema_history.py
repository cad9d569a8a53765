"""When each schema of a table was first seen, and who made it."""

import gzip
import json
from pathlib import Path

import pytest
from pyiceberg.catalog import Catalog
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.table.metadata import TableMetadata

from dbt.adapters.sparkevolve.evolution.history import EarlierMeaning
from dbt.adapters.sparkevolve.evolution.record import PREFIX, REPLACED, fingerprint
from dbt.adapters.sparkevolve.iceberg.facts import table_facts
from dbt.adapters.sparkevolve.iceberg.schema_history import (
    names_over_time,
    schema_history,
)
from tests.unit.conftest import MakeTable
from tests.unit.helpers import append, columns

RECORD = '{"added": ["`n2`"], "at": "2020-02-02T02:02:02+00:00", "invocation_id": "run-2", "source": "abcd"}'


@pytest.fixture
def table(other: Catalog, make_table: MakeTable) -> Table:
    """A table of three schemas.

    Its metadata files were made, and its current one too, ten seconds apart: with schema 0, 0 (a row), 1,
    and 2 at last.
    """
    make_table(columns("id int"), [{"id": 1}])
    for name in ("n1", "n2"):
        with other.load_table("db.t").update_schema() as update:
            update.add_column(name, columns("x int").fields[0].field_type)
    return at_times(other.load_table("db.t"))


def at_times(table: Table) -> Table:
    """Let the metadata files be made ten seconds apart, from 10 s after the epoch on, and snapshots later."""
    log = [
        entry.model_copy(update={"timestamp_ms": 10_000 * n})
        for n, entry in enumerate(table.metadata.metadata_log, 1)
    ]
    snapshots = [s.model_copy(update={"timestamp_ms": 99_000}) for s in table.metadata.snapshots]
    now = 10_000 * (len(log) + 1)
    return changed(table, metadata_log=log, last_updated_ms=now, snapshots=snapshots)


def changed(table: Table, **update: object) -> Table:
    metadata: TableMetadata = table.metadata.model_copy(update=update)
    return Table(table.name(), metadata, table.metadata_location, table.io, table.catalog)


def file_of(table: Table, number: int) -> Path:
    return Path(table.metadata.metadata_log[number].metadata_file.removeprefix("file://"))


def seen(table: Table) -> dict[int, str]:
    """The time of each schema, without what all have in common."""
    return {
        entry["schema_id"]: entry["at"].removeprefix("1970-01-01T00:").removesuffix("+00:00")
        for entry in schema_history(table)
    }


def test_a_schema_is_seen_first_in_the_oldest_metadata_file_that_has_it(table: Table) -> None:
    assert len(table.metadata.metadata_log) == 3
    assert seen(table) == {0: "00:10", 1: "00:30", 2: "00:40"}


@pytest.mark.parametrize(
    ("spoil", "expected"),
    [
        (Path.unlink, {0: "00:20", 1: "00:30", 2: "00:40"}),
        (lambda path: path.write_text("no JSON"), {0: "00:20", 1: "00:30", 2: "00:40"}),
    ],
)
def test_a_metadata_file_that_maintenance_has_removed_tells_nothing(
    table: Table, spoil: object, expected: dict[int, str]
) -> None:
    assert callable(spoil)
    spoil(file_of(table, 0))
    assert seen(table) == expected


def test_a_schema_that_nothing_knows_the_time_of_has_none(table: Table) -> None:
    file_of(table, 2).unlink()
    assert seen(table) == {0: "00:10", 1: "", 2: "00:40"}


def test_a_compressed_metadata_file_is_read(table: Table) -> None:
    path = file_of(table, 2)
    packed = path.with_name(path.name.replace(".metadata.json", ".gz.metadata.json"))
    packed.write_bytes(gzip.compress(path.read_bytes()))
    path.unlink()
    log = list(table.metadata.metadata_log)
    log[2] = log[2].model_copy(update={"metadata_file": f"file://{packed}"})
    assert seen(changed(table, metadata_log=log)) == {0: "00:10", 1: "00:30", 2: "00:40"}


@pytest.mark.parametrize(
    ("snapshot_ms", "expected"), [(5_000, "00:05"), (10_000, "00:10"), (50_000, "00:10")]
)
def test_a_snapshot_may_be_older_than_the_metadata_files(
    table: Table, snapshot_ms: int, expected: str
) -> None:
    (snapshot,) = table.metadata.snapshots
    assert snapshot.schema_id == 0
    earlier = changed(table, snapshots=[snapshot.model_copy(update={"timestamp_ms": snapshot_ms})])
    assert seen(earlier) == {0: expected, 1: "00:30", 2: "00:40"}


def test_a_time_that_no_calendar_has_is_none(table: Table) -> None:
    """Microseconds, which some writers take for milliseconds."""
    micros = 1_764_355_000_000_000
    assert seen(changed(table, last_updated_ms=micros)) == {0: "00:10", 1: "00:30", 2: ""}


def test_snapshots_alone_tell_of_a_schema_too(other: Catalog, table: Table) -> None:
    append(other.load_table("db.t"), [{"id": 2}])
    table = other.load_table("db.t")
    for number in range(len(table.metadata.metadata_log)):
        file_of(table, number).unlink()
    first, second = table.metadata.snapshots
    times = [s.model_copy(update={"timestamp_ms": t}) for s, t in ((first, 7_000), (second, 8_000))]
    assert seen(changed(table, snapshots=times, last_updated_ms=60_000)) == {0: "00:07", 1: "", 2: "00:08"}


def test_what_a_run_has_recorded_is_told_as_it_says(table: Table) -> None:
    recorded = changed(table, properties={f"{PREFIX}2": RECORD})
    first, second, third = schema_history(recorded)
    assert [first["invocation_id"], first["source"], first["is_current"]] == ["", "", False]
    assert second["changes"] == ["added `n1` (2) int"]
    assert third == {
        "schema_id": 2,
        "is_current": True,
        "at": "2020-02-02T02:02:02+00:00",
        "invocation_id": "run-2",
        "source": "abcd",
        "changes": ["added `n2` (3) int"],
        "columns": [
            {"id": 1, "name": "id", "type": "int"},
            {"id": 2, "name": "n1", "type": "int"},
            {"id": 3, "name": "n2", "type": "int"},
        ],
    }


def test_an_older_schema_that_is_current_again_is_so_since_it_came_back(other: Catalog, table: Table) -> None:
    with other.load_table("db.t").update_schema(allow_incompatible_changes=True) as update:
        update.delete_column("n2")
    with other.load_table("db.t").transaction() as transaction:
        transaction.set_properties({"a": "b"})
    back = at_times(other.load_table("db.t"))
    assert back.schema().schema_id == 1
    history = schema_history(changed(back, properties={f"{PREFIX}1": RECORD}))
    assert [(s["schema_id"], s["is_current"], s["at"][-11:-6], s["invocation_id"]) for s in history] == [
        (0, False, "00:10", ""),
        (1, False, "02:02", "run-2"),
        (2, False, "00:40", ""),
        (1, True, "00:50", ""),
    ]
    assert history[3]["changes"] == ["dropped `n2` (3) int"]
    assert history[3]["source"] == ""


RESTORED = {"restored": ["`n1`"], "restored_by": "run-r", "restored_at": "2024-01-01T00:00:00+00:00"}


@pytest.mark.parametrize("is_left", [False, True])
def test_a_restore_is_named_for_what_it_brought_back_only(
    other: Catalog, table: Table, is_left: bool
) -> None:
    """Not for what the schema became the current one after, again, since others have left it meanwhile."""
    _set_columns(other, drop="n2")
    text = json.dumps({**json.loads(RECORD), **RESTORED})
    with other.load_table("db.t").transaction() as transaction:
        transaction.set_properties({f"{PREFIX}1": text})
    if is_left:
        _set_columns(other, add="n3")
        _set_columns(other, drop="n3")
    back = other.load_table("db.t")
    assert back.schema().schema_id == 1
    history = schema_history(back)
    current, made = history[-1], history[1]
    assert (current["schema_id"], current["is_current"]) == (1, True)
    assert (made["schema_id"], made["is_current"]) == (1, False)
    again = "again since 2024-01-01T00:00:00+00:00, when dbt run run-r restored `n1`"
    if is_left:
        assert current["invocation_id"] == ""
        assert made["changes"] == ["added `n1` (2) int", again]
        assert current["changes"] == ["dropped `n3` (4) int"]
    else:
        assert (current["invocation_id"], current["at"]) == ("run-r", "2024-01-01T00:00:00+00:00")
        assert made["changes"] == ["added `n1` (2) int"]


def _set_columns(other: Catalog, *, add: str = "", drop: str = "") -> None:
    with other.load_table("db.t").update_schema(allow_incompatible_changes=True) as update:
        if add:
            update.add_column(add, columns("x int").fields[0].field_type)
        if drop:
            update.delete_column(drop)


@pytest.mark.parametrize(("gone", "expected"), [(None, ["", "run-1", "run-2"]), (3, ["", "run-1", ""])])
def test_a_replacement_has_made_the_schema_of_the_first_file_that_records_it(
    other: Catalog, make_table: MakeTable, gone: int | None, expected: list[str]
) -> None:
    """The property has the last one only, and not which schema that was; others may have left it there."""
    make_table(columns("id int"), [{"id": 1}])
    for number in (1, 2):
        with other.load_table("db.t").transaction() as transaction:
            with transaction.update_schema() as update:
                update.add_column(f"n{number}", columns("x int").fields[0].field_type)
            entry = {"invocation_id": f"run-{number}", "at": f"2020-02-0{number}T00:00:00+00:00"}
            transaction.set_properties({REPLACED: json.dumps(entry)})
        with other.load_table("db.t").transaction() as transaction:
            transaction.set_properties({"of.others": str(number)})
    table = other.load_table("db.t")
    if gone is not None:
        file_of(table, gone).unlink()
    assert [schema["invocation_id"] for schema in schema_history(table)] == expected


@pytest.mark.parametrize("source", [None, fingerprint(columns("id int"))])
@pytest.mark.parametrize("back", [False, True])
def test_a_replacement_has_not_made_a_schema_that_was_there(
    other: Catalog, make_table: MakeTable, back: bool, source: str | None
) -> None:
    """Columns that the table has, or once had, get the schema of these, which somebody else has made."""
    make_table(columns("id int"), [{"id": 1}])
    if back:
        _set_columns(other, add="n1")
        _set_columns(other, drop="n1")
        _set_columns(other, add="n2")
    with other.load_table("db.t").transaction() as transaction:
        if back:
            with transaction.update_schema(allow_incompatible_changes=True) as update:
                update.delete_column("n2")
        entry = {"invocation_id": "run-1", "at": "2020-02-01T00:00:00+00:00"}
        # Of an incremental model the columns are known.
        entry |= {} if source is None else {"source": source}
        transaction.set_properties({REPLACED: json.dumps(entry)})
    table = other.load_table("db.t")
    assert table.metadata.current_schema_id == 0
    history = schema_history(table)
    assert [schema["invocation_id"] for schema in history] == [""] * len(history)
    assert not [schema["at"] for schema in history if schema["at"].startswith("2020")]
    # Without the files from before, nobody knows better.
    for number, _ in enumerate(table.metadata.metadata_log):
        file_of(table, number).unlink()
    assert schema_history(table)[0]["invocation_id"] == ("run-1" if source else "")


@pytest.fixture
def renamed(other: Catalog, make_table: MakeTable) -> Table:
    """A table whose column `a` was renamed, and whose name another one got then, in a commit each.

    Its metadata files are of 10 s and, with a row, 20 s after the epoch; of 30 s with the rename, and 40 s.
    """
    make_table(columns("id int, a int"), [{"id": 1}])
    with other.load_table("db.t").update_schema() as update:
        update.rename_column("a", "b")
    with other.load_table("db.t").update_schema() as update:
        update.add_column("a", columns("x int").fields[0].field_type)
    return at_times(other.load_table("db.t"))


def test_until_when_a_name_was_another_column_s(renamed: Table) -> None:
    """Not later than the old name is known to have been there, nor earlier than the new one is."""
    assert names_over_time(renamed).former == [(None, "a", 2, 30_000, True)]
    meaning = EarlierMeaning(("a",), None, 2, frozenset({0}), "`b`", True)
    assert names_over_time(renamed).meanings == {3: (meaning, 40_000)}
    # Between the last file that has the old name and the next one that is still there nobody knows.
    file_of(renamed, 2).unlink()
    assert names_over_time(renamed).former == [(None, "a", 2, 20_000, False)]
    for number in (0, 1):
        file_of(renamed, number).unlink()
    (snapshot,) = renamed.metadata.snapshots
    earlier = changed(renamed, snapshots=[snapshot.model_copy(update={"timestamp_ms": 19_000})])
    assert names_over_time(earlier).former == [(None, "a", 2, 19_000, False)]
    assert names_over_time(changed(renamed, snapshots=[])).former == [(None, "a", 2, 0, False)]
    assert names_over_time(earlier).meanings[3][1] == 40_000
    # What came back later may have been something else in between.
    (schema_id, between), at = (0, 1), (15_000, 17_000, 19_000)
    there_and_back = [
        snapshot.model_copy(update={"timestamp_ms": ms, "schema_id": id_, "snapshot_id": ms})
        for ms, id_ in zip(at, (schema_id, between, schema_id), strict=True)
    ]
    assert names_over_time(changed(renamed, snapshots=there_and_back)).former == [
        (None, "a", 2, 15_000, False)
    ]


def test_a_name_means_another_column_until_no_schema_says_so_any_more(
    other: Catalog, make_table: MakeTable
) -> None:
    """A schema that comes back has its old id: of swapped names, the last swap counts."""
    make_table(columns("id int, a int, b int"), [{"id": 1}])

    def swap(added: str = "") -> None:
        with other.load_table("db.t").update_schema() as update:
            update.rename_column("a", "b")
            update.rename_column("b", "a")
            if added:
                update.add_column(added, columns("x int").fields[0].field_type)

    swap()
    swap()
    table = at_times(other.load_table("db.t"))
    assert table.schema().schema_id == 0
    # Each name is the first one's again, and the other one had it by turns only.
    assert names_over_time(table).former == [(None, "a", 3, 0, False), (None, "b", 2, 0, False)]
    for field_id in (2, 3):
        meaning, until_ms = names_over_time(table).meanings[field_id]
        assert meaning.by_turns
        assert until_ms == 40_000
    swap(added="c")
    table = at_times(other.load_table("db.t"))
    found = names_over_time(table)
    assert found.former == [(None, "a", 2, 30_000, False), (None, "b", 3, 30_000, False)]
    assert {field_id: until_ms for field_id, (_, until_ms) in found.meanings.items()} == {
        2: 50_000,
        3: 50_000,
    }
    # Without the metadata file of the first time, a later time of the schema is not taken for that one.
    log = table.metadata.metadata_log
    cut = names_over_time(changed(table, metadata_log=log[2:]))
    assert cut.former == [(None, "a", 2, 0, False), (None, "b", 3, 0, False)]
    assert {field_id: until_ms for field_id, (_, until_ms) in cut.meanings.items()} == {2: 50_000, 3: 50_000}


def test_a_name_that_came_back_or_went_on_is_not_known_by_its_first_time(
    other: Catalog, make_table: MakeTable
) -> None:
    make_table(columns("id int, a int, n int"))
    for old, new in (("a", "b"), ("b", "a"), ("a", "b"), ("n", "m"), ("m", "k")):
        with other.load_table("db.t").update_schema() as update:
            update.rename_column(old, new)
    table = other.load_table("db.t")
    # What had the name once more had another one in between.
    assert [(use.name, use.field_id, use.is_exact) for use in names_over_time(table).former] == [
        ("a", 2, False),
        ("n", 3, True),
        ("m", 3, True),
    ]
    for old, new in (("k", "kept"), ("b", "k"), ("k", "end")):
        with other.load_table("db.t").update_schema() as update:
            update.rename_column(old, new)
    found = {(use.name, use.field_id): use for use in names_over_time(other.load_table("db.t")).former}
    # Two have had it by turns.
    assert found["k", 3].is_exact
    assert found["k", 2] == (None, "k", 2, 0, False)


def test_since_when_all_schemas_are_known(renamed: Table) -> None:
    assert names_over_time(renamed).complete_ms == 0
    schemas = {schema.schema_id: schema for schema in renamed.metadata.schemas}
    assert names_over_time(changed(renamed, schemas=[schemas[1], schemas[2]])).complete_ms == 30_000
    assert names_over_time(changed(renamed, schemas=[schemas[0], schemas[2]])).complete_ms == 40_000


def test_a_removed_schema_leaves_no_gap_where_an_older_one_has_come_back(
    other: Catalog, make_table: MakeTable
) -> None:
    """Its time is told by metadata files, and that it was there by what else it has left."""
    make_table(columns("id int, a int, b int"), [{"id": 1}])

    def swap() -> None:
        with other.load_table("db.t").update_schema() as update:
            update.rename_column("a", "b")
            update.rename_column("b", "a")

    swap()
    swap()
    with other.load_table("db.t").transaction() as transaction:
        transaction.set_properties({"of.others": "1"})
    table = at_times(other.load_table("db.t"))
    first = table.metadata.schemas[0]
    # Of 10 s, 20 s, of 30 s with the names swapped, and 40 s; the table itself is of 50 s.
    expired = changed(table, schemas=[first])
    assert names_over_time(table).complete_ms == 0
    assert names_over_time(expired) == ({}, [], 40_000)
    # Another schema has its id by now.
    id_, *others = first.fields
    later = Schema(id_, *others, id_.model_copy(update={"field_id": 4, "name": "c"}), schema_id=1)
    again = changed(table, schemas=[first, later], current_schema_id=1, last_column_id=4)
    assert names_over_time(again).complete_ms == 40_000
    assert seen(again) == {0: "00:10", 1: "00:50"}

    file_of(table, 2).unlink()
    assert names_over_time(expired) == ({}, [], 0)
    recorded = changed(expired, properties={f"{PREFIX}1": RECORD})
    assert names_over_time(recorded).complete_ms == 40_000
    assert names_over_time(changed(expired, last_column_id=4)).complete_ms == 40_000
    cut = table.metadata.metadata_log[3:]
    assert names_over_time(changed(recorded, metadata_log=cut)).complete_ms == 40_000
    assert names_over_time(changed(recorded, metadata_log=[])).complete_ms == 50_000
    # Of a time when files are missing, nobody knows.
    file_of(table, 3).unlink()
    assert names_over_time(recorded).complete_ms == 50_000


def test_a_removed_schema_whose_id_another_one_has_is_told_by_its_field(
    other: Catalog, make_table: MakeTable
) -> None:
    """Nothing else tells of it: what the one before it lacks was dropped, its metadata file is gone."""
    make_table(columns("id int"), [{"id": 1}])

    def change(*names: str) -> None:
        with other.load_table("db.t").update_schema(allow_incompatible_changes=True) as update:
            for name in names:
                update.add_column(name, columns("x int").fields[0].field_type)
            if not names:
                update.delete_column("w")

    change("w")
    change()
    change("w")
    # Made at 10 s, a row at 20 s, `w` of field 2 at 30 s, without it at 40 s, and `w` of field 3 at 50 s.
    again = other.load_table("db.t")
    (first, _, third) = again.metadata.schemas
    reused = Schema(*third.fields, schema_id=1)
    table = at_times(changed(again, schemas=[first, reused], current_schema_id=1))
    file_of(table, 2).unlink()
    assert names_over_time(table).complete_ms == 40_000
    whole = changed(
        table, schemas=[first, reused.model_copy(update={"schema_id": 2}), again.metadata.schemas[1]]
    )
    assert names_over_time(changed(whole, current_schema_id=2)).complete_ms == 0
    past = table_facts(table).past
    assert past.may_have_been(3, "whatever it was")
    assert not table_facts(again).past.may_have_been(3, "whatever it was")
