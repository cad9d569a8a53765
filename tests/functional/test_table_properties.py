"""Properties of a table that change what Spark can do with it."""

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
