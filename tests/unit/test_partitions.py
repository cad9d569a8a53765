"""What a table is partitioned by, written in all the ways that Spark takes."""

import pytest

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
