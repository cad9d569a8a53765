"""Dead letters, defaults, backfill, restore and replacement, once each in every catalog that is a server."""

import json
from typing import Any

import pytest

from tests.functional.duckdb_reader import duckdb_rows
from tests.functional.harness import Run, Scenario


def operation(scenario: Scenario, name: str, **args: Any) -> Run:
    """Run an operation on the model `t`, which has to succeed."""
    run = scenario.dbt("run-operation", name, "--args", json.dumps({"model": "t", **args}))
    assert run.success, run.message or run.log
    return run


def work(scenario: Scenario, version: int, *, stores_defaults: bool, restores: bool) -> None:
    """Do what these features are for, and look at rows, columns and field ids."""
    config: dict[str, Any] = {
        "on_bad_rows": "dead_letter",
        "pad_with": "default",
        "column_defaults": {"status": "'new'"},
        "tblproperties": {"format-version": str(version)},
    }
    scenario.model("select 1 as id, 'x' as s, 5 as n, cast(null as string) as status", **config)
    scenario.run()
    is_stored = stores_defaults and version > 2
    (status,) = (f for f in scenario.table().schema().fields if f.name == "status")
    assert status.write_default == ("new" if is_stored else None)
    # One row cannot be placed; the other one is padded with the default.
    text = "select * from values (2, 'y', '6'), (3, 'z', 'six') as rows(id, s, n)"
    scenario.model(text, **config)
    run = scenario.run()
    assert "1 of 2 rows could not be placed and is in" in run.log
    assert scenario.rows() == [(1, "x", 5, None), (2, "y", 6, "new")]
    assert len(scenario.rows("t_dlt")) == 1

    log = operation(scenario, "backfill_column", column="status", value="upper(s)").log
    assert "is finished: 1 row in 1 batch" in log
    assert scenario.rows() == [(1, "x", 5, "X"), (2, "y", 6, "new")]

    # The column that the letter was for is replaced by one that takes it, and the letter goes in.
    retired = {**config, "column_renames": {"n": "n_old"}}
    scenario.model(text.replace("(3, 'z', 'six')", "(4, 'v', 'four')"), **{**retired, "on_bad_rows": "fail"})
    scenario.run()
    ids = scenario.field_ids()
    assert (ids["n_old"], ids["n"], scenario.types()["n"]) == (3, 5, "string")
    scenario.model(text, **retired)
    stays = "1 stays: `n_old`: the value does not convert to int without loss"
    assert stays in operation(scenario, "replay_dead_letters").log
    # It was for the column of before; it is for today's from today on.
    scenario.sql(f"update {scenario.relation('t_dlt')} set loadedAt = now()")
    assert "1 dead letter of" in operation(scenario, "replay_dead_letters").log
    columns = ("id", "s", "n_old", "status", "n")
    rows = [
        (1, "x", 5, "X", None),
        (2, "y", None, "new", "6"),
        (3, "z", None, "new", "six"),
        (4, "v", None, "new", "four"),
    ]
    assert scenario.columns() == list(columns)
    assert [(row[0], row[1], *row[2:]) for row in scenario.rows()] == rows
    assert scenario.rows("t_dlt") == []

    if restores:
        # The last one: a Hive metastore compares the types of columns by position.
        scenario.sql(f"alter table {scenario.relation()} drop column n")
        operation(scenario, "restore_column", column="n")
        assert scenario.field_ids()["n"] == 5
        assert scenario.rows() == rows
    assert sorted(duckdb_rows(scenario.table())) == rows


def test_in_a_server(server_scenario: Scenario) -> None:
    work(server_scenario, 3, stores_defaults=True, restores=True)


def test_in_a_hive_metastore(hive_scenario: Scenario) -> None:
    work(hive_scenario, 2, stores_defaults=True, restores=True)


def test_over_thrift(scenario: Scenario, method: str, catalog_properties: dict[str, str]) -> None:
    if method != "thrift":
        pytest.skip("needs --profile thrift")
    # In another catalog than REST, a table of version 3 takes neither a replay nor a restore over Thrift.
    is_rest = catalog_properties["type"] == "rest"
    work(scenario, 3 if is_rest else 2, stores_defaults=is_rest, restores=True)
