"""From a staged batch to its plan, the text of it and the statements, without dbt around it."""

import json

import pytest
from pyiceberg.types import IntegerType

from dbt.adapters.sparkevolve.catalog import IcebergCatalog
from dbt.adapters.sparkevolve.evolution.changes import AddColumn, RelaxNotNull
from dbt.adapters.sparkevolve.evolution.plan import EvolutionPlan, plan_evolution
from dbt.adapters.sparkevolve.evolution.policy import Policy
from dbt.adapters.sparkevolve.evolution.statements import delete_statement, insert_statement
from dbt.adapters.sparkevolve.impl import SparkEvolveAdapter
from dbt.adapters.sparkevolve.loading import key_columns, load_statements
from tests.unit.conftest import MakeTable
from tests.unit.helpers import columns, relation, struct

INT = IntegerType()
TARGET, STAGED = relation("t"), relation("t__dbt_tmp_0123456789ab")


@pytest.mark.parametrize(
    ("configured", "names"),
    [
        (None, ()),
        ("", ()),
        ([], ()),
        ("Id", ("Id",)),
        ("`a b`", ("a b",)),
        (["Id", "`x``y`", "z"], ("Id", "x`y", "z")),
        (("a",), ("a",)),
        ("a, b", ("a, b",)),
    ],
)
def test_a_unique_key_may_be_nothing_one_or_several_quoted_or_not(
    configured: object, names: tuple[str, ...]
) -> None:
    assert key_columns(configured) == names


def statements(
    lake: IcebergCatalog,
    make_table: MakeTable,
    rows: list[dict[str, object]],
    key: tuple[str, ...],
    predicates: tuple[str, ...] = (),
) -> list[str]:
    staged = make_table(
        columns("ID int, day string, x int"), *([rows] if rows else []), name=str(STAGED.identifier)
    )
    batch = lake.staged_batch(staged)
    plan = plan_evolution(columns("Id int, Day string"), batch.schema, Policy(unique_key=key))
    assert not plan.refusals
    return load_statements(TARGET, STAGED, batch, plan, predicates)


INSERT = (
    "INSERT INTO `lake`.`db`.`t` (`Id`, `Day`, `x`)\n"
    "SELECT\n"
    "  DBT_INTERNAL_SOURCE.`ID` AS `Id`,\n"
    "  DBT_INTERNAL_SOURCE.`day` AS `Day`,\n"
    "  DBT_INTERNAL_SOURCE.`x` AS `x`\n"
    "FROM `lake`.`db`.`t__dbt_tmp_0123456789ab` AS DBT_INTERNAL_SOURCE"
)


def test_a_batch_with_a_key_is_a_delete_and_then_an_insert(
    lake: IcebergCatalog, make_table: MakeTable
) -> None:
    rows: list[dict[str, object]] = [{"ID": 1, "day": "x", "x": None}]
    assert statements(lake, make_table, rows, ("id", "DAY"), ("p = 1",)) == [
        "DELETE FROM `lake`.`db`.`t` AS DBT_INTERNAL_DEST\n"
        "WHERE (DBT_INTERNAL_DEST.`Id`, DBT_INTERNAL_DEST.`Day`) IN "
        "(SELECT DBT_INTERNAL_SOURCE.`Id`, DBT_INTERNAL_SOURCE.`Day` "
        "FROM `lake`.`db`.`t__dbt_tmp_0123456789ab` AS DBT_INTERNAL_SOURCE)\n"
        "  AND (p = 1)",
        INSERT,
    ]


@pytest.mark.parametrize("null_in", ["ID", "day"])
def test_a_null_in_any_part_of_the_key_makes_the_delete_null_safe(
    lake: IcebergCatalog, make_table: MakeTable, null_in: str
) -> None:
    rows: list[dict[str, object]] = [
        {"ID": 1, "day": "x", "x": 1},
        {"ID": 1, "day": "x", "x": 1, null_in: None},
    ]
    delete, insert = statements(lake, make_table, rows, ("id", "day"))
    assert delete == delete_statement(str(TARGET), str(STAGED), ["Id", "Day"], null_safe=True)
    assert insert == INSERT


def test_a_null_outside_of_the_key_does_not(lake: IcebergCatalog, make_table: MakeTable) -> None:
    rows: list[dict[str, object]] = [{"ID": 1, "day": None, "x": None}]
    delete, _ = statements(lake, make_table, rows, ("id",))
    assert delete == delete_statement(str(TARGET), str(STAGED), ["Id"], null_safe=False)


def test_a_batch_without_a_key_is_an_insert(lake: IcebergCatalog, make_table: MakeTable) -> None:
    assert statements(lake, make_table, [{"ID": 1, "day": None, "x": None}], ()) == [INSERT]


@pytest.mark.parametrize("key", [(), ("id",)])
def test_an_empty_batch_is_no_statement(
    lake: IcebergCatalog, make_table: MakeTable, key: tuple[str, ...]
) -> None:
    assert statements(lake, make_table, [], key) == []


def test_an_insert_pads_in_table_order(lake: IcebergCatalog, make_table: MakeTable) -> None:
    staged = make_table(columns("z int, a int"), [{"z": 1, "a": 1}], name=str(STAGED.identifier))
    batch = lake.staged_batch(staged)
    plan = plan_evolution(columns("a bigint, gone string"), batch.schema, Policy())
    (insert,) = load_statements(TARGET, STAGED, batch, plan, [])
    assert insert == insert_statement(str(TARGET), str(STAGED), plan.columns)
    assert insert == (
        "INSERT INTO `lake`.`db`.`t` (`a`, `gone`, `z`)\n"
        "SELECT\n"
        "  CAST(DBT_INTERNAL_SOURCE.`a` AS bigint) AS `a`,\n"
        "  CAST(NULL AS string) AS `gone`,\n"
        "  DBT_INTERNAL_SOURCE.`z` AS `z`\n"
        "FROM `lake`.`db`.`t__dbt_tmp_0123456789ab` AS DBT_INTERNAL_SOURCE"
    )


SETTINGS: dict[str, object] = {
    "unique_key": None,
    "add_columns": True,
    "type_widening": True,
    "relax_not_null": True,
    "nested_evolution": True,
    "column_renames": {},
    "predicates": [],
    "commit_retries": 4,
}


def batch_plan(
    lake: IcebergCatalog,
    make_table: MakeTable,
    table: str,
    batch: str,
    docs: dict[str, str] | None = None,
    **given: object,
) -> EvolutionPlan:
    staged = make_table(columns(batch), name=str(STAGED.identifier))
    return plan_batch(
        lake.staged_batch(staged), {**SETTINGS, **given}, docs or {}, columns(table), TableFacts()
    )


@pytest.mark.parametrize(
    ("table", "batch", "setting", "value"),
    [
        ("a int", "a int, b int", "add_columns", False),
        ("a int", "a bigint", "type_widening", False),
        ("a int, b int not null", "a int", "relax_not_null", False),
        ("a int, b int", "a int, c int", "column_renames", {"b": "c"}),
        ("a int", "a int", "unique_key", ["`A`"]),
    ],
)
def test_each_setting_of_the_model_reaches_the_plan(
    lake: IcebergCatalog, make_table: MakeTable, table: str, batch: str, setting: str, value: object
) -> None:
    assert batch_plan(lake, make_table, table, batch) != plan_with(lake, table, **{setting: value})


def plan_with(lake: IcebergCatalog, table: str, **given: object) -> EvolutionPlan:
    batch = lake.staged_batch(STAGED)
    return plan_batch(batch, {**SETTINGS, **given}, {}, columns(table), TableFacts())


def test_nested_evolution_reaches_the_plan(lake: IcebergCatalog, make_table: MakeTable) -> None:
    staged = make_table(columns("s", s=struct(10, x=INT, y=INT)), name=str(STAGED.identifier))
    batch, table = lake.staged_batch(staged), columns("s", s=struct(10, x=INT))
    for allowed in (True, False):
        plan = plan_batch(batch, {**SETTINGS, "nested_evolution": allowed}, {}, table, TableFacts())
        assert bool(plan.refusals) is not allowed


def test_descriptions_reach_the_plan_by_folded_name(lake: IcebergCatalog, make_table: MakeTable) -> None:
    plan = batch_plan(lake, make_table, "a int", "a int, New int", docs={"NEW": "fresh", "A": "old"})
    assert [str(change) for change in plan.changes] == ["describe `a` as 'old'", "add column `New` int"]
    (_, added) = plan.changes
    assert added == AddColumn(("New",), INT, "fresh")


def test_facts_of_the_table_reach_the_plan(lake: IcebergCatalog, make_table: MakeTable) -> None:
    staged = make_table(columns("a int, b int"), name=str(STAGED.identifier))
    facts = TableFacts(format_version=3)
    plan = plan_batch(lake.staged_batch(staged), SETTINGS, {}, columns("a int"), facts)
    assert len(plan.refusals) == 1


def test_nulls_of_the_batch_reach_the_plan(lake: IcebergCatalog, make_table: MakeTable) -> None:
    schema = columns("a int, b int")
    staged = make_table(schema, [{"a": 1, "b": None}], name=str(STAGED.identifier))
    plan = plan_batch(
        lake.staged_batch(staged), SETTINGS, {}, columns("a int not null, b int not null"), TableFacts()
    )
    assert plan.changes == (RelaxNotNull(("b",)),)


def test_a_plan_is_plain_data(lake: IcebergCatalog, make_table: MakeTable) -> None:
    plan = batch_plan(lake, make_table, "a int, gone string, w int", "A int, w bigint, new date")
    data = plan_data(TARGET, plan)
    assert json.loads(json.dumps(data)) == data
    assert data == {
        "relation": "`lake`.`db`.`t`",
        "changes": ["widen `w` from int to bigint", "add column `new` date"],
        "projections": [
            {"column": "a", "expression": "DBT_INTERNAL_SOURCE.`A`"},
            {"column": "gone", "expression": "CAST(NULL AS string)"},
            {"column": "w", "expression": "DBT_INTERNAL_SOURCE.`w`"},
            {"column": "new", "expression": "DBT_INTERNAL_SOURCE.`new`"},
        ],
        "removed": ["`gone`"],
        "ignored": [],
        "warnings": [],
        "refusals": [],
    }
    assert plan_table(data) == (
        "`lake`.`db`.`t`\n"
        "  change     widen `w` from int to bigint\n"
        "  change     add column `new` date\n"
        "  pad        `gone`\n"
        "  column     `a` = DBT_INTERNAL_SOURCE.`A`\n"
        "  column     `gone` = CAST(NULL AS string)\n"
        "  column     `w` = DBT_INTERNAL_SOURCE.`w`\n"
        "  column     `new` = DBT_INTERNAL_SOURCE.`new`"
    )


def test_a_plan_without_changes_says_so(lake: IcebergCatalog, make_table: MakeTable) -> None:
    plan = batch_plan(lake, make_table, "a int", "a int, b int", add_columns=False)
    assert plan_table(plan_data(TARGET, plan)) == (
        "`lake`.`db`.`t`\n  change     none\n  leave out  `b`\n  column     `a` = DBT_INTERNAL_SOURCE.`a`"
    )


def test_a_refused_plan_shows_why(lake: IcebergCatalog, make_table: MakeTable) -> None:
    plan = batch_plan(lake, make_table, "a int", "a string")
    assert plan_table(plan_data(TARGET, plan)) == (
        "`lake`.`db`.`t`\n"
        "  change     none\n"
        "  refused    Column `a` is int in the table, and the model returns string. Cast it to int in the "
        "model, or "
        "return it under a new name, fill that for old rows, and retire the old name."
    )


def test_warnings_of_a_plan_are_shown() -> None:
    data = plan_data(TARGET, EvolutionPlan(warnings=("Mind this.",)))
    assert plan_table(data) == "`lake`.`db`.`t`\n  change     none\n  warning    Mind this."


MERGE_ON_READ = {
    "format-version": "2",
    "write.delete.mode": "merge-on-read",
    "write.update.mode": "merge-on-read",
    "write.merge.mode": "merge-on-read",
}


@pytest.mark.parametrize(
    ("configured", "properties"),
    [
        (None, MERGE_ON_READ),
        ({}, MERGE_ON_READ),
        ({"write.delete.mode": "copy-on-write"}, {**MERGE_ON_READ, "write.delete.mode": "copy-on-write"}),
        ({"x": True, "n": 5}, {**MERGE_ON_READ, "x": "true", "n": "5"}),
    ],
)
def test_a_new_table_is_merge_on_read_unless_the_model_says_otherwise(
    configured: dict[str, object] | None, properties: dict[str, str]
) -> None:
    adapter = SparkEvolveAdapter.__new__(SparkEvolveAdapter)
    assert adapter.table_properties(configured) == properties
