"""Structs, lists and maps as `dbt show` prints them."""

import datetime as dt
import json
from decimal import Decimal

from pyspark.sql import Row

from dbt.adapters.sparkevolve.spark.nested_values import json_text, shown


def test_names_of_fields_are_kept() -> None:
    row = Row(id=1, s=Row(code="0150", city="Oslo"), t=dt.date(2024, 1, 1), d=Decimal("1.50"), b=b"x")
    assert shown(row) == (1, '{"code": "0150", "city": "Oslo"}', dt.date(2024, 1, 1), Decimal("1.50"), b"x")


def test_each_kind_of_value_inside() -> None:
    value = Row(
        price=Decimal("12345678901234567890.10"),
        small=Decimal("1E-7"),
        on=dt.date(2024, 1, 31),
        at=dt.datetime(2024, 1, 31, 12, 0, 1),
        bits=b"\x01\xff",
        nan=float("nan"),
        ratio=0.5,
        no=None,
        yes=True,
        tags=["å", '"'],
        by_name={"k": Row(n=1)},
        by_day={dt.date(2024, 1, 1): [1, None]},
    )
    text = json_text(value)
    assert text == (
        '{"price": 12345678901234567890.10, "small": 0.0000001, "on": "2024-01-31", '
        '"at": "2024-01-31T12:00:01", "bits": "Af8=", "nan": "nan", "ratio": 0.5, "no": null, "yes": true, '
        '"tags": ["å", "\\""], "by_name": {"k": {"n": 1}}, '
        '"by_day": [{"key": "2024-01-01", "value": [1, null]}]}'
    )
    assert json.loads(text)["by_name"] == {"k": {"n": 1}}


def test_lists_stand_by_themselves_too() -> None:
    assert shown(([1, 2], {}, [Row(a=1)])) == ("[1, 2]", "{}", '[{"a": 1}]')
