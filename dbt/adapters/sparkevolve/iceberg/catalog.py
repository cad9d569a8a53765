"""The gateway to the Iceberg catalog. All of this adapter's PyIceberg input and output happens here."""

import random
import threading
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeAlias, TypeVar, cast

from dbt.adapters.base.relation import BaseRelation
from dbt.adapters.events.logging import AdapterLogger
from dbt_common.exceptions import DbtRuntimeError
from pydantic import ValidationError as InvalidModel
from pyiceberg.catalog import AVAILABLE_CATALOGS, Catalog, CatalogType, MetastoreCatalog
from pyiceberg.exceptions import (
    NoSuchNamespaceError,
    NoSuchPropertyException,
    NoSuchTableError,
    ValidationError,
)
from pyiceberg.manifest import ManifestContent, ManifestEntryStatus
from pyiceberg.partitioning import PartitionField
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.table.update import AssertRefSnapshotId, TableRequirement, TableUpdate
from pyiceberg.transforms import IdentityTransform, VoidTransform
from pyiceberg.utils.config import Config
from sqlalchemy.engine import Engine, create_engine

from dbt.adapters.sparkevolve.cancellation import Cancellation
from dbt.adapters.sparkevolve.errors import (
    CatalogUnavailableError,
    CommitConflictError,
    FilesLeftError,
    ForeignCatalogError,
    HiddenBatchError,
    NotIcebergError,
    PublishError,
    RunCancelledError,
    SchemaCommitError,
    StagedBatchGoneError,
    TableChangedError,
    UnreadableTableError,
)
from dbt.adapters.sparkevolve.evolution.history import former_fields
from dbt.adapters.sparkevolve.evolution.names import fold, quote
from dbt.adapters.sparkevolve.evolution.plan import EvolutionPlan
from dbt.adapters.sparkevolve.evolution.policy import TableFacts
from dbt.adapters.sparkevolve.evolution.record import fingerprint
from dbt.adapters.sparkevolve.evolution.table_properties import COMMENT_PROPERTY, NEWEST_FORMAT_TO_COMMIT
from dbt.adapters.sparkevolve.iceberg.base import (
    Base,
    Head,
    base_of,
    has_moved,
    head_of,
    is_same_table,
    partitions,
)
from dbt.adapters.sparkevolve.iceberg.catalog_settings import CatalogSettings
from dbt.adapters.sparkevolve.iceberg.checksums import remove_leftovers
from dbt.adapters.sparkevolve.iceberg.guards import commit
from dbt.adapters.sparkevolve.iceberg.outages import Watch
from dbt.adapters.sparkevolve.iceberg.publication import (
    Published,
    can_read,
    descends_from,
    has_news,
    is_as_cut,
    overwrote_other_partitions,
    publication,
    removal,
    written_ms,
)
from dbt.adapters.sparkevolve.iceberg.schema_commits import (
    commit_changes,
    commit_docs,
)
from dbt.adapters.sparkevolve.iceberg.schema_history import schema_history
from dbt.adapters.sparkevolve.iceberg.staged_batch import StagedBatch
from dbt.adapters.sparkevolve.messages import (
    answer_of,
    is_conflict_in_pyiceberg,
    may_be_outage_in_spark,
    outage,
    refusal,
    what_is_invalid,
)
from dbt.adapters.sparkevolve.redaction import shows_no_secret
from dbt.adapters.sparkevolve.relation import namespace, table_identifier

logger = AdapterLogger("SparkEvolve")

_FIRST_WAIT_SECONDS = 0.05
_LONGEST_WAIT_SECONDS = 5.0
_DROP_RETRIES = 4
# How often a commit is tried again whose catalog went away and came back; conflicts count apart.
_MOST_OUTAGES = 3
DEFAULT_TIMEOUT_SECONDS = 60.0

# What others keep of this module's answers, to hand it back.
LoadedTable: TypeAlias = Table
Result = TypeVar("Result")


@shows_no_secret
class IcebergCatalog:
    """The tables of one catalog.

    Safe to share between threads: PyIceberg's catalogs keep no state of a table, and the connection pool
    of a SQL catalog is shared by design.
    """

    def __init__(
        self,
        settings: CatalogSettings,
        cancellation: Cancellation | None = None,
        timeout_seconds: float = DEFAULT_TIMEOUT_SECONDS,
    ) -> None:
        self._settings = settings
        self._cancellation = cancellation or Cancellation()
        self._watch = Watch(settings, timeout_seconds, self._cancellation)
        self._lock = threading.Lock()
        self._loaded: Catalog | None = None

    @property
    def name(self) -> str:
        """The catalog's name."""
        return self._settings.name

    @property
    def kind(self) -> str:
        """PyIceberg's type of it, in lower case."""
        return self._settings.kind

    @property
    def is_hive(self) -> bool:
        """Whether it is a Hive metastore, which reads the text of each type."""
        return self.kind == "hive"

    def check(self) -> None:
        """See whether the catalog answers, unless it has answered before.

        Raises:
            CatalogUnavailableError: it does not, or it refuses the profile's user.
        """
        if self._watch.has_answered:
            return
        try:
            catalog = self._watch.ask(lambda: self._catalog)
        except CatalogUnavailableError:
            raise
        except Exception as exc:
            reason = refusal(exc)
            if reason is None:
                raise
            self._watch.has_answered = False
            raise self._watch.error(reason) from exc
        try:
            # Some are not asked anything when they are opened.
            self._watch.ask(lambda: catalog.namespace_exists(("default",)), is_waited_out=False)
        except CatalogUnavailableError:
            raise
        except Exception as exc:
            logger.debug(f"The catalog `{self.name}` does not tell whether it has a certain schema: {exc}")

    def check_after(self, error: Exception) -> None:
        """See whether the catalog is away, after a statement of Spark's that may have failed for that.

        Raises:
            CatalogUnavailableError: it is.
        """
        if not may_be_outage_in_spark(str(error)):
            return
        try:
            self._watch.ask(lambda: self._catalog.namespace_exists(("default",)), is_waited_out=False)
        except CatalogUnavailableError as exc:
            raise exc from error
        except Exception as exc:
            logger.debug(f"Why a statement failed cannot be looked up in the catalog: {exc}")

    @property
    def _catalog(self) -> Catalog:
        with self._lock:
            if self._loaded is None:
                self._settings.prepare()
                self._loaded = self._open()
                _give_each_thread_a_connection(self._loaded)
            return self._loaded

    def _open(self) -> Catalog:
        """Open the catalog as the profile says, and say what of it does not reach both sides.

        PyIceberg's own configuration is left out: Spark knows nothing of it, so the two would differ.
        """
        settings = self._settings
        elsewhere = Config().get_catalog_config(settings.name)
        if elsewhere:
            logger.warning(
                "PyIceberg's configuration (.pyiceberg.yaml, or variables PYICEBERG_CATALOG__"
                f"{settings.name.upper()}__…) has settings for a catalog `{settings.name}`: "
                f"{', '.join(sorted(elsewhere))}. They are not used, since Spark would not see them. Put "
                "what is needed into `catalog_properties` of the profile, such as with env_var()."
            )
        if settings.differences:
            logger.warning(settings.differences)
        return AVAILABLE_CATALOGS[CatalogType(settings.kind)](settings.name, dict(settings.pyiceberg))

    def load(self, relation: BaseRelation) -> Table:
        """Return the table, as it is in the catalog now.

        Raises:
            ForeignCatalogError: it is in another catalog.
            NotIcebergError: the catalog has no such table.
            UnreadableTableError: it has one whose metadata PyIceberg cannot read.
        """
        self._refuse_foreign(relation)
        table = self.find(relation)
        if table is None:
            raise NotIcebergError(str(relation), self.name)
        return table

    def _refuse_foreign(self, relation: BaseRelation) -> None:
        if relation.database not in (None, self.name):
            raise ForeignCatalogError(str(relation), str(relation.database), self.name)

    def find(self, relation: BaseRelation) -> Table | None:
        """Return the table, or None if the catalog has no such table: a view, another format, or nothing.

        Raises:
            UnreadableTableError: it has one whose metadata PyIceberg cannot read.
        """
        if relation.database not in (None, self.name) or not (relation.schema and relation.identifier):
            return None
        try:
            return self._watch.ask(lambda: self._catalog.load_table(table_identifier(relation)))
        except (NoSuchTableError, NoSuchNamespaceError):
            return None
        except NoSuchPropertyException:
            # What a Hive metastore's or Glue's other tables look like to PyIceberg.
            return None
        except (ValidationError, InvalidModel) as exc:
            # From a file it is the one, with the other as its cause, and from a REST catalog the other.
            raise UnreadableTableError(str(relation), what_is_invalid(exc)) from exc

    def find_readable(self, relation: BaseRelation) -> Table | None:
        """Return the table; None also if PyIceberg cannot read its metadata, and Spark has to be asked."""
        try:
            return self.find(relation)
        except UnreadableTableError as exc:
            logger.debug(exc.msg)
            return None

    def is_newer_format(self, relation: BaseRelation) -> bool:
        """Tell whether there is a table of a newer format version than new tables have."""
        try:
            table = self.find(relation)
        except UnreadableTableError:
            return True
        return table is not None and table.metadata.format_version > NEWEST_FORMAT_TO_COMMIT

    def table_names(self, schema: str) -> frozenset[str]:
        """Return the names of the Iceberg tables in ``schema``; none if there is no such schema."""
        try:
            listed = self._watch.ask(lambda: self._catalog.list_tables(namespace(schema)))
            return frozenset(identifier[-1] for identifier in listed)
        except NoSuchNamespaceError:
            return frozenset()

    def namespace_exists(self, schema: str) -> bool:
        """Tell whether the catalog has the schema ``schema``."""
        return self._watch.ask(lambda: self._catalog.namespace_exists(namespace(schema)))

    def staged_batch(self, relation: BaseRelation, bookkeeping: Collection[str] = ()) -> StagedBatch:
        """Read the schema, the row count, the NULL counts and the bounds of a staged batch.

        Args:
            relation: the staged batch.
            bookkeeping: folded names of columns in it that are not for the target.

        Raises:
            StagedBatchGoneError: there is no such table. It is never taken for a batch without columns.
            HiddenBatchError: it has rows that are not on its `main`.
        """
        table = self.find(relation)
        if table is None:
            raise StagedBatchGoneError(str(relation), self.name)
        if table.current_snapshot() is None and table.metadata.snapshots:
            raise HiddenBatchError(str(relation))
        return StagedBatch(table, bookkeeping)

    def base(
        self, relation: BaseRelation, wap_branch: Callable[[], str | None], table: Table | None = None
    ) -> Base:
        """Return the state of a table that a run starts from.

        Args:
            relation: the table.
            wap_branch: asks Spark for the branch that the session's writes are reserved to; asked only if
                the table is set up for that.
            table: the table, if it was loaded in this run already. Nothing is committed with it: an older
                base only means that more commits of others are noticed.

        Raises:
            NotIcebergError: the catalog has no such table.
        """
        return base_of(table or self.load(relation), wap_branch)

    def head(self, relation: BaseRelation, branch: str) -> Head | None:
        """Return the last snapshot of a branch; None if there is no such branch."""
        return head_of(self.load(relation), branch)

    def has_moved(self, relation: BaseRelation, base: Base) -> bool:
        """Tell whether somebody has committed to the table's branch since ``base``."""
        return has_moved(self.load(relation).metadata, base)

    def check_columns(self, relation: BaseRelation, base: Base, columns: Sequence[str]) -> None:
        """See whether a table is still the one that a run started from, and has these columns.

        Raises:
            TableChangedError: it is another, or it has not.
        """
        table = self.find(relation)
        if table is None or not is_same_table(table.metadata, base):
            raise TableChangedError(str(relation), ())
        names_ = {field.name for field in table.schema().fields}
        gone = [quote(name) for name in columns if name not in names_]
        if gone:
            raise TableChangedError(str(relation), gone)

    def added_files(self, relation: BaseRelation, branch: str) -> list[str]:
        """Return the paths of the data files that the last snapshot of a branch has added."""
        table = self.load(relation)
        snapshot = table.snapshot_by_name(branch)
        if snapshot is None:
            return []
        return [
            entry.data_file.file_path
            for manifest in snapshot.manifests(table.io)
            if manifest.content == ManifestContent.DATA and manifest.added_snapshot_id == snapshot.snapshot_id
            for entry in manifest.fetch_manifest_entry(table.io)
            if entry.status == ManifestEntryStatus.ADDED
        ]

    def publish(
        self,
        relation: BaseRelation,
        base: Base,
        branch: str,
        retries: int,
        fast_forward: Callable[[], None],
        elapsed_ms: Callable[[], int] = lambda: 0,
        overwritten_spec: int | None = None,
    ) -> Published:
        """Make what was loaded into a branch visible to readers, in one commit that removes the branch.

        There is none if nothing was loaded. Nor is there if the table's branch is no longer at the base, or
        if the branch is not the one that the run has cut off: that stays then. Whether a commit whose answer
        was lost was made is seen in the catalog.

        Args:
            relation: the table.
            base: what the run started from.
            branch: where the batch was loaded.
            retries: how often to try again when somebody else has changed something else of the table, or
                the answer was lost.
            fast_forward: moves the table's branch through Spark, for a table that PyIceberg cannot commit to.
            elapsed_ms: returns how long ago, in milliseconds, the last statement of the load ended.
            overwritten_spec: the partition spec whose partitions were to be overwritten, if any were.

        Raises:
            PublishError: the catalog refused, or it is not known whether it did.
        """
        last: Exception | None = None
        tried: int | None = None
        number = outages = 0
        # Whether what was tried may have taken effect; whether it may do so even after a look at the table.
        is_unknown = is_under_way = False
        # Once more than there are attempts, to see what has become of the last one.
        while number < retries + 2:
            try:
                table = self.load(relation)
                refs = table.metadata.refs
                current = refs[base.ref].snapshot_id if base.ref in refs else None
                is_unknown = is_under_way
                if tried is not None and descends_from(table, current, tried):
                    return Published.YES
                if has_moved(table.metadata, base) or not is_as_cut(refs.get(branch)):
                    return Published.MOVED
                if number > retries:
                    break
                head = refs[branch].snapshot_id
                if not can_read(table.metadata, head):
                    return Published.MOVED
                if overwritten_spec is not None and overwrote_other_partitions(
                    table, head, base.cut_at, overwritten_spec
                ):
                    return Published.MOVED
                if not has_news(table, head, base.cut_at):
                    return Published.NOTHING_NEW
                self._cancellation.check("The batch was not published", str(relation), False)
                tried = head
                if table.metadata.format_version > NEWEST_FORMAT_TO_COMMIT:
                    fast_forward()
                else:
                    seen_ms = written_ms(table.metadata, head) + elapsed_ms()
                    self._commit(table, *publication(table.metadata, base, branch, head), seen_ms)
                return Published.YES
            except RunCancelledError:
                raise
            except CatalogUnavailableError as exc:
                # It was waited for.
                if tried is None:
                    undone = (
                        f"The batch was not published: readers of {relation} see the rows that were there"
                    )
                    raise self._watch.error(exc.reason, undone, exc.waited_seconds) from exc
                raise PublishError(str(relation), str(exc.msg).rstrip("."), tried, base.ref) from exc
            except Exception as exc:
                last = exc
                is_unknown = True
                if outage(exc) is not None:
                    # The catalog may carry out later what it has not answered.
                    is_under_way = is_under_way or tried is not None
                    if outages < _MOST_OUTAGES:
                        # No conflict: what waits for the catalog is the next look at the table.
                        self._cancellation.pause(wait_seconds(outages))
                        outages += 1
                        continue
                if number <= retries:
                    self._cancellation.pause(wait_seconds(number))
            number += 1
        unknown = tried if is_unknown else None
        raise PublishError(str(relation), self._answer(last), unknown, base.ref) from last

    def _answer(self, exc: BaseException | None) -> str:
        """Return what a catalog has answered, in short, or that it did not."""
        reason = outage(exc) if exc is not None else None
        return answer_of(exc) if reason is None else str(self._watch.error(reason).msg).rstrip(".")

    def drop_branch(self, relation: BaseRelation, branch: str) -> None:
        """Remove a branch, if it is there; leave it to expire in a table that PyIceberg cannot commit to."""

        def attempt(table: Table) -> None:
            metadata = table.metadata
            if branch in metadata.refs and metadata.format_version <= NEWEST_FORMAT_TO_COMMIT:
                seen = {"ref": branch, "snapshot-id": metadata.refs[branch].snapshot_id}
                self._commit(table, (AssertRefSnapshotId.model_validate(seen),), (removal(branch),))

        self._retry(relation, attempt, _DROP_RETRIES, wanted="A branch of {} could not be removed")

    def purge(self, relation: BaseRelation, location: str | None = None) -> None:
        """Remove a table and its files, if it is there; at least the table, if the files cannot be removed.

        Args:
            relation: the table.
            location: where its files are, if that is known.

        Raises:
            ForeignCatalogError: it is in another catalog; what has its name in this one stays.
            FilesLeftError: the table is gone, and files of it may be left.
            Exception: the table is still there, for the reason that the catalog gives.
        """
        self._refuse_foreign(relation)
        name = table_identifier(relation)
        try:
            if location is None:
                table = self.find(relation)
                location = table.location() if table is not None else None
            try:
                self._catalog.purge_table(name)
            except NotImplementedError:
                # PyIceberg 0.12 hides this for Hive alone, whose catalog has all that it needs.
                MetastoreCatalog.purge_table(cast("MetastoreCatalog", self._catalog), name)
        except NoSuchTableError:
            return
        except Exception as exc:
            # Files of it are gone already, or may not be removed, or the catalog does not do this.
            try:
                self._catalog.drop_table(name)
            except NoSuchTableError:
                pass  # dropped before its files
            except Exception as dropping:
                reason = outage(exc)
                if reason is not None:
                    raise self._watch.error(reason, f"{relation} could not be removed") from dropping
                raise exc from dropping
            raise FilesLeftError(str(relation), answer_of(exc)) from exc
        if location is not None:
            remove_leftovers(location)

    def evolve(
        self,
        relation: BaseRelation,
        decide: Callable[[Schema, TableFacts], EvolutionPlan],
        retries: int,
        *,
        source: Schema,
        invocation_id: str,
        base: Base | None = None,
        seen_ms: int = 0,
    ) -> EvolutionPlan:
        """Make all changes of a plan in one commit, with a record of it; without changes, make no commit.

        Each attempt loads the table directly before it decides and commits, so what another writer, or an
        attempt whose answer was lost, has done in the meantime is neither done twice nor undone.

        Args:
            relation: the table.
            decide: returns the plan for the table's current schema; raises to refuse.
            retries: how often to try again after a conflict.
            source: the schema of the batch, for the record.
            invocation_id: of the dbt command, for the record.
            base: what the run started from, if it has to be the same table still.
            seen_ms: a time that a clock of other writers has passed, in milliseconds since the epoch.

        Returns:
            The plan that was carried out, with the changes that were made by this call.

        Raises:
            NotIcebergError: the catalog has no such table.
            TableChangedError: another table has taken the name since ``base``.
            CommitConflictError: each attempt met another writer.
            SchemaCommitError: the catalog refused the changes.
        """
        tried: EvolutionPlan | None = None
        lost: Exception | None = None
        outages = 0

        def attempt(table: Table) -> EvolutionPlan:
            nonlocal tried, lost, outages
            if base is not None and not is_same_table(table.metadata, base):
                raise TableChangedError(str(relation), ())
            plan = decide(table.schema(), table_facts(table))
            if lost is not None and tried is not None:
                if not plan.changes:
                    # The catalog had committed before its answer was lost.
                    return replace(plan, changes=tried.changes)
                outages += 1
                if outage(lost) is None or outages > _MOST_OUTAGES:
                    raise SchemaCommitError(str(relation), tried.changes, self._answer(lost)) from lost
            if plan.changes:
                self._cancellation.check(f"The columns of {relation} were not changed", str(relation), False)
            tried = plan
            try:
                self._watch.limited(
                    lambda: commit_changes(table, plan.changes, invocation_id, fingerprint(source), seen_ms)
                )
            except Exception as exc:
                if is_conflict_in_pyiceberg(exc):
                    raise
                lost = exc
                try:
                    again = self.load(relation)
                except Exception:
                    answer = self._answer(exc)
                    raise SchemaCommitError(str(relation), plan.changes, answer, outcome_known=False) from exc
                return attempt(again)
            return plan

        try:
            return self._retry(relation, attempt, retries)
        except CommitConflictError as exc:
            # The last conflict may have been with what is wanted here, or with our own commit.
            now = self.load(relation)
            plan = decide(now.schema(), table_facts(now))
            if not plan.changes:
                return plan
            raise CommitConflictError(
                str(relation), exc.attempts, answer_of(exc.__cause__), plan.changes
            ) from exc.__cause__

    def set_docs(
        self,
        relation: BaseRelation,
        comment: str | None,
        column_docs: Mapping[str, str],
        retries: int,
        through_spark: Callable[[str | None, Mapping[str, str]], None] | None = None,
    ) -> None:
        """Store descriptions that differ from what the table has; without a difference make no commit.

        Args:
            relation: the table.
            comment: the table's description, or None to leave it as it is.
            column_docs: descriptions by folded column name; columns that the table lacks are left out.
            retries: how often to try again after a conflict.
            through_spark: stores them in a table that PyIceberg cannot commit to: that of the table, if it
                is not None, and those of columns by their exact names.
        """

        def attempt(table: Table) -> None:
            changed = {
                field.name: column_docs[fold(field.name)]
                for field in table.schema().fields
                if fold(field.name) in column_docs and column_docs[fold(field.name)] != (field.doc or "")
            }
            new_comment = comment is not None and comment != table.properties.get(COMMENT_PROPERTY, "")
            if not changed and not new_comment:
                return
            self._cancellation.check(f"The descriptions of {relation} were not stored")
            wanted = comment if new_comment else None
            if through_spark is not None and table.metadata.format_version > NEWEST_FORMAT_TO_COMMIT:
                through_spark(wanted, changed)
            else:
                self._watch.limited(lambda: commit_docs(table, wanted, changed))

        self._retry(relation, attempt, retries, wanted="The descriptions of {} could not be stored")

    def schema_history(self, relation: BaseRelation) -> list[dict[str, Any]]:
        """Return all schemas that the table has had; see the adapter's method of this name."""
        return schema_history(self.load(relation))

    def _commit(
        self,
        table: Table,
        requirements: tuple[TableRequirement, ...],
        updates: tuple[TableUpdate, ...],
        seen_ms: int = 0,
    ) -> None:
        self._watch.limited(lambda: commit(table, requirements, updates, seen_ms=seen_ms))

    def _retry(
        self,
        relation: BaseRelation,
        attempt: Callable[[Table], Result],
        retries: int,
        wanted: str = "The columns of {} could not be changed",
    ) -> Result:
        undone = wanted.format(relation)
        conflicts = outages = 0
        while True:
            try:
                return attempt(self.load(relation))
            except CatalogUnavailableError as exc:
                # It was waited for.
                raise self._watch.error(exc.reason, undone, exc.waited_seconds) from exc
            except DbtRuntimeError:
                raise
            except Exception as exc:
                reason = outage(exc)
                if is_conflict_in_pyiceberg(exc):
                    if conflicts == retries:
                        answer = answer_of(exc)
                        raise CommitConflictError(str(relation), retries + 1, answer, wanted=wanted) from exc
                    self._cancellation.pause(wait_seconds(conflicts))
                    conflicts += 1
                elif reason is None:
                    raise
                elif outages == _MOST_OUTAGES:
                    raise self._watch.error(reason, undone) from exc
                else:
                    undone = f"{wanted.format(relation)}, as far as is known; the next run finds out"
                    # What waits for the catalog is the next look at the table.
                    self._cancellation.pause(wait_seconds(outages))
                    outages += 1


def _give_each_thread_a_connection(catalog: Catalog) -> None:
    """Let no thread wait for another's connection to the database of a SQL catalog.

    PyIceberg 0.12 leaves SQLAlchemy's default, 15 connections for all threads. A thread that gets none within
    30 s fails, while each of the others may wait longer for the lock of a SQLite file. A thread has one
    connection at the most, so there are never more of them than threads.
    """
    engine = getattr(catalog, "engine", None)
    if isinstance(engine, Engine):
        own = create_engine(engine.url, echo=engine.echo, pool_pre_ping=True, max_overflow=-1)
        catalog.engine = own  # type: ignore[attr-defined]
        engine.dispose()


def wait_seconds(attempt: int) -> float:
    """Return how long to wait after attempt number ``attempt``: twice as long each time, with jitter."""
    return random.uniform(0.5, 1.0) * min(_FIRST_WAIT_SECONDS * 2.0**attempt, _LONGEST_WAIT_SECONDS)


def table_facts(table: Table) -> TableFacts:
    """Return what planning needs to know of a table beside its schema."""
    metadata = table.metadata
    return TableFacts(
        format_version=metadata.format_version,
        former=former_fields(table.metadata.schemas, table.schema()),
        partition_names=_partition_names(f for spec in metadata.partition_specs for f in spec.fields),
        partition_sources=frozenset(
            f.source_id for f in table.spec().fields if not isinstance(f.transform, VoidTransform)
        ),
        partition_by=partitions(table),
        properties=table.properties,
    )


def _partition_names(fields: Iterable[PartitionField]) -> dict[str, int | None]:
    """Return by folded name the only column that may be called like a partition field, see ``TableFacts``."""
    names: dict[str, int | None] = {}
    for f in fields:
        # A field that was dropped in format version 1 is void, and then Iceberg treats it as this one.
        repeats = f.source_id if isinstance(f.transform, IdentityTransform | VoidTransform) else None
        name = fold(f.name)
        names[name] = repeats if names.get(name, repeats) == repeats else None
    return names
