"""What is evaluated when, and what is sent in one call."""

from typing import Any

import pytest

from dbt.adapters.sparkevolve.iceberg.catalog import IcebergCatalog
from dbt.adapters.sparkevolve.iceberg.staged_batch import StagedBatch
from tests.functional.harness import Scenario
from tests.functional.sent import statements


def test_filter_on_this_is_evaluated_once(scenario: Scenario) -> None:
    scenario.model("select * from values (1, 10, 'a'), (2, 20, 'b'), (3, 30, 'c') as src(id, ts, v)")
    scenario.run()
    ids = scenario.field_ids()
    scenario.model(
        "select *, true as n from values (1, 10, 'a'), (2, 20, 'b'), (3, 30, 'new') as src(id, ts, v)\n"
        "{% if is_incremental() %} where ts >= (select max(ts) from {{ this }}) {% endif %}"
    )
    scenario.run()
    expected = [(1, 10, "a", None), (2, 20, "b", None), (3, 30, "new", True)]
    assert scenario.rows() == expected
    assert scenario.field_ids() == {**ids, "n": 4}
    assert scenario.schemas() == 2
    scenario.run()
    assert scenario.rows() == expected
    assert scenario.schemas() == 2
    assert scenario.tables() == ["t"]


def test_model_carries_state_forward(scenario: Scenario) -> None:
    scenario.model("select 1 as id, 100 as total")
    scenario.run()
    scenario.model(
        "select n.id, n.amt + coalesce(o.total, 0) as total\n"
        "from (select 1 as id, 5 as amt) n left join {{ this }} o on o.id = n.id"
    )
    scenario.run()
    assert scenario.rows() == [(1, 105)]
    scenario.run()
    assert scenario.rows() == [(1, 110)]
    assert scenario.schemas() == 1
    assert scenario.tables() == ["t"]


def test_runs_in_one_process(scenario: Scenario) -> None:
    """One process, one session: no run meets what the one before has staged, nor a table of that name."""
    scenario.model("select 1 as id")
    scenario.run()
    for name in ("t__dbt_tmp", "t__dbt_tmp_"):
        scenario.sql(f"create table {scenario.relation(name)} (x int) using iceberg")
    scenario.model("select 1 as id, 'n' as n union all select 2, 'n'")
    scenario.run()
    scenario.run()
    assert scenario.rows() == [(1, "n"), (2, "n")]
    assert scenario.schemas() == 2
    assert scenario.tables() == ["t", "t__dbt_tmp", "t__dbt_tmp_"]
    assert scenario.columns("t__dbt_tmp") == ["x"]


def test_a_staged_batch_that_is_gone_is_no_batch_without_columns(
    scenario: Scenario, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each column of the target would be a removed one then. For lost connections: test_lost_connections."""
    scenario.model("select 1 as id, 1 as v")
    scenario.run()
    before = scenario.state()
    scenario.model("select 1 as id, 2 as v")
    real, gone = IcebergCatalog.staged_batch, []

    def staged_batch(self: IcebergCatalog, relation: Any, *args: Any) -> StagedBatch:
        scenario.sql(f"drop table {relation}")
        gone.append(str(relation))
        return real(self, relation, *args)

    monkeypatch.setattr(IcebergCatalog, "staged_batch", staged_batch)
    run = scenario.fail()
    assert len(gone) == 1
    assert f"The staged batch {gone[0]} is not in the Iceberg catalog `lake`." in run.message
    assert scenario.state() == before
    assert scenario.tables() == ["t"]
    monkeypatch.undo()
    scenario.run()
    assert scenario.rows() == [(1, 2)]


def test_one_statement_in_one_call(scenario: Scenario) -> None:
    scenario.model("select 1 as id, 'x;y' as `semi;colon`")
    scenario.run()
    scenario.model(
        "-- a comment; with a semicolon, and an apostrophe: it's\n"
        "select 1 as id, 'p;q' as `semi;colon`, 'a;b' as n, /* ; */ \"c';d\" as m, '; drop table t; --' as o"
    )
    run = scenario.run()
    assert scenario.rows() == [(1, "p;q", "a;b", "c';d", "; drop table t; --")]
    assert scenario.columns() == ["id", "semi;colon", "n", "m", "o"]
    assert scenario.schemas() == 2
    verbs = [text.split()[0].lower() for text in statements(run)]
    assert [verb for verb in verbs if verb not in ("refresh", "select")] == [
        *("create", "alter", "delete", "insert"),
    ]
    operations = [s.summary.operation.value for s in scenario.table().metadata.snapshots if s.summary]
    assert len(operations) == 3, operations
    assert operations[-1] == "append"
