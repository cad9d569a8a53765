"""Structs, lists and maps: fields that come, go and change places."""

import pytest
from pyiceberg.schema import index_by_id

from tests.functional.harness import Scenario


def test_struct_fields_in_another_order(scenario: Scenario) -> None:
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


@pytest.mark.core
def test_new_field_in_a_struct(scenario: Scenario) -> None:
    scenario.model("select 1 as id, named_struct('x', 1) as s union all select 2, named_struct('x', 2)")
    scenario.run()
    assert scenario.types() == {"id": "int", "s": "struct<3: x: optional int>"}
    scenario.model("select 1 as id, named_struct('x', 1, 'z', 9) as s")
    run = scenario.run()
    assert f"{scenario.relation()}: add field `s`.`z` int" in run.log
    assert scenario.types() == {"id": "int", "s": "struct<3: x: optional int, 4: z: optional int>"}
    assert scenario.rows() == [(1, {"x": 1, "z": 9}), (2, {"x": 2, "z": None})]
    scenario.run()
    assert scenario.schemas() == 2


@pytest.mark.core
def test_field_removed_from_a_struct(scenario: Scenario) -> None:
    scenario.model("select 1 as id, named_struct('x', 1, 'y', 2) as s")
    scenario.run()
    types = scenario.types()
    scenario.model("select 2 as id, named_struct('x', 3) as s union all select 3, null")
    run = scenario.run()
    assert f"{scenario.relation()}: column `s`.`y` is not in the model, padded with NULL" in run.log
    assert scenario.rows() == [(1, {"x": 1, "y": 2}), (2, {"x": 3, "y": None}), (3, None)]
    assert scenario.types() == types
    # It comes back, under its old id.
    scenario.model("select 3 as id, named_struct('y', 5, 'x', 4) as s")
    scenario.run()
    assert scenario.rows() == [(1, {"x": 1, "y": 2}), (2, {"x": 3, "y": None}), (3, {"x": 4, "y": 5})]
    assert scenario.types() == types == {"id": "int", "s": "struct<3: x: optional int, 4: y: optional int>"}
    assert scenario.schemas() == 1


@pytest.mark.parametrize(
    ("change", "wanted"),
    [
        ("named_struct('x', 3)", "struct<`x`:int>"),
        ("named_struct('x', 3, 'y', 4, 'z', 5)", "struct<`x`:int,`y`:int,`z`:int>"),
        ("named_struct('x', cast(3 as bigint), 'y', 4)", "struct<`x`:bigint,`y`:int>"),
    ],
    ids=["removed", "new", "wider"],
)
def test_a_nested_difference_can_be_refused(scenario: Scenario, change: str, wanted: str) -> None:
    scenario.model("select 1 as id, named_struct('x', 1, 'y', 2) as s")
    scenario.run()
    before = scenario.state()
    scenario.model(f"select 1 as id, {change} as s", nested_evolution=False)
    run = scenario.fail()
    assert (
        f"Column `s` is struct<`x`:int,`y`:int> in the table, and the model returns {wanted}. The fields "
        "in it differ, and `nested_evolution` is false. Return it "
        "under a new name, fill that for old rows, and retire the old name."
    ) in run.message
    assert scenario.state() == before
    assert scenario.tables() == ["t"]
    # Another order is no difference of the schema, and is written by name all the same.
    scenario.model("select 1 as id, named_struct('y', 20, 'x', 10) as s", nested_evolution=False)
    scenario.run()
    assert scenario.rows() == [(1, {"x": 10, "y": 20})]
    assert scenario.schemas() == 1


def test_a_struct_column_is_added(scenario: Scenario) -> None:
    scenario.model("select 1 as id, 'a' as name union all select 2, 'b'")
    scenario.run()
    scenario.model("select 1 as id, 'a' as name, named_struct('street', 'x', 'zip', 1) as addr")
    scenario.run()
    assert scenario.field_ids() == {"id": 1, "name": 2, "addr": 3}
    assert scenario.types()["addr"] == "struct<4: street: optional string, 5: zip: optional int>"
    assert scenario.rows() == [(1, "a", {"street": "x", "zip": 1}), (2, "b", None)]
    assert scenario.sql(f"select addr.street, addr.zip from {scenario.relation()} where id = 1") == [("x", 1)]
    scenario.run()
    assert scenario.schemas() == 2


ODD = [
    "a.b",
    "we`ird",
    "unit price",
    "#x",
    "1st",
    "ключ",
    "a,b",
    "x:y",
    "it's",
    'say "x"',
    "back\\slash",
    "<",
    "?",
]


def odd_struct(values: dict[str, str]) -> str:
    """Return the expression of a struct with these fields."""
    literal = {name: name.replace("\\", "\\\\").replace("'", "\\'") for name in values}
    return "named_struct(" + ", ".join(f"'{literal[name]}', {value}" for name, value in values.items()) + ")"


def test_odd_names_at_every_level(scenario: Scenario) -> None:
    """A struct, a list of structs and a map of a struct of a list of structs; wider than 25 fields."""
    wide = {f"f{number}": str(number) for number in range(30)}

    def levels(leaf: dict[str, str]) -> str:
        struct = odd_struct(leaf)
        inner = odd_struct({"l`.i": f"array({struct}, null)", **dict.fromkeys(leaf, "1")})
        return f"{struct} as `s.1`, array(null, {struct}) as `l 2`, map('k', {inner}, 'n', null) as `m``3`"

    def read(leaf: dict[str, int | None]) -> tuple[object, ...]:
        inner = {
            "l`.i": [leaf, None],
            **{name: value if value is None else 1 for name, value in leaf.items()},
        }
        return (leaf, [None, leaf], [("k", inner), ("n", None)])

    first = {**{name: str(number) for number, name in enumerate(ODD)}, **wide}
    numbers = {name: int(value) for name, value in first.items()}
    scenario.model(f"select 1 as id, {levels(first)}")
    scenario.run()
    assert scenario.rows() == [(1, *read({**numbers}))]
    old = index_by_id(scenario.table().schema())
    # Without the first half of the odd names, in another order, and with one new name.
    gone = ODD[: len(ODD) // 2]
    second = {name: first[name] for name in reversed(first) if name not in gone} | {"n e.w`": "77"}
    scenario.model(f"select 2 as id, {levels(second)} union all select 3, null, null, null")
    scenario.run()
    padded = {name: None if name in gone else number for name, number in numbers.items()}
    assert scenario.rows() == [
        (1, *read({**numbers, "n e.w`": None})),
        (2, *read({**padded, "n e.w`": 77})),
        (3, None, [], []),  # see below
    ]
    nulls = f"select `s.1` is null, `l 2` is null, `m``3` is null from {scenario.relation()} where id = 3"
    assert scenario.sql(nulls) == [(True, True, True)]
    new = index_by_id(scenario.table().schema())
    assert {field_id: new[field_id].name for field_id in old} == {i: field.name for i, field in old.items()}
    assert [new[i].name for i in sorted(set(new) - set(old))] == ["n e.w`"] * 4
    assert scenario.schemas() == 2
    scenario.run()
    assert scenario.schemas() == 2


@pytest.mark.core
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
