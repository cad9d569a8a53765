"""What a model returns that Iceberg cannot store, and the query that returns it in a form that it can.

Spark has types that Iceberg's format version 2 lacks: intervals, TIME, VARIANT and others, which are stored
as string, and ``void``, the type of a bare NULL, which is stored as the type that the table has in its place,
or left out: there is no type to store it as.

Format version 3 has variants. In lists and maps they are stored as string there too: Iceberg 1.12 writes
them, and then reads no other column of such a table without its lists and maps.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from pyiceberg.schema import Schema
from pyiceberg.types import IcebergType, ListType, MapType, StringType, StructType, UnknownType

from dbt.adapters.sparkevolve.evolution.names import fold, path_text, quote, string_literal
from dbt.adapters.sparkevolve.evolution.renames import new_names
from dbt.adapters.sparkevolve.evolution.types import (
    VARIANT,
    VariantType,
    has_spark_type,
    has_variant,
    spark_type,
)
from dbt.adapters.sparkevolve.sql.spark_types import MODEL_ALIAS, Array, Leaf, Map, SparkType, Struct

_NO_FIELDS = "struct<>"


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
        has_variants: whether some of what it returns are variants.
    """

    sql: str
    columns: tuple[str, ...]
    notes: tuple[Note, ...] = ()
    nulls: tuple[str, ...] = ()
    has_variants: bool = False


def storable_query(
    sql: str,
    columns: Struct,
    table: Schema | None = None,
    renames: Mapping[str, str] | None = None,
    *,
    variants: bool = False,
) -> StorableQuery:
    """Return a query with the columns of ``sql`` in types that Iceberg can store.

    A bare NULL has the type that the table has in its place, and is left out where that has nothing.

    Args:
        sql: the model's query.
        columns: the types of its columns.
        table: the schema of the table that the rows are for, if there is one.
        renames: new last name by the path of a column or field, as the user wrote them: this run makes them.
        variants: whether the table can have variants.
    """
    rewriter = _Rewriter(new_names(table, renames or {}) if table is not None else {}, variants)
    chosen: dict[int, str] = {}
    in_table = table.as_struct() if table is not None else None
    for index, (name, type_) in enumerate(columns.fields):
        place = rewriter.place(in_table, name)
        expression = rewriter.store(f"{MODEL_ALIAS}.{quote(name)}", type_, (name,), place, 0)
        if expression is not None:
            chosen[index] = f"{expression} as {quote(name)}"
    names = tuple(columns.fields[index][0] for index in chosen)
    notes = tuple(note for note in rewriter.notes if not note.stored_as)
    if not rewriter.notes or not chosen:
        # Without any column left there is nothing to select; the model's own query is not used then.
        return StorableQuery(sql, names, notes, has_variants=rewriter.has_variants)
    nulls = tuple(note.path[0] for note in rewriter.notes if note.stored_as and len(note.path) == 1)
    text = f"select {', '.join(chosen.values())} from (\n{sql}\n) as {MODEL_ALIAS}"
    return StorableQuery(text, names, notes, nulls, rewriter.has_variants)


class _Rewriter:
    """Writes the expressions of values in storable types, and notes what is different in them."""

    def __init__(self, renames: Mapping[int, str], variants: bool) -> None:
        self.notes: list[Note] = []
        self.has_variants = False
        self._takes_variants = variants
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
            return self._leaf(value, type_, path, place, depth)
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

    def _leaf(
        self, value: str, type_: Leaf, path: tuple[str, ...], place: IcebergType | None, depth: int
    ) -> str | None:
        if type_.is_storable:
            return value
        if type_.text == VARIANT and self._takes_variant(place, depth):
            self.has_variants = True
            return value
        if type_.is_void:
            has_type = place is not None and has_spark_type(place) and not isinstance(place, UnknownType)
            stored_as = spark_type(place) if place is not None and has_type else ""
            if place is not None and has_variant(place):
                self.has_variants = True
            self.notes.append(Note(path, type_.text, stored_as))
            # Not a literal NULL: `raise_error` and `assert_true` return void, and have to be computed.
            return f"CAST({value} AS {stored_as})" if stored_as else None
        self.notes.append(Note(path, type_.text))
        # A cast would take the quotes off a string in a variant.
        return f"to_json({value})" if type_.text == VARIANT else f"cast({value} as string)"

    def _takes_variant(self, place: IcebergType | None, depth: int) -> bool:
        """Tell whether the table has a variant in its place, or gets one."""
        is_new = self._takes_variants and depth == 0 and not isinstance(place, StringType)
        return is_new or isinstance(place, VariantType)

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
