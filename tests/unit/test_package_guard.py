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
    """dbt-spark's adapter with a schema of three tables, and without a connection."""

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
            for name in ("orders", "orders_history", "not_run")
        ]

    def found(self, name: str) -> Any:
        """Return what a materialization finds."""
        return self.get_relation(None, "shop", name)  # type: ignore[arg-type]


def node(kind: str, name: str) -> SimpleNamespace:
    """Return a node as dbt's graph has it."""
    return SimpleNamespace(resource_type=kind, unique_id=f"{kind}.p.{name}", schema="shop", alias=name)


def note(adapter: Listing) -> None:
    nodes = (
        *(node("model", "orders"), node("snapshot", "orders_history"), node("snapshot", "others")),
        node("snapshot", "In_Hive"),
    )
    macros = PackageMacros(
        {
            "adapter": adapter,
            "api": SimpleNamespace(Relation=SparkRelation),
            "graph": SimpleNamespace(nodes={node.unique_id: node for node in nodes}),
            "load_relation": lambda r: adapter.get_relation(r.database, r.schema, r.identifier),
            "selected_resources": ["model.p.orders", "snapshot.p.orders_history", "snapshot.p.In_Hive"],
        }
    )
    tables = ("orders", "orders_history", "in_hive", "others", "x")
    listed = {
        "show tables in shop": [("shop", name, False) for name in tables] + [("", "orders", True)],
        "describe extended shop.orders": [("Provider", "iceberg", "")],
        "describe extended shop.orders_history": [("Provider", "iceberg", "")],
        "describe extended shop.in_hive": [("Provider", "iceberg", "")],
    }
    vars(macros)["rows"] = listed.__getitem__
    macros.note_tables(["model.p.orders"])


def test_dbt_lists_the_rest_of_a_schema_that_it_has_not_listed() -> None:
    """With `--no-populate-cache`: else all in it would be new to dbt but what the package tells it."""
    adapter = Listing()
    note(adapter)
    assert adapter.found("not_run").is_iceberg
    assert adapter.listed == 1


def test_dbt_is_told_of_models_and_snapshots_that_it_has_not_found() -> None:
    """A snapshot of which dbt does not know would be made again, over its history."""
    adapter = Listing()
    adapter.cache.update_schemas([(None, "shop")])
    note(adapter)
    # Hive's metastore keeps no case.
    for name in ("orders", "orders_history", "In_Hive"):
        found = adapter.found(name)
        assert (found.type, found.is_iceberg) == ("table", True)
    assert [adapter.found(name) for name in ("others", "x")] == [None, None]
    assert adapter.listed == 0
