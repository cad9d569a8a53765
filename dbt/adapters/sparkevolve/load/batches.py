"""Batches that are staged next to their tables: their names, and that none is left over."""

import time
from collections.abc import Iterable, Sequence
from typing import Protocol

from dbt.adapters.base.relation import BaseRelation
from dbt.adapters.events.logging import AdapterLogger

from dbt.adapters.sparkevolve.errors import FilesLeftError
from dbt.adapters.sparkevolve.evolution import names
from dbt.adapters.sparkevolve.iceberg import staging
from dbt.adapters.sparkevolve.iceberg.catalog import IcebergCatalog, LoadedTable
from dbt.adapters.sparkevolve.iceberg.guards import newest_ms
from dbt.adapters.sparkevolve.load import gone_metrics
from dbt.adapters.sparkevolve.load.node import Node
from dbt.adapters.sparkevolve.load.steps import Stepwise
from dbt.adapters.sparkevolve.relation import SparkEvolveRelation
from dbt.adapters.sparkevolve.settings import IncrementalSettings
from dbt.adapters.sparkevolve.warning import not_removed, warn_of_rest

logger = AdapterLogger("SparkEvolve")
# A note in a table conflicts with whatever else is committed to it.
_RETRIES = 10


class RelationCache(Protocol):
    """What dbt knows of the relations of a schema: a dbt adapter."""

    def list_relations(self, database: str | None, schema: str) -> Iterable[BaseRelation]:
        """Return the relations of a schema, without a question if it was asked for before."""

    def cache_dropped(self, relation: BaseRelation | None) -> str:
        """Forget a relation."""


class Batches:
    """Names staged batches, and removes them: those of the node that runs, and those of runs that died.

    Args:
        catalog: the catalog.
        cache: what dbt knows of its tables.
        node: the node that runs.
    """

    def __init__(self, catalog: IcebergCatalog, cache: RelationCache, node: Node) -> None:
        self._catalog = catalog
        self._cache = cache
        self._node = node

    def new_name(self, target: SparkEvolveRelation) -> SparkEvolveRelation:
        """Return a new name next to ``target`` for a batch; the table goes when the node has ended."""
        relation = staging.staging_relation(target)
        self._node.staged.append(relation)
        return relation

    def properties(
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
        chosen = [name for name in columns if names.fold(name) in wanted]
        return staging.staging_properties(chosen, variants=self._node.stages_variants)

    def remove_abandoned(self, target: SparkEvolveRelation) -> None:
        """Remove staged batches of ``target`` that killed runs have left behind.

        The candidates come from dbt's cache, so that a run without any costs nothing.
        """
        named = [
            relation
            for relation in self._cache.list_relations(target.database, str(target.schema))
            if staging.is_staging_of(str(relation.identifier), str(target.identifier))
        ]
        for relation in named:
            try:
                if self._is_abandoned(relation, target):
                    logger.info(f"Removing {relation}, which an earlier run left behind")
                    if self._remove(relation):
                        self._cache.cache_dropped(relation)
            except Exception as exc:
                warn_of_rest(f"Whether {relation} was left behind cannot be told: {exc}")

    def begin_replacement(self, target: SparkEvolveRelation, staged: SparkEvolveRelation) -> None:
        """Note in a table by which batch a statement is about to replace it, whatever others have committed.

        A server may run that statement after the run was killed: whoever loads into the table next takes the
        batch away from it, see ``end_replacement``. A table that PyIceberg cannot read is replaced without a
        note: nobody loads into it before it is.

        Raises:
            CommitConflictError: other writers were faster each time.
        """
        table = self._catalog.find_readable(target)
        if table is None:
            return
        end_replacement(self._catalog, target, table)
        note = {staging.REPLACED_BY: staging.token_of(staged)}
        self._catalog.change_properties(target, lambda _: note, _RETRIES)
        self._node.replaced = (target, staged)

    def note_loss(self) -> None:
        """Note, after a statement has failed, whether the batch that was to replace the table is gone."""
        node = self._node
        if node.replaced is None or node.outcome is not None:
            return
        try:
            node.is_batch_lost = self._catalog.find(node.replaced[1]) is None
        except Exception as exc:
            logger.debug(f"Whether {node.replaced[1]} is still there is not known: {exc}")

    def give_back(self) -> None:
        """Remove what the node has staged and branched off, and let other threads go on."""
        node = self._node
        if node.load is not None:
            drop_branches(self._catalog, node.load)
        if node.lock is not None:
            node.lock.release()
        for relation in node.staged:
            is_loaded = node.load is not None and node.load.staged == relation
            is_gone = self._remove(relation, node.load.batch.location if node.load and is_loaded else None)
            if is_gone and node.replaced is not None and node.replaced[1] == relation:
                self._forget_replacement(*node.replaced)

    def _forget_replacement(self, target: SparkEvolveRelation, staged: SparkEvolveRelation) -> None:
        try:
            _forget(self._catalog, target, staging.token_of(staged))
        except Exception as exc:
            # The next run finds the note, and no batch.
            logger.debug(f"By which batch {target} was replaced is still noted in it: {exc}")

    def _is_abandoned(self, relation: BaseRelation, target: SparkEvolveRelation) -> bool:
        table = self._catalog.find(target)
        seen_ms = newest_ms(table.metadata) if table is not None else 0
        try:
            batch = self._catalog.find(relation)
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
            self._catalog.purge(relation, location)
        except FilesLeftError as exc:
            warn_of_rest(exc.msg)
        except Exception as exc:
            warn_of_rest(not_removed(f"The staged batch {relation}", exc))
            return False
        return True


def end_replacement(catalog: IcebergCatalog, target: SparkEvolveRelation, table: LoadedTable) -> None:
    """Take its batch away from a full refresh that may still be replacing a table; without one, do nothing.

    The run that has sent its statement was killed, or began before this one: rows that this one loads would
    be replaced. What has no rows to read any more fails.

    Args:
        catalog: the catalog.
        target: the table.
        table: the same, as it was loaded.
    """
    token = table.properties.get(staging.REPLACED_BY)
    if token is None:
        return
    batch = staging.batch_of(target, token)
    if batch is not None:
        logger.info(
            f"Removing {batch}, by which a full refresh was to replace {target}: it has failed, was killed, "
            "or still runs, and replaces nothing any more"
        )
        still = (
            f"If a server still runs the full refresh that reads it, that replaces the rows of {target} when "
            "it ends: stop it there."
        )
        try:
            catalog.purge(batch)
        except FilesLeftError as exc:
            warn_of_rest(f"{exc.msg} {still}")
        except Exception as exc:
            warn_of_rest(f"{not_removed(str(batch), exc)} {still}")
            return
    _forget(catalog, target, token)


def _forget(catalog: IcebergCatalog, target: SparkEvolveRelation, token: str) -> None:
    """Remove the note that a table is about to be replaced by the batch with this token."""

    def removal(table: LoadedTable) -> dict[str, str | None]:
        if table.properties.get(staging.REPLACED_BY) != token:
            return {}
        # The run may have been killed as soon as it had replaced the table.
        return {staging.REPLACED_BY: None, **gone_metrics.removals(target, table)}

    catalog.change_properties(target, removal, _RETRIES)


def drop_branches(catalog: IcebergCatalog, load: Stepwise) -> None:
    """Remove the branches of a load; one that stays is no failure."""
    for branch in filter(None, (load.branch, *load.lost_branches)):
        try:
            catalog.drop_branch(load.target, branch)
        except Exception as exc:
            warn_of_rest(not_removed(f"The branch {branch} of {load.target}", exc))
