"""Others take the table's branch back, or let the run's base expire, while a run is under way."""

from collections.abc import Callable
from typing import Any

import pytest

from dbt.adapters.sparkevolve.iceberg.catalog import IcebergCatalog
from dbt.adapters.sparkevolve.impl import SparkEvolveAdapter
from dbt.adapters.sparkevolve.load.batches import Batches
from tests.functional.harness import Scenario
from tests.functional.intruders import Intrude, append, cut, is_clean, staged

# Where a run can be met: what it calls next, and with which statement.
STEPS = {
    "staging": (Batches, "new_name", ""),
    "evolving": (IcebergCatalog, "evolve", ""),
    "cutting": (SparkEvolveAdapter, "execute", "ALTER TABLE"),
    "inserting": (SparkEvolveAdapter, "execute", "INSERT"),
    "publishing": (IcebergCatalog, "publish", ""),
}


def meet(intrude: Intrude, step: str, action: Callable[[], Any], times: int = 1) -> list[None]:
    owner, method, sql = STEPS[step]
    return intrude(owner, method, action, times, sql=sql)


def prepare(scenario: Scenario, **config: Any) -> int:
    """Make a table with two snapshots, and a model that counts its rows; return the first one's id."""
    scenario.model("select 1 as id, 1 as v")
    scenario.run()
    first = scenario.snapshots()[-1]
    append(scenario, [{"id": 2, "v": 2}])
    scenario.sql(f"refresh table {scenario.relation()}")
    scenario.model("select 9 as id, cast(count(*) as int) as v, 'x' as n from {{ this }}", **config)
    return first


def roll_back(scenario: Scenario, snapshot_id: int) -> None:
    scenario.sql(f"refresh table {scenario.relation()}")
    scenario.sql(f"call lake.system.rollback_to_snapshot('{scenario.schema}.t', {snapshot_id})")


@pytest.mark.parametrize("step", ["staging", "cutting", "inserting", "publishing"])
def test_main_is_rolled_back_during_a_run(scenario: Scenario, intrude: Intrude, step: str) -> None:
    """The run neither brings the rows back that were taken away, nor counts them."""
    first = prepare(scenario)
    happened = meet(intrude, step, lambda: roll_back(scenario, first))
    run = scenario.run()
    assert len(happened) == 1
    assert scenario.rows() == [(1, 1, None), (9, 1, "x")]
    assert (staged(run), cut(run)) == (2, 2)
    assert is_clean(scenario)


@pytest.mark.parametrize("step", ["staging", "publishing"])
def test_a_commit_comes_and_is_rolled_back_during_a_run(
    scenario: Scenario, intrude: Intrude, step: str
) -> None:
    """`main` is where it was, but the model may have counted what was there in between."""
    prepare(scenario)
    head = scenario.snapshots()[-1]

    def come() -> None:
        append(scenario, [{"id": 3, "v": 3}])
        scenario.sql(f"refresh table {scenario.relation()}")

    def come_and_go() -> None:
        come()
        roll_back(scenario, head)

    if step == "staging":
        meet(intrude, "staging", come)
        happened = meet(intrude, "evolving", lambda: roll_back(scenario, head))
    else:
        happened = meet(intrude, "publishing", come_and_go)
    run = scenario.run()
    assert len(happened) == 1
    assert scenario.rows() == [(1, 1, None), (2, 2, None), (9, 2, "x")]
    assert (staged(run), cut(run)) == (2, 2)
    assert is_clean(scenario)


@pytest.mark.parametrize(
    ("step", "config"),
    [("evolving", {}), ("cutting", {"publish": "direct", "removed_columns": "keep"})],
)
def test_the_snapshot_that_a_run_starts_from_expires(
    scenario: Scenario, intrude: Intrude, step: str, config: dict[str, Any]
) -> None:
    """It is no ancestor of the branch any more either: there is nothing to cut, so all begins again."""
    scenario.model("select 1 as id, 1 as v, 'kept' as gone")
    scenario.run()
    scenario.model("select 1 as id, cast(count(*) as int) as v from {{ this }}", **config)

    def expire() -> None:
        append(scenario, [{"id": 3, "v": 3, "gone": "theirs"}])
        scenario.sql(f"refresh table {scenario.relation()}")
        scenario.sql(
            f"call lake.system.expire_snapshots(table => '{scenario.schema}.t', retain_last => 1, "
            "older_than => timestamp '2999-01-01 00:00:00')"
        )

    happened = meet(intrude, step, expire)
    run = scenario.run()
    assert len(happened) == 1
    kept = "kept" if config else None
    assert scenario.rows() == [(1, 2, kept), (3, 3, "theirs")]
    assert (staged(run), cut(run)) == (2, 2)
    assert is_clean(scenario)


def test_the_snapshot_that_a_run_starts_from_expires_each_time(scenario: Scenario, intrude: Intrude) -> None:
    scenario.model("select 1 as id, 1 as v")
    scenario.run()
    scenario.model("select 1 as id, 2 as v", commit_retries=1)

    def expire() -> None:
        append(scenario, [{"id": 3, "v": 3}])
        scenario.sql(f"refresh table {scenario.relation()}")
        scenario.sql(
            f"call lake.system.expire_snapshots(table => '{scenario.schema}.t', retain_last => 1, "
            "older_than => timestamp '2999-01-01 00:00:00')"
        )

    happened = meet(intrude, "cutting", expire, 9)
    run = scenario.fail()
    assert len(happened) == 2
    assert run.message.strip().endswith(
        f"It was tried to load the batch into {scenario.relation()} 2 times, and each time other writers had "
        "committed to the table meanwhile, and the run could not go on from the snapshot that it had "
        "started from. The table's rows are theirs, none of this run's is visible. Run the model again when "
        "the table is quieter, or raise `commit_retries`."
    )
    assert scenario.rows() == [(1, 1), (3, 3), (3, 3)]
    assert is_clean(scenario)
