"""Several writers of a real table in any order: ours, a Spark session, and PyIceberg as a program uses it.

After each step Iceberg's own parser reads what was written, and Spark and PyIceberg read the same rows.
"""

import uuid
from collections.abc import Sequence
from typing import Any, ClassVar

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test
from pyiceberg.catalog import Catalog
from pyiceberg.table import Table

from dbt.adapters.sparkevolve.iceberg.catalog import IcebergCatalog
from dbt.adapters.sparkevolve.iceberg.catalog_settings import resolve
from dbt.adapters.sparkevolve.iceberg.publication import Published
from dbt.adapters.sparkevolve.load.load import Load
from tests.functional.harness import SqlRunner
from tests.metadata_files import MetadataFiles
from tests.writers import Run, Writer, Writers


class SparkWriter:
    """A Spark session that is not ours."""

    def __init__(self, sql: SqlRunner, table: str) -> None:
        self._sql = sql
        self._table = table

    def add(self, name: str) -> None:
        """Add a column."""
        self._alter(f"add column {name} int")

    def drop(self, name: str) -> None:
        """Drop a column."""
        self._alter(f"drop column {name}")

    def rename(self, name: str, new: str) -> None:
        """Rename a column."""
        self._alter(f"rename column {name} to {new}")

    def append(self, row: dict[str, int]) -> None:
        """Append a row."""
        columns, values = ", ".join(row), ", ".join(map(str, row.values()))
        self._sql(f"refresh table {self._table}")
        self._sql(f"insert into {self._table} ({columns}) values ({values})")

    def roll_back(self, snapshot_id: int) -> None:
        """Set main back."""
        self._call(f"rollback_to_snapshot(table => '{{}}', snapshot_id => {snapshot_id})")

    def expire(self, snapshot_ids: Sequence[int]) -> None:
        """Remove snapshots."""
        ids = ", ".join(f"{snapshot_id}L" for snapshot_id in snapshot_ids)
        self._call(f"expire_snapshots(table => '{{}}', snapshot_ids => array({ids}))")

    def _alter(self, change: str) -> None:
        self._sql(f"refresh table {self._table}")
        self._sql(f"alter table {self._table} {change}")

    def _call(self, procedure: str) -> None:
        self._sql(f"refresh table {self._table}")
        self._sql("call lake.system." + procedure.format(self._table.replace("`", "").removeprefix("lake.")))


class SparkWriters(Writers):
    """Spark stages and loads, by the statements of a real run, and another session of it writes, too."""

    sql: SqlRunner
    # Spark's clock is that of the machine, and it refuses a table that is ahead of it.
    others_may_differ = False
    properties: ClassVar[dict[str, str]] = {"write.delete.mode": "merge-on-read"}

    @property
    def writers(self) -> list[Writer]:
        """PyIceberg and Spark."""
        return [self.plain, SparkWriter(self.sql, str(self.target))]

    def stage(self, run: Run) -> None:
        """Make the staged batch."""
        type_ = "bigint" if run.wide else "int"
        rows = " union all ".join(
            ", ".join([f"select {key} as id", *(f"cast({v} as {type_}) as {n}" for n, v in row.items())])
            for key, row in run.rows.items()
        )
        self.sql(f"create table {run.staged} using iceberg as {rows}")

    def cut_and_load(self, run: Run, load: Load) -> None:
        """Run the statements of the load."""
        self.sql(f"refresh table {self.target}")
        for statement in load.steps:
            self.sql(statement)

    def read(self, table: Table) -> list[tuple[Any, ...]]:
        """Return what PyIceberg reads, if Spark reads the same."""
        rows = super().read(table)
        self.sql(f"refresh table {self.target}")
        assert sorted(self.sql(f"select * from {self.target}")) == rows
        return rows


def test_writers_in_any_order(
    method: str,
    spark_sql: SqlRunner,
    lake: Catalog,
    catalog_properties: dict[str, str],
    metadata_files: MetadataFiles,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    if method != "session":
        pytest.skip("the same catalog and the same Spark as in a session")
    schema = f"case_{uuid.uuid4().hex[:10]}"
    spark_sql(f"create schema `lake`.`{schema}`")
    ours = IcebergCatalog(resolve("lake", catalog_properties, tmp_path_factory.mktemp("ours")))
    SparkWriters.sql = staticmethod(spark_sql)
    SparkWriters.outcomes.clear()
    run_state_machine_as_test(  # type: ignore[no-untyped-call]
        lambda: SparkWriters(ours, lake, schema, metadata_files),
        settings=settings(
            max_examples=10,
            stateful_step_count=20,
            deadline=None,
            phases=[Phase.generate],  # each step is a statement of Spark: too long to look for fewer steps
            suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
        ),
    )
    assert SparkWriters.outcomes[Published.YES] > 0 or not settings().derandomize
    spark_sql(f"drop schema `lake`.`{schema}`")
