"""Columns that come, go, come back and change places; what a run that brings none writes."""

from datetime import date
from typing import Any

import pytest

from tests.functional.harness import Scenario


def assert_settled(scenario: Scenario) -> None:
    """Another run of the same model changes neither rows nor columns and commits no schema."""
    before = (scenario.rows(), scenario.field_ids(), scenario.schemas())
    scenario.run()
    assert (scenario.rows(), scenario.field_ids(), scenario.schemas()) == before
    assert scenario.tables() == ["t"]


def data_files(scenario: Scenario) -> set[str]:
    """Return the paths of the data files that make up the table now."""
    return {task.file.file_path for task in scenario.table().scan().plan_files()}


@pytest.mark.core
def test_add_one_later_remove_one(scenario: Scenario) -> None:
    scenario.model("select 1 as id, 'red' as colour")
    scenario.run()
    ids = scenario.field_ids()
    scenario.model("select 1 as id, 'red' as colour, 3 as doors")
    scenario.run()
    assert scenario.rows() == [(1, "red", 3)]
    scenario.model("select 1 as id, 'blue' as colour")
    scenario.run()
    assert scenario.rows() == [(1, "blue", None)]
    assert scenario.columns() == ["id", "colour", "doors"]
    assert scenario.field_ids() == {**ids, "doors": 3}
    assert scenario.schemas() == 2
    assert scenario.tables() == ["t"]


def test_removed_column_with_a_replaced_row(scenario: Scenario) -> None:
    scenario.model("select 1 as id, date'2024-05-01' as day, 10 as hits, 2 as bot_hits")
    scenario.run()
    ids, first = scenario.field_ids(), scenario.snapshots()
    scenario.model(
        "select 1 as id, date'2024-05-01' as day, 11 as hits", incremental_strategy="delete+insert"
    )
    run = scenario.run()
    assert scenario.rows() == [(1, date(2024, 5, 1), 11, None)]
    assert scenario.columns() == ["id", "day", "hits", "bot_hits"]
    assert scenario.field_ids() == ids
    assert scenario.schemas() == 1
    assert f"{scenario.relation()}: column `bot_hits` is not in the model, padded with NULL" in run.log
    assert scenario.snapshots()[:1] == first
    old = scenario.table().scan(snapshot_id=first[0]).to_arrow().to_pylist()
    assert old == [{"id": 1, "day": date(2024, 5, 1), "hits": 10, "bot_hits": 2}]
    assert_settled(scenario)


# By model: its key, what it returns at first and then, and of its table then the columns, the number of
# schemas that it has had, and the rows.
CHANGES: dict[str, tuple[str, str, str, list[str], int, list[Any]]] = {
    "in_the_middle": (
        "id",
        "select 1 as id, 'Oslo' as city, 'Elm' as street",
        "select 2 as id, 'NO' as country, 'Bergen' as city, 'Oak' as street",
        ["id", "city", "street", "country"],
        2,
        [(1, "Oslo", "Elm", None), (2, "Bergen", "Oak", "NO")],
    ),
    "swapped_of_one_type": (
        "id",
        "select 1 as id, 80 as net, 100 as gross",
        "select 2 as id, 120 as gross, 96 as net",
        ["id", "net", "gross"],
        1,
        [(1, 80, 100), (2, 96, 120)],
    ),
    "swapped_of_different_types": (
        "report_day",
        "select date'2024-01-02' as report_day, 5 as qty",
        "select 6 as qty, date'2024-01-02' as report_day",
        ["report_day", "qty"],
        1,
        [(date(2024, 1, 2), 6)],
    ),
    # A renamed column is one removed and one new.
    "renamed": (
        "id",
        "select 1 as id, 'ann' as cust",
        "select 2 as id, 'bob' as customer",
        ["id", "cust", "customer"],
        2,
        [(1, "ann", None), (2, None, "bob")],
    ),
    "all_but_the_key": (
        "id",
        "select 1 as id, 1 as a, 2 as b, 3 as c",
        "select 1 as id, 'x' as p, 'y' as q union all select 2, 'x2', 'y2'",
        ["id", "a", "b", "c", "p", "q"],
        2,
        [(1, None, None, None, "x", "y"), (2, None, None, None, "x2", "y2")],
    ),
}


@pytest.mark.core
def test_new_columns_and_changed_places(scenario: Scenario) -> None:
    for name, (key, first, *_) in CHANGES.items():
        scenario.model(first, name, unique_key=key)
    scenario.run()
    for name, (key, _, second, *_) in CHANGES.items():
        scenario.model(second, name, unique_key=key)
    run = scenario.run()
    renamed = scenario.relation("renamed")
    line = "add column `customer` string; column `cust` is not in the model, padded with NULL"
    assert run.log.splitlines().count(f"{renamed}: {line}") == 1
    expected = {
        name: (rows, {column: number for number, column in enumerate(columns, 1)}, schemas)
        for name, (_, _, _, columns, schemas, rows) in CHANGES.items()
    }

    def found() -> dict[str, Any]:
        return {n: (scenario.rows(n), scenario.field_ids(n), scenario.schemas(n)) for n in CHANGES}

    assert found() == expected
    assert {name: scenario.columns(name) for name in CHANGES} == {n: case[3] for n, case in CHANGES.items()}
    # What is the default can be said too.
    key, _, second, *_ = CHANGES["all_but_the_key"]
    scenario.model(second, "all_but_the_key", unique_key=key, removed_columns="null")
    # Another run of the same models changes neither rows nor columns and commits no schema.
    scenario.run()
    assert found() == expected
    assert scenario.tables() == sorted(CHANGES)


def test_a_column_is_added_and_filled_in_one_run(scenario: Scenario) -> None:
    fill = "{% if is_incremental() %} select 2 as id, 'blue' as tint {% else %} select 1 as id {% endif %}"
    scenario.model(fill)
    scenario.run()
    assert scenario.rows() == [(1,)]
    scenario.run()
    assert scenario.rows() == [(1, None), (2, "blue")]
    # The same process, and the columns have changed once more.
    scenario.model(fill.replace("'blue' as tint", "'cyan' as tint, 7 as coats"))
    scenario.run()
    assert scenario.columns() == ["id", "tint", "coats"]
    assert scenario.rows() == [(1, None, None), (2, "cyan", 7)]
    assert scenario.field_ids() == {"id": 1, "tint": 2, "coats": 3}
    assert scenario.schemas() == 3
    assert_settled(scenario)


@pytest.mark.parametrize(
    ("strategy", "rows"),
    [("delete+insert", [(1, 1.5, 7)]), ("append", [(1, 1.5, None), (1, 1.5, 7)])],
)
def test_each_strategy_acts_on_a_new_column(
    scenario: Scenario, strategy: str, rows: list[tuple[Any, ...]]
) -> None:
    scenario.model("select 1 as id, cast(1.5 as float) as val", incremental_strategy=strategy)
    scenario.run()
    ids = scenario.field_ids()
    scenario.model("select 1 as id, cast(1.5 as float) as val, 7 as batch_no", incremental_strategy=strategy)
    run = scenario.run()
    assert f"{scenario.relation()}: add column `batch_no` int" in run.log
    assert scenario.rows() == rows
    assert scenario.types() == {"id": "int", "val": "float", "batch_no": "int"}
    assert scenario.field_ids() == {**ids, "batch_no": 3}
    scenario.run()
    assert scenario.schemas() == 2


@pytest.mark.core
def test_a_removed_column_comes_back(scenario: Scenario) -> None:
    scenario.model("select 1 as id, 'keep' as note")
    scenario.run()
    ids = scenario.field_ids()
    scenario.model("select 2 as id")
    scenario.run()
    assert scenario.rows() == [(1, "keep"), (2, None)]
    scenario.model("select 3 as id, 'again' as note")
    scenario.run()
    assert scenario.rows() == [(1, "keep"), (2, None), (3, "again")]
    assert scenario.field_ids() == ids
    assert scenario.schemas() == 1
    assert_settled(scenario)


@pytest.mark.parametrize("mode", ["merge-on-read", "copy-on-write"])
@pytest.mark.core
def test_old_rows_and_files_stay_as_they_are(scenario: Scenario, mode: str) -> None:
    properties: dict[str, Any] = {"tblproperties": {"write.delete.mode": mode}}
    scenario.model("select id, id as v from range(1000)", **properties)
    scenario.run()
    files, first = data_files(scenario), scenario.snapshots()
    assert files
    scenario.model("select 1000 as id, 1 as v, 2 as extra", **properties)
    scenario.run()
    assert scenario.rows() == [*((n, n, None) for n in range(1000)), (1000, 1, 2)]
    assert scenario.types() == {"id": "long", "v": "long", "extra": "int"}
    assert scenario.field_ids() == {"id": 1, "v": 2, "extra": 3}
    assert scenario.snapshots()[:1] == first
    assert files < data_files(scenario)
    assert not [task for task in scenario.table().scan().plan_files() if task.delete_files]
    assert_settled(scenario)
    assert files < data_files(scenario)


def test_a_table_much_wider_than_the_model(scenario: Scenario) -> None:
    wide = [f"c{n}" for n in range(1, 41)]
    scenario.sql(f"create schema `lake`.`{scenario.schema}`")
    columns = ", ".join(f"{name} string" for name in wide)
    scenario.sql(f"create table {scenario.relation()} (id int, {columns}) using iceberg")
    old = ", ".join(["'old'"] * 40)
    scenario.sql(f"insert into {scenario.relation()} values (1, {old}), (2, {old})")
    ids = scenario.field_ids()
    scenario.model(
        "select 1 as id, 'a' as c3, 'b' as c7, 'c' as c11, "
        "'{{ 'd' if is_incremental() else 'a first run' }}' as c40"
    )
    run = scenario.run()
    filled = {"c3": "a", "c7": "b", "c11": "c", "c40": "d"}
    assert scenario.columns() == ["id", *wide]
    assert scenario.rows() == [(1, *(filled.get(name) for name in wide)), (2, *["old"] * 40)]
    assert scenario.field_ids() == ids
    assert scenario.schemas() == 1
    padded = ", ".join(f"`{name}`" for name in wide if name not in filled)
    line = f"{scenario.relation()}: columns {padded} are not in the model, padded with NULL"
    assert run.log.splitlines().count(line) == 1
    assert_settled(scenario)


def rebuild(scenario: Scenario, select: str, *kinds: str) -> None:
    """Make what models select from: models that are a table or a view, and a table that is not dbt's."""
    for kind in kinds:
        if kind != "source":
            scenario.model(select, f"of_{kind}", materialized=kind, unique_key=None, on_schema_change=None)
            continue
        scenario.sql(f"create schema if not exists `lake`.`{scenario.schema}`")
        scenario.sql(f"create or replace table {scenario.relation('u')} using iceberg as {select}")


def test_select_star_from_an_upstream_that_changes(scenario: Scenario) -> None:
    """No file of the model itself changes; of a source that changes, no file of the project does."""
    kinds = {"table": "ref('of_table')", "view": "ref('of_view')", "source": "source('raw', 'u')"}
    tables = f"schema: {scenario.schema}, tables: [{{name: u}}]"
    scenario.file("models/sources.yml", f"sources: [{{name: raw, {tables}}}]")
    rebuild(scenario, "select 1 as id, 10 as a", *kinds)
    for kind, upstream in kinds.items():
        scenario.model(f"select * from {{{{ {upstream} }}}}", f"star_{kind}")
    scenario.run()
    ids = {kind: scenario.field_ids(f"star_{kind}") for kind in kinds}
    assert [scenario.rows(f"star_{kind}") for kind in kinds] == [[(1, 10)]] * 3
    rebuild(scenario, "select 2 as id, 'bee' as b, 20 as a2", *kinds)
    run = scenario.run()
    assert "Partial parsing enabled: 0 files deleted, 0 files added, 2 files changed" in run.log
    rows = [(1, 10, None, None), (2, None, "bee", 20)]
    for kind in kinds:
        name = f"star_{kind}"
        assert scenario.columns(name) == ["id", "a", "b", "a2"]
        assert scenario.rows(name) == rows
        assert scenario.field_ids(name) == {**ids[kind], "b": 3, "a2": 4}
        assert scenario.schemas(name) == 2
    rebuild(scenario, "select 3 as id, 30 as a, 'c' as c", "source")
    run = scenario.run()
    assert "Partial parsing enabled: 0 files deleted, 0 files added, 0 files changed" in run.log
    for kind in ("table", "view"):
        assert (scenario.rows(f"star_{kind}"), scenario.schemas(f"star_{kind}")) == (rows, 2)
    assert scenario.columns("star_source") == ["id", "a", "b", "a2", "c"]
    assert scenario.rows("star_source") == [*((*row, None) for row in rows), (3, 30, None, None, "c")]


@pytest.mark.core
def test_second_run_commits_no_schema(scenario: Scenario) -> None:
    """The same model again: the rows are loaded, and the schema is left alone."""
    scenario.model("select 1 as id, 'a' as v, current_timestamp() as at")
    scenario.run()
    location = scenario.table().metadata_location
    schema = scenario.table().metadata.current_schema_id
    scenario.run()
    assert scenario.table().metadata_location != location
    assert scenario.table().metadata.current_schema_id == schema
    assert scenario.schemas() == 1
    assert len(scenario.snapshots()) == 3, "the first load, a DELETE, an INSERT"
