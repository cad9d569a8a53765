"""The life of each field of a table: in which schemas it was there, and what changed in it."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from pyiceberg.schema import Schema
from pyiceberg.types import NestedField

from dbt.adapters.sparkevolve.evolution.history import FieldChange, field_changes, removed_before
from dbt.adapters.sparkevolve.evolution.names import Path, path_text
from dbt.adapters.sparkevolve.evolution.types import fields_within, type_text


@dataclass(frozen=True)
class Mark:
    """Something that happened to a field.

    Attributes:
        place: the place of the schema in the row of all schemas, from 0.
        kind: one of ``FieldChange``, created, padded, or oldest: in the oldest schema that is left.
        text: what to say of it.
    """

    place: int
    kind: str
    text: str


@dataclass
class Lane:
    """One field, which keeps its id whatever it is called.

    Attributes:
        field_id: its id.
        path: its names from the column down, as they are now, or were when it was there last.
        type: its type then.
        parent: the id of the field that it is in; None of a column.
        spans: the first and the last place of each time that it was there.
        marks: what happened to it, oldest first.
        names: the names that it has had, the oldest first.
    """

    field_id: int
    path: Path
    type: str
    parent: int | None
    spans: list[tuple[int, int]] = field(default_factory=list)
    marks: list[Mark] = field(default_factory=list)
    names: list[str] = field(default_factory=list)


def lanes(schemas: Sequence[Schema], padded: Mapping[int, Sequence[str]]) -> list[Lane]:
    """Return the lanes of a table: columns as they stand in its last schema, fields below what they are in.

    What the last schema lacks comes after what it has, in the order of ids.

    Args:
        schemas: those that the table has had, oldest first; one that came back stands there again.
        padded: paths that batches lacked, by the place of the schema that they were loaded into, as
            ``path_text`` writes them.
    """
    found: dict[int, Lane] = {}
    previous: Schema | None = None
    for place, schema in enumerate(schemas):
        here = {f.field_id: (path, f) for path, f in fields_within(schema.as_struct())}
        ids = {path: field_id for field_id, (path, _) in here.items()}
        changes = list(_changes(previous, schema, set(found)))
        for field_id, (path, f) in here.items():
            lane = found.setdefault(field_id, Lane(field_id, path, "", ids.get(path[:-1])))
            lane.path, lane.type = path, type_text(f.field_type)
            if f.name not in lane.names:
                lane.names.append(f.name)
            if lane.spans and lane.spans[-1][1] == place - 1:
                lane.spans[-1] = (lane.spans[-1][0], place)
            else:
                lane.spans.append((place, place))
        for change in changes:
            found[change.field_id].marks.append(Mark(place, change.kind, change.text))
        by_text = {path_text(path): field_id for path, field_id in ids.items()}
        for text in padded.get(place, ()):
            if text in by_text:
                said = f"the batch had no {text}: padded"
                found[by_text[text]].marks.append(Mark(place, "padded", said))
        previous = schema
    return list(_ordered(found, schemas[-1])) if schemas else []


def _changes(previous: Schema | None, schema: Schema, known: set[int]) -> Iterator[FieldChange]:
    if previous is not None:
        yield from field_changes(previous, schema, known)
        return
    kind, said = "created", "created with"
    if removed_before(None, schema):
        kind, said = "oldest", "in the oldest schema that is left:"
    for path, f in fields_within(schema.as_struct()):
        yield FieldChange(kind, f.field_id, f"{said} {path_text(path)} {_typed(f)}")


def _typed(f: NestedField) -> str:
    return f"({f.field_id}) {type_text(f.field_type)}"


def _ordered(found: Mapping[int, Lane], last: Schema) -> Iterator[Lane]:
    now = [f.field_id for _, f in fields_within(last.as_struct())]
    order = [*now, *sorted(set(found) - set(now))]
    inside: dict[int | None, list[Lane]] = {}
    for field_id in order:
        inside.setdefault(found[field_id].parent, []).append(found[field_id])
    waiting = list(reversed(inside.get(None, [])))
    while waiting:
        lane = waiting.pop()
        yield lane
        waiting.extend(reversed(inside.get(lane.field_id, [])))
