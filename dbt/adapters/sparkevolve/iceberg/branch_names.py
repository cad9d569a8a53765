"""Names by which Iceberg finds no rows in a branch, since that was written before its columns had them."""

from collections.abc import Iterable, Iterator, Sequence

from pyiceberg.schema import index_name_by_id

from dbt.adapters.sparkevolve.evolution import refusals
from dbt.adapters.sparkevolve.evolution.changes import AddColumn, AddField, Change, RenameField
from dbt.adapters.sparkevolve.evolution.names import Path, fold
from dbt.adapters.sparkevolve.evolution.refusals import Refusal
from dbt.adapters.sparkevolve.evolution.types import fields_within, named_by_sql
from dbt.adapters.sparkevolve.iceberg.base import Base


def refused_names(
    base: Base, table: str, named: Iterable[tuple[str, Path]], changes: Sequence[Change] = ()
) -> list[Refusal]:
    """Refuse to look for rows in the branch of `spark.wap.branch` by names that its columns do not have yet.

    Iceberg's Spark reads a branch by the table's columns, but looks the names in a filter up in the schema of
    the branch's snapshot, unless that is the current one of the table. There they may be those of others.

    Args:
        base: what the branch is.
        table: the rendered name of the table.
        named: the folded path of each name, and where it stands, as the subject of a sentence.
        changes: those that are made before.
    """
    if base.head is None or base.head == base.table.metadata.current_snapshot_id:
        return []
    struct, names = base.table.schema().as_struct(), list(named)
    found = {}
    for path, is_there in _unknown(base, changes):
        own = named_by_sql(struct, path)
        for where, name in names:
            if name[: len(own)] == own:
                found[own, where] = refusals.not_found_in_branch(
                    table, base.ref, path, where, is_there=is_there
                )
    return list(found.values())


def _unknown(base: Base, changes: Sequence[Change]) -> Iterator[tuple[Path, bool]]:
    """Yield the paths that the branch's snapshot does not have for a field, and if the table has them now."""
    metadata = base.table.metadata
    snapshot = metadata.snapshot_by_id(base.head) if base.head is not None else None
    written = snapshot.schema_id if snapshot is not None else None
    schema = metadata.schema_by_id(written) if written is not None else None
    if schema is not None:
        known, now = index_name_by_id(schema), index_name_by_id(metadata.schema())
        for path, f in fields_within(metadata.schema().as_struct()):
            # Another case is no other name for Iceberg's Spark.
            if fold(known.get(f.field_id, "")) != fold(now[f.field_id]):
                yield path, True
    for change in changes:
        if isinstance(change, RenameField) and fold(change.new_name) != fold(change.path[-1]):
            yield (*change.path[:-1], change.new_name), False
        elif isinstance(change, AddColumn | AddField):
            yield change.path, False
