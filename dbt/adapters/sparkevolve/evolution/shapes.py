"""The shapes of batches that a table has been loaded from: which are known, and what was decided of them.

A shape is the names and types that a model returns, in their order; its fingerprint stands for it.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from pyiceberg.schema import Schema
from pyiceberg.types import IcebergType, MapType

from dbt.adapters.sparkevolve.evolution import record
from dbt.adapters.sparkevolve.evolution.names import fold
from dbt.adapters.sparkevolve.evolution.plan import EvolutionPlan
from dbt.adapters.sparkevolve.evolution.projection import Keep, Pad, ProjectedColumn
from dbt.adapters.sparkevolve.evolution.types import children, has_spark_type, spark_type

PREFIX = "sparkevolve.shape."
# As of the record of schemas: each commit writes all properties again.
MOST_SHAPES = 20
_LONGEST_LIST = 2000


@dataclass(frozen=True)
class Shape:
    """A shape that needed no change of its table's schema.

    Attributes:
        source: its fingerprint.
        schema_id: the schema that the table had when a batch of this shape was first loaded.
        at: when that was, in ISO 8601, UTC.
        invocation_id: of the dbt command that loaded it.
        decided: stands for everything that its plan followed from, see ``decision``; empty if the plan was
            more than a list of names.
        padded: the columns and fields of that schema which the shape lacks, as a person reads them.
    """

    source: str
    schema_id: int
    at: str = ""
    invocation_id: str = ""
    decided: str = ""
    padded: tuple[str, ...] = ()

    @property
    def properties(self) -> dict[str, str]:
        """The property that records it."""
        values: dict[str, object] = {
            "schema_id": self.schema_id,
            "at": self.at,
            "invocation_id": self.invocation_id,
            "decided": self.decided,
        }
        if self.padded:
            is_long = sum(map(len, self.padded)) > _LONGEST_LIST
            values["padded"] = [f"{len(self.padded)} fields"] if is_long else self.padded
        return {f"{PREFIX}{self.source}": json.dumps(values, sort_keys=True)}


def read(properties: Mapping[str, str]) -> dict[str, Shape]:
    """Return the shapes by fingerprint, the oldest first; one that somebody has spoiled is left out."""
    found: list[Shape] = []
    for name, text in properties.items():
        if not name.startswith(PREFIX):
            continue
        try:
            values = json.loads(text)
            plain = {key: str(values.get(key, "")) for key in ("at", "invocation_id", "decided")}
            padded = tuple(map(str, values.get("padded", ())))
            source = name.removeprefix(PREFIX)
            found.append(Shape(source, int(values["schema_id"]), padded=padded, **plain))
        except (ValueError, TypeError, KeyError, AttributeError):
            continue
    return {shape.source: shape for shape in sorted(found, key=lambda shape: (shape.at, shape.source))}


def outdated_properties(properties: Mapping[str, str], source: str) -> tuple[str, ...]:
    """Return the names of the oldest entries, so many that one more of ``source`` has room."""
    others = [name for name in read(properties) if name != source]
    return tuple(f"{PREFIX}{name}" for name in others[: max(0, len(others) - MOST_SHAPES + 1)])


def decision(*inputs: object) -> str:
    """Return a short text that is equal for equal inputs of a plan only."""
    text = json.dumps(inputs, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def is_plain(plan: EvolutionPlan, target: Schema, source: Schema, unique_key: Iterable[str]) -> bool:
    """Tell whether a plan is what ``plain_plan`` returns: which column goes where, and what is NULL."""
    if _has_required(target.as_struct()):
        # Whether these can stay so depends on the rows.
        return False
    if not all(has_spark_type(f.field_type) for f in target.fields):
        return False
    return plan == plain_plan(target, source, unique_key)


def _has_required(type_: IcebergType) -> bool:
    # Keys of a map are always required, by the spec.
    return any(
        (child.required and not (isinstance(type_, MapType) and child.field_id == type_.key_id))
        or _has_required(child.field_type)
        for child in children(type_)
    )


def plain_plan(target: Schema, source: Schema, unique_key: Iterable[str]) -> EvolutionPlan:
    """Return the plan for a batch whose columns are known to go as they are into those of a table.

    Args:
        target: the table's schema.
        source: the batch's.
        unique_key: the columns by which rows are replaced, in any case.
    """
    returned = {fold(f.name): f.name for f in source.fields}
    columns = []
    for f in target.fields:
        name = returned.get(fold(f.name))
        projection = Keep() if name is not None else Pad(spark_type(f.field_type))
        columns.append(ProjectedColumn(f.name, name, projection))
    spelled = {fold(f.name): f.name for f in target.fields}
    return EvolutionPlan(
        columns=tuple(columns),
        unique_key=tuple(spelled[fold(key)] for key in unique_key),
        removed=tuple((f.name,) for f in target.fields if fold(f.name) not in returned),
    )


def older(
    source: str, current: Schema, schemas: Iterable[Schema], properties: Mapping[str, str]
) -> tuple[int, str] | None:
    """Return of which other schema than the current one a batch has the columns, and since when that is.

    Args:
        source: the fingerprint of the batch.
        current: the table's current schema.
        schemas: all that it has had.
        properties: the table's.

    Returns:
        The schema's id and its time, empty if that is not known; None if the batch is as new as the table.
    """
    known = list(schemas)
    entries = record.read_with_replaced(properties, known)
    if source in (record.fingerprint(current), entries.get(current.schema_id, record.Entry(-1)).source):
        return None
    found = {schema.schema_id for schema in known if record.fingerprint(schema) == source}
    found |= {schema_id for schema_id, entry in entries.items() if entry.source == source}
    found.discard(current.schema_id)
    if found:
        newest = max(found)
        return newest, entries[newest].at if newest in entries else ""
    shape = read(properties).get(source)
    if shape is None or shape.schema_id == current.schema_id:
        return None
    return shape.schema_id, shape.at


def older_text(schema_id: int, at: str, padded: Iterable[str], kept: Iterable[str], current_id: int) -> str:
    """Return what to say of a batch that has the columns of an older schema.

    Args:
        schema_id: that schema's id.
        at: when it was made; empty if that is not known.
        padded: the columns that the batch lacks and that get NULL.
        kept: those whose values stay in rows that are replaced.
        current_id: the current schema's id.
    """
    of = f"the model returns the columns of schema {schema_id}{f' of {at}' if at else ''}"
    texts = [
        f"{', '.join(names)} {'are' if len(names) > 1 else 'is'} {what}"
        for names, what in ((list(padded), "padded"), (list(kept), "kept in rows that are replaced"))
        if names
    ]
    return f"{of}: {'; '.join(texts)}" if texts else f"{of}, and the table has schema {current_id}"
