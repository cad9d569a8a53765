"""Snapshots: what dbt-spark's materialization does on our relations."""

from dbt.tests.adapter.simple_snapshot.test_snapshot import BaseSimpleSnapshot, BaseSnapshotCheck


class TestSimpleSnapshot(BaseSimpleSnapshot):
    # Iceberg's columns take no `default` from Spark's ALTER.
    def add_fact_column(self, column: str | None = None, definition: str | None = None) -> None:
        super().add_fact_column(column, "string")


class TestSnapshotCheck(BaseSnapshotCheck):
    pass
