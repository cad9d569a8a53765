"""When a catalog is away: how long it is waited for, and what is said then."""

import threading
import time
from collections.abc import Callable
from typing import TypeVar

from dbt.adapters.events.logging import AdapterLogger

from dbt.adapters.sparkevolve.cancellation import Cancellation
from dbt.adapters.sparkevolve.errors import CatalogUnavailableError, SparkEvolveError
from dbt.adapters.sparkevolve.iceberg.addresses import address
from dbt.adapters.sparkevolve.iceberg.catalog_settings import CatalogSettings
from dbt.adapters.sparkevolve.iceberg.embedded import BUSY_SECONDS
from dbt.adapters.sparkevolve.messages import IS_LOCKED, answer_of, asked_to_wait, outage

logger = AdapterLogger("SparkEvolve")
Result = TypeVar("Result")

LONGEST_PAUSE_SECONDS = 2.0


class Watch:
    """How a catalog is asked: no question waits for ever, and an outage during a run is waited out.

    Before the catalog has answered once, nothing is waited out: more likely, the profile names another.
    """

    def __init__(self, settings: CatalogSettings, seconds: float, cancellation: Cancellation) -> None:
        """Watch a catalog.

        Args:
            settings: the catalog's.
            seconds: how long it may be away, or silent.
            cancellation: what ends all waiting.
        """
        self._name = settings.name
        self._setting = settings.place.setting
        self._properties = settings.pyiceberg
        self._is_file = settings.sqlite_file is not None
        self._seconds = seconds
        self._cancellation = cancellation
        self.has_answered = False

    def ask(self, question: Callable[[], Result], undone: str = "", *, is_waited_out: bool = True) -> Result:
        """Return the answer to a question that changes nothing.

        Args:
            question: asks it.
            undone: what is not done if there is no answer, as a sentence.
            is_waited_out: whether to ask again until the time is over.

        Raises:
            CatalogUnavailableError: the catalog is away.
        """
        started = time.monotonic()
        number = 0
        while True:
            try:
                answer = self.limited(question)
            except CatalogUnavailableError:
                raise
            except Exception as exc:
                reason = outage(exc)
                if reason is None:
                    self.has_answered = True
                    raise
                waited = time.monotonic() - started
                waits = is_waited_out and self.has_answered and not self._is_file
                if not waits or waited >= self._seconds or self._cancellation.is_cancelled:
                    # Once is enough: what is left of a run does not wait for it again.
                    self.has_answered = False
                    was_waited_for = number > 0 or isinstance(exc, TimeoutError)
                    raise self.error(reason, undone, waited if was_waited_for else 0) from exc
                if number == 0:
                    logger.info(
                        f"The catalog `{self._name}` is away ({reason}); waiting for it, at most "
                        f"{self._seconds:g} s"
                    )
                pause = min(0.1 * 2**number, LONGEST_PAUSE_SECONDS)
                self.pause(exc, pause, max(pause, self._seconds - waited))
                number += 1
            else:
                self.has_answered = True
                return answer

    def pause(self, exc: BaseException, seconds: float, longest: float | None = None) -> None:
        """Wait before something is tried again, or until the run is cancelled.

        Args:
            exc: why it failed; a catalog that is asked too often may say for how long to leave it alone.
            seconds: how long to wait if it does not.
            longest: how long to wait at the most; None for as long as the catalog may be away.
        """
        most = self._seconds if longest is None else longest
        self._cancellation.pause(max(seconds, min(asked_to_wait(exc), most)))

    def error(self, reason: str, undone: str = "", waited: float = 0) -> CatalogUnavailableError:
        """Return the error that says that the catalog is away."""
        where = address(self._properties)
        if reason == IS_LOCKED:
            text = (
                f"The Iceberg catalog `{self._name}` is the SQLite file {where}, and another program has "
                f"held its lock for {BUSY_SECONDS} s: one that writes a lot at once, one with a transaction "
                "that it has not ended, such as a browser of databases, or a copy or backup of the file. See "
                "which one has it open, end that, and run again."
            )
            text = f"{undone.rstrip('.')}. {text}" if undone else text
            return CatalogUnavailableError(self._name, where, reason, undone, waited, self._setting, text)
        return CatalogUnavailableError(self._name, where, reason, undone, waited, self._setting)

    def closed(self, exc: Exception, said: str | None) -> CatalogUnavailableError:
        """Return the error that says that the catalog cannot be opened.

        Args:
            exc: why not.
            said: what the catalog, or its database, has answered; None if it is not that.
        """
        self.has_answered = False
        where = address(self._properties)
        if isinstance(exc, SparkEvolveError):
            return CatalogUnavailableError(self._name, where, exc.msg, "", 0, self._setting, text=exc.msg)
        if said is not None:
            text = (
                f"The Iceberg catalog `{self._name}` at {where} lets nobody in: {said}. Correct what "
                f"`{self._setting}` of the profile say of it: the address, user and password, the database."
            )
            return CatalogUnavailableError(self._name, where, said, "", 0, self._setting, text)
        answer = answer_of(exc).rstrip(".")
        text = (
            f"The Iceberg catalog `{self._name}` at {where} cannot be opened by PyIceberg: {answer}. "
            f"See whether it is the server that `{self._setting}` of the profile mean, and what they say "
            "of it."
        )
        return CatalogUnavailableError(self._name, where, answer, "", 0, self._setting, text)

    def limited(self, call: Callable[[], Result]) -> Result:
        """Return what a call of PyIceberg's returns, whose libraries would wait for a silent server for ever.

        Raises:
            TimeoutError: the time is over. The call may still have an effect.
        """
        if self._is_file:
            return call()  # SQLite limits its waiting itself
        answers: list[Result] = []
        failures: list[BaseException] = []

        def run() -> None:
            try:
                answers.append(call())
            except BaseException as exc:
                failures.append(exc)

        thread = threading.Thread(
            target=run, daemon=True, name=f"{threading.current_thread().name} (catalog)"
        )
        thread.start()
        thread.join(self._seconds)
        if failures:
            raise failures[0]
        if not answers:
            raise TimeoutError(f"The catalog did not answer within {self._seconds:g} s")
        return answers[0]
