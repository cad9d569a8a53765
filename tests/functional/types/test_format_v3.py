"""Tables of Iceberg's format version 3, which PyIceberg reads in part and does not commit to."""

import json

import yaml

from tests.functional.harness import Scenario

V3 = {"format-version": "3"}


def describe(scenario: Scenario, text: str, of_id: str) -> None:
    column = {"name": "id", "description": of_id}
    models = [{"name": name, "description": text, "columns": [column]} for name in ("made", "loaded")]
    scenario.file("models/schema.yml", yaml.safe_dump({"version": 2, "models": models}))


def test_descriptions_of_a_table_that_pyiceberg_cannot_commit_to_are_stored(scenario: Scenario) -> None:
    docs = {"relation": True, "columns": True}
    made = {"materialized": "table", "unique_key": None}
    scenario.model("select 1 as id, 'x' as v", "made", tblproperties=V3, persist_docs=docs, **made)
    scenario.model("select 1 as id, 'x' as v", "loaded", tblproperties=V3, persist_docs=docs)
    describe(scenario, "first", "it's \\ first")
    scenario.run()
    describe(scenario, "then", "then")
    scenario.run()
    for name in ("made", "loaded"):
        assert scenario.docs(name) == {"id": "then", "v": None}
        assert scenario.table(name).properties["comment"] == "then"
        assert scenario.table(name).metadata.format_version == 3
        assert scenario.rows(name) == [(1, "x")]
    before = scenario.table("loaded").metadata.schemas
    scenario.run("--select", "loaded")
    assert scenario.table("loaded").metadata.schemas == before


def test_a_table_with_a_variant_is_made_again_described_and_loaded(scenario: Scenario) -> None:
    sql = "select 1 as id, parse_json('{}') as v"
    scenario.model(sql.format('{"a":1}'), materialized="table", unique_key=None, tblproperties=V3)
    scenario.run()
    scenario.model(sql.format('{"a":2}'), materialized="table", unique_key=None, tblproperties=V3)
    scenario.run()
    assert scenario.sql(f"select id, to_json(v) from {scenario.relation()}") == [(1, '{"a":2}')]
    assert scenario.dbt("docs", "generate").success
    catalog = json.loads((scenario.folder / "target" / "catalog.json").read_text())
    assert catalog["nodes"]["model.case.t"]["columns"]["v"]["type"] == "variant"
    scenario.model("select 1 as id, 'x' as v")
    assert "Column `v` is variant in the table, and the model returns string" in scenario.fail().message
    scenario.model("select 1 as id, 2 as n")
    scenario.run()
    assert scenario.sql(f"select id, to_json(v), n from {scenario.relation()}") == [(1, None, 2)]


def test_a_table_that_was_upgraded_keeps_its_format_version(scenario: Scenario) -> None:
    """Iceberg takes none back, and the model does not say which it has."""
    scenario.model("select 1 as id", "made", materialized="table", unique_key=None)
    scenario.model("select 1 as id", "loaded", full_refresh_schema="replace")
    scenario.run()
    for name in ("made", "loaded"):
        scenario.sql(f"alter table {scenario.relation(name)} set tblproperties ('format-version' = '3')")
    scenario.model("select 2 as id", "made", materialized="table", unique_key=None)
    scenario.model("select 2 as id", "loaded", full_refresh_schema="replace")
    scenario.run("--full-refresh")
    for name in ("made", "loaded"):
        assert scenario.rows(name) == [(2,)]
        assert scenario.table(name).metadata.format_version == 3
