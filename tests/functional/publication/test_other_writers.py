"""Other writers commit during a run: nothing is lost, and nobody sees it half done."""

from collections.abc import Callable
from datetime import date
from typing import Any

import pytest
import yaml
from pyiceberg.catalog import Catalog
from pyiceberg.types import StringType

from dbt.adapters.sparkevolve.iceberg.catalog import IcebergCatalog
from dbt.adapters.sparkevolve.impl import SparkEvolveAdapter
from tests.functional.harness import Scenario
from tests.functional.intruders import Intrude, append, cut, is_clean, staged
from tests.functional.worker import Outcome, Worker


@pytest.mark.parametrize("config", [{}, {"incremental_strategy": "merge"}, {"unique_key": None}])
@pytest.mark.core
def test_a_commit_while_a_batch_is_loaded_stays(
    scenario: Scenario, intrude: Intrude, config: dict[str, Any]
) -> None:
    """The model does not read its table: the batch is loaded again, but not computed again."""
    scenario.model("select 1 as id, 10 as v", **config)
    scenario.run()
    scenario.model("select 2 as id, 20 as v", **config)
    happened = intrude(IcebergCatalog, "publish", lambda: append(scenario, [{"id": 3, "v": 30}]), 2)
    run = scenario.run()
    assert len(happened) == 2
    assert scenario.rows() == [(1, 10), (2, 20), (3, 30), (3, 30)]
    assert (staged(run), cut(run)) == (1, 3)
    assert is_clean(scenario)


def test_a_refusal_in_a_later_attempt_says_what_the_first_one_has_stored(
    scenario: Scenario, intrude: Intrude
) -> None:
    """No row and no column, but a description and a property, which stay."""
    fails: dict[str, Any] = {"on_schema_change": "fail", "persist_docs": {"columns": True}}
    scenario.model("select 1 as id, 10 as v", **fails)
    scenario.run()
    scenario.model("select 2 as id, 20 as v", **fails, tblproperties={"team": "us"})
    described = [{"name": "t", "columns": [{"name": "v", "description": "new"}]}]
    scenario.file("models/t.yml", yaml.safe_dump({"models": described}))
    added = f"alter table {scenario.relation()} add column theirs int"

    def widen_and_append() -> None:
        scenario.sql(added)
        append(scenario, [{"id": 3, "v": 30, "theirs": None}])

    happened = intrude(IcebergCatalog, "publish", widen_and_append)
    said = scenario.fail().message
    assert len(happened) == 1
    assert (
        f"The columns of model.case.t and of its table {scenario.relation()} differ, and on_schema_change is "
        "'fail', so no row was written. This run has changed the table before (describe `v` as 'new'; set "
        "property 'team' to 'us'), and that stays. In the model only: none. In the table only: theirs."
    ) in said
    assert scenario.docs()["v"] == "new"
    assert scenario.table().properties["team"] == "us"
    assert scenario.rows() == [(1, 10, None), (3, 30, None)]
    assert is_clean(scenario)


@pytest.mark.parametrize("source", ["{{ this }}", "seen", "seen_too"])
def test_a_batch_computed_from_the_table_is_computed_again(
    scenario: Scenario, intrude: Intrude, source: str
) -> None:
    """A running total, read from the table itself or through views: a stale one would lose the other's 30."""
    scenario.model("select * from values (1, 10), (2, 20) as source(id, v)")
    scenario.run()
    for view, of in (("seen", scenario.relation()), ("seen_too", scenario.relation("seen"))):
        scenario.sql(f"create view {scenario.relation(view)} as select * from {of}")
    relation = source if source == "{{ this }}" else scenario.relation(source)
    scenario.model(f"select 0 as id, cast(sum(v) as int) as v from {relation} where id > 0")
    happened = intrude(IcebergCatalog, "publish", lambda: append(scenario, [{"id": 3, "v": 30}]))
    run = scenario.run()
    assert len(happened) == 1
    assert scenario.rows() == [(0, 60), (1, 10), (2, 20), (3, 30)]
    assert (staged(run), cut(run)) == (2, 2)
    assert is_clean(scenario)


@pytest.mark.parametrize("when", ["publish", "staged_batch"])
def test_a_commit_to_an_empty_table_stays(scenario: Scenario, intrude: Intrude, when: str) -> None:
    """The table has no snapshot yet, so there is none to compare with."""
    scenario.model("select 1 as id, (select count(*) from {{ this }}) as v")
    scenario.sql(f"create schema if not exists `lake`.`{scenario.schema}`")
    scenario.sql(f"create table {scenario.relation()} (id int, v bigint) using iceberg")
    happened = intrude(IcebergCatalog, when, lambda: append(scenario, [{"id": 3, "v": 30}]))
    run = scenario.run()
    assert len(happened) == 1
    assert scenario.rows() == [(1, 1), (3, 30)]
    assert staged(run) == 2
    assert is_clean(scenario)


@pytest.mark.parametrize("empty", [False, True])
def test_other_writers_each_time(scenario: Scenario, intrude: Intrude, empty: bool) -> None:
    scenario.model("select 1 as id, 10 as v" + " where false" * empty)
    scenario.run()
    scenario.model("select 1 as id, 11 as v", commit_retries=1)
    happened = intrude(IcebergCatalog, "publish", lambda: append(scenario, [{"id": 3, "v": 30}]), 9)
    run = scenario.fail()
    assert run.message.strip().endswith(
        f"The batch was loaded into {scenario.relation()} 2 times, and each time other writers had committed "
        "to the table meanwhile, so it was not published: it would have undone what they did. The table's "
        "rows are theirs, none of this run's is visible. Run the model again when the table is quieter, or "
        "raise `commit_retries`."
    )
    assert len(happened) == 2
    assert scenario.rows() == [*([] if empty else [(1, 10)]), (3, 30), (3, 30)]
    assert is_clean(scenario)


def test_another_spark_session_deletes_rows_meanwhile(scenario: Scenario, intrude: Intrude) -> None:
    scenario.model("select * from values (1, 10), (2, 20) as source(id, v)")
    scenario.run()
    scenario.model("select 0 as id, cast(sum(v) as int) as v from {{ this }} where id > 0")
    scenario.sql(f"refresh table {scenario.relation()}")
    intrude(
        IcebergCatalog, "publish", lambda: scenario.sql(f"delete from {scenario.relation()} where id = 2")
    )
    scenario.run()
    assert scenario.rows() == [(0, 10), (1, 10)]
    assert is_clean(scenario)


def test_a_commit_before_rows_are_looked_for_by_a_new_name(scenario: Scenario, intrude: Intrude) -> None:
    """Iceberg finds that in the table's last snapshot only, which is another one then."""
    scenario.model("select 1 as id, 10 as v")
    scenario.run()
    scenario.model("select 1 as key, 11 as v", unique_key="key", column_renames={"id": "key"})
    others = [{"key": 3, "v": 30}]
    happened = intrude(SparkEvolveAdapter, "execute", lambda: append(scenario, others), sql="DELETE")
    run = scenario.run()
    assert len(happened) == 1
    assert "cannot go on from what it started from" in run.log
    assert scenario.rows() == [(1, 11), (3, 30)]
    assert is_clean(scenario)


def test_a_run_with_other_vars_meanwhile(scenario: Scenario, intrude: Intrude) -> None:
    """While one has loaded its day and not published it, the other loads its own from beginning to end."""
    scenario.model("select date'2020-01-01' as day, 0 as v", unique_key="day")
    scenario.run()
    scenario.model(
        "select date_add(date'2020-01-01', {{ var('day') }}) as day, {{ var('day') }} as v\n"
        "union all select date'2020-01-01', {{ var('day') }} where {{ var('day') }} = 2",
        unique_key="day",
    )
    with Worker() as worker:
        two = ("run", "--vars", "{day: 2}")
        happened = intrude(IcebergCatalog, "publish", lambda: others.extend(worker.run(scenario, two)))
        others: list[Outcome] = []
        run = scenario.run("--vars", "{day: 1}")
    assert len(happened) == 1
    assert [outcome.success for outcome in others] == [True], others
    days = [date(2020, 1, day) for day in (1, 2, 3)]
    assert scenario.rows() == [(days[0], 2), (days[1], 1), (days[2], 2)]
    assert (staged(run), cut(run)) == (1, 2)
    assert is_clean(scenario)


@pytest.mark.parametrize(
    ("before", "config"),
    [
        ("DELETE", {}),
        ("INSERT", {}),
        ("INSERT", {"removed_columns": "keep"}),
        ("INSERT", {"unique_key": None}),
        ("MERGE", {"incremental_strategy": "merge"}),
        ("publish", {}),
    ],
)
def test_somebody_drops_the_branch_of_a_run(
    scenario: Scenario, lake: Catalog, intrude: Intrude, before: str, config: dict[str, Any]
) -> None:
    """Spark's INSERT would recreate it, from `main` and without what the run had deleted."""
    scenario.model("select * from values (1, 10, 'a'), (2, 20, 'b') as source(id, v, gone)", **config)
    scenario.run()
    scenario.model("select 2 as id, 21 as v", **config)

    def drop() -> None:
        (branch,) = set(scenario.table().metadata.refs) - {"main"}
        scenario.sql(f"alter table {scenario.relation()} drop branch `{branch}`")

    if before == "publish":
        happened = intrude(IcebergCatalog, before, drop)
    else:
        happened = intrude(SparkEvolveAdapter, "execute", drop, sql=before)
    run = scenario.run()
    assert len(happened) == 1
    replaced = [(2, 20, "b"), (2, 21, None)] if "unique_key" in config else [(2, 21, "b" if config else None)]
    assert scenario.rows() == [(1, 10, "a"), *replaced]
    assert (staged(run), cut(run)) == (1, 2)
    assert is_clean(scenario)


@pytest.mark.parametrize("is_recreated", [False, True])
def test_another_writer_takes_away_the_table_during_a_load(
    scenario: Scenario, intrude: Intrude, is_recreated: bool
) -> None:
    scenario.model("select 1 as id, 10 as v")
    scenario.run()
    scenario.model("select 2 as id, 20 as v")

    def drop() -> None:
        scenario.sql(f"drop table {scenario.relation()}")
        if is_recreated:
            scenario.sql(f"create table {scenario.relation()} using iceberg as select 5 as id, 50 as v")

    happened = intrude(SparkEvolveAdapter, "execute", drop, sql="INSERT")
    run = scenario.fail()
    assert len(happened) == 1
    assert (
        f"Another writer has dropped {scenario.relation()}, or dropped and recreated it, while this run "
        "loaded its batch. Run the model again: it begins with the table as it is then."
    ) in " ".join(run.message.split())
    assert scenario.tables() == (["t"] if is_recreated else [])
    scenario.run()
    assert scenario.rows() == ([(2, 20), (5, 50)] if is_recreated else [(2, 20)])
    assert is_clean(scenario)


def add_column(scenario: Scenario) -> None:
    with scenario.table().update_schema() as update:
        update.add_column("theirs", StringType())


def drop_column(scenario: Scenario) -> None:
    with scenario.table().update_schema(allow_incompatible_changes=True) as update:
        update.delete_column("gone")


@pytest.mark.parametrize("change", [add_column, drop_column])
@pytest.mark.parametrize("when", ["evolve", "publish"])
def test_another_writer_changes_the_columns(
    scenario: Scenario, intrude: Intrude, change: Callable[[Scenario], None], when: str
) -> None:
    scenario.model("select 1 as id, 10 as v, 'g' as gone")
    scenario.run()
    scenario.model("select 1 as id, 11 as v, 'n' as n")
    intrude(IcebergCatalog, when, lambda: change(scenario), after=when == "evolve")
    run = scenario.dbt("run")
    found = scenario.table().scan().to_arrow().to_pylist()
    assert [row["v"] for row in found] == [11 if run.success else 10]
    assert (
        run.success or f"Another writer has dropped or renamed `gone` of {scenario.relation()}" in run.message
    )
    assert is_clean(scenario)
    scenario.run()
    found = scenario.table().scan().to_arrow().to_pylist()
    extra = {"gone": None, "theirs": None} if change is add_column else {}
    assert found == [{"id": 1, "v": 11, "n": "n", **extra}]
    assert is_clean(scenario)
