"""What a table has been through, as plain data: its schemas, the lanes of its fields, its snapshots."""

from dataclasses import asdict
from typing import Any

from pyiceberg.table import Table
from pyiceberg.table.snapshots import Snapshot

from dbt.adapters.sparkevolve.evolution.lanes import Lane, lanes
from dbt.adapters.sparkevolve.iceberg.schema_history import schema_history
from dbt.adapters.sparkevolve.iceberg.statistics import rows_of, statistics
from dbt.adapters.sparkevolve.times import iso_of

# Of a table with more, the newest are shown: a page has to open on a phone.
MOST_SNAPSHOTS = 300


def table_story(table: Table) -> dict[str, Any]:
    """Return what is known of a table: ``facts``, ``versions``, ``lanes``, ``snapshots``, ``more_snapshots``.

    A version is a schema in the order in which it became the current one; ``by`` says who made it: a ``run``,
    whoever created the table (``creation``), whoever described its columns and did nothing else to them
    (``docs``), or somebody ``else``.
    """
    history = schema_history(table)
    by_id = {schema.schema_id: schema for schema in table.metadata.schemas}
    versions = [_version(place, entry) for place, entry in enumerate(history)]
    padded = {place: version["padded"] for place, version in enumerate(versions)}
    found = lanes([by_id[entry["schema_id"]] for entry in history], padded)
    snapshots = _snapshots(table)
    return {
        "facts": [asdict(statistic) for statistic in statistics(table)],
        "versions": versions,
        "lanes": [_lane(lane) for lane in found],
        "snapshots": [_snapshot(snapshot) for snapshot in snapshots[-MOST_SNAPSHOTS:]],
        "more_snapshots": max(0, len(snapshots) - MOST_SNAPSHOTS),
    }


def _version(place: int, entry: dict[str, Any]) -> dict[str, Any]:
    also = entry.get("shapes", [])
    padded = [*entry.get("padded", []), *(path for shape in also for path in shape["padded"])]
    return {
        "schema": entry["schema_id"],
        "at": entry["at"],
        "run": entry["invocation_id"],
        "by": _by(entry, is_first=place == 0 and entry["schema_id"] == 0),
        "current": entry["is_current"],
        "changes": entry["changes"],
        "gone": entry.get("removed_before", 0),
        "columns": len(entry["columns"]),
        "padded": list(dict.fromkeys(padded)),
        "also": [
            {"at": shape["at"], "run": shape["invocation_id"], "padded": shape["padded"]} for shape in also
        ],
    }


def _by(entry: dict[str, Any], is_first: bool) -> str:
    if entry["invocation_id"]:
        return "run"
    if is_first:
        return "creation"
    return "docs" if all(change.startswith("described ") for change in entry["changes"]) else "else"


def _lane(lane: Lane) -> dict[str, Any]:
    return {
        "id": lane.field_id,
        "parent": lane.parent,
        "name": lane.path[-1],
        "path": list(lane.path),
        "type": lane.type,
        "names": lane.names,
        "spans": [list(span) for span in lane.spans],
        "marks": [[mark.place, mark.kind, mark.text] for mark in lane.marks],
    }


def _snapshots(table: Table) -> list[Snapshot]:
    """Return the snapshots that ``main`` comes from, as far as they are kept, oldest first."""
    by_id = {snapshot.snapshot_id: snapshot for snapshot in table.metadata.snapshots}
    found: list[Snapshot] = []
    head = table.current_snapshot()
    while head is not None:
        found.append(head)
        head = by_id.get(head.parent_snapshot_id) if head.parent_snapshot_id is not None else None
    return found[::-1]


def _snapshot(snapshot: Snapshot) -> dict[str, Any]:
    summary = dict(snapshot.summary.additional_properties) if snapshot.summary is not None else {}
    numbers = {
        name: int(summary[key])
        for name, key in (
            ("added", "added-records"),
            ("deleted", "deleted-records"),
            ("bytes", "total-files-size"),
        )
        if summary.get(key, "").isascii() and summary.get(key, "").isdigit()
    }
    rows = rows_of(snapshot)
    if rows is not None:
        numbers["rows"] = rows
    return {
        # As text: JavaScript's numbers are too short for it.
        "id": str(snapshot.snapshot_id),
        "at": iso_of(snapshot.timestamp_ms) or "",
        "operation": snapshot.summary.operation.value if snapshot.summary is not None else "",
        "schema": snapshot.schema_id,
        **numbers,
    }
