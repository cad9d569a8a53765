"""Values that stand in SQL as text."""

from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal

import pytest

from dbt.adapters.sparkevolve.sql.values import literal, values_query


def test_values_are_cast_each_to_the_type_of_its_column() -> None:
    rows = [(1, "it's", None), (Decimal("2"), None, True)]
    assert values_query(["a", "b`c", "d"], ["bigint", "string", "boolean"], rows) == (
        "VALUES\n"
        "(CAST('1' AS bigint), CAST(CAST(X'69742773' AS STRING) AS string), CAST(NULL AS boolean)),\n"
        "(CAST('2' AS bigint), CAST(NULL AS string), CAST(true AS boolean))\n"
        "AS `seed` (`a`, `b``c`, `d`)"
    )


def test_one_value() -> None:
    assert values_query(["a"], ["int"], [[7]]) == "VALUES\n(CAST('7' AS int))\nAS `seed` (`a`)"


def test_no_values() -> None:
    """Columns and their types stay."""
    assert values_query(["a", "b"], ["int", "date"], []) == (
        "SELECT * FROM VALUES\n(CAST(NULL AS int), CAST(NULL AS date))\nAS `seed` (`a`, `b`) WHERE 1 = 0"
    )


@pytest.mark.parametrize("row", [[], [1], [1, 2, 3]])
def test_a_row_of_another_length_than_the_table_is_never_written(row: list[int]) -> None:
    with pytest.raises(ValueError, match="zip"):
        values_query(["a", "b"], ["int", "int"], [[1, 2], row])


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
