"""The statements that load a batch, each exactly once: whatever becomes of the connection or of others."""

import time
from typing import TYPE_CHECKING, Any, Protocol

from dbt.adapters.contracts.connection import AdapterResponse
from dbt.adapters.events.logging import AdapterLogger
from dbt_common.exceptions import DbtDatabaseError, DbtRuntimeError

from dbt.adapters.sparkevolve.errors import (
    ConnectionLostError,
    RepeatedKeyError,
    RunCancelledError,
    TableChangedError,
    may_have_taken_effect,
)
from dbt.adapters.sparkevolve.iceberg.base import Base, Head
from dbt.adapters.sparkevolve.iceberg.catalog import IcebergCatalog
from dbt.adapters.sparkevolve.iceberg.retry import wait_seconds
from dbt.adapters.sparkevolve.load.load import Load
from dbt.adapters.sparkevolve.messages import (
    is_conflict_in_spark,
    is_merge_ambiguous,
    is_name_not_found,
    is_snapshot_gone,
)
from dbt.adapters.sparkevolve.relation import SparkEvolveRelation
from dbt.adapters.sparkevolve.settings import IncrementalSettings
from dbt.adapters.sparkevolve.spark.interface import Spark
from dbt.adapters.sparkevolve.sql import batch_queries

if TYPE_CHECKING:
    import agate

logger = AdapterLogger("SparkEvolve")

# How many keys a message shows.
_SHOWN = 3
_MOST_CONNECTIONS_LOST = 3


class Stepwise(Protocol):
    """What is done to a table in steps: a ``Load``, or a batch of a backfill; see ``Load`` for its parts."""

    target: SparkEvolveRelation
    base: Base
    settings: IncrementalSettings
    branch: str | None
    lost_branches: list[str]
    is_overtaken: bool

    @property
    def goes_on_branch(self) -> bool:
        """Whether what the steps write becomes visible when a branch is published."""

    @property
    def cut(self) -> str | None:
        """The statement that cuts the branch off, if there is one to be cut."""

    @property
    def steps(self) -> list[str]:
        """All statements, to be run one by one in this order."""

    @property
    def written_columns(self) -> tuple[str, ...]:
        """The columns of the table that they write."""

    @property
    def partition_overwrite(self) -> str | None:
        """How INSERT OVERWRITE has to work meanwhile; None where there is none."""

    def has_committed(self, step: int, head: Head | None) -> bool:
        """Tell whether a step has taken effect, by the last snapshot of the branch."""

    def cut_again(self) -> None:
        """Go on with a new branch."""


class Steps:
    """Runs the steps of a load.

    Args:
        catalog: the catalog.
        spark: where the node runs.
    """

    def __init__(self, catalog: IcebergCatalog, spark: Spark) -> None:
        self._catalog = catalog
        self._spark = spark

    def run(self, load: Stepwise, step: int) -> "tuple[Any, agate.Table]":
        """Run one step, once more where that is safe.

        A step of a load into a branch is done again if its connection is lost, or if its commit meets another
        writer's. Of a load that has been overtaken no step is run.

        Args:
            load: the load.
            step: the number of the step, see ``Load.steps``. Those before it are done.

        Returns:
            dbt's response and a table without rows.

        Raises:
            ConnectionLostError: the connection was lost, again and again if the step may be done again.
            RunCancelledError: the run has been cancelled.
            RepeatedKeyError: a MERGE has several rows for one of the table.
            TableChangedError: others have taken away what the batch goes into.
            DbtRuntimeError: Spark's own answer.
        """
        if load.is_overtaken:
            return _done()
        try:
            return self._spark.run(load.steps[step])
        except RunCancelledError:
            raise
        except ConnectionLostError:
            if load.branch is None:
                raise
            return self._resume_after_lost_connection(load, step)
        except DbtRuntimeError as exc:
            return self._after_failure(load, step, exc)

    def _after_failure(self, load: Stepwise, step: int, error: DbtRuntimeError) -> "tuple[Any, agate.Table]":
        """Do what can be done after Spark has refused a step, or raise an error that helps."""
        try:
            if isinstance(load, Load) and load.merge_key is not None and is_merge_ambiguous(str(error)):
                raise self._repeated_key(load) from error
            self._explain_by_concurrent_change(load, error)
            if self._is_overtaken(load, step, error):
                return _done()
            if load.branch is None or not is_conflict_in_spark(str(error)):
                raise error
            return self._try_again(load, step)
        except DbtRuntimeError as exc:
            # That the catalog is away now may be the cause, or come after a commit.
            is_unknown = may_have_taken_effect(exc)
            is_told = isinstance(exc, ConnectionLostError | RunCancelledError)
            if load.goes_on_branch or is_told or (step == 0 and not is_unknown):
                raise
            raise DbtDatabaseError(
                f"{exc.msg}\n{_told_of_direct(load, step, is_unknown=is_unknown)}"
            ) from exc

    def _explain_by_concurrent_change(self, load: Stepwise, error: DbtRuntimeError) -> None:
        """Raise an error that explains another one, if others have taken away what the batch goes into."""
        try:
            self._catalog.check_columns(load.target, load.base, load.written_columns)
        except TableChangedError as changed:
            raise changed from error
        except Exception as exc:
            logger.debug(f"Why a statement failed cannot be looked up in the catalog: {exc}")

    def _try_again(self, load: Stepwise, step: int) -> "tuple[Any, agate.Table]":
        """Have the steps of a load up to ``step`` done on a new branch: a commit met another writer's.

        Spark tries the commits of an INSERT again, and not those of a CREATE BRANCH. Whether a commit was
        made after all does not matter: nobody publishes the old branch.

        Raises:
            DbtRuntimeError: Spark's last answer.
        """
        retries = load.settings.commit_retries
        for number in range(retries + 1):
            time.sleep(wait_seconds(number))
            load.cut_again()
            try:
                return self._run_up_to(load, step)
            except DbtRuntimeError as exc:
                if (
                    isinstance(exc, ConnectionLostError)
                    or number == retries
                    or not is_conflict_in_spark(str(exc))
                ):
                    raise
        raise AssertionError("retries is negative")

    def _resume_after_lost_connection(self, load: Stepwise, step: int) -> "tuple[Any, agate.Table]":
        """Have the steps of a load up to ``step`` done, each exactly once, after a connection was lost.

        The server may still be running the statement. If the catalog shows that it has committed, it is done;
        if not, all is done again on a new branch, so that what it writes later is never published. The old
        branch stays until the node ends: a commit to one that is gone would recreate it, to stay for ever.

        Raises:
            ConnectionLostError: the connection was lost again and again.
        """
        lost: ConnectionLostError | None = None
        for _ in range(_MOST_CONNECTIONS_LOST):
            self._spark.reconnect()
            try:
                # A new connection is a new session, for the statements that follow as well.
                if load.partition_overwrite:
                    self._spark.set_partition_overwrite(load.partition_overwrite)
                if load.has_committed(step, self._catalog.head(load.target, str(load.branch))):
                    return _done()
                logger.info(
                    f"The connection to Spark was lost: loading into {load.target} again, on a new branch"
                )
                load.cut_again()
                return self._run_up_to(load, step)
            except ConnectionLostError as exc:
                lost = exc
        assert lost is not None
        raise lost

    def _run_up_to(self, load: Stepwise, step: int) -> "tuple[Any, agate.Table]":
        answer = _done()
        for number, sql in enumerate(load.steps[: step + 1]):
            try:
                answer = self._spark.run(sql)
            except DbtRuntimeError as exc:
                if not self._is_overtaken(load, number, exc):
                    raise
                return _done()
        return answer

    def _is_overtaken(self, load: Stepwise, step: int, error: DbtRuntimeError) -> bool:
        """Tell, and note, whether what a branch is cut from serves no more, since others have committed.

        It may have expired. Or it is not the table's last snapshot any more, and Iceberg looks the names in a
        filter up in its schema, which does not have those that were changed since it was written.
        """
        if load.branch is None:
            return False
        is_gone = step == 0 and load.cut is not None and is_snapshot_gone(str(error))
        if is_gone or (is_name_not_found(str(error)) and self._is_committed_to(load)):
            load.is_overtaken = True
        return load.is_overtaken

    def _is_committed_to(self, load: Stepwise) -> bool:
        before = load.base.table.metadata.current_snapshot_id
        try:
            return self._catalog.load(load.target).metadata.current_snapshot_id != before
        except Exception as exc:
            logger.debug(f"Whether others have committed cannot be looked up in the catalog: {exc}")
            return False

    def _repeated_key(self, load: Load) -> RepeatedKeyError:
        assert load.merge_key is not None
        rows = self._spark.rows(batch_queries.repeated_keys(str(load.staged), load.merge_key, _SHOWN))
        examples = [tuple(None if value is None else str(value) for value in row) for row in rows]
        return RepeatedKeyError(str(load.target), load.plan.unique_key, examples)


def _told_of_direct(load: Stepwise, step: int, *, is_unknown: bool) -> str:
    """Return what to say of the table where a statement has failed that readers see the effect of at once."""
    direct = "The model's `publish` is 'direct'"
    if is_unknown and step == 0:
        return (
            f"{direct}, and nobody has told whether this statement has taken effect: look whether "
            f"{load.target} has the rows of this run before you run it again."
        )
    if is_unknown:
        return (
            f"{direct}, so the statement before this one has taken effect, and nobody has told whether this "
            f"one has: if not, readers of {load.target} do not see the rows that this run was to replace "
            "until it runs again."
        )
    return (
        f"{direct}, so the statement before this one has taken effect: readers of {load.target} do not see "
        "the rows that this run was to replace until it runs again."
    )


def _done() -> "tuple[Any, agate.Table]":
    """Return the answer to a statement that has been run already, or is not to be."""
    from dbt_common.clients.agate_helper import empty_table

    return AdapterResponse("OK"), empty_table()  # type: ignore[no-untyped-call]
