"""What changed from one schema of a table to the next, told by field ids, whoever changed it."""

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field

from pyiceberg.schema import Schema
from pyiceberg.types import BinaryType, FixedType, NestedField, PrimitiveType, StructType

from dbt.adapters.sparkevolve.evolution.defaults import DefaultValue, same_default
from dbt.adapters.sparkevolve.evolution.names import Path, fold, path_text
from dbt.adapters.sparkevolve.evolution.policy import FormerColumn, Past, TakenName
from dbt.adapters.sparkevolve.evolution.types import fields_within, type_text


@dataclass(frozen=True)
class FieldChange:
    """What became different in one field from a schema to the next.

    Attributes:
        kind: added, restored, renamed, widened (any change of its type), relaxed, required, described,
            default or dropped.
        field_id: the field.
        text: what to say of it.
    """

    kind: str
    field_id: int
    text: str


@dataclass(frozen=True)
class EarlierMeaning:
    """What the values of a field that were written down by its name have meant before.

    Attributes:
        path: where the field is now.
        parent: the field whose struct it is in; None for the table's own.
        since_schema_id: the first schema of which they mean what they mean now.
        other_schema_ids: those of which they mean something else.
        is_called: what the field is called now that had the name, in backticks; empty if it is gone, or it is
            the type that was another one.
        was_other: whether it matters that another field had the name, and not that there were bytes, or none.
        by_turns: whether several fields have had it before, or this one has got it back.
    """

    path: Path
    parent: int | None
    since_schema_id: int
    other_schema_ids: frozenset[int]
    is_called: str = ""
    was_other: bool = False
    by_turns: bool = False


@dataclass(frozen=True)
class FormerName:
    """A name that a field of a table had, and no longer has.

    Attributes:
        parent: the field whose struct it is in; None for the table's own.
        name: the name, folded.
        field_id: the field.
        schema_ids: the schemas in which it had the name.
        is_first: whether no other field of the struct had it until the last one of these.
        other_schema_ids: the schemas in which another one had it.
    """

    parent: int | None
    name: str
    field_id: int
    schema_ids: frozenset[int]
    is_first: bool = True
    other_schema_ids: frozenset[int] = field(default=frozenset(), compare=False)


def schema_changes(old: Schema | None, new: Schema, known: Collection[int] = ()) -> tuple[str, ...]:
    """Return the changes between two schemas as texts, see ``field_changes``.

    Of a table's first one: created. What schemas between them did that are gone is among the changes, and the
    last text says so; the oldest that is left need not be the first.
    """
    gone = removed_before(old, new)
    if old is None:
        were = "one older was" if gone == 1 else f"{gone} older ones were"
        return (f"the oldest schema that is left: {were} removed by maintenance",) if gone else ("created",)
    changes = tuple(change.text for change in field_changes(old, new, known))
    came = "a schema before it, which was" if gone == 1 else f"{gone} schemas before it, which were"
    return (*changes, f"some of that may have come with {came} removed by maintenance") if gone else changes


def removed_before(old: Schema | None, new: Schema) -> int:
    """Return how many schemas a table once had between two that it has: ids are given one after the other.

    Args:
        old: the one before; None if there is none.
        new: the one after it, or one from before it that came back.
    """
    return max(0, new.schema_id - (-1 if old is None else old.schema_id) - 1)


def field_changes(old: Schema, new: Schema, known: Collection[int] = ()) -> Iterator[FieldChange]:
    """Yield the changes between two schemas.

    Args:
        old: the one before.
        new: the one after it.
        known: ids of fields that the table had before: what has one of these and was not in ``old`` is back.
            So is what has a lower id than one of them, of a schema that is gone: ids only grow.
    """
    newest = max(known, default=0)
    before, after = dict(_fields(old)), dict(_fields(new))
    for field_id, (path, f) in after.items():
        where = f"{path_text(path)} ({field_id})"
        if field_id not in before:
            verb = "restored" if field_id in known or field_id < newest else "added"
            text = f"{verb} {where} {type_text(f.field_type)}{_initial_text(f)}"
            yield FieldChange(verb, field_id, text)
            continue
        old_path, was = before[field_id]
        if old_path[-1] != path[-1]:
            text = f"renamed {path_text(old_path)} ({field_id}) to {path_text(path)}"
            yield FieldChange("renamed", field_id, text)
        if f.field_type.is_primitive and was.field_type != f.field_type:
            types = f"from {type_text(was.field_type)} to {type_text(f.field_type)}"
            yield FieldChange("widened", field_id, f"changed {where} {types}")
        if was.required != f.required:
            kind, text = ("required", "NOT NULL") if f.required else ("relaxed", "no longer NOT NULL")
            yield FieldChange(kind, field_id, f"{where} is {text}")
        if (was.doc or "") != (f.doc or ""):
            yield FieldChange("described", field_id, f"described {where}")
        if not same_default(was.write_default, f.write_default, f.field_type):
            default = default_text(f)
            text = f"set default of {where} to {default}" if default else f"removed default of {where}"
            yield FieldChange("default", field_id, text)
    for field_id, (path, f) in before.items():
        if field_id not in after:
            text = f"dropped {path_text(path)} ({field_id}) {type_text(f.field_type)}"
            yield FieldChange("dropped", field_id, text)


def former_fields(schemas: Iterable[Schema], current: Schema) -> dict[Path, FormerColumn]:
    """Return what the table once had under a name that its current schema lacks.

    Args:
        schemas: all that the table has had.
        current: the one that it has. It may be an older one: dropping the newest column brings the schema
            from before it back, under its id.

    Returns:
        By folded path, in which names of what encloses the field are those of today. What was in a struct
        that is gone itself is left out: it comes and goes with that.
    """
    now = {field_id: path for field_id, (path, _) in _fields(current)}
    ordered = sorted(schemas, key=lambda schema: schema.schema_id)
    former: dict[Path, FormerColumn] = {}
    for schema, following in zip(ordered, [*ordered[1:], current], strict=True):
        names_after = {field_id: fold(path[-1]) for field_id, (path, _) in _fields(following)}
        ids = {path: field_id for field_id, (path, _) in _fields(schema)}
        for field_id, (path, f) in _fields(schema):
            name = fold(f.name)
            parent = now.get(ids[path[:-1]]) if len(path) > 1 else ()
            kept = names_after.get(field_id) == name
            if parent is None or kept or (field_id in now and fold(now[field_id][-1]) == name):
                continue
            place = (*(fold(part) for part in parent), name)
            former[place] = FormerColumn(
                f.name,
                field_id,
                type_text(f.field_type),
                schema.schema_id,
                following.schema_id,
                renamed_to=path_text(now[field_id]) if field_id in now else "",
            )
    return former


def default_text(f: NestedField) -> str:
    """Return the default that rows to come have, as text; empty for none."""
    if f.write_default is None or not isinstance(f.field_type, PrimitiveType):
        return ""
    return str(DefaultValue(f.field_type, f.write_default))


def _initial_text(f: NestedField) -> str:
    default = default_text(f)
    return f" default {default}" if default else ""


def taken_names(schemas: Iterable[Schema], current: Schema, known: Schema) -> tuple[TakenName, ...]:
    """Return the names that are other fields' now than they were, outer ones first.

    A name that is in both is meant. What is in a struct that has such a name itself is left out.

    Args:
        schemas: all that the table knows.
        current: the one that it has.
        known: the one to compare with.
    """
    before, after = _by_path(known), _by_path(current)
    was = {f.field_id: path for path, f in fields_within(known.as_struct())}
    now = {f.field_id: path for path, f in fields_within(current.as_struct())}
    later = sorted((s for s in schemas if s.schema_id > known.schema_id), key=lambda s: s.schema_id)
    found: dict[Path, TakenName] = {}
    for place, (path, f) in after.items():
        if place not in before or any(place[:n] in found for n in range(1, len(place))):
            continue
        old = before[place][1]
        if old.field_id == f.field_id:
            continue
        since = (s.schema_id for s in later if _id_at(s, place) == f.field_id)
        found[place] = TakenName(
            path,
            f.field_id,
            path_text(was[f.field_id]) if f.field_id in was else "",
            old.field_id,
            type_text(old.field_type),
            path_text(now[old.field_id]) if old.field_id in now else "",
            next(since, current.schema_id),
        )
    return tuple(found.values())


def earlier_meanings(schemas: Iterable[Schema], current: Schema) -> dict[int, EarlierMeaning]:
    """Return what names of a table's fields have meant before, where their values alone do not tell.

    Either the name was another field's, which has been renamed or dropped since. Or there were bytes, or
    there are now: in JSON these are Base64, which is a text like others. Structs are told by their ids, so
    that it does not matter what they were called themselves.

    Args:
        schemas: all that the table has had.
        current: the one that it has.

    Returns:
        By the field's id.
    """
    ordered = [*sorted((s for s in schemas if s.schema_id != current.schema_id), key=_schema_id), current]
    is_back = any(schema.schema_id > current.schema_id for schema in ordered)
    names = {f.field_id: path for path, f in fields_within(current.as_struct())}
    structs = [_structs(schema) for schema in ordered]
    found: dict[int, EarlierMeaning] = {}
    for parent, now in structs[-1].items():
        for name, f in now.items():
            had = [(n, of[parent][name]) for n, of in enumerate(structs[:-1]) if name in of.get(parent, {})]
            others = [
                (n, old) for n, old in had if old.field_id != f.field_id or _has_bytes(old) != _has_bytes(f)
            ]
            if not others:
                continue
            last, old = others[-1]
            is_other = old.field_id != f.field_id
            called = path_text(names[old.field_id]) if is_other and old.field_id in names else ""
            since = next((n for n, _ in had if n > last), len(ordered) - 1)
            found[f.field_id] = EarlierMeaning(
                names[f.field_id],
                parent,
                ordered[since].schema_id,
                frozenset(ordered[n].schema_id for n, _ in others),
                called,
                is_other and bool(called or _has_bytes(old) == _has_bytes(f)),
                is_back or len({old.field_id for n, old in had if n <= last}) > 1,
            )
    return found


def former_names(schemas: Iterable[Schema], current: Schema) -> list[FormerName]:
    """Return the names that the fields of a table have had before.

    Args:
        schemas: all that the table has had.
        current: the one that it has.
    """
    now = {
        parent: {f.field_id: name for name, f in fields.items()}
        for parent, fields in _structs(current).items()
    }
    found = []
    for (parent, name), by_id in fields_named(schemas).items():
        first = min(by_id, key=lambda field_id: min(by_id[field_id]))
        others = [n for field_id, ids in by_id.items() if field_id != first for n in ids]
        is_alone = all(n > max(by_id[first]) for n in others)
        found += [
            FormerName(
                parent,
                name,
                field_id,
                frozenset(ids),
                field_id == first and is_alone,
                frozenset(n for other, their in by_id.items() if other != field_id for n in their),
            )
            for field_id, ids in by_id.items()
            if now.get(parent, {}).get(field_id, name) != name
        ]
    return found


def names_of_others(schemas: Collection[Schema], current: Schema) -> dict[int, Path]:
    """Return the fields that rows may be without since another one had their name when these were written.

    Not a field that was there by then under another name: that has its values in these rows.

    Args:
        schemas: all that the table has had.
        current: the one that it has.

    Returns:
        By the field's id, the path that the other one has now.
    """
    paths = {f.field_id: path for path, f in fields_within(current.as_struct())}
    ids = {schema.schema_id: {n for n, _ in _fields(schema)} for schema in schemas}
    here = {place: next(iter(by_id)) for place, by_id in fields_named([current]).items()}
    found = {}
    for former in former_names(schemas, current):
        now = here.get((former.parent, former.name))
        if now is not None and any(now not in ids[n] for n in former.schema_ids):
            found[now] = paths[former.field_id]
    return found


def fields_named(schemas: Iterable[Schema]) -> dict[tuple[int | None, str], dict[int, set[int]]]:
    """Return the fields that had a name: their ids, and those of the schemas.

    By the field whose struct they are in, None for the table's own, and the name, folded.
    """
    had: dict[tuple[int | None, str], dict[int, set[int]]] = {}
    for schema in schemas:
        for parent, fields in _structs(schema).items():
            for name, f in fields.items():
                had.setdefault((parent, name), {}).setdefault(f.field_id, set()).add(schema.schema_id)
    return had


def _structs(schema: Schema) -> dict[int | None, dict[str, NestedField]]:
    """Return the fields of each struct by their folded names, by the id of the field that is the struct."""
    found: dict[int | None, dict[str, NestedField]] = {None: {fold(f.name): f for f in schema.fields}}
    for _, f in fields_within(schema.as_struct()):
        if isinstance(f.field_type, StructType):
            found[f.field_id] = {fold(inner.name): inner for inner in f.field_type.fields}
    return found


def _schema_id(schema: Schema) -> int:
    return schema.schema_id


def _has_bytes(f: NestedField) -> bool:
    return isinstance(f.field_type, BinaryType | FixedType)


def _by_path(schema: Schema) -> dict[Path, tuple[Path, NestedField]]:
    return {tuple(map(fold, path)): (path, f) for path, f in fields_within(schema.as_struct())}


def _id_at(schema: Schema, place: Path) -> int | None:
    found = _by_path(schema).get(place)
    return None if found is None else found[1].field_id


def past_of(schemas: Collection[Schema], last_column_id: int) -> Past:
    """Return what a table's schemas tell of the names that its fields have had.

    Args:
        schemas: all that the table knows.
        last_column_id: the highest id that it has given to a field.
    """
    found: dict[int, set[str]] = {}
    for schema in schemas:
        for field_id, (path, _) in _fields(schema):
            found.setdefault(field_id, set()).add(fold(path[-1]))
    ids = {schema.schema_id for schema in schemas}
    is_complete = len(ids) == max(ids) + 1 and not lacks_fields(schemas, 0, last_column_id)
    return Past({n: frozenset(names) for n, names in found.items()}, is_complete)


def lacks_fields(schemas: Iterable[Schema], since_schema_id: int, last_column_id: int) -> bool:
    """Tell whether a table has had a field since a schema that none of those which it knows has.

    So one was removed. The ids of schemas do not always tell: where an older one had become the current one
    again, the next new one gets the id of the one that was removed. A field's id is given once, and they are
    given one after the other.

    Args:
        schemas: all that the table knows.
        since_schema_id: the id of one of them.
        last_column_id: the highest id that the table has given to a field.
    """
    by_id = {schema.schema_id: {field_id for field_id, _ in _fields(schema)} for schema in schemas}
    first = max(by_id[since_schema_id], default=0)
    known = set().union(*by_id.values())
    return any(field_id not in known for field_id in range(first + 1, last_column_id + 1))


def _fields(schema: Schema) -> Iterable[tuple[int, tuple[Path, NestedField]]]:
    return ((f.field_id, (path, f)) for path, f in fields_within(schema.as_struct()))
