"""Which columns a condition names that a user has written, as far as its text tells."""

from collections.abc import Sequence

from dbt.adapters.sparkevolve.evolution.names import fold
from dbt.adapters.sparkevolve.evolution.policy import Mention
from dbt.adapters.sparkevolve.sql.dml import SOURCE_ALIAS, TARGET_ALIAS
from dbt.adapters.sparkevolve.sql.splitting import tokens

_WITH_UNIT = ("dateadd", "date_add", "datediff", "date_diff", "timestampadd", "timestampdiff")
"""Functions whose first of three arguments is the name of a unit."""


def mentions(sql: str) -> tuple[Mention, ...]:
    """Return each place in which a condition names a column of the table, or a field in one.

    What stands behind the alias of the batch is none, nor are strings, comments, functions, types and the
    units of intervals. A name without an alias counts as one of the table; an index ends the path.

    Args:
        sql: the text of the condition.
    """
    found = [(kind, sql[start:end]) for kind, start, end in tokens(sql) if kind != "space"]
    # So that what is around a name is always there.
    parts = [("", ""), ("", ""), *found, *[("", "")] * 4]
    result = []
    at = 2
    while at < len(parts) - 4:
        start = at
        at += 1
        if not _is_name(parts[start]) or parts[start - 1][1] == ".":
            continue
        path = [_name(parts[start][1])]
        while parts[at][1] == "." and _is_name(parts[at + 1], behind_dot=True):
            path.append(_name(parts[at + 1][1]))
            at += 2
        if not _is_column(parts, start, at):
            continue
        if len(path) > 1 and path[0] in (fold(SOURCE_ALIAS), fold(TARGET_ALIAS)):
            if path[0] == fold(SOURCE_ALIAS):
                continue
            del path[0]
        result.append(Mention(tuple(path), _asked(parts, start, at)))
    return tuple(result)


def _is_name(part: tuple[str, str], *, behind_dot: bool = False) -> bool:
    kind, text = part
    # Between double quotes is a string, but for `spark.sql.ansi.doubleQuotedIdentifiers`; none follows a dot.
    return (
        (kind == "word" and not _is_number(text))
        or text[:1] == "`"
        or (behind_dot and kind == "quoted" and text[0] == '"')
    )


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit()


def _name(text: str) -> str:
    if text[0] in '`"':
        return fold(text[1:-1].replace(text[0] * 2, text[0]))
    return fold(text)


def _is_column(parts: Sequence[tuple[str, str]], start: int, end: int) -> bool:
    """Tell whether a name, or several with dots between them, can be a column's."""
    before, (kind, after) = parts[start - 1], parts[end]
    if after == "(" or (kind == "quoted" and after[0] in "'\"" and parts[start][1][0] != "`"):
        return False  # a function; `date'2024-01-01'`
    # `cast(x as date)`, `x::date`; `interval 1 day`, whose unit no column can be in the place of.
    if fold(before[1]) == "as" or (before[1] == ":" and parts[start - 2][1] == ":"):
        return False
    if _is_number(before[1]) or (before[0] == "quoted" and before[1][0] != "`"):
        return False
    if fold(before[1]) == "to" and _is_name(parts[start - 2]):
        return False  # `interval '1 2' day to hour`
    return not is_unit(parts, start)


def is_unit(parts: Sequence[tuple[str, str]], start: int) -> bool:
    """Tell whether a word, as the first of a function's arguments, is the name of a unit of time.

    Args:
        parts: kinds and texts of tokens, without space, with two empty ones before the first.
        start: where the word is in these.
    """
    if parts[start - 1][1] != "(":
        return False
    function, after = fold(parts[start - 2][1]), fold(parts[start + 1][1])
    if function == "extract":
        return after == "from"
    return function in _WITH_UNIT and after == "," and _arguments(parts, start) == 3


def _arguments(parts: Sequence[tuple[str, str]], start: int) -> int:
    """Return how many arguments there are from the first one on."""
    depth, number = 0, 1
    for _, text in parts[start:]:
        depth += (text in ("(", "[")) - (text in (")", "]"))
        if depth < 0:
            break
        number += depth == 0 and text == ","
    return number


def _asked(parts: Sequence[tuple[str, str]], start: int, end: int) -> str:
    after = [fold(text) for _, text in parts[end : end + 3]]
    if after[:2] == ["is", "null"]:
        return "null"
    if after == ["is", "not", "null"]:
        return "not null"
    in_call = parts[start - 1][1] == "(" and after[0] == ")"
    return {"isnull": "null", "isnotnull": "not null"}.get(fold(parts[start - 2][1]), "") if in_call else ""
