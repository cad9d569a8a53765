"""Group E of the cases from the field: structs, lists and maps."""

from tests.functional.harness import Scenario


def test_e01_struct_fields_in_another_order(scenario: Scenario) -> None:
    one = "named_struct('x', 10, 'y', 20)"
    two = "named_struct('y', 20, 'x', 10)"
    scenario.model(f"select 1 as id, {one} as s, array({one}) as a, map('k', {one}) as m")
    scenario.run()
    before = scenario.rows()
    scenario.model(f"select 1 as id, {two} as s, array({two}) as a, map('k', {two}) as m")
    scenario.run()
    assert scenario.rows() == before
    assert before == [(1, {"x": 10, "y": 20}, [{"x": 10, "y": 20}], [("k", {"x": 10, "y": 20})])]
    assert scenario.schemas() == 1


def test_fields_are_added_and_padded_at_every_level(scenario: Scenario) -> None:
    scenario.model(
        "select 1 as id, named_struct('x', 1, 'y', 2) as s, "
        "array(named_struct('x', 1, 'y', array(named_struct('p', 1)))) as a, "
        "map('k', named_struct('x', 1)) as m"
    )
    scenario.run()
    ids = scenario.field_ids()
    scenario.model(
        "select 2 as id, named_struct('z', 9, 'X', cast(5000000000 as bigint)) as s, "
        "array(named_struct('y', array(named_struct('q', 2), null)), null) as a, "
        "map('k', named_struct('x', 3, 'a.b`c', 4), 'n', null) as m "
        "union all select 3, null, null, null"
    )
    scenario.run()
    assert scenario.field_ids() == ids
    assert scenario.schemas() == 2
    assert scenario.rows() == [
        (
            1,
            {"x": 1, "y": 2, "z": None},
            [{"x": 1, "y": [{"p": 1, "q": None}]}],
            [("k", {"x": 1, "a.b`c": None})],
        ),
        (
            2,
            {"x": 5000000000, "y": None, "z": 9},
            [{"x": None, "y": [{"p": None, "q": 2}, None]}, None],
            [("k", {"x": 3, "a.b`c": 4}), ("n", None)],
        ),
        # PyIceberg 0.12 reads a NULL list or map as an empty one where its fields have evolved; see below.
        (3, None, [], []),
    ]
    nulls = f"select s is null, a is null, m is null from {scenario.relation()} where id = 3"
    assert scenario.sql(nulls) == [(True, True, True)]
    scenario.run()
    assert scenario.schemas() == 2
