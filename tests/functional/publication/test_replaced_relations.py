"""A view that becomes a table, or the other way round: the old one goes when the new one is certain."""

import pytest

from dbt.adapters.sparkevolve.impl import SparkEvolveAdapter
from tests.functional.harness import Scenario

PLAIN = {"unique_key": None, "on_schema_change": None}


def test_a_view_stays_until_the_rows_of_its_table_are_there(
    scenario: Scenario, monkeypatch: pytest.MonkeyPatch
) -> None:
    scenario.model("select 1 as id, 'seen' as v", materialized="view", **PLAIN)
    scenario.run()
    # Not a literal: Spark would fail in its optimizer already.
    failing = "select id, if(id < 9, raise_error('not yet'), 'v') as v from values (1), (2) as source(id)"
    scenario.model(failing, materialized="table", **PLAIN)
    assert "not yet" in scenario.fail().message
    assert scenario.sql(f"select * from {scenario.relation()}") == [(1, "seen")]
    assert scenario.tables() == []
    # It is evaluated once, and may read the view that it replaces.
    scenario.model("select id + 1 as id, v, rand() as r from {{ this }}", materialized="table", **PLAIN)
    execute, evaluations = SparkEvolveAdapter.execute, []

    def count(self: SparkEvolveAdapter, sql: str, *args: object, **kwargs: object) -> object:
        if "rand()" in sql and "create" in sql:
            evaluations.append(sql)
        return execute(self, sql, *args, **kwargs)

    with monkeypatch.context() as patch:
        patch.setattr(SparkEvolveAdapter, "execute", count)
        scenario.run()
    assert [row[:2] for row in scenario.rows()] == [(2, "seen")]
    assert scenario.types() == {"id": "int", "v": "string", "r": "double"}
    assert len(evaluations) == 1
    assert scenario.tables() == ["t"]


@pytest.mark.parametrize("flags", [(), ("--full-refresh",)])
def test_a_query_that_cannot_be_a_view_takes_no_table_away(
    scenario: Scenario, flags: tuple[str, ...]
) -> None:
    scenario.model("select 1 as id, 'kept' as v")
    scenario.run()
    before = scenario.state()
    for wrong in ("select id, nowhere from {{ this }}", "select 1 as id,", "select 1 as id from not_there"):
        scenario.model(wrong, materialized="view", **PLAIN)
        scenario.fail(*flags)
        assert scenario.state() == before, wrong
    scenario.model("select 2 as id", materialized="view", **PLAIN)
    scenario.run(*flags)
    assert scenario.sql(f"select * from {scenario.relation()}") == [(2,)]
    assert scenario.tables() == []
