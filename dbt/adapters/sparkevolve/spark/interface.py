"""What the rest of the package asks of Spark, and the one class that asks it through dbt's adapter."""

from typing import TYPE_CHECKING, Any, Protocol

from dbt.adapters.sql.impl import SQLAdapter

from dbt.adapters.sparkevolve.evolution.names import quote
from dbt.adapters.sparkevolve.spark.connections import SparkEvolveConnectionManager
from dbt.adapters.sparkevolve.spark.sql_settings import whole_plans

if TYPE_CHECKING:
    import agate


class Spark(Protocol):
    """Spark, as the connection of this thread reaches it.

    Each method raises a ``DbtRuntimeError`` with Spark's own message if Spark refuses, a
    ``ConnectionLostError`` if the connection ends before the answer, and a ``RunCancelledError`` if the run
    has been cancelled.
    """

    def run(self, sql: str) -> "tuple[Any, agate.Table]":
        """Run a statement, and return dbt's response and a table without rows."""

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        """Run a query, and return its rows."""

    def columns_of(self, sql: str) -> tuple[tuple[str, ...], str | None]:
        """Return the names of a query's columns or, if Spark is in this process, the JSON of its schema."""

    def explain(self, sql: str) -> str:
        """Return the whole plan of a query, with all of its names as far as Spark lets one see them."""

    def setting(self, name: str) -> str | None:
        """Return the value that a setting has in the session, None if it has none."""

    def set_partition_overwrite(self, mode: str | None) -> None:
        """Let INSERT OVERWRITE on this connection replace everything, or the partitions it has rows for.

        Args:
            mode: ``static``, ``dynamic``, or None for what the profile says.
        """

    def reconnect(self) -> None:
        """Open the connection again, after it was lost. It is a new session."""


class AdapterSpark:
    """Spark through the connections of a dbt adapter: its statements are logged and cancelled as dbt's."""

    def __init__(self, adapter: SQLAdapter) -> None:
        self._adapter = adapter

    @property
    def _connections(self) -> SparkEvolveConnectionManager:
        connections = self._adapter.connections
        assert isinstance(connections, SparkEvolveConnectionManager)
        return connections

    def run(self, sql: str) -> "tuple[Any, agate.Table]":
        """See ``Spark``."""
        answer: tuple[Any, agate.Table] = self._adapter.execute(sql)
        return answer

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        """See ``Spark``."""
        _, table = self._adapter.execute(sql, fetch=True)
        return [tuple(row) for row in table.rows]

    def columns_of(self, sql: str) -> tuple[tuple[str, ...], str | None]:
        """See ``Spark``."""
        return self._connections.columns_of(sql)

    def explain(self, sql: str) -> str:
        """See ``Spark``."""
        with whole_plans(self._connections.get_thread_connection().handle):
            return str(self.rows(f"EXPLAIN EXTENDED {sql}")[0][0])

    def setting(self, name: str) -> str | None:
        """See ``Spark``."""
        # In backticks: without, all of the statement is the name, also a comment that dbt puts behind it.
        value = str(self.rows(f"SET {quote(name)}")[0][1])
        return None if value == "<undefined>" else value

    def set_partition_overwrite(self, mode: str | None) -> None:
        """See ``Spark``."""
        self._connections.get_thread_connection().handle.set_partition_overwrite(mode)

    def reconnect(self) -> None:
        """See ``Spark``."""
        self._connections.reconnect()
