"""A field that somebody dropped, put back into the schema under its old id: whether it can be, and how."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from pyiceberg.schema import Schema
from pyiceberg.types import IcebergType, ListType, MapType, NestedField, StructType

from dbt.adapters.sparkevolve.evolution import restore_refusals as refusals
from dbt.adapters.sparkevolve.evolution.names import (
    Path,
    collisions,
    config_name,
    config_path,
    dotted_levels,
    fold,
    is_reserved,
    path_text,
)
from dbt.adapters.sparkevolve.evolution.paths import FieldPaths
from dbt.adapters.sparkevolve.evolution.refusals import Refusal
from dbt.adapters.sparkevolve.evolution.types import (
    children,
    fields_within,
    has_spark_type,
    is_widening,
    type_text,
)


@dataclass(frozen=True)
class Dropped:
    """A column, or a field in one, that a table has had and has not any more; what encloses it is there.

    Attributes:
        parent: the path of what encloses it today; empty for a column.
        short_parent: that path without what a list and a map have around a struct.
        parent_id: the id of that; None for a column.
        field: what the last schema had that had it, with the widest type that it has ever had.
        names: all names that it has had, the latest first.
        first_schema_id: the first schema that had it.
        last_schema_id: the last one.
        dropped_by_schema_id: the first one after that, or the current one.
    """

    parent: Path
    short_parent: Path
    parent_id: int | None
    field: NestedField
    names: tuple[str, ...]
    first_schema_id: int
    last_schema_id: int
    dropped_by_schema_id: int

    @property
    def path(self) -> Path:
        """Where it was last."""
        return (*self.parent, self.field.name)

    @property
    def schemas(self) -> str:
        """The schemas that had it: ``schema 0 to 3``, or ``schema 0``."""
        last = "" if self.last_schema_id == self.first_schema_id else f" to {self.last_schema_id}"
        return f"schema {self.first_schema_id}{last}"

    def __str__(self) -> str:
        return (
            f"{path_text(self.path)}, field {self.field.field_id} of type {type_text(self.field.field_type)} "
            f"(in {self.schemas}, dropped by schema {self.dropped_by_schema_id})"
        )


@dataclass(frozen=True)
class RestoreField:
    """Put a field back that was dropped; a change that no plan of a batch has.

    Attributes:
        path: where it will be, under the name that was asked for.
        field: what it will be.
        dropped: what it was.
        schema: the whole schema with it in its place.
    """

    path: Path
    field: NestedField
    dropped: Dropped
    schema: Schema
    verb = "restored"

    def __str__(self) -> str:
        kind = "field" if len(self.path) > 1 else "column"
        type_ = type_text(self.field.field_type)
        return f"restore {kind} {path_text(self.path)} {type_} as field {self.field.field_id}"


def restore_command(model: str, path: Path, field_id: int) -> str:
    """Return the command that puts a field back, as a user would type it."""
    arguments = f"{{model: {config_name(model)}, column: {config_path(path)}, field_id: {field_id}}}"
    quoted = arguments.replace("'", "'\\''")
    return f"dbt run-operation restore_column --args '{quoted}'"


@dataclass(frozen=True)
class _Seen:
    """A field in one schema: its path, that path without what a list and a map have around a struct."""

    path: Path
    short: Path
    field: NestedField
    parent_id: int | None


def plan_restore(
    schemas: Iterable[Schema],
    current: Schema,
    column: str,
    field_id: int | None = None,
    *,
    last_column_id: int = 0,
    partition_names: Mapping[str, int | None] | None = None,
) -> RestoreField | Refusal:
    """Decide how a field is put back, or why it cannot be.

    Args:
        schemas: all that the table still knows.
        current: the one that it has.
        column: the name of a column, or the dotted path of a field, as a user wrote it.
        field_id: the id of the field; None if there is only one that it can be.
        last_column_id: the highest id that the table has given to a field.
        partition_names: see ``TableFacts``.
    """
    ordered = sorted(schemas, key=lambda schema: schema.schema_id)
    steps = dotted_levels(column) or tuple((part, False) for part in column.split("."))
    dropped = dropped_fields(ordered, current)
    there = next((s for s in _seen(current) if _is_named(steps, s)), None)
    named = [(d, name) for d in dropped for name in d.names if _is_named(steps, _renamed(d, name))]
    if there is None or field_id is not None:
        named = named or _formerly(ordered, dropped, steps)
    if field_id is None:
        return _by_name(ordered, current, column, steps, dropped, named, there, partition_names or {})
    refusal = _refused_id(ordered, current, column, field_id, dropped, last_column_id)
    if refusal is not None:
        return refusal
    asked = next((entry for entry in named if entry[0].field.field_id == field_id), None)
    if asked is None:
        (found,) = (d for d in dropped if d.field.field_id == field_id)
        return refusals.other_name(column, field_id, found.path)
    return _restored(current, *asked, partition_names or {})


def _formerly(
    schemas: Sequence[Schema], dropped: Sequence[Dropped], steps: Sequence[tuple[str, bool]]
) -> list[tuple[Dropped, str]]:
    """Return the fields that had a path before what they are in was renamed, and their name there."""
    by_id = {d.field.field_id: d for d in dropped}
    found = {
        seen.field.field_id: seen.field.name
        for schema in schemas
        for seen in _seen(schema)
        if seen.field.field_id in by_id and _is_named(steps, seen)
    }
    return [(by_id[field_id], name) for field_id, name in found.items()]


def dropped_fields(schemas: Iterable[Schema], current: Schema) -> tuple[Dropped, ...]:
    """Return what a table once had and has not any more, by field id.

    What was in a struct, list or map that is gone itself is left out: it comes and goes with that.

    Args:
        schemas: all that the table still knows.
        current: the one that it has, which may be an older one.
    """
    ordered = sorted(schemas, key=lambda schema: schema.schema_id)
    now = {s.field.field_id: s for s in _seen(current)}
    found: dict[int, list[tuple[Schema, Schema, _Seen]]] = {}
    for schema, following in zip(ordered, [*ordered[1:], current], strict=True):
        for seen in _seen(schema):
            if seen.field.field_id not in now and _is_place(now, seen.parent_id):
                found.setdefault(seen.field.field_id, []).append((schema, following, seen))
    return tuple(_dropped(entries, now) for _, entries in sorted(found.items()))


def _dropped(entries: Sequence[tuple[Schema, Schema, _Seen]], now: Mapping[int, _Seen]) -> Dropped:
    first, (last, following, seen) = entries[0][0], entries[-1]
    type_ = seen.field.field_type
    for _, _, other in entries:
        # Schemas are not always as old as their ids say, and of a field's types the widest reads all values.
        if is_widening(type_, other.field.field_type):
            type_ = other.field.field_type
    names = {fold(e.field.name): e.field.name for _, _, e in entries}
    latest = list(dict.fromkeys(names[fold(e.field.name)] for _, _, e in reversed(entries)))
    parent = now[seen.parent_id] if seen.parent_id is not None else None
    return Dropped(
        parent.path if parent is not None else (),
        parent.short if parent is not None else (),
        seen.parent_id,
        seen.field.model_copy(update={"field_type": type_}),
        tuple(latest),
        first.schema_id,
        last.schema_id,
        following.schema_id,
    )


def _is_place(now: Mapping[int, _Seen], parent_id: int | None) -> bool:
    """Tell whether the table has what a field was in, so that it can be there again."""
    return parent_id is None or (parent_id in now and isinstance(now[parent_id].field.field_type, StructType))


def removed_schemas(schemas: Iterable[Schema]) -> int:
    """Return how many schemas maintenance has taken out of a table's metadata, as far as their ids tell."""
    ids = {schema.schema_id for schema in schemas}
    return max(ids) + 1 - len(ids) if ids and min(ids) >= 0 else 0


def _by_name(
    schemas: Sequence[Schema],
    current: Schema,
    column: str,
    steps: Sequence[tuple[str, bool]],
    dropped: Sequence[Dropped],
    named: Sequence[tuple[Dropped, str]],
    there: _Seen | None,
    partition_names: Mapping[str, int | None],
) -> RestoreField | Refusal:
    if len(named) == 1:
        return _restored(current, *named[0], partition_names)
    if named:
        return refusals.which(column, [str(d) for d, _ in named])
    if there is not None:
        return refusals.not_dropped(there.path, there.field.field_id)
    now = {s.field.field_id: s for s in _seen(current)}
    for schema in reversed(schemas):
        for seen in _seen(schema):
            if not _is_named(steps, seen):
                continue
            if seen.field.field_id in now:
                return refusals.renamed(seen.path, seen.field.field_id, now[seen.field.field_id].path)
            gone = _gone_above(schema, seen, now)
            if gone is not None:
                return refusals.went_with(seen.path, gone.path, gone.field.field_id)
    return refusals.unknown(column, [str(d) for d in dropped], removed_schemas(schemas))


def _refused_id(
    schemas: Sequence[Schema],
    current: Schema,
    column: str,
    field_id: int,
    dropped: Sequence[Dropped],
    last_column_id: int,
) -> Refusal | None:
    """Return why a field of this id cannot be put back; None if it was dropped."""
    if any(d.field.field_id == field_id for d in dropped):
        return None
    now = {s.field.field_id: s for s in _seen(current)}
    if field_id in now:
        was = {
            fold(s.field.name): s.path
            for schema in schemas
            for s in _seen(schema)
            if s.field.field_id == field_id
        }
        was.pop(fold(now[field_id].field.name), None)
        parent, names = now[field_id].parent_id, list(was)
        beside = {fold(s.field.name): other for other, s in now.items() if s.parent_id == parent}
        other = beside.get(names[-1]) if names else None
        return refusals.in_use(field_id, now[field_id].path, list(was.values()), other)
    for schema in reversed(schemas):
        for seen in _seen(schema):
            if seen.field.field_id == field_id:
                gone = _gone_above(schema, seen, now)
                if gone is None:
                    continue
                return refusals.went_with(seen.path, gone.path, gone.field.field_id)
    is_given = 0 < field_id <= last_column_id
    return refusals.no_such_id(field_id, [str(d) for d in dropped], is_given, removed_schemas(schemas))


def _gone_above(schema: Schema, seen: _Seen, now: Mapping[int, _Seen]) -> _Seen | None:
    """Return the outermost of what encloses a field that is gone, and can be asked for by name."""
    by_id = {s.field.field_id: s for s in _seen(schema)}
    found, above = None, seen.parent_id
    while above is not None:
        if above not in now:
            found = by_id[above]
        above = by_id[above].parent_id
    return found


def _restored(
    current: Schema,
    dropped: Dropped,
    name: str,
    partition_names: Mapping[str, int | None],
) -> RestoreField | Refusal:
    path = (*dropped.parent, name)
    beside = (s for s in _seen(current) if s.parent_id == dropped.parent_id)
    there = next((s for s in beside if fold(s.field.name) == fold(name)), None)
    field_id = dropped.field.field_id
    siblings = current.fields if dropped.parent_id is None else _struct_of(current, dropped.parent_id).fields
    if there is not None:
        free = [n for n in dropped.names if not collisions([n, *(f.name for f in siblings)])]
        last = (*dropped.parent, free[0]) if free else None
        return refusals.name_taken(there.path, there.field.field_id, path, field_id, last)
    for group in collisions([*(f.name for f in siblings), name]):
        if name in group:
            return refusals.ambiguous(path, group)
    type_ = dropped.field.field_type
    if not dropped.parent and is_reserved(name):
        return refusals.reserved(path)
    if not has_spark_type(type_):
        return refusals.no_spark_type(path, type_)
    optional = NestedField(
        field_id,
        name,
        _optional(type_),
        required=False,
        doc=dropped.field.doc,
        initial_default=dropped.field.initial_default,
        write_default=dropped.field.write_default,
    )
    obstacles = FieldPaths(current.fields, partition_names).rename(dropped.parent, optional, name)
    if obstacles:
        return refusals.path_taken(path, obstacles)
    fields = _with_field(current.as_struct(), None, dropped.parent_id, optional)
    assert isinstance(fields, StructType)
    schema = Schema(
        *fields.fields, schema_id=current.schema_id, identifier_field_ids=list(current.identifier_field_ids)
    )
    return RestoreField(path, optional, dropped, schema)


def _struct_of(schema: Schema, field_id: int) -> StructType:
    """Return the struct that a field of a schema is."""
    found = next(f for _, f in fields_within(schema.as_struct()) if f.field_id == field_id)
    assert isinstance(found.field_type, StructType)
    return found.field_type


def _with_field(
    type_: IcebergType, holder: int | None, parent_id: int | None, field: NestedField
) -> IcebergType:
    """Return a type with a field at the end of the struct that is the field of the id ``parent_id``."""
    if isinstance(type_, StructType):
        members = [
            f.model_copy(update={"field_type": _with_field(f.field_type, f.field_id, parent_id, field)})
            for f in type_.fields
        ]
        return StructType(*members, *([field] if holder == parent_id else []))
    if isinstance(type_, ListType):
        element = _with_field(type_.element_type, type_.element_id, parent_id, field)
        return ListType(type_.element_id, element, element_required=type_.element_required)
    if isinstance(type_, MapType):
        value = _with_field(type_.value_type, type_.value_id, parent_id, field)
        return MapType(
            type_.key_id, type_.key_type, type_.value_id, value, value_required=type_.value_required
        )
    return type_


def _optional(type_: IcebergType) -> IcebergType:
    """Return a type in which all may be NULL, but for the keys of maps."""
    if isinstance(type_, StructType):
        return StructType(
            *(
                f.model_copy(update={"field_type": _optional(f.field_type), "required": False})
                for f in type_.fields
            )
        )
    if isinstance(type_, ListType):
        return ListType(type_.element_id, _optional(type_.element_type), element_required=False)
    if isinstance(type_, MapType):
        value = _optional(type_.value_type)
        return MapType(type_.key_id, type_.key_type, type_.value_id, value, value_required=False)
    return type_


def _seen(schema: Schema) -> Iterator[_Seen]:
    """Yield each field of a schema, outer ones first."""

    def inside(type_: IcebergType, path: Path, short: Path, parent_id: int | None) -> Iterator[_Seen]:
        for child in children(type_):
            full = (*path, child.name)
            is_left_out = not isinstance(type_, StructType) and child.name != "key"
            brief = short if is_left_out else (*short, child.name)
            yield _Seen(full, brief, child, parent_id)
            yield from inside(child.field_type, full, brief, child.field_id)

    return inside(schema.as_struct(), (), (), None)


def _renamed(dropped: Dropped, name: str) -> _Seen:
    """Return where a dropped field would be under one of its names."""
    return _Seen((*dropped.parent, name), (*dropped.short_parent, name), dropped.field, dropped.parent_id)


def _is_named(steps: Sequence[tuple[str, bool]], seen: _Seen) -> bool:
    """Tell whether a path that a user wrote, with ``element`` and ``value`` or without, is a field's."""
    return any(_fits(tuple(steps), path) for path in {seen.path, seen.short} if path)


def _fits(steps: tuple[tuple[str, bool], ...], path: Path) -> bool:
    if not steps or not path:
        return not steps and not path
    return any(
        fold(".".join(text for text, _ in steps[:n])) == fold(path[0]) and _fits(steps[n:], path[1:])
        for n in range(1, len(steps) + 1)
        # What stands in backticks is one name, and what does not may be a part of one.
        if n == 1 or not any(is_whole for _, is_whole in steps[:n])
    )
