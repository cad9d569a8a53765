"""Files that a table still has from before its partitioning was changed.

Spark's dynamic overwrite replaces partitions of the current spec only: rows in files of an older spec would
stay beside the ones that replace them.
"""

from collections.abc import Mapping

from pyiceberg.manifest import ManifestContent
from pyiceberg.table import Table
from pyiceberg.transforms import VoidTransform
from pyiceberg.types import IcebergType, UUIDType

from dbt.adapters.sparkevolve.evolution.names import Path
from dbt.adapters.sparkevolve.evolution.partitions import PartitionValue
from dbt.adapters.sparkevolve.evolution.refusals import Refusal, needs_newer_format, older_partitions
from dbt.adapters.sparkevolve.evolution.table_properties import DELETE_MODE, allows_mode
from dbt.adapters.sparkevolve.evolution.types import fields_within
from dbt.adapters.sparkevolve.iceberg.base import part_of

_IN_SPARK = frozenset({"identity", "years", "months", "days", "hours", "bucket", "truncate"})


def has_older_partitions(table: Table, snapshot_id: int | None) -> bool:
    """Tell whether a snapshot has data files of another partition spec than the table's current one.

    Args:
        table: the table.
        snapshot_id: the snapshot; None for a table without rows.
    """
    snapshot = table.metadata.snapshot_by_id(snapshot_id) if snapshot_id is not None else None
    if snapshot is None:
        return False
    return any(
        manifest.content == ManifestContent.DATA
        and manifest.partition_spec_id != table.metadata.default_spec_id
        # Counts may be missing in format version 1.
        and (manifest.added_files_count != 0 or manifest.existing_files_count != 0)
        for manifest in snapshot.manifests(table.io)
    )


def partition_values(table: Table) -> tuple[PartitionValue, ...]:
    """Return of which values of a row the table's current spec makes its partition.

    Paths are those of the table as it was loaded.
    """
    places = _places(table)
    found = []
    for f in table.spec().fields:
        # A void one was taken away from a table of format version 1.
        if not isinstance(f.transform, VoidTransform):
            written = part_of(f.transform, "")
            path, _ = places[f.source_id]
            found.append(PartitionValue(written.transform, path, written.width))
    return tuple(found)


def refused_partitions(table: Table, configured: Mapping[str, str] | None = None) -> list[Refusal]:
    """Return why rows cannot be deleted by the table's partitions.

    Either Spark has no function of the same result, or the table has no files of deleted rows.

    Args:
        table: the table.
        configured: the model's ``tblproperties``, which reach the table before its rows do.
    """
    places = _places(table)
    properties = {**table.properties, **(configured or {})}
    deletes = allows_mode(DELETE_MODE, properties, table.metadata.format_version)
    found = [] if deletes else [needs_newer_format(DELETE_MODE)]
    return found + [
        older_partitions(*places[f.source_id], str(f.transform))
        for f, value in zip(
            (f for f in table.spec().fields if not isinstance(f.transform, VoidTransform)),
            partition_values(table),
            strict=True,
        )
        if not is_in_spark(value.transform, places[f.source_id][1])
    ]


def is_in_spark(transform: str, type_: IcebergType) -> bool:
    """Tell whether Spark has a function that gives what Iceberg makes of a value of a type."""
    # Spark has the text of a uuid, and Iceberg's bucket is one of its bytes.
    return transform in _IN_SPARK and not (transform == "bucket" and isinstance(type_, UUIDType))


def _places(table: Table) -> Mapping[int, tuple[Path, IcebergType]]:
    """Return the path and the type of each column and field of a table, by its id."""
    fields = fields_within(table.schema().as_struct())
    return {f.field_id: (path, f.field_type) for path, f in fields}
