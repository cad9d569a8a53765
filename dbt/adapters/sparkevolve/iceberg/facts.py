"""What planning needs to know of a table beside its schema."""

from collections.abc import Iterable

from pyiceberg.partitioning import PartitionField
from pyiceberg.table import Table
from pyiceberg.transforms import IdentityTransform, VoidTransform

from dbt.adapters.sparkevolve.evolution.history import former_fields
from dbt.adapters.sparkevolve.evolution.names import fold
from dbt.adapters.sparkevolve.evolution.policy import TableFacts
from dbt.adapters.sparkevolve.iceberg.base import partitions
from dbt.adapters.sparkevolve.iceberg.newer_format import is_atomic


def table_facts(table: Table) -> TableFacts:
    """Return what planning needs to know of a table beside its schema."""
    metadata = table.metadata
    return TableFacts(
        format_version=metadata.format_version,
        is_atomic=is_atomic(table),
        former=former_fields(table.metadata.schemas, table.schema()),
        partition_names=_partition_names(f for spec in metadata.partition_specs for f in spec.fields),
        partition_sources=frozenset(
            f.source_id for f in table.spec().fields if not isinstance(f.transform, VoidTransform)
        ),
        partition_by=partitions(table),
        properties=table.properties,
    )


def _partition_names(fields: Iterable[PartitionField]) -> dict[str, int | None]:
    """Return by folded name the only column that may be called like a partition field, see ``TableFacts``."""
    names: dict[str, int | None] = {}
    for f in fields:
        # A field that was dropped in format version 1 is void, and then Iceberg treats it as this one.
        repeats = f.source_id if isinstance(f.transform, IdentityTransform | VoidTransform) else None
        name = fold(f.name)
        names[name] = repeats if names.get(name, repeats) == repeats else None
    return names
