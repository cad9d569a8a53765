"""The adapter class: it brings catalog, planning and SQL together, and decides nothing itself."""

import threading
import time
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from multiprocessing.context import SpawnContext
from pathlib import Path
from typing import Any, Optional

from dbt.adapters.base.meta import available
from dbt.adapters.events.logging import AdapterLogger
from dbt.adapters.spark.impl import SparkConfig
from dbt_common.exceptions import DbtDatabaseError, DbtRuntimeError
from dbt_common.invocation import get_invocation_id
from pyiceberg.schema import Schema

from dbt.adapters.sparkevolve import staging
from dbt.adapters.sparkevolve.catalog import IcebergCatalog, table_facts
from dbt.adapters.sparkevolve.column import SparkEvolveColumn
from dbt.adapters.sparkevolve.connections import SparkEvolveConnectionManager
from dbt.adapters.sparkevolve.credentials import SparkEvolveCredentials
from dbt.adapters.sparkevolve.errors import EvolutionRefusedError, UnreadableQueryError
from dbt.adapters.sparkevolve.evolution import names, refusals, statements, storable
from dbt.adapters.sparkevolve.evolution.plan import EvolutionPlan, check_source_names
from dbt.adapters.sparkevolve.evolution.policy import TableFacts
from dbt.adapters.sparkevolve.evolution.types import has_spark_type
from dbt.adapters.sparkevolve.listing import ListingAdapter
from dbt.adapters.sparkevolve.loading import (
    key_columns,
    load_statements,
    plan_batch,
    plan_data,
    plan_table,
)
from dbt.adapters.sparkevolve.relation import SparkEvolveRelation

logger = AdapterLogger("SparkEvolve")

# Rows of a seed in one INSERT, and so in one commit.
_SEED_BATCH = 10_000
DEFAULT_FILE_FORMAT = "iceberg"
# Merge-on-read: a small batch into a large table writes the batch, not the files that it touches.
DEFAULT_TABLE_PROPERTIES = {
    "format-version": "2",
    "write.delete.mode": "merge-on-read",
    "write.update.mode": "merge-on-read",
    "write.merge.mode": "merge-on-read",
}


@dataclass
class SparkEvolveConfig(SparkConfig):
    """Model configuration that this adapter adds; the macros say what each value means."""

    file_format: str = DEFAULT_FILE_FORMAT
    tblproperties: Optional[dict[str, Any]] = None
    commit_retries: int = 4
    publish: str = "direct"


class SparkEvolveAdapter(ListingAdapter):
    """dbt-spark on an Iceberg catalog, with columns that never go away."""

    Relation = SparkEvolveRelation
    Column = SparkEvolveColumn
    ConnectionManager = SparkEvolveConnectionManager
    AdapterSpecificConfigs = SparkEvolveConfig

    def __init__(self, config: Any, mp_context: SpawnContext) -> None:
        super().__init__(config, mp_context)
        credentials: SparkEvolveCredentials = config.credentials
        # `dbt debug` hands over a profile without a project.
        credentials.set_base_dir(Path(getattr(config, "project_root", None) or Path.cwd()))
        self.catalog = IcebergCatalog(credentials.catalog_settings())
        self._staged: dict[int, list[SparkEvolveRelation]] = {}

    # What dbt calls around each node

    def pre_model_hook(self, config: Any) -> list[SparkEvolveRelation]:
        """Make Iceberg the default format of this node, and note what it stages.

        dbt-spark's macros each have a default of their own, so it has to stand in the node's config.
        """
        if config.get("file_format") is None:
            config.model.config["file_format"] = DEFAULT_FILE_FORMAT
        staged = self._staged[threading.get_ident()] = []
        return staged

    def post_model_hook(self, config: Any, context: Any) -> None:
        """Remove what the node staged, whether it ended well or not."""
        for relation in self._staged.pop(threading.get_ident(), []):
            try:
                self.catalog.purge(relation)
            except Exception as exc:
                logger.warning(f"The staged batch {relation} could not be removed: {exc}")

    # For the incremental materialization

    @available.parse(lambda *a, **k: [])
    def target_columns(self, target: SparkEvolveRelation) -> list[str]:
        """Return the target's column names; refuse, before anything is staged, one that cannot be loaded.

        Raises:
            NotIcebergError: the profile's catalog has no such Iceberg table.
            EvolutionRefusedError: Spark cannot read the table, since it has no such type.
        """
        fields = self.catalog.load(target).schema().fields
        lacking = [f for f in fields if not has_spark_type(f.field_type)]
        if lacking:
            found = [refusals.no_spark_type((f.name,), f.field_type) for f in lacking]
            raise EvolutionRefusedError(str(target), found)
        return [field.name for field in fields]

    @available.parse_none
    def staging_relation(self, target: SparkEvolveRelation) -> SparkEvolveRelation:
        """Return a new name next to ``target`` for a batch; the table goes when the node has ended."""
        relation = staging.staging_relation(target)
        self._staged.setdefault(threading.get_ident(), []).append(relation)
        return relation

    @available.parse(lambda *a, **k: {})
    def staging_properties(self) -> dict[str, str]:
        """Return the table properties of a staged batch."""
        return staging.staging_properties()

    @available.parse_none
    def drop_abandoned_staging(self, target: SparkEvolveRelation) -> None:
        """Remove staged batches of ``target`` that killed runs have left behind.

        The candidates come from dbt's cache, so that a run without any costs nothing.
        """
        now_ms = int(time.time() * 1000)
        for relation in self.list_relations(target.database, str(target.schema)):
            if not staging.is_staging_of(str(relation.identifier), str(target.identifier)):
                continue
            table = self.catalog.find(relation)
            if table is not None and staging.is_abandoned(
                table.properties, table.metadata.last_updated_ms, now_ms
            ):
                logger.info(f"Removing {relation}, which an earlier run left behind")
                self.catalog.purge(relation)
                self.cache_dropped(relation)

    @available.parse(lambda *a, **k: {})
    def storable_query(
        self,
        target: SparkEvolveRelation,
        sql: str,
        settings: Mapping[str, Any],
        known_columns: Sequence[str],
    ) -> dict[str, Any]:
        """Return the model's query with everything in it that Iceberg cannot store left out or as string.

        Args:
            target: the model's table.
            sql: the model's query.
            settings: ``unmappable_types`` (``string`` or ``fail``) and ``unique_key``.
            known_columns: the columns of the table: a bare NULL in one of them is not worth a warning.

        Returns:
            ``sql``, ``columns`` (names that it returns) and ``warnings`` (texts).

        Raises:
            EvolutionRefusedError: a name that cannot be used, a key that is not returned, or a type that
                Iceberg lacks under ``fail``.
        """
        _, rows = self.execute(storable.types_query(sql), fetch=True)
        try:
            columns = storable.parse_columns(str(rows[0][0]))
        except storable.UnreadableType as exc:
            raise UnreadableQueryError(str(target), str(exc)) from exc
        query = storable.storable_query(sql, columns)
        lacking = [note for note in query.notes if note.type != "void"]
        found = list(check_source_names(query.columns, key_columns(settings["unique_key"])))
        if settings["unmappable_types"] == "fail":
            found += [refusals.unmappable(note.path, note.type) for note in lacking]
        if self.catalog.is_hive:
            paths = storable.field_paths(columns)
            found += [refusals.unreadable_by_hive(p) for p in paths if not names.is_readable_by_hive(p[-1])]
        if found:
            raise EvolutionRefusedError(str(target), found)
        known = {names.fold(name) for name in known_columns}
        warnings = [
            str(note) for note in query.notes if note.type != "void" or names.fold(note.path[0]) not in known
        ]
        return {"sql": query.sql, "columns": list(query.columns), "warnings": warnings}

    @available.parse(lambda *a, **k: {})
    def plan(
        self,
        target: SparkEvolveRelation,
        staged: SparkEvolveRelation,
        settings: Mapping[str, Any],
        column_docs: Mapping[str, str],
    ) -> dict[str, Any]:
        """Return what ``evolve`` would do, and do nothing; the arguments are those of ``evolve``.

        Returns:
            ``relation``, ``changes``, ``projections`` (``column`` and ``expression`` of each), ``removed``,
            ``ignored``, ``warnings`` and ``refusals`` (texts).
        """
        batch = self.catalog.staged_batch(staged)
        table = self.catalog.load(target)
        # The batch is staged without rows, so it says nothing of NULLs: NOT NULL is taken to hold.
        plan = plan_batch(batch, settings, column_docs, table.schema(), table_facts(table))
        return plan_data(target, plan)

    @available.parse(lambda *a, **k: {})
    def plan_new_table(
        self, target: SparkEvolveRelation, sql: str, settings: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Return what can be told of a model whose table would be made, or made anew, without making it.

        Args:
            target: the table.
            sql: the model's query.
            settings: see ``storable_query``.

        Returns:
            ``relation``, ``creates`` (true), ``is_analysed`` (false if the query cannot be, because what it
            selects from is not there yet), ``columns`` (names), ``warnings`` and ``refusals`` (texts).
        """
        plan = {"relation": str(target), "creates": True, "is_analysed": True}
        plan |= {"columns": [], "warnings": [], "refusals": []}
        try:
            query = self.storable_query(target, sql, settings, ())
        except EvolutionRefusedError as exc:
            return plan | {"refusals": [str(refusal) for refusal in exc.refusals]}
        except DbtDatabaseError as exc:
            return plan | {"is_analysed": False, "warnings": [f"The model cannot be analysed: {exc.msg}"]}
        return plan | {"columns": query["columns"], "warnings": query["warnings"]}

    @available
    def plan_text(self, plan: Mapping[str, Any]) -> str:
        """Return a plan as a table that a person reads."""
        return plan_table(plan)

    @available.parse(lambda *a, **k: [])
    def schema_history(self, relation: SparkEvolveRelation) -> list[dict[str, Any]]:
        """Return all schemas that a table has had, oldest first.

        Returns:
            For each ``schema_id``, ``is_current``, ``at`` (ISO 8601 or empty), ``invocation_id`` (of the run
            of ours that made it, or empty), ``changes`` (texts), ``columns`` (``id``, ``name``, ``type``).
        """
        return self.catalog.schema_history(relation)

    @available.parse(lambda *a, **k: {})
    def evolve(
        self,
        target: SparkEvolveRelation,
        staged: SparkEvolveRelation,
        settings: Mapping[str, Any],
        column_docs: Mapping[str, str],
    ) -> dict[str, Any]:
        """Add the new columns to ``target`` in one commit, and return how to load the batch.

        Args:
            target: the model's table.
            staged: the batch.
            settings: ``unique_key`` (string, list or None); ``add_columns``, ``type_widening``,
                ``relax_not_null``, ``nested_evolution`` (bool); ``column_renames`` (dict); ``predicates``
                (list of SQL conditions on the target); ``commit_retries`` (int).
            column_docs: descriptions of columns, stored with those that are added.

        Returns:
            ``changes`` and ``warnings`` (texts); ``added``, ``removed``, ``ignored``, ``refreshed``,
            ``new_keys`` (names); ``rows`` (of the batch)
            and ``statements`` (SQL texts, to be run one by one in this order; none for an empty batch).

        Raises:
            EvolutionRefusedError: nothing was written, and why.
            NotIcebergError: the target is not an Iceberg table.
            CommitConflictError: other writers were faster each time.
        """
        batch = self.catalog.staged_batch(staged)

        def decide(schema: Schema, facts: TableFacts) -> EvolutionPlan:
            plan = plan_batch(batch, settings, column_docs, schema, facts)
            if plan.refusals:
                raise EvolutionRefusedError(str(target), plan.refusals)
            return plan

        plan = self.catalog.evolve(
            target,
            decide,
            int(settings["commit_retries"]),
            source=batch.schema,
            invocation_id=get_invocation_id(),
        )
        return {
            "changes": [str(change) for change in plan.changes],
            "added": list(plan.added),
            "removed": [names.path_text(path) for path in plan.removed],
            "ignored": [names.path_text(path) for path in plan.ignored],
            "warnings": list(plan.warnings),
            "refreshed": list(plan.refreshed),
            "new_keys": [name for name in plan.unique_key if name in plan.added],
            "rows": batch.rows,
            "statements": load_statements(target, staged, batch, plan, settings["predicates"]),
        }

    @available.parse_none
    def persist_iceberg_docs(
        self, relation: SparkEvolveRelation, comment: str | None, column_docs: Mapping[str, str]
    ) -> None:
        """Store changed descriptions of a table and its columns in one commit; none if none changed."""
        docs = {names.fold(name): doc for name, doc in column_docs.items()}
        self.catalog.set_docs(relation, comment, docs, SparkEvolveConfig.commit_retries)

    # SQL text

    @available.parse(lambda *a, **k: [])
    def seed_statements(self, relation: Any, table: Any, column_types: Mapping[str, str]) -> list[str]:
        """Return the INSERTs that load a seed.

        Args:
            relation: the seed's table.
            table: its rows, as an agate table.
            column_types: Spark SQL types by column name; that of another column follows from its values.
        """
        types = [
            column_types.get(name) or str(self.convert_type(table, index))
            for index, name in enumerate(table.column_names)
        ]
        rows = [list(row.values()) for row in table.rows]
        return [
            statements.values_statement(str(relation), types, rows[start : start + _SEED_BATCH])
            for start in range(0, len(rows), _SEED_BATCH)
        ]

    @classmethod
    def quote(cls, identifier: str) -> str:
        """Return a name in backticks."""
        return names.quote(identifier)

    @available
    def string_literal(self, text: str) -> str:
        """Return a text as a Spark SQL literal."""
        return names.string_literal(text)

    @available
    def table_properties(self, configured: Mapping[str, Any] | None) -> dict[str, str]:
        """Return the properties of a new Iceberg table: the model's ``tblproperties`` over our defaults."""
        given = {str(key): _property_text(value) for key, value in (configured or {}).items()}
        return {**DEFAULT_TABLE_PROPERTIES, **given}

    def debug_query(self) -> None:
        """Prove for ``dbt debug`` that Spark answers, and that PyIceberg sees the same catalog as Spark.

        Raises:
            DbtRuntimeError: what one makes, the other does not see.
        """
        probe = self.Relation.create(
            database=self.catalog.name, schema=f"sparkevolve_debug_{uuid.uuid4().hex[:12]}"
        ).without_identifier()
        self.execute(f"create schema {probe}")
        try:
            if not self.catalog.namespace_exists(str(probe.schema)):
                raise DbtRuntimeError(
                    f"Spark's catalog `{self.catalog.name}` is not the one that `catalog_properties` of the "
                    f"profile describe: PyIceberg does not see a schema that Spark has just made ({probe}). "
                    "Make `catalog_properties` say what the server's spark.sql.catalog."
                    f"{self.catalog.name}.* settings say."
                )
        finally:
            self.execute(f"drop schema {probe}")

    def valid_incremental_strategies(self) -> list[str]:
        """Return the strategies that load into a table without losing a column."""
        return ["append", "delete+insert"]


def _property_text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
