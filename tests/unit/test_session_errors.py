"""Whether Spark has ended, or refuses."""

import subprocess
import sys
from types import SimpleNamespace

import pytest
from py4j.protocol import Py4JError, Py4JNetworkError
from pyspark import SparkContext

from dbt.adapters.sparkevolve.errors import (
    SessionEndedError,
    StatementError,
)
from dbt.adapters.sparkevolve.spark import session_errors
from dbt.adapters.sparkevolve.spark.session_errors import alive, translated


@pytest.mark.parametrize(
    ("exc", "ended"),
    [
        (Py4JNetworkError("Answer from Java side is empty"), True),
        (ConnectionRefusedError("refused"), True),
        (Py4JError("An error occurred while calling o55.sql"), True),
        (Py4JError("An error occurred while calling o55.sql. Trace:\nno such method"), False),
        (RuntimeError("Job 3 cancelled because SparkContext was shut down"), True),
        (RuntimeError("Cannot call methods on a stopped SparkContext."), True),
        (RuntimeError("[DIVIDE_BY_ZERO] Division by zero"), False),
    ],
)
def test_spark_that_has_ended_is_told_from_one_that_refuses(exc: Exception, ended: bool) -> None:
    error = translated(exc, "select 1")
    assert isinstance(error, SessionEndedError if ended else StatementError)
    assert error.statement == "select 1"


class EndedWithoutText(RuntimeError):
    """As PySpark's own: its text is asked of Java when it is wanted, which is after Java's end."""

    def __str__(self) -> str:
        raise ConnectionRefusedError(111, "Connection refused")


def test_spark_may_end_before_it_is_asked_for_a_text() -> None:
    error = translated(EndedWithoutText(), "select 1")
    assert isinstance(error, SessionEndedError)
    assert "has ended ([Errno 111] Connection refused)" in str(error)
    with pytest.raises(SessionEndedError), alive():
        raise EndedWithoutText
    with pytest.raises(ValueError, match="another"), alive():
        raise ValueError("another")


def test_a_spark_that_runs_is_not_said_to_have_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    """A call may be cut off in this process, such as by what a program does on a signal."""
    unanswered = Py4JError("An error occurred while calling o55.sql")
    monkeypatch.setattr(session_errors, "ENDS_WITHIN_SECONDS", 0.1)
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as java:
        monkeypatch.setattr(SparkContext, "_gateway", SimpleNamespace(proc=java))
        error = translated(unanswered, "insert into t select 1")
        assert isinstance(error, StatementError)
        assert error.is_fate_unknown
        assert error.msg == (
            "Spark's Java still runs, and has not answered: what has become of this is not known (An error "
            "occurred while calling o55.sql)"
        )
        with pytest.raises(StatementError), alive():
            raise unanswered
    # With its end, the process has one.
    assert isinstance(translated(unanswered, ""), SessionEndedError)


def test_a_spark_that_was_stopped_is_not_said_to_have_run_out_of_memory() -> None:
    cause = "Cannot call methods on a stopped SparkContext."
    assert translated(RuntimeError(cause)).msg == (
        f"Spark, which ran inside this process, has ended ({cause}): it was stopped, by something in this "
        "process or by a failure of its own. Its own output, in dbt's log file, may say why. Start dbt again."
    )
