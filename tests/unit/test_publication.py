"""Branches of a real table: what a run starts from, and how its result becomes visible."""

import threading
import time

import pytest
from pyiceberg.catalog import Catalog
from pyiceberg.exceptions import CommitFailedException, CommitStateUnknownException
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.table.update import AddSchemaUpdate, RemoveSnapshotRefUpdate, SetCurrentSchemaUpdate
from pyiceberg.transforms import (
    BucketTransform,
    DayTransform,
    HourTransform,
    IdentityTransform,
    MonthTransform,
    TruncateTransform,
    VoidTransform,
    YearTransform,
)
from pyiceberg.types import DecimalType, IcebergType, IntegerType, LongType, StringType

from dbt.adapters.sparkevolve.errors import NotIcebergError, PublishError
from dbt.adapters.sparkevolve.iceberg import branches, catalog
from dbt.adapters.sparkevolve.iceberg.catalog import IcebergCatalog
from dbt.adapters.sparkevolve.iceberg.catalog_settings import CatalogSettings
from dbt.adapters.sparkevolve.iceberg.publication import (
    Base,
    Head,
    Published,
    descends_from,
    has_news,
    is_wap_enabled,
    left_over,
)
from dbt.adapters.sparkevolve.relation import SparkEvolveRelation
from tests.unit.conftest import MakeTable
from tests.unit.helpers import answering, append, columns, relation, struct, written_at

OURS = "sparkevolve_ffffffff_1_00000000_0123abcd"
HOUR = 3_600_000


def no_wap() -> str | None:
    raise AssertionError("asked although the table has no writes of that kind")


def no_fast_forward() -> None:
    raise AssertionError("fast-forwarded although PyIceberg can commit")


@pytest.fixture(autouse=True)
def _waits_are_short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(catalog, "_FIRST_WAIT_SECONDS", 0.001)


@pytest.fixture
def target(make_table: MakeTable) -> SparkEvolveRelation:
    """A table with a row."""
    return make_table(columns("id int"), [{"id": 1}])


def loaded(other: Catalog, branch: str, *rows: int, identifier: str = "db.t", **retention: int | None) -> int:
    """Cut a branch off, as a run does, append each row to it in a commit of its own; return its head."""
    table = other.load_table(identifier)
    assert table.metadata.current_snapshot_id is not None
    with table.manage_snapshots() as manage:
        manage.create_branch(
            table.metadata.current_snapshot_id, branch, **{"max_ref_age_ms": HOUR, **retention}
        )
    for row in rows:
        append(table, [{"id": row}], branch)
    return table.metadata.refs[branch].snapshot_id


def without_main(other: Catalog) -> None:
    """Leave a table with a branch alone: as Spark does when it cuts one off an empty table."""
    table = other.load_table("db.t")
    gone = RemoveSnapshotRefUpdate.model_validate({"ref-name": "main"})
    other.commit_table(table, (), (gone,))
    assert "main" not in other.load_table("db.t").metadata.refs


def ids(lake: IcebergCatalog, branch: str = "main") -> list[int]:
    table = lake.load(relation("t"))
    return sorted(row["id"] for row in table.scan().use_ref(branch).to_arrow().to_pylist())


def refs(lake: IcebergCatalog) -> set[str]:
    return set(lake.load(relation("t")).metadata.refs)


# What a run starts from


def test_a_run_starts_from_the_head_of_main(lake: IcebergCatalog, target: SparkEvolveRelation) -> None:
    head = lake.load(target).metadata.current_snapshot()
    assert head is not None
    base = lake.base(target, no_wap)
    assert (base.ref, base.head, base.cut_at) == ("main", head.snapshot_id, head.snapshot_id)
    assert base.cut_at_ms == head.timestamp_ms
    assert base.left_over == ()
    assert base.columns == ["id"]


def test_a_run_on_an_empty_table_starts_from_nothing(lake: IcebergCatalog, make_table: MakeTable) -> None:
    base = lake.base(make_table(columns("a.b int, C int")), no_wap)
    assert (base.ref, base.head, base.cut_at, base.cut_at_ms) == ("main", None, None, None)
    assert base.columns == ["a.b", "C"]


def test_a_run_on_no_table_is_refused(lake: IcebergCatalog) -> None:
    with pytest.raises(NotIcebergError):
        lake.base(relation("absent"), no_wap)


@pytest.mark.parametrize("value", ["true", "TRUE"])
def test_writes_that_are_reserved_to_a_branch_go_there(
    lake: IcebergCatalog, other: Catalog, make_table: MakeTable, value: str
) -> None:
    target = make_table(columns("id int"), [{"id": 1}], properties={"write.wap.enabled": value})
    assert is_wap_enabled(lake.load(target))
    main = lake.base(target, lambda: None)
    assert (main.ref, main.head) == ("main", main.cut_at)
    new = lake.base(target, lambda: "audit")
    assert (new.ref, new.head, new.cut_at) == ("audit", None, main.head)
    head = loaded(other, "audit", 2)
    old = lake.base(target, lambda: "audit")
    assert (old.ref, old.head, old.cut_at) == ("audit", head, head)
    assert head != main.head


@pytest.mark.parametrize("properties", [{}, {"write.wap.enabled": "false"}])
def test_a_session_is_not_asked_for_a_branch_that_the_table_does_not_heed(
    lake: IcebergCatalog, make_table: MakeTable, properties: dict[str, str]
) -> None:
    target = make_table(columns("id int"), properties=properties)
    assert not is_wap_enabled(lake.load(target))
    assert lake.base(target, no_wap).ref == "main"


def test_branches_of_runs_that_have_ended_are_left_over(
    lake: IcebergCatalog, other: Catalog, target: SparkEvolveRelation
) -> None:
    head_ms = lake.base(target, no_wap).cut_at_ms
    assert head_ms is not None
    loaded(other, OURS.replace("_1_", "_2_"), max_ref_age_ms=HOUR)
    loaded(other, OURS, max_ref_age_ms=2 * HOUR)
    loaded(other, OURS.replace("_1_", "_0_"), max_ref_age_ms=None)
    loaded(other, branches.branch_name(), max_ref_age_ms=1)
    loaded(other, "somebody_s", max_ref_age_ms=1)
    written_at(other.load_table("db.t"), head_ms + 99 * HOUR)
    table = lake.load(target)
    found = {hours: left_over(table, head_ms + hours * HOUR) for hours in (1, 2, 3, 48, 49)}
    assert found == {
        1: (),
        2: (OURS.replace("_1_", "_2_"),),
        3: (OURS, OURS.replace("_1_", "_2_")),
        48: (OURS, OURS.replace("_1_", "_2_")),
        49: (OURS.replace("_1_", "_0_"), OURS, OURS.replace("_1_", "_2_")),
    }
    assert lake.base(target, no_wap).left_over == ()


def test_the_age_of_a_branch_is_that_of_its_last_snapshot(
    lake: IcebergCatalog, other: Catalog, target: SparkEvolveRelation
) -> None:
    time.sleep(0.005)
    loaded(other, OURS, 2)
    table = lake.load(target)
    snapshot = table.snapshot_by_name(OURS)
    assert snapshot is not None
    assert snapshot.timestamp_ms > (lake.base(target, no_wap).cut_at_ms or 0)
    # This machine's clock may be ahead: somebody has to have written at that time, too.
    assert left_over(table, snapshot.timestamp_ms + 99 * HOUR) == ()
    written_at(table, snapshot.timestamp_ms + HOUR)
    assert left_over(lake.load(target), snapshot.timestamp_ms + 99 * HOUR) == ()
    written_at(lake.load(target), snapshot.timestamp_ms + HOUR + 1)
    table = lake.load(target)
    assert left_over(table, snapshot.timestamp_ms + HOUR) == ()
    assert left_over(table, snapshot.timestamp_ms + HOUR + 1) == (OURS,)


def test_what_a_table_is_partitioned_by_is_written_as_in_spark(lake: IcebergCatalog, other: Catalog) -> None:
    schema = columns("Id int, My Ts timestamp, s, d date", s=struct(10, X=IntegerType()))
    inner = schema.find_field("s.X").field_id
    transforms = [
        (1, IdentityTransform()),
        (1, BucketTransform(16)),
        (1, TruncateTransform(4)),
        (2, DayTransform()),
        (2, HourTransform()),
        (4, MonthTransform()),
        (4, YearTransform()),
        (inner, IdentityTransform()),
        (4, VoidTransform()),
    ]
    fields = [
        PartitionField(source_id=source, field_id=1000 + n, transform=transform, name=f"p{n}")
        for n, (source, transform) in enumerate(transforms)
    ]
    other.create_table("db.t", schema, partition_spec=PartitionSpec(*fields))
    assert [str(part) for part in lake.base(relation("t"), no_wap).partition_by] == [
        "id",
        "bucket(16, id)",
        "truncate(4, id)",
        "days(my ts)",
        "hours(my ts)",
        "months(d)",
        "years(d)",
        "s.x",
    ]


def test_a_table_that_is_not_partitioned(lake: IcebergCatalog, target: SparkEvolveRelation) -> None:
    assert lake.base(target, no_wap).partition_by == ()


# What a branch holds


def test_the_head_of_a_branch(lake: IcebergCatalog, other: Catalog, target: SparkEvolveRelation) -> None:
    first = lake.base(target, no_wap).head
    assert first is not None
    assert lake.head(target, "b") is None
    assert lake.head(target, "main") == Head(first, None, "append")
    second = loaded(other, "b", 2)
    assert lake.head(target, "b") == Head(second, first, "append")
    other.load_table("db.t").delete("id = 2", branch="b")
    deleted = lake.head(target, "b")
    assert deleted is not None
    assert (deleted.parent_id, deleted.operation) == (second, "delete")
    assert lake.head(target, "main") == Head(first, None, "append")


def test_a_table_has_moved_if_its_branch_has(
    lake: IcebergCatalog, other: Catalog, target: SparkEvolveRelation
) -> None:
    base = lake.base(target, no_wap)
    assert not lake.has_moved(target, base)
    loaded(other, "b", 2)
    with other.load_table("db.t").update_schema() as update:
        update.add_column("x", IntegerType())
    assert not lake.has_moved(target, base)
    append(other.load_table("db.t"), [{"id": 3}])
    assert lake.has_moved(target, base)
    assert not lake.has_moved(target, lake.base(target, no_wap))


def test_an_empty_table_has_moved_if_it_has_a_snapshot(
    lake: IcebergCatalog, other: Catalog, make_table: MakeTable
) -> None:
    target = make_table(columns("id int"))
    base = lake.base(target, no_wap)
    assert not lake.has_moved(target, base)
    append(other.load_table("db.t"), [{"id": 3}])
    assert lake.has_moved(target, base)
    # The model may have read the row, though it is gone.
    without_main(other)
    assert lake.has_moved(target, base)
    assert not lake.has_moved(target, lake.base(target, no_wap))


@pytest.mark.parametrize("ref", ["main", "audit"])
def test_a_commit_that_was_rolled_back_is_noticed(
    lake: IcebergCatalog, other: Catalog, make_table: MakeTable, ref: str
) -> None:
    """The branch is where it was, and the model may have read what was there meanwhile."""
    target = make_table(columns("id int"), [{"id": 1}], properties={"write.wap.enabled": "true"})
    table = other.load_table("db.t")
    head = table.metadata.current_snapshot_id
    assert head is not None
    if ref != "main":
        table.manage_snapshots().create_branch(head, ref).commit()
    base = lake.base(target, lambda: ref)
    loaded(other, "b", 2)
    assert not lake.has_moved(target, base)
    append(other.load_table("db.t"), [{"id": 3}], ref)
    other.load_table("db.t").manage_snapshots().create_branch(head, ref).commit()
    assert lake.load(target).metadata.refs[ref].snapshot_id == base.head
    assert lake.has_moved(target, base)
    assert publish(lake, base) == Published.MOVED
    again = lake.base(target, lambda: ref)
    assert not lake.has_moved(target, again)
    assert publish(lake, again) == Published.YES
    assert ids(lake, ref) == [1, 2]


@pytest.mark.parametrize(
    ("written", "now", "outcome"),
    [
        (IntegerType(), StringType(), Published.MOVED),
        (LongType(), IntegerType(), Published.MOVED),
        (IntegerType(), LongType(), Published.YES),
        (DecimalType(9, 2), DecimalType(12, 2), Published.YES),
        (DecimalType(9, 2), DecimalType(12, 3), Published.MOVED),
        (IntegerType(), struct(3, x=IntegerType()), Published.MOVED),
        (struct(3, x=IntegerType()), struct(3, x=StringType()), Published.MOVED),
        (struct(3, x=IntegerType()), struct(3, x=IntegerType(), y=StringType()), Published.YES),
    ],
)
def test_what_was_loaded_is_not_published_as_another_type(
    lake: IcebergCatalog,
    other: Catalog,
    make_table: MakeTable,
    written: IcebergType,
    now: IcebergType,
    outcome: Published,
) -> None:
    """`CREATE OR REPLACE` gives `v` its old id with another type, and moves no branch of an empty table."""
    target = make_table(columns("id int, v", v=written), [{"id": 1, "v": None}])
    loaded(other, "b", 2)
    replaced = columns("id int, v", v=now).model_copy(update={"schema_id": 1})
    updates = (
        AddSchemaUpdate.model_validate({"schema": replaced}),
        SetCurrentSchemaUpdate.model_validate({}),
    )
    other.commit_table(other.load_table("db.t"), (), updates)
    assert lake.load(target).schema().find_type("v") == now
    assert publish(lake, lake.base(target, no_wap)) == outcome


def test_the_same_table_under_another_uuid_has_moved(
    lake: IcebergCatalog, other: Catalog, make_table: MakeTable
) -> None:
    target = make_table(columns("id int"))
    base = lake.base(target, no_wap)
    other.drop_table("db.t")
    make_table(columns("id int"))
    assert lake.has_moved(target, base)


def test_the_files_that_a_load_has_added(
    lake: IcebergCatalog, other: Catalog, target: SparkEvolveRelation
) -> None:
    old = {task.file.file_path for task in lake.load(target).scan().plan_files()}
    assert lake.added_files(target, "b") == []
    loaded(other, "b", 2, 3)
    table = lake.load(target)
    snapshot = table.snapshot_by_name("b")
    assert snapshot is not None
    every = {task.file.file_path for task in table.scan().use_ref("b").plan_files()}
    (added,) = lake.added_files(target, "b")
    parent = table.snapshot_by_id(snapshot.parent_snapshot_id or 0)
    assert parent is not None
    before = {task.file.file_path for task in table.scan(snapshot_id=parent.snapshot_id).plan_files()}
    assert {added} == every - before
    assert added not in old
    other.load_table("db.t").delete("id = 1", branch="b")
    assert lake.added_files(target, "b") == []


def test_a_rewritten_file_counts_as_added_and_a_kept_one_does_not(
    lake: IcebergCatalog, other: Catalog, make_table: MakeTable
) -> None:
    target = make_table(columns("id int"), [{"id": 1}, {"id": 2}], [{"id": 3}])
    loaded(other, "b")
    before = {task.file.file_path for task in lake.load(target).scan().use_ref("b").plan_files()}
    other.load_table("db.t").delete("id = 1", branch="b")
    after = {task.file.file_path for task in lake.load(target).scan().use_ref("b").plan_files()}
    assert set(lake.added_files(target, "b")) == after - before
    assert len(after - before) == len(after & before) == 1


def test_a_branch_has_news_if_a_commit_since_the_base_changed_a_file(
    lake: IcebergCatalog, other: Catalog, target: SparkEvolveRelation
) -> None:
    base = lake.base(target, no_wap).head
    head = loaded(other, "b")
    assert not has_news(lake.load(target), head, base)
    empty = other.load_table("db.t")
    empty.append(empty.scan().to_arrow().slice(0, 0), branch="b")
    table = lake.load(target)
    snapshot = table.snapshot_by_name("b")
    assert snapshot is not None
    assert snapshot.snapshot_id != base
    assert not has_news(table, snapshot.snapshot_id, base)
    assert has_news(table, snapshot.snapshot_id, None)
    append(other.load_table("db.t"), [{"id": 2}], "b")
    other.load_table("db.t").append(empty.scan().to_arrow().slice(0, 0), branch="b")
    table = lake.load(target)
    assert has_news(table, table.metadata.refs["b"].snapshot_id, base)


def test_rows_that_are_gone_are_news(
    lake: IcebergCatalog, other: Catalog, target: SparkEvolveRelation
) -> None:
    base = lake.base(target, no_wap).head
    loaded(other, "b")
    other.load_table("db.t").delete("id = 1", branch="b")
    table = lake.load(target)
    assert has_news(table, table.metadata.refs["b"].snapshot_id, base)


def test_a_snapshot_descends_from_itself_and_from_each_one_before(
    lake: IcebergCatalog, other: Catalog, target: SparkEvolveRelation
) -> None:
    first = lake.base(target, no_wap).head
    second = loaded(other, "b", 2)
    third = loaded(other, "c", 3)
    table = lake.load(target)
    assert first is not None
    assert descends_from(table, second, first)
    assert descends_from(table, second, second)
    assert not descends_from(table, first, second)
    assert not descends_from(table, third, second)
    assert not descends_from(table, None, first)
    assert not descends_from(table, 7, first)
    assert descends_from(table, 7, 7)


# Publishing


def publish(lake: IcebergCatalog, base: Base, branch: str = "b", retries: int = 0) -> Published:
    return lake.publish(relation("t"), base, branch, retries, no_fast_forward)


def test_a_branch_is_published_in_one_commit_that_removes_it(
    lake: IcebergCatalog, other: Catalog, target: SparkEvolveRelation
) -> None:
    base = lake.base(target, no_wap)
    head = loaded(other, "b", 2, 3, max_ref_age_ms=HOUR)
    before = lake.load(target)
    assert ids(lake) == [1]
    assert publish(lake, base) == Published.YES
    table = lake.load(target)
    assert ids(lake) == [1, 2, 3]
    assert refs(lake) == {"main"}
    assert table.metadata.current_snapshot_id == head
    assert table.metadata.refs["main"].max_ref_age_ms is None
    assert len(table.metadata.metadata_log) == len(before.metadata.metadata_log) + 1
    assert [entry.snapshot_id for entry in table.metadata.snapshot_log] == [base.head, head]
    assert table.metadata.last_updated_ms >= before.metadata.last_updated_ms


def test_how_long_main_keeps_its_snapshots_stays(
    lake: IcebergCatalog, other: Catalog, target: SparkEvolveRelation
) -> None:
    head = lake.base(target, no_wap).head
    table = other.load_table("db.t")
    with table.manage_snapshots() as manage:
        manage.create_branch(head or 0, "main", max_snapshot_age_ms=7 * HOUR, min_snapshots_to_keep=3)
    base = lake.base(target, no_wap)
    loaded(other, "b", 2, max_ref_age_ms=HOUR)
    assert publish(lake, base) == Published.YES
    main = lake.load(target).metadata.refs["main"]
    assert (main.max_ref_age_ms, main.max_snapshot_age_ms, main.min_snapshots_to_keep) == (None, 7 * HOUR, 3)
    assert ids(lake) == [1, 2]


def test_the_first_rows_of_a_table_are_published(
    lake: IcebergCatalog, other: Catalog, target: SparkEvolveRelation
) -> None:
    head = loaded(other, "b", 2)
    without_main(other)
    base = Base(lake.load(target), "main", None, None)
    assert publish(lake, base) == Published.YES
    assert lake.load(target).metadata.current_snapshot_id == head
    assert refs(lake) == {"main"}


def test_of_two_first_loads_of_an_empty_table_one_is_published(
    lake: IcebergCatalog, other: Catalog, target: SparkEvolveRelation
) -> None:
    loaded(other, "b", 2)
    loaded(other, "c", 3)
    without_main(other)
    base = Base(lake.load(target), "main", None, None)
    assert publish(lake, base) == Published.YES
    assert publish(lake, base, "c") == Published.MOVED
    assert ids(lake) == [1, 2]
    assert refs(lake) == {"main", "c"}


@pytest.mark.parametrize("exists", [False, True])
def test_a_branch_other_than_main_is_published_to(
    lake: IcebergCatalog, other: Catalog, make_table: MakeTable, exists: bool
) -> None:
    properties = {"write.wap.enabled": "true"}
    target = make_table(columns("id int"), [{"id": 1}], properties=properties)
    if exists:
        loaded(other, "audit", 5)
    base = lake.base(target, lambda: "audit")
    table = other.load_table("db.t")
    with table.manage_snapshots() as manage:
        manage.create_branch(base.cut_at or 0, "b", max_ref_age_ms=HOUR)
    append(table, [{"id": 2}], "b")
    assert publish(lake, base) == Published.YES
    assert ids(lake) == [1]
    assert ids(lake, "audit") == ([1, 2, 5] if exists else [1, 2])
    assert refs(lake) == {"main", "audit"}


def test_a_table_that_has_moved_is_not_published_to(
    lake: IcebergCatalog, other: Catalog, target: SparkEvolveRelation
) -> None:
    base = lake.base(target, no_wap)
    loaded(other, "b", 2)
    append(other.load_table("db.t"), [{"id": 9}])
    before = lake.load(target).metadata_location
    assert publish(lake, base, retries=4) == Published.MOVED
    assert ids(lake) == [1, 9]
    assert refs(lake) == {"main", "b"}
    assert lake.load(target).metadata_location == before


def test_a_table_that_was_taken_back_has_moved_too(
    lake: IcebergCatalog, other: Catalog, make_table: MakeTable
) -> None:
    target = make_table(columns("id int"), [{"id": 1}], [{"id": 2}])
    base = lake.base(target, no_wap)
    loaded(other, "b", 3)
    parent = lake.load(target).metadata.snapshots[0].snapshot_id
    with other.load_table("db.t").manage_snapshots() as manage:
        manage.rollback_to_snapshot(parent)
    assert publish(lake, base) == Published.MOVED
    assert ids(lake) == [1]


def test_a_branch_that_is_gone_is_not_published(
    lake: IcebergCatalog, other: Catalog, target: SparkEvolveRelation
) -> None:
    """Somebody has expired it: the batch has to be loaded again."""
    base = lake.base(target, no_wap)
    assert publish(lake, base, "never there") == Published.MOVED


def test_a_branch_that_was_made_anew_is_not_published(
    lake: IcebergCatalog, other: Catalog, target: SparkEvolveRelation
) -> None:
    """By an INSERT of Spark's, after somebody had removed the one that the run had cut: without retention."""
    base = lake.base(target, no_wap)
    head = loaded(other, "b", 2, max_ref_age_ms=None)
    assert publish(lake, base, retries=4) == Published.MOVED
    assert ids(lake) == [1]
    with other.load_table("db.t").manage_snapshots() as manage:
        manage.create_branch(head, "b", max_ref_age_ms=HOUR)
    assert publish(lake, base) == Published.YES
    assert ids(lake) == [1, 2]


def test_what_changes_nothing_is_not_published(
    lake: IcebergCatalog, other: Catalog, target: SparkEvolveRelation
) -> None:
    base = lake.base(target, no_wap)
    loaded(other, "b")
    append(other.load_table("db.t"), [], "b")
    before = lake.load(target).metadata_location
    assert publish(lake, base) == Published.NOTHING_NEW
    assert lake.load(target).metadata_location == before
    assert lake.load(target).metadata.current_snapshot_id == base.head
    lake.drop_branch(target, "b")
    assert refs(lake) == {"main"}


def test_other_changes_of_the_table_do_not_stand_in_the_way(
    lake: IcebergCatalog, other: Catalog, target: SparkEvolveRelation
) -> None:
    base = lake.base(target, no_wap)
    loaded(other, "b", 2)
    loaded(other, "c", 3)
    with other.load_table("db.t").update_schema() as update:
        update.add_column("x", IntegerType())
    assert publish(lake, base) == Published.YES
    assert ids(lake) == [1, 2]
    assert refs(lake) == {"main", "c"}


LOST = [
    CommitStateUnknownException("lost"),
    OSError("lost connection"),
    ValueError("lost"),
    CommitFailedException("lost: reported as a conflict"),
]


@pytest.mark.parametrize("error", LOST, ids=["unknown", "connection", "other", "conflict"])
@pytest.mark.parametrize("retries", [0, 4])
def test_a_publication_whose_answer_was_lost_is_recognised(
    lake: IcebergCatalog,
    other: Catalog,
    target: SparkEvolveRelation,
    monkeypatch: pytest.MonkeyPatch,
    error: Exception,
    retries: int,
) -> None:
    base = lake.base(target, no_wap)
    loaded(other, "b", 2)
    calls = answering(lake, monkeypatch, error)
    assert publish(lake, base, retries=retries) == Published.YES
    assert len(calls) == 1
    assert ids(lake) == [1, 2]
    assert refs(lake) == {"main"}


def test_a_lost_answer_is_recognised_below_what_others_have_committed_since(
    lake: IcebergCatalog, other: Catalog, target: SparkEvolveRelation, monkeypatch: pytest.MonkeyPatch
) -> None:
    base = lake.base(target, no_wap)
    loaded(other, "b", 2)
    real = lake._catalog.commit_table

    def commit_table(*args: object) -> object:
        real(*args)  # type: ignore[arg-type]
        append(other.load_table("db.t"), [{"id": 9}])
        raise OSError("lost")

    monkeypatch.setattr(lake._catalog, "commit_table", commit_table)
    assert publish(lake, base, retries=1) == Published.YES
    assert ids(lake) == [1, 2, 9]


@pytest.mark.parametrize("retries", [0, 2])
def test_a_catalog_that_refuses_is_asked_as_often_as_is_allowed(
    lake: IcebergCatalog,
    other: Catalog,
    target: SparkEvolveRelation,
    monkeypatch: pytest.MonkeyPatch,
    retries: int,
) -> None:
    base = lake.base(target, no_wap)
    loaded(other, "b", 2)
    errors = [OSError(f"disk full {n}") for n in range(retries + 1)]
    calls = answering(lake, monkeypatch, *errors)
    with pytest.raises(PublishError) as raised:
        publish(lake, base, retries=retries)
    assert len(calls) == retries + 1
    assert raised.value.relation == "`lake`.`db`.`t`"
    assert f"answer: disk full {retries}. Readers" in raised.value.msg
    assert raised.value.__cause__ is errors[-1]
    assert ids(lake) == [1]
    assert refs(lake) == {"main", "b"}


def test_a_catalog_that_answers_again_publishes(
    lake: IcebergCatalog, other: Catalog, target: SparkEvolveRelation, monkeypatch: pytest.MonkeyPatch
) -> None:
    base = lake.base(target, no_wap)
    loaded(other, "b", 2)
    calls = answering(lake, monkeypatch, CommitFailedException("busy"), OSError("no route"))
    assert publish(lake, base, retries=2) == Published.YES
    assert calls == ["busy", "no route", "ok"]
    assert ids(lake) == [1, 2]


@pytest.mark.parametrize("retries", [0, 1])
def test_another_writer_between_the_look_and_the_commit_is_seen(
    lake: IcebergCatalog,
    other: Catalog,
    target: SparkEvolveRelation,
    monkeypatch: pytest.MonkeyPatch,
    retries: int,
) -> None:
    """In the last attempt, too: it is a table that has moved, and no refusal."""
    base = lake.base(target, no_wap)
    loaded(other, "b", 2)
    real, calls = lake._catalog.commit_table, []

    def commit_table(*args: object) -> object:
        calls.append(args)
        append(other.load_table("db.t"), [{"id": 9}])
        return real(*args)  # type: ignore[arg-type]

    monkeypatch.setattr(lake._catalog, "commit_table", commit_table)
    assert publish(lake, base, retries=retries) == Published.MOVED
    assert len(calls) == 1
    assert ids(lake) == [1, 9]
    assert refs(lake) == {"main", "b"}


def test_a_branch_that_somebody_still_writes_to_is_published_as_it_was_seen_or_not_at_all(
    lake: IcebergCatalog, other: Catalog, target: SparkEvolveRelation, monkeypatch: pytest.MonkeyPatch
) -> None:
    base = lake.base(target, no_wap)
    loaded(other, "b", 2)
    real, late = lake._catalog.commit_table, [3]

    def commit_table(*args: object) -> object:
        if late:
            append(other.load_table("db.t"), [{"id": late.pop()}], "b")
        return real(*args)  # type: ignore[arg-type]

    monkeypatch.setattr(lake._catalog, "commit_table", commit_table)
    with pytest.raises(PublishError, match="branch b has changed"):
        publish(lake, base)
    assert ids(lake) == [1]


def test_a_table_that_is_gone_cannot_be_published_to(
    lake: IcebergCatalog, other: Catalog, target: SparkEvolveRelation
) -> None:
    base = lake.base(target, no_wap)
    loaded(other, "b", 2)
    other.drop_table("db.t")
    with pytest.raises(PublishError, match="is not a table of the Iceberg catalog") as raised:
        publish(lake, base, retries=1)
    assert isinstance(raised.value.__cause__, NotIcebergError)


def test_another_table_of_the_same_name_has_moved(
    lake: IcebergCatalog, other: Catalog, target: SparkEvolveRelation, make_table: MakeTable
) -> None:
    base = lake.base(target, no_wap)
    loaded(other, "b", 2)
    other.drop_table("db.t")
    make_table(columns("id int"), [{"id": 7}])
    assert publish(lake, base) == Published.MOVED
    assert ids(lake) == [7]


def test_of_two_runs_from_one_base_one_publishes(
    lake: IcebergCatalog, other: Catalog, target: SparkEvolveRelation, settings: CatalogSettings
) -> None:
    base = lake.base(target, no_wap)
    numbers = [2, 3, 4]
    for number in numbers:
        loaded(other, f"b{number}", number)
    start, outcomes = threading.Barrier(len(numbers)), dict.fromkeys(numbers, Published.NOTHING_NEW)

    def work(number: int) -> None:
        gateway = IcebergCatalog(settings)
        start.wait(timeout=20)
        outcomes[number] = gateway.publish(target, base, f"b{number}", 10, no_fast_forward)

    threads = [threading.Thread(target=work, args=(number,), daemon=True) for number in numbers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    (winner,) = [number for number, outcome in outcomes.items() if outcome == Published.YES]
    assert sorted(outcomes.values(), key=str) == [Published.MOVED, Published.MOVED, Published.YES]
    assert ids(lake) == [1, winner]
    assert refs(lake) == {"main", *(f"b{number}" for number in numbers if number != winner)}


# Tables that PyIceberg cannot commit to


@pytest.fixture
def newer(monkeypatch: pytest.MonkeyPatch, target: SparkEvolveRelation) -> SparkEvolveRelation:
    """A table of a format that is newer than what PyIceberg commits to."""
    monkeypatch.setattr(catalog, "NEWEST_FORMAT_TO_COMMIT", 1)
    return target


def test_a_newer_table_is_published_to_through_spark(
    lake: IcebergCatalog, other: Catalog, newer: SparkEvolveRelation
) -> None:
    base = lake.base(newer, no_wap)
    head = loaded(other, "b", 2)
    calls = []

    def fast_forward() -> None:
        calls.append("forward")
        if len(calls) == 1:
            raise OSError("no answer")
        with other.load_table("db.t").manage_snapshots() as manage:
            manage.set_current_snapshot(head)

    assert lake.publish(newer, base, "b", 1, fast_forward) == Published.YES
    assert len(calls) == 2
    assert ids(lake) == [1, 2]


def test_a_newer_table_that_spark_has_moved_before_its_answer_was_lost(
    lake: IcebergCatalog, other: Catalog, newer: SparkEvolveRelation
) -> None:
    base = lake.base(newer, no_wap)
    head = loaded(other, "b", 2)

    def fast_forward() -> None:
        with other.load_table("db.t").manage_snapshots() as manage:
            manage.set_current_snapshot(head)
        raise OSError("lost")

    assert lake.publish(newer, base, "b", 0, fast_forward) == Published.YES
    assert ids(lake) == [1, 2]


def test_the_branch_of_a_newer_table_is_left_to_expire(
    lake: IcebergCatalog, other: Catalog, newer: SparkEvolveRelation
) -> None:
    loaded(other, "b")
    before = lake.load(newer).metadata_location
    lake.drop_branch(newer, "b")
    assert lake.load(newer).metadata_location == before


# Removing a branch


def test_a_branch_is_removed_and_nothing_else(
    lake: IcebergCatalog, other: Catalog, target: SparkEvolveRelation
) -> None:
    loaded(other, "b", 2)
    loaded(other, "c", 3)
    lake.drop_branch(target, "b")
    assert refs(lake) == {"main", "c"}
    assert ids(lake) == [1]
    before = lake.load(target).metadata_location
    lake.drop_branch(target, "b")
    assert lake.load(target).metadata_location == before


def test_a_branch_is_removed_though_others_commit(
    lake: IcebergCatalog, other: Catalog, target: SparkEvolveRelation, monkeypatch: pytest.MonkeyPatch
) -> None:
    loaded(other, "b", 2)
    calls = answering(lake, monkeypatch, *[CommitFailedException("busy")] * 4)
    lake.drop_branch(target, "b")
    assert len(calls) == 5
    assert refs(lake) == {"main"}


def test_the_first_snapshot_of_an_empty_table_is_no_news(
    lake: IcebergCatalog, other: Catalog, make_table: MakeTable
) -> None:
    """As the one that Spark makes when it cuts a branch off a table without any."""
    target = make_table(columns("id int"), [])
    table = lake.load(target)
    head = table.metadata.current_snapshot_id
    assert head is not None
    assert not has_news(table, head, None)
    assert not has_news(table, head, 7)
