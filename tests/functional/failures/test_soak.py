"""A model whose columns come and go at random, run again and again by a process that is killed at random."""

import random
from dataclasses import dataclass, field
from typing import Any

import pytest

from tests.functional.harness import Scenario
from tests.functional.worker import Worker
from tests.metadata_files import MetadataFiles

COLUMNS = [f"c{number}" for number in range(12)]
KEYS = range(30)

Row = dict[str, Any]


@dataclass
class Model:
    """What the table has to hold, by the rule alone.

    Attributes:
        columns: the columns in table order: never one less.
        rows: by key, the value of each column.
    """

    columns: list[str] = field(default_factory=list)
    rows: dict[int, Row] = field(default_factory=dict)

    def after(self, returned: list[str], batch: dict[int, Row], keep: bool) -> "Model":
        """Return the state after a run whose model returns these columns and rows."""
        columns = [*self.columns, *(name for name in returned if name not in self.columns)]
        rows = dict(self.rows)
        for key, row in batch.items():
            before = self.rows.get(key, {}) if keep else {}
            rows[key] = {**before, **row}
        return Model(columns, rows)

    def table(self) -> list[Row]:
        """Return all rows, sorted by key, each with all columns."""
        return [{name: self.rows[key].get(name) for name in self.columns} for key in sorted(self.rows)]


def actual(scenario: Scenario) -> list[Row]:
    """Return all rows of the table as PyIceberg reads them, sorted by key."""
    rows = scenario.table().scan().to_arrow().to_pylist()
    return sorted(rows, key=lambda row: int(row["id"]))


def query(returned: list[str], batch: dict[int, Row]) -> str:
    """Return a SELECT of these rows, the columns in this order."""
    rows = " union all ".join(
        "select " + ", ".join(f"{row[name]!r} as {name}" for name in returned) for row in batch.values()
    )
    return rows or "select " + ", ".join(f"0 as {name}" for name in returned) + " where false"


def test_columns_come_and_go_and_processes_are_killed(
    scenario: Scenario, metadata_files: MetadataFiles, request: pytest.FixtureRequest
) -> None:
    runs = int(request.config.getoption("--soak"))
    chance = random.Random(runs)
    expected = Model()
    ids: dict[str, int] = {}
    worker = Worker()
    kills = 0
    for number in range(runs):
        is_last = number == runs - 1
        returned = ["id", *chance.sample(COLUMNS, chance.randint(0, 6))]
        chance.shuffle(returned)
        keys = chance.sample(KEYS, chance.choice([0, 1, 3, 10]))
        batch = {
            key: {name: key if name == "id" else number * 100 + i for i, name in enumerate(returned)}
            for key in keys
        }
        keep = chance.random() < 0.4
        config = {
            "removed_columns": "keep" if keep else "null",
            "incremental_strategy": chance.choice(["delete+insert", "delete+insert", "merge"]),
        }
        scenario.model(query(returned, batch), **config)
        wanted = expected.after(returned, batch, keep or config["incremental_strategy"] == "merge")
        worker.start(scenario, ("run",))
        # Never in the first run: there would be no table to look at.
        if number and not is_last and chance.random() < 0.15:
            if not worker.kill_after(chance.uniform(0.1, 4.0)):
                worker = Worker()
                kills += 1
            found = actual(scenario)
            before, between = expected.table(), Model(wanted.columns, expected.rows).table()
            assert found in (before, between, wanted.table()), number
            done = found == wanted.table()
            expected = Model(scenario.columns(), wanted.rows if done else expected.rows)
        else:
            (outcome,) = worker.wait()
            assert outcome.success, outcome.message
            expected = wanted
            assert actual(scenario) == expected.table(), number
        metadata_files.check()
        assert scenario.columns() == expected.columns
        now = scenario.field_ids()
        assert {name: now[name] for name in ids} == ids
        ids = now
    worker.close()
    assert list(scenario.table().metadata.refs) == ["main"]
    assert scenario.tables() == ["t"]
    assert kills > 0 or runs < 14
