"""The SQL of the package: equal to the adapter's where both write a statement, on the same examples."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyiceberg.schema import Schema
from pyiceberg.types import DateType, IntegerType, LongType, NestedField, StringType

from dbt.adapters.sparkevolve.evolution.plan import plan_evolution
from dbt.adapters.sparkevolve.evolution.policy import Policy
from dbt.adapters.sparkevolve.evolution.projection import ProjectedColumn
from dbt.adapters.sparkevolve.sql import audit_queries, branch_statements, dml
from dbt.adapters.sparkevolve.sql.spark_types import Leaf, Struct
from dbt.adapters.sparkevolve.sql.storable import storable_query
from tests.unit.helpers import array, columns, mapping, struct
from tests.unit.package_macros import PURE, as_macros_see, normal
from tests.unit.strategies import NAMES, loads, nested_loads, rule
from tests.unit.test_package_plan import as_mapping, seen_by_spark
from tests.unit.test_package_types import SPARK_TYPES, as_dict

INT, STRING = IntegerType(), StringType()
CONDITIONS = ("a > 1", "b = 2 -- of the batch", "c in (select 1)")


def both_columns(table: Schema, batch: Schema) -> tuple[tuple[ProjectedColumn, ...], list[dict[str, Any]]]:
    """Return the refreshed columns of a load, as the adapter and as the macros have them."""
    by_adapter = plan_evolution(table, batch, Policy())
    by_package = PURE.plan_evolution(
        as_macros_see(table.fields), as_macros_see(batch.fields), as_mapping(Policy(), table)
    )
    assert not by_adapter.refusals
    return by_adapter.columns, by_package["columns"]


@st.composite
def keyed_loads(draw: st.DrawFn) -> tuple[Any, Any, dml.Key, dict[str, Any], list[str]]:
    table, batch = draw(nested_loads() | loads())
    adapters, packages = both_columns(seen_by_spark(table), batch)
    chosen = draw(
        st.lists(st.integers(0, len(adapters) - 1), min_size=1, max_size=2, unique=True).map(sorted)
    )
    null_safe = draw(st.booleans())
    predicates = draw(st.lists(st.sampled_from(CONDITIONS), max_size=2))
    rebuilt = [n for n in chosen if draw(st.booleans())]
    key = dml.Key(
        tuple(adapters[n].name for n in chosen),
        null_safe,
        tuple(predicates),
        tuple(adapters[n] for n in rebuilt),
    )
    as_mapping_ = {
        "names": [packages[n]["name"] for n in chosen],
        "null_safe": null_safe,
        "predicates": predicates,
        "rebuilt": [packages[n] for n in rebuilt],
    }
    update = [c.name for c in adapters if draw(st.booleans())]
    return adapters, packages, key, as_mapping_, update


@rule
@given(keyed_loads())
def test_statements_are_those_of_the_adapter(
    load: tuple[Any, Any, dml.Key, dict[str, Any], list[str]],
) -> None:
    adapters, packages, key, mapped, update = load
    for overwrite in (False, True):
        assert PURE.insert_statement("t", "s", packages, overwrite) == normal(
            dml.insert_statement("t", "s", adapters, overwrite=overwrite)
        )
    assert PURE.delete_statement("t", "s", mapped) == normal(dml.delete_statement("t", "s", key))
    assert PURE.insert_and_keep("t", "s", packages, mapped, "p") == normal(
        dml.insert_and_keep("t", "s", adapters, key, "p")
    )
    assert PURE.merge_statement("t", "s", packages, mapped, update) == normal(
        dml.merge_statement("t", "s", adapters, key, update)
    )


@given(st.lists(st.sampled_from(CONDITIONS), min_size=1, max_size=3), st.lists(NAMES, min_size=1, max_size=3))
def test_queries_and_conditions_are_those_of_the_adapter(conditions: list[str], listed: list[str]) -> None:
    assert PURE.delete_where("t", conditions) == dml.delete_where("t", conditions)
    assert PURE.count_violations("select 1", conditions) == audit_queries.count_violations(
        "select 1", conditions
    )
    assert PURE.some_violations("r", conditions[0], listed, 3) == audit_queries.some_violations(
        "r", conditions[0], listed, 3
    )


@pytest.mark.parametrize("or_null", [False, True])
@pytest.mark.parametrize("open_end", [False, True])
@pytest.mark.parametrize(("type_", "low", "high"), [("bigint", "1", "20"), ("string", "it's", "x")])
def test_a_condition_of_bounds_is_the_adapters(
    type_: str, low: str, high: str, open_end: bool, or_null: bool
) -> None:
    assert PURE.between("k`", type_, low, high, or_null, open_end) == normal(
        dml.between("k`", type_, low, high, or_null=or_null, open_end=open_end)
    )


def test_statements_on_branches_are_the_adapters() -> None:
    assert PURE.branch_of("db.t", "b") == branch_statements.branch_of("db.t", "b")
    assert PURE.drop_branch("db.t", "b") == branch_statements.drop_branch("db.t", "b")
    assert PURE.fast_forward("lake", "db.t", "main", "b") == branch_statements.fast_forward(
        "lake", "db.t", "main", "b"
    )
    for snapshot in (None, 7):
        # dbt-spark may send it twice.
        assert PURE.create_branch("db.t", "b", snapshot, 60) == branch_statements.create_branch(
            "db.t", "b", snapshot, 60
        ).replace("CREATE BRANCH", "CREATE BRANCH IF NOT EXISTS")


# Changes of the table


def changes(table: Schema, batch: Schema, **policy: Any) -> list[str]:
    mapped = as_mapping(Policy(**policy), table)
    plan = PURE.plan_evolution(as_macros_see(table.fields), as_macros_see(batch.fields), mapped)
    assert plan["refusals"] == []
    return list(PURE.change_statements("db.t", plan["changes"]))


def test_all_additions_of_a_run_are_one_statement() -> None:
    table = columns("id int, s, l", s=struct(10, x=INT), l=array(20, struct(21, x=INT)))
    batch = columns(
        "id int, a`b timestamp, s, l, c, m",
        s=struct(10, x=INT, **{"y.z": STRING}),
        l=array(20, struct(21, x=INT, y=DateType())),
        c=struct(30, **{"n é": LongType()}),
        m=mapping(40, STRING, INT),
    )
    assert changes(table, batch, docs={"m": "it's ${new}"}) == [
        "ALTER TABLE db.t ADD COLUMNS (`s`.`y.z` string, `l`.`element`.`y` date, `a``b` timestamp_ltz, "
        "`c` struct<`n é`:bigint>, `m` map<string,int> COMMENT 'it\\'s \\u0024{new}')"
    ]


def test_each_other_change_is_a_statement_and_renames_are_last() -> None:
    table = Schema(
        NestedField(1, "id", INT, required=True),
        NestedField(2, "s", struct(10, old=INT), required=False),
        NestedField(3, "note", STRING, required=True, doc="before"),
    )
    batch = columns("id bigint, t, extra string", t=struct(10, new=LongType()))
    assert changes(table, batch, renames={"s": "t", "s.old": "new"}, docs={"id": "the key"}) == [
        "ALTER TABLE db.t ALTER COLUMN `id` DROP NOT NULL",
        "ALTER TABLE db.t ALTER COLUMN `id` TYPE bigint",
        "ALTER TABLE db.t ALTER COLUMN `id` COMMENT 'the key'",
        "ALTER TABLE db.t ALTER COLUMN `s`.`old` TYPE bigint",
        "ALTER TABLE db.t ALTER COLUMN `note` DROP NOT NULL",
        "ALTER TABLE db.t ADD COLUMNS (`extra` string)",
        "ALTER TABLE db.t RENAME COLUMN `s`.`old` TO `new`",
        "ALTER TABLE db.t RENAME COLUMN `s` TO `t`",
    ]


# Types that Iceberg lacks

TABLE = columns(
    "a int, Old string, s, l, m",
    s=struct(10, x=INT, old=STRING),
    l=array(20, struct(21, x=DateType())),
    m=mapping(30, STRING, struct(32, x=LongType())),
)


@rule
@given(
    st.lists(
        st.tuples(st.sampled_from(("A", "old", "new", "S", "l", "m", "other")), SPARK_TYPES),
        min_size=1,
        max_size=4,
        unique_by=lambda field: field[0],
    ),
    st.sampled_from(({}, {"old": "new"}, {"s.old": "x`y", "a": "other"})),
    st.booleans(),
)
def test_a_query_is_made_storable_as_the_adapter_does(
    fields: list[tuple[str, Any]], renames: dict[str, str], has_table: bool
) -> None:
    type_ = Struct(tuple(fields))
    expected = storable_query("select 1 -- x", type_, TABLE if has_table else None, renames)
    found = PURE.storable_query(
        "select 1 -- x",
        as_dict(type_)["fields"],
        as_macros_see(TABLE.fields) if has_table else None,
        renames,
    )
    assert found["sql"] == normal(expected.sql)
    assert [field["name"] for field in found["fields"]] == list(expected.columns)
    assert [PURE.note_text(note) for note in found["notes"]] == [str(note) for note in expected.notes]
    assert [note["path"]["names"] for note in found["notes"]] == [list(note.path) for note in expected.notes]
    for field in found["fields"]:
        assert "void" not in PURE.type_text(field["type"])


def test_a_bare_null_has_the_type_of_the_table() -> None:
    found = PURE.storable_query(
        "select 1", as_dict(Struct((("OLD", Leaf("void")),)))["fields"], as_macros_see(TABLE.fields), {}
    )
    assert found["sql"] == "select CAST(NULL AS string) as `OLD` from (\nselect 1\n) as DBT_INTERNAL_MODEL"
    assert [PURE.type_text(field["type"]) for field in found["fields"]] == ["string"]
