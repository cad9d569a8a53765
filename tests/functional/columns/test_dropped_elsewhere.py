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
