"""Which relations ``dbt docs`` shows."""

import pytest

from dbt.adapters.sparkevolve.documentation import Documentation, schemas_of, wanted
from dbt.adapters.sparkevolve.iceberg.catalog import IcebergCatalog
from dbt.adapters.sparkevolve.iceberg.catalogs import Catalogs
from dbt.adapters.sparkevolve.relation import SparkEvolveRelation
from tests.unit.conftest import MakeTable
from tests.unit.helpers import columns


def relation(identifier: str, database: str = "lake") -> SparkEvolveRelation:
    return SparkEvolveRelation.create(database, "shop", identifier)


@pytest.mark.parametrize("asked", ["Orders", "orders"])
def test_of_two_names_in_different_case_the_one_that_is_asked_for_is_shown(asked: str) -> None:
    listed = [relation("Orders"), relation("orders"), relation("other"), relation("orders", "archive")]
    assert wanted({relation(asked)}, listed) == {("lake", "shop", "orders"): relation(asked)}


def test_a_name_in_another_case_is_shown_where_there_is_no_other() -> None:
    assert wanted({relation("ORDERS")}, [relation("orders")]) == {
        ("lake", "shop", "orders"): relation("orders")
    }


def test_schemas_are_listed_where_they_are_and_without_a_catalog_in_none() -> None:
    bare = [SparkEvolveRelation.create(None, schema, "t") for schema in ("b", "a")]
    asked = [*bare, relation("t"), relation("u"), relation("t", "archive")]
    assert schemas_of(asked) == [(None, "a"), (None, "b"), ("archive", "shop"), ("lake", "shop")]


def test_what_names_no_catalog_is_shown_in_the_profiles_own(
    lake: IcebergCatalog, make_table: MakeTable
) -> None:
    target = make_table(columns("id int"))
    asked = SparkEvolveRelation.create(None, target.schema, target.identifier)
    shown = Documentation(Catalogs([lake]), lambda other: (None, [])).of(asked)
    assert (shown.metadata.database, shown.metadata.schema, shown.metadata.name) == ("lake", "db", "t")
    assert list(shown.columns) == ["id"]
