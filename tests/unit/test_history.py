"""What changed from one schema of a table to the next, told by field ids."""

import pytest
from pyiceberg.schema import Schema
from pyiceberg.types import (
    DecimalType,
    IntegerType,
    ListType,
    LongType,
    MapType,
    NestedField,
    StringType,
    StructType,
)

from dbt.adapters.sparkevolve.evolution.history import former_fields, schema_changes
from dbt.adapters.sparkevolve.evolution.policy import FormerColumn
from tests.unit.helpers import array, mapping, struct

INT, LONG, STRING = IntegerType(), LongType(), StringType()


def f(
    field_id: int, name: str, type_: object, *, required: bool = False, doc: str | None = None
) -> NestedField:
    return NestedField(field_id, name, type_, required=required, doc=doc)  # type: ignore[arg-type]


def test_the_first_schema_was_created() -> None:
    assert schema_changes(None, Schema(f(1, "a", INT))) == ("created",)


def test_the_same_schema_has_no_changes_whatever_its_order() -> None:
    one, two = f(1, "a", INT), f(2, "b", struct(3, x=INT))
    assert schema_changes(Schema(one, two), Schema(two, one)) == ()


@pytest.mark.parametrize(
    ("old", "new", "texts"),
    [
        ((f(1, "a", INT),), (f(1, "a", INT), f(2, "b c", STRING)), ("added `b c` (2) string",)),
        ((f(1, "a", INT), f(2, "b", INT)), (f(1, "a", INT),), ("dropped `b` (2) int",)),
        ((f(1, "a", INT),), (f(1, "A", INT),), ("renamed `a` (1) to `A`",)),
        ((f(1, "a", INT),), (f(1, "a", LONG),), ("changed `a` (1) from int to bigint",)),
        (
            (f(1, "a", DecimalType(9, 2)),),
            (f(1, "a", DecimalType(10, 2)),),
            ("changed `a` (1) from decimal(9,2) to decimal(10,2)",),
        ),
        ((f(1, "a", INT, required=True),), (f(1, "a", INT),), ("`a` (1) is no longer NOT NULL",)),
        ((f(1, "a", INT),), (f(1, "a", INT, required=True),), ("`a` (1) is NOT NULL",)),
        ((f(1, "a", INT),), (f(1, "a", INT, doc="x"),), ("described `a` (1)",)),
        ((f(1, "a", INT, doc=""),), (f(1, "a", INT),), ()),
        # Dropped and added again under the same name: another field.
        ((f(1, "a", INT),), (f(2, "a", INT),), ("added `a` (2) int", "dropped `a` (1) int")),
        # All at once.
        (
            (f(1, "a", INT, required=True),),
            (f(1, "b", LONG, doc="x"),),
            (
                "renamed `a` (1) to `b`",
                "changed `b` (1) from int to bigint",
                "`b` (1) is no longer NOT NULL",
                "described `b` (1)",
            ),
        ),
    ],
)
def test_each_change_of_a_column_is_told(
    old: tuple[NestedField, ...], new: tuple[NestedField, ...], texts: tuple[str, ...]
) -> None:
    assert schema_changes(Schema(*old), Schema(*new)) == texts


def test_nested_changes_are_told_by_their_path_and_once() -> None:
    old = Schema(
        f(1, "l", array(2, StructType(f(3, "x", INT), f(4, "gone", INT)))),
        f(5, "m", MapType(6, STRING, 7, INT, value_required=True)),
    )
    new = Schema(
        f(1, "l", array(2, StructType(f(3, "y", LONG), f(9, "new", INT)))),
        f(5, "m", MapType(6, STRING, 7, LONG, value_required=False)),
    )
    assert schema_changes(old, new) == (
        "renamed `l`.`element`.`x` (3) to `l`.`element`.`y`",
        "changed `l`.`element`.`y` (3) from int to bigint",
        "added `l`.`element`.`new` (9) int",
        "changed `m`.`value` (7) from int to bigint",
        "`m`.`value` (7) is no longer NOT NULL",
        "dropped `l`.`element`.`gone` (4) int",
    )


def test_a_renamed_column_does_not_rename_what_is_in_it() -> None:
    old, new = Schema(f(1, "a", struct(2, x=INT))), Schema(f(1, "b", struct(2, x=INT)))
    assert schema_changes(old, new) == ("renamed `a` (1) to `b`",)


def test_former_fields_are_found_by_the_path_of_today() -> None:
    first = Schema(
        NestedField(1, "s", struct(10, x=INT, Y=INT), required=False),
        NestedField(2, "gone", struct(20, inside=INT), required=False),
        schema_id=0,
    )
    second = Schema(NestedField(1, "t", struct(10, X=INT), required=False), schema_id=1)
    assert former_fields([second, first], second) == {
        ("t", "y"): FormerColumn("Y", 11, "int", 0, 1),
        ("gone",): FormerColumn("gone", 2, "struct<`inside`:int>", 0, 1),
        ("s",): FormerColumn("s", 1, "struct<`x`:int,`Y`:int>", 0, 1, renamed_to="`t`"),
    }
    assert former_fields([first], first) == {}


def test_an_added_nested_column_is_told_with_its_fields() -> None:
    old = Schema(f(1, "a", INT))
    new = Schema(f(1, "a", INT), f(2, "m", mapping(3, STRING, ListType(5, INT, element_required=False))))
    assert schema_changes(old, new)[0] == "added `m` (2) map<string,array<int>>"
