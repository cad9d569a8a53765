"""The package's planner, held equal to the adapter's: the same changes, SQL, warnings and refusals."""

import re
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import assume, currently_in_test_context, event, given
from hypothesis import strategies as st
from pyiceberg.schema import Schema
from pyiceberg.types import (
    BinaryType,
    FixedType,
    IcebergType,
    IntegerType,
    ListType,
    MapType,
    NestedField,
    StringType,
    StructType,
    TimeType,
    UUIDType,
)

from dbt.adapters.sparkevolve.evolution import names
from dbt.adapters.sparkevolve.evolution.plan import EvolutionPlan, check_source_names, plan_evolution
from dbt.adapters.sparkevolve.evolution.policy import Condition, Past, Policy, TableFacts
from dbt.adapters.sparkevolve.evolution.types import fields_within, named_by_sql
from dbt.adapters.sparkevolve.load.batch_plan import renamed_in_texts
from dbt.adapters.sparkevolve.load.plan_report import plan_data, plan_table, removed_values
from dbt.adapters.sparkevolve.settings import IncrementalSettings, Strategy
from dbt.adapters.sparkevolve.sql.mentions import mentions
from tests.unit.helpers import array, columns, mapping, model_settings, relation, struct
from tests.unit.package_macros import PURE, as_macros_see, normal
from tests.unit.strategies import (
    MASKS,
    NAMES,
    any_pairs,
    loads,
    nested_loads,
    nested_pairs,
    recase,
    rule,
    tables,
)

# Rows that are replaced keep what they have in columns that the model does not return, or do not.
SETTINGS = (
    model_settings(),
    model_settings(removed_columns="keep"),
    model_settings(strategy=Strategy.MERGE),
)
INT = IntegerType()
SWITCHES = ("type_widening", "relax_not_null", "nested_evolution")


def seen_by_spark(schema: Schema) -> Schema:
    """Return a schema without what Spark does not show: uuid is string to it, and fixed is binary.

    That is the first row of the package's table of losses.
    """

    def seen(type_: IcebergType) -> IcebergType:
        if isinstance(type_, StructType):
            return StructType(*map(seen_field, type_.fields))
        if isinstance(type_, ListType):
            inner = seen(type_.element_type)
            return ListType(type_.element_id, inner, element_required=type_.element_required)
        if isinstance(type_, MapType):
            key, value = seen(type_.key_type), seen(type_.value_type)
            return MapType(type_.key_id, key, type_.value_id, value, value_required=type_.value_required)
        return {UUIDType: StringType(), FixedType: BinaryType()}.get(type(type_), type_)  # type: ignore[call-overload,no-any-return]

    def seen_field(f: NestedField) -> NestedField:
        return NestedField(f.field_id, f.name, seen(f.field_type), required=f.required, doc=f.doc)

    fields = map(seen_field, schema.fields)
    return Schema(*fields, identifier_field_ids=schema.identifier_field_ids)


def as_mapping(policy: Policy, table: Schema) -> dict[str, Any]:
    """Return a policy as the macros have it."""
    return {
        "add_columns": policy.add_columns,
        **{name: getattr(policy, name) for name in SWITCHES},
        "unique_key": list(policy.unique_key),
        "key_setting": policy.key_setting,
        "conditions": [
            {
                "text": condition.text,
                "mentions": [
                    {"path": [*m.path], "asked": m.asked, "or_null": [*map(list, m.or_null)]}
                    for m in condition.mentions
                ],
            }
            for condition in policy.conditions
        ],
        "renames": dict(policy.renames),
        "docs": None if policy.docs is None else dict(policy.docs),
        "columns_without_null": list(policy.columns_without_null),
        "frozen": list(policy.frozen),
        "identifiers": list(table.identifier_field_ids),
        "partition_names": dict(policy.facts.partition_names),
        "partition_sources": list(policy.facts.partition_sources),
        "replaces_all_rows": policy.replaces_all_rows,
        "overwrites_partitions": policy.overwrites_partitions,
    }


_SAME_TEXT = re.compile(
    r" is (.*) in the table, and the model returns (.*?)\.(?= (?:The|It|Return))", re.DOTALL
)


def said(refusal: str) -> str:
    """Return a refusal without the types that differ only in what may be NULL in them.

    Both have one text in Spark's words: the adapter shows Iceberg's own, and the package Spark's.
    """
    if "cast it to" in refusal:
        return refusal
    return _SAME_TEXT.sub(" is … in the table, and the model returns ….", refusal)


def by_adapter(plan: EvolutionPlan) -> dict[str, Any]:
    """Return all that a plan says and writes."""
    return {
        "changes": [str(change) for change in plan.changes],
        "columns": [
            (
                *(column.name, column.source, column.may_keep),
                *(normal(column.render("S", previous)) for previous in (None, "P")),
            )
            for column in plan.columns
        ],
        "unique_key": list(plan.unique_key),
        **{
            name: [names.path_text(path) for path in getattr(plan, name)]
            for name in ("removed", "padded_inside", "ignored")
        },
        "warnings": list(plan.warnings),
        "refusals": [said(str(refusal)) for refusal in plan.refusals],
        "removed_get": [removed_values(plan, settings) for settings in SETTINGS],
        "text": [text_by_adapter(plan, settings) for settings in SETTINGS],
    }


def text_by_adapter(plan: EvolutionPlan, settings: IncrementalSettings) -> str:
    """Return a plan as a person reads it, without what the adapter knows beside a refusal."""
    data = plan_data(relation("t"), replace(plan, beside=None), settings)
    return plan_table(
        {**data, "projections": [{**p, "expression": normal(p["expression"])} for p in data["projections"]]}
    )


def text_by_package(plan: dict[str, Any], settings: IncrementalSettings) -> str:
    """Return a plan of the macros as a person reads it."""
    data = PURE.plan_data(str(relation("t")), plan, as_macros_have(settings), plan["warnings"])
    return str(PURE.plan_text(data))


def as_macros_have(settings: IncrementalSettings) -> dict[str, str]:
    """Return what decides on the values of columns that a model does not return."""
    return {"strategy": str(settings.strategy), "removed_columns": settings.removed_columns}


def by_package(table: Schema, batch: Schema, policy: Policy) -> dict[str, Any]:
    """Return the same of the plan that the macros make."""
    plan = PURE.plan_evolution(
        as_macros_see(table.fields), as_macros_see(batch.fields), as_mapping(policy, table)
    )
    return {
        "changes": [change["text"] for change in plan["changes"]],
        "columns": [
            (
                *(column["name"], column["source"], PURE.may_keep(column["projection"])),
                *(PURE.render_column(column, "S", previous) for previous in (None, "P")),
            )
            for column in plan["columns"]
        ],
        "unique_key": plan["unique_key"],
        **{name: [path["text"] for path in plan[name]] for name in ("removed", "padded_inside", "ignored")},
        "warnings": plan["warnings"],
        "refusals": [said(refusal) for refusal in plan["refusals"]],
        "removed_get": [PURE.removed_values(plan, as_macros_have(settings)) for settings in SETTINGS],
        "text": [text_by_package(plan, settings) for settings in SETTINGS],
    }


def check(table: Schema, batch: Schema, policy: Policy) -> None:
    table = seen_by_spark(table)
    expected = by_adapter(plan_evolution(table, batch, policy))
    if currently_in_test_context():
        event("refused" if expected["refusals"] else "changed" if expected["changes"] else "loaded")
    assert by_package(table, batch, policy) == expected


def has_time(schema: Schema) -> bool:
    # Spark cannot even open a table that has one.
    return any(isinstance(f.field_type, TimeType) for _, f in fields_within(schema.as_struct()))


@st.composite
def policies(draw: st.DrawFn, table: Schema, batch: Schema) -> Policy:
    fields = [f for _, f in fields_within(table.as_struct())]
    ids = [f.field_id for f in fields]
    texts = [names.path_text(path) for path, _ in fields_within(table.as_struct())]
    plain = [".".join(path) for path, _ in fields_within(table.as_struct())]
    old = st.sampled_from([*texts, *plain, "a", "no.such", "a..b"]) | NAMES
    new_names = [f.name for _, f in fields_within(batch.as_struct())]
    new = st.sampled_from([*new_names, "`a``b`", "_pos", "x"]) | NAMES
    known = [f.name for f in (*table.fields, *batch.fields)]
    key = st.builds(recase, st.sampled_from([*known, "k"]), MASKS)
    switches = {name: draw(st.integers(0, 3)) > 0 for name in SWITCHES}
    docs = st.dictionaries(
        st.sampled_from(known or ["x"]).map(str.lower), st.text(max_size=4) | st.just("it's")
    )
    condition = st.sampled_from(
        [
            *(f"{text} {what}" for text in (*texts, "DBT_INTERNAL_DEST.`a`") for what in ("> 1", "IS NULL")),
            *(f"{text} IS NOT NULL OR `x_old` = 1" for text in texts),
        ]
    )
    return Policy(
        add_columns=draw(st.integers(0, 3)) > 0,
        conditions=tuple(Condition(text, mentions(text)) for text in draw(st.lists(condition, max_size=2))),
        **switches,
        unique_key=tuple(draw(st.lists(key, max_size=2))),
        key_setting=draw(st.sampled_from(("unique_key", "event_time"))),
        renames=draw(st.dictionaries(old, new, max_size=2)) if draw(st.booleans()) else {},
        docs=draw(st.none() | docs),
        columns_without_null=frozenset(
            draw(st.lists(st.sampled_from(known or ["x"]).map(str.lower), max_size=3))
        ),
        frozen=frozenset(name for name, is_on in switches.items() if not is_on and draw(st.booleans())),
        replaces_all_rows=draw(st.booleans()),
        overwrites_partitions=draw(st.booleans()),
        facts=TableFacts(
            # No metadata table has the schemas of before.
            past=Past(is_complete=False),
            partition_names=draw(
                st.dictionaries(
                    st.sampled_from([*plain, *known, "x"]).map(str.lower),
                    st.none() | st.sampled_from(ids or [1]),
                    max_size=2,
                )
            ),
            partition_sources=frozenset(draw(st.lists(st.sampled_from(ids or [1]), max_size=2))),
        ),
    )


@rule
@given(st.data(), nested_pairs() | nested_loads())
def test_nested_columns_are_planned_as_the_adapter_does(
    data: st.DataObject, pair: tuple[Schema, Schema]
) -> None:
    check(*pair, data.draw(policies(*pair)))


@rule
@given(st.data(), loads() | any_pairs())
def test_odd_names_and_types_are_planned_as_the_adapter_does(
    data: st.DataObject, pair: tuple[Schema, Schema]
) -> None:
    table, batch = pair
    assume(not has_time(table) and not has_time(batch))
    check(table, seen_by_spark(batch), data.draw(policies(*pair)))


@rule
@given(st.data(), nested_loads() | loads())
def test_a_batch_that_can_be_loaded_is_loaded_as_the_adapter_does(
    data: st.DataObject, pair: tuple[Schema, Schema]
) -> None:
    """Without anything that refuses, so that the expressions of nested columns are compared."""
    table, batch = pair
    docs = data.draw(st.none() | st.just({f.name.lower(): f"of {f.name}" for f in batch.fields}))
    check(table, batch, Policy(docs=docs))


_COLLECTIONS = ("key", "element", "value")


@st.composite
def retired(draw: st.DrawFn) -> tuple[Schema, Schema, Policy]:
    """Tables some columns of which are to get another name, which the model may return as something else."""
    table, batch = draw(nested_pairs())
    # Not what a list or a map has itself, which has no name to be changed.
    paths = [(f.name,) for f in table.fields]
    paths += [path for path, _ in fields_within(table.as_struct()) if path[-1] not in _COLLECTIONS]
    chosen = draw(st.lists(st.sampled_from(paths), max_size=3))
    last = st.sampled_from([path[-1] for path in paths] + ["x_old", "new`"])
    renames = {names.path_text(path): draw(last) for path in chosen}
    policy = draw(policies(table, batch))
    return table, batch, replace(policy, renames=renames)


@rule
@given(retired())
def test_a_column_is_retired_and_replaced_as_the_adapter_does(load: tuple[Schema, Schema, Policy]) -> None:
    check(*load)


@pytest.mark.parametrize("key", [(), ("x",)])
@pytest.mark.parametrize(
    "limit",
    [(), ("DBT_INTERNAL_DEST.X > 1",), ("y > 1", "x > 1 or x_old > 1"), ('y > 1 or "X" > 1',), ('y = "xy"',)],
)
@pytest.mark.parametrize("is_full", [False, True])
@pytest.mark.parametrize("overwrites", [False, True])
@pytest.mark.parametrize("adds", [False, True])
def test_another_type_takes_a_name_over(
    key: tuple[str, ...], limit: tuple[str, ...], is_full: bool, overwrites: bool, adds: bool
) -> None:
    facts = TableFacts(past=Past(is_complete=False), partition_sources=frozenset({1}))
    policy = Policy(
        renames={"x": "x_old"},
        unique_key=key,
        conditions=tuple(Condition(text, mentions(text)) for text in limit),
        replaces_all_rows=is_full,
        overwrites_partitions=overwrites,
        add_columns=adds,
        facts=facts,
    )
    check(columns("x int, y int"), columns("x string, y int"), policy)
    # In the next run the name is the new one's, and of yet another type the setting is used up.
    check(columns("x_old int, y int, x string"), columns("x string, y int"), policy)
    check(columns("x_old int, y int, x string"), columns("x bigint, y int"), policy)


@pytest.mark.parametrize(
    "limit",
    [
        *("s.v > 1", "l.v > 1", "s is not null", "s > 1", "s.v_old > 1 or s.v > 1", "s.v is null", "l.w > 1"),
        *("not (s.v is null)", "l.v is null", "s > 1 or s.v is null"),
    ],
)
@pytest.mark.parametrize("renames", [{"s.v": "v_old"}, {"l.v": "v_old"}, {"s.v": "v_old", "l.v": "v_old"}])
@pytest.mark.parametrize("key", [(), ("S",), ("l",)])
def test_another_type_takes_the_name_of_a_field_over(
    limit: str, renames: dict[str, str], key: tuple[str, ...]
) -> None:
    table = columns("s, l", s=struct(10, v=StringType()), l=array(20, struct(21, v=StringType(), w=INT)))
    in_s, in_l = (INT if path in renames else StringType() for path in ("s.v", "l.v"))
    batch = columns("s, l", s=struct(10, v=in_s), l=array(20, struct(21, v=in_l, w=INT)))
    facts = TableFacts(past=Past(is_complete=False))
    conditions = (Condition(limit, mentions(limit)),)
    for used in (renames, {}):
        check(table, batch, Policy(renames=used, unique_key=key, conditions=conditions, facts=facts))


@pytest.mark.parametrize("batch", ["a int, b int", "a string, b string", "c int"])
@pytest.mark.parametrize("circle", [{"a": "b", "b": "a"}, {"a": "b", "b": "C", "c": "a"}])
def test_columns_do_not_exchange_their_names(circle: dict[str, str], batch: str) -> None:
    """It would count as made, and new rows have the values of one column in the other."""
    table, loaded = columns("a int, b int, c int"), columns(batch)
    policy = Policy(renames=circle, facts=TableFacts(past=Past(is_complete=False)))
    check(table, loaded, policy)
    plan = PURE.plan_evolution(
        as_macros_see(table.fields), as_macros_see(loaded.fields), as_mapping(policy, table)
    )
    (refusal,) = plan["refusals"]
    assert ", and names cannot change places in one run. It takes two." in refusal


@pytest.mark.parametrize("new", ["z", "Y"])
def test_a_field_of_a_struct_whose_name_another_one_has_by_now(new: str) -> None:
    """A path begins with what the struct was called before."""
    policy = Policy(renames={"d": "b", "b": "e", "b.y": new}, facts=TableFacts(past=Past(is_complete=False)))
    left = array(20, struct(21, x=INT, y=StringType()))
    before = columns("d, b", d=array(10, struct(11, x=INT, y=INT)), b=left)
    inner: list[dict[str, Any]] = [{"y": INT}, {"y": INT, "z": INT}, {"z": INT}]
    here = [array(10, struct(11, x=INT, **fields)) for fields in inner]
    after = [columns("b, e", b=b, e=array(20, struct(21, x=INT, **{new: StringType()}))) for b in here]
    for batch in after:
        for table in (before, *after):
            check(table, batch, policy)


def identified(schema: Schema, *identifiers: int) -> Schema:
    return Schema(*schema.fields, identifier_field_ids=list(identifiers))


REQUIRED = Schema(
    NestedField(1, "id", StringType(), required=True),
    NestedField(
        2,
        "s",
        StructType(NestedField(3, "key", StringType(), required=True), NestedField(4, "v", StringType())),
        required=True,
    ),
)


@pytest.mark.parametrize("identifiers", [(), (1,), (3,), (1, 3)])
@pytest.mark.parametrize("batch", ["v int", "id string, v int", "ID string, S", "s"])
@pytest.mark.parametrize("relax", [True, False])
def test_required_columns_are_planned_as_the_adapter_does(
    identifiers: tuple[int, ...], batch: str, relax: bool
) -> None:
    inner = struct(10, v=StringType())
    wanted = columns(batch, **{name: inner for name in ("s", "S") if name in batch.split(", ")})
    for without_null in (frozenset[str](), frozenset({"id", "s"})):
        policy = Policy(relax_not_null=relax, columns_without_null=without_null)
        check(identified(REQUIRED, *identifiers), wanted, policy)


def test_elements_that_are_required_become_optional() -> None:
    table = columns(
        "l, m", l=array(10, StringType(), required=True), m=mapping(20, StringType(), StringType())
    )
    batch = columns("l, m", l=array(10, StringType()), m=mapping(20, StringType(), StringType()))
    check(table, batch, Policy())


@given(st.lists(NAMES | st.sampled_from(("_pos", "a", "A")), max_size=4), st.lists(NAMES, max_size=2))
def test_names_of_a_first_run_are_refused_as_the_adapter_does(listed: list[str], keys: list[str]) -> None:
    for key_setting in ("unique_key", "event_time"):
        expected = [str(refusal) for refusal in check_source_names(listed, keys, key_setting)]
        assert PURE.check_source_names(listed, keys, key_setting) == expected


def test_an_evolved_table_needs_no_further_change() -> None:
    table = columns("a int, b int")
    batch = columns("a bigint, c string")
    plan = PURE.plan_evolution(
        as_macros_see(table.fields), as_macros_see(batch.fields), as_mapping(Policy(), table)
    )
    assert [change["text"] for change in plan["changes"]] == [
        "widen `a` from int to bigint",
        "add column `c` string",
    ]
    evolved = columns("a bigint, b int, c string")
    assert by_package(evolved, batch, Policy())["changes"] == []


def test_a_condition_is_told_of_if_it_needs_what_is_new_in_the_table() -> None:
    """A column may be called as what is in a list is, and a condition be written for a retired one, too."""
    table = columns("id int, day string, s", s=struct(10, a=IntegerType()))
    batch = columns(
        "id int, day int, s, value int, key int", s=struct(10, a=IntegerType(), value=IntegerType())
    )
    policy = as_mapping(Policy(renames={"day": "day_old"}), table)
    plan = PURE.plan_evolution(as_macros_see(table.fields), as_macros_see(batch.fields), policy)
    assert plan["refusals"] == []

    def told(*conditions: str) -> list[str]:
        settings = {"predicates": conditions, "replacing": ["id"], "strategy": "merge", "key_setting": "key"}
        found = PURE.plan_warnings(plan, settings, as_macros_see(table.fields))
        return [text.partition(" (")[0] for text in found if "predicates" in text]

    assert told("id > 1 and s.a > 1", "DBT_INTERNAL_DEST.day > 1 or day_old > '1'") == []
    assert told("day > 1", "s.value > 1", "DBT_INTERNAL_DEST.value > 1 and key > 1") == [
        "`incremental_predicates` name `day`",
        "`incremental_predicates` name `s`.`value`",
        "`incremental_predicates` name `value`",
        "`incremental_predicates` name `key`",
    ]


@pytest.mark.parametrize(
    ("text", "renames", "named"),
    [
        ("DBT_INTERNAL_DEST.Day > 1", {"day": "moved"}, "`day`"),
        ("day > 1", {"day": "moved"}, "`day`"),
        ("moved > 1 and DBT_INTERNAL_SOURCE.day > 1 and day(now()) > 'day'", {"day": "moved"}, ""),
        # A bare name in a query may be another table's.
        ("id in (select id from o where day > 1)", {"day": "moved"}, ""),
        ("id in (select id from o where day > 1) and dbt_internal_dest.day > 1", {"day": "moved"}, "`day`"),
        ("extract(year from day) > 1", {"day": "moved"}, "`day`"),
        # A bare name may be a word of SQL, or a type.
        ("id is distinct from other", {"other": "from"}, "`other`"),
        ("size(cast(l as array<struct<v:day>>)) > 1", {"day": "moved"}, ""),
        ("size(cast(l as array<struct<v:day>>)) > DBT_INTERNAL_DEST.day", {"day": "moved"}, "`day`"),
        ("s.v > 1", {"s.v": "w"}, "`s`.`v`"),
        ("s.v > 1", {"s": "t"}, "`s`"),
        ("size(l.v) > 1", {"l.v": "w"}, "`l`.`element`.`v`"),
        # A field of a struct may be called as what is in a list or a map is.
        ("s.value.v > 1", {"s.value.v": "w"}, "`s`.`value`.`v`"),
        ("s.v > 1", {"s.value.v": "w"}, ""),
        # Spark takes no notice of case, and another field may get the name.
        ("day > 1", {"day": "DAY"}, ""),
        ("day > 1", {"day": "moved", "other": "day"}, ""),
    ],
)
def test_a_text_with_the_old_name_of_what_is_renamed_is_refused(
    text: str, renames: dict[str, str], named: str
) -> None:
    """Spark reads it once the name is another: the schema would be changed, and the run fail."""

    def schema(**new: str) -> Schema:
        name = {
            n: new.get(n, n[-1] if "." in n else n) for n in ("day", "other", "s", "s.v", "s.value.v", "l.v")
        }
        value = struct(15, **{name["s.value.v"]: INT})
        return columns(
            f"id int, {name['day']} int, {name['other']} int, {name['s']}, l",
            **{name["s"]: struct(10, **{name["s.v"]: INT, "value": value})},
            l=array(20, struct(21, **{name["l.v"]: INT})),
        )

    table, batch = schema(), schema(**renames)
    policy = Policy(renames=renames)
    plan = plan_evolution(table, batch, policy)
    assert not plan.refusals
    assert plan.changes
    by_package = PURE.plan_evolution(
        as_macros_see(table.fields), as_macros_see(batch.fields), as_mapping(policy, table)
    )
    for where in ("predicates", "audits"):
        settings = model_settings(unique_key="id", **{where: text})
        found = [str(refusal) for refusal in renamed_in_texts(plan, settings, table)]
        setting = "incremental_predicates" if where == "predicates" else where
        ((_, new),) = list(renames.items())[:1]
        assert found == (
            [
                f"`{setting}` name {named} ({text}), which `column_renames` renames to `{new}`: there would "
                f"be no such column any more. Use the new name in `{setting}`."
            ]
            if named
            else []
        )
        has = {"predicates": [], "audits": [], "replacing": ["id"], "strategy": "merge"} | {where: [text]}
        assert PURE.renamed_in_texts(by_package, has, as_macros_see(table.fields)) == found
    # These find no rows.
    for settings in (model_settings(predicates=text), model_settings(unique_key="id", predicates=text)):
        settings = replace(settings, strategy=Strategy.FULL_REFRESH if settings.unique_key else "append")
        assert list(renamed_in_texts(plan, settings, table)) == []


_CALLED_AS_IN_LISTS = columns(
    "key, m",
    key=struct(10, value=struct(20, element=struct(30, key=INT))),
    m=mapping(40, struct(50, key=INT), struct(60, value=array(70, struct(80, element=INT)))),
)


@rule
@given(st.one_of(st.just(_CALLED_AS_IN_LISTS), tables()), st.sampled_from(["New", "value", "element"]))
def test_an_expression_names_levels_of_structs_alone(table: Schema, new: str) -> None:
    fields = as_macros_see(table.fields)
    paths = [path for path, _ in fields_within(table.as_struct())]
    for path in [*paths, *((*path, new) for path in paths)]:
        found = named_by_sql(table.as_struct(), path)
        assert PURE.named_by_sql(fields, list(path)) == list(found)
    if table is _CALLED_AS_IN_LISTS:
        inside = named_by_sql(table.as_struct(), ("key", "value", "element", "Key"))
        assert inside == ("key", "value", "element", "key")
        inside = named_by_sql(table.as_struct(), ("m", "value", "value", "element", "element"))
        assert inside == ("m", "value", "element")
        assert named_by_sql(table.as_struct(), ("m", "key", "key")) == ("m", "key")


def test_a_condition_may_be_as_long_as_a_list_of_all_keys() -> None:
    """Jinja's `range` has no more than a hundred thousand."""
    found = PURE.mentions(f"DBT_INTERNAL_DEST.id in ({', '.join(map(str, range(50_100)))})")
    assert [(mention["path"], mention["or_null"]) for mention in found] == [(["id"], [])]
