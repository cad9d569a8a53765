"""Which columns of a table the values of dead letters are of, by the names that these had at the time."""

from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from pyiceberg.schema import Schema
from pyiceberg.types import NestedField, StructType

from dbt.adapters.sparkevolve.evolution.defaults import DefaultValue
from dbt.adapters.sparkevolve.evolution.history import EarlierMeaning, fields_named
from dbt.adapters.sparkevolve.evolution.names import fold, path_text
from dbt.adapters.sparkevolve.evolution.types import children, fields_within
from dbt.adapters.sparkevolve.iceberg.catalog import LoadedTable
from dbt.adapters.sparkevolve.iceberg.schema_history import NamesOverTime, names_over_time
from dbt.adapters.sparkevolve.sql import replay
from dbt.adapters.sparkevolve.sql.payloads import ALWAYS, Naming
from dbt.adapters.sparkevolve.sql.replay import Staying
from dbt.adapters.sparkevolve.times import iso_of


class LetterNames(NamedTuple):
    """The names that values of letters may have.

    Attributes:
        columns: the columns of the table, with the names under which letters have them.
        former: paths that may have been those of fields with other names now, with these, as texts.
        complete: since when all schemas are known, in microseconds since the epoch; 0 for always.
    """

    columns: list[replay.Column]
    former: dict[str, str]
    complete: int = 0


def letter_names(
    table: LoadedTable, renames: Mapping[str, str], padded: Callable[[NestedField], DefaultValue | None]
) -> LetterNames:
    """Return under which names the letters of a table have its columns.

    Args:
        table: the table.
        renames: the model's `column_renames`.
        padded: returns what letters without a column get in it; None for NULL.
    """
    schema = table.schema()
    had = fields_named(table.metadata.schemas)
    old_names = _renamed(schema, renames)
    names = names_over_time(table)

    def keys(f: NestedField) -> tuple[str, ...]:
        old = old_names.get(fold(f.name))
        # If it was another column's, too, only the time of a letter tells which one is meant.
        is_own = old is not None and had.get((None, fold(old)), {}).keys() <= {f.field_id}
        return (f.name, old) if old is not None and is_own else (f.name,)

    columns = [_column(f, names, keys(f), padded(f)) for f in schema.fields]
    return LetterNames(columns, _former(schema, names), names.complete_ms * 1000)


def _renamed(schema: Schema, renames: Mapping[str, str]) -> dict[str, str]:
    """Return the old names of columns by the new ones in lower case.

    Of a column that was retired and replaced, the one that has its name now is what the model returns.
    """
    taken = {fold(f.name) for f in schema.fields}
    return {fold(new): old for old, new in renames.items() if "." not in old and fold(old) not in taken}


def _former(schema: Schema, names: NamesOverTime) -> dict[str, str]:
    """Return the paths that may have been fields' at any time, as no time tells, with those of today."""
    paths = {f.field_id: path for path, f in fields_within(schema.as_struct())}
    found: dict[str, list[str]] = {}
    for use in names.former:
        if not use.is_exact:
            parent = () if use.parent is None else paths[use.parent]
            found.setdefault(path_text((*parent, use.name)), []).append(path_text(paths[use.field_id]))
    return {old: " or ".join(now) for old, now in found.items()}


def _column(
    f: NestedField, names: NamesOverTime, keys: tuple[str, ...], padded: DefaultValue | None
) -> replay.Column:
    """Return how letters are read back into a column.

    Args:
        f: the column.
        names: what is known of the names that the fields of the table have had.
        keys: under which names the model may return it.
        padded: see ``replay.Column``.
    """
    inside = {inner.field_id: _naming(parent.field_id, inner, names) for parent, inner in _in_structs(f)}
    return replay.Column(
        f.name,
        f.field_type,
        keys,
        padded,
        _naming(None, f, names),
        {field_id: naming for field_id, naming in inside.items() if naming != ALWAYS},
        tuple(_staying(f, names)),
    )


def _in_structs(f: NestedField) -> Iterator[tuple[NestedField, NestedField]]:
    """Yield the fields of all structs in a field, itself too, each behind the one that is the struct."""
    for inner in children(f.field_type):
        if isinstance(f.field_type, StructType):
            yield f, inner
        yield from _in_structs(inner)


def _naming(parent: int | None, f: NestedField, names: NamesOverTime) -> Naming:
    """Return by which names letters have a field of a struct, or a column of the table."""
    own = ((use.name, use.until_ms * 1000) for use in names.former if use.field_id == f.field_id)
    return Naming(_since(parent, f, names), tuple((name, until) for name, until in own if until))


def _since(parent: int | None, f: NestedField, names: NamesOverTime) -> int | None:
    """Return until when its name of today was another one's, in microseconds; None if it never was."""
    place = (parent, fold(f.name))
    others = (use.until_ms * 1000 for use in names.former if (use.parent, use.name) == place)
    return next((until for until in others if until), None)


def _staying(f: NestedField, names: NamesOverTime) -> Iterator[Staying]:
    """Yield which letters with a value for a column stay for what its name, or one inside, has meant."""
    if names.complete_ms:
        reason = (
            f"{path_text((f.name,))}: which column had this name when this was written, before "
            f"{iso_of(names.complete_ms)}, is not known any more, as the table's older schemas have expired: "
            "if it is the one that has it now, set `loadedAt` to a later time"
        )
        yield Staying(reason, names.complete_ms * 1000)
    for inner in (f, *(inner for _, inner in fields_within(f.field_type))):
        if inner.field_id in names.meanings:
            meaning, until_ms = names.meanings[inner.field_id]
            since = _since(meaning.parent, inner, names)
            if since is None or since < until_ms * 1000:
                yield Staying(_reason(meaning, until_ms), until_ms * 1000, since, by_own_name=inner is f)


def _reason(meaning: EarlierMeaning, until_ms: int) -> str:
    """Return why a letter stays that was written before a time, when a name had another meaning."""
    name, until = path_text(meaning.path), iso_of(until_ms) or ""
    if meaning.by_turns:
        return (
            f"{name}: before {until} several columns or fields have had this name by turns, and which "
            "of them had it when this was written is not told: give each value the name of today in the "
            "payload, and set `loadedAt` to a later time"
        )
    if meaning.is_called:
        what = (
            f"it was what is {meaning.is_called} now, or had no column: give the value the name of today in "
            "the payload, or leave it out, and set `loadedAt` to a later time"
        )
    elif meaning.was_other:
        what = (
            "another column had this name, which was dropped: leave the value out of the payload, or, if it "
            "is meant for the one that has the name now, set `loadedAt` to a later time"
        )
    else:
        what = (
            "it had another type, and JSON does not tell bytes from text: put into the payload what it is to "
            "be (of bytes the Base64), and set `loadedAt` to a later time"
        )
    return f"{name}: when this was written, before {until}, {what}"
