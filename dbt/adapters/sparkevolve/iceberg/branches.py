"""The branches on which batches are loaded: their names, how long they live, and which are left over."""

import hashlib
import os
import re
import uuid
from collections.abc import Iterable

from dbt.adapters.sparkevolve.iceberg import staging

# A run that takes longer loses its branch only if somebody expires snapshots meanwhile, and then fails.
RETAIN_MS = staging.ABANDONED_AFTER_MS
NAME = re.compile(r"sparkevolve_([0-9a-f]{8})_(\d+)_([0-9a-f]{8})_[0-9a-f]{8}")
_CLAIM = re.compile(r"sparkevolve_letters_([0-9a-f]{8})_(\d+)_([0-9a-f]{8})_(\d+)")


def branch_name() -> str:
    """Return a new name that no other run uses. It says which process the branch belongs to."""
    return f"sparkevolve_{_host_part()}_{os.getpid()}_{_process_part()}_{uuid.uuid4().hex[:8]}"


def claim_name(stamp: int) -> str:
    """Return the name of the tag that lets a run take its dead letters back.

    Args:
        stamp: when they are written, in microseconds since the epoch.
    """
    return f"sparkevolve_letters_{_host_part()}_{os.getpid()}_{_process_part()}_{stamp}"


def claims(names: Iterable[str]) -> dict[str, int]:
    """Return those of some names that are such tags, with the times in them."""
    found = ((name, _CLAIM.fullmatch(name)) for name in names)
    return {name: int(match[4]) for name, match in found if match is not None}


def retain_minutes(base_ms: int | None, now_ms: int) -> int:
    """Return how long a branch may live after its last snapshot.

    The age of a branch is that of its last snapshot, which at first is the one that it was cut from: without
    that age on top, whoever expires snapshots would remove the new branch of an old table.

    Args:
        base_ms: when that snapshot was made, in milliseconds since the epoch; None for an empty table.
        now_ms: the time now, likewise.
    """
    age = 0 if base_ms is None else max(0, now_ms - base_ms)
    return (age + RETAIN_MS) // 60_000


def is_left_over(name: str, expires_ms: int, now_ms: int) -> bool:
    """Tell whether a branch, or a claim, is one of ours whose run has ended.

    Args:
        name: its name.
        expires_ms: when its time is over, in milliseconds since the epoch.
        now_ms: the time now, see ``staging.certain_ms``.
    """
    match = NAME.fullmatch(name) or _CLAIM.fullmatch(name)
    if match is None or match[3] == _process_part():
        return False
    pid = int(match[2])
    if match[1] == _host_part() and (pid == os.getpid() or not staging.is_running(pid)):
        return True
    return now_ms > expires_ms


def _host_part() -> str:
    return hashlib.sha256(staging.HOST.encode()).hexdigest()[:8]


def _process_part() -> str:
    return staging.PROCESS[:8]
