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
    """

    format_version: int = 2
    is_atomic: bool = True
    former: Mapping[Path, FormerColumn] = field(default_factory=dict)
    partition_names: Mapping[str, int | None] = field(default_factory=dict)
    partition_sources: frozenset[int] = frozenset()
    partition_by: tuple[Part, ...] = ()
    properties: Mapping[str, str] = field(default_factory=dict)

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
        renames: new last name by the dotted path of a column or field, as the user wrote them.
        docs: description of a column by its folded name; None stands for ``persist_docs`` being off.
        columns_without_null: folded names of staged columns that hold no NULL in this batch.
        frozen: the names of the settings that are off only since ``on_schema_change`` is ``fail``.
        keep_table_type: folded names of columns that are cast to the type that the table has, whatever type
            the source has for them.
        defaults: the default of a column by its name, in any case, as the user wrote both.
        pad_with_default: write a column's default, and not NULL, where the model does not return it.
        keep_defaults: leave the defaults that the table has as they are.
        facts: what matters of the table beside its schema.
    """

    add_columns: bool = True
    type_widening: bool = True
    relax_not_null: bool = True
    nested_evolution: bool = True
    unique_key: tuple[str, ...] = ()
    key_setting: str = "unique_key"
    renames: Mapping[str, str] = field(default_factory=dict)
    docs: Mapping[str, str] | None = None
    columns_without_null: frozenset[str] = frozenset()
    frozen: frozenset[str] = frozenset()
    keep_table_type: frozenset[str] = frozenset()
    defaults: Mapping[str, object] = field(default_factory=dict)
    pad_with_default: bool = False
    keep_defaults: bool = False
    facts: TableFacts = field(default_factory=TableFacts)
