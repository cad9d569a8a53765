"""Features of dbt that an incremental model of ours does not have: refused by name."""

from tests.functional.harness import Scenario


def test_python_model_is_refused(scenario: Scenario) -> None:
    scenario.model("select 1 as id")
    scenario.run()
    before = scenario.state()
    (scenario.folder / "models" / "t.sql").unlink()
    scenario.file(
        "models/t.py",
        "def model(dbt, session):\n"
        "    dbt.config(materialized='incremental', on_schema_change='append_new_columns_preserve')\n"
        "    return session.sql('select 2 as id, 3 as n')\n",
    )
    run = scenario.fail()
    assert "only supports languages ['sql']; got \"python\"" in run.message
    assert "create " not in run.log.lower()
    assert scenario.state() == before
    assert scenario.tables() == ["t"]


def test_a_sql_header_is_not_run_in_silence(scenario: Scenario) -> None:
    scenario.model("select 1 as id", sql_header="set time zone 'Asia/Tokyo';")
    message = scenario.fail().message
    assert (
        "sql_header is \"set time zone 'Asia/Tokyo';\" in model.case.t. It is not run: Spark runs one"
        in message
    )
    assert scenario.sql(f"show tables in `lake`.`{scenario.schema}`") == []
