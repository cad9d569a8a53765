"""Ctrl-C on the main thread while that does what must not be cut off wherever it is."""

import signal
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from queue import SimpleQueue
from typing import Any

Order = Callable[[], None]


class Interrupts:
    """Lets the main thread of this process be told to stop, in place of an exception wherever it is.

    Python raises KeyboardInterrupt between any two of its steps: such as between a question and its answer,
    on a connection whose next question then gets that answer, or between a commit and what is noted of it.
    dbt's other threads are never cut off like that. Nor is the main thread while it is in a block of
    ``deferred``: it is told to stop as they are. Whoever presses Ctrl-C once more does not want to wait, and
    KeyboardInterrupt it is.
    """

    def __init__(self) -> None:
        # Of the main thread only: the blocks that it is in, the outermost one first.
        self._blocks: list[Order] = []
        self._former: Any = None
        self._is_pending = False
        self._is_admitted = False
        # A signal may come while a lock is held: what it leads to is done by a thread of its own. Of all
        # that could wake that one, this queue alone may be used within itself.
        self._given: SimpleQueue[Order] = SimpleQueue()
        self._thread: threading.Thread | None = None

    @property
    def is_deferring(self) -> bool:
        """Whether this is the main thread, in a block of ``deferred``."""
        return bool(self._blocks) and _is_main()

    @contextmanager
    def deferred(self, order: Order = lambda: None) -> Generator[None, None, None]:
        """Do what is in this block to its end, also after Ctrl-C.

        Args:
            order: what tells it to stop; called from another thread, once, if Ctrl-C was pressed.

        Raises:
            KeyboardInterrupt: it was, and the outermost block has ended well; or it was twice.
        """
        if not self._may_begin():
            yield
            return
        self._blocks.append(order)
        try:
            signal.signal(signal.SIGINT, self._handle)
            if self._is_pending:
                self._given.put(order)
            yield
        finally:
            self._blocks.pop()
            # Who has put in a handler meanwhile, as PySpark does when it starts, has it no more.
            signal.signal(signal.SIGINT, self._handle if self._blocks else self._former)
            was_pending = self._is_pending
            self._is_pending = was_pending and bool(self._blocks)
        if was_pending and not self._is_pending:
            raise KeyboardInterrupt

    @contextmanager
    def admitted(self) -> Generator[None, None, None]:
        """Let the first Ctrl-C cut this block off, since it may take long, and nothing is lost with it."""
        if not self.is_deferring or self._is_admitted:
            yield
            return
        self._is_admitted = True
        try:
            if self._is_pending:
                raise KeyboardInterrupt
            yield
        finally:
            self._is_admitted = False

    def _may_begin(self) -> bool:
        if not _is_main():
            return False
        if not self._blocks:
            self._former = signal.getsignal(signal.SIGINT)
            if not _just_raises(self._former):
                return False
        if self._thread is None or not self._thread.is_alive():
            self._thread = threading.Thread(target=self._obey, name="sparkevolve-interrupts", daemon=True)
            self._thread.start()
        return True

    def _handle(self, number: int, frame: Any) -> None:
        is_first, self._is_pending = not self._is_pending, True
        if not is_first or self._is_admitted:
            raise KeyboardInterrupt
        for order in self._blocks:
            self._given.put(order)

    def _obey(self) -> None:
        while True:
            self._given.get()()


def _is_main() -> bool:
    return threading.current_thread() is threading.main_thread()


def _just_raises(handler: Any) -> bool:
    """Tell whether a handler is Python's or PySpark's: a program that has one of its own keeps it.

    PySpark's asks Java something, on the connection on which the main thread may await an answer.
    """
    module = str(getattr(handler, "__module__", None))
    return handler is signal.default_int_handler or module.partition(".")[0] == "pyspark"


INTERRUPTS = Interrupts()
