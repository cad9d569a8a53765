"""The check of metadata that other tests rely on: PyIceberg's is sound, and each fault is found."""

import copy
import json
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from pyiceberg.catalog import load_catalog
from pyiceberg.types import IntegerType, StringType

from dbt.adapters.sparkevolve.iceberg.catalog_settings import resolve
from tests.table_metadata import Metadata, problems, problems_since
from tests.unit.helpers import append, array, columns, struct

Change = Callable[[Metadata], Any]


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> list[Metadata]:
    """The metadata files of a table: `id, s struct<x, y list>`, then `b`, then a branch, then partitions."""
    settings = resolve("lake", {}, tmp_path_factory.mktemp("written"))
    settings.prepare()
    catalog = load_catalog("lake", **settings.pyiceberg)
    catalog.create_namespace("db")
    nested = struct(3, x=IntegerType(), y=array(5, StringType()))
    table = catalog.create_table(("db", "t"), columns("id int, s", s=nested))
    append(table, [{"id": 1}])
    with table.update_schema() as update:
        update.add_column("b", IntegerType())
    append(table, [{"id": 2, "b": 3}])
    head = table.metadata.refs["main"].snapshot_id
    table.manage_snapshots().create_branch(head, "dev").commit()
    with table.update_spec() as spec:
        spec.add_identity("id")
    logged = [entry.metadata_file for entry in table.metadata.metadata_log]
    paths = [Path(path.removeprefix("file://")) for path in [*logged, table.metadata_location]]
    return [json.loads(path.read_bytes()) for path in paths]


@pytest.fixture
def versions(written: list[Metadata]) -> list[Metadata]:
    """A copy of them, to be broken."""
    return copy.deepcopy(written)


@pytest.fixture
def metadata(versions: list[Metadata]) -> Metadata:
    """The last of them."""
    return versions[-1]


def test_what_pyiceberg_writes_is_sound(versions: list[Metadata]) -> None:
    assert len(versions) == 6
    assert [problems(metadata) for metadata in versions] == [[]] * 6
    pairs = pairwise(versions)
    assert [problems_since(before, after) for before, after in pairs] == [[]] * 5


def nested(metadata: Metadata, schema: int) -> Metadata:
    """Return the struct `s` of one of the schemas."""
    found: Metadata = metadata["schemas"][schema]["fields"][1]["type"]
    return found


def add_field(schema: int, field_id: int, name: str, type_: str = "int") -> Change:
    field = {"id": field_id, "name": name, "type": type_, "required": False}
    return lambda m: m["schemas"][schema]["fields"].append(field)


def add_schema(*changes: Change) -> Change:
    """Add a schema that is a copy of the newest one, with the next id, then change it."""

    def change(m: Metadata) -> None:
        m["schemas"].append(copy.deepcopy(m["schemas"][-1]))
        m["schemas"][-1]["schema-id"] += 1
        for further in changes:
            further(m)

    return change


def drop(name: str) -> Change:
    """Drop a column from the newest schema."""

    def change(m: Metadata) -> None:
        schema = m["schemas"][-1]
        schema["fields"] = [field for field in schema["fields"] if field["name"] != name]

    return change


FAULTS: dict[str, tuple[Change, str]] = {
    "two schemas of one id": (
        lambda m: m["schemas"].append(copy.deepcopy(m["schemas"][1])),
        "schema id 1 occurs 2 times",
    ),
    "no current schema": (
        lambda m: m.update({"current-schema-id": 7}),
        "the current schema 7 does not exist",
    ),
    "two columns of one field id": (add_field(1, 2, "z"), "schema 1: field id 2 occurs 2 times"),
    "a nested field with the id of a column": (
        lambda m: nested(m, 1)["fields"][0].update({"id": 6}),
        "schema 1: field id 6 occurs 2 times",
    ),
    "an element with the id of a column": (
        lambda m: nested(m, 1)["fields"][1]["type"].update({"element-id": 1}),
        "schema 1: field id 1 occurs 2 times",
    ),
    "two columns of one name": (add_field(1, 6, "id"), "schema 1: name (None, 'id') occurs 2 times"),
    "a field id that was not counted": (
        add_field(1, 9, "z"),
        "schema 1: field id 9 is above last-column-id 6",
    ),
    "no such identifier": (
        lambda m: m["schemas"][1].update({"identifier-field-ids": [1, 8]}),
        "schema 1: identifier field 8 does not exist",
    ),
    "a type that a field cannot become": (
        lambda m: m["schemas"][1]["fields"][0].update({"type": "string"}),
        "field id 1 is int (`id`) in schema 0, and string (`id`) in schema 1",
    ),
    "a narrower type": (
        lambda m: m["schemas"][0]["fields"][0].update({"type": "long"}),
        "field id 1 is long (`id`) in schema 0, and int (`id`) in schema 1",
    ),
    "a field that has moved": (
        lambda m: (nested(m, 1)["fields"].pop(0), add_field(1, 3, "x")(m)),
        "field id 3 is in 2 in schema 0, and in None in 1",
    ),
    "a dropped column whose id another has": (
        add_schema(drop("b"), add_schema(add_field(-1, 6, "c"))),
        "schema 3: field id 6 (`c`) was dropped before, as `b`",
    ),
    "two specs of one id": (
        lambda m: m["partition-specs"].append(m["partition-specs"][1]),
        "partition spec id 1 occurs 2 times",
    ),
    "no default spec": (
        lambda m: m.update({"default-spec-id": 4}),
        "the default partition spec 4 does not exist",
    ),
    "a partition field that was not counted": (
        lambda m: m.update({"last-partition-id": 999}),
        "partition field 1000 is above last-partition-id",
    ),
    "partitioned by no column": (
        lambda m: m["partition-specs"][1]["fields"][0].update({"source-id": 8}),
        "the table is partitioned by field 8, which does not exist",
    ),
    "two sort orders of one id": (
        lambda m: m["sort-orders"].append(m["sort-orders"][0]),
        "sort order id 0 occurs 2 times",
    ),
    "no default sort order": (
        lambda m: m.update({"default-sort-order-id": 4}),
        "the default sort order 4 does not exist",
    ),
    "a branch without its snapshot": (
        lambda m: m["refs"]["dev"].update({"snapshot-id": 5}),
        "the branch dev is at snapshot 5, which does not exist",
    ),
    "a tag without its snapshot": (
        lambda m: m["refs"].update({"v1": {"snapshot-id": 5, "type": "tag"}}),
        "the tag v1 is at snapshot 5, which does not exist",
    ),
    "sequence numbers that fall": (
        lambda m: m["snapshots"][1].update({"sequence-number": 1}),
        "the sequence numbers of the snapshots do not ascend: [1, 1]",
    ),
    "a sequence number that was not counted": (
        lambda m: m.update({"last-sequence-number": 1}),
        "a snapshot has sequence number 2, above last-sequence-number",
    ),
    "a snapshot with no schema": (
        lambda m: m["snapshots"][1].update({"snapshot-id": 77, "schema-id": 7}),
        "snapshot 77 has schema 7, which does not exist",
    ),
    "a snapshot log that is not sorted": (
        lambda m: (
            m["snapshot-log"][0].update({"timestamp-ms": 2}),
            m["snapshot-log"][1].update({"timestamp-ms": 1}),
        ),
        "the snapshot-log is not sorted: 1 comes after 2",
    ),
    "a metadata log that is not sorted": (
        lambda m: m["metadata-log"][-1].update({"timestamp-ms": 1}),
        "the metadata-log is not sorted: 1 comes after ",
    ),
    "last updated before the end of a log": (
        lambda m: m.update({"last-updated-ms": 3}),
        "last-updated-ms 3 is before ",
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_found(metadata: Metadata, fault: str) -> None:
    change, expected = FAULTS[fault]
    change(metadata)
    found = problems(metadata)
    assert [problem for problem in found if problem.startswith(expected)] != [], found


def test_main_and_the_current_snapshot_are_one(metadata: Metadata) -> None:
    first, last = (snapshot["snapshot-id"] for snapshot in metadata["snapshots"])
    metadata["refs"]["main"]["snapshot-id"] = first
    assert problems(metadata) == [f"the current snapshot is {last}, and main is at {first}"]
    metadata["current-snapshot-id"] = first
    assert problems(metadata) == [f"the snapshot log ends at {last}, and the current snapshot is {first}"]


def test_a_snapshot_long_before_its_parent(metadata: Metadata) -> None:
    last = metadata["snapshots"][1]
    last["timestamp-ms"] -= 59_000
    assert problems(metadata) == []
    last["timestamp-ms"] -= 5_000
    assert problems(metadata) == [f"snapshot {last['snapshot-id']} was made before its parent"]


@pytest.mark.parametrize(
    ("old", "new"),
    [("int", "long"), ("float", "double"), ("decimal(9, 2)", "decimal(10, 2)"), ("date", "timestamp")],
)
def test_a_wider_type_is_sound_and_a_narrower_one_is_not(metadata: Metadata, old: str, new: str) -> None:
    types = [schema["fields"][0] for schema in metadata["schemas"]]
    for field, type_ in zip(types, (old, new), strict=True):
        field["type"] = type_
    assert problems(metadata) == []
    for field, type_ in zip(types, (new, old), strict=True):
        field["type"] = type_
    assert len(problems(metadata)) == 1


@pytest.mark.parametrize(
    ("old", "new"), [("decimal(9, 2)", "decimal(10, 3)"), ("date", "timestamptz"), ("string", "binary")]
)
def test_another_type_is_a_fault(metadata: Metadata, old: str, new: str) -> None:
    for schema, type_ in zip(metadata["schemas"], (old, new), strict=True):
        schema["fields"][0]["type"] = type_
    assert len(problems(metadata)) == 1


def test_a_restored_column_may_be_renamed(metadata: Metadata) -> None:
    """The schema that it is renamed in was made of the restored one, whatever has a number between them."""
    metadata["schemas"].append({**copy.deepcopy(metadata["schemas"][0]), "schema-id": 2})
    metadata["schemas"].append({**copy.deepcopy(metadata["schemas"][1]), "schema-id": 3})
    metadata["schemas"][3]["fields"][-1]["name"] = "b_text"
    metadata["current-schema-id"] = 3
    assert problems(metadata) == ["schema 3: field id 6 (`b_text`) was dropped before, as `b`"]
    metadata["properties"] = {
        "sparkevolve.schema.1": json.dumps({"restored": ["`b`"], "restored_by": "run-1"})
    }
    assert problems(metadata) == []


def test_a_table_that_is_replaced_may_give_a_column_another_type(metadata: Metadata) -> None:
    for schema, type_ in zip(metadata["schemas"], ("int", "string"), strict=True):
        schema["fields"][0]["type"] = type_
    (found,) = problems(metadata)
    assert found.startswith("field id 1 is int (`id`) in schema 0, and string (`id`) in schema 1")
    del metadata["snapshots"][1]["parent-snapshot-id"]
    assert problems(metadata) == []


def made_of_an_older_schema(m: Metadata) -> None:
    """Do what a commit does that was made from the schema without `b`, when `b` had come and gone."""
    m["schemas"].append({**copy.deepcopy(m["schemas"][0]), "schema-id": 2})
    m["schemas"][2]["fields"].append({"id": 6, "name": "ours", "type": "int", "required": False})
    m["current-schema-id"] = 2


def go_back_to_the_first_schema(m: Metadata) -> None:
    m["current-schema-id"] = 0


def restored_by(command: str, schema_id: int) -> Change:
    """Record that a command has put `b` back, which has made schema 1 the current one; it may be no more."""
    entry = json.dumps({"restored": ["`b`"], "restored_by": command})
    return lambda m: m.update(
        {"properties": {"sparkevolve.schema.1": entry}, "current-schema-id": schema_id},
    )


def restored_with_another(command: str, schema_id: int) -> Change:
    """Do as `restored_by`, where schema 1 has another column that schema 0 lacks."""

    def change(m: Metadata) -> None:
        restored_by(command, schema_id)(m)
        if m["last-column-id"] < 7:
            m["schemas"][1]["fields"].append({"id": 7, "name": "other", "type": "int", "required": False})
            m["last-column-id"] = 7

    return change


CHANGES: dict[str, tuple[Change, Change, list[str]]] = {
    "a new column": (
        lambda m: None,
        lambda m: (add_schema(add_field(-1, 7, "c"))(m), m.update({"last-column-id": 7})),
        [],
    ),
    "a renamed column": (
        lambda m: None,
        add_schema(lambda m: m["schemas"][-1]["fields"][0].update({"name": "key"})),
        [],
    ),
    "back to an older schema": (lambda m: None, go_back_to_the_first_schema, []),
    "another table": (
        lambda m: m.update({"table-uuid": "a"}),
        lambda m: m.update({"table-uuid": "b"}),
        ["the table was a, and is b"],
    ),
    "a field id of a dropped column": (
        go_back_to_the_first_schema,
        made_of_an_older_schema,
        ["schema 2: `ours` has field id 6, which is not new, and no field had it just before"],
    ),
    "a dropped column that comes back": (
        go_back_to_the_first_schema,
        lambda m: m.update({"current-schema-id": 1}),
        ["schema 1: `b` has field id 6, which is not new, and no field had it just before"],
    ),
    "a column that is restored once more": (restored_by("run-1", 0), restored_by("run-2", 1), []),
    "a restored column that comes back": (
        restored_by("run-1", 0),
        restored_by("run-1", 1),
        ["schema 1: `b` has field id 6, which is not new, and no field had it just before"],
    ),
    "a column that comes back beside one that is restored": (
        restored_with_another("run-1", 0),
        restored_with_another("run-2", 1),
        ["schema 1: `other` has field id 7, which is not new, and no field had it just before"],
    ),
    "a schema that changes": (
        lambda m: None,
        lambda m: m["schemas"][1]["fields"][0].update({"name": "key"}),
        ["schema 1 has changed"],
    ),
    "a nested description that changes": (
        lambda m: None,
        lambda m: nested(m, 1)["fields"][0].update({"doc": "text"}),
        ["schema 1 has changed"],
    ),
    "a snapshot that changes": (
        lambda m: m["snapshots"][0].update({"snapshot-id": 4}),
        lambda m: m["snapshots"][0].update({"snapshot-id": 4, "manifest-list": "x"}),
        ["snapshot 4 has changed"],
    ),
    "a spec that changes": (
        lambda m: None,
        lambda m: m["partition-specs"][0].update({"fields": m["partition-specs"][1]["fields"]}),
        ["partition spec 0 has changed"],
    ),
    **{
        name: (
            lambda m, name=name: m.update({name: 2}),  # type: ignore[misc]
            lambda m, name=name: m.update({name: 1}),  # type: ignore[misc]
            [f"{name} was 2, and is 1"],
        )
        for name in ("last-partition-id", "last-sequence-number", "last-updated-ms", "format-version")
    },
    "a lower last column id": (
        lambda m: m.update({"last-column-id": 8}),
        lambda m: m.update({"last-column-id": 7}),
        ["last-column-id was 8, and is 7"],
    ),
}


@pytest.mark.parametrize("name", CHANGES)
def test_what_a_commit_has_changed(metadata: Metadata, name: str) -> None:
    prepare, change, expected = CHANGES[name]
    after = copy.deepcopy(metadata)
    prepare(metadata)
    prepare(after)
    change(after)
    assert problems_since(metadata, after) == expected


def test_a_commit_that_was_begun_before_the_last_one(versions: list[Metadata]) -> None:
    """PyIceberg takes the time of a snapshot before another writer's commit, and commits after it."""
    before, after = versions[-3:-1]
    after["last-updated-ms"] = before["last-updated-ms"] - 4
    after["metadata-log"][-1]["timestamp-ms"] = before["last-updated-ms"]
    last, now = before["last-updated-ms"], after["last-updated-ms"]
    assert f"last-updated-ms {now} is before {last}, the end of the metadata-log" in problems(after)
    assert problems_since(before, after) == [f"last-updated-ms was {last}, and is {now}"]
    for tolerance_ms, is_sound in ((3, False), (4, True)):
        assert (problems(after, tolerance_ms) == []) is is_sound
        assert (problems_since(before, after, tolerance_ms) == []) is is_sound
