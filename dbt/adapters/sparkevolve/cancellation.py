"""Whether what an adapter is doing has been cancelled, by Ctrl-C or `--fail-fast`."""

import re
import threading
import time

from dbt.adapters.sparkevolve.errors import RunCancelledError

# Changes nothing, and what Spark knows of a table whose rows were published has to be brought up to date.
_REFRESH = re.compile(r"\s*(/\*.*?\*/)?\s*refresh\s+table\s", re.DOTALL | re.IGNORECASE)
_SHOWN = 200


class Cancellation:
    """The state of one adapter: cancelled or not. It never goes back: each dbt command has its own adapter.

    The thread that cancels is exempt, since after `--fail-fast` it goes on with the project's hooks.
    """

    def __init__(self) -> None:
        self._event = threading.Event()
        self._by: int | None = None

    def cancel(self) -> None:
        """Cancel what all threads but this one do."""
        self._by = threading.get_ident()
        self._event.set()

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
