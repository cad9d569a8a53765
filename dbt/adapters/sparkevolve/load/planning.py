"""The part of the adapter that stages a model's rows, and plans what they do to its table."""

import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from multiprocessing.context import SpawnContext
from typing import Any

from dbt.adapters.base.meta import available
from dbt.adapters.base.relation import BaseRelation
from dbt.adapters.events.logging import AdapterLogger
from dbt_common.exceptions import DbtDatabaseError
from pyiceberg.schema import Schema

from dbt.adapters.sparkevolve.errors import (
    EvolutionRefusedError,
    FilesLeftError,
    ForeignCatalogError,
    UnreadableQueryError,
)
from dbt.adapters.sparkevolve.evolution import names, refusals
from dbt.adapters.sparkevolve.evolution.plan import check_source_names
from dbt.adapters.sparkevolve.evolution.types import has_spark_type
from dbt.adapters.sparkevolve.iceberg import staging
from dbt.adapters.sparkevolve.iceberg.catalog import LoadedTable, table_facts
from dbt.adapters.sparkevolve.iceberg.guards import newest_ms
from dbt.adapters.sparkevolve.listing import ListingAdapter
from dbt.adapters.sparkevolve.load.load import Load
from dbt.adapters.sparkevolve.load.loading import (
    plan_batch,
    plan_data,
    plan_table,
    window_refusals,
)
from dbt.adapters.sparkevolve.load.outcome import Outcome
from dbt.adapters.sparkevolve.load.table_differences import differences
from dbt.adapters.sparkevolve.relation import SparkEvolveRelation
from dbt.adapters.sparkevolve.settings import IncrementalSettings
from dbt.adapters.sparkevolve.spark.connections import SparkEvolveConnectionManager
from dbt.adapters.sparkevolve.sql import spark_types, storable

logger = AdapterLogger("SparkEvolve")

DEFAULT_FILE_FORMAT = "iceberg"
# What PyIceberg takes part in, which knows the profile's catalog only.
_IN_PROFILES_CATALOG = ("incremental", "snapshot")


@dataclass
class Node:
    """What a node that runs on this thread has to give back at its end.

    Attributes:
        staged: the batches that it has staged.
        load: the load that is under way.
        lock: what keeps other threads from loading into the same table.
        nulls: the columns of the model that are a bare NULL.
        outcome: what is visible already, and what is still to be done; None before that.
        gone: the table that dbt compiled the model for, if it is not there any more.
        table: the node's table as it was after the pre-hooks, until the load has begun with it.
        is_continued: whether an earlier dbt command has loaded other batches of the model, which stay.
        changed: what it has changed of its table's columns.
    """

    staged: list[SparkEvolveRelation] = field(default_factory=list)
    load: Load | None = None
    lock: "threading.Lock | None" = None
    nulls: tuple[str, ...] = ()
    outcome: Outcome | None = None
    gone: SparkEvolveRelation | None = None
    table: LoadedTable | None = None
    is_continued: bool = False
    changed: list[str] = field(default_factory=list)


class PlanningAdapter(ListingAdapter):
    """The part of the adapter that stages a model's rows, and plans what they do to its table."""

    connections: SparkEvolveConnectionManager

    def __init__(self, config: Any, mp_context: SpawnContext) -> None:
        super().__init__(config, mp_context)
        self._nodes: dict[int, Node] = {}

    @property
    def _node(self) -> Node:
        return self._nodes.setdefault(threading.get_ident(), Node())

    # What dbt calls around each node

    def pre_model_hook(self, config: Any) -> None:
        """Make Iceberg the default format of this node, and begin to note what it has to give back.

        dbt-spark's macros each have a default of their own, so it has to stand in the node's config.

        Raises:
            ForeignCatalogError: the node would be built in another catalog, where it cannot be.
        """
        node = config.model
        if node.config.materialized in _IN_PROFILES_CATALOG and node.database not in (
            None,
            self.catalog.name,
        ):
            relation = self.Relation.create(node.database, node.schema, node.alias)
            raise ForeignCatalogError(str(relation), str(node.database), self.catalog.name)
        if config.get("file_format") is None:
            config.model.config["file_format"] = DEFAULT_FILE_FORMAT
        # `dbt retry` of a microbatch model runs the batches that failed, and says which others did not.
        is_continued = getattr(node, "previous_batch_results", None) is not None
        self._nodes[threading.get_ident()] = Node(is_continued=is_continued)

    @available.parse(lambda *a, **k: False)
    def is_continued(self) -> bool:
        """Tell whether this node goes on with a model of which another dbt command has loaded batches.

        A full refresh that failed half-way is retried with its `--full-refresh`, and dbt would run the first
        of the batches that are left as one: it would replace all that the others have loaded.
        """
        return self._node.is_continued

    def post_model_hook(self, config: Any, context: Any) -> None:
        """Remove what the node staged, whether it ended well or not."""
        node = self._nodes.pop(threading.get_ident(), Node())
        if node.load is not None:
            self._drop_branches(node.load)
        if node.lock is not None:
            node.lock.release()
        for relation in node.staged:
            is_loaded = node.load is not None and node.load.staged == relation
            self._remove(relation, node.load.batch.location if node.load and is_loaded else None)

    def _drop_branches(self, load: Load) -> None:
        for branch in filter(None, (load.branch, *load.lost_branches)):
            try:
                self.catalog.drop_branch(load.target, branch)
            except Exception as exc:
                logger.warning(f"The branch {branch} of {load.target} could not be removed: {exc}")

    # Staging

    @available.parse_none
    def target_schema(self, target: SparkEvolveRelation) -> Schema:
        """Return the target's schema; refuse, before anything is staged, one that cannot be loaded.

        Raises:
            NotIcebergError: the profile's catalog has no such Iceberg table.
            EvolutionRefusedError: Spark cannot read the table, since it has no such type.
        """
        schema = self.catalog.load(target).schema()
        refuse_unreadable(target, schema)
        return schema

    @available.parse_none
    def staging_relation(self, target: SparkEvolveRelation) -> SparkEvolveRelation:
        """Return a new name next to ``target`` for a batch; the table goes when the node has ended."""
        relation = staging.staging_relation(target)
        self._node.staged.append(relation)
        return relation

    @available.parse(lambda *a, **k: {})
    def staging_properties(
        self, settings: IncrementalSettings | None = None, columns: Sequence[str] = ()
    ) -> dict[str, str]:
        """Return the table properties of a staged batch.

        Args:
            settings: the model's; None for a batch without a key.
            columns: the names that the batch has.
        """
        # Of an event time the bounds tell whether the batch keeps to its window.
        keys = (settings.unique_key or (settings.event_time,)) if settings is not None else ()
        wanted = {names.fold(name) for name in keys if name}
        return staging.staging_properties([name for name in columns if names.fold(name) in wanted])

    @available.parse_none
    def drop_abandoned_staging(self, target: SparkEvolveRelation) -> None:
        """Remove staged batches of ``target`` that killed runs have left behind.

        The candidates come from dbt's cache, so that a run without any costs nothing.
        """
        named = [
            relation
            for relation in self.list_relations(target.database, str(target.schema))
            if staging.is_staging_of(str(relation.identifier), str(target.identifier))
        ]
        for relation in named:
            try:
                if self._is_abandoned(relation, target):
                    logger.info(f"Removing {relation}, which an earlier run left behind")
                    if self._remove(relation):
                        self.cache_dropped(relation)
            except Exception as exc:
                logger.warning(f"Whether {relation} was left behind cannot be told: {exc}")

    def _is_abandoned(self, relation: BaseRelation, target: SparkEvolveRelation) -> bool:
        table = self.catalog.find(target)
        seen_ms = newest_ms(table.metadata) if table is not None else 0
        try:
            batch = self.catalog.find(relation)
        except FileNotFoundError:
            # Files of the target can be read, and of the batch not even the metadata are there: nobody,
            # wherever it runs, can load from it any more.
            return table is not None
        now_ms = staging.certain_ms(int(time.time() * 1000), seen_ms)
        return batch is not None and staging.is_abandoned(
            batch.properties, batch.metadata.last_updated_ms, now_ms
        )

    def _remove(self, relation: BaseRelation, location: str | None = None) -> bool:
        """Remove a staged batch, and tell whether it is gone: no run fails because of what is left over."""
        try:
            self.catalog.purge(relation, location)
        except FilesLeftError as exc:
            logger.warning(exc.msg)
        except Exception as exc:
            logger.warning(f"The staged batch {relation} could not be removed: {exc}")
            return False
        return True

    @available.parse(lambda *a, **k: {})
    def storable_query(
        self,
        target: SparkEvolveRelation,
        sql: str,
        settings: IncrementalSettings,
        table: Schema | None = None,
    ) -> dict[str, Any]:
        """Return the model's query with everything in it that Iceberg cannot store left out or as string.

        Args:
            target: the model's table.
            sql: the model's query.
            settings: ``unmappable_types`` (``string`` or ``fail``), ``unique_key`` and ``column_renames``.
            table: the table's schema, if there is a table: a bare NULL gets the type that it has there.

        Returns:
            ``sql``, ``columns`` (names that it returns) and ``warnings`` (texts).

        Raises:
            EvolutionRefusedError: a name that cannot be used, a key that is not returned, or a type that
                Iceberg lacks under ``fail``.
            UnreadableQueryError: the types of the columns cannot be told.
        """
        columns = self._query_columns(target, sql)
        query = storable.storable_query(sql, columns, table, settings.column_renames)
        self._node.nulls = query.nulls
        found = list(check_source_names(query.columns, *settings.replacing))
        found += window_refusals(columns, settings)
        lacking = [note for note in query.notes if note.type != "void"]
        if settings.unmappable_types == "fail":
            found += [refusals.unmappable(note.path, note.type) for note in lacking]
        if self.catalog.is_hive:
            paths = spark_types.field_paths(columns)
            found += [refusals.unreadable_by_hive(p) for p in paths if not names.is_readable_by_hive(p[-1])]
        if found:
            raise self._refusal(target, found)
        return {
            "sql": query.sql,
            "columns": list(query.columns),
            "warnings": [str(note) for note in query.notes],
        }

    def _refusal(
        self, target: SparkEvolveRelation, found: Sequence[refusals.Refusal], is_full_refresh: bool = False
    ) -> EvolutionRefusedError:
        """Return the error that a batch is refused, which says what the node has changed before."""
        return EvolutionRefusedError(str(target), found, is_full_refresh, self._node.changed)

    def _query_columns(self, target: SparkEvolveRelation, sql: str) -> spark_types.Struct:
        found, json = self.connections.columns_of(spark_types.no_rows(sql))
        if json is not None:
            return spark_types.columns_from_json(json)
        ambiguous = check_source_names(found)
        if ambiguous:
            raise self._refusal(target, ambiguous)
        _, rows = self.execute(spark_types.types_query(sql, found), fetch=True)
        try:
            return spark_types.columns_from_types(found, [str(text) for text in rows[0]])
        except spark_types.UnreadableType as exc:
            raise UnreadableQueryError(str(target), str(exc)) from exc

    @available.parse(lambda *a, **k: {})
    def plan(
        self,
        target: SparkEvolveRelation,
        staged: SparkEvolveRelation,
        settings: IncrementalSettings,
        column_docs: Mapping[str, str],
    ) -> dict[str, Any]:
        """Return what ``evolve`` would do, and do nothing; the arguments are those of ``evolve``.

        Returns:
            ``relation``, ``changes``, ``projections`` (``column`` and ``expression`` of each), ``removed``,
            ``removed_get`` (what these get), ``ignored``, ``warnings`` and ``refusals`` (texts).
        """
        batch = self.catalog.staged_batch(staged)
        table = self.catalog.load(target)
        # The batch is staged without rows, so it says nothing of NULLs, but for bare ones: NOT NULL is taken
        # to hold.
        batch.columns_without_null -= {names.fold(name) for name in self._node.nulls}
        plan = plan_batch(batch, settings, column_docs, table.schema(), table_facts(table))
        data = plan_data(target, plan, settings)
        return data | {"warnings": [*data["warnings"], *differences(table, settings)]}

    @available.parse(lambda *a, **k: {})
    def plan_new_table(
        self, target: SparkEvolveRelation, sql: str, settings: IncrementalSettings
    ) -> dict[str, Any]:
        """Return what can be told of a model whose table would be created or recreated, without doing so.

        Args:
            target: the table.
            sql: the model's query.
            settings: see ``storable_query``.

        Returns:
            ``relation``, ``creates`` (true), ``is_analysed`` (false if the query cannot be, because what it
            selects from is not there yet), ``columns`` (names), ``warnings`` and ``refusals`` (texts).
        """
        plan: dict[str, Any] = {"relation": str(target), "creates": True, "is_analysed": True}
        plan |= {"columns": [], "warnings": [], "refusals": []}
        try:
            query = self.storable_query(target, sql, settings)
        except EvolutionRefusedError as exc:
            return plan | {"refusals": [str(refusal) for refusal in exc.refusals]}
        except DbtDatabaseError as exc:
            return plan | {"is_analysed": False, "warnings": [f"The model cannot be analysed: {exc.msg}"]}
        return plan | {"columns": query["columns"], "warnings": query["warnings"]}

    @available
    def plan_text(self, plan: Mapping[str, Any]) -> str:
        """Return a plan as a table that a person reads."""
        return plan_table(plan)


def refuse_unreadable(target: SparkEvolveRelation, schema: Schema, changed: Sequence[str] = ()) -> None:
    """Refuse a table that has a column for which Spark has no type: Spark cannot even open it.

    Args:
        target: the table.
        schema: its schema.
        changed: what this run has changed of its columns.

    Raises:
        EvolutionRefusedError: names these columns.
    """
    found = [
        refusals.no_spark_type((field.name,), field.field_type)
        for field in schema.fields
        if not has_spark_type(field.field_type)
    ]
    if found:
        raise EvolutionRefusedError(str(target), found, changed=changed)
