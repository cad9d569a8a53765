"""What is no change of a snapshot's source: another run at the same time, `--empty` and `--sample`."""

import pytest

from dbt.adapters.sparkevolve.iceberg.catalog import IcebergCatalog
from dbt.adapters.sparkevolve.load.runner import LoadRunner
from tests.functional.harness import Scenario
from tests.functional.intruders import Intrude
from tests.functional.snapshots.taking import snapshot, versions


def change(scenario: Scenario, old: str, new: str) -> None:
    """Do what another run of the snapshot does when row 1 goes from one value to another."""
    table = scenario.relation("snap")
    scenario.sql(f"refresh table {table}")
    scenario.sql(f"update {table} set dbt_valid_to = current_timestamp() where id = 1 and v = '{old}'")
    scenario.sql(
        f"insert into {table} select 1, '{new}', md5('{new}'), current_timestamp(), current_timestamp(), null"
    )


def current(scenario: Scenario) -> list[tuple[int, str, bool]]:
    return [(key, v, end is None) for key, v, end in versions(scenario, "id", "v")]


def test_another_run_of_the_snapshot_meanwhile(scenario: Scenario, intrude: Intrude) -> None:
    snapshot(scenario, "select 1 as id, 'a' as v")
    assert scenario.dbt("run").success

    # It has made the snapshot, and a later one has closed a version, since this first run looked.
    def make() -> None:
        columns = "id, v, md5(v) dbt_scd_id, now() dbt_updated_at, now() dbt_valid_from, "
        scenario.sql(
            f"create table {scenario.relation('snap')} using iceberg as select {columns} "
            "if(v = 'a', null, now()) dbt_valid_to from values (1, 'old'), (1, 'a') as rows(id, v)"
        )

    assert intrude(LoadRunner, "begin_creation", make) == []
    run = scenario.dbt("snapshot")
    assert not run.success
    assert "TABLE_OR_VIEW_ALREADY_EXISTS" in run.message
    assert current(scenario) == [(1, "old", False), (1, "a", True)]
    assert scenario.tables() == ["snap", "src"]

    scenario.sql(f"drop table {scenario.relation('snap')}")
    assert scenario.dbt("snapshot").success

    # The other run is done when this one has compared the table as it was, or has merged.
    for number, (method, old, new) in enumerate((("evolve", "a", "b"), ("publish", "b", "c"))):
        rows = f"select 1 as id, '{new}' as v union all select {number + 2}, 'n'"
        snapshot(scenario, rows)
        assert scenario.dbt("run").success
        happened = intrude(IcebergCatalog, method, lambda old=old, new=new: change(scenario, old, new))
        run = scenario.dbt("snapshot")
        assert run.success, run.message or run.log
        assert len(happened) == 1
        assert "has changed since this run read it: loading again" in run.log
    assert current(scenario) == [
        (1, "a", False),
        (1, "b", False),
        (1, "c", True),
        (2, "n", True),
        (3, "n", True),
    ]
    assert list(scenario.table("snap").metadata.refs) == ["main"]
    assert scenario.tables() == ["snap", "src"]

    # Nothing has changed: nothing is written.
    before = scenario.table("snap").metadata_location
    assert scenario.dbt("snapshot").success
    assert scenario.table("snap").metadata_location == before


@pytest.mark.parametrize("hard_deletes", ["invalidate", "new_record"])
def test_rows_that_dbt_leaves_out_are_not_deleted(scenario: Scenario, hard_deletes: str) -> None:
    def source(rows: str) -> None:
        snapshot(scenario, f"select * from values {rows} as source(id, v, ts)", hard_deletes=hard_deletes)
        scenario.file(
            "models/src.yml", "models: [{name: src, config: {materialized: table, event_time: ts}}]"
        )

    first = "(1, 'a', timestamp'2024-01-01'), (2, 'b', timestamp'2024-01-02')"
    source(first)
    assert scenario.dbt("build").success
    versions_then = current(scenario)
    assert scenario.dbt("build", "--empty").success
    assert current(scenario) == versions_then == [(1, "a", True), (2, "b", True)]

    source("(1, 'A', timestamp'2024-01-01'), (2, 'B', timestamp'2024-01-02')")
    run = scenario.dbt("build", "--sample", "{'start': '2024-01-02', 'end': '2024-01-03'}")
    assert run.success, run.message or run.log
    assert current(scenario) == [(1, "a", True), (2, "b", False), (2, "B", True)]

    source("(2, 'B', timestamp'2024-01-02')")
    assert scenario.dbt("build").success
    kept = [(1, "a", True)] if hard_deletes == "new_record" else []
    assert current(scenario) == [(1, "a", False), *kept, (2, "b", False), (2, "B", True)]
