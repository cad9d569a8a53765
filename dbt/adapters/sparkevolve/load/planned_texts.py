"""Whether Spark can read what users have written of columns, as a schema change leaves them."""

from collections.abc import Callable, Sequence

from dbt.adapters.events.logging import AdapterLogger
from dbt_common.exceptions import DbtRuntimeError

from dbt.adapters.sparkevolve.errors import may_be_of_expression
from dbt.adapters.sparkevolve.evolution import refusals
from dbt.adapters.sparkevolve.evolution.changes import SetDoc, SetProperty
from dbt.adapters.sparkevolve.evolution.names import Path, fold, is_reserved
from dbt.adapters.sparkevolve.evolution.plan import EvolutionPlan
from dbt.adapters.sparkevolve.evolution.refusals import Refusal
from dbt.adapters.sparkevolve.iceberg.base import Base
from dbt.adapters.sparkevolve.iceberg.branch_names import refused_names
from dbt.adapters.sparkevolve.iceberg.staged_batch import StagedBatch
from dbt.adapters.sparkevolve.messages import short_message
from dbt.adapters.sparkevolve.relation import SparkEvolveRelation
from dbt.adapters.sparkevolve.settings import IncrementalSettings, Strategy
from dbt.adapters.sparkevolve.spark.interface import Spark
from dbt.adapters.sparkevolve.sql import audit_queries, batch_queries, spark_types
from dbt.adapters.sparkevolve.sql.mentions import has_query, mentions, names_word

logger = AdapterLogger("SparkEvolve")

REPLACING = (Strategy.DELETE_INSERT, Strategy.MERGE, Strategy.MICROBATCH)
"""Strategies whose statements look for rows of the table."""


def unreadable_texts(
    spark: Spark,
    target: SparkEvolveRelation,
    staged: str,
    plan: EvolutionPlan,
    settings: IncrementalSettings,
    *,
    is_plan: bool = False,
    has_old_names: bool = False,
) -> list[Refusal]:
    """Refuse the conditions of a model that Spark cannot read, before the schema is changed for a batch.

    Without a change of the schema nothing is asked: the statement that reads a condition says what is wrong
    with it, and nothing was written by then.

    A text with a query of the table itself, whose columns are the old ones yet, is left to the statement that
    reads it, too.

    Args:
        spark: where to ask.
        target: the table.
        staged: the rendered name of the staged batch.
        plan: what is to be done for the batch.
        settings: the model's. In a run its audits of single rows have been evaluated by now.
        is_plan: whether nothing will be loaded, so that no statement says it later.
        has_old_names: whether the table has other names than the run would begin with.
    """
    is_changed = not all(isinstance(change, SetDoc | SetProperty) for change in plan.changes)
    if not (is_changed or is_plan):
        return []
    rows = batch_queries.planned_rows(staged, plan.columns)

    def asked(texts: Sequence[str]) -> list[str]:
        return _askable(texts, target) if is_changed or has_old_names else list(texts)

    merges = settings.strategy == Strategy.MERGE
    # Iceberg's own columns of a table, such as `_file`, are not in a query of it.
    limits = [
        text
        for text in asked(settings.limits if settings.strategy in REPLACING else ())
        if not _names_metadata(text)
    ]
    found = _unreadable(
        "incremental_predicates",
        limits,
        spark,
        lambda some: batch_queries.limited_rows(rows, staged, some, with_source=merges),
    )
    of_rows = settings.row_audits if is_plan else ()
    return found + unreadable_audits(spark, rows, asked((*settings.audits, *of_rows)))


def not_found_in_branch(
    base: Base,
    target: SparkEvolveRelation,
    batch: StagedBatch,
    plan: EvolutionPlan,
    settings: IncrementalSettings,
) -> list[Refusal]:
    """Refuse to look for rows in the branch of `spark.wap.branch` by names that its columns do not have yet.

    Args:
        base: what the run starts from.
        target: the table.
        batch: the staged batch, with rows or without.
        plan: what is to be done for it.
        settings: the model's.
    """
    if settings.strategy not in REPLACING:
        return []
    keys, setting = settings.replacing
    # In the IN of a DELETE, Iceberg is asked for the bounds alone.
    filters = [k for k in keys if settings.strategy != Strategy.DELETE_INSERT or batch.may_have_bounds(k)]
    named: list[tuple[str, Path]] = [(f"The model's `{setting}`", (fold(key),)) for key in filters]
    named += [
        ("The model's `incremental_predicates`", mention.path)
        for text in settings.limits
        for mention in mentions(text)
        if mention.is_of_table
    ]
    return refused_names(base, str(target), named, plan.changes)


def unreadable_audits(spark: Spark, rows: str, audits: Sequence[str]) -> list[Refusal]:
    """Refuse the audits that Spark cannot read over the rows of a query."""
    return _unreadable("audits", audits, spark, lambda some: audit_queries.count_violations(rows, some))


def unreadable_key(
    spark: Spark, staged: str, plan: EvolutionPlan, settings: IncrementalSettings
) -> list[Refusal]:
    """Refuse a snapshot's key that Spark cannot read, before fields are added for its rows.

    dbt looks for it in the versions of the table and in the rows of the source.

    Args:
        spark: where to ask.
        staged: the rendered name of a table with the columns of the source.
        plan: what is to be done for the source.
        settings: the snapshot's.
    """
    sources = (batch_queries.planned_rows(staged, plan.columns), f"SELECT * FROM {staged}")
    for rows in sources:
        problems = (
            (text, _problem(spark, f"SELECT {text}\nFROM (\n{rows}\n)")) for text in settings.version_key
        )
        found = [refusals.unreadable_key(text, why) for text, why in problems if why is not None]
        if found:
            return found
    return []


def _unreadable(
    setting: str, texts: Sequence[str], spark: Spark, query: Callable[[Sequence[str]], str]
) -> list[Refusal]:
    if not texts or _problem(spark, query(texts)) is None:
        return []
    if _problem(spark, query(["true"])) is not None:
        logger.debug(f"Whether Spark can read the model's `{setting}` cannot be told before they are used")
        return []
    problems = ((text, _problem(spark, query([text]))) for text in texts)
    return [refusals.unreadable_text(setting, text, why) for text, why in problems if why is not None]


def _problem(spark: Spark, query: str) -> str | None:
    """Return what Spark says of a query that it cannot analyse; None if it can."""
    try:
        spark.columns_of(spark_types.no_rows(query))
    except DbtRuntimeError as exc:
        if not may_be_of_expression(exc):
            raise
        return short_message(str(exc.msg))
    return None


def _askable(texts: Sequence[str], target: SparkEvolveRelation) -> list[str]:
    """Return those of some texts that have no query of the table."""
    return [text for text in texts if not (has_query(text) and names_word(text, str(target.identifier)))]


def _names_metadata(text: str) -> bool:
    return any(is_reserved(name) for mention in mentions(text) for name in mention.path[:1])
