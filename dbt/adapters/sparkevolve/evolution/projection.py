"""How each column of the refreshed list gets its value from the staged batch."""

from dataclasses import dataclass

from dbt.adapters.sparkevolve.evolution.names import quote


@dataclass(frozen=True)
class Keep:
    """Take the staged column ``source`` as it is."""

    source: str

    def render(self, alias: str) -> str:
        """Return the SELECT expression; ``alias`` names the staged table."""
        return f"{alias}.{quote(self.source)}"


@dataclass(frozen=True)
class Cast:
    """Take the staged column ``source``, cast up to the wider Spark SQL type ``type``."""

    source: str
    type: str

    def render(self, alias: str) -> str:
        """Return the SELECT expression; ``alias`` names the staged table."""
        return f"CAST({alias}.{quote(self.source)} AS {self.type})"


@dataclass(frozen=True)
class Pad:
    """Write NULL of the Spark SQL type ``type``: the model does not return this column."""

    type: str

    def render(self, alias: str) -> str:
        """Return the SELECT expression; ``alias`` is not needed for it."""
        return f"CAST(NULL AS {self.type})"


Projection = Keep | Cast | Pad


@dataclass(frozen=True)
class ProjectedColumn:
    """A column of the refreshed list and where its value comes from."""

    name: str
    projection: Projection
