"""A column's default as a user writes it, and the value of the column's type that it is.

Only literals are values: everything else, however constant it looks, is left out with a reason. What a
literal says does not depend on a setting of the session, but for a time without a time zone: for a column of
instants it is that time in the session's time zone, as in a query of Spark's.
"""

import json
import re
import struct
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from typing import Any

from pyiceberg.types import (
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IcebergType,
    IntegerType,
    LongType,
    PrimitiveType,
    StringType,
    TimestampType,
    TimestamptzType,
    TimeType,
    UUIDType,
)

from dbt.adapters.sparkevolve.evolution.names import constant_literal, string_literal
from dbt.adapters.sparkevolve.evolution.types import spark_type, type_text

_LONGEST_SHOWN = 60

# What stands before a literal of a type, or nothing, and its text in single quotes, where a quote is doubled
# or escaped. Adjacent literals do not match: Spark would concatenate them.
_QUOTED = re.compile(
    r"(?:(?P<type>DATE|TIMESTAMP_NTZ|TIMESTAMP_LTZ|TIMESTAMP|TIME|JSON|UUID)\s*)?"
    r"'(?P<text>(?:[^'\\]|''|\\.)*)'",
    re.IGNORECASE | re.DOTALL,
)
_NUMBER = re.compile(r"(?P<sign>[+-]?)[ \t]*(?P<digits>[0-9]+\.?[0-9]*|\.[0-9]+)")
_SCIENTIFIC = re.compile(r"[+-]?[ \t]*(?:[0-9]+\.?[0-9]*|\.[0-9]+)[eE][+-]?[0-9]+")
_WORD = re.compile(r"[^\W\d]\w*")
_CALL = re.compile(r"[\w.`]+\s*\(")
# As Spark reads a string: an octal of up to \177, a character by its number, or one that stands for itself.
_ESCAPE = re.compile(
    r"''|\\(?:(?P<octal>[01][0-7]{2})|u(?P<short>[0-9a-fA-F]{4})|U(?P<long>[0-9a-fA-F]{8})|(?P<char>.))",
    re.DOTALL,
)
_ESCAPED = {"0": "\0", "b": "\b", "n": "\n", "r": "\r", "t": "\t", "Z": "\x1a", "%": "\\%", "_": "\\_"}
_DATE = re.compile(r"([0-9]{4})-([0-9]{2})-([0-9]{2})")
_TIME = re.compile(r"([0-9]{2}):([0-9]{2})(?::([0-9]{2})(?:\.([0-9]{1,9}))?)?")
_ZONE = re.compile(r" ?(?:(?P<utc>Z|UTC)|(?P<sign>[+-])(?P<hours>[0-9]{2}):(?P<minutes>[0-9]{2}))")
_TIMESTAMP = re.compile(
    rf"(?P<date>{_DATE.pattern})(?:[ T](?P<time>{_TIME.pattern})(?P<zone>{_ZONE.pattern})?)?"
)
_UUID = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
# What a column of instants takes.
_INSTANTS = ("text", "timestamp", "timestamp_ltz", "date")
_RANGES: dict[type[IcebergType], int] = {IntegerType: 2**31, LongType: 2**63}
_WANTED = (
    "a text in single quotes, a number, true, false, or DATE, TIME, TIMESTAMP, JSON or UUID before a text in "
    "single quotes"
)


class UnsupportedDefault(ValueError):
    """A default that is no literal of its column's type; the message says why, as the end of a sentence."""


@dataclass(frozen=True)
class LocalTime:
    """A default that names a time and no time zone, and which instant that is in the session of the run.

    Attributes:
        given: the default as it was written.
        instant: when it is that time in the session's time zone.
    """

    given: object
    instant: datetime


@dataclass(frozen=True)
class DefaultValue:
    """The value of a literal.

    Attributes:
        type: the column's type.
        value: the value, as PyIceberg has one in a schema.
    """

    type: PrimitiveType
    value: Any

    @property
    def sql(self) -> str:
        """A Spark SQL expression of the value, the same under every setting."""
        if isinstance(self.type, StringType | UUIDType):
            return string_literal(str(self.value))
        if isinstance(self.value, bytes):
            return self._text
        return f"CAST('{self._text}' AS {spark_type(self.type)})"

    @property
    def _text(self) -> str:
        if isinstance(self.value, bool):
            return str(self.value).lower()
        if isinstance(self.value, bytes):
            return f"X'{self.value.hex().upper()}'"
        if isinstance(self.value, datetime):
            return self.value.isoformat(sep=" ")
        return format(self.value, "f") if isinstance(self.value, Decimal) else str(self.value)

    def __str__(self) -> str:
        if isinstance(self.value, bool | int | float | Decimal):
            return self._text
        if isinstance(self.value, bytes):
            return shown_default(self._text)
        return shown_default(constant_literal(self._text) or "")


def same_default(one: Any, other: Any, type_: IcebergType) -> bool:
    """Tell whether two values of a schema's defaults are the same, each a value of PyIceberg's or None."""
    if one is None or other is None:
        return one is other
    if isinstance(type_, FloatType):
        return single_precision(one) == single_precision(other)
    return bool(one == other)


def shown_default(given: object) -> str:
    """Return a default as it is written, for a message: in one line, and not at any length."""
    if isinstance(given, LocalTime):
        given = given.given
    text = given if isinstance(given, str) else _yaml_text(given)
    text = " ".join(text.split())
    return text if len(text) <= _LONGEST_SHOWN else f"{text[: _LONGEST_SHOWN - 1]}…"


def _yaml_text(given: object) -> str:
    if given is None:
        return "null"
    return str(given).lower() if isinstance(given, bool) else str(given)


def read_default(given: object, type_: IcebergType) -> DefaultValue | None:
    """Return the value of a default for a column; None for NULL, which is none.

    Args:
        given: the SQL of a literal, or a value that YAML has read; a ``LocalTime`` of either.
        type_: the type of the column.

    Raises:
        UnsupportedDefault: it is no literal, or no value of this type; the message says which.
    """
    if isinstance(given, LocalTime) and isinstance(type_, TimestamptzType):
        return DefaultValue(type_, given.instant)
    if isinstance(given, LocalTime):
        given = given.given
    if given is None or (isinstance(given, str) and given.strip().upper() == "NULL"):
        return None
    if not isinstance(type_, PrimitiveType) or type(type_) not in _READERS:
        raise UnsupportedDefault(f"a column of the type {type_text(type_)} cannot have one")
    literal = _parse(given.strip()) if isinstance(given, str) else _of_yaml(given)
    return DefaultValue(type_, _READERS[type(type_)](literal, type_))


def local_time(given: object) -> datetime | None:
    """Return the time that a default names without a time zone; None if it is another literal, or none.

    Args:
        given: see ``read_default``.
    """
    if given is None:
        return None
    try:
        literal = _parse(given.strip()) if isinstance(given, str) else _of_yaml(given)
        if literal.kind not in _INSTANTS:
            return None
        moment = _moment(str(literal.value))
    except UnsupportedDefault:
        return None
    return moment if moment.tzinfo is None else None


@dataclass(frozen=True)
class _Literal:
    """A literal, before it is known what column it is for.

    Attributes:
        kind: ``number``, ``boolean``, ``text``, ``date``, ``time``, ``timestamp``, ``timestamp_ntz``,
            ``timestamp_ltz``, ``json`` or ``uuid``.
        value: a Decimal, a bool, or the text between the quotes.
    """

    kind: str
    value: Any


def _parse(text: str) -> _Literal:
    if match := _NUMBER.fullmatch(text):
        return _Literal("number", Decimal(match["sign"] + match["digits"]))
    if text.lower() in ("true", "false"):
        return _Literal("boolean", text.lower() == "true")
    if match := _TIMESTAMP.fullmatch(text):
        # As YAML writes one, which dbt hands on as text.
        return _Literal("timestamp" if match["time"] else "date", text)
    if match := _QUOTED.fullmatch(text):
        return _Literal((match["type"] or "text").lower(), _unescaped(match["text"]))
    raise UnsupportedDefault(_why_no_literal(text))


def _why_no_literal(text: str) -> str:
    if not text:
        return "it is empty: write '' in single quotes for an empty text"
    if _SCIENTIFIC.fullmatch(text):
        return "a number has to be written out, without an exponent"
    if text.startswith('"') and text.endswith('"'):
        return "double quotes are those of a name or of a text, as the session is set: use single quotes"
    if _WORD.fullmatch(text):
        return (
            "it is a name and no literal. A text stands in single quotes of its own, which YAML leaves only "
            f"inside of double ones: \"'{text}'\""
        )
    what = "a function or an expression" if _CALL.match(text) else "no literal"
    return f"it is {what}. A default is {_WANTED}"


def _of_yaml(given: object) -> _Literal:
    if isinstance(given, bool):
        return _Literal("boolean", given)
    if isinstance(given, float):
        if given != given or given in (float("inf"), float("-inf")):
            raise UnsupportedDefault("it is not a finite number")
        return _Literal("number", Decimal(repr(given)))
    if isinstance(given, int | Decimal):
        number = Decimal(given)
        if not number.is_finite():
            raise UnsupportedDefault("it is not a finite number")
        return _Literal("number", number)
    if isinstance(given, datetime):
        return _Literal("timestamp", given.isoformat(sep=" "))
    if isinstance(given, date):
        return _Literal("date", given.isoformat())
    raise UnsupportedDefault(f"it is a {type(given).__name__} of YAML. A default is {_WANTED}")


def _unescaped(text: str) -> str:
    """Return what a string in single quotes says to Spark, by its own default settings."""

    def character(match: re.Match[str]) -> str:
        if match[0] == "''":
            return "'"
        if match["char"] is not None:
            return _ESCAPED.get(match["char"], match["char"])
        number = int(match["octal"], 8) if match["octal"] else int(match["short"] or match["long"], 16)
        if number > 0x10FFFF:
            raise UnsupportedDefault("it has an escape that is no character")
        return chr(number)

    unescaped = _ESCAPE.sub(character, text)
    try:
        return unescaped.encode("utf-16", "surrogatepass").decode("utf-16")
    except UnicodeDecodeError:
        raise UnsupportedDefault("it has half of a character in it, which no table can store") from None


def _misfit(literal: _Literal, type_: IcebergType) -> UnsupportedDefault:
    return UnsupportedDefault(f"it is a {literal.kind}, and the column is {type_text(type_)}")


def _text_of(literal: _Literal, type_: IcebergType) -> str:
    if literal.kind == "text":
        return str(literal.value)
    if literal.kind == "json":
        try:
            json.loads(literal.value)
        except (ValueError, RecursionError):
            raise UnsupportedDefault("its text is no JSON") from None
        return str(literal.value)
    if literal.kind == "uuid":
        return str(_uuid_of(literal, UUIDType()))
    if literal.kind == "time":
        # Spark's TIME is stored as its text.
        text = _clock(str(literal.value)).isoformat()
        return text.rstrip("0") if "." in text else text
    raise _misfit(literal, type_)


def _boolean_of(literal: _Literal, type_: IcebergType) -> bool:
    if literal.kind != "boolean":
        raise _misfit(literal, type_)
    return bool(literal.value)


def _number(literal: _Literal, type_: IcebergType) -> Decimal:
    if literal.kind != "number":
        raise _misfit(literal, type_)
    number: Decimal = literal.value
    return number


def _integer_of(literal: _Literal, type_: IcebergType) -> int:
    number, bound = _number(literal, type_), _RANGES[type(type_)]
    # Not by way of an integer of any size: an exponent may make one of a billion digits.
    if number and number.adjusted() > 20:
        raise UnsupportedDefault(f"it is out of the range of {type_text(type_)}")
    if number != int(number):
        raise UnsupportedDefault(f"it has a fraction, and the column is {type_text(type_)}")
    if not -bound <= number < bound:
        raise UnsupportedDefault(f"it is out of the range of {type_text(type_)}")
    return int(number)


def _decimal_of(literal: _Literal, type_: IcebergType) -> Decimal:
    assert isinstance(type_, DecimalType)
    sign, digits, exponent = _number(literal, type_).as_tuple()
    assert isinstance(exponent, int)
    significant = "".join(map(str, digits)).lstrip("0")
    stripped = significant.rstrip("0")
    exponent += len(significant) - len(stripped)
    if not stripped:
        return Decimal((0, (0,), -type_.scale))
    if -exponent > type_.scale:
        raise UnsupportedDefault(f"it has more decimal places than {type_text(type_)}")
    if len(stripped) + exponent > type_.precision - type_.scale:
        raise UnsupportedDefault(f"it is out of the range of {type_text(type_)}")
    padded = stripped + "0" * (exponent + type_.scale)
    return Decimal((sign, tuple(map(int, padded)), -type_.scale))


def _float_of(literal: _Literal, type_: IcebergType) -> float:
    number = _number(literal, type_)
    try:
        nearest = (
            _shortest(single_precision(float(number))) if isinstance(type_, FloatType) else float(number)
        )
    except OverflowError:
        nearest = float("inf")
    if nearest in (float("inf"), float("-inf")) or (number and not nearest):
        raise UnsupportedDefault(f"it is out of the range of {type_text(type_)}")
    exact = single_precision(nearest) if isinstance(type_, FloatType) else nearest
    if number == number.to_integral_value() and Decimal(exact) != number:
        raise UnsupportedDefault(f"{type_text(type_)} has no such whole number")
    # There is no negative zero in SQL.
    return nearest or 0.0


def single_precision(number: float) -> float:
    """Return the number that a float is for the digits of another one."""
    single: float = struct.unpack("<f", struct.pack("<f", number))[0]
    return single


def _shortest(single: float) -> float:
    """Return the number of the fewest digits that is this number in single precision."""
    candidates = (float(f"{single:.{digits}g}") for digits in range(6, 9))
    return next((number for number in candidates if single_precision(number) == single), single)


def _date_of(literal: _Literal, type_: IcebergType) -> date:
    if literal.kind not in ("text", "date"):
        raise _misfit(literal, type_)
    return _day(str(literal.value))


def _day(text: str) -> date:
    match = _DATE.fullmatch(text)
    try:
        if match is not None:
            return date(*map(int, match.groups()))
    except ValueError:
        pass
    raise UnsupportedDefault(f"{shown_default(text)} is no date such as 2024-01-31")


def _time_of(literal: _Literal, type_: IcebergType) -> time:
    if literal.kind not in ("text", "time"):
        raise _misfit(literal, type_)
    return _clock(str(literal.value))


def _clock(text: str) -> time:
    match = _TIME.fullmatch(text)
    try:
        if match is not None:
            hour, minute, second, fraction = match.groups()
            digits = (fraction or "").ljust(9, "0")
            if digits[6:] != "000":
                raise UnsupportedDefault("it is more exact than a microsecond")
            return time(int(hour), int(minute), int(second or 0), int(digits[:6]))
    except UnsupportedDefault:
        raise
    except ValueError:
        pass
    raise UnsupportedDefault(f"{shown_default(text)} is no time such as 23:59:59")


def _timestamp_of(literal: _Literal, type_: IcebergType) -> datetime:
    if literal.kind not in ("text", "timestamp", "timestamp_ntz", "date"):
        raise _misfit(literal, type_)
    moment = _moment(str(literal.value))
    if moment.tzinfo is not None:
        raise UnsupportedDefault(f"it has a time zone, and the column is {type_text(type_)}: leave it out")
    return moment


def _timestamptz_of(literal: _Literal, type_: IcebergType) -> datetime:
    if literal.kind not in _INSTANTS:
        raise _misfit(literal, type_)
    moment = _moment(str(literal.value))
    if moment.tzinfo is None:
        raise UnsupportedDefault(
            "it names no time zone, and which instant it is in the session's is not known: add one, as in "
            "TIMESTAMP '2024-01-31 12:00:00+00:00'"
        )
    try:
        return moment.astimezone(timezone.utc)
    except OverflowError:
        raise UnsupportedDefault(f"it is out of the range of {type_text(type_)}") from None


def _moment(text: str) -> datetime:
    match = _TIMESTAMP.fullmatch(text)
    if match is None:
        raise UnsupportedDefault(
            f"{shown_default(text)} is no timestamp such as 2024-01-31 23:59:59 or 2024-01-31 23:59:59+01:00"
        )
    moment = datetime.combine(_day(match["date"]), _clock(match["time"]) if match["time"] else time())
    if not match["zone"]:
        return moment
    if match["utc"]:
        return moment.replace(tzinfo=timezone.utc)
    hours, minutes = int(match["hours"]), int(match["minutes"])
    # Spark's zones reach as far.
    if hours * 60 + minutes > 18 * 60 or minutes > 59:
        raise UnsupportedDefault(f"{shown_default(match['zone'])} is no offset of a time zone")
    offset = timedelta(hours=hours, minutes=minutes)
    return moment.replace(tzinfo=timezone(-offset if match["sign"] == "-" else offset))


def _uuid_of(literal: _Literal, type_: IcebergType) -> uuid.UUID:
    if literal.kind not in ("text", "uuid"):
        raise _misfit(literal, type_)
    if _UUID.fullmatch(literal.value) is None:
        raise UnsupportedDefault("its text is no uuid")
    return uuid.UUID(literal.value)


_READERS: dict[type[IcebergType], Callable[[_Literal, IcebergType], Any]] = {
    StringType: _text_of,
    BooleanType: _boolean_of,
    IntegerType: _integer_of,
    LongType: _integer_of,
    DecimalType: _decimal_of,
    FloatType: _float_of,
    DoubleType: _float_of,
    DateType: _date_of,
    TimeType: _time_of,
    TimestampType: _timestamp_of,
    TimestamptzType: _timestamptz_of,
    UUIDType: _uuid_of,
}
