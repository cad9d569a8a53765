"""Whether what an adapter is doing has been cancelled, by Ctrl-C or `--fail-fast`."""

import re
import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager

from dbt.adapters.sparkevolve.errors import RunCancelledError
from dbt.adapters.sparkevolve.interrupts import INTERRUPTS

# Changes nothing, and what Spark knows of a table whose rows were published has to be brought up to date.
_REFRESH = re.compile(r"\s*(/\*.*?\*/)?\s*refresh\s+table\s", re.DOTALL | re.IGNORECASE)
_SHOWN = 200


class Cancellation:
    """The state of one adapter: cancelled or not. It never goes back: each dbt command has its own adapter.

    The thread that cancels is exempt, since after `--fail-fast` it goes on with the project's hooks. Ctrl-C
    while that thread runs one of these, or a run-operation, is for it as well.
    """

    def __init__(self) -> None:
        self._event = threading.Event()
        self._by: int | None = None
        self._is_interrupted = False

    def cancel(self) -> None:
        """Cancel what all threads but this one do."""
        self._by = threading.get_ident()
        self._event.set()

    def interrupt(self) -> None:
        """Cancel what all threads do."""
        self._by = None
        self._is_interrupted = True
        self._event.set()

    @contextmanager
    def by_interrupts(self, stop: Callable[[], object] = lambda: None) -> Generator[None, None, None]:
        """Take Ctrl-C on dbt's main thread for the order to cancel what it does in this block.

        Args:
            stop: stops what it is doing; called from another thread.

        Raises:
            RunCancelledError: what was done in the block, or not.
            KeyboardInterrupt: the block has ended well; or Ctrl-C was pressed twice.
        """

        def order() -> None:
            self.interrupt()
            stop()

        with INTERRUPTS.deferred(order):
            yield

    @contextmanager
    def of_statement(self, stop: Callable[[], object]) -> Generator[None, None, None]:
        """Do as ``by_interrupts`` for a statement; one that is not of an operation ends all of dbt's command.

        Of a hook that fails dbt would go on with all the nodes.

        Raises:
            RunCancelledError: the statement was stopped.
            KeyboardInterrupt: so it was, and was not of an operation; its text says what was stopped.
        """
        try:
            with self.by_interrupts(stop):
                yield
        except RunCancelledError as exc:
            is_main = threading.current_thread() is threading.main_thread()
            if self._is_interrupted and is_main and not INTERRUPTS.is_deferring:
                raise KeyboardInterrupt(str(exc.msg)) from None
            raise

    @property
    def is_cancelled(self) -> bool:
        """Whether this thread has to stop."""
        return self._event.is_set() and self._by != threading.get_ident()

    def check(self, undone: str, relation: str | None = None, is_published: bool | None = None) -> None:
        """Stop this thread if it has to.

        Args:
            undone: what was not done, as a sentence.
            relation: the rendered name of the table that it is about, if it is known.
            is_published: whether the run's rows are visible in it, if it is known.

        Raises:
            RunCancelledError: it has.
        """
        if self.is_cancelled:
            raise RunCancelledError(undone, relation, is_published)

    def check_statement(self, sql: str) -> None:
        """Stop this thread before it sends a statement.

        Raises:
            RunCancelledError: it has to stop, and the statement would do something.
        """
        if self.is_cancelled and not _REFRESH.match(sql):
            raise RunCancelledError(f"This statement was not sent: {abridged(sql)}", is_unsent=True)

    def pause(self, seconds: float) -> None:
        """Wait for so long, or until this thread has to stop."""
        if self._by == threading.get_ident():
            time.sleep(seconds)
        else:
            self._event.wait(seconds)


def stopped(sql: str) -> RunCancelledError:
    """Return the error of a statement that was stopped while it ran."""
    return RunCancelledError(f"This statement was stopped while it ran: {abridged(sql)}")


def abridged(sql: str) -> str:
    """Return a statement in one line, without its comment, and not all of a long one."""
    text = " ".join(re.sub(r"/\*.*?\*/", "", sql, count=1, flags=re.DOTALL).split())
    return text if len(text) <= _SHOWN else text[:_SHOWN] + " ..."
