"""Several writers of one table, whose steps come in any order: ours in all its steps, and others.

What the table has to be is kept beside it by plain Python (``Expected``), and compared after each step with
what PyIceberg reads.
"""

import datetime as real
import time
import uuid
from abc import abstractmethod
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol
from unittest import mock

import pyarrow as pa
import pyiceberg.table.update
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from pyiceberg.catalog import Catalog
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.types import IntegerType, NestedField

from dbt.adapters.sparkevolve.evolution.plan import EvolutionPlan
from dbt.adapters.sparkevolve.evolution.policy import TableFacts
from dbt.adapters.sparkevolve.iceberg.base import Base
from dbt.adapters.sparkevolve.iceberg.catalog import IcebergCatalog
from dbt.adapters.sparkevolve.iceberg.publication import Published
from dbt.adapters.sparkevolve.iceberg.staging import staging_relation
from dbt.adapters.sparkevolve.load.batch_plan import plan_batch
from dbt.adapters.sparkevolve.load.load import Load
from dbt.adapters.sparkevolve.relation import SparkEvolveRelation, table_identifier
from tests.metadata_files import MetadataFiles
from tests.unit.helpers import model_settings, relation

NAMES = ["a", "b", "c", "d"]
RETRIES = 4
MINUTE_MS = 60_000
KEYS = st.sets(st.integers(0, 4), min_size=1, max_size=3)
RETURNED = st.lists(st.sampled_from(NAMES), unique=True, max_size=3)

Row = dict[int, int | None]
"""The value of each column by its field id."""


@contextmanager
def clock(ms: int) -> Iterator[None]:
    """Have the clock of this process so many milliseconds ahead, or behind."""
    now = time.time

    class Shifted(real.datetime):
        @classmethod
        def now(cls, tz: real.tzinfo | None = None) -> "Shifted":
            return cls.fromtimestamp(now() + ms / 1000, tz)

    with (
        mock.patch.object(pyiceberg.table.update, "datetime", Shifted),
        mock.patch("time.time", side_effect=lambda: now() + ms / 1000),
    ):
        yield


@dataclass
class Expected:
    """What a table has to be, by the rule alone.

    Attributes:
        columns: the name of each column by its field id, in table order.
        wide: the field ids of the columns that are of type bigint, the others being of type int.
        last_id: the highest field id that was ever given out.
        rows: by key.
        history: the rows as they were at each snapshot that main has been at, and that has not expired.
    """

    columns: dict[int, str]
    last_id: int
    rows: dict[int, Row] = field(default_factory=dict)
    history: dict[int, dict[int, Row]] = field(default_factory=dict)
    wide: set[int] = field(default_factory=set)

    def add(self, *names: str) -> None:
        """Add columns at the end, each with an id that none had before."""
        for name in names:
            self.last_id += 1
            self.columns[self.last_id] = name

    def evolve(self, returned: Sequence[str], wide: bool) -> None:
        """Have what our run makes of the columns: none goes, new ones come, and types get wider."""
        self.add(*(name for name in returned if name not in self.columns.values()))
        if wide:
            self.wide |= {self.field_id(name) for name in returned}

    def types(self) -> list[str]:
        """Return the type of each column, in table order."""
        return ["long" if field_id in self.wide else "int" for field_id in self.columns]

    def field_id(self, name: str) -> int:
        """Return the id of the column with this name."""
        return next(field_id for field_id, known in self.columns.items() if known == name)

    def stored(self, rows: Mapping[int, Mapping[str, int]]) -> dict[int, Row]:
        """Return rows as they are stored now: by field id, whatever a column is called later."""
        return {
            key: {1: key, **{self.field_id(name): value for name, value in row.items()}}
            for key, row in rows.items()
        }

    def put(self, rows: Mapping[int, Row], snapshot_id: int) -> None:
        """Replace the rows of these keys, in a commit that has made this snapshot."""
        self.rows = {**self.rows, **rows}
        self.history[snapshot_id] = self.rows

    def table(self) -> list[tuple[int | None, ...]]:
        """Return all rows in table order of columns, sorted by key."""
        return [tuple(row.get(field_id) for field_id in self.columns) for _, row in sorted(self.rows.items())]


class Writer(Protocol):
    """Somebody else who writes the table. Each of its methods is one commit."""

    def add(self, name: str) -> None:
        """Add a column of type int."""

    def drop(self, name: str) -> None:
        """Drop a column."""

    def rename(self, name: str, new: str) -> None:
        """Rename a column."""

    def append(self, row: dict[str, int]) -> None:
        """Append a row."""

    def roll_back(self, snapshot_id: int) -> None:
        """Set main back to one of its ancestors."""

    def expire(self, snapshot_ids: Sequence[int]) -> None:
        """Remove snapshots."""


class PlainWriter:
    """PyIceberg as a program uses it, by a clock of its own that never goes back."""

    def __init__(self, load: Callable[[], Table]) -> None:
        self._load = load
        self.ahead_ms = 0

    @contextmanager
    def opened(self) -> Iterator[Table]:
        """Give the table as it is now, and a clock that is later than all that happened to it."""
        table = self._load()
        least = table.metadata.last_updated_ms + 1 - int(time.time() * 1000)
        with clock(max(self.ahead_ms, least)):
            yield table

    def add(self, name: str) -> None:
        """Add a column."""
        with self.opened() as table, table.update_schema() as update:
            update.add_column(name, IntegerType())

    def drop(self, name: str) -> None:
        """Drop a column."""
        with self.opened() as table, table.update_schema() as update:
            update.delete_column(name)

    def rename(self, name: str, new: str) -> None:
        """Rename a column."""
        with self.opened() as table, table.update_schema() as update:
            update.rename_column(name, new)

    def append(self, row: dict[str, int]) -> None:
        """Append a row."""
        with self.opened() as table:
            table.append(pa.Table.from_pylist([row], schema=table.schema().as_arrow()))

    def roll_back(self, snapshot_id: int) -> None:
        """Set main back."""
        with self.opened() as table:
            table.manage_snapshots().rollback_to_snapshot(snapshot_id).commit()

    def expire(self, snapshot_ids: Sequence[int]) -> None:
        """Remove snapshots."""
        with self.opened() as table:
            table.maintenance.expire_snapshots().by_ids(list(snapshot_ids)).commit()


@dataclass
class Run:
    """A run of ours that is under way.

    Attributes:
        base: what it started from.
        returned: the columns that its model returns beside the key.
        wide: whether they are of type bigint, not int.
        rows: the rows, by key.
        staged: the batch's table, once it is there.
        load: what is loaded, once the table has evolved.
        stored: the rows as they are on the branch, once they are.
        is_disturbed: whether main has been moved since it started.
    """

    base: Base
    returned: list[str]
    wide: bool
    rows: dict[int, dict[str, int]]
    staged: SparkEvolveRelation
    is_staged: bool = False
    load: Load | None = None
    stored: dict[int, Row] | None = None
    is_disturbed: bool = False


class Writers(RuleBasedStateMachine):
    """The steps of all writers. A subclass says how a batch is staged and loaded, and who else writes.

    Attributes:
        outcomes: how often a publication of ours has ended in which way, in all examples.
        others_may_differ: whether the others' clocks may differ from each other, too.
        properties: of the table.
    """

    outcomes: ClassVar[Counter[Published]] = Counter()
    others_may_differ = True
    properties: ClassVar[dict[str, str]] = {}

    def __init__(self, lake: IcebergCatalog, other: Catalog, schema: str, files: MetadataFiles) -> None:
        """Make no table yet.

        Args:
            lake: the gateway under test.
            other: the same catalog, opened by somebody else.
            schema: where to make the table.
            files: sees the metadata files of the catalog.
        """
        super().__init__()
        self.lake = lake
        self.other = other
        self.files = files
        self.target = relation(f"t_{uuid.uuid4().hex[:8]}", schema)
        self.runs: list[Run] = []
        self.counter = 100
        self.ours_ahead_ms = 0
        self.intruder: Callable[[], None] | None = None
        self.plain = PlainWriter(self.table)

    def table(self) -> Table:
        """Return the table as it is now, as somebody else reads it."""
        return self.other.load_table(table_identifier(self.target))

    @property
    def writers(self) -> list[Writer]:
        """The others."""
        return [self.plain]

    @abstractmethod
    def stage(self, run: Run) -> None:
        """Make the staged batch of a run."""

    @abstractmethod
    def cut_and_load(self, run: Run, load: Load) -> None:
        """Cut the branch of a run off, and load its rows there, by another clock than ours.

        Raises:
            Exception: a column or a snapshot that the run relies on has gone.
        """

    @contextmanager
    def ours(self) -> Iterator[None]:
        """Be us: have our clock, and meet whoever waits to commit directly before us."""
        commit = self.lake.access.opened.commit_table

        def commit_table(*args: Any, **kwargs: Any) -> Any:
            intruder, self.intruder = self.intruder, None
            if intruder is not None:
                intruder()
            with clock(self.ours_ahead_ms):
                return commit(*args, **kwargs)

        with (
            mock.patch.object(self.lake.access.opened, "commit_table", commit_table),
            clock(self.ours_ahead_ms),
        ):
            yield

    # --- what others do

    @initialize()
    def create(self) -> None:
        schema = Schema(*(_field(number, name) for number, name in enumerate(["id", "a", "b"], 1)))
        self.other.create_table(table_identifier(self.target), schema, properties=self.properties)
        self.expected = Expected({1: "id", 2: "a", 3: "b"}, 3)
        for _ in range(2):
            self._change(self.plain, "append", 0)

    def _append(self, writer: Writer) -> None:
        self.counter += 1
        row = {name: self.counter for name in self.expected.columns.values() if name != "id"}
        writer.append({"id": self.counter, **row})
        head = self.table().metadata.current_snapshot_id
        assert head is not None
        self.expected.put(self.expected.stored({self.counter: row}), head)
        self._disturb()

    def _disturb(self) -> None:
        for run in self.runs:
            run.is_disturbed = True

    def _change(self, writer: Writer, kind: str, chosen: int) -> None:
        """Do one thing that changes the table, if it can be done now."""
        expected = self.expected
        metadata = self.table().metadata
        columns = [name for name in expected.columns.values() if name != "id"]
        free = [name for name in NAMES if name not in columns]
        name = columns[chosen % len(columns)] if columns else None
        new = free[chosen % len(free)] if free else None
        if kind == "append":
            self._append(writer)
        elif kind == "add" and new:
            writer.add(new)
            expected.add(new)
        elif kind == "drop" and name:
            writer.drop(name)
            del expected.columns[expected.field_id(name)]
        elif kind == "rename" and name and new:
            writer.rename(name, new)
            expected.columns[expected.field_id(name)] = new
        elif kind == "add and drop" and new:
            writer.add(new)
            expected.add(new)
            writer.drop(new)
            del expected.columns[expected.last_id]
        elif kind == "rename there and back" and name and new:
            writer.rename(name, new)
            writer.rename(new, name)
        elif kind == "roll back":
            parent = _parent(metadata)
            if parent in expected.history:
                writer.roll_back(parent)
                expected.rows = expected.history[parent]
                self._disturb()
        elif kind == "expire":
            heads = {ref.snapshot_id for ref in metadata.refs.values()}
            old = [s.snapshot_id for s in metadata.snapshots if s.snapshot_id not in heads]
            if old:
                writer.expire(old)
                expected.history = {key: rows for key, rows in expected.history.items() if key not in old}
        self.files.check(may_be_ahead=True)

    KINDS = st.sampled_from(
        [
            *("append", "add", "drop", "rename", "add and drop", "rename there and back"),
            *("roll back", "expire"),
        ]
    )

    @rule(kind=KINDS, chosen=st.integers(0, 3), number=st.integers(0, 1))
    def somebody_else(self, kind: str, chosen: int, number: int) -> None:
        self._change(self.writers[number % len(self.writers)], kind, chosen)

    @rule(kind=KINDS, chosen=st.integers(0, 3), number=st.integers(0, 1))
    def somebody_else_directly_before_our_next_commit(self, kind: str, chosen: int, number: int) -> None:
        writer = self.writers[number % len(self.writers)]
        self.intruder = lambda: self._change(writer, kind, chosen)

    @rule(ours=st.sampled_from([-1440, -5, 0, 5, 1440]), theirs=st.sampled_from([-5, 0, 1, 5]))
    def clocks(self, ours: int, theirs: int) -> None:
        """Set the clocks so many minutes ahead, or behind."""
        self.ours_ahead_ms = ours * MINUTE_MS
        self.plain.ahead_ms = theirs * MINUTE_MS if self.others_may_differ else 0

    # --- what we do

    @precondition(lambda self: len(self.runs) < 2)
    @rule(returned=RETURNED, keys=KEYS, wide=st.booleans())
    def begin(self, returned: list[str], keys: set[int], wide: bool) -> None:
        with self.ours():
            base = self.lake.base(self.target, lambda: None)
        self.counter += 1
        rows = {key: {name: self.counter * 10 + n for n, name in enumerate(returned)} for key in sorted(keys)}
        self.runs.append(Run(base, returned, wide, rows, staging_relation(self.target)))

    @precondition(lambda self: self.runs)
    @rule(number=st.integers(0, 1), steps=st.integers(1, 4))
    def go_on(self, number: int, steps: int) -> None:
        """Take the next steps of a run: stage, evolve, load, publish and clean up."""
        run = self.runs[number % len(self.runs)]
        for _ in range(steps):
            if run in self.runs:
                self._step(run)
                self.the_table_is_what_it_has_to_be()

    @precondition(lambda self: self.runs)
    @rule(number=st.integers(0, 1))
    def go_on_to_the_end(self, number: int) -> None:
        self.go_on(number, 4)

    def _step(self, run: Run) -> None:
        if not run.is_staged:
            self.stage(run)
            run.is_staged = True
        elif run.load is None:
            self._evolve(run)
        elif run.stored is None:
            try:
                self.cut_and_load(run, run.load)
                run.stored = self.expected.stored(run.rows)
            except AssertionError:
                raise
            except Exception:
                pass
            # Not by our clock.
            self.files.check(may_be_ahead=True)
            if run.stored is None:
                self._end(run)
        else:
            self._publish(run, run.load, run.stored)
            self._end(run)

    @precondition(lambda self: self.runs)
    @rule(number=st.integers(0, 1))
    def a_process_is_killed(self, number: int) -> None:
        """Leave a run as it is."""
        self.runs.pop(number % len(self.runs))

    @rule(text=st.sampled_from(["", "one", "two"]))
    def describe(self, text: str) -> None:
        with self.ours():
            self.lake.set_docs(self.target, text, {"a": text, "id": text}, RETRIES)

    def _evolve(self, run: Run) -> None:
        settings = model_settings(unique_key="id")

        def decide(schema: Schema, facts: TableFacts) -> EvolutionPlan:
            plan = plan_batch(batch, settings, {}, schema, facts)
            assert not plan.refusals
            return plan

        with self.ours():
            batch = self.lake.staged_batch(run.staged)
            plan = self.lake.evolve(
                self.target, decide, RETRIES, source=batch.schema, invocation_id="test", base=run.base
            )
            now_ms = int(time.time() * 1000)
        self.expected.evolve(run.returned, run.wide)
        run.load = Load(self.target, run.staged, run.base, batch, plan, settings, now_ms)

    def _publish(self, run: Run, load: Load, stored: Mapping[int, Row]) -> None:
        assert load.branch is not None
        branch = self.table().metadata.refs.get(load.branch)
        with self.ours():
            outcome = self.lake.publish(self.target, run.base, load.branch, RETRIES)
        self.outcomes[outcome] += 1
        if outcome == Published.YES:
            assert branch is not None
            assert not run.is_disturbed
            self.expected.put(stored, branch.snapshot_id)
            self._disturb()
        else:
            assert run.is_disturbed

    def _end(self, run: Run) -> None:
        """Clean up after a run, whatever has become of it."""
        self.runs.remove(run)
        with self.ours():
            if run.load is not None and run.load.branch is not None:
                self.lake.drop_branch(self.target, run.load.branch)
            self.lake.purge(run.staged)
        if run.load is not None:
            assert run.load.branch not in self.table().metadata.refs
        assert self.lake.find(run.staged) is None

    # --- what holds after each step

    @invariant()
    def the_table_is_what_it_has_to_be(self) -> None:
        if not hasattr(self, "expected"):
            return
        self.files.check()
        table = self.table()
        assert {f.field_id: f.name for f in table.schema().fields} == self.expected.columns
        assert [(f.field_id, str(f.field_type)) for f in table.schema().fields] == list(
            zip(self.expected.columns, self.expected.types(), strict=True)
        )
        assert self.read(table) == self.expected.table()

    def teardown(self) -> None:
        """Remove the table, so that the next example has the catalog for itself."""
        if hasattr(self, "expected"):
            self.other.drop_table(table_identifier(self.target))

    def read(self, table: Table) -> list[tuple[Any, ...]]:
        """Return all rows in table order of columns, sorted by key."""
        return sorted(tuple(row.values()) for row in table.scan().to_arrow().to_pylist())


def _field(number: int, name: str) -> NestedField:
    return NestedField(number, name, IntegerType(), required=False)


def _parent(metadata: TableMetadata) -> int | None:
    current = metadata.current_snapshot_id
    snapshot = metadata.snapshot_by_id(current) if current is not None else None
    return snapshot.parent_snapshot_id if snapshot is not None else None
