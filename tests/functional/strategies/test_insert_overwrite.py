"""`insert_overwrite`: the partitions it replaces."""

import pytest

from tests.functional.harness import Scenario
from tests.functional.samples import NEW, OLD


@pytest.mark.core
def test_partitions_are_those_of_hidden_transforms_too(scenario: Scenario) -> None:
    # Spark finds no column of a transform by a name in another case.
    config = {"incremental_strategy": "insert_overwrite", "partition_by": ["days(TS)"], "unique_key": None}
    scenario.model(
        "select 1 as id, timestamp_ntz'2024-01-01 05:00:00' as ts union all "
        "select 2, timestamp_ntz'2024-01-02 05:00:00' union all select 3, timestamp_ntz'2024-01-02 06:00:00'",
        **config,
    )
    scenario.run()
    scenario.model("select 9 as id, timestamp_ntz'2024-01-02 23:00:00' as ts", **config)
    scenario.run()
    assert [row[0] for row in scenario.rows()] == [1, 9]
    # Without the column each run would replace the partition NULL, and so the run before.
    before = scenario.state()
    scenario.model("select 10 as id", **config)
    assert (
        "The table is partitioned by `ts`, which the model no longer returns, and the strategy replaces "
        "partitions: the rows of each run would go to the partition NULL, in the place of those that are "
        "there."
    ) in scenario.fail().message
    assert scenario.state() == before


def test_partitions_of_a_table_without_any_are_refused(scenario: Scenario) -> None:
    scenario.model(OLD, incremental_strategy="insert_overwrite")
    scenario.run()
    before = scenario.state()
    scenario.model(NEW, incremental_strategy="insert_overwrite", partition_by=["id"])
    assert (
        "The model is partitioned by id and the table by nothing: to overwrite the partitions that the batch "
        "has rows for would replace other rows than the model means." in scenario.fail().message
    )
    assert scenario.state() == before


def test_partitions_that_are_not_the_models_are_refused(scenario: Scenario) -> None:
    """A batch of one day would overwrite the whole month."""
    config = {"incremental_strategy": "insert_overwrite", "unique_key": None}
    scenario.model(
        "select 1 as id, date'2026-01-05' as d union all select 2, date'2026-01-06'",
        partition_by="months(d)",
        **config,
    )
    scenario.run()
    before = scenario.state()
    scenario.model("select 3 as id, date'2026-01-06' as d", partition_by="d", **config)
    assert "The model is partitioned by d and the table by months(d): " in scenario.fail().message
    assert scenario.state() == before
    scenario.model("select 3 as id, date'2026-01-06' as d", partition_by=["month(`D`)"], **config)
    scenario.run()
    assert [row[0] for row in scenario.rows()] == [3]
