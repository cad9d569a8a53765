"""What a model's configuration and its table's state allow an evolution to do."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from pyiceberg.schema import Schema

from dbt.adapters.sparkevolve.evolution.names import Path, fold
from dbt.adapters.sparkevolve.evolution.partitions import Part

FIRST_FORMAT_WITH_DEFAULTS = 3


def optional_columns(schema: Schema, names: Iterable[str]) -> list[str]:
    """Return which columns of these names are optional in a table, as it spells them."""
    wanted = set(map(fold, names))
    return [f.name for f in schema.fields if fold(f.name) in wanted and not f.required]


@dataclass(frozen=True)
class FormerColumn:
    """A column, or a field in one, that the table had once under this name, and no longer has.

    Attributes:
        name: its name when it was last there.
        field_id: its field id, which a new column of this name does not get.
        type: its type, as text.
        last_schema_id: the last schema that had it.
        dropped_by_schema_id: the first schema without it.
        renamed_to: its path now, in backticks; empty if it was dropped.
    """

    name: str
    field_id: int
    type: str
    last_schema_id: int
    dropped_by_schema_id: int
    renamed_to: str = ""


@dataclass(frozen=True)
class Past:
    """What a table's schemas tell of the names that its fields have had.

    Attributes:
        names: folded last names that a field has had, by its id.
        is_complete: whether the table still knows all schemas that it has had.
    """

    names: Mapping[int, frozenset[str]] = field(default_factory=dict)
    is_complete: bool = True

    def may_have_been(self, field_id: int, name: str) -> bool:
        """Tell whether a field may have had a name before."""
        return not self.is_complete or fold(name) in self.names.get(field_id, ())


@dataclass(frozen=True)
class TakenName:
    """A name that is another field's than it was, and what the table has of both.

    Attributes:
        path: where it is, today.
        field_id: the field that has it.
        was_called: what that was called before, in backticks; empty if it is new.
        old_field_id: the field that had it before.
        old_type: its type, as text.
        old_is_called: what that is called now, in backticks; empty if it was dropped.
        since_schema_id: the first schema in which it is so.
        since: since when, in ISO 8601; empty if nobody knows.
    """

    path: Path
    field_id: int
    was_called: str
    old_field_id: int
    old_type: str
    old_is_called: str
    since_schema_id: int
    since: str = ""


@dataclass(frozen=True)
class Mention:
    """A place in which an SQL text names a column of the table, or a field in one.

    Attributes:
        path: its folded names, as far as the text has them.
        asked: `null` or `not null` where the text asks only whether it is; else empty.
        or_null: columns and fields of which any that is NULL makes true what this stands in, and all that is
            said there: `… OR x IS NULL`.
        is_of_table: whether it can be nothing else, as in a text with a query, where a bare name may be of
            another table, or one that may be a word of SQL.
    """

    path: Path
    asked: str = ""
    or_null: tuple[Path, ...] = ()
    is_of_table: bool = True


@dataclass(frozen=True)
class Condition:
    """An SQL text that rows of the table have to meet to be found, so that a column in it may not be lost.

    Attributes:
        text: it.
        mentions: the columns and fields that it names.
        finds_versions: whether it is the key of a snapshot, and not a condition of a model.
    """

    text: str
    mentions: tuple[Mention, ...]
    finds_versions: bool = False

    def needs(self, path: Path, retired: str, *, is_null: bool = True) -> bool:
        """Tell whether rows may not be found any more whose value in a column or field is replaced.

        Not so if the text holds where that is NULL, or names what the old one is called from now on, too:
        then it was written for both.

        Args:
            path: the folded names of what is replaced, without those of elements and values.
            retired: the folded name that the old one gets.
            is_null: whether it reads as NULL in those rows. A column with a default does not, nor what is in
                a list or a map, of which an expression has the values of all elements.
        """
        of_old = (*path[:-1], retired)
        about = [
            m
            for m in self.mentions
            if m.path[: len(path)] == path or (m.path == path[: len(m.path)] and not m.asked)
        ]
        # A name under `spark.sql.ansi.doubleQuotedIdentifiers`, else a text: rows may not be found.
        is_quoted = f'"{path[0]}"' in fold(self.text)
        if self.finds_versions:
            return bool(about) or is_quoted
        if any(m.path[: len(of_old)] == of_old for m in self.mentions):
            return False
        if not about:
            return is_quoted
        return not all(is_null and any(null[: len(path)] == path for null in m.or_null) for m in about)


@dataclass(frozen=True)
class TableFacts:
    """What matters of a table beside its schema.

    Attributes:
        format_version: of the Iceberg table format.
        is_atomic: whether a commit changes all that it changes of the table at once. If not, its columns are
            changed by statements of Spark, each a commit of its own.
        former: columns and fields that somebody dropped or renamed, by folded path.
        partition_names: by the folded name of each field that any partition spec of the table has had, the
            id of the only column or field whose dotted path that may be: of the one that it repeats. None
            if it repeats none.
        partition_sources: ids of the fields that the table is partitioned by now.
        partition_by: the same, with their transforms.
        properties: the table's.
        past: the names that its fields have had before.
        taken_names: names that other writers have given to other fields since a run has looked.
        looked_at: the property that says that they were told of.
        fills_older_rows: whether older rows may read a default. Iceberg's Java library cannot read an ORC
            file any more that lacks a column with one.
    """

    format_version: int = 2
    is_atomic: bool = True
    former: Mapping[Path, FormerColumn] = field(default_factory=dict)
    partition_names: Mapping[str, int | None] = field(default_factory=dict)
    partition_sources: frozenset[int] = frozenset()
    partition_by: tuple[Part, ...] = ()
    properties: Mapping[str, str] = field(default_factory=dict)
    past: Past = field(default_factory=Past)
    taken_names: tuple[TakenName, ...] = ()
    looked_at: tuple[str, str] = ("", "")
    fills_older_rows: bool = True

    @property
    def stores_defaults(self) -> bool:
        """Whether a default of a column can be committed to the table."""
        return self.format_version >= FIRST_FORMAT_WITH_DEFAULTS and self.is_atomic


@dataclass(frozen=True)
class Policy:
    """What an evolution may do.

    Attributes:
        add_columns: add what only the source has, columns and fields; if false leave it out.
        type_widening: widen a column's type where the spec allows it; if false refuse.
        relax_not_null: make a required field optional where NULL has to be written; if false refuse.
        nested_evolution: let structs, lists and maps differ from the table's; if false refuse.
        unique_key: the columns by which rows are replaced, in any case, without quotes; empty for none.
        key_setting: the setting that names them, for messages.
        conditions: what else a row of the table has to meet to be found.
        renames: new last name by the dotted path of a column or field, as the user wrote them.
        docs: description of a column by its folded name; None stands for ``persist_docs`` being off.
        columns_without_null: folded names of staged columns that hold no NULL in this batch.
        filled: folded paths inside staged columns that are known to hold no NULL in this batch.
        frozen: the names of the settings that are off only since ``on_schema_change`` is ``fail``.
        keep_table_type: folded names of columns that are cast to the type that the table has, whatever type
            the source has for them.
        defaults: the default of a column by its name, in any case, as the user wrote both.
        pad_with_default: write a column's default, and not NULL, where the model does not return it.
        keep_defaults: leave the defaults that the table has as they are.
        replaces_all_rows: no row of the table has to be found, as in a full refresh.
        overwrites_partitions: rows of the table are replaced by what it is partitioned by, not all of them.
        may_set_aside: the model could have rows set aside whose values do not fit, and does not.
        model: the name of the model, for a command that is suggested; empty if nobody knows.
        facts: what matters of the table beside its schema.
    """

    add_columns: bool = True
    type_widening: bool = True
    relax_not_null: bool = True
    nested_evolution: bool = True
    unique_key: tuple[str, ...] = ()
    key_setting: str = "unique_key"
    conditions: tuple[Condition, ...] = ()
    renames: Mapping[str, str] = field(default_factory=dict)
    docs: Mapping[str, str] | None = None
    columns_without_null: frozenset[str] = frozenset()
    filled: frozenset[Path] = frozenset()
    frozen: frozenset[str] = frozenset()
    keep_table_type: frozenset[str] = frozenset()
    defaults: Mapping[str, object] = field(default_factory=dict)
    pad_with_default: bool = False
    keep_defaults: bool = False
    replaces_all_rows: bool = False
    overwrites_partitions: bool = False
    may_set_aside: bool = False
    model: str = ""
    facts: TableFacts = field(default_factory=TableFacts)
