"""The dbt package on stock dbt-spark: the Spark and the catalog of the other tests, another adapter."""

import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from dbt.adapters.factory import reset_adapters
from pyiceberg.catalog import Catalog, load_catalog

from dbt.adapters.sparkevolve.iceberg.catalog_settings import resolve
from tests.functional.harness import Scenario, SqlRunner

PACKAGE = Path(__file__).resolve().parents[3] / "dbt_package"
WRAPPER = """{% materialization incremental, adapter='spark' %}
  {{ return(sparkevolve.incremental()) }}
{% endmaterialization %}
"""


@pytest.fixture(scope="session")
def stock_target(
    method: str,
    profile_target: dict[str, Any],
    spark_sql: SqlRunner,
    catalog_properties: dict[str, str],
    tmp_path_factory: pytest.TempPathFactory,
) -> dict[str, Any]:
    """The output of a profile of dbt-spark, without a schema."""
    # Where its connections begin.
    load_catalog("lake", **catalog_properties).create_namespace_if_not_exists("default")
    if method == "thrift":
        reached = {"method": "thrift", "port": profile_target["port"], "poll_interval": 0}
        return {"type": "spark", "host": "127.0.0.1", "user": "dbt", "threads": 1, **reached}
    # dbt-spark takes the session of the process, to which the operator has given the catalog.
    from pyspark.sql import SparkSession

    session = SparkSession.builder.getOrCreate()
    settings = resolve("lake", catalog_properties, tmp_path_factory.mktemp("stock"))
    for key, value in {**settings.spark, "spark.sql.defaultCatalog": "lake"}.items():
        session.conf.set(key, value)
    return {"type": "spark", "method": "session", "host": "NA", "threads": 1}


@pytest.fixture(scope="module")
def package_factory(
    stock_target: dict[str, Any],
    spark_sql: SqlRunner,
    catalog_properties: dict[str, str],
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Callable[..., Scenario]]:
    """Make projects that have the package installed, each with a schema of its own that goes at the end."""
    made: list[Scenario] = []
    lake: Catalog = load_catalog("lake", **catalog_properties)

    def make(wrapper: str = WRAPPER) -> Scenario:
        reset_adapters()
        schema = f"case_{uuid.uuid4().hex[:10]}"
        folder = tmp_path_factory.mktemp("package") / schema
        scenario = Scenario(folder, schema, stock_target, spark_sql, lake)
        scenario.file("packages.yml", yaml.safe_dump({"packages": [{"local": str(PACKAGE)}]}))
        if wrapper:
            scenario.file("macros/incremental.sql", wrapper)
        made.append(scenario)
        found = scenario.dbt("deps")
        assert found.success, found.log
        return scenario

    yield make
    for scenario in made:
        scenario.clean_up()
    reset_adapters()


@pytest.fixture(scope="module")
def project(package_factory: Callable[..., Scenario]) -> Scenario:
    """A project that has the package installed."""
    return package_factory()


@pytest.fixture(scope="module")
def adapter_project(
    profile_target: dict[str, Any],
    spark_sql: SqlRunner,
    catalog_properties: dict[str, str],
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Scenario]:
    """A project of the adapter, to compare with."""
    schema = f"case_{uuid.uuid4().hex[:10]}"
    folder = tmp_path_factory.mktemp("adapter") / schema
    lake = load_catalog("lake", **catalog_properties)
    scenario = Scenario(folder, schema, profile_target, spark_sql, lake)
    yield scenario
    scenario.clean_up()
