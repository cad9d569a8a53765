"""A table whose last commit nobody can read is put back, and no other."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from fsspec import AbstractFileSystem
from fsspec.implementations.local import LocalFileSystem
from pyiceberg.catalog import Catalog
from pyiceberg.io import FSSPEC_FILE_IO
from pyiceberg.schema import Schema
from pyiceberg.types import IntegerType, NestedField

from dbt.adapters.sparkevolve.iceberg.catalog import IcebergCatalog
from dbt.adapters.sparkevolve.iceberg.catalog_settings import CatalogSettings
from dbt.adapters.sparkevolve.iceberg.lost_answers import put_back
from tests.unit.conftest import MakeTable

CONFLICT = "Found conflicting files that can contain records matching true: [file:/f]"


@pytest.fixture
def lake(settings: CatalogSettings) -> IcebergCatalog:
    """A catalog that counts as one in a server, whose answers can be lost."""
    return IcebergCatalog(replace(settings, sqlite_file=None))


@pytest.mark.parametrize(
    "sql",
    [
        "merge into `lake`.`db`.`t` using `lake`.`db`.`none` on true",
        "merge into lake.db.t using `lake`.`db`.`none` on true",
        "update lake.`db`.t set id = 1",
        "call lake.system.rewrite_data_files(options => map('a', 'b'), table => 'db.t')",
        "CALL `lake`.`system`.rewrite_manifests('db.`t`')",
        'call lake.system.rewrite_position_delete_files( TABLE=>"lake.db.t")',
    ],
)
def test_a_table_whose_last_commit_lost_its_files_is_put_back(
    lake: IcebergCatalog, other: Catalog, make_table: MakeTable, sql: str
) -> None:
    make_table(Schema(NestedField(1, "id", IntegerType())), [{"id": 1}], [{"id": 2}])
    table = other.load_table("db.t")
    before, last = table.metadata.snapshots
    assert put_back(lake.access, CONFLICT, sql) == ""
    Path(last.manifest_list.removeprefix("file://")).unlink()
    assert put_back(lake.access, "[DIVIDE_BY_ZERO] oh", sql) == ""
    for elsewhere in ("merge into `other`.`db`.`t`", "call other.system.rewrite_data_files('lake.db')"):
        assert put_back(lake.access, CONFLICT, elsewhere) == ""
    assert put_back(lake.access, CONFLICT, sql) == (
        "The database had made this commit, and its answer was lost: Iceberg has taken it for another "
        f"writer's, and deleted files of the snapshot {last.snapshot_id}, which nobody could read any more. "
        f"`lake`.`db`.`t` has been put back to the snapshot before it, {before.snapshot_id}: it has none of "
        "the changes of this statement. Run again."
    )
    table = other.load_table("db.t")
    assert table.scan().to_arrow().to_pylist() == [{"id": 1}]
    # What looks at all snapshots would fail at one without its list.
    assert [snapshot.snapshot_id for snapshot in table.metadata.snapshots] == [before.snapshot_id]
    # The time of the commit follows from the table's, as of each of ours.
    moved = table.metadata.snapshot_log[-1]
    assert (moved.snapshot_id, moved.timestamp_ms) == (before.snapshot_id, table.metadata.last_updated_ms)
    assert put_back(lake.access, CONFLICT, sql) == ""


def test_a_snapshot_that_somebody_has_tagged_stays(
    lake: IcebergCatalog, other: Catalog, make_table: MakeTable
) -> None:
    make_table(Schema(NestedField(1, "id", IntegerType())), [{"id": 1}], [{"id": 2}])
    table = other.load_table("db.t")
    before, last = table.metadata.snapshots
    table.manage_snapshots().create_tag(last.snapshot_id, "theirs").commit()
    Path(last.manifest_list.removeprefix("file://")).unlink()
    assert "has been put back" in put_back(lake.access, CONFLICT, "merge into `lake`.`db`.`t`")
    refs = {name: ref.snapshot_id for name, ref in other.load_table("db.t").metadata.refs.items()}
    assert refs == {"main": before.snapshot_id, "theirs": last.snapshot_id}


def test_a_storage_that_does_not_answer_has_not_lost_a_file(
    settings: CatalogSettings, other: Catalog, make_table: MakeTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As fsspec looks for files in object stores: the commit is another writer's, and good."""
    make_table(Schema(NestedField(1, "id", IntegerType())), [{"id": 1}], [{"id": 2}])
    table = other.load_table("db.t")
    last = Path(table.metadata.snapshots[-1].manifest_list).name
    known = LocalFileSystem.info

    def info(self: LocalFileSystem, path: str, **kwargs: Any) -> dict[str, Any]:
        if str(path).endswith(last):
            raise OSError("503 Service Unavailable")
        return known(self, path, **kwargs)

    monkeypatch.setattr(LocalFileSystem, "info", info)
    for name in ("exists", "lexists"):
        monkeypatch.setattr(LocalFileSystem, name, getattr(AbstractFileSystem, name))
    properties = {**settings.pyiceberg, "py-io-impl": FSSPEC_FILE_IO}
    lake = IcebergCatalog(replace(settings, sqlite_file=None, pyiceberg=properties))
    assert put_back(lake.access, CONFLICT, "merge into `lake`.`db`.`t`") == ""
    assert other.load_table("db.t").metadata_location == table.metadata_location


def test_where_spark_has_statements_only_the_one_to_run_is_said(
    lake: IcebergCatalog, other: Catalog, make_table: MakeTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server's tables of a format version that PyIceberg does not write."""
    make_table(Schema(NestedField(1, "id", IntegerType())), [{"id": 1}], [{"id": 2}])
    table = other.load_table("db.t")
    before, last = table.metadata.snapshots
    Path(last.manifest_list.removeprefix("file://")).unlink()
    monkeypatch.setattr("dbt.adapters.sparkevolve.iceberg.lost_answers.is_atomic", lambda table: False)
    assert put_back(lake.access, CONFLICT, "merge into `lake`.`db`.`t`") == (
        "The database had made this commit, and its answer was lost: Iceberg has taken it for another "
        f"writer's, and deleted files of the snapshot {last.snapshot_id}, which nobody can read. Put "
        "`lake`.`db`.`t` back to the snapshot before it, with "
        f"`CALL lake.system.set_current_snapshot('db.t', {before.snapshot_id})`, and run again."
    )
    assert other.load_table("db.t").metadata_location == table.metadata_location


def test_a_table_with_nothing_to_put_back_to_is_left(
    lake: IcebergCatalog, other: Catalog, make_table: MakeTable
) -> None:
    make_table(Schema(NestedField(1, "id", IntegerType())), [{"id": 1}], [{"id": 2}])
    table = other.load_table("db.t")
    for snapshot in table.metadata.snapshots:
        Path(snapshot.manifest_list.removeprefix("file://")).unlink()
    assert put_back(lake.access, CONFLICT, "merge into `lake`.`db`.`t`") == ""
    assert other.load_table("db.t").metadata_location == table.metadata_location
