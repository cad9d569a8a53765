"""Batches whose shape a table has been loaded from before: recognised, so that nothing of them is planned."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime, timezone

from dbt.adapters.sparkevolve.__version__ import version
from dbt.adapters.sparkevolve.evolution import record, shapes
from dbt.adapters.sparkevolve.evolution.names import path_text
from dbt.adapters.sparkevolve.evolution.plan import EvolutionPlan
from dbt.adapters.sparkevolve.iceberg.catalog import LoadedTable
from dbt.adapters.sparkevolve.iceberg.guards import shape as everything_of
from dbt.adapters.sparkevolve.iceberg.newer_format import is_atomic
from dbt.adapters.sparkevolve.iceberg.staged_batch import StagedBatch
from dbt.adapters.sparkevolve.load.plan_report import is_padded, removed_values
from dbt.adapters.sparkevolve.settings import IncrementalSettings
from dbt.adapters.sparkevolve.times import iso

# Of a batch, not of its shape; everything else of the settings counts, whatever is added to them.
_OF_THE_RUN = ("event_time_start", "event_time_end")


@dataclass
class KnownShape:
    """What is known of the shape of one batch in its table, as of the last look at that.

    Attributes:
        batch: the batch.
        settings: the model's.
        column_docs: descriptions of columns; empty if they are not to be stored.
        invocation_id: of the dbt command, for the record.
        table: the table as it was then; None before.
        decided: stands for everything that the plan follows from.
    """

    batch: StagedBatch
    settings: IncrementalSettings
    column_docs: Mapping[str, str]
    invocation_id: str
    table: LoadedTable | None = field(init=False, default=None)
    decided: str = field(init=False, default="")

    @property
    def source(self) -> str:
        """The fingerprint of the batch."""
        return record.fingerprint(self.batch.schema)

    def recognise(self, table: LoadedTable) -> EvolutionPlan | None:
        """Return the plan for a batch of this shape if an earlier run has made the same one; else None.

        A plan follows from the table's metadata, the batch's schema, the settings and the code, and from
        nothing else where no column is NOT NULL. So the record says of all of these that what followed was
        a list of names, without a change, a warning or a refusal, and that list is made again.

        Args:
            table: the table, as it is now.
        """
        self.table = table
        self.decided = self._decision(table)
        known = shapes.read(table.properties).get(self.source)
        if known is None or known.decided != self.decided:
            return None
        return shapes.plain_plan(table.schema(), self.batch.schema, self.settings.replacing[0])

    def properties(self, plan: EvolutionPlan) -> dict[str, str | None]:
        """Return the properties that record this shape, and with None those that give it room.

        Nothing if the table has them, or if the shape has made a schema.

        Args:
            plan: the plan that was carried out.
        """
        if self.table is None or plan.changes:
            return {}
        schema, seen = self.table.schema(), self.table.properties
        is_plain = shapes.is_plain(plan, schema, self.batch.schema, self.settings.replacing[0])
        decided = self.decided if is_plain else ""
        known = shapes.read(seen).get(self.source)
        if known is None:
            at = iso(datetime.now(timezone.utc))
            padded = tuple(map(path_text, plan.removed))
            shape = shapes.Shape(self.source, schema.schema_id, at, self.invocation_id, decided, padded)
            return {**shape.properties, **dict.fromkeys(shapes.outdated_properties(seen, self.source))}
        return {} if known.decided == decided else {**replace(known, decided=decided).properties}

    @property
    def is_new(self) -> bool:
        """Whether the table does not know this shape yet."""
        return self.table is not None and self.source not in shapes.read(self.table.properties)

    def older(self, plan: EvolutionPlan) -> str:
        """Return what to say of a batch that has the columns of an older schema; empty if it has not."""
        if self.table is None:
            return ""
        current = self.table.schema()
        found = shapes.older(self.source, current, self.table.metadata.schemas, self.table.properties)
        if found is None:
            return ""
        values = removed_values(plan, self.settings)
        padded = [path for path, value in values.items() if is_padded(value)]
        kept = [path for path in values if path not in padded]
        return shapes.older_text(*found, padded, kept, current.schema_id)

    def _decision(self, table: LoadedTable) -> str:
        metadata = table.metadata
        *rest, properties = everything_of(metadata)
        theirs = [
            (name, value)
            for name, value in properties
            if not name.startswith((shapes.PREFIX, record.REPLAYED, record.TOLD))
        ]
        settings = {name: value for name, value in asdict(self.settings).items() if name not in _OF_THE_RUN}
        return shapes.decision(
            version,
            str(metadata.table_uuid),
            is_atomic(table),
            table.schema().model_dump_json(),
            rest,
            theirs,
            self.batch.schema.model_dump_json(),
            settings,
            dict(self.column_docs),
        )
