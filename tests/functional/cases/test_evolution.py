"""NOT NULL, renames, columns that somebody else dropped, the plan that changes nothing, and the history."""

import json

from pyiceberg.catalog import Catalog

from tests.functional.harness import Scenario


def precreate(scenario: Scenario, columns: str, rows: str = "", clauses: str = "") -> None:
    scenario.sql(f"create schema if not exists `lake`.`{scenario.schema}`")
    scenario.sql(f"create table {scenario.relation()} ({columns}) using iceberg {clauses}")
    if rows:
        scenario.sql(f"insert into {scenario.relation()} values {rows}")


def test_i07_a_removed_not_null_column_is_made_optional(scenario: Scenario) -> None:
    precreate(scenario, "id int, v string not null, o int", "(1, 'a', 1)")
    scenario.model("select 2 as id, 2 as o")
    run = scenario.run()
    assert f"{scenario.relation()}: let `v` be NULL" in run.log
    assert scenario.rows() == [(1, "a", 1), (2, None, 2)]
    assert scenario.schemas() == 2
    scenario.run()
    assert scenario.schemas() == 2


def test_i07_relaxing_can_be_refused(scenario: Scenario) -> None:
    precreate(scenario, "id int, v string not null, o int", "(1, 'a', 1)")
    before = scenario.state()
    scenario.model("select 1 as id, 2 as o", relax_not_null=False)
    run = scenario.fail()
    assert (
        "Column `v` is NOT NULL in the table, and the model no longer returns it, so it cannot be padded "
        "with NULL. Return it from the model again, or set `relax_not_null: true` to make it optional."
        in run.message
    )
    assert scenario.state() == before


def test_a_null_in_a_not_null_column_makes_it_optional_and_no_null_leaves_it(scenario: Scenario) -> None:
    precreate(
        scenario,
        "id int not null, v string not null, s struct<x: int not null>",
        "(1, 'a', named_struct('x', 1))",
    )
    scenario.model("select 1 as id, cast(null as string) as v, named_struct('x', cast(null as int)) as s")
    scenario.run()
    fields = {f.name: f.required for f in scenario.table().schema().fields}
    assert fields == {"id": True, "v": False, "s": False}
    assert scenario.rows() == [(1, None, {"x": None})]


def test_an_identifier_field_cannot_be_padded(scenario: Scenario) -> None:
    precreate(scenario, "id int not null, v string", "(1, 'a')")
    scenario.sql(f"alter table {scenario.relation()} set identifier fields id")
    before = scenario.state()
    scenario.model("select 'b' as v", unique_key="v")
    run = scenario.fail()
    assert "Column `id` is an identifier field of the table, which cannot be NULL" in run.message
    assert scenario.state() == before


def test_i08_a_new_column_is_optional_whatever_the_contract_says(scenario: Scenario) -> None:
    contract = {"enforced": True}
    properties = """
version: 2
models:
  - name: t
    columns:
      - {name: id, data_type: int}
      - {name: n, data_type: int, constraints: [{type: not_null}]}
"""
    scenario.model("select 1 as id")
    scenario.run()
    scenario.file("models/t.yml", properties)
    scenario.model("select 2 as id, 5 as n", contract=contract, on_schema_change="append_new_columns")
    scenario.run()
    assert scenario.rows() == [(1, None), (2, 5)]
    assert [f.required for f in scenario.table().schema().fields] == [False, False]


def test_a_rename_keeps_id_and_values(scenario: Scenario) -> None:
    scenario.model("select 1 as id, 'ann' as cust, named_struct('x', 1) as s")
    scenario.run()
    ids = scenario.field_ids()
    renames = {"CUST": "customer", "s.x": "y"}
    scenario.model(
        "select 2 as id, 'bob' as customer, named_struct('y', 2) as s, 5 as extra", column_renames=renames
    )
    scenario.run()
    assert scenario.columns() == ["id", "customer", "s", "extra"]
    assert scenario.field_ids()["customer"] == ids["cust"]
    assert scenario.rows() == [(1, "ann", {"y": 1}, None), (2, "bob", {"y": 2}, 5)]
    assert scenario.schemas() == 2
    scenario.run()
    assert scenario.schemas() == 2


def test_a_rename_is_refused_where_both_exist_or_the_old_name_is_returned(scenario: Scenario) -> None:
    scenario.model("select 1 as id, 'a' as old, 'b' as new")
    scenario.run()
    before = scenario.state()
    scenario.model("select 1 as id, 'b' as new", column_renames={"old": "new"})
    assert "`column_renames` wants `old` to become `new`, and the table has both." in scenario.fail().message
    scenario.model("select 1 as id, 'a' as old", column_renames={"old": "newer"})
    run = scenario.fail()
    assert (
        "`column_renames` wants `old` to become `newer`, and the model still returns the old name."
        in run.message
    )
    assert scenario.state() == before


def test_a_column_that_somebody_dropped_comes_back_new_and_with_a_warning(scenario: Scenario) -> None:
    scenario.model("select 1 as id, 'keep' as note")
    scenario.run()
    assert scenario.field_ids() == {"id": 1, "note": 2}
    scenario.sql(f"alter table {scenario.relation()} drop column note")
    scenario.model("select 2 as id, 'again' as note")
    run = scenario.run()
    assert (
        "Column `note` was in the table before, as field 2 of type string, until schema 1 dropped it (schema "
        "0 had it last). It is added as a new column: its old values do not come back." in run.log
    )
    assert scenario.field_ids() == {"id": 1, "note": 3}
    assert scenario.rows() == [(1, None), (2, "again")]


def test_a_column_that_left_the_model_comes_back_with_its_values(scenario: Scenario) -> None:
    scenario.model("select 1 as id, 'keep' as note")
    scenario.run()
    scenario.model("select 2 as id")
    scenario.run()
    scenario.model("select 3 as id, 'again' as note")
    scenario.run()
    assert scenario.field_ids() == {"id": 1, "note": 2}
    assert scenario.rows() == [(1, "keep"), (2, None), (3, "again")]
    assert scenario.schemas() == 1


def test_h14_sixty_columns_are_one_commit(scenario: Scenario) -> None:
    scenario.model("select 1 as id")
    scenario.run()
    scenario.model("select 1 as id, " + ", ".join(f"{n} as c{n}" for n in range(1, 61)))
    scenario.run()
    assert scenario.schemas() == 2
    assert scenario.rows() == [(1, *range(1, 61))]


def test_i05_a_new_column_named_like_a_partition_field(scenario: Scenario) -> None:
    precreate(
        scenario, "id int, ts timestamp", "(1, timestamp'2024-01-01 00:00:00')", "partitioned by (days(ts))"
    )
    before = scenario.state()
    scenario.model("select 1 as id, current_timestamp() as ts, date'2024-01-01' as ts_day")
    run = scenario.fail()
    assert (
        "The model returns the new column `ts_day`, but a partition spec of the table has, or once had, a "
        "field of that name, and Iceberg cannot hold both." in run.message
    )
    assert scenario.state() == before
    scenario.sql(f"alter table {scenario.relation()} drop partition field ts_day")
    assert "ts_day" in scenario.fail().message


def test_i02_a_removed_partition_column_is_warned_of(scenario: Scenario) -> None:
    precreate(scenario, "id int, region string", "(1, 'n')", "partitioned by (region)")
    scenario.model("select 2 as id")
    run = scenario.run()
    assert "The table is partitioned by `region`, which the model no longer returns" in run.log
    assert scenario.rows() == [(1, "n"), (2, None)]
    scenario.sql(f"call lake.system.rewrite_data_files(table => '{scenario.schema}.t')")
    assert scenario.rows() == [(1, "n"), (2, None)]


def test_i03_a_partition_column_dropped_outside(scenario: Scenario) -> None:
    precreate(scenario, "id int, v int, region string", "(1, 1, 'n'), (2, 2, 's')", "partitioned by (region)")
    scenario.sql(f"alter table {scenario.relation()} drop partition field region")
    scenario.sql(f"alter table {scenario.relation()} drop column region")
    scenario.model("select 1 as id, 5 as v, 6 as n")
    scenario.run()
    assert scenario.rows() == [(1, 5, 6), (2, 2, None)]


def test_a_format_v3_table_is_loaded_and_its_schema_left_alone(scenario: Scenario) -> None:
    scenario.model("select 1 as id, 1 as v", tblproperties={"format-version": "3"})
    scenario.run()
    scenario.model("select 1 as id, 2 as v union all select 2, 2")
    scenario.run()
    assert scenario.rows() == [(1, 2), (2, 2)]
    before = scenario.state()
    scenario.model("select 1 as id, 2 as v, 3 as n")
    run = scenario.fail()
    assert "format version 3, to which PyIceberg cannot commit" in run.message
    assert "add column `n` int" in run.message
    assert scenario.state() == before


def test_the_plan_changes_nothing(scenario: Scenario) -> None:
    scenario.model("select 1 as id, 'a' as note")
    scenario.model("select 1 as x", "other", materialized="table")
    scenario.run("--select", "t")
    before = scenario.state()
    scenario.model("select 1 as id, 5 as extra")
    run = scenario.run("--vars", "sparkevolve_plan_only: true")
    table = f"""{scenario.relation()}
  change     add column `extra` int
  pad        `note`
  column     `id` = DBT_INTERNAL_SOURCE.`id`
  column     `note` = CAST(NULL AS string)
  column     `extra` = DBT_INTERNAL_SOURCE.`extra`"""
    assert table in run.log
    assert scenario.state() == before
    assert scenario.tables() == ["t"]

    run = scenario.run("--vars", "sparkevolve_plan_only: true", "--select", "t", "--log-format", "json")
    line = next(line for line in run.log.splitlines() if line.startswith("{") and "projections" in line)
    plan = json.loads(line)
    assert plan["changes"] == ["add column `extra` int"]
    assert plan["removed"] == ["`note`"]
    assert plan["refusals"] == []

    scenario.model("select 1 as id, 5 as note")
    run = scenario.fail("--vars", "sparkevolve_plan_only: true", "--select", "t")
    assert "Column `note` is string in the table, and the model returns int." in run.message
    assert scenario.state() == before
    assert scenario.tables() == ["t"]


def test_the_history_names_runs_and_other_writers(scenario: Scenario, lake: Catalog) -> None:
    scenario.model("select 1 as id, 1 as n")
    scenario.run()
    scenario.model("select 1 as id, 5000000000 as n, 'x' as extra")
    run = scenario.run()
    invocation = run.result.result.args["invocation_command"] and run.result.result.results[0]
    assert invocation is not None
    scenario.sql(f"alter table {scenario.relation()} drop column extra")
    properties = lake.load_table((scenario.schema, "t")).properties
    entry = json.loads(properties["sparkevolve.schema.1"])
    assert entry["added"] == ["`extra`"]
    assert entry["widened"] == ["`n`"]
    history = scenario.dbt("run-operation", "schema_history", "--args", "{model: t}")
    assert history.success, history.message
    text = history.log
    assert "schema 0, " in text
    assert f"dbt run {entry['invocation_id']}" in text
    assert "    changed `n` (2) from int to bigint" in text
    assert "    added `extra` (3) string" in text
    assert "schema 2 (current), " in text
    assert "    dropped `extra` (3) string" in text
    assert "columns now: id (1) int, n (2) bigint" in text
