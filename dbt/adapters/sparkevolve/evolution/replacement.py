"""What becomes different in the columns of a table that is replaced by what a query returns."""

from collections.abc import Collection, Iterable, Sequence

from pyiceberg.schema import Schema
from pyiceberg.types import ListType, MapType

from dbt.adapters.sparkevolve.evolution.names import Path, fold, path_text, quote
from dbt.adapters.sparkevolve.evolution.types import children, fields_within


def replaced_columns(
    old: Sequence[tuple[str, str]], new: Sequence[tuple[str, str]], required: Collection[str] = ()
) -> list[str]:
    """Return what changes in a table's columns, as texts; none if they stay as they are.

    Args:
        old: the names and types of the table's columns.
        new: those of the query's. Backticks in a type do not matter.
        required: the names of the table's columns that are NOT NULL, which no replaced table's are.
    """
    before, after = dict(old), dict(new)
    texts = [f"leave out column {quote(name)} {type_}" for name, type_ in old if name not in after]
    texts += [f"add column {quote(name)} {type_}" for name, type_ in new if name not in before]
    texts += [
        f"change {quote(name)} from {before[name]} to {type_}"
        for name, type_ in new
        if name in before and _plain(before[name]) != _plain(type_)
    ]
    texts += [f"let {quote(name)} be NULL" for name, _ in new if name in required]
    if not texts and list(before) != list(after):
        texts.append(f"put its columns in the order {', '.join(map(quote, after))}")
    return texts


def fields_without(schema: Schema, other: Schema) -> list[str]:
    """Return the columns and fields of a schema that another one has not got, without what is inside of one.

    A replacement gives the same id to what has the same path, so these are told by their paths.
    """
    known = {tuple(map(fold, path)) for path, _ in fields_within(other.as_struct())}
    found: list[str] = []
    gone: set[Path] = set()
    # What is in a list or a map directly has no name that could go: its column has another type.
    unnamed: set[Path] = set()
    for path, f in fields_within(schema.as_struct()):
        if isinstance(f.field_type, ListType | MapType):
            unnamed.update((*path, child.name) for child in children(f.field_type))
        place = tuple(map(fold, path))
        if place in known or path in unnamed:
            continue
        if not any(place[:n] in gone for n in range(1, len(place))):
            found.append(path_text(path))
        gone.add(place)
    return found


def columns_without(schema: Schema, names: Iterable[str]) -> list[str]:
    """Return the columns of a schema that are not among some names."""
    known = set(map(fold, names))
    return [quote(f.name) for f in schema.fields if fold(f.name) not in known]


def loss_text(lost: Sequence[str], source: str, snapshot_id: int | None) -> str:
    """Return what to say of a table that loses columns as it is replaced, before and after that.

    Args:
        lost: the columns.
        source: what has them no more.
        snapshot_id: the table's snapshot before; None if it has none.
    """
    columns = f"column{'s' if len(lost) > 1 else ''} {', '.join(lost)}"
    text = f"the table is replaced, and loses {columns}, which {source} no longer has."
    if snapshot_id is None:
        return text
    return f"{text} What was there is in snapshot {snapshot_id} until that expires."


def _plain(type_: str) -> str:
    return type_.replace("`", "").lower()
