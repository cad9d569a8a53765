"""The gateway to the Iceberg catalog. All of this adapter's PyIceberg input and output happens here."""

import random
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from dbt.adapters.base.relation import BaseRelation
from pyiceberg.catalog import Catalog, load_catalog
from pyiceberg.exceptions import CommitFailedException, NoSuchNamespaceError, NoSuchTableError
from pyiceberg.manifest import DataFileContent
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.types import ListType, MapType, StructType

from dbt.adapters.sparkevolve.catalog_settings import CatalogSettings
from dbt.adapters.sparkevolve.errors import (
    CommitConflictError,
    NotIcebergError,
    short_message,
)
from dbt.adapters.sparkevolve.evolution.changes import AddColumn
from dbt.adapters.sparkevolve.evolution.names import fold
from dbt.adapters.sparkevolve.evolution.plan import EvolutionPlan
from dbt.adapters.sparkevolve.relation import table_identifier

_FIRST_WAIT_SECONDS = 0.05
_LONGEST_WAIT_SECONDS = 5.0
COMMENT_PROPERTY = "comment"

Result = TypeVar("Result")


class StagedBatch:
    """What the catalog knows of a staged batch without reading it.

    Attributes:
        schema: the exact types of what the model returned.
        rows: how many rows it has.
        columns_without_null: folded names of the top-level columns that are known to hold no NULL.
    """

    def __init__(self, table: Table) -> None:
        self.schema: Schema = table.schema()
        files = [task.file for task in table.scan().plan_files()]
        self.rows: int = sum(f.record_count for f in files if f.content == DataFileContent.DATA)
        self.columns_without_null = frozenset(
            fold(field.name)
            for field in self.schema.fields
            if not isinstance(field.field_type, StructType | ListType | MapType)
            and all((f.null_value_counts or {}).get(field.field_id) == 0 for f in files)
        )


class IcebergCatalog:
    """The tables of one catalog.

    Safe to share between threads: PyIceberg's catalogs keep no state of a table, and the connection pool
    of a SQL catalog is shared by design.
    """

    def __init__(self, settings: CatalogSettings) -> None:
        self._settings = settings
        self._lock = threading.Lock()
        self._loaded: Catalog | None = None

    @property
    def name(self) -> str:
        """The catalog's name."""
        return self._settings.name

    @property
    def _catalog(self) -> Catalog:
        with self._lock:
            if self._loaded is None:
                self._settings.prepare()
                self._loaded = load_catalog(self._settings.name, **self._settings.pyiceberg)
            return self._loaded

    def load(self, relation: BaseRelation) -> Table:
        """Return the table, as it is in the catalog now.

        Raises:
            NotIcebergError: the catalog has no such table.
        """
        table = self.find(relation)
        if table is None:
            raise NotIcebergError(str(relation), self.name)
        return table

    def find(self, relation: BaseRelation) -> Table | None:
        """Return the table, or None if the catalog has no such table: a view, another format, or nothing."""
        if relation.database not in (None, self.name) or not all(table_identifier(relation)):
            return None
        try:
            return self._catalog.load_table(table_identifier(relation))
        except (NoSuchTableError, NoSuchNamespaceError):
            return None

    def table_names(self, schema: str) -> frozenset[str]:
        """Return the names of the Iceberg tables in ``schema``; none if there is no such schema."""
        try:
            return frozenset(identifier[-1] for identifier in self._catalog.list_tables((schema,)))
        except NoSuchNamespaceError:
            return frozenset()

    def namespace_exists(self, schema: str) -> bool:
        """Tell whether the catalog has the schema ``schema``."""
        return self._catalog.namespace_exists((schema,))

    def staged_batch(self, relation: BaseRelation) -> StagedBatch:
        """Read the schema, the row count and the NULL counts of a staged batch.

        Raises:
            NotIcebergError: there is no such table. It is never taken for a batch without columns.
        """
        return StagedBatch(self.load(relation))

    def purge(self, relation: BaseRelation) -> None:
        """Remove a table and its files, if it is there."""
        try:
            self._catalog.purge_table(table_identifier(relation))
        except NoSuchTableError:
            pass

    def evolve(
        self,
        relation: BaseRelation,
        decide: Callable[[Schema], EvolutionPlan],
        retries: int,
    ) -> EvolutionPlan:
        """Make all changes of a plan in one commit; without changes, make no commit.

        Each attempt loads the table again and decides again, so a column that another writer has added
        in the meantime is not added twice.

        Args:
            relation: the table.
            decide: returns the plan for the table's current schema; raises to refuse.
            retries: how often to try again after a conflict.

        Returns:
            The plan that was carried out.

        Raises:
            NotIcebergError: the catalog has no such table.
            CommitConflictError: each attempt met another writer.
        """

        def attempt(table: Table) -> EvolutionPlan:
            plan = decide(table.schema())
            _commit_columns(table, plan.changes)
            return plan

        return self._retry(relation, attempt, retries)

    def set_docs(
        self,
        relation: BaseRelation,
        comment: str | None,
        column_docs: Mapping[str, str],
        retries: int,
    ) -> None:
        """Store descriptions that differ from what the table has; without a difference make no commit.

        Args:
            relation: the table.
            comment: the table's description, or None to leave it as it is.
            column_docs: descriptions by folded column name; columns that the table lacks are left out.
            retries: how often to try again after a conflict.
        """

        def attempt(table: Table) -> None:
            changed = {
                field.name: column_docs[fold(field.name)]
                for field in table.schema().fields
                if fold(field.name) in column_docs and column_docs[fold(field.name)] != (field.doc or "")
            }
            new_comment = comment is not None and comment != table.properties.get(COMMENT_PROPERTY, "")
            if not changed and not new_comment:
                return
            with table.transaction() as transaction:
                if changed:
                    with transaction.update_schema() as update:
                        for name, doc in changed.items():
                            update.update_column((name,), doc=doc)
                if new_comment:
                    transaction.set_properties({COMMENT_PROPERTY: comment})

        self._retry(relation, attempt, retries)

    def _retry(self, relation: BaseRelation, attempt: Callable[[Table], Result], retries: int) -> Result:
        for number in range(retries + 1):
            table = self.load(relation)
            try:
                return attempt(table)
            except Exception as exc:
                if not _is_conflict(exc):
                    raise
                if number == retries:
                    raise CommitConflictError(str(relation), number + 1, short_message(str(exc))) from exc
                time.sleep(_wait_seconds(number))
        raise AssertionError("retries is negative")


def _is_conflict(exc: Exception) -> bool:
    """Tell whether a commit failed because someone else committed first.

    PyIceberg 0.12 reports some conflicts as a plain ValueError with this text.
    """
    return isinstance(exc, CommitFailedException) or (
        isinstance(exc, ValueError) and "Cannot add snapshot with sequence number" in str(exc)
    )


def _wait_seconds(attempt: int) -> float:
    """Return how long to wait after attempt number ``attempt``: twice as long each time, with jitter."""
    return random.uniform(0.5, 1.0) * min(_FIRST_WAIT_SECONDS * 2.0**attempt, _LONGEST_WAIT_SECONDS)


def _commit_columns(table: Table, changes: Sequence[AddColumn]) -> None:
    if not changes:
        return
    with table.update_schema() as update:
        for change in changes:
            # A tuple of one: a dot in the name is part of it, not a path.
            update.add_column((change.name,), change.type, doc=change.doc, required=False)
