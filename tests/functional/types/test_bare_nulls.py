"""A bare NULL is a value: it is written into the column that the table has, whatever that is."""

from typing import Any

from tests.functional.harness import Scenario

BEFORE = (
    "select 1 as id, 'old' as note, named_struct('a', 1, 'b', 'x') as s, array(named_struct('c', 1)) as l, "
    "map('k', 1) as m, cast(1.5 as decimal(10,2)) as d"
)
AFTER = (
    "select 1 as ID, null as NOTE, named_struct('B', 'y', 'a', null) as s, array(null) as l, "
    "map('k', null) as m, null as d, null as unknown"
)
OPTIONS: dict[str, dict[str, Any]] = {
    "plain": {},
    "keeping": {"removed_columns": "keep"},
    "merged": {"incremental_strategy": "merge"},
    "overwritten": {"incremental_strategy": "insert_overwrite", "unique_key": None},
}


def read(scenario: Scenario, name: str) -> list[dict[str, Any]]:
    rows = scenario.table(name).scan().to_arrow().to_pylist()
    return [{**row, "m": dict(row["m"]) if row["m"] is not None else None} for row in rows]


def test_a_bare_null_replaces_a_value(scenario: Scenario) -> None:
    for name, option in OPTIONS.items():
        scenario.model(BEFORE, name, **option)
    scenario.model(BEFORE, "failing", on_schema_change="fail")
    scenario.run()
    ids = scenario.field_ids("merged")
    for name, option in OPTIONS.items():
        scenario.model(AFTER, name, **option)
    scenario.model(AFTER, "failing", on_schema_change="fail")
    run = scenario.run()
    for name in [*OPTIONS, "failing"]:
        assert read(scenario, name) == [
            {"id": 1, "note": None, "s": {"a": None, "b": "y"}, "l": [None], "m": {"k": None}, "d": None}
        ], name
        assert f"{scenario.relation(name)}: `unknown` is a bare NULL, which has no type" in run.log
        assert scenario.schemas(name) == 1
    assert scenario.field_ids("merged") == ids
    assert "is not in the model" not in run.log
    # Empty ones have no type inside either; a whole struct, list or map may be NULL.
    for name, option in OPTIONS.items():
        scenario.model("select 1 as id, 'n' as note, null as s, array() as l, map() as m", name, **option)
    scenario.run("--select", " ".join(OPTIONS))
    for name in OPTIONS:
        kept = {"note": "n", "s": None, "l": [], "m": {}, "d": None}
        assert read(scenario, name) == [{"id": 1, **kept}], name


def test_a_bare_null_of_a_not_null_column_relaxes_it_or_is_refused(scenario: Scenario) -> None:
    scenario.sql(f"create schema if not exists `lake`.`{scenario.schema}`")
    for name in ("t", "strict"):
        scenario.sql(f"create table {scenario.relation(name)} (id int, n string not null) using iceberg")
        scenario.sql(f"insert into {scenario.relation(name)} values (1, 'x'), (null, 'y')")
    batch = "select null as id, null as n"
    scenario.model(batch)
    scenario.model(batch, "strict", relax_not_null=False)
    plan = scenario.dbt("run", "--select", "t", "--vars", "sparkevolve_plan_only: true")
    assert "change     let `n` be NULL" in plan.log, plan.log
    before = scenario.state("strict")
    assert "is NOT NULL in the table" in scenario.fail().message
    assert scenario.state("strict") == before
    # The key is a bare NULL, too: it finds the row that has NULL there.
    assert scenario.rows() == [(None, None), (1, "x")]
    assert not scenario.table().schema().find_field("n").required


def test_a_bare_null_in_a_snapshot_is_a_new_version(scenario: Scenario) -> None:
    config = "{{ config(unique_key='id', strategy='check', check_cols='all') }}"

    def source(sql: str) -> None:
        scenario.file("snapshots/s.sql", f"{{% snapshot s %}}{config}{sql}{{% endsnapshot %}}")

    source("select 1 as id, 'x' as note, named_struct('a', 1) as st")
    assert scenario.dbt("snapshot").success
    source("select 1 as id, null as note, named_struct('a', null) as st")
    run = scenario.dbt("snapshot")
    assert run.success, run.message
    assert "is not in the model" not in run.log
    rows = scenario.table("s").scan().to_arrow().to_pylist()
    found = sorted(((r["note"], r["st"], r["dbt_valid_to"] is None) for r in rows), key=str)
    assert found == [("x", {"a": 1}, False), (None, {"a": None}, True)]
