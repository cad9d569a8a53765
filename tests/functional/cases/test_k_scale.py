"""Group K of the cases from the field: long histories."""

from tests.functional.cases.test_g_statements import statements
from tests.functional.harness import Scenario


def test_k02_many_evolutions(scenario: Scenario) -> None:
    """A run does as much after many evolutions as after one; how long that takes is in the benchmarks."""
    sent, commits, before = [], [], 0
    for number in range(9):
        columns = "".join(f", {number} as c{column}" for column in range(number))
        scenario.model(f"select {number} as id{columns}")
        sent.append(len(statements(scenario.run())))
        log = len(scenario.table().metadata.metadata_log)
        commits.append(log - before)
        before = log
    # The schema, the branch, the DELETE, the INSERT, the publication.
    assert commits[1:] == [5] * 8
    assert sent[1:] == [sent[1]] * 8
    assert scenario.schemas() == 9
    assert scenario.columns() == ["id", *(f"c{number}" for number in range(8))]
    assert list(scenario.field_ids().values()) == list(range(1, 10))
    rows = {row[0]: row[1:] for row in scenario.rows()}
    assert rows == {n: tuple([n] * n + [None] * (8 - n)) for n in range(9)}

    run = scenario.run()
    assert (scenario.schemas(), scenario.rows()) == (9, [(n, *rows[n]) for n in range(9)])
    assert "add column" not in run.log
    assert len(statements(run)) == sent[-1] - 1
    assert scenario.tables() == ["t"]


def test_k02_schemas_that_no_snapshot_needs_can_go(scenario: Scenario) -> None:
    """By Iceberg's own maintenance, where many of them slow each load of the metadata down."""
    for number in range(4):
        columns = "".join(f", {number} as c{column}" for column in range(number))
        scenario.model(f"select {number} as id{columns}")
        scenario.run()
    rows = scenario.rows()
    assert scenario.schemas() == 4
    scenario.sql(
        f"call lake.system.expire_snapshots(table => '{scenario.schema}.t', retain_last => 1, "
        "older_than => timestamp '2999-01-01 00:00:00', clean_expired_metadata => true)"
    )
    scenario.sql(f"refresh table {scenario.relation()}")
    assert scenario.schemas() == 1
    ids = scenario.field_ids()
    scenario.model("select 4 as id, 4 as c1, 4 as c9")
    run = scenario.run()
    assert run.log.count(": add column ") == 1
    assert scenario.field_ids() == {**ids, "c9": 5}
    assert scenario.rows() == [*((*row, None) for row in rows), (4, None, 4, None, 4)]
    history = scenario.dbt("run-operation", "schema_history", "--args", "{model: t}").log
    assert "    added `c9` (5) int" in history
    assert "schema 4 (current), " in history
