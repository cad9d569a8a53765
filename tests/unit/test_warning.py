"""How warnings look, and what becomes of them where dbt is to take them for errors."""

import pytest
from dbt_common.events import event_manager_client
from dbt_common.events.base_types import EventMsg
from dbt_common.events.event_manager import EventManager
from dbt_common.exceptions.events import EventCompilationError
from dbt_common.helper_types import WarnErrorOptionsV2
from dbt_common.ui import warning_tag

from dbt.adapters.sparkevolve.errors import AfterLoadError, WarningsError
from dbt.adapters.sparkevolve.load.node import Node
from dbt.adapters.sparkevolve.warning import are_errors, warn, warn_of_rest
from tests.unit.helpers import relation

NAMES = {"JinjaLogWarning", "AdapterEventWarning", "LogTestResult"}


@pytest.fixture
def manager(monkeypatch: pytest.MonkeyPatch) -> EventManager:
    """Dbt's event manager, which keeps its events, for one test."""
    made = EventManager()
    monkeypatch.setattr(event_manager_client, "_EVENT_MANAGER", made)
    return made


@pytest.fixture
def lines(manager: EventManager) -> list[tuple[str, str]]:
    """Level and text of each event."""
    found: list[tuple[str, str]] = []

    def keep(event: EventMsg) -> None:
        found.append((event.info.level, event.info.msg))

    manager.add_callback(keep)
    return found


@pytest.mark.parametrize(
    ("options", "errors"),
    [
        ({}, False),
        ({"error": "all"}, True),
        ({"error": "*", "warn": ["JinjaLogWarning"]}, False),
        ({"error": ["JinjaLogWarning"]}, True),
        ({"error": ["JinjaLogWarning"], "silence": ["JinjaLogWarning"]}, False),
        ({"error": ["LogTestResult"]}, False),
    ],
)
def test_dbts_options_decide_whether_warnings_are_errors(
    manager: EventManager, options: dict[str, object], errors: bool
) -> None:
    manager.warn_error_options = WarnErrorOptionsV2(**options, valid_error_names=NAMES)  # type: ignore[arg-type]
    assert are_errors() is errors
    manager.warn_error = True
    assert are_errors()


def test_a_warning_is_marked_as_dbts_own_are(lines: list[tuple[str, str]]) -> None:
    warn("text")
    warn_of_rest("rest")
    assert lines == [
        ("warn", warning_tag("SparkEvolve adapter: text")),
        ("warn", warning_tag("SparkEvolve adapter: rest")),
    ]
    assert Node().warnings(["a", "b"], "what") == [warning_tag("what: a"), warning_tag("what: b")]
    assert Node().warnings(["a"], is_marked=False) == ["a"]


def test_what_is_left_over_never_is_an_error(manager: EventManager, lines: list[tuple[str, str]]) -> None:
    """With dbt's flag `require_all_warnings_handled_by_warn_error` each event that warns may be one."""
    manager.warn_error = manager.require_warn_or_error_handling = True
    with pytest.raises(EventCompilationError):
        warn("text")
    warn_of_rest("rest")
    assert [(level, text.endswith("rest")) for level, text in lines] == [("info", True)]


def test_warnings_of_a_node_are_one_error_that_says_what_was_written(manager: EventManager) -> None:
    manager.warn_error = True
    node = Node()
    node.refuse_warnings([])
    assert node.warnings([], "what") == []
    with pytest.raises(WarningsError) as caught:
        node.warnings(["a", "b"], "what")
    assert caught.value.warnings == ("what: a", "what: b")
    assert "so nothing was written:\n" in caught.value.msg
    node.note_changes(["add column `n` int"])
    with pytest.raises(WarningsError, match="changed the table before"):
        node.warnings(["a"])
    node.rows_are_visible(relation("t"), hooks=["select 1"])
    with pytest.raises(WarningsError) as caught:
        node.warnings(["a"])
    assert "written" not in caught.value.msg
    explained = node.explained(caught.value)
    assert isinstance(explained, AfterLoadError)
    assert "what this run has loaded into `lake`.`db`.`t` is visible, and stays." in explained.msg
