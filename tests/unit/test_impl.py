"""What the adapter makes of a plan and of a model's configuration, without dbt around it."""

import threading
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from dbt.adapters.base.relation import BaseRelation
from dbt.adapters.cache import RelationsCache
from dbt_common.exceptions import DbtRuntimeError
from pyiceberg.catalog import Catalog

from dbt.adapters.sparkevolve.clauses import Clauses
from dbt.adapters.sparkevolve.documentation import Described, Documentation
from dbt.adapters.sparkevolve.errors import FreshnessError, StatementError
from dbt.adapters.sparkevolve.evolution.plan import plan_evolution
from dbt.adapters.sparkevolve.evolution.policy import Policy
from dbt.adapters.sparkevolve.iceberg.catalog import IcebergCatalog
from dbt.adapters.sparkevolve.iceberg.catalog_settings import Place, resolve
from dbt.adapters.sparkevolve.iceberg.catalogs import Catalogs
from dbt.adapters.sparkevolve.impl import SparkEvolveAdapter
from dbt.adapters.sparkevolve.load.strategies import load_statements
from dbt.adapters.sparkevolve.parse_time import Nothing
from dbt.adapters.sparkevolve.relation_cache import ExactRelationsCache
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


Lister = Callable[[BaseRelation], list[BaseRelation]]


def adapter_of(lake: IcebergCatalog, lister: Lister) -> SparkEvolveAdapter:
    """An adapter that has these relations to list, and nothing else."""
    adapter = object.__new__(SparkEvolveAdapter)
    adapter.cache = ExactRelationsCache("lake")
    adapter.catalogs = Catalogs([lake])
    adapter.config = SimpleNamespace(quoting={})  # type: ignore[assignment]
    adapter.list_relations_without_caching = lister  # type: ignore[method-assign]
    return adapter


def test_no_thread_sees_a_part_of_a_schema_in_dbt_s_cache(lake: IcebergCatalog) -> None:
    there = [relation("a"), relation("b"), relation("c")]
    seen: list[list[Any]] = []
    adapter = adapter_of(lake, lambda schema: list(there))
    other = threading.Thread(target=lambda: seen.append(adapter.list_relations("lake", "db")))

    class Slow(ExactRelationsCache):
        """One between whose additions another thread asks."""

        def add(self, relation: Any) -> None:
            super().add(relation)
            if not other.ident:
                other.start()
                other.join(0.3)

    adapter.cache = Slow("lake")
    assert adapter.list_relations("lake", "db") == there
    other.join()
    assert seen == [there]


def test_that_a_schema_is_empty_is_asked_once(lake: IcebergCatalog) -> None:
    asked: list[str] = []
    adapter = adapter_of(lake, lambda schema: asked.append(str(schema)) or [])  # type: ignore[func-returns-value]
    assert [adapter.list_relations("archive", "db") for _ in range(2)] == [[], []]
    assert adapter.list_relations("lake", "db") == []
    assert asked == ["`archive`.`db`", "`lake`.`db`"]


def test_a_schema_that_was_dropped_is_listed_again(lake: IcebergCatalog) -> None:
    there = [[relation("gone")], []]

    def lister(schema: BaseRelation) -> list[BaseRelation]:
        found = there.pop(0)
        if there:
            adapter.cache.drop_schema(None, "db")
        return list(found)

    adapter = adapter_of(lake, lister)
    assert adapter.list_relations("lake", "db") == []
    assert there == []


@pytest.mark.parametrize("is_known", [True, False])
def test_a_late_list_is_thrown_away(lake: IcebergCatalog, is_known: bool) -> None:
    """A slow thread has listed a view that another one has replaced by a table meanwhile."""
    view, table = relation("v").incorporate(type="view"), relation("v")
    goes_on, has_listed = threading.Event(), threading.Event()
    there: list[BaseRelation] = [view]

    def lister(schema: BaseRelation) -> list[BaseRelation]:
        found = list(there)
        if threading.current_thread().name == "slow" and not has_listed.is_set():
            has_listed.set()
            assert goes_on.wait(10)
        return found

    adapter = adapter_of(lake, lister)
    found: list[Any] = []
    slow = threading.Thread(target=lambda: found.extend(adapter.list_relations("lake", "db")), name="slow")
    slow.start()
    assert has_listed.wait(10)
    if is_known:
        assert [one.type for one in adapter.list_relations("lake", "db")] == ["view"]
    there[:] = [table]
    adapter.cache_dropped(view)
    if is_known:
        adapter.cache_added(table)
    goes_on.set()
    slow.join()
    assert [one.type for one in found] == ["table"]
    assert [one.type for one in adapter.list_relations("lake", "db")] == ["table"]


def test_schemas_and_tables_whose_names_differ_in_case_are_two(lake: IcebergCatalog) -> None:
    there = {
        "Shop": [relation("items", "Shop", "archive"), relation("orders", "Shop", "archive")],
        "shop": [relation("Orders", "shop", "archive"), relation("orders", "shop", "archive")],
    }
    adapter = adapter_of(lake, lambda schema: list(there[str(schema.schema)]))
    for schema, name in (("Shop", "items"), ("Shop", "orders"), ("shop", "Orders"), ("shop", "orders")):
        found = adapter.get_relation("archive", schema, name)
        assert (found and found.render()) == f"`archive`.`{schema}`.`{name}`"
    adapter.cache_dropped(relation("orders", "shop", "archive"))
    assert [str(one.identifier) for one in adapter.list_relations("archive", "shop")] == ["Orders"]
    assert adapter.list_relations("archive", "Shop") == there["Shop"]
    assert adapter.get_relation("archive", "shop", "items") is None


def test_where_names_are_folded_a_schema_and_a_table_are_known_once(
    lake: IcebergCatalog, tmp_path: Path
) -> None:
    properties = {"type": "hive", "uri": "thrift://127.0.0.1:1", "warehouse": f"file://{tmp_path}"}
    hive = IcebergCatalog(resolve("archive", properties, tmp_path, Place.of_further("archive")))
    asked: list[str] = []
    table = relation("orders", "shop", "archive")
    adapter = adapter_of(lake, lambda schema: asked.append(str(schema)) or [table])  # type: ignore[func-returns-value]
    adapter.catalogs = Catalogs([lake, hive])
    adapter.cache = ExactRelationsCache("lake", folds=adapter.catalogs.folds)
    for schema, name in (("Shop", "orders"), ("shop", "Orders"), ("SHOP", "orders")):
        assert adapter.get_relation("archive", schema, name) == table
    assert asked == ["`archive`.`Shop`"]
    adapter.cache_dropped(relation("ORDERS", "sHop", "archive"))
    assert adapter.list_relations("archive", "shop") == adapter.list_relations("archive", "Shop") == []
    adapter.cache_added(relation("new", "Shop", "archive"))
    assert [str(one.identifier) for one in adapter.list_relations("archive", "shop")] == ["new"]
    # `lake` tells them apart.
    for schema in ("Shop", "shop"):
        adapter.list_relations("lake", schema)
    assert asked[1:] == ["`lake`.`Shop`", "`lake`.`shop`"]


def test_no_database_is_the_profile_s_catalog_in_dbt_s_cache(lake: IcebergCatalog) -> None:
    asked: list[str] = []
    adapter = adapter_of(lake, lambda schema: asked.append(str(schema)) or [relation("t")])  # type: ignore[func-returns-value]
    unsaid = relation("t", database=None)
    for database in (None, "lake"):
        found = adapter.get_relation(database, "db", "t")
        assert found is not None
        assert found.render() == "`lake`.`db`.`t`"
    adapter.cache_dropped(unsaid)
    assert adapter.get_relation("lake", "db", "t") is None
    adapter.cache_added(unsaid)
    assert adapter.list_relations("lake", "db") == adapter.list_relations(None, "db") == [relation("t")]
    adapter.cache_renamed(unsaid, relation("u", database=None))
    assert [one.render() for one in adapter.list_relations(None, "db")] == ["`lake`.`db`.`u`"]
    assert asked == ["`lake`.`db`"]


def test_a_relation_that_is_new_lists_no_schema(lake: IcebergCatalog) -> None:
    adapter = adapter_of(lake, lambda schema: [relation("a"), relation("b")])
    adapter.cache_added(relation("b"))
    assert adapter.list_relations("lake", "db") == [relation("a"), relation("b")]
    adapter.cache.clear()
    assert ("lake", "db") not in adapter.cache
    assert adapter.cache.get_relations("lake", "db") == []


def test_all_that_dbt_s_cache_can_is_done_exactly() -> None:
    public = {name for name, value in vars(RelationsCache).items() if callable(value) and name[0] != "_"}
    assert {*public, "__contains__"} - set(vars(ExactRelationsCache)) == set()


class _Threads:
    """dbt's threads, without their connections."""

    def __enter__(self) -> "_Threads":
        return self

    def __exit__(self, *error: object) -> None:
        """End nothing."""

    def submit_connected(self, adapter: Any, name: str, call: Any, *args: Any) -> "Future[Any]":
        """Call at once."""
        future: Future[Any] = Future()
        try:
            future.set_result(call(*args))
        except Exception as exc:
            future.set_exception(exc)
        return future


def test_a_table_that_cannot_be_read_hides_no_other(
    lake: IcebergCatalog, other: Catalog, make_table: MakeTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("gone", "good"):
        make_table(columns("id int"), [{"id": 1}], name=name)
    gone = Path(other.load_table("db.gone").metadata_location.removeprefix("file://"))
    gone.unlink()

    def lister(schema: BaseRelation) -> list[BaseRelation]:
        if schema.schema == "locked":
            raise PermissionError("403 Forbidden")
        return [relation("gone"), relation("good"), relation("odd")]

    adapter = adapter_of(lake, lister)

    def describe(relation: BaseRelation) -> Described:
        raise StatementError("Cannot parse missing int: source-id", "describe table extended")

    adapter.documentation = Documentation(adapter.catalogs, describe)
    monkeypatch.setattr("dbt.adapters.sparkevolve.impl.executor", lambda config: _Threads())
    asked = {relation("gone"), relation("good", database=None), relation("good"), relation("x", "locked")}
    asked.add(relation("odd"))
    table, errors = adapter.get_catalog_by_relations(None, asked)
    assert [tuple(row)[:3] for row in table.rows] == [(None, "db", "good"), ("lake", "db", "good")]
    locked, missing, odd = (exc.msg for exc in errors if isinstance(exc, DbtRuntimeError))
    assert locked == "dbt docs cannot show what is in `lake`.`locked`: PermissionError: 403 Forbidden"
    assert missing.startswith("dbt docs cannot show `lake`.`db`.`gone`: FileNotFoundError: ")
    assert str(gone) in missing
    assert odd == "dbt docs cannot show `lake`.`db`.`odd`: Cannot parse missing int: source-id"

    sources: list[BaseRelation] = [relation("gone"), relation("absent"), relation("good")]
    _, ages = adapter.calculate_freshness_from_metadata_batch(sources)
    assert list(ages) == [relation("good")]
    with pytest.raises(FreshnessError) as raised:
        adapter.calculate_freshness_from_metadata(relation("gone"))
    assert raised.value.msg.startswith(
        "How fresh `lake`.`db`.`gone` is cannot be told from metadata: its metadata cannot be read "
        "(FileNotFoundError: "
    )
