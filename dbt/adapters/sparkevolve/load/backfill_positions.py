"""What a table tells of one backfill: where it is, and where it was before others have removed that."""

from collections.abc import Mapping

from dbt.adapters.sparkevolve.evolution import backfills
from dbt.adapters.sparkevolve.evolution.backfills import Position, Request
from dbt.adapters.sparkevolve.iceberg.catalog import IcebergCatalog, LoadedTable


class Positions:
    """The positions of a backfill.

    Args:
        catalog: the catalog.
        request: what the backfill is asked to do.
        field_id: the id of the column that it fills.
    """

    def __init__(self, catalog: IcebergCatalog, request: Request, field_id: int) -> None:
        self._catalog = catalog
        self._request = request
        self._field_id = field_id

    def own(self, properties: Mapping[str, str]) -> Position | None:
        """Return where the backfill is by a table's properties; None if they tell of another, or of none."""
        try:
            found = backfills.read(properties, self._field_id)
        except backfills.SpoiledPosition:
            return None
        return found if found is not None and self._request.is_of(found) else None

    def settled(self, table: LoadedTable, ref: str, found: Position) -> Position | None:
        """Return a position as it is, whichever of what it has noted was published; see ``Position``.

        Raises:
            UnknownPosition: nobody can tell any more.
        """
        head = table.metadata.refs.get(ref)
        return found.settled(
            head.snapshot_id if head is not None else None,
            lambda snapshot, base: self._catalog.was_published(table, ref, snapshot, base),
        )

    def has_rows(self, table: LoadedTable, ref: str, found: Position) -> bool | None:
        """Tell whether a table has the rows that were filled up to a position; None if nobody knows."""
        return found.snapshot is None or self._catalog.has_rows_in(table, ref, found.snapshot)

    def last(
        self, table: LoadedTable, ref: str, since: LoadedTable, position: Position | None
    ) -> Position | None:
        """Return where the backfill was when another command has made the table forget that.

        Also if that has begun and ended before this one's first batch. What was rolled back since, or
        replaced by a full refresh, counts for nothing: those rows are to be filled.

        Args:
            table: the table now.
            ref: the branch that is filled.
            since: the table when this command began.
            position: where this command has left the backfill; None if it has filled no batch.

        Raises:
            UnknownPosition: nobody can tell any more, and to fill rows once more would not be the same.
        """
        # Each as it was noted last.
        found: dict[Position, Position] = {}
        for properties in self._catalog.properties_since(table, since):
            there = self.own(properties)
            if there is not None:
                found.pop(there.unnoted, None)
                found[there.unnoted] = there
        old = self.own(since.properties)
        if old is not None:
            # With a position of before this command does not go on: it says nothing of what has come since.
            found.pop(old.unnoted, None)
        for there in reversed(found.values()):
            try:
                settled = self.settled(table, ref, there)
                if settled is None:
                    break
                # Before its first batch there is nothing that could be done twice.
                has_rows = settled.after is not None and self.has_rows(table, ref, settled)
                if has_rows:
                    return settled
                if has_rows is None:
                    raise backfills.UnknownPosition("its last batch")
            except backfills.UnknownPosition:
                if position is None:
                    raise
                break
        return position
