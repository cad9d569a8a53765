"""Descriptions of columns that a table does not have."""

import pytest

from dbt.adapters.sparkevolve.load.descriptions import undescribed
from tests.unit.helpers import relation


@pytest.mark.parametrize(
    ("columns", "missing"),
    [
        ({}, ""),
        ({"id": {}, "NAME": {"quote": None}}, ""),
        ({"name": {"quote": True}, "gone": {}, "Id": {}}, "name, gone"),
        ({"Name": {"quote": True}}, ""),
    ],
)
def test_dbt_would_warn_of_them_in_these_words(columns: dict[str, dict[str, object]], missing: str) -> None:
    text = (
        "In relation `lake`.`db`.`t`: The following columns are specified in the schema but are not present "
        f"in the database: {missing}"
    )
    assert undescribed(relation("t"), columns, ["Id", "Name"]) == ([text] if missing else [])
