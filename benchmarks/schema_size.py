"""What a schema of many tables costs against one of few: what is read and run, and seconds as ratios.

    python benchmarks/schema_size.py [--few 10] [--many 1000] [--rounds 3]

PyIceberg makes the tables, and Spark none of them. Then dbt runs in this process, in one Spark session:
`run` of one model, `docs generate --select` of one, and `docs generate` of all. Seconds are medians.
dbt itself parses all models first, and `docs generate` compiles those that it shows.
"""

import argparse
import os
import statistics
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pyarrow as pa
import yaml
from dbt.cli.main import dbtRunner
from dbt_common.events.base_types import EventMsg
from pyiceberg.catalog import Catalog, load_catalog
from pyiceberg.catalog.sql import SqlCatalog

ROWS = pa.table({"id": pa.array([1], pa.int32()), "name": ["one"]})
COUNTED = ("load_table", "list_tables", "list_namespaces", "load_namespace_properties", "namespace_exists")


class Schema:
    """A dbt project with one schema, all of whose tables are its models'."""

    def __init__(self, folder: Path, tables: int) -> None:
        """Make the tables and the project."""
        self.tables = tables
        self._folder = folder / f"of_{tables}"
        (self._folder / "models").mkdir(parents=True)
        properties = {
            "type": "sql",
            "uri": f"sqlite:///{self._folder}/catalog.db",
            "warehouse": f"file://{self._folder}/warehouse",
        }
        # Rows of a SQL catalog are kept under its name.
        self._make(load_catalog(f"lake_{tables}", **properties), tables)
        target = {
            "type": "sparkevolve",
            "method": "session",
            "schema": "shop",
            "catalog": f"lake_{tables}",
            "catalog_properties": properties,
            "spark_config": {"spark.sql.shuffle.partitions": "1"},
            "threads": 4,
        }
        profile = {"bench": {"target": "t", "outputs": {"t": target}}}
        (self._folder / "profiles.yml").write_text(yaml.safe_dump(profile))
        flags = {"send_anonymous_usage_stats": False}
        project = {"name": "bench", "version": "1.0.0", "profile": "bench", "flags": flags}
        (self._folder / "dbt_project.yml").write_text(yaml.safe_dump(project))

    def _make(self, catalog: Catalog, tables: int) -> None:
        config = "{{ config(materialized='incremental', on_schema_change='append_new_columns_preserve') }}"
        catalog.create_namespace("shop")
        for number in range(tables):
            name = f"t{number:04}"
            catalog.create_table(f"shop.{name}", ROWS.schema).append(ROWS)
            (self._folder / "models" / f"{name}.sql").write_text(f"{config}\nselect 2 as id, 'two' as name\n")

    def command(self, *arguments: str) -> Counter[str]:
        """Run dbt; return what was asked of the catalog and of Spark, and the seconds."""
        counts: Counter[str] = Counter()

        def note(event: EventMsg) -> None:
            counts["statements"] += event.info.name == "SQLQuery"

        places = ["--project-dir", str(self._folder), "--profiles-dir", str(self._folder)]
        os.chdir(self._folder)
        with counted(counts):
            began = time.monotonic()
            result = dbtRunner(callbacks=[note]).invoke([*arguments, *places, "--log-level", "none"])
            counts["milliseconds"] = round(1000 * (time.monotonic() - began))
        if not result.success:
            raise RuntimeError(f"{arguments}: {result.exception or result.result}")
        return counts


@contextmanager
def counted(counts: Counter[str]) -> Iterator[None]:
    """Count what PyIceberg is asked."""

    def counting(name: str) -> Any:
        original = getattr(SqlCatalog, name)

        def call(*arguments: Any, **named: Any) -> Any:
            counts["loads" if name == "load_table" else "lists"] += 1
            return original(*arguments, **named)

        return call

    patches = [patch.object(SqlCatalog, name, counting(name)) for name in COUNTED]
    for each in patches:
        each.start()
    try:
        yield
    finally:
        for each in patches:
            each.stop()


COMMANDS = {
    "`dbt run --select` one": ("run", "--select", "t0003"),
    "`dbt docs generate --select` one": ("docs", "generate", "--select", "t0003"),
    "`dbt docs generate`": ("docs", "generate"),
    "`dbt parse`, which all of them do first": ("parse", "--no-partial-parse"),
}


def main() -> None:
    """Print the table."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--few", type=int, default=10)
    options.add_argument("--many", type=int, default=1000)
    options.add_argument("--rounds", type=int, default=3)
    given = options.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        schemas = [Schema(Path(folder), tables) for tables in (given.few, given.many)]
        for schema in schemas:
            # Java and dbt compile what they run.
            schema.command("run", "--select", "t0003")
        print("| command | tables | loads | lists | statements | seconds | ratio of seconds |")
        print("|---|---|---|---|---|---|---|")
        for label, arguments in COMMANDS.items():
            rounds = [[schema.command(*arguments) for schema in schemas] for _ in range(given.rounds)]
            base = 0.0
            for place, schema in enumerate(schemas):
                found = [each[place] for each in rounds]
                seconds = statistics.median(each["milliseconds"] for each in found) / 1000
                base = base or seconds
                most = {key: max(each[key] for each in found) for key in ("loads", "lists", "statements")}
                numbers = " | ".join(str(value) for value in most.values())
                print(f"| {label} | {schema.tables:,} | {numbers} | {seconds:.2f} | {seconds / base:.2f} |")


if __name__ == "__main__":
    main()
