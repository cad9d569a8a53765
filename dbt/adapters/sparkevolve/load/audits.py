"""Whether rows that were loaded keep to the model's audits, before anyone can read them."""

from collections.abc import Callable, Sequence
from typing import Any

from dbt_common.exceptions import DbtRuntimeError

from dbt.adapters.sparkevolve.errors import (
    ROWS_AS_THEY_WERE,
    AuditError,
    AuditFailure,
    UnreadableAuditError,
    may_be_of_expression,
)
from dbt.adapters.sparkevolve.messages import short_message
from dbt.adapters.sparkevolve.spark.interface import Spark
from dbt.adapters.sparkevolve.sql import audit_queries

# How many rows a message shows, and by how many columns rows without a key are told apart.
_SHOWN = 3
SHOWN_COLUMNS = 4


def check_audits(
    spark: Spark,
    relation: str,
    rows: str,
    audits: Sequence[str],
    columns: Sequence[str],
    left: str = ROWS_AS_THEY_WERE,
) -> None:
    """Check rows against conditions, each of which has to hold for all of them.

    Args:
        spark: where to ask.
        relation: the rendered name of the table that they are for.
        rows: a query for the rows.
        audits: SQL conditions.
        columns: the names of the columns by which a message shows a row.
        left: what is there if they fail, as a sentence.

    Raises:
        AuditError: a condition fails, with some rows for each that does.
        UnreadableAuditError: one cannot be evaluated.
    """
    counted = naming_audits(
        relation, audits, lambda some: spark.rows(audit_queries.count_violations(rows, some)), left
    )
    failures = []
    for audit, count in zip(audits, counted[0], strict=True):
        if count:
            examples = tuple(spark.rows(audit_queries.some_violations(rows, audit, columns, _SHOWN)))
            failures.append(AuditFailure(audit, int(count), tuple(columns), examples))
    if failures:
        raise AuditError(relation, failures, left)


def naming_audits(
    relation: str,
    audits: Sequence[str],
    evaluate: Callable[[Sequence[str]], Any],
    left: str = ROWS_AS_THEY_WERE,
) -> Any:
    """Return what ``evaluate`` does of some audits, and say which one it is that cannot be evaluated.

    Args:
        relation: the rendered name of the table, for messages.
        audits: SQL predicates.
        evaluate: asks Spark for something of all of them, or of some.
        left: what is there if one cannot be evaluated, as a sentence.

    Raises:
        UnreadableAuditError: one cannot be evaluated.
    """
    try:
        return evaluate(audits)
    except DbtRuntimeError as exc:
        if may_be_of_expression(exc) and _is_evaluated(evaluate):
            # One at a time: Spark's own message has a line and a column of this query, and not which it is.
            for audit in audits:
                _evaluate_alone(relation, audit, evaluate, left)
        raise


def _is_evaluated(evaluate: Callable[[Sequence[str]], Any]) -> bool:
    """Tell whether Spark evaluates an audit that no row fails: otherwise it is not about the audits."""
    try:
        evaluate(["true"])
    except DbtRuntimeError:
        return False
    return True


def _evaluate_alone(relation: str, audit: str, evaluate: Callable[[Sequence[str]], Any], left: str) -> None:
    try:
        evaluate([audit])
    except DbtRuntimeError as exc:
        if not may_be_of_expression(exc):
            raise
        raise UnreadableAuditError(relation, audit, short_message(str(exc.msg)), left) from exc
