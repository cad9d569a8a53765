"""The node that runs: what it has to give back at its end, and what it says of an error."""

import threading
from collections.abc import Iterable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from datetime import datetime, timezone

from dbt.adapters.base.relation import BaseRelation
from dbt.adapters.events.logging import AdapterLogger
from dbt_common.exceptions import DbtDatabaseError, DbtRuntimeError
from dbt_common.invocation import get_invocation_id

from dbt.adapters.sparkevolve.errors import (
    NOTHING_WRITTEN,
    AfterLoadError,
    ConnectionLostError,
    ReplacementLostError,
    RunCancelledError,
    StatementError,
    WarningsError,
    may_have_taken_effect,
    what_was_written,
)
from dbt.adapters.sparkevolve.evolution import names, record
from dbt.adapters.sparkevolve.iceberg.catalog import LoadedTable
from dbt.adapters.sparkevolve.load.letters import Letters
from dbt.adapters.sparkevolve.load.load import Load
from dbt.adapters.sparkevolve.load.outcome import Outcome, steps_of
from dbt.adapters.sparkevolve.load.results import NodeResult
from dbt.adapters.sparkevolve.messages import is_relation_not_found
from dbt.adapters.sparkevolve.relation import SparkEvolveRelation
from dbt.adapters.sparkevolve.sql.splitting import reads_only
from dbt.adapters.sparkevolve.times import iso
from dbt.adapters.sparkevolve.warning import are_errors, marked

logger = AdapterLogger("SparkEvolve")


@dataclass
class Node:
    """A model, snapshot, seed or test while it runs, or one batch of a microbatch model.

    dbt gets it from ``pre_model_hook``, and hands it back to ``post_model_hook``.

    Attributes:
        name: its name, as a run-operation takes it; empty outside of any node.
        database: the name of its catalog; None for the profile's own.
        staged: the batches that it has staged.
        load: the load that is under way.
        lock: what keeps other threads from loading into the same table.
        nulls: the columns of the model that are a bare NULL.
        outcome: what is visible already, and what is still to be done; None before that.
        gone: the table that dbt compiled the model for, if it is not there any more.
        table: the node's table as it was after the pre-hooks, until the load has begun with it.
        seen: the rendered name of that, if it was there for PyIceberg; empty otherwise.
        format_version: the table format's version of that; None if there is no table.
        stages_variants: whether what it stages has variants, which only format version 3 has.
        is_continued: whether an earlier dbt command has loaded other batches of the model, which stay. A full
            refresh that failed half-way is retried with its `--full-refresh`, and dbt would run the first of
            the batches that are left as one: it would replace all that the others have loaded.
        letters: the rows of the batch that is loaded that cannot be placed; None before there is one.
        changed: what it has committed to its table beside rows: columns, descriptions, properties.
        is_replacing: whether there was an Iceberg table of the node after the pre-hooks; None before that.
        columns: the names and types that its query returns, as they are stored, where it makes a table.
        spelled: how these columns, and fields in them, are spelled, where the table is to be partitioned; see
            ``spark_types.spelled_paths``.
        made_empty: the tables that it has made without rows, to replace them by those with rows.
        replaced: the table that it replaces by a staged batch, and that batch; None if it replaces none so.
        is_batch_lost: whether that batch was gone when a statement of the node had failed.
        explanation: the last error that it has explained.
        evolved: what ``changed`` has as texts.
        result: what it tells dbt that it has done.
        planned: dbt's id of it if it is planned only.
        built_before: of a plan, the names of what it reads and the same run would build first.
        taken_back: of a plan, the changes that a run would begin with, since another has ended half-way.
    """

    name: str = ""
    database: str | None = None
    staged: list[SparkEvolveRelation] = field(default_factory=list)
    load: Load | None = None
    letters: Letters | None = None
    lock: "threading.Lock | None" = None
    nulls: tuple[str, ...] = ()
    outcome: Outcome | None = None
    gone: SparkEvolveRelation | None = None
    table: LoadedTable | None = None
    seen: str = ""
    format_version: int | None = None
    stages_variants: bool = False
    is_continued: bool = False
    changed: list[str] = field(default_factory=list)
    is_replacing: bool | None = None
    columns: Sequence[tuple[str, str]] = ()
    spelled: Mapping[str, str] = field(default_factory=dict)
    made_empty: list[SparkEvolveRelation] = field(default_factory=list)
    replaced: tuple[SparkEvolveRelation, SparkEvolveRelation] | None = None
    is_batch_lost: bool = False
    explanation: Exception | None = None
    evolved: list[object] = field(default_factory=list)
    result: NodeResult = field(default_factory=NodeResult)
    planned: str = ""
    built_before: Sequence[str] = ()
    taken_back: Sequence[str] = ()

    def rows_are_visible(
        self,
        relation: SparkEvolveRelation,
        *,
        adds_again: bool = False,
        is_refreshed: bool = False,
        docs: bool = False,
        grants: bool = False,
        hooks: Sequence[object] = (),
    ) -> None:
        """Note that readers see what this node has made, and what it still has to do.

        Args:
            relation: its table or view.
            adds_again: whether running the model again would add the same rows once more.
            is_refreshed: whether it would not if that were a full refresh, as this run was.
            docs: whether it has descriptions to store.
            grants: whether it has grants to apply.
            hooks: its post-hooks.
        """
        steps = steps_of(docs=docs, grants=grants, hooks=hooks)
        self.outcome = Outcome(str(relation), adds_again, is_refreshed, steps)

    def begin_step(self, step: str) -> None:
        """Note what the node does next, in the words of ``steps_of``; what comes before it is done."""
        if self.outcome is not None:
            self.outcome.begin(step)

    def note_changes(self, changes: Iterable[object]) -> None:
        """Note what has been committed to the node's table beside rows: it stays if the node fails."""
        found = list(changes)
        self.evolved += found
        self.changed += map(str, found)

    def note_existing(self, found: BaseRelation | None, table: LoadedTable | None) -> BaseRelation | None:
        """Note what there is under the node's name, as relation and as Iceberg table; return the former."""
        self.table = table
        self.seen = str(found) if table is not None else ""
        self.is_replacing = bool(getattr(found, "is_iceberg", False))
        return found

    def creation(self) -> dict[str, str]:
        """Return the properties of a table that the node makes, which say where its schema comes from."""
        if self.is_replacing is None:
            return {}
        at = iso(datetime.now(timezone.utc))
        return record.creation_properties(
            self.columns, get_invocation_id(), at, is_replacing=self.is_replacing
        )

    @property
    def written(self) -> str:
        """What the node has written before it is refused, as the middle of a sentence."""
        return what_was_written(self.changed)

    def refuse_warnings(self, texts: Sequence[str]) -> None:
        """Let the node fail over what it would warn of, if dbt is to take warnings for errors.

        Called before anything is written wherever that is known so early.

        Raises:
            WarningsError: names all of them.
        """
        if texts and are_errors():
            raise WarningsError(texts, self.written if self.outcome is None else "")

    def warnings(self, texts: Sequence[str], what: object | None = None, is_marked: bool = True) -> list[str]:
        """Return what dbt's ``exceptions.warn`` is to be called with, one by one.

        Args:
            texts: the warnings.
            what: what they are about, to be named before each; None if they do that themselves.
            is_marked: whether they are to be told from other lines by their text.

        Raises:
            WarningsError: dbt is to take them for errors.
        """
        named = [text if what is None else f"{what}: {text}" for text in texts]
        self.refuse_warnings(named)
        self.result.warnings += named
        return [marked(text) if is_marked else text for text in named]

    def begin_plan(self, unique_id: str, built_before: Sequence[str] = ()) -> None:
        """Note that the node is planned, and does not run.

        Args:
            unique_id: dbt's id of it.
            built_before: the names of what it reads and the same run would build first.
        """
        self.planned = unique_id
        self.built_before = built_before

    def unplanned(self, error: BaseException) -> BaseException:
        """Return why the node cannot be planned: what Spark lacks may be what a run would make first."""
        if not isinstance(error, DbtDatabaseError):
            return error
        found = [error.msg]
        if self.taken_back:
            found.append(
                "A run has ended while it changed the case of a name, and the next one takes that back first "
                f"({'; '.join(self.taken_back)}). A plan changes nothing: if what is missing is the old "
                "name, the model cannot be planned before it has run."
            )
        if self.built_before:
            found.append(
                "A plan takes what the model reads as it is now, and a run would build "
                f"{', '.join(map(names.quote, self.built_before))} first. If what is missing comes with "
                "that, plan this model again once that is built."
            )
        return error if len(found) == 1 else DbtDatabaseError("\n".join(found))

    def note_gone(self, relation: SparkEvolveRelation) -> None:
        """Note that dbt compiled the model as incremental, and that its table is not there any more."""
        logger.info(f"{relation} has been dropped or replaced since dbt compiled its model: it is recreated")
        self.gone = relation

    def explained(self, error: Exception) -> Exception:
        """Return an error that says, beside what went wrong, what had been done before; or the same one."""
        if error is not self.explanation:
            self.explanation = self._explained(error)
        return self.explanation

    def explained_statement(self, error: Exception) -> Exception:
        """Return the error of a statement as ``explained`` does; if cancelled, with what readers see."""
        load = self.load
        if not isinstance(error, RunCancelledError):
            return self.explained(error)
        if load is None or not load.goes_on_branch or error.is_published is not None:
            return error
        return RunCancelledError(error.undone, str(load.target), load.is_visible)

    def _explained(self, error: Exception) -> Exception:
        if isinstance(error, AfterLoadError | RunCancelledError):
            # They say what readers see.
            return error
        if isinstance(error, ConnectionLostError) and self.outcome is None:
            # Whether the statement has taken effect nobody knows, and the error says so.
            return error
        said = str(getattr(error, "msg", "") or error) or type(error).__name__
        text = self._without_untruth(said)
        if self.outcome is not None:
            return self.outcome.error(text)
        if self.is_batch_lost and self.replaced is not None and not may_have_taken_effect(error):
            return ReplacementLostError(text, *map(str, self.replaced))
        if self.gone is not None and is_relation_not_found(text):
            return DbtRuntimeError(
                f"{text}\n{self.gone} was there when dbt compiled the model, and has been dropped or "
                "replaced since, by a hook of this run or by another writer. Nothing was loaded."
            )
        if self.seen and is_relation_not_found(text, self.seen):
            return DbtRuntimeError(
                f"{text}\nPyIceberg has found {self.seen} when the node began, and Spark does not find it. "
                "Either it has been dropped or renamed since, or the profile names another catalog than the "
                "one that Spark uses under that name (`dbt debug` tells)."
            )
        unanswered = error.statement if isinstance(error, StatementError) and error.is_fate_unknown else ""
        # Of a load it is said where the rows go straight into the table; of a branch it does not matter.
        if unanswered and self.load is None and not reads_only(unanswered):
            # Of any other failure of a statement one knows that it has changed nothing.
            text = f"{text}\n{_FATE_UNKNOWN}"
        return error if text == said else DbtRuntimeError(text)

    def _without_untruth(self, text: str) -> str:
        """Return an error's text, of which an end that says that nothing was written is not true here."""
        if not self.changed and self.outcome is None:
            return text
        for end in NOTHING_WRITTEN:
            if text.endswith(end):
                rest = text.removesuffix(end).rstrip()
                written = self.written[:1].upper() + self.written[1:]
                return rest if self.outcome is not None else f"{rest} {written}."
        return text


_FATE_UNKNOWN = (
    "Nobody has told whether this statement has taken effect: look at what it was to change before it is run "
    "again."
)
_RUNNING: ContextVar[Node | None] = ContextVar("sparkevolve_node", default=None)


def begin_node(node: Node) -> Node:
    """Let a node be the one that runs in this thread, and return it."""
    _RUNNING.set(node)
    return node


def running_node() -> Node:
    """Return the node that runs in this thread; outside of any, one that nobody will ask again."""
    return _RUNNING.get() or Node()


def end_node() -> None:
    """Let no node run in this thread."""
    _RUNNING.set(None)
