"""A connection to a Thrift server that is lost while a batch is loaded. Run with ``--profile thrift``."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.functional.harness import Scenario
from tests.functional.proxy import Cut, Proxy, When, kill_when_sent

OLD = "select * from values (1, 10), (2, 20), (4, 40) as source(id, v)"
NEW = "select * from values (2, 21), (3, 31) as source(id, v)"
OLD_ROWS = [(1, 10), (2, 20), (4, 40)]
NEW_ROWS = [(1, 10), (2, 21), (3, 31), (4, 40)]

MERGE = {"incremental_strategy": "merge"}
OVERWRITE = {"incremental_strategy": "insert_overwrite", "partition_by": ["id"], "unique_key": None}
# The beginning of the statement in whose course the connection is lost, what the branch's head is once it
# has been run (nothing: as it was cut), the model's config, and its rows in the end.
STATEMENTS: dict[str, tuple[str, set[str], dict[str, Any], list[Any]]] = {
    "cut": ("ALTER TABLE", set(), {}, NEW_ROWS),
    "delete": ("DELETE FROM", {"delete", "overwrite"}, {}, NEW_ROWS),
    "insert": ("INSERT INTO", {"append"}, {}, NEW_ROWS),
    "keep": ("INSERT INTO", {"append"}, {"removed_columns": "keep"}, NEW_ROWS),
    "append": ("INSERT INTO", {"append"}, {"unique_key": None}, [*OLD_ROWS[:2], (2, 21), (3, 31), (4, 40)]),
    "merge": ("MERGE INTO", {"overwrite"}, MERGE, NEW_ROWS),
    "overwrite": ("INSERT OVERWRITE", {"overwrite"}, OVERWRITE, NEW_ROWS),
}


@pytest.fixture(autouse=True)
def _only_thrift(method: str) -> None:
    if method != "thrift":
        pytest.skip("needs --profile thrift")


@pytest.fixture
def proxy(profile_target: dict[str, Any]) -> Iterator[Proxy]:
    """A proxy in front of the server."""
    with Proxy(profile_target["port"]) as made:
        yield made
    assert made.failures == []


@pytest.fixture
def scenario(scenario_factory: Callable[..., Scenario], proxy: Proxy) -> Scenario:
    """A project whose connections go through the proxy."""
    return scenario_factory(port=proxy.port)


def branch_heads(scenario: Scenario, name: str) -> set[str | None]:
    """The operations that made the heads of the branches beside ``main``; None for one as it was cut."""
    metadata = scenario.table(name).metadata
    main = metadata.refs["main"].snapshot_id
    heads: set[str | None] = set()
    for ref in metadata.refs.values():
        snapshot = metadata.snapshot_by_id(ref.snapshot_id)
        assert snapshot is not None
        assert snapshot.summary is not None
        heads.add(None if ref.snapshot_id == main else snapshot.summary.operation.value)
    return heads if len(metadata.refs) > 1 else set()


def cut_at(scenario: Scenario, name: str, statement: str, when: When, times: int = 1) -> Cut:
    beginning, heads, *_ = STATEMENTS[statement]

    def is_finished() -> bool:
        found = branch_heads(scenario, name)
        return bool(found & heads if heads else found)

    pattern = rf"{beginning} `lake`\.`{scenario.schema}`\.`{name}`"
    return Cut(pattern, when, times, is_finished)


@pytest.mark.parametrize("when", [When.NEVER_SENT, When.FINISHED, When.LATE], ids=lambda when: when.name)
def test_a_batch_is_loaded_exactly_once(scenario: Scenario, proxy: Proxy, when: When) -> None:
    """In each model, the connection is lost at another statement."""
    for name, (_, _, config, _) in STATEMENTS.items():
        scenario.model(OLD, f"{name}_model", **config)
    scenario.run("--threads", "4")
    for name, (_, _, config, _) in STATEMENTS.items():
        scenario.model(NEW, f"{name}_model", **config)
    cuts = {name: cut_at(scenario, f"{name}_model", name, when) for name in STATEMENTS}
    proxy.cut(*cuts.values())
    run = scenario.run("--threads", "4")
    expected = {name: rows for name, (*_, rows) in STATEMENTS.items()}
    assert {name: scenario.rows(f"{name}_model") for name in STATEMENTS} == expected
    sent = dict.fromkeys(STATEMENTS, 1 if when == When.FINISHED else 2)
    assert {name: cut.seen for name, cut in cuts.items()} == sent
    assert run.log.count("The connection to Spark was lost: loading into") == sum(sent.values()) - len(sent)
    assert {ref for n in STATEMENTS for ref in scenario.table(f"{n}_model").metadata.refs} == {"main"}
    assert scenario.tables() == sorted(f"{name}_model" for name in STATEMENTS)
    proxy.deliver()
    assert {name: scenario.rows(f"{name}_model") for name in STATEMENTS} == expected


def test_what_the_server_goes_on_with_is_never_published(scenario: Scenario, proxy: Proxy) -> None:
    """The INSERT takes longer than the client needs to come back, and looks: not committed."""
    scenario.model("select cast(0 as bigint) as id", unique_key=None)
    scenario.run()
    scenario.model("select id from range(1, 3000000)", unique_key=None)
    cut = cut_at(scenario, "t", "append", When.RUNNING)
    proxy.cut(cut)
    scenario.run()
    assert cut.seen == 2
    assert scenario.table().scan().count() == 3_000_000
    assert scenario.tables() == ["t"]
    # A commit after the end of the run recreates the old branch; the next process removes it.
    others = set(scenario.table().metadata.refs) - {"main"}
    assert all(name.startswith("sparkevolve_") for name in others)
    assert len(others) <= 1


@pytest.mark.parametrize("when", [When.NEVER_SENT, When.FINISHED], ids=lambda when: when.name)
def test_a_batch_that_was_not_staged_for_sure(scenario: Scenario, proxy: Proxy, when: When) -> None:
    """The run fails, and nothing is read from what may be there, or not, or half."""
    scenario.model(OLD)
    scenario.run()
    before = scenario.state()
    scenario.model(NEW)
    pattern = rf"create table `lake`\.`{scenario.schema}`\.`t__dbt_tmp_"
    cut = Cut(pattern, when, is_finished=lambda: len(scenario.tables()) == 2)
    proxy.cut(cut)
    run = scenario.fail()
    assert "The connection to Spark was lost while a statement ran" in run.message
    assert cut.seen == 1
    assert scenario.state() == before
    assert scenario.tables() == ["t"]
    proxy.cut()
    scenario.run()
    assert scenario.rows() == NEW_ROWS


def test_a_connection_that_is_lost_again_and_again(scenario: Scenario, proxy: Proxy) -> None:
    scenario.model(OLD)
    scenario.run()
    scenario.model(NEW)
    cut = cut_at(scenario, "t", "insert", When.NEVER_SENT, times=99)
    proxy.cut(cut)
    run = scenario.fail()
    assert "The connection to Spark was lost while a statement ran" in run.message
    assert cut.seen == 4
    assert scenario.rows() == OLD_ROWS
    assert list(scenario.table().metadata.refs) == ["main"]
    assert scenario.tables() == ["t"]
    proxy.cut()
    scenario.run()
    assert scenario.rows() == NEW_ROWS


@pytest.mark.parametrize(
    ("when", "statement", "rows"),
    [
        (When.NEVER_SENT, "delete", OLD_ROWS),
        (When.NEVER_SENT, "insert", [(1, 10), (4, 40)]),
        (When.FINISHED, "insert", NEW_ROWS),
    ],
)
def test_nothing_is_sent_twice_straight_into_the_table(
    scenario: Scenario, proxy: Proxy, when: When, statement: str, rows: list[Any]
) -> None:
    scenario.model(OLD, publish="direct")
    scenario.run()
    scenario.model(NEW, publish="direct")
    cut = Cut(
        cut_at(scenario, "t", statement, when).pattern, when, is_finished=lambda: scenario.rows() == NEW_ROWS
    )
    proxy.cut(cut)
    run = scenario.fail()
    assert "The connection to Spark was lost while a statement ran (" in run.message
    assert run.message.endswith(
        "The server may still be running it, so it was not sent again: look at the table, then run the model "
        "again."
    )
    assert cut.seen == 1
    assert scenario.rows() == rows
    assert scenario.tables() == ["t"]
    scenario.run()
    assert scenario.rows() == NEW_ROWS


def test_a_killed_full_refresh_that_ends_late_replaces_nothing(scenario: Scenario, proxy: Proxy) -> None:
    """The server gets its CREATE OR REPLACE after others have loaded; of each format version."""
    versions: dict[str, dict[str, Any]] = {"t2": {}, "t3": {"tblproperties": {"format-version": "3"}}}
    for name, config in versions.items():
        scenario.model(OLD, name, **config)
    scenario.run()
    for name, config in versions.items():
        scenario.model("select 9 as id, 'x' as w", name, full_refresh_schema="replace", **config)
        pattern = rf"create or replace table `lake`\.`{scenario.schema}`\.`{name}`"
        cut = Cut(pattern, When.LATE, keeps_client=True)
        proxy.cut(cut)
        kill_when_sent(scenario.folder, cut, "run", "--full-refresh", "--select", name)
        noted = f"{name}__dbt_tmp_{scenario.table(name).properties['sparkevolve.replaced-by']}"
        assert noted in scenario.tables()
        # As if it had run on another machine, so that nobody knows that it has ended.
        owner = "'sparkevolve.staging-owner' = 'elsewhere:1:0'"
        scenario.sql(f"alter table {scenario.relation(noted)} set tblproperties ({owner})")
        scenario.model(NEW, name, **config)
    proxy.cut()
    log = scenario.run().log
    assert log.count("it has failed, was killed, or still runs, and replaces nothing any more") == 2
    loaded = {name: scenario.state(name) for name in versions}
    assert [scenario.rows(name) for name in versions] == [NEW_ROWS, NEW_ROWS]
    proxy.deliver()
    assert {name: scenario.state(name) for name in versions} == loaded
    assert scenario.tables() == sorted(versions)
    for name, config in versions.items():
        assert "sparkevolve.replaced-by" not in scenario.table(name).properties
        scenario.model("select 9 as id, 'x' as w", name, full_refresh_schema="replace", **config)
    scenario.run("--full-refresh")
    assert [scenario.rows(name) for name in versions] == [[(9, "x")], [(9, "x")]]
    assert scenario.tables() == sorted(versions)
    assert not any("sparkevolve.replaced-by" in scenario.table(name).properties for name in versions)
