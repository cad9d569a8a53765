"""What a model returns that Iceberg cannot store, and the query that returns it in a form that it can.

Spark has types that Iceberg's format version 2 lacks: intervals, TIME, VARIANT and others, which are stored
as string, and ``void``, the type of a bare NULL, which is left out: there is no type to store it as.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Union

from dbt.adapters.sparkevolve.evolution.names import path_text, quote, string_literal

_ALIAS = "DBT_INTERNAL_MODEL"
_ONE_WORD = frozenset(
    {
        *("boolean", "tinyint", "smallint", "int", "bigint", "float", "double", "string", "binary", "date"),
        *("timestamp", "timestamp_ntz"),
    }
)
# One word, an interval with its units, or a word with a length: decimal(10,2), time(6), geometry(4326).
_LEAF = re.compile(r"(interval [a-z]+(?: to [a-z]+)?|\w+)(\([\w, :]*\))?")
_NO_FIELDS = "struct<>"
_WITH_LENGTH = ("decimal(", "char(", "varchar(")


@dataclass(frozen=True)
class Leaf:
    """A type without others in it, as Spark names it."""

    text: str

    @property
    def is_void(self) -> bool:
        """Whether it is the type of a bare NULL."""
        return self.text == "void"

    @property
    def is_storable(self) -> bool:
        """Whether Iceberg has a type for it."""
        return self.text in _ONE_WORD or (self.text.startswith(_WITH_LENGTH) and self.text.endswith(")"))


@dataclass(frozen=True)
class Array:
    """A list type."""

    element: "SparkType"


@dataclass(frozen=True)
class Map:
    """A map type."""

    key: "SparkType"
    value: "SparkType"


@dataclass(frozen=True)
class Struct:
    """A struct type: names and types of its fields."""

    fields: tuple[tuple[str, "SparkType"], ...]


SparkType = Union[Leaf, Array, Map, Struct]


class UnreadableType(ValueError):
    """A type text that has no reading, since names of fields in it contain what separates them."""


def types_query(sql: str) -> str:
    """Return a query whose one row and column is the type of the struct of all columns of ``sql``.

    It reads no rows of ``sql``. DESCRIBE would cut types off at 25 fields.
    """
    return (
        f"select typeof(struct({_ALIAS}.*)) from (select 1 as one) as one_row "
        f"left join (select * from (\n{sql}\n) as model_rows where false) as {_ALIAS} on true"
    )


def parse_type(text: str) -> SparkType:
    """Return the type that Spark's ``typeof`` has written.

    Spark does not quote names in it, so that one may contain ``:``, ``,`` or brackets: a name goes on up to
    the first colon that a type follows.

    Raises:
        UnreadableType: it cannot be read that way.
    """
    # A type that is not known here is one that Iceberg lacks; known ones first, for the sake of odd names.
    for known_only in (True, False):
        found = _type(text, 0, known_only)
        if found is not None and found[1] == len(text):
            return found[0]
    raise UnreadableType(text)


def parse_columns(text: str) -> Struct:
    """Return the columns of a query from what ``types_query`` has answered.

    Raises:
        UnreadableType: see ``parse_type``.
    """
    columns = parse_type(text)
    if not isinstance(columns, Struct):
        raise UnreadableType(text)
    return columns


def _type(text: str, start: int, known_only: bool) -> tuple[SparkType, int] | None:
    """Return the type at ``start`` and where it ends, or None."""
    if text.startswith("array<", start):
        element = _type(text, start + 6, known_only)
        if element is None or not text.startswith(">", element[1]):
            return None
        return Array(element[0]), element[1] + 1
    if text.startswith("map<", start):
        key = _type(text, start + 4, known_only)
        value = _type(text, key[1] + 1, known_only) if key and text.startswith(",", key[1]) else None
        if key is None or value is None or not text.startswith(">", value[1]):
            return None
        return Map(key[0], value[0]), value[1] + 1
    if text.startswith("struct<", start):
        return _struct(text, start + 7, known_only)
    return _leaf(text, start, known_only)


def _struct(text: str, start: int, known_only: bool) -> tuple[SparkType, int] | None:
    if text.startswith(">", start):
        return Struct(()), start + 1
    fields: list[tuple[str, SparkType]] = []
    colon = text.find(":", start)
    while colon != -1:
        found = _type(text, colon + 1, known_only)
        if found is not None and text[found[1] : found[1] + 1] in (",", ">"):
            fields.append((text[start:colon], found[0]))
            start = found[1] + 1
            if text[found[1]] == ">":
                return Struct(tuple(fields)), start
            colon = text.find(":", start)
        else:
            colon = text.find(":", colon + 1)
    return None


def _leaf(text: str, start: int, known_only: bool) -> tuple[Leaf, int] | None:
    found = _LEAF.match(text, start)
    if found is None:
        return None
    word = found.group(1)
    known = word in _ONE_WORD or word in ("void", "variant", "interval") or word.startswith("interval ")
    return (Leaf(found.group(0)), found.end()) if known or found.group(2) or not known_only else None


@dataclass(frozen=True)
class Note:
    """Something that is stored otherwise than the model returns it, or not at all.

    Attributes:
        path: where it is.
        type: its type, as Spark names it; ``void`` and ``struct<>`` are left out, any other is stored as
            string.
    """

    path: tuple[str, ...]
    type: str

    def __str__(self) -> str:
        if self.type == "void":
            return (
                f"{path_text(self.path)} is a bare NULL, which has no type, and is left out. Cast it in the "
                "model to add it."
            )
        where = path_text(self.path)
        if self.type == _NO_FIELDS:
            return f"{where} is a struct without fields, which cannot be stored, and is left out."
        return f"{where} is of the type {self.type}, which Iceberg lacks, and is stored as string."


@dataclass(frozen=True)
class StorableQuery:
    """A query that Iceberg can store, and what is different in it.

    Attributes:
        sql: the query; the model's own if nothing is different.
        columns: the names that it returns.
        notes: what is different.
    """

    sql: str
    columns: tuple[str, ...]
    notes: tuple[Note, ...] = ()


def storable_query(sql: str, columns: Struct) -> StorableQuery:
    """Return a query with the columns of ``sql`` in types that Iceberg can store.

    Args:
        sql: the model's query.
        columns: the types of its columns.
    """
    notes: list[Note] = []
    chosen: dict[int, str] = {}
    for index, (name, type_) in enumerate(columns.fields):
        expression = _store(f"{_ALIAS}.{quote(name)}", type_, (name,), notes, 0)
        if expression is not None:
            chosen[index] = f"{expression} as {quote(name)}"
    names = tuple(columns.fields[index][0] for index in chosen)
    if not notes or not chosen:
        # Without any column left there is nothing to select; the model's own query is not used then.
        return StorableQuery(sql, names, tuple(notes))
    return StorableQuery(
        f"select {', '.join(chosen.values())} from (\n{sql}\n) as {_ALIAS}", names, tuple(notes)
    )


def _store(value: str, type_: SparkType, path: tuple[str, ...], notes: list[Note], depth: int) -> str | None:
    """Return the expression of the value in a storable type, or None if nothing of it can be stored."""
    if isinstance(type_, Leaf):
        return _store_leaf(value, type_, path, notes)
    before = len(notes)
    if isinstance(type_, Array):
        variable = f"element_{depth}"
        element = _store(variable, type_.element, (*path, "element"), notes, depth + 1)
        rebuilt = None if element is None else f"transform({value}, {variable} -> {element})"
    elif isinstance(type_, Map):
        rebuilt = _store_map(value, type_, path, notes, depth)
    else:
        rebuilt = _store_struct(value, type_, path, notes, depth)
    return value if len(notes) == before else rebuilt


def _store_leaf(value: str, type_: Leaf, path: tuple[str, ...], notes: list[Note]) -> str | None:
    if type_.is_storable:
        return value
    notes.append(Note(path, type_.text))
    if type_.is_void:
        return None
    # A cast would take the quotes off a string in a variant.
    return f"to_json({value})" if type_.text == "variant" else f"cast({value} as string)"


def _store_map(value: str, type_: Map, path: tuple[str, ...], notes: list[Note], depth: int) -> str | None:
    key, inner = f"key_{depth}", f"value_{depth}"
    before = len(notes)
    stored_key = _store(key, type_.key, (*path, "key"), notes, depth + 1)
    keys_differ = len(notes) > before
    stored_value = _store(inner, type_.value, (*path, "value"), notes, depth + 1)
    if stored_key is None or stored_value is None:
        return None
    result = f"transform_values({value}, ({key}, {inner}) -> {stored_value})"
    return f"transform_keys({result}, ({key}, {inner}) -> {stored_key})" if keys_differ else result


def _store_struct(
    value: str, type_: Struct, path: tuple[str, ...], notes: list[Note], depth: int
) -> str | None:
    parts: list[str] = []
    if not type_.fields:
        notes.append(Note(path, _NO_FIELDS))
    for name, field_type in type_.fields:
        expression = _store(f"{value}.{quote(name)}", field_type, (*path, name), notes, depth)
        if expression is not None:
            parts.append(f"{string_literal(name)}, {expression}")
    return f"IF({value} IS NULL, NULL, named_struct({', '.join(parts)}))" if parts else None


def field_paths(columns: Struct) -> Iterator[tuple[str, ...]]:
    """Yield the path of each field inside a column, outer ones first; not of the columns themselves."""

    def walk(path: tuple[str, ...], type_: SparkType) -> Iterator[tuple[str, ...]]:
        if isinstance(type_, Struct):
            for name, field_type in type_.fields:
                if path:
                    yield (*path, name)
                yield from walk((*path, name), field_type)
        elif isinstance(type_, Array):
            yield from walk((*path, "element"), type_.element)
        elif isinstance(type_, Map):
            yield from walk((*path, "key"), type_.key)
            yield from walk((*path, "value"), type_.value)

    return walk((), columns)
