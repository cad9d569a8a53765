"""Where the statements of a SQL text begin and end, as Spark's own parser sees it."""

import re
from collections.abc import Iterator

# A line comment goes on after a backslash at the end of its line, if that ends in a line feed alone. Block
# comments nest, see `_block_end`. A hint, `/*+ … */`, is none: what is in it are tokens of the statement.
_TOKEN = re.compile(
    r"""
      (?P<space>\s+ | --(?:\\\n|[^\r\n])*)
    | (?P<quoted>
          (?<!\w)[rR](?:'[^']*'|"[^"]*")
        | '(?:[^'\\]|\\.)*'
        | "(?:[^"\\]|\\.)*"
        | `(?:[^`]|``)*`
      )
    | (?P<end>;)
    | (?P<block>/\*(?!\+))
    | (?P<word>\w+)
    | (?P<other>.)
    """,
    re.VERBOSE | re.DOTALL,
)
_BLOCK_EDGE = re.compile(r"/\*(?!\+)|\*/")
# First words of statements that change no table, view or file.
_READING = frozenset(
    {"SET", "RESET", "USE", "SELECT", "VALUES", "SHOW", "DESCRIBE", "DESC", "EXPLAIN", "REFRESH"}
)
# What may follow named queries, of which Spark has these before SELECT and before DML alike.
_WRITING = frozenset({"INSERT", "MERGE", "UPDATE", "DELETE"})


def split_statements(sql: str) -> list[str]:
    """Return the statements of a text, each without its semicolon and the comments after it.

    Semicolons and comment signs inside of strings, names in backticks and comments are what they are there.
    Statements of nothing but comments are left out.
    """
    found = []
    start: int | None = None
    end = 0
    for kind, position, stop in (*tokens(sql), ("end", len(sql), len(sql))):
        if kind == "end":
            if start is not None:
                found.append(sql[start:end])
            start = None
        elif kind != "space":
            start, end = position if start is None else start, stop
    return found


def first_word(sql: str) -> str:
    """Return the first word of a statement in upper case, comments left aside; empty if it has none."""
    for kind, position, stop in tokens(sql):
        if kind == "word":
            return sql[position:stop].upper()
        if kind != "space" and sql[position:stop] != "(":
            return ""
    return ""


def reads_only(sql: str) -> bool:
    """Tell whether a statement is one that changes no table, view or file, as its words say."""
    first = first_word(sql)
    if first != "WITH":
        return first in _READING
    words = [sql[start:stop].upper() for kind, start, stop in tokens(sql) if kind != "space"]
    depth = 0
    for at, word in enumerate(words):
        depth += (word == "(") - (word == ")")
        # Named queries, and the names of their columns, stand between parentheses. They may be called by any
        # word: `WITH update AS (…) SELECT …`.
        behind = words[at + 1 : at + 2]
        if word == ")" and depth == 0 and behind and behind[0] not in (",", "AS", "MAX", "("):
            # `FROM a INSERT INTO t`
            return not _WRITING.intersection(words[at:] if behind[0] == "FROM" else behind)
    return not _WRITING.intersection(words)


def expression_problem(sql: str) -> str:
    """Return why a text is more, or less, than one expression between parentheses; empty if it is one.

    What it means is for Spark to say; this is about where it ends.
    """
    if not sql.strip():
        return "it is empty"
    depth = 0
    for kind, position, stop in tokens(sql):
        token = sql[position:stop]
        if kind == "end":
            return "it has a semicolon"
        if kind == "space" and not token.isspace():
            return "it has a comment"
        if kind == "other" and token[0] in "'\"`":
            return f"a {token[0]} is not closed"
        if kind == "other" and token.startswith("/*"):
            return "it has a comment that is not closed"
        if token in "([{":
            depth += 1
        elif token in ")]}":
            depth -= 1
        if depth < 0:
            return f"a {token} closes nothing"
        if token == "," and depth == 0:
            return "it has a comma outside of parentheses"
    return "a parenthesis or bracket is not closed" if depth else ""


def tokens(sql: str) -> Iterator[tuple[str, int, int]]:
    """Yield the kind, the start and the end of each token; block comments count as space.

    One that is not closed does not: cut off, it would take what follows it away, and Spark would not say so.
    Kinds are `space`, `quoted`, `end` (a semicolon), `word` (numbers too) and `other`.
    """
    position = 0
    while position < len(sql):
        match = _TOKEN.match(sql, position)
        assert match is not None
        kind, stop = str(match.lastgroup), match.end()
        if kind == "block":
            end = _block_end(sql, position)
            kind, stop = ("space", end) if end is not None else ("other", len(sql))
        yield kind, position, stop
        position = stop


def _block_end(sql: str, start: int) -> int | None:
    """Return where the block comment that begins at ``start`` ends; None if it does not.

    Another one in it nests; a hint in it does not, and ends both.
    """
    depth, position = 0, start
    while (edge := _BLOCK_EDGE.search(sql, position)) is not None:
        depth += 1 if edge[0] == "/*" else -1
        position = edge.end()
        if depth == 0:
            return position
    return None
