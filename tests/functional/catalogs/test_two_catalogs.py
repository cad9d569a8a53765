"""One project in two Iceberg catalogs and in Spark's own one: each node is kept by its own catalog."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyiceberg.catalog import Catalog, load_catalog
from pyiceberg.table import Table

from dbt.adapters.sparkevolve.iceberg.catalog_settings import resolve
from tests.functional.duckdb_reader import duckdb_rows
from tests.functional.harness import Scenario

# Nobody listens there. A catalog that nothing of a command needs is not asked.
AWAY = {"type": "rest", "uri": "http://127.0.0.1:1"}


class Project:
    """A dbt project whose nodes are in `lake`, in `other` and in `spark_catalog`.

    Attributes:
        scenario: the project, whose readers see `lake`.
    """

    def __init__(self, scenario: Scenario, properties: dict[str, str]) -> None:
        self.scenario = scenario
        self._properties = properties

    @property
    def other(self) -> Catalog:
        """The second catalog, opened afresh by PyIceberg."""
        return load_catalog("other", **self._properties)

    def there(self, name: str) -> Table:
        """The table of a name in `other`."""
        return self.other.load_table((self.scenario.schema, name))

    def rows(self, name: str, columns: str = "*") -> list[tuple[Any, ...]]:
        """The rows of a table in `other`, as DuckDB reads them."""
        return duckdb_rows(self.there(name), columns)


@pytest.fixture
def project(
    scenario_factory: Callable[..., Scenario], profile_target: dict[str, Any], method: str, tmp_path: Path
) -> Project:
    """A project with two catalogs, and one that is away."""
    properties = {
        "type": "sql",
        "uri": f"sqlite:///{tmp_path}/second/other.db",
        "warehouse": f"file://{tmp_path}/second/warehouse",
    }
    profile: dict[str, Any] = {"catalogs": {"other": properties, "away": AWAY}}
    settings = resolve("other", properties, tmp_path)
    settings.prepare()
    if method == "thrift":
        # What an operator sets for the server, a connection can set for itself.
        given = profile_target.get("server_side_parameters", {})
        profile["server_side_parameters"] = {**given, **settings.spark}
    return Project(scenario_factory(**profile), properties)


def test_only_what_is_in_a_catalog_that_is_away_fails(project: Project) -> None:
    scenario = project.scenario
    for name, database, reads in (
        ("first", "other", "codes"),
        ("second", "away", "codes"),
        ("third", "lake", "codes"),
    ):
        scenario.model(f"select id from {{{{ ref('{reads}') }}}}", name=name, database=database)
    scenario.model(
        "select id from {{ source('gone', 't') }}", name="reads_it", materialized="table", unique_key=None
    )
    scenario.model("select 1 as id", name="unstated", database="spark_catalog")
    scenario.file(
        "models/models.yml",
        "sources: [{name: gone, database: away, schema: s, tables: [{name: t}]}]\n",
    )
    scenario.file("seeds/codes.csv", "id\n1\n")
    run = scenario.dbt("build")
    results: Any = run.result.result
    found = {node.node.name: (str(node.status), str(node.message)) for node in results}
    assert {name: status for name, (status, _) in found.items()} == {
        "codes": "success",
        "first": "success",
        "third": "success",
        "second": "error",
        "reads_it": "error",
        "unstated": "error",
    }
    for name in ("second", "reads_it"):
        assert "The Iceberg catalog `away` at 127.0.0.1:1 cannot be reached" in found[name][1]
        assert "that `catalogs.away` of the profile name it" in " ".join(found[name][1].split())
    refusal = " ".join(found["unstated"][1].split())
    assert "is in the catalog 'spark_catalog', and the profile states 'lake', 'away', 'other'" in refusal
    assert project.rows("first") == scenario.rows("third") == [(1,)]
    debug = scenario.dbt("debug")
    assert not debug.success
    assert "catalog `other`: SQL" in debug.log
    assert "The Iceberg catalog `away` at 127.0.0.1:1 cannot be reached" in debug.log
