"""Values as YAML has read them from a run-operation's arguments, and as dead letters have them in JSON."""

import json
from collections.abc import Mapping
from datetime import date, datetime, timezone
from typing import Any

# Within these, Python and Java write a number with a point alike; beyond, Java has another exponent.
_LEAST, _MOST = 1e-3, 1e7


def has_json(value: object) -> bool:
    """Tell whether it is certain what the JSON of a key has for a value."""
    if isinstance(value, Mapping):
        return all(
            isinstance(name, str | int | date) and not isinstance(name, bool) for name in value
        ) and all(map(has_json, value.values()))
    if isinstance(value, list):
        return all(map(has_json, value))
    if isinstance(value, float):
        return value == 0 or _LEAST <= abs(value) < _MOST
    return value is None or isinstance(value, str | int | date)


def key_in_json(value: Any) -> str:
    """Return the text of a value in the JSON of a key, see ``sql.dead_letters``."""
    return json.dumps(_plain(value), separators=(",", ":"), ensure_ascii=False)


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {
            _time(name) if isinstance(name, date) else str(name): _plain(inner)
            for name, inner in value.items()
        }
    if isinstance(value, list):
        return [_plain(inner) for inner in value]
    return _time(value) if isinstance(value, date) else value


def _time(value: date) -> str:
    """Return a date or a time as Spark writes it: an instant in UTC, a fraction without zeros at its end."""
    if not isinstance(value, datetime):
        return value.isoformat()
    is_instant = value.tzinfo is not None
    if is_instant:
        value = value.astimezone(timezone.utc).replace(tzinfo=None)
    text = value.isoformat(" ")
    return (text.rstrip("0") if value.microsecond else text) + ("Z" if is_instant else "")


def yaml_text(value: object) -> str:
    """Return a value as a message shows it: what YAML has taken for a date as it was written."""
    return _time(value) if isinstance(value, date) else repr(value)
