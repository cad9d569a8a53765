"""How a value of one type gets into a place of another without any loss, and which values do not.

For `on_bad_rows: dead_letter`: where a batch and its table differ in a type, a plan refuses the batch. Here
the same difference is looked at value by value. An expression that converts is NULL for each value that it
would change, so that one condition tells which rows cannot be placed: the value is not NULL, and what it
became is.

No expression depends on a setting of the session: texts are matched before they are cast, every cast that can
fail is a TRY_CAST, and times go through UTC.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

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

from dbt.adapters.sparkevolve.evolution.names import Path, fold, path_text, quote, string_literal
from dbt.adapters.sparkevolve.evolution.policy import Policy
from dbt.adapters.sparkevolve.evolution.renames import resolve_renames
from dbt.adapters.sparkevolve.evolution.types import (
    children,
    is_safe_upcast,
    is_same,
    is_widening,
    spark_type,
    type_text,
)

_INTEGERS = (IntegerType, LongType)
_FLOATS = (FloatType, DoubleType)
_NUMBERS = (*_INTEGERS, *_FLOATS, DecimalType)
# The least value of an integer type, and the first that is beyond it: both are exact as a double.
_BOUNDS = {
    IntegerType: ("-2147483648", "2147483648"),
    LongType: ("-9223372036854775808", "9223372036854775808"),
}
# Of how many digits each decimal text is another value, the least normal value, and the greatest.
_PRECISION = {
    FloatType: (6, "1.17549435E-38", "3.4028235E38"),
    DoubleType: (15, "2.2250738585072014E-308", "1.7976931348623157E308"),
}
_DATE = "[0-9]{4}-[0-9]{2}-[0-9]{2}"
_TIME = f"{_DATE}[T ][0-9]{{2}}:[0-9]{{2}}:[0-9]{{2}}([.][0-9]{{1,6}})?"
_UUID = "[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"
_NUMBER = "-?[0-9]+([.][0-9]+)?([eE][+-]?[0-9]+)?"
_MICROS_OF_A_DAY = 86_400_000_000


def _matches(value: str, pattern: str) -> str:
    """Return the condition that a text is of a pattern, from its first character to its very last."""
    return f"{value} RLIKE {string_literal(f'(?s)^(?:{pattern})(?!.)')}"


def _when(condition: str, value: str) -> str:
    return f"CASE WHEN {condition} THEN {value} END"


def is_utf8(value: str) -> str:
    """Return the condition that a text is UTF-8, or NULL: any bytes can be cast to a text.

    What is none becomes U+FFFD wherever a text leaves Spark's own memory, as it does here.
    """
    return f"{value} <=> decode(encode({value}, 'UTF-16BE'), 'UTF-16BE')"


def lossless(value: str, source: IcebergType, target: IcebergType) -> str | None:
    """Return the SQL of a value as another type, NULL where it would not be the same value; None if never.

    Args:
        value: the expression of the value, which is not NULL.
        source: its type.
        target: the type that it is to have.
    """
    if isinstance(source, StringType):
        return _from_text(value, target)
    if isinstance(target, StringType):
        return _to_text(value, source)
    if isinstance(source, BinaryType) and isinstance(target, FixedType):
        return _when(f"octet_length({value}) = {len(target)}", value)
    if isinstance(source, BooleanType) and isinstance(target, _NUMBERS):
        return f"TRY_CAST(CAST({value} AS int) AS {spark_type(target)})"
    if isinstance(source, DecimalType) and isinstance(target, BooleanType):
        # One that has no digit before its point cannot be compared with 1.
        flag = f"CASE TRY_CAST({value} AS int) WHEN 0 THEN false WHEN 1 THEN true END"
        return _when(f"{value} % 1 = 0", flag)
    if isinstance(source, _NUMBERS) and isinstance(target, BooleanType):
        return f"CASE WHEN {value} = 0 THEN false WHEN {value} = 1 THEN true END"
    if isinstance(source, _NUMBERS) and isinstance(target, _NUMBERS):
        return _number(value, source, target)
    if isinstance(source, DateType) and isinstance(target, TimestampType):
        return f"CAST({value} AS timestamp_ntz)"
    if isinstance(source, TimestampType) and isinstance(target, DateType):
        return _when(f"CAST(CAST({value} AS date) AS timestamp_ntz) = {value}", f"CAST({value} AS date)")
    if isinstance(source, TimestamptzType) and isinstance(target, DateType):
        micros = f"unix_micros({value})"
        days = f"CAST({micros} DIV {_MICROS_OF_A_DAY} AS int)"
        return _when(f"pmod({micros}, {_MICROS_OF_A_DAY}) = 0", f"date_from_unix_date({days})")
    return None


def _from_text(value: str, target: IcebergType) -> str | None:
    cast = f"TRY_CAST({value} AS {spark_type(target)})" if target.is_primitive else ""
    if isinstance(target, BooleanType):
        return f"CASE {value} WHEN 'true' THEN true WHEN 'false' THEN false END"
    if isinstance(target, _INTEGERS):
        return _when(_matches(value, "0|-?[1-9][0-9]*"), cast)
    if isinstance(target, DecimalType):
        before, scale = target.precision - target.scale, target.scale
        whole = f"0|[1-9][0-9]{{0,{before - 1}}}" if before else "0"
        part = f"([.][0-9]{{1,{scale}}}0*)?" if scale else "([.]0+)?"
        return _when(_matches(value, f"-?(?:{whole}){part}"), cast)
    if isinstance(target, _FLOATS):
        return _float_from_text(value, target, cast)
    if isinstance(target, DateType):
        return _when(_matches(value, _DATE), cast)
    if isinstance(target, TimestampType):
        return _when(_matches(value, _TIME), cast)
    if isinstance(target, TimestamptzType):
        return _when(_matches(value, f"{_TIME}(Z|[+-][0-9]{{2}}:[0-9]{{2}})"), cast)
    if isinstance(target, UUIDType):
        return _when(_matches(value, _UUID), value)
    if isinstance(target, BinaryType):
        return f"CAST({value} AS binary)"
    return None


def _float_from_text(value: str, target: FloatType | DoubleType, cast: str) -> str:
    digits, least, most = _PRECISION[type(target)]
    type_ = spark_type(target)
    mantissa = f"regexp_replace(regexp_replace({value}, '[eE].*', ''), '[-.]', '')"
    significant = f"regexp_replace(regexp_replace({mantissa}, '^0+', ''), '0+(?!.)', '')"
    within = f"abs({cast}) BETWEEN CAST('{least}' AS {type_}) AND CAST('{most}' AS {type_})"
    is_exact = f"length({significant}) <= {digits} AND ({significant} = '' OR {within})"
    # A text that Spark itself would write for the value, however many digits it has.
    is_own = f"CAST({cast} AS string) = {value}"
    return (
        f"CASE WHEN {value} IN ('NaN', 'Infinity', '-Infinity') THEN {cast} "
        f"WHEN {_matches(value, _NUMBER)} AND ({is_exact} OR {is_own}) THEN {cast} END"
    )


def _to_text(value: str, source: IcebergType) -> str | None:
    if isinstance(source, BooleanType | IntegerType | LongType | FloatType | DoubleType | TimestampType):
        return f"CAST({value} AS string)"
    if isinstance(source, DecimalType):
        return decimal_text(value, source.scale)
    if isinstance(source, DateType):
        return date_text(value)
    if isinstance(source, TimestamptzType):
        return instant_text(value)
    return None


def decimal_text(value: str, scale: int) -> str:
    """Return the SQL of all digits of a decimal: a cast writes small ones with an exponent, in one mode."""
    text = f"CAST({value} AS string)"
    if scale <= 6:
        return text
    digits = f"replace(replace(substring_index({text}, 'E', 1), '.', ''), '-', '')"
    small = f"concat(CASE WHEN {value} < 0 THEN '-0.' ELSE '0.' END, lpad({digits}, {scale}, '0'))"
    return f"CASE WHEN {text} LIKE '%E%' THEN {small} ELSE {text} END"


def date_text(value: str) -> str:
    """Return the SQL of a date's text; a cast alone follows `spark.sql.legacy.timeParserPolicy`."""
    return f"substring_index(CAST(CAST({value} AS timestamp_ntz) AS string), ' ', 1)"


def instant_text(value: str) -> str:
    """Return the SQL of an instant's text, in UTC whatever the time zone of the session is."""
    micro = "make_dt_interval(0, 0, 0, CAST('0.000001' AS decimal(18,6)))"
    utc = f"CAST('1970-01-01 00:00:00' AS timestamp_ntz) + {micro} * unix_micros({value})"
    return f"concat(CAST({utc} AS string), 'Z')"


def _number(value: str, source: IcebergType, target: IcebergType) -> str | None:
    type_ = spark_type(target)
    cast = f"TRY_CAST({value} AS {type_})"
    if is_safe_upcast(source, target):
        return f"CAST({value} AS {type_})"
    if isinstance(target, _INTEGERS):
        if isinstance(source, _FLOATS):
            low, high = (f"CAST('{bound}' AS double)" for bound in _BOUNDS[type(target)])
            whole = f"CAST(TRY_CAST({value} AS bigint) AS double) = CAST({value} AS double)"
            return _when(f"{value} >= {low} AND {value} < {high} AND {whole}", cast)
        return _when(f"{value} % 1 = 0", cast) if isinstance(source, DecimalType) else cast
    if isinstance(target, DecimalType):
        if isinstance(source, _FLOATS):
            return _when(f"CAST({cast} AS {spark_type(source)}) = {value}", cast)
        if isinstance(source, DecimalType) and source.scale > target.scale:
            scale = target.scale
            unit = f"0.{'1'.zfill(scale)}" if scale else "1"
            whole = f"{value} % CAST('{unit}' AS decimal({scale + 1},{scale})) = 0"
            return _when(whole, cast)
        return cast
    as_float = f"CAST({value} AS {type_})"
    if isinstance(source, DoubleType):
        return _when(f"CAST({as_float} AS double) = {value}", as_float)
    back = f"TRY_CAST({as_float} AS {'bigint' if isinstance(source, _INTEGERS) else spark_type(source)})"
    same = f"{back} = {value}"
    if isinstance(source, LongType):
        # The greatest one is rounded up to what is no bigint, and Spark takes that for the greatest again.
        same = f"{as_float} < CAST('{_BOUNDS[LongType][1]}' AS {type_}) AND {same}"
    return _when(same, as_float)


@dataclass(frozen=True)
class Whole:
    """A value of a type that is another in the table.

    Attributes:
        path: where it is, as the table has it.
        source: the type in the batch.
        target: the type in the table.
    """

    path: Path
    source: IcebergType
    target: IcebergType

    def render(self, value: str, depth: int = 0) -> str:
        """Return the SQL of the value in the table's type; NULL if it does not convert."""
        return str(lossless(value, self.source, self.target))

    def failures(self, value: str, depth: int = 0) -> Iterator[tuple[str, str]]:
        """Yield a reason why rows cannot be placed, and the condition that a row is one of them."""
        yield self.reason, f"{value} IS NOT NULL AND {self.render(value)} IS NULL"

    @property
    def reason(self) -> str:
        """What is wrong with a value that does not convert."""
        # Not of which type it was: of a letter that is read back that is not known, and causes are counted.
        target = type_text(self.target)
        if not self.converts:
            return f"{path_text(self.path)}: the value is no {self.target}"
        return f"{path_text(self.path)}: the value does not convert to {target} without loss"

    @property
    def converts(self) -> bool:
        """Whether Spark has another type for the table's."""
        return type_text(self.source) != type_text(self.target)


@dataclass(frozen=True)
class Unchanged:
    """A value of which only a NULL may be wrong."""

    converts = False

    def render(self, value: str, depth: int = 0) -> str:
        """See ``Whole.render``."""
        return value

    def failures(self, value: str, depth: int = 0) -> Iterator[tuple[str, str]]:
        """See ``Whole.failures``."""
        yield from ()


@dataclass(frozen=True)
class Member:
    """A field of a struct of the batch.

    Attributes:
        name: its name in the batch.
        path: where it is in the table.
        conversion: what happens to its value.
        not_null: whether the table takes no NULL there.
    """

    name: str
    path: Path
    conversion: "Conversion"
    not_null: bool = False

    def failures(self, value: str, depth: int) -> Iterator[tuple[str, str]]:
        """See ``Whole.failures``."""
        if self.not_null:
            yield f"{path_text(self.path)}: NULL, and the column is NOT NULL", f"{value} IS NULL"
        yield from self.conversion.failures(value, depth)

    @property
    def is_needed(self) -> bool:
        """Whether there is anything to do or to check."""
        return self.not_null or not isinstance(self.conversion, Unchanged)


@dataclass(frozen=True)
class InStruct:
    """A struct, rebuilt with the same fields in the same order."""

    members: tuple[Member, ...]

    @property
    def converts(self) -> bool:
        """See ``Whole.converts``."""
        return any(member.conversion.converts for member in self.members)

    def render(self, value: str, depth: int = 0) -> str:
        """See ``Whole.render``."""
        if not self.converts:
            return value
        parts = (
            f"{string_literal(m.name)}, {m.conversion.render(f'{value}.{quote(m.name)}', depth)}"
            for m in self.members
        )
        return f"IF({value} IS NULL, NULL, named_struct({', '.join(parts)}))"

    def failures(self, value: str, depth: int = 0) -> Iterator[tuple[str, str]]:
        """See ``Whole.failures``."""
        for member in self.members:
            for reason, condition in member.failures(f"{value}.{quote(member.name)}", depth):
                yield reason, f"{value} IS NOT NULL AND {condition}"


@dataclass(frozen=True)
class InCollection:
    """The elements of a list, or the values of a map.

    Attributes:
        element: what happens to each, see ``Member``; its name does not matter.
        is_map: whether they are a map's.
    """

    element: Member
    is_map: bool = False

    @property
    def converts(self) -> bool:
        """See ``Whole.converts``."""
        return self.element.conversion.converts

    def render(self, value: str, depth: int = 0) -> str:
        """See ``Whole.render``."""
        if not self.converts:
            return value
        inner = self.element.conversion.render(f"value_{depth}", depth + 1)
        if self.is_map:
            return f"transform_values({value}, (key_{depth}, value_{depth}) -> {inner})"
        return f"transform({value}, value_{depth} -> {inner})"

    def failures(self, value: str, depth: int = 0) -> Iterator[tuple[str, str]]:
        """See ``Whole.failures``."""
        values = f"map_values({value})" if self.is_map else value
        for reason, condition in self.element.failures(f"value_{depth}", depth + 1):
            # `exists` of nothing but NULL is NULL.
            yield reason, f"coalesce(exists({values}, value_{depth} -> {condition}), false)"


Conversion = Whole | Unchanged | InStruct | InCollection


def conversions(target: Schema, source: Schema, policy: Policy) -> tuple[Member, ...]:
    """Return what happens to each column of a batch, so that a plan has no difference of types to refuse.

    A difference that no value converts over is left as it is: the plan refuses it.

    Args:
        target: the table's schema.
        source: the batch's.
        policy: what the plan may do; what it would do is not done value by value.
    """
    renames, _ = resolve_renames(
        target, source, policy.renames, policy.facts.past, widens=policy.type_widening
    )
    return _Walk(target, policy, renames).members((), target.fields, source.fields)


def filled_paths(members: Sequence[Member]) -> frozenset[Path]:
    """Return the folded paths, of columns and inside them, at which a good row has no NULL."""
    found: set[Path] = set()
    for member in members:
        if member.not_null:
            found.add(tuple(map(fold, member.path)))
        if isinstance(member.conversion, InStruct):
            found |= filled_paths(member.conversion.members)
        elif isinstance(member.conversion, InCollection):
            found |= filled_paths((member.conversion.element,))
    return frozenset(found)


def converted_schema(source: Schema, members: Sequence[Member]) -> Schema:
    """Return the schema of a batch whose values have been converted."""
    by_name = {member.name: member.conversion for member in members}
    return Schema(*(_field(f, by_name[f.name]) for f in source.fields))


def _field(f: NestedField, conversion: "Conversion") -> NestedField:
    return NestedField(f.field_id, f.name, _converted(f.field_type, conversion), required=f.required)


def _converted(type_: IcebergType, conversion: Conversion) -> IcebergType:
    if isinstance(conversion, Whole) and conversion.converts:
        return conversion.target
    if isinstance(conversion, InStruct) and isinstance(type_, StructType):
        pairs = zip(type_.fields, conversion.members, strict=True)
        return StructType(*(_field(f, m.conversion) for f, m in pairs))
    if isinstance(conversion, InCollection):
        inside = conversion.element.conversion
        if isinstance(type_, ListType):
            element = _converted(type_.element_type, inside)
            return ListType(type_.element_id, element, type_.element_required)
        if isinstance(type_, MapType):
            value = _converted(type_.value_type, inside)
            return MapType(type_.key_id, type_.key_type, type_.value_id, value, type_.value_required)
    return type_


class _Walk:
    """Goes through a table's schema beside a batch's, by the names that the table will have."""

    def __init__(self, target: Schema, policy: Policy, renames: Mapping[int, str]) -> None:
        self._identifiers = frozenset(target.identifier_field_ids)
        self._policy = policy
        self._renames = renames

    def members(
        self, parent: Path, old_fields: Sequence[NestedField], new_fields: Sequence[NestedField]
    ) -> tuple[Member, ...]:
        """Return what happens to each column of the batch, or each field of a struct in it."""
        known = {fold(self._renames.get(f.field_id, f.name)): f for f in old_fields}
        found = []
        for new in new_fields:
            old = known.get(fold(new.name))
            path = (*parent, new.name)
            if old is None:
                found.append(Member(new.name, path, Unchanged()))
            else:
                found.append(self._member(new.name, path, old, new.field_type))
        return tuple(found)

    def _member(self, name: str, path: Path, old: NestedField, new: IcebergType) -> Member:
        may_relax = self._policy.relax_not_null and not self._has_identifier(old)
        is_counted = len(path) == 1 and fold(name) in self._policy.columns_without_null
        not_null = old.required and not may_relax and not is_counted
        return Member(name, path, self._convert(path, old.field_type, new), not_null)

    def _has_identifier(self, f: NestedField) -> bool:
        return f.field_id in self._identifiers or any(map(self._has_identifier, children(f.field_type)))

    def _convert(self, path: Path, old: IcebergType, new: IcebergType) -> Conversion:
        if isinstance(old, StructType) and isinstance(new, StructType):
            members = self.members(path, old.fields, new.fields)
            return InStruct(members) if any(m.is_needed for m in members) else Unchanged()
        if isinstance(old, ListType) and isinstance(new, ListType):
            element = self._member("element", (*path, "element"), old.element_field, new.element_type)
            return InCollection(element) if element.is_needed else Unchanged()
        if isinstance(old, MapType) and isinstance(new, MapType):
            value = self._member("value", (*path, "value"), old.value_field, new.value_type)
            return InCollection(value, is_map=True) if value.is_needed else Unchanged()
        if is_same(new, old) or is_safe_upcast(new, old):
            return Unchanged()
        if is_widening(old, new) and self._policy.type_widening:
            return Unchanged()
        found = lossless("v", new, old)
        return Unchanged() if found is None else Whole(path, new, old)
