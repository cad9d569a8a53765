"""A column as dbt's macros see it."""

from dataclasses import dataclass

from dbt.adapters.spark.column import SparkColumn

from dbt.adapters.sparkevolve.evolution.names import quote


@dataclass
class SparkEvolveColumn(SparkColumn):
    """A column whose name is quoted right, whatever it is."""

    @property
    def quoted(self) -> str:
        """The name in backticks."""
        return quote(self.column)
