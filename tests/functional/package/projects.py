"""Projects on stock dbt-spark that have the dbt package installed."""

from pathlib import Path
from typing import Any

import yaml
from dbt.adapters.factory import reset_adapters
from pyiceberg.catalog import Catalog, load_catalog

from dbt.adapters.sparkevolve.iceberg.catalog_settings import resolve
from tests.functional.harness import Scenario, SqlRunner
from tests.printed_profiles import stock_settings

PACKAGE = Path(__file__).resolve().parents[3] / "dbt_package"
WRAPPER = """{% materialization incremental, adapter='spark' %}
  {{ return(sparkevolve.incremental()) }}
{% endmaterialization %}
"""


class PackageScenario(Scenario):
    """A project whose tables have names of two parts, as dbt-spark renders them."""

    def relation(self, name: str = "t") -> str:
        """The rendered name of a table."""
        return f"{self.schema}.{name}"


def target_of_stock(
    method: str, profile_target: dict[str, Any], catalog_properties: dict[str, str], folder: Path
) -> dict[str, Any]:
    """Return the output of a profile of dbt-spark, without a schema; the tests' Spark runs already."""
    # Where its connections begin.
    load_catalog("lake", **catalog_properties).create_namespace_if_not_exists("default")
    if method == "thrift":
        reached = {"method": "thrift", "port": profile_target["port"], "poll_interval": 0}
        return {"type": "spark", "host": "127.0.0.1", "user": "dbt", "threads": 1, **reached}
    # dbt-spark takes the session of the process, to which the operator has given the catalog.
    from pyspark.sql import SparkSession

    # One of its own: in the first one, another test may have opened a catalog of the same name already.
    session = SparkSession.builder.getOrCreate().newSession()
    SparkSession._instantiatedSession = session
    settings = resolve("lake", catalog_properties, folder).spark
    if catalog_properties["uri"].startswith("sqlite:"):
        # What the package's page prints, with the addresses of this run.
        names = ("uri", "warehouse")
        settings = stock_settings(**{name: settings[f"spark.sql.catalog.lake.{name}"] for name in names})
    for key, value in {**settings, "spark.sql.defaultCatalog": "lake"}.items():
        session.conf.set(key, value)
    return {"type": "spark", "method": "session", "host": "NA", "threads": 1}


def package_project(
    folder: Path, schema: str, target: dict[str, Any], sql: SqlRunner, lake: Catalog, wrapper: str = WRAPPER
) -> Scenario:
    """Make a project with the package and, unless it is empty, the wrapper that hands models to it."""
    reset_adapters()
    scenario = PackageScenario(folder, schema, target, sql, lake)
    scenario.file("packages.yml", yaml.safe_dump({"packages": [{"local": str(PACKAGE)}]}))
    if wrapper:
        scenario.file("macros/incremental.sql", wrapper)
    found = scenario.dbt("deps")
    assert found.success, found.log
    return scenario
