"""Commits to tables of a format version that PyIceberg reads and does not write: they are made in Spark.

A REST catalog writes the metadata of its tables itself, so PyIceberg commits to any table there. For the
other catalogs (SQL, Hive, Glue) PyIceberg would have to write them, and refuses to.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from pyiceberg.catalog import Catalog
from pyiceberg.exceptions import CommitFailedException
from pyiceberg.schema import Schema
from pyiceberg.table import CommitTableRequest, CommitTableResponse, Table, TableIdentifier
from pyiceberg.table.update import (
    AddSchemaUpdate,
    RemovePropertiesUpdate,
    RemoveSnapshotRefUpdate,
    SetCurrentSchemaUpdate,
    SetPropertiesUpdate,
    SetSnapshotRefUpdate,
    TableRequirement,
    TableUpdate,
    ValidatableTableRequirement,
)

from dbt.adapters.sparkevolve.evolution import record
from dbt.adapters.sparkevolve.evolution.column_properties import metrics_of_none
from dbt.adapters.sparkevolve.evolution.table_properties import NEWEST_FORMAT_TO_COMMIT
from dbt.adapters.sparkevolve.evolution.types import fields_within

Name = tuple[str, ...]


@dataclass(frozen=True)
class Commit:
    """One commit to a table.

    Attributes:
        table: the name of the table in its catalog, from the outermost namespace to its own.
        request: requirements and updates, as the REST protocol has them (JSON).
        seen: where the metadata are that the table has to have still, so that nobody has committed anything
            since; None if the requirements say all that has to hold.
    """

    table: Name
    request: str
    seen: str | None


class CommitsInSpark(Protocol):
    """Spark, as far as it makes commits for PyIceberg.

    Each method raises a ``DbtRuntimeError`` with Spark's own answer: it may have taken effect all the same.
    """

    @property
    def is_atomic(self) -> bool:
        """Whether ``commit`` can be called. If not, the others have to be, each of which makes commits."""

    def commit(self, commit: Commit) -> None:
        """Make a commit.

        Raises:
            CommitFailedException: the table is not any more what the commit was decided on for.
        """

    def alter_columns(self, table: Name, before: Schema, after: Schema) -> None:
        """Make one schema of the other."""

    def alter_properties(self, table: Name, values: Mapping[str, str], outdated: tuple[str, ...]) -> None:
        """Set properties, and take others away."""

    def fast_forward(self, table: Name, ref: str, branch: str) -> None:
        """Move ``ref`` to the head of a branch that has come from it."""

    def drop_branch(self, table: Name, branch: str) -> None:
        """Remove a branch, if it is there."""


class CatalogInSpark:
    """Stands for the catalog of a table that PyIceberg cannot commit to."""

    def __init__(self, catalog: Catalog, spark: CommitsInSpark, load: Callable[[Name], Table]) -> None:
        """Commit nothing yet.

        Args:
            catalog: the catalog.
            spark: makes the commits.
            load: returns a table as it is in the catalog now.
        """
        self._catalog = catalog
        self._spark = spark
        self._load = load

    def __getattr__(self, name: str) -> Any:
        """Hand on what a table asks of its catalog beside commits, such as how it is scanned."""
        return getattr(self._catalog, name)

    @property
    def is_atomic(self) -> bool:
        """Whether all that a commit changes of a table is changed at once, or not at all."""
        return self._spark.is_atomic

    def commit(
        self,
        table: Table,
        requirements: tuple[TableRequirement, ...],
        updates: tuple[TableUpdate, ...],
        *,
        as_seen: bool,
    ) -> CommitTableResponse:
        """Commit, as PyIceberg's ``Catalog.commit_table`` does.

        Args:
            table: the table as it was loaded directly before.
            requirements: what has to hold in the catalog.
            updates: the updates.
            as_seen: whether nobody may have committed anything to the table since it was loaded.

        Returns:
            The metadata as they were: nobody needs the new ones, and to load them may fail.

        Raises:
            CommitFailedException: the table is not any more what the updates were decided on for.
            DbtRuntimeError: Spark's own answer; whether the commit was made is not known.
        """
        if self._spark.is_atomic:
            *namespace, name = table.name()
            identifier = TableIdentifier.model_validate({"namespace": namespace, "name": name})
            request = CommitTableRequest(identifier=identifier, requirements=requirements, updates=updates)
            seen = table.metadata_location if as_seen else None
            self._spark.commit(Commit(table.name(), request.model_dump_json(), seen))
        else:
            self._check(table, requirements, as_seen)
            self._run(table, updates)
        return CommitTableResponse.model_validate(
            {"metadata": table.metadata, "metadata-location": table.metadata_location}
        )

    def _check(self, table: Table, requirements: tuple[TableRequirement, ...], as_seen: bool) -> None:
        """See what a statement of Spark's does not: that comes between this and it, nobody notices."""
        now = self._load(table.name())
        if as_seen and now.metadata_location != table.metadata_location:
            raise CommitFailedException("The table has changed since it was looked at")
        for requirement in requirements:
            assert isinstance(requirement, ValidatableTableRequirement)
            requirement.validate(now.metadata)

    def _run(self, table: Table, updates: tuple[TableUpdate, ...]) -> None:
        """Do what updates say: first what all else is about, last what others may look at."""
        spark, name = self._spark, table.name()
        after = _schema_after(table, updates)
        # With these Spark would change no property, nor the name of a column.
        stale = metrics_of_none(table.properties, table.schema())
        if stale:
            spark.alter_properties(name, {}, tuple(stale))
        values: dict[str, str] = {}
        outdated: list[str] = []
        for update in updates:
            if isinstance(update, SetPropertiesUpdate):
                values.update(update.updates)
            elif isinstance(update, RemovePropertiesUpdate):
                outdated += update.removals
        if after is not None:
            spark.alter_columns(name, table.schema(), after)
            now = self._load(name).schema()
            if not _shape(after) <= _shape(now):
                raise CommitFailedException("The columns have changed since they were looked at")
            values = record.renumbered(values, after.schema_id, now.schema_id)
        if values or outdated:
            spark.alter_properties(name, values, tuple(outdated))
        moved = [update.ref_name for update in updates if isinstance(update, SetSnapshotRefUpdate)]
        dropped = [update.ref_name for update in updates if isinstance(update, RemoveSnapshotRefUpdate)]
        # A publication moves one branch to the other, and removes that.
        for ref, branch in zip(moved, dropped, strict=False):
            spark.fast_forward(name, ref, branch)
        for branch in dropped:
            spark.drop_branch(name, branch)


def _schema_after(table: Table, updates: tuple[TableUpdate, ...]) -> Schema | None:
    """Return the schema that updates make the current one; None if that stays."""
    schemas = {schema.schema_id: schema for schema in table.metadata.schemas}
    after = None
    for update in updates:
        if isinstance(update, AddSchemaUpdate):
            schemas[-1] = schemas[update.schema_.schema_id] = update.schema_
        elif isinstance(update, SetCurrentSchemaUpdate):
            after = schemas[update.schema_id]
    return after


def _shape(schema: Schema) -> set[tuple[Name, str, bool]]:
    """Return what a plan is made for: without ids, which Spark gives in its own order."""
    return {
        (path, str(f.field_type) if f.field_type.is_primitive else "", f.required)
        for path, f in fields_within(schema.as_struct())
    }


def with_commits_in_spark(
    table: Table,
    catalog: Catalog,
    spark: CommitsInSpark | None,
    load: Callable[[Name], Table],
    *,
    writes_metadata: bool,
) -> Table:
    """Return a table whose commits are made in Spark, if PyIceberg cannot make them.

    Args:
        table: the table.
        catalog: its catalog.
        spark: what makes them; None if there is no Spark.
        load: returns a table as it is in the catalog now.
        writes_metadata: whether the catalog writes the metadata of its tables itself.
    """
    is_newer = table.metadata.format_version > NEWEST_FORMAT_TO_COMMIT
    if spark is not None and is_newer and not writes_metadata:
        table.catalog = CatalogInSpark(catalog, spark, load)  # type: ignore[assignment]
    return table


def commits_in_spark(table: Table) -> bool:
    """Tell whether the commits to a table are made in Spark."""
    return isinstance(table.catalog, CatalogInSpark)


def is_atomic(table: Table) -> bool:
    """Tell whether all that a commit changes of a table is changed at once, or not at all."""
    catalog: object = table.catalog
    return not isinstance(catalog, CatalogInSpark) or catalog.is_atomic


def conflict(message: str) -> Exception:
    """Return the error of a commit that has met another writer's."""
    return CommitFailedException(message)
