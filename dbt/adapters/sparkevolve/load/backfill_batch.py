"""What a backfill is asked for, and one batch of it while it is under way."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from dbt.adapters.sparkevolve.counts import counted
from dbt.adapters.sparkevolve.evolution.backfills import Bound
from dbt.adapters.sparkevolve.iceberg import branches
from dbt.adapters.sparkevolve.iceberg.base import Base, Head
from dbt.adapters.sparkevolve.relation import SparkEvolveRelation
from dbt.adapters.sparkevolve.settings import IncrementalSettings
from dbt.adapters.sparkevolve.sql import branch_statements


@dataclass(frozen=True)
class Arguments:
    """What a user has asked for; `OPERATIONS` says what each is."""

    column: str
    value: str
    where: str
    batch_by: tuple[str, ...]
    rows_per_batch: int | None
    pause_seconds: float
    max_batches: int | None
    only_null: bool
    plan_only: bool
    restart: bool


@dataclass(frozen=True)
class Batch:
    """Rows that are filled together.

    Attributes:
        last: their last key; empty if the rows have no order.
        rows: how many there are.
        blank: for how many of them the value is NULL.
        lossy: for how many of them something of the value would be lost.
    """

    last: Bound
    rows: int
    blank: int
    lossy: int


@dataclass
class BackfillLoad:
    """One batch under way on a branch of its own; see ``Load`` for what its parts are."""

    target: SparkEvolveRelation
    base: Base
    settings: IncrementalSettings
    column: str
    update: Callable[[str], str]
    now_ms: int
    branch: str | None = field(default_factory=branches.branch_name)
    lost_branches: list[str] = field(default_factory=list)
    is_overtaken: bool = False
    ended_at: float = field(default_factory=time.monotonic)

    def elapsed_ms(self) -> int:
        """Return how long ago the last statement ended, in milliseconds."""
        return int((time.monotonic() - self.ended_at) * 1000)

    @property
    def goes_on_branch(self) -> bool:
        """See ``Stepwise``."""
        return True

    @property
    def written_columns(self) -> tuple[str, ...]:
        """See ``Stepwise``."""
        return (self.column,)

    @property
    def partition_overwrite(self) -> str | None:
        """See ``Stepwise``."""
        return None

    @property
    def cut(self) -> str | None:
        """See ``Stepwise``."""
        minutes = branches.retain_minutes(self.base.cut_at_ms, self.now_ms)
        return branch_statements.create_branch(str(self.target), str(self.branch), self.base.cut_at, minutes)

    @property
    def written(self) -> str:
        """The rendered name of the branch."""
        return branch_statements.branch_of(str(self.target), str(self.branch))

    @property
    def steps(self) -> list[str]:
        """See ``Stepwise``."""
        return [str(self.cut), self.update(self.written)]

    def has_committed(self, step: int, head: Head | None) -> bool:
        """See ``Stepwise``."""
        return head is not None and (step == 0 or head.snapshot_id != self.base.cut_at)

    def cut_again(self) -> None:
        """See ``Stepwise``."""
        self.lost_branches.append(str(self.branch))
        self.branch = branches.branch_name()


def rows_text(number: int) -> str:
    """Return a number of rows as a person reads it."""
    return counted(number, "row")


def batches_text(number: int) -> str:
    """Return a number of batches as a person reads it."""
    return counted(number, "batch", "batches")


def duration_text(seconds: float) -> str:
    """Return a time, given in seconds, as a person reads it."""
    if seconds < 90:
        return f"{seconds:.1f} s" if seconds < 10 else f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 90 * 60 else f"{seconds / 3600:.1f} h"
