"""A catalog that is not there when dbt begins: it is asked before Spark, which takes minutes to say so."""

import time
from collections.abc import Callable
from typing import Any

import pytest

from tests.functional.harness import Scenario
from tests.functional.servers import free_port

PASSWORD = "not-for-others"


@pytest.mark.parametrize("kind", ["sql", "rest", "hive"])
def test_a_catalog_that_is_away_is_named(scenario_factory: Callable[..., Scenario], kind: str) -> None:
    port = free_port()
    uris = {
        "sql": f"postgresql+psycopg2://dbt:{PASSWORD}@127.0.0.1:{port}/lake",
        "rest": f"http://127.0.0.1:{port}/catalog",
        "hive": f"thrift://127.0.0.1:{port}",
    }
    away: dict[str, Any] = {"type": kind, "uri": uris[kind], "warehouse": "file:///nowhere"}
    scenario = scenario_factory(catalog_properties=away)
    scenario.model("select 1 as id")
    scenario.file("seeds/s.csv", "id\n1\n")
    for command in ("seed", "run"):
        started = time.monotonic()
        run = scenario.dbt(command)
        assert time.monotonic() - started < 40
        assert not run.success
        text = f"The Iceberg catalog `lake` at 127.0.0.1:{port} cannot be reached: it refuses connections."
        assert text in run.message + run.log
        assert PASSWORD not in run.log
        assert "psycopg2" not in run.message
        assert "HTTPConnectionPool" not in run.message
        assert not [line for line in run.shown if "Could not connect to any of" in line]
        assert ("thrift.transport.TSocket: Could not connect to any of" in run.log) is (kind == "hive")
