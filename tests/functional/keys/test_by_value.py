"""Keys are compared as the table stores them: structs by name, whatever order the model returns."""

from typing import Any

import pytest

from tests.functional.harness import Scenario

# A key that is the same by name and another by position, and the other way round.
BEFORE = (
    "select named_struct('a', 1, 'b', 2) as k, 'old' as v, 'kept' as gone "
    "union all select named_struct('a', 2, 'b', 1), 'old', 'kept' "
    "union all select named_struct('a', 3, 'b', cast(null as int)), 'old', 'kept' "
    "union all select cast(null as struct<a: int, b: int>), 'old', 'kept'"
)
AFTER = (
    "select named_struct('B', 1, 'a', 2L) as K, 'new' as v "
    "union all select named_struct('B', cast(null as int), 'a', 3L), 'new'"
)
NULL_KEY = " union all select cast(null as struct<B: int, a: bigint>), 'new'"


def read(scenario: Scenario, name: str) -> list[dict[str, Any]]:
    """The rows of a table in the order of their texts."""
    return sorted(scenario.table(name).scan().to_arrow().to_pylist(), key=str)


@pytest.mark.parametrize("null_key", [False, True])
def test_a_struct_is_compared_by_name(scenario: Scenario, null_key: bool) -> None:
    """The fields come in another order, case and type; with NULL in a key, another form of SQL is used."""
    options: dict[str, dict[str, Any]] = {
        "plain": {},
        "keeping": {"removed_columns": "keep"},
        "merged": {"incremental_strategy": "merge"},
        "direct": {"publish": "direct"},
    }
    for name, option in options.items():
        scenario.model(BEFORE, name, unique_key="k", **option)
    scenario.run()
    for name, option in options.items():
        scenario.model(AFTER + NULL_KEY * null_key, name, unique_key="k", **option)
    scenario.run()
    for name in options:
        kept = "kept" if name in ("keeping", "merged") else None
        assert read(scenario, name) == [
            {"k": None, "v": "new" if null_key else "old", "gone": kept if null_key else "kept"},
            {"k": {"a": 1, "b": 2}, "v": "old", "gone": "kept"},
            {"k": {"a": 2, "b": 1}, "v": "new", "gone": kept},
            {"k": {"a": 3, "b": None}, "v": "new", "gone": kept},
        ], name
        assert scenario.types(name)["k"] == "struct<4: a: optional long, 5: b: optional int>"


def test_structs_inside_a_list_in_a_composite_key_are_compared_by_name(scenario: Scenario) -> None:
    key: dict[str, Any] = {"unique_key": ["id", "k"]}
    before = (
        "select 1 as id, array(named_struct('a', 1, 'b', 2)) as k, 'old' as v "
        "union all select 1, array(named_struct('a', 2, 'b', 1)), 'old' "
        "union all select 2, array(named_struct('a', 1, 'b', 2)), 'old'"
    )
    for name in ("t", "m"):
        scenario.model(before, name, **key, incremental_strategy="merge" if name == "m" else None)
    scenario.run()
    # `c` is not in the table and is left out: two rows that differ in it only have one key.
    again = "select 1 as id, array(named_struct('c', 9, 'b', 1, 'a', 2)) as k, 'new' as v"
    for name in ("t", "m"):
        strategy = "merge" if name == "m" else None
        scenario.model(again, name, **key, incremental_strategy=strategy, on_schema_change="ignore")
    scenario.run()
    for name in ("t", "m"):
        assert read(scenario, name) == [
            {"id": 1, "k": [{"a": 1, "b": 2}], "v": "old"},
            {"id": 1, "k": [{"a": 2, "b": 1}], "v": "new"},
            {"id": 2, "k": [{"a": 1, "b": 2}], "v": "old"},
        ], name
    twice = again + " union all select 1, array(named_struct('c', 8, 'b', 1, 'a', 2)), 'twice'"
    scenario.model(twice, "m", **key, incremental_strategy="merge", on_schema_change="ignore")
    before = read(scenario, "m")
    message = scenario.fail("--select", "m").message
    assert "The model returns several rows with the same unique_key" in message
    assert "[{2, 1}]" in message
    # Spark has found them while it loaded the branch, which came and went.
    assert read(scenario, "m") == before
    assert set(scenario.table("m").metadata.refs) == {"main"}


def test_numbers_are_compared_as_they_are_stored(scenario: Scenario) -> None:
    """The table's type is wider than the model's, or becomes it; zero has two signs and NaN equals itself."""
    cases = {
        "wider": ("select cast(1 as bigint) as id, 'old' as v", "select 1 as id, 'new' as v", [(1, "new")]),
        "widened": (
            "select 1 as id, 'old' as v",
            "select cast(1 as bigint) as id, 'new' as v",
            [(1, "new")],
        ),
        "scaled": (
            "select cast(1.5 as decimal(10,4)) as id, 'old' as v",
            "select cast(1.50 as decimal(4,2)) as id, 'new' as v",
            [("1.5000", "new")],
        ),
        "zero": (
            "select -0.0D as id, 'old' as v union all select cast('NaN' as double), 'old'",
            "select 0.0D as id, 'new' as v union all select cast('NaN' as double), 'new'",
            [("0.0", "new"), ("nan", "new")],
        ),
        "char": (
            "select cast('a' as char(3)) as id, 'old' as v",
            "select cast('a' as char(3)) as id, 'new' as v",
            [("a", "new")],
        ),
    }
    for name, (before, _, _) in cases.items():
        scenario.model(before, name)
    scenario.run()
    for name, (_, again, _) in cases.items():
        scenario.model(again, name)
    scenario.run()
    found = {name: [(str(r["id"]), r["v"]) for r in read(scenario, name)] for name in cases}
    assert found == {name: [(str(i), v) for i, v in rows] for name, (_, _, rows) in cases.items()}


def test_a_key_that_is_no_utf_8_is_replaced(scenario: Scenario) -> None:
    """Iceberg's bounds of such keys, in a batch or a file of the table, are greater or less than they are."""
    alone, between = ["C3", "61FF", "FF"], ["61", "C3", "C480"]
    models = {
        "replaced": ("delete+insert", alone, alone),
        "merged": ("merge", alone, alone),
        "replaced_between": ("delete+insert", ["C3"], between),
        "merged_between": ("merge", ["C3"], between),
    }
    for v in (1, 2):
        for name, (strategy, *keys) in models.items():
            rows = ", ".join(f"(X'{key}')" for key in keys[v - 1])
            sql = f"select cast(k as string) as id, {v} as v from values {rows} as r(k)"
            scenario.model(sql, name, incremental_strategy=strategy)
        scenario.run()
    for name, (_, _, keys) in models.items():
        found = scenario.sql(f"select hex(id), v from {scenario.relation(name)} order by 1")
        assert found == [(key, 2) for key in sorted(keys)], name
