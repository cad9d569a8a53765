"""The record of schema commits in a table's properties."""

import json

import pytest
from pyiceberg.schema import Schema
from pyiceberg.types import IntegerType, LongType, NestedField

from dbt.adapters.sparkevolve.evolution import record
from dbt.adapters.sparkevolve.evolution.changes import (
    AddColumn,
    AddField,
    RelaxNotNull,
    RenameField,
    WidenType,
)
from tests.unit.helpers import columns, struct

INT, LONG = IntegerType(), LongType()


def made(schema_id: int = 3, *changes: object) -> dict[str, str]:
    return record.new_properties(schema_id, changes, "run-1", "2024-01-01T00:00:00+00:00", "abc")  # type: ignore[arg-type]


def test_an_entry_is_read_back_as_it_was_written() -> None:
    properties = made(
        3,
        AddColumn(("a b",), INT),
        AddField(("s", "ünï"), INT),
        WidenType(("n",), INT, LONG),
        RelaxNotNull(("l", "element")),
        RenameField(("x",), "y"),
    )
    assert list(properties) == ["sparkevolve.schema.3"]
    assert record.read(properties) == {
        3: record.Entry(
            schema_id=3,
            changes={
                "added": ("`a b`", "`s`.`ünï`"),
                "widened": ("`n`",),
                "relaxed": ("`l`.`element`",),
                "renamed": ("`x`",),
            },
            invocation_id="run-1",
            at="2024-01-01T00:00:00+00:00",
            source="abc",
        )
    }


@pytest.mark.parametrize("many", [400, 10_000])
def test_a_huge_entry_is_cut_to_numbers(many: int) -> None:
    properties = made(3, *(AddColumn((f"column {i}",), INT) for i in range(many)), RelaxNotNull(("x",)))
    (text,) = properties.values()
    assert len(text) < 4000
    entry = record.read(properties)[3]
    assert entry.changes == {"added": (f"{many} fields",), "relaxed": ("1 fields",)}
    assert entry.invocation_id == "run-1"


def test_an_entry_below_the_limit_is_whole() -> None:
    entry = record.read(made(3, *(AddColumn((f"c{i}",), INT) for i in range(300))))[3]
    assert len(entry.changes["added"]) == 300


def test_one_very_long_name_is_cut_too() -> None:
    (text,) = made(3, AddColumn(("x" * 100_000,), INT)).values()
    assert len(text) < 4000


@pytest.mark.parametrize("text", ["", "{", "[]", "null", "1", '"x"', "\x00", "[" * 100])
def test_a_spoiled_entry_is_left_out(text: str) -> None:
    assert record.read({**made(1), "sparkevolve.schema.2": text}) == record.read(made(1))


@pytest.mark.parametrize(
    "name",
    [
        "sparkevolve.schema.",
        "sparkevolve.schema.x",
        "sparkevolve.schema.-1",
        "sparkevolve.schema.1.2",
        "1",
        "",
    ],
)
def test_other_properties_are_no_entries(name: str) -> None:
    assert record.read({name: "{}"}) == {}
    assert record.outdated_properties(dict.fromkeys([name] * 100, "{}")) == ()


@pytest.mark.parametrize("digit", ["²", "٣"])
def test_digits_that_are_no_ascii_spoil_nothing(digit: str) -> None:
    """``"²".isdigit()`` is true, and ``int("²")`` raises."""
    name = f"sparkevolve.schema.{digit}"
    record.read({name: "{}"})
    record.outdated_properties({name: "{}"})


def test_an_entry_of_odd_values_is_read_as_far_as_it_can_be() -> None:
    text = json.dumps({"added": [1, None], "widened": "x", "invocation_id": 7, "more": {"x": 1}})
    assert record.read({"sparkevolve.schema.5": text}) == {
        5: record.Entry(5, {"added": ("1", "None")}, "7", "", "")
    }


def test_the_oldest_entries_make_room_for_one_more() -> None:
    names = [f"{record.PREFIX}{i}" for i in range(1, 200)]
    for count in range(200):
        kept = [
            n for n in names[:count] if n not in record.outdated_properties(dict.fromkeys(names[:count], ""))
        ]
        assert len(kept) == min(count, record.MOST_ENTRIES - 1)
        assert kept == names[count - len(kept) : count]


def test_the_oldest_are_told_by_number_not_by_text() -> None:
    properties = {f"{record.PREFIX}{i}": "" for i in range(2, record.MOST_ENTRIES + 2)}
    assert record.outdated_properties(properties) == (f"{record.PREFIX}2",)


def test_the_fingerprint_is_of_names_types_and_their_order() -> None:
    base = columns("a int, b string")
    assert record.fingerprint(base) == record.fingerprint(
        Schema(
            *(NestedField(f.field_id + 70, f.name, f.field_type, required=True, doc="x") for f in base.fields)
        )
    )
    others = [
        *("b string, a int", "a bigint, b string", "A int, b string", "a int", "a int, b string, c int"),
    ]
    assert len({record.fingerprint(s) for s in [base, *map(columns, others)]}) == 6
    assert len(record.fingerprint(base)) == 16


def test_the_fingerprint_is_of_nested_fields_too() -> None:
    one, two = (columns("s", s=struct(10, **{name: INT})) for name in "xy")
    assert record.fingerprint(one) != record.fingerprint(two)


def test_names_with_separators_do_not_bring_two_sources_together() -> None:
    one = Schema(NestedField(1, "a", INT), NestedField(2, "b", INT))
    two = Schema(NestedField(1, "a:int;b", INT))
    assert record.fingerprint(one) != record.fingerprint(two)


def test_a_restore_is_recorded_beside_who_made_the_schema() -> None:
    first = record.restored({}, 7, "`note`", "run 1", "2026-01-01")
    assert json.loads(first["sparkevolve.schema.7"]) == {
        "invocation_id": "run 1",
        "at": "2026-01-01",
        "source": "",
        "restored": ["`note`"],
        "restored_by": "run 1",
        "restored_at": "2026-01-01",
    }
    recorded = record.new_properties(7, [AddColumn(("note",), INT)], "run 0", "2025-01-01", "abc")
    entry = record.read(record.restored(recorded, 7, "`note`", "run 1", "2026-01-01"))[7]
    assert (entry.changes["added"], entry.changes["restored"]) == (("`note`",), ("`note`",))
    assert (entry.invocation_id, entry.at, entry.source) == ("run 0", "2025-01-01", "abc")
    assert (entry.restored_by, entry.restored_at) == ("run 1", "2026-01-01")
    for spoiled in ("[]", "{", "1"):
        assert (
            record.read(record.restored({"sparkevolve.schema.7": spoiled}, 7, "`n`", "run 1", ""))[
                7
            ].restored_by
            == "run 1"
        )


def test_what_was_looked_at_counts_until_a_schema_is_recorded_after_it() -> None:
    assert record.known_schema_id({}) is None
    recorded = {"sparkevolve.schema.3": "{}", "sparkevolve.schema.12": "{}"}
    assert record.known_schema_id(recorded) == 12
    looked = recorded | dict([record.looked_at(recorded, 5)])
    assert record.known_schema_id(looked) == 5
    assert record.known_schema_id(looked | {"sparkevolve.schema.13": "{}"}) == 13
    assert record.known_schema_id(dict([record.looked_at({}, 2)])) == 2
    for spoiled in ("[]", "{", "1", '{"schema": "x", "after": 12}', '{"schema": 1}'):
        assert record.known_schema_id(recorded | {"sparkevolve.looked-at": spoiled}) == 12


def test_a_schema_that_got_another_number_is_the_one_after_which_was_looked() -> None:
    """Spark makes some commits, and numbers their schemas."""
    entry = record.restored({}, 7, "`n`", "run 1", "")
    values = {"other": "x", **entry, **dict([record.looked_at(entry, 3)])}
    assert record.known_schema_id(values) == 3
    renumbered = record.renumbered(values, 7, 9)
    assert renumbered.keys() == {"other", "sparkevolve.schema.9", "sparkevolve.looked-at"}
    assert record.known_schema_id(renumbered) == 3


def test_what_others_have_changed_since_is_told_after_a_commit_on_top_of_it() -> None:
    schemas = [Schema(schema_id=number) for number in range(4)]
    recorded = {"sparkevolve.schema.1": "{}", "sparkevolve.schema.3": "{}"}
    assert record.untold({}, schemas, 0) is None
    assert record.untold(recorded, schemas, 3) is None
    assert record.untold(recorded, schemas, 2) is None, "it is not recorded either"
    # Others have gone back, or a restore was recorded before all was told.
    assert record.untold(recorded, schemas, 1) == 3
    looked = recorded | dict([record.looked_at(recorded, 0)])
    assert record.untold(looked, schemas, 3) == 0
    assert record.untold(looked, schemas[1:], 3) is None
