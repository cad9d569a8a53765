"""A process of its own that runs dbt on command, and that dies where a test wants it to."""

import os
import re
import signal
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from multiprocessing import get_context
from multiprocessing.connection import Connection
from types import TracebackType
from typing import Any

from tests.functional.harness import Run, Scenario

# Statements after which a process may be stopped; the name of the model's table, or of its staged batch,
# begins where {} is.
_STATEMENTS = {
    "staged": "create table `lake`.`[^`]+`.`{}__dbt_tmp_",
    "cut": "alter table `lake`.`[^`]+`.`{}` create (or replace )?branch",
    "deleted": "delete from `lake`.`[^`]+`.`{}`.`branch_",
    "inserted": "insert into `lake`.`[^`]+`.`{}`.`branch_",
    "merged": "merge into `lake`.`[^`]+`.`{}`.`branch_",
    "overwritten": "insert overwrite `lake`.`[^`]+`.`{}`.`branch_",
    "letters written": "insert into `lake`.`[^`]+`.`{}_dlt`.`branch_",
}
# Methods of the catalog before or after which it may be stopped.
_CALLS = {
    "evolved": ("evolve", "after"),
    "publishing": ("publish", "before"),
    "published": ("publish", "after"),
}
# The same of a model's dead letters.
_LETTERS = {"letters published": ("publish", "after")}
STEPS = (*_STATEMENTS, *_CALLS, *_LETTERS)
_LONGEST_SECONDS = 300.0


@dataclass(frozen=True)
class Command:
    """What a worker is to run.

    Attributes:
        project: the folder of the dbt project.
        arguments: of each dbt command, one after the other.
        stops: the step, one of ``STEPS``, at which each of these models stops; as soon as each has arrived
            at its step, the process is killed.
        lose_spark_before: the step before which the Spark session of this process is killed.
    """

    project: str
    arguments: Sequence[Sequence[str]]
    stops: Mapping[str, str] = field(default_factory=dict)
    lose_spark_before: str | None = None


@dataclass(frozen=True)
class Outcome:
    """What became of one dbt command: whether it succeeded, and the message of the first failure."""

    success: bool
    message: str


class Worker:
    """A process that runs dbt; used as a context manager. Its Spark session, if it has one, stays."""

    def __init__(self) -> None:
        context = get_context("spawn")
        self._connection, other = context.Pipe()
        self._process = context.Process(target=_serve, args=(other,), daemon=True)
        self._process.start()
        other.close()

    def __enter__(self) -> "Worker":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the process."""
        self._connection.close()
        self._process.join(10)
        if self._process.is_alive():
            self._process.kill()
            self._process.join()

    def start(self, scenario: Scenario, *arguments: Sequence[str], **how: Any) -> None:
        """Begin to run dbt commands."""
        self._connection.send(Command(str(scenario.folder), arguments, **how))

    def wait(self) -> list[Outcome]:
        """Return what became of the commands, when all have ended."""
        assert self._connection.poll(_LONGEST_SECONDS), "the process does not answer"
        outcomes: list[Outcome] = self._connection.recv()
        return outcomes

    def run(self, scenario: Scenario, *arguments: Sequence[str], **how: Any) -> list[Outcome]:
        """Run dbt commands."""
        self.start(scenario, *arguments, **how)
        return self.wait()

    def kill_after(self, seconds: float) -> bool:
        """Kill the process after a time; return whether its commands had ended by then, and it lives."""
        if self._connection.poll(seconds):
            self.wait()
            return True
        self._process.kill()
        self._process.join()
        self._connection.close()
        return False

    def run_until_killed(self, scenario: Scenario, stops: Mapping[str, str]) -> None:
        """Run all models at once until each is at its step, and the process is killed."""
        self.run_until_killed_in(scenario, ("run", "--threads", str(len(stops)), "-s", *stops), stops)

    def run_until_killed_in(
        self, scenario: Scenario, arguments: Sequence[str], stops: Mapping[str, str]
    ) -> None:
        """Run a dbt command until each of these tables is at its step, and the process is killed."""
        self.start(scenario, arguments, stops=stops)
        self._process.join(_LONGEST_SECONDS)
        assert self._process.exitcode == -signal.SIGKILL, self._process.exitcode


def _serve(connection: Connection) -> None:
    while True:
        try:
            command: Command = connection.recv()
        except EOFError:
            return
        if command.stops or command.lose_spark_before:
            _prepare_stops(command)
        connection.send([_run(command.project, arguments) for arguments in command.arguments])


def _run(project: str, arguments: Sequence[str]) -> Outcome:
    from dbt.cli.main import dbtRunner

    own = ("--target-path", "target_of_worker", "--log-path", "logs_of_worker")
    os.chdir(project)
    result = dbtRunner().invoke([*arguments, "--project-dir", project, "--profiles-dir", project, *own])
    return Outcome(result.success, Run(result, "").message)


def _prepare_stops(command: Command) -> None:
    from dbt.adapters.sparkevolve.iceberg.catalog import IcebergCatalog
    from dbt.adapters.sparkevolve.impl import SparkEvolveAdapter

    arrived: set[str] = set()
    lock = threading.Lock()

    def arrive(model: str) -> None:
        with lock:
            arrived.add(model)
            if arrived == set(command.stops):
                os.kill(os.getpid(), signal.SIGKILL)
        time.sleep(_LONGEST_SECONDS)

    def wrap(name: str) -> None:
        real = getattr(IcebergCatalog, name)

        def call(self: IcebergCatalog, relation: Any, *args: Any, **kwargs: Any) -> Any:
            model = relation.identifier.removesuffix("_dlt")
            calls = _CALLS if model == relation.identifier else _LETTERS
            step = calls.get(command.stops.get(model, ""))
            if step == (name, "before"):
                arrive(model)
            answer = real(self, relation, *args, **kwargs)
            if step == (name, "after"):
                arrive(model)
            return answer

        setattr(IcebergCatalog, name, call)

    for name in {name for name, _ in _CALLS.values()}:
        wrap(name)
    execute = SparkEvolveAdapter.execute

    def execute_and_stop(self: SparkEvolveAdapter, sql: str, *args: Any, **kwargs: Any) -> Any:
        if command.lose_spark_before and _is(command.lose_spark_before, "[^`]+", sql):
            _kill_spark()
        answer = execute(self, sql, *args, **kwargs)
        for model, step in command.stops.items():
            if step in _STATEMENTS and _is(step, model, sql):
                arrive(model)
        return answer

    SparkEvolveAdapter.execute = execute_and_stop  # type: ignore[method-assign]


def _is(step: str, model: str, sql: str) -> bool:
    text = " ".join(re.sub(r"/\*.*?\*/", "", sql, flags=re.DOTALL).split()).lower()
    return re.match(_STATEMENTS[step].format(model), text) is not None


def _kill_spark() -> None:
    from pyspark import SparkContext

    gateway: Any = SparkContext._gateway
    os.kill(gateway.proc.pid, signal.SIGKILL)
    gateway.proc.wait()
