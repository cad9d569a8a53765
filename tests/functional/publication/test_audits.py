"""Audits, which a batch has to pass before it is published."""

from typing import Any

import pytest

from tests.functional.harness import Scenario
from tests.functional.samples import OLD, history


def test_a_failed_audit_leaves_main_untouched(scenario: Scenario) -> None:
    models: dict[str, dict[str, Any]] = {
        f"{strategy.replace('+', '_')}_{mode[:4]}": {
            "incremental_strategy": strategy,
            "tblproperties": {f"write.{verb}.mode": mode for verb in ("delete", "update", "merge")},
        }
        for strategy in ("append", "delete+insert", "merge", "insert_overwrite")
        for mode in ("merge-on-read", "copy-on-write")
    }
    audits = ["v is not null", "id > 0 and n <> 5"]

    def write(sql: str, **config: Any) -> None:
        for name, own in models.items():
            scenario.model(sql, name, **own, **config)

    # A row that is not loaded need not satisfy the audit.
    write(OLD + " union all select 0, null, 0")
    scenario.run()
    before = {name: (history(scenario, name), scenario.rows(name)) for name in models}
    write("select 2 as id, cast(null as string) as v, 1 as n union all select 3, 'C', 5", audits=audits)
    said = scenario.fail().said
    for name in models:
        assert (
            f"The batch of {scenario.relation(name)} was not published, since rows in it do not satisfy the "
            "model's audits. The rows of the table are as they were.\n" in said[name]
        )
        assert "  * v is not null: 1 row, such as id = 2" in said[name]
        assert "  * id > 0 and n <> 5: 1 row, such as id = 3" in said[name]
        assert (history(scenario, name), [row[:-1] for row in scenario.rows(name)]) == before[name]
    name = "append_merg"
    scenario.model("select 4 as id, 'D' as v, 1 as n", name, audits=["v = 'D'", "idd > 0"], **models[name])
    message = scenario.fail("--select", name).message
    assert (
        f"The batch of {scenario.relation(name)} was not published, since Spark cannot evaluate one of the "
        "model's audits: idd > 0\n"
    ) in message
    assert "`idd` cannot be resolved" in message
    assert (history(scenario, name), [row[:-1] for row in scenario.rows(name)]) == before[name]
    assert {name: list(scenario.table(name).metadata.refs) for name in models} == {
        n: ["main"] for n in models
    }
    assert scenario.tables() == sorted(models)
    write("select 2 as id, 'ok' as v, 1 as n", audits=audits)
    scenario.run()
    for name in models:
        assert (2, "ok", 20 if name.startswith("merge") else None, 1) in scenario.rows(name)


@pytest.mark.core
def test_an_audit_comes_before_the_table_too(scenario: Scenario) -> None:
    scenario.model("select 1 as id", "viewed", materialized="view")
    for name in ("refreshed", "replaced"):
        scenario.model("select 1 as id", name)
    scenario.run()
    models = {"absent": "keep", "viewed": "keep", "refreshed": "keep", "replaced": "replace"}
    for name, schema in models.items():
        sql = "select id, id % 2 = 0 as even from range(10)"
        scenario.model(sql, name, audits="even", unique_key=["id"], full_refresh_schema=schema)
    said = scenario.fail("--select", "absent", "viewed").said
    said |= scenario.fail("--select", "refreshed", "replaced", "--full-refresh").said
    for name in models:
        assert "even: 5 rows, such as id = 1; id = 3; id = 5" in said[name]
        left = "The rows of the table are as they were." if name.startswith("re") else "No table was made."
        assert f"do not satisfy the model's audits. {left}\n" in said[name]
        if name != "absent":
            assert scenario.sql(f"select id from {scenario.relation(name)}") == [(1,)]
    assert scenario.tables() == ["refreshed", "replaced"]


def test_audits_need_a_branch(scenario: Scenario) -> None:
    scenario.model(OLD, audits=["v is not null"], publish="direct")
    message = scenario.fail().message
    assert (
        "audits are set in model.case.t, but publish is 'direct': rows would be visible before they are"
        in message
    )
    assert scenario.tables() == []
