"""The record of schema commits in a table's properties."""

import json

import pytest
from pyiceberg.types import IntegerType, LongType

from dbt.adapters.sparkevolve.evolution.changes import AddColumn, AddField, Change, RelaxNotNull, WidenType
from dbt.adapters.sparkevolve.evolution.record import (
    MOST_ENTRIES,
    Entry,
    fingerprint,
    new_properties,
    outdated_properties,
    read,
)
from tests.unit.helpers import array, columns, struct

INT, LONG = IntegerType(), LongType()
CHANGES: tuple[Change, ...] = (
    AddColumn(("a.b",), INT),
    AddField(("s", "element", "ß"), INT),
    WidenType(("w",), INT, LONG),
    RelaxNotNull(("w",)),
)


def test_a_commit_is_one_property_that_says_what_was_done() -> None:
    properties = new_properties(7, CHANGES, "run-1", "2024-02-29T12:00:00+00:00", "abc")
    assert properties == {
        "sparkevolve.schema.7": '{"added": ["`a.b`", "`s`.`element`.`ß`"], "at": "
        ""2024-02-29T12:00:00+00:00", '
        '"invocation_id": "run-1", "relaxed": ["`w`"], "source": "abc", "widened": ["`w`"]}'
    }


def test_a_commit_is_read_as_it_was_written() -> None:
    assert read(new_properties(7, CHANGES, "run-1", "2024", "abc")) == {
        7: Entry(
            7,
            {"added": ("`a.b`", "`s`.`element`.`ß`"), "widened": ("`w`",), "relaxed": ("`w`",)},
            "run-1",
            "2024",
            "abc",
        )
    }


def test_a_huge_commit_is_recorded_by_number() -> None:
    changes = [AddColumn((f"column {i:04}",), INT) for i in range(500)] + [RelaxNotNull(("w",))]
    (text,) = new_properties(1, changes, "run-1", "2024", "abc").values()
    assert json.loads(text) == {
        "added": ["500 fields"],
        "relaxed": ["1 fields"],
        "invocation_id": "run-1",
        "at": "2024",
        "source": "abc",
    }
    assert len(text) < 200


@pytest.mark.parametrize(
    ("present", "outdated"),
    [
        ([], []),
        (range(1, MOST_ENTRIES), []),
        (range(1, MOST_ENTRIES + 1), [1]),
        (range(1, MOST_ENTRIES + 4), [1, 2, 3, 4]),
        ([9, 100, *range(1000, 1000 + MOST_ENTRIES - 1)], [9, 100]),
    ],
)
def test_the_oldest_entries_make_room_for_one(present: list[int], outdated: list[int]) -> None:
    properties = {f"sparkevolve.schema.{i}": "{}" for i in reversed(list(present))}
    others = {
        "sparkevolve.staging-owner": "x",
        "sparkevolve.schema.": "y",
        "sparkevolve.schema.x": "z",
        "5": "5",
    }
    assert outdated_properties({**others, **properties}) == tuple(f"sparkevolve.schema.{i}" for i in outdated)


@pytest.mark.parametrize("text", ["", "{", "[]", "5", "null", '"x"'])
def test_an_entry_that_somebody_has_spoiled_is_left_out(text: str) -> None:
    assert read({"sparkevolve.schema.3": text, "sparkevolve.schema.4": "{}"}) == {4: Entry(4)}


def test_other_properties_are_no_entries() -> None:
    assert read({"comment": "{}", "sparkevolve.schema.x": "{}", "sparkevolve.schema.1.2": "{}"}) == {}


def test_equal_sources_have_one_fingerprint() -> None:
    source = columns("a int, b string, s", s=struct(10, x=array(11, INT)))
    same = columns("a int not null, b string, s", s=struct(70, x=array(80, INT)))
    assert fingerprint(source) == fingerprint(same)
    assert len(fingerprint(source)) == 16


@pytest.mark.parametrize(
    "other", ["b string, a int", "a bigint, b string", "A int, b string", "a int", "a int, b string, c int"]
)
def test_other_sources_have_other_fingerprints(other: str) -> None:
    assert fingerprint(columns("a int, b string")) != fingerprint(columns(other))
