"""Which fields of a table a model's ``column_renames`` are about, and whether they can be renamed."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from pyiceberg.schema import Schema
from pyiceberg.types import IcebergType, ListType, MapType, NestedField, StructType

from dbt.adapters.sparkevolve.evolution import refusals
from dbt.adapters.sparkevolve.evolution.changes import RenameField
from dbt.adapters.sparkevolve.evolution.names import (
    Path,
    dotted_levels,
    fold,
    free_name,
    name_before,
    path_text,
    quote,
    unquote,
)
from dbt.adapters.sparkevolve.evolution.policy import Past
from dbt.adapters.sparkevolve.evolution.refusals import Refusal
from dbt.adapters.sparkevolve.evolution.types import can_take, children

Siblings = Mapping[str, NestedField]
# A step of a path, as far as it can be told: between dots, and whether it is one name for sure.
Step = tuple[str, bool]


@dataclass(frozen=True)
class _Rename:
    """A rename that a model asks for.

    Attributes:
        path: where the field is.
        siblings: the fields beside it, itself among them.
        old: the field.
        name: the name that it is to get.
        returned: what the model returns under the old name; None if it does not, or if the two names differ
            by case only.
        returns_new: whether it returns the new name.
        returns_here: whether it returns that in the struct which is called now as in the path.
        beside: the names that are returned beside it, folded, in that struct.
        after: where the struct is, once it is renamed itself.
    """

    path: Path
    siblings: Siblings
    old: NestedField
    name: str
    returned: NestedField | None = None
    returns_new: bool = False
    returns_here: bool = False
    beside: frozenset[str] = frozenset()
    after: Path = ()

    @property
    def taken(self) -> NestedField | None:
        """The other field that has the new name."""
        found = self.siblings.get(fold(self.name), self.old)
        return None if found is self.old else found


def resolve_renames(
    target: Schema,
    source: Schema,
    renames: Mapping[str, str],
    past: Past | None = None,
    *,
    widens: bool = True,
) -> tuple[dict[int, str], tuple[Refusal, ...]]:
    """Return the new name by field id, and the renames that cannot be made.

    A key is a column's name, or the dotted path of a nested field; a name that has dots itself is taken for a
    column first, and in backticks it is one name. A rename that was made in an earlier run has nothing to do.

    A model may go on returning the old name if what it returns cannot be stored there: then that is a new
    column, and the old one is retired under the new name.

    Args:
        target: the table's schema.
        source: the staged batch's schema.
        renames: old path to new last name.
        past: what is known of names of before; None for nothing.
        widens: whether types may be widened.
    """
    found: list[_Rename] = []
    problems: list[Refusal] = []
    places: dict[Path, tuple[Path, str]] = {}
    renamed: dict[int, tuple[Path, str]] = {}
    table, batch, fields = target.as_struct(), source.as_struct(), _Fields()
    arrivals: set[tuple[Path, str]] = set()
    for old_path, new_name in renames.items():
        name = unquote(str(new_name))
        steps = steps_of(str(old_path))
        located = _locate(table, steps, fields)
        arrivals.add((tuple(fold(text) for text, _ in steps), fold(name)))
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
        found.append(_Rename(path, siblings, old, name))
    new_of = {r.path: r.name for r in found}
    decided = _Decision(
        {
            r.old.field_id: replace(
                r,
                # What is returned under a name that another field gets is for that one.
                returned=_returned(batch, r, r.old.name, new_of, fields)
                if (*r.path[:-1], fold(r.old.name)) not in places
                else None,
                returns_new=_returned(batch, r, r.name, new_of, fields) is not None,
                returns_here=any(f.name == r.name for f in _siblings_at(batch, r.path, fields).values()),
                beside=frozenset(
                    name
                    for parent in (_after(r.path, new_of), r.path[:-1])
                    for name in _siblings_at(batch, (*parent, r.name), fields)
                ),
                after=_after(r.path, new_of),
            )
            for r in found
        },
        past or Past(),
        arrivals,
        widens,
    )
    outcomes = {r.old.field_id: decided.outcome(r.old.field_id) for r in found}
    # One that waits for another has the reason of that.
    problems += dict.fromkeys(outcome for outcome in outcomes.values() if isinstance(outcome, Refusal))
    return {r.old.field_id: r.name for r in found if outcomes[r.old.field_id] is True}, tuple(problems)


@dataclass(frozen=True)
class Begun:
    """A change of a name's case that has not ended: the field has the name between.

    Attributes:
        path: where the field is.
        old: what it was called before.
        is_taken: whether another field beside it has that name by now.
    """

    path: Path
    old: str
    is_taken: bool


def renames_begun(table: StructType) -> tuple[Begun, ...]:
    """Return the changes of case that have ended between two statements of Spark, inner fields first.

    Args:
        table: the table's columns.
    """
    return tuple(_begun(table, ()))


def _begun(parent: IcebergType, path: Path) -> Iterator[Begun]:
    beside = children(parent)
    taken = {fold(f.name) for f in beside}
    for f in beside:
        if isinstance(parent, MapType) and f.field_id == parent.key_id:
            continue  # Spark changes nothing there
        inside = (*path, f.name)
        yield from _begun(f.field_type, inside)
        old = name_before(f.name) if isinstance(parent, StructType) else None
        if old is not None:
            yield Begun(inside, old, fold(old) in taken)


def ends_of_renames(table: StructType) -> tuple[RenameField, ...]:
    """Return how such fields get back what they were called before, unless another field has that name.

    Args:
        table: the table's columns.
    """
    return tuple(RenameField(b.path, b.old) for b in renames_begun(table) if not b.is_taken)


def as_before(schema: Schema) -> Schema:
    """Return a schema as it is once that is done."""
    names = {change.path: change.new_name for change in ends_of_renames(schema.as_struct())}

    def of(type_: IcebergType, path: Path) -> IcebergType:
        if isinstance(type_, StructType):
            return StructType(*fields(type_, path))
        if isinstance(type_, ListType):
            element = of(type_.element_type, (*path, "element"))
            return ListType(type_.element_id, element, element_required=type_.element_required)
        if isinstance(type_, MapType):
            key, value = type_.key_type, of(type_.value_type, (*path, "value"))
            return MapType(type_.key_id, key, type_.value_id, value, value_required=type_.value_required)
        return type_

    def fields(struct: StructType, path: Path) -> Iterator[NestedField]:
        for f in struct.fields:
            inside = (*path, f.name)
            name = names.get(inside, f.name)
            yield f.model_copy(update={"name": name, "field_type": of(f.field_type, inside)})

    return Schema(
        *fields(schema.as_struct(), ()),
        schema_id=schema.schema_id,
        identifier_field_ids=schema.identifier_field_ids,
    )


def begun_warnings(table: StructType) -> list[str]:
    """Return what to say of fields of which another one has the name by now.

    Args:
        table: the table's columns.
    """
    return [
        f"the table has {path_text(b.path)}, as {quote(b.old)} was called while a run changed the case of "
        f"that name, and ended before it had, and somebody has added another {quote(b.old)} since. Bring the "
        "values of the one into the other with UPDATE where they are missing, and drop it with ALTER TABLE."
        for b in renames_begun(table)
        if b.is_taken
    ]


def _returned(
    batch: StructType, rename: _Rename, name: str, new_of: Mapping[Path, str], fields: "_Fields"
) -> NestedField | None:
    """Return what a model returns under a name beside the field, whatever the struct around it is called."""
    if fold(rename.old.name) == fold(rename.name):
        return None
    for parent in (_after(rename.path, new_of), rename.path[:-1]):
        siblings = _siblings_at(batch, (*parent, name), fields)
        if siblings:
            return siblings.get(fold(name))
    return None


def _after(path: Path, new_of: Mapping[Path, str]) -> Path:
    """Return where what a field is in will be, once that is renamed."""
    return tuple(new_of.get(path[: i + 1], name) for i, name in enumerate(path[:-1]))


@dataclass
class _Decision:
    """Which renames of one run are made: all at once, so one may make room for another."""

    renames: Mapping[int, _Rename]
    past: Past
    arrivals: set[tuple[Path, str]]
    widens: bool

    def outcome(self, field_id: int) -> bool | Refusal:
        """Return whether a rename is to be made, false if it was made before; or why it cannot be."""
        rename = self.renames[field_id]
        path, name, taken, returned = rename.path, rename.name, rename.taken, rename.returned
        replaces = returned is not None and not can_take(
            rename.old.field_type, returned.field_type, widens=self.widens
        )
        circle = self._circle(field_id)
        if circle:
            return self._refused_circle(circle)
        if self._was_made_inside(rename):
            return False
        # Whether the field that has the name leaves it.
        makes_way = taken is not None and taken.field_id in self.renames and self.outcome(taken.field_id)
        if isinstance(makes_way, Refusal):
            return makes_way
        if taken is None or makes_way:
            if returned is None or replaces:
                return True
            if taken is not None and self.past.may_have_been(taken.field_id, rename.old.name):
                return False
            return refusals.rename_old_returned(path, name)
        was_made = self.past.may_have_been(taken.field_id, rename.old.name)
        if was_made and (returned is not None or not rename.returns_new or self._was_moved_here(rename)):
            # Without either name there is nothing to be mistaken about: both are padded.
            return False
        return refusals.rename_both_exist(path, name)

    def _was_made_inside(self, rename: _Rename) -> bool:
        """Tell whether it was made in a struct that was renamed with it, and another has that one's name now.

        A path begins with what the struct was called before both.
        """
        if rename.returns_here and rename.taken is None:
            return False
        path = rename.path
        for above in self.renames.values():
            depth = len(above.path)
            if depth < len(path) and above.path == path[:depth] and above.taken is not None:
                inside = StructType(above.taken)
                beside = _siblings_at(inside, (above.taken.name, *path[depth:]), _Fields())
                made = beside.get(fold(rename.name))
                if made is None or made.name != rename.name:
                    continue
                if self.outcome(above.old.field_id) is False:
                    return self.past.may_have_been(made.field_id, rename.old.name)
        return False

    def _circle(self, field_id: int) -> list[int]:
        """Return the fields of which each is to get the name of the next, and the last that of the first.

        Empty if this one is in no such circle. None of these can begin.
        """
        found = [field_id]
        while True:
            taken = self.renames[found[-1]].taken
            if taken is None or taken.field_id not in self.renames:
                return []
            if taken.field_id in found:
                return found if taken.field_id == field_id else []
            found.append(taken.field_id)

    def _refused_circle(self, circle: Sequence[int]) -> Refusal:
        """Return the refusal of a circle, the same for each of its fields."""
        begin = circle.index(next(field_id for field_id in self.renames if field_id in circle))
        renames = [self.renames[field_id] for field_id in (*circle[begin:], *circle[:begin])]
        first = renames[0]
        aside = free_name(f"{first.name}_new", {*first.siblings, *first.beside})
        return refusals.rename_circle([(r.path, r.name) for r in renames], aside, first.after)

    def _was_moved_here(self, rename: _Rename) -> bool:
        """Tell whether the field has its name from another rename of the same configuration."""
        parent = tuple(fold(name) for name in rename.path[:-1])
        name = fold(rename.old.name)
        return any(
            new == name
            and self._short(old[:-1]) == self._short(parent)
            and self.past.may_have_been(rename.old.field_id, old[-1])
            for old, new in self.arrivals
        )

    @staticmethod
    def _short(path: Path) -> Path:
        # Whoever writes a path may leave out what a list and a map have around a struct.
        return tuple(name for name in path if name not in ("element", "value"))


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
        steps = steps_of(str(old))
        above = tuple(fold(text) for text, _ in steps[:-1] if text not in ("element", "value"))
        path = by_path.get((*above, fold(unquote(str(new)))))
        if path is not None and _locate(table, steps, fields) is None:
            found.append((str(old), path))
    return found


def new_names(table: Schema, renames: Mapping[str, str]) -> dict[int, str]:
    """Return the name that each field of a table is to get, by its id, whether or not it can get it."""
    fields, struct = _Fields(), table.as_struct()
    located = ((_locate(struct, steps_of(str(old)), fields), new) for old, new in renames.items())
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


def steps_of(path: str) -> tuple[Step, ...]:
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
