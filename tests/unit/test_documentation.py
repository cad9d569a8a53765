"""Which relations ``dbt docs`` shows."""

from pathlib import Path

import pytest
from dbt.adapters.base.relation import BaseRelation
from pyiceberg.table import Table

from dbt.adapters.sparkevolve.documentation import Documentation, wanted
from dbt.adapters.sparkevolve.errors import CatalogUnavailableError
from dbt.adapters.sparkevolve.iceberg.catalog import IcebergCatalog
from dbt.adapters.sparkevolve.iceberg.catalog_settings import Place, resolve
from dbt.adapters.sparkevolve.iceberg.catalogs import Catalogs
from dbt.adapters.sparkevolve.relation import SparkEvolveRelation
from tests.unit.conftest import MakeTable
from tests.unit.helpers import columns


def relation(identifier: str, database: str | None = "lake") -> SparkEvolveRelation:
    return SparkEvolveRelation.create(database, "shop", identifier)


def shown(asked: set[BaseRelation], listed: list[BaseRelation]) -> list[tuple[str | None, str | None]]:
    return [(one.database, one.identifier) for one in wanted(asked, listed, "lake")]


@pytest.mark.parametrize("asked", ["Orders", "orders"])
def test_of_two_names_in_different_case_the_one_that_is_asked_for_is_shown(asked: str) -> None:
    listed = [relation("Orders"), relation("orders"), relation("other"), relation("orders", "archive")]
    assert shown({relation(asked)}, listed) == [("lake", asked)]


def test_a_name_in_another_case_is_shown_where_there_is_no_other() -> None:
    assert shown({relation("ORDERS")}, [relation("orders")]) == [("lake", "orders")]
    # To dbt these are one: the one that is there is shown, once.
    assert shown({relation("ORDERS"), relation("orders")}, [relation("orders")]) == [("lake", "orders")]


def test_names_that_dbt_tells_apart_are_two() -> None:
    both = [relation("strasse"), relation("straße")]
    assert shown(set(both), list(both)) == [("lake", "strasse"), ("lake", "straße")]


def test_what_is_asked_for_without_a_database_is_shown_without() -> None:
    listed: list[BaseRelation] = [relation("t"), relation("t", "archive")]
    assert shown({relation("t", None), relation("gone", None)}, listed) == [(None, "t")]
    assert shown({relation("t", None), relation("T")}, listed) == [(None, "t"), ("lake", "t")]


def test_what_names_no_catalog_is_shown_in_the_profiles_own(
    lake: IcebergCatalog, make_table: MakeTable
) -> None:
    target = make_table(columns("id int"))
    asked = SparkEvolveRelation.create(None, target.schema, target.identifier)
    shown = Documentation(Catalogs([lake]), lambda other: (None, [])).of(asked)
    assert (shown.metadata.database, shown.metadata.schema, shown.metadata.name) == ("lake", "db", "t")
    assert list(shown.columns) == ["id"]
    # dbt looks a node up by the database that it says, even if that is none.
    of_node = Documentation(Catalogs([lake]), lambda other: (None, [])).of_node(asked)
    assert (of_node.metadata.database, of_node.columns) == (None, shown.columns)


class Counted(IcebergCatalog):
    """A catalog where nobody answers, which notes what it is asked for."""

    def __init__(self, folder: Path) -> None:
        properties = {"type": "rest", "uri": "http://127.0.0.1:1"}
        super().__init__(resolve("away", properties, folder, Place.of_further("away")))
        self.asked: list[str] = []

    def load(self, relation: BaseRelation) -> Table:
        self.asked.append(str(relation.identifier))
        return super().load(relation)


def test_ages_in_a_catalog_that_is_away_take_no_others_with_them(
    lake: IcebergCatalog, make_table: MakeTable, tmp_path: Path
) -> None:
    make_table(columns("id int"), [{"id": 1}])
    away = Counted(tmp_path)
    documentation = Documentation(Catalogs([lake, away]), lambda other: (None, []))
    first, second, later = (relation(name, "away") for name in ("first", "second", "later"))
    there: list[BaseRelation] = [SparkEvolveRelation.create(name, "db", "t") for name in ("lake", None)]
    ages = documentation.ages([first, there[0], second, there[1]])
    assert list(ages) == there
    errors = []
    # dbt asks for each that has no age by itself: nobody waits again, and each has an error of its own.
    for source in (first, second):
        with pytest.raises(CatalogUnavailableError) as raised:
            documentation.age(source)
        assert raised.value.msg == (
            "The Iceberg catalog `away` at 127.0.0.1:1 cannot be reached: it refuses connections. "
            "See to it that it runs, and that `catalogs.away` of the profile name it; then run again."
        )
        errors.append(raised.value)
    assert errors[0] is not errors[1]
    assert away.asked == ["first"]
    # Two sources may be one table.
    with pytest.raises(CatalogUnavailableError):
        documentation.age(first)
    assert away.asked == ["first"]
    for _ in range(2):
        with pytest.raises(CatalogUnavailableError):
            documentation.age(later)
    assert away.asked == ["first", "later", "later"]
