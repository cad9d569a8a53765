"""The values of `on_schema_change`, and the strategies that go with ours."""

import pytest

from dbt.adapters.sparkevolve.load.queries import Queries
from tests.functional.harness import PRESERVE, Scenario
from tests.functional.intruders import Intrude, is_clean

REACTIONS = "Allowed are: ignore, fail, append_new_columns, append_new_columns_preserve."


def test_any_other_strategy_is_refused(scenario: Scenario) -> None:
    scenario.model("select 1 as id")
    scenario.run()
    state = scenario.state()
    scenario.model("select 1 as id, 7 as batch_no", incremental_strategy="delete_insert")
    refusal = (
        'incremental_strategy is "delete_insert" in model.case.t. Allowed are: delete+insert, append, merge, '
        "insert_overwrite, microbatch."
    )
    assert f"Compilation Error in model t (models/t.sql)\n  {refusal}\n" in scenario.fail().log
    assert scenario.state() == state
    assert scenario.tables() == ["t"]


@pytest.mark.core
def test_a_value_that_is_not_understood_is_refused(scenario: Scenario) -> None:
    scenario.model("select 1 as id")
    scenario.run()
    state = scenario.state()
    for value in ("append_new_column_preserve", "Append_New_Columns_Preserve", "preserve"):
        scenario.model("select 1 as id, 2 as n", on_schema_change=value)
        run = scenario.fail()
        refusal = f'on_schema_change is "{value}" in model.case.t. {REACTIONS}'
        assert run.message == f"Compilation Error in model t (models/t.sql)\n  {refusal}"
        assert scenario.state() == state
        assert scenario.tables() == ["t"]


def test_a_typo_is_refused_wherever_it_stands_and_in_the_first_run_too(scenario: Scenario) -> None:
    refusal = f'on_schema_change is "append_new_column" in model.case.t. {REACTIONS}'
    scenario.model("select 1 as id", on_schema_change=None)
    scenario.write_project(models={"+on_schema_change": "append_new_column"})
    assert refusal in scenario.fail().message
    scenario.write_project()
    scenario.file("models/t.yml", "models: [{name: t, config: {on_schema_change: append_new_column}}]")
    assert refusal in scenario.fail().message
    assert scenario.tables() == []


@pytest.mark.core
def test_to_drop_columns_is_refused(scenario: Scenario) -> None:
    scenario.model("select 1 as id, 'red' as colour")
    scenario.run()
    state = scenario.state()
    scenario.model("select 1 as id, 2 as n", on_schema_change="sync_all_columns")
    run = scenario.fail()
    assert run.message == (
        "Compilation Error in model t (models/t.sql)\n"
        "  on_schema_change is 'sync_all_columns' in model.case.t, which means to drop columns, and "
        f"sparkevolve never drops one. {REACTIONS}"
    )
    assert scenario.state() == state
    assert scenario.tables() == ["t"]


@pytest.mark.core
def test_the_value_works_from_the_project_and_from_a_properties_file(scenario: Scenario) -> None:
    scenario.model("select 1 as id", on_schema_change=None)
    scenario.run()
    scenario.write_project(models={"+on_schema_change": PRESERVE})
    scenario.model("select 1 as id, 2 as n", on_schema_change=None)
    scenario.run()
    assert scenario.rows() == [(1, 2)]
    scenario.write_project()
    scenario.file("models/t.yml", f"models: [{{name: t, config: {{on_schema_change: {PRESERVE}}}}}]")
    scenario.model("select 1 as id, 2 as n, 3 as m", on_schema_change=None)
    scenario.run()
    assert scenario.rows() == [(1, 2, 3)]
    assert scenario.field_ids() == {"id": 1, "n": 2, "m": 3}
    assert scenario.schemas() == 3
    # Without the setting the default holds: nothing is added, and it is said.
    (scenario.folder / "models" / "t.yml").unlink()
    scenario.model("select 1 as id, 2 as n, 4 as k", on_schema_change=None)
    run = scenario.run()
    assert "; column `k` is not in the table and left out (on_schema_change is 'ignore')\n" in run.log
    assert scenario.rows() == [(1, 2, None)]
    assert scenario.schemas() == 3


def test_what_the_model_reads_may_gain_a_column_after_it_was_analysed(
    scenario: Scenario, intrude: Intrude
) -> None:
    """The columns were compared before, and are those of the batch that is staged."""
    landing = scenario.folder / "landing"
    landing.mkdir()
    (landing / "1.json").write_text('{"id": 1}\n')
    query = f"select * from json.`{landing}`"
    scenario.model(query)
    scenario.run()
    happened = intrude(
        Queries, "as_stored", lambda: (landing / "2.json").write_text('{"id": 2, "late": 7}\n'), after=True
    )
    scenario.model(query, on_schema_change="fail")
    state = scenario.state()
    assert (
        f"The columns that the model of {scenario.relation()} returns have changed while this run computed it"
        in scenario.fail().message
    )
    assert scenario.state() == state
    (landing / "2.json").unlink()
    again = intrude(
        Queries, "as_stored", lambda: (landing / "3.json").write_text('{"id": 3, "late": 8}\n'), after=True
    )
    scenario.model(query)
    scenario.run()
    assert (len(happened), len(again)) == (1, 1)
    assert scenario.rows() == [(1, None), (3, 8)]
    assert is_clean(scenario)


def test_a_query_that_names_columns_leaves_none_out_that_has_come_since(
    scenario: Scenario, intrude: Intrude
) -> None:
    """With a bare NULL in it, the model's query is rewritten, and names what the model returned before."""
    landing = scenario.folder / "landing"
    landing.mkdir()
    (landing / "1.json").write_text('{"id": 1}\n')
    scenario.model("select 1 as id, 'a' as b")
    scenario.run()
    state = scenario.state()
    query = f"select *, null as b from json.`{landing}`"
    scenario.model(query)
    happened = intrude(
        Queries, "as_stored", lambda: (landing / "2.json").write_text('{"id": 2, "late": 7}\n'), after=True
    )
    assert (
        f"What the model of {scenario.relation()} returns has changed while this run computed it, with "
        "something that it reads. It would be left out of the rows, so nothing was written. Run the model "
        "again."
    ) in scenario.fail().message
    assert scenario.state() == state
    assert is_clean(scenario)
    scenario.run()
    assert scenario.rows() == [(1, None, None), (2, None, 7)]
    # A first run has made its table then.
    scenario.model(query, "made")
    again = intrude(
        Queries, "as_stored", lambda: (landing / "3.json").write_text('{"id": 3, "later": 8}\n'), after=True
    )
    run = scenario.fail("--select", "made")
    assert (len(happened), len(again)) == (1, 1)
    assert f"{scenario.relation('made')} was made without that, and its rows are visible." in run.message
    scenario.run("--select", "made", "--full-refresh")
    assert scenario.columns("made") == ["id", "late", "later"]
    assert scenario.rows("made") == [(1, None, None), (2, 7, None), (3, None, 8)]
