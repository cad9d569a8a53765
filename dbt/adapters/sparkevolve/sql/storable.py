"""What a model returns that Iceberg cannot store, and the query that returns it in a form that it can.

Spark has types that Iceberg's format version 2 lacks: intervals, TIME, VARIANT and others, which are stored
as string, and ``void``, the type of a bare NULL, which is stored as the type that the table has in its place,
or left out: there is no type to store it as.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Union

from pyiceberg.schema import Schema
from pyiceberg.types import IcebergType, ListType, MapType, StructType

from dbt.adapters.sparkevolve.evolution.names import fold, path_text, quote, string_literal
from dbt.adapters.sparkevolve.evolution.renames import new_names
from dbt.adapters.sparkevolve.evolution.types import has_spark_type, spark_type

_ALIAS = "DBT_INTERNAL_MODEL"
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
    types = ", ".join(f"typeof({_ALIAS}.{quote(name)})" for name in names)
    return f"select {types} from (select 1 as one) as one_row left join ({no_rows(sql)}) as {_ALIAS} on true"


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


@dataclass(frozen=True)
class Note:
    """Something that is stored otherwise than the model returns it, or not at all.

    Attributes:
        path: where it is.
        type: its type, as Spark names it; ``void`` and ``struct<>`` are left out, any other is stored as
            string.
        stored_as: the type of the table as which a bare NULL is stored; empty where it is left out.
    """

    path: tuple[str, ...]
    type: str
    stored_as: str = ""

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
        notes: what is different, but for bare NULLs that are stored as what the table has there.
        nulls: those of the columns that hold nothing but NULL.
    """

    sql: str
    columns: tuple[str, ...]
    notes: tuple[Note, ...] = ()
    nulls: tuple[str, ...] = ()


def storable_query(
    sql: str, columns: Struct, table: Schema | None = None, renames: Mapping[str, str] | None = None
) -> StorableQuery:
    """Return a query with the columns of ``sql`` in types that Iceberg can store.

    A bare NULL has the type that the table has in its place, and is left out where that has nothing.

    Args:
        sql: the model's query.
        columns: the types of its columns.
        table: the schema of the table that the rows are for, if there is one.
        renames: new last name by the path of a column or field, as the user wrote them: this run makes them.
    """
    rewriter = _Rewriter(new_names(table, renames or {}) if table is not None else {})
    chosen: dict[int, str] = {}
    in_table = table.as_struct() if table is not None else None
    for index, (name, type_) in enumerate(columns.fields):
        place = rewriter.place(in_table, name)
        expression = rewriter.store(f"{_ALIAS}.{quote(name)}", type_, (name,), place, 0)
        if expression is not None:
            chosen[index] = f"{expression} as {quote(name)}"
    names = tuple(columns.fields[index][0] for index in chosen)
    notes = tuple(note for note in rewriter.notes if not note.stored_as)
    if not rewriter.notes or not chosen:
        # Without any column left there is nothing to select; the model's own query is not used then.
        return StorableQuery(sql, names, notes)
    nulls = tuple(note.path[0] for note in rewriter.notes if note.stored_as and len(note.path) == 1)
    text = f"select {', '.join(chosen.values())} from (\n{sql}\n) as {_ALIAS}"
    return StorableQuery(text, names, notes, nulls)


class _Rewriter:
    """Writes the expressions of values in storable types, and notes what is different in them."""

    def __init__(self, renames: Mapping[int, str]) -> None:
        self.notes: list[Note] = []
        self._renames = renames
        self._places: dict[int, dict[str, IcebergType]] = {}

    def place(self, parent: IcebergType | None, name: str) -> IcebergType | None:
        """Return the type that the table has for a column, or for a field of a struct."""
        if not isinstance(parent, StructType):
            return None
        if id(parent) not in self._places:
            after = {fold(self._renames.get(f.field_id, f.name)): f.field_type for f in parent.fields}
            self._places[id(parent)] = after | {fold(f.name): f.field_type for f in parent.fields}
        return self._places[id(parent)].get(fold(name))

    def store(
        self, value: str, type_: SparkType, path: tuple[str, ...], place: IcebergType | None, depth: int
    ) -> str | None:
        """Return the expression of the value in a storable type, or None if nothing of it can be stored.

        Args:
            value: the expression of the model's value.
            type_: its type.
            path: where it is.
            place: the type that the table has there, if it has any.
            depth: how many lambdas enclose it.
        """
        if isinstance(type_, Leaf):
            return self._leaf(value, type_, path, place)
        before = len(self.notes)
        if isinstance(type_, Array):
            variable = f"element_{depth}"
            inner = place.element_type if isinstance(place, ListType) else None
            element = self.store(variable, type_.element, (*path, "element"), inner, depth + 1)
            rebuilt = None if element is None else f"transform({value}, {variable} -> {element})"
        elif isinstance(type_, Map):
            rebuilt = self._map(value, type_, path, place, depth)
        else:
            rebuilt = self._struct(value, type_, path, place, depth)
        return value if len(self.notes) == before else rebuilt

    def _leaf(self, value: str, type_: Leaf, path: tuple[str, ...], place: IcebergType | None) -> str | None:
        if type_.is_storable:
            return value
        if type_.is_void:
            stored_as = spark_type(place) if place is not None and has_spark_type(place) else ""
            self.notes.append(Note(path, type_.text, stored_as))
            return f"CAST(NULL AS {stored_as})" if stored_as else None
        self.notes.append(Note(path, type_.text))
        # A cast would take the quotes off a string in a variant.
        return f"to_json({value})" if type_.text == "variant" else f"cast({value} as string)"

    def _map(
        self, value: str, type_: Map, path: tuple[str, ...], place: IcebergType | None, depth: int
    ) -> str | None:
        key, inner = f"key_{depth}", f"value_{depth}"
        key_place, value_place = (
            (place.key_type, place.value_type) if isinstance(place, MapType) else (None, None)
        )
        before = len(self.notes)
        stored_key = self.store(key, type_.key, (*path, "key"), key_place, depth + 1)
        keys_differ = len(self.notes) > before
        stored_value = self.store(inner, type_.value, (*path, "value"), value_place, depth + 1)
        if stored_key is None or stored_value is None:
            return None
        result = f"transform_values({value}, ({key}, {inner}) -> {stored_value})"
        return f"transform_keys({result}, ({key}, {inner}) -> {stored_key})" if keys_differ else result

    def _struct(
        self, value: str, type_: Struct, path: tuple[str, ...], place: IcebergType | None, depth: int
    ) -> str | None:
        parts: list[str] = []
        if not type_.fields:
            self.notes.append(Note(path, _NO_FIELDS))
        for name, field_type in type_.fields:
            inner = self.place(place, name)
            expression = self.store(f"{value}.{quote(name)}", field_type, (*path, name), inner, depth)
            if expression is not None:
                parts.append(f"{string_literal(name)}, {expression}")
        return f"IF({value} IS NULL, NULL, named_struct({', '.join(parts)}))" if parts else None


def is_like(columns: Struct, table: Schema) -> bool:
    """Tell whether columns and fields that a query shares with a table are spelled and ordered as there.

    Columns may be in another order and others than the table's; fields may not.
    """
    spelled = {fold(f.name): f for f in table.fields}
    return all(
        name == spelled[fold(name)].name and _is_ordered_like(type_, spelled[fold(name)].field_type)
        for name, type_ in columns.fields
        if fold(name) in spelled
    )


def _is_ordered_like(type_: SparkType, place: IcebergType) -> bool:
    if isinstance(type_, Struct) and isinstance(place, StructType):
        return [name for name, _ in type_.fields] == [f.name for f in place.fields] and all(
            _is_ordered_like(inner, f.field_type)
            for (_, inner), f in zip(type_.fields, place.fields, strict=True)
        )
    if isinstance(type_, Array) and isinstance(place, ListType):
        return _is_ordered_like(type_.element, place.element_type)
    if isinstance(type_, Map) and isinstance(place, MapType):
        return _is_ordered_like(type_.key, place.key_type) and _is_ordered_like(type_.value, place.value_type)
    return isinstance(type_, Leaf) and place.is_primitive


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
