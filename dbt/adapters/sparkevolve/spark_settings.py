"""Settings of a Spark session on which the meaning of SQL depends, and which of them are refused.

Where it can be helped, what we write means the same under every setting. What cannot be is refused as soon as
it is seen: when a connection is opened, and after each statement of a user that sets something.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass

from dbt.adapters.sparkevolve.errors import SettingError

PARTITION_OVERWRITE_MODE = "spark.sql.sources.partitionOverwriteMode"
ESCAPED_LITERALS = "spark.sql.parser.escapedStringLiterals"
SUBSTITUTE = "spark.sql.variable.substitute"

# What a user sends that changes settings; dbt puts a comment in front. `SET name` only asks.
_CHANGES = re.compile(r"(?:\s|/\*.*?\*/|--[^\n]*\n)*(?:set\b[^=]*=|reset\b)", re.IGNORECASE | re.DOTALL)


@dataclass(frozen=True)
class Refused:
    """A setting that has to stay ``false``, Spark's own value.

    Attributes:
        name: its name.
        why: what would go wrong.
    """

    name: str
    why: str


REFUSED = (
    Refused(
        "spark.sql.caseSensitive",
        "Columns are matched by name whatever the case, as Spark does by default: with it, `ID` and `id` "
        "would be two columns to Spark, and a run would fail half-way.",
    ),
    Refused(
        "spark.sql.parser.quotedRegexColumnNames",
        "With it a name in backticks is a pattern that several columns can match, and all names are written "
        "in backticks.",
    ),
    Refused(
        "spark.sql.legacy.typeCoercion.datetimeToString.enabled",
        "With it dates and times are compared with texts as texts, so that the batches of a microbatch model "
        "would have other rows than they replace.",
    ),
    Refused(
        "spark.sql.hive.thriftServer.singleSession",
        "With it all connections to the server share their settings: one would change how another overwrites "
        "partitions.",
    ),
)


def check_settings(value_of: Callable[[str], str | None]) -> None:
    """Refuse settings under which what we write would mean something else.

    Args:
        value_of: gives the value that a setting has in the session, None if it has Spark's own.

    Raises:
        SettingError: names the setting.
    """
    for refused in REFUSED:
        value = value_of(refused.name)
        if value is not None and value.strip().lower() == "true":
            raise SettingError(refused.name, value, refused.why)


def changes_settings(sql: str) -> bool:
    """Tell whether a statement is one that sets something."""
    return _CHANGES.match(sql) is not None
