"""Where a backfill is, what it fills and by what its rows are put into batches; and the text of its SQL."""

import json
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.transforms import BucketTransform, DayTransform, IdentityTransform, VoidTransform
from pyiceberg.types import (
    DateType,
    DoubleType,
    FloatType,
    IcebergType,
    IntegerType,
    ListType,
    LongType,
    NestedField,
    StringType,
    StructType,
    TimestamptzType,
    UUIDType,
)

from dbt.adapters.sparkevolve.errors import BackfillError, OperationError
from dbt.adapters.sparkevolve.evolution import backfills
from dbt.adapters.sparkevolve.evolution.backfills import (
    Request,
    SpoiledPosition,
    UnknownPosition,
    WasPublished,
)
from dbt.adapters.sparkevolve.load.backfill_plan import Batching, batching, column_to_fill
from dbt.adapters.sparkevolve.operations import Operations
from dbt.adapters.sparkevolve.relation import SparkEvolveRelation
from dbt.adapters.sparkevolve.settings import IncrementalSettings
from dbt.adapters.sparkevolve.sql import backfill as sql
from dbt.adapters.sparkevolve.sql.by_field_ids import by_field_ids
from dbt.adapters.sparkevolve.sql.splitting import expression_problem

REQUEST = Request("`status`", "'it''s ${x}'", "id > 1", ("id",), True)
TARGET = SparkEvolveRelation.create(database="lake", schema="sales", identifier="orders")
BOUNDS = st.lists(st.none() | st.text(), max_size=3).map(tuple)


def test_a_request_is_another_one_if_anything_of_it_differs() -> None:
    by_id = replace(REQUEST, key=("1",))
    others = [
        replace(by_id, value="1"),
        replace(by_id, where=""),
        # Another column has the name: by its values no batch begins or ends where it did.
        replace(by_id, key=("7",)),
        replace(by_id, key=()),
        replace(by_id, only_null=False),
    ]
    assert len({by_id.fingerprint, *(other.fingerprint for other in others)}) == 6
    # Columns that are called otherwise since are the same ones.
    renamed = replace(by_id, column="`state`", batch_by=("number",))
    assert renamed.fingerprint == by_id.fingerprint


NAMED = Schema(
    NestedField(1, "id", LongType()),
    NestedField(2, "Amount", LongType()),
    NestedField(3, "s", StructType(NestedField(4, "a", LongType()), NestedField(5, "amount", LongType()))),
    NestedField(6, "a`b", LongType()),
    *(NestedField(7 + n, name, LongType()) for n, name in enumerate(("date", "day", "end", "if", "month"))),
)


@pytest.mark.parametrize(
    ("text", "by_ids"),
    [
        ("amount * 2", "#2 * 2"),
        ("`AMOUNT`*2 + AmOuNt", "#2*2 + #2"),
        ("s.a + s . amount + s.x + t.amount", "#3.#4 + #3 . #5 + #3.x + t.amount"),
        (
            "DBT_INTERNAL_DEST.amount + `dbt_internal_dest`.s.a",
            "DBT_INTERNAL_DEST.#2 + `dbt_internal_dest`.#3.#4",
        ),
        ("`a``b` || 'amount' || \"amount\" || r'amount'", "#6 || 'amount' || \"amount\" || r'amount'"),
        (
            "cast(date as date) + date::date + date'2024-01-01'",
            "cast(#7 as date) + #7::date + date'2024-01-01'",
        ),
        ("date(day) + if(id > 1, `if`, month)", "date(#8) + if(#1 > 1, #10, #11)"),
        ("date + interval 1 day + interval '1' day", "#7 + interval 1 day + interval '1' day"),
        ("case when id = 1 then amount end", "case when #1 = 1 then #2 end"),
        ("timestampadd(month, id, date)", "timestampadd(month, #1, #7)"),
        ("list[id].amount", "list[#1].amount"),
        ("datediff(date, day) + date_diff(day, date, day)", "datediff(#7, #8) + date_diff(day, #7, #8)"),
        ("date_add(date, 1) + dateadd(month, 1, date)", "date_add(#7, 1) + dateadd(month, 1, #7)"),
        (
            "extract(month from date) + extract(day from date)",
            "extract(month from #7) + extract(day from #7)",
        ),
        ("substring(s.a from id) is distinct from day", "substring(#3.#4 from #1) is distinct from #8"),
        ("(from others |> aggregate max(amount))", "(from others |> aggregate max(amount))"),
        # Whose columns these are is not known.
        ("(select max(amount) from others) + amount", "(select max(amount) from others) + amount"),
        ("2", "2"),
        ("", ""),
    ],
)
def test_a_text_of_a_user_is_known_by_the_ids_of_the_columns_that_it_names(text: str, by_ids: str) -> None:
    assert re.sub("\0([0-9]+)\0", r"#\1", by_field_ids(text, NAMED)) == by_ids


def test_a_request_under_other_names_is_the_same_one_and_goes_on_where_an_older_version_has_stopped() -> None:
    there, later = ("\0" + "2\0 * 2", ""), replace(REQUEST, value="total * 2", where="")
    request = replace(REQUEST, value="amount * 2", where="", by_ids=there)
    renamed = replace(later, by_ids=there)
    noted = backfills.begun(request, (), None)
    assert request.is_of(noted)
    assert renamed.is_of(noted)
    assert not replace(renamed, by_ids=("\0" + "3\0 * 2", "")).is_of(noted)
    # One that was noted by texts alone.
    old = backfills.begun(replace(request, by_ids=None), (), None)
    assert request.is_of(old)
    assert not renamed.is_of(old)


@given(until=BOUNDS, after=BOUNDS, tried=st.lists(BOUNDS, max_size=3), rows=st.integers(0))
def test_a_position_is_read_as_it_was_written(until: Any, after: Any, tried: list[Any], rows: int) -> None:
    begun = backfills.begun(REQUEST, until, 7)
    there = begun.advanced(after, rows, finished=False, at="now", invocation_id="i")
    for number, bound in enumerate(tried):
        there = there.trying(number, there.advanced(bound, 1, finished=True, at="", invocation_id=""), 3)
        there = there.refreshing(None if number else 4, number)
    for position in (begun, there):
        # It stands in a Spark SQL literal, which may be verbatim, and in which variables are replaced.
        assert "'" not in position.text
        assert "${" not in position.text
        assert position.text.isascii()
        assert backfills.read({"sparkevolve.backfill.7": position.text, "other": "x"}, 7) == position
    assert backfills.read({"sparkevolve.backfill.7": begun.text}, 8) is None


@pytest.mark.parametrize("text", ["", "{}", "[]", "null", '{"tried": []}', '{"tried": [{}]}'])
def test_a_position_that_somebody_has_spoiled_is_no_beginning(text: str) -> None:
    with pytest.raises(SpoiledPosition):
        backfills.read({"sparkevolve.backfill.7": text}, 7)


def answers(published: Mapping[int, bool | None]) -> WasPublished:
    return lambda snapshot, base: published.get(snapshot, False)


def test_whichever_snapshot_was_published_tells_the_position() -> None:
    there = backfills.begun(REQUEST, ("9",), 10).advanced(("1",), 10, finished=False, at="", invocation_id="")
    for snapshot, last, rows in ((11, "3", 5), (12, "4", 6)):
        then = there.advanced((last,), rows, finished=last == "4", at="", invocation_id="")
        there = there.trying(snapshot, then, 10)
    assert there.settled(10, answers({})) == there
    first, second = (there.settled(at, answers({at: True})) for at in (11, 12))
    assert first is not None
    assert second is not None
    assert (first.after, first.rows, first.batches, first.finished, first.tried) == (("3",), 15, 2, False, ())
    assert (there.snapshot, first.snapshot, second.snapshot) == (10, 11, 12)
    assert (second.after, second.rows, second.batches, second.finished) == (("4",), 16, 2, True)
    # What may have expired is done once more only where that does no harm.
    assert there.settled(None, answers({11: None})) == there
    doubling = replace(there, only_null=False)
    assert doubling.settled(None, answers({})) == doubling
    with pytest.raises(UnknownPosition, match="its last batch"):
        doubling.settled(None, answers({11: None}))
    assert doubling.settled(None, answers({11: True, 12: None})) == replace(first, only_null=False)


@pytest.mark.parametrize(
    ("snapshot", "head", "answer", "is_forgotten"),
    [
        # What was published to a branch, and an INSERT OVERWRITE that went straight into the table.
        (11, 10, False, False),
        (11, 12, True, True),
        (11, 12, None, None),
        (None, 10, None, False),
        (None, 12, True, None),
    ],
)
def test_a_full_refresh_that_was_published_forgets_the_position(
    snapshot: int | None, head: int, answer: bool | None, is_forgotten: bool | None
) -> None:
    begun = backfills.begun(REQUEST, ("9",), 8).advanced(("1",), 1, finished=False, at="", invocation_id="")
    properties = {"sparkevolve.backfill.2": begun.text, "sparkevolve.backfill.3": "{}", "x": "y"}
    (name, text), *more = backfills.refreshed(properties, snapshot, 10).items()
    assert not more
    noted = backfills.read({name: str(text)}, 2)
    assert noted is not None
    published = answers({11: answer})
    # One that goes straight into the table, and has not happened, may be under way.
    there = begun if snapshot else replace(begun, refreshes=noted.refreshes)
    if is_forgotten is False:
        assert noted.settled(head, published) == there
    else:
        assert noted.settled(head, published) is None
    doubling = replace(noted, only_null=False)
    if is_forgotten is None:
        with pytest.raises(UnknownPosition, match="a full refresh"):
            doubling.settled(head, published)
    else:
        assert doubling.settled(head, published) == (
            None if is_forgotten else replace(there, only_null=False)
        )


def test_a_full_refresh_beside_a_backfill_stays_noted_until_it_has_happened() -> None:
    begun = backfills.begun(REQUEST, ("9",), 8)
    (name, text), *_ = backfills.refreshed({"sparkevolve.backfill.2": begun.text}, None, 8).items()
    properties = {name: str(text)}
    assert backfills.awaited(properties, 2, 8) == (backfills.Refresh(None, 8),)
    assert backfills.awaited(properties, 2, 9) == backfills.awaited({}, 2, 8) == ()
    assert backfills.awaited({name: "{}"}, 2, 8) == ()
    noted = backfills.read(properties, 2)
    assert noted is not None

    # Two batches are published after the note was made, the second one in two commits.
    def filled(before: backfills.Position, snapshot: int) -> backfills.Position:
        then = before.advanced(("1",), 1, finished=False, at="", invocation_id="")
        return then.published(snapshot, then.refreshes)

    before = filled(noted, 9)
    there, published = filled(before, 10), answers({10: True})
    for position, head in ((noted, 8), (before, 9), (there, 10)):
        assert position.refreshes == (backfills.Refresh(None, head),)
        assert position.settled(head, published) == position
    between = before.trying(10, there, 9)
    assert between.settled(9, answers({})) == between
    assert between.settled(10, published) == there

    # The full refresh, or anybody else.
    assert there.settled(11, published) is None
    with pytest.raises(UnknownPosition, match="a full refresh"):
        replace(there, only_null=False).settled(11, published)


def test_a_full_refresh_that_has_failed_takes_its_note_back() -> None:
    begun = backfills.begun(REQUEST, ("9",), 8)
    one, two = begun.refreshing(None, 8), begun.refreshing(None, 8).refreshing(None, 8)
    other = begun.refreshing(5, 8)
    texts = {2: one.text, 3: two.text, 4: begun.text, 5: other.text, 6: "{}"}
    properties = {backfills.property_of(field_id): text for field_id, text in texts.items()}
    assert backfills.withdrawn(properties, 8) == {
        "sparkevolve.backfill.2": begun.text,
        "sparkevolve.backfill.3": one.text,
    }
    assert backfills.withdrawn(properties, 9) == {}


def test_a_full_refresh_removes_all_positions_but_those_of_its_own_rows() -> None:
    texts = {
        2: backfills.begun(REQUEST, ("9",), 8).text,
        3: backfills.begun(REQUEST, ("9",), 11).text,
        4: backfills.begun(REQUEST, ("9",), None).text,
        5: "{}",
    }
    properties = {backfills.property_of(field_id): text for field_id, text in texts.items()}
    assert backfills.replaced(
        {**properties, f"{backfills.PREFIX}x": "", "y": ""}, lambda snapshot: snapshot > 10
    ) == (dict.fromkeys(f"sparkevolve.backfill.{n}" for n in (2, 4, 5, "x")))


def test_a_restore_forgets_a_position_whose_rows_may_be_null_again() -> None:
    begun = backfills.begun(REQUEST, ("9",), 8)
    texts = {2: begun.text, 3: replace(begun, only_null=False).text, 4: "{}", 5: begun.text}
    properties = {backfills.property_of(field_id): text for field_id, text in texts.items()}
    assert backfills.lost_by_restore(properties, [2, 3, 4, 6]) == ["sparkevolve.backfill.2"]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("1", ""),
        ("case when a = ';' then f(1, 2) else \"--\" end", ""),
        ("`a;b` || r'\\' || m['k']", ""),
        ("", "it is empty"),
        (" \n", "it is empty"),
        ("1;", "it has a semicolon"),
        ("1 -- x", "it has a comment"),
        ("1 /* x */", "it has a comment"),
        ("1 /* x", "it has a comment that is not closed"),
        ("'a", "a ' is not closed"),
        ('"a', 'a " is not closed'),
        ("`a", "a ` is not closed"),
        ("f(1", "a parenthesis or bracket is not closed"),
        ("1) or (1", "a ) closes nothing"),
        ("1, 2", "it has a comma outside of parentheses"),
    ],
)
def test_a_text_is_one_expression(text: str, problem: str) -> None:
    assert expression_problem(text) == problem


SCHEMA = Schema(
    NestedField(1, "id", LongType(), required=True),
    NestedField(2, "Day", DateType()),
    NestedField(3, "at", TimestamptzType()),
    NestedField(4, "u", UUIDType()),
    NestedField(
        5,
        "address",
        StructType(NestedField(6, "zip", StringType()), NestedField(7, "n", IntegerType(), required=True)),
    ),
    NestedField(8, "list", ListType(9, StructType(NestedField(10, "x", IntegerType())))),
    NestedField(11, "a.b", DoubleType()),
)


@pytest.mark.parametrize(
    ("text", "path", "field_id", "is_required"),
    [
        ("DAY", ("Day",), 2, False),
        ("`id`", ("id",), 1, True),
        ("a.b", ("a.b",), 11, False),
        ("`a.b`", ("a.b",), 11, False),
        ("Address.Zip", ("address", "zip"), 6, False),
        ("address.`n`", ("address", "n"), 7, True),
        ("list", ("list",), 8, False),
    ],
)
def test_a_column_is_found_by_its_name(
    text: str, path: tuple[str, ...], field_id: int, is_required: bool
) -> None:
    column, found = column_to_fill(TARGET, SCHEMA, text)
    assert (column.path, column.is_required, found) == (path, is_required, field_id)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("dya", "which `lake`.`sales`.`orders` does not have. It has: id, Day, at, u, address, list, a.b."),
        ("addresses", "which `lake`.`sales`.`orders` does not have. Did you mean `address`?"),
        ("address.zipp", "which `lake`.`sales`.`orders` does not have. Did you mean `address.zip`?"),
        (
            "list.element.x",
            "and `list` of `lake`.`sales`.`orders` is array<struct<`x`:int>>: only a column or a field of a "
            "struct can be named. Fill the whole column.",
        ),
    ],
)
def test_a_column_that_cannot_be_filled_is_named(text: str, message: str) -> None:
    with pytest.raises(OperationError) as error:
        column_to_fill(TARGET, SCHEMA, text)
    assert error.value.msg == f"`column` is {text!r}, {message}"


def batches(
    folder: Path,
    *parts: PartitionField,
    fill: str = "at",
    by: tuple[str, ...] = (),
    rows: int | None = None,
    unique_key: Any = None,
    relation: SparkEvolveRelation = TARGET,
) -> Batching:
    catalog = SqlCatalog("lake", uri="sqlite:///:memory:", warehouse=f"file://{folder}")
    catalog.create_namespace("sales")
    table = catalog.create_table(("sales", "orders"), SCHEMA, partition_spec=PartitionSpec(*parts))
    settings = IncrementalSettings.from_config({"unique_key": unique_key}, "model.shop.orders")
    column, _ = column_to_fill(TARGET, table.schema(), fill)
    return batching(relation, table, column, by, rows, settings)


def field(source: int, transform: Any, name: str) -> PartitionField:
    return PartitionField(source, 1000 + source, transform, name)


DAY = field(2, IdentityTransform(), "Day")


def test_batches_go_by_partitions_then_by_the_key_then_there_is_one(tmp_path: Path) -> None:
    def made(number: int, *args: Any, **named: Any) -> tuple[list[tuple[str, str, IcebergType]], int | None]:
        found = batches(tmp_path / str(number), *args, **named)
        return [(part.label, part.rendered, part.type) for part in found.key], found.rows

    day = ("Day", "DBT_INTERNAL_DEST.`Day`", DateType())
    of_id = ("id", "DBT_INTERNAL_DEST.`id`", LongType())
    bucket = ("bucket(4, id)", "`lake`.system.bucket(4, DBT_INTERNAL_DEST.`id`)", IntegerType())
    assert made(0, DAY) == ([day], None)
    assert made(1, DAY, rows=10) == ([day], 10)
    assert made(2, DAY, field(1, BucketTransform(4), "b")) == ([day, bucket], None)
    bare = TARGET.replace_path(database=None)
    assert made(8, field(1, BucketTransform(4), "b"), relation=bare) == ([bucket], None)
    # A partition that the new value changes does not tell where a row is.
    assert made(3, DAY, field(3, DayTransform(), "d"), fill="at") == ([day], None)
    assert made(4, DAY, fill="Day", unique_key="ID") == ([of_id], 1_000_000)
    assert made(5, field(4, BucketTransform(4), "b"), unique_key=["id", "day"]) == ([of_id, day], 1_000_000)
    assert made(6, field(2, VoidTransform(), "v"), unique_key="id", rows=5) == ([of_id], 5)
    assert made(7, unique_key="list") == ([], None)
    assert made(8, unique_key="id", fill="id") == ([], None)
    assert made(9) == ([], None)
    assert made(10, DAY, by=("id",)) == ([of_id], 1_000_000)
    assert made(11, DAY, by=("day",)) == ([day], None)
    nested = ("address.zip", "DBT_INTERNAL_DEST.`address`.`zip`", StringType())
    assert made(12, by=("address.zip", "id"), rows=3) == ([nested, of_id], 3)

    # The key by field ids: a partition by a value and the column itself are one.
    def of_ids(number: int, *args: Any, **named: Any) -> tuple[str, ...]:
        return batches(tmp_path / f"ids{number}", *args, **named).identities

    assert of_ids(0, DAY, field(1, BucketTransform(4), "b")) == ("2", "bucket(4, 1)")
    assert of_ids(1, by=("address.zip", "day")) == ("8", "2")
    assert of_ids(2, unique_key=["id"]) == ("1",)


def test_a_bound_of_single_precision_is_the_same_value_in_a_double() -> None:
    part = sql.KeyPart("x", FloatType(), "x")
    assert part.text("v") == "CAST(CAST(v AS DOUBLE) AS STRING)"
    text = sql.KeyPart("x", StringType(), "x").text("v")
    assert text.startswith("IF(v <=> decode(encode(v, 'UTF-16BE'), 'UTF-16BE'), v, raise_error(")
    # What Spark makes of the nearest float of 0.1.
    text = "0.10000000149011612"
    assert (part.literal(text), part.shown(text)) == (f"CAST('{text}' AS float)", "0.1")
    assert [part.shown(t) for t in ("NaN", "Infinity", "-2.0", "16777216.0", "1.0E38")] == [
        *("NaN", "Infinity", "-2.0", "16777216.0", "1.0E38")
    ]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            {"rows": 5},
            "`rows_per_batch` needs something to put the rows of `lake`.`sales`.`orders` in an order by: it "
            "is not partitioned, and the model has no `unique_key` that could serve. Name a column in "
            "`batch_by`.",
        ),
        (
            {"by": ("AT",)},
            "`batch_by` is `at`, which the backfill changes: rows would move from batch to batch, and some "
            "would be filled twice or never. Name another column.",
        ),
        (
            {"by": ("address.zip",), "fill": "address"},
            "`batch_by` is `address`.`zip`, which the backfill changes: rows would move from batch to batch, "
            "and some would be filled twice or never. Name another column.",
        ),
        (
            {"by": ("list",)},
            "`batch_by` is `list` of `lake`.`sales`.`orders`, which is array<struct<`x`:int>>: rows cannot "
            "be put in an order by it. Name a column of a plain type.",
        ),
    ],
)
def test_batches_by_what_cannot_tell_them_apart_are_refused(
    tmp_path: Path, given: dict[str, Any], message: str
) -> None:
    with pytest.raises(OperationError) as error:
        batches(tmp_path, **given)
    assert error.value.msg == message


def test_the_update_of_a_batch() -> None:
    column, _ = column_to_fill(TARGET, SCHEMA, "address.zip")
    key = (sql.KeyPart("DBT_INTERNAL_DEST.`id`", LongType(), "id"),)
    conditions = [
        *sql.row_conditions(column, "id > 0 -- x", only_null=True),
        *sql.between(key, (None,), ("7",)),
    ]
    assert sql.update_statement("t", column, "'x'", conditions) == (
        "UPDATE t AS DBT_INTERNAL_DEST\nSET DBT_INTERNAL_DEST.`address`.`zip` = 'x'\n"
        "WHERE DBT_INTERNAL_DEST.`address` IS NOT NULL\n  AND DBT_INTERNAL_DEST.`address`.`zip` IS NULL\n"
        "  AND (id > 0 -- x\n)\n  AND DBT_INTERNAL_DEST.`id` IS NOT NULL\n"
        "  AND (DBT_INTERNAL_DEST.`id` <= CAST('7' AS bigint) OR DBT_INTERNAL_DEST.`id` IS NULL)"
    )
    assert sql.row_conditions(column, "", only_null=False) == ["DBT_INTERNAL_DEST.`address` IS NOT NULL"]


def test_a_minus_zero_is_where_iceberg_looks_for_files_with_zeros() -> None:
    part = sql.KeyPart("d", DoubleType(), "d")
    for text in ("0.0", "-0.0"):
        assert part.is_up_to(text) == "(d <= CAST('0.0' AS double) OR d IS NULL)"
        assert part.is_before(text) == "(d < CAST('-0.0' AS double) OR d IS NULL)"
        assert part.is_same(text) == "(d >= CAST('-0.0' AS double) AND d <= CAST('0.0' AS double))"
        assert part.is_after(text) == "(d > CAST('0.0' AS double) OR isnan(d))"
    assert part.is_same("1.5") == "d = CAST('1.5' AS double)"


def test_a_nan_is_where_iceberg_looks_for_files_with_greater_numbers() -> None:
    part = sql.KeyPart("d", FloatType(), "d")
    assert part.is_after("Infinity") == "(d > CAST('Infinity' AS float) OR isnan(d))"
    assert part.is_after("NaN") == "false"
    assert part.is_same("NaN") == "isnan(d)"


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            {},
            "Name a model, snapshot or seed: --args '{model: orders, column: status, value: \"'unknown'\"}'.",
        ),
        (
            {"model": "orders", "column": "n"},
            "`backfill_column` needs the argument `value`: --args '{model: orders, column: status, value: "
            "\"'unknown'\"}'.",
        ),
        (
            {"model": "orders", "column": "n", "value": "1", "dry_run": True},
            "`backfill_column` has no argument `dry_run`. Its arguments are: model, column, value, where, "
            "batch_by, rows_per_batch, pause_seconds, max_batches, only_null, plan_only, restart.",
        ),
        (
            {"model": "orders", "column": "n", "value": "1", "pause_seconds": -1},
            "The argument `pause_seconds` of `backfill_column` is -1, and has to be a number of seconds from "
            "0 to a day.",
        ),
        (
            {"model": "orders", "column": "n", "value": ["1"]},
            "The argument `value` of `backfill_column` is ['1'], and has to be an SQL expression over the "
            "columns of a row, as text: what is no text in YAML goes in quotes, as in \"date '2024-01-15'\".",
        ),
        (
            {"model": "orders", "column": "n", "value": "1", "only_null": "never"},
            "The argument `only_null` of `backfill_column` is 'never', and has to be true or false.",
        ),
    ],
)
def test_arguments_that_cannot_be_meant_are_refused(given: dict[str, Any], message: str) -> None:
    with pytest.raises(OperationError) as error:
        Operations("lake", {}).arguments("backfill_column", given)
    assert error.value.msg == message


def test_arguments_have_defaults() -> None:
    args = Operations("lake", {}).arguments(
        "backfill_column", {"model": "orders", "column": "n", "value": False, "batch_by": "day"}
    )
    assert args == {
        "model": "orders",
        "column": "n",
        "value": "false",
        "where": "",
        "batch_by": ("day",),
        "rows_per_batch": None,
        "pause_seconds": 0.0,
        "max_batches": None,
        "only_null": True,
        "plan_only": False,
        "restart": False,
    }
    assert json.dumps(args)


def test_an_error_says_what_stays() -> None:
    none = BackfillError("t", "`n`", "no room.", 0, 0)
    assert none.msg == "The backfill of `n` in t has stopped: no room. No row was changed."
    forgotten = BackfillError("t", "`n`", "no room", 1, 7, is_forgotten=True)
    assert str(forgotten.msg).endswith("stays: the same command would begin at the first row.")
    some = BackfillError("t", "`n`", "no room", 1, 7)
    assert some.msg == (
        "The backfill of `n` in t has stopped: no room. What it has done before (1 batch, 7 rows) is "
        "visible, and stays: the same command goes on after it."
    )
