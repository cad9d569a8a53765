"""Column names: how two are compared, which ones cannot be used, and how one is written in Spark SQL."""

from collections.abc import Iterable

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


def fold(name: str) -> str:
    """Return the form in which two names are compared.

    Spark compares with ``toLowerCase(Locale.ROOT)``, which ``str.lower()`` equals. ``str.casefold()``
    would merge names that Spark keeps apart, such as ``straße`` and ``STRASSE``.
    """
    return name.lower()


def is_reserved(name: str) -> bool:
    """Tell whether Iceberg keeps ``name``, in any case, for a metadata column."""
    return fold(name) in RESERVED_NAMES


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


def path_text(path: Iterable[str]) -> str:
    """Return a path of names as a person reads it, each name in backticks."""
    return ".".join(quote(name) for name in path)


def string_literal(text: str) -> str:
    """Return ``text`` as a Spark SQL string literal that reads back as exactly ``text``."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def collisions(names: Iterable[str]) -> tuple[tuple[str, ...], ...]:
    """Return the groups of two or more names that differ by case only, or not at all.

    Groups and the names in them come in the order of first appearance.
    """
    groups: dict[str, list[str]] = {}
    for name in names:
        groups.setdefault(fold(name), []).append(name)
    return tuple(tuple(group) for group in groups.values() if len(group) > 1)
