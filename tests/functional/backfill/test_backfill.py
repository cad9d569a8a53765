"""`backfill_column`: a column is filled batch by batch, each row exactly once whatever comes between."""

import json
from decimal import Decimal
from typing import Any

import pytest

from dbt.adapters.sparkevolve.evolution import backfills
from dbt.adapters.sparkevolve.evolution.backfills import property_of
from dbt.adapters.sparkevolve.evolution.names import name_between
from dbt.adapters.sparkevolve.iceberg.catalog import IcebergCatalog
from dbt.adapters.sparkevolve.load.backfill import Backfill
from dbt.adapters.sparkevolve.spark.interface import AdapterSpark
from tests.functional.duckdb_reader import duckdb_rows
from tests.functional.harness import Run, Scenario
from tests.functional.intruders import Intrude, append, cut, intrude_with, is_clean
from tests.functional.worker import Worker

ORDERS = (
    "select id, cast(amount as decimal(10, 2)) as amount, cast(null as string) as status, "
    "cast(null as int) as n, day from values "
    "(1, 1.50, date '2026-01-01'), (2, 2.50, date '2026-01-01'), (3, 3.50, date '2026-01-02'), "
    "(4, 4.50, date '2026-01-03'), (5, 5.50, cast(null as date)) as rows(id, amount, day)"
)


def backfill(scenario: Scenario, **args: Any) -> Run:
    """Run the operation on the model `t`."""
    return scenario.dbt("run-operation", "backfill_column", "--args", json.dumps({"model": "t", **args}))


def filled(scenario: Scenario, **args: Any) -> str:
    """Run the operation, which has to succeed, and return its log."""
    run = backfill(scenario, **args)
    assert run.success, run.message or run.log
    return run.log


def refused(scenario: Scenario, **args: Any) -> str:
    """Run the operation, which has to fail and leave the table as it is, and return its log."""
    before = scenario.state()
    run = backfill(scenario, **args)
    assert not run.success, run.log
    assert scenario.state() == before
    return run.log


def values(scenario: Scenario, column: str, key: str = "id") -> dict[Any, Any]:
    """The values of a column by key, read by PyIceberg."""
    rows = scenario.table().scan().to_arrow().to_pylist()
    assert len({row[key] for row in rows}) == len(rows)
    return {row[key]: row[column] for row in rows}


def position(scenario: Scenario, column: str) -> dict[str, Any] | None:
    text = scenario.table().properties.get(property_of(scenario.field_ids()[column]))
    return None if text is None else json.loads(text)


@pytest.mark.core
def test_a_column_is_filled_in_batches_of_a_key_range(scenario: Scenario) -> None:
    scenario.model(ORDERS)
    scenario.run()
    status = {"column": "status", "value": "concat('s', id)", "rows_per_batch": 2}
    name = f"Backfill of `status` in {scenario.relation()}"
    # What a run has left that ended while it changed the case of a name.
    between = name_between("n")
    scenario.sql(f"alter table {scenario.relation()} rename column n to {between}")
    taken_back = f"rename `{between}` to `n`"
    log = refused(scenario, **status, plan_only=True)
    assert (
        f"A run has ended while it changed the case of a name in {scenario.relation()}, and this would take "
        f"that back first ({taken_back}). A plan changes nothing, and can be made once that is done: by the "
        "next run of the model, or by this without `plan_only`."
    ) in log
    assert taken_back in filled(scenario, column="n", value="id", where="false")
    assert "n" in scenario.columns()
    before = scenario.state()
    log = filled(scenario, **status, plan_only=True)
    assert (
        f"{name}: 5 rows in 3 batches, nothing was changed\n"
        "  batch 1: 2 rows, up to id = 2\n  batch 2: 2 rows, up to id = 4\n  batch 3: 1 row, up to id = 5\n"
    ) in log
    args = json.dumps({"model": "t", **status, "plan_only": True})
    run = scenario.dbt("--log-format", "json", "run-operation", "backfill_column", "--args", args)
    (line,) = [line for line in run.log.splitlines() if line.startswith('{"relation"')]
    data = json.loads(line)
    assert (data["plan"], data["rows_left"], data["batches_left"], data["rows"]) == (True, 5, 3, 0)
    assert data["planned"][0] == {"rows": 2, "null_values": 0, "up_to": "id = 2"}
    assert scenario.state() == before

    log = filled(scenario, **status, max_batches=1)
    assert f"{name} has stopped as `max_batches` says, after 1 batch: 3 rows in 2 batches left, about " in log
    assert values(scenario, "status") == {1: "s1", 2: "s2", 3: None, 4: None, 5: None}
    there = position(scenario, "status")
    assert there is not None
    assert (there["after"], there["until"], there["batches"], there["rows"]) == (["2"], ["5"], 1, 2)
    # Neither another value nor another order of rows goes on where this one is.
    for other in ({"value": "'x'"}, {"batch_by": "amount"}, {"where": "id < 9"}, {"only_null": False}):
        log = refused(scenario, **{**status, **other})
        assert "Another backfill of `status` in" in log
        assert "It has done 1 batch (2 rows)" in log

    log = filled(scenario, **status)
    assert f"{name}: batch 3 of 3, 1 row in " in log
    assert f"{name} is finished: 5 rows in 3 batches" in log
    assert values(scenario, "status") == {n: f"s{n}" for n in range(1, 6)}
    assert duckdb_rows(scenario.table(), "id, status") == [(n, f"s{n}") for n in range(1, 6)]
    assert position(scenario, "status") is None
    assert set(scenario.table().metadata.refs) == {"main"}
    before = scenario.state()
    log = filled(scenario, **{**status, "value": "'other'"})
    assert f"{name} is finished: there was no row to fill" in log
    assert scenario.state() == before

    filled(
        scenario, column="n", value="id * 10", where="id > 3 or id = 1", batch_by="status", rows_per_batch=1
    )
    assert values(scenario, "n") == {1: 10, 2: None, 3: None, 4: 40, 5: 50}


class Killed(BaseException):
    """Ends a command as a kill would, but for what is done to clean up; nobody tries again after it."""


def _kill() -> None:
    raise Killed


@pytest.mark.parametrize("version", [2, 3])
def test_no_row_is_filled_twice_however_a_command_ends(scenario: Scenario, version: int, method: str) -> None:
    """A value that follows from the column itself, in batches of partitions, of which one is NULL."""
    scenario.model(ORDERS, partition_by=["day"], tblproperties={"format-version": version})
    scenario.run()
    twice = {"column": "amount", "value": "amount * 2", "only_null": False}
    amounts = [Decimal(f"{n}.50") for n in range(1, 6)]

    def doubled(*ids: int) -> dict[int, Decimal]:
        return {n: amount * (2 if n in ids else 1) for n, amount in enumerate(amounts, start=1)}

    assert "\n  batch 1: 1 row, up to day = NULL\n  batch 2: 2 rows, up to day = 2026-01-01\n" in filled(
        scenario, **twice, plan_only=True
    )
    points: list[tuple[type, str, bool, str, tuple[int, ...]]] = [
        (IcebergCatalog, "publish", False, "", ()),
        (IcebergCatalog, "publish", True, "", (5,)),
        (AdapterSpark, "run", True, "UPDATE", (5,)),
    ]
    if version == 3 and method == "thrift":
        # Rows and position are commits of their own: before the first of them, and between the two.
        points += [
            (AdapterSpark, "run", False, "CALL", (5,)),
            (AdapterSpark, "run", True, "CALL", (1, 2, 5)),
            (IcebergCatalog, "replace_property", False, "", (1, 2, 3, 5)),
        ]
    for owner, name, is_after, sql, ids in points:
        with pytest.MonkeyPatch.context() as patch:
            happened = intrude_with(patch, owner, name, _kill, after=is_after, sql=sql)
            assert not backfill(scenario, **twice).success
        assert happened
        assert values(scenario, "amount") == doubled(*ids), (owner, name, is_after)
    # After the last batch, before the user was told and the position is removed.
    with pytest.MonkeyPatch.context() as patch:
        intrude_with(patch, Backfill, "forget", _kill)
        assert not backfill(scenario, **twice).success
    assert values(scenario, "amount") == doubled(1, 2, 3, 4, 5)
    log = filled(scenario, **twice)
    assert "had been finished already, by an earlier command; nothing was changed: 5 rows in 4 batches" in log
    assert values(scenario, "amount") == doubled(1, 2, 3, 4, 5)
    assert position(scenario, "amount") is None


def test_a_killed_process_is_gone_on_after(scenario: Scenario) -> None:
    scenario.model(ORDERS)
    scenario.run()
    args = {
        "model": "t",
        "column": "amount",
        "value": "amount + 100",
        "only_null": False,
        "rows_per_batch": 2,
    }
    with Worker() as worker:
        operation = ("run-operation", "backfill_column", "--args", json.dumps({"model": "t", **args}))
        worker.run_until_killed_in(scenario, operation, {"t": "published"})
    assert values(scenario, "amount") == amounts_plus(1, 2)
    filled(scenario, **args)
    assert values(scenario, "amount") == amounts_plus(1, 2, 3, 4, 5)
    assert set(scenario.table().metadata.refs) == {"main"}


def amounts_plus(*ids: int) -> dict[int, Decimal]:
    return {n: Decimal(f"{n}.50") + (100 if n in ids else 0) for n in range(1, 6)}


def test_a_key_that_is_no_utf_8_is_refused(scenario: Scenario) -> None:
    """Its text is another one, and a batch up to that would leave rows out."""
    keys = "values (X'61'), (X'C3'), (X'FF'), (cast(null as binary)) as r(k)"
    scenario.model(f"select cast(k as string) as id, cast(null as int) as n from {keys}")
    scenario.run()
    given = {"column": "n", "value": "length(id)", "rows_per_batch": 1}
    # PyIceberg reads no such text.
    before = scenario.table().metadata_location
    run = backfill(scenario, **given)
    assert not run.success, scenario.sql(f"select hex(id), n from {scenario.relation()}")
    assert (
        "a string in id is not valid UTF-8, so rows cannot be put in an order by it: leave such rows out by "
        "`where`, or name other columns in `batch_by`"
    ) in run.log
    assert scenario.table().metadata_location == before
    filled(scenario, **given, where="id is null or id = 'a'")
    rows = scenario.sql(f"select hex(id), n from {scenario.relation()} order by 1")
    assert rows == [(None, None), ("61", 1), ("C3", None), ("FF", None)]


def test_what_other_writers_commit_meanwhile_stays(scenario: Scenario, intrude: Intrude) -> None:
    scenario.model(ORDERS, commit_retries=1)
    scenario.run()
    more = [{"id": 6, "amount": Decimal("6.50"), "status": None, "n": None, "day": None}]
    args = {"column": "amount", "value": "amount + 100", "only_null": False, "rows_per_batch": 2}
    happened = intrude(IcebergCatalog, "publish", lambda: append(scenario, more))
    run = backfill(scenario, **args, max_batches=1)
    assert run.success, run.log
    assert happened
    assert cut(run) == 2
    assert values(scenario, "amount") == {**amounts_plus(1, 2), 6: Decimal("6.50")}

    # A row of a batch that was counted is gone, and another one is new in it.
    change = (
        f"update {scenario.relation()} set n = 7, id = case id when 4 then 40 else id end where id in (1, 4)"
    )
    happened = intrude(IcebergCatalog, "publish", lambda: scenario.sql(change))
    filled(scenario, **args)
    plus = {**amounts_plus(1, 2, 3, 5), 6: Decimal("6.50"), 40: Decimal("4.50")}
    del plus[4]
    assert values(scenario, "amount") == plus
    assert values(scenario, "n") == {1: 7, 2: None, 3: None, 5: None, 6: None, 40: 7}

    # Another command has done the same meanwhile, and forgotten it: nothing is filled twice.
    def other() -> None:
        request = backfills.Request("`amount`", "amount + 100", "", ("id",), only_null=False, key=("1",))
        name, begun = property_of(scenario.field_ids()["amount"]), backfills.begun(request, ("40",), None)
        done = begun.advanced(("40",), 6, finished=True, at="", invocation_id="")
        scenario.sql(f"update {scenario.relation()} set amount = amount + 100")
        scenario.sql(f"alter table {scenario.relation()} set tblproperties ('{name}' = '{done.text}')")
        scenario.sql(f"alter table {scenario.relation()} unset tblproperties ('{name}')")

    intrude(IcebergCatalog, "publish", other)
    log = filled(scenario, **args)
    assert "Another command has finished the backfill of `amount`\n" in log
    assert f"Backfill of `amount` in {scenario.relation()} is finished: 6 rows in 1 batch" in log
    assert values(scenario, "amount") == {n: amount + 100 for n, amount in plus.items()}
    assert position(scenario, "amount") is None

    scenario.model(ORDERS, commit_retries=0)
    intrude(IcebergCatalog, "publish", lambda: append(scenario, [{**more[0], "id": 7}]))
    run = backfill(scenario, column="n", value="0")
    assert not run.success
    assert (
        f"The backfill of `n` in {scenario.relation()} has stopped: its next batch was filled once, and "
        "other writers had committed to the table meanwhile, so it was not published. Run it when the table "
        "is quieter, or raise `commit_retries`. No row was changed."
    ) in run.log
    assert values(scenario, "n")[7] is None

    # Unless what comes between is a batch of another column's backfill.
    def other_batch() -> None:
        append(scenario, [{**more[0], "id": 4}])
        name = property_of(scenario.field_ids()["status"])
        scenario.sql(f"alter table {scenario.relation()} set tblproperties ('{name}' = 'its position')")

    intrude(IcebergCatalog, "publish", other_batch)
    filled(scenario, column="n", value="0")
    assert values(scenario, "n") == {1: 7, 2: 0, 3: 0, 4: 0, 5: 0, 6: 0, 7: 0, 40: 7}
    assert is_clean(scenario)


NESTED = (
    "select 1 as id, named_struct('zip', cast(null as string), 'city', 'A') as address, 1 as kind, "
    "array(named_struct('x', 1)) as list, cast(1 as decimal(5,2)) as price union all "
    "select 2, null, 1, null, null union all select 3, named_struct('zip', '3', 'city', 'C'), 2, null, null"
)


def test_fields_of_structs_partition_columns_and_refusals(scenario: Scenario, intrude: Intrude) -> None:
    scenario.model(NESTED, partition_by=["kind"], tblproperties={"write.update.mode": "copy-on-write"})
    scenario.run()
    filled(scenario, column="Address.ZIP", value="concat(address.city, id)")
    assert values(scenario, "address") == {
        1: {"zip": "A1", "city": "A"},
        2: None,
        3: {"zip": "3", "city": "C"},
    }
    # By its old value no row is in a batch: it has another one afterwards.
    log = filled(scenario, column="kind", value="kind + id", only_null=False, rows_per_batch=1)
    assert "3 rows in 3 batches" in log
    assert values(scenario, "kind") == {1: 2, 2: 3, 3: 5}

    # What is read elsewhere, also by the row, and what differs in each evaluation.
    most = f"(select max(id) from {scenario.relation()})"
    same = f"(select max(o.id) from {scenario.relation()} as o where o.id = DBT_INTERNAL_DEST.id)"
    filled(scenario, column="price", value=f"CAST({most} * 10 + {same} AS DECIMAL(5,2))")
    assert values(scenario, "price") == {1: Decimal("1.00"), 2: Decimal("32.00"), 3: Decimal("33.00")}
    filled(scenario, column="address.zip", value="uuid()", only_null=False)
    given = [address["zip"] for address in values(scenario, "address").values() if address]
    assert len(set(given)) == 2
    assert {len(text) for text in given} == {36}

    # A partition that appears before one that is left goes with that one, as it does after a stop.
    new = f"insert into {scenario.relation()} (id, kind, price) values (4, 4, 4), (5, 1, 5), (6, 6, 6)"
    intrude(IcebergCatalog, "publish", lambda: scenario.sql(new))
    filled(scenario, column="price", value="price + 100", only_null=False)
    plus = {1: 101, 2: 132, 3: 133, 4: 104, 5: 105, 6: 6}
    assert values(scenario, "price") == {id_: Decimal(price) for id_, price in plus.items()}

    before = scenario.state()
    refusals: list[tuple[dict[str, Any], str]] = [
        ({"column": "prise"}, "`column` is 'prise', which `lake`."),
        ({"column": "list.element.x"}, "`column` is 'list.element.x', and `list` of `lake`."),
        ({"value": "1; drop table x"}, "`value` is not one SQL expression: it has a semicolon."),
        ({"value": "1 -- more"}, "`value` is not one SQL expression: it has a comment."),
        ({"where": "id = 'a"}, "`where` is not one SQL expression: a ' is not closed."),
        ({"value": "1), kind = (2"}, "`value` is not one SQL expression: a ) closes nothing."),
        ({"value": "max(id)"}, "`value` cannot be used as an expression of a row of `lake`."),
        ({"value": "row_number() over (order by id)"}, "`value` cannot be used as an expression of a row"),
        ({"value": "nothing + 1"}, "A column, variable, or function parameter with name `nothing` cannot be"),
        (
            {"value": "shipped"},
            "If it had quotes, the shell has taken them away: they stay if `--args` is",
        ),
        ({"where": "id"}, "`where` cannot be used as an expression of a row of `lake`."),
        ({"value": "id / 3.0"}, "`value` does not fit into `price` of `lake`."),
        ({"value": "date '2026-01-01'"}, "`value` is of another type than `price` of `lake`."),
        ({"batch_by": "price"}, "`batch_by` is `price`, which the backfill changes"),
        ({"batch_by": "address"}, "`batch_by` is `address` of `lake`."),
        (
            {"rows_per_batch": 0},
            "The argument `rows_per_batch` of `backfill_column` is 0, and has to be a whole",
        ),
        ({"pause_secs": 3}, "`backfill_column` has no argument `pause_secs`. Did you mean"),
    ]
    for args, message in refusals:
        run = backfill(scenario, **{"column": "price", "value": "1", "only_null": False, **args})
        assert not run.success, args
        assert message in run.log, run.log
        assert scenario.state() == before, args
