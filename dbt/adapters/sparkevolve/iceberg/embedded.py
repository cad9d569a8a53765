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
    with contextlib.suppress(OSError):
        return (folder / _OWNER).read_text(encoding="utf-8").strip()
    database = folder / "catalog.db"
    if not database.exists():
        return ""
    with contextlib.closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True)) as connection:
        rows = _rows(connection)
    found = {name for name, _, location in rows if re.search(_PLAIN, location)}
    return found.pop() if len(found) == 1 else ""


def note_owner(folder: Path, name: str) -> bool:
    """Note that a catalog's tables lie directly in the warehouse; tell whether no other one's do."""
    with contextlib.suppress(FileExistsError):
        handle = os.open(folder / _OWNER, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(f"{name}\n")
    return _owner(folder) == name


def _tables(connection: sqlite3.Connection) -> list[tuple[str, str]]:
    """Return the name of each table and view, and where its metadata is."""
    return [(name, location) for _, name, location in _rows(connection)]


def _rows(connection: sqlite3.Connection) -> list[tuple[str, str, str]]:
    """Return the catalog and the name of each table and view, and where its metadata is."""
    try:
        rows = connection.execute(
            "SELECT catalog_name, table_namespace, table_name, metadata_location FROM iceberg_tables "
            "ORDER BY 2, 3"
        ).fetchall()
    except sqlite3.OperationalError:
        # Neither Spark nor PyIceberg has been here.
        return []
    return [(str(of), f"{namespace}.{name}", str(location)) for of, namespace, name, location in rows]


def _is_same(one: Path, other: Path) -> bool:
    try:
        return one.samefile(other)
    except OSError:
        return False
