"""What a run costs: how many statements it sends, and how often it loads a table from the catalog."""

import re
from collections import Counter

import pytest
from pyiceberg.catalog import Catalog
from pyiceberg.catalog.sql import SqlCatalog
from sqlalchemy import text

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


def test_a_large_schema_costs_what_a_small_one_does(
    scenario: Scenario, lake: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As many statements, and as many loads of tables, whatever else the schema has."""
    if not isinstance(lake, SqlCatalog):
        pytest.skip("others keep their tables elsewhere")
    loaded: list[str] = []
    load_table = SqlCatalog.load_table

    def counted(self: SqlCatalog, identifier: tuple[str, ...]) -> object:
        loaded.append("staged" if "__dbt_tmp" in identifier[-1] else identifier[-1])
        return load_table(self, identifier)

    scenario.model("select 1 as id, 0 as v")
    scenario.model("select id from {{ ref('t') }}", "seen", materialized="view", unique_key=None)
    scenario.run()
    monkeypatch.setattr(SqlCatalog, "load_table", counted)
    of_others = {"schema": scenario.schema}
    costs = []
    for number, others in enumerate((10, 500)):
        scenario.model(f"select 1 as id, {number} as v")
        with lake.engine.begin() as database:
            # Names of one table, which nobody reads: to make each through Iceberg takes a minute.
            database.execute(
                text(
                    "insert into iceberg_tables select catalog_name, table_namespace, 'other_' || n, "
                    "metadata_location, null, iceberg_type from iceberg_tables, (with recursive numbers(n) "
                    f"as (select {number * 10} union all select n + 1 from numbers where n + 1 < {others}) "
                    "select n from numbers) where table_namespace = :schema and table_name = 't'"
                ),
                of_others,
            )
        assert len(scenario.tables()) == others + 1
        for command in (("run", "--select", "t"), ("docs", "generate", "--select", "t", "seen")):
            run = scenario.dbt(*command)
            assert run.success, run.message
            sent = Counter(word.lower() for word in re.findall(STATEMENT, run.log))
            costs.append((sent, len(re.findall(r"(?m)^On \S+: /\*", run.log)), Counter(loaded)))
            loaded.clear()
    with lake.engine.begin() as database:
        database.execute(
            text("delete from iceberg_tables where table_namespace = :schema and table_name like 'other%'"),
            of_others,
        )
    assert costs[:2] == costs[2:]
    (_, _, by_run), (shown, _, by_docs) = costs[:2]
    assert by_run == {"t": 4, "staged": 2}
    assert by_docs == {"t": 1, "seen": 1}
    assert shown["show"] == 2
    assert scenario.rows() == [(1, 1)]


def test_fail_costs_no_statement_that_another_mode_does_not(scenario: Scenario) -> None:
    sent = []
    for number, mode in enumerate((PRESERVE, PRESERVE, "fail", "ignore")):
        scenario.model(f"select 1 as id, {number} as v", on_schema_change=mode)
        run = scenario.run()
        sent.append(Counter(word.lower() for word in re.findall(STATEMENT, run.log)))
    assert sent[2] == sent[3] == sent[1]
    assert sent[1]["create table"] == 1
    assert scenario.rows() == [(1, 3)]
