"""Columns that a model renames with `column_renames`."""

import re

import pytest
import yaml

from tests.functional.harness import Scenario


@pytest.mark.core
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


def test_names_are_swapped_in_two_runs_as_the_refusal_says(scenario: Scenario) -> None:
    scenario.model("select 1 as id, 'a' as old, 'b' as new, named_struct('x', 1, 'y', 2) as s")
    scenario.run()
    ids = scenario.field_ids()
    sql = "select 2 as id, 'B' as old, 'A' as {new}, named_struct('{y}', 10, 'x', 20) as s"
    renames = {"old": "new", "new": "old", "s.x": "y", "s.y": "x"}
    scenario.model(sql.format(new="new", y="y"), column_renames=renames)
    said = re.findall(r"put `column_renames: (.*?)` (?:in|there)", scenario.fail().message)
    of_columns, of_fields = said[:2], said[2:]
    first, second = (
        {**yaml.safe_load(a), **yaml.safe_load(b)} for a, b in zip(of_columns, of_fields, strict=True)
    )
    scenario.model(sql.format(new="new_new", y="y_new"), column_renames=first)
    scenario.run()
    scenario.model(sql.format(new="new", y="y"), column_renames=second)
    scenario.run()
    assert scenario.field_ids() == {**ids, "old": ids["new"], "new": ids["old"]}
    assert scenario.rows() == [(1, "a", "b", {"y": 1, "x": 2}), (2, "A", "B", {"y": 10, "x": 20})]
