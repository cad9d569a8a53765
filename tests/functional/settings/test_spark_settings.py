"""Settings of the Spark session: what is written means the same under all, or they are refused by name."""

import re
from collections.abc import Callable
from datetime import date, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml

from dbt.adapters.sparkevolve.errors import ProfileError
from dbt.adapters.sparkevolve.iceberg.catalog_settings import resolve
from dbt.adapters.sparkevolve.spark.jars import jar_folders
from dbt.adapters.sparkevolve.spark.java import user_home
from dbt.adapters.sparkevolve.spark.session import SESSIONS
from dbt.adapters.sparkevolve.spark.settings_checks import check_extensions
from tests.functional.harness import Scenario, sort_rows

Factory = Callable[..., Scenario]
OVERWRITE = "spark.sql.sources.partitionOverwriteMode"
ESCAPED = "spark.sql.parser.escapedStringLiterals"

# What a literal could get wrong, as SQL that means the same under every setting.
ODD_TEXTS = ["a\\b", "ends in \\", "it's", "'\\''", "two\nlines", "😀 \\u0041", "nul\0nul", 'say "x"', "\\%_"]
ODD_TEXTS += ["${spark.app.name}"]


def text_sql(text: str) -> str:
    return f"cast(X'{text.encode().hex()}' as string)"


def test_an_extension_that_spark_passes_over_is_refused(
    profile_target: dict[str, Any], method: str, tmp_path: Path
) -> None:
    """It may be an authoriser's: no class, one that is none, or one that lacks another."""
    if method == "thrift":
        pytest.skip("a server is configured by its operator")
    lake = resolve("lake", profile_target["catalog_properties"], tmp_path)
    # Spark keeps those that it has begun with.
    session = SESSIONS.get(lake, profile_target["spark_config"], {}, tmp_path)
    stated = {**profile_target["spark_config"], "spark.sql.extensions": "com.example.Authoriser"}
    expected = r"names com\.example\.Authoriser, and no jar of Spark's has such a class"
    with pytest.raises(ProfileError, match=expected):
        SESSIONS.get(lake, stated, {}, tmp_path)
    catalog = session.conf.get("spark.sql.catalog.lake")
    expected = rf"names {re.escape(str(catalog))}, and that class is no extension of Spark's"
    with pytest.raises(ProfileError, match=expected):
        check_extensions(session, {"spark.sql.extensions": str(catalog)})


@pytest.mark.parametrize("mode", ["static", "dynamic"])
@pytest.mark.parametrize("place", ["server_side_parameters", "spark_config", "hook"])
def test_the_overwrite_mode_is_that_of_the_load(
    scenario_factory: Factory, profile_target: dict[str, Any], method: str, mode: str, place: str
) -> None:
    """Neither does a full refresh leave rows, nor does a batch replace other partitions than its own."""
    if place == "spark_config" and method == "thrift":
        pytest.skip("a server is configured by its operator")
    given = {**profile_target.get(place, {}), OVERWRITE: mode} if place != "hook" else {}
    scenario = scenario_factory(**({place: given} if given else {}))
    hooks = {"pre_hook": f"set {OVERWRITE}={mode}"} if place == "hook" else {}
    config = {"incremental_strategy": "insert_overwrite", "partition_by": "p", "unique_key": None, **hooks}
    scenario.model("select 1 as id, 'a' as p union all select 2, 'b' union all select 3, 'b'", **config)
    scenario.run()
    # What the load has set is taken back: to what the profile or the hook says.
    log = f"{{% do log('mode=' ~ run_query('set {OVERWRITE}').rows[0][1], info=true) %}}"
    after = "{% if execute %}" + log + "{% endif %}"
    scenario.model("select 4 as id, 'b' as p", **config, post_hook=after)
    assert f"mode={mode}" in scenario.run().log.lower()
    assert scenario.rows() == [(1, "a"), (4, "b")]
    scenario.model("select 5 as id, 'c' as p", **config)
    scenario.run("--full-refresh")
    assert scenario.rows() == [(5, "c")]


@pytest.mark.parametrize("escaped", ["true", "false"])
def test_a_text_is_the_same_under_each_way_to_read_literals(scenario_factory: Factory, escaped: str) -> None:
    """Of keys, by which rows are replaced, and of a seed; also where `${x}` would be replaced."""
    scenario = scenario_factory(
        server_side_parameters={ESCAPED: escaped, "spark.sql.variable.substitute": "true"}
    )

    def rows(value: int) -> str:
        return " union all ".join(f"select {text_sql(key)} as k, {value} as v" for key in ODD_TEXTS)

    # One key a batch: its bounds are literals.
    alone = {f"alone_{n}": key for n, key in enumerate([*ODD_TEXTS[:3], ODD_TEXTS[-1]])}
    scenario.model(rows(1), unique_key="k")
    for name, key in alone.items():
        scenario.model(f"select {text_sql(key)} as k, 1 as v", name, unique_key="k")
    csv = "id,c\n" + "".join(
        '{},"{}"\n'.format(n, text.replace('"', '""')) for n, text in enumerate(ODD_TEXTS) if "\0" not in text
    )
    scenario.file("seeds/s.csv", csv)
    build = scenario.dbt("build")
    assert build.success, build.message
    assert scenario.rows("s") == [(n, text) for n, text in enumerate(ODD_TEXTS) if "\0" not in text]
    for name, key in alone.items():
        scenario.model(f"select {text_sql(key)} as k, 2 as v", name, unique_key="k")
    scenario.model(rows(3), unique_key="k")
    scenario.run()
    assert {name: scenario.rows(name) for name in alone} == {name: [(key, 2)] for name, key in alone.items()}
    assert scenario.rows() == sort_rows([(key, 3) for key in ODD_TEXTS])
    # And where no expression may stand.
    odd = "it's \\d, \\n and ${spark.app.name}"
    described = {"name": "told", "description": odd, "columns": [{"name": "id", "description": odd}]}
    scenario.file("models/told.yml", yaml.safe_dump({"models": [described]}))
    docs = {"persist_docs": {"relation": True, "columns": True}, "tblproperties": {"note": odd}}
    scenario.model("select 1 as id", "told", unique_key=None, **docs)
    scenario.run("--select", "told")
    properties = scenario.table("told").properties
    assert [properties["comment"], properties["note"], scenario.docs("told")["id"]] == [odd] * 3


@pytest.mark.parametrize(
    ("type_", "zone"),
    [
        ("TIMESTAMP_NTZ", "America/New_York"),
        ("TIMESTAMP_NTZ", "Asia/Kolkata"),
        ("TIMESTAMP_LTZ", "America/New_York"),
    ],
)
def test_a_moment_is_the_same_whatever_a_timestamp_is(
    scenario_factory: Factory, type_: str, zone: str
) -> None:
    """A key and the window of a microbatch, at the hour that New York has twice."""
    scenario = scenario_factory(
        server_side_parameters={"spark.sql.timestampType": type_, "spark.sql.session.timeZone": zone}
    )
    at = "cast('{}+00:00' as timestamp_ltz)"
    first, second = "2024-11-03 05:30:00", "2024-11-03 06:30:00"  # both are 01:30 in New York
    moments = [datetime.fromisoformat(f"{text}+00:00") for text in (first, second)]
    scenario.model(
        f"select {at.format(first)} as k, 1 as v union all select {at.format(second)}, 1", unique_key="k"
    )
    source = (
        f"select 1 as id, {at.format(first)} as ts, cast('{first}' as timestamp_ntz) as wall "
        f"union all select 2, {at.format(second)}, cast('{second}' as timestamp_ntz)"
    )
    scenario.file("models/src.sql", "{{ config(materialized='table', event_time='ts') }}\n" + source)
    batches = {
        "unique_key": None,
        "incremental_strategy": "microbatch",
        "begin": "2024-11-03",
        "batch_size": "hour",
    }
    for name, column in (("m", "ts"), ("w", "wall")):
        scenario.model("select * from {{ ref('src') }}", name=name, event_time=column, **batches)
    scenario.run("--event-time-start", "2024-11-03 05:00:00", "--event-time-end", "2024-11-03 07:00:00")
    assert scenario.types() == {"k": "timestamptz", "v": "int"}
    scenario.model(f"select {at.format(second)} as k, 2 as v", unique_key="k")
    scenario.run("--event-time-start", "2024-11-03 06:00:00", "--event-time-end", "2024-11-03 07:00:00")
    assert scenario.rows() == [(moments[0], 1), (moments[1], 2)]
    wanted = [(n, m, m.replace(tzinfo=None)) for n, m in enumerate(moments, start=1)]
    assert scenario.rows("m") == wanted
    assert scenario.rows("w") == wanted


def test_a_batch_within_a_day_is_refused_by_a_date(scenario: Scenario) -> None:
    """Nothing of a day could be replaced by an hour: the rows would be there twice after a second run."""
    config = {"unique_key": None, "incremental_strategy": "microbatch", "event_time": "D"}
    by_hour = {**config, "begin": "2024-01-02", "batch_size": "hour"}
    scenario.model("select 1 as id, date'2024-01-02' as d", **by_hour)
    hour = ("--event-time-start", "2024-01-02 05:00:00", "--event-time-end", "2024-01-02 06:00:00")
    run = scenario.dbt("run", *hour)
    assert not run.success
    assert (
        "The event_time `d` is a date, and this batch is of the time from 2024-01-02 05:00:00 to "
        "2024-01-02 06:00:00 UTC, which begins or ends within a day"
    ) in run.log
    assert scenario.tables() == []
    scenario.model("select 1 as id, date'2024-01-02' as d", **{**by_hour, "batch_size": "day"})
    days = ("--event-time-start", "2024-01-02", "--event-time-end", "2024-01-03")
    scenario.run(*days)
    scenario.run(*days)
    before = scenario.state()
    assert scenario.rows() == [(1, date(2024, 1, 2))]
    # A row of another day is not replaced, which is said.
    scenario.model("select 1 as id, date'2024-01-01' as d", name="early", **{**by_hour, "batch_size": "day"})
    scenario.run("-s", "early", *days)
    assert (
        "The batch of 2024-01-02 to 2024-01-03 has rows with `d` from 2024-01-01 to 2024-01-01."
    ) in scenario.run("-s", "early", *days).log
    scenario.model("select 2 as id, date'2024-01-02' as d", **by_hour)
    assert not scenario.dbt("run", *hour).success
    scenario.model("select 1 as id, '2024-01-02' as d", **{**by_hour, "batch_size": "day"})
    run = scenario.dbt("run", *days)
    assert "The event_time `d` is of type string, by which the rows of a batch cannot be found." in run.log
    assert scenario.state() == before


@pytest.mark.parametrize(
    ("setting", "value"), [("spark.sql.caseSensitive", "true"), ("spark.sql.storeAssignmentPolicy", "LEGACY")]
)
def test_a_setting_that_would_make_a_run_fail_half_way_is_refused(
    scenario_factory: Factory, scenario: Scenario, setting: str, value: str
) -> None:
    given = scenario_factory(server_side_parameters={setting: value})
    given.model("select 1 as id")
    run = given.dbt("run")
    assert not run.success
    assert f"The Spark setting `{setting}` is `{value}`." in run.message + run.log
    # In a hook, where the session goes on for others: it is as it was.
    scenario.model("select 1 as id")
    scenario.run()
    before = scenario.state()
    scenario.model("select 2 as ID", pre_hook=f"set {setting}={value}")
    assert f"The Spark setting `{setting}` is `{value}`." in scenario.fail().message
    assert scenario.state() == before
    scenario.model("select 2 as ID")
    scenario.run()
    assert scenario.rows() == [(1,), (2,)]


STRANGE = {
    "ansi": {
        "spark.sql.ansi.enabled": "true",
        "spark.sql.ansi.doubleQuotedIdentifiers": "true",
        "spark.sql.ansi.enforceReservedKeywords": "true",
        "spark.sql.defaultCatalog": "spark_catalog",
        "spark.sql.sources.default": "orc",
        "spark.sql.storeAssignmentPolicy": "STRICT",
        "spark.sql.crossJoin.enabled": "false",
        "spark.sql.datetime.java8API.enabled": "true",
        "spark.sql.orderByOrdinal": "false",
        "spark.sql.groupByOrdinal": "false",
        ESCAPED: "true",
    },
    "iceberg": {
        "spark.sql.catalog.lake.cache-enabled": "true",
        "spark.sql.iceberg.vectorization.enabled": "false",
        "spark.sql.iceberg.check-nullability": "false",
        "spark.sql.iceberg.check-ordering": "false",
        "spark.sql.iceberg.merge-schema": "true",
        "spark.sql.iceberg.data-planning-mode": "distributed",
        "spark.sql.iceberg.delete-planning-mode": "distributed",
        "spark.sql.iceberg.planning.preserve-data-grouping": "true",
        "spark.sql.iceberg.distribution-mode": "range",
        "spark.sql.iceberg.aggregate-push-down.enabled": "false",
        "spark.sql.iceberg.executor-cache.enabled": "false",
        "spark.sql.iceberg.locality.enabled": "true",
        "spark.sql.iceberg.report-column-stats": "false",
        "spark.sql.iceberg.identifier-fields-rely": "true",
        "spark.sql.iceberg.snapshot-property.team": "us",
        "spark.wap.branch": "not_for_these_tables",
    },
    "legacy": {
        "spark.sql.ansi.enabled": "false",
        "spark.sql.legacy.charVarcharAsString": "true",
        "spark.sql.legacy.timeParserPolicy": "LEGACY",
        "spark.sql.legacy.keepCommandOutputSchema": "true",
        "spark.sql.legacy.castComplexTypesToString.enabled": "true",
        "spark.sql.legacy.setopsPrecedence.enabled": "true",
        "spark.sql.legacy.inSubqueryNullability": "true",
        "spark.sql.legacy.raiseErrorWithoutErrorClass": "true",
        "spark.sql.legacy.interval.enabled": "true",
        "spark.sql.legacy.ctePrecedencePolicy": "LEGACY",
        "spark.sql.legacy.consecutiveStringLiterals.enabled": "true",
        "spark.sql.mapKeyDedupPolicy": "LAST_WIN",
        "spark.sql.parquet.outputTimestampType": "INT96",
        "spark.sql.parquet.writeLegacyFormat": "true",
        "spark.sql.session.timeZone": "Asia/Kolkata",
    },
}


@pytest.mark.parametrize("name", STRANGE)
def test_rows_are_the_same_under_other_settings(scenario_factory: Factory, name: str) -> None:
    """Widened, padded, kept and nested values, a seed and a snapshot."""
    scenario = scenario_factory(server_side_parameters=STRANGE[name])
    keep = {"removed_columns": "keep", "audits": ["id > 0"], "tblproperties": {"a b": "plain"}}
    scenario.model(
        "select 1 as id, cast(7 as int) as n, named_struct('x', 1, 'y', 'old') as s, 'kept' as gone, "
        "timestamp'2024-01-01 00:00:00' as t",
        **keep,
    )
    scenario.file("seeds/s.csv", "id,d,f,b\n1,2024-02-29,1.5,true\n2,,,")
    scenario.file(
        "macros/schema.sql", "{% macro generate_schema_name(n, node) %}{{ target.schema }}{% endmacro %}"
    )
    settings = "schema=target.schema, unique_key='id', strategy='timestamp', updated_at='d'"
    head = "{% snapshot snap %}{{ config(" + settings + ", hard_deletes='invalidate') }}"
    scenario.file("snapshots/snap.sql", head + "select id, d, n from {{ ref('src') }}{% endsnapshot %}")
    source = "{{ config(materialized='table') }} select 1 as id, date'2024-01-01' as d, cast(1 as int) as n"
    scenario.file("models/src.sql", source)
    build = scenario.dbt("build")
    assert build.success, build.message or build.log
    scenario.model(
        "select 1 as id, 7000000000 as n, named_struct('Y', 'new', 'z', 2.5D) as s union all "
        "select 2, cast(null as bigint), cast(null as struct<Y:string,z:double>)",
        **keep,
    )
    later = source.replace("2024-01-01", "2024-01-02").replace("cast(1 as int)", "8000000000")
    scenario.file("models/src.sql", later + " union all select 2, date'2024-01-01', 5")
    build = scenario.dbt("build")
    assert build.success, build.message or build.log
    old = {"x": 1, "y": "new", "z": 2.5}
    found = [row[:4] for row in scenario.rows()]
    assert found == [(1, 7000000000, old, "kept"), (2, None, None, None)]
    assert scenario.rows("s") == [(1, date(2024, 2, 29), 1.5, True), (2, None, None, None)]
    versions = scenario.table("snap").scan(selected_fields=("id", "n", "dbt_valid_from", "dbt_valid_to"))
    rows = sort_rows([tuple(row.values()) for row in versions.to_arrow().to_pylist()])
    first, second = date(2024, 1, 1), date(2024, 1, 2)
    assert rows == [(1, 1, first, second), (1, 8000000000, second, None), (2, 5, first, None)]


def test_a_plan_is_shown_whole_to_tell_whether_a_model_reads_its_table(
    scenario_factory: Factory, method: str
) -> None:
    """Another writer commits in each first attempt: a model that reads itself is evaluated again."""
    scenario = scenario_factory(
        server_side_parameters={
            "spark.sql.maxPlanStringLength": "100",
            "spark.sql.debug.maxToStringFields": "1",
            "spark.sql.redaction.string.regex": "max_by_view|t",
        }
    )
    scenario.model("select 1 as id, cast(1 as bigint) as n")
    scenario.run()
    view = f"{scenario.relation('max_by_view')}"
    scenario.sql(f"create view {view} as select max(n) as n from {scenario.relation()}")
    columns = ", ".join(f"{n} as c{n}" for n in range(40))
    from dbt.adapters.sparkevolve.load.queries import Queries
    from dbt.adapters.sparkevolve.load.runner import LoadRunner

    seen: list[bool] = []
    reads = Queries.reads

    def noted(self: Queries, sql: str, target: Any) -> bool:
        seen.append(reads(self, sql, target))
        return seen[-1]

    begin = LoadRunner.evolve
    meddled: list[int] = []

    def evolve(self: LoadRunner, *arguments: Any) -> Any:
        load = begin(self, *arguments)
        if not meddled:
            meddled.append(1)
            scenario.sql(f"insert into {scenario.relation()} values (100, 100)")
        return load

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Queries, "reads", noted)
        patch.setattr(LoadRunner, "evolve", evolve)
        scenario.model(f"select 2 as id, n + 1 as n from (select *, {columns} from {view}) as wide")
        scenario.run()
    assert seen == [True]
    assert scenario.rows() == [(1, 1), (2, 101), (100, 100)]


def test_a_further_profile_of_a_process_has_settings_of_its_own(
    scenario_factory: Factory, profile_target: dict[str, Any], method: str, tmp_path: Path
) -> None:
    if method != "session":
        pytest.skip("each connection to a server has a session of its own")
    # The one is of Java, the other of the whole process, and a number to Spark.
    config = {**profile_target["spark_config"], "spark.driver.memory": "3g"}
    config["spark.sql.ui.retainedExecutions"] = "7"
    # The same jars by other paths, as after a first run, in which Spark has downloaded them.
    (tmp_path / "jars").mkdir()
    for folder in jar_folders(Path(config.get("spark.jars.ivy") or user_home())):
        for jar in folder.glob("*.jar"):
            if not (tmp_path / "jars" / jar.name).exists():
                (tmp_path / "jars" / jar.name).symlink_to(jar)
    config["spark.jars.ivy"] = str(tmp_path)
    del config["spark.sql.shuffle.partitions"]
    scenario = scenario_factory(spark_config=config)
    log = "{% do log('partitions=' ~ run_query('set spark.sql.shuffle.partitions').rows[0][1], info=true) %}"
    scenario.model("select 1 as id", post_hook="{% if execute %}" + log + "{% endif %}")
    said = scenario.run().log
    assert "partitions=200" in said
    for name in ("spark.driver.memory", "spark.sql.ui.retainedExecutions"):
        assert f"`{name}` of this profile has no effect: Spark runs with another value" in said
    assert "`spark.jars` of this profile" not in said
