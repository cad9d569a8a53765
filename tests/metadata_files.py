"""Every metadata file that a test has written, read and checked.

A commit that one library makes and another cannot read leaves a table that is lost, and a test that reads
its tables back with the first library does not notice.
"""

import gzip
import json
import os
import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from tests.table_metadata import CLOCK_TOLERANCE_MS, Metadata, problems, problems_since

# A folder whose time of change is younger may change once more without its time changing.
_COARSEST_CLOCK_NS = 50_000_000
# The schemas of scenarios: nobody writes there after the test that has made it.
_SCENARIO = "case_"


class BadMetadataError(AssertionError):
    """A test has written metadata that Iceberg does not read, or that contradicts itself."""


class MetadataFiles:
    """The metadata files under a folder. Each is checked once, when it is seen first.

    Attributes:
        checked: how many have been checked.
    """

    def __init__(self, root: Path, refusal: Callable[[str, bool], str | None] | None = None) -> None:
        """Look at nothing yet.

        Args:
            root: the folder.
            refusal: returns why another reader refuses to read the file at a path, or None; it is told
                whether that is a view's.
        """
        self._root = str(root)
        self._refusal = refusal
        # By folder: when it had changed, its folders, and those of its files that are of interest.
        self._folders: dict[str, tuple[int, list[str], list[str]]] = {}
        self._seen: set[str] = set()
        self._metadata: dict[str, Metadata] = {}
        self.checked = 0

    def check(self, *, may_be_ahead: bool = False, tolerance_ms: int = 0) -> None:
        """Check the files that are new.

        Args:
            may_be_ahead: whether a writer whose clock is ahead has written them.
            tolerance_ms: how much older than the commit before it a commit may be. PyIceberg takes the time
                before another writer's commit and commits after it.

        Raises:
            BadMetadataError: what is wrong with which.
        """
        new = self._new()
        found = [
            f"{path}: {problem}"
            for path in new
            for problem in self._problems(path, may_be_ahead, tolerance_ms)
        ]
        if found:
            raise BadMetadataError("\n".join(found))

    def pass_over(self) -> None:
        """Take the files that are there for seen: others have written them."""
        self._new()

    def forget_scenarios(self) -> None:
        """Look no more at what is in the schemas of scenarios that have ended."""
        for folder, (changed, _, files) in self._folders.items():
            if os.path.basename(folder).startswith(_SCENARIO):
                self._folders[folder] = (changed, [], files)
        self._metadata.clear()

    def _new(self) -> list[str]:
        """Return the paths of the files that are new, the older versions of a table first."""
        new = [path for path in self._walk(self._root) if path not in self._seen]
        self._seen.update(new)
        return sorted(new, key=lambda path: (os.path.dirname(path), _version(path)))

    def _walk(self, root: str) -> Iterator[str]:
        waiting = [root]
        while waiting:
            folder = waiting.pop()
            try:
                changed = os.stat(folder).st_mtime_ns
            except FileNotFoundError:
                continue
            if self._folders.get(folder, (None,))[0] != changed:
                settled = time.time_ns() - changed > _COARSEST_CLOCK_NS
                self._folders[folder] = (changed if settled else 0, *_listed(folder))
                yield from self._folders[folder][2]
            waiting += self._folders[folder][1]

    def _problems(self, path: str, may_be_ahead: bool, tolerance_ms: int) -> list[str]:
        metadata = self._read(path)
        if metadata is None:
            # Purged meanwhile, or cut short when its process was killed: bad only if a later one names it.
            return []
        self.checked += 1
        is_view = "view-uuid" in metadata
        refusal = self._refusal(path, is_view) if self._refusal is not None else None
        found = [] if refusal is None else [f"Iceberg refuses to read it: {refusal}"]
        if is_view:
            return found
        found += problems(metadata, tolerance_ms)
        log = metadata.get("metadata-log", ())
        before_path = _local(log[-1]["metadata-file"]) if log else ""
        before = self._read(before_path)
        if before is not None:
            found += problems_since(before, metadata, tolerance_ms)
        elif os.path.exists(before_path):
            found.append(f"it was made from {before_path}, which cannot be read")
        return found if may_be_ahead else found + self._ahead_of_time(path, metadata, before)

    def _read(self, path: str) -> Metadata | None:
        """Return what is in a file; None if it is not there, or not whole."""
        if path not in self._metadata:
            try:
                raw = Path(path).read_bytes()
                self._metadata[path] = json.loads(gzip.decompress(raw) if ".gz" in path else raw)
            except (OSError, EOFError, ValueError):
                return None
        return self._metadata[path]

    def _ahead_of_time(self, path: str, metadata: Metadata, before: Metadata | None) -> list[str]:
        """Say so if a commit has set the table's time to the future: Iceberg refuses commits until then."""
        last = metadata["last-updated-ms"]
        try:
            ahead = last - os.stat(path).st_mtime_ns // 1_000_000
        except FileNotFoundError:
            return []
        if ahead <= CLOCK_TOLERANCE_MS or (before is not None and before["last-updated-ms"] >= last - 1000):
            return []
        return [f"last-updated-ms is {ahead} ms after the file was written"]


def _listed(folder: str) -> tuple[list[str], list[str]]:
    """Return the folders in a folder, data files' ones excepted, and the metadata files."""
    folders, files = [], []
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                folders.append(entry.path)
            elif re.search(r"\.metadata\.json(\.gz)?$", entry.name) and not entry.name.startswith("."):
                files.append(entry.path)
    if f"{folder}/metadata" in folders and f"{folder}/data" in folders:
        folders.remove(f"{folder}/data")
    return folders, files


def _version(path: str) -> int:
    match = re.match(r"v?(\d+)", os.path.basename(path))
    return int(match[1]) if match else 0


def _local(location: str) -> str:
    """Return the path of a `file:` URI, which PyIceberg and Java write differently."""
    return re.sub("^file:/*", "/", location)
