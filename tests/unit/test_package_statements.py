"""The SQL of the package: equal to the adapter's where both write a statement, on the same examples."""

from collections.abc import Iterator
from itertools import count, pairwise
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import assume, event, given
from hypothesis import strategies as st
from pyiceberg.catalog import Catalog
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.schema import Schema
from pyiceberg.types import DateType, IntegerType, LongType, MapType, NestedField, StringType

from dbt.adapters.sparkevolve.evolution.plan import plan_evolution
from dbt.adapters.sparkevolve.evolution.policy import Past, Policy, TableFacts
from dbt.adapters.sparkevolve.evolution.projection import AsUuid, Keep, ProjectedColumn
from dbt.adapters.sparkevolve.evolution.renames import as_before, begun_warnings, ends_of_renames
from dbt.adapters.sparkevolve.iceberg.schema_commits import commit_changes
from dbt.adapters.sparkevolve.sql import audit_queries, batch_queries, branch_statements, dml
from dbt.adapters.sparkevolve.sql.alterations import alter_columns
from dbt.adapters.sparkevolve.sql.spark_types import Leaf, Struct
from dbt.adapters.sparkevolve.sql.storable import storable_query
from tests.unit.helpers import array, columns, mapping, struct
from tests.unit.package_macros import PURE, PackageMacros, as_macros_see, normal
from tests.unit.strategies import NAMES, loads, nested_loads, rule
from tests.unit.test_package_plan import as_mapping, seen_by_spark
from tests.unit.test_package_types import SPARK_TYPES, as_dict

INT, STRING = IntegerType(), StringType()
# What fields are called while the case of their names is changed.
QTY, A_B = "qty__sparkevolve_rename_f44fc6cd", "a`b__sparkevolve_rename_12867adc"
S, X = "s__sparkevolve_rename_03c7c0ac", "x__sparkevolve_rename_9dd4e461"
CONDITIONS = ("a > 1", "b = 2 -- of the batch", "c in (select 1)")


def both_columns(table: Schema, batch: Schema) -> tuple[tuple[ProjectedColumn, ...], list[dict[str, Any]]]:
    """Return the refreshed columns of a load, as the adapter and as the macros have them."""
    by_adapter = plan_evolution(table, batch, Policy())
    by_package = PURE.plan_evolution(
        as_macros_see(table.fields), as_macros_see(batch.fields), as_mapping(Policy(), table)
    )
    assert not by_adapter.refusals
    return by_adapter.columns, by_package["columns"]


@pytest.mark.parametrize("path", ["`u`", "`it's`"])
def test_a_uuid_is_written_as_the_adapter_does(path: str) -> None:
    by_package = PURE.render_projection({"kind": "uuid", "path": path}, "S.`u`")
    assert by_package == normal(AsUuid(path).render("S.`u`"))


@pytest.mark.parametrize(
    ("renames", "batch", "asked", "name"),
    [
        ({}, "id", "id", "id"),
        ({}, "ID", "id", "id"),
        # The table is asked before it is changed.
        ({"id": "order_id"}, "order_id", "id", "order_id"),
        ({"id": "order_id"}, "Order_ID", "id", "order_id"),
        ({}, "other", None, "other"),
    ],
)
def test_a_key_that_is_a_uuid_in_the_table_is_compared_as_one(
    renames: dict[str, str], batch: str, asked: str | None, name: str
) -> None:
    table = Schema(NestedField(1, "id", STRING), NestedField(2, "v", INT))
    plan = PURE.plan_evolution(
        as_macros_see(table.fields),
        as_macros_see([NestedField(1, batch, STRING), NestedField(2, "v", INT)]),
        as_mapping(Policy(renames=renames, unique_key=(batch,)), table),
    )
    sent: list[str] = []
    lowest = "00000000-0000-0000-0000-000000000000"

    class Answering(PackageMacros):
        def rows(self, sql: str) -> list[list[str]]:
            sent.append(sql)
            return [[f"BatchScan t[id] [filters=id IS NOT NULL, id >= '{lowest}', groupedBy=]"]]

    loaded = {"odd_uuids": [batch.lower()]}
    Answering().compare_uuids("s.t", {"fields": as_macros_see(table.fields)}, plan, loaded)
    explained = f"explain select * from s.t where `{asked}` >= '{lowest}' and `{asked}` <= 'no uuid'"
    assert sent == ([explained] if asked else [])
    (column,) = (c for c in plan["columns"] if c["name"] == name)
    assert column["projection"] == ({"kind": "uuid", "path": f"`{name}`"} if asked else {"kind": "keep"})


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
    rows = batch_queries.planned_rows("s", [ProjectedColumn(name, name, Keep()) for name in listed])
    projected = [{"name": name, "source": name, "projection": {"kind": "keep"}} for name in listed]
    for is_merge in (False, True):
        assert PURE.limited_rows(projected, "s", conditions, is_merge) == batch_queries.limited_rows(
            rows, "s", conditions, with_source=is_merge
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
    statements = PURE.change_statements("db.t", plan["changes"])
    # What is told of is all that the plan has, and what is done for a moment.
    told = [text for statement in statements for text in statement["texts"] if "for a moment" not in text]
    assert sorted(told) == sorted(change["text"] for change in plan["changes"])
    return [statement["sql"] for statement in statements]


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


def test_each_other_change_is_a_statement_and_renames_are_first() -> None:
    table = Schema(
        NestedField(1, "id", INT, required=True),
        NestedField(2, "s", struct(10, old=INT), required=False),
        NestedField(3, "note", STRING, required=True, doc="before"),
    )
    batch = columns("id bigint, t, extra string", t=struct(10, new=LongType()))
    assert changes(table, batch, renames={"s": "t", "s.old": "new"}, docs={"id": "the key"}) == [
        "ALTER TABLE db.t RENAME COLUMN `s`.`old` TO `new`",
        "ALTER TABLE db.t RENAME COLUMN `s` TO `t`",
        "ALTER TABLE db.t ALTER COLUMN `id` DROP NOT NULL",
        "ALTER TABLE db.t ALTER COLUMN `id` TYPE bigint",
        "ALTER TABLE db.t ALTER COLUMN `t`.`new` TYPE bigint",
        "ALTER TABLE db.t ALTER COLUMN `note` DROP NOT NULL",
        "ALTER TABLE db.t ADD COLUMNS (`extra` string)",
        "ALTER TABLE db.t ALTER COLUMN `id` COMMENT 'the key'",
    ]


def test_a_name_of_which_only_the_case_changes_goes_by_another_one() -> None:
    """Spark finds the new name taken by the field itself."""
    table = columns("qty int, a`b int, s", s=struct(10, x=INT, y=INT))
    batch = columns("Qty int, A`B int, S", S=struct(10, X=INT, y=INT))
    renames = {"qty": "Qty", "`a``b`": "A`B", "s": "S", "s.x": "X"}
    assert changes(table, batch, renames=renames) == [
        f"ALTER TABLE db.t RENAME COLUMN `s`.`x` TO `{X}`",
        f"ALTER TABLE db.t RENAME COLUMN `s`.`{X}` TO `X`",
        f"ALTER TABLE db.t RENAME COLUMN `qty` TO `{QTY}`",
        f"ALTER TABLE db.t RENAME COLUMN `{QTY}` TO `Qty`",
        f"ALTER TABLE db.t RENAME COLUMN `a``b` TO `{A_B.replace('`', '``')}`",
        f"ALTER TABLE db.t RENAME COLUMN `{A_B.replace('`', '``')}` TO `A``B`",
        f"ALTER TABLE db.t RENAME COLUMN `s` TO `{S}`",
        f"ALTER TABLE db.t RENAME COLUMN `{S}` TO `S`",
    ]


def test_a_name_that_another_leaves_is_free_only_then_in_any_case() -> None:
    table, batch = columns("a int, b int"), columns("B int, c int")
    assert changes(table, batch, renames={"a": "B", "b": "c"}) == [
        "ALTER TABLE db.t RENAME COLUMN `b` TO `c`",
        "ALTER TABLE db.t RENAME COLUMN `a` TO `B`",
    ]


def test_a_change_of_case_that_ended_half_way_is_taken_back() -> None:
    """Whatever the model says by now; a name that only looks so is a user's own."""
    inner = struct(20, **{X: INT, "y": INT})
    own = (
        "qty__sparkevolve_rename int, QT__sparkevolve_rename_F44FC6CD int, n__sparkevolve_rename_f44fc6cd int"
    )
    table = columns(
        f"{QTY} int, {A_B} int, {own}, {S}, l, m, k",
        **{S: inner, "l": array(30, inner), "m": MapType(32, STRING, 33, array(34, inner))},
        k=MapType(40, inner, 41, INT),
    )
    fields = as_macros_see(table.fields)
    found = PURE.ends_of_renames({"relation": "db.t", "fields": fields})
    by_adapter = ends_of_renames(table.as_struct())
    assert (
        list(map(str, by_adapter))
        == [change["text"] for change in found]
        == [
            f"rename `{QTY}` to `qty`",
            f"rename `{A_B.replace('`', '``')}` to `a``b`",
            f"rename `{S}`.`{X}` to `x`",
            f"rename `{S}` to `s`",
            f"rename `l`.`element`.`{X}` to `x`",
            f"rename `m`.`value`.`element`.`{X}` to `x`",
        ]
    )
    for change in found:
        path, _, name = change["text"].removeprefix("rename ").partition(" to ")
        assert change["sql"] == f"ALTER TABLE db.t RENAME COLUMN {path} TO {name}"
    before = PURE.as_before(fields)
    assert [f["name"] for f in before] == ["qty", "a`b", *(n.split()[0] for n in own.split(", ")), *"slmk"]
    assert [f["name"] for f in before[5]["type"]["fields"]] == ["x", "y"]
    assert PURE.ends_of_renames({"relation": "db.t", "fields": before}) == []
    assert as_macros_see(as_before(table).fields) == before
    assert PURE.begun_warnings(fields) == begun_warnings(table.as_struct()) == []


def test_a_name_that_another_field_has_by_now_is_not_taken_back() -> None:
    table = columns(f"{QTY} int, Qty int")
    fields = as_macros_see(table.fields)
    assert PURE.ends_of_renames({"relation": "db.t", "fields": fields}) == []
    assert ends_of_renames(table.as_struct()) == ()
    assert PURE.as_before(fields) == fields
    assert as_before(table) == table
    found = PURE.begun_warnings(fields)
    assert found == begun_warnings(table.as_struct())
    assert found == [
        f"the table has `{QTY}`, as `qty` was called while a run changed the case of that name, and ended "
        "before it had, and somebody has added another `qty` since. Bring the values of the one into the "
        "other with UPDATE where they are missing, and drop it with ALTER TABLE."
    ]


@pytest.mark.parametrize(
    ("renames", "batch", "between", "left"),
    [
        ({"s": "S", "s.x": "z"}, ("S", "z"), ("s", "z"), ["s", S, "S"]),
        ({"s": "t", "s.x": "z"}, ("t", "z"), ("s", "z"), ["s", "t"]),
        ({"s": "t", "s.x": "z"}, ("t", "z"), ("t", "z"), []),
    ],
)
def test_renames_of_a_struct_and_of_a_field_in_it_are_taken_up_wherever_they_ended(
    renames: dict[str, str], batch: tuple[str, str], between: tuple[str, str], left: list[str]
) -> None:
    def of(outer: str, inner: str) -> Schema:
        return columns(f"id int, {outer}", **{outer: struct(10, **{inner: INT, "y": INT})})

    assert changes(of(*between), of(*batch), renames=renames) == [
        f"ALTER TABLE db.t RENAME COLUMN `{old}` TO `{new}`" for old, new in pairwise(left)
    ]


@pytest.fixture(scope="module")
def memory(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Catalog]:
    """A catalog in memory."""
    folder = tmp_path_factory.mktemp("statements")
    catalog = SqlCatalog("memory", uri="sqlite:///:memory:", warehouse=f"file://{folder}")
    catalog.create_namespace("db")
    yield catalog
    catalog.close()


_numbers = count()


@st.composite
def renamed_loads(draw: st.DrawFn) -> tuple[Schema, Schema, dict[str, str]]:
    """Loads in which some columns of the table have other names in the batch, as the model says."""
    table, batch = draw(nested_loads())
    fields, renames = [], {}
    taken = {f.name.lower() for f in (*table.fields, *batch.fields)}
    for f in batch.fields:
        old = next((t.name for t in table.fields if t.name.lower() == f.name.lower()), None)
        new = draw(st.sampled_from(("new`name", "b.c", "Fresh")))
        if old is not None and new.lower() not in taken and draw(st.booleans()):
            taken.add(new.lower())
            renames[f"`{old.replace('`', '``')}`"] = new
            fields.append(NestedField(f.field_id, new, f.field_type, required=False))
        else:
            fields.append(f)
    return table, Schema(*fields), renames


@rule
@given(renamed_loads(), st.booleans())
def test_changes_of_a_table_are_the_statements_of_the_adapter(
    memory: Catalog, load: tuple[Schema, Schema, dict[str, str]], has_docs: bool
) -> None:
    schema, batch, renames = load
    docs = {f.name.lower(): f"it's of {f.name}" for f in batch.fields} if has_docs else None
    of_both = statements_of_both(memory, schema, batch, renames, docs)
    assume(of_both is not None)
    by_package, by_adapter = of_both or ([], [])
    event("changed" if by_adapter else "same")
    assert by_package == by_adapter


def test_what_takes_the_name_of_another_is_added_where_the_adapter_adds_it(memory: Catalog) -> None:
    """After what is new beside it, at each depth: it is its own order that decides on field ids."""
    table = columns("id int, z date, s", s=struct(10, y=STRING, x=INT))
    batch = columns("z int, new string, S, id int", S=struct(10, Y=INT, v=INT, x=INT))
    found = statements_of_both(memory, table, batch, {"Z": "z_old", "s.y": "y_old"}, {"z": "a number"})
    assert found is not None
    assert found[0] == found[1]
    assert found[0][-1] == (
        "ALTER TABLE db.t ADD COLUMNS (`s`.`v` int, `new` string, `s`.`Y` int, `z` int COMMENT 'a number')"
    )


def statements_of_both(
    memory: Catalog, schema: Schema, batch: Schema, renames: dict[str, str], docs: dict[str, str] | None
) -> tuple[list[str], list[str]] | None:
    """Return the package's statements, and those that make what the adapter commits; None if it refuses."""
    table = memory.create_table(("db", f"t{next(_numbers)}"), schema)
    before = table.schema()
    policy = Policy(renames=renames, docs=docs, facts=TableFacts(past=Past(is_complete=False)))
    plan = plan_evolution(before, batch, policy)
    if plan.refusals:
        return None
    commit_changes(table, plan.changes, "run", "fingerprint")
    # Fields by their ids, which are what the order of additions decides.
    after = memory.load_table(table.name()).schema()
    by_package = PURE.plan_evolution(
        as_macros_see(before.fields), as_macros_see(batch.fields), as_mapping(policy, before)
    )
    return (
        [statement["sql"] for statement in PURE.change_statements("db.t", by_package["changes"])],
        alter_columns("db.t", before, after, PURE.constant_literal),
    )


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
    st.booleans(),
)
def test_a_query_is_made_storable_as_the_adapter_does(
    fields: list[tuple[str, Any]], renames: dict[str, str], has_table: bool, variants: bool
) -> None:
    type_ = Struct(tuple(fields))
    expected = storable_query(
        "select 1 -- x", type_, TABLE if has_table else None, renames, variants=variants
    )
    found = PURE.storable_query(
        "select 1 -- x",
        as_dict(type_)["fields"],
        as_macros_see(TABLE.fields) if has_table else None,
        renames,
        variants,
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
    selected = "CAST(DBT_INTERNAL_MODEL.`OLD` AS string) as `OLD`"
    assert found["sql"] == f"select {selected} from (\nselect 1\n) as DBT_INTERNAL_MODEL"
    assert [PURE.type_text(field["type"]) for field in found["fields"]] == ["string"]


def test_a_trial_is_found_and_purged_whatever_the_model_says_of_its_table() -> None:
    """What CREATE TABLE would not take is seen on a table elsewhere, which a killed job may leave."""
    settings = {
        "tblproperties": {"gc.enabled": "false", "note": "n"},
        "options": {},
        "partition_by": [],
        "clustered_by": [],
        "buckets": None,
        "location_root": "s3://place",
    }
    model = {"alias": "t", "description": ""}
    config = SimpleNamespace(persist_relation_docs=lambda: False)
    macros = PackageMacros({"invocation_id": "run", "model": model, "config": config})
    defaults = (
        "'format-version' = '2', 'write.delete.mode' = 'merge-on-read', "
        "'write.update.mode' = 'merge-on-read', 'write.merge.mode' = 'merge-on-read', "
        "'write.metadata.delete-after-commit.enabled' = 'true', "
        "'write.metadata.previous-versions-max' = '100', "
    )
    beginning = "create table if not exists s.t\nusing iceberg\ntblproperties ("
    assert macros.create_statement("s.t", "select 1 as id", settings, [], is_trial=True) == (
        f"{beginning}{defaults}'gc.enabled' = 'true', 'note' = 'n', 'sparkevolve.staged-by' = 'run', "
        "'write.wap.enabled' = 'false')\nas\nselect 1 as id"
    )
    assert macros.create_statement("s.t", "select 1 as id", settings, []) == (
        f"{beginning}{defaults}'gc.enabled' = 'false', 'note' = 'n', 'sparkevolve.made-by' = 'run')\n"
        "location 's3://place/t'\nas\nselect 1 as id"
    )
