"""Warnings on the console, and dbt's `--warn-error`, which fails a run before it has written anything."""

import pytest

from tests.functional.harness import Scenario

MARKS = ("[\x1b[33mWARNING\x1b[0m]: ", "[WARNING]: ")
BAD = "select 2 as id, cast(null as int) as v, 'x' as more union all select 3, 1, 'z'"


@pytest.mark.core
def test_what_is_warned_of_fails_a_run_before_anything_is_written(scenario: Scenario) -> None:
    strict = ("--warn-error", "run")

    def refused(*arguments: str) -> str:
        run = scenario.dbt(*strict, *arguments)
        assert not run.success
        assert "Warnings are errors in this run" in run.message
        return run.message

    skipped = f"{scenario.relation()}: The default now() of `v` is skipped: "
    hook = f"create table {scenario.relation('hooked')} (id int) using iceberg"
    scenario.model("select 1 as id, 'a' as v", column_defaults={"v": "now()"}, pre_hook=hook, buckets=4)
    message = refused("--vars", "{sparkevolve_freeze_schma: false}")
    assert "`sparkevolve_freeze_schma` has no effect" in message
    message = refused()
    assert ", so nothing was written:\n" in message
    assert "  * model.case.t: `buckets` has no effect without `clustered_by`." in message
    assert scenario.tables() == []
    scenario.model("select 1 as id, 'a' as v", column_defaults={"v": "now()"})
    assert f"  * {skipped}" in refused()
    assert scenario.tables() == []

    run = scenario.run()
    assert [text[: len(skipped)] for text in run.warnings] == [skipped]
    assert [line[: line.index(skipped)] in MARKS for line in run.log.split("\n") if skipped in line] == [True]

    # From here on there is a table, and the commit of its schema is what comes first.
    before = scenario.table().metadata_location
    scenario.model(
        "select 2 as id, 'b' as v, 1 as n, 'x' as w",
        unique_key=["id", "n"],
        column_renames={"odl": "w"},
        on_bad_rows="dead_letter",
    )
    message = refused()
    assert f"  * {scenario.relation()}: `column_renames` wants odl to become `w`, and" in message
    assert f"  * {scenario.relation()}: the unique_key column `n` is new." in message
    assert ", so nothing was written:\n" in message
    audit = {"sql": "v is not null", "severity": "row"}
    scenario.model(BAD, on_bad_rows="dead_letter", audits=audit)
    message = refused()
    assert f"  * 1 of 2 rows cannot be placed in {scenario.relation()}:\n" in message
    assert scenario.table().metadata_location == before
    assert scenario.tables() == ["t"]

    kept = scenario.dbt("--warn-error-options", '{"error": "all", "warn": ["JinjaLogWarning"]}', "run")
    assert kept.success
    assert len(kept.warnings) == 1
    assert sorted(row[0] for row in scenario.rows()) == [1, 3]
    assert scenario.tables() == ["t", "t_dlt"]
