"""The adapter class: it brings catalog, planning and SQL together, and decides nothing itself."""

import threading
import time
import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from multiprocessing.context import SpawnContext
from pathlib import Path
from typing import TYPE_CHECKING, Any, Optional

from dbt.adapters.base.impl import BaseAdapter
from dbt.adapters.base.meta import available
from dbt.adapters.base.relation import BaseRelation, InformationSchema
from dbt.adapters.contracts.relation import RelationType
from dbt.adapters.events.logging import AdapterLogger
from dbt.adapters.spark.column import SparkColumn
from dbt.adapters.spark.impl import SparkAdapter, SparkConfig
from dbt_common.exceptions import DbtRuntimeError
from dbt_common.invocation import get_invocation_id
from pyiceberg.schema import Schema

from dbt.adapters.sparkevolve import staging
from dbt.adapters.sparkevolve.catalog import COMMENT_PROPERTY, IcebergCatalog, StagedBatch
from dbt.adapters.sparkevolve.column import SparkEvolveColumn
from dbt.adapters.sparkevolve.connections import SparkEvolveConnectionManager
from dbt.adapters.sparkevolve.credentials import SparkEvolveCredentials
from dbt.adapters.sparkevolve.errors import EvolutionRefusedError
from dbt.adapters.sparkevolve.evolution import names, statements
from dbt.adapters.sparkevolve.evolution.plan import EvolutionPlan, check_source_names, plan_evolution
from dbt.adapters.sparkevolve.evolution.policy import Policy, TableFacts
from dbt.adapters.sparkevolve.evolution.types import type_text
from dbt.adapters.sparkevolve.relation import SparkEvolveRelation

if TYPE_CHECKING:
    import agate

logger = AdapterLogger("SparkEvolve")

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


class SparkEvolveAdapter(SparkAdapter):
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

    @available.parse_none
    def check_target(self, target: SparkEvolveRelation) -> None:
        """Refuse, before anything is staged, a target that cannot be loaded.

        Raises:
            NotIcebergError: the profile's catalog has no such Iceberg table.
        """
        self.catalog.load(target)

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

    @available.parse_none
    def check_model_columns(
        self, target: SparkEvolveRelation, columns: Sequence[str], unique_key: Any
    ) -> None:
        """Refuse, before a table is created, names that it could not live with.

        Raises:
            EvolutionRefusedError: some names cannot be used, or the key is not among them.
        """
        refusals = check_source_names(columns, key_columns(unique_key))
        if refusals:
            raise EvolutionRefusedError(str(target), refusals)

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
        policy = Policy(
            add_columns=bool(settings["add_columns"]),
            type_widening=bool(settings["type_widening"]),
            relax_not_null=bool(settings["relax_not_null"]),
            nested_evolution=bool(settings["nested_evolution"]),
            unique_key=key_columns(settings["unique_key"]),
            renames=settings["column_renames"],
            docs={names.fold(name): doc for name, doc in column_docs.items()} or None,
            columns_without_null=batch.columns_without_null,
        )

        def decide(schema: Schema, facts: TableFacts) -> EvolutionPlan:
            plan = plan_evolution(schema, batch.schema, replace(policy, facts=facts))
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

    # What is there

    def get_relation(self, database: str, schema: str, identifier: str) -> BaseRelation | None:
        """Return a relation; without ``database`` it is looked for in the profile's catalog."""
        found: BaseRelation | None = BaseAdapter.get_relation(
            self, database or self.catalog.name, schema, identifier
        )
        return found

    def list_relations_without_caching(self, schema_relation: BaseRelation) -> list[BaseRelation]:
        """Return the tables and views of a schema, with three questions however many there are."""
        schema, catalog = str(schema_relation.schema), schema_relation.database
        where = str(schema_relation.without_identifier())
        listed = self._names_shown(f"show tables in {where}")
        views = self._names_shown(f"show views in {where}")
        iceberg = self.catalog.table_names(schema) if catalog == self.catalog.name else frozenset()
        return [
            self.Relation.create(
                database=catalog,
                schema=schema,
                identifier=name,
                type=RelationType.View if name in views else RelationType.Table,
                is_iceberg=name in iceberg,
                is_delta=False,
                is_hudi=False,
            )
            for name in sorted({*listed, *views})
        ]

    def _names_shown(self, sql: str) -> frozenset[str]:
        try:
            _, rows = self.execute(sql, fetch=True)
        except DbtRuntimeError as exc:
            absent = ("SCHEMA_NOT_FOUND", "NoSuchNamespaceException", "MISSING_CATALOG_ABILITY")
            if any(sign in str(exc) for sign in absent):
                return frozenset()
            raise
        # namespace, name, isTemporary
        return frozenset(str(row[1]) for row in rows if not row[2])

    def get_columns_in_relation(self, relation: BaseRelation) -> list[SparkColumn]:
        """Return the columns of a relation; those of an Iceberg table with the exact types of its schema.

        DESCRIBE, which everything else has to make do with, cuts long struct types off and ends at a
        name that begins with ``#``.
        """
        table = self.catalog.find(relation)
        if table is None:
            described = super().get_columns_in_relation(relation)
            return [SparkEvolveColumn(column=c.column, dtype=c.dtype) for c in described]
        return [
            SparkEvolveColumn(column=field.name, dtype=type_text(field.field_type))
            for field in table.schema().fields
        ]

    def drop_schema(self, relation: BaseRelation) -> None:
        """Drop a schema and all that is in it: an Iceberg catalog does not drop one that is not empty."""
        for inside in self.list_relations_without_caching(relation):
            self.drop_relation(inside)  # type: ignore[no-untyped-call]
        super().drop_schema(relation)

    def get_catalog(self, relation_configs: Any, used_schemas: Any) -> Any:
        """Return what ``dbt docs`` shows, for all catalogs that the project uses."""
        return BaseAdapter.get_catalog(self, relation_configs, used_schemas)

    def _get_one_catalog(
        self, information_schema: InformationSchema, schemas: set[str], used_schemas: Any
    ) -> "agate.Table":
        from dbt_common.clients.agate_helper import table_from_data_flat

        database = information_schema.database
        rows = [
            row
            for schema in sorted(schemas)
            for relation in self.list_relations(database, schema)
            for row in self._catalog_rows(relation)
        ]
        return table_from_data_flat(rows, _CATALOG_COLUMNS)

    def _catalog_rows(self, relation: BaseRelation) -> Iterable[dict[str, Any]]:
        table = self.catalog.find(relation)
        if table is not None:
            comment = table.properties.get(COMMENT_PROPERTY)
            owner = table.properties.get("owner")
            columns = [(f.name, type_text(f.field_type), f.doc) for f in table.schema().fields]
        else:
            comment = owner = None
            columns = [(c.column, c.dtype, None) for c in self.get_columns_in_relation(relation)]
        for index, (name, dtype, doc) in enumerate(columns):
            values = (
                *(relation.database, relation.schema, relation.identifier, str(relation.type)),
                *(comment, owner, name, index, dtype, doc),
            )
            yield dict(zip(_CATALOG_COLUMNS, values, strict=True))

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


_CATALOG_COLUMNS = [
    "table_database",
    "table_schema",
    "table_name",
    "table_type",
    "table_comment",
    "table_owner",
    "column_name",
    "column_index",
    "column_type",
    "column_comment",
]


def key_columns(unique_key: Any) -> tuple[str, ...]:
    """Return the names in a ``unique_key``, which may be a string, a list or None, quoted or not."""
    if not unique_key:
        return ()
    listed = [unique_key] if isinstance(unique_key, str) else list(unique_key)
    return tuple(names.unquote(str(name)) for name in listed)


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


def _property_text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
