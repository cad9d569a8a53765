"""Descriptions of tables and columns, and `dbt docs generate`."""

import json
from typing import Any

import pytest
import yaml
from pyiceberg.catalog import Catalog
from pyiceberg.table import Table

from tests.functional.harness import Scenario

# Whatever SQL, Jinja's output, Python's % or Spark's variable substitution might trip over.
AWKWARD = (
    "It's \"quoted\" 'twice' \\ back\\\\slashed \\n \\' `ticked`;\nsecond line -- no comment /* nor this */\n"
    "\tgrüße 日本 🎉 ${spark.app.name} $${x} %s ? :x {0}"
)


def test_descriptions_on_incremental_runs(scenario: Scenario) -> None:
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


@pytest.mark.core
def test_description_of_a_new_column(scenario: Scenario) -> None:
    """Stored in the commit that adds it: one schema commit, not two."""
    scenario.model("select 1 as id", persist_docs={"columns": True})
    scenario.run()
    scenario.model("select 1 as id, 2 as n", persist_docs={"columns": True})
    columns = [{"name": "n", "description": AWKWARD}]
    scenario.file("models/docs.yml", yaml.safe_dump({"models": [{"name": "t", "columns": columns}]}))
    scenario.run()
    assert scenario.docs() == {"id": None, "n": AWKWARD}
    assert scenario.schemas() == 2


def test_docs_generate_after_evolution(scenario: Scenario, monkeypatch: pytest.MonkeyPatch) -> None:
    """And it costs a load for each table, a statement for each view, and nothing for what is beside them."""
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
    foreign = scenario.relation("foreign")
    scenario.sql(f"create table {foreign} (id int) using iceberg")
    scenario.sql(f"create view {scenario.relation('broken')} as select * from {foreign}")
    scenario.sql(f"create table {scenario.relation('beside')} (id int) using iceberg")
    scenario.sql(f"drop table {foreign}")
    loads: list[str] = []
    of_catalog = type(scenario.table().catalog)
    load_table = of_catalog.load_table

    def counted(catalog: Catalog, identifier: tuple[str, ...]) -> Table:
        loads.append(identifier[-1])
        return load_table(catalog, identifier)

    monkeypatch.setattr(of_catalog, "load_table", counted)

    def generate(*arguments: str) -> tuple[dict[str, Any], list[str], int]:
        """The nodes of the catalog, the tables loaded for them, and how many statements described others."""
        loads.clear()
        run = scenario.dbt("docs", "generate", *arguments)
        assert run.success, run.message
        nodes = json.loads((scenario.folder / "target" / "catalog.json").read_text())["nodes"]
        return nodes, sorted(loads), run.log.count("describe extended")

    nodes, *cost = generate("--select", "t")
    assert [[*nodes], *cost] == [["model.case.t"], ["t"], 0]
    nodes, *cost = generate()
    assert cost == [["t", "v"], 1]
    table = nodes["model.case.t"]
    figures = {name: figure["value"] for name, figure in table["stats"].items()}
    # The row of the first run is deleted, and still in its file.
    assert (figures["rows"], figures["files"], figures["snapshots"]) == (1, 2, 3)
    assert table["stats"]["rows"]["label"] == "Approximate row count"
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
