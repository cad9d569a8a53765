"""Hypothesis strategies: names, types, and tables with batches that can, or cannot, be loaded into them."""

import random
from collections.abc import Iterable, Iterator
from itertools import count

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
# The ids are written anew wherever one of these is used. No path of a field in them is one of ODD_NAMES, or
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


_ANY_SCHEMAS = st.lists(
    st.tuples(NAMES | RESERVED_IN_ANY_CASE, st.sampled_from((*_TYPES, *_FOREIGN, TimeType())), st.booleans()),
    max_size=5,
).map(_any_schema)


def any_pairs() -> st.SearchStrategy[tuple[Schema, Schema]]:
    """Pairs of a table and a batch that may have anything wrong with them."""
    return st.tuples(_ANY_SCHEMAS, _ANY_SCHEMAS)
