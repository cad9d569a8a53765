"""What a command shows, in a process of its own: as a person sees it, and a program that reads stdout."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import yaml

from tests.functional.harness import Scenario

# Several commands share one Spark, which takes most of the time; each is marked, with its exit code.
COMMANDS = """\
import os, sys
from dbt.cli.main import cli
for command in {commands!r}:
    try:
        cli([*command, "--project-dir", {folder!r}, "--profiles-dir", {folder!r}])
        code = 0
    except SystemExit as exc:
        code = exc.code
    for stream in (sys.stdout, sys.stderr):
        print("COMMAND ENDS", code, file=stream, flush=True)
"""
SHOWN = {"s": '{"code": "0150", "city": "Oslo"}', "m": '{"k": [{"d": "2024-01-31", "n": 1.50}]}'}


def commands(scenario: Scenario, *given: list[str]) -> list[tuple[int, str, str]]:
    """Run commands of dbt in a process; return the exit code, stdout and stderr of each."""
    code = COMMANDS.format(commands=list(given), folder=str(scenario.folder))
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[3]), "NO_COLOR": "1"}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, cwd=scenario.folder
    )
    assert done.returncode == 0, done.stdout + done.stderr
    streams = [stream.split("COMMAND ENDS ") for stream in (done.stdout, done.stderr)]
    codes = [int(part.split("\n")[0]) for part in streams[0][1:]]
    outs, errs = (["".join(p.partition("\n")[2]) if n else p for n, p in enumerate(s)] for s in streams)
    return list(zip(codes, outs, errs, strict=False))


def logged_data(out: str) -> list[dict[str, Any]]:
    """Return the lines of a JSON log whose text is JSON itself."""
    texts = [json.loads(line)["info"]["msg"] for line in out.splitlines()]
    return [json.loads(text) for text in texts if text.startswith("{")]


def check_batches(scenario: Scenario, out: str) -> None:
    """Each batch tells what it has done, and the model their sum; dbt's own file has the windows only."""
    *batches, total = logged_data(out)
    responses = [batch["adapter_response"] for batch in batches]
    assert [r["rows_inserted"] for r in responses] == [1, 1]
    assert responses[-1]["snapshot_id"] == scenario.at("days")["snapshot_id"]
    whole = total.pop("adapter_response")
    assert total == {"unique_id": "model.case.days", "batches": 2}
    assert {name: value for name, value in whole.items() if value != []} == {
        "rows_affected": 2,
        "rows_inserted": 2,
        "columns_renamed": {},
    }
    *_, result = json.loads((scenario.folder / "target" / "run_results.json").read_text())["results"]
    assert result["unique_id"] == "model.case.days"
    assert result["message"] == "SUCCESS"
    assert result["adapter_response"] == {}
    assert [len(result["batch_results"][kind]) for kind in ("successful", "failed")] == [2, 0]


def test_a_command_shows_what_dbt_says_and_nothing_of_java(scenario: Scenario, method: str) -> None:
    scenario.model("select 1 as id, 'a' as v")
    view: dict[str, Any] = {"unique_key": None, "on_schema_change": None, "materialized": "view"}
    scenario.model(
        "select named_struct('code', '0150', 'city', 'Oslo') as s,\n"
        "  map('k', array(named_struct('d', date'2024-01-31', 'n', 1.50))) as m",
        "nested",
        **view,
    )
    scenario.model("select id\nfrom {{ ref('t') }}\nwhere nope = 1", "no_column", **view)
    fails = "select id, cast(raise_error('bad row') as int) as n\nfrom {{ ref('t') }}"
    scenario.model(fails, "no_number", materialized="table", unique_key=None, on_schema_change=None)
    timed = {"incremental_strategy": "microbatch", "event_time": "at", "batch_size": "day"}
    scenario.model(
        "select id, timestamp'2024-01-31 12:00:00' + make_dt_interval(id) as at from range(2)",
        "src",
        event_time="at",
        **view,
    )
    scenario.model("select * from {{ ref('src') }}", "days", unique_key=None, begin="2024-01-31", **timed)
    profiles = scenario.folder / "profiles.yml"
    profile = yaml.safe_load(profiles.read_text())
    outputs = profile["case"]["outputs"]
    outputs["wrong"] = {**outputs["t"], "poll_interval": 0}
    profiles.write_text(yaml.safe_dump(profile))
    scenario.model("select 1 as _file", "refused")
    window = ["--event-time-start", "2024-01-31", "--event-time-end", "2024-02-02"]
    plan = ["--vars", "sparkevolve_plan_only: true", "-s", "t"]
    found = commands(
        scenario,
        ["--no-use-colors", "run", "-s", "t"],
        ["--quiet", "run", "-s", "t"],
        ["--log-format", "json", "run", "-s", "t"],
        ["--no-use-colors", "run", "-s", "no_column", "no_number"],
        ["--quiet", "show", "-s", "nested", "--output", "json"],
        ["--quiet", "run", *plan],
        ["--log-format", "json", "--write-json", "run", "-s", "+days", *window],
        ["--quiet", "run-operation", "schema_history", "--args", "{model: nobody}"],
        ["--quiet", "run", "-s", "refused", *plan[:2]],
        ["--quiet", "run", "--target", "wrong"],
        ["--quiet", "run", "--no-such-option"],
    )
    # Of wrong SQL, of a run-operation and a plan that are refused; of a profile and a call that are wrong.
    assert [code for code, *_ in found] == [0, 0, 0, 1, 0, 0, 0, 1, 1, 2, 2]
    # Of Java nothing, nor of Spark but for its start and what is wrong.
    assert [err for _, _, err in found[:-1]] == [""] * (len(found) - 1)
    assert "No such option" in found[-1][2]
    run, quiet, logged, errors, show, planned, batches, *_ = (out for _, out, _ in found)
    starting = [line for line in run.splitlines() if "Starting Spark " in line]
    assert len(starting) == (1 if method == "session" else 0)
    assert quiet == ""
    (data,) = logged_data(logged)
    assert data["adapter_response"]["rows_inserted"] == 1
    check_batches(scenario, batches)
    assert "\n  == SQL" in errors
    # The line of the model, and a marker below what is wrong.
    lines = [line.strip("\n") for line in errors.splitlines()]
    at = next(number for number, line in enumerate(lines) if "where nope = 1" in line)
    assert lines[at + 1].index("^") == lines[at].index("nope")
    # Of a task that fails, what it says.
    assert "bad row" in errors
    assert "at org.apache" not in errors
    (row,) = json.loads(show)["show"]
    # A Thrift server makes texts of its own of nested values.
    assert row == SHOWN if method == "session" else '"city":"Oslo"' in row["s"]
    assert planned.splitlines()[:2] == [scenario.relation(), "  change     none"]
