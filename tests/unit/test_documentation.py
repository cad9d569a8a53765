"""Which relations ``dbt docs`` shows."""

import pytest

from dbt.adapters.sparkevolve.documentation import wanted
from dbt.adapters.sparkevolve.relation import SparkEvolveRelation


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
