"""Structs that are called as an alias in our statements, with fields that are called as columns."""

import json
from typing import Any

from tests.functional.harness import Scenario

NAMES = ("DBT_INTERNAL_DEST", "DBT_INTERNAL_SOURCE", "dbt_internal_previous", "DBT_INTERNAL_MODEL")
OTHERS = ("old", "new", "letter", "entry", "key_0", "json", "row")
# What no key and no value of the tests is, but for the first two.
FIELD = {"id": 2, "v": "b", "p": "b"}


def with_structs(rows: str, names: tuple[str, ...] = NAMES) -> str:
    """Return a query of rows with structs that have fields of the same names: where `id` is 2, its values."""
    fields = "named_struct('id', 2, 'v', 'b', 'p', 'b')"
    items = ", ".join(f"{fields} as `{name}`" for name in names)
    return f"select id, v, p, {items} from values {rows} as r(id, v, p)"


def short_rows(scenario: Scenario, name: str) -> list[tuple[Any, ...]]:
    """Return the rows without their structs, none of which has changed."""
    found = scenario.table(name).scan().to_arrow().to_pylist()
    columns = ("id", "v", "p")
    assert all(value == FIELD for row in found for key, value in row.items() if key not in columns)
    rows = [tuple(row[column] for column in columns) for row in found]
    return sorted(rows, key=lambda row: [(value is not None, str(value)) for value in row])


def test_a_struct_is_not_taken_for_the_table_or_the_batch(scenario: Scenario) -> None:
    first = with_structs("(1, 'a', 'a'), (2, 'a', 'b'), (cast(null as int), 'a', 'c')")
    then = with_structs("(2, 'b', 'b'), (cast(null as int), 'b', 'd')")
    audits = {"audits": ["DBT_INTERNAL_DEST.v in ('a', 'b')", "DBT_INTERNAL_DEST.DBT_INTERNAL_DEST.id = 2"]}
    models: dict[str, dict[str, Any]] = {
        "replaced": audits,
        "merged": {**audits, "incremental_strategy": "merge"},
        "kept": {**audits, "removed_columns": "keep"},
        "limited": {**audits, "incremental_predicates": ["DBT_INTERNAL_DEST.v = 'a'"]},
        "rowwise": {
            "on_bad_rows": "dead_letter",
            "audits": [
                {"sql": "DBT_INTERNAL_DEST.v <> 'b' or DBT_INTERNAL_DEST.id is null", "severity": "row"}
            ],
        },
    }
    for name, config in models.items():
        scenario.model(first, name, **config)
    scenario.model(
        first,
        "overwritten",
        incremental_strategy="insert_overwrite",
        partition_by="p",
        unique_key=None,
        audits=["DBT_INTERNAL_DEST.v in ('a', 'b')"],
    )
    scenario.run()
    scenario.sql(f"alter table {scenario.relation('overwritten')} add partition field bucket(2, v)")
    scenario.sql(f"alter table {scenario.relation('overwritten')} drop partition field bucket(2, v)")
    for name in (*models, "overwritten"):
        path = scenario.folder / "models" / f"{name}.sql"
        path.write_text(path.read_text().replace(first, then))
    path = scenario.folder / "models" / "kept.sql"
    path.write_text(path.read_text().replace("select id, v, p, ", "select id, p, "))
    scenario.run()
    expected = [(None, "b", "d"), (1, "a", "a"), (2, "b", "b")]
    assert {name: short_rows(scenario, name) for name in (*models, "overwritten")} == {
        "replaced": expected,
        "merged": expected,
        "kept": [(None, "a", "d"), (1, "a", "a"), (2, "a", "b")],
        "limited": expected,
        "rowwise": [(None, "b", "d"), (1, "a", "a"), (2, "a", "b")],
        "overwritten": [(None, "a", "c"), (None, "b", "d"), (1, "a", "a"), (2, "b", "b")],
    }


def test_a_struct_is_not_taken_for_one_while_rows_are_set_aside_replayed_and_filled(
    scenario: Scenario,
) -> None:
    names = (*NAMES, *OTHERS)
    bad = {"audits": [{"sql": "v <> 'b'", "severity": "row"}], "on_bad_rows": "dead_letter"}
    scenario.model(with_structs("(1, 'a', 'a'), (2, 'b', 'b'), (3, 'b', 'c')", names), **bad)
    scenario.run()
    assert short_rows(scenario, "t") == [(1, "a", "a")]
    scenario.model(with_structs("(1, 'c', 'a')", names), on_bad_rows="dead_letter")
    scenario.run()
    # With a row of the key that is newer than the letter.
    newer = with_structs("(2, 'd', 'd')", names)
    scenario.sql(f"insert into {scenario.relation()} {newer}")
    arguments = json.dumps({"model": "t"})
    run = scenario.dbt("run-operation", "replay_dead_letters", "--args", arguments)
    assert run.success, run.message
    assert f"{scenario.relation()}: 1 dead letter of {scenario.relation('t_dlt')} loaded" in run.log
    assert "1 stays: the table has rows of this key that were loaded after it" in run.log
    assert short_rows(scenario, "t") == [(1, "c", "a"), (2, "d", "d"), (3, "b", "c")]

    filling = {"model": "t", "column": "DBT_INTERNAL_DEST.v", "only_null": False, "rows_per_batch": 2}
    filling["value"] = "concat(v, DBT_INTERNAL_DEST.DBT_INTERNAL_DEST.v, new.v, DBT_INTERNAL_DEST.p)"
    run = scenario.dbt("run-operation", "backfill_column", "--args", json.dumps(filling))
    assert run.success, run.message
    found = scenario.table().scan().to_arrow().to_pylist()
    assert {row["id"]: (row["v"], row["DBT_INTERNAL_DEST"]) for row in found} == {
        1: ("c", {**FIELD, "v": "cbba"}),
        2: ("d", {**FIELD, "v": "dbbd"}),
        3: ("b", {**FIELD, "v": "bbbc"}),
    }
