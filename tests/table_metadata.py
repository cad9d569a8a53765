"""What must hold of the metadata of an Iceberg table: within one file, and between one and the next.

Plain Python over the JSON, so that it shares nothing with the libraries that write it.
"""

import json
import re
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator
from itertools import pairwise
from typing import Any, NamedTuple

Metadata = dict[str, Any]

# By how much clocks may differ that write one table. Iceberg's own readers allow it, too.
CLOCK_TOLERANCE_MS = 60_000
_NOTHING = -1


class Field(NamedTuple):
    """A column, a field of a struct, an element of a list, or a key or value of a map.

    Attributes:
        parent: the id of the field that it is in; None for a column.
        name: its name.
        type: the text of a primitive type, or ``struct``, ``list`` or ``map``.
        required: whether it is never NULL.
        doc: its description.
    """

    parent: int | None
    name: str
    type: str
    required: bool
    doc: str


def fields(schema: Metadata) -> Iterator[tuple[int, Field]]:
    """Yield the id of each field of a schema, nested ones too, and the field."""
    yield from _fields(schema, None)


def _fields(struct: Metadata, parent: int | None) -> Iterator[tuple[int, Field]]:
    for field in struct["fields"]:
        yield from _field(
            field["id"], parent, field["name"], field["type"], field["required"], field.get("doc")
        )


def _field(
    field_id: int, parent: int | None, name: str, type_: Any, required: bool, doc: str | None = None
) -> Iterator[tuple[int, Field]]:
    kind = type_ if isinstance(type_, str) else type_["type"]
    yield field_id, Field(parent, name, kind.replace(" ", ""), required, doc or "")
    if kind == "struct":
        yield from _fields(type_, field_id)
    elif kind == "list":
        yield from _field(
            type_["element-id"], field_id, "element", type_["element"], type_["element-required"]
        )
    elif kind == "map":
        yield from _field(type_["key-id"], field_id, "key", type_["key"], True)
        yield from _field(type_["value-id"], field_id, "value", type_["value"], type_["value-required"])


def problems(metadata: Metadata, tolerance_ms: int = 0) -> list[str]:
    """Return what is wrong with the metadata of a table, one line each; nothing if it is sound.

    Args:
        metadata: the metadata.
        tolerance_ms: by how much a time may be before the one that it follows.
    """
    return [
        *_problems_of_schemas(metadata),
        *_problems_of_specs(metadata),
        *_problems_of_snapshots(metadata),
        *_problems_of_times(metadata, tolerance_ms),
    ]


def problems_since(before: Metadata, metadata: Metadata, tolerance_ms: int = 0) -> list[str]:
    """Return what is wrong with what one commit has made of a table's metadata, one line each.

    Args:
        before: the metadata that the commit was made on.
        metadata: the metadata that it has made.
        tolerance_ms: by how much the commit's time may be before the last one.
    """
    if before["table-uuid"] != metadata["table-uuid"]:
        return [f"the table was {before['table-uuid']}, and is {metadata['table-uuid']}"]
    return [
        *_lower_numbers(before, metadata, tolerance_ms),
        *_changed_parts(before, metadata),
        *_fields_that_came_back(before, metadata),
    ]


def _repeated(what: str, values: Iterable[Hashable]) -> list[str]:
    return [f"{what} {value} occurs {n} times" for value, n in Counter(values).items() if n > 1]


def _problems_of_schemas(metadata: Metadata) -> Iterator[str]:
    schemas = metadata["schemas"]
    yield from _repeated("schema id", (schema["schema-id"] for schema in schemas))
    if metadata["current-schema-id"] not in {schema["schema-id"] for schema in schemas}:
        yield f"the current schema {metadata['current-schema-id']} does not exist"
    seen: dict[int, tuple[int, Field]] = {}
    replacements = _schemas_of_replacements(metadata)
    put_back = {field_id for ids in _restored_ids(metadata).values() for field_id in ids}
    is_restored = any(fields for fields, _ in restores(metadata).values())
    names_of: dict[int, set[str]] = {}
    earlier: set[int] = set()
    previous: set[int] = set()
    # A new schema gets the highest id, so this is the order in which they were made; that a restore has made
    # an older one the current one again, and the next was made from it, shows in its record alone.
    for schema in sorted(schemas, key=lambda schema: int(schema["schema-id"])):
        number, found = schema["schema-id"], list(fields(schema))
        names = [(field.parent, field.name) for _, field in found]
        yield from _repeated(f"schema {number}: field id", (field_id for field_id, _ in found))
        yield from _repeated(f"schema {number}: name", names)
        ids = {field_id for field_id, _ in found}
        for field_id in sorted(set(schema.get("identifier-field-ids", ())) - ids):
            yield f"schema {number}: identifier field {field_id} does not exist"
        for field_id, field in found:
            if field_id > metadata["last-column-id"]:
                yield (
                    f"schema {number}: field id {field_id} is above last-column-id "
                    f"{metadata['last-column-id']}"
                )
            is_as_before = (is_restored and field.name in names_of.get(field_id, ())) or field_id in put_back
            names_of.setdefault(field_id, set()).add(field.name)
            if field_id in earlier and field_id not in previous and not is_as_before:
                yield (
                    f"schema {number}: field id {field_id} (`{field.name}`) was dropped before, as "
                    f"`{seen[field_id][1].name}`"
                )
            if field_id in seen and number not in replacements:
                yield from _problems_of_change(field_id, *seen[field_id], number, field)
            seen[field_id] = (number, field)
        earlier |= ids
        previous = ids


def restores(metadata: Metadata) -> dict[int, tuple[list[str], str]]:
    """Return by schema id what `restore_column` has put back under its old id, and by which command.

    As its own record says. A second restore may make a schema the current one again.
    """
    records = {
        int(name.removeprefix("sparkevolve.schema.")): json.loads(text)
        for name, text in metadata.get("properties", {}).items()
        if re.fullmatch(r"sparkevolve\.schema\.[0-9]+", name)
    }
    return {
        number: (entry.get("restored", []), entry.get("restored_by", "")) for number, entry in records.items()
    }


def _restored_ids(metadata: Metadata) -> dict[int, set[int]]:
    """Return by schema id the ids of the fields that `restore_column` has put back, and of those in them."""
    found: dict[int, set[int]] = {}
    of_schemas = {schema["schema-id"]: dict(fields(schema)) for schema in metadata["schemas"]}
    for number, (paths, _) in restores(metadata).items():
        there = of_schemas.get(number, {})
        texts: dict[int | None, str] = {None: ""}
        # A field comes after the one that it is in.
        for field_id, field in there.items():
            quoted = "`" + field.name.replace("`", "``") + "`"
            texts[field_id] = f"{texts[field.parent]}.{quoted}".removeprefix(".")
            if texts[field_id] in paths or field.parent in found.get(number, ()):
                found.setdefault(number, set()).add(field_id)
    return found


def _schemas_of_replacements(metadata: Metadata) -> set[int]:
    """Return the ids of schemas that a CREATE OR REPLACE TABLE may have made.

    It keeps the ids of columns by their names, whatever their types are, since no file of before is read with
    the new schema: its first snapshot has no parent.
    """
    roots = [s for s in metadata.get("snapshots", ()) if s.get("parent-snapshot-id") is None]
    return {root["schema-id"] for root in roots[1:] if root.get("schema-id") is not None}


def _problems_of_change(field_id: int, old_id: int, old: Field, new_id: int, new: Field) -> Iterator[str]:
    if old.parent != new.parent:
        yield f"field id {field_id} is in {old.parent} in schema {old_id}, and in {new.parent} in {new_id}"
    if old.type != new.type and not _is_wider(old.type, new.type):
        yield (
            f"field id {field_id} is {old.type} (`{old.name}`) in schema {old_id}, and {new.type} "
            f"(`{new.name}`) in schema {new_id}"
        )


def _is_wider(old: str, new: str) -> bool:
    """Tell whether a field of one primitive type may become one of the other (spec, "Schema Evolution")."""
    simple = {
        "int": {"long"},
        "float": {"double"},
        "date": {"timestamp", "timestamp_ns"},
    }
    before, after = (re.fullmatch(r"decimal\((\d+),(\d+)\)", text) for text in (old, new))
    if before and after:
        return int(before[1]) < int(after[1]) and before[2] == after[2]
    return old == "unknown" or new in simple.get(old, ())


def _problems_of_specs(metadata: Metadata) -> Iterator[str]:
    specs, orders = metadata["partition-specs"], metadata["sort-orders"]
    yield from _repeated("partition spec id", (spec["spec-id"] for spec in specs))
    yield from _repeated("sort order id", (order["order-id"] for order in orders))
    if metadata["default-spec-id"] not in {spec["spec-id"] for spec in specs}:
        yield f"the default partition spec {metadata['default-spec-id']} does not exist"
    if metadata["default-sort-order-id"] not in {order["order-id"] for order in orders}:
        yield f"the default sort order {metadata['default-sort-order-id']} does not exist"
    current = {
        field_id
        for schema in metadata["schemas"]
        if schema["schema-id"] == metadata["current-schema-id"]
        for field_id, _ in fields(schema)
    }
    for spec in specs:
        for field in spec["fields"]:
            if field["field-id"] > metadata["last-partition-id"]:
                yield f"partition field {field['field-id']} is above last-partition-id"
            lives = field["transform"] != "void" and spec["spec-id"] == metadata["default-spec-id"]
            if lives and field["source-id"] not in current:
                yield f"the table is partitioned by field {field['source-id']}, which does not exist"
        number = spec["spec-id"]
        yield from _repeated(f"spec {number}: partition field id", (f["field-id"] for f in spec["fields"]))
        yield from _repeated(f"spec {number}: name", (field["name"] for field in spec["fields"]))


def _problems_of_snapshots(metadata: Metadata) -> Iterator[str]:
    snapshots = {snapshot["snapshot-id"]: snapshot for snapshot in metadata.get("snapshots", ())}
    yield from _repeated("snapshot", (snapshot["snapshot-id"] for snapshot in metadata.get("snapshots", ())))
    refs = metadata.get("refs") or {}
    for name, ref in refs.items():
        if ref["snapshot-id"] not in snapshots:
            yield f"the {ref['type']} {name} is at snapshot {ref['snapshot-id']}, which does not exist"
    current = metadata.get("current-snapshot-id")
    current = _NOTHING if current is None else current
    main = refs["main"]["snapshot-id"] if "main" in refs else _NOTHING
    if current != main:
        yield f"the current snapshot is {current}, and main is at {main}"
    log = metadata.get("snapshot-log", ())
    if log and current != _NOTHING and log[-1]["snapshot-id"] != current:
        yield f"the snapshot log ends at {log[-1]['snapshot-id']}, and the current snapshot is {current}"
    schema_ids = {schema["schema-id"] for schema in metadata["schemas"]}
    numbers = [snapshot.get("sequence-number", 0) for snapshot in snapshots.values()]
    if metadata["format-version"] > 1:
        if any(later <= earlier for earlier, later in pairwise(numbers)):
            yield f"the sequence numbers of the snapshots do not ascend: {numbers}"
        if max(numbers, default=0) > metadata["last-sequence-number"]:
            yield f"a snapshot has sequence number {max(numbers)}, above last-sequence-number"
    for snapshot_id, snapshot in snapshots.items():
        if snapshot.get("schema-id", metadata["current-schema-id"]) not in schema_ids:
            yield f"snapshot {snapshot_id} has schema {snapshot['schema-id']}, which does not exist"
        parent = snapshots.get(snapshot.get("parent-snapshot-id"))
        if parent and parent["timestamp-ms"] - snapshot["timestamp-ms"] > CLOCK_TOLERANCE_MS:
            yield f"snapshot {snapshot_id} was made before its parent"


def _problems_of_times(metadata: Metadata, tolerance_ms: int) -> Iterator[str]:
    for name in ("snapshot-log", "metadata-log"):
        times = [entry["timestamp-ms"] for entry in metadata.get(name, ())]
        for earlier, later in pairwise(times):
            if later < earlier - tolerance_ms:
                yield f"the {name} is not sorted: {later} comes after {earlier}"
        last = metadata["last-updated-ms"]
        if times and times[-1] - tolerance_ms > last:
            yield f"last-updated-ms {last} is before {times[-1]}, the end of the {name}"


def _lower_numbers(before: Metadata, metadata: Metadata, tolerance_ms: int) -> Iterator[str]:
    for name in (
        *("format-version", "last-column-id", "last-partition-id", "last-sequence-number"),
        *("last-updated-ms", "next-row-id"),
    ):
        old, new = before.get(name, 0), metadata.get(name, 0)
        if new < old - (tolerance_ms if name == "last-updated-ms" else 0):
            yield f"{name} was {old}, and is {new}"


def _changed_parts(before: Metadata, metadata: Metadata) -> Iterator[str]:
    """Yield what has another content under the same id. A schema, a spec, a snapshot never changes."""
    for what, name, key in (
        ("schema", "schemas", "schema-id"),
        ("partition spec", "partition-specs", "spec-id"),
        ("sort order", "sort-orders", "order-id"),
        ("snapshot", "snapshots", "snapshot-id"),
    ):
        old = {part[key]: _content(part) for part in before.get(name, ())}
        for part in metadata.get(name, ()):
            if part[key] in old and old[part[key]] != _content(part):
                yield f"{what} {part[key]} has changed"


def _content(part: Metadata) -> Any:
    if "manifest-list" in part:
        return (part["manifest-list"], part["timestamp-ms"], part.get("sequence-number", 0))
    if "schema-id" in part:
        return (list(fields(part)), part.get("identifier-field-ids", []))
    return part


def _fields_that_came_back(before: Metadata, metadata: Metadata) -> Iterator[str]:
    """Yield each field with an id that was given out before, to a field that is no longer there."""
    known = {schema["schema-id"] for schema in before["schemas"]}
    current = before["current-schema-id"]
    there = {
        field_id
        for schema in before["schemas"]
        if schema["schema-id"] == current
        for field_id, _ in fields(schema)
    }
    for schema in metadata["schemas"]:
        number = schema["schema-id"]
        if number in known and number != metadata["current-schema-id"]:
            continue
        was_restored = restores(before).get(number) != restores(metadata).get(number)
        put_back = _restored_ids(metadata).get(number, set()) if was_restored else set()
        for field_id, field in fields(schema):
            if field_id not in there | put_back and field_id <= before["last-column-id"]:
                yield (
                    f"schema {number}: `{field.name}` has field id {field_id}, which is not new, and no "
                    f"field had it just before"
                )
