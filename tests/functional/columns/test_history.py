"""What is remembered of a table's columns, and tables that have changed many times."""

import json
import re

import pytest
from pyiceberg.catalog import Catalog

from tests.functional.harness import Scenario
from tests.functional.sent import statements


def test_sixty_columns_are_one_commit(scenario: Scenario) -> None:
    scenario.model("select 1 as id")
    scenario.run()
    scenario.model("select 1 as id, " + ", ".join(f"{n} as c{n}" for n in range(1, 61)))
    scenario.run()
    assert scenario.schemas() == 2
    assert scenario.rows() == [(1, *range(1, 61))]


def test_the_record_of_a_table_is_bounded(scenario: Scenario, lake: Catalog) -> None:
    scenario.model("select 1 as id, 1 as c0")
    scenario.run()
    ours = {f"sparkevolve.schema.{number}": "{}" for number in range(1000, 1060)}
    with lake.load_table((scenario.schema, "t")).transaction() as transaction:
        transaction.set_properties(ours)
    scenario.model("select 1 as id, " + ", ".join(f"1 as `{'a long name ' * 6}{n}`" for n in range(300)))
    scenario.run()
    properties = scenario.table().properties
    kept = sorted(name for name in properties if name.startswith("sparkevolve.schema."))
    assert len(kept) == 50
    assert kept[:2] == ["sparkevolve.schema.1", "sparkevolve.schema.1011"]
    entry = json.loads(properties["sparkevolve.schema.1"])
    assert entry["added"] == ["300 fields"]
    history = scenario.dbt("run-operation", "schema_history", "--args", "{model: t}").log
    assert (
        f"dbt run {entry['invocation_id']}, source {entry['source']}\n    added `a long name a long name "
        in history
    )


@pytest.mark.core
def test_the_history_names_runs_and_other_writers(scenario: Scenario, lake: Catalog) -> None:
    scenario.model("select 1 as id, 1 as n")
    scenario.run()
    scenario.model("select 1 as id, 5000000000 as n, 'x' as extra")
    run = scenario.run()
    invocation = run.result.result.args["invocation_command"] and run.result.result.results[0]
    assert invocation is not None
    scenario.sql(f"alter table {scenario.relation()} drop column extra")
    properties = lake.load_table((scenario.schema, "t")).properties
    entry = json.loads(properties["sparkevolve.schema.1"])
    assert entry["added"] == ["`extra`"]
    assert entry["widened"] == ["`n`"]
    history = scenario.dbt("run-operation", "schema_history", "--args", "{model: t}")
    assert history.success, history.message
    text = history.log
    assert "schema 0, " in text
    assert f"dbt run {entry['invocation_id']}, source {entry['source']}" in text
    assert re.fullmatch("[0-9a-f]{16}", entry["source"])
    assert "    changed `n` (2) from int to bigint" in text
    assert "    added `extra` (3) string" in text
    assert "schema 2 (current), " in text
    assert "    dropped `extra` (3) string" in text
    assert "columns now:\n    `id` (1) int\n    `n` (2) bigint" in text
    unnamed = scenario.dbt("run-operation", "schema_history")
    assert "Name a model, snapshot or seed: --args '{model: orders}'." in unnamed.message + unnamed.log
    scenario.model("select 1 as id", name="former", enabled=False)
    refused = scenario.dbt("run-operation", "schema_history", "--args", "{model: former}")
    assert "model.case.former is disabled (`enabled: false`)" in refused.log
    refused = scenario.dbt("run-operation", "schema_history", "--args", "{models: t}")
    assert "`schema_history` has no argument `models`. Did you mean `model`?" in refused.log


def test_many_evolutions(scenario: Scenario) -> None:
    """A run does as much after many evolutions as after one; how long that takes is in the benchmarks."""
    sent, commits, before = [], [], 0
    for number in range(6):
        columns = "".join(f", {number} as c{column}" for column in range(number))
        scenario.model(f"select {number} as id{columns}")
        sent.append(len(statements(scenario.run())))
        log = len(scenario.table().metadata.metadata_log)
        commits.append(log - before)
        before = log
    # The schema, the branch, the DELETE, the INSERT, the publication.
    assert commits[1:] == [5] * 5
    assert sent[1:] == [sent[1]] * 5
    assert scenario.schemas() == 6
    assert scenario.columns() == ["id", *(f"c{number}" for number in range(5))]
    assert list(scenario.field_ids().values()) == list(range(1, 7))
    rows = [(n, *[n] * n, *[None] * (5 - n)) for n in range(6)]
    assert scenario.rows() == rows

    run = scenario.run()
    assert (scenario.schemas(), scenario.rows()) == (6, rows)
    assert "add column" not in run.log
    assert len(statements(run)) == sent[-1] - 1
    assert scenario.tables() == ["t"]

    # Schemas that no snapshot needs can go, by Iceberg's own maintenance, where many of them slow loads of
    # the metadata down.
    scenario.sql(
        f"call lake.system.expire_snapshots(table => '{scenario.schema}.t', retain_last => 1, "
        "older_than => timestamp '2999-01-01 00:00:00', clean_expired_metadata => true)"
    )
    scenario.sql(f"refresh table {scenario.relation()}")
    assert scenario.schemas() == 1
    ids = scenario.field_ids()
    scenario.model("select 6 as id, 6 as c1, 6 as c9")
    run = scenario.run()
    assert run.log.count(": add column ") == 1
    assert scenario.field_ids() == {**ids, "c9": 7}
    assert scenario.rows() == [*((*row, None) for row in rows), (6, None, 6, None, None, None, 6)]
    history = scenario.dbt("run-operation", "schema_history", "--args", "{model: t}").log
    assert "    the oldest schema that is left: 5 older ones were removed by maintenance\n" in history
    assert "    added `c9` (7) int" in history
    assert "schema 6 (current), " in history
    assert "    created" not in history
    as_data = scenario.dbt(
        "--log-format", "json", "run-operation", "schema_history", "--args", "{model: t}"
    ).log
    (line,) = [line for line in as_data.splitlines() if line.startswith("{") and '"schemas"' in line]
    schemas = json.loads(line)["schemas"]
    assert [(schema["schema_id"], schema.get("removed_before")) for schema in schemas] == [(5, 5), (6, None)]
    assert schemas[0]["changes"] == [
        "the oldest schema that is left: 5 older ones were removed by maintenance"
    ]
