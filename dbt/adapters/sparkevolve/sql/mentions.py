"""Which columns a condition names that a user has written, as far as its text tells."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from dbt.adapters.sparkevolve.evolution.names import Path, fold
from dbt.adapters.sparkevolve.evolution.policy import Mention
from dbt.adapters.sparkevolve.sql.dml import SOURCE_ALIAS, TARGET_ALIAS
from dbt.adapters.sparkevolve.sql.splitting import tokens

KEYWORDS = frozenset(
    {"all", "and", "any", "between", "case", "cast", "distinct", "div", "else", "end", "escape", "exists"}
    | {
        "false",
        "from",
        "ilike",
        "in",
        "interval",
        "is",
        "like",
        "not",
        "null",
        "or",
        "regexp",
        "rlike",
        "some",
    }
    | {"then", "true", "when"}
)
"""Words of expressions that a column may be called, too."""
_WITH_UNIT = ("dateadd", "date_add", "datediff", "date_diff", "timestampadd", "timestampdiff")
"""Functions whose first of three arguments is the name of a unit."""
_BEFORE_OPERANDS = (KEYWORDS - {"end", "false", "null", "true"}) | {
    *("both", "by", "for", "from", "having", "join", "leading", "limit", "offset", "on", "over", "placing"),
    *("select", "trailing", "using", "where", "with"),
}
"""Words behind which a column may stand."""
_BEHIND_NAMES = frozenset(("", ")", "]", ",", ".", "=", "<", ">", "!", "|", "&", "/", "%", ":"))
"""What may stand behind a column's name, and not behind the word SELECT."""
_CLOSES = {"(": ")", "[": "]", "case": "end"}

Part = tuple[str, str]


@dataclass
class _Found:
    """A mention that was found, from the token ``start`` to the one before ``end``."""

    path: Path
    asked: str
    start: int
    end: int
    is_qualified: bool = False
    or_null: list[Path] = field(default_factory=list)

    def is_test(self, first: int, end: int, is_call: bool) -> bool:
        """Tell whether it is asked in these tokens, and nothing else, whether it is NULL."""
        whole = (self.start - 2, self.end + 1) if is_call else (self.start, self.end + 2)
        return self.asked == "null" and whole == (first, end)


@dataclass
class _Node:
    """A part of a condition that has been read: what is mentioned, and of what NULL makes it true."""

    found: list[_Found] = field(default_factory=list)
    true_if_null: list[Path] = field(default_factory=list)


@dataclass
class _Group:
    """What stands between two parentheses, or in the whole text, as far as it has been read.

    Attributes:
        opened_by: the token that opens it; empty for the whole text.
        start: where it begins.
        branches: what stands between ORs.
        links: what stands between the ANDs of the branch.
        found: what is mentioned in the operand that is being read.
        first: where that begins.
        size: how many tokens and groups are in it.
        has_group: whether there is a group in it.
        inner: the last one; None if that is no operand.
        betweens: how many BETWEENs in it wait for their AND.
    """

    opened_by: str
    start: int
    branches: list[_Node] = field(default_factory=list)
    links: list[_Node] = field(default_factory=list)
    found: list[_Found] = field(default_factory=list)
    first: int = 0
    size: int = 0
    has_group: bool = False
    inner: _Node | None = None
    betweens: int = 0

    def begin(self, start: int) -> None:
        """Begin to read an operand."""
        self.found, self.first, self.size, self.betweens = [], start, 0, 0
        self.has_group, self.inner = False, None

    def end_operand(self, end: int) -> None:
        """End an operand of AND or OR."""
        node = _Node(self.found)
        if self.size == 1 and self.inner is not None:
            node = self.inner
        else:
            # `isnull(…)`, or `… IS NULL`.
            tested = [f for f in self.found if f.is_test(self.first, end, is_call=self.has_group)]
            node.true_if_null = [f.path for f in tested]
            for f in self.found:
                # Of an OR in it nothing is known, since there may be a NOT around that.
                f.or_null = list(node.true_if_null)
        self.links.append(node)

    def end_branch(self, end: int) -> None:
        """End an operand of OR."""
        self.end_operand(end)
        node = self.links[0]
        if len(self.links) > 1:
            node = _Node([f for link in self.links for f in link.found])
        self.branches.append(node)
        self.links = []

    def end(self, end: int) -> _Node:
        """End the group."""
        self.end_branch(end)
        node = _Node(
            [f for branch in self.branches for f in branch.found],
            [path for branch in self.branches for path in branch.true_if_null],
        )
        if len(self.branches) > 1:
            for f in node.found:
                f.or_null += node.true_if_null
        return node


def mentions(sql: str) -> tuple[Mention, ...]:
    """Return each place in which a condition names a column of the table, or a field in one.

    What stands behind the alias of the batch is none, nor are strings, comments, functions, types and the
    units of intervals. A name without an alias counts as one of the table; an index ends the path.

    Args:
        sql: the text of the condition.
    """
    read = solid_tokens(sql)
    # So that what is around a name is always there.
    parts = [("", ""), ("", ""), *read, *[("", "")] * 4]
    result: list[_Found] = []
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
        is_qualified = len(path) > 1 and path[0] in (fold(SOURCE_ALIAS), fold(TARGET_ALIAS))
        if is_qualified:
            if path[0] == fold(SOURCE_ALIAS):
                continue
            del path[0]
        result.append(_Found(tuple(path), _asked(parts, start, at), start, at, is_qualified))
    _find_alternatives(parts, result)
    is_alone, in_types = not _has_query(read) and not _has_parameters(read), _in_types(parts)
    return tuple(
        Mention(
            f.path,
            f.asked,
            tuple(f.or_null),
            is_of_table=f.is_qualified
            or (is_alone and f.start not in in_types and not _may_be_word(parts[f.start])),
        )
        for f in result
    )


def solid_tokens(sql: str) -> list[Part]:
    """Return the kinds and texts of the tokens of a text, without space."""
    return [(kind, sql[start:end]) for kind, start, end in tokens(sql) if kind != "space"]


def has_query(sql: str) -> bool:
    """Tell whether there is a query in a text, in which names may be those of other tables.

    `FROM` may begin one, and is within a few functions, too (`extract(year FROM x)`).
    """
    return _has_query(solid_tokens(sql))


def has_select(sql: str) -> bool:
    """Tell whether there is a query in a text for sure: `select` may be the name of a column, too."""
    # So that what is around a word is always there.
    parts = [("other", ""), ("other", ""), ("other", ""), *solid_tokens(sql), ("other", "")]
    texts = [fold(text) for _, text in parts]
    return any(
        texts[at - 1 : at + 1] == ["(", "select"]
        and texts[at + 1] not in _BEHIND_NAMES
        # An argument of a function is none.
        and (texts[at - 2] == "as" or not _ends_operand(parts, at - 2))
        for at in range(3, len(parts) - 1)
    )


def names_word(sql: str, name: str) -> bool:
    """Tell whether a name stands anywhere in a text, as that of a column, a table or anything else."""
    return any(_is_name(part, behind_dot=True) and _name(part[1]) == fold(name) for part in solid_tokens(sql))


def _has_query(parts: Sequence[Part]) -> bool:
    before = "("
    for kind, text in parts:
        word = fold(text) if kind == "word" else ""
        if word == "select" or (word == "from" and before == "("):
            return True
        before = text
    return False


def _has_parameters(parts: Sequence[Part]) -> bool:
    """Tell whether there is a function in a text whose parameters have names: `x -> x > 1`."""
    texts = [text for _, text in parts]
    return ("-", ">") in pairwise(texts)


def _may_be_word(part: Part) -> bool:
    """Tell whether a name without an alias may be a word of SQL."""
    # As the end of a CASE it is no mention.
    return fold(part[1]) in KEYWORDS - {"end"}


def _in_types(parts: Sequence[Part]) -> set[int]:
    """Return where the tokens are that stand inside of types: `map<string, struct<x: date>>`."""
    found: set[int] = set()
    depth = 0
    for at, (_, text) in enumerate(parts):
        before, word = (fold(parts[at - back][1]) for back in (2, 1))
        begins = text == "<" and word in ("array", "map", "struct") and before in ("as", ":")
        if begins or (depth and text == "<"):
            depth += 1
        elif depth and text == ">":
            depth -= 1
        if depth:
            found.add(at)
    return found


def _find_alternatives(parts: Sequence[Part], found: Sequence[_Found]) -> None:
    """Find out for each mention whose NULL makes true what it stands in, as far as ANDs and ORs tell."""
    starts = {f.start: f for f in found}
    groups = [_Group("", 2)]
    groups[0].begin(2)
    end = len(parts) - 4
    for at in range(2, end):
        text, group = parts[at][1], groups[-1]
        word = fold(text) if parts[at - 1][1] != "." else ""
        if word == "end" and at in starts:
            word = ""
        if at in starts:
            group.found.append(starts[at])
        if word in _CLOSES:
            groups.append(_Group(word, at))
            groups[-1].begin(at + 1)
        elif word in _CLOSES.values():
            if word != _CLOSES.get(group.opened_by):
                # `CASE` or `END` may be a name.
                groups.clear()
                break
            node = group.end(at)
            groups.pop()
            outer = groups[-1]
            outer.found += node.found
            outer.size += 1
            outer.has_group = True
            # A query has conditions of its own.
            is_query = fold(parts[group.start + 1][1]) in ("select", "from", "with", "values", "table")
            outer.inner = node if word == ")" and not is_query else None
        elif word == "or":
            group.end_branch(at)
            group.begin(at + 1)
        elif word == "and" and not group.betweens:
            group.end_operand(at)
            group.begin(at + 1)
        else:
            group.betweens += (word == "between") - (word == "and")
            group.size += 1
    if len(groups) == 1:
        groups[0].end(end)
    else:
        for f in found:
            f.or_null = []


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
    if fold(parts[start][1]) == "end" and end == start + 1 and _ends_operand(parts, start - 1):
        return False  # `case when x then y end`
    return not is_unit(parts, start)


def _ends_operand(parts: Sequence[tuple[str, str]], at: int) -> bool:
    """Tell whether something has ended for sure behind which no column may stand without an operator."""
    kind, text = parts[at]
    if kind == "word":
        return fold(text) not in _BEFORE_OPERANDS or parts[at - 1][1] == "."
    return kind == "quoted" or text in (")", "]")


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
