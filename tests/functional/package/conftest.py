"""The dbt package on stock dbt-spark: the Spark and the catalog of the other tests, another adapter."""

import uuid
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from dbt.adapters.factory import reset_adapters
from pyiceberg.catalog import load_catalog

from tests.functional.harness import Scenario, SqlRunner
from tests.functional.package.projects import WRAPPER, package_project


@pytest.fixture(scope="module")
def package_factory(
    stock_target: dict[str, Any],
    spark_sql: SqlRunner,
    catalog_properties: dict[str, str],
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Callable[..., Scenario]]:
    """Make projects that have the package installed, each with a schema of its own that goes at the end."""
    made: list[Scenario] = []
    lake = load_catalog("lake", **catalog_properties)

    def make(wrapper: str = WRAPPER) -> Scenario:
        schema = f"case_{uuid.uuid4().hex[:10]}"
        folder = tmp_path_factory.mktemp("package") / schema
        made.append(package_project(folder, schema, stock_target, spark_sql, lake, wrapper))
        return made[-1]

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
