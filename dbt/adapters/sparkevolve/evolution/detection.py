"""New and removed columns as names alone tell them, before the batch is staged, beside what its plan says."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from pyiceberg.schema import Schema

from dbt.adapters.sparkevolve.evolution.changes import RenameField
from dbt.adapters.sparkevolve.evolution.names import fold
from dbt.adapters.sparkevolve.evolution.plan import EvolutionPlan


@dataclass(frozen=True)
class Detected:
    """The columns that only one side has; names are compared by their folded form.

    Attributes:
        new: those that only the source has, in its order and spelling.
        removed: those that only the target has, in its order and spelling.
    """

    new: Sequence[str]
    removed: Sequence[str]

    def agrees_with(self, other: "Detected") -> bool:
        """Tell whether both name the same columns, in whatever order and spelling."""
        return _folded(self.new) == _folded(other.new) and _folded(self.removed) == _folded(other.removed)


def planned(plan: EvolutionPlan, target: Schema) -> Detected:
    """Return which columns are new and removed by a plan without refusals.

    By name alone, a renamed column is removed, and its new name is new if the source returns it. What is
    left out of the table under `on_schema_change: ignore` is new, too.

    Args:
        plan: the plan.
        target: the schema of the table that it was made for.
    """
    renamed = {fold(c.path[0]): c for c in plan.changes if isinstance(c, RenameField) and len(c.path) == 1}
    returned = _folded(column.source for column in plan.columns if column.source is not None)
    new = [*plan.added, *(path[0] for path in plan.ignored if len(path) == 1)]
    new += [c.new_name for c in renamed.values() if fold(c.new_name) in returned]
    removed = [*(path[0] for path in plan.removed if len(path) == 1)]
    removed += [c.path[0] for c in renamed.values() if fold(c.path[0]) not in _folded(removed)]
    known = _folded(f.name for f in target.fields)
    return Detected(
        tuple(name for name in new if fold(name) not in known),
        tuple(name for name in removed if fold(name) not in returned),
    )


def has_same_columns(schema: Schema, names: Iterable[str]) -> bool:
    """Tell whether a table still has the columns of these names, and no others."""
    return _folded(f.name for f in schema.fields) == _folded(names)


def _folded(names: Iterable[str]) -> frozenset[str]:
    return frozenset(map(fold, names))
