"""Contracts, on the first run and on later ones."""

import pytest
import yaml

from tests.functional.harness import Scenario


def contract(scenario: Scenario, **types: str) -> None:
    """Enforce a contract on the model ``t``."""
    columns = [{"name": name, "data_type": data_type} for name, data_type in types.items()]
    model = {"name": "t", "config": {"contract": {"enforced": True}}, "columns": columns}
    scenario.file("models/t.yml", yaml.safe_dump({"models": [model]}))


@pytest.mark.core
def test_contract_and_our_value(scenario: Scenario) -> None:
    """dbt-core refuses our value under a contract when it parses, and takes the one that means the same."""
    scenario.model("select 1 as id, 'kept' as note", on_schema_change="append_new_columns")
    contract(scenario, id="int", note="string")
    scenario.run()
    ids, before = scenario.field_ids(), scenario.state()

    scenario.model("select 2 as id, 'x' as n")
    contract(scenario, id="int", n="string")
    run = scenario.fail()
    assert type(run.result.exception).__name__ == "ValidationError"
    assert (
        "Invalid value for on_schema_change: append_new_columns_preserve. Models materialized as incremental "
        "with contracts enabled must set on_schema_change to 'append_new_columns' or 'fail'"
    ) in run.message
    assert scenario.state() == before

    scenario.model("select 2 as id, 'x' as n", on_schema_change="append_new_columns")
    scenario.run()
    assert scenario.rows() == [(1, "kept", None), (2, None, "x")]
    assert scenario.field_ids() == {**ids, "n": 3}
    assert scenario.schemas() == 2
    scenario.run()
    assert scenario.rows() == [(1, "kept", None), (2, None, "x")]
    assert scenario.schemas() == 2


def test_contract_is_checked_on_incremental_runs(scenario: Scenario) -> None:
    scenario.model("select 1 as id, 1 as v", on_schema_change="append_new_columns")
    contract(scenario, id="int", v="int")
    scenario.run()
    before = scenario.state()

    scenario.model("select 1 as id, 1 as v, 2 as stray", on_schema_change="append_new_columns")
    incremental = scenario.fail()
    assert "This model has an enforced contract that failed." in incremental.message
    assert "stray" in incremental.message
    assert scenario.state() == before
    refresh = scenario.fail("--full-refresh")
    assert refresh.message.split("> in macro")[0] == incremental.message.split("> in macro")[0]
    assert scenario.state() == before

    scenario.model("select 1 as id, 'text' as v", on_schema_change="append_new_columns")
    assert "This model has an enforced contract that failed." in scenario.fail().message
    assert scenario.state() == before
    assert scenario.tables() == ["t"]
