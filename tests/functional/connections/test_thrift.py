"""What is particular to a Spark Thrift server. Run with ``--profile thrift``."""

import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from dbt.adapters.sparkevolve.credentials import SparkEvolveCredentials
from dbt.adapters.sparkevolve.errors import StatementError
from dbt.adapters.sparkevolve.spark.thrift import ThriftHandle, open_thrift
from tests.functional.harness import Scenario


@pytest.fixture(autouse=True)
def _only_thrift(method: str) -> None:
    if method != "thrift":
        pytest.skip("needs --profile thrift")


@pytest.fixture
def connect(profile_target: dict[str, Any]) -> Iterator[Callable[..., ThriftHandle]]:
    """Open connections with changes of the profile; close them in the end."""
    opened: list[ThriftHandle] = []

    def open_one(**changes: Any) -> ThriftHandle:
        settings = {key: value for key, value in profile_target.items() if key not in ("type", "threads")}
        credentials = SparkEvolveCredentials(**{"schema": "not_there", **settings, **changes})
        opened.append(open_thrift(credentials).cursor())
        return opened[-1]

    yield open_one
    for handle in opened:
        handle.close()


def test_a_connection_starts_in_a_schema_that_need_not_exist(connect: Callable[..., ThriftHandle]) -> None:
    handle = connect()
    handle.execute("select current_catalog(), current_schema()")
    assert handle.fetchall() == [("lake", "not_there")]


def test_settings_of_the_profile_reach_the_session(connect: Callable[..., ThriftHandle]) -> None:
    handle = connect(server_side_parameters={"spark.sql.session.timeZone": "America/New_York"})
    handle.execute("set spark.sql.ansi.enabled")
    assert handle.fetchall() == [("spark.sql.ansi.enabled", "false")]
    handle.execute("select current_timezone()")
    assert handle.fetchall() == [("America/New_York",)]


def test_a_statement_without_a_result_has_no_rows(connect: Callable[..., ThriftHandle]) -> None:
    handle = connect()
    handle.execute("create schema if not exists no_rows")
    assert handle.fetchall() == []
    handle.cursor().execute("drop schema no_rows")
    assert handle.fetchmany(5) == []
    assert handle.fetchone() is None


def test_an_error_is_short_and_keeps_its_statement(connect: Callable[..., ThriftHandle]) -> None:
    handle = connect()
    with pytest.raises(StatementError) as missing:
        handle.execute("select * from missing_table")
    assert missing.value.statement == "select * from missing_table"
    message = str(missing.value.msg)
    assert message.startswith("[TABLE_OR_VIEW_NOT_FOUND] The table or view `missing_table` cannot be found.")
    assert "\tat " not in message
    assert "UnresolvedRelation" not in message
    with pytest.raises(StatementError) as syntax:
        handle.cursor().execute("selec 1")
    assert str(syntax.value.msg).startswith("[PARSE_SYNTAX_ERROR] Syntax error at or near 'selec'.")


def test_bindings_keep_every_value(connect: Callable[..., ThriftHandle]) -> None:
    values = ["it's", "a\\b", "x\ny", "${env:HOME}", "%s", "Zoë 😀", "", None]
    handle = connect()
    handle.execute("select " + ", ".join(["%s"] * len(values)), values)
    assert handle.fetchall() == [tuple(values)]


def test_a_small_statement_is_not_waited_for(connect: Callable[..., ThriftHandle]) -> None:
    handle = connect()
    handle.execute("select 1")
    waited: list[float] = []
    for _ in range(5):
        started = time.monotonic()
        handle.cursor().execute("select 1")
        waited.append(time.monotonic() - started)
    # dbt-spark sleeps 5 s after the first look at a statement that has not ended.
    assert min(waited) < 2.5


def test_a_running_statement_is_cancelled_from_another_thread(connect: Callable[..., ThriftHandle]) -> None:
    handle = connect()
    timer = threading.Timer(3, handle.cancel)
    timer.start()
    started = time.monotonic()
    endless = "select count(*) from range(4000000) a join range(4000000) b on a.id + b.id < 0"
    with pytest.raises(StatementError, match="CANCELED"):
        handle.execute(endless)
    assert time.monotonic() - started < 60
    timer.join()
    handle.cursor().execute("select 1")
    assert handle.fetchall() == [(1,)]


def test_columns_are_kept_and_added_though_the_server_caches_tables(scenario: Scenario) -> None:
    downstream = "select n from {{ ref('t') }}"
    scenario.model("select 1 as id, 'red' as colour")
    scenario.model(downstream.replace("n", "id", 1), "d", materialized="table")
    scenario.run()
    scenario.model("select 1 as id, 'x' as n")
    scenario.model(downstream, "d", materialized="table")
    scenario.run("--threads", "4")
    assert scenario.columns() == ["id", "colour", "n"]
    assert scenario.rows() == [(1, None, "x")]
    assert scenario.rows("d") == [("x",)]
    assert scenario.schemas() == 2
    assert scenario.tables() == ["d", "t"]


def test_the_servers_own_overwrite_mode_is_not_that_of_a_load(scenario: Scenario) -> None:
    """The server overwrites partitions one by one. A full refresh replaces all, and sets the mode back."""
    query = "run_query('set spark.sql.sources.partitionOverwriteMode')"
    log = f"{{% do log('mode=' ~ {query}.rows[0][1], info=true) %}}"
    config: dict[str, Any] = {"incremental_strategy": "insert_overwrite", "unique_key": None}
    config |= {"partition_by": "p", "post_hook": "{% if execute %}" + log + "{% endif %}"}
    scenario.model("select 1 as id, 'a' as p union all select 2, 'b'", **config)
    scenario.model("select 1 as id, 'a' as p", "whole", **{**config, "partition_by": None})
    scenario.run()
    scenario.model("select 3 as id, 'b' as p, 'new' as v", **config)
    scenario.model("select 3 as id, 'b' as p", "whole", **{**config, "partition_by": None})
    assert scenario.run().log.count("mode=dynamic") == 2
    assert scenario.rows() == [(1, "a", None), (3, "b", "new")]
    assert scenario.rows("whole") == [(3, "b")]
    scenario.model("select 4 as id, 'c' as p", **config)
    assert "mode=dynamic" in scenario.run("--full-refresh", "-s", "t").log
    assert scenario.rows() == [(4, "c", None)]


def test_a_ddl_through_run_query_does_not_fail(scenario: Scenario) -> None:
    statement = "{% do run_query('create schema if not exists ' ~ target.schema) %}"
    scenario.file("macros/ddl.sql", "{% macro ddl() %}" + statement + "{% endmacro %}")
    run = scenario.dbt("run-operation", "ddl")
    assert run.success, run.message
