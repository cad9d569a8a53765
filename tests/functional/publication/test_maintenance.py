"""Maintenance of a table during a run: snapshots expire, files are compacted."""

import json
import uuid
from pathlib import Path
from typing import Any

import pytest
from pyiceberg.catalog import Catalog

from dbt.adapters.sparkevolve.iceberg.catalog import IcebergCatalog
from dbt.adapters.sparkevolve.impl import SparkEvolveAdapter
from tests.functional.harness import Scenario
from tests.functional.intruders import Intrude, append, cut, is_clean, staged


def age(scenario: Scenario, lake: Catalog, days: int) -> None:
    """Let the table be as if all that happened to it had happened some days ago."""
    table = scenario.table()
    metadata = json.loads(table.metadata.model_dump_json())

    def shifted(value: Any) -> Any:
        if isinstance(value, dict):
            return {
                key: item - days * 86_400_000 if key in ("timestamp-ms", "last-updated-ms") else shifted(item)
                for key, item in value.items()
            }
        return [shifted(item) for item in value] if isinstance(value, list) else value

    path = Path(table.metadata_location.removeprefix("file:").removeprefix("//"))
    aged = path.with_name(f"00009-{uuid.uuid4()}.metadata.json")
    # Not made from the versions in the log, which have the real times.
    aged.write_text(json.dumps({**shifted(metadata), "metadata-log": []}))
    lake.drop_table(table.name())
    lake.register_table(table.name(), f"file://{aged}")


EXPIRE = "call lake.system.expire_snapshots(table => '{}', older_than => timestamp '2999-01-01 00:00:00')"

COMPACT = "call lake.system.rewrite_data_files(table => '{}', options => map('rewrite-all', 'true'))"


@pytest.mark.parametrize("config", [{}, {"removed_columns": "keep"}, {"incremental_strategy": "merge"}])
def test_snapshots_expire_during_a_run(
    scenario: Scenario, lake: Catalog, intrude: Intrude, config: dict[str, Any]
) -> None:
    """A branch goes when it is older than its retention, and its age is that of its last snapshot."""
    scenario.model("select * from values (1, 10, 'a'), (2, 20, 'b') as source(id, v, gone)", **config)
    scenario.run()
    scenario.run()
    age(scenario, lake, 30)
    base = scenario.snapshots()[-1]
    scenario.sql(f"refresh table {scenario.relation()}")
    scenario.model("select 2 as id, 21 as v", **config)
    expire = EXPIRE.format(f"{scenario.schema}.t")
    cuts = intrude(SparkEvolveAdapter, "execute", lambda: scenario.sql(expire), after=True, sql="ALTER TABLE")
    publications = intrude(IcebergCatalog, "publish", lambda: scenario.sql(expire))
    run = scenario.run()
    assert (len(cuts), len(publications), cut(run)) == (1, 1, 1)
    assert scenario.rows() == [(1, 10, "a"), (2, 21, "b" if config else None)]
    assert scenario.snapshots()[0] == base
    assert is_clean(scenario)


def test_a_compaction_during_a_run(scenario: Scenario, intrude: Intrude) -> None:
    scenario.model("select * from values (1, 10), (2, 20) as source(id, v)")
    scenario.run()
    append(scenario, [{"id": 3, "v": 30}])
    scenario.sql(f"refresh table {scenario.relation()}")
    scenario.model("select 2 as id, 21 as v")
    compact = COMPACT.format(f"{scenario.schema}.t")
    rewritten: list[Any] = []
    intrude(IcebergCatalog, "publish", lambda: rewritten.extend(scenario.sql(compact)))
    run = scenario.run()
    assert rewritten[0][0] == 2, "files"
    assert scenario.rows() == [(1, 10), (2, 21), (3, 30)]
    assert (staged(run), cut(run)) == (1, 2)
    assert is_clean(scenario)
