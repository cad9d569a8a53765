"""The gateway to the catalog, on a real SQLite catalog and its real files."""

import sqlite3
import threading
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path

import pyarrow as pa
import pytest
from pyiceberg.catalog import Catalog
from pyiceberg.exceptions import (
    CommitFailedException,
    CommitStateUnknownException,
    ForbiddenError,
    ServiceUnavailableError,
    TooManyRequestsError,
)
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.table.update import RemoveSnapshotRefUpdate
from pyiceberg.transforms import DayTransform, IdentityTransform, VoidTransform
from pyiceberg.types import (
    DecimalType,
    IcebergType,
    IntegerType,
    ListType,
    LongType,
    MapType,
    NestedField,
    StringType,
    StructType,
)

from dbt.adapters.sparkevolve.errors import (
    CatalogAnswerError,
    CommitConflictError,
    EvolutionRefusedError,
    FilesLeftError,
    ForeignCatalogError,
    HiddenBatchError,
    NotIcebergError,
    SchemaCommitError,
    StagedBatchGoneError,
    UnreadableTableError,
)
from dbt.adapters.sparkevolve.evolution import record
from dbt.adapters.sparkevolve.evolution.changes import (
    AddColumn,
    AddField,
    RelaxNotNull,
    RenameField,
    SetDoc,
    WidenType,
)
from dbt.adapters.sparkevolve.evolution.plan import EvolutionPlan, plan_evolution
from dbt.adapters.sparkevolve.evolution.policy import FormerColumn, Policy, TableFacts
from dbt.adapters.sparkevolve.evolution.refusals import Refusal
from dbt.adapters.sparkevolve.evolution.types import VariantType
from dbt.adapters.sparkevolve.iceberg import access
from dbt.adapters.sparkevolve.iceberg.access import CatalogAccess
from dbt.adapters.sparkevolve.iceberg.capabilities import capabilities_of
from dbt.adapters.sparkevolve.iceberg.catalog import IcebergCatalog
from dbt.adapters.sparkevolve.iceberg.catalog_settings import CatalogSettings, resolve
from dbt.adapters.sparkevolve.iceberg.facts import table_facts
from dbt.adapters.sparkevolve.iceberg.guards import commit
from dbt.adapters.sparkevolve.iceberg.schema_commits import COMMENT_PROPERTY
from dbt.adapters.sparkevolve.iceberg.schema_history import schema_history
from dbt.adapters.sparkevolve.relation import SparkEvolveRelation
from dbt.adapters.sparkevolve.sql.dml import insert_statement
from tests.unit.conftest import MakeTable
from tests.unit.helpers import answering, append, array, columns, mapping, relation, struct

Decide = Callable[[Schema, TableFacts], EvolutionPlan]

INT, LONG, STRING = IntegerType(), LongType(), StringType()


def deciding(batch: Schema, **policy: object) -> Decide:
    """Return what decides on the changes for a batch."""

    def decide(schema: Schema, facts: TableFacts) -> EvolutionPlan:
        plan = plan_evolution(schema, batch, Policy(facts=facts, **policy))  # type: ignore[arg-type]
        if plan.refusals:
            raise EvolutionRefusedError("the table", plan.refusals)
        return plan

    return decide


def evolve(lake: IcebergCatalog, target: SparkEvolveRelation, decide: Decide, retries: int) -> EvolutionPlan:
    """Evolve a table; what is recorded of it does not matter."""
    return lake.evolve(target, decide, retries, source=columns("recorded int"), invocation_id="run-1")


def commits(table: Table) -> tuple[int, int]:
    """Return how many schemas and how many earlier versions of its metadata a table has."""
    return len(table.metadata.schemas), len(table.metadata.metadata_log)


def ids(table: Table) -> dict[str, int]:
    return {field.name: field.field_id for field in table.schema().fields}


# Finding tables


def test_whether_a_table_may_have_rows_is_in_its_metadata(
    lake: IcebergCatalog, make_table: MakeTable
) -> None:
    assert lake.may_have_rows(relation("nothing")) is False
    assert lake.may_have_rows(make_table(columns("id int"), name="empty")) is False
    filled = make_table(columns("id int"), [{"id": 1}], name="filled")
    assert lake.may_have_rows(filled) is True
    lake.load(filled).delete()
    assert lake.may_have_rows(filled) is False


def test_a_table_is_found(lake: IcebergCatalog, make_table: MakeTable) -> None:
    target = make_table(columns("id int"))
    assert lake.load(target).schema() == columns("id int")
    assert lake.find(target) is not None
    assert lake.find(relation("t", database=None)) is not None


@pytest.mark.parametrize(
    ("identifier", "schema", "database"),
    [("absent", "db", "lake"), ("t", "absent", "lake"), ("t", "db", "spark_catalog"), ("T", "db", "lake")],
)
def test_what_the_catalog_does_not_have_is_not_found(
    lake: IcebergCatalog, make_table: MakeTable, identifier: str, schema: str, database: str
) -> None:
    make_table(columns("id int"))
    assert lake.find(relation(identifier, schema, database)) is None


def test_a_relation_without_a_name_is_not_found(lake: IcebergCatalog) -> None:
    assert lake.find(relation("t").without_identifier()) is None


def test_loading_what_is_no_table_says_what_it_may_be(lake: IcebergCatalog) -> None:
    with pytest.raises(NotIcebergError) as raised:
        lake.load(relation("absent"))
    assert raised.value.msg == (
        "`lake`.`db`.`absent` is not a table of the Iceberg catalog `lake`. Either `catalog_properties` of "
        "the profile name another catalog than the one that Spark uses: see first what `dbt debug` says. Or "
        "it is a view, such as `dbt clone` makes, or has another format: an incremental model needs "
        "`file_format: iceberg`, and what is there has to be moved away. Nothing was written."
    )
    assert raised.value.relation == "`lake`.`db`.`absent`"
    assert raised.value.catalog == "lake"


def test_a_view_is_not_a_table(
    lake: IcebergCatalog, make_table: MakeTable, settings: CatalogSettings
) -> None:
    make_table(columns("id int"))
    assert settings.sqlite_file is not None
    with sqlite3.connect(settings.sqlite_file) as connection:
        connection.execute(
            "insert into iceberg_tables (catalog_name, table_namespace, table_name, metadata_location, "
            "iceberg_type)"
            " values ('lake', 'db', 'v', 'file:///absent/v1.metadata.json', 'VIEW')"
        )
    connection.close()
    assert lake.find(relation("v")) is None
    assert lake.table_names("db") == {"t"}


def test_table_names_are_those_of_one_schema(
    lake: IcebergCatalog, other: Catalog, make_table: MakeTable
) -> None:
    assert lake.table_names("db") == frozenset()
    assert lake.table_names("absent") == frozenset()
    other.create_namespace("db2")
    other.create_table("db2.elsewhere", columns("id int"))
    make_table(columns("id int"), name="Upper Case")
    make_table(columns("id int"), name="t")
    assert lake.table_names("db") == {"Upper Case", "t"}


def test_a_schema_exists_or_not(lake: IcebergCatalog) -> None:
    assert lake.namespace_exists("db")
    assert not lake.namespace_exists("absent")


def test_the_catalog_has_the_name_of_the_profile(lake: IcebergCatalog) -> None:
    assert lake.name == "lake"


# Evolving


def test_several_columns_are_added_in_one_commit(lake: IcebergCatalog, make_table: MakeTable) -> None:
    target = make_table(columns("a int, b int"))
    assert commits(lake.load(target)) == (1, 0)
    plan = evolve(lake, target, deciding(columns("c string, A int, D decimal(10,2), e date")), 0)
    table = lake.load(target)
    assert plan.added == ("c", "D", "e")
    assert commits(table) == (2, 1)
    assert table.schema().schema_id == 1
    assert ids(table) == {"a": 1, "b": 2, "c": 3, "D": 4, "e": 5}
    assert table.schema().find_type("D") == DecimalType(10, 2)
    assert not any(field.required for field in table.schema().fields)


@pytest.mark.parametrize("batch", ["a int, b int", "B int, A int", "a int"])
def test_without_changes_there_is_no_commit(lake: IcebergCatalog, make_table: MakeTable, batch: str) -> None:
    target = make_table(columns("a int, b int"))
    before = lake.load(target)
    plan = evolve(lake, target, deciding(columns(batch)), 0)
    assert plan.refreshed == ("a", "b")
    assert lake.load(target).metadata_location == before.metadata_location


def test_evolving_again_makes_no_second_commit(lake: IcebergCatalog, make_table: MakeTable) -> None:
    target = make_table(columns("a int"))
    decide = deciding(columns("a int, b int"))
    assert evolve(lake, target, decide, 0).added == ("b",)
    assert evolve(lake, target, decide, 0).added == ()
    assert commits(lake.load(target)) == (2, 1)


def test_runs_that_change_a_column_each_end_in_all_columns_with_their_ids(
    lake: IcebergCatalog, make_table: MakeTable
) -> None:
    target = make_table(columns("a int, b int"), [{"a": 1, "b": 1}])
    evolve(lake, target, deciding(columns("a int, c int")), 0)
    plan = evolve(lake, target, deciding(columns("a int, d int")), 0)
    table = lake.load(target)
    assert plan.refreshed == ("a", "b", "c", "d")
    assert plan.removed == (("b",), ("c",))
    assert ids(table) == {"a": 1, "b": 2, "c": 3, "d": 4}
    assert commits(table) == (3, 3)
    back = evolve(lake, target, deciding(columns("a int, b int")), 0)
    assert back.changes == ()
    assert insert_statement("t", "s", back.columns) == (
        "INSERT INTO t (`a`, `b`, `c`, `d`)\n"
        "SELECT\n"
        "  DBT_INTERNAL_SOURCE.`a` AS `a`,\n"
        "  DBT_INTERNAL_SOURCE.`b` AS `b`,\n"
        "  CAST(NULL AS int) AS `c`,\n"
        "  CAST(NULL AS int) AS `d`\n"
        "FROM s AS DBT_INTERNAL_SOURCE"
    )
    assert table.scan().to_arrow().to_pylist() == [{"a": 1, "b": 1, "c": None, "d": None}]


def test_an_added_nested_column_has_optional_fields_and_ids_of_its_own(
    lake: IcebergCatalog, make_table: MakeTable
) -> None:
    # Its ids are in use in the target, too.
    nested = StructType(
        NestedField(3, "x", INT, required=False),
        NestedField(4, "tags", ListType(5, STRING, element_required=False), required=False),
        NestedField(6, "m", mapping(7, STRING, struct(9, y=LONG)), required=False),
    )
    target = make_table(columns("a int, s", s=struct(10, inner=INT)))
    assert ids(lake.load(target)) == {"a": 1, "s": 2}
    batch = Schema(NestedField(1, "a", INT), NestedField(2, "new", nested, doc="not this one"))
    evolve(lake, target, deciding(batch), 0)
    field = lake.load(target).schema().find_field("new")
    assert field.field_id == 4
    assert not field.required
    assert field.doc is None
    assert field.field_type == StructType(
        NestedField(5, "x", INT, required=False),
        NestedField(6, "tags", ListType(8, STRING, element_required=False), required=False),
        NestedField(7, "m", mapping(9, STRING, struct(11, y=LONG)), required=False),
    )


def test_a_dotted_name_is_added_at_the_top(lake: IcebergCatalog, make_table: MakeTable) -> None:
    target = make_table(columns("s, p", s=struct(10, x=INT), p=INT))
    evolve(lake, target, deciding(columns("p.x int, s.y string, .z date")), 0)
    table = lake.load(target)
    assert [field.name for field in table.schema().fields] == ["s", "p", "p.x", "s.y", ".z"]
    assert table.schema().find_type("s") == struct(3, x=INT)
    assert evolve(lake, target, deciding(columns("P.X int")), 0).changes == ()


@pytest.mark.parametrize("name", ["a b", "a`b", "İ", "select", "#x", "'", "名前", "new\nline", "x;y"])
def test_an_odd_name_is_stored_as_it_is(lake: IcebergCatalog, make_table: MakeTable, name: str) -> None:
    target = make_table(columns("id int"))
    evolve(lake, target, deciding(Schema(NestedField(1, name, INT))), 0)
    assert [field.name for field in lake.load(target).schema().fields] == ["id", name]


def test_the_description_of_an_added_column_is_stored_with_it(
    lake: IcebergCatalog, make_table: MakeTable
) -> None:
    target = make_table(columns("a int"))
    docs = {"new": "It's new.", "a": "old"}
    evolve(lake, target, deciding(columns("A int, New int, bare int"), docs=docs), 0)
    table = lake.load(target)
    assert [(f.name, f.doc) for f in table.schema().fields] == [
        ("a", "old"),
        ("New", "It's new."),
        ("bare", None),
    ]
    assert commits(table) == (2, 1)


def test_what_decide_raises_is_raised_and_nothing_is_written(
    lake: IcebergCatalog, make_table: MakeTable
) -> None:
    target = make_table(columns("a int"))
    calls: list[Schema] = []

    def refuse(schema: Schema, facts: TableFacts) -> EvolutionPlan:
        calls.append(schema)
        raise EvolutionRefusedError(str(target), [Refusal(("a",), "It cannot be.", "Do not.")])

    with pytest.raises(EvolutionRefusedError):
        evolve(lake, target, refuse, 4)
    assert calls == [columns("a int")]
    assert commits(lake.load(target)) == (1, 0)


def test_evolving_what_is_no_table_is_refused(lake: IcebergCatalog) -> None:
    with pytest.raises(NotIcebergError):
        evolve(lake, relation("absent"), deciding(columns("a int")), 4)


def test_a_new_column_with_the_name_of_a_partition_field_is_refused(
    lake: IcebergCatalog, other: Catalog
) -> None:
    """The partition field of days(ts) is called ts_day, and Iceberg lets no column have that name, too."""
    day = PartitionField(source_id=1, field_id=1000, transform=DayTransform(), name="ts_day")
    other.create_table("db.t", columns("ts timestamp"), partition_spec=PartitionSpec(day))
    with pytest.raises(EvolutionRefusedError, match="`ts_day`"):
        evolve(lake, relation("t"), deciding(columns("ts timestamp, ts_day date")), 4)


def test_a_new_column_with_the_name_of_an_identity_partition_field_of_another_column_is_refused(
    lake: IcebergCatalog, other: Catalog
) -> None:
    part = PartitionField(source_id=1, field_id=1000, transform=IdentityTransform(), name="p")
    other.create_table("db.t", columns("a int"), partition_spec=PartitionSpec(part))
    with pytest.raises(EvolutionRefusedError, match="`p`"):
        evolve(lake, relation("t"), deciding(columns("a int, p int")), 4)


# Every kind of change on a real table


def test_all_kinds_of_changes_are_one_commit_that_keeps_every_id(
    lake: IcebergCatalog, make_table: MakeTable
) -> None:
    nested = StructType(
        NestedField(10, "x", INT, required=True),
        NestedField(11, "was", STRING, required=False),
        NestedField(12, "tags", ListType(13, STRING, element_required=True), required=False),
    )
    schema = Schema(
        NestedField(1, "id", INT, required=True),
        NestedField(2, "old", STRING, required=False),
        NestedField(3, "d", DecimalType(9, 2), required=False),
        NestedField(4, "l", ListType(14, nested, element_required=False), required=False),
        NestedField(5, "m", MapType(15, STRING, 16, INT, value_required=True), required=True),
    )
    target = make_table(schema)
    before = lake.load(target).schema()
    inner = StructType(
        NestedField(21, "new", INT, required=False),
        NestedField(22, "now", STRING, required=False),
        NestedField(23, "x", LONG, required=False),
        NestedField(24, "tags", ListType(25, STRING, element_required=False), required=False),
    )
    batch = Schema(
        NestedField(1, "m", MapType(2, STRING, 3, LONG, value_required=False), required=False),
        NestedField(4, "l", ListType(5, inner, element_required=False), required=False),
        NestedField(6, "renamed", STRING, required=False),
        NestedField(7, "d", DecimalType(12, 2), required=False),
        NestedField(8, "added", struct(30, y=INT), required=False),
    )
    decide = deciding(
        batch, renames={"old": "renamed", "l.was": "now"}, docs={"d": "amount", "added": "nested"}
    )
    plan = evolve(lake, target, decide, 0)
    table = lake.load(target)
    after = table.schema()
    assert {type(change) for change in plan.changes} == {
        *(AddColumn, AddField, WidenType, RelaxNotNull, RenameField, SetDoc)
    }
    assert commits(table) == (2, 1)
    for path, new_path in [
        *((p, p) for p in ("id", "d", "l", "l.element.x", "l.element.tags.element", "m", "m.key", "m.value")),
        *(("old", "renamed"), ("l.element.was", "l.element.now")),
    ]:
        assert before.find_field(path).field_id == after.find_field(new_path).field_id
    assert [f.name for f in after.fields] == ["id", "renamed", "d", "l", "m", "added"]
    assert after.find_type("d") == DecimalType(12, 2)
    assert after.find_type("m.value") == after.find_type("l.element.x") == LONG
    required = ("id", "l.element.x", "l.element.tags.element", "m", "m.value", "added", "l.element.new")
    assert not any(after.find_field(path).required for path in required)
    assert after.find_field("m.key").required
    assert after.find_field("d").doc == "amount"
    again = evolve(lake, target, decide, 0)
    assert again.changes == ()
    assert again.refreshed == plan.refreshed
    assert again.columns == plan.columns


@pytest.mark.parametrize(
    ("in_table", "in_batch", "path"),
    [
        (ListType(10, INT, element_required=True), ListType(10, INT, element_required=False), "c.element"),
        (
            MapType(10, STRING, 11, INT, value_required=True),
            MapType(10, STRING, 11, INT, value_required=False),
            "c.value",
        ),
        (
            ListType(10, ListType(11, INT, element_required=True), element_required=True),
            ListType(10, ListType(11, INT, element_required=False), element_required=False),
            "c.element.element",
        ),
    ],
    ids=["list", "map", "list of lists"],
)
def test_elements_and_values_become_optional_in_a_real_table(
    lake: IcebergCatalog, make_table: MakeTable, in_table: IcebergType, in_batch: IcebergType, path: str
) -> None:
    target = make_table(Schema(NestedField(1, "c", in_table, required=False)))
    before = lake.load(target).schema()
    evolve(lake, target, deciding(Schema(NestedField(1, "c", in_batch, required=False))), 0)
    after = lake.load(target).schema()
    assert before.find_field(path).required
    assert not after.find_field(path).required
    assert before.find_field(path).field_id == after.find_field(path).field_id


def test_a_commit_leaves_a_record_with_the_fingerprint_of_the_batch(
    lake: IcebergCatalog, make_table: MakeTable
) -> None:
    target = make_table(columns("a int"), properties={"mine": "stays"})
    batch = columns("a bigint, b int")
    lake.evolve(target, deciding(batch), 0, source=batch, invocation_id="run-7")
    table = lake.load(target)
    entry = record.read(table.properties)[1]
    assert table.properties["mine"] == "stays"
    assert entry.changes == {"widened": ("`a`",), "added": ("`b`",)}
    assert entry.invocation_id == "run-7"
    assert entry.source == record.fingerprint(batch)
    assert entry.at.endswith("+00:00")


def test_the_record_of_a_table_is_bounded(
    lake: IcebergCatalog, make_table: MakeTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(record, "MOST_ENTRIES", 2)
    target = make_table(columns("a int"))
    for name in "bcde":
        evolve(lake, target, deciding(columns(f"a int, {name} int")), 0)
    assert sorted(record.read(lake.load(target).properties)) == [3, 4]


def test_former_columns_are_those_that_somebody_dropped(
    lake: IcebergCatalog, other: Catalog, make_table: MakeTable
) -> None:
    target = make_table(columns("a int, Gone string, x int"))
    assert table_facts(lake.load(target)).former == {}
    with other.load_table("db.t").update_schema(allow_incompatible_changes=True) as update:
        update.delete_column("Gone")
    with other.load_table("db.t").update_schema() as update:
        update.rename_column("x", "y")
    assert table_facts(lake.load(target)).former == {
        ("gone",): FormerColumn("Gone", 2, "string", 0, 1),
        ("x",): FormerColumn("x", 3, "int", 1, 2, renamed_to="`y`"),
    }
    plan = evolve(lake, target, deciding(columns("a int, GONE int, y int")), 0)
    assert len(plan.warnings) == 1
    assert "as field 2 of type string, until schema 1 dropped it" in plan.warnings[0]
    assert ids(lake.load(target))["GONE"] == 4
    again = evolve(lake, target, deciding(columns("a int, GONE int, y int")), 0)
    assert again.changes == again.warnings == ()


def test_the_facts_of_a_partitioned_table(lake: IcebergCatalog, other: Catalog) -> None:
    day = PartitionField(source_id=2, field_id=1000, transform=DayTransform(), name="TS_day")
    same = PartitionField(source_id=1, field_id=1001, transform=IdentityTransform(), name="A")
    void = PartitionField(source_id=3, field_id=1002, transform=VoidTransform(), name="v")
    spec = PartitionSpec(same, day, void)
    other.create_table("db.t", columns("A int, ts timestamp, v int"), partition_spec=spec)
    with other.load_table("db.t").update_spec() as update:
        update.remove_field("TS_day")
    facts = table_facts(lake.load(relation("t")))
    assert facts.format_version == 2
    assert facts.partition_names == {"ts_day": None, "a": 1, "v": 3}
    assert facts.partition_sources == {1}


def test_a_name_of_two_partition_fields_is_of_neither_column(lake: IcebergCatalog, other: Catalog) -> None:
    other.create_table("db.t", columns("a int, ts timestamp"))
    for transform, name, expected in ((IdentityTransform(), "ts", 2), (DayTransform(), "TS", None)):
        with other.load_table("db.t").update_spec() as update:
            update.add_field("ts", transform, name)
        assert table_facts(lake.load(relation("t"))).partition_names == {"ts": expected}


def test_the_history_tells_of_each_schema_whoever_made_it(
    lake: IcebergCatalog, other: Catalog, make_table: MakeTable
) -> None:
    target = make_table(columns("a int, b int"))
    evolve(lake, target, deciding(columns("a bigint, c int")), 0)
    with other.load_table("db.t").update_schema(allow_incompatible_changes=True) as update:
        update.delete_column("b")
    first, ours, theirs = lake.schema_history(target)
    assert [s["schema_id"] for s in (first, ours, theirs)] == [0, 1, 2]
    assert [s["is_current"] for s in (first, ours, theirs)] == [False, False, True]
    assert first["changes"] == ["created"]
    assert ours["changes"] == ["changed `a` (1) from int to bigint", "added `c` (3) int"]
    assert ours["invocation_id"] == "run-1"
    assert ours["source"] == record.fingerprint(columns("recorded int"))
    assert (first["source"], theirs["source"]) == ("", "")
    assert theirs["changes"] == ["dropped `b` (2) int"]
    assert theirs["invocation_id"] == ""
    assert all(s["at"].endswith("+00:00") for s in (first, ours, theirs))
    assert theirs["columns"] == [
        {"id": 1, "name": "a", "type": "bigint"},
        {"id": 3, "name": "c", "type": "int"},
    ]


def test_a_schema_that_comes_back_is_told_and_known(
    lake: IcebergCatalog, other: Catalog, make_table: MakeTable
) -> None:
    """Iceberg takes the older schema again, under its id, when the newest column is dropped."""
    target = make_table(columns("a int"))
    evolve(lake, target, deciding(columns("a int, n int")), 0)
    with other.load_table("db.t").update_schema(allow_incompatible_changes=True) as update:
        update.delete_column("n")
    table = lake.load(target)
    assert [schema.schema_id for schema in table.metadata.schemas] == [0, 1]
    assert table.metadata.current_schema_id == 0
    assert table_facts(table).former == {("n",): FormerColumn("n", 2, "int", 1, 0)}
    history = lake.schema_history(target)
    assert [(s["schema_id"], s["is_current"], s["invocation_id"], s["changes"]) for s in history] == [
        (0, False, "", ["created"]),
        (1, False, "run-1", ["added `n` (2) int"]),
        (0, True, "", ["dropped `n` (2) int"]),
    ]
    assert history[0]["at"] <= history[1]["at"] <= history[2]["at"]
    assert history[2]["at"] != ""
    plan = evolve(lake, target, deciding(columns("a int, n int")), 0)
    assert "until schema 0 dropped it (schema 1 had it last)" in plan.warnings[0]
    assert ids(lake.load(target)) == {"a": 1, "n": 3}
    assert [s["schema_id"] for s in lake.schema_history(target)] == [0, 1, 2]


# Answers that are lost, and commits that fail


@pytest.mark.parametrize(
    "error",
    [
        *(CommitStateUnknownException("lost"), OSError("lost connection"), ValueError("lost")),
        CommitFailedException("lost: reported as a conflict"),
    ],
    ids=["unknown", "connection", "other", "conflict"],
)
def test_a_commit_whose_answer_was_lost_is_recognised(
    lake: IcebergCatalog, make_table: MakeTable, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    target = make_table(columns("id int"))
    calls = answering(lake, monkeypatch, error)
    plan = evolve(lake, target, deciding(columns("id bigint, n int")), 4)
    assert len(calls) == 1
    assert plan.refreshed == ("id", "n")
    if not isinstance(error, CommitFailedException):
        assert plan.added == ("n",)
        assert len(plan.changes) == 2
    assert commits(lake.load(target)) == (2, 1)


def test_a_commit_that_fails_leaves_the_table_as_it_was_and_says_what_was_wanted(
    lake: IcebergCatalog, make_table: MakeTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = make_table(columns("id int"))
    before = lake.load(target).metadata_location
    cause = OSError("disk full")
    calls = answering(lake, monkeypatch, cause)
    with pytest.raises(SchemaCommitError) as raised:
        evolve(lake, target, deciding(columns("id bigint, n int")), 4)
    error = raised.value
    assert len(calls) == 1
    assert error.relation == "`lake`.`db`.`t`"
    assert error.changes == (WidenType(("id",), INT, LONG), AddColumn(("n",), INT))
    assert error.msg == (
        "The columns of `lake`.`db`.`t` could not be changed (widen `id` from int to bigint; add column `n` "
        "int). The catalog's answer: disk full. None of these changes was made, and no row was written."
    )
    assert error.__cause__ is cause
    assert lake.load(target).metadata_location == before


def test_a_lost_answer_after_a_conflict_is_recognised_too(
    lake: IcebergCatalog, make_table: MakeTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = make_table(columns("id int"))
    calls = answering(lake, monkeypatch, CommitFailedException("busy"), OSError("lost"))
    plan = evolve(lake, target, deciding(columns("id int, n int")), 1)
    assert plan.added == ("n",)
    assert len(calls) == 2
    assert commits(lake.load(target)) == (2, 1)


def test_two_writers_of_overlapping_columns_end_in_all_of_them(
    settings: CatalogSettings, lake: IcebergCatalog, make_table: MakeTable
) -> None:
    """One adds a, the other b, and both c; both have planned before either commits."""
    target = make_table(columns("id int"))
    both_planned = threading.Barrier(2)
    plans: dict[str, EvolutionPlan] = {}

    def work(name: str) -> None:
        gateway, calls = IcebergCatalog(settings), []

        def decide(schema: Schema, facts: TableFacts) -> EvolutionPlan:
            plan = deciding(columns(f"id int, {name} int, c int"))(schema, facts)
            calls.append(plan)
            if len(calls) == 1:
                both_planned.wait(timeout=20)
            return plan

        plans[name] = evolve(gateway, target, decide, 10)

    threads = [threading.Thread(target=work, args=(name,), daemon=True) for name in "ab"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    table = lake.load(target)
    assert sorted(ids(table)) == ["a", "b", "c", "id"]
    assert sorted(ids(table).values()) == [1, 2, 3, 4]
    assert commits(table) == (3, 2)
    assert sorted(plans["a"].added + plans["b"].added) == ["a", "b", "c"]


# Other writers


def test_after_a_conflict_only_what_is_still_missing_is_added(
    lake: IcebergCatalog, other: Catalog, make_table: MakeTable
) -> None:
    target = make_table(columns("a int"))
    seen: list[list[str]] = []

    def decide(schema: Schema, facts: TableFacts) -> EvolutionPlan:
        seen.append([field.name for field in schema.fields])
        if len(seen) == 1:
            with other.load_table("db.t").update_schema() as update:
                update.add_column("C", INT)
        return plan_evolution(schema, columns("a int, b int, c int"), Policy())

    plan = evolve(lake, target, decide, 1)
    table = lake.load(target)
    assert seen == [["a"], ["a", "C"]]
    assert plan.added == ("b",)
    assert plan.refreshed == ("a", "C", "b")
    assert ids(table) == {"a": 1, "C": 2, "b": 3}
    assert commits(table) == (3, 2)


def test_after_a_conflict_there_may_be_nothing_left_to_add(
    lake: IcebergCatalog, other: Catalog, make_table: MakeTable
) -> None:
    target = make_table(columns("a int"))
    calls: list[int] = []

    def decide(schema: Schema, facts: TableFacts) -> EvolutionPlan:
        calls.append(len(schema.fields))
        if len(calls) == 1:
            with other.load_table("db.t").update_schema() as update:
                update.add_column("b", INT)
        return plan_evolution(schema, columns("a int, b int"), Policy())

    plan = evolve(lake, target, decide, 1)
    assert plan.changes == ()
    assert calls == [1, 2]
    assert commits(lake.load(target)) == (2, 1)


@pytest.mark.parametrize("retries", [0, 2])
def test_a_conflict_in_each_attempt_is_an_error(
    lake: IcebergCatalog, other: Catalog, make_table: MakeTable, retries: int
) -> None:
    target = make_table(columns("a int"))

    def decide(schema: Schema, facts: TableFacts) -> EvolutionPlan:
        with other.load_table("db.t").update_schema() as update:
            update.add_column(f"other_{len(schema.fields)}", INT)
        return plan_evolution(schema, columns("a int, b int"), Policy())

    with pytest.raises(CommitConflictError) as raised:
        evolve(lake, target, decide, retries)
    error = raised.value
    assert error.relation == "`lake`.`db`.`t`"
    assert error.attempts == retries + 1
    assert error.changes == (AddColumn(("b",), INT),)
    assert error.msg.startswith(
        f"The columns of `lake`.`db`.`t` could not be changed in {retries + 1} attempts (add column "
        "`b` int), "
    )
    assert error.msg.endswith(
        "because other writers changed or locked the table each time (last answer: Requirement failed: "
        "current schema id has "
        f"changed: expected {retries}, found {retries + 1}). None of it was done, and no row was "
        "written. Run the model again, or raise `commit_retries`."
    )
    assert isinstance(error.__cause__, CommitFailedException)
    assert "b" not in ids(lake.load(target))


def test_rows_of_another_writer_are_no_conflict(
    lake: IcebergCatalog, other: Catalog, make_table: MakeTable
) -> None:
    target = make_table(columns("a int"))

    def decide(schema: Schema, facts: TableFacts) -> EvolutionPlan:
        append(other.load_table("db.t"), [{"a": 1}])
        return plan_evolution(schema, columns("a int, b int"), Policy())

    evolve(lake, target, decide, 0)
    assert lake.load(target).scan().to_arrow().to_pylist() == [{"a": 1, "b": None}]


def test_a_conflict_that_pyiceberg_tells_as_a_value_error_is_tried_again(
    lake: IcebergCatalog, make_table: MakeTable
) -> None:
    target = make_table(columns("a int"))
    answers = [ValueError("Cannot add snapshot with sequence number 1 older than last sequence number 2")]

    def decide(schema: Schema, facts: TableFacts) -> EvolutionPlan:
        if answers:
            raise answers.pop()
        return plan_evolution(schema, columns("b int"), Policy())

    assert evolve(lake, target, decide, 1).added == ("b",)


@pytest.mark.parametrize("error", [ValueError("Cannot add column"), KeyError("x"), OSError("disk full")])
def test_another_error_is_not_tried_again(
    lake: IcebergCatalog, make_table: MakeTable, error: Exception
) -> None:
    target = make_table(columns("a int"))
    calls: list[Schema] = []

    def decide(schema: Schema, facts: TableFacts) -> EvolutionPlan:
        calls.append(schema)
        raise error

    with pytest.raises(type(error)) as raised:
        evolve(lake, target, decide, 4)
    assert raised.value is error
    assert len(calls) == 1


def test_threads_that_evolve_one_table_lose_no_column(lake: IcebergCatalog, make_table: MakeTable) -> None:
    target = make_table(columns("a int"))
    names = ["b", "c", "d"]
    start = threading.Barrier(len(names))

    def work(name: str) -> None:
        start.wait()
        evolve(lake, target, deciding(columns(f"a int, {name} int")), 20)

    threads = [threading.Thread(target=work, args=(name,), daemon=True) for name in names]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    table = lake.load(target)
    assert sorted(ids(table)) == ["a", *names]
    assert sorted(ids(table).values()) == [1, 2, 3, 4]
    assert commits(table) == (4, 3)


# Descriptions


def described(lake: IcebergCatalog) -> tuple[str | None, dict[str, str | None]]:
    table = lake.load(relation("t"))
    return table.properties.get(COMMENT_PROPERTY), {f.name: f.doc for f in table.schema().fields}


def test_descriptions_of_table_and_columns_are_one_commit(
    lake: IcebergCatalog, make_table: MakeTable
) -> None:
    target = make_table(columns("Id int, a.b int, c int"))
    lake.set_docs(target, "It's a table.", {"id": "the key", "a.b": "dotted", "absent": "x"}, retries=0)
    assert described(lake) == ("It's a table.", {"Id": "the key", "a.b": "dotted", "c": None})
    assert commits(lake.load(target)) == (2, 1)


def test_descriptions_are_recorded_after_what_a_run_knows_only(
    lake: IcebergCatalog, make_table: MakeTable
) -> None:
    """What others have changed before it would pass for what a run has looked at."""
    target = make_table(columns("id int, x int"))
    lake.set_docs(target, "of the table", {"id": "the key"}, 0, "run-1")
    found = record.read(lake.load(target).properties)
    assert set(found) == {1}
    assert (found[1].changes, found[1].invocation_id, found[1].source) == (
        {"described": ("`id`",)},
        "run-1",
        "",
    )
    last = lake.load(target).schema()
    with lake.load(target).transaction() as change, change.update_schema() as update:
        update.delete_column("x")
    lake.set_docs(target, None, {"id": "key"}, 0, "run-2")
    assert record.read(lake.load(target).properties) == found
    assert record.known_schema_id(lake.load(target).properties) == last.schema_id
    history = schema_history(lake.load(target))
    assert [(entry["schema_id"], entry["invocation_id"]) for entry in history] == [
        (0, ""),
        (1, "run-1"),
        (2, ""),
        (3, ""),
    ]


def test_the_comment_is_the_property_that_spark_shows(lake: IcebergCatalog, make_table: MakeTable) -> None:
    target = make_table(columns("id int"))
    lake.set_docs(target, "about it", {}, retries=0)
    assert lake.load(target).properties["comment"] == "about it"
    assert commits(lake.load(target)) == (1, 1)


@pytest.mark.parametrize(
    ("comment", "docs"),
    [
        ("about it", {"id": "the key"}),
        (None, {"id": "the key"}),
        (None, {}),
        ("about it", {"x": "", "absent": "y"}),
    ],
)
def test_unchanged_descriptions_are_no_commit(
    lake: IcebergCatalog, make_table: MakeTable, comment: str | None, docs: dict[str, str]
) -> None:
    target = make_table(columns("ID int, x int"))
    lake.set_docs(target, "about it", {"id": "the key"}, retries=0)
    before = lake.load(target).metadata_location
    lake.set_docs(target, comment, docs, retries=0)
    assert lake.load(target).metadata_location == before


def test_an_empty_description_of_what_has_none_is_no_commit(
    lake: IcebergCatalog, make_table: MakeTable
) -> None:
    target = make_table(columns("id int"))
    lake.set_docs(target, "", {"id": ""}, retries=0)
    assert commits(lake.load(target)) == (1, 0)


def test_descriptions_can_be_changed_and_emptied(lake: IcebergCatalog, make_table: MakeTable) -> None:
    target = make_table(columns("id int, x int, y int"))
    lake.set_docs(target, "old", {"id": "old", "x": "old", "y": "old"}, retries=0)
    lake.set_docs(target, "", {"id": "new", "x": ""}, retries=0)
    comment, docs = described(lake)
    assert comment == ""
    assert docs == {"id": "new", "x": "", "y": "old"}
    assert commits(lake.load(target)) == (3, 2)


def test_describing_keeps_types_ids_and_not_null(lake: IcebergCatalog, make_table: MakeTable) -> None:
    target = make_table(columns("id int not null, s", s=struct(10, x=INT)))
    before = lake.load(target).schema()
    lake.set_docs(target, None, {"id": "key", "s": "nested"}, retries=0)
    after = lake.load(target).schema()
    assert [(f.field_id, f.name, f.field_type, f.required) for f in after.fields] == [
        (f.field_id, f.name, f.field_type, f.required) for f in before.fields
    ]


# Purging


def files_of(table: Table) -> list[Path]:
    folder = Path(table.location().removeprefix("file://"))
    return sorted(path for path in folder.rglob("*") if path.is_file())


def test_purging_removes_the_table_and_its_files(lake: IcebergCatalog, make_table: MakeTable) -> None:
    target = make_table(columns("a int"), [{"a": 1}], [{"a": 2}])
    kept = make_table(columns("a int"), [{"a": 1}], name="kept")
    table, kept_files = lake.load(target), files_of(lake.load(kept))
    assert {path.suffix for path in files_of(table)} >= {".parquet", ".avro", ".json"}
    lake.purge(target)
    assert lake.find(target) is None
    assert files_of(table) == []
    assert files_of(lake.load(kept)) == kept_files != []


def test_what_is_in_another_catalog_is_not_what_has_its_name_here(
    lake: IcebergCatalog, make_table: MakeTable
) -> None:
    here = make_table(columns("a int"), [{"a": 1}])
    files = files_of(lake.load(here))
    for database in ("other", here.database.upper(), ""):
        there = here.replace_path(database=database)
        assert lake.find(there) is None
        calls: list[Callable[[], object]] = [
            lambda there=there: lake.load(there),
            lambda there=there: lake.purge(there),
            lambda there=there: lake.set_docs(there, "x", {"a": "y"}, 0),
            lambda there=there: lake.drop_branch(there, "main"),
            lambda there=there: lake.schema_history(there),
            lambda there=there: lake.base(there, lambda: None),
        ]
        for call in calls:
            with pytest.raises(ForeignCatalogError) as raised:
                call()
            facts = (raised.value.relation, raised.value.database, raised.value.stated)
            assert facts == (str(there), database, (here.database,))
    assert files_of(lake.load(here)) == files


def test_purging_what_is_not_there_does_nothing(lake: IcebergCatalog, make_table: MakeTable) -> None:
    target = make_table(columns("a int"))
    lake.purge(target)
    lake.purge(target)
    lake.purge(relation("never", schema="absent"))
    assert lake.table_names("db") == frozenset()


@pytest.mark.parametrize("suffix", ["snap-*.avro", "*-m0.avro"])
def test_a_table_whose_files_are_gone_is_dropped(
    lake: IcebergCatalog, make_table: MakeTable, suffix: str
) -> None:
    target = make_table(columns("a int"), [{"a": 1}])
    gone = next(Path(lake.load(target).location().removeprefix("file://")).rglob(suffix))
    gone.unlink()
    with pytest.raises(FilesLeftError) as raised:
        lake.purge(target)
    assert raised.value.relation == "`lake`.`db`.`t`"
    assert raised.value.msg.startswith(
        "`lake`.`db`.`t` was dropped, but not all of its files could be removed ("
    )
    assert gone.name in raised.value.msg
    assert lake.table_names("db") == frozenset()


def test_a_table_whose_metadata_are_gone_is_dropped(lake: IcebergCatalog, make_table: MakeTable) -> None:
    target = make_table(columns("a int"))
    Path(lake.load(target).metadata_location.removeprefix("file://")).unlink()
    with pytest.raises(FilesLeftError):
        lake.purge(target)
    assert lake.table_names("db") == frozenset()


def test_a_table_is_dropped_where_purging_is_forbidden(
    lake: IcebergCatalog, make_table: MakeTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = make_table(columns("a int"), [{"a": 1}])
    files = files_of(lake.load(target))

    def purge_table(name: object) -> None:
        raise ForbiddenError("NotAuthorized: purge")

    monkeypatch.setattr(lake.access.opened, "purge_table", purge_table)
    # One that deletes the files itself.
    monkeypatch.setattr(CatalogAccess, "capabilities", capabilities_of({"type": "rest", "uri": "http://h"}))
    with pytest.raises(FilesLeftError) as raised:
        lake.purge(target)
    assert "(NotAuthorized: purge)" in raised.value.msg
    assert lake.table_names("db") == frozenset()
    assert [path for path in files if path.exists()] == files


@pytest.mark.parametrize(("name", "asked"), [("t__dbt_tmp_0123456789ab", 3), ("t", 1)])
def test_a_batch_goes_with_its_files_though_the_catalog_is_away_for_a_moment(
    lake: IcebergCatalog, make_table: MakeTable, monkeypatch: pytest.MonkeyPatch, name: str, asked: int
) -> None:
    """Of another table the name may be somebody else's by then: it is dropped as it was."""
    target = make_table(columns("a int"), [{"a": 1}], name=name)
    files = files_of(lake.load(target))
    purge_table = lake.access.opened.purge_table
    answers = [ConnectionResetError("Connection reset by peer") for _ in range(2)]
    requests = []

    def answer(identifier: object) -> None:
        requests.append(identifier)
        if answers:
            raise answers.pop()
        purge_table(("db", name))

    monkeypatch.setattr(lake.access.opened, "purge_table", answer)
    monkeypatch.setattr(CatalogAccess, "capabilities", capabilities_of({"type": "rest", "uri": "http://h"}))
    with nullcontext() if asked > 1 else pytest.raises(FilesLeftError):
        lake.purge(target)
    assert len(requests) == asked
    assert lake.table_names("db") == frozenset()
    assert [path for path in files if path.exists()] == ([] if asked > 1 else files)


def test_a_table_that_cannot_be_dropped_either_says_why(
    lake: IcebergCatalog, make_table: MakeTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = make_table(columns("a int"))

    def forbid(name: object) -> None:
        raise ForbiddenError("NotAuthorized")

    monkeypatch.setattr(lake.access.opened, "purge_table", forbid)
    monkeypatch.setattr(lake.access.opened, "drop_table", forbid)
    with pytest.raises(CatalogAnswerError, match=r"`db`\.`t` could not be removed: .* NotAuthorized\. "):
        lake.purge(target)
    assert lake.table_names("db") == {"t"}


# Opening


def test_pyiceberg_s_own_configuration_is_left_out_and_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere = tmp_path / "elsewhere"
    monkeypatch.setenv("PYICEBERG_CATALOG__LAKE__WAREHOUSE", f"file://{elsewhere}")
    monkeypatch.setenv("PYICEBERG_CATALOG__LAKE__POOL_PRE_PING", "nonsense")
    told: list[str] = []
    monkeypatch.setattr(access, "warn", told.append)
    settings = resolve("lake", {"type": "sql", "uri": f"sqlite:///{tmp_path}/c.db", "flag": 1}, tmp_path)
    opened = IcebergCatalog(settings)
    assert opened.table_names("db") == frozenset()
    assert opened.namespace_exists("db") is False
    assert opened.access.opened.properties == settings.pyiceberg
    assert told == [
        "PyIceberg's configuration (.pyiceberg.yaml, or variables PYICEBERG_CATALOG__LAKE__…) has settings "
        "for a catalog `lake`: pool-pre-ping, warehouse. They are not used, since Spark would not see them. "
        "Put what is needed into `catalog_properties` of the profile, such as with env_var().",
        settings.differences,
    ]


def test_a_bundle_of_the_environment_that_goes_before_the_profile_s_is_told(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    told: list[str] = []
    monkeypatch.setattr(access, "warn", told.append)
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", "/other.pem")
    monkeypatch.setenv("CURL_CA_BUNDLE", "/ca.pem")
    given = {"type": "sql", "uri": f"sqlite:///{tmp_path}/c.db", "ssl": {"cabundle": "/ca.pem"}}
    assert IcebergCatalog(resolve("lake", given, tmp_path)).table_names("db") == frozenset()
    assert told == [
        "The environment has REQUESTS_CA_BUNDLE, which the library below PyIceberg takes before "
        "`ssl.cabundle` of the catalog `lake`. Unset it, or name that file in it too."
    ]


# Staged batches


def test_a_staged_batch_knows_its_rows_and_the_columns_without_null(
    lake: IcebergCatalog, make_table: MakeTable
) -> None:
    schema = columns("Id int, A.b string, c double, none date, s", s=struct(10, x=INT))
    full = {"Id": 1, "A.b": "x", "c": 1.0, "none": None, "s": {"x": 1}}
    staged = make_table(schema, [full, {**full, "c": None}], [full])
    batch = lake.staged_batch(staged)
    assert batch.rows == 3
    assert batch.columns_without_null == {"id", "a.b"}
    assert [f.name for f in batch.schema.fields] == ["Id", "A.b", "c", "none", "s"]


def test_a_null_in_any_file_counts(lake: IcebergCatalog, make_table: MakeTable) -> None:
    staged = make_table(
        columns("a int, b int"), [{"a": 1, "b": 1}], [{"a": None, "b": 1}], [{"a": 1, "b": 1}]
    )
    assert lake.staged_batch(staged).columns_without_null == {"b"}


def test_nested_columns_are_known_to_be_without_null_once_they_were_counted(
    lake: IcebergCatalog, make_table: MakeTable
) -> None:
    def schema(**required: bool) -> Schema:
        types: dict[str, IcebergType] = {
            "S": struct(10, id=INT),
            "l": ListType(20, INT, element_required=False),
            "m": mapping(30, STRING, INT),
            "id": INT,
        }
        return Schema(
            *(
                NestedField(n, name, type_, required.get(name, False))
                for n, (name, type_) in enumerate(types.items(), 1)
            )
        )

    rows: list[dict[str, object]] = [{"S": {"id": 1}, "l": [1], "m": [("k", 1)], "id": 1}]
    batch = lake.staged_batch(make_table(schema(), rows))
    assert batch.columns_without_null == {"id"}
    assert batch.uncounted(schema()) == []
    assert batch.uncounted(schema(S=True, m=True, id=True)) == ["S", "m"]
    assert batch.uncounted(Schema(NestedField(1, "s", struct(10, id=INT), required=True))) == ["S"]
    batch.add_counts({"S": 0, "l": 1, "m": 0})
    assert batch.columns_without_null == {"id", "s", "m"}
    assert batch.uncounted(schema(S=True, m=True, id=True)) == []
    empty = lake.staged_batch(make_table(schema(), name="empty"))
    assert empty.columns_without_null == {"id", "s", "l", "m"}
    assert empty.uncounted(schema(S=True)) == []


def test_a_batch_without_files_has_no_rows_and_no_null(lake: IcebergCatalog, make_table: MakeTable) -> None:
    batch = lake.staged_batch(make_table(columns("a int, b int")))
    assert batch.rows == 0
    assert batch.columns_without_null == {"a", "b"}


def test_a_batch_of_a_file_without_rows_has_no_rows(
    lake: IcebergCatalog, other: Catalog, make_table: MakeTable
) -> None:
    staged = make_table(columns("a int"))
    table = other.load_table("db.t")
    table.append(pa.table({"a": pa.array([], pa.int32())}))
    assert lake.staged_batch(staged).rows == 0


def test_a_column_whose_nulls_were_not_counted_may_hold_one(
    lake: IcebergCatalog, make_table: MakeTable
) -> None:
    properties = {
        "write.metadata.metrics.default": "none",
        "write.metadata.metrics.column.b": "counts",
    }
    staged = make_table(columns("a int, b int"), [{"a": 1, "b": 1}], properties=properties)
    batch = lake.staged_batch(staged)
    assert batch.rows == 1
    assert batch.columns_without_null == {"b"}
    # It is asked for where it matters.
    required = columns("A int not null, b int not null, c int not null")
    assert batch.uncounted(required) == ["a"]
    assert batch.uncounted(columns("a int, b int")) == []
    batch.add_counts({"a": 0})
    assert batch.uncounted(required) == []


def test_a_batch_whose_rows_are_on_no_main_branch_is_not_an_empty_batch(
    lake: IcebergCatalog, other: Catalog, make_table: MakeTable
) -> None:
    staged = make_table(columns("a int"))
    table = other.load_table("db.t")
    table.append(pa.table({"a": pa.array([1], pa.int32())}))
    commit(table, (), (RemoveSnapshotRefUpdate.model_validate({"ref-name": "main"}),))
    with pytest.raises(HiddenBatchError) as raised:
        lake.staged_batch(staged)
    assert raised.value.msg == (
        "The rows of the staged batch `lake`.`db`.`t` are on another branch than its `main`, or on none: the "
        "catalog sets each new table up for `spark.wap.branch` and `spark.wap.id`, and the session has one "
        "of these. Take `table-override.write.wap.enabled` out of the catalog's properties, and set "
        "`write.wap.enabled` on the tables that are to have it. Nothing was loaded."
    )
    assert raised.value.relation == "`lake`.`db`.`t`"


def test_a_batch_that_is_not_there_is_not_an_empty_batch(lake: IcebergCatalog) -> None:
    with pytest.raises(StagedBatchGoneError) as raised:
        lake.staged_batch(relation("t__dbt_tmp_0123456789ab"))
    assert raised.value.msg == (
        "The staged batch `lake`.`db`.`t__dbt_tmp_0123456789ab` is not in the Iceberg catalog `lake`. Either "
        "somebody has dropped it while the model ran, or `catalog_properties` of the profile name another "
        "catalog than the one that Spark uses (`dbt debug` tells). Nothing was loaded from it: run the model "
        "again."
    )
    assert raised.value.relation == "`lake`.`db`.`t__dbt_tmp_0123456789ab`"
    assert raised.value.catalog == "lake"


def test_opening_the_catalog_makes_its_folder(settings: CatalogSettings) -> None:
    assert settings.sqlite_file is not None
    gateway = IcebergCatalog(settings)
    assert not settings.sqlite_file.exists()
    assert not gateway.namespace_exists("db")
    assert settings.sqlite_file.exists()


def test_whether_a_change_was_made_is_not_known_if_the_catalog_is_silent(
    lake: IcebergCatalog, make_table: MakeTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = make_table(columns("id int"))
    cause = OSError("lost")

    def commit_table(*args: object, **kwargs: object) -> object:
        def load(*args: object) -> Table:
            raise OSError("still lost")

        monkeypatch.setattr(lake.access.opened, "load_table", load)
        raise cause

    monkeypatch.setattr(lake.access.opened, "commit_table", commit_table)
    with pytest.raises(SchemaCommitError) as raised:
        evolve(lake, target, deciding(columns("id int, n int")), 4)
    assert not raised.value.outcome_known
    assert raised.value.__cause__ is cause
    assert raised.value.msg == (
        "The columns of `lake`.`db`.`t` could not be changed (add column `n` int). The catalog's answer: "
        "lost. Whether they were made is not known, as the catalog cannot be asked; no row was written, "
        "and the next run finds out."
    )


@pytest.mark.parametrize("what", ["commit_table", "load_table"])
@pytest.mark.parametrize("busy", [TooManyRequestsError("429"), ServiceUnavailableError("503")], ids=str)
def test_a_busy_catalog_is_asked_again(
    lake: IcebergCatalog, make_table: MakeTable, monkeypatch: pytest.MonkeyPatch, what: str, busy: Exception
) -> None:
    """As often as the model says, for columns and for descriptions; then the error says what was not done."""
    target = make_table(columns("id int"))
    real = getattr(lake.access.opened, what)
    answers: list[Exception] = []

    def answer(*args: object, **kwargs: object) -> object:
        if answers:
            raise answers.pop()
        return real(*args, **kwargs)

    monkeypatch.setattr(lake.access.opened, what, answer)
    answers += [busy, busy]
    evolve(lake, target, deciding(columns("id int, n int")), 2)
    assert ids(lake.load(target)) == {"id": 1, "n": 2}
    answers += [busy, busy]
    lake.set_docs(target, "text", {}, 2)
    assert lake.load(target).properties["comment"] == "text"
    answers += [busy, busy]
    with pytest.raises(CommitConflictError) as raised:
        lake.set_docs(target, "other", {}, 1)
    assert raised.value.msg.startswith(
        "The descriptions of `lake`.`db`.`t` could not be stored in 2 attempts, because"
    )
    assert raised.value.msg.endswith("None of it was done. Run the model again, or raise `commit_retries`.")


def test_variants_are_read_wherever_they_are(
    lake: IcebergCatalog, other: Catalog, make_table: MakeTable
) -> None:
    nested = struct(10, x=StringType(), l=array(20, StringType()), m=mapping(30, LongType(), StringType()))
    target = make_table(columns("id int, v string, s", s=nested))
    metadata = Path(other.load_table("db.t").metadata_location.removeprefix("file://"))
    text = (
        metadata.read_text()
        .replace('"string"', '"variant"')
        .replace('"format-version":2', '"format-version":3')
    )
    metadata.write_text(text)
    variant = VariantType()
    schema = lake.load(target).schema()
    assert [f.field_type for f in schema.fields] == [
        IntegerType(),
        variant,
        struct(4, x=variant, l=array(7, variant), m=mapping(8, LongType(), variant)),
    ]
    assert schema.model_dump_json().count('"variant"') == 4


def test_a_table_that_pyiceberg_cannot_read_is_named(
    lake: IcebergCatalog, other: Catalog, make_table: MakeTable
) -> None:
    target = make_table(columns("id int, v string"))
    metadata = Path(other.load_table("db.t").metadata_location.removeprefix("file://"))
    metadata.write_text(metadata.read_text().replace('"format-version":2', '"format-version":4'))
    with pytest.raises(UnreadableTableError) as caught:
        lake.load(target)
    reason = (
        "Input tag '4' found using 'format_version' | 'format-version' does not match any of the expected "
        "tags: 1, 2, 3"
    )
    assert str(caught.value.msg).startswith(
        "`lake`.`db`.`t` is a table of the Iceberg catalog, and PyIceberg cannot read its metadata: "
        f"{reason}. Incremental models and snapshots need that."
    )
    assert (caught.value.relation, caught.value.reason) == ("`lake`.`db`.`t`", reason)
    assert lake.find_readable(target) is None
    assert "t" in lake.table_names("db")
