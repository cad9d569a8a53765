"""The dotted paths by which Iceberg finds the fields of a table, and which of them are still free."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from enum import Enum

from pyiceberg.types import IcebergType, NestedField, StructType

from dbt.adapters.sparkevolve.evolution.names import Path, fold
from dbt.adapters.sparkevolve.evolution.types import children, fields_within


class Holder(Enum):
    """What a path leads to: a field of the table, a new one of the model, or a partition field."""

    TABLE = "the table has the field"
    MODEL = "the model returns the new field"
    PARTITION = "a partition spec of the table has, or once had, the field"


@dataclass(frozen=True)
class Obstacle:
    """What holds a path that a new or renamed field would need.

    Attributes:
        path: its full path, as it is spelled there.
        by: what it leads to.
        is_there_to_stay: whether it still does after this run.
    """

    path: Path
    by: Holder
    is_there_to_stay: bool = True


@dataclass(frozen=True)
class _Held:
    """A path that is taken.

    Attributes:
        text: the path, as it is spelled.
        is_short: whether it leaves out an ``element`` or ``value``.
        by: what it leads to.
        field_id: whose it is, the model's and the table's ids being apart; None: no field's.
        renames: how many renames there had been when it was taken.
        full: the full path of what it leads to.
    """

    text: str
    is_short: bool
    by: Holder
    field_id: int | None
    renames: int = 0
    full: Path = ()

    def is_beside(self, other: "_Held") -> bool:
        """Tell whether this path, the new one, can be where the other is."""
        same_side = (self.by is Holder.MODEL) == (other.by is Holder.MODEL)
        # Iceberg prefers full paths, and readers may use the table's short ones: those must not be hidden,
        # but for those that a rename of this run makes, which nobody has used.
        is_hidden = self.text == other.text and (self.is_short or other.is_short)
        is_harmless = is_hidden and not (other.is_short and other.by is Holder.TABLE and not other.renames)
        return is_harmless or (same_side and self.field_id == other.field_id)

    def replaces(self, other: "_Held", own: frozenset[int]) -> bool:
        """Tell whether the other path is one that a field in ``own`` had before it was renamed."""
        return other.by is Holder.TABLE and other.field_id in own and other.renames < self.renames


class FieldPaths:
    """All paths of a table's fields, and what they lead to.

    Iceberg finds each field by its full path and, inside a struct that is a list's element or a map's value,
    by a short one without that ``element`` or ``value``. Spark looks up in any case. So no path may lead to
    two fields, but for a new short one, which may be hidden: by it nobody has ever found anything.
    """

    def __init__(
        self,
        fields: Iterable[NestedField],
        partition_names: Mapping[str, int | None],
        leaving: Collection[int] = (),
    ) -> None:
        """Take the paths of a table's fields.

        Args:
            fields: its columns.
            partition_names: see ``TableFacts``.
            leaving: ids of the fields whose names this run changes, all at once.
        """
        self._held: dict[str, list[_Held]] = {}
        # What short paths have instead of a full path where they go on into it.
        self._shortened: dict[Path, Path] = {(): ()}
        self._renames = 0
        self._leaving = frozenset[int]()
        for f in fields:
            self._take(Holder.TABLE, (), f, f.name)
        for _, f in fields_within(StructType(*fields)):
            if f.field_id in leaving:
                self._leaving |= _ids(f)
        for name, field_id in partition_names.items():
            self._held.setdefault(name, []).append(_Held("", False, Holder.PARTITION, field_id, full=(name,)))

    def add(self, parent: Path, f: NestedField, *, after_renames: bool = False) -> set[Obstacle]:
        """Take the paths of a field of the model and of all in it; return what holds them.

        Args:
            parent: the path of what it is in.
            f: the field.
            after_renames: whether paths are free that fields had before they were renamed.
        """
        held_by = self._take(Holder.MODEL, parent, f, f.name)
        if after_renames:
            held_by = {o for o in held_by if o.by is not Holder.TABLE or o.is_there_to_stay}
        return held_by

    def rename(self, parent: Path, f: NestedField, name: str) -> set[Obstacle]:
        """Take the paths that a field of the table and all in it will have; return what holds them."""
        self._renames += 1
        return {o for o in self._take(Holder.TABLE, parent, f, name) if o.is_there_to_stay}

    def _take(
        self,
        by: Holder,
        parent: Path,
        f: NestedField,
        name: str,
        is_left_out: bool = False,
        own: frozenset[int] = frozenset(),
    ) -> set[Obstacle]:
        # What a field and all in it were called before does not stand in the way.
        own = own or (frozenset() if by is Holder.MODEL else _ids(f))
        full, short = (*parent, name), (*self._shortened[parent], name)
        self._shortened[full] = short[:-1] if is_left_out else short
        held_by = self._take_one(_Held(".".join(full), False, by, f.field_id, self._renames, full), own)
        if short != full:
            held_by |= self._take_one(_Held(".".join(short), True, by, f.field_id, self._renames, full), own)
        for child in children(f.field_type):
            held_by |= self._take(by, full, child, child.name, _is_left_out(f.field_type, child), own)
        return held_by

    def _take_one(self, path: _Held, own: frozenset[int]) -> set[Obstacle]:
        there = self._held.setdefault(fold(path.text), [])
        held_by = {
            Obstacle(other.full, other.by, self._stays(path, other))
            for other in there
            if not (path.is_beside(other) or path.replaces(other, own))
        }
        there.append(path)
        return held_by

    def _stays(self, path: _Held, held: _Held) -> bool:
        """Tell whether a path stays taken. One that is left is free for the same names, not the same text.

        As a text it would lead to the new field in the next run.
        """
        is_left = held.by is Holder.TABLE and not held.renames and held.field_id in self._leaving
        return not is_left or tuple(map(fold, path.full)) != tuple(map(fold, held.full))


def _is_left_out(parent: IcebergType, f: NestedField) -> bool:
    """Tell whether short paths leave the name of a field out: of an element or a value that is a struct."""
    return isinstance(f.field_type, StructType) and not isinstance(parent, StructType) and f.name != "key"


def _ids(f: NestedField) -> frozenset[int]:
    """Return the ids of a field and of all in it."""
    return frozenset({f.field_id, *(inner.field_id for _, inner in fields_within(f.field_type))})
