"""dbt's commands on nodes in a second catalog: defer, clone, retry, state, stored failures, schemas."""

import json
import re
import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyiceberg.catalog import Catalog, load_catalog

from dbt.adapters.sparkevolve.iceberg.catalog_settings import resolve
from tests.functional.harness import PRESERVE, Run, Scenario

pytestmark = pytest.mark.servers
# `dev` is another schema; the project's own macro has the folder `there` in the second catalog.
MACROS = """
{% macro generate_schema_name(custom_schema_name, node) %}
  {% do return(target.schema ~ ('_' ~ custom_schema_name if custom_schema_name else '') ~ var('dev', '')) %}
{% endmacro %}
{% macro generate_database_name(custom_database_name=none, node=none) %}
  {% if custom_database_name is none and node is not none and 'there' in node.fqn %}
    {% do return('other') %}
  {% endif %}
  {% do return(custom_database_name or target.database) %}
{% endmacro %}
{% macro drop_there(name) %}
  {% do adapter.drop_schema(api.Relation.create(database='other', schema=name)) %}
{% endmacro %}
"""
TESTS = """
models:
  - name: base
    columns:
      - name: v
        data_tests:
          - accepted_values: {name: stored_there, arguments: {values: [7], quote: false},
              config: {severity: warn, store_failures: true, database: other}}
          - accepted_values: {name: stored_here, arguments: {values: [8], quote: false},
              config: {severity: warn, store_failures: true}}
          - accepted_values: {name: stored_as_view, arguments: {values: [9], quote: false},
              config: {severity: warn, store_failures_as: view, database: other}}
unit_tests:
  - name: first_run
    model: child
    overrides: {macros: {is_incremental: false}}
    given: [{input: ref('base'), rows: [{id: 7, v: 8}]}]
    expect: {rows: [{id: 7, v: 8, c: c}]}
  - name: later_run
    model: child
    overrides: {macros: {is_incremental: true}}
    given: [{input: ref('base'), rows: [{id: 7, v: 8}, {id: -1, v: 2}]}, {input: this, rows: []}]
    expect: {rows: [{id: 7, v: 8, c: c}]}
  - name: of_a_snapshot
    model: reads_kept
    given: [{input: ref('kept'), rows: [{id: 7, v: 8}]}]
    expect: {rows: [{id: 7}]}
"""
CHILD = (
    "select id, v, {{ \"cast(raise_error('oh') as string)\" if var('broken', false) else \"'c'\" }} as c "
    "from {{ ref('base') }}{% if is_incremental() %} where id > 0{% endif %}"
)
DEV = ("--vars", "{dev: _dev}")
WITHOUT_TESTS = ("--exclude-resource-type", "test", "--exclude-resource-type", "unit_test")


class Project:
    """A project in `lake` and, by its own macro, in `other`."""

    def __init__(self, scenario: Scenario, folder: Path, properties: dict[str, str]) -> None:
        self.scenario = scenario
        self._folder = folder
        self._properties = properties

    @property
    def other(self) -> Catalog:
        """The second catalog, opened afresh by PyIceberg."""
        return load_catalog("other", **self._properties)

    def rows(self, name: str) -> list[tuple[Any, ...]]:
        """The rows of a table in `other`."""
        found = self.other.load_table((self.scenario.schema, name)).scan().to_arrow().to_pylist()
        return sorted(tuple(row.values()) for row in found)

    def relations(self) -> dict[str, str]:
        """What there is in `other`, with its schema after the scenario's: a table or a view."""
        with sqlite3.connect(self._folder / "other.db") as connection:
            found = connection.execute("SELECT table_namespace, table_name, iceberg_type FROM iceberg_tables")
            return {
                f"{schema.removeprefix(self.scenario.schema)}.{name}": kind for schema, name, kind in found
            }

    def command(self, *arguments: str) -> Run:
        """Run a command, which has to succeed."""
        run = self.scenario.dbt(*arguments)
        assert run.success, run.message or run.log
        return run

    def base(self, columns: str = "", **config: Any) -> None:
        """Write the model that the others read."""
        self._model("there/base", f"select 1 as id, 10 as v{columns}", **config)

    def _model(self, path: str, sql: str, **config: Any) -> None:
        given = {"materialized": "incremental", "unique_key": "id", "on_schema_change": PRESERVE, **config}
        self.scenario.file(f"models/{path}.sql", "{{ config(**" + repr(given) + ") }}\n" + sql + "\n")

    def write(self) -> None:
        """Write the project."""
        self.scenario.file("macros/macros.sql", MACROS)
        self.base()
        self._model("there/child", CHILD)
        self._model("there/reads_kept", "select id from {{ ref('kept') }}", materialized="view")
        self._model("here", "select id, v from {{ ref('base') }}", materialized="table")
        self.scenario.file(
            "snapshots/there/kept.sql",
            "{% snapshot kept %}{{ config(unique_key='id', strategy='check', check_cols=['v']) }}"
            "select * from {{ ref('base') }}{% endsnapshot %}",
        )
        self.scenario.file("models/models.yml", TESTS)


@pytest.fixture
def project(
    scenario_factory: Callable[..., Scenario], profile_target: dict[str, Any], method: str, tmp_path: Path
) -> Project:
    """A project with two catalogs."""
    properties = {
        "type": "sql",
        "uri": f"sqlite:///{tmp_path}/second/other.db",
        "warehouse": f"file://{tmp_path}/second/warehouse",
    }
    profile: dict[str, Any] = {"catalogs": {"other": properties}}
    settings = resolve("other", properties, tmp_path)
    settings.prepare()
    if method == "thrift":
        # What an operator sets for the server, a connection can set for itself.
        given = profile_target.get("server_side_parameters", {})
        profile["server_side_parameters"] = {**given, **settings.spark}
    return Project(scenario_factory(**profile), tmp_path / "second", properties)


def test_defer_clone_retry_and_state(project: Project) -> None:
    scenario = project.scenario
    scenario.writes_artifacts = True
    project.write()
    # dbt asks tables for the columns of a fixture, also for `input: this`; without rows will do.
    first = scenario.dbt("test", "--select", "later_run")
    assert re.search(
        r"Not able to get columns for unit test '\w+' from relation .* doesn't exist", first.message
    )
    project.command("run", "--empty", "--select", "base", "child")
    project.command("test", "--select", "later_run")
    project.command("build", *WITHOUT_TESTS)
    shutil.copytree(scenario.folder / "target", scenario.folder / "state")
    state = ("--defer", "--state", "state")

    # What is not built in the other schema is read where it is in production, in its own catalog.
    project.command("run", "--select", "here", *state, *DEV)
    assert scenario.sql(f"select id, v from lake.{scenario.schema}_dev.here") == [(1, 10)]
    project.command("test", "--select", "test_type:unit", *state, *DEV)
    for refresh in ((), ("--full-refresh",)):
        project.command("clone", "--state", "state", "--exclude", "here", *refresh, *DEV)
    made = {f"_dev.{name}": "VIEW" for name in ("base", "child", "kept", "reads_kept")}
    tables = {".base": "TABLE", ".child": "TABLE", ".kept": "TABLE", ".reads_kept": "VIEW"}
    assert project.relations() == {**tables, **made}
    shown = project.command("show", "--inline", "select id + 41 as n from {{ ref('child') }}", *DEV)
    assert "42" in shown.log

    failed = scenario.dbt("run", "--select", "child", "--vars", "{broken: true}")
    assert "oh" in failed.message
    project.command("retry", "--vars", "{broken: false}")
    assert project.rows("child") == [(1, 10, "c")]

    project.base(", 'n' as n")
    run = project.command("build", "--select", "state:modified+", "--state", "state", *WITHOUT_TESTS)
    built = {result.node.name: str(result.status) for result in run.result.result}
    assert built == dict.fromkeys(("base", "child", "here", "kept", "reads_kept"), "success")
    assert project.rows("base") == [(1, 10, "n")]
    assert list(project.other.load_table((scenario.schema, "base")).metadata.refs) == ["main"]


def test_stored_failures_schemas_and_another_spelling(project: Project) -> None:
    scenario = project.scenario
    project.write()
    for _ in range(2):
        run = project.command("build", "--exclude", "test_type:unit")
        results = {result.node.name: str(result.status) for result in run.result.result}
        assert {results[name] for name in ("stored_there", "stored_here", "stored_as_view")} == {"warn"}
    audit = "_dbt_test__audit"
    assert project.relations() == {
        ".base": "TABLE",
        ".child": "TABLE",
        ".kept": "TABLE",
        ".reads_kept": "VIEW",
        f"{audit}.stored_there": "TABLE",
        f"{audit}.stored_as_view": "VIEW",
    }
    assert scenario.sql(f"select value_field from lake.{scenario.schema}{audit}.stored_here") == [(10,)]
    project.command("test", "--select", "test_type:unit")
    project.command("snapshot")
    assert len(project.rows("kept")) == 1

    args = json.dumps({"name": f"{scenario.schema}{audit}"})
    project.command("run-operation", "drop_there", "--args", args)
    assert not [name for name in project.relations() if audit in name]
    assert not project.other.namespace_exists(f"{scenario.schema}{audit}")
    # The schema of that name in the other catalog is as it was.
    assert scenario.sql(f"select count(*) from lake.{scenario.schema}{audit}.stored_here") == [(1,)]
    scenario.sql(f"drop table lake.{scenario.schema}{audit}.stored_here")
    scenario.sql(f"drop schema lake.{scenario.schema}{audit}")

    log = project.command("run-operation", "schema_history", "--args", "{model: base}").log
    assert f"`other`.`{scenario.schema}`.`base`" in log
    before = project.relations()
    project.base(database="Other")
    failed = scenario.dbt("run", "--select", "base")
    assert "'Other'" in failed.message + failed.log
    assert not failed.success
    assert project.relations() == before
