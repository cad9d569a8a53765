"""A dropped column put back into a real table: the commit, what it says, and what comes between."""

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.catalog import Catalog
from pyiceberg.exceptions import CommitFailedException
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.types import IntegerType, NestedField, StringType

from dbt.adapters.sparkevolve.errors import (
    CommitConflictError,
    NotIcebergError,
    RestoreRefusedError,
    SchemaCommitError,
)
from dbt.adapters.sparkevolve.evolution import record
from dbt.adapters.sparkevolve.evolution.changes import AddColumn
from dbt.adapters.sparkevolve.evolution.restore import RestoreField, plan_restore
from dbt.adapters.sparkevolve.iceberg.catalog import IcebergCatalog
from dbt.adapters.sparkevolve.iceberg.facts import heads_of_branches, table_facts
from dbt.adapters.sparkevolve.iceberg.restore import Files, Restored
from dbt.adapters.sparkevolve.iceberg.schema_commits import commit_docs
from tests.unit.conftest import MakeTable
from tests.unit.helpers import answering, append, columns, relation

MAPPING = '[{"field-id":1,"names":["id"]},{"field-id":2,"names":["note"]}]'


@pytest.fixture
def dropped(make_table: MakeTable, other: Catalog) -> Table:
    """A table whose column `note`, its second one, was dropped between two rows."""
    make_table(
        columns("id int, note string"),
        [{"id": 1, "note": "keep"}],
        properties={"schema.name-mapping.default": MAPPING, "sparkevolve.schema.0": '{"added": ["`note`"]}'},
    )
    table = other.load_table("db.t")
    with table.update_schema() as update:
        update.delete_column("note")
    append(table, [{"id": 2}])
    return table


def restore(lake: IcebergCatalog, column: str = "note", retries: int = 2, **more: object) -> Restored:
    given = {"field_id": None, "plan_only": False, **more}
    return lake.restore_column(relation("t"), column, retries=retries, invocation_id="run-1", **given)  # type: ignore[arg-type]


def set_mapping(table: Table, names: dict[int, list[str]]) -> None:
    mapping = [{"field-id": field_id, "names": found} for field_id, found in names.items()]
    with table.transaction() as transaction:
        transaction.set_properties({"schema.name-mapping.default": json.dumps(mapping)})


def rows(other: Catalog) -> list[tuple[object, ...]]:
    found = other.load_table("db.t").scan().to_arrow().to_pylist()
    return sorted(tuple(row.values()) for row in found)


def test_the_schema_that_the_table_has_had_is_its_schema_again(
    lake: IcebergCatalog, other: Catalog, dropped: Table
) -> None:
    planned = restore(lake, plan_only=True)
    assert other.load_table("db.t").metadata_location == dropped.metadata_location
    assert (planned.is_done, planned.schema_id) == (False, 1)
    done = restore(lake)
    table = other.load_table("db.t")
    assert (done.is_done, done.schema_id, table.metadata.current_schema_id) == (True, 0, 0)
    assert [schema.schema_id for schema in table.metadata.schemas] == [0, 1]
    assert table.metadata.last_column_id == 2
    assert rows(other) == [(1, "keep"), (2, None)]
    entry = json.loads(table.properties["sparkevolve.schema.0"])
    assert (entry["added"], entry["restored"], entry["restored_by"]) == (["`note`"], ["`note`"], "run-1")
    assert json.loads(table.properties["schema.name-mapping.default"]) == json.loads(MAPPING)
    assert done.data | {"dropped_at": ""} == {
        "relation": "`lake`.`db`.`t`",
        "change": "restore column `note` string as field 2",
        "column": "`note`",
        "field_id": 2,
        "type": "string",
        "first_schema_id": 0,
        "last_schema_id": 0,
        "dropped_by_schema_id": 1,
        "dropped_at": "",
        "files_with_values": {"files": 1, "rows": 1},
        "files_without_values": {"files": 1, "rows": 1},
        "files_unknown": {"files": 0, "rows": 0},
        "rewrites_since": 0,
        "schema_id": 0,
        "is_done": True,
        "is_unnamed": False,
    }


def test_one_that_comes_after_others_makes_a_schema_of_its_own(
    lake: IcebergCatalog, other: Catalog, dropped: Table
) -> None:
    with dropped.update_schema() as update:
        update.add_column("n", columns("n int").fields[0].field_type)
    assert restore(lake).schema_id == 3
    table = other.load_table("db.t")
    assert {f.name: f.field_id for f in table.schema().fields} == {"id": 1, "n": 3, "note": 2}
    assert rows(other) == [(1, None, "keep"), (2, None, None)]
    assert json.loads(table.properties["sparkevolve.schema.3"])["restored"] == ["`note`"]
    mapping = json.loads(table.properties["schema.name-mapping.default"])
    assert [entry["field-id"] for entry in mapping if "note" in entry["names"]] == [2]


def test_what_others_have_done_to_another_name_is_still_to_be_told(
    lake: IcebergCatalog, other: Catalog, dropped: Table
) -> None:
    int_ = columns("n int").fields[0].field_type
    for change in ("add", "delete", "add"):
        with dropped.update_schema() as update:
            update.add_column("n", int_) if change == "add" else update.delete_column("n")
        if dropped.schema().highest_field_id == 3:
            # As a run of the model does that adds the column.
            properties = record.new_properties(2, [AddColumn(("n",), int_)], "run-0", "2026-01-01", "abc")
            with dropped.transaction() as transaction:
                transaction.set_properties(properties)
    before = table_facts(other.load_table("db.t")).taken_names
    assert [(taken.path, taken.field_id, taken.old_field_id) for taken in before] == [(("n",), 4, 3)]
    restore(lake)
    after = table_facts(other.load_table("db.t")).taken_names
    assert [(taken.path, taken.field_id, taken.old_field_id) for taken in after] == [(("n",), 4, 3)]
    # So it is if a run describes the columns before it looks.
    commit_docs(other.load_table("db.t"), None, {"id": "the key"}, "run-2")
    described = other.load_table("db.t")
    assert table_facts(described).taken_names == after
    newest = max(record.read(described.properties).items())
    assert newest[0] == described.metadata.current_schema_id
    assert newest[1].invocation_id == "run-2"


def test_an_answer_that_was_lost_and_a_writer_that_was_faster(
    lake: IcebergCatalog, other: Catalog, dropped: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = answering(lake, monkeypatch, CommitFailedException("faster"), OSError("lost it"))
    assert restore(lake).is_done
    assert calls == ["faster", "lost it"]
    assert rows(other) == [(1, "keep"), (2, None)]
    assert len(other.load_table("db.t").metadata.schemas) == 2


def test_what_the_catalog_refuses_changes_nothing(
    lake: IcebergCatalog, other: Catalog, dropped: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    answering(lake, monkeypatch, *[CommitFailedException("faster")] * 2, ValueError("no such thing"))
    with pytest.raises(CommitConflictError):
        restore(lake, retries=1)
    with pytest.raises(SchemaCommitError, match="restore column `note` string as field 2") as caught:
        restore(lake)
    assert caught.value.outcome_known
    assert other.load_table("db.t").metadata_location == dropped.metadata_location


def test_a_refusal_names_the_table_and_writes_nothing(
    lake: IcebergCatalog, other: Catalog, dropped: Table
) -> None:
    with pytest.raises(RestoreRefusedError) as caught:
        restore(lake, "id")
    assert caught.value.msg.startswith(
        "Nothing was restored in `lake`.`db`.`t`, and nothing was written to it. The table has the column "
        "`id`, "
    )
    assert other.load_table("db.t").metadata_location == dropped.metadata_location
    other.drop_table("db.t")
    with pytest.raises(NotIcebergError):
        restore(lake)


def test_what_a_column_with_a_default_is_in_files_without_it() -> None:
    fields = [NestedField(1, "id", IntegerType())]
    note = NestedField(2, "note", StringType(), initial_default="n/a", write_default="other")
    schemas = [Schema(*fields, note, schema_id=0), Schema(*fields, schema_id=1)]
    change = plan_restore(schemas, schemas[1], "note")
    assert isinstance(change, RestoreField)
    done = Restored("t", change, "", Files(1, 3), Files(2, 5), Files(), 1, 0, is_done=True)
    assert done.lines[2:] == [
        "values   3 rows in 1 file, written while the table had `note`: what they have of it is read",
        "default  5 rows in 2 files, written without it, where 'n/a' is read; 1 compaction has rewritten "
        "files without it since, and values in these are lost",
    ]


def test_what_expired_snapshots_have_written_is_known_by_statistics_alone(
    lake: IcebergCatalog, other: Catalog, dropped: Table
) -> None:
    append(dropped, [{"id": 3}])
    table = other.load_table("db.t")
    oldest = sorted(table.metadata.snapshots, key=lambda snapshot: snapshot.timestamp_ms)[:2]
    table.maintenance.expire_snapshots().by_ids([snapshot.snapshot_id for snapshot in oldest]).commit()
    planned = restore(lake, plan_only=True)
    counted = (planned.written_with.files, planned.written_without.files, planned.unknown.files)
    assert counted == (1, 1, 1)
    assert planned.lines[-1] == (
        "unknown  1 row in 1 file, whose snapshots have expired and whose statistics do not name it"
    )


def test_a_field_whose_name_files_without_ids_have_for_another_one(
    lake: IcebergCatalog, other: Catalog, dropped: Table, tmp_path: Path
) -> None:
    """As Spark's ALTER TABLE leaves the mapping where the name was given to a new column."""
    with dropped.update_schema() as update:
        update.add_column("note", StringType())
    path = str(tmp_path / "imported.parquet")
    pq.write_table(pa.table({"id": pa.array([3], pa.int32()), "note": ["there"]}), path)
    set_mapping(dropped, {1: ["id"], 2: [], 3: ["note"]})
    dropped.add_files([path])
    with dropped.update_schema() as update:
        update.rename_column("note", "note_new")
    set_mapping(dropped, {1: ["id"], 2: [], 3: ["note_new", "note"]})
    planned = restore(lake, plan_only=True)
    said = (
        "no ids   files without field ids (`add_files`, `migrate`) are read as if they had no `note`: "
        "`schema.name-mapping.default` has no name for field 2. To read it there, take the name that these "
        "files have for it from the other field's entry, and give it to this one"
    )
    assert (planned.is_unnamed, planned.lines[-1]) == (True, said)
    assert restore(lake).lines[-1] == said
    scan = other.load_table("db.t").scan().to_arrow().to_pylist()
    by_id = {row["id"]: (row["note"], row["note_new"]) for row in scan}
    assert by_id == {1: ("keep", None), 2: (None, None), 3: (None, "there")}
    # As the line says.
    set_mapping(other.load_table("db.t"), {1: ["id"], 2: ["note"], 3: ["note_new"]})
    scan = other.load_table("db.t").scan().to_arrow().to_pylist()
    assert {row["id"]: row["note"] for row in scan} == {1: "keep", 2: None, 3: "there"}


def test_files_of_a_tag_are_read_without_what_is_added_since(dropped: Table) -> None:
    head = dropped.metadata.current_snapshot_id
    assert head is not None
    with dropped.manage_snapshots() as manage:
        manage.create_tag(head, "q1").create_branch(head, "audit")
    assert heads_of_branches(dropped) == {"main": head, "audit": head}
