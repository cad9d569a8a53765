"""What changed from one schema of a table to the next, told by field ids."""

import pytest
from pyiceberg.schema import Schema
from pyiceberg.types import (
    BinaryType,
    DecimalType,
    IntegerType,
    ListType,
    LongType,
    MapType,
    NestedField,
    StringType,
    StructType,
)

from dbt.adapters.sparkevolve.evolution.history import (
    EarlierMeaning,
    FormerName,
    earlier_meanings,
    former_fields,
    former_names,
    names_of_others,
    past_of,
    schema_changes,
    taken_names,
)
from dbt.adapters.sparkevolve.evolution.policy import FormerColumn, TakenName
from tests.unit.helpers import array, mapping, struct

INT, LONG, STRING = IntegerType(), LongType(), StringType()


def f(
    field_id: int, name: str, type_: object, *, required: bool = False, doc: str | None = None
) -> NestedField:
    return NestedField(field_id, name, type_, required=required, doc=doc)  # type: ignore[arg-type]


def test_the_first_schema_was_created() -> None:
    assert schema_changes(None, Schema(f(1, "a", INT))) == ("created",)


def test_the_oldest_schema_that_is_left_need_not_be_the_first() -> None:
    """Iceberg's maintenance removes schemas that no snapshot has, and ids are given one after the other."""
    one, two, three = f(1, "a", INT), f(2, "b", INT), f(3, "c", INT)
    for schema_id, were in ((1, "one older was"), (5, "5 older ones were")):
        assert schema_changes(None, Schema(one, schema_id=schema_id)) == (
            f"the oldest schema that is left: {were} removed by maintenance",
        )
    old, new = Schema(one, schema_id=3), Schema(one, two, schema_id=4)
    assert schema_changes(old, new) == ("added `b` (2) int",)
    for schema_id, came in (
        (5, "a schema before it, which was"),
        (6, "2 schemas before it, which were"),
    ):
        later = Schema(one, two, schema_id=schema_id)
        said = f"some of that may have come with {came} removed by maintenance"
        assert schema_changes(old, later) == ("added `b` (2) int", said)
    # One that came back is older than what it follows.
    assert schema_changes(new, old) == ("dropped `b` (2) int",)
    # A field is older than one with a higher id, though no schema that is left has had it before.
    again = Schema(one, two, three, schema_id=9)
    assert schema_changes(Schema(one, three, schema_id=8), again, {1, 3}) == ("restored `b` (2) int",)


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


def at(number: int, *fields: NestedField) -> Schema:
    return Schema(*fields, schema_id=number)


def test_a_name_that_another_field_has_is_told_with_both() -> None:
    known = at(0, f(1, "id", INT), f(2, "Note", STRING), f(3, "a", INT), f(4, "b", INT))
    schemas = [
        known,
        at(1, f(1, "id", INT), f(5, "note", INT), f(3, "a", INT), f(4, "b", INT)),
        at(2, f(1, "id", INT), f(5, "note", INT), f(3, "b", INT), f(4, "a", INT), f(6, "new", INT)),
    ]
    assert taken_names(schemas, schemas[2], known) == (
        TakenName(("note",), 5, "", 2, "string", "", 1),
        TakenName(("b",), 3, "`a`", 4, "int", "`a`", 2),
        TakenName(("a",), 4, "`b`", 3, "int", "`b`", 2),
    )
    # Compared with what was seen last, nothing has changed; what is new or renamed is no other's name.
    assert taken_names(schemas, schemas[2], schemas[2]) == ()
    assert taken_names(schemas, at(3, f(1, "key", INT), f(5, "id2", INT)), known) == ()


def test_of_nested_names_the_outermost_is_told() -> None:
    known = at(0, f(1, "s", struct(10, x=INT, y=INT)), f(2, "l", array(20, struct(21, p=INT))))
    now = at(
        1, f(1, "s", StructType(f(10, "x", INT), f(30, "Y", INT))), f(3, "l", array(22, struct(23, p=INT)))
    )
    found = [(taken.path, taken.field_id, taken.old_field_id) for taken in taken_names([now], now, known)]
    assert found == [(("s", "Y"), 30, 11), (("l",), 3, 2)]


def test_what_came_back_is_told_as_restored() -> None:
    old, new = Schema(f(1, "a", INT)), Schema(f(1, "a", INT), f(2, "b", STRING), f(3, "c", INT))
    assert schema_changes(old, new, {1, 2}) == ("restored `b` (2) string", "added `c` (3) int")


def test_the_names_that_fields_have_had() -> None:
    first, second = at(0, f(1, "A", INT), f(2, "s", struct(3, x=INT))), at(1, f(1, "b", INT))
    past = past_of([first, second], 3)
    assert past.may_have_been(1, "a")
    assert past.may_have_been(1, "B")
    assert past.may_have_been(3, "X")
    assert not past.may_have_been(2, "x")
    assert past.is_complete
    assert past_of([second], 3).may_have_been(1, "whatever it was")


@pytest.mark.parametrize(
    ("schemas", "found"),
    [
        # Renamed, and the name is given to another field later, in any case, and in a struct.
        (
            [(f(1, "a", INT),), (f(1, "b", INT),), (f(1, "b", INT), f(2, "A", INT))],
            {2: EarlierMeaning(("A",), None, 2, frozenset({0}), "`b`", True)},
        ),
        (
            [
                (f(1, "s", struct(2, a=INT)),),
                (f(1, "s", struct(2, b=INT)),),
                (f(1, "s", StructType(f(2, "b", INT), f(3, "a", INT))),),
            ],
            {3: EarlierMeaning(("s", "a"), 1, 2, frozenset({0}), "`s`.`b`", True)},
        ),
        # Two have swapped their names, in a struct that was called otherwise itself.
        (
            [
                (f(1, "t", array(4, struct(2, x=INT, y=INT))),),
                (f(1, "s", array(4, StructType(f(2, "y", INT), f(3, "x", INT)))),),
            ],
            {
                2: EarlierMeaning(("s", "element", "y"), 4, 1, frozenset({0}), "`s`.`element`.`x`", True),
                3: EarlierMeaning(("s", "element", "x"), 4, 1, frozenset({0}), "`s`.`element`.`y`", True),
            },
        ),
        # And swapped them back, and others by turns.
        (
            [(f(1, "a", INT),), (f(2, "a", INT), f(1, "b", INT)), (f(1, "a", INT), f(3, "c", INT))],
            {1: EarlierMeaning(("a",), None, 2, frozenset({1}), "", True, True)},
        ),
        (
            [(f(1, "a", INT),), (f(2, "a", INT), f(1, "b", INT)), (f(3, "a", INT), f(1, "b", INT))],
            {3: EarlierMeaning(("a",), None, 2, frozenset({0, 1}), "", True, True)},
        ),
        # In one commit, as a type is replaced.
        (
            [(f(1, "a", STRING),), (f(1, "b", STRING), f(2, "a", INT))],
            {2: EarlierMeaning(("a",), None, 1, frozenset({0}), "`b`", True)},
        ),
        # Dropped and added again, at once or later.
        (
            [(f(1, "a", BinaryType()),), (f(2, "a", STRING),)],
            {2: EarlierMeaning(("a",), None, 1, frozenset({0}))},
        ),
        (
            [(f(1, "a", INT),), (), (f(2, "a", INT),)],
            {2: EarlierMeaning(("a",), None, 2, frozenset({0}), "", True)},
        ),
        # Bytes, whose Base64 is a text like others.
        (
            [(f(1, "a", BinaryType()),), (f(1, "a", STRING),)],
            {1: EarlierMeaning(("a",), None, 1, frozenset({0}))},
        ),
        # Widened, renamed only, or new.
        ([(f(1, "a", INT),), (f(1, "a", LONG),), (f(1, "b", LONG), f(2, "c", INT))], {}),
    ],
)
def test_what_names_have_meant_before(
    schemas: list[tuple[NestedField, ...]], found: dict[int, EarlierMeaning]
) -> None:
    known = [Schema(*fields, schema_id=number) for number, fields in enumerate(schemas)]
    assert earlier_meanings(known, known[-1]) == found


@pytest.mark.parametrize(
    ("schemas", "found"),
    [
        # Renamed, twice, whoever has the names now.
        (
            [(f(1, "A", INT),), (f(1, "b", INT),), (f(1, "c", INT), f(2, "a", INT))],
            [FormerName(None, "a", 1, frozenset({0})), FormerName(None, "b", 1, frozenset({1}))],
        ),
        (
            [(f(1, "a", INT),), (f(1, "b", INT), f(2, "a", STRING))],
            [FormerName(None, "a", 1, frozenset({0}))],
        ),
        # What had it is gone; or two have had it by turns, and a time tells no more which.
        ([(f(1, "a", INT),), (f(2, "a", INT),)], []),
        (
            [(f(1, "a", INT),), (f(2, "a", INT), f(1, "b", INT)), (f(1, "a", INT), f(2, "b", INT))],
            [FormerName(None, "a", 2, frozenset({1}), False), FormerName(None, "b", 1, frozenset({1}))],
        ),
        (
            [(f(2, "a", INT),), (f(1, "a", INT), f(2, "b", INT)), (f(2, "a", INT), f(1, "b", INT))],
            [FormerName(None, "a", 1, frozenset({1}), False), FormerName(None, "b", 2, frozenset({1}))],
        ),
        (
            [
                (f(1, "a", INT),),
                (f(1, "b", INT), f(2, "a", INT)),
                (f(1, "b", INT), f(2, "c", INT)),
            ],
            [FormerName(None, "a", 1, frozenset({0})), FormerName(None, "a", 2, frozenset({1}), False)],
        ),
        (
            [(f(1, "a", INT), f(2, "b", INT)), (f(2, "a", INT), f(1, "b", INT))],
            [FormerName(None, "a", 1, frozenset({0})), FormerName(None, "b", 2, frozenset({0}))],
        ),
        ([(f(1, "a", INT),), (f(1, "a", LONG), f(2, "b", INT))], []),
        # In a struct, whatever that was called itself.
        (
            [
                (f(1, "t", struct(2, x=INT, y=INT)),),
                (f(1, "s", StructType(f(2, "y", INT), f(3, "X", INT))),),
            ],
            [
                FormerName(None, "t", 1, frozenset({0})),
                FormerName(1, "x", 2, frozenset({0})),
                FormerName(1, "y", 3, frozenset({0})),
            ],
        ),
        # Three have passed their names on in a ring, one by one.
        (
            [
                (f(1, "a", INT), f(2, "b", INT), f(3, "c", INT)),
                (f(1, "d", INT), f(2, "b", INT), f(3, "c", INT)),
                (f(1, "d", INT), f(2, "a", INT), f(3, "c", INT)),
                (f(1, "d", INT), f(2, "a", INT), f(3, "b", INT)),
                (f(1, "c", INT), f(2, "a", INT), f(3, "b", INT)),
            ],
            [
                FormerName(None, "a", 1, frozenset({0})),
                FormerName(None, "b", 2, frozenset({0, 1})),
                FormerName(None, "c", 3, frozenset({0, 1, 2})),
                FormerName(None, "d", 1, frozenset({1, 2, 3})),
            ],
        ),
    ],
)
def test_former_names_tell_a_column(schemas: list[tuple[NestedField, ...]], found: list[FormerName]) -> None:
    known = [Schema(*fields, schema_id=number) for number, fields in enumerate(schemas)]
    assert former_names(known, known[-1]) == found


def test_a_field_that_has_the_name_of_another_one_is_told() -> None:
    def ids(*schemas: tuple[NestedField, ...]) -> dict[int, tuple[str, ...]]:
        all_ = [Schema(*fields, schema_id=n) for n, fields in enumerate(schemas)]
        return names_of_others(all_, all_[-1])

    v, other = f(1, "v", STRING), f(2, "n", INT)
    assert ids((v, other)) == {}
    assert ids((v,), (f(1, "v_old", STRING), f(2, "V", INT))) == {2: ("v_old",)}
    # A field that was there by then has its values; one that is gone has left nothing to be read.
    assert ids((v, other), (f(1, "v_old", STRING), f(2, "v", INT))) == {}
    assert ids((v,), (other,), (f(3, "v", INT),)) == {}
    inner = StructType(f(2, "v", STRING))
    later = StructType(f(2, "v_old", STRING), f(3, "v", INT))
    assert ids((f(1, "s", inner),), (f(1, "r", later),)) == {3: ("r", "v_old")}
