"""A column as dbt's macros see it."""

from dataclasses import dataclass

from dbt.adapters.base.column import Column
from dbt.adapters.spark.column import SparkColumn

from dbt.adapters.sparkevolve.evolution.names import quote


@dataclass
class SparkEvolveColumn(SparkColumn):
    """A column whose name is quoted right, whatever it is."""

    @property
    def quoted(self) -> str:
        """The name in backticks."""
        return quote(self.column)

    def is_string(self) -> bool:
        """Tell whether it holds text."""
        return self.dtype.lower().split("(")[0] in ("string", "varchar", "char")

    def is_integer(self) -> bool:
        """Tell whether it holds whole numbers."""
        return self.dtype.lower() in ("tinyint", "smallint", "int", "integer", "bigint")

    def is_float(self) -> bool:
        """Tell whether it holds floating-point numbers."""
        return self.dtype.lower() in ("float", "real", "double")

    def is_numeric(self) -> bool:
        """Tell whether it holds decimals."""
        return self.dtype.lower().split("(")[0] in ("decimal", "dec", "numeric")

    def can_expand_to(self, other_column: Column) -> bool:
        """Say that no column needs to grow: Iceberg's text has no length."""
        return False
