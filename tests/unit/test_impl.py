"""What the adapter makes of a plan and of a model's configuration, without dbt around it."""

import threading
from types import SimpleNamespace
from typing import Any

import pytest
from dbt.adapters.cache import RelationsCache

from dbt.adapters.sparkevolve.clauses import Clauses
from dbt.adapters.sparkevolve.evolution.plan import plan_evolution
from dbt.adapters.sparkevolve.evolution.policy import Policy
from dbt.adapters.sparkevolve.iceberg.catalog import IcebergCatalog
from dbt.adapters.sparkevolve.iceberg.catalogs import Catalogs
from dbt.adapters.sparkevolve.impl import SparkEvolveAdapter
from dbt.adapters.sparkevolve.load.strategies import load_statements
from dbt.adapters.sparkevolve.parse_time import Nothing
from dbt.adapters.sparkevolve.settings import SETTINGS
from dbt.adapters.sparkevolve.sql.dml import Key, between, delete_statement, insert_statement
from tests.unit.conftest import MakeTable
from tests.unit.helpers import DEFAULTS, columns, model_settings, relation

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
    assert SETTINGS["unique_key"].kind.read(configured) == names


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
    settings = model_settings(unique_key=list(key), predicates=list(predicates))
    return load_statements(str(TARGET), "", STAGED, batch, plan, settings)


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
        "  AND (DBT_INTERNAL_DEST.`Id` >= CAST('1' AS int) AND DBT_INTERNAL_DEST.`Id` <= CAST('1' AS int))\n"
        "  AND (DBT_INTERNAL_DEST.`Day` >= CAST('x' AS string) "
        "AND DBT_INTERNAL_DEST.`Day` <= CAST('x' AS string))\n"
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
    bounds = (
        between("Id", "int", 1, 1, or_null=null_in == "ID"),
        between("Day", "string", "x", "x", or_null=null_in == "day"),
    )
    assert delete == delete_statement(str(TARGET), str(STAGED), Key(("Id", "Day"), True, bounds))
    assert insert == INSERT


def test_a_null_outside_of_the_key_does_not(lake: IcebergCatalog, make_table: MakeTable) -> None:
    rows: list[dict[str, object]] = [{"ID": 1, "day": None, "x": None}]
    delete, _ = statements(lake, make_table, rows, ("id",))
    key = Key(("Id",), predicates=(between("Id", "int", 1, 1),))
    assert delete == delete_statement(str(TARGET), str(STAGED), key)


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
    (insert,) = load_statements(str(TARGET), "", STAGED, batch, plan, DEFAULTS)
    assert insert == insert_statement(str(TARGET), str(STAGED), plan.columns)
    assert insert == (
        "INSERT INTO `lake`.`db`.`t` (`a`, `gone`, `z`)\n"
        "SELECT\n"
        "  CAST(DBT_INTERNAL_SOURCE.`a` AS bigint) AS `a`,\n"
        "  CAST(NULL AS string) AS `gone`,\n"
        "  DBT_INTERNAL_SOURCE.`z` AS `z`\n"
        "FROM `lake`.`db`.`t__dbt_tmp_0123456789ab` AS DBT_INTERNAL_SOURCE"
    )


MERGE_ON_READ = {
    "format-version": "2",
    "write.delete.mode": "merge-on-read",
    "write.update.mode": "merge-on-read",
    "write.merge.mode": "merge-on-read",
    "write.metadata.delete-after-commit.enabled": "true",
    "write.metadata.previous-versions-max": "100",
}
COPY_ON_WRITE = {name: value for name, value in MERGE_ON_READ.items() if value != "merge-on-read"}


@pytest.mark.parametrize(
    ("configured", "properties"),
    [
        (None, MERGE_ON_READ),
        ({}, MERGE_ON_READ),
        ({"write.delete.mode": "copy-on-write"}, {**MERGE_ON_READ, "write.delete.mode": "copy-on-write"}),
        ({"x": True, "n": 5}, {**MERGE_ON_READ, "x": "true", "n": "5"}),
        ({"format-version": 1}, {**COPY_ON_WRITE, "format-version": "1"}),
        (
            {"format-version": "1", "write.merge.mode": "x"},
            {**COPY_ON_WRITE, "format-version": "1", "write.merge.mode": "x"},
        ),
    ],
)
def test_a_new_table_is_merge_on_read_unless_the_model_says_otherwise(
    configured: dict[str, object] | None,
    properties: dict[str, str],
    lake: IcebergCatalog,
    make_table: MakeTable,
) -> None:
    clauses = Clauses(Nothing(), Catalogs([lake]), lambda table, index: "string")
    make_table(columns("id int"))
    assert clauses.table_properties(configured, relation("t")) == properties
    assert clauses.table_properties(configured, relation("absent")) == properties


def test_no_thread_sees_a_part_of_a_schema_in_dbt_s_cache() -> None:
    there = [relation("a"), relation("b"), relation("c")]
    seen: list[list[Any]] = []
    adapter = object.__new__(SparkEvolveAdapter)
    other = threading.Thread(target=lambda: seen.append(adapter.list_relations("lake", "db")))

    class Slow(RelationsCache):
        """One between whose additions another thread asks."""

        def add(self, relation: Any) -> None:
            super().add(relation)
            if not other.ident:
                other.start()
                other.join(0.3)

    adapter.cache = Slow()
    adapter.config = SimpleNamespace(quoting={})  # type: ignore[assignment]
    adapter.list_relations_without_caching = lambda schema: list(there)  # type: ignore[method-assign]
    assert adapter.list_relations("lake", "db") == there
    other.join()
    assert seen == [there]


def test_that_a_schema_is_empty_is_asked_once() -> None:
    asked: list[str] = []
    adapter = object.__new__(SparkEvolveAdapter)
    adapter.cache = RelationsCache()
    adapter.list_relations_without_caching = (  # type: ignore[method-assign]
        lambda schema: asked.append(str(schema)) or []
    )
    assert [adapter.list_relations("archive", "db") for _ in range(2)] == [[], []]
    assert adapter.list_relations("lake", "db") == []
    assert asked == ["`archive`.`db`", "`lake`.`db`"]
