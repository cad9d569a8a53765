"""Ctrl-C, SIGTERM, `--fail-fast`: what had not been published is not published, and nothing is left over."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.functional.harness import Scenario
from tests.functional.interrupted_main import SLOW_NULL

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


def start(scenario: Scenario, steps: dict[str, str], signals: str, *arguments: str) -> Any:
    return subprocess.run(
        [sys.executable, "-m", "tests.functional.interrupted", json.dumps(steps), signals, *arguments],
        cwd=scenario.folder,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])},
        capture_output=True,
        text=True,
        timeout=480,
        check=False,
    )


def interrupt(
    scenario: Scenario, steps: dict[str, str], *arguments: str, signals: str = "SIGINT"
) -> dict[str, Any]:
    done = start(scenario, steps, signals, *arguments)
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


SNAPSHOTS = ("snap_staged", "snap_publishing")
OLD_SEED, NEW_SEED = "id,v\n1,a\n", "id,v\n2,b\n3,c\n4,d\n"


def write_nodes(scenario: Scenario, rows: str, seed: str, *models: str) -> None:
    """Write a seed, two snapshots of a table, and incremental models."""
    scenario.model(rows, "src", materialized="table", unique_key=None)
    for name in models:
        scenario.model(rows, name)
    config = {"strategy": "check", "check_cols": ["v"], "unique_key": "id", "schema": scenario.schema}
    scenario.file(
        "macros/schema.sql", "{% macro generate_schema_name(n, node) %}{{ target.schema }}{% endmacro %}"
    )
    scenario.file(
        "snapshots/all.yml",
        json.dumps(
            {"snapshots": [{"name": n, "relation": "ref('src')", "config": config} for n in SNAPSHOTS]}
        ),
    )
    scenario.file("seeds/seed.csv", seed)


def versions(scenario: Scenario, name: str) -> list[tuple[Any, ...]]:
    """The rows of a snapshot, and whether each is its row's current version."""
    rows = scenario.table(name).scan().to_arrow().to_pylist()
    return sorted((row["id"], row["v"], row["dbt_valid_to"] is None) for row in rows)


def test_ctrl_c_in_a_full_refresh_a_snapshot_and_a_seed(scenario: Scenario) -> None:
    models = ("full_staged", "full_publishing")
    write_nodes(scenario, OLD, OLD_SEED, *models)
    assert scenario.dbt("build", "--threads", "8").success
    names = sorted([*models, *SNAPSHOTS, "seed", "src"])
    before = {name: scenario.snapshots(name) for name in names}
    write_nodes(scenario, NEW, NEW_SEED, *models)
    steps = {name: name.split("_")[1] for name in (*models, *SNAPSHOTS)}
    command = ("build", "--full-refresh", "--threads", "8")
    answer = interrupt(scenario, {**steps, "seed": "filled"}, *command)

    assert answer["exception"] == "KeyboardInterrupt"
    statuses = {name: status for name, (status, _) in answer["nodes"].items()}
    assert statuses == {**dict.fromkeys((*steps, "seed"), "error"), "src": "success"}
    for name, step in steps.items():
        relation = scenario.relation(name)
        undone = {
            "staged": f"The columns of {relation} were not changed",
            "publishing": "The batch was not published",
        }
        said = f"The run was cancelled. {undone[step]}. {AS_THEY_WERE.format(relation)}"
        assert answer["nodes"][name][1].endswith(said), answer["nodes"][name][1]
    sent = f"This statement was not sent: insert into {scenario.relation('seed__dbt_tmp_')[:-1]}"
    assert f"The run was cancelled. {sent}" in answer["nodes"]["seed"][1], answer["nodes"]["seed"][1]
    assert scenario.tables() == names
    assert {ref for name in names for ref in scenario.table(name).metadata.refs} == {"main"}
    assert scenario.rows("full_staged") == OLD_ROWS
    assert scenario.rows("full_publishing") == EVOLVED_ROWS
    assert [versions(scenario, name) for name in SNAPSHOTS] == [[(1, "a", True), (2, "b", True)]] * 2
    assert scenario.rows("seed") == [(1, "a")]
    assert {name: scenario.table(name).current_snapshot().snapshot_id for name in names if name != "src"} == {
        name: ids[-1] for name, ids in before.items() if name != "src"
    }

    assert scenario.dbt(*command).success
    made = [(2, "B", None, 7), (3, "C", None, 8)]
    assert {name: scenario.rows(name) for name in models} == dict.fromkeys(models, made)
    taken = [(1, "a", True), (2, "B", True), (2, "b", False), (3, "C", True)]
    assert [versions(scenario, name) for name in SNAPSHOTS] == [taken] * 2
    assert scenario.rows("seed") == [(2, "b"), (3, "c"), (4, "d")]
    assert scenario.tables() == names


def test_a_process_that_ends_before_its_nodes(scenario: Scenario) -> None:
    """By SIGTERM, or a second Ctrl-C: readers see the old rows, and the next run removes what was left."""
    write_nodes(scenario, OLD, OLD_SEED, "t_publishing")
    assert scenario.dbt("build", "--threads", "8").success
    names = sorted(["t_publishing", *SNAPSHOTS, "seed", "src"])
    write_nodes(scenario, NEW, NEW_SEED, "t_publishing")
    steps = {name: name.split("_")[1] for name in ("t_publishing", *SNAPSHOTS)} | {"seed": "filled"}
    for signals in ("SIGTERM", "SIGINT+SIGINT"):
        done = start(scenario, steps, signals, "build", "--threads", "8")
        if signals == "SIGTERM":
            assert done.returncode == -signal.SIGTERM, done.stdout + done.stderr
        else:
            assert json.loads(done.stdout.splitlines()[-1])["exception"] == "KeyboardInterrupt", done.stdout
        assert scenario.rows("t_publishing") == EVOLVED_ROWS
        assert [versions(scenario, name) for name in SNAPSHOTS] == [[(1, "a", True), (2, "b", True)]] * 2
        assert scenario.rows("seed") == [(1, "a")]
        # Of this process alone: what the one before had left is gone.
        left = sorted(name.split("__dbt_tmp_")[0] for name in scenario.tables() if name not in names)
        assert left == sorted(steps)
        refs = {name: len(scenario.table(name).metadata.refs) for name in names}
        assert refs == {**dict.fromkeys(names, 1), "t_publishing": 2, "snap_publishing": 2}

    assert scenario.dbt("build", "--threads", "8").success
    assert scenario.rows("t_publishing") == NEW_ROWS
    taken = [(1, "a", True), (2, "B", True), (2, "b", False), (3, "C", True)]
    assert [versions(scenario, name) for name in SNAPSHOTS] == [taken] * 2
    assert scenario.rows("seed") == [(2, "b"), (3, "c"), (4, "d")]
    assert scenario.tables() == names
    assert {ref for name in names for ref in scenario.table(name).metadata.refs} == {"main"}


def test_ctrl_c_in_an_operation_and_in_a_hook(scenario: Scenario, method: str) -> None:
    """What dbt's main thread does is stopped as nodes are, and Spark answers the next question."""
    routed = {"on_bad_rows": "dead_letter"}
    scenario.model("select id, cast(null as string) as s from range(1, 6)")
    scenario.model("select 7 as id, 1 as n", "d", **routed)
    scenario.run()
    scenario.model("select * from values (1, '1'), (2, 'x') as v(id, n)", "d", **routed)
    scenario.run("-s", "d")
    mended = """base64(encode('{"id":2,"n":2}', 'utf-8'))"""
    scenario.sql(f"update {scenario.relation('d_dlt')} set payload = {mended}")
    endless = "select reflect('java.lang.Thread', 'sleep', 600000L) as v from range(1)"
    macro = f'{{% macro endless() %}}{{% do run_query("{endless}") %}}{{% endmacro %}}'
    scenario.file("macros/endless.sql", macro)
    scenario.write_project(**{"on-run-start": f"{{{{ \"{endless}\" if var('endless', false) else '' }}}}"})
    slow = f"coalesce({SLOW_NULL}, 's3')" if method == "session" else "'s3'"
    value = f"if(id = 3, {slow}, concat('s', id))"
    args = json.dumps({"model": "t", "column": "s", "value": value, "rows_per_batch": 2})
    backfill = ["run-operation", "backfill_column", "--args", args]
    replay = ["run-operation", "replay_dead_letters", "--args", "{model: d}"]
    hook = ["run", "--vars", "{endless: true}"]
    stopped = "The run was cancelled. This statement was stopped while it ran: "
    done = (
        "What the backfill has done before (1 batch, 2 rows) is visible, and stays: the same command goes on "
        "after it."
    )
    unpublished = "The run was cancelled. The batch was not published."
    sent, kept = re.escape(endless.lower()), "What was committed before stays."
    # A point, the command, and what it ends with: an exception, the beginning and the end of the text.
    cases: list[tuple[str, int, list[str], str | None, str, str]] = [
        ("publishing", 2, backfill, None, unpublished, done),
        ("publishing", 1, replay, None, unpublished, "No dead letter was loaded."),
        (sent, 1, ["run-operation", "endless"], None, stopped + endless, kept),
        (sent, 1, hook, "KeyboardInterrupt", stopped + endless, kept),
    ]
    if method == "session":
        cases.insert(1, ("^update ", 1, backfill, None, f"{stopped}UPDATE ", done))
    commands = [*(case[:3] for case in cases), ("no such point", 1, backfill)]
    ran = subprocess.run(
        [sys.executable, "-m", "tests.functional.interrupted_main", json.dumps(commands)],
        cwd=scenario.folder,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])},
        capture_output=True,
        text=True,
        timeout=480,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    *answers, last = json.loads(ran.stdout.splitlines()[-1])
    for (*_, kind, beginning, end), (exception, is_success, errors) in zip(cases, answers, strict=True):
        assert (exception, is_success) == (kind, False), errors
        text = errors[errors.find("The run was cancelled.") :].rstrip()
        assert text.startswith(beginning), errors
        assert text.endswith(end), errors
    assert last == [None, True, ""]
    for raw in ("reentrant", "while sending command", "memory"):
        assert raw not in ran.stdout + ran.stderr
    assert scenario.rows() == [(n, f"s{n}") for n in range(1, 6)]
    assert scenario.rows("d") == [(1, 1), (7, 1)]
    assert len(scenario.rows("d_dlt")) == 1
    assert scenario.tables() == ["d", "d_dlt", "t"]
    assert {ref for name in scenario.tables() for ref in scenario.table(name).metadata.refs} == {"main"}


def test_fail_fast_and_retry(scenario: Scenario) -> None:
    """What runs beside a node that fails is cancelled; the project's hooks and the next commands are not."""
    scenario.writes_artifacts = True
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
