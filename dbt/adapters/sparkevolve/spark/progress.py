"""How far long statements are: a line that moves on a terminal, a line of the log every 30 s elsewhere."""

import contextvars
import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field

from dbt.adapters.events.logging import AdapterLogger
from dbt_common.events.contextvars import get_node_info

from dbt.adapters.sparkevolve.counts import counted
from dbt.adapters.sparkevolve.terminal import STATUS_LINE, StatusLine, bar

logger = AdapterLogger("SparkEvolve")

EVERY_SECONDS = 30.0
# What is over before that is not shown on a terminal.
SHOWN_AFTER_SECONDS = 2.0
_LOOK_SECONDS = 0.5


@dataclass(frozen=True)
class Tasks:
    """How many tasks of a statement Spark has done, of those that it knows of so far."""

    done: int
    total: int


@dataclass(eq=False)
class _Statement:
    """A statement under way.

    Attributes:
        name: what it is for, such as ``model.shop.orders``.
        tasks: asks Spark how far it is; None where that cannot be asked, or is not known.
        began: when it began, by this process's own clock.
        said: when a line was last logged of it, or it began.
        context: the thread's variables, by which dbt knows the node of a line.
    """

    name: str
    tasks: Callable[[], Tasks | None]
    began: float = field(default_factory=time.monotonic)
    said: float = field(default_factory=time.monotonic)
    context: contextvars.Context = field(default_factory=contextvars.copy_context)

    @property
    def seconds(self) -> int:
        return int(time.monotonic() - self.began)

    def asked(self) -> Tasks | None:
        try:
            return self.tasks()
        except Exception as exc:
            # It is over, or Spark is: the statement itself tells.
            logger.debug(f"How far {self.name} is cannot be asked: {exc}")
            return None


class Progress:
    """The statements of this process that are under way.

    Args:
        line: the terminal's.
        every: after how many seconds a line is logged, and the next one.
    """

    def __init__(self, line: StatusLine = STATUS_LINE, every: float = EVERY_SECONDS) -> None:
        self._line = line
        self._every = every
        self._changed = threading.Condition()
        self._running: list[_Statement] = []
        self._thread: threading.Thread | None = None

    @contextmanager
    def watched(self, tasks: Callable[[], Tasks | None]) -> Generator[None, None, None]:
        """Tell of a statement while it runs.

        Args:
            tasks: asks Spark how far it is; called from another thread.
        """
        statement = _Statement(str(get_node_info().get("unique_id") or "Spark"), tasks)
        with self._changed:
            self._running.append(statement)
            if self._thread is None:
                self._thread = threading.Thread(target=self._watch, name="sparkevolve-progress", daemon=True)
                self._thread.start()
            elif len(self._running) == 1:
                self._changed.notify()
        try:
            yield
        finally:
            with self._changed:
                self._running.remove(statement)

    def _watch(self) -> None:
        is_shown = False
        while True:
            with self._changed:
                if not self._running and not is_shown:
                    self._changed.wait()
                self._changed.wait(min(_LOOK_SECONDS, self._every))
                running = list(self._running)
            is_shown = self._show(running, is_shown)

    def _show(self, running: list[_Statement], was_shown: bool) -> bool:
        """Show how far statements are, and tell whether something is shown on the terminal."""
        if not self._line.is_wanted:
            for statement in running:
                if time.monotonic() - statement.said >= self._every:
                    statement.said = time.monotonic()
                    statement.context.run(_log, statement.name, statement.seconds, statement.asked())
            return False
        longest = [s for s in running if time.monotonic() - s.began >= SHOWN_AFTER_SECONDS]
        if longest:
            self._line.show(_shown(longest[0].name, longest[0].seconds, longest[0].asked(), len(longest) - 1))
        elif was_shown:
            self._line.clear()
        return bool(longest)


def _log(name: str, seconds: int, tasks: Tasks | None) -> None:
    logger.info(progress_text(name, seconds, tasks))


def progress_text(name: str, seconds: int, tasks: Tasks | None) -> str:
    """Return a line about a statement that takes long."""
    far = "" if tasks is None else f", {tasks.done} of {counted(tasks.total, 'task')} done"
    return f"{name}: a statement has been running for {seconds} s{far}"


def _shown(name: str, seconds: int, tasks: Tasks | None, others: int) -> str:
    far = "" if tasks is None else f"{bar(tasks.done, tasks.total)} {tasks.done}/{tasks.total} tasks, "
    more = f" (and {others} more)" if others else ""
    return f"{name}  {far}{seconds} s{more}"


PROGRESS = Progress()
