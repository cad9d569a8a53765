"""DDL: names, types and words of a configuration, of which none becomes SQL of its own, and descriptions."""

import re
from collections.abc import Mapping, Sequence
from types import MappingProxyType

from dbt.adapters.sparkevolve.evolution.names import dotted_levels, quote
from dbt.adapters.sparkevolve.evolution.partitions import column_key, parse_call, split_terms

_PLAIN_WORD = re.compile(r"\w+")
_WORD = re.compile(r"\w+(?:\.\w+)*")
_QUOTED = re.compile(r"`(?:[^`]|``)*`|'(?:[^'\\]|\\.)*'", re.DOTALL)
_TYPE_CHARACTERS = re.compile(r"[\w\s<>(),:`'.]*")
_OPEN = {"(": ")", "<": ">"}


def name_sql(text: str) -> str:
    """Return the name of a column, or the path of a field, with each part in backticks.

    What is no path of words and of names in backticks is one name, with whatever is in it.
    """
    stripped = text.strip()
    levels = dotted_levels(stripped) or ()
    if levels and all(is_quoted or _PLAIN_WORD.fullmatch(name) for name, is_quoted in levels):
        return ".".join(quote(name) for name, _ in levels)
    return quote(stripped)


def partition_sql(
    partition_by: str | Sequence[str], spelled: Mapping[str, str] = MappingProxyType({})
) -> list[str]:
    """Return what a table is partitioned by, one term an item: a name, or a transform of one.

    Args:
        partition_by: as a model says it.
        spelled: the columns and fields of the table as SQL, by ``partitions.column_key``. Spark minds the
            case of a name in a transform.
    """
    listed = [partition_by] if isinstance(partition_by, str) else list(partition_by)
    return [_term(text.strip(), spelled) for item in listed for text in split_terms(str(item))]


def _term(text: str, spelled: Mapping[str, str]) -> str:
    call = parse_call(text)
    if call is None:
        return spelled.get(column_key(text)) or name_sql(text)
    function, arguments = call
    names = (
        a if a.isdigit() else spelled.get(column_key(a)) or name_sql(a) for a in map(str.strip, arguments)
    )
    return f"{function}({', '.join(names)})"


def is_word(text: str) -> bool:
    """Tell whether a text is a word, or a few with dots between them, such as the name of a format."""
    return _WORD.fullmatch(text) is not None


def is_type(text: str) -> bool:
    """Tell whether a text can be the type of one column, and nothing beside it."""
    depth: list[str] = []
    bare = _QUOTED.sub("q", text)
    if not bare.strip() or not _TYPE_CHARACTERS.fullmatch(bare) or "`" in bare or "'" in bare:
        return False
    for character in bare:
        if character in _OPEN:
            depth.append(_OPEN[character])
        elif character in _OPEN.values():
            if not depth or depth.pop() != character:
                return False
        elif character == "," and not depth:
            return False
    return not depth


def create_empty(table: str, columns: Sequence[tuple[str, str]], clauses: str) -> str:
    """Return the statement that makes a table without rows.

    Args:
        table: its rendered name.
        columns: names and types.
        clauses: what else it says of the table.
    """
    listed = ", ".join(f"{quote(name)} {type_}" for name, type_ in columns)
    return f"CREATE TABLE {table} ({listed})\n{clauses.strip()}"


def describe(table: str, comment: str | None, docs: Mapping[str, str]) -> list[str]:
    """Return the statements that give a table and its columns descriptions, each a commit of its own.

    Args:
        table: the rendered name of the table.
        comment: the literal of its description; None to leave it as it is.
        docs: the literals of those of columns, by name.
    """
    alter = f"ALTER TABLE {table}"
    of_columns = [f"{alter} ALTER COLUMN {quote(name)} COMMENT {doc}" for name, doc in docs.items()]
    return [f"{alter} SET TBLPROPERTIES ('comment' = {comment})", *of_columns] if comment else of_columns
