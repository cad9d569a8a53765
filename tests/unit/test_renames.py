"""Renames: which field an old path is about, and when it may take its new name."""

import pytest
from pyiceberg.schema import Schema
from pyiceberg.types import IcebergType, IntegerType, StringType

from dbt.adapters.sparkevolve.evolution.renames import resolve_renames
from tests.unit.helpers import array, columns, mapping, struct

INT, STRING = IntegerType(), StringType()
NESTED: dict[str, IcebergType] = {
    "s": struct(10, x=INT, t=struct(12, y=INT)),
    "l": array(20, struct(21, x=INT)),
    "m": mapping(30, STRING, struct(32, x=INT)),
    "d.e": struct(40, f=INT),
}
TABLE = columns("a int, B int, s, l, m, d.e, s.q int", **NESTED)
OTHER = columns("other int")


def resolved(renames: dict[str, str], source: Schema = OTHER, table: Schema = TABLE) -> dict[int, str]:
    found, problems = resolve_renames(table, source, renames)
    assert problems == ()
    return found


@pytest.mark.parametrize(
    ("old", "field_id"),
    [
        ("a", 1),
        ("A", 1),
        ("`a`", 1),
        ("b", 2),
        ("s", 3),
        ("s.x", 10),
        ("S.X", 10),
        ("s.t", 11),
        ("s.t.y", 12),
        ("l.x", 21),
        ("l.element.x", 21),
        ("m.x", 32),
        ("m.value.x", 32),
        ("d.e", 6),
        ("d.e.f", 40),
        ("s.q", 7),
    ],
)
def test_a_field_is_found_by_its_path_in_any_case(old: str, field_id: int) -> None:
    assert resolved({old: "New Name"}) == {field_id: "New Name"}


@pytest.mark.parametrize("old", ["absent", "s.absent", "a.x", "x", "l.element", "m.key", "s.t.y.z", "", "s."])
def test_what_is_not_there_has_nothing_to_rename(old: str) -> None:
    assert resolved({old: "new"}) == {}


@pytest.mark.parametrize("new", ["a", "`a`"])
def test_a_name_that_a_field_has_is_no_rename(new: str) -> None:
    assert resolved({"A": new}) == {}


@pytest.mark.parametrize("source", ["a int", "A int", "other int"])
def test_another_case_is_a_rename(source: str) -> None:
    assert resolved({"a": "A"}, columns(source)) == {1: "A"}


def test_a_new_name_may_be_quoted_and_odd() -> None:
    assert resolved({"a": "`x``y`", "b": "p.q", "s.x": "İ"}) == {1: "x`y", 2: "p.q", 10: "İ"}


@pytest.mark.parametrize(
    ("old", "new", "columns_of_refusal"),
    [("a", "b", ("a", "b")), ("a", "B", ("a", "B")), ("s.x", "T", ("s.x", "T")), ("l.x", "X2", None)],
)
def test_a_new_name_that_is_taken_is_refused(
    old: str, new: str, columns_of_refusal: tuple[str, ...] | None
) -> None:
    found, problems = resolve_renames(TABLE, OTHER, {old: new})
    assert [problem.columns for problem in problems] == ([columns_of_refusal] if columns_of_refusal else [])
    assert bool(found) is not bool(problems)


@pytest.mark.parametrize(
    ("old", "source"),
    [
        ("a", columns("A int, new int")),
        ("s.x", columns("S", S=struct(10, X=INT, new=INT))),
        ("l.x", columns("l", l=array(10, struct(11, x=INT)))),
        ("m.value.x", columns("m", m=mapping(10, STRING, struct(12, x=INT)))),
    ],
)
def test_an_old_name_that_the_model_still_returns_is_refused(old: str, source: Schema) -> None:
    found, problems = resolve_renames(TABLE, source, {old: "new"})
    assert found == {}
    (problem,) = problems
    assert problem.columns[-1] == "new"
    assert problem.reason.endswith("and the model still returns the old name.")


@pytest.mark.parametrize(
    "source",
    [
        columns("s", s=struct(10, new=INT)),
        columns("x int, new int"),
        columns("s int"),
        columns("s", s=array(10, INT)),
    ],
)
def test_an_old_nested_name_that_stands_elsewhere_in_the_batch_is_no_obstacle(source: Schema) -> None:
    assert resolved({"s.x": "new"}, source) == {10: "new"}


def test_each_problem_is_told_and_the_rest_is_resolved() -> None:
    found, problems = resolve_renames(TABLE, columns("b int"), {"a": "B", "b": "c", "s.x": "z"})
    assert found == {10: "z"}
    assert [problem.columns for problem in problems] == [("a", "B"), ("B", "c")]
