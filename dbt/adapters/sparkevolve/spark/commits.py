"""The commits that Spark makes for PyIceberg, see ``iceberg/newer_format.py``."""

from dbt.adapters.spark.connections import SparkConnectionMethod

from dbt.adapters.sparkevolve.credentials import SparkEvolveCredentials
from dbt.adapters.sparkevolve.errors import StatementError
from dbt.adapters.sparkevolve.iceberg.newer_format import Commit
from dbt.adapters.sparkevolve.spark.connections import SparkEvolveConnectionManager
from dbt.adapters.sparkevolve.spark.session_handle import SessionHandle


class SparkCommits:
    """Commits through the connection of this thread: a session has Iceberg's Java library in this process."""

    def __init__(
        self, connections: SparkEvolveConnectionManager, credentials: SparkEvolveCredentials
    ) -> None:
        self._connections = connections
        self._catalog = str(credentials.catalog)
        self._is_session = credentials.method == SparkConnectionMethod.SESSION

    @property
    def is_atomic(self) -> bool:
        """See ``CommitsInSpark``."""
        return self._is_session

    def commit(self, commit: Commit) -> None:
        """See ``CommitsInSpark``."""
        handle = self._connections.get_thread_connection().handle
        if not isinstance(handle, SessionHandle):
            raise StatementError("A Thrift server makes no commit of this kind", "")
        handle.commit(self._catalog, commit)
