"""Commits to a real table: what they look at, and the files that they leave."""

from decimal import Decimal
from pathlib import Path
from typing import Any

import pyiceberg.table
import pytest
from pyiceberg.catalog import Catalog
from pyiceberg.table import Table
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.types import DecimalType, DoubleType, FloatType, IntegerType, LongType, StringType

from dbt.adapters.sparkevolve.evolution.changes import (
    AddColumn,
    AddField,
    Change,
    RenameField,
    SetDefault,
    SetDoc,
    WidenType,
)
from dbt.adapters.sparkevolve.evolution.defaults import DefaultValue
from dbt.adapters.sparkevolve.evolution.record import PREFIX
from dbt.adapters.sparkevolve.evolution.types import fields_within
from dbt.adapters.sparkevolve.iceberg.catalog import IcebergCatalog
from dbt.adapters.sparkevolve.iceberg.guards import remove_old_metadata
from dbt.adapters.sparkevolve.iceberg.publication import Published
from dbt.adapters.sparkevolve.iceberg.schema_commits import commit_changes, commit_docs
from tests.unit.conftest import MakeTable
from tests.unit.helpers import append, array, columns, mapping, relation, struct

INT, FLOAT = IntegerType(), FloatType()
MAP = mapping(8, StringType(), struct(10, x=INT))
OURS = "sparkevolve_ffffffff_1_00000000_0123abcd"
TWO_FILES = {
    "write.metadata.delete-after-commit.enabled": "true",
    "write.metadata.previous-versions-max": "2",
}


def add(name: str) -> AddColumn:
    return AddColumn((name,), IntegerType())


def commit(other: Catalog, *changes: Change) -> Table:
    commit_changes(other.load_table("db.t"), changes, "run-1", "fingerprint")
    return other.load_table("db.t")


def schemas(table: Table) -> dict[int, list[str]]:
    return {schema.schema_id: schema.column_names for schema in table.metadata.schemas}


def metadata_files(table: Table) -> set[str]:
    """The paths of all metadata files that there are."""
    folder = Path(table.location().removeprefix("file://"), "metadata")
    return {f"file://{path}" for path in folder.glob("*.metadata.json")}


def known_files(table: Table) -> set[str]:
    """The paths of the metadata files that the table knows of: its own, and the ones before."""
    return {table.metadata_location, *(entry.metadata_file for entry in table.metadata.metadata_log)}


@pytest.fixture
def looked_at(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int]]:
    """How many schemas and snapshots the metadata have that a transaction copies, one entry for each copy."""
    real = pyiceberg.table.update_table_metadata
    seen: list[tuple[int, int]] = []

    def update(base_metadata: TableMetadata, *args: Any, **kwargs: Any) -> TableMetadata:
        seen.append((len(base_metadata.schemas), len(base_metadata.snapshots)))
        return real(base_metadata, *args, **kwargs)

    monkeypatch.setattr(pyiceberg.table, "update_table_metadata", update)
    return seen


def test_a_new_column_is_added_without_a_look_at_what_was_before(
    other: Catalog, make_table: MakeTable, looked_at: list[tuple[int, int]]
) -> None:
    make_table(columns("id int"), [{"id": 1}], [{"id": 2}])
    for number in range(3):
        table = commit(other, add(f"c{number}"))
    looked_at.clear()
    before = table.metadata
    table = commit(other, add("last"))
    assert set(looked_at) == {(1, 0)}
    assert schemas(table) == {
        0: ["id"],
        1: ["id", "c0"],
        2: ["id", "c0", "c1"],
        3: ["id", "c0", "c1", "c2"],
        4: ["id", "c0", "c1", "c2", "last"],
    }
    assert table.schema().schema_id == 4
    assert table.metadata.snapshots == before.snapshots
    assert table.metadata.snapshot_log == before.snapshot_log
    assert table.metadata.refs == before.refs
    assert len(table.scan().to_arrow()) == 2


@pytest.mark.parametrize(
    "changes",
    [
        [AddField(("s", "y"), IntegerType())],
        [WidenType(("id",), IntegerType(), LongType()), add("last")],
        [add("last"), SetDoc(("id",), "the key")],
    ],
)
def test_whatever_adds_a_field_looks_at_no_older_schema(
    other: Catalog, make_table: MakeTable, looked_at: list[tuple[int, int]], changes: list[Change]
) -> None:
    make_table(columns("id int, s", s=struct(10, x=IntegerType())), [{"id": 1, "s": {"x": 1}}])
    commit(other, add("c0"))
    commit(other, add("c1"))
    looked_at.clear()
    table = commit(other, *changes)
    assert set(looked_at) == {(1, 0)}
    assert table.schema().schema_id == 3
    assert len(table.metadata.schemas) == 4


def test_a_new_column_after_the_newest_was_dropped_makes_a_new_schema(
    other: Catalog, make_table: MakeTable
) -> None:
    make_table(columns("id int"))
    table = commit(other, add("gone"))
    with table.update_schema(allow_incompatible_changes=True) as update:
        update.delete_column("gone")
    assert other.load_table("db.t").schema().schema_id == 0
    table = commit(other, add("gone"))
    assert schemas(table) == {0: ["id"], 1: ["id", "gone"], 2: ["id", "gone"]}
    assert [field.field_id for field in table.schema().fields] == [1, 3]


@pytest.mark.parametrize(
    ("there", "back"),
    [
        (RenameField(("id",), "key"), RenameField(("key",), "id")),
        (SetDoc(("id",), "new"), SetDoc(("id",), "")),
    ],
)
def test_what_leads_back_to_an_older_schema_makes_no_new_one(
    other: Catalog, make_table: MakeTable, there: Change, back: Change
) -> None:
    make_table(columns("id int"))
    commit(other, SetDoc(("id",), ""))
    first = other.load_table("db.t").schema().schema_id
    recorded = other.load_table("db.t").properties.get(f"{PREFIX}{first}")
    second = commit(other, there).schema().schema_id
    table = commit(other, back)
    # Who made the older schema stays on record.
    assert table.properties.get(f"{PREFIX}{first}") == recorded
    assert f"{PREFIX}{second}" in table.properties
    assert second != first
    assert table.schema().schema_id == first
    assert max(schemas(table)) == second


def test_a_widened_type_and_a_description_look_at_no_snapshot(
    other: Catalog, make_table: MakeTable, looked_at: list[tuple[int, int]]
) -> None:
    make_table(columns("id int"), [{"id": 1}])
    commit(other, WidenType(("id",), IntegerType(), LongType()))
    commit_docs(other.load_table("db.t"), "of the table", {"id": "the key"})
    assert {snapshots for _, snapshots in looked_at} == {0}
    table = other.load_table("db.t")
    assert (str(table.schema().find_type("id")), table.schema().find_field("id").doc) == ("long", "the key")
    assert table.properties["comment"] == "of the table"
    assert table.scan().to_arrow().to_pylist() == [{"id": 1}]


def test_what_older_rows_have_in_a_float_column_stays_when_it_becomes_a_double(
    other: Catalog, make_table: MakeTable
) -> None:
    """JSON has digits: 0.1 is another double than the one that a float of 0.1 is."""
    schema = columns("id int, s, l, m", s=struct(5, x=INT), l=array(6, struct(7, x=INT)), m=MAP)
    make_table(schema, [{"id": 1, "s": {"x": 1}, "l": [{"x": 1}], "m": {"k": {"x": 1}}}])
    paths = [("f",), ("s", "f"), ("l", "element", "f"), ("m", "value", "f")]
    with other.load_table("db.t").update_schema() as update:
        for path in [*paths, ("kept",), ("s", "half")]:
            update.add_column(path, FLOAT, default_value=0.5 if path[-1] == "half" else 0.1)
        update.add_column("i", INT, default_value=7)
        update.add_column("d", DecimalType(5, 2), default_value=Decimal("1.50"))
    widened = [*paths, ("s", "half")]
    before = commit(other, WidenType(("i",), INT, LongType()))
    assert [f.initial_default for f in before.schema().fields[4:]] == [0.1, 0.1, 7, Decimal("1.50")]
    table = commit(
        other,
        *(WidenType(path, FLOAT, DoubleType()) for path in widened),
        WidenType(("d",), DecimalType(5, 2), DecimalType(9, 2)),
        add("n"),
    )
    found = {
        path: (str(f.field_type), f.initial_default, f.write_default)
        for path, f in fields_within(table.schema().as_struct())
        if f.initial_default is not None
    }
    # What is written from then on is what the default says.
    exact = dict.fromkeys(paths, ("double", 0.10000000149011612, 0.1))
    assert found == {
        **exact,
        ("s", "half"): ("double", 0.5, 0.5),
        ("kept",): ("float", 0.1, 0.1),
        ("i",): ("long", 7, 7),
        ("d",): ("decimal(9, 2)", Decimal("1.50"), Decimal("1.50")),
    }
    assert table.scan(selected_fields=("f",)).to_arrow().to_pylist() == [{"f": 0.10000000149011612}]


def test_a_default_that_comes_with_a_wider_type_is_one_of_that_type(
    other: Catalog, make_table: MakeTable
) -> None:
    """PyIceberg takes a default for one of the type before: 9000000000 would be the greatest int."""
    make_table(columns("id int, i int, renamed int, f float"), [{"id": 1}])
    table = commit(
        other,
        WidenType(("i",), INT, LongType()),
        SetDefault(("i",), DefaultValue(LongType(), 9_000_000_000)),
        RenameField(("renamed",), "r"),
        WidenType(("renamed",), INT, LongType()),
        SetDefault(("renamed",), DefaultValue(LongType(), -9_000_000_000)),
        AddColumn(("renamed",), INT),
        SetDefault(("renamed",), DefaultValue(INT, 5)),
        WidenType(("f",), FLOAT, DoubleType()),
        SetDefault(("f",), DefaultValue(DoubleType(), 1e300)),
    )
    found = {f.name: (str(f.field_type), f.write_default) for f in table.schema().fields}
    assert found == {
        "id": ("int", None),
        "i": ("long", 9_000_000_000),
        "r": ("long", -9_000_000_000),
        "f": ("double", 1e300),
        "renamed": ("int", 5),
    }
    assert len(table.metadata.schemas) == 2


def test_no_changes_are_no_commit(other: Catalog, make_table: MakeTable) -> None:
    make_table(columns("id int"))
    before = other.load_table("db.t").metadata_location
    assert commit(other).metadata_location == before


@pytest.mark.parametrize("properties", [{}, {**TWO_FILES, next(iter(TWO_FILES)): "false"}])
def test_old_metadata_files_stay_if_nobody_wants_them_gone(
    lake: IcebergCatalog, other: Catalog, make_table: MakeTable, properties: dict[str, str]
) -> None:
    make_table(columns("id int"), [{"id": 0}], properties=properties)
    for number in range(4):
        publish(lake, other, number)
    # Each publication takes four commits here: the branch, its row, how long it is kept, the publication.
    assert len(metadata_files(other.load_table("db.t"))) == 2 + 4 * 4


def publish(lake: IcebergCatalog, other: Catalog, row: int) -> None:
    """Load a row into a branch and publish it, as a run does."""
    target = relation("t")
    base = lake.base(target, lambda: None)
    table = other.load_table("db.t")
    assert base.head is not None
    with table.manage_snapshots() as manage:
        manage.create_branch(base.head, OURS, max_ref_age_ms=3_600_000)
    append(table, [{"id": row}], branch=OURS)

    assert lake.publish(target, base, OURS, 0) == Published.YES


def test_what_a_publication_takes_off_the_list_of_metadata_files_is_deleted(
    lake: IcebergCatalog, other: Catalog, make_table: MakeTable
) -> None:
    """With Iceberg's own settings for that. Nobody would find the files later."""
    make_table(columns("id int"), [{"id": 0}], properties=TWO_FILES)
    for number in range(4):
        publish(lake, other, number)
    commit(other, add("n"))
    commit_docs(other.load_table("db.t"), "text", {})
    table = other.load_table("db.t")
    assert len(known_files(table)) == 3
    assert metadata_files(table) == known_files(table)
    assert len(table.scan().to_arrow()) == 5


def test_removing_a_branch_deletes_old_metadata_files_too(
    lake: IcebergCatalog, other: Catalog, make_table: MakeTable
) -> None:
    make_table(columns("id int"), [{"id": 0}], properties=TWO_FILES)
    for _ in range(3):
        with other.load_table("db.t").manage_snapshots() as manage:
            manage.create_branch(lake.base(relation("t"), lambda: None).head or 0, OURS)
        lake.drop_branch(relation("t"), OURS)
    table = other.load_table("db.t")
    assert metadata_files(table) == known_files(table)


def test_a_metadata_file_that_is_gone_already_is_no_error(other: Catalog, make_table: MakeTable) -> None:
    make_table(columns("id int"), properties=TWO_FILES)
    for number in range(3):
        before = commit(other, add(f"c{number}"))
    after = commit(other, add("last"))
    removed = known_files(before) - known_files(after)
    assert removed != set()
    # As Spark leaves them beside its files.
    paths = [Path(file.removeprefix("file://")) for file in known_files(before) | known_files(after)]
    checksums = {f"file://{path}": path.with_name(f".{path.name}.crc") for path in paths}
    for checksum in checksums.values():
        checksum.touch()
    remove_old_metadata(before, after.metadata)
    assert {file for file, checksum in checksums.items() if not checksum.exists()} == removed
    assert metadata_files(after) == known_files(after)


@pytest.mark.parametrize("setting", ["true", "TRUE"])
def test_a_store_that_deletes_no_metadata_file_fails_no_commit(
    lake: IcebergCatalog,
    other: Catalog,
    make_table: MakeTable,
    monkeypatch: pytest.MonkeyPatch,
    setting: str,
) -> None:
    """Each store's client has exceptions of its own, and what was committed has not failed."""
    properties = {**TWO_FILES, "write.metadata.delete-after-commit.enabled": setting}
    asked: list[str] = []

    def forbid(self: object, location: str) -> None:
        asked.append(location)
        raise RuntimeError("HttpResponseError: 403")

    make_table(columns("id int"), properties=properties)
    monkeypatch.setattr(type(other.load_table("db.t").io), "delete", forbid)
    for number in range(4):
        lake.set_docs(relation("t"), f"text {number}", {}, 0)
    table = other.load_table("db.t")
    assert table.properties["comment"] == "text 3"
    assert len(asked) == 2
    assert metadata_files(table) == known_files(table) | set(asked)


def test_a_property_that_is_neither_true_nor_false_fails_no_commit(
    lake: IcebergCatalog, other: Catalog, make_table: MakeTable
) -> None:
    """Iceberg's Java library takes it for false."""
    properties = {**TWO_FILES, "write.metadata.delete-after-commit.enabled": "maybe"}
    make_table(columns("id int"), properties=properties)
    for number in range(4):
        lake.set_docs(relation("t"), f"text {number}", {}, 0)
    table = other.load_table("db.t")
    assert table.properties["comment"] == "text 3"
    assert len(metadata_files(table)) == 5
