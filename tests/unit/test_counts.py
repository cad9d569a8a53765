"""Numbers in messages."""

import pytest

from dbt.adapters.sparkevolve.counts import agreeing, counted


@pytest.mark.parametrize(
    ("number", "text"),
    [(0, "0 batches are"), (1, "1 batch is"), (2, "2 batches are"), (11, "11 batches are")],
)
def test_words_agree_with_their_number(number: int, text: str) -> None:
    assert f"{counted(number, 'batch', 'batches')} {agreeing(number, 'is', 'are')}" == text
    assert counted(number, "row") == ("1 row" if number == 1 else f"{number} rows")
