"""The changes that an evolution can make to a schema, and to properties beside it, one frozen class each.

There is no class that drops, moves or re-identifies a field, so no plan can ask for it. A ``path`` is the
names from the top-level column down; the element of a list is called ``element``, the value of a map
``value``, as in Iceberg's own paths. Names in a path are those of the table before the evolution.
"""

from dataclasses import dataclass, field

from pyiceberg.types import IcebergType

from dbt.adapters.sparkevolve.evolution.defaults import DefaultValue
from dbt.adapters.sparkevolve.evolution.names import Path, constant_literal, path_text
from dbt.adapters.sparkevolve.evolution.types import type_text


@dataclass(frozen=True)
class AddColumn:
    """Append an optional top-level column.

    Attributes:
        path: its name alone, as the model spells it; a dot in it does not make it nested.
        type: its Iceberg type; the catalog gives it and the fields in it new ids.
        doc: its description, or None.
        default: what rows that are there already have in it, and rows to come that leave it out; None for
            NULL.
    """

    path: tuple[str]
    type: IcebergType
    doc: str | None = None
    default: DefaultValue | None = None
    verb = "added"

    def __str__(self) -> str:
        default = "" if self.default is None else f" default {self.default}"
        return f"add column {path_text(self.path)} {type_text(self.type)}{default}"


@dataclass(frozen=True)
class AddField:
    """Append an optional field to a struct.

    Attributes:
        path: the path of the struct and the new field's name.
        type: its Iceberg type.
    """

    path: Path
    type: IcebergType
    verb = "added"

    def __str__(self) -> str:
        return f"add field {path_text(self.path)} {type_text(self.type)}"


@dataclass(frozen=True)
class WidenType:
    """Give a field a wider type, which all its old values fit in."""

    path: Path
    old: IcebergType
    new: IcebergType
    verb = "widened"

    def __str__(self) -> str:
        return f"widen {path_text(self.path)} from {type_text(self.old)} to {type_text(self.new)}"


@dataclass(frozen=True)
class RelaxNotNull:
    """Make a required field optional."""

    path: Path
    verb = "relaxed"

    def __str__(self) -> str:
        return f"let {path_text(self.path)} be NULL"


@dataclass(frozen=True)
class RenameField:
    """Give a field another name; its id and its values stay.

    Attributes:
        path: where it is now.
        new_name: its new last name.
    """

    path: Path
    new_name: str
    verb = "renamed"

    def __str__(self) -> str:
        return f"rename {path_text(self.path)} to {path_text((self.new_name,))}"


@dataclass(frozen=True)
class SetDoc:
    """Give a column another description."""

    path: tuple[str]
    doc: str
    verb = "described"

    def __str__(self) -> str:
        return f"describe {path_text(self.path)} as {constant_literal(self.doc)}"


@dataclass(frozen=True)
class SetDefault:
    """Give a column another default for rows to come; rows that are there stay what they are.

    Attributes:
        path: the column.
        default: its default from now on.
        old: the one before, or None.
        name: what the column is called after the commit, if that renames it, to be said of it.
    """

    path: tuple[str]
    default: DefaultValue
    old: DefaultValue | None = None
    name: str = field(default="", compare=False)
    verb = "default_set"

    def __str__(self) -> str:
        column = path_text((self.name,) if self.name else self.path)
        if self.old is None:
            return f"set default of {column} to {self.default}"
        return f"change default of {column} from {self.old} to {self.default}"


@dataclass(frozen=True)
class RemoveDefault:
    """Let a column have no default for rows to come; rows that are there stay what they are.

    Attributes:
        path: the column.
        old: the default that it had.
        is_warned_of: whether a warning says so, since the model has one that is skipped.
        name: what the column is called after the commit, if that renames it, to be said of it.
    """

    path: tuple[str]
    old: DefaultValue
    is_warned_of: bool = False
    name: str = field(default="", compare=False)
    verb = "default_removed"

    def __str__(self) -> str:
        return f"remove default {self.old} of {path_text((self.name,) if self.name else self.path)}"


@dataclass(frozen=True)
class SetProperty:
    """Give a property of the table a value.

    Attributes:
        name: its name.
        value: its value.
        purpose: what for, if that says more than these two.
    """

    name: str
    value: str
    purpose: str = ""

    def __str__(self) -> str:
        if self.purpose:
            return self.purpose
        return f"set property {constant_literal(self.name)} to {constant_literal(self.value)}"


SchemaChange = (
    AddColumn | AddField | WidenType | RelaxNotNull | RenameField | SetDoc | SetDefault | RemoveDefault
)
Change = SchemaChange | SetProperty
