"""Why a batch is not loaded: one function for each reason, so that its words stand in one place."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from pyiceberg.types import IcebergType

from dbt.adapters.sparkevolve.evolution.defaults import DefaultValue
from dbt.adapters.sparkevolve.evolution.names import Path, config_name, config_path, path_text, quote
from dbt.adapters.sparkevolve.evolution.partitions import Part
from dbt.adapters.sparkevolve.evolution.paths import Holder, Obstacle
from dbt.adapters.sparkevolve.evolution.types import has_map, may_be_cast, type_text


@dataclass(frozen=True)
class Refusal:
    """Why a batch cannot be loaded into its table.

    Attributes:
        columns: the names or paths that it is about.
        types: their types as text, the table's first, where types are the reason; else empty.
        reason: what is wrong.
        remedy: what the user can do.
        in_the_way: the dotted path of another field that it is about, or the name of a partition field.
        otherwise: another thing that the user can do, which takes some thought.
        aside: what to do if it is about some values only.
    """

    columns: tuple[str, ...]
    reason: str
    remedy: str
    types: tuple[str, ...] = ()
    in_the_way: str = ""
    otherwise: str = ""
    aside: str = ""

    def __str__(self) -> str:
        return " ".join(filter(None, (self.reason, self.remedy, self.otherwise, self.aside)))


@dataclass(frozen=True)
class Switch:
    """A setting that is off, and why.

    Attributes:
        name: its name.
        is_frozen: whether it is off only because nothing of the table may change.
    """

    name: str
    is_frozen: bool = False

    @property
    def is_off(self) -> str:
        """What the user has set that turns it off."""
        return "`on_schema_change` is 'fail'" if self.is_frozen else f"`{self.name}` is false"

    @property
    def turn_on(self) -> str:
        """What the user would set to turn it on."""
        if self.is_frozen:
            return "set `on_schema_change: append_new_columns_preserve`"
        return f"set `{self.name}: true`"


def listed(names: Iterable[str]) -> str:
    """Return names in backticks, separated by commas."""
    return ", ".join(quote(name) for name in names)


def frozen_schema(node: str, changes: Sequence[str]) -> Refusal:
    """The run freezes the schemas of tables."""
    return Refusal(
        columns=(),
        reason=f"`sparkevolve_freeze_schema` is true in this run, and {node} would change the table's "
        f"schema: {'; '.join(changes)}.",
        remedy="Take that back in the model or in its configuration, or run it without this variable.",
    )


def no_columns() -> Refusal:
    """The model returns no columns."""
    return Refusal(
        columns=(),
        reason="The model returns no columns.",
        remedy="A table cannot be loaded from it: check what the model selects from.",
    )


def ambiguous(where: str, group: tuple[str, ...]) -> Refusal:
    """Names that differ by case only, or by what Spark takes for case."""
    return Refusal(
        columns=group,
        reason=f"{where} columns whose names differ only in ways that Spark ignores: {listed(group)}. Spark "
        "cannot tell them apart.",
        remedy="Rename all but one of them.",
    )


def reserved(name: str) -> Refusal:
    """A name of one of Iceberg's metadata columns."""
    return Refusal(
        columns=(name,),
        reason=f"The model returns the column {quote(name)}, a name that Iceberg keeps for its metadata "
        "columns: a table that has it can be neither read nor changed by Spark.",
        remedy="Give the column another name in the model.",
    )


def empty_name(path: Path) -> Refusal:
    """A column or field whose name is empty."""
    where = f"in {path_text(path[:-1])} a field" if path[:-1] else "a column"
    return Refusal(
        columns=(".".join(path),),
        reason=f"The model returns {where} whose name is empty, and Iceberg cannot store one.",
        remedy="Give it a name in the model.",
    )


def unreadable_by_hive(path: Path) -> Refusal:
    """A field whose name would keep a Hive metastore from reading the column's type ever again."""
    return Refusal(
        columns=(".".join(path),),
        reason=f"The model returns the field {path_text(path)}, and a Hive metastore cannot read a type with "
        "such a name in it: after it is stored, the metastore refuses every other change of the table.",
        remedy="Give the field a name of letters, digits, underscores, dots and spaces in the model.",
    )


def path_taken(path: Path, obstacles: Iterable[Obstacle]) -> Refusal:
    """A new column or field whose dotted path, or one in it, is that of another field or partition field."""
    first = first_obstacle(obstacles)
    return Refusal(
        columns=(".".join(path),),
        in_the_way=".".join(first.path),
        reason=f"The model returns the new column {path_text(path)}, but {first.by.value} "
        f"{path_text(first.path)}, and Iceberg cannot hold both.",
        remedy="Give the column another name in the model.",
    )


def key_not_produced(missing: tuple[str, ...], returned: Iterable[str], setting: str) -> Refusal:
    """The model does not return the column by which rows are replaced."""
    return Refusal(
        columns=missing,
        reason=f"The {setting} {listed(missing)} is not produced by the model, which returns "
        f"{listed(returned)}.",
        remedy=f"Return it from the model, or change the `{setting}`.",
    )


def key_not_in_table(missing: tuple[str, ...], setting: str) -> Refusal:
    """The column by which rows are replaced is new, and nothing may be added."""
    return Refusal(
        columns=missing,
        reason=f"The {setting} {listed(missing)} is not a column of the table.",
        remedy=f"Set `on_schema_change: append_new_columns_preserve` to add it, or change the `{setting}`.",
    )


def key_not_comparable(path: Path, type_: IcebergType, setting: str) -> Refusal:
    """Rows are to be found by a map or a variant, or by what has one in it: Spark does not compare them."""
    return Refusal(
        columns=(".".join(path),),
        types=(type_text(type_),),
        reason=f"The {setting} {path_text(path)} is of type {type_text(type_)}, and Spark cannot compare "
        f"{'maps' if has_map(type_) else 'variants'}: no row can be found by it.",
        remedy=f"Change the `{setting}`, or return another column from the model, such as "
        f"`to_json({path_text(path)})`, and use that.",
    )


def no_such_column(names: tuple[str, ...], setting: str, is_renamed: bool = False) -> Refusal:
    """A setting names columns that the table will not have, since it has none or they are to be renamed."""
    why = "which `column_renames` renames" if is_renamed else "which neither the table nor the model has"
    return Refusal(
        columns=names,
        reason=f"`{setting}` names {listed(names)}, {why}.",
        remedy=f"Use the new name in `{setting}`." if is_renamed else f"Change `{setting}`.",
    )


def renamed_in_text(path: Path, new_name: str, setting: str, text: str) -> Refusal:
    """A text of SQL names a column or field that is to be renamed: Spark would not find it any more."""
    return Refusal(
        columns=(".".join(path), new_name),
        reason=f"`{setting}` name {path_text(path)} ({text.strip()}), which `column_renames` renames to "
        f"{quote(new_name)}: there would be no such column any more.",
        remedy=f"Use the new name in `{setting}`.",
    )


def query_in_merge(text: str) -> Refusal:
    """Spark takes no query in the condition of a MERGE, whatever it reads."""
    return Refusal(
        columns=(),
        reason=f"One of the model's `incremental_predicates` ({text.strip()}) has a query, and Spark takes "
        "none in the condition of a MERGE.",
        remedy="Ask for its value in the model with dbt's `run_query`, and write that into the condition, or "
        "use `incremental_strategy: delete+insert`, which takes queries.",
    )


def unreadable_text(setting: str, text: str, reason: str) -> Refusal:
    """Spark cannot read a text of SQL over the columns that the table is to have."""
    return Refusal(
        columns=(),
        reason=f"Spark cannot evaluate one of the model's `{setting}` ({text.strip()}) over the columns that "
        "the table is to have.",
        remedy=f"Mend it. Spark says: {reason}",
    )


def not_found_in_branch(table: str, branch: str, path: Path, where: str, *, is_there: bool) -> Refusal:
    """Iceberg finds no rows in a branch of `spark.wap.branch` by a name that its columns do not have yet.

    Args:
        table: the rendered name of the table.
        branch: the branch.
        path: where the field is, as it is to be called.
        where: what names it, as the subject of a sentence.
        is_there: whether the table has it so already.
    """
    first = "" if is_there else "change the column with `ALTER TABLE`, and then "
    verb = f"{first}write to the branch, with that setting"
    return Refusal(
        columns=(".".join(path),),
        reason=f"{where} names {path_text(path)}, which the rows of the branch `{branch}`, "
        "that of `spark.wap.branch`, do not have by that name: nothing was written to it since. In such a "
        "branch Iceberg cannot look for rows by it.",
        remedy=f"{verb[0].upper()}{verb[1:]}: `INSERT INTO {table} SELECT * FROM {table} WHERE false`. Then "
        "run again.",
    )


def unreadable_key(text: str, reason: str) -> Refusal:
    """Spark cannot read the key of a snapshot over its source, or over what its table is to have."""
    return Refusal(
        columns=(),
        reason=f"Spark cannot evaluate the snapshot's `unique_key` ({text.strip()}) over the columns of its "
        "source, or those that its table is to have.",
        remedy=f"Mend it. Spark says: {reason}",
    )


def other_partitions(configured: tuple[Part, ...], actual: tuple[Part, ...]) -> Refusal:
    """Partitions are to be overwritten, and the table's are others than the model's: other rows would go."""
    wanted, has = (", ".join(map(str, parts)) or "nothing" for parts in (configured, actual))
    return Refusal(
        columns=tuple(p.column for p in configured),
        reason=f"The model is partitioned by {wanted} and the table by {has}: to overwrite the partitions "
        "that the batch has rows for would replace other rows than the model means.",
        remedy="Make `partition_by` what the table is partitioned by, change the table with `ALTER TABLE … "
        "ADD, DROP or REPLACE PARTITION FIELD`, or take `partition_by` away if the whole table is to be "
        "overwritten.",
    )


def no_partition_source(setting: str, term: str, column: str, returned: Iterable[tuple[str, str]]) -> Refusal:
    """A new table is to be partitioned by a column that it does not get."""
    typed = ", ".join(f"{quote(name)} {type_}" for name, type_ in returned)
    return Refusal(
        columns=(column,),
        reason=f"`{setting}` has {term}, and the model returns no {quote(column)}, but {typed}.",
        remedy=f"Change `{setting}`, or return the column from the model.",
    )


def other_partition_source(setting: str, term: str, column: str, type_: str, fitting: str) -> Refusal:
    """A new table is to be partitioned by a column of a type by which Iceberg partitions none."""
    return Refusal(
        columns=(column,),
        types=(type_,),
        reason=f"`{setting}` has {term}, and {quote(column)} is of type {type_}: {fitting}.",
        remedy=f"Change `{setting}`, or cast the column in the model.",
    )


def several_in_a_bucket(columns: Sequence[str], buckets: str) -> Refusal:
    """A new table is to have buckets of several columns together, which Iceberg does not have."""
    each = ", ".join(f"bucket({buckets}, {column})" for column in columns)
    return Refusal(
        columns=tuple(columns),
        reason=f"`clustered_by` has {len(columns)} columns, {listed(columns)}, and a bucket of "
        "Iceberg's is of one column.",
        remedy=f"Name one, or set `partition_by: [{each}]` instead, by which a partition is a bucket of "
        "each.",
    )


def other_format_version(configured: str, actual: int) -> Refusal:
    """The model has another format version than its table, which no run changes: there is no way back."""
    return Refusal(
        columns=(),
        reason=f"`tblproperties` say that `format-version` is {configured}, and the table has {actual}. A "
        "run does not change that, because nobody can take it back.",
        remedy=f"Say {actual}, or leave it out. `ALTER TABLE … SET TBLPROPERTIES ('format-version' = …)` in "
        "Spark upgrades a table.",
    )


def reserved_property(name: str, value: str) -> Refusal:
    """The model sets what is no property of an Iceberg table."""
    return Refusal(
        columns=(),
        reason=f"`tblproperties` set `{name}` to {value!r}, and Spark or Iceberg keeps that elsewhere than "
        "in the properties of a table, so it would have no effect.",
        remedy="Leave it out.",
    )


def metrics_of_no_column(name: str, column: str) -> Refusal:
    """The model sets metrics for a column that its table will not have."""
    return Refusal(
        columns=(column,),
        reason=f"`tblproperties` set `{name}`, and the table will have no column `{column}`. Iceberg would "
        "then refuse every later change of the table's properties.",
        remedy="Name a column of the table as it is spelled there, or leave it out.",
    )


def cannot_merge(*, is_snapshot: bool, is_in_table: bool) -> Refusal:
    """Rows are to be merged into a table for which Spark resolves no columns, or would not after this run.

    Args:
        is_snapshot: what merges is a snapshot, and not the strategy of a model.
        is_in_table: the table has the property, and not only the model.
    """
    if is_in_table:
        has_it = "The table has the property `write.spark.accept-any-schema`"
        without_it = "Take the property away with `ALTER TABLE … UNSET TBLPROPERTIES "
        without_it += "('write.spark.accept-any-schema')`"
    else:
        has_it, without_it = "`tblproperties` set `write.spark.accept-any-schema`", "Leave it out"
    merges = "and a snapshot is one." if is_snapshot else "the incremental_strategy of the model."
    return Refusal(
        columns=(),
        reason=f"{has_it}, with which Spark can run no MERGE, {merges}",
        remedy=without_it + ("." if is_snapshot else ", or set `incremental_strategy: delete+insert`."),
    )


def needs_newer_format(mode: str) -> Refusal:
    """Rows are to be deleted in a way that a table of format version 1 has not."""
    return Refusal(
        columns=(),
        reason=f"The table has Iceberg's format version 1 and `{mode}` = 'merge-on-read', for which Iceberg "
        "needs version 2, so Spark can delete no rows of it.",
        remedy=f"Set `tblproperties: {{{mode}: copy-on-write}}` in the model, or upgrade the table: `ALTER "
        "TABLE … SET TBLPROPERTIES ('format-version' = '2')`.",
    )


def older_partitions(path: Path, type_: IcebergType, transform: str) -> Refusal:
    """Partitions to be overwritten are partly in files of an older spec, and cannot be told by value."""
    return Refusal(
        columns=(".".join(path),),
        types=(str(type_),),
        reason="The table has files from before its partitioning was changed, which an overwrite of "
        f"partitions would leave in place, and Spark has no function for the partition `{transform}` of "
        f"{path_text(path)} ({type_}), by which their rows could be deleted.",
        remedy="Rewrite the files: `CALL … system.rewrite_data_files(table => '…', options => "
        "map('rewrite-all', 'true'))`.",
    )


def removed_not_null(path: Path, type_: IcebergType, switch: Switch) -> Refusal:
    """A required field that the model no longer returns, and that may not be relaxed."""
    return Refusal(
        columns=(".".join(path),),
        types=(type_text(type_),),
        reason=f"Column {path_text(path)} is NOT NULL in the table, and the model no longer returns it, "
        "so it cannot be padded with NULL.",
        remedy=f"Return it from the model again, or {switch.turn_on} to make it optional.",
    )


def null_in_not_null(path: Path, type_: IcebergType, switch: Switch) -> Refusal:
    """A NULL for a required field that may not be relaxed."""
    return Refusal(
        columns=(".".join(path),),
        types=(type_text(type_),),
        reason=f"Column {path_text(path)} is NOT NULL in the table, and the batch may hold a NULL in it.",
        remedy=f"Keep NULLs out of it in the model, or {switch.turn_on} to make it optional.",
    )


def identifier_field(path: Path, type_: IcebergType) -> Refusal:
    """A required field that Iceberg does not let become optional."""
    return Refusal(
        columns=(".".join(path),),
        types=(type_text(type_),),
        reason=f"Column {path_text(path)} is an identifier field of the table, which cannot be NULL, and the "
        "model does not return a value for it in each row.",
        remedy="Return it from the model, or take it out of the identifier fields "
        f"(ALTER TABLE ... DROP IDENTIFIER FIELDS {path_text(path)}).",
    )


def type_differs(
    path: Path,
    old: IcebergType,
    new: IcebergType,
    why: str = "",
    key_setting: str = "",
    move: str = "",
    *,
    may_set_aside: bool = False,
) -> Refusal:
    """Two types of which the table's cannot hold the model's values; a key's is named with its setting.

    Args:
        path: the column.
        old: the table's type.
        new: the model's.
        why: what else to say of the reason.
        key_setting: the setting that names the column, if rows are found by it.
        move: the setting that keeps the old column under another name, and gives its name to the new type, as
            a text goes on with it.
        may_set_aside: whether some values of the one type may be values of the other, and rows with others
            could be set aside.
    """
    in_table, in_batch = type_text(old), type_text(new)
    cast = "Return it"
    if may_be_cast(new, old):
        # A CAST may lose what made the types differ: digits, a time of day.
        cast = f"If {in_table} holds all its values, cast it to {in_table} in the model; if not, return it"
    # A key of another name that is NULL in old rows would find none of them.
    retire = f", make that the `{key_setting}`," if key_setting else ","
    if in_table == in_batch:
        # Spark has one type for what are two in Iceberg, such as string for uuid: no cast helps.
        in_table, in_batch = str(old), str(new)
    return Refusal(
        columns=(".".join(path),),
        types=(in_table, in_batch),
        reason=f"Column {path_text(path)} is {in_table} in the table, and the model returns {in_batch}.{why}",
        remedy=f"{cast} under a new name, fill that for old rows{retire} and retire the old name.",
        otherwise=move
        and f"To keep the old column under another name, and have its name for the new type, set {move}. "
        'The docs of dbt-sparkevolve have four questions to ask first, under "Change a type".',
        aside="If only some values do not fit, `on_bad_rows: dead_letter` sets their rows aside and loads "
        'the others: see "Dead letters" in the docs of dbt-sparkevolve.'
        if may_set_aside
        else "",
    )


def never_converts(path: Path, old: IcebergType, new: IcebergType, count: int, move: str) -> Refusal:
    """A type that is another in the table, and none of the batch's values converts."""
    values = "the only value" if count == 1 else f"none of the {count} values"
    none = f" Not even with `on_bad_rows: dead_letter`: {values} of this batch "
    none += "does not convert." if count == 1 else "converts."
    return type_differs(path, old, new, none, move=move)


def widening_off(path: Path, old: IcebergType, new: IcebergType, switch: Switch) -> Refusal:
    """A type that could be widened, but may not."""
    return type_differs(path, old, new, f" It could be widened, but {switch.is_off}.")


def nested_off(path: Path, old: IcebergType, new: IcebergType, switch: Switch) -> Refusal:
    """A nested difference that may not be evolved."""
    return type_differs(path, old, new, f" The fields in it differ, and {switch.is_off}.")


def map_key_differs(path: Path, old: IcebergType, new: IcebergType, move: str = "") -> Refusal:
    """Iceberg does not evolve the keys of a map."""
    return type_differs(path, old, new, " The keys of a map cannot evolve.", move=move)


def no_spark_type(path: Path, type_: IcebergType) -> Refusal:
    """A column for which Spark SQL has no type: most often it cannot even open the table."""
    return Refusal(
        columns=(".".join(path),),
        types=(str(type_),),
        reason=f"Column {path_text(path)} of the table has the Iceberg type {type_}, for which Spark SQL has "
        "no type, so that no row can be written.",
        remedy="Load this table with an engine that can.",
    )


def rename_both_exist(old: Path, new: str) -> Refusal:
    """A rename whose new name is taken."""
    taken = path_text((*old[:-1], new))
    return Refusal(
        columns=(".".join(old), new),
        reason=f"`column_renames` wants {path_text(old)} to become {quote(new)}, and the table has both.",
        remedy="Rows may have values in either of them. Take the rename out of the configuration to go on "
        f"with both; or bring the values of {taken} into {path_text(old)} with UPDATE where they are "
        f"missing, drop {taken} with ALTER TABLE, and run again.",
    )


def rename_twice(old: Path, new: str, other: Path, other_new: str) -> Refusal:
    """Two renames of one field, or to one name."""
    return Refusal(
        columns=(".".join(old), new),
        in_the_way=".".join(other),
        reason=f"`column_renames` wants {path_text(old)} to become {quote(new)}, and {path_text(other)} to "
        f"become {quote(other_new)}.",
        remedy="Leave one of the two in the configuration.",
    )


def rename_circle(renames: Sequence[tuple[Path, str]], aside: str, after: Path) -> Refusal:
    """Fields that are to change their names around, which no order of renames does.

    Args:
        renames: where each field is, and the name that it is to get, which is that of the next.
        aside: a free name, which the first of them can have meanwhile.
        after: where the struct is in which they are, once it is renamed itself.
    """
    wants = [f"{path_text(path)} to become {quote(new)}" for path, new in renames]
    (_, last), *others = renames
    between = [(renames[0][0], aside), *others]
    returned, former = path_text((*after, aside)), path_text((*after, last))
    settings = ", ".join(f"{config_path(path)}: {config_name(new)}" for path, new in between)
    return Refusal(
        columns=tuple(".".join(path) for path, _ in renames),
        reason=f"`column_renames` wants {', '.join(wants[:-1])} and {wants[-1]}, and names cannot change "
        "places in one run.",
        remedy=f"It takes two. For the first, put `column_renames: {{{settings}}}` in the place of these, "
        f"and let the model return {returned} instead of {former}. For the second, put `column_renames: "
        f"{{{config_path((*after, aside))}: {config_name(last)}}}` there, and let it return {former} again. "
        "If they have changed places before, take these renames out of the configuration.",
    )


def rename_old_returned(old: Path, new: str) -> Refusal:
    """A rename whose old name the model still returns."""
    return Refusal(
        columns=(".".join(old), new),
        reason=f"`column_renames` wants {path_text(old)} to become {quote(new)}, and the model still returns "
        "the old name.",
        remedy="Return it under the new name from the model.",
    )


def _replaced(path: Path, old_name: str, old: IcebergType, new: IcebergType) -> str:
    """Return what a model asks for that retires a column and returns its name in another type."""
    return (
        f"`column_renames` wants {path_text(path)} ({type_text(old)}) to become {quote(old_name)}, and the "
        f"model returns {path_text(path)} as {type_text(new)}, which would be a new column"
    )


def replaced_not_added(path: Path, old_name: str, old: IcebergType, new: IcebergType) -> Refusal:
    """A column is to be replaced, and none may be added."""
    return Refusal(
        columns=(".".join(path), old_name),
        types=(type_text(old), type_text(new)),
        reason=f"{_replaced(path, old_name, old, new)}. `on_schema_change` lets none be added.",
        remedy="Set `on_schema_change: append_new_columns_preserve` for this run.",
    )


def replaced_key(
    path: Path,
    old_name: str,
    old: IcebergType,
    new: IcebergType,
    key_setting: str,
    default: DefaultValue | None = None,
) -> Refusal:
    """The column by which rows are found is to be replaced: all rows that are there would have one value."""
    finds = "the batch would find none of them, and add its rows beside them."
    if default is not None:
        finds = "a batch with that value would replace them all, and another one add its rows beside them."
    return Refusal(
        columns=(".".join(path), old_name),
        types=(type_text(old), type_text(new)),
        reason=f"{_replaced(path, old_name, old, new)}. It is {'in ' if len(path) > 1 else ''}the "
        f"{key_setting}, and would be {_value(default)} in all rows that are there: {finds}",
        remedy="Return it under a new name, fill that for old rows, make that the "
        f"`{key_setting}`, and retire the old name; or make a full refresh.",
    )


def replaced_condition(
    path: Path, old_name: str, old: IcebergType, new: IcebergType, text: str, default: DefaultValue | None
) -> Refusal:
    """A column that rows have to meet a condition of is to be replaced: those that are there may not.

    Args:
        path: the column.
        old_name: what the old one would be called.
        old: the table's type.
        new: the model's.
        text: the condition.
        default: what the new one would be in rows that are there; None for NULL.
    """
    if default is not None:
        # Nothing of a text tells whether it holds for a value.
        remedy = f"Take that condition out, have it read {quote(old_name)} as well, or add the column "
        remedy += "without a default."
    else:
        remedy = 'Until it is filled for old rows ("Backfill a column" in the docs of dbt-sparkevolve), take '
        remedy += "that condition out, or let it hold for NULL too: "
        remedy += f"`… OR DBT_INTERNAL_DEST.{path_text(path)} IS NULL`."
    return _replaced_condition(path, old_name, old, new, text, default, remedy)


def replaced_condition_inside(
    path: Path, old_name: str, old: IcebergType, new: IcebergType, text: str, default: DefaultValue | None
) -> Refusal:
    """The same of a field inside a list or a map, for which no condition can ask as for a column."""
    remedy = f"Take that condition out, or have it read {quote(old_name)} there as well."
    return _replaced_condition(path, old_name, old, new, text, default, remedy)


def _replaced_condition(
    path: Path,
    old_name: str,
    old: IcebergType,
    new: IcebergType,
    text: str,
    default: DefaultValue | None,
    remedy: str,
) -> Refusal:
    return Refusal(
        columns=(".".join(path), old_name),
        types=(type_text(old), type_text(new)),
        reason=f"{_replaced(path, old_name, old, new)}. `incremental_predicates` name it "
        f"({text.strip()}), and it would be {_value(default)} in all rows that are there: those for which "
        "the condition does not hold then would not be found, and rows of the batch be added beside them.",
        remedy=remedy,
        otherwise="Or make a full refresh.",
    )


def replaced_version_key(
    path: Path, old_name: str, old: IcebergType, new: IcebergType, text: str, default: DefaultValue | None
) -> Refusal:
    """A column by which a snapshot finds versions is to be replaced: all of them would have one value."""
    again = "again" if default is None else "again by its own key"
    return Refusal(
        columns=(".".join(path), old_name),
        types=(type_text(old), type_text(new)),
        reason=f"{_replaced(path, old_name, old, new)}. The snapshot's unique_key has it ({text.strip()}), "
        f"and it would be {_value(default)} in all versions that are there: none of them would be "
        f"found {again}, so that they would stay open, with others beside them.",
        remedy=f"Cast it to {type_text(old)} in the snapshot's query; or return it under a new name, fill "
        "that for old versions, make that the `unique_key`, and retire the old name.",
    )


def _value(default: DefaultValue | None) -> str:
    return "NULL" if default is None else f"{default}, its default,"


def replaced_partition(path: Path, old_name: str, old: IcebergType, new: IcebergType) -> Refusal:
    """The column by whose partitions rows are replaced is to be replaced."""
    return Refusal(
        columns=(".".join(path), old_name),
        types=(type_text(old), type_text(new)),
        reason=f"{_replaced(path, old_name, old, new)}. The table is partitioned by the old one, and the "
        "strategy replaces partitions: all rows of the batch would be in the partition NULL.",
        remedy="Partition the table by another column first (`ALTER TABLE … REPLACE PARTITION FIELD`), or "
        "use another strategy for this run.",
    )


def removed_partition(path: Path, value: str) -> Refusal:
    """The column by whose partitions rows are replaced is no longer returned."""
    return Refusal(
        columns=(".".join(path),),
        reason=f"The table is partitioned by {path_text(path)}, which the model no longer returns, and the "
        f"strategy replaces partitions: the rows of each run would go to the partition {value}, in the place "
        "of those that are there.",
        remedy="Return it from the model again, or use another `incremental_strategy`.",
    )


def rename_path_taken(old: Path, new: str, obstacles: Iterable[Obstacle]) -> Refusal:
    """A rename after which one dotted path would lead to two fields, or to a field and a partition field."""
    first = first_obstacle(obstacles)
    return Refusal(
        columns=(".".join(old), new),
        in_the_way=".".join(first.path),
        reason=f"`column_renames` wants {path_text(old)} to become {quote(new)}, but {first.by.value} "
        f"{path_text(first.path)}, and Iceberg cannot hold both.",
        remedy="Give it another new name, in the configuration and in the model.",
    )


def first_obstacle(obstacles: Iterable[Obstacle]) -> Obstacle:
    """Return the one to name: a field before a partition field, which may have its name from it."""
    return min(obstacles, key=lambda o: (o.by is Holder.PARTITION, o.path))


def unmappable(path: Path, type_: str) -> Refusal:
    """A type of Spark that Iceberg lacks, and ``unmappable_types: fail``."""
    return Refusal(
        columns=(".".join(path),),
        types=(type_,),
        reason=f"The model returns {path_text(path)} of the type {type_}, which Iceberg cannot store, and "
        "`unmappable_types` is 'fail'.",
        remedy="Cast it in the model.",
    )


def window_within_a_day(name: str, start: str, end: str) -> Refusal:
    """A microbatch whose window begins or ends within a day, by a date."""
    return Refusal(
        columns=(name,),
        types=("date",),
        reason=f"The event_time {quote(name)} is a date, and this batch is of the time from {start} to {end} "
        "UTC, which begins or ends within a day: its rows cannot be told from those of the rest of the day.",
        remedy="Use a `batch_size` of a day or longer and whole days for `--event-time-start` and "
        "`--event-time-end`, or return a timestamp.",
    )


def event_time_is_no_time(name: str, type_: str) -> Refusal:
    """A microbatch by a column that is neither a date nor a timestamp."""
    return Refusal(
        columns=(name,),
        types=(type_,),
        reason=f"The event_time {quote(name)} is of type {type_}, by which the rows of a batch cannot be "
        "found.",
        remedy="Return it as a timestamp, or as a date.",
    )
