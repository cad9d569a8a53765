"""A profile may turn on the cache that Iceberg's catalog has in Spark; what is loaded is the same."""

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.types import StringType

from tests.functional.harness import Scenario

CACHE = {"spark.sql.catalog.lake.cache-enabled": "true"}


@pytest.mark.parametrize("publish", ["branch", "direct"])
def test_overwriting_again_and_again_sees_what_others_have_committed(
    scenario_factory: Callable[..., Scenario], publish: str
) -> None:
    """Such loads have a session of their own in Spark, and with it a cache of their own."""
    scenario = scenario_factory(server_side_parameters=CACHE)
    config: dict[str, Any] = {"incremental_strategy": "insert_overwrite", "unique_key": None}
    config |= {"publish": publish}
    by_partition = {**config, "partition_by": "p"}
    rows = "select {0} as id, '{1}' as p"
    for name, given in (("t", by_partition), ("whole", config)):
        scenario.model(f"{rows.format(1, 'a')} union all {rows.format(2, 'b')}", name, **given)
    said = "`cache-enabled` of the catalog `lake` is true in the profile: of a table that others write to, a"
    assert scenario.run().log.count(said) == 1
    for number in (3, 4, 5):
        for name, given in (("t", by_partition), ("whole", config)):
            # Another writer's column and row, without Spark, and a new column of the model.
            table = scenario.table(name)
            with table.update_schema() as update:
                update.add_column(f"theirs_{number}", StringType())
            row = {"id": pa.array([number * 10], pa.int32()), "p": [f"x{number}"]}
            table.append(pa.table({**row, f"theirs_{number}": ["theirs"]}))
            scenario.model(f"{rows.format(number, 'b')}, {number} as c{number}", name, **given)
        scenario.run()
    found = scenario.table().scan(selected_fields=("id", "p", "c3", "c4", "c5", "theirs_4")).to_arrow()
    assert sorted(found.to_pylist(), key=lambda row: row["id"]) == [
        {"id": n, "p": p, "c3": None, "c4": None, "c5": c5, "theirs_4": theirs}
        for n, p, c5, theirs in (
            (1, "a", None, None),
            (5, "b", 5, None),
            (30, "x3", None, None),
            (40, "x4", None, "theirs"),
            (50, "x5", None, None),
        )
    ]
    assert scenario.table("whole").scan(selected_fields=("id", "c5")).to_arrow().to_pylist() == [
        {"id": 5, "c5": 5}
    ]
