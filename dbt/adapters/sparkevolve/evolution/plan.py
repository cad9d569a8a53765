"""The one place that decides what happens to a table whose model returns other columns than it holds."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from pyiceberg.schema import Schema
from pyiceberg.types import (
    BinaryType,
    FixedType,
    IcebergType,
    ListType,
    MapType,
    NestedField,
    StringType,
    StructType,
    UUIDType,
)

from dbt.adapters.sparkevolve.evolution import refusals
from dbt.adapters.sparkevolve.evolution.changes import (
    AddColumn,
    AddField,
    Change,
    RelaxNotNull,
    RenameField,
    SetDefault,
    SetDoc,
    WidenType,
)
from dbt.adapters.sparkevolve.evolution.column_defaults import ColumnDefaults
from dbt.adapters.sparkevolve.evolution.conversions import lossless
from dbt.adapters.sparkevolve.evolution.defaults import DefaultValue
from dbt.adapters.sparkevolve.evolution.names import (
    Path,
    collisions,
    config_name,
    config_path,
    fold,
    free_name,
    is_reserved,
    path_text,
    quote,
    unquote,
)
from dbt.adapters.sparkevolve.evolution.paths import FieldPaths
from dbt.adapters.sparkevolve.evolution.policy import Condition, Policy
from dbt.adapters.sparkevolve.evolution.projection import (
    AsFixed,
    AsUuid,
    Cast,
    Keep,
    Pad,
    ProjectedColumn,
    Projection,
    RebuildList,
    RebuildMap,
    RebuildStruct,
    StructMember,
)
from dbt.adapters.sparkevolve.evolution.refusals import Refusal, Switch
from dbt.adapters.sparkevolve.evolution.renames import not_found, resolve_renames, steps_of
from dbt.adapters.sparkevolve.evolution.restore import restore_command
from dbt.adapters.sparkevolve.evolution.types import (
    NoSparkType,
    children,
    fields_within,
    has_map,
    has_variant,
    is_safe_upcast,
    is_same,
    is_widening,
    named_by_sql,
    spark_type,
    type_text,
)

Build = Callable[[], Projection]
Refuse = Callable[[Path, IcebergType, Switch], Refusal]


@dataclass(frozen=True)
class EvolutionPlan:
    """Everything that one run does to the columns of one table.

    Attributes:
        changes: the changes of the schema, all to be made in one commit.
        columns: the refreshed columns, in table order, each with its projection.
        unique_key: the key, spelled as the table will spell it.
        removed: paths of columns and fields that the source does not return; each one is padded.
        padded_inside: those of ``removed`` that are inside a list or a map: elements and values have no
            identity, so that no previous value of theirs can be kept.
        padded_with: what those of ``removed`` get that are not padded with NULL.
        ignored: paths of what the policy leaves out of the table.
        warnings: what the user should know though it stops nothing.
        reminders: the same, of what is so in each run until the model or the table is changed.
        notes: those of the reminders that are to be said once, until they change.
        refusals: if there is one, nothing may be written.
        beside: of a plan with refusals, what is known of all else: a preview shows it, and no run does it.
    """

    changes: tuple[Change, ...] = ()
    columns: tuple[ProjectedColumn, ...] = ()
    unique_key: tuple[str, ...] = ()
    removed: tuple[Path, ...] = ()
    padded_inside: tuple[Path, ...] = ()
    padded_with: Mapping[Path, DefaultValue] = field(default_factory=dict)
    ignored: tuple[Path, ...] = ()
    warnings: tuple[str, ...] = ()
    reminders: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    refusals: tuple[Refusal, ...] = ()
    beside: "EvolutionPlan | None" = field(default=None, compare=False, repr=False)

    @property
    def added(self) -> tuple[str, ...]:
        """Names of the added top-level columns, in source order."""
        return tuple(change.path[0] for change in self.changes if isinstance(change, AddColumn))

    @property
    def replaced(self) -> dict[Path, RenameField]:
        """The renames whose old name is that of a new column or field, by its path."""
        added = {
            tuple(map(fold, c.path)): c.path for c in self.changes if isinstance(c, AddColumn | AddField)
        }
        renames = (c for c in self.changes if isinstance(c, RenameField))
        places = ((added.get(tuple(map(fold, c.path))), c) for c in renames)
        return {path: c for path, c in places if path is not None}

    @property
    def refreshed(self) -> tuple[str, ...]:
        """Names of all columns of the table after the evolution: old + new, nothing subtracted."""
        return tuple(column.name for column in self.columns)


def plan_evolution(target: Schema, source: Schema, policy: Policy) -> EvolutionPlan:
    """Decide how the batch with the schema ``source`` is loaded into the table with the schema ``target``.

    Args:
        target: the table's current schema.
        source: the staged batch's schema.
        policy: what the model's configuration and the table's state allow.

    Returns:
        The plan. One with refusals holds no changes and no columns, but for what is ``beside`` them.
    """
    found = tuple(_check_names(target, source, policy))
    if found:
        # The rest looks names up by their folded form, which is safe only once they are known to be unique.
        return EvolutionPlan(refusals=found)
    renames, found = resolve_renames(
        target, source, policy.renames, policy.facts.past, widens=policy.type_widening
    )
    if found:
        return EvolutionPlan(refusals=found)
    planner = _Planner(target, source, policy, renames, ColumnDefaults(policy))
    columns = planner.columns()
    planner.warn_of_unknown_renames()
    planner.defaults.finish((column.name for column in columns), planner.ignored)
    planner.warn_of_taken_names()
    spelling = {fold(column.name): column.name for column in columns}
    missing = tuple(key for key in policy.unique_key if fold(key) not in spelling)
    if missing:
        planner.refusals.append(refusals.key_not_in_table(missing, policy.key_setting))
    wanted = {fold(key) for key in policy.unique_key}
    planner.refusals.extend(
        refusals.key_not_comparable((f.name,), f.field_type, policy.key_setting)
        for f in source.fields
        if fold(f.name) in wanted and (has_map(f.field_type) or has_variant(f.field_type))
    )
    plan = EvolutionPlan(
        changes=tuple(planner.changes),
        columns=tuple(columns),
        unique_key=tuple(spelling[fold(key)] for key in policy.unique_key if fold(key) in spelling),
        removed=tuple(planner.removed),
        padded_inside=tuple(planner.padded_inside),
        padded_with=planner.padded_with,
        ignored=tuple(planner.ignored),
        warnings=(*planner.warnings, *planner.defaults.warnings),
        reminders=tuple(planner.defaults.reminders),
        notes=tuple(planner.defaults.notes),
    )
    if planner.refusals:
        return EvolutionPlan(refusals=tuple(planner.refusals), beside=plan)
    return plan


def move_setting(path: Path, target: Schema, source: Schema, policy: Policy) -> str:
    """Return the setting that retires a field of a table, as a text goes on with it; empty if none does."""
    return _Planner(target, source, policy, {}, ColumnDefaults(policy)).move(path)


def check_source_names(
    names: Sequence[str], unique_key: Sequence[str] = (), key_setting: str = "unique_key"
) -> tuple[Refusal, ...]:
    """Return what is wrong with the names that a model returns, whatever its table looks like."""
    if not names:
        return (refusals.no_columns(),)
    found = [refusals.ambiguous("The model returns", group) for group in collisions(names)]
    found.extend(refusals.empty_name((name,)) for name in names if not name)
    found.extend(refusals.reserved(name) for name in names if is_reserved(name))
    returned = {fold(name) for name in names}
    missing = tuple(key for key in unique_key if fold(key) not in returned)
    if missing:
        found.append(refusals.key_not_produced(missing, names, key_setting))
    return tuple(found)


def _check_names(target: Schema, source: Schema, policy: Policy) -> Iterable[Refusal]:
    for where, schema in (("The table has", target), ("The model returns", source)):
        for path, struct in _structs(schema):
            # Top-level names of the source are checked below, together with what else can be wrong there.
            if path or schema is target:
                groups = collisions(f.name for f in struct.fields)
                inside = f"{where}, in {path_text(path)}," if path else where
                yield from (refusals.ambiguous(inside, group) for group in groups)
    yield from check_source_names([f.name for f in source.fields], policy.unique_key, policy.key_setting)


@dataclass
class _Planner:
    """Walks the target beside the source, and collects what has to be done."""

    target: Schema
    source: Schema
    policy: Policy
    renames: dict[int, str]
    defaults: ColumnDefaults
    changes: list[Change] = field(default_factory=list)
    removed: list[Path] = field(default_factory=list)
    padded_inside: list[Path] = field(default_factory=list)
    padded_with: dict[Path, DefaultValue] = field(default_factory=dict)
    ignored: list[Path] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    refusals: list[Refusal] = field(default_factory=list)
    _new_names: dict[Path, str] = field(default_factory=dict)
    _collections: int = 0

    @cached_property
    def _paths(self) -> FieldPaths:
        return FieldPaths(self.target.fields, self.policy.facts.partition_names, self.renames)

    def columns(self) -> list[ProjectedColumn]:
        """Plan all columns; return the refreshed list."""
        members = self._members((), self.target.fields, self.source.fields)
        return [ProjectedColumn(m.name, m.source, m.projection) for m in members]

    def _members(
        self, parent: Path, old_fields: Sequence[NestedField], new_fields: Sequence[NestedField]
    ) -> list[StructMember]:
        """Plan the fields of a struct or the columns of the table: old ones in place, then new ones."""
        returned = {fold(f.name): f for f in new_fields}
        known: set[str] = set()
        members: list[StructMember] = []
        replaced: dict[str, tuple[NestedField, str]] = {}
        for old in old_fields:
            path = (*parent, old.name)
            name = self.renames.get(old.field_id, old.name)
            if name != old.name:
                self._rename(path, old, name)
                replaced[fold(old.name)] = (old, name)
            known.add(fold(name))
            new = returned.get(fold(name))
            projection = self._pad(path, name, old) if new is None else self._align(path, old, new)
            members.append(StructMember(name, new.name if new is not None else None, projection))
            if not parent:
                self._describe(path, name, old)
                self.changes.extend(self.defaults.of_old(name, old, self._type_after(path, old)))
        for new in new_fields:
            if fold(new.name) in known:
                continue
            if fold(new.name) in replaced:
                members.extend(self._replace(parent, *replaced[fold(new.name)], new))
            else:
                members.extend(self._add(parent, new))
        self._check_together(parent, [member.name for member in members])
        return members

    def _check_together(self, parent: Path, names: Sequence[str]) -> None:
        """Refuse names that the table would have after all renames and additions, and could not live with."""
        inside = f", in {path_text(parent)}," if parent else ""
        where = f"With the model's, the table would have{inside}"
        self.refusals.extend(refusals.ambiguous(where, group) for group in collisions(names))
        if not parent:
            renamed = set(self.renames.values())
            self.refusals.extend(refusals.reserved(n) for n in names if n in renamed and is_reserved(n))

    def _add(self, parent: Path, new: NestedField) -> Iterable[StructMember]:
        path = (*parent, new.name)
        if not self.policy.add_columns:
            self.ignored.append(path)
            return
        # PyIceberg asks for the path before the renames, and the table will have the one after them.
        held_by = self._paths.add(parent, new) | self._paths.add(self._renamed(parent), new)
        if held_by:
            self.refusals.append(refusals.path_taken(path, held_by))
        elif parent:
            self.changes.append(AddField(path, new.field_type))
            self._warn_of_former(path)
        else:
            self._add_column(new)
            self._warn_of_former(path)
        yield StructMember(new.name, new.name, Keep())

    def _replace(
        self, parent: Path, old: NestedField, old_name: str, new: NestedField
    ) -> Iterable[StructMember]:
        """Plan a new field under the name that an old one of another type leaves to it."""
        path = (*parent, new.name)
        is_key = fold(path[0]) in map(fold, self.policy.unique_key)
        default = self.defaults.of_older_rows(new.name, new.field_type) if not parent else None
        condition = self._needed_by(parent, new.name, old_name, has_default=default is not None)
        types = (old.field_type, new.field_type)
        ids = {old.field_id, *(f.field_id for _, f in fields_within(old.field_type))}
        held_by = self._paths.add(self._renamed(parent), new, after_renames=True)
        if not self.policy.add_columns:
            self.refusals.append(refusals.replaced_not_added(path, old_name, *types))
        elif is_key and not self.policy.replaces_all_rows:
            setting = self.policy.key_setting
            self.refusals.append(refusals.replaced_key(path, old_name, *types, setting, default))
        elif condition is not None and not self.policy.replaces_all_rows:
            if condition.finds_versions:
                refuse = refusals.replaced_version_key
            elif self._is_in_structs(path):
                refuse = refusals.replaced_condition
            else:
                refuse = refusals.replaced_condition_inside
            self.refusals.append(refuse(path, old_name, *types, condition.text, default))
        elif self.policy.overwrites_partitions and ids & self.policy.facts.partition_sources:
            self.refusals.append(refusals.replaced_partition(path, old_name, *types))
        elif held_by:
            self.refusals.append(refusals.path_taken(path, held_by))
        elif parent:
            self.changes.append(AddField(path, new.field_type))
        else:
            self._add_column(new)
        yield StructMember(new.name, new.name, Keep())

    def _needed_by(
        self, parent: Path, name: str, old_name: str, *, has_default: bool = False
    ) -> Condition | None:
        """Return what may not find some rows any more if a field were replaced."""
        path = named_by_sql(self.target.as_struct(), (*parent, name))
        is_null = len(path) == len(parent) + 1 and not has_default
        needing = (c for c in self.policy.conditions if c.needs(path, fold(old_name), is_null=is_null))
        return next(needing, None)

    def _is_in_structs(self, path: Path) -> bool:
        """Tell whether a path leads through structs alone, so that an expression can name it."""
        return all(path[:at] in self._in_structs for at in range(1, len(path)))

    def _add_column(self, new: NestedField) -> None:
        doc = (self.policy.docs or {}).get(fold(new.name)) or None
        default = self.defaults.of_new(new.name, new.field_type)
        if default is None or self.policy.facts.fills_older_rows:
            self.changes.append(AddColumn((new.name,), new.field_type, doc, default))
        else:
            self.changes.append(AddColumn((new.name,), new.field_type, doc))
            self.changes.append(SetDefault((new.name,), default))

    def _rename(self, path: Path, old: NestedField, name: str) -> None:
        self.changes.append(RenameField(path, name))
        self._new_names[path] = name
        held_by = self._paths.rename(self._renamed(path[:-1]), old, name)
        if held_by:
            self.refusals.append(refusals.rename_path_taken(path, name, held_by))

    def _renamed(self, path: Path) -> Path:
        """Return the path that a field will have."""
        return tuple(self._new_names.get(path[: i + 1], name) for i, name in enumerate(path))

    def _type_after(self, path: Path, old: NestedField) -> IcebergType:
        """Return the type that a column will have, if it is no struct, list or map."""
        widened = (c.new for c in self.changes if isinstance(c, WidenType) and c.path == path)
        return next(widened, old.field_type)

    def _pad(self, path: Path, name: str, old: NestedField) -> Projection:
        self.removed.append(path)
        if self._collections:
            self.padded_inside.append(path)
        default = self.defaults.of_padded(path, name, old)
        self._leave_partition(path, old, "NULL" if default is None else f"of {default}")
        if default is not None:
            self.padded_with[path] = default
        elif old.required:
            self._relax(path, old, refusals.removed_not_null)
        try:
            type_ = spark_type(old.field_type)
            return Pad(type_, None if default is None else default.sql)
        except NoSparkType:
            self.refusals.append(refusals.no_spark_type(path, old.field_type))
            return Pad(type_text(old.field_type))

    def _leave_partition(self, path: Path, old: NestedField, value: str) -> None:
        """Warn of, or refuse, that all rows have the same value in what the table is partitioned by."""
        for below, member in (((), old), *fields_within(old.field_type)):
            if member.field_id not in self.policy.facts.partition_sources:
                continue
            if self.policy.overwrites_partitions:
                self.refusals.append(refusals.removed_partition((*path, *below), value))
            else:
                self.warnings.append(
                    f"The table is partitioned by {path_text((*path, *below))}, which the model no longer "
                    f"returns: the rows of this run go to the partition {value}."
                )

    def _relax(self, path: Path, old: NestedField, refuse: Refuse) -> None:
        identifier = self._identifier_in(path, old)
        if identifier is not None:
            self.refusals.append(refusals.identifier_field(*identifier))
        elif self.policy.relax_not_null:
            self.changes.append(RelaxNotNull(path))
        else:
            self.refusals.append(refuse(path, old.field_type, self._switch("relax_not_null")))

    def _identifier_in(self, path: Path, f: NestedField) -> tuple[Path, IcebergType] | None:
        """Return path and type of the identifier field that a field is, or has in it: then it is required."""
        if f.field_id in self.target.identifier_field_ids:
            return path, f.field_type
        found = (self._identifier_in((*path, child.name), child) for child in children(f.field_type))
        return next(filter(None, found), None)

    def _is_filled(self, path: Path) -> bool:
        return tuple(map(fold, path)) in self.policy.filled

    def _switch(self, setting: str) -> Switch:
        return Switch(setting, setting in self.policy.frozen)

    def _align(self, path: Path, old: NestedField, new: NestedField) -> Projection:
        """Plan a column or field that both sides have."""
        may_be_null = (
            fold(new.name) not in self.policy.columns_without_null
            if len(path) == 1
            else (not self._is_filled(path))
        )
        if old.required and may_be_null:
            self._relax(path, old, refusals.null_in_not_null)
        if len(path) == 1 and fold(old.name) in self.policy.keep_table_type:
            # Spark would cast as it writes, unless ``spark.sql.storeAssignmentPolicy`` is STRICT.
            return Keep() if new.field_type == old.field_type else Cast(spark_type(old.field_type))
        return self._convert(path, old.field_type, new.field_type)

    def _convert(self, path: Path, old: IcebergType, new: IcebergType) -> Projection:
        """Plan how a value of the type ``new`` gets into a place of the type ``old``."""
        if is_same(new, old) and not self._needs_descent(old):
            return Keep()
        if isinstance(old, StructType) and isinstance(new, StructType):
            return self._nested(path, old, new, lambda: self._struct(path, old, new))
        if isinstance(old, ListType) and isinstance(new, ListType):
            return self._nested(path, old, new, lambda: self._list(path, old, new))
        if isinstance(old, MapType) and isinstance(new, MapType):
            return self._nested(path, old, new, lambda: self._map(path, old, new))
        if is_safe_upcast(new, old):
            return Cast(spark_type(old))
        # Spark has string for uuid and binary for fixed.
        if isinstance(old, UUIDType) and isinstance(new, StringType):
            return AsUuid(path_text(path))
        if isinstance(old, FixedType) and isinstance(new, BinaryType):
            return AsFixed(path_text(path), len(old))
        if not is_widening(old, new):
            is_key = fold(path[0]) in map(fold, self.policy.unique_key)
            setting = self.policy.key_setting if is_key else ""
            move = self.move(path)
            aside = self.policy.may_set_aside and lossless("v", new, old) is not None
            self.refusals.append(
                refusals.type_differs(path, old, new, key_setting=setting, move=move, may_set_aside=aside)
            )
        elif self.policy.type_widening:
            self.changes.append(WidenType(path, old, new))
        else:
            self.refusals.append(refusals.widening_off(path, old, new, self._switch("type_widening")))
        return Keep()

    def move(self, path: Path) -> str:
        """Return the setting that retires a field and gives its name to the new type; empty if there is none.

        It is not for what finds rows, nor for what the table is partitioned by.
        """
        if fold(path[0]) in map(fold, self.policy.unique_key):
            return ""
        return self._move(path)

    def _move(self, path: Path) -> str:
        while path[-1] in ("element", "key", "value") and len(path) > 1 and path not in self._in_structs:
            path = path[:-1]
        has_default = len(path) == 1 and self.defaults.may_fill(path[0])
        if self._is_partitioned_by(path) or self._needed_by(path[:-1], path[-1], "", has_default=has_default):
            return ""
        beside = _names_beside(self.target, path)
        # What the model returns under such a name would be taken for the values of the old column.
        other = free_name(f"{path[-1]}_old", [*beside, *_names_beside(self.source, path)])
        setting = f"`column_renames: {{{config_path(path)}: {config_name(other)}}}`"
        done = self._renamed_before(path, beside)
        if not done:
            return setting
        return f"{setting} in the place of `{config_path(path)}: {config_name(done)}`, which was done before"

    def _is_partitioned_by(self, path: Path) -> bool:
        """Tell whether a partition field is of a field, or has its name: then no other one can be called so.

        Or its rows would go to other partitions, from which an overwrite takes others.
        """
        facts = self.policy.facts
        within = fields_within(StructType(*self.target.fields))
        ids = {f.field_id for below, f in within if below[: len(path)] == path}
        return bool(ids & facts.partition_sources) or fold(".".join(path)) in facts.partition_names

    def _renamed_before(self, path: Path, beside: Iterable[str]) -> str:
        """Return the name that `column_renames` has given to an earlier field of a path; empty for none."""
        levels = [fold(name) for at, name in enumerate(path) if path[: at + 1] in self._in_structs]
        others = set(map(fold, beside)) - {fold(path[-1])}
        for old, new in self.policy.renames.items():
            name = unquote(str(new))
            steps = [fold(text) for text, _ in steps_of(str(old))]
            if steps in (levels, list(map(fold, path))) and fold(name) in others:
                return name
        return ""

    @cached_property
    def _in_structs(self) -> frozenset[Path]:
        """The paths of the fields of structs: what is in a list or a map directly has no name of its own."""
        structs = _structs(self.target)
        return frozenset((*path, f.name) for path, struct in structs for f in struct.fields)

    def _nested(self, path: Path, old: IcebergType, new: IcebergType, build: Build) -> Projection:
        """Plan inside a struct, list or map, and take that back if nested evolution is off and was needed."""
        marks = [(found, len(found)) for found in self._findings()]
        projection = build()
        if not self.policy.nested_evolution and any(len(found) > mark for found, mark in marks):
            for found, mark in marks:
                del found[mark:]
            self.refusals.append(refusals.nested_off(path, old, new, self._switch("nested_evolution")))
        return projection

    def _findings(self) -> tuple[list[Any], ...]:
        return self.changes, self.removed, self.padded_inside, self.ignored, self.refusals

    def _struct(self, path: Path, old: StructType, new: StructType) -> Projection:
        members = self._members(path, old.fields, new.fields)
        in_place = [(f.name, Keep()) for f in new.fields] == [(m.source, m.projection) for m in members]
        return Keep() if in_place else RebuildStruct(tuple(members))

    def _list(self, path: Path, old: ListType, new: ListType) -> Projection:
        inside = (*path, "element")
        if old.element_required and not self._is_filled(inside):
            self._relax(inside, old.element_field, refusals.null_in_not_null)
        element = self._convert_inside(inside, old.element_type, new.element_type)
        return element if element == Keep() else RebuildList(element)

    def _map(self, path: Path, old: MapType, new: MapType) -> Projection:
        if not is_same(new.key_type, old.key_type):
            self.refusals.append(refusals.map_key_differs(path, old, new, self._move(path)))
        inside = (*path, "value")
        if old.value_required and not self._is_filled(inside):
            self._relax(inside, old.value_field, refusals.null_in_not_null)
        value = self._convert_inside(inside, old.value_type, new.value_type)
        return value if value == Keep() else RebuildMap(value)

    def _convert_inside(self, path: Path, old: IcebergType, new: IcebergType) -> Projection:
        """Plan how an element of a list, or a value of a map, gets into its place."""
        self._collections += 1
        projection = self._convert(path, old, new)
        self._collections -= 1
        return projection

    def _describe(self, path: Path, name: str, old: NestedField) -> None:
        doc = (self.policy.docs or {}).get(fold(name))
        if doc is not None and doc != (old.doc or ""):
            self.changes.append(SetDoc((path[0],), doc))

    def _warn_of_former(self, path: Path) -> None:
        former = self.policy.facts.former.get(tuple(map(fold, path)))
        if former is None:
            return
        if former.renamed_to:
            end, values = f"renamed it to {former.renamed_to}", f"its old values stay in {former.renamed_to}"
        else:
            end, values = "dropped it", "its old values do not come back"
            if self.policy.model:
                values += f". {self._way_back(path, former.name, former.field_id)}"
        self.warnings.append(
            f"Column {path_text(path)} was in the table before, as field {former.field_id} of type "
            f"{former.type}, until schema {former.dropped_by_schema_id} {end} (schema "
            f"{former.last_schema_id} had it last). It is added as a new column: {values}."
        )

    def warn_of_taken_names(self) -> None:
        """Say which names are other fields' since a run has looked, as other writers have made it."""
        for taken in self.policy.facts.taken_names:
            path, time = path_text(taken.path), f" ({taken.since})" if taken.since else ""
            old = f"field {taken.old_field_id} of type {taken.old_type}"
            done = f"renamed that to {taken.old_is_called}" if taken.old_is_called else "dropped that"
            done += " and " + (
                f"given its name to what was {taken.was_called}"
                if taken.was_called
                else "added another one of its name"
            )
            text = (
                f"Column {path} is field {taken.field_id} since schema {taken.since_schema_id}{time}, and "
                f"was {old} before: another writer has {done}. Rows of before "
            )
            if taken.old_is_called:
                text += f"have their values in {taken.old_is_called}."
            else:
                text += "have their values under the old id only, where nobody reads them."
                if self.policy.model:
                    text += f" {self._way_back(taken.path, taken.path[-1], taken.old_field_id)}."
            self.warnings.append(text)

    def _way_back(self, path: Path, name: str, field_id: int) -> str:
        """Say how a dropped field is restored once its name is that of a new one."""
        other = free_name(f"{path[-1]}_new", _names_beside(self.target, path))
        command = restore_command(self.policy.model, (*path[:-1], name), field_id)
        return (
            "To have them: give the new one another name with `column_renames: "
            f"{{{config_path(path)}: {config_name(other)}}}`, then `{command}`"
        )

    def warn_of_unknown_renames(self) -> None:
        """Warn of renames that are of nothing, so that the new name becomes a column beside the old one."""
        added = [c.path for c in self.changes if isinstance(c, AddColumn | AddField)]
        for old, path in not_found(self.target, self.policy.renames, added):
            self.warnings.append(
                f"`column_renames` wants {old} to become {quote(path[-1])}, and the table has no {old}: "
                f"{path_text(path)} is added as a new column, without the values of another."
            )

    def _needs_descent(self, type_: IcebergType) -> bool:
        """Tell whether a type that both sides share has something inside that needs a change all the same."""
        return any(
            child.field_id in self.renames or child.required or self._needs_descent(child.field_type)
            for child in children(type_)
            # Keys are always required, by the spec.
            if not (isinstance(type_, MapType) and child.field_id == type_.key_id)
        )


def _structs(schema: Schema) -> Iterable[tuple[Path, StructType]]:
    """Yield the schema and each struct in it, with its path, outer ones first."""
    yield (), schema.as_struct()
    for path, f in fields_within(schema.as_struct()):
        if isinstance(f.field_type, StructType):
            yield path, f.field_type


def _names_beside(schema: Schema, path: Path) -> list[str]:
    """Return the names of the columns, or of the fields of the struct that a path leads into."""
    parent = tuple(map(fold, path[:-1]))
    return [
        where[-1] for where, _ in fields_within(schema.as_struct()) if tuple(map(fold, where[:-1])) == parent
    ]
