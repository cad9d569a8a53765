"""Other writers, readers and maintenance during a run: nothing is lost, and nobody sees it half done."""

import json
import re
import threading
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import date
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.catalog import Catalog
from pyiceberg.exceptions import CommitFailedException
from pyiceberg.types import StringType

from dbt.adapters.sparkevolve.iceberg.catalog import IcebergCatalog
from dbt.adapters.sparkevolve.impl import SparkEvolveAdapter
from tests.functional.harness import Run, Scenario
from tests.functional.worker import Outcome, Worker

Intrude = Callable[..., list[None]]


def append(scenario: Scenario, rows: list[dict[str, Any]], name: str = "t") -> None:
    """Append rows as another writer, with PyIceberg, which meets other writers too."""
    while True:
        table = scenario.table(name)
        try:
            table.append(pa.Table.from_pylist(rows, schema=table.schema().as_arrow()))
        except (CommitFailedException, ValueError) as exc:
            if isinstance(exc, ValueError) and "sequence number" not in str(exc):
                raise
        else:
            return


def staged(run: Run) -> int:
    """How often a batch was staged."""
    return len(re.findall(r"^\s*create table `lake`.`\w+`.`\w+__dbt_tmp_", run.log, re.MULTILINE))


def cut(run: Run) -> int:
    """How often a branch was cut, each time to load the batch."""
    return len(re.findall(r"CREATE (?:OR REPLACE )?BRANCH `sparkevolve_", run.log))


def is_clean(scenario: Scenario, *names: str) -> bool:
    """Whether nothing but the tables of these models is there, and no branch but ``main``."""
    names = names or ("t",)
    refs = {ref for name in names for ref in scenario.table(name).metadata.refs}
    return scenario.tables() == sorted(names) and refs <= {"main"}


@pytest.fixture
def intrude(monkeypatch: pytest.MonkeyPatch) -> Intrude:
    """Let something happen right before, or after, calls of a method: no mock, the real one runs too."""

    def prepare(
        owner: type,
        method: str,
        action: Callable[[], Any],
        times: int = 1,
        *,
        after: bool = False,
        sql: str = "",
    ) -> list[None]:
        real = getattr(owner, method)
        happened: list[None] = []

        def call(self: Any, *args: Any, **kwargs: Any) -> Any:
            wanted = len(happened) < times and (not sql or str(args[0]).strip().startswith(sql))
            if wanted:
                happened.append(None)
            if wanted and not after:
                action()
            answer = real(self, *args, **kwargs)
            if wanted and after:
                action()
            return answer

        monkeypatch.setattr(owner, method, call)
        return happened

    return prepare


@pytest.mark.parametrize("config", [{}, {"incremental_strategy": "merge"}, {"unique_key": None}])
def test_a_commit_while_a_batch_is_loaded_stays(
    scenario: Scenario, intrude: Intrude, config: dict[str, Any]
) -> None:
    """The model does not read its table: the batch is loaded again, but not computed again."""
    scenario.model("select 1 as id, 10 as v", **config)
    scenario.run()
    scenario.model("select 2 as id, 20 as v", **config)
    happened = intrude(IcebergCatalog, "publish", lambda: append(scenario, [{"id": 3, "v": 30}]), 2)
    run = scenario.run()
    assert len(happened) == 2
    assert scenario.rows() == [(1, 10), (2, 20), (3, 30), (3, 30)]
    assert (staged(run), cut(run)) == (1, 3)
    assert is_clean(scenario)


@pytest.mark.parametrize("source", ["{{ this }}", "seen", "seen_too"])
def test_a_batch_computed_from_the_table_is_computed_again(
    scenario: Scenario, intrude: Intrude, source: str
) -> None:
    """A running total, read from the table itself or through views: a stale one would lose the other's 30."""
    scenario.model("select * from values (1, 10), (2, 20) as source(id, v)")
    scenario.run()
    for view, of in (("seen", scenario.relation()), ("seen_too", scenario.relation("seen"))):
        scenario.sql(f"create view {scenario.relation(view)} as select * from {of}")
    relation = source if source == "{{ this }}" else scenario.relation(source)
    scenario.model(f"select 0 as id, cast(sum(v) as int) as v from {relation} where id > 0")
    happened = intrude(IcebergCatalog, "publish", lambda: append(scenario, [{"id": 3, "v": 30}]))
    run = scenario.run()
    assert len(happened) == 1
    assert scenario.rows() == [(0, 60), (1, 10), (2, 20), (3, 30)]
    assert (staged(run), cut(run)) == (2, 2)
    assert is_clean(scenario)


@pytest.mark.parametrize("when", ["publish", "staged_batch"])
def test_a_commit_to_an_empty_table_stays(scenario: Scenario, intrude: Intrude, when: str) -> None:
    """The table has no snapshot yet, so there is none to compare with."""
    scenario.model("select 1 as id, (select count(*) from {{ this }}) as v")
    scenario.sql(f"create schema if not exists `lake`.`{scenario.schema}`")
    scenario.sql(f"create table {scenario.relation()} (id int, v bigint) using iceberg")
    happened = intrude(IcebergCatalog, when, lambda: append(scenario, [{"id": 3, "v": 30}]))
    run = scenario.run()
    assert len(happened) == 1
    assert scenario.rows() == [(1, 1), (3, 30)]
    assert staged(run) == 2
    assert is_clean(scenario)


@pytest.mark.parametrize("empty", [False, True])
def test_other_writers_each_time(scenario: Scenario, intrude: Intrude, empty: bool) -> None:
    scenario.model("select 1 as id, 10 as v" + " where false" * empty)
    scenario.run()
    scenario.model("select 1 as id, 11 as v", commit_retries=1)
    happened = intrude(IcebergCatalog, "publish", lambda: append(scenario, [{"id": 3, "v": 30}]), 9)
    run = scenario.fail()
    assert run.message.strip().endswith(
        f"The batch was loaded into {scenario.relation()} 2 times, and each time other writers had committed "
        "to the table meanwhile, so it was not published: it would have undone what they did. The table's "
        "rows are theirs, none of this run's is visible. Run the model again when the table is quieter, or "
        "raise `commit_retries`."
    )
    assert len(happened) == 2
    assert scenario.rows() == [*([] if empty else [(1, 10)]), (3, 30), (3, 30)]
    assert is_clean(scenario)


def test_another_spark_session_deletes_rows_meanwhile(scenario: Scenario, intrude: Intrude) -> None:
    scenario.model("select * from values (1, 10), (2, 20) as source(id, v)")
    scenario.run()
    scenario.model("select 0 as id, cast(sum(v) as int) as v from {{ this }} where id > 0")
    scenario.sql(f"refresh table {scenario.relation()}")
    intrude(
        IcebergCatalog, "publish", lambda: scenario.sql(f"delete from {scenario.relation()} where id = 2")
    )
    scenario.run()
    assert scenario.rows() == [(0, 10), (1, 10)]
    assert is_clean(scenario)


def test_g08_a_run_with_other_vars_meanwhile(scenario: Scenario, intrude: Intrude) -> None:
    """While one has loaded its day and not published it, the other loads its own from beginning to end."""
    scenario.model("select date'2020-01-01' as day, 0 as v", unique_key="day")
    scenario.run()
    scenario.model(
        "select date_add(date'2020-01-01', {{ var('day') }}) as day, {{ var('day') }} as v\n"
        "union all select date'2020-01-01', {{ var('day') }} where {{ var('day') }} = 2",
        unique_key="day",
    )
    with Worker() as worker:
        two = ("run", "--vars", "{day: 2}")
        happened = intrude(IcebergCatalog, "publish", lambda: others.extend(worker.run(scenario, two)))
        others: list[Outcome] = []
        run = scenario.run("--vars", "{day: 1}")
    assert len(happened) == 1
    assert [outcome.success for outcome in others] == [True], others
    days = [date(2020, 1, day) for day in (1, 2, 3)]
    assert scenario.rows() == [(days[0], 2), (days[1], 1), (days[2], 2)]
    assert (staged(run), cut(run)) == (1, 2)
    assert is_clean(scenario)


def test_two_processes_run_the_same_models(scenario: Scenario) -> None:
    """Each process runs twice beside the other; rows of both are there, and each run that succeeds counts."""
    writer = "{{ var('writer') }}"
    models = {
        "appended": ("select {0} as writer, {1} as round", {"unique_key": None}),
        "keyed": ("select {0} * 10 + {1} as id, {0} as writer, {1} as `w{0}`, 7 as both", {}),
        "total": (
            "select 0 as id, coalesce(max(n), 0) + 1 as n from "
            "{{% if is_incremental() %}} {{{{ this }}}} {{% else %}} values (0) as source(n) {{% endif %}}",
            {},
        ),
    }
    for name, (sql, config) in models.items():
        scenario.model(sql.format(writer, "{{ var('round') }}"), name, commit_retries=20, **config)

    def command(writer: int, number: int) -> tuple[str, ...]:
        return ("run", "--threads", "3", "--vars", json.dumps({"writer": writer, "round": number}))

    assert scenario.dbt(*command(0, 0)).success
    with Worker() as worker:
        assert worker.run(scenario, command(2, 0))[0].success
        worker.start(scenario, *[command(2, number) for number in (1, 2)])
        ours = [scenario.dbt(*command(1, number)) for number in (1, 2)]
        theirs = worker.wait()
    assert [run.message for run in ours] == [outcome.message for outcome in theirs] == ["", ""]
    rounds = [(0, 0), (1, 1), (1, 2), (2, 0), (2, 1), (2, 2)]
    assert scenario.rows("appended") == rounds
    columns = ["id", "writer", "w0", "both", "w1", "w2"]
    assert sorted(scenario.columns("keyed")) == sorted(columns)
    found = scenario.table("keyed").scan().to_arrow().to_pylist()
    expected = [
        {**dict.fromkeys(columns), "id": w * 10 + r, "writer": w, f"w{w}": r, "both": 7} for w, r in rounds
    ]
    assert sorted(found, key=lambda row: row["id"]) == expected
    assert scenario.rows("total") == [(0, 6)]
    assert is_clean(scenario, *models)


@contextmanager
def repeatedly(action: Callable[[], None], seconds: float) -> Iterator[list[None]]:
    """Do something again and again in another thread; say how often, and fail if it failed."""
    stop = threading.Event()
    done: list[None] = []
    failed: list[BaseException] = []

    def work() -> None:
        try:
            while True:
                action()
                done.append(None)
                if stop.wait(seconds):
                    return
        except BaseException as exc:
            failed.append(exc)

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield done
    finally:
        stop.set()
        thread.join()
    assert not failed, failed


def test_h08_a_stream_appends_during_runs(scenario: Scenario) -> None:
    """It commits about each second. A run gets in between, or says that it did not."""
    scenario.model("select 0 as id, 0 as v")
    scenario.run()
    loaded = 0
    with repeatedly(lambda: append(scenario, [{"id": 9, "v": 1}]), 1.0) as appended:
        for number in (1, 2, 3):
            scenario.model(f"select 0 as id, {number} as v", commit_retries=20)
            run = scenario.dbt("run")
            assert run.success or "other writers had committed" in run.message
            loaded = number if run.success else loaded
    assert scenario.rows() == [(0, loaded), *[(9, 1)] * len(appended)]
    assert is_clean(scenario)


def age(scenario: Scenario, lake: Catalog, days: int) -> None:
    """Let the table be as if all that happened to it had happened some days ago."""
    table = scenario.table()
    metadata = json.loads(table.metadata.model_dump_json())

    def shifted(value: Any) -> Any:
        if isinstance(value, dict):
            return {
                key: item - days * 86_400_000 if key in ("timestamp-ms", "last-updated-ms") else shifted(item)
                for key, item in value.items()
            }
        return [shifted(item) for item in value] if isinstance(value, list) else value

    path = Path(table.metadata_location.removeprefix("file:").removeprefix("//"))
    aged = path.with_name(f"00009-{uuid.uuid4()}.metadata.json")
    # Not made from the versions in the log, which have the real times.
    aged.write_text(json.dumps({**shifted(metadata), "metadata-log": []}))
    lake.drop_table(table.name())
    lake.register_table(table.name(), f"file://{aged}")


EXPIRE = "call lake.system.expire_snapshots(table => '{}', older_than => timestamp '2999-01-01 00:00:00')"
COMPACT = "call lake.system.rewrite_data_files(table => '{}', options => map('rewrite-all', 'true'))"


@pytest.mark.parametrize("config", [{}, {"removed_columns": "keep"}, {"incremental_strategy": "merge"}])
def test_snapshots_expire_during_a_run(
    scenario: Scenario, lake: Catalog, intrude: Intrude, config: dict[str, Any]
) -> None:
    """A branch goes when it is older than its retention, and its age is that of its last snapshot."""
    scenario.model("select * from values (1, 10, 'a'), (2, 20, 'b') as source(id, v, gone)", **config)
    scenario.run()
    scenario.run()
    age(scenario, lake, 30)
    base = scenario.snapshots()[-1]
    scenario.sql(f"refresh table {scenario.relation()}")
    scenario.model("select 2 as id, 21 as v", **config)
    expire = EXPIRE.format(f"{scenario.schema}.t")
    cuts = intrude(SparkEvolveAdapter, "execute", lambda: scenario.sql(expire), after=True, sql="ALTER TABLE")
    publications = intrude(IcebergCatalog, "publish", lambda: scenario.sql(expire))
    run = scenario.run()
    assert (len(cuts), len(publications), cut(run)) == (1, 1, 1)
    assert scenario.rows() == [(1, 10, "a"), (2, 21, "b" if config else None)]
    assert scenario.snapshots()[0] == base
    assert is_clean(scenario)


@pytest.mark.parametrize(
    ("before", "config"),
    [
        ("DELETE", {}),
        ("INSERT", {}),
        ("INSERT", {"removed_columns": "keep"}),
        ("INSERT", {"unique_key": None}),
        ("MERGE", {"incremental_strategy": "merge"}),
        ("publish", {}),
    ],
)
def test_somebody_drops_the_branch_of_a_run(
    scenario: Scenario, lake: Catalog, intrude: Intrude, before: str, config: dict[str, Any]
) -> None:
    """Spark's INSERT would recreate it, from `main` and without what the run had deleted."""
    scenario.model("select * from values (1, 10, 'a'), (2, 20, 'b') as source(id, v, gone)", **config)
    scenario.run()
    scenario.model("select 2 as id, 21 as v", **config)

    def drop() -> None:
        (branch,) = set(scenario.table().metadata.refs) - {"main"}
        scenario.sql(f"alter table {scenario.relation()} drop branch `{branch}`")

    if before == "publish":
        happened = intrude(IcebergCatalog, before, drop)
    else:
        happened = intrude(SparkEvolveAdapter, "execute", drop, sql=before)
    run = scenario.run()
    assert len(happened) == 1
    replaced = [(2, 20, "b"), (2, 21, None)] if "unique_key" in config else [(2, 21, "b" if config else None)]
    assert scenario.rows() == [(1, 10, "a"), *replaced]
    assert (staged(run), cut(run)) == (1, 2)
    assert is_clean(scenario)


def test_a_compaction_during_a_run(scenario: Scenario, intrude: Intrude) -> None:
    scenario.model("select * from values (1, 10), (2, 20) as source(id, v)")
    scenario.run()
    append(scenario, [{"id": 3, "v": 30}])
    scenario.sql(f"refresh table {scenario.relation()}")
    scenario.model("select 2 as id, 21 as v")
    compact = COMPACT.format(f"{scenario.schema}.t")
    rewritten: list[Any] = []
    intrude(IcebergCatalog, "publish", lambda: rewritten.extend(scenario.sql(compact)))
    run = scenario.run()
    assert rewritten[0][0] == 2, "files"
    assert scenario.rows() == [(1, 10), (2, 21), (3, 30)]
    assert (staged(run), cut(run)) == (1, 2)
    assert is_clean(scenario)


def test_microbatches_in_parallel(scenario: Scenario) -> None:
    days = range(1, 9)
    source = ", ".join(f"({day}, timestamp'2024-01-0{day} 05:00:00')" for day in days)
    scenario.model(
        f"select * from values {source} as source(id, ts)",
        name="events",
        materialized="table",
        unique_key=None,
        on_schema_change=None,
        event_time="ts",
    )
    config = {
        "unique_key": None,
        "incremental_strategy": "microbatch",
        "event_time": "ts",
        "begin": "2024-01-01",
        "batch_size": "day",
    }
    window = ("--event-time-start", "2024-01-01", "--event-time-end", "2024-01-09")
    scenario.model("select id, ts, 'old' as v from {{ ref('events') }}", **config)
    scenario.run(*window, "--threads", "4")
    before = scenario.snapshots()
    scenario.model("select id, ts, 'new' as v, id * 2 as n from {{ ref('events') }}", **config)
    run = scenario.run("-s", "t", *window, "--threads", "4")
    assert [(row[0], *row[2:]) for row in scenario.rows()] == [(day, "new", day * 2) for day in days]
    (result,) = run.result.result
    assert (len(result.batch_results.successful), result.batch_results.failed) == (8, [])
    assert len(scenario.snapshots()) == len(before) + 16
    assert scenario.schemas() == 2
    assert is_clean(scenario, "t", "events")


def test_g05_readers_never_see_the_gap(scenario: Scenario) -> None:
    scenario.model("select cast(id as int) as id, 0 as v from range(1000)")
    scenario.run()
    seen: list[tuple[int, int]] = []

    def read() -> None:
        rows = scenario.table().scan().to_arrow().to_pylist()
        seen.append((len({row["id"] for row in rows}), len({row["v"] for row in rows})))
        assert len(rows) == 1000

    with repeatedly(read, 0.0):
        for number in (1, 2):
            scenario.model(f"select cast(id as int) as id, {number} as v from range(1000)")
            scenario.run()
    assert len(seen) > 10
    assert set(seen) == {(1000, 1)}
    assert {row[1] for row in scenario.rows()} == {2}


@pytest.mark.parametrize("is_recreated", [False, True])
def test_another_writer_takes_away_the_table_during_a_load(
    scenario: Scenario, intrude: Intrude, is_recreated: bool
) -> None:
    scenario.model("select 1 as id, 10 as v")
    scenario.run()
    scenario.model("select 2 as id, 20 as v")

    def drop() -> None:
        scenario.sql(f"drop table {scenario.relation()}")
        if is_recreated:
            scenario.sql(f"create table {scenario.relation()} using iceberg as select 5 as id, 50 as v")

    happened = intrude(SparkEvolveAdapter, "execute", drop, sql="INSERT")
    run = scenario.fail()
    assert len(happened) == 1
    assert (
        f"Another writer has dropped {scenario.relation()}, or dropped and recreated it, while this run "
        "loaded its batch. Run the model again: it begins with the table as it is then."
    ) in " ".join(run.message.split())
    assert scenario.tables() == (["t"] if is_recreated else [])
    scenario.run()
    assert scenario.rows() == ([(2, 20), (5, 50)] if is_recreated else [(2, 20)])
    assert is_clean(scenario)


def test_overwriting_models_leave_no_setting_behind(scenario: Scenario) -> None:
    """A plain INSERT OVERWRITE, in their own hooks or in a model at the same time, replaces everything."""
    first, second = (
        "select * from values (1, 1), (2, 2) as s(v, day)",
        "select * from values (7, 2) as s(v, day)",
    )
    plain = {"materialized": "table", "unique_key": None, "on_schema_change": None, "partition_by": "day"}
    days = {"incremental_strategy": "insert_overwrite", "unique_key": None, "partition_by": ["day"]}
    models = {"days": days, "whole": {**days, "partition_by": None}, "other": plain}
    overwrite = "insert overwrite {{ this.schema }}.{{ this.identifier }}_hook values (9, %d)"
    for name in models:
        scenario.model(first, f"{name}_hook", **plain)
    scenario.run()
    for day, sql in ((3, first), (4, second)):
        for name, config in models.items():
            scenario.model(sql, name, **config, post_hook=overwrite % day)
        scenario.run("--threads", "3", "-s", *models)
    assert {name: scenario.rows(name) for name in models} == {
        "days": [(1, 1), (7, 2)],
        "whole": [(7, 2)],
        "other": [(7, 2)],
    }
    assert [scenario.rows(f"{name}_hook") for name in models] == [[(9, 4)]] * 3


def add_column(scenario: Scenario) -> None:
    with scenario.table().update_schema() as update:
        update.add_column("theirs", StringType())


def drop_column(scenario: Scenario) -> None:
    with scenario.table().update_schema(allow_incompatible_changes=True) as update:
        update.delete_column("gone")


@pytest.mark.parametrize("change", [add_column, drop_column])
@pytest.mark.parametrize("when", ["evolve", "publish"])
def test_another_writer_changes_the_columns(
    scenario: Scenario, intrude: Intrude, change: Callable[[Scenario], None], when: str
) -> None:
    scenario.model("select 1 as id, 10 as v, 'g' as gone")
    scenario.run()
    scenario.model("select 1 as id, 11 as v, 'n' as n")
    intrude(IcebergCatalog, when, lambda: change(scenario), after=when == "evolve")
    run = scenario.dbt("run")
    found = scenario.table().scan().to_arrow().to_pylist()
    assert [row["v"] for row in found] == [11 if run.success else 10]
    assert (
        run.success or f"Another writer has dropped or renamed `gone` of {scenario.relation()}" in run.message
    )
    assert is_clean(scenario)
    scenario.run()
    found = scenario.table().scan().to_arrow().to_pylist()
    extra = {"gone": None, "theirs": None} if change is add_column else {}
    assert found == [{"id": 1, "v": 11, "n": "n", **extra}]
    assert is_clean(scenario)
