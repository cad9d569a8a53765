"""Which columns the values of dead letters are of."""

from collections import Counter

from pyiceberg.catalog import Catalog
from pyiceberg.types import LongType

from dbt.adapters.sparkevolve.load.letter_names import letter_names
from dbt.adapters.sparkevolve.load.replay import Replayed
from tests.unit.conftest import MakeTable
from tests.unit.helpers import columns, struct


def test_a_name_is_one_column_s_at_any_time(other: Catalog, make_table: MakeTable) -> None:
    """What `column_renames` says of a name is no longer so simple once two columns have had it."""
    make_table(columns("id int, a int, n int"))
    with other.load_table("db.t").update_schema() as update:
        update.rename_column("a", "b")
        update.rename_column("n", "m")
    with other.load_table("db.t").update_schema() as update:
        update.add_column("a", columns("x int").fields[0].field_type)
    with other.load_table("db.t").update_schema() as update:
        update.rename_column("a", "c")
    found = letter_names(other.load_table("db.t"), {"a": "c", "n": "m"}, lambda f: None)
    by_name = {column.name: column for column in found.columns}
    assert {name: column.keys for name, column in by_name.items()} == {
        "id": ("id",),
        "b": ("b",),
        "m": ("m", "n"),
        "c": ("c",),
    }
    assert {name: [old for old, _ in column.naming.former] for name, column in by_name.items()} == {
        "id": [],
        "b": ["a"],
        "m": ["n"],
        "c": [],
    }
    assert found.former == {"`a`": "`c`"}


def test_a_name_inside_of_a_column_is_told_by_time_or_keeps_a_letter(
    other: Catalog, make_table: MakeTable
) -> None:
    make_table(columns("id int, t", t=struct(3, a=LongType(), n=LongType())))
    for old, new in (("t.a", "b"), ("t.b", "a"), ("t.n", "m"), ("t.a", "b"), ("t", "s")):
        with other.load_table("db.t").update_schema() as update:
            update.rename_column(old, new)
    table = other.load_table("db.t")
    found = letter_names(table, {}, lambda f: None)
    ids = {name: table.schema().find_field(f"s.{name}").field_id for name in ("b", "m")}
    inside = found.columns[1].inside
    assert {name: [old for old, _ in inside[ids[name]].former] for name in ids} == {"b": ["a"], "m": ["n"]}
    assert found.former == {"`s`.`a`": "`s`.`b`"}


def test_why_a_letter_stays_is_said_to_the_end(other: Catalog, make_table: MakeTable) -> None:
    """What to do stands there, behind more characters than a line has of a reason that SQL has found."""
    make_table(columns("id int, temperature int, humidity int"))
    for old, new in (("temperature", "tmp"), ("humidity", "temperature"), ("tmp", "humidity")) * 2:
        with other.load_table("db.t").update_schema() as update:
            update.rename_column(old, new)
    found = letter_names(other.load_table("db.t"), {}, lambda f: None)
    reasons = {staying.reason for column in found.columns for staying in column.staying}
    replayed = Replayed("`t`", "`t_dlt`", staying=Counter(reasons))
    assert {line.partition(": ")[2] for line in replayed.lines[1:]} == reasons
    assert all(reason.endswith("set `loadedAt` to a later time") for reason in reasons)
    assert max(map(len, reasons)) > 200
