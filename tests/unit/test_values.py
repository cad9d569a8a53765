"""Values that stand in SQL as text."""

from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal

import pytest

from dbt.adapters.sparkevolve.sql.values import literal, values_queries


def query(select: str, literal: str) -> str:
    return f"SELECT {select}\nFROM (SELECT explode(from_json({literal}, 'array<array<string>>')) AS r)"


def cast(number: int, name: str, type_: str, value: str = "") -> str:
    text, quoted = f"r[{number}]", f"`{name}`"
    reason = f"'The value of column {quoted} is no {type_}: '"
    found = f"TRY_CAST({value or text} AS {type_})"
    failed = f"raise_error(concat({reason}, {text}))"
    return f"CASE WHEN {text} IS NOT NULL THEN coalesce({found}, {failed}) END AS {quoted}"


def test_values_are_cast_each_to_the_type_of_its_column() -> None:
    rows = [(1, "a", None, None, False), (Decimal("2"), None, date(2024, 1, 31), True, None)]
    types = ["bigint", "string", "date", "boolean", "int"]
    assert values_queries(["a", "b`c", "d", "e", "f"], types, rows, 1000) == [
        query(
            f"{cast(0, 'a', 'bigint')}, CAST(r[1] AS string) AS `b``c`, {cast(2, 'd', 'date')}, "
            f"{cast(3, 'e', 'boolean', 'CAST(r[3] AS boolean)')}, "
            f"{cast(4, 'f', 'int', 'CAST(r[4] AS boolean)')}",
            '\'[["1","a",null,null,"false"],\n["2",null,"2024-01-31","true",null]]\'',
        )
    ]


@pytest.mark.parametrize("type_", ["double", "FLOAT", " real"])
def test_a_number_that_is_too_great_is_not_infinity(type_: str) -> None:
    (found,) = values_queries(["a"], [type_], [[Decimal("1E+400")]], 1000)
    value = f"TRY_CAST(r[0] AS {type_})"
    is_one = f"lower(r[0]) LIKE '%inf%' OR abs({value}) <> double('Infinity')"
    assert f" coalesce(CASE WHEN {is_one} THEN {value} END, raise_error(" in found


def test_a_text_that_a_setting_may_change_is_in_hex() -> None:
    hexed = b'[["it\'s"]]'.hex()
    assert values_queries(["a"], ["string"], [["it's"]], 1000) == [
        query("CAST(r[0] AS string) AS `a`", f"CAST(X'{hexed}' AS STRING)")
    ]


def test_no_values() -> None:
    """Columns and their types stay."""
    assert values_queries(["a", "b"], ["int", "date"], [], 1000) == [
        query(f"{cast(0, 'a', 'int')}, {cast(1, 'b', 'date')}", "'[]'")
    ]


def test_many_values_are_several_queries() -> None:
    rows = [[1], [22], [333333], [4], [5]]
    texts = ['[["1"],\n["22"]]', '[["333333"]]', '[["4"],\n["5"]]']
    assert values_queries(["a"], ["int"], rows, 11) == [
        query(cast(0, "a", "int"), f"'{text}'") for text in texts
    ]


def test_a_text_that_spark_would_read_no_row_of_is_refused() -> None:
    fits = "\N{GRINNING FACE}" * 10_000_000
    assert len(values_queries(["a"], ["string"], [[1], [fits]], 1000)) == 2
    with pytest.raises(ValueError, match="A value has 10000001 characters, and at most 10000000 "):
        values_queries(["a"], ["string"], [[fits + "x"]], 1000)


@pytest.mark.parametrize("row", [[1], [1, 2, 3]])
def test_a_row_of_another_length_than_the_table_is_never_written(row: list[int]) -> None:
    with pytest.raises((ValueError, IndexError)):
        values_queries(["a", "b"], ["int", "int"], [[1, 2], row], 1000)


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
        ("it's", "CAST(X'69742773' AS STRING)"),
        ('a "b" `c`', "'a \"b\" `c`'"),
        ("back\\slash", "CAST(X'6261636b5c736c617368' AS STRING)"),
        ("ends in \\", "CAST(X'656e647320696e205c' AS STRING)"),
        ("two\nlines\ttab", "'two\nlines\ttab'"),
        ("a;b--c/*d*/", "'a;b--c/*d*/'"),
        ("名前 😀", "'名前 😀'"),
    ],
)
def test_a_value_is_a_literal_without_loss(value: object, text: str) -> None:
    assert literal(value) == text
