"""Projections: the expression that gives a column of the table its value from the staged batch."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dbt.adapters.sparkevolve.evolution.projection import (
    Cast,
    Keep,
    Pad,
    ProjectedColumn,
    Projection,
    RebuildList,
    RebuildMap,
    RebuildStruct,
    StructMember,
)
from tests.unit.strategies import NAMES


@pytest.mark.parametrize(
    ("source", "projection", "sql"),
    [
        ("Id", Keep(), "s.`Id`"),
        ("a.b", Keep(), "s.`a.b`"),
        ("a`b", Keep(), "s.`a``b`"),
        ("Id", Cast("bigint"), "CAST(s.`Id` AS bigint)"),
        ("x y", Cast("decimal(10,2)"), "CAST(s.`x y` AS decimal(10,2))"),
        ("`", Cast("double"), "CAST(s.```` AS double)"),
        (None, Pad("string"), "CAST(NULL AS string)"),
        (None, Pad("struct<`x`:int>"), "CAST(NULL AS struct<`x`:int>)"),
        (
            "S",
            RebuildStruct(
                (
                    StructMember("it's", "IT'S", Keep()),
                    StructMember("a.b", "A.b", Cast("bigint")),
                    StructMember("back\\slash", None, Pad("date")),
                )
            ),
            "IF(s.`S` IS NULL, NULL, named_struct(CAST(X'69742773' AS STRING), s.`S`.`IT'S`, 'a.b', "
            "CAST(s.`S`.`A.b` AS bigint), CAST(X'6261636b5c736c617368' AS STRING), CAST(NULL AS date)))",
        ),
        (
            "l",
            RebuildList(Cast("bigint")),
            "transform(s.`l`, element_0 -> CAST(element_0 AS bigint))",
        ),
        (
            "m",
            RebuildMap(Cast("bigint")),
            "transform_values(s.`m`, (key_0, value_0) -> CAST(value_0 AS bigint))",
        ),
        (
            "l",
            RebuildList(RebuildMap(RebuildList(RebuildStruct((StructMember("x", "X", Keep()),))))),
            "transform(s.`l`, element_0 -> transform_values(element_0, (key_1, value_1) -> "
            "transform(value_1, element_2 -> IF(element_2 IS NULL, NULL, "
            "named_struct('x', element_2.`X`)))))",
        ),
    ],
)
def test_a_projection_renders_as_one_expression(source: str | None, projection: Projection, sql: str) -> None:
    assert ProjectedColumn("any", source, projection).render("s") == sql


def test_a_struct_between_two_lambdas_does_not_bring_their_variables_together() -> None:
    projection = RebuildList(RebuildStruct((StructMember("l", "l", RebuildList(Cast("int"))),)))
    sql = projection.render("x")
    assert "transform(element_0.`l`, element_1 -> CAST(element_1 AS int))" in sql


def test_projections_are_values() -> None:
    assert ProjectedColumn("a", "A", Keep()) == ProjectedColumn("a", "A", Keep())
    assert ProjectedColumn("a", "A", Keep()) != ProjectedColumn("a", "A", Cast("int"))
    assert len({Keep(), Keep(), Cast("int"), Cast("int"), Pad("int"), Pad("int")}) == 3
    assert len({RebuildList(Keep()), RebuildList(Keep()), RebuildMap(Keep()), RebuildStruct(())}) == 3


# Previous values


DEEP = RebuildStruct(
    (
        StructMember("x", "X", Cast("bigint")),
        StructMember("gone", None, Pad("int")),
        StructMember("in.ner", "In.ner", RebuildStruct((StructMember("q`q", None, Pad("date")),))),
        StructMember("l", "l", RebuildList(RebuildStruct((StructMember("y", None, Pad("int")),)))),
        StructMember("m", "m", RebuildMap(RebuildStruct((StructMember("z", None, Pad("int")),)))),
    )
)


def test_what_the_model_does_not_return_is_taken_from_the_row_that_is_replaced() -> None:
    assert ProjectedColumn("a.b", None, Pad("string")).render("s", "p") == "p.`a.b`"
    assert ProjectedColumn("Id", "ID", Keep()).render("s", "p") == "s.`ID`"
    assert ProjectedColumn("Id", "ID", Cast("int")).render("s", "p") == "CAST(s.`ID` AS int)"


def test_a_nested_field_takes_its_previous_value_but_an_element_and_a_map_s_value_have_none() -> None:
    assert ProjectedColumn("T", "S", DEEP).render("s", "p") == (
        "IF(s.`S` IS NULL, NULL, named_struct("
        "'x', CAST(s.`S`.`X` AS bigint), "
        "'gone', p.`T`.`gone`, "
        "'in.ner', IF(s.`S`.`In.ner` IS NULL, NULL, named_struct('q`q', p.`T`.`in.ner`.`q``q`)), "
        "'l', transform(s.`S`.`l`, element_0 -> IF(element_0 IS NULL, NULL, "
        "named_struct('y', CAST(NULL AS int)))), "
        "'m', transform_values(s.`S`.`m`, (key_0, value_0) -> IF(value_0 IS NULL, NULL, "
        "named_struct('z', CAST(NULL AS int))))))"
    )


@pytest.mark.parametrize(
    ("projection", "answer"),
    [
        (Keep(), False),
        (Cast("int"), False),
        (Pad("int"), True),
        (DEEP, True),
        (RebuildStruct(()), False),
        (RebuildStruct((StructMember("x", "x", Keep()),)), False),
        (RebuildStruct((StructMember("x", "x", Keep()), StructMember("y", None, Pad("int")))), True),
        (
            RebuildStruct((StructMember("s", "s", RebuildStruct((StructMember("y", None, Pad("int")),))),)),
            True,
        ),
        (RebuildList(RebuildStruct((StructMember("y", None, Pad("int")),))), False),
        (RebuildMap(RebuildStruct((StructMember("y", None, Pad("int")),))), False),
        (RebuildStruct((StructMember("l", "l", RebuildList(Pad("int"))),)), False),
    ],
)
def test_only_columns_and_fields_of_structs_may_keep_a_value(projection: Projection, answer: bool) -> None:
    assert ProjectedColumn("c", "c", projection).may_keep is answer


_PROJECTIONS: st.SearchStrategy[Projection] = st.recursive(
    st.sampled_from([Keep(), Cast("bigint"), Pad("int")]),
    lambda inner: st.one_of(
        st.builds(RebuildList, inner),
        st.builds(RebuildMap, inner),
        st.builds(
            RebuildStruct,
            st.lists(st.builds(StructMember, NAMES, NAMES, inner), min_size=1, max_size=3).map(tuple),
        ),
    ),
    max_leaves=6,
)


@given(NAMES, _PROJECTIONS)
def test_a_previous_row_makes_a_difference_just_if_something_may_keep_its_value(
    name: str, projection: Projection
) -> None:
    column = ProjectedColumn(name, name, projection)
    with_previous = column.render("s", "PREVIOUS")
    assert (with_previous != column.render("s")) is column.may_keep
    assert ("PREVIOUS." in with_previous) is column.may_keep
    assert column.render("s") == column.render("s", None)


@given(_PROJECTIONS)
def test_a_previous_value_stands_where_else_null_would(projection: Projection) -> None:
    """With every previous value read as NULL of its type, the text is that without a previous row."""
    text = projection.render("v", "PREVIOUS")
    assert re.sub(r"PREVIOUS(\.`(?:[^`]|``)*`)*", "CAST(NULL AS int)", text) == projection.render("v")
