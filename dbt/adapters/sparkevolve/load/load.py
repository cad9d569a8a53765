"""A load under way: what a run does to its table, from the evolved schema to the published rows."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from pyiceberg.types import IcebergType

from dbt.adapters.sparkevolve.evolution import names, record
from dbt.adapters.sparkevolve.evolution.changes import AddColumn, AddField, RemoveDefault, RenameField
from dbt.adapters.sparkevolve.evolution.defaults import DefaultValue
from dbt.adapters.sparkevolve.evolution.partitions import PartitionValue
from dbt.adapters.sparkevolve.evolution.plan import EvolutionPlan
from dbt.adapters.sparkevolve.evolution.policy import Condition
from dbt.adapters.sparkevolve.evolution.types import named_by_sql
from dbt.adapters.sparkevolve.iceberg import branches
from dbt.adapters.sparkevolve.iceberg.base import Base, Head
from dbt.adapters.sparkevolve.iceberg.older_partitions import partition_values
from dbt.adapters.sparkevolve.iceberg.staged_batch import StagedBatch
from dbt.adapters.sparkevolve.load import plan_report
from dbt.adapters.sparkevolve.load.readers import replaced_warnings
from dbt.adapters.sparkevolve.load.strategies import (
    is_loaded,
    keeps_values,
    load_key,
    load_statements,
    overwrites_older_partitions,
    partition_overwrite,
    window,
)
from dbt.adapters.sparkevolve.load.table_differences import differences
from dbt.adapters.sparkevolve.relation import SparkEvolveRelation
from dbt.adapters.sparkevolve.settings import IncrementalSettings, Strategy
from dbt.adapters.sparkevolve.sql import branch_statements, dml
from dbt.adapters.sparkevolve.sql.mentions import mentions


@dataclass
class Load:
    """What the macros ask and do, for one batch and one state of the table.

    Attributes:
        target: the table.
        staged: the batch.
        base: the state of the table that the run started from.
        batch: what is known of the batch.
        plan: what was decided.
        settings: the model's.
        now_ms: when the load began, in milliseconds since the epoch.
        branch: the branch of the table that the batch is loaded into; None where it goes straight in.
        has_said_differences: whether this dbt command has said what of the model its table does not have.
        lost_branches: branches that were given up, which the server may still write to.
        is_visible: whether what was loaded into a branch was published.
        is_overtaken: whether what it starts from is gone, so that it can only begin again.
        properties: what the commit that publishes sets of the table's properties, and removes with None.
        is_new_shape: whether no batch with these columns was loaded before without a change of the schema.
        older: what to say of a batch that has the columns of an older schema; empty for another.
        ended_at: when the last statement ended, by this process's own monotonic clock, in seconds.
    """

    target: SparkEvolveRelation
    staged: SparkEvolveRelation
    base: Base
    batch: StagedBatch
    plan: EvolutionPlan
    settings: IncrementalSettings
    now_ms: int
    branch: str | None = field(init=False)
    has_said_differences: bool = field(init=False, default=False)
    lost_branches: list[str] = field(init=False, default_factory=list)
    is_visible: bool = field(init=False, default=False)
    is_overtaken: bool = field(init=False, default=False)
    properties: Mapping[str, str | None] = field(init=False, default_factory=dict)
    is_new_shape: bool = field(init=False, default=False)
    older: str = field(init=False, default="")
    ended_at: float = field(init=False, default_factory=time.monotonic)

    def __post_init__(self) -> None:
        on_branch = self.goes_on_branch and is_loaded(self.batch, self.settings)
        self.branch = branches.branch_name() if on_branch else None

    def elapsed_ms(self) -> int:
        """Return how long ago the last statement ended, in milliseconds."""
        return int((time.monotonic() - self.ended_at) * 1000)

    @property
    def goes_on_branch(self) -> bool:
        """Whether the batch goes into a branch, and becomes visible when that is published.

        Values that the model does not return are nowhere but in the rows that are deleted. A run that ended
        between a DELETE and an INSERT of their own commits would take them away, whoever ran it again.
        """
        return self.settings.publish == "branch" or keeps_values(self.plan, self.settings)

    @property
    def changes(self) -> list[str]:
        """The changes that were made to the table's schema, as texts."""
        return [str(change) for change in self.plan.changes]

    @property
    def logged_changes(self) -> list[str]:
        """These without those that a warning tells of."""
        return [
            str(change)
            for change in self.plan.changes
            if not (isinstance(change, RemoveDefault) and change.is_warned_of)
        ]

    def warnings(self, unique_id: str, graph: Mapping[str, Any]) -> list[str]:
        """Return what the user should know, each text with the name of the table.

        Args:
            unique_id: dbt's id of the model.
            graph: dbt's ``graph``, for who reads a column that is replaced.
        """
        found = self._warnings
        replaces_all = self.settings.strategy == Strategy.FULL_REFRESH
        if self.plan.replaced:
            found += replaced_warnings(self.plan, unique_id, graph, replaces_all_rows=replaces_all)
        setting = self.settings.replacing[1]
        found += [
            f"the {setting} column {names.quote(name)} is new. "
            + (
                "It is NULL in all older rows, so they do not match the batch and stay."
                if default is None
                else f"It is {default}, its default, in all older rows: the batch replaces those that it "
                "matches by that."
            )
            for name, default in self._new_keys
            if not replaces_all
        ]
        found += [
            f"`incremental_predicates` name {names.path_text(path)} ({text.strip()}), which is new. It is "
            "NULL in all older rows: those for which the condition does not hold then stay."
            for text, path in self._new_in_limits
            if not replaces_all
        ]
        return [f"{self.target}: {text}" for text in found]

    @property
    def _warnings(self) -> list[str]:
        return [
            *self.plan.warnings,
            *self._differences,
            *self._older_partitions_warning,
            *self._window_warning,
        ]

    @property
    def catalog(self) -> str:
        """The name of the table's catalog, also where a project names none."""
        return self.target.database or str(self.base.table.catalog.name)

    @cached_property
    def older_partitions(self) -> tuple[PartitionValue, ...]:
        """What makes a row's partition, where some that are overwritten are in files of an older spec."""
        if not overwrites_older_partitions(self.base, self.settings):
            return ()
        renames = {c.path: c.new_name for c in self.plan.changes if isinstance(c, RenameField)}
        return tuple(
            replace(
                value,
                path=tuple(renames.get(value.path[: i + 1], name) for i, name in enumerate(value.path)),
            )
            for value in partition_values(self.base.table)
        )

    @property
    def _older_partitions_warning(self) -> list[str]:
        if not self.older_partitions:
            return []
        table = names.string_literal(str(self.target.include(database=False)))
        return [
            "The table has files from before its partitioning was changed: rows are replaced one by one, "
            "which reads the whole table and takes long in a large one. To have partitions replaced again: "
            f"`CALL {names.quote(self.catalog)}.system.rewrite_data_files(table => {table}, "
            "options => map('rewrite-all', 'true'))`."
        ]

    @property
    def _window_warning(self) -> list[str]:
        """Say that a batch has rows that its window does not hold: a second run adds them again."""
        if self.settings.strategy != Strategy.MICROBATCH or self._event_time_type is None:
            return []
        name = self.plan.unique_key[0]
        start, end = window(self._event_time_type, self.settings)
        bounds = self.batch.bounds.get(names.fold(name))
        found = []
        if bounds is not None and not (start <= bounds[0] and bounds[1] < end):
            found.append(f"from {bounds[0]} to {bounds[1]}")
        if names.fold(name) not in self.batch.columns_without_null:
            found.append("that is NULL")
        return [
            f"The batch of {start} to {end} has rows with {names.quote(name)} {which}. "
            "Another run of it does not replace those outside of this window, but adds them again: let the "
            "model return rows of its window only."
            for which in found
        ]

    @property
    def _differences(self) -> list[str]:
        """Say what of the model has no effect on this table, in each run again."""
        if self.has_said_differences:
            return []
        reminders = [text for text in self.plan.reminders if text not in self.told]
        return [*reminders, *differences(self.base.table, self.settings)]

    @property
    def told(self) -> tuple[str, ...]:
        """What an earlier run has warned of, and is so still."""
        return () if record.TOLD in self.properties or self.has_said_differences else self.plan.notes

    @property
    def removed(self) -> dict[str, str]:
        """What rows of this run have for each column or field that the model does not return, by its path."""
        return plan_report.removed_values(self.plan, self.settings)

    @property
    def ignored(self) -> list[str]:
        """The columns and fields of the model that were left out of the table."""
        return [names.path_text(path) for path in self.plan.ignored]

    @property
    def said(self) -> str:
        """What the run does to the columns of the table, in one line; empty if there is nothing to say."""
        parts = [*self.logged_changes, *([self.older] if self.older else [])]
        by_value: dict[str, list[str]] = {}
        for name, value in self.removed.items():
            # The text about an older schema names those that are padded with NULL.
            if not (self.older and value == plan_report.PADDED_WITH_NULL):
                by_value.setdefault(value, []).append(name)
        query = "source" if self.settings.strategy == Strategy.SNAPSHOT else "model"
        parts += [f"{_columns(of_value)} not in the {query}, {value}" for value, of_value in by_value.items()]
        if self.ignored:
            parts.append(
                f"{_columns(self.ignored)} not in the table and left out (on_schema_change is 'ignore')"
            )
        return "; ".join(parts)

    @property
    def _new_keys(self) -> list[tuple[str, DefaultValue | None]]:
        """The key columns that were added in this run, with what older rows have in them; None for NULL."""
        added = {c.path[0]: c.default for c in self.plan.changes if isinstance(c, AddColumn)}
        return [(name, added[name]) for name in self.plan.unique_key if name in added]

    @property
    def _new_in_limits(self) -> list[tuple[str, names.Path]]:
        """The conditions on the table that may need a column or field that was added in this run."""
        added = [
            change.path
            for change in self.plan.changes
            if isinstance(change, AddField) or (isinstance(change, AddColumn) and change.default is None)
        ]
        retired = {path: names.fold(rename.new_name) for path, rename in self.plan.replaced.items()}
        found = []
        for text in self.settings.limits:
            condition = Condition(text, mentions(text))
            for path in added:
                named = named_by_sql(self.base.table.schema().as_struct(), path)
                if condition.needs(named, retired.get(path, ""), is_null=len(named) == len(path)):
                    found.append((text, path))
        return found

    @property
    def partition_overwrite(self) -> str | None:
        """How INSERT OVERWRITE has to work while the batch is loaded; None where there is none."""
        return None if self.older_partitions else partition_overwrite(self.settings)

    @property
    def overwritten_spec(self) -> int | None:
        """The partition spec whose partitions the batch overwrites; None if it overwrites none."""
        return self.base.table.metadata.default_spec_id if self.partition_overwrite == "dynamic" else None

    @property
    def cut(self) -> str | None:
        """The statement that cuts the branch off, if there is one to be cut."""
        if self.branch is None:
            return None
        minutes = branches.retain_minutes(self.base.cut_at_ms, self.now_ms)
        return branch_statements.create_branch(str(self.target), self.branch, self.base.cut_at, minutes)

    @property
    def written(self) -> str:
        """The rendered name of what is written: the branch, or the table itself."""
        if self.branch is None:
            return str(self.target)
        return branch_statements.branch_of(str(self.target), self.branch)

    @property
    def statements(self) -> list[str]:
        """The statements that load the batch, to be run one by one in this order."""
        return load_statements(
            self.written,
            str(self.target),
            self.staged,
            self.batch,
            self.plan,
            self.settings,
            self._event_time_type,
            self.older_partitions,
            self.catalog,
        )

    @property
    def written_columns(self) -> tuple[str, ...]:
        """The columns of the table that the statements write."""
        return tuple(self.plan.refreshed)

    @property
    def steps(self) -> list[str]:
        """All statements of a load into a branch, the one that cuts it first."""
        return [*([self.cut] if self.cut is not None else []), *self.statements]

    def has_committed(self, step: int, head: Head | None) -> bool:
        """Tell whether the statement ``steps[step]`` has taken effect, the ones before it being done.

        Args:
            step: its number.
            head: the last snapshot of the branch now, None if the branch is not there.
        """
        if head is None or step == 0:
            return head is not None
        if head.snapshot_id == self.base.cut_at or (self.base.cut_at is None and head.parent_id is None):
            return False
        # A DELETE, the only other statement that comes before one, appends nothing.
        return step == 1 or head.operation == "append"

    @property
    def merge_key(self) -> dml.Key | None:
        """The key of a MERGE."""
        if self.settings.strategy != Strategy.MERGE:
            return None
        return load_key(self.batch, self.plan, self.settings)

    def cut_again(self) -> None:
        """Go on with a new branch: whatever still writes into the old one is never published."""
        assert self.branch is not None
        self.lost_branches.append(self.branch)
        self.branch = branches.branch_name()

    @property
    def _event_time_type(self) -> IcebergType | None:
        """The type of the event time in the table, or in the batch where it is new."""
        wanted = {names.fold(name) for name in self.plan.unique_key}
        for schema in (self.base.table.schema(), self.batch.schema):
            for f in schema.fields:
                if names.fold(f.name) in wanted:
                    return f.field_type
        return None


def _columns(paths: Sequence[str]) -> str:
    """Return columns or fields as the subject of a sentence, with its verb."""
    return f"column {paths[0]} is" if len(paths) == 1 else f"columns {', '.join(paths)} are"
