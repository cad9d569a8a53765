"""The plan of an evolution: what is added, padded and left out, and each refusal in its full text."""

import dataclasses

import pytest
from pyiceberg.schema import Schema
from pyiceberg.types import (
    DecimalType,
    IcebergType,
    IntegerType,
    LongType,
    MapType,
    NestedField,
    StringType,
    StructType,
    TimeType,
)

from dbt.adapters.sparkevolve.evolution.changes import (
    AddColumn,
    AddField,
    RelaxNotNull,
    RenameField,
    SetDoc,
    WidenType,
)
from dbt.adapters.sparkevolve.evolution.plan import (
    EvolutionPlan,
    check_source_names,
    move_setting,
    plan_evolution,
)
from dbt.adapters.sparkevolve.evolution.policy import Condition, FormerColumn, Past, Policy, TableFacts
from dbt.adapters.sparkevolve.evolution.projection import (
    AsFixed,
    AsUuid,
    Cast,
    Keep,
    Pad,
    ProjectedColumn,
    RebuildList,
    RebuildMap,
    RebuildStruct,
    StructMember,
)
from dbt.adapters.sparkevolve.evolution.refusals import Refusal
from dbt.adapters.sparkevolve.sql.dml import insert_statement
from dbt.adapters.sparkevolve.sql.mentions import mentions
from tests.unit.helpers import TYPES, array, columns, mapping, struct
from tests.unit.strategies import RESERVED

INT, LONG, STRING = IntegerType(), LongType(), StringType()


def plan(target: Schema | str, source: Schema | str, **policy: object) -> EvolutionPlan:
    target = columns(target) if isinstance(target, str) else target
    source = columns(source) if isinstance(source, str) else source
    return plan_evolution(target, source, Policy(**policy))  # type: ignore[arg-type]


def one_column(name: str, column_type: IcebergType, *, required: bool = False) -> Schema:
    return Schema(NestedField(1, name, column_type, required=required))


# The numbers of the design


def test_a_column_is_added_and_another_is_removed() -> None:
    assert plan("a int, b string, c int", "a int, b string, d bigint") == EvolutionPlan(
        changes=(AddColumn(("d",), LONG),),
        columns=(
            ProjectedColumn("a", "a", Keep()),
            ProjectedColumn("b", "b", Keep()),
            ProjectedColumn("c", None, Pad("int")),
            ProjectedColumn("d", "d", Keep()),
        ),
        removed=(("c",),),
    )


def test_a_column_in_another_case_is_no_change() -> None:
    assert plan("CustomerID int", "customerid int") == EvolutionPlan(
        columns=(ProjectedColumn("CustomerID", "customerid", Keep()),)
    )


def test_the_refreshed_columns_are_the_old_ones_and_the_new_one() -> None:
    evolution = plan("a int, b int", "a int, c int")
    assert evolution.refreshed == ("a", "b", "c")
    assert evolution.added == ("c",)
    assert evolution.removed == (("b",),)


def test_a_removed_column_is_padded_in_its_place() -> None:
    evolution = plan("a int, b decimal(10,2), c string", "a int, c string")
    assert insert_statement("t", "s", evolution.columns) == (
        "INSERT INTO t (`a`, `b`, `c`)\n"
        "SELECT\n"
        "  DBT_INTERNAL_SOURCE.`a` AS `a`,\n"
        "  CAST(NULL AS decimal(10,2)) AS `b`,\n"
        "  DBT_INTERNAL_SOURCE.`c` AS `c`\n"
        "FROM s AS DBT_INTERNAL_SOURCE"
    )


def test_runs_that_change_a_column_each_end_in_all_columns() -> None:
    table = columns("a int, b int")
    for batch, refreshed in [("a int, c int", ("a", "b", "c")), ("a int, d int", ("a", "b", "c", "d"))]:
        evolution = plan(table, batch)
        assert evolution.refreshed == refreshed
        table = columns(", ".join(f"{name} int" for name in evolution.refreshed))
    assert plan(table, "a int, b int").removed == (("c",), ("d",))


# What is kept, cast, padded, added and left out


def test_the_same_columns_in_another_order_stay_in_table_order() -> None:
    assert plan("a int, B string, c date", "C date, A int, b string") == EvolutionPlan(
        columns=(
            ProjectedColumn("a", "A", Keep()),
            ProjectedColumn("B", "b", Keep()),
            ProjectedColumn("c", "C", Keep()),
        )
    )


def test_added_columns_come_last_in_the_order_and_spelling_of_the_batch() -> None:
    evolution = plan("b int", "z int, B int, Y string, a.b date")
    assert evolution.refreshed == ("b", "z", "Y", "a.b")
    assert evolution.changes == (
        AddColumn(("z",), INT),
        AddColumn(("Y",), STRING),
        AddColumn(("a.b",), TYPES["date"]),
    )


@pytest.mark.parametrize(
    ("target", "source", "type_"),
    [
        ("x bigint", "X int", "bigint"),
        ("x double", "x float", "double"),
        ("x double", "x int", "double"),
        ("x decimal(10,2)", "x decimal(9,2)", "decimal(10,2)"),
        ("x decimal(10,3)", "x decimal(9,2)", "decimal(10,3)"),
        ("x decimal(12,2)", "x int", "decimal(12,2)"),
        ("x decimal(19,0)", "x bigint", "decimal(19,0)"),
    ],
)
def test_a_narrower_column_is_cast_up(target: str, source: str, type_: str) -> None:
    assert plan(target, source) == EvolutionPlan(
        columns=(ProjectedColumn("x", source.split()[0], Cast(type_)),)
    )


def test_a_removed_nested_column_is_padded_with_its_whole_type() -> None:
    target = columns("id int, s", s=struct(10, a=INT, b=array(12, STRING)))
    assert plan(target, "id int") == EvolutionPlan(
        columns=(
            ProjectedColumn("id", "id", Keep()),
            ProjectedColumn("s", None, Pad("struct<`a`:int,`b`:array<string>>")),
        ),
        removed=(("s",),),
    )


def test_a_nested_column_in_another_case_is_kept() -> None:
    target = columns("s", s=struct(10, First=INT, second=STRING))
    source = columns("S", S=struct(20, first=INT, SECOND=STRING))
    assert plan(target, source) == EvolutionPlan(columns=(ProjectedColumn("s", "S", Keep()),))


def test_without_adding_a_new_column_is_left_out_and_a_removed_one_is_padded() -> None:
    assert plan("a int, b int", "New int, A int, x.y int", add_columns=False) == EvolutionPlan(
        columns=(ProjectedColumn("a", "A", Keep()), ProjectedColumn("b", None, Pad("int"))),
        removed=(("b",),),
        ignored=(("New",), ("x.y",)),
    )


def test_an_added_column_gets_its_description_by_folded_name() -> None:
    docs = {"new": "what it is", "empty": ""}
    evolution = plan("a int", "a int, New int, empty int, other int", docs=docs)
    assert evolution.changes == (
        AddColumn(("New",), INT, "what it is"),
        AddColumn(("empty",), INT, None),
        AddColumn(("other",), INT, None),
    )


def test_an_old_column_gets_a_description_that_differs() -> None:
    fields = (
        NestedField(1, "Same", INT, doc="same"),
        NestedField(2, "Other", INT, doc="old"),
        NestedField(3, "None", INT),
        NestedField(4, "gone", INT, doc="x"),
        NestedField(5, "kept", INT, doc="not in the docs"),
    )
    docs = {"same": "same", "other": "It's", "none": "", "gone": ""}
    evolution = plan(Schema(*fields), "same int, OTHER int, none int, kept int", docs=docs)
    assert evolution.changes == (SetDoc(("Other",), "It's"), SetDoc(("gone",), ""))


def test_the_unique_key_is_spelled_as_the_table_will_spell_it() -> None:
    evolution = plan(
        "CustomerID int, x int", "customerid int, Day date, x int", unique_key=("CUSTOMERID", "day")
    )
    assert evolution.unique_key == ("CustomerID", "Day")
    assert not evolution.refusals


def test_a_not_null_column_that_holds_no_null_in_the_batch_is_kept() -> None:
    evolution = plan(
        "Id int not null, n bigint not null", "iD int, N int", columns_without_null=frozenset({"id", "n"})
    )
    assert evolution == EvolutionPlan(
        columns=(ProjectedColumn("Id", "iD", Keep()), ProjectedColumn("n", "N", Cast("bigint")))
    )


def test_a_batch_without_any_of_the_columns_pads_them_all() -> None:
    evolution = plan("a int, b string", "c date")
    assert evolution.removed == (("a",), ("b",))
    assert evolution.refreshed == ("a", "b", "c")


def test_names_that_other_languages_fold_together_are_two_columns() -> None:
    assert plan("straße int", "straße int, STRASSE int").added == ("STRASSE",)


def test_a_dot_in_a_name_beside_a_struct_of_other_fields_is_a_name() -> None:
    target = columns("s, p", s=struct(10, a=INT), p=INT)
    source = columns(
        "s, p, s.b, p.a, s.a.b", s=struct(10, a=INT), p=INT, **{"s.b": INT, "p.a": INT, "s.a.b": INT}
    )
    assert plan(target, source).added == ("s.b", "p.a", "s.a.b")


# Refusals


def refused(target: Schema | str, source: Schema | str, **policy: object) -> tuple[Refusal, ...]:
    evolution = plan(target, source, **policy)
    assert evolution == EvolutionPlan(refusals=evolution.refusals), "a refused plan holds nothing else"
    assert evolution.added == evolution.refreshed == ()
    return evolution.refusals


def test_a_refusal_reads_reason_first_then_remedy() -> None:
    assert str(Refusal(columns=("a",), reason="It is wrong.", remedy="Do right.")) == "It is wrong. Do right."


def test_a_removed_not_null_column_becomes_optional() -> None:
    evolution = plan("id int, Name string not null", "id int")
    assert evolution.changes == (RelaxNotNull(("Name",)),)
    assert evolution.columns[1] == ProjectedColumn("Name", None, Pad("string"))


def test_a_not_null_column_that_may_hold_a_null_becomes_optional() -> None:
    evolution = plan(
        "Id bigint not null, x int not null", "ID bigint, x int", columns_without_null=frozenset({"x"})
    )
    assert evolution.changes == (RelaxNotNull(("Id",)),)


def test_a_removed_not_null_column_is_refused_if_it_may_not_be_relaxed() -> None:
    (refusal,) = refused("id int, Na`me string not null", "id int", relax_not_null=False)
    assert refusal.columns == ("Na`me",)
    assert refusal.types == ("string",)
    assert refusal.reason == (
        "Column `Na``me` is NOT NULL in the table, and the model no longer returns it, so it cannot be "
        "padded with NULL."
    )
    assert refusal.remedy == (
        "Return it from the model again, or set `relax_not_null: true` to make it optional."
    )


def test_a_null_in_a_not_null_column_is_refused_if_it_may_not_be_relaxed() -> None:
    (refusal,) = refused(
        "Id bigint not null, x int not null",
        "ID bigint, x int",
        columns_without_null=frozenset({"x"}),
        relax_not_null=False,
    )
    assert refusal.columns == ("Id",)
    assert refusal.types == ("bigint",)
    assert refusal.reason == "Column `Id` is NOT NULL in the table, and the batch may hold a NULL in it."
    assert refusal.remedy == (
        "Keep NULLs out of it in the model, or set `relax_not_null: true` to make it optional."
    )


@pytest.mark.parametrize("source", ["x int", "Id int, x int"])
@pytest.mark.parametrize("relax_not_null", [True, False])
def test_an_identifier_field_cannot_become_optional(source: str, relax_not_null: bool) -> None:
    target = Schema(
        NestedField(1, "Id", INT, required=True), NestedField(2, "x", INT), identifier_field_ids=[1]
    )
    (refusal,) = refused(target, source, relax_not_null=relax_not_null)
    assert refusal.columns == ("Id",)
    assert refusal.types == ("int",)
    assert str(refusal) == (
        "Column `Id` is an identifier field of the table, which cannot be NULL, and the model does not "
        "return a value for it in each row. Return it from the model, or take it out of the identifier "
        "fields (ALTER TABLE ... DROP IDENTIFIER FIELDS `Id`)."
    )


def test_a_struct_with_an_identifier_field_cannot_become_optional() -> None:
    """Iceberg allows identifier fields in required structs only, at every level."""
    inner = StructType(NestedField(3, "id", INT, required=True), NestedField(4, "x", INT))
    outer = StructType(NestedField(2, "In", inner, required=True))
    target = Schema(
        NestedField(1, "S", outer, required=True), NestedField(5, "n", INT), identifier_field_ids=[3]
    )
    (refusal,) = refused(target, "n int")
    assert refusal.columns == ("S.In.id",)
    assert str(refusal).startswith("Column `S`.`In`.`id` is an identifier field of the table")
    with pytest.raises(ValueError, match="must not be nested in an optional field"):
        Schema(NestedField(1, "S", outer), identifier_field_ids=[3])


def test_an_identifier_field_without_null_in_the_batch_is_kept() -> None:
    target = Schema(NestedField(1, "Id", INT, required=True), identifier_field_ids=[1])
    assert plan(target, "id int", columns_without_null=frozenset({"id"})).changes == ()


def test_another_type_in_a_not_null_column_without_null_is_refused_for_the_type() -> None:
    (refusal,) = refused("x int not null", "x string", columns_without_null=frozenset({"x"}))
    assert refusal.types == ("int", "string")


def test_a_removed_column_of_a_type_that_spark_lacks_is_refused() -> None:
    (refusal,) = refused("id int, at time", "id int")
    assert refusal.columns == ("at",)
    assert refusal.types == ("time",)
    assert (
        refusal.reason
        == "Column `at` of the table has the Iceberg type time, for which Spark SQL has no type, so that no "
        "row can be written."
    )
    assert refusal.remedy == "Load this table with an engine that can."


def test_a_removed_nested_column_of_a_type_that_spark_lacks_is_refused() -> None:
    (refusal,) = refused(columns("id int, s", s=struct(10, t=TimeType())), "id int")
    assert refusal.types == ("struct<10: t: optional time>",)
    assert str(refusal) == (
        "Column `s` of the table has the Iceberg type struct<10: t: optional time>, for which "
        "Spark SQL has no type, so that no row can be written. "
        "Load this table with an engine that can."
    )


@pytest.mark.parametrize(
    ("target", "source", "in_table", "in_batch"),
    [
        (INT, STRING, "int", "string"),
        (STRING, INT, "string", "int"),
        (LONG, TYPES["double"], "bigint", "double"),
        (TYPES["double"], LONG, "double", "bigint"),
        (LONG, TYPES["float"], "bigint", "float"),
        (DecimalType(10, 2), DecimalType(10, 3), "decimal(10,2)", "decimal(10,3)"),
        (DecimalType(10, 2), DecimalType(11, 3), "decimal(10,2)", "decimal(11,3)"),
        (DecimalType(10, 2), DecimalType(10, 1), "decimal(10,2)", "decimal(10,1)"),
        (DecimalType(10, 2), INT, "decimal(10,2)", "int"),
        (TYPES["date"], TYPES["timestamp"], "date", "timestamp"),
        (TYPES["timestamp"], TYPES["timestamp_ntz"], "timestamp", "timestamp_ntz"),
        (STRING, TYPES["binary"], "string", "binary"),
        (struct(10, x=INT), mapping(10, STRING, INT), "struct<`x`:int>", "map<string,int>"),
        (mapping(10, STRING, INT), array(10, INT), "map<string,int>", "array<int>"),
        (STRING, struct(10, x=INT), "string", "struct<`x`:int>"),
        (array(10, INT), STRING, "array<int>", "string"),
    ],
)
def test_a_type_that_could_lose_something_is_refused(
    target: IcebergType, source: IcebergType, in_table: str, in_batch: str
) -> None:
    (refusal,) = refused(one_column("Amount", target), one_column("amount", source))
    assert refusal.columns == ("Amount",)
    assert refusal.types == (in_table, in_batch)
    assert refusal.reason == f"Column `Amount` is {in_table} in the table, and the model returns {in_batch}."
    casts = f"If {in_table} holds all its values, cast it to {in_table} in the model; if not, return it"
    assert refusal.remedy == (
        f"{'Return it' if '<' in in_table + in_batch else casts} under a new name, fill that for old rows, "
        "and retire the old name."
    )


@pytest.mark.parametrize(
    ("stored", "staged", "own_names"),
    [("string", "uuid", ("string", "uuid")), ("fixed", "string", ("binary", "string"))],
)
def test_a_column_of_another_engine_s_type_is_refused(
    stored: str, staged: str, own_names: tuple[str, str]
) -> None:
    (refusal,) = refused(f"x {stored}", f"x {staged}")
    assert refusal.types == own_names


def test_a_text_goes_into_a_uuid_and_bytes_into_fixed_if_they_are_such() -> None:
    evolution = plan("u uuid, f fixed", "F binary, U string")
    assert evolution.changes == ()
    assert evolution.columns == (
        ProjectedColumn("u", "U", AsUuid("`u`")),
        ProjectedColumn("f", "F", AsFixed("`f`", 16)),
    )
    assert evolution.columns[0].render("S") == (
        "IF(S.`U` IS NULL OR length(S.`U`) = 36 AND S.`U` RLIKE "
        "'^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}', lower(S.`U`), "
        "raise_error(concat('Column `u` is uuid in the table, and the model returns: ', S.`U`)))"
    )
    assert evolution.columns[1].render("S") == (
        "IF(S.`F` IS NULL OR octet_length(S.`F`) = 16, S.`F`, raise_error(concat('Column `f` is fixed[16] in "
        "the table, and the model returns: ', octet_length(S.`F`), ' bytes')))"
    )


def test_the_remedy_of_a_key_s_type_names_the_setting() -> None:
    (refusal,) = refused("id int, x int", "ID string, x int", unique_key=("iD",))
    assert refusal.remedy == (
        "If int holds all its values, cast it to int in the model; if not, return it under a new name, fill "
        "that for old rows, make that the `unique_key`, and retire the old name."
    )


@pytest.mark.parametrize(
    ("table", "batch", "aside"),
    [
        (INT, STRING, True),
        (struct(11, a=INT), struct(21, a=STRING), True),
        # None of these values can be the other's.
        (INT, array(20, INT), False),
        (TYPES["date"], INT, False),
    ],
)
def test_what_fits_for_some_rows_can_set_the_others_aside(
    table: IcebergType, batch: IcebergType, aside: bool
) -> None:
    for may_set_aside in (True, False):
        (refusal,) = refused(one_column("x", table), one_column("x", batch), may_set_aside=may_set_aside)
        assert refusal.aside == (
            "If only some values do not fit, `on_bad_rows: dead_letter` sets their rows aside and loads the "
            'others: see "Dead letters" in the docs of dbt-sparkevolve.'
            if aside and may_set_aside
            else ""
        )
        assert str(refusal).endswith(refusal.aside)


def test_the_setting_for_another_type_is_none_for_a_key() -> None:
    policy = Policy(unique_key=("ID",))
    table = columns("id int, x int")
    assert move_setting(("id",), table, table, policy) == ""
    assert move_setting(("x",), table, table, policy) == "`column_renames: {x: x_old}`"


@pytest.mark.parametrize(
    ("sql", "renames", "is_refused"),
    [
        ("DBT_INTERNAL_DEST.Day >= date'2024-01-01'", {"day": "day_old"}, True),
        ("`day` is not null", {"DAY": "day_old"}, True),
        # These read the batch alone, or have the word for something else.
        ("DBT_INTERNAL_SOURCE.day > 'a' and id <> 'day' -- day", {"day": "day_old"}, False),
        ("id > day(now()) - extract(day from now())", {"day": "day_old"}, False),
        # Written for both.
        ("day > 'a' or DBT_INTERNAL_DEST.day is null", {"day": "day_old"}, False),
        ("coalesce(day, to_date(day_old)) > 'a'", {"day": "day_old"}, False),
        ("day > 'a' or id is null", {"day": "day_old"}, True),
        # A name if the session says so, which a text does not tell.
        ("id > 1 and \"Day\" > 'a'", {"day": "day_old"}, True),
        ('id > 1 and weekday = "a day"', {"day": "day_old"}, False),
        ("(day > 'a' or isnull(day)) and id > 1", {"day": "day_old"}, False),
        ("coalesce(day, 'b') > 'a' or DBT_INTERNAL_DEST.day is null", {"day": "day_old"}, False),
        ("id in (select day from o) or DBT_INTERNAL_DEST.day is null", {"day": "day_old"}, False),
        # What asks for NULL may be a part of something else.
        ("not (day is null)", {"day": "day_old"}, True),
        ("not isnull(day) or id > 1", {"day": "day_old"}, True),
        ("day > 'a' or not DBT_INTERNAL_DEST.day is null", {"day": "day_old"}, True),
        ("day > 'a' or id > 1 and day is null", {"day": "day_old"}, True),
        ("(day > 'a' or day is null) = true", {"day": "day_old"}, True),
        # In doubt it counts.
        ("coalesce(day, 'b') > 'a'", {"day": "day_old"}, True),
        ("s.w > 1 or s.v is null", {"s.v": "v_old"}, False),
        ("s.v > 1 or s is null", {"s.v": "v_old"}, True),
        ("s.v > 1 or s.v is null", {"s.v": "v_old"}, False),
        ("s.v > 1", {"s.v": "v_old"}, True),
        ("s is not null and s.w > 1", {"s.v": "v_old"}, False),
        ("s.w > 1", {"s.v": "v_old"}, False),
        ("s = named_struct('v', 1)", {"s.v": "v_old"}, True),
        ("size(l.v) > 1", {"l.v": "v_old"}, True),
        ("l.w[0] > 1", {"l.element.v": "v_old"}, False),
        # An array of NULLs is not NULL.
        ("l.v is null", {"l.v": "v_old"}, True),
        ("size(l.v) > 1 or size(l.v_old) > 1", {"l.v": "v_old"}, False),
    ],
)
def test_what_a_condition_needs_is_not_replaced(sql: str, renames: dict[str, str], is_refused: bool) -> None:
    table = columns(
        "id int, day string, s, l",
        s=struct(10, v=STRING, w=INT),
        l=array(20, struct(21, v=STRING, w=INT)),
    )
    in_day = "date" if any(name.lower() == "day" for name in renames) else "string"
    in_s, in_l = (INT if any(path in name for name in renames) else STRING for path in ("s.v", "l."))
    batch = columns(
        f"id int, day {in_day}, s, l", s=struct(10, v=in_s, w=INT), l=array(20, struct(21, v=in_l, w=INT))
    )
    conditions = (Condition(sql, mentions(sql)),)
    found = plan_evolution(table, batch, Policy(renames=renames, conditions=conditions))
    assert bool(found.refusals) == is_refused, found.refusals
    everything = plan_evolution(
        table, batch, Policy(renames=renames, conditions=conditions, replaces_all_rows=True)
    )
    assert not everything.refusals
    assert everything.replaced


def test_a_condition_that_would_find_no_row_is_named() -> None:
    sql = " DBT_INTERNAL_DEST.day > '2024' "
    policy = Policy(renames={"day": "day_old"}, conditions=(Condition(sql, mentions(sql)),))
    (refusal,) = plan_evolution(columns("id int, Day string"), columns("id int, DAY date"), policy).refusals
    assert str(refusal) == (
        "`column_renames` wants `DAY` (string) to become `day_old`, and the model returns `DAY` as date, "
        "which would be a new column. `incremental_predicates` name it (DBT_INTERNAL_DEST.day > '2024'), and "
        "it would be NULL in all rows that are there: those for which the condition does not hold then would "
        "not be found, and rows of the batch be added beside them. Until it is filled for old rows "
        '("Backfill a column" in the docs of dbt-sparkevolve), take that condition out, or let it hold for '
        "NULL too: `… OR DBT_INTERNAL_DEST.`DAY` IS NULL`. Or make a full refresh."
    )
    assert refusal.types == ("string", "date")
    # Nor is the setting advised that would be refused then.
    without = Policy(conditions=policy.conditions)
    (refusal,) = plan_evolution(columns("id int, day string"), columns("id int, day date"), without).refusals
    assert "column_renames" not in str(refusal)


def test_a_condition_on_a_field_inside_a_list_is_taken_out() -> None:
    """Spark has no name for it that could be asked for NULL."""
    sql = "size(DBT_INTERNAL_DEST.l.v) > 0"
    policy = Policy(renames={"l.v": "v_old"}, conditions=(Condition(sql, mentions(sql)),))
    table, batch = (columns("id int, l", l=array(20, struct(21, v=type_))) for type_ in (STRING, INT))
    (refusal,) = plan_evolution(table, batch, policy).refusals
    assert str(refusal).endswith(
        "and rows of the batch be added beside them. Take that condition out, or have it read `v_old` there "
        "as well. Or make a full refresh."
    )


@pytest.mark.parametrize("stored", [True, False])
def test_a_replaced_column_may_have_a_default_in_older_rows(stored: bool) -> None:
    """Then no row has NULL in it, and a condition that holds for NULL finds none of them."""
    facts = TableFacts(format_version=3, fills_older_rows=stored)
    renames, defaults = {"id": "id_old"}, {"ID": "7"}
    batch, table = columns("id int, day string"), columns("id string, day string")

    def refused(*conditions: Condition, key: tuple[str, ...] = ()) -> list[str]:
        policy = Policy(
            renames=renames, unique_key=key, defaults=defaults, facts=facts, conditions=conditions
        )
        return [str(refusal) for refusal in plan_evolution(table, batch, policy).refusals]

    sql = "id > 9 or id is null"
    by_limit = refused(Condition(sql, mentions(sql)))
    by_key = refused(key=("id",))
    by_version = refused(Condition("id", mentions("id"), finds_versions=True))
    if not stored:
        assert by_limit == []
        assert "It is the unique_key, and would be NULL in all rows" in by_key[0]
        assert ", and it would be NULL in all versions" in by_version[0]
        return
    assert by_limit[0].endswith(
        "`incremental_predicates` name it (id > 9 or id is null), and it would be 7, its default, in all "
        "rows that are there: those for which the condition does not hold then would not be found, and rows "
        "of the batch be added beside them. Take that condition out, have it read `id_old` as well, or add "
        "the column without a default. Or make a full refresh."
    )
    assert (
        "It is the unique_key, and would be 7, its default, in all rows that are there: a batch with that "
        "value would replace them all, and another one add its rows beside them. Return it under a new name"
    ) in by_key[0]
    assert (
        "and it would be 7, its default, in all versions that are there: none of them would be found again "
        "by its own key, so that they would stay open, with others beside them."
    ) in by_version[0]
    # Nor is the move advised that would be refused then.
    renames.clear()
    assert "column_renames" not in refused(Condition(sql, mentions(sql)))[0]


@pytest.mark.parametrize("key", ["id", "`ID`", "concat(Id, '-', region)", "id is null"])
def test_the_key_of_a_snapshot_is_not_replaced(key: str) -> None:
    by_key = Condition(key, mentions(key), finds_versions=True)
    policy = Policy(renames={"id": "id_old"}, conditions=(by_key,))
    batch = columns("id int, region string")
    (refusal,) = plan_evolution(columns("id string, region string"), batch, policy).refusals
    assert str(refusal) == (
        "`column_renames` wants `id` (string) to become `id_old`, and the model returns `id` as int, which "
        f"would be a new column. The snapshot's unique_key has it ({key}), and it would be NULL in all "
        "versions that are there: none of them would be found again, so that they would stay open, with "
        "others beside them. Cast it to string in the snapshot's query; or return it under a new name, fill "
        "that for old versions, make that the `unique_key`, and retire the old name."
    )


def test_a_field_of_a_key_is_not_replaced() -> None:
    policy = Policy(renames={"s.v": "v_old"}, unique_key=("S",))
    table, batch = one_column("s", struct(10, v=STRING)), one_column("s", struct(10, v=INT))
    (refusal,) = plan_evolution(table, batch, policy).refusals
    assert "It is in the unique_key, and would be NULL in all rows that are there" in str(refusal)


# What a field was called is not known any more, so any rename may have been made.
LONG_AGO = TableFacts(past=Past(is_complete=False))


@pytest.mark.parametrize(
    ("table", "batch", "renames", "setting"),
    [
        ("x string", "x int", {}, "`column_renames: {x: x_old}`"),
        ("x string, x_old date", "x int", {"y": "x_old"}, "`column_renames: {x: x_old2}`"),
        (
            "X_old date, x string",
            "x int",
            {"`X`": "x_old"},
            "`column_renames: {x: x_old2}` in the place of `x: x_old`, which was done before",
        ),
        # What the model returns under such a name is not the old column.
        ("x string", "x int, X_OLD string", {}, "`column_renames: {x: x_old2}`"),
    ],
)
def test_the_setting_for_one_more_type_says_which_one_is_used_up(
    table: str, batch: str, renames: dict[str, str], setting: str
) -> None:
    (refusal,) = refused(table, batch, renames=renames, facts=LONG_AGO)
    assert refusal.otherwise == (
        f"To keep the old column under another name, and have its name for the new type, set {setting}. The "
        'docs of dbt-sparkevolve have four questions to ask first, under "Change a type".'
    )


def test_what_a_source_has_retired_is_retired_under_its_name_or_another() -> None:
    """As a snapshot's source may have it, see docs/moving.md."""
    batch = columns("amount_old int, amount double")
    followed = plan(columns("amount int"), batch, renames={"amount": "amount_old"})
    assert [str(change) for change in followed.changes] == [
        "rename `amount` to `amount_old`",
        "add column `amount` double",
    ]
    assert [column.source for column in followed.columns] == ["amount_old", "amount"]
    kept = plan(columns("amount int, amount_old int"), batch, renames={"amount": "amount_old2"})
    assert [(column.name, column.source) for column in kept.columns] == [
        ("amount_old2", None),
        ("amount_old", "amount_old"),
        ("amount", "amount"),
    ]


def test_a_nested_setting_that_is_used_up_is_named_by_its_path() -> None:
    table = one_column("l", array(10, struct(11, v_old=INT, v=STRING)))
    batch = one_column("l", array(10, struct(11, v=INT)))
    for path in ("l.v", "l.element.v"):
        (refusal,) = refused(table, batch, renames={path: "v_old"}, facts=LONG_AGO)
        assert (
            "set `column_renames: {l.element.v: v_old2}` in the place of `l.element.v: v_old`, which was done"
            in refusal.otherwise
        )


def test_a_not_null_struct_is_relaxed_since_its_nulls_are_not_counted() -> None:
    evolution = plan(one_column("s", struct(10, x=INT), required=True), one_column("s", struct(10, x=INT)))
    assert evolution.changes == (RelaxNotNull(("s",)),)
    assert evolution.columns == (ProjectedColumn("s", "s", Keep()),)


@pytest.mark.parametrize(
    ("in_table", "in_batch", "path"),
    [
        (StructType(NestedField(10, "x", INT, required=True)), struct(10, x=INT), ("S", "x")),
        (array(10, INT, required=True), array(10, INT), ("S", "element")),
        (MapType(10, STRING, 11, INT, value_required=True), mapping(10, STRING, INT), ("S", "value")),
        (
            array(10, StructType(NestedField(11, "X", INT, required=True))),
            array(10, struct(11, x=INT)),
            ("S", "element", "X"),
        ),
    ],
    ids=["struct", "list", "map", "list of structs"],
)
def test_an_optional_nested_value_for_a_not_null_one_makes_that_optional(
    in_table: IcebergType, in_batch: IcebergType, path: tuple[str, ...]
) -> None:
    """Spark finds the NULL only in the INSERT, when the DELETE is committed already."""
    evolution = plan(one_column("S", in_table), one_column("s", in_batch))
    assert evolution.changes == (RelaxNotNull(path),)
    assert evolution.columns == (ProjectedColumn("S", "s", Keep()),)
    (refusal,) = refused(one_column("S", in_table), one_column("s", in_batch), relax_not_null=False)
    assert refusal.columns == (".".join(path),)
    assert "may hold a NULL" in refusal.reason


# Widening


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (INT, LONG),
        (TYPES["float"], TYPES["double"]),
        (DecimalType(10, 2), DecimalType(11, 2)),
        (DecimalType(9, 0), DecimalType(38, 0)),
    ],
)
def test_a_wider_type_of_the_batch_widens_the_column(old: IcebergType, new: IcebergType) -> None:
    evolution = plan(one_column("N", old), one_column("n", new))
    assert evolution == EvolutionPlan(
        changes=(WidenType(("N",), old, new),), columns=(ProjectedColumn("N", "n", Keep()),)
    )
    (refusal,) = refused(one_column("N", old), one_column("n", new), type_widening=False)
    assert refusal.columns == ("N",)
    assert refusal.reason.endswith(" It could be widened, but `type_widening` is false.")


# Nested fields


def test_what_is_removed_inside_lists_and_maps_is_told_apart() -> None:
    def table(*, with_gone: bool) -> Schema:
        fields = {"a": INT, "gone": INT} if with_gone else {"a": INT}
        inner = struct(40, **fields)
        return columns(
            "S, L, M, x int" if with_gone else "S, L, M",
            S=struct(10, **fields, deep=array(50, inner)),
            L=array(20, inner),
            M=mapping(30, STRING, struct(60, **fields)),
        )

    found = plan(table(with_gone=True), table(with_gone=False))
    assert found.removed == (
        ("S", "gone"),
        ("S", "deep", "element", "gone"),
        ("L", "element", "gone"),
        ("M", "value", "gone"),
        ("x",),
    )
    assert found.padded_inside == found.removed[1:4]


def test_nested_fields_are_added_padded_and_put_in_the_order_of_the_table() -> None:
    evolution = plan(
        one_column("S", struct(10, a=INT, B=LONG, gone=STRING)),
        one_column("s", struct(10, new=STRING, b=INT, A=INT)),
    )
    assert evolution.changes == (AddField(("S", "new"), STRING),)
    assert evolution.removed == (("S", "gone"),)
    assert evolution.columns == (
        ProjectedColumn(
            "S",
            "s",
            RebuildStruct(
                (
                    StructMember("a", "A", Keep()),
                    StructMember("B", "b", Cast("bigint")),
                    StructMember("gone", None, Pad("string")),
                    StructMember("new", "new", Keep()),
                )
            ),
        ),
    )


def test_a_nested_field_that_only_comes_last_is_added_without_a_rebuild() -> None:
    evolution = plan(one_column("s", struct(10, x=INT)), one_column("s", struct(10, x=INT, y=INT)))
    assert evolution.changes == (AddField(("s", "y"), INT),)
    assert evolution.columns == (ProjectedColumn("s", "s", Keep()),)


def test_elements_and_values_evolve_in_place() -> None:
    target = columns("l, m", l=array(10, struct(11, x=INT)), m=mapping(20, STRING, struct(22, y=LONG)))
    source = columns("l, m", l=array(10, struct(11, z=INT, x=LONG)), m=mapping(20, STRING, struct(22, y=INT)))
    evolution = plan(target, source)
    assert evolution.changes == (
        WidenType(("l", "element", "x"), INT, LONG),
        AddField(("l", "element", "z"), INT),
    )
    assert evolution.columns == (
        ProjectedColumn(
            "l",
            "l",
            RebuildList(RebuildStruct((StructMember("x", "x", Keep()), StructMember("z", "z", Keep())))),
        ),
        ProjectedColumn("m", "m", RebuildMap(RebuildStruct((StructMember("y", "y", Cast("bigint")),)))),
    )


def test_without_adding_nested_fields_are_left_out_and_the_struct_is_rebuilt_without_them() -> None:
    evolution = plan(
        one_column("s", struct(10, x=INT)), one_column("s", struct(10, x=INT, y=INT)), add_columns=False
    )
    assert evolution.ignored == (("s", "y"),)
    assert evolution.changes == ()
    assert evolution.columns == (ProjectedColumn("s", "s", RebuildStruct((StructMember("x", "x", Keep()),))),)


@pytest.mark.parametrize(
    ("in_table", "in_batch"),
    [
        (struct(10, x=INT), struct(10, x=INT, y=INT)),
        (struct(10, x=INT, y=INT), struct(10, x=INT)),
        (array(10, INT), array(10, LONG)),
        (mapping(10, STRING, INT), mapping(10, STRING, STRING)),
        (array(10, struct(11, x=INT)), array(10, struct(11, y=INT))),
    ],
)
def test_a_nested_difference_is_refused_if_nested_fields_may_not_evolve(
    in_table: IcebergType, in_batch: IcebergType
) -> None:
    (refusal,) = refused(one_column("S", in_table), one_column("s", in_batch), nested_evolution=False)
    assert refusal.columns == ("S",)
    assert refusal.reason.endswith(" The fields in it differ, and `nested_evolution` is false.")


def test_fields_in_another_order_are_no_difference_of_the_schema() -> None:
    evolution = plan(
        one_column("s", struct(10, x=INT, y=INT)),
        one_column("s", struct(10, y=INT, x=INT)),
        nested_evolution=False,
    )
    assert evolution.changes == evolution.refusals == ()
    assert isinstance(evolution.columns[0].projection, RebuildStruct)


def test_the_keys_of_a_map_do_not_evolve() -> None:
    (refusal,) = refused(one_column("m", mapping(10, INT, INT)), one_column("m", mapping(10, LONG, INT)))
    assert refusal.columns == ("m",)
    assert refusal.reason == (
        "Column `m` is map<int,int> in the table, and the model returns map<bigint,int>. The keys of a map "
        "cannot evolve."
    )


@pytest.mark.parametrize(
    ("renames", "source", "reason"),
    [
        ({"A": "b"}, "b int", "wants `a` to become `b`, and the table has both."),
        (
            {"a": "c", "b": "C"},
            "c int",
            "wants `b` to become `C`, and `a` to become `c`.",
        ),
        ({"a": "c"}, "a int, b string", "wants `a` to become `c`, and the model still returns the old name."),
    ],
)
def test_a_rename_that_cannot_be_made_is_all_that_is_refused(
    renames: dict[str, str], source: str, reason: str
) -> None:
    (refusal,) = refused("a int, b int", source, renames=renames)
    assert refusal.reason == f"`column_renames` {reason}"


@pytest.mark.parametrize("required", [True, False])
def test_a_rename_travels_with_everything_else(required: bool) -> None:
    target = Schema(
        NestedField(1, "old", INT, required=required),
        NestedField(2, "s", struct(10, was=INT, z=INT), required=False),
    )
    source = columns("s, New bigint, extra date", s=struct(10, z=INT, now=INT))
    evolution = plan(target, source, renames={"OLD": "New", "s.was": "now"}, unique_key=("new",))
    relaxed = (RelaxNotNull(("old",)),) if required else ()
    assert evolution.changes == (
        RenameField(("old",), "New"),
        *relaxed,
        WidenType(("old",), INT, LONG),
        RenameField(("s", "was"), "now"),
        AddColumn(("extra",), TYPES["date"]),
    )
    assert evolution.refreshed == ("New", "s", "extra")
    assert evolution.unique_key == ("New",)
    assert evolution.columns[1].projection == RebuildStruct(
        (StructMember("now", "now", Keep()), StructMember("z", "z", Keep()))
    )


@pytest.mark.parametrize("new", ["_pos", "_File", "`_deleted`"])
@pytest.mark.parametrize("source", ["id int", "id int, _pos int"])
def test_a_rename_to_a_reserved_name_is_refused(new: str, source: str) -> None:
    """Whether or not the model returns it: Spark could not read the table any more."""
    assert plan("id int, old int", source, renames={"old": new}).refusals


def test_a_rename_to_what_spark_takes_for_another_column_is_refused() -> None:
    assert plan("id int, old int, \u00b5 int", "id int, \u03bc int", renames={"old": "\u03bc"}).refusals


def test_a_new_field_that_spark_cannot_tell_from_an_old_one_is_refused() -> None:
    # Not as keywords: Python itself writes the one as the other in those.
    in_table, in_batch = (StructType(NestedField(10, name, INT)) for name in ("\u00b5", "\u03bc"))
    assert refused(one_column("s", in_table), one_column("s", in_batch))


@pytest.mark.parametrize("renames", [{}, {"absent": "day"}, {"s.x": "day"}])
def test_a_key_that_the_table_lacks_is_refused_whatever_is_renamed(renames: dict[str, str]) -> None:
    target = columns("id int, s", s=struct(10, x=INT))
    batch = columns("id int, Day date")
    (refusal,) = refused(target, batch, unique_key=("day",), add_columns=False, renames=renames)
    assert str(refusal) == (
        "The unique_key `day` is not a column of the table. Set `on_schema_change: "
        "append_new_columns_preserve` to add it, or change the `unique_key`."
    )


def test_a_key_that_a_rename_brings_in_another_case_is_in_the_table() -> None:
    evolution = plan("old int", "new int", renames={"old": "New"}, unique_key=("NEW",), add_columns=False)
    assert evolution.unique_key == ("New",)


def test_a_key_that_a_quoted_rename_brings_is_in_the_table() -> None:
    evolution = plan("old int", "new int", renames={"old": "`new`"}, unique_key=("new",), add_columns=False)
    assert evolution.refusals == ()
    assert evolution.unique_key == ("new",)


def test_a_rename_of_what_the_table_lacks_is_said_when_its_new_name_is_added() -> None:
    """A typing error: the values stay under the old name, beside the new one."""
    in_table, in_batch = (
        columns("s, old int", s=struct(10, x=INT)),
        columns("s, new int", s=struct(10, y=INT)),
    )
    evolution = plan(in_table, in_batch, renames={"odl": "new", "`s`.`z`": "y"})
    assert [str(change) for change in evolution.changes] == ["add field `s`.`y` int", "add column `new` int"]
    assert evolution.warnings == (
        "`column_renames` wants odl to become `new`, and the table has no odl: `new` is added as a new "
        "column, without the values of another.",
        "`column_renames` wants `s`.`z` to become `y`, and the table has no `s`.`z`: `s`.`y` is added as a "
        "new column, without the values of another.",
    )
    assert plan(in_table, in_batch, renames={"old": "new", "`s`.`x`": "y"}).warnings == ()
    assert plan(in_table, in_table, renames={"gone": "old", "s.gone": "x"}).warnings == ()
    assert plan(in_table, in_batch, renames={"odl": "new"}, add_columns=False).warnings == ()


# What the table's state adds


def test_a_column_that_was_dropped_comes_as_a_new_one_with_a_warning() -> None:
    facts = TableFacts(former={("back",): FormerColumn("Back", 7, "int", 2, 3)})
    evolution = plan("id int", "id int, BACK string", facts=facts)
    assert evolution.changes == (AddColumn(("BACK",), STRING),)
    assert evolution.warnings == (
        "Column `BACK` was in the table before, as field 7 of type int, until schema 3 dropped it (schema 2 "
        "had it last). It is added as a new column: its old values do not come back.",
    )


def test_a_field_that_was_dropped_or_renamed_comes_as_a_new_one_with_a_warning() -> None:
    facts = TableFacts(
        former={
            ("s", "l", "element", "y"): FormerColumn("y", 9, "int", 0, 1),
            ("o",): FormerColumn("o", 4, "int", 2, 3, renamed_to="`p`"),
        }
    )
    target = columns("id int, p int, s", s=struct(5, l=array(6, struct(7, x=INT))))
    source = columns("id int, O int, s", s=struct(5, l=array(6, struct(7, x=INT, Y=INT))))
    evolution = plan_evolution(target, source, Policy(facts=facts))
    assert evolution.warnings == (
        "Column `s`.`l`.`element`.`Y` was in the table before, as field 9 of type int, until schema 1 "
        "dropped it (schema 0 had it last). It is added as a new column: its old values do not come back.",
        "Column `O` was in the table before, as field 4 of type int, until schema 3 renamed it to `p` "
        "(schema 2 had it last). It is added as a new column: its old values stay in `p`.",
    )


def test_a_removed_partition_column_is_padded_with_a_warning() -> None:
    evolution = plan("id int, Day date", "id int", facts=TableFacts(partition_sources=frozenset({2})))
    assert evolution.removed == (("Day",),)
    assert evolution.warnings == (
        "The table is partitioned by `Day`, which the model no longer returns: the rows of this run go to "
        "the partition NULL.",
    )


def test_a_partition_column_in_a_removed_struct_is_warned_of() -> None:
    struct_of = columns("id int, s", s=struct(5, Day=INT))
    facts = TableFacts(partition_sources=frozenset({5}))
    evolution = plan_evolution(struct_of, columns("id int"), Policy(facts=facts))
    assert evolution.warnings == (
        "The table is partitioned by `s`.`Day`, which the model no longer returns: the rows of this run go "
        "to the partition NULL.",
    )


def test_a_partition_column_cannot_go_where_partitions_are_replaced() -> None:
    """Each run would replace what the one before has put into the partition NULL."""
    facts = TableFacts(partition_sources=frozenset({2}))
    evolution = plan("id int, Day date", "id int", facts=facts, overwrites_partitions=True)
    assert [str(refusal) for refusal in evolution.refusals] == [
        "The table is partitioned by `Day`, which the model no longer returns, and the strategy replaces "
        "partitions: the rows of each run would go to the partition NULL, in the place of those that are "
        "there. Return it from the model again, or use another `incremental_strategy`."
    ]


@pytest.mark.parametrize(
    "facts", [TableFacts(partition_sources=frozenset({2})), TableFacts(partition_names={"day": 2})]
)
def test_it_is_not_advised_to_replace_what_a_table_is_or_was_partitioned_by(facts: TableFacts) -> None:
    (refusal,) = plan("id int, Day string", "id int, day int", facts=facts).refusals
    assert str(refusal) == (
        "Column `Day` is string in the table, and the model returns int. If string holds all its values, "
        "cast it to string in the model; if not, return it under a new name, fill that for old rows, and "
        "retire the old name."
    )
    (beside,) = plan("size string, Day string", "size int, day string", facts=facts).refusals
    assert "set `column_renames: {size: size_old}`." in str(beside)


def test_a_column_cannot_be_called_like_the_partition_field_of_another() -> None:
    facts = TableFacts(partition_names={"day": 2})
    (refusal,) = plan("id int, Day string", "id int, day int", facts=facts, renames={"Day": "d"}).refusals
    assert "a partition spec of the table has, or once had, the field `day`" in str(refusal)


def test_a_refused_type_is_all_that_is_refused_whatever_is_around_it() -> None:
    """Each kind of refusal goes on to the next column, and into the next field of a struct."""
    in_table = {"s": struct(10, a=INT, t=TimeType(), b=INT), "u": struct(20, a=INT)}
    in_batch = {"s": struct(10, a=STRING, b=LONG), "u": struct(20, a=LONG)}
    refusals = refused(columns("s, u", **in_table), columns("s, u", **in_batch), type_widening=False)
    assert [refusal.columns for refusal in refusals] == [("s.a",), ("s.t",), ("s.b",), ("u.a",)]


@pytest.mark.parametrize(
    ("stored", "staged", "path"),
    [
        (struct(10, x=struct(11, deep=INT)), struct(10, x=struct(11, deep=INT)), ("x", "deep")),
        (array(10, struct(11, deep=INT)), array(10, struct(11, deep=INT)), ("element", "deep")),
        (
            mapping(10, STRING, struct(12, deep=INT)),
            mapping(10, STRING, struct(12, deep=INT)),
            ("value", "deep"),
        ),
    ],
    ids=["struct", "list", "map"],
)
def test_a_type_that_is_the_same_but_for_a_rename_or_a_not_null_is_gone_into(
    stored: IcebergType, staged: IcebergType, path: tuple[str, ...]
) -> None:
    renamed = plan(one_column("s", stored), one_column("s", staged), renames={f"s.{path[0]}.deep": "DEEP"})
    assert renamed.changes == (RenameField(("s", *path), "DEEP"),)


def test_a_description_is_set_on_columns_only() -> None:
    field = NestedField(1, "s", struct(10, x=INT), doc="old")
    evolution = plan(Schema(field), columns("s", s=struct(10, x=LONG)), docs={"x": "of a column", "s": "new"})
    assert evolution.changes == (WidenType(("s", "x"), INT, LONG), SetDoc(("s",), "new"))


def test_a_new_column_with_the_name_of_a_partition_field_is_refused() -> None:
    facts = TableFacts(partition_names={"ts_day": None})
    (refusal,) = refused("id int", "id int, Ts_Day date", facts=facts)
    assert refusal.columns == ("Ts_Day",)


def test_a_format_that_pyiceberg_cannot_commit_to_takes_all_changes() -> None:
    facts = TableFacts(format_version=3, is_atomic=False)
    assert plan("id int", "id bigint, x int", facts=facts, docs={"id": "a key"}).changes == (
        WidenType(("id",), INT, LONG),
        SetDoc(("id",), "a key"),
        AddColumn(("x",), INT),
    )


def test_ten_thousand_columns_are_planned() -> None:
    wide = Schema(*(NestedField(i, f"c{i}", INT, required=False) for i in range(1, 10_001)))
    wider = Schema(*(NestedField(i, f"C{i}", LONG, required=False) for i in range(1, 10_001)))
    assert len(plan("id int", wide).changes) == 10_000
    assert len(plan(wide, wider).changes) == 10_000
    assert plan(wide, wide).changes == ()
    assert len(plan(wide, "c1 int").removed) == 9_999


def test_columns_that_differ_by_case_only_are_refused_in_the_batch() -> None:
    (refusal,) = refused("id int", "id int, New int, NEW int, new string")
    assert refusal.columns == ("New", "NEW", "new")
    assert refusal.types == ()
    assert refusal.reason == (
        "The model returns columns whose names differ only in ways that Spark ignores: `New`, `NEW`, `new`. "
        "Spark cannot tell them apart."
    )
    assert refusal.remedy == "Rename all but one of them."


def test_columns_that_differ_by_case_only_are_refused_in_the_table() -> None:
    (refusal,) = refused("ID int, id int", "id int")
    assert refusal.columns == ("ID", "id")
    assert refusal.reason == (
        "The table has columns whose names differ only in ways that Spark ignores: `ID`, `id`. Spark cannot "
        "tell them apart."
    )
    assert refusal.remedy == "Rename all but one of them."


@pytest.mark.parametrize(
    ("in_table", "new"),
    [("\u00b5", "\u03bc"), ("i", "\u0131"), ("σ", "ς"), ("s", "ſ"), ("İ", "i")],
    ids=["micro and mu", "dotless i", "final sigma", "long s", "dotted i"],
)
def test_a_new_column_that_spark_cannot_tell_from_an_old_one_is_refused(in_table: str, new: str) -> None:
    """Their lower-case forms differ, but ``equalsIgnoreCase`` takes them for one: no SELECT of both works."""
    assert in_table.lower() != new.lower()
    (refusal,) = refused(f"{in_table} int", f"{new} int")
    assert refusal.columns == (in_table, new)
    assert refusal.reason.startswith("With the model's, the table would have columns")
    assert plan(f"{in_table} int", f"{new} int", add_columns=False).ignored == ((new,),)


@pytest.mark.parametrize(("in_table", "new"), [("straße", "STRASSE"), ("É", "e\u0301"), ("ss", "ß")])
def test_names_that_spark_keeps_apart_are_two_columns(in_table: str, new: str) -> None:
    assert plan(f"{in_table} int", f"{in_table} int, {new} int").added == (new,)
    assert plan(f"{in_table} int", f"{new} int").removed == ((in_table,),)


@pytest.mark.parametrize("name", RESERVED)
def test_a_reserved_name_is_refused(name: str) -> None:
    (refusal,) = refused("id int", f"id int, {name} string")
    assert refusal.columns == (name,)
    assert refusal.types == ()
    assert refusal.reason == (
        f"The model returns the column `{name}`, a name that Iceberg keeps for its metadata columns: a table "
        "that has it can be neither read nor changed by Spark."
    )
    assert refusal.remedy == "Give the column another name in the model."


def test_a_reserved_name_is_refused_in_another_case_and_even_if_it_would_be_left_out() -> None:
    (refusal,) = refused("id int", "id int, _Pos string", add_columns=False)
    assert refusal.columns == ("_Pos",)


def test_a_key_that_the_model_does_not_return_is_refused() -> None:
    (refusal,) = refused("id int, day date", "id int, x int", unique_key=("ID", "Day", "hour"))
    assert refusal.columns == ("Day", "hour")
    assert refusal.reason == (
        "The unique_key `Day`, `hour` is not produced by the model, which returns `id`, `x`."
    )
    assert refusal.remedy == "Return it from the model, or change the `unique_key`."


def test_a_key_that_the_table_lacks_is_refused_if_nothing_is_added() -> None:
    (refusal,) = refused("id int", "id int, Day date", unique_key=("id", "day"), add_columns=False)
    assert refusal.columns == ("day",)
    assert refusal.reason == "The unique_key `day` is not a column of the table."
    assert refusal.remedy == (
        "Set `on_schema_change: append_new_columns_preserve` to add it, or change the `unique_key`."
    )


@pytest.mark.parametrize("type_", [mapping(10, STRING, INT), struct(10, m=mapping(20, STRING, INT))])
def test_a_map_is_no_key(type_: IcebergType) -> None:
    (refusal,) = refused("id int", one_column("Tags", type_), unique_key=("tags",))
    assert refusal.columns == ("Tags",)
    text = "map<string,int>" if isinstance(type_, MapType) else "struct<`m`:map<string,int>>"
    assert refusal.types == (text,)
    assert refusal.reason == (
        f"The unique_key `Tags` is of type {text}, and Spark cannot compare maps: no row can be found by it."
    )
    assert refusal.remedy == (
        "Change the `unique_key`, or return another column from the model, such as `to_json(`Tags`)`, and "
        "use that."
    )


@pytest.mark.parametrize("name", ["s.x", "S.X", "l.element", "m.key", "m.value", "m.value.y", "d.e.f"])
def test_a_new_column_with_the_path_of_a_nested_field_is_refused(name: str) -> None:
    nested: dict[str, IcebergType] = {
        "s": struct(10, X=INT),
        "l": array(20, INT),
        "m": mapping(30, STRING, struct(32, y=INT)),
        "d.e": struct(40, f=INT),
    }
    (refusal,) = refused(
        columns("s, l, m, d.e", **nested), columns(f"s, {name}", s=struct(10, X=INT), **{name: INT})
    )
    assert refusal.columns == (name,)
    path = {"s.x": "`s`.`X`", "d.e.f": "`d.e`.`f`", "m.value.y": "`m`.`value`.`y`"}.get(
        name.lower(), "`" + name.replace(".", "`.`") + "`"
    )
    assert refusal.in_the_way == path.replace("`", "")
    assert refusal.types == ()
    assert refusal.reason == (
        f"The model returns the new column `{name}`, but the table has the field "
        f"{path}, and Iceberg cannot hold both."
    )
    assert refusal.remedy == "Give the column another name in the model."


@pytest.mark.parametrize(
    "nested", [array(10, struct(11, x=INT)), mapping(10, STRING, struct(12, x=INT))], ids=["list", "map"]
)
def test_a_new_column_with_the_short_path_of_a_nested_field_is_refused(nested: IcebergType) -> None:
    """Iceberg also finds ``p.element.x`` and ``p.value.x`` as ``p.x``, and then refuses to add a ``p.x``."""
    (refusal,) = refused(one_column("p", nested), columns("p.x int"))
    assert refusal.columns == ("p.x",)


def test_a_new_struct_whose_field_has_the_path_of_a_column_is_refused() -> None:
    (refusal,) = refused("a.b int", columns("a", a=struct(10, b=INT)))
    assert refusal.columns == ("a",)


def test_a_batch_without_columns_is_refused() -> None:
    (refusal,) = refused("id int", "")
    assert refusal.columns == ()
    assert refusal.reason == "The model returns no columns."
    assert refusal.remedy == "A table cannot be loaded from it: check what the model selects from."


def test_each_thing_that_is_wrong_with_the_names_is_told_at_once() -> None:
    refusals = refused(
        "a int, A int", "b int, B int, _file int, _pos int", unique_key=("c",), add_columns=False
    )
    assert [refusal.columns for refusal in refusals] == [
        ("a", "A"),
        ("b", "B"),
        ("_file",),
        ("_pos",),
        ("c",),
    ]


def test_each_thing_that_is_wrong_with_the_types_is_told_at_once_in_table_order() -> None:
    target = columns("a int, b int not null, c time, s, ok int", s=struct(10, x=INT))
    source = columns("S.X int, a string, ok int, s", s=struct(10, x=STRING))
    refusals = refused(target, source, relax_not_null=False)
    assert [(refusal.columns, refusal.types) for refusal in refusals] == [
        (("a",), ("int", "string")),
        (("b",), ("int",)),
        (("c",), ("time",)),
        (("s.x",), ("int", "string")),
        (("S.X",), ()),
    ]


# The names of a model alone


@pytest.mark.parametrize("names", [["id"], ["a", "b", "a.b"], ["ß", "SS"]])
def test_usable_names_are_not_refused(names: list[str]) -> None:
    assert check_source_names(names, [names[0].swapcase()] if names[0].isascii() else []) == ()


def test_the_names_of_a_model_are_checked_without_a_table() -> None:
    refusals = check_source_names(["x", "X", "_Deleted", "y", "Y"], ["id", "Y"])
    assert [refusal.columns for refusal in refusals] == [("x", "X"), ("y", "Y"), ("_Deleted",), ("id",)]


def test_a_model_without_columns_is_told_so_and_nothing_else() -> None:
    (refusal,) = check_source_names([], ["id"])
    assert refusal.reason == "The model returns no columns."


# The values themselves


def test_values_of_the_plan_cannot_be_changed() -> None:
    for value in (
        EvolutionPlan(),
        Policy(),
        Refusal((), "", ""),
        AddColumn(("a",), INT),
        ProjectedColumn("a", None, Pad("int")),
    ):
        name = dataclasses.fields(value)[0].name
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(value, name, None)


@pytest.mark.parametrize(
    ("target", "source", "settings", "reason", "remedy"),
    [
        ("a int", "a bigint", {"type_widening": False}, "`on_schema_change` is 'fail'.", "If int holds all"),
        (
            "a int, s",
            "a int, s",
            {"nested_evolution": False},
            " The fields in it differ, and `on_schema_change` is 'fail'.",
            "Return it under a new name",
        ),
        (
            "a int not null",
            "a int",
            {"relax_not_null": False},
            "may hold a NULL in it.",
            "or set `on_schema_change: append_new_columns_preserve` to make it optional.",
        ),
        (
            "a int, b int not null",
            "a int",
            {"relax_not_null": False},
            "so it cannot be padded with NULL.",
            "or set `on_schema_change: append_new_columns_preserve` to make it optional.",
        ),
    ],
    ids=["widening", "nested", "null", "removed"],
)
def test_under_fail_a_refusal_names_what_the_user_has_set(
    target: str, source: str, settings: dict[str, bool], reason: str, remedy: str
) -> None:
    """And not the settings that `fail` turns off; if the user has turned one off, too, that is named."""
    in_table, in_batch = struct(10, x=IntegerType()), struct(10, x=IntegerType(), y=IntegerType())
    old = columns(target, **({"s": in_table} if ", s" in target else {}))
    new = columns(source, **({"s": in_batch} if ", s" in source else {}))
    (refusal,) = plan_evolution(old, new, Policy(**settings, frozen=frozenset(settings))).refusals
    assert refusal.reason.endswith(reason)
    assert remedy in refusal.remedy
    (refusal,) = plan_evolution(old, new, Policy(**settings)).refusals
    (name,) = settings
    assert name in str(refusal)
    assert "on_schema_change" not in str(refusal)
