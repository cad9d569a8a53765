"""What changed between two schemas of a table, told by field ids."""

import pytest
from pyiceberg.schema import Schema
from pyiceberg.types import IntegerType, ListType, LongType, MapType, NestedField, StringType, StructType

from dbt.adapters.sparkevolve.evolution.history import schema_changes

INT, LONG, STRING = IntegerType(), LongType(), StringType()
A = NestedField(1, "a", INT, required=False)


def s(*fields: NestedField) -> NestedField:
    return NestedField(2, "s", StructType(*fields), required=False)


def test_the_first_schema_was_created() -> None:
    assert schema_changes(None, Schema(A)) == ("created",)


@pytest.mark.parametrize(
    ("old", "new", "texts"),
    [
        (Schema(A), Schema(A), ()),
        (Schema(A, s()), Schema(s(), A), ()),
        (Schema(A), Schema(A, NestedField(5, "x.y", STRING)), ("added `x.y` (5) string",)),
        (Schema(A, NestedField(5, "b`", STRING)), Schema(A), ("dropped `b``` (5) string",)),
        (Schema(A), Schema(NestedField(1, "A", INT, required=False)), ("renamed `a` (1) to `A`",)),
        (
            Schema(A),
            Schema(NestedField(1, "a", LONG, required=False)),
            ("changed `a` (1) from int to bigint",),
        ),
        (Schema(A), Schema(NestedField(1, "a", INT, required=True)), ("`a` (1) is NOT NULL",)),
        (Schema(NestedField(1, "a", INT, required=True)), Schema(A), ("`a` (1) is no longer NOT NULL",)),
        (Schema(A), Schema(NestedField(1, "a", INT, doc="x", required=False)), ("described `a` (1)",)),
        (Schema(A), Schema(NestedField(1, "a", INT, doc="", required=False)), ()),
        (
            Schema(A),
            Schema(NestedField(2, "a", INT, required=False)),
            ("added `a` (2) int", "dropped `a` (1) int"),
        ),
        (
            Schema(s(NestedField(3, "x", INT), NestedField(4, "y", INT))),
            Schema(s(NestedField(3, "z", LONG), NestedField(9, "y", INT))),
            (
                "renamed `s`.`x` (3) to `s`.`z`",
                "changed `s`.`z` (3) from int to bigint",
                "added `s`.`y` (9) int",
                "dropped `s`.`y` (4) int",
            ),
        ),
        (
            Schema(
                NestedField(1, "l", ListType(2, StructType(NestedField(3, "x", INT)), element_required=True))
            ),
            Schema(
                NestedField(
                    1,
                    "l",
                    ListType(
                        2,
                        StructType(NestedField(3, "x", INT), NestedField(4, "y", INT)),
                        element_required=False,
                    ),
                )
            ),
            ("`l`.`element` (2) is no longer NOT NULL", "added `l`.`element`.`y` (4) int"),
        ),
        (
            Schema(NestedField(1, "m", MapType(2, STRING, 3, INT, value_required=False))),
            Schema(NestedField(1, "m", MapType(2, STRING, 3, LONG, value_required=False))),
            ("changed `m`.`value` (3) from int to bigint",),
        ),
        (
            Schema(NestedField(1, "a", INT, required=True)),
            Schema(NestedField(1, "b", LONG, required=False, doc="x")),
            (
                "renamed `a` (1) to `b`",
                "changed `b` (1) from int to bigint",
                "`b` (1) is no longer NOT NULL",
                "described `b` (1)",
            ),
        ),
    ],
)
def test_each_difference_is_told_with_the_field_id(old: Schema, new: Schema, texts: tuple[str, ...]) -> None:
    assert schema_changes(old, new) == texts


def test_a_renamed_struct_does_not_rename_what_is_in_it() -> None:
    old = Schema(s(NestedField(3, "x", INT)))
    new = Schema(NestedField(2, "t", StructType(NestedField(3, "x", INT)), required=False))
    assert schema_changes(old, new) == ("renamed `s` (2) to `t`",)
