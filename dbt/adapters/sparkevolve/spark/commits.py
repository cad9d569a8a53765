"""The commits that Spark makes for PyIceberg, see ``iceberg/newer_format.py``."""

from collections.abc import Callable, Mapping

from dbt.adapters.spark.connections import SparkConnectionMethod
from pyiceberg.schema import Schema

from dbt.adapters.sparkevolve.credentials import SparkEvolveCredentials
from dbt.adapters.sparkevolve.evolution.names import quote
from dbt.adapters.sparkevolve.iceberg.newer_format import Commit, Name
from dbt.adapters.sparkevolve.spark.connections import SparkEvolveConnectionManager
from dbt.adapters.sparkevolve.spark.interface import Spark
from dbt.adapters.sparkevolve.spark.session_handle import SessionHandle
from dbt.adapters.sparkevolve.sql import alterations, branch_statements


class SparkCommits:
    """Commits through the connection of this thread.

    A session has Iceberg's Java library in this process. A Thrift server takes statements only.
    """

    def __init__(
        self,
        connections: SparkEvolveConnectionManager,
        credentials: SparkEvolveCredentials,
        catalog: str,
        spark: Spark,
        literal: Callable[[str], str],
    ) -> None:
        """Commit nothing yet.

        Args:
            connections: the connections.
            credentials: the profile.
            catalog: the name of the tables' catalog.
            spark: runs statements.
            literal: returns a text as one token.
        """
        self._connections = connections
        self._catalog = catalog
        self._spark = spark
        self._literal = literal
        self._is_session = credentials.method == SparkConnectionMethod.SESSION

    @property
    def is_atomic(self) -> bool:
        """See ``CommitsInSpark``."""
        return self._is_session

    def commit(self, commit: Commit) -> None:
        """See ``CommitsInSpark``."""
        handle = self._connections.get_thread_connection().handle
        assert isinstance(handle, SessionHandle)
        handle.commit(self._catalog, commit)

    def alter_columns(self, table: Name, before: Schema, after: Schema) -> None:
        """See ``CommitsInSpark``."""
        self._run(alterations.alter_columns(self._rendered(table), before, after, self._literal))

    def alter_properties(self, table: Name, values: Mapping[str, str], outdated: tuple[str, ...]) -> None:
        """See ``CommitsInSpark``."""
        self._run(alterations.alter_properties(self._rendered(table), values, outdated, self._literal))

    def fast_forward(self, table: Name, ref: str, branch: str) -> None:
        """See ``CommitsInSpark``."""
        inside = ".".join(map(quote, table))
        self._run([branch_statements.fast_forward(self._catalog, inside, ref, branch)])

    def drop_branch(self, table: Name, branch: str) -> None:
        """See ``CommitsInSpark``."""
        self._run([branch_statements.drop_branch(self._rendered(table), branch)])

    def _rendered(self, table: Name) -> str:
        return ".".join(map(quote, (self._catalog, *table)))

    def _run(self, statements: list[str]) -> None:
        for sql in statements:
            self._spark.run(sql)
