"""What changed from one schema of a table to the next, told by field ids, whoever changed it."""

from collections.abc import Iterable

from pyiceberg.schema import Schema
from pyiceberg.types import NestedField, PrimitiveType

from dbt.adapters.sparkevolve.evolution.defaults import DefaultValue, same_default
from dbt.adapters.sparkevolve.evolution.names import Path, fold, path_text
from dbt.adapters.sparkevolve.evolution.policy import FormerColumn
from dbt.adapters.sparkevolve.evolution.types import fields_within, type_text


def schema_changes(old: Schema | None, new: Schema) -> tuple[str, ...]:
    """Return the changes between two schemas as texts; ``old`` is None for a table's first schema."""
    if old is None:
        return ("created",)
    before, after = dict(_fields(old)), dict(_fields(new))
    texts: list[str] = []
    for field_id, (path, f) in after.items():
        where = f"{path_text(path)} ({field_id})"
        if field_id not in before:
            texts.append(f"added {where} {type_text(f.field_type)}{_initial_text(f)}")
            continue
        old_path, was = before[field_id]
        if old_path[-1] != path[-1]:
            texts.append(f"renamed {path_text(old_path)} ({field_id}) to {path_text(path)}")
        if f.field_type.is_primitive and was.field_type != f.field_type:
            texts.append(f"changed {where} from {type_text(was.field_type)} to {type_text(f.field_type)}")
        if was.required != f.required:
            texts.append(f"{where} is {'NOT NULL' if f.required else 'no longer NOT NULL'}")
        if (was.doc or "") != (f.doc or ""):
            texts.append(f"described {where}")
        if not same_default(was.write_default, f.write_default, f.field_type):
            default = _default_text(f)
            texts.append(f"set default of {where} to {default}" if default else f"removed default of {where}")
    gone = (entry for field_id, entry in before.items() if field_id not in after)
    texts.extend(f"dropped {path_text(path)} ({f.field_id}) {type_text(f.field_type)}" for path, f in gone)
    return tuple(texts)


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


def _default_text(f: NestedField) -> str:
    """Return the default that rows to come have, as text; empty for none."""
    if f.write_default is None or not isinstance(f.field_type, PrimitiveType):
        return ""
    return str(DefaultValue(f.field_type, f.write_default))


def _initial_text(f: NestedField) -> str:
    default = _default_text(f)
    return f" default {default}" if default else ""


def _fields(schema: Schema) -> Iterable[tuple[int, tuple[Path, NestedField]]]:
    return ((f.field_id, (path, f)) for path, f in fields_within(schema.as_struct()))
