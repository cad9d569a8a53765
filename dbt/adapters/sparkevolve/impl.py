"""The adapter class: what dbt calls, and the objects that macros reach. It decides nothing itself."""

import dataclasses
import sys
from collections import ChainMap
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from multiprocessing.context import SpawnContext
from pathlib import Path
from typing import TYPE_CHECKING, Any, Optional

from dbt.adapters.base.impl import BaseAdapter, FreshnessResponse
from dbt.adapters.base.meta import available
from dbt.adapters.base.relation import BaseRelation
from dbt.adapters.capability import Capability, CapabilityDict, CapabilitySupport, Support
from dbt.adapters.catalogs import (  # type: ignore[attr-defined]
    CatalogIntegration,
    CatalogIntegrationConfig,
)
from dbt.adapters.contracts.connection import AdapterResponse
from dbt.adapters.events.logging import AdapterLogger
from dbt.adapters.spark.column import SparkColumn
from dbt.adapters.spark.connections import SparkConnectionMethod
from dbt.adapters.spark.impl import SparkAdapter, SparkConfig
from dbt_common.contracts.metadata import CatalogTable
from dbt_common.exceptions import DbtRuntimeError
from dbt_common.invocation import get_invocation_id
from dbt_common.utils.executor import executor

from dbt.adapters.sparkevolve import documentation, integrations, listing, model_config
from dbt.adapters.sparkevolve.clauses import Clauses
from dbt.adapters.sparkevolve.column import SparkEvolveColumn
from dbt.adapters.sparkevolve.credentials import SparkEvolveCredentials
from dbt.adapters.sparkevolve.debug import ConnectionTest
from dbt.adapters.sparkevolve.documentation import Documentation
from dbt.adapters.sparkevolve.errors import CatalogUnavailableError, ForeignCatalogError
from dbt.adapters.sparkevolve.evolution import names
from dbt.adapters.sparkevolve.iceberg.catalog import IcebergCatalog
from dbt.adapters.sparkevolve.iceberg.catalogs import Catalogs
from dbt.adapters.sparkevolve.iceberg.restore import Restored
from dbt.adapters.sparkevolve.library_logs import keep_in_log_file
from dbt.adapters.sparkevolve.load.batches import Batches
from dbt.adapters.sparkevolve.load.checks import Checks
from dbt.adapters.sparkevolve.load.creation import Creation
from dbt.adapters.sparkevolve.load.dead_letters import DeadLetters
from dbt.adapters.sparkevolve.load.local_times import with_instants
from dbt.adapters.sparkevolve.load.node import Node, begin_node, end_node, running_node
from dbt.adapters.sparkevolve.load.plan_file import PlanFile
from dbt.adapters.sparkevolve.load.preview import Preview
from dbt.adapters.sparkevolve.load.queries import Queries
from dbt.adapters.sparkevolve.load.runner import LoadRunner
from dbt.adapters.sparkevolve.load.schema_page import FILE_NAME, SchemaPage, Written
from dbt.adapters.sparkevolve.load.shared import SharedByThreads
from dbt.adapters.sparkevolve.new_schemas import NewSchemas
from dbt.adapters.sparkevolve.operations import NamedNode, Operations
from dbt.adapters.sparkevolve.parse_time import Nothing
from dbt.adapters.sparkevolve.put_off import SchemasPutOff
from dbt.adapters.sparkevolve.relation import SparkEvolveRelation
from dbt.adapters.sparkevolve.relation_cache import ExactRelationsCache
from dbt.adapters.sparkevolve.settings import (
    ICEBERG,
    SETTINGS,
    STRATEGIES,
    IncrementalSettings,
    of_flags,
    own_first,
)
from dbt.adapters.sparkevolve.spark.commits import SparkCommits
from dbt.adapters.sparkevolve.spark.connections import SparkEvolveConnectionManager
from dbt.adapters.sparkevolve.spark.interface import AdapterSpark
from dbt.adapters.sparkevolve.variables import KNOWN, is_on

if TYPE_CHECKING:
    import agate

logger = AdapterLogger("SparkEvolve")
keep_in_log_file()
# What PyIceberg takes part in, which knows the catalogs that the profile states.
_IN_STATED_CATALOGS = ("incremental", "snapshot")
_NOTHING: Any = Nothing()


@dataclass
class SparkEvolveConfig(SparkConfig):
    """What dbt's parser is told of our settings; ``settings.py`` has all of them."""

    file_format: str = ICEBERG
    tblproperties: Optional[dict[str, Any]] = None
    commit_retries: int = 4
    publish: str = "branch"


class SparkEvolveAdapter(SparkAdapter):
    """dbt-spark on an Iceberg catalog, with columns that never go away."""

    Relation = SparkEvolveRelation
    Column = SparkEvolveColumn
    ConnectionManager = SparkEvolveConnectionManager
    AdapterSpecificConfigs = SparkEvolveConfig
    CATALOG_INTEGRATIONS = integrations.INTEGRATIONS

    connections: SparkEvolveConnectionManager
    cache: ExactRelationsCache

    _capabilities = CapabilityDict(
        {
            capability: CapabilitySupport(support=Support.Full)
            for capability in (
                Capability.MicrobatchConcurrency,
                Capability.SchemaMetadataByRelations,
                Capability.GetCatalogForSingleRelation,
                Capability.TableLastModifiedMetadata,
                Capability.TableLastModifiedMetadataBatch,
            )
        }
    )
    # For more than so many, dbt asks for all relations of their schemas instead, which never costs less.
    MAX_SCHEMA_METADATA_RELATIONS = sys.maxsize

    def __init__(self, config: Any, mp_context: SpawnContext) -> None:
        super().__init__(config, mp_context)
        credentials: SparkEvolveCredentials = config.credentials
        # `dbt debug` hands over a profile without a project.
        credentials.set_base_dir(Path(getattr(config, "project_root", None) or Path.cwd()))
        self.catalogs = Catalogs(
            [
                IcebergCatalog(settings, self.connections.cancellation, credentials.catalog_timeout)
                for settings in credentials.all_catalog_settings()
            ]
        )
        self.cache = ExactRelationsCache(self.catalogs.own.name, config.log_cache_events, self.catalogs.folds)
        self.connections.watch_catalogs(self.catalogs)
        self._spark = AdapterSpark(self)
        literal = self.clauses().string_literal
        self.catalogs.commit_in(
            lambda name: SparkCommits(self.connections, credentials, name, self._spark, literal)
        )
        is_session = credentials.method == SparkConnectionMethod.SESSION
        set_up = credentials.catalog_names if is_session else ()
        self._listing = listing.Listing(self.catalogs, self._spark, set_up)
        self.documentation = Documentation(self.catalogs, self._described)
        self._put_off = SchemasPutOff(self.catalogs.own.name)
        self._new_schemas = NewSchemas(self.catalogs.name_of, self.catalogs.folds)
        self._shared = SharedByThreads()
        self._warned: set[str] = set()
        # `dbt debug` has no project.
        self._plans = PlanFile(Path(getattr(config, "project_target_path", None) or "target"))
        # `dbt debug` has no variables of a project.
        of_project = getattr(getattr(config, "vars", None), "vars", None) or {}
        self._unchecked_variables = {**of_project, **(getattr(config, "cli_vars", None) or {})}

    def _project_folders(self) -> list[Path]:
        """Return where the project and its packages are."""
        projects = (getattr(self.config, "dependencies", None) or {}).values()
        return [Path(project.project_root) for project in (self.config, *projects)]

    def add_catalog_integration(self, catalog_integration: CatalogIntegrationConfig) -> CatalogIntegration:
        """Take a catalog of dbt's ``catalogs.yml``, which dbt hands over before it parses anything.

        Raises:
            CatalogsFileError: it contradicts the profile.
        """
        credentials: SparkEvolveCredentials = self.config.credentials
        integrations.check(catalog_integration, credentials.all_catalog_settings())
        return super().add_catalog_integration(catalog_integration)

    # Around each node

    def pre_model_hook(self, config: Any) -> Node:
        """Check a node's configuration, and begin to note what the node has to give back.

        Raises:
            ForeignCatalogError: the node would be built in a catalog in which it cannot be.
            CatalogLacksError: its catalog has nothing of that kind, or no such names.
            CatalogUnavailableError: its catalog was away when the run began, and still is.
            StatementError: Spark could not make its schema then, and still cannot.
            NoSuchCatalogError: Spark does not have its catalog.
            ModelConfigError: a name is a near miss of a setting, or a value cannot be one.
            SettingsConflictError: settings contradict each other.
            ModelSettingsError: there is more than one of these.
            VariableError: a variable of the run is neither true nor false.
        """
        model = config.model
        relation = self.Relation.create(model.database, model.schema, model.alias)
        if model.config.materialized in _IN_STATED_CATALOGS and not self.catalogs.has(model.database):
            raise ForeignCatalogError(str(relation), str(model.database), self.catalogs.names)
        if str(model.resource_type) in ("model", "snapshot", "seed"):
            # Macros ask for them too; errors of macros come with a list of macros.
            for variable in KNOWN:
                is_on(variable, self._unchecked_variables.get(variable, False))
            self._check_place(model, relation)
            given = dict(model.config._extra)
            named = model.config.get("catalog_name")
            built_in = self.catalogs.name_of(model.database)
            integrations.check_name(model.unique_id, named, built_in, self.catalogs.names)
            fields = [field.name for field in dataclasses.fields(model.config)]
            # dbt-athena's name of `partition_by`.
            renamed = {} if given.get("partition_by") else {"partition_by": given.get("partitioned_by")}
            values = ChainMap(renamed, model.config) if renamed.get("partition_by") else model.config
            model_config.check(model.unique_id, given, fields, values)
        elif str(model.resource_type) == "test" and model.is_relational:
            self.checks().stored_failures(relation, model.unique_id, model.config.store_failures_as)
        self._put_off.make(model, relation, self._make_schema)
        if model.is_relational and self._new_schemas.is_left_out(relation):
            self._make_schema(relation.without_identifier())
        # `dbt retry` of a microbatch model runs the batches that failed, and says which others did not.
        is_continued = getattr(model, "previous_batch_results", None) is not None
        # dbt's id is `model.<project>.<name>`.
        name = str(model.unique_id).split(".", 2)[-1]
        return begin_node(Node(name, model.database, is_continued=is_continued))

    def _check_place(self, model: Any, relation: SparkEvolveRelation) -> None:
        """See whether a node can be built where it is to be, before any of its hooks runs.

        Raises:
            CatalogLacksError: the catalog has nothing of that kind, or no such names.
        """
        checks = self.checks()
        checks.name(relation, model.unique_id)
        if model.config.materialized == "view":
            checks.views(relation, model.unique_id)

    def post_model_hook(self, config: Any, context: Node) -> None:
        """Clean up after a node, and say in its error, if it has one, what had been done."""
        exc = sys.exc_info()[1]
        end_node()
        catalog = self.catalogs.of(context.database)
        DeadLetters(catalog, self._spark, context).give_back(exc)
        Batches(catalog, self, context).give_back()
        Creation(catalog, self._spark, context).give_back()
        explained = context.explained(exc) if isinstance(exc, Exception) else exc
        if context.planned and explained is not None:
            explained = context.unplanned(explained)
            self._plans.add_failure(context.planned, str(getattr(explained, "msg", None) or explained))
        if explained is not None and explained is not exc:
            raise explained from exc

    @contextmanager
    def connection_named(
        self, name: str, query_header_context: Any = None, should_release_connection: bool = True
    ) -> Iterator[None]:
        """See dbt; at the end of a microbatch model, say what its batches have done together."""
        with (
            self._shared.batch_sums.during(name),
            super().connection_named(name, query_header_context, should_release_connection),
        ):
            yield

    def execute_macro(self, *args: Any, **kwargs: Any) -> Any:
        """Run a macro, such as that of a run-operation; after Ctrl-C it is stopped as nodes are."""
        with self.connections.cancellation.by_interrupts():
            return super().execute_macro(*args, **kwargs)

    def execute(
        self, sql: str, auto_begin: bool = False, fetch: bool = False, limit: int | None = None
    ) -> "tuple[Any, agate.Table]":
        """Run a statement, and say in its error what the node has done before it.

        In a batch of a microbatch model ``post_model_hook`` comes too late: dbt has logged the error.
        """
        try:
            answer: tuple[Any, agate.Table] = super().execute(sql, auto_begin, fetch, limit)
        except DbtRuntimeError as exc:
            node = running_node()
            if node.replaced is not None:
                self.batches().note_loss()
            explained = node.explained_statement(exc)
            if explained is exc:
                raise
            raise explained from exc
        return answer

    # What macros reach

    @available.parse(lambda: _NOTHING)
    def node(self) -> Node:
        """Return the node that runs in this thread."""
        return running_node()

    @available.parse(lambda: _NOTHING)
    def checks(self) -> Checks:
        """Return what is checked before a node builds anything."""
        return Checks(
            self._spark,
            getattr(self.get_macro_resolver(), "macros", {}),
            self._unchecked_variables,
            self._project_folders,
            self.catalogs,
        )

    @available.parse(lambda: _NOTHING)
    def queries(self) -> Queries:
        """Return what asks Spark for the columns of a query."""
        return Queries(self._spark, self._catalog_of_node().capabilities.reads_types, running_node())

    @available.parse(lambda: _NOTHING)
    def batches(self) -> Batches:
        """Return what names the staged batches of this node."""
        return Batches(self._catalog_of_node(), self, running_node())

    @available.parse(lambda *a, **k: _NOTHING)
    def load_runner(self, relation: SparkEvolveRelation | None = None) -> LoadRunner:
        """Return what loads batches into a table: the one that a run-operation is about, or the node's."""
        catalog = self.catalogs.of(relation.database) if relation else self._catalog_of_node()
        return LoadRunner(catalog, self._spark, running_node(), self._shared)

    @available.parse(lambda: _NOTHING)
    def preview(self) -> Preview:
        """Return what says what a run would do."""
        return Preview(self._catalog_of_node(), self._spark, self.queries(), running_node(), self._plans)

    @available.parse(lambda: Clauses(_NOTHING, _NOTHING, _NOTHING.convert_type))
    def clauses(self) -> Clauses:
        """Return what writes a configuration into SQL."""
        return Clauses(self._spark, self.catalogs, self.convert_type, running_node().spelled)

    @available.parse(lambda: _NOTHING)
    def operations(self) -> Operations:
        """Return what run-operations ask first: their arguments, and the node that one is about."""
        return Operations(self.catalogs.own.name, getattr(self.get_macro_resolver(), "disabled", {}))

    @available.parse_none
    def current_relation(self, relation: SparkEvolveRelation) -> BaseRelation | None:
        """Return what the catalog has under a name now, and let dbt's cache know it.

        dbt looks at its schemas once, before any hook runs; hooks and other writers drop and make relations
        after that.
        """
        cached = self.get_relation(relation.database, str(relation.schema), str(relation.identifier))
        was_view = cached is not None and bool(cached.is_view)
        found = running_node().note_existing(*self._listing.relation_now(relation, was_view=was_view))
        if listing.kind(found) != listing.kind(cached):
            self._cache_instead(cached, found)
        return found

    def _cache_instead(self, cached: BaseRelation | None, found: BaseRelation | None) -> None:
        if cached is not None:
            self.cache_dropped(cached)
        if found is not None:
            self.cache_added(found)

    @available.parse(lambda *a, **k: [])
    def schema_history(self, relation: SparkEvolveRelation) -> list[dict[str, Any]]:
        """Return all schemas that a table has had, oldest first; see ``IcebergCatalog.schema_history``."""
        return self.catalogs.of(relation.database).schema_history(relation)

    @available.parse_none
    def schema_page(self, nodes: list[NamedNode], path: str) -> Written:
        """Write a page that shows what the tables of nodes have been through; see ``SchemaPage``."""
        config = self.config
        page = SchemaPage(self.catalogs, config.project_name, Path(config.project_root), config.threads)
        return page.write(nodes, Path(path) if path else Path(config.target_path, FILE_NAME))

    @available.parse_none
    def restore_column(self, node: NamedNode, arguments: Mapping[str, Any], plan_only: bool) -> Restored:
        """Put a column of a node's table that somebody dropped back under its old field id."""
        return self.catalogs.of(node.relation.database).restore_column(
            node.relation,
            arguments["column"],
            arguments["field_id"],
            retries=node.settings.commit_retries,
            invocation_id=get_invocation_id(),
            plan_only=plan_only,
        )

    @available.parse_none
    def persist_iceberg_docs(
        self,
        relation: SparkEvolveRelation,
        comment: str | None,
        column_docs: Mapping[str, str],
        config: Any,
    ) -> None:
        """Store changed descriptions of a table and its columns in one commit; none if none changed.

        Args:
            relation: the table.
            comment: its description; None if it is not to be stored.
            column_docs: the descriptions of its columns.
            config: dbt's object of the node's configuration, for ``commit_retries``.
        """
        node = config.model.unique_id
        retries = SETTINGS["commit_retries"].value(own_first(config, node), node)

        docs = {names.fold(name): doc for name, doc in column_docs.items()}
        catalog = self.catalogs.of(relation.database)
        stored = catalog.set_docs(relation, comment, docs, retries, get_invocation_id())
        running_node().note_changes(stored)

    @available.parse_none
    def incremental_settings(
        self,
        config: Any,
        full_refresh: bool,
        flags: Any,
        location: str | None = None,
        freezes_schema: object = False,
    ) -> IncrementalSettings:
        """Return the settings of the model or snapshot that runs, all of them checked.

        Args:
            config: dbt's object of its configuration.
            full_refresh: whether the run replaces all rows of the table.
            flags: dbt's flags.
            location: where the model's table is to be; None if the catalog chooses.
            freezes_schema: dbt's variable `sparkevolve_freeze_schema`.

        Raises:
            VariableError: that is neither true nor false.
            ModelSettingError: a value cannot be one.
            SettingsConflictError: settings contradict each other.
            CatalogLacksError: they take what the catalog has not.
        """
        others = {"location": location, "freezes_schema": freezes_schema, **of_flags(flags)}
        model = config.model
        settings = IncrementalSettings.from_config(
            config, model.unique_id, full_refresh=full_refresh, columns=model.columns, **others
        )
        self.checks().branches(self.Relation.create_from(self.config, model), model.unique_id, settings)
        return with_instants(settings, self._spark)

    @available.parse(lambda *a, **k: [])
    def settings_without_effect(
        self, node: str, config: Mapping[str, Any], columns: Mapping[str, Mapping[str, Any]]
    ) -> list[str]:
        """Return what to say, once, of what is set for a node and has no effect; see ``model_config``.

        Args:
            node: its id.
            config: its configuration, by name.
            columns: what its properties say of its columns, by name.
        """
        if node in self._warned:
            return []
        self._warned.add(node)
        return [*model_config.without_effect(config), *model_config.misspelt_keys(columns)]

    # What there is, as dbt asks for it

    def get_relation(self, database: str | None, schema: str, identifier: str) -> BaseRelation | None:
        """Return a relation; without ``database`` it is looked for in the profile's catalog.

        A table that was made to be filled, and was not, is none.
        """
        name = self.catalogs.name_of(database)
        fold = str.lower if self.catalogs.folds(name) else str
        listed = self.list_relations(name, schema)
        same = [each for each in listed if fold(str(each.identifier)) == fold(identifier)]
        # Of a name in other letters alone, dbt's own says that it will not guess.
        found: BaseRelation | None = (
            same[0] if same else BaseAdapter.get_relation(self, name, schema, identifier)
        )
        is_none = found is None or self.catalogs.of(found.database).is_unfilled(found)
        return None if is_none else found

    def drop_relation(self, relation: BaseRelation) -> None:
        """Drop a relation: a table as its catalog takes it, which Spark's DROP TABLE does not ask."""
        catalog = self.catalogs.of(relation.database)
        if relation.is_view or not catalog.drops_with_files(relation):
            super().drop_relation(relation)  # type: ignore[no-untyped-call]
            return
        try:
            catalog.purge(relation)
        finally:
            # Not before: another thread may list the table in between, and it would stay in the cache.
            self.cache_dropped(relation)

    def list_schemas(self, database: str | None) -> list[str]:
        """Return the names of the schemas of a catalog, which dbt asks for before it makes one.

        Of a further one that is away, or that Spark cannot list, there are none then: only the nodes in it
        fail.

        Raises:
            ForeignCatalogError: the name is that of a catalog of the profile in other letters.
            SameTableError: two nodes would be built as one table. dbt fills its cache, where that is looked
                at too, once it has made the schemas, and under `--no-populate-cache` not at all.
        """
        self.catalogs.check_name(database, listing.users_of(self.get_macro_resolver(), database))
        listing.check_places(listing.built_nodes(self.get_macro_resolver()), self.catalogs)
        found: list[str] = []
        named = database and database.strip("`")
        with self._put_off_at_start("list_schemas" if named is None else f"list_{named}", named):
            self._listing.check_catalog(named)
            found += super().list_schemas(database)  # type: ignore[arg-type]
            self._new_schemas.note_listed(named, found)
        return found

    def list_relations(self, database: str | None, schema: str) -> list[BaseRelation]:
        """Return the tables and views of a schema, as dbt's cache knows them if it knows the schema.

        dbt's own adds them to the cache one by one. Another thread would meanwhile take those that are not in
        it yet for missing, and compile an incremental model as if there was no table. A list that is late,
        since others have changed something meanwhile, is thrown away.
        """
        name = self.catalogs.name_of(database)
        place = self.Relation.create(name, schema).without_identifier()
        while True:
            with self.cache.lock:
                if (name, schema) in self.cache:
                    return self.cache.get_relations(name, schema)
                seen = self.cache.changes(name, schema)
            relations = self.list_relations_without_caching(place)
            with self.cache.lock:
                if (name, schema) not in self.cache and self.cache.changes(name, schema) == seen:
                    self.cache.fill(name, schema, relations)

    def list_relations_without_caching(self, schema_relation: BaseRelation) -> list[BaseRelation]:
        """Return the tables and views of a schema."""
        return self._listing.relations(schema_relation)

    def get_columns_in_relation(self, relation: BaseRelation) -> list[SparkColumn]:
        """Return the columns of a relation; those of an Iceberg table with the exact types of its schema."""
        columns = self._listing.iceberg_columns(relation)
        if columns is not None:
            return list(columns)
        # Under `--empty` a relation stands for a subquery, which cannot be described.
        described = super().get_columns_in_relation(relation.replace(limit=None, event_time_filter=None))
        return [SparkEvolveColumn(column=c.column, dtype=c.dtype) for c in described]

    def create_schema(self, relation: BaseRelation) -> None:
        """Make a schema, and those that it lies in, unless they are there.

        In a further catalog that is away, or where Spark refuses it, that is put off until the first node in
        it begins, if dbt makes the schemas of all nodes.

        Raises:
            SchemaNameError: its name does not say where it is to be.
        """
        connection = f"create_{relation.database or ''}_{relation.schema}"
        with self._put_off_at_start(connection, relation.database, relation):
            self._make_schema(relation)

    def _put_off_at_start(
        self, connection: str, database: str | None, schema: BaseRelation | None = None
    ) -> AbstractContextManager[None]:
        """Put off what fails in a further catalog, if dbt itself asks, before it runs anything.

        A macro wants it to be done now: of a run-operation, nothing comes later that could fail.

        Args:
            connection: what dbt calls the connection by which it asks.
            database: the catalog.
            schema: what is made; None if it is asked what there is.
        """
        used = self.connections.get_if_exists()
        if used is None or used.name != connection:
            return nullcontext()
        return self._put_off.failures(self.catalogs.name_of(database), schema)

    def _make_schema(self, relation: BaseRelation) -> None:
        self._listing.check_catalog(relation.database)
        with self._new_schemas.making(relation):
            for above in self._listing.schemas_above(relation):
                super().create_schema(above)
            super().create_schema(relation)

    def check_schema_exists(self, database: str, schema: str) -> bool:
        """Tell whether there is a schema; a nested one is not in the list of schemas."""
        exists = self._listing.nested_schema_exists(database, schema)
        return super().check_schema_exists(database, schema) if exists is None else exists

    def drop_schema(self, relation: BaseRelation) -> None:
        """Drop a schema and all that is in it: an Iceberg catalog does not drop one that is not empty."""
        self._listing.check_catalog(relation.database)
        for inside in self.list_relations_without_caching(relation):
            self.drop_relation(inside)
        super().drop_schema(relation)

    def get_catalog(self, relation_configs: Any, used_schemas: Any) -> tuple["agate.Table", list[Exception]]:
        """Return what ``dbt docs`` shows of nodes and sources; see ``get_catalog_by_relations``."""
        relations: set[BaseRelation] = {
            self.Relation.create_from(self.config, one) for one in relation_configs
        }
        return self.get_catalog_by_relations(used_schemas, relations)

    def get_catalog_by_relations(
        self, used_schemas: Any, relations: set[BaseRelation]
    ) -> tuple["agate.Table", list[Exception]]:
        """Return what ``dbt docs`` shows of those relations that are there.

        Others of their schemas cost nothing: dbt shows only what its project knows.

        Returns:
            a row for each column, and what went wrong with other relations.
        """
        own = self.catalogs.own.name
        schemas = {(relation.database or own, str(relation.schema)) for relation in relations}
        errors: list[Exception] = []
        there: list[BaseRelation] = []
        away: set[str] = set()
        for database, schema in sorted(schemas):
            if database in away:
                continue
            try:
                there += self.list_relations(database, schema)
            except CatalogUnavailableError as exc:
                # Its name is in the error, and for each of its schemas it would be waited for again.
                away.add(database)
                errors.append(exc)
            except Exception as exc:
                errors.append(
                    documentation.error(f"what is in {self.Relation.create(database, schema)}", exc)
                )
        shown: list[CatalogTable] = []
        with executor(self.config) as threads:
            submit: Callable[..., Future[CatalogTable]] = threads.submit_connected
            found = [
                (relation, submit(self, f"catalog of {relation}", self.documentation.of_node, relation))
                for relation in documentation.wanted(relations, there, own)
            ]
            for relation, one in found:
                try:
                    shown.append(one.result())
                except Exception as exc:
                    errors.append(documentation.error(str(relation), exc))
        return documentation.as_table(shown), errors

    def get_catalog_for_single_relation(self, relation: BaseRelation) -> CatalogTable | None:
        """Return what ``dbt docs`` shows of a relation."""
        return self.documentation.of(relation)

    def _described(self, relation: BaseRelation) -> documentation.Described:
        answer = self.execute_macro("get_columns_in_relation_raw", kwargs={"relation": relation})
        return documentation.described(row.values() for row in answer)

    def calculate_freshness_from_metadata_batch(
        self, sources: list[BaseRelation], macro_resolver: Any = None
    ) -> tuple[list[AdapterResponse | None], dict[BaseRelation, FreshnessResponse]]:
        """Return how old sources are, by the metadata of their tables.

        Returns:
            no response, since Spark is not asked, and the ages of those that have one. dbt asks for each
            other by itself, and tells why it has none.
        """
        return [], self.documentation.ages(sources)

    def calculate_freshness_from_metadata(
        self, source: BaseRelation, macro_resolver: Any = None
    ) -> tuple[AdapterResponse | None, FreshnessResponse]:
        """Return how old a source is, by the metadata of its table.

        Raises:
            FreshnessError: it is no Iceberg table, or its metadata cannot be read.
        """
        return None, self.documentation.age(source)

    def set_relations_cache(
        self, relation_configs: Any, clear: bool = False, required_schemas: set[BaseRelation] | None = None
    ) -> None:
        """List schemas before anything runs: those of the profile's own catalog.

        dbt lists those of all nodes, selected or not. The others are listed when a node first asks.

        Raises:
            SameTableError: two nodes would be built as one table.
        """
        listing.check_places(relation_configs, self.catalogs)
        own = self.catalogs.own.name
        configs = [config for config in relation_configs if config.database in (None, own)]
        asked = required_schemas or {self.Relation.create_from(self.config, config) for config in configs}
        # One that is named in two ways is listed once.
        required = {
            self.Relation.create(own, schema.schema).without_identifier()
            for schema in asked
            if schema.database in (None, own)
        }
        super().set_relations_cache(configs, clear, required)

    def _catalog_of_node(self) -> IcebergCatalog:
        return self.catalogs.of(running_node().database)

    def _make_match_kwargs(self, database: str, schema: str, identifier: str) -> dict[str, str]:
        """Look for a name as it is written, quoted or not: Spark hands it to the catalog as it is."""
        parts = {"database": database, "schema": schema, "identifier": identifier}
        return {part: name for part, name in parts.items() if name is not None}

    @classmethod
    def quote(cls, identifier: str) -> str:
        """Return a name in backticks."""
        return names.quote(identifier)

    def debug_query(self) -> None:
        """Prove for ``dbt debug`` that Spark answers, and that PyIceberg sees the same catalogs as Spark.

        Raises:
            DbtRuntimeError: what does not work; it names each catalog that does not.
        """
        spark = self.connections
        ConnectionTest(self.catalogs, self._spark, lambda: spark.get_thread_connection().handle).run()

    def valid_incremental_strategies(self) -> list[str]:
        """Return the strategies that load into a table without losing a column."""
        return [str(strategy) for strategy in STRATEGIES]
