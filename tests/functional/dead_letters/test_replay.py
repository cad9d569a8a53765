"""Dead letters that are loaded again once the cause is mended."""

import base64
import json
import re
import time
from collections.abc import Callable
from dataclasses import asdict
from decimal import Decimal
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.parse import urlparse
from uuid import UUID

import pytest
from pyiceberg.catalog import Catalog
from pyiceberg.schema import Schema
from pyiceberg.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    IcebergType,
    IntegerType,
    LongType,
    NestedField,
    StringType,
    UUIDType,
)

from dbt.adapters.sparkevolve.evolution.names import name_between, string_literal
from dbt.adapters.sparkevolve.load import dead_letters
from dbt.adapters.sparkevolve.load.runner import LoadRunner
from dbt.adapters.sparkevolve.sql import dead_letters as sql_letters
from dbt.adapters.sparkevolve.sql import payloads
from dbt.adapters.sparkevolve.sql import replay as sql_replay
from dbt.adapters.sparkevolve.sql.judged_letters import NEWER_ROW
from tests.functional.harness import Scenario
from tests.functional.intruders import Intrude, append, intrude, intrude_with
from tests.functional.worker import Worker
from tests.unit.helpers import array, mapping, struct

__all__ = ["intrude"]

TEXT, LONG, DOUBLE, BOOL, DATE, BINARY = (
    StringType(),
    LongType(),
    DoubleType(),
    BooleanType(),
    DateType(),
    BinaryType(),
)
DECIMAL = DecimalType(38, 18)
ROUTED: dict[str, Any] = {"on_bad_rows": "dead_letter"}


def internal_names() -> set[str]:
    """Return the names of columns of the product's own that its statements have."""
    return {
        value
        for module in (sql_replay, sql_letters)
        for value in vars(module).values()
        if isinstance(value, str) and value.startswith("sparkevolve_")
    } | set(asdict(sql_replay.Own()).values())


def letters(scenario: Scenario, name: str = "t_dlt") -> list[dict[str, Any]]:
    """Return the letters, decoded, by id."""
    rows = scenario.table(name).scan().to_arrow().to_pylist()
    for row in rows:
        row["payload"] = json.loads(base64.b64decode(row["payload"]))
    return sorted(rows, key=lambda row: (row["messageId"], json.dumps(row["payload"])))


def replay(scenario: Scenario, **args: Any) -> str:
    run = scenario.dbt("run-operation", "replay_dead_letters", "--args", json.dumps({"model": "t", **args}))
    assert run.success, run.message + run.log
    return run.log


@pytest.mark.core
@pytest.mark.parametrize("strategy", ["delete+insert", "merge"])
def test_rows_go_in_once_their_cause_is_mended(scenario: Scenario, strategy: str) -> None:
    config = {**ROUTED, "incremental_strategy": strategy}
    scenario.model("select 1 as id, 10 as amount, date '2024-01-31' as day, array(1.5d) as l", **config)
    scenario.run()
    rows = "(1, '11', date '2024-02-01'), (2, 'twenty', date '2024-02-02'), (3, '30.5', null), (4, 'x', null)"
    scenario.model(
        f"select id, amount, day, array(2.5d) as l from values {rows} as v(id, amount, day)", **config
    )
    scenario.run()
    assert scenario.rows() == [(1, 11, *scenario.rows()[0][2:])]
    assert [row["messageId"] for row in letters(scenario)] == ['{"id":2}', '{"id":3}', '{"id":4}']

    history = scenario.dbt("run-operation", "schema_history", "--args", "{model: t}").log
    at = letters(scenario)[0]["loadedAt"].replace(microsecond=0).isoformat()
    invocation_id = letters(scenario)[0]["invocationId"]
    assert f"  dead letters: 3, set aside at {at}, dbt run {invocation_id}\n" in history
    assert at.endswith("+00:00")
    # The model may have had another name while its table has had this one.
    older = f"update {scenario.relation('t_dlt')} set modelName = 'older' where messageId = '{{\"id\":4}}'"
    scenario.sql(older)
    history = scenario.dbt("run-operation", "schema_history", "--args", "{model: t}").log
    assert f"  dead letters: 2, set aside at {at}, dbt run {invocation_id}\n" in history
    assert f"  dead letters: 1, set aside at {at}, dbt run {invocation_id}, of the model `older`\n" in history
    log = replay(scenario, plan_only=True)
    update, _, rest = log.partition("  1 more is of the model `older`, and stays: if `t` was called so, `")[
        2
    ].partition("` lets a replay load it\n")
    assert rest
    scenario.sql(update)
    # What a run has left that ended while it changed the case of a name.
    between = name_between("amount")
    scenario.sql(f"alter table {scenario.relation()} rename column amount to {between}")
    log = replay(scenario)
    assert f"rename `{between}` to `amount`, since a run has ended while it changed the case" in log
    assert f"{scenario.relation()}: 0 dead letters of {scenario.relation('t_dlt')} loaded" in log
    assert "  3 stay: `amount`: the value does not convert to int without loss" in log
    assert len(letters(scenario)) == 3
    # Mended in the letters; and other rows of the keys 1 and 4 have come in since, one with the same values.
    first = base64.b64encode(json.dumps({"id": 1, "amount": 12}).encode()).decode()
    newest = f"max(loadedAt) from {scenario.relation('t_dlt')}"
    letter = f"'{{\"id\":1}}', '{first}', '', 't', '', {newest}"
    scenario.sql(f"insert into {scenario.relation('t_dlt')} select {letter}")
    for number, amount in ((2, "20"), (4, "40")):
        values = {"id": number, "amount": amount, "day": "2024-02-02", "l": [2.5]}
        payload = base64.b64encode(json.dumps(values).encode()).decode()
        scenario.sql(
            f"update {scenario.relation('t_dlt')} set payload = '{payload}' "
            f"where messageId = '{{\"id\":{number}}}'"
        )
    rows = "(4, 44, date '2024-03-01', 4.5d), (1, 11, date '2024-02-01', 2.5d)"
    scenario.model(
        f"select id, amount, day, array(l) as l from values {rows} as v(id, amount, day, l)", **config
    )
    scenario.run()
    # A full refresh is under way, whose batch a load would take away.
    note = "sparkevolve.replaced-by"
    scenario.sql(f"alter table {scenario.relation()} set tblproperties ('{note}' = '{'0' * 12}')")
    plan = replay(scenario, plan_only=True)
    assert f"{scenario.relation()}: 1 dead letter of {scenario.relation('t_dlt')} would be loaded" in plan
    assert len(letters(scenario)) == 4
    assert note in scenario.table().properties
    log = replay(scenario)
    assert note not in scenario.table().properties
    assert "1 dead letter of" in log
    assert "  2 stay: the table has rows of this key that were loaded after it" in log
    assert [row[:2] for row in scenario.rows()] == [(1, 11), (2, 20), (4, 44)]
    assert [row["messageId"] for row in letters(scenario)] == ['{"id":1}', '{"id":3}', '{"id":4}']
    replay(scenario, overwrite=True, message_ids=['{"id":4}'])
    assert [row[:2] for row in scenario.rows()] == [(1, 11), (2, 20), (4, 40)]
    assert [row["messageId"] for row in letters(scenario)] == ['{"id":1}', '{"id":3}']
    assert scenario.tables() == ["t", "t_dlt"]
    assert "sparkevolve.replayed" not in scenario.table().properties
    # Whoever deletes a row does not get it back from a letter that was written before.
    scenario.sql(f"delete from {scenario.relation()} where id = 1")
    log = replay(scenario)
    assert "  1 stays: rows of this key that the table had were deleted after it was written\n" in log
    assert "  `overwrite: true` loads these too, and replaces the rows of their keys\n" in log
    assert [row[:2] for row in scenario.rows()] == [(2, 20), (4, 40)]
    replay(scenario, overwrite=True)
    assert [row[:2] for row in scenario.rows()] == [(1, 12), (2, 20), (4, 40)]
    assert [row["messageId"] for row in letters(scenario)] == ['{"id":3}']


def test_what_is_appended_is_appended_once(scenario: Scenario) -> None:
    """Also if a replay has ended between the rows and the letters."""
    config = {**ROUTED, "unique_key": None, "audits": [{"sql": "v > 0", "severity": "row"}]}
    scenario.model("select 1 as v, 'a' as t, cast(1.25 as decimal(10,4)) as d, true as b", **config)
    scenario.run()
    source = "values (-1, 'é\"', 12345.6789, false), (-1, 'é\"', 12345.6789, false), (2, null, 0.0001, null)"
    scenario.model(f"select v, t, cast(d as decimal(10,4)) as d, b from {source} as x(v, t, d, b)", **config)
    scenario.run()
    assert len(letters(scenario)) == 2
    scenario.model(
        f"select v, t, cast(d as decimal(10,4)) as d, b from {source} as x(v, t, d, b)",
        **{**config, "audits": []},
    )
    before = scenario.table("t_dlt").current_snapshot()
    assert before is not None
    # What is the same letter twice is not parted by a limit.
    assert "2 dead letters of" in replay(scenario, limit=1)
    rows = scenario.rows()
    assert [row[0] for row in rows] == [-1, -1, 1, 2]
    assert [tuple(map(str, row)) for row in rows[:2]] == [("-1", 'é"', "12345.6789", "False")] * 2
    assert letters(scenario) == []
    # As it is if the replay ends after the rows are published, and before the letters are removed.
    ids = scenario.sql(
        "select distinct left(sha2(concat_ws('|', coalesce(messageId, ''), coalesce(payload, ''), "
        "coalesce(modelName, ''), coalesce(invocationId, ''), "
        f"cast(unix_micros(loadedAt) as string)), 256), 32) from {scenario.relation('t_dlt')} "
        f"version as of {before.snapshot_id}"
    )
    scenario.sql(f"call lake.system.rollback_to_snapshot('{scenario.schema}.t_dlt', {before.snapshot_id})")
    loaded = scenario.table().metadata.current_snapshot_id
    listed = json.dumps({"ref": "main", "snapshot": loaded, "ids": [row[0] for row in ids]})
    scenario.sql(f"alter table {scenario.relation()} set tblproperties ('sparkevolve.replayed' = '{listed}')")
    log = replay(scenario)
    assert "0 dead letters of" in log
    assert "  2 more were loaded by an earlier replay, and are removed now" in log
    assert scenario.rows() == rows
    assert letters(scenario) == []
    # Not if the table is rolled back after that: then the letters are the only copies of their rows.
    base = scenario.table().snapshots()[-1].parent_snapshot_id
    scenario.sql(f"call lake.system.rollback_to_snapshot('{scenario.schema}.t_dlt', {before.snapshot_id})")
    scenario.sql(f"alter table {scenario.relation()} set tblproperties ('sparkevolve.replayed' = '{listed}')")
    scenario.sql(f"call lake.system.rollback_to_snapshot('{scenario.schema}.t', {base})")
    log = replay(scenario)
    assert "2 dead letters of" in log
    assert "earlier replay" not in log
    assert scenario.rows() == rows
    assert letters(scenario) == []
    loaded = scenario.table().metadata.current_snapshot_id
    listed = json.dumps({"ref": "main", "snapshot": loaded, "ids": [row[0] for row in ids]})
    # Rows that were rolled back and picked again are there.
    scenario.sql(f"call lake.system.rollback_to_snapshot('{scenario.schema}.t_dlt', {before.snapshot_id})")
    scenario.sql(f"alter table {scenario.relation()} set tblproperties ('sparkevolve.replayed' = '{listed}')")
    scenario.sql(f"call lake.system.rollback_to_snapshot('{scenario.schema}.t', {base})")
    append(scenario, [{"v": 3}])
    scenario.sql(f"refresh table {scenario.relation()}")
    scenario.sql(f"call lake.system.cherrypick_snapshot('{scenario.schema}.t', {loaded})")
    assert "  2 more were loaded by an earlier replay, and are removed now" in replay(scenario)
    assert [row[0] for row in scenario.rows()] == [-1, -1, 1, 2, 3]
    # Those that were only rolled back are not, also if what tells that has expired.
    scenario.sql(f"call lake.system.rollback_to_snapshot('{scenario.schema}.t_dlt', {before.snapshot_id})")
    scenario.sql(f"alter table {scenario.relation()} set tblproperties ('sparkevolve.replayed' = '{listed}')")
    scenario.sql(f"call lake.system.rollback_to_snapshot('{scenario.schema}.t', {base})")
    append(scenario, [{"v": 4}])
    scenario.sql(f"refresh table {scenario.relation()}")
    scenario.sql(
        f"call lake.system.expire_snapshots(table => '{scenario.schema}.t', retain_last => 1, "
        "older_than => timestamp '2100-01-01 00:00:00')"
    )
    assert len(scenario.snapshots()) == 1
    assert "2 dead letters of" in replay(scenario)
    assert [row[0] for row in scenario.rows()] == [-1, -1, 1, 2, 4]
    loaded = scenario.table().metadata.current_snapshot_id
    listed = json.dumps({"ref": "main", "snapshot": loaded, "ids": [row[0] for row in ids]})
    # Or if the batch is loaded again before that, and the rows that were in are bad ones again.
    scenario.sql(f"call lake.system.rollback_to_snapshot('{scenario.schema}.t_dlt', {before.snapshot_id})")
    scenario.sql(f"alter table {scenario.relation()} set tblproperties ('sparkevolve.replayed' = '{listed}')")
    scenario.model(f"select v, t, cast(d as decimal(10,4)) as d, b from {source} as x(v, t, d, b)", **config)
    scenario.run("--full-refresh")
    assert [row[0] for row in scenario.rows()] == [2]
    assert len(letters(scenario)) == 2
    assert "0 dead letters of" in replay(scenario)
    assert len(letters(scenario)) == 2
    # Equal letters of which an audit says now this, now that: each is in one place.
    payload = base64.b64encode(json.dumps({"v": -9, "t": None, "d": None, "b": None}).encode()).decode()
    scenario.sql(
        f"insert into {scenario.relation('t_dlt')} select 'nine', '{payload}', '', 't', '', "
        "timestamp '2026-01-01 00:00:00' from range(40)"
    )
    config["audits"] = [{"sql": "v = -9 and rand() > 0.5", "severity": "row"}]
    scenario.model(f"select v, t, cast(d as decimal(10,4)) as d, b from {source} as x(v, t, d, b)", **config)
    replay(scenario)
    assert [row[0] for row in scenario.rows()] == [2]
    assert len(letters(scenario)) == 2 + 40


def test_what_a_letter_does_not_have_stays_as_it_is(scenario: Scenario) -> None:
    """A column that the model did not return any more, and one that it does not return yet."""
    config = {**ROUTED, "incremental_strategy": "merge"}
    scenario.model("select * from values (1, 10, 5), (2, 20, 6), (4, 40, 7) as s(id, n, x)", **config)
    scenario.run()
    scenario.model("select * from values (1, '11'), (2, 'bad'), (3, 'bad') as s(id, n)", **config)
    scenario.run()
    scenario.model("select * from values (4, 'bad', 70, 'y'), (5, '50', 8, 'z') as s(id, n, x, y)", **config)
    scenario.run()
    kept = [(1, 11, 5, None), (2, 20, 6, None), (4, 40, 7, None), (5, 50, 8, "z")]
    assert scenario.rows() == kept
    for number, values in ((2, {}), (3, {}), (4, {"x": 70, "y": "y"})):
        mended = base64.b64encode(json.dumps({"id": number, "n": f"{number}2", **values}).encode()).decode()
        letter = f"messageId = '{{\"id\":{number}}}'"
        scenario.sql(f"update {scenario.relation('t_dlt')} set payload = '{mended}' where {letter}")
    assert "3 dead letters of" in replay(scenario)
    assert scenario.rows() == [
        (1, 11, 5, None),
        (2, 22, 6, None),
        (3, 32, None, None),
        (4, 42, 70, "y"),
        (5, 50, 8, "z"),
    ]
    assert letters(scenario) == []
    assert "sparkevolve.replayed" not in scenario.table().properties


def test_of_each_key_the_newest_letter_counts(scenario: Scenario) -> None:
    """Whatever its key is written like, whichever columns letters have, in whichever commit they go in."""
    models = {"t": "delete+insert", "u": "merge"}
    audit = {"audits": [{"sql": "n > 0", "severity": "row"}]}
    decimal = "cast(0.5 as decimal(38,18))"
    first = (
        "select 1 as id, 5 as n, 'a' as x, cast('first' as binary) as b, "
        f"{decimal} as d, named_struct('d', array({decimal})) as s"
    )
    # A text for a binary column, which happens to be one in Base64.
    for query in (first, "select 3 as id, -1 as n, 'text' as b"):
        for name, strategy in models.items():
            scenario.model(query, name, **ROUTED, **audit, incremental_strategy=strategy)
        scenario.run()
    old, new = "timestamp '2026-01-01 00:00:00'", "timestamp '2026-01-02 00:00:00'"
    found = [
        ('{"id":1}', '{"id":1,"n":10}', old),
        ('{"id":"1"}', '{"id":"1","n":20,"x":"new"}', new),
        ("a hash", '{"id":2.0,"n":10,"x":"old"}', old),
        ("its hash", '{"id":2,"n":15,"x":"older"}', "timestamp '2025-02-01 00:00:00'"),
        ("his hash", '{"id":2,"n":16,"x":"oldest"}', "timestamp '2025-01-01 00:00:00'"),
        ('{"id":2}', '{"n":20,"id":2}', new),
        # It would replace all rows that have no key.
        ("another hash", '{"n":30}', old),
        # Two rows of one batch, of which somebody has mended one.
        ('{"id":5}', '{"id":5,"n":50,"x":"e"}', old),
        ('{"id":"5"}', '{"id":"5","n":51}', old),
        # More digits than a double has, in the letter's own words.
        (
            '{"id":4}',
            '{"id":4,"x":1.50,"d":1.23456789012345641,"s":{"d":[-0.98765432109876541, 1]}, "b":"\\u0059Q=="}',
            old,
        ),
        # Written by hand.
        ('{"id":6}', '{"id":6,"n":60}', "null"),
    ]
    kept = (
        "letters of this key and this time do not all have the same columns, and go in together only: give "
        "each of them all of these in its payload, with null where there is no value",
        "`id` of the unique_key is not in it: put that into its payload, with null if the row has none",
        "`loadedAt` is NULL, and nothing else tells whether the row of its key is newer: put in the time",
    )
    for name, strategy in models.items():
        scenario.model(first, name, **ROUTED, incremental_strategy=strategy)
        values = ", ".join(
            f"('{id_}', '{base64.b64encode(text.encode()).decode()}', null, '{name}', null, {at})"
            for id_, text, at in found
        )
        scenario.sql(f"insert into {scenario.relation(f'{name}_dlt')} values {values}")
        log = replay(scenario, model=name)
        assert "3 dead letters of" in log
        assert "  4 stay: another dead letter of this key is newer\n" in log
        for reason in kept:
            assert f": {reason}\n" in log
        assert "  1 stays: the table has rows of this key that were loaded after it\n" in log
        rows = [(1, 5, "a", b"first"), (2, 20, None, None), (3, -1, None, b"text")]
        rows.append((4, None, "1.50", b"a"))
        assert [row[:4] for row in scenario.rows(name)] == rows
        digits = [Decimal("-0.98765432109876541"), Decimal(1)]
        assert scenario.rows(name)[-1][4:] == (Decimal("1.23456789012345641"), {"d": digits})
        oldest = replay(scenario, model=name, overwrite=True, limit=3, plan_only=True)
        assert "2 dead letters of" in oldest
        assert "would be loaded" in oldest
        assert "5 dead letters of" in replay(scenario, model=name, overwrite=True)
        rows[:2] = [(1, 20, "new", b"first" if strategy == "merge" else None), (2, 10, "old", None)]
        assert [row[:4] for row in scenario.rows(name)] == rows
        assert [row["failureReason"] for row in letters(scenario, f"{name}_dlt")] == [
            kept[1],
            kept[0],
            kept[0],
            kept[2],
        ]


def test_rows_are_newer_in_columns_that_are_new_or_renamed_too(
    scenario: Scenario, lake: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A letter replaces no row that has got another value since; what is only called otherwise is none.

    Nor does it if the clock of dbt's machine was ahead of Spark's, or the key is a uuid in capitals.
    """
    keyed = {"t": "delete+insert", "u": "merge"}
    uuid = "a1111111-aaaa-4bbb-8ccc-222222222222"
    scenario.sql(f"create schema if not exists `lake`.`{scenario.schema}`")
    fields = [("id", UUIDType()), ("n", IntegerType())]
    lake.create_table(
        (scenario.schema, "v"),
        Schema(*(NestedField(n, name, type_, required=False) for n, (name, type_) in enumerate(fields, 1))),
        properties={"format-version": "2"},
    )
    of_uuid = iter([("10", "5"), ("'a'", "'5'"), ("99", "5"), ("99", "5")])

    def run(query: str, **config: Any) -> None:
        for name, strategy in keyed.items():
            scenario.model(query, name, **{**ROUTED, "incremental_strategy": strategy, **config})
        n, other = next(of_uuid)
        of_key = f"('{uuid.upper()}', {n}), ('{uuid[:-1]}3', {other})"
        scenario.model(f"select * from values {of_key} as s(id, n)", "v", **ROUTED)
        scenario.run()

    at = "timestamp '2024-01-31 12:00:00.000001Z' as at"
    run(f"select id, 10 as n, cast(1.1 as float) as m, {at} from values (1), (2), (3), (4) as s(id)")
    rows = "(1, 'a'), (2, 'b'), (3, 'c'), (4, 'd'), (5, '20')"
    ahead = SimpleNamespace(
        time_ns=lambda: time.time_ns() + 600 * 10**9, sleep=time.sleep, monotonic=time.monotonic
    )
    with monkeypatch.context() as patched:
        patched.setattr(dead_letters, "time", ahead)
        run(f"select id, n, cast(1.1 as float) as m, {at} from values {rows} as s(id, n)")
    # Of 1 a new column has a value, of 2 a renamed one another value, of 4 a time; 3 has none of this.
    later = at.replace("01Z", "02Z").removesuffix(" as at")
    run(
        "select id, amount, cast(1.1 as float) as m, at, y from values "
        f"(1, 10, {at.removesuffix(' as at')}, 'new'), (2, 99, {at.removesuffix(' as at')}, null), "
        f"(4, 10, {later}, null) as s(id, amount, at, y)",
        column_renames={"n": "amount"},
    )
    run(
        f"select 5 as id, 20 as amount, cast(1.1 as double) as m, {at}, 'y' as y",
        column_renames={"n": "amount"},
    )
    for name in keyed:
        assert scenario.types(name)["m"] == "double"
        for number in range(1, 5):
            values = {"id": number, "n": "20", "m": "1.1", "at": "2024-01-31 12:00:00.000001Z"}
            payload = base64.b64encode(json.dumps(values).encode()).decode()
            scenario.sql(
                f"update {scenario.relation(f'{name}_dlt')} set payload = '{payload}' "
                f"where messageId = '{{\"id\":{number}}}'"
            )
        log = replay(scenario, model=name)
        assert "1 dead letter of" in log
        assert "  3 stay: the table has rows of this key that were loaded after it\n" in log
        found = [(row[0], row[1], row[4]) for row in scenario.rows(name)]
        assert found == [(1, 10, "new"), (2, 99, None), (3, 20, None), (4, 10, None), (5, 20, "y")]
    payload = base64.b64encode(json.dumps({"id": uuid.upper(), "n": 20}).encode()).decode()
    scenario.sql(f"update {scenario.relation('v_dlt')} set payload = '{payload}'")
    log = replay(scenario, model="v")
    assert "  1 stays: the table has rows of this key that were loaded after it\n" in log
    assert scenario.rows("v") == [(UUID(uuid), 99), (UUID(f"{uuid[:-1]}3"), 5)]


def test_a_key_is_loaded_once_whatever_rows_the_predicates_leave_out(scenario: Scenario) -> None:
    """A predicate that goes with the time has left the row of an older letter behind, which has its key."""
    keyed = {"t": "delete+insert", "u": "merge"}
    late = ["DBT_INTERNAL_DEST.day >= date '2024-02-01'"]

    def run(query: str, **config: Any) -> None:
        for name, strategy in keyed.items():
            of_strategy = {**ROUTED, "incremental_strategy": strategy, **config}
            if config and strategy == "delete+insert":
                # A subquery, which a MERGE does not take.
                days = "select date '2024-02-01' union all select date '2024-03-01'"
                of_strategy["incremental_predicates"] = [f"day in ({days})"]
            scenario.model(query, name, **of_strategy)
        scenario.run()

    days = "(1, {}, date '2024-01-31'), (2, {}, date '2024-02-01'), (null, {}, date '2024-01-31')"
    run(f"select * from values {days.format(10, 10, 10)} as s(id, n, day)")
    bad = f"{days} , (3, {{}}, date '2024-01-31'), (4, {{}}, date '2024-02-01')".format(
        "'a'", "'b'", "'d'", "'c'", "'4'"
    )
    run(f"select * from values {bad} as s(id, n, day)", incremental_predicates=late)
    for name in keyed:
        for number, day in ((1, "01-31"), (2, "02-01"), (3, "01-31"), ("null", "01-31")):
            values = {"id": None if number == "null" else number, "n": "20", "day": f"2024-{day}"}
            payload = base64.b64encode(json.dumps(values).encode()).decode()
            scenario.sql(
                f"update {scenario.relation(f'{name}_dlt')} set payload = '{payload}' "
                f"where messageId = '{{\"id\":{number}}}'"
            )
        # Newer than its letter too, which `overwrite` would not load either.
        scenario.sql(f"update {scenario.relation(name)} set n = 11 where id = 1")
        reason = "the table has rows of this key that `incremental_predicates` leave out"
        assert f"  2 would stay: {reason}" in replay(scenario, model=name, plan_only=True)
        stay = f"  2 stay: {reason}, and would have the key twice\n"
        log = replay(scenario, model=name)
        assert "2 dead letters of" in log
        assert stay in log
        assert "`overwrite: true` loads these too" not in log
        # Of several letters of a key the newest one's row is the one to be there.
        several = [(5, 50, "01-31"), (5, 51, "01-31"), (6, 60, "02-01"), (6, 61, "01-31")]
        for number, n, day in several:
            values = {"id": number, "n": n, "day": f"2024-{day}"}
            payload = base64.b64encode(json.dumps(values).encode()).decode()
            scenario.sql(
                f"insert into {scenario.relation(f'{name}_dlt')} "
                f"values ('{{\"id\":{number}}}', '{payload}', '', '{name}', '', now())"
            )
        log = replay(scenario, model=name, overwrite=True)
        assert "3 dead letters of" in log
        assert stay in log
        assert (
            "  1 stays: another dead letter of this key is newer, and `incremental_predicates` would leave "
            "out this one's row\n"
        ) in log
        rows = [(None, 10), (1, 11), (2, 20), (3, 20), (4, 4), (5, 51), (6, 61)]
        assert [row[:2] for row in scenario.rows(name)] == rows
        assert [row["payload"]["n"] for row in letters(scenario, f"{name}_dlt")] == ["20", 50, "20"]


@pytest.mark.parametrize("does", ["remove", "load", "keep"])
def test_what_another_replay_does_meanwhile_is_done_once(
    scenario: Scenario, intrude: Intrude, does: str
) -> None:
    """The other one has removed its letters, or is about to; or it has kept them, for a reason of its own."""
    config = {**ROUTED, "unique_key": None}
    scenario.model(
        "select 1 as v union all select -1", audits=[{"sql": "v > 0", "severity": "row"}], **config
    )
    scenario.run()
    scenario.model("select 1 as v union all select -1", **config)
    listed = (
        "left(sha2(concat_ws('|', messageId, payload, modelName, invocationId, "
        "cast(unix_micros(loadedAt) as string)), 256), 32)"
    )

    def other() -> None:
        if does == "keep":
            scenario.sql(f"update {scenario.relation('t_dlt')} set failureReason = 'another'")
            return
        append(scenario, [{"v": -1}])
        ids = [row[0] for row in scenario.sql(f"select {listed} from {scenario.relation('t_dlt')}")]
        if does == "remove":
            scenario.sql(f"delete from {scenario.relation('t_dlt')}")
            return
        change = scenario.table().transaction()
        loaded = scenario.table().metadata.current_snapshot_id
        published = {"ref": "main", "snapshot": loaded, "ids": ids}
        change.set_properties({"sparkevolve.replayed": json.dumps(published)})
        change.commit_transaction()

    intrude(LoadRunner, "publish" if does == "keep" else "begin_load", other)
    log = replay(scenario)
    assert scenario.rows() == [(-1,), (1,)]
    assert letters(scenario) == []
    assert f"{1 if does == 'keep' else 0} dead letter" in log
    assert ("\n  1 more was loaded by another replay meanwhile\n" in log) is (does == "load")
    gone = "  1 more was removed from the dead letters by others meanwhile, and not loaded by this replay"
    assert (gone in log) is (does == "remove")
    assert "none matches" not in log
    assert "sparkevolve.replayed" not in scenario.table().properties


def test_two_replays_at_once(scenario: Scenario, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each letter goes in once, and each replay says what it has done, whenever the other one comes."""
    audits = [{"sql": "v > 0", "severity": "row"}]
    numbers = range(-700, 0)
    models: dict[str, dict[str, Any]] = {
        "t": {"unique_key": None, "publish": "branch"},
        "u": {"unique_key": None, "publish": "direct"},
        "w": {"unique_key": "v", "publish": "direct", "incremental_strategy": "merge"},
    }
    for name, config in models.items():
        scenario.model("select 1 as v, 'x' as n", name, audits=audits, **ROUTED, **config)
    scenario.run()
    for name, config in models.items():
        query = f"select cast(id as int) as v, 'x' as n from range({numbers[0]}, 0)"
        scenario.model(query, name, audits=audits, **ROUTED, **config)
    scenario.run()
    for name, config in models.items():
        # What is bad still stays in both.
        still = [{"sql": "v <> -5", "severity": "row"}]
        scenario.model("select 1 as v, 'x' as n", name, audits=still, **ROUTED, **config)
    expected = [(v, "x") for v in (*numbers, 1) if v != -5]
    with Worker() as worker:

        def other(name: str) -> None:
            command = ("run-operation", "replay_dead_letters", "--args", json.dumps({"model": name}))
            (outcome,) = worker.run(scenario, command)
            assert outcome.success, outcome.message

        # Before what this one has loaded is published, after it is, and before it loads anything.
        meanwhile = {"t": ("publish", False), "u": ("publish", True), "w": ("begin_load", False)}
        for name, (method, after) in meanwhile.items():
            with monkeypatch.context() as patch:
                happened = intrude_with(patch, LoadRunner, method, lambda n=name: other(n), after=after)
                log = replay(scenario, model=name)
            assert len(happened) == 1
            (own,) = map(int, re.findall(r"(\d+) dead letters of .* loaded", log))
            # Of the letters of the first commit one may be the bad one.
            assert own in ((499, 500) if name == "u" else (0,))
            assert f"\n  {699 - own} more were loaded by another replay meanwhile\n" in log
            assert "  1 stays: audit: v <> -5" in log
            assert scenario.rows(name) == expected
            assert [row["payload"]["v"] for row in letters(scenario, f"{name}_dlt")] == [-5]
            assert "sparkevolve.replayed" not in scenario.table(name).properties


def test_values_without_a_place_and_conditions_that_are_none(scenario: Scenario) -> None:
    """A letter is the only copy of its row, so nothing of it goes without a word, at any depth."""
    config: dict[str, Any] = {**ROUTED, "audits": [{"sql": "id > 0", "severity": "row"}]}
    nested = (
        "named_struct('a', 1, 'in', named_struct('b', 2)) as s, array(named_struct('c', 3)) as l, "
        "map('k', named_struct('d', array(named_struct('e', 4)))) as m"
    )
    nested += ", 'a' as t"
    scenario.model(f"select id, {nested} from values (1), (-1) as v(id)", **config)
    scenario.run()
    payloads: list[dict[str, Any]] = [
        {"id": 2, "s": {"a": 1, "in": {"b": 2, "x": 9}}},
        {"id": 3, "s": {"a": 1, "x`": {"y": 1}}},
        {"id": 4, "l": [{"c": 3}, {"c": 3, "x": [1]}]},
        {"id": 5, "m": {"k": {"d": [{"e": 4, "x": False}]}, "j": None}},
        {"id": 6, "x": 0, "s": {"A": 1, "IN": {"B": 2}}, "l": [{"C": 3}], "m": {"k": {"D": [{"E": 4}]}}},
        {"id": 7, "x": None, "s": {"a": 1, "in": {"b": 2, "x": None}}, "l": [{"c": 3, "x": None}, None]},
    ]
    # Values of another shape than the type that the table has now, which Spark would read as NULL.
    misshapen: dict[int, tuple[str, Any]] = {
        20: ("s", 5),
        21: ("s", {"a": 1, "in": 5}),
        22: ("s", {"in": '{"b":2}'}),
        23: ("s", {"in": [{"b": 2}]}),
        24: ("l", {"c": 3}),
        25: ("l", [{"c": 3}, 4]),
        26: ("m", {"k": {"d": {"e": 4}}}),
        27: ("m", {"k": {"d": [{"e": 4}, "e"]}, "j": None}),
        28: ("m", [1]),
        # As of a struct that was replaced by a text.
        29: ("t", {"c": 3.50}),
    }
    # One place in the table, and two values.
    twice = {30: {"s": {"a": 1, "A": 2}}, 31: {"l": [{"c": 3, "C": 3}]}, 32: {"T": "a", "t": "b"}}
    payloads += [{"id": number, **values} for number, values in twice.items()]
    payloads += [{"id": number, name: value} for number, (name, value) in misshapen.items()]
    values = ", ".join(
        f"('{{\"id\":{p['id']}}}', '{base64.b64encode(json.dumps(p).encode()).decode()}', '', 't', '', now())"
        for p in payloads
    )
    scenario.sql(f"insert into {scenario.relation('t_dlt')} values {values}")
    log = replay(scenario, where="messageId <> '{\"id\":-1}'")
    assert "1 dead letter of" in log
    paths = {2: "`s`.`in`.`x`", 3: "`s`.`x```", 4: "`l`.`element`.`x`", 5: "`m`.`value`.`d`.`element`.`x`"}
    paths[6] = "`x`"
    for path in paths.values():
        assert f"  1 stays: {path}: not in the table\n" in log
    types = {
        "s": "struct<`a`:int,`in`:struct<`b`:int>>",
        "l": "array<struct<`c`:int>>",
        "m": "map<string,struct<`d`:array<struct<`e`:int>>>>",
        "t": "string",
    }
    unread = {n: f"`{name}`: cannot be read back as {types[name]}" for n, (name, _) in misshapen.items()}
    for count, name in ((4, "s"), (2, "l"), (3, "m")):
        assert f"  {count} stay: `{name}`: cannot be read back as {types[name]}\n" in log
    seven = (7, {"a": 1, "in": {"b": 2}}, [{"c": 3}, None])
    assert [row[:3] for row in scenario.rows() if row[0] != 1] == [seven]
    found = {row["payload"]["id"]: row["failureReason"] for row in letters(scenario)}
    several = {30: "`s`.`A`, `s`.`a`", 31: "`l`.`element`.`C`, `l`.`element`.`c`", 32: "`T`, `t`"}
    repeated = {n: f"{paths}: one place in the table, and several values" for n, paths in several.items()}
    missing = {n: f"{path}: not in the table" for n, path in paths.items()}
    assert found == {-1: "audit: id > 0", **missing, **unread, **repeated}

    # What is no condition is said with the columns that there are; nothing is loaded.
    both = "messageId = '1') or (true"
    for where, why in (
        ("amount > 3", "Spark says: [UNRESOLVED_COLUMN"),
        ("messageId =", "Spark says: [PARSE_SYNTAX_ERROR"),
        (both, "It is not one SQL expression: a ) closes nothing."),
    ):
        arguments = json.dumps({"model": "t", "where": where})
        run = scenario.dbt("run-operation", "replay_dead_letters", "--args", arguments)
        assert not run.success
        message = run.message + run.log
        text = f"`where` is no condition over the dead letters of {scenario.relation()}: {where}\n"
        assert text + why in re.sub("\n +", "\n", message)
        assert (
            "has the columns `messageId`, `payload`, `failureReason`, `modelName`, `invocationId`, "
            in message
        )
    assert len(letters(scenario)) == 6 + len(misshapen) + len(twice)

    # A run leaves such values out under `ignore`, and so does a replay, which says so.
    config["on_schema_change"] = "ignore"
    scenario.model(f"select id, {nested} from values (1), (-1) as v(id)", **config)
    log = replay(scenario, where="messageId <> '{\"id\":-1}'")
    assert "5 dead letters of" in log
    for path in paths.values():
        assert f"  {path} were left out of 1: not in the table, and on_schema_change is `ignore`\n" in log
    assert scenario.tables() == ["t", "t_dlt"]
    assert sorted(row[0] for row in scenario.rows()) == [1, 2, 3, 4, 5, 6, 7]
    six = (6, {"a": 1, "in": {"b": 2}}, [{"c": 3}], [("k", {"d": [{"e": 4}]})], None)
    assert scenario.rows()[5] == six
    assert [row["payload"]["id"] for row in letters(scenario)] == [-1, *misshapen, *twice]

    scenario.model(f"select id, id as other, {nested} from values (1) as v(id)", **config, unique_key="other")
    run = scenario.dbt("run-operation", "replay_dead_letters", "--args", '{"model": "t"}')
    reason = "has no column `other` of the unique_key: run the model first. Nothing was loaded."
    assert f"{scenario.relation()} {reason}" in run.message + run.log


def written_by_hand(scenario: Scenario) -> Callable[..., None]:
    """Make the table of dead letters, and return what writes one of now."""
    texts = ("messageId", "payload", "failureReason", "modelName", "invocationId")
    columns = ", ".join(f"{name} string" for name in texts)
    scenario.sql(f"create table {scenario.relation('t_dlt')} ({columns}, loadedAt timestamp) using iceberg")

    def write(number: int, **found: Any) -> None:
        payload = base64.b64encode(json.dumps({"id": number, **found}).encode()).decode()
        values = f"'{number}', '{payload}', '', 't', '', now()"
        scenario.sql(f"insert into {scenario.relation('t_dlt')} values ({values})")

    return write


def with_values(scenario: Scenario) -> dict[int, dict[str, Any]]:
    """Return the rows by id, without the columns that are NULL in them."""
    found = scenario.table().scan().to_arrow().sort_by("id").to_pylist()
    return {row.pop("id"): {name: value for name, value in row.items() if value is not None} for row in found}


def test_what_a_name_meant_when_a_letter_was_written(scenario: Scenario) -> None:
    """Another column, which has another name now or is gone; or bytes, whose Base64 is a text."""
    scenario.sql(f"create schema if not exists `lake`.`{scenario.schema}`")
    scenario.sql(f"create table {scenario.relation()} (id int, a string, b string, c binary) using iceberg")
    more = "d int, e int, g int, s struct<x:int>"
    scenario.sql(f"alter table {scenario.relation()} add columns ({more})")
    write = written_by_hand(scenario)

    def rows() -> dict[int, dict[str, Any]]:
        return with_values(scenario)

    write(1, a="old a")
    write(2, b="text")
    write(3, c="dGV4dA==")
    write(6, d=20)
    write(7, d="n/a")
    write(8, e=20)
    write(9, g=20)
    write(10, s={"x": 20})
    scenario.sql(f"alter table {scenario.relation()} rename column a to old")
    scenario.sql(f"alter table {scenario.relation()} add column a string")
    with scenario.table().update_schema(allow_incompatible_changes=True) as update:
        for name, type_ in (("b", BINARY), ("c", TEXT)):
            update.delete_column(name)
            update.add_column(name, type_)
        update.delete_column("e")
        update.add_column("e", IntegerType())
    # As a run does that retires a column and replaces it, and one that renames a column.
    with scenario.table().transaction() as commit:
        with commit.update_schema() as update:
            for name, new in (("d", "d_old"), ("s.x", "x_old"), ("g", "h")):
                update.rename_column(name, new)
        with commit.update_schema() as update:
            update.add_column("d", TEXT)
            update.add_column(("s", "x"), LONG)
    write(4, a="a", b="dGV4dA==", c="text")
    write(5, old="old a")
    write(11, d="n/a", e=21, h=21, s={"x": 21, "x_old": 22})
    write(12, g=21)
    scenario.model("select 1 as id", **ROUTED, incremental_strategy="merge")
    assert "7 dead letters of" in replay(scenario)
    assert rows() == {
        1: {"old": "old a"},
        4: {"a": "a", "b": b"text", "c": "text"},
        5: {"old": "old a"},
        6: {"d_old": 20},
        9: {"h": 20},
        10: {"s": {"x": None, "x_old": 20}},
        11: {"d": "n/a", "e": 21, "h": 21, "s": {"x": 21, "x_old": 22}},
    }
    reasons = {row["payload"]["id"]: row["failureReason"] for row in letters(scenario)}
    assert reasons.pop(7) == "`d_old`: the value does not convert to int without loss"
    assert reasons.pop(12) == "`g`: not in the table"
    of_bytes = (
        "it had another type, and JSON does not tell bytes from text: put into the payload what it is to be "
        "(of bytes the Base64), and set `loadedAt` to a later time"
    )
    expected = {
        2: ("`b`", of_bytes),
        3: ("`c`", of_bytes),
        8: (
            "`e`",
            "another column had this name, which was dropped: leave the value out of the payload, or, if it "
            "is meant for the one that has the name now, set `loadedAt` to a later time",
        ),
    }
    assert reasons.keys() == expected.keys()
    for number, (name, reason) in expected.items():
        assert reasons[number].startswith(f"{name}: when this was written, before 20")
        assert reasons[number].endswith(f", {reason}")
    scenario.sql(f"update {scenario.relation('t_dlt')} set loadedAt = now()")
    assert "3 dead letters of" in replay(scenario, where="messageId <> '2'")
    found = rows()
    assert found[3] == {"c": "dGV4dA=="}
    assert [found[number] for number in (7, 8)] == [{"d": "n/a"}, {"e": 20}]
    # What has no place is left out, but for what may be the value of a column by a name that it had then.
    ignoring = {**ROUTED, "incremental_strategy": "merge", "on_schema_change": "ignore"}
    scenario.model("select 1 as id", **ignoring)
    chosen = {"where": "messageId = '12'"}
    assert "1 dead letter of" in replay(scenario, plan_only=True, **chosen)
    for entry in scenario.table().metadata.metadata_log:
        Path(urlparse(entry.metadata_file).path).unlink()
    forgotten = (
        "`g` was the name of `h` for a time: give the value the name of today in the payload, or leave it out"
    )
    assert f"1 stays: {forgotten}\n" in replay(scenario, **chosen)
    assert 12 not in rows()


def test_names_that_were_swapped_after_a_letter_was_written(scenario: Scenario) -> None:
    """Two of other types, three in a ring by one statement each, and fields at any depth."""
    scenario.sql(f"create schema if not exists `lake`.`{scenario.schema}`")
    pair = "struct<x:int,y:string>"
    scenario.sql(
        f"create table {scenario.relation()} (id int, a int, b string, k int, l int, m int, p int, q int, "
        f"s {pair}, h array<{pair}>, g struct<x:int,y:string>) using iceberg"
    )
    write = written_by_hand(scenario)

    def swap(one: str, other: str) -> None:
        steps = ((one, "between"), (other, one.rpartition(".")[2]))
        with scenario.table().transaction() as commit:
            for old, new in (*steps, (f"{one.rpartition('.')[0]}.between".strip("."), other)):
                with commit.update_schema() as update:
                    update.rename_column(old, new.rpartition(".")[2])

    write(1, a=1, b="one")
    write(2, a="n/a", b="1")
    write(3, k=1, l=2, m=3)
    write(4, s={"x": 1, "Y": "one"}, h=[{"x": 2, "y": "two"}, {"y": "1"}])
    write(5, p=1)
    write(6, g={"x": 1, "y": "one"})
    swap("a", "b")
    swap("p", "q")
    swap("s.x", "s.y")
    swap("h.element.x", "h.element.y")
    with scenario.table().update_schema() as update:
        update.rename_column("s", "t")
    for old, new in (("k", "between"), ("l", "k"), ("m", "l")):
        scenario.sql(f"alter table {scenario.relation()} rename column {old} to {new}")
        write(6 + "klm".index(old) + 1, between=11, k=12, l=13, m=14)
    scenario.sql(f"alter table {scenario.relation()} rename column between to m")
    swap("p", "q")
    write(10, p=1)
    write(11, a="one", b=1, k=2, l=3, m=1, t={"x": "one", "y": 1}, h=[{"x": "two", "y": 2}])
    scenario.model("select 1 as id", **ROUTED, incremental_strategy="merge")
    assert "6 dead letters of" in replay(scenario)
    of_pair = {"x": "one", "y": 1}
    loaded = with_values(scenario)
    # Where fields inside of lists were renamed, PyIceberg reads a list that is NULL as an empty one.
    for (number,) in scenario.sql(f"select id from {scenario.relation()} where h is null"):
        assert not loaded[number].pop("h", None)
    assert loaded == {
        1: {"a": "one", "b": 1},
        3: {"m": 1, "k": 2, "l": 3},
        4: {"t": of_pair, "h": [{"x": "two", "y": 2}, {"x": "1", "y": None}]},
        6: {"g": {"x": 1, "y": "one"}},
        10: {"p": 1},
        11: {"a": "one", "b": 1, "k": 2, "l": 3, "m": 1, "t": of_pair, "h": [{"x": "two", "y": 2}]},
    }
    reasons = {row["payload"]["id"]: row["failureReason"] for row in letters(scenario)}
    assert reasons.pop(2) == "`b`: the value does not convert to int without loss"
    turns = reasons.pop(5)
    assert turns.startswith("`p`: before 20")
    assert turns.endswith(
        " several columns or fields have had this name by turns, and which of them had it when this was "
        "written is not told: give each value the name of today in the payload, and set `loadedAt` to a "
        "later time"
    )
    # In between no column had one of the names, and two names were one column's.
    assert sorted(reasons) == [7, 8, 9], reasons


def test_columns_with_names_that_are_written_in_statements(scenario: Scenario) -> None:
    """In each statement of a load, of letters, of a replay and of a backfill."""
    aliases = ("old", "new", "good", "found", "bad", "judged", "there", "counted")
    lambdas = ("k", "v", "entry", "key", "json", "whole", "token", "value_0", "item_0", "fields_0", "key_0")
    words = ("letter", "row", "reason", "reasons", "payload", "loadedAt", "messageId", "number")
    others = (
        "text_0",
        "audit_0",
        "count_0",
        "replaces",
        "status",
        "snapshot_id",
        "data_file",
        "seen",
        "blank",
    )
    own = sorted(internal_names())
    assert {"sparkevolve_letter", "sparkevolve_letter_chunk", "sparkevolve_row"} <= set(own)
    texts = dict.fromkeys((*lambdas, *words, *others, *own, "sparkevolve_letter2", "sparkevolve_row_"), "s")

    def query(rows: str, version: str, left_out: str = "") -> str:
        # Of a struct that is called like a table, a field could be taken for a column.
        structs = [f"named_struct('id', -1, 'n', -1) as {name}" for name in aliases]
        items = [f"'{version}' as `{name}`" for name in texts if name != left_out]
        return f"select id, n, {', '.join([*structs, *items])} from values {rows} as t(id, n)"

    config: dict[str, Any] = {
        **ROUTED,
        "audits": [{"sql": "sparkevolve_row <> 'bad'", "severity": "row"}, "sparkevolve_letter is not null"],
        "incremental_strategy": "merge",
    }
    scenario.model(query("(1, 1), (2, 2), (3, 3)", "old"), **config)
    scenario.run()
    scenario.model(query("(1, '10'), (2, 'x'), (3, 'y'), (4, 'z')", "letter"), **config)
    scenario.run()
    payload = "base64(cast(replace(cast(unbase64(payload) as string), '\"{}\"', '{}') as binary))"
    for bad, good in (("x", 20), ("y", 30), ("z", 40)):
        mended = payload.format(bad, good)
        scenario.sql(
            f"update {scenario.relation('t_dlt')} set payload = {mended} "
            f"where messageId = '{{\"id\":{'xyz'.index(bad) + 2}}}'"
        )
    config |= {"incremental_strategy": "delete+insert", "removed_columns": "keep", "pad_with": "default"}
    config["column_defaults"] = {"replaces": "'new'"}
    scenario.model(query("(3, '300')", "row", left_out="replaces"), **config)
    scenario.run()
    log = replay(scenario, where="`loadedAt` < now()")
    assert "2 dead letters of" in log
    assert f"  1 stays: {NEWER_ROW}" in log
    args = {"model": "t", "column": "key_0", "value": "concat(key_0, k, sparkevolve_row)", "only_null": False}
    args |= {"batch_by": "id", "rows_per_batch": 1}
    run = scenario.dbt("run-operation", "backfill_column", "--args", json.dumps(args))
    assert run.success, run.message + run.log
    found = {row.pop("id"): row for row in scenario.table().scan().to_arrow().to_pylist()}
    assert {number: row.pop("n") for number, row in found.items()} == {1: 10, 2: 20, 3: 300, 4: 40}
    for number, version in ((1, "letter"), (2, "letter"), (3, "row"), (4, "letter")):
        for name in aliases:
            assert found[number].pop(name) == {"id": -1, "n": -1}
        assert found[number].pop("replaces") == ("old" if number == 3 else version)
        assert found[number].pop("key_0") == 3 * version
        assert set(found[number].values()) == {version}


def test_values_by_names_that_several_had_or_one_had_again(scenario: Scenario) -> None:
    """None goes into two columns, and where a run leaves out what has no place, none is that may have one."""
    scenario.sql(f"create schema if not exists `lake`.`{scenario.schema}`")
    scenario.sql(
        f"create table {scenario.relation()} (id int, a string, f string, s struct<x:string,v:string>) "
        "using iceberg"
    )
    write = written_by_hand(scenario)

    def rename(old: str, new: str) -> None:
        scenario.sql(f"alter table {scenario.relation()} rename column {old} to {new}")

    write(1, a="b", other="left out")
    write(2, s={"x": "y", "v": "w", "z": "left out"})
    write(3, f="g")
    rename("a", "b")
    rename("s.x", "y")
    rename("s.v", "w")
    rename("f", "g")
    write(4, f="of no column")
    scenario.sql(f"alter table {scenario.relation()} add column a string")
    write(5, a="c")
    rename("a", "c")
    rename("g", "f")
    rename("s.y", "x")
    write(6, f="g")
    write(7, s={"X": "y"})
    rename("f", "g")
    rename("s.x", "y")
    write(8, s={"y": "y", "v": "left out"})
    renames = {"a": "c", "s.x": "s.y"}
    config = {**ROUTED, "incremental_strategy": "merge", "column_renames": renames}
    scenario.model("select 1 as id", **config, on_schema_change="ignore")
    assert "4 dead letters of" in replay(scenario)
    assert with_values(scenario) == {
        1: {"b": "b"},
        2: {"s": {"y": "y", "w": "w"}},
        3: {"g": "g"},
        8: {"s": {"y": "y", "w": None}},
    }
    what = "for a time: give the value the name of today in the payload, or leave it out"
    assert {row["payload"]["id"]: row["failureReason"] for row in letters(scenario)} == {
        4: f"`f` was the name of `g` {what}",
        5: f"`a` was the name of `c` {what}",
        6: f"`f` was the name of `g` {what}",
        7: f"`s`.`X` was the name of `s`.`y` {what}",
    }


def test_rows_are_padded_with_defaults_that_stay_in_a_frozen_schema(
    scenario: Scenario, method: str, catalog_properties: dict[str, str]
) -> None:
    """Defaults of the properties file, one without a time zone, and a column that is NOT NULL."""
    columns = [{"name": "status", "default": "'new'"}]
    scenario.file("models/schema.yml", json.dumps({"models": [{"name": "t", "columns": columns}]}))
    # Over Thrift only a REST catalog stores defaults and takes replays of version 3: rows are padded with the
    # model's defaults all the same.
    is_stored = method == "session" or catalog_properties["type"] == "rest"
    version = 3 if is_stored else 2
    table = "id int, amount int not null, status string, at timestamp"
    scenario.sql(f"create schema if not exists `lake`.`{scenario.schema}`")
    scenario.sql(
        f"create table {scenario.relation()} ({table}) using iceberg "
        f"tblproperties ('format-version' = '{version}')"
    )
    config: dict[str, Any] = {
        **ROUTED,
        "pad_with": "default",
        "column_defaults": {"at": "TIMESTAMP '2024-01-31 12:00:05'"},
        "audits": [{"sql": "status is not null", "severity": "row"}],
    }
    scenario.model("select id, amount from values (2, '20'), (3, 'x'), (4, 'y') as s(id, amount)", **config)
    scenario.run()
    before = [field.write_default for field in scenario.table().schema().fields]
    assert before[2] == ("new" if is_stored else None)
    assert (before[3] is not None) == is_stored
    ((_, _, _, at),) = scenario.rows()
    for number, amount in ((3, "30"), (4, None)):
        payload = base64.b64encode(json.dumps({"id": number, "amount": amount}).encode()).decode()
        scenario.sql(
            f"update {scenario.relation('t_dlt')} set payload = '{payload}' "
            f"where messageId = '{{\"id\":{number}}}'"
        )
    run = scenario.dbt(
        "run-operation",
        "replay_dead_letters",
        *("--args", "{model: t}", "--vars", "{sparkevolve_freeze_schema: true}"),
    )
    assert run.success, run.message
    assert run.warnings == []
    assert scenario.rows() == [(2, 20, "new", at), (3, 30, "new", at)]
    assert [row["failureReason"] for row in letters(scenario)] == [
        "`amount`: NULL, and the column is NOT NULL"
    ]
    schema = scenario.table().schema()
    assert schema.find_field("amount").required
    assert [field.write_default for field in schema.fields] == before
    assert "1 dead letter of" in replay(scenario)
    assert (4, None, "new", at) in scenario.rows()
    schema = scenario.table().schema()
    assert [field.write_default for field in schema.fields] == before
    assert not schema.find_field("amount").required


READ: list[tuple[IcebergType, str, str | None]] = [
    # A type, a value in JSON, and what is read of it, as JSON; None where it has another shape.
    (DECIMAL, "0E-18", '"0"'),
    (DECIMAL, "-1.00000000000E-7", '"-0.0000001"'),
    (DECIMAL, "12.50", '"12.5"'),
    (DECIMAL, '"0E-18"', '"0E-18"'),
    (DECIMAL, "123456789012345678.123456789012345678", '"123456789012345678.123456789012345678"'),
    (LONG, "true", '"1"'),
    (LONG, '"true"', '"true"'),
    (BOOL, "0", '"false"'),
    (BOOL, "1.00", '"true"'),
    # No digit is rounded away, whatever the type can hold, and each place is where the exponent says.
    (DECIMAL, "1.234567890123456789012345678E-7", '"0.0000001234567890123456789012345678"'),
    (LONG, "9.999999999999999999e-1", '"0.9999999999999999999"'),
    (LONG, "-1.50E+3", '"-1500"'),
    (LONG, "-0.0", '"0"'),
    (LONG, "1e9999", '"1e9999"'),
    (DECIMAL, "1.0E25", '"10000000000000000000000000"'),
    # A text of a decimal is as a run writes it; what a double writes so, too, is not known.
    (TEXT, "1.50", '"1.50"'),
    (TEXT, "0E-18", '"0.000000000000000000"'),
    (TEXT, "-1.000E-7", '"-0.0000001000"'),
    (TEXT, "1.234567890123456789E-9", '"0.000000001234567890123456789"'),
    (TEXT, "1.5E-7", None),
    (TEXT, "1.0E-38", None),
    (TEXT, "1.5E-39", '"1.5E-39"'),
    (TEXT, "1.0E-4", '"1.0E-4"'),
    (TEXT, "1.0E25", '"1.0E25"'),
    (TEXT, '"1.5E-7"', '"1.5E-7"'),
    (TEXT, "[1, 2.50]", None),
    (TEXT, '{"a": 1.0}', None),
    (LONG, "{}", None),
    (DATE, '"2024-01-31 00:00:00"', '"2024-01-31"'),
    # Texts that look like what they are not, and characters that mark them.
    (TEXT, r'"{\"a\": 1.0}"', r'"{\"a\": 1.0}"'),
    (TEXT, '"[1.0]"', '"[1.0]"'),
    (TEXT, r'"\u007b"', '"{"'),
    (TEXT, r'"\u0001x"', r'"\u0001x"'),
    (TEXT, r'"\u00021"', r'"\u00021"'),
    (LONG, r'"\u00021"', r'"\u00021"'),
    (TEXT, r'"a\"1.0\",true"', r'"a\"1.0\",true"'),
    (TEXT, r'"𝔘 \ud835\udd18 é"', '"𝔘 𝔘 é"'),
    (BINARY, '"YQ=="', '"YQ=="'),
    (BINARY, "1234", None),
    # Inside of structs, lists and maps: names in any case, values of any depth.
    (struct(1, d=DECIMAL), '{"D": 0E-18}', '{"d":"0"}'),
    (struct(1, d=DECIMAL), '{"D": null, "d": 1}', '{"d":"1"}'),
    (struct(1, d=DECIMAL), "{}", "{}"),
    (struct(1, d=TEXT), '{"d": {"e": 1}}', None),
    (struct(1, d=TEXT), '"{}"', None),
    (struct(1, d=TEXT), '" {}"', None),
    (struct(1, d=TEXT), r'"\u007b}"', None),
    (struct(1, d=array(2, TEXT)), '{"d": [0E-8]}', '{"d":["0.00000000"]}'),
    (struct(1, d=array(2, TEXT)), '{"d": ["a", 2.5E-8]}', None),
    (struct(1, d=TEXT), r'{"d": "{\"e\": 1}"}', r'{"d":"{\"e\": 1}"}'),
    (struct(1, d=struct(2, E=LONG)), '{"D": {"e": 1}}', '{"d":{"E":"1"}}'),
    (
        struct(1, **{"a.b": LONG, "`": LONG, "{": LONG}),
        '{"A.B": 1, "`": 2, "{": 3}',
        '{"a.b":"1","`":"2","{":"3"}',
    ),
    (array(1, DECIMAL), "[0E-18, null, 1E-7]", '["0",null,"0.0000001"]'),
    (array(1, struct(2, a=BOOL)), '[{"A": true}, null]', '[{"a":"true"},null]'),
    (array(1, TEXT), '["a", [1]]', None),
    (array(1, array(2, LONG)), "[[1], [], null]", '[["1"],[],null]'),
    (array(1, LONG), '{"a": 1}', None),
    (mapping(1, TEXT, DECIMAL), '{"K": 0E-18, "k": 1.0, "true": 2}', '{"K":"0","k":"1","true":"2"}'),
    (mapping(1, TEXT, struct(4, a=LONG)), '{"k": {"A": 1}}', '{"k":{"a":"1"}}'),
    (mapping(1, TEXT, LONG), '{"k": 1, "k": 2}', None),
    (
        mapping(1, TEXT, DOUBLE),
        '{"k": "NaN", "l": 1.0E-5, "m": "-Infinity"}',
        '{"k":"NaN","l":"1.0E-5","m":"-Infinity"}',
    ),
]


def test_each_value_is_read_as_it_is_written(scenario: Scenario) -> None:
    # All values of a type are read by one query, since Spark takes long to optimize many.
    payload = '{{"v" : {}}}'
    letters = ", ".join(
        f"({n}, {string_literal(payload.format(value))})" for n, (_, value, _) in enumerate(READ)
    )
    text = payloads.value_of(f"map_entries({payloads.members('json')})", lambda key: f"{key} = 'v'")
    of_type: dict[str, tuple[IcebergType, list[str]]] = {}
    for n, marked in scenario.sql(f"select n, {text} from values {letters} as v(n, json)"):
        type_ = READ[n][0]
        of_type.setdefault(str(type_), (type_, []))[1].append(f"({n}, {string_literal(marked)})")
    queries = []
    for type_, marked in of_type.values():
        conditions = [payloads.misfit("json", type_), payloads.uncertain("json", type_) or "false"]
        is_read = (
            "true"
            if isinstance(type_, BinaryType)
            else f"NOT coalesce({conditions[0]}, false) AND NOT coalesce({conditions[1]}, false)"
        )
        read = f"CASE WHEN {is_read} THEN to_json(array({payloads.read('json', type_)})) END"
        queries.append(f"SELECT n, {read} AS found FROM VALUES {', '.join(marked)} AS v(n, json)")
    found = {
        n: read and read.removeprefix("[").removesuffix("]")
        for n, read in scenario.sql(" UNION ALL ".join(queries))
    }
    expected = {n: None if text is None else json.loads(text) for n, (_, _, text) in enumerate(READ)}
    assert {
        n: None if text in (None, "null", "") else json.loads(text) for n, text in found.items()
    } == expected


NO_JSON = [
    "{'id': 'a1b2'}",
    '{"id": "x"}{"id": "y"}',
    '{"id": "x"} x',
    '{"id": "x"}}',
    r'{"id": "x"}, "end": "\u0002end"} x',
    '{"id": "x"} // x',
    '/* x */ {"id": "x"}',
    '[{"id": "x"}]',
    '"{}"',
    r'" {\"id\": 1}"',
    '{id: "x"}',
    '{12: "x"}',
    '{"id": 1, 1.5E3 : "x"}',
    '{true: "x"}',
    '{"id": NaN}',
    '{"id": {"a": -Infinity}}',
    '{"id": 01}',
    '{"id": -01.5}',
    '{"id": +1}',
    '{"id": .5}',
    '{"id": 1.}',
    '{"id": 1 2}',
    '{"id": 0x1F}',
    '{"id": TRUE}',
    '{"id": 1,}',
    '{"id": [1,]}',
    '{"id": "x" "y": 1}',
    r'{"id": "\x"}',
    '{"id": "a\nb"}',
    '{"id": "x"',
    '{"id": "x',
    "",
    "null",
    "5",
]
JSON = ["{}", ' {"id" : "x" }\n', r'{"end": "\u0002end", "letter": null}', '{"a": -0.5e+1, "b": [true, []]}']


def test_what_is_no_json_is_not_read(scenario: Scenario) -> None:
    """Spark reads more than JSON, and drops what it does not expect behind an object."""
    values = ", ".join(f"({string_literal(text)})" for text in NO_JSON + JSON)
    members = f"map_keys({payloads.members('json')})"
    found = dict(scenario.sql(f"select json, {members} from values {values} as v(json)"))
    names = [[], ["id"], ["end", "letter"], ["a", "b"]]
    assert found == {**dict.fromkeys(NO_JSON), **dict(zip(JSON, names, strict=True))}


def test_a_run_after_a_replay_that_was_killed_removes_its_letters_once(scenario: Scenario) -> None:
    scenario.model("select 1 as id, 10 as n", **ROUTED)
    scenario.run()
    scenario.model("select * from values (2, 'x'), (3, 'y'), (4, '4') as q(id, n)", **ROUTED)
    scenario.run()
    ids = dict(scenario.sql(f"select messageId, {sql_replay.letter_id()} from {scenario.relation('t_dlt')}"))

    def run_after(id_: int, *loaded: str) -> tuple[int, bool]:
        """Return how many snapshots of letters a run adds, and whether the next one is told of a replay."""
        if loaded:
            at = scenario.table().metadata.current_snapshot_id
            listed = json.dumps({"ref": "main", "snapshot": at, "ids": loaded})
            properties = f"tblproperties ('sparkevolve.replayed' = '{listed}')"
            scenario.sql(f"alter table {scenario.relation()} set {properties}")
        before = len(scenario.table("t_dlt").metadata.snapshots)
        scenario.model(f"select {id_} as id, 1 as n", **ROUTED)
        scenario.run()
        added = len(scenario.table("t_dlt").metadata.snapshots) - before
        return added, "sparkevolve.replayed" in scenario.table().properties

    assert run_after(5, ids['{"id":2}']) == (1, False)
    assert [row["payload"]["id"] for row in letters(scenario)] == [3]
    assert run_after(6) == (0, False)
    # One that was killed after it had removed them.
    assert run_after(7, ids['{"id":2}']) == (0, False)
    assert [row["payload"]["id"] for row in letters(scenario)] == [3]
    assert [row[0] for row in scenario.rows()] == [1, 4, 5, 6, 7]
