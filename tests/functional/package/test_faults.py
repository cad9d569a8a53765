"""What goes wrong while the package loads: statements that are sent twice, other writers, nodes that fail."""

from collections.abc import Callable
from typing import Any

import pytest
from dbt.adapters.spark.connections import SparkConnectionManager
from dbt_common.exceptions import DbtRuntimeError

from tests.functional.harness import Scenario
from tests.functional.intruders import append

ADDS = {"on_schema_change": "append_new_columns"}


@pytest.fixture
def table(project: Scenario) -> Scenario:
    """A project with a table of two rows of its own."""
    project.model("select 1 as id, 'a' as b union all select 2, 'b'", **ADDS)
    project.run("--full-refresh")
    assert project.rows() == [(1, "a"), (2, "b")]
    return project


def instead(monkeypatch: pytest.MonkeyPatch, beginning: str, do: Callable[[Callable[[], Any]], Any]) -> None:
    """Let something else happen to statements that begin like this; it can send the statement itself."""
    real = SparkConnectionManager.add_query

    def add_query(self: Any, sql: str, *args: Any, **kwargs: Any) -> Any:
        # dbt puts a comment before each statement.
        if sql.rpartition("*/")[2].strip().startswith(beginning):
            return do(lambda: real(self, sql, *args, **kwargs))
        return real(self, sql, *args, **kwargs)

    monkeypatch.setattr(SparkConnectionManager, "add_query", add_query)


def sent_twice(monkeypatch: pytest.MonkeyPatch, beginning: str, times: int = 1) -> list[None]:
    """Send statements that begin like this a second time, as dbt-spark does after a lost connection."""
    sent: list[None] = []

    def do(send: Callable[[], Any]) -> Any:
        if len(sent) < times:
            sent.append(None)
            send()
        return send()

    instead(monkeypatch, beginning, do)
    return sent


@pytest.mark.core
@pytest.mark.parametrize(
    "beginning", ["create or replace table", "ALTER TABLE", "DELETE", "INSERT INTO", "CALL", "drop table"]
)
def test_a_statement_that_is_sent_twice_adds_no_row_twice(
    table: Scenario, monkeypatch: pytest.MonkeyPatch, beginning: str
) -> None:
    table.model("select 2 as id, 'c' as b union all select 3, 'd'", **ADDS)
    sent = sent_twice(monkeypatch, beginning)
    run = table.run()
    assert len(sent) == 1
    assert table.rows() == [(1, "a"), (2, "c"), (3, "d")]
    assert table.tables() == ["t"]
    assert list(table.table().metadata.refs) == ["main"]
    # A second DELETE, which finds nothing, is a commit too many.
    assert ("so the batch is loaded again" in run.log) == (beginning in ("INSERT INTO", "DELETE"))


def test_an_insert_that_is_always_sent_twice_is_never_published(
    table: Scenario, monkeypatch: pytest.MonkeyPatch
) -> None:
    table.model("select 3 as id, 'd' as b", **ADDS, incremental_strategy="append", commit_retries=1)
    sent_twice(monkeypatch, "INSERT INTO", times=9)
    run = table.fail()
    assert "2 commits are on its branch, and 1 statements were sent" in run.message
    assert table.rows() == [(1, "a"), (2, "b")]
    assert table.tables() == ["t"]
    assert list(table.table().metadata.refs) == ["main"]


@pytest.mark.core
def test_another_writer_who_is_faster_is_not_overwritten(
    table: Scenario, monkeypatch: pytest.MonkeyPatch
) -> None:
    table.model("select 2 as id, cast(count(*) as string) as b from {{ this }}", **ADDS)
    happened: list[None] = []

    def intrude(send: Callable[[], Any]) -> Any:
        if not happened:
            happened.append(None)
            append(table, [{"id": 9, "b": "theirs"}])
        return send()

    instead(monkeypatch, "INSERT INTO", intrude)
    run = table.run()
    assert "other writers have committed to it meanwhile, so the batch is loaded again" in run.log
    # The model was computed again, from the table with their row.
    assert table.rows() == [(1, "a"), (2, "3"), (9, "theirs")]
    assert table.tables() == ["t"]
    assert list(table.table().metadata.refs) == ["main"]


def test_a_node_that_fails_leaves_its_table_and_no_batch(
    table: Scenario, monkeypatch: pytest.MonkeyPatch
) -> None:
    table.model("select 2 as id, 'c' as b", **ADDS)

    def fail(send: Callable[[], Any]) -> Any:
        raise DbtRuntimeError("the server is gone")

    with monkeypatch.context() as patched:
        instead(patched, "INSERT INTO", fail)
        run = table.fail()
    assert "the server is gone" in run.message
    assert table.rows() == [(1, "a"), (2, "b")]
    # The batch went at the end of the command; the branch stays until a later run.
    assert table.tables() == ["t"]
    assert len(table.table().metadata.refs) == 2
    table.run()
    assert table.rows() == [(1, "a"), (2, "c")]
