"""The examples of the documentation, run as they stand there; what they show is what dbt prints."""

import json
import re
import shlex
import subprocess
from datetime import datetime
from pathlib import Path
from typing import Any

from tests.functional.harness import Scenario

ROOT = Path(__file__).parents[2]

# Which pages have commands in listings, and what runs all of them; `test_docs.py` looks for others.
# What is in a sentence is looked at for its names and arguments only.
RUN_BY = {
    "README.md": "scripts/readme_commands.py",
    "backfill.md": "test_the_commands_of_the_other_pages",
    "dead-letters.md": "test_the_commands_of_the_other_pages",
    "microbatch.md": "test_the_example_of_a_microbatch",
    "plan.md": "test_the_commands_of_the_other_pages",
    "rename.md": "test_the_longer_example",
    "restore.md": "test_the_commands_of_the_other_pages",
    "schema-page.md": "test_the_commands_of_the_other_pages",
    "statements.md": "test_the_commands_of_the_other_pages",
    "tutorial.md": "test_the_longer_example",
    "versions.md": "test_the_commands_of_the_other_pages",
}
# What differs in each run: times, and dbt's id of a run.
VARYING = [
    (r"\b\d+\.\d s\b", "<seconds>"),
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


def page_data(file: Path) -> list[dict[str, Any]]:
    """Return what a page of schemas says of its tables."""
    data = re.search(
        r'<script id="data" type="application/json">(.*?)</script>', file.read_text(encoding="utf-8")
    )
    assert data is not None
    return list(json.loads(data[1])["models"])


def page_of(scenario: Scenario) -> dict[str, Any]:
    """Return what the page of schemas says of the only table."""
    (model,) = page_data(scenario.folder / "target" / "sparkevolve_schema.html")
    return model


def follow(scenario: Scenario, page: str, schema: str = "analytics") -> int:
    """Write the models and run the commands of a page; return how many lines it shows of what is printed.

    Args:
        scenario: where.
        page: its name.
        schema: what the schema is called there.
    """
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
            said = iter(masked(run.log.replace(scenario.schema, schema)))
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


def run_listings(scenario: Scenario, page: str) -> list[str]:
    """Run the commands of a page that it shows without what they print; return that of dbt's."""
    text = (ROOT / "docs" / page).read_text(encoding="utf-8").replace("shop.", f"{scenario.schema}.")
    printed = []
    for line in "".join(blocks(text, "sh")).splitlines():
        program, *arguments = shlex.split(line, comments=True)
        if program == "dbt":
            run = scenario.dbt(*arguments)
            assert run.success, run.message or run.log
            printed.append(run.log)
        else:
            subprocess.run(line, shell=True, check=True, cwd=scenario.folder)
    return printed


def test_the_commands_of_the_other_pages(scenario: Scenario) -> None:
    """They are about a table `orders`; each page's part begins with what the one before has left."""
    config = {
        "on_bad_rows": "dead_letter",
        "audits": [{"sql": "coalesce(amount, 0) >= 0", "severity": "row"}],
    }
    rows = ", ".join(f"({n}, {n % 2 == 0}, {-1 if n == 6 else n}, 'n{n}')" for n in range(1, 7))
    status = "cast(null as string) as status"
    scenario.model(f"select *, {status} from values {rows} as t(id, paid, amount, note)", "orders", **config)
    scenario.model("select 1 as id", "customers")
    scenario.run()

    def column(name: str) -> list[object]:
        return scenario.table("orders").scan().to_arrow().sort_by("id")[name].to_pylist()

    texts = f"select id, paid, amount, note, {status} from values (1, '1'), (7, 'n/a') as t(id, amount)"
    scenario.model(
        texts.replace("paid", "id = 0 as paid").replace("note", "'n1' as note"), "orders", **config
    )
    scenario.run("--select", "orders")
    shown, *_, loaded = run_listings(scenario, "dead-letters.md")
    for text in (r"{\"id\":7}", r"\"amount\":\"n/a\"", "the value does not convert to int without loss"):
        assert text in shown
    assert "1 dead letter of" in loaded
    assert [row[0] for row in scenario.rows("orders_dlt")] == ['{"id":6}']
    assert column("amount") == [1, 2, 3, 4, 5, None]
    scenario.sql(f"delete from {scenario.relation('orders')} where id = 7")
    assert column("id") == [1, 2, 3, 4, 5]
    *_, snapshots = run_listings(scenario, "statements.md")
    assert '"operation": "append"' in snapshots
    assert scenario.table("orders").properties["commit.retry.num-retries"] == "10"
    assert follow(scenario, "backfill.md", "shop") == 12
    assert column("status") == ["s1", "s2", "s3", "s4", "s5"]
    scenario.sql(f"update {scenario.relation('orders')} set status = null where id < 3")
    run_listings(scenario, "backfill.md")
    assert column("status") == ["open", "done", "s3", "s4", "s5"]
    scenario.sql(f"alter table {scenario.relation('orders')} drop column note")
    run_listings(scenario, "restore.md")
    assert column("note") == ["n1", "n2", "n3", "n4", "n5"]
    run_listings(scenario, "versions.md")
    run_listings(scenario, "plan.md")
    run_listings(scenario, "schema-page.md")
    page = scenario.folder / "public" / "schemas.html"
    assert {model["name"] for model in page_data(page)} == {"orders", "customers"}
