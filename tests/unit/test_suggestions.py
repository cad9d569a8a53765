"""Near misses of names: which are found, and which are not taken for one."""

import pytest

from dbt.adapters.sparkevolve.suggestions import closest, did_you_mean

KNOWN = ["removed_columns", "type_widening", "catalog_properties", "audits", "full_refresh_schema", "uri"]


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ("remove_columns", "removed_columns"),
        ("removed_column", "removed_columns"),
        ("removed-columns", "removed_columns"),
        ("Removed_Columns", "removed_columns"),
        ("columns_removed", "removed_columns"),
        ("removedcolumns", "removed_columns"),
        ("type_widenning", "type_widening"),
        ("catalog_propertis", "catalog_properties"),
        ("catalog_property", "catalog_properties"),
        ("audit", "audits"),
    ],
)
def test_a_near_miss_is_found(given: str, meant: str) -> None:
    assert closest(given, KNOWN) == meant


@pytest.mark.parametrize(
    "given", ["full_refresh", "columns", "type", "catalog", "partition_by", "", "url_for"]
)
def test_another_name_is_not_taken_for_a_near_miss(given: str) -> None:
    assert closest(given, KNOWN) is None


def test_a_known_name_is_not_a_near_miss_of_its_neighbour() -> None:
    assert closest("removed_columns", ["removed_column", "removed_columns"]) is None


def test_the_closest_of_several_is_returned() -> None:
    assert closest("commit_retrys", ["commit_tries", "commit_retries", "connect_retries"]) == "commit_retries"


def test_the_question() -> None:
    assert did_you_mean("uri") == "Did you mean `uri`?"
