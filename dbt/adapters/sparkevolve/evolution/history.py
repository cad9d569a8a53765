"""What changed from one schema of a table to the next, told by field ids, whoever changed it."""

from collections.abc import Iterable

from pyiceberg.schema import Schema
from pyiceberg.types import IcebergType, NestedField

from dbt.adapters.sparkevolve.evolution.names import path_text
from dbt.adapters.sparkevolve.evolution.types import children, type_text


def schema_changes(old: Schema | None, new: Schema) -> tuple[str, ...]:
    """Return the changes between two schemas as texts; ``old`` is None for a table's first schema."""
    if old is None:
        return ("created",)
    before, after = dict(_fields(old)), dict(_fields(new))
    texts: list[str] = []
    for field_id, (path, f) in after.items():
        where = f"{path_text(path)} ({field_id})"
        if field_id not in before:
            texts.append(f"added {where} {type_text(f.field_type)}")
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
    gone = (entry for field_id, entry in before.items() if field_id not in after)
    texts.extend(f"dropped {path_text(path)} ({f.field_id}) {type_text(f.field_type)}" for path, f in gone)
    return tuple(texts)


def _fields(schema: Schema) -> Iterable[tuple[int, tuple[tuple[str, ...], NestedField]]]:
    def walk(path: tuple[str, ...], type_: IcebergType) -> Iterable[tuple[tuple[str, ...], NestedField]]:
        for child in children(type_):
            inside = (*path, child.name)
            yield inside, child
            yield from walk(inside, child.field_type)

    return ((f.field_id, (path, f)) for path, f in walk((), schema.as_struct()))
