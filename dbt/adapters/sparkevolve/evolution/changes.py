"""The changes that an evolution can make to a schema, one frozen class each.

There is no class that drops, moves or retypes a column, so no plan can ask for it.
"""

from dataclasses import dataclass

from pyiceberg.types import IcebergType

from dbt.adapters.sparkevolve.evolution.names import quote
from dbt.adapters.sparkevolve.evolution.types import type_text


@dataclass(frozen=True)
class AddColumn:
    """Append an optional top-level column.

    Attributes:
        name: its name, as the model spells it; a dot in it does not make it nested.
        type: its Iceberg type; the catalog gives it and the fields in it new ids.
        doc: its description, or None.
    """

    name: str
    type: IcebergType
    doc: str | None = None

    def __str__(self) -> str:
        return f"add column {quote(self.name)} {type_text(self.type)}"
