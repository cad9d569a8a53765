"""Which fields of a table a model's ``column_renames`` are about, and whether they can be renamed."""

from collections.abc import Mapping, Sequence

from pyiceberg.schema import Schema
from pyiceberg.types import IcebergType, ListType, MapType, NestedField, StructType

from dbt.adapters.sparkevolve.evolution import refusals
from dbt.adapters.sparkevolve.evolution.names import fold, unquote
from dbt.adapters.sparkevolve.evolution.refusals import Refusal


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
    places: set[tuple[str, ...]] = set()
    for old_path, new_name in renames.items():
        name = unquote(str(new_name))
        located = _locate(target.as_struct(), unquote(str(old_path)))
        if located is None:
            continue
        path, siblings, old = located
        if old.name == name:
            continue
        place = (*path[:-1], fold(name))
        if place in places or old.field_id in found:
            problems.append(refusals.rename_twice(path, name))
            continue
        places.add(place)
        if any(fold(f.name) == fold(name) and f is not old for f in siblings):
            problems.append(refusals.rename_both_exist(path, name))
            continue
        returned = {fold(f.name) for f in _siblings_at(source.as_struct(), path)}
        if fold(old.name) != fold(name) and fold(old.name) in returned:
            problems.append(refusals.rename_old_returned(path, name))
            continue
        found[old.field_id] = name
    return found, tuple(problems)


Located = tuple[tuple[str, ...], Sequence[NestedField], NestedField]


def _locate(struct: StructType, wanted: str) -> Located | None:
    """Find a field by its dotted path, which leaves ``element`` and ``value`` out or has them."""

    def search(type_: IcebergType, path: tuple[str, ...], rest: str) -> Located | None:
        if isinstance(type_, ListType):
            return inside(type_.element_type, (*path, "element"), rest)
        if isinstance(type_, MapType):
            return inside(type_.value_type, (*path, "value"), rest)
        if not isinstance(type_, StructType):
            return None
        for f in type_.fields:
            if fold(f.name) == fold(rest):
                return (*path, f.name), type_.fields, f
        for f in type_.fields:
            if fold(rest).startswith(fold(f.name) + "."):
                found = search(f.field_type, (*path, f.name), rest[len(f.name) + 1 :])
                if found is not None:
                    return found
        return None

    def inside(type_: IcebergType, path: tuple[str, ...], rest: str) -> Located | None:
        # The struct in it may have a field of that name itself.
        forms = dict.fromkeys((rest.removeprefix(f"{path[-1]}."), rest))
        return next(filter(None, (search(type_, path, form) for form in forms)), None)

    return search(struct, (), wanted)


def _siblings_at(struct: StructType, path: Sequence[str]) -> Sequence[NestedField]:
    """Return the fields among which the last name of ``path`` would stand; none if there is no such place."""
    here: IcebergType = struct
    for name in path[:-1]:
        if isinstance(here, ListType):
            here = here.element_type
        elif isinstance(here, MapType):
            here = here.value_type
        elif isinstance(here, StructType):
            step = next((f for f in here.fields if fold(f.name) == fold(name)), None)
            if step is None:
                return ()
            here = step.field_type
    return here.fields if isinstance(here, StructType) else ()
