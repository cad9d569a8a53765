"""One line at the end of a terminal, that is written over again: for what takes long."""

import os
import shutil
import sys
import threading
import time
from typing import Any, Protocol

from dbt_common.events.base_types import EventLevel, EventMsg
from dbt_common.events.event_manager_client import get_event_manager

_BAR = 20
# How long nothing is shown after a line of dbt, which may come in several parts.
_PAUSE_SECONDS = 0.1
_UNITS = ("bytes", "kB", "MB", "GB", "TB")


class Clock(Protocol):
    """What tells the time in seconds."""

    def __call__(self) -> float:
        """Return the time."""


class StatusLine:
    """A line on stderr which dbt's own lines take the place of.

    It is shown where a person reads: on a terminal on which dbt logs text of the level info. There are no
    colours in it, and no sequences of control characters.
    """

    def __init__(self, clock: Clock = time.monotonic) -> None:
        self._lock = threading.Lock()
        self._clock = clock
        self._width = 0
        self._not_before = 0.0

    @property
    def is_wanted(self) -> bool:
        """Whether somebody would see it, and wants to."""
        is_terminal = sys.stderr is not None and sys.stderr.isatty() and os.environ.get("TERM") != "dumb"
        return is_terminal and _shows_lines()

    def show(self, text: str) -> None:
        """Show a text in place of the one before."""
        self._let_dbt_clear()
        with self._lock:
            if self._clock() < self._not_before:
                return
            shown = text[: shutil.get_terminal_size().columns - 1]
            # The cursor goes back to the beginning: what is written next begins there.
            self._write(f"{shown:<{self._width}}\r")
            self._width = len(shown)

    def clear(self) -> None:
        """Remove what is shown."""
        with self._lock:
            if self._width:
                self._write(f"{'':<{self._width}}\r")
                self._width = 0
            self._not_before = self._clock() + _PAUSE_SECONDS

    @staticmethod
    def _write(text: str) -> None:
        try:
            sys.stderr.write(text)
            sys.stderr.flush()
        except (OSError, ValueError):
            pass  # closed meanwhile

    def _let_dbt_clear(self) -> None:
        loggers: list[Any] = get_event_manager().loggers
        if not any(isinstance(logger, _Clearing) for logger in loggers):
            loggers.insert(0, _Clearing(self))


class _Clearing:
    """What dbt takes for the first of its loggers: it writes nothing, and clears the line for the others."""

    name = "sparkevolve_status_line"
    level = EventLevel.ERROR

    def __init__(self, line: StatusLine) -> None:
        self._line = line

    def filter(self, message: EventMsg) -> bool:
        """Clear the line for an event that is shown."""
        if message.info.level != "debug":
            self._line.clear()
        return False

    def flush(self) -> None:
        """Do nothing."""


def _shows_lines() -> bool:
    """Tell whether dbt shows lines of the level info: no JSON, not `--quiet`, and not `--debug` either."""
    return any(
        getattr(logger, "use_debug_format", None) is False and logger.level == EventLevel.INFO
        for logger in get_event_manager().loggers
    )


def bar(done: float, total: float) -> str:
    """Return a part of a whole as a bar of characters: ``[=====>    ]``."""
    filled = int(_BAR * min(1.0, done / total)) if total > 0 else 0
    return "[" + ("=" * filled + ">" * (filled < _BAR)).ljust(_BAR) + "]"


def size_text(number: int) -> str:
    """Return a number of bytes as a person reads it: ``48.3 MB``."""
    size, unit = float(number), 0
    while size >= 1000 and unit < len(_UNITS) - 1:
        size, unit = size / 1000, unit + 1
    return f"{size:.0f} {_UNITS[unit]}" if unit == 0 else f"{size:.1f} {_UNITS[unit]}"


STATUS_LINE = StatusLine()
