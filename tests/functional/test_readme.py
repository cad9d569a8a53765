"""The examples of the documentation, run as they stand there; what they show is what dbt prints."""

import json
import os
import re
import shlex
import subprocess
from datetime import datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import yaml
from pyiceberg.catalog import load_catalog
from pyiceberg.table import Table

from tests.functional.harness import Scenario

ROOT = Path(__file__).parents[2]

# Which pages have commands in listings, and what runs all of them; `test_docs.py` looks for others.
# What is in a sentence is looked at for its names and arguments only.
RUN_BY = {
    "README.md": "scripts/readme_commands.py",
    "backfill.md": "test_the_commands_of_the_other_pages",
    "dead-letters.md": "test_the_commands_of_the_other_pages",
    "laptop-to-cluster.md": "test_the_move_of_a_table_to_another_catalog",
    "maintenance.md": "test_the_commands_of_the_other_pages",
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


def run_listings(scenario: Scenario, page: str, schema: str = "shop") -> list[str]:
    """Run the commands of a page that it shows without what they print; return that of dbt's."""
    text = re.sub(
        rf"\b{schema}\b(?=[.\"])", scenario.schema, (ROOT / "docs" / page).read_text(encoding="utf-8")
    )
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


def shown_rows(log: str) -> list[dict[str, Any]]:
    """Return the rows that `dbt show --output json` has printed."""
    found = re.search(r"^\{\n.*^\}$", log, re.DOTALL | re.MULTILINE)
    assert found is not None, log
    return list(json.loads(found[0])["show"])


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
    folder = Path(urlsplit(scenario.table("orders").location()).path)
    (folder / "data" / "left-behind.parquet").touch()
    for file in (folder / "data").rglob("*"):
        os.utime(file, (0, 0))
    rewritten, expired, orphans, files = (shown_rows(log) for log in run_listings(scenario, "maintenance.md"))
    assert rewritten[0]["failed_data_files_count"] == expired[0]["deleted_data_files_count"] == 0
    # Neither side's files are taken for others', however they write a path, and a dry run takes none.
    assert [row["orphan_file_location"] for row in orphans] == [f"file:{folder}/data/left-behind.parquet"]
    assert (folder / "data" / "left-behind.parquet").exists()
    assert files[0]["files"] == len(list(scenario.table("orders").scan().plan_files()))
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


def second_catalog(folder: Path) -> dict[str, str]:
    """Return the properties of a catalog in a file beside the one of these tests."""
    return {"type": "sql", "uri": f"sqlite:///{folder}/catalog.db", "warehouse": f"file://{folder}/warehouse"}


def into_profile(scenario: Scenario, **settings: Any) -> None:
    """Write other settings into the profile."""
    file = scenario.folder / "profiles.yml"
    profile = yaml.safe_load(file.read_text())
    profile["case"]["outputs"]["t"].update(settings)
    file.write_text(yaml.safe_dump(profile))


def test_the_move_of_a_table_to_another_catalog(scenario: Scenario, tmp_path: Path) -> None:
    shared = second_catalog(tmp_path / "second")
    config = {"partition_by": "id", "tblproperties": {"made.by": "test"}, "persist_docs": {"columns": True}}
    scenario.file("models/models.yml", "models: [{name: orders, columns: [{name: v, description: a value}]}]")
    scenario.model("select 1 as id, 'x' as gone", "orders", **config)
    scenario.run()
    scenario.sql(f"alter table {scenario.relation('orders')} drop column gone")
    scenario.model("select id, id * 10 as v, 'a' as note from values (1), (2) as t(id)", "orders", **config)
    scenario.run()
    assert scenario.field_ids("orders") == {"id": 1, "v": 3, "note": 4}
    into_profile(scenario, catalogs={"shared": shared})
    run_listings(scenario, "laptop-to-cluster.md", "analytics")

    def there() -> Table:
        return load_catalog("shared", **shared).load_table((scenario.schema, "orders"))

    assert not there().spec().fields
    assert "made.by" not in there().properties
    assert [(field.name, field.field_id) for field in there().schema().fields] == [
        ("id", 1),
        ("v", 2),
        ("note", 3),
    ]
    assert [field.doc for field in there().schema().fields] == [None, "a value", None]
    into_profile(scenario, catalog="shared", catalog_properties=shared, catalogs={})
    scenario.model("select 2 as id, 21 as v, 'web' as channel", "orders")
    scenario.run()
    rows = there().scan().to_arrow().sort_by("id").to_pylist()
    assert [tuple(row.values()) for row in rows] == [(1, 10, "a", None), (2, 21, None, "web")]
    assert scenario.rows("orders") == [(1, 10, "a"), (2, 20, "a")]
