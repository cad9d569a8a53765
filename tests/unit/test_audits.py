"""Which error of a query that evaluates audits is blamed on one of them."""

from collections.abc import Sequence

import pytest
from dbt_common.exceptions import DbtRuntimeError

from dbt.adapters.sparkevolve.errors import (
    CatalogUnavailableError,
    ConnectionLostError,
    RunCancelledError,
    SessionEndedError,
    StatementError,
    UnreadableAuditError,
)
from dbt.adapters.sparkevolve.load.audits import naming_audits

AUDITS = ["amount > 0", "idd > 0"]
AWAY = CatalogUnavailableError("lake", "127.0.0.1:1", "it refuses connections")
OUT_OF_MEMORY = StatementError("java.lang.OutOfMemoryError: Java heap space", "SELECT 1")
NO_ROOM = StatementError("java.io.IOException: No space left on device", "SELECT 1")
UNRESOLVED = StatementError("[UNRESOLVED_COLUMN] `idd` cannot be resolved", "SELECT 1")


class Engine:
    """Answers as Spark does to queries of audits, one error a predicate."""

    def __init__(self, errors: dict[str, DbtRuntimeError], always: DbtRuntimeError | None = None) -> None:
        self.errors = errors
        self.always = always
        self.asked: list[list[str]] = []

    def __call__(self, some: Sequence[str]) -> str:
        """Evaluate some audits."""
        self.asked.append(list(some))
        found = [self.errors[audit] for audit in some if audit in self.errors]
        if self.always or found:
            raise self.always or found[0]
        return "evaluated"


def test_an_audit_that_spark_cannot_evaluate_is_named() -> None:
    engine = Engine({"idd > 0": UNRESOLVED})
    with pytest.raises(UnreadableAuditError) as found:
        naming_audits("`t`", AUDITS, engine)
    assert found.value.msg == (
        "The batch of `t` was not published, since Spark cannot evaluate one of the model's audits: idd > 0\n"
        "Spark says: [UNRESOLVED_COLUMN] `idd` cannot be resolved\nThe rows of the table are as they were."
    )
    assert engine.asked == [AUDITS, ["true"], ["amount > 0"], ["idd > 0"]]
    assert naming_audits("`t`", AUDITS[:1], engine) == "evaluated"


@pytest.mark.parametrize(
    "error",
    [
        AWAY,
        OUT_OF_MEMORY,
        ConnectionLostError("", "reset"),
        RunCancelledError("no row was counted"),
        SessionEndedError("", "reset"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_what_is_never_about_an_audit_is_raised_as_it_is(error: DbtRuntimeError) -> None:
    engine = Engine({}, always=error)
    with pytest.raises(type(error)) as found:
        naming_audits("`t`", AUDITS, engine)
    assert found.value is error
    assert engine.asked == [AUDITS]
    # Nor is it if it comes while each is tried.
    trying = Engine({"amount > 0": error})

    def evaluate(some: Sequence[str]) -> str:
        if len(some) > 1:
            raise UNRESOLVED
        return trying(some)

    with pytest.raises(type(error)) as found:
        naming_audits("`t`", AUDITS, evaluate)
    assert found.value is error


def test_what_meets_an_audit_that_always_holds_as_well_is_not_about_the_others() -> None:
    engine = Engine({}, always=NO_ROOM)
    with pytest.raises(StatementError) as found:
        naming_audits("`t`", AUDITS, engine)
    assert found.value is NO_ROOM
    assert engine.asked == [AUDITS, ["true"]]


def test_an_error_that_no_audit_has_alone_is_raised_as_it_is() -> None:
    def evaluate(some: Sequence[str]) -> str:
        if len(some) > 1:
            raise NO_ROOM
        return "evaluated"

    with pytest.raises(StatementError) as found:
        naming_audits("`t`", AUDITS, evaluate)
    assert found.value is NO_ROOM
