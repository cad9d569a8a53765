"""Properties of a table that name its columns, and what they have to be after a change of its schema.

Iceberg's Java library changes them in the commit that changes the schema; PyIceberg 0.12 only the mapping of
names, and there it gives a name that another column has had to the new one.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from pyiceberg.schema import Schema, index_by_id, index_by_name, index_name_by_id
from pyiceberg.types import IcebergType, NestedField, StructType

from dbt.adapters.sparkevolve.evolution.changes import AddColumn, AddField, Change, RenameField
from dbt.adapters.sparkevolve.evolution.types import children

NAME_MAPPING = "schema.name-mapping.default"
METRICS_PREFIX = "write.metadata.metrics.column."
# In the place of the id of what has none.
_ROOT = -1
_PREFIXES = (
    METRICS_PREFIX,
    "write.parquet.bloom-filter-enabled.column.",
    "write.parquet.bloom-filter-fpp.column.",
    "write.parquet.bloom-filter-ndv.column.",
    "write.parquet.stats-enabled.column.",
)


def changed_properties(
    properties: Mapping[str, str], before: Schema, after: Schema
) -> tuple[dict[str, str], list[str]]:
    """Return which properties have to be set, and which to be removed, when the schema changes.

    Args:
        properties: the table's.
        before: the schema before the change.
        after: the schema after it, without any column fewer.
    """
    moved = dict(_moved(properties, before, after))
    wanted = {new: properties[old] for old, new in moved.items() if new not in properties or new in moved}
    removed = [old for old in moved if old not in wanted]
    mapping = properties.get(NAME_MAPPING)
    if mapping is not None:
        updated = _updated_mapping(mapping, before, after)
        if updated is not None:
            wanted[NAME_MAPPING] = updated
    return wanted, removed


def metrics_of_unknown(
    configured: Mapping[str, str], table: Schema, changes: Iterable[Change]
) -> Iterator[tuple[str, str]]:
    """Yield each of a model's properties that sets metrics of no column, and the column that it names.

    Args:
        configured: the model's properties.
        table: the schema of the table.
        changes: what will be done to it, with paths from before all of them.
    """
    ids = index_by_name(table)
    renamed: dict[int, str] = {}
    added: dict[int, list[NestedField]] = {}
    for change in changes:
        if isinstance(change, RenameField):
            renamed[ids[".".join(change.path)]] = change.new_name
        elif isinstance(change, AddColumn | AddField):
            parent = ids[".".join(change.path[:-1])] if len(change.path) > 1 else _ROOT
            field = NestedField(_ROOT, change.path[-1], change.type, required=False)
            added.setdefault(parent, []).append(field)
    known = set(_names(table.as_struct(), _ROOT, "", "", renamed, added))
    for name in configured:
        column = name.removeprefix(METRICS_PREFIX)
        if name.startswith(METRICS_PREFIX) and column not in known:
            yield name, column


def metrics_of_none(properties: Mapping[str, str], schema: Schema) -> list[str]:
    """Return the names of a table's properties that set metrics of a column that it lacks.

    ``CREATE OR REPLACE TABLE`` leaves them, and Iceberg then changes no property of the table any more. The
    other properties that name a column which is not there do no harm, and stay.

    Args:
        properties: the table's.
        schema: the table's.
    """
    return [name for name, _ in metrics_of_unknown(properties, schema, ())]


def named_for_another(properties: Mapping[str, str], path: Sequence[str]) -> bool:
    """Tell whether files without field ids may have another column by the name of a new column or field."""
    entries = json.loads(properties.get(NAME_MAPPING, "[]"))
    for number, name in enumerate(path):
        found = [entry for entry in entries if name in entry["names"]]
        if not found:
            return False
        if number < len(path) - 1:
            entries = found[0].get("fields") or []
    return True


def is_unnamed(properties: Mapping[str, str], schema: Schema, field_id: int) -> bool:
    """Tell whether the mapping of names has none for a field, so that it is NULL in files without field ids.

    Args:
        properties: the table's.
        schema: the schema that has the field.
        field_id: its id.
    """
    if NAME_MAPPING not in properties:
        return False

    def ids(entries: Sequence[Mapping[str, Any]], parent: IcebergType) -> Iterator[int]:
        found = {entry.get("field-id"): entry for entry in entries if entry["names"]}
        for field in children(parent):
            if field.field_id in found:
                yield field.field_id
                yield from ids(found[field.field_id].get("fields") or [], field.field_type)

    return field_id not in ids(json.loads(properties[NAME_MAPPING]), schema.as_struct())


def _names(
    parent: IcebergType,
    parent_id: int,
    full: str,
    short: str,
    renamed: Mapping[int, str],
    added: Mapping[int, Sequence[NestedField]],
) -> Iterator[str]:
    """Yield what Iceberg finds the fields of a type by: full names, and short ones.

    These leave out the ``element`` and ``value`` that are structs.
    """
    for field in (*children(parent), *added.get(parent_id, ())):
        name = renamed.get(field.field_id, field.name)
        yield from (full + name, short + name)
        is_struct = isinstance(field.field_type, StructType)
        is_left_out = is_struct and not isinstance(parent, StructType) and name != "key"
        inner = short if is_left_out else f"{short}{name}."
        # Fields that are added have no ids yet.
        is_new = field.field_id == _ROOT
        known = ({}, {}) if is_new else (renamed, added)
        yield from _names(field.field_type, field.field_id, f"{full}{name}.", inner, *known)


def _moved(properties: Mapping[str, str], before: Schema, after: Schema) -> Iterable[tuple[str, str]]:
    """Yield old and new name of each property that is one of a column with another name now."""
    short_before, short_after = _short_names(before), _short_names(after)
    for field_id in index_by_id(before):
        full = after.find_column_name(field_id)
        for old, new in (
            (before.find_column_name(field_id), full),
            (short_before.get(field_id), short_after.get(field_id, full)),
        ):
            if old is not None and new is not None and old != new:
                for prefix in _PREFIXES:
                    if prefix + old in properties:
                        yield prefix + old, prefix + new


def _short_names(schema: Schema) -> dict[int, str]:
    """Return the short name of each field by its id, if that is another one than its full name."""
    full = index_name_by_id(schema)
    return {field_id: name for name, field_id in index_by_name(schema).items() if name != full[field_id]}


def _updated_mapping(text: str, before: Schema, after: Schema) -> str | None:
    """Return the mapping by which columns are found in files without field ids; None if it stays as it is.

    A name stays with the column that had it when such files were imported: with another one, the new column
    would read the values of the old one. Such a new column has no name in the mapping then.

    Args:
        text: the mapping, as JSON.
        before: the schema before the change.
        after: the schema after it.
    """
    mapping = json.loads(text)
    known = set(index_by_id(before))
    updated = _updated(mapping, after.as_struct(), known)
    return json.dumps(updated, separators=(",", ":")) if updated != mapping else None


def _updated(entries: Sequence[Mapping[str, Any]], parent: IcebergType, known: set[int]) -> list[Any]:
    """Return the entries of a struct, a list or a map with what is new in it."""
    by_id = {field.field_id: field for field in children(parent)}
    taken = {name for entry in entries for name in entry["names"]}
    found = []
    for entry in entries:
        field = by_id.pop(entry.get("field-id", -1), None)
        changed = dict(entry)
        if field is not None:
            if field.name not in taken:
                changed["names"] = [*entry["names"], field.name]
                taken.add(field.name)
            # Fields of a struct that the mapping leaves out are not looked for in files: it stays so.
            inner = _updated(entry.get("fields") or [], field.field_type, known)
            if inner:
                changed["fields"] = inner
        found.append(changed)
    found += [
        _entry(field.field_id, field.name, field.field_type)
        for field in by_id.values()
        if field.field_id not in known and field.name not in taken
    ]
    return found


def _entry(field_id: int, name: str, type_: IcebergType) -> dict[str, Any]:
    fields = [_entry(child.field_id, child.name, child.field_type) for child in children(type_)]
    return {"field-id": field_id, "names": [name], **({"fields": fields} if fields else {})}
