"""Staged batches: what their tables are called, and when one that is left over may be removed."""

import hashlib
import os
import platform
import re
import socket
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path

from dbt.adapters.contracts.relation import RelationType

from dbt.adapters.sparkevolve.evolution.table_properties import FIRST_WITH_VARIANTS, FORMAT_VERSION
from dbt.adapters.sparkevolve.relation import SparkEvolveRelation

OWNER_PROPERTY = "sparkevolve.staging-owner"
# Of a table: the token of the batch that a full refresh is about to replace it by. The package has it, too,
# and reads it through Spark, which hides values that look like addresses or secrets, as a name may.
REPLACED_BY = "sparkevolve.replaced-by"
# A batch on another machine that is older than this was left behind: no run takes so long.
ABANDONED_AFTER_MS = 48 * 60 * 60 * 1000

_SUFFIX = "__dbt_tmp_"
_TOKEN_LENGTH = 12
_TOKEN = re.compile(f"[0-9a-f]{{{_TOKEN_LENGTH}}}")
# File systems and the tables of catalogs in SQL take no longer names.
_LONGEST_BYTES = 255
PROCESS = uuid.uuid4().hex


def host_name() -> str:
    """Return what a process id means something in: one start of a machine and, on Linux, a namespace of ids.

    A machine's name is often that of others: of all that were made from one image, of `localhost`, of the
    containers in it. In one of them the run of another would look as if it had ended. So on Linux the id of
    this boot counts too, which containers share with their machine, and the namespace, in which each counts
    its processes for itself. Elsewhere the address of a network card tells machines apart. Where neither is
    known, this process is on a machine of its own: what others leave behind then goes by its age.
    """
    name = socket.gethostname()
    try:
        namespace = re.sub("[^0-9]", "", os.readlink("/proc/self/ns/pid"))
        boot = re.sub("[^0-9a-f]", "", Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii"))
    except (OSError, ValueError):
        return f"{name}/{_card() or PROCESS}"
    return f"{name}/{namespace}/{boot or PROCESS}"


def _card() -> str:
    """Return the address of a network card; empty where containers have it in common, or it is made up."""
    if platform.system() == "Linux":
        return ""
    card = uuid.getnode()
    # These two bits mark an address of a group, as Python makes one up, and one that software has given.
    return "" if card >> 40 & 0b11 else f"{card:012x}"


HOST = host_name()


def staging_relation(target: SparkEvolveRelation) -> SparkEvolveRelation:
    """Return a new name next to ``target``, which no other run uses."""
    name = f"{_prefix(str(target.identifier))}{uuid.uuid4().hex[:_TOKEN_LENGTH]}"
    return target.replace(path=target.path.replace(identifier=name), type=RelationType.Table)


def _prefix(identifier: str) -> str:
    """Return what the names of all batches of a table begin with: a folder can have each as its name."""
    room = _LONGEST_BYTES - len(_SUFFIX) - _TOKEN_LENGTH
    if len(identifier.encode()) <= room:
        return identifier + _SUFFIX
    digest = hashlib.sha256(identifier.encode()).hexdigest()[:_TOKEN_LENGTH]
    begin = identifier.encode()[: room - len(digest) - 1].decode(errors="ignore")
    return f"{begin}_{digest}{_SUFFIX}"


def is_staging_of(name: str, identifier: str) -> bool:
    """Tell whether ``name`` is one that ``staging_relation`` gives for the table ``identifier``."""
    prefix = _prefix(identifier)
    return name.startswith(prefix) and _TOKEN.fullmatch(name[len(prefix) :]) is not None


def is_made_up(name: str) -> bool:
    """Tell whether a name is one of a batch, of whatever table: nobody gives it to another table."""
    return _TOKEN.fullmatch(name[-_TOKEN_LENGTH:]) is not None and name[:-_TOKEN_LENGTH].endswith(_SUFFIX)


def token_of(batch: SparkEvolveRelation) -> str:
    """Return what tells a batch that ``staging_relation`` has named from the others of its table."""
    return str(batch.identifier)[-_TOKEN_LENGTH:]


def batch_of(target: SparkEvolveRelation, token: str) -> SparkEvolveRelation | None:
    """Return the batch of ``target`` with this token; None if it is none."""
    if _TOKEN.fullmatch(token) is None:
        return None
    return target.replace(path=target.path.replace(identifier=_prefix(str(target.identifier)) + token))


def staging_properties(keys: Sequence[str] = (), *, variants: bool = False) -> dict[str, str]:
    """Return the table properties of a staged batch of this process.

    NULL counts of every column are kept in the manifest, however many columns there are: they decide how
    keys are compared, and whether a NOT NULL column can be filled. For the keys there are bounds too.

    Args:
        keys: names of key columns, spelled as the batch has them.
        variants: whether the batch has variants, of which older format versions know nothing.
    """
    bounds = {f"write.metadata.metrics.column.{name}": "truncate(16)" for name in keys}
    return {
        OWNER_PROPERTY: f"{HOST}:{os.getpid()}:{PROCESS}",
        "write.metadata.metrics.default": "counts",
        # A catalog may turn it on for all new tables (`table-default.`): with `spark.wap.branch` or
        # `spark.wap.id` in the session the rows would not be on `main`, and the batch be taken for empty.
        "write.wap.enabled": "false",
        **({FORMAT_VERSION: str(FIRST_WITH_VARIANTS)} if variants else {}),
        **bounds,
    }


def is_abandoned(properties: Mapping[str, str], written_ms: int, now_ms: int) -> bool:
    """Tell whether the run that staged a batch has ended, so that its table is left over.

    Args:
        properties: the table's properties; without ours it is somebody's table, never left over.
        written_ms: when it was last written, in milliseconds since the epoch.
        now_ms: the time now, see ``certain_ms``.
    """
    owner = properties.get(OWNER_PROPERTY)
    if owner is None:
        return False
    host, _, rest = owner.partition(":")
    pid, _, process = rest.partition(":")
    if process == PROCESS:
        return False
    if host == HOST and pid.isdigit() and (int(pid) == os.getpid() or not is_running(int(pid))):
        return True
    return now_ms - written_ms > ABANDONED_AFTER_MS


def certain_ms(own_ms: int, seen_ms: int) -> int:
    """Return the time that it is for sure, to tell by whether another machine's run has ended.

    Neither this machine's clock nor that of whoever wrote to the table last may be ahead: the earlier counts.

    Args:
        own_ms: the time by this machine's clock, in milliseconds since the epoch.
        seen_ms: the newest time that the model's table knows of, likewise; 0 if there is no table.
    """
    return min(own_ms, seen_ms)


def is_running(pid: int) -> bool:
    """Tell whether this machine runs a process with the id ``pid``; true if it cannot be asked."""
    if os.name == "nt":
        return True  # where signal 0 is no question, but a Ctrl-C
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
