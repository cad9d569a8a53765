"""What Iceberg cannot store: how Spark's types are read, and the query that returns something else."""

import pytest
from pyiceberg.schema import Schema
from pyiceberg.types import (
    DateType,
    DecimalType,
    FixedType,
    IntegerType,
    LongType,
    NestedField,
    StringType,
    TimeType,
    UUIDType,
)

from dbt.adapters.sparkevolve.sql.storable import (
    Array,
    Leaf,
    Map,
    Note,
    SparkType,
    Struct,
    UnreadableType,
    columns_from_json,
    columns_from_types,
    field_paths,
    is_like,
    no_rows,
    parse_type,
    storable_query,
    types_query,
)
from tests.unit.helpers import array, columns, mapping, struct

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


# Reading types


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


def test_types_that_cannot_be_read_are_given_up_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each position is looked at once for each of the two readings, however deep it is."""
    from dbt.adapters.sparkevolve.sql import storable

    calls, real = [0], storable._Reader._read

    def counted(self: storable._Reader, start: int) -> object:
        calls[0] += 1
        return real(self, start)

    monkeypatch.setattr(storable._Reader, "_read", counted)
    with pytest.raises(UnreadableType):
        parse_type("struct<a:" * 60 + "int")
    assert calls[0] <= 2 * 62


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


def test_the_columns_that_are_left_are_named() -> None:
    assert storable_query(SQL, Struct((("a", INT), ("n", VOID), ("B c", Array(VOID))))).columns == ("a",)
    assert storable_query(SQL, Struct((("a", INT), ("B c", STRING)))).columns == ("a", "B c")
    assert storable_query(SQL, Struct((("n", VOID),))).columns == ()


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


# The query


def query(**fields: object) -> tuple[str, tuple[Note, ...]]:
    found = storable_query(SQL, Struct(tuple(fields.items())))  # type: ignore[arg-type]
    return found.sql, found.notes


def select(*items: str) -> str:
    return f"select {', '.join(items)} from (\nselect 1\n) as DBT_INTERNAL_MODEL"


@pytest.mark.parametrize("text", STORABLE)
def test_a_storable_query_stays_as_it_is(text: str) -> None:
    nested = Struct((("x", Array(Map(STRING, Leaf(text)))),))
    assert query(a=Leaf(text), b=nested, c=Array(nested)) == (SQL, ())


@pytest.mark.parametrize("text", [t for t in UNMAPPABLE if t != "variant"])
def test_what_iceberg_lacks_is_cast_to_string(text: str) -> None:
    assert query(a=INT, b=Leaf(text)) == (
        select("DBT_INTERNAL_MODEL.`a` as `a`", "cast(DBT_INTERNAL_MODEL.`b` as string) as `b`"),
        (Note(("b",), text),),
    )


def test_a_variant_is_written_as_json() -> None:
    sql, notes = query(v=Leaf("variant"))
    assert sql == select("to_json(DBT_INTERNAL_MODEL.`v`) as `v`")
    assert notes == (Note(("v",), "variant"),)


def test_a_bare_null_is_left_out() -> None:
    assert query(a=INT, n=VOID) == (select("DBT_INTERNAL_MODEL.`a` as `a`"), (Note(("n",), "void"),))


def test_a_query_of_bare_nulls_alone_is_left_to_spark() -> None:
    assert query(n=VOID, m=Array(VOID)) == (SQL, (Note(("n",), "void"), Note(("m", "element"), "void")))


@pytest.mark.parametrize(
    ("type_", "path"),
    [
        (Array(VOID), ("n", "element")),
        (Map(STRING, VOID), ("n", "value")),
        (Map(VOID, STRING), ("n", "key")),
        (Struct((("x", VOID),)), ("n", "x")),
        (Array(Array(VOID)), ("n", "element", "element")),
        (Struct((("x", Array(Map(STRING, VOID))),)), ("n", "x", "element", "value")),
    ],
)
def test_what_holds_nothing_but_bare_nulls_is_left_out(type_: object, path: tuple[str, ...]) -> None:
    assert query(a=INT, n=type_) == (select("DBT_INTERNAL_MODEL.`a` as `a`"), (Note(path, "void"),))


@pytest.mark.parametrize(
    ("type_", "expression"),
    [
        (
            Struct((("x", VOID), ("it's", INT))),
            "IF(DBT_INTERNAL_MODEL.`c` IS NULL, NULL, named_struct(CAST(X'69742773' AS STRING), "
            "DBT_INTERNAL_MODEL.`c`.`it's`))",
        ),
        (
            Array(Leaf("interval day")),
            "transform(DBT_INTERNAL_MODEL.`c`, element_0 -> cast(element_0 as string))",
        ),
        (
            Map(STRING, Leaf("interval day")),
            "transform_values(DBT_INTERNAL_MODEL.`c`, (key_0, value_0) -> cast(value_0 as string))",
        ),
        (
            Map(Leaf("interval day"), INT),
            "transform_keys(transform_values(DBT_INTERNAL_MODEL.`c`, (key_0, value_0) -> value_0), "
            "(key_0, value_0) -> cast(key_0 as string))",
        ),
        (
            Array(Array(Struct((("a.b", Leaf("variant")), ("n", VOID))))),
            "transform(DBT_INTERNAL_MODEL.`c`, element_0 -> transform(element_0, element_1 -> "
            "IF(element_1 IS NULL, NULL, named_struct('a.b', to_json(element_1.`a.b`)))))",
        ),
    ],
)
def test_nested_values_are_rebuilt_where_something_in_them_differs(type_: object, expression: str) -> None:
    sql, notes = query(c=type_)
    assert sql == select(f"{expression} as `c`")
    assert notes


def test_odd_names_are_quoted() -> None:
    found = storable_query(SQL, Struct((("a`b", INT), ("x.y", Leaf("interval")), ("n", VOID))))
    assert found.sql == select(
        "DBT_INTERNAL_MODEL.`a``b` as `a``b`", "cast(DBT_INTERNAL_MODEL.`x.y` as string) as `x.y`"
    )


def test_the_model_s_last_line_may_be_a_comment() -> None:
    found = storable_query("select 1 -- all", Struct((("a", INT), ("n", VOID))))
    assert "-- all\n) as" in found.sql


def test_a_note_says_what_happens() -> None:
    assert str(Note(("s", "x y"), "interval day")) == (
        "`s`.`x y` is of the type interval day, which Iceberg lacks, and is stored as string."
    )
    assert str(Note(("n",), "void")) == (
        "`n` is a bare NULL, which has no type, and is left out. Cast it in the model to add it."
    )


def test_a_struct_without_fields_is_left_out() -> None:
    for type_, path in ((Struct(()), ("n",)), (Array(Struct(())), ("n", "element"))):
        note = Note(path, "struct<>")
        assert query(a=INT, n=type_) == (select("DBT_INTERNAL_MODEL.`a` as `a`"), (note,))
        assert str(note).endswith("` is a struct without fields, which cannot be stored, and is left out.")


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


def test_twenty_thousand_columns_are_selected() -> None:
    fields = tuple((f"c{i}", INT) for i in range(20_000))
    found = storable_query(SQL, Struct((*fields, ("n", VOID))))
    assert found.sql.count(" as `c") == 20_000


def test_a_field_whose_name_looks_like_two_is_read_by_known_types_first() -> None:
    assert parse_type("struct<a:b,c:int>") == Struct((("a:b,c", INT),))


def test_a_type_that_is_not_known_is_read_all_the_same() -> None:
    assert parse_type("struct<n:int,p:pointudt>") == Struct((("n", INT), ("p", Leaf("pointudt"))))


# Bare NULLs of a model whose table is there


TABLE = Schema(
    NestedField(1, "N", DecimalType(10, 2), required=True),
    NestedField(2, "s", struct(3, **{"x y": IntegerType(), "z": StringType()})),
    NestedField(5, "l", array(6, struct(7, a=LongType()))),
    NestedField(8, "m", mapping(9, StringType(), DateType())),
    NestedField(11, "old", IntegerType()),
    NestedField(12, "t", TimeType()),
    NestedField(13, "uid", UUIDType()),
    NestedField(14, "f", struct(15, x=FixedType(4))),
)


@pytest.mark.parametrize(
    ("name", "type_", "expression"),
    [
        ("n", VOID, "CAST(NULL AS decimal(10,2))"),
        ("S", VOID, "CAST(NULL AS struct<`x y`:int,`z`:string>)"),
        (
            "s",
            Struct((("X Y", VOID), ("z", STRING))),
            "IF({} IS NULL, NULL, named_struct('X Y', CAST(NULL AS int), 'z', {}.`z`))",
        ),
        ("l", Array(VOID), "transform({}, element_0 -> CAST(NULL AS struct<`a`:bigint>))"),
        (
            "l",
            Array(Struct((("a", VOID),))),
            "transform({}, element_0 -> "
            "IF(element_0 IS NULL, NULL, named_struct('a', CAST(NULL AS bigint))))",
        ),
        ("m", Map(STRING, VOID), "transform_values({}, (key_0, value_0) -> CAST(NULL AS date))"),
        (
            "m",
            Map(VOID, VOID),
            "transform_keys(transform_values({}, (key_0, value_0) -> CAST(NULL AS date)), "
            "(key_0, value_0) -> CAST(NULL AS string))",
        ),
        ("new", VOID, "CAST(NULL AS int)"),
        ("uid", VOID, "CAST(NULL AS string)"),
        ("f", VOID, "CAST(NULL AS struct<`x`:binary>)"),
    ],
)
def test_a_bare_null_has_the_type_that_the_table_has_there(name: str, type_: object, expression: str) -> None:
    columns = Struct((("i", INT), (name, type_)))  # type: ignore[arg-type]
    found = storable_query(SQL, columns, TABLE, {"old": "new"})
    value = expression.replace("{}", f"DBT_INTERNAL_MODEL.`{name}`")
    assert found.sql == select("DBT_INTERNAL_MODEL.`i` as `i`", f"{value} as `{name}`")
    assert found.columns == ("i", name)
    assert found.notes == ()
    assert found.nulls == ((name,) if type_ == VOID else ())


def test_a_bare_null_that_the_table_has_no_type_for_is_left_out() -> None:
    in_s = ("s", Struct((("z", VOID), ("q", VOID))))
    columns = Struct((("i", INT), ("u", VOID), ("t", VOID), in_s))
    found = storable_query(SQL, columns, TABLE)
    paths = [("u",), ("t",), ("s", "q")]
    assert found.notes == tuple(Note(path, "void") for path in paths)
    assert found.columns == ("i", "s")
    assert found.sql == select(
        "DBT_INTERNAL_MODEL.`i` as `i`",
        "IF(DBT_INTERNAL_MODEL.`s` IS NULL, NULL, named_struct('z', CAST(NULL AS string))) as `s`",
    )


@pytest.mark.parametrize(
    "renames",
    [{"`s`": "`q`", "`s`.`x y`": "w"}, {"s.x y": "`W`", "S": "Q"}, {"s.`x y`": "w", "s": "q"}],
)
def test_a_bare_null_is_found_by_renames_however_they_are_written(renames: dict[str, str]) -> None:
    """Left out, it would be taken for removed: a `merge` would keep the old value."""
    found = storable_query(SQL, Struct((("q", Struct((("w", VOID), ("z", STRING)))),)), TABLE, renames)
    assert found.notes == ()
    assert "named_struct('w', CAST(NULL AS int), 'z', DBT_INTERNAL_MODEL.`q`.`z`)" in found.sql


def test_a_bare_null_under_the_name_of_another_field_has_that_one_s_type() -> None:
    """A table that has both names is refused later, for the rename."""
    found = storable_query(SQL, Struct((("s", VOID),)), TABLE, {"old": "s"})
    assert "CAST(NULL AS struct<`x y`:int,`z`:string>) as `s`" in found.sql


def test_bare_nulls_of_twenty_thousand_columns_have_the_table_s_types() -> None:
    names = [f"c{n}" for n in range(20_000)]
    table = Schema(*(NestedField(n, name, DateType()) for n, name in enumerate(names, 1)))
    found = storable_query(SQL, Struct(tuple((name, VOID) for name in names)), table, {"c1": "new"})
    assert found.columns == tuple(names)
    assert found.sql.count("CAST(NULL AS date)") == 20_000


def test_a_model_of_nothing_but_bare_nulls_has_the_table_s_types() -> None:
    found = storable_query(SQL, Struct((("n", VOID),)), TABLE)
    assert (found.sql, found.columns) == (select("CAST(NULL AS decimal(10,2)) as `n`"), ("n",))


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"s": Struct((("a", INT), ("b", Array(Struct((("c", VOID),)))))), "ID": INT, "new": INT}, True),
        ({"id": INT}, False),
        ({"s": Struct((("b", Array(Struct((("c", INT),)))), ("a", INT)))}, False),
        ({"s": Struct((("a", INT), ("B", Array(Struct((("c", INT),))))))}, False),
        ({"s": Struct((("a", INT), ("b", Array(Struct((("c", INT), ("d", INT)))))))}, False),
        ({"s": Struct((("a", INT),))}, False),
        ({"s": INT}, False),
        ({"ID": Array(INT)}, False),
        ({"m": Map(INT, Struct((("x", INT),)))}, True),
        ({"m": Map(INT, Struct((("X", INT),)))}, False),
        ({"m": Map(Struct((("x", INT),)), INT)}, False),
        ({}, True),
    ],
)
def test_a_query_is_like_its_table_if_what_both_have_is_spelled_and_ordered_alike(
    fields: dict[str, SparkType], expected: bool
) -> None:
    inner = struct(5, a=IntegerType(), b=array(7, struct(8, c=IntegerType())))
    value = struct(11, x=IntegerType())
    table = columns("ID int, s, m", s=inner, m=mapping(9, IntegerType(), value))
    assert is_like(Struct(tuple(fields.items())), table) is expected
