"""The text of what reads dead letters back as rows of their table, and of what removes those that went in."""

import json
from collections.abc import Iterable, Sequence
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
    UUIDType,
)

from dbt.adapters.sparkevolve.evolution.conversions import decimal_text, lossless
from dbt.adapters.sparkevolve.evolution.defaults import DefaultValue
from dbt.adapters.sparkevolve.evolution.names import path_text, quote, string_literal
from dbt.adapters.sparkevolve.evolution.types import spark_type, type_text
from dbt.adapters.sparkevolve.sql.dml import enclosed

# Of a letter that is read back: what tells it from others, its place, its time, which columns it lacks, for
# which of its values the table has no place, and why it cannot be read.
LETTER, CHUNK, LOADED, ABSENT, UNKNOWN, PROBLEM = (
    f"sparkevolve_letter{end}" for end in ("", "_chunk", "_loaded", "_absent", "_unknown", "_problem")
)
NEWER_LETTER = "another dead letter of this key is newer"
# The ids of the letters of a chunk are in a property of the table for a while.
CHUNK_SIZE = 500
# Between the chunks of the letters of a key: those of a later time have a greater number.
_TURNS = 1_000_000_000
_JSON, _VALUES, _KEY, _NEWEST, _PLACE, _TURN = (
    f"sparkevolve_letter_{end}" for end in ("json", "values", "key", "newest", "place", "turn")
)
# A text in JSON, or what is between two; the quantifiers are such that Java needs no stack for a long one.
_TOKENS = string_literal(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"|[^"]+')
_NUMBER = string_literal("(-?[0-9]+(?:[.][0-9]+)?(?:[eE][-+]?[0-9]+)?)")
_NUMBERS = (IntegerType, LongType, FloatType, DoubleType, DecimalType)
_IDENTITY = ("messageId", "payload", "failureReason", "modelName", "invocationId")


def letter_id(alias: str = "") -> str:
    """Return the SQL of what tells a letter from all others that are not its equals."""
    of = f"{alias}." if alias else ""
    texts = ", ".join(f"coalesce({of}{quote(name)}, '')" for name in _IDENTITY)
    return f"left(sha2(concat_ws('|', {texts}, CAST(unix_micros({of}`loadedAt`) AS string)), 256), 32)"


@dataclass(frozen=True)
class Published:
    """What the property of a table says that a replay has published.

    Attributes:
        ref: the branch of the table.
        snapshot_id: the snapshot that has the rows.
        ids: the ids of their letters.
    """

    ref: str
    snapshot_id: int
    ids: tuple[str, ...]

    @property
    def text(self) -> str:
        """It as the property has it."""
        return json.dumps({"ref": self.ref, "snapshot": self.snapshot_id, "ids": self.ids})


def published_in(text: str | None) -> Published | None:
    """Return what is in the property of a replay; None if there is none, or somebody has spoiled it."""
    try:
        found = json.loads(text or "")
        return Published(str(found["ref"]), int(found["snapshot"]), tuple(map(str, found["ids"])))
    except (ValueError, KeyError, TypeError):
        return None


def read_as(type_: IcebergType) -> IcebergType | None:
    """Return the type as which the value of a letter's JSON is read, None if it cannot be.

    Of all that has a text the text is read: from there it is converted as a text of the model's would be.
    """
    if isinstance(type_, BinaryType | FixedType):
        return BinaryType()
    if type_.is_primitive:
        return StringType()
    return _inside(type_)


def _inside(type_: IcebergType) -> IcebergType | None:
    """Return a type with texts in place of all that has one; None if one of them would not be the same."""
    if isinstance(type_, BinaryType | FixedType):
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


def _text(values: str, names: Sequence[str]) -> str:
    """Return the SQL of the entry of the first of some names, in any case, in a map of texts."""
    listed = ", ".join(f"lower({string_literal(name)})" for name in names)
    return f"get(filter(map_entries({values}), entry -> lower(entry.key) IN ({listed})), 0)"


def _as_text_of(entry: str, type_: IcebergType) -> str:
    """Return the SQL of a value's text as the conversion from texts reads it.

    A number, or what is true or false, stands in JSON without quotes, and may be written in several ways.
    """
    text = f"{entry}.value"
    bare = f"instr({quote(_JSON)}, concat('\"', {entry}.key, '\":\"', {text}, '\"')) = 0"
    if isinstance(type_, IntegerType | LongType | DecimalType):
        scale = max(18, type_.scale) if isinstance(type_, DecimalType) else 18
        number = decimal_text(f"TRY_CAST({text} AS decimal(38,{scale}))", scale)
        plain = f"regexp_replace(regexp_replace({number}, '0+$', ''), '[.]$', '')"
        is_same = f"TRY_CAST({plain} AS double) = TRY_CAST({text} AS double)"
        is_short = f"{text} RLIKE '[.eE]' AND NOT {text} RLIKE '[.][0-9]{{{scale + 1},}}' AND {is_same}"
        written = f"CASE WHEN {is_short} THEN {plain} ELSE {text} END"
        truth = f"CASE {text} WHEN 'true' THEN '1' WHEN 'false' THEN '0' ELSE {written} END"
        return f"CASE WHEN {bare} THEN {truth} ELSE {text} END"
    if isinstance(type_, _NUMBERS):
        truth = f"CASE {text} WHEN 'true' THEN '1' WHEN 'false' THEN '0' ELSE {text} END"
        return f"CASE WHEN {bare} THEN {truth} ELSE {text} END"
    if isinstance(type_, BooleanType):
        truth = f"CASE {text} WHEN '1' THEN 'true' WHEN '0' THEN 'false' ELSE {text} END"
        return f"CASE WHEN {bare} THEN {truth} ELSE {text} END"
    if isinstance(type_, DateType):
        return f"regexp_replace({text}, '^([0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}}) 00:00:00Z?$', '$1')"
    if isinstance(type_, TimestampType):
        return f"regexp_replace({text}, '^([0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}})$', '$1 00:00:00')"
    return text


def _with_quoted_numbers(json: str) -> str:
    """Return the SQL of a JSON text in which each number is a text, of the digits with which it is written.

    Spark reads a number with a fraction as a double, which has fewer digits, where a text is asked for. NULL
    for what has no end of a text.
    """
    tokens = f"regexp_extract_all({json}, {_TOKENS}, 0)"
    quoted = f"regexp_replace(token, {_NUMBER}, '\"$1\"')"
    found = f"transform(tokens, token -> CASE WHEN startswith(token, '\"') THEN token ELSE {quoted} END)"
    whole = f"CASE WHEN array_join(tokens, '') = {json} THEN array_join({found}, '') END"
    return f"transform(array({tokens}), tokens -> {whole})[0]"


def _unknown(json: str, type_: IcebergType, path: str, depth: int) -> str | None:
    """Return the SQL of the list of the paths that a JSON value has, not with NULL, and its type has not.

    Names are compared as Spark compares them that reads the JSON: in their case.
    """
    inner = f"value_{depth}"
    if isinstance(type_, ListType | MapType):
        of_map = isinstance(type_, MapType)
        part = type_.value_type if isinstance(type_, MapType) else type_.element_type
        below = _unknown(inner, part, f"{path}.{'`value`' if of_map else '`element`'}", depth + 1)
        read = f"from_json({json}, '{'map<string,string>' if of_map else 'array<string>'}')"
        values = f"map_values({read})" if of_map else read
        return below and f"coalesce(flatten(transform({values}, {inner} -> {below})), array())"
    if not isinstance(type_, StructType):
        return None
    read = f"from_json({json}, 'map<string,string>')"
    entries = f"filter(map_entries({read}), field -> field.value IS NOT NULL)"
    known = ", ".join(string_literal(f.name) for f in type_.fields)
    others = f"filter({entries}, field -> NOT field.key IN ({known}))"
    begin = string_literal(f"{path}.`")
    lists = [f"transform({others}, field -> concat({begin}, replace(field.key, '`', '``'), '`'))"]
    for f in type_.fields:
        value = f"get(filter({entries}, field -> field.key = {string_literal(f.name)}), 0).value"
        below = _unknown(value, f.field_type, f"{path}.{quote(f.name)}", depth)
        lists += [below] if below else []
    return f"concat({', '.join(f'coalesce({found}, array())' for found in lists)})"


def _is_lost(json: str, value: str, type_: IcebergType, depth: int) -> str:
    """Return the condition that something of a JSON value is missing in what `from_json` has read of it.

    Where a value is of another shape than its type, Spark reads NULL, or a struct of NULLs, and goes on.

    Args:
        json: the SQL of the text of the JSON value.
        value: the SQL of what was read.
        type_: its type, see ``read_as``.
        depth: how many lists and maps it is in.
    """
    is_null = f"{json} IS NOT NULL AND {value} IS NULL"
    if type_.is_primitive:
        return f"({is_null})"
    pair = f"pair_{depth}"
    if isinstance(type_, ListType):
        inner = _is_lost(f"{pair}.json", f"{pair}.value", type_.element_type, depth + 1)
        pairs = (
            f"zip_with(from_json({json}, 'array<string>'), {value}, "
            f"(json, value) -> named_struct('json', json, 'value', value))"
        )
        is_other = f"json_array_length({json}) IS NULL"
        inside = [f"coalesce(exists({pairs}, {pair} -> {inner}), false)"]
    else:
        members = f"from_json({json}, 'map<string,string>')"
        is_other = f"json_object_keys({json}) IS NULL"
        if isinstance(type_, MapType):
            read = f"try_element_at({value}, {pair}.key)"
            inner = _is_lost(f"{pair}.value", read, type_.value_type, depth + 1)
            inside = [f"coalesce(exists(map_entries({members}), {pair} -> {inner}), false)"]
        else:
            assert isinstance(type_, StructType)
            inside = [
                _is_lost(
                    f"try_element_at({members}, {string_literal(f.name)})",
                    f"{value}.{quote(f.name)}",
                    f.field_type,
                    depth,
                )
                for f in type_.fields
            ]
    return f"({json} IS NOT NULL AND ({' OR '.join([f'{value} IS NULL', is_other, *inside])}))"


@dataclass(frozen=True)
class Column:
    """A column of the table that letters are read back into.

    Attributes:
        name: its name.
        type: its type.
        keys: the names under which letters may have it, in any case.
        padded: the default that a letter without it gets; None for NULL.
    """

    name: str
    type: IcebergType
    keys: tuple[str, ...]
    padded: DefaultValue | None = None

    @property
    def _entry(self) -> str:
        return _text(quote(_VALUES), self.keys)

    @property
    def value(self) -> str:
        """The SQL of its value, in the type that ``read_as`` says."""
        type_ = read_as(self.type)
        if isinstance(type_, StringType):
            read, default = _as_text_of(self._entry, self.type), self._default
            return read if default is None else f"CASE WHEN {self.is_absent} THEN {default} ELSE {read} END"
        if isinstance(type_, BinaryType):
            return f"try_to_binary({self._entry}.value, 'base64')"
        if type_ is None:
            return "CAST(NULL AS string)"
        return f"from_json({self._entry}.value, {string_literal(spark_type(type_))})"

    @property
    def _default(self) -> str | None:
        if self.padded is None:
            return None
        if isinstance(self.type, StringType | UUIDType):
            return self.padded.sql
        return lossless(self.padded.sql, self.type, StringType())

    @property
    def unknown(self) -> str | None:
        """The SQL of the paths inside of it for which the table has no place; None if there can be none."""
        return _unknown(f"{self._entry}.value", self.type, path_text((self.name,)), 0)

    @property
    def is_absent(self) -> str:
        """The condition that a letter has no such column, not even with NULL."""
        return f"{self._entry} IS NULL"

    @property
    def problem(self) -> tuple[str, str] | None:
        """Why a letter cannot be read back for it, and the condition of that."""
        type_ = read_as(self.type)
        if isinstance(type_, StringType):
            return None
        reason = f"{path_text((self.name,))}: cannot be read back as {type_text(self.type)}"
        if type_ is None or type_.is_primitive:
            return reason, f"{self._entry}.value IS NOT NULL AND {self.value} IS NULL"
        # A lambda of one call binds what would be evaluated each time that it is named.
        read = f"named_struct('json', {self._entry}.value, 'value', {self.value})"
        return reason, f"exists(array({read}), read -> {_is_lost('read.json', 'read.value', type_, 0)})"

    def same(self, value: str) -> list[str]:
        """Return the SQL of what two letters have in common whose values are the same to the table.

        Args:
            value: the SQL of what was read, see ``value``.
        """
        if not isinstance(read_as(self.type), StringType):
            return [value]
        is_uuid = isinstance(self.type, UUIDType)
        found = f"lower({value})" if is_uuid else lossless(value, StringType(), self.type)
        return [value] if found is None else [found, f"CASE WHEN {found} IS NULL THEN {value} END"]


def read_back(
    letters: str,
    columns: Sequence[Column],
    *,
    key: Sequence[Column],
    model: str,
    conditions: Sequence[str],
    limit: int | None,
    newest_only: bool,
    known_only: bool,
) -> str:
    """Return the query of letters as rows of their table, with the columns ``LETTER`` and so on.

    Args:
        letters: the rendered name of the table of dead letters.
        columns: the columns of the table that they are for.
        key: those of them by which rows are replaced; none if rows are added.
        model: the model's name.
        conditions: which of them.
        limit: how many at the most, the oldest ones first, but all rows of a key that were written at one
            time; None for all.
        newest_only: whether a letter is left where it is if another one of its key is newer.
        known_only: whether it is, if it has a value for a column or a field that the table does not have.
    """
    known = ", ".join(f"lower({string_literal(key)})" for column in columns for key in column.keys)
    others = f"map_keys(map_filter({quote(_VALUES)}, (k, v) -> v IS NOT NULL AND NOT lower(k) IN ({known})))"
    paths = [f"transform({others}, k -> concat('`', replace(k, '`', '``'), '`'))"]
    paths += [found for found in (column.unknown for column in columns) if found]
    unknown = f"array_join(sort_array(array_distinct(concat({', '.join(paths)}))), ', ')"
    cases = [("'the payload is no JSON object in Base64'", f"{quote(_VALUES)} IS NULL")]
    if newest_only:
        cases.append((string_literal(NEWER_LETTER), f"{quote(_NEWEST)} > `loadedAt`"))
    if known_only:
        cases.append((f"concat({unknown}, ': not in the table')", f"{unknown} <> ''"))
    cases += [(string_literal(p[0]), p[1]) for p in (column.problem for column in columns) if p]
    problem = " ".join(f"WHEN {condition} THEN {text}" for text, condition in cases)
    items = ",\n  ".join(f"{column.value} AS {quote(column.name)}" for column in columns)
    places = ", ".join(f"CASE WHEN {column.is_absent} THEN '{n}' END" for n, column in enumerate(columns))
    chosen = "".join(f"\n  AND {enclosed(condition)}" for condition in conditions)
    # Rows of one key and one time go together, those of a later time after them: each replaces what is there.
    keys = [f"{_KEY}_{n}" for n, _ in enumerate(key)]
    parts = [part for name, column in zip(keys, key, strict=True) for part in column.same(quote(name))]
    same_key = ", ".join([*parts, quote(_KEY)]) if key else quote(LETTER)
    numbered = (
        f"SELECT *, {letter_id()} AS {quote(LETTER)},\n"
        f"  CAST(try_to_binary(`payload`, 'base64') AS string) AS {quote(_JSON)}\n"
        f"FROM {letters}\nWHERE `modelName` = {string_literal(model)}"
    )
    quoted = _with_quoted_numbers(quote(_JSON))
    read = (
        f"SELECT *, from_json({quoted}, 'map<string,string>') AS {quote(_VALUES)}\n"
        f"FROM (\n{numbered}\n) AS `numbered`"
    )
    lacks = " OR ".join(column.is_absent for column in key) or "false"
    values = [f"{column.value} AS {quote(name)}" for name, column in zip(keys, key, strict=True)]
    of_key = ",\n  ".join(["*", *values, f"CASE WHEN {lacks} THEN `messageId` END AS {quote(_KEY)}"])
    dated = (
        f"SELECT *, max(`loadedAt`) OVER (PARTITION BY {same_key}) AS {quote(_NEWEST)}\n"
        f"FROM (\nSELECT {of_key}\nFROM (\n{read}\n) AS `read`\n) AS `keyed`"
    )
    placed = (
        f"SELECT *, dense_rank() OVER (ORDER BY `loadedAt`, {quote(LETTER)}) AS {quote(_PLACE)},\n"
        f"  dense_rank() OVER (PARTITION BY {same_key} ORDER BY `loadedAt`) AS {quote(_TURN)}\n"
        f"FROM (\n{dated}\n) AS `dated`\nWHERE true{chosen}"
    )
    together = (
        f"SELECT *, min({quote(_PLACE)}) OVER (PARTITION BY `loadedAt`, {same_key}) AS {quote(CHUNK)}\n"
        f"FROM (\n{placed}\n) AS `placed`"
    )
    few = "" if limit is None else f"\nWHERE {quote(CHUNK)} <= {limit}"
    turn = "0" if newest_only or not key else f"{quote(_TURN)} * {_TURNS}"
    return (
        f"SELECT\n  {items},\n  {quote(LETTER)},\n"
        f"  CAST({turn} + ({quote(CHUNK)} - 1) DIV {CHUNK_SIZE} AS bigint) AS {quote(CHUNK)},\n"
        f"  unix_micros(`loadedAt`) AS {quote(LOADED)},\n  concat_ws(',', {places}) AS {quote(ABSENT)},\n"
        f"  {unknown} AS {quote(UNKNOWN)},\n"
        f"  CASE {problem} END AS {quote(PROBLEM)}\nFROM (\n{together}\n) AS `together`{few}"
    )


def check_condition(letters: str, condition: str) -> str:
    """Return a query without rows that fails if a condition over letters cannot be evaluated."""
    return f"SELECT 1 AS `one` FROM {letters}\nWHERE {enclosed(condition)}\nLIMIT 0"


def rows_of(
    relation: str, snapshot_id: int | None, judged: str, columns: Sequence[str], key: Sequence[str]
) -> str:
    """Return the query of the rows of a table under the keys of letters: ``letter``, its id, and ``row``.

    Args:
        relation: the rendered name of the table.
        snapshot_id: the snapshot to read; None for the last one.
        judged: the query of the letters.
        columns: the columns to compare.
        key: those of them that are the key.
    """
    at = "" if snapshot_id is None else f" VERSION AS OF {snapshot_id}"
    fields = ", ".join(f"{string_literal(name)}, `old`.{quote(name)}" for name in columns)
    same = " AND ".join(f"`old`.{quote(name)} <=> `new`.{quote(name)}" for name in key)
    return (
        f"SELECT `new`.{quote(LETTER)} AS `letter`, to_json(named_struct({fields})) AS `row`\n"
        f"FROM (\n{judged}\n) AS `new`\nJOIN {relation}{at} AS `old` ON {same}"
    )


def delete_letters(letters: str, model: str, ids: Iterable[str]) -> str:
    """Return the statement that removes letters by their ids, one or more."""
    listed = ", ".join(map(string_literal, ids))
    return (
        f"DELETE FROM {letters}\nWHERE `modelName` = {string_literal(model)} AND {letter_id()} IN ({listed})"
    )


def update_reasons(letters: str, found: str) -> str:
    """Return the statement that gives letters another reason, where it is another.

    Args:
        letters: the rendered name of their table.
        found: the query of their ids and reasons: ``letter``, ``reason``.
    """
    return (
        f"MERGE INTO {letters} AS `old`\nUSING (\n{found}\n) AS `new`\n"
        f"ON {letter_id('`old`')} = `new`.`letter`\n"
        "WHEN MATCHED AND `old`.`failureReason` <> `new`.`reason`\n"
        "THEN UPDATE SET `failureReason` = `new`.`reason`"
    )
