"""`restore_column`: a column that somebody dropped is back under its old id, with its values."""

import json
import re
from collections.abc import Callable

import pytest
from pyiceberg.catalog import Catalog

from tests.functional.duckdb_reader import duckdb_rows
from tests.functional.harness import Run, Scenario, sort_rows


def restore(scenario: Scenario, column: str, **more: object) -> Run:
    arguments = json.dumps({"model": "t", "column": column, **more})
    return scenario.dbt("run-operation", "restore_column", "--args", arguments)


def refused(scenario: Scenario, column: str, **more: object) -> str:
    before = scenario.state()
    run = restore(scenario, column, **more)
    assert not run.success
    assert scenario.state() == before
    return run.message + run.log


def by_spark(scenario: Scenario) -> list[tuple[object, ...]]:
    scenario.sql(f"refresh table {scenario.relation()}")
    return sort_rows(scenario.sql(f"select * from {scenario.relation()}"))


@pytest.mark.core
def test_a_dropped_column_is_back_with_its_values_for_all_readers(scenario: Scenario, lake: Catalog) -> None:
    scenario.model("select 1 as id, 'keep' as note, 5 as n")
    scenario.run()
    table = scenario.relation()
    scenario.sql(f"alter table {table} alter column note comment 'what was said'")
    scenario.sql(f"alter table {table} drop column note")
    scenario.model("select 2 as id, 6 as n")
    scenario.run()

    # The plan changes nothing, and says how to do it.
    before = scenario.state()
    planned = restore(scenario, "NOTE", plan_only=True)
    assert planned.success, planned.message
    for line in (
        "  change   restore column `note` string as field 2, at the end",
        "  history  in schema 0 to 1, dropped by schema 2 (",
        "  values   1 row in 1 file, written while the table had `note`: what they have of it is read",
        "  NULL     1 row in 1 file, written without it",
        "Nothing was changed. To do it: dbt run-operation restore_column "
        "--args '{model: t, column: note, field_id: 2}'",
    ):
        assert line in planned.log
    assert scenario.state() == before

    done = restore(scenario, "note", field_id=2)
    assert done.success, done.message
    assert "Done: `note` is back as field 2, in schema 3." in done.log
    assert scenario.field_ids() == {"id": 1, "n": 3, "note": 2}
    assert scenario.docs()["note"] == "what was said"
    rows = [(1, 5, "keep"), (2, 6, None)]
    assert scenario.rows() == by_spark(scenario) == duckdb_rows(scenario.table()) == rows
    entry = json.loads(scenario.table().properties["sparkevolve.schema.3"])
    assert entry["restored"] == ["`note`"]
    assert scenario.table().metadata.last_column_id == 3

    # A run fills it as any other, and one that does not return it pads it.
    scenario.model("select 3 as id, 'again' as note, 7 as n")
    scenario.run()
    scenario.model("select 4 as id, 8 as n")
    scenario.run()
    rows += [(3, 7, "again"), (4, 8, None)]
    assert scenario.rows() == by_spark(scenario) == duckdb_rows(scenario.table()) == rows
    assert scenario.schemas() == 4
    history = scenario.dbt("run-operation", "schema_history", "--args", "{model: t}").log
    assert "    restored `note` (2) string" in history


def test_what_a_compaction_has_rewritten_is_gone(scenario: Scenario) -> None:
    scenario.model("select 1 as id, 'a' as note", incremental_strategy="append", unique_key=None)
    scenario.run()
    two = "select /*+ coalesce(1) */ * from values (2, 'b'), (3, 'c') as rows(id, note)"
    scenario.model(two, incremental_strategy="append", unique_key=None)
    scenario.run()
    table = scenario.relation()
    # A row that a file of deletes has removed has no value any more.
    scenario.sql(f"delete from {table} where id = 3")
    assert len(list(scenario.table().inspect.delete_files().to_pylist())) == 1
    scenario.sql(f"alter table {table} drop column note")
    scenario.sql(
        f"call lake.system.rewrite_data_files(table => '{scenario.schema}.t', where => 'id = 1', "
        "options => map('rewrite-all', 'true'))"
    )
    # No values are lost with this.
    before = scenario.snapshots()
    scenario.sql(f"call lake.system.rewrite_manifests('{scenario.schema}.t')")
    assert len(scenario.snapshots()) == len(before) + 1
    done = restore(scenario, "note")
    assert done.success, done.message
    assert (
        "  values   1 row in 1 file, written while the table had `note`: what they have of it is read\n"
        "  NULL     1 row in 1 file, written without it; 1 compaction has rewritten files without it since, "
        "and values in these are lost\n"
    ) in done.log
    rows = [(1, None), (2, "b")]
    assert scenario.rows() == by_spark(scenario) == duckdb_rows(scenario.table()) == rows


def test_dropped_and_added_again_and_dropped_again(scenario: Scenario) -> None:
    scenario.model("select 1 as id, 'first' as note")
    scenario.run()
    table = scenario.relation()
    scenario.sql(f"alter table {table} drop column note")
    scenario.model("select 2 as id, 'second' as note")
    warned = scenario.run().log
    assert (
        "its old values do not come back. To have them: give the new one another name with `column_renames: "
        "{note: note_new}`, then `dbt run-operation restore_column "
        "--args '{model: t, column: note, field_id: 2}'`."
    ) in warned

    # The name is taken: the other one is renamed first.
    text = refused(scenario, "note", field_id=2)
    assert (
        "The table has `note`, as field 3, so field 2 cannot come back under that name. Rename that one "
        "first: `column_renames: {note: note_new}` in the model, which then returns it as `note_new` and no "
        "longer as `note`, and a run of the model. Then call this again."
    ) in text
    assert "Field 3 is in use: it is `note`. There is nothing to restore." in refused(
        scenario, "note", field_id=3
    )
    scenario.model("select 3 as id, 'third' as note_new", column_renames={"note": "note_new"})
    scenario.run()
    assert "Field 3 is in use: it was renamed from `note` to `note_new`" in refused(
        scenario, "note", field_id=3
    )
    assert restore(scenario, "note", field_id=2).success
    assert scenario.field_ids() == {"id": 1, "note_new": 3, "note": 2}
    rows = [(1, None, "first"), (2, "second", None), (3, "third", None)]
    assert scenario.rows() == by_spark(scenario) == duckdb_rows(scenario.table()) == rows

    # Two that have been called so.
    scenario.sql(f"alter table {table} drop column note")
    scenario.sql(f"alter table {table} drop column note_new")
    text = refused(scenario, "note")
    assert (
        "2 fields that were dropped have been called `note`: `note`, field 2 of type string (in schema "
        in text
    )
    assert "Say which one with `field_id`." in text
    assert restore(scenario, "note", field_id=3).success
    assert scenario.field_ids() == {"id": 1, "note": 3}
    rows = [(1, None), (2, "second"), (3, "third")]
    assert scenario.rows() == by_spark(scenario) == duckdb_rows(scenario.table()) == rows


def test_fields_in_structs_lists_and_maps(scenario: Scenario) -> None:
    scenario.model(
        "select 1 as id, named_struct('zip', 8000, 'city', 'zh') as address, "
        "array(named_struct('x', 1, 'y', 2)) as l, map('k', named_struct('p', 3, 'q', 4)) as m"
    )
    scenario.run()
    table = scenario.relation()
    for path in ("address.zip", "l.element.y", "m.value.p"):
        scenario.sql(f"alter table {table} drop column {path}")
    scenario.sql(f"alter table {table} rename column address to addr")
    assert "`addr`.`zip`" in restore(scenario, "addr.zip").log
    assert restore(scenario, "l.y").success
    assert restore(scenario, "`m`.value.P").success
    (row,) = scenario.rows()
    assert row == (1, {"city": "zh", "zip": 8000}, [{"x": 1, "y": 2}], [("k", {"q": 4, "p": 3})])
    scenario.sql(f"refresh table {table}")
    picked = "addr.city, addr.zip, l[0].x, l[0].y, m['k'].q, m['k'].p"
    assert scenario.sql(f"select {picked} from {table}") == [("zh", 8000, 1, 2, 4, 3)]
    # What went with its struct comes back with that.
    scenario.sql(f"alter table {table} drop column addr")
    assert "Restore that: `column: addr, field_id: 2`." in refused(scenario, "addr.zip")
    assert restore(scenario, "addr").success
    assert scenario.rows()[0][3] == {"city": "zh", "zip": 8000}


def test_a_column_of_an_old_partitioning_and_one_that_was_not_null(scenario: Scenario) -> None:
    scenario.model("select 1 as id, 'a' as p, 5 as n", partition_by="p")
    scenario.run()
    table = scenario.relation()
    scenario.sql(f"alter table {table} alter column n drop not null")
    scenario.sql(f"alter table {table} drop partition field p")
    scenario.sql(f"alter table {table} drop column p")
    scenario.sql(f"alter table {table} drop column n")
    assert restore(scenario, "p").success
    assert restore(scenario, "n").success
    rows = [(1, "a", 5)]
    assert scenario.rows() == by_spark(scenario) == duckdb_rows(scenario.table()) == rows
    scenario.model("select 2 as id, 'b' as p, 6 as n")
    scenario.run()
    rows.append((2, "b", 6))
    assert scenario.rows() == by_spark(scenario) == rows


def test_a_restore_that_brings_an_older_schema_back(scenario: Scenario) -> None:
    scenario.model("select 1 as id")
    scenario.run()
    scenario.model("select 1 as id, 'keep' as note")
    scenario.run()
    scenario.sql(f"alter table {scenario.relation()} drop column note")
    done = restore(scenario, "note")
    assert "Done: `note` is back as field 2, in schema 1." in done.log
    assert scenario.rows() == by_spark(scenario) == [(1, "keep")]
    assert scenario.schemas() == 2
    entry = json.loads(scenario.table().properties["sparkevolve.schema.1"])
    assert (entry["added"], entry["restored"]) == (["`note`"], ["`note`"])
    history = scenario.dbt("run-operation", "schema_history", "--args", "{model: t}").log
    again = f"    again since {entry['restored_at']}, when dbt run {entry['restored_by']} restored `note`"
    assert again in history
    # Once more, back to the same schema.
    scenario.sql(f"alter table {scenario.relation()} drop column note")
    assert restore(scenario, "note").success
    assert scenario.rows() == by_spark(scenario) == [(1, "keep")]
    once_more = json.loads(scenario.table().properties["sparkevolve.schema.1"])
    assert once_more["restored"] == ["`note`"]
    assert once_more["restored_by"] != entry["restored_by"]
    text = refused(scenario, "gone")
    assert "No schema that the table's metadata still have has had a column `gone`. No field of" in text
    assert "The table has never had a field 9." in refused(scenario, "note", field_id=9)


def test_a_restore_that_brings_the_first_schema_back(scenario: Scenario) -> None:
    scenario.model("select 1 as id, 'keep' as note")
    scenario.run()
    scenario.sql(f"alter table {scenario.relation()} drop column note")
    assert restore(scenario, "note").success
    assert scenario.table().metadata.current_schema_id == 0
    entry = json.loads(scenario.table().properties["sparkevolve.schema.0"])
    history = scenario.dbt("run-operation", "schema_history", "--args", "{model: t}").log
    last = history[history.rindex("  schema ") :]
    by = f"schema 0 (current), {entry['restored_at']}, dbt run {entry['restored_by']}"
    assert last.startswith(f"  {by}\n    restored `note` (2)")
    assert "again since" not in history
    assert scenario.rows() == by_spark(scenario) == [(1, "keep")]


def test_nothing_is_restored_where_spark_does_not_run(scenario_factory: Callable[..., Scenario]) -> None:
    """The commit is PyIceberg's: Spark is asked before it, so that "nothing was run" is true."""
    scenario = scenario_factory(server_side_parameters={"spark.sql.caseSensitive": "true"})
    scenario.model("select 1 as id")
    table = scenario.relation()
    scenario.sql(f"create schema {table.rpartition('.')[0]}")
    scenario.sql(f"create table {table} using iceberg as select 1 as id, 'a' as w")
    scenario.sql(f"alter table {table} drop column w")
    assert "The Spark setting `spark.sql.caseSensitive` is `true`." in refused(scenario, "w")
    assert scenario.field_ids() == {"id": 1}


def test_no_orc_file_is_asked_for_the_default_of_a_column_that_comes_back(
    scenario: Scenario, method: str
) -> None:
    """Iceberg's Java library cannot read an ORC file without it: every query of the column would fail."""
    if method != "session":
        pytest.skip("over Thrift only a REST catalog stores defaults")
    v3 = {"format-version": "3"}
    table = scenario.relation()
    scenario.model("select 1 as id", tblproperties=v3)
    scenario.run()
    scenario.model("select 2 as id, 'x' as s", tblproperties=v3, column_defaults={"s": "'pending'"})
    scenario.run()
    orc = f"alter table {table} set tblproperties ('write.format.default' = 'orc')"
    scenario.sql(orc)
    scenario.sql(f"insert into {table} values (3, 'y')")
    scenario.sql(f"alter table {table} drop column s")

    # One that has the column can be read.
    done = restore(scenario, "s")
    assert done.success, done.message
    assert by_spark(scenario) == [(1, "pending"), (2, "x"), (3, "y")]

    # Of several, the message names those that lack it; the values of the others stay.
    scenario.sql(f"alter table {table} drop column s")
    scenario.model("select 4 as id", tblproperties={**v3, "write.format.default": "orc"})
    scenario.run()
    why = "`s` was added with a default for older rows, and 1 row in 1 ORC file was written without it. "
    for said in (refused(scenario, "s", plan_only=True), refused(scenario, "s")):
        assert why in said
        assert "Other ORC files have values of it, which a rewrite would lose: name none of these." in said
    as_advised(scenario, said)
    restore(scenario, "s")
    assert by_spark(scenario) == [(1, "pending"), (2, "x"), (3, "y"), (4, "pending")]

    # So it is on a branch, and where none has values.
    scenario.sql(f"delete from {table} where id = 3")
    scenario.sql(f"alter table {table} drop column s")
    scenario.sql(f"alter table {table} create branch other")
    scenario.sql(orc)
    scenario.sql(f"insert into {table} values (5), (6)")
    scenario.sql(f"insert into {table}.branch_other values (7)")
    said = refused(scenario, "s")
    assert "and 3 rows in 2 ORC files were written without it. " in said
    as_advised(scenario, said)
    done = restore(scenario, "s")
    assert done.success, done.message
    main = [(1, "pending"), (2, "x"), (4, "pending"), (5, "pending"), (6, "pending")]
    assert by_spark(scenario) == main == duckdb_rows(scenario.table())
    assert sort_rows(scenario.sql(f"select * from {table}.branch_other")) == [*main[:3], (7, "pending")]


def as_advised(scenario: Scenario, said: str) -> None:
    """Run the statements of a message."""
    statements = re.findall(
        r"ALTER TABLE .*?(?=, then)|UPDATE .*?(?= and UPDATE|\. )", " ".join(said.split())
    )
    assert statements[0].startswith("ALTER TABLE")
    for statement in dict.fromkeys(statements):
        scenario.sql(statement)
