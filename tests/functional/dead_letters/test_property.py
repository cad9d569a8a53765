"""Each row of a batch is in the table or in the dead letters, never in both, whatever the batch is."""

import json
import re
from collections import Counter
from decimal import Decimal
from typing import Any

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from tests.functional.dead_letters.reading import letters
from tests.functional.harness import Scenario

IDS = st.sampled_from([None, "1", "2", "3", "4", "5", "6", "7", "007", "x"])
NUMBERS = st.sampled_from([None, "1", "-1", "2147483647", "2147483648", "1.0", " 1", "", "1e1"])
DECIMALS = st.sampled_from([None, "0.005", "1.000", "-2.500", "123.450", "99999.999"])
ROWS = st.lists(st.tuples(IDS, NUMBERS, DECIMALS), min_size=1, max_size=40)
OLD = "select cast(null as int) as id, 0 as n, cast(0 as decimal(5,2)) as d where false"
AUDIT = {"sql": "coalesce(n, 1) > 0", "severity": "row"}
CONFIG: dict[str, Any] = {"on_bad_rows": "dead_letter", "audits": AUDIT}

Row = tuple[str | None, str | None, str | None]


def whole(text: str | None) -> bool:
    return text is None or (bool(re.fullmatch("0|-?[1-9][0-9]*", text)) and -(2**31) <= int(text) < 2**31)


def is_good(row: Row, batch: list[Row], merges: bool) -> bool:
    """What the page says, without SQL."""
    id_, n, d = row
    fits = d is None or (Decimal(d) % Decimal("0.01") == 0 and abs(Decimal(d)) < 1000)
    repeated = merges and [other[0] for other in batch].count(id_) > 1
    return whole(id_) and whole(n) and fits and not repeated and (n is None or int(n) > 0)


def stored(row: Row) -> tuple[Any, ...]:
    values = zip((int, int, Decimal), row, strict=True)
    return tuple(None if text is None else convert(text) for convert, text in values)


def values(rows: list[Row]) -> str:
    texts = (
        "(" + ", ".join("cast(null as string)" if text is None else f"'{text}'" for text in row) + ")"
        for row in rows
    )
    return (
        "select id, n, cast(d as decimal(8,3)) as d from values " + ", ".join(texts) + " as source(id, n, d)"
    )


def test_each_row_is_in_one_place(scenario: Scenario) -> None:
    """The batches of all examples go through one run, each through a model of its own."""
    batches: list[list[Row]] = []

    @settings(max_examples=5, database=None, phases=[Phase.generate], suppress_health_check=list(HealthCheck))
    @given(ROWS)
    def generate(rows: list[Row]) -> None:
        batches.append(rows)

    generate()
    # At least one of each column converts, or the batch is refused as a whole.
    good: list[Row] = [("90", "1", "1.000"), ("91", None, None)]
    models = {f"m{number}": [*rows, *good] for number, rows in enumerate(batches)}
    merged = {name for number, name in enumerate(models) if number % 2}
    for write in (lambda rows: OLD, values):
        for name, rows in models.items():
            strategy = "merge" if name in merged else "delete+insert"
            scenario.model(write(rows), name, **CONFIG, incremental_strategy=strategy)
        scenario.run("--threads", "2")
    for name, rows in models.items():
        expected = Counter(row for row in rows if is_good(row, rows, name in merged))
        assert Counter(scenario.rows(name)) == Counter(map(stored, expected.elements())), (name, rows)
        bad = Counter(rows) - expected
        found = letters(scenario, f"{name}_dlt") if f"{name}_dlt" in scenario.tables() else []
        texts = [(row["payload"]["id"], row["payload"]["n"], row["payload"]["d"]) for row in found]
        wanted = [(id_, n, None if d is None else Decimal(d)) for id_, n, d in bad.elements()]
        assert Counter(texts) == Counter(wanted), (name, rows)
        assert all(json.loads(row["messageId"]) == {"id": row["payload"]["id"]} for row in found)
