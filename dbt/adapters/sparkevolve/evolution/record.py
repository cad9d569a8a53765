"""The record of schema commits that this adapter keeps in a table's properties, bounded in size."""

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from pyiceberg.schema import Schema
from pyiceberg.types import NestedField

from dbt.adapters.sparkevolve.evolution.changes import SchemaChange
from dbt.adapters.sparkevolve.evolution.names import Path, path_text
from dbt.adapters.sparkevolve.evolution.types import fields_within, type_text

PREFIX = "sparkevolve.schema."
OWN_DEFAULTS = "sparkevolve.defaults"
"""The property with the ids of the columns whose default a run has set, and may remove."""
# Of the run that has replaced a table, with whatever schema that has made.
REPLACED = "sparkevolve.replaced"
# Of the dead letters that the last commit of a replay has loaded.
REPLAYED = "sparkevolve.replayed"
# Stands for the notes of a plan that the user was told of.
TOLD = "sparkevolve.told"
# Metadata files carry all properties: each entry is read and written again by every later commit.
MOST_ENTRIES = 50
_LONGEST_ENTRY = 4000
_PLAIN = ("invocation_id", "at", "source", "restored_by", "restored_at")


@dataclass(frozen=True)
class Entry:
    """What one schema commit did.

    Attributes:
        schema_id: the schema that it made.
        changes: texts of the changes by what they did: added, widened, relaxed, renamed, described,
            restored; and what the batch lacked: padded.
        invocation_id: of the dbt command.
        at: when, in ISO 8601, UTC.
        source: fingerprint of what the model returned, see ``fingerprint``.
        restored_by: the dbt command that put a dropped field back, and so made the schema the current one.
        restored_at: when that was.
    """

    schema_id: int
    changes: Mapping[str, Sequence[str]] = field(default_factory=dict)
    invocation_id: str = ""
    at: str = ""
    source: str = ""
    restored_by: str = ""
    restored_at: str = ""


def told(notes: Sequence[str], properties: Mapping[str, str]) -> dict[str, str | None]:
    """Return what of a table's properties changes when a user is told of notes; nothing if that was done.

    Args:
        notes: texts; empty if there is nothing to be said any more.
        properties: the table's.
    """
    digest = hashlib.sha256(json.dumps(list(notes)).encode()).hexdigest()[:16] if notes else None
    return {} if properties.get(TOLD) == digest else {TOLD: digest}


def fingerprint(source: Schema) -> str:
    """Return a short text that is equal for two sources with the same names and types in the same order."""
    return fingerprint_of((f.name, type_text(f.field_type)) for f in source.fields)


def fingerprint_of(columns: Iterable[tuple[str, str]]) -> str:
    """Return the fingerprint of columns by their names and types, the latter as ``type_text`` writes them."""
    text = json.dumps(list(columns))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def new_properties(
    schema_id: int,
    changes: Sequence[SchemaChange],
    invocation_id: str,
    at: str,
    source: str,
    padded: Sequence[Path] = (),
) -> dict[str, str]:
    """Return the property that records a commit; the texts of a huge one are cut to their number."""
    by_verb: dict[str, list[str]] = {}
    for change in changes:
        by_verb.setdefault(change.verb, []).append(path_text(change.path))
    if padded:
        by_verb["padded"] = [path_text(path) for path in padded]
    entry = {**by_verb, "invocation_id": invocation_id, "at": at, "source": source}
    text = json.dumps(entry, ensure_ascii=False, sort_keys=True)
    if len(text) > _LONGEST_ENTRY:
        counted = {verb: [f"{len(texts)} fields"] for verb, texts in by_verb.items()}
        text = json.dumps(
            {**counted, "invocation_id": invocation_id, "at": at, "source": source}, sort_keys=True
        )
    return {f"{PREFIX}{schema_id}": text}


def renumbered(properties: Mapping[str, str], schema_id: int, actual_id: int) -> dict[str, str]:
    """Return properties in which the entry of a schema is that of the id which the schema has got instead."""
    planned, actual = f"{PREFIX}{schema_id}", f"{PREFIX}{actual_id}"
    found = {actual if name == planned else name: value for name, value in properties.items()}
    if actual in found and LOOKED_AT in found:
        # It says after which entry it was made: otherwise it counts no more.
        looked = json.loads(found[LOOKED_AT])
        ids = {key: actual_id if value == schema_id else value for key, value in looked.items()}
        found[LOOKED_AT] = json.dumps(ids, sort_keys=True)
    return found


def restored(
    properties: Mapping[str, str], schema_id: int, path: str, invocation_id: str, at: str
) -> dict[str, str]:
    """Return the property that records that a dropped field was put back.

    Args:
        properties: the table's.
        schema_id: the schema that has it; one that the table has had before keeps its record.
        path: the path of the field, as a person reads it.
        invocation_id: of the dbt command.
        at: when.
    """
    name = f"{PREFIX}{schema_id}"
    try:
        entry = json.loads(properties.get(name, "{}"))
    except ValueError:
        entry = {}
    if not isinstance(entry, dict):
        entry = {}
    known = {"invocation_id": invocation_id, "at": at, "source": "", **entry}
    known |= {"restored": [path], "restored_by": invocation_id, "restored_at": at}
    return {name: json.dumps(known, ensure_ascii=False, sort_keys=True)}


def creation_properties(
    columns: Sequence[tuple[str, str]], invocation_id: str, at: str, *, is_replacing: bool
) -> dict[str, str]:
    """Return the property that records, in the statement that makes a table, where its schema comes from.

    Args:
        columns: the names and types of the query's columns; empty if they were not asked for.
        invocation_id: of the dbt command.
        at: when, in ISO 8601, UTC.
        is_replacing: whether there is a table already: then the id of the schema is not known before.
    """
    entry: dict[str, Any] = {"invocation_id": invocation_id, "at": at}
    if columns:
        entry |= {"created": [path_text((name,)) for name, _ in columns], "source": fingerprint_of(columns)}
    text = json.dumps(entry, ensure_ascii=False, sort_keys=True)
    if len(text) > _LONGEST_ENTRY:
        text = json.dumps({**entry, "created": [f"{len(columns)} fields"]}, sort_keys=True)
    # There are settings under which Spark has no literal for a quote, or for what looks like a variable.
    text = text.replace("'", "\\u0027").replace("$", "\\u0024")
    return {REPLACED if is_replacing else f"{PREFIX}0": text}


def read_with_replaced(properties: Mapping[str, str], schemas: Iterable[Schema]) -> dict[int, Entry]:
    """Return what ``read`` does, and of which schema the entry of a table's last replacement is.

    That is the newest one with the columns that the table was replaced by.
    """
    entries = read(properties)
    replaced = replacement(properties.get(REPLACED, ""))
    if replaced is not None and replaced.source:
        found = [schema.schema_id for schema in schemas if fingerprint(schema) == replaced.source]
        if found and max(found) not in entries:
            entries[max(found)] = replace(replaced, schema_id=max(found))
    return entries


def replacement(text: str) -> Entry | None:
    """Return the entry of a table's replacement, from the text of ``REPLACED``; None if there is none.

    Which schema the replacement has made is not in it.
    """
    return _entry(-1, text) if text else None


def is_replaced_by(properties: Mapping[str, str], invocation_id: str) -> bool:
    """Tell whether a dbt command has replaced the table, as the last one that did."""
    entry = replacement(properties.get(REPLACED, ""))
    return entry is not None and bool(invocation_id) and entry.invocation_id == invocation_id


def outdated_properties(properties: Mapping[str, str]) -> tuple[str, ...]:
    """Return the names of the oldest entries, so many that one more has room."""
    ids = sorted(int(name[len(PREFIX) :]) for name in properties if _is_entry(name))
    return tuple(f"{PREFIX}{schema_id}" for schema_id in ids[: max(0, len(ids) - MOST_ENTRIES + 1)])


def read(properties: Mapping[str, str]) -> dict[int, Entry]:
    """Return the entries by schema id; one that somebody has spoiled is left out."""
    entries: dict[int, Entry] = {}
    for name, text in properties.items():
        if _is_entry(name):
            schema_id = int(name[len(PREFIX) :])
            entry = _entry(schema_id, text)
            if entry is not None:
                entries[schema_id] = entry
    return entries


def own_defaults(properties: Mapping[str, str]) -> frozenset[int]:
    """Return the ids of the columns whose default a run has set; none if somebody has spoiled the list."""
    try:
        ids = json.loads(properties.get(OWN_DEFAULTS, "[]"))
    except ValueError:
        return frozenset()
    return frozenset(i for i in ids if isinstance(i, int)) if isinstance(ids, list) else frozenset()


def changed_defaults(properties: Mapping[str, str], old: Schema, new: Schema) -> str | None:
    """Return the property ``OWN_DEFAULTS`` as it is after a commit of ours; None if that changes nothing."""
    own = own_defaults(properties)
    before = {field_id: f.write_default for field_id, f in _fields_by_id(old).items()}
    after = {field_id: f.write_default for field_id, f in _fields_by_id(new).items()}
    changed = {i for i, default in after.items() if default != before.get(i)}
    # One that somebody has dropped stays: no other field gets its id, and a restore brings the default back.
    gone = {i for i in own if i not in after}
    has = gone | {i for i in (own | changed) if after.get(i) is not None}
    return json.dumps(sorted(has)) if has != own else None


def _fields_by_id(schema: Schema) -> dict[int, NestedField]:
    return {f.field_id: f for _, f in fields_within(schema.as_struct())}


LOOKED_AT = "sparkevolve.looked-at"


def looked_at(properties: Mapping[str, str], schema_id: int) -> tuple[str, str]:
    """Return the property that says that a run has looked at a schema, and told what others had changed."""
    text = json.dumps({"schema": schema_id, "after": _newest(properties)}, sort_keys=True)
    return LOOKED_AT, text


def known_schema_id(properties: Mapping[str, str]) -> int | None:
    """Return the id of the schema that a run has made or looked at last; None if nothing is recorded."""
    newest = _newest(properties)
    try:
        told = json.loads(properties.get(LOOKED_AT, "{}"))
        if told and told["after"] == newest:
            return int(told["schema"])
    except (ValueError, TypeError, KeyError):
        pass  # somebody has spoiled it
    return newest


def is_known(properties: Mapping[str, str], schemas: Iterable[Schema], schema_id: int) -> bool:
    """Tell whether a schema is the one that a run has made or looked at last, or the table's first one."""
    listed = list(schemas)
    known = known_schema_id(properties)
    if known is None:
        # Whoever has made the table has given the names.
        known = min(schema.schema_id for schema in listed)
    return schema_id == known or schema_id in read_with_replaced(properties, listed)


def untold(properties: Mapping[str, str], schemas: Iterable[Schema], schema_id: int) -> int | None:
    """Return the id of the schema up to which all is told, if others have changed a known one since.

    Such as one that a restore has made, or an older one that others have gone back to. What records a commit
    on top of it says that it was made after that schema, and nothing of the time between is lost.

    Args:
        properties: the table's.
        schemas: all of the table.
        schema_id: the current one's.
    """
    listed = list(schemas)
    known = known_schema_id(properties)
    if known is None or schema_id == known or schema_id not in read(properties):
        return None
    return known if any(schema.schema_id == known for schema in listed) else None


def _newest(properties: Mapping[str, str]) -> int | None:
    """Return the highest id of a schema that has an entry."""
    return max((int(name[len(PREFIX) :]) for name in properties if _is_entry(name)), default=None)


def _entry(schema_id: int, text: str) -> Entry | None:
    try:
        values = json.loads(text)
    except ValueError:
        return None
    if not isinstance(values, dict):
        return None
    changes = {verb: tuple(map(str, v)) for verb, v in values.items() if isinstance(v, list)}
    plain = {key: str(values.get(key, "")) for key in _PLAIN}
    return Entry(schema_id, changes, **plain)


def _is_entry(name: str) -> bool:
    number = name.removeprefix(PREFIX)
    return name != number and number.isascii() and number.isdigit()
