"""New and removed columns: what the macro detects by name, and that plans agree with it."""

from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyiceberg.schema import Schema
from pyiceberg.types import IntegerType

from dbt.adapters.sparkevolve.errors import ColumnsDifferError
from dbt.adapters.sparkevolve.evolution.detection import Detected, has_same_columns, planned
from dbt.adapters.sparkevolve.evolution.names import fold
from dbt.adapters.sparkevolve.evolution.plan import plan_evolution
from dbt.adapters.sparkevolve.evolution.policy import Policy
from dbt.adapters.sparkevolve.load.checks import Checks
from tests.unit.helpers import columns, struct
from tests.unit.macros import detect_schema_change, macro
from tests.unit.strategies import MASKS, NAMES, ODD_NAMES, distinct, loads, nested_loads, recase, rule

SCHEMA_CHANGE = "materializations/incremental/schema_change.sql"

CASES = {
    "nothing changes": (["id", "v"], ["id", "v"], [], []),
    "a column is new": (["id", "colour", "doors"], ["id", "colour"], ["doors"], []),
    "a column is removed": (["id", "colour"], ["id", "colour", "doors"], [], ["doors"]),
    "one of each": (["id", "new"], ["id", "old"], ["new"], ["old"]),
    "only the case differs": (["CUSTOMERID", "name"], ["CustomerId", "Name"], [], []),
    "the case differs beside a change": (["ID", "Extra"], ["id", "Note"], ["Extra"], ["Note"]),
    "a new one in the middle": (["id", "country", "city"], ["id", "city"], ["country"], []),
    "another order": (["gross", "id", "net"], ["id", "net", "gross"], [], []),
    "several, in their order": (
        ["z", "id", "B", "a"],
        ["y", "id", "C", "x"],
        ["z", "B", "a"],
        ["y", "C", "x"],
    ),
    "all of them": (["a"], ["b"], ["a"], ["b"]),
    "names that are patterns": (["a.b", "a`b", "%", "*"], ["a.b", "ab"], ["a`b", "%", "*"], ["ab"]),
    "names that only casefold makes equal": (["straße"], ["STRASSE"], ["straße"], ["STRASSE"]),
    "a capital whose lower case is two characters": (["İ"], ["i̇"], [], []),
}


@pytest.mark.parametrize("case", CASES)
def test_the_macro_detects_by_name_in_any_case(case: str) -> None:
    source, target, new, removed = CASES[case]
    assert detect_schema_change(source, target) == {"new": new, "removed": removed}


def test_columns_that_no_table_is_to_have_are_not_new() -> None:
    source = ["id", "DBT_change_type", "more", "dbt_unique_key"]
    not_stored = ("dbt_change_type", "dbt_unique_key")
    assert detect_schema_change(source, ["id"], not_stored) == {"new": ["more"], "removed": []}
    # Nor are they removed from where they never were.
    assert detect_schema_change(["id"], ["id"], not_stored) == {"new": [], "removed": []}
    # The table's column of such a name is not in the model, as its plan says.
    kept = ["id", "Dbt_change_type"]
    assert detect_schema_change(source, kept, not_stored) == {"new": ["more"], "removed": kept[1:]}


LISTS = st.lists(NAMES, max_size=6).map(distinct)


@rule
@given(LISTS, LISTS, MASKS)
def test_new_is_source_minus_target_and_removed_the_other_way_round(
    source: list[str], target: list[str], mask: int
) -> None:
    source = [recase(name, mask) for name in source]
    found = detect_schema_change(source, target)
    # In order and spelling of their side, and folded as everything else is.
    in_target, in_source = [fold(name) for name in target], [fold(name) for name in source]
    assert found["new"] == [name for name in source if fold(name) not in in_target]
    assert found["removed"] == [name for name in target if fold(name) not in in_source]
    assert not set(map(fold, found["new"])) & set(map(fold, found["removed"]))
    # The other way round, the sides change places.
    assert detect_schema_change(target, source) == {"new": found["removed"], "removed": found["new"]}


@rule
@given(LISTS, LISTS, MASKS, st.randoms(use_true_random=False))
def test_neither_case_nor_order_of_the_other_side_matters(
    source: list[str], target: list[str], mask: int, random: Any
) -> None:
    other = [recase(name, mask) for name in target]
    random.shuffle(other)
    assert detect_schema_change(source, other)["new"] == detect_schema_change(source, target)["new"]
    folded = [fold(name) for name in source]
    assert detect_schema_change(source, other)["removed"] == [n for n in other if fold(n) not in folded]


@rule
@given(LISTS, LISTS)
def test_once_the_new_ones_are_added_nothing_is_new(source: list[str], target: list[str]) -> None:
    found = detect_schema_change(source, target)
    again = detect_schema_change(source, target + found["new"])
    assert again == {"new": [], "removed": found["removed"]}


@rule
@given(NAMES | st.text())
def test_jinja_folds_a_name_as_the_rest_does(name: str) -> None:
    for spelling in (name, name.upper(), name.lower(), name.swapcase(), name.title(), name.casefold()):
        same = detect_schema_change([spelling], [name]) == {"new": [], "removed": []}
        assert same == (fold(spelling) == fold(name))


def test_jinja_folds_every_odd_pair_as_the_rest_does() -> None:
    for one in ODD_NAMES:
        for other in ODD_NAMES:
            assert (detect_schema_change([one], [other])["new"] == []) == (fold(one) == fold(other))


# The plan


def of_names(source: Schema, target: Schema) -> Detected:
    names = ([f.name for f in schema.fields] for schema in (source, target))
    return Detected(**detect_schema_change(*names))


@rule
@given(loads(), st.booleans())
def test_every_plan_agrees_with_the_macro(load: tuple[Schema, Schema], adds: bool) -> None:
    table, batch = load
    plan = plan_evolution(table, batch, Policy(add_columns=adds))
    assert plan.refusals == ()
    detected, by_plan = of_names(batch, table), planned(plan, table)
    assert detected.agrees_with(by_plan)
    assert tuple(detected.new) == by_plan.new
    assert tuple(detected.removed) == by_plan.removed


@rule
@given(nested_loads(), st.booleans(), st.data())
def test_plans_of_nested_and_renamed_columns_agree_too(
    load: tuple[Schema, Schema], adds: bool, data: st.DataObject
) -> None:
    table, batch = load
    old = data.draw(st.sampled_from([f.name for f in table.fields]))
    new = data.draw(st.sampled_from([f.name for f in batch.fields] + ["Renamed"]))
    quoted = "`" + old.replace("`", "``") + "`"
    plan = plan_evolution(table, batch, Policy(add_columns=adds, renames={quoted: new}))
    if not plan.refusals:
        assert of_names(batch, table).agrees_with(planned(plan, table))


RENAMES: dict[str, tuple[str, str, dict[str, str], Detected]] = {
    "returned by its new name": (
        "id int, old int",
        "id int, new int",
        {"old": "new"},
        Detected(["new"], ["old"]),
    ),
    "not returned": ("id int, old int", "id int", {"old": "new"}, Detected([], ["old"])),
    "made before": ("id int, new int", "id int, new int", {"old": "new"}, Detected([], [])),
    "in its case only": ("id int, old int", "id int, OLD int", {"old": "Old"}, Detected([], [])),
    "in its case only, not returned": ("id int, old int", "id int", {"old": "Old"}, Detected([], ["old"])),
    "of nothing": ("id int", "id int, new int", {"old": "new"}, Detected(["new"], [])),
}


@pytest.mark.parametrize("case", RENAMES)
def test_a_renamed_column_is_one_removed_and_one_new_by_name(case: str) -> None:
    target, source, renames, expected = RENAMES[case]
    plan = plan_evolution(columns(target), columns(source), Policy(renames=renames))
    assert plan.refusals == ()
    assert planned(plan, columns(target)).agrees_with(expected)
    assert of_names(columns(source), columns(target)).agrees_with(expected)


def test_fields_inside_of_columns_are_neither_new_nor_removed_columns() -> None:
    target = columns("id int, s", s=struct(3, x=IntegerType(), gone=IntegerType()))
    source = columns("id int, s", s=struct(3, x=IntegerType(), more=IntegerType()))
    plan = plan_evolution(target, source, Policy(renames={"s.gone": "kept"}))
    assert [str(change) for change in plan.changes] == [
        "rename `s`.`gone` to `kept`",
        "add field `s`.`more` int",
    ]
    assert planned(plan, target) == Detected((), ())


def test_results_that_name_other_columns_do_not_agree() -> None:
    found = Detected(["New"], ["old"])
    assert found.agrees_with(Detected(("nEW",), ("OLD",)))
    for other in (Detected([], ["old"]), Detected(["new"], []), Detected(["old"], ["new"])):
        assert not found.agrees_with(other)
        assert not other.agrees_with(found)


def test_columns_are_the_same_by_their_folded_names() -> None:
    assert has_same_columns(columns("id int, V int"), ["v", "ID"])
    assert not has_same_columns(columns("id int, v int"), ["id"])
    assert not has_same_columns(columns("id int"), ["id", "v"])


# Under `fail`


def check(detected: dict[str, list[str]], **settings: Any) -> None:
    model = SimpleNamespace(unique_id="model.case.t")
    name = "sparkevolve__schema_change_refusals"
    context = {
        "adapter": SimpleNamespace(checks=lambda: Checks),
        name: macro(SCHEMA_CHANGE, name, model=model),
    }
    rendered = macro(SCHEMA_CHANGE, "sparkevolve__check_schema_change", **context)
    chosen = {"on_schema_change": "fail", "is_refreshed": False, **settings}
    rendered("`lake`.`db`.`t`", detected, chosen)


@pytest.mark.parametrize(
    ("source", "target", "says"),
    [
        (["id", "n"], ["id"], "In the model only: n. In the table only: none."),
        (["id"], ["id", "o", "P"], "In the model only: none. In the table only: o, P."),
        (["id", "n"], ["ID", "o"], "In the model only: n. In the table only: o."),
    ],
)
def test_fail_names_what_differs(source: list[str], target: list[str], says: str) -> None:
    with pytest.raises(ColumnsDifferError) as raised:
        check(detect_schema_change(source, target))
    assert raised.value.msg == (
        "The columns of model.case.t and of its table `lake`.`db`.`t` "
        "differ, and on_schema_change is 'fail', so "
        f"nothing was written. {says} Change the model, or set on_schema_change to "
        "'append_new_columns_preserve'."
    )


@pytest.mark.parametrize("mode", ["ignore", "append_new_columns", "append_new_columns_preserve"])
def test_other_modes_refuse_no_column(mode: str) -> None:
    check({"new": ["n"], "removed": ["o"]}, on_schema_change=mode)


def test_a_full_refresh_and_equal_columns_pass_under_fail() -> None:
    check({"new": ["n"], "removed": ["o"]}, is_refreshed=True)
    check({"new": [], "removed": []})
