"""The tables of an Iceberg catalog: the one door to this room, for whoever runs a load or lists.

What is behind it: ``access`` (how the catalog is reached), ``base`` (what a run starts from), ``columns``
(changes of columns and descriptions), ``publication`` (how rows become visible), ``purge``.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from dbt.adapters.base.relation import BaseRelation
from pyiceberg.manifest import ManifestContent, ManifestEntryStatus
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.table.metadata import TableMetadata

from dbt.adapters.sparkevolve.cancellation import Cancellation
from dbt.adapters.sparkevolve.errors import (
    HiddenBatchError,
    NoLocationError,
    StagedBatchGoneError,
    TableChangedError,
    UnreadableTableError,
)
from dbt.adapters.sparkevolve.evolution.names import quote
from dbt.adapters.sparkevolve.evolution.plan import EvolutionPlan
from dbt.adapters.sparkevolve.evolution.policy import TableFacts
from dbt.adapters.sparkevolve.evolution.table_properties import VERSION_OF_NEW_TABLES
from dbt.adapters.sparkevolve.iceberg import columns, creation, older_metadata, publication, restore
from dbt.adapters.sparkevolve.iceberg.access import CatalogAccess
from dbt.adapters.sparkevolve.iceberg.base import (
    WAP_ENABLED,
    Base,
    Head,
    base_of,
    has_moved,
    head_of,
    is_same_table,
)
from dbt.adapters.sparkevolve.iceberg.capabilities import Capabilities, Purge
from dbt.adapters.sparkevolve.iceberg.catalog_settings import CatalogSettings
from dbt.adapters.sparkevolve.iceberg.newer_format import CommitsInSpark, is_atomic
from dbt.adapters.sparkevolve.iceberg.publication import Published
from dbt.adapters.sparkevolve.iceberg.purge import purge
from dbt.adapters.sparkevolve.iceberg.schema_history import schema_history
from dbt.adapters.sparkevolve.iceberg.staged_batch import StagedBatch
from dbt.adapters.sparkevolve.redaction import clean, shows_no_secret

DEFAULT_TIMEOUT_SECONDS = 60.0

# What others keep of this module's answers, to hand it back.
LoadedTable: TypeAlias = Table


@shows_no_secret
class IcebergCatalog:
    """The tables of one catalog. Safe to share between threads.

    Attributes:
        access: how the catalog is reached.
    """

    def __init__(
        self,
        settings: CatalogSettings,
        cancellation: Cancellation | None = None,
        timeout_seconds: float = DEFAULT_TIMEOUT_SECONDS,
    ) -> None:
        """Open nothing yet.

        Args:
            settings: the catalog's.
            cancellation: what stops all that is done.
            timeout_seconds: how long the catalog may be away, or silent.
        """
        self.access = CatalogAccess(settings, cancellation or Cancellation(), timeout_seconds)

    def commit_in(self, spark: CommitsInSpark) -> None:
        """Say what commits to the tables that PyIceberg cannot commit to."""
        self.access.spark = spark

    @property
    def name(self) -> str:
        """The catalog's name."""
        return self.access.name

    @property
    def capabilities(self) -> Capabilities:
        """What it can do; a REST catalog is opened for that."""
        return self.access.capabilities

    @property
    def stated_by(self) -> str:
        """The setting of the profile that has the catalog's properties."""
        return self.access.settings.place.setting

    @property
    def places(self) -> str:
        """Where it is, and where its tables are by default if the profile says so; without secrets."""
        settings = self.access.settings
        warehouse = settings.pyiceberg.get("warehouse")
        return f"in {settings.where}" + (f", warehouse {clean(str(warehouse))}" if warehouse else "")

    def check(self) -> None:
        """See whether the catalog answers, unless it has answered before.

        Raises:
            CatalogUnavailableError: it does not, or it refuses the profile's user.
        """
        self.access.check()

    def check_after(self, error: Exception) -> None:
        """See whether the catalog is away, after a statement of Spark's that may have failed for that.

        Raises:
            CatalogUnavailableError: it is.
        """
        self.access.check_after(error)

    # Looking up

    def load(self, relation: BaseRelation) -> Table:
        """Return the table, as it is in the catalog now; see ``CatalogAccess.load`` for the errors."""
        return self.access.load(relation)

    def find(self, relation: BaseRelation) -> Table | None:
        """Return the table, or None if the catalog has no such table; see ``CatalogAccess.find``."""
        return self.access.find(relation)

    def find_readable(self, relation: BaseRelation) -> Table | None:
        """Return the table; None also if PyIceberg cannot read its metadata, and Spark has to be asked."""
        return self.access.find_readable(relation)

    def may_have_rows(self, relation: BaseRelation) -> bool:
        """Tell whether there is a table whose readers may see a row, as far as its metadata say."""
        try:
            table = self.find(relation)
        except UnreadableTableError:
            return True
        snapshot = table.metadata.current_snapshot() if table is not None else None
        if snapshot is None:
            return False
        return snapshot.summary is None or snapshot.summary["total-records"] != "0"

    def is_newer_format(self, relation: BaseRelation) -> bool:
        """Tell whether there is a table of a newer format version than new tables have."""
        try:
            table = self.find(relation)
        except UnreadableTableError:
            return True
        return table is not None and table.metadata.format_version > VERSION_OF_NEW_TABLES

    def table_names(self, schema: str) -> frozenset[str]:
        """Return the names of the Iceberg tables in ``schema``; none if there is no such schema."""
        return self.access.table_names(schema)

    def namespace_exists(self, schema: str) -> bool:
        """Tell whether the catalog has the schema ``schema``."""
        return self.access.namespace_exists(schema)

    def schema_history(self, relation: BaseRelation) -> list[dict[str, Any]]:
        """Return all schemas that the table has had; see the adapter's method of this name."""
        return schema_history(self.load(relation))

    def restore_column(
        self,
        relation: BaseRelation,
        column: str,
        field_id: int | None,
        *,
        retries: int,
        invocation_id: str,
        plan_only: bool,
    ) -> restore.Restored:
        """Put a dropped field back under its old id; see ``restore.restore_column``."""
        return restore.restore_column(
            self.access,
            relation,
            column,
            field_id,
            retries=retries,
            invocation_id=invocation_id,
            plan_only=plan_only,
        )

    # A load, from its beginning to its end

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
            raise StagedBatchGoneError(str(relation), self.name, self.stated_by)
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
        recognise: Callable[[Table], EvolutionPlan | None] = lambda table: None,
    ) -> EvolutionPlan:
        """Make all changes of a plan in one commit, with a record of it; see ``columns.evolve``."""
        return columns.evolve(
            self.access,
            relation,
            decide,
            retries,
            source=source,
            invocation_id=invocation_id,
            base=base,
            seen_ms=seen_ms,
            recognise=recognise,
        )

    def set_docs(
        self,
        relation: BaseRelation,
        comment: str | None,
        column_docs: Mapping[str, str],
        retries: int,
        invocation_id: str = "",
    ) -> list[str]:
        """Store descriptions that differ from what the table has; see ``columns.set_docs``."""
        return columns.set_docs(self.access, relation, comment, column_docs, retries, invocation_id)

    def publish(
        self,
        relation: BaseRelation,
        base: Base,
        branch: str,
        retries: int,
        elapsed_ms: Callable[[], int] = lambda: 0,
        overwritten_spec: int | None = None,
        properties: Callable[[Mapping[str, str]], Mapping[str, str | None]] | None = None,
        claim: publication.Claim | None = None,
        used_claim: str | None = None,
        seen: Callable[[TableMetadata, int], None] = lambda metadata, head: None,
    ) -> Published:
        """Make what was loaded into a branch visible to readers; see ``publication.publish``."""
        return publication.publish(
            self.access,
            relation,
            base,
            branch,
            retries,
            elapsed_ms,
            overwritten_spec,
            properties,
            claim,
            used_claim,
            seen,
        )

    def set_property(
        self, relation: BaseRelation, base: Base, name: str, seen: str | None, value: str | None
    ) -> bool:
        """Set a property of a table, or remove it with None; see ``publication.set_property``."""
        return publication.set_property(self.access, relation, base, name, seen, value)

    def replace_property(
        self, relation: BaseRelation, name: str, seen: str, value: str | None, retries: int
    ) -> None:
        """Set or remove a property of a table that has its value still; see ``publication``."""
        publication.replace_property(self.access, relation, name, seen, value, retries)

    def pause(self, seconds: float) -> None:
        """Wait for so long, or until the run is cancelled."""
        self.access.cancellation.pause(seconds)

    def was_published(self, table: Table, ref: str, snapshot_id: int, base: int | None) -> bool | None:
        """Tell whether a branch has, or has come from, a snapshot; see ``publication.was_published``."""
        head = table.metadata.refs.get(ref)
        return publication.was_published(table, head.snapshot_id if head else None, snapshot_id, base)

    def is_since_overwrite(self, table: Table, base: Base, snapshot_id: int) -> bool:
        """Tell whether a snapshot came with or after a full refresh; see ``publication``."""
        head = table.metadata.refs.get(base.ref)
        head_id = head.snapshot_id if head is not None else None
        return publication.is_since_overwrite(table, head_id, base, snapshot_id)

    def has_rows_in(self, table: Table, ref: str, snapshot_id: int) -> bool | None:
        """Tell whether a branch has a snapshot's rows, if that is known; see ``publication.has_rows_in``."""
        return publication.has_rows_in(table, ref, snapshot_id)

    def properties_since(self, table: Table, since: Table) -> Iterator[Mapping[str, str]]:
        """Yield the properties that a table has had since it was loaded; see ``older_metadata``."""
        return older_metadata.properties_since(table, since)

    def is_atomic(self, table: Table) -> bool:
        """Tell whether all that a commit changes of a table is changed at once; see ``newer_format``."""
        return is_atomic(table)

    def set_properties(
        self, relation: BaseRelation, properties: Mapping[str, str | None], retries: int
    ) -> None:
        """Set properties of a table in a commit of their own; see ``publication.set_properties``."""
        publication.set_properties(self.access, relation, properties, retries)

    def change_properties(
        self, relation: BaseRelation, change: Callable[[Table], Mapping[str, str | None]], retries: int
    ) -> Mapping[str, str | None]:
        """Set properties that follow from what a table is; see ``publication.change_properties``."""
        return publication.change_properties(self.access, relation, change, retries)

    def take_back(self, relation: BaseRelation, base: Base, head: int, claim: str) -> publication.TakenBack:
        """Undo a publication that nobody has built on or relies on; see ``publication.take_back``."""
        return publication.take_back(self.access, relation, base, head, claim)

    def rely_on(self, relation: BaseRelation, base: Base, claims: Collection[str]) -> bool:
        """Let nobody take back what a base has, if it is there still; see ``publication.rely_on``."""
        return publication.rely_on(self.access, relation, base, claims)

    def drop_branch(self, relation: BaseRelation, branch: str) -> None:
        """Remove a branch, if it is there."""
        publication.drop_branch(self.access, relation, branch)

    # A table that cannot be made with its rows

    def is_made_empty(self, relation: BaseRelation) -> bool:
        """Tell whether a table of this name is one that has to be made without its rows first."""
        return relation.database in (None, self.name) and not self.capabilities.stages_creations

    def is_to_be_made(self, relation: BaseRelation) -> bool:
        """Tell whether it has to be made now; see ``creation.is_to_be_made``."""
        return creation.is_to_be_made(self.access, relation)

    def is_unfilled(self, relation: BaseRelation) -> bool:
        """Tell whether there is one that was made so, and has got no rows yet: it is no table."""
        table = self.find_readable(relation) if self.is_made_empty(relation) else None
        return table is not None and self.is_unfilled_table(table)

    def is_unfilled_table(self, table: Table) -> bool:
        """Tell the same of a table; see ``creation.is_unfilled``."""
        return not self.capabilities.stages_creations and creation.is_unfilled(table)

    def remove_unfilled(self, relation: BaseRelation, maker: str) -> None:
        """Remove one that a run has made so, and that has no rows; see ``creation.remove_unfilled``."""
        creation.remove_unfilled(self.access, relation, maker)

    def replaced_snapshot(self, relation: BaseRelation, maker: str) -> int | None:
        """Return what a first run has replaced beside the empty table; see ``creation.replaced_snapshot``."""
        return creation.replaced_snapshot(self.access, relation, maker)

    def creation_marks(self, relation: BaseRelation, maker: str) -> dict[str, str]:
        """Return the properties by which one is known that is made so by the run with this id."""
        return creation.mark(relation, maker) if self.is_made_empty(relation) else {}

    def makes_wap_enabled(self, given: str | None, replaced: Table | None) -> bool:
        """Tell whether a table that Spark makes would have ``write.wap.enabled``, as far as the profile says.

        Args:
            given: what CREATE TABLE says of that property; None if it does not name it.
            replaced: the table in whose place it is made, whose properties stay; None if there is none.
        """
        stated = self.access.settings.spark
        prefix = f"spark.sql.catalog.{self.name}.table-"
        told = (
            stated.get(f"{prefix}override.{WAP_ENABLED}"),
            given,
            stated.get(f"{prefix}default.{WAP_ENABLED}"),
            replaced.properties.get(WAP_ENABLED) if replaced is not None else None,
        )
        return next((text for text in told if text is not None), "").lower() == "true"

    def location_for(self, relation: BaseRelation) -> str | None:
        """Return where a table is to be made, in the folder of its schema; None if the catalog knows.

        A table that is there, and is to be replaced, stays where it is, if PyIceberg can read where that is:
        otherwise its rows go to the folder of its schema.

        Raises:
            NoLocationError: the catalog does not, and has no folder for the schema.
        """
        if relation.database not in (None, self.name) or not self.capabilities.wants_location:
            return None
        table = self.find_readable(relation)
        if table is not None:
            return table.location()
        folder = self.access.folder_of(str(relation.schema))
        if not folder:
            raise NoLocationError(str(relation), str(relation.without_identifier()), self.name)
        return f"{folder}/{relation.identifier}"

    def drops_with_files(self, relation: BaseRelation) -> bool:
        """Tell whether a table of this name can be dropped with its files only."""
        return relation.database in (None, self.name) and self.capabilities.purge is Purge.ALWAYS

    def purge(self, relation: BaseRelation, location: str | None = None) -> None:
        """Remove a table and its files, if it is there; see ``purge.purge``."""
        purge(self.access, relation, location)
