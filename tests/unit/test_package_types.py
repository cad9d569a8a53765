"""The package's macros that read and write names and types, held equal to the adapter's functions."""

from collections.abc import Iterator
from itertools import count
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from pyiceberg.schema import Schema, assign_fresh_schema_ids, index_by_name
from pyiceberg.types import (
    DecimalType,
    DoubleType,
    FloatType,
    IcebergType,
    IntegerType,
    ListType,
    LongType,
    MapType,
    NestedField,
    StringType,
    StructType,
)

from dbt.adapters.sparkevolve.evolution import names, types
from dbt.adapters.sparkevolve.sql import spark_types
from dbt.adapters.sparkevolve.sql.spark_types import Array, Leaf, Map, SparkType, Struct
from tests.unit.package_macros import PURE, as_macros_see, macro_names, normal
from tests.unit.strategies import NAMES, ODD_NAMES, nested_loads, nested_pairs, rule
from tests.unit.test_spark_types import STORABLE, UNMAPPABLE

TEXTS = st.text(st.sampled_from("ab.`'\\$ {}\n\x01é")) | st.text(max_size=5)


def as_dict(type_: SparkType) -> dict[str, Any]:
    """Return one of the adapter's types as the macros have it."""
    if isinstance(type_, Leaf):
        return {"kind": "leaf", "text": type_.text, "fields": []}
    if isinstance(type_, Array):
        fields, kind = [("element", type_.element, False)], "array"
    elif isinstance(type_, Map):
        fields, kind = [("key", type_.key, True), ("value", type_.value, False)], "map"
    else:
        fields, kind = [(name, inner, False) for name, inner in type_.fields], "struct"
    return {
        "kind": kind,
        "text": "",
        "fields": [
            {"name": name, "type": as_dict(inner), "required": required, "doc": None, "id": None}
            for name, inner, required in fields
        ],
    }


def written(type_: SparkType) -> str:
    """Return a type as Spark's ``typeof`` writes it."""
    if isinstance(type_, Leaf):
        return type_.text
    if isinstance(type_, Array):
        return f"array<{written(type_.element)}>"
    if isinstance(type_, Map):
        return f"map<{written(type_.key)},{written(type_.value)}>"
    return f"struct<{','.join(f'{name}:{written(inner)}' for name, inner in type_.fields)}>"


LEAVES = st.sampled_from(
    [*STORABLE, *UNMAPPABLE, "void", "string collate UTF8_LCASE", "newtype", "newtype(1, 2)"]
).map(Leaf)
SPARK_TYPES = st.recursive(
    LEAVES,
    lambda inner: (
        inner.map(Array)
        | st.builds(Map, inner, inner)
        | st.lists(st.tuples(NAMES | st.just(""), inner), max_size=3).map(lambda f: Struct(tuple(f)))
    ),
    max_leaves=6,
)


def test_a_macro_is_called_by_the_package_that_it_is_in() -> None:
    # Of another package than the node's, dbt finds no macro by its bare name.
    assert len(macro_names()) == len(set(macro_names()))
    assert "plan_evolution" in macro_names()


@given(TEXTS | NAMES)
@example("`a``b`")
@example("a.`b.c`.d")
@example("a.")
def test_names_are_quoted_and_read_as_the_adapter_does(text: str) -> None:
    assert PURE.quote(text) == names.quote(text)
    assert PURE.unquote(text) == names.unquote(text)
    levels = names.dotted_levels(text)
    assert PURE.dotted_levels(text) == (None if levels is None else [list(level) for level in levels])
    assert PURE.text_literal(text) == normal(names.string_literal(text))
    for substitutes in (False, True):
        literal = names.constant_literal(text, substitutes=substitutes)
        assert PURE.constant_literal(text, substitutes) == literal


@given(st.lists(st.sampled_from(ODD_NAMES) | NAMES, max_size=6))
@example(["İ", "i", "i̇", "ı", "I"])
@example(["ß", "ẞ", "ss", "SS"])
def test_names_that_spark_confuses_are_those_of_the_adapter(listed: list[str]) -> None:
    assert PURE.collisions(listed) == [list(group) for group in names.collisions(listed)]
    assert PURE.listed(listed) == ", ".join(map(names.quote, listed))
    assert PURE.path_of(listed) == {"names": listed, "text": names.path_text(listed)}


def test_reserved_names_are_those_of_the_adapter() -> None:
    assert set(PURE.reserved_names()) == names.RESERVED_NAMES


@given(SPARK_TYPES)
def test_a_type_is_read_as_the_adapter_reads_it(type_: SparkType) -> None:
    text = written(type_)
    try:
        expected: SparkType | None = spark_types.parse_type(text)
    except spark_types.UnreadableType:
        expected = None
    assert PURE.parse_type(text) == (None if expected is None else as_dict(expected))


@given(st.text("struct<array<map<int,:>` ()decimal", max_size=20))
def test_what_is_no_type_is_read_as_the_adapter_reads_it(text: str) -> None:
    try:
        expected: SparkType | None = spark_types.parse_type(text)
    except spark_types.UnreadableType:
        expected = None
    assert PURE.parse_type(text) == (None if expected is None else as_dict(expected))


@pytest.mark.parametrize(
    "name", ["a b", "a:b", "::", "a,b", "a<b", ">", "struct<", "array<int>", "x: int", ""]
)
def test_odd_names_are_read(name: str) -> None:
    type_ = Struct((("first", Leaf("string")), (name, Array(Leaf("void"))), ("last", Leaf("decimal(10,2)"))))
    assert PURE.parse_type(written(type_)) == as_dict(type_)


def test_a_wide_type_is_read() -> None:
    type_ = Array(Struct(tuple((f"column {n}", Leaf("int")) for n in range(400))))
    assert PURE.parse_type(written(type_)) == as_dict(type_)


@given(SPARK_TYPES)
def test_what_a_type_is_stored_as(type_: SparkType) -> None:
    stored = PURE.stored_type(as_dict(type_))
    if "void" not in written(type_):
        texts = spark_types.stored_as(type_)
        lacking = [text for text in (*UNMAPPABLE, "newtype", "newtype(1, 2)") if text in written(type_)]
        # The adapter's function is for queries that are storable already; the macro is for all.
        assert lacking or PURE.type_text(stored) == texts
    assert "varchar" not in written_stored(stored)


def written_stored(type_: dict[str, Any]) -> str:
    return str(type_["text"]) + "".join(written_stored(f["type"]) for f in type_["fields"])


@pytest.mark.parametrize("text", UNMAPPABLE)
def test_what_iceberg_lacks_is_stored_as_string(text: str) -> None:
    assert PURE.stored_type(PURE.parse_type(f"array<{text}>")) == as_dict(Array(Leaf("string")))


def number_types() -> Iterator[IcebergType]:
    yield from (IntegerType(), LongType(), FloatType(), DoubleType(), StringType())
    for precision in (1, 2, 9, 10, 11, 18, 19, 20, 38):
        yield from (DecimalType(precision, scale) for scale in (0, 1, 2, 9) if scale <= precision)


def test_each_pair_of_types_is_widened_and_cast_as_the_adapter_does() -> None:
    listed = list(number_types())
    for old in listed:
        for new in listed:
            one, other = as_type(old), as_type(new)
            assert PURE.is_widening(one, other) == types.is_widening(old, new), (old, new)
            assert PURE.may_be_cast(one, other) == types.may_be_cast(old, new), (old, new)
            assert PURE.is_safe_upcast(one, other) == types.is_safe_upcast(old, new), (old, new)


def as_type(iceberg_type: IcebergType) -> dict[str, Any]:
    from pyiceberg.types import NestedField

    (field,) = as_macros_see([NestedField(1, "x", iceberg_type, required=False)])
    return dict(field["type"])


@rule
@given(nested_pairs() | nested_loads())
def test_types_are_written_and_compared_as_the_adapter_does(pair: Any) -> None:
    table, batch = pair
    for f in table.fields:
        type_ = as_type(f.field_type)
        assert PURE.spark_type(type_) == types.spark_type(f.field_type)
        assert PURE.type_text(type_) == types.type_text(f.field_type)
        assert PURE.has_map(type_) == types.has_map(f.field_type)
        for other in batch.fields:
            assert PURE.is_same(as_type(other.field_type), type_) == types.is_same(
                other.field_type, f.field_type
            )


def test_fields_are_numbered_from_the_outside_in() -> None:
    fields = [
        PURE.field("a", PURE.parse_type("struct<x:int,y:array<int>>")),
        PURE.field("b", PURE.leaf("int")),
    ]
    PURE.numbered(fields)
    found: dict[str, int] = {}
    waiting, numbers = list(fields), count(1)
    while waiting:
        field = waiting.pop(0)
        found[field["name"]] = field["id"]
        waiting = [*field["type"]["fields"], *waiting]
    assert found == {name: next(numbers) for name in ("a", "x", "y", "element", "b")}


def test_the_query_for_types_is_the_adapters() -> None:
    sql, listed = "select 1 -- all", ["a", "b`:c"]
    assert PURE.types_query(sql, listed) == spark_types.types_query(sql, listed)
    assert PURE.no_rows(sql) == spark_types.no_rows(sql)


@given(st.lists(st.tuples(NAMES, SPARK_TYPES), min_size=1, max_size=3))
def test_a_batch_is_of_the_type_that_spark_says(columns: list[tuple[str, SparkType]]) -> None:
    fields = [PURE.field(name, as_dict(type_)) for name, type_ in columns]
    said = written(Struct(tuple(columns)))
    assert PURE.is_of_type({"type": said}, fields)
    assert PURE.is_of_type({"type": said}, [*fields, PURE.field("late", PURE.leaf("int"))]) is False
    assert PURE.is_of_type({"type": said}, fields[1:]) is False
    name, type_ = columns[0]
    other = Leaf("bigint" if type_ == Leaf("int") else "int")
    assert PURE.is_of_type({"type": written(Struct(((name, other), *columns[1:])))}, fields) is False


def of_key(iceberg_type: IcebergType) -> Schema:
    """Return a table with maps whose keys are structs with a field of that type."""
    key = StructType(NestedField(1, "k", iceberg_type, required=False))
    value = StructType(NestedField(1, "v", ListType(1, key), required=False))
    of_maps = ListType(1, MapType(1, key, 1, ListType(1, MapType(1, key, 1, value))))
    return assign_fresh_schema_ids(Schema(NestedField(1, "c", of_maps, required=False)))


@given(nested_loads().map(lambda load: load[0]))
@example(of_key(IntegerType()))
@example(of_key(ListType(1, StructType(NestedField(1, "element", IntegerType(), required=False)))))
@example(of_key(MapType(1, StringType(), 1, StructType(NestedField(1, "value", LongType(), required=False)))))
def test_fields_have_the_names_by_which_iceberg_finds_them(table: Schema) -> None:
    """Full and short ones, as PyIceberg indexes them, which Iceberg's Java library was seen to do, too."""
    assert set(PURE.dotted_names(as_macros_see(table.fields))) == set(index_by_name(table))
