"""What goes wrong while the package loads: statements that are sent twice, other writers, nodes that fail."""

import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.parquet
import pytest
from dbt.adapters.spark.connections import SparkConnectionManager
from dbt_common.exceptions import DbtRuntimeError

from tests.functional.harness import Scenario
from tests.functional.intruders import append
from tests.functional.proxy import Cut, Proxy, When, kill_when_sent

ADDS = {"on_schema_change": "append_new_columns"}


@pytest.fixture
def proxy(method: str, stock_target: dict[str, Any], project: Scenario) -> Iterator[Proxy]:
    """A proxy between the project and the server."""
    if method != "thrift":
        pytest.skip("a session has no connection to lose")
    profiles = project.folder / "profiles.yml"
    before = profiles.read_text(encoding="utf-8")
    with Proxy(stock_target["port"]) as made:
        profiles.write_text(before.replace(f"port: {stock_target['port']}", f"port: {made.port}"))
        yield made
    profiles.write_text(before, encoding="utf-8")
    assert made.failures == []


@pytest.mark.parametrize(
    ("beginning", "when"),
    [
        ("INSERT INTO", When.NEVER_SENT),
        ("INSERT INTO", When.FINISHED),
        ("INSERT INTO", When.LATE),
        ("CALL", When.FINISHED),
    ],
    ids=lambda value: getattr(value, "name", value),
)
def test_a_lost_connection_adds_no_row_twice(
    table: Scenario, proxy: Proxy, when: When, beginning: str
) -> None:
    table.model("select 2 as id, 'c' as b union all select 3, 'd'", **ADDS)
    head = table.table().metadata.current_snapshot_id

    def is_finished() -> bool:
        metadata = table.table().metadata
        if beginning == "CALL":
            return bool(metadata.current_snapshot_id != head)
        heads = [metadata.snapshot_by_id(ref.snapshot_id) for ref in metadata.refs.values()]
        new = [h.summary for h in heads if h is not None and h.snapshot_id != head]
        return any(summary is not None and summary.operation.value == "append" for summary in new)

    proxy.cut(Cut(beginning, when, 1, is_finished))
    new, old = [(1, "a"), (2, "c"), (3, "d")], [(1, "a"), (2, "b")]
    run = table.dbt("run")
    # dbt-spark sends it again on the connection that is lost, so that most often the run fails.
    assert table.rows() == new if run.success else table.rows() in (old, new)
    proxy.deliver()
    assert table.rows() in (old, new)
    proxy.cut()
    table.run()
    assert table.rows() == new
    assert table.tables() == ["t"]


@pytest.fixture
def table(project: Scenario) -> Scenario:
    """A project with a table of two rows of its own."""
    project.sql(f"create schema if not exists lake.{project.schema}")
    project.sql(f"drop table if exists {project.relation()} purge")
    project.model("select 1 as id, 'a' as b union all select 2, 'b'", **ADDS)
    project.run()
    assert project.rows() == [(1, "a"), (2, "b")]
    return project


def instead(monkeypatch: pytest.MonkeyPatch, beginning: str, do: Callable[[Callable[[], Any]], Any]) -> None:
    """Let something else happen to statements that begin like this; it can send the statement itself."""
    real = SparkConnectionManager.add_query

    def add_query(self: Any, sql: str, *args: Any, **kwargs: Any) -> Any:
        # dbt puts a comment before each statement.
        if sql.rpartition("*/")[2].strip().startswith(beginning):
            return do(lambda: real(self, sql, *args, **kwargs))
        return real(self, sql, *args, **kwargs)

    monkeypatch.setattr(SparkConnectionManager, "add_query", add_query)


def sent_twice(monkeypatch: pytest.MonkeyPatch, *beginnings: str, times: int = 1) -> list[str]:
    """Send statements that begin like this a second time, as dbt-spark does after a lost connection."""
    sent: list[str] = []

    def sending(beginning: str) -> Callable[[Callable[[], Any]], Any]:
        def do(send: Callable[[], Any]) -> Any:
            if sent.count(beginning) < times:
                sent.append(beginning)
                send()
            return send()

        return do

    for beginning in beginnings:
        instead(monkeypatch, beginning, sending(beginning))
    return sent


@pytest.mark.parametrize(
    ("beginnings", "is_loaded_again"),
    [
        (("create table if not exists", "ALTER TABLE", "CALL", "drop table"), False),
        # A second DELETE, which finds nothing, is a commit too many.
        (("DELETE",), True),
        (("INSERT INTO",), True),
    ],
    ids=["beside", "DELETE", "INSERT"],
)
def test_a_statement_that_is_sent_twice_adds_no_row_twice(
    table: Scenario, monkeypatch: pytest.MonkeyPatch, beginnings: tuple[str, ...], is_loaded_again: bool
) -> None:
    table.model("select 2 as id, 'c' as b union all select 3, 'd'", **ADDS)
    sent = sent_twice(monkeypatch, *beginnings)
    run = table.run()
    assert sorted(sent) == sorted(beginnings)
    assert table.rows() == [(1, "a"), (2, "c"), (3, "d")]
    assert table.tables() == ["t"]
    assert list(table.table().metadata.refs) == ["main"]
    assert ("so the batch is loaded again" in run.log) == is_loaded_again


def test_a_first_run_that_is_sent_twice_succeeds_or_says_that_others_made_the_table(
    project: Scenario, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = {**ADDS, "unique_key": None, "incremental_strategy": "append"}
    project.model("select 1 as id", "first", **config)
    with monkeypatch.context() as patched:
        sent_twice(patched, "create table")
        project.run("--select", "first")
    project.run("--select", "first")
    assert project.rows("first") == [(1,), (1,)]
    project.model("select 2 as id", "theirs", **config)

    def faster(send: Callable[[], Any]) -> Any:
        project.sql(f"create table {project.relation('theirs')} using iceberg as select 9 as id")
        return send()

    with monkeypatch.context() as patched:
        instead(patched, "create table", faster)
        run = project.fail("--select", "theirs")
    assert (
        f"dbt saw no {project.schema}.theirs when this command began, and there was one when its first rows "
        "were to be written: a pre-hook or somebody else has made it since, or dbt-spark could not list the "
        "schema. If it is so in each run, the catalog does not list this table: `dbt run-operation "
        "sparkevolve.check` says what to do. Nothing was written to it. Run the model again: what it returns "
        "is then loaded into that table."
    ) in run.message
    assert project.rows("theirs") == [(9,)]
    for name in ("first", "theirs"):
        (project.folder / f"models/{name}.sql").unlink()
        project.sql(f"drop table {project.relation(name)} purge")


def test_a_table_that_dbt_cannot_list_is_loaded_all_the_same(
    table: Scenario, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A table that goes while Spark lists a schema makes dbt-spark take that for an empty one."""
    query = "select 2 as id, '{{ 'new' if is_incremental() else 'first' }}' as b"
    table.model(query, **ADDS, unique_key=None, incremental_strategy="append")
    listed: list[None] = []

    def lose(send: Callable[[], Any]) -> Any:
        listed.append(None)
        raise DbtRuntimeError("[TABLE_OR_VIEW_NOT_FOUND] The table or view `x__dbt_tmp_0` cannot be found.")

    instead(monkeypatch, "show table extended", lose)
    table.run()
    assert listed
    assert table.rows() == [(1, "a"), (2, "b"), (2, "new")]


def test_a_batch_that_is_staged_again_too_late_changes_nothing(
    table: Scenario, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server goes on with the statement of a lost connection, and ends it while rows are loaded."""
    source = table.relation("read")
    table.sql(f"create table {source} using iceberg as select * from values (2, 'c'), (3, 'd') as v(id, b)")
    table.model(f"select * from {table.schema}.read", **ADDS)
    staging: list[Callable[[], Any]] = []

    def keep(send: Callable[[], Any]) -> Any:
        staging.append(send)
        return send()

    def late(send: Callable[[], Any]) -> Any:
        if staging:
            name = next(name for name in table.tables() if "__dbt_tmp_" in name)
            assert table.table(name).properties["gc.enabled"] == "true"
            # By now the query has other rows, and as many.
            table.sql(f"insert overwrite {source} values (1, 'x'), (4, 'y')")
            staging.pop()()
        return send()

    instead(monkeypatch, "create table if not exists", keep)
    instead(monkeypatch, "INSERT INTO", late)
    table.run()
    assert staging == []
    assert table.rows() == [(1, "a"), (2, "c"), (3, "d")]
    table.sql(f"drop table {source} purge")


class Source:
    """A file that a model reads; Spark looks at it again for each statement."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        self._path = folder / "part.parquet"
        self.query = f"select * from parquet.`{folder}`"

    def write(self, **columns: pyarrow.Array) -> None:
        """Have these columns in the file, and no others."""
        pyarrow.parquet.write_table(pyarrow.table(columns), self._path)


@pytest.fixture
def source(table: Scenario, tmp_path: Path) -> Source:
    """What a model over the table reads; the table has its columns, and a row of it."""
    made = Source(tmp_path / "source")
    made.write(id=ints(1), b=pyarrow.array(["a"]), n=ints(7), score=floats(1.5))
    table.model(made.query, **ADDS)
    table.run()
    assert table.rows() == [(1, "a", 7, 1.5), (2, "b", None, None)]
    made.write(id=ints(2), b=pyarrow.array(["c"]), n=ints(8), score=floats(2.5))
    return made


def ints(*values: int) -> pyarrow.Array:
    """Return values of Spark's type int."""
    return pyarrow.array(values, pyarrow.int32())


def floats(*values: float) -> pyarrow.Array:
    """Return values of Spark's type float."""
    return pyarrow.array(values, pyarrow.float32())


def while_planned(monkeypatch: pytest.MonkeyPatch, change: Callable[[], None]) -> None:
    """Change something after the model's query was described, and before it is computed."""

    def stage(send: Callable[[], Any]) -> Any:
        change()
        return send()

    instead(monkeypatch, "create table if not exists", stage)


@pytest.mark.core
def test_what_a_source_gets_while_its_query_is_planned_is_loaded(
    table: Scenario, source: Source, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A plan for the columns of before would round one value and leave another one out."""

    def change() -> None:
        source.write(
            id=ints(2),
            b=pyarrow.array(["c"]),
            n=pyarrow.array([5 * 10**9]),
            score=pyarrow.array([0.1]),
            new=ints(9),
        )

    while_planned(monkeypatch, change)
    run = table.run()
    assert "what the model returns has changed since this run has looked, and is planned anew" in run.log
    assert table.types() == {"id": "int", "b": "string", "n": "long", "score": "double", "new": "int"}
    assert table.rows() == [(1, "a", 7, 1.5, None), (2, "c", 5 * 10**9, 0.1, 9)]
    assert table.tables() == ["t"]


def test_what_a_source_loses_while_its_query_is_planned_is_padded(
    table: Scenario, source: Source, monkeypatch: pytest.MonkeyPatch
) -> None:
    while_planned(monkeypatch, lambda: source.write(id=ints(2), b=pyarrow.array(["c"]), n=ints(8)))
    table.run()
    assert table.rows() == [(1, "a", 7, 1.5), (2, "c", 8, None)]


def test_what_cannot_be_loaded_of_a_source_that_has_changed_is_refused(
    table: Scenario, source: Source, monkeypatch: pytest.MonkeyPatch
) -> None:
    def retype() -> None:
        source.write(id=ints(2), b=pyarrow.array(["c"]), n=pyarrow.array(["eight"]), score=floats(2.5))

    def add() -> None:
        source.write(id=ints(2), b=pyarrow.array(["c"]), n=ints(8), score=floats(2.5), new=ints(9))

    before = table.state()
    with monkeypatch.context() as patched:
        while_planned(patched, retype)
        run = table.fail()
    assert "Column `n` is int in the table, and the model returns string" in run.message
    assert "nothing was written to it" in run.message
    source.write(id=ints(2), b=pyarrow.array(["c"]), n=ints(8), score=floats(2.5))
    table.model(source.query, on_schema_change="fail")
    with monkeypatch.context() as patched:
        while_planned(patched, add)
        run = table.fail()
    assert "so nothing was written. In the model only: new. In the table only: none." in run.message
    assert table.state() == before
    assert table.tables() == ["t"]


def test_an_insert_that_is_always_sent_twice_is_never_published(
    table: Scenario, monkeypatch: pytest.MonkeyPatch
) -> None:
    table.model("select 3 as id, 'd' as b", **ADDS, incremental_strategy="append", commit_retries=1)
    sent_twice(monkeypatch, "INSERT INTO", times=9)
    run = table.fail()
    assert "2 commits are on its branch, and 1 statements were sent" in run.message
    assert table.rows() == [(1, "a"), (2, "b")]
    assert table.tables() == ["t"]
    assert list(table.table().metadata.refs) == ["main"]


@pytest.mark.core
def test_another_writer_who_is_faster_is_not_overwritten(
    table: Scenario, monkeypatch: pytest.MonkeyPatch
) -> None:
    table.model("select 2 as id, cast(count(*) as string) as b from {{ this }}", **ADDS)
    happened: list[None] = []

    def intrude(send: Callable[[], Any]) -> Any:
        if not happened:
            happened.append(None)
            append(table, [{"id": 9, "b": "theirs"}])
        return send()

    instead(monkeypatch, "INSERT INTO", intrude)
    run = table.run()
    assert "other writers have committed to it meanwhile, so the batch is loaded again" in run.log
    # The model was computed again, from the table with their row.
    assert table.rows() == [(1, "a"), (2, "3"), (9, "theirs")]
    assert table.tables() == ["t"]
    assert list(table.table().metadata.refs) == ["main"]


def test_values_of_a_column_that_comes_while_the_table_is_read_are_kept(
    table: Scenario, monkeypatch: pytest.MonkeyPatch
) -> None:
    table.model("select 2 as id, 'c' as b", **ADDS, removed_columns="keep")
    happened: list[None] = []

    def intrude(send: Callable[[], Any]) -> Any:
        if not happened:
            happened.append(None)
            table.sql(f"alter table {table.relation()} add column theirs int")
            table.sql(f"update {table.relation()} set theirs = 7")
        return send()

    instead(monkeypatch, "show create table", intrude)
    table.run()
    assert happened
    assert table.rows() == [(1, "a", 7), (2, "c", 7)]


def test_rows_of_other_partitions_stay_when_the_session_overwrites_all(
    table: Scenario, monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    """What the models of a session share: another one has said how partitions are overwritten."""
    if method == "thrift":
        pytest.skip("each connection has a session of its own")
    config = {**ADDS, "incremental_strategy": "insert_overwrite", "unique_key": None, "partition_by": "id"}
    table.sql(f"drop table {table.relation()} purge")
    table.model("select 1 as id, 'a' as b union all select 2, 'b'", **config)
    table.run()
    table.model("select 2 as id, 'c' as b", **config)
    happened: list[None] = []

    def intrude(send: Callable[[], Any]) -> Any:
        if not happened:
            happened.append(None)
            from pyspark.sql import SparkSession

            SparkSession.builder.getOrCreate().conf.set("spark.sql.sources.partitionOverwriteMode", "static")
        return send()

    instead(monkeypatch, "INSERT OVERWRITE", intrude)
    run = table.run()
    assert happened == [None]
    assert "another model has changed how its session overwrites partitions" in run.log
    assert table.rows() == [(1, "a"), (2, "c")]


def test_rows_of_others_are_not_rolled_back_with_a_batch_that_has_replaced_nothing(
    table: Scenario, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The table has files of an older partitioning, and somebody commits right after the batch."""
    config = {**ADDS, "unique_key": None, "incremental_strategy": "insert_overwrite", "publish": "direct"}
    table.sql(f"drop table {table.relation()} purge")
    table.model("select 1 as id, 1 as p union all select 3, 2", **config, partition_by="p")
    table.run()
    base = table.table().metadata.current_snapshot_id
    table.sql(f"alter table {table.relation()} replace partition field p with truncate(1, p)")
    table.model("select 4 as id, 2 as p", **config, partition_by="truncate(1, p)")

    def intrude(send: Callable[[], Any]) -> Any:
        answer = send()
        table.sql(f"insert into {table.relation()} values (7, 3)")
        return answer

    with monkeypatch.context() as patched:
        instead(patched, "INSERT OVERWRITE", intrude)
        run = table.fail()
    assert "its rows are visible beside those that they were to replace" in run.message
    assert f"Others have committed since snapshot {base}, so do not roll the table back" in run.message
    assert "rollback_to_snapshot" not in run.message
    assert table.rows() == [(1, 1), (3, 2), (4, 2), (7, 3)]
    rewrite = re.search(r"CALL … (system\.rewrite_data_files\(.*'true'\)\))", run.message)
    assert rewrite is not None
    table.sql(f"call lake.{rewrite[1]}")
    table.run()
    assert table.rows() == [(1, 1), (4, 2), (7, 3)]


def test_a_roll_back_in_the_last_moment_is_told(table: Scenario, monkeypatch: pytest.MonkeyPatch) -> None:
    """`fast_forward` moves `main` from any ancestor of the branch, not from the base alone."""
    table.model("select 2 as id, 'c' as b", **ADDS)
    table.run()
    metadata = table.table().metadata
    head = metadata.snapshot_by_id(metadata.current_snapshot_id)
    assert head is not None

    def roll_back(send: Callable[[], Any]) -> Any:
        name = f"{table.schema}.t"
        table.sql(f"call lake.system.rollback_to_snapshot('{name}', {head.parent_snapshot_id})")
        return send()

    table.model("select 3 as id, 'd' as b", **ADDS)
    with monkeypatch.context() as patched:
        instead(patched, "CALL", roll_back)
        run = table.fail()
    assert f"rolled the table back to snapshot {head.parent_snapshot_id} in the moment before" in run.message
    assert f"the rows are those of snapshot {head.snapshot_id} and of this run" in run.message
    assert table.rows() == [(1, "a"), (2, "c"), (3, "d")]


STEPS = ("create table if not exists", "ALTER TABLE", "INSERT INTO", "CALL", "drop table")


def test_nodes_that_fail_at_each_step_leave_a_table_that_can_be_loaded(
    table: Scenario, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each run goes on where the one before has failed, and fails one step later."""
    table.model("select 2 as id, 'c' as b, 1 as n", **ADDS)

    def fail(send: Callable[[], Any]) -> Any:
        raise DbtRuntimeError("the server is gone")

    for beginning in STEPS:
        with monkeypatch.context() as patched:
            instead(patched, beginning, fail)
            run = table.fail()
        assert "the server is gone" in run.message
        # Old rows or new ones, never some of both.
        found = [row[:2] for row in table.rows()]
        is_published = beginning == "drop table"
        assert (beginning, found) == (beginning, [(1, "a"), (2, "c" if is_published else "b")])
        # The batch went at the end of the command; a branch stays until a later run.
        assert table.tables() == ["t"] or is_published
    table.run()
    assert table.rows() == [(1, "a", None), (2, "c", 1)]
    for name in table.tables():
        if name != "t":
            table.sql(f"drop table {table.relation(name)}")


KILLED = """
import os, signal, sys, threading
from dbt.adapters.spark.connections import SparkConnectionManager
from dbt.cli.main import dbtRunner

real = SparkConnectionManager.add_query

beginning, when, *arguments = sys.argv[1:]

def kill():
    os.kill(os.getpid(), signal.SIGKILL)

def add_query(self, sql, *args, **kwargs):
    is_last = sql.rpartition("*/")[2].strip().startswith(beginning)
    if is_last and when == "during":
        threading.Timer(1, kill).start()
    answer = real(self, sql, *args, **kwargs)
    if is_last:
        kill()
    return answer

SparkConnectionManager.add_query = add_query
dbtRunner().invoke(["run", "--profiles-dir", ".", *arguments])
"""


def kill_job(project: Scenario, beginning: str, *arguments: str, when: str = "after") -> None:
    """Run a job in a process that is killed after the first statement that begins like this, or during it."""
    killed = subprocess.run(
        [sys.executable, "-c", KILLED, beginning, when, *arguments],
        cwd=project.folder,
        capture_output=True,
        check=False,
        text=True,
    )
    assert killed.returncode == -signal.SIGKILL, killed.stdout


def test_jobs_that_are_killed_after_each_step_leave_a_table_that_can_be_loaded(
    table: Scenario, method: str
) -> None:
    if method != "thrift":
        pytest.skip("another process cannot use the session")
    table.model("select 2 as id, 'c' as b, 1 as n", **ADDS)
    # The first ALTER TABLE adds the column, the one of the run after it makes the branch.
    steps = ("create table if not exists", "ALTER TABLE", "ALTER TABLE", "DELETE", "INSERT INTO", "CALL")
    for beginning in steps:
        kill_job(table, beginning)
        found = [row[:2] for row in table.rows()]
        assert (beginning, found) == (beginning, [(1, "a"), (2, "c" if beginning == "CALL" else "b")])
    table.run()
    assert table.rows() == [(1, "a", None), (2, "c", 1)]
    assert table.schemas() == 2
    assert table.dbt("run-operation", "sparkevolve.clean_up", "--args", "{hours: -1}").success
    assert table.tables() == ["t"]


def test_full_refreshes_that_are_killed_leave_all_rows_of_one_run(table: Scenario, method: str) -> None:
    if method != "thrift":
        pytest.skip("another process cannot use the session")
    old, new = [(1, "a"), (2, "b")], [(3, None), (4, None)]
    query = "select cast(id as int) as id, 7 as n from range(3, 5)"
    table.model(query, **ADDS)
    kill_job(table, "INSERT OVERWRITE", "--full-refresh")
    assert [row[:2] for row in table.rows()] == old
    kill_job(table, "CALL", "--full-refresh")
    assert [row[:2] for row in table.rows()] == new
    # The server goes on with a statement whose client is gone, or stops it.
    slow = f"select *, java_method('java.lang.Thread', 'sleep', 4000L) as slept from ({query})"
    for schema, beginning in (("keep", "create table if not exists"), ("replace", "create or replace table")):
        table.model(slow, **ADDS, full_refresh_schema=schema)
        kill_job(table, beginning, "--full-refresh", when="during")
        assert [row[0] for row in table.rows()] == [3, 4]
    table.model("select 5 as id", **ADDS, full_refresh_schema="replace")
    table.run("--full-refresh")
    assert table.rows() == [(5,)]
    table.model("select 6 as id", **ADDS)
    table.run()
    assert table.rows() == [(5,), (6,)]
    assert table.dbt("run-operation", "sparkevolve.clean_up", "--args", "{hours: -1}").success
    assert table.tables() == ["t"]


def test_a_killed_full_refresh_that_ends_late_replaces_nothing(table: Scenario, proxy: Proxy) -> None:
    """The server gets its CREATE OR REPLACE after others have loaded."""
    table.model("select 9 as id", **ADDS, full_refresh_schema="replace")
    cut = Cut("create or replace table", When.LATE, keeps_client=True)
    proxy.cut(cut)
    kill_when_sent(table.folder, cut, "run", "--full-refresh")
    assert f"t__dbt_tmp_{table.table().properties['sparkevolve.replaced-by']}" in table.tables()
    table.model("select 3 as id, 'c' as b", **ADDS)
    proxy.cut()
    run = table.run()
    assert (
        f"by which a full refresh was to replace {table.relation()}: it has failed, was killed, or" in run.log
    )
    loaded = table.state()
    assert table.rows() == [(1, "a"), (2, "b"), (3, "c")]
    proxy.deliver()
    assert table.state() == loaded
    assert table.tables() == ["t"]
    assert "sparkevolve.replaced-by" not in table.table().properties
    table.model("select 9 as id", **ADDS, full_refresh_schema="replace")
    table.run("--full-refresh")
    assert table.rows() == [(9,)]
    assert table.tables() == ["t"]
    assert "sparkevolve.replaced-by" not in table.table().properties


def test_the_note_of_another_full_refresh_stays(table: Scenario, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that has begun when the batch of this one was put into place, and has not replaced anything yet."""
    table.model("select 9 as id, 'x' as b", **ADDS, full_refresh_schema="replace")
    other = "ba9876543210"
    happened: list[None] = []

    def drop(send: Callable[[], Any]) -> Any:
        answer = send()
        if not happened:
            happened.append(None)
            table.sql(
                f"alter table {table.relation()} set tblproperties ('sparkevolve.replaced-by' = '{other}')"
            )
        return answer

    with monkeypatch.context() as patched:
        instead(patched, "drop table if exists", drop)
        table.run("--full-refresh")
    assert happened == [None]
    assert table.rows() == [(9, "x")]
    assert table.table().properties["sparkevolve.replaced-by"] == other
    table.run("--full-refresh")
    assert "sparkevolve.replaced-by" not in table.table().properties


def test_a_full_refresh_whose_batch_is_taken_away_says_so(
    table: Scenario, monkeypatch: pytest.MonkeyPatch
) -> None:
    table.model("select 9 as id, 'x' as b", **ADDS, full_refresh_schema="replace")
    taken: list[str] = []

    def take(send: Callable[[], Any]) -> Any:
        taken.extend(name for name in table.tables() if "__dbt_tmp_" in name)
        table.sql(f"drop table {table.relation(taken[0])} purge")
        return send()

    rows = table.rows()
    with monkeypatch.context() as patched:
        instead(patched, "create or replace table", take)
        run = table.fail("--full-refresh")
    assert (
        f"The batch {taken[0]}, which a run of {table.schema}.t was reading, is gone: another run of the "
        "model has begun meanwhile"
    ) in run.log
    assert "The table was not replaced." in run.log
    assert table.rows() == rows
    assert table.tables() == ["t"]

    def fail(send: Callable[[], Any]) -> Any:
        (name,) = (name for name in table.tables() if "__dbt_tmp_" in name)
        raise DbtRuntimeError(f"TABLE_OR_VIEW_NOT_FOUND: {name}")

    # It is not said of a batch that is there, whatever the error says.
    with monkeypatch.context() as patched:
        instead(patched, "create or replace table", fail)
        assert "is gone" not in table.fail("--full-refresh").log


def test_what_an_error_means_is_told_at_the_end(table: Scenario, monkeypatch: pytest.MonkeyPatch) -> None:
    merged: dict[str, Any] = {**ADDS, "incremental_strategy": "merge"}
    table.model("select 1 as id, 'x' as b union all select 1, 'y'", **merged)
    run = table.fail()
    assert "MERGE_CARDINALITY_VIOLATION" in run.message
    told = f"sparkevolve: {table.schema}.t: "
    assert f"{told}the batch has several rows with one key, and MERGE cannot take two of them" in run.log
    assert table.rows() == [(1, "a"), (2, "b")]
    table.model("select 1 as id, 'x' as b", **merged)

    def intrude(send: Callable[[], Any]) -> Any:
        append(table, [{"id": 9, "b": "theirs"}])
        return send()

    with monkeypatch.context() as patched:
        instead(patched, "CALL `lake`.system.fast_forward", intrude)
        run = table.fail()
    assert "Cannot fast-forward: main is not an ancestor" in run.message
    assert f"{told}another writer has committed to the table in the moment" in run.log
    assert table.rows() == [(1, "a"), (2, "b"), (9, "theirs")]


# What Spark says if somebody has committed in the moment of a statement.
FASTER = ("CommitFailedException", "already exists", "Cannot fast-forward: main is not an ancestor")


def test_two_jobs_run_the_same_models_at_once(table: Scenario, method: str) -> None:
    """Each adds a column, and a row in each round; the rows of both are there, and no row twice."""
    if method != "thrift":
        pytest.skip("another process cannot use the session")
    models: dict[str, dict[str, Any]] = {
        "appended": {"unique_key": None, "incremental_strategy": "append"},
        "keyed": {"unique_key": "id"},
        "merged": {"unique_key": "id", "incremental_strategy": "merge"},
    }
    for name, config in models.items():
        query = "select '{{ var('job') }}{{ var('round') }}' as id, 1 as `of_{{ var('job') }}`"
        table.model(query, name, **ADDS, **config, commit_retries=20)

    places = ("--profiles-dir", ".", "--threads", "3", "--write-json")

    def start(job: str, *command: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-m", "dbt.cli.main", *command, *places, "--target-path", f"target_{job}"],
            cwd=table.folder,
            stdout=subprocess.PIPE,
            text=True,
        )

    def run(job: str, number: int) -> subprocess.Popen[str]:
        return start(job, "run", "--vars", f"{{job: {job}, round: {number}}}", "--select", *models)

    def said(job: subprocess.Popen[str]) -> tuple[int, str]:
        output = job.communicate()[0]
        return job.returncode, output

    assert said(run("x", 0))[0] == 0
    failed: list[str] = []
    for number in (1, 2):
        jobs = {name: run(name, number) for name in ("a", "b")}
        for name, (code, output) in {name: said(job) for name, job in jobs.items()}.items():
            # Another one was faster in the moment of a change of columns, or of `fast_forward`.
            if code != 0:
                assert any(text in output for text in FASTER), output
                failed += re.findall(r"ERROR creating sql incremental model \w+\.(\w+)", output)
                assert said(start(name, "retry"))[0] == 0, output
    ids = ["a1", "a2", "b1", "b2", "x0"]
    columns = ["id", "of_x", "of_a", "of_b"]
    expected = [{**dict.fromkeys(columns), "id": id_, f"of_{id_[0]}": 1} for id_ in ids]
    for name in models:
        rows = table.table(name).scan().to_arrow().to_pylist()
        assert sorted(rows, key=lambda row: row["id"]) == expected, name
        assert sorted(table.columns(name)) == sorted(columns), name
        # The branch of a node that has failed stays for a while.
        branches = set(table.table(name).metadata.refs) - {"main"}
        assert len(branches) <= failed.count(name), (name, failed)
        # Nobody after this test gives the variables that it reads.
        (table.folder / f"models/{name}.sql").unlink()


METRICS = "write.metadata.metrics.column."


def test_a_replacement_takes_away_what_is_set_for_columns_that_go(table: Scenario) -> None:
    """Iceberg changes no property of a table with metrics for a column that it lacks: no run could end."""
    fields = "named_struct('x', 1, 'y', 2) as s, array(named_struct('m', 1)) as l"
    others = [f"{METRICS}{name}" for name in ("id", "s.x", "l.element.m")]
    gone = [f"{METRICS}{name}" for name in ("v", "s.y")]
    properties = ", ".join(f"'{name}' = 'full'" for name in (*others, *gone))
    table.model(f"select 1 as id, 2 as v, {fields}", **ADDS)
    table.run("--full-refresh")
    table.sql(f"alter table {table.relation()} set tblproperties ({properties})")
    fewer = fields.replace(", 'y', 2", "")
    table.model(f"select 1 as id, 3 as w, {fewer}", **ADDS, full_refresh_schema="replace")
    run = table.run("--full-refresh")
    assert f"removing the property {METRICS}v, since the table no longer has that column" in run.log
    kept = table.table().properties
    assert {name for name in kept if name.startswith(METRICS)} == set(others)
    assert "sparkevolve.replaced-by" not in kept
    rows = [(1, 3, {"x": 1}, [{"m": 1}])]
    assert table.rows() == rows
    # A table that such a run has left behind is loaded, and replaced.
    for arguments in ([], ["--full-refresh"]):
        with table.table().transaction() as transaction:
            transaction.set_properties({f"{METRICS}v": "full", "sparkevolve.replaced-by": "0123456789ab"})
        table.run(*arguments)
        assert table.rows() == rows
        assert "sparkevolve.replaced-by" not in table.table().properties
        assert f"{METRICS}v" not in table.table().properties


def test_a_replacement_by_an_older_format_is_refused_before_anything_is_written(table: Scenario) -> None:
    table.sql(f"alter table {table.relation()} set tblproperties ('format-version' = '3')")
    before = table.state()
    table.model(
        "select 9 as id", **ADDS, full_refresh_schema="replace", tblproperties={"format-version": "2"}
    )
    why = (
        "`tblproperties` say that `format-version` is 2, and the table that is to be replaced has 3, which "
        "nobody can take back. Say 3, or leave it out."
    )
    message = table.fail("--full-refresh").message
    assert f"and nothing was written to it:\n    * {why}" in message
    plan = table.fail("--full-refresh", "--vars", "sparkevolve_plan_only: true").message
    assert f"The run would be refused: {why}" in plan
    assert table.state() == before


DROPS = (
    "{% set old = load_relation(this) %}"
    "{% if old is not none %}{% do adapter.drop_relation(old) %}{% endif %}"
)


def test_a_table_that_a_hook_drops_is_not_made_from_the_rows_of_an_increment(table: Scenario) -> None:
    """Also where a macro of the project asks; a model that never asks is made anew."""
    table.file("macros/late.sql", "{% macro late() %}{{ 'where id > 1' if is_incremental() }}{% endmacro %}")
    rows = "select * from (select 1 as id, 'a' as b union all select 2, 'b') "
    cases = {
        "asks": rows + "{% if is_incremental() %}where id > 1{% endif %}",
        "calls": rows + "{{ late() }}",
        "looks": rows + "{% if load_relation(this) %}where id > 1{% endif %}",
        "never": rows,
    }
    # A hook may ask: that is none of the model's rows.
    drops = DROPS + "{% if is_incremental() %}{{ late() }}{% endif %}"
    for name, sql in cases.items():
        table.model(sql, name, **ADDS)
    table.run("--select", *cases)
    for name, sql in cases.items():
        table.model(sql, name, **ADDS, pre_hook=drops if name == "never" else DROPS)
    said = table.fail("--select", *cases).said
    gone = (
        "was there when dbt compiled the model, and is not a table any more: a hook of this run, or another"
    )
    assert f"{table.schema}.asks {gone}" in said["asks"]
    assert "The model asks `is_incremental()`, so what it returns now are the rows for a" in said["asks"]
    assert f"{table.schema}.calls {gone}" in said["calls"]
    assert "may ask `is_incremental()` in a macro that it calls" in said["calls"]
    assert (
        "The model may ask for its table by `load_relation`, so what it returns now may be" in said["looks"]
    )
    assert said["never"] == "OK"
    assert {"asks", "calls", "looks"}.isdisjoint(table.tables())
    assert table.rows("never") == [(1, "a"), (2, "b")]
    # As the error says, another run makes it whole.
    table.run("--select", *cases)
    for name in cases:
        assert table.rows(name) == [(1, "a"), (2, "b")]
        (table.folder / f"models/{name}.sql").unlink()
        table.sql(f"drop table {table.relation(name)} purge")
    (table.folder / "macros/late.sql").unlink()
