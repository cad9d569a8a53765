"""The folder ``.sparkevolve`` of a project: for its owner alone, and of use only where it was made."""

import contextlib
import os
import re
import sqlite3
from pathlib import Path

from dbt.adapters.sparkevolve.errors import MovedCatalogError

FOLDER = ".sparkevolve"
# The path at which the catalog was made: its tables are known by absolute paths.
_MARKER = "location"
_ROOT = re.compile(rf"file:(?://)?(/.*/{re.escape(FOLDER)})/warehouse/")
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
    made_in = marker.read_text(encoding="utf-8").strip() if marker.exists() else None
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
        make_file(marker)
        marker.write_text(f"{folder}\n", encoding="utf-8")


def _tables(connection: sqlite3.Connection) -> list[tuple[str, str]]:
    """Return the name of each table and view, and where its metadata is."""
    try:
        rows = connection.execute(
            "SELECT table_namespace, table_name, metadata_location FROM iceberg_tables ORDER BY 1, 2"
        ).fetchall()
    except sqlite3.OperationalError:
        # Neither Spark nor PyIceberg has been here.
        return []
    return [(f"{namespace}.{name}", str(location)) for namespace, name, location in rows]


def _is_same(one: Path, other: Path) -> bool:
    try:
        return one.samefile(other)
    except OSError:
        return False
