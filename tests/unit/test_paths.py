"""Dotted paths: which of them a new or renamed field may have, told by what PyIceberg makes of the schema."""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from itertools import count

import pytest
from hypothesis import HealthCheck, assume, event, example, given, settings
from hypothesis import strategies as st
from pyiceberg.catalog import Catalog
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema, _IndexByName, visit
from pyiceberg.table import Table
from pyiceberg.transforms import DayTransform, IdentityTransform
from pyiceberg.types import IcebergType, IntegerType, ListType, MapType, NestedField, StringType, StructType

from dbt.adapters.sparkevolve.evolution.changes import AddColumn, AddField, Change, RenameField
from dbt.adapters.sparkevolve.evolution.names import path_text
from dbt.adapters.sparkevolve.evolution.plan import EvolutionPlan, plan_evolution
from dbt.adapters.sparkevolve.evolution.policy import Policy, TableFacts
from dbt.adapters.sparkevolve.evolution.renames import resolve_renames
from dbt.adapters.sparkevolve.iceberg.facts import table_facts
from tests.unit.helpers import array, columns, mapping, struct
from tests.unit.strategies import distinct, rebuilt

INT, STRING = IntegerType(), StringType()


def plan(target: Schema, source: Schema, **policy: object) -> EvolutionPlan:
    return plan_evolution(target, source, Policy(**policy))  # type: ignore[arg-type]


# Short paths leave out an element or a value that is a struct, and nothing else

IN_TABLE: dict[str, IcebergType] = {
    "l": array(10, struct(11, x=INT)),
    "ll": array(20, array(21, struct(22, x=INT))),
    "m": mapping(30, struct(32, k=INT), struct(33, x=INT)),
    "ml": mapping(40, STRING, array(42, struct(43, x=INT))),
    "s": struct(50, element=struct(51, x=INT), value=INT),
    "li": array(60, INT),
}


# Of those that are short.
FULL_PATHS = {
    "l.x": "l.element.x",
    "ll.element.x": "ll.element.element.x",
    "m.x": "m.value.x",
    "ml.value.x": "ml.value.element.x",
}


@pytest.mark.parametrize(
    "name",
    [
        *("l.element", "l.element.x", "l.x", "L.X", "ll.element", "ll.element.element", "ll.element.x"),
        *("ll.element.element.x", "m.key", "m.key.k", "m.value", "m.value.x", "m.x", "ml.value"),
        *("ml.value.element", "ml.value.element.x", "ml.value.x", "s.element", "s.element.x", "s.value"),
        *("li.element", "LI.Element"),
    ],
)
def test_a_path_that_iceberg_knows_is_taken(name: str) -> None:
    target = columns(", ".join(IN_TABLE), **IN_TABLE)
    (refusal,) = plan(target, columns(f"{name} int")).refusals
    assert refusal.columns == (name,)
    in_the_way = FULL_PATHS.get(name.lower(), name.lower())
    assert refusal.in_the_way == in_the_way
    assert refusal.reason == (
        f"The model returns the new column `{name}`, but the table has the field "
        f"{path_text(in_the_way.split('.'))}, and Iceberg cannot hold both."
    )


@pytest.mark.parametrize(
    "name", ["element", "value", "s.x", "ll.x", "ml.x", "m.k", "ml.element.x", "li", "l.element.x.y", "x"]
)
def test_a_path_that_iceberg_does_not_know_is_free(name: str) -> None:
    target = columns(", ".join(n for n in IN_TABLE if n != "li"), **IN_TABLE)
    assert plan(target, columns(f"{name} int")).changes == (AddColumn((name,), INT),)


@pytest.mark.parametrize("name", ["element", "value"])
def test_a_column_called_as_what_short_paths_leave_out_is_a_column(name: str) -> None:
    target = columns(name, **{name: struct(10, x=INT)})
    assert plan(target, columns(f"{name}, x int", **{name: struct(10, x=INT)})).changes == (
        AddColumn(("x",), INT),
    )
    (refusal,) = plan(target, columns(f"{name}.x int")).refusals
    assert refusal.columns == (f"{name}.x",)


def test_a_short_path_may_be_hidden_by_a_column_of_that_name() -> None:
    """Iceberg then takes the path for the column's, as it did before."""
    batch = columns("l.x int, l", l=array(10, struct(11, x=INT)))
    assert plan(columns("l.x int"), batch).added == ("l",)
    # And both can come at once.
    assert plan(columns("id int"), batch).added == ("l.x", "l")
    assert plan(columns("id int"), Schema(*reversed(batch.fields))).added == ("l", "l.x")


def test_a_short_path_in_another_case_is_not_hidden() -> None:
    """Spark looks up in any case, and Iceberg's index for that has one entry a path."""
    (refusal,) = plan(columns("L.X int"), columns("l", l=array(10, struct(11, x=INT)))).refusals
    assert refusal.columns == ("l",)


def test_a_new_nested_field_with_the_path_of_a_column_is_refused() -> None:
    target = columns("s, l, s.y int, l.element.z int", s=struct(10, x=INT), l=array(20, struct(21, x=INT)))
    batch = columns("s, l", s=struct(10, x=INT, Y=INT), l=array(20, struct(21, x=INT, z=INT)))
    assert [refusal.columns for refusal in plan(target, batch).refusals] == [("s.Y",), ("l.element.z",)]


# Renames

RENAMED = columns("a int, s, l, s.y int, t.element int", s=struct(10, x=INT), l=array(20, struct(21, x=INT)))


@pytest.mark.parametrize(
    ("old", "new", "columns_of_it"),
    [
        *(("a", "s.x", ("a", "s.x")), ("a", "S.X", ("a", "S.X")), ("a", "l.element", ("a", "l.element"))),
        *(("a", "l.x", ("a", "l.x")), ("s.x", "Y", ("s.x", "Y")), ("l", "T", ("l", "T"))),
    ],
)
def test_a_rename_to_a_path_that_is_taken_is_refused(
    old: str, new: str, columns_of_it: tuple[str, str]
) -> None:
    (refusal,) = plan(RENAMED, columns("s, extra int", s=struct(10)), renames={old: new}).refusals
    path = ".".join(f"`{name}`" for name in old.split("."))
    assert refusal.columns == columns_of_it
    assert refusal.types == ()
    assert refusal.in_the_way == {"Y": "s.y", "T": "t.element", "l.x": "l.element.x"}.get(new, new.lower())
    assert refusal.reason.startswith(f"`column_renames` wants {path} to become `{new}`, but ")
    assert refusal.reason.replace("`", "").endswith(
        f"but the table has the field {refusal.in_the_way}, and Iceberg cannot hold both."
    )
    assert refusal.remedy == "Give it another new name, in the configuration and in the model."


def test_a_rename_to_the_old_path_of_a_renamed_field_is_refused() -> None:
    """The next run would take the new column for the one to be renamed."""
    renames = {"a": "s.x", "s.x": "z"}
    batch = columns("s, s.x int", s=struct(10, z=INT))
    assert [r.columns for r in plan(RENAMED, batch, renames=renames).refusals] == [("a", "s.x")]


def test_a_rename_to_another_case_or_to_a_free_path_is_made() -> None:
    renames = {"a": "s.z", "s.x": "X", "l": "L", "s": "T"}
    batch = columns("T, L, s.z int", T=struct(10, X=INT), L=array(20, struct(21, x=INT)))
    assert plan(RENAMED, batch, renames=renames).changes == (
        RenameField(("a",), "s.z"),
        RenameField(("s",), "T"),
        RenameField(("s", "x"), "X"),
        RenameField(("l",), "L"),
    )


def test_a_field_that_is_added_in_a_renamed_struct_is_looked_for_under_both_names() -> None:
    target = columns("s, t.y int, s.z int", s=struct(10, x=INT))
    for name in ("y", "z"):
        batch = columns("t", t=struct(10, x=INT, **{name: INT}))
        assert [r.columns for r in plan(target, batch, renames={"s": "t"}).refusals] == [(f"s.{name}",)]
    batch = columns("t", t=struct(10, x=INT, w=INT))
    assert plan(target, batch, renames={"s": "t"}).changes == (
        RenameField(("s",), "t"),
        AddField(("s", "w"), INT),
    )


# Names of partition fields


def partitioned(names: dict[str, int | None]) -> TableFacts:
    return TableFacts(partition_names=names)


def test_a_rename_to_the_name_of_a_partition_field_is_refused() -> None:
    facts = partitioned({"ts_day": None})
    target, batch = columns("a int, ts date"), columns("TS_Day int, ts date")
    (refusal,) = plan(target, batch, facts=facts, renames={"a": "TS_Day"}).refusals
    assert refusal.columns == ("a", "TS_Day")
    assert refusal.reason == (
        "`column_renames` wants `a` to become `TS_Day`, but a partition spec of the table has, or once had, "
        "the field `ts_day`, and Iceberg cannot hold both."
    )
    assert refusal.remedy == "Give it another new name, in the configuration and in the model."


def test_a_column_may_be_renamed_to_the_partition_field_that_repeats_it() -> None:
    facts = partitioned({"day": 1})
    target = columns("Day2 date, b date")
    assert plan(target, columns("day date"), facts=facts, renames={"day2": "day"}).refusals == ()
    (refusal,) = plan(target, columns("day date"), facts=facts, renames={"b": "day"}).refusals
    assert refusal.columns == ("b", "day")
    # A new column is not the one that the field repeats, whatever its id in the batch.
    (refusal,) = plan(target, columns("Day date"), facts=facts).refusals
    assert refusal.columns == ("Day",)
    assert refusal.reason == (
        "The model returns the new column `Day`, but a partition spec of the table has, or once had, the "
        "field `day`, and Iceberg cannot hold both."
    )
    assert refusal.remedy == "Give the column another name in the model."


def test_a_struct_cannot_have_the_name_of_the_partition_field_that_repeats_a_field_in_it() -> None:
    target, batch = columns("s", s=struct(10, x=INT)), columns("day", day=struct(10, x=INT))
    inner = target.find_field("s.x").field_id
    (refusal,) = plan(target, batch, facts=partitioned({"day": inner}), renames={"s": "day"}).refusals
    assert refusal.columns == ("s", "day")
    assert "but a partition spec of the table has, or once had, the field `day`, and" in refusal.reason


def test_the_partition_field_of_a_nested_field_keeps_its_name_from_nested_fields() -> None:
    facts = partitioned({"s.ts_day": None})
    target = columns("s", s=struct(10, ts=INT, x=INT))
    (refusal,) = plan(target, columns("s", s=struct(10, ts_day=INT)), facts=facts).refusals
    assert refusal.columns == ("s.ts_day",)
    assert refusal.reason.startswith("The model returns the new column `s`.`ts_day`, but a partition spec")
    batch = columns("s", s=struct(10, ts_day=INT))
    (refusal,) = plan(target, batch, facts=facts, renames={"s.x": "ts_day"}).refusals
    assert refusal.columns == ("s.x", "ts_day")
    assert refusal.reason.startswith(
        "`column_renames` wants `s`.`x` to become `ts_day`, but a partition spec"
    )


def test_iceberg_agrees_about_the_names_of_partition_fields(memory: Catalog) -> None:
    day = PartitionField(source_id=2, field_id=1000, transform=DayTransform(), name="ts_day")
    same = PartitionField(source_id=1, field_id=1001, transform=IdentityTransform(), name="a")
    schema = columns("a int, ts timestamp, b int")
    name = f"db.t{next(_numbers)}"
    table = memory.create_table(name, schema, partition_spec=PartitionSpec(same, day))
    facts = table_facts(table)
    assert facts.partition_names == {"a": 1, "ts_day": None}
    batch = columns("a int, ts_day int")
    for renames in ({}, {"b": "ts_day"}):
        assert len(plan(table.schema(), batch, facts=facts, renames=renames).refusals) == 1
    for wrong in (AddColumn(("ts_day",), INT), RenameField(("b",), "ts_day")):
        with pytest.raises(ValueError, match="partition with a name that exists in schema: ts_day"):
            stage(table, (wrong,))
    moved = plan(table.schema(), columns("a2 int"), facts=facts, renames={"a": "a2"})
    now = stage(table, moved.changes)
    back = plan(now, columns("a int"), facts=table_facts(table), renames={"a2": "a"})
    assert [f.name for f in stage(table, back.changes).fields] == ["a", "ts", "b"]


# What PyIceberg makes of it


class _Entries(_IndexByName):
    """PyIceberg's own index, with all that it would put in: path, whether it is a short one, field id."""

    def __init__(self) -> None:
        super().__init__()
        self.entries: list[tuple[str, bool, int]] = []

    def _add_field(self, name: str, field_id: int) -> None:
        full, short = (".".join([*parts, name]) for parts in (self._field_names, self._short_field_names))
        self.entries.append((full, False, field_id))
        if short != full:
            self.entries.append((short, True, field_id))


def entries(schema: Schema) -> list[tuple[str, bool, int]]:
    index = _Entries()
    visit(schema, index)
    return index.entries


def is_sound(before: Schema, fields: Iterable[NestedField], own: frozenset[int] = frozenset()) -> bool:
    """Tell whether Iceberg and Spark find each of the fields, and readers what they found ``before``.

    Paths of the fields ``own``, which a rename has touched, may change.
    """
    try:
        after = Schema(*fields)
    except ValueError:
        return False
    assert all(after.find_field(text).field_id == owner for text, short, owner in entries(after) if not short)
    led_to: dict[str, set[int]] = defaultdict(set)
    for text, owner in after._name_to_id.items():
        led_to[text.lower()].add(owner)
    here, there = _holders(before), _holders(after)
    kept = all(
        there[text] <= here[text] for text, short, owner in entries(before) if short and owner not in own
    )
    return kept and all(len(owners) == 1 for owners in led_to.values())


def _holders(schema: Schema) -> dict[str, set[int]]:
    held: dict[str, set[int]] = defaultdict(set)
    for text, _, owner in entries(schema):
        held[text].add(owner)
    return held


def stage(table: Table, changes: tuple[Change, ...]) -> Schema:
    """Make the changes in the real table."""
    with table.update_schema() as update:
        for change in changes:
            if isinstance(change, AddColumn | AddField):
                update.add_column(change.path, change.type)
            else:
                assert isinstance(change, RenameField)
                update.rename_column(change.path, change.new_name)
    return table.schema()


_NAMES = st.sampled_from(
    (
        "a",
        "b",
        "A",
        "a.b",
        "a.B",
        "element",
        "value",
        "key",
        "a.element",
        "a.value",
        "a.value.b",
        "b.a",
        "element.b",
    )
)


@st.composite
def _types(draw: st.DrawFn, depth: int) -> IcebergType:
    kind = draw(st.sampled_from(("struct", "list", "map", "int"))) if depth else "int"
    if kind == "int":
        return INT
    if kind == "struct":
        names = distinct(draw(st.lists(_NAMES, min_size=1, max_size=2)))
        return StructType(*(NestedField(1, n, draw(_types(depth - 1)), required=False) for n in names))
    inner = draw(_types(depth - 1))
    return array(1, inner) if kind == "list" else mapping(1, STRING, inner)


def _numbered(columns_: list[tuple[str, IcebergType]]) -> Schema:
    ids = count(1)
    fields = [NestedField(next(ids), n, rebuilt(t, ids), required=False) for n, t in columns_]
    # What Iceberg cannot index can neither be a table nor be staged.
    assume(fields and is_sound(Schema(), fields))
    return Schema(*fields)


def _columns(
    draw: st.DrawFn, names: st.SearchStrategy[str], taken: list[str]
) -> list[tuple[str, IcebergType]]:
    listed = distinct([*taken, *draw(st.lists(names, max_size=3))])[len(taken) :]
    return [(name, draw(_types(3))) for name in listed]


def _grown(draw: st.DrawFn, type_: IcebergType) -> IcebergType:
    """Return the type with some more fields in it."""
    if isinstance(type_, StructType):
        fields = [NestedField(1, f.name, _grown(draw, f.field_type), required=False) for f in type_.fields]
        names = [f.name for f in fields]
        more = distinct([*names, *draw(st.lists(_NAMES, max_size=1))])[len(names) :]
        return StructType(*fields, *(NestedField(1, n, draw(_types(1)), required=False) for n in more))
    if isinstance(type_, ListType):
        return array(1, _grown(draw, type_.element_type))
    if isinstance(type_, MapType):
        return mapping(1, type_.key_type, _grown(draw, type_.value_type))
    return type_


@st.composite
def _loads(draw: st.DrawFn) -> tuple[Schema, Schema]:
    old = _columns(draw, _NAMES, [])
    table = _numbered(old)
    # Names that are paths, and halves of paths, in any case.
    paths = [text for text, _, _ in entries(table)]
    halves = [text[: -len(last) - 1] for text in paths if "." in text for last in [text.split(".")[-1]]]
    likely = st.sampled_from(paths + halves)
    names = st.one_of(_NAMES, likely, likely.map(str.swapcase))
    # A batch without the column, since Spark could stage none with both.
    grown = [(name, _grown(draw, t)) for name, t in old if draw(st.booleans())]
    return table, _numbered([*grown, *_columns(draw, names, [name for name, _ in old])])


@pytest.fixture(scope="module")
def memory(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Catalog]:
    """A catalog in memory."""
    folder = tmp_path_factory.mktemp("paths")
    catalog = SqlCatalog("memory", uri="sqlite:///:memory:", warehouse=f"file://{folder}")
    catalog.create_namespace("db")
    yield catalog
    catalog.close()


_numbers = count()


def table_of(catalog: Catalog, schema: Schema) -> Table:
    return catalog.create_table(("db", f"t{next(_numbers)}"), schema)


_rule = settings(
    max_examples=200,
    deadline=None,
    suppress_health_check=[
        HealthCheck.too_slow,
        HealthCheck.filter_too_much,
        HealthCheck.function_scoped_fixture,
    ],
)


@_rule
@given(load=_loads())
def test_additions_are_refused_just_if_iceberg_could_not_tell_the_fields_apart(
    memory: Catalog, load: tuple[Schema, Schema]
) -> None:
    schema, batch = load
    table = table_of(memory, schema)
    before = table.schema()
    decided = plan(before, batch)
    if not decided.refusals:
        event("accepted")
        assert is_sound(before, stage(table, decided.changes).fields)
        return
    event("refused")
    # What is refused is refused for its path, and really cannot be had.
    assert all("and Iceberg cannot hold both." in refusal.reason for refusal in decided.refusals)
    assert not is_sound(before, _union(before, batch))


def _rewritten(
    fields: Iterable[NestedField], field_id: int, new: NestedField | str
) -> tuple[NestedField, ...]:
    """Return the fields with one of them, at any depth, replaced by another or called otherwise."""

    def inside(type_: IcebergType) -> IcebergType:
        if isinstance(type_, StructType):
            return StructType(*_rewritten(type_.fields, field_id, new))
        if isinstance(type_, ListType):
            return ListType(type_.element_id, inside(type_.element_type), element_required=False)
        if isinstance(type_, MapType):
            inner = inside(type_.value_type)
            return MapType(type_.key_id, type_.key_type, type_.value_id, inner, value_required=False)
        return type_

    return tuple(
        NestedField(f.field_id, f.name, inside(f.field_type), required=False)
        if f.field_id != field_id
        else NestedField(f.field_id, new, f.field_type, required=False)
        if isinstance(new, str)
        else new
        for f in fields
    )


@st.composite
def _renames(draw: st.DrawFn) -> tuple[Schema, str, str]:
    table = _numbered(_columns(draw, _NAMES, []))
    paths = [text for text, is_short, _ in entries(table) if not is_short]
    return table, draw(st.sampled_from(paths)), draw(_NAMES | st.sampled_from(paths).map(str.swapcase))


_INNER = StructType(NestedField(4, "a", INT, required=False))
_OUTER = StructType(NestedField(3, "element", _INNER, required=False))
_LIST = StructType(NestedField(3, "element", array(4, INT), required=False))
# Called ELEMENT.ELEMENT.ELEMENT.ELEMENT, the inner list and its elements have paths that differ just in case.
_LISTS = Schema(NestedField(1, "element", array(2, _LIST), required=False))
# The short path of the first field in it is the full path of the second one, before a rename and after it.
_PAIR = StructType(
    NestedField(3, "element.b", INT, required=False),
    NestedField(4, "b", StructType(NestedField(5, "a", INT, required=False)), required=False),
)
_PAIRS = Schema(NestedField(1, "a.element", ListType(2, _PAIR, element_required=False), required=False))
_ELEMENTS = Schema(NestedField(1, "a", ListType(2, _OUTER, element_required=False), required=False))


@_rule
@given(wanted=_renames())
@example(wanted=(_ELEMENTS, "a.element.element", "a"))
@example(wanted=(_PAIRS, "a.element", "b"))
@example(wanted=(_LISTS, "element.element.element", "ELEMENT.ELEMENT.ELEMENT.ELEMENT"))
def test_a_rename_is_refused_just_if_iceberg_could_not_tell_the_fields_apart(
    memory: Catalog, wanted: tuple[Schema, str, str]
) -> None:
    schema, old, new = wanted
    found, problems = resolve_renames(schema, Schema(), {old: new})
    assume(found and not problems)
    table = table_of(memory, schema)
    before = table.schema()
    ((field_id, _),) = resolve_renames(before, Schema(), {old: new})[0].items()
    other = NestedField(999, "only this", INT, required=False)
    decided = plan(before, Schema(*_rewritten(before.fields, field_id, other)), renames={old: new})
    if not decided.refusals:
        event("accepted")
        own = frozenset(owner for _, _, owner in entries(Schema(before.find_field(field_id))))
        assert is_sound(before, stage(table, decided.changes).fields, own)
        return
    event("refused")
    (refusal,) = decided.refusals
    assert ", but the table has the field `" in refusal.reason
    assert refusal.reason.endswith("`, and Iceberg cannot hold both.")
    renamed = _rewritten(before.fields, field_id, new)
    # What the field's own old paths stand in the way of is refused, too: PyIceberg looks changes up by them.
    assert not is_sound(before, renamed) or _changes_hands(before, Schema(*renamed))


def _changes_hands(before: Schema, after: Schema) -> bool:
    """Tell whether a path that led to one field leads to another one now."""
    here = {(text.lower(), owner) for text, _, owner in entries(before)}
    paths = {text for text, _ in here}
    return any(
        text.lower() in paths and (text.lower(), owner) not in here for text, _, owner in entries(after)
    )


def _union(old: Schema, new: Schema) -> tuple[NestedField, ...]:
    """Return the old fields with their ids, and in them and after them the new ones with other ids."""
    ids = count(1000)

    def merged(one: IcebergType, other: IcebergType) -> IcebergType:
        if isinstance(one, StructType) and isinstance(other, StructType):
            there = {f.name: f for f in (*one.fields, *other.fields)}
            kept = [
                NestedField(
                    f.field_id, f.name, merged(f.field_type, there[f.name].field_type), required=False
                )
                for f in one.fields
            ]
            names = {f.name for f in kept}
            added = [
                NestedField(next(ids), f.name, rebuilt(f.field_type, ids), required=False)
                for f in other.fields
                if f.name not in names
            ]
            return StructType(*kept, *added)
        if isinstance(one, ListType) and isinstance(other, ListType):
            return ListType(
                one.element_id, merged(one.element_type, other.element_type), element_required=False
            )
        if isinstance(one, MapType) and isinstance(other, MapType):
            inner = merged(one.value_type, other.value_type)
            return MapType(one.key_id, one.key_type, one.value_id, inner, value_required=False)
        return one

    struct_type = merged(old.as_struct(), new.as_struct())
    assert isinstance(struct_type, StructType)
    return struct_type.fields
