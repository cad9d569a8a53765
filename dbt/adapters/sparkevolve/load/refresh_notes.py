"""What a table's properties say of backfills, while a full refresh replaces the rows that these are about."""

from collections.abc import Mapping

from dbt.adapters.events.logging import AdapterLogger

from dbt.adapters.sparkevolve.evolution import backfills
from dbt.adapters.sparkevolve.iceberg.catalog import IcebergCatalog, LoadedTable
from dbt.adapters.sparkevolve.load.load import Load
from dbt.adapters.sparkevolve.settings import Strategy

logger = AdapterLogger("SparkEvolve")


class RefreshNotes:
    """Notes of full refreshes, in the properties of their tables; a load of another strategy has none.

    Args:
        catalog: the catalog.
    """

    def __init__(self, catalog: IcebergCatalog) -> None:
        self._catalog = catalog

    def note(self, load: Load, snapshot: int | None) -> None:
        """Note where backfills are that all rows are about to be replaced, if another commit does that.

        Args:
            load: the full refresh, or any other load.
            snapshot: what is about to be published; None if the rows go straight into the table.
        """
        if load.settings.strategy != Strategy.FULL_REFRESH:
            return

        def notes(table: LoadedTable) -> Mapping[str, str | None]:
            ref = table.metadata.refs.get(load.base.ref)
            now = ref.snapshot_id if ref is not None else None
            return backfills.refreshed(
                table.properties, snapshot, now if snapshot is None else load.base.head
            )

        self._catalog.change_properties(load.target, notes, load.settings.commit_retries)

    def withdraw(self, load: Load) -> None:
        """Remove the note of a full refresh that has failed before it has replaced anything."""
        if load.settings.strategy != Strategy.FULL_REFRESH:
            return

        def notes(table: LoadedTable) -> Mapping[str, str | None]:
            ref = table.metadata.refs.get(load.base.ref)
            return backfills.withdrawn(table.properties, ref.snapshot_id if ref is not None else None)

        try:
            self._catalog.change_properties(load.target, notes, load.settings.commit_retries)
        except Exception as exc:
            logger.debug(f"The note of this full refresh was not removed from {load.target}: {exc}")

    def forget(self, load: Load) -> None:
        """Remove where backfills are, after a full refresh whose own commit could not do it.

        Also where batches have been published while it was under way; not of those begun after it.
        """
        if load.settings.strategy != Strategy.FULL_REFRESH:
            return

        def removals(table: LoadedTable) -> Mapping[str, str | None]:
            return backfills.replaced(
                table.properties,
                lambda snapshot: self._catalog.is_since_overwrite(table, load.base, snapshot),
            )

        try:
            self._catalog.change_properties(load.target, removals, load.settings.commit_retries)
        except Exception as exc:
            # The rows are there, and what was noted before says so.
            logger.debug(f"Where backfills are was not removed from {load.target}: {exc}")


def forgotten(load: Load, properties: Mapping[str, str]) -> tuple[str, ...]:
    """Return which of a table's properties tell of backfills whose rows a load replaces."""
    is_full_refresh = load.settings.strategy == Strategy.FULL_REFRESH
    return backfills.properties_in(properties) if is_full_refresh else ()
