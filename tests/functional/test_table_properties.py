"""Properties of a table that change what Spark can do with it."""

from pyiceberg.table import StaticTable

from tests.functional.harness import Scenario

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
