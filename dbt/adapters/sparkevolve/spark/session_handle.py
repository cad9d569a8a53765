"""A connection, in dbt's sense, to a Spark session in this process."""

import threading
import time
import uuid
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from dbt.adapters.events.logging import AdapterLogger
from dbt.adapters.spark.connections import SparkConnectionWrapper

from dbt.adapters.sparkevolve.cancellation import Cancellation, stopped
from dbt.adapters.sparkevolve.iceberg.newer_format import Commit, conflict
from dbt.adapters.sparkevolve.redaction import safe
from dbt.adapters.sparkevolve.spark import java_commits
from dbt.adapters.sparkevolve.spark.bindings import literal_value
from dbt.adapters.sparkevolve.spark.nested_values import shown
from dbt.adapters.sparkevolve.spark.progress import PROGRESS, Tasks
from dbt.adapters.sparkevolve.spark.session_errors import alive, commit_error, translated
from dbt.adapters.sparkevolve.spark.sql_settings import PARTITION_OVERWRITE_MODE

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

logger = AdapterLogger("SparkEvolve")

# Spark before 4.0 cannot be told to stop what has not begun: a statement may have many jobs.
_CANCEL_AGAIN_SECONDS = 0.2


class SessionHandle(SparkConnectionWrapper):
    """A connection, in dbt's sense, to a Spark session in this process. Not shared between threads."""

    def __init__(
        self,
        session: "SparkSession",
        name: str,
        configured: "Callable[[dict[str, str]], SparkSession]",
        cancellation: Cancellation | None = None,
    ) -> None:
        self._default = self._session = session
        self._configured = configured
        self._cancellation = cancellation or Cancellation()
        self._name = name
        self._running = _Running(session, name, "")
        self._result: DataFrame | None = None
        self._rows: list[Any] | None = None

    def cursor(self) -> "SessionHandle":
        """Return this handle, empty: it is its own cursor."""
        self._result = None
        self._rows = None
        return self

    def execute(self, sql: str, bindings: Sequence[Any] | None = None) -> None:
        """Run one statement; ``?`` in it stands for a binding.

        Raises:
            StatementError: Spark's answer, shortened.
            SessionEndedError: there is no Spark any more.
            RunCancelledError: the run was cancelled.
        """
        self._cancellation.check_statement(sql)
        self._running = _Running(self._session, self._name, sql)
        with self._watched():
            self._running.mark()
            if bindings:
                self._result = self._session.sql(sql, args=[literal_value(value) for value in bindings])
            else:
                self._result = self._session.sql(sql)

    @contextmanager
    def _watched(self) -> Generator[None, None, None]:
        running = self._running
        with self._cancellation.of_statement(running.cancel), self._translated(running):
            yield

    @contextmanager
    def _translated(self, running: "_Running") -> Generator[None, None, None]:
        running.is_under_way = True
        try:
            if self._cancellation.is_cancelled:
                # The order to stop came before there was anything to be stopped.
                running.cancel()
            with PROGRESS.watched(running.tasks):
                yield
        except KeyboardInterrupt:
            # The second one of dbt's main thread, or one that a program has let through.
            running.cancel()
            raise
        except Exception as exc:
            if self._cancellation.is_cancelled:
                raise stopped(running.sql) from exc
            raise translated(exc, running.sql) from safe(exc)
        finally:
            running.is_under_way = False

    def set_partition_overwrite(self, mode: str | None) -> None:
        """Let INSERT OVERWRITE replace everything (``static``), or the partitions that it has rows for.

        The setting would be that of all threads, so the statements go to a session of their own meanwhile,
        which has all other settings of this one, also those that hooks have made.

        Args:
            mode: ``static``, ``dynamic``, or None for what it was.
        """
        if mode is None:
            self._session = self._default
            return
        wanted = {PARTITION_OVERWRITE_MODE: mode}
        with alive():
            session = self._configured(wanted)
            _take_settings(session, self._default, wanted)
        self._session = session

    def change_setting(self, name: str, value: str | None) -> str | None:
        """Give a setting a value, or with None the one of Spark; return what was set, None if nothing was."""
        with alive():
            settings = _settings_of(self._session)
            before: str | None = settings.get(name)
            if value is None:
                settings.remove(name)
            else:
                settings.put(name, value)
            return before

    def setting(self, name: str) -> str | None:
        """Return the value of a setting in this session, None if it has none."""
        with alive():
            value: str | None = self._session.conf.get(name, None)
            return value

    def commit(self, catalog: str, what: Commit) -> None:
        """Make a commit with Iceberg's Java library.

        Args:
            catalog: the name of the catalog in this session.
            what: the commit.

        Raises:
            CommitFailedException: the table is not any more what the commit was decided on for.
            StatementError: Java's answer; it may not know whether it has committed.
            SessionEndedError: there is no Spark any more.
        """
        try:
            is_as_seen = java_commits.commit(self._session, catalog, what)
        except Exception as exc:
            raise commit_error(exc) from safe(exc)
        if not is_as_seen:
            raise conflict("The table has changed since it was looked at")

    def finish(self) -> None:
        """Run a query whose rows nobody fetches to its end: Spark has only planned it so far.

        Raises:
            StatementError: Spark's answer, shortened.
            SessionEndedError: there is no Spark any more.
        """
        if self._result is None or not self._result.columns:
            return
        with self._watched():
            self._result.write.format("noop").mode("overwrite").save()

    def fetchall(self) -> list[Any]:
        """Return all remaining rows, each a tuple; none after a statement without a result."""
        if self._result is None:
            return []
        if self._rows is None:
            with self._watched():
                self._rows = [shown(row) for row in self._result.collect()]
        rows, self._rows = self._rows, []
        return rows

    def fetchmany(self, size: int) -> list[Any]:
        """Return at most ``size`` rows of the result."""
        if self._result is None:
            return []
        with self._watched():
            return [shown(row) for row in self._result.take(size)]

    def fetchone(self) -> Any:
        """Return the next row, or None."""
        if self._rows is None:
            self._rows = self.fetchall()
        return self._rows.pop(0) if self._rows else None

    @property
    def description(self) -> Any:
        """Name and type of each column of the result, as the DB API describes them."""
        with alive():
            fields = self._result.schema.fields if self._result is not None else []
        return [(f.name, f.dataType.simpleString(), None, None, None, None, f.nullable) for f in fields]

    @property
    def schema_json(self) -> str:
        """The names and types of the result's columns, as Spark writes them in JSON."""
        assert self._result is not None
        with alive():
            return str(self._result._jdf.schema().json())

    def cancel(self) -> None:
        """Stop what this connection is running, from whatever thread."""
        self._running.cancel()

    def close(self) -> None:
        """Let go of the last result. The session stays for the next connection."""
        self.cursor()

    def rollback(self) -> None:
        """Do nothing: Spark has no transactions."""


def _take_settings(session: "SparkSession", other: "SparkSession", more: Mapping[str, str]) -> None:
    """Give a session all settings of another one, and ``more``."""
    # A copy: threads share both sessions, and at no moment may one of these settings be another.
    java: Any = other._jsparkSession
    wanted = java.sessionState().conf().clone().settings()
    for name, value in more.items():
        wanted.put(name, value)
    settings = _settings_of(session)
    settings.putAll(wanted)
    settings.keySet().retainAll(wanted.keySet())


def _settings_of(session: "SparkSession") -> Any:
    """Return what was set in a session, as Java's map of it: Spark's own values are not in it."""
    java: Any = session._jsparkSession
    return java.sessionState().conf().settings()


class _Running:
    """A statement, with what Spark's jobs for it are known by.

    Attributes:
        sql: its text.
        is_under_way: whether a call of Spark has not returned yet.
    """

    def __init__(self, session: "SparkSession", name: str, sql: str) -> None:
        self.sql = sql
        self.is_under_way = False
        self._context = session.sparkContext
        self._id = f"dbt-sparkevolve-{name}-{uuid.uuid4().hex}"

    def mark(self) -> None:
        """Have all jobs that this thread begins from now on counted as this statement's."""
        self._context.setJobGroup(self._id, self._id, interruptOnCancel=True)
        # What a thread of Spark's does for it, such as to send a small table to all tasks, has another group.
        self._context.clearJobTags()
        self._context.addJobTag(self._id)

    def tasks(self) -> Tasks | None:
        """Return how many tasks of its jobs are done; None while it has no job under way."""
        tracker = self._context.statusTracker()
        jobs = [tracker.getJobInfo(job) for job in tracker.getJobIdsForGroup(self._id)]
        stages = [
            tracker.getStageInfo(stage)
            for job in jobs
            if job and job.status == "RUNNING"
            for stage in job.stageIds
        ]
        known = [stage for stage in stages if stage is not None]
        total = sum(stage.numTasks for stage in known)
        return Tasks(sum(stage.numCompletedTasks for stage in known), total) if total else None

    def cancel(self) -> None:
        """Stop its jobs, from whatever thread, and those that it has yet to begin."""
        threading.Thread(target=self._keep_cancelling, daemon=True).start()

    def _keep_cancelling(self) -> None:
        try:
            try:
                self._context._jsc.sc().cancelJobGroupAndFutureJobs(self._id)
            except TypeError:
                pass  # Spark 3.5: py4j finds no such method
            while True:
                self._context.cancelJobGroup(self._id)
                self._context.cancelJobsWithTag(self._id)
                if not self.is_under_way:
                    return
                time.sleep(_CANCEL_AGAIN_SECONDS)
        except Exception as exc:
            logger.debug(f"A statement could not be stopped: {exc}")
