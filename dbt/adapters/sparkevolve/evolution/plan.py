"""The one place that decides what happens to a table whose model returns other columns than it holds."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from pyiceberg.schema import Schema
from pyiceberg.types import ListType, MapType, NestedField, StructType

from dbt.adapters.sparkevolve.evolution.changes import AddColumn
from dbt.adapters.sparkevolve.evolution.names import collisions, fold, is_reserved, quote
from dbt.adapters.sparkevolve.evolution.projection import Cast, Keep, Pad, ProjectedColumn
from dbt.adapters.sparkevolve.evolution.types import (
    NoSparkType,
    is_safe_upcast,
    is_same,
    spark_type,
    type_text,
)


@dataclass(frozen=True)
class Policy:
    """What the model's configuration allows.

    Attributes:
        add_columns: add what only the source has; if false (``on_schema_change: ignore``) leave it out.
        unique_key: the columns that identify a row, in any case, without quotes; empty for ``append``.
        docs: description of a column by its folded name, for those that are added.
        columns_without_null: folded names of staged columns that hold no NULL in this batch.
    """

    add_columns: bool = True
    unique_key: tuple[str, ...] = ()
    docs: Mapping[str, str] = field(default_factory=dict)
    columns_without_null: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Refusal:
    """Why a batch cannot be loaded into its table.

    Attributes:
        columns: the names that it is about.
        types: their types as text, where types are the reason; else empty.
        reason: what is wrong.
        remedy: what the user can do.
    """

    columns: tuple[str, ...]
    reason: str
    remedy: str
    types: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.reason} {self.remedy}"


@dataclass(frozen=True)
class EvolutionPlan:
    """Everything that one run does to the columns of one table.

    Attributes:
        changes: the changes of the schema, all to be made in one commit.
        columns: the refreshed columns, in table order, each with its projection.
        unique_key: the key, spelled as the table will spell it.
        removed: columns of the table that the source does not return; each one is padded.
        ignored: columns of the source that the policy leaves out of the table.
        refusals: if there is one, nothing may be written.
    """

    changes: tuple[AddColumn, ...] = ()
    columns: tuple[ProjectedColumn, ...] = ()
    unique_key: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    ignored: tuple[str, ...] = ()
    refusals: tuple[Refusal, ...] = ()

    @property
    def added(self) -> tuple[str, ...]:
        """Names of the added columns, in source order."""
        return tuple(change.name for change in self.changes)

    @property
    def refreshed(self) -> tuple[str, ...]:
        """Names of all columns of the table after the evolution: old + new, nothing subtracted."""
        return tuple(column.name for column in self.columns)


def plan_evolution(target: Schema, source: Schema, policy: Policy) -> EvolutionPlan:
    """Decide how the batch with the schema ``source`` is loaded into the table with the schema ``target``.

    Args:
        target: the table's current schema.
        source: the staged batch's schema.
        policy: what the model's configuration allows.

    Returns:
        The plan. One with refusals holds no changes and no columns.
    """
    refusals = list(check_names(target, source, policy))
    if not refusals:
        # The rest looks columns up by folded name, which is safe only once names are known to be unique.
        plan = _plan_columns(target, source, policy)
        if not plan.refusals:
            return plan
        refusals.extend(plan.refusals)
    return EvolutionPlan(refusals=tuple(refusals))


def check_source_names(names: Sequence[str], unique_key: Sequence[str] = ()) -> tuple[Refusal, ...]:
    """Return what is wrong with the names that a model returns, whatever its table looks like."""
    if not names:
        return (
            Refusal(
                columns=(),
                reason="The model returns no columns.",
                remedy="A table cannot be loaded from it: check what the model selects from.",
            ),
        )
    refusals = [_ambiguous("The model returns", group) for group in collisions(names)]
    refusals.extend(_reserved(name) for name in names if is_reserved(name))
    refusals.extend(_check_unique_key(names, unique_key))
    return tuple(refusals)


def check_names(target: Schema, source: Schema, policy: Policy) -> Iterable[Refusal]:
    """Yield what is wrong with the names of the table and of the batch, alone and together."""
    source_names = [f.name for f in source.fields]
    yield from (_ambiguous("The table has", g) for g in collisions(f.name for f in target.fields))
    yield from check_source_names(source_names, policy.unique_key)
    if not policy.add_columns:
        in_target = {fold(f.name) for f in target.fields}
        missing = tuple(key for key in policy.unique_key if fold(key) not in in_target)
        if missing:
            yield Refusal(
                columns=missing,
                reason=f"The unique_key {_listed(missing)} is not a column of the table.",
                remedy="Set `on_schema_change: append_new_columns_preserve` to add it, or change "
                "the `unique_key`.",
            )


def _plan_columns(target: Schema, source: Schema, policy: Policy) -> EvolutionPlan:
    source_fields = {fold(f.name): f for f in source.fields}
    target_names = {fold(f.name): f.name for f in target.fields}
    refusals: list[Refusal] = []
    columns: list[ProjectedColumn] = []
    removed: list[str] = []
    for old in target.fields:
        new = source_fields.get(fold(old.name))
        if new is None:
            removed.append(old.name)
        projected = _project(old, new, policy)
        if isinstance(projected, Refusal):
            refusals.append(projected)
        else:
            columns.append(projected)

    added: list[AddColumn] = []
    ignored: list[str] = []
    paths = _nested_paths(target)
    for new in source.fields:
        if fold(new.name) in target_names:
            continue
        if not policy.add_columns:
            ignored.append(new.name)
        elif fold(new.name) in paths:
            refusals.append(_same_path(new.name))
        else:
            added.append(AddColumn(new.name, new.field_type, policy.docs.get(fold(new.name)) or None))
            columns.append(ProjectedColumn(new.name, Keep(new.name)))
    spelling = {**{fold(change.name): change.name for change in added}, **target_names}
    return EvolutionPlan(
        changes=tuple(added),
        columns=tuple(columns),
        unique_key=tuple(spelling[fold(key)] for key in policy.unique_key),
        removed=tuple(removed),
        ignored=tuple(ignored),
        refusals=tuple(refusals),
    )


def _project(old: NestedField, new: NestedField | None, policy: Policy) -> ProjectedColumn | Refusal:
    if new is None:
        if old.required:
            return Refusal(
                columns=(old.name,),
                types=(type_text(old.field_type),),
                reason=f"Column {quote(old.name)} is NOT NULL in the table, and the model no longer "
                "returns it, so it cannot be padded with NULL.",
                remedy="Return it from the model again, or make it optional "
                f"(ALTER TABLE ... ALTER COLUMN {quote(old.name)} DROP NOT NULL).",
            )
        try:
            return ProjectedColumn(old.name, Pad(spark_type(old.field_type)))
        except NoSparkType:
            return Refusal(
                columns=(old.name,),
                types=(str(old.field_type),),
                reason=f"Column {quote(old.name)} of the table has the Iceberg type {old.field_type}, "
                "which Spark cannot write.",
                remedy="Load this table with an engine that can.",
            )
    if old.required and fold(new.name) not in policy.columns_without_null:
        return Refusal(
            columns=(old.name,),
            types=(type_text(old.field_type),),
            reason=f"Column {quote(old.name)} is NOT NULL in the table, and the batch holds a NULL in it.",
            remedy="Keep NULLs out of it in the model, or make it optional "
            f"(ALTER TABLE ... ALTER COLUMN {quote(old.name)} DROP NOT NULL).",
        )
    if is_same(new.field_type, old.field_type):
        return ProjectedColumn(old.name, Keep(new.name))
    if is_safe_upcast(new.field_type, old.field_type):
        return ProjectedColumn(old.name, Cast(new.name, spark_type(old.field_type)))
    return Refusal(
        columns=(old.name,),
        types=(type_text(old.field_type), type_text(new.field_type)),
        reason=f"Column {quote(old.name)} is {type_text(old.field_type)} in the table, and the model "
        f"returns {type_text(new.field_type)}.",
        remedy=f"Cast it to {type_text(old.field_type)} in the model, or return it under a new name, "
        "fill that for old rows, and retire the old name.",
    )


def _check_unique_key(names: Sequence[str], unique_key: Sequence[str]) -> Iterable[Refusal]:
    returned = {fold(name) for name in names}
    missing = tuple(key for key in unique_key if fold(key) not in returned)
    if missing:
        yield Refusal(
            columns=missing,
            reason=f"The unique_key {_listed(missing)} is not produced by the model, which returns "
            f"{_listed(names)}.",
            remedy="Return it from the model, or change the `unique_key`.",
        )


def _nested_paths(schema: Schema) -> frozenset[str]:
    """Return the folded dotted path of each nested field: Iceberg looks fields up by it."""

    def walk(prefix: str, value: object) -> Iterable[str]:
        children: Iterable[NestedField] = ()
        if isinstance(value, StructType):
            children = value.fields
        elif isinstance(value, ListType):
            children = (value.element_field,)
        elif isinstance(value, MapType):
            children = (value.key_field, value.value_field)
        for child in children:
            path = f"{prefix}.{child.name}"
            yield fold(path)
            yield from walk(path, child.field_type)

    return frozenset(path for f in schema.fields for path in walk(f.name, f.field_type))


def _ambiguous(where: str, group: tuple[str, ...]) -> Refusal:
    return Refusal(
        columns=group,
        reason=f"{where} columns whose names differ by case only: {_listed(group)}. Spark cannot tell "
        "them apart.",
        remedy="Rename all but one of them.",
    )


def _reserved(name: str) -> Refusal:
    return Refusal(
        columns=(name,),
        reason=f"The model returns the column {quote(name)}, a name that Iceberg keeps for its metadata "
        "columns: a table that has it can be neither read nor changed by Spark.",
        remedy="Give the column another name in the model.",
    )


def _same_path(name: str) -> Refusal:
    return Refusal(
        columns=(name,),
        reason=f"The model returns the new column {quote(name)}, but the table has a nested field with "
        "that path, and Iceberg cannot hold both.",
        remedy="Give the column another name in the model.",
    )


def _listed(names: Iterable[str]) -> str:
    return ", ".join(quote(name) for name in names)
