"""Measure what of a command's start is whose: Python's and dbt's, ours, PyIceberg's, and Spark's.

    python benchmarks/startup.py [--rounds 3]

Each round starts two processes, one after the other: one goes the way of a dbt command with `method: session`
up to the first answers of Spark, the other starts PySpark by hand with the same jars and asks it the same. A
figure is a median in seconds; the ratios say how much of the way is not Spark's.
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

Result = TypeVar("Result")
STEPS: dict[str, float] = {}


def step(name: str, what: Callable[[], Result]) -> Result:
    """Do something, and note how long it has taken."""
    began = time.perf_counter()
    result = what()
    STEPS[name] = time.perf_counter() - began
    return result


def ours(folder: Path) -> None:
    """Go the way of a dbt command."""

    def import_all() -> None:
        import dbt.cli.main

        import dbt.adapters.sparkevolve.impl  # noqa: F401

    step("Python: import dbt and the adapter", import_all)
    from dbt.adapters.sparkevolve.iceberg.catalog import IcebergCatalog
    from dbt.adapters.sparkevolve.iceberg.catalog_settings import resolve
    from dbt.adapters.sparkevolve.spark import session as sessions
    from dbt.adapters.sparkevolve.spark.session_config import session_config

    settings = resolve("lake", {}, folder)
    step("ours: settings and jars", lambda: session_config(settings, {}, _spark_version(), folder))
    catalog = IcebergCatalog(settings)
    settings.prepare()
    step("PyIceberg: open the catalog", catalog.check)
    session = step("Spark: start", lambda: sessions.SESSIONS.get(settings, {}, {}, folder, "main"))
    step("Spark: first statement", lambda: session.sql("show schemas").collect())
    step("Spark: second statement", lambda: session.sql("show schemas").collect())


def by_hand(folder: Path) -> None:
    """Start PySpark with the same settings and jars, as a program without dbt does."""
    from dbt.adapters.sparkevolve.iceberg.catalog_settings import resolve
    from dbt.adapters.sparkevolve.spark.session_config import session_config

    settings = resolve("lake", {}, folder)
    settings.prepare()
    config = session_config(settings, {}, _spark_version(), folder)

    def start() -> Any:
        from pyspark.sql import SparkSession

        builder = SparkSession.builder
        for name, value in config.items():
            builder = builder.config(name, value)
        return builder.getOrCreate()

    session = step("Spark: start", start)
    step("Spark: first statement", lambda: session.sql("show schemas").collect())
    step("Spark: second statement", lambda: session.sql("show schemas").collect())


def _spark_version() -> str:
    from importlib.metadata import version

    return version("pyspark")


def measured(kind: str) -> dict[str, float]:
    """Run one of the two ways in a process of its own; return the seconds of each step."""
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            [sys.executable, __file__, "--kind", kind, "--folder", folder], capture_output=True, text=True
        )
    if done.returncode:
        raise RuntimeError(done.stderr)
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


def main() -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--kind", choices=("ours", "by_hand"))
    parser.add_argument("--folder", type=Path)
    arguments = parser.parse_args()
    if arguments.kind:
        (ours if arguments.kind == "ours" else by_hand)(arguments.folder)
        print(json.dumps(STEPS))
        return
    rounds = [(measured("ours"), measured("by_hand")) for _ in range(arguments.rounds)]
    medians = [
        {name: statistics.median(r[way][name] for r in rounds) for name in rounds[0][way]} for way in (0, 1)
    ]
    hand = sum(medians[1].values())
    print("| step | seconds | of PySpark started by hand |\n|---|---|---|")
    for name, seconds in medians[0].items():
        print(f"| {name} | {seconds:.2f} | {seconds / hand:.2f} |")
    print(f"| all | {sum(medians[0].values()):.2f} | {sum(medians[0].values()) / hand:.2f} |")
    print(f"| PySpark by hand | {hand:.2f} | 1.00 |")


if __name__ == "__main__":
    main()
