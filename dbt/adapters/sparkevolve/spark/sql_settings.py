"""Settings of a Spark session on which the meaning of SQL depends, and which of them are refused.

Where it can be helped, what we write means the same under every setting. What cannot be is refused as soon as
it is seen: when a connection is opened, and after each statement of a user that sets something.
"""

import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Protocol

from dbt.adapters.sparkevolve.errors import SettingError

PARTITION_OVERWRITE_MODE = "spark.sql.sources.partitionOverwriteMode"
ESCAPED_LITERALS = "spark.sql.parser.escapedStringLiterals"
SUBSTITUTE = "spark.sql.variable.substitute"

# What a user sends that changes settings; dbt puts a comment in front. `SET name` only asks. A comment
# ends where it first can, or a query with many of them would take minutes to look at.
_CHANGES = re.compile(
    r"(?:\s|/\*(?:(?!\*/).)*\*/|--[^\n]*\n)*(?:set\b[^=]*=|reset\b)", re.IGNORECASE | re.DOTALL
)


@dataclass(frozen=True)
class Refused:
    """A value that a setting must not have.

    Attributes:
        name: the setting's name.
        why: what would go wrong.
        value: the value.
        instead: Spark's own value.
    """

    name: str
    why: str
    value: str = "true"
    instead: str = "false"


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
        "spark.sql.storeAssignmentPolicy",
        "Spark inserts no row into an Iceberg table with it: a first run would succeed, the next ones fail.",
        value="LEGACY",
        instead="ANSI",
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
        if value is not None and value.strip().lower() == refused.value.lower():
            raise SettingError(refused.name, value, refused.why)


class Changeable(Protocol):
    """A connection whose settings can be changed."""

    def change_setting(self, name: str, value: str | None) -> str | None:
        """Give a setting a value, or with None the one of Spark; return what was set, None if nothing was."""


# What cuts texts out of a plan, or replaces them.
_WHOLE_PLANS = {
    "spark.sql.maxPlanStringLength": "2147483632",
    "spark.sql.debug.maxToStringFields": "1000000",
    "spark.sql.redaction.string.regex": "(?!)",
}
_EXPLAINING = threading.Lock()


@contextmanager
def whole_plans(connection: Changeable) -> Iterator[None]:
    """Have EXPLAIN show all of a plan meanwhile: none of these settings changes what a statement does."""
    # One after the other: the threads of a session share its settings.
    with _EXPLAINING:
        before = {name: connection.change_setting(name, value) for name, value in _WHOLE_PLANS.items()}
        try:
            yield
        finally:
            for name, value in before.items():
                connection.change_setting(name, value)


def may_lack_names(plan: str) -> bool:
    """Tell whether Spark has taken something out of the text of a plan."""
    return any(sign in plan for sign in ("Truncated plan of", "*(redacted)"))


def value_instead(name: str) -> str:
    """Return Spark's own value of a setting that is refused."""
    return next(refused.instead for refused in REFUSED if refused.name == name)


def changes_settings(sql: str) -> bool:
    """Tell whether a statement is one that sets something."""
    return _CHANGES.match(sql) is not None
