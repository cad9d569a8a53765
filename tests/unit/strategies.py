"""Hypothesis strategies: names, types, and tables with batches that can, or cannot, be loaded into them."""

import random
from collections.abc import Iterable, Iterator
from itertools import count

from hypothesis import HealthCheck, reject, settings
from hypothesis import strategies as st
from pyiceberg.schema import Schema
from pyiceberg.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FixedType,
    FloatType,
    IcebergType,
    IntegerType,
    ListType,
    LongType,
    MapType,
    NestedField,
    StringType,
    StructType,
    TimestampType,
    TimestamptzType,
    TimeType,
    UUIDType,
)

from tests.unit.helpers import array, mapping, struct

rule = settings(
    max_examples=60,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
"""How a rule that holds for every table and every batch is tested."""

# Written down a second time, so that a name that is lost from the code is missed here.
RESERVED = (
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
)

ODD_NAMES = (
    *("id", "Id", "ID", "CustomerID", "customerid", "order", "SELECT", "null", "Table", "default"),
    *("a.b", "A.b", ".", "x.", ".y", "a b", " a", "a ", "a`b", "`", "``", "`a`", "#hash", "semi;colon"),
    *(
        "quote'",
        'double"',
        "back\\slash",
        "new\nline",
        "tab\t",
        "--",
        "/*x*/",
        "$",
        "{}",
        "%s",
        "?",
        "0",
        "1x",
    ),
    *("İ", "i̇", "ı", "ß", "ẞ", "ss", "straße", "STRASSE", "µ", "μ", "Μ", "É", "é", "e\u0301", "Ω", "Ω"),
    *("ΟΔΟΣ", "οδος", "ς", "σ", "ſ", "K", "k", "Å", "DZ", "Dz", "名前", "😀", "_filename", "pos", "file"),
)
_PRIMITIVES: tuple[IcebergType, ...] = (
    *(BooleanType(), IntegerType(), LongType(), FloatType(), DoubleType(), StringType(), BinaryType()),
    *(DateType(), TimestampType(), TimestamptzType(), DecimalType(10, 2), DecimalType(38, 0)),
)
# The ids are written again wherever one of these is used. No path of a field in them is one of ODD_NAMES, or
# without a dot: a column of that name would have to be refused.
_NESTED: tuple[IcebergType, ...] = (
    struct(1, x=IntegerType()),
    struct(1, Y=StringType(), **{"n é": LongType(), "q`q": DateType(), "İz": struct(5, select=DoubleType())}),
    array(1, StringType()),
    array(1, struct(2, Ünit=DecimalType(10, 2), x=array(4, LongType()))),
    mapping(1, StringType(), LongType()),
    mapping(1, struct(3, x=IntegerType()), struct(4, Y=array(5, struct(6, z=BooleanType())))),
)
_TYPES = _PRIMITIVES + _NESTED
# Spark stages no column of these types, but an older table may have one.
_FOREIGN: tuple[IcebergType, ...] = (UUIDType(), FixedType(8), struct(1, u=array(2, UUIDType())))

NARROWER: dict[IcebergType, IcebergType] = {
    LongType(): IntegerType(),
    DoubleType(): FloatType(),
    DecimalType(10, 2): DecimalType(4, 2),
    DecimalType(38, 0): DecimalType(37, 0),
}


def lookalike(name: str) -> str:
    """Return a form that is equal for two names which Spark takes for one by ``equalsIgnoreCase``."""
    uppered = (c.upper() if len(c.upper()) == 1 else c for c in name)
    return "".join("i" if c == "İ" else c.lower() for c in uppered)


def distinct(names: Iterable[str]) -> list[str]:
    """Return ``names`` without those that Spark could take, in either of its ways, for an earlier one."""
    kept: list[str] = []
    seen: set[str] = set()
    for name in names:
        keys = {name.lower(), lookalike(name)}
        if not keys & seen:
            kept.append(name)
            seen |= keys
    return kept


NAMES = st.one_of(
    st.sampled_from(ODD_NAMES),
    st.text(st.characters(codec="utf-8", exclude_characters="."), min_size=1, max_size=6),
).filter(lambda name: name.lower() not in RESERVED)
MASKS = st.integers(0, 127)


def recase(name: str, mask: int) -> str:
    """Return ``name`` with the case of some letters changed, as far as Spark calls it the same name."""
    other = "".join(c.swapcase() if mask >> i % 7 & 1 else c for i, c in enumerate(name))
    return other if other.lower() == name.lower() and lookalike(other) == lookalike(name) else name


RESERVED_IN_ANY_CASE = st.builds(recase, st.sampled_from(RESERVED), MASKS)


def rebuilt(iceberg_type: IcebergType, ids: Iterator[int], mask: int = 0) -> IcebergType:
    """Return the same type with new ids, and with the names of fields in the case that ``mask`` gives."""
    if isinstance(iceberg_type, StructType):
        return StructType(
            *(
                NestedField(next(ids), recase(f.name, mask), rebuilt(f.field_type, ids, mask), required=False)
                for f in iceberg_type.fields
            )
        )
    if isinstance(iceberg_type, ListType):
        return array(next(ids), rebuilt(iceberg_type.element_type, ids, mask))
    if isinstance(iceberg_type, MapType):
        key = rebuilt(iceberg_type.key_type, ids, mask)
        value = rebuilt(iceberg_type.value_type, ids, mask)
        return MapType(next(ids), key, next(ids), value, value_required=False)
    return iceberg_type


def shuffled(fields: Iterable[NestedField], seed: int) -> Schema:
    """Return a schema of the same fields in another order, or in this one if ``seed`` is 0."""
    listed = list(fields)
    if seed:
        random.Random(seed).shuffle(listed)
    return Schema(*listed)


_COLUMNS = st.lists(st.tuples(NAMES, st.sampled_from(_TYPES + _FOREIGN)), min_size=1, max_size=5)
_NEW_COLUMNS = st.lists(st.tuples(NAMES, st.sampled_from(_TYPES)), max_size=4)
_FATES = st.integers(0, 4**5 - 1)  # two bits for each column of the table: kept or not, narrower or not
SEEDS = st.integers(0, 99)


def _table(columns: list[tuple[str, IcebergType]]) -> Schema:
    ids = count(1)
    types = dict(reversed(columns))
    return Schema(
        *(
            NestedField(next(ids), name, rebuilt(types[name], ids), required=False)
            for name in distinct(name for name, _ in columns)
        )
    )


def _is_foreign(iceberg_type: IcebergType) -> bool:
    return "uuid" in str(iceberg_type) or "fixed" in str(iceberg_type)


def _batch(table: Schema, fates: int, mask: int, new: list[tuple[str, IcebergType]], seed: int) -> Schema:
    ids = count(1)
    fields = []
    for position, old in enumerate(table.fields):
        kept, narrower = fates >> 2 * position & 1, fates >> 2 * position & 2
        if kept and not _is_foreign(old.field_type):
            kept_type = rebuilt(old.field_type, ids, mask)
            kept_type = NARROWER.get(kept_type, kept_type) if narrower else kept_type
            fields.append(NestedField(next(ids), recase(old.name, mask), kept_type, required=False))
    old_names = [f.name for f in table.fields]
    types = dict(reversed(new))
    for name in distinct([*old_names, *types])[len(old_names) :]:
        fields.append(NestedField(next(ids), name, rebuilt(types[name], ids), required=False))
    if not fields:
        fields.append(NestedField(next(ids), "a long name that no table has", StringType(), required=False))
    return shuffled(fields, seed)


def tables() -> st.SearchStrategy[Schema]:
    """Schemas of optional columns whose names Spark can tell apart."""
    return _COLUMNS.map(_table)


def loads() -> st.SearchStrategy[tuple[Schema, Schema]]:
    """Pairs of a table and a batch that can be loaded into it.

    The batch has some columns of the table, some of them narrower, and some new ones, in any case and order.
    """
    return st.builds(
        lambda columns, *choices: (table := _table(columns), _batch(table, *choices)),
        *(_COLUMNS, _FATES, MASKS, _NEW_COLUMNS, SEEDS),
    )


def variant(schema: Schema, mask: int, seed: int) -> Schema:
    """Return the same columns in other cases and another order."""
    return shuffled(
        (
            NestedField(f.field_id, recase(f.name, mask), f.field_type, required=f.required)
            for f in schema.fields
        ),
        seed,
    )


def _any_schema(columns: list[tuple[str, IcebergType, bool]]) -> Schema:
    ids = count(1)
    fields = {name: NestedField(next(ids), name, rebuilt(t, ids), required=r) for name, t, r in columns}
    return Schema(*fields.values())


_ANY_NAMES = st.sampled_from(("id", "ID", "x", "X", "a.b", "ß", "_pos", "_File")) | NAMES
_ANY_TYPES = st.sampled_from((StringType(), *_TYPES, *_FOREIGN, TimeType()))
_ANY_SCHEMAS = st.lists(st.tuples(_ANY_NAMES, _ANY_TYPES, st.booleans()), max_size=4).map(_any_schema)


def any_pairs() -> st.SearchStrategy[tuple[Schema, Schema]]:
    """Pairs of a table and a batch that may have anything wrong with them."""
    return st.tuples(_ANY_SCHEMAS, _ANY_SCHEMAS)


# Tables with nested columns, and batches that differ from them at every level.

_PLAIN = st.sampled_from(
    ("id", "Id", "x", "X", "Last Name", "a`b", "#x", "0", "ß", "É", "é", "quote'", "名前", "order", "y", "Z")
)
_WIDER = {
    IntegerType(): LongType(),
    FloatType(): DoubleType(),
    DecimalType(9, 2): DecimalType(10, 2),
}
_LEAVES = st.sampled_from(
    (*_WIDER, *_WIDER.values(), StringType(), DateType(), BooleanType(), TimestamptzType())
)


# Also what a path may lead to, and what short paths leave out.
_DOTTED = st.sampled_from(("a", "a.b", "A.B", "b", "b.a", "element", "value", "key", "a.element", "x.value"))


@st.composite
def _nested_types(draw: st.DrawFn, depth: int, names: st.SearchStrategy[str] = _PLAIN) -> IcebergType:
    kind = draw(st.sampled_from(("leaf", "leaf", "struct", "list", "map"))) if depth else "leaf"
    if kind == "leaf":
        return draw(_LEAVES)
    inner = _nested_types(depth - 1, names)
    if kind == "list":
        return array(1, draw(inner), required=draw(st.booleans()))
    if kind == "map":
        return MapType(1, StringType(), 2, draw(inner), value_required=draw(st.booleans()))
    return StructType(*draw(_nested_fields(depth - 1, names)))


@st.composite
def _nested_fields(
    draw: st.DrawFn, depth: int, names: st.SearchStrategy[str] = _PLAIN
) -> tuple[NestedField, ...]:
    return tuple(
        NestedField(1, name, draw(_nested_types(depth, names)), required=draw(st.booleans()))
        for name in distinct(draw(st.lists(names, min_size=1, max_size=3)))
    )


def _differing(draw: st.DrawFn, old: IcebergType) -> IcebergType:
    """Return a type whose values can be loaded into ``old`` once that has evolved."""
    if isinstance(old, StructType):
        return StructType(*_differing_fields(draw, old.fields))
    if isinstance(old, ListType):
        return array(1, _differing(draw, old.element_type))
    if isinstance(old, MapType):
        return mapping(1, old.key_type, _differing(draw, old.value_type))
    narrower = {wide: narrow for narrow, wide in _WIDER.items()}
    return draw(st.sampled_from((old, _WIDER.get(old, old), narrower.get(old, old))))


def _differing_fields(draw: st.DrawFn, old: Iterable[NestedField]) -> list[NestedField]:
    old = list(old)
    fields = []
    for f in old:
        if draw(st.integers(0, 3)):
            name = recase(f.name, draw(MASKS))
            fields.append(NestedField(1, name, _differing(draw, f.field_type), required=False))
    new = [name for name in draw(st.lists(_PLAIN, max_size=2)) if draw(st.booleans())]
    names = [f.name for f in old]
    for name in distinct([*names, *new])[len(names) :]:
        new_type = _optional(draw(_nested_types(1)))
        fields.append(NestedField(1, name, new_type, required=False))
    if not fields:
        fields.append(NestedField(1, "a field that nothing has", StringType(), required=False))
    return draw(st.permutations(fields))


def _optional(iceberg_type: IcebergType) -> IcebergType:
    """Return the type as Spark stages it: everything in it may be NULL."""
    return rebuilt(iceberg_type, count(1))


def _numbered(fields: Iterable[NestedField]) -> Schema:
    """Return a schema in which each field has an id of its own."""
    ids = count(1)

    def renumbered(iceberg_type: IcebergType) -> IcebergType:
        if isinstance(iceberg_type, StructType):
            return StructType(
                *(
                    NestedField(next(ids), f.name, renumbered(f.field_type), required=f.required)
                    for f in iceberg_type.fields
                )
            )
        if isinstance(iceberg_type, ListType):
            element = renumbered(iceberg_type.element_type)
            return array(next(ids), element, required=iceberg_type.element_required)
        if isinstance(iceberg_type, MapType):
            value = renumbered(iceberg_type.value_type)
            required = iceberg_type.value_required
            return MapType(next(ids), iceberg_type.key_type, next(ids), value, value_required=required)
        return iceberg_type

    struct_type = renumbered(StructType(*fields))
    assert isinstance(struct_type, StructType)
    return Schema(*struct_type.fields)


@st.composite
def nested_loads(draw: st.DrawFn) -> tuple[Schema, Schema]:
    """Pairs of a table and a batch that can be loaded into it, and that may differ at every level."""
    table = draw(_nested_fields(3))
    return _numbered(table), _numbered(_differing_fields(draw, table))


def _unlike(draw: st.DrawFn, old: IcebergType) -> IcebergType:
    """Return any type that has, here and there, something in common with ``old``."""
    fate = draw(st.integers(0, 7))
    if fate == 0:
        return _optional(draw(_nested_types(2, _PLAIN | _DOTTED)))
    if isinstance(old, StructType):
        return StructType(*_unlike_fields(draw, old.fields))
    if isinstance(old, ListType):
        return array(1, _unlike(draw, old.element_type))
    if isinstance(old, MapType):
        return mapping(1, IntegerType() if fate == 1 else old.key_type, _unlike(draw, old.value_type))
    return _differing(draw, old)


def _unlike_fields(draw: st.DrawFn, old: Iterable[NestedField]) -> list[NestedField]:
    old = list(old)
    kept = [f for f in old if draw(st.integers(0, 3))]
    fields = [
        NestedField(1, recase(f.name, draw(MASKS)), _unlike(draw, f.field_type), required=False) for f in kept
    ]
    names = [f.name for f in old]
    for name in distinct([*names, *draw(st.lists(_PLAIN | _DOTTED, max_size=2))])[len(names) :]:
        fields.append(NestedField(1, name, _optional(draw(_nested_types(2, _DOTTED))), required=False))
    return draw(st.permutations(fields or [NestedField(1, "only this", StringType(), required=False)]))


def _indexed(fields: Iterable[NestedField]) -> Schema:
    try:
        return _numbered(fields)
    except ValueError:
        # One dotted path of two fields: it can neither be a table nor be staged.
        reject()


@st.composite
def nested_pairs(draw: st.DrawFn) -> tuple[Schema, Schema]:
    """Pairs of a table and a batch that may have anything wrong with them at every level but their names."""
    table = draw(_nested_fields(3, _PLAIN | _DOTTED))
    return _indexed(table), _indexed(_unlike_fields(draw, table))


def nested_variant(schema: Schema, mask: int, seed: int) -> Schema:
    """Return the same fields, at each level in other cases and another order."""

    def varied(iceberg_type: IcebergType) -> IcebergType:
        if isinstance(iceberg_type, StructType):
            fields = [
                NestedField(f.field_id, recase(f.name, mask), varied(f.field_type), required=f.required)
                for f in iceberg_type.fields
            ]
            random.Random(seed).shuffle(fields)
            return StructType(*fields)
        if isinstance(iceberg_type, ListType):
            return ListType(
                iceberg_type.element_id, varied(iceberg_type.element_type), element_required=False
            )
        if isinstance(iceberg_type, MapType):
            value = varied(iceberg_type.value_type)
            ids = iceberg_type.key_id, iceberg_type.key_type, iceberg_type.value_id
            return MapType(*ids, value, value_required=False)
        return iceberg_type

    struct_type = varied(schema.as_struct())
    assert isinstance(struct_type, StructType)
    return Schema(*struct_type.fields)
