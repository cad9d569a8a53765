"""Spark's downloads of jars: what is said of them, and one process at a time for the same files."""

import re
import threading
import urllib.request
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import IO
from urllib.parse import urlsplit

from dbt.adapters.events.logging import AdapterLogger

from dbt.adapters.sparkevolve.interrupts import INTERRUPTS
from dbt.adapters.sparkevolve.redaction import clean
from dbt.adapters.sparkevolve.spark.jars import jar_folders
from dbt.adapters.sparkevolve.spark.java import user_home
from dbt.adapters.sparkevolve.terminal import STATUS_LINE, StatusLine, bar, size_text

logger = AdapterLogger("SparkEvolve")

# The setting of Spark that has it look for jars, and download those that are missing.
PACKAGES = "spark.jars.packages"
_IVY = "spark.jars.ivy"
# What Ivy 2.5 writes before a file, and once it is there.
_BEGINS = re.compile(r"^downloading (\S+) [.]{3}$")
_ENDS = re.compile(r"^\s*\[(?:SUCCESSFUL |FAILED {4,})\] ?.* \((\d+)ms\)$")
_LOOK_SECONDS = 0.25
# The server of the jars may be one that only Java can reach.
_ASK_SECONDS = 3


@contextmanager
def one_at_a_time(make: Callable[[], dict[str, str]]) -> Generator[dict[str, str], None, None]:
    """Give the settings to start Spark with; if it is to download jars, when no other process does.

    Args:
        make: returns the settings, by which jars are there. Called again after a wait, since another process
            may have downloaded them meanwhile.
    """
    config = make()
    file = _open(_lock_file(config)) if PACKAGES in config else None
    if file is None:
        yield config
        return
    # The system lets go of the lock when the file is closed, also if this process is killed.
    with file:
        yield make() if _lock(file) else config


def _lock_file(config: Mapping[str, str]) -> Path:
    """Return the file to lock, which has to be the same for all that download into the same folder."""
    ivy = config.get(_IVY)
    folder = Path(ivy) if ivy else user_home() / ".cache" / "dbt-sparkevolve"
    return folder / "dbt-sparkevolve-download.lock"


def _open(path: Path) -> IO[bytes] | None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        return path.open("ab")
    except OSError as exc:
        logger.debug(f"Jars are downloaded without a lock: {exc}")
        return None


def _lock(file: IO[bytes]) -> bool:
    """Lock a file, and tell whether that is done; wait for another process that has locked it."""
    try:
        import fcntl
    except ImportError:
        return False  # Windows
    try:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            logger.info("Another process is downloading Spark's jars: waiting for it")
            with INTERRUPTS.admitted():
                fcntl.flock(file, fcntl.LOCK_EX)
    except OSError as exc:
        # Such as a file system without locks.
        logger.debug(f"Jars are downloaded without a lock: {exc}")
        return False
    return True


class Downloads:
    """What is said of the jars that Spark's Ivy downloads: their size, and how far each is.

    Used around the start of Spark; ``watch`` gets the lines of Java.

    Args:
        config: the settings that Spark is started with.
        line: the terminal's.
    """

    def __init__(self, config: Mapping[str, str], line: StatusLine = STATUS_LINE) -> None:
        self._folders = [folder.parent for folder in jar_folders(Path(config.get(_IVY) or user_home()))]
        self._line = line
        self._current: _Download | None = None

    def __enter__(self) -> "Downloads":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end("")

    def watch(self, line: str) -> None:
        """Take note of a line of Java's output."""
        begins = _BEGINS.match(line)
        if begins:
            self._end("")
            self._current = _Download(begins[1], self._folders, self._line)
        ends = _ENDS.match(line)
        if ends and "[SUCCESSFUL" in line:
            self._end(f"{int(ends[1]) / 1000:.1f}")
        elif ends:
            self._end("")

    def _end(self, seconds: str) -> None:
        current, self._current = self._current, None
        if current is not None:
            current.end(seconds)


class _Download:
    """A file on its way."""

    def __init__(self, url: str, folders: list[Path], line: StatusLine) -> None:
        parts = urlsplit(url)
        self._name = parts.path.rpartition("/")[2]
        self._from = parts.hostname or "this machine"
        self._url = url
        self._folders = folders
        self._line = line
        self._ended = threading.Event()
        self._size = 0
        self._thread = threading.Thread(target=self._follow, name="sparkevolve-download", daemon=True)
        self._thread.start()

    def end(self, seconds: str) -> None:
        """Say that it is there; without a time, it is not."""
        self._ended.set()
        self._thread.join(_ASK_SECONDS + 1)
        if seconds:
            size = self._found("") or self._size
            logger.info(f"Downloaded {self._name}{f', {size_text(size)}' if size else ''}, in {seconds} s")

    def _follow(self) -> None:
        self._size = _size_at(self._url)
        size = f" ({size_text(self._size)})" if self._size else ""
        if not self._ended.is_set():
            logger.info(clean(f"Downloading {self._name}{size} from {self._from}"))
        is_shown = False
        while not self._ended.wait(_LOOK_SECONDS):
            if self._line.is_wanted:
                is_shown = True
                self._line.show(self._far(self._found(".part")))
        if is_shown:
            self._line.clear()

    def _far(self, done: int) -> str:
        if not self._size:
            return f"{self._name}  {size_text(done)}"
        return f"{self._name}  {bar(done, self._size)} {size_text(done)} of {size_text(self._size)}"

    def _found(self, suffix: str) -> int:
        """Return the size of the file in Ivy's cache; 0 if it is not there."""
        stem, _, kind = self._name.rpartition(".")
        for folder in self._folders:
            for path in (folder / "cache").glob(f"*/*/*/{stem}*.{kind}{suffix}"):
                try:
                    return path.stat().st_size
                except OSError:
                    continue
        return 0


def _size_at(url: str) -> int:
    """Return how many bytes a server says that a file has; 0 if it does not."""
    try:
        request = urllib.request.Request(url, method="HEAD")
        with urllib.request.urlopen(request, timeout=_ASK_SECONDS) as answer:
            return int(answer.headers.get("Content-Length") or 0)
    except Exception as exc:
        logger.debug(f"The size of a jar cannot be asked: {type(exc).__name__}")
        return 0
