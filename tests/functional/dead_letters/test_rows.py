"""Which rows are set aside: keys, NULL, times, nested values; first builds, refreshes, plans."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.functional.dead_letters.reading import ids, letters
from tests.functional.harness import Run, Scenario
from tests.functional.samples import history

CONFIG: dict[str, Any] = {"on_bad_rows": "dead_letter"}
MERGE = {**CONFIG, "incremental_strategy": "merge"}
KEYS = """
select * from values
  (1, 'a'), (2, 'b'), (2, 'c'), (null, 'd'), (3, 'e'), (3, 'e'), (3, 'f') as source(id, v)
"""
REPEATED = "the unique_key `id` is in several rows of the batch"


def reasons(scenario: Scenario, name: str = "t_dlt") -> dict[Any, str]:
    return {row["payload"]["id"]: row["failureReason"] for row in letters(scenario, name)}


@pytest.mark.core
def test_keys_that_a_merge_cannot_place(scenario: Scenario) -> None:
    """A first build and a run are the same; `delete+insert` has a place for all of them."""
    scenario.model(KEYS, "merged", **MERGE)
    scenario.model(KEYS, "replaced", **CONFIG)
    scenario.run()
    rows = [(None, "d"), (1, "a")]
    every = sorted([(2, "b"), (2, "c"), (3, "e"), (3, "e"), (3, "f")])
    for again in (True, False):
        assert scenario.rows("merged") == rows
        assert ids(scenario, "merged_dlt") == [2, 2, 3, 3, 3]
        assert set(reasons(scenario, "merged_dlt").values()) == {REPEATED}
        assert scenario.rows("replaced") == rows + every
        if again:
            scenario.run()
    # A key is compared as the table holds it.
    texts = "select * from values ('1', 'A'), ('1', 'B'), ('4', 'g'), ('x', 'h'), ('x', 'i') as source(id, v)"
    scenario.model(texts, "merged", **MERGE)
    run = scenario.run("-s", "merged")
    assert scenario.rows("merged") == [*rows, (4, "g")]
    found = reasons(scenario, "merged_dlt")
    assert found["1"] == REPEATED
    assert found["x"] == f"{REPEATED}; `id`: the value does not convert to int without loss"
    assert run.log.count("4 of 5 rows could not be placed") == 1
    # Of several values that do not convert none is the key of another.
    pairs = (
        "select * from values ('p', 1, 5), ('q', 1, 6), ('r', 2, 7), (null, 3, 8), ('4', 4, 9) as s(id, j, v)"
    )
    scenario.model(
        pairs.replace("'p', 1, 5", "1, 1, 5")
        .replace("'q', 1, 6", "2, 1, 6")
        .replace("'r'", "3")
        .replace("'4'", "4"),
        "pairs",
        **{**MERGE, "unique_key": ["id", "j"]},
    )
    scenario.run("-s", "pairs")
    scenario.model(pairs, "pairs", **{**MERGE, "unique_key": ["id", "j"]})
    scenario.run("-s", "pairs")
    no_int = "`id`: the value does not convert to int without loss"
    assert reasons(scenario, "pairs_dlt") == dict.fromkeys("pqr", no_int)
    # A full refresh places the same rows, and a letter that is there is not written again: not even if its
    # columns have another type and order.
    for schema, sql in (("keep", f"select v, cast(id as string) as ID from ({KEYS})"), ("replace", KEYS)):
        scenario.model(sql, "merged", **MERGE, full_refresh_schema=schema)
        scenario.run("-s", "merged", "--full-refresh")
        assert scenario.rows("merged") == rows
        assert len(ids_of(scenario, "merged_dlt")) == 9
    assert scenario.tables() == ["merged", "merged_dlt", "pairs", "pairs_dlt", "replaced"]


def ids_of(scenario: Scenario, name: str) -> list[str]:
    return [row["messageId"] for row in letters(scenario, name)]


def test_null_where_the_table_takes_none(scenario: Scenario) -> None:
    columns = "id int, n int not null, s struct<a: int not null, b: string>, l array<int>"
    scenario.sql(f"create schema if not exists `lake`.`{scenario.schema}`")
    scenario.sql(f"create table {scenario.relation()} ({columns}) using iceberg")
    sql = """
    select * from values
      (1, 1, named_struct('a', 1, 'b', 'x'), array(1)), (2, null, named_struct('a', 1, 'b', 'x'), null),
      (3, 3, named_struct('a', cast(null as int), 'b', 'x'), null), (4, 4, null, null)
    as source(id, n, s, l)
    """
    scenario.model(sql, **CONFIG, relax_not_null=False)
    scenario.run()
    assert scenario.rows() == [(1, 1, {"a": 1, "b": "x"}, [1]), (4, 4, None, None)]
    assert reasons(scenario) == {
        2: "`n`: NULL, and the column is NOT NULL",
        3: "`s`.`a`: NULL, and the column is NOT NULL",
    }
    fields = scenario.table().schema()
    assert [fields.find_field(name).required for name in ("n", "s.a")] == [True, True]
    # What may be relaxed is, but not in a run that freezes schemas.
    scenario.model(sql, **CONFIG)
    scenario.run("--vars", "{sparkevolve_freeze_schema: true}")
    assert [row[0] for row in scenario.rows()] == [1, 4]
    scenario.run()
    assert [row[0] for row in scenario.rows()] == [1, 2, 3, 4]


def test_values_inside_of_others(scenario: Scenario) -> None:
    old = "select 1 as id, named_struct('a', 1, 'gone', 2) as s, array(1) as l, map('k', array(1)) as m"
    scenario.model(old, **CONFIG)
    scenario.run()
    scenario.model(
        "select id, named_struct('a', a, 'new', 9) as s, array('7', l) as l, map('k', array(m, null)) as m\n"
        "from values (2, '2', '2', '2'), (3, 'x', '3', '3'), (4, '4', 'x', '4'), (5, '5', '5', 'x'),\n"
        "  (6, null, null, null) as source(id, a, l, m)",
        **CONFIG,
    )
    scenario.run()
    assert scenario.rows() == [
        (1, {"a": 1, "gone": 2, "new": None}, [1], [("k", [1])]),
        (2, {"a": 2, "gone": None, "new": 9}, [7, 2], [("k", [2, None])]),
        (6, {"a": None, "gone": None, "new": 9}, [7, None], [("k", [None, None])]),
    ]
    lossy = "the value does not convert to int without loss"
    assert reasons(scenario) == {
        3: f"`s`.`a`: {lossy}",
        4: f"`l`.`element`: {lossy}",
        5: f"`m`.`value`.`element`: {lossy}",
    }
    assert letters(scenario)[2]["payload"]["m"] == {"k": ["x", None]}


def run_day(scenario: Scenario, *arguments: str) -> Run:
    return scenario.run("--event-time-start", "2024-01-02", "--event-time-end", "2024-01-04", *arguments)


def test_times_that_no_batch_has(scenario: Scenario) -> None:
    times = """
    select id, ts from values
      (1, timestamp_ntz'2024-01-02 00:00:00'), (2, timestamp_ntz'2024-01-03 23:59:59.999999'),
      (3, timestamp_ntz'2024-01-04 00:00:00'), (4, cast(null as timestamp_ntz)) as source(id, ts)
    """
    day = {"incremental_strategy": "microbatch", "event_time": "ts", "begin": "2024-01-01"}
    scenario.model(times, **CONFIG, **day, batch_size="day", commit_retries=0)
    for _ in range(2):
        run = run_day(scenario, "--log-format", "json")
        assert [row[0] for row in scenario.rows()] == [1, 2]
        # Each batch has all rows here: what is in another is outside of this one. A row is one letter.
        assert sorted(row["failureReason"] for row in letters(scenario)) == [
            "`ts`: NULL, and no batch has such rows",
            "`ts`: not within the batch, which is from 2024-01-02 00:00:00 to 2024-01-03 00:00:00",
            "`ts`: not within the batch, which is from 2024-01-02 00:00:00 to 2024-01-03 00:00:00",
            "`ts`: not within the batch, which is from 2024-01-03 00:00:00 to 2024-01-04 00:00:00",
        ]
        assert ids(scenario) == [1, 2, 3, 4]
        said = [json.loads(line) for line in run.log.splitlines() if line.startswith('{"dead_letters"')]
        assert [(found["dead_letters"]["rows"], found["dead_letters"]["of"]) for found in said] == [
            (3, 4)
        ] * 2


def test_batches_in_parallel_write_to_one_table(scenario: Scenario) -> None:
    """With `direct` they load at once, and so do all of them write their letters."""
    days = ", ".join(f"({d}, timestamp_ntz'2024-01-{d:02} 05:00:00')" for d in range(1, 5))
    scenario.file(
        "models/src.sql",
        "{{ config(materialized='table', event_time='ts') }}\n"
        f"select id + odd * 100 as id, ts, odd from (select * from values {days} as days(id, ts))\n"
        "cross join (select * from values (0), (1) as odds(odd))",
    )
    day = {
        "incremental_strategy": "microbatch",
        "event_time": "ts",
        "begin": "2024-01-01",
        "batch_size": "day",
    }
    audit = {"sql": "odd = 0", "severity": "row"}
    scenario.model("select * from {{ ref('src') }}", **CONFIG, **day, audits=audit, publish="direct")
    scenario.run("--event-time-start", "2024-01-01", "--event-time-end", "2024-01-05", "--threads", "4")
    assert [row[0] for row in scenario.rows()] == [*range(1, 5)]
    assert ids(scenario) == [*range(101, 105)]
    assert list(scenario.table("t_dlt").metadata.refs) == ["main"]


def test_audits_of_single_rows_and_of_all(scenario: Scenario) -> None:
    """They see a row as the table has it, what the model does not return too; NULL meets no audit."""
    scenario.model("select 1 as id, 5 as n, 'x' as gone", **CONFIG)
    scenario.run()
    audits: list[Any] = [
        {"sql": "n > 0 -- a comment", "severity": "row"},
        {"sql": "DBT_INTERNAL_DEST.gone is null", "severity": "row"},
        "n < 100",
    ]
    rows = "select id, n from values (2, '5'), (3, '-5'), (4, null), (5, 'y') as source(id, n)"
    scenario.model(rows, **CONFIG, audits=audits)
    scenario.run()
    assert scenario.rows() == [(1, 5, "x"), (2, 5, None)]
    assert reasons(scenario) == {
        3: "audit: n > 0 -- a comment",
        4: "audit: n > 0 -- a comment",
        5: "`n`: the value does not convert to int without loss",
    }
    before = scenario.rows(), history(scenario), scenario.state("t_dlt")
    scenario.model("select id, n from values (6, '500'), (7, '-5') as source(id, n)", **CONFIG, audits=audits)
    assert "do not satisfy the model's audits" in scenario.fail().message
    wrong = {"sql": "nn > 0", "severity": "row"}
    scenario.model("select 6 as id, '5' as n", **CONFIG, audits=[audits[0], wrong])
    message = scenario.fail().message
    assert "was not published, since Spark cannot evaluate one of the model's audits: nn > 0\n" in message
    assert (scenario.rows(), history(scenario), scenario.state("t_dlt")) == before
    # Without dead letters an audit of single rows is one as any other.
    scenario.model("select 8 as id, -5 as n", audits=audits[:1])
    assert "n > 0 -- a comment: 1 row, such as id = 8" in scenario.fail().message


def test_a_plan_says_what_would_be_converted(scenario: Scenario) -> None:
    scenario.model("select 1 as id, 5 as n", **MERGE)
    scenario.run()
    scenario.model("select 2 as id, '5' as n", **MERGE, audits={"sql": "n > 0", "severity": "row"})
    run = scenario.run("--vars", "{sparkevolve_plan_only: true}")
    assert (
        f"Rows may be set aside in {scenario.relation('t_dlt')}, and the run counts them: "
        "`n`: the value does not convert to int without loss; audit: n > 0; a unique_key that is in several "
        "rows of the batch."
    ) in run.log
    assert len(history(scenario)) == 1
    assert scenario.tables() == ["t"]
    run = scenario.run("--empty")
    assert scenario.tables() == ["t"]


def test_a_batch_without_rows_and_an_audit_of_what_is_padded(scenario: Scenario) -> None:
    """Columns of another type do not fail a run that has no rows, and audits see what padding writes."""
    config: dict[str, Any] = {
        "on_bad_rows": "dead_letter",
        "pad_with": "default",
        "column_defaults": {"s": "'new'"},
        "audits": [{"sql": "s is not null", "severity": "row"}],
    }
    scenario.model("select 1 as id, 10 as n, 'a' as s", **config)
    scenario.run()
    scenario.model("select id, n from values (2, '20') as v(id, n) where id > 2", **config)
    scenario.run()
    assert scenario.rows() == [(1, 10, "a")]
    scenario.model("select id, n from values (2, '20') as v(id, n)", **config)
    scenario.run()
    assert scenario.rows() == [(1, 10, "a"), (2, 20, "new")]
    assert scenario.tables() == ["t"]


@pytest.mark.parametrize("ansi", ["true", "false"])
def test_an_audit_sees_a_row_as_the_table_will_have_it(
    scenario_factory: Callable[..., Scenario], ansi: str
) -> None:
    """With the fields of structs that only the table has, and in its types, as other audits see it."""
    scenario = scenario_factory(server_side_parameters={"spark.sql.ansi.enabled": ansi})
    audit = "s.b is null and size(l) = 1 and l[0].b is null and m['k'].b is null and n * n > 0 and f <> 0.1d"
    config: dict[str, Any] = {
        "on_bad_rows": "dead_letter",
        "audits": [{"sql": audit, "severity": "row"}],
    }
    row = (
        "{0} as id, named_struct('a', {1}{2}) as s, array(named_struct('a', 1{2})) as l, "
        "map('k', named_struct('a', 1{2})) as m, {3} as n, cast(0.1 as {4}) as f"
    )
    made = row.format("1", "1", ", 'b', cast(null as int)", "1L", "double")
    scenario.model(f"select {made}".replace("0.1", "0.5"), **config)
    scenario.run()
    assert len(scenario.rows()) == 1
    # A product beyond an int, and a value that does not convert beside fields that are added.
    less = row.format("id", "a", "", "n", "float")
    scenario.model(
        f"select {less} from values (2, '1', 50000), (3, 'x', 1), (4, '2', 0) as q(id, a, n)", **config
    )
    run = scenario.run()
    assert "2 of 3 rows could not be placed" in run.log
    assert reasons(scenario) == {
        3: "`s`.`a`: the value does not convert to int without loss",
        4: f"audit: {audit}",
    }
    nested = {"a": 1, "b": None}
    assert scenario.rows()[1] == (2, nested, [nested], [("k", nested)], 50000, pytest.approx(0.1))
    assert [r[0] for r in scenario.rows()] == [1, 2]
