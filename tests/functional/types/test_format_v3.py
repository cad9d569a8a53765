"""Tables of Iceberg's format version 3, which PyIceberg reads in part and does not commit to."""

import json

import pytest
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
    scenario.sql(f"refresh table {scenario.relation()}")
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


def test_what_else_a_run_commits(scenario: Scenario) -> None:
    """A branch that fails its audits, a full refresh, a seed and a snapshot, each of version 3."""
    v3 = "{'format-version': '3'}"
    scenario.model("select 1 as id, 'x' as v, 1 as gone", tblproperties=V3)
    scenario.file("seeds/codes.csv", "id,v\n1,a\n2,b\n")
    scenario.file("seeds/schema.yml", f"seeds: [{{name: codes, config: {{tblproperties: {v3}}}}}]")
    scenario.file(
        "snapshots/s.sql",
        "{% snapshot s %}{{ config(target_schema=target.schema, unique_key='id', strategy='check', "
        f"check_cols='all', tblproperties={v3}) }}}}"
        "select * from {{ ref('codes') }}{% endsnapshot %}",
    )
    assert scenario.dbt("build").success
    ids = scenario.field_ids()
    before = scenario.state()
    scenario.model("select 2 as id, 'bad' as v", tblproperties=V3, audits=["v <> 'bad'"])
    assert "'bad'" in scenario.fail("--select", "t").message
    # The branch has come and gone: the metadata are others, and no row is.
    assert scenario.rows() == before[1]
    assert list(scenario.table().metadata.refs) == ["main"]
    scenario.model("select 2 as id, 'good' as v", tblproperties=V3)
    scenario.run("--full-refresh", "--select", "t")
    assert (scenario.rows(), scenario.field_ids()) == ([(2, "good", None)], ids)
    scenario.file("seeds/codes.csv", "id,v,n\n1,a,10\n3,c,30\n")
    build = scenario.dbt("build", "--select", "codes", "s")
    assert build.success, build.message
    assert scenario.rows("codes") == [(1, "a", 10), (3, "c", 30)]
    assert scenario.field_ids("codes") == {"id": 1, "v": 2, "n": 3}
    valid = f"select id, v, n from {scenario.relation('s')} where dbt_valid_to is null order by id, n"
    assert scenario.sql(valid) == [(1, "a", 10), (2, "b", None), (3, "c", 30)]
    for name in ("t", "codes", "s"):
        assert scenario.table(name).metadata.format_version == 3
    assert scenario.tables() == ["codes", "s", "t"]


def test_fast_forward_needs_an_ancestor_and_does_not_see_a_rollback(scenario: Scenario) -> None:
    """How a run publishes where there is no compare-and-swap."""
    scenario.model("select 1 as id", tblproperties=V3)
    scenario.run()
    name = scenario.relation()
    scenario.sql(f"insert into {name} values (2)")
    first, second = scenario.snapshots()
    for branch in ("ours", "late"):
        scenario.sql(f"alter table {name} create branch {branch}")
        scenario.sql(f"insert into {name}.branch_{branch} values (3)")
    table = f"table => '{scenario.schema}.t'"
    scenario.sql(f"call lake.system.rollback_to_snapshot({table}, snapshot_id => {first})")
    assert scenario.rows() == [(1,)]
    scenario.sql(f"call lake.system.fast_forward({table}, branch => 'main', to => 'ours')")
    assert scenario.rows() == [(1,), (2,), (3,)]
    with pytest.raises(Exception, match="not an ancestor"):
        scenario.sql(f"call lake.system.fast_forward({table}, branch => 'main', to => 'late')")
    assert scenario.rows() == [(1,), (2,), (3,)]
    assert second in scenario.snapshots()
