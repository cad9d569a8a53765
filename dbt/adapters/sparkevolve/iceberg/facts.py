"""What planning needs to know of a table beside its schema."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

from pyiceberg.manifest import FileFormat, ManifestContent, ManifestEntry
from pyiceberg.partitioning import PartitionField
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.table.refs import SnapshotRefType
from pyiceberg.transforms import IdentityTransform, VoidTransform

from dbt.adapters.sparkevolve.evolution import record
from dbt.adapters.sparkevolve.evolution.changes import AddColumn
from dbt.adapters.sparkevolve.evolution.history import former_fields, past_of, taken_names
from dbt.adapters.sparkevolve.evolution.names import fold
from dbt.adapters.sparkevolve.evolution.plan import EvolutionPlan
from dbt.adapters.sparkevolve.evolution.policy import TableFacts, TakenName
from dbt.adapters.sparkevolve.iceberg.base import partitions
from dbt.adapters.sparkevolve.iceberg.newer_format import is_atomic
from dbt.adapters.sparkevolve.iceberg.schema_history import since


def table_facts(table: Table) -> TableFacts:
    """Return what planning needs to know of a table beside its schema."""
    metadata = table.metadata
    return TableFacts(
        format_version=metadata.format_version,
        is_atomic=is_atomic(table),
        former=former_fields(table.metadata.schemas, table.schema()),
        partition_names=partition_names(table),
        partition_sources=frozenset(
            f.source_id for f in table.spec().fields if not isinstance(f.transform, VoidTransform)
        ),
        partition_by=partitions(table),
        properties=table.properties,
        past=past_of(metadata.schemas, metadata.last_column_id),
        taken_names=_taken_names(table),
        looked_at=record.looked_at(table.properties, metadata.current_schema_id),
    )


def plan_of(table: Table, decide: Callable[[Schema, TableFacts], EvolutionPlan]) -> EvolutionPlan:
    """Return what is decided for a table; whether it has ORC files is found out only where that matters.

    Args:
        table: the table.
        decide: returns the plan for a schema and what else is known of its table; raises to refuse.
    """
    facts = table_facts(table)
    plan = decide(table.schema(), facts)
    fills = any(isinstance(change, AddColumn) and change.default is not None for change in plan.changes)
    if fills and next(orc_files(table, heads_of_branches(table).values()), None):
        return decide(table.schema(), replace(facts, fills_older_rows=False))
    return plan


def heads_of_branches(table: Table) -> dict[str, int]:
    """Return the head of each branch by its name: a tag is read under the schema of its snapshot."""
    refs = table.metadata.refs.items()
    return {name: ref.snapshot_id for name, ref in refs if ref.snapshot_ref_type == SnapshotRefType.BRANCH}


def orc_files(table: Table, heads: Iterable[int]) -> Iterator[ManifestEntry]:
    """Yield the entries of the ORC files that a reader of these snapshots reads."""
    snapshots = (table.snapshot_by_id(snapshot_id) for snapshot_id in heads)
    manifests = {
        manifest.manifest_path: manifest
        for snapshot in snapshots
        if snapshot is not None
        for manifest in snapshot.manifests(table.io)
        if manifest.content == ManifestContent.DATA
    }
    for manifest in manifests.values():
        for entry in manifest.fetch_manifest_entry(table.io):
            if entry.data_file.file_format == FileFormat.ORC:
                yield entry


def _taken_names(table: Table) -> tuple[TakenName, ...]:
    """Return the names that others have given to other fields since a run has looked, and since when."""
    known = _known_schema(table)
    if known is None:
        return ()
    found = taken_names(table.metadata.schemas, table.schema(), known)
    return tuple(replace(t, since=since(table, t.since_schema_id, known.schema_id)) for t in found)


def _known_schema(table: Table) -> Schema | None:
    """Return the last schema that a run has made or looked at; None if it is the current one, or unknown."""
    by_id = {schema.schema_id: schema for schema in table.metadata.schemas}
    known = record.known_schema_id(table.properties)
    if known is None:
        # Whoever has made the table has given the names.
        known = min(by_id)
    if known == table.metadata.current_schema_id:
        return None
    snapshots = {snapshot.snapshot_id: snapshot for snapshot in table.metadata.snapshots}
    first = table.current_snapshot()
    while first is not None and first.parent_snapshot_id is not None:
        first = snapshots.get(first.parent_snapshot_id)
    # All rows are from after a CREATE OR REPLACE TABLE, so that nothing of before is missed under a name.
    if first is not None and first.schema_id is not None and first.schema_id > known:
        known = first.schema_id
    return by_id.get(known)


def partition_names(table: Table) -> dict[str, int | None]:
    """Return by folded name the only column that may be called like a partition field, see ``TableFacts``."""
    return _partition_names(f for spec in table.metadata.partition_specs for f in spec.fields)


def _partition_names(fields: Iterable[PartitionField]) -> dict[str, int | None]:
    names: dict[str, int | None] = {}
    for f in fields:
        # A field that was dropped in format version 1 is void, and then Iceberg treats it as this one.
        repeats = f.source_id if isinstance(f.transform, IdentityTransform | VoidTransform) else None
        name = fold(f.name)
        names[name] = repeats if names.get(name, repeats) == repeats else None
    return names
