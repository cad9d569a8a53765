"""The statements that alter a table: of an old schema and a new one, in the order in which they are sent."""

import pytest
from pyiceberg.schema import Schema
from pyiceberg.types import (
    DecimalType,
    IcebergType,
    IntegerType,
    ListType,
    LongType,
    MapType,
    NestedField,
    StringType,
    StructType,
    TimestamptzType,
)

from dbt.adapters.sparkevolve.sql.alterations import alter_columns, alter_properties

INT, LONG, STRING = IntegerType(), LongType(), StringType()


def f(
    number: int, name: str, type_: IcebergType, doc: str | None = None, required: bool = False
) -> NestedField:
    return NestedField(number, name, type_, required=required, doc=doc)


def statements(before: list[NestedField], after: list[NestedField]) -> list[str]:
    found = alter_columns("`l`.`d`.`t`", Schema(*before), Schema(*after), lambda text: f"'{text}'")
    assert all(sql.startswith("ALTER TABLE `l`.`d`.`t` ") for sql in found)
    return [sql.removeprefix("ALTER TABLE `l`.`d`.`t` ") for sql in found]


def test_all_additions_are_one_statement_and_the_rest_one_each() -> None:
    assert statements(
        [f(1, "id", INT, required=True), f(2, "d", DecimalType(9, 2)), f(3, "old", STRING)],
        [
            f(1, "id", LONG, "a key"),
            f(2, "d", DecimalType(12, 2)),
            f(3, "new", STRING),
            f(4, "a`b", TimestamptzType(), "it"),
            f(5, "s", StructType(f(6, "x", INT))),
        ],
    ) == [
        "RENAME COLUMN `old` TO `new`",
        "ALTER COLUMN `id` DROP NOT NULL",
        "ALTER COLUMN `id` TYPE bigint",
        "ALTER COLUMN `d` TYPE decimal(12,2)",
        "ADD COLUMNS (`a``b` timestamp_ltz COMMENT 'it', `s` struct<`x`:int>)",
        "ALTER COLUMN `id` COMMENT 'a key'",
    ]


def test_fields_are_altered_wherever_they_are() -> None:
    def columns(*inside: NestedField) -> list[NestedField]:
        return [
            f(1, "l", ListType(10, StructType(*inside), element_required=False)),
            f(2, "m", MapType(20, STRING, 21, StructType(f(22, "y", INT)), value_required=False)),
        ]

    assert statements(
        columns(f(11, "x", INT, required=True), f(12, "old", STRING)),
        [
            *columns(f(11, "x", LONG), f(12, "new", STRING), f(13, "z", STRING))[:1],
            f(2, "m2", MapType(20, STRING, 21, StructType(f(22, "y", LONG)), value_required=False)),
        ],
    ) == [
        "RENAME COLUMN `l`.`element`.`old` TO `new`",
        "RENAME COLUMN `m` TO `m2`",
        "ALTER COLUMN `l`.`element`.`x` DROP NOT NULL",
        "ALTER COLUMN `l`.`element`.`x` TYPE bigint",
        "ALTER COLUMN `m2`.`value`.`y` TYPE bigint",
        "ADD COLUMNS (`l`.`element`.`z` string)",
    ]


@pytest.mark.parametrize(
    ("after", "expected"),
    [
        # A column whose name another one gets has to give it away first, and a new one comes last.
        ({1: "b", 2: "c"}, ["RENAME COLUMN `b` TO `c`", "RENAME COLUMN `a` TO `b`"]),
        ({1: "kept", 2: "b", 3: "a"}, ["RENAME COLUMN `a` TO `kept`", "ADD COLUMNS (`a` int)"]),
        ({1: "a", 2: "b"}, []),
    ],
)
def test_a_name_is_free_before_it_is_given(after: dict[int, str], expected: list[str]) -> None:
    before = [f(1, "a", STRING), f(2, "b", STRING)]
    wanted = [f(number, name, INT if number == 3 else STRING) for number, name in after.items()]
    assert statements(before, wanted) == expected


def test_a_field_is_renamed_where_it_is_by_then() -> None:
    def struct(number: int, name: str, inner: str) -> NestedField:
        return f(number, name, StructType(f(number + 10, inner, INT)))

    before = [struct(1, "a", "x"), struct(2, "b", "x")]
    # Before `b` has given its name away, `b`.`x` is the field of the other column.
    assert statements(before, [struct(1, "b", "y"), struct(2, "c", "x")]) == [
        "RENAME COLUMN `a`.`x` TO `y`",
        "RENAME COLUMN `b` TO `c`",
        "RENAME COLUMN `a` TO `b`",
    ]
    assert statements(before, [struct(1, "A", "x"), struct(2, "c", "y")]) == [
        "RENAME COLUMN `b`.`x` TO `y`",
        "RENAME COLUMN `a` TO `a__sparkevolve_rename_0cc175b9`",
        "RENAME COLUMN `a__sparkevolve_rename_0cc175b9` TO `A`",
        "RENAME COLUMN `b` TO `c`",
    ]
    # What is inside goes first, and in two steps too.
    assert statements(before, [struct(1, "A", "X"), struct(2, "b", "x")]) == [
        "RENAME COLUMN `a`.`x` TO `x__sparkevolve_rename_9dd4e461`",
        "RENAME COLUMN `a`.`x__sparkevolve_rename_9dd4e461` TO `X`",
        "RENAME COLUMN `a` TO `a__sparkevolve_rename_0cc175b9`",
        "RENAME COLUMN `a__sparkevolve_rename_0cc175b9` TO `A`",
    ]
    # Spark takes `B` for `b`.
    assert statements(before, [struct(1, "B", "x"), struct(2, "c", "x")]) == [
        "RENAME COLUMN `b` TO `c`",
        "RENAME COLUMN `a` TO `B`",
    ]


def test_properties_are_taken_away_first() -> None:
    assert alter_properties("t", {"a": "1", "b": "2"}, ["c", "d"], repr) == [
        "ALTER TABLE t UNSET TBLPROPERTIES IF EXISTS ('c', 'd')",
        "ALTER TABLE t SET TBLPROPERTIES ('a' = '1', 'b' = '2')",
    ]
    assert alter_properties("t", {}, [], repr) == []
