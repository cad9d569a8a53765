"""Ctrl-C and `--fail-fast`: what had not been published is not published, and nothing is left over."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.functional.harness import Scenario

OLD = "select 1 as id, 'a' as v, 10 as gone union all select 2, 'b', 20"
NEW = "select 2 as id, 'B' as v, 7 as n union all select 3, 'C', 8"
# Sleeps in a task of Spark's, so that the other models have a processor.
ENDLESS = "select 1 as id, reflect('java.lang.Thread', 'sleep', 600000L) as v, 1 as n from range(1)"
OLD_ROWS = [(1, "a", 10), (2, "b", 20)]
EVOLVED_ROWS = [(1, "a", 10, None), (2, "b", 20, None)]
NEW_ROWS = [(1, "a", 10, None), (2, "B", None, 7), (3, "C", None, 8)]

AS_THEY_WERE = "The rows of {} are as they were before this run."
WHAT_IS = "What was committed before stays."
# For each model the step at which the process is interrupted, its config, the rows that its table has then,
# and the status of its node with the beginning and the end of the message.
POINTS: dict[str, tuple[str, dict[str, Any], Any, str, str, str]] = {
    "t_staging": (
        "staging",
        {},
        OLD_ROWS,
        "error",
        "This statement was stopped while it ran: create t",
        WHAT_IS,
    ),
    "t_staged": ("staged", {}, OLD_ROWS, "error", "The columns of ", AS_THEY_WERE),
    "t_evolving": ("evolving", {}, OLD_ROWS, "error", "The columns of ", AS_THEY_WERE),
    "t_cut": ("cut", {}, EVOLVED_ROWS, "error", "This statement was not sent: DELETE FROM", AS_THEY_WERE),
    "t_deleted": ("deleted", {}, EVOLVED_ROWS, "error", "This statement was not sent: INSERT", AS_THEY_WERE),
    "t_publishing": ("publishing", {}, EVOLVED_ROWS, "error", "The batch was not published.", AS_THEY_WERE),
    "t_committing": ("committing", {}, NEW_ROWS, "success", "OK", ""),
    "t_published": ("published", {}, NEW_ROWS, "success", "OK", ""),
    "t_hook": (
        "published",
        {"post_hook": "select 'after'"},
        NEW_ROWS,
        "error",
        "This statement was not sent: select 'after'.",
        "The rows of this run are in {}, and readers see them.",
    ),
    "t_rebuilt": (
        "creating",
        {"materialized": "table", "unique_key": None},
        OLD_ROWS,
        "error",
        "This statement was stopped while it ran: create or replace table",
        WHAT_IS,
    ),
    "t_first": ("creating", {}, None, "error", "This statement was stopped while it ran: create", WHAT_IS),
}
RUNNING = {"staging", "creating"}
# The server of the tests runs two tasks at once.
ON_A_SERVER = ("t_staging", "t_deleted", "t_publishing", "t_committing", "t_hook")


def interrupt(scenario: Scenario, steps: dict[str, str], *arguments: str) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, "-m", "tests.functional.interrupted", json.dumps(steps), *arguments],
        cwd=scenario.folder,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    answer: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return answer


def test_ctrl_c_at_any_step(
    method: str, profile_target: dict[str, Any], scenario_factory: Callable[..., Scenario]
) -> None:
    profile = {}
    if method == "session":
        # A slot for each statement that does not end, and some.
        profile["spark_config"] = {**profile_target["spark_config"], "spark.master": "local[6]"}
    scenario = scenario_factory(**profile)
    points = POINTS if method == "session" else {name: POINTS[name] for name in ON_A_SERVER}
    for name, (_, config, rows, *_) in points.items():
        if rows is not None:
            scenario.model(OLD, name, **{**config, "post_hook": None})
    scenario.run("--threads", "8")
    for name, (step, config, *_) in points.items():
        scenario.model(ENDLESS if step in RUNNING else NEW, name, **config)
    steps = {name: point[0] for name, point in points.items()}
    answer = interrupt(scenario, steps, "run", "--threads", str(len(steps)))

    assert answer["exception"] == "KeyboardInterrupt"
    names = sorted(name for name, point in points.items() if point[2] is not None)
    assert scenario.tables() == names
    assert {name: scenario.rows(name) for name in names} == {name: points[name][2] for name in names}
    assert {ref for name in names for ref in scenario.table(name).metadata.refs} == {"main"}
    assert {name: found[0] for name, found in answer["nodes"].items()} == {n: p[3] for n, p in points.items()}
    for name, (*_, beginning, end) in points.items():
        text = answer["nodes"][name][1].split("The run was cancelled. ", 1)[-1]
        assert text.startswith(beginning), (name, text)
        assert text.endswith(end.format(scenario.relation(name))), (name, text)

    for name, (_, config, *_) in points.items():
        scenario.model(NEW, name, **config)
    scenario.run("--threads", "8")
    made = [(2, "B", 7), (3, "C", 8)]
    expected = {name: made if name in ("t_rebuilt", "t_first") else NEW_ROWS for name in points}
    assert {name: scenario.rows(name) for name in points} == expected


def test_fail_fast_and_retry(scenario: Scenario) -> None:
    """What runs beside a node that fails is cancelled; the project's hooks and the next commands are not."""
    scenario.model(OLD, "slow")
    scenario.run()
    ended = scenario.relation("ended")
    scenario.write_project(
        **{"on-run-end": f"create or replace table {ended} using iceberg as select 1 as id"}
    )
    scenario.model(ENDLESS, "slow")
    scenario.model("select cast(raise_error('no') as int) as id", "broken")
    started = time.monotonic()
    run = scenario.fail("--fail-fast", "--threads", "2")
    assert time.monotonic() - started < 120
    assert "CANCEL" in run.log
    assert scenario.rows("slow") == OLD_ROWS
    assert scenario.rows("ended") == [(1,)]
    assert scenario.tables() == ["ended", "slow"]
    assert set(scenario.table("slow").metadata.refs) == {"main"}

    scenario.model(NEW, "slow")
    scenario.model(OLD, "broken")
    again = scenario.dbt("retry")
    assert again.success, again.message
    assert scenario.rows("slow") == NEW_ROWS
    assert scenario.rows("broken") == OLD_ROWS
