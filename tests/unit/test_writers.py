"""Several writers of a real table in any order, without Java; see also the functional test of this name."""

from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import run_state_machine_as_test
from pyiceberg.catalog import Catalog
from pyiceberg.expressions import In
from pyiceberg.schema import Schema
from pyiceberg.types import IntegerType, LongType, NestedField

from dbt.adapters.sparkevolve.iceberg import retry
from dbt.adapters.sparkevolve.iceberg.catalog import IcebergCatalog
from dbt.adapters.sparkevolve.iceberg.publication import Published
from dbt.adapters.sparkevolve.load.load import Load
from dbt.adapters.sparkevolve.relation import table_identifier
from tests.metadata_files import MetadataFiles
from tests.unit.helpers import append
from tests.writers import Run, Writers

HOUR_MS = 3_600_000


class PlainWriters(Writers):
    """PyIceberg stages and loads, as Spark does in the real flow."""

    def stage(self, run: Run) -> None:
        """Make the staged batch."""
        type_ = LongType() if run.wide else IntegerType()
        columns = [(1, "id", IntegerType()), *((n, name, type_) for n, name in enumerate(run.returned, 2))]
        fields = [NestedField(n, name, column, required=False) for n, name, column in columns]
        table = self.other.create_table(table_identifier(run.staged), Schema(*fields))
        append(table, [{"id": key, **row} for key, row in run.rows.items()])

    def cut_and_load(self, run: Run, load: Load) -> None:
        """Delete the rows of the batch's keys on a branch, and append the batch."""
        assert run.base.cut_at is not None
        assert load.branch is not None
        with self.plain.opened() as table:
            table.manage_snapshots().create_branch(
                run.base.cut_at, load.branch, max_ref_age_ms=HOUR_MS
            ).commit()
        self.lake.check_columns(self.target, run.base, load.plan.refreshed)
        with self.plain.opened() as table:
            table.delete(In("id", set(run.rows)), branch=load.branch)
        with self.plain.opened() as table:
            append(table, [{"id": key, **row} for key, row in run.rows.items()], load.branch)
        with self.plain.opened() as table:
            head = table.metadata.refs[load.branch].snapshot_id
            table.manage_snapshots().create_branch(head, load.branch, max_ref_age_ms=HOUR_MS).commit()


def test_writers_in_any_order(
    lake: IcebergCatalog, other: Catalog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retry, "FIRST_WAIT_SECONDS", 0.001)
    files = MetadataFiles(tmp_path)
    PlainWriters.outcomes.clear()
    run_state_machine_as_test(  # type: ignore[no-untyped-call]
        lambda: PlainWriters(lake, other, "db", files),
        settings=settings(
            max_examples=20,
            stateful_step_count=25,
            deadline=None,
            suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
        ),
    )
    assert PlainWriters.outcomes[Published.YES] > 0
    # Where the steps are not the same each time, they may lead there or not.
    assert PlainWriters.outcomes[Published.MOVED] > 0 or not settings().derandomize
