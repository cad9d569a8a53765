"""What a run starts from, of a real table."""

import time

import pytest
from pyiceberg.catalog import Catalog
from pyiceberg.partitioning import PartitionField, PartitionSpec
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
from pyiceberg.types import IntegerType

from dbt.adapters.sparkevolve.errors import NotIcebergError
from dbt.adapters.sparkevolve.iceberg import branches
from dbt.adapters.sparkevolve.iceberg.base import Head, is_wap_enabled, left_over
from dbt.adapters.sparkevolve.iceberg.catalog import IcebergCatalog
from dbt.adapters.sparkevolve.iceberg.publication import Published
from dbt.adapters.sparkevolve.relation import SparkEvolveRelation
from tests.unit.conftest import MakeTable
from tests.unit.helpers import (
    HOUR,
    append,
    columns,
    ids,
    loaded,
    no_wap,
    relation,
    struct,
    without_main,
    written_at,
)

OURS = "sparkevolve_ffffffff_1_00000000_0123abcd"


@pytest.fixture
def target(make_table: MakeTable) -> SparkEvolveRelation:
    """A table with a row."""
    return make_table(columns("id int"), [{"id": 1}])


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


@pytest.mark.parametrize("is_made", [False, True])
def test_a_branch_beside_main_has_moved_if_its_names_are_looked_up_elsewhere(
    lake: IcebergCatalog, other: Catalog, make_table: MakeTable, is_made: bool
) -> None:
    """In the schema that it was written under, once main has a newer snapshot."""
    target = make_table(columns("id int"), [{"id": 1}], properties={"write.wap.enabled": "true"})
    if is_made:
        with other.load_table("db.t").manage_snapshots() as manage:
            manage.create_branch(lake.base(target, lambda: None).cut_at, "audit")
    base = lake.base(target, lambda: "audit")
    assert (base.ref, base.head is not None) == ("audit", is_made)
    append(other.load_table("db.t"), [{"id": 3}])
    assert not lake.has_moved(target, base)
    with other.load_table("db.t").update_schema() as update:
        update.add_column("x", IntegerType())
    assert lake.has_moved(target, base)
    # One that begins now knows from the beginning where its names are looked up.
    base = lake.base(target, lambda: "audit")
    assert not lake.has_moved(target, base)
    append(other.load_table("db.t"), [{"id": 4, "x": 4}])
    assert lake.has_moved(target, base) is not is_made


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
    assert lake.publish(target, base, "b", 2) == Published.MOVED
    again = lake.base(target, lambda: ref)
    assert not lake.has_moved(target, again)
    assert lake.publish(target, again, "b", 2) == Published.YES
    assert ids(lake, ref) == [1, 2]


def test_the_same_table_under_another_uuid_has_moved(
    lake: IcebergCatalog, other: Catalog, make_table: MakeTable
) -> None:
    target = make_table(columns("id int"))
    base = lake.base(target, no_wap)
    other.drop_table("db.t")
    make_table(columns("id int"))
    assert lake.has_moved(target, base)
