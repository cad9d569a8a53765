"""What a node says of its errors, and how macros find the node that runs in their thread."""

import threading
from typing import Any

import pytest
from dbt_common.exceptions import DbtDatabaseError, DbtRuntimeError

from dbt.adapters.sparkevolve.errors import (
    AfterLoadError,
    ColumnsMovedError,
    ConnectionLostError,
    NotIcebergError,
    ReplacementLostError,
    RunCancelledError,
    StatementError,
    UnreadableQueryError,
    UnreadableTableError,
)
from dbt.adapters.sparkevolve.iceberg.catalog import IcebergCatalog
from dbt.adapters.sparkevolve.load.node import Node, begin_node, end_node, running_node
from tests.unit.conftest import MakeTable
from tests.unit.helpers import columns, relation

TARGET = relation("t")
GONE = DbtRuntimeError("[TABLE_OR_VIEW_NOT_FOUND] The table or view `lake`.`db`.`t` cannot be found.")


def test_before_rows_are_visible_an_error_is_told_as_it_is() -> None:
    for error in (DbtRuntimeError("no"), ConnectionLostError("select 1", "reset"), ValueError("no")):
        assert Node().explained(error) is error


def test_after_that_it_says_what_has_been_done() -> None:
    node = Node()
    node.begin_step("grants")
    node.rows_are_visible(TARGET, docs=True, grants=True, hooks=["select 1"])
    node.begin_step("grants")
    node.begin_step("descriptions")
    for error in (DbtRuntimeError("no"), ConnectionLostError("select 1", "reset"), ValueError("no")):
        explained = node.explained(error)
        assert isinstance(explained, AfterLoadError)
        assert (explained.relation, explained.done) == (str(TARGET), ("grants",))
        assert (explained.failed, explained.not_begun) == ("descriptions", ("post-hooks",))
    assert node.explained(explained) is explained
    cancelled = RunCancelledError("nothing")
    assert node.explained(cancelled) is cancelled


def test_a_plan_that_fails_names_what_a_run_would_build_first() -> None:
    error = DbtDatabaseError("[UNRESOLVED_COLUMN] `n`")
    node = Node()
    node.begin_plan("model.shop.t")
    assert node.unplanned(error) is error
    node.begin_plan("model.shop.t", ["orders", "a`b"])
    assert getattr(node.unplanned(error), "msg", "") == (
        "[UNRESOLVED_COLUMN] `n`\nA plan takes what the model reads as it is now, and a run would build "
        "`orders`, `a``b` first. If what is missing comes with that, plan this model again once that is "
        "built."
    )
    assert node.unplanned(GONE) is GONE
    node.begin_plan("model.shop.t")
    node.taken_back = ["rename `n__sparkevolve_rename_0` to `n`"]
    assert getattr(node.unplanned(error), "msg", "") == (
        "[UNRESOLVED_COLUMN] `n`\nA run has ended while it changed the case of a name, and the next one "
        "takes that back first (rename `n__sparkevolve_rename_0` to `n`). A plan changes nothing: if what is "
        "missing is the old name, the model cannot be planned before it has run."
    )


def test_a_table_that_has_gone_is_told_once() -> None:
    """A statement's error is explained as it is raised, and seen again when the node ends."""
    node = Node()
    assert node.explained(GONE) is GONE
    node.note_gone(TARGET)
    explained = node.explained(DbtRuntimeError(GONE.msg))
    assert str(getattr(explained, "msg", "")).startswith(f"{GONE.msg}\n{TARGET} was there when dbt compiled")
    assert node.explained(explained) is explained
    other = DbtRuntimeError("DIVIDE_BY_ZERO")
    assert node.explained(other) is other


def test_a_table_that_spark_does_not_find_may_be_in_another_catalog(
    lake: IcebergCatalog, make_table: MakeTable
) -> None:
    table = make_table(columns("id int"))
    node = Node()
    node.note_existing(table, lake.load(table))
    explained = node.explained(GONE)
    assert str(getattr(explained, "msg", "")) == (
        f"{GONE.msg}\nPyIceberg has found `lake`.`db`.`t` when the node began, and Spark does not find it. "
        "Either it has been dropped or renamed since, or the profile names another catalog than the one that "
        "Spark uses under that name (`dbt debug` tells)."
    )
    assert node.explained(explained) is explained
    lost = "[TABLE_OR_VIEW_NOT_FOUND] The table or view `lake`.`db`.`source` cannot be found"
    query = f"select * from {table} join `lake`.`db`.`source` using (id)"
    # The line of a statement that is quoted behind may name both.
    for other in (DbtRuntimeError(f"{lost}."), StatementError(f"{lost}; line 1 pos 39", query)):
        assert node.explained(other) is other
    node.note_existing(None, None)
    assert node.explained(GONE) is GONE


BATCH = relation("t__dbt_tmp_0123456789ab")
NO_BATCH = DbtRuntimeError(f"[TABLE_OR_VIEW_NOT_FOUND] The table or view {BATCH} cannot be found.")


def test_a_batch_that_another_run_has_taken_away_is_told() -> None:
    node = Node(replaced=(TARGET, BATCH))
    assert node.explained(NO_BATCH) is NO_BATCH
    node = Node(replaced=(TARGET, BATCH), is_batch_lost=True)
    explained = node.explained(NO_BATCH)
    assert isinstance(explained, ReplacementLostError)
    assert (explained.relation, explained.batch) == (str(TARGET), str(BATCH))
    assert str(explained.msg) == (
        f"{NO_BATCH.msg}\nThe full refresh has not replaced `lake`.`db`.`t`: its batch {BATCH} is gone. "
        "Another run of the model, a replay or a backfill has begun meanwhile, and takes the batch of a full "
        "refresh with `full_refresh_schema: replace` away, so that this replaces nothing of what it loads; "
        "or somebody has dropped it. Run the full refresh again when nothing else loads into the table."
    )
    assert node.explained(explained) is explained
    # Of these nobody knows whether the table was replaced.
    for error in (ConnectionLostError("create", "reset"), RunCancelledError("nothing")):
        assert node.explained(error) is error
    unknown = StatementError("Error occurred while processing POST request", "create", is_fate_unknown=True)
    assert node.explained(unknown).msg == f"{unknown.msg}\n{FATE_UNKNOWN}"


FATE_UNKNOWN = (
    "Nobody has told whether this statement has taken effect: look at what it was to change before it is run "
    "again."
)


@pytest.mark.parametrize("begin", ["", "/* dbt */ ", "\n/* two\nlines */\n"])
def test_it_is_said_of_a_statement_without_an_answer_that_it_may_have_taken_effect(begin: str) -> None:
    lost = "Error occurred while processing POST request"
    writing = "with a as (select 1) insert into t select * from a"
    for sql in ("create or replace table t as select 1", "INSERT INTO t SELECT 1", "selected", writing):
        error = StatementError(lost, f"{begin}{sql}", is_fate_unknown=True)
        assert Node().explained(error).msg == f"{error.msg}\n{FATE_UNKNOWN}"
        refused = StatementError(lost, f"{begin}{sql}")
        assert Node().explained(refused) is refused
    for sql in ("select 1", "WITH a AS (SELECT 1) SELECT * FROM a", "set a=b", "desc t", "use lake"):
        error = StatementError(lost, f"{begin}{sql}", is_fate_unknown=True)
        assert Node().explained(error) is error
    # Where a load's rows go straight into the table, its step says so; on a branch nobody sees them.
    load: Any = object()
    unknown = StatementError(lost, f"{begin}INSERT INTO t SELECT 1", is_fate_unknown=True)
    assert Node(load=load).explained(unknown) is unknown


@pytest.fixture
def node() -> Node:
    return Node(is_continued=True)


def test_each_thread_finds_its_own_node(node: Node) -> None:
    found: list[Node] = []

    def work() -> None:
        found.append(running_node())
        mine = begin_node(Node())
        found.append(running_node())
        assert running_node() is mine

    begin_node(node)
    thread = threading.Thread(target=work)
    thread.start()
    thread.join(20)
    assert running_node() is node
    assert len(found) == 2
    assert not any(other.is_continued for other in found)
    end_node()
    assert running_node() is not node
    # Outside of a node macros get one that keeps nothing.
    running_node().note_gone(TARGET)
    assert running_node().gone is None


def test_what_was_committed_before_a_refusal_is_said() -> None:
    node = Node()
    assert node.written == "nothing was written"
    node.note_changes(["describe `x` as 'new'", "set property 'a' to 'b'"])
    written = (
        "no row was written. This run has changed the table before (describe `x` as 'new'; set property 'a' "
        "to 'b'), and that stays"
    )
    assert node.written == written
    moved = ColumnsMovedError("t", ["n"], [], written=node.changed)
    assert moved.msg == (
        "Another writer has changed the columns of t while this run computed its model. They differ from "
        f"the model's now, and on_schema_change is 'fail', so {written}. In the model only: n. In the table "
        "only: none. Change the model, or set on_schema_change to 'append_new_columns_preserve'."
    )
    for error in (
        NotIcebergError("t", "lake"),
        UnreadableTableError("t", "no"),
        UnreadableQueryError("t", "x"),
    ):
        end = "Nothing was read or written." if "read or" in error.msg else "Nothing was written."
        assert error.msg.endswith(f" {end}")
        assert Node().explained(error) is error
        explained = node.explained(error)
        said = f"{written[:1].upper()}{written[1:]}."
        assert str(getattr(explained, "msg", "")) == error.msg.removesuffix(end) + said
        node.explanation = None


def test_an_error_after_the_load_does_not_say_that_nothing_was_written() -> None:
    node = Node()
    node.rows_are_visible(TARGET, docs=True)
    node.begin_step("descriptions")
    explained = node.explained(NotIcebergError("t", "lake"))
    assert isinstance(explained, AfterLoadError)
    assert "what is there has to be moved away.\nThis happened after the load" in explained.msg
    assert "Nothing was written" not in explained.msg
