"""Run dbt commands in a process whose main thread is at something when Ctrl-C is pressed.

Used as ``python -m tests.functional.interrupted_main [[POINT, COUNT, [ARGUMENT, …]], …]``. A point is
``publishing``, before a publication, or the regular expression of a statement, while that runs: when it is
come to for the COUNTth time. Prints as the last line JSON that has, for each command, the class of the
exception that it has ended with, whether it succeeded, and the texts of its errors.
"""

import json
import os
import re
import signal
import sys
import threading
from pathlib import Path
from typing import Any

from dbt.cli.main import dbtRunner
from dbt_common.events.base_types import EventMsg
from pyspark import SparkContext

from dbt.adapters.sparkevolve.iceberg.catalog import IcebergCatalog
from dbt.adapters.sparkevolve.impl import SparkEvolveAdapter

# A value that is NULL, and takes long while this property of Java's is set.
NAP = "sparkevolve.nap"
SLOW_NULL = (
    "nullif(reflect('java.lang.Thread', 'sleep', cast(reflect('java.lang.Long', 'getLong', "
    f"'{NAP}', 0L) as bigint)), 'null')"
)
_RUNS_FOR_SECONDS = 1.5


class Interrupt:
    """Presses Ctrl-C once, when the main thread of this process has come to a point."""

    def __init__(self) -> None:
        self._execute, self._publish = SparkEvolveAdapter.execute, IcebergCatalog.publish
        self._point, self._left = "", 0

    def begin(self, point: str, count: int) -> None:
        self._point, self._left = point, count

    def execute(self, adapter: Any, sql: str, *args: Any, **kwargs: Any) -> Any:
        text = " ".join(re.sub(r"/\*.*?\*/", "", sql, flags=re.DOTALL).split()).lower()
        if self._point and re.search(self._point, text) and self._is_there():
            threading.Timer(_RUNS_FOR_SECONDS, _press).start()
            _have_naps("600000")
        try:
            return self._execute(adapter, sql, *args, **kwargs)
        finally:
            _have_naps("0")

    def publish(self, catalog: Any, *args: Any, **kwargs: Any) -> Any:
        if self._point == "publishing" and self._is_there():
            _press()
            # Until the order has come, which goes by another thread.
            catalog.pause(60)
        return self._publish(catalog, *args, **kwargs)

    def _is_there(self) -> bool:
        self._left -= 1
        return self._left == 0


def _press() -> None:
    os.kill(os.getpid(), signal.SIGINT)


def _have_naps(milliseconds: str) -> None:
    if SparkContext._active_spark_context is not None:
        SparkContext._active_spark_context._jvm.java.lang.System.setProperty(NAP, milliseconds)


def main() -> None:
    interrupt = Interrupt()
    SparkEvolveAdapter.execute = lambda *args, **kwargs: interrupt.execute(*args, **kwargs)  # type: ignore
    IcebergCatalog.publish = lambda *args, **kwargs: interrupt.publish(*args, **kwargs)  # type: ignore
    folder = str(Path.cwd())
    answers = []
    for point, count, arguments in json.loads(sys.argv[1]):
        interrupt.begin(point, count)
        errors: list[str] = []

        def keep(event: EventMsg, errors: list[str] = errors) -> None:
            if str(event.info.level) == "error" and event.info.name != "MainStackTrace":
                errors.append(event.info.msg)

        result = dbtRunner(callbacks=[keep]).invoke(
            [*arguments, "--project-dir", folder, "--profiles-dir", folder]
        )
        kind = type(result.exception).__name__ if result.exception is not None else None
        answers.append([kind, result.success, "\n".join(errors)])
    print(json.dumps(answers))


if __name__ == "__main__":
    main()
