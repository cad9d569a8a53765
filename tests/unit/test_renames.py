"""Renames: which field a configured path means, and when it cannot get its new name."""

import pytest
from pyiceberg.schema import Schema
from pyiceberg.types import IntegerType, StringType

from dbt.adapters.sparkevolve.evolution.policy import Past
from dbt.adapters.sparkevolve.evolution.renames import not_found, resolve_renames
from tests.unit.helpers import array, columns, mapping, struct

INT, STRING = IntegerType(), StringType()

TARGET = columns(
    "Old int, s, l, m, a.b int, a, deep",
    s=struct(10, X=INT, y=INT),
    l=array(20, struct(21, x=INT)),
    m=mapping(30, STRING, struct(32, x=INT, value=INT)),
    a=struct(40, z=INT, **{"c.d": INT}),
    deep=array(50, mapping(51, STRING, array(53, struct(54, end=INT)))),
)
NOTHING = columns("unrelated int")


def resolved(renames: dict[str, str], source: Schema = NOTHING, target: Schema = TARGET) -> dict[int, str]:
    found, problems = resolve_renames(target, source, renames)
    assert problems == ()
    return found


@pytest.mark.parametrize(
    ("path", "field_id"),
    [
        *(("Old", 1), ("OLD", 1), ("`old`", 1), ("s", 2), ("s.x", 10), ("S.Y", 11)),
        *(("l.element.x", 21), ("l.x", 21), ("m.value.x", 32), ("m.x", 32), ("m.value.value", 33)),
        # A name that has dots itself is taken for a column first.
        *(("a.b", 5), ("a.c.d", 41)),
        # In backticks it is one name, and another one's part is not.
        *(
            ("`s`.`x`", 10),
            ("s.`Y`", 11),
            ("`l`.element.`x`", 21),
            ("`m`.x", 32),
            ("a.`c.d`", 41),
            ("`a.b`", 5),
        ),
        *(("deep.element.value.element.end", 54), ("deep.end", 54), ("deep.value.end", 54)),
    ],
)
def test_a_path_leads_to_one_field(path: str, field_id: int) -> None:
    assert resolved({path: "New"}) == {field_id: "New"}


def test_a_name_may_be_longer_in_lower_case() -> None:
    target = columns("İ", İ=struct(10, x=INT, ix=INT))
    assert resolved({"i\u0307.x": "y", "İ.IX": "z"}, target=target) == {10: "y", 11: "z"}


def test_of_two_structs_that_a_path_can_mean_the_one_with_the_field_is_meant() -> None:
    target = columns("a, a.b", a=struct(10, z=INT), **{"a.b": struct(20, c=INT, **{"d.e": INT})})
    renames = {"a.z": "p", "a.b": "q", "A.B.c": "r", "a.b.d.e": "s"}
    assert resolved(renames, target=target) == {10: "p", 2: "q", 20: "r", 21: "s"}


def test_a_field_may_be_called_as_what_a_path_can_leave_out() -> None:
    in_list = array(10, struct(11, element=struct(13, x=INT), y=INT))
    in_map = mapping(20, STRING, struct(22, value=struct(24, x=INT), x=INT))
    target = columns("l, m", l=in_list, m=in_map)
    renames = {"l.element.x": "a", "l.element.y": "b", "m.value.value.x": "c", "m.value.x": "d"}
    assert resolved(renames, target=target) == {13: "a", 12: "b", 24: "c", 23: "d"}


@pytest.mark.parametrize(
    "path",
    [
        *("absent", "s.absent", "absent.x", "Old.x", "l.element", "m.key", "s.", ".", "", "`"),
        *("`s.x`", "`a`.`b`", "a.`c`.`d`", "`s`x", "`s``.`x`"),
    ],
)
def test_a_path_that_leads_nowhere_has_nothing_to_do(path: str) -> None:
    assert resolved({path: "New"}) == {}


def test_the_new_name_may_be_quoted_or_odd() -> None:
    assert resolved({"Old": "`a b`", "s.x": "p.q", "s.y": "`"}) == {1: "a b", 10: "p.q", 11: "`"}


def test_a_rename_of_nothing_is_told_if_its_new_name_is_added() -> None:
    added = [("new",), ("s", "New"), ("l", "element", "q"), ("m", "value", "r.s")]
    renames = {"odl": "`New`", "s.z": "new", "l.z": "Q", "m.value.`z`": "r.s", "s.x": "q", "old": "New"}
    assert not_found(TARGET, renames, added) == [
        *[("odl", ("new",)), ("s.z", ("s", "New")), ("l.z", ("l", "element", "q"))],
        ("m.value.`z`", ("m", "value", "r.s")),
    ]
    assert not_found(TARGET, {"gone": "s", "odl": "other", "a.b": "new"}, added) == []


def test_several_renames_at_once() -> None:
    assert resolved({"Old": "New", "l.x": "z", "m.x": "z"}) == {1: "New", 21: "z", 32: "z"}


def test_a_rename_that_was_made_has_nothing_left_to_do() -> None:
    assert resolved({"Old": "New"}, target=columns("New int")) == {}
    assert resolved({"Old": "New"}, columns("New int"), columns("New int")) == {}
    assert resolved({"Old": "Old"}) == {}


def test_another_case_is_a_rename_even_if_the_model_still_returns_the_old_one() -> None:
    assert resolved({"Old": "OLD"}, columns("old int")) == {1: "OLD"}


@pytest.mark.parametrize(
    ("path", "new", "columns_of_it", "taken"),
    [("old", "S", ("Old", "S"), "`S`"), ("s.x", "Y", ("s.X", "Y"), "`s`.`Y`")],
)
def test_a_new_name_that_is_taken_is_refused(
    path: str, new: str, columns_of_it: tuple[str, str], taken: str
) -> None:
    found, (problem,) = resolve_renames(TARGET, NOTHING, {path: new})
    assert found == {}
    assert problem.columns == columns_of_it
    assert problem.reason.endswith(f"to become `{new}`, and the table has both.")
    assert f"bring the values of {taken} into" in problem.remedy
    assert f"drop {taken} with ALTER TABLE" in problem.remedy


@pytest.mark.parametrize(
    ("path", "source"),
    [
        ("old", columns("OLD int")),
        ("s.x", columns("S", S=struct(10, x=INT))),
        ("l.x", columns("l", l=array(10, struct(11, X=INT)))),
        ("m.x", columns("m", m=mapping(10, STRING, struct(12, x=INT)))),
        ("deep.end", columns("deep", deep=array(10, mapping(11, STRING, array(13, struct(14, End=INT)))))),
    ],
)
def test_an_old_name_that_the_model_still_returns_is_refused(path: str, source: Schema) -> None:
    found, (problem,) = resolve_renames(TARGET, source, {path: "New"})
    assert found == {}
    assert problem.reason.endswith("to become `New`, and the model still returns the old name.")
    assert problem.remedy == "Return it under the new name from the model."


def test_a_model_that_returns_neither_name_renames_all_the_same() -> None:
    assert resolved({"s.x": "New"}, columns("s", s=struct(10, y=INT))) == {10: "New"}
    assert resolved({"s.x": "New"}, columns("s int")) == {10: "New"}


def test_two_fields_cannot_both_get_one_name() -> None:
    """Two columns of one name would be a table that Spark cannot read."""
    found, problems = resolve_renames(columns("a int, b int"), NOTHING, {"a": "c", "b": "C"})
    assert problems
    assert len(found) < 2


def test_one_field_cannot_get_two_names() -> None:
    _, problems = resolve_renames(columns("a int"), NOTHING, {"a": "b", "A": "c"})
    assert problems


# What a model returns under an old name, of a type that the column cannot become.
PAST = Past({1: frozenset({"a"}), 2: frozenset({"b"}), 3: frozenset({"c"})})


def outcome(
    table: str, batch: str, renames: dict[str, str], past: Past | None = PAST, **more: bool
) -> tuple[dict[int, str], list[str]]:
    found, problems = resolve_renames(columns(table), columns(batch), renames, past, **more)
    return found, [problem.reason.rsplit(", ", 1)[-1] for problem in problems]


BOTH, RETURNED = ["and the table has both."], ["and the model still returns the old name."]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        *(
            ("string", "int"),
            ("int", "string"),
            ("bigint", "int"),
            ("double", "float"),
            ("date", "timestamp"),
        ),
        *(("decimal(9,2)", "decimal(9,3)"), ("boolean", "int"), ("timestamp", "timestamp_ntz")),
    ],
)
def test_a_type_that_cannot_become_the_other_is_replaced_unless_its_values_fit(old: str, new: str) -> None:
    fits = (old, new) in {("bigint", "int"), ("double", "float")}
    expected = ({}, RETURNED) if fits else ({1: "a_old"}, [])
    assert outcome(f"a {old}", f"A {new}", {"a": "a_old"}) == expected
    # The new column may be there under both names.
    assert outcome(f"a {old}", f"a {new}, a_old {old}", {"a": "a_old"}) == expected


def test_a_type_that_may_not_be_widened_is_replaced() -> None:
    assert outcome("a int", "a bigint", {"a": "a_old"}) == ({}, RETURNED)
    assert outcome("a int", "a bigint", {"a": "a_old"}, widens=False) == ({1: "a_old"}, [])


def test_structs_lists_and_maps_are_replaced_for_what_is_in_them() -> None:
    for old, new, replaces in (
        (struct(10, x=INT), struct(10, x=STRING), True),
        (struct(10, x=INT), struct(10, y=STRING), False),
        (struct(10, x=INT), INT, True),
        (array(10, INT), array(10, STRING), True),
        (array(10, struct(11, x=INT)), array(10, struct(11, X=INT, z=INT)), False),
        (mapping(10, STRING, INT), mapping(10, INT, INT), True),
        (mapping(10, STRING, INT), mapping(10, STRING, STRING), True),
    ):
        found, problems = resolve_renames(columns("s", s=old), columns("s", s=new), {"s": "s_old"})
        assert (found, len(problems)) == (({1: "s_old"}, 0) if replaces else ({}, 1)), (old, new)


def test_a_replacement_that_was_made_has_nothing_left_to_do() -> None:
    renames = {"a": "b"}
    past = Past({1: frozenset({"a", "b"})})
    target = columns("b string, x int, a int")
    assert resolve_renames(target, columns("a int"), renames, past) == ({}, ())
    # Whatever it returns now: that is for the type to say.
    assert resolve_renames(target, columns("a date"), renames, past) == ({}, ())
    # A column that has always been there is another matter, unless nobody knows any more.
    assert outcome("b string, x int, a int", "a int", renames, Past())[1] == BOTH
    assert resolve_renames(target, columns("a int"), renames, Past(is_complete=False)) == ({}, ())
    # So is one that somebody has added, if the model returns the new name only.
    assert len(resolve_renames(target, columns("b string"), renames, past)[1]) == 1
    # A model that returns neither any more has both padded.
    assert resolve_renames(target, columns("x int"), renames, past) == ({}, ())
    assert outcome("b string, x int, a int", "x int", renames, Past())[1] == BOTH


def test_a_chain_is_made_at_once_and_once() -> None:
    renames = {"a": "a_old", "a_old": "a_older"}
    past = Past({1: frozenset({"a", "a_old"}), 2: frozenset({"a"})})
    target = columns("a_old string, a int")
    assert resolve_renames(target, columns("a date"), renames, past) == ({2: "a_old", 1: "a_older"}, ())
    # The first link was made before, and its values fit still.
    assert resolve_renames(target, columns("a int"), renames, past) == ({1: "a_older"}, ())
    done = columns("a_older string, a_old int, a date")
    past = Past({1: frozenset({"a", "a_old", "a_older"}), 2: frozenset({"a", "a_old"}), 3: frozenset({"a"})})
    assert resolve_renames(done, columns("a date"), renames, past) == ({}, ())
    # Plain ones, too.
    assert outcome("a int, b int", "b int, c int", {"a": "b", "b": "c"}, Past()) == ({1: "b", 2: "c"}, [])
    past = Past({1: frozenset({"a", "b"}), 2: frozenset({"b", "c"})})
    assert outcome("b int, c int", "b int, c int", {"a": "b", "b": "c"}, past) == ({}, [])


def test_names_are_not_swapped() -> None:
    """In any past: those that were swapped once may be wanted back, and nothing tells."""
    refusal = (
        "`column_renames` wants `a` to become `b` and `b` to become `a`, and names cannot change places in "
        "one run. It takes two. For the first, put `column_renames: {a: b_new, b: a}` in the place of these, "
        "and let the model return `b_new` instead of `b`. For the second, put `column_renames: {b_new: b}` "
        "there, and let it return `b` again. If they have changed places before, take these renames out of "
        "the configuration."
    )
    target, renames = columns("a int, b int"), {"a": "b", "b": "a"}
    swapped = Past({1: frozenset({"a", "b"}), 2: frozenset({"a", "b"})})
    for batch in ("a int, b int", "a string, b string", ""):
        for past in (Past(), Past(is_complete=False), swapped):
            found, problems = resolve_renames(target, columns(batch), renames, past)
            assert (found, list(map(str, problems))) == ({}, [refusal])


def test_a_circle_of_names_is_told_once() -> None:
    renames = {"b": "c", "c": "a", "a": "b", "x": "B_New"}
    found, (problem,) = resolve_renames(
        columns("a int, b int, c int, b_new int"), columns("C_NEW int"), renames
    )
    assert found == {}
    assert problem.columns == ("b", "c", "a")
    assert str(problem) == (
        "`column_renames` wants `b` to become `c`, `c` to become `a` and `a` to become `b`, and names cannot "
        "change places in one run. It takes two. For the first, put `column_renames: {b: c_new2, c: a, a: "
        "b}` in the place of these, and let the model return `c_new2` instead of `c`. For the second, put "
        "`column_renames: {c_new2: c}` there, and let it return `c` again. If they have changed places "
        "before, take these renames out of the configuration."
    )
    # The fields of two structs are two circles, even in one that gets another name itself.
    inner = columns("p, q", p=struct(10, x=INT, **{"y-": INT}), q=array(20, struct(21, x=INT, y=INT)))
    renames = {"p": "r", "p.x": "y-", "p.`y-`": "x", "q.x": "y", "q.y": "x"}
    _, problems = resolve_renames(inner, columns(""), renames)
    assert [problem.columns for problem in problems] == [
        ("p.x", "p.y-"),
        ("q.element.x", "q.element.y"),
    ]
    assert (
        'put `column_renames: {p.x: "y-_new", "p.`y-`": x}` in the place of these, and let the model return '
        '`r`.`y-_new` instead of `r`.`y-`. For the second, put `column_renames: {"r.`y-_new`": "y-"}`'
    ) in problems[0].remedy


def test_a_column_that_waits_for_a_name_is_not_to_be_merged_with_its_owner() -> None:
    _, (problem,) = resolve_renames(columns("a int, b int, c int"), NOTHING, {"a": "b", "b": "c"})
    assert problem.columns == ("b", "c")


def test_a_field_of_a_struct_that_is_renamed_too() -> None:
    target = columns("s", s=struct(10, x=INT))
    batch = columns("t", t=struct(10, x=STRING))
    assert resolve_renames(target, batch, {"s": "t", "s.x": "x_old"}) == ({1: "t", 10: "x_old"}, ())


def test_a_field_of_a_struct_whose_name_another_one_has_by_now() -> None:
    """The path begins with what the struct was called before: the field of the other one stays as it is."""
    renames = {"d": "b", "b": "e", "b.y": "z"}
    before = columns("d, b", d=struct(10, x=STRING, y=INT), b=struct(20, x=STRING, y=STRING))
    batch = columns("b, e", b=struct(10, x=STRING, y=INT), e=struct(20, x=STRING, z=STRING))
    assert resolve_renames(before, batch, renames, Past()) == ({1: "b", 2: "e", 21: "z"}, ())
    past = Past({1: frozenset({"d", "b"}), 2: frozenset({"b", "e"}), 21: frozenset({"y", "z"})})
    assert resolve_renames(batch, batch, renames, past) == ({}, ())
    # Also if the other one has a field of the new name, too, and if only the case of it changes.
    both = columns("b, e", b=struct(10, x=STRING, y=INT, z=INT), e=struct(20, x=STRING, z=STRING))
    assert resolve_renames(both, both, renames, past) == ({}, ())
    cased = columns("b, e", b=struct(10, x=STRING, y=INT), e=struct(20, x=STRING, Y=STRING))
    assert resolve_renames(cased, cased, {**renames, "b.y": "Y"}, past) == ({}, ())
    # A model that returns the new name there means the one that is called so today.
    new = columns("b, e", b=struct(10, x=STRING, z=INT), e=struct(20, x=STRING, z=STRING))
    assert resolve_renames(batch, new, renames, past) == ({11: "z"}, ())
