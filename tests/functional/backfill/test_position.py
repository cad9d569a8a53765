"""Where `backfill_column` goes on is told of the rows that it has filled, and of no others."""

import re
from typing import Any

import pytest
from dbt_common.exceptions import DbtRuntimeError

from dbt.adapters.sparkevolve.evolution import backfills
from dbt.adapters.sparkevolve.iceberg.catalog import IcebergCatalog
from dbt.adapters.sparkevolve.load.backfill import Backfill
from dbt.adapters.sparkevolve.load.runner import LoadRunner
from dbt.adapters.sparkevolve.load.steps import Steps
from tests.functional.backfill.test_backfill import (
    ORDERS,
    backfill,
    filled,
    position,
    refused,
    values,
)
from tests.functional.harness import Scenario
from tests.functional.intruders import intrude_with


def test_a_backfill_goes_on_only_where_its_rows_are(scenario: Scenario) -> None:
    scenario.model(ORDERS)
    scenario.run()
    status: dict[str, Any] = {"column": "status", "value": "concat('s', id)", "rows_per_batch": 2}
    filled(scenario, **status, max_batches=1)
    there = position(scenario, "status")
    assert there is not None
    assert there["snapshot"] == scenario.table().metadata.refs["main"].snapshot_id
    # It replaces all rows, so nothing is filled any more.
    scenario.run("--full-refresh")
    assert position(scenario, "status") is None
    filled(scenario, **status)
    assert values(scenario, "status") == {n: f"s{n}" for n in range(1, 6)}

    status["only_null"], status["value"] = False, "concat('t', id)"
    before = scenario.table().metadata.refs["main"].snapshot_id
    filled(scenario, **status, max_batches=1)
    there = position(scenario, "status")
    assert there is not None
    # Properties outlive that, and the rows of the first batch do not.
    scenario.sql(f"call lake.system.rollback_to_snapshot('{scenario.schema}.t', {before})")
    lost = (
        f"A backfill of `status` in {scenario.relation()} is not finished, and the table was replaced or "
        f"rolled back since its last batch, at {there['at']}: which rows it has filled is not known any "
        "more. `restart: true` begins at the first row, and forgets it. Nothing was written."
    )
    assert lost in refused(scenario, **status)
    assert lost in refused(scenario, **{**status, "value": "'x'"})
    scenario.sql(f"update {scenario.relation()} set status = null")
    status["only_null"] = True
    filled(scenario, **status, restart=True, max_batches=1)
    assert values(scenario, "status") == {1: "t1", 2: "t2", 3: None, 4: None, 5: None}

    scenario.sql(f"refresh table {scenario.relation()}")
    # What was left is filled by somebody else: there is nothing to go on with, and no other one in the way.
    scenario.sql(f"update {scenario.relation()} set status = 'x' where id > 2")
    log = filled(scenario, **status)
    assert f"Backfill of `status` in {scenario.relation()} is finished: 2 rows in 1 batch" in log
    assert position(scenario, "status") is None
    scenario.sql(f"update {scenario.relation()} set status = null where id = 1")
    filled(scenario, **status)
    assert values(scenario, "status") == {1: "t1", 2: "t2", 3: "x", 4: "x", 5: "x"}

    # One that has ended before it was told to the user, and whose rows are rolled back, is not finished.
    longer = {"column": "status", "value": "concat(status, '+')", "only_null": False}
    before = scenario.table().metadata.refs["main"].snapshot_id
    with pytest.MonkeyPatch.context() as patch:
        intrude_with(patch, Backfill, "forget", _kill)
        assert not backfill(scenario, **longer).success
    assert position(scenario, "status") is not None
    scenario.sql(f"call lake.system.rollback_to_snapshot('{scenario.schema}.t', {before})")
    filled(scenario, **longer)
    assert values(scenario, "status") == {1: "t1+", 2: "t2+", 3: "x+", 4: "x+", 5: "x+"}
    assert position(scenario, "status") is None


def _kill() -> None:
    raise RuntimeError("killed")


@pytest.mark.parametrize("publish", ["branch", "direct"])
def test_a_full_refresh_forgets_where_it_is_however_it_commits(scenario: Scenario, publish: str) -> None:
    """Straight into the table, or over Thrift in format version 3, rows and position are two commits."""
    scenario.model(ORDERS, publish=publish, tblproperties={"format-version": "3"})
    scenario.run()
    status: dict[str, Any] = {"column": "status", "value": "concat('s', id)", "rows_per_batch": 2}
    filled(scenario, **status, max_batches=1)
    scenario.run("--full-refresh")
    assert position(scenario, "status") is None
    assert values(scenario, "status") == dict.fromkeys(range(1, 6))

    # Not done, it changes nothing; done, and killed before the position is removed, it is known all the same.
    filled(scenario, **status, max_batches=1)
    owner, name = (
        (IcebergCatalog, "publish") if publish == "branch" else (LoadRunner, "set_partition_overwrite")
    )
    with pytest.MonkeyPatch.context() as patch:
        happened = intrude_with(patch, owner, name, _kill)
        scenario.fail("--full-refresh")
    assert happened
    assert "goes on after 1 batch (2 rows)" in filled(scenario, **status, max_batches=1)
    assert values(scenario, "status") == {1: "s1", 2: "s2", 3: "s3", 4: "s4", 5: None}
    with pytest.MonkeyPatch.context() as patch:
        happened = intrude_with(patch, LoadRunner, "note_shape", _kill)
        scenario.fail("--full-refresh")
    assert happened
    assert values(scenario, "status") == dict.fromkeys(range(1, 6))
    filled(scenario, **status)
    assert values(scenario, "status") == {n: f"s{n}" for n in range(1, 6)}
    assert position(scenario, "status") is None

    scenario.run("--full-refresh")
    if publish == "direct":
        _beside_a_full_refresh(scenario, status)
    else:
        name = backfills.property_of(scenario.field_ids()["status"])
        # A position that has come since the run began, such as of a batch without rows.
        begun = backfills.begun(REQUEST, ("5",), scenario.table().metadata.refs["main"].snapshot_id)
        with pytest.MonkeyPatch.context() as patch:
            happened = intrude_with(patch, IcebergCatalog, "publish", lambda: _set(scenario, name, begun))
            scenario.run("--full-refresh")
        assert happened
        assert position(scenario, "status") is None


REQUEST = backfills.Request("`status`", "'x'", "", ("id",), only_null=True, key=("1",))


def _set(scenario: Scenario, name: str, there: backfills.Position) -> None:
    scenario.sql(f"alter table {scenario.relation()} set tblproperties ('{name}' = '{there.text}')")


def _beside_a_full_refresh(scenario: Scenario, status: dict[str, Any]) -> None:
    """One that goes straight into the table, while batches are published; one of them is."""

    def head() -> int:
        return int(scenario.table().metadata.refs["main"].snapshot_id)

    def note() -> None:
        ((name, text),) = backfills.refreshed(scenario.table().properties, None, head()).items()
        scenario.sql(f"alter table {scenario.relation()} set tblproperties ('{name}' = '{text}')")

    def refreshes() -> Any:
        there = position(scenario, "status")
        return there and there["refreshes"]

    filled(scenario, **status, max_batches=1)
    # Its note is made while a batch is filled, and it ends before it removes the position.
    with pytest.MonkeyPatch.context() as patch:
        happened = intrude_with(patch, IcebergCatalog, "publish", note)
        filled(scenario, **status, max_batches=1)
    assert happened
    assert refreshes() == [{"snapshot": None, "base": head()}]
    nothing = f"select id, amount, cast(null as string), n, day from {scenario.relation()}"
    scenario.sql(f"insert overwrite {scenario.relation()} {nothing}")
    assert "5 rows in 3 batches" in filled(scenario, **status)
    assert values(scenario, "status") == {n: f"s{n}" for n in range(1, 6)}

    def fail() -> None:
        assert refreshes() == [{"snapshot": None, "base": head()}]
        raise DbtRuntimeError("no room")

    scenario.run("--full-refresh")
    filled(scenario, **status, max_batches=1)
    with pytest.MonkeyPatch.context() as patch:
        happened = intrude_with(patch, Steps, "run", fail)
        assert "no room" in scenario.fail("--full-refresh").message
    assert happened
    assert refreshes() == []

    def fill() -> None:
        (name,) = (name for name in scenario.table().properties if name.startswith(backfills.PREFIX))
        there = backfills.read(scenario.table().properties, int(name.removeprefix(backfills.PREFIX)))
        assert there is not None
        scenario.sql(f"update {scenario.relation()} set status = 's' where id in (3, 4)")
        then = there.advanced(("4",), 2, finished=False, at="", invocation_id="")
        _set(scenario, name, then.published(head(), there.refreshes))

    with pytest.MonkeyPatch.context() as patch:
        happened = intrude_with(patch, Steps, "run", fill)
        scenario.run("--full-refresh")
    assert happened
    assert values(scenario, "status") == dict.fromkeys(range(1, 6))
    assert position(scenario, "status") is None


KEYS = (
    "select cast(k as float) as k, cast(k as int) as n, amount as price from values "
    "(0.1, 1.50), (0.2, 2.50), (0.3, 3.50), (0.4, 4.50) as rows(k, amount)"
)


def test_other_names_and_wider_types_are_the_same_columns(scenario: Scenario) -> None:
    scenario.model(KEYS, unique_key="k")
    scenario.run()
    more: dict[str, Any] = {"value": "1 + coalesce(n, 0)", "only_null": False, "rows_per_batch": 2}
    more["where"] = "n < 100"
    filled(scenario, column="n", **more, max_batches=1)

    def now(key: str, column: str) -> list[Any]:
        return [value for _, value in sorted(values(scenario, column, key).items())]

    assert now("k", "n") == [1, 1, 0, 0]
    # The key becomes a double under another name, and the column a bigint that other names come before.
    scenario.sql(f"alter table {scenario.relation()} alter column k type double")
    scenario.sql(f"alter table {scenario.relation()} alter column n type bigint")
    scenario.sql(f"alter table {scenario.relation()} rename column k to key")
    scenario.model(KEYS.replace("as float) as k", "as double) as key"), unique_key="key")
    log = filled(scenario, column="n", **more)
    assert "\nBackfill of `n` in" in log
    assert "is finished: 4 rows in 2 batches" in log
    assert now("key", "n") == [1, 1, 1, 1]

    # Another column has taken the key's name: by that no batch begins where the last one has ended.
    filled(scenario, column="n", **more, max_batches=1)
    scenario.sql(f"alter table {scenario.relation()} rename column key to old_key")
    scenario.sql(f"alter table {scenario.relation()} rename column price to key")
    for given, why in (
        (
            {},
            "(2 rows), the last at TIME. key, or a column that `value` or `where` names, is another one now "
            "than when it was begun: say what its columns are called now. Give the same arguments to go on "
            "with it, or `restart: true` to forget where it is. That fills rows again that it has filled, "
            "those up to key = 0.20000000298023224: leave them out by `where`. Nothing was written.",
        ),
        ({"batch_by": "old_key"}, None),
    ):
        if why is None:
            filled(scenario, column="n", **more, **given)
        else:
            said = refused(scenario, column="n", **more, **given)
            assert why in re.sub("the last at [^ ]+[.]", "the last at TIME.", said)
    assert now("old_key", "n") == [2, 2, 2, 2]


def test_a_value_that_names_a_renamed_column_fills_each_row_once(scenario: Scenario) -> None:
    def doubled(column: str, **args: Any) -> dict[str, Any]:
        return {"column": column, "only_null": False, "rows_per_batch": 2, **args}

    scenario.model("select id, id * 10 as amount from range(6)")
    scenario.run()
    filled(scenario, **doubled("amount", value="amount * 2", where="amount < 1000"), max_batches=1)
    renamed = "select id, amount as total from values (7L, 7L) as q(id, amount)"
    scenario.model(renamed, column_renames={"amount": "total"})
    scenario.run()
    log = refused(scenario, **doubled("total", value="total * 2"))
    assert (
        f"Another backfill of `total` (`amount` when it was begun) in {scenario.relation()} is not finished: "
        "amount * 2, where amount < 1000, by id, only_null: false. It has done 1 batch (2 rows), the last at "
    ) in log
    assert (
        "Give the same arguments to go on with it, or `restart: true` to forget where it is. That fills rows "
        "again that it has filled, those up to id = 1: leave them out by `where`. Nothing was written."
    ) in log
    log = filled(scenario, **doubled("total", value="`TOTAL`*2".replace("*", " * "), where="total < 1000"))
    assert f"Backfill of `total` in {scenario.relation()} goes on after 1 batch (2 rows)" in log
    # The row with a key beyond the last one came later.
    assert values(scenario, "total") == {0: 0, 1: 20, 2: 40, 3: 60, 4: 80, 5: 100, 7: 7}


def test_a_name_that_older_rows_have_for_another_column_is_told_of(scenario: Scenario) -> None:
    scenario.model("select 1 as id, '5' as v, cast(null as int) as n")
    scenario.run()
    sql = "select 2 as id, 5 as v, cast(null as int) as n"
    scenario.model(sql, column_renames={"v": "v_old"})
    scenario.run()
    n = {"column": "n", "value": "id * 10"}
    told = f"SparkEvolve adapter: {scenario.relation()}: `"
    had = "`v`, a name that `v_old` had before: in rows from then it is NULL unless they were filled since"
    run = backfill(scenario, **n, where="v > 1", batch_by="v", plan_only=True)
    assert run.warnings == [
        f"{told}where` (v > 1) names {had}, so that `where` may leave them out.",
        f"{told}batch_by` names {had}, so that they are all in one batch.",
    ]
    run = backfill(scenario, column="n", value="coalesce(v, 0)", plan_only=True)
    assert run.warnings == [
        f"{told}value` (coalesce(v, 0)) names {had}, so that what they get is made of that."
    ]
    # Each of these is written with that in mind, or names neither.
    assert backfill(scenario, column="n", value="coalesce(v, int(v_old))", plan_only=True).warnings == []
    for where in ("v > 1 or v is null", "coalesce(v, v_old) = 5", "id > 0"):
        assert backfill(scenario, **n, where=where, plan_only=True).warnings == []
    filled(scenario, **n, where="v > 1")
    assert values(scenario, "n") == {1: None, 2: 20}
