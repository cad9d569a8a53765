"""What a run that was cancelled still does, and what it says of what it has not done."""

import threading
import time
from collections.abc import Callable
from typing import Any

import pytest
from pyiceberg.catalog import Catalog
from pyiceberg.types import IntegerType

from dbt.adapters.sparkevolve.cancellation import Cancellation, abridged, stopped
from dbt.adapters.sparkevolve.errors import RunCancelledError
from dbt.adapters.sparkevolve.iceberg.catalog import IcebergCatalog
from dbt.adapters.sparkevolve.iceberg.catalog_settings import CatalogSettings
from dbt.adapters.sparkevolve.iceberg.publication import Published
from dbt.adapters.sparkevolve.relation import SparkEvolveRelation
from tests.unit.conftest import MakeTable
from tests.unit.helpers import append, columns


def in_a_thread(call: Callable[[], Any]) -> Any:
    """Return what a call in another thread returns, or the exception that it raises."""
    answers: list[Any] = []

    def run() -> None:
        try:
            answers.append(call())
        except Exception as exc:
            answers.append(exc)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join(60)
    return answers[0]


@pytest.fixture
def cancellation() -> Cancellation:
    """A run that another thread than this one has cancelled."""
    made = Cancellation()
    in_a_thread(made.cancel)
    return made


@pytest.fixture
def target(make_table: MakeTable, other: Catalog) -> SparkEvolveRelation:
    """A table with a row, and a branch on which a run has loaded another."""
    made = make_table(columns("id int"), [{"id": 1}])
    table = other.load_table("db.t")
    assert table.metadata.current_snapshot_id is not None
    with table.manage_snapshots() as manage:
        manage.create_branch(table.metadata.current_snapshot_id, "b", max_ref_age_ms=3_600_000)
    append(table, [{"id": 2}], "b")
    return made


def rows(other: Catalog) -> list[int]:
    return sorted(row["id"] for row in other.load_table("db.t").scan().to_arrow().to_pylist())


def test_all_threads_but_the_one_that_cancels_have_to_stop() -> None:
    cancellation = Cancellation()
    assert not cancellation.is_cancelled
    cancellation.check("Nothing")
    cancellation.cancel()
    assert not cancellation.is_cancelled
    cancellation.check("Nothing")
    error = in_a_thread(lambda: cancellation.check("It was not sent"))
    assert isinstance(error, RunCancelledError)
    assert in_a_thread(lambda: cancellation.is_cancelled)


def test_a_pause_ends_when_the_run_is_cancelled(cancellation: Cancellation) -> None:
    started = time.monotonic()
    cancellation.pause(30)
    assert time.monotonic() - started < 5
    # The thread that has cancelled still waits.
    own = Cancellation()
    own.cancel()
    own.pause(0.05)
    assert time.monotonic() - started >= 0.05


@pytest.mark.parametrize(
    ("sql", "is_sent"),
    [
        ("refresh table `lake`.`s`.`t`", True),
        ('/* {"app": "dbt"} */\n  REFRESH TABLE t', True),
        ("refresh_everything()", False),
        ("insert into t select 1 /* refresh table t */", False),
        ("select 1", False),
    ],
)
def test_only_what_changes_nothing_is_sent(cancellation: Cancellation, sql: str, is_sent: bool) -> None:
    if is_sent:
        cancellation.check_statement(sql)
        return
    with pytest.raises(RunCancelledError) as error:
        cancellation.check_statement(sql)
    assert error.value.undone == f"This statement was not sent: {abridged(sql)}"


def test_a_statement_is_shown_in_one_short_line() -> None:
    assert abridged("/* comment */\n select\n  1 /* two */ ") == "select 1 /* two */"
    assert abridged("x" * 201) == "x" * 200 + " ..."


@pytest.mark.parametrize(
    ("is_published", "end"),
    [
        (None, "What was committed before stays."),
        (False, "The rows of t are as they were before this run."),
        (True, "The rows of this run are in t, and readers see them."),
    ],
)
def test_the_error_says_what_readers_see(is_published: bool | None, end: str) -> None:
    error = RunCancelledError("It was not sent.", "t", is_published)
    assert str(error.msg) == f"The run was cancelled. It was not sent. {end}"
    assert (error.undone, error.relation, error.is_published) == ("It was not sent.", "t", is_published)


def test_the_error_shows_that_there_is_more_of_a_statement() -> None:
    said = stopped("x" * 201).msg
    assert said == (
        f"The run was cancelled. This statement was stopped while it ran: {'x' * 200} ... What was committed "
        "before stays."
    )


def test_nothing_is_published_or_changed_but_the_branch_goes(
    settings: CatalogSettings, cancellation: Cancellation, other: Catalog, target: SparkEvolveRelation
) -> None:
    gateway = IcebergCatalog(settings, cancellation)
    base = gateway.base(target, lambda: None)
    before = other.load_table("db.t").metadata_location
    with pytest.raises(RunCancelledError) as error:
        gateway.publish(target, base, "b", 4)
    assert (error.value.relation, error.value.is_published) == (str(target), False)
    with pytest.raises(RunCancelledError):
        gateway.set_docs(target, "new", {}, 4)
    assert other.load_table("db.t").metadata_location == before
    gateway.drop_branch(target, "b")
    assert set(other.load_table("db.t").metadata.refs) == {"main"}
    assert rows(other) == [1]


def test_a_publication_that_is_under_way_is_what_the_catalog_says(
    settings: CatalogSettings, other: Catalog, target: SparkEvolveRelation, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The run is cancelled while the commit is made; whether its answer comes does not matter."""
    for is_lost in (False, True):
        cancellation = Cancellation()
        gateway = IcebergCatalog(settings, cancellation)
        base = gateway.base(target, lambda: None)
        commit = gateway.access.opened.commit_table

        def late(*args: Any, commit: Any = commit, how: Any = cancellation, is_lost: bool = is_lost) -> Any:
            in_a_thread(how.cancel)
            answer = commit(*args)
            if is_lost:
                raise ConnectionResetError("the answer is lost")
            return answer

        monkeypatch.setattr(gateway.access.opened, "commit_table", late)
        assert gateway.publish(target, base, "b", 4) == Published.YES
        assert rows(other) == ([1, 2] if not is_lost else [1, 2, 3])
        table = other.load_table("db.t")
        assert set(table.metadata.refs) == {"main"}
        assert table.metadata.current_snapshot_id is not None
        with table.manage_snapshots() as manage:
            manage.create_branch(table.metadata.current_snapshot_id, "b", max_ref_age_ms=3_600_000)
        append(table, [{"id": 3}], "b")


@pytest.mark.parametrize(
    ("failure", "undone", "is_published"),
    [
        (OSError("disk full"), "The batch was not published", False),
        # The catalog may carry it out after it was looked at.
        (
            ConnectionResetError("no answer"),
            "Whether its rows were published is not known, since the catalog has not answered",
            None,
        ),
        # Over Thrift a table of version 3 is published by a statement.
        (
            stopped("CALL lake.system.fast_forward('db.t', 'main', 'b')"),
            "Whether its rows were published is not known, since the catalog has not answered",
            None,
        ),
    ],
)
def test_a_publication_that_failed_is_not_tried_again(
    settings: CatalogSettings,
    other: Catalog,
    target: SparkEvolveRelation,
    monkeypatch: pytest.MonkeyPatch,
    failure: Exception,
    undone: str,
    is_published: bool | None,
) -> None:
    cancellation = Cancellation()
    gateway = IcebergCatalog(settings, cancellation)
    base = gateway.base(target, lambda: None)
    calls = []

    def fail(*args: Any) -> None:
        calls.append(args)
        in_a_thread(cancellation.cancel)
        raise failure

    monkeypatch.setattr(gateway.access.opened, "commit_table", fail)
    with pytest.raises(RunCancelledError) as error:
        gateway.publish(target, base, "b", 4)
    assert (error.value.undone, error.value.is_published) == (undone, is_published)
    assert len(calls) == 1
    assert rows(other) == [1]


def test_the_columns_of_a_table_stay(
    settings: CatalogSettings, cancellation: Cancellation, other: Catalog, target: SparkEvolveRelation
) -> None:
    from dbt.adapters.sparkevolve.evolution.changes import AddColumn
    from dbt.adapters.sparkevolve.evolution.plan import EvolutionPlan

    class Plan(EvolutionPlan):
        changes = (AddColumn(("n",), IntegerType()),)  # type: ignore[assignment]

        def __init__(self) -> None:
            pass

    gateway = IcebergCatalog(settings, cancellation)
    with pytest.raises(RunCancelledError) as error:
        gateway.evolve(
            target, lambda schema, facts: Plan(), 4, source=columns("id int, n int"), invocation_id="i"
        )
    assert error.value.undone == f"The columns of {target} were not changed"
    assert error.value.is_published is False
    assert [f.name for f in other.load_table("db.t").schema().fields] == ["id"]
