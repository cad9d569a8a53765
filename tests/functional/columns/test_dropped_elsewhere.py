"""Columns that somebody else has dropped or renamed, and those that only the model has left out."""

import re

import pytest

from tests.functional.harness import Scenario


@pytest.mark.core
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
    assert re.match(r"0, [^,]+, dbt run [0-9a-f-]{36}, source [0-9a-f]{16}\n    created\n", created)
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


def test_names_that_others_have_given_to_other_fields_are_told_of_once(scenario: Scenario) -> None:
    model = "select {} as id, 'x' as note, 1 as a, 2 as b, named_struct('p', 1, 'q', 2) as s"
    scenario.model(model.format(1))
    scenario.run()
    table = scenario.relation()
    for change in (
        *("drop column note", "add column note string"),
        *("rename column a to c", "rename column b to a", "rename column c to b"),
        *("drop column s.q", "add column s.q int"),
    ):
        scenario.sql(f"alter table {table} {change}")
    scenario.model(model.format(2))
    planned = scenario.run("--vars", "sparkevolve_plan_only: true")
    assert "note in the table's properties what the warning says, so that it is given once" in planned.log
    before = scenario.table().metadata
    run = scenario.run()
    was = "another writer has"
    texts = (
        f"Column `note` is field 8 since schema 2, and was field 2 of type string before: {was} dropped that "
        "and added another one of its name. Rows of before have their values under the old id only, where "
        "nobody reads them. To have them: give the new one another name with `column_renames: {note: "
        "note_new}`, then `dbt run-operation restore_column --args '{model: t, column: note, field_id: 2}'`.",
        f"Column `a` is field 4 since schema 4, and was field 3 of type int before: {was} renamed that to "
        "`b` and given its name to what was `b`. Rows of before have their values in `b`.",
        f"Column `b` is field 3 since schema 5, and was field 4 of type int before: {was} renamed that to "
        "`a` and given its name to what was `a`. Rows of before have their values in `a`.",
        f"Column `s`.`q` is field 9 since schema 7, and was field 7 of type int before: {was} dropped that ",
    )
    for text in texts:
        for log in (planned.log, run.log):
            assert re.sub(r"(?<=since schema \d) \([0-9T:+-]{20,}\)", "", log).count(text) == 1, text
    after = scenario.table().metadata
    assert after.schemas == before.schemas
    assert scenario.columns() == ["id", "b", "a", "s", "note"]
    old, new = (1, 1, 2, {"p": 1, "q": None}, None), (2, 2, 1, {"p": 1, "q": 2}, "x")
    assert scenario.rows() == [old, new]
    assert "another writer has" not in scenario.run().log
    # One change more is told of alone.
    for change in ("drop column note", "add column note string"):
        scenario.sql(f"alter table {table} {change}")
    log = scenario.run().log
    assert "Column `note` is field 10 since " in log
    assert log.count("another writer has") == 1
    assert "another writer has" not in scenario.run().log
