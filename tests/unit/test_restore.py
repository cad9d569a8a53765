"""Dropped fields: which ones a table has had, and how one is put back under its old id."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyiceberg.schema import Schema
from pyiceberg.types import (
    DecimalType,
    FloatType,
    IntegerType,
    LongType,
    MapType,
    NestedField,
    StringType,
    StructType,
    TimeType,
)

from dbt.adapters.sparkevolve.evolution import restore_refusals
from dbt.adapters.sparkevolve.evolution.refusals import Refusal
from dbt.adapters.sparkevolve.evolution.restore import (
    RestoreField,
    dropped_fields,
    plan_restore,
    removed_schemas,
    restore_command,
)
from dbt.adapters.sparkevolve.evolution.types import fields_within
from tests.unit.helpers import array, mapping, struct

INT, LONG, STRING = IntegerType(), LongType(), StringType()


def f(field_id: int, name: str, type_: object = INT, **other: object) -> NestedField:
    return NestedField(field_id, name, type_, **other)  # type: ignore[arg-type]


def schemas(*fields: tuple[NestedField, ...], first: int = 0) -> list[Schema]:
    return [Schema(*group, schema_id=first + number) for number, group in enumerate(fields)]


def restored(history: list[Schema], column: str, field_id: int | None = None) -> RestoreField:
    found = plan_restore(history, history[-1], column, field_id, last_column_id=99)
    assert isinstance(found, RestoreField), found
    return found


def refused(history: list[Schema], column: str, field_id: int | None = None) -> str:
    found = plan_restore(history, history[-1], column, field_id, last_column_id=99)
    assert isinstance(found, Refusal), found
    return str(found)


DROPPED = schemas((f(1, "id"), f(2, "Note", STRING, required=True, doc="said")), (f(1, "id"), f(3, "n")))


def test_a_column_comes_back_at_the_end_optional_and_described() -> None:
    found = restored(DROPPED, "note")
    assert found.schema == Schema(f(1, "id"), f(3, "n"), f(2, "Note", STRING, doc="said"))
    assert str(found) == "restore column `Note` string as field 2"
    assert restored(DROPPED, "`NOTE`", 2) == found
    assert str(found.dropped) == "`Note`, field 2 of type string (in schema 0, dropped by schema 1)"


def test_a_table_that_went_back_to_an_older_schema() -> None:
    history = schemas((f(1, "id"),), (f(1, "id"), f(2, "note", STRING)))
    found = plan_restore(history, history[0], "note")
    assert isinstance(found, RestoreField)
    assert found.schema == history[1]
    assert (found.dropped.last_schema_id, found.dropped.dropped_by_schema_id) == (1, 0)


def test_the_widest_type_and_each_name_that_a_field_has_had() -> None:
    history = schemas((f(1, "id"), f(2, "a", LONG)), (f(1, "id"), f(2, "b", INT)), (f(1, "id"),))
    assert restored(history, "b").field == f(2, "b", LONG)
    assert restored(history, "A", 2).field == f(2, "a", LONG)
    assert refused(history, "c", 2) == (
        "Field 2 was dropped, and has never been called `c`: it was `b`. Call it that: `column: b, field_id: "
        "2`."
    )


@pytest.mark.parametrize(
    ("old", "new"), [(FloatType(), "double"), (DecimalType(9, 2), "decimal(12, 2)"), (INT, "long")]
)
def test_a_type_that_was_widened_before_it_was_dropped(old: object, new: str) -> None:
    history = schemas((f(1, "id"), f(2, "a", old)), (f(1, "id"), f(2, "a", new)), (f(1, "id"),))
    assert str(restored(history, "a").field.field_type).replace(" ", "") == new.replace(" ", "")


NESTED = schemas(
    (
        f(1, "s", struct(10, x=INT, y=INT)),
        f(2, "l", array(20, struct(21, p=INT, q=STRING))),
        f(3, "m", mapping(30, STRING, struct(32, u=INT, v=INT))),
        f(4, "gone", StructType(f(40, "k", INT, required=True))),
        f(5, "a.b", struct(50, c=INT, d=INT)),
    ),
    (
        f(1, "t", struct(10, x=INT)),
        f(2, "l", array(20, StructType(f(22, "q", STRING)))),
        f(3, "m", mapping(30, STRING, struct(32, u=INT))),
        f(5, "a.b", struct(50, c=INT)),
    ),
)


@pytest.mark.parametrize(
    ("column", "path", "field_id", "parent"),
    [
        ("t.y", ("t", "y"), 11, struct(10, x=INT, y=INT)),
        # The name that the struct had then.
        ("S.Y", ("t", "y"), 11, struct(10, x=INT, y=INT)),
        ("l.p", ("l", "element", "p"), 21, array(20, StructType(f(22, "q", STRING), f(21, "p")))),
        ("L.element.`P`", ("l", "element", "p"), 21, array(20, StructType(f(22, "q", STRING), f(21, "p")))),
        ("m.value.v", ("m", "value", "v"), 33, mapping(30, STRING, struct(32, u=INT, v=INT))),
        ("`a.b`.d", ("a.b", "d"), 51, struct(50, c=INT, d=INT)),
        ("a.b.d", ("a.b", "d"), 51, struct(50, c=INT, d=INT)),
    ],
)
def test_a_nested_field(column: str, path: tuple[str, ...], field_id: int, parent: object) -> None:
    found = restored(NESTED, column)
    assert restored(NESTED, column, field_id) == found
    assert (found.path, found.field.field_id) == (path, field_id)
    assert found.schema.find_field(path[0] if path[0] != "a.b" else 5).field_type == parent
    assert str(found).startswith("restore field ")


def test_a_path_whose_first_name_another_column_has_by_now() -> None:
    new = Schema(*NESTED[-1].fields, f(60, "s", struct(61, y=STRING)), schema_id=2)
    assert refused([*NESTED, new], "s.y") == (
        "The table has the column `s`.`y`, as field 61, and no other field of that name was dropped. There "
        "is nothing to restore."
    )
    found = restored([*NESTED, new], "s.y", 11)
    assert (found.path, found.field) == (("t", "y"), f(11, "y"))
    # As lists and maps have no name of their own in a short path.
    was, now = (
        mapping(30, STRING, struct(32, u=INT, v=array(40, INT))),
        mapping(30, STRING, struct(32, u=INT)),
    )
    moved = schemas((f(3, "m", was),), (f(3, "m", now),), (f(3, "mm", now),))
    assert restored(moved, "m.v").path == ("mm", "value", "v")


def test_a_struct_comes_back_with_what_was_in_it() -> None:
    found = restored(NESTED, "gone")
    assert found.field == f(4, "gone", struct(40, k=INT))
    went = "`gone`.`k` is gone since `gone`, field 4, was dropped. Restore that: `column: gone, field_id: 4`."
    assert refused(NESTED, "gone.k").startswith(went)
    assert refused(NESTED, "gone.k", 40).startswith(went)


def test_the_keys_of_a_map_stay_required() -> None:
    type_ = MapType(10, StructType(f(12, "k", INT, required=True)), 11, INT, value_required=True)
    history = schemas((f(1, "id"), f(2, "m", type_)), (f(1, "id"),))
    restored_type = restored(history, "m").field.field_type
    assert restored_type == MapType(10, type_.key_type, 11, INT, value_required=False)


def test_identifier_fields_stay_what_they_are() -> None:
    current = Schema(f(1, "id", required=True), schema_id=1, identifier_field_ids=[1])
    history = [*schemas((f(1, "id", required=True), f(2, "n"))), current]
    assert restored(history, "n").schema.identifier_field_ids == [1]


TWICE = schemas(
    (f(1, "id"), f(2, "note", STRING)),
    (f(1, "id"),),
    (f(1, "id"), f(3, "note", INT)),
    (f(1, "id"),),
)


def test_of_several_the_id_says_which() -> None:
    assert refused(TWICE, "note") == (
        "2 fields that were dropped have been called `note`: `note`, field 2 of type string (in schema 0, "
        "dropped by schema 1); `note`, field 3 of type int (in schema 2, dropped by schema 3). Say "
        "which one with `field_id`."
    )
    assert restored(TWICE, "note", 2).field == f(2, "note", STRING)
    assert restored(TWICE, "note", 3).field == f(3, "note", INT)


def test_what_cannot_be_put_back_is_refused_with_what_to_do() -> None:
    again = [*TWICE, *schemas((f(1, "id"), f(4, "NOTE")), first=4)]
    assert refused(again, "note", 2) == (
        "The table has `NOTE`, as field 4, so field 2 cannot come back under that name. Rename that one "
        "first: `column_renames: {NOTE: NOTE_new}` in the model, which then returns it as `NOTE_new` and no "
        "longer as `NOTE`, and a run of the model. Then call this again."
    )
    assert refused(again, "id") == (
        "The table has the column `id`, as field 1, and no other field of that name was dropped. There is "
        "nothing to restore."
    )
    assert refused(again, "x", 1) == "Field 1 is in use: it is `id`. There is nothing to restore."
    renamed = schemas((f(1, "id"), f(2, "a b")), (f(1, "id"), f(2, "b")))
    text = (
        "Field 2 is in use: it was renamed from `a b` to `b`, where its values are. To have it as `a b` "
        "again: "
        '`column_renames: {b: "a b"}` in the model.'
    )
    assert refused(renamed, "a b") == refused(renamed, "a b", 2) == text
    # As after `column_renames` that retire a column and give its name to another type.
    replaced = schemas((f(1, "id"), f(2, "b")), (f(1, "id"), f(2, "b_old"), f(3, "B", STRING)))
    assert refused(replaced, "b", 2) == (
        "Field 2 is in use: it was renamed from `b` to `b_old`, where its values are. There is nothing to "
        "restore: read it as `b_old`. `b` is field 3 by now."
    )
    gone = [*replaced, *schemas((f(1, "id"), f(3, "B", STRING)), first=2)]
    assert refused(gone, "b", 2) == (
        "The table has `B`, as field 3, so field 2 cannot come back under that name. Restore it under "
        "another of its names: `column: b_old, field_id: 2`. Or rename that one first: `column_renames: {B: "
        "B_new}` in the model, which then returns it as `B_new` and no longer as `B`, and a run of the "
        "model. Then call this again."
    )
    assert restored(gone, "b_old", 2).field == f(2, "b_old")
    time = schemas((f(1, "id"), f(2, "t", struct(5, x=TimeType()))), (f(1, "id"),))
    assert refused(time, "t").startswith(
        "`t` had the Iceberg type struct<5: x: optional time>, for which Spark"
    )
    reserved = schemas((f(1, "id"), f(2, "_POS")), (f(1, "id"),))
    assert refused(reserved, "_pos").startswith(
        "`_POS` is a name that Iceberg keeps for its metadata columns"
    )
    micro = schemas((f(1, "id"), f(2, "\u00b5")), (f(1, "id"), f(3, "\u03bc")))
    assert refused(micro, "\u00b5").startswith(
        "The table has `\u03bc`, which Spark cannot tell from `\u00b5`."
    )
    path = schemas((f(1, "s", struct(10, x=INT, y=INT)),), (f(1, "s", struct(10, x=INT)), f(2, "s.y")))
    assert refused(path, "`s`.`y`").startswith(
        "`s`.`y` was dropped, but the table has the field `s.y`, and Iceberg cannot hold both."
    )


def test_a_partition_field_of_its_own_does_not_stand_in_the_way() -> None:
    history = schemas((f(1, "id"), f(2, "p")), (f(1, "id"),))
    names: dict[str, int | None] = {"p": 2}
    assert isinstance(plan_restore(history, history[1], "p", partition_names=names), RestoreField)
    found = plan_restore(history, history[1], "p", partition_names={"p": None})
    assert isinstance(found, Refusal)
    assert found.reason == (
        "`p` was dropped, but a partition spec of the table has, or once had, the field `p`, and Iceberg "
        "cannot hold both."
    )


def test_what_nobody_knows_any_more() -> None:
    assert refused(DROPPED, "gone") == (
        "No schema that the table's metadata still have has had a column `gone`. Dropped were: `Note`, field "
        "2 of type string (in schema 0, dropped by schema 1)."
    )
    assert refused(DROPPED, "note", 100).startswith("The table has never had a field 100. Dropped were: ")
    pruned = schemas((f(1, "id"),), first=3)
    assert removed_schemas(pruned) == 3
    forgotten = (
        " 3 older ones were removed by maintenance (`expire_snapshots` with `clean_expired_metadata`), and a "
        "field that only these had cannot be restored. No field of the table was dropped."
    )
    assert refused(pruned, "note") == (
        f"No schema that the table's metadata still have has had a column `note`.{forgotten}"
    )
    assert (
        refused(pruned, "note", 2)
        == f"No schema that the table's metadata still have has a field 2.{forgotten}"
    )
    assert dropped_fields(pruned, pruned[0]) == ()


def test_a_replaced_table_whose_column_became_another_kind() -> None:
    """CREATE OR REPLACE TABLE keeps the id of a column by its name, whatever its type is then."""
    history = schemas((f(1, "a", struct(10, x=INT)),), (f(1, "a", INT),))
    assert dropped_fields(history, history[1]) == ()
    assert refused(history, "a.x", 10).startswith(
        "No schema that the table's metadata still have has a field 10."
    )


@pytest.mark.parametrize(
    ("path", "text"),
    [
        (("note",), "{model: orders, column: note, field_id: 2}"),
        (("l", "element", "x y"), '{model: orders, column: "l.element.`x y`", field_id: 2}'),
        (("a.b",), '{model: orders, column: "`a.b`", field_id: 2}'),
        (("it's",), "{model: orders, column: \"`it'\\''s`\", field_id: 2}"),
    ],
)
def test_the_command_is_what_a_user_would_type(path: tuple[str, ...], text: str) -> None:
    assert restore_command("orders", path, 2) == f"dbt run-operation restore_column --args '{text}'"


@given(
    st.lists(st.tuples(st.sampled_from(["add", "drop", "rename", "nest"]), st.integers(0, 9)), max_size=12)
)
def test_whatever_was_dropped_comes_back_or_is_refused(steps: list[tuple[str, int]]) -> None:
    """Nothing that the table has moves or changes, and what comes back is what was dropped."""
    current = Schema(f(1, "id"), f(2, "s", struct(3, x=INT)), schema_id=0)
    history, last = [current], 3
    for step, number in steps:
        fields = list(current.fields)
        place = number % len(fields)
        if step == "add":
            last += 1
            fields.append(f(last, f"c{number}" if number < 5 else f"n{last}"))
        elif step == "drop" and len(fields) > 1:
            del fields[place]
        elif step == "rename":
            fields[place] = fields[place].model_copy(update={"name": f"r{number}"})
        elif step == "nest" and isinstance(fields[place].field_type, StructType):
            inner = list(fields[place].field_type.fields)
            last += 1
            inner = [f(last, "x")] if number % 2 and inner else [*inner, f(last, f"y{last}")]
            fields[place] = fields[place].model_copy(update={"field_type": StructType(*inner)})
        if len({field.name for field in fields}) < len(fields):
            continue
        current = Schema(*fields, schema_id=len(history))
        history.append(current)
    for dropped in dropped_fields(history, current):
        field_id = dropped.field.field_id
        column = ".".join(dropped.path)
        found = plan_restore(history, current, column, field_id, last_column_id=last)
        taken = [f"{'.'.join(dropped.parent)}.{name}".strip(".") for name in dropped.names]
        if isinstance(found, Refusal):
            assert any(name in current.column_names for name in taken), found
            continue
        before, after = (dict(fields_within(s.as_struct())) for s in (current, found.schema))
        ids = [field.field_id for field in after.values()]
        assert len(set(ids)) == len(ids)
        assert {p: after[p] for p in before if p != dropped.parent} == {
            p: before[p] for p in before if p != dropped.parent
        }
        assert after[found.path].field_id == field_id
        assert str(after[found.path].field_type) == str(dropped.field.field_type)
        assert dropped_fields(history, found.schema) == tuple(
            d for d in dropped_fields(history, found.schema) if d.field.field_id != field_id
        )


@pytest.mark.parametrize(
    ("number", "more"), [(3, ""), (5, " 2 more without it: this names the next ones when")]
)
def test_of_many_orc_files_some_are_named_and_the_others_counted(number: int, more: str) -> None:
    paths = [f"/t/{n}.orc" for n in range(number)]
    refusal = restore_refusals.orc_files(("x",), "`t`", ["`t`"], "9 rows in 5 ORC files", "id", only=paths)
    assert (
        "UPDATE `t` SET `id` = `id` WHERE _file IN ('/t/0.orc', '/t/1.orc', '/t/2.orc'). Other ORC files "
        f"have values of it, which a rewrite would lose: name none of these.{more}"
    ) in str(refusal)
    assert str(refusal).count("more without it") == bool(more)
