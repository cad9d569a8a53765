"""Dead letters as rows again: what is read as what, and which ids a table remembers."""

import re
import sqlite3
from collections import Counter
from dataclasses import asdict

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyiceberg.schema import Schema
from pyiceberg.types import (
    BinaryType,
    DecimalType,
    DoubleType,
    FixedType,
    FloatType,
    IcebergType,
    IntegerType,
    LongType,
    NestedField,
    StringType,
    TimestamptzType,
)

from dbt.adapters.sparkevolve.errors import RunCancelledError
from dbt.adapters.sparkevolve.evolution.names import fold, quote, string_literal
from dbt.adapters.sparkevolve.evolution.types import VariantType, spark_type
from dbt.adapters.sparkevolve.load.replay import Arguments, Replayed
from dbt.adapters.sparkevolve.operations import OPERATIONS, Operations
from dbt.adapters.sparkevolve.sql import dead_letters, payloads, replay
from dbt.adapters.sparkevolve.sql.compared_columns import compared
from dbt.adapters.sparkevolve.sql.payloads import Naming
from tests.unit.helpers import array, mapping, struct


@pytest.mark.parametrize(
    ("type_", "read"),
    [
        (IntegerType(), "string"),
        (DecimalType(38, 20), "string"),
        (TimestamptzType(), "string"),
        (BinaryType(), "binary"),
        (FixedType(3), "binary"),
        (array(1, struct(2, a=IntegerType(), b=TimestamptzType())), "array<struct<`a`:string,`b`:string>>"),
        (mapping(1, StringType(), IntegerType()), "map<string,string>"),
        (mapping(1, IntegerType(), IntegerType()), None),
        (struct(1, a=BinaryType()), None),
        (array(1, FixedType(3)), None),
        (VariantType(), None),
        (struct(1, a=VariantType()), None),
    ],
)
def test_a_value_is_read_as_its_text(type_: IcebergType, read: str | None) -> None:
    found = payloads.read_as(type_)
    assert (None if found is None else spark_type(found)) == read


def test_what_a_replay_has_published_is_read_back_and_a_spoiled_property_is_nothing() -> None:
    published = replay.Published("main", 12, ("a", "b"))
    assert published.text == '{"ref": "main", "snapshot": 12, "ids": ["a", "b"]}'
    assert replay.published_in(published.text) == published
    spoiled = ("", "{", "{}", "1", "null", '["a"]', '{"ref": "main", "snapshot": null, "ids": []}')
    for text in (None, *spoiled):
        assert replay.published_in(text) is None


def test_the_arguments_say_which_letters() -> None:
    given = Operations("lake", {}).arguments(
        "replay_dead_letters", {"model": "t", "message_ids": [{"id": 1}, "x'y"], "where": "loadedAt > now()"}
    )
    assert list(given) == [argument.name for argument in OPERATIONS["replay_dead_letters"]]
    arguments = Arguments(**{name: value for name, value in given.items() if name != "model"})
    assert arguments == Arguments("loadedAt > now()", "", ('{"id":1}', "x'y"), None, False, False)
    assert arguments.conditions[0] == "loadedAt > now()"
    assert arguments.conditions[1].startswith("`messageId` IN ('{\"id\":1}', ")


def test_what_is_said_of_a_replay() -> None:
    found = Replayed("`t`", "`t_dlt`", loaded=3, removed=2)
    found.staying["the table has rows of this key that were loaded after it"] = 1
    assert found.lines == [
        "`t`: 3 dead letters of `t_dlt` loaded, and removed from the dead letters",
        "  2 more were loaded by an earlier replay, and are removed now",
        "  1 stays: the table has rows of this key that were loaded after it",
        "  `overwrite: true` loads these too, and replaces the rows of their keys",
    ]
    assert found.data["loaded"] == 3
    assert Replayed("`t`", "`t_dlt`", True).lines == [
        "`t`: 0 dead letters of `t_dlt` would be loaded",
        "  none matches that was still there",
    ]
    ids = Arguments(message_ids=('{"ID":1}', '{"id":1,"no":2}', "5d41", "7", '{"of":{"id":1}}'))
    assert ids.beside_key(("id",)) == ("no", "of")
    keyed = Replayed("`t`", "`t_dlt`", key=("id",), beside_key=ids.beside_key(("id",)))
    assert keyed.lines[1:] == [
        "  none matches that was still there",
        "  a messageId has the key, `id`, and `message_ids` name `no`, `of`",
    ]
    one = Replayed("`t`", "`t_dlt`", True, loaded=1)
    assert one.lines == ["`t`: 1 dead letter of `t_dlt` would be loaded"]
    none = Replayed("`t`", "`t_dlt`")
    none.staying["audit: a > 0"] = 1
    assert none.lines == ["`t`: 0 dead letters of `t_dlt` loaded", "  1 stays: audit: a > 0"]


def test_letters_of_a_model_of_another_name_are_told_of() -> None:
    literal = string_literal("it's")
    found = Replayed("`t`", "`t_dlt`", True, model="new", of_other_models={"old": 3, "it's": 1})
    assert found.lines == [
        "`t`: 0 dead letters of `t_dlt` would be loaded",
        "  none matches that was still there",
        "  3 more are of the model `old`, and stay: if `new` was called so, `UPDATE `t_dlt` SET modelName = "
        "'new' WHERE modelName = 'old'` lets a replay load them",
        "  1 more is of the model `it's`, and stays: if `new` was called so, `UPDATE `t_dlt` SET modelName = "
        f"'new' WHERE modelName = {literal}` lets a replay load it",
    ]
    assert found.data["of_other_models"] == {"old": 3, "it's": 1}
    assert replay.count_of_others("`t_dlt`", "new") == (
        "SELECT `modelName`, count(*) FROM `t_dlt`\nWHERE NOT `modelName` <=> 'new'\n"
        "GROUP BY `modelName`\nORDER BY `modelName`"
    )


def test_what_goes_into_one_commit_has_a_bound() -> None:
    """The rows of a key go in together, and each commit notes the ids of its letters in a property."""
    numbers = [("many", 10_001), ("most", 10_000), *((f"k{n}", 400) for n in range(50)), ("one", 1)]
    database = sqlite3.connect(":memory:")
    database.execute(
        f"create table letters (`loadedAt` integer, `{replay.LETTER}` text, `key` text, "
        f"`{replay.ABSENT}` text default '')"
    )
    rows = [
        (at, f"{n * 7919 % 65_537:05} {at}{k}", k)
        for at in (1, 2)
        for k, size in numbers
        for n in range(size)
    ]
    database.executemany(f"insert into letters (`loadedAt`, `{replay.LETTER}`, `key`) values (?, ?, ?)", rows)
    names = ("loadedAt", "key", *(f"sparkevolve_letter_{end}" for end in ("rows", "before", "turn")))
    listed = ", ".join(f"`{name}`" for name in names)
    counted = f"({replay.counted_letters('select * from letters', '`key`')})"
    found = database.execute(f"select {listed}, {replay.chunk_number()} from {counted}").fetchall()
    assert len(found) == len(rows)
    of_group: dict[tuple[int, str], set[tuple[int, ...]]] = {}
    for at, key, *placed, _ in found:
        of_group.setdefault((at, key), set()).add(tuple(placed))
    # All letters of one key and time are counted, and have one place.
    assert {group: [(size, turn) for size, _, turn in places] for group, places in of_group.items()} == {
        (at, key): [(size, at)] for at in (1, 2) for key, size in numbers
    }
    chunks: dict[int, Counter[tuple[int, str]]] = {}
    for at, key, *_, chunk in found:
        chunks.setdefault(chunk, Counter())[at, key] += 1
    # Each key is in one chunk as a whole, and is alone there or shares it with a few.
    assert sum(map(len, chunks.values())) == len(of_group)
    assert all(len(keys) == 1 or keys.total() <= replay.CHUNK_SIZE for keys in chunks.values())
    # Of what was written later nothing goes in before.
    of_first = max(before for at, _, _, before, *_ in found if at == 1)
    assert all(before > of_first for at, _, _, before, *_ in found if at == 2)


@pytest.mark.parametrize(
    ("limit", "taken"),
    [
        (1, ["1a", "1a"]),
        (2, ["1a", "1a"]),
        (4, ["1a", "1a", "1b"]),
        (6, ["1a", "1a", "1b", "1c", "1c", "1c"]),
    ],
)
def test_a_limit_parts_no_key_and_holds_but_for_the_first(limit: int, taken: list[str]) -> None:
    database = sqlite3.connect(":memory:")
    database.execute(
        f"create table letters (`loadedAt` integer, `{replay.LETTER}` text, `key` text, "
        f"`{replay.ABSENT}` text default '')"
    )
    rows = [(2, "00", "d"), *((1, f"{n}{key}", key) for n, key in enumerate("abcacc"))]
    database.executemany(f"insert into letters (`loadedAt`, `{replay.LETTER}`, `key`) values (?, ?, ?)", rows)
    counted = f"({replay.counted_letters('select * from letters', '`key`')})"
    query = f"select `loadedAt` || `key` from {counted} where {replay.is_within(limit)}"
    assert sorted(row[0] for row in database.execute(query)) == taken


def test_letters_of_a_key_are_alike_if_they_lack_the_same_columns() -> None:
    """Those of one time, since those of another go in before or after them."""
    database = sqlite3.connect(":memory:")
    database.execute(
        f"create table letters (`loadedAt` integer, `{replay.LETTER}` text, `key` text, "
        f"`{replay.ABSENT}` text)"
    )
    rows = [
        (1, "a", "k", "2"),
        (1, "b", "k", "2"),
        (2, "c", "k", ""),
        (2, "d", "k", "1,2"),
        (2, "e", "l", "1"),
    ]
    database.executemany("insert into letters values (?, ?, ?, ?)", rows)
    counted = f"({replay.counted_letters('select * from letters', '`key`')})"
    query = f"select `{replay.LETTER}`, `sparkevolve_letter_alike` from {counted}"
    assert dict(database.execute(query)) == {"a": 1, "b": 1, "c": 0, "d": 0, "e": 1}


def test_more_letters_of_a_key_stay() -> None:
    column = replay.Column("id", IntegerType(), ("id",))

    def query(*key: replay.Column, limit: int | None = None) -> str:
        return replay.read_back(
            "`t_dlt`",
            [column],
            key=key,
            model="t",
            conditions=[],
            limit=limit,
            newest_only=False,
            known_only=False,
            own=replay.Own(),
            former={},
        )

    reason = (
        "more than 10,000 letters have this key and this time, and go in together only: let the model return "
        "these rows"
    )
    assert f"WHEN `sparkevolve_letter_rows` > 10000 THEN '{reason}'" in query(column)
    assert "WHEN NOT `sparkevolve_letter_alike` THEN 'letters of this key and this time do not all" in query(
        column
    )
    lacks = "`id` of the unique_key is not in it: put that into its payload, with null if the row has none"
    assert f"WHEN {column.is_absent} THEN '{lacks}'" in query(column)
    # Rows that are added have nothing to go in together with.
    assert not any(text in query() for text in ("10000", "alike` THEN", "unique_key"))
    for text in (query(column), query()):
        assert f"{replay.chunk_number()} AS bigint) AS `sparkevolve_letter_chunk`" in text
        assert text.endswith(") AS `counted`")
    # Spark's dense_rank() is an int, and a third turn of a thousand million would be none any more.
    assert "CAST(CAST(`sparkevolve_letter_turn` AS bigint) * 1000000000 + " in query(column)
    assert query(limit=7).endswith(f") AS `counted`\nWHERE {replay.is_within(7)}")


def test_a_column_is_found_by_the_name_that_it_had_at_the_time_of_a_letter() -> None:
    text = StringType()
    at = "coalesce(unix_micros(`loadedAt`), 9223372036854775807)"
    assert replay.Column("a", text, ("a", "b")).is_named("k") == "lower(k) IN (lower('a'), lower('b'))"
    assert (
        replay.Column("a", text, ("a",), naming=Naming(7)).is_named("k")
        == f"(lower(k) IN (lower('a')) AND {at} >= 7)"
    )
    old = replay.Column("c", text, ("c",), naming=Naming(None, (("a", 7), ("b", 9))))
    assert old.is_named("k") == (
        f"(lower(k) IN (lower('c')) OR lower(k) IN (lower('a')) AND {at} < 7 OR lower(k) IN (lower('b')) AND "
        f"{at} < 9)"
    )


def test_a_value_by_a_name_that_another_field_had_stays() -> None:
    query = replay.read_back(
        "`t_dlt`",
        [replay.Column("b", StringType(), ("b",))],
        key=[],
        model="t",
        conditions=[],
        limit=None,
        newest_only=False,
        known_only=False,
        own=replay.Own(),
        former={"`a`": "`b` or `c`"},
    )
    assert "path -> lower(path) IN (lower('`a`')))) > 0 THEN concat(array_join(" in query
    assert "CASE lower(path) WHEN lower('`a`') THEN ' was the name of `b` or `c`' END" in query
    what = "' for a time: give the value the name of today in the payload, or leave it out'"
    assert query.count(what) == 1


def test_values_by_names_that_have_expired_keep_a_letter() -> None:
    """Under ``on_schema_change: ignore``, too: whose they are is not known."""
    query = replay.read_back(
        "dlt",
        [replay.Column("b", StringType(), ("b",))],
        key=[],
        model="t",
        conditions=[],
        limit=None,
        newest_only=False,
        known_only=False,
        own=replay.Own(),
        former={},
        complete=7_000_000,
    )
    reason = (
        ": which column had this name when this was written is not known any more, as the table's older "
        "schemas have expired: give the value the name of today in the payload, or leave it out, and set "
        "`loadedAt` to a later time"
    )
    case = query.partition(" <> '' AND unix_micros(`loadedAt`) < 7000000 THEN concat(")[2]
    assert f", {string_literal(reason)})" in case.partition(" WHEN ")[0]


def test_a_letter_without_all_texts_of_its_row_stays() -> None:
    """Before anything is said of a value for which there is no column."""
    column = replay.Column("sparkevolve_NOT_utf8", IntegerType(), ("sparkevolve_NOT_utf8",))
    for columns, member in (([], "sparkevolve_not_utf8"), ([column], "sparkevolve_not_utf82")):
        query = replay.read_back(
            "d",
            [replay.Column("id", IntegerType(), ("id",)), *columns],
            key=[],
            model="t",
            conditions=[],
            limit=None,
            newest_only=False,
            known_only=True,
            own=replay.Own(),
            former={},
        )
        text = payloads.value_of(
            "map_entries(`sparkevolve_letter_values`)", lambda key, member=member: f"{key} = '{member}'"
        )
        reason, _, rest = query.partition(f" WHEN {text} IS NOT NULL THEN concat(")[2].partition(" WHEN ")
        assert f"take `{member}` out, which has the bytes in Base64')" in reason
        assert "': not in the table')" in rest


def test_rows_of_before_are_compared_as_what_is_read_of_them_now() -> None:
    """By field ids, and with what is read where they have no value; a NULL is like no field."""
    before = Schema(
        NestedField(1, "id", IntegerType(), required=False),
        NestedField(2, "n", StringType(), required=False),
        NestedField(3, "m", FloatType(), required=False),
        NestedField(4, "gone", StringType(), required=False),
    )
    text = StringType()
    now = Schema(
        NestedField(1, "id", LongType(), required=False),
        NestedField(2, "amount", text, required=False),
        NestedField(3, "m", DoubleType(), required=False),
        NestedField(5, "gone", text, required=False),
        NestedField(6, "y", text, required=False, initial_default="new", write_default="z"),
    )
    columns = {c.name: (c.value, str(c.type)) for c in compared(now, before)}
    assert columns == {
        "id": ("CAST(`id` AS bigint)", "long"),
        "amount": ("`n`", "string"),
        "m": ("CAST(`m` AS double)", "double"),
        "gone": ("CAST(NULL AS string)", "string"),
        "y": ("CAST('new' AS string)", "string"),
    }
    assert [(c.name, c.value) for c in compared(now)] == [(f.name, f"`{f.name}`") for f in now.fields]
    assert replay.rows_of("`t`", 7, "SELECT 1", compared(now, before)[:2], ["id"], replay.Own()) == (
        "SELECT `new`.`sparkevolve_letter` AS `letter`, to_json(named_struct('id', `old`.`id`, 'amount', "
        "translate(base64(CAST(`old`.`amount` AS binary)), CAST(X'0d0a' AS string), '')), "
        "map('ignoreNullFields', 'true')) AS `row`\nFROM (\nSELECT 1\n) AS `new`\nJOIN (\n"
        "SELECT CAST(`id` AS bigint) AS `id`, `n` AS `amount`\nFROM `t` VERSION AS OF 7\n) AS `old` "
        "ON `old`.`id` <=> `new`.`id`"
    )


def test_rows_of_a_key_that_a_load_does_not_look_at_are_found_as_it_looks() -> None:
    """The conditions of a MERGE may name both sides, and those of a DELETE the table's columns alone."""
    given = ("`t`", "SELECT 1", ["a > 1 -- or so", "b"], ["id"], replay.Own())
    letter = "SELECT DISTINCT DBT_INTERNAL_SOURCE.`sparkevolve_letter` AS `letter`\nFROM (\nSELECT 1\n)"
    same = "ON DBT_INTERNAL_DEST.`id` <=> DBT_INTERNAL_SOURCE.`id`"
    condition = "WHERE ((a > 1 -- or so\n) AND (b) AND true) IS NOT TRUE"
    assert replay.excluded(*given, is_merge=True) == (
        f"{letter} AS DBT_INTERNAL_SOURCE\nJOIN `t` AS DBT_INTERNAL_DEST {same}\n{condition}"
    )
    assert replay.excluded(*given, is_merge=False) == (
        f"{letter} AS DBT_INTERNAL_SOURCE\nJOIN (\nSELECT `id` FROM `t` AS DBT_INTERNAL_DEST\n{condition}\n) "
        f"AS DBT_INTERNAL_DEST {same}"
    )
    own = "`sparkevolve_letter`, `sparkevolve_letter_loaded`"
    newer = "DBT_INTERNAL_DEST.`sparkevolve_letter_loaded` < DBT_INTERNAL_SOURCE.`sparkevolve_letter_loaded`"
    older = letter.replace("SOURCE", "DEST")
    assert replay.excluded("(SELECT 2)", *given[1:], is_merge=True, are_letters=True) == (
        f"{older} AS DBT_INTERNAL_SOURCE\nJOIN (SELECT 2) AS DBT_INTERNAL_DEST {same} AND {newer}\n"
        f"{condition}"
    )
    assert replay.excluded("(SELECT 2)", *given[1:], is_merge=False, are_letters=True) == (
        f"{older} AS DBT_INTERNAL_SOURCE\nJOIN (\nSELECT `id`, {own} FROM (SELECT 2) AS DBT_INTERNAL_DEST\n"
        f"{condition}\n) AS DBT_INTERNAL_DEST {same} AND {newer}"
    )


NAMES = sorted(asdict(replay.Own()).values())


@given(st.sets(st.builds(str.__add__, st.sampled_from(NAMES), st.sampled_from(["", "2", "3", "_", "22"]))))
def test_columns_of_a_replay_s_own_are_called_like_none_of_the_table(columns: set[str]) -> None:
    given_names = {name.upper() if n % 2 else name for n, name in enumerate(sorted(columns))}
    own = asdict(replay.own_names(given_names))
    assert len({fold(name) for name in own.values()}) == len(own)
    assert not {fold(name) for name in own.values()} & {fold(name) for name in given_names}
    assert {
        name: value for name, value in own.items() if fold(value) == fold(getattr(replay.Own(), name))
    } == {
        name: value
        for name, value in asdict(replay.Own()).items()
        if fold(value) not in map(fold, given_names)
    }


@pytest.mark.parametrize("name", NAMES)
def test_a_column_may_be_called_as_one_of_a_replay_s_own(name: str) -> None:
    """In what is staged, judged and compared each column is there once."""
    column = replay.Column(name.upper(), StringType(), (name,))
    own = replay.own_names([column.name])
    query = replay.read_back(
        "`t_dlt`",
        [column],
        key=[column],
        model="t",
        conditions=[],
        limit=None,
        newest_only=False,
        known_only=False,
        own=own,
        former={},
    )
    outermost = query.partition("\nFROM (\n")[0]
    aliases = [fold(alias) for alias in re.findall(r" AS `([^`]+)`(?=,\n|$)", outermost)]
    assert sorted(aliases) == sorted({fold(column.name), *(set(asdict(own).values()) - {own.file})})
    compared_by = [replay.ComparedColumn(column.name, quote(column.name), StringType())]
    rows = replay.rows_of("`t`", None, "SELECT 1", compared_by, [column.name], own, [7])
    assert f"SELECT {quote(column.name)} AS {quote(column.name)}, `_file` AS {quote(own.file)}\nFROM" in rows
    judgement = dead_letters.Judgement("`s`", {n: StringType() for n in (column.name, own.letter)}, [], {})
    found = [fold(alias) for alias in re.findall(r" AS `([^`]+)`(?=,\n|\nFROM)", judgement.judged())]
    assert len(set(found)) == len(found)
    assert not {fold(column.name), fold(own.letter)} & set(found)


@pytest.mark.parametrize(
    ("loaded", "is_unknown", "done"),
    [
        (0, False, "No dead letter was loaded."),
        (0, True, "The same command finds out."),
        (
            1,
            False,
            "Before that, 1 dead letter was loaded: readers see its row, and the same command goes on with "
            "what is left.",
        ),
        (
            2,
            True,
            "The same command finds out. Before that, 2 dead letters were loaded: readers see their rows, "
            "and the same command goes on with what is left.",
        ),
    ],
)
def test_a_replay_that_was_cancelled_says_what_is_loaded(loaded: int, is_unknown: bool, done: str) -> None:
    # Its chunks before this one are in the table, whatever the error says of that.
    error = RunCancelledError("The batch was not published", "t", False, is_unknown=is_unknown)
    told = Replayed("t", "t_dlt", loaded=loaded).cancelled(error)
    assert told.msg == f"The run was cancelled. The batch was not published. {done}"
