"""From a staged batch to what is done with it: the plan, its text, and the statements that load it."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, time, timezone
from typing import Any

from pyiceberg.schema import Schema
from pyiceberg.types import DateType, IcebergType, TimestampType

from dbt.adapters.sparkevolve.evolution import names, refusals
from dbt.adapters.sparkevolve.evolution.changes import AddColumn, AddField
from dbt.adapters.sparkevolve.evolution.column_properties import metrics_of_unknown, named_for_another
from dbt.adapters.sparkevolve.evolution.partitions import (
    Part,
    PartitionValue,
    parse_partitions,
    part,
    same_partitions,
)
from dbt.adapters.sparkevolve.evolution.plan import EvolutionPlan, plan_evolution
from dbt.adapters.sparkevolve.evolution.policy import Policy, TableFacts
from dbt.adapters.sparkevolve.evolution.projection import AsFixed, AsUuid, Cast, Keep, ProjectedColumn
from dbt.adapters.sparkevolve.evolution.refusals import Refusal
from dbt.adapters.sparkevolve.evolution.table_properties import (
    DELETE_MODE,
    MERGE_MODE,
    NEWEST_FORMAT_TO_COMMIT,
    allows_merge,
    allows_mode,
    property_changes,
    refused_properties,
)
from dbt.adapters.sparkevolve.evolution.types import spark_type
from dbt.adapters.sparkevolve.iceberg.base import Base
from dbt.adapters.sparkevolve.iceberg.older_partitions import has_older_partitions
from dbt.adapters.sparkevolve.iceberg.staged_batch import StagedBatch
from dbt.adapters.sparkevolve.relation import SparkEvolveRelation
from dbt.adapters.sparkevolve.settings import IncrementalSettings, Strategy
from dbt.adapters.sparkevolve.sql import dml, snapshots, spark_types

KEPT, PADDED = "rows that are replaced keep its value, new ones get NULL", "padded with NULL"


def plan_data(
    target: SparkEvolveRelation, plan: EvolutionPlan, settings: IncrementalSettings
) -> dict[str, Any]:
    """Return a plan as plain data, see ``Preview.of_load``."""
    return {
        "relation": str(target),
        "changes": [str(change) for change in plan.changes],
        "projections": [
            {"column": column.name, "expression": column.render(dml.SOURCE_ALIAS)} for column in plan.columns
        ],
        "removed": [names.path_text(path) for path in plan.removed],
        "removed_get": removed_value_text(plan, settings),
        "ignored": [names.path_text(path) for path in plan.ignored],
        "warnings": list(plan.warnings),
        "refusals": [str(refusal) for refusal in plan.refusals],
    }


def plan_table(plan: Mapping[str, Any]) -> str:
    """Return a plan, as ``Preview`` gives it, as a table."""
    if plan.get("creates"):
        found = [("column", names.quote(name)) for name in plan["columns"]]
        found += [("loses", names.quote(name)) for name in plan.get("loses", ())]
        found += [("warning", text) for text in plan["warnings"]] + _built_before(plan)
        found += [("refused", text) for text in plan["refusals"]]
        return "\n".join(
            [f"{plan['relation']}: would be created from the model", *(f"  {k:<9}  {t}" for k, t in found)]
        )
    rows = [("change", text) for text in plan["changes"]] or [("change", "none")]
    for text in plan["removed"]:
        rows.append(("keep", f"{text}: {KEPT}") if plan["removed_get"] == KEPT else ("pad", text))
    rows += [("leave out", text) for text in plan["ignored"]]
    rows += [("warning", text) for text in plan["warnings"]] + _built_before(plan)
    rows += [("refused", text) for text in plan["refusals"]]
    kind = "new row" if plan["removed_get"] == KEPT and plan["removed"] else "column"
    rows += [(kind, f"{names.quote(p['column'])} = {p['expression']}") for p in plan["projections"]]
    return "\n".join([str(plan["relation"]), *(f"  {kind:<9}  {text}" for kind, text in rows)])


def _built_before(plan: Mapping[str, Any]) -> list[tuple[str, str]]:
    names_ = ", ".join(names.quote(name) for name in plan.get("built_before", ()))
    return [("reads", f"{names_}, planned as now: a run would build that first")] if names_ else []


def plan_batch(
    batch: StagedBatch,
    settings: IncrementalSettings,
    column_docs: Mapping[str, str],
    schema: Schema,
    facts: TableFacts,
) -> EvolutionPlan:
    """Plan how a batch is loaded into a table.

    Args:
        batch: the staged batch.
        settings: the model's, see ``LoadRunner.evolve``.
        column_docs: descriptions of columns; empty if they are not to be stored.
        schema: the table's current schema.
        facts: what else matters of the table.
    """
    replacing, setting = settings.replacing
    policy = Policy(
        add_columns=settings.add_columns,
        type_widening=settings.type_widening,
        relax_not_null=settings.relax_not_null,
        nested_evolution=settings.nested_evolution,
        unique_key=replacing,
        key_setting=setting,
        renames=settings.column_renames,
        docs={names.fold(name): doc for name, doc in column_docs.items()} or None,
        columns_without_null=batch.columns_without_null,
        frozen=frozenset(settings.frozen),
        facts=facts,
    )
    plan = plan_evolution(schema, _source(batch, schema, settings.keep_table_type), policy)
    found = tuple(_refused_settings(plan, settings, facts)) if not plan.refusals else ()
    if not plan.refusals:
        unknown = metrics_of_unknown(settings.tblproperties, schema, batch.schema, plan.changes)
        found += tuple(refusals.metrics_of_no_column(name, column) for name, column in unknown)
    if found:
        return EvolutionPlan(refusals=found)
    plan = replace(plan, columns=_cast(plan.columns, batch, schema, settings.keep_table_type))
    unread = tuple(
        f"Files without field ids may have {names.path_text(change.path)}, and the table's property "
        "`schema.name-mapping.default` takes that for another column. The new one is NULL in such files, in "
        "those too that are added to the table later: if they have it, give it another name."
        for change in plan.changes
        if isinstance(change, AddColumn | AddField) and named_for_another(facts.properties, change.path)
    )
    plan = replace(plan, warnings=(*plan.warnings, *unread))
    return _with_properties(plan, settings.tblproperties, facts)


def _with_properties(plan: EvolutionPlan, configured: Mapping[str, str], facts: TableFacts) -> EvolutionPlan:
    """Return a plan that gives the table the properties of its model, where PyIceberg can."""
    if plan.refusals or facts.format_version > NEWEST_FORMAT_TO_COMMIT:
        return plan
    return replace(plan, changes=(*plan.changes, *property_changes(configured, facts.properties)))


def _cast(
    columns: Sequence[ProjectedColumn], batch: StagedBatch, target: Schema, stored_as_they_are: Iterable[str]
) -> tuple[ProjectedColumn, ...]:
    """Return columns with a cast where the table's type was taken for that of the batch.

    Spark would cast as it writes, unless ``spark.sql.storeAssignmentPolicy`` is STRICT.
    """
    names_ = {names.fold(name) for name in stored_as_they_are}
    has = {names.fold(f.name): f.field_type for f in batch.schema.fields}
    wants = {names.fold(f.name): f.field_type for f in target.fields if names.fold(f.name) in names_}
    return tuple(
        replace(column, projection=Cast(spark_type(wants[key])))
        if (key := names.fold(column.name)) in wants and wants[key] != has.get(key, wants[key])
        else column
        for column in columns
    )


def _source(batch: StagedBatch, target: Schema, stored_as_they_are: Iterable[str]) -> Schema:
    """Return the batch's schema, in which some columns have the types that the table has.

    dbt's own columns of a snapshot are dates or timestamps as it happens, and are cast as they are written.
    """
    names_ = {names.fold(name) for name in stored_as_they_are}
    types = {names.fold(f.name): f.field_type for f in target.fields if names.fold(f.name) in names_}
    if not types:
        return batch.schema
    return Schema(
        *(
            f.model_copy(update={"field_type": types.get(names.fold(f.name), f.field_type)})
            for f in batch.schema.fields
        )
    )


def _refused_settings(
    plan: EvolutionPlan, settings: IncrementalSettings, facts: TableFacts
) -> Iterable[Refusal]:
    # Only a snapshot's batch has columns that are not for the table.
    is_snapshot = bool(settings.bookkeeping)
    merges = settings.strategy == Strategy.MERGE and bool(plan.unique_key)
    configured = settings.tblproperties
    is_set = facts.format_version <= NEWEST_FORMAT_TO_COMMIT
    properties = {**facts.properties, **(configured if is_set else {})}
    if (merges or is_snapshot) and not allows_merge(properties):
        is_in_table = not allows_merge(facts.properties)
        yield refusals.cannot_merge(is_snapshot=is_snapshot, is_in_table=is_in_table)
    yield from refused_properties(configured, facts.properties, facts.format_version)
    deletes = settings.strategy == Strategy.MICROBATCH or (
        settings.strategy == Strategy.DELETE_INSERT and bool(plan.unique_key)
    )
    for mode, is_used in ((DELETE_MODE, deletes), (MERGE_MODE, merges or is_snapshot)):
        if is_used and not allows_mode(mode, properties, facts.format_version):
            yield refusals.needs_newer_format(mode)
    known = {names.fold(name) for name in plan.refreshed}
    renamed = {names.fold(names.unquote(str(name))) for name in settings.column_renames}
    for setting in ("merge_update_columns", "merge_exclude_columns"):
        unknown = tuple(n for n in getattr(settings, setting) if names.fold(n) not in known)
        if unknown:
            is_renamed = {names.fold(name) for name in unknown} <= renamed
            yield refusals.no_such_column(unknown, setting, is_renamed)
    if settings.partition_by and settings.strategy == Strategy.INSERT_OVERWRITE:
        wanted = wanted_partitions(settings)
        if not same_partitions(wanted, facts.partition_by, settings.column_renames):
            yield refusals.other_partitions(wanted, facts.partition_by)


def wanted_partitions(settings: IncrementalSettings) -> tuple[Part, ...]:
    """Return what the model's table is to be partitioned by: Iceberg's buckets are partitions too."""
    found = parse_partitions(settings.partition_by)
    if not (settings.clustered_by and settings.buckets):
        return found
    return (*found, part("bucket", ",".join(settings.clustered_by), settings.buckets))


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


def is_loaded(batch: StagedBatch, settings: IncrementalSettings) -> bool:
    """Tell whether there is anything to do for a batch: an empty one may still replace rows by nothing.

    Not under `--empty`, where dbt has made what the model reads look empty.
    """
    replaces = settings.strategy == Strategy.MICROBATCH or partition_overwrite(settings) == "static"
    return batch.rows > 0 or (replaces and not settings.is_sampled_empty)


def removed_value_text(plan: EvolutionPlan, settings: IncrementalSettings) -> str:
    """Return what rows of a run have where the model does not return a column or field."""
    strategy = settings.strategy
    keeps = strategy == Strategy.MERGE or (
        strategy == Strategy.DELETE_INSERT and settings.removed_columns == "keep"
    )
    return KEPT if keeps and plan.unique_key else PADDED


def keeps_values(plan: EvolutionPlan, settings: IncrementalSettings) -> bool:
    """Tell whether rows that were deleted are read again, for values that the model does not return."""
    if (
        settings.strategy != Strategy.DELETE_INSERT
        or settings.removed_columns != "keep"
        or not plan.unique_key
    ):
        return False
    return any(column.may_keep for column in plan.columns)


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


def load_statements(
    target: str,
    previous: str,
    staged: SparkEvolveRelation,
    batch: StagedBatch,
    plan: EvolutionPlan,
    settings: IncrementalSettings,
    event_time_type: IcebergType | None = None,
    older_partitions: Sequence[PartitionValue] = (),
) -> list[str]:
    """Return the statements that load a batch, in order; none if there is nothing to load.

    Args:
        target: the rendered name of what is written, the table or a branch of it.
        previous: the rendered name under which the table's rows can be read as they were before.
        staged: the staged batch's name.
        batch: the staged batch.
        plan: what was decided for it.
        settings: the model's, see ``LoadRunner.evolve``.
        event_time_type: the type that the table's ``event_time`` column has, for ``microbatch``.
        older_partitions: what makes a row's partition, if the table has files of an older partition spec: an
            overwrite would leave their rows beside the new ones.
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
        delete = dml.delete_partitions(
            target, str(staged), plan.columns, older_partitions, str(staged.database)
        )
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
        settings: the model's, see ``LoadRunner.evolve``.
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
