"""Staged batches that are left over, with a real catalog: which go, and that none of them fails a run."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pyiceberg.catalog import Catalog
from pyiceberg.exceptions import ForbiddenError

from dbt.adapters.sparkevolve.evolution.column_properties import METRICS_PREFIX
from dbt.adapters.sparkevolve.iceberg.catalog import IcebergCatalog
from dbt.adapters.sparkevolve.iceberg.staging import (
    ABANDONED_AFTER_MS,
    HOST,
    OWNER_PROPERTY,
    REPLACED_BY,
    token_of,
)
from dbt.adapters.sparkevolve.load import batches, gone_metrics
from dbt.adapters.sparkevolve.load.batches import Batches, end_replacement
from dbt.adapters.sparkevolve.load.node import Node
from tests.unit.conftest import MakeTable
from tests.unit.helpers import columns, relation, written_at

TARGET, LEFT = relation("t"), relation("t__dbt_tmp_0123456789ab")
Warnings = list[str]


class Leftovers:
    """What removes batches, with a cache that has everything that the catalog lists."""

    def __init__(self, catalog: IcebergCatalog) -> None:
        self.catalog = catalog
        self.node = Node()
        self.batches = Batches(catalog, self, self.node)
        self.forgotten: list[Any] = []

    def list_relations(self, database: str | None, schema: str) -> Any:
        return [relation(name) for name in sorted(self.catalog.table_names(schema))]

    def cache_dropped(self, relation: Any) -> str:
        self.forgotten.append(relation.identifier)
        return ""


@pytest.fixture
def leftovers(lake: IcebergCatalog) -> Leftovers:
    return Leftovers(lake)


@pytest.fixture
def warnings(monkeypatch: pytest.MonkeyPatch) -> Warnings:
    """What the adapter warns of."""
    found: Warnings = []
    monkeypatch.setattr(batches, "warn_of_rest", found.append)
    return found


@pytest.fixture
def leave(make_table: MakeTable) -> Callable[..., Path]:
    """Make a table, if there shall be one, and a batch of it that is left over; return the batch's folder."""

    def left(owner: str | None = None, *, with_target: bool = True, leftovers: Leftovers) -> Path:
        if owner is None:
            child = subprocess.Popen([sys.executable, "-c", ""])
            child.wait()
            owner = f"{HOST}:{child.pid}:{'0' * 32}"
        if with_target:
            make_table(columns("id int"), [{"id": 1}])
        make_table(
            columns("id int"), [{"id": 1}], name=str(LEFT.identifier), properties={OWNER_PROPERTY: owner}
        )
        return Path(leftovers.catalog.load(LEFT).location().removeprefix("file://"))

    return left


def test_what_is_left_over_goes(leftovers: Leftovers, leave: Callable[..., Path], warnings: Warnings) -> None:
    folder = leave(leftovers=leftovers)
    leftovers.batches.remove_abandoned(TARGET)
    assert leftovers.catalog.table_names("db") == {"t"}
    assert [path for path in folder.rglob("*") if path.is_file()] == []
    assert (warnings, leftovers.forgotten) == ([], [LEFT.identifier])


@pytest.mark.parametrize("gone", ["snap-*.avro", "*-m0.avro", "*.metadata.json"])
def test_what_has_lost_files_goes(
    leftovers: Leftovers, leave: Callable[..., Path], warnings: Warnings, gone: str
) -> None:
    for path in leave(leftovers=leftovers).rglob(gone):
        path.unlink()
    leftovers.batches.remove_abandoned(TARGET)
    assert leftovers.catalog.table_names("db") == {"t"}
    assert [text.split(" was dropped, ")[0] for text in warnings] == [str(LEFT)]
    assert leftovers.forgotten == [LEFT.identifier]


def test_what_has_lost_its_metadata_stays_where_nothing_else_can_be_read(
    leftovers: Leftovers, leave: Callable[..., Path], warnings: Warnings
) -> None:
    """Then it may be this machine that does not see the files."""
    for path in leave(leftovers=leftovers, with_target=False).rglob("*.metadata.json"):
        path.unlink()
    leftovers.batches.remove_abandoned(TARGET)
    assert leftovers.catalog.table_names("db") == {LEFT.identifier}
    assert (warnings, leftovers.forgotten) == ([], [])


def test_what_cannot_be_read_is_told_and_stays(
    leftovers: Leftovers, leave: Callable[..., Path], warnings: Warnings
) -> None:
    for path in leave(leftovers=leftovers).rglob("*.metadata.json"):
        path.write_text("{")
    leftovers.batches.remove_abandoned(TARGET)
    assert leftovers.catalog.table_names("db") == {"t", LEFT.identifier}
    (text,) = warnings
    assert text.startswith(f"Whether {LEFT} was left behind cannot be told: ")


def test_what_may_not_be_dropped_is_told_and_stays(
    leftovers: Leftovers, leave: Callable[..., Path], warnings: Warnings, monkeypatch: pytest.MonkeyPatch
) -> None:
    leave(leftovers=leftovers)

    def forbid(name: object) -> None:
        raise ForbiddenError("NotAuthorized: no")

    monkeypatch.setattr(leftovers.catalog.access.opened, "purge_table", forbid)
    monkeypatch.setattr(leftovers.catalog.access.opened, "drop_table", forbid)
    leftovers.batches.remove_abandoned(TARGET)
    assert leftovers.catalog.table_names("db") == {"t", LEFT.identifier}
    where = leftovers.catalog.access.settings.where
    forbidden = (
        f"{LEFT} could not be removed: the Iceberg catalog `lake` at {where} has "
        "answered with an error: NotAuthorized: no. The log of its server tells more; run again when that is "
        "mended."
    )
    assert (warnings, leftovers.forgotten) == (
        [forbidden],
        [],
    )
    # A run's own batch, at its end.
    warnings.clear()
    leftovers.node.staged.append(LEFT)
    leftovers.batches.give_back()
    assert warnings == [forbidden]


@pytest.mark.parametrize("with_target", [True, False])
def test_what_is_another_machine_s_goes_by_two_clocks(
    leftovers: Leftovers,
    other: Catalog,
    leave: Callable[..., Path],
    monkeypatch: pytest.MonkeyPatch,
    with_target: bool,
) -> None:
    leave(f"{HOST}0:{os.getpid()}:{'0' * 32}", with_target=with_target, leftovers=leftovers)
    written_ms = leftovers.catalog.load(LEFT).metadata.last_updated_ms

    def is_there_at(own_ms: int) -> bool:
        monkeypatch.setattr(batches, "time", SimpleNamespace(time=lambda: own_ms / 1000))
        leftovers.batches.remove_abandoned(TARGET)
        return LEFT.identifier in leftovers.catalog.table_names("db")

    later_ms = written_ms + ABANDONED_AFTER_MS + 1000
    assert is_there_at(later_ms)
    if with_target:
        written_at(other.load_table("db.t"), written_ms + ABANDONED_AFTER_MS)
        assert is_there_at(later_ms)
        written_at(other.load_table("db.t"), written_ms + ABANDONED_AFTER_MS + 1)
        assert is_there_at(written_ms)
        assert not is_there_at(later_ms)


def test_a_table_says_by_which_batch_it_is_replaced_while_it_is(
    leftovers: Leftovers, leave: Callable[..., Path]
) -> None:
    leave("elsewhere:1:0", leftovers=leftovers)
    leftovers.node.staged.append(LEFT)
    leftovers.batches.begin_replacement(TARGET, LEFT)
    assert leftovers.catalog.load(TARGET).properties[REPLACED_BY] == token_of(LEFT)
    leftovers.batches.give_back()
    assert leftovers.catalog.table_names("db") == {"t"}
    assert REPLACED_BY not in leftovers.catalog.load(TARGET).properties


def test_whoever_comes_next_takes_the_batch_of_a_replacement_away(
    leftovers: Leftovers, leave: Callable[..., Path], make_table: MakeTable
) -> None:
    folder = leave("elsewhere:1:0", leftovers=leftovers)
    catalog = leftovers.catalog
    leftovers.batches.begin_replacement(TARGET, LEFT)
    end_replacement(catalog, TARGET, catalog.load(TARGET))
    assert catalog.table_names("db") == {"t"}
    assert [path for path in folder.rglob("*") if path.is_file()] == []
    assert REPLACED_BY not in catalog.load(TARGET).properties
    # The same by another replacement.
    make_table(columns("id int"), [{"id": 1}], name=str(LEFT.identifier))
    other = relation("t__dbt_tmp_ba9876543210")
    leftovers.batches.begin_replacement(TARGET, LEFT)
    leftovers.batches.begin_replacement(TARGET, other)
    assert catalog.table_names("db") == {"t"}
    assert catalog.load(TARGET).properties[REPLACED_BY] == token_of(other)


def test_what_is_set_for_columns_that_a_replacement_has_taken_away_goes(
    leftovers: Leftovers, make_table: MakeTable, monkeypatch: pytest.MonkeyPatch, warnings: Warnings
) -> None:
    """Iceberg's Java library changes no property of a table with metrics for a column that it lacks."""
    catalog, kept, gone = leftovers.catalog, METRICS_PREFIX + "id", METRICS_PREFIX + "gone"

    def left() -> list[str]:
        return [name for name in catalog.load(TARGET).properties if name.startswith(METRICS_PREFIX)]

    make_table(columns("id int"), [{"id": 1}], properties={kept: "full", gone: "full"})
    replaced = catalog.load(TARGET)
    # The run that has replaced it was killed then.
    leftovers.batches.begin_replacement(TARGET, LEFT)
    end_replacement(catalog, TARGET, catalog.load(TARGET))
    assert left() == [kept]
    # The model sets it, or the table has had it.
    for before, configured in ((catalog.load(TARGET), {gone: "full"}), (replaced, {})):
        catalog.set_properties(TARGET, {gone: "full"}, 0)
        gone_metrics.unset(catalog, TARGET, None, configured)
        assert left() == [kept, gone]
        gone_metrics.unset(catalog, TARGET, before, configured)
        assert left() == [kept]
    monkeypatch.setattr(gone_metrics, "warn_of_rest", warnings.append)

    def refuse(*args: Any) -> None:
        raise ForbiddenError("not yours.")

    monkeypatch.setattr(catalog, "change_properties", refuse)
    gone_metrics.unset(catalog, TARGET, replaced, {})
    assert warnings == [
        "What `lake`.`db`.`t` has as `write.metadata.metrics.column.…` for columns that it has no more could "
        "not be removed: not yours. Until it is, Spark changes no property of the table."
    ]


def test_a_node_knows_whether_its_batch_was_taken_away(
    leftovers: Leftovers, leave: Callable[..., Path]
) -> None:
    leave("elsewhere:1:0", leftovers=leftovers)
    leftovers.batches.note_loss()
    assert not leftovers.node.is_batch_lost
    leftovers.batches.begin_replacement(TARGET, LEFT)
    leftovers.batches.note_loss()
    assert not leftovers.node.is_batch_lost
    end_replacement(leftovers.catalog, TARGET, leftovers.catalog.load(TARGET))
    leftovers.node.rows_are_visible(TARGET)
    leftovers.batches.note_loss()
    assert not leftovers.node.is_batch_lost
    leftovers.node.outcome = None
    leftovers.batches.note_loss()
    assert leftovers.node.is_batch_lost


def test_a_table_that_pyiceberg_cannot_read_is_replaced_without_a_note(
    leftovers: Leftovers, leave: Callable[..., Path]
) -> None:
    leave("elsewhere:1:0", leftovers=leftovers)
    metadata = Path(leftovers.catalog.load(TARGET).metadata_location.removeprefix("file://"))
    readable = metadata.read_text()
    metadata.write_text(readable.replace('"type":"int"', '"type":7'))
    assert leftovers.catalog.find_readable(TARGET) is None
    leftovers.batches.begin_replacement(TARGET, LEFT)
    leftovers.node.staged.append(LEFT)
    leftovers.batches.give_back()
    assert leftovers.catalog.table_names("db") == {"t"}
    metadata.write_text(readable)
    assert REPLACED_BY not in leftovers.catalog.load(TARGET).properties


def test_no_table_is_removed_since_a_property_names_it(
    leftovers: Leftovers, leave: Callable[..., Path], make_table: MakeTable
) -> None:
    leave("elsewhere:1:0", leftovers=leftovers)
    make_table(columns("id int"), [{"id": 1}], name="u")
    for token in ("u", "t", "u__dbt_tmp_0123456789ab", "0123456789AB", ""):
        leftovers.catalog.set_properties(TARGET, {REPLACED_BY: token}, 0)
        end_replacement(leftovers.catalog, TARGET, leftovers.catalog.load(TARGET))
        assert leftovers.catalog.table_names("db") == {"t", "u", str(LEFT.identifier)}
        assert REPLACED_BY not in leftovers.catalog.load(TARGET).properties


def test_a_batch_that_cannot_be_taken_away_is_told_and_stays_noted(
    leftovers: Leftovers, leave: Callable[..., Path], warnings: Warnings, monkeypatch: pytest.MonkeyPatch
) -> None:
    leave("elsewhere:1:0", leftovers=leftovers)
    leftovers.batches.begin_replacement(TARGET, LEFT)

    def refuse(*args: Any) -> None:
        raise ForbiddenError("not yours.")

    monkeypatch.setattr(leftovers.catalog, "purge", refuse)
    end_replacement(leftovers.catalog, TARGET, leftovers.catalog.load(TARGET))
    assert warnings == [
        f"{LEFT} could not be removed: not yours. If a server still runs the full refresh that reads it, "
        "that replaces the rows of `lake`.`db`.`t` when it ends: stop it there."
    ]
    assert leftovers.catalog.load(TARGET).properties[REPLACED_BY] == token_of(LEFT)
