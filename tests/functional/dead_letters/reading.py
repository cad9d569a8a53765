"""Dead letters as a reader of their table decodes them, without Spark."""

import base64
import json
from decimal import Decimal
from typing import Any

from tests.functional.harness import Scenario


def letters(scenario: Scenario, name: str = "t_dlt") -> list[dict[str, Any]]:
    """The rows of a dead-letter table, their ids and payloads decoded, in the order of their ids."""
    rows = scenario.table(name).scan().to_arrow().to_pylist()
    found = [
        {**row, "payload": json.loads(base64.b64decode(row["payload"], validate=True), parse_float=Decimal)}
        for row in rows
    ]
    return sorted(found, key=lambda row: (row["messageId"], row["failureReason"]))


def ids(scenario: Scenario, name: str = "t_dlt") -> list[Any]:
    """The value of ``id`` in each payload of a dead-letter table, sorted; NULL comes first."""
    found = [row["payload"]["id"] for row in letters(scenario, name)]
    return sorted(found, key=lambda value: (value is not None, value))
