"""Snapshots: what dbt-spark's materialization does on our relations."""

import re
from collections.abc import Iterator
from typing import Any

import pytest
from dbt.tests.adapter.simple_snapshot import test_various_configs
from dbt.tests.adapter.simple_snapshot.new_record_check_mode import BaseSnapshotNewRecordCheckMode
from dbt.tests.adapter.simple_snapshot.new_record_dbt_valid_to_current import (
    BaseSnapshotNewRecordDbtValidToCurrent,
)
from dbt.tests.adapter.simple_snapshot.new_record_timestamp_mode import BaseSnapshotNewRecordTimestampMode
from dbt.tests.adapter.simple_snapshot.test_ephemeral_snapshot_hard_deletes import (
    BaseSnapshotEphemeralHardDeletes,
    BaseSnapshotNewColumnSpecificCheckCols,
    BaseSnapshotNewColumnTimestampStrategy,
    BaseSnapshotNewColumnWithDeletes,
)
from dbt.tests.adapter.simple_snapshot.test_snapshot import BaseSimpleSnapshot, BaseSnapshotCheck
from dbt.tests.adapter.simple_snapshot.test_various_configs import (
    BaseSnapshotColumnNames,
    BaseSnapshotColumnNamesFromDbtProject,
    BaseSnapshotDbtValidToCurrent,
    BaseSnapshotInvalidColumnNames,
    BaseSnapshotMultiUniqueKey,
)
from dbt.tests.util import run_sql_with_adapter

# What Spark says differently: names of types, ALTER without a default on an Iceberg column, and a time that
# goes into a column of times, where Postgres takes a text too.
IN_SPARK = (
    (r" without time zone\b", ""),
    (r"(?<=[\s:])text\b", "string"),
    (r" default '\w+'", ""),
    (r"'\d{4}-\d\d-\d\d \d\d:\d\d:\d\d'", r"timestamp \g<0>"),
)


class SourcesInSpark:
    """Run the statements of the base in Spark's SQL, one by one."""

    @pytest.fixture(scope="class", autouse=True)
    def in_spark(self, project: Any) -> None:
        run_one = project.run_sql

        def run_all(sql: str, fetch: str | None = None) -> Any:
            for pattern, spark in IN_SPARK:
                sql = re.sub(pattern, spark, sql, flags=re.IGNORECASE)
            *first, last = [statement for statement in sql.split(";") if statement.strip()]
            for statement in first:
                run_one(statement)
            return run_one(last, fetch=fetch)

        project.run_sql = run_all


class TestSimpleSnapshot(BaseSimpleSnapshot):
    # Iceberg's columns take no `default` from Spark's ALTER.
    def add_fact_column(self, column: str | None = None, definition: str | None = None) -> None:
        super().add_fact_column(column, "string")


class TestSnapshotCheck(BaseSnapshotCheck):
    pass


class TestSnapshotNewRecordTimestampMode(SourcesInSpark, BaseSnapshotNewRecordTimestampMode):
    pass


class TestSnapshotNewRecordCheckMode(SourcesInSpark, BaseSnapshotNewRecordCheckMode):
    pass


class TestSnapshotNewRecordDbtValidToCurrent(SourcesInSpark, BaseSnapshotNewRecordDbtValidToCurrent):
    pass


class TestSnapshotEphemeralHardDeletes(SourcesInSpark, BaseSnapshotEphemeralHardDeletes):
    pass


class TestSnapshotNewColumnTimestampStrategy(SourcesInSpark, BaseSnapshotNewColumnTimestampStrategy):
    pass


class TestSnapshotNewColumnSpecificCheckCols(SourcesInSpark, BaseSnapshotNewColumnSpecificCheckCols):
    pass


class TestSnapshotNewColumnWithDeletes(SourcesInSpark, BaseSnapshotNewColumnWithDeletes):
    pass


class TestSnapshotColumnNames(SourcesInSpark, BaseSnapshotColumnNames):
    pass


class TestSnapshotColumnNamesFromDbtProject(SourcesInSpark, BaseSnapshotColumnNamesFromDbtProject):
    pass


class TestSnapshotInvalidColumnNames(SourcesInSpark, BaseSnapshotInvalidColumnNames):
    pass


class TestSnapshotDbtValidToCurrent(SourcesInSpark, BaseSnapshotDbtValidToCurrent):
    # The base reads rows by their place in a result that it does not order, and Spark promises no order then.
    @pytest.fixture(scope="class", autouse=True)
    def rows_by_id_and_time(self) -> Iterator[None]:
        def read(adapter: Any, sql: str, fetch: str) -> list[Any]:
            return sorted(run_sql_with_adapter(adapter, sql, fetch), key=lambda row: (row[0], row[2]))

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(test_various_configs, "run_sql_with_adapter", read)
            yield


class TestSnapshotMultiUniqueKey(SourcesInSpark, BaseSnapshotMultiUniqueKey):
    pass
