"""How the result of a run becomes visible, and what its table must be like for that."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from enum import Enum

from dbt.adapters.base.relation import BaseRelation
from pyiceberg.schema import index_by_id
from pyiceberg.table import Table
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.refs import MAIN_BRANCH, SnapshotRef
from pyiceberg.table.snapshots import Operation
from pyiceberg.table.update import (
    AssertCurrentSchemaId,
    AssertRefSnapshotId,
    RemovePropertiesUpdate,
    RemoveSnapshotRefUpdate,
    SetPropertiesUpdate,
    SetSnapshotRefUpdate,
    TableRequirement,
    TableUpdate,
)
from pyiceberg.types import IcebergType

from dbt.adapters.sparkevolve.errors import (
    CatalogUnavailableError,
    PublishError,
    RunCancelledError,
    removing,
)
from dbt.adapters.sparkevolve.evolution.types import is_widening
from dbt.adapters.sparkevolve.iceberg import older_metadata
from dbt.adapters.sparkevolve.iceberg.access import CatalogAccess
from dbt.adapters.sparkevolve.iceberg.base import Base, changes_files, has_moved
from dbt.adapters.sparkevolve.iceberg.newer_format import is_atomic
from dbt.adapters.sparkevolve.iceberg.retry import MOST_OUTAGES, answer, commit_in_time, retry, wait_seconds
from dbt.adapters.sparkevolve.messages import outage

_DROP_RETRIES = 4


class Published(Enum):
    """What has become of a branch that was to be published."""

    YES = "yes"
    NOTHING_NEW = "nothing new"
    MOVED = "moved"


class TakenBack(Enum):
    """What has become of a publication that was to be undone."""

    YES = "yes"
    CLAIM_GONE = "claim gone"
    BUILT_ON = "built on"


@dataclass(frozen=True)
class Claim:
    """A tag at a snapshot that a run has published and may still take back, as long as the tag is there.

    Attributes:
        name: the tag's name.
        retain_minutes: how long it may live.
    """

    name: str
    retain_minutes: int


def is_as_cut(branch: SnapshotRef | None) -> bool:
    """Tell whether a branch is there, and the one that a run has cut off.

    If somebody removes it while an INSERT is under way, the INSERT's commit recreates it: from the head of
    `main`, without what the run had deleted before. Only the one that was cut off says how long it is kept.
    """
    return branch is not None and branch.max_ref_age_ms is not None


def can_read(metadata: TableMetadata, snapshot_id: int) -> bool:
    """Tell whether the table's schema reads what a snapshot has written, as the same columns.

    Not in a table that was replaced meanwhile (`CREATE OR REPLACE TABLE`): its columns take the ids of those
    that had their names, whatever types they have.
    """
    snapshot = metadata.snapshot_by_id(snapshot_id)
    if snapshot is None or snapshot.schema_id is None or snapshot.schema_id == metadata.current_schema_id:
        return True
    written = metadata.schema_by_id(snapshot.schema_id)
    if written is None:
        return True
    now = index_by_id(metadata.schema())
    return all(
        _reads(field.field_type, now[field_id].field_type)
        for field_id, field in index_by_id(written).items()
        if field_id in now
    )


def _reads(written: IcebergType, now: IcebergType) -> bool:
    if written.is_primitive and now.is_primitive:
        return written == now or is_widening(written, now)
    return type(written) is type(now)


def written_ms(metadata: TableMetadata, snapshot_id: int) -> int:
    """Return when a snapshot was made, by the clock of whoever made it, in milliseconds since the epoch."""
    snapshot = metadata.snapshot_by_id(snapshot_id)
    return snapshot.timestamp_ms if snapshot is not None else 0


def has_news(table: Table, head: int, base: int | None) -> bool:
    """Tell whether a snapshot since ``base`` has added or removed anything."""
    snapshot = table.metadata.snapshot_by_id(head)
    while snapshot is not None and snapshot.snapshot_id != base:
        if changes_files(snapshot):
            return True
        parent = snapshot.parent_snapshot_id
        snapshot = table.metadata.snapshot_by_id(parent) if parent is not None else None
    return False


def overwrote_other_partitions(table: Table, head: int, base: int | None, spec_id: int) -> bool:
    """Tell whether rows since ``base`` were written by another partition spec than the run has seen.

    Spark overwrites partitions of the spec that the table has when the INSERT begins. If somebody changes it
    just before, even there and back, other rows are replaced than those that the run was to replace.
    """
    snapshot = table.metadata.snapshot_by_id(head)
    while snapshot is not None and snapshot.snapshot_id != base:
        for manifest in snapshot.manifests(table.io):
            is_new = manifest.added_snapshot_id == snapshot.snapshot_id and manifest.added_files_count != 0
            if is_new and manifest.partition_spec_id != spec_id:
                return True
        parent = snapshot.parent_snapshot_id
        snapshot = table.metadata.snapshot_by_id(parent) if parent is not None else None
    return False


def descends_from(table: Table, head: int | None, snapshot_id: int) -> bool:
    """Tell whether ``snapshot_id`` is ``head`` or one of its ancestors."""
    while head is not None and head != snapshot_id:
        snapshot = table.metadata.snapshot_by_id(head)
        head = snapshot.parent_snapshot_id if snapshot is not None else None
    return head is not None


def is_since_overwrite(table: Table, head: int | None, base: Base, snapshot_id: int) -> bool:
    """Tell whether a snapshot has the rows of the last commit since a base that has replaced all rows.

    Args:
        table: the table.
        head: what the base's branch is at.
        base: what a full refresh started from.
        snapshot_id: the snapshot.
    """
    while head is not None and head != base.head:
        snapshot = table.metadata.snapshot_by_id(head)
        if snapshot is None or snapshot.summary is None:
            return False
        summary = snapshot.summary.additional_properties
        is_overwrite = snapshot.summary.operation in (Operation.OVERWRITE, Operation.DELETE)
        if is_overwrite and summary.get("total-records", "0") == summary.get("added-records", "0"):
            return descends_from(table, snapshot_id, head)
        head = snapshot.parent_snapshot_id
    return False


def has_rows_in(table: Table, ref: str, snapshot_id: int) -> bool | None:
    """Tell whether a branch has a snapshot's rows: it was not replaced, or rolled back; None if nobody knows.

    A branch of `spark.wap.branch` may have become `main`, and be gone.
    """
    head = table.metadata.refs.get(ref) or table.metadata.refs.get(MAIN_BRANCH)
    return older_metadata.has_rows_of(table, head.snapshot_id if head else None, snapshot_id)


def was_published(table: Table, head: int | None, snapshot_id: int, base: int | None) -> bool | None:
    """Tell whether a snapshot has become visible in a branch; None if that has expired.

    Args:
        table: the table.
        head: what the branch is at.
        snapshot_id: the snapshot.
        base: the one that it was made from; None if that is not known.
    """
    for made in older_metadata.ancestors(table, head):
        if made is None:
            return None
        if made.snapshot_id == snapshot_id:
            return True
        # What has come after it came from somewhere else.
        if made.snapshot_id == base:
            return False
    return False


def publication(
    metadata: TableMetadata,
    base: Base,
    branch: str,
    head: int,
    properties: Mapping[str, str | None] | None = None,
    claim: Claim | None = None,
    used: tuple[str, int] | None = None,
) -> tuple[tuple[TableRequirement, ...], tuple[TableUpdate, ...]]:
    """Return what must hold for a publication, and what it changes: one compare-and-swap.

    Args:
        metadata: the table's.
        base: what the run started from.
        branch: what is published.
        head: its last snapshot.
        properties: what is set, and removed with None.
        claim: the tag that is made.
        used: the tag that is removed, and the snapshot at which it has to be.
    """
    kept = metadata.refs.get(base.ref)
    retention = {
        "min-snapshots-to-keep": kept.min_snapshots_to_keep if kept else None,
        "max-snapshot-age-ms": kept.max_snapshot_age_ms if kept else None,
        "max-ref-age-ms": kept.max_ref_age_ms if kept else None,
    }
    moved = {"ref-name": base.ref, "type": "branch", "snapshot-id": head, **retention}
    requirements: tuple[TableRequirement, ...] = (
        # What was loaded can be read with this schema, see `can_read`.
        AssertCurrentSchemaId.model_validate({"current-schema-id": metadata.current_schema_id}),
        AssertRefSnapshotId.model_validate({"ref": base.ref, "snapshot-id": base.head}),
        AssertRefSnapshotId.model_validate({"ref": branch, "snapshot-id": head}),
    )
    updates: tuple[TableUpdate, ...] = (SetSnapshotRefUpdate.model_validate(moved), removal(branch))
    if claim is not None:
        age_ms = claim.retain_minutes * 60_000
        tag = {"ref-name": claim.name, "type": "tag", "snapshot-id": head, "max-ref-age-ms": age_ms}
        updates = (*updates, SetSnapshotRefUpdate.model_validate(tag))
    if used is not None:
        requirements = (*requirements, _at(*used))
        updates = (*updates, removal(used[0]))
    return requirements, (*updates, *_setting(properties or {}))


def _at(ref: str, snapshot_id: int | None) -> AssertRefSnapshotId:
    return AssertRefSnapshotId.model_validate({"ref": ref, "snapshot-id": snapshot_id})


def _setting(properties: Mapping[str, str | None]) -> tuple[TableUpdate, ...]:
    """Return the updates that set properties, and remove those whose value is None."""
    values = {name: value for name, value in properties.items() if value is not None}
    removed = [name for name, value in properties.items() if value is None]
    return (
        *([SetPropertiesUpdate(updates=values)] if values else []),
        *([RemovePropertiesUpdate(removals=removed)] if removed else []),
    )


def removal(branch: str) -> RemoveSnapshotRefUpdate:
    """Return the update that removes a branch."""
    return RemoveSnapshotRefUpdate.model_validate({"ref-name": branch})


def publish(
    access: CatalogAccess,
    relation: BaseRelation,
    base: Base,
    branch: str,
    retries: int,
    elapsed_ms: Callable[[], int] = lambda: 0,
    overwritten_spec: int | None = None,
    properties: Callable[[Mapping[str, str]], Mapping[str, str | None]] | None = None,
    claim: Claim | None = None,
    used_claim: str | None = None,
    seen: Callable[[TableMetadata, int], None] = lambda metadata, head: None,
) -> Published:
    """Make what was loaded into a branch visible to readers, in one commit that removes the branch.

    There is none if nothing was loaded. Nor is there if the table's branch is no longer at the base, or
    if the branch is not the one that the run has cut off: that stays then. Whether a commit whose answer
    was lost was made is seen in the catalog.

    Args:
        access: the catalog.
        relation: the table.
        base: what the run started from.
        branch: where the batch was loaded.
        retries: how often to try again when somebody else has changed something else of the table, or
            the answer was lost.
        elapsed_ms: returns how long ago, in milliseconds, the last statement of the load ended.
        overwritten_spec: the partition spec whose partitions were to be overwritten, if any were.
        properties: returns what the same commit sets of the table's properties, and removes with None, for
            those that the table has then.
        claim: a tag that the same commit makes, where commits are atomic; see ``take_back``.
        used_claim: a tag that it removes. If that is gone, the table counts as moved.
        seen: gets the table with all snapshots of the load, and the last of them.

    Raises:
        PublishError: the catalog refused, or it is not known whether it did.
        RunCancelledError: the run has been cancelled; ``is_published`` is None if a commit may be under way.
    """
    last: Exception | None = None
    tried: int | None = None
    number = outages = 0
    # Whether what was tried may have taken effect; whether it may do so even after a look at the table.
    is_unknown = is_under_way = False
    # Once more than there are attempts, to see what has become of the last one.
    while number < retries + 2:
        try:
            table = access.load(relation)
            refs = table.metadata.refs
            current = refs[base.ref].snapshot_id if base.ref in refs else None
            is_unknown = is_under_way
            if tried is not None and descends_from(table, current, tried):
                return Published.YES
            if has_moved(table.metadata, base) or not is_as_cut(refs.get(branch)):
                return Published.MOVED
            if used_claim is not None and used_claim not in refs:
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
            seen(table.metadata, head)
            if not has_news(table, head, base.cut_at):
                return Published.NOTHING_NEW
            access.cancellation.check("The batch was not published", str(relation), False)
            tried = head
            seen_ms = written_ms(table.metadata, head) + elapsed_ms()
            wanted, made = None, None
            if is_atomic(table):
                wanted = properties(table.properties) if properties is not None else None
                made = claim
            used = (used_claim, refs[used_claim].snapshot_id) if used_claim is not None else None
            parts = publication(table.metadata, base, branch, head, wanted, made, used)
            # A statement that is stopped may have been carried out as well.
            is_unknown = True
            commit_in_time(access, table, *parts, seen_ms)
            return Published.YES
        except RunCancelledError as exc:
            if is_unknown:
                undone = "Whether its rows were published is not known, since the catalog has not answered"
                raise RunCancelledError(undone, str(relation), is_unknown=True) from exc
            raise RunCancelledError(exc.undone, str(relation), False) from exc
        except CatalogUnavailableError as exc:
            # It was waited for.
            if tried is None:
                undone = f"The batch was not published: readers of {relation} see the rows that were there"
                raise exc.leaving(undone) from exc
            raise PublishError(str(relation), str(exc.msg).rstrip("."), tried, base.ref) from exc
        except Exception as exc:
            last = exc
            is_unknown = True
            if outage(exc) is not None:
                # The catalog may carry out later what it has not answered.
                is_under_way = is_under_way or tried is not None
                if outages < MOST_OUTAGES:
                    # No conflict: what waits for the catalog is the next look at the table.
                    access.watch.pause(exc, wait_seconds(outages))
                    outages += 1
                    continue
            if number <= retries:
                access.watch.pause(exc, wait_seconds(number))
        number += 1
    unknown = tried if is_unknown else None
    raise PublishError(str(relation), answer(access, last), unknown, base.ref) from last


def take_back(access: CatalogAccess, relation: BaseRelation, base: Base, head: int, claim: str) -> TakenBack:
    """Move a table's branch back to where it was before a publication.

    Not if anybody has committed since, so that something may build on it, or has let expire what was there
    before. Nor without the claim that was made
    with the publication, which whoever relies on what was published removes, see ``rely_on``.

    Args:
        access: the catalog.
        relation: the table.
        base: what the publication started from.
        head: the snapshot that it has published.
        claim: the name of its claim.
    """

    def attempt(table: Table) -> TakenBack:
        refs = table.metadata.refs
        if claim not in refs or not is_atomic(table):
            return TakenBack.CLAIM_GONE
        ref = refs.get(base.ref)
        has_expired = base.head is not None and table.metadata.snapshot_by_id(base.head) is None
        if ref is None or ref.snapshot_id != head or has_expired:
            return TakenBack.BUILT_ON
        back = {
            "ref-name": base.ref,
            "type": "branch",
            "snapshot-id": base.head,
            "min-snapshots-to-keep": ref.min_snapshots_to_keep,
            "max-snapshot-age-ms": ref.max_snapshot_age_ms,
            "max-ref-age-ms": ref.max_ref_age_ms,
        }
        update: TableUpdate = (
            removal(base.ref) if base.head is None else SetSnapshotRefUpdate.model_validate(back)
        )
        required = (_at(base.ref, head), _at(claim, refs[claim].snapshot_id))
        commit_in_time(access, table, required, (update, removal(claim)))
        return TakenBack.YES

    return retry(access, relation, attempt, _DROP_RETRIES, wanted="What was published to {} is still there")


def rely_on(access: CatalogAccess, relation: BaseRelation, base: Base, claims: Collection[str]) -> bool:
    """Remove claims to take something back, if it is there still: from now on it stays.

    Args:
        access: the catalog.
        relation: the table.
        base: the state in which it was seen.
        claims: the names of the claims; those that are gone already are no matter.

    Returns:
        Whether the table's branch is at its base still; if not, something may have been taken back.
    """

    def attempt(table: Table) -> bool:
        if has_moved(table.metadata, base):
            return False
        there = {name: ref for name, ref in table.metadata.refs.items() if name in claims}
        if there:
            required = [_at(base.ref, base.head), *(_at(n, ref.snapshot_id) for n, ref in there.items())]
            commit_in_time(access, table, tuple(required), tuple(map(removal, there)))
        return True

    wanted = "What this run relies on in {} may be taken back by another run"
    return retry(access, relation, attempt, _DROP_RETRIES, wanted=wanted)


def set_property(
    access: CatalogAccess, relation: BaseRelation, base: Base, name: str, seen: str | None, value: str | None
) -> bool:
    """Set a property of a table whose rows are those of a base still, or remove it with None.

    Args:
        access: the catalog.
        relation: the table.
        base: what the run started from.
        name: the property's name.
        seen: its value, as it has to be still.
        value: its new value.

    Returns:
        Whether it was set, or was so before; if not, others have changed the table's rows or the property.
    """

    def attempt(table: Table) -> bool:
        now = table.properties.get(name)
        if now == value:
            return True
        if now != seen or has_moved(table.metadata, base):
            return False
        required = AssertRefSnapshotId.model_validate({"ref": base.ref, "snapshot-id": base.head})
        commit_in_time(access, table, (required,), _setting({name: value}))
        return True

    return retry(access, relation, attempt, _DROP_RETRIES, wanted=f"The property {name} of {{}} was not set")


def replace_property(
    access: CatalogAccess, relation: BaseRelation, name: str, seen: str, value: str | None, retries: int
) -> None:
    """Set a property of a table, or remove it with None, if it has the value that was seen still."""

    def attempt(table: Table) -> None:
        if table.properties.get(name) == seen:
            # Who changes what this is about publishes rows with it, maybe in this very moment.
            main = table.metadata.refs.get(MAIN_BRANCH)
            required = _at(MAIN_BRANCH, main.snapshot_id if main is not None else None)
            commit_in_time(access, table, (required,), _setting({name: value}))

    retry(access, relation, attempt, retries, wanted=f"The property {name} of {{}} was not changed")


def change_properties(
    access: CatalogAccess,
    relation: BaseRelation,
    change: Callable[[Table], Mapping[str, str | None]],
    retries: int,
) -> Mapping[str, str | None]:
    """Set properties of a table that follow from what it is, and remove those whose value is None.

    Returns:
        What was changed.
    """

    def attempt(table: Table) -> Mapping[str, str | None]:
        changed = change(table)
        if changed:
            commit_in_time(access, table, (), _setting(changed))
        return changed

    return retry(access, relation, attempt, retries, wanted="Properties of {} could not be changed")


def set_properties(
    access: CatalogAccess, relation: BaseRelation, properties: Mapping[str, str | None], retries: int
) -> None:
    """Set properties of a table in a commit of their own, and remove those whose value is None."""

    def attempt(table: Table) -> None:
        if is_atomic(table):
            commit_in_time(access, table, (), _setting(properties))

    retry(access, relation, attempt, retries, wanted="Properties of {} could not be set")


def drop_branch(access: CatalogAccess, relation: BaseRelation, branch: str) -> None:
    """Remove a branch, if it is there; leave it to expire if that needs a statement of a cancelled run."""

    def attempt(table: Table) -> None:
        metadata = table.metadata
        if branch in metadata.refs and (is_atomic(table) or not access.cancellation.is_cancelled):
            seen = {"ref": branch, "snapshot-id": metadata.refs[branch].snapshot_id}
            commit_in_time(access, table, (AssertRefSnapshotId.model_validate(seen),), (removal(branch),))

    with removing():
        retry(access, relation, attempt, _DROP_RETRIES, wanted="A branch of {} could not be removed")
