"""What Iceberg cannot store, and the query that returns something else."""

import pytest
from pyiceberg.schema import Schema
from pyiceberg.types import (
    DateType,
    DecimalType,
    FixedType,
    IntegerType,
    ListType,
    LongType,
    MapType,
    NestedField,
    StringType,
    TimeType,
    UnknownType,
    UUIDType,
)

from dbt.adapters.sparkevolve.evolution.types import VariantType
from dbt.adapters.sparkevolve.sql.spark_types import (
    Array,
    Leaf,
    Map,
    SparkType,
    Struct,
)
from dbt.adapters.sparkevolve.sql.storable import Note, is_like, storable_query
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


def test_the_columns_that_are_left_are_named() -> None:
    assert storable_query(SQL, Struct((("a", INT), ("n", VOID), ("B c", Array(VOID))))).columns == ("a",)
    assert storable_query(SQL, Struct((("a", INT), ("B c", STRING)))).columns == ("a", "B c")
    assert storable_query(SQL, Struct((("n", VOID),))).columns == ()


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


def test_twenty_thousand_columns_are_selected() -> None:
    fields = tuple((f"c{i}", INT) for i in range(20_000))
    found = storable_query(SQL, Struct((*fields, ("n", VOID))))
    assert found.sql.count(" as `c") == 20_000


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
        ("n", VOID, "CAST({} AS decimal(10,2))"),
        ("S", VOID, "CAST({} AS struct<`x y`:int,`z`:string>)"),
        (
            "s",
            Struct((("X Y", VOID), ("z", STRING))),
            "IF({} IS NULL, NULL, named_struct('X Y', CAST({}.`X Y` AS int), 'z', {}.`z`))",
        ),
        ("l", Array(VOID), "transform({}, element_0 -> CAST(element_0 AS struct<`a`:bigint>))"),
        (
            "l",
            Array(Struct((("a", VOID),))),
            "transform({}, element_0 -> "
            "IF(element_0 IS NULL, NULL, named_struct('a', CAST(element_0.`a` AS bigint))))",
        ),
        ("m", Map(STRING, VOID), "transform_values({}, (key_0, value_0) -> CAST(value_0 AS date))"),
        (
            "m",
            Map(VOID, VOID),
            "transform_keys(transform_values({}, (key_0, value_0) -> CAST(value_0 AS date)), "
            "(key_0, value_0) -> CAST(key_0 AS string))",
        ),
        ("new", VOID, "CAST({} AS int)"),
        ("uid", VOID, "CAST({} AS string)"),
        ("f", VOID, "CAST({} AS struct<`x`:binary>)"),
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
        "IF(DBT_INTERNAL_MODEL.`s` IS NULL, NULL, "
        "named_struct('z', CAST(DBT_INTERNAL_MODEL.`s`.`z` AS string))) as `s`",
    )


@pytest.mark.parametrize(
    "renames",
    [{"`s`": "`q`", "`s`.`x y`": "w"}, {"s.x y": "`W`", "S": "Q"}, {"s.`x y`": "w", "s": "q"}],
)
def test_a_bare_null_is_found_by_renames_however_they_are_written(renames: dict[str, str]) -> None:
    """Left out, it would be taken for removed: a `merge` would keep the old value."""
    found = storable_query(SQL, Struct((("q", Struct((("w", VOID), ("z", STRING)))),)), TABLE, renames)
    assert found.notes == ()
    assert (
        "named_struct('w', CAST(DBT_INTERNAL_MODEL.`q`.`w` AS int), 'z', DBT_INTERNAL_MODEL.`q`.`z`)"
        in found.sql
    )


def test_a_bare_null_under_the_name_of_another_field_has_that_one_s_type() -> None:
    """A table that has both names is refused later, for the rename."""
    found = storable_query(SQL, Struct((("s", VOID),)), TABLE, {"old": "s"})
    assert "CAST(DBT_INTERNAL_MODEL.`s` AS struct<`x y`:int,`z`:string>) as `s`" in found.sql


def test_bare_nulls_of_twenty_thousand_columns_have_the_table_s_types() -> None:
    names = [f"c{n}" for n in range(20_000)]
    table = Schema(*(NestedField(n, name, DateType()) for n, name in enumerate(names, 1)))
    found = storable_query(SQL, Struct(tuple((name, VOID) for name in names)), table, {"c1": "new"})
    assert found.columns == tuple(names)
    assert found.sql.count(" AS date) as ") == 20_000


def test_a_model_of_nothing_but_bare_nulls_has_the_table_s_types() -> None:
    found = storable_query(SQL, Struct((("n", VOID),)), TABLE)
    assert (found.sql, found.columns) == (
        select("CAST(DBT_INTERNAL_MODEL.`n` AS decimal(10,2)) as `n`"),
        ("n",),
    )


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


# Variants


VARIANT = Leaf("variant")


def test_a_variant_is_stored_as_one_where_the_table_can_have_it() -> None:
    fields = Struct((("id", INT), ("v", VARIANT), ("s", Struct((("x", VARIANT),)))))
    found = storable_query(SQL, fields, variants=True)
    assert (found.sql, found.notes, found.has_variants) == (SQL, (), True)
    assert not storable_query(SQL, fields).has_variants
    assert [note.path for note in storable_query(SQL, fields).notes] == [("v",), ("s", "x")]


def test_a_variant_in_a_list_is_json_unless_the_table_has_one_there() -> None:
    """Iceberg 1.12 cannot read a table that has one, unless its lists and maps are read too."""
    fields = Struct((("l", Array(VARIANT)), ("m", Map(STRING, VARIANT))))
    found = storable_query(SQL, fields, variants=True)
    assert [str(note.path) for note in found.notes] == ["('l', 'element')", "('m', 'value')"]
    assert not found.has_variants
    table = Schema(
        NestedField(1, "l", ListType(2, VariantType(), element_required=False), required=False),
        NestedField(3, "m", MapType(4, StringType(), 5, VariantType()), required=False),
    )
    assert storable_query(SQL, fields, table, variants=True).notes == ()


def test_a_variant_is_json_where_the_table_has_a_string_and_null_where_it_has_one() -> None:
    table = Schema(
        NestedField(1, "v", StringType(), required=False), NestedField(2, "n", VariantType(), required=False)
    )
    found = storable_query(SQL, Struct((("v", VARIANT), ("n", VOID))), table, variants=True)
    assert (
        "to_json(DBT_INTERNAL_MODEL.`v`) as `v`, CAST(DBT_INTERNAL_MODEL.`n` AS variant) as `n`" in found.sql
    )
    assert found.has_variants


def test_a_bare_null_is_left_out_where_the_table_has_no_type_either() -> None:
    table = Schema(NestedField(1, "id", IntegerType()), NestedField(2, "u", UnknownType(), required=False))
    assert storable_query(SQL, Struct((("id", INT), ("u", VOID))), table).columns == ("id",)
