"""Ctrl-C on the main thread: what it is doing is told to stop, and not cut off."""

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from dbt.adapters.sparkevolve.cancellation import Cancellation, stopped
from dbt.adapters.sparkevolve.errors import RunCancelledError
from dbt.adapters.sparkevolve.interrupts import Interrupts
from dbt.adapters.sparkevolve.spark.session_errors import alive


def press() -> None:
    """Press Ctrl-C."""
    os.kill(os.getpid(), signal.SIGINT)


@contextmanager
def ends_with(kind: type[BaseException], match: str | None = None) -> Iterator[Any]:
    """Expect a block to end with an exception, wherever in it that is raised."""
    with pytest.raises(kind, match=match) as error:
        yield error


def soon(told: threading.Event) -> bool:
    return told.wait(5)


@pytest.fixture(autouse=True)
def python_s_own_handler() -> Iterator[None]:
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    signal.signal(signal.SIGINT, before)


def test_a_block_is_told_to_stop_and_ends() -> None:
    interrupts, told, done = Interrupts(), threading.Event(), []
    with ends_with(KeyboardInterrupt), interrupts.deferred(told.set):
        press()
        done += [soon(told), interrupts.is_deferring]
    assert done == [True, True]
    assert not interrupts.is_deferring
    # It is over with that: the next block is told nothing.
    told.clear()
    with interrupts.deferred(told.set):
        pass
    with ends_with(KeyboardInterrupt):
        press()
    assert not told.is_set()


def test_what_a_block_fails_with_is_raised() -> None:
    interrupts = Interrupts()
    with ends_with(ValueError, match="stopped"), interrupts.deferred():
        press()
        raise ValueError("stopped")


def test_who_presses_twice_does_not_wait() -> None:
    interrupts, done = Interrupts(), []
    with ends_with(KeyboardInterrupt), interrupts.deferred():
        press()
        done.append("first")
        press()
        done.append("second")
    assert done == ["first"]


def test_blocks_within_blocks_are_all_told() -> None:
    interrupts = Interrupts()
    outer, inner, late = (threading.Event() for _ in range(3))
    done = []
    with ends_with(KeyboardInterrupt), interrupts.deferred(outer.set):
        with interrupts.deferred(inner.set):
            press()
        # Only the outermost one ends with an exception.
        with interrupts.deferred(late.set):
            done += [soon(outer), soon(inner), soon(late)]
    assert done == [True, True, True]


def test_a_block_that_may_take_long_is_cut_off() -> None:
    interrupts, done = Interrupts(), []
    with ends_with(KeyboardInterrupt), interrupts.deferred(), interrupts.admitted():
        press()
        done.append("pressed")
    with ends_with(KeyboardInterrupt), interrupts.deferred():
        press()
        with interrupts.admitted():
            done.append("pressed before")
    with ends_with(KeyboardInterrupt), interrupts.admitted():
        press()
    assert done == []


def test_a_handler_that_was_put_in_meanwhile_goes() -> None:
    """PySpark's, whenever Spark is started on the main thread."""
    interrupts, called = Interrupts(), []
    with ends_with(KeyboardInterrupt), interrupts.deferred():
        with interrupts.deferred():
            signal.signal(signal.SIGINT, lambda *_: called.append("other"))
        press()
    assert called == []


def test_a_program_keeps_a_handler_of_its_own() -> None:
    interrupts, told, called = Interrupts(), threading.Event(), []
    for handler in (lambda *_: called.append("own"), signal.SIG_IGN):
        signal.signal(signal.SIGINT, handler)
        with interrupts.deferred(told.set):
            press()
            assert signal.getsignal(signal.SIGINT) is handler
    assert called == ["own"]
    assert not told.is_set()
    signal.signal(signal.SIGINT, signal.default_int_handler)


def test_pyspark_s_handler_is_not_asked() -> None:
    interrupts, called = Interrupts(), []

    def handler(*_: Any) -> None:
        called.append("pyspark")

    for module in ("pyspark.core.context", "pyspark.context"):
        handler.__module__ = module
        signal.signal(signal.SIGINT, handler)
        with ends_with(KeyboardInterrupt), interrupts.deferred():
            press()
        assert signal.getsignal(signal.SIGINT) is handler
    assert called == []
    signal.signal(signal.SIGINT, signal.default_int_handler)


def test_other_threads_are_left_alone() -> None:
    interrupts, done = Interrupts(), []

    def run() -> None:
        with interrupts.deferred():
            done.append((interrupts.is_deferring, signal.getsignal(signal.SIGINT)))

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert done == [(False, signal.default_int_handler)]


def stop_when(event: threading.Event, sql: str) -> None:
    """Do as a statement that is stopped."""
    assert soon(event)
    raise stopped(sql)


def test_a_statement_of_an_operation_fails_and_one_of_a_hook_ends_the_command() -> None:
    text = (
        "The run was cancelled. This statement was stopped while it ran: select 1. "
        "What was committed before stays."
    )
    for of_operation, kind in ((True, RunCancelledError), (False, KeyboardInterrupt)):
        cancellation, told = Cancellation(), threading.Event()

        def statement(cancellation: Cancellation = cancellation, told: threading.Event = told) -> None:
            with cancellation.of_statement(told.set):
                press()
                stop_when(told, "select 1")

        def operation(
            cancellation: Cancellation = cancellation, statement: Callable[[], None] = statement
        ) -> None:
            with cancellation.by_interrupts():
                statement()

        with ends_with(kind) as error:
            (operation if of_operation else statement)()
        assert str(getattr(error.value, "msg", error.value)) == text
        # Nothing further is sent, by no thread.
        assert cancellation.is_cancelled
        with ends_with(RunCancelledError):
            cancellation.check_statement("select 2")


def test_a_hook_after_fail_fast_is_stopped_as_well() -> None:
    cancellation = Cancellation()
    cancellation.cancel()
    assert not cancellation.is_cancelled
    with ends_with(KeyboardInterrupt), cancellation.of_statement(lambda: None):
        press()
        until = time.monotonic() + 5
        while not cancellation.is_cancelled and time.monotonic() < until:
            time.sleep(0.01)
    assert cancellation.is_cancelled


def test_a_question_to_java_is_not_cut_off() -> None:
    done = []
    with ends_with(KeyboardInterrupt), alive():
        press()
        done.append("answered")
    assert done == ["answered"]
