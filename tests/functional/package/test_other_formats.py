"""A table of another format, or a view, where the package is to build an incremental model."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from dbt.adapters.spark.connections import SparkConnectionManager
from pyiceberg.catalog import load_catalog

from dbt.adapters.sparkevolve.iceberg.catalog_settings import resolve
from tests.functional.harness import Scenario
from tests.functional.package.projects import package_project

ADDS = {"on_schema_change": "append_new_columns"}


@pytest.fixture
def project(
    method: str, profile_target: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Scenario:
    """A project whose catalog is `spark_catalog`, which holds tables of other formats too."""
    if method != "session":
        pytest.skip("what `spark_catalog` is on a server is set before it starts")
    from pyspark.sql import SparkSession

    from dbt.adapters.sparkevolve.spark.session import SESSIONS

    properties = {
        "type": "sql",
        "uri": f"sqlite:///{tmp_path}/session.db",
        "warehouse": f"file://{tmp_path}/session_warehouse",
    }
    settings = resolve("spark_catalog", properties, tmp_path)
    session = SESSIONS.get(settings, profile_target["spark_config"], {}, tmp_path)
    # The one that dbt-spark takes.
    monkeypatch.setattr(SparkSession, "_instantiatedSession", session)

    def sql(text: str) -> list[tuple[Any, ...]]:
        return [tuple(row) for row in session.sql(text).collect()]

    schema = f"case_{tmp_path.name}".lower()
    target = {"type": "spark", "method": "session", "host": "NA", "threads": 1}
    lake = load_catalog("spark_catalog", **properties)
    sql(f"create schema {schema}")
    return package_project(tmp_path / "project", schema, target, sql, lake)


def when_made(monkeypatch: pytest.MonkeyPatch, table: str, do: Callable[[], Any]) -> None:
    """Let something happen just before a table is made."""
    real = SparkConnectionManager.add_query

    def add_query(self: Any, sql: str, *args: Any, **kwargs: Any) -> Any:
        if f"create table if not exists {table}\n" in sql:
            do()
        return real(self, sql, *args, **kwargs)

    monkeypatch.setattr(SparkConnectionManager, "add_query", add_query)


def test_a_full_refresh_makes_an_iceberg_table_of_another(
    project: Scenario, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = project.relation()
    project.sql(f"create table {table} using parquet as select 1 as id, 'x' as gone")
    project.model("select id, 2 as n from {{ this }}", **ADDS)
    assert "is not an Iceberg table: an incremental model of the package" in project.fail().message
    # One that fails leaves what is there.
    project.model("select id, cast(assert_true(false) as int) as n from {{ this }}", **ADDS)
    assert "'false' is not true!" in project.fail("--full-refresh").message
    assert project.sql(f"select * from {table}") == [(1, "x")]
    project.model("select id, 2 as n from {{ this }}", **ADDS)
    run = project.run("--full-refresh")
    assert "gone, since what is there is not an Iceberg table, and is replaced as a whole." in run.log
    assert (project.rows(), project.tables()) == ([(1, 2)], ["t"])

    # Somebody is faster once it is dropped: what is gone is said.
    (project.folder / "models/t.sql").unlink()
    table = project.relation("other")
    project.sql(f"create table {table} using parquet as select 1 as id")
    project.model("select 2 as id", "other", **ADDS)
    theirs = f"create table {table} using iceberg as select 9 as id"
    when_made(monkeypatch, table, partial(project.sql, theirs))
    run = project.fail("--full-refresh", "--select", "other")
    assert (
        f"This run has dropped {table}, which was a table of another format, with its rows, and there was "
        "one when its first rows were to be written: somebody has made it since. Nothing was written to it."
    ) in run.message
    assert project.rows("other") == [(9,)]
