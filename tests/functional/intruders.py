"""Other writers, who come between the steps of a run; and what a run left behind."""

import re
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.exceptions import CommitFailedException

from tests.functional.harness import Run, Scenario

Intrude = Callable[..., list[None]]


def append(scenario: Scenario, rows: list[dict[str, Any]], name: str = "t") -> None:
    """Append rows as another writer, with PyIceberg, which meets other writers too."""
    while True:
        table = scenario.table(name)
        try:
            table.append(pa.Table.from_pylist(rows, schema=table.schema().as_arrow()))
        except (CommitFailedException, ValueError) as exc:
            if isinstance(exc, ValueError) and "sequence number" not in str(exc):
                raise
        else:
            return


def staged(run: Run) -> int:
    """How often a batch was staged."""
    return len(re.findall(r"^\s*create table `lake`.`\w+`.`\w+__dbt_tmp_", run.log, re.MULTILINE))


def cut(run: Run) -> int:
    """How often a branch was cut, each time to load the batch."""
    return len(re.findall(r"CREATE (?:OR REPLACE )?BRANCH `sparkevolve_", run.log))


def is_clean(scenario: Scenario, *names: str) -> bool:
    """Whether nothing but the tables of these models is there, and no branch but ``main``."""
    names = names or ("t",)
    refs = {ref for name in names for ref in scenario.table(name).metadata.refs}
    return scenario.tables() == sorted(names) and refs <= {"main"}


@pytest.fixture
def intrude(monkeypatch: pytest.MonkeyPatch) -> Intrude:
    """Let something happen right before, or after, calls of a method: no mock, the real one runs too."""

    def prepare(owner: type, method: str, action: Callable[[], Any], *args: Any, **how: Any) -> list[None]:
        return intrude_with(monkeypatch, owner, method, action, *args, **how)

    return prepare


def intrude_with(
    patch: pytest.MonkeyPatch,
    owner: type,
    method: str,
    action: Callable[[], Any],
    times: int = 1,
    *,
    after: bool = False,
    sql: str = "",
) -> list[None]:
    """Do what `intrude` does, for as long as a patch lasts."""
    real = getattr(owner, method)
    happened: list[None] = []

    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        wanted = len(happened) < times and (not sql or str(args[0]).strip().startswith(sql))
        if wanted:
            happened.append(None)
        if wanted and not after:
            action()
        answer = real(self, *args, **kwargs)
        if wanted and after:
            action()
        return answer

    patch.setattr(owner, method, call)
    return happened
