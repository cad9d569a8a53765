"""Settings that are none, wrong or other adapters': said before anything is built."""

from typing import Any

import pytest
import yaml

from tests.functional.harness import Run, Scenario


def messages(run: Run) -> dict[str, str]:
    """What dbt says of each node, by its name."""
    return {node.node.name: str(node.message) for node in run.result.result}


@pytest.mark.core
def test_near_misses_wrong_values_and_settings_of_other_adapters(
    scenario: Scenario, capfd: pytest.CaptureFixture[str]
) -> None:
    """Wherever they are set: in the model, in its properties file, in the project, on a seed or snapshot."""
    wrong: dict[str, dict[str, Any]] = {
        "near": {"remove_columns": "keep"},
        "keyless": {"unique_key": [""]},
        "two": {"type_widening": "maybe", "on_bad_rows": "dead_letters"},
        "falsy": {"removed_columns": False},
        "empty": {"publish": ""},
    }
    for name, config in wrong.items():
        scenario.model("select 1 as id", name, **config)
    scenario.model("select 1 as id", "in_yaml")
    scenario.model("select 1 as id", "sub/in_project")
    scenario.model(
        "select 1 as id, date'2024-01-02' as d",
        "foreign",
        partitioned_by=["day(d)"],
        delete_condition="true",
        not_matched_by_source_action="delete",
        own_setting=1,
        partition="own too",
        meta={"remove_columns": "keep"},
    )
    yaml_model = {"name": "in_yaml", "config": {"commit_retry": 5}}
    columns = [{"name": "id", "defualt": 1, "description": "x", "data_tests": [], "meta": {"mine": 1}}]
    models = [yaml_model, {"name": "foreign", "columns": columns}]
    schema = "{{ var('sparkevolve_raw_schema', 'raw') }}"
    sources = [{"name": "raw", "schema": schema, "tables": [{"name": "r"}]}]
    scenario.file("models/m.yml", yaml.safe_dump({"models": models, "sources": sources}))
    scenario.file("seeds/s.csv", "id\n1\n")
    scenario.write_project(
        models={"case": {"sub": {"+full_refresh_schemas": "keep"}}}, seeds={"+tbl_properties": {"a": "b"}}
    )
    # A text that means no plans nothing, and to dbt a misspelt variable is one that nobody reads.
    given = '{sparkevolve_plan_only: "false", sparkevolve_freze_schema: true, mine: 1, sparkevolve: {a: 1}, '
    given += "sparkevolve_raw_schema: x}"
    run = scenario.dbt("build", "--vars", given)
    found = messages(run)
    assert (
        'remove_columns is "keep" in model.case.near. There is no such setting. Did you mean' in found["near"]
    )
    assert found["near"].startswith("Runtime Error in model near (models/near.sql)")
    assert 'unique_key is [""] in model.case.keyless. It has to be the name of a column' in found["keyless"]
    assert found["two"] == (
        "Compilation Error in model two (models/two.sql)\n  2 settings of model.case.two cannot be used:\n"
        '    * on_bad_rows is "dead_letters" in model.case.two. Allowed are: fail, dead_letter.\n'
        '    * type_widening is "maybe" in model.case.two. Allowed are: true, false.'
    )
    assert "removed_columns is false in model.case.falsy. Allowed are: null, keep." in found["falsy"]
    assert 'publish is "" in model.case.empty. Allowed are: branch, direct.' in found["empty"]
    assert "Did you mean `commit_retries`?" in found["in_yaml"]
    assert "Did you mean `full_refresh_schema`?" in found["in_project"]
    assert "Did you mean `tblproperties`?" in found["s"]
    assert scenario.tables() == ["foreign"]
    assert [str(f.transform) for f in scenario.table("foreign").spec().fields] == ["day"]
    for setting in ("delete_condition", "not_matched_by_source_action"):
        text = f"model.case.foreign: `{setting}` has no effect with sparkevolve: delete in a post-hook"
        assert run.log.count(text) == 1
    assert run.log.count("`defualt` of the column `id` has no effect. Did you mean `default`?") == 1
    assert run.log.count("The variable `sparkevolve_freze_schema` has no effect: sparkevolve reads") == 1
    assert run.log.count("The variable `") == 1
    assert "own_setting" not in run.log.replace("'own_setting'", "")
    plan = scenario.dbt("run", "--select", "foreign", "--vars", "sparkevolve_plan_only: true")
    assert plan.log.count("`delete_condition` has no effect") == 1
    wrong_plan = scenario.dbt("run", "--select", "foreign", "--vars", "sparkevolve_plan_only: maybe")
    assert 'The variable `sparkevolve_plan_only` is "maybe", which is neither true nor' in wrong_plan.message

    # What a run-operation says is asked for, so it is seen under `--quiet` too.
    before = scenario.state("foreign")
    capfd.readouterr()
    operation = ("run-operation", "backfill_column", "--args", "{model: foreign, column: d, value: d}")
    assert scenario.dbt("-q", *operation, "--vars", "sparkevolve_plan_only: yes").success
    text = f"Backfill of `d` in {scenario.relation('foreign')}: 0 rows in 0 batches, nothing was changed\n"
    assert capfd.readouterr().out == text
    assert scenario.state("foreign") == before


def test_a_microbatch_model_that_dbt_does_not_run_in_batches_is_refused(scenario: Scenario) -> None:
    """A macro of the project's makes it one query, which has no window."""
    scenario.file(
        "macros/own.sql", "{% macro get_incremental_microbatch_sql(arg_dict) %}select 1{% endmacro %}"
    )
    scenario.model(
        "select 1 as id, timestamp'2024-01-01' as ts",
        unique_key=None,
        incremental_strategy="microbatch",
        event_time="ts",
        begin="2024-01-01",
        batch_size="day",
    )
    message = scenario.fail().message
    assert (
        "incremental_strategy is 'microbatch' in model.case.t, and dbt runs the model as a whole" in message
    )
    assert "`require_batched_execution_for_custom_microbatch_strategy`" in message
    assert not scenario.tables()
