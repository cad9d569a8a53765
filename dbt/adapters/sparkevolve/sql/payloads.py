"""The SQL that reads the JSON of a dead letter as values of a table's columns.

JSON says of no value which type it has, and Spark's `from_json` with a type drops in silence what it does not
expect: a name in another case, a value of another shape, digits beyond those of a double. So it is asked for
maps and lists of texts only, level by level, and each value of a text is marked with what it was.
"""

from collections.abc import Callable, Sequence

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

from dbt.adapters.sparkevolve.evolution.conversions import decimal_text
from dbt.adapters.sparkevolve.evolution.names import fold, quote, string_literal
from dbt.adapters.sparkevolve.evolution.types import VariantType

# What a value is marked with in front that stands in JSON without quotes, and a text that would be taken for
# one of these, or for an object or a list. JSON has neither character but as these escapes.
_BARE, _TEXT = "char(2)", "char(1)"
_LIKE_MARKED = [string_literal(f'"{begin}') for begin in ("{", "[", r"\u0001", r"\u0002")]
_TEXT_IN_JSON = string_literal(r'"\u0001')
_BARE_IN_JSON = string_literal(r'"\\u0002$1"')
# A text in JSON, or what is between two; the quantifiers are such that Java needs no stack for a long one.
_TOKENS = string_literal(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"|[^"]+')
_VALUE = string_literal("(-?[0-9]+(?:[.][0-9]+)?(?:[eE][-+]?[0-9]+)?|true|false)")
_COLON = string_literal(r"^\s*:")
_OBJECT, _LIST = "'map<string,string>'", "'array<string>'"
_NUMBERS = (IntegerType, LongType, FloatType, DoubleType, DecimalType)


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

    A member that is an object or a list is the text of that.
    """
    return f"from_json({_marked(json)}, {_OBJECT})"


def _marked(json: str) -> str:
    """Return the SQL of a JSON text in which each value is a text, in the digits with which it is written.

    Spark reads a number with a fraction as a double, which has fewer digits, where a text is asked for. NULL
    for what has no end of a text.
    """
    tokens = f"regexp_extract_all({json}, {_TOKENS}, 0)"
    is_name = f"get(tokens, place + 1) RLIKE {_COLON}"
    is_like = " OR ".join(f"startswith(token, {begin})" for begin in _LIKE_MARKED)
    marked = (
        f"CASE WHEN NOT startswith(token, '\"') THEN regexp_replace(token, {_VALUE}, {_BARE_IN_JSON}) "
        f"WHEN ({is_like}) AND NOT coalesce({is_name}, false) "
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


def _is_named(f: NestedField, of: StructType) -> Callable[[str], str]:
    """Return what returns the condition that a name in JSON is a field's: in any case, if that is unique."""
    if sum(fold(other.name) == fold(f.name) for other in of.fields) > 1:
        return lambda key: f"{key} = {string_literal(f.name)}"
    return lambda key: is_one_of(key, [f.name])


def read(json: str, type_: IcebergType, depth: int = 0) -> str:
    """Return the SQL of a value of marked JSON in the type that ``read_as`` says, which is not None.

    Args:
        json: the SQL of its text.
        type_: the type that it has in the table.
        depth: how many values it is in.
    """
    if isinstance(type_, BinaryType | FixedType):
        return f"try_to_binary({_once(json, depth, lambda text: _plain(text, 'NULL'))}, 'base64')"
    if type_.is_primitive:
        return _once(json, depth, lambda text: _text_for(text, type_))
    item = f"item_{depth}"
    if isinstance(type_, ListType):
        return f"transform(from_json({json}, {_LIST}), {item} -> {read(item, type_.element_type, depth + 1)})"
    if isinstance(type_, MapType):
        inner = read(item, type_.value_type, depth + 1)
        return f"transform_values(from_json({json}, {_OBJECT}), (key_{depth}, {item}) -> {inner})"
    assert isinstance(type_, StructType)
    struct = type_

    def rebuilt(fields: str) -> str:
        parts = (
            f"{string_literal(f.name)}, "
            f"{read(value_of(fields, _is_named(f, struct)), f.field_type, depth + 1)}"
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
        f"WHEN startswith({text}, {_TEXT}) THEN substring({text}, 2) "
        f"WHEN left({text}, 1) IN ('{{', '[') THEN NULL ELSE {text} END"
    )


def _text_for(text: str, type_: IcebergType) -> str:
    """Return the SQL of a marked value's text as the conversion from texts to a type reads it.

    A number, or what is true or false, may be written in several ways without quotes.
    """
    bare = f"substring({text}, 2)"
    if isinstance(type_, _NUMBERS):
        written = _number(bare, type_) if not isinstance(type_, FloatType | DoubleType) else bare
        return _plain(text, f"CASE {bare} WHEN 'true' THEN '1' WHEN 'false' THEN '0' ELSE {written} END")
    if isinstance(type_, BooleanType):
        return _plain(text, f"CASE {bare} WHEN '1' THEN 'true' WHEN '0' THEN 'false' ELSE {bare} END")
    plain = _plain(text, bare)
    if isinstance(type_, DateType):
        return f"regexp_replace({plain}, '^([0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}}) 00:00:00Z?$', '$1')"
    if isinstance(type_, TimestampType):
        return f"regexp_replace({plain}, '^([0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}})$', '$1 00:00:00')"
    return plain


def _number(text: str, type_: IcebergType) -> str:
    """Return the SQL of a number's text, without an exponent and zeros at its end where it has a fraction."""
    scale = max(18, type_.scale) if isinstance(type_, DecimalType) else 18
    number = decimal_text(f"TRY_CAST({text} AS decimal(38,{scale}))", scale)
    plain = f"regexp_replace(regexp_replace({number}, '0+$', ''), '[.]$', '')"
    is_same = f"TRY_CAST({plain} AS double) = TRY_CAST({text} AS double)"
    is_short = f"{text} RLIKE '[.eE]' AND NOT {text} RLIKE '[.][0-9]{{{scale + 1},}}' AND {is_same}"
    return f"CASE WHEN {is_short} THEN {plain} ELSE {text} END"


def misfit(json: str, type_: IcebergType, depth: int = 0) -> str:
    """Return the condition that marked JSON has a value of another shape than its type, which reads as NULL.

    Args:
        json: the SQL of its text.
        type_: the type that it has in the table.
        depth: how many values it is in.
    """
    if type_.is_primitive:
        return f"left({json}, 1) IN ('{{', '[')"
    item = f"item_{depth}"
    if isinstance(type_, ListType):
        found = f"from_json({json}, {_LIST})"
        is_other = f"json_array_length({json}) IS NULL OR {found} IS NULL"
        inside = f"exists({found}, {item} -> {misfit(item, type_.element_type, depth + 1)})"
        return f"({json} IS NOT NULL AND ({is_other} OR {inside}))"
    entries = f"fields_{depth}"
    if isinstance(type_, MapType):
        keys = f"transform({entries}, {item} -> {item}.key)"
        conditions = [
            f"size({entries}) > size(array_distinct({keys}))",
            f"exists({entries}, {item} -> {misfit(f'{item}.value', type_.value_type, depth + 1)})",
        ]
    else:
        assert isinstance(type_, StructType)
        conditions = [
            misfit(value_of(entries, _is_named(f, type_)), f.field_type, depth + 1) for f in type_.fields
        ]
    found = f"array(map_entries(from_json({json}, {_OBJECT})))"
    is_other = f"json_object_keys({json}) IS NULL OR "
    inside = " OR ".join([f"{entries} IS NULL", *conditions])
    return f"({json} IS NOT NULL AND ({is_other}exists({found}, {entries} -> {inside})))"


def unknown(json: str, type_: IcebergType, path: str) -> str | None:
    """Return the SQL of the list of the paths that marked JSON has, not with NULL, and its type has not.

    Args:
        json: the SQL of its text.
        type_: the type that it has in the table.
        path: where that is, as a text.

    Returns:
        The SQL, or None if there can be none.
    """

    def condition(struct: StructType, fields: str, key: str) -> str:
        return " AND ".join(f"NOT {_is_named(f, struct)(key)}" for f in struct.fields) or "true"

    return _paths(json, type_, path, 0, condition)


def repeated(json: str, type_: IcebergType, path: str) -> str | None:
    """Return the SQL of the list of the paths of marked JSON that are one name to the table.

    Args and the result are as of ``unknown``.
    """

    def condition(struct: StructType, fields: str, key: str) -> str:
        same = [
            f"{is_named(key)} AND size(filter({fields}, other -> {is_named('other.key')})) > 1"
            for is_named in (_is_named(f, struct) for f in struct.fields)
        ]
        return " OR ".join(same) or "false"

    return _paths(json, type_, path, 0, condition)


def _paths(
    json: str,
    type_: IcebergType,
    path: str,
    depth: int,
    condition: Callable[[StructType, str, str], str],
) -> str | None:
    """Return the SQL of the list of the paths of fields inside of marked JSON that meet a condition.

    Args:
        json: the SQL of the text.
        type_: the type that it has in the table.
        path: where that is, as a text.
        depth: how many values it is in.
        condition: returns the condition, of a struct, of the SQL of the fields that the JSON has for it, and
            of that of the name of one of these.
    """
    item = f"item_{depth}"
    if isinstance(type_, ListType | MapType):
        of_map = isinstance(type_, MapType)
        part = type_.value_type if isinstance(type_, MapType) else type_.element_type
        below = _paths(item, part, f"{path}.{'`value`' if of_map else '`element`'}", depth + 1, condition)
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
        value = value_of(fields, _is_named(f, type_))
        below = _paths(value, f.field_type, f"{path}.{quote(f.name)}", depth + 1, condition)
        lists += [below] if below else []
    parts = ", ".join(f"coalesce({part}, array())" for part in lists)
    return f"transform(array({entries}), {fields} -> concat({parts}))[0]"


def path_of(key: str, before: str = "") -> str:
    """Return the SQL of a name in backticks behind the text of a path."""
    return f"concat({string_literal(f'{before}`')}, replace({key}, '`', '``'), '`')"
