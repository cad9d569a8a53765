"""Audits, which a batch has to pass before it is published."""

import pytest

from tests.functional.harness import Scenario
from tests.functional.samples import OLD, history


@pytest.mark.parametrize("strategy", ["append", "delete+insert", "merge", "insert_overwrite"])
@pytest.mark.parametrize("mode", ["merge-on-read", "copy-on-write"])
def test_a_failed_audit_leaves_main_untouched(scenario: Scenario, strategy: str, mode: str) -> None:
    modes = {f"write.{verb}.mode": mode for verb in ("delete", "update", "merge")}
    config = {"incremental_strategy": strategy, "tblproperties": modes}
    # A row that is not loaded need not satisfy the audit.
    scenario.model(OLD + " union all select 0, null, 0", **config)
    scenario.run()
    before = history(scenario), scenario.rows()
    audits = ["v is not null", "id > 0 and n <> 5"]
    scenario.model(
        "select 2 as id, cast(null as string) as v, 1 as n union all select 3, 'C', 5",
        audits=audits,
        **config,
    )
    message = scenario.fail().message
    assert (
        f"The batch of {scenario.relation()} was not published, since rows in it do not satisfy the model's "
        "audits. The rows of the table are as they were.\n" in message
    )
    assert "  * v is not null: 1 row, such as id = 2" in message
    assert "  * id > 0 and n <> 5: 1 row, such as id = 3" in message
    assert (history(scenario), [row[:-1] for row in scenario.rows()]) == before
    if (strategy, mode) == ("append", "merge-on-read"):
        scenario.model("select 4 as id, 'D' as v, 1 as n", audits=["v = 'D'", "idd > 0"], **config)
        message = scenario.fail().message
        assert (
            f"The batch of {scenario.relation()} was not published, since Spark cannot evaluate one of the "
            "model's audits: idd > 0\n"
        ) in message
        assert "`idd` cannot be resolved" in message
        assert (history(scenario), [row[:-1] for row in scenario.rows()]) == before
    assert list(scenario.table().metadata.refs) == ["main"]
    assert scenario.tables() == ["t"]
    scenario.model("select 2 as id, 'ok' as v, 1 as n", audits=audits, **config)
    scenario.run()
    assert (2, "ok", 20 if strategy == "merge" else None, 1) in scenario.rows()


@pytest.mark.parametrize("existing", ["none", "view", "refreshed", "replaced"])
@pytest.mark.core
def test_an_audit_comes_before_the_table_too(scenario: Scenario, existing: str) -> None:
    if existing == "view":
        scenario.model("select 1 as id", materialized="view")
    elif existing != "none":
        scenario.model("select 1 as id")
    if existing != "none":
        scenario.run()
    schema = "replace" if existing == "replaced" else "keep"
    scenario.model(
        "select id, id % 2 = 0 as even from range(10)",
        audits="even",
        unique_key=["id"],
        full_refresh_schema=schema,
    )
    message = scenario.fail(*(["--full-refresh"] if existing[:2] == "re" else [])).message
    assert "even: 5 rows, such as id = 1; id = 3; id = 5" in message
    if existing == "none":
        assert scenario.tables() == []
    else:
        assert scenario.sql(f"select id from {scenario.relation()}") == [(1,)]


def test_audits_need_a_branch(scenario: Scenario) -> None:
    scenario.model(OLD, audits=["v is not null"], publish="direct")
    message = scenario.fail().message
    assert (
        "audits are set in model.case.t, but publish is 'direct': rows would be visible before they are"
        in message
    )
    assert scenario.tables() == []
