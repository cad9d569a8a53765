"""Two batches of a model, and what each strategy makes of them."""

import pytest

from tests.functional.harness import Scenario

PUBLISH = pytest.mark.parametrize("publish", ["branch", "direct"])
OLD = "select 1 as id, 'a' as v, 10 as gone union all select 2, 'b', 20"
NEW = "select 2 as id, 'B' as v, 7 as n union all select 3, 'C', 8"
APPENDED = [(1, "a", 10, None), (2, "B", None, 7), (2, "b", 20, None), (3, "C", None, 8)]
REPLACED = [(1, "a", 10, None), (2, "B", None, 7), (3, "C", None, 8)]
KEPT = [(1, "a", 10, None), (2, "B", 20, 7), (3, "C", None, 8)]
V_NOT_UPDATED = [(1, "a", 10, None), (2, "b", 20, 7), (3, "C", None, 8)]
OVERWRITTEN = [(2, "B", None, 7), (3, "C", None, 8)]


def history(scenario: Scenario, name: str = "t") -> list[int]:
    """The snapshots that readers of the table have seen, oldest first."""
    return [entry.snapshot_id for entry in scenario.table(name).metadata.snapshot_log]
