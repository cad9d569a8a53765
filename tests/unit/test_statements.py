"""The text of the statements that load a staged batch, whole."""

from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal

import pytest

from dbt.adapters.sparkevolve.evolution.projection import Cast, Keep, Pad, ProjectedColumn
from dbt.adapters.sparkevolve.evolution.statements import (
    Key,
    delete_statement,
    insert_statement,
    literal,
    values_statement,
)

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
        "WHERE EXISTS (SELECT 1 FROM `lake`.`db`.`t__dbt_tmp_1` AS DBT_INTERNAL_SOURCE "
        "WHERE DBT_INTERNAL_SOURCE.`Id` <=> DBT_INTERNAL_DEST.`Id`)"
    )


def test_a_null_safe_delete_by_a_composite_key_compares_the_whole_key() -> None:
    assert delete_statement(TARGET, STAGED, Key(("Id", "day", "n"), null_safe=True)) == (
        "DELETE FROM `lake`.`db`.`t` AS DBT_INTERNAL_DEST\n"
        "WHERE EXISTS (SELECT 1 FROM `lake`.`db`.`t__dbt_tmp_1` AS DBT_INTERNAL_SOURCE "
        "WHERE DBT_INTERNAL_SOURCE.`Id` <=> DBT_INTERNAL_DEST.`Id` "
        "AND DBT_INTERNAL_SOURCE.`day` <=> DBT_INTERNAL_DEST.`day` "
        "AND DBT_INTERNAL_SOURCE.`n` <=> DBT_INTERNAL_DEST.`n`)"
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
        "WHERE EXISTS (SELECT 1 FROM s AS DBT_INTERNAL_SOURCE "
        "WHERE DBT_INTERNAL_SOURCE.`a.b` <=> DBT_INTERNAL_DEST.`a.b` "
        "AND DBT_INTERNAL_SOURCE.`q``q` <=> DBT_INTERNAL_DEST.`q``q` "
        "AND DBT_INTERNAL_SOURCE.`Straße` <=> DBT_INTERNAL_DEST.`Straße`)"
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


def test_values_are_cast_each_to_the_type_of_its_column() -> None:
    rows = [(1, "it's", None), (Decimal("2"), None, True)]
    assert values_statement(TARGET, ["bigint", "string", "boolean"], rows) == (
        "INSERT INTO `lake`.`db`.`t` VALUES\n"
        "(CAST('1' AS bigint), CAST('it\\'s' AS string), CAST(NULL AS boolean)),\n"
        "(CAST('2' AS bigint), CAST(NULL AS string), CAST(true AS boolean))"
    )


def test_one_value() -> None:
    assert values_statement("t", ["int"], [[7]]) == "INSERT INTO t VALUES\n(CAST('7' AS int))"


@pytest.mark.parametrize("row", [[], [1], [1, 2, 3]])
def test_a_row_of_another_length_than_the_table_is_never_written(row: list[int]) -> None:
    with pytest.raises(ValueError, match="zip"):
        values_statement("t", ["int", "int"], [[1, 2], row])


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "NULL"),
        (True, "true"),
        (False, "false"),
        (0, "'0'"),
        (1, "'1'"),
        (-9223372036854775808, "'-9223372036854775808'"),
        # Spark does read 1E+3 as a decimal, but not as an integer.
        (Decimal("1E+3"), "'1000'"),
        (Decimal("1E-7"), "'0.0000001'"),
        (Decimal("-0.10"), "'-0.10'"),
        (Decimal("12345678901234567890123456789012345678"), "'12345678901234567890123456789012345678'"),
        (Decimal("NaN"), "'NaN'"),
        (Decimal("-Infinity"), "'-Infinity'"),
        (1e300, "'1e+300'"),
        (0.1, "'0.1'"),
        (date(2024, 2, 29), "'2024-02-29'"),
        (time(1, 2, 3, 4), "'01:02:03.000004'"),
        (datetime(2024, 2, 29), "'2024-02-29 00:00:00'"),
        (datetime(2024, 2, 29, 1, 2, 3, 456789), "'2024-02-29 01:02:03.456789'"),
        (datetime(1, 1, 1, tzinfo=timezone.utc), "'0001-01-01 00:00:00+00:00'"),
        (datetime(2024, 1, 1, tzinfo=timezone(timedelta(hours=-2))), "'2024-01-01 00:00:00-02:00'"),
        ("", "''"),
        ("NULL", "'NULL'"),
        ("true", "'true'"),
        ("it's", "'it\\'s'"),
        ('a "b" `c`', "'a \"b\" `c`'"),
        ("back\\slash", "'back\\\\slash'"),
        ("ends in \\", "'ends in \\\\'"),
        ("two\nlines\ttab", "'two\nlines\ttab'"),
        ("a;b--c/*d*/", "'a;b--c/*d*/'"),
        ("名前 😀", "'名前 😀'"),
    ],
)
def test_a_value_is_a_literal_without_loss(value: object, text: str) -> None:
    assert literal(value) == text
