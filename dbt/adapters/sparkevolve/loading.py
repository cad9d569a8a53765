"""From a staged batch to what is done with it: the plan, its text, and the statements that load it."""

from collections.abc import Mapping, Sequence
from typing import Any

from pyiceberg.schema import Schema

from dbt.adapters.sparkevolve.catalog import StagedBatch
from dbt.adapters.sparkevolve.evolution import names, statements
from dbt.adapters.sparkevolve.evolution.plan import EvolutionPlan, plan_evolution
from dbt.adapters.sparkevolve.evolution.policy import Policy, TableFacts
from dbt.adapters.sparkevolve.relation import SparkEvolveRelation


def key_columns(unique_key: Any) -> tuple[str, ...]:
    """Return the names in a ``unique_key``, which may be a string, a list or None, quoted or not."""
    if not unique_key:
        return ()
    listed = [unique_key] if isinstance(unique_key, str) else list(unique_key)
    return tuple(names.unquote(str(name)) for name in listed)


def plan_data(target: SparkEvolveRelation, plan: EvolutionPlan) -> dict[str, Any]:
    """Return a plan as plain data, see ``SparkEvolveAdapter.plan``."""
    return {
        "relation": str(target),
        "changes": [str(change) for change in plan.changes],
        "projections": [
            {"column": column.name, "expression": column.render(statements.SOURCE_ALIAS)}
            for column in plan.columns
        ],
        "removed": [names.path_text(path) for path in plan.removed],
        "ignored": [names.path_text(path) for path in plan.ignored],
        "warnings": list(plan.warnings),
        "refusals": [str(refusal) for refusal in plan.refusals],
    }


def plan_table(plan: Mapping[str, Any]) -> str:
    """Return a plan, as ``SparkEvolveAdapter.plan`` or ``plan_new_table`` gives it, as a table."""
    if plan.get("creates"):
        found = [("column", names.quote(name)) for name in plan["columns"]]
        found += [("loses", names.quote(name)) for name in plan.get("loses", ())]
        found += [("warning", text) for text in plan["warnings"]]
        found += [("refused", text) for text in plan["refusals"]]
        return "\n".join(
            [f"{plan['relation']}: would be created from the model", *(f"  {k:<9}  {t}" for k, t in found)]
        )
    rows = [("change", text) for text in plan["changes"]] or [("change", "none")]
    rows += [("pad", text) for text in plan["removed"]]
    rows += [("leave out", text) for text in plan["ignored"]]
    rows += [("warning", text) for text in plan["warnings"]]
    rows += [("refused", text) for text in plan["refusals"]]
    rows += [("column", f"{names.quote(p['column'])} = {p['expression']}") for p in plan["projections"]]
    return "\n".join([str(plan["relation"]), *(f"  {kind:<9}  {text}" for kind, text in rows)])


def plan_batch(
    batch: StagedBatch,
    settings: Mapping[str, Any],
    column_docs: Mapping[str, str],
    schema: Schema,
    facts: TableFacts,
) -> EvolutionPlan:
    """Plan how a batch is loaded into a table.

    Args:
        batch: the staged batch.
        settings: the model's, see ``SparkEvolveAdapter.evolve``.
        column_docs: descriptions of columns; empty if they are not to be stored.
        schema: the table's current schema.
        facts: what else matters of the table.
    """
    policy = Policy(
        add_columns=bool(settings["add_columns"]),
        type_widening=bool(settings["type_widening"]),
        relax_not_null=bool(settings["relax_not_null"]),
        nested_evolution=bool(settings["nested_evolution"]),
        unique_key=key_columns(settings["unique_key"]),
        renames=settings["column_renames"],
        docs={names.fold(name): doc for name, doc in column_docs.items()} or None,
        columns_without_null=batch.columns_without_null,
        facts=facts,
    )
    return plan_evolution(schema, batch.schema, policy)


def load_statements(
    target: SparkEvolveRelation,
    staged: SparkEvolveRelation,
    batch: StagedBatch,
    plan: EvolutionPlan,
    predicates: Sequence[str],
) -> list[str]:
    """Return the statements that load a batch, in order; none for an empty batch."""
    if not batch.rows:
        return []
    insert = statements.insert_statement(str(target), str(staged), plan.columns)
    if not plan.unique_key:
        return [insert]
    null_safe = any(names.fold(key) not in batch.columns_without_null for key in plan.unique_key)
    delete = statements.delete_statement(
        str(target), str(staged), plan.unique_key, null_safe=null_safe, predicates=predicates
    )
    return [delete, insert]
