"""Run dbt in a process that gets a signal, as by Ctrl-C, when each of its nodes has arrived at a step.

Used as ``python -m tests.functional.interrupted {"node": "step", …} SIGNAL ARGUMENTS``, where the signal is
``SIGINT``, ``SIGTERM``, or ``SIGINT+SIGINT`` for a second one before any node has cleaned up; prints as JSON
which exception dbt ended with, and the status and message of each node that has ended.
"""

import json
import os
import re
import signal
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from dbt.cli.main import dbtRunner
from dbt_common.events.base_types import EventMsg

from dbt.adapters.sparkevolve import clauses
from dbt.adapters.sparkevolve.iceberg import publication
from dbt.adapters.sparkevolve.iceberg.catalog import IcebergCatalog
from dbt.adapters.sparkevolve.impl import SparkEvolveAdapter
from dbt.adapters.sparkevolve.spark.connections import SparkEvolveConnectionManager

# While one of these statements runs; the name of the model's table begins where {} is.
RUNNING = {
    "staging": "create table `lake`.`[^`]+`.`{}__dbt_tmp_",
    "creating": "create (or replace )?table `lake`.`[^`]+`.`{}` ",
    "hook": "select '{}'",
}
# After one of these.
DONE = {
    "staged": RUNNING["staging"],
    "cut": "alter table `lake`.`[^`]+`.`{}` create (or replace )?branch",
    "deleted": "delete from `lake`.`[^`]+`.`{}`.`branch_",
    "inserted": "insert into `lake`.`[^`]+`.`{}`.`branch_",
    "filled": "insert into `lake`.`[^`]+`.`{}__dbt_tmp_",
}
# Before or after one of these methods of the catalog, or the commit of a publication.
CALLS = {
    "evolving": ("evolve", "before"),
    "publishing": ("publish", "before"),
    "committing": ("commit_in_time", "before"),
    "published": ("publish", "after"),
}
# A seed of more text is staged.
_SEED_CHARACTERS = 20
_STATEMENT_SECONDS = 2.0
_CANCEL_SECONDS = 60.0


class Interrupt:
    """Interrupts this process when all nodes have arrived, and lets them go on when dbt knows of it.

    After a second interrupt they do not go on: the process ends first.
    """

    def __init__(self, steps: dict[str, str], signals: str) -> None:
        self.steps = steps
        self._first, self._second = (*(signal.Signals[name] for name in signals.split("+")), None)[:2]
        self._arrived: set[str] = set()
        self._lock = threading.Lock()
        self._cancelled = threading.Event()

    def arrive(self, model: str, waits: bool = True) -> None:
        with self._lock:
            is_last = model not in self._arrived and self._arrived | {model} == set(self.steps)
            self._arrived.add(model)
        if is_last:
            os.kill(os.getpid(), self._first)
        if waits:
            self._cancelled.wait(_CANCEL_SECONDS if is_last and self._second is None else None)

    def watch_execute(self, real: Callable[..., Any]) -> Callable[..., Any]:
        def execute(adapter: Any, sql: str, *args: Any, **kwargs: Any) -> Any:
            for model, step in self.steps.items():
                if step in RUNNING and _is(RUNNING[step], model, sql):
                    threading.Timer(_STATEMENT_SECONDS, self.arrive, (model, False)).start()
            answer = real(adapter, sql, *args, **kwargs)
            for model, step in self.steps.items():
                if step in DONE and _is(DONE[step], model, sql):
                    self.arrive(model)
            return answer

        return execute

    def watch_call(self, name: str, real: Callable[..., Any]) -> Callable[..., Any]:
        def call(catalog: Any, what: Any, *args: Any, **kwargs: Any) -> Any:
            model = what.name()[-1] if name == "commit_in_time" else what.identifier
            step = CALLS.get(self.steps.get(model, ""))
            if step == (name, "before"):
                self.arrive(model)
            answer = real(catalog, what, *args, **kwargs)
            if step == (name, "after"):
                self.arrive(model)
            return answer

        return call

    def watch_cancel(self, real: Callable[..., Any]) -> Callable[..., Any]:
        def cancel_open(manager: Any) -> Any:
            answer = real(manager)
            if self._second is not None:
                os.kill(os.getpid(), self._second)
            else:
                self._cancelled.set()
            return answer

        return cancel_open


def _is(pattern: str, model: str, sql: str) -> bool:
    text = " ".join(re.sub(r"/\*.*?\*/", "", sql, flags=re.DOTALL).split()).lower() + " "
    return re.match(pattern.format(model), text) is not None


def _patch(owner: Any, name: str, watch: Callable[..., Any]) -> None:
    setattr(owner, name, watch(getattr(owner, name)))


def main() -> None:
    interrupt = Interrupt(json.loads(sys.argv[1]), sys.argv[2])
    clauses.SEED_CHARACTERS = _SEED_CHARACTERS
    _patch(SparkEvolveAdapter, "execute", interrupt.watch_execute)
    _patch(SparkEvolveAdapter, "add_query", interrupt.watch_execute)
    _patch(SparkEvolveConnectionManager, "cancel_open", interrupt.watch_cancel)
    for name in {name for name, _ in CALLS.values()}:
        owner = publication if name == "commit_in_time" else IcebergCatalog
        _patch(owner, name, lambda real, name=name: interrupt.watch_call(name, real))
    nodes: dict[str, tuple[str, str]] = {}

    def keep(event: EventMsg) -> None:
        if event.info.name == "NodeFinished":
            result = event.data.run_result
            nodes[event.data.node_info.node_name] = (str(event.data.node_info.node_status), result.message)

    folder = str(Path.cwd())
    result = dbtRunner(callbacks=[keep]).invoke(
        [*sys.argv[3:], "--project-dir", folder, "--profiles-dir", folder]
    )
    print(json.dumps({"exception": type(result.exception).__name__, "nodes": nodes}))


if __name__ == "__main__":
    main()
