"""What a run would do to a table, for `sparkevolve_plan_only`: nothing here changes anything."""

from collections.abc import Mapping, Sequence
from typing import Any

from dbt_common.exceptions import DbtDatabaseError

from dbt.adapters.sparkevolve.clauses import DEFAULT_TABLE_PROPERTIES
from dbt.adapters.sparkevolve.column import SparkEvolveColumn
from dbt.adapters.sparkevolve.errors import EvolutionRefusedError, PlanRefusedError
from dbt.adapters.sparkevolve.evolution import names, refusals
from dbt.adapters.sparkevolve.evolution.changes import SetDefault
from dbt.adapters.sparkevolve.evolution.conversions import converted_schema
from dbt.adapters.sparkevolve.evolution.defaults import shown_default
from dbt.adapters.sparkevolve.evolution.plan import EvolutionPlan
from dbt.adapters.sparkevolve.evolution.renames import as_before
from dbt.adapters.sparkevolve.evolution.replacement import columns_without, loss_text, replaced_columns
from dbt.adapters.sparkevolve.evolution.table_properties import FORMAT_VERSION
from dbt.adapters.sparkevolve.iceberg.base import Base
from dbt.adapters.sparkevolve.iceberg.catalog import IcebergCatalog
from dbt.adapters.sparkevolve.iceberg.facts import plan_of, table_facts
from dbt.adapters.sparkevolve.load.batch_plan import conversions_of, defaults_of_new, plan_batch
from dbt.adapters.sparkevolve.load.dead_letters import planned_text
from dbt.adapters.sparkevolve.load.descriptions import undescribed
from dbt.adapters.sparkevolve.load.node import Node
from dbt.adapters.sparkevolve.load.plan_file import PlanFile
from dbt.adapters.sparkevolve.load.plan_report import changed_columns, plan_data, plan_table
from dbt.adapters.sparkevolve.load.planned_texts import (
    not_found_in_branch,
    unreadable_audits,
    unreadable_texts,
)
from dbt.adapters.sparkevolve.load.queries import Queries
from dbt.adapters.sparkevolve.load.readers import column_readers, replaced_warnings
from dbt.adapters.sparkevolve.load.strategies import refused_overwrite
from dbt.adapters.sparkevolve.load.table_differences import differences
from dbt.adapters.sparkevolve.relation import SparkEvolveRelation
from dbt.adapters.sparkevolve.settings import IncrementalSettings, Strategy
from dbt.adapters.sparkevolve.spark.interface import Spark
from dbt.adapters.sparkevolve.warning import are_errors


class Preview:
    """Says what a run would do.

    Args:
        catalog: the catalog.
        spark: where it is asked whether conditions can be read.
        queries: what asks for the columns of the model.
        node: the node that runs.
        plans: what writes the plans of this command.
    """

    def __init__(
        self, catalog: IcebergCatalog, spark: Spark, queries: Queries, node: Node, plans: PlanFile
    ) -> None:
        self._catalog = catalog
        self._spark = spark
        self._plans = plans
        self._queries = queries
        self._node = node

    def of_none(self) -> None:
        """Let the files of the plans be this command's, though this node is not planned."""
        self._plans.add_none()

    def of_load(
        self,
        base: Base,
        target: SparkEvolveRelation,
        staged: SparkEvolveRelation,
        settings: IncrementalSettings,
        column_docs: Mapping[str, str],
        unique_id: str = "",
        graph: Mapping[str, Any] | None = None,
    ) -> dict[str, Any]:
        """Return what ``LoadRunner.evolve`` would do with the same arguments.

        Args:
            base: what ``LoadRunner.begin_load`` returned, ``as_before``.
            target: the model's table.
            staged: the batch, without rows.
            settings: the model's.
            column_docs: descriptions of columns.
            unique_id: dbt's id of the model.
            graph: dbt's ``graph``, for who reads a column that would be replaced.

        Returns:
            what ``Response`` has of columns, under the same names; ``relation``, ``changes``,
            ``projections`` (``column`` and ``expression`` of each), ``removed``, ``removed_get`` (what each
            of these gets, by its path), ``ignored``, ``warnings`` and ``refusals`` (texts).
        """
        batch = self._catalog.staged_batch(staged)
        table = base.table
        # The batch is staged without rows, so it says nothing of NULLs, but for bare ones: NOT NULL is taken
        # to hold.
        batch.columns_without_null -= {names.fold(name) for name in self._node.nulls}
        aside, members = "", None
        if settings.sets_aside:
            schema, facts = table.schema(), table_facts(table)
            members = conversions_of(batch, settings, schema, facts)
            aside = planned_text(target, members, settings)
            batch.schema = converted_schema(batch.schema, members)
        plan = plan_of(
            table,
            lambda schema, facts: plan_batch(batch, settings, column_docs, schema, facts, self._node.name),
        )
        data = plan_data(target, plan, settings)
        shown = plan.beside or plan
        told = [*shown.reminders, *([aside] if aside else []), *differences(table, settings)]
        replaces_all = settings.strategy == Strategy.FULL_REFRESH
        told += replaced_warnings(shown, unique_id, graph or {}, replaces_all_rows=replaces_all)
        refused = [str(refusal) for refusal in refused_overwrite(base, settings)]
        if not settings.is_sampled_empty:
            refused += map(str, not_found_in_branch(base, target, batch, plan, settings))
        ends = [str(change) for change in base.ends]
        if ends and settings.frozen_for:
            refused.append(str(refusals.frozen_schema(settings.frozen_for, ends)))
        # Where values are converted first, Spark sees conditions in other types than the run would.
        if not (plan.refusals or members or settings.is_sampled_empty):
            unreadable = unreadable_texts(
                self._spark, target, str(staged), plan, settings, is_plan=True, has_old_names=bool(ends)
            )
            refused += map(str, unreadable)
        return data | {
            "changes": [*ends, *data["changes"]],
            "warnings": [*data["warnings"], *told],
            "refusals": [*refused, *data["refusals"]],
        }

    def of_new_table(
        self, target: SparkEvolveRelation, sql: str, settings: IncrementalSettings
    ) -> dict[str, Any]:
        """Return what can be told of a model whose table would be created or recreated, without doing so.

        Args:
            target: the table.
            sql: the model's query.
            settings: see ``Queries.as_stored``.

        Returns:
            ``relation``, ``creates`` (true), ``is_analysed`` (false if the query cannot be, because what it
            selects from is not there yet), ``columns`` (names), ``defaults`` (texts, if the table gets some),
            ``warnings`` and ``refusals`` (texts).
        """
        plan: dict[str, Any] = {"relation": str(target), "creates": True, "is_analysed": True}
        plan |= {"columns": [], "warnings": [], "refusals": []}
        try:
            query = self._queries.as_stored(target, sql, settings)
        except EvolutionRefusedError as exc:
            return plan | {"refusals": [str(refusal) for refusal in exc.refusals]}
        except DbtDatabaseError as exc:
            return plan | {"is_analysed": False, "warnings": [f"The model cannot be analysed: {exc.msg}"]}
        of_defaults = self._defaults(settings)
        stored = {names.fold(c.path[0]) for c in of_defaults.changes if isinstance(c, SetDefault)}
        defaults = [
            f"{names.quote(name)}: {shown_default(text)}"
            for name, text in settings.defaults.items()
            if names.fold(names.unquote(name)) in stored
        ]
        plan |= {"defaults": defaults} if defaults else {}
        warnings = [*query["warnings"], *of_defaults.reminders]
        rows = f"SELECT * FROM (\n{query['sql']}\n) AS model_rows"
        audits = [] if settings.is_sampled_empty else settings.audits
        unreadable = list(map(str, unreadable_audits(self._spark, rows, audits)))
        return plan | {"columns": query["columns"], "warnings": warnings, "refusals": unreadable}

    def refuse_warned_defaults(self, target: SparkEvolveRelation, settings: IncrementalSettings) -> None:
        """See, before the table of a model is made, whether the run may warn of its defaults.

        Raises:
            WarningsError: there is something to warn of, and warnings are errors.
        """
        self._node.refuse_warnings([f"{target}: {text}" for text in self._defaults(settings).reminders])

    def refuse_warned_descriptions(
        self,
        target: SparkEvolveRelation,
        columns: Mapping[str, Mapping[str, Any]],
        sql: str,
        known: Sequence[str],
    ) -> None:
        """See, before a table is made, whether the run may warn of columns that are described and not there.

        Args:
            target: the table.
            columns: what the node's properties say of its columns, by name.
            sql: the query that it is made from.
            known: the columns that this returns; none if they are to be asked for.

        Raises:
            WarningsError: there is something to warn of, and warnings are errors.
        """
        if columns and are_errors():
            names = known or [name for name, _ in self._queries.stored_columns(target, sql)]
            self._node.refuse_warnings(undescribed(target, columns, names))

    def refuse_warned_losses(
        self, target: SparkEvolveRelation, sql: str, known: Sequence[str], source: str
    ) -> None:
        """See, before a table is replaced, whether the run may warn of columns that it loses.

        Args:
            target: the table.
            sql: the query that it is made from.
            known: the columns that this returns; none if they are to be asked for.
            source: what its rows are from, in words.

        Raises:
            WarningsError: there is something to warn of, and warnings are errors.
        """
        table = self._node.table
        if table is None or not are_errors():
            return
        returned = known or [name for name, _ in self._queries.stored_columns(target, sql)]
        lost = columns_without(as_before(table.schema()), returned)
        if lost:
            text = loss_text(lost, source, table.metadata.current_snapshot_id)
            self._node.refuse_warnings([f"{target}: {text}"])

    def _defaults(self, settings: IncrementalSettings) -> EvolutionPlan:
        if not settings.defaults:
            return EvolutionPlan()
        # As `Clauses` has it for the table that is made.
        replaced = self._node.table.metadata.format_version if self._node.table is not None else 0
        version = max(replaced, int(DEFAULT_TABLE_PROPERTIES[FORMAT_VERSION]))
        return defaults_of_new(self._node.columns, settings, settings.format_version or version)

    def of_replacement(
        self, relation: SparkEvolveRelation, sql: str, columns: Sequence[SparkEvolveColumn]
    ) -> list[str]:
        """Return what would change in the columns of a table if it was replaced by a query's rows, as texts.

        Args:
            relation: the table, of any format.
            sql: the query.
            columns: the table's columns.
        """
        table = self._catalog.find_readable(relation)
        required = [f.name for f in table.schema().fields if f.required] if table is not None else []
        old = [(str(column.column), str(column.dtype)) for column in columns]
        return replaced_columns(old, self._queries.stored_columns(relation, sql), required)

    def frozen(self, node: str, changes: Sequence[str]) -> list[str]:
        """Return why a run that freezes schemas would be refused, if there are such changes."""
        return [str(refusals.frozen_schema(node, changes))] if changes else []

    def completed(self, plan: dict[str, Any], unique_id: str, graph: Mapping[str, Any]) -> dict[str, Any]:
        """Add to a plan whose it is, and who reads the columns that change; write it to the command's files.

        Args:
            plan: what ``of_load`` or ``of_new_table`` has returned.
            unique_id: dbt's id of the model.
            graph: dbt's ``graph``.
        """
        lost = [names.quote(name) for name in plan.get("loses", ())]
        whole = {"unique_id": unique_id, **plan, **({"columns_lost": lost} if lost else {})}
        whole["readers"] = column_readers(changed_columns(whole), unique_id, graph)
        self._plans.add(whole)
        return whole

    def refuse(self, plan: Mapping[str, Any]) -> None:
        """Let the command fail if the run would be refused.

        Raises:
            PlanRefusedError: it would, and why.
        """
        if plan["refusals"]:
            raise PlanRefusedError(plan["refusals"])

    def text(self, plan: Mapping[str, Any]) -> str:
        """Return a plan, of a load or a new table, as a table that a person reads."""
        return plan_table(plan)
