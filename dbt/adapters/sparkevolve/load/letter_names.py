"""Which columns of a table the values of dead letters are of, by the names that these had at the time."""

from collections.abc import Callable, Mapping
from typing import NamedTuple

from pyiceberg.schema import Schema
from pyiceberg.types import NestedField

from dbt.adapters.sparkevolve.evolution.defaults import DefaultValue
from dbt.adapters.sparkevolve.evolution.history import EarlierMeaning, columns_named, former_paths_inside
from dbt.adapters.sparkevolve.evolution.names import Path, fold, path_text
from dbt.adapters.sparkevolve.iceberg.catalog import LoadedTable
from dbt.adapters.sparkevolve.iceberg.schema_history import (
    complete_since,
    meanings_until,
    names_until,
)
from dbt.adapters.sparkevolve.sql import replay
from dbt.adapters.sparkevolve.times import iso_of


class LetterNames(NamedTuple):
    """The names that values of letters may have.

    Attributes:
        columns: the columns of the table, with the names under which letters have them.
        former: paths that may have been those of fields with other names now, with these, as texts.
    """

    columns: list[replay.Column]
    former: dict[str, str]


def letter_names(
    table: LoadedTable, renames: Mapping[str, str], padded: Callable[[NestedField], DefaultValue | None]
) -> LetterNames:
    """Return under which names the letters of a table have its columns.

    Args:
        table: the table.
        renames: the model's `column_renames`.
        padded: returns what letters without a column get in it; None for NULL.
    """
    schema, schemas = table.schema(), table.metadata.schemas
    had = columns_named(schemas)
    old_names = _renamed(schema, renames)
    uses, meanings, complete = names_until(table), meanings_until(table), complete_since(table)
    ended = {use.name: use.until_ms * 1000 for use in uses if use.until_ms}

    def names(f: NestedField) -> tuple[str, ...]:
        old = old_names.get(fold(f.name))
        # If it was another column's, too, only the time of a letter tells which one is meant.
        is_own = old is not None and had.get(fold(old), {}).keys() <= {f.field_id}
        return (f.name, old) if old is not None and is_own else (f.name,)

    columns = [
        replay.Column(
            f.name,
            f.field_type,
            names(f),
            padded(f),
            _meaning(f.name, meanings.get(f.name), complete),
            ended.get(fold(f.name)),
            tuple((n, until * 1000) for n, id_, until, _ in uses if id_ == f.field_id and until),
        )
        for f in schema.fields
    ]
    former: dict[Path, list[Path]] = {}
    for use in uses:
        if not use.is_exact:
            former.setdefault((use.name,), []).append((schema.find_field(use.field_id).name,))
    former |= former_paths_inside(schemas, schema)
    texts = {path_text(path): " or ".join(map(path_text, now)) for path, now in former.items()}
    return LetterNames(columns, texts)


def _renamed(schema: Schema, renames: Mapping[str, str]) -> dict[str, str]:
    """Return the old names of columns by the new ones in lower case.

    Of a column that was retired and replaced, the one that has its name now is what the model returns.
    """
    taken = {fold(f.name) for f in schema.fields}
    return {fold(new): old for old, new in renames.items() if "." not in old and fold(old) not in taken}


def _meaning(name: str, known: tuple[EarlierMeaning, int] | None, complete_ms: int) -> tuple[str, int] | None:
    """Return why a letter from before a time stays, and the time in microseconds since the epoch.

    Args:
        name: the column.
        known: what its name, or one in it, has meant before, and until when; None if it is not known to have.
        complete_ms: since when all schemas of the table are known.
    """
    if known is None or known[1] < complete_ms:
        reason = (
            f"{path_text((name,))}: which column had this name when this was written, before "
            f"{iso_of(complete_ms)}, is not known any more, as the table's older schemas have expired: if it "
            "is the one that has it now, set `loadedAt` to a later time"
        )
        return (reason, complete_ms * 1000) if complete_ms else None
    meaning, until_ms = known
    name, until = path_text(meaning.path), iso_of(until_ms) or ""
    if meaning.is_called:
        what = (
            f"it was what is {meaning.is_called} now: give the value that name in the payload, or, if it is "
            "meant for the new one, set `loadedAt` to a later time"
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
    reason = f"{name}: when this was written, before {until}, {what}"
    return reason, until_ms * 1000
