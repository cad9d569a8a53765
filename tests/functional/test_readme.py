"""The examples of the documentation, run as they stand there; what they show is what dbt prints."""

import json
import re
import shlex
from datetime import datetime
from pathlib import Path
from typing import Any

from tests.functional.harness import Scenario

ROOT = Path(__file__).parents[2]

# What differs in each run: times, and dbt's id of a run.
VARYING = [
    (r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\+00:00", "<time>"),
    (r"\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b", "<run>"),
]


def blocks(text: str, language: str) -> list[str]:
    """Return the code of a page that is in one language."""
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)


def masked(text: str) -> list[str]:
    """Return the lines of a text, without what differs in each run."""
    for pattern, name in VARYING:
        text = re.sub(pattern, name, text)
    return [line.rstrip() for line in text.splitlines()]


def commands(block: str) -> list[tuple[str, str]]:
    """Return the commands of a console, each with what it shows."""
    return re.findall(r"^\$ (.*)\n((?:[^$\n].*\n)*)", block, re.MULTILINE)


def page_of(scenario: Scenario) -> dict[str, Any]:
    """Return what the page of schemas says of the only table."""
    text = (scenario.folder / "target" / "sparkevolve_schema.html").read_text(encoding="utf-8")
    data = re.search(r'<script id="data" type="application/json">(.*?)</script>', text)
    assert data is not None
    (model,) = json.loads(data[1])["models"]
    return dict(model)


def follow(scenario: Scenario, page: str) -> int:
    """Write the models and run the commands of a page; return how many lines it shows of what is printed."""
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    shown = 0
    for language, code in re.findall(r"^```(sql|console)\n(.*?)^```$", text, re.DOTALL | re.MULTILINE):
        if language == "sql":
            scenario.file("models/orders.sql", code)
            continue
        for command, output in commands(code):
            program, *arguments = shlex.split(command)
            assert program == "dbt"
            run = scenario.dbt(*arguments)
            assert run.success, run.message or run.log
            # Between these lines are others, of dbt's own.
            said = iter(masked(run.log.replace(scenario.schema, "analytics")))
            assert [line for line in masked(output) if line not in said] == []
            shown += len(output.splitlines())
    return shown


def test_the_longer_example(scenario: Scenario) -> None:
    shown = follow(scenario, "tutorial.md")
    assert shown > 20
    assert scenario.rows("orders") == [
        (1, "Ann", 30, "gift", None),
        (2, "Bob", 45000000000, None, "web"),
        (3, "Cid", 80, None, "shop"),
    ]
    shown_on_page = page_of(scenario)
    assert [(lane["name"], [mark[1] for mark in lane["marks"]]) for lane in shown_on_page["lanes"]] == [
        ("order_id", ["created"]),
        ("customer", ["created"]),
        ("amount", ["created", "widened"]),
        ("note", ["created", "padded"]),
        ("channel", ["added"]),
    ]
    assert [version["by"] for version in shown_on_page["versions"]] == ["run", "run"]
    table = scenario.table("orders")
    first = table.snapshot_by_id(scenario.snapshots("orders")[0])
    assert first is not None
    before = {task.file.file_path for task in table.scan(snapshot_id=first.snapshot_id).plan_files()}
    assert before <= {task.file.file_path for task in table.scan().plan_files()}
    ids = scenario.field_ids("orders")
    assert follow(scenario, "rename.md") == 2
    assert scenario.field_ids("orders") == {("client" if n == "customer" else n): i for n, i in ids.items()}
    assert scenario.rows("orders")[1:] == [(2, "Bob", 45000000000, None, "web"), (3, "Cid", 80, None, "shop")]


def test_the_example_of_a_microbatch(scenario: Scenario) -> None:
    page = (ROOT / "docs" / "microbatch.md").read_text(encoding="utf-8")
    source, model = blocks(page, "sql")
    (command,) = blocks(page, "sh")
    scenario.file("models/raw_orders.sql", source)
    scenario.file("models/orders_by_day.sql", model)
    scenario.run("--event-time-start", "2024-01-01", "--event-time-end", "2024-01-04")
    scenario.file("models/raw_orders.sql", source.replace("45", "46").replace("union all select 3", "-- "))
    program, *arguments = shlex.split(command)
    assert program == "dbt"
    assert scenario.dbt(*arguments).success
    rows = [(order, at.replace(tzinfo=None), amount) for order, at, amount in scenario.rows("orders_by_day")]
    assert rows == [(1, datetime(2024, 1, 1, 9), 30), (2, datetime(2024, 1, 2, 10), 46)]
