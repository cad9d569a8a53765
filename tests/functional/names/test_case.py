"""Names that differ by case, and which names do."""

import os
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.catalog import Catalog
from pyiceberg.schema import Schema
from pyiceberg.types import IntegerType, NestedField

from tests.functional.harness import Scenario

# Spark compares names by lower(): these it keeps apart, although casefold() or upper() merges them.
SHARP, DOUBLE_S = "straße", "STRASSE"
LIGATURE, LETTERS = "\ufb01n", "FIN"
COMPOSED, DECOMPOSED = "\u00f1", "n\u0303"
# And these are one name to it.
UPPER_E, LOWER_E = "\u00c9", "\u00e9"
DOTTED, DOTTED_LOWER = "\u0130l", "i\u0307l"
MICRO, MICRO_UPPER = "\u00b5g", "\u00b5G"


def assert_settled(scenario: Scenario) -> None:
    """Another run of the same model changes neither rows nor columns and commits no schema."""
    before = (scenario.rows(), scenario.field_ids(), scenario.schemas())
    scenario.run()
    assert (scenario.rows(), scenario.field_ids(), scenario.schemas()) == before
    assert scenario.tables() == ["t"]


@pytest.mark.core
def test_upper_case_output_against_a_lower_case_table(scenario: Scenario) -> None:
    scenario.model("select cast(1 as bigint) as id, 'a' as name")
    scenario.run()
    ids = scenario.field_ids()
    scenario.model("select 2 as ID, 'b' as NAME")
    scenario.run()
    assert scenario.columns() == ["id", "name"]
    assert scenario.rows() == [(1, "a"), (2, "b")]
    assert scenario.field_ids() == ids
    assert scenario.schemas() == 1
    assert_settled(scenario)


def test_a_table_that_has_case_twins_is_refused(scenario: Scenario, lake: Catalog) -> None:
    lake.create_namespace(scenario.schema)
    names = ("id", "qty", "QTY")
    fields = [NestedField(n, name, IntegerType(), required=False) for n, name in enumerate(names, start=1)]
    twins = lake.create_table((scenario.schema, "t"), Schema(*fields))
    twins.append(pa.table([pa.array([value], pa.int32()) for value in (1, 5, 50)], names=names))
    state = scenario.state()
    assert state[1] == [(1, 5, 50)]
    scenario.model("select 1 as id, 5 as qty, 6 as extra")
    run = scenario.fail()
    assert run.message.endswith(
        f"The batch cannot be loaded into {scenario.relation()}, and nothing was written to it:\n"
        "    * The table has columns whose names differ only in ways that Spark ignores: `qty`, "
        "`QTY`. Spark cannot tell them apart. Rename all but one of them."
    )
    assert scenario.state() == state
    assert scenario.tables() == ["t"]


def test_the_table_keeps_its_camel_case(scenario: Scenario) -> None:
    scenario.model("select 1 as CustomerId, 'a' as FullName", unique_key="CustomerId")
    scenario.run()
    ids = scenario.field_ids()
    scenario.model(
        "select 1 as customerid, 'b' as fullname, 3 as LoyaltyTier",
        unique_key="customerid",
    )
    scenario.run()
    assert scenario.columns() == ["CustomerId", "FullName", "LoyaltyTier"]
    assert scenario.rows() == [(1, "b", 3)]
    assert scenario.field_ids() == {**ids, "LoyaltyTier": 3}
    assert scenario.schemas() == 2
    scenario.model(
        "select 1 as customerid, 'b' as fullname, 3 as loyaltytier",
        unique_key="customerid",
    )
    assert_settled(scenario)


def test_a_new_column_is_described_in_another_case(scenario: Scenario) -> None:
    def describe(text: str) -> None:
        columns = f"columns: [{{name: NEW_flag, description: {text}}}]"
        scenario.file("models/t.yml", f"models: [{{name: t, {columns}}}]")

    docs: dict[str, Any] = {"persist_docs": {"columns": True}}
    describe("whether it is new")
    scenario.model("select 1 as id", **docs)
    scenario.run()
    assert scenario.schemas() == 1
    scenario.model("select 1 as id, true as new_Flag", **docs)
    scenario.run()
    assert scenario.columns() == ["id", "new_Flag"]
    assert scenario.rows() == [(1, True)]
    assert scenario.docs() == {"id": None, "new_Flag": "whether it is new"}
    assert scenario.schemas() == 2
    assert_settled(scenario)
    describe("whether it was new")
    scenario.run()
    assert scenario.docs() == {"id": None, "new_Flag": "whether it was new"}
    assert scenario.field_ids() == {"id": 1, "new_Flag": 2}
    assert scenario.schemas() == 3


def test_names_compare_by_plain_lower_case(scenario: Scenario) -> None:
    old = ["id", SHARP, MICRO, LIGATURE, COMPOSED]
    scenario.model(f"select 1 as id, 1 as `{SHARP}`, 2 as `{MICRO}`, 3 as `{LIGATURE}`, 4 as `{COMPOSED}`")
    scenario.run()
    ids = scenario.field_ids()
    new = [DOUBLE_S, LETTERS, DECOMPOSED, DOTTED, UPPER_E]
    added = ", ".join(f"{value} as `{name}`" for value, name in enumerate(new, start=5))
    scenario.model(f"select 2 as id, {added}")
    scenario.run()
    assert scenario.columns() == [*old, *new]
    rows = [(1, 1, 2, 3, 4, *[None] * 5), (2, *[None] * 4, 5, 6, 7, 8, 9)]
    assert scenario.rows() == rows
    assert scenario.field_ids() == {**ids, **{name: value for value, name in enumerate(new, start=6)}}
    assert scenario.schemas() == 2
    assert scenario.sql(f"select * from {scenario.relation()} order by id") == rows
    # The same names in another case are the columns that are there.
    other = ["strasse", "fin", DECOMPOSED.upper(), DOTTED_LOWER, LOWER_E]
    added = ", ".join(f"{value} as `{name}`" for value, name in enumerate(other, start=5))
    scenario.model(f"select 2 as ID, {added}, 10 as `{MICRO_UPPER}`")
    scenario.run()
    assert scenario.columns() == [*old, *new]
    assert scenario.rows() == [rows[0], (2, None, 10, None, None, 5, 6, 7, 8, 9)]
    assert scenario.schemas() == 2
    assert_settled(scenario)


# lower() keeps these apart, but Java's equalsIgnoreCase() does not, and Spark uses both: a table that has
# both columns can be made, and then `select *` fails with INTERNAL_ERROR_ATTRIBUTE_NOT_FOUND.
@pytest.mark.parametrize(
    ("old", "new"),
    [
        pytest.param("\u00b5g", "\u03bcg", id="micro-mu"),
        pytest.param("id", "\u0130d", id="dotted-i"),
        pytest.param("sum", "\u017fum", id="long-s"),
    ],
)
def test_names_that_spark_confuses_are_refused(scenario: Scenario, old: str, new: str) -> None:
    scenario.model(f"select 1 as k, 5 as `{old}`, 6 as `{new}`", unique_key="k")
    run = scenario.fail()
    assert f"`{old}`, `{new}`. Spark cannot tell them apart." in run.message
    assert scenario.tables() == []
    scenario.model(f"select 1 as k, 5 as `{old}`", unique_key="k")
    scenario.run()
    state = scenario.state()
    for columns in (f"6 as `{new}`", f"5 as `{old}`, 6 as `{new}`"):
        scenario.model(f"select 1 as k, {columns}", unique_key="k")
        run = scenario.fail()
        assert f"`{old}`, `{new}`. Spark cannot tell them apart." in run.message
        assert scenario.state() == state
        assert scenario.tables() == ["t"]
    assert scenario.sql(f"select * from {scenario.relation()}") == [(1, 5)]


def test_names_compare_alike_under_a_turkish_locale(
    scenario_factory: Callable[..., Scenario], profile_target: dict[str, Any]
) -> None:
    given = profile_target.get("spark_config", {})
    options = "spark.driver.extraJavaOptions"
    turkish = f"{given.get(options, '')} -Duser.language=tr -Duser.country=TR"
    config = {**given, options: turkish}
    scenario = scenario_factory(method="session", spark_config=config)
    scenario.sql(f"create schema `lake`.`{scenario.schema}`")
    scenario.sql(f"create table {scenario.relation()} (id int, TITLE string, `{SHARP}` int) using iceberg")
    scenario.sql(f"insert into {scenario.relation()} values (1, 'one', 1), (2, 'two', 2)")
    ids = scenario.field_ids()
    v2 = "select 2 as ID, 'iki' as title, java_method('java.util.Locale', 'getDefault') as IN_FORCE"
    scenario.model(f"{v2}, 3 as `{DOUBLE_S}`, 5 as `{DOTTED}`")
    # A process of its own: a JVM takes its locale when it starts.
    folder = ("--project-dir", str(scenario.folder), "--profiles-dir", str(scenario.folder))
    run = subprocess.run(
        [sys.executable, "-m", "dbt.cli.main", "run", *folder],
        env={**os.environ, "LC_ALL": "tr_TR", "LANG": "tr_TR"},
        cwd=scenario.folder,
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=600,
    )
    assert run.returncode == 0, run.stdout + run.stderr
    assert scenario.columns() == ["id", "TITLE", SHARP, "IN_FORCE", DOUBLE_S, DOTTED]
    assert scenario.rows() == [(1, "one", 1, None, None, None), (2, "iki", None, "tr_TR", 3, 5)]
    assert scenario.field_ids() == {**ids, "IN_FORCE": 4, DOUBLE_S: 5, DOTTED: 6}
    assert scenario.schemas() == 2
    assert scenario.tables() == ["t"]


@pytest.mark.parametrize("key", ["ORDERID", ["ORDERID"]], ids=["string", "list"])
def test_unique_key_in_another_case_than_the_column(scenario: Scenario, key: Any) -> None:
    scenario.model("select 1 as OrderId, 1 as v", unique_key=key)
    scenario.run()
    ids = scenario.field_ids()
    scenario.model("select 1 as orderid, 2 as v", unique_key=key)
    scenario.run()
    assert scenario.columns() == ["OrderId", "v"]
    assert scenario.rows() == [(1, 2)]
    assert scenario.field_ids() == ids
    assert scenario.schemas() == 1
    assert_settled(scenario)
