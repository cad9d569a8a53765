"""Columns that a table is partitioned by, and columns named like partitions."""

import pytest

from tests.functional.harness import Scenario
from tests.functional.precreated import precreate


def test_a_new_column_named_like_a_partition_field(scenario: Scenario) -> None:
    precreate(
        scenario, "id int, ts timestamp", "(1, timestamp'2024-01-01 00:00:00')", "partitioned by (days(ts))"
    )
    before = scenario.state()
    scenario.model("select 1 as id, current_timestamp() as ts, date'2024-01-01' as ts_day")
    run = scenario.fail()
    assert (
        "The model returns the new column `ts_day`, but a partition spec of the table has, or once had, the "
        "field `ts_day`, and Iceberg cannot hold both." in run.message
    )
    assert scenario.state() == before
    scenario.sql(f"alter table {scenario.relation()} drop partition field ts_day")
    assert "ts_day" in scenario.fail().message


@pytest.mark.core
def test_a_removed_partition_column_is_warned_of(scenario: Scenario) -> None:
    precreate(scenario, "id int, region string", "(1, 'n')", "partitioned by (region)")
    scenario.model("select 2 as id")
    run = scenario.run()
    assert "The table is partitioned by `region`, which the model no longer returns" in run.log
    assert scenario.rows() == [(1, "n"), (2, None)]
    scenario.sql(f"call lake.system.rewrite_data_files(table => '{scenario.schema}.t')")
    assert scenario.rows() == [(1, "n"), (2, None)]


def test_a_partition_column_dropped_outside(scenario: Scenario) -> None:
    precreate(scenario, "id int, v int, region string", "(1, 1, 'n'), (2, 2, 's')", "partitioned by (region)")
    scenario.sql(f"alter table {scenario.relation()} drop partition field region")
    scenario.sql(f"alter table {scenario.relation()} drop column region")
    scenario.model("select 1 as id, 5 as v, 6 as n")
    scenario.run()
    assert scenario.rows() == [(1, 5, 6), (2, 2, None)]
