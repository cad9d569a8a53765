"""What a backfill fills, and by what its rows are put into batches."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pyiceberg.schema import Schema
from pyiceberg.types import DateType, IntegerType, NestedField, StructType

from dbt.adapters.sparkevolve.errors import OperationError
from dbt.adapters.sparkevolve.evolution.names import Path, dotted_levels, fold, path_text, unquote
from dbt.adapters.sparkevolve.evolution.partitions import PartitionValue
from dbt.adapters.sparkevolve.evolution.types import type_text
from dbt.adapters.sparkevolve.iceberg.catalog import LoadedTable
from dbt.adapters.sparkevolve.iceberg.older_partitions import is_in_spark, partition_values
from dbt.adapters.sparkevolve.relation import SparkEvolveRelation
from dbt.adapters.sparkevolve.settings import IncrementalSettings
from dbt.adapters.sparkevolve.sql.backfill import Column, KeyPart, is_orderable
from dbt.adapters.sparkevolve.sql.dml import TARGET_ALIAS
from dbt.adapters.sparkevolve.suggestions import closest, did_you_mean

ROWS_PER_BATCH = 1_000_000
_INTEGER_TRANSFORMS = ("bucket", "years", "months", "hours")


@dataclass(frozen=True)
class Batching:
    """How the rows of a table are put into batches.

    Attributes:
        key: by what they are put in an order; empty for one batch of all rows.
        rows: how many rows a batch has at least, if there are more; None for a batch of each key.
    """

    key: tuple[KeyPart, ...]
    rows: int | None

    @property
    def labels(self) -> tuple[str, ...]:
        """How a person reads the key."""
        return tuple(part.label for part in self.key)

    @property
    def identities(self) -> tuple[str, ...]:
        """The key by field ids, which stay when columns are renamed or widened."""
        return tuple(part.identity for part in self.key)


def column_to_fill(relation: SparkEvolveRelation, schema: Schema, text: str) -> tuple[Column, int]:
    """Return the column that a user has named, or the field of a struct, and its field id.

    Raises:
        OperationError: there is none, or it is inside of a list or a map.
    """
    path, found, is_required = _found(relation, schema, text, "column")
    return Column(path, found.field_type, is_required), found.field_id


def batching(
    relation: SparkEvolveRelation,
    table: LoadedTable,
    column: Column,
    batch_by: Sequence[str],
    rows_per_batch: int | None,
    settings: IncrementalSettings,
) -> Batching:
    """Return how the rows are put into batches.

    Args:
        relation: the table's name.
        table: the table.
        column: what is filled: rows would move to other batches if they went by that.
        batch_by: the columns that a user has named; none for the table's partitions, or else its key.
        rows_per_batch: how many rows a batch is to have; None if the user says nothing.
        settings: the model's.

    Raises:
        OperationError: rows cannot be put in an order by what the user has named.
    """
    schema = table.schema()
    partitions = _partitions(relation, table, column)
    if batch_by:
        key = tuple(_key_part(relation, schema, name, column) for name in batch_by)
        plain = {value.path for value, _ in partitions if value.transform == "identity"}
        is_partition = all(_path(relation, schema, name) in plain for name in batch_by)
        return Batching(key, rows_per_batch if is_partition else rows_per_batch or ROWS_PER_BATCH)
    if partitions:
        return Batching(tuple(part for _, part in partitions), rows_per_batch)
    key = tuple(_parts_of_key(relation, schema, column, settings.unique_key))
    if key:
        return Batching(key, rows_per_batch or ROWS_PER_BATCH)
    if rows_per_batch is not None:
        raise OperationError(
            f"`rows_per_batch` needs something to put the rows of {relation} in an order by: it is not "
            "partitioned, and the model has no `unique_key` that could serve. Name a column in `batch_by`."
        )
    return Batching((), None)


def _partitions(
    relation: SparkEvolveRelation, table: LoadedTable, column: Column
) -> list[tuple[PartitionValue, KeyPart]]:
    """Return by what a table is partitioned, as far as Spark can tell, and the new value does not."""
    found = []
    catalog = relation.database or str(table.catalog.name)
    for value in partition_values(table):
        source = _field_at(table.schema(), value.path)
        type_ = source.field_type
        if _touches(value.path, column.path) or not is_in_spark(value.transform, type_):
            continue
        if value.transform in _INTEGER_TRANSFORMS:
            type_ = IntegerType()
        elif value.transform == "days":
            type_ = DateType()
        rendered = value.render(f"{TARGET_ALIAS}.{path_text(value.path[:1])}", catalog)
        name = ".".join(value.path)
        width = f"{value.width}, " if value.width else ""
        label, identity = (
            text if value.transform == "identity" else f"{value.transform}({width}{text})"
            for text in (name, str(source.field_id))
        )
        found.append((value, KeyPart(rendered, type_, label, identity)))
    return found


def _field_at(schema: Schema, path: Path) -> NestedField:
    fields, found = schema.fields, None
    for name in path:
        found = next(f for f in fields if f.name == name)
        fields = found.field_type.fields if isinstance(found.field_type, StructType) else ()
    assert found is not None
    return found


def _parts_of_key(
    relation: SparkEvolveRelation, schema: Schema, column: Column, unique_key: Sequence[str]
) -> Iterator[KeyPart]:
    """Yield the parts of a model's key by which rows can be put in an order; a snapshot's may be SQL."""
    columns = {fold(f.name): f for f in schema.fields}
    parts = [columns.get(fold(name)) for name in unique_key]
    if all(f and is_orderable(f.field_type) and not _touches((f.name,), column.path) for f in parts):
        for f in filter(None, parts):
            yield KeyPart(f"{TARGET_ALIAS}.{path_text((f.name,))}", f.field_type, f.name, str(f.field_id))


def _key_part(relation: SparkEvolveRelation, schema: Schema, text: str, column: Column) -> KeyPart:
    path, found, _ = _found(relation, schema, text, "batch_by")
    if _touches(path, column.path):
        raise OperationError(
            f"`batch_by` is {path_text(path)}, which the backfill changes: rows would move from batch to "
            "batch, and some would be filled twice or never. Name another column."
        )
    if not is_orderable(found.field_type):
        raise OperationError(
            f"`batch_by` is {path_text(path)} of {relation}, which is {type_text(found.field_type)}: rows "
            "cannot be put in an order by it. Name a column of a plain type."
        )
    rendered = f"{TARGET_ALIAS}.{path_text(path)}"
    return KeyPart(rendered, found.field_type, ".".join(path), str(found.field_id))


def _path(relation: SparkEvolveRelation, schema: Schema, text: str) -> Path:
    return _found(relation, schema, text, "batch_by")[0]


def _found(
    relation: SparkEvolveRelation, schema: Schema, text: str, argument: str
) -> tuple[Path, NestedField, bool]:
    """Return the path of what a user has named, its field, and whether NULL may not be written there."""
    columns = {fold(f.name): f for f in schema.fields}
    whole = columns.get(fold(unquote(text))) or columns.get(fold(text))
    if whole is not None:
        return (whole.name,), whole, whole.required
    levels = [name for name, _ in dotted_levels(text) or ((text, False),)]
    fields: Sequence[NestedField] = schema.fields
    path: list[str] = []
    found: NestedField | None = None
    for level in levels:
        if found is not None and not isinstance(found.field_type, StructType):
            raise OperationError(
                f"`{argument}` is {text!r}, and {path_text(path)} of {relation} is "
                f"{type_text(found.field_type)}: only a column or a field of a struct can be named. "
                + ("Fill the whole column." if argument == "column" else "Name another column.")
            )
        found = next((f for f in fields if fold(f.name) == fold(level)), None)
        if found is None:
            known = [".".join((*path, f.name)) for f in fields]
            near = closest(".".join((*path, level)), known)
            hint = f" {did_you_mean(near)}" if near else f" It has: {', '.join(known)}."
            raise OperationError(f"`{argument}` is {text!r}, which {relation} does not have.{hint}")
        path.append(found.name)
        fields = found.field_type.fields if isinstance(found.field_type, StructType) else ()
    assert found is not None
    return tuple(path), found, found.required


def _touches(one: Path, other: Path) -> bool:
    """Tell whether one path is the other, leads into it, or comes out of it."""
    shorter = min(len(one), len(other))
    return one[:shorter] == other[:shorter]
