"""Commits to tables of a format version that PyIceberg reads and does not write: they are made in Spark.

A REST catalog writes the metadata of its tables itself, so PyIceberg commits to any table there. For the
other catalogs (SQL, Hive, Glue) PyIceberg would have to write them, and refuses to.
"""

from dataclasses import dataclass
from typing import Protocol

from pyiceberg.catalog import Catalog, MetastoreCatalog
from pyiceberg.exceptions import CommitFailedException
from pyiceberg.table import CommitTableRequest, CommitTableResponse, Table, TableIdentifier
from pyiceberg.table.update import TableRequirement, TableUpdate

from dbt.adapters.sparkevolve.evolution.table_properties import NEWEST_FORMAT_TO_COMMIT


@dataclass(frozen=True)
class Commit:
    """One commit to a table.

    Attributes:
        table: the name of the table in its catalog, from the outermost namespace to its own.
        request: requirements and updates, as the REST protocol has them (JSON).
        seen: where the metadata are that the table has to have still, so that nobody has committed anything
            since; None if the requirements say all that has to hold.
    """

    table: tuple[str, ...]
    request: str
    seen: str | None


class CommitsInSpark(Protocol):
    """Spark, as far as it makes commits for PyIceberg."""

    @property
    def is_atomic(self) -> bool:
        """Whether a commit is made as one, or else in several statements."""

    def commit(self, commit: Commit) -> None:
        """Make a commit.

        Raises:
            CommitFailedException: the table is not any more what the commit was decided on for.
            DbtRuntimeError: Spark's own answer; whether the commit was made is not known.
        """


class CatalogInSpark:
    """Stands for the catalog of a table that PyIceberg cannot commit to."""

    def __init__(self, spark: CommitsInSpark) -> None:
        self._spark = spark

    @property
    def is_atomic(self) -> bool:
        """Whether a commit is made as one, or else in several statements."""
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
        *namespace, name = table.name()
        identifier = TableIdentifier.model_validate({"namespace": namespace, "name": name})
        request = CommitTableRequest(identifier=identifier, requirements=requirements, updates=updates)
        seen = table.metadata_location if as_seen else None
        self._spark.commit(Commit(table.name(), request.model_dump_json(), seen))
        return CommitTableResponse.model_validate(
            {"metadata": table.metadata, "metadata-location": table.metadata_location}
        )


def with_commits_in_spark(table: Table, catalog: Catalog, spark: CommitsInSpark | None) -> Table:
    """Return a table whose commits are made in Spark, if PyIceberg cannot make them.

    Args:
        table: the table.
        catalog: its catalog.
        spark: what makes them; None if there is no Spark.
    """
    is_newer = table.metadata.format_version > NEWEST_FORMAT_TO_COMMIT
    if spark is not None and is_newer and isinstance(catalog, MetastoreCatalog):
        table.catalog = CatalogInSpark(spark)  # type: ignore[assignment]
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
