"""Values of a seed."""

import datetime
import decimal

import pytest

from dbt.adapters.sparkevolve.spark.bindings import literal_value


@pytest.mark.parametrize(
    ("value", "literal"),
    [
        (None, None),
        (True, True),
        (False, False),
        (5, "5"),
        (decimal.Decimal("5"), "5"),
        (decimal.Decimal("1E+3"), "1000"),
        (decimal.Decimal("12345678901234567890.123456789"), "12345678901234567890.123456789"),
        (decimal.Decimal("1E-10"), "0.0000000001"),
        (0.1, "0.1"),
        ("text", "text"),
        ("", ""),
        ("5", "5"),
        (datetime.date(2024, 2, 29), "2024-02-29"),
        (datetime.datetime(2024, 2, 29, 13, 5, 6), "2024-02-29 13:05:06"),
        (datetime.datetime(2024, 2, 29, 13, 5, 6, 120), "2024-02-29 13:05:06.000120"),
        (datetime.datetime(2024, 2, 29, 13, tzinfo=datetime.timezone.utc), "2024-02-29 13:00:00+00:00"),
    ],
)
def test_a_value_goes_to_spark_without_loss(value: object, literal: object) -> None:
    assert literal_value(value) == literal
    assert type(literal_value(value)) is type(literal)
