"""What Spark's Java writes by itself: it goes to dbt's log file, and is shown where Spark does not start."""

import atexit
import os
import re
import threading
from collections import deque
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from dbt.adapters.events.logging import AdapterLogger

from dbt.adapters.sparkevolve.redaction import clean

logger = AdapterLogger("SparkEvolve")

_KEPT_LINES = 300
_SHOWN_LINES = 15
# What the Java of each start writes, whatever comes of it.
_ROUTINE = re.compile(
    "^(?:WARNING: (?:Using incubator|package sun|A terminally|sun[.]misc|Please consider)"
    "|Using Spark's default|Setting (?:default|Spark) log level|To adjust logging level"
    "|:: loading settings|Ivy Default Cache|The jars for the packages|NOTE: Picked up|Picked up )"
)
_UNCAUGHT = re.compile('^Exception in thread "[^"]*" ')
_CONFIGURATIONS = ("log4j2.properties", "log4j2.xml", "log4j2.yaml", "log4j2.json", "log4j.properties")


def is_users_own(config: Mapping[str, str], spark_home: str) -> bool:
    """Tell whether a user has said what Spark is to log: then it goes where Spark writes it, to stderr.

    Args:
        config: the session's settings.
        spark_home: the folder of Spark.
    """
    if config.get("spark.log.level", "ERROR").strip().upper() not in ("ERROR", "FATAL", "OFF"):
        return True
    if any("log4j" in value for name, value in config.items() if name.endswith("JavaOptions")):
        return True
    folder = Path(os.environ.get("SPARK_CONF_DIR") or Path(spark_home) / "conf")
    return any((folder / name).exists() for name in _CONFIGURATIONS)


class JavaOutput:
    """A pipe in place of stdout and stderr of a Java process.

    Args:
        watch: gets each line, from another thread; for those about downloads.
    """

    def __init__(self, watch: Callable[[str], None] = lambda line: None) -> None:
        self._watch = watch
        self._lines: deque[str] = deque(maxlen=_KEPT_LINES)
        self._reading, self._writing = os.pipe()
        # Python must not end while this thread holds what a log is written with.
        self._ends = threading.Event()
        atexit.register(self._ends.set)
        self._thread = threading.Thread(target=self._read, name="sparkevolve-java", daemon=True)

    @property
    def popen(self) -> dict[str, Any]:
        """What ``Popen`` is to be called with."""
        return {"stdout": self._writing, "stderr": self._writing}

    def begin(self) -> None:
        """Begin to read: before the process starts, since it would wait for a reader of many lines."""
        self._thread.start()

    def started(self) -> None:
        """Leave the pipe to the process, which has been started or could not be."""
        os.close(self._writing)

    def last_words(self) -> str:
        """Return why a process has ended, as far as its own last lines say so."""
        self._thread.join(5)
        return why_ended(list(self._lines))

    def _read(self) -> None:
        with os.fdopen(self._reading, encoding="utf-8", errors="replace") as pipe:
            for line in pipe:
                text = line.rstrip()
                self._lines.append(text)
                try:
                    self._watch(text)
                    if text and not self._ends.is_set():
                        logger.debug(clean(text))
                except Exception:
                    # dbt may be ending; Java must be able to write all the same.
                    continue


def why_ended(lines: list[str]) -> str:
    """Return the part of the last lines of a Java process that tells why it has ended."""
    found = [line for line in lines if line.strip() and not _ROUTINE.match(line)]
    for number, line in enumerate(found):
        if _UNCAUGHT.match(line):
            return clean("\n".join([_UNCAUGHT.sub("", line), *found[number + 1 :]]))
    return clean("\n".join(found[-_SHOWN_LINES:]))
