"""Tables of a catalog that makes none with its rows, and how one goes by the catalog's rules."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from dbt_common.invocation import get_invocation_id
from pyiceberg.catalog import Catalog
from pyiceberg.exceptions import NoSuchTableError
from pyiceberg.table.update import RemoveSnapshotRefUpdate, RemoveSnapshotsUpdate

from dbt.adapters.sparkevolve.errors import (
    CatalogLacksError,
    FilesLeftError,
    FirstRunReplacedError,
    NoLocationError,
)
from dbt.adapters.sparkevolve.iceberg import creation
from dbt.adapters.sparkevolve.iceberg.access import CatalogAccess
from dbt.adapters.sparkevolve.iceberg.capabilities import Capabilities, capabilities_of
from dbt.adapters.sparkevolve.iceberg.catalog import IcebergCatalog
from dbt.adapters.sparkevolve.iceberg.catalog_settings import CatalogSettings, Place, resolve
from dbt.adapters.sparkevolve.iceberg.catalogs import Catalogs
from dbt.adapters.sparkevolve.iceberg.creation import CREATED_EMPTY
from dbt.adapters.sparkevolve.load.checks import Checks
from dbt.adapters.sparkevolve.load.creation import Creation
from dbt.adapters.sparkevolve.load.node import Node
from dbt.adapters.sparkevolve.settings import IncrementalSettings
from dbt.adapters.sparkevolve.sql.ddl import create_empty
from tests.unit.conftest import MakeTable
from tests.unit.helpers import append, columns, relation

ID = columns("id int")
OF_GLUE = capabilities_of({"type": "rest", "rest.signing-name": "glue"})
OF_GLUE_BUCKET = capabilities_of(
    {"type": "rest", "rest.signing-name": "glue", "warehouse": "111122223333:s3tablescatalog/lake"}
)
OF_S3_TABLES = capabilities_of({"type": "rest", "rest.signing-name": "s3tables"})


Can = Callable[[Capabilities], None]


def made_empty(name: str = "t", maker: str = "run-1") -> dict[str, str]:
    """The property of a table that a run has made to be filled."""
    return {CREATED_EMPTY: f"{maker} db.{name}"}


@pytest.fixture
def can(monkeypatch: pytest.MonkeyPatch) -> Can:
    """Let a catalog be one that can do this."""
    return lambda capabilities: monkeypatch.setattr(CatalogAccess, "capabilities", capabilities)


@pytest.fixture
def glue(lake: IcebergCatalog, can: Can) -> IcebergCatalog:
    """The catalog, with what Glue's REST endpoint can do."""
    can(OF_GLUE)
    return lake


def files(settings: CatalogSettings, name: str) -> list[str]:
    """What there is of a table in the warehouse."""
    folder = Path(str(settings.pyiceberg["warehouse"]).removeprefix("file://"), "db", name)
    return sorted(path.suffix for path in folder.rglob("*") if path.is_file())


def test_only_where_no_table_is_made_with_its_rows_it_is_made_empty(glue: IcebergCatalog, can: Can) -> None:
    assert glue.is_made_empty(relation("t"))
    assert glue.creation_marks(relation("t"), "run-1") == made_empty()
    assert not glue.is_made_empty(relation("t").incorporate(path={"database": "other"}))
    can(capabilities_of({"type": "sql"}))
    assert not glue.is_made_empty(relation("t"))
    assert glue.creation_marks(relation("t"), "run-1") == {}


def test_a_table_is_unfilled_until_it_has_a_snapshot(
    glue: IcebergCatalog, make_table: MakeTable, can: Can
) -> None:
    unfilled = make_table(ID, name="unfilled", properties=made_empty("unfilled"))
    filled = make_table(ID, [{"id": 1}], name="filled", properties=made_empty("filled"))
    somebodys = make_table(ID, name="somebodys")
    assert [glue.is_unfilled(each) for each in (unfilled, filled, somebodys, relation("none"))] == [
        True,
        False,
        False,
        False,
    ]
    can(capabilities_of({"type": "sql"}))
    assert not glue.is_unfilled(unfilled)
    assert not glue.is_unfilled_table(glue.load(unfilled))


@pytest.mark.parametrize("value", ["run-1 db.original", "run-1 other.copy", "run-1", ""])
def test_a_copy_of_a_table_that_was_made_to_be_filled_is_somebodys(
    glue: IcebergCatalog, make_table: MakeTable, other: Catalog, value: str
) -> None:
    copy = make_table(ID, name="copy", properties={CREATED_EMPTY: value})
    assert not glue.is_unfilled(copy)
    assert not glue.is_to_be_made(copy)
    glue.remove_unfilled(copy, "run-1")
    assert other.list_tables("db") == [("db", "copy")]


def test_a_table_in_the_letters_that_the_catalog_gives_it_is_unfilled(
    glue: IcebergCatalog, make_table: MakeTable
) -> None:
    assert glue.is_unfilled(make_table(ID, name="Orders", properties=made_empty("orders")))


@pytest.mark.parametrize("of", [OF_GLUE, OF_S3_TABLES, OF_GLUE_BUCKET], ids=["glue", "s3", "bucket"])
@pytest.mark.parametrize("meanwhile", ["filled", "recreated", "gone"])
def test_what_has_become_of_a_table_since_it_was_looked_at_counts(
    lake: IcebergCatalog,
    make_table: MakeTable,
    other: Catalog,
    can: Can,
    of: Capabilities,
    meanwhile: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    can(of)
    table = make_table(ID, properties=made_empty())
    look = creation.purge

    def purge(*arguments: Any) -> bool:
        if meanwhile == "filled":
            other.load_table("db.t").append(
                pa.Table.from_pylist([{"id": 1}], pa.schema([("id", pa.int32())]))
            )
        else:
            other.drop_table("db.t")
        if meanwhile == "recreated":
            make_table(ID, properties=made_empty(maker="run-2"))
        return look(*arguments)

    monkeypatch.setattr(creation, "purge", purge)
    assert lake.is_to_be_made(table) is (meanwhile == "gone")
    assert other.list_tables("db") == ([] if meanwhile == "gone" else [("db", "t")])
    if meanwhile == "filled":
        assert other.load_table("db.t").scan().to_arrow().to_pylist() == [{"id": 1}]


def test_a_table_that_has_lost_all_its_snapshots_was_filled_once(
    glue: IcebergCatalog, make_table: MakeTable, other: Catalog
) -> None:
    emptied = make_table(ID, [{"id": 1}], properties=made_empty())
    table = other.load_table("db.t")
    gone = RemoveSnapshotsUpdate(snapshot_ids=[each.snapshot_id for each in table.metadata.snapshots])
    other.commit_table(table, (), (RemoveSnapshotRefUpdate(ref_name="main"), gone))
    assert other.load_table("db.t").metadata.snapshots == []
    assert not glue.is_unfilled(emptied)
    assert not glue.is_to_be_made(emptied)
    assert other.list_tables("db") == [("db", "t")]


@pytest.mark.parametrize("is_upgraded", [False, True])
def test_a_table_of_format_version_1_that_has_lost_its_snapshots_was_filled_once(
    glue: IcebergCatalog, make_table: MakeTable, other: Catalog, is_upgraded: bool
) -> None:
    """It has no numbers that tell of them."""
    version = {"format-version": "1"}
    assert glue.is_unfilled(make_table(ID, name="new", properties={**made_empty("new"), **version}))
    emptied = make_table(ID, [{"id": 1}], properties={**made_empty(), **version})
    table = other.load_table("db.t")
    gone = RemoveSnapshotsUpdate(snapshot_ids=[each.snapshot_id for each in table.metadata.snapshots])
    other.commit_table(table, (), (RemoveSnapshotRefUpdate(ref_name="main"), gone))
    if is_upgraded:
        with other.load_table("db.t").transaction() as change:
            change.upgrade_table_version(2)
    metadata = other.load_table("db.t").metadata
    assert (metadata.format_version, metadata.snapshots) == (2 if is_upgraded else 1, [])
    assert not glue.is_unfilled(emptied)
    assert not glue.is_to_be_made(emptied)
    assert ("db", "t") in other.list_tables("db")


def test_a_table_that_got_a_property_only_is_unfilled_still(
    glue: IcebergCatalog, make_table: MakeTable, other: Catalog
) -> None:
    unfilled = make_table(ID, properties=made_empty())
    with other.load_table("db.t").transaction() as change:
        change.set_properties({"other": "x"})
    assert glue.is_unfilled(unfilled)
    file = Path(other.load_table("db.t").metadata.metadata_log[0].metadata_file.removeprefix("file://"))
    file.unlink()
    # Nobody can tell any more.
    assert not glue.is_unfilled(unfilled)


def test_a_first_run_finds_what_it_has_replaced_beside_the_empty_table(
    glue: IcebergCatalog, make_table: MakeTable, other: Catalog
) -> None:
    table = make_table(ID, properties=made_empty())
    own = Creation(glue, None, Node(made_empty=[table]))  # type: ignore[arg-type]

    def commit(number: int) -> int:
        now = other.load_table("db.t")
        append(now, [{"id": number}])
        return now.metadata.refs["main"].snapshot_id

    own.check(table)
    commit(1)
    theirs = commit(2)
    own.check(table)
    # As CREATE OR REPLACE does, which keeps the snapshots and begins without a parent.
    other.commit_table(other.load_table("db.t"), (), (RemoveSnapshotRefUpdate(ref_name="main"),))
    commit(3)
    commit(4)
    with pytest.raises(FirstRunReplacedError) as raised:
        own.check(table)
    # Nobody else's table is asked for where it was made with its rows.
    Creation(glue, None, Node()).check(table)  # type: ignore[arg-type]
    assert raised.value.msg == (
        "This first run of `lake`.`db`.`t` has replaced the rows that another run had committed to it just "
        f"before, in snapshot {theirs}, which is kept until it expires. Look which rows are the right ones. "
        f"To have those back, run CALL `lake`.system.set_current_snapshot('`db`.`t`', {theirs}), and then "
        "run again."
    )


def set_maker(other: Catalog, maker: str) -> None:
    with other.load_table("db.t").transaction() as change:
        change.set_properties(made_empty(maker=maker))


def replace_rows(other: Catalog, maker: str, number: int, branch: str = "") -> int:
    """Do what CREATE OR REPLACE does, which keeps the snapshots; then write to a branch, if named."""
    table = other.load_table("db.t")
    if "main" in table.metadata.refs:
        other.commit_table(table, (), (RemoveSnapshotRefUpdate(ref_name="main"),))
    set_maker(other, maker)
    append(other.load_table("db.t"), [{"id": number}])
    head = other.load_table("db.t").metadata.refs["main"].snapshot_id
    if branch:
        with other.load_table("db.t").manage_snapshots() as manage:
            manage.create_branch(head, branch)
        append(other.load_table("db.t"), [{"id": number + 1}], branch)
    return head


@pytest.mark.parametrize("has_files", [True, False])
def test_rows_that_no_reader_saw_were_not_replaced(
    glue: IcebergCatalog, make_table: MakeTable, other: Catalog, has_files: bool
) -> None:
    """Such as those on another run's branch, whose audits may have failed: newer than what it published."""
    make_table(ID, properties=made_empty(maker="theirs"))
    theirs = replace_rows(other, "theirs", 1, branch="audit")
    replace_rows(other, "ours", 3)
    if not has_files:
        for entry in other.load_table("db.t").metadata.metadata_log[:1]:
            Path(entry.metadata_file.removeprefix("file://")).unlink()
    assert glue.replaced_snapshot(relation("t"), "ours") == theirs


def test_a_run_whose_own_rows_were_replaced_has_replaced_nothing(
    glue: IcebergCatalog, make_table: MakeTable, other: Catalog
) -> None:
    make_table(ID, properties=made_empty(maker="ours"))
    ours = replace_rows(other, "ours", 1)
    replace_rows(other, "theirs", 3)
    assert glue.replaced_snapshot(relation("t"), "ours") is None
    assert glue.replaced_snapshot(relation("t"), "theirs") == ours
    # Between the two statements somebody has written into our empty table.
    other.drop_table("db.t")
    make_table(ID, properties=made_empty(maker="ours"))
    theirs = replace_rows(other, "ours", 1)
    replace_rows(other, "ours", 3)
    assert glue.replaced_snapshot(relation("t"), "ours") == theirs
    assert glue.replaced_snapshot(relation("none"), "ours") is None


def test_a_failed_node_leaves_what_another_run_is_about_to_fill(
    glue: IcebergCatalog, make_table: MakeTable, other: Catalog
) -> None:
    own = make_table(ID, name="own", properties=made_empty("own", get_invocation_id()))
    others = make_table(ID, name="others", properties=made_empty("others", "another-run"))
    Creation(glue, None, Node(made_empty=[others, own])).give_back()  # type: ignore[arg-type]
    assert other.list_tables("db") == [("db", "others")]


def test_an_unfilled_table_whose_files_may_not_be_deleted_is_recreated(
    lake: IcebergCatalog, make_table: MakeTable, other: Catalog, can: Can, monkeypatch: pytest.MonkeyPatch
) -> None:
    can(OF_GLUE_BUCKET)

    def purge_table(name: object) -> None:
        raise PermissionError("not allowed")

    monkeypatch.setattr(lake.access.opened, "purge_table", purge_table)
    assert lake.is_to_be_made(make_table(ID, properties=made_empty()))
    assert other.list_tables("db") == []


def test_a_table_that_has_got_rows_since_is_not_replaced_by_a_first_run(
    glue: IcebergCatalog, make_table: MakeTable
) -> None:
    filled = make_table(ID, [{"id": 1}], properties=made_empty())
    node = Node()
    assert not Creation(glue, None, node).begin(filled, "SELECT 2 AS id", "USING iceberg")  # type: ignore[arg-type]
    assert node.made_empty == []


def test_what_another_run_has_not_filled_goes_before_a_table_is_made(
    glue: IcebergCatalog, make_table: MakeTable, other: Catalog, settings: CatalogSettings
) -> None:
    filled = make_table(ID, [{"id": 1}], name="filled", properties=made_empty("filled"))
    unfilled = make_table(ID, name="unfilled", properties=made_empty("unfilled"))
    assert not glue.is_to_be_made(filled)
    assert glue.is_to_be_made(relation("none"))
    assert glue.is_to_be_made(unfilled)
    assert other.list_tables("db") == [("db", "filled")]
    assert files(settings, "unfilled") == []
    glue.remove_unfilled(filled, "run-1")
    glue.remove_unfilled(relation("none"), "run-1")
    glue.remove_unfilled(make_table(ID, name="unfilled", properties=made_empty("unfilled")), "run-1")
    assert other.list_tables("db") == [("db", "filled")]
    assert other.load_table("db.filled").scan().to_arrow().to_pylist() == [{"id": 1}]


def test_files_go_where_the_catalog_drops_a_table_without_them_only(
    glue: IcebergCatalog, make_table: MakeTable, other: Catalog, settings: CatalogSettings
) -> None:
    make_table(ID, [{"id": 1}], [{"id": 2}], name="stays")
    gone = make_table(ID, [{"id": 1}], [{"id": 2}], name="gone")
    with other.load_table("db.gone").transaction() as transaction:
        transaction.delete("id = 1")
    kept = files(settings, "stays")
    assert len(files(settings, "gone")) > len(kept) > 0
    glue.purge(gone)
    assert files(settings, "gone") == []
    assert files(settings, "stays") == kept
    assert other.list_tables("db") == [("db", "stays")]
    glue.purge(gone)


def test_a_table_goes_though_its_files_cannot_be_listed(
    glue: IcebergCatalog, make_table: MakeTable, other: Catalog
) -> None:
    broken = make_table(ID, [{"id": 1}])
    snapshot = other.load_table("db.t").current_snapshot()
    assert snapshot is not None
    Path(snapshot.manifest_list.removeprefix("file://")).unlink()
    with pytest.raises(FilesLeftError, match="was dropped, but not all of its files could be removed"):
        glue.purge(broken)
    assert other.list_tables("db") == []


def test_a_table_that_goes_with_its_files_only_stays_if_these_do(
    lake: IcebergCatalog, make_table: MakeTable, other: Catalog, can: Can
) -> None:
    can(OF_S3_TABLES)
    table = make_table(ID, [{"id": 1}])

    def purge_table(name: object) -> None:
        raise PermissionError("not allowed")

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(lake.access.opened, "purge_table", purge_table)
        with pytest.raises(PermissionError, match="not allowed"):
            lake.purge(table)
    assert other.list_tables("db") == [("db", "t")]
    assert lake.drops_with_files(table)
    assert not lake.drops_with_files(table.incorporate(path={"database": "other"}))
    lake.purge(table)
    with pytest.raises(NoSuchTableError):
        other.load_table("db.t")


def test_a_table_lies_in_the_folder_of_its_schema_where_the_catalog_has_to_be_told(
    lake: IcebergCatalog, make_table: MakeTable, other: Catalog, can: Can
) -> None:
    mine = make_table(ID, name="mine")
    assert lake.location_for(relation("t")) is None
    can(OF_GLUE)
    with pytest.raises(NoLocationError) as error:
        lake.location_for(relation("t"))
    assert error.value.msg == (
        "`lake`.`db`.`t` cannot be made: the catalog `lake` wants to be told where its tables are to be, and "
        "the schema has no location. Run ALTER SCHEMA `lake`.`db` SET DBPROPERTIES ('location' = "
        "'s3://bucket/folder'), or make it with CREATE SCHEMA … LOCATION …. Nothing was built."
    )
    other.update_namespace_properties("db", updates={"location": "s3://bucket/db/"})
    assert lake.location_for(relation("t")) == "s3://bucket/db/t"
    assert lake.location_for(relation("t").incorporate(path={"database": "other"})) is None
    assert lake.location_for(mine) == other.load_table("db.mine").location() != "s3://bucket/db/mine"
    with pytest.raises(NoLocationError):
        lake.location_for(relation("t").incorporate(path={"schema": "none"}))


def test_the_statement_that_makes_a_table_empty() -> None:
    listed = [("id", "int"), ("a`b", "struct<`x`:int>")]
    assert create_empty("`lake`.`db`.`t`", listed, "\n  using iceberg\n  location 'x'  ") == (
        "CREATE TABLE `lake`.`db`.`t` (`id` int, `a``b` struct<`x`:int>)\nusing iceberg\n  location 'x'"
    )


def test_what_a_catalog_lacks_is_named_with_what_to_do(lake: IcebergCatalog, can: Can) -> None:
    checks = Checks(None, {}, catalogs=Catalogs([lake]))  # type: ignore[arg-type]
    view = relation("Orders")
    checks.views(view, "model.shop.orders")
    checks.name(view, "model.shop.orders")
    can(OF_S3_TABLES)
    with pytest.raises(CatalogLacksError) as views:
        checks.views(view, "model.shop.orders")
    begins = "model.shop.orders cannot be built as `lake`.`db`.`Orders`: the catalog `lake`"
    assert views.value.msg == (
        f"{begins} (Amazon S3 Tables by REST) has no views. Set `materialized` to `table`, `incremental` or "
        "`ephemeral`. Nothing of it was built."
    )
    # A test's failures, and a clone, may be views, too.
    for stored_as in ("table", "ephemeral", None):
        checks.stored_failures(view, "test.shop.no_gaps", stored_as)
    for check, what, remedy in (
        (
            lambda: checks.stored_failures(view, "test.shop.no_gaps", "view"),
            "The failures of test.shop.no_gaps cannot be stored as",
            "Set `store_failures_as` to `table` or `ephemeral`.",
        ),
        (
            lambda: checks.clone(view, None, relation("original")),
            "`lake`.`db`.`original` cannot be cloned as",
            "A clone is a view.",
        ),
    ):
        with pytest.raises(CatalogLacksError) as others:
            check()
        assert others.value.msg == (
            f"{what} `lake`.`db`.`Orders`: the catalog `lake` (Amazon S3 Tables by REST) has no views. "
            f"{remedy} Nothing of it was built."
        )
    with pytest.raises(CatalogLacksError) as name:
        checks.name(view, "model.shop.orders")
    assert name.value.msg == (
        f"{begins} (Amazon S3 Tables by REST) takes names of lower-case letters, digits and underscores "
        "only, which begin with a letter or a digit. Give it another `alias`, or rename it. Nothing of it "
        "was built."
    )
    checks.renaming(view)
    can(OF_GLUE)
    with pytest.raises(CatalogLacksError) as renaming:
        checks.renaming(view)
    assert renaming.value.msg == (
        "`lake`.`db`.`Orders` cannot be renamed: the catalog `lake` (Glue by REST) renames no table. Build "
        "it under its new name, and drop the old one. Nothing was renamed."
    )
    can(OF_S3_TABLES)
    elsewhere = view.incorporate(path={"database": "other"})
    checks.views(elsewhere, "model.shop.orders")
    checks.name(elsewhere, "model.shop.orders")
    can(capabilities_of({"type": "rest"}))
    with pytest.raises(CatalogLacksError, match="put `view-endpoints-supported: true` into"):
        checks.views(view, "model.shop.orders")
    # A server that says which requests it takes is believed, whatever the profile says.
    can(capabilities_of({"type": "rest"}, {"GET /v1/{prefix}/namespaces"}))
    with pytest.raises(CatalogLacksError, match=r"or `ephemeral`\. Nothing of it was built\.$"):
        checks.views(view, "model.shop.orders")


@pytest.mark.parametrize(
    ("given", "setting", "remedy"),
    [
        ({}, "publish: branch", "Set `publish: direct`, where each statement is visible at once."),
        (
            {"publish": "direct", "removed_columns": "keep"},
            "removed_columns: keep",
            "Set `removed_columns: 'null'`.",
        ),
        (
            {"publish": "direct", "on_bad_rows": "dead_letter"},
            "on_bad_rows: dead_letter",
            "Set `on_bad_rows: fail`.",
        ),
        ({"publish": "direct"}, "", ""),
    ],
)
def test_what_takes_a_branch_is_refused_where_there_are_none(
    lake: IcebergCatalog, can: Can, given: dict[str, str], setting: str, remedy: str
) -> None:
    checks = Checks(None, {}, catalogs=Catalogs([lake]))  # type: ignore[arg-type]
    wanted = IncrementalSettings.from_config({"unique_key": ["id"], **given}, "model.shop.t")
    checks.branches(relation("t"), "model.shop.t", wanted)
    can(capabilities_of({"type": "rest", "nessie.is-nessie-catalog": "True"}))
    if not setting:
        checks.branches(relation("t"), "model.shop.t", wanted)
        return
    with pytest.raises(CatalogLacksError) as refused:
        checks.branches(relation("t"), "model.shop.t", wanted)
    assert refused.value.msg == (
        f"model.shop.t cannot be loaded into `lake`.`db`.`t` with `{setting}`: the catalog `lake` (REST) "
        f"keeps no branches of a table. {remedy} Nothing of it was built."
    )


def test_what_is_to_be_said_of_a_further_catalog_stands_under_its_name(
    lake: IcebergCatalog, can: Can, tmp_path: Path
) -> None:
    properties = {"type": "rest", "uri": "http://127.0.0.1:1"}
    archive = IcebergCatalog(resolve("archive", properties, tmp_path, Place.of_further("archive")))
    can(capabilities_of(properties))
    checks = Checks(None, {}, catalogs=Catalogs([lake, archive]))  # type: ignore[arg-type]
    for database, setting in (("lake", "catalog_properties"), ("archive", "catalogs.archive")):
        view = relation("orders").incorporate(path={"database": database})
        with pytest.raises(CatalogLacksError, match=f"put `view-endpoints-supported: true` into `{setting}`"):
            checks.views(view, "model.shop.orders")


def test_spark_has_s3_tables_purge(tmp_path: Path) -> None:
    key = "spark.sql.catalog.lake.rest-catalog-purge"
    properties = {"type": "rest", "uri": "http://127.0.0.1:1", "rest.signing-name": "s3tables"}
    assert resolve("lake", properties, tmp_path).spark[key] == "true"
    assert key not in resolve("lake", {**properties, "rest.signing-name": "glue"}, tmp_path).spark
    mine = resolve("lake", {**properties, "spark": {"rest-catalog-purge": "false"}}, tmp_path)
    assert mine.spark[key] == "false"
