"""Names of relations. They have a catalog part, which dbt-spark's do not, and are always quoted."""

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field

from dbt.adapters.base.relation import BaseRelation
from dbt.adapters.contracts.relation import ComponentName, Policy
from dbt.adapters.spark.relation import SparkRelation

from dbt.adapters.sparkevolve.evolution.names import dotted_levels, quote


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

    def _render_iterator(self) -> Iterator[tuple[ComponentName | None, str | None]]:
        """Yield each part as it is rendered; a nested schema has several levels."""
        for component, part in super()._render_iterator():
            if component == ComponentName.Schema and part is not None and self.quote_policy.schema:
                part = ".".join(quote(level) for level in namespace(self.schema))
            yield component, part


def namespace(schema: str | None) -> tuple[str, ...]:
    """Return the levels of a schema's name: ``a.b`` is the schema ``b`` in ``a``.

    What stands in backticks is one level, dots and all.
    A name that cannot be read so, such as ``a..b``, is one level as it stands.
    """
    if not schema:
        return ()
    levels = dotted_levels(schema)
    return (schema,) if levels is None else tuple(name for name, _ in levels)


def schema_name(levels: Sequence[str]) -> str:
    """Return the name of a schema whose levels these are: what ``namespace`` takes apart."""
    return ".".join(quote(level) if "." in level or level.startswith("`") else level for level in levels)


def schema_problem(
    schema: str,
    catalog: str,
    catalogs: Collection[str],
    *,
    kind: str,
    is_nested: bool,
    takes_name: Callable[[str], bool] = lambda name: True,
    names: str = "",
    is_own: bool = True,
) -> str:
    """Return why nothing can be built in a schema of this name; empty if something can.

    Args:
        schema: its name.
        catalog: the name of the catalog that it is to be in.
        catalogs: names of all catalogs that Spark is known to have.
        kind: what kind of catalog that is, for people.
        is_nested: whether schemas can lie in schemas there.
        takes_name: tells whether one can have a name.
        names: which names that are, if not any.
        is_own: whether it is the profile's own.
    """
    levels = namespace(schema)
    if not schema.strip():
        return "a schema needs a name."
    is_broken = "." in schema and levels == (schema,)
    if is_broken or any(not level.strip() for level in levels):
        return (
            "a dot stands between the levels of a nested schema, and each needs a name (in backticks, if it "
            "has a dot itself)."
        )
    if not all(map(takes_name, levels)):
        return f"this catalog ({kind}) takes names {names}."
    if len(levels) == 1:
        return ""
    first, rest = levels[0], schema_name(levels[1:])
    what = "the profile's catalog" if is_own else "the model's catalog"
    if first.lower() == catalog.lower():
        named_by = "`catalog`" if is_own else "`database`"
        return f"{first!r} is {what}, which {named_by} names. Write {rest!r}."
    if first in catalogs or first == "spark_catalog":
        return (
            f"{first!r} is a catalog of Spark. Write {rest!r} to build in {what}, which is {catalog!r}; "
            "another one is named by `database` or `target_database`, and stated under `catalogs`."
        )
    if not is_nested:
        return f"this catalog ({kind}) has no schemas inside schemas. Write a name without a dot."
    return ""


def table_identifier(relation: BaseRelation) -> tuple[str, ...]:
    """Return the levels of the schema and the name of a relation, as PyIceberg takes them."""
    return (*namespace(relation.schema), str(relation.identifier or ""))
