"""Changes: what each one says it does, and that there is none that takes something away."""

import dataclasses
import inspect
from typing import get_args

import pytest
from pyiceberg.types import DecimalType, FloatType, IntegerType, LongType, TimeType

from dbt.adapters.sparkevolve.evolution import changes
from dbt.adapters.sparkevolve.evolution.changes import (
    AddColumn,
    AddField,
    Change,
    RelaxNotNull,
    RemoveDefault,
    RenameField,
    SchemaChange,
    SetDefault,
    SetDoc,
    SetProperty,
    WidenType,
)
from dbt.adapters.sparkevolve.evolution.defaults import DefaultValue
from tests.unit.helpers import struct

INT, LONG = IntegerType(), LongType()
FIVE, SIX = DefaultValue(INT, 5), DefaultValue(INT, 6)


@pytest.mark.parametrize(
    ("change", "text", "verb"),
    [
        (AddColumn(("New`x",), DecimalType(10, 2), "doc"), "add column `New``x` decimal(10,2)", "added"),
        (AddColumn(("a.b",), INT), "add column `a.b` int", "added"),
        (AddColumn(("at",), TimeType()), "add column `at` time", "added"),
        (AddColumn(("s",), struct(1, x=INT)), "add column `s` struct<`x`:int>", "added"),
        (AddField(("l", "element", "x y"), LONG), "add field `l`.`element`.`x y` bigint", "added"),
        (WidenType(("s", "n"), INT, LONG), "widen `s`.`n` from int to bigint", "widened"),
        (
            WidenType(("d",), DecimalType(9, 2), DecimalType(10, 2)),
            "widen `d` from decimal(9,2) to decimal(10,2)",
            "widened",
        ),
        (RelaxNotNull(("m", "value")), "let `m`.`value` be NULL", "relaxed"),
        (RenameField(("s", "was"), "n`ow"), "rename `s`.`was` to `n``ow`", "renamed"),
        (SetDoc(("x",), "It's new"), "describe `x` as 'It\\'s new'", "described"),
        (AddColumn(("x",), INT, default=FIVE), "add column `x` int default 5", "added"),
        (SetDefault(("x",), FIVE), "set default of `x` to 5", "default_set"),
        (SetDefault(("x",), FIVE, SIX), "change default of `x` from 6 to 5", "default_set"),
        (RemoveDefault(("x",), FIVE), "remove default 5 of `x`", "default_removed"),
    ],
)
def test_a_change_says_in_words_what_it_does(change: SchemaChange, text: str, verb: str) -> None:
    assert str(change) == text
    assert change.verb == verb


def test_these_are_all_the_changes_there_are() -> None:
    own = [c for _, c in inspect.getmembers(changes, inspect.isclass) if c.__module__ == changes.__name__]
    of_schema = {AddColumn, AddField, WidenType, RelaxNotNull, RenameField, SetDoc, SetDefault, RemoveDefault}
    assert {*get_args(SchemaChange)} == of_schema
    assert {*own} == {*get_args(Change)} == {*of_schema, SetProperty}
    assert {c.verb for c in own if c in of_schema} == {
        *("added", "widened", "relaxed", "renamed", "described", "default_set", "default_removed")
    }


@pytest.mark.parametrize(
    "change",
    [
        AddColumn(("a",), INT),
        AddField(("a", "b"), INT),
        WidenType(("a",), FloatType(), LONG),
        RelaxNotNull(("a",)),
        RenameField(("a",), "b"),
        SetDoc(("a",), ""),
        SetProperty("a", ""),
    ],
    ids=lambda change: type(change).__name__,
)
def test_changes_are_values(change: Change) -> None:
    assert dataclasses.replace(change) == change
    assert hash(dataclasses.replace(change)) == hash(change)
    with pytest.raises(dataclasses.FrozenInstanceError):
        setattr(change, dataclasses.fields(change)[0].name, "b")
