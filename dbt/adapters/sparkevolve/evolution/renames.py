"""Which fields of a table a model's ``column_renames`` are about, and whether they can be renamed."""

from collections.abc import Mapping, Sequence

from pyiceberg.schema import Schema
from pyiceberg.types import IcebergType, ListType, MapType, NestedField, StructType

from dbt.adapters.sparkevolve.evolution import refusals
from dbt.adapters.sparkevolve.evolution.names import fold, unquote
from dbt.adapters.sparkevolve.evolution.refusals import Refusal

Path = tuple[str, ...]
Siblings = Mapping[str, NestedField]


def resolve_renames(
    target: Schema, source: Schema, renames: Mapping[str, str]
) -> tuple[dict[int, str], tuple[Refusal, ...]]:
    """Return the new name by field id, and the renames that cannot be made.

    A key is a column's name, or the dotted path of a nested field; a name that has dots itself is taken for a
    column first. A rename that was made in an earlier run has nothing left to do.

    Args:
        target: the table's schema.
        source: the staged batch's schema.
        renames: old path to new last name.
    """
    found: dict[int, str] = {}
    problems: list[Refusal] = []
    places: dict[tuple[str, ...], tuple[Path, str]] = {}
    renamed: dict[int, tuple[Path, str]] = {}
    table, batch, fields = target.as_struct(), source.as_struct(), _Fields()
    for old_path, new_name in renames.items():
        name = unquote(str(new_name))
        located = _locate(table, unquote(str(old_path)), fields)
        if located is None:
            continue
        path, siblings, old = located
        if old.name == name:
            continue
        place = (*path[:-1], fold(name))
        other = places.get(place) or renamed.get(old.field_id)
        if other is not None:
            problems.append(refusals.rename_twice(path, name, *other))
            continue
        places[place] = renamed[old.field_id] = (path, name)
        if siblings.get(fold(name), old) is not old:
            problems.append(refusals.rename_both_exist(path, name))
            continue
        if fold(old.name) != fold(name) and fold(old.name) in _siblings_at(batch, path, fields):
            problems.append(refusals.rename_old_returned(path, name))
            continue
        found[old.field_id] = name
    return found, tuple(problems)


Located = tuple[tuple[str, ...], Siblings, NestedField]


class _Fields:
    """The fields of structs by folded name; each struct is gone through once for all renames."""

    def __init__(self) -> None:
        self._known: dict[int, Siblings] = {}

    def of(self, struct: StructType) -> Siblings:
        """Return the fields of a struct that lives as long as this."""
        if id(struct) not in self._known:
            self._known[id(struct)] = {fold(f.name): f for f in struct.fields}
        return self._known[id(struct)]


def _locate(struct: StructType, wanted: str, fields: _Fields) -> Located | None:
    """Find a field by its dotted path, which leaves ``element`` and ``value`` out or has them."""

    def search(type_: IcebergType, path: tuple[str, ...], rest: str) -> Located | None:
        if isinstance(type_, ListType):
            return inside(type_.element_type, (*path, "element"), rest)
        if isinstance(type_, MapType):
            return inside(type_.value_type, (*path, "value"), rest)
        if not isinstance(type_, StructType):
            return None
        siblings = fields.of(type_)
        whole = siblings.get(fold(rest))
        if whole is not None:
            return (*path, whole.name), siblings, whole
        dots = (i for i, c in enumerate(rest) if c == ".")
        steps = ((siblings.get(fold(rest[:dot])), rest[dot + 1 :]) for dot in dots)
        found = (search(f.field_type, (*path, f.name), after) for f, after in steps if f is not None)
        return next(filter(None, found), None)

    def inside(type_: IcebergType, path: tuple[str, ...], rest: str) -> Located | None:
        # The struct in it may have a field of that name itself.
        forms = dict.fromkeys((rest.removeprefix(f"{path[-1]}."), rest))
        return next(filter(None, (search(type_, path, form) for form in forms)), None)

    return search(struct, (), wanted)


def _siblings_at(struct: StructType, path: Sequence[str], fields: _Fields) -> Siblings:
    """Return the fields among which the last name of ``path`` would stand; none if there is no such place."""
    here: IcebergType = struct
    for name in path[:-1]:
        if isinstance(here, ListType):
            here = here.element_type
        elif isinstance(here, MapType):
            here = here.value_type
        elif isinstance(here, StructType):
            step = fields.of(here).get(fold(name))
            if step is None:
                return {}
            here = step.field_type
    return fields.of(here) if isinstance(here, StructType) else {}
