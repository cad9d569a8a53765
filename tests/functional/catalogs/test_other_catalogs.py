"""What is built in a catalog that the profile does not state: refused, or right where Spark alone can."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.functional.harness import Scenario, session_runner

REMEDY = (
    "State `other` under `catalogs:` in the profile, with PyIceberg's properties of it, or leave `database` "
    "out (or a snapshot's `target_database`, or what your macro `generate_database_name` returns). "
    "Nothing was read or written."
)
REASON = (
    "is in the catalog 'other', and the profile states 'lake': incremental models and snapshots, and what "
    "looks at the history of their tables, need one that it states."
)


@pytest.fixture
def two_catalogs(
    scenario_factory: Callable[..., Scenario], profile_target: dict[str, Any], method: str, tmp_path: Path
) -> Scenario:
    """A project whose Spark knows a catalog `other`, of which the profile says nothing to PyIceberg."""
    if method != "session":
        pytest.skip("the server has one catalog")
    (tmp_path / "other").mkdir()
    other = {
        "spark.sql.catalog.other": "org.apache.iceberg.spark.SparkCatalog",
        "spark.sql.catalog.other.type": "hadoop",
        "spark.sql.catalog.other.cache-enabled": "false",
        "spark.sql.catalog.other.warehouse": f"file://{tmp_path}/other",
    }
    profile = {**profile_target, "spark_config": {**profile_target["spark_config"], **other}}
    scenario = scenario_factory(**profile)
    scenario.sql = session_runner(profile, tmp_path)
    return scenario


def test_what_keeps_its_columns_is_refused_in_another_catalog(two_catalogs: Scenario) -> None:
    scenario = two_catalogs
    schema = scenario.schema

    def refusal(name: str) -> str:
        return f"`other`.`{schema}`.`{name}` {REASON} {REMEDY}"

    scenario.model("select 1 as id, 'ours' as v")
    scenario.run()
    ours = scenario.state()
    scenario.sql(f"create table other.{schema}.t using iceberg as select 7 as id, 'theirs' as old")

    hook = f"create table {scenario.relation('hooked')} using iceberg as select 1 as x"
    scenario.model("select 1 as id, 'new' as v, 2 as n", database="other", pre_hook=hook)
    settings = {"event_time": "at", "begin": "2026-01-01", "batch_size": "day", "lookback": 0}
    scenario.model(
        "select 1 as id, timestamp'2026-01-01' as at",
        name="batches",
        database="other",
        unique_key=None,
        incremental_strategy="microbatch",
        **settings,
    )
    config = f"target_schema='{schema}', unique_key='id', strategy='check', check_cols='all'"
    for name, database in (("s", "target_database='other'"), ("s2", "database='other'")):
        text = (
            f"{{% snapshot {name} %}}{{{{ config({config}, {database}) }}}} select 1 as id{{% endsnapshot %}}"
        )
        scenario.file(f"snapshots/{name}.sql", text)
    days = ("--event-time-start", "2026-01-01", "--event-time-end", "2026-01-02")
    for arguments in (("--full-refresh",), ("--vars", "sparkevolve_plan_only: true")):
        run = scenario.dbt("build", *days, *arguments)
        assert not run.success
        log = " ".join(run.log.split())
        for name in ("t", "batches", "s", "s2"):
            assert refusal(name) in log, name

    scenario.file("models/t.sql", "select 1 as id, 'new' as v")
    (scenario.folder / "models/batches.sql").unlink()
    scenario.file(
        "macros/database.sql",
        "{% macro generate_database_name(custom_database_name=none, node=none) %}other{% endmacro %}",
    )
    scenario.write_project(models={"+materialized": "incremental"})
    for command in (("run",), ("run-operation", "schema_history", "--args", "{model: t}")):
        assert refusal("t") in " ".join(scenario.dbt(*command).log.split())
    assert scenario.tables() == ["t"]
    assert scenario.state() == ours
    assert scenario.sql(f"show tables in other.{schema}") == [(schema, "t", False)]
    assert scenario.sql(f"select id, old from other.{schema}.t") == [(7, "theirs")]

    (scenario.folder / "macros/database.sql").unlink()
    scenario.model("select 1 as id", materialized="table", database="Lake", unique_key=None)
    scenario.file(
        "macros/rename.sql",
        """
        {% macro rename_it() %}
          {% set found = adapter.get_relation(database='lake', schema=target.schema, identifier='t') %}
          {% set there = found.incorporate(path={'database': 'other', 'identifier': 'u'}) %}
          {% do adapter.rename_relation(found, there) %}
        {% endmacro %}
        """,
    )
    message = " ".join(scenario.dbt("run").log.split())
    assert "the catalog 'Lake', and the profile states 'lake'" in message
    assert "Write `lake`, as the profile does: Spark tells the names of catalogs apart by case." in message
    run = scenario.dbt("run-operation", "rename_it")
    assert not run.success
    here, there = scenario.relation(), f"`other`.`{schema}`.`u`"
    assert f"{here} cannot be renamed to {there}, which is in another catalog." in " ".join(run.log.split())
    assert scenario.state() == ours


def test_tables_and_seeds_in_another_catalog_leave_those_of_the_profile_s_alone(
    two_catalogs: Scenario,
) -> None:
    scenario = two_catalogs
    for name in ("built", "seeded"):
        scenario.model("select 1 as id, 'ours' as v", name=name)
    scenario.run()
    ours = [scenario.state(name) for name in ("built", "seeded")]
    (scenario.folder / "models/seeded.sql").unlink()
    docs = {"relation": True, "columns": True}
    scenario.model(
        "select 7 as id, 'theirs' as w",
        name="built",
        materialized="table",
        database="other",
        persist_docs=docs,
    )
    scenario.file("seeds/seeded.csv", "id,w\n8,x\n")
    scenario.file(
        "models/docs.yml",
        "models: [{name: built, description: it's, columns: [{name: w, description: a word}]}]",
    )
    scenario.write_project(seeds={"+database": "other"})
    for _ in range(2):
        assert scenario.dbt("build").success
        assert scenario.sql(f"select * from other.{scenario.schema}.built") == [(7, "theirs")]
        assert scenario.sql(f"select * from other.{scenario.schema}.seeded") == [(8, "x")]
    described = scenario.sql(f"describe table other.{scenario.schema}.built")
    assert [row for row in described if row[0] == "w"] == [("w", "string", "a word")]
    assert scenario.dbt("docs", "generate").success
    catalog = (scenario.folder / "target/catalog.json").read_text()
    assert '"database": "other"' in catalog
    assert '"comment": "a word"' in catalog
    assert [scenario.state(name) for name in ("built", "seeded")] == ours
