"""One project in two Iceberg catalogs and in Spark's own one: each node is kept by its own catalog."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyiceberg.catalog import Catalog, load_catalog
from pyiceberg.table import Table
from pyiceberg.types import StringType

from dbt.adapters.sparkevolve.iceberg.catalog_settings import resolve
from tests.functional.duckdb_reader import duckdb_rows
from tests.functional.harness import Run, Scenario

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

    def tables(self) -> list[str]:
        """The tables in `other`: a staged batch would be among them."""
        return sorted(name[-1] for name in self.other.list_tables((self.scenario.schema,)))

    def command(self, *arguments: str) -> Run:
        """A dbt command, which has to succeed."""
        run = self.scenario.dbt(*arguments)
        assert run.success, run.message or run.log
        return run

    def operation(self, name: str, **args: Any) -> str:
        """Run an operation, which has to succeed; return what it has said."""
        return self.command("run-operation", name, "--args", json.dumps(args)).log


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


def write(project: Project, *, evolved: bool) -> None:
    """Write the project: as it is first, or with columns that have come and gone."""
    scenario = project.scenario
    schema = scenario.schema
    docs = {"relation": True, "columns": True}
    new = ", 'n' as note, cast(v as bigint) as v2" if evolved else ", 'o' as old"
    scenario.file("seeds/codes.csv", "id,v\n1,10\n2,20\n" + ("3,30\n" if evolved else ""))
    # The same name and schema in two catalogs.
    for name, database in (("facts", "other"), ("facts_here", "lake")):
        scenario.model(
            f"select id, v{new if database == 'other' else ''} from {{{{ ref('codes') }}}}",
            name=name,
            alias="facts",
            database=database,
            persist_docs=docs,
            audits=["id > 0"],
        )
    strategies: dict[str, dict[str, Any]] = {
        # PyIceberg cannot commit to it: Spark does, in the catalog that it is in.
        "merged": {"incremental_strategy": "merge", "tblproperties": {"format-version": "3"}},
        "added": {"unique_key": None, "publish": "direct"},
        "parted": {"unique_key": None, "incremental_strategy": "insert_overwrite", "partition_by": "id"},
        "lettered": {"on_bad_rows": "dead_letter"},
    }
    for name, config in strategies.items():
        columns = "id, v"
        if name == "lettered":
            columns = "id + 10 as id, if(id = 3, 'six', '5') as n" if evolved else "id, 5 as n"
        sql = f"select {columns}{new} from {{{{ ref('facts') }}}}"
        scenario.model(sql, name=name, database="other", **config)
    settings = {"event_time": "at", "begin": "2026-01-01", "batch_size": "year", "lookback": 0}
    scenario.model(
        f"select 1 as id, date_trunc('year', now()) as at{new.replace('v as bigint', '1 as bigint')}",
        name="batches",
        database="other",
        unique_key=None,
        incremental_strategy="microbatch",
        **settings,
    )
    scenario.model(
        "select f.id, s.dbt_valid_to from {{ ref('facts') }} as f join {{ ref('snap') }} as s on f.id = s.id",
        name="table_there",
        materialized="table",
        unique_key=None,
        database="other",
        persist_docs=docs,
    )
    scenario.model(
        "select * from {{ ref('facts_here') }}",
        name="view_there",
        materialized="view",
        unique_key=None,
        database="other",
    )
    scenario.model(
        "select * from {{ ref('facts') }}",
        name="plain",
        materialized="table",
        unique_key=None,
        database="spark_catalog",
        file_format="parquet",
    )
    scenario.model(
        "select count(*) as n from {{ source('spark', 'plain') }}, "
        "{{ this.database }}.{{ this.schema }}.facts",
        name="back_here",
        materialized="table",
        unique_key=None,
        pre_hook="-- depends_on: {{ ref('plain') }} {{ ref('facts_here') }}\nselect 1",
    )
    scenario.file(
        "snapshots/snap.sql",
        "{% snapshot snap %}{{ config(target_database='other', target_schema='"
        + schema
        + "', unique_key='id', strategy='check', check_cols='all') }}"
        + f"select id, v{new} from {{{{ ref('codes') }}}}{{% endsnapshot %}}",
    )
    source = (
        "{name: %s, database: %s, schema: " + schema + ", tables: [{name: %s, columns: [{name: id, %s}]%s}]}"
    )
    tests = "data_tests: [not_null]"
    fresh = ", loaded_at_field: at, freshness: {warn_after: {count: 9999, period: day}}"
    scenario.file(
        "models/models.yml",
        "models:\n"
        "  - {name: facts, description: it's there, columns: [{name: v, description: a value,"
        " data_tests: [not_null, unique]}]}\n"
        "  - {name: table_there, description: a table}\n"
        "sources:\n"
        f"  - {source % ('spark', 'spark_catalog', 'plain', tests, '')}\n"
        f"  - {source % ('second', 'other', 'batches', tests, fresh)}\n"
        "unit_tests:\n"
        "  - name: a_unit\n    model: merged\n"
        "    overrides: {macros: {is_incremental: false}}\n"
        f"    given: [{{input: ref('facts'), rows: [{{id: 7, v: 8}}]}}]\n"
        f"    expect: {{rows: [{{id: 7, v: 8}}]}}\n",
    )
    scenario.write_project(seeds={"+database": "other"})


def test_a_project_in_two_catalogs(project: Project) -> None:
    scenario = project.scenario
    write(project, evolved=False)
    # Nothing says to dbt that what makes a source comes before its tests.
    project.command("build", "--exclude", "source:*,resource_type:test")
    project.command("test", "--select", "source:*")
    assert project.rows("facts", "id, v, old") == [(1, 10, "o"), (2, 20, "o")]
    assert scenario.rows("facts") == [(1, 10), (2, 20)]
    names = ("facts", "merged", "added", "parted", "batches", "snap", "lettered")
    ids = {name: field_ids(project.there(name)) for name in names}
    here = scenario.field_ids("facts")

    write(project, evolved=True)
    run = project.command("build")
    for name in names:
        table = project.there(name)
        assert ids[name].items() <= field_ids(table).items(), name
        assert {"note", "v2"} <= field_ids(table).keys(), name
        assert list(table.metadata.refs) == ["main"], name
    new = [(n, 10 * n, None, "n", 10 * n) for n in (1, 2, 3)]
    for name in ("facts", "parted"):
        assert project.rows(name, "id, v, old, note, v2") == new
    # MERGE updates rows in place.
    updated = [(n, 10 * n, "o" if n < 3 else None, "n", 10 * n) for n in (1, 2, 3)]
    assert project.rows("merged", "id, v, old, note, v2") == updated
    old = [(n, 10 * n, "o", None, None) for n in (1, 2)]
    assert project.rows("added", "id, v, old, note, v2") == [old[0], new[0], old[1], new[1], new[2]]
    assert project.rows("batches", "id, old, note, v2") == [(1, None, "n", 1)]
    versions = project.rows("snap", "id, note, dbt_valid_to is null")
    assert versions == [(1, "n", True), (1, None, False), (2, "n", True), (2, None, False), (3, "n", True)]
    # The letters are beside the table of their model.
    assert "1 of 3 rows could not be placed and is in" in run.log
    assert f"`other`.`{scenario.schema}`.`lettered_dlt`" in run.log
    assert project.rows("lettered_dlt", "modelName") == [("lettered",)]
    assert project.there("facts").properties["comment"] == "it's there"
    assert {field.name: field.doc for field in project.there("facts").schema().fields}["v"] == "a value"
    assert project.there("table_there").properties["comment"] == "a table"
    assert scenario.sql(f"select n from lake.{scenario.schema}.back_here") == [(9,)]
    # What has the same name in the other catalog is as it was.
    assert scenario.field_ids("facts") == here
    assert scenario.rows("facts") == [(1, 10), (2, 20), (3, 30)]
    assert scenario.tables() == ["back_here", "facts"]
    in_other = [*names, "codes", "table_there", "lettered_dlt"]
    assert project.tables() == sorted(in_other)

    operations(project)

    project.command("docs", "generate")
    catalog = json.loads((scenario.folder / "target/catalog.json").read_text())
    shown = {
        (node["metadata"]["database"], node["metadata"]["name"]): node for node in catalog["nodes"].values()
    }
    assert {name for database, name in shown if database == "other"} == {
        *in_other,
        "view_there",
    } - {"lettered_dlt"}
    assert {key for key in shown if key[0] != "other"} == {
        ("lake", "facts"),
        ("lake", "back_here"),
        ("spark_catalog", "plain"),
    }
    assert shown["other", "facts"]["metadata"]["comment"] == "it's there"
    assert shown["spark_catalog", "plain"]["columns"]["v"]["type"] == "bigint"
    project.command("source", "freshness")
    project.command("run", "--full-refresh", "--select", "facts", "view_there", "plain")
    assert list(field_ids(project.there("facts"))) == ["id", "v", "note", "v2", "old"]


def operations(project: Project) -> None:
    """Run each operation on a model in `other`."""
    scenario = project.scenario
    history = project.operation("schema_history", model="facts")
    assert f"`other`.`{scenario.schema}`.`facts`" in history
    assert "added `note` (4) string" in history
    assert "is finished: 3 rows in 1 batch" in project.operation(
        "backfill_column", model="facts", column="old", value="concat('b', id)"
    )
    assert project.rows("facts", "old") == [("b1",), ("b2",), ("b3",)]
    with project.there("facts").update_schema(allow_incompatible_changes=True) as update:
        update.delete_column("old")
    restored = project.operation("restore_column", model="facts", column="old")
    assert "Done: `old` is back as field 3" in restored
    assert project.rows("facts", "old") == [("b1",), ("b2",), ("b3",)]
    with project.there("lettered").update_schema(allow_incompatible_changes=True) as update:
        update.rename_column("n", "n_old")
    with project.there("lettered").update_schema() as update:
        update.add_column("n", StringType())
    letters = f"`other`.`{scenario.schema}`.`lettered_dlt`"
    project.operation("run_query", sql=f"update {letters} set loadedAt = now()")
    assert "1 dead letter of" in project.operation("replay_dead_letters", model="lettered")
    rows = [(1, 5, None), (2, 5, None), (11, 5, None), (12, 5, None), (13, None, "six")]
    assert project.rows("lettered", "id, n_old, n") == rows
    assert project.rows("lettered_dlt") == []


def field_ids(table: Table) -> dict[str, int]:
    """The field id of each column."""
    return {field.name: field.field_id for field in table.schema().fields}


@pytest.mark.servers
def test_a_server_beside_a_file(
    scenario_factory: Callable[..., Scenario], server_properties: dict[str, str]
) -> None:
    scenario = scenario_factory(catalogs={"other": server_properties, "away": AWAY})
    project = Project(scenario, server_properties)
    for evolved in (False, True):
        write(project, evolved=evolved)
        project.command("build", "--exclude", "source:*,resource_type:test")
    rows = [(n, 10 * n, None, "n", 10 * n) for n in (1, 2, 3)]
    assert project.rows("facts", "id, v, old, note, v2") == rows
    assert len(project.rows("snap")) == 5
    assert scenario.rows("facts") == [(1, 10), (2, 20), (3, 30)]
    assert not [name for name in project.tables() if "__dbt_tmp" in name]


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
    fresh = "config: {freshness: {warn_after: {count: 1, period: day}}}"
    scenario.file(
        "models/models.yml",
        f"""sources:
  - {{name: gone, database: away, schema: s, {fresh}, tables: [{{name: t}}, {{name: u}}]}}
  - {{name: gone_too, database: away, schema: s2, tables: [{{name: t}}]}}
  - {{name: here, database: lake, schema: {scenario.schema}, {fresh}, tables: [{{name: codes}}]}}
  - {{name: there, database: other, schema: {scenario.schema}, {fresh}, tables: [{{name: first}}]}}
""",
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
    ages_and_docs(scenario)
    a_macro_makes_schemas(project)
    two_nodes_of_one_table(scenario)
    debug = scenario.dbt("debug")
    assert not debug.success
    assert "catalog `other`: SQL" in debug.log
    assert "Of 3 catalogs, 1 cannot be worked with: `away`." in debug.log
    assert "The Iceberg catalog `away` at 127.0.0.1:1 cannot be reached" in debug.log


def test_only_what_is_in_a_catalog_that_spark_cannot_open_fails(
    project: Project, profile_target: dict[str, Any], scenario_factory: Callable[..., Scenario], method: str
) -> None:
    """PyIceberg can, so that it is not away; and of one that is not stated Spark alone knows."""
    if method != "session":
        pytest.skip("the server's operator sets up its catalogs")
    odd = {**profile_target["catalog_properties"], "warehouse": f"file://{project.scenario.folder}/odd"}
    config = {**profile_target["spark_config"], "spark.sql.catalog.odd.type": "none such"}
    scenario = scenario_factory(catalogs={"odd": odd}, spark_config=config)
    for name, database in (("here", "lake"), ("there", "odd"), ("unknown", "nowhere")):
        scenario.model("select 1 as id", name=name, database=database, materialized="table", unique_key=None)
    scenario.model("select id from {{ ref('there') }}", name="reads_it")
    scenario.model("select 1 as id", "seen", database="nowhere", materialized="view", unique_key=None)
    run = scenario.dbt("run")
    found = {node.node.name: str(node.status) for node in run.result.result}
    nowhere = {"unknown": "error", "seen": "error"}
    assert found == {"here": "success", "there": "error", "reads_it": "skipped", **nowhere}
    assert scenario.rows("here") == [(1,)]
    assert "none such" in run.said["there"]
    lacks = "Spark has no catalog `nowhere`, since `spark.sql.catalog.nowhere` is not set"
    for name in nowhere:
        assert lacks in " ".join(run.said[name].split())
    # Spark would take its name for a schema's of `lake`.
    assert "nowhere" not in [row[0] for row in scenario.sql("show schemas in lake")]
    warned = [
        text.removeprefix("SparkEvolve adapter: ")
        for text in run.warnings
        if "What is built in it, or reads from it, fails." in text
    ]
    assert [text.partition(":")[0] for text in sorted(warned)] == [
        "Spark could not list the schemas of the catalog `odd`",
        lacks,
    ]
    # What nobody needs is not asked.
    run = scenario.run("--select", "here")
    assert (run.success, run.warnings) == (True, [])


def ages_and_docs(scenario: Scenario) -> None:
    """Ask for the age of each source and for the docs, of which only those of `away` are missing."""
    run = scenario.dbt("source", "freshness")
    found = {
        f"{node.node.source_name}.{node.node.name}": (str(node.status), str(node.message))
        for node in run.result.result.results
    }
    assert {name: status for name, (status, _) in found.items()} == {
        "gone.t": "runtime error",
        "gone.u": "runtime error",
        "here.codes": "pass",
        "there.first": "pass",
    }
    for name in ("t", "u"):
        assert "The Iceberg catalog `away` at 127.0.0.1:1 cannot be reached" in found[f"gone.{name}"][1]
    scenario.dbt("docs", "generate")
    catalog = json.loads((scenario.folder / "target/catalog.json").read_text())
    assert set(catalog["nodes"]) == {"seed.case.codes", "model.case.first", "model.case.third"}
    assert set(catalog["sources"]) == {"source.case.here.codes", "source.case.there.first"}
    (problem,) = catalog["errors"]
    assert "The Iceberg catalog `away` at 127.0.0.1:1 cannot be reached" in problem


def a_macro_makes_schemas(project: Project) -> None:
    """Make schemas by a macro of the user's: of one that is not made, nothing comes later that could fail."""
    project.scenario.file(
        "macros/make.sql",
        "{% macro make(db, schema) %}"
        "{% do adapter.create_schema(api.Relation.create(database=db, schema=schema)) %}"
        "{% do log('there: ' ~ adapter.check_schema_exists(db, schema), info=true) %}{% endmacro %}",
    )
    assert "there: True" in project.operation("make", db="other", schema="by_macro")
    assert project.other.namespace_exists("by_macro")
    for database, text in (("away", "cannot be reached"), ("nowhere", "Spark has no catalog `nowhere`")):
        args = json.dumps({"db": database, "schema": "by_macro"})
        made = project.scenario.dbt("run-operation", "make", "--args", args)
        assert not made.success
        assert text in " ".join(made.log.split())
        assert "there: " not in made.log


def two_nodes_of_one_table(scenario: Scenario) -> None:
    """Write a model that is `third` without the name of the own catalog: to dbt, it is another table."""
    before = scenario.state("third")
    scenario.file(
        "macros/database.sql",
        "{% macro generate_database_name(custom_database_name=none, node=none) %}"
        "{% do return(custom_database_name) %}{% endmacro %}",
    )
    scenario.model("select 2 as id", name="twin", alias="third")
    failed = scenario.dbt("run", "--select", "twin")
    assert not failed.success
    schema = scenario.schema
    assert (
        "Two nodes of the project are one table of the catalog `lake`: the model `third` as "
        f"`lake`.`{schema}`.`third`, the model `twin` as `{schema}`.`third`."
    ) in " ".join((failed.message or failed.log).split())
    assert scenario.state("third") == before


@pytest.mark.parametrize("server", ["rest_server", "metastore"])
def test_one_server_under_two_names_is_one_catalog(
    request: pytest.FixtureRequest, scenario_factory: Callable[..., Scenario], server: str
) -> None:
    """Nothing is made, not even a schema: dbt makes those before it looks at any relation."""
    properties = request.getfixturevalue(server).properties
    scenario = scenario_factory(catalogs={"one": properties, "two": properties})
    schema = scenario.schema
    catalog = load_catalog("one", **properties)
    scenario.model("select 1 as id", name="first", database="one", alias="t")
    scenario.model("select 2 as id", name="second", database="two", alias="t")
    scenario.model("select 3 as id", name="third", database="lake")
    for arguments in ((), ("--no-populate-cache",), ("--select", "second")):
        failed = scenario.fail(*arguments)
        assert (
            "Two nodes of the project are one table of the catalog `one` and `two`, which are one to go by "
            f"the profile: the model `first` as `one`.`{schema}`.`t`, the model `second` as "
            f"`two`.`{schema}`.`t`."
        ) in " ".join(failed.message.split())
        assert not catalog.namespace_exists((schema,))
        assert schema not in [row[0] for row in scenario.sql("show schemas in lake")]
    scenario.model("select 2 as id", name="second", database="two", alias="u")
    scenario.run()
    scenario.run()
    assert sorted(catalog.list_tables((schema,))) == [(schema, "t"), (schema, "u")]
    assert [duckdb_rows(catalog.load_table((schema, name)), "id") for name in "tu"] == [[(1,)], [(2,)]]
    assert scenario.rows("third") == [(3,)]
    for name in "tu":
        catalog.drop_table((schema, name))
    catalog.drop_namespace((schema,))
