"""Names of relations. They have a catalog part, which dbt-spark's do not, and are always quoted."""

from dataclasses import dataclass, field

from dbt.adapters.base.relation import BaseRelation, Policy
from dbt.adapters.contracts.relation import ComponentName
from dbt.adapters.spark.relation import SparkRelation

from dbt.adapters.sparkevolve.evolution.names import quote


@dataclass
class SparkEvolveQuotePolicy(Policy):
    """Quote every part: a name needs no quotes less often than one thinks."""

    database: bool = True
    schema: bool = True
    identifier: bool = True


@dataclass
class SparkEvolveIncludePolicy(Policy):
    """Render catalog, schema and identifier."""

    database: bool = True
    schema: bool = True
    identifier: bool = True


@dataclass(frozen=True, eq=False, repr=False)
class SparkEvolveRelation(SparkRelation):
    """A table or view in a catalog of Spark.

    ``database`` is dbt's word for the catalog.
    """

    quote_policy: Policy = field(default_factory=lambda: SparkEvolveQuotePolicy())
    include_policy: Policy = field(default_factory=lambda: SparkEvolveIncludePolicy())

    def __post_init__(self) -> None:
        """Accept a catalog: dbt-spark refuses any database here."""

    def render(self) -> str:
        """Return the name as it stands in SQL: dbt-spark refuses to render three parts."""
        return BaseRelation.render(self)

    def quoted(self, identifier: str) -> str:
        """Return one part of a name in backticks."""
        return quote(identifier)

    @property
    def table_identifier(self) -> tuple[str, str]:
        """The schema and the name, as PyIceberg takes them."""
        schema = self.path.get_part(ComponentName.Schema)
        name = self.path.get_part(ComponentName.Identifier)
        return schema or "", name or ""
