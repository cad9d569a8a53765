"""What changes in the columns of a table that is replaced, and which types a query's columns get in it."""

from collections.abc import Collection

import pytest
from pyiceberg.schema import Schema
from pyiceberg.types import IntegerType, ListType, MapType, NestedField, StringType, StructType

from dbt.adapters.sparkevolve.evolution.replacement import (
    columns_without,
    fields_without,
    loss_text,
    replaced_columns,
)
from dbt.adapters.sparkevolve.sql.spark_types import parse_type, stored_as
from tests.unit.package_macros import PURE

OLD = [("id", "int"), ("s", "struct<`a`:int>"), ("v", "decimal(5,2)")]


def plain(text: str) -> str:
    return text.replace("`", "")


def by_package(new: list[tuple[str, str]], required: Collection[str] = ()) -> list[str]:
    old, new_fields = (
        [
            PURE.field(name, PURE.parse_type(type_.lower()), name in required and columns is OLD)
            for name, type_ in columns
        ]
        for columns in (OLD, list(new))
    )
    return [plain(text) for text in PURE.replaced_columns(old, new_fields)]


@pytest.mark.parametrize(
    ("new", "says"),
    [
        (OLD, []),
        ([("id", "INT"), ("s", "struct<a:int>"), ("v", "decimal(5,2)")], []),
        ([*OLD, ("n", "date")], ["add column `n` date"]),
        (OLD[:2], ["leave out column `v` decimal(5,2)"]),
        ([("ID", "int"), *OLD[1:]], ["leave out column `id` int", "add column `ID` int"]),
        ([("id", "bigint"), *OLD[1:]], ["change `id` from int to bigint"]),
        ([OLD[0], ("s", "array<int>"), OLD[2]], ["change `s` from struct<`a`:int> to array<int>"]),
        ([OLD[1], OLD[0], OLD[2]], ["put its columns in the order `s`, `id`, `v`"]),
        ([OLD[2], OLD[0]], ["leave out column `s` struct<`a`:int>"]),
    ],
)  # fmt: skip
def test_each_difference_is_told(new: list[tuple[str, str]], says: list[str]) -> None:
    assert replaced_columns(OLD, new) == says
    assert by_package(new) == [plain(text).replace("INT", "int") for text in says]


def test_a_column_that_is_not_null_becomes_optional() -> None:
    says = ["let `id` be NULL", "let `v` be NULL"]
    assert replaced_columns(OLD, OLD, ["v", "id"]) == says
    assert by_package(OLD, ["v", "id"]) == [plain(text) for text in says]


@pytest.mark.parametrize(
    ("spark", "iceberg"),
    [
        ("tinyint", "int"),
        ("smallint", "int"),
        ("char(3)", "string"),
        ("varchar(3)", "string"),
        ("decimal(10, 2)", "decimal(10,2)"),
        ("timestamp", "timestamp"),
        ("timestamp_ntz", "timestamp_ntz"),
        ("array<smallint>", "array<int>"),
        ("map<string,struct<a b:tinyint>>", "map<string,struct<`a b`:int>>"),
    ],
)
def test_a_type_of_a_query_is_stored_as(spark: str, iceberg: str) -> None:
    assert stored_as(parse_type(spark)) == iceberg


def schema(**columns: "list[str] | None") -> Schema:
    """Return a schema of ints, and of structs with some fields."""
    fields = []
    for number, (name, inside) in enumerate(columns.items()):
        within = [NestedField(10 * number + n, f, IntegerType()) for n, f in enumerate(inside or (), start=2)]
        fields.append(NestedField(10 * number + 1, name, StructType(*within) if within else IntegerType()))
    return Schema(*fields)


def test_what_a_replacement_takes_away_is_told_by_its_outermost_path() -> None:
    old = schema(id=None, Gone=None, s=["a", "b"], t=["x", "y"])
    new = schema(ID=None, s=["B", "c"], more=["z"])
    assert fields_without(old, new) == ["`Gone`", "`s`.`a`", "`t`"]
    assert fields_without(new, old) == ["`s`.`c`", "`more`"]
    assert fields_without(old, old) == []
    assert columns_without(old, ["ID", "s", "gone"]) == ["`t`"]


def test_a_type_that_is_no_list_or_map_any_more_is_no_column_that_goes() -> None:
    """But fields of structs in it are gone, and one of these may be called like an element."""
    struct = StructType(NestedField(3, "element", IntegerType(), required=False))
    types = (
        ListType(4, StringType(), element_required=False),
        MapType(5, StringType(), 6, IntegerType(), value_required=False),
        ListType(7, struct, element_required=False),
    )
    texts = {1: "tags", 2: "numbers", 8: "items"}
    old = Schema(*(NestedField(n, texts[n], t, required=False) for n, t in zip(texts, types, strict=True)))
    new = Schema(*(NestedField(n, name, StringType(), required=False) for n, name in texts.items()))
    assert fields_without(old, new) == ["`items`.`element`.`element`"]
    assert fields_without(new, old) == []
    assert fields_without(old, Schema()) == ["`tags`", "`numbers`", "`items`"]


def test_the_text_about_what_goes_names_the_snapshot_that_has_it() -> None:
    assert loss_text(["`v`"], "the model", 7) == (
        "the table is replaced, and loses column `v`, which the model no longer has. What was there is in "
        "snapshot 7 until that expires."
    )
    assert loss_text(["`v`", "`s`.`a`"], "the CSV file", None) == (
        "the table is replaced, and loses columns `v`, `s`.`a`, which the CSV file no longer has."
    )
