"""Compare dbt-sparkevolve with dbt-spark on Iceberg, in one run, as ratios.

    python benchmarks/run.py [--rows 2000000] [--batch 100000] [--rounds 5]

Each adapter has a process, a Spark session and a catalog of its own, with the same settings, and they take
turns, so that whatever else the machine does hits both. A figure is the time of dbt's node; a ratio is the
median of one divided by that of the first.
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
MERGE_ON_READ = {f"write.{verb}.mode": "merge-on-read" for verb in ("delete", "update", "merge")}
ICEBERG = {"materialized": "incremental", "file_format": "iceberg"}


class Worker:
    """A process of its own with one adapter."""

    def __init__(self, adapter: str, folder: Path, memory: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, str(HERE / "worker.py"), adapter, str(folder), memory],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=(folder.parent / f"{adapter}.log").open("w"),
            text=True,
        )

    def build(self, name: str, config: dict[str, Any], sql: str) -> float:
        """Have a model built; return the seconds."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps({"name": name, "config": config, "model": sql}) + "\n")
        self.process.stdin.flush()
        for line in self.process.stdout:
            if line.startswith("ANSWER "):
                answer = json.loads(line.removeprefix("ANSWER "))
                if "error" in answer:
                    raise RuntimeError(f"{name}: {answer['error']}")
                return float(answer["seconds"])
        raise RuntimeError(f"{name}: the process has ended; see its log")


@dataclass
class Contender:
    """An adapter with a configuration.

    Attributes:
        adapter: "sparkevolve" or "spark".
        label: what the table calls it.
        config: the model's.
    """

    adapter: str
    label: str
    config: dict[str, Any]
    seconds: list[float] = field(default_factory=list)


def contenders(key: str | None) -> list[Contender]:
    """Return who takes part in a comparison; the first one is the measure."""
    if key is None:
        return [
            Contender("spark", "dbt-spark append", {**ICEBERG, "incremental_strategy": "append"}),
            Contender("sparkevolve", "append", {**ICEBERG, "incremental_strategy": "append"}),
            Contender(
                "sparkevolve",
                "append, direct",
                {**ICEBERG, "incremental_strategy": "append", "publish": "direct"},
            ),
        ]
    merge = {**ICEBERG, "incremental_strategy": "merge", "unique_key": key}
    ours = {**ICEBERG, "unique_key": key}
    return [
        Contender("spark", "dbt-spark merge", merge),
        Contender("spark", "dbt-spark merge, merge-on-read", {**merge, "tblproperties": MERGE_ON_READ}),
        Contender("sparkevolve", "delete+insert", ours),
        Contender("sparkevolve", "delete+insert, direct", {**ours, "publish": "direct"}),
        Contender("sparkevolve", "merge", {**ours, "incremental_strategy": "merge"}),
        Contender("sparkevolve", "delete+insert, keep", {**ours, "removed_columns": "keep"}),
    ]


def rows(first: int, count: int, step: int, value: int) -> str:
    """Return a query of ``count`` rows with keys from ``first`` on, ``step`` apart."""
    return (
        f"select {first} + id * {step} as id, cast(id % 1000 as int) as grp, {value} as v, "
        f"concat('text ', id, ' of ', {value}) as t from range({count})"
    )


def compare(
    title: str, workers: dict[str, Worker], key: str | None, table_rows: int, batch: int, rounds: int
) -> None:
    """Build a table with each contender, load batches in turns, and print the medians and their ratios."""
    taking_part = contenders(key)
    name = "".join(c if c.isalnum() else "_" for c in title.lower())
    for number, contender in enumerate(taking_part):
        workers[contender.adapter].build(f"{name}_{number}", contender.config, rows(0, table_rows, 1, 0))
    for round_ in range(rounds + 1):
        # Half of the keys are there, spread over the whole table; half are new.
        step = max(1, 2 * table_rows // batch)
        for number, contender in enumerate(taking_part):
            sql = rows(round_, batch, step, round_ + 1)
            seconds = workers[contender.adapter].build(f"{name}_{number}", contender.config, sql)
            if round_:  # the first one warms up
                contender.seconds.append(seconds)
    measure = statistics.median(taking_part[0].seconds)
    print(f"\n### {title}\n\n| | median s | ratio |\n|---|---|---|")
    for contender in taking_part:
        median = statistics.median(contender.seconds)
        print(f"| {contender.label} | {median:.2f} | {median / measure:.2f} |", flush=True)


def main() -> None:
    """Run all comparisons."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=2_000_000, help="rows of the large table")
    parser.add_argument("--batch", type=int, default=100_000, help="rows of a batch for it")
    parser.add_argument("--rounds", type=int, default=5, help="batches that are timed")
    parser.add_argument("--memory", default="3g", help="spark.driver.memory of each process")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        workers = {
            adapter: Worker(adapter, Path(folder) / adapter, arguments.memory)
            for adapter in ("spark", "sparkevolve")
        }
        compare("A small model, by key", workers, "id", 1_000, 10, arguments.rounds)
        compare("A small model, append", workers, None, 1_000, 10, arguments.rounds)
        large = f"{arguments.rows} rows, a batch of {arguments.batch}"
        compare(f"{large}, by key", workers, "id", arguments.rows, arguments.batch, arguments.rounds)
        compare(f"{large}, append", workers, None, arguments.rows, arguments.batch, arguments.rounds)
        for worker in workers.values():
            worker.process.terminate()


if __name__ == "__main__":
    main()
