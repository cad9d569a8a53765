"""A run that is killed or fails, at each of its steps: readers see the rows they had, the next run heals."""

from collections.abc import Callable
from typing import Any

import pytest
from py4j.java_gateway import JavaGateway
from py4j.protocol import Py4JJavaError
from pyspark import SparkContext

from dbt.adapters.sparkevolve.errors import SessionEndedError, StatementError
from dbt.adapters.sparkevolve.impl import SparkEvolveAdapter
from dbt.adapters.sparkevolve.spark.session_errors import translated
from tests.functional.harness import Scenario
from tests.functional.servers import java
from tests.functional.worker import Worker

OLD = "select 1 as id, 'a' as v, 10 as gone union all select 2, 'b', 20"
NEW = "select 2 as id, 'B' as v, 7 as n union all select 3, 'C', 8"
OLD_ROWS = [(1, "a", 10), (2, "b", 20)]
EVOLVED_ROWS = [(1, "a", 10, None), (2, "b", 20, None)]
REPLACED_ROWS = [(1, "a", 10, None), (2, "B", None, 7), (3, "C", None, 8)]
KEPT_ROWS = [(1, "a", 10, None), (2, "B", 20, 7), (3, "C", None, 8)]
APPENDED_ROWS = [(1, "a", 10, None), (2, "B", None, 7), (2, "b", 20, None), (3, "C", None, 8)]

# The step after (or before) which the process is killed, the model's config, and its table's rows and
# branches then, and rows after the next run.
DELETE_INSERT: dict[str, Any] = {}
KEEP = {"removed_columns": "keep"}
MERGE = {"incremental_strategy": "merge"}
OVERWRITE = {"incremental_strategy": "insert_overwrite", "partition_by": ["id"], "unique_key": None}
APPEND = {"unique_key": None}
KILLS = [
    ("staged", DELETE_INSERT, OLD_ROWS, 0, REPLACED_ROWS),
    ("evolved", DELETE_INSERT, EVOLVED_ROWS, 0, REPLACED_ROWS),
    ("cut", DELETE_INSERT, EVOLVED_ROWS, 1, REPLACED_ROWS),
    ("deleted", DELETE_INSERT, EVOLVED_ROWS, 1, REPLACED_ROWS),
    ("deleted", KEEP, EVOLVED_ROWS, 1, KEPT_ROWS),
    # What the model does not return is nowhere else: not even here does the DELETE have its own commit.
    ("deleted", {**KEEP, "publish": "direct"}, EVOLVED_ROWS, 1, KEPT_ROWS),
    ("inserted", DELETE_INSERT, EVOLVED_ROWS, 1, REPLACED_ROWS),
    ("inserted", APPEND, EVOLVED_ROWS, 1, APPENDED_ROWS),
    ("merged", MERGE, EVOLVED_ROWS, 1, KEPT_ROWS),
    ("overwritten", OVERWRITE, EVOLVED_ROWS, 1, REPLACED_ROWS),
    ("publishing", DELETE_INSERT, EVOLVED_ROWS, 1, REPLACED_ROWS),
    ("published", DELETE_INSERT, REPLACED_ROWS, 0, REPLACED_ROWS),
]


def branches(scenario: Scenario, name: str = "t") -> list[str]:
    return [ref for ref in scenario.table(name).metadata.refs if ref != "main"]


@pytest.mark.core
def test_a_process_that_is_killed_at_any_step(scenario: Scenario) -> None:
    """All models run at once in one process, each up to its step; then it is killed, once."""
    models = {f"m{number}_{kill[0]}": kill for number, kill in enumerate(KILLS)}
    for name, (_, config, *_) in models.items():
        scenario.model(OLD, name, **config)
    scenario.run()
    for name, (_, config, *_) in models.items():
        scenario.model(NEW, name, **config)
    with Worker() as worker:
        worker.run_until_killed(scenario, {name: kill[0] for name, kill in models.items()})

    staged = [table for table in scenario.tables() if table not in models]
    assert sorted(table.split("__dbt_tmp_")[0] for table in staged) == sorted(models)
    expected = {name: (rows, left) for name, (_, _, rows, left, _) in models.items()}
    assert {name: (scenario.rows(name), len(branches(scenario, name))) for name in models} == expected

    scenario.run()
    expected = {name: (rows, 0) for name, (*_, rows) in models.items()}
    assert {name: (scenario.rows(name), len(branches(scenario, name))) for name in models} == expected
    assert scenario.tables() == sorted(models)


# What fails, in words of the error, when a model's rows are computed.
FAILING_MODELS = {
    "cast('x' as int)": "CAST_INVALID_INPUT",
    "cast(300 + id as tinyint)": "CAST_OVERFLOW",
    "1 div (id - id)": "DIVIDE_BY_ZERO",
    "cast(assert_true(id < 0) as int)": "is not true",
    "cast(raise_error('no') as int)": "no",
}


@pytest.mark.parametrize("publish", ["branch", "direct"])
def test_a_model_that_fails_while_it_is_computed(
    method: str, profile_target: dict[str, Any], scenario_factory: Callable[..., Scenario], publish: str
) -> None:
    ansi = {"spark.sql.ansi.enabled": "true"}
    settings = "server_side_parameters" if method == "thrift" else "spark_config"
    scenario = scenario_factory(**{settings: {**profile_target.get(settings, {}), **ansi}})
    scenario.model("select 1 as id, 5 as n", publish=publish)
    scenario.run()
    before = scenario.state()
    for failing, message in FAILING_MODELS.items():
        # Not a literal: Spark would fail in its optimizer already.
        scenario.model(f"select id, {failing} as n from values (1), (2) as source(id)", publish=publish)
        assert message in scenario.fail().message
        assert scenario.state() == before, failing
        assert scenario.tables() == ["t"], failing
    scenario.model("select 1 as id, 6 as n", publish=publish)
    scenario.run()
    assert scenario.rows() == [(1, 6)]


@pytest.mark.parametrize(
    ("publish", "rows_then"), [("branch", OLD_ROWS), ("direct", [(1, "a", 10)])], ids=["branch", "direct"]
)
@pytest.mark.core
def test_an_insert_that_fails_after_the_delete(
    scenario: Scenario, monkeypatch: pytest.MonkeyPatch, publish: str, rows_then: list[Any]
) -> None:
    """The table's files cannot be written any more. ``direct`` loses the row: that is documented."""
    scenario.model(OLD, publish=publish)
    scenario.run()
    execute = SparkEvolveAdapter.execute

    def break_before_insert(self: SparkEvolveAdapter, sql: str, *args: Any, **kwargs: Any) -> Any:
        if sql.strip().startswith("INSERT INTO"):
            change = scenario.table().transaction()
            change.set_properties({"write.data.path": "file:///dev/null/nowhere"})
            change.commit_transaction()
            execute(self, f"refresh table {scenario.relation()}")
        return execute(self, sql, *args, **kwargs)

    scenario.model("select 2 as id, 'B' as v, 21 as gone", publish=publish)
    with monkeypatch.context() as patch:
        patch.setattr(SparkEvolveAdapter, "execute", break_before_insert)
        run = scenario.fail()
    assert "Parent path is not a directory: file:/dev/null" in run.message
    assert scenario.rows() == rows_then
    assert branches(scenario) == []
    assert scenario.tables() == ["t"]
    repair = scenario.table().transaction()
    repair.remove_properties("write.data.path")
    repair.commit_transaction()
    scenario.run()
    assert scenario.rows() == [(1, "a", 10), (2, "B", 21)]


def test_a_session_that_loses_its_spark(method: str, scenario: Scenario) -> None:
    """The Java process of the session is killed between the DELETE and the INSERT."""
    if method != "session":
        pytest.skip("a server's end is a lost connection")
    scenario.model(OLD)
    scenario.run()
    scenario.model(NEW)
    with Worker() as worker:
        (outcome,) = worker.run(scenario, ("run",), lose_spark_before="inserted")
    assert "Spark, which ran inside this process, has ended ([Errno 111]" in outcome.message
    assert scenario.rows() == EVOLVED_ROWS
    assert branches(scenario) == []
    assert scenario.tables() == ["t"]
    scenario.run()
    assert scenario.rows() == REPLACED_ROWS


def test_java_may_end_before_it_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    """An exception's text is asked of Java; so are its causes, which can be all that there is to say."""
    gateway = JavaGateway.launch_gateway(java_path=java(), die_on_exit=True)
    try:
        future = gateway.jvm.java.util.concurrent.CompletableFuture()
        disk = gateway.jvm.java.io.IOException("No space left on device")
        future.completeExceptionally(
            gateway.jvm.java.lang.RuntimeException("Exception thrown in awaitResult: ", disk)
        )
        with pytest.raises(Py4JJavaError) as raised:
            future.get()
        error = translated(raised.value, "select 1")
        assert isinstance(error, StatementError)
        assert str(error).splitlines()[-1].strip() == "Caused by: No space left on device"
    finally:
        gateway.java_process.kill()
        gateway.java_process.wait(60)
    # In the place of one that other tests may have started, and that runs. PySpark asks it of exceptions too.
    monkeypatch.setattr(SparkContext, "_gateway", gateway)
    error = translated(raised.value, "select 1")
    assert isinstance(error, SessionEndedError)
    assert "Spark, which ran inside this process, has ended (" in str(error)


def test_a_driver_that_runs_out_of_memory(
    method: str, profile_target: dict[str, Any], scenario_factory: Callable[..., Scenario]
) -> None:
    if method != "session":
        pytest.skip("the server is shared with other tests")
    small = {**profile_target["spark_config"], "spark.driver.memory": "512m"}
    scenario = scenario_factory(spark_config=small)
    scenario.model(OLD)
    scenario.run()
    scenario.model(
        "select cast(size(collect_list(repeat(cast(id as string), 500))) as int) as id, 'B' as v, 1 as gone\n"
        "from range(2000000)"
    )
    with Worker() as worker:
        (outcome,) = worker.run(scenario, ("run",))
    # It ends before it can say so, or it does not.
    assert "ran out of memory" in outcome.message
    assert scenario.rows() == OLD_ROWS
    assert branches(scenario) == []
    scenario.model(NEW)
    scenario.run()
    assert scenario.rows() == REPLACED_ROWS
    assert scenario.tables() == ["t"]
