"""`--full-refresh`, which keeps columns and history unless it is told otherwise."""

import pytest

from dbt.adapters.sparkevolve.load.batches import Batches
from tests.functional.harness import Scenario
from tests.functional.intruders import Intrude
from tests.functional.samples import NEW, OLD, OVERWRITTEN, history


@pytest.mark.core
def test_a_full_refresh_keeps_columns_and_history(scenario: Scenario) -> None:
    scenario.model(OLD, tblproperties={"owner.of.it": "us"})
    scenario.run()
    first, ids, uuid = (
        scenario.table().current_snapshot(),
        scenario.field_ids(),
        scenario.table().metadata.table_uuid,
    )
    assert first is not None
    scenario.model(NEW, tblproperties={"owner.of.it": "us"}, on_schema_change="fail")
    scenario.run("--full-refresh")
    assert scenario.rows() == OVERWRITTEN
    assert scenario.field_ids() == {**ids, "n": 4}
    table = scenario.table()
    assert table.metadata.table_uuid == uuid
    assert table.properties["owner.of.it"] == "us"
    then = table.scan(snapshot_id=first.snapshot_id).to_arrow().to_pylist()
    assert sorted(row["gone"] for row in then) == [10, 20]
    assert list(table.metadata.refs) == ["main"]
    current = table.current_snapshot()
    assert current is not None
    assert current.parent_snapshot_id == first.snapshot_id
    assert history(scenario) == [first.snapshot_id, current.snapshot_id]


def test_a_full_refresh_may_read_the_table(scenario: Scenario) -> None:
    scenario.model("select 1 as id, 1 as n")
    scenario.run()
    scenario.model("select id, n + 1 as n from {{ this }} union all select 9, 9")
    scenario.run("--full-refresh")
    assert scenario.rows() == [(1, 2), (9, 9)]


def test_a_full_refresh_that_cannot_keep_says_how_to_replace(scenario: Scenario) -> None:
    scenario.model("select 1 as id, 5 as n")
    scenario.run()
    before = scenario.state()
    scenario.model("select 1 as id, 'text' as n")
    message = scenario.fail("--full-refresh").message
    assert "Column `n` is int in the table, and the model returns string" in message
    assert (
        "With `full_refresh_schema: replace` the full refresh takes the model's columns as they are"
        in message
    )
    assert scenario.state() == before
    scenario.model("select 1 as id, 'text' as n", full_refresh_schema="replace")
    scenario.run("--full-refresh")
    assert scenario.rows() == [(1, "text")]


def test_a_full_refresh_to_the_models_columns_says_which_go(scenario: Scenario) -> None:
    scenario.model(OLD)
    scenario.run()
    first = scenario.table().current_snapshot()
    assert first is not None
    scenario.model(NEW, full_refresh_schema="replace")
    run = scenario.run("--full-refresh")
    assert (
        f"The full refresh of {scenario.relation()} takes away the columns that the model no longer returns: "
        "gone, since full_refresh_schema is `replace`." in run.log
    )
    assert scenario.columns() == ["id", "v", "n"]
    then = scenario.table().scan(snapshot_id=first.snapshot_id).to_arrow().to_pylist()
    assert sorted(row["gone"] for row in then) == [10, 20]


def test_full_refresh_warns_of_the_columns_that_go(scenario: Scenario) -> None:
    for name in ("t", "guarded"):
        scenario.model("select 1 as id, 'keep' as note, 5 as `Other`", name=name)
    scenario.run()
    before = scenario.snapshots()
    for name in ("t", "guarded"):
        guard = {"full_refresh": False} if name == "guarded" else {"full_refresh_schema": "replace"}
        scenario.model("select 2 as id, 9 as n", name=name, **guard)
    run = scenario.run("--full-refresh")
    # The one that was asked for: gone, after a warning that lists what goes.
    warning = (
        f"The full refresh of {scenario.relation()} takes away the columns that the model no longer returns: "
        "note, Other, since full_refresh_schema is `replace`."
    )
    assert run.log.count(warning) == 1
    assert "The full refresh of " + scenario.relation("guarded") not in run.log
    assert scenario.columns() == ["id", "n"]
    assert scenario.rows() == [(2, 9)]
    assert set(before) < set(scenario.snapshots()), "the rows from before can be read from an old snapshot"
    # The one that is guarded: an incremental run.
    assert scenario.rows("guarded") == [(1, "keep", 5, None), (2, None, None, 9)]
    assert scenario.schemas("guarded") == 2
    assert scenario.tables() == ["guarded", "t"]
    # Nothing goes: no warning.
    again = scenario.run("--full-refresh", "--select", "t")
    assert "takes away" not in again.log
    assert scenario.rows() == [(2, 9)]


def test_a_full_refresh_whose_batch_is_taken_away_says_so(scenario: Scenario, intrude: Intrude) -> None:
    """As another run of the model does that begins when the batch is to be put into place."""
    scenario.model(OLD)
    scenario.run()
    rows = scenario.rows()
    scenario.model("select 9 as id", full_refresh_schema="replace")
    taken: list[str] = []

    def take() -> None:
        taken.extend(name for name in scenario.tables() if "__dbt_tmp_" in name)
        scenario.sql(f"drop table {scenario.relation(taken[0])} purge")

    intrude(Batches, "begin_replacement", take, after=True)
    message = scenario.fail("--full-refresh").message
    batch = scenario.relation(taken[0])
    assert f"The full refresh has not replaced {scenario.relation()}: its batch {batch} is gone." in message
    assert scenario.rows() == rows
    assert scenario.tables() == ["t"]
    assert "sparkevolve.replaced-by" not in scenario.table().properties
    scenario.run("--full-refresh")
    assert scenario.rows() == [(9,)]
