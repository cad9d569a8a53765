"""The folder ``.sparkevolve`` of a project: for its owner alone, and of use only where it was made."""

import contextlib
import os
import re
import sqlite3
import tempfile
import time
from pathlib import Path

from dbt.adapters.sparkevolve.errors import MovedCatalogError

FOLDER = ".sparkevolve"
# How long Spark, PyIceberg and we wait for a lock in a catalog in SQLite.
BUSY_SECONDS = 60
# The path at which the catalog was made: its tables are known by absolute paths.
_MARKER = "location"
# The name of the catalog whose tables lie directly in the warehouse.
_OWNER = "owner"
_ROOT = re.compile(rf"file:(?://)?(/.*/{re.escape(FOLDER)})/warehouse/")
_PLAIN = re.compile(rf"/{re.escape(FOLDER)}/warehouse/(?![.]catalog-)")
_OTHERS = 0o077


def make_private(folder: Path) -> None:
    """Make the folder, hidden from git; take from others what they may do with it, whatever the umask.

    What is not ours is left as it is, and so is a link: where it leads is the user's choice.
    """
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    if folder.is_symlink():
        return
    if not (folder / ".gitignore").exists():
        (folder / ".gitignore").write_text("*\n")
    for path in (folder, *folder.iterdir()):
        if path.is_symlink() or not (path == folder or path.is_file()):
            continue
        # A file of SQLite's may go meanwhile, and not every file system has modes to change.
        with contextlib.suppress(OSError):
            status = path.stat()
            if status.st_uid == os.geteuid() and status.st_mode & _OTHERS:
                path.chmod(status.st_mode & ~_OTHERS & 0o7777)


def make_file(path: Path) -> None:
    """Make an empty file that nobody else may read, unless it is there.

    One that is there is not opened: to close it again would take the locks away that this process has on it.
    """
    if path.exists():
        return
    with contextlib.suppress(FileExistsError):
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))


def check_location(folder: Path, connection: sqlite3.Connection) -> None:
    """See whether the catalog is where it was made, and note that for the next time.

    The same folder under another name is fine: a link, or a mount.

    Args:
        folder: the catalog's.
        connection: to its database.

    Raises:
        MovedCatalogError: its tables have their files elsewhere.
    """
    marker = folder / _MARKER
    made_in = _line(marker) or None
    tables = _tables(connection)
    homes = {made_in} if made_in and tables else set()
    for _, location in tables:
        found = _ROOT.match(location)
        if found and not location.startswith(f"file://{folder}/"):
            homes.add(found[1])
    for home in sorted(homes):
        if not _is_same(Path(home), folder):
            raise MovedCatalogError(str(folder), home, Path(home).exists(), [name for name, _ in tables])
    if made_in != str(folder) and (made_in is None or not tables):
        _write(marker, f"{folder}\n")


def warehouse(folder: Path, name: str, *, is_further: bool) -> Path:
    """Return where the tables of a catalog of the project lie: each has a folder of its own.

    In the folder of another catalog a table of the same name would lie in the same folder, and what looks for
    orphan files there would take the files of one table for those of the other.

    Args:
        folder: the project's.
        name: the catalog's.
        is_further: whether it is one beside the profile's own.
    """
    plain = folder / "warehouse"
    owner = _owner(folder)
    is_owner = name == owner if owner else not is_further
    # No schema's folder has a dot at its beginning.
    return plain if is_owner else plain / f".catalog-{name}"


def _owner(folder: Path) -> str:
    """Return the catalog whose tables lie directly in the warehouse; empty if there is none, or are several.

    Before this was noted, it was the one that a profile had as its own when the tables were made.
    """
    noted = _line(folder / _OWNER)
    if noted:
        return noted
    database = folder / "catalog.db"
    if not database.exists():
        return ""
    at = f"{database.absolute().as_uri()}?mode=ro"
    with contextlib.closing(sqlite3.connect(at, uri=True, timeout=BUSY_SECONDS)) as connection:
        rows = _rows(connection)
    found = {name for name, _, location in rows if re.search(_PLAIN, location)}
    return found.pop() if len(found) == 1 else ""


def note_owner(folder: Path, name: str, connection: sqlite3.Connection) -> bool:
    """Note that a catalog's tables lie directly in the warehouse; tell whether no other one's do.

    Args:
        folder: the project's.
        name: the catalog's.
        connection: to its database, whose lock lets one command at a time look and write.
    """
    owner = folder / _OWNER
    connection.execute("BEGIN IMMEDIATE")
    try:
        # Versions before have made the file and then written it: one that was killed has left it empty.
        if not _line(owner):
            _write(owner, f"{name}\n")
        return _line(owner) == name
    finally:
        connection.rollback()


def use_wal(connection: sqlite3.Connection) -> None:
    """Have a database in WAL mode. SQLite waits for locks, but not for the one that this change takes."""
    ends_at = time.monotonic() + BUSY_SECONDS
    while True:
        try:
            if connection.execute("PRAGMA journal_mode").fetchone() != ("wal",):
                connection.execute("PRAGMA journal_mode=WAL")
            return
        except sqlite3.OperationalError as exc:
            if "locked" not in str(exc) or time.monotonic() > ends_at:
                raise
        time.sleep(0.02)


def _line(file: Path) -> str:
    """Return what a file of one line says; empty if it is not there."""
    try:
        return file.read_text(encoding="utf-8").strip()
    except OSError:
        return ""


def _write(file: Path, text: str) -> None:
    """Write a file that nobody else may read, which is there whole or not at all."""
    handle, new = tempfile.mkstemp(prefix=f".{file.name}-", dir=file.parent)
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as opened:
            opened.write(text)
        Path(new).replace(file)
    finally:
        Path(new).unlink(missing_ok=True)


def _tables(connection: sqlite3.Connection) -> list[tuple[str, str]]:
    """Return the name of each table and view, and where its metadata is."""
    return [(name, location) for _, name, location in _rows(connection)]


def _rows(connection: sqlite3.Connection) -> list[tuple[str, str, str]]:
    """Return the catalog and the name of each table and view, and where its metadata is."""
    tables = "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'iceberg_tables'"
    if connection.execute(tables).fetchone() is None:
        # Neither Spark nor PyIceberg has been here.
        return []
    rows = connection.execute(
        "SELECT catalog_name, table_namespace, table_name, metadata_location FROM iceberg_tables "
        "ORDER BY 2, 3"
    ).fetchall()
    return [(str(of), f"{namespace}.{name}", str(location)) for of, namespace, name, location in rows]


def _is_same(one: Path, other: Path) -> bool:
    try:
        return one.samefile(other)
    except OSError:
        return False
