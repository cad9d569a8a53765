"""Tables that nobody could read, since Iceberg has deleted files of a commit that its database has made.

Iceberg's JDBC catalog sends its UPDATE again if the connection breaks before the answer. If the first one was
carried out, the second one finds nothing to update. Iceberg then takes its own commit for another writer's:
what checks for conflicts (MERGE, UPDATE, DELETE) finds one, and cleans up after itself. See decision 138.
"""

import re
from collections.abc import Iterator

from dbt.adapters.events.logging import AdapterLogger
from pyiceberg.table import Table
from pyiceberg.table.refs import MAIN_BRANCH
from pyiceberg.table.snapshots import Snapshot
from pyiceberg.table.update import (
    AssertRefSnapshotId,
    RemoveSnapshotsUpdate,
    SetSnapshotRefUpdate,
    TableUpdate,
)

from dbt.adapters.sparkevolve.iceberg.access import CatalogAccess
from dbt.adapters.sparkevolve.iceberg.newer_format import is_atomic
from dbt.adapters.sparkevolve.iceberg.retry import commit_in_time, retry
from dbt.adapters.sparkevolve.messages import is_conflict_in_spark
from dbt.adapters.sparkevolve.relation import SparkEvolveRelation

logger = AdapterLogger("SparkEvolve")
_RETRIES = 4
_PART = r"(?:`(?:[^`]|``)+`|\w+)"
# The table of a procedure is a text: after `table =>`, or the first argument.
_ARGUMENTS = (
    re.compile(r"""\btable\s*=>\s*['"]([^'"]+)['"]""", re.IGNORECASE),
    re.compile(r"""\A[^(]*\(\s*['"]([^'"]+)['"]"""),
)


def put_back(access: CatalogAccess, message: str, sql: str) -> str:
    """Put tables back whose last commit nobody can read, after a statement that may have made it.

    Args:
        access: the catalog.
        message: the text of the statement's error.
        sql: the statement.

    Returns:
        What was done, or is to be done by hand, in sentences; empty if there is nothing.

    Raises:
        CommitConflictError: a table could not be put back: each attempt met another writer.
        CatalogUnavailableError: the same, since the catalog is away.
        CatalogAnswerError: the same, since it refuses to.
    """
    settings = access.settings
    if settings.kind != "sql" or settings.sqlite_file is not None or not is_conflict_in_spark(message):
        return ""
    return " ".join(filter(None, (_put_back(access, name) for name in _tables(access.name, sql))))


def _tables(catalog: str, sql: str) -> Iterator[SparkEvolveRelation]:
    named = rf"(?<![\w`.])(?:`{catalog}`|{catalog})((?:\.{_PART})+)"
    found = re.findall(named, sql)
    if re.match(rf"\s*call\s+(?:`{catalog}`|{catalog})\s*\.\s*`?system\b", sql, re.IGNORECASE):
        texts = [argument[1] for argument in (each.search(sql) for each in _ARGUMENTS) if argument]
        # With the name of the catalog before it, it is found already.
        found += [f".{text}" for text in texts[:1] if not re.match(named, text)]
    for name in dict.fromkeys(found):
        parts = [part.strip("`").replace("``", "`") for part in re.findall(_PART, name)]
        if len(parts) > 1:
            yield SparkEvolveRelation.create(catalog, ".".join(parts[:-1]), parts[-1])


def _put_back(access: CatalogAccess, relation: SparkEvolveRelation) -> str:
    try:
        table = access.find(relation)
        broken = None if table is None else _broken(table)
    except Exception as exc:
        logger.debug(f"Whether {relation} can still be read cannot be looked up: {exc}")
        return ""
    if table is None or broken is None:
        return ""
    last, before = broken
    what = (
        "The database had made this commit, and its answer was lost: Iceberg has taken it for another "
        f"writer's, and deleted files of the snapshot {last.snapshot_id}, which nobody "
    )
    if not is_atomic(table):
        # There is no statement for it whose condition is that nobody has moved the table meanwhile.
        where = f"'{relation.schema}.{relation.identifier}', {before.snapshot_id}"
        return (
            f"{what}can read. Put {relation} back to the snapshot before it, with "
            f"`CALL {access.name}.system.set_current_snapshot({where})`, and run again."
        )

    def attempt(table: Table) -> None:
        metadata = table.metadata
        if metadata.current_snapshot_id != last.snapshot_id:
            # Another run has put it back.
            return
        required = AssertRefSnapshotId.model_validate({"ref": MAIN_BRANCH, "snapshot-id": last.snapshot_id})
        kept = metadata.refs[MAIN_BRANCH]
        moved = {
            "ref-name": MAIN_BRANCH,
            "type": "branch",
            "snapshot-id": before.snapshot_id,
            "min-snapshots-to-keep": kept.min_snapshots_to_keep,
            "max-snapshot-age-ms": kept.max_snapshot_age_ms,
            "max-ref-age-ms": kept.max_ref_age_ms,
        }
        updates: tuple[TableUpdate, ...] = (SetSnapshotRefUpdate.model_validate(moved),)
        if [ref.snapshot_id for ref in metadata.refs.values()].count(last.snapshot_id) == 1:
            # What reads all snapshots, as `remove_orphan_files` does, would fail as long as it is listed.
            gone = {"snapshot-ids": [last.snapshot_id]}
            updates = (*updates, RemoveSnapshotsUpdate.model_validate(gone))
        commit_in_time(access, table, (required,), updates)

    retry(
        access, relation, attempt, _RETRIES, wanted="{} could not be put back to a snapshot that can be read"
    )
    return (
        f"{what}could read any more. {relation} has been put back to the snapshot before it, "
        f"{before.snapshot_id}: it has none of the changes of this statement. Run again."
    )


def _broken(table: Table) -> tuple[Snapshot, Snapshot] | None:
    """Return a table's last snapshot and the one before, if the first one's list of manifests is gone."""
    last = table.metadata.snapshot_by_name(MAIN_BRANCH)
    if last is None or last.parent_snapshot_id is None or _is_there(table, last):
        return None
    before = table.metadata.snapshot_by_id(last.parent_snapshot_id)
    return (last, before) if before is not None and _is_there(table, before) else None


def _is_there(table: Table, snapshot: Snapshot) -> bool:
    # Fsspec's `exists` is false, too, where a storage does not answer: a good commit would be taken back.
    try:
        table.io.new_input(snapshot.manifest_list).open().close()
    except FileNotFoundError:
        return False
    return True
