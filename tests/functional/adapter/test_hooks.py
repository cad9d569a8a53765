"""Hooks of models, seeds, snapshots and runs."""

from typing import Any

import pytest
from dbt.tests.adapter.hooks.test_model_hooks import (
    MODEL_POST_HOOK,
    MODEL_PRE_HOOK,
    BaseDuplicateHooksInConfigs,
    BaseHookRefs,
    BaseHooksRefsOnSeeds,
    BasePrePostModelHooks,
    BasePrePostModelHooksInConfig,
    BasePrePostModelHooksInConfigKwargs,
    BasePrePostModelHooksInConfigWithCount,
    BasePrePostModelHooksOnSeeds,
    BasePrePostModelHooksOnSeedsPlusPrefixed,
    BasePrePostModelHooksOnSeedsPlusPrefixedWhitespace,
    BasePrePostModelHooksOnSnapshots,
    BasePrePostSnapshotHooksInConfigKwargs,
)
from dbt.tests.adapter.hooks.test_run_hooks import BaseAfterRunHooks, BasePrePostRunHooks
from dbt.tests.util import run_dbt

from tests.functional.adapter.modes import PublishDirect

FIELDS = {
    "test_state": "string",
    "target_dbname": "string",
    "target_host": "string",
    "target_name": "string",
    "target_schema": "string",
    "target_type": "string",
    "target_user": "string",
    "target_pass": "string",
    "target_threads": "int",
    "run_started_at": "string",
    "invocation_id": "string",
    "thread_id": "string",
}


def make_table(project: Any, name: str) -> None:
    """Make the table that hooks write to: the base reads its DDL from a file of Postgres' SQL."""
    columns = ", ".join(f"{column} {dtype}" for column, dtype in FIELDS.items())
    project.run_sql(f"drop table if exists {project.test_schema}.{name}")
    project.run_sql(f"create table {project.test_schema}.{name} ({columns})")


def check_row(project: Any, row: dict[str, Any]) -> None:
    """Check what a hook has written: the base expects Postgres' target."""
    assert row["target_name"] == "default"
    assert row["target_schema"] == project.test_schema
    assert row["target_type"] == "sparkevolve"
    assert row["target_threads"] == 4
    assert row["run_started_at"]
    assert row["invocation_id"]
    assert row["thread_id"].startswith(("Thread-", "MainThread"))


def rows_of(project: Any, name: str, state: str) -> list[dict[str, Any]]:
    """Read what the hooks have written."""
    columns = ", ".join(FIELDS)
    sql = f"select {columns} from {project.test_schema}.{name} where test_state = '{state}'"
    return [dict(zip(FIELDS, row, strict=True)) for row in project.run_sql(sql, fetch="all")]


class ModelHooksInSpark:
    @pytest.fixture(scope="class", autouse=True)
    def setUp(self, project: Any) -> None:
        make_table(project, "on_model_hook")

    def check_hooks(self, state: str, project: Any, host: str | None, count: int = 1) -> None:
        rows = rows_of(project, "on_model_hook", state)
        assert len(rows) == count
        for row in rows:
            check_row(project, row)


class HooksOutsideInSpark(ModelHooksInSpark):
    # Spark has no VACUUM; the hook outside the transaction is another statement.
    @pytest.fixture(scope="class")
    def project_config_update(self) -> dict[str, Any]:
        outside = {"sql": "refresh table {{ this.schema }}.on_model_hook", "transaction": False}
        hooks = {"pre-hook": [MODEL_PRE_HOOK, outside], "post-hook": [outside, MODEL_POST_HOOK]}
        return {"models": {"test": hooks}}


class TestPrePostModelHooks(HooksOutsideInSpark, BasePrePostModelHooks):
    pass


class TestPrePostIncrementalHooks(TestPrePostModelHooks):
    """The same around our materialization, in a first run and in a second one."""

    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {"hooks.sql": "{{ config(materialized='incremental', unique_key='id') }} select 1 as id"}

    def test_hooks_of_a_second_run(self, project: Any) -> None:
        make_table(project, "on_model_hook")
        run_dbt()
        self.check_hooks("start", project, None)
        self.check_hooks("end", project, None)


class TestPrePostIncrementalHooksDirect(PublishDirect, TestPrePostIncrementalHooks):
    pass


class TestHookRefs(ModelHooksInSpark, BaseHookRefs):
    pass


class TestPrePostModelHooksInConfig(ModelHooksInSpark, BasePrePostModelHooksInConfig):
    pass


class TestPrePostModelHooksInConfigWithCount(HooksOutsideInSpark, BasePrePostModelHooksInConfigWithCount):
    pass


class TestPrePostModelHooksInConfigKwargs(ModelHooksInSpark, BasePrePostModelHooksInConfigKwargs):
    pass


class TestPrePostModelHooksOnSeeds(BasePrePostModelHooksOnSeeds):
    pass


class TestPrePostModelHooksOnSeedsPlusPrefixed(BasePrePostModelHooksOnSeedsPlusPrefixed):
    pass


class TestPrePostModelHooksOnSeedsPlusPrefixedWhitespace(BasePrePostModelHooksOnSeedsPlusPrefixedWhitespace):
    pass


class TestHooksRefsOnSeeds(BaseHooksRefsOnSeeds):
    pass


class TestPrePostModelHooksOnSnapshots(BasePrePostModelHooksOnSnapshots):
    pass


class TestPrePostSnapshotHooksInConfigKwargs(BasePrePostSnapshotHooksInConfigKwargs):
    pass


class TestHooksRunOnce:
    """Each hook runs once and in dbt's order, and none in a plan.

    dbt-spark's tables and views leave out the hooks outside a transaction.
    """

    MADE = ("a_seed", "a_snapshot", "a_table", "a_view", "an_incremental")
    ORDER = (("outside, before", 0), ("before", 1), ("after", 2), ("outside, after", 3))

    @pytest.fixture(scope="class")
    def seeds(self) -> dict[str, str]:
        return {"a_seed.csv": "id\n1\n"}

    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        kinds = {"a_table": "table", "a_view": "view", "an_incremental": "incremental"}
        return {
            f"{name}.sql": f"{{{{ config(materialized='{kind}') }}}} select id from {{{{ ref('a_seed') }}}}"
            for name, kind in kinds.items()
        }

    @pytest.fixture(scope="class")
    def snapshots(self) -> dict[str, str]:
        config = "unique_key='id', strategy='check', check_cols='all'"
        sql = f"{{{{ config({config}) }}}} select id from {{{{ ref('a_seed') }}}}"
        return {"a_snapshot.sql": f"{{% snapshot a_snapshot %}} {sql} {{% endsnapshot %}}"}

    @pytest.fixture(scope="class")
    def project_config_update(self) -> dict[str, Any]:
        def hook(name: str) -> str:
            made = "'{{ this.identifier }}'"
            log = "{{ this.schema }}.hook_log"
            return f"insert into {log} select {made}, '{name}', count(*) from {log} where made = {made}"

        hooks = {
            "+pre-hook": [hook("before"), {"sql": hook("outside, before"), "transaction": False}],
            "+post-hook": [{"sql": hook("outside, after"), "transaction": False}, hook("after")],
        }
        return {"models": hooks, "seeds": hooks, "snapshots": hooks}

    def test_a_first_run_a_second_run_and_a_plan(self, project: Any) -> None:
        log = f"{project.test_schema}.hook_log"
        # Hooks of several nodes write to it at once: an INSERT of Spark's gives up after four other commits.
        project.run_sql(
            f"create table {log} (made string, hook string, number bigint) "
            "tblproperties ('commit.retry.num-retries' = '100')"
        )
        for _ in range(2):
            run_dbt(["build"])
            rows = project.run_sql(f"select made, hook, number from {log} order by made, number", fetch="all")
            assert [tuple(row) for row in rows] == [(made, *ran) for made in self.MADE for ran in self.ORDER]
            project.run_sql(f"delete from {log}")
        results = run_dbt(["build", "--vars", "sparkevolve_plan_only: true"], expect_pass=False)
        # Its pre-hooks might change what the plan is made of.
        assert [r.node.name for r in results if r.status == "error"] == ["an_incremental"]
        assert project.run_sql(f"select * from {log}", fetch="all") == []


class TestDuplicateHooksInConfigs(BaseDuplicateHooksInConfigs):
    pass


class TestPrePostRunHooks(BasePrePostRunHooks):
    @pytest.fixture
    def setUp(self, project: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        make_table(project, "on_run_hook")
        for name in ("schemas", "db_schemas"):
            project.run_sql(f"drop table if exists {project.test_schema}.{name}")
        monkeypatch.setenv("TERM_TEST", "TESTING")

    # Spark calls a text `string`.
    @pytest.fixture(scope="class")
    def project_config_update(self) -> dict[str, Any]:
        schema = "{{ target.schema }}"
        listed = "{% for schema in schemas %}( '{{ schema }}' ){% if not loop.last %},{% endif %}{% endfor %}"
        pairs = (
            "{% for db, schema in database_schemas %}('{{ db }}', '{{ schema }}')"
            "{% if not loop.last %},{% endif %}{% endfor %}"
        )
        return {
            "on-run-start": [
                "{{ custom_run_hook('start', target, run_started_at, invocation_id) }}",
                f"create table {schema}.start_hook_order_test ( id int )",
                f"drop table {schema}.start_hook_order_test",
                "{{ log(env_var('TERM_TEST'), info=True) }}",
            ],
            "on-run-end": [
                "{{ custom_run_hook('end', target, run_started_at, invocation_id) }}",
                f"create table {schema}.end_hook_order_test ( id int )",
                f"drop table {schema}.end_hook_order_test",
                f"create table {schema}.schemas ( schema string )",
                f"insert into {schema}.schemas (schema) values {listed}",
                f"create table {schema}.db_schemas ( db string, schema string )",
                f"insert into {schema}.db_schemas (db, schema) values {pairs}",
            ],
        }

    def check_hooks(self, state: str, project: Any, host: str | None) -> None:
        (row,) = rows_of(project, "on_run_hook", state)
        check_row(project, row)


class TestAfterRunHooks(BaseAfterRunHooks):
    pass
