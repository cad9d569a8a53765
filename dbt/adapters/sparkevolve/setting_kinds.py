"""What values a setting may have: how each kind is checked, what a message calls it, and how it is read."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from dbt.adapters.sparkevolve.evolution import names
from dbt.adapters.sparkevolve.evolution.table_properties import property_text
from dbt.adapters.sparkevolve.variables import switch, whole_number


@dataclass(frozen=True)
class Kind:
    """What values a setting may have.

    Attributes:
        accepts: tells whether a value other than None is one of them.
        wanted: what they are, as a message says it.
        read: turns one of them, or None, into what the settings keep.
        is_checked_everywhere: whether it is checked for every kind of node, before anything of it runs.
    """

    accepts: Callable[[object], bool]
    wanted: str
    read: Callable[[Any], Any]
    is_checked_everywhere: bool = False

    @property
    def remedy(self) -> str:
        """The sentence that ends an error about another value."""
        return (
            f"It has to be {self.wanted}." if self.is_checked_everywhere else f"Allowed are: {self.wanted}."
        )


def _is_name(value: object) -> bool:
    return isinstance(value, str) and value.strip() != ""


def _are_names(value: object) -> bool:
    listed = [value] if isinstance(value, str) else value
    return isinstance(listed, list | tuple) and len(listed) > 0 and all(map(_is_name, listed))


def _are_names_or_none(value: object) -> bool:
    return value == [] or _are_names(value)


def _is_key(value: object) -> bool:
    # dbt takes both for no key.
    return value in ([], "") or _are_names(value)


def _are_properties(value: object) -> bool:
    return isinstance(value, Mapping) and all(
        _is_name(name) and isinstance(text, str | int | float | bool) for name, text in value.items()
    )


def _are_renames(value: object) -> bool:
    return isinstance(value, Mapping) and all(_is_name(o) and _is_name(n) for o, n in value.items())


def _are_defaults(value: object) -> bool:
    # What is no default is said of its column, and stops nothing.
    return isinstance(value, Mapping) and all(map(_is_name, value))


def _are_docs(value: object) -> bool:
    # dbt passes over other names than `relation` and `columns`, and takes any text for true.
    return isinstance(value, Mapping) and all(isinstance(is_on, bool) for is_on in value.values())


def _are_conditions(value: object) -> bool:
    if value == []:
        return True
    return isinstance(value, str | list | tuple) and _are_names(value)


class RowAudit(str):
    """An audit that tells bad rows from good ones, and stops nothing, where bad rows are set aside."""

    __slots__ = ()


def _is_audit(value: object) -> bool:
    if not isinstance(value, Mapping):
        return _is_name(value)
    return (
        set(value) in ({"sql"}, {"sql", "severity"})
        and _is_name(value["sql"])
        and value.get("severity", "run") in ("run", "row")
    )


def _are_audits(value: object) -> bool:
    return _is_audit(value) or (isinstance(value, list | tuple) and all(map(_is_audit, value)))


def _audit(value: Any) -> str:
    if not isinstance(value, Mapping):
        return str(value)
    return RowAudit(value["sql"]) if value.get("severity") == "row" else str(value["sql"])


def _audit_texts(value: Any) -> tuple[str, ...]:
    listed = [value] if isinstance(value, str | Mapping) else value or ()
    return tuple(map(_audit, listed))


_LIMIT = re.compile(r"([0-9]{1,18})|([0-9]+(?:[.][0-9]+)?) *%")


def _is_limit(value: object) -> bool:
    if isinstance(value, int):
        return not isinstance(value, bool) and value >= 0
    found = _LIMIT.fullmatch(value.strip()) if isinstance(value, str) else None
    return found is not None and (found[2] is None or Decimal(found[2]) <= 100)


@dataclass(frozen=True)
class Limit:
    """How many rows of a batch may be bad ones.

    Attributes:
        text: as the user wrote it.
        rows: the number of rows; None if it is a part of the batch.
        percent: the part of the batch, in percent.
    """

    text: str
    rows: int | None = None
    percent: Decimal = Decimal(0)

    def is_exceeded(self, bad: int, rows: int) -> bool:
        """Tell whether so many bad ones of all rows of a batch are too many."""
        return bad > self.rows if self.rows is not None else bad * 100 > self.percent * rows


def _limit(value: Any) -> Limit | None:
    if value is None:
        return None
    text = str(value).strip()
    found = _LIMIT.fullmatch(text)
    assert found is not None
    return Limit(text, int(found[1])) if found[2] is None else Limit(text, percent=Decimal(found[2]))


def _is_suffix(value: object) -> bool:
    # A batch that is staged has such a name, and is removed.
    return isinstance(value, str) and bool(re.fullmatch("[0-9A-Za-z_]+", value)) and "__dbt_tmp" not in value


def _text(value: Any) -> str | None:
    return None if value is None else str(value)


def _column(value: Any) -> str | None:
    return names.unquote(value) if value else None


def _columns(value: Any) -> tuple[str, ...]:
    """Return the names in a setting, which may be a string, a list or None, quoted or not."""
    return tuple(names.unquote(name) for name in _texts(value))


def _texts(value: Any) -> tuple[str, ...]:
    return (value,) if isinstance(value, str) and value else tuple(value or ())


def _mapping(value: Any) -> Mapping[str, Any]:
    return dict(value or {})


def _properties(value: Any) -> Mapping[str, str]:
    return {str(name): property_text(text) for name, text in (value or {}).items()}


def _same(value: Any) -> Any:
    return value


def one_of(*allowed: str, read: Callable[[Any], Any] = _same) -> Kind:
    """Return the kind of a setting that is one of some words."""
    return Kind(lambda value: isinstance(value, str) and value in allowed, ", ".join(allowed), read)


_NAMES = "the name of a column, or a list of names with at least one; leave it out for none"
SWITCH = Kind(lambda value: switch(value) is not None, "true, false", switch)
COUNT = Kind(lambda value: whole_number(value) is not None, "whole numbers from 0", whole_number)
CONDITIONS = Kind(_are_conditions, "an SQL condition, or a list of them", _texts)
AUDITS = Kind(
    _are_audits,
    "an SQL condition, or a list of them, of which each may be `{sql: condition, severity: row}` (or `run`)",
    _audit_texts,
)
SUFFIX = Kind(_is_suffix, "letters from A to Z, digits and underscores, at least one", _text)
MOST = Kind(
    _is_limit,
    "a whole number of rows, such as 100, or a part of the batch up to '100%', such as '5%'",
    _limit,
)
ANY = Kind(lambda value: True, "", _text)
COLUMN = Kind(_is_name, "the name of a column", _column, True)
COLUMNS = Kind(_are_names, _NAMES, _columns, True)
KEY = Kind(_is_key, _NAMES, _columns, True)
PARTS = Kind(_are_names_or_none, "a column, a transform such as `days(ts)`, or a list of these", _texts, True)
LOCATION = Kind(_is_name, "a location, such as `s3://bucket/folder`", _text, True)
FORMAT = Kind(_is_name, "the name of a format, such as `iceberg`", _text, True)
PROPERTIES = Kind(_are_properties, "a mapping of names to texts, numbers or booleans", _properties, True)
OPTIONS = Kind(_are_properties, "a mapping of names to texts, numbers or booleans", _mapping, True)
RENAMES = Kind(_are_renames, "a mapping of old to new names", _mapping, True)
DEFAULTS = Kind(
    _are_defaults, "a mapping of columns to SQL literals, such as `{status: \"'new'\"}`", _mapping, True
)
DOCS = Kind(
    _are_docs, "a mapping of `relation` and `columns` to true or false, without quotes", _mapping, True
)
