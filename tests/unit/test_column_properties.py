"""Properties that name columns, and what a change of the schema makes of them."""

import json
from typing import Any

import pytest
from pyiceberg.catalog import Catalog
from pyiceberg.schema import index_by_name
from pyiceberg.table import Table
from pyiceberg.types import IntegerType, StringType

from dbt.adapters.sparkevolve.evolution.changes import (
    AddColumn,
    AddField,
    Change,
    RelaxNotNull,
    RenameField,
    SetProperty,
)
from dbt.adapters.sparkevolve.evolution.column_properties import (
    NAME_MAPPING,
    changed_properties,
    metrics_of_none,
    metrics_of_unknown,
    named_for_another,
)
from dbt.adapters.sparkevolve.evolution.table_properties import property_changes
from dbt.adapters.sparkevolve.iceberg.schema_commits import commit_changes, commit_docs
from tests.unit.conftest import MakeTable
from tests.unit.helpers import array, columns, struct

METRICS = "write.metadata.metrics.column."
BLOOM = "write.parquet.bloom-filter-enabled.column."


def entry(field_id: int, *names: str, fields: list[Any] | None = None) -> dict[str, Any]:
    return {"field-id": field_id, "names": list(names), **({"fields": fields} if fields else {})}


def commit(other: Catalog, *changes: Change) -> Table:
    commit_changes(other.load_table("db.t"), changes, "run-1", "fingerprint")
    return other.load_table("db.t")


def mapping(table: Table) -> list[Any]:
    return list(json.loads(table.properties[NAME_MAPPING]))


@pytest.fixture
def mapped(make_table: MakeTable) -> None:
    """A table with a mapping that knows columns and fields that are gone, and lacks one that is there."""
    make_table(
        columns(
            "a int, s, l, unmapped int", s=struct(5, x=IntegerType()), l=array(6, struct(7, m=IntegerType()))
        ),
        properties={
            NAME_MAPPING: json.dumps(
                [
                    entry(1, "a"),
                    entry(2, "s", fields=[entry(5, "x"), entry(9, "was")]),
                    entry(3, "l", fields=[entry(6, "element", fields=[entry(7, "m")])]),
                    entry(8, "gone", "once"),
                    {"names": ["never"]},
                ]
            )
        },
    )


def test_a_name_in_files_without_ids_stays_with_its_column(other: Catalog, mapped: None) -> None:
    table = commit(
        other,
        AddColumn(("gone",), StringType()),
        AddColumn(("never",), StringType()),
        AddColumn(("new",), struct(1, p=IntegerType(), q=array(2, IntegerType()))),
        AddField(("s", "was"), StringType()),
        AddField(("s", "a"), StringType()),
        AddField(("l", "element", "n"), IntegerType()),
        RenameField(("a",), "b"),
        RenameField(("s", "x"), "y"),
        RenameField(("unmapped",), "once"),
    )
    ids = {table.schema().find_column_name(i): i for i in range(1, table.metadata.last_column_id + 1)}
    assert mapping(table) == [
        entry(1, "a", "b"),
        entry(2, "s", fields=[entry(5, "x", "y"), entry(9, "was"), entry(ids["s.a"], "a")]),
        entry(3, "l", fields=[entry(6, "element", fields=[entry(7, "m"), entry(ids["l.element.n"], "n")])]),
        entry(8, "gone", "once"),
        {"names": ["never"]},
        entry(
            ids["new"],
            "new",
            fields=[
                entry(ids["new.p"], "p"),
                entry(ids["new.q"], "q", fields=[entry(ids["new.q.element"], "element")]),
            ],
        ),
    ]
    # Back to a name that it has had, and to one that another has.
    table = commit(other, RenameField(("b",), "a"), RenameField(("s", "y"), "was2"))
    assert mapping(table)[:2] == [
        entry(1, "a", "b"),
        entry(2, "s", fields=[entry(5, "x", "y", "was2"), entry(9, "was"), entry(ids["s.a"], "a")]),
    ]
    # A column that takes a name which another one had leaves it that.
    before = mapping(commit(other, RenameField(("a",), "c"), AddColumn(("d",), IntegerType())))
    commit(other, RenameField(("d",), "b"))
    commit_docs(other.load_table("db.t"), None, {"b": "described", "c": "as well"})
    assert mapping(other.load_table("db.t")) == before
    assert before[0] == entry(1, "a", "b", "c")


def test_it_is_known_which_new_columns_are_not_found_in_such_files(other: Catalog, mapped: None) -> None:
    properties = other.load_table("db.t").properties
    found = {
        path: named_for_another(properties, path)
        for path in [
            ("gone",),
            ("once",),
            ("new",),
            ("s", "was"),
            ("s", "gone"),
            ("l", "element", "m"),
            ("a", "b"),
        ]
    }
    assert [path for path, known in found.items() if known] == [
        ("gone",),
        ("once",),
        ("s", "was"),
        ("l", "element", "m"),
    ]
    assert not named_for_another({}, ("gone",))


def test_properties_of_columns_move_with_their_names(other: Catalog, make_table: MakeTable) -> None:
    make_table(
        columns("v int, w int not null, s, u int", s=struct(5, x=IntegerType())),
        properties={
            METRICS + "v": "full",
            BLOOM + "v": "true",
            METRICS + "s.x": "counts",
            METRICS + "u": "none",
            METRICS + "u2": "counts",
            METRICS + "default": "none",
            "v": "1",
        },
    )
    table = commit(
        other,
        RenameField(("v",), "V2"),
        RenameField(("s",), "t"),
        RenameField(("s", "x"), "z"),
        RenameField(("u",), "u2"),
        RelaxNotNull(("w",)),
    )
    kept = {name: value for name, value in table.properties.items() if not name.startswith("sparkevolve.")}
    assert kept == {
        METRICS + "V2": "full",
        BLOOM + "V2": "true",
        METRICS + "t.z": "counts",
        METRICS + "u2": "counts",
        METRICS + "default": "none",
        "v": "1",
    }
    assert NAME_MAPPING not in table.properties


def test_short_names_of_fields_in_lists_move_too() -> None:
    """Iceberg changes no property of a table any more that sets metrics of a name which is gone."""
    inner, after = struct(6, m=IntegerType()), struct(6, n=IntegerType())
    before = columns(
        "l, k", l=array(5, inner), k=array(7, struct(8, s=array(9, struct(10, m=IntegerType()))))
    )
    schema = columns(
        "l, k", l=array(5, after), k=array(7, struct(8, t=array(9, struct(10, m=IntegerType()))))
    )
    properties = {METRICS + name: "full" for name in ("l.m", "k.s.element", "k.s.m", "k.element.s.element.m")}
    wanted, removed = changed_properties(properties, before, schema)
    names = ("l.n", "k.t.element", "k.t.m", "k.element.t.element.m")
    assert wanted == {METRICS + name: "full" for name in names}
    assert sorted(removed) == sorted(properties)


def test_two_columns_that_trade_names_trade_properties() -> None:
    before, after = columns("a int, b int, c int"), columns("b int, a int, d int")
    properties = {METRICS + "a": "1", METRICS + "b": "2", METRICS + "c": "3"}
    wanted, removed = changed_properties(properties, before, after)
    assert wanted == {METRICS + "b": "1", METRICS + "a": "2", METRICS + "d": "3"}
    assert removed == [METRICS + "c"]


def test_metrics_of_a_column_that_will_not_be_there_are_noticed() -> None:
    table = columns("a int, s, l", s=struct(4, x=IntegerType()), l=array(5, struct(6, m=IntegerType())))
    changes = (
        RenameField(("a",), "b"),
        RenameField(("s",), "t"),
        RenameField(("s", "x"), "z"),
        AddField(("s", "y"), array(1, struct(4, p=IntegerType()))),
        AddColumn(("n",), struct(5, p=IntegerType())),
        AddField(("l", "element", "o"), IntegerType()),
    )
    # Iceberg finds what is in a list of structs with `element` and without it.
    there = ("b", "t", "t.z", "t.y.element.p", "t.y.p", "n.p", "l.element.m", "l.m", "l.element.o", "l.o")
    gone = ("a", "s.x", "s", "t.x", "s.y", "n.q", "t.p", "B", "nowhere")
    configured = {METRICS + column: "full" for column in (*there, *gone)} | {BLOOM + "nowhere": "true"}
    found = [column for _, column in metrics_of_unknown(configured, table, changes)]
    assert found == list(gone)
    # Each of the fields that are there, and nothing beside.
    every = set(index_by_name(table))
    configured = {METRICS + column: "full" for column in every}
    assert metrics_of_none(configured, table) == []
    others = {METRICS + "p": "full", BLOOM + "p": "true"}
    assert metrics_of_none({**configured, **others}, table) == [METRICS + "p"]


def test_a_mapping_that_the_table_has_is_not_set_again() -> None:
    configured = {NAME_MAPPING: "[]"}
    assert property_changes(configured, {NAME_MAPPING: "[1]"}) == ()
    assert property_changes(configured, {}) == (SetProperty(NAME_MAPPING, "[]"),)
