"""Changes of a table's columns and their descriptions, each in one commit, tried again until it is made."""

from collections.abc import Callable, Mapping
from dataclasses import replace

from dbt.adapters.base.relation import BaseRelation
from pyiceberg.schema import Schema
from pyiceberg.table import Table

from dbt.adapters.sparkevolve.errors import CommitConflictError, SchemaCommitError, TableChangedError
from dbt.adapters.sparkevolve.evolution.changes import SetDoc
from dbt.adapters.sparkevolve.evolution.history import field_changes
from dbt.adapters.sparkevolve.evolution.names import constant_literal, fold
from dbt.adapters.sparkevolve.evolution.plan import EvolutionPlan
from dbt.adapters.sparkevolve.evolution.policy import TableFacts
from dbt.adapters.sparkevolve.evolution.record import fingerprint
from dbt.adapters.sparkevolve.evolution.renames import ends_of_renames
from dbt.adapters.sparkevolve.evolution.table_properties import COMMENT_PROPERTY
from dbt.adapters.sparkevolve.iceberg.access import CatalogAccess
from dbt.adapters.sparkevolve.iceberg.base import Base, is_same_table
from dbt.adapters.sparkevolve.iceberg.facts import plan_of
from dbt.adapters.sparkevolve.iceberg.newer_format import is_atomic
from dbt.adapters.sparkevolve.iceberg.retry import MOST_OUTAGES, answer, retry
from dbt.adapters.sparkevolve.iceberg.schema_commits import commit_changes, commit_docs
from dbt.adapters.sparkevolve.messages import is_conflict_in_pyiceberg, outage


def evolve(
    access: CatalogAccess,
    relation: BaseRelation,
    decide: Callable[[Schema, TableFacts], EvolutionPlan],
    retries: int,
    *,
    source: Schema,
    invocation_id: str,
    base: Base | None = None,
    seen_ms: int = 0,
    recognise: Callable[[Table], EvolutionPlan | None] = lambda table: None,
) -> EvolutionPlan:
    """Make all changes of a plan in one commit, with a record of it; without changes, make no commit.

    Each attempt loads the table directly before it decides and commits, so what another writer, or an
    attempt whose answer was lost, has done in the meantime is neither done twice nor undone.

    Args:
        access: the catalog.
        relation: the table.
        decide: returns the plan for the table's current schema; raises to refuse.
        retries: how often to try again after a conflict.
        source: the schema of the batch, for the record.
        invocation_id: of the dbt command, for the record.
        base: what the run started from, if it has to be the same table still.
        seen_ms: a time that a clock of other writers has passed, in milliseconds since the epoch.
        recognise: returns the plan, which is without changes, if it is known; None if it has to be decided.

    Returns:
        The plan that was carried out, with the changes that were made by this call.

    Raises:
        NotIcebergError: the catalog has no such table.
        TableChangedError: another table has taken the name since ``base``.
        CommitConflictError: each attempt met another writer.
        SchemaCommitError: the catalog refused the changes.
    """
    tried: EvolutionPlan | None = None
    before: Table | None = None
    failed: Exception | None = None
    lost: Exception | None = None
    outages = 0

    def attempt(table: Table) -> EvolutionPlan:
        nonlocal before, tried, failed, lost, outages
        if base is not None and not is_same_table(table.metadata, base):
            raise TableChangedError(str(relation), ())
        if before is not None and tried is not None and failed is not None and _has_begun(before, table):
            # A plan would take the new name for a column that is not there.
            said = answer(access, failed)
            raise SchemaCommitError(str(relation), tried.changes, said, made=_made(before, table)) from failed
        known = recognise(table)
        plan = known if known is not None else plan_of(table, decide)
        if lost is not None and tried is not None:
            if not plan.changes:
                # The catalog had committed before its answer was lost.
                return _of_both(tried, plan)
            outages += 1
            if outage(lost) is None or outages > MOST_OUTAGES:
                raise SchemaCommitError(
                    str(relation), tried.changes, answer(access, lost), made=_made(before, table)
                ) from lost
        if known is not None:
            return known
        if plan.changes:
            access.cancellation.check(f"The columns of {relation} were not changed", str(relation), False)
        before = before or table
        # Of statements, an attempt that has failed may have made some, and the next one the others.
        tried = plan if tried is None or is_atomic(table) else _of_both(tried, plan)
        try:
            access.commit(
                table,
                lambda: commit_changes(
                    table, plan.changes, invocation_id, fingerprint(source), seen_ms, plan.removed
                ),
            )
        except Exception as exc:
            failed = exc
            if is_conflict_in_pyiceberg(exc):
                raise
            lost = exc
            try:
                again = access.load(relation)
            except Exception:
                said = answer(access, exc)
                raise SchemaCommitError(str(relation), plan.changes, said, outcome_known=False) from exc
            return attempt(again)
        return replace(plan, changes=tried.changes)

    try:
        return retry(access, relation, attempt, retries)
    except CommitConflictError as exc:
        # The last conflict may have been with what is wanted here, or with our own commit.
        now = access.load(relation)
        plan = plan_of(now, decide)
        made = _made(before, now)
        if not plan.changes:
            return _of_both(tried, plan) if made and tried is not None else plan
        if made:
            raise SchemaCommitError(str(relation), plan.changes, exc.last, made=made) from exc.__cause__
        raise CommitConflictError(str(relation), exc.attempts, exc.last, plan.changes) from exc.__cause__


def _of_both(tried: EvolutionPlan, plan: EvolutionPlan) -> EvolutionPlan:
    """Return a plan with the changes of an earlier attempt, too, which are made as far as it lacks them."""
    return replace(plan, changes=(*tried.changes, *(c for c in plan.changes if c not in tried.changes)))


def _made(before: Table | None, now: Table) -> list[str]:
    """Return what has become of a table's columns since the first attempt, if one can make a part of it."""
    if before is None or is_atomic(now):
        return []
    return [change.text for change in field_changes(before.schema(), now.schema())]


def _has_begun(before: Table, now: Table) -> bool:
    """Tell whether an attempt has ended while it changed the case of a name."""
    ends = (ends_of_renames(table.schema().as_struct()) for table in (now, before))
    return not set(next(ends)) <= set(next(ends))


def set_docs(
    access: CatalogAccess,
    relation: BaseRelation,
    comment: str | None,
    column_docs: Mapping[str, str],
    retries: int,
    invocation_id: str = "",
) -> list[str]:
    """Store descriptions that differ from what the table has; without a difference make no commit.

    Args:
        access: the catalog.
        relation: the table.
        comment: the table's description, or None to leave it as it is.
        column_docs: descriptions by folded column name; columns that the table lacks are left out.
        retries: how often to try again after a conflict.
        invocation_id: of the dbt command, for the record.

    Returns:
        Texts of what was stored.
    """
    stored: list[str] = []

    def attempt(table: Table) -> None:
        changed = {
            field.name: column_docs[fold(field.name)]
            for field in table.schema().fields
            if fold(field.name) in column_docs and column_docs[fold(field.name)] != (field.doc or "")
        }
        new_comment = comment is not None and comment != table.properties.get(COMMENT_PROPERTY, "")
        if not changed and not new_comment:
            return
        access.cancellation.check(f"The descriptions of {relation} were not stored")
        wanted = comment if new_comment else None
        # An attempt whose answer was lost may have stored them: the next one finds no difference then.
        stored[:] = [str(SetDoc((name,), doc)) for name, doc in changed.items()]
        if wanted is not None:
            stored.append(f"describe the table as {constant_literal(wanted)}")
        access.commit(table, lambda: commit_docs(table, wanted, changed, invocation_id))

    retry(access, relation, attempt, retries, wanted="The descriptions of {} could not be stored")
    return stored
