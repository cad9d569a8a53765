"""The statements of every strategy, from a batch that is really staged, and what is refused before them."""

from collections.abc import Callable
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyiceberg.catalog import Catalog
from pyiceberg.types import DateType, IcebergType, IntegerType, StringType, TimestampType, TimestamptzType

from dbt.adapters.sparkevolve.evolution.changes import AddColumn, RenameField
from dbt.adapters.sparkevolve.evolution.partitions import part
from dbt.adapters.sparkevolve.evolution.plan import EvolutionPlan
from dbt.adapters.sparkevolve.evolution.policy import TableFacts
from dbt.adapters.sparkevolve.evolution.projection import Cast, Keep, ProjectedColumn
from dbt.adapters.sparkevolve.evolution.types import spark_type
from dbt.adapters.sparkevolve.iceberg.catalog import IcebergCatalog
from dbt.adapters.sparkevolve.iceberg.staged_batch import StagedBatch
from dbt.adapters.sparkevolve.iceberg.staging import staging_properties
from dbt.adapters.sparkevolve.load.batch_plan import plan_batch
from dbt.adapters.sparkevolve.load.plan_report import plan_data, plan_table, removed_values
from dbt.adapters.sparkevolve.load.strategies import (
    is_loaded,
    keeps_values,
    load_key,
    load_statements,
    partition_overwrite,
    window,
    window_refusals,
)
from dbt.adapters.sparkevolve.settings import Strategy
from dbt.adapters.sparkevolve.sql.dml import (
    Key,
    between,
    delete_statement,
    delete_where,
    insert_and_keep,
    insert_statement,
    merge_statement,
)
from dbt.adapters.sparkevolve.sql.snapshots import snapshot_statement
from dbt.adapters.sparkevolve.sql.spark_types import Leaf, Struct
from tests.unit.conftest import MakeTable
from tests.unit.helpers import DEFAULTS, append, columns, model_settings, relation, struct

UTC = timezone.utc
TARGET, STAGED = "`lake`.`db`.`t`.`branch_b`", relation("t__dbt_tmp_0123456789ab")
PREVIOUS = "`lake`.`db`.`t`"
Rows = list[dict[str, object]]
Stage = Callable[..., StagedBatch]


@pytest.fixture
def stage(lake: IcebergCatalog, make_table: MakeTable) -> Stage:
    def staged(text: str, *rows: dict[str, object], keys: tuple[str, ...] = ()) -> StagedBatch:
        files = [list(rows)] if rows else []
        name = str(STAGED.identifier)
        return lake.staged_batch(
            make_table(columns(text), *files, name=name, properties=staging_properties(keys))
        )

    return staged


def planned(
    batch: StagedBatch, table: str, facts: TableFacts | None = None, **settings: Any
) -> EvolutionPlan:
    return plan_batch(batch, model_settings(**settings), {}, columns(table), facts or TableFacts())


def load(batch: StagedBatch, table: str, event: IcebergType | None = None, **settings: Any) -> list[str]:
    plan = planned(batch, table, **settings)
    assert plan.refusals == ()
    return load_statements(TARGET, PREVIOUS, STAGED, batch, plan, model_settings(**settings), event)


def insert(batch: StagedBatch, table: str, **settings: Any) -> str:
    return insert_statement(TARGET, str(STAGED), planned(batch, table).columns, **settings)


AS_BIGINT = ProjectedColumn("Id", "ID", Cast("bigint"))
ROW: dict[str, object] = {"ID": 1, "x": None}
TABLE = "Id bigint, gone string, x int"


# Statements


@pytest.mark.parametrize(
    "options", [{"strategy": "append"}, {"strategy": "append", "removed_columns": "keep"}, {}]
)
def test_an_append_is_an_insert(stage: Stage, options: dict[str, Any]) -> None:
    batch = stage("ID int, x int", ROW)
    assert load(batch, TABLE, **options) == [insert(batch, TABLE)]
    assert load(batch, TABLE, **options) == [
        "INSERT INTO `lake`.`db`.`t`.`branch_b` (`Id`, `gone`, `x`)\n"
        "SELECT\n"
        "  CAST(DBT_INTERNAL_SOURCE.`ID` AS bigint) AS `Id`,\n"
        "  CAST(NULL AS string) AS `gone`,\n"
        "  DBT_INTERNAL_SOURCE.`x` AS `x`\n"
        "FROM `lake`.`db`.`t__dbt_tmp_0123456789ab` AS DBT_INTERNAL_SOURCE"
    ]


def test_removed_columns_that_are_kept_are_read_where_the_rows_still_are(stage: Stage) -> None:
    batch = stage("ID int, x int", ROW, keys=("ID",))
    key = Key(("Id",), predicates=(between("Id", "int", 1, 1), "p"), rebuilt=(AS_BIGINT,))
    settings: dict[str, Any] = {"unique_key": "id", "removed_columns": "keep", "predicates": ["p"]}
    kept = planned(batch, TABLE).columns
    assert load(batch, TABLE, **settings) == [
        delete_statement(TARGET, str(STAGED), key),
        insert_and_keep(TARGET, str(STAGED), kept, key, PREVIOUS),
    ]
    assert PREVIOUS + " AS DBT_INTERNAL_DEST" in load(batch, TABLE, **settings)[1]


def test_with_nothing_to_keep_the_insert_is_plain(stage: Stage) -> None:
    batch = stage("ID int, x int", ROW)
    statements = load(batch, "Id int, x int", unique_key="id", removed_columns="keep")
    assert statements[1:] == [insert(batch, "Id int, x int")]


@pytest.mark.parametrize(
    ("table", "options", "answer"),
    [
        (TABLE, {"unique_key": "id", "removed_columns": "keep"}, True),
        (TABLE, {"unique_key": "id"}, False),
        (TABLE, {"removed_columns": "keep"}, False),
        (TABLE, {"unique_key": "id", "removed_columns": "keep", "strategy": "merge"}, False),
        (TABLE, {"unique_key": "id", "removed_columns": "keep", "strategy": "append"}, False),
        (TABLE, {"unique_key": "id", "removed_columns": "keep", "strategy": "full_refresh"}, False),
        ("Id int, x int", {"unique_key": "id", "removed_columns": "keep"}, False),
    ],
)
def test_old_rows_are_read_only_by_delete_and_insert_that_keeps(
    stage: Stage, table: str, options: dict[str, Any], answer: bool
) -> None:
    batch = stage("ID int, x int", ROW)
    assert keeps_values(planned(batch, table, **options), model_settings(**options)) is answer


@pytest.mark.parametrize(
    ("options", "update"),
    [
        ({}, ["gone", "x", "y`"]),
        ({"merge_update_columns": "X"}, ["x"]),
        ({"merge_update_columns": ["`y```", "ID"]}, ["y`"]),
        ({"merge_exclude_columns": ["Y`"]}, ["gone", "x"]),
        ({"merge_exclude_columns": "x"}, ["gone", "y`"]),
        ({"merge_update_columns": ["gone"]}, ["gone"]),
        ({"merge_update_columns": [], "merge_exclude_columns": []}, ["gone", "x", "y`"]),
    ],
)
def test_a_merge_updates_all_but_the_key_or_what_it_is_told(
    stage: Stage, options: dict[str, Any], update: list[str]
) -> None:
    batch = stage("ID int, x int, y` int", {"ID": 1, "x": None, "y`": 1}, keys=("ID",))
    table = "Id bigint, gone string, x int, y` int"
    key = Key(
        ("Id",), predicates=(between("Id", "int", 1, 1), "DBT_INTERNAL_DEST.d > 1"), rebuilt=(AS_BIGINT,)
    )
    options = {
        "strategy": "merge",
        "unique_key": "`iD`",
        "predicates": ["DBT_INTERNAL_DEST.d > 1"],
        **options,
    }
    assert load(batch, table, **options) == [
        merge_statement(TARGET, str(STAGED), planned(batch, table).columns, key, update)
    ]


def test_a_merge_without_a_key_is_an_insert(stage: Stage) -> None:
    batch = stage("ID int, x int", ROW)
    assert load(batch, TABLE, strategy="merge") == [insert(batch, TABLE)]


@pytest.mark.parametrize("rows", [[ROW], []])
@pytest.mark.parametrize("options", [{"strategy": "full_refresh"}, {"strategy": "insert_overwrite"}])
def test_all_rows_are_replaced_even_by_none(stage: Stage, rows: Rows, options: dict[str, Any]) -> None:
    batch = stage("ID int, x int", *rows)
    assert load(batch, TABLE, **options) == [insert(batch, TABLE, overwrite=True)]
    assert is_loaded(batch, model_settings(**options))


def test_a_full_refresh_knows_no_key(stage: Stage) -> None:
    batch = stage("ID int, x int", ROW)
    settings = {
        "unique_key": "id",
        "removed_columns": "keep",
        "strategy": "full_refresh",
        "partition_by": ["x"],
    }
    assert load(batch, TABLE, **settings) == [insert(batch, TABLE, overwrite=True)]


PARTITIONED = TableFacts(partition_by=(part("days", "X"),))


def test_partitions_are_replaced_by_those_of_the_batch(stage: Stage) -> None:
    batch = stage("ID int, x int", ROW)
    settings = model_settings(strategy="insert_overwrite", partition_by="days(x)")
    plan = plan_batch(batch, settings, {}, columns(TABLE), PARTITIONED)
    statements = load_statements(TARGET, PREVIOUS, STAGED, batch, plan, settings)
    assert statements == [insert(batch, TABLE, overwrite=True)]


@pytest.mark.parametrize(
    ("strategy", "partition_by", "answer"),
    [
        ("insert_overwrite", None, "static"),
        ("insert_overwrite", [], "static"),
        ("insert_overwrite", "x", "dynamic"),
        ("insert_overwrite", ["x", "y"], "dynamic"),
        ("full_refresh", None, "static"),
        ("full_refresh", "x", "static"),
        ("append", "x", None),
        ("delete+insert", "x", None),
        ("merge", "x", None),
        ("microbatch", "x", None),
    ],
)
def test_an_overwrite_is_by_partition_only_where_it_is_asked_for(
    strategy: str, partition_by: object, answer: str | None
) -> None:
    settings = model_settings(strategy=strategy, partition_by=partition_by)
    assert partition_overwrite(settings) == answer


@pytest.mark.parametrize(
    ("strategy", "partition_by", "answer"),
    [
        ("append", None, False),
        ("delete+insert", None, False),
        ("merge", None, False),
        ("insert_overwrite", "x", False),
        ("insert_overwrite", None, True),
        ("full_refresh", "x", True),
        ("microbatch", None, True),
    ],
)
def test_an_empty_batch_is_loaded_just_if_it_replaces_rows_by_nothing(
    stage: Stage, strategy: str, partition_by: object, answer: bool
) -> None:
    batch = stage("ID int, ts timestamp")
    settings = {"strategy": strategy, "partition_by": partition_by, "unique_key": "id"}
    assert is_loaded(batch, model_settings(**settings)) is answer
    # Under `--empty`, and not in a full refresh.
    assert not is_loaded(batch, model_settings(**settings, is_sampled_empty=True))
    if not answer:
        facts = TableFacts(partition_by=(part("identity", "x"),))
        plan = planned(batch, "Id int, ts timestamp", facts, **settings)
        assert plan.refusals == ()
        assert load_statements(TARGET, PREVIOUS, STAGED, batch, plan, model_settings(**settings)) == []


def test_the_statement_of_a_snapshot_names_dbt_s_columns(stage: Stage) -> None:
    batch = stage("id int, scd string, till timestamp", {"id": 1, "scd": "x", "till": None})
    table = "id int, scd string, till timestamp"
    settings = {
        "strategy": "snapshot",
        "snapshot_columns": {"dbt_scd_id": "scd", "dbt_valid_to": "till", "dbt_valid_from": "from"},
        "valid_to_current": "'9999-01-01'",
    }
    plan = planned(batch, table, **settings)
    assert load(batch, table, **settings) == [
        snapshot_statement(
            TARGET,
            str(STAGED),
            plan.columns,
            scd_id="scd",
            valid_to="till",
            valid_to_current="'9999-01-01'",
        )
    ]


def test_a_snapshot_without_changes_has_no_statement(stage: Stage) -> None:
    batch = stage("id int, scd string")
    assert load(batch, "id int, scd string", strategy="snapshot") == []


# Microbatches


START, END = datetime(2024, 1, 1, 22, 30), datetime(2024, 1, 2, 23, 30)
EAST = timezone(timedelta(hours=2))


@pytest.mark.parametrize("zone", [None, UTC, EAST])
@pytest.mark.parametrize(
    ("word", "type_", "low", "high"),
    [
        ("timestamp", TimestamptzType(), START.replace(tzinfo=UTC), END.replace(tzinfo=UTC)),
        ("timestamp_ntz", TimestampType(), START, END),
        ("date", DateType(), date(2024, 1, 1), date(2024, 1, 2)),
        ("string", StringType(), START.replace(tzinfo=UTC), END.replace(tzinfo=UTC)),
    ],
)
def test_a_microbatch_replaces_its_window_which_is_told_in_utc(
    stage: Stage, zone: timezone | None, word: str, type_: IcebergType, low: object, high: object
) -> None:
    start, end = (m if zone is None else m.replace(tzinfo=UTC).astimezone(zone) for m in (START, END))
    batch = stage(f"ID int, TS {word}", {"ID": 1, "TS": None})
    table = f"Id int, Ts {word}"
    settings = {
        "event_time": "`ts`",
        "event_time_start": start,
        "event_time_end": end,
    }
    window = between("Ts", spark_type(type_), low, high, open_end=True)
    assert load(batch, table, type_, strategy="microbatch", **settings) == [
        delete_where(TARGET, [window]),
        insert(batch, table),
    ]


def test_predicates_limit_what_a_microbatch_removes(stage: Stage) -> None:
    batch = stage("id int, ts timestamp_ntz", {"id": 1, "ts": START})
    settings = {"event_time": "ts", "event_time_start": START, "event_time_end": END}
    delete, _ = load(
        batch,
        "id int, ts timestamp_ntz",
        TimestampType(),
        strategy="microbatch",
        predicates=["DBT_INTERNAL_DEST.id < 5 OR true -- all"],
        **settings,
    )
    window = between("ts", "timestamp_ntz", START, END, open_end=True)
    assert delete == (
        f"DELETE FROM {TARGET} AS DBT_INTERNAL_DEST\nWHERE ({window})\n"
        "  AND (DBT_INTERNAL_DEST.id < 5 OR true -- all\n)"
    )


DAY = {"event_time_start": datetime(2024, 1, 1), "event_time_end": datetime(2024, 1, 3, 2, tzinfo=EAST)}
HOUR = {"event_time_start": datetime(2024, 1, 1, 5), "event_time_end": datetime(2024, 1, 1, 6)}


@pytest.mark.parametrize(
    ("type_", "window", "reason"),
    [
        ("date", DAY, None),
        ("timestamp", HOUR, None),
        ("timestamp_ntz", HOUR, None),
        ("date", HOUR, "is a date, and this batch is of the time from 2024-01-01 05:00:00 to "),
        (
            "date",
            {**DAY, "event_time_end": datetime(2024, 1, 1, 12)},
            "to 2024-01-01 12:00:00 UTC",
        ),
        (
            "date",
            {**DAY, "event_time_start": datetime(2024, 1, 1, tzinfo=EAST)},
            "from 2023-12-31 22:00:00",
        ),
        ("bigint", DAY, "is of type bigint, by which"),
        ("string", DAY, "is of type string, by which"),
    ],
)
def test_a_window_has_to_be_one_that_the_event_time_can_tell(
    type_: str, window: dict[str, datetime], reason: str | None
) -> None:
    model = Struct((("id", Leaf("int")), ("TS", Leaf(type_))))
    found = [str(refusal) for refusal in window_refusals(model, model_settings(event_time="`ts`", **window))]
    assert len(found) == (reason is not None)
    assert reason is None or f"The event_time `TS` {reason}" in found[0] or reason in found[0]
    # No batch of a microbatch model.
    settings = model_settings(event_time="ts")
    assert window_refusals(model, settings) == []


def test_what_is_stored_as_the_table_has_it_is_cast(stage: Stage) -> None:
    batch = stage("Valid_From date, v int", {"Valid_From": date(2024, 1, 1), "v": 1})
    settings = model_settings(strategy="append", keep_table_type=["valid_from", "valid_to"])
    plan = plan_batch(batch, settings, {}, columns("valid_from timestamp, v int"), TableFacts())
    assert [column.projection for column in plan.columns] == [Cast("timestamp_ltz"), Keep()]


def test_the_window_of_a_microbatch_is_open_at_its_end(stage: Stage) -> None:
    batch = stage("ID int, TS timestamp")
    settings = {
        "strategy": "microbatch",
        "event_time": "ts",
        "event_time_start": datetime(2024, 1, 1, 2, tzinfo=EAST),
        "event_time_end": datetime(2024, 1, 2),
        "unique_key": "id",
    }
    assert load(batch, "Id int, a.ts string, Ts timestamp", TimestamptzType(), **settings) == [
        "DELETE FROM `lake`.`db`.`t`.`branch_b` AS DBT_INTERNAL_DEST\n"
        "WHERE (DBT_INTERNAL_DEST.`Ts` >= CAST('2024-01-01 00:00:00+00:00' AS timestamp_ltz) "
        "AND DBT_INTERNAL_DEST.`Ts` < CAST('2024-01-02 00:00:00+00:00' AS timestamp_ltz))"
    ]


def test_a_microbatch_replaces_by_its_event_time_and_others_by_their_key() -> None:
    settings = model_settings(unique_key=["A", "`b`"], event_time="`Ts`")
    assert model_settings(settings, strategy="microbatch").replacing == (("Ts",), "event_time")
    for strategy in ("append", "delete+insert", "merge", "insert_overwrite", "full_refresh"):
        assert model_settings(settings, strategy=strategy).replacing == (("A", "b"), "unique_key")


# The key


def key_of(batch: StagedBatch, table: str, **settings: Any) -> Key | None:
    plan = planned(batch, table, **settings)
    assert plan.refusals == ()
    return load_key(batch, plan, model_settings(**settings))


@pytest.mark.parametrize("strategy", ["append", "insert_overwrite", "microbatch", "full_refresh"])
def test_only_some_strategies_have_a_key(stage: Stage, strategy: str) -> None:
    batch = stage("ID int, x int", ROW)
    settings = {"strategy": strategy, "unique_key": "id", "event_time": "id"}
    assert key_of(batch, TABLE, **settings) is None


@pytest.mark.parametrize("strategy", ["delete+insert", "merge"])
@pytest.mark.parametrize("unique_key", [None, [], ""])
def test_without_a_unique_key_there_is_none(stage: Stage, strategy: str, unique_key: object) -> None:
    assert key_of(stage("ID int, x int", ROW), TABLE, strategy=strategy, unique_key=unique_key) is None


def test_the_bounds_of_the_key_come_before_the_predicates(stage: Stage) -> None:
    rows: Rows = [{"ID": 3, "D": Decimal("1.50")}, {"ID": -1, "D": Decimal("-2.00")}]
    batch = stage("ID int, D decimal(5,2)", *rows, keys=("ID", "D"))
    assert key_of(batch, "d decimal(10,2), Id bigint", unique_key=["ID", "d"], predicates=["p", "q"]) == Key(
        ("Id", "d"),
        False,
        (
            between("Id", "int", -1, 3),
            between("d", "decimal(5,2)", Decimal("-2.00"), Decimal("1.50")),
            "p",
            "q",
        ),
        (ProjectedColumn("d", "D", Cast("decimal(10,2)")), AS_BIGINT),
    )


def test_a_key_with_null_is_compared_so_and_may_be_null_in_the_table(stage: Stage) -> None:
    batch = stage(
        "a int, b int, c int", {"a": 1, "b": 1, "c": 1}, {"a": None, "b": 2, "c": None}, keys=("a", "b")
    )
    assert key_of(batch, "a int, b int, c int", unique_key=["a", "b"]) == Key(
        ("a", "b"), True, (between("a", "int", 1, 1, or_null=True), between("b", "int", 1, 2))
    )
    assert key_of(batch, "a int, b int, c int", unique_key=["b"]) == Key(
        ("b",), False, (between("b", "int", 1, 2),)
    )


def test_a_key_of_nothing_but_null_has_no_bounds(stage: Stage) -> None:
    batch = stage("a int", {"a": None}, keys=("a",))
    assert key_of(batch, "a int", unique_key="a") == Key(("a",), True)


@pytest.mark.parametrize(
    ("word", "value"), [("double", 1.5), ("float", 1.5), ("boolean", True), ("binary", b"x")]
)
def test_a_key_of_a_type_without_bounds_has_none(stage: Stage, word: str, value: object) -> None:
    batch = stage(f"a {word}", {"a": value}, keys=("a",))
    assert key_of(batch, f"a {word}", unique_key="a") == Key(("a",))


def test_an_integer_key_is_bounded_in_a_table_of_doubles_too(stage: Stage) -> None:
    batch = stage("a int", {"a": 7}, keys=("a",))
    as_double = ProjectedColumn("A", "a", Cast("double"))
    assert key_of(batch, "A double", unique_key="a") == Key(
        ("A",), False, (between("A", "int", 7, 7),), (as_double,)
    )


def test_a_struct_in_a_key_is_compared_as_it_is_stored(other: Catalog) -> None:
    from_model = columns("k, n int", k=struct(3, b=IntegerType(), a=IntegerType()))
    staged = other.create_table("db.s", from_model, properties=staging_properties(["k", "n"]))
    append(staged, [{"k": {"b": 1, "a": 2}, "n": 1}])
    table = columns("K, n int", K=struct(3, a=IntegerType(), b=IntegerType()))
    settings = model_settings(strategy="delete+insert", unique_key=["k", "N"])
    batch = StagedBatch(staged)
    plan = plan_batch(batch, settings, {}, table, TableFacts())
    key = load_key(batch, plan, settings)
    assert key == Key(("K", "n"), True, (between("n", "int", 1, 1),), (plan.columns[0],))
    assert key.match("S", "T") == (
        "IF(S.`k` IS NULL, NULL, named_struct('a', S.`k`.`a`, 'b', S.`k`.`b`)) <=> T.`K` AND S.`n` <=> T.`n`"
    )


def test_a_key_that_is_renamed_in_this_run_is_found_by_its_new_name(stage: Stage) -> None:
    batch = stage("New_ID int", {"New_ID": 7}, keys=("New_ID",))
    settings: dict[str, Any] = {"unique_key": "NEW_id", "column_renames": {"old_id": "new_id"}}
    plan = planned(batch, "Old_Id int", **settings)
    assert plan.changes == (RenameField(("Old_Id",), "new_id"),)
    assert key_of(batch, "Old_Id int", **settings) == Key(
        ("new_id",), False, (between("new_id", "int", 7, 7),)
    )


def test_a_key_that_is_new_in_this_run_is_spelled_as_in_the_batch(stage: Stage) -> None:
    batch = stage("x int, New int", {"x": 1, "New": 7}, keys=("New",))
    plan = planned(batch, "x int", unique_key="new")
    assert [change.path for change in plan.changes if isinstance(change, AddColumn)] == [("New",)]
    assert key_of(batch, "x int", unique_key="new") == Key(("New",), False, (between("New", "int", 7, 7),))


def test_a_long_key_widens_the_table_and_is_bounded_by_its_own_type(stage: Stage) -> None:
    batch = stage("a bigint", {"a": 2**40}, keys=("a",))
    assert key_of(batch, "a int", unique_key="a") == Key(
        ("a",), False, (between("a", "bigint", 2**40, 2**40),)
    )


# Refusals


@pytest.mark.parametrize("setting", ["merge_update_columns", "merge_exclude_columns"])
def test_columns_to_merge_that_are_nowhere_are_refused(stage: Stage, setting: str) -> None:
    batch = stage("ID int, x int", ROW)
    settings: dict[str, Any] = {
        "strategy": "merge",
        "unique_key": "id",
        setting: ["X", "typo", "`gone`", "a`b"],
    }
    plan = planned(batch, TABLE, **settings)
    assert plan.changes == plan.columns == ()
    (refusal,) = plan.refusals
    assert refusal.columns == ("typo", "a`b")
    assert setting in str(refusal)
    assert planned(batch, TABLE, **{**settings, setting: ["X", "`gone`"]}).refusals == ()


def test_each_setting_that_is_wrong_is_refused(stage: Stage) -> None:
    batch = stage("ID int, x int", ROW)
    plan = planned(batch, TABLE, strategy="merge", merge_update_columns="u", merge_exclude_columns="e")
    assert [refusal.columns for refusal in plan.refusals] == [("u",), ("e",)]


def test_partitions_of_a_table_that_has_none_are_not_overwritten(stage: Stage) -> None:
    batch = stage("ID int, x int", ROW)
    settings: dict[str, Any] = {"strategy": "insert_overwrite", "partition_by": "days(x)"}
    (refusal,) = planned(batch, TABLE, **settings).refusals
    assert str(refusal).startswith(
        "The model is partitioned by days(x) and the table by nothing: to overwrite the partitions that the "
        "batch has rows for would replace other rows than the model means. Make `partition_by` what the table"
    )
    other = TableFacts(partition_by=(part("months", "x"),))
    (refusal,) = planned(batch, TABLE, other, **settings).refusals
    assert "partitioned by days(x) and the table by months(x): " in str(refusal)
    assert refusal.columns == ("x",)
    assert planned(batch, TABLE, PARTITIONED, **settings).refusals == ()
    assert planned(batch, TABLE, **{**settings, "partition_by": None}).refusals == ()
    for strategy in ("append", "full_refresh"):
        assert planned(batch, TABLE, **{**settings, "strategy": strategy}).refusals == ()


@pytest.mark.parametrize(("strategy", "setting"), [("microbatch", "event_time"), ("merge", "unique_key")])
def test_a_column_to_replace_by_that_is_not_returned_is_refused_by_its_setting(
    stage: Stage, strategy: str, setting: str
) -> None:
    batch = stage("ID int, x int", ROW)
    (refusal,) = planned(batch, TABLE, strategy=strategy, **{setting: "gone"}).refusals
    assert refusal.columns == ("gone",)
    assert setting in str(refusal)


def test_what_the_plan_refuses_comes_first(stage: Stage) -> None:
    batch = stage("ID string, x int", {"ID": "a", "x": 1})
    (refusal,) = planned(batch, TABLE, merge_update_columns="typo").refusals
    assert refusal.columns == ("Id",) or refusal.columns == ("ID",)


def test_a_column_that_a_run_renames_is_named_by_its_new_name(stage: Stage) -> None:
    batch = stage("id int, y int", {"id": 1, "y": 1})
    renames = {"x": "y"}
    (refusal,) = planned(batch, TABLE, merge_update_columns="X", column_renames=renames).refusals
    assert str(refusal) == (
        "`merge_update_columns` names `X`, which `column_renames` renames. Use the new name in "
        "`merge_update_columns`."
    )
    assert planned(batch, TABLE, merge_update_columns="y", column_renames=renames).refusals == ()


@pytest.mark.parametrize("setting", ["add_columns", "type_widening", "relax_not_null", "nested_evolution"])
def test_each_switch_of_a_model_reaches_the_plan(
    stage: Stage, lake: IcebergCatalog, make_table: MakeTable, setting: str
) -> None:
    schema = columns("a bigint, new int, s", s=struct(10, x=StringType(), y=StringType()))
    batch = lake.staged_batch(make_table(schema, [{"a": 1, "new": 1, "s": {"x": "x", "y": "y"}}]))
    table = columns("a int, n int not null, s", s=struct(10, x=StringType()))
    on = plan_batch(batch, DEFAULTS, {}, table, TableFacts())
    assert len(on.changes) == 4
    off = plan_batch(batch, model_settings(**{setting: False}), {}, table, TableFacts())
    if setting == "add_columns":
        assert off.ignored == (("new",), ("s", "y")) or set(off.ignored) == {("new",), ("s", "y")}
    else:
        assert len(off.refusals) == 1


def test_descriptions_and_facts_reach_the_plan(stage: Stage) -> None:
    batch = stage("ID int, x int", {"ID": 1, "x": 1})
    docs = plan_batch(batch, DEFAULTS, {"X": "an x"}, columns("id int"), TableFacts())
    assert docs.changes == (AddColumn(("x",), columns("x int").fields[0].field_type, "an x"),)
    required = plan_batch(batch, DEFAULTS, {}, columns("id int not null, x int not null"), TableFacts())
    assert required.changes == ()


# The plan as text


def test_a_plan_is_shown_as_data_and_as_a_table(stage: Stage) -> None:
    batch = stage("ID int, new int", {"ID": 1, "new": 1})
    plan = planned(batch, TABLE)
    data = plan_data(relation("t"), plan, DEFAULTS)
    assert data == {
        "relation": "`lake`.`db`.`t`",
        "changes": ["add column `new` int"],
        "projections": [
            {"column": "Id", "expression": "CAST(DBT_INTERNAL_SOURCE.`ID` AS bigint)"},
            {"column": "gone", "expression": "CAST(NULL AS string)"},
            {"column": "x", "expression": "CAST(NULL AS int)"},
            {"column": "new", "expression": "DBT_INTERNAL_SOURCE.`new`"},
        ],
        "removed": ["`gone`", "`x`"],
        "removed_get": {"`gone`": "padded with NULL", "`x`": "padded with NULL"},
        "ignored": [],
        "warnings": [],
        "refusals": [],
        "columns_added": ["`new`"],
        "columns_widened": [],
        "columns_relaxed": [],
        "columns_renamed": {},
        "columns_padded": ["`gone`", "`x`"],
        "columns_kept": [],
        "columns_left_out": [],
        "columns_replaced": [],
    }
    assert plan_table(data) == (
        "`lake`.`db`.`t`\n"
        "  change     add column `new` int\n"
        "  pad        `gone`\n"
        "  pad        `x`\n"
        "  column     `Id` = CAST(DBT_INTERNAL_SOURCE.`ID` AS bigint)"
    )
    forged = {**data, "changes": ["add column `a\n22:00:00  Done.` int"], "removed": [], "projections": []}
    assert plan_table(forged) == ("`lake`.`db`.`t`\n  change     add column `a\\n22:00:00  Done.` int")
    options = {"unique_key": "id", "removed_columns": "keep"}
    keeping, refreshed = model_settings(**options), model_settings(**options, strategy=Strategy.FULL_REFRESH)
    plan = planned(batch, TABLE, **options, strategy=Strategy.FULL_REFRESH)
    assert set(removed_values(plan, refreshed).values()) == {"padded with NULL"}
    kept = plan_data(relation("t"), planned(batch, TABLE, **options), keeping)
    assert plan_table(kept) == (
        "`lake`.`db`.`t`\n"
        "  change     add column `new` int\n"
        "  keep       `gone`: rows that are replaced keep its value, new ones get NULL\n"
        "  keep       `x`: rows that are replaced keep its value, new ones get NULL\n"
        "  new row    `Id` = CAST(DBT_INTERNAL_SOURCE.`ID` AS bigint)"
    )


def test_a_refused_plan_is_shown_with_what_else_is_known(stage: Stage) -> None:
    batch = stage("ID int, new int, x date", {"ID": 1, "new": 1, "x": date(2024, 1, 1)})
    options = {"defaults": {"gone": "'g'"}, "pad_with": "default"}
    plan = planned(batch, TABLE, **options)
    assert (plan.changes, plan.columns, plan.removed) == ((), (), ())
    data = plan_data(relation("t"), plan, model_settings(**options))
    assert data["columns_added"] == ["`new`"]
    assert data["projections"] == []
    assert data["refusals"] == [str(refusal) for refusal in plan.refusals]
    assert data["removed_get"] == {"`gone`": "padded with 'g'"}
    assert plan_table(data | {"warnings": []}) == (
        "`lake`.`db`.`t`\n"
        "  change     add column `new` int\n"
        "  pad        `gone` with 'g'\n"
        "  refused    see the error below; so a run would do none of this"
    )


@pytest.mark.parametrize("options", [{"strategy": Strategy.MERGE}, {"removed_columns": "keep"}])
def test_what_is_removed_inside_lists_and_maps_is_padded_whatever_is_kept(options: dict[str, Any]) -> None:
    plan = EvolutionPlan(
        unique_key=("Id",),
        removed=(("x",), ("s", "gone"), ("l", "element", "gone")),
        padded_inside=(("l", "element", "gone"),),
    )
    options = {"strategy": Strategy.DELETE_INSERT, "unique_key": "id", **options}
    data = plan_data(relation("t"), plan, model_settings(**options))
    assert plan_table(data) == (
        "`lake`.`db`.`t`\n"
        "  change     none\n"
        "  keep       `x`: rows that are replaced keep its value, new ones get NULL\n"
        "  keep       `s`.`gone`: rows that are replaced keep its value, new ones get NULL\n"
        "  pad        `l`.`element`.`gone`"
    )


def test_a_plan_without_changes_says_so_and_shows_what_is_left_out_and_refused() -> None:
    data = {
        "relation": "r",
        "changes": [],
        "removed": [],
        "removed_get": {},
        "ignored": ["`i`"],
        "warnings": ["w"],
        "refusals": ["no"],
        "projections": [],
    }
    assert plan_table(data) == ("r\n  leave out  `i`\n  warning    w\n  refused    see the error below")


# Rules


@given(st.datetimes(timezones=st.just(UTC)), st.integers(-23, 23))
def test_a_moment_is_the_same_in_every_zone(moment: datetime, hours: int) -> None:
    try:
        there = moment.astimezone(timezone(timedelta(hours=hours)))
    except OverflowError:
        return
    naive = moment.replace(tzinfo=None)
    for given_ in (moment, there, naive):
        begun = model_settings(event_time_start=given_, event_time_end=given_)
        assert window(TimestamptzType(), begun) == (moment, moment)
        assert window(TimestampType(), begun) == (naive, naive)
        assert window(DateType(), begun) == (moment.date(), moment.date())
        assert not isinstance(window(DateType(), begun)[0], datetime)
