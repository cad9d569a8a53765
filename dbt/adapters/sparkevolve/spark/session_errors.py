"""What an exception out of PySpark means, and whether Spark's process has ended."""

import subprocess
from collections.abc import Generator
from contextlib import contextmanager

from dbt_common.exceptions import DbtRuntimeError

from dbt.adapters.sparkevolve.errors import SessionEndedError, StatementError
from dbt.adapters.sparkevolve.iceberg.newer_format import conflict
from dbt.adapters.sparkevolve.interrupts import INTERRUPTS
from dbt.adapters.sparkevolve.messages import (
    is_commit_unknown,
    is_conflict_in_spark,
    is_spark_stopped,
    is_without_answer,
    short_message,
)
from dbt.adapters.sparkevolve.redaction import safe

# A process that is killed closes its connections first.
ENDS_WITHIN_SECONDS = 5
# Java lets an exception be its own cause.
_MOST_CAUSES = 20


def translated(exc: Exception, sql: str = "") -> DbtRuntimeError:
    """Return what dbt shows of an exception that came out of PySpark."""
    message, cause = _answer(exc)
    said = short_message(message) or type(cause).__name__
    if is_spark_stopped(message):
        return SessionEndedError(sql, said, is_stopped=True)
    if _is_unanswered(message, cause):
        if not _runs():
            return SessionEndedError(sql, said)
        text = f"Spark's Java still runs, and has not answered: what has become of this is not known ({said})"
        return StatementError(text, sql, is_fate_unknown=True)
    # The short text has no longer the name of Iceberg's exception.
    return StatementError(said, sql, is_fate_unknown=is_commit_unknown(message))


def commit_error(exc: Exception) -> Exception:
    """Return what an exception out of a commit in Java means: a conflict, or what ``translated`` says."""
    message, _ = _answer(exc)
    if is_conflict_in_spark(message) and not is_commit_unknown(message):
        return conflict(short_message(message))
    return translated(exc)


@contextmanager
def alive() -> Generator[None, None, None]:
    """Say of calls of Java, other than statements, that Spark has ended if that is why they fail."""
    try:
        with INTERRUPTS.deferred():
            yield
    except Exception as exc:
        message, cause = _answer(exc)
        if is_spark_stopped(message) or _is_unanswered(message, cause):
            raise translated(exc) from safe(exc)
        raise


def _answer(exc: Exception) -> tuple[str, Exception]:
    """Return an exception's text, and what to judge it by: Java may have ended before it is asked for it."""
    try:
        return _message_of(exc), exc
    except Exception as unanswered:
        return str(unanswered), unanswered


def _is_unanswered(message: str, exc: Exception) -> bool:
    """Tell whether an exception means that nothing came back from Spark's process."""
    from py4j.protocol import Py4JError, Py4JNetworkError

    if isinstance(exc, (ConnectionError, Py4JNetworkError)):
        return True
    return type(exc) is Py4JError and is_without_answer(message)


def _runs() -> bool:
    """Tell whether Spark's process is certainly there.

    What a program does on a signal may have cut off the wait for an answer.
    """
    from pyspark import SparkContext

    process = vars(SparkContext._gateway).get("proc") if SparkContext._gateway is not None else None
    if process is None:
        return False
    try:
        process.wait(ENDS_WITHIN_SECONDS)
    except subprocess.TimeoutExpired:
        return True
    return False


def _message_of(exc: Exception) -> str:
    """Return the text of an exception and of its causes, in the way that Java prints them.

    py4j raises a class of its own for what PySpark does not translate, Iceberg's exceptions and those that
    Spark has wrapped for another thread among it; their text is often that of the cause alone.
    """
    from pyspark.errors import PySparkException

    java = getattr(exc, "java_exception", None)
    if java is None or isinstance(exc, PySparkException):
        return str(exc)
    texts = [str(java.toString())]
    while len(texts) < _MOST_CAUSES and (java := java.getCause()) is not None:
        texts.append(f"Caused by: {java.toString()}")
    return "\n".join(texts)
