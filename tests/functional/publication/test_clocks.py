"""dbt's clock differs from Spark's: Iceberg reads all that is written, and other writers go on."""

import datetime as real
import time
from types import SimpleNamespace
from typing import Any

import pyiceberg.table.update
import pytest

from dbt.adapters.sparkevolve.iceberg import base
from dbt.adapters.sparkevolve.load import batches, runner
from tests.functional.harness import Scenario

MINUTE = 60_000
DAY = 24 * 60 * MINUTE


def shift(monkeypatch: pytest.MonkeyPatch, milliseconds: int) -> None:
    """Set the clock of this process, and not that of Spark, ahead or back."""

    class Clock(real.datetime):
        @classmethod
        def now(cls, tz: real.tzinfo | None = None) -> "Clock":
            moment = real.datetime.now(tz) + real.timedelta(milliseconds=milliseconds)
            return cls.fromtimestamp(moment.timestamp(), tz)

    monkeypatch.setattr(pyiceberg.table.update, "datetime", Clock)
    shifted = SimpleNamespace(
        time=lambda: time.time() + milliseconds / 1000, sleep=time.sleep, monotonic=time.monotonic
    )
    for module in (base, batches, runner):
        monkeypatch.setattr(module, "time", shifted)


def parse(scenario: Scenario, name: str = "t") -> list[int]:
    """Let Iceberg's Java parser read all metadata files of a table; return when each was written."""
    from pyspark.sql import SparkSession

    session = SparkSession.getActiveSession() or SparkSession.builder.getOrCreate()
    jvm: Any = session._jvm
    io = jvm.org.apache.iceberg.hadoop.HadoopFileIO(session._jsc.hadoopConfiguration())  # type: ignore[attr-defined]
    table = scenario.table(name)
    files = [*(entry.metadata_file for entry in table.metadata.metadata_log), table.metadata_location]
    return [jvm.org.apache.iceberg.TableMetadataParser.read(io, file).lastUpdatedMillis() for file in files]


@pytest.mark.parametrize("milliseconds", [-DAY, -5 * MINUTE, 5 * MINUTE])
def test_a_run_with_another_clock_than_spark(
    scenario: Scenario, method: str, monkeypatch: pytest.MonkeyPatch, milliseconds: int
) -> None:
    if method != "session":
        pytest.skip("needs the Java of the session")
    scenario.model("select 1 as id, 10 as v")
    scenario.run()
    before_ms = int(time.time() * 1000)
    shift(monkeypatch, milliseconds)
    scenario.file(
        "models/schema.yml",
        "models: [{name: t, description: text, columns: [{name: id, description: the key}]}]",
    )
    docs = {"relation": True, "columns": True}
    scenario.model("select 1 as id, 11 as v, 'new' as n", persist_docs=docs)
    scenario.run()
    scenario.model("select 2 as id, 20 as v, true as m", persist_docs=docs)
    scenario.run()
    times = parse(scenario)
    assert times == sorted(times)
    metadata = scenario.table().metadata
    log = [entry.timestamp_ms for entry in metadata.snapshot_log]
    assert log == sorted(log)
    assert before_ms < log[-1] <= metadata.last_updated_ms <= time.time() * 1000 + 1000
    # Others commit by a clock that is right.
    scenario.sql(f"refresh table {scenario.relation()}")
    scenario.sql(f"insert into {scenario.relation()} values (3, 30, null, false)")
    assert scenario.rows() == [(1, 11, "new", None), (2, 20, None, True), (3, 30, None, False)]
    assert scenario.docs()["id"] == "the key"
    assert scenario.table().properties["comment"] == "text"
    assert len(parse(scenario)) == len(times) + 1
    as_of = real.datetime.fromtimestamp(log[-1] / 1000).isoformat(sep=" ")
    earlier = real.datetime.fromtimestamp((log[-1] - 1) / 1000).isoformat(sep=" ")
    for moment, rows in ((as_of, [(1,), (2,)]), (earlier, [(1,)])):
        found = scenario.sql(f"select id from {scenario.relation()} timestamp as of '{moment}' order by id")
        assert found == rows
