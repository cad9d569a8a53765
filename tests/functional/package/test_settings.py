"""Settings and variables of the package: where they may stand, and what is said of those without effect."""

import re
from typing import Any

import pytest
import yaml

from tests.functional.harness import Scenario
from tests.functional.package.test_faults import instead

ADDS = {"on_schema_change": "append_new_columns"}
OVERWRITES = {
    **ADDS,
    "unique_key": None,
    "incremental_strategy": "insert_overwrite",
    "partition_by": "p",
}
MODE = "spark.sql.sources.partitionOverwriteMode"
KEPT = "sparkevolve.partitionOverwriteMode.before"
DAY = {
    **ADDS,
    "unique_key": None,
    "incremental_strategy": "microbatch",
    "event_time": "at",
    "begin": "2024-01-01",
    "batch_size": "day",
}
WINDOW = ("--event-time-start", "2024-01-01", "--event-time-end", "2024-01-02")


def test_a_comment_behind_each_statement_changes_none(project: Scenario) -> None:
    """And rows of a microbatch that its window does not hold are told."""
    project.write_project(**{"query-comment": {"comment": "run by dbt;", "append": True}})
    models: dict[str, tuple[dict[str, Any], list[str]]] = {
        "over": (
            OVERWRITES,
            ["select 1 as id, 'a' as p union all select 2, 'b'", "select 3 as id, 'a' as p, 1 as n"],
        ),
        "merged": (
            {**ADDS, "incremental_strategy": "merge"},
            ["select 1 as id, 'a' as b", "select 1 as id, 'c' as b;"],
        ),
        "kept": (
            {
                **ADDS,
                "removed_columns": "keep",
                "audits": ["id > 0 -- all"],
                "persist_docs": {"columns": True},
            },
            ["select 1 as id, 'a' as b", "select 1 as id, 2 as n -- the last"],
        ),
        "hours": (
            DAY,
            [
                "select 1 as id, timestamp '2024-01-01 05:00:00' as at union all select 2, null",
                "select 1 as id, timestamp '2024-01-01 06:00:00' as at union all select 3, null "
                "union all select 4, timestamp '2024-01-02 00:00:00.5'",
            ],
        ),
    }
    for step in (0, 1):
        for name, (config, queries) in models.items():
            project.model(queries[step], name, **config)
        run = project.run(*WINDOW)
    project.write_project()
    assert "/* run by dbt; */" in run.log
    assert project.rows("over") == [(2, "b", None), (3, "a", 1)]
    assert project.rows("merged") == [(1, "c")]
    assert project.rows("kept") == [(1, "a", 2)]
    assert [row[0] for row in project.rows("hours")] == [1, 2, 3, 4]
    told = [text.partition("hours: ")[2] for text in run.warnings if f"{project.schema}.hours" in text]
    rest = (
        "Another run of it does not replace those outside of this window, but adds them again: let the model "
        "return rows of its window only."
    )
    batch = "The batch of 2024-01-01 00:00:00+00:00 to 2024-01-02 00:00:00+00:00 has rows with `at`"
    assert told == [
        f"{batch} from 2024-01-01 06:00:00+00:00 to 2024-01-02 00:00:00.5+00:00. {rest}",
        f"{batch} that is NULL. {rest}",
    ]


def test_settings_under_which_sql_means_something_else_are_refused(project: Scenario, method: str) -> None:
    project.model("select 1 as id", "meant", **ADDS)
    project.run("--select", "meant")
    state = project.state("meant")
    for name, value in (("caseSensitive", "true"), ("storeAssignmentPolicy", "legacy")):
        hook = [f"set spark.sql.{name} = {value}"]
        project.model("select 2 as ID, 1 as n", "meant", **ADDS, pre_hook=hook)
        run = project.fail("--select", "meant")
        assert f"The Spark setting `spark.sql.{name}` is `{value}`." in run.message
        assert "Nothing was run with it: take it out of the profile, of the hook that sets it" in run.message
        assert project.state("meant") == state
        if method == "session":
            # It has stayed: seen before the first model is run, and by the check.
            from pyspark.sql import SparkSession

            project.model("select 2 as ID, 1 as n", "meant", **ADDS)
            assert f"`spark.sql.{name}` is `{value}`" in project.fail("--select", "meant").log
            check = project.dbt("run-operation", "sparkevolve.check")
            assert f"Missing: The Spark setting `spark.sql.{name}` is `{value}`." in check.log
            assert not check.success
            SparkSession.builder.getOrCreate().conf.unset(f"spark.sql.{name}")
    if method == "session":
        # A hook of another model, which has stayed.
        project.model("select 2 as ID, 1 as n -- {{ ref('hooked') }}", "meant", **ADDS)
        project.model("select 1 as id", "hooked", **ADDS, post_hook="set spark.sql.caseSensitive = true")
        run = project.fail("--select", "hooked", "meant")
        SparkSession.builder.getOrCreate().conf.unset("spark.sql.caseSensitive")
        assert "Error in model meant" in run.message
        assert "The Spark setting `spark.sql.caseSensitive` is `true`." in run.message
        assert project.state("meant") == state
    project.model("select 2 as ID, 1 as n", "meant", **ADDS)
    project.run("--select", "meant")
    assert project.rows("meant") == [(1, None), (2, 1)]


def test_an_empty_batch_takes_its_rows_out_of_a_file_with_others(project: Scenario) -> None:
    """Where files are copied on write, a DELETE adds the rows that stay."""
    at = "timestamp'2024-01-01' + make_interval(0, 0, 0, cast(id as int)) as at"
    query = f"select id, {at} from range(0, %s, 1, 1)"
    config = {**DAY, "tblproperties": {"write.delete.mode": "copy-on-write"}}
    project.model(query % 2, "copied", **config)
    project.run("--select", "copied", *WINDOW)
    project.model(query % 0, "copied", **config)
    run = project.run("--select", "copied", *WINDOW)
    assert "loaded again" not in run.log
    assert [row[0] for row in project.rows("copied")] == [1]


def test_a_session_that_is_shared_gets_back_how_it_overwrites(
    project: Scenario, monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    if method == "thrift":
        pytest.skip("each connection has a session of its own")
    from pyspark.sql import SparkSession

    conf = SparkSession.builder.getOrCreate().conf
    conf.set(MODE, "static")
    for name in ("shared", "other"):
        project.model("select 1 as id, 'a' as p union all select 2, 'b'", name, **OVERWRITES)
    select = ("--select", "shared", "other")
    project.run(*select)
    for name in ("shared", "other"):
        project.model("select 3 as id, 'a' as p", name, **OVERWRITES)

    seen = []

    def fail(send: Any) -> Any:
        seen.append((conf.get(MODE), conf.get(KEPT)))
        raise RuntimeError("the server is gone")

    with monkeypatch.context() as patched:
        instead(patched, "INSERT OVERWRITE", fail)
        project.fail(*select)
    # The second model finds the mode as the first one has set it.
    assert seen == [("DYNAMIC", "static")] * 2
    assert (conf.get(MODE), conf.get(KEPT, None)) == ("static", None)
    for name in ("shared", "other"):
        project.model("select 3 as id, 'a' as p", name, publish="direct", **OVERWRITES)
    run = project.fail(*select, "--threads", "2")
    assert (
        f"{project.schema}.shared cannot be overwritten with `publish: direct`: all connections share "
        "one session of this Spark (see `spark.sql.hive.thriftServer.singleSession`), and another model "
        "may change `spark.sql.sources.partitionOverwriteMode` in the moment before the INSERT" in run.log
    )
    assert project.rows("shared") == [(1, "a"), (2, "b")]
    run = project.run(*select)
    # Whether it is shared is asked once, for both.
    assert len(re.findall(r"set `sparkevolve\.session`\s", run.log)) == 2, "set by the hook, and asked for"
    assert project.rows("shared") == project.rows("other") == [(2, "b"), (3, "a")]
    assert (conf.get(MODE), conf.get(KEPT, None)) == ("static", None)


@pytest.mark.parametrize("publish", ["branch", "direct"])
def test_a_profile_that_takes_back_how_a_run_overwrites_is_refused(
    project: Scenario, method: str, publish: str
) -> None:
    """With `method: session`, dbt-spark sets what the profile says again before each statement."""
    if method == "thrift":
        pytest.skip("each connection has what the profile says once")
    from pyspark.sql import SparkSession

    rows = [(1, "a"), (2, "b")]
    profiles = project.folder / "profiles.yml"
    before = profiles.read_text(encoding="utf-8")
    select = ("--select", "taken_back")
    project.sql(f"drop table if exists lake.{project.schema}.taken_back")
    project.model("select 1 as id, 'a' as p union all select 2, 'b'", "taken_back", **OVERWRITES)
    project.run(*select)
    project.model("select 3 as id, 'b' as p, 5 as n", "taken_back", publish=publish, **OVERWRITES)
    # Each would replace other rows than the run means: all of them, or those of one partition alone.
    for given, wanted, arguments in (("static", "DYNAMIC", []), ("dynamic", "STATIC", ["--full-refresh"])):
        profile = yaml.safe_load(before)
        profile["case"]["outputs"]["t"]["server_side_parameters"] = {MODE: given}
        profiles.write_text(yaml.safe_dump(profile), encoding="utf-8")
        run = project.fail(*select, *arguments)
        profiles.write_text(before, encoding="utf-8")
        SparkSession.builder.getOrCreate().conf.unset(MODE)
        assert (
            f"{project.schema}.taken_back cannot be overwritten: `{MODE}` was set to {wanted}, which this "
            f"run needs, and is {given.upper()} again. With `method: session`, dbt-spark sets what "
            "`server_side_parameters` of the profile have again before each statement. Take it out of "
            "there: this package sets it for each model that needs it. So nothing was written."
        ) in run.message
        assert project.rows("taken_back") == rows
    project.run(*select)
    assert project.rows("taken_back") == [(1, "a", None), (3, "b", 5)]


def test_all_columns_that_a_full_refresh_takes_away_are_named(project: Scenario) -> None:
    """dbt-spark's list of a table's columns ends before one that begins like a comment."""
    config: dict[str, Any] = {**ADDS, "full_refresh_schema": "replace"}
    project.model("select 1 as id, 2 as `# sold`, 3 as z", "numbered", **config)
    select = ("--select", "numbered", "--full-refresh")
    project.run(*select)
    project.model("select 1 as id", "numbered", **config)
    frozen = project.fail(*select, "--vars", "sparkevolve_freeze_schema: true")
    assert (
        "would change the table's schema: leave out column `# sold` int; leave out column `z` int. Take"
    ) in frozen.message
    # So is a change of a type, and of nothing but the order, in a plan, too.
    freeze = ("--vars", "{sparkevolve_freeze_schema: true, sparkevolve_plan_only: true}")
    for sql, change in (
        ("select 1 as id, 2L as `# sold`, 3 as z", "change `# sold` from int to bigint"),
        ("select 1 as id, 3 as z, 2 as `# sold`", "put its columns in the order `id`, `z`, `# sold`"),
    ):
        project.model(sql, "numbered", **config)
        for variables in (("--vars", "sparkevolve_freeze_schema: true"), freeze):
            assert f"would change the table's schema: {change}. Take" in project.fail(*select, *variables).log
    project.model("select 1 as id", "numbered", **config)
    plan = project.run(*select, "--vars", "sparkevolve_plan_only: true")
    assert "\n  column     `id`\n  loses      `# sold`\n  loses      `z`" in plan.log
    assert project.columns("numbered") == ["id", "# sold", "z"]
    run = project.run(*select)
    assert (
        f"The full refresh of {project.schema}.numbered takes away the columns that the model no longer "
        "returns: # sold, z, since full_refresh_schema is `replace`."
    ) in run.warnings
    assert project.columns("numbered") == ["id"]


def test_settings_that_reach_new_tables_only_are_told_later(project: Scenario) -> None:
    elsewhere = project.folder / "elsewhere"
    own = {
        "location_root": str(elsewhere),
        "options": {"write.format.default": "orc"},
        "partition_by": ["id"],
        "tblproperties": {"whose 'name'": "it's \\ one"},
    }
    config: dict[str, Any] = {**ADDS, "meta": {"sparkevolve": own}}
    project.model("select 1 as id", "placed", **config)
    first = project.run("--select", "placed")
    assert [text for text in first.warnings if "placed" in text] == []
    table = project.table("placed")
    assert table.location().removeprefix("file:") == f"{elsewhere}/placed"
    assert table.properties["write.format.default"] == "orc"
    assert [field.name for field in table.spec().fields] == ["id"]
    where, node = f"{project.schema}.placed: ", "model.case.placed: "
    # Where warnings are errors, all of a plan's come at once, before the table is changed.
    own = {"options": {"write.format.default": "avro"}, "unique_key": ["id", "n"]}
    config["unique_key"] = None
    project.model("select 1 as id, 2 as n", "placed", **{**config, "meta": {"sparkevolve": own}})
    strict = project.dbt("--warn-error", "run", "--select", "placed")
    assert not strict.success
    assert "`), so nothing was written:\n" in strict.message
    assert f"  * {where}the unique_key column `n` is new. It is NULL" in strict.message
    assert f"  * {where}`options` of the model reach a table when it is made" in strict.message
    assert project.table("placed").metadata_location == table.metadata_location
    assert [name for name in project.tables() if "__dbt_tmp_" in name] == []
    own = {
        "location_root": "s3://other",
        "options": {"write.format.default": "avro"},
        "partition_by": ["bucket(4, id)"],
        # One of them it has.
        "tblproperties": {"note": "it's new", "whose 'name'": "it's \\ one"},
        "merge_update_columns": ["id"],
        "buckets": 4,
        "dead_letter_limit": 3,
        "incremental_strategy": "append",
        "incremental_predicates": ["id > 1"],
    }
    project.model("select 1 as id", "placed", **{**config, "meta": {"sparkevolve": own}, "zorder": ["id"]})
    run = project.run("--select", "placed")
    settable = f"Use `ALTER TABLE {project.schema}.placed SET TBLPROPERTIES`."
    reach = "of the model reach a table when it is made"
    assert sorted(text for text in run.warnings if "placed: " in text) == sorted(
        [
            f"{node}`zorder` has no effect with sparkevolve: Iceberg's `rewrite_data_files` sorts files, in "
            "a maintenance job of yours.",
            f"{node}`buckets` has no effect without `clustered_by`.",
            f"{node}`dead_letter_limit` has no effect without `on_bad_rows: dead_letter`: a bad row fails "
            "the run.",
            f"{node}`merge_update_columns` has no effect with the incremental_strategy append: it is for "
            "merge.",
            f"{node}`incremental_predicates` has no effect with the incremental_strategy append: it is for "
            "delete+insert, merge, microbatch.",
            f"{where}The model is partitioned by bucket(4, id) and the table by id. The rows are written as "
            "the table is partitioned: change it with `ALTER TABLE`, or make `partition_by` what the table "
            "has.",
            f"{where}`location_root` of the model says s3://other/placed, and the table stays in "
            f"{table.location()}. Take `location_root` out, or make it what the table has.",
            f"{where}`options` {reach}, and this one lacks write.format.default = avro. {settable}",
            f"{where}`tblproperties` {reach}, with this package, and this one lacks note = it's new. "
            f"{settable}",
        ]
    )
    assert project.rows("placed") == [(1,), (1,)]


def test_audits_that_cannot_be_evaluated_are_named(project: Scenario) -> None:
    # Texts of the model are in a plan of Spark's, too, and what looks like an error among them is none.
    fine = ["n > 0", "concat('Exception: ', n) <> 'Error occurred during query planning: '"]
    project.model("select 1 as id, 1 as n", "told", **ADDS, audits=fine)
    project.run("--select", "told")
    before = project.state("told")
    project.model("select 1 as id, 2 as m", "told", **ADDS, audits=["m > 0", "nope > 1", "m + 1"])
    for arguments in ((), ("--full-refresh",)):
        plan = project.fail("--select", "told", *arguments, "--vars", "sparkevolve_plan_only: true").message
        for audit in ("nope > 1", "m + 1"):
            assert f"Spark cannot evaluate one of the model's `audits` ({audit}) over the columns" in plan
        assert "m > 0" not in plan.partition("would be refused")[2]
    run = project.fail("--select", "told")
    message = run.message.partition("\n  > in macro")[0]
    assert f"The model's audits cannot be evaluated for {project.schema}.told." in message
    assert "Nothing was written." in message
    assert "  * nope > 1: " in message
    assert "UNRESOLVED_COLUMN" in message
    assert "  * m + 1: " in message
    assert "* m > 0" not in message
    assert "\tat " not in message
    assert project.state("told") == before
    assert [name for name in project.tables() if "__dbt_tmp_" in name] == []


def test_variables_are_seen_wherever_they_stand_and_near_misses_are_told(project: Scenario) -> None:
    project.model("select 1 as id", "still", **ADDS)
    project.run("--select", "still")
    before = project.state("still")
    project.model("select 1 as id, 2 as n", "still", **ADDS)
    for vars_ in ({"sparkevolve_freeze_schema": True}, {"sparkevolve": {"sparkevolve_freeze_schema": "yes"}}):
        project.write_project(vars=vars_)
        run = project.fail("--select", "still", "--full-refresh")
        assert "`sparkevolve_freeze_schema` is true in this run" in run.message
        assert "full_refresh_schema: replace" not in run.message, "that is refused in such a run, too"
    project.write_project(vars={"sparkevolve": {"sparkevolve_plan_only": True}})
    assert "planned, nothing was changed" in project.run("--select", "still").log
    project.write_project()
    assert project.state("still") == before
    run = project.run("--select", "still", "--vars", "{sparkevolve_plan_onyl: true, other: 1}")
    assert [text for text in run.warnings if "variable" in text] == [
        "The variable `sparkevolve_plan_onyl` has no effect: sparkevolve reads `sparkevolve_freeze_schema` "
        "and `sparkevolve_plan_only`. Did you mean `sparkevolve_plan_only`?"
    ]
    assert project.rows("still") == [(1, 2)]


@pytest.mark.parametrize("setting", ["spark.wap.id", "spark.wap.branch"])
def test_a_session_that_keeps_rows_apart_is_refused(project: Scenario, setting: str) -> None:
    """In each way to write: the run would succeed, and nobody would see its rows."""
    name = setting.replace(".", "_")
    wap: dict[str, Any] = {**ADDS, "tblproperties": {"write.wap.enabled": "true"}}
    apart, together = {"pre_hook": f"set {setting}=audit"}, {"pre_hook": f"reset {setting}"}
    message = (
        f"What was loaded for {project.schema}.{name} could not be published: the table has "
        f"`write.wap.enabled`, and this session `{setting}`, by which what it writes is kept out of `main`, "
        "and of the branch of a run. Unset it, or take the property away. Nothing was written."
    )
    project.model("select 1 as id, 'a' as v", name, **wap, **apart)
    assert message in project.fail("--select", name).message
    assert name not in project.tables()
    project.model("select 1 as id, 'a' as v", name, **wap, **together)
    project.run("--select", name)
    before = project.state(name)
    for config, arguments in (
        ({}, []),
        ({"publish": "direct"}, []),
        ({"publish": "direct"}, ["--full-refresh"]),
        # The table has the property, the model no longer.
        ({"full_refresh_schema": "replace", "tblproperties": {}}, ["--full-refresh"]),
    ):
        project.model("select 1 as id, 'z' as v", name, **{**wap, **apart, **config})
        assert message in project.fail("--select", name, *arguments).message
        assert (config, project.state(name)) == (config, before)
    project.model("select 2 as id, 'b' as v", name, **wap, **together)
    project.run("--select", name)
    assert project.rows(name) == [(1, "a"), (2, "b")]
    assert [table for table in project.tables() if "__dbt_tmp_" in table] == []


def test_properties_that_spark_does_not_show_are_not_said_to_be_missing(project: Scenario) -> None:
    given = {"write.metadata.metrics.column.token": "full", "team.page": "its URL is known"}
    project.model("select 1 as id, 'a' as token", "unshown", **ADDS, tblproperties=given)
    project.run("--select", "unshown")
    properties = project.table("unshown").properties
    assert {key: properties.get(key) for key in given} == given
    project.model("select 2 as id, 'b' as token", "unshown", **ADDS, tblproperties={**given, "url": "new"})
    lacks = (
        "`tblproperties` of the model reach a table when it is made, with this package, and this one lacks "
    )
    warnings = project.run("--select", "unshown").warnings
    assert [text.partition(lacks)[2] for text in warnings if lacks in text] == [
        f"url = new. Use `ALTER TABLE {project.schema}.unshown SET TBLPROPERTIES`."
    ]
    project.model("select 3 as id, 'c' as token", "unshown", **ADDS, tblproperties=given)
    strict = project.dbt("--warn-error", "run", "--select", "unshown")
    assert strict.success, strict.message
    assert project.rows("unshown") == [(1, "a"), (2, "b"), (3, "c")]


def test_a_strategy_that_the_tables_properties_forbid_is_refused_before_a_change(project: Scenario) -> None:
    """Spark would say so once the column is added, and in each run again."""
    any_schema = {"write.spark.accept-any-schema": "true"}
    first = {"format-version": "1"}
    cases: dict[str, tuple[dict[str, str], dict[str, Any], str]] = {
        "merged_any": (
            any_schema,
            {"incremental_strategy": "merge"},
            "The table has the property `write.spark.accept-any-schema`, with which Spark can run no MERGE, "
            "the incremental_strategy of the model. Take the property away with `ALTER TABLE … UNSET "
            "TBLPROPERTIES ('write.spark.accept-any-schema')`, or set `incremental_strategy: delete+insert`.",
        ),
        "merged_v1": (first, {"incremental_strategy": "merge"}, "write.merge.mode"),
        "deleted_v1": (first, {}, "write.delete.mode"),
        "deleted_any": (any_schema, {}, ""),
        "added_v1": (first, {"unique_key": None}, ""),
    }
    for name, (properties, config, _) in cases.items():
        project.model("select 1 as id, 'a' as v", name, **ADDS, **config, tblproperties=properties)
    project.run("--select", *cases)
    modes = "'write.delete.mode' = 'merge-on-read', 'write.merge.mode' = 'merge-on-read'"
    for name in cases:
        project.sql(f"alter table {project.relation(name)} set tblproperties ({modes})")
    before = {name: project.state(name) for name in cases}
    for name, (_, config, _) in cases.items():
        project.model("select 'n' as v, 1 as id, 2 as n", name, **ADDS, **config)
    said = project.fail("--select", *cases).said
    for name, (_, _, why) in cases.items():
        if not why:
            assert said[name] == "OK", name
            continue
        if why.startswith("write."):
            why = (
                f"The table has Iceberg's format version 1 and `{why}` = 'merge-on-read', for which Iceberg "
                "needs version 2, so Spark can delete no rows of it. Change it with `ALTER TABLE … SET "
                f"TBLPROPERTIES ('{why}' = 'copy-on-write')`, or upgrade the table: `ALTER TABLE … SET "
                "TBLPROPERTIES ('format-version' = '2')`."
            )
        assert "nothing was written to it:" in said[name]
        assert f"  * {why}" in said[name]
        assert project.state(name) == before[name]
    assert project.rows("deleted_any") == [(1, "n", 2)]
    assert project.rows("added_v1") == [(1, "a", None), (1, "n", 2)]
