"""What a table is partitioned by, written in all the ways that Spark takes."""

import pytest

from dbt.adapters.sparkevolve.evolution.partition_sources import partition_refusals
from dbt.adapters.sparkevolve.evolution.partitions import Part, parse_call, parse_partitions, same_partitions


@pytest.mark.parametrize(
    ("written", "parts"),
    [
        (None, []),
        ([], []),
        ("d", [Part("identity", "d")]),
        (["D", "`My Part`"], [Part("identity", "d"), Part("identity", "my part")]),
        ("a, days( `Ts` )", [Part("identity", "a"), Part("days", "ts")]),
        (
            ["year(t)", "MONTHS(t)", "date(t)", "date_hour(t)"],
            [Part(n, "t") for n in ("years", "months", "days", "hours")],
        ),
        ("bucket(16, s.Id)", [Part("bucket", "s.id", "16")]),
        ("truncate(`a,b`, 4)", [Part("truncate", "a,b", "4")]),
        ("`f(x)`", [Part("identity", "f(x)")]),
        ("`s`.`x`", [Part("identity", "s.x")]),
    ],
)
def test_partitions_are_read_however_they_are_written(written: object, parts: list[Part]) -> None:
    assert list(parse_partitions(written)) == parts  # type: ignore[arg-type]


RETURNED = [("id", "int"), ("at", "timestamp"), ("s", "struct<`a`:date>"), ("l", "array<int>")]
TYPES = {**dict(RETURNED), "s.a": "date"}


@pytest.mark.parametrize(
    "term",
    [
        "id",
        "at",
        "s.a",
        "days(at)",
        "hours(at)",
        "months(s.a)",
        "bucket(4, id)",
        "truncate(2, id)",
        "void(nope)",
    ],
)
def test_what_a_new_table_can_be_partitioned_by(term: str) -> None:
    assert list(partition_refusals("partition_by", parse_partitions(term), TYPES, RETURNED)) == []


@pytest.mark.parametrize(
    ("term", "refused"),
    [
        (
            "days(`Day`)",
            "`partition_by` has days(day), and the model returns no `day`, but `id` int, `at` timestamp, `s` "
            "struct<`a`:date>, `l` array<int>. Change `partition_by`, or return the column from the model.",
        ),
        (
            "day(id)",
            "`partition_by` has days(id), and `id` is of type int: `days` takes a date or a timestamp. "
            "Change `partition_by`, or cast the column in the model.",
        ),
        (
            "hours(s.a)",
            "`partition_by` has hours(s.a), and `s.a` is of type date: `hours` takes a timestamp. Change "
            "`partition_by`, or cast the column in the model.",
        ),
        (
            "l",
            "`partition_by` has l, and `l` is of type array<int>: it takes anything but a struct, list, map "
            "or variant. Change `partition_by`, or cast the column in the model.",
        ),
        (
            "truncate(4, at)",
            "`partition_by` has truncate(4, at), and `at` is of type timestamp: `truncate` takes a whole "
            "number, a decimal, a string or a binary. Change "
            "`partition_by`, or cast the column in the model.",
        ),
    ],
)
def test_what_a_new_table_cannot_be_partitioned_by(term: str, refused: str) -> None:
    found = partition_refusals("partition_by", parse_partitions(term), TYPES, RETURNED)
    assert [str(refusal) for refusal in found] == [refused]


def test_a_part_is_written_as_in_spark() -> None:
    assert [str(p) for p in parse_partitions("a, day(b), bucket( 4 ,C)")] == ["a", "days(b)", "bucket(4, c)"]


@pytest.mark.parametrize(
    ("one", "other", "renames", "same"),
    [
        ("a, days(b)", ["day(`B`)", "A"], {}, True),
        ("days(b)", "months(b)", {}, False),
        ("a", "a, b", {}, False),
        ("bucket(4, a)", "bucket(8, a)", {}, False),
        ("new", "Old", {"old": "New"}, True),
        ("old", "old", {"old": "new"}, True),
        ("days(new)", "days(old)", {"`old`": "new"}, True),
        ("new", "old", {"other": "new"}, False),
        ("days(new.ts)", "days(Old.ts)", {"old": "New"}, True),
        ("days(old.ts)", "days(old.ts)", {"old": "New"}, True),
        ("new.at", "old.ts", {"old": "new", "`old`.`ts`": "at"}, True),
        ("new.ts", "older.ts", {"old": "new"}, False),
    ],
)
def test_partitions_are_compared_after_the_renames(
    one: object, other: object, renames: dict[str, str], same: bool
) -> None:
    parts = (parse_partitions(one), parse_partitions(other))  # type: ignore[arg-type]
    assert same_partitions(*parts, renames) is same


def test_a_call_is_taken_apart_at_the_commas_outside_of_names() -> None:
    assert parse_call(" bucket ( 4, `a,b` ) ") == ("bucket", [" 4", " `a,b` "])
    assert parse_call("days(ts)") == ("days", ["ts"])
    assert parse_call("ts") is None
    assert parse_call("`days(ts)`") is None
