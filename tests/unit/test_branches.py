"""Names of the branches that batches are loaded into, how long they live, and when one was left behind."""

import os
import re
import subprocess
import sys

import pytest

from dbt.adapters.sparkevolve.iceberg import branches, staging
from dbt.adapters.sparkevolve.iceberg.branches import RETAIN_MS, branch_name, is_left_over, retain_minutes

NOW_MS = 1_800_000_000_000
OTHER_PROCESS = "0" * 8


def of(host: str, pid: int | str, process: str = OTHER_PROCESS) -> str:
    return f"sparkevolve_{host}_{pid}_{process}_0123abcd"


@pytest.fixture
def here() -> str:
    """What a name says of this machine."""
    return branch_name().split("_")[1]


@pytest.fixture(scope="module")
def dead_pid() -> int:
    """The id of a process that has run and ended."""
    child = subprocess.Popen([sys.executable, "-c", ""])
    child.wait()
    return child.pid


def test_a_branch_has_a_name_of_its_own_that_says_whose_it_is() -> None:
    first, second = branch_name(), branch_name()
    pattern = r"sparkevolve_[0-9a-f]{8}_(\d+)_([0-9a-f]{8})_[0-9a-f]{8}"
    match = re.fullmatch(pattern, first)
    assert match is not None
    assert match[1] == str(os.getpid())
    assert match[2] == staging.PROCESS[:8]
    assert first != second
    assert first.rpartition("_")[0] == second.rpartition("_")[0]


def test_two_machines_have_names_of_their_own(monkeypatch: pytest.MonkeyPatch, here: str) -> None:
    monkeypatch.setattr(staging, "HOST", "another.host")
    assert branch_name().split("_")[1] == "01711523" != here


@pytest.mark.parametrize(
    ("base_ms", "minutes"),
    [
        (None, 2880),
        (NOW_MS, 2880),
        (NOW_MS - 59_999, 2880),
        (NOW_MS - 60_000, 2881),
        (NOW_MS - 365 * 24 * 3_600_000, 2880 + 365 * 24 * 60),
        (NOW_MS + 3_600_000, 2880),  # the clock of whoever made the snapshot is ahead
    ],
)
def test_a_branch_lives_two_days_from_now_however_old_its_first_snapshot_is(
    base_ms: int | None, minutes: int
) -> None:
    assert retain_minutes(base_ms, NOW_MS) == minutes
    assert RETAIN_MS == 2 * 24 * 60 * 60 * 1000


def test_a_branch_of_this_process_is_never_left_over() -> None:
    assert not is_left_over(branch_name(), 0, NOW_MS)


def test_a_branch_of_a_process_that_has_ended_is_left_over_at_once(here: str, dead_pid: int) -> None:
    assert is_left_over(of(here, dead_pid), NOW_MS + RETAIN_MS, NOW_MS)


def test_a_branch_of_an_earlier_process_with_our_id_is_left_over(here: str) -> None:
    assert is_left_over(of(here, os.getpid()), NOW_MS + RETAIN_MS, NOW_MS)


@pytest.mark.parametrize("pid", [os.getppid(), 1])
def test_a_branch_of_a_process_that_runs_is_left_over_when_its_time_is_over(here: str, pid: int) -> None:
    """Another process may have the id by now."""
    assert not is_left_over(of(here, pid), NOW_MS + 1, NOW_MS)
    assert not is_left_over(of(here, pid), NOW_MS, NOW_MS)
    assert is_left_over(of(here, pid), NOW_MS - 1, NOW_MS)


def test_a_branch_of_another_machine_is_left_over_when_its_time_is_over(here: str, dead_pid: int) -> None:
    there = "f" * 8
    assert here != there
    for pid in (dead_pid, os.getpid()):
        assert not is_left_over(of(there, pid), NOW_MS, NOW_MS)
        assert is_left_over(of(there, pid), NOW_MS - 1, NOW_MS)


@pytest.mark.parametrize(
    "name",
    [
        "main",
        "audit",
        "sparkevolve",
        "sparkevolve_x",
        of("f" * 8, "x"),
        of("f" * 8, ""),
        of("f" * 7, 1),
        of("F" * 8, 1),
        of("f" * 8, 1, "0" * 7),
        of("f" * 8, 1) + "0",
        of("f" * 8, 1) + "\n",
        "x" + of("f" * 8, 1),
    ],
)
def test_a_branch_of_somebody_else_is_never_left_over(name: str) -> None:
    assert not is_left_over(name, 0, NOW_MS)


def test_names_of_branches_are_found_by_what_makes_them() -> None:
    assert branches.NAME.fullmatch(branch_name()) is not None
