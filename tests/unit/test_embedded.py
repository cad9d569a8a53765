"""The embedded catalog's folder: who may read it, and what becomes of it in another place."""

import multiprocessing
import os
import shutil
import sqlite3
import threading
from pathlib import Path
from typing import Any

import pytest
from pyiceberg.catalog import load_catalog
from pyiceberg.schema import Schema
from pyiceberg.types import IntegerType, NestedField

from dbt.adapters.sparkevolve.errors import MovedCatalogError, ProfileError
from dbt.adapters.sparkevolve.iceberg import embedded
from dbt.adapters.sparkevolve.iceberg.catalog_settings import Place, resolve

SCHEMA = Schema(NestedField(1, "id", IntegerType()))


def prepare(project: Path) -> Path:
    resolve("lake", {}, project).prepare()
    return project / ".sparkevolve"


def make_tables(project: Path, *names: str, location: str | None = None) -> None:
    catalog = load_catalog("lake", **resolve("lake", {}, project).pyiceberg)
    catalog.create_namespace_if_not_exists("db")
    for name in names:
        catalog.create_table(("db", name), SCHEMA, location)
    catalog.close()


def mode(path: Path) -> int:
    return path.stat().st_mode & 0o777


@pytest.fixture(params=[0o000, 0o022, 0o077])
def umask(request: pytest.FixtureRequest) -> object:
    before = os.umask(request.param)
    yield request.param
    os.umask(before)


# Who may read it


def test_the_folder_and_its_files_are_for_their_owner_alone(tmp_path: Path, umask: int) -> None:
    folder = prepare(tmp_path / "project")
    make_tables(tmp_path / "project", "t")
    prepare(tmp_path / "project")
    assert mode(folder) == 0o700
    files = {path.name: mode(path) for path in folder.iterdir() if path.is_file()}
    assert files.keys() >= {"catalog.db", ".gitignore", "location", "owner"}
    assert set(files.values()) == {0o600}
    # Above it nothing is ours.
    assert mode(tmp_path / "project") == 0o777 & ~umask


def test_a_folder_that_is_there_is_closed(tmp_path: Path) -> None:
    folder = prepare(tmp_path)
    make_tables(tmp_path, "t")
    folder.chmod(0o755)
    (folder / "catalog.db").chmod(0o666)
    (folder / ".gitignore").chmod(0o444)
    prepare(tmp_path)
    assert mode(folder) == 0o700
    assert mode(folder / "catalog.db") == 0o600
    assert mode(folder / ".gitignore") == 0o400


def test_what_a_link_leads_to_is_left_alone(tmp_path: Path) -> None:
    elsewhere, outside = tmp_path / "elsewhere", tmp_path / "outside.txt"
    elsewhere.mkdir(mode=0o755)
    outside.write_text("x")
    outside.chmod(0o644)
    (tmp_path / "linked").mkdir()
    (tmp_path / "linked" / ".sparkevolve").symlink_to(elsewhere)
    prepare(tmp_path / "linked")
    folder = prepare(tmp_path / "plain")
    (folder / "link").symlink_to(outside)
    prepare(tmp_path / "plain")
    assert (mode(elsewhere), mode(outside)) == (0o755, 0o644)


def test_a_file_system_without_modes_will_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Such as a mounted share, where a change of mode is not permitted."""

    def chmod(path: Path, mode: int) -> None:
        raise PermissionError(f"Operation not permitted: {path}")

    folder = tmp_path / ".sparkevolve"
    folder.mkdir()
    folder.chmod(0o755)
    with monkeypatch.context() as patch:
        patch.setattr(Path, "chmod", chmod)
        make_tables(tmp_path, "t")
        prepare(tmp_path)
    assert (folder / "catalog.db").is_file()
    assert mode(folder) == 0o755


def test_a_database_of_the_user_keeps_its_mode(tmp_path: Path) -> None:
    database = tmp_path / "c.db"
    database.touch(mode=0o640)
    resolve("lake", {"type": "sql", "uri": f"sqlite:///{database}"}, tmp_path).prepare()
    assert mode(database) == 0o640


# Where it is


def refused(project: Path) -> MovedCatalogError:
    with pytest.raises(MovedCatalogError) as raised:
        prepare(project)
    return raised.value


@pytest.mark.parametrize("has_marker", [True, False], ids=["marked", "of an older version"])
def test_a_copy_is_refused(tmp_path: Path, has_marker: bool) -> None:
    one, copy = tmp_path / "a project", tmp_path / "copy"
    folder = prepare(one)
    make_tables(one, "t", "u", "v", "w")
    if not has_marker:
        (folder / "location").unlink()
    shutil.copytree(one, copy, symlinks=True)
    error = refused(copy)
    assert error.msg == (
        f"The embedded catalog {copy}/.sparkevolve is a copy of {folder}, and a run here would write into "
        "the files of its tables (db.t, db.u, db.v, …). To share the tables, state one catalog in "
        "`catalog_properties` of both profiles. To begin with an empty catalog here, remove "
        f"{copy}/.sparkevolve. Nothing was read or written."
    )
    assert (error.folder, error.made_in, error.is_copy) == (f"{copy}/.sparkevolve", str(folder), True)
    assert error.tables == ("db.t", "db.u", "db.v", "db.w")
    assert refused(copy).made_in == str(folder), "it stays refused"
    prepare(one)
    shutil.rmtree(copy / ".sparkevolve")
    prepare(copy)
    make_tables(copy, "t")
    prepare(copy)


@pytest.mark.parametrize("has_marker", [True, False], ids=["marked", "of an older version"])
def test_a_project_that_was_moved_is_refused_until_a_link_stands_there(
    tmp_path: Path, has_marker: bool
) -> None:
    one, moved = tmp_path / "one", tmp_path / "moved"
    folder = prepare(one)
    make_tables(one, "t")
    if not has_marker:
        (folder / "location").unlink()
    one.rename(moved)
    error = refused(moved)
    assert error.msg == (
        f"The embedded catalog {moved}/.sparkevolve was made in {folder}, where nothing is now, and looks "
        "for the files of its tables there (db.t). To go on with its tables, move the project back, or put "
        f"a link there (`ln -s {moved} {one}`); in a container, mount the project at {one}. To begin with "
        f"an empty catalog here, remove {moved}/.sparkevolve. Nothing was read or written."
    )
    assert error.is_copy is False
    one.symlink_to(moved)
    for way in (one, moved):
        prepare(way)
        catalog = load_catalog("lake", **resolve("lake", {}, way).pyiceberg)
        assert catalog.load_table(("db", "t")).schema() == SCHEMA
        catalog.close()
    one.unlink()
    moved.rename(one)
    prepare(one)


def test_a_copy_whose_tables_lie_elsewhere_is_refused(tmp_path: Path) -> None:
    """Two catalogs of one table do not see each other's commits, and clean up each other's files."""
    one, copy = tmp_path / "one", tmp_path / "copy"
    prepare(one)
    make_tables(one, "t", location=f"file://{tmp_path}/outside/t")
    prepare(one)
    shutil.copytree(one, copy)
    assert refused(copy).tables == ("db.t",)


def test_a_folder_without_tables_may_go_anywhere(tmp_path: Path) -> None:
    one, copy = tmp_path / "one", tmp_path / "copy"
    prepare(one)
    shutil.copytree(one, copy)
    prepare(copy)
    make_tables(copy, "t")
    prepare(copy)
    prepare(one)
    assert (copy / ".sparkevolve" / "location").read_text() == f"{copy}/.sparkevolve\n"


def test_the_same_folder_under_two_names_is_one(tmp_path: Path) -> None:
    one, link = tmp_path / "one", tmp_path / "link"
    one.mkdir()
    link.symlink_to(one)
    prepare(link)
    make_tables(link, "t")
    prepare(one)
    make_tables(one, "u")
    prepare(link)


def test_a_link_that_leads_to_a_copy_is_told_from_the_folder_it_led_to(tmp_path: Path) -> None:
    """As with releases of which `current` is the newest: tables made without the link stay."""
    first, second, current = tmp_path / "1", tmp_path / "2", tmp_path / "current"
    first.mkdir()
    current.symlink_to(first)
    prepare(current)
    make_tables(first, "t")
    shutil.copytree(first, second)
    current.unlink()
    current.symlink_to(second)
    assert refused(current).made_in == f"{first}/.sparkevolve"


# Whose files lie where


def lies_in(project: Path, name: str, *, is_further: bool = False) -> str:
    place = Place.of_further(name) if is_further else Place(name)
    settings = resolve(name, {}, project, place)
    settings.prepare()
    at = str(settings.pyiceberg["warehouse"])
    assert settings.spark[f"spark.sql.catalog.{name}.warehouse"] == at
    return at.removeprefix(f"file://{project}/.sparkevolve/")


def test_each_catalog_has_a_folder_of_its_own_in_each_target(tmp_path: Path) -> None:
    """Whichever of them is the profile's own: two tables of one name never share a folder."""
    assert lies_in(tmp_path, "bronze", is_further=True) == "warehouse/.catalog-bronze"
    assert lies_in(tmp_path, "lake") == "warehouse"
    # Swapped.
    assert lies_in(tmp_path, "bronze") == "warehouse/.catalog-bronze"
    assert lies_in(tmp_path, "lake", is_further=True) == "warehouse"
    # Another target.
    assert lies_in(tmp_path, "prod") == "warehouse/.catalog-prod"
    assert (tmp_path / ".sparkevolve" / "owner").read_text() == "lake\n"


def test_a_warehouse_from_before_belongs_to_the_catalog_whose_tables_it_has(tmp_path: Path) -> None:
    folder = prepare(tmp_path)
    make_tables(tmp_path, "t")
    (folder / "owner").unlink()
    assert lies_in(tmp_path, "other") == "warehouse/.catalog-other"
    assert lies_in(tmp_path, "lake", is_further=True) == "warehouse"
    assert (tmp_path / ".sparkevolve" / "owner").read_text() == "lake\n"


def test_of_two_commands_that_begin_at_once_one_is_refused(tmp_path: Path) -> None:
    one, other = (resolve(name, {}, tmp_path) for name in ("lake", "other"))
    one.prepare()
    with pytest.raises(ProfileError, match="with a catalog of another name than `other`"):
        other.prepare()
    assert lies_in(tmp_path, "other") == "warehouse/.catalog-other"


def prepare_each(projects: list[Path], barrier: Any, said: Any) -> None:
    for project in projects:
        barrier.wait(20)
        try:
            prepare(project)
        except Exception as exc:
            said.put(str(exc))


def test_commands_of_one_catalog_that_begin_at_once_all_begin(tmp_path: Path) -> None:
    """Each in a process of its own: the folder, the database and the note of whose it is are there once."""
    context = multiprocessing.get_context("fork")
    projects = [tmp_path / str(number) for number in range(40)]
    barrier, said = context.Barrier(4), context.SimpleQueue()
    commands = [context.Process(target=prepare_each, args=(projects, barrier, said)) for _ in range(4)]
    for command in commands:
        command.start()
    for command in commands:
        command.join(60)
    assert [command.exitcode for command in commands] == [0] * 4
    assert said.empty(), said.get()
    for project in projects:
        folder = project / ".sparkevolve"
        # SQLite leaves the files of its log where two connections are closed at the same moment.
        logs = {"catalog.db-wal", "catalog.db-shm"}
        names = {path.name for path in folder.iterdir()} - logs
        assert names == {"catalog.db", ".gitignore", "location", "owner"}
        assert [(folder / name).read_text() for name in ("owner", "location")] == ["lake\n", f"{folder}\n"]


@pytest.mark.parametrize("name", ["owner", "location"])
def test_what_a_killed_command_has_left_empty_is_written_again(tmp_path: Path, name: str) -> None:
    folder = prepare(tmp_path)
    make_tables(tmp_path, "t")
    text = (folder / name).read_text()
    (folder / name).write_text("")
    assert lies_in(tmp_path, "lake") == "warehouse"
    assert (folder / name).read_text() == text


def test_a_locked_database_is_waited_for_and_not_taken_for_an_empty_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = prepare(tmp_path)
    make_tables(tmp_path, "t")
    (folder / "owner").unlink()
    # Those of its WAL mode can be read while somebody writes.
    other = sqlite3.connect(folder / "catalog.db", check_same_thread=False)
    other.execute("PRAGMA journal_mode=DELETE")
    other.execute("BEGIN EXCLUSIVE")
    with monkeypatch.context() as patch:
        patch.setattr(embedded, "BUSY_SECONDS", 0.2)
        with pytest.raises(ProfileError) as raised:
            resolve("sea", {}, tmp_path)
    assert raised.value.msg == (
        f"SQLite cannot use the catalog {folder}/catalog.db: database is locked. Locks were waited for 60 s. "
        "See which program has it open, and whether you may write there. Nothing was done."
    )
    waits = threading.Timer(0.5, other.rollback)
    waits.start()
    assert lies_in(tmp_path, "sea") == "warehouse/.catalog-sea"
    waits.join()
    other.close()
