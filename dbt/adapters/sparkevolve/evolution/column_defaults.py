"""What a model's defaults do to the columns of its table: to their metadata, and to those that are padded."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from pyiceberg.types import IcebergType, NestedField, PrimitiveType

from dbt.adapters.sparkevolve.evolution.changes import RemoveDefault, SetDefault
from dbt.adapters.sparkevolve.evolution.defaults import (
    DefaultValue,
    UnsupportedDefault,
    read_default,
    same_default,
    shown_default,
)
from dbt.adapters.sparkevolve.evolution.names import Path, dotted_levels, fold, path_text, quote, unquote
from dbt.adapters.sparkevolve.evolution.policy import FIRST_FORMAT_WITH_DEFAULTS, Policy
from dbt.adapters.sparkevolve.evolution.record import own_defaults


@dataclass(frozen=True)
class _Wanted:
    """What the model says of a column.

    Attributes:
        value: the default that it is to have; None for none.
        is_skipped: whether the model has another one, which is not supported.
    """

    value: DefaultValue | None = None
    is_skipped: bool = False


@dataclass
class ColumnDefaults:
    """Reads the defaults of a model beside those of its table, column by column.

    Attributes:
        policy: what the model's configuration and the table's state allow.
        warnings: what of a default this run leaves as it was.
        reminders: what of the configuration has no effect, in each run again.
        notes: those of the reminders that are to be said once.
    """

    policy: Policy
    warnings: list[str] = field(default_factory=list)
    reminders: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    _read: dict[str, _Wanted] = field(default_factory=dict)
    _skipped: dict[str, int] = field(default_factory=dict)
    _not_stored: list[str] = field(default_factory=list)
    _frozen: list[str] = field(default_factory=list)

    @cached_property
    def _given(self) -> Mapping[str, object]:
        return {fold(unquote(name)): default for name, default in self.policy.defaults.items()}

    @cached_property
    def _own(self) -> frozenset[int]:
        return own_defaults(self.policy.facts.properties)

    def of_new(self, name: str, type_: IcebergType) -> DefaultValue | None:
        """Return the default with which a column is added; None for none, and where it cannot be stored."""
        value = self._wanted(name, type_).value
        if value is not None and not self.policy.facts.stores_defaults:
            self._not_stored.append(name)
            return None
        if value is not None and not self.policy.facts.fills_older_rows:
            self.warnings.append(
                f"Rows that are older than {quote(name)} have NULL in it, and not its default: the table has "
                "ORC files, which Iceberg's Java library could not read any more."
            )
        return value

    def of_older_rows(self, name: str, type_: IcebergType) -> DefaultValue | None:
        """Return the default that a new column has in rows that are older than it; None for NULL."""
        value = self._wanted(name, type_).value
        return value if self._fills_older_rows else None

    def may_fill(self, name: str) -> bool:
        """Tell whether a new column may have a default in rows that are older, whatever its type is."""
        return fold(name) in self._given and self._fills_older_rows

    @property
    def _fills_older_rows(self) -> bool:
        return self.policy.facts.stores_defaults and self.policy.facts.fills_older_rows

    def of_old(self, name: str, old: NestedField, type_: IcebergType) -> Iterable[SetDefault | RemoveDefault]:
        """Yield the change of the default of a column that is there, if there is one to be made.

        Args:
            name: its name after the evolution.
            old: the column before it.
            type_: its type after the evolution.
        """
        if not isinstance(type_, PrimitiveType):
            self._wanted(name, type_)
            return
        has = None if old.write_default is None else DefaultValue(type_, old.write_default)
        wanted = self._wanted(name, type_)
        if same_default(None if wanted.value is None else wanted.value.value, old.write_default, type_):
            return
        is_ordered = fold(name) in self._given and not wanted.is_skipped
        if wanted.value is None and not is_ordered and old.field_id not in self._own:
            if wanted.is_skipped:
                self.warnings.append(
                    f"{quote(name)} keeps the default {has}, which no run of this model has set."
                )
            return
        renamed = name if fold(name) != fold(old.name) else ""
        if wanted.value is None and old.required:
            self.warnings.append(
                f"{quote(name)} keeps the default {has}: the column is NOT NULL, and a writer that leaves it "
                "out would have no value for it."
            )
        elif not self.policy.facts.stores_defaults:
            self._not_stored.append(name)
        elif self.policy.keep_defaults:
            self._frozen.append(name)
        elif wanted.value is not None:
            yield SetDefault((old.name,), wanted.value, has, renamed)
        elif has is not None:
            if wanted.is_skipped:
                place = self._skipped[fold(name)]
                self.reminders[place] += f" The default that it had, {has}, is removed."
            yield RemoveDefault((old.name,), has, is_warned_of=wanted.is_skipped, name=renamed)

    def of_padded(self, path: Path, name: str, old: NestedField) -> DefaultValue | None:
        """Return what is written into a column or field that the model does not return; None for NULL.

        Args:
            path: where it is now.
            name: its name after the evolution.
            old: the column or field.
        """
        if not self.policy.pad_with_default or not isinstance(old.field_type, PrimitiveType):
            return None
        # A field in a column has no default of the model's, but it may have one in the table.
        wanted = self._wanted(name, old.field_type) if len(path) == 1 else _Wanted()
        if wanted.value is not None:
            return wanted.value
        is_removed = len(path) == 1 and (fold(name) in self._given or old.field_id in self._own)
        may_remove = self.policy.facts.stores_defaults and not self.policy.keep_defaults and not old.required
        if old.write_default is None or (is_removed and may_remove and self._is_removable(name, old)):
            return None
        return DefaultValue(old.field_type, old.write_default)

    def _is_removable(self, name: str, old: NestedField) -> bool:
        return old.field_id in self._own or not self._wanted(name, old.field_type).is_skipped

    def finish(self, names: Iterable[str], left_out: Iterable[Path]) -> None:
        """Add what can be said only once all columns are known.

        Args:
            names: those of the table after the evolution.
            left_out: what the model returns and the table does not get.
        """
        known = {fold(name) for name in names}
        known |= {fold(path[0]) for path in left_out if len(path) == 1}
        for written in self.policy.defaults:
            if fold(unquote(written)) in known:
                continue
            levels = dotted_levels(written) or ()
            if len(levels) > 1 and fold(levels[0][0]) in known:
                path = path_text(level for level, _ in levels)
                self.reminders.append(
                    f"The default of {path} is skipped: it is a field in a column, and only whole columns "
                    "have one."
                )
            else:
                self.reminders.append(
                    f"The default of {quote(unquote(written))} is skipped: neither the table nor the model "
                    "has such a column."
                )
        if self._frozen:
            self.reminders.append(
                f"The table's default of {_listed(self._frozen)} is not what the model says, and stays, "
                "since on_schema_change is 'fail'."
            )
        if self._not_stored:
            self.reminders.append(self._why_not_stored())
            if self.policy.facts.format_version < FIRST_FORMAT_WITH_DEFAULTS:
                # It is so until somebody upgrades the table, which few do for a default.
                self.notes.append(self.reminders[-1])

    def _why_not_stored(self) -> str:
        names = _listed(self._not_stored)
        version = self.policy.facts.format_version
        padded = (
            " Where this model no longer returns such a column, its rows get the default, as `pad_with` says."
            if self.policy.pad_with_default
            else ""
        )
        if version < FIRST_FORMAT_WITH_DEFAULTS:
            return (
                f"The default of {names} is not stored: the table has Iceberg's format version {version}, "
                "and defaults come with version 3. Rows that are older than a column, and rows of writers "
                f"that leave it out, have NULL in it.{padded} To have defaults stored, upgrade the table "
                "with ALTER TABLE ... SET TBLPROPERTIES ('format-version' = '3'), which cannot be undone; "
                "all its readers have to know that version."
            )
        return (
            f"The default of {names} is not stored: over a Thrift server, with a catalog of this type, the "
            f"table is changed by statements of Spark, which has none for it.{padded} A run with "
            "`method: session`, or one on a REST catalog, stores it."
        )

    def _wanted(self, name: str, type_: IcebergType) -> _Wanted:
        folded = fold(name)
        if folded not in self._read:
            given = self._given.get(folded)
            try:
                self._read[folded] = _Wanted(read_default(given, type_))
            except UnsupportedDefault as exc:
                self._read[folded] = _Wanted(is_skipped=True)
                self._skipped[folded] = len(self.reminders)
                self.reminders.append(
                    f"The default {shown_default(given)} of {quote(name)} is skipped: {exc}."
                )
        return self._read[folded]


def _listed(names: Iterable[str]) -> str:
    return ", ".join(quote(name) for name in names)
