"""The text of what tells bad rows of a staged batch from good ones, and of what writes them down."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from pyiceberg.types import (
    BinaryType,
    DateType,
    IcebergType,
    ListType,
    MapType,
    StringType,
    StructType,
    TimestampType,
    TimestamptzType,
    UUIDType,
)

from dbt.adapters.sparkevolve.evolution.conversions import Member, Whole, date_text, instant_text, is_utf8
from dbt.adapters.sparkevolve.evolution.names import fold, free_name, path_text, quote, string_literal
from dbt.adapters.sparkevolve.evolution.types import VariantType
from dbt.adapters.sparkevolve.sql.dml import SOURCE_ALIAS, TARGET_ALIAS, enclosed

# Of a batch that has been judged: a row's id as a letter, NULL in a good row; its payload, and its reasons.
ID, PAYLOAD, REASONS = "sparkevolve_letter_id", "sparkevolve_letter_payload", "sparkevolve_letter_reasons"
# Of the JSON of a row: its columns with a string that is not valid UTF-8, which JSON cannot hold, in Base64.
NOT_UTF8 = "sparkevolve_not_utf8"
_ROW, _FOUND, _BATCH = "sparkevolve_row", "sparkevolve_found", "sparkevolve_batch"
# Of a text in JSON Spark reads no more characters.
_LONGEST_READ = 20_000_000
_QUOTING = string_literal('"\\')
_KEEP_NULLS, _NO_NULLS = (f"map('ignoreNullFields', '{value}')" for value in ("false", "true"))

COLUMNS = {
    "messageId": "string",
    "payload": "string",
    "failureReason": "string",
    "modelName": "string",
    "invocationId": "string",
    "loadedAt": "timestamp_ltz",
}
"""The columns of a dead-letter table, with their Spark SQL types."""

NOW = "SELECT unix_micros(current_timestamp())"
"""The query of the time by Spark's clock, in microseconds since the epoch."""


@dataclass(frozen=True)
class Window:
    """The window that a microbatch replaces.

    Attributes:
        column: the column that tells whether a row is in it.
        condition: the SQL condition that it is.
        text: its begin and its end.
    """

    column: str
    condition: str
    text: str


@dataclass(frozen=True)
class Judgement:
    """What is asked of each row of a staged batch.

    Attributes:
        staged: the rendered name of the batch.
        types: the type of each of its columns, in order.
        members: what happens to each of them.
        padded: the columns that only the table has, with the SQL of what the rows get there, for audits.
        identity: the columns that tell a row's id as a letter; none for a hash of the row.
        unique: the columns of which no two rows may have the same values; none if they may.
        apart: columns whose values make of two rows with the same values there two that may be.
        window: of a microbatch.
        audits: conditions that each row has to meet.
        projected: the columns of the table that are others than the batch's of the same name, with the SQL of
            what a row of the batch that was converted gets there, for audits.
    """

    staged: str
    types: Mapping[str, IcebergType]
    members: Sequence[Member]
    padded: Mapping[str, str]
    identity: Sequence[str] = ()
    unique: Sequence[str] = ()
    apart: Sequence[str] = ()
    window: Window | None = None
    audits: Sequence[str] = ()
    projected: Mapping[str, str] = field(default_factory=dict)

    @property
    def converting(self) -> list[Member]:
        """The columns of which some value gets another type."""
        return [member for member in self.members if member.conversion.converts]

    @property
    def is_needed(self) -> bool:
        """Whether any row could be a bad one, or has to be converted."""
        return bool(self.unique or self.window or self.audits) or any(m.is_needed for m in self.members)

    def count(self) -> str:
        """Return the query of how many rows there are, and how many bad ones.

        After these, for each converting column: how many values it has, and how many do not convert.
        """
        row = f"{TARGET_ALIAS}.{quote(self._name(_ROW))}"
        counts = ["count(*)", f"count_if(size({quote(self._name(REASONS))}) > 0)"]
        for member in self.converting:
            value = f"{row}.{quote(member.name)}"
            fails = " OR ".join(f"({c})" for _, c in member.conversion.failures(value))
            counts += [f"count_if({value} IS NOT NULL)", f"count_if({fails})"]
        items = ",\n  ".join(f"{count} AS {quote(f'count_{n}')}" for n, count in enumerate(counts))
        return f"SELECT\n  {items}\nFROM (\n{self._judged()}\n) AS {TARGET_ALIAS}"

    def converted(self) -> str:
        """Return the query of all rows, converted."""
        return f"SELECT\n  {self._converted()}\nFROM {self.staged} AS {SOURCE_ALIAS}"

    def judged(self) -> str:
        """Return the query of all rows, converted, each with its letter if it is a bad one."""
        row = f"{TARGET_ALIAS}.{quote(self._name(_ROW))}"
        types = self._types_in_json
        json = to_json(row, types)
        named = [name for name in self.types if fold(name) in set(map(fold, self.identity))]
        complete = len(named) == len(set(map(fold, self.identity))) and named
        id_ = to_json(row, {n: types[n] for n in named}) if complete else f"sha2({json}, 256)"
        is_bad = f"size({quote(self._name(REASONS))}) > 0"
        items = [
            *map(self._of_batch, self.types),
            f"CASE WHEN {is_bad} THEN {id_} END AS {quote(self._name(ID))}",
            f"CASE WHEN {is_bad} THEN {encoded(self._whole(row, json))} END AS {quote(self._name(PAYLOAD))}",
            quote(self._name(REASONS)),
        ]
        return "SELECT\n  " + ",\n  ".join(items) + f"\nFROM (\n{self._judged()}\n) AS {TARGET_ALIAS}"

    def good(self, judged: str) -> str:
        """Return the query of the good rows of a batch that was judged."""
        names = ", ".join(map(quote, self.types))
        return f"SELECT {names}\nFROM {judged}\nWHERE {quote(self._name(ID))} IS NULL"

    def letters(self, judged: str) -> str:
        """Return the query of the letters of a batch that was judged: ``id``, ``payload``, ``reasons``."""
        id_, payload, reasons = (quote(self._name(name)) for name in (ID, PAYLOAD, REASONS))
        return (
            f"SELECT {id_} AS `id`, {payload} AS `payload`, {reasons} AS `reasons`\nFROM {judged}\n"
            f"WHERE {id_} IS NOT NULL"
        )

    def _judged(self) -> str:
        """Return the query of all rows: converted, padded, as they are, and why each cannot be placed."""
        row, found = quote(self._name(_ROW)), quote(self._name(_FOUND))
        padded = [f"{value} AS {quote(name)}" for name, value in self.padded.items()]
        fields = ", ".join(f"{string_literal(n)}, {SOURCE_ALIAS}.{quote(n)}" for n in self.types)
        items = ",\n  ".join([self._converted(), *padded, f"named_struct({fields}) AS {row}"])
        rows = f"SELECT\n  {items}\nFROM {self.staged} AS {SOURCE_ALIAS}"
        checks = _reasons([*self._failures(), *self._outside()])
        checked = f"SELECT *, {checks} AS {found}\nFROM (\n{rows}\n) AS {TARGET_ALIAS}"
        if self._projects:
            checked = self._as_table(checked)
        audits = _reasons(
            (f"audit: {audit}", f"NOT coalesce({enclosed(audit)}, false)") for audit in self.audits
        )
        # What does not convert is NULL by now, which an audit would take for the row's value.
        reasons = f"CASE WHEN size({found}) > 0 THEN {found} ELSE {audits} END" if self.audits else found
        if self.unique:
            shown = ", ".join(map(quote, self.unique))
            key = ", ".join([*self._key(), *map(self._of_batch, self.apart)])
            repeated = f"count(*) OVER (PARTITION BY {key}) > 1"
            many = _reasons([(f"the unique_key {shown} is in several rows of the batch", repeated)])
            reasons = f"concat({many}, {reasons})"
        return f"SELECT *, {reasons} AS {quote(self._name(REASONS))}\nFROM (\n{checked}\n) AS {TARGET_ALIAS}"

    @property
    def _projects(self) -> bool:
        return bool(self.audits and self.projected)

    def _of_batch(self, name: str) -> str:
        """Return the SQL of a converted value of the batch, of a row that has been checked."""
        batch = f"{quote(self._name(_BATCH))}." if self._projects else ""
        return f"{TARGET_ALIAS}.{batch}{quote(name)}"

    def _as_table(self, checked: str) -> str:
        """Return the query of rows as the table will have them, and beside that as the batch has them."""
        projected = {fold(name) for name in self.projected}
        found = quote(self._name(_FOUND))
        fields = ", ".join(f"{string_literal(n)}, {TARGET_ALIAS}.{quote(n)}" for n in self.types)
        items = [
            *(f"{TARGET_ALIAS}.{quote(n)}" for n in (*self.types, *self.padded) if fold(n) not in projected),
            # Of a value that cannot be placed there is none, and the expression may fail.
            *(f"CASE WHEN size({found}) = 0 THEN {v} END AS {quote(n)}" for n, v in self.projected.items()),
            f"named_struct({fields}) AS {quote(self._name(_BATCH))}",
            f"{TARGET_ALIAS}.{quote(self._name(_ROW))}",
            f"{TARGET_ALIAS}.{found}",
        ]
        return "SELECT\n  " + ",\n  ".join(items) + f"\nFROM (\n{checked}\n) AS {TARGET_ALIAS}"

    def _whole(self, row: str, json: str) -> str:
        """Return the SQL of a row's JSON, and in it the bytes of strings that are not valid UTF-8."""
        fields = [
            f"{string_literal(name)}, CASE WHEN {is_not_utf8} THEN {_in_json(value, as_bytes(type_), 0)} END"
            for name, type_ in self._types_in_json.items()
            for value in [f"{row}.{quote(name)}"]
            if (is_not_utf8 := _has_not_utf8(value, type_, 0))
        ]
        if not fields:
            return json
        lost = f"to_json(named_struct({', '.join(fields)}), {_NO_NULLS})"
        name = string_literal(f',"{free_name(NOT_UTF8, (*self.types, *self.padded))}":')
        both = f"concat(left(row.json, length(row.json) - 1), {name}, row.lost, '}}')"
        whole = f"CASE row.lost WHEN '{{}}' THEN row.json ELSE {both} END"
        return f"transform(array(named_struct('json', {json}, 'lost', {lost})), row -> {whole})[0]"

    @property
    def _types_in_json(self) -> dict[str, IcebergType]:
        """The types as which values are written: a text for a binary column as its bytes.

        JSON says of neither which one it is, and a replay reads what a binary column has as bytes.
        """
        as_bytes = {
            m.name
            for m in self.members
            if isinstance(m.conversion, Whole)
            and isinstance(m.conversion.source, StringType)
            and isinstance(m.conversion.target, BinaryType)
        }
        return {name: BinaryType() if name in as_bytes else type_ for name, type_ in self.types.items()}

    def _converted(self) -> str:
        return ",\n  ".join(
            f"{m.conversion.render(f'{SOURCE_ALIAS}.{quote(m.name)}')} AS {quote(m.name)}"
            for m in self.members
        )

    def _failures(self) -> Iterator[tuple[str, str]]:
        for member in self.members:
            yield from member.failures(f"{TARGET_ALIAS}.{quote(self._name(_ROW))}.{quote(member.name)}", 0)

    def _outside(self) -> Iterator[tuple[str, str]]:
        if self.window is None:
            return
        column = f"{TARGET_ALIAS}.{quote(self.window.column)}"
        shown = path_text((self.window.column,))
        # What does not convert is a reason of its own.
        row = f"{TARGET_ALIAS}.{quote(self._name(_ROW))}.{quote(self.window.column)}"
        yield f"{shown}: NULL, and no batch has such rows", f"{row} IS NULL"
        yield (
            f"{shown}: not within the batch, which is from {self.window.text}",
            f"{column} IS NOT NULL AND NOT ({self.window.condition})",
        )

    def _key(self) -> Iterator[str]:
        """Yield the values by which rows have the same key, as the table will hold them."""
        members = {fold(m.name): m for m in self.members}
        for name in self.unique:
            member = members[fold(name)]
            value = self._of_batch(member.name)
            is_uuid = isinstance(member.conversion, Whole) and isinstance(member.conversion.target, UUIDType)
            yield f"lower({value})" if is_uuid else value
            if member.conversion.converts:
                # What does not convert is NULL, and neither the key NULL nor that of another such value.
                before = f"{TARGET_ALIAS}.{quote(self._name(_ROW))}.{quote(member.name)}"
                fails = " OR ".join(f"({condition})" for _, condition in member.failures(before, 0))
                yield f"CASE WHEN {fails} THEN {before} END"

    def _name(self, name: str) -> str:
        """Return a name that no column of the batch or the table has."""
        taken = {fold(column) for column in (*self.types, *self.padded)}
        while fold(name) in taken:
            name += "_"
        return name


def _reasons(found: "Iterator[tuple[str, str]] | Sequence[tuple[str, str]]") -> str:
    """Return the SQL of the list of the reasons whose condition is met."""
    items = [f"CASE WHEN {condition} THEN {string_literal(reason)} END" for reason, condition in found]
    if not items:
        return "CAST(array() AS array<string>)"
    return f"filter(array({', '.join(items)}), reason -> reason IS NOT NULL)"


def to_json(row: str, types: Mapping[str, IcebergType], *, has_nulls: bool = True) -> str:
    """Return the SQL of the JSON of some fields of a struct.

    Args:
        row: the expression of the struct.
        types: the fields, with their types.
        has_nulls: whether fields that are NULL are in it, too.
    """
    fields = ", ".join(
        f"{string_literal(name)}, {_in_json(f'{row}.{quote(name)}', type_, 0)}"
        for name, type_ in types.items()
    )
    return f"to_json(named_struct({fields}), {_KEEP_NULLS if has_nulls else _NO_NULLS})"


def _in_json(value: str, type_: IcebergType, depth: int) -> str:
    """Return the SQL of a value as what JSON has for it, without any setting of how times are written."""
    if isinstance(type_, TimestamptzType):
        return instant_text(value)
    if isinstance(type_, TimestampType):
        return f"CAST({value} AS string)"
    if isinstance(type_, DateType):
        return date_text(value)
    if isinstance(type_, BinaryType):
        return encoded(value)
    if isinstance(type_, VariantType):
        # Without its quotes it would be read as NULL, which a replay takes for no value; as a text it is
        # none that can be read back, as any other of a variant.
        return f"IF(is_variant_null({value}), parse_json('\"null\"'), {value})"
    if not _is_other_in_json(type_):
        return value
    if isinstance(type_, StructType):
        parts = (
            f"{string_literal(f.name)}, {_in_json(f'{value}.{quote(f.name)}', f.field_type, depth)}"
            for f in type_.fields
        )
        return f"IF({value} IS NULL, NULL, named_struct({', '.join(parts)}))"
    inner = f"value_{depth}"
    if isinstance(type_, ListType):
        return f"transform({value}, {inner} -> {_in_json(inner, type_.element_type, depth + 1)})"
    assert isinstance(type_, MapType)
    if isinstance(type_.key_type, StringType):
        element = _in_json(inner, type_.value_type, depth + 1)
        return f"transform_values({value}, (key_{depth}, {inner}) -> {element})"
    # JSON has no keys but texts: a list of entries.
    key = _in_json(f"{inner}.key", type_.key_type, depth + 1)
    entry = _in_json(f"{inner}.value", type_.value_type, depth + 1)
    return f"transform(map_entries({value}), {inner} -> named_struct('key', {key}, 'value', {entry}))"


def _has_not_utf8(value: str, type_: IcebergType, depth: int) -> str | None:
    """Return the condition that a string of a value is not valid UTF-8; None if it can have no string."""
    if isinstance(type_, StringType):
        return f"NOT {is_utf8(value)}"
    item = f"value_{depth}"
    if isinstance(type_, StructType):
        parts = [_has_not_utf8(f"{value}.{quote(f.name)}", f.field_type, depth) for f in type_.fields]
        return " OR ".join(f"({part})" for part in parts if part) or None
    if isinstance(type_, ListType):
        inside = _has_not_utf8(item, type_.element_type, depth + 1)
        return inside and f"exists({value}, {item} -> {inside})"
    if isinstance(type_, MapType):
        sides = {"key": type_.key_type, "value": type_.value_type}
        parts = [_has_not_utf8(f"{item}.{side}", of, depth + 1) for side, of in sides.items()]
        inside = " OR ".join(f"({part})" for part in parts if part)
        return f"exists(map_entries({value}), {item} -> {inside})" if inside else None
    return None


def as_bytes(type_: IcebergType) -> IcebergType:
    """Return a type with bytes in place of texts: JSON cannot hold all of them."""
    if isinstance(type_, StringType):
        return BinaryType()
    if isinstance(type_, StructType):
        fields = (f.model_copy(update={"field_type": as_bytes(f.field_type)}) for f in type_.fields)
        return StructType(*fields)
    if isinstance(type_, ListType):
        return ListType(type_.element_id, as_bytes(type_.element_type), element_required=False)
    if isinstance(type_, MapType):
        key, value = as_bytes(type_.key_type), as_bytes(type_.value_type)
        return MapType(type_.key_id, key, type_.value_id, value, value_required=False)
    return type_


def _is_other_in_json(type_: IcebergType) -> bool:
    """Tell whether a type, or one in it, is written otherwise than `to_json` would."""
    if isinstance(type_, StructType):
        return any(_is_other_in_json(f.field_type) for f in type_.fields)
    if isinstance(type_, ListType):
        return _is_other_in_json(type_.element_type)
    if isinstance(type_, MapType):
        return not isinstance(type_.key_type, StringType) or _is_other_in_json(type_.value_type)
    return isinstance(type_, TimestamptzType | TimestampType | DateType | BinaryType | VariantType)


def encoded(value: str) -> str:
    """Return the SQL of the Base64 of a text or of bytes, in one line: some Spark breaks it into several."""
    return f"translate(base64(CAST({value} AS binary)), CAST(X'0d0a' AS string), '')"


def by_reason(letters: str, samples: int) -> str:
    """Return the query of how many letters there are of each reason, with some of their ids, one a row."""
    return (
        "SELECT `reason`, `number`, `id`\nFROM (\n"
        "  SELECT `reason`, `id`, count(*) OVER (PARTITION BY `reason`) AS `number`,\n"
        "    dense_rank() OVER (PARTITION BY `reason` ORDER BY `id`) AS `place`\n"
        "  FROM (SELECT explode(`reasons`) AS `reason`, `id`\n"
        f"  FROM (\n{letters}\n) AS `letters`) AS `all`\n"
        f") AS `places`\nWHERE `place` <= {samples}\nGROUP BY `reason`, `number`, `id`\n"
        "ORDER BY `number` DESC, `reason`, `id`"
    )


def count_letters(letters: str) -> str:
    """Return the query of how many letters there are."""
    return f"SELECT count(*) AS `letters`\nFROM (\n{letters}\n) AS `letters`"


def batch_clauses(properties: Mapping[str, str], location: str | None = None) -> str:
    """Return what is said of the table of a staged batch.

    Args:
        properties: its properties, which need no quoting.
        location: the literal of where it is to be; None if the catalog chooses.
    """
    pairs = ", ".join(f"'{name}' = '{value}'" for name, value in properties.items())
    where = f"\nLOCATION {location}" if location else ""
    return f"USING iceberg\nTBLPROPERTIES ({pairs}){where}"


def create_batch(table: str, query: str, clauses: str, *, replaces: bool) -> str:
    """Return the statement that stages what a query returns."""
    return f"CREATE {'OR REPLACE ' if replaces else ''}TABLE {table}\n{clauses}\nAS\n{query}"


def create_table(table: str, properties: Mapping[str, str], location: str | None) -> str:
    """Return the statement that makes a dead-letter table, unless it is there.

    Args:
        table: its rendered name.
        properties: its properties.
        location: the literal of where it is to be; None if the catalog chooses.
    """
    columns = ", ".join(
        f"{quote(name)} {type_}{' NOT NULL' if name == 'messageId' else ''}"
        for name, type_ in COLUMNS.items()
    )
    pairs = ", ".join(f"'{name}' = '{value}'" for name, value in properties.items())
    where = f"\nLOCATION {location}" if location else ""
    return f"CREATE TABLE IF NOT EXISTS {table} ({columns})\nUSING iceberg\nTBLPROPERTIES ({pairs}){where}"


def insert_letters(
    table: str,
    names: Mapping[str, str],
    letters: str,
    *,
    model: str,
    invocation_id: str,
    loaded_micros: int,
) -> str:
    """Return the statement that writes letters which the table does not have yet.

    Two equal rows are two letters: of each, so many are written as the batch has more than the table.

    Args:
        table: the rendered name of the branch that is written.
        names: the table's columns, with their Spark SQL types.
        letters: see ``Judgement.letters``.
        model: the model's name.
        invocation_id: of the dbt command.
        loaded_micros: when they are written, in microseconds since the epoch.
    """
    values = {
        "messageid": "`new`.`id`",
        "payload": "`new`.`payload`",
        "failurereason": "`new`.`reason`",
        "modelname": string_literal(model),
        "invocationid": string_literal(invocation_id),
        "loadedat": f"timestamp_micros({loaded_micros})",
    }
    items = ",\n  ".join(
        f"{values.get(fold(n), f'CAST(NULL AS {type_})')} AS {quote(n)}" for n, type_ in names.items()
    )
    batch = (
        f"SELECT `id`, `payload`, array_join(`reasons`, '; ') AS `reason`, {same_row('`payload`')} AS `row`\n"
        f"FROM (\n{letters}\n) AS `found`"
    )
    old = (
        f"SELECT {same_row('`payload`')} AS `row`\nFROM {table}\n"
        f"WHERE `modelName` = {string_literal(model)} AND {_may_be_of(letters)}"
    )
    return (
        f"INSERT INTO {table} ({', '.join(map(quote, names))})\nSELECT\n  {items}\nFROM (\n"
        "  SELECT *, row_number() OVER (PARTITION BY `row` ORDER BY `id`) AS `number`\n"
        f"  FROM (\n{batch}\n) AS `batch`\n) AS `new`\n"
        f"LEFT JOIN (\n  SELECT `row`, count(*) AS `number` FROM (\n{old}\n) AS `older` GROUP BY `row`\n"
        ") AS `old`\n"
        "ON `new`.`row` <=> `old`.`row`\n"
        "WHERE `old`.`number` IS NULL OR `new`.`number` > `old`.`number`"
    )


def _may_be_of(letters: str) -> str:
    """Return the condition that a letter may be one of some letters, which takes no look at payloads.

    Of two letters whose ids are the values of the same columns, the ids of the same row have the same
    characters: only their order and what is quoted may differ.
    """

    def names(id_: str) -> str:
        return f"sort_array(transform(json_object_keys({id_}), name -> lower(name)))"

    def characters(id_: str) -> str:
        return f"sort_array(split(translate(lower({id_}), {_QUOTING}, ''), ''))"

    found = f"FROM (\n{letters}\n) AS `found`"
    return (
        # Ids of other columns, or hashes of rows, tell nothing.
        f"(NOT coalesce({names('`messageId`')} = (SELECT max({names('`id`')}) {found}), false)\n"
        f"    OR {characters('`messageId`')} IN (SELECT {characters('`id`')} {found}))"
    )


def same_row(payload: str) -> str:
    """Return the SQL of a text that two payloads have in common only if they are the same row to a person.

    That is: the same values, whichever types, order and case of names the columns have; a column with NULL is
    like none. Where it is not certain what was written, the payload stands for itself.
    """
    json = f"CAST(try_to_binary({payload}, 'base64') AS string)"
    # What has a longer text or name than Spark takes it may read in part. In what is listed each value ends
    # in a comma.
    row = (
        "named_struct('names', json_object_keys(json), 'listed', concat(left(json, length(json) - 1), ','), "
        "'entries', map_entries(from_json(json, 'map<string,string>')))"
    )
    # In a text a quote has a backslash before it, so nothing inside of one looks like the begin of a value; a
    # field of a struct that has the column's name does.
    begin = "concat('\"', entry.key, '\":')"
    begins_text = f"concat({begin}, '\"')"
    is_text = f"instr(row.listed, {begin}) > 0 AND instr(replace(row.listed, {begins_text}, ''), {begin}) = 0"
    is_once = f"length(row.listed) - length(replace(row.listed, {begin}, '')) = length({begin})"
    rest = f"substring(row.listed, instr(row.listed, {begin}) + length({begin}))"
    number = f"substring_index({rest}, ',', 1)"
    is_number = f"{number} RLIKE '^-?[0-9]+([.][0-9]+)?([eE][-+]?[0-9]+)?$'"
    # Spark reads each number with a fraction or an exponent as a double, which has fewer digits, and then a
    # point: all else is read as it is written. Of a name with a backslash no begin is looked for.
    value = (
        "CASE WHEN instr(entry.value, '.') = 0 THEN entry.value "
        f"WHEN instr(entry.key, char(92)) > 0 THEN NULL WHEN {is_text} THEN entry.value "
        f"WHEN {is_once} THEN CASE WHEN {is_number} THEN {number} "
        f"WHEN startswith({rest}, concat(entry.value, ',')) THEN entry.value END END"
    )
    pair = f"named_struct('name', lower(entry.key), 'value', {value})"
    pairs = f"transform(filter(row.entries, entry -> entry.value IS NOT NULL), entry -> {pair})"
    is_certain = (
        "forall(pairs, pair -> pair.value IS NOT NULL) "
        "AND size(array_distinct(transform(pairs, pair -> pair.name))) = size(pairs)"
    )
    # A lambda of one call binds what would be evaluated each time that it is named.
    rows = f"transform(array({json}), json -> {row})"
    is_read = f"length(row.listed) <= {_LONGEST_READ} AND size(row.entries) = size(row.names)"
    read = f"transform({rows}, row -> CASE WHEN {is_read} THEN {pairs} END)"
    text = f"transform({read}, pairs -> CASE WHEN {is_certain} THEN to_json(sort_array(pairs)) END)[0]"
    return f"coalesce({text}, {payload})"


def times_of_letters(table: str, letters: str, *, model: str, times: Iterable[int]) -> str:
    """Return the query of when those letters of a batch were written that a table has already.

    Args:
        table: the rendered name of the dead letters.
        letters: see ``Judgement.letters``.
        model: the model's name.
        times: which times are asked for, in microseconds since the epoch.
    """
    listed = ", ".join(f"timestamp_micros({time})" for time in times)
    return (
        f"SELECT DISTINCT unix_micros(`loadedAt`) AS `time`\nFROM {table}\n"
        f"WHERE `modelName` = {string_literal(model)} AND `loadedAt` IN ({listed})\n"
        f"  AND {same_row('`payload`')} IN (\n"
        f"SELECT {same_row('`payload`')} FROM (\n{letters}\n) AS `found`)"
    )


def delete_letters(table: str, invocation_id: str, loaded_micros: int) -> str:
    """Return the statement that takes back what ``insert_letters`` has written with the same arguments."""
    return (
        f"DELETE FROM {table}\nWHERE `invocationId` = {string_literal(invocation_id)} "
        f"AND `loadedAt` = timestamp_micros({loaded_micros})"
    )
