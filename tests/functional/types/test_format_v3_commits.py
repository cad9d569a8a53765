"""Commits to tables of Iceberg's format version 3, for which PyIceberg writes no metadata."""

import json
from typing import Any

import pytest
from pyiceberg.table.metadata import TableMetadata

from dbt.adapters.sparkevolve.iceberg import columns, publication
from tests.functional.harness import Scenario

V3 = {"format-version": "3"}
FIRST = """select 1 as id, 1.5f as f, named_struct('a', 1) as s, array(named_struct('x', 1)) as l,
  map('k', named_struct('y', 1)) as m, 'x' as old, 7 as `a.b`"""
THEN = """select 2L as id, 2.5d as f, named_struct('a', 2, 'b', 'y') as s,
  array(named_struct('x', 2L, 'z', 'it')) as l, map('k', named_struct('y', 2, 'z', true)) as m,
  'z' as fresh, 8L as `a.b`, 3 as n, timestamp'2026-01-01 00:00:00' as t"""
DESCRIBED = """
models:
  - {name: t, description: it's, columns: [{name: n, description: 'a \\ b'}, {name: id, description: key}]}
"""


def record(metadata: TableMetadata) -> dict[str, Any]:
    """What the last schema commit of ours has noted."""
    noted = metadata.properties[f"sparkevolve.schema.{metadata.current_schema_id}"]
    found: dict[str, Any] = json.loads(noted)
    return found


def evolve_and_check(scenario: Scenario, is_atomic: bool) -> None:
    """Run a model whose batch changes all that a batch can change."""
    scenario.model(FIRST, tblproperties=V3)
    scenario.run()
    before = scenario.table().metadata
    ids = scenario.field_ids()
    scenario.model(
        THEN,
        tblproperties={**V3, "write.parquet.compression-codec": "gzip", "it's": "a \\ b"},
        column_renames={"old": "fresh"},
        persist_docs={"columns": True, "relation": True},
    )
    scenario.file("models/schema.yml", DESCRIBED)
    scenario.run()
    after = scenario.table().metadata
    assert after.format_version == 3
    ids["fresh"] = ids.pop("old")
    assert {name: number for name, number in scenario.field_ids().items() if name in ids} == ids
    types = scenario.types()
    assert [types[name] for name in ("id", "f", "a.b", "n", "t")] == [
        "long",
        "double",
        "long",
        "int",
        "timestamptz",
    ]
    assert (scenario.docs()["n"], scenario.docs()["id"]) == ("a \\ b", "key")
    assert [row[:8] for row in scenario.rows()] == [
        (1, 1.5, {"a": 1, "b": None}, [{"x": 1, "z": None}], [("k", {"y": 1, "z": None})], "x", 7, None),
        (2, 2.5, {"a": 2, "b": "y"}, [{"x": 2, "z": "it"}], [("k", {"y": 2, "z": True})], "z", 8, 3),
    ]
    scenario.sql(f"refresh table {scenario.relation()}")
    assert scenario.sql(f"select id, s.b, l[0].z, fresh, n from {scenario.relation()} order by id") == [
        (1, None, None, "x", None),
        (2, "y", "it", "z", 3),
    ]
    assert list(after.refs) == ["main"]
    changes = {verb: len(paths) for verb, paths in record(after).items() if isinstance(paths, list)}
    assert changes == {"added": 5, "widened": 4, "renamed": 1, "described": 1}
    properties = ("write.parquet.compression-codec", "it's", "comment")
    assert [after.properties[name] for name in properties] == ["gzip", "a \\ b", "it's"]
    if is_atomic:
        assert len(after.schemas) == len(before.schemas) + 1


def test_all_that_a_batch_changes_is_changed(scenario: Scenario, method: str) -> None:
    evolve_and_check(scenario, method == "session")
    case_of_a_name_is_changed(scenario)


def case_of_a_name_is_changed(scenario: Scenario) -> None:
    """After a run that has ended between the two statements in which Spark does so."""
    ids, rows = list(scenario.field_ids().values()), scenario.rows()
    nested = scenario.table().schema().find_field("s.b").field_id
    fresh, b = "fresh__sparkevolve_rename_76010858", "b__sparkevolve_rename_92eb5ffe"
    own = "n__sparkevolve_rename"
    for old, new in (("s.b", b), ("fresh", fresh), ("n", own)):
        scenario.sql(f"alter table {scenario.relation()} rename column {old} to {new}")
    config: dict[str, Any] = {"tblproperties": V3, "column_renames": {"fresh": "Fresh", "s.b": "B"}}
    then = THEN.replace("'b'", "'B'").replace("as fresh", "as Fresh").replace("3 as n", f"3 as {own}")
    # Reads a column of its table, which has another name after half of it.
    known = "{% if is_incremental() %}where 1 = (select max(length(fresh)) from {{ this }}){% endif %}"
    scenario.model(f"select * from ({then}) {known}", **config)
    between = scenario.state()
    ends = f"rename `s`.`{b}` to `b`; rename `{fresh}` to `fresh`"
    refused = scenario.fail("--vars", "sparkevolve_freeze_schema: true")
    assert f"would change the table's schema: {ends}." in refused.message
    planned = scenario.fail("--vars", "sparkevolve_plan_only: true")
    assert f"and the next one takes that back first ({ends}). A plan changes nothing" in planned.message
    assert scenario.state() == between
    run = scenario.run()
    for text in ends.split("; "):
        assert f"{text}, since a run has ended while it changed the case of that name" in run.log
    assert scenario.columns() == ["id", "f", "s", "l", "m", "Fresh", "a.b", own, "t"]
    assert list(scenario.field_ids().values()) == ids
    assert scenario.table().schema().find_field("s.B").field_id == nested
    for row in rows:
        row[2]["B"] = row[2].pop("b")
    assert scenario.rows() == rows
    made = scenario.schemas()
    assert "a run has ended" not in scenario.run().log
    assert scenario.schemas() == made


def test_so_it_is_in_a_catalog_that_is_a_server(server_scenario: Scenario) -> None:
    """A REST catalog's commits are PyIceberg's own, a database's are made in Spark's Java."""
    evolve_and_check(server_scenario, is_atomic=True)


def test_other_writers_are_met_at_each_commit(
    scenario: Scenario, method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each comes between our last look at the table and our commit."""
    scenario.model("select 1 as id, 10 as v", tblproperties=V3)
    scenario.run()
    scenario.model("select 1 as id, 11 as v, 'n' as n")
    change, publish = columns.commit_changes, publication.commit_in_time
    name = scenario.relation()
    altered = [f"alter table {name} add column theirs string", f"alter table {name} add column N string"]
    rows = [f"insert into {name} (id, v) values (2, 20)"]

    def commit_changes(*args: Any) -> None:
        if altered:
            scenario.sql(altered.pop(0))
        change(*args)

    def commit(*args: Any) -> None:
        if rows:
            scenario.sql(rows.pop())
        publish(*args)

    monkeypatch.setattr(columns, "commit_changes", commit_changes)
    monkeypatch.setattr(publication, "commit_in_time", commit)
    run = scenario.run()
    assert (altered, rows) == ([], [])
    assert run.log.count("CREATE BRANCH `sparkevolve_") == 2
    assert scenario.field_ids() == {"id": 1, "v": 2, "theirs": 3, "N": 4}
    assert scenario.rows() == [(1, 11, None, "n"), (2, 20, None, None)]
    assert scenario.schemas() == 3
    assert list(scenario.table().metadata.refs) == ["main"]
