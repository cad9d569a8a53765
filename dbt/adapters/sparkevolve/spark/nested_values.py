"""Structs, lists and maps of a result as JSON: dbt would lose the names that PySpark's rows have."""

import base64
import datetime as dt
import json
import math
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any


def shown(row: Sequence[Any]) -> tuple[Any, ...]:
    """Return a row with each struct, list and map in it as JSON; other values stay as they are."""
    return tuple(json_text(value) if isinstance(value, tuple | list | dict) else value for value in row)


def json_text(value: Any) -> str:
    """Return a value of a struct, list or map as JSON, with all digits of a decimal.

    Times are texts, bytes are Base64. A map whose keys are no texts is a list of keys with their values.
    """
    if isinstance(value, tuple):
        return _object(zip(getattr(value, "__fields__", map(str, range(len(value)))), value, strict=False))
    if isinstance(value, Mapping):
        if all(isinstance(key, str) for key in value):
            return _object(value.items())
        return _list(_object((("key", key), ("value", item))) for key, item in value.items())
    if isinstance(value, list):
        return _list(map(json_text, value))
    if isinstance(value, Decimal):
        return format(value, "f")
    if isinstance(value, float) and not math.isfinite(value):
        return json.dumps(str(value))
    if isinstance(value, bytes | bytearray):
        return json.dumps(base64.b64encode(value).decode())
    if isinstance(value, dt.date | dt.time):
        return json.dumps(value.isoformat())
    if value is None or isinstance(value, bool | int | float | str):
        return json.dumps(value, ensure_ascii=False)
    return json.dumps(str(value), ensure_ascii=False)


def _object(members: Any) -> str:
    parts = (f"{json.dumps(str(name), ensure_ascii=False)}: {json_text(value)}" for name, value in members)
    return "{" + ", ".join(parts) + "}"


def _list(members: Any) -> str:
    return "[" + ", ".join(members) + "]"
