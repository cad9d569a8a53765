"""Group A of the cases from the field: the column set, its order, and padding with NULL."""

from tests.functional.harness import Scenario


def test_a01_add_one_later_remove_one(scenario: Scenario) -> None:
    scenario.model("select 1 as id, 'red' as colour")
    scenario.run()
    ids = scenario.field_ids()
    scenario.model("select 1 as id, 'red' as colour, 3 as doors")
    scenario.run()
    assert scenario.rows() == [(1, "red", 3)]
    scenario.model("select 1 as id, 'blue' as colour")
    scenario.run()
    assert scenario.rows() == [(1, "blue", None)]
    assert scenario.columns() == ["id", "colour", "doors"]
    assert scenario.field_ids() == {**ids, "doors": 3}
    assert scenario.schemas() == 2
    assert scenario.tables() == ["t"]
