"""Hypothesis strategies: names, types, and tables with batches that can, or cannot, be loaded into them."""

from collections.abc import Callable, Iterable, Iterator
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
    UUIDType,
)

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
    *("quote'", 'double"', "back\\slash", "new\nline", "tab\t", "--", "/*x*/", "$", "{}", "%s", "?", "0", "1x"),
    *("İ", "i̇", "ı", "ß", "ẞ", "ss", "straße", "STRASSE", "µ", "μ", "Μ", "É", "é", "e\u0301", "Ω", "Ω"),
    *("ΟΔΟΣ", "οδος", "ς", "σ", "ſ", "K", "k", "Å", "DZ", "Dz", "名前", "😀", "_filename", "pos", "file"),
)
# No dot, and in no folded form one of the words that Iceberg puts into a path.
NESTED_NAMES = ("x", "Y", "n é", "q`q", "Ünit", "select", "İz")

_PRIMITIVES: tuple[IcebergType, ...] = (
    *(BooleanType(), IntegerType(), LongType(), FloatType(), DoubleType(), StringType(), BinaryType()),
    *(DateType(), TimestampType(), TimestamptzType(), DecimalType(10, 2), DecimalType(38, 0)),
)
# Spark stages no column of these types, but an older table may have one.
_FOREIGN: tuple[IcebergType, ...] = (UUIDType(), FixedType(8))

_NARROWER: dict[IcebergType, IcebergType] = {
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


def names() -> st.SearchStrategy[str]:
    """Names of columns that can be used; no reserved ones."""
    letters = st.characters(codec="utf-8", exclude_characters=".")
    text = st.text(letters, min_size=1, max_size=6)
    return st.one_of(st.sampled_from(ODD_NAMES), text).filter(lambda name: name.lower() not in RESERVED)


def reserved_names() -> st.SearchStrategy[str]:
    """Reserved names in any case."""
    return st.sampled_from(RESERVED).flatmap(recased)


@st.composite
def recased(draw: st.DrawFn, name: str) -> str:
    """Return ``name`` with the case of some letters changed, where Spark calls it the same name."""
    swap = draw(st.integers(0, 2 ** len(name) - 1))
    other = "".join(c.swapcase() if swap >> i & 1 else c for i, c in enumerate(name))
    return other if other.lower() == name.lower() and lookalike(other) == lookalike(name) else name


@st.composite
def types(draw: st.DrawFn, ids: Iterator[int], depth: int = 2, foreign: bool = False) -> IcebergType:
    """Types of all kinds, nested ``depth`` levels deep at the most; their ids come from ``ids``."""
    kind = draw(st.sampled_from(("primitive",) * 4 + ("struct", "list", "map"))) if depth else "primitive"

    def inner() -> IcebergType:
        return draw(types(ids, depth - 1, foreign))

    if kind == "struct":
        chosen = draw(st.lists(st.sampled_from(NESTED_NAMES), min_size=1, max_size=3, unique=True))
        return StructType(*(NestedField(next(ids), name, inner()) for name in chosen))
    if kind == "list":
        return ListType(next(ids), inner(), element_required=False)
    if kind == "map":
        return MapType(next(ids), inner(), next(ids), inner(), value_required=False)
    return draw(st.sampled_from(_PRIMITIVES + _FOREIGN if foreign else _PRIMITIVES))


@st.composite
def tables(draw: st.DrawFn, max_size: int = 5) -> Schema:
    """Schemas of optional columns whose names Spark can tell apart."""
    ids = count(1)
    chosen = distinct(draw(st.lists(names(), min_size=1, max_size=max_size)))
    fields = []
    for name in chosen:
        field_id = next(ids)
        fields.append(NestedField(field_id, name, draw(types(ids, foreign=True))))
    return Schema(*fields)


def rebuilt(iceberg_type: IcebergType, ids: Iterator[int], rename: Callable[[str], str]) -> IcebergType:
    """Return the same type with new ids, and the fields of structs renamed by ``rename``."""
    if isinstance(iceberg_type, StructType):
        return StructType(
            *(
                NestedField(next(ids), rename(f.name), rebuilt(f.field_type, ids, rename))
                for f in iceberg_type.fields
            )
        )
    if isinstance(iceberg_type, ListType):
        element = rebuilt(iceberg_type.element_type, ids, rename)
        return ListType(next(ids), element, element_required=False)
    if isinstance(iceberg_type, MapType):
        key = rebuilt(iceberg_type.key_type, ids, rename)
        value = rebuilt(iceberg_type.value_type, ids, rename)
        return MapType(next(ids), key, next(ids), value, value_required=False)
    return iceberg_type


def _has_foreign(iceberg_type: IcebergType) -> bool:
    return "uuid" in str(iceberg_type) or "fixed" in str(iceberg_type)


@st.composite
def batches_for(draw: st.DrawFn, table: Schema) -> Schema:
    """Return a batch that can be loaded into ``table``.

    It has some columns of the table, some of them narrower, and some new ones, in any case and order.
    """
    ids = count(1)
    fields = []
    for old in table.fields:
        if _has_foreign(old.field_type) or not draw(st.booleans()):
            continue
        kept_type = rebuilt(old.field_type, ids, lambda name: draw(recased(name)))
        if draw(st.booleans()):
            kept_type = _NARROWER.get(kept_type, kept_type)
        fields.append(NestedField(next(ids), draw(recased(old.name)), kept_type))
    old_names = [f.name for f in table.fields]
    new_names = distinct([*old_names, *draw(st.lists(names(), max_size=4))])[len(old_names) :]
    for name in new_names:
        field_id = next(ids)
        fields.append(NestedField(field_id, name, draw(types(ids))))
    if not fields:
        spare = next(n for n in ("spare", "other") if n not in {old.lower() for old in old_names})
        fields.append(NestedField(next(ids), spare, StringType()))
    return Schema(*draw(st.permutations(fields)))


@st.composite
def loads(draw: st.DrawFn) -> tuple[Schema, Schema]:
    """Pairs of a table and a batch that can be loaded into it."""
    table = draw(tables())
    return table, draw(batches_for(table))


@st.composite
def _any_schema(draw: st.DrawFn) -> Schema:
    ids = count(1)
    chosen = draw(st.lists(names() | reserved_names(), max_size=5, unique=True))
    fields = []
    for name in chosen:
        field_id = next(ids)
        field_type = draw(types(ids, depth=1, foreign=True))
        fields.append(NestedField(field_id, name, field_type, required=draw(st.booleans())))
    return Schema(*fields)


def any_pairs() -> st.SearchStrategy[tuple[Schema, Schema]]:
    """Pairs of a table and a batch that may have anything wrong with them."""
    return st.tuples(_any_schema(), _any_schema())
