"""What a run costs: how many statements it sends, and how often it loads a table from the catalog."""

import re
from collections import Counter

import pytest
from pyiceberg.catalog.sql import SqlCatalog

from tests.functional.harness import PRESERVE, Run, Scenario

VIEWS = 20
STATEMENT = r"(?im)^\s*(create table|refresh|alter|call|delete|insert|set|show|describe|explain|select)\b"


def shows(run: Run) -> Counter[str]:
    """How often each kind of SHOW was sent, the names of relations aside."""
    found = re.findall(r"(show (?:tables|views) in \S+(?: like)?)", run.log)
    return Counter(re.sub(r" in \S+", "", text) for text in found)


def test_questions_grow_with_the_relations_and_not_with_their_square(scenario: Scenario) -> None:
    """Each node asks for its own name, and dbt once for all."""
    for number in range(VIEWS):
        scenario.model(f"select {number} as id", f"v{number}", materialized="view", unique_key=None)
    first = scenario.run()
    # The schema is new; each name may have been taken by others since dbt has listed it.
    assert shows(first) == {
        "show tables": 1,
        "show views": 1,
        "show views like": VIEWS,
        "show tables like": VIEWS,
    }
    second = scenario.run()
    assert shows(second) == {"show tables": 1, "show views": 1, "show views like": VIEWS}
    assert scenario.sql(f"select * from {scenario.relation('v19')}") == [(19,)]


def test_names_that_are_patterns_are_names(scenario: Scenario) -> None:
    """`*`, `|` and the signs of regular expressions in a name do not stand for other names."""
    view = {"materialized": "view", "unique_key": None}
    for number, alias in enumerate(("p|q", "s*", "it's", "a+b", "p", "star", "aab", "Ünder (1)")):
        scenario.model(f"select {number} as id", f"m{number}", alias=alias, **view)
    for _ in range(2):
        scenario.run()
    for number, alias in enumerate(("p|q", "s*", "it's", "a+b", "p", "star", "aab", "Ünder (1)")):
        assert scenario.sql(f"select * from {scenario.relation(alias)}") == [(number,)]
    # A table that another writer has put into the place of a view is found: dbt drops it.
    scenario.sql(f"drop view {scenario.relation('p|q')}")
    scenario.sql(f"create table {scenario.relation('p|q')} using iceberg as select 7 as id")
    scenario.run("--select", "m0")
    assert scenario.sql(f"select * from {scenario.relation('p|q')}") == [(0,)]
    assert scenario.tables() == []


def test_each_table_is_loaded_as_often_as_a_run_needs_it(
    scenario: Scenario, method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """PyIceberg's own loads count as well: it loads a table to commit to it, and to remove it."""
    loaded: list[str] = []
    load_table = SqlCatalog.load_table

    def counted(self: SqlCatalog, identifier: tuple[str, ...]) -> object:
        loaded.append("staged" if "__dbt_tmp" in identifier[-1] else "target")
        return load_table(self, identifier)

    if not isinstance(scenario._lake, SqlCatalog):
        pytest.skip("others commit on their server")
    scenario.model("select 1 as id, 'a' as v")
    scenario.run()
    monkeypatch.setattr(SqlCatalog, "load_table", counted)
    scenario.model("select 1 as id, 'b' as v")
    scenario.run()
    # After the pre-hooks, which is the base, too; for the plan; to publish and in that commit. The batch:
    # for the plan, and to remove it.
    assert Counter(loaded) == {"target": 4, "staged": 2}
    loaded.clear()
    scenario.model("select 1 as id, 'c' as v, 2 as added", on_schema_change=PRESERVE)
    scenario.run()
    # And in the commit of the schema.
    assert Counter(loaded) == {"target": 5, "staged": 2}
    assert scenario.rows() == [(1, "c", 2)]
    loaded.clear()
    # Whether columns differ is told by what is known anyway.
    scenario.model("select 1 as id, 'd' as v, 3 as added", on_schema_change="fail")
    scenario.run()
    assert Counter(loaded) == {"target": 4, "staged": 2}
    loaded.clear()
    scenario.model("select 1 as id, 'd' as v, 3 as another", on_schema_change="fail")
    scenario.fail()
    assert Counter(loaded) == {"target": 1}
    assert scenario.rows() == [(1, "d", 3)]


def test_fail_costs_no_statement_that_another_mode_does_not(scenario: Scenario) -> None:
    sent = []
    for number, mode in enumerate((PRESERVE, PRESERVE, "fail", "ignore")):
        scenario.model(f"select 1 as id, {number} as v", on_schema_change=mode)
        run = scenario.run()
        sent.append(Counter(word.lower() for word in re.findall(STATEMENT, run.log)))
    assert sent[2] == sent[3] == sent[1]
    assert sent[1]["create table"] == 1
    assert scenario.rows() == [(1, 3)]
