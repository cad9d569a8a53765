"""Group H of the cases from the field: two libraries, and a cache between them."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.functional.harness import Scenario

# A cached table never expires by itself.
CACHE_ON = {
    "spark.sql.catalog.lake.cache-enabled": "true",
    "spark.sql.catalog.lake.cache.expiration-interval-ms": "-1",
}


def test_h01_spark_sees_the_new_column_through_its_cache(
    method: str, profile_target: dict[str, Any], scenario_factory: Callable[..., Scenario]
) -> None:
    """The catalog's cache is on, and this session holds the table from before the change."""
    if method != "session":
        pytest.skip("a server has its own settings")
    scenario = scenario_factory(spark_config={**profile_target["spark_config"], **CACHE_ON})
    for name, key in (("t", "id"), ("appended", None)):
        scenario.model("select 1 as id", name=name, unique_key=key)
    scenario.run()
    ids = scenario.field_ids()
    # Read by the hook, by the batch itself, and by a model that comes after.
    hooks = {"pre_hook": "select count(*) from {{ this }}", "post_hook": "select n from {{ this }}"}
    scenario.model("select id, 'x' as n from {{ this }}", **hooks)
    scenario.model(
        "select max(id) + 1 as id, 'x' as n from {{ this }}", name="appended", unique_key=None, **hooks
    )
    setting = "run_query('set `spark.sql.catalog.lake.cache-enabled`').columns[1].values()[0] if execute"
    scenario.model(
        "select id, n, '{{ " + setting + " }}' as cached from {{ ref('t') }}",
        name="after",
        materialized="table",
    )
    run = scenario.run("--threads", "1")
    assert scenario.rows() == [(1, "x")]
    assert scenario.rows("appended") == [(1, None), (2, "x")]
    assert scenario.rows("after") == [(1, "x", "true")], "the cache is on"
    assert scenario.field_ids() == {**ids, "n": 2}
    assert scenario.schemas() == scenario.schemas("appended") == 2
    log = run.log.lower()
    added = log.index(f"{scenario.relation()}: add column `n` string")
    assert added < log.index(f"refresh table {scenario.relation()}", added) < log.index("delete from")
    scenario.run()
    assert scenario.rows() == [(1, "x")]
    assert scenario.rows("appended") == [(1, None), (2, "x"), (3, "x")]
    assert scenario.schemas() == scenario.schemas("appended") == 2
    assert scenario.tables() == ["after", "appended", "t"]


def test_h01_the_batch_reads_what_another_writer_has_committed(
    method: str, profile_target: dict[str, Any], scenario_factory: Callable[..., Scenario]
) -> None:
    """A batch that is computed from a stale table would overwrite the other writer's row."""
    if method != "session":
        pytest.skip("a server has its own settings")
    scenario = scenario_factory(spark_config={**profile_target["spark_config"], **CACHE_ON})
    scenario.model("select 1 as id, 'ours' as v", post_hook="select count(*) from {{ this }}")
    scenario.run()
    scenario.sql(f"alter table {scenario.relation()} add column other int")
    scenario.sql(f"insert into {scenario.relation()} values (2, 'theirs', 7)")
    scenario.model("select max(id) + 1 as id, 'ours' as v from {{ this }}")
    scenario.run()
    assert scenario.rows() == [(1, "ours", None), (2, "theirs", 7), (3, "ours", None)]
    assert scenario.schemas() == 2
    assert scenario.tables() == ["t"]


def test_h02_downstream_models_see_the_new_column_at_once(scenario: Scenario) -> None:
    """Models on other threads and connections select the column in the invocation that adds it."""
    kinds = {"d_table": "table", "d_view": "view", "d_incremental": "incremental"}

    def write_downstream(column: str) -> None:
        for name, kind in kinds.items():
            scenario.model(
                f"select id, {column} from {{{{ ref('t') }}}}",
                name=name,
                materialized=kind,
                unique_key="id" if kind == "incremental" else None,
                on_schema_change="append_new_columns_preserve" if kind == "incremental" else None,
            )

    scenario.model("select 1 as id, 'v' as v")
    write_downstream("v")
    scenario.run()
    scenario.model("select 1 as id, 'v' as v, 'new' as n")
    write_downstream("n")
    run = scenario.run("--threads", "4")
    assert scenario.rows() == [(1, "v", "new")]
    assert scenario.rows("d_table") == [(1, "new")]
    assert scenario.rows("d_incremental") == [(1, None, "new")]
    assert scenario.sql(f"select * from {scenario.relation('d_view')}") == [(1, "new")]
    assert scenario.schemas() == 2
    assert scenario.schemas("d_incremental") == 2
    assert scenario.tables() == ["d_incremental", "d_table", "t"]
    assert {str(node.status) for node in run.result.result} == {"success"}
