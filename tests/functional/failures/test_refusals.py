"""What is refused, and that a refused or failed run leaves the table as it was and no staged batch behind.

All refusals of one kind of run happen in one dbt invocation, and each is a test of its own.
"""

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from pyiceberg.catalog import load_catalog

from tests.functional.harness import Run, Scenario, SqlRunner


@dataclass(frozen=True)
class Case:
    """A table, a batch that it cannot take, and what dbt has to say."""

    says: tuple[str, ...]
    v2: str
    v1: str | None = None
    table: str | None = None
    rows: str | None = None
    config: dict[str, Any] = field(default_factory=dict)


def differs(column: str, table: str, model: str) -> tuple[str, ...]:
    return (
        f"Column `{column}` is {table} in the table, and the model returns {model}.",
        f"If {table} holds all its values, cast it to {table} in the model; if not, return it under a "
        "new name, fill that for old rows, and retire",
    )


def reserved(name: str) -> tuple[str, ...]:
    return (
        f"The model returns the column `{name}`, a name that Iceberg keeps for its metadata columns",
        "Give the column another name in the model.",
    )


CASES = {
    "twins_in_the_batch": Case(
        v1="select 1 as id",
        v2="select 1 as id, 2 as n, 3 as N",
        says=("names differ only in ways that Spark ignores: `n`, `N`", "Rename all but one of them."),
    ),
    "twin_of_a_column": Case(
        v1="select 1 as id, 2 as n",
        v2="select 1 as id, 2 as n, 3 as N",
        says=("names differ only in ways that Spark ignores: `n`, `N`",),
    ),
    "reserved_name": Case(v1="select 1 as id", v2="select 1 as id, 'x' as _file", says=reserved("_file")),
    "reserved_name_upper": Case(v1="select 1 as id", v2="select 1 as id, 5 as _POS", says=reserved("_POS")),
    "missing_key": Case(
        v1="select 1 as id, 2 as part, 3 as v",
        v2="select 1 as id, 4 as v",
        config={"unique_key": ["id", "part"]},
        says=("The unique_key `part` is not produced by the model, which returns `id`, `v`.",),
    ),
    "int_to_string": Case(
        v1="select 1 as id, 1 as v",
        v2="select 1 as id, 'one' as v, 2 as n",
        says=differs("v", "int", "string"),
    ),
    "string_to_timestamp": Case(
        v1="select 1 as id, timestamp'2024-01-01' as v",
        v2="select 1 as id, '2024-01-01' as v",
        says=differs("v", "timestamp", "string"),
    ),
    "decimal_scale": Case(
        v1="select 1 as id, cast(1 as decimal(10,2)) as v",
        v2="select 1 as id, cast(1 as decimal(10,4)) as v",
        says=differs("v", "decimal(10,2)", "decimal(10,4)"),
    ),
    "bigint_into_int": Case(
        v1="select 1 as id, 1 as v",
        v2="select 1 as id, 9000000000 as v",
        config={"type_widening": False},
        says=("Column `v` is int in the table, and the model returns bigint. It could be widened",),
    ),
    "double_into_float": Case(
        v1="select 1 as id, cast(1 as float) as v",
        v2="select 1 as id, 1e300 as v",
        config={"type_widening": False},
        says=("Column `v` is float in the table, and the model returns double. It could be widened",),
    ),
    "timestamp_into_date": Case(
        v1="select 1 as id, date'2024-01-01' as v",
        v2="select 1 as id, timestamp'2024-01-01 10:00:00' as v",
        says=differs("v", "date", "timestamp"),
    ),
    "timestamp_zone": Case(
        v1="select 1 as id, timestamp'2024-01-01 10:00:00' as v",
        v2="select 1 as id, timestamp_ntz'2024-01-01 10:00:00' as v",
        says=differs("v", "timestamp", "timestamp_ntz"),
    ),
    "struct_field_added": Case(
        v1="select 1 as id, named_struct('x', 1) as v",
        v2="select 1 as id, named_struct('x', 1, 'y', 2) as v",
        config={"nested_evolution": False},
        says=(
            "Column `v` is struct<`x`:int> in the table, and the model returns struct<`x`:int,`y`:int>. "
            "The fields in it differ, and `nested_evolution` is false.",
        ),
    ),
    "map_value": Case(
        v1="select 1 as id, map('k', 1) as v",
        v2="select 1 as id, map('k', 'x') as v",
        says=("Column `v`.`value` is int in the table, and the model returns string.",),
    ),
    "not_null_removed": Case(
        table="id int, v int not null",
        rows="1, 1",
        v2="select 1 as id, 2 as n",
        config={"relax_not_null": False},
        says=(
            "Column `v` is NOT NULL in the table, and the model no longer returns it",
            "set `relax_not_null: true` to make it optional.",
        ),
    ),
    "not_null_holds_null": Case(
        table="id int, v int not null",
        rows="1, 1",
        v2="select 1 as id, 7 as v, 2 as n union all select 2, null, 3",
        config={"relax_not_null": False},
        says=("Column `v` is NOT NULL in the table, and the batch may hold a NULL in it.",),
    ),
    "new_key_is_ignored": Case(
        v1="select 1 as id",
        v2="select 1 as id, 2 as part",
        config={"unique_key": ["id", "part"], "on_schema_change": "ignore"},
        says=("The unique_key `part` is not a column of the table.",),
    ),
    "schema_change_fails": Case(
        v1="select 1 as id, 2 as old",
        v2="select 1 as id, 3 as new",
        config={"on_schema_change": "fail"},
        says=(
            "on_schema_change is 'fail', so nothing was written.",
            "In the model only: new. In the table only: old.",
        ),
    ),
    "several_at_once": Case(
        v1="select 1 as id, 1 as a, 'x' as b",
        v2="select 1 as id, 'x' as a, 1 as b, 5 as c",
        says=(*differs("a", "int", "string"), *differs("b", "string", "int")),
    ),
    "division_by_zero": Case(
        v1="select 1 as id, 1 as v",
        v2="select id, cast(1 / (id - id) as int) as v, 2 as n from values (1), (2) as x(id)",
        config={"pre_hook": "set spark.sql.ansi.enabled = true"},
        says=("DIVIDE_BY_ZERO",),
    ),
    "assert_true": Case(
        v1="select 1 as id, 1 as v",
        v2="select 1 as id, cast(assert_true(false) as int) as v, 2 as n",
        says=("'false' is not true!",),
    ),
    "no_such_column": Case(
        v1="select 1 as id", v2="select id, nowhere from {{ this }}", says=("UNRESOLVED_COLUMN", "`nowhere`")
    ),
}

FIRST_RUNS = {
    "first_reserved": Case(v2="select 1 as id, 'x' as _File", says=reserved("_File")),
    "first_twins": Case(
        v2="select 1 as id, 2 as n, 3 as N", says=("names differ only in ways that Spark ignores: `n`, `N`",)
    ),
    "first_missing_key": Case(
        v2="select 1 as code",
        says=("The unique_key `id` is not produced by the model, which returns `code`.",),
    ),
    "first_partition": Case(
        v2="select 1 as id, null as v",
        config={"partition_by": ["days(at)", "V"]},
        says=(
            "`partition_by` has days(at), and the model returns no `at`, but `id` int.",
            "`partition_by` has v, and the model returns no `v`, but `id` int.",
        ),
    ),
    "first_partition_of_a_table": Case(
        v2="select 1 as id",
        config={"materialized": "table", "partition_by": "day(id)"},
        says=("`partition_by` has days(id), and `id` is of type int: `days` takes a date or a timestamp.",),
    ),
    "first_buckets": Case(
        v2="select 1 as id, 2 as v",
        config={"clustered_by": ["id", "v"], "buckets": 4},
        says=("`clustered_by` has 2 columns, `id`, `v`, and a bucket of Iceberg's is of one column.",),
    ),
    "first_fails": Case(
        v2="select 1 as id, cast(assert_true(false) as int) as v", says=("'false' is not true!",)
    ),
}


@dataclass(frozen=True)
class Refused:
    """What happened to all cases."""

    scenario: Scenario
    run: Run
    said: dict[str, str]
    before: dict[str, tuple[Any, ...]]


@pytest.fixture(scope="module")
def refused(
    profile_target: dict[str, Any],
    catalog_properties: dict[str, str],
    spark_sql: SqlRunner,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Refused]:
    """Build all tables, run all batches, and keep what dbt said."""
    schema = f"refusals_{os.getpid()}"
    lake = load_catalog("lake", **catalog_properties)
    # A session of its own, since one of the models changes a setting of it.
    own = {**profile_target.get("spark_config", {}), "spark.sql.test.refusals": "true"}
    profile = {**profile_target, "spark_config": own}
    scenario = Scenario(tmp_path_factory.mktemp("refusals") / "project", schema, profile, spark_sql, lake)
    spark_sql(f"create schema `lake`.`{schema}`")
    for name, case in CASES.items():
        if case.v1 is not None:
            scenario.model(case.v1, name=name)
        else:
            spark_sql(f"create table {scenario.relation(name)} ({case.table}) using iceberg")
            spark_sql(f"insert into {scenario.relation(name)} values ({case.rows})")
    scenario.run()
    before = {name: scenario.state(name) for name in CASES}
    for name, case in {**CASES, **FIRST_RUNS}.items():
        scenario.model(case.v2, name=name, **case.config)
    run = scenario.fail()
    yield Refused(scenario, run, {node.node.name: str(node.message) for node in run.result.result}, before)
    scenario.clean_up()


@pytest.mark.parametrize("name", CASES)
@pytest.mark.core
def test_refused_batch_leaves_the_table(refused: Refused, name: str) -> None:
    for text in CASES[name].says:
        assert text in refused.said[name]
    assert refused.scenario.state(name) == refused.before[name]


@pytest.mark.parametrize("name", FIRST_RUNS)
@pytest.mark.core
def test_refused_first_run_creates_no_table(refused: Refused, name: str) -> None:
    for text in FIRST_RUNS[name].says:
        assert text in refused.said[name]
    assert name not in refused.scenario.tables()


@pytest.mark.core
def test_refusals_leave_no_staged_batch(refused: Refused) -> None:
    assert refused.scenario.tables() == sorted(CASES)


@pytest.mark.core
def test_refusals_say_that_nothing_was_written(refused: Refused) -> None:
    sql = ("division_by_zero", "assert_true", "no_such_column", "first_fails")
    for name, text in refused.said.items():
        if name not in sql:
            assert "nothing was written" in text, name
            assert refused.scenario.relation(name) in text, name


@pytest.mark.core
def test_refusals_send_no_dml(refused: Refused) -> None:
    assert not re.findall(r"^\s*(?:delete|insert|merge|alter|drop)\b.*", refused.run.log, re.M | re.I)
