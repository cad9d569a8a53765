"""Tables that were there before dbt."""

from tests.functional.harness import Scenario


def precreate(scenario: Scenario, columns: str, rows: str = "", clauses: str = "") -> None:
    scenario.sql(f"create schema if not exists `lake`.`{scenario.schema}`")
    scenario.sql(f"create table {scenario.relation()} ({columns}) using iceberg {clauses}")
    if rows:
        scenario.sql(f"insert into {scenario.relation()} values {rows}")


PLAN_ONLY = ("--vars", "sparkevolve_plan_only: true")
