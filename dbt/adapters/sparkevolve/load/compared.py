"""What was detected of a model's columns, held against what is planned once its batch is staged."""

from collections.abc import Sequence
from dataclasses import dataclass

from pyiceberg.schema import Schema

from dbt.adapters.sparkevolve.errors import ColumnsMovedError, DetectionError
from dbt.adapters.sparkevolve.evolution.detection import Detected, has_same_columns
from dbt.adapters.sparkevolve.relation import SparkEvolveRelation


@dataclass(frozen=True)
class Compared:
    """The columns of a model and of its table when they were compared, before the batch was staged.

    Attributes:
        detected: what was found.
        table: the columns of the table.
        source: the columns that the model returned; None if the batch is known to have these.
        may_differ: whether the two may differ.
        written: what the run has committed to the table before.
    """

    detected: Detected
    table: Sequence[str]
    source: Sequence[str] | None
    may_differ: bool
    written: Sequence[str] = ()

    def check(self, target: SparkEvolveRelation, by_plan: Detected, table: Schema, batch: Schema) -> None:
        """Compare what was detected with what is planned for the table and the batch as they are now.

        Args:
            target: the table.
            by_plan: what the plan says.
            table: the schema that it is made for.
            batch: the batch's schema.

        Raises:
            DetectionError: the columns are those that were compared, and what was found in them is not what
                is planned.
            ColumnsMovedError: those of the table or of the model have changed since, and may not differ.
        """
        is_same_source = self.source is None or has_same_columns(batch, self.source)
        if is_same_source and has_same_columns(table, self.table):
            if not self.detected.agrees_with(by_plan):
                raise DetectionError(str(target), self.detected, by_plan)
        elif not self.may_differ and (by_plan.new or by_plan.removed):
            raise ColumnsMovedError(
                str(target),
                by_plan.new,
                by_plan.removed,
                is_in_table=is_same_source,
                written=self.written,
            )
