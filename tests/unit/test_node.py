"""What a node says of its errors, and how macros find the node that runs in their thread."""

import threading

import pytest
from dbt_common.exceptions import DbtRuntimeError

from dbt.adapters.sparkevolve.errors import AfterLoadError, ConnectionLostError, RunCancelledError
from dbt.adapters.sparkevolve.load.node import Node, begin_node, end_node, running_node
from tests.unit.helpers import relation

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
