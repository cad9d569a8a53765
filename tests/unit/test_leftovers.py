"""Staged batches that are left over, with a real catalog: which go, and that none of them fails a run."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from dbt.adapters.events import logging
from pyiceberg.catalog import Catalog
from pyiceberg.exceptions import ForbiddenError

from dbt.adapters.sparkevolve.iceberg.catalog import IcebergCatalog
from dbt.adapters.sparkevolve.iceberg.staging import ABANDONED_AFTER_MS, HOST, OWNER_PROPERTY
from dbt.adapters.sparkevolve.impl import SparkEvolveAdapter
from dbt.adapters.sparkevolve.load import planning
from dbt.adapters.sparkevolve.load.planning import Node
from tests.unit.conftest import MakeTable
from tests.unit.helpers import columns, relation, written_at

TARGET, LEFT = relation("t"), relation("t__dbt_tmp_0123456789ab")
Warnings = list[str]


class Adapter(SparkEvolveAdapter):
    """The adapter without a profile, whose cache has everything that the catalog lists."""

    def __init__(self, catalog: IcebergCatalog) -> None:
        self.catalog = catalog
        self._nodes: dict[int, Node] = {}
        self.forgotten: list[Any] = []

    def list_relations(self, database: str | None, schema: str) -> Any:
        return [relation(name) for name in sorted(self.catalog.table_names(schema))]

    def cache_dropped(self, relation: Any) -> str:
        self.forgotten.append(relation.identifier)
        return ""


@pytest.fixture
def adapter(lake: IcebergCatalog) -> Adapter:
    return Adapter(lake)


@pytest.fixture
def warnings(monkeypatch: pytest.MonkeyPatch) -> Warnings:
    """What the adapter warns of."""
    found: Warnings = []
    monkeypatch.setattr(logging.AdapterLogger, "warning", lambda self, text: found.append(text))
    return found


@pytest.fixture
def leave(make_table: MakeTable) -> Callable[..., Path]:
    """Make a table, if there shall be one, and a batch of it that is left over; return the batch's folder."""

    def left(owner: str | None = None, *, with_target: bool = True, adapter: Adapter) -> Path:
        if owner is None:
            child = subprocess.Popen([sys.executable, "-c", ""])
            child.wait()
            owner = f"{HOST}:{child.pid}:{'0' * 32}"
        if with_target:
            make_table(columns("id int"), [{"id": 1}])
        make_table(
            columns("id int"), [{"id": 1}], name=str(LEFT.identifier), properties={OWNER_PROPERTY: owner}
        )
        return Path(adapter.catalog.load(LEFT).location().removeprefix("file://"))

    return left


def test_what_is_left_over_goes(adapter: Adapter, leave: Callable[..., Path], warnings: Warnings) -> None:
    folder = leave(adapter=adapter)
    adapter.drop_abandoned_staging(TARGET)
    assert adapter.catalog.table_names("db") == {"t"}
    assert [path for path in folder.rglob("*") if path.is_file()] == []
    assert (warnings, adapter.forgotten) == ([], [LEFT.identifier])


@pytest.mark.parametrize("gone", ["snap-*.avro", "*-m0.avro", "*.metadata.json"])
def test_what_has_lost_files_goes(
    adapter: Adapter, leave: Callable[..., Path], warnings: Warnings, gone: str
) -> None:
    for path in leave(adapter=adapter).rglob(gone):
        path.unlink()
    adapter.drop_abandoned_staging(TARGET)
    assert adapter.catalog.table_names("db") == {"t"}
    assert [text.split(" was dropped, ")[0] for text in warnings] == [str(LEFT)]
    assert adapter.forgotten == [LEFT.identifier]


def test_what_has_lost_its_metadata_stays_where_nothing_else_can_be_read(
    adapter: Adapter, leave: Callable[..., Path], warnings: Warnings
) -> None:
    """Then it may be this machine that does not see the files."""
    for path in leave(adapter=adapter, with_target=False).rglob("*.metadata.json"):
        path.unlink()
    adapter.drop_abandoned_staging(TARGET)
    assert adapter.catalog.table_names("db") == {LEFT.identifier}
    assert (warnings, adapter.forgotten) == ([], [])


def test_what_cannot_be_read_is_told_and_stays(
    adapter: Adapter, leave: Callable[..., Path], warnings: Warnings
) -> None:
    for path in leave(adapter=adapter).rglob("*.metadata.json"):
        path.write_text("{")
    adapter.drop_abandoned_staging(TARGET)
    assert adapter.catalog.table_names("db") == {"t", LEFT.identifier}
    (text,) = warnings
    assert text.startswith(f"Whether {LEFT} was left behind cannot be told: ")


def test_what_may_not_be_dropped_is_told_and_stays(
    adapter: Adapter, leave: Callable[..., Path], warnings: Warnings, monkeypatch: pytest.MonkeyPatch
) -> None:
    leave(adapter=adapter)

    def forbid(name: object) -> None:
        raise ForbiddenError("NotAuthorized: no")

    monkeypatch.setattr(adapter.catalog._catalog, "purge_table", forbid)
    monkeypatch.setattr(adapter.catalog._catalog, "drop_table", forbid)
    adapter.drop_abandoned_staging(TARGET)
    assert adapter.catalog.table_names("db") == {"t", LEFT.identifier}
    assert (warnings, adapter.forgotten) == (
        [f"The staged batch {LEFT} could not be removed: NotAuthorized: no"],
        [],
    )
    # A run's own batch, at its end.
    warnings.clear()
    adapter._node.staged.append(LEFT)
    adapter.post_model_hook(None, None)
    assert warnings == [f"The staged batch {LEFT} could not be removed: NotAuthorized: no"]


@pytest.mark.parametrize("with_target", [True, False])
def test_what_is_another_machine_s_goes_by_two_clocks(
    adapter: Adapter,
    other: Catalog,
    leave: Callable[..., Path],
    monkeypatch: pytest.MonkeyPatch,
    with_target: bool,
) -> None:
    leave(f"{HOST}0:{os.getpid()}:{'0' * 32}", with_target=with_target, adapter=adapter)
    written_ms = adapter.catalog.load(LEFT).metadata.last_updated_ms

    def is_there_at(own_ms: int) -> bool:
        monkeypatch.setattr(planning, "time", SimpleNamespace(time=lambda: own_ms / 1000))
        adapter.drop_abandoned_staging(TARGET)
        return LEFT.identifier in adapter.catalog.table_names("db")

    later_ms = written_ms + ABANDONED_AFTER_MS + 1000
    assert is_there_at(later_ms)
    if with_target:
        written_at(other.load_table("db.t"), written_ms + ABANDONED_AFTER_MS)
        assert is_there_at(later_ms)
        written_at(other.load_table("db.t"), written_ms + ABANDONED_AFTER_MS + 1)
        assert is_there_at(written_ms)
        assert not is_there_at(later_ms)
