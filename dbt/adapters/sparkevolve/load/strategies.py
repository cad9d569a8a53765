"""How each strategy loads a batch: by which statements, by which key or window, and when not at all."""

from collections.abc import Sequence
from datetime import datetime, time, timezone
from typing import Any

from pyiceberg.types import DateType, IcebergType, TimestampType

from dbt.adapters.sparkevolve.evolution import names, refusals
from dbt.adapters.sparkevolve.evolution.partitions import (
    PartitionValue,
)
from dbt.adapters.sparkevolve.evolution.plan import EvolutionPlan
from dbt.adapters.sparkevolve.evolution.projection import AsFixed, AsUuid, Keep
from dbt.adapters.sparkevolve.evolution.refusals import Refusal
from dbt.adapters.sparkevolve.evolution.types import spark_type
from dbt.adapters.sparkevolve.iceberg.base import Base
from dbt.adapters.sparkevolve.iceberg.older_partitions import has_older_partitions, refused_partitions
from dbt.adapters.sparkevolve.iceberg.staged_batch import StagedBatch
from dbt.adapters.sparkevolve.relation import SparkEvolveRelation
from dbt.adapters.sparkevolve.settings import IncrementalSettings, Strategy
from dbt.adapters.sparkevolve.sql import dml, snapshots, spark_types


def load_statements(
    target: str,
    previous: str,
    staged: SparkEvolveRelation,
    batch: StagedBatch,
    plan: EvolutionPlan,
    settings: IncrementalSettings,
    event_time_type: IcebergType | None = None,
    older_partitions: Sequence[PartitionValue] = (),
    catalog: str = "",
) -> list[str]:
    """Return the statements that load a batch, in order; none if there is nothing to load.

    Args:
        target: the rendered name of what is written, the table or a branch of it.
        previous: the rendered name under which the table's rows can be read as they were before.
        staged: the staged batch's name.
        batch: the staged batch.
        plan: what was decided for it.
        settings: the model's.
        event_time_type: the type that the table's ``event_time`` column has, for ``microbatch``.
        older_partitions: what makes a row's partition, if the table has files of an older partition spec: an
            overwrite would leave their rows beside the new ones.
        catalog: the name of the table's catalog, whose functions make these values.
    """
    strategy = settings.strategy
    if not is_loaded(batch, settings):
        return []
    if strategy == Strategy.SNAPSHOT:
        bookkeeping = settings.snapshot_columns
        return [
            snapshots.snapshot_statement(
                target,
                str(staged),
                plan.columns,
                scd_id=bookkeeping["dbt_scd_id"],
                valid_to=bookkeeping["dbt_valid_to"],
                valid_to_current=settings.valid_to_current,
            )
        ]
    if strategy == Strategy.INSERT_OVERWRITE and older_partitions:
        delete = dml.delete_partitions(target, str(staged), plan.columns, older_partitions, catalog)
        return [delete, dml.insert_statement(target, str(staged), plan.columns)]
    if strategy in (Strategy.INSERT_OVERWRITE, Strategy.FULL_REFRESH):
        return [dml.insert_statement(target, str(staged), plan.columns, overwrite=True)]
    insert = dml.insert_statement(target, str(staged), plan.columns)
    if strategy == Strategy.MICROBATCH:
        assert event_time_type is not None
        window = _window(plan.unique_key[0], event_time_type, settings)
        delete = dml.delete_where(target, [window, *settings.predicates])
        return [delete, insert] if batch.rows else [delete]
    key = load_key(batch, plan, settings)
    if key is None:
        return [insert]
    if strategy == Strategy.MERGE:
        update = _updated_columns(plan, settings)
        return [dml.merge_statement(target, str(staged), plan.columns, key, update)]
    if keeps_values(plan, settings):
        insert = dml.insert_and_keep(target, str(staged), plan.columns, key, previous)
    return [dml.delete_statement(target, str(staged), key), insert]


def _updated_columns(plan: EvolutionPlan, settings: IncrementalSettings) -> list[str]:
    only = {names.fold(name) for name in settings.merge_update_columns}
    never = {names.fold(name) for name in settings.merge_exclude_columns}
    never |= {names.fold(name) for name in plan.unique_key}
    return [
        name
        for name in plan.refreshed
        if names.fold(name) not in never and (not only or names.fold(name) in only)
    ]


def load_key(batch: StagedBatch, plan: EvolutionPlan, settings: IncrementalSettings) -> dml.Key | None:
    """Return the key by which a batch finds the rows that it replaces; None if it has none.

    Bounds of the batch's keys go along as predicates, by which Iceberg leaves out files of the table.
    """
    if settings.strategy not in (Strategy.DELETE_INSERT, Strategy.MERGE) or not plan.unique_key:
        return None
    null_safe = any(names.fold(key) not in batch.columns_without_null for key in plan.unique_key)
    types = {
        names.fold(f.name): spark_type(f.field_type)
        for f in batch.schema.fields
        if names.fold(f.name) in batch.bounds
    }
    rebuilt = tuple(c for c in plan.columns if c.name in plan.unique_key and c.projection != Keep())
    # Iceberg orders a uuid otherwise than its text, and a bound may be half of one.
    unordered = {c.name for c in rebuilt if isinstance(c.projection, AsUuid | AsFixed)}
    bounds = [
        dml.between(
            key,
            types[names.fold(key)],
            *batch.bounds[names.fold(key)],
            or_null=names.fold(key) not in batch.columns_without_null,
        )
        for key in plan.unique_key
        if names.fold(key) in types and key not in unordered
    ]
    return dml.Key(plan.unique_key, null_safe, (*bounds, *settings.predicates), rebuilt)


def keeps_values(plan: EvolutionPlan, settings: IncrementalSettings) -> bool:
    """Tell whether rows that were deleted are read again, for values that the model does not return."""
    return (
        settings.keeps_removed and bool(plan.unique_key) and any(column.may_keep for column in plan.columns)
    )


def is_loaded(batch: StagedBatch, settings: IncrementalSettings) -> bool:
    """Tell whether there is anything to do for a batch: an empty one may still replace rows by nothing.

    Not under `--empty`, where dbt has made what the model reads look empty.
    """
    replaces = settings.strategy == Strategy.MICROBATCH or partition_overwrite(settings) == "static"
    return batch.rows > 0 or (replaces and not settings.is_sampled_empty)


def partition_overwrite(settings: IncrementalSettings) -> str | None:
    """Return how Spark's INSERT OVERWRITE has to work for a strategy, None for one that does not use it."""
    if settings.strategy not in (Strategy.INSERT_OVERWRITE, Strategy.FULL_REFRESH):
        return None
    by_partition = settings.strategy == Strategy.INSERT_OVERWRITE and settings.partition_by
    return "dynamic" if by_partition else "static"


def overwrites_older_partitions(base: Base, settings: IncrementalSettings) -> bool:
    """Tell whether a run overwrites partitions of a table that has files of an older partition spec.

    Args:
        base: what the run starts from.
        settings: the model's.
    """
    return (
        settings.strategy == Strategy.INSERT_OVERWRITE
        and partition_overwrite(settings) == "dynamic"
        and has_older_partitions(base.table, base.cut_at)
    )


def refused_overwrite(base: Base, settings: IncrementalSettings) -> list[Refusal]:
    """Return why a run cannot overwrite partitions beside files of an older partition spec; empty if it can.

    Args:
        base: what the run starts from.
        settings: the model's.
    """
    if not overwrites_older_partitions(base, settings):
        return []
    return refused_partitions(base.table, settings.tblproperties)


def _window(column: str, type_: IcebergType, settings: IncrementalSettings) -> str:
    """Return the condition that a row is in the window of a microbatch, which dbt gives in UTC."""
    start, end = window(type_, settings)
    return dml.between(column, spark_type(type_), start, end, open_end=True)


def window(type_: IcebergType, settings: IncrementalSettings) -> tuple[Any, Any]:
    """Return begin and end of a microbatch, as plain values of the type of its ``event_time``."""
    start, end = settings.event_time_start, settings.event_time_end
    assert start is not None
    assert end is not None
    return _moment(start, type_), _moment(end, type_)


def window_refusals(columns: spark_types.Struct, settings: IncrementalSettings) -> list[Refusal]:
    """Refuse a microbatch whose window cannot be told by the type of its ``event_time``.

    Args:
        columns: what the model returns.
        settings: the model's.
    """
    wanted = names.fold(settings.event_time or "")
    found = [(name, type_) for name, type_ in columns.fields if names.fold(name) == wanted]
    start, end = settings.event_time_start, settings.event_time_end
    if start is None or end is None or len(found) != 1:
        return []
    name, type_ = found[0]
    text = type_.text if isinstance(type_, spark_types.Leaf) else "a struct, list or map"
    window = [_utc(side) for side in (start, end)]
    if text == "date" and any(moment.time() != time.min for moment in window):
        return [refusals.window_within_a_day(name, *(f"{moment:%Y-%m-%d %H:%M:%S}" for moment in window))]
    if text not in ("date", "timestamp", "timestamp_ntz", "void"):
        return [refusals.event_time_is_no_time(name, text)]
    return []


def _utc(value: datetime) -> datetime:
    return value.replace(tzinfo=timezone.utc) if value.tzinfo is None else value.astimezone(timezone.utc)


def _moment(value: datetime, type_: IcebergType) -> Any:
    utc = _utc(value)
    if isinstance(type_, DateType):
        return utc.date()
    return utc.replace(tzinfo=None) if isinstance(type_, TimestampType) else utc
