"""A view, or a table of another format, where an incremental model is to be built."""

from pathlib import Path
from typing import Any

import pytest
from pyiceberg.catalog import load_catalog
from pyiceberg.exceptions import NoSuchNamespaceError

from tests.functional.harness import Run, Scenario, SqlRunner


def messages(run: Run) -> dict[str, str]:
    """What dbt says of each node, by its name."""
    return {node.node.name: str(node.message) for node in run.result.result}


@pytest.mark.core
def test_view_becomes_incremental(scenario: Scenario) -> None:
    view = {"materialized": "view", "unique_key": None, "on_schema_change": None}
    for name in ("plain", "reads_this", "refreshed", "broken"):
        scenario.model("select 1 as id, 'view' as v", name=name, **view)
    scenario.run()
    assert scenario.tables() == []

    checks = "{% if is_incremental() %} this must not be compiled {% endif %}"
    scenario.model("select 1 as id, 'table' as v, 2 as n" + checks, name="plain")
    scenario.model("select id + 1 as id, v, 2 as n from {{ this }}" + checks, name="reads_this")
    scenario.model(
        "select id + 1 as id, v, 2 as n from {{ this }}" + checks, name="refreshed", full_refresh=True
    )
    scenario.model("select 1 as id, cast(assert_true(false) as int) as n", name="broken")
    run = scenario.fail()
    said = messages(run)
    assert {name for name, text in said.items() if not text.startswith("OK")} == {"broken"}, said
    assert scenario.rows("plain") == [(1, "table", 2)]
    assert scenario.rows("reads_this") == [(2, "view", 2)]
    assert scenario.rows("refreshed") == [(2, "view", 2)]
    assert scenario.tables() == ["plain", "reads_this", "refreshed"]
    assert scenario.sql(f"select * from {scenario.relation('broken')}") == [(1, "view")], (
        "the view still is there"
    )
    for name in ("plain", "reads_this"):
        properties = scenario.table(name).properties
        assert properties["write.delete.mode"] == "merge-on-read"
        own = [key for key in properties if key.startswith("sparkevolve.")]
        assert own == ["sparkevolve.schema.0"], "it is no staged batch"

    scenario.model("select 9 as id, 'table' as v", name="plain")
    scenario.run("--select", "plain")
    assert scenario.rows("plain") == [(1, "table", 2), (9, "table", None)]


def test_view_becomes_incremental_with_another_name_for_the_key(scenario: Scenario) -> None:
    """What the table could not live with is refused before the view goes."""
    scenario.model("select 1 as id", materialized="view", unique_key=None, on_schema_change=None)
    scenario.run()
    scenario.model("select 1 as code")
    run = scenario.fail()
    assert "The unique_key `id` is not produced by the model, which returns `code`." in run.message
    assert scenario.sql(f"select * from {scenario.relation()}") == [(1,)]
    assert scenario.tables() == []


@pytest.fixture
def session_catalog(
    method: str, profile_target: dict[str, Any], tmp_path: Path
) -> tuple[Scenario, SqlRunner]:
    """A project whose catalog is `spark_catalog`, which holds tables of other formats too."""
    if method != "session":
        pytest.skip("what `spark_catalog` is on a server is set before it starts")
    from dbt.adapters.sparkevolve.iceberg.catalog_settings import resolve
    from dbt.adapters.sparkevolve.spark.session import SESSIONS

    properties = {
        "type": "sql",
        "uri": f"sqlite:///{tmp_path}/session.db",
        "warehouse": f"file://{tmp_path}/session_warehouse",
    }
    profile = {**profile_target, "catalog": "spark_catalog", "catalog_properties": properties}
    settings = resolve("spark_catalog", properties, tmp_path)
    session = SESSIONS.get(settings, profile["spark_config"], {}, tmp_path)

    def sql(text: str) -> list[tuple[Any, ...]]:
        return [tuple(row) for row in session.sql(text).collect()]

    schema = f"case_{tmp_path.name}".lower()
    made = Scenario(tmp_path / "project", schema, profile, sql, load_catalog("spark_catalog", **properties))
    sql(f"create schema spark_catalog.{schema}")
    return made, sql


def iceberg_tables(scenario: Scenario) -> list[str]:
    """All Iceberg tables of the schema; Iceberg's side of `spark_catalog` has it only once it has a table."""
    try:
        return scenario.tables()
    except NoSuchNamespaceError:
        return []


def test_existing_table_is_not_iceberg(session_catalog: tuple[Scenario, SqlRunner]) -> None:
    scenario, sql = session_catalog
    table = f"spark_catalog.{scenario.schema}.t"
    sql(f"create table {table} using parquet as select 1 as id")
    scenario.model("select 1 as id, 2 as n")
    # file_format is omitted in the configuration, or says what the table is.
    scenario.model("select 1 as id, 2 as n", name="said", file_format="parquet")
    sql(f"create table spark_catalog.{scenario.schema}.said using parquet as select 1 as id")
    run = scenario.fail()
    said = messages(run)
    assert (
        f"`spark_catalog`.`{scenario.schema}`.`t` is not a table of the Iceberg catalog `spark_catalog`. "
        "Either `catalog_properties` of the profile name another catalog than the one that Spark uses: see "
        "first what `dbt debug` says. Or it is a view, such as `dbt clone` makes, or has another format: an "
        "incremental model needs `file_format: iceberg`, and what is there has to be moved away. Nothing was "
        "written."
    ) in said["t"]
    assert 'file_format is "parquet" in model.case.said. Allowed are: iceberg.' in said["said"]
    for word in ("delete from", "insert into", "merge into", "alter table", "drop table"):
        assert word not in run.log.lower()
    assert sql(f"select * from {table}") == [(1,)]
    assert sql(f"select * from spark_catalog.{scenario.schema}.said") == [(1,)]
    assert iceberg_tables(scenario) == []

    # A full refresh makes an Iceberg table of it, but not if the model fails.
    scenario.model("select 1 as id, cast(assert_true(false) as int) as n from {{ this }}")
    assert "'false' is not true!" in scenario.fail("--full-refresh", "--select", "t").message
    assert sql(f"select * from {table}") == [(1,)]
    scenario.model("select id, 2 as n from {{ this }}")
    scenario.run("--full-refresh", "--select", "t")
    assert scenario.rows() == [(1, 2)]
    assert iceberg_tables(scenario) == ["t"]


def test_iceberg_table_in_the_session_catalog(session_catalog: tuple[Scenario, SqlRunner]) -> None:
    """Named with two and with three parts."""
    scenario, sql = session_catalog
    scenario.model("select 1 as id, 'a' as v")
    scenario.run()
    ids = scenario.field_ids()
    assert scenario.rows() == [(1, "a")]
    scenario.model(
        "{% set two = this.include(database=false) %}\n"
        "{% set found = adapter.get_relation(none, this.schema, this.identifier) %}\n"
        "select a.id + 1 as id, '{{ two }} {{ found.is_iceberg }}' as n\n"
        "from {{ two }} a join {{ this }} b on a.id = b.id"
    )
    scenario.run()
    assert scenario.rows() == [(1, "a", None), (2, None, f"`{scenario.schema}`.`t` True")]
    assert scenario.field_ids() == {**ids, "n": 3}
    assert scenario.schemas() == 2
    assert scenario.tables() == ["t"]
    assert sql(f"select count(*) from {scenario.schema}.t") == [(2,)]
