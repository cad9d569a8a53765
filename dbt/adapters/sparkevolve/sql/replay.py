"""The text of what reads dead letters back as rows of their table, and of what removes those that went in."""

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace

from pyiceberg.types import (
    BinaryType,
    IcebergType,
    StringType,
    UUIDType,
)

from dbt.adapters.sparkevolve.evolution.conversions import lossless
from dbt.adapters.sparkevolve.evolution.defaults import DefaultValue
from dbt.adapters.sparkevolve.evolution.names import free_name, path_text, quote, string_literal
from dbt.adapters.sparkevolve.evolution.types import spark_type, type_text
from dbt.adapters.sparkevolve.sql import payloads
from dbt.adapters.sparkevolve.sql.dead_letters import NOT_UTF8, as_bytes, to_json
from dbt.adapters.sparkevolve.sql.dml import SOURCE_ALIAS, TARGET_ALIAS, enclosed, unmet
from dbt.adapters.sparkevolve.sql.payloads import ALWAYS, Naming, read_as

# Of a letter: what tells it from others, and which columns it lacks.
LETTER, ABSENT = "sparkevolve_letter", "sparkevolve_letter_absent"
NEWER_LETTER = "another dead letter of this key is newer"
# The ids of the letters of a chunk are in a property of the table for a while.
CHUNK_SIZE = 500
# The rows of a key that were written at one time are one chunk, however many: a statement that loads a part
# of them would remove the others. But each commit reads and writes that property.
MOST_TOGETHER = 10_000
TOO_MANY = (
    f"more than {MOST_TOGETHER:,} letters have this key and this time, and go in together only: "
    "let the model return these rows"
)
# As one chunk for each set of columns, the last one would remove the rows of the others.
OTHER_COLUMNS = (
    "letters of this key and this time do not all have the same columns, and go in together only: give each "
    "of them all of these in its payload, with null where there is no value"
)
# Of letters that others have written, or mended.
NO_TIME = "`loadedAt` is NULL, and nothing else tells whether the row of its key is newer: put in the time"
_NOT_KNOWN = (
    ": which column had this name when this was written is not known any more, as the table's older schemas "
    "have expired: give the value the name of today in the payload, or leave it out, and set `loadedAt` to a "
    "later time"
)
# Between the chunks of the letters of a key: those of a later time have a greater number.
_TURNS = 1_000_000_000
_JSON, _VALUES, _KEY, _NEWEST, _PLACE, _TURN, _FIRST, _ROWS, _ALIKE, _BEFORE = (
    f"sparkevolve_letter_{end}"
    for end in (
        "json",
        "values",
        "key",
        "newest",
        "place",
        "turn",
        "first",
        "rows",
        "alike",
        "before",
    )
)
# Not the reason, which another replay may write anew while this one loads the letter.
_IDENTITY = ("messageId", "payload", "modelName", "invocationId")


def letter_id(alias: str = "") -> str:
    """Return the SQL of what tells a letter from all others that are not its equals."""
    of = f"{alias}." if alias else ""
    texts = ", ".join(f"coalesce({of}{quote(name)}, '')" for name in _IDENTITY)
    return f"left(sha2(concat_ws('|', {texts}, CAST(unix_micros({of}`loadedAt`) AS string)), 256), 32)"


@dataclass(frozen=True)
class Own:
    """What columns are called that stand beside those of a table.

    Attributes:
        letter: the id of a letter.
        chunk: the number of its chunk.
        loaded: when it was written, in microseconds since the epoch.
        absent: the places of the columns that it lacks.
        unknown: for which of its values the table has no place.
        problem: why it cannot be read.
        file: of a row of the table, the file that it is in.
    """

    letter: str = LETTER
    chunk: str = f"{LETTER}_chunk"
    loaded: str = f"{LETTER}_loaded"
    absent: str = ABSENT
    unknown: str = f"{LETTER}_unknown"
    problem: str = f"{LETTER}_problem"
    file: str = f"{LETTER}_file"


def own_names(columns: Collection[str]) -> Own:
    """Return names that no column of a table has."""
    return Own(**{name: free_name(value, columns) for name, value in asdict(Own()).items()})


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


@dataclass(frozen=True)
class Staying:
    """Why letters from before a time stay that have a value for a column.

    Attributes:
        reason: why.
        until: that time, in microseconds since the epoch.
        since: those from before this time do not, likewise; None if they do.
        by_own_name: whether only values by the names of today are meant.
    """

    reason: str
    until: int
    since: int | None = None
    by_own_name: bool = False


@dataclass(frozen=True)
class Column:
    """A column of the table that letters are read back into.

    Attributes:
        name: its name.
        type: its type.
        keys: the names under which letters may have it, in any case.
        padded: the default that a letter without it gets; None for NULL.
        naming: by which names letters have it, beside these keys, and from when on by these.
        inside: the same of fields inside of it, by their ids.
        staying: which letters with a value there stay for what a name has meant, and why.
    """

    name: str
    type: IcebergType
    keys: tuple[str, ...]
    padded: DefaultValue | None = None
    naming: Naming = ALWAYS
    inside: Mapping[int, Naming] = field(default_factory=dict)
    staying: tuple[Staying, ...] = ()

    def is_named(self, key: str) -> str:
        """Return the condition that a letter has the column by a name."""
        return self.naming.condition(key, payloads.is_one_of(key, self.keys))

    @property
    def _text(self) -> str:
        return payloads.value_of(f"map_entries({quote(_VALUES)})", self.is_named)

    @property
    def _own_text(self) -> str:
        """The SQL of the value that a letter has by a name of today, from when on that is the column's."""
        naming = replace(self.naming, former=())
        return payloads.value_of(
            f"map_entries({quote(_VALUES)})",
            lambda key: naming.condition(key, payloads.is_one_of(key, self.keys)),
        )

    @property
    def value(self) -> str:
        """The SQL of its value, in the type that ``read_as`` says."""
        type_ = read_as(self.type)
        if isinstance(type_, StringType):
            read, default = payloads.read(self._text, self.type, self.inside), self._default
            return read if default is None else f"CASE WHEN {self.is_absent} THEN {default} ELSE {read} END"
        if type_ is None:
            return f"CAST(NULL AS {spark_type(self.type)})"
        return payloads.read(self._text, self.type, self.inside)

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
        return payloads.unknown(self._text, self.type, path_text((self.name,)), self.inside)

    @property
    def is_absent(self) -> str:
        """The condition that a letter has no such column, not even with NULL."""
        return f"NOT coalesce(exists(map_keys({quote(_VALUES)}), key -> {self.is_named('key')}), false)"

    @property
    def repeated(self) -> str:
        """The SQL of the paths, of it and inside of it, that are several values of one place in the table."""
        named = f"filter(map_entries({quote(_VALUES)}), entry -> entry.value IS NOT NULL AND "
        named += f"{self.is_named('entry.key')})"
        own = f"transform({named}, entry -> {payloads.path_of('entry.key')})"
        inside = payloads.repeated(self._text, self.type, path_text((self.name,)), self.inside)
        return f"CASE WHEN size({named}) > 1 THEN {own} ELSE {inside or 'array()'} END"

    @property
    def problem(self) -> tuple[str, str]:
        """Why a letter cannot be read back for it, and the condition of that."""
        type_ = read_as(self.type)
        reason = f"{path_text((self.name,))}: cannot be read back as {type_text(self.type)}"
        if type_ is None or isinstance(type_, BinaryType):
            return reason, f"{self._text} IS NOT NULL AND {self.value} IS NULL"
        return reason, payloads.misfit(self._text, self.type, self.inside)

    @property
    def outdated(self) -> list[tuple[str, str]]:
        """Why letters have meant something else by a name, and the conditions of that."""
        found = []
        for staying in self.staying:
            text = self._own_text if staying.by_own_name else self._text
            condition = f"{text} IS NOT NULL AND unix_micros(`loadedAt`) < {staying.until}"
            if staying.since is not None:
                condition += f" AND unix_micros(`loadedAt`) >= {staying.since}"
            found.append((staying.reason, condition))
        return found

    @property
    def uncertain(self) -> tuple[str, str] | None:
        """Why the text of a number in it is not known, and the condition of that; None if it always is."""
        condition = payloads.uncertain(self._text, self.type, self.inside) if read_as(self.type) else None
        if condition is None:
            return None
        reason = (
            f"{path_text((self.name,))}: a small number has one text as a decimal and another one as a "
            "double, and JSON does not tell which it was: put its text into the payload, in quotes"
        )
        return reason, condition

    def same(self, value: str) -> list[str]:
        """Return the SQL of what two letters have in common whose values are the same to the table.

        Args:
            value: the SQL of what was read, see ``value``.
        """
        type_ = read_as(self.type)
        if type_ is None:
            # A letter with a value there stays, and Spark does not compare all of these types.
            return []
        if not isinstance(type_, StringType):
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
    own: Own,
    former: Mapping[str, str],
    complete: int = 0,
) -> str:
    """Return the query of letters as rows of their table, with the columns of ``Own`` but for the file.

    Args:
        letters: the rendered name of the table of dead letters.
        columns: the columns of the table that they are for.
        key: those of them by which rows are replaced; none if rows are added.
        model: the model's name.
        conditions: which of them.
        limit: see ``is_within``; None for all of them.
        newest_only: whether a letter is left where it is if another one of its key is newer.
        known_only: whether it is, if it has a value for a column or a field that the table does not have.
        own: what these columns are called.
        former: paths, in any case, by which such a value may be another field's, and what that is called now.
        complete: since when all names are known, in microseconds since the epoch; 0 for always.
    """
    always = [column for column in columns if column.naming == ALWAYS]
    named = [payloads.is_one_of("k", [key for column in always for key in column.keys])] if always else []
    named += [column.is_named("k") for column in columns if column not in always]
    is_known = named[0] if len(named) == 1 else f"({' OR '.join(named)})"
    others = f"map_keys(map_filter({quote(_VALUES)}, (k, v) -> v IS NOT NULL AND NOT {is_known}))"
    paths = [f"transform({others}, k -> {payloads.path_of('k')})"]
    unplaced = [*paths, *(found for found in (column.unknown for column in columns) if found)]
    unknown = _listed(unplaced)
    repeated = _listed([column.repeated for column in columns])
    cases = [("'the payload is no JSON object in Base64'", f"{quote(_VALUES)} IS NULL")]
    if newest_only:
        cases.append((string_literal(NEWER_LETTER), f"{quote(_NEWEST)} > `loadedAt`"))
    cases.append(_not_utf8(free_name(NOT_UTF8, [column.name for column in columns])))
    # As NULL it would replace all rows that have no key.
    cases += [(string_literal(_lacks_key(column)), column.is_absent) for column in key]
    if key:
        cases.append((string_literal(NO_TIME), "`loadedAt` IS NULL"))
        cases.append((string_literal(TOO_MANY), f"{quote(_ROWS)} > {MOST_TOGETHER}"))
        cases.append((string_literal(OTHER_COLUMNS), f"NOT {quote(_ALIKE)}"))
    if former:
        cases.append(_renamed(unplaced, former))
    if known_only:
        cases.append((f"concat({unknown}, ': not in the table')", f"{unknown} <> ''"))
    elif complete:
        # Without a value in any column of today nothing else keeps it.
        older = f"{unknown} <> '' AND unix_micros(`loadedAt`) < {complete}"
        cases.append((f"concat({unknown}, {string_literal(_NOT_KNOWN)})", older))
    # What has a value by a name of another time may have one by the name of today as well.
    cases += [
        (string_literal(reason), condition) for column in columns for reason, condition in column.outdated
    ]
    cases.append((f"concat({repeated}, ': one place in the table, and several values')", f"{repeated} <> ''"))
    found = [*(c.problem for c in columns), *(c.uncertain for c in columns)]
    cases += [(string_literal(reason), condition) for reason, condition in filter(None, found)]
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
    read = (
        f"SELECT *, {payloads.members(quote(_JSON))} AS {quote(_VALUES)}\nFROM (\n{numbered}\n) AS `numbered`"
    )
    lacks = " OR ".join(column.is_absent for column in key) or "false"
    values = [f"{column.value} AS {quote(name)}" for name, column in zip(keys, key, strict=True)]
    absent = f"concat_ws(',', {places}) AS {quote(ABSENT)}"
    of_key = ",\n  ".join(["*", *values, f"CASE WHEN {lacks} THEN `messageId` END AS {quote(_KEY)}", absent])
    dated = (
        f"SELECT *, max(`loadedAt`) OVER (PARTITION BY {same_key}) AS {quote(_NEWEST)}\n"
        f"FROM (\nSELECT {of_key}\nFROM (\n{read}\n) AS `read`\n) AS `keyed`"
    )
    counted = counted_letters(f"SELECT * FROM (\n{dated}\n) AS `dated`\nWHERE true{chosen}", same_key)
    few = "" if limit is None else f"\nWHERE {is_within(limit)}"
    # dense_rank() is an int, of which the third turn would be too large.
    turn = "0" if newest_only or not key else f"CAST({quote(_TURN)} AS bigint) * {_TURNS}"
    return (
        f"SELECT\n  {items},\n  {quote(LETTER)} AS {quote(own.letter)},\n"
        f"  CAST({turn} + {chunk_number()} AS bigint) AS {quote(own.chunk)},\n"
        f"  unix_micros(`loadedAt`) AS {quote(own.loaded)},\n  {quote(ABSENT)} AS {quote(own.absent)},\n"
        f"  {unknown} AS {quote(own.unknown)},\n"
        f"  CASE {problem} END AS {quote(own.problem)}\nFROM (\n{counted}\n) AS `counted`{few}"
    )


def counted_letters(letters: str, same_key: str) -> str:
    """Return the query of letters with their places, and with which others each goes in.

    Args:
        letters: the query of the letters.
        same_key: the SQL of what those of one key have in common.
    """
    placed = (
        f"SELECT *, dense_rank() OVER (ORDER BY `loadedAt`, {quote(LETTER)}) AS {quote(_PLACE)},\n"
        f"  dense_rank() OVER (PARTITION BY {same_key} ORDER BY `loadedAt`) AS {quote(_TURN)}\n"
        f"FROM (\n{letters}\n) AS `chosen`"
    )
    group = f"OVER (PARTITION BY `loadedAt`, {same_key})"
    together = (
        f"SELECT *, min({quote(_PLACE)}) {group} AS {quote(_FIRST)},\n"
        f"  count(*) {group} AS {quote(_ROWS)},\n"
        f"  min({quote(ABSENT)}) {group} = max({quote(ABSENT)}) {group} AS {quote(_ALIKE)}\n"
        f"FROM (\n{placed}\n) AS `placed`"
    )
    # Letters are counted and not keys, of which each may have many.
    return (
        f"SELECT *, count(*) OVER (ORDER BY {quote(_FIRST)}) - {quote(_ROWS)} AS {quote(_BEFORE)}\n"
        f"FROM (\n{together}\n) AS `together`"
    )


def chunk_number() -> str:
    """Return the SQL of the number of the chunk that a counted letter goes into.

    A chunk has as many letters as it may, at the most, or those of one key and one time. So one of these that
    does not fit between two multiples of that is a chunk of its own.
    """
    before = f"{quote(_BEFORE)} % {CHUNK_SIZE}"
    goes_beyond = f"{before} + {quote(_ROWS)} > {CHUNK_SIZE}"
    return f"{quote(_BEFORE)} - {before} + CASE WHEN {goes_beyond} THEN 1 ELSE 0 END"


def is_within(limit: int) -> str:
    """Return the condition that a counted letter is one of the oldest ones, so many at the most.

    The letters of a key and a time are not parted, so there are more if the very first ones are more.
    """
    return f"{quote(_BEFORE)} + {quote(_ROWS)} <= {limit} OR {quote(_BEFORE)} = 0"


def _lacks_key(column: Column) -> str:
    """Return why a letter stays that has no value, and no NULL either, for a column of the key."""
    reason = (
        f"{path_text((column.name,))} of the unique_key is not in it: put that into its payload, with null "
        "if the row has none"
    )
    if column.naming.since is None:
        return reason
    return f"{reason}; if its value by that name is meant, set the letter's `loadedAt` to a later time"


def _not_utf8(member: str) -> tuple[str, str]:
    """Return the SQL of why a letter stays that lacks a text of its row, and the condition of that.

    Args:
        member: what of its JSON says so.
    """
    lost = payloads.value_of(
        f"map_entries({quote(_VALUES)})", lambda key: f"{key} = {string_literal(member)}"
    )
    names = f"array_join(transform(json_object_keys({lost}), name -> {payloads.path_of('name')}), ', ')"
    reason = (
        ": a string was not valid UTF-8, which JSON cannot hold, and is not in the payload as it was: put "
        f"into that what it is to be, and take `{member}` out, which has the bytes in Base64"
    )
    return f"concat(coalesce({names}, ''), {string_literal(reason)})", f"{lost} IS NOT NULL"


def _renamed(lists: Sequence[str], names: Mapping[str, str]) -> tuple[str, str]:
    """Return the SQL of why a letter has values that may be other fields', and the condition of that.

    Args:
        lists: the SQL of the lists of the paths of values that the table has no place for.
        names: which of these had been those of other fields, and what these are called now.
    """
    old = ", ".join(f"lower({string_literal(path)})" for path in names)
    found = f"filter(concat({', '.join(lists)}), path -> lower(path) IN ({old}))"
    now = " ".join(
        f"WHEN lower({string_literal(path)}) THEN {string_literal(f' was the name of {new}')}"
        for path, new in names.items()
    )
    named = f"transform({found}, path -> concat(path, CASE lower(path) {now} END))"
    what = " for a time: give the value the name of today in the payload, or leave it out"
    return f"concat({_listed([named])}, {string_literal(what)})", f"size({found}) > 0"


def _listed(lists: Sequence[str]) -> str:
    """Return the SQL of the texts of some lists, in one text."""
    return f"array_join(sort_array(array_distinct(concat({', '.join(lists)}))), ', ')"


def check_condition(letters: str, condition: str) -> str:
    """Return a query without rows that fails if a condition over letters cannot be evaluated."""
    return f"SELECT 1 AS `one` FROM {letters}\nWHERE {enclosed(condition)}\nLIMIT 0"


@dataclass(frozen=True)
class ComparedColumn:
    """A column by which rows of a table are compared with those that it had before.

    Attributes:
        name: its name now.
        value: the SQL of its value in a row of a snapshot, by the names of that one.
        type: the type of this value.
    """

    name: str
    value: str
    type: IcebergType


def rows_of(
    relation: str,
    snapshot_id: int | None,
    judged: str,
    columns: Sequence[ComparedColumn],
    key: Sequence[str],
    own: Own,
    added_by: Collection[int] = (),
    is_main: bool = True,
) -> str:
    """Return the query of the rows of a table under the keys of letters: ``letter``, its id, and ``row``.

    A field that is NULL is like none, so that rows from before it was added are what they were.

    Args:
        relation: the rendered name of the table.
        snapshot_id: the snapshot to read; None for the last one.
        judged: the query of the letters.
        columns: the columns to compare.
        key: the names now of those of them that are the key.
        own: what columns beside these are called.
        added_by: snapshots, for rows in the files of these only.
        is_main: whether the rows are those of ``main``, and not of the branch of `spark.wap.branch`.
    """
    at = "" if snapshot_id is None else f" VERSION AS OF {snapshot_id}"
    items = ", ".join(f"{column.value} AS {quote(column.name)}" for column in columns)
    row = to_json("`old`", {column.name: as_bytes(column.type) for column in columns}, has_nulls=False)
    same = " AND ".join(f"`old`.{quote(name)} <=> `new`.{quote(name)}" for name in key)
    if added_by:
        items = f"{items}, `_file` AS {quote(own.file)}"
        # `entries` has the files of ``main``, whichever branch Spark reads.
        entries = "entries" if is_main else "all_entries"
        files = f"SELECT `data_file`.`file_path` FROM {relation}.`{entries}`"
        of_these = f"`status` < 2 AND `snapshot_id` IN ({', '.join(map(str, added_by))})"
        same = f"{same} AND {quote(own.file)} IN ({files} WHERE {of_these})"
    return (
        f"SELECT `new`.{quote(own.letter)} AS `letter`, {row} AS `row`\n"
        f"FROM (\n{judged}\n) AS `new`\nJOIN (\nSELECT {items}\nFROM {relation}{at}\n) AS `old` ON {same}"
    )


def letters_passed(newer: str, gone: str | None) -> str:
    """Return the query of the letters that the table has passed: ``letter``, and whether by rows it has now.

    Args:
        newer: the query of rows under the keys of letters that are newer, see ``rows_of``.
        gone: the query of those that the table no longer has as they were; None if that is not known.
    """
    found = f"SELECT `letter`, true AS `is_there` FROM (\n{newer}\n) AS `newer`"
    if gone is not None:
        found += f"\nUNION ALL\nSELECT `letter`, false AS `is_there` FROM (\n{gone}\n) AS `gone`"
    return f"SELECT `letter`, max(`is_there`) FROM (\n{found}\n) AS `found` GROUP BY `letter`"


def excluded(
    rows: str,
    judged: str,
    predicates: Sequence[str],
    key: Sequence[str],
    own: Own,
    *,
    is_merge: bool,
    are_letters: bool = False,
) -> str:
    """Return the query of the ids of letters under whose key there are rows that a load does not look at.

    Args:
        rows: the rendered name of the table, or the query of letters in parentheses.
        judged: the query of the letters.
        predicates: one or more conditions that limit what a load looks at.
        key: the names of the columns that are the key.
        own: what columns beside these are called.
        is_merge: whether the load is a MERGE, whose conditions may be about rows of the batch, too.
        are_letters: whether the rows are letters of an earlier time, whose ids are returned.
    """
    condition = unmet(" AND ".join(map(enclosed, predicates)))
    same = " AND ".join(f"{TARGET_ALIAS}.{quote(n)} <=> {SOURCE_ALIAS}.{quote(n)}" for n in key)
    found = SOURCE_ALIAS
    if are_letters:
        found = TARGET_ALIAS
        same += f" AND {TARGET_ALIAS}.{quote(own.loaded)} < {SOURCE_ALIAS}.{quote(own.loaded)}"
    where = f"\nWHERE {condition}"
    if not is_merge:
        # The conditions of a DELETE may name the table's columns alone.
        names = ", ".join(map(quote, [*key, own.letter, own.loaded] if are_letters else key))
        rows, where = f"(\nSELECT {names} FROM {rows} AS {TARGET_ALIAS}{where}\n)", ""
    return (
        f"SELECT DISTINCT {found}.{quote(own.letter)} AS `letter`\nFROM (\n{judged}\n) AS {SOURCE_ALIAS}\n"
        f"JOIN {rows} AS {TARGET_ALIAS} ON {same}{where}"
    )


def delete_letters(letters: str, model: str, ids: Iterable[str]) -> str:
    """Return the statement that removes letters by their ids, one or more."""
    return f"DELETE FROM {letters}\nWHERE {_is_one_of(model, ids)}"


def count_of(letters: str, model: str, ids: Iterable[str]) -> str:
    """Return the query of how many letters have these ids, one or more."""
    return f"SELECT count(*) FROM {letters}\nWHERE {_is_one_of(model, ids)}"


def count_of_others(letters: str, model: str) -> str:
    """Return the query of how many letters have the name of another model, by that; none for no name."""
    return (
        f"SELECT `modelName`, count(*) FROM {letters}\nWHERE NOT `modelName` <=> {string_literal(model)}\n"
        "GROUP BY `modelName`\nORDER BY `modelName`"
    )


def _is_one_of(model: str, ids: Iterable[str]) -> str:
    listed = ", ".join(map(string_literal, ids))
    return f"`modelName` = {string_literal(model)} AND {letter_id()} IN ({listed})"


def update_reasons(letters: str, found: str) -> str:
    """Return the statement that gives letters another reason, where it is another.

    Args:
        letters: the rendered name of their table.
        found: the query of their ids and reasons: ``letter``, ``reason``.
    """
    return (
        f"MERGE INTO {letters} AS `old`\nUSING (\n{found}\n) AS `new`\n"
        f"ON {letter_id('`old`')} = `new`.`letter`\n"
        "WHEN MATCHED AND NOT `old`.`failureReason` <=> `new`.`reason`\n"
        "THEN UPDATE SET `failureReason` = `new`.`reason`"
    )
