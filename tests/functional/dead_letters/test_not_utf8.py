"""Strings that are not valid UTF-8: rows with them are loaded as they are, and as letters never as others."""

import base64
import json
from typing import Any

from tests.functional.dead_letters.reading import letters
from tests.functional.harness import Scenario

# 1 is good, 3 has a U+FFFD that is one. Of 4 to 6 the text is inside of a column.
ROWS = """
select id, ok, cast(s as string) as s, array('a', cast(l as string)) as l,
  named_struct('x', cast(x as string), 'n', 1.5d) as st, map('k', 'v', cast(k as string), 'v') as m
from values
  (1, true, X'61C3', X'62', X'62', X'62'),
  (2, false, {two}, X'62', X'62', X'62'),
  (3, false, X'EFBFBD', X'62', X'62', X'62'),
  (4, false, X'62', X'C3', X'62', X'62'),
  (5, false, X'62', X'62', X'FF', X'62'),
  (6, false, cast(null as binary), X'62', X'62', X'C328')
  as rows(id, ok, s, l, x, k)
"""
WHY = (
    ": a string was not valid UTF-8, which JSON cannot hold, and is not in the payload as it was: put into "
    "that what it is to be, and take `sparkevolve_not_utf8` out, which has the bytes in Base64"
)


def replayed(scenario: Scenario) -> dict[str, Any]:
    arguments = ("--log-format", "json", "run-operation", "replay_dead_letters", "--args", '{"model": "t"}')
    run = scenario.dbt(*arguments)
    assert run.success, run.message
    (line,) = [line for line in run.log.splitlines() if line.startswith('{"relation"')]
    found: dict[str, Any] = json.loads(line)
    return found


def texts(scenario: Scenario) -> dict[int, str | None]:
    """The bytes of `s` by id, as Spark reads them."""
    scenario.sql(f"refresh table {scenario.relation()}")
    return dict(scenario.sql(f"select id, hex(s) from {scenario.relation()}"))  # type: ignore[arg-type]


def test_a_text_that_is_no_utf_8_comes_back_as_it_was_or_not_at_all(scenario: Scenario) -> None:
    routed = {"on_bad_rows": "dead_letter", "audits": [{"sql": "ok", "severity": "row"}]}
    scenario.model(ROWS.format(two="X'61C3'"), **routed)
    scenario.run()
    assert texts(scenario) == {1: "61C3"}

    def lost() -> list[tuple[int, Any]]:
        found = [
            (row["payload"]["id"], row["payload"].get("sparkevolve_not_utf8")) for row in letters(scenario)
        ]
        return sorted(found, key=str)

    def encoded(*texts: bytes) -> list[str]:
        return [base64.b64encode(text).decode() for text in texts]

    entries = [
        dict(zip(("key", "value"), encoded(*pair), strict=True)) for pair in ((b"k", b"v"), (b"\xc3(", b"v"))
    ]
    expected: list[tuple[int, Any]] = [
        (2, {"s": "YcM="}),
        (3, None),
        (4, {"l": encoded(b"a", b"\xc3")}),
        (5, {"st": {"x": "/w==", "n": 1.5}}),
        (6, {"m": entries}),
    ]
    assert lost() == expected
    assert letters(scenario)[0]["payload"]["s"] == "a\ufffd"
    # The same rows are no new letters, and one that only JSON would take for another is one.
    scenario.run()
    assert lost() == expected
    scenario.model(ROWS.format(two="X'61C4'"), **routed)
    scenario.run()
    assert lost() == [(2, {"s": "YcM="}), (2, {"s": "YcQ="}), *expected[1:]]

    scenario.model(ROWS.format(two="X'61C4'"), on_bad_rows="dead_letter", on_schema_change="ignore")
    found = replayed(scenario)
    assert found["loaded"] == 1
    assert found["staying"] == {
        f"`s`{WHY}": 1,
        f"`l`{WHY}": 1,
        f"`st`{WHY}": 1,
        f"`m`{WHY}": 1,
        "another dead letter of this key is newer": 1,
    }
    assert texts(scenario) == {1: "61C3", 3: "EFBFBD"}
    # Mended: this is the text that it is to be.
    mended = base64.b64encode(
        json.dumps({"id": 5, "ok": False, "s": "ü", "st": {"x": "é"}}).encode()
    ).decode()
    table = scenario.relation("t_dlt")
    scenario.sql(f"update {table} set payload = '{mended}' where messageId = '{{\"id\":5}}'")
    assert replayed(scenario)["loaded"] == 1
    assert texts(scenario) == {1: "61C3", 3: "EFBFBD", 5: "C3BC"}
    assert scenario.sql(f"select st.x from {scenario.relation()} where id = 5") == [("é",)]
