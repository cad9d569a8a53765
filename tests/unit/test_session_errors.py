"""Whether Spark has ended, or refuses."""

import pytest
from py4j.protocol import Py4JError, Py4JNetworkError

from dbt.adapters.sparkevolve.errors import (
    SessionEndedError,
    StatementError,
)
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
