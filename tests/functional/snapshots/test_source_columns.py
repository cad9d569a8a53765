"""Snapshots of a source that gains, loses and widens columns."""

from datetime import datetime
from typing import Any

import pytest

from dbt.adapters.sparkevolve.iceberg.schema_history import schema_history
from tests.functional.harness import Scenario
from tests.functional.snapshots.taking import snapshot, take, versions


@pytest.mark.parametrize("hard_deletes", ["ignore", "invalidate", "new_record"])
@pytest.mark.core
def test_a_source_gains_loses_and_widens_columns(scenario: Scenario, hard_deletes: str) -> None:
    config = {"hard_deletes": hard_deletes}
    snapshot(scenario, "select 1 as id, 'a' as v, 5 as n union all select 2, 'b', 6", **config)
    two = {"rows_affected": 2, "rows_inserted": 2}
    first = take(scenario)
    assert first.done("snap") == ("OK 2 rows", {**two, **scenario.at("snap")})
    assert first.done("src") == ("OK 2 rows", {**two, **scenario.at("src")})
    ids = scenario.field_ids("snap")
    snapshot(scenario, "select 1 as id, 7000000000 as n, 'new' as w union all select 3, 8, 'three'", **config)
    second = take(scenario)
    # A new version and a new row; the version before it is closed, and that of a row that was deleted.
    inserted, updated = {"ignore": (2, 1), "invalidate": (2, 2), "new_record": (3, 2)}[hard_deletes]
    assert second.done("snap") == (
        f"OK {inserted + updated} rows, +1 column, 1 widened, 1 padded",
        {
            "rows_affected": inserted + updated,
            "rows_inserted": inserted,
            "rows_updated": updated,
            "rows_deleted": 0,
            "columns_added": ["`w`"],
            "columns_widened": ["`n`"],
            "columns_padded": ["`v`"],
            **scenario.at("snap"),
        },
    )
    snapshots = [s.snapshot_id for s in scenario.table("src").metadata.snapshots]
    lost = (
        f"{scenario.relation('src')}: the table is replaced, and loses column `v`, which the model no longer "
        f"has. What was there is in snapshot {snapshots[0]} until that expires."
    )
    columns = {"columns_added": ["`w`"], "columns_lost": ["`v`"], "warnings": [lost]}
    found = second.done("src")
    assert found == ("OK 2 rows, +1 column, 1 lost", {**two, **columns, **scenario.at("src")})
    assert lost in second.warnings
    assert "; column `v` is not in the source, padded with NULL" in second.log
    for name, runs in (("snap", [first, second]), ("src", [first, second])):
        found = schema_history(scenario.table(name))
        assert [schema["invocation_id"] for schema in found] == [run.invocation_id for run in runs], name
    assert scenario.types("snap")["n"] == "long"
    after = scenario.field_ids("snap")
    assert {name: after[name] for name in ids} == ids
    found = [(*row[:-1], row[-1] is None) for row in versions(scenario, "id", "v", "n", "w")]
    deleted = {
        "ignore": [(2, "b", 6, None, True)],
        "invalidate": [(2, "b", 6, None, False)],
        "new_record": [(2, "b", 6, None, False), (2, None, 6, None, True)],
    }[hard_deletes]
    assert found == [
        (1, "a", 5, None, False),
        (1, None, 7000000000, "new", True),
        *deleted,
        (3, None, 8, "three", True),
    ]
    schemas = scenario.schemas("snap")
    take(scenario)
    assert scenario.schemas("snap") == schemas
    assert scenario.tables() == ["snap", "src"]


def test_a_struct_gains_and_loses_fields(scenario: Scenario) -> None:
    snapshot(scenario, "select 1 as id, named_struct('x', 1, 'gone', 2) as s union all select 2, null")
    take(scenario)
    then = "select 1 as id, named_struct('y', 3, 'x', 1) as s union all select 2, null"
    # Fields are added before dbt looks for the key.
    before = scenario.state("snap")
    snapshot(scenario, then, unique_key="idd")
    message = scenario.dbt("build").message
    assert (
        "Spark cannot evaluate the snapshot's `unique_key` (idd) over the columns of its source, or"
        in message
    )
    assert "`idd` cannot be resolved" in message
    assert scenario.state("snap") == before
    snapshot(scenario, then)
    take(scenario)
    assert [(*row[:-1], row[-1] is None) for row in versions(scenario, "id", "s")] == [
        (1, {"x": 1, "gone": 2, "y": None}, False),
        (1, {"x": 1, "gone": None, "y": 3}, True),
        (2, None, True),
    ]


def test_a_composite_key_leaves_no_column_of_its_own(scenario: Scenario) -> None:
    snapshot(scenario, "select 1 as a, 2 as b, 'x' as v", unique_key=["a", "b"])
    take(scenario)
    columns = scenario.columns("snap")
    snapshot(scenario, "select 1 as a, 2 as b, 'y' as v, 3 as n", unique_key=["a", "b"])
    take(scenario)
    assert scenario.columns("snap") == [*columns, "n"]
    assert [(*row[:-1], row[-1] is None) for row in versions(scenario, "a", "b", "v", "n")] == [
        (1, 2, "x", None, False),
        (1, 2, "y", 3, True),
    ]


def test_a_source_may_have_columns_that_are_called_like_dbts_own_in_a_batch(scenario: Scenario) -> None:
    snapshot(scenario, "select 1 as id, 'a' as dbt_unique_key_1, 'x' as dbt_change_type")
    take(scenario)
    snapshot(scenario, "select 1 as id, 'b' as dbt_unique_key_1")
    take(scenario)
    found = [
        (*row[:-1], row[-1] is None)
        for row in versions(scenario, "id", "dbt_unique_key_1", "dbt_change_type")
    ]
    assert found == [(1, "a", "x", False), (1, "b", None, True)]


def test_a_snapshot_that_would_lose_something_is_refused(scenario: Scenario) -> None:
    snapshot(scenario, "select 1 as id, 5 as n")
    take(scenario)
    before = scenario.state("snap")
    snapshot(scenario, "select 1 as id, 'text' as n")
    run = scenario.dbt("build", "--full-refresh")
    assert not run.success
    assert "Column `n` is int in the table, and the model returns string" in run.message
    assert scenario.state("snap") == before


def test_dbts_own_columns_may_be_dates(scenario: Scenario) -> None:
    """`updated_at` is a date, and dbt's time of a deletion is a timestamp: Spark casts it as it writes."""
    config = {"strategy": "timestamp", "updated_at": "day", "hard_deletes": "invalidate", "check_cols": None}
    snapshot(
        scenario, "select 1 as id, date'2024-01-01' as day union all select 2, date'2024-01-01'", **config
    )
    take(scenario)
    snapshot(scenario, "select 1 as id, date'2024-01-02' as day", **config)
    take(scenario)
    assert {name: scenario.types("snap")[name] for name in ("dbt_valid_from", "dbt_valid_to")} == {
        "dbt_valid_from": "date",
        "dbt_valid_to": "date",
    }
    found = versions(scenario, "id", "day")
    assert [(key, str(day)) for key, day, _ in found] == [
        (1, "2024-01-01"),
        (1, "2024-01-02"),
        (2, "2024-01-01"),
    ]
    assert [str(end) for *_, end in found[:2]] == ["2024-01-02", "None"]
    assert found[2][-1] is not None


@pytest.mark.parametrize("hard_deletes", ["ignore", "invalidate", "new_record"])
def test_structs_are_compared_and_stored_by_the_names_of_their_fields(
    scenario: Scenario, hard_deletes: str
) -> None:
    """Fields in another order are no change; values that trade places are one."""
    config = {
        "hard_deletes": hard_deletes,
        "check_cols": ["S", "L", "n"],
        "dbt_valid_to_current": "to_date('9999-12-31')",
    }
    rows = "select * from values (1, 1, 2), (2, 1, 2), (3, 3, 3), (4, 5, 6) as v(id, a, b)"
    before = "struct(a, b) as s, array(struct(a, b)) as l, a + b as n"
    snapshot(scenario, f"select id, {before} from ({rows})", **config)
    take(scenario)
    # The second one has what the first one had at each position; the last one is gone.
    rows = "select * from values (1, 1, 2), (2, 2, 1), (3, 3, 3) as v(id, a, b)"
    after = "named_struct('B', b, 'a', a) as S, array(named_struct('b', b, 'A', a)) as L, a + b as N"
    snapshot(scenario, f"select {after}, ID from ({rows})", **config)
    take(scenario)
    take(scenario)
    assert scenario.columns("snap")[:4] == ["id", "s", "l", "n"]
    found = [(*row[:-1], str(row[-1])) for row in versions(scenario, "id", "s", "l", "n")]

    def version(key: int, a: int, b: int, n: int) -> tuple[Any, ...]:
        return (key, {"a": a, "b": b}, [{"a": a, "b": b}], n)

    open_ = [row[:-1] for row in found if row[-1].startswith("9999")]
    closed = [row[:-1] for row in found if not row[-1].startswith("9999")]
    last = {"ignore": [version(4, 5, 6, 11)], "invalidate": [], "new_record": [version(4, 5, 6, 11)]}
    assert open_ == [
        version(1, 1, 2, 3),
        version(2, 2, 1, 3),
        version(3, 3, 3, 6),
        *last[hard_deletes],
    ]
    gone = [] if hard_deletes == "ignore" else [version(4, 5, 6, 11)]
    assert closed == [version(2, 1, 2, 3), *gone]


@pytest.mark.parametrize("strategy", ["check", "timestamp"])
def test_nested_fields_come_go_and_widen(scenario: Scenario, strategy: str) -> None:
    config = {"strategy": strategy, "hard_deletes": "new_record"}
    if strategy == "timestamp":
        config |= {"updated_at": "at", "check_cols": None}

    def source(day: int, *rows: str) -> str:
        at = f"timestamp'2024-01-0{day} 00:00:00Z' as at"
        snapshot(scenario, " union all ".join(f"select {row}, {at}" for row in rows), **config)
        return take(scenario).log

    source(1, "1 as id, array(named_struct('x', 1, 'y', 2)) as l", "2, array(named_struct('x', 3, 'y', 4))")
    ids = scenario.field_ids("snap")
    log = source(2, "1 as id, array(named_struct('z', named_struct('q', 9), 'x', 5000000000)) as l")
    assert log.count(f"{scenario.relation('snap')}: add field `l`.`element`.`z`") == 1
    source(3, "1 as id, array(named_struct('y', 7, 'x', 1)) as l")
    assert scenario.field_ids("snap") == ids
    found = [(*row[:-1], row[-1] is None) for row in versions(scenario, "id", "l", "dbt_is_deleted")]

    def element(x: int, y: int | None, q: int | None = None) -> list[dict[str, Any]]:
        return [{"x": x, "y": y, "z": None if q is None else {"q": q}}]

    assert found == [
        (1, element(1, 2), "False", False),
        (1, element(5000000000, None, 9), "False", False),
        (1, element(1, 7), "False", True),
        (2, element(3, 4), "False", False),
        (2, element(3, 4), "True", True),
    ]
    schemas = scenario.schemas("snap")
    take(scenario)
    assert (scenario.schemas("snap"), scenario.tables()) == (schemas, ["snap", "src"])
    assert len(versions(scenario, "id")) == 5


def test_snapshots_of_an_evolving_model(scenario: Scenario) -> None:
    """dbt-spark's snapshots over a table that gains a column and later pads one."""
    for name, strategy in {
        "by_time": "strategy='timestamp', updated_at='at'",
        "by_check": "strategy='check', check_cols='all'",
    }.items():
        scenario.file(
            f"snapshots/{name}.sql",
            f"{{% snapshot {name} %}}\n"
            f"{{{{ config(target_schema='{scenario.schema}', unique_key='id', {strategy}) }}}}\n"
            "select * from {{ ref('t') }}\n{% endsnapshot %}\n",
        )

    def build() -> None:
        run = scenario.dbt("build")
        assert run.success, run.message or run.log

    def history(name: str) -> list[tuple[Any, ...]]:
        fields = [*scenario.columns(), "dbt_valid_to"]
        rows = scenario.table(name).scan().to_arrow().to_pylist()
        found = [
            tuple(
                row.get(field) is not None if field == "dbt_valid_to" else row.get(field) for field in fields
            )
            for row in rows
        ]
        return sorted(found, key=str)

    early, late = datetime(2024, 1, 1), datetime(2024, 2, 1)
    scenario.model(f"select id, timestamp_ntz'{early}' as at, 'a' as v from values (1), (2) as x(id)")
    build()
    for name in ("by_time", "by_check"):
        assert history(name) == [(1, early, "a", False), (2, early, "a", False)], name
    scenario.model(f"select 1 as id, timestamp_ntz'{late}' as at, 'b' as v, 'new' as n")
    build()
    assert scenario.rows() == [(1, late, "b", "new"), (2, early, "a", None)]
    changed = [(1, early, "a", None, True), (1, late, "b", "new", False)]
    assert history("by_time") == [*changed, (2, early, "a", None, False)]
    # dbt's check strategy takes a new column for a change of each row.
    assert history("by_check") == [*changed, (2, early, "a", None, False), (2, early, "a", None, True)]
    for name in ("by_time", "by_check"):
        assert scenario.columns(name)[:3] == ["id", "at", "v"], name
        assert scenario.schemas(name) == 2, name
    assert scenario.tables() == ["by_check", "by_time", "t"]
