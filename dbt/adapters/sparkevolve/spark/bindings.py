"""The values of a seed's rows, as they go to Spark."""

import datetime
import decimal
from typing import Any


def literal_value(value: Any) -> Any:
    """Return a binding in a form that loses nothing when Spark casts it to the column's type.

    Numbers go as text: dbt hands them over as decimals, and a float would round a large one.
    """
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, decimal.Decimal):
        return format(value, "f")
    if isinstance(value, datetime.datetime):
        return value.isoformat(sep=" ")
    return str(value)
