"""The SQL that reads the JSON of a dead letter as values of a table's columns.

JSON says of no value which type it has, and Spark's `from_json` with a type drops in silence what it does not
expect: a name in another case, a value of another shape, digits beyond those of a double. So it is asked for
maps and lists of texts only, level by level, and each value of a text is marked with what it was.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

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
)

from dbt.adapters.sparkevolve.evolution.names import fold, quote, string_literal
from dbt.adapters.sparkevolve.evolution.types import VariantType, children

# What a value is marked with in front that stands in JSON without quotes, and one that is a text. JSON has
# neither character but as these escapes.
_BARE, _TEXT = "char(2)", "char(1)"
_TEXT_IN_JSON = string_literal(r'"\u0001')
_BARE_IN_JSON = string_literal(r'"\\u0002$1"')
# A text in JSON, or what is between two; the quantifiers are such that Java needs no stack for a long one.
_TOKENS = string_literal(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"|[^"]+')
# A number is as JSON has it, so that what only looks like one stays what Spark finds no JSON in; so does one
# in the place of a name.
_VALUE = string_literal(r"(-?(?:0|[1-9][0-9]*+)(?:[.][0-9]++)?+(?:[eE][-+]?[0-9]++)?+|true|false)(?!\s*:)")
_COLON = string_literal(r"^\s*:")
_OBJECT, _LIST = "'map<string,string>'", "'array<string>'"
# What Spark reads as JSON and JSON has not. All else of that kind is off unless one turns it on.
_STRICT = "map('allowSingleQuotes', 'false', 'allowNonNumericNumbers', 'false')"
# Spark reads the first value of a text, and not what follows. So a letter is read as the first member of an
# object, whose second one no letter can have: a text of it would be marked with another character.
_BEFORE, _AFTER, _END = string_literal('{"letter":'), string_literal(r',"end":"\u0002end"}'), "'end'"
# The text of a number that Spark writes for a decimal and for no double: without a point, with a zero at its
# end, or with more digits than a double has.
_OF_DECIMAL = string_literal(r"^-?[0-9](?:[.](?:[0-9]+0|[0-9]{17,}))?[eE]-")
# Exponents with which it writes both. A decimal has none of those between, and no lower ones.
_OF_BOTH = string_literal(r"[eE]-(?:[7-9]|[12][0-9]|3[0-8])$")
_NUMBERS = (IntegerType, LongType, FloatType, DoubleType, DecimalType)
# When a letter was written; what has no time was written by hand, by the names of today.
_TIME = "coalesce(unix_micros(`loadedAt`), 9223372036854775807)"


@dataclass(frozen=True)
class Naming:
    """By which names letters have a field, where that depends on when they were written.

    Attributes:
        since: from when on its name of today is its own, in microseconds since the epoch; None for always.
        former: its other names, and until when each was its own, likewise.
    """

    since: int | None = None
    former: tuple[tuple[str, int], ...] = ()

    def condition(self, key: str, named: str) -> str:
        """Return the condition that a letter has the field by a name.

        Args:
            key: the SQL of the name.
            named: the condition that it is the field's of today.
        """
        if self.since is not None:
            named = f"({named} AND {_TIME} >= {self.since})"
        if not self.former:
            return named
        former = [f"{is_one_of(key, [name])} AND {_TIME} < {until}" for name, until in self.former]
        return f"({' OR '.join([named, *former])})"


ALWAYS = Naming()
Namings = Mapping[int, Naming]
"""Those of the fields inside of a column, by their ids, of which some have not always had their names."""

_SAME: Namings = {}


def read_as(type_: IcebergType) -> IcebergType | None:
    """Return the type as which the value of a letter's JSON is read, None if it cannot be.

    Of all that has a text the text is read: from there it is converted as a text of the model's would be.
    """
    if isinstance(type_, BinaryType | FixedType):
        return BinaryType()
    return _inside(type_)


def _inside(type_: IcebergType) -> IcebergType | None:
    """Return a type with texts in place of all that has one; None if one of them would not be the same."""
    # JSON does not have of which types the values in a variant are.
    if isinstance(type_, BinaryType | FixedType | VariantType):
        return None
    if type_.is_primitive:
        return StringType()
    if isinstance(type_, StructType):
        fields = [(f, _inside(f.field_type)) for f in type_.fields]
        if any(inner is None for _, inner in fields):
            return None
        return StructType(
            *(NestedField(f.field_id, f.name, inner, required=False) for f, inner in fields if inner)
        )
    if isinstance(type_, ListType):
        element = _inside(type_.element_type)
        return element and ListType(type_.element_id, element, element_required=False)
    assert isinstance(type_, MapType)
    value = _inside(type_.value_type)
    if value is None or not isinstance(type_.key_type, StringType):
        return None
    return MapType(type_.key_id, StringType(), type_.value_id, value, value_required=False)


def members(json: str) -> str:
    """Return the SQL of the members of a letter's JSON, as a map of texts; NULL if it is no object.

    A member that is an object or a list is the text of that. It is NULL, too, for what Spark takes for JSON
    and is none: other quotes, words for numbers, or anything that follows the object.
    """
    whole = f"from_json(concat({_BEFORE}, {_marked(json)}, {_AFTER}), {_OBJECT}, {_STRICT})"
    is_whole = (
        f"map_keys(whole) = array('letter', {_END}) AND get(map_values(whole), 1) = concat({_BARE}, {_END}) "
        "AND startswith(get(map_values(whole), 0), '{')"
    )
    inside = f"CASE WHEN {is_whole} THEN from_json(get(map_values(whole), 0), {_OBJECT}) END"
    return f"transform(array({whole}), whole -> {inside})[0]"


def _marked(json: str) -> str:
    """Return the SQL of a JSON text in which each value is a text, in the digits with which it is written.

    Spark reads a number with a fraction as a double, which has fewer digits, where a text is asked for. NULL
    for what has no end of a text.
    """
    tokens = f"regexp_extract_all({json}, {_TOKENS}, 0)"
    is_name = f"get(tokens, place + 1) RLIKE {_COLON}"
    marked = (
        f"CASE WHEN NOT startswith(token, '\"') THEN regexp_replace(token, {_VALUE}, {_BARE_IN_JSON}) "
        f"WHEN NOT coalesce({is_name}, false) "
        f"THEN concat({_TEXT_IN_JSON}, substring(token, 2)) ELSE token END"
    )
    found = f"transform(tokens, (token, place) -> {marked})"
    whole = f"CASE WHEN array_join(tokens, '') = {json} THEN array_join({found}, '') END"
    return f"transform(array({tokens}), tokens -> {whole})[0]"


def is_one_of(key: str, names: Sequence[str]) -> str:
    """Return the condition that a name is one of some names, in any case."""
    return f"lower({key}) IN ({', '.join(f'lower({string_literal(name)})' for name in names)})"


def value_of(entries: str, condition: Callable[[str], str]) -> str:
    """Return the SQL of the value of the one entry of a map that has another value than NULL, and a name.

    Args:
        entries: the SQL of the list of entries.
        condition: returns the condition that a name is the one that is looked for.
    """
    return f"get(filter({entries}, entry -> entry.value IS NOT NULL AND {condition('entry.key')}), 0).value"


def _is_named(f: NestedField, of: StructType, namings: Namings) -> Callable[[str], str]:
    """Return what returns the condition that a name in JSON is a field's: in any case, if that is unique."""
    is_unique = sum(fold(other.name) == fold(f.name) for other in of.fields) == 1
    naming = namings.get(f.field_id, ALWAYS)

    def condition(key: str) -> str:
        named = is_one_of(key, [f.name]) if is_unique else f"{key} = {string_literal(f.name)}"
        return naming.condition(key, named)

    return condition


def read(json: str, type_: IcebergType, namings: Namings = _SAME, depth: int = 0) -> str:
    """Return the SQL of a value of marked JSON in the type that ``read_as`` says, which is not None.

    Args:
        json: the SQL of its text.
        type_: the type that it has in the table.
        namings: by which names it has what is inside of it.
        depth: how many values it is in.
    """
    if isinstance(type_, BinaryType | FixedType):
        return f"try_to_binary({_once(json, depth, lambda text: _plain(text, 'NULL'))}, 'base64')"
    if type_.is_primitive:
        return _once(json, depth, lambda text: _text_for(text, type_))
    item = f"item_{depth}"
    if isinstance(type_, ListType):
        inner = read(item, type_.element_type, namings, depth + 1)
        return f"transform(from_json({json}, {_LIST}), {item} -> {inner})"
    if isinstance(type_, MapType):
        inner = read(item, type_.value_type, namings, depth + 1)
        return f"transform_values(from_json({json}, {_OBJECT}), (key_{depth}, {item}) -> {inner})"
    assert isinstance(type_, StructType)
    struct = type_

    def rebuilt(fields: str) -> str:
        parts = (
            f"{string_literal(f.name)}, "
            f"{read(value_of(fields, _is_named(f, struct, namings)), f.field_type, namings, depth + 1)}"
            for f in struct.fields
        )
        return f"IF({fields} IS NULL, NULL, named_struct({', '.join(parts)}))"

    return _once(f"map_entries(from_json({json}, {_OBJECT}))", depth, rebuilt)


def _once(value: str, depth: int, use: Callable[[str], str]) -> str:
    """Return the SQL of what is made of a value that is evaluated once, however often it is named."""
    name = f"value_{depth}"
    return f"transform(array({value}), {name} -> {use(name)})[0]"


def _plain(text: str, bare: str) -> str:
    """Return the SQL of a marked text without its mark; NULL for an object or a list.

    Args:
        text: the SQL of it.
        bare: the SQL of what it is if it stands without quotes in JSON.
    """
    return (
        f"CASE WHEN startswith({text}, {_BARE}) THEN {bare} "
        f"WHEN startswith({text}, {_TEXT}) THEN substring({text}, 2) END"
    )


def _text_for(text: str, type_: IcebergType) -> str:
    """Return the SQL of a marked value's text as the conversion from texts to a type reads it.

    A number, or what is true or false, may be written in several ways without quotes.
    """
    bare = f"substring({text}, 2)"
    if isinstance(type_, _NUMBERS):
        written = bare if isinstance(type_, FloatType | DoubleType) else _number(bare)
        return _plain(text, f"CASE {bare} WHEN 'true' THEN '1' WHEN 'false' THEN '0' ELSE {written} END")
    if isinstance(type_, BooleanType):
        number = _number(bare)
        return _plain(text, f"CASE {number} WHEN '1' THEN 'true' WHEN '0' THEN 'false' ELSE {bare} END")
    if isinstance(type_, StringType):
        of_decimal = f"{bare} RLIKE {_OF_DECIMAL}"
        return _plain(text, f"CASE WHEN {of_decimal} THEN {_digits(bare)} ELSE {bare} END")
    plain = _plain(text, bare)
    if isinstance(type_, DateType):
        return f"regexp_replace({plain}, '^([0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}}) 00:00:00Z?$', '$1')"
    if isinstance(type_, TimestampType):
        return f"regexp_replace({plain}, '^([0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}})$', '$1 00:00:00')"
    return plain


def _digits(text: str) -> str:
    """Return the SQL of a number's text without an exponent: the same digits, and the zeros that takes.

    Nothing is calculated with the number itself, since each type of numbers would round some of them. A text
    with more than 3 digits of an exponent is left as it is.
    """
    exponent = f"regexp_extract({text}, '[eE](.*)', 1)"
    mantissa = f"regexp_replace({text}, '[eE].*|-', '')"
    before = f"length(substring_index({mantissa}, '.', 1)) + coalesce(TRY_CAST({exponent} AS int), 0)"
    number = f"named_struct('digits', replace({mantissa}, '.', ''), 'before', {before})"
    digits = (
        "concat(repeat('0', 1 - number.before), number.digits, "
        "repeat('0', number.before - length(number.digits)))"
    )
    point = "greatest(1, number.before)"
    split = f"concat(left({digits}, {point}), '.', substring({digits}, {point} + 1))"
    plain = f"regexp_replace(regexp_replace({split}, '^0+(?=[0-9])', ''), '[.](?![0-9])', '')"
    signed = f"concat(CASE WHEN startswith({text}, '-') THEN '-' ELSE '' END, {plain})"
    return (
        f"CASE WHEN {text} RLIKE '[eE][-+]?[0-9]{{4}}' THEN {text} "
        f"ELSE transform(array({number}), number -> {signed})[0] END"
    )


def _number(text: str) -> str:
    """Return the SQL of a number's text in digits, without zeros at the end of its fraction."""
    short = f"regexp_replace({_digits(text)}, '[.]0*$|([.][0-9]*[1-9])0+$', '$1')"
    plain = f"regexp_replace({short}, '^-0$', '0')"
    return f"CASE WHEN {text} RLIKE '[.eE]' THEN {plain} ELSE {text} END"


def misfit(json: str, type_: IcebergType, namings: Namings = _SAME) -> str:
    """Return the condition that marked JSON has a value of another shape than its type, which reads as NULL.

    Args:
        json: the SQL of its text.
        type_: the type that it has in the table.
        namings: by which names it has what is inside of it.
    """
    return _has(json, type_, namings, 0, lambda value, _: f"left({value}, 1) IN ('{{', '[')")


def uncertain(json: str, type_: IcebergType, namings: Namings = _SAME) -> str | None:
    """Return the condition that marked JSON without a misfit has a number whose text nobody can tell.

    Spark writes a small number in one way in the JSON, and in another one as a text if it is a decimal.

    Args:
        json: the SQL of its text.
        type_: the type that it has in the table.
        namings: by which names it has what is inside of it.

    Returns:
        The SQL, or None if there can be none, since no text is in the type.
    """
    if not _has_texts(type_):
        return None

    def condition(value: str, of: IcebergType) -> str:
        if not isinstance(of, StringType):
            return "false"
        is_bare = f"startswith({value}, {_BARE})"
        return f"({is_bare} AND {value} RLIKE {_OF_BOTH} AND NOT substring({value}, 2) RLIKE {_OF_DECIMAL})"

    return _has(json, type_, namings, 0, condition)


def _has_texts(type_: IcebergType) -> bool:
    """Tell whether a type is or has texts, but for the keys of a map."""
    if isinstance(type_, MapType):
        return _has_texts(type_.value_type)
    return isinstance(type_, StringType) or any(_has_texts(f.field_type) for f in children(type_))


def _has(
    json: str,
    type_: IcebergType,
    namings: Namings,
    depth: int,
    condition: Callable[[str, IcebergType], str],
) -> str:
    """Return the condition that marked JSON has another shape than its type, or a value of a condition.

    Args:
        json: the SQL of its text.
        type_: the type that it has in the table.
        namings: by which names it has what is inside of it.
        depth: how many values it is in.
        condition: returns the condition, of the SQL of a value that is not to be nested, and of its type.
    """
    if type_.is_primitive:
        return condition(json, type_)
    item = f"item_{depth}"
    if isinstance(type_, ListType):
        found = f"from_json({json}, {_LIST})"
        is_other = f"json_array_length({json}) IS NULL OR {found} IS NULL"
        inside = f"exists({found}, {item} -> {_has(item, type_.element_type, namings, depth + 1, condition)})"
        return f"({json} IS NOT NULL AND ({is_other} OR {inside}))"
    entries = f"fields_{depth}"
    if isinstance(type_, MapType):
        keys = f"transform({entries}, {item} -> {item}.key)"
        conditions = [
            f"size({entries}) > size(array_distinct({keys}))",
            f"exists({entries}, {item} -> "
            f"{_has(f'{item}.value', type_.value_type, namings, depth + 1, condition)})",
        ]
    else:
        assert isinstance(type_, StructType)
        conditions = [
            _has(value_of(entries, _is_named(f, type_, namings)), f.field_type, namings, depth + 1, condition)
            for f in type_.fields
        ]
    found = f"array(map_entries(from_json({json}, {_OBJECT})))"
    is_other = f"json_object_keys({json}) IS NULL OR "
    inside = " OR ".join([f"{entries} IS NULL", *conditions])
    return f"({json} IS NOT NULL AND ({is_other}exists({found}, {entries} -> {inside})))"


def unknown(json: str, type_: IcebergType, path: str, namings: Namings = _SAME) -> str | None:
    """Return the SQL of the list of the paths that marked JSON has, not with NULL, and its type has not.

    Args:
        json: the SQL of its text.
        type_: the type that it has in the table.
        path: where that is, as a text.
        namings: by which names it has what is inside of it.

    Returns:
        The SQL, or None if there can be none.
    """

    def condition(struct: StructType, fields: str, key: str) -> str:
        return " AND ".join(f"NOT {_is_named(f, struct, namings)(key)}" for f in struct.fields) or "true"

    return _paths(json, type_, path, namings, 0, condition)


def repeated(json: str, type_: IcebergType, path: str, namings: Namings = _SAME) -> str | None:
    """Return the SQL of the list of the paths of marked JSON that are one name to the table.

    Args and the result are as of ``unknown``.
    """

    def condition(struct: StructType, fields: str, key: str) -> str:
        same = [
            f"{is_named(key)} AND size(filter({fields}, other -> {is_named('other.key')})) > 1"
            for is_named in (_is_named(f, struct, namings) for f in struct.fields)
        ]
        return " OR ".join(same) or "false"

    return _paths(json, type_, path, namings, 0, condition)


def _paths(
    json: str,
    type_: IcebergType,
    path: str,
    namings: Namings,
    depth: int,
    condition: Callable[[StructType, str, str], str],
) -> str | None:
    """Return the SQL of the list of the paths of fields inside of marked JSON that meet a condition.

    Args:
        json: the SQL of the text.
        type_: the type that it has in the table.
        path: where that is, as a text.
        namings: by which names it has what is inside of it.
        depth: how many values it is in.
        condition: returns the condition, of a struct, of the SQL of the fields that the JSON has for it, and
            of that of the name of one of these.
    """
    item = f"item_{depth}"
    if isinstance(type_, ListType | MapType):
        of_map = isinstance(type_, MapType)
        part = type_.value_type if isinstance(type_, MapType) else type_.element_type
        where = f"{path}.{'`value`' if of_map else '`element`'}"
        below = _paths(item, part, where, namings, depth + 1, condition)
        found = f"from_json({json}, {_OBJECT if of_map else _LIST})"
        values = f"map_values({found})" if of_map else found
        return below and f"coalesce(flatten(transform({values}, {item} -> {below})), array())"
    if not isinstance(type_, StructType):
        return None
    fields = f"fields_{depth}"
    entries = f"filter(map_entries(from_json({json}, {_OBJECT})), entry -> entry.value IS NOT NULL)"
    found = f"filter({fields}, field -> {condition(type_, fields, 'field.key')})"
    lists = [f"transform({found}, field -> {path_of('field.key', f'{path}.')})"]
    for f in type_.fields:
        value = value_of(fields, _is_named(f, type_, namings))
        below = _paths(value, f.field_type, f"{path}.{quote(f.name)}", namings, depth + 1, condition)
        lists += [below] if below else []
    parts = ", ".join(f"coalesce({part}, array())" for part in lists)
    return f"transform(array({entries}), {fields} -> concat({parts}))[0]"


def path_of(key: str, before: str = "") -> str:
    """Return the SQL of a name in backticks behind the text of a path."""
    return f"concat({string_literal(f'{before}`')}, replace({key}, '`', '``'), '`')"
