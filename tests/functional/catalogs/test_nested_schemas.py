"""Schemas inside schemas, where the catalog has them, and names that look like such."""

import json
import threading
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from dbt.adapters.spark.impl import SparkAdapter
from pyiceberg.catalog import load_catalog

from tests.functional.harness import Scenario, session_runner


def nested(properties: dict[str, str], profile_target: dict[str, Any], folder: Path) -> Iterator[Scenario]:
    profile = {**profile_target, "catalog_properties": properties}
    schema = f"case_{uuid.uuid4().hex[:10]}.Two.three"
    lake = load_catalog("lake", **properties)
    scenario = Scenario(folder / schema, schema, profile, session_runner(profile, folder), lake)
    yield scenario
    scenario.clean_up()


@pytest.fixture
def in_default(
    catalog_properties: dict[str, str], profile_target: dict[str, Any], method: str, tmp_path: Path
) -> Iterator[Scenario]:
    if method != "session":
        pytest.skip("the runner is a session")
    yield from nested(catalog_properties, profile_target, tmp_path)


@pytest.fixture
def in_rest(
    server_properties: dict[str, str], profile_target: dict[str, Any], tmp_path: Path
) -> Iterator[Scenario]:
    yield from nested(server_properties, profile_target, tmp_path)


SNAPSHOT = (
    "{% snapshot s %}"
    "{{ config(target_schema=target.schema, unique_key='id', strategy='check', check_cols='all') }}"
    "select * from {{ ref('t') }}{% endsnapshot %}"
)


def build_in(scenario: Scenario) -> None:
    scenario.model("select 1 as id, 'a' as v, 'g' as gone")
    scenario.model("select 1 as id", name="newer", tblproperties={"format-version": "3"})
    scenario.model("select * from {{ ref('t') }}", name="b", materialized="table", unique_key=None)
    scenario.model("select * from {{ ref('t') }}", name="v", materialized="view", unique_key=None)
    scenario.file("seeds/seeded.csv", "id,w\n8,x\n")
    scenario.file("snapshots/s.sql", SNAPSHOT)
    first = scenario.dbt("build")
    assert first.success, first.log
    ids = scenario.field_ids()
    scenario.model("select 1 as id, 'b' as v, 'n' as added union all select 2, 'c', 'm'")
    scenario.model("select 2 as id", name="newer", tblproperties={"format-version": "3"})
    second = scenario.dbt("build")
    assert second.success, second.log
    assert scenario.field_ids() == {**ids, "added": 4}
    assert scenario.rows() == [(1, "b", None, "n"), (2, "c", None, "m")]
    assert scenario.rows("newer") == [(1,), (2,)]
    assert len(scenario.snapshots("newer")) == 3, "made, then a DELETE and an INSERT that Spark has published"
    assert scenario.rows("b") == scenario.rows()
    assert scenario.sql(f"select count(*) from {scenario.relation('v')}") == [(2,)]
    assert scenario.rows("seeded") == [(8, "x")]
    assert [row[:2] for row in scenario.rows("s")] == [(1, "a"), (1, "b"), (2, "c")]
    assert scenario.tables() == ["b", "newer", "s", "seeded", "t"]
    scenario.run("--full-refresh", "--select", "t")
    assert scenario.field_ids() == {**ids, "added": 4}
    assert scenario.dbt("docs", "generate").success
    catalog = json.loads((scenario.folder / "target/catalog.json").read_text())
    assert catalog["nodes"]["model.case.t"]["metadata"]["schema"] == scenario.schema
    assert list(catalog["nodes"]["model.case.t"]["columns"]) == ["id", "v", "gone", "added"]


def test_all_is_built_in_a_nested_schema(in_default: Scenario) -> None:
    build_in(in_default)


@pytest.mark.parametrize("server_properties", ["rest"], indirect=True)
def test_all_is_built_in_a_nested_schema_of_a_rest_catalog(in_rest: Scenario) -> None:
    """There, a name with a dot in it is another one than two levels."""
    build_in(in_rest)
    top = in_rest.schema.partition(".")[0]
    assert (in_rest.schema,) not in in_rest.sql("show databases in lake")
    assert (top,) in in_rest.sql("show databases in lake")


def test_a_schema_that_names_a_catalog_is_refused(scenario_factory: Callable[..., Scenario]) -> None:
    """Also where it comes from the model or a macro, and the server knows the catalog."""
    scenario = scenario_factory(server_side_parameters={"spark.sql.catalog.elsewhere": "x.Y"})
    scenario.file(
        "macros/schema.sql",
        "{% macro generate_schema_name(custom_schema_name, node) %}"
        "{{ custom_schema_name or target.schema }}{% endmacro %}",
    )
    for schema, told in {
        "lake.x": "The schema 'lake.x' cannot be built in: 'lake' is the profile's catalog, which `catalog` "
        "names. Write 'x'. Nothing was built in it.",
        "elsewhere.x": "The schema 'elsewhere.x' cannot be built in: 'elsewhere' is a catalog of Spark. "
        "Write 'x'",
        "x..y": "The schema 'x..y' cannot be built in: a dot stands between the levels of a nested schema",
    }.items():
        scenario.model("select 1 as id", schema=schema)
        run = scenario.fail()
        assert told in " ".join(run.log.split())
    names = {row[0] for row in scenario.sql("show databases in lake")}
    assert not names & {"lake", "x", "elsewhere", "lake.x", "elsewhere.x", "x..y"}


def test_siblings_whose_names_differ_in_case_are_two_schemas(
    scenario: Scenario, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of two such schemas dbt makes one only, and none beside one that is there. It makes others at once."""
    lower = scenario.schema
    upper = lower.replace("case_", "Case_")
    # dbt begins with neither before the other is there as well.
    both, created = threading.Barrier(2), SparkAdapter.create_schema

    def create_schema(self: SparkAdapter, relation: Any) -> None:
        if str(relation.schema) in (f"{lower}_a", f"{lower}_b"):
            both.wait(60)
        created(self, relation)

    monkeypatch.setattr(SparkAdapter, "create_schema", create_schema)
    scenario.file(
        "macros/schema.sql",
        "{% macro generate_schema_name(custom_schema_name, node) %}"
        "{{ custom_schema_name or target.schema }}{% endmacro %}",
    )
    scenario.sql(f"create schema lake.`{lower}_There`")
    schemas = [f"{lower}_{end}" for end in ("new", "New", "a", "b", "there")]
    schemas += [f"{upper}.x", f"{upper}.X"]
    how = {"materialized": "view", "unique_key": None}
    for number, schema in enumerate(schemas):
        scenario.model(f"select {number} as id", name=f"m{number}", alias="t", schema=schema, **how)
    scenario.run()
    names = {row[0] for row in scenario.sql("show databases in lake")}
    assert {name for name in schemas if "." not in name} <= names
    for number, schema in enumerate(schemas):
        place = ".".join(f"`{level}`" for level in schema.split("."))
        assert scenario.sql(f"select * from lake.{place}.t") == [(number,)], schema
        scenario.sql(f"drop view lake.{place}.t")
        scenario.sql(f"drop schema lake.{place}")
    scenario.sql(f"drop schema lake.`{lower}_There`")
    scenario.sql(f"drop schema lake.`{upper}`")
