"""Dead letters as rows again: what is read as what, and which ids a table remembers."""

import pytest
from pyiceberg.types import (
    BinaryType,
    DecimalType,
    FixedType,
    IcebergType,
    IntegerType,
    StringType,
    TimestamptzType,
)

from dbt.adapters.sparkevolve.evolution.types import spark_type
from dbt.adapters.sparkevolve.load.replay import Arguments, Replayed
from dbt.adapters.sparkevolve.operations import OPERATIONS, Operations
from dbt.adapters.sparkevolve.sql import payloads, replay
from tests.unit.helpers import array, mapping, struct


@pytest.mark.parametrize(
    ("type_", "read"),
    [
        (IntegerType(), "string"),
        (DecimalType(38, 20), "string"),
        (TimestamptzType(), "string"),
        (BinaryType(), "binary"),
        (FixedType(3), "binary"),
        (array(1, struct(2, a=IntegerType(), b=TimestamptzType())), "array<struct<`a`:string,`b`:string>>"),
        (mapping(1, StringType(), IntegerType()), "map<string,string>"),
        (mapping(1, IntegerType(), IntegerType()), None),
        (struct(1, a=BinaryType()), None),
        (array(1, FixedType(3)), None),
    ],
)
def test_a_value_is_read_as_its_text(type_: IcebergType, read: str | None) -> None:
    found = payloads.read_as(type_)
    assert (None if found is None else spark_type(found)) == read


def test_what_a_replay_has_published_is_read_back_and_a_spoiled_property_is_nothing() -> None:
    published = replay.Published("main", 12, ("a", "b"))
    assert published.text == '{"ref": "main", "snapshot": 12, "ids": ["a", "b"]}'
    assert replay.published_in(published.text) == published
    spoiled = ("", "{", "{}", "1", "null", '["a"]', '{"ref": "main", "snapshot": null, "ids": []}')
    for text in (None, *spoiled):
        assert replay.published_in(text) is None


def test_the_arguments_say_which_letters() -> None:
    given = Operations("lake", {}).arguments(
        "replay_dead_letters", {"model": "t", "message_ids": [{"id": 1}, "x'y"], "where": "loadedAt > now()"}
    )
    assert list(given) == [argument.name for argument in OPERATIONS["replay_dead_letters"]]
    arguments = Arguments(**{name: value for name, value in given.items() if name != "model"})
    assert arguments == Arguments("loadedAt > now()", "", ('{"id":1}', "x'y"), None, False, False)
    assert arguments.conditions[0] == "loadedAt > now()"
    assert arguments.conditions[1].startswith("`messageId` IN ('{\"id\":1}', ")


def test_what_is_said_of_a_replay() -> None:
    found = Replayed("`t`", "`t_dlt`", loaded=3, removed=2)
    found.staying["the table has rows of this key that were loaded after it"] = 1
    assert found.lines == [
        "`t`: 3 dead letters of `t_dlt` loaded, and removed from the dead letters",
        "  2 more were loaded by an earlier replay, and are removed now",
        "  1 stays: the table has rows of this key that were loaded after it",
        "  `overwrite: true` loads these too, and replaces the rows of their keys",
    ]
    assert found.data["loaded"] == 3
    assert Replayed("`t`", "`t_dlt`", True).lines == [
        "`t`: 0 dead letters of `t_dlt` would be loaded",
        "  none matches that was still there",
    ]
    one = Replayed("`t`", "`t_dlt`", True, loaded=1)
    assert one.lines == ["`t`: 1 dead letter of `t_dlt` would be loaded"]
    none = Replayed("`t`", "`t_dlt`")
    none.staying["audit: a > 0"] = 1
    assert none.lines == ["`t`: 0 dead letters of `t_dlt` loaded", "  1 stays: audit: a > 0"]
