"""What the package loads and refuses, and what it says, on stock dbt-spark."""

import re
from collections.abc import Callable
from datetime import date
from typing import Any

import pytest
import yaml

from tests.functional.harness import Scenario

ADDS = {"on_schema_change": "append_new_columns"}
UNREADABLE = [
    *("DBT_INTERNAL_DEST.id > 0", "DBT_INTERNAL_DEST.dai is not null"),
    "DBT_INTERNAL_DEST.id > rand() - 1",
]


@pytest.mark.core
def test_columns_come_and_go(project: Scenario) -> None:
    first = "select 1 as id, 'a' as b, cast(10 as int) as c union all select 2, 'b', 20"
    project.model(first, partition_by=["day(c)", "at"], **ADDS)
    said = project.fail().message
    assert "`partition_by` has days(c), and `c` is of type int: `days` takes a date or a timestamp." in said
    assert "`partition_by` has at, and the model returns no `at`, but `id` int, `b` string, `c` int." in said
    assert project.tables() == []
    project.model(first, **ADDS)
    project.run()
    assert project.rows() == [(1, "a", 10), (2, "b", 20)]
    ids = project.field_ids()
    project.model("select 2 as id, cast(1 as bigint) as c, date '2024-01-01' as d", **ADDS)
    run = project.run()
    assert project.columns() == ["id", "b", "c", "d"]
    assert [row[:3] for row in project.rows()] == [(1, "a", 10), (2, None, 1)]
    assert {name: number for name, number in project.field_ids().items() if name != "d"} == ids
    assert "add column `d` date" in run.log
    assert "column `b` is not in the model, padded with NULL" in run.log
    assert project.tables() == ["t"]
    assert list(project.table().metadata.refs) == ["main"]


@pytest.fixture(scope="module")
def odd(package_factory: Callable[..., Scenario]) -> Scenario:
    """A project whose table somebody has made, with columns that are hard to read."""
    project = package_factory()
    project.sql(f"create schema if not exists lake.{project.schema}")
    project.sql(
        f"create table {project.relation()} (id bigint not null comment 'it''s, \\n  b string not null', "
        "`b:int, c` struct<`x y`: int not null comment 'in, y: INT NOT NULL', l: array<struct<q: int>>>, "
        "`NOT NULL` timestamp_ntz not null, ts timestamp) using iceberg "
        "partitioned by (days(ts), bucket(4, id)) tblproperties ('format-version' = '2')"
    )
    return project


ALL = (
    "select cast(1 as bigint) as id, named_struct('x y', 1, 'l', array(named_struct('q', 1))) as `b:int, c`, "
    "timestamp_ntz '2024-01-01 00:00:00' as `NOT NULL`, timestamp '2024-01-01 00:00:00' as ts"
)


def test_a_table_with_odd_columns_is_read(odd: Scenario) -> None:
    odd.model(ALL, **ADDS)
    run = odd.run()
    assert len(odd.rows()) == 1
    # Of top-level columns the batch tells that there is no NULL in them, of fields nobody does.
    changes = re.findall(r"^case_\w+\.t: (.*)$", run.log, re.MULTILINE)
    assert changes == ["let `b:int, c`.`x y` be NULL"]
    required = [f.name for f in odd.table().schema().fields if f.required]
    assert required == ["id", "NOT NULL"]
    assert odd.docs()["id"] == "it's, \n  b string not null"


REFUSALS = [
    (
        f"select id, `b:int, c`, ts from ({ALL})",
        {"relax_not_null": False},
        "Column `NOT NULL` is NOT NULL in the table, and the model no longer returns it, so it cannot be "
        "padded with NULL. Return it from the model again, or set `relax_not_null: true` to make it "
        "optional.",
    ),
    (
        f"select *, 1 as ts_day from ({ALL})",
        {},
        "The model returns the new column `ts_day`, but a partition spec of the table has, or once had, the "
        "field `ts_day`, and Iceberg cannot hold both. Give the column another name in the model.",
    ),
    (
        f"select 'x' as id, `NOT NULL` from ({ALL})",
        {"unique_key": "not null"},
        "Column `id` is bigint in the table, and the model returns string. If bigint holds all its "
        "values, cast it to bigint in the model; if not, return it under a new name, fill that for old rows, "
        "and retire the old name.",
    ),
    (
        f"select 1 as other from ({ALL})",
        {},
        "The unique_key `id` is not produced by the model, which returns `other`. Return it from the model, "
        "or change the `unique_key`.",
    ),
    (
        f"select *, 1 as ID from ({ALL})",
        {},
        "The model returns columns whose names differ only in ways that Spark ignores: `id`, `ID`. Spark "
        "cannot tell them apart. Rename all but one of them.",
    ),
    (
        f"select * from ({ALL})",
        {"incremental_strategy": "insert_overwrite", "unique_key": None, "partition_by": "ts"},
        "The model is partitioned by ts and the table by days(ts), bucket(4, id): to overwrite the "
        "partitions that the batch has rows for would replace other rows than the model means.",
    ),
]


@pytest.mark.parametrize(("sql", "config", "message"), REFUSALS, ids=range(len(REFUSALS)))
def test_a_refused_batch_leaves_the_table_alone(
    odd: Scenario, sql: str, config: dict[str, Any], message: str
) -> None:
    before = odd.state()
    odd.model(sql, **{**ADDS, **config})
    run = odd.fail()
    assert message in run.message
    assert "nothing was written to it:" in run.message
    assert odd.state() == before
    assert odd.tables() == ["t"]


@pytest.mark.parametrize("publish", ["branch", "direct"])
def test_what_a_query_ends_with_is_cut_off(package_factory: Callable[..., Scenario], publish: str) -> None:
    project = package_factory()
    name = f"ends_{publish}"
    for number, end in enumerate((";", "; -- the end", ";\n/* end; */", ";;", " -- C:\\", "; -- C:\\\n"), 1):
        project.model(f"-- first; it's\nselect {number} as id{end}", name, publish=publish, unique_key=None)
        project.run("--select", name)
        assert project.rows(name) == [(found,) for found in range(1, number + 1)]
    project.model("select 1 as id; select 2 as id", name, publish=publish)
    assert (
        "The SQL is 2 statements with semicolons between them, and it has to be one query: put what "
        "is to run before or after it into pre-hooks and post-hooks."
    ) in project.fail("--select", name).message


def test_each_of_several_buckets_counts(package_factory: Callable[..., Scenario]) -> None:
    """Spark 3.5 shows only the last one where the package looks first."""
    project = package_factory()
    project.sql(f"create schema if not exists lake.{project.schema}")
    config = {**ADDS, "incremental_strategy": "insert_overwrite", "unique_key": None}
    two = ["bucket(4, id)", "bucket(2, `a.b`)", "kind"]
    rows = "select {0} as id, {0} as `a.b`, 'k' as kind"
    query = " union all ".join(rows.format(number) for number in (1, 2, 3))
    project.model(query, "buckets", **config, partition_by=two)
    project.run("--select", "buckets")
    project.model(f"{rows.format(1)}, 9 as x", "buckets", **config, partition_by=two)
    run = project.run("--select", "buckets")
    assert "is partitioned by" not in run.log
    # 1 and 2 are in one bucket by `id`, and by `a.b`; 3 is in another.
    after = [(1, 1, "k", 9), (3, 3, "k", None)]
    assert project.rows("buckets") == after
    project.model(f"{rows.format(1)}, 9 as x", "buckets", **config, partition_by=two[1:])
    assert (
        "The model is partitioned by bucket(2, a.b), kind and the table by bucket(4, id), bucket(2, a.b), "
        "kind: "
    ) in project.fail("--select", "buckets").message
    project.model("select 1 as `a.b`, 'k' as kind, 9 as x", "buckets", **config, partition_by=two)
    assert (
        "The table is partitioned by `id`, which the model no longer returns"
        in project.fail("--select", "buckets").message
    )
    assert project.rows("buckets") == after


def test_a_plan_says_what_a_run_would_do(odd: Scenario) -> None:
    before = odd.state()
    odd.model(f"select id, `NOT NULL`, 1 as extra from ({ALL})", **ADDS)
    run = odd.run("--vars", "sparkevolve_plan_only: true")
    for text in (
        "change     add column `extra` int",
        "pad        `b:int, c`",
        "planned, nothing was changed",
    ):
        assert text in run.log
    assert odd.state() == before
    frozen = odd.fail("--vars", "sparkevolve_freeze_schema: true")
    assert "would change the table's schema: add column `extra` int." in frozen.message
    assert odd.state() == before


def test_a_full_refresh_keeps_columns_and_audits_are_asked_first(odd: Scenario) -> None:
    odd.model("select cast(7 as bigint) as id, 1 as extra", **ADDS, audits=["id > 7"])
    before = odd.rows()
    run = odd.fail("--full-refresh")
    assert "id > 7: 1 row, such as id = 7" in run.message
    # The column is there since the batch was planned, as with the adapter.
    assert [row[:4] for row in odd.rows()] == before
    odd.model("select cast(7 as bigint) as id, 1 as extra", **ADDS, audits=["id >= 7"])
    odd.run("--full-refresh")
    assert odd.rows() == [(7, None, None, None, 1)]
    assert odd.tables() == ["t"]
    assert list(odd.table().metadata.refs) == ["main"]


def test_a_type_is_retired_and_another_takes_its_name(odd: Scenario) -> None:
    odd.model(
        "select cast(8 as bigint) as id, 'eight' as extra", **ADDS, column_renames={"extra": "extra_old"}
    )
    odd.run()
    odd.run()
    assert odd.types()["extra_old"] == "int"
    assert odd.types()["extra"] == "string"
    assert [(row[0], row[-2], row[-1]) for row in odd.rows()] == [(7, 1, None), (8, None, "eight")]
    # Two names change places in two runs, as a refusal says.
    sql = "select cast(9 as bigint) as id, 'nine' as extra_old, 9 as "
    odd.model(f"{sql} extra", **ADDS, column_renames={"extra_old": "extra", "extra": "extra_old"})
    said = re.findall(r"put `column_renames: (.*?)` (?:in|there)", odd.fail().message)
    for renames, name in zip(map(yaml.safe_load, said), ("extra_new", "extra"), strict=True):
        odd.model(f"{sql} {name}", **ADDS, column_renames=renames)
        odd.run()
    assert (odd.types()["extra"], odd.types()["extra_old"]) == ("int", "string")
    assert [row[-2:] for row in odd.rows()] == [(1, None), (None, "eight"), (9, "nine")]


def test_what_finds_rows_is_not_replaced(package_factory: Callable[..., Scenario]) -> None:
    """It would be NULL in the rows that are there: none would be found, and each key be there twice."""
    project = package_factory()
    models: dict[str, dict[str, object]] = {
        "limited": {},
        "limited_keeping": {"removed_columns": "keep"},
        "limited_direct": {"publish": "direct"},
        "limited_merge": {"incremental_strategy": "merge"},
        "keyed_by_struct": {"unique_key": "S"},
    }
    row = "select 1 as id, {} as day, named_struct('v', {}) as s"
    for name, config in models.items():
        project.model(row.format("'2024-01-02'", "'a'"), name, **ADDS, **config)
    project.run("--select", *models)
    before = {name: project.state(name) for name in models}
    late = "DBT_INTERNAL_DEST.`Day` >= date'2024-01-01'"

    def load(sql: str) -> None:
        for name, config in models.items():
            is_keyed = name == "keyed_by_struct"
            changed = row.format("'2024-01-02'", "5") if is_keyed else row.format("date'2024-01-02'", "'a'")
            renames = {"s.v": "v_old"} if is_keyed else {"day": "day_text"}
            limits = {"column_renames": renames, "incremental_predicates": [sql]}
            project.model(changed, name, **ADDS, **config, **limits)

    load(late)
    log = project.dbt("run", "--select", *models).log
    for name in models:
        refused = (
            "wants `day` (string) to become `day_text`, and the model returns `day` as date, which would be "
            f"a new column. `incremental_predicates` name it ({late}), and it would be NULL in all rows that "
            "are there: those for which the condition does not hold then would not be found, and rows of the "
            'batch be added beside them. Until it is filled for old rows ("Backfill a column" in the docs of '
            "dbt-sparkevolve), take that condition out, or let it hold for NULL too: `… OR "
            "DBT_INTERNAL_DEST.`day` IS NULL`. Or make a full refresh."
        )
        if name == "keyed_by_struct":
            refused = "which would be a new column. It is in the unique_key, and would be NULL in all rows"
        assert refused in log.partition(f"cannot be loaded into {project.relation(name)}, and")[2], name
        assert project.state(name) == before[name], name
    # Nor is a column renamed that a condition names: Spark reads it once the schema is changed.
    del models["keyed_by_struct"]
    for name, config in models.items():
        limits = {"incremental_predicates": [late], "column_renames": {"day": "moved"}}
        project.model(
            "select 1 as id, '2024-01-02' as moved, named_struct('v', 'a') as s",
            name,
            **ADDS,
            **config,
            **limits,
        )
    project.model("select 1 as id, array(named_struct('', 1)) as l", "nameless", **ADDS)
    log = project.dbt("run", "--select", *models, "nameless").log
    for name in models:
        assert (
            f"`incremental_predicates` name `day` ({late}), which `column_renames` renames to `moved`: there "
            "would be no such column any more. Use the new name in `incremental_predicates`."
        ) in log.partition(f"cannot be loaded into {project.relation(name)}, and")[2], name
        assert project.state(name) == before[name], name
    assert (
        "The model returns in `l`.`element` a field whose name is empty, and Iceberg cannot store one. Give "
        "it a name in the model."
    ) in log
    project.file("models/nameless.sql", "{{ config(enabled=false) }} select 1")
    # Nor is one added where Spark cannot read them.
    for name, config in models.items():
        query = "DBT_INTERNAL_DEST.id in (select dai from values (1) as v(n))"
        limits = {"incremental_predicates": [*UNREADABLE, *([] if name == "limited_merge" else [query])]}
        project.model(row.format("'2024-01-02'", "'a'") + ", 1 as fresh", name, **ADDS, **config, **limits)
    plan = project.fail("--select", *models, "--vars", "sparkevolve_plan_only: true").result.result or ()
    unreadable = "Spark cannot evaluate one of the model's `incremental_predicates` (DBT_INTERNAL_DEST.dai is"
    refused = f"The run would be refused: * {unreadable}"
    assert {node.node.name for node in plan if refused in " ".join(str(node.message).split())} == set(models)
    log = project.dbt("run", "--select", *models).log
    for name in models:
        told = log.partition(
            f"cannot be loaded into {project.relation(name)}, and nothing was written to it:"
        )[2]
        assert told.split("  * ")[1].startswith(
            "Spark cannot evaluate one of the model's `incremental_predicates` (DBT_INTERNAL_DEST.dai is not "
            "null) over the columns that the table is to have. Mend it. Spark says: "
        ), name
        assert "`DBT_INTERNAL_DEST`.`dai` cannot be resolved" in told.split("  * ")[1], name
        # Spark takes it in a query, but in no condition of MERGE or DELETE.
        assert "(DBT_INTERNAL_DEST.id > rand() - 1)" in told.split("  * ")[2], name
        assert "eterministic" in told.split("  * ")[2], name
        if name != "limited_merge":
            assert "(DBT_INTERNAL_DEST.id in (select dai from values" in told.split("  * ")[3], name
        assert project.state(name) == before[name], name
    query = "DBT_INTERNAL_DEST.id in (select 1)"
    project.model(
        row.format("'2024-01-02'", "'a'") + ", 1 as fresh",
        "limited_merge",
        **ADDS,
        **models["limited_merge"],
        incremental_predicates=query,
    )
    log = project.dbt("run", "--select", "limited_merge").log
    text = (
        f"`incremental_predicates` ({query}) has a query, and Spark takes none in the condition of a MERGE."
    )
    assert text in log
    assert project.state("limited_merge") == before["limited_merge"]
    load(f"{late} or DBT_INTERNAL_DEST.day is null -- 'day'")
    project.run("--select", *models)
    for name in models:
        kept = "2024-01-02" if name in ("limited_keeping", "limited_merge") else None
        assert project.rows(name) == [(1, kept, {"v": "a"}, date(2024, 1, 2))], name


def test_conditions_that_may_mean_something_else_let_a_column_be_renamed(
    package_factory: Callable[..., Scenario],
) -> None:
    """What is a word of SQL, and what a query reads of the table itself, which has the old columns yet."""
    project = package_factory()
    row = "select {} as id, {} as `{}`, date'2024-01-02' as {}"
    project.model(f"{row.format(1, 5, 'end', 'ts')} union all {row.format(2, 6, 'end', 'ts')}", "t", **ADDS)
    project.run("--select", "t")
    newest = f"(select max(event_ts) - interval 3 days from {project.relation('t')})"
    words = "case when DBT_INTERNAL_DEST.id > 1 then true else false end"
    project.model(
        f"{row.format(1, 7, 'last', 'event_ts')} union all {row.format(2, 8, 'last', 'event_ts')}",
        "t",
        **ADDS,
        incremental_predicates=[words, f"DBT_INTERNAL_DEST.event_ts > {newest}"],
        column_renames={"end": "last", "ts": "event_ts"},
    )
    project.run("--select", "t")
    day = date(2024, 1, 2)
    assert sorted(project.rows("t")) == [(1, 5, day), (1, 7, day), (2, 8, day)]


def test_after_a_full_refresh_there_are_no_older_rows(package_factory: Callable[..., Scenario]) -> None:
    project = package_factory()
    project.model("select '1' as id, 1 as v", "refreshed_key", **ADDS, unique_key="id")
    project.run("--select", "refreshed_key")
    key = {"unique_key": ["id", "src"], "column_renames": {"id": "id_old"}}
    project.model("select 2 as id, 2 as v, 'web' as src", "refreshed_key", **ADDS, **key)
    run = project.run("--select", "refreshed_key", "--full-refresh")
    assert project.rows("refreshed_key") == [(None, 2, "web", 2)]
    assert "older rows" not in run.log


def test_predicates_that_need_what_is_new_are_told_of(package_factory: Callable[..., Scenario]) -> None:
    project = package_factory()
    project.model("select 1 as id", "late", **ADDS, unique_key="id")
    project.run("--select", "late")
    sql = ["DBT_INTERNAL_DEST.day > 1", "day > 1 or day is null"]
    project.model("select 1 as id, 5 as day", "late", **ADDS, unique_key="id", incremental_predicates=sql)
    run = project.run("--select", "late")
    told = (
        "`incremental_predicates` name `day` (DBT_INTERNAL_DEST.day > 1), which is new. It is NULL in all "
        "older rows: those for which the condition does not hold then stay."
    )
    assert [text for text in run.warnings if "`incremental_predicates`" in text] == [
        f"{project.relation('late')}: {told}"
    ]
    assert project.rows("late") == [(1, None), (1, 5)]


@pytest.mark.core
def test_without_the_wrapper_no_model_is_run(package_factory: Callable[..., Scenario]) -> None:
    project = package_factory(wrapper="")
    project.model("select 1 as id", **ADDS)
    run = project.fail()
    assert "the project has no wrapper that hands incremental models to it" in run.message
    assert "{{ return(sparkevolve.incremental()) }}" in run.message
    assert "model.case.t" in run.message
    assert project.tables() == []
    project.file("macros/incremental.sql", "{% macro other() %}{% endmacro %}")
    assert not project.dbt("run-operation", "sparkevolve.check").success


def test_a_wrapper_that_hands_models_to_others_is_refused(package_factory: Callable[..., Scenario]) -> None:
    begin, end = "{% materialization incremental, adapter='spark' %}", "{% endmaterialization %}"
    project = package_factory(wrapper=f"{begin}{{{{ return({{'relations': [this]}}) }}}}{end}")
    project.model("select 1 as id", **ADDS)
    run = project.fail()
    assert (
        "the materialization `incremental` of the project does not call `sparkevolve.incremental()`: it "
        "would run model.case.t"
    ) in run.message
    check = project.dbt("run-operation", "sparkevolve.check")
    assert not check.success
    assert "The project has the wrapper" not in check.log
    # By others it is one, however many there are between.
    project.file("macros/incremental.sql", f"{begin}{{{{ return(handed_over()) }}}}{end}")
    handed = "{% macro handed_over() %}{{ return(and_over()) }}{% endmacro %}"
    over = "{% macro and_over() %}{{ return(sparkevolve.incremental()) }}{% endmacro %}"
    project.file("macros/other.sql", f"{handed}\n{over}")
    project.run()
    assert project.rows() == [(1,)]


def test_a_catalog_that_is_not_the_default_may_stand_before_the_schema(
    project: Scenario, method: str
) -> None:
    if method == "thrift":
        pytest.skip("the server's default is its operator's")
    from pyspark.sql import SparkSession

    session = SparkSession.builder.getOrCreate()
    profiles = project.folder / "profiles.yml"
    before = profiles.read_text(encoding="utf-8")
    profile = yaml.safe_load(before)
    profile["case"]["outputs"]["t"]["schema"] = f"lake.{project.schema}"
    profiles.write_text(yaml.safe_dump(profile), encoding="utf-8")
    session.catalog.setCurrentCatalog("spark_catalog")
    try:
        check = project.dbt("run-operation", "sparkevolve.check")
        for sql in ("select 1 as id, 'a' as b", "select 1 as id, 'c' as b, 5 as n"):
            project.model(sql, "elsewhere", **ADDS)
            project.run("--select", "elsewhere")
    finally:
        session.catalog.setCurrentCatalog("lake")
        profiles.write_text(before, encoding="utf-8")
    assert check.success, check.log
    assert "The catalog of the schema is `lake`, org.apache.iceberg.spark.SparkCatalog" in check.log
    assert project.rows("elsewhere") == [(1, "c", 5)]
    assert list(project.table("elsewhere").metadata.refs) == ["main"]
    project.sql(f"drop table {project.relation('elsewhere')}")
    project.file("models/elsewhere.sql", "{{ config(enabled=false) }} select 1")


def test_the_check_says_what_the_server_has(project: Scenario, method: str) -> None:
    if method == "session":
        # No lack, either: all of a run works with it.
        from pyspark.sql import SparkSession

        SparkSession.builder.getOrCreate().conf.set("spark.sql.storeAssignmentPolicy", "STRICT")
    run = project.dbt("run-operation", "sparkevolve.check")
    if method == "session":
        SparkSession.builder.getOrCreate().conf.unset("spark.sql.storeAssignmentPolicy")
    assert run.success, run.message or run.log
    for text in ("The default catalog is `lake`", "runs are published from branches", "Nothing is missing."):
        assert text in run.log
    assert project.tables() == ["t"]
