"""Snapshots of a source whose column becomes another type: the old one is retired and replaced."""

from typing import Any

import pytest

from tests.functional.harness import Scenario
from tests.functional.snapshots.taking import snapshot, take, versions


def fail(scenario: Scenario) -> str:
    run = scenario.dbt("build", "--full-refresh")
    assert not run.success
    return str(run.message)


def open_versions(scenario: Scenario, *columns: str) -> list[tuple[Any, ...]]:
    return [row[:-1] for row in versions(scenario, *columns) if row[-1] is None]


KEYS: list[tuple[str | list[str], dict[str, object]]] = [
    ("id", {}),
    ("ID", {"strategy": "timestamp", "updated_at": "ts", "check_cols": None}),
    (["region", "`id`"], {"hard_deletes": "invalidate"}),
    ("concat(id, '-', region)", {"hard_deletes": "new_record", "check_cols": ["region"]}),
]


@pytest.mark.core
def test_a_key_is_not_replaced(scenario: Scenario) -> None:
    """It would be NULL in all versions: unchanged ones would stay open, and the next run open others."""
    rest = "'eu' as region, timestamp'2024-01-01 00:00:00' as ts"
    for key, config in KEYS:
        snapshot(scenario, f"select '1' as id, {rest}", unique_key=key, **config)
        take(scenario)
        before = scenario.state("snap")
        renames = {"id": "id_old"}
        snapshot(scenario, f"select 1 as id, {rest}", unique_key=key, column_renames=renames, **config)
        message = fail(scenario)
        part = key[1] if isinstance(key, list) else key
        assert (
            f"The batch cannot be loaded into {scenario.relation('snap')}, and nothing was written to it:\n"
            "    * `column_renames` wants `id` (string) to become `id_old`, and the model returns `id` as "
            f"int, which would be a new column. The snapshot's unique_key has it ({part}), and it would be "
            "NULL in all versions that are there: none of them would be found again, so that they would stay "
            "open, with others beside them. Cast it to string in the snapshot's query; or return it under a "
            "new name, fill that for old versions, make that the `unique_key`, and retire the old name."
        ) in message
        assert scenario.state("snap") == before
        # The first remedy.
        snapshot(scenario, f"select cast(1 as string) as id, {rest}", unique_key=key, **config)
        take(scenario)
        assert open_versions(scenario, "id", "region") == [("1", "eu")]
        assert len(versions(scenario, "id")) == 1
        scenario.sql(f"drop table {scenario.relation('snap')}")


@pytest.mark.parametrize("hard_deletes", ["ignore", "invalidate", "new_record"])
def test_each_row_has_a_new_version_at_once_where_the_column_is_compared(
    scenario: Scenario, hard_deletes: str
) -> None:
    config: dict[str, Any] = {"hard_deletes": hard_deletes}
    snapshot(
        scenario,
        "select * from values (1, '6', named_struct('z', 'a')), (2, 'ten', null), (3, '9', null) as "
        "s(id, n, s)",
        **config,
    )
    take(scenario)
    ids = scenario.field_ids("snap")
    # '6' equals 6 for Spark, and structs of two types cannot be compared.
    snapshot(
        scenario,
        "select * from values (1, 6, named_struct('z', 7)), (2, 60, null) as s(id, n, s)",
        column_renames={"n": "n_old", "s.z": "z_old"},
        **config,
    )
    run = take(scenario)
    after = scenario.field_ids("snap")
    assert (after["n_old"], after["n"] > max(ids.values())) == (ids["n"], True)
    assert "rename `n` to `n_old`" in run.log
    told = [text for text in run.warnings if "`n` is a new column of the type int" in text]
    assert len(told) == 1
    assert told[0].startswith(f"{scenario.relation('snap')}: `n` is")
    gone = {
        "ignore": [(3, "9", None, None, True)],
        "invalidate": [(3, "9", None, None, False)],
        "new_record": [(3, "9", None, None, False), (3, None, None, None, True)],
    }[hard_deletes]
    found = [(*row[:-1], row[-1] is None) for row in versions(scenario, "id", "n_old", "n", "s")]
    assert found == [
        (1, "6", None, {"z_old": "a", "z": None}, False),
        (1, None, 6, {"z_old": None, "z": 7}, True),
        (2, "ten", None, None, False),
        (2, None, 60, None, True),
        *gone,
    ]
    schemas = scenario.schemas("snap")
    take(scenario)
    again = [(*row[:-1], row[-1] is None) for row in versions(scenario, "id", "n_old", "n", "s")]
    assert again == found
    assert scenario.schemas("snap") == schemas


def test_a_column_that_is_not_compared_is_filled_by_the_next_change(scenario: Scenario) -> None:
    """The same as of a column that is new; `updated_at` is compared by dbt's own columns."""
    first, second = "timestamp'2024-01-01 00:00:00'", "timestamp'2024-02-01 00:00:00'"
    config = {"strategy": "timestamp", "updated_at": "ts", "check_cols": None}
    snapshot(scenario, f"select * from values (1, {first}, 'a'), (2, {first}, 'b') as s(id, ts, n)", **config)
    take(scenario)
    snapshot(
        scenario,
        f"select * from values (1, {first}, 10), (2, {second}, 20) as s(id, ts, n)",
        column_renames={"n": "n_old"},
        **config,
    )
    for _ in range(2):
        take(scenario)
        assert open_versions(scenario, "id", "n_old", "n") == [(1, "a", None), (2, None, 20)]
        assert len(versions(scenario, "id")) == 3


def test_when_a_row_was_updated_is_replaced(scenario: Scenario) -> None:
    """Dbt compares it with a column of its own, which keeps the table's type."""
    config = {"strategy": "timestamp", "updated_at": "ts", "check_cols": None}
    day = "'2024-01-01 00:00:00'"
    snapshot(scenario, f"select * from values (1, {day}), (2, {day}) as s(id, ts)", **config)
    take(scenario)
    sql = f"select * from values (1, timestamp{day}), (2, timestamp'2025-01-01 00:00:00') as s(id, ts)"
    snapshot(scenario, sql, column_renames={"ts": "ts_old"}, **config)
    for _ in range(2):
        take(scenario)
        found = [(row[0], row[1], row[-1]) for row in versions(scenario, "id", "ts_old")]
        assert found == [(1, day[1:-1], None), (2, day[1:-1], "2025-01-01 00:00:00"), (2, None, None)]
