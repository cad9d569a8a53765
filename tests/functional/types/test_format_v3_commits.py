"""Commits to tables of Iceberg's format version 3, for which PyIceberg writes no metadata."""

import json

import pytest

from tests.functional.harness import Scenario

V3 = {"format-version": "3"}


def test_all_changes_of_a_batch_are_one_commit(scenario: Scenario, method: str) -> None:
    if method != "session":
        pytest.skip("a server's statements are commits of their own")
    scenario.model("select 1 as id, 1.5f as f, named_struct('a', 1) as s, 'x' as old", tblproperties=V3)
    scenario.run()
    scenario.model(
        "select 2L as id, 2.5d as f, named_struct('a', 2, 'b', 'y') as s, 'z' as fresh, 3 as n",
        tblproperties={**V3, "write.parquet.compression-codec": "gzip"},
        column_renames={"old": "fresh"},
    )
    before = scenario.table().metadata
    scenario.run()
    after = scenario.table().metadata
    assert after.format_version == 3
    assert scenario.types() == {
        "id": "long",
        "f": "double",
        "s": "struct<5: a: optional int, 6: b: optional string>",
        "fresh": "string",
        "n": "int",
    }
    assert scenario.field_ids() == {"id": 1, "f": 2, "s": 3, "fresh": 4, "n": 7}
    assert scenario.rows() == [
        (1, 1.5, {"a": 1, "b": None}, "x", None),
        (2, 2.5, {"a": 2, "b": "y"}, "z", 3),
    ]
    assert len(after.schemas) == len(before.schemas) + 1
    # The schema, the branch, the rows on it, and the publication, which removes it.
    assert len(after.snapshots) == len(before.snapshots) + 2
    assert list(after.refs) == ["main"]
    record = json.loads(after.properties[f"sparkevolve.schema.{after.current_schema_id}"])
    assert [len(record[verb]) for verb in ("added", "widened", "renamed")] == [2, 2, 1]
    assert after.properties["write.parquet.compression-codec"] == "gzip"
