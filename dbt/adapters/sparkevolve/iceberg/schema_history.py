"""All schemas that a table has had, when, and by which run."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from functools import cache
from itertools import pairwise
from typing import Any, NamedTuple

from pyiceberg.schema import Schema, index_by_id
from pyiceberg.table import Table
from pyiceberg.types import NestedField

from dbt.adapters.sparkevolve.evolution import record, shapes
from dbt.adapters.sparkevolve.evolution.history import (
    EarlierMeaning,
    FormerName,
    default_text,
    earlier_meanings,
    former_names,
    lacks_fields,
    removed_before,
    schema_changes,
)
from dbt.adapters.sparkevolve.evolution.types import type_text
from dbt.adapters.sparkevolve.iceberg import older_metadata
from dbt.adapters.sparkevolve.times import iso_of

# Instead of the id of a schema that the table does not have any more.
_REMOVED = -1
# What is told of a schema once, and not again when it comes back.
_OF_ITS_FIRST_TIME = ("shapes", "padded", "removed_before")


def schema_history(table: Table) -> list[dict[str, Any]]:
    """Return all schemas that a table has had, oldest first; see the adapter's method of this name."""
    others = list(shapes.read(table.properties).values())
    sightings = _sightings(table)
    recorded = record.read(table.properties)
    for schema_id, replaced in record.read_with_replaced(table.properties, table.metadata.schemas).items():
        if not _was_there(schema_id, sightings):
            recorded.setdefault(schema_id, replaced)
    for schema_id, replaced in _replacements(sightings):
        recorded.setdefault(schema_id, replaced)
    first_seen = _first_seen(table, sightings)
    history: list[dict[str, Any]] = []
    previous: Schema | None = None
    known: set[int] = set()
    for schema in sorted(table.metadata.schemas, key=lambda schema: schema.schema_id):
        entry = recorded.get(schema.schema_id)
        seen_ms = first_seen.get(schema.schema_id)
        history.append(
            {
                "schema_id": schema.schema_id,
                "is_current": schema.schema_id == table.metadata.current_schema_id,
                "at": entry.at if entry else (iso_of(seen_ms) or "") if seen_ms else "",
                "invocation_id": entry.invocation_id if entry else "",
                "source": _source(entry, schema),
                "changes": [*schema_changes(previous, schema, known), *_put_back(entry)],
                "columns": [_column(f) for f in schema.fields],
            }
        )
        gone = removed_before(previous, schema)
        if gone:
            history[-1]["removed_before"] = gone
        if entry is not None and "padded" in entry.changes:
            history[-1]["padded"] = list(entry.changes["padded"])
        also = [shape for shape in others if shape.schema_id == schema.schema_id]
        found = [shape for shape in also if shape.source != history[-1]["source"]]
        if found:
            history[-1]["shapes"] = [
                {
                    "source": shape.source,
                    "at": shape.at,
                    "invocation_id": shape.invocation_id,
                    "padded": list(shape.padded),
                }
                for shape in found
            ]
        previous = schema
        known |= index_by_id(schema).keys()
    current = table.schema()
    if previous is not None and previous.schema_id != current.schema_id:
        # Dropping what the newest schema added brings the one before it back, under its old id. So does a
        # restore of what the newest one lacks, and then it is known who did it.
        back = next(entry for entry in history if entry["is_current"])
        since_ms = _current_since(table, sightings)
        restored = recorded.get(current.schema_id)
        if restored is None or not _is_since_restore(restored, current.schema_id, sightings):
            restored = record.Entry(current.schema_id)
        back["changes"] = [change for change in back["changes"] if change not in _put_back(restored)]
        history.append(
            {
                **{key: value for key, value in back.items() if key not in _OF_ITS_FIRST_TIME},
                "at": restored.restored_at or iso_of(since_ms) or "",
                "invocation_id": restored.restored_by,
                "source": "",
                "changes": list(schema_changes(previous, current, known)),
            }
        )
        back["is_current"] = False
    return history


def _column(f: NestedField) -> dict[str, Any]:
    default = default_text(f)
    column = {"id": f.field_id, "name": f.name, "type": type_text(f.field_type)}
    return {**column, "default": default} if default else column


def _is_since_restore(entry: record.Entry, schema_id: int, sightings: "list[_Sighting]") -> bool:
    """Tell whether a schema is the current one since a restore: others may have left it, and come back.

    Times do not tell: a commit that moves no branch has the time of the one before it.
    """
    others = [sighting for sighting in sightings if sighting.schema_id != schema_id]
    if not entry.restored_at or not others:
        return bool(entry.restored_at)
    before = record.read({f"{record.PREFIX}{schema_id}": others[-1].record}).get(schema_id)
    return before is None or (before.restored_at, before.restored_by) != (
        entry.restored_at,
        entry.restored_by,
    )


def _put_back(entry: record.Entry | None) -> list[str]:
    """Return what to say of a schema that was there before a restore made it the current one again."""
    if entry is None or not entry.restored_at:
        return []
    if (entry.restored_at, entry.restored_by) == (entry.at, entry.invocation_id):
        return []  # the restore made this schema
    fields = ", ".join(entry.changes.get("restored", ()))
    return [f"again since {entry.restored_at}, when dbt run {entry.restored_by} restored {fields}"]


def since(table: Table, schema_id: int, newest_before: int) -> str:
    """Return since when a schema is known to be the current one, in ISO 8601; empty if nobody knows.

    Args:
        table: the table.
        schema_id: the schema.
        newest_before: the id of a schema that came before it. A lower id than that has come back.
    """
    sightings = _sightings(table)
    if schema_id == table.metadata.current_schema_id and schema_id < newest_before:
        return iso_of(_current_since(table, sightings)) or ""
    seen_ms = _first_seen(table, sightings).get(schema_id)
    return (iso_of(seen_ms) or "") if seen_ms else ""


class NameUse(NamedTuple):
    """A name that a field had before.

    Attributes:
        parent: the field whose struct it is in; None for the table's own.
        name: the name, in lower case.
        field_id: the field's id.
        until_ms: until when it is known to have had the name, in milliseconds since the epoch: a value that
            was written down by the name before that is the field's. 0 if it is not known of any time.
        is_exact: whether it never had the name from then on, and not only nobody knows.
    """

    parent: int | None
    name: str
    field_id: int
    until_ms: int = 0
    is_exact: bool = False


class NamesOverTime(NamedTuple):
    """What is known of the names that the fields of a table have had.

    Attributes:
        meanings: what fields' names have meant before, and until when, in milliseconds since the epoch, by
            the field's id. Where nobody knows until when, it is until now.
        former: the names that fields had before.
        complete_ms: since when all schemas are known, in milliseconds since the epoch; 0 for always.
    """

    meanings: dict[int, tuple[EarlierMeaning, int]]
    former: list[NameUse]
    complete_ms: int


def names_over_time(table: Table) -> NamesOverTime:
    """Return what a table knows of the names that its fields have had."""
    metadata = table.metadata
    meanings = earlier_meanings(metadata.schemas, metadata.schema())
    former = former_names(metadata.schemas, metadata.schema())
    sightings = _sightings(table)
    seen = _first_seen(table, sightings)
    complete_ms = _complete_since(table, sightings, seen)
    if any(meaning.since_schema_id == metadata.current_schema_id for meaning in meanings.values()):
        # It may have been there before, and come back.
        seen[metadata.current_schema_id] = _current_since(table, sightings)
    until = {
        field_id: max(
            seen.get(meaning.since_schema_id, metadata.last_updated_ms),
            _seen_after(table, sightings, meaning.other_schema_ids),
        )
        for field_id, meaning in meanings.items()
    }
    return NamesOverTime(
        {field_id: (meaning, until[field_id]) for field_id, meaning in meanings.items()},
        [
            NameUse(n.parent, n.name, n.field_id, *_known_until(table, sightings, n))
            if n.is_first
            else NameUse(n.parent, n.name, n.field_id)
            for n in former
        ],
        complete_ms,
    )


def _complete_since(table: Table, sightings: "list[_Sighting]", seen: Mapping[int, int]) -> int:
    """Return since when all schemas of a table are known, in milliseconds since the epoch; 0 for always.

    A schema that was removed leaves a gap among the ids, unless an older one was the current one again by
    then, since that has its old id. What it has left else tells of it then: a metadata file, its record, or
    the ids of fields.
    """
    metadata = table.metadata
    ids = {schema.schema_id for schema in metadata.schemas}
    oldest = max(ids)
    while oldest - 1 in ids:
        oldest -= 1
    complete_ms = seen.get(oldest, metadata.last_updated_ms) if oldest else 0
    recorded = record.read(metadata.properties).keys() - ids
    after = max((n + 1 for n, s in enumerate(sightings) if s.schema_id == _REMOVED), default=0)
    lacks = lacks_fields(metadata.schemas, oldest, metadata.last_column_id)
    if after or lacks or any(schema_id > oldest for schema_id in recorded):
        # While files are missing, any of those may have been the current one.
        after = max(after, max(n for n, s in enumerate(sightings) if not s.follows))
        complete_ms = max(complete_ms, sightings[after].at_ms)
    return complete_ms


def _seen_after(table: Table, sightings: "list[_Sighting]", schema_ids: Collection[int]) -> int:
    """Return when another schema is first seen after the last time that one of some was the current one."""
    snapshots = ((s.timestamp_ms, 0, s.schema_id) for s in table.metadata.snapshots)
    seen = sorted([*snapshots, *((s.at_ms, 1, s.schema_id) for s in sightings)], key=lambda s: s[:2])
    last = max((n for n, (_, _, schema_id) in enumerate(seen) if schema_id in schema_ids), default=None)
    if last is None:
        return 0
    return seen[last + 1][0] if last + 1 < len(seen) else table.metadata.last_updated_ms


def _known_until(table: Table, sightings: "list[_Sighting]", former: FormerName) -> tuple[int, bool]:
    """Return until when a field had a name the first time, and whether that is all of it.

    If another one is known to have had it before that, a schema has come back whose first time is not known.
    """
    schema_ids, others = former.schema_ids, former.other_schema_ids
    for place, (sighting, following) in enumerate(pairwise(sightings)):
        if sighting.schema_id in schema_ids and following.schema_id not in schema_ids:
            if others & sighting.schema_ids:
                return 0, False
            come_back = any(later.schema_id in schema_ids for later in sightings[place + 1 :])
            return (following.at_ms, not come_back) if following.follows else (sighting.at_ms, False)
    known = 0
    for snapshot in sorted(table.metadata.snapshots, key=lambda s: s.timestamp_ms):
        if snapshot.schema_id in schema_ids:
            known = snapshot.timestamp_ms
        elif known or snapshot.schema_id in others:
            break  # They may have come back.
    return known, False


class _Sighting(NamedTuple):
    """What a metadata file says of its current schema.

    Attributes:
        schema_id: its id; ``_REMOVED`` if the table does not have it any more.
        at_ms: the file's time, in milliseconds since the epoch.
        record: what the file's properties record of the schema that is the current one now.
        replaced: what they record of the table's last replacement.
        follows: whether the file before it is there, too.
        schema_ids: the ids of all schemas that it has.
    """

    schema_id: int
    at_ms: int
    record: str
    replaced: str = ""
    follows: bool = False
    schema_ids: frozenset[int] = frozenset()


def _sightings(table: Table) -> list[_Sighting]:
    """Return what each metadata file that is still there says of its current schema, oldest first."""
    metadata = table.metadata
    name = f"{record.PREFIX}{metadata.current_schema_id}"
    known = {schema.schema_id: schema for schema in metadata.schemas}
    names = cache(lambda schema_id: set(_names_in(known[schema_id].model_dump(mode="json", by_alias=True))))
    found: list[_Sighting] = []
    follows = False
    log = metadata.metadata_log
    for entry, older in zip(log, older_metadata.read_all(table, log), strict=True):
        if older is None:
            follows = False
            continue  # removed by maintenance
        properties = older.get("properties") or {}
        # Format version 1 had one schema, and no ids.
        schema_id = older.get("current-schema-id", 0)
        schemas = {schema.get("schema-id", 0): schema for schema in older.get("schemas") or [{}]}
        was = schemas.get(schema_id) or older.get("schema")
        # The id of one that was removed may be another one's by now.
        if schema_id not in known or (was and set(_names_in(was)) != names(schema_id)):
            schema_id = _REMOVED
        texts = (properties.get(name, ""), properties.get(record.REPLACED, ""))
        found.append(_Sighting(schema_id, entry.timestamp_ms, *texts, follows, frozenset(schemas)))
        follows = True
    now = (metadata.properties.get(name, ""), metadata.properties.get(record.REPLACED, ""))
    return [*found, _Sighting(metadata.current_schema_id, metadata.last_updated_ms, *now, follows)]


def _names_in(type_: Any, parent: int | None = None) -> Iterator[tuple[int | None, int, str]]:
    """Yield the fields of all structs in a type, as JSON has it: in which field, and their ids and names."""
    if not isinstance(type_, Mapping):
        return
    for f in type_.get("fields", ()):
        yield parent, f["id"], f["name"]
        yield from _names_in(f["type"], f["id"])
    for part in ("element", "key", "value"):
        yield from _names_in(type_.get(part), type_.get(f"{part}-id"))


def _replacements(sightings: list[_Sighting]) -> Iterator[tuple[int, record.Entry]]:
    """Yield which schemas dbt runs have made that replaced the table: each file with a text that is new.

    Of columns that the table has, or once had, the schema is that of these, which somebody has made before.
    """
    for before, now in pairwise(sightings):
        is_new = now.schema_id not in before.schema_ids
        if now.follows and is_new and now.replaced != before.replaced:
            entry = record.replacement(now.replaced)
            if entry is not None:
                yield now.schema_id, replace(entry, schema_id=now.schema_id)


def _was_there(schema_id: int, sightings: list[_Sighting]) -> bool:
    """Tell whether a file from before the table's last replacement has a schema."""
    last = sightings[-1].replaced
    return any(schema_id in sighting.schema_ids for sighting in sightings if sighting.replaced != last)


def _current_since(table: Table, sightings: list[_Sighting]) -> int:
    """Return since when the current schema is known to be it, this time."""
    since = table.metadata.last_updated_ms
    for sighting in reversed(sightings):
        if sighting.schema_id != table.metadata.current_schema_id:
            break
        since = sighting.at_ms
    return since


def _first_seen(table: Table, sightings: list[_Sighting]) -> dict[int, int]:
    """Return when each schema is first seen as the current one, in milliseconds since the epoch.

    Read from the older metadata files that the table still lists, and from its snapshots; for a schema that
    neither knows any more there is no answer.
    """
    seen: dict[int, int] = {}
    for sighting in sightings:
        seen.setdefault(sighting.schema_id, sighting.at_ms)
    for snapshot in table.metadata.snapshots:
        if snapshot.schema_id is not None:
            known = seen.get(snapshot.schema_id, snapshot.timestamp_ms)
            seen[snapshot.schema_id] = min(known, snapshot.timestamp_ms)
    return seen


def _source(entry: record.Entry | None, schema: Schema) -> str:
    """Return the fingerprint of what a schema came from; empty if it is not known."""
    if entry is None or entry.source or entry.changes:
        return entry.source if entry is not None else ""
    # The table was made without asking for its query's columns, so they are its own.
    return record.fingerprint(schema)
