"""From a staged batch to the plan of how it is loaded into its table."""

from collections.abc import Iterable, Mapping
from dataclasses import replace

from pyiceberg.schema import Schema
from pyiceberg.types import NestedField

from dbt.adapters.sparkevolve.evolution import names, refusals
from dbt.adapters.sparkevolve.evolution.changes import (
    AddColumn,
    AddField,
    RemoveDefault,
    RenameField,
    SetDefault,
    SetDoc,
    SetProperty,
)
from dbt.adapters.sparkevolve.evolution.column_properties import metrics_of_unknown, named_for_another
from dbt.adapters.sparkevolve.evolution.conversions import Member, conversions
from dbt.adapters.sparkevolve.evolution.partitions import (
    Part,
    parse_partitions,
    part,
    same_partitions,
)
from dbt.adapters.sparkevolve.evolution.plan import EvolutionPlan, plan_evolution
from dbt.adapters.sparkevolve.evolution.policy import Condition, Policy, TableFacts
from dbt.adapters.sparkevolve.evolution.refusals import Refusal
from dbt.adapters.sparkevolve.evolution.table_properties import (
    DELETE_MODE,
    MERGE_MODE,
    allows_merge,
    allows_mode,
    property_changes,
    refused_properties,
)
from dbt.adapters.sparkevolve.evolution.types import column_type, named_by_sql
from dbt.adapters.sparkevolve.iceberg.staged_batch import StagedBatch
from dbt.adapters.sparkevolve.settings import IncrementalSettings, Strategy
from dbt.adapters.sparkevolve.sql.mentions import has_select, mentions

TOLD = "note in the table's properties what the warning says, so that it is given once"


def plan_batch(
    batch: StagedBatch,
    settings: IncrementalSettings,
    column_docs: Mapping[str, str],
    schema: Schema,
    facts: TableFacts,
    model: str = "",
) -> EvolutionPlan:
    """Plan how a batch is loaded into a table.

    Args:
        batch: the staged batch.
        settings: the model's.
        column_docs: descriptions of columns; empty if they are not to be stored.
        schema: the table's current schema.
        facts: what else matters of the table.
        model: the name of the model, as a run-operation takes it; empty if nobody knows.
    """
    policy = policy_of(batch, settings, column_docs, facts, model)
    plan = plan_evolution(schema, batch.schema, policy)
    found = tuple(_refused_settings(plan, settings, schema, facts)) if not plan.refusals else ()
    if not plan.refusals:
        unknown = metrics_of_unknown(settings.tblproperties, schema, plan.changes)
        found += tuple(refusals.metrics_of_no_column(name, column) for name, column in unknown)
    changed = [str(change) for change in plan.changes if not isinstance(change, SetDoc)]
    if settings.frozen_for and changed and not plan.refusals:
        found += (refusals.frozen_schema(settings.frozen_for, changed),)
    if found:
        return EvolutionPlan(refusals=found, beside=plan)
    unread = tuple(
        f"Files without field ids may have {names.path_text(change.path)}, and the table's property "
        "`schema.name-mapping.default` takes that for another column. The new one is NULL in such files, in "
        "those too that are added to the table later: if they have it, give it another name."
        for change in plan.changes
        if isinstance(change, AddColumn | AddField) and named_for_another(facts.properties, change.path)
    )
    plan = replace(
        plan,
        warnings=(*plan.warnings, *unread),
        reminders=(*settings.contrary_defaults, *plan.reminders),
    )
    return _with_properties(plan, settings.tblproperties, facts)


def plan_defaults(schema: Schema, settings: IncrementalSettings, facts: TableFacts) -> EvolutionPlan:
    """Plan what the defaults of a model change in a table that its columns are those of.

    Args:
        schema: the table's current schema.
        settings: the model's.
        facts: what else matters of the table.
    """
    pads = settings.pad_with == "default"
    policy = Policy(defaults=settings.defaults, pad_with_default=pads, facts=facts)
    plan = plan_evolution(schema, schema, policy)
    return EvolutionPlan(
        changes=tuple(c for c in plan.changes if isinstance(c, SetDefault | RemoveDefault)),
        reminders=(*settings.contrary_defaults, *plan.reminders),
        notes=plan.notes,
    )


def defaults_of_new(
    columns: Iterable[tuple[str, str]], settings: IncrementalSettings, version: int
) -> EvolutionPlan:
    """Plan a model's defaults before its table is made, as far as they are known then.

    Args:
        columns: the names and types of its columns, as ``evolution.types.column_type`` reads them.
        settings: the model's.
        version: the format version that the table is to have.
    """
    fields = [
        NestedField(number, name, column_type(text), required=False)
        for number, (name, text) in enumerate(columns, start=1)
    ]
    return plan_defaults(Schema(*fields), settings, TableFacts(format_version=version))


def conversions_of(
    batch: StagedBatch, settings: IncrementalSettings, schema: Schema, facts: TableFacts
) -> tuple[Member, ...]:
    """Return what happens to each column of a batch of which rows are set aside; see ``conversions``."""
    policy = policy_of(batch, settings, {}, facts)
    if settings.frozen_for:
        # What no change of the schema makes room for, rows are set aside for.
        policy = replace(policy, type_widening=False, relax_not_null=False)
    return conversions(schema, batch.schema, policy)


def policy_of(
    batch: StagedBatch,
    settings: IncrementalSettings,
    column_docs: Mapping[str, str],
    facts: TableFacts,
    model: str = "",
) -> Policy:
    """Return what the evolution of a table may do for a batch; see ``plan_batch``."""
    replacing, setting = settings.replacing
    return Policy(
        add_columns=settings.add_columns,
        type_widening=settings.type_widening,
        relax_not_null=settings.relax_not_null,
        nested_evolution=settings.nested_evolution,
        unique_key=replacing,
        key_setting=setting,
        conditions=(
            *(Condition(text, mentions(text)) for text in settings.limits),
            *(Condition(text, mentions(text), finds_versions=True) for text in settings.version_key),
        ),
        renames=settings.column_renames,
        docs={names.fold(name): doc for name, doc in column_docs.items()} or None,
        columns_without_null=batch.columns_without_null,
        filled=batch.filled,
        frozen=frozenset(settings.frozen),
        keep_table_type=frozenset(map(names.fold, settings.keep_table_type)),
        defaults=settings.defaults,
        pad_with_default=settings.pad_with == "default",
        keep_defaults=settings.keep_defaults,
        replaces_all_rows=settings.strategy == Strategy.FULL_REFRESH,
        overwrites_partitions=settings.strategy == Strategy.INSERT_OVERWRITE and bool(settings.partition_by),
        may_set_aside=not settings.sets_aside and settings.strategy != Strategy.SNAPSHOT,
        model=model,
        facts=facts,
    )


def _with_properties(plan: EvolutionPlan, configured: Mapping[str, str], facts: TableFacts) -> EvolutionPlan:
    """Return a plan that gives the table the properties of its model."""
    if plan.refusals:
        return plan
    told = (SetProperty(*facts.looked_at, purpose=TOLD),) if facts.taken_names else ()
    return replace(plan, changes=(*plan.changes, *property_changes(configured, facts.properties), *told))


def _refused_settings(
    plan: EvolutionPlan, settings: IncrementalSettings, schema: Schema, facts: TableFacts
) -> Iterable[Refusal]:
    # Only a snapshot's batch has columns that are not for the table.
    is_snapshot = bool(settings.bookkeeping)
    merges = settings.strategy == Strategy.MERGE and bool(plan.unique_key)
    configured = settings.tblproperties
    properties = {**facts.properties, **configured}
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
    if merges:
        yield from (refusals.query_in_merge(text) for text in settings.predicates if has_select(text))
    yield from renamed_in_texts(plan, settings, schema)
    if settings.partition_by and settings.strategy == Strategy.INSERT_OVERWRITE:
        wanted = wanted_partitions(settings)
        if not same_partitions(wanted, facts.partition_by, settings.column_renames):
            yield refusals.other_partitions(wanted, facts.partition_by)


def renamed_in_texts(plan: EvolutionPlan, settings: IncrementalSettings, schema: Schema) -> Iterable[Refusal]:
    """Yield each text of SQL that Spark reads after a rename, and that has the old name."""
    limits = settings.limits if settings.strategy != Strategy.FULL_REFRESH else ()
    texts = [("incremental_predicates", text) for text in limits]
    texts += [("audits", str(text)) for text in (*settings.audits, *settings.row_audits)]
    renames = [c for c in plan.changes if isinstance(c, RenameField)]
    table = schema.as_struct()
    kept = {named_by_sql(table, (*c.path[:-1], c.new_name)) for c in renames}
    kept |= {named_by_sql(table, c.path) for c in plan.changes if isinstance(c, AddColumn | AddField)}
    for rename in renames:
        named = named_by_sql(table, rename.path)
        if named in kept:
            # The name is another field's then, which the text may mean, or the same in another case.
            continue
        for setting, text in texts:
            if any(m.is_of_table and m.path[: len(named)] == named for m in mentions(text)):
                yield refusals.renamed_in_text(rename.path, rename.new_name, setting, text)


def wanted_partitions(settings: IncrementalSettings) -> tuple[Part, ...]:
    """Return what the model's table is to be partitioned by: Iceberg's buckets are partitions too."""
    found = parse_partitions(settings.partition_by)
    if not (settings.clustered_by and settings.buckets):
        return found
    return (*found, part("bucket", ",".join(settings.clustered_by), settings.buckets))
