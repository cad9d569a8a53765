"""Projections: the expression that gives a column of the table its value from the staged batch."""

import pytest

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
            "IF(s.`S` IS NULL, NULL, named_struct('it\\'s', s.`S`.`IT'S`, 'a.b', "
            "CAST(s.`S`.`A.b` AS bigint), 'back\\\\slash', CAST(NULL AS date)))",
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
