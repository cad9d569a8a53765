"""What the package loads: the columns and rows of each strategy, on stock dbt-spark."""

import pytest

from tests.functional.harness import Scenario

ICEBERG = {"file_format": "iceberg"}


@pytest.mark.core
def test_columns_come_and_go(project: Scenario) -> None:
    project.model("select 1 as id, 'a' as b, cast(10 as int) as c union all select 2, 'b', 20", **ICEBERG)
    project.run()
    assert project.rows() == [(1, "a", 10), (2, "b", 20)]
    ids = project.field_ids()
    project.model("select 2 as id, cast(1 as bigint) as c, date '2024-01-01' as d", **ICEBERG)
    run = project.run()
    assert project.columns() == ["id", "b", "c", "d"]
    assert project.rows()[0] == (1, "a", 10, None)
    assert [row[:3] for row in project.rows()] == [(1, "a", 10), (2, None, 1)]
    assert {name: number for name, number in project.field_ids().items() if name != "d"} == ids
    assert "add column `d` date" in run.log
    assert project.tables() == ["t"]
    assert list(project.table().metadata.refs) == ["main"]
