"""What the package tells dbt before models run."""

from types import SimpleNamespace
from typing import Any

from dbt.adapters.base.relation import BaseRelation
from dbt.adapters.cache import RelationsCache
from dbt.adapters.contracts.relation import RelationType
from dbt.adapters.spark.impl import SparkAdapter
from dbt.adapters.spark.relation import SparkRelation

from tests.unit.package_macros import PackageMacros


class Listing(SparkAdapter):
    """dbt-spark's adapter with a schema of two tables, and without a connection."""

    def __init__(self) -> None:
        self.cache = RelationsCache()
        self.config = SimpleNamespace(quoting={"database": False, "schema": False, "identifier": False})
        self.connections: Any = SimpleNamespace(get_if_exists=lambda: None)
        self.listed = 0

    def list_relations_without_caching(self, schema_relation: BaseRelation) -> list[BaseRelation]:
        """Return what Spark lists."""
        self.listed += 1
        return [
            SparkRelation.create(
                schema=schema_relation.schema, identifier=name, type=RelationType.Table, is_iceberg=True
            )
            for name in ("orders", "orders_history")
        ]

    def found(self, name: str) -> Any:
        """Return what a materialization finds."""
        return self.get_relation(None, "shop", name)  # type: ignore[arg-type]


def note(adapter: Listing) -> None:
    macros = PackageMacros(
        {
            "adapter": adapter,
            "api": SimpleNamespace(Relation=SparkRelation),
            "graph": SimpleNamespace(
                nodes={"model.p.orders": SimpleNamespace(schema="shop", alias="orders")}
            ),
            "load_relation": lambda r: adapter.get_relation(r.database, r.schema, r.identifier),
            "selected_resources": ["model.p.orders", "snapshot.p.orders_history"],
        }
    )
    listed = {"show tables in shop": [("shop", "orders", False), ("shop", "x", False)]}
    vars(macros)["rows"] = listed.get
    macros.note_tables(["model.p.orders"])


def test_dbt_lists_the_rest_of_a_schema_that_it_has_not_listed() -> None:
    """With `--no-populate-cache`: else a snapshot would be made anew over the one that is there."""
    adapter = Listing()
    note(adapter)
    assert adapter.found("orders_history").is_iceberg
    assert adapter.found("orders").is_iceberg
    assert adapter.listed == 1


def test_what_dbt_has_not_found_is_told_it_and_nothing_is_listed_again() -> None:
    adapter = Listing()
    adapter.cache.update_schemas([(None, "shop")])
    note(adapter)
    assert (adapter.found("orders").type, adapter.found("x")) == ("table", None)
    assert adapter.listed == 0
