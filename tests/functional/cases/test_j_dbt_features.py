"""Group J of the cases from the field: what else dbt does with an incremental model."""

import json
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
import yaml
from pyiceberg.catalog import load_catalog
from pyiceberg.exceptions import NoSuchNamespaceError

from tests.functional.harness import Run, Scenario, SqlRunner

# Whatever SQL, Jinja's output, Python's % or Spark's variable substitution might trip over.
AWKWARD = (
    "It's \"quoted\" 'twice' \\ back\\\\slashed \\n \\' `ticked`;\nsecond line -- no comment /* nor this */\n"
    "\tgrüße 日本 🎉 ${spark.app.name} $${x} %s ? :x {0}"
)


def messages(run: Run) -> dict[str, str]:
    """What dbt says of each node, by its name."""
    return {node.node.name: str(node.message) for node in run.result.result}


def contract(scenario: Scenario, **types: str) -> None:
    """Enforce a contract on the model ``t``."""
    columns = [{"name": name, "data_type": data_type} for name, data_type in types.items()]
    model = {"name": "t", "config": {"contract": {"enforced": True}}, "columns": columns}
    scenario.file("models/t.yml", yaml.safe_dump({"models": [model]}))


def test_j01_contract_and_our_value(scenario: Scenario) -> None:
    """dbt-core refuses our value under a contract when it parses, and takes the one that means the same."""
    scenario.model("select 1 as id, 'kept' as note", on_schema_change="append_new_columns")
    contract(scenario, id="int", note="string")
    scenario.run()
    ids, before = scenario.field_ids(), scenario.state()

    scenario.model("select 2 as id, 'x' as n")
    contract(scenario, id="int", n="string")
    run = scenario.fail()
    assert type(run.result.exception).__name__ == "ValidationError"
    assert (
        "Invalid value for on_schema_change: append_new_columns_preserve. Models materialized as incremental "
        "with contracts enabled must set on_schema_change to 'append_new_columns' or 'fail'"
    ) in run.message
    assert scenario.state() == before

    scenario.model("select 2 as id, 'x' as n", on_schema_change="append_new_columns")
    scenario.run()
    assert scenario.rows() == [(1, "kept", None), (2, None, "x")]
    assert scenario.field_ids() == {**ids, "n": 3}
    assert scenario.schemas() == 2
    scenario.run()
    assert scenario.rows() == [(1, "kept", None), (2, None, "x")]
    assert scenario.schemas() == 2


def test_j02_contract_is_checked_on_incremental_runs(scenario: Scenario) -> None:
    scenario.model("select 1 as id, 1 as v", on_schema_change="append_new_columns")
    contract(scenario, id="int", v="int")
    scenario.run()
    before = scenario.state()

    scenario.model("select 1 as id, 1 as v, 2 as stray", on_schema_change="append_new_columns")
    incremental = scenario.fail()
    assert "This model has an enforced contract that failed." in incremental.message
    assert "stray" in incremental.message
    assert scenario.state() == before
    refresh = scenario.fail("--full-refresh")
    assert refresh.message.split("> in macro")[0] == incremental.message.split("> in macro")[0]
    assert scenario.state() == before

    scenario.model("select 1 as id, 'text' as v", on_schema_change="append_new_columns")
    assert "This model has an enforced contract that failed." in scenario.fail().message
    assert scenario.state() == before
    assert scenario.tables() == ["t"]


def test_j03_full_refresh_warns_of_the_columns_that_go(scenario: Scenario) -> None:
    for name in ("t", "guarded"):
        scenario.model("select 1 as id, 'keep' as note, 5 as `Other`", name=name)
    scenario.run()
    before = scenario.snapshots()
    for name in ("t", "guarded"):
        guard = {"full_refresh": False} if name == "guarded" else {"full_refresh_schema": "replace"}
        scenario.model("select 2 as id, 9 as n", name=name, **guard)
    run = scenario.run("--full-refresh")
    # The one that was asked for: gone, after a warning that lists what goes.
    warning = (
        f"The full refresh of {scenario.relation()} takes away the columns that the model no longer returns: "
        "note, Other, since full_refresh_schema is `replace`."
    )
    assert run.log.count(warning) == 1
    assert "The full refresh of " + scenario.relation("guarded") not in run.log
    assert scenario.columns() == ["id", "n"]
    assert scenario.rows() == [(2, 9)]
    assert set(before) < set(scenario.snapshots()), "the rows from before can be read from an old snapshot"
    # The one that is guarded: an incremental run.
    assert scenario.rows("guarded") == [(1, "keep", 5, None), (2, None, None, 9)]
    assert scenario.schemas("guarded") == 2
    assert scenario.tables() == ["guarded", "t"]
    # Nothing goes: no warning.
    again = scenario.run("--full-refresh", "--select", "t")
    assert "takes away" not in again.log
    assert scenario.rows() == [(2, 9)]


def test_j05_view_becomes_incremental(scenario: Scenario) -> None:
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
    assert {name for name, text in said.items() if text != "OK"} == {"broken"}, said
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
        assert not [key for key in properties if key.startswith("sparkevolve.")], "it is no staged batch"

    scenario.model("select 9 as id, 'table' as v", name="plain")
    scenario.run("--select", "plain")
    assert scenario.rows("plain") == [(1, "table", 2), (9, "table", None)]


def test_j05_view_becomes_incremental_with_another_name_for_the_key(scenario: Scenario) -> None:
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


def test_j06_existing_table_is_not_iceberg(session_catalog: tuple[Scenario, SqlRunner]) -> None:
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
        "Either it has another format (an incremental model needs `file_format: iceberg`; move or drop the "
        "table that is there), or `catalog_properties` of the profile name another catalog than the one that "
        "Spark uses "
        "(`dbt debug` tells). Nothing was written."
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


def test_j06_iceberg_table_in_the_session_catalog(session_catalog: tuple[Scenario, SqlRunner]) -> None:
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


def test_j09_descriptions_on_incremental_runs(scenario: Scenario) -> None:
    empty_later = "select 1 as id, 2 as `Mixed Case` {% if is_incremental() %} where false {% endif %}"
    names = ("t", "tab")

    def describe(table: str, column: str) -> None:
        columns = [{"name": "id"}, {"name": "mixed case", "description": column}]
        models = [{"name": name, "description": table, "columns": columns} for name in names]
        scenario.file("models/docs.yml", yaml.safe_dump({"models": models}, allow_unicode=True))

    def stored(name: str) -> tuple[str | None, dict[str, str | None]]:
        return scenario.table(name).properties.get("comment"), scenario.docs(name)

    docs = {"relation": True, "columns": True}
    scenario.model(empty_later, persist_docs=docs)
    scenario.model(
        "select 1 as id, 2 as `Mixed Case`",
        name="tab",
        materialized="table",
        persist_docs=docs,
        unique_key=None,
        on_schema_change=None,
    )
    describe("first" + AWKWARD, "first column")
    scenario.run()
    for name in names:
        table_comment, column_docs = stored(name)
        assert table_comment == "first" + AWKWARD, name
        assert column_docs["Mixed Case"] == "first column", name
        assert not column_docs["id"], name

    # Unchanged: no new version of the table.
    before = scenario.state()
    scenario.run("--select", "t")
    assert scenario.state() == before

    describe("second table", "second " + AWKWARD)
    schemas, snapshots = scenario.schemas(), scenario.snapshots()
    scenario.run("--select", "t")
    assert stored("t") == ("second table", {"id": scenario.docs()["id"], "Mixed Case": "second " + AWKWARD})
    assert scenario.schemas() == schemas + 1
    assert scenario.snapshots() == snapshots
    assert scenario.rows() == [(1, 2)]

    before = scenario.state()
    scenario.run("--select", "t")
    assert scenario.state() == before

    # A description that is taken away is taken away in the table too.
    describe("", "")
    scenario.run("--select", "t")
    assert not stored("t")[0]
    assert not any(stored("t")[1].values())


def test_j09_description_of_a_new_column(scenario: Scenario) -> None:
    """Stored in the commit that adds it: one schema commit, not two."""
    scenario.model("select 1 as id", persist_docs={"columns": True})
    scenario.run()
    scenario.model("select 1 as id, 2 as n", persist_docs={"columns": True})
    columns = [{"name": "n", "description": AWKWARD}]
    scenario.file("models/docs.yml", yaml.safe_dump({"models": [{"name": "t", "columns": columns}]}))
    scenario.run()
    assert scenario.docs() == {"id": None, "n": AWKWARD}
    assert scenario.schemas() == 2


def test_j10_snapshots_of_an_evolving_model(scenario: Scenario) -> None:
    """dbt-spark's snapshots over a table that gains a column and later pads one."""
    for name, strategy in {
        "by_time": "strategy='timestamp', updated_at='at'",
        "by_check": "strategy='check', check_cols='all'",
    }.items():
        scenario.file(
            f"snapshots/{name}.sql",
            f"{{% snapshot {name} %}}\n"
            f"{{{{ config(target_schema='{scenario.schema}', unique_key='id', {strategy}) }}}}\n"
            "select * from {{ ref('t') }}\n{% endsnapshot %}\n",
        )

    def build() -> None:
        run = scenario.dbt("build")
        assert run.success, run.message or run.log

    def history(name: str) -> list[tuple[Any, ...]]:
        fields = [*scenario.columns(), "dbt_valid_to"]
        rows = scenario.table(name).scan().to_arrow().to_pylist()
        found = [
            tuple(
                row.get(field) is not None if field == "dbt_valid_to" else row.get(field) for field in fields
            )
            for row in rows
        ]
        return sorted(found, key=str)

    early, late = datetime(2024, 1, 1), datetime(2024, 2, 1)
    scenario.model(f"select id, timestamp_ntz'{early}' as at, 'a' as v from values (1), (2) as x(id)")
    build()
    for name in ("by_time", "by_check"):
        assert history(name) == [(1, early, "a", False), (2, early, "a", False)], name
    scenario.model(f"select 1 as id, timestamp_ntz'{late}' as at, 'b' as v, 'new' as n")
    build()
    assert scenario.rows() == [(1, late, "b", "new"), (2, early, "a", None)]
    changed = [(1, early, "a", None, True), (1, late, "b", "new", False)]
    assert history("by_time") == [*changed, (2, early, "a", None, False)]
    # dbt's check strategy takes a new column for a change of each row.
    assert history("by_check") == [*changed, (2, early, "a", None, False), (2, early, "a", None, True)]
    for name in ("by_time", "by_check"):
        assert scenario.columns(name)[:3] == ["id", "at", "v"], name
        assert scenario.schemas(name) == 2, name
    assert scenario.tables() == ["by_check", "by_time", "t"]


def test_j11_python_model_is_refused(scenario: Scenario) -> None:
    scenario.model("select 1 as id")
    scenario.run()
    before = scenario.state()
    (scenario.folder / "models" / "t.sql").unlink()
    scenario.file(
        "models/t.py",
        "def model(dbt, session):\n"
        "    dbt.config(materialized='incremental', on_schema_change='append_new_columns_preserve')\n"
        "    return session.sql('select 2 as id, 3 as n')\n",
    )
    run = scenario.fail()
    assert "only supports languages ['sql']; got \"python\"" in run.message
    assert "create " not in run.log.lower()
    assert scenario.state() == before
    assert scenario.tables() == ["t"]


def test_j15_docs_generate_after_evolution(scenario: Scenario) -> None:
    scenario.model("select 1 as id, 1 as a, 2 as b, 3 as c")
    scenario.run()
    scenario.model(
        "select 1 as id, 'x' as p,\n"
        "  array(named_struct('Y', cast(1 as decimal(7,2)), 'z z', date'2024-01-01')) as q"
    )
    scenario.model(
        "select id, p from {{ ref('t') }}",
        name="v",
        materialized="view",
        unique_key=None,
        on_schema_change=None,
    )
    scenario.run()
    run = scenario.dbt("docs", "generate")
    assert run.success, run.message
    nodes = json.loads((scenario.folder / "target" / "catalog.json").read_text())["nodes"]
    table = nodes["model.case.t"]
    assert table["metadata"]["database"] == "lake"
    assert table["metadata"]["schema"] == scenario.schema
    columns = sorted(table["columns"].values(), key=lambda column: column["index"])
    assert [(column["name"], column["type"]) for column in columns] == [
        ("id", "int"),
        ("a", "int"),
        ("b", "int"),
        ("c", "int"),
        ("p", "string"),
        ("q", "array<struct<`Y`:decimal(7,2),`z z`:date>>"),
    ]
    view = nodes["model.case.v"]
    assert view["metadata"]["type"] == "view"
    assert [(column["name"], column["type"]) for column in view["columns"].values()] == [
        ("id", "int"),
        ("p", "string"),
    ]
