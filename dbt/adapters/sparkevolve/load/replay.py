"""Dead letters that are loaded again, once the cause is mended: `dbt run-operation replay_dead_letters`."""

import json
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from dbt.adapters.events.logging import AdapterLogger
from dbt_common.exceptions import DbtRuntimeError
from pyiceberg.schema import Schema
from pyiceberg.types import (
    IcebergType,
    LongType,
    NestedField,
    StringType,
)

from dbt.adapters.sparkevolve.counts import agreeing, counted
from dbt.adapters.sparkevolve.errors import (
    FilesLeftError,
    OperationError,
    PublishConflictError,
    RunCancelledError,
    may_be_of_expression,
)
from dbt.adapters.sparkevolve.evolution.column_defaults import ColumnDefaults
from dbt.adapters.sparkevolve.evolution.conversions import Member, Unchanged, conversions
from dbt.adapters.sparkevolve.evolution.defaults import DefaultValue
from dbt.adapters.sparkevolve.evolution.names import Path, fold, quote, spelled, string_literal
from dbt.adapters.sparkevolve.evolution.policy import Policy
from dbt.adapters.sparkevolve.evolution.record import REPLAYED
from dbt.adapters.sparkevolve.evolution.types import (
    fields_within,
    has_variant,
)
from dbt.adapters.sparkevolve.iceberg import staging
from dbt.adapters.sparkevolve.iceberg.base import Base
from dbt.adapters.sparkevolve.iceberg.catalog import IcebergCatalog, LoadedTable
from dbt.adapters.sparkevolve.iceberg.older_metadata import has_lost, properties_since
from dbt.adapters.sparkevolve.iceberg.row_counts import inserting_since
from dbt.adapters.sparkevolve.load.audits import naming_audits
from dbt.adapters.sparkevolve.load.batches import drop_branches
from dbt.adapters.sparkevolve.load.creation import Creation
from dbt.adapters.sparkevolve.load.dead_letters import lacking_column, letters_relation, loaded_letters
from dbt.adapters.sparkevolve.load.letter_names import letter_names
from dbt.adapters.sparkevolve.load.letters import one_line
from dbt.adapters.sparkevolve.load.load import Load
from dbt.adapters.sparkevolve.load.node import Node
from dbt.adapters.sparkevolve.messages import short_message
from dbt.adapters.sparkevolve.operations import NamedNode
from dbt.adapters.sparkevolve.relation import SparkEvolveRelation
from dbt.adapters.sparkevolve.settings import KEYED, IncrementalSettings, Strategy
from dbt.adapters.sparkevolve.spark.interface import Spark
from dbt.adapters.sparkevolve.sql import branch_statements, dead_letters, payloads, replay, splitting
from dbt.adapters.sparkevolve.sql.compared_columns import compared
from dbt.adapters.sparkevolve.sql.judged_letters import (
    BEFORE_OTHERS,
    DELETED_ROW,
    EXCLUDED,
    FORGOTTEN,
    NEWER_ROW,
    OUTDATED,
    Chunk,
    JudgedLetters,
)
from dbt.adapters.sparkevolve.warning import not_removed, warn_of_rest

logger = AdapterLogger("SparkEvolve")

# How many characters of a reason a line has: why a letter stays is said with what to do, at the end.
_LONGEST_REASON = 600


@dataclass(frozen=True)
class Arguments:
    """What `replay_dead_letters` was given, see the documentation of that."""

    where: str = ""
    invocation_id: str = ""
    message_ids: tuple[str, ...] = ()
    limit: int | None = None
    overwrite: bool = False
    plan_only: bool = False

    @property
    def conditions(self) -> list[str]:
        """Which letters are meant."""
        found = [self.where] if self.where else []
        if self.invocation_id:
            found.append(f"`invocationId` = {string_literal(self.invocation_id)}")
        if self.message_ids:
            found.append(f"`messageId` IN ({', '.join(map(string_literal, self.message_ids))})")
        return found

    def beside_key(self, key: Sequence[str]) -> tuple[str, ...]:
        """Return the names that some of the ids have in JSON, and that are none of the key's."""
        known = set(map(fold, key))
        found: dict[str, None] = {}
        for text in self.message_ids:
            try:
                read = json.loads(text)
            except ValueError:
                continue
            if isinstance(read, dict):
                found |= {name: None for name in read if fold(name) not in known}
        return tuple(found)


@dataclass
class Replayed:
    """What has become of dead letters.

    Attributes:
        table: the rendered name of the table that they are for.
        letters: of the table of dead letters.
        is_plan: whether nothing was done.
        loaded: how many rows went in, or would.
        removed: how many letters of an earlier replay were removed, whose rows were in already.
        staying: how many letters stay, by reason.
        left_out: of how many of those that went in values were left out, by the paths of these.
        by_others: how many letters another replay has loaded while this one ran.
        gone: how many others were removed meanwhile.
        model: the name of the model.
        of_other_models: how many letters were not looked at, since they have the name of another model.
        key: the columns of the key; none if letters have a hash.
        beside_key: the names in ids that were asked for that are none of these.
    """

    table: str
    letters: str
    is_plan: bool = False
    loaded: int = 0
    removed: int = 0
    staying: Counter[str] = field(default_factory=Counter)
    left_out: Counter[str] = field(default_factory=Counter)
    by_others: int = 0
    gone: int = 0
    model: str = ""
    of_other_models: dict[str, int] = field(default_factory=dict)
    key: tuple[str, ...] = ()
    beside_key: tuple[str, ...] = ()

    @property
    def data(self) -> dict[str, Any]:
        """The same as data."""
        return {
            "relation": self.table,
            "dead_letters": self.letters,
            "plan": self.is_plan,
            "loaded": self.loaded,
            "removed_of_earlier_replay": self.removed,
            "staying": dict(self.staying),
            "left_out": dict(self.left_out),
            "loaded_by_others": self.by_others,
            "removed_by_others": self.gone,
            "of_other_models": self.of_other_models,
        }

    def cancelled(self, error: RunCancelledError) -> RunCancelledError:
        """Return the error of a replay that was stopped, with what it has published before."""
        done = (
            f"Before that, {counted(self.loaded, 'dead letter')} {agreeing(self.loaded, 'was', 'were')} "
            f"loaded: readers see {agreeing(self.loaded, 'its row', 'their rows')}, and the same command "
            "goes on with what is left."
            if self.loaded
            else "No dead letter was loaded."
        )
        if error.is_unknown:
            done = f"The same command finds out. {done if self.loaded else ''}".rstrip()
        return RunCancelledError(error.undone, self.table, done=done)

    @property
    def lines(self) -> list[str]:
        """What to say of it."""
        removed = ", and removed from the dead letters" if self.loaded else ""
        done = "would be loaded" if self.is_plan else f"loaded{removed}"
        texts = [f"{self.table}: {counted(self.loaded, 'dead letter')} of {self.letters} {done}"]
        if not (self.loaded or self.removed or self.staying or self.by_others or self.gone):
            texts.append("  none matches that was still there")
            if self.key and self.beside_key:
                key, others = (", ".join(map(quote, names)) for names in (self.key, self.beside_key))
                texts.append(f"  a messageId has the key, {key}, and `message_ids` name {others}")
        if self.removed:
            texts.append(
                f"  {self.removed} more {agreeing(self.removed, 'was', 'were')} loaded by an earlier replay, "
                f"and {agreeing(self.removed, 'is', 'are')} removed now"
            )
        if self.by_others:
            were = agreeing(self.by_others, "was", "were")
            texts.append(f"  {self.by_others} more {were} loaded by another replay meanwhile")
        if self.gone:
            texts.append(
                f"  {self.gone} more {agreeing(self.gone, 'was', 'were')} removed from the dead letters by "
                "others meanwhile, and not loaded by this replay"
            )
        out = "would be left out" if self.is_plan else "were left out"
        texts += [
            f"  {one_line(paths)} {out} of {number}: not in the table, and on_schema_change is `ignore`"
            for paths, number in self.left_out.most_common()
        ]
        for reason, number in self.staying.most_common():
            stay = "would stay" if self.is_plan else agreeing(number, "stays", "stay")
            texts.append(f"  {number} {stay}: {one_line(reason, _LONGEST_REASON)}")
        if any(self.staying[reason] for reason in OUTDATED):
            texts.append("  `overwrite: true` loads these too, and replaces the rows of their keys")
        texts += [
            f"  {number} more {agreeing(number, 'is', 'are')} of the model {quote(name)}, and "
            f"{agreeing(number, 'stays', 'stay')}: if {quote(self.model)} was called so, `UPDATE "
            f"{self.letters} SET modelName = {string_literal(self.model)} WHERE modelName = "
            f"{string_literal(name)}` lets a replay load {agreeing(number, 'it', 'them')}"
            for name, number in self.of_other_models.items()
        ]
        return texts


class Loads(Protocol):
    """What loads a batch, see ``LoadRunner``."""

    def begin_load(self, target: SparkEvolveRelation, *, is_plan: bool = False) -> Base:
        """Return the state of the table that the load starts from."""

    def evolve(
        self,
        base: Base,
        target: SparkEvolveRelation,
        staged: SparkEvolveRelation,
        settings: IncrementalSettings,
        column_docs: Mapping[str, str],
        detected: Mapping[str, Sequence[str]],
    ) -> Load:
        """Return how the batch is loaded."""

    def run_step(self, load: Load, step: int) -> Any:
        """Run one statement of the load."""

    def audit(self, load: Load) -> None:
        """Check what was loaded."""

    def publish(self, load: Load, is_last: bool) -> bool:
        """Make it visible, unless others were faster; tell whether that is done."""


class Replay:
    """Loads dead letters of a model again.

    First the rows become visible, in one commit for each chunk, which also says in a property of the table
    which letters these are; then the letters are removed. Whatever ends between the two, the next replay
    removes these letters before it reads any.

    Args:
        catalog: the catalog.
        spark: where it runs.
        runner: loads batches.
        running: what has to be given back at the end.
        node: the model.
        settings: the model's.
        arguments: what is wanted.
    """

    def __init__(
        self,
        catalog: IcebergCatalog,
        spark: Spark,
        runner: Loads,
        running: Node,
        node: NamedNode,
        settings: IncrementalSettings,
        arguments: Arguments,
    ) -> None:
        self._catalog = catalog
        self._spark = spark
        self._runner = runner
        self._running = running
        self._target = node.relation
        # `model.package.name`, and `.v1` behind it.
        self._model_name = node.unique_id.split(".")[2]
        self._settings = settings
        self._arguments = arguments
        self._letters = letters_relation(node.relation, settings)
        # The ids of what was loaded, and of what stays for the rows of its key, with the reason.
        self._loaded: set[str] = set()
        self._staying: dict[str, str] = {}

    def run(self) -> Replayed:
        """Load what can be loaded, and remove it from the dead letters; or count, for a plan.

        Raises:
            OperationError: there is no table, or none of dead letters.
        """
        table = self._catalog.find(self._target)
        if table is None:
            raise OperationError(
                f"There is no table {self._target}: run the model first. Nothing was loaded."
            )
        letters = self._catalog.find(self._letters)
        if letters is None:
            raise OperationError(
                f"{self._target} has no dead letters: there is no table {self._letters}. Nothing was loaded."
            )
        if why := lacking_column(letters.schema()):
            raise OperationError(
                f"The dead letters of {self._target} would be read from {self._letters}, and {why}. Rename "
                "or restore it there, or set another `dead_letter_suffix`. Nothing was loaded."
            )
        if not self._catalog.is_atomic(table):
            raise OperationError(
                f"The table {self._target} has Iceberg's format version {table.metadata.format_version}, of "
                "which a Thrift server makes no commit that says which letters it holds: replay them with "
                "`method: session`, or in a REST catalog. Nothing was loaded."
            )
        self._check_key(table)
        found = Replayed(
            str(self._target), str(self._letters), self._arguments.plan_only, model=self._model_name
        )
        if self._is_keyed:
            found.key = self._settings.unique_key
            found.beside_key = self._arguments.beside_key(found.key)
        try:
            self._refresh()
            self._check_where()
            if not self._arguments.plan_only:
                found.removed = self._finish_earlier(table)
            others = self._spark.rows(replay.count_of_others(str(self._letters), self._model_name))
            found.of_other_models = {str(name): int(number) for name, number in others if name is not None}
            judged = self._judge(table)
            self._load(judged, found)
            if not self._arguments.plan_only:
                self._note_others(judged, table, found)
        except RunCancelledError as exc:
            if self._arguments.plan_only:
                raise
            raise found.cancelled(exc) from exc
        finally:
            self._give_back()
        return found

    def _check_key(self, table: LoadedTable) -> None:
        taken = {fold(f.name) for f in table.schema().fields}
        missing = [name for name in self._settings.unique_key if fold(name) not in taken]
        if self._is_keyed and missing:
            raise OperationError(
                f"{self._target} has no column {quote(missing[0])} of the unique_key: run the model first. "
                "Nothing was loaded."
            )

    def _check_where(self) -> None:
        """See whether the condition, which was written by hand, is one, and Spark understands it.

        Raises:
            OperationError: it is not, or does not; with the reason, and the columns that there are.
        """
        where = self._arguments.where
        if not where:
            return
        # Spark would take what closes our parenthesis for a condition of its own, beside the other ones.
        problem = splitting.expression_problem(where)
        if problem:
            raise self._no_condition(f"It is not one SQL expression: {problem}.")
        try:
            self._spark.rows(replay.check_condition(str(self._letters), where))
        except DbtRuntimeError as exc:
            if not may_be_of_expression(exc):
                raise
            raise self._no_condition(f"Spark says: {short_message(str(exc.msg))}") from exc

    def _no_condition(self, why: str) -> OperationError:
        names = [f.name for f in self._catalog.load(self._letters).schema().fields]
        listed = ", ".join(f"`{name}`" for name in names)
        return OperationError(
            f"`where` is no condition over the dead letters of {self._target}: {self._arguments.where}\n"
            f"{why}\n"
            f"{self._letters} has the columns {listed}. Values of the row are in its `payload`: as in "
            "get_json_object(cast(unbase64(payload) as string), '$.amount') = '12'. Nothing was loaded."
        )

    def _stage(self, query: str, schema: Schema) -> SparkEvolveRelation:
        relation = staging.staging_relation(self._target)
        self._running.staged.append(relation)
        creation = Creation(self._catalog, self._spark, self._running)
        variants = any(has_variant(f.field_type) for f in schema.fields)
        creation.stage(relation, query, staging.staging_properties(variants=variants))
        return relation

    def _give_back(self) -> None:
        """Remove what was staged, and the branch of a load that has ended half-way."""
        if self._running.load is not None:
            drop_branches(self._catalog, self._running.load)
        for relation in self._running.staged:
            try:
                self._catalog.purge(relation)
            except FilesLeftError as exc:
                warn_of_rest(exc.msg)
            except Exception as exc:
                warn_of_rest(not_removed(f"The staged batch {relation}", exc))

    def _refresh(self) -> None:
        for relation in (self._target, self._letters):
            self._spark.run(branch_statements.refresh_table(str(relation)))

    def _finish_earlier(self, table: LoadedTable) -> int:
        """Remove the letters whose rows another replay has published; return how many there were.

        Raises:
            OperationError: whether their rows are there is not known, and they would be added once more.
        """
        found = loaded_letters(table)
        if not found.ids:
            return 0
        if found.is_certain:
            return self._remove(found.ids)
        # By a key, rows that are there are not replaced by older ones.
        if not self._is_keyed and (number := self._count(found.ids)):
            raise OperationError(
                f"An earlier replay has ended before it removed {counted(number, 'dead letter')} of "
                f"{self._letters}, and whether {agreeing(number, 'its row is', 'their rows are')} still in "
                f"{self._target} is not known, as the table's older snapshots and metadata files are gone. "
                "Look at the rows, delete the letters of those that are there, run `ALTER TABLE "
                f"{self._target} UNSET TBLPROPERTIES ('{REPLAYED}')`, and this again. Nothing was loaded."
            )
        return 0

    def _count(self, ids: Sequence[str]) -> int:
        query = replay.count_of(str(self._letters), self._model_name, ids)
        return int(self._spark.rows(query)[0][0])

    def _remove(self, ids: Sequence[str]) -> int:
        number = self._count(ids)
        if number:
            self._spark.run(replay.delete_letters(str(self._letters), self._model_name, ids))
        return number

    def _judge(self, table: LoadedTable) -> JudgedLetters:
        schema = table.schema()
        names = letter_names(table, self._settings.column_renames, self._padded)
        key = set(map(fold, self._settings.unique_key))
        own = replay.own_names({f.name for f in schema.fields})
        staged = self._stage(
            replay.read_back(
                str(self._letters),
                names.columns,
                key=[column for column in names.columns if self._is_keyed and fold(column.name) in key],
                model=self._model_name,
                conditions=self._arguments.conditions,
                limit=self._arguments.limit,
                newest_only=self._is_keyed and not self._arguments.overwrite,
                known_only=not self._leaves_out,
                own=own,
                former=names.former,
                complete=names.complete,
            ),
            schema,
        )
        read = [(f, payloads.read_as(f.field_type)) for f in schema.fields]
        source = Schema(
            *(NestedField(f.field_id, f.name, type_ or f.field_type, required=False) for f, type_ in read)
        )
        may_relax = self._settings.relax_not_null and not self._settings.frozen_for
        members = conversions(schema, source, Policy(relax_not_null=may_relax))
        types = {
            own.letter: StringType(),
            own.chunk: LongType(),
            own.loaded: LongType(),
            own.absent: StringType(),
        }
        judgement = dead_letters.Judgement(
            f"(SELECT * FROM {staged} WHERE {quote(own.problem)} IS NULL)",
            {f.name: f.field_type for f in source.fields} | types,
            [*members, *(Member(name, (name,), Unchanged()) for name in types)],
            {},
            identity=(own.letter,),
            unique=spelled(self._settings.unique_key, (f.name for f in schema.fields))
            if self._settings.merges
            else (),
            # Older ones of a key are replaced by newer ones, as batches would.
            apart=(own.loaded,),
            audits=self._settings.row_audits,
        )
        judged = naming_audits(
            str(self._target),
            judgement.audits,
            lambda some: self._stage(replace(judgement, audits=some).judged(), schema),
        )
        return JudgedLetters(str(staged), judgement, str(judged), schema, own)

    def _padded(self, f: NestedField) -> DefaultValue | None:
        """Return what letters without a column get in it, which is what they are judged by; None for NULL."""
        if self._is_keyed and fold(f.name) in set(map(fold, self._settings.unique_key)):
            return None
        pads = self._settings.pad_with == "default"
        policy = Policy(defaults=self._settings.defaults, pad_with_default=pads, keep_defaults=True)
        return ColumnDefaults(policy).of_padded((f.name,), f.name, f)

    def _load(self, judged: JudgedLetters, found: Replayed) -> None:
        for reason, number in self._spark.rows(judged.reasons):
            found.staying[str(reason)] += int(number)
        for number, absent in self._spark.rows(judged.chunks):
            self._load_chunk(judged, Chunk(int(number), str(absent)), found)
        if self._arguments.plan_only:
            return
        self._spark.run(replay.update_reasons(str(self._letters), judged.bad))
        self._forget()

    def _load_chunk(self, judged: JudgedLetters, chunk: Chunk, found: Replayed) -> None:
        retries = self._settings.commit_retries
        for attempt in range(retries + 2):
            base = self._runner.begin_load(self._target, is_plan=self._arguments.plan_only)
            if _places(base.table.schema()) != _places(judged.schema):
                raise OperationError(
                    f"The columns of {self._target} have changed since its dead letters were read, so that "
                    f"their values might have no place any more: run this again. Until then "
                    f"{counted(found.loaded, 'dead letter')} {agreeing(found.loaded, 'was', 'were')} loaded."
                )
            self._spark.run(branch_statements.refresh_table(str(self._target)))
            if not self._arguments.plan_only:
                self._finish_earlier(base.table)
            left = self._left(judged, chunk, base)
            ids = [id_ for id_ in self._still_there(judged.ids(chunk)) if id_ not in left]
            if self._arguments.plan_only or not ids:
                found.loaded += int(self._spark.rows(judged.count(ids))[0][0]) if ids else 0
                self._note_left(judged, left, found)
                self._note_left_out(judged, ids, found)
                return
            absent = self._absent(judged, chunk)
            staged = self._stage(judged.rows(ids, absent), judged.schema)
            # Counted before: of rows that are published nothing may come between that and the count.
            number = int(self._spark.rows(judged.count(ids))[0][0])
            if self._try_to_load(staged, base, ids, absent, attempt > retries, found.loaded):
                # Another replay that begins right now removes their letters as well.
                found.loaded += number
                self._loaded.update(ids)
                self._remove(ids)
                self._note_left(judged, left, found)
                self._note_left_out(judged, ids, found)
                return
        raise self._conflict(retries + 1, found.loaded)

    def _conflict(self, attempts: int, loaded: int) -> OperationError:
        return OperationError(
            f"Other writers committed to {self._target} each time that its dead letters had been loaded, "
            f"{counted(attempts, 'time')}, so these were not published, and stay where they are. Until then "
            f"{counted(loaded, 'dead letter')} {agreeing(loaded, 'was', 'were')} loaded. Run this again when "
            "the table is quieter, or raise `commit_retries`."
        )

    def _still_there(self, ids: str) -> list[str]:
        """Return those of the ids of a query whose letters nobody has removed since they were judged.

        Of what another replay has loaded meanwhile the ids are in the table that this chunk begins with, or
        the letters are gone.
        """
        self._spark.run(branch_statements.refresh_table(str(self._letters)))
        there = f"SELECT {replay.letter_id()} FROM {self._letters}"
        return [str(row[0]) for row in self._spark.rows(f"{ids} INTERSECT {there}")]

    def _absent(self, judged: JudgedLetters, chunk: Chunk) -> list[str]:
        """Return the columns that the rows of a chunk lack, as a batch of the model without them would."""
        key = set(map(fold, self._settings.unique_key)) if self._is_keyed else set()
        names = [judged.schema.fields[int(place)].name for place in chunk.absent.split(",") if place]
        return [name for name in names if fold(name) not in key]

    def _try_to_load(
        self,
        staged: SparkEvolveRelation,
        base: Base,
        ids: Sequence[str],
        absent: Sequence[str],
        is_last: bool,
        loaded: int,
    ) -> bool:
        """Load rows and publish them with the ids of their letters; tell whether that is done."""
        settings = self._of_a_replay()
        detected: Mapping[str, Sequence[str]] = {"new": [], "removed": absent}
        load: Load = self._runner.evolve(base, self._target, staged, settings, {}, detected)
        for number in range(len(load.steps)):
            self._runner.run_step(load, number)
        head = self._catalog.head(self._target, str(load.branch))
        if head is not None:
            published = replay.Published(base.ref, head.snapshot_id, tuple(ids))
            load.properties = {REPLAYED: published.text}
        self._runner.audit(load)
        try:
            return bool(self._runner.publish(load, is_last))
        except PublishConflictError as exc:
            raise self._conflict(exc.attempts, loaded) from exc

    def _of_a_replay(self) -> IncrementalSettings:
        """Return settings that load rows by the model's key, or add them."""
        return replace(
            self._settings,
            strategy=self._settings.strategy if self._is_keyed else Strategy.APPEND,
            unique_key=self._settings.unique_key if self._is_keyed else (),
            event_time=None,
            publish="branch",
            on_schema_change="ignore",
            add_columns=False,
            # Rows are padded with the model's defaults; to change those of the table is for a run.
            keep_defaults=True,
            column_renames={},
            tblproperties={},
            on_bad_rows="fail",
            row_audits=(),
        )

    @property
    def _leaves_out(self) -> bool:
        """Whether values for which the table has no place are left out, as in a run of the model."""
        return self._settings.on_schema_change == "ignore"

    @property
    def _is_keyed(self) -> bool:
        return self._settings.strategy in KEYED and bool(self._settings.unique_key)

    def _left(self, judged: JudgedLetters, chunk: Chunk, base: Base) -> dict[str, str]:
        """Return which letters of a chunk stay for the rows of their keys, with the reason, by id."""
        if not self._is_keyed:
            return {}
        key = spelled(self._settings.unique_key, (f.name for f in judged.schema.fields))
        own = judged.own
        left = self._excluded(judged, chunk, key)
        if self._arguments.overwrite:
            return left
        for loaded in sorted(int(row[0]) for row in self._spark.rows(judged.times(chunk))):
            then = _snapshot_at(base, loaded // 1000)
            of_letters = judged.at(chunk, loaded)
            now = replay.rows_of(str(self._target), None, of_letters, compared(judged.schema), key, own)
            before = base.table.schemas().get(_schema_id(base, then)) if then is not None else None
            if then is not None and before is not None and _has(before, judged.schema, key):
                columns = compared(judged.schema, before)
                was = replay.rows_of(str(self._target), then, of_letters, columns, key, own)
                query, reason = f"{now}\nEXCEPT\n{was}", NEWER_ROW
                gone = f"{was}\nEXCEPT\n{now}"
                # What was loaded since is newer also if it has the same values again.
                added_by = inserting_since(base.table.metadata, base.head, then)
                if added_by and all(fold(f.name) != "_file" for f in judged.schema.fields):
                    all_ = compared(judged.schema)
                    since = replay.rows_of(
                        str(self._target), None, of_letters, all_, key, own, added_by, is_main=base.is_main
                    )
                    query = f"({query})\nUNION ALL\n{since}"
            else:
                query, reason, gone = (
                    now,
                    NEWER_ROW if then is None and not has_lost(base.table, base.head) else FORGOTTEN,
                    None,
                )
            for letter, is_there in self._spark.rows(replay.letters_passed(query, gone)):
                # What `overwrite` would not load either has a reason already.
                left.setdefault(str(letter), reason if is_there else DELETED_ROW)
        return left

    def _excluded(self, judged: JudgedLetters, chunk: Chunk, key: Sequence[str]) -> dict[str, str]:
        """Return which letters stay since a key would have several rows, with the reason, by id.

        A condition that goes with the time lets a run look at rows as old as its own; a letter is older.
        """
        settings = self._settings
        if not settings.predicates:
            return {}
        is_merge = settings.strategy == Strategy.MERGE
        letters = judged.at(chunk)
        query = replay.excluded(
            str(self._target), letters, settings.predicates, key, judged.own, is_merge=is_merge
        )
        left = {str(row[0]): EXCLUDED for row in self._spark.rows(query)}
        if self._arguments.overwrite:
            # The newest one's row is the one to be there.
            query = replay.excluded(
                f"(\n{letters}\n)",
                judged.stored,
                settings.predicates,
                key,
                judged.own,
                is_merge=is_merge,
                are_letters=True,
            )
            for row in self._spark.rows(query):
                left.setdefault(str(row[0]), BEFORE_OTHERS)
        return left

    def _note_others(self, judged: JudgedLetters, since: LoadedTable, found: Replayed) -> None:
        """Note what others have done with letters since these were read: of those nothing else is said."""
        self._spark.run(branch_statements.refresh_table(str(self._letters)))
        ids = f"SELECT {replay.letter_id()} AS `letter` FROM {self._letters}"
        if int(self._spark.rows(judged.count_gone(ids))[0][0]) <= found.loaded:
            return
        by_replay = {
            id_
            for properties in properties_since(self._catalog.load(self._target), since)
            if (published := replay.published_in(properties.get(REPLAYED))) is not None
            for id_ in published.ids
        }
        for letter, number in self._spark.rows(judged.gone(ids)):
            if str(letter) in self._loaded:
                continue
            if str(letter) in by_replay:
                found.by_others += int(number)
            else:
                found.gone += int(number)
            if reason := self._staying.get(str(letter)):
                found.staying[reason] -= int(number)
        for reason, number in self._spark.rows(judged.reasons_of_gone(ids)):
            found.staying[str(reason)] -= int(number)
        found.staying = +found.staying

    def _note_left(self, judged: JudgedLetters, left: Mapping[str, str], found: Replayed) -> None:
        self._staying.update(left)
        for reason in set(left.values()):
            ids = [letter for letter, why in left.items() if why == reason]
            found.staying[reason] += int(self._spark.rows(judged.count(ids))[0][0])

    def _note_left_out(self, judged: JudgedLetters, ids: Sequence[str], found: Replayed) -> None:
        if self._leaves_out and ids:
            for paths, number in self._spark.rows(judged.unknown(ids)):
                found.left_out[str(paths)] += int(number)

    def _forget(self) -> None:
        """Take the ids of the letters out of the table again, unless some are another replay's."""
        try:
            table = self._catalog.load(self._target)
            listed = table.properties.get(REPLAYED)
            if listed is None:
                return
            found = loaded_letters(table)
            if found.ids and found.is_certain:
                self._remove(found.ids)
            retries = self._settings.commit_retries
            self._catalog.replace_property(self._target, REPLAYED, listed, None, retries)
        except Exception as exc:
            # They say of letters that are gone that they are to go.
            logger.debug(f"The property {REPLAYED} of {self._target} was not removed: {exc}")


def _places(schema: Schema) -> list[tuple[Path, int, IcebergType | None]]:
    """Return where a table has places for values: what has to be the same for letters that were read."""
    return [
        (path, f.field_id, f.field_type if f.field_type.is_primitive else None)
        for path, f in fields_within(schema.as_struct())
    ]


def _snapshot_at(base: Base, ms: int) -> int | None:
    """Return the snapshot that readers saw at a time; None if there was none, or it is gone."""
    metadata = base.table.metadata
    seen = [entry.snapshot_id for entry in metadata.snapshot_log if entry.timestamp_ms <= ms]
    if not seen or metadata.snapshot_by_id(seen[-1]) is None:
        return None
    return seen[-1]


def _schema_id(base: Base, snapshot_id: int) -> int:
    snapshot = base.table.metadata.snapshot_by_id(snapshot_id)
    known = snapshot.schema_id if snapshot is not None else None
    return base.table.metadata.current_schema_id if known is None else known


def _has(before: Schema, schema: Schema, names: Collection[str]) -> bool:
    """Tell whether a schema has had some of the columns of another one, under whatever names."""
    ids = {f.field_id for f in before.fields}
    return all(f.field_id in ids for f in schema.fields if f.name in names)
