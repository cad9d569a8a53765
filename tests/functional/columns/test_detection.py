"""New and removed columns are detected by name before a batch is staged, in every mode."""

import pytest

from tests.functional.harness import PRESERVE, Scenario

FAILS = "cast(raise_error('it was computed') as int)"


@pytest.mark.core
def test_fail_refuses_before_the_model_is_computed(scenario: Scenario) -> None:
    """A refused run costs no computation, and stages nothing."""
    scenario.model("select 1 as id, 'a' as Note, 7 as kept", on_schema_change="fail")
    scenario.run()
    before = scenario.state()
    differs = f"select 1 as ID, 'b' as NOTE, {FAILS} as Extra"
    scenario.model(differs, on_schema_change="fail")
    run = scenario.fail()
    assert "In the model only: Extra. In the table only: kept." in run.message
    assert "it was computed" not in run.log.replace(differs, "").replace(FAILS, "")
    assert "__dbt_tmp" not in run.log
    # The same columns in another order and case are computed, and so is this under another mode.
    for sql, mode in ((f"select {FAILS} as KEPT, 'b' as note, 1 as Id", "fail"), (differs, PRESERVE)):
        scenario.model(sql, on_schema_change=mode)
        assert "it was computed" in scenario.fail().message
    assert scenario.state() == before
    # Nor does a change of columns stop a full refresh.
    scenario.model("select 1 as id, 'b' as NOTE, 5 as Extra", on_schema_change="fail")
    scenario.run("--full-refresh")
    assert scenario.rows() == [(1, "b", None, 5)]
    assert scenario.tables() == ["t"]


@pytest.mark.core
def test_what_is_detected_is_in_the_log_of_every_mode(scenario: Scenario) -> None:
    models = {
        "ignoring": {"on_schema_change": "ignore"},
        "adding": {"on_schema_change": "append_new_columns"},
        "preserving": {"on_schema_change": PRESERVE},
        "renaming": {"on_schema_change": PRESERVE, "column_renames": {"note": "added"}},
    }
    snapshot = (
        "{{% snapshot versions %}}{{{{ config(unique_key='id', strategy='check', check_cols='all') }}}}{}"
        "{{% endsnapshot %}}"
    )
    for name, config in models.items():
        scenario.model("select 1 as id, 'a' as note", name, **config)
    scenario.file("snapshots/versions.sql", snapshot.format("select 1 as id, 'a' as note"))
    assert scenario.dbt("build").success
    for name, config in models.items():
        scenario.model("select 1 as ID, 'b' as Added", name, **config)
    scenario.file("snapshots/versions.sql", snapshot.format("select 1 as id, 'b' as Added"))
    run = scenario.dbt("build")
    assert run.success, run.log
    said = "columns in the model only: Added; in the table only: note"
    for name in models:
        assert f"{scenario.relation(name)}: {said}" in run.log, name
    assert f"{scenario.relation('versions')}: {said}" in run.log
    assert scenario.rows("ignoring") == [(1, None)]
    assert scenario.rows("adding") == scenario.rows("preserving") == [(1, None, "b")]
    assert scenario.rows("renaming") == [(1, "b")]
    found = scenario.table("versions").scan().to_arrow().to_pylist()
    assert {(row["note"], row["Added"]) for row in found} == {("a", None), (None, "b")}
    # The next run detects nothing, and of what stays in the table only what it has.
    for name in ("adding", "preserving"):
        scenario.model("select 1 as id, 'c' as added", name, **models[name])
    run = scenario.run("--select", "adding", "preserving", "renaming")
    for name in ("adding", "preserving"):
        assert (
            f"{scenario.relation(name)}: columns in the model only: none; in the table only: note" in run.log
        )
    assert f"{scenario.relation('renaming')}: columns in" not in run.log
