"""The life of each field of a table."""

from pyiceberg.schema import Schema
from pyiceberg.types import IcebergType, IntegerType, LongType, NestedField, StringType, StructType

from dbt.adapters.sparkevolve.evolution.lanes import Lane, Mark, lanes
from tests.unit.helpers import array, struct

INT, LONG, STRING = IntegerType(), LongType(), StringType()


def f(field_id: int, name: str, type_: IcebergType, *, required: bool = False) -> NestedField:
    return NestedField(field_id, name, type_, required=required)


def test_a_column_keeps_its_lane_through_a_rename_a_drop_and_a_restore() -> None:
    key = f(1, "id", INT)
    found = lanes(
        [
            Schema(key, f(2, "n", INT, required=True)),
            Schema(key, f(2, "amount", LONG)),
            Schema(key),
            Schema(key, f(2, "amount", LONG), f(3, "n", STRING)),
        ],
        {},
    )
    assert found == [
        Lane(1, ("id",), "int", None, [(0, 3)], [Mark(0, "created", "created with `id` (1) int")], ["id"]),
        Lane(
            2,
            ("amount",),
            "bigint",
            None,
            [(0, 1), (3, 3)],
            [
                Mark(0, "created", "created with `n` (2) int"),
                Mark(1, "renamed", "renamed `n` (2) to `amount`"),
                Mark(1, "widened", "changed `amount` (2) from int to bigint"),
                Mark(1, "relaxed", "`amount` (2) is no longer NOT NULL"),
                Mark(2, "dropped", "dropped `amount` (2) bigint"),
                Mark(3, "restored", "restored `amount` (2) bigint"),
            ],
            ["n", "amount"],
        ),
        Lane(3, ("n",), "string", None, [(3, 3)], [Mark(3, "added", "added `n` (3) string")], ["n"]),
    ]


def test_fields_stand_below_what_they_are_in_and_what_is_gone_at_the_end() -> None:
    inner = StructType(f(5, "b", INT), f(6, "a.x", INT))
    first = Schema(f(1, "old", INT), f(2, "s", struct(3, z=INT)), f(4, "items", array(7, struct(8, k=INT))))
    last = Schema(f(4, "items", array(7, struct(8, k=INT, m=INT))), f(2, "s", inner))
    found = lanes([first, last], {})
    assert [(lane.path, lane.parent) for lane in found] == [
        (("items",), None),
        (("items", "element"), 4),
        (("items", "element", "k"), 7),
        (("items", "element", "m"), 7),
        (("s",), None),
        (("s", "b"), 2),
        (("s", "a.x"), 2),
        (("s", "z"), 2),
        (("old",), None),
    ]
    assert [lane.path for lane in found if lane.spans[-1][1] == 0] == [("s", "z"), ("old",)]


def test_what_batches_lacked_is_a_mark_of_the_schema_that_they_were_loaded_into() -> None:
    schema = Schema(f(1, "id", INT), f(2, "s", struct(3, z=INT)))
    found = lanes([schema, schema], {1: ["`s`.`z`", "`gone`", "12 fields"]})
    assert [mark for lane in found for mark in lane.marks if mark.kind != "created"] == [
        Mark(1, "padded", "the batch had no `s`.`z`: padded")
    ]


def test_the_oldest_schema_that_is_left_created_nothing() -> None:
    found = lanes([Schema(f(1, "id", INT), schema_id=2), Schema(f(1, "id", LONG), schema_id=3)], {})
    assert [lane.marks for lane in found] == [
        [
            Mark(0, "oldest", "in the oldest schema that is left: `id` (1) int"),
            Mark(1, "widened", "changed `id` (1) from int to bigint"),
        ]
    ]


def test_no_schema_has_no_lanes() -> None:
    assert lanes([], {}) == []
