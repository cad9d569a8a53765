"""NOT NULL, renames, columns that somebody else dropped, the plan that changes nothing, and the history."""

import json
import re
import uuid
from datetime import time

import pyarrow as pa
from pyiceberg.catalog import Catalog
from pyiceberg.schema import Schema
from pyiceberg.types import BinaryType, FixedType, IntegerType, NestedField, TimeType, UUIDType

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


def test_not_null_structs_lists_and_maps_are_counted(scenario: Scenario) -> None:
    """Iceberg keeps no counts of NULL for them, so the staged rows are asked; only for these columns."""
    types = "struct<x: int>", "array<int>", "map<string, int>", "struct<x: int>"
    columns = ", ".join(f"`C {n}` {type_} not null" for n, type_ in enumerate(types))
    values = "named_struct('x', {0})", "array({0}, null)", "map('k', {0})", "named_struct('x', {0})"
    precreate(scenario, f"id int, {columns}", f"(1, {', '.join(v.format(1) for v in values)})")
    items = [f"{value.format(2)} as `c {n}`" for n, value in enumerate(values)]
    scenario.model(f"select 2 as id, {', '.join(items)}", relax_not_null=False)
    run = scenario.run()
    counted = [f"count_if(DBT_INTERNAL_SOURCE.`c {n}` IS NULL)" for n in range(4)]
    assert f"SELECT {', '.join(counted)}" in run.log
    assert scenario.schemas() == 1
    assert [row[0] for row in scenario.rows()] == [1, 2]
    before = scenario.state()
    scenario.model(
        f"select id, {', '.join(f'if(id = 3, null, `c {n}`) as `c {n}`' for n in range(3))}, `c 3`\n"
        f"from (select explode(array(2, 3)) as id, {', '.join(items)})",
        relax_not_null=False,
    )
    run = scenario.fail()
    assert [f"Column `C {n}` is NOT NULL in the table" in run.message for n in range(4)] == [True] * 3 + [
        False
    ]
    assert scenario.state() == before
    scenario.file("models/t.sql", (scenario.folder / "models/t.sql").read_text().replace("False", "True"))
    scenario.run()
    required = {f.name: f.required for f in scenario.table().schema().fields}
    assert required == {"id": False, "C 0": False, "C 1": False, "C 2": False, "C 3": True}
    assert [row[1] for row in scenario.rows()] == [{"x": 1}, {"x": 2}, None]


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
        "The model returns the new column `ts_day`, but a partition spec of the table has, or once had, the "
        "field `ts_day`, and Iceberg cannot hold both." in run.message
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


PLAN_ONLY = ("--vars", "sparkevolve_plan_only: true")


def test_the_plan_of_several_models_of_which_some_are_refused(scenario: Scenario) -> None:
    """Each is planned, and dbt fails; nothing is staged, no post-hook runs, no snapshot is made."""
    for name in ("t", "refused"):
        scenario.model("select 1 as id, 'a' as note, named_struct('x', 1) as s", name)
    scenario.run()
    before = [scenario.state(name) for name in ("t", "refused")]
    hook = "insert into {{ this }} values (9, 'hook', null)"
    scenario.model(
        "select cast(1 as bigint) as id, named_struct('x', cast(2 as bigint), 'y', 3) as s",
        post_hook=hook,
    )
    scenario.model("select 1 as id, 5 as note, 6 as n", "refused")
    scenario.model("select id, null as nothing from {{ ref('t') }}", "fresh")
    scenario.model("select 1 as _file", "fresh_refused")
    scenario.model("select * from {{ ref('plain') }}", "fresh_on_fresh", unique_key=None)
    scenario.model("select 1 as z", "plain", materialized="table", unique_key=None, on_schema_change=None)
    run = scenario.fail(*PLAN_ONLY)
    messages = {node.node.name: str(node.message) for node in run.result.result or ()}
    assert {name: messages[name] for name in ("t", "fresh", "fresh_on_fresh", "plain")} == {
        "t": "planned, nothing was changed",
        "fresh": "planned, nothing was changed",
        "fresh_on_fresh": "planned, nothing was changed",
        "plain": "not incremental, not run",
    }
    assert (
        "The run would be refused: Column `note` is string in the table, and the model returns int."
        in messages["refused"]
    )
    refused = messages["fresh_refused"]
    assert "The run would be refused:\n    * The model returns the column `_file`, a name that" in refused
    assert "\n    * The unique_key `id` is not produced by the model, which returns `_file`." in refused
    assert (
        f"{scenario.relation()}\n"
        "  change     widen `id` from int to bigint\n"
        "  change     widen `s`.`x` from int to bigint\n"
        "  change     add field `s`.`y` int\n"
        "  pad        `note`\n"
        "  column     `id` = DBT_INTERNAL_SOURCE.`id`\n"
        "  column     `note` = CAST(NULL AS string)\n"
        "  column     `s` = DBT_INTERNAL_SOURCE.`s`\n"
    ) in run.log
    assert (
        f"{scenario.relation('fresh')}: would be created from the model\n"
        "  column     `id`\n"
        "  warning    `nothing` is a bare NULL, which has no type, and is left out."
    ) in run.log
    assert (
        f"{scenario.relation('fresh_on_fresh')}: would be created from the model\n"
        "  warning    The model cannot be analysed: [TABLE_OR_VIEW_NOT_FOUND]"
    ) in run.log
    assert [scenario.state(name) for name in ("t", "refused")] == before
    assert scenario.tables() == ["refused", "t"]


def test_the_plan_of_a_full_refresh_lists_what_goes(scenario: Scenario) -> None:
    scenario.model("select 1 as id, 'a' as note, 2 as n")
    scenario.run()
    before = scenario.state()
    scenario.model("select 1 as id, 3 as more, 2 as N", full_refresh_schema="replace")
    run = scenario.run("--full-refresh", *PLAN_ONLY)
    assert (
        f"{scenario.relation()}: would be created from the model\n"
        "  column     `id`\n"
        "  column     `more`\n"
        "  column     `N`\n"
        "  loses      `note`\n"
    ) in run.log
    scenario.model("select 1 as id, 3 as more, 2 as N")
    run = scenario.run("--full-refresh", *PLAN_ONLY)
    assert f"{scenario.relation()}\n  change     add column `more` int\n  pad        `note`\n" in run.log
    assert scenario.state() == before
    assert scenario.tables() == ["t"]


def test_the_plan_knows_the_policy_fail(scenario: Scenario) -> None:
    scenario.model("select 1 as id, 'a' as note")
    scenario.run()
    before = scenario.state()
    scenario.model("select 1 as id, 3 as more", on_schema_change="fail")
    for arguments in (PLAN_ONLY, ()):
        run = scenario.fail(*arguments)
        assert "In the model only: more. In the table only: note." in run.message
    scenario.model("select 1 as id, 'b' as note", on_schema_change="fail")
    scenario.run(*PLAN_ONLY)
    assert scenario.state() == before
    assert scenario.tables() == ["t"]


def test_a_type_that_spark_lacks_is_refused_and_others_of_another_engine_are_padded(
    scenario: Scenario, lake: Catalog
) -> None:
    scenario.sql(f"create schema if not exists `lake`.`{scenario.schema}`")
    types = {"u": UUIDType(), "f": FixedType(4), "b": BinaryType(), "ti": TimeType()}
    fields = [NestedField(1, "id", IntegerType(), required=False)]
    fields += [
        NestedField(n, name, type_, required=False) for n, (name, type_) in enumerate(types.items(), 2)
    ]
    table = lake.create_table((scenario.schema, "t"), Schema(*fields))
    row = {"id": 1, "u": uuid.UUID(int=7).bytes, "f": b"abcd", "b": b"xyz", "ti": time(1, 2)}
    table.append(pa.Table.from_pylist([row], schema=table.schema().as_arrow()))
    before = scenario.state()
    for sql in (
        "select 2 as id",
        "select 2 as id, cast('01:02:03' as time) as ti",
        "select 2 as id, null as ti",
    ):
        scenario.model(sql)
        for arguments in ((), PLAN_ONLY):
            run = scenario.fail(*arguments)
            assert (
                "Column `ti` of the table has the Iceberg type time, for which Spark SQL has no type, so "
                "that no row can be written. Load this table with an engine that can."
            ) in run.message
    assert scenario.state() == before
    with table.update_schema(allow_incompatible_changes=True) as update:
        update.delete_column("ti")
    scenario.model("select 2 as id, X'616263' as b")
    for _ in range(2):
        scenario.run()
        assert scenario.rows() == [(1, uuid.UUID(int=7), b"abcd", b"xyz"), (2, None, None, b"abc")]
    assert scenario.types() == {"id": "int", "u": "uuid", "f": "fixed[4]", "b": "binary"}
    assert scenario.schemas() == 2


def test_what_somebody_else_dropped_or_renamed_is_warned_of_at_every_level(scenario: Scenario) -> None:
    scenario.model("select 1 as id, array(named_struct('x', 1, 'y', 2)) as l, 1 as n, 2 as o")
    scenario.run()
    table = scenario.relation()
    scenario.sql(f"alter table {table} drop column n")
    scenario.sql(f"alter table {table} drop column l.element.y")
    scenario.sql(f"alter table {table} rename column o to p")
    scenario.model("select 2 as id, array(named_struct('x', 1, 'Y', 2)) as l, 'x' as N, 3 as o")
    run = scenario.run()
    for warning in (
        "Column `N` was in the table before, as field 3 of type int, until schema 1 dropped it (schema 0 had "
        "it last). It is added as a new column: its old values do not come back.",
        "Column `l`.`element`.`Y` was in the table before, as field 7 of type int, until schema 2 dropped it "
        "(schema 1 had it last). It is added as a new column: its old values do not come back.",
        "Column `o` was in the table before, as field 4 of type int, until schema 3 renamed it to `p` "
        "(schema 2 had it last). It is added as a new column: its old values stay in `p`.",
    ):
        assert f"{table}: {warning}" in run.log
    assert scenario.rows() == [
        (1, [{"x": 1, "Y": None}], 2, None, None),
        (2, [{"x": 1, "Y": 2}], None, "x", 3),
    ]
    assert scenario.field_ids() == {"id": 1, "l": 2, "p": 4, "N": 9, "o": 10}
    run = scenario.run()
    assert "was in the table before" not in run.log
    assert scenario.schemas() == 5


def test_a_column_that_we_added_and_somebody_dropped_is_warned_of(scenario: Scenario) -> None:
    """Iceberg takes the older schema again, so no schema comes after the one that had the column."""
    scenario.model("select 1 as id")
    scenario.run()
    scenario.model("select 1 as id, 'keep' as note")
    scenario.run()
    scenario.sql(f"alter table {scenario.relation()} drop column note")
    assert scenario.table().metadata.current_schema_id == 0
    history = scenario.dbt("run-operation", "schema_history", "--args", "{model: t}").log
    created, tail = history.split("  schema ")[1], history[history.rindex("  schema 0 (current), ") :]
    # Our own run has created it, and it is all the same who has.
    assert re.match(r"0, [^,]+, as the table was created\n", created)
    dropped = "no run of sparkevolve has recorded it\n    dropped `note` (2) string\n"
    assert f"{dropped}  columns now:\n    `id` (1) int" in tail
    scenario.model("select 2 as id, 'again' as note")
    run = scenario.run()
    assert (
        "Column `note` was in the table before, as field 2 of type string, until schema 0 dropped it "
        "(schema 1 had it last). It is added as a new column: its old values do not come back."
    ) in run.log
    assert scenario.field_ids() == {"id": 1, "note": 3}
    assert scenario.rows() == [(1, None), (2, "again")]


def test_the_record_of_a_table_is_bounded(scenario: Scenario, lake: Catalog) -> None:
    scenario.model("select 1 as id, 1 as c0")
    scenario.run()
    ours = {f"sparkevolve.schema.{number}": "{}" for number in range(1000, 1060)}
    with lake.load_table((scenario.schema, "t")).transaction() as transaction:
        transaction.set_properties(ours)
    scenario.model("select 1 as id, " + ", ".join(f"1 as `{'a long name ' * 6}{n}`" for n in range(300)))
    scenario.run()
    properties = scenario.table().properties
    kept = sorted(name for name in properties if name.startswith("sparkevolve.schema."))
    assert len(kept) == 50
    assert kept[:2] == ["sparkevolve.schema.1", "sparkevolve.schema.1011"]
    entry = json.loads(properties["sparkevolve.schema.1"])
    assert entry["added"] == ["300 fields"]
    history = scenario.dbt("run-operation", "schema_history", "--args", "{model: t}").log
    assert (
        f"dbt run {entry['invocation_id']}, source {entry['source']}\n    added `a long name a long name "
        in history
    )


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
    assert f"dbt run {entry['invocation_id']}, source {entry['source']}" in text
    assert re.fullmatch("[0-9a-f]{16}", entry["source"])
    assert "    changed `n` (2) from int to bigint" in text
    assert "    added `extra` (3) string" in text
    assert "schema 2 (current), " in text
    assert "    dropped `extra` (3) string" in text
    assert "columns now:\n    `id` (1) int\n    `n` (2) bigint" in text
    unnamed = scenario.dbt("run-operation", "schema_history")
    assert "Name a model, snapshot or seed: --args '{model: orders}'." in unnamed.message + unnamed.log
