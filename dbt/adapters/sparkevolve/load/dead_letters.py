"""Rows that cannot be placed in their table: told from the others once the batch is staged, and set aside."""

import functools
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from dbt.adapters.events.logging import AdapterLogger
from dbt_common.exceptions import DbtRuntimeError
from dbt_common.invocation import get_invocation_id
from pyiceberg.schema import Schema
from pyiceberg.types import StringType, TimestamptzType

from dbt.adapters.sparkevolve.clauses import DEFAULT_TABLE_PROPERTIES
from dbt.adapters.sparkevolve.errors import (
    NO_TABLE_MADE,
    ROWS_AS_THEY_WERE,
    ConnectionLostError,
    DeadLetterTableError,
    EvolutionRefusedError,
    PublishConflictError,
    RunCancelledError,
    TooManyBadRowsError,
    may_have_taken_effect,
)
from dbt.adapters.sparkevolve.evolution import refusals
from dbt.adapters.sparkevolve.evolution.conversions import (
    Member,
    Unchanged,
    Whole,
    converted_schema,
    filled_paths,
)
from dbt.adapters.sparkevolve.evolution.names import fold, is_plain, quote, spelled
from dbt.adapters.sparkevolve.evolution.plan import EvolutionPlan, move_setting
from dbt.adapters.sparkevolve.evolution.policy import Policy, TableFacts
from dbt.adapters.sparkevolve.evolution.projection import Keep, Pad
from dbt.adapters.sparkevolve.evolution.record import REPLAYED
from dbt.adapters.sparkevolve.evolution.types import spark_type
from dbt.adapters.sparkevolve.iceberg import branches, staging
from dbt.adapters.sparkevolve.iceberg.base import Base
from dbt.adapters.sparkevolve.iceberg.catalog import IcebergCatalog, LoadedTable
from dbt.adapters.sparkevolve.iceberg.facts import table_facts
from dbt.adapters.sparkevolve.iceberg.publication import Claim, Published, TakenBack, has_rows_in
from dbt.adapters.sparkevolve.iceberg.retry import wait_seconds
from dbt.adapters.sparkevolve.iceberg.staged_batch import StagedBatch
from dbt.adapters.sparkevolve.load.audits import naming_audits
from dbt.adapters.sparkevolve.load.batch_plan import conversions_of, plan_batch, policy_of
from dbt.adapters.sparkevolve.load.creation import Creation
from dbt.adapters.sparkevolve.load.letters import MOST_SAMPLES, Letters, PublishedLetters, reasons_of
from dbt.adapters.sparkevolve.load.node import Node
from dbt.adapters.sparkevolve.load.strategies import window
from dbt.adapters.sparkevolve.messages import is_conflict_in_spark
from dbt.adapters.sparkevolve.relation import SparkEvolveRelation
from dbt.adapters.sparkevolve.settings import IncrementalSettings
from dbt.adapters.sparkevolve.spark.interface import Spark
from dbt.adapters.sparkevolve.sql import branch_statements, dml, replay
from dbt.adapters.sparkevolve.sql import dead_letters as sql
from dbt.adapters.sparkevolve.warning import not_removed, warn_of_rest

logger = AdapterLogger("SparkEvolve")

# File systems and the tables of catalogs in SQL take no longer names.
_LONGEST_BYTES = 255
# How often writing is begun again, beside after what the model's `commit_retries` allow.
_MOST_LOST = 3
# How often letters are taken out from among those that others write.
_MOST_BUILT_ON = 5
_STAMP = threading.Lock()
_last_stamp = 0


def _new_stamp(now: int) -> int:
    """Return a time in microseconds since the epoch, the given one or a later one, once in this process."""
    global _last_stamp
    with _STAMP:
        _last_stamp = max(_last_stamp + 1, now)
        return _last_stamp


def letters_relation(target: SparkEvolveRelation, settings: IncrementalSettings) -> SparkEvolveRelation:
    """Return the name of the table for the dead letters of a table."""
    name = f"{target.identifier}{settings.dead_letter_suffix}"
    return target.replace(path=target.path.replace(identifier=name))


class DeadLetters:
    """Sets aside the rows of a batch that cannot be placed, and publishes them with the others.

    Args:
        catalog: the catalog.
        spark: where the node runs.
        node: the node that runs.
    """

    def __init__(self, catalog: IcebergCatalog, spark: Spark, node: Node) -> None:
        self._catalog = catalog
        self._spark = spark
        self._node = node

    def check(
        self,
        target: SparkEvolveRelation,
        settings: IncrementalSettings,
        others: Mapping[str, Sequence[str]],
        other_kind: str = "",
        *,
        is_plan: bool = False,
    ) -> None:
        """See whether a model's bad rows can be set aside, before anything of it runs.

        Args:
            target: the model's table.
            settings: the model's.
            others: schema and name of what other nodes of the project build, by their ids.
            other_kind: what is there under the name of the table for dead letters, if it is no table.
            is_plan: whether nothing will be loaded: nothing is removed then.

        Raises:
            DeadLetterTableError: they cannot.
        """
        relation = letters_relation(target, settings)
        if len(str(relation.identifier).encode()) > _LONGEST_BYTES:
            raise DeadLetterTableError(
                str(relation), str(target), f"a name has no more than {_LONGEST_BYTES} bytes"
            )
        wanted = [fold(str(part)) for part in (relation.schema, relation.identifier)]
        for node, names in others.items():
            if [fold(name) for name in names] == wanted:
                raise DeadLetterTableError(str(relation), str(target), f"that is what {node} builds")
        if other_kind:
            raise DeadLetterTableError(str(relation), str(target), f"that is a {other_kind}")
        table = self._catalog.find(relation)
        if table is None:
            return
        _check_columns(table.schema(), relation, target)
        if is_plan:
            return
        for branch in self._catalog.base(relation, lambda: None, table).left_over:
            logger.info(f"Removing the branch {branch} of {relation}, which an earlier run left behind")
            self._drop(relation, branch)

    def route(
        self,
        target: SparkEvolveRelation,
        table: LoadedTable | None,
        staged: SparkEvolveRelation,
        settings: IncrementalSettings,
        model: str,
        location: str | None = None,
    ) -> SparkEvolveRelation:
        """Tell bad rows of a staged batch from good ones, and return the batch of the good ones.

        Its values have the types of the table, so that all that follows sees a batch like any other. What was
        found is in the node's ``letters``.

        Args:
            target: the model's table.
            table: the table as it is; None if there is none.
            staged: the batch.
            settings: the model's.
            model: the model's name.
            location: the literal of where the table for dead letters is to be; None if the catalog chooses.

        Raises:
            EvolutionRefusedError: the batch cannot be loaded, whichever of its rows are left out.
            UnreadableAuditError: an audit of the severity `row` cannot be evaluated.
            TooManyBadRowsError: more rows are bad than the model allows.
            WarningsError: there are bad rows, and warnings are errors.
        """
        known = self._node.letters
        schema = table.schema() if table is not None else None
        # In each attempt: a replay may be why this run begins again.
        self._finish_replay(target, table or self._node.table, settings, model)
        if known is not None and known.staged == staged and known.table == schema:
            return known.good
        batch = self._catalog.staged_batch(staged)
        facts = table_facts(table) if table is not None else TableFacts()
        members = tuple(Member(f.name, (f.name,), Unchanged()) for f in batch.schema.fields)
        padded: dict[str, str] = {}
        projected: dict[str, str] = {}
        policy = Policy()
        if schema is not None:
            members = conversions_of(batch, settings, schema, facts)
            policy = policy_of(batch, settings, {}, facts)
            plan = self._check_plan(target, batch, settings, schema, facts, members)
            padded = {c.name: c.projection.render("") for c in plan.columns if isinstance(c.projection, Pad)}
            projected = {
                c.name: c.render(dml.TARGET_ALIAS)
                for c in plan.columns
                if not isinstance(c.projection, Pad) and (c.projection != Keep() or c.name != c.source)
            }
        filled = filled_paths(members)
        letters = Letters(
            target,
            letters_relation(target, settings),
            staged,
            staged,
            model,
            location=location,
            table=schema,
            filled=filled,
        )
        self._node.letters = letters
        judgement = _judgement(staged, schema, batch, members, settings, padded, projected)
        # Without rows too, the batch is to have the types of the table.
        if not judgement.is_needed or not (batch.rows or judgement.converting):
            return staged
        counts = naming_audits(
            str(target),
            judgement.audits,
            lambda some: self._spark.rows(replace(judgement, audits=some).count())[0],
            ROWS_AS_THEY_WERE if table is not None or self._node.is_replacing else NO_TABLE_MADE,
        )
        letters.rows, bad, *values = map(int, counts)
        self._check_values(target, schema, batch, policy, judgement.converting, values)
        if bad:
            self._set_aside(target, judgement, letters, settings)
        elif judgement.converting:
            letters.good = self._stage(target, judgement.converted(), settings, batch)
        return letters.good

    def _finish_replay(
        self,
        target: SparkEvolveRelation,
        table: LoadedTable | None,
        settings: IncrementalSettings,
        model: str,
    ) -> None:
        """Remove letters that a replay has loaded and, since it was killed, not removed.

        Now, while their rows are there: a letter that this run needs is not written if there is one.
        """
        found = loaded_letters(table) if table is not None else LoadedLetters()
        if table is None or not found.ids or not found.is_certain:
            return
        letters = letters_relation(target, settings)
        if self._catalog.find(letters) is None:
            # They may be under another suffix, and are not to be loaded again by what goes back to that.
            return
        self._spark.run(branch_statements.refresh_table(str(letters)))
        # Each DELETE is a commit, also one that removes nothing.
        if int(self._spark.rows(replay.count_of(str(letters), model, found.ids))[0][0]):
            self._spark.run(replay.delete_letters(str(letters), model, found.ids))
        try:
            # Or else each run looks for them again. What another replay has put there since stays.
            listed = table.properties[REPLAYED]
            self._catalog.replace_property(target, REPLAYED, listed, None, settings.commit_retries)
        except RunCancelledError:
            raise
        except Exception as exc:
            logger.debug(f"The property {REPLAYED} of {target} was not removed: {exc}")

    def _check_plan(
        self,
        target: SparkEvolveRelation,
        batch: StagedBatch,
        settings: IncrementalSettings,
        schema: Schema,
        facts: TableFacts,
        members: Sequence[Member],
    ) -> EvolutionPlan:
        """Refuse what no choice of rows makes possible, before any row is looked at; return the plan."""
        before = batch.schema, batch.columns_without_null, batch.filled
        batch.schema = converted_schema(batch.schema, members)
        batch.columns_without_null |= {fold(m.name) for m in members if m.not_null}
        batch.filled = filled_paths(members)
        plan = plan_batch(batch, settings, {}, schema, facts, self._node.name)
        batch.schema, batch.columns_without_null, batch.filled = before
        if plan.refusals:
            helps = settings.may_be_replaced
            raise EvolutionRefusedError(str(target), plan.refusals, helps, self._node.changed)
        return plan

    def _check_values(
        self,
        target: SparkEvolveRelation,
        schema: Schema | None,
        batch: StagedBatch,
        policy: Policy,
        converting: Sequence[Member],
        counts: Sequence[int],
    ) -> None:
        """Refuse columns of another type of which not one value converts."""
        found = []
        for number, member in enumerate(converting):
            values, failing = counts[2 * number : 2 * number + 2]
            if schema is not None and values and values == failing and isinstance(member.conversion, Whole):
                conversion = member.conversion
                move = move_setting(member.path, schema, batch.schema, policy)
                found.append(
                    refusals.never_converts(member.path, conversion.target, conversion.source, values, move)
                )
        if found:
            raise EvolutionRefusedError(str(target), found, changed=self._node.changed)

    def _set_aside(
        self,
        target: SparkEvolveRelation,
        judgement: sql.Judgement,
        letters: Letters,
        settings: IncrementalSettings,
    ) -> None:
        # From here on what was decided of each row stands: an audit may say something else each time.
        judged = self._new_table(target, judgement.judged())
        query = judgement.letters(str(judged))
        letters.bad = int(self._spark.rows(sql.count_letters(query))[0][0])
        letters.reasons = reasons_of(self._spark.rows(sql.by_reason(query, MOST_SAMPLES)))
        limit = settings.dead_letter_limit
        if limit is not None and limit.is_exceeded(letters.bad, letters.rows):
            raise TooManyBadRowsError(str(target), letters.bad, letters.rows, limit.text, letters.lines)
        if letters.bad:
            self._node.refuse_warnings([letters.refusal])
        letters.query = query if letters.bad else None
        letters.good = self._stage(target, judgement.good(str(judged)), settings, judgement.types)

    def _stage(
        self,
        target: SparkEvolveRelation,
        query: str,
        settings: IncrementalSettings,
        columns: "StagedBatch | Mapping[str, object]",
    ) -> SparkEvolveRelation:
        names = [f.name for f in columns.schema.fields] if isinstance(columns, StagedBatch) else list(columns)
        keys = {fold(name) for name in (settings.unique_key or (settings.event_time,)) if name}
        # Of a key whose name has a quote in it there are no bounds; they are for speed alone.
        return self._new_table(target, query, [n for n in names if fold(n) in keys and is_plain(n)])

    def _new_table(
        self, target: SparkEvolveRelation, query: str, bounded: Sequence[str] = ()
    ) -> SparkEvolveRelation:
        properties = staging.staging_properties(bounded, variants=self._node.stages_variants)
        relation = staging.staging_relation(target)
        self._node.staged.append(relation)
        Creation(self._catalog, self._spark, self._node).stage(relation, query, properties)
        return relation

    def publish(self, retries: int) -> None:
        """Publish the letters of the node's batch, those that their table does not have yet.

        Raises:
            DeadLetterTableError: the table is none that holds dead letters.
            PublishConflictError: others have committed to it each time.
            PublishError: the catalog refused.
        """
        letters = self._node.letters
        if letters is None or letters.query is None or letters.is_written:
            return
        self._create(letters)
        lost = number = 0
        while True:
            try:
                if self._try_to_publish(letters, retries):
                    letters.is_written = True
                    return
            except RunCancelledError:
                raise
            except ConnectionLostError:
                # What the server still writes is on a branch that nobody publishes.
                lost += 1
                if lost > _MOST_LOST:
                    raise
                self._spark.reconnect()
                continue
            except DbtRuntimeError as exc:
                if number >= retries or not is_conflict_in_spark(str(exc)):
                    raise
            if number >= retries:
                raise PublishConflictError(str(letters.relation), retries + 1)
            time.sleep(wait_seconds(number))
            number += 1

    def take_back(self) -> None:
        """Take back the letters that the node has published: its rows are not visible.

        Not if another run relies on them: of two runs of a batch one writes letters that the other finds.
        """
        letters = self._node.letters
        if letters is None:
            return
        # Another attempt looks again whether they are there, those too that others have written.
        published, letters.published, letters.is_written = letters.published, None, False
        if published is None:
            return
        try:
            # Where others have written more of them, and write on.
            for number in range(_MOST_BUILT_ON):
                if number:
                    time.sleep(wait_seconds(number))
                outcome = self._catalog.take_back(
                    letters.relation, published.base, published.head, published.claim
                )
                if outcome != TakenBack.BUILT_ON or self._try_to_delete(letters.relation, published):
                    return
            raise PublishConflictError(str(letters.relation), _MOST_BUILT_ON)
        except Exception as exc:
            warn_of_rest(
                f"{letters.relation} may still have dead letters of this run, though its rows were not "
                f"loaded: {exc} A run of the same batch does not write them again."
            )

    def _try_to_delete(self, relation: SparkEvolveRelation, published: PublishedLetters) -> bool:
        """Remove the letters of this node from among those of others; tell whether that is done."""
        self._spark.run(branch_statements.refresh_table(str(relation)))
        delete = functools.partial(
            sql.delete_letters,
            invocation_id=published.invocation_id,
            loaded_micros=published.loaded_micros,
        )
        base = self._catalog.base(relation, lambda: self._spark.setting("spark.wap.branch"))
        outcome, _ = self._on_branch(relation, base, delete, _MOST_BUILT_ON, used_claim=published.claim)
        if outcome == Published.NOTHING_NEW:
            # Somebody has removed them, and only the claim is left.
            self._drop(relation, published.claim)
        return outcome != Published.MOVED

    def leave(self) -> None:
        """Leave the letters where they are, whatever the node ends with: its rows may be visible."""
        if self._node.letters is not None:
            self._node.letters.stay = True

    def give_back(self, error: BaseException | None) -> None:
        """Take the letters back if the node has ended without its rows being visible, as far as is known.

        Args:
            error: what the node has ended with.
        """
        letters = self._node.letters
        if letters is None or letters.published is None:
            return
        # Of a table that is made by one statement, too, it may not be known whether it was made.
        is_unknown = letters.stay or may_have_taken_effect(error)
        if self._node.outcome is None and not is_unknown:
            self.take_back()
        else:
            self._drop(letters.relation, letters.published.claim)

    def _create(self, letters: Letters) -> None:
        relation = letters.relation
        table = self._catalog.find(relation)
        if table is None:
            try:
                self._spark.run(sql.create_table(str(relation), DEFAULT_TABLE_PROPERTIES, letters.location))
            except RunCancelledError:
                raise
            except DbtRuntimeError:
                # Another run may have made it at the same time.
                if self._catalog.find(relation) is None:
                    raise
        _check_columns(self._catalog.load(relation).schema(), relation, letters.target)

    def _try_to_publish(self, letters: Letters, retries: int) -> bool:
        """Write the letters that are not there yet to a branch, and publish it; tell whether that is done."""
        relation = letters.relation
        self._spark.run(branch_statements.refresh_table(str(relation)))
        base = self._catalog.base(relation, lambda: self._spark.setting("spark.wap.branch"))
        if not self._rely_on_others(letters, base):
            return False
        # By Spark's clock, as commits to the model's table are, with whose times a replay compares it.
        stamp = _new_stamp(int(self._spark.rows(sql.NOW)[0][0]))
        names = {f.name: spark_type(f.field_type) for f in base.table.schema().fields}
        insert = functools.partial(
            sql.insert_letters,
            names=names,
            letters=str(letters.query),
            model=letters.model,
            invocation_id=get_invocation_id(),
            loaded_micros=stamp,
        )
        claim = Claim(branches.claim_name(stamp), branches.retain_minutes(None, 0))
        outcome, head = self._on_branch(relation, base, insert, retries, claim)
        if outcome == Published.YES and head is not None:
            letters.published = PublishedLetters(base, head, claim.name, get_invocation_id(), stamp)
            self._spark.run(branch_statements.refresh_table(str(relation)))
        return outcome != Published.MOVED

    def _rely_on_others(self, letters: Letters, base: Base) -> bool:
        """Let no other run take back what it has written of this batch; tell whether it is still there.

        A letter that is there is not written again, so this run's rows must not become visible before it is
        certain to stay.
        """
        claims = branches.claims(base.table.metadata.refs)
        if not claims:
            return True
        query = sql.times_of_letters(
            str(letters.relation), str(letters.query), model=letters.model, times=claims.values()
        )
        times = {int(row[0]) for row in self._spark.rows(query)}
        wanted = [name for name, stamp in claims.items() if stamp in times]
        return not wanted or self._catalog.rely_on(letters.relation, base, wanted)

    def _on_branch(
        self,
        relation: SparkEvolveRelation,
        base: Base,
        statement: Callable[[str], str],
        retries: int,
        claim: Claim | None = None,
        used_claim: str | None = None,
    ) -> tuple[Published, int | None]:
        """Run a statement on a branch of the dead letters, and publish that; return the snapshot, too.

        Args:
            relation: their table.
            base: its state.
            statement: returns the statement for the rendered name of the branch.
            retries: how often to try again.
            claim: see ``publication.publish``.
            used_claim: see there.
        """
        branch = branches.branch_name()
        minutes = branches.retain_minutes(base.cut_at_ms, time.time_ns() // 1_000_000)
        outcome = None
        try:
            self._spark.run(branch_statements.create_branch(str(relation), branch, base.cut_at, minutes))
            self._spark.run(statement(branch_statements.branch_of(str(relation), branch)))
            ended = time.monotonic()
            head = self._catalog.head(relation, branch)
            outcome = self._catalog.publish(
                relation,
                base,
                branch,
                retries,
                lambda: int((time.monotonic() - ended) * 1000),
                claim=claim,
                used_claim=used_claim,
            )
        finally:
            if outcome != Published.YES:
                self._drop(relation, branch)
        return outcome, head.snapshot_id if head is not None else None

    def _drop(self, relation: SparkEvolveRelation, ref: str) -> None:
        try:
            self._catalog.drop_branch(relation, ref)
        except Exception as exc:
            warn_of_rest(not_removed(f"The branch or tag {ref} of {relation}", exc))


@dataclass(frozen=True)
class LoadedLetters:
    """The letters that a replay has loaded into a table and, maybe, not removed.

    Attributes:
        ids: their ids; none if their rows are not there any more, since the table was rolled back.
        is_certain: whether it is known that the rows are there.
    """

    ids: Sequence[str] = ()
    is_certain: bool = True


def loaded_letters(table: LoadedTable) -> LoadedLetters:
    """Return what a table says of the letters that a replay has loaded into it."""
    published = replay.published_in(table.properties.get(REPLAYED))
    if published is None:
        return LoadedLetters()
    has_rows = has_rows_in(table, published.ref, published.snapshot_id)
    return LoadedLetters() if has_rows is False else LoadedLetters(published.ids, has_rows is True)


def lacking_column(schema: Schema) -> str:
    """Return which column of a table of dead letters a table of a schema lacks; empty if it has all."""
    found = {fold(f.name): f.field_type for f in schema.fields}
    for name in sql.COLUMNS:
        wanted = TimestamptzType() if name == "loadedAt" else StringType()
        if found.get(fold(name)) != wanted:
            return f"that table has no column {quote(name)} of the type {wanted}"
    return ""


def _check_columns(schema: Schema, relation: SparkEvolveRelation, target: SparkEvolveRelation) -> None:
    if why := lacking_column(schema):
        raise DeadLetterTableError(str(relation), str(target), why)
    own = {fold(name) for name in sql.COLUMNS}
    required = [f.name for f in schema.fields if f.required and fold(f.name) not in own]
    if required:
        raise DeadLetterTableError(
            str(relation), str(target), f"its column {quote(required[0])} takes no NULL, which it would get"
        )


def planned_text(
    target: SparkEvolveRelation, members: Sequence[Member], settings: IncrementalSettings
) -> str:
    """Return what a plan, which stages no rows, says of those that would be set aside; empty if none could.

    Args:
        target: the model's table.
        members: what would happen to each column.
        settings: the model's.
    """
    found = [reason for member in members for reason, _ in member.failures("", 0)]
    found += [f"audit: {audit}" for audit in settings.row_audits]
    if settings.merges:
        found.append("a unique_key that is in several rows of the batch")
    if settings.event_time_start is not None:
        found.append(f"{quote(str(settings.event_time))} outside of its batch")
    if not found:
        return ""
    relation = letters_relation(target, settings)
    return f"Rows may be set aside in {relation}, and the run counts them: {'; '.join(found)}."


def _judgement(
    staged: SparkEvolveRelation,
    schema: Schema | None,
    batch: StagedBatch,
    members: Sequence[Member],
    settings: IncrementalSettings,
    padded: Mapping[str, str],
    projected: Mapping[str, str],
) -> sql.Judgement:
    returned = {fold(f.name) for f in batch.schema.fields}
    identity = [name for name in settings.letter_key if fold(name) in returned]
    return sql.Judgement(
        str(staged),
        {f.name: f.field_type for f in batch.schema.fields},
        members,
        padded if settings.row_audits else {},
        identity=identity if len(identity) == len(settings.letter_key) else (),
        unique=spelled(settings.unique_key, (f.name for f in batch.schema.fields)) if settings.merges else (),
        window=_window(schema, batch, members, settings),
        audits=settings.row_audits,
        projected=projected,
    )


def _window(
    schema: Schema | None, batch: StagedBatch, members: Sequence[Member], settings: IncrementalSettings
) -> sql.Window | None:
    if settings.event_time_start is None or not settings.event_time:
        return None
    name = fold(settings.event_time)
    for f in (
        *(schema.fields if schema is not None else ()),
        *converted_schema(batch.schema, members).fields,
    ):
        if fold(f.name) == name:
            start, end = window(f.field_type, settings)
            condition = dml.between(f.name, spark_type(f.field_type), start, end, open_end=True)
            spelled = next(b.name for b in batch.schema.fields if fold(b.name) == name)
            return sql.Window(spelled, condition, f"{start} to {end}")
    return None
