"""Names of staged batches, and when one was left behind."""

import os
import platform
import re
import socket
import subprocess
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from dbt.adapters.sparkevolve.iceberg import staging
from dbt.adapters.sparkevolve.iceberg.staging import (
    ABANDONED_AFTER_MS,
    HOST,
    OWNER_PROPERTY,
    certain_ms,
    is_abandoned,
    is_running,
    is_staging_of,
    staging_properties,
    staging_relation,
)
from tests.unit.helpers import relation

NOW_MS = 1_800_000_000_000


@pytest.mark.parametrize("identifier", ["t", "My Table", "a`b", "t__dbt_tmp_0123456789ab", "Größe", "x.y"])
def test_a_staged_batch_lies_next_to_its_table_under_a_new_name(identifier: str) -> None:
    target = relation(identifier)
    first, second = staging_relation(target), staging_relation(target)
    assert re.fullmatch(re.escape(identifier) + "__dbt_tmp_[0-9a-f]{12}", str(first.identifier))
    assert first.identifier != second.identifier
    assert (first.database, first.schema) == (target.database, target.schema)
    assert first.is_table
    assert type(first) is type(target)
    assert target.identifier == identifier
    assert is_staging_of(str(first.identifier), identifier)


@pytest.mark.parametrize("letter", ["x", "ö", "長", "😀"])
def test_the_batch_of_a_table_with_a_long_name_has_one_that_is_short_enough(letter: str) -> None:
    width = len(letter.encode())
    longest, other = (letter * (255 // width - 1) + end for end in "ab")
    name = str(staging_relation(relation(longest)).identifier)
    assert len(name.encode()) <= 255
    assert re.fullmatch(re.escape(letter) + "+_[0-9a-f]{12}__dbt_tmp_[0-9a-f]{12}", name)
    assert is_staging_of(name, longest)
    assert not is_staging_of(name, other)
    # As long as it can be: 255 less 22.
    assert str(staging_relation(relation("x" * 233)).identifier).startswith("x" * 233 + "__dbt_tmp_")


@pytest.mark.parametrize(
    ("name", "identifier", "answer"),
    [
        ("t__dbt_tmp_0123456789ab", "t", True),
        ("t__dbt_tmp_ffffffffffff", "t", True),
        ("t", "t", False),
        ("t__dbt_tmp_", "t", False),
        ("t__dbt_tmp", "t", False),
        ("t__dbt_tmp_0123456789a", "t", False),
        ("t__dbt_tmp_0123456789abc", "t", False),
        ("t__dbt_tmp_0123456789ag", "t", False),
        ("t__dbt_tmp_0123456789AB", "t", False),
        ("t__dbt_tmp_0123456789ab\n", "t", False),
        ("t__dbt_tmp_20240101", "t", False),
        ("tt__dbt_tmp_0123456789ab", "t", False),
        ("T__dbt_tmp_0123456789ab", "t", False),
        ("_t__dbt_tmp_0123456789ab", "t", False),
        ("t_x__dbt_tmp_0123456789ab", "t", False),
        # a table that has such a name itself, and its batches
        ("t__dbt_tmp_0123456789ab", "t__dbt_tmp_0123456789ab", False),
        ("t__dbt_tmp_0123456789ab__dbt_tmp_ba9876543210", "t__dbt_tmp_0123456789ab", True),
        ("t__dbt_tmp_0123456789ab__dbt_tmp_ba9876543210", "t", False),
        ("t__dbt_tmp_0123456789ab", "t__dbt_tmp_", False),
        ("a.c__dbt_tmp_0123456789ab", "a.c", True),
        ("abc__dbt_tmp_0123456789ab", "a.c", False),
    ],
)
def test_only_a_name_that_we_give_is_a_staged_batch_of_the_table(
    name: str, identifier: str, answer: bool
) -> None:
    assert is_staging_of(name, identifier) is answer


def test_a_staged_batch_is_a_table_whatever_its_target_is() -> None:
    assert staging_relation(relation("v").incorporate(type="view")).is_table


def test_a_staged_batch_names_its_owner_and_counts_nulls() -> None:
    properties = staging_properties()
    assert properties.keys() == {
        "sparkevolve.staging-owner",
        "write.metadata.metrics.default",
        "write.wap.enabled",
    }
    assert properties["write.wap.enabled"] == "false"
    assert properties["write.metadata.metrics.default"] == "counts"
    host, pid, process = properties[OWNER_PROPERTY].split(":")
    assert (host, int(pid)) == (HOST, os.getpid())
    name, *rest = host.split("/")
    assert name == socket.gethostname()
    if sys.platform == "linux":
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii")
        assert rest == [str(os.stat("/proc/self/ns/pid").st_ino), boot.strip().replace("-", "")]
    assert re.fullmatch("[0-9a-f]{32}", process)
    assert staging_properties() == properties


@pytest.fixture(scope="module")
def dead_pid() -> int:
    """The id of a process that has run and ended."""
    child = subprocess.Popen([sys.executable, "-c", ""])
    child.wait()
    return child.pid


@pytest.fixture
def live_pid() -> Iterator[int]:
    """The id of a process that runs until the test has ended, unless a signal reaches it."""
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child:
        yield child.pid
        child.communicate(b"\n")
    assert child.returncode == 0


def abandoned(owner: str | None, age_ms: int) -> bool:
    properties = {"format-version": "2"} if owner is None else {OWNER_PROPERTY: owner}
    return is_abandoned(properties, NOW_MS - age_ms, NOW_MS)


OLD = ABANDONED_AFTER_MS + 1


def test_a_batch_of_this_process_is_never_left_behind() -> None:
    own = staging_properties()
    assert not is_abandoned(own, NOW_MS, NOW_MS)
    assert not is_abandoned(own, NOW_MS - 100 * ABANDONED_AFTER_MS, NOW_MS)


def test_a_batch_of_a_process_that_has_ended_is_left_behind_at_once(dead_pid: int) -> None:
    assert abandoned(f"{HOST}:{dead_pid}:{'0' * 32}", age_ms=0)


def test_a_batch_of_an_earlier_process_with_our_id_is_left_behind() -> None:
    """In a container the process id is often the same in every run."""
    assert abandoned(f"{HOST}:{os.getpid()}:{'0' * 32}", age_ms=0)


def test_a_batch_of_a_process_that_runs_is_left_behind_when_it_is_too_old(live_pid: int) -> None:
    owner = f"{HOST}:{live_pid}:{'0' * 32}"
    assert not abandoned(owner, age_ms=0)
    assert not abandoned(owner, age_ms=ABANDONED_AFTER_MS)
    assert abandoned(owner, age_ms=OLD)


def test_a_container_of_the_same_name_is_another_machine() -> None:
    """Both have a process 1, and neither sees the other's."""
    code = "from dbt.adapters.sparkevolve.iceberg.staging import HOST, staging_properties; print(HOST)"
    command = ["unshare", "--pid", "--fork", "--mount-proc", sys.executable, "-c", code]
    try:
        other = subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("needs the right to make a namespace of process ids")
    assert other.split("/")[0] == socket.gethostname()
    assert other != HOST
    assert not abandoned(f"{other}:1:{'0' * 32}", age_ms=0)


def here_with(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, boot: str | None, namespace: str | None
) -> str:
    """Return what this machine would be if it had another id of its boot, or namespace, or none."""
    real_link, real_path = os.readlink, Path
    (tmp_path / "boot").write_text(f"{boot}\n")

    def readlink(path: str) -> str:
        assert path == "/proc/self/ns/pid"
        if namespace is None:
            raise FileNotFoundError(path)
        return namespace

    def path(name: str) -> Path:
        assert name == "/proc/sys/kernel/random/boot_id"
        return real_path(tmp_path / ("boot" if boot is not None else "absent"))

    with monkeypatch.context() as patch:
        patch.setattr(os, "readlink", readlink)
        patch.setattr(staging, "Path", path)
        host = staging.host_name()
    assert (os.readlink, staging.Path) == (real_link, real_path)
    return host


BOOT = "6f1fed27-3f7c-4d6c-9a40-3d1b7f3b0a11"
NAMESPACE = "pid:[4026531836]"


def test_one_image_that_is_started_twice_is_two_machines(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Of one name, with the same first namespace: only the start differs."""
    name = socket.gethostname()
    first = here_with(monkeypatch, tmp_path, BOOT, NAMESPACE)
    assert first == f"{name}/4026531836/6f1fed273f7c4d6c9a403d1b7f3b0a11"
    assert first == here_with(monkeypatch, tmp_path, BOOT, NAMESPACE)
    others = {
        here_with(monkeypatch, tmp_path, BOOT.replace("6", "7"), NAMESPACE),
        here_with(monkeypatch, tmp_path, BOOT, "pid:[4026531837]"),
    }
    assert len(others - {first}) == 2


@pytest.mark.parametrize(("boot", "namespace"), [("", NAMESPACE), (None, NAMESPACE), (BOOT, None)])
def test_a_linux_that_does_not_say_which_it_is_is_known_to_itself_alone(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, boot: str | None, namespace: str | None
) -> None:
    """Another process there, in which this one's id means nothing, waits for the batch's time to be over."""
    assert here_with(monkeypatch, tmp_path, boot, namespace).endswith(f"/{staging.PROCESS}")


@pytest.mark.parametrize(
    ("system", "card", "last"),
    [
        ("Darwin", 0xACDE48001122, "acde48001122"),
        ("Darwin", 0xAFDE48001122, None),
        ("Darwin", 0xAEDE48001122, None),
        ("Linux", 0xACDE48001122, None),
    ],
)
def test_a_machine_without_a_proc_is_told_by_its_network_card(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, system: str, card: int, last: str | None
) -> None:
    """Unless the address is made up, by Python or by software for a container: then by the process."""
    monkeypatch.setattr(platform, "system", lambda: system)
    monkeypatch.setattr(uuid, "getnode", lambda: card)
    host = here_with(monkeypatch, tmp_path, None, None)
    assert host == f"{socket.gethostname()}/{last or staging.PROCESS}"


@pytest.mark.parametrize("of", ["{0}", "{0}/4026531836", "{0}/4026531836/" + "0" * 32])
def test_what_an_earlier_version_or_start_left_behind_goes_by_age(of: str, dead_pid: int) -> None:
    owner = f"{of.format(socket.gethostname())}:{dead_pid}:{'0' * 32}"
    assert not abandoned(owner, age_ms=ABANDONED_AFTER_MS)
    assert abandoned(owner, age_ms=OLD)


@pytest.mark.parametrize(("own_ms", "seen_ms", "expected"), [(5, 7, 5), (7, 5, 5), (5, 0, 0)])
def test_the_time_is_certain_if_two_clocks_have_passed_it(own_ms: int, seen_ms: int, expected: int) -> None:
    assert certain_ms(own_ms, seen_ms) == expected


def test_windows_is_not_asked_for_a_process(monkeypatch: pytest.MonkeyPatch, dead_pid: int) -> None:
    """What asks on other systems would be a Ctrl-C there."""
    monkeypatch.setattr(staging, "os", SimpleNamespace(name="nt"))
    assert is_running(dead_pid)


def test_a_batch_of_another_machine_is_left_behind_when_it_is_too_old(dead_pid: int) -> None:
    owner = f"not-{HOST}:{dead_pid}:{'0' * 32}"
    assert not abandoned(owner, age_ms=0)
    assert not abandoned(owner, age_ms=ABANDONED_AFTER_MS)
    assert abandoned(owner, age_ms=OLD)


def test_a_table_without_our_property_is_never_left_behind() -> None:
    assert not abandoned(None, age_ms=100 * ABANDONED_AFTER_MS)


@pytest.mark.parametrize("owner", ["", "{0}", "{0}:", "{0}::", "{0}:x:y", "{0}:-1:y"])
def test_an_owner_that_cannot_be_read_counts_by_age(owner: str) -> None:
    owner = owner.format(HOST)
    assert not abandoned(owner, age_ms=0)
    assert abandoned(owner, age_ms=OLD)


def test_a_batch_is_abandoned_after_two_days() -> None:
    assert ABANDONED_AFTER_MS == 2 * 24 * 60 * 60 * 1000


def test_bounds_are_kept_for_the_keys_and_for_nothing_else() -> None:
    assert staging_properties(["Id", "a.b", "q`q"]) == {
        **staging_properties(),
        "write.metadata.metrics.column.Id": "truncate(16)",
        "write.metadata.metrics.column.a.b": "truncate(16)",
        "write.metadata.metrics.column.q`q": "truncate(16)",
    }


def test_a_process_runs_or_not(dead_pid: int, live_pid: int) -> None:
    assert is_running(live_pid)
    assert is_running(os.getpid())
    assert not is_running(dead_pid)


def test_a_process_of_somebody_else_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    def kill(pid: int, signal: int) -> None:
        assert (pid, signal) == (7, 0)
        raise PermissionError

    monkeypatch.setattr(os, "kill", kill)
    assert is_running(7)
