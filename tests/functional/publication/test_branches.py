"""Where the rows of a run become visible: `main`, a branch of the table, or neither."""

from collections.abc import Callable

import pytest

from tests.functional.harness import Scenario
from tests.functional.samples import OLD, history


def test_a_table_of_format_3_is_published_through_spark(scenario: Scenario) -> None:
    scenario.model(OLD, tblproperties={"format-version": "3"})
    scenario.run()
    seen = history(scenario)
    scenario.model("select 2 as id, 'B' as v, 1 as gone")
    scenario.run()
    assert scenario.sql(f"select * from {scenario.relation()} order by id") == [(1, "a", 10), (2, "B", 1)]
    assert list(scenario.table().metadata.refs) == ["main"]
    assert len(history(scenario)) == len(seen) + 1


@pytest.mark.core
def test_a_reserved_branch_gets_the_rows(scenario_factory: Callable[..., Scenario]) -> None:
    scenario = scenario_factory(server_side_parameters={"spark.wap.branch": "audit"})
    scenario.model("select 1 as id, 'a' as v")
    scenario.run()
    scenario.sql(f"alter table {scenario.relation()} set tblproperties ('write.wap.enabled' = 'true')")
    before = history(scenario)
    for sql, rows in (
        ("select 1 as id, 'z' as v, 2 as n", [(1, "z", 2)]),
        ("select 3 as id, 'y' as v, n + 1 as n from {{ this }}", [(1, "z", 2), (3, "y", 3)]),
    ):
        scenario.model(sql)
        scenario.run()
        audited = scenario.table().scan().use_ref("audit").to_arrow().to_pylist()
        assert sorted(tuple(row.values()) for row in audited) == rows
        assert scenario.rows() == [(1, "a", None)]
        assert history(scenario) == before
        assert sorted(scenario.table().metadata.refs) == ["audit", "main"]


def test_rows_that_are_kept_apart_are_refused(scenario: Scenario) -> None:
    """`spark.wap.id` takes each statement's rows off every branch: they could not be checked or published."""
    scenario.model("select 1 as id, 'a' as v", tblproperties={"write.wap.enabled": "true"})
    scenario.run()
    before = scenario.state()
    hooks = {"pre_hook": "set spark.wap.id=abc", "post_hook": "reset spark.wap.id"}
    scenario.model("select 1 as id, 'bad' as v", audits=["v = 'a'"], **hooks)
    message = scenario.fail().message
    scenario.model("select 1 as id, 'b' as v", post_hook="reset spark.wap.id")
    assert "the session's `spark.wap.id` keeps each statement's rows apart. Unset `spark.wap.id`" in message
    assert scenario.state() == before
