"""How Spark's types are asked for and read."""

import sys
from types import FrameType

import pytest

from dbt.adapters.sparkevolve.sql import spark_types
from dbt.adapters.sparkevolve.sql.spark_types import (
    Array,
    Leaf,
    Map,
    Struct,
    UnreadableType,
    columns_from_json,
    columns_from_types,
    field_paths,
    no_rows,
    parse_type,
    types_query,
)
from dbt.adapters.sparkevolve.sql.storable import Note, storable_query

INT, STRING, VOID = Leaf("int"), Leaf("string"), Leaf("void")

SQL = "select 1"

STORABLE = (
    *("boolean", "tinyint", "smallint", "int", "bigint", "float", "double", "string", "binary", "date"),
    *("timestamp", "timestamp_ntz", "decimal(10,2)", "decimal(38,0)", "char(3)", "varchar(20)"),
)

UNMAPPABLE = (
    *("interval year", "interval month", "interval year to month", "interval day", "interval hour"),
    *("interval day to second", "interval hour to minute", "interval", "variant", "time(6)"),
    *("geometry(4326)", "geography(any)"),
)


def test_the_types_query_reads_no_rows_and_ends_comments_of_the_model() -> None:
    assert types_query("select 1 -- all", ["a", "b`:c"]) == (
        "select typeof(DBT_INTERNAL_MODEL.`a`), typeof(DBT_INTERNAL_MODEL.`b``:c`) from (select 1 as one) "
        "as one_row left join "
        "(select * from (\nselect 1 -- all\n) as model_rows where false) as DBT_INTERNAL_MODEL on true"
    )
    assert no_rows("select 1 -- all") == "select * from (\nselect 1 -- all\n) as model_rows where false"


@pytest.mark.parametrize("text", [*STORABLE, *UNMAPPABLE, "void"])
def test_a_leaf_is_read_as_it_is_written(text: str) -> None:
    assert parse_type(text) == Leaf(text)
    assert parse_type(f"array<{text}>") == Array(Leaf(text))
    assert parse_type(f"struct<a:{text},b:{text}>") == Struct((("a", Leaf(text)), ("b", Leaf(text))))
    assert parse_type(f"map<{text},{text}>") == Map(Leaf(text), Leaf(text))


@pytest.mark.parametrize("text", STORABLE)
def test_what_iceberg_has_is_storable(text: str) -> None:
    assert Leaf(text).is_storable
    assert not Leaf(text).is_void


@pytest.mark.parametrize("text", [*UNMAPPABLE, "void"])
def test_what_iceberg_lacks_is_not(text: str) -> None:
    assert not Leaf(text).is_storable
    assert Leaf(text).is_void == (text == "void")


@pytest.mark.parametrize(
    ("text", "type_"),
    [
        ("struct<>", Struct(())),
        (
            "array<map<string,struct<a:array<int>,b:void>>>",
            Array(Map(STRING, Struct((("a", Array(INT)), ("b", VOID))))),
        ),
        ("map<struct<k:int>,array<int>>", Map(Struct((("k", INT),)), Array(INT))),
        ("struct<a:struct<>,b:int>", Struct((("a", Struct(())), ("b", INT)))),
    ],
)
def test_nested_types_are_read(text: str, type_: object) -> None:
    assert parse_type(text) == type_


@pytest.mark.parametrize(
    "name",
    [
        *("a b", "a.b", "a:b", ":", "::", "a,b", "a<b", "a>b", ">", "<", "`", "'", "\\", "\n", "#x", "0"),
        *("名前", "interval", "struct<", "array<int>", "decimal(1,2)", "", " ", "x: int", "a:c:d"),
    ],
)
def test_odd_names_are_read(name: str) -> None:
    for inner, type_ in [("int", INT), ("struct<x:void>", Struct((("x", VOID),)))]:
        expected = Struct((("first", STRING), (name, type_), ("last", INT)))
        assert parse_type(f"struct<first:string,{name}:{inner},last:int>") == expected


@pytest.mark.parametrize(
    "text",
    [
        *("", "int,", "int>", "array<int", "array<>", "map<int>", "map<int,int", "struct<a>"),
        *("struct<a:int", "struct<a:int,>", " int", "int "),
    ],
)
def test_what_is_no_type_is_said_to_be_unreadable(text: str) -> None:
    with pytest.raises(UnreadableType):
        parse_type(text)


@pytest.mark.parametrize("text", ["newtype", "newtype(1, 2)", "geography"])
def test_a_type_that_is_not_known_is_one_that_iceberg_lacks(text: str) -> None:
    assert parse_type(f"array<{text}>") == Array(Leaf(text))
    assert not Leaf(text).is_storable
    assert storable_query(SQL, Struct((("a", Leaf(text)),))).notes == (Note(("a",), text),)


def test_the_columns_of_a_query_have_its_names_whatever_they_are() -> None:
    names = ["a:int,b", "c>", "struct<"]
    assert columns_from_types(names, ["int", "array<void>", "string collate UTF8_LCASE"]) == Struct(
        (("a:int,b", INT), ("c>", Array(VOID)), ("struct<", Leaf("string collate UTF8_LCASE")))
    )
    with pytest.raises(UnreadableType):
        columns_from_types(["a"], ["struct<a:int"])


def test_a_collation_does_not_take_the_next_field_into_a_name() -> None:
    collated = Leaf("string collate UNICODE_CI_AI")
    assert parse_type("struct<a:string collate UNICODE_CI_AI,b:int>") == Struct((("a", collated), ("b", INT)))
    assert parse_type("map<string collate UNICODE_CI_AI,string>") == Map(collated, STRING)
    assert query(a=collated) == (
        select("cast(DBT_INTERNAL_MODEL.`a` as string) as `a`"),
        (Note(("a",), collated.text),),
    )


def test_types_that_cannot_be_read_are_given_up_soon() -> None:
    """Each position is read once for each of the two readings, however deep it is: not 2**60 times."""
    calls = 0

    def count(frame: FrameType, event: str, _: object) -> None:
        nonlocal calls
        calls += event == "call" and frame.f_code.co_filename == spark_types.__file__
        assert calls <= 2 * 62**2

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        with pytest.raises(UnreadableType):
            parse_type("struct<a:" * 60 + "int")
    finally:
        sys.setprofile(before)
    assert calls > 60


# What Spark 4.1 has written of a query.
SCHEMA = """{"type":"struct","fields":[
 {"name":"c","type":"string","nullable":false,"metadata":{"__COLLATIONS":{"c":"spark.UTF8_LCASE"}}},
 {"name":"mc","type":{"type":"map","keyType":"string","valueType":"string","valueContainsNull":false},
  "nullable":false,"metadata":{"__COLLATIONS":{"mc.key":"icu.UNICODE_CI"}}},
 {"name":"sc","type":{"type":"struct","fields":[
   {"name":"x:int,y","type":"string","nullable":false,"metadata":{"__COLLATIONS":{"x:int,y":"spark.UTF8_LCASE"}}},
   {"name":"z","type":"void","nullable":true,"metadata":{}}]},"nullable":false,"metadata":{}},
 {"name":"y","type":"interval year","nullable":false,"metadata":{}},
 {"name":"v","type":"variant","nullable":false,"metadata":{}},
 {"name":"e","type":{"type":"array","elementType":"void","containsNull":false},"nullable":false,"metadata":{}},
 {"name":"es","type":{"type":"struct","fields":[]},"nullable":false,"metadata":{}},
 {"name":"dd","type":"decimal(10,2)","nullable":true,"metadata":{}},
 {"name":"ti","type":"byte","nullable":false,"metadata":{}},
 {"name":"i","type":"integer","nullable":false,"metadata":{}},
 {"name":"u","type":{"type":"udt","class":"x.Y","sqlType":"string"},"nullable":false,"metadata":{}}]}"""


def test_the_columns_of_a_query_are_read_from_spark_s_json() -> None:
    assert columns_from_json(SCHEMA) == Struct(
        (
            ("c", Leaf("string collate UTF8_LCASE")),
            ("mc", Map(Leaf("string collate UNICODE_CI"), STRING)),
            ("sc", Struct((("x:int,y", Leaf("string collate UTF8_LCASE")), ("z", VOID)))),
            ("y", Leaf("interval year")),
            ("v", Leaf("variant")),
            ("e", Array(VOID)),
            ("es", Struct(())),
            ("dd", Leaf("decimal(10,2)")),
            ("ti", Leaf("tinyint")),
            ("i", INT),
            ("u", Leaf("udt")),
        )
    )


def test_twenty_thousand_columns_are_read() -> None:
    names = [f"c {i}" for i in range(20_000)]
    text = f"struct<{','.join(f'{name}:decimal(10,2)' for name in names)}>"
    type_ = parse_type(text)
    assert isinstance(type_, Struct)
    assert [name for name, _ in type_.fields] == names


def test_many_colons_in_a_name_do_not_take_forever() -> None:
    type_ = parse_type(f"struct<{':' * 5_000}x:int>")
    assert type_ == Struct(((":" * 5_000 + "x", INT),))


def test_a_hundred_levels_are_read() -> None:
    type_ = parse_type("array<" * 100 + "int" + ">" * 100)
    for _ in range(100):
        assert isinstance(type_, Array)
        type_ = type_.element
    assert type_ == INT


def query(**fields: object) -> tuple[str, tuple[Note, ...]]:
    found = storable_query(SQL, Struct(tuple(fields.items())))  # type: ignore[arg-type]
    return found.sql, found.notes


def select(*items: str) -> str:
    return f"select {', '.join(items)} from (\nselect 1\n) as DBT_INTERNAL_MODEL"


def test_fields_inside_columns_are_found_at_every_level() -> None:
    columns = parse_type(
        "struct<a:int,s:struct<x:int,l:array<struct<y:int>>>,m:map<struct<k:int>,struct<v:struct<w:int>>>>"
    )
    assert isinstance(columns, Struct)
    assert list(field_paths(columns)) == [
        ("s", "x"),
        ("s", "l"),
        ("s", "l", "element", "y"),
        ("m", "key", "k"),
        ("m", "value", "v"),
        ("m", "value", "v", "w"),
    ]


def test_a_field_whose_name_looks_like_two_is_read_by_known_types_first() -> None:
    assert parse_type("struct<a:b,c:int>") == Struct((("a:b,c", INT),))


def test_a_type_that_is_not_known_is_read_all_the_same() -> None:
    assert parse_type("struct<n:int,p:pointudt>") == Struct((("n", INT), ("p", Leaf("pointudt"))))
