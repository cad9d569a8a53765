"""Catalogs that are servers: Iceberg's own REST server, PostgreSQL and MariaDB."""

import re
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.types import StringType
from sqlalchemy.engine import make_url

from dbt.adapters.sparkevolve.iceberg import columns, publication
from tests.functional.harness import Scenario


def is_clean(scenario: Scenario) -> bool:
    return scenario.tables() == ["t"] and set(scenario.table().metadata.refs) == {"main"}


@pytest.mark.parametrize("publish", ["branch", "direct"])
def test_a_model_that_evolves(server_scenario: Scenario, publish: str) -> None:
    scenario = server_scenario
    config = {"publish": publish}
    scenario.model("select 1 as id, 10 as v, named_struct('x', 1) as s, 'g' as gone, 1 as old", **config)
    scenario.run()
    scenario.model(
        "select * from values (1, 5000000000, named_struct('X', 2, 'y', 3), 4, 'n'), (2, 20, null, 5, 'm') "
        "as source(ID, V, S, new, added)",
        column_renames={"old": "new"},
        **config,
    )
    run = scenario.run()
    assert run.log.count("add column `added` string") == 1
    assert scenario.field_ids() == {"id": 1, "v": 2, "s": 3, "gone": 4, "new": 5, "added": 8}
    assert scenario.types()["v"] == "long"
    assert scenario.rows() == [
        (1, 5000000000, {"x": 2, "y": 3}, None, 4, "n"),
        (2, 20, None, None, 5, "m"),
    ]
    assert scenario.schemas() == 2
    assert is_clean(scenario)
    if publish == "branch":
        # None of it publishes anything.
        refuse_and_do_nothing(scenario)
    scenario.model("select 9 as id", **config)
    scenario.run("--full-refresh")
    assert scenario.rows() == [(9, None, None, None, None, None)]
    assert scenario.schemas() == 2


def refuse_and_do_nothing(scenario: Scenario) -> None:
    before = scenario.state()
    scenario.model("select 3 as id, 'text' as v")
    run = scenario.fail()
    assert "Column `v` is bigint in the table, and the model returns string" in run.message
    assert scenario.state() == before
    scenario.model("select 1 as id, 7 as v where false")
    scenario.run()
    assert scenario.state() == before
    history = scenario.dbt("run-operation", "schema_history", "--args", "{model: t}").log
    assert "    renamed `old` (5) to `new`" in history


def test_defaults_are_stored_by_the_server_or_in_spark(server_scenario: Scenario) -> None:
    scenario, v3 = server_scenario, {"format-version": "3"}
    scenario.model("select 1 as id, 'x' as s", tblproperties=v3)
    scenario.run()
    both = {"s": "'z'", "n": "7"}
    scenario.model("select 2 as id, 'y' as s, 5 as n", column_defaults=both, tblproperties=v3)
    scenario.run()
    found = {f.name: (f.initial_default, f.write_default) for f in scenario.table().schema().fields}
    assert found == {"id": (None, None), "s": (None, "z"), "n": (7, 7)}
    assert scenario.rows() == [(1, "x", 7), (2, "y", 5)]


def test_other_writers_are_met_at_each_commit(
    server_scenario: Scenario, monkeypatch: pytest.MonkeyPatch
) -> None:
    meet_other_writers(server_scenario, monkeypatch)


def meet_other_writers(scenario: Scenario, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let each writer come between our last look at the table and our commit, which the catalog refuses."""
    scenario.model("select 1 as id, 10 as v")
    scenario.run()
    scenario.model("select 1 as id, 11 as v, 'n' as n")
    change, publish = columns.commit_changes, publication.commit_in_time
    names, rows = ["theirs", "N"], [2]

    def commit_changes(*args: Any) -> None:
        if names:
            with scenario.table().update_schema() as update:
                update.add_column(names.pop(0), StringType())
        change(*args)

    def commit(*args: Any) -> None:
        if rows:
            table = scenario.table()
            row = {"id": rows.pop(), "v": 20}
            table.append(pa.Table.from_pylist([row], schema=table.schema().as_arrow()))
        publish(*args)

    monkeypatch.setattr(columns, "commit_changes", commit_changes)
    monkeypatch.setattr(publication, "commit_in_time", commit)
    run = scenario.run()
    assert (names, rows) == ([], [])
    assert len(re.findall("CREATE BRANCH `sparkevolve_", run.log)) == 2
    assert scenario.field_ids() == {"id": 1, "v": 2, "theirs": 3, "N": 4}
    assert scenario.rows() == [(1, 11, None, "n"), (2, 20, None, None)]
    assert scenario.schemas() == 3
    assert is_clean(scenario)


def test_both_sides_see_one_catalog_and_no_password_is_shown(
    server_scenario: Scenario, server_properties: dict[str, str]
) -> None:
    scenario = server_scenario
    scenario.model("select 1 as id")
    run = scenario.dbt("debug")
    assert run.success, run.log
    kind, writes = ("REST", "yes") if server_properties["type"] == "rest" else ("SQL", "no")
    url = make_url(server_properties["uri"])
    assert f"catalog `lake`: {kind}, in {url.host}:{url.port}" in run.log
    assert "      makes a table with its rows in one commit: yes" in run.log
    assert "      has views: yes" in run.log
    assert f"      writes the metadata of format version 3 itself: {writes}" in run.log
    log = run.log + scenario.run().log + (scenario.folder / "logs" / "dbt.log").read_text()
    password = url.password
    assert server_properties["type"] == "rest" or password is not None
    assert password is None or password not in log
    assert "select 1 as id" in log
