"""Which nodes of a project may read a column under a name that means another one from now on."""

import re
from collections.abc import Iterable, Mapping
from typing import Any

from dbt.adapters.sparkevolve.evolution.changes import AddColumn, AddField
from dbt.adapters.sparkevolve.evolution.names import fold, path_text, quote
from dbt.adapters.sparkevolve.evolution.plan import EvolutionPlan
from dbt.adapters.sparkevolve.evolution.types import type_text

# `select *`, `t.*`, and the macros that write out all columns of a relation.
_ALL_COLUMNS = re.compile(
    r"(?:\b(?:select|distinct|all)\s+|[,.]\s*)\*|\bstar\s*\(|\bget_\w*columns\w*\s*\(", re.I
)

_OUTSIDE = "what reads the table from outside of this project"
_SEE = 'see "Backfill a column" in the docs of dbt-sparkevolve.'


def replaced_warnings(
    plan: EvolutionPlan, unique_id: str, graph: Mapping[str, Any], *, replaces_all_rows: bool = False
) -> list[str]:
    """Return what to say of each column that a plan retires and replaces, and of who reads it by name.

    Args:
        plan: the plan.
        unique_id: dbt's id of the model.
        graph: dbt's ``graph``.
        replaces_all_rows: there are no old rows after the run, as in a full refresh.
    """
    readers = list(_readers(unique_id, graph))
    texts = []
    for path, change in plan.replaced.items():
        naming = sorted(str(node["unique_id"]) for node in readers if _names(node, path[-1]))
        others = {str(n["unique_id"]) for n in readers if _may_read(n)} - set(naming)
        added = next(c for c in plan.changes if isinstance(c, AddColumn | AddField) and c.path == path)
        default = added.default if isinstance(added, AddColumn) else None
        old_rows = (
            f"are NULL in it: {_SEE}"
            if default is None
            else f"have its default {default} in it, which takes `only_null: false` to be replaced: {_SEE}"
        )
        texts.append(
            f"{path_text(path)} is a new {'field' if len(path) > 1 else 'column'} of the type "
            f"{type_text(added.type)}, and the old one is {quote(change.new_name)} from now on. "
            + (f"These read the table and name `{path[-1]}`: {', '.join(naming)}. " if naming else "")
            + (f"These read all its columns: {', '.join(sorted(others))}. " if others else "")
            + ("" if naming or others else f"No node of this project that reads it names `{path[-1]}`. ")
            + (
                f"What reads these in turn, and {_OUTSIDE}, is"
                if naming or others
                else f"{_OUTSIDE.capitalize()} is"
            )
            + " not known."
            + ("" if replaces_all_rows else f" Old rows {old_rows}")
        )
    return texts


def column_readers(
    columns: Mapping[str, tuple[str, str]], unique_id: str, graph: Mapping[str, Any]
) -> list[dict[str, Any]]:
    """Return who reads columns of a model's table, also through nodes that pass all columns on.

    Args:
        columns: by the path of each its last name, and what is done to it.
        unique_id: dbt's id of the model.
        graph: dbt's ``graph``.

    Returns:
        ``column`` (its path), ``change``, ``node`` (an id), ``how`` (`names it` or `reads all columns`) and
        ``through`` (the ids of the nodes in between) of each.
    """
    return [
        {"column": path, "change": change, "node": node, "how": how, "through": list(through)}
        for path, (name, change) in columns.items()
        for node, how, through in _readers_of(name, unique_id, graph)
    ]


def _readers_of(
    name: str, unique_id: str, graph: Mapping[str, Any]
) -> Iterable[tuple[str, str, tuple[str, ...]]]:
    waiting: list[tuple[str, tuple[str, ...]]] = [(unique_id, ())]
    seen = {unique_id}
    while waiting:
        read, through = waiting.pop(0)
        for node in sorted(_readers(read, graph), key=lambda node: str(node["unique_id"])):
            reader = str(node["unique_id"])
            does_name = _names(node, name)
            if reader in seen or not (does_name or _may_read(node)):
                continue
            seen.add(reader)
            yield reader, "names it" if does_name else "reads all columns", through
            # A test has no readers, nor has an exposure.
            waiting.append((reader, (*through, reader)))


def _readers(unique_id: str, graph: Mapping[str, Any]) -> Iterable[Mapping[str, Any]]:
    for kind in ("nodes", "exposures"):
        for node in (graph.get(kind) or {}).values():
            if unique_id in ((node.get("depends_on") or {}).get("nodes") or ()):
                yield node


def _names(node: Mapping[str, Any], name: str) -> bool:
    """Tell whether a node has a word in its text, or is a test of a column of that name."""
    word = rf"(?<!\w){re.escape(fold(name))}(?!\w)"
    texts = (str(node.get("raw_code") or ""), str(node.get("column_name") or ""))
    return any(re.search(word, fold(text)) for text in texts)


def _may_read(node: Mapping[str, Any]) -> bool:
    """Tell whether a node reads all columns, or, as an exposure, does not say which."""
    return node.get("resource_type") == "exposure" or bool(
        _ALL_COLUMNS.search(str(node.get("raw_code") or ""))
    )
