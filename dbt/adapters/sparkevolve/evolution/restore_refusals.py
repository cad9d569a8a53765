"""Why a dropped field is not put back: one function for each reason, so that its words stand in one place."""

from collections.abc import Iterable, Sequence

from pyiceberg.types import IcebergType

from dbt.adapters.sparkevolve.evolution.names import (
    Path,
    config_name,
    config_path,
    path_text,
    quote,
    string_literal,
    unquote,
)
from dbt.adapters.sparkevolve.evolution.paths import Obstacle
from dbt.adapters.sparkevolve.evolution.refusals import Refusal, first_obstacle, listed

# How many paths of files a message has; they are long.
_MOST_PATHS = 3


def which(column: str, candidates: Sequence[str]) -> Refusal:
    """Several dropped fields had the name that is to come back."""
    return Refusal(
        columns=(column,),
        reason=f"{len(candidates)} fields that were dropped have been called {quote(unquote(column))}: "
        f"{'; '.join(candidates)}.",
        remedy="Say which one with `field_id`.",
    )


def name_taken(there: Path, there_id: int, path: Path, field_id: int, last: Path | None = None) -> Refusal:
    """The table has a column of the name that is to come back; ``last`` is another one that it has had."""
    old, new = config_path(there), f"{there[-1]}_new"
    other = ""
    if last is not None:
        arguments = f"`column: {config_path(last)}, field_id: {field_id}`"
        other = f"Restore it under another of its names: {arguments}. Or "
    return Refusal(
        columns=(".".join(path),),
        in_the_way=".".join(there),
        reason=f"The table has {path_text(there)}, as field {there_id}, so field {field_id} cannot "
        "come back under that name.",
        remedy=f"{other}{'r' if other else 'R'}ename that one first: "
        f"`column_renames: {{{old}: {config_name(new)}}}` in the model, which then returns it as "
        f"{quote(new)} and no longer as {quote(there[-1])}, and a run of the model. Then call this again.",
    )


def ambiguous(path: Path, group: tuple[str, ...]) -> Refusal:
    """The table has a column whose name Spark cannot tell from the one that is to come back."""
    others = [name for name in group if name != path[-1]]
    return Refusal(
        columns=group,
        reason=f"The table has {listed(others)}, which Spark cannot tell from {path_text(path)}.",
        remedy=f"Rename {listed(others)} first, with `column_renames` in the model.",
    )


def not_dropped(path: Path, field_id: int) -> Refusal:
    """The table has the column that is to come back, and no other one of that name was dropped."""
    return Refusal(
        columns=(".".join(path),),
        reason=f"The table has the column {path_text(path)}, as field {field_id}, and no other field of that "
        "name was dropped.",
        remedy="There is nothing to restore.",
    )


def renamed(old: Path, field_id: int, now: Path) -> Refusal:
    """What was called so was not dropped but renamed."""
    return in_use(field_id, now, [old])


def in_use(field_id: int, now: Path, was: Sequence[Path], other_id: int | None = None) -> Refusal:
    """The field is in the table; ``other_id`` is the field that has its last other name by now."""
    if not was:
        return Refusal(
            columns=(".".join(now),),
            reason=f"Field {field_id} is in use: it is {path_text(now)}.",
            remedy="There is nothing to restore.",
        )
    old = was[-1]
    return Refusal(
        columns=(".".join(old), ".".join(now)),
        reason=f"Field {field_id} is in use: it was renamed from {path_text(old)} to {path_text(now)}, where "
        "its values are.",
        remedy=f"To have it as {quote(old[-1])} again: `column_renames: {{{config_path(now)}: "
        f"{config_name(old[-1])}}}` in the model."
        if other_id is None
        else f"There is nothing to restore: read it as {path_text(now)}. {path_text(old)} is field "
        f"{other_id} by now.",
    )


def went_with(path: Path, gone: Path, gone_id: int) -> Refusal:
    """The field is gone since what it was in was dropped."""
    return Refusal(
        columns=(".".join(path),),
        reason=f"{path_text(path)} is gone since {path_text(gone)}, field {gone_id}, was dropped.",
        remedy=f"Restore that: `column: {config_path(gone)}, field_id: {gone_id}`. It comes back with all "
        "that was in it when it was dropped.",
    )


def other_name(column: str, field_id: int, path: Path) -> Refusal:
    """The field was dropped, and never had that name."""
    return Refusal(
        columns=(column,),
        reason=f"Field {field_id} was dropped, and has never been called {quote(unquote(column))}: it was "
        f"{path_text(path)}.",
        remedy=f"Call it that: `column: {config_path(path)}, field_id: {field_id}`.",
    )


def unknown(column: str, dropped: Sequence[str], removed_schemas: int) -> Refusal:
    """No dropped field had that name."""
    return Refusal(
        columns=(column,),
        reason=f"No schema that the table's metadata still have has had a column {quote(unquote(column))}."
        + _forgotten(removed_schemas),
        remedy=_all_dropped(dropped),
    )


def no_such_id(field_id: int, dropped: Sequence[str], is_given: bool, removed_schemas: int) -> Refusal:
    """No dropped field has that id."""
    if is_given:
        reason = f"No schema that the table's metadata still have has a field {field_id}." + _forgotten(
            removed_schemas
        )
    else:
        reason = f"The table has never had a field {field_id}."
    return Refusal(columns=(), reason=reason, remedy=_all_dropped(dropped))


def _forgotten(removed_schemas: int) -> str:
    if not removed_schemas:
        return ""
    return (
        f" {removed_schemas} older ones were removed by maintenance (`expire_snapshots` with "
        "`clean_expired_metadata`), and a field that only these had cannot be restored."
    )


def _all_dropped(dropped: Sequence[str]) -> str:
    return f"Dropped were: {'; '.join(dropped)}." if dropped else "No field of the table was dropped."


def reserved(path: Path) -> Refusal:
    """A name of one of Iceberg's metadata columns."""
    return Refusal(
        columns=(".".join(path),),
        reason=f"{path_text(path)} is a name that Iceberg keeps for its metadata columns: a table that has "
        "it can be neither read nor changed by Spark.",
        remedy="It cannot be restored; read it in a snapshot from before it was dropped.",
    )


def no_spark_type(path: Path, type_: IcebergType) -> Refusal:
    """A field for which Spark SQL has no type: with it Spark could not even open the table."""
    return Refusal(
        columns=(".".join(path),),
        types=(str(type_),),
        reason=f"{path_text(path)} had the Iceberg type {type_}, for which Spark SQL has no type: with it, "
        "Spark could read nothing of the table.",
        remedy="Read its values with another engine, in a snapshot from before it was dropped.",
    )


def path_taken(path: Path, obstacles: Iterable[Obstacle]) -> Refusal:
    """A dropped field whose dotted path, or one in it, is that of another field or partition field by now."""
    first = first_obstacle(obstacles)
    return Refusal(
        columns=(".".join(path),),
        in_the_way=".".join(first.path),
        reason=f"{path_text(path)} was dropped, but {first.by.value} {path_text(first.path)}, and Iceberg "
        "cannot hold both.",
        remedy="Rename that one first.",
    )


def format_v3(path: Path) -> Refusal:
    """A table whose columns only Spark's statements can change, which give each one a new id."""
    return Refusal(
        columns=(".".join(path),),
        reason="The table has Iceberg's format version 3, to which PyIceberg cannot commit, and over Thrift "
        "no statement of Spark can give a column an old id.",
        remedy=f"Restore {path_text(path)} with `method: session`, or through a REST catalog.",
    )


def orc_files(
    path: Path, relation: str, tables: Sequence[str], files: str, column: str, *, only: Sequence[str]
) -> Refusal:
    """A field with a default for older rows, of which an ORC file would be asked.

    Args:
        path: the field.
        relation: the rendered name of the table.
        tables: the names of its branches that have such files, the main one first.
        files: how many these are.
        column: a column of the table.
        only: the paths of these, if there are ORC files with values of the field beside them.
    """
    others = ""
    if only:
        paths = [string_literal(file) for file in only[:_MOST_PATHS]]
        condition = f"_file IN ({', '.join(paths)})"
        others = " Other ORC files have values of it, which a rewrite would lose: name none of these."
        if len(only) > _MOST_PATHS:
            more = len(only) - _MOST_PATHS
            others += f" {more} more without it: this names the next ones when it is called again."
    else:
        condition = "_file LIKE '%.orc'"
    updates = [f"UPDATE {t} SET {quote(column)} = {quote(column)} WHERE {condition}" for t in tables]
    return Refusal(
        columns=(".".join(path),),
        reason=f"{path_text(path)} was added with a default for older rows, and {files} "
        f"{'were' if not files.startswith('1 row ') else 'was'} written without it. Iceberg's Java library "
        "cannot read a default for an ORC file: with it, every query of it would fail.",
        remedy=f"Have them written as Parquet first: ALTER TABLE {relation} SET TBLPROPERTIES "
        "('write.format.default' = 'parquet', 'write.update.mode' = 'copy-on-write'), then "
        f"{' and '.join(updates)}.{others} Then call this again, and set the mode back.",
    )
