"""Column names: how two are compared, which ones cannot be used, and how one is written in Spark SQL."""

import hashlib
import re
from collections.abc import Iterable
from itertools import count

# The path of a column or field: its name, after those of the structs, lists and maps that it is in.
Path = tuple[str, ...]

# What is one name without quotes around it; and what is so in YAML, too, which has other meanings for `on`.
_NAME = re.compile(r"[A-Za-z_]\w*")
_WORD = re.compile(r"(?!(?:y|n|yes|no|on|off|true|false|null)$)[A-Za-z_]\w*", re.IGNORECASE)

# A level of a dotted path: in backticks, where two stand for one, or without them.
_LEVEL = re.compile(r"`((?:[^`]|``)+)`|([^.`][^.]*)")

# What a Spark SQL literal says under every setting. A backslash or a quote in one depends on
# `spark.sql.parser.escapedStringLiterals`, and `${` on `spark.sql.variable.substitute`.
_PLAIN = re.compile(r"(?:[^\\'$\x00-\x08\x0b-\x1f\x7f]|\$(?!\{))*")

# Iceberg keeps these names for the metadata columns of every table (spec, "Reserved Field IDs", and
# MetadataColumns of the Java library). A table with a column of such a name can be made, but Spark can
# then neither select from it nor delete from it.
RESERVED_NAMES = frozenset(
    {
        "_file",
        "_pos",
        "_deleted",
        "_spec_id",
        "_partition",
        "_row_id",
        "_last_updated_sequence_number",
        "_change_type",
        "_change_ordinal",
        "_commit_snapshot_id",
    }
)


# Stands in a name between two others, see `name_between`.
_BETWEEN = "__sparkevolve_rename_"


def fold(name: str) -> str:
    """Return the form in which two names are compared.

    Spark compares with ``toLowerCase(Locale.ROOT)``, which ``str.lower()`` equals. ``str.casefold()``
    would merge names that Spark keeps apart, such as ``straße`` and ``STRASSE``.
    """
    return name.lower()


def is_reserved(name: str) -> bool:
    """Tell whether Iceberg keeps ``name``, in any case, for a metadata column."""
    return fold(name) in RESERVED_NAMES


def is_readable_by_hive(name: str) -> bool:
    """Tell whether a Hive metastore can read a struct type that has a field ``name``.

    It writes types without quotes around names, and takes one apart where Hive's TypeInfoUtils says so: at
    each UTF-16 character that is no letter, digit, underscore, dot, space or dollar.
    """
    return bool(name) and all(
        c in "_. $" or (ord(c) < 0x10000 and (c.isalpha() or c.isdecimal())) for c in name
    )


def quote(name: str) -> str:
    """Return ``name`` as a Spark SQL identifier: in backticks, with each backtick in it doubled."""
    return "`" + name.replace("`", "``") + "`"


def unquote(name: str) -> str:
    """Return the name that a user wrote with or without backticks around it.

    Only a name that is one whole quoted identifier loses its backticks: ```a`` becomes ``a``, and
    a stray backtick stays what it is, a part of the name.
    """
    if len(name) > 2 and name.startswith("`") and name.endswith("`"):
        inner = name[1:-1]
        if "`" not in inner.replace("``", ""):
            return inner.replace("``", "`")
    return name


def dotted_levels(text: str) -> tuple[tuple[str, bool], ...] | None:
    """Return the levels of a dotted path that a user wrote, each with whether it stood in backticks.

    What stands in backticks is one level, dots and all. A text that cannot be read so, such as ``a..b``, has
    None.
    """
    levels: list[tuple[str, bool]] = []
    end = -1
    for match in _LEVEL.finditer(text):
        if match.start() != end + 1 or (levels and text[end] != "."):
            return None
        quoted = match[1]
        levels.append((match[2], False) if quoted is None else (quoted.replace("``", "`"), True))
        end = match.end()
    return tuple(levels) if end == len(text) else None


def path_text(path: Iterable[str]) -> str:
    """Return a path of names as a person reads it, each name in backticks."""
    return ".".join(quote(name) for name in path)


def name_between(name: str) -> str:
    """Return what a field is called while statements of Spark change the case of its name only.

    It is told from a name that a user has given by its end.
    """
    digits = hashlib.md5(fold(name).encode(), usedforsecurity=False).hexdigest()[:8]
    return f"{name}{_BETWEEN}{digits}"


def name_before(name: str) -> str | None:
    """Return what a field was called of which ``name_between`` has made this name; None if it has not."""
    old = name.rpartition(_BETWEEN)[0]
    return old if old and name_between(old) == name else None


def spelled(names: Iterable[str], there: Iterable[str]) -> list[str]:
    """Return those of some names that are there, in the order and the spelling of that."""
    wanted = set(map(fold, names))
    return [name for name in there if fold(name) in wanted]


def free_name(name: str, taken: Iterable[str]) -> str:
    """Return a name, or that with the first number behind it that makes it none of those that are taken."""
    others = {fold(other) for other in taken}
    numbered = (name if number == 1 else f"{name}{number}" for number in count(1))
    return next(candidate for candidate in numbered if fold(candidate) not in others)


def config_path(path: Iterable[str]) -> str:
    """Return a path as a user would write it into a configuration, in backticks only where needed."""
    text = ".".join(name if _NAME.fullmatch(name) else quote(name) for name in path)
    return text if "." in text and "`" not in text else config_name(text)


def config_name(name: str) -> str:
    """Return a name as a user would write it into a configuration."""
    return name if _WORD.fullmatch(name) else f'"{_in_yaml(name)}"'


def _in_yaml(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')


def is_plain(text: str) -> bool:
    """Tell whether ``text`` between quotes is the same Spark SQL literal under every setting."""
    return _PLAIN.fullmatch(text) is not None


def string_literal(text: str) -> str:
    """Return a Spark SQL expression of exactly ``text``, whatever the settings of the session are.

    It is a literal or folded into one, so that Iceberg can look for it in its statistics.
    """
    return f"'{text}'" if is_plain(text) else f"CAST(X'{text.encode().hex()}' AS STRING)"


def constant_literal(text: str, *, verbatim: bool = False, substitutes: bool = False) -> str | None:
    """Return ``text`` as one token, for places where Spark SQL takes no expression, such as COMMENT.

    Args:
        text: the text.
        verbatim: the session's ``spark.sql.parser.escapedStringLiterals``: a backslash is a backslash.
        substitutes: the session's ``spark.sql.variable.substitute``: ``${x}`` stands for something else.

    Returns:
        The literal, or None if there is none under these settings.
    """
    if verbatim:
        return None if "'" in text or (substitutes and "${" in text) else f"'{text}'"
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped.replace('${', chr(92) + 'u0024{') if substitutes else escaped}'"


def collisions(names: Iterable[str]) -> tuple[tuple[str, ...], ...]:
    """Return the groups of two or more names that Spark does not keep apart everywhere.

    Most of Spark compares names as ``fold`` does, but its column pruning uses Java's ``equalsIgnoreCase``,
    for which the micro sign is mu and a dotted capital I is ``i``. A table with both columns can be made, and
    then every query that reads both fails.

    Groups and the names in them come in the order of first appearance.
    """
    groups: list[list[str]] = []
    group_of: dict[tuple[bool, str], list[str]] = {}
    for name in names:
        keys = ((True, fold(name)), (False, _ignoring_case(name)))
        group = next((group_of[key] for key in keys if key in group_of), None)
        if group is None:
            group = []
            groups.append(group)
        group.append(name)
        for key in keys:
            group_of.setdefault(key, group)
    return tuple(tuple(group) for group in groups if len(group) > 1)


def _ignoring_case(name: str) -> str:
    """Return a form that is equal for two names just if Java's ``equalsIgnoreCase`` says so.

    Java goes to upper and then to lower case, one character at a time, by the mappings of Unicode that give
    one character.
    """
    upper = (c.upper() if len(c.upper()) == 1 else c for c in name)
    return "".join(c.lower()[0] for c in upper)
