"""Which source each schema of a table came from, and batches of a shape that is known."""

import json
from typing import Any

import pytest

from tests.functional.harness import Scenario

KNOWN = "the shape of the batch is known, so that nothing is planned"


def recorded(scenario: Scenario, prefix: str) -> dict[str, dict[str, Any]]:
    properties = scenario.table().properties
    found = {name.removeprefix(prefix): text for name, text in properties.items() if name.startswith(prefix)}
    return {name: json.loads(text) for name, text in found.items()}


@pytest.mark.core
def test_shapes_are_recorded_and_known(scenario: Scenario) -> None:
    first = "select 1 as id, 'a' as x, cast(2 as decimal(5,2)) as y, named_struct('b', 1) as s"
    scenario.model(first)
    assert KNOWN not in scenario.run().log
    (entry,) = recorded(scenario, "sparkevolve.schema.").values()
    assert entry["created"] == ["`id`", "`x`", "`y`", "`s`"]
    assert recorded(scenario, "sparkevolve.shape.") == {}

    run = scenario.run()
    assert KNOWN not in run.log
    (source,) = recorded(scenario, "sparkevolve.shape.")
    assert source == entry["source"]
    log = len(scenario.table().metadata.metadata_log)
    run = scenario.run()
    assert KNOWN in run.log
    # The branch, the DELETE, the INSERT and the publication.
    assert len(scenario.table().metadata.metadata_log) - log == 4

    scenario.model(f"{first}, 5 as z")
    assert KNOWN not in scenario.run().log
    second = recorded(scenario, "sparkevolve.schema.")["1"]
    assert second["added"] == ["`z`"]
    assert second["source"] != source

    scenario.model(first)
    older = (
        f"{scenario.relation()}: the model returns the columns of schema 0 of {entry['at']}: `z` is padded"
    )
    run = scenario.run()
    assert run.log.count(older) == 1
    assert "is not in the model" not in run.log
    again = scenario.run()
    assert older in again.log
    assert KNOWN in again.log
    assert scenario.rows()[0][4] is None

    scenario.model("select 1 as id, 'a' as x")
    assert "the model returns the columns of" not in scenario.run().log
    (padded,) = set(recorded(scenario, "sparkevolve.shape.")) - {source, second["source"]}
    history = scenario.dbt("run-operation", "schema_history", "--args", "{model: t}").log
    assert f"  schema 0, {entry['at']}, dbt run {entry['invocation_id']}, source {source}\n" in history
    assert f"dbt run {second['invocation_id']}, source {second['source']}\n" in history
    shape = recorded(scenario, "sparkevolve.shape.")[padded]
    run_id = shape["invocation_id"]
    assert f"    also loaded from source {padded}, since {shape['at']} (dbt run {run_id})\n" in history


def test_a_table_that_is_replaced_says_from_what(scenario: Scenario) -> None:
    """And a load that goes straight into it records its shape once, in a commit of its own."""
    config = {"full_refresh_schema": "replace", "publish": "direct"}
    scenario.model("select 1 as id, 2 as a", **config)
    scenario.run()
    scenario.model("select 1 as id, interval 1 day as b, 'x' as c", **config)
    scenario.run("--full-refresh")
    (replaced,) = recorded(scenario, "sparkevolve.replaced").values()
    assert replaced["created"] == ["`id`", "`b`", "`c`"]
    history = scenario.dbt("run-operation", "schema_history", "--args", "{model: t}").log
    line = f"schema 1 (current), {replaced['at']}, dbt run {replaced['invocation_id']}, source "
    assert f"{line}{replaced['source']}\n" in history
    made = []
    for _ in range(2):
        log = len(scenario.table().metadata.metadata_log)
        run = scenario.run()
        made.append((len(scenario.table().metadata.metadata_log) - log, KNOWN in run.log))
    # The DELETE and the INSERT.
    assert made == [(3, False), (2, True)]
    (source,) = recorded(scenario, "sparkevolve.shape.")
    assert source == replaced["source"]
