"""What a plan is to a person and to a program: its texts and its data."""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from dbt.adapters.sparkevolve.evolution import names
from dbt.adapters.sparkevolve.evolution.changes import (
    AddColumn,
    AddField,
    RelaxNotNull,
    RenameField,
    WidenType,
)
from dbt.adapters.sparkevolve.evolution.plan import EvolutionPlan
from dbt.adapters.sparkevolve.relation import SparkEvolveRelation
from dbt.adapters.sparkevolve.settings import IncrementalSettings, Strategy
from dbt.adapters.sparkevolve.sql import dml

_KEPT, _PADDED = "rows that are replaced keep its value, new ones get", "padded with"
PADDED_WITH_NULL = f"{_PADDED} NULL"


def plan_data(
    target: SparkEvolveRelation, plan: EvolutionPlan, settings: IncrementalSettings
) -> dict[str, Any]:
    """Return a plan as plain data, see ``Preview.of_load``."""
    refused, plan = plan.refusals, plan.beside or plan
    # What a refused column would get is not known.
    columns = () if refused else plan.columns
    return {
        "relation": str(target),
        "changes": [str(change) for change in plan.changes],
        "projections": [
            {"column": column.name, "expression": column.render(dml.SOURCE_ALIAS)} for column in columns
        ],
        "removed": list(removed_values(plan, settings)),
        "removed_get": removed_values(plan, settings),
        "ignored": [names.path_text(path) for path in plan.ignored],
        "warnings": list(plan.warnings),
        "refusals": [str(refusal) for refusal in refused],
        **columns_of(plan.changes),
        **not_returned(removed_values(plan, settings)),
        "columns_left_out": [names.path_text(path) for path in plan.ignored],
        "columns_replaced": [names.path_text(path) for path in plan.replaced],
    }


def changed_columns(plan: Mapping[str, Any]) -> dict[str, tuple[str, str]]:
    """Return the columns that their readers find changed, see ``column_readers``.

    Args:
        plan: a plan as data.
    """
    replaced = plan.get("columns_replaced", ())
    kinds = (
        ("renamed", [path for path in plan.get("columns_renamed", {}) if path not in replaced]),
        ("replaced by one of another type", replaced),
        ("widened", plan.get("columns_widened", ())),
        ("not returned by the model", [*plan.get("columns_padded", ()), *plan.get("columns_kept", ())]),
        ("lost", plan.get("columns_lost", ())),
    )
    return {path: (last_name(path), kind) for kind, paths in kinds for path in paths}


def last_name(path: str) -> str:
    """Return the last name of a path as it is rendered, without its quotes."""
    return str(re.findall("`((?:[^`]|``)*)`", path)[-1]).replace("``", "`")


def columns_of(changes: Iterable[object]) -> dict[str, Any]:
    """Return changes of columns by their kind, each column or field by its path."""
    found: dict[str, Any] = {"columns_added": [], "columns_widened": [], "columns_relaxed": []}
    renamed: dict[str, str] = {}
    for change in changes:
        if isinstance(change, AddColumn | AddField):
            found["columns_added"].append(names.path_text(change.path))
        elif isinstance(change, WidenType):
            found["columns_widened"].append(names.path_text(change.path))
        elif isinstance(change, RelaxNotNull):
            found["columns_relaxed"].append(names.path_text(change.path))
        elif isinstance(change, RenameField):
            renamed[names.path_text(change.path)] = names.quote(change.new_name)
    return found | {"columns_renamed": renamed}


def not_returned(removed: Mapping[str, str]) -> dict[str, list[str]]:
    """Return the columns that a model does not return, by what becomes of them; see ``removed_values``."""
    return {
        "columns_padded": [path for path, value in removed.items() if is_padded(value)],
        "columns_kept": [path for path, value in removed.items() if not is_padded(value)],
    }


def plan_table(plan: Mapping[str, Any]) -> str:
    """Return a plan, as ``Preview`` gives it, as a table."""
    if plan.get("creates"):
        found = [("column", names.quote(name)) for name in plan["columns"]]
        found += [("loses", names.quote(name)) for name in plan.get("loses", ())]
        found += [("default", text) for text in plan.get("defaults", ())]
        found += [("warning", text) for text in plan["warnings"]] + _built_before(plan)
        found += _read_by(plan) + _refused(plan)
        return _lines(f"{plan['relation']}: would be created from the model", found)
    rows = [("change", text) for text in plan["changes"]]
    if not rows and not plan["refusals"]:
        rows = [("change", "none")]
    values = plan["removed_get"]
    rows += [_row_of_removed(path, values[path]) for path in plan["removed"]]
    rows += [("leave out", text) for text in plan["ignored"]]
    rows += [("warning", text) for text in plan["warnings"]] + _built_before(plan)
    rows += _read_by(plan) + _refused(plan)
    kind = "new row" if any(not is_padded(value) for value in values.values()) else "column"
    shown = [p for p in plan["projections"] if not _goes_without_saying(p, values)]
    rows += [(kind, f"{names.quote(p['column'])} = {p['expression']}") for p in shown]
    return _lines(str(plan["relation"]), rows)


def _lines(head: str, rows: Iterable[tuple[str, str]]) -> str:
    """Return one line a row: a line break in a name would make another one, which looks like dbt's own."""
    return "\n".join([head, *(f"  {kind:<9}  " + text.replace("\n", "\\n") for kind, text in rows)])


def _read_by(plan: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return a line for each column that others read and find changed."""
    by_column: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    for reader in plan.get("readers", ()):
        by_column.setdefault((reader["column"], reader["change"]), []).append(reader)
    return [
        ("read by", f"{column} ({change}): {', '.join(map(_reader, readers))}")
        for (column, change), readers in by_column.items()
    ]


def _reader(reader: Mapping[str, Any]) -> str:
    through: Sequence[str] = reader["through"]
    return (
        str(reader["node"])
        + (" (all columns)" if reader["how"] != "names it" else "")
        + (f" through {', '.join(through)}" if through else "")
    )


def _refused(plan: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return one line where there are reasons: the error of the command has them."""
    if not plan["refusals"]:
        return []
    # Of a table that would be made there are no changes.
    known = plan.get("changes") or plan.get("removed")
    return [("refused", f"see the error below{'; so a run would do none of this' if known else ''}")]


def _goes_without_saying(projection: Mapping[str, str], removed: Mapping[str, str]) -> bool:
    """Tell whether a column of a plan is the model's own as it is, or another line says what it gets."""
    column = names.quote(projection["column"])
    return column in removed or projection["expression"] == f"{dml.SOURCE_ALIAS}.{column}"


def _built_before(plan: Mapping[str, Any]) -> list[tuple[str, str]]:
    names_ = ", ".join(names.quote(name) for name in plan.get("built_before", ()))
    return [("reads", f"{names_}, planned as now: a run would build that first")] if names_ else []


def removed_values(plan: EvolutionPlan, settings: IncrementalSettings) -> dict[str, str]:
    """Return what rows of a run have for each column or field that the model does not return, by its path."""
    keeps = (settings.strategy == Strategy.MERGE or settings.keeps_removed) and bool(plan.unique_key)
    kept = set(plan.removed) - set(plan.padded_inside) if keeps else set()
    replaced = {change.path: (*change.path[:-1], change.new_name) for change in plan.replaced.values()}
    return {
        names.path_text(replaced.get(path, path)): (
            f"{_KEPT if path in kept else _PADDED} {plan.padded_with.get(path, 'NULL')}"
        )
        for path in plan.removed
    }


def _row_of_removed(path: str, value: str) -> tuple[str, str]:
    if not is_padded(value):
        return "keep", f"{path}: {value}"
    return "pad", path if value == PADDED_WITH_NULL else f"{path} {value.removeprefix('padded ')}"


def is_padded(value: str) -> bool:
    """Tell whether ``removed_values`` says of a column that each row of the run is padded."""
    return value.startswith(_PADDED)
