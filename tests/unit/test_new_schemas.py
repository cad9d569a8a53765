"""Which schemas are made at once, and which ones dbt leaves out."""

import threading
from collections.abc import Callable

import pytest

from dbt.adapters.sparkevolve.new_schemas import NewSchemas
from dbt.adapters.sparkevolve.relation import SparkEvolveRelation


def schema(name: str, database: str | None = "lake") -> SparkEvolveRelation:
    return SparkEvolveRelation.create(database, name)


@pytest.fixture
def schemas() -> NewSchemas:
    """Of `lake`, which is the profile's own, and of `hive`, to which `Shop` and `shop` are one."""
    return NewSchemas(lambda database: database or "lake", lambda catalog: catalog == "hive")


def test_a_sibling_in_other_letters_is_left_out_until_it_is_made(schemas: NewSchemas) -> None:
    assert not schemas.is_left_out(schema("shop"))
    schemas.note_listed(None, ["Shop", "other", "stra\u00dfe", "a.b"])
    for name, database, expected in (
        ("shop", "lake", True),
        ("shop", None, True),
        ("`SHOP`", "lake", True),
        ("Shop", "lake", False),
        ("new", "lake", False),
        ("strasse", "lake", False),
        ("shop", "archive", False),
        # One level with a dot in its name, and two.
        ("`A.b`", "lake", True),
        ("A.b", "lake", False),
    ):
        assert schemas.is_left_out(schema(name, database)) is expected, (name, database)
    with schemas.making(schema("shop")):
        assert schemas.is_left_out(schema("shop"))
    assert not schemas.is_left_out(schema("shop", None))
    with pytest.raises(RuntimeError, match="away"), schemas.making(schema("SHOP")):
        raise RuntimeError("away")
    assert schemas.is_left_out(schema("SHOP"))


def test_those_that_a_schema_lies_in_are_known_too(schemas: NewSchemas) -> None:
    with schemas.making(schema("a.b.c")):
        pass
    assert not schemas.is_left_out(schema("a.b"))
    assert [schemas.is_left_out(schema(name)) for name in ("A", "a.B", "a.b.C", "a.b.c.d")] == [
        True,
        True,
        True,
        False,
    ]


def test_where_the_catalog_folds_names_nothing_is_left_out(schemas: NewSchemas) -> None:
    schemas.note_listed("hive", ["shop"])
    assert not schemas.is_left_out(schema("Shop", "hive"))


def test_only_schemas_with_an_outermost_one_in_common_wait_for_each_other(schemas: NewSchemas) -> None:
    order: list[str] = []

    def make(name: str, database: str | None) -> Callable[[], None]:
        def run() -> None:
            with schemas.making(schema(name, database)):
                order.append(name)

        return run

    waiting = [
        threading.Thread(target=make(*which), name=which[0])
        for which in (("shop.x", "lake"), ("Shop", None), ("`shop`", "lake"))
    ]
    with schemas.making(schema("shop")):
        for thread in waiting:
            thread.start()
        # Neither those of other names nor those of other catalogs wait.
        for name, database in (("other", "lake"), ("shop.y", "archive"), ("`shop.z`", "lake")):
            free = threading.Thread(target=make(name, database))
            free.start()
            free.join(30)
            assert not free.is_alive()
        waiting[0].join(0.2)
        assert order == ["other", "shop.y", "`shop.z`"]
    for thread in waiting:
        thread.join()
    assert set(order[3:]) == {"shop.x", "Shop", "`shop`"}
