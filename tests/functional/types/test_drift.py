"""Columns whose type is another one than the table's: widened, converted or refused."""

from datetime import datetime, timezone
from decimal import Decimal
from typing import Any

import pytest

from tests.functional.harness import Scenario


def test_new_column_is_a_bare_null(scenario: Scenario) -> None:
    scenario.model("select 1 as id")
    scenario.run()
    scenario.model("select 2 as id, null as promo")
    run = scenario.run()
    warning = f"{scenario.relation()}: `promo` is a bare NULL, which has no type, and is left out."
    assert warning in run.log
    assert scenario.rows() == [(1,), (2,)]
    assert scenario.schemas() == 1
    scenario.model("select 3 as id, 7 as promo")
    scenario.run()
    assert scenario.rows() == [(1, None), (2, None), (3, 7)]


def test_typeless_parts_of_nested_values(scenario: Scenario) -> None:
    scenario.model("select 1 as id")
    scenario.run()
    scenario.model(
        "select 1 as id, array() as tags, map('k', null) as m, named_struct('p', null) as s, "
        "named_struct('p', null, 'q', 1) as half"
    )
    run = scenario.run()
    for path in ("`tags`.`element`", "`m`.`value`", "`s`.`p`", "`half`.`p`"):
        assert f"{path} is a bare NULL" in run.log
    assert scenario.columns() == ["id", "half"]
    assert scenario.rows() == [(1, {"q": 1})]
    scenario.run()
    assert scenario.schemas() == 2


def test_existing_column_is_now_a_bare_null(scenario: Scenario) -> None:
    scenario.model("select 1 as id, 5 as promo")
    scenario.run()
    scenario.model("select 1 as id, null as promo")
    run = scenario.run()
    assert "is a bare NULL" not in run.log
    assert scenario.rows() == [(1, None)]
    assert scenario.schemas() == 1


@pytest.mark.core
def test_int_becomes_bigint(scenario: Scenario) -> None:
    scenario.model("select 1 as id, 5 as n union all select 2, 6")
    scenario.run()
    ids = scenario.field_ids()
    scenario.model("select 1 as id, 5000000000 as n")
    scenario.run()
    assert scenario.rows() == [(1, 5000000000), (2, 6)]
    assert scenario.types() == {"id": "int", "n": "long"}
    assert scenario.field_ids() == ids
    # And a narrower batch is cast up, silently.
    scenario.model("select 2 as id, 7 as n")
    scenario.run()
    assert scenario.rows() == [(1, 5000000000), (2, 7)]
    assert scenario.schemas() == 2


@pytest.mark.core
def test_widening_can_be_refused(scenario: Scenario) -> None:
    scenario.model("select 1 as id, 5 as n")
    scenario.run()
    before = scenario.state()
    scenario.model("select 1 as id, 5000000000 as n", type_widening=False)
    run = scenario.fail()
    assert (
        "Column `n` is int in the table, and the model returns bigint. It could be widened, but "
        "`type_widening` is false." in run.message
    )
    assert scenario.state() == before
    assert scenario.tables() == ["t"]


LOSSY = {
    "string into timestamp": ("timestamp'2024-01-01 00:00:00'", "'2024-01-02'", "timestamp", "string"),
    "string into int": ("1", "'1'", "int", "string"),
    "string into boolean": ("true", "'true'", "boolean", "string"),
    "string into date": ("date'2024-01-01'", "'2024-01-02'", "date", "string"),
    "timestamp into date": (
        *("date'2024-01-01'", "timestamp'2024-01-01 23:00:00'"),
        *("date", "timestamp"),
    ),
    "double into int": ("1", "1.9D", "int", "double"),
    "double into float": ("cast(1 as float)", "1e300", "float", "double"),
    "binary into string": ("'a'", "X'616263'", "string", "binary"),
    "decimal scale": ("1.50", "1.5", "decimal(3,2)", "decimal(2,1)"),
    "ntz into timestamp": (
        *("timestamp'2024-01-01 00:00:00'", "timestamp_ntz'2024-01-01 00:00:00'"),
        *("timestamp", "timestamp_ntz"),
    ),
    "int into struct": ("named_struct('x', 1)", "1", "struct<`x`:int>", "int"),
    "map into array": ("array(1)", "map('k', 1)", "array<int>", "map<string,int>"),
}
# Of which the table's type can hold all values.
WIDENED = ("double into float", "decimal scale")


@pytest.mark.core
def test_a_type_that_would_lose_something_is_refused(scenario: Scenario) -> None:
    cases = {name.replace(" ", "_"): case for name, case in LOSSY.items() if name not in WIDENED}
    for name, (first, *_) in cases.items():
        scenario.model(f"select 1 as id, {first} as c", name)
    scenario.run()
    before = {name: scenario.state(name) for name in cases}
    for name, (_, second, *_) in cases.items():
        scenario.model(f"select 1 as id, {second} as c", name)
    said = scenario.fail().said
    for name, (_, _, table_type, model_type) in cases.items():
        cast = f"cast it to {table_type} in the model; if not, return it"
        casts = f"If {table_type} holds all its values, {cast}"
        advice = "Return it" if "<" in table_type else casts
        assert (
            f"Column `c` is {table_type} in the table, and the model returns {model_type}. "
            f"{advice} under a new name, fill that for old rows, and retire the old name." in said[name]
        )
    assert {name: scenario.state(name) for name in cases} == before
    assert scenario.tables() == sorted(cases)


def test_float_is_widened_to_double(scenario: Scenario) -> None:
    scenario.model("select 1 as id, cast(1 as float) as f")
    scenario.run()
    scenario.model("select 2 as id, 1e300 as f")
    scenario.run()
    assert scenario.rows() == [(1, 1.0), (2, 1e300)]
    assert scenario.types()["f"] == "double"


def test_decimals(scenario: Scenario) -> None:
    scenario.model("select 1 as id, 1.5 as rate, 2.5 as other")
    scenario.run()
    scenario.model("select 2 as id, 10.5 as rate, 2.5 as other")
    scenario.run()
    assert scenario.types()["rate"] == "decimal(3, 1)"
    assert scenario.rows() == [(1, Decimal("1.5"), Decimal("2.5")), (2, Decimal("10.5"), Decimal("2.5"))]
    before = scenario.state()
    scenario.model("select 1 as id, 10.25 as rate, 2.5 as other")
    run = scenario.fail()
    assert "Column `rate` is decimal(3,1) in the table, and the model returns decimal(4,2)." in run.message
    assert scenario.state() == before


def test_timestamps_with_and_without_zone(scenario: Scenario) -> None:
    scenario.model("select 1 as id")
    scenario.run()
    scenario.model(
        "select 1 as id, timestamp'2024-01-01 10:00:00 America/New_York' as tz, "
        "timestamp_ntz'2024-01-01 10:00:00' as tn"
    )
    scenario.run()
    assert scenario.types() == {"id": "int", "tz": "timestamptz", "tn": "timestamp"}
    assert scenario.rows() == [
        (1, datetime(2024, 1, 1, 15, tzinfo=timezone.utc), datetime(2024, 1, 1, 10)),
    ]


def test_a_type_that_iceberg_lacks_is_stored_as_string(scenario: Scenario) -> None:
    cases: dict[str, tuple[str, str, Any]] = {
        "day": ("interval '2' day", "interval day", "INTERVAL '2' DAY"),
        "month": ("interval '2' month", "interval month", "INTERVAL '2' MONTH"),
        "within_array": ("array(interval '1' day, null)", "interval day", ["INTERVAL '1' DAY", None]),
        "within_struct": (
            *("named_struct('a', 1, 'b', interval '1' day)", "interval day"),
            {"a": 1, "b": "INTERVAL '1' DAY"},
        ),
    }
    for name in cases:
        scenario.model("select 1 as id", name)
    scenario.run()
    for name, (expression, *_) in cases.items():
        scenario.model(f"select 2 as id, {expression} as sla", name)
    warnings = scenario.run().warnings
    for name, (_, type_, stored) in cases.items():
        text = f"is of the type {type_}, which Iceberg lacks, and is stored as string."
        own = [warning for warning in warnings if scenario.relation(name) in warning]
        assert [text in warning for warning in own] == [True], own
        assert scenario.rows(name) == [(1, None), (2, stored)]
    scenario.run()
    assert [scenario.schemas(name) for name in cases] == [2] * len(cases)
    before = {name: scenario.state(name) for name in cases}
    for name, (expression, *_) in cases.items():
        scenario.model(f"select 2 as id, {expression} as sla", name, unmappable_types="fail")
    run = scenario.fail()
    said = run.said
    # Nothing is stored.
    assert [warning for warning in run.warnings if "is stored as string" in warning] == []
    for name, (_, type_, _) in cases.items():
        assert (
            f"of the type {type_}, which Iceberg cannot store, and `unmappable_types` is 'fail'."
            in said[name]
        )
    assert {name: scenario.state(name) for name in cases} == before


def test_on_the_first_run(scenario: Scenario) -> None:
    scenario.model("select 1 as id, interval '2' day as sla, null as nothing")
    run = scenario.run()
    assert "`sla` is of the type interval day, which Iceberg lacks, and is stored as string." in run.log
    assert "`nothing` is a bare NULL" in run.log
    assert scenario.rows() == [(1, "INTERVAL '2' DAY")]


def test_char_and_varchar(scenario: Scenario) -> None:
    scenario.sql(f"create schema if not exists `lake`.`{scenario.schema}`")
    scenario.sql(f"create table {scenario.relation()} (id int, code varchar(3)) using iceberg")
    scenario.sql(f"insert into {scenario.relation()} values (1, 'abc')")
    scenario.model(
        "select 2 as id, 'abcdef' as code, cast('x' as varchar(5)) as v5, cast('y' as char(4)) as c4"
    )
    scenario.run()
    assert scenario.types() == {"id": "int", "code": "string", "v5": "string", "c4": "string"}
    assert scenario.rows() == [(1, "abc", None, None), (2, "abcdef", "x", "y")]


def test_variant(scenario: Scenario) -> None:
    scenario.model("select 1 as id")
    scenario.run()
    scenario.model("""select 2 as id, parse_json('{"a": [1, "x"]}') as doc""")
    run = scenario.run()
    assert "`doc` is of the type variant, which Iceberg lacks, and is stored as string." in run.log
    assert scenario.rows() == [(1, None), (2, '{"a":[1,"x"]}')]
