"""What the catalog is asked to require of a table, and which times a commit writes, on real files."""

import datetime as real
from collections.abc import Callable
from typing import Any

import pyiceberg.table.update
import pytest
from pyiceberg.catalog import Catalog
from pyiceberg.exceptions import CommitFailedException
from pyiceberg.table import Table
from pyiceberg.table.update import (
    AssertCurrentSchemaId,
    AssertDefaultSpecId,
    AssertLastAssignedFieldId,
    AssertLastAssignedPartitionId,
    AssertRefSnapshotId,
    AssertTableUUID,
)
from pyiceberg.transforms import IdentityTransform
from pyiceberg.types import IntegerType

from dbt.adapters.sparkevolve.errors import CommitConflictError, TableChangedError
from dbt.adapters.sparkevolve.evolution.changes import AddColumn
from dbt.adapters.sparkevolve.evolution.plan import EvolutionPlan, plan_evolution
from dbt.adapters.sparkevolve.evolution.policy import Policy
from dbt.adapters.sparkevolve.iceberg import guards
from dbt.adapters.sparkevolve.iceberg.catalog import IcebergCatalog
from dbt.adapters.sparkevolve.iceberg.publication import Published
from dbt.adapters.sparkevolve.iceberg.schema_commits import commit_changes, commit_docs
from tests.unit.conftest import MakeTable
from tests.unit.helpers import append, columns

OURS = "sparkevolve_ffffffff_1_00000000_0123abcd"
MINUTE = 60_000
DAY = 24 * 60 * MINUTE
INT = IntegerType()
REFUSED = r"Requirement failed|Table UUID does not match"


def load(other: Catalog) -> Table:
    return other.load_table("db.t")


def add_and_drop(other: Catalog) -> None:
    with load(other).update_schema() as update:
        update.add_column("theirs", INT)
    with load(other).update_schema(allow_incompatible_changes=True) as update:
        update.delete_column("theirs")


def rename_and_back(other: Catalog) -> None:
    with load(other).update_schema() as update:
        update.rename_column("id", "key")
    with load(other).update_schema() as update:
        update.rename_column("key", "id")


def partition_and_back(other: Catalog) -> None:
    with load(other).update_spec() as update:
        update.add_field("id", IdentityTransform(), "of_id")
    with load(other).update_spec() as update:
        update.remove_field("of_id")


def describe(other: Catalog) -> None:
    with load(other).transaction() as transaction:
        transaction.set_properties({"owner": "somebody"})


def drop_and_create(other: Catalog) -> None:
    other.drop_table("db.t")
    other.create_table("db.t", columns("id int"))


THERE_AND_BACK = [add_and_drop, rename_and_back, partition_and_back, describe, drop_and_create]


def check_ids(table: Table) -> None:
    """Schemas have ids of their own, and an id of a field stands for one column in all of them."""
    ids = [schema.schema_id for schema in table.metadata.schemas]
    assert len(ids) == len(set(ids)), ids
    names = {(f.field_id, f.name) for schema in table.metadata.schemas for f in schema.fields}
    fields = dict(names - {(1, "key")})
    assert len(fields) == len(names - {(1, "key")}), names
    assert table.metadata.last_column_id == max(fields)


@pytest.mark.parametrize("meanwhile", THERE_AND_BACK, ids=lambda f: f.__name__)
def test_a_schema_that_came_back_is_not_the_one_that_was_looked_at(
    other: Catalog, make_table: MakeTable, meanwhile: Callable[[Catalog], None]
) -> None:
    """Each leaves the id of the current schema as it was."""
    make_table(columns("id int"))
    before = load(other)
    meanwhile(other)
    now = load(other)
    assert now.metadata.current_schema_id == before.metadata.current_schema_id
    with pytest.raises(CommitFailedException, match=REFUSED):
        commit_changes(before, [AddColumn(("ours",), INT)], "run-1", "fingerprint")
    with pytest.raises(CommitFailedException, match=REFUSED):
        commit_docs(before, "text", {"id": "the key"})
    assert load(other).metadata == now.metadata


@pytest.mark.parametrize("meanwhile", THERE_AND_BACK[:-1], ids=lambda f: f.__name__)
def test_what_others_do_between_the_decision_and_the_commit_is_looked_at(
    lake: IcebergCatalog, other: Catalog, make_table: MakeTable, meanwhile: Callable[[Catalog], None]
) -> None:
    target = make_table(columns("id int"))
    others = [meanwhile]

    def decide(schema: Any, facts: Any) -> EvolutionPlan:
        plan = plan_evolution(schema, columns("id int, ours int"), Policy(facts=facts))
        if others:
            others.pop()(other)
        return plan

    plan = lake.evolve(target, decide, 1, source=columns("id int"), invocation_id="run-1")
    assert plan.added == ("ours",)
    table = load(other)
    assert table.schema().column_names == ["id", "ours"]
    assert table.schema().find_field("ours").field_id == (3 if meanwhile is add_and_drop else 2)
    check_ids(table)


def test_nothing_is_committed_to_a_table_that_has_taken_the_name(
    lake: IcebergCatalog, other: Catalog, make_table: MakeTable
) -> None:
    target = make_table(columns("id int"))
    base = lake.base(target, lambda: None)
    drop_and_create(other)
    now = load(other).metadata_location

    def decide(schema: Any, facts: Any) -> EvolutionPlan:
        raise AssertionError("decided on another table")

    with pytest.raises(TableChangedError) as raised:
        lake.evolve(target, decide, 4, source=columns("id int"), invocation_id="run-1", base=base)
    assert raised.value.columns == ()
    assert load(other).metadata_location == now


def test_others_that_come_back_each_time_are_a_conflict(
    lake: IcebergCatalog, other: Catalog, make_table: MakeTable
) -> None:
    target = make_table(columns("id int"))

    def decide(schema: Any, facts: Any) -> EvolutionPlan:
        add_and_drop(other)
        return plan_evolution(schema, columns("id int, ours int"), Policy(facts=facts))

    with pytest.raises(CommitConflictError):
        lake.evolve(target, decide, 1, source=columns("id int"), invocation_id="run-1")
    assert load(other).schema().column_names == ["id"]


class Server:
    """A catalog that checks requirements itself: what it is asked is kept."""

    def __init__(self, real: Catalog) -> None:
        self.real = real
        self.asked: list[list[tuple[str, Any]]] = []
        self.actions: list[list[str]] = []

    def commit_table(self, table: Table, requirements: Any, updates: Any) -> Any:
        self.asked.append([(r.type, *list(r.model_dump(exclude={"type"}).values())) for r in requirements])
        self.actions.append([update.action for update in updates])
        return self.real.commit_table(table, requirements, updates)


def test_a_server_is_asked_for_all_that_a_commit_depends_on(other: Catalog, make_table: MakeTable) -> None:
    """In the requirements and updates of the specification alone: a server knows no others."""
    make_table(columns("id int"), [{"id": 1}])
    server: Any = Server(other)
    table = load(other)
    remote = Table(table.name(), table.metadata, table.metadata_location, table.io, server, {})
    uuid = table.metadata.table_uuid
    commit_changes(remote, [AddColumn(("ours",), INT)], "run-1", "fingerprint", seen_ms=2**50)
    same_schema = [
        ("assert-table-uuid", uuid),
        ("assert-current-schema-id", 0),
        ("assert-last-assigned-field-id", 1),
        ("assert-default-spec-id", 0),
        ("assert-last-assigned-partition-id", 999),
    ]
    assert server.asked == [same_schema]
    assert server.actions == [["add-schema", "set-current-schema", "set-properties"]]
    assert load(other).metadata.last_updated_ms < 2**50


@pytest.mark.parametrize(
    "kind",
    [
        AssertTableUUID,
        AssertCurrentSchemaId,
        AssertLastAssignedFieldId,
        AssertDefaultSpecId,
        AssertLastAssignedPartitionId,
    ],
)
def test_a_schema_commit_requires(other: Catalog, make_table: MakeTable, kind: type) -> None:
    make_table(columns("id int"))
    required = guards.same_table(load(other).metadata) + guards.same_schema(load(other).metadata)
    assert [type(r) for r in required].count(kind) == 1


def test_a_branch_is_removed_only_where_it_was_seen(
    lake: IcebergCatalog, other: Catalog, make_table: MakeTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = make_table(columns("id int"), [{"id": 1}])
    head = load(other).metadata.current_snapshot_id
    load(other).manage_snapshots().create_branch(head or 0, OURS).commit()
    catalog = lake.access.opened
    commit, required = catalog.commit_table, []

    def commit_table(table: Table, requirements: Any, updates: Any) -> Any:
        required.extend(requirements)
        return commit(table, requirements, updates)

    monkeypatch.setattr(catalog, "commit_table", commit_table)
    lake.drop_branch(target, OURS)
    assert [type(r) for r in required] == [AssertTableUUID, AssertRefSnapshotId]
    assert (required[1].ref, required[1].snapshot_id) == (OURS, head)
    assert set(load(other).metadata.refs) == {"main"}


# Times


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """Set how many milliseconds this process's clock is ahead where PyIceberg builds metadata."""
    ahead_ms = [0]

    class Clock(real.datetime):
        @classmethod
        def now(cls, tz: real.tzinfo | None = None) -> "Clock":
            moment = real.datetime.now(tz) + real.timedelta(milliseconds=ahead_ms[0])
            return cls.fromtimestamp(moment.timestamp(), tz)

    monkeypatch.setattr(pyiceberg.table.update, "datetime", Clock)

    def shift(milliseconds: int) -> None:
        ahead_ms[0] = milliseconds

    return shift


SHIFTS = [-DAY, -5 * MINUTE, -30_000, 0, 30_000, 5 * MINUTE, DAY]


def times(table: Table) -> tuple[int, list[int], list[int]]:
    metadata = table.metadata
    return (
        metadata.last_updated_ms,
        [entry.timestamp_ms for entry in metadata.snapshot_log],
        [entry.timestamp_ms for entry in metadata.metadata_log],
    )


@pytest.mark.parametrize("shift_ms", SHIFTS)
def test_no_time_of_a_commit_is_this_process_own(
    lake: IcebergCatalog,
    other: Catalog,
    make_table: MakeTable,
    clock: Callable[[int], None],
    shift_ms: int,
) -> None:
    """All logs are sorted, and no commit of ours lies ahead of others' by more than a millisecond."""
    target = make_table(columns("id int"), [{"id": 1}])
    base = lake.base(target, lambda: None)
    assert base.head is not None
    table = load(other)
    table.manage_snapshots().create_branch(base.head, OURS, max_ref_age_ms=DAY).commit()
    append(load(other), [{"id": 2}], OURS)
    others_ms = times(load(other))[0]
    clock(shift_ms)
    commit_changes(load(other), [AddColumn(("a",), INT)], "run-1", "fingerprint", seen_ms=others_ms - 7)
    commit_docs(load(other), "text", {"id": "the key"})

    assert lake.publish(target, base, OURS, 0) == Published.YES
    assert load(other).scan().to_arrow().num_rows == 2
    load(other).manage_snapshots().create_branch(base.head, OURS).commit()  # by the wrong clock
    wrong_ms = times(load(other))[0]
    lake.drop_branch(target, OURS)
    updated, snapshots, files = times(load(other))
    # PyIceberg's own commit is the last but one.
    assert files[:-1] == sorted(files[:-1])
    assert files[-1] == wrong_ms
    assert [files[-4] - others_ms, files[-3] - others_ms, files[-2] - others_ms] == [1, 2, 3]
    assert snapshots[-1] == others_ms + 3
    assert snapshots == sorted(snapshots)
    assert updated == max(wrong_ms, files[-2]) + 1


def test_a_commit_takes_the_time_that_others_are_known_to_have_passed(
    other: Catalog, make_table: MakeTable
) -> None:
    make_table(columns("id int"), [{"id": 1}])
    known_ms = times(load(other))[0] + DAY
    commit_changes(load(other), [AddColumn(("a",), INT)], "run-1", "fingerprint", seen_ms=known_ms)
    assert times(load(other))[0] == known_ms
    commit_changes(load(other), [AddColumn(("b",), INT)], "run-1", "fingerprint", seen_ms=known_ms)
    assert times(load(other))[0] == known_ms + 1


def test_rows_are_published_at_the_time_of_the_clock_that_wrote_them(
    lake: IcebergCatalog, other: Catalog, make_table: MakeTable, clock: Callable[[int], None]
) -> None:
    """And of how long that is ago: a clock of this process only measures."""
    target = make_table(columns("id int"), [{"id": 1}])
    base = lake.base(target, lambda: None)
    load(other).manage_snapshots().create_branch(base.head or 0, OURS, max_ref_age_ms=DAY).commit()
    append(load(other), [{"id": 2}], OURS)
    clock(DAY)
    head = load(other).metadata.snapshot_by_name(OURS)
    assert head is not None
    outcome = lake.publish(target, base, OURS, 0, lambda: 90 * MINUTE)
    assert outcome == Published.YES
    updated, snapshots, _ = times(load(other))
    assert updated == snapshots[-1] == head.timestamp_ms + 90 * MINUTE


def test_what_changes_nothing_is_no_commit(other: Catalog, make_table: MakeTable) -> None:
    make_table(columns("id int"))
    before = load(other)
    guards.commit(before, (), ())
    assert load(other).metadata_location == before.metadata_location


def test_the_newest_time_is_that_of_any_log(other: Catalog, make_table: MakeTable) -> None:
    make_table(columns("id int"), [{"id": 1}])
    metadata = load(other).metadata
    assert guards.newest_ms(metadata) == metadata.last_updated_ms
    earlier = metadata.model_copy(update={"last_updated_ms": 1})
    assert guards.newest_ms(earlier) == metadata.snapshot_log[-1].timestamp_ms
    assert guards.newest_ms(metadata.model_copy(update={"snapshot_log": []})) == metadata.last_updated_ms
