"""A functional test that writes metadata which Iceberg does not read fails: see the hook in conftest.py."""

import json
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.functional.harness import Scenario
from tests.metadata_files import BadMetadataError, MetadataFiles
from tests.table_metadata import Metadata

Change = Callable[[Metadata], Any]


@pytest.fixture
def sound(scenario: Scenario) -> Path:
    """The last metadata file of a table with two schemas, the first of them again, and two snapshots."""
    scenario.sql(f"create schema `lake`.`{scenario.schema}`")
    scenario.sql(f"create table {scenario.relation()} (id int) using iceberg")
    scenario.sql(f"insert into {scenario.relation()} values (1)")
    scenario.sql(f"alter table {scenario.relation()} add column b int")
    scenario.sql(f"insert into {scenario.relation()} values (2, 3)")
    scenario.sql(f"alter table {scenario.relation()} drop column b")
    return Path(scenario.table().metadata_location.removeprefix("file://").removeprefix("file:"))


def write_next(sound: Path, change: Change, name: str = "00009-next") -> Path:
    """Write the metadata file of a commit that was made on ``sound``."""
    metadata = json.loads(sound.read_bytes())
    entry = {"timestamp-ms": metadata["last-updated-ms"], "metadata-file": f"file://{sound}"}
    metadata["metadata-log"].append(entry)
    change(metadata)
    path = sound.with_name(f"{name}.metadata.json")
    path.write_text(json.dumps(metadata))
    return path


def two_schemas_of_one_id(m: Metadata) -> None:
    m["schemas"].append(m["schemas"][1])


def two_columns_of_one_field_id(m: Metadata) -> None:
    m["schemas"][1]["fields"][1]["id"] = 1


def a_log_that_is_not_sorted(m: Metadata) -> None:
    m["snapshot-log"][1]["timestamp-ms"] -= 3_600_000


def a_branch_without_its_snapshot(m: Metadata) -> None:
    m["refs"]["dev"] = {"snapshot-id": 5, "type": "branch"}


def a_field_id_that_was_given_out_before(m: Metadata) -> None:
    m["schemas"].append({**m["schemas"][0], "schema-id": 2})
    m["schemas"][2]["fields"] = [
        *m["schemas"][0]["fields"],
        {"id": 2, "name": "c", "type": "int", "required": False},
    ]
    m["current-schema-id"] = 2


def a_time_in_the_future(m: Metadata) -> None:
    m["last-updated-ms"] += 300_000


FAULTS: dict[Change, list[str]] = {
    two_schemas_of_one_id: [
        "Iceberg refuses to read it: java.lang.IllegalArgumentException: Multiple entries with same key: 1=",
        "schema id 1 occurs 2 times",
    ],
    two_columns_of_one_field_id: [
        "Iceberg refuses to read it: java.lang.IllegalArgumentException: Multiple entries with same key: 1=",
        "schema 1: field id 1 occurs 2 times",
        "schema 1 has changed",
    ],
    a_log_that_is_not_sorted: [
        "Iceberg refuses to read it: java.lang.IllegalArgumentException: [BUG] Expected sorted snapshot log",
        "the snapshot-log is not sorted: ",
    ],
    a_branch_without_its_snapshot: [
        "Iceberg refuses to read it: java.lang.IllegalArgumentException: Snapshot for reference ",
        "the branch dev is at snapshot 5, which does not exist",
    ],
    a_field_id_that_was_given_out_before: [
        "schema 2: `c` has field id 2, which is not new, and no field had it just before"
    ],
    a_time_in_the_future: ["last-updated-ms is "],
}


def test_bad_files_are_found(sound: Path, metadata_files: MetadataFiles) -> None:
    metadata_files.check()
    for number, (fault, problems) in enumerate(FAULTS.items()):
        before = metadata_files.checked
        path = write_next(sound, fault, f"0000{number}-bad")
        with pytest.raises(BadMetadataError) as raised:
            metadata_files.check()
        assert metadata_files.checked == before + 1
        found = str(raised.value).splitlines()
        assert len(found) == len(problems), found
        for line, problem in zip(found, problems, strict=True):
            assert line.startswith(f"{path}: {problem}")


@pytest.mark.xfail(raises=BadMetadataError, strict=True)
def test_the_test_fails_that_wrote_it(sound: Path) -> None:
    write_next(sound, two_schemas_of_one_id)


def test_all_versions_of_a_sound_table_are_read_once(sound: Path, metadata_files: MetadataFiles) -> None:
    before = metadata_files.checked
    metadata_files.check()
    assert metadata_files.checked == before + 5
    write_next(sound, lambda m: m["properties"].update({"comment": "text"}))
    metadata_files.check()
    assert metadata_files.checked == before + 6
    metadata_files.check()
    assert metadata_files.checked == before + 6


def test_a_file_that_was_cut_short_is_bad_only_if_it_is_read(
    sound: Path, metadata_files: MetadataFiles
) -> None:
    """A process that is killed while it writes one has not told the catalog of it."""
    cut = write_next(sound, lambda m: None)
    os.truncate(cut, 100)
    metadata_files.check()
    entry = {"timestamp-ms": 0, "metadata-file": f"file:{cut}"}
    after = sound.with_name("00010-after.metadata.json")
    metadata = json.loads(sound.read_bytes())
    after.write_text(json.dumps({**metadata, "metadata-log": [entry]}))
    with pytest.raises(BadMetadataError, match=re.escape(f"{after}: it was made from {cut}, which cannot")):
        metadata_files.check()
