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


GONE = """
{kind}:
  - name: {name}
    config: {{persist_docs: {{columns: true}}}}
    columns: [{{name: ID, description: the id}}, {{name: gone, description: not there}}]
"""
TEXT = (
    "In relation {}: The following columns are specified in the schema but are not present in the "
    "database: gone"
)


def test_a_description_of_no_column_is_refused_before_anything_is_written(scenario: Scenario) -> None:
    """In each kind of node that stores descriptions: dbt warns of it once the table is there."""
    scenario.model("select 1 as id")
    scenario.run()
    before = scenario.table().metadata_location
    scenario.model("select 2 as id, 'new' as n")
    scenario.model("select 1 as id", "made")
    scenario.model("select 1 as id", "plain", materialized="table", unique_key=None, on_schema_change=None)
    scenario.file("seeds/seed.csv", "id\n1\n")
    config = "config(strategy='check', check_cols='all', unique_key='id')"
    scenario.file(
        "snapshots/snap.sql", f"{{% snapshot snap %}}{{{{ {config} }}}} select 1 as id{{% endsnapshot %}}"
    )
    kinds = {"models": ["t", "made", "plain"], "seeds": ["seed"], "snapshots": ["snap"]}
    for kind, names in kinds.items():
        for name in names:
            scenario.file(f"{kind}/{name}.yml", GONE.format(kind=kind, name=name))
    run = scenario.dbt("--warn-error", "build")
    messages = [str(node.message) for node in run.result.result]  # type: ignore[union-attr]
    for name in (name for names in kinds.values() for name in names):
        said = TEXT.format(scenario.relation(name))
        (message,) = [text for text in messages if said in text]
        assert ", so nothing was written:" in message
    assert scenario.tables() == ["t"]
    assert scenario.table().metadata_location == before
    # dbt's own text is the same.
    kept = scenario.dbt("build")
    assert kept.success
    expected = [TEXT.format(scenario.relation(name)) for names in kinds.values() for name in names]
    assert sorted(kept.warnings) == sorted(expected)
