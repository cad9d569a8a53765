"""One process at a time downloads Spark's jars: two at once would write the same files."""

from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from dbt.adapters.events.logging import AdapterLogger

from dbt.adapters.sparkevolve.spark.java import user_home

logger = AdapterLogger("SparkEvolve")

# The setting of Spark that has it look for jars, and download those that are missing.
PACKAGES = "spark.jars.packages"
_IVY = "spark.jars.ivy"


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
            fcntl.flock(file, fcntl.LOCK_EX)
    except OSError as exc:
        # Such as a file system without locks.
        logger.debug(f"Jars are downloaded without a lock: {exc}")
        return False
    return True
