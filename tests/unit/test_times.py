"""Times as text."""

import pytest

from dbt.adapters.sparkevolve.times import iso_of


@pytest.mark.parametrize(
    ("milliseconds", "text"),
    [
        (0, "1970-01-01T00:00:00+00:00"),
        (1_764_345_600_999, "2025-11-28T16:00:00+00:00"),
        # Microseconds, which some writers take for milliseconds.
        (1_764_345_600_000_000, None),
        (10**30, None),
    ],
)
def test_a_time_is_told_to_the_second_in_utc(milliseconds: int, text: str | None) -> None:
    assert iso_of(milliseconds) == text
