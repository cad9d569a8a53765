"""What is said of a model's configuration that no run brings into the table that is there."""

from pathlib import Path

from tests.functional.harness import Scenario


def test_what_cannot_reach_the_table_is_said_once_in_each_run(scenario: Scenario, tmp_path: Path) -> None:
    first, second = f"file://{tmp_path}/first", f"file:{tmp_path}/second/"
    made = {
        "location_root": first,
        "options": {"made": "so"},
        "clustered_by": "id",
        "buckets": 2,
        "partition_by": "p",
        "incremental_strategy": "insert_overwrite",
    }
    rows = "select 1 as id, 'a' as p union all select 2, 'b'"
    scenario.model(rows, **made)
    scenario.model(rows, "plain")
    for _ in range(2):
        log = scenario.run().log
        for said in ("The model is partitioned by", "`location_root` of", "`options` of"):
            assert said not in log
    # Buckets are partitions: the batch replaces those that it has rows for.
    scenario.model("select 2 as id, 'b' as p, 'new' as v", **made)
    scenario.run()
    assert scenario.rows() == [(1, "a", None), (2, "b", "new")]
    spec = [(f.name, str(f.transform)) for f in scenario.table().spec().fields]
    assert spec == [("p", "identity"), ("id_bucket", "bucket[2]")]

    later = {"location_root": second, "options": {"made": "otherwise"}, "clustered_by": "p", "buckets": 2}
    reaches = {"tblproperties": {"made": "later"}}
    scenario.model(rows, "plain", **later, **reaches)
    location = scenario.table("plain").location()
    wanted = [
        f"`location_root` of the model says {second}/plain, and the table stays in {location}. Take "
        "`location_root` out, or make it what the table has.",
        "`options` of the model reach a table when it is made, and this one lacks made = otherwise. Use "
        "`tblproperties`, which reach it later too.",
        "The model is partitioned by bucket(2, p) and the table by nothing. The rows are written as the "
        "table is partitioned: change it with `ALTER TABLE`, or make `clustered_by` what the table has.",
    ]
    plan = scenario.dbt("run", "-s", "plain", "--vars", "sparkevolve_plan_only: true")
    assert plan.success
    assert [plan.log.count(f"  warning    {text}") for text in wanted] == [1, 1, 1], plan.log
    for arguments, changes in (((), 1), (("--full-refresh",), 0), ((), 0)):
        log = scenario.run("-s", "plain", *arguments).log
        assert [log.count(text) for text in wanted] == [1, 1, 0 if arguments else 1], log
        assert log.count("set property 'made' to 'later'") == changes
    assert scenario.table("plain").properties["made"] == "later"
    assert scenario.table("plain").location() == location


def test_another_key_of_a_hudi_table_is_said(scenario: Scenario) -> None:
    """Hudi is not installed here, so the table is not made."""
    hudi = {"materialized": "table", "file_format": "hudi", "on_schema_change": None}
    scenario.model("select 1 as id, 2 as k", **hudi, options={"primaryKey": "k"})
    assert (
        "model.case.t: `options` give the table the primaryKey k, by which Hudi goes, and the unique_key is "
        "id. Make them the same."
    ) in scenario.fail().log
    scenario.model("select 1 as id, 2 as k", **hudi)
    log = scenario.fail().log
    assert "give the table the primaryKey" not in log
    assert "'primaryKey' = 'id'" in log
