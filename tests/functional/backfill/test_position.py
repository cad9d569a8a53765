"""Where `backfill_column` goes on is told of the rows that it has filled, and of no others."""

from typing import Any

from tests.functional.backfill.test_backfill import ORDERS, filled, position, refused, values
from tests.functional.harness import Scenario


def test_a_backfill_goes_on_only_where_its_rows_are(scenario: Scenario) -> None:
    scenario.model(ORDERS)
    scenario.run()
    status: dict[str, Any] = {"column": "status", "value": "concat('s', id)", "rows_per_batch": 2}
    filled(scenario, **status, max_batches=1)
    there = position(scenario, "status")
    assert there is not None
    assert there["snapshot"] == scenario.table().metadata.refs["main"].snapshot_id
    # It replaces all rows, so nothing is filled any more.
    scenario.run("--full-refresh")
    assert position(scenario, "status") is None
    filled(scenario, **status)
    assert values(scenario, "status") == {n: f"s{n}" for n in range(1, 6)}

    status["only_null"], status["value"] = False, "concat('t', id)"
    before = scenario.table().metadata.refs["main"].snapshot_id
    filled(scenario, **status, max_batches=1)
    there = position(scenario, "status")
    assert there is not None
    # Properties outlive that, and the rows of the first batch do not.
    scenario.sql(f"call lake.system.rollback_to_snapshot('{scenario.schema}.t', {before})")
    lost = (
        f"A backfill of `status` in {scenario.relation()} is not finished, and the table was replaced or "
        f"rolled back since its last batch, at {there['at']}: which rows it has filled is not known any "
        "more. `restart: true` begins at the first row, and forgets it. Nothing was written."
    )
    assert lost in refused(scenario, **status)
    assert lost in refused(scenario, **{**status, "value": "'x'"})
    scenario.sql(f"update {scenario.relation()} set status = null")
    status["only_null"] = True
    filled(scenario, **status, restart=True, max_batches=1)
    assert values(scenario, "status") == {1: "t1", 2: "t2", 3: None, 4: None, 5: None}

    # What was left is filled by somebody else: there is nothing to go on with, and no other one in the way.
    scenario.sql(f"update {scenario.relation()} set status = 'x' where id > 2")
    log = filled(scenario, **status)
    assert f"Backfill of `status` in {scenario.relation()} is finished: 2 rows in 1 batch" in log
    assert position(scenario, "status") is None
    scenario.sql(f"update {scenario.relation()} set status = null where id = 1")
    filled(scenario, **status)
    assert values(scenario, "status") == {1: "t1", 2: "t2", 3: "x", 4: "x", 5: "x"}
