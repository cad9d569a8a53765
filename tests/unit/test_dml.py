"""The text of the statements that load a staged batch, whole."""

from datetime import date, datetime, timezone
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dbt.adapters.sparkevolve.evolution.names import quote
from dbt.adapters.sparkevolve.evolution.projection import (
    Cast,
    Keep,
    Pad,
    ProjectedColumn,
    RebuildList,
    RebuildStruct,
    StructMember,
)
from dbt.adapters.sparkevolve.sql.audit_queries import loaded_rows
from dbt.adapters.sparkevolve.sql.dml import (
    Key,
    between,
    delete_statement,
    delete_where,
    insert_and_keep,
    insert_statement,
    merge_statement,
)
from tests.unit.strategies import NAMES

TARGET, STAGED = "`lake`.`db`.`t`", "`lake`.`db`.`t__dbt_tmp_1`"


def test_a_delete_by_one_key_asks_for_membership() -> None:
    assert delete_statement(TARGET, STAGED, Key(("Id",))) == (
        "DELETE FROM `lake`.`db`.`t` AS DBT_INTERNAL_DEST\n"
        "WHERE DBT_INTERNAL_DEST.`Id` IN "
        "(SELECT DBT_INTERNAL_SOURCE.`Id` FROM `lake`.`db`.`t__dbt_tmp_1` AS DBT_INTERNAL_SOURCE)"
    )


def test_a_delete_by_a_composite_key_compares_the_whole_key() -> None:
    assert delete_statement(TARGET, STAGED, Key(("Id", "day"))) == (
        "DELETE FROM `lake`.`db`.`t` AS DBT_INTERNAL_DEST\n"
        "WHERE (DBT_INTERNAL_DEST.`Id`, DBT_INTERNAL_DEST.`day`) IN "
        "(SELECT DBT_INTERNAL_SOURCE.`Id`, DBT_INTERNAL_SOURCE.`day` "
        "FROM `lake`.`db`.`t__dbt_tmp_1` AS DBT_INTERNAL_SOURCE)"
    )


def test_a_null_safe_delete_by_one_key_asks_for_existence() -> None:
    assert delete_statement(TARGET, STAGED, Key(("Id",), null_safe=True)) == (
        "DELETE FROM `lake`.`db`.`t` AS DBT_INTERNAL_DEST\n"
        "WHERE EXISTS (SELECT 1 FROM (SELECT DBT_INTERNAL_SOURCE.`Id` AS key_0 "
        "FROM `lake`.`db`.`t__dbt_tmp_1` AS DBT_INTERNAL_SOURCE) AS DBT_INTERNAL_SOURCE "
        "WHERE DBT_INTERNAL_SOURCE.key_0 <=> DBT_INTERNAL_DEST.`Id`)"
    )


def test_a_null_safe_delete_by_a_composite_key_compares_the_whole_key() -> None:
    assert delete_statement(TARGET, STAGED, Key(("Id", "day", "n"), null_safe=True)) == (
        "DELETE FROM `lake`.`db`.`t` AS DBT_INTERNAL_DEST\n"
        "WHERE EXISTS (SELECT 1 FROM (SELECT DBT_INTERNAL_SOURCE.`Id` AS key_0, "
        "DBT_INTERNAL_SOURCE.`day` AS key_1, DBT_INTERNAL_SOURCE.`n` AS key_2 "
        "FROM `lake`.`db`.`t__dbt_tmp_1` AS DBT_INTERNAL_SOURCE) AS DBT_INTERNAL_SOURCE "
        "WHERE DBT_INTERNAL_SOURCE.key_0 <=> DBT_INTERNAL_DEST.`Id` "
        "AND DBT_INTERNAL_SOURCE.key_1 <=> DBT_INTERNAL_DEST.`day` "
        "AND DBT_INTERNAL_SOURCE.key_2 <=> DBT_INTERNAL_DEST.`n`)"
    )


@pytest.mark.parametrize("null_safe", [False, True])
def test_each_predicate_is_a_condition_of_its_own(null_safe: bool) -> None:
    bare = delete_statement(TARGET, STAGED, Key(("id",), null_safe))
    key = Key(("id",), null_safe, ("DBT_INTERNAL_DEST.day > '2024-01-01' OR x", "y = 1"))
    assert delete_statement(TARGET, STAGED, key) == (
        f"{bare}\n  AND (DBT_INTERNAL_DEST.day > '2024-01-01' OR x)\n  AND (y = 1)"
    )


@pytest.mark.parametrize("null_safe", [False, True])
def test_odd_key_names_are_quoted_everywhere(null_safe: bool) -> None:
    statement = delete_statement("t", "s", Key(("a.b", "q`q", "Straße"), null_safe))
    assert statement == (
        "DELETE FROM t AS DBT_INTERNAL_DEST\n"
        "WHERE EXISTS (SELECT 1 FROM (SELECT DBT_INTERNAL_SOURCE.`a.b` AS key_0, "
        "DBT_INTERNAL_SOURCE.`q``q` AS key_1, DBT_INTERNAL_SOURCE.`Straße` AS key_2 "
        "FROM s AS DBT_INTERNAL_SOURCE) AS DBT_INTERNAL_SOURCE "
        "WHERE DBT_INTERNAL_SOURCE.key_0 <=> DBT_INTERNAL_DEST.`a.b` "
        "AND DBT_INTERNAL_SOURCE.key_1 <=> DBT_INTERNAL_DEST.`q``q` "
        "AND DBT_INTERNAL_SOURCE.key_2 <=> DBT_INTERNAL_DEST.`Straße`)"
        if null_safe
        else "DELETE FROM t AS DBT_INTERNAL_DEST\n"
        "WHERE (DBT_INTERNAL_DEST.`a.b`, DBT_INTERNAL_DEST.`q``q`, DBT_INTERNAL_DEST.`Straße`) IN "
        "(SELECT DBT_INTERNAL_SOURCE.`a.b`, DBT_INTERNAL_SOURCE.`q``q`, DBT_INTERNAL_SOURCE.`Straße` "
        "FROM s AS DBT_INTERNAL_SOURCE)"
    )


@pytest.mark.parametrize("null_safe", [False, True])
def test_a_delete_without_a_key_is_never_written(null_safe: bool) -> None:
    with pytest.raises(ValueError, match=r"^a key needs at least one column$"):
        Key((), null_safe, ("x = 1",))


def test_an_insert_names_every_column_and_gives_each_a_value() -> None:
    columns = [
        ProjectedColumn("Id", "ID", Cast("bigint")),
        ProjectedColumn("gone", None, Pad("decimal(10,2)")),
        ProjectedColumn("a.b", "A.b", Keep()),
        ProjectedColumn("q`q", "q`Q", Keep()),
        ProjectedColumn("s", None, Pad("struct<`x`:int,`y.z`:array<string>>")),
    ]
    assert insert_statement(TARGET, STAGED, columns) == (
        "INSERT INTO `lake`.`db`.`t` (`Id`, `gone`, `a.b`, `q``q`, `s`)\n"
        "SELECT\n"
        "  CAST(DBT_INTERNAL_SOURCE.`ID` AS bigint) AS `Id`,\n"
        "  CAST(NULL AS decimal(10,2)) AS `gone`,\n"
        "  DBT_INTERNAL_SOURCE.`A.b` AS `a.b`,\n"
        "  DBT_INTERNAL_SOURCE.`q``Q` AS `q``q`,\n"
        "  CAST(NULL AS struct<`x`:int,`y.z`:array<string>>) AS `s`\n"
        "FROM `lake`.`db`.`t__dbt_tmp_1` AS DBT_INTERNAL_SOURCE"
    )


def test_an_insert_of_one_column() -> None:
    assert insert_statement("t", "s", [ProjectedColumn("x", "x", Keep())]) == (
        "INSERT INTO t (`x`)\nSELECT\n  DBT_INTERNAL_SOURCE.`x` AS `x`\nFROM s AS DBT_INTERNAL_SOURCE"
    )


def test_a_key_matches_by_every_column() -> None:
    assert Key(("Id", "a.b")).match("l", "r") == "l.`Id` = r.`Id` AND l.`a.b` = r.`a.b`"
    assert Key(("q`q",), null_safe=True).match("l", "r") == "l.`q``q` <=> r.`q``q`"


@given(st.lists(NAMES, min_size=1, max_size=4), st.booleans(), st.lists(st.text(min_size=1), max_size=3))
def test_a_row_is_in_the_batch_by_its_whole_key_and_by_each_predicate(
    names: list[str], null_safe: bool, predicates: list[str]
) -> None:
    key = Key(tuple(names), null_safe, tuple(predicates))
    bare = Key(tuple(names), null_safe).in_batch("s")
    assert key.in_batch("s") == bare + "".join(f"\n  AND ({predicate})" for predicate in predicates)
    quoted = [f"`{name.replace('`', '``')}`" for name in names]
    assert all(bare.count(f"DBT_INTERNAL_DEST.{name}") >= 1 for name in quoted)
    if null_safe:
        values = ", ".join(f"DBT_INTERNAL_SOURCE.{name} AS key_{n}" for n, name in enumerate(quoted))
        matches = [f"DBT_INTERNAL_SOURCE.key_{n} <=> DBT_INTERNAL_DEST.{q}" for n, q in enumerate(quoted)]
        assert bare == (
            f"EXISTS (SELECT 1 FROM (SELECT {values} FROM s AS DBT_INTERNAL_SOURCE) AS DBT_INTERNAL_SOURCE "
            f"WHERE {' AND '.join(matches)})"
        )
    else:
        left = ", ".join(f"DBT_INTERNAL_DEST.{name}" for name in quoted)
        right = ", ".join(f"DBT_INTERNAL_SOURCE.{name}" for name in quoted)
        left = left if len(names) == 1 else f"({left})"
        assert bare == f"{left} IN (SELECT {right} FROM s AS DBT_INTERNAL_SOURCE)"


def test_a_delete_by_conditions_wants_all_of_them() -> None:
    assert delete_where(TARGET, ["a = 1 OR b = 2", "c"]) == (
        "DELETE FROM `lake`.`db`.`t` AS DBT_INTERNAL_DEST\nWHERE (a = 1 OR b = 2)\n  AND (c)"
    )
    assert delete_where("t", ["x"]) == "DELETE FROM t AS DBT_INTERNAL_DEST\nWHERE (x)"


def test_a_delete_without_a_condition_is_never_written() -> None:
    with pytest.raises(ValueError, match=r"^a DELETE needs at least one condition$"):
        delete_where("t", [])


UTC_NOON = datetime(2024, 1, 2, 12, tzinfo=timezone.utc)


@pytest.mark.parametrize(
    ("column", "type_", "low", "high", "text"),
    [
        ("Id", "int", -5, 7, "{d}.`Id` >= CAST('-5' AS int) AND {d}.`Id` <= CAST('7' AS int)"),
        ("a.b", "bigint", 1, 1, "{d}.`a.b` >= CAST('1' AS bigint) AND {d}.`a.b` <= CAST('1' AS bigint)"),
        (
            "q`q",
            "string",
            "",
            "it's",
            "{d}.`q``q` >= CAST('' AS string) AND {d}.`q``q` <= CAST(CAST(X'69742773' AS STRING) AS string)",
        ),
        (
            "d",
            "decimal(10,2)",
            Decimal("-1E+1"),
            Decimal("0.10"),
            "{d}.`d` >= CAST('-10' AS decimal(10,2)) AND {d}.`d` <= CAST('0.10' AS decimal(10,2))",
        ),
        (
            "Straße",
            "date",
            date(1, 1, 1),
            date(9999, 12, 31),
            "{d}.`Straße` >= CAST('0001-01-01' AS date) AND {d}.`Straße` <= CAST('9999-12-31' AS date)",
        ),
        (
            "ts",
            "timestamp",
            UTC_NOON,
            UTC_NOON,
            "{d}.`ts` >= CAST('2024-01-02 12:00:00+00:00' AS timestamp) "
            "AND {d}.`ts` <= CAST('2024-01-02 12:00:00+00:00' AS timestamp)",
        ),
        (
            "ts",
            "timestamp_ntz",
            datetime(1969, 12, 31, 23, 59, 59, 999999),
            datetime(1970, 1, 1),
            "{d}.`ts` >= CAST('1969-12-31 23:59:59.999999' AS timestamp_ntz) "
            "AND {d}.`ts` <= CAST('1970-01-01 00:00:00' AS timestamp_ntz)",
        ),
    ],
)
def test_a_column_is_between_two_values_of_its_type(
    column: str, type_: str, low: object, high: object, text: str
) -> None:
    text = text.format(d="DBT_INTERNAL_DEST")
    assert between(column, type_, low, high) == text
    name = f"DBT_INTERNAL_DEST.{quote(column)}"
    assert between(column, type_, low, high, or_null=True) == f"{text} OR {name} IS NULL"
    assert between(column, type_, low, high, open_end=True) == text.replace("<=", "<")


PADDED = [
    ProjectedColumn("Id", "ID", Cast("bigint")),
    ProjectedColumn("gone", None, Pad("string")),
    ProjectedColumn(
        "s", "S", RebuildStruct((StructMember("x", "X", Keep()), StructMember("y", None, Pad("int"))))
    ),
    ProjectedColumn("q`q", "q`q", Keep()),
]

WHOLE = [ProjectedColumn("Id", "ID", Keep()), ProjectedColumn("x", "x", Keep())]


def test_an_overwrite_is_an_insert_with_another_verb() -> None:
    into = insert_statement(TARGET, STAGED, PADDED)
    assert into.startswith("INSERT INTO `lake`.`db`.`t` (`Id`, `gone`, `s`, `q``q`)\n")
    assert insert_statement(TARGET, STAGED, PADDED, overwrite=True) == (
        "INSERT OVERWRITE" + into.removeprefix("INSERT INTO")
    )


SEVERAL = (
    "raise_error(concat('removed_columns is keep, but the table has several rows with the same "
    "unique_key, so there is no one previous value to keep. Remove the duplicates, or set removed_columns to "
    "null. The key: ', coalesce(CAST(DBT_INTERNAL_DEST.`Id` AS STRING), 'NULL')))"
)


def test_an_insert_that_keeps_joins_the_one_row_that_was_there() -> None:
    assert insert_and_keep(
        TARGET, STAGED, PADDED, Key(("Id",), predicates=("p",)), "`lake`.`db`.`t`.old"
    ) == (
        "INSERT INTO `lake`.`db`.`t` (`Id`, `gone`, `s`, `q``q`)\n"
        "SELECT\n"
        "  CAST(DBT_INTERNAL_SOURCE.`ID` AS bigint) AS `Id`,\n"
        "  DBT_INTERNAL_PREVIOUS.`gone` AS `gone`,\n"
        "  IF(DBT_INTERNAL_SOURCE.`S` IS NULL, NULL, named_struct('x', DBT_INTERNAL_SOURCE.`S`.`X`, 'y', "
        "DBT_INTERNAL_PREVIOUS.`s`.`y`)) AS `s`,\n"
        "  DBT_INTERNAL_SOURCE.`q``q` AS `q``q`\n"
        "FROM `lake`.`db`.`t__dbt_tmp_1` AS DBT_INTERNAL_SOURCE\n"
        "LEFT JOIN (\n"
        "  SELECT\n"
        "    DBT_INTERNAL_DEST.`Id`,\n"
        f"    IF(COUNT(*) = 1, FIRST(DBT_INTERNAL_DEST.`gone`), {SEVERAL}) AS `gone`,\n"
        f"    IF(COUNT(*) = 1, FIRST(DBT_INTERNAL_DEST.`s`), {SEVERAL}) AS `s`\n"
        "  FROM `lake`.`db`.`t`.old AS DBT_INTERNAL_DEST\n"
        "  WHERE DBT_INTERNAL_DEST.`Id` IN "
        "(SELECT DBT_INTERNAL_SOURCE.`Id` FROM `lake`.`db`.`t__dbt_tmp_1` AS DBT_INTERNAL_SOURCE)\n"
        "  AND (p)\n"
        "  GROUP BY DBT_INTERNAL_DEST.`Id`\n"
        ") AS DBT_INTERNAL_PREVIOUS\n"
        "ON DBT_INTERNAL_SOURCE.`Id` = DBT_INTERNAL_PREVIOUS.`Id`"
    )


def test_an_insert_that_keeps_by_a_composite_key_with_null_groups_by_all_of_it() -> None:
    columns = [
        ProjectedColumn("a`", "a`", Keep()),
        ProjectedColumn("k", "K", Keep()),
        ProjectedColumn("gone", None, Pad("int")),
    ]
    key = Key(("a`", "k"), null_safe=True)
    statement = insert_and_keep("t", "s", columns, key, "old")
    assert "\n    DBT_INTERNAL_DEST.`a```,\n    DBT_INTERNAL_DEST.`k`,\n    IF(COUNT(*) = 1" in statement
    assert (
        "The key: ', coalesce(CAST(DBT_INTERNAL_DEST.`a``` AS STRING), 'NULL'), ', ', "
        "coalesce(CAST(DBT_INTERNAL_DEST.`k` AS STRING), 'NULL'))))" in statement
    )
    assert f"\n  WHERE {key.in_batch('s')}\n" in statement
    assert "\n  GROUP BY DBT_INTERNAL_DEST.`a```, DBT_INTERNAL_DEST.`k`\n" in statement
    assert statement.endswith(
        "ON DBT_INTERNAL_SOURCE.`a``` <=> DBT_INTERNAL_PREVIOUS.`a``` "
        "AND DBT_INTERNAL_SOURCE.`k` <=> DBT_INTERNAL_PREVIOUS.`k`"
    )


def test_an_insert_that_has_nothing_to_keep_reads_no_old_row() -> None:
    in_list = [
        *WHOLE,
        ProjectedColumn("l", "l", RebuildList(RebuildStruct((StructMember("y", None, Pad("int")),)))),
    ]
    for columns in (WHOLE, in_list):
        assert insert_and_keep("t", "s", columns, Key(("Id",)), "old") == insert_statement("t", "s", columns)


def test_a_merge_updates_what_the_model_returns_and_inserts_everything() -> None:
    key = Key(("Id",), predicates=("DBT_INTERNAL_DEST.d > 1 OR x", "y"))
    assert merge_statement(TARGET, STAGED, PADDED, key, ["gone", "s", "q`q"]) == (
        "MERGE INTO `lake`.`db`.`t` AS DBT_INTERNAL_DEST\n"
        "USING `lake`.`db`.`t__dbt_tmp_1` AS DBT_INTERNAL_SOURCE\n"
        "ON DBT_INTERNAL_SOURCE.`Id` = DBT_INTERNAL_DEST.`Id`\n"
        "  AND (DBT_INTERNAL_DEST.d > 1 OR x)\n"
        "  AND (y)\n"
        "WHEN MATCHED THEN UPDATE SET\n"
        "  DBT_INTERNAL_DEST.`s` = IF(DBT_INTERNAL_SOURCE.`S` IS NULL, NULL, named_struct('x', "
        "DBT_INTERNAL_SOURCE.`S`.`X`, 'y', DBT_INTERNAL_DEST.`s`.`y`)),\n"
        "  DBT_INTERNAL_DEST.`q``q` = DBT_INTERNAL_SOURCE.`q``q`\n"
        "WHEN NOT MATCHED THEN INSERT (`Id`, `gone`, `s`, `q``q`)\n"
        "VALUES (\n"
        "  CAST(DBT_INTERNAL_SOURCE.`ID` AS bigint),\n"
        "  CAST(NULL AS string),\n"
        "  IF(DBT_INTERNAL_SOURCE.`S` IS NULL, NULL, named_struct('x', DBT_INTERNAL_SOURCE.`S`.`X`, 'y', "
        "CAST(NULL AS int))),\n"
        "  DBT_INTERNAL_SOURCE.`q``q`\n"
        ")"
    )


@pytest.mark.parametrize("update", [[], ["gone"], ["x", "absent"]])
def test_a_merge_with_nothing_to_update_leaves_matching_rows_alone(update: list[str]) -> None:
    columns = [ProjectedColumn("Id", "ID", Keep()), ProjectedColumn("gone", None, Pad("int"))]
    assert merge_statement("t", "s", columns, Key(("Id",), null_safe=True), update) == (
        "MERGE INTO t AS DBT_INTERNAL_DEST\n"
        "USING s AS DBT_INTERNAL_SOURCE\n"
        "ON DBT_INTERNAL_SOURCE.`Id` <=> DBT_INTERNAL_DEST.`Id`\n"
        "WHEN NOT MATCHED THEN INSERT (`Id`, `gone`)\n"
        "VALUES (\n  DBT_INTERNAL_SOURCE.`ID`,\n  CAST(NULL AS int)\n)"
    )


REORDERED = ProjectedColumn("a.b", "A.B", RebuildStruct((StructMember("x", "X", Keep()),)))


@pytest.mark.parametrize(("null_safe", "equals"), [(False, "="), (True, "<=>")])
def test_a_rebuilt_key_is_compared_in_each_statement(null_safe: bool, equals: str) -> None:
    key = Key(("a.b",), null_safe, rebuilt=(REORDERED,))
    value = "IF(DBT_INTERNAL_SOURCE.`A.B` IS NULL, NULL, named_struct('x', DBT_INTERNAL_SOURCE.`A.B`.`X`))"
    match = f"{value} {equals} DBT_INTERNAL_DEST.`a.b`"
    found = (
        f"EXISTS (SELECT 1 FROM (SELECT {value} AS key_0 FROM s AS DBT_INTERNAL_SOURCE) "
        "AS DBT_INTERNAL_SOURCE WHERE DBT_INTERNAL_SOURCE.key_0 <=> DBT_INTERNAL_DEST.`a.b`)"
        if null_safe
        else f"DBT_INTERNAL_DEST.`a.b` IN (SELECT {value} FROM s AS DBT_INTERNAL_SOURCE)"
    )
    assert delete_statement("t", "s", key) == f"DELETE FROM t AS DBT_INTERNAL_DEST\nWHERE {found}"
    columns = [REORDERED, ProjectedColumn("gone", None, Pad("int"))]
    assert f"\nON {match}\n" in merge_statement("t", "s", columns, key, [])
    kept = insert_and_keep("t", "s", columns, key, "old")
    assert kept.endswith(f"ON {value} {equals} DBT_INTERNAL_PREVIOUS.`a.b`")
    assert f"WHERE {found}" in kept
    assert loaded_rows("b", ["f"], "s", key).endswith(f"AND {found}")


def test_a_default_goes_into_rows_that_replace_none_where_others_keep_their_value() -> None:
    members = (StructMember("x", None, Pad("int", "7")), StructMember("Replaces", "r", Keep()))
    columns = (
        ProjectedColumn("id", "id", Keep()),
        ProjectedColumn("a", None, Pad("int", "5")),
        ProjectedColumn("replaces", "s", RebuildStruct(members)),
        ProjectedColumn("n", None, Pad("int")),
    )
    struct = "named_struct('x', {}, 'Replaces', DBT_INTERNAL_SOURCE.`s`.`r`)"
    kept, new = struct.format("DBT_INTERNAL_PREVIOUS.`replaces`.`x`"), struct.format("7")
    source = "DBT_INTERNAL_SOURCE.`s` IS NULL, NULL"
    there = "DBT_INTERNAL_PREVIOUS.`replaces_`"
    sql = insert_and_keep("t", "s", columns, Key(("id",)), "p")
    assert sql.split("\nFROM s AS")[0] == (
        "INSERT INTO t (`id`, `a`, `replaces`, `n`)\n"
        "SELECT\n"
        "  DBT_INTERNAL_SOURCE.`id` AS `id`,\n"
        f"  IF({there}, DBT_INTERNAL_PREVIOUS.`a`, 5) AS `a`,\n"
        f"  IF({there}, IF({source}, {kept}), IF({source}, {new})) AS `replaces`,\n"
        "  DBT_INTERNAL_PREVIOUS.`n` AS `n`"
    )
    assert "\n    true AS `replaces_`\n  FROM p AS DBT_INTERNAL_DEST\n" in sql
