"""Rows that a table of format version 3 marks as deleted in Puffin files, as three readers read them."""

from typing import Any

import pytest

from tests.functional.duckdb_reader import duckdb_rows
from tests.functional.harness import Scenario, sort_rows

V3 = {
    "format-version": "3",
    **{f"write.{what}.mode": "merge-on-read" for what in ("delete", "merge", "update")},
}
FIRST = "select cast(id as int) as id, 'old' as v, 1 as gone, {d} as d from range(1, 41) as t(id)"
DAY = "cast(date_add(date'2026-01-01', cast(id % 2 as int)) as timestamp_ntz)"


def vectors(scenario: Scenario) -> list[str]:
    """The formats of the files of deleted rows that the table has now."""
    scenario.sql(f"refresh table {scenario.relation()}")
    files = f"select file_format from {scenario.relation()}.delete_files"
    return sorted({str(row[0]) for row in scenario.sql(files)})


def check(scenario: Scenario, expected: list[tuple[Any, ...]]) -> None:
    """Compare what Spark, PyIceberg and DuckDB read."""
    scenario.sql(f"refresh table {scenario.relation()}")
    assert sort_rows(scenario.sql(f"select * from {scenario.relation()}")) == expected
    assert scenario.rows() == expected
    assert sort_rows(duckdb_rows(scenario.table())) == expected


@pytest.mark.parametrize(
    ("strategy", "removed", "kept"),
    [("delete+insert", "null", (None, None)), ("delete+insert", "keep", (1, 0)), ("merge", None, (1, 0))],
)
def test_replaced_rows_are_marked(
    scenario: Scenario, strategy: str, removed: str | None, kept: tuple[Any, ...]
) -> None:
    config = {"tblproperties": V3, "incremental_strategy": strategy, "removed_columns": removed}
    scenario.model(FIRST.format(d="0"), **config)
    scenario.run()
    sql = "select 2 as id, 'new' as v, 5 as n union all select 99, 'new', 6"
    scenario.model(sql, audits=["v = 'new'"], **config)
    scenario.run()
    assert vectors(scenario) == ["PUFFIN"]
    old = [(number, "old", 1, 0, None) for number in range(1, 41) if number != 2]
    expected = sort_rows([*old, (2, "new", *kept, 5), (99, "new", None, None, 6)])
    check(scenario, expected)
    assert scenario.field_ids() == {"id": 1, "v": 2, "gone": 3, "d": 4, "n": 5}
    # A batch that finds rows in files that have marked ones.
    scenario.run()
    check(scenario, expected)
    assert list(scenario.table().metadata.refs) == ["main"]
    lineage = f"select count(distinct _row_id), count(*) from {scenario.relation()}"
    assert scenario.sql(lineage) == [(41, 41)]


def test_rows_of_a_window_are_marked(scenario: Scenario) -> None:
    config = {
        "incremental_strategy": "microbatch",
        "unique_key": None,
        "event_time": "d",
        "batch_size": "day",
        "begin": "2026-01-01",
        "tblproperties": V3,
    }
    scenario.model(FIRST.format(d=DAY), **config)
    scenario.run("--event-time-start", "2026-01-01", "--event-time-end", "2026-01-03")
    scenario.sql(f"call lake.system.rewrite_data_files(table => '{scenario.schema}.t')")
    scenario.model(f"select * from ({FIRST.format(d=DAY)}) as t where id = 4", **config)
    scenario.run("--event-time-start", "2026-01-01", "--event-time-end", "2026-01-02")
    assert vectors(scenario) == ["PUFFIN"]
    deleted, _ = [s.summary for s in scenario.table().metadata.snapshots[-2:]]
    assert deleted is not None
    assert (deleted["added-delete-files"], deleted["added-dvs"]) == ("1", "1")
    assert sorted(row[0] for row in scenario.rows()) == sorted([*range(1, 41, 2), 4])
    assert sorted(row[0] for row in duckdb_rows(scenario.table())) == sorted([*range(1, 41, 2), 4])
