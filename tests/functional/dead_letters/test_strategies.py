"""A batch of 1,000 rows of which 42 cannot be placed, for three reasons, through each strategy."""

import json
from collections import Counter
from decimal import Decimal
from typing import Any

import pytest

from tests.functional.dead_letters.reading import ids, letters
from tests.functional.harness import Run, Scenario
from tests.functional.samples import history

AUDITS = ["id is not null", {"sql": "amount >= 0", "severity": "row"}]
OLD = (
    "select id, 1 as qty, cast(1 as decimal(10,2)) as amount, timestamp_ntz'2024-01-01 05:00:00' as ts,\n"
    "  cast(id as int) as part\nfrom range({first}, {last})"
)
# 20 texts that are no int, 12 decimals with too many digits behind the point, 10 of less than 0.
TEXTS = [*range(7, 1000, 50)]
DECIMALS = [*range(108, 120)]
NEGATIVES = [*range(210, 220)]
BAD = sorted([*TEXTS, *DECIMALS, *NEGATIVES])
NEW = """
select id,
  if(id % 50 = 7, concat('x', id), cast(id as string)) as qty,
  case when id between 108 and 119 then cast(1.005 as decimal(12,3))
       when id between 210 and 219 then cast(-1 as decimal(12,3))
       else cast(2.5 as decimal(12,3)) end as amount,
  timestamp_ntz'2024-01-01 10:00:00' as ts,
  cast(id as int) as part
from range(1000)
"""
REASONS = {
    "`qty`: the value does not convert to int without loss": TEXTS,
    "`amount`: the value does not convert to decimal(10,2) without loss": DECIMALS,
    "audit: amount >= 0": NEGATIVES,
}
DAY = {"event_time": "ts", "begin": "2024-01-01", "batch_size": "day", "lookback": 0}
STRATEGIES: dict[str, dict[str, Any]] = {
    "delete_insert": {"incremental_strategy": "delete+insert"},
    "merged": {"incremental_strategy": "merge"},
    "appended": {"incremental_strategy": "append"},
    "overwritten": {"incremental_strategy": "insert_overwrite", "partition_by": ["truncate(part, 1000)"]},
    "batches": {"incremental_strategy": "microbatch", **DAY},
}
DIRECT = {"delete_insert_direct": "delete_insert", "appended_direct": "appended"}
MODELS = {**STRATEGIES, **{name: STRATEGIES[of] for name, of in DIRECT.items()}}
RUN = ("--event-time-start", "2024-01-01", "--event-time-end", "2024-01-02")


def write(scenario: Scenario, sql: str) -> None:
    for name, config in MODELS.items():
        publish = "direct" if name in DIRECT else "branch"
        audits = AUDITS[1:] if name in DIRECT else AUDITS
        config = {**config, "on_bad_rows": "dead_letter", "audits": audits, "publish": publish}
        scenario.model(sql, name, **config)


@pytest.mark.core
def test_each_strategy_sets_aside_what_cannot_be_placed(scenario: Scenario) -> None:
    scenario.writes_artifacts = True
    write(scenario, OLD.format(first=998, last=1002))
    scenario.run(*RUN)
    assert scenario.tables() == sorted(MODELS), "no table for dead letters without one"
    write(scenario, NEW)
    run = scenario.run(*RUN)
    assert scenario.tables() == sorted([*MODELS, *(f"{name}_dlt" for name in MODELS)])
    results = json.loads((scenario.folder / "target" / "run_results.json").read_text())
    old = [(n, 1, Decimal("1.00")) for n in range(998, 1002)]
    new = [(n, n, Decimal("2.50")) for n in range(1000) if n not in BAD]
    expected = {
        "delete_insert": new + old[2:],
        "merged": new + old[2:],
        "appended": new + old,
        "overwritten": new + old[2:],
        "batches": new,
    }
    for name in MODELS:
        rows = [row[:3] for row in scenario.rows(name)]
        assert rows == sorted(expected[DIRECT.get(name, name)]), name
        assert scenario.types(name)["qty"] == "int"
        assert scenario.types(name)["amount"] == "decimal(10, 2)"
        assert list(scenario.table(name).metadata.refs) == ["main"]
        assert list(scenario.table(f"{name}_dlt").metadata.refs) == ["main"]
        assert ids(scenario, f"{name}_dlt") == BAD, name
        found = letters(scenario, f"{name}_dlt")
        assert {row["messageId"]: row["failureReason"] for row in found} == {
            json.dumps({"id": n}, separators=(",", ":")): reason for reason, ns in REASONS.items() for n in ns
        }
        assert {row["modelName"] for row in found} == {name}
        assert {row["invocationId"] for row in found} == {results["metadata"]["invocation_id"]}
        assert len({row["loadedAt"] for row in found}) == 1
    by_id = {row["payload"]["id"]: row["payload"] for row in letters(scenario, "merged_dlt")}
    rest = {"ts": "2024-01-01 10:00:00"}
    assert by_id[57] == {"id": 57, "qty": "x57", "amount": Decimal("2.500"), "part": 57, **rest}
    assert by_id[110] == {"id": 110, "qty": "110", "amount": Decimal("1.005"), "part": 110, **rest}
    assert by_id[210] == {"id": 210, "qty": "210", "amount": Decimal("-1.000"), "part": 210, **rest}
    schema = scenario.table("merged_dlt").schema()
    assert [(f.name, str(f.field_type), f.required) for f in schema.fields] == [
        ("messageId", "string", True),
        ("payload", "string", False),
        ("failureReason", "string", False),
        ("modelName", "string", False),
        ("invocationId", "string", False),
        ("loadedAt", "timestamptz", False),
    ]
    check_what_is_said(scenario, run, results["results"])

    # The same batch again: none of its letters is there twice, though some of its rows are.
    again = ("delete_insert", "batches", "appended_direct")
    scenario.run(*RUN, "-s", *again)
    for name in again:
        assert Counter(ids(scenario, f"{name}_dlt")) == Counter(BAD), name
        assert len(history(scenario, f"{name}_dlt")) == 1, name
    assert scenario.tables() == sorted([*MODELS, *(f"{name}_dlt" for name in MODELS)])


def check_what_is_said(scenario: Scenario, run: Run, results: list[dict[str, Any]]) -> None:
    table = scenario.relation("merged_dlt")
    lines = [
        f"  * {reason}: {len(ns)} rows, such as " + ", ".join(sorted(f'{{"id":{n}}}' for n in ns)[:10])
        for reason, ns in REASONS.items()
    ]
    text = f"{scenario.relation('merged')}: 42 of 1000 rows could not be placed and are in {table}:\n"
    assert run.log.count(text + "\n".join(lines)) == 1
    said = {
        result["unique_id"].split(".")[-1]: result["adapter_response"].get("dead_letters")
        for result in results
    }
    assert said["merged"] == {
        "table": table,
        "rows": 42,
        "of": 1000,
        "reasons": [
            {"reason": reason, "rows": len(ns), "samples": sorted(f'{{"id":{n}}}' for n in ns)[:10]}
            for reason, ns in REASONS.items()
        ],
    }
