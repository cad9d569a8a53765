"""Spark's types as a query returns them: how they are asked for, and how Spark's answers are read."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Union

from dbt.adapters.sparkevolve.evolution.names import fold, quote

MODEL_ALIAS = "DBT_INTERNAL_MODEL"
_ONE_WORD = frozenset(
    {
        *("boolean", "tinyint", "smallint", "int", "bigint", "float", "double", "string", "binary", "date"),
        *("timestamp", "timestamp_ntz"),
    }
)
# One word, an interval with its units, a string with its collation, or a word with a length: decimal(10,2),
# time(6), geometry(4326).
_LEAF = re.compile(r"(interval [a-z]+(?: to [a-z]+)?|string collate \w+|\w+)(\([\w, :]*\))?")
# Where Spark's JSON has another name for a type than its SQL.
_FROM_JSON = {"byte": "tinyint", "short": "smallint", "integer": "int", "long": "bigint", "null": "void"}
# Iceberg's integers have 32 or 64 bits.
_WIDER_IN_ICEBERG = {"tinyint": "int", "smallint": "int"}
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


def no_rows(sql: str) -> str:
    """Return a query with the columns of ``sql`` and none of its rows."""
    return f"select * from (\n{sql}\n) as model_rows where false"


def types_query(sql: str, names: Sequence[str]) -> str:
    """Return a query whose one row has the type of each column of ``sql``, as text.

    It reads no rows of ``sql``. DESCRIBE would cut types off at 25 fields, and in the type of them all
    together it could not be told where a name ends.

    Args:
        sql: a query.
        names: the names of its columns, one or more.
    """
    types = ", ".join(f"typeof({MODEL_ALIAS}.{quote(name)})" for name in names)
    joined = f"left join ({no_rows(sql)}) as {MODEL_ALIAS} on true"
    return f"select {types} from (select 1 as one) as one_row {joined}"


def columns_from_types(names: Sequence[str], types: Sequence[str]) -> Struct:
    """Return the columns of a query from its names and what ``types_query`` has answered.

    Raises:
        UnreadableType: see ``parse_type``.
    """
    return Struct(tuple(zip(names, map(parse_type, types), strict=True)))


def columns_from_json(text: str) -> Struct:
    """Return the columns of a query from the JSON that Spark writes of its schema."""
    columns = _from_json(json.loads(text), {}, "")
    assert isinstance(columns, Struct)
    return columns


def _from_json(found: Any, collations: Mapping[str, str], path: str) -> SparkType:
    """Return a type.

    Args:
        found: what the JSON has of it.
        collations: those of the strings in the next field around it, by path.
        path: where the type is in that field.
    """
    if isinstance(found, str):
        if found == "string" and path in collations:
            return Leaf(f"string collate {collations[path].rpartition('.')[2]}")
        return Leaf(_FROM_JSON.get(found, found))
    kind = found["type"]
    if kind == "array":
        return Array(_from_json(found["elementType"], collations, f"{path}.element"))
    if kind == "map":
        key = _from_json(found["keyType"], collations, f"{path}.key")
        return Map(key, _from_json(found["valueType"], collations, f"{path}.value"))
    if kind != "struct":
        return Leaf(str(kind))  # "udt", a type that a program has registered
    return Struct(
        tuple(
            (f["name"], _from_json(f["type"], f.get("metadata", {}).get("__COLLATIONS", {}), f["name"]))
            for f in found["fields"]
        )
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
        found = _Reader(text, known_only).type_at(0)
        if found is not None and found[1] == len(text):
            return found[0]
    raise UnreadableType(text)


class _Reader:
    """Reads types out of a text; what it has found at a position, or not found, it knows from then on."""

    def __init__(self, text: str, known_only: bool) -> None:
        self._text = text
        self._known_only = known_only
        self._found: dict[int, tuple[SparkType, int] | None] = {}

    def type_at(self, start: int) -> tuple[SparkType, int] | None:
        """Return the type at ``start`` and where it ends, or None."""
        if start not in self._found:
            self._found[start] = self._read(start)
        return self._found[start]

    def _read(self, start: int) -> tuple[SparkType, int] | None:
        text = self._text
        if text.startswith("array<", start):
            element = self.type_at(start + 6)
            if element is None or not text.startswith(">", element[1]):
                return None
            return Array(element[0]), element[1] + 1
        if text.startswith("map<", start):
            key = self.type_at(start + 4)
            value = self.type_at(key[1] + 1) if key and text.startswith(",", key[1]) else None
            if key is None or value is None or not text.startswith(">", value[1]):
                return None
            return Map(key[0], value[0]), value[1] + 1
        if text.startswith("struct<", start):
            return self._struct(start + 7)
        return self._leaf(start)

    def _struct(self, start: int) -> tuple[SparkType, int] | None:
        text = self._text
        if text.startswith(">", start):
            return Struct(()), start + 1
        fields: list[tuple[str, SparkType]] = []
        colon = text.find(":", start)
        while colon != -1:
            found = self.type_at(colon + 1)
            if found is not None and text[found[1] : found[1] + 1] in (",", ">"):
                fields.append((text[start:colon], found[0]))
                start = found[1] + 1
                if text[found[1]] == ">":
                    return Struct(tuple(fields)), start
                colon = text.find(":", start)
            else:
                colon = text.find(":", colon + 1)
        return None

    def _leaf(self, start: int) -> tuple[Leaf, int] | None:
        found = _LEAF.match(self._text, start)
        if found is None:
            return None
        word = found.group(1)
        known = word in _ONE_WORD or word in ("void", "variant", "interval")
        known = known or word.startswith(("interval ", "string collate "))
        if known or found.group(2) or not self._known_only:
            return Leaf(found.group(0)), found.end()
        return None


def stored_as(type_: SparkType) -> str:
    """Return the type that a column has in Iceberg which was made from one of a query, as text.

    In the words of ``evolution.types.type_text``; what Iceberg lacks is stored as string.
    """
    if isinstance(type_, Array):
        return f"array<{stored_as(type_.element)}>"
    if isinstance(type_, Map):
        return f"map<{stored_as(type_.key)},{stored_as(type_.value)}>"
    if isinstance(type_, Struct):
        return f"struct<{','.join(f'{quote(name)}:{stored_as(inner)}' for name, inner in type_.fields)}>"
    if type_.text.startswith(("char(", "varchar(", "string collate ")):
        return "string"
    return _WIDER_IN_ICEBERG.get(type_.text, type_.text.replace(" ", ""))


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


def spelled_paths(columns: Struct) -> dict[str, str]:
    """Return each column and field that is in no list or map as SQL, by its path as in ``paths_and_types``.

    A path that two of them may have is left out: `a.b`, and the field `b` of `a`.
    """
    found: dict[str, list[str]] = {}

    def collect(fields: Struct, key: str, text: str) -> None:
        for name, type_ in fields.fields:
            path = f"{key}{fold(name).replace('`', '')}"
            found.setdefault(path, []).append(text + quote(name))
            if isinstance(type_, Struct):
                collect(type_, f"{path}.", f"{text}{quote(name)}.")

    collect(columns, "", "")
    return {path: texts[0] for path, texts in found.items() if len(texts) == 1}


def paths_and_types(columns: Struct) -> Iterator[tuple[str, str]]:
    """Yield the stored type of each column and field that is in no list or map, behind its path.

    The path is folded and without backticks, as ``partitions.Part`` has it.
    """
    for name, type_ in columns.fields:
        step = fold(name).replace("`", "")
        yield step, stored_as(type_)
        for path, inner in paths_and_types(type_) if isinstance(type_, Struct) else ():
            yield f"{step}.{path}", inner
