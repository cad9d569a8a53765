"""How a commit is tried again: after another writer's, and after an outage of the catalog."""

import random
from collections.abc import Callable
from typing import TypeVar

from dbt.adapters.base.relation import BaseRelation
from dbt_common.exceptions import DbtRuntimeError
from pyiceberg.exceptions import CommitStateUnknownException
from pyiceberg.table import Table
from pyiceberg.table.update import TableRequirement, TableUpdate

from dbt.adapters.sparkevolve.errors import CatalogAnswerError, CatalogUnavailableError, CommitConflictError
from dbt.adapters.sparkevolve.iceberg.access import CatalogAccess
from dbt.adapters.sparkevolve.iceberg.guards import commit
from dbt.adapters.sparkevolve.messages import (
    IS_LOCKED,
    answer_of,
    is_answer,
    is_conflict_in_pyiceberg,
    is_no_answer,
    outage,
)

Result = TypeVar("Result")

FIRST_WAIT_SECONDS = 0.05
_LONGEST_WAIT_SECONDS = 5.0
# How often a commit is tried again whose catalog went away and came back; conflicts count apart.
MOST_OUTAGES = 3


def wait_seconds(attempt: int) -> float:
    """Return how long to wait after attempt number ``attempt``: twice as long each time, with jitter."""
    return random.uniform(0.5, 1.0) * min(FIRST_WAIT_SECONDS * 2.0**attempt, _LONGEST_WAIT_SECONDS)


def retry(
    access: CatalogAccess,
    relation: BaseRelation,
    attempt: Callable[[Table], Result],
    retries: int,
    wanted: str = "The columns of {} could not be changed",
) -> Result:
    """Return what an attempt returns, which is made again after a conflict or an outage.

    Args:
        access: the catalog.
        relation: the table.
        attempt: makes the commit to the table, which is loaded directly before each attempt.
        retries: how often to try again after a conflict.
        wanted: what has not been done if there is an error, with {} for the table.

    Raises:
        CommitConflictError: each attempt met another writer.
        CatalogUnavailableError: the catalog is away, and stays so.
        CatalogAnswerError: it refuses the commit for another reason.
    """
    undone = wanted.format(relation)
    conflicts = outages = 0
    while True:
        try:
            return attempt(access.load(relation))
        except CatalogUnavailableError as exc:
            # It was waited for.
            raise exc.leaving(undone) from exc
        except DbtRuntimeError:
            raise
        except Exception as exc:
            reason = outage(exc)
            if is_conflict_in_pyiceberg(exc):
                if conflicts == retries:
                    if reason is not None:
                        # Nobody was faster, and it may have been committed all the same.
                        raise access.watch.error(reason, _unknown(wanted, relation)) from exc
                    said = answer_of(exc)
                    said = ". ".join(filter(None, [said, access.holders_of_lock(said)]))
                    raise CommitConflictError(str(relation), retries + 1, said, wanted=wanted) from exc
                access.watch.pause(exc, wait_seconds(conflicts))
                conflicts += 1
            elif reason is None:
                if is_no_answer(exc) or isinstance(exc, CommitStateUnknownException):
                    undone = _unknown(wanted, relation)
                if is_answer(exc):
                    raise access.answered(str(relation), exc, undone) from exc
                raise
            elif outages == MOST_OUTAGES or reason == IS_LOCKED:
                # A lock was waited for already, and nothing was done without it.
                raise access.watch.error(reason, undone) from exc
            else:
                undone = _unknown(wanted, relation)
                # What waits for the catalog is the next look at the table.
                access.watch.pause(exc, wait_seconds(outages))
                outages += 1


def _unknown(wanted: str, relation: BaseRelation) -> str:
    return f"{wanted.format(relation)}, as far as is known; the next run finds out"


def commit_in_time(
    access: CatalogAccess,
    table: Table,
    requirements: tuple[TableRequirement, ...],
    updates: tuple[TableUpdate, ...],
    seen_ms: int = 0,
) -> None:
    """Commit, see ``guards.commit``; no answer of the catalog is waited for without end."""

    def call() -> None:
        commit(table, requirements, updates, seen_ms=seen_ms)

    access.commit(table, call)


def answer(access: CatalogAccess, exc: BaseException | None) -> str:
    """Return what a catalog has answered, in short, or that it did not."""
    if isinstance(exc, CatalogAnswerError):
        return str(exc.msg).rstrip(".")
    reason = outage(exc) if exc is not None else None
    return answer_of(exc) if reason is None else str(access.watch.error(reason).msg).rstrip(".")
