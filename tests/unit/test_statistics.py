"""What the metadata of a table tell of its rows, files and age."""

import pytest
from pyiceberg.catalog import Catalog
from pyiceberg.table import Table
from pyiceberg.table.snapshots import Operation, Snapshot, Summary
from pyiceberg.table.update import RemoveSnapshotsUpdate
from pyiceberg.transforms import BucketTransform, IdentityTransform

from dbt.adapters.sparkevolve.iceberg.statistics import STATISTICS, last_change, statistics
from tests.unit.conftest import MakeTable
from tests.unit.helpers import append, columns

NOON = 1_767_268_800_000  # 2026-01-01T12:00:00 UTC
HOUR = 3_600_000


@pytest.fixture
def table(other: Catalog, make_table: MakeTable) -> Table:
    """A table with three rows in two files."""
    make_table(columns("id int, s string"), [{"id": 1, "s": "a"}, {"id": 2, "s": "b"}])
    append(other.load_table("db.t"), [{"id": 3, "s": "c"}])
    return other.load_table("db.t")


def with_snapshots(table: Table, snapshots: list[Snapshot], head: int | None) -> Table:
    refs = {"main": table.metadata.refs["main"].model_copy(update={"snapshot_id": head})}
    update = {"snapshots": snapshots, "current_snapshot_id": head, "refs": refs if head is not None else {}}
    metadata = table.metadata.model_copy(update=update)
    return Table(table.name(), metadata, table.metadata_location, table.io, table.catalog)


def snapshot(number: int, operation: Operation | None, parent: int | None = None, **summary: str) -> Snapshot:
    """A snapshot made ``number`` hours after noon, with what its summary says."""
    said = (
        None
        if operation is None
        else Summary(operation, **{k.replace("_", "-"): v for k, v in summary.items()})
    )
    return Snapshot(
        snapshot_id=number,
        parent_snapshot_id=parent,
        timestamp_ms=NOON + number * HOUR,
        manifest_list=f"file:///none/{number}.avro",
        summary=said,
    )


def values(table: Table) -> dict[str, int | str]:
    return {one.id: one.value for one in statistics(table)}


def test_of_rows_that_pyiceberg_wrote(table: Table, other: Catalog) -> None:
    head = table.current_snapshot()
    assert head is not None
    moved = with_snapshots(table, [head.model_copy(update={"timestamp_ms": NOON})], head.snapshot_id)
    size = sum(task.file.file_size_in_bytes for task in table.scan().plan_files())
    assert values(moved) == {
        "rows": 3,
        "bytes": size,
        "files": 2,
        "last_modified": "2026-01-01T12:00:00+00:00",
        "snapshots": 1,
        "format_version": 2,
    }
    with table.update_spec() as spec:
        spec.add_field("id", BucketTransform(16), "b")
        spec.add_field("s", IdentityTransform(), "s")
    assert values(other.load_table("db.t"))["partitioned_by"] == "bucket(16, id), s"
    assert {one.id for one in statistics(other.load_table("db.t"))} == set(STATISTICS)


def test_of_a_table_that_never_had_a_row(make_table: MakeTable, other: Catalog) -> None:
    make_table(columns("id int"))
    empty = other.load_table("db.t")
    assert values(empty) == {"snapshots": 0, "format_version": 2}
    assert last_change(empty) is None


def test_deleted_rows_make_the_count_approximate(table: Table) -> None:
    totals = {"total_records": "10", "total_equality_deletes": "0"}
    deleted = snapshot(1, Operation.DELETE, total_position_deletes="4", **totals)
    (rows,) = (one for one in statistics(with_snapshots(table, [deleted], 1)) if one.id == "rows")
    assert (rows.label, rows.value) == ("Approximate row count", 6)
    # Deletes of files that compaction has rewritten.
    dangling = snapshot(1, Operation.DELETE, total_position_deletes="14", **totals)
    assert values(with_snapshots(table, [dangling], 1))["rows"] == 0
    # A change stream deletes by value, and nobody knows how many rows that met.
    unknown = {**totals, "total_position_deletes": "0", "total_equality_deletes": "1"}
    assert "rows" not in values(with_snapshots(table, [snapshot(1, Operation.DELETE, **unknown)], 1))


@pytest.mark.parametrize("operation", [None, Operation.APPEND])
def test_summaries_without_totals(table: Table, operation: Operation | None) -> None:
    assert set(values(with_snapshots(table, [snapshot(1, operation)], 1))) == {
        "last_modified",
        "snapshots",
        "format_version",
    }


def test_compaction_is_no_change(table: Table) -> None:
    loaded = snapshot(1, Operation.OVERWRITE)
    compacted = [snapshot(2, Operation.REPLACE, 1), snapshot(3, Operation.REPLACE, 2)]
    assert last_change(with_snapshots(table, [loaded, *compacted], 3)) == NOON + HOUR
    # What was before has expired: no later than the oldest that is known.
    assert last_change(with_snapshots(table, compacted, 3)) == NOON + 2 * HOUR
    # A roll-back goes back in time.
    deleted = snapshot(4, Operation.DELETE, 3)
    assert last_change(with_snapshots(table, [loaded, *compacted, deleted], 4)) == NOON + 4 * HOUR
    assert last_change(with_snapshots(table, [loaded, *compacted, deleted], 1)) == NOON + HOUR


def test_a_commit_without_rows_is_no_change(make_table: MakeTable, other: Catalog) -> None:
    make_table(columns("id int"))
    append(other.load_table("db.t"), [])
    empty = other.load_table("db.t")
    assert len(empty.metadata.snapshots) == 1
    assert last_change(empty) is None
    append(empty, [{"id": 1}])
    loaded = other.load_table("db.t").current_snapshot()
    for _ in range(2):
        append(other.load_table("db.t"), [])
    after = other.load_table("db.t")
    assert loaded is not None
    assert after.metadata.refs["main"].snapshot_id != loaded.snapshot_id
    assert last_change(after) == loaded.timestamp_ms
    after.delete("id = 1")
    deleted = other.load_table("db.t").current_snapshot()
    assert deleted is not None
    assert last_change(other.load_table("db.t")) == deleted.timestamp_ms > loaded.timestamp_ms


def test_what_spark_says_of_a_commit_without_rows(table: Table) -> None:
    totals = {"total_data_files": "1", "total_records": "3", "changed_partition_count": "0"}
    loaded = snapshot(1, Operation.APPEND, total_data_files="1", added_data_files="1")
    empty = snapshot(2, Operation.APPEND, 1, **totals)
    assert last_change(with_snapshots(table, [loaded, empty], 2)) == NOON + HOUR
    # Rows that are deleted, and deletes that are taken back, are changes.
    for number, field in enumerate(("added_delete_files", "removed_delete_files", "deleted_data_files"), 2):
        changed = snapshot(number, Operation.DELETE, 1, **totals, **{field: "1"})
        assert last_change(with_snapshots(table, [loaded, changed], number)) == NOON + number * HOUR
    # A table that was replaced by an empty one begins again, and is no table that never had a row.
    replaced = snapshot(2, Operation.APPEND, total_data_files="0")
    assert last_change(with_snapshots(table, [replaced], 2)) == NOON + 2 * HOUR


def test_a_time_that_no_calendar_has(table: Table) -> None:
    late = snapshot(1, Operation.APPEND).model_copy(update={"timestamp_ms": NOON * 1000})
    assert "last_modified" not in values(with_snapshots(table, [late], 1))


@pytest.mark.parametrize("is_emptied", [False, True])
def test_the_first_number_of_an_upgraded_table_is_not_its_first_commit(
    make_table: MakeTable, other: Catalog, is_emptied: bool
) -> None:
    make_table(columns("id int"), [{"id": 1}], properties={"format-version": "1"})
    table = other.load_table("db.t")
    if is_emptied:
        table.delete("id = 1")
    with table.transaction() as change:
        change.upgrade_table_version(2)
    append(table, [])
    head = other.load_table("db.t").metadata.snapshots[-1]
    assert (head.sequence_number, last_change(other.load_table("db.t"))) != (1, None)
    gone = [s.snapshot_id for s in other.load_table("db.t").metadata.snapshots[:-1]]
    other.commit_table(other.load_table("db.t"), (), (RemoveSnapshotsUpdate(snapshot_ids=gone),))
    # The oldest commit that is known bounds it from above.
    assert last_change(other.load_table("db.t")) == head.timestamp_ms
