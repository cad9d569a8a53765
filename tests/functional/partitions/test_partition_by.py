"""What is said where a model and its table are not partitioned the same."""

from tests.functional.harness import Scenario

SAID = "The model is partitioned by v and the table by id. The rows are written as the table is partitioned"


def test_another_partition_by_is_said_once_in_each_run(scenario: Scenario) -> None:
    """Also of a microbatch model, each batch of which is a load of its own, and of a snapshot."""
    scenario.file(
        "models/src.sql",
        "{{ config(materialized='table', event_time='ts') }}\n"
        "select 1 as id, timestamp'2024-01-01 05:00:00' as ts, 'a' as v "
        "union all select 2, timestamp'2024-01-02 05:00:00', 'b'",
    )
    batches = {"incremental_strategy": "microbatch", "event_time": "ts", "unique_key": None}
    snapshot = (
        "{{% snapshot s %}}{{{{ config(unique_key='id', strategy='check', check_cols=['v'], "
        "file_format='iceberg', partition_by=['{0}']) }}}} select id, v from {{{{ ref('src') }}}}"
        "{{% endsnapshot %}}"
    )
    window = ("--event-time-start", "2024-01-01", "--event-time-end", "2024-01-03")
    for column, times in (("id", 0), ("v", 1), ("id", 0)):
        scenario.model(
            "select * from {{ ref('src') }}",
            **batches,
            begin="2024-01-01",
            batch_size="day",
            partition_by=[column],
        )
        scenario.model("select 1 as id, 'a' as v", "u", partition_by=[column])
        scenario.file("snapshots/s.sql", snapshot.format(column))
        run = scenario.dbt("build", *window)
        assert run.success, run.log
        lines = [line for line in run.log.splitlines() if SAID in line]
        said = [sum(f"`.`{name}`: " in line for line in lines) for name in ("t", "u", "s")]
        assert said == [times] * 3, lines
    assert scenario.table().spec().fields[0].name == "id"
