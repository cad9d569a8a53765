"""A seed's table is replaced in one commit: there is the old one or the new one, also after a failure."""

import datetime
from collections.abc import Callable
from decimal import Decimal

import pytest
import yaml

from dbt.adapters.sparkevolve.iceberg.schema_history import schema_history
from tests.functional.harness import Scenario

MANY = 25


@pytest.fixture(autouse=True)
def little_goes_into_one_statement(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dbt.adapters.sparkevolve.clauses.SEED_CHARACTERS", 100)


WARNED = (
    "seed.case.few: `on_bad_rows` has no effect in a seed: it is for incremental models. No row is checked."
)


def csv(columns: str, lines: list[str]) -> str:
    return "\n".join([columns, *lines]) + "\n"


@pytest.mark.core
def test_a_seed_is_replaced_in_one_commit(scenario: Scenario) -> None:
    """With few rows, many and none; with other columns, types and rows; and with `--full-refresh`."""
    types = {
        "tiny": "tinyint",
        "code": "varchar(3)",
        "at": "timestamp",
        "on": "date",
        "amount": "decimal(20,2)",
    }
    scenario.write_project(
        seeds={
            "case": {
                "few": {
                    "+column_types": types,
                    "+delimiter": ";",
                    "+quote_columns": True,
                    "+on_bad_rows": "dead_letter",
                },
                "many": {"+partition_by": "part", "+tblproperties": {"made.for": "x"}},
                "none": {"+column_types": {"id": "int"}},
            }
        }
    )
    scenario.file(
        "seeds/few.csv",
        csv(
            "tiny;code;at;on;amount;Two Words",
            ["1;007;2024-02-29 01:02:03;2024-02-29;12345678901234567.89;x", ";;;;;"],
        ),
    )
    scenario.file("seeds/many.csv", csv("id,part,v", [f"{n},{n % 2},v{n}" for n in range(MANY)]))
    scenario.file("seeds/none.csv", csv("id,v", []))
    described = {
        "name": "few",
        "description": "table",
        "config": {"persist_docs": {"relation": True, "columns": True}},
    }
    scenario.file(
        "seeds/few.yml",
        yaml.safe_dump({"seeds": [{**described, "columns": [{"name": "tiny", "description": "column"}]}]}),
    )
    for number, arguments in enumerate(((), (), ("--full-refresh",)), start=1):
        run = scenario.dbt("seed", *arguments)
        assert run.success, run.message or run.log
        code = "CREATE" if "--full-refresh" in arguments else "INSERT"
        for name, rows, text in (("few", 2, "2 rows"), ("many", MANY, "25 rows"), ("none", 0, "0 rows")):
            response = {"code": code, "rows_affected": rows, "rows_inserted": rows, **scenario.at(name)}
            if name == "few":
                response["warnings"] = [WARNED]
            assert run.done(name) == (f"OK {text}", response)
        assert scenario.tables() == ["few", "many", "none"]
        assert scenario.types("few") == {
            "tiny": "int",
            "code": "string",
            "at": "timestamptz",
            "on": "date",
            "amount": "decimal(20, 2)",
            "Two Words": "string",
        }
        row = scenario.rows("few")[1]
        assert row[:2] + row[3:] == (
            1,
            "007",
            datetime.date(2024, 2, 29),
            Decimal("12345678901234567.89"),
            "x",
        )
        assert scenario.rows("few")[0] == (None,) * 6
        assert scenario.docs("few")["tiny"] == "column"
        assert scenario.table("few").properties["comment"] == "table"
        assert scenario.rows("many") == [(n, n % 2, f"v{n}") for n in range(MANY)]
        assert scenario.table("many").properties["made.for"] == "x"
        assert [field.name for field in scenario.table("many").spec().fields] == ["part"]
        assert scenario.types("none") == {"id": "int", "v": "long"}
        assert scenario.rows("none") == []
        assert [len(scenario.snapshots(name)) for name in ("few", "many")] == [number, number]
        assert not any(field.required for field in scenario.table("many").schema().fields)

    before = scenario.snapshots("many")
    scenario.file("seeds/many.csv", csv("id,part,w", [f"x{n},{n % 2},{n}.5" for n in range(3)]))
    scenario.file("seeds/none.csv", csv("v,id", ["a,1"]))
    # What a replacement takes away is said, and before it where that is to be an error.
    lost = (
        f"{scenario.relation('many')}: the table is replaced, and loses column `v`, which the CSV file no "
        f"longer has. What was there is in snapshot {before[-1]} until that expires."
    )
    run = scenario.dbt("--warn-error", "seed", "--select", "many")
    assert lost in run.message
    assert "so nothing was written:\n" in run.message
    assert scenario.snapshots("many") == before
    run = scenario.dbt("seed")
    assert run.success, run.message or run.log
    assert sorted(run.warnings) == sorted([WARNED, lost])
    assert run.done("many") == (
        "OK 3 rows, +1 column, 1 lost",
        {
            "code": "INSERT",
            "rows_affected": 3,
            "rows_inserted": 3,
            "columns_added": ["`w`"],
            "columns_lost": ["`v`"],
            "warnings": [lost],
            **scenario.at("many"),
        },
    )
    assert run.done("none")[0] == "OK 1 row"
    assert scenario.columns("many") == ["id", "part", "w"]
    assert scenario.rows("many") == [("x0", 0, 0.5), ("x1", 1, 1.5), ("x2", 0, 2.5)]
    assert scenario.snapshots("many")[:-1] == before
    assert scenario.rows("none") == [("a", 1)]
    # Whatever a replacement has made, or a description, is of a run.
    for name in ("few", "many", "none"):
        history = schema_history(scenario.table(name))
        assert [schema["changes"] for schema in history if not schema["invocation_id"]] == [], name
    last = schema_history(scenario.table("many"))[-1]
    assert (last["invocation_id"], last["changes"]) == (
        run.invocation_id,
        ["changed `id` (1) from bigint to string", "added `w` (4) double", "dropped `v` (3) string"],
    )


def test_a_seed_that_fails_leaves_its_table_as_it_was(scenario_factory: Callable[..., Scenario]) -> None:
    """In its last row, which is in the last statement; and where there was no table, none is made."""
    # Where a CAST would make a NULL of it.
    scenario = scenario_factory(server_side_parameters={"spark.sql.ansi.enabled": "false"})
    parted = {"parted": {"+partition_by": "days(id)"}}
    scenario.write_project(seeds={"+column_types": {"v": "int"}, "case": parted})
    for name in ("few", "many"):
        scenario.file(f"seeds/{name}.csv", csv("id,v", ["1,1"]))
    # Infinity is a value if it is what the file says.
    scenario.file("seeds/great.csv", csv("v,w", [",Infinity", ",-Infinity", ",NaN", ",1.5"]))
    assert scenario.dbt("seed").success
    assert [str(w) for _, w in scenario.rows("great")] == ["-inf", "1.5", "inf", "nan"]
    scenario.file("seeds/great.csv", csv("v,w", [",-1e400", ",1.5"]))
    states = {name: scenario.state(name) for name in ("few", "many")}
    many = csv("id,v", [*(f"{n},{n}" for n in range(MANY)), "2,no number"])
    scenario.file("seeds/few.csv", csv("id,v", ["2,2", "3,no number"]))
    scenario.file("seeds/many.csv", many)
    scenario.file("seeds/new.csv", many)
    scenario.file("seeds/parted.csv", csv("id,v", ["1,1"]))
    for arguments in ((), ("--full-refresh",)):
        run = scenario.dbt("seed", *arguments)
        assert {str(node.status) for node in run.result.result} == {"error"}
        wrong = "The value of column `v` is no int: no number"
        assert "`partition_by` has days(id), and `id` is of type bigint: `days` takes" in run.said["parted"]
        others = [text for name, text in run.said.items() if name not in ("great", "parted")]
        assert len(others) == 3
        assert all(wrong in message for message in others)
        assert "The value of column `w` is no double: -1" + "0" * 400 in run.log
        assert {name: scenario.state(name) for name in ("few", "many")} == states
        assert scenario.tables() == ["few", "great", "many"]
