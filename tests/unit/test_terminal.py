"""The line at the end of a terminal: who sees it, and what dbt's own lines do to it."""

import io
import sys
from collections.abc import Iterator

import pytest
from dbt_common.events.base_types import EventLevel
from dbt_common.events.event_manager import EventManager
from dbt_common.events.event_manager_client import ctx_set_event_manager, get_event_manager
from dbt_common.events.functions import fire_event, get_stdout_config
from dbt_common.events.logger import LineFormat
from dbt_common.events.types import Note

from dbt.adapters.sparkevolve.terminal import StatusLine, bar, size_text


class Terminal(io.StringIO):
    """A terminal."""

    def isatty(self) -> bool:
        return True


def on_terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    """Have a terminal as both stdout and stderr. No fixture: pytest captures each phase of a test anew."""
    found = Terminal()
    monkeypatch.setattr(sys, "stderr", found)
    monkeypatch.setattr(sys, "stdout", found)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "40")
    return found


@pytest.fixture(autouse=True)
def manager() -> Iterator[EventManager]:
    """Dbt's own loggers as a command has them; what was there is put back by pytest's next test."""
    before = get_event_manager()
    manager = EventManager()
    ctx_set_event_manager(manager)
    yield manager
    ctx_set_event_manager(before)


def log_on_console(manager: EventManager, form: LineFormat, level: EventLevel) -> None:
    config = get_stdout_config(form, False, level, False)
    config.output_stream = sys.stdout
    manager.add_logger(config)


@pytest.mark.parametrize(
    ("form", "level", "is_wanted"),
    [
        (LineFormat.PlainText, EventLevel.INFO, True),
        # `--quiet`, `--log-format json`, `--debug`.
        (LineFormat.PlainText, EventLevel.ERROR, False),
        (LineFormat.Json, EventLevel.INFO, False),
        (LineFormat.PlainText, EventLevel.DEBUG, False),
        (LineFormat.DebugText, EventLevel.DEBUG, False),
    ],
)
def test_who_wants_it(
    manager: EventManager,
    monkeypatch: pytest.MonkeyPatch,
    form: LineFormat,
    level: EventLevel,
    is_wanted: bool,
) -> None:
    on_terminal(monkeypatch)
    log_on_console(manager, form, level)
    assert StatusLine().is_wanted is is_wanted


def test_what_is_no_terminal_gets_none(manager: EventManager, monkeypatch: pytest.MonkeyPatch) -> None:
    on_terminal(monkeypatch)
    log_on_console(manager, LineFormat.PlainText, EventLevel.INFO)
    monkeypatch.setenv("TERM", "dumb")
    assert not StatusLine().is_wanted
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    assert not StatusLine().is_wanted


def test_lines_of_dbt_take_its_place(manager: EventManager, monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = on_terminal(monkeypatch)
    log_on_console(manager, LineFormat.PlainText, EventLevel.INFO)
    now = [0.0]
    line = StatusLine(lambda: now[0])
    line.show("a longer text")
    line.show("short")
    fire_event(Note(msg="of dbt"), level=EventLevel.INFO)
    line.show("at once after it")
    now[0] = 1
    line.show("x" * 60)
    line.clear()
    shown = terminal.getvalue().split("\r")
    assert shown[:3] == ["a longer text", "short        ", "     "]
    assert shown[3].endswith("  of dbt\n" + "x" * 39)
    assert shown[4:] == [" " * 39, ""]
    # No control characters beside the return.
    assert "\x1b" not in terminal.getvalue()


def test_bars_and_sizes() -> None:
    assert bar(0, 10) == "[>                   ]"
    assert bar(5, 10) == "[==========>         ]"
    assert bar(12, 10) == "[====================]"
    assert bar(0, 0) == "[>                   ]"
    assert [size_text(n) for n in (0, 999, 1000, 48309426)] == ["0 bytes", "999 bytes", "1.0 kB", "48.3 MB"]
