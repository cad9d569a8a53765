"""Which fields of a table a model's ``column_renames`` are about, and whether they can be renamed."""

from collections.abc import Iterable, Mapping, Sequence

from pyiceberg.schema import Schema
from pyiceberg.types import IcebergType, ListType, MapType, NestedField, StructType

from dbt.adapters.sparkevolve.evolution import refusals
from dbt.adapters.sparkevolve.evolution.names import Path, dotted_levels, fold, unquote
from dbt.adapters.sparkevolve.evolution.refusals import Refusal

Siblings = Mapping[str, NestedField]
# A step of a path, as far as it can be told: between dots, and whether it is one name for sure.
Step = tuple[str, bool]


def resolve_renames(
    target: Schema, source: Schema, renames: Mapping[str, str]
) -> tuple[dict[int, str], tuple[Refusal, ...]]:
    """Return the new name by field id, and the renames that cannot be made.

    A key is a column's name, or the dotted path of a nested field; a name that has dots itself is taken for a
    column first, and in backticks it is one name. A rename that was made in an earlier run has nothing to do.

    Args:
        target: the table's schema.
        source: the staged batch's schema.
        renames: old path to new last name.
    """
    found: dict[int, str] = {}
    problems: list[Refusal] = []
    places: dict[Path, tuple[Path, str]] = {}
    renamed: dict[int, tuple[Path, str]] = {}
    table, batch, fields = target.as_struct(), source.as_struct(), _Fields()
    for old_path, new_name in renames.items():
        name = unquote(str(new_name))
        located = _locate(table, _steps(str(old_path)), fields)
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


def not_found(target: Schema, renames: Mapping[str, str], added: Iterable[Path]) -> list[tuple[str, Path]]:
    """Return the renames of what the table does not have, and whose new name a run is to add.

    A rename that was made long ago is none of these: its new name is there.

    Args:
        target: the table's schema.
        renames: old path to new last name.
        added: the paths that the run adds.

    Returns:
        The old path, as it was written, and the one that is added.
    """
    fields, table = _Fields(), target.as_struct()
    # Whoever writes a path may leave out what a list and a map have around a struct.
    by_path = {tuple(fold(n) for n in p if n not in ("element", "value")): p for p in added}
    found = []
    for old, new in renames.items():
        steps = _steps(str(old))
        above = tuple(fold(text) for text, _ in steps[:-1] if text not in ("element", "value"))
        path = by_path.get((*above, fold(unquote(str(new)))))
        if path is not None and _locate(table, steps, fields) is None:
            found.append((str(old), path))
    return found


def new_names(table: Schema, renames: Mapping[str, str]) -> dict[int, str]:
    """Return the name that each field of a table is to get, by its id, whether or not it can get it."""
    fields, struct = _Fields(), table.as_struct()
    located = ((_locate(struct, _steps(str(old)), fields), new) for old, new in renames.items())
    return {found[2].field_id: unquote(str(new)) for found, new in located if found is not None}


Located = tuple[Path, Siblings, NestedField]


class _Fields:
    """The fields of structs by folded name; each struct is gone through once for all renames."""

    def __init__(self) -> None:
        self._known: dict[int, Siblings] = {}

    def of(self, struct: StructType) -> Siblings:
        """Return the fields of a struct that lives as long as this."""
        if id(struct) not in self._known:
            self._known[id(struct)] = {fold(f.name): f for f in struct.fields}
        return self._known[id(struct)]


def _steps(path: str) -> tuple[Step, ...]:
    """Return the steps of a path as a user wrote it; what is not in backticks may be a part of a name."""
    return dotted_levels(path) or tuple((part, False) for part in path.split("."))


def _among(siblings: Siblings, steps: Sequence[Step]) -> NestedField | None:
    """Return the field whose name some steps are together, if they can be one name."""
    if len(steps) > 1 and any(is_whole for _, is_whole in steps):
        return None
    return siblings.get(fold(".".join(text for text, _ in steps)))


def _locate(struct: StructType, wanted: tuple[Step, ...], fields: _Fields) -> Located | None:
    """Find a field by its dotted path, which leaves ``element`` and ``value`` out or has them."""

    def search(type_: IcebergType, path: Path, rest: tuple[Step, ...]) -> Located | None:
        if isinstance(type_, ListType):
            return inside(type_.element_type, (*path, "element"), rest)
        if isinstance(type_, MapType):
            return inside(type_.value_type, (*path, "value"), rest)
        if not isinstance(type_, StructType):
            return None
        siblings = fields.of(type_)
        whole = _among(siblings, rest)
        if whole is not None:
            return (*path, whole.name), siblings, whole
        splits = ((_among(siblings, rest[:n]), rest[n:]) for n in range(1, len(rest)))
        found = (search(f.field_type, (*path, f.name), after) for f, after in splits if f is not None)
        return next(filter(None, found), None)

    def inside(type_: IcebergType, path: Path, rest: tuple[Step, ...]) -> Located | None:
        # The struct in it may have a field of that name itself.
        forms = (rest[1:], rest) if len(rest) > 1 and rest[0][0] == path[-1] else (rest,)
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
