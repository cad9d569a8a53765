"""Commits to tables that PyIceberg cannot commit to, where Spark takes statements only."""

import threading
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from dbt_common.exceptions import DbtRuntimeError
from pyiceberg.catalog import Catalog
from pyiceberg.exceptions import CommitFailedException
from pyiceberg.schema import Schema
from pyiceberg.types import IntegerType, LongType, StringType

from dbt.adapters.sparkevolve.errors import SchemaCommitError
from dbt.adapters.sparkevolve.evolution import record
from dbt.adapters.sparkevolve.evolution.changes import AddColumn, RenameField, SetDoc, SetProperty, WidenType
from dbt.adapters.sparkevolve.evolution.column_properties import METRICS_PREFIX
from dbt.adapters.sparkevolve.evolution.names import name_between
from dbt.adapters.sparkevolve.evolution.plan import EvolutionPlan, plan_evolution
from dbt.adapters.sparkevolve.evolution.policy import Policy
from dbt.adapters.sparkevolve.iceberg import newer_format, retry
from dbt.adapters.sparkevolve.iceberg.catalog import IcebergCatalog
from dbt.adapters.sparkevolve.iceberg.newer_format import Commit
from dbt.adapters.sparkevolve.iceberg.publication import Published
from dbt.adapters.sparkevolve.iceberg.schema_commits import commit_changes
from dbt.adapters.sparkevolve.relation import SparkEvolveRelation
from tests.unit.conftest import MakeTable
from tests.unit.helpers import columns, ids, loaded, no_wap

INT, LONG, STRING = IntegerType(), LongType(), StringType()
CHANGES = [WidenType(("id",), INT, LONG), AddColumn(("n",), INT, "new"), SetProperty("a", "1")]


class Statements:
    """Alters a table as statements of a Spark elsewhere do: each is a commit, and no commit is theirs alone.

    Attributes:
        done: what was done.
        lose: after which of these the answer is lost.
    """

    is_atomic = False

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self.done: list[str] = []
        self.lose: list[str] = []

    def commit(self, commit: Commit) -> None:
        raise AssertionError("a Thrift server takes statements only")

    def alter_columns(self, table: tuple[str, ...], before: Schema, after: Schema) -> None:
        for f in after.fields:
            with self._catalog.load_table(table).update_schema() as update:
                if f.field_id > before.highest_field_id:
                    update.add_column((f.name,), f.field_type, doc=f.doc)
                else:
                    update.update_column((f.name,), f.field_type, doc=f.doc)
        self._note("columns")

    def alter_properties(
        self, table: tuple[str, ...], values: Mapping[str, str], outdated: tuple[str, ...]
    ) -> None:
        with self._catalog.load_table(table).transaction() as transaction:
            if outdated:
                transaction.remove_properties(*outdated)
            transaction.set_properties(dict(values))
        self._note("properties")

    def fast_forward(self, table: tuple[str, ...], ref: str, branch: str) -> None:
        known = self._catalog.load_table(table)
        with known.manage_snapshots() as manage:
            manage.set_current_snapshot(known.metadata.refs[branch].snapshot_id)
        self._note("forward")

    def drop_branch(self, table: tuple[str, ...], branch: str) -> None:
        with self._catalog.load_table(table).manage_snapshots() as manage:
            manage.remove_branch(branch)
        self._note("drop")

    def _note(self, what: str) -> None:
        self.done.append(what)
        if what in self.lose:
            self.lose.remove(what)
            raise DbtRuntimeError("the connection was lost")


@pytest.fixture
def spark(other: Catalog, lake: IcebergCatalog, monkeypatch: pytest.MonkeyPatch) -> Statements:
    """What the catalog's commits are left to, from format version 2 on."""
    monkeypatch.setattr(newer_format, "NEWEST_FORMAT_TO_COMMIT", 1)
    monkeypatch.setattr(retry, "FIRST_WAIT_SECONDS", 0.001)
    statements = Statements(other)
    lake.commit_in(statements)
    return statements


@pytest.fixture
def target(make_table: MakeTable) -> SparkEvolveRelation:
    """A table with a row."""
    return make_table(columns("id int"), [{"id": 1}])


def change(lake: IcebergCatalog, target: SparkEvolveRelation) -> None:
    commit_changes(lake.load(target), CHANGES, "run-1", "fingerprint")


def evolve(
    lake: IcebergCatalog, target: SparkEvolveRelation, batch: Schema, retries: int = 4, **policy: Any
) -> EvolutionPlan:
    return lake.evolve(
        target,
        lambda schema, facts: plan_evolution(schema, batch, Policy(facts=facts, **policy)),
        retries,
        source=batch,
        invocation_id="run-1",
    )


def test_changes_are_made_by_statements_and_recorded_last(
    lake: IcebergCatalog, spark: Statements, target: SparkEvolveRelation
) -> None:
    assert newer_format.commits_in_spark(lake.load(target))
    change(lake, target)
    assert spark.done == ["columns", "properties"]
    table = lake.load(target)
    assert [(f.name, f.field_type, f.doc) for f in table.schema().fields] == [
        ("id", LONG, None),
        ("n", INT, "new"),
    ]
    # Of two statements the second has made the schema, whose entry it is.
    assert list(record.read(table.properties)) == [2] == [table.schema().schema_id]
    assert table.properties["a"] == "1"


def test_metrics_of_no_column_are_taken_away_first(
    lake: IcebergCatalog, spark: Statements, make_table: MakeTable
) -> None:
    """With them Spark would change no property of the table, nor the name of a column."""
    metrics = {METRICS_PREFIX + name: "full" for name in ("id", "gone")}
    target = make_table(columns("id int"), [{"id": 1}], properties=metrics)
    change(lake, target)
    assert spark.done == ["properties", "columns", "properties"]
    assert [name for name in lake.load(target).properties if name in metrics] == [METRICS_PREFIX + "id"]


def test_an_error_says_what_was_made_before_it(
    lake: IcebergCatalog, other: Catalog, spark: Statements, target: SparkEvolveRelation
) -> None:
    def altered(*_: Any) -> None:
        with other.load_table("db.t").update_schema() as update:
            update.update_column("id", LONG)
        raise OSError("refused")

    spark.alter_columns = altered  # type: ignore[method-assign]
    with pytest.raises(SchemaCommitError) as raised:
        evolve(lake, target, columns("id bigint, n int"))
    assert raised.value.msg == (
        "The columns of `lake`.`db`.`t` could not be changed (widen `id` from int to bigint; add column `n` "
        "int). The catalog's answer: refused. A part of it was made before that, and stays (changed `id` "
        "(1) from int to bigint); no row was written, and the next run goes on from there."
    )


@pytest.mark.parametrize("error", [DbtRuntimeError("refused"), CommitFailedException("conflict")])
def test_half_a_change_of_case_is_not_taken_for_a_column_that_is_gone(
    lake: IcebergCatalog, other: Catalog, spark: Statements, target: SparkEvolveRelation, error: Exception
) -> None:
    def altered(*_: Any) -> None:
        with other.load_table("db.t").update_schema() as update:
            update.rename_column("id", name_between("id"))
        raise error

    spark.alter_columns = altered  # type: ignore[method-assign]
    with pytest.raises(SchemaCommitError) as raised:
        evolve(lake, target, columns("ID int"), renames={"id": "ID"})
    between = "id__sparkevolve_rename_b80bb774"
    assert raised.value.changes == (RenameField(("id",), "ID"),)
    assert raised.value.made == (f"renamed `id` (1) to `{between}`",)
    assert [f.name for f in lake.load(target).schema().fields] == [between]


@pytest.mark.parametrize(
    "error", [ConnectionResetError("the connection was reset"), CommitFailedException("conflict")]
)
def test_what_was_changed_by_two_attempts_is_told(
    lake: IcebergCatalog, other: Catalog, spark: Statements, target: SparkEvolveRelation, error: Exception
) -> None:
    alter = spark.alter_columns

    def altered(*_: Any) -> None:
        spark.alter_columns = alter  # type: ignore[method-assign]
        with other.load_table("db.t").update_schema() as update:
            update.update_column("id", LONG)
        raise error

    spark.alter_columns = altered  # type: ignore[method-assign]
    plan = evolve(lake, target, columns("id bigint, n int"))
    assert plan.changes == (WidenType(("id",), INT, LONG), AddColumn(("n",), INT))
    assert [(f.name, f.field_type) for f in lake.load(target).schema().fields] == [("id", LONG), ("n", INT)]


def test_what_the_last_attempt_has_made_before_a_conflict_is_told(
    lake: IcebergCatalog, other: Catalog, spark: Statements, target: SparkEvolveRelation
) -> None:
    def altered(*_: Any) -> None:
        with other.load_table("db.t").update_schema() as update:
            update.update_column("id", LONG)
        raise CommitFailedException("conflict")

    spark.alter_columns = altered  # type: ignore[method-assign]
    plan = evolve(lake, target, columns("id bigint"), retries=0)
    assert plan.changes == (WidenType(("id",), INT, LONG),)


def test_what_somebody_has_changed_since_is_noticed(
    lake: IcebergCatalog, other: Catalog, spark: Statements, target: SparkEvolveRelation
) -> None:
    seen = lake.load(target)
    with other.load_table("db.t").update_schema() as update:
        update.add_column("n", STRING)
    with pytest.raises(CommitFailedException, match="has changed since it was looked at"):
        commit_changes(seen, CHANGES, "run-1", "fingerprint")
    assert spark.done == []


def test_what_somebody_changes_meanwhile_is_noticed(
    lake: IcebergCatalog, other: Catalog, spark: Statements, target: SparkEvolveRelation
) -> None:
    alter = spark.alter_columns

    def altered(*arguments: Any) -> None:
        alter(*arguments)
        with other.load_table("db.t").update_schema() as update:
            update.delete_column("n").add_column("n", STRING)

    spark.alter_columns = altered  # type: ignore[method-assign]
    with pytest.raises(CommitFailedException, match="The columns have changed"):
        change(lake, target)
    assert spark.done == ["columns"]


def test_descriptions_are_stored_by_the_same_statements(
    lake: IcebergCatalog, spark: Statements, target: SparkEvolveRelation
) -> None:
    assert lake.set_docs(target, "of the table", {"id": "the key"}, 0) == [
        str(SetDoc(("id",), "the key")),
        "describe the table as 'of the table'",
    ]
    table = lake.load(target)
    assert (table.schema().find_field("id").doc, table.properties["comment"]) == ("the key", "of the table")


@pytest.mark.parametrize(
    ("lose", "done"),
    [
        ([], ["forward", "drop"]),
        # The branch stays until the next run removes what is left over.
        (["forward"], ["forward"]),
        (["drop"], ["forward", "drop"]),
    ],
)
def test_a_branch_is_published_by_statements_though_an_answer_is_lost(
    lake: IcebergCatalog,
    other: Catalog,
    spark: Statements,
    target: SparkEvolveRelation,
    lose: list[str],
    done: list[str],
) -> None:
    base = lake.base(target, no_wap)
    loaded(other, "b", 2)
    spark.lose = lose
    assert lake.publish(target, base, "b", 1) == Published.YES
    assert spark.done == done
    assert ids(lake) == [1, 2]


def test_a_table_that_has_moved_is_not_published_to(
    lake: IcebergCatalog, other: Catalog, spark: Statements, target: SparkEvolveRelation
) -> None:
    """Also if it moves after the run has looked: back, to where a fast-forward would take it from."""
    base = lake.base(target, no_wap)
    loaded(other, "b", 2)
    loaded(other, "c", 3)
    load: Callable[..., Any] = lake.access.opened.load_table
    looks: list[int] = []

    def look(*arguments: Any) -> Any:
        looks.append(1)
        if len(looks) == 2:
            spark.fast_forward(("db", "t"), "main", "c")
        return load(*arguments)

    lake.access.opened.load_table = look  # type: ignore[method-assign]
    assert lake.publish(target, base, "b", 1) == Published.MOVED
    assert spark.done == ["forward"]
    assert ids(lake) == [1, 3]


def test_a_branch_is_removed_by_a_statement_unless_the_run_is_cancelled(
    lake: IcebergCatalog, other: Catalog, spark: Statements, target: SparkEvolveRelation
) -> None:
    loaded(other, "b")
    lake.drop_branch(target, "b")
    assert set(lake.load(target).metadata.refs) == {"main"}
    loaded(other, "c")
    spark.done.clear()
    thread = threading.Thread(target=lake.access.cancellation.cancel)
    thread.start()
    thread.join()
    lake.drop_branch(target, "c")
    assert spark.done == []
    assert set(lake.load(target).metadata.refs) == {"main", "c"}
