"""Names of relations. They have a catalog part, which dbt-spark's do not, and are always quoted."""

from dataclasses import dataclass, field

from dbt.adapters.base.relation import BaseRelation
from dbt.adapters.contracts.relation import Policy
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


def table_identifier(relation: BaseRelation) -> tuple[str, str]:
    """Return the schema and the name of a relation, as PyIceberg takes them; empty where it has none."""
    return str(relation.schema or ""), str(relation.identifier or "")
