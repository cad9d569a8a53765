"""A load under way: what is cut, written and run, and how much of it has been done."""

from datetime import datetime, timezone
from typing import Any

import pytest
from pyiceberg.catalog import Catalog
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.transforms import BucketTransform, DayTransform, IdentityTransform
from pyiceberg.types import IntegerType

from dbt.adapters.sparkevolve.evolution.policy import TableFacts
from dbt.adapters.sparkevolve.iceberg.base import Base, Head
from dbt.adapters.sparkevolve.iceberg.catalog import IcebergCatalog
from dbt.adapters.sparkevolve.iceberg.facts import table_facts
from dbt.adapters.sparkevolve.load.batch_plan import plan_batch
from dbt.adapters.sparkevolve.load.load import Load
from dbt.adapters.sparkevolve.sql.branch_statements import create_branch
from dbt.adapters.sparkevolve.sql.dml import (
    Key,
    between,
    delete_statement,
    delete_where,
    insert_and_keep,
    insert_statement,
    merge_statement,
)
from tests.unit.conftest import MakeTable
from tests.unit.helpers import append, columns, model_settings, relation, struct

TARGET, STAGED = relation("t"), relation("t__dbt_tmp_0123456789ab")
DAY_MS = 24 * 3_600_000
MAIN = "`lake`.`db`.`t`"


class Loads:
    """Makes loads of staged rows into a real table."""

    def __init__(self, lake: IcebergCatalog, other: Catalog, make_table: MakeTable) -> None:
        self.lake, self.other, self.make_table = lake, other, make_table

    def table(
        self,
        schema: str | Schema,
        *rows: dict[str, object],
        spec: PartitionSpec = PartitionSpec(),  # noqa: B008
    ) -> None:
        schema = columns(schema) if isinstance(schema, str) else schema
        table = self.other.create_table("db.t", schema, partition_spec=spec)
        if rows:
            append(table, list(rows))

    def base(self) -> Base:
        return self.lake.base(TARGET, lambda: None)

    def load(
        self,
        schema: str | Schema,
        *rows: dict[str, object],
        now_ms: int | None = None,
        number: int | str = "",
        **settings: Any,
    ) -> Load:
        files = [list(rows)] if rows else []
        schema = columns(schema) if isinstance(schema, str) else schema
        staged = self.make_table(schema, *files, name=f"{STAGED.identifier}{number}")
        batch, base, settings = self.lake.staged_batch(staged), self.base(), model_settings(**settings)
        plan = plan_batch(batch, settings, {}, base.table.schema(), table_facts(base.table))
        assert plan.refusals == ()
        now_ms = now_ms if now_ms is not None else base.cut_at_ms or 0
        return Load(TARGET, STAGED, base, batch, plan, settings, now_ms)


@pytest.fixture
def loads(lake: IcebergCatalog, other: Catalog, make_table: MakeTable) -> Loads:
    return Loads(lake, other, make_table)


ROW: dict[str, object] = {"ID": 1, "x": 2}
BATCH = "ID int, x int"


# What is written


def test_a_load_goes_into_a_branch_that_it_cuts_off_where_the_run_started(loads: Loads) -> None:
    loads.table("id int, gone string, x int", {"id": 1, "gone": "g", "x": 1})
    base = loads.base()
    load = loads.load(BATCH, ROW, unique_key="id", now_ms=(base.cut_at_ms or 0) + DAY_MS)
    assert load.branch is not None
    written = f"{MAIN}.`branch_{load.branch}`"
    assert load.goes_on_branch
    assert load.cut == create_branch(MAIN, load.branch, base.head, 3 * 24 * 60)
    assert load.written == written
    assert load.statements == [
        delete_statement(written, str(STAGED), Key(("id",), predicates=(between("id", "int", 1, 1),))),
        insert_statement(written, str(STAGED), load.plan.columns),
    ]
    assert load.steps == [load.cut, *load.statements]


def test_a_load_into_an_empty_table_cuts_its_branch_off_nothing(loads: Loads) -> None:
    loads.table("id int, x int")
    load = loads.load(BATCH, ROW, now_ms=10**15)
    assert load.cut == create_branch(MAIN, str(load.branch), None, 2 * 24 * 60)
    assert load.cut == f"ALTER TABLE {MAIN} CREATE BRANCH `{load.branch}` RETAIN 2880 MINUTES"


def test_a_direct_load_goes_into_the_table(loads: Loads) -> None:
    loads.table("id int, gone string, x int", {"id": 1, "gone": "g", "x": 1})
    load = loads.load(BATCH, ROW, unique_key="id", publish="direct")
    assert not load.goes_on_branch
    assert load.branch is load.cut is None
    assert load.written == MAIN
    assert (
        load.steps
        == load.statements
        == [
            delete_statement(MAIN, str(STAGED), Key(("id",), predicates=(between("id", "int", 1, 1),))),
            insert_statement(MAIN, str(STAGED), load.plan.columns),
        ]
    )


def test_a_direct_load_that_keeps_values_is_published_from_a_branch(loads: Loads) -> None:
    """Nobody could run it again after an end between a DELETE and an INSERT into the table itself."""
    loads.table("id int, gone string, x int", {"id": 1, "gone": "g", "x": 1})
    load = loads.load(BATCH, ROW, unique_key="id", publish="direct", removed_columns="keep")
    key = Key(("id",), predicates=(between("id", "int", 1, 1),))
    assert load.branch is not None
    assert load.goes_on_branch
    assert load.written == f"{MAIN}.`branch_{load.branch}`"
    assert load.steps == [
        create_branch(MAIN, load.branch, load.base.head, 2880),
        delete_statement(load.written, str(STAGED), key),
        insert_and_keep(load.written, str(STAGED), load.plan.columns, key, MAIN),
    ]


def test_a_load_into_a_branch_that_keeps_values_reads_them_from_the_table(loads: Loads) -> None:
    loads.table("id int, gone string, x int", {"id": 1, "gone": "g", "x": 1})
    load = loads.load(BATCH, ROW, unique_key="id", removed_columns="keep")
    key = Key(("id",), predicates=(between("id", "int", 1, 1),))
    assert load.statements == [
        delete_statement(load.written, str(STAGED), key),
        insert_and_keep(load.written, str(STAGED), load.plan.columns, key, MAIN),
    ]


@pytest.mark.parametrize(
    ("table", "options"),
    [
        ("id int, x int", {"unique_key": "id"}),
        ("id int, gone int, x int", {"unique_key": "id", "strategy": "merge"}),
        ("id int, gone int, x int", {"unique_key": "id", "strategy": "full_refresh"}),
        ("id int, gone int, x int", {"strategy": "append"}),
    ],
)
def test_a_direct_load_with_nothing_to_read_again_cuts_no_branch(
    loads: Loads, table: str, options: dict[str, Any]
) -> None:
    loads.table(table)
    load = loads.load(BATCH, ROW, publish="direct", removed_columns="keep", **options)
    assert load.branch is load.cut is None
    assert len(load.steps) >= 1


@pytest.mark.parametrize("publish", ["branch", "direct"])
@pytest.mark.parametrize("keep", ["keep", "null"])
def test_an_empty_batch_needs_no_branch_and_no_statement(loads: Loads, publish: str, keep: str) -> None:
    loads.table("id int, gone int, x int")
    load = loads.load(BATCH, unique_key="id", publish=publish, removed_columns=keep)
    assert load.branch is load.cut is load.partition_overwrite is None
    assert load.steps == load.statements == []
    assert load.written == MAIN


@pytest.mark.parametrize("strategy", ["full_refresh", "insert_overwrite"])
def test_an_empty_batch_that_replaces_everything_is_loaded(loads: Loads, strategy: str) -> None:
    loads.table("id int, x int", {"id": 1, "x": 1})
    load = loads.load(BATCH, strategy=strategy)
    assert load.partition_overwrite == "static"
    assert load.steps == [
        load.cut,
        insert_statement(load.written, str(STAGED), load.plan.columns, overwrite=True),
    ]


def test_a_merge_has_a_key_and_other_loads_have_none(loads: Loads) -> None:
    loads.table("id int, x int")
    load = loads.load(BATCH, ROW, strategy="merge", unique_key="id", predicates=["p"])
    key = Key(("id",), predicates=(between("id", "int", 1, 1), "p"))
    assert load.merge_key == key
    assert load.statements == [merge_statement(load.written, str(STAGED), load.plan.columns, key, ["x"])]


def test_only_a_merge_may_copy_rows(loads: Loads) -> None:
    loads.table("id int, x int")
    assert loads.load(BATCH, ROW, unique_key="id").merge_key is None


def new_key(name: str, setting: str = "event_time") -> str:
    return (
        f"{TARGET}: the {setting} column `{name}` is new. It is NULL in all older rows, so they do not "
        "match the batch and stay."
    )


@pytest.mark.parametrize("new", [False, True])
def test_the_window_of_a_microbatch_has_the_type_of_the_table_or_of_the_new_column(
    loads: Loads, new: bool
) -> None:
    loads.table("id int" if new else "Ts timestamp_ntz, id int")
    load = loads.load(
        "id int, TS timestamp_ntz",
        {"id": 1, "TS": datetime(2024, 1, 1)},
        strategy="microbatch",
        event_time="ts",
        event_time_start=datetime(2024, 1, 1),
        event_time_end=datetime(2024, 1, 2),
    )
    name = "TS" if new else "Ts"
    window = between(name, "timestamp_ntz", datetime(2024, 1, 1), datetime(2024, 1, 2), open_end=True)
    assert load.statements[0] == delete_where(load.written, [window])
    assert load.warnings("", {}) == ([new_key("TS")] if new else [])


@pytest.mark.parametrize(("strategy", "replaced"), [("merge", "matches"), ("full_refresh", None)])
def test_older_rows_may_have_the_default_of_a_new_key(
    loads: Loads, monkeypatch: pytest.MonkeyPatch, strategy: str, replaced: str | None
) -> None:
    """They match the batch by it, and do not stay."""
    monkeypatch.setattr(TableFacts, "stores_defaults", True)
    loads.table("id int", {"id": 1})
    row = {"id": 1, "Kind": "old"}
    defaults = {"kind": "'old'"}
    load = loads.load(
        "id int, Kind string", row, strategy=strategy, unique_key=["id", "kind"], defaults=defaults
    )
    expected = (
        f"{TARGET}: the unique_key column `Kind` is new. It is 'old', its default, in all older rows: "
        "the batch replaces those that it matches by that."
    )
    assert load.warnings("", {}) == ([expected] if replaced else [])


@pytest.mark.parametrize(
    ("times", "which"),
    [
        ([datetime(2024, 1, 1), datetime(2024, 1, 1, 23, 59, 59, 999_999)], []),
        ([datetime(2024, 1, 2)], ["from 2024-01-02 00:00:00 to 2024-01-02 00:00:00"]),
        ([datetime(2024, 1, 1), None], ["that is NULL"]),
        ([None], ["that is NULL"]),
        ([datetime(2023, 12, 31), None], ["from 2023-12-31 00:00:00 to 2023-12-31 00:00:00", "that is NULL"]),
    ],
)
def test_rows_that_a_window_does_not_hold_are_warned_of(
    loads: Loads, times: list[datetime | None], which: list[str]
) -> None:
    """They are added again by each run: NULL is in no window at all."""
    loads.table("id int, ts timestamp_ntz")
    load = loads.load(
        "id int, ts timestamp_ntz",
        *({"id": 1, "ts": time} for time in times),
        strategy="microbatch",
        event_time="ts",
        event_time_start=datetime(2024, 1, 1),
        event_time_end=datetime(2024, 1, 2),
    )
    assert load.warnings("", {}) == [
        f"{TARGET}: The batch of 2024-01-01 00:00:00 to 2024-01-02 00:00:00 has rows with `ts` {found}. "
        "Another run of it does not replace those outside of this window, but adds them again: let the model "
        "return rows of its window only."
        for found in which
    ]


def test_a_new_branch_takes_the_place_of_one_that_somebody_may_still_write_to(loads: Loads) -> None:
    loads.table("id int, x int")
    load = loads.load(BATCH, ROW, unique_key="id")
    old, steps = load.branch, load.steps
    load.cut_again()
    assert load.branch not in (None, old)
    assert load.steps == [step.replace(str(old), str(load.branch)) for step in steps]
    assert steps != load.steps


# How much is done


FIRST = 11  # where the branch was cut


def of(load: Load, head: Head | None) -> list[bool]:
    return [load.has_committed(step, head) for step in range(len(load.steps))]


def test_how_much_is_done_is_seen_in_the_head_of_the_branch(loads: Loads) -> None:
    loads.table("id int, x int", {"id": 1, "x": 1})
    load = loads.load(BATCH, ROW, unique_key="id")
    cut_at = load.base.cut_at
    assert cut_at is not None
    assert of(load, None) == [False, False, False]
    assert of(load, Head(cut_at, None, "append")) == [True, False, False]
    assert of(load, Head(cut_at, 7, "append")) == [True, False, False]
    for operation in ("delete", "overwrite"):
        assert of(load, Head(12, cut_at, operation)) == [True, True, False]
    assert of(load, Head(13, 12, "append")) == [True, True, True]
    # The DELETE found nothing to delete, and made no snapshot.
    assert load.has_committed(2, Head(13, cut_at, "append"))


def test_the_snapshot_that_cutting_a_branch_off_nothing_makes_is_no_load(loads: Loads) -> None:
    loads.table("id int, x int")
    load = loads.load(BATCH, ROW, unique_key="id")
    assert load.base.cut_at is None
    assert of(load, None) == [False, False, False]
    assert of(load, Head(FIRST, None, "append")) == [True, False, False]
    assert of(load, Head(12, FIRST, "overwrite")) == [True, True, False]
    assert of(load, Head(12, FIRST, "append"))[2]


@pytest.mark.parametrize("strategy", ["append", "merge", "full_refresh"])
@pytest.mark.parametrize("operation", ["append", "overwrite", "delete"])
def test_of_one_statement_any_snapshot_is_its_own(loads: Loads, strategy: str, operation: str) -> None:
    loads.table("id int, x int", {"id": 1, "x": 1})
    load = loads.load(BATCH, ROW, strategy=strategy, unique_key="id")
    assert len(load.steps) == 2
    assert of(load, Head(load.base.cut_at or 0, None, operation)) == [True, False]
    assert of(load, Head(12, load.base.cut_at, operation)) == [True, True]


def test_how_much_is_done_is_seen_in_a_real_table(loads: Loads) -> None:
    loads.table("id int, x int", {"id": 1, "x": 1})
    load = loads.load(BATCH, {"ID": 1, "x": 5}, unique_key="id")

    def done() -> list[bool]:
        return of(load, loads.lake.head(TARGET, str(load.branch)))

    table = loads.other.load_table("db.t")
    assert done() == [False, False, False]
    with table.manage_snapshots() as manage:
        manage.create_branch(load.base.cut_at or 0, str(load.branch))
    assert done() == [True, False, False]
    table.delete("id = 1", branch=str(load.branch))
    assert done() == [True, True, False]
    table.append(loads.other.load_table("db.t").scan().to_arrow(), branch=str(load.branch))
    assert done() == [True, True, True]


# What is told


def test_conditions_that_need_what_is_new_are_told(loads: Loads) -> None:
    loads.table("id int")
    sql = [" DBT_INTERNAL_DEST.Day > 1 ", "id > 1", "day > 1 or day is null", "DBT_INTERNAL_SOURCE.day > 1"]
    row = {"id": 1, "day": 1}
    load = loads.load("id int, day int", row, unique_key="id", predicates=tuple(sql))
    assert load.warnings("", {}) == [
        f"{TARGET}: `incremental_predicates` name `day` (DBT_INTERNAL_DEST.Day > 1), which is new. It is "
        "NULL in all older rows: those for which the condition does not hold then stay."
    ]


@pytest.mark.parametrize("name", ["value", "element", "key"])
def test_a_new_column_may_be_called_as_what_is_in_a_list(loads: Loads, name: str) -> None:
    loads.table(columns("id int, day int, s", s=struct(10, a=IntegerType())))
    row: dict[str, object] = {"id": 1, "day": 1, "s": {"a": 1, name: 1}, name: 1}
    batch = columns(
        f"id int, day int, s, {name} int", s=struct(10, **{"a": IntegerType(), name: IntegerType()})
    )
    other = ("DBT_INTERNAL_DEST.day > 1 and s.a > 1",)
    assert loads.load(batch, row, unique_key="id", predicates=other).warnings("", {}) == []
    needing = (f"s.{name} > 1", f"DBT_INTERNAL_DEST.{name} > 1")
    load = loads.load(batch, row, unique_key="id", predicates=needing, number=2)
    assert [text.partition(" (")[0] for text in load.warnings("", {})] == [
        f"{TARGET}: `incremental_predicates` name `s`.`{name}`",
        f"{TARGET}: `incremental_predicates` name `{name}`",
    ]


def test_a_condition_for_a_retired_column_too_is_not_told(loads: Loads) -> None:
    loads.table("id int, day string")
    load = loads.load(
        *("id int, day int", {"id": 1, "day": 1}),
        unique_key="id",
        column_renames={"day": "day_text"},
        predicates=("DBT_INTERNAL_DEST.day > 1 or DBT_INTERNAL_DEST.day_text > '1'",),
    )
    assert load.changes == ["rename `day` to `day_text`", "add column `day` int"]
    assert not [text for text in load.warnings("", {}) if "incremental_predicates" in text]


def test_what_a_load_does_to_the_columns_is_told(loads: Loads, lake: IcebergCatalog) -> None:
    loads.table("Id int, Gone string")
    load = loads.load("id bigint, new int", {"id": 1, "new": 1}, unique_key=["NEW", "id"])
    assert load.changes == ["widen `Id` from int to bigint", "add column `new` int"]
    assert list(load.removed) == ["`Gone`"]
    assert load.ignored == []
    assert load.warnings("", {}) == [new_key("new", "unique_key")]
    assert load.said == (
        "widen `Id` from int to bigint; add column `new` int; "
        "column `Gone` is not in the model, padded with NULL"
    )


def test_what_is_left_out_is_told(loads: Loads) -> None:
    loads.table("id int")
    load = loads.load("id int, a.b int", {"id": 1, "a.b": 1}, add_columns=False)
    assert load.ignored == ["`a.b`"]
    assert (load.changes, load.removed, load.warnings("", {})) == ([], {}, [])
    assert load.said == "column `a.b` is not in the table and left out (on_schema_change is 'ignore')"


SPEC = PartitionSpec(
    PartitionField(source_id=2, field_id=1000, transform=DayTransform(), name="d"),
    PartitionField(source_id=1, field_id=1001, transform=BucketTransform(4), name="b"),
    PartitionField(source_id=3, field_id=1002, transform=IdentityTransform(), name="p"),
)
PARTITIONED = "Id int, Ts timestamp, my part string"
EMPTY_ROW: dict[str, object] = {"Id": 1, "Ts": None, "my part": None}


@pytest.mark.parametrize(
    "configured",
    [
        ["days(ts)", "bucket(4, id)", "my part"],
        ["DAYS( `Ts` )", "bucket(4,`ID`)", "`My Part`"],
        ["day(ts)", "bucket(4, id)", "my part"],
        ["date(ts)", "bucket(4, id)", "my part"],
        ["bucket(4, id)", "days(ts)", "my part"],
        "days(ts), bucket(4, id), `my part`",
    ],
)
def test_a_full_refresh_is_quiet_if_the_table_is_partitioned_as_the_model(
    loads: Loads, configured: object
) -> None:
    loads.table(PARTITIONED, spec=SPEC)
    load = loads.load(PARTITIONED, EMPTY_ROW, strategy="full_refresh", partition_by=configured)
    assert load.warnings("", {}) == []


@pytest.mark.parametrize(
    ("configured", "told"),
    [
        ("id", "id"),
        (["days(ts)", "bucket(4, id)"], "days(ts), bucket(4, id)"),
        (["hours(ts)", "bucket(4, id)", "`my part`"], "hours(ts), bucket(4, id), my part"),
        (["ts", "bucket(4, id)", "my part"], "ts, bucket(4, id), my part"),
    ],
)
def test_a_full_refresh_says_that_it_does_not_repartition_the_table(
    loads: Loads, configured: object, told: str
) -> None:
    loads.table(PARTITIONED, spec=SPEC)
    load = loads.load(PARTITIONED, EMPTY_ROW, strategy="full_refresh", partition_by=configured)
    assert load.warnings("", {}) == [
        f"{TARGET}: The model is partitioned by {told} and the table by days(ts), bucket(4, id), my part. A "
        "full refresh leaves that as it is: change it with `ALTER TABLE`, or set `full_refresh_schema: "
        "replace`."
    ]


def test_a_full_refresh_of_a_table_that_is_not_partitioned(loads: Loads) -> None:
    loads.table("id int")
    load = loads.load("id int", {"id": 1}, strategy="full_refresh", partition_by=["id"])
    said = f"{TARGET}: The model is partitioned by id and the table by nothing. A full refresh leaves"
    assert [warning[: len(said)] for warning in load.warnings("", {})] == [said]


@pytest.mark.parametrize("strategy", ["append", "delete+insert", "merge", "microbatch"])
def test_each_run_says_that_the_table_is_partitioned_otherwise(loads: Loads, strategy: str) -> None:
    loads.table(PARTITIONED, spec=SPEC)
    window = {"event_time_start": datetime(2024, 1, 1), "event_time_end": datetime(2024, 1, 2)}
    row = {**EMPTY_ROW, "Ts": datetime(2024, 1, 1, tzinfo=timezone.utc)}
    load = loads.load(PARTITIONED, row, strategy=strategy, partition_by="id", event_time="ts", **window)
    assert load.warnings("", {}) == [
        f"{TARGET}: The model is partitioned by id and the table by days(ts), bucket(4, id), my part. The "
        "rows are written as the table is partitioned: change it with `ALTER TABLE`, or make `partition_by` "
        "what the table has."
    ]
    load.has_said_differences = True
    assert load.warnings("", {}) == []


def test_a_column_that_is_renamed_is_the_same_one_in_the_partitions(loads: Loads) -> None:
    loads.table(PARTITIONED, spec=SPEC)
    row: dict[str, object] = {"Id": 1, "at": None, "my part": None}
    parts = ["days(at)", "bucket(4, id)", "my part"]
    batch = "Id int, at timestamp, my part string"
    load = loads.load(batch, row, strategy="append", partition_by=parts, column_renames={"ts": "at"})
    assert load.warnings("", {}) == []


@pytest.mark.parametrize("strategy", ["append", "insert_overwrite", "full_refresh"])
def test_nothing_is_said_of_partitions_where_none_are_asked_for(loads: Loads, strategy: str) -> None:
    loads.table(PARTITIONED, spec=SPEC)
    load = loads.load(PARTITIONED, EMPTY_ROW, strategy=strategy, partition_by=None)
    assert load.warnings("", {}) == []


def test_warnings_of_the_plan_come_first(loads: Loads) -> None:
    loads.table("id int, Gone int")
    with loads.other.load_table("db.t").update_schema(allow_incompatible_changes=True) as update:
        update.delete_column("Gone")
    load = loads.load("id int, gone int", {"id": 1, "gone": 1}, strategy="full_refresh", partition_by="id")
    assert [warning.split()[1] for warning in load.warnings("", {})] == ["Column", "The"]
