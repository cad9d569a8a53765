"""Properties of a table that change what Spark can do with it."""

from collections.abc import Callable
from datetime import datetime, timezone
from typing import Any

import pytest
from pyiceberg.table import StaticTable

from tests.functional.harness import Scenario

AT = datetime(2024, 1, 1, 5, tzinfo=timezone.utc)
V1_ROWS = (
    "select id, timestamp'2024-01-01 05:00:00Z' as at from values (1), (2) as v(id)",
    "select 2 as id, timestamp'2024-01-01 05:00:00Z' as at, 'new' as v",
)
ANY_SCHEMA = {"write.spark.accept-any-schema": "true"}


def test_a_table_that_takes_any_schema_is_merged_into_or_refused_before_a_commit(scenario: Scenario) -> None:
    """Spark resolves no columns of such a table in a MERGE; a DELETE and an INSERT work."""
    strategies = {"merge": "merge", "deleted": "delete+insert", "added": "append"}
    for name, strategy in strategies.items():
        scenario.model(
            "select 1 as id, 'a' as v", name, incremental_strategy=strategy, tblproperties=ANY_SCHEMA
        )
    scenario.run()
    for name, strategy in strategies.items():
        sql = "select 'n' as v, 1 as id, named_struct('x', 1) as s"
        scenario.model(sql, name, incremental_strategy=strategy)
    before = scenario.state("merge")
    assert (
        "The table has the property `write.spark.accept-any-schema`, with which Spark can run no MERGE, the "
        "incremental_strategy of the model. Take the property away with `ALTER TABLE … UNSET TBLPROPERTIES "
        "('write.spark.accept-any-schema')`, or set `incremental_strategy: delete+insert`."
    ) in scenario.fail().message
    assert scenario.state("merge") == before
    new = {"id": 1, "v": "n", "s": {"x": 1}}
    assert scenario.table("deleted").scan().to_arrow().to_pylist() == [new]
    rows = sorted(scenario.table("added").scan().to_arrow().to_pylist(), key=str)
    assert rows == [{"id": 1, "v": "a", "s": None}, new]

    config = "{{ config(unique_key='id', strategy='check', check_cols='all') }}"
    scenario.file("snapshots/s.sql", f"{{% snapshot s %}}{config}select 1 as id, 'a' as v{{% endsnapshot %}}")
    assert scenario.dbt("snapshot").success
    scenario.sql(
        f"alter table {scenario.relation('s')} set tblproperties ('write.spark.accept-any-schema' = 'true')"
    )
    added = "select 1 as id, 'b' as v, 1 as w"
    scenario.file("snapshots/s.sql", f"{{% snapshot s %}}{config}{added}{{% endsnapshot %}}")
    schemas = scenario.schemas("s")
    assert "with which Spark can run no MERGE, and a snapshot is one." in scenario.dbt("snapshot").message
    assert scenario.schemas("s") == schemas


def test_properties_that_are_added_later_reach_the_table(scenario: Scenario) -> None:
    first = {"made": "first", "stays": "x", "format-version": 2}
    scenario.model("select 1 as id", tblproperties=first)
    scenario.run()
    wanted = {
        "made": "l'ater",
        "format-version": 2,
        "write.parquet.row-group-size-bytes": 1048576,
        "write.metadata.metrics.default": "none",
        "comment": "not the description",
        "is_it": True,
    }
    options = {"persist_docs": {"relation": True}}
    scenario.file("models/t.yml", "models: [{name: t, description: What it is}]")
    scenario.model("select 2 as id, 3 as n", tblproperties=wanted, **options)
    before = scenario.state()
    plan = scenario.dbt("run", "--vars", "sparkevolve_plan_only: true")
    assert plan.success
    assert "change     set property 'is_it' to 'true'" in plan.log
    assert plan.log.count("set property") == 4
    assert scenario.state() == before
    scenario.run()
    table = scenario.table()
    named = (*wanted, "stays", "write.delete.mode")
    assert {name: table.properties[name] for name in named if name in table.properties} == {
        "made": "l'ater",
        "stays": "x",
        "write.parquet.row-group-size-bytes": "1048576",
        "write.metadata.metrics.default": "none",
        "comment": "What it is",
        "is_it": "true",
        "write.delete.mode": "merge-on-read",
    }
    assert scenario.rows() == [(1, None), (2, 3)]
    # The column and the properties came in one commit, before the rows, which Spark wrote as they say.
    log = [*(entry.metadata_file for entry in table.metadata.metadata_log), table.metadata_location]
    states = [StaticTable.from_metadata(file) for file in log]
    widths = [(len(state.schema().fields), state.properties["made"]) for state in states]
    assert set(widths) == {(1, "first"), (2, "l'ater")}
    bounds = {len(task.file.lower_bounds or ()) for task in table.scan().plan_files()}
    assert bounds == {0, 1}
    # What is there already is no commit, and what the model no longer names stays.
    scenario.model("select 2 as id, 3 as n where false", tblproperties={"made": "l'ater"}, **options)
    before = scenario.state()
    scenario.run()
    assert scenario.state() == before


def test_properties_that_no_run_sets_are_refused(scenario: Scenario) -> None:
    names = ("newer", "merged", "moved", "ours")
    for name in names:
        scenario.model("select 1 as id", name, incremental_strategy="merge")
    scenario.run()
    before = [scenario.state(name) for name in names]
    ours = {"sparkevolve.staging-owner": "x"}
    later = ({"format-version": "3"}, ANY_SCHEMA, {"location": "/elsewhere"}, ours)
    for name, properties in zip(names, later, strict=True):
        scenario.model(
            "select 2 as id, 3 as n",
            name,
            incremental_strategy="merge",
            tblproperties={"made": "later", **properties},
        )
    messages = {node.node.name: str(node.message) for node in scenario.fail().result.result or ()}
    assert "`format-version` is 3, and the table has 2" in messages["newer"]
    assert "`tblproperties` set `write.spark.accept-any-schema`, with which" in messages["merged"]
    assert "`tblproperties` set `location` to '/elsewhere'" in messages["moved"]
    assert "Properties with this prefix are kept by sparkevolve itself." in messages["ours"]
    assert [scenario.state(name) for name in names] == before


def test_what_a_catalog_overrides_hides_no_rows_and_no_counts(
    scenario_factory: Callable[..., Scenario], profile_target: dict[str, Any], method: str
) -> None:
    """It overrides what a staged batch is made with: WAP off, so that rows are on `main`, and NULL counts."""
    if method == "thrift":
        pytest.skip("a server's catalog is configured by its operator")
    overrides = {"write.wap.enabled": "true", "write.metadata.metrics.default": "none"}
    properties = {f"table-override.{name}": value for name, value in overrides.items()}
    scenario = scenario_factory(catalog_properties={**profile_target["catalog_properties"], **properties})
    scenario.sql(f"create schema {scenario.relation().rpartition('.')[0]}")
    scenario.sql(f"create table {scenario.relation()} (id int, n int not null, v string) using iceberg")
    scenario.model("select 1 as id, 1 as n, 'a' as v union all select 2, 2, 'b'", relax_not_null=False)
    view = {"unique_key": None, "on_schema_change": None, "materialized": "view"}
    scenario.model("select 5 as id", "was_view", **view)
    snapshot = "{{% snapshot s %}}{{{{ config(unique_key='id', strategy='check', check_cols='all', {}) }}}}"
    rows = "select 1 as id, '{}' as v{{% endsnapshot %}}"
    scenario.file("snapshots/s.sql", snapshot.format("") + rows.format("a"))
    build = scenario.dbt("build")
    assert build.success, build.message
    # No NULL was counted, and there is none: the column stays as it is.
    assert [field.required for field in scenario.table().schema().fields] == [False, True, False]
    assert scenario.rows() == [(1, 1, "a"), (2, 2, "b")]

    # Of the staged batch, of a table that is loaded into, and of one that is made.
    hidden = (
        "are on another branch than its `main`, or on none: the catalog sets each new table up for",
        "the session's `spark.wap.id` keeps each statement's rows apart",
        f"No reader would see the rows of `lake`.`{scenario.schema}`.`was_view` once it is made: ",
    )
    before, versions = scenario.state(), scenario.state("s")
    for setting in ("spark.wap.branch", "spark.wap.id"):
        hook = {"pre_hook": f"set {setting}=audit"}
        scenario.model("select 2 as id, 3 as n, 'new' as v, 4 as added", **hook)
        scenario.model("select 6 as id", "was_view", **hook)
        scenario.file("snapshots/s.sql", snapshot.format(f"pre_hook='{hook['pre_hook']}'") + rows.format("b"))
        build = scenario.dbt("build", "--threads", "1")
        messages = {node.node.name: str(node.message) for node in build.result.result or ()}
        for name in ("t", "was_view", "s"):
            assert any(text in messages[name] for text in hidden), messages
        assert (scenario.state(), scenario.state("s")) == (before, versions)
        assert scenario.tables() == ["s", "t"]
        assert scenario.sql(f"select * from {scenario.relation('was_view')}") == [(5,)]
        scenario.model("select 5 as id", "was_view", **view, pre_hook=f"reset {setting}")
        scenario.run("-s", "was_view")
    scenario.model("select 2 as id, 3 as n, 'new' as v, 4 as added")
    scenario.run("-s", "t")
    assert scenario.rows() == [(1, 1, "a", None), (2, 3, "new", 4)]


def test_a_table_of_format_version_1_deletes_by_rewriting_files(scenario: Scenario) -> None:
    """Files of deleted rows came with version 2: our default is none for it, and another one is refused."""
    batches = {"unique_key": None, "incremental_strategy": "microbatch", "event_time": "at"}
    cases: dict[str, dict[str, Any]] = {
        "deleted": {"incremental_strategy": "delete+insert"},
        "merged": {"incremental_strategy": "merge"},
        "batched": {**batches, "begin": "2024-01-01", "batch_size": "day"},
        "added": {"incremental_strategy": "append", "unique_key": None},
    }
    properties = {"format-version": 1}
    scenario.file("models/src.sql", "{{ config(materialized='table', event_time='at') }}\n" + V1_ROWS[0])
    window = ("--event-time-start", "2024-01-01", "--event-time-end", "2024-01-02")
    for name, config in cases.items():
        scenario.model("select * from {{ ref('src') }}", name, tblproperties=properties, **config)
    scenario.run(*window)
    assert {scenario.table(name).format_version for name in cases} == {1}
    scenario.file("models/src.sql", "{{ config(materialized='table', event_time='at') }}\n" + V1_ROWS[1])
    modes = "'write.delete.mode' = 'merge-on-read', 'write.merge.mode' = 'merge-on-read'"
    for name in ("merged", "batched"):
        scenario.sql(f"alter table {scenario.relation(name)} set tblproperties ({modes})")
    before = [scenario.state(name) for name in ("merged", "batched")]
    run = scenario.dbt("run", *window)
    refused = "The table has Iceberg's format version 1 and `{}` = 'merge-on-read'"
    assert refused.format("write.merge.mode") in run.log
    assert refused.format("write.delete.mode") in run.log
    assert [scenario.state(name) for name in ("merged", "batched")] == before
    old, replaced, new = (1, AT, None), (2, AT, None), (2, AT, "new")
    assert scenario.rows("deleted") == [old, new]
    assert scenario.rows("added") == [old, replaced, new]
    modes_here = {"write.delete.mode": "copy-on-write", "write.merge.mode": "copy-on-write"}
    for name in ("merged", "batched"):
        wanted = {**properties, **modes_here}
        scenario.model("select * from {{ ref('src') }}", name, tblproperties=wanted, **cases[name])
    scenario.run("-s", "merged", "batched", *window)
    assert scenario.rows("merged") == [old, new]
    assert scenario.rows("batched") == [new]
