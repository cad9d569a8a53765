"""How the result of a run becomes visible, in a real table."""

import threading
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.catalog import Catalog
from pyiceberg.exceptions import CommitFailedException, CommitStateUnknownException
from pyiceberg.io.pyarrow import _dataframe_to_data_files
from pyiceberg.table.update import AddSchemaUpdate, SetCurrentSchemaUpdate
from pyiceberg.types import DecimalType, IcebergType, IntegerType, LongType, StringType

from dbt.adapters.sparkevolve.errors import NotIcebergError, PublishError
from dbt.adapters.sparkevolve.iceberg import retry
from dbt.adapters.sparkevolve.iceberg.base import Base
from dbt.adapters.sparkevolve.iceberg.catalog import IcebergCatalog
from dbt.adapters.sparkevolve.iceberg.catalog_settings import CatalogSettings
from dbt.adapters.sparkevolve.iceberg.publication import (
    Claim,
    Published,
    TakenBack,
    descends_from,
    has_news,
    was_published,
)
from dbt.adapters.sparkevolve.relation import SparkEvolveRelation
from tests.unit.conftest import MakeTable
from tests.unit.helpers import (
    HOUR,
    answering,
    append,
    columns,
    ids,
    loaded,
    no_wap,
    relation,
    struct,
    without_main,
)

OURS = "sparkevolve_ffffffff_1_00000000_0123abcd"


@pytest.fixture(autouse=True)
def _waits_are_short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retry, "FIRST_WAIT_SECONDS", 0.001)


@pytest.fixture
def target(make_table: MakeTable) -> SparkEvolveRelation:
    """A table with a row."""
    return make_table(columns("id int"), [{"id": 1}])


def refs(lake: IcebergCatalog) -> set[str]:
    return set(lake.load(relation("t")).metadata.refs)


# What a branch holds


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

    def published(head: int | None, snapshot_id: int, base: int | None = None) -> bool | None:
        return was_published(table, head, snapshot_id, base)

    assert [published(second, second), published(second, first)] == [True, True]
    assert [published(third, second), published(third, second, first), published(None, 7)] == [False] * 3
    # Before a snapshot whose metadata have expired anything may have been; not before the one it came from.
    assert [published(7, second), published(7, second, first), published(7, second, 7)] == [None, None, False]


def test_the_rows_of_a_full_refresh_are_told_from_those_before(
    lake: IcebergCatalog, other: Catalog, target: SparkEvolveRelation
) -> None:
    base = lake.base(target, no_wap)
    table = other.load_table("db.t")

    def written(*, overwrites: bool) -> int:
        rows = pa.Table.from_pylist([{"id": 1}], schema=table.schema().as_arrow())
        with table.transaction() as commit:
            producer = (
                commit.update_snapshot().overwrite() if overwrites else commit.update_snapshot().fast_append()
            )
            with producer as update:
                for task in table.scan().plan_files() if overwrites else ():
                    update.delete_data_file(task.file)
                files = _dataframe_to_data_files(table.metadata, rows, table.io, update.commit_uuid)
                for file in files:
                    update.append_data_file(file)
        assert table.metadata.current_snapshot_id is not None
        return table.metadata.current_snapshot_id

    before, refresh, after = (written(overwrites=overwrites) for overwrites in (False, True, False))
    now = lake.load(target)
    assert base.head is not None
    assert [lake.is_since_overwrite(now, base, n) for n in (base.head, before, refresh, after, 7)] == [
        *(False, False, True, True, False)
    ]
    # Nothing is known of one that came before the base.
    assert not lake.is_since_overwrite(now, lake.base(target, no_wap), after)


# Publishing


def publish(lake: IcebergCatalog, base: Base, branch: str = "b", retries: int = 0) -> Published:
    return lake.publish(relation("t"), base, branch, retries)


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


def test_properties_are_set_in_the_commit_that_publishes_or_not_at_all(
    lake: IcebergCatalog, other: Catalog, target: SparkEvolveRelation
) -> None:
    base = lake.base(target, no_wap)
    loaded(other, "b", 2, max_ref_age_ms=HOUR)
    before = len(lake.load(target).metadata.metadata_log)
    # They follow from those that the table has then.
    with other.load_table("db.t").transaction() as meanwhile:
        meanwhile.set_properties({"q": "x"})
    outcome = lake.publish(target, base, "b", 0, properties=lambda now: {"p": "1" + now.get("q", "")})
    assert outcome == Published.YES
    table = lake.load(target)
    assert (table.properties["p"], len(table.metadata.metadata_log)) == ("1x", before + 2)

    base = lake.base(target, no_wap)
    loaded(other, "b", 3, max_ref_age_ms=HOUR)
    append(other.load_table("db.t"), [{"id": 9}])
    assert lake.publish(target, base, "b", 4, properties=lambda now: {"p": "2"}) == Published.MOVED
    assert lake.load(target).properties["p"] == "1x"


def test_a_property_is_set_while_rows_and_property_are_as_they_were(
    lake: IcebergCatalog, other: Catalog, target: SparkEvolveRelation
) -> None:
    base = lake.base(target, no_wap)
    assert lake.set_property(target, base, "p", None, "1")
    assert lake.set_property(target, base, "p", None, "1")  # an answer was lost
    assert not lake.set_property(target, base, "p", None, "2")
    assert lake.set_property(target, base, "p", "1", "2")
    lake.replace_property(target, "p", "1", None, 0)
    assert lake.load(target).properties["p"] == "2"
    append(other.load_table("db.t"), [{"id": 9}])
    assert not lake.set_property(target, base, "p", "2", "3")
    lake.replace_property(target, "p", "2", None, 0)
    assert "p" not in lake.load(target).properties
    assert ids(lake) == [1, 9]


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


def test_a_branch_that_was_recreated_is_not_published(
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
    real = lake.access.opened.commit_table

    def commit_table(*args: object) -> object:
        real(*args)  # type: ignore[arg-type]
        append(other.load_table("db.t"), [{"id": 9}])
        raise OSError("lost")

    monkeypatch.setattr(lake.access.opened, "commit_table", commit_table)
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
    real, calls = lake.access.opened.commit_table, []

    def commit_table(*args: object) -> object:
        calls.append(args)
        append(other.load_table("db.t"), [{"id": 9}])
        return real(*args)  # type: ignore[arg-type]

    monkeypatch.setattr(lake.access.opened, "commit_table", commit_table)
    assert publish(lake, base, retries=retries) == Published.MOVED
    assert len(calls) == 1
    assert ids(lake) == [1, 9]
    assert refs(lake) == {"main", "b"}


def test_a_branch_that_somebody_still_writes_to_is_published_as_it_was_seen_or_not_at_all(
    lake: IcebergCatalog, other: Catalog, target: SparkEvolveRelation, monkeypatch: pytest.MonkeyPatch
) -> None:
    base = lake.base(target, no_wap)
    loaded(other, "b", 2)
    real, late = lake.access.opened.commit_table, [3]

    def commit_table(*args: object) -> object:
        if late:
            append(other.load_table("db.t"), [{"id": late.pop()}], "b")
        return real(*args)  # type: ignore[arg-type]

    monkeypatch.setattr(lake.access.opened, "commit_table", commit_table)
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
        outcomes[number] = gateway.publish(target, base, f"b{number}", 10)

    threads = [threading.Thread(target=work, args=(number,), daemon=True) for number in numbers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    (winner,) = [number for number, outcome in outcomes.items() if outcome == Published.YES]
    assert sorted(outcomes.values(), key=str) == [Published.MOVED, Published.MOVED, Published.YES]
    assert ids(lake) == [1, winner]
    assert refs(lake) == {"main", *(f"b{number}" for number in numbers if number != winner)}


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


# What may be taken back


CLAIM = "sparkevolve_letters_ffffffff_1_00000000_5"


def claimed(lake: IcebergCatalog, other: Catalog, target: SparkEvolveRelation) -> tuple[Base, int]:
    """Publish a row with a claim; return what it started from, and its snapshot."""
    base = lake.base(target, no_wap)
    head = loaded(other, OURS, 2)
    assert lake.publish(target, base, OURS, 0, claim=Claim(CLAIM, 60)) == Published.YES
    ref = lake.load(target).metadata.refs[CLAIM]
    assert (ref.snapshot_id, ref.snapshot_ref_type, ref.max_ref_age_ms) == (head, "tag", 3_600_000)
    assert refs(lake) == {"main", CLAIM}
    return base, head


def test_what_is_published_with_a_claim_can_be_taken_back_once(
    lake: IcebergCatalog, other: Catalog, target: SparkEvolveRelation
) -> None:
    base, head = claimed(lake, other, target)
    seen = lake.base(target, no_wap)
    assert lake.take_back(target, base, head, CLAIM) == TakenBack.YES
    assert (ids(lake), refs(lake)) == ([1], {"main"})
    # Whoever has seen it finds out that it is gone.
    assert lake.rely_on(target, seen, [CLAIM]) is False
    assert lake.take_back(target, base, head, CLAIM) == TakenBack.CLAIM_GONE


def test_what_others_rely_on_is_not_taken_back(
    lake: IcebergCatalog, other: Catalog, target: SparkEvolveRelation
) -> None:
    base, head = claimed(lake, other, target)
    seen = lake.base(target, no_wap)
    assert lake.rely_on(target, seen, [CLAIM, "gone"]) is True
    assert refs(lake) == {"main"}
    assert lake.take_back(target, base, head, CLAIM) == TakenBack.CLAIM_GONE
    assert lake.rely_on(target, seen, [CLAIM]) is True
    assert ids(lake) == [1, 2]


@pytest.mark.parametrize("relied_on", [False, True])
def test_what_others_have_built_on_is_removed_by_a_publication_that_uses_the_claim(
    lake: IcebergCatalog, other: Catalog, target: SparkEvolveRelation, relied_on: bool
) -> None:
    base, head = claimed(lake, other, target)
    append(other.load_table("db.t"), [{"id": 3}])
    assert lake.take_back(target, base, head, CLAIM) == TakenBack.BUILT_ON
    now = lake.base(target, no_wap)
    loaded(other, OURS, 4)
    if relied_on:
        assert lake.rely_on(target, now, [CLAIM]) is True
    outcome = lake.publish(target, now, OURS, 0, used_claim=CLAIM)
    assert outcome == (Published.MOVED if relied_on else Published.YES)
    assert ids(lake) == ([1, 2, 3] if relied_on else [1, 2, 3, 4])
    assert refs(lake) == ({"main", OURS} if relied_on else {"main"})


def test_what_has_expired_is_not_gone_back_to(
    lake: IcebergCatalog, other: Catalog, target: SparkEvolveRelation
) -> None:
    base, head = claimed(lake, other, target)
    assert base.head is not None
    other.load_table("db.t").maintenance.expire_snapshots().by_id(base.head).commit()
    assert lake.take_back(target, base, head, CLAIM) == TakenBack.BUILT_ON
    assert (ids(lake), refs(lake)) == ([1, 2], {"main", CLAIM})


def test_a_claim_is_met_by_the_commit_that_takes_back(
    lake: IcebergCatalog, other: Catalog, target: SparkEvolveRelation, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another run relies on it after this one has looked, and before it commits."""
    base, head = claimed(lake, other, target)
    seen = lake.base(target, no_wap)
    real = lake.access.load
    calls: list[None] = []

    def load_and_meet(*args: Any) -> Any:
        table = real(*args)
        calls.append(None)
        if len(calls) == 1:
            assert lake.rely_on(target, seen, [CLAIM]) is True
        return table

    monkeypatch.setattr(lake.access, "load", load_and_meet)
    assert lake.take_back(target, base, head, CLAIM) == TakenBack.CLAIM_GONE
    assert ids(lake) == [1, 2]
