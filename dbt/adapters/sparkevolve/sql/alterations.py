"""The text of the statements that make a table's columns and properties others, each a commit of its own."""

from collections.abc import Callable, Iterator, Mapping, Sequence

from pyiceberg.schema import Schema

from dbt.adapters.sparkevolve.evolution.names import Path, fold, name_between, path_text, quote
from dbt.adapters.sparkevolve.evolution.types import fields_within, spark_type

Literal = Callable[[str], str]


def alter_columns(table: str, before: Schema, after: Schema, literal: Literal) -> list[str]:
    """Return the statements that make one schema of the other, in an order in which each does no harm alone.

    Names come first, so that a new column can have the old name of another. All additions are one statement.

    Args:
        table: the rendered name of the table.
        before: the schema that it has.
        after: the schema that it is to have, with the ids of the fields that stay.
        literal: returns a text as one token.
    """
    alter = f"ALTER TABLE {table}"
    had = {f.field_id: f for _, f in fields_within(before.as_struct())}
    changed: list[str] = []
    described: list[str] = []
    added: list[tuple[int, str]] = []
    in_new: set[Path] = set()
    for path, f in fields_within(after.as_struct()):
        column = path_text(path)
        old = had.get(f.field_id)
        if old is None:
            in_new.add(path)
            if path[:-1] not in in_new:
                doc = f" COMMENT {literal(f.doc)}" if f.doc else ""
                added.append((f.field_id, f"{column} {spark_type(f.field_type)}{doc}"))
            continue
        if old.required and not f.required:
            changed.append(f"{alter} ALTER COLUMN {column} DROP NOT NULL")
        if f.field_type.is_primitive and f.field_type != old.field_type:
            changed.append(f"{alter} ALTER COLUMN {column} TYPE {spark_type(f.field_type)}")
        if (f.doc or "") != (old.doc or ""):
            described.append(f"{alter} ALTER COLUMN {column} COMMENT {literal(f.doc or '')}")
    # By their ids: Spark gives new ones in this order, and columns that replace others have the last.
    texts = ", ".join(text for _, text in sorted(added))
    additions = [f"{alter} ADD COLUMNS ({texts})"] if texts else []
    return [*_renames(alter, before, after), *changed, *additions, *described]


def _renames(alter: str, before: Schema, after: Schema) -> Iterator[str]:
    """Yield what renames; one whose new name another still has waits for that one.

    Inner fields first: where a run ends between two of them, the next one finds each by its path of before.
    """
    names = {f.field_id: f.name for _, f in fields_within(before.as_struct())}
    ids = {path: f.field_id for path, f in fields_within(after.as_struct())}
    above = {field_id: ids.get(path[:-1]) for path, field_id in ids.items()}
    fields = sorted(fields_within(after.as_struct()), key=lambda found: -len(found[0]))
    waiting = [(f.field_id, f.name) for _, f in fields if names.get(f.field_id, f.name) != f.name]

    def path_now(field_id: int | None) -> Path:
        """Return where a field is, since what encloses it may wait still, or be renamed by now."""
        return (*path_now(above[field_id]), names[field_id]) if field_id is not None else ()

    while waiting:
        # Spark cannot tell names apart that differ by case only.
        taken = {(above[field_id], fold(names[field_id])): field_id for field_id, _ in waiting}
        ready = [(i, new) for i, new in waiting if taken.get((above[i], fold(new)), i) == i] or waiting
        field_id, new = ready[0]
        steps = [new]
        if fold(names[field_id]) == fold(new):
            # Spark finds the new name taken by the field itself. After a run that ends between the two the
            # next one begins again, see `LoadRunner.end_renames`.
            steps.insert(0, name_between(names[field_id]))
        for name in steps:
            yield f"{alter} RENAME COLUMN {path_text(path_now(field_id))} TO {quote(name)}"
            names[field_id] = name
        waiting.remove(ready[0])


def alter_properties(
    table: str, values: Mapping[str, str], outdated: Sequence[str], literal: Literal
) -> list[str]:
    """Return the statements that set properties of a table, and that take others away.

    Args:
        table: the rendered name of the table.
        values: the properties to be set.
        outdated: the names of those to be taken away.
        literal: returns a text as one token.
    """
    alter = f"ALTER TABLE {table}"
    statements = []
    if outdated:
        names = ", ".join(map(literal, outdated))
        statements.append(f"{alter} UNSET TBLPROPERTIES IF EXISTS ({names})")
    if values:
        pairs = ", ".join(f"{literal(name)} = {literal(value)}" for name, value in values.items())
        statements.append(f"{alter} SET TBLPROPERTIES ({pairs})")
    return statements
