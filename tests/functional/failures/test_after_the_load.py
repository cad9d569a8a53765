"""What fails after the rows of a run are visible says so; what can fail before fails before."""

from typing import Any

import pytest
import yaml
from dbt.adapters.spark.impl import SparkAdapter
from pyiceberg.exceptions import CommitFailedException
from pyiceberg.table import Table

from dbt.adapters.sparkevolve.errors import ConnectionLostError
from dbt.adapters.sparkevolve.iceberg.schema_commits import commit_docs
from dbt.adapters.sparkevolve.impl import SparkEvolveAdapter
from tests.functional.harness import Run, Scenario

FAILING = "select assert_true(false, 'stop')"
VISIBLE = "This happened after the load: what this run has loaded into {} is visible, and stays."
ADDS_AGAIN = (
    "Running the model again would add the rows that it returns once more, so do by hand what is missing."
)
SAFE = "Running the model again is safe: it adds no row twice, and does all of this."


def messages(run: Run) -> dict[str, str]:
    """What dbt says of each node, by its name."""
    return {node.node.name: str(node.message) for node in run.result.result}


def described(scenario: Scenario, name: str, description: str) -> None:
    """Describe a model and its column ``id``, and have both stored."""
    config = {"persist_docs": {"relation": True, "columns": True}}
    model = {"name": name, "description": description, "config": config}
    model["columns"] = [{"name": "id", "description": description}]
    scenario.file(f"models/{name}.yml", yaml.safe_dump({"models": [model]}))


@pytest.mark.core
def test_a_failing_post_hook_says_that_the_rows_are_visible(scenario: Scenario) -> None:
    """For each kind of node, in a first run and in the next one; and whether another run adds rows again."""
    hooked = {"post_hook": ["select 1", FAILING]}
    for name, config in {
        "t": {},
        "appended": {"unique_key": None},
        "direct": {"unique_key": None, "publish": "direct"},
        "made": {"materialized": "table", "unique_key": None, "on_schema_change": None},
        "seen": {"materialized": "view", "unique_key": None, "on_schema_change": None},
    }.items():
        scenario.model("select 1 as id", name, **config, **hooked)
    described(scenario, "appended", "text")
    scenario.file(
        "snapshots/s.yml",
        yaml.safe_dump(
            {
                "snapshots": [
                    {
                        "name": "s",
                        "relation": "ref('source_of_s')",
                        "config": {"strategy": "check", "check_cols": "all", "unique_key": "id", **hooked},
                    }
                ]
            }
        ),
    )
    scenario.model(
        "select 1 as id", "source_of_s", materialized="view", unique_key=None, on_schema_change=None
    )
    for number in (1, 2):
        run = scenario.dbt("build")
        found = messages(run)
        for name in ("t", "appended", "direct", "made", "seen", "s"):
            again = ADDS_AGAIN if name in ("appended", "direct") else SAFE
            assert "stop" in found[name]
            done = "Done since then: descriptions. " if name == "appended" and number == 1 else ""
            note = (
                f"{VISIBLE.format(scenario.relation(name))} {done}Not done, or in part: post-hooks. {again}"
            )
            assert note in " ".join(found[name].splitlines()), found[name]
            assert "o row was written" not in found[name]
        assert scenario.rows("t") == [(1,)]
        assert scenario.rows("appended") == [(1,)] * number
        assert scenario.rows("direct") == [(1,)] * number
    assert scenario.docs("appended") == {"id": "text"}
    run = scenario.dbt("run", "--full-refresh", "-s", "appended", "t")
    found = messages(run)
    assert (
        "Another full refresh is safe, and does all of this; a run without one would add" in found["appended"]
    )
    assert SAFE in found["t"]
    assert scenario.rows("appended") == [(1,)]


def test_grants_that_this_spark_lacks_are_refused_before_anything_is_built(scenario: Scenario) -> None:
    for name, config in {
        "t": {"unique_key": None},
        "made": {"materialized": "table", "unique_key": None, "on_schema_change": None},
        "seen": {"materialized": "view", "unique_key": None, "on_schema_change": None},
    }.items():
        scenario.model("select 1 as id", name, **config, grants={"select": ["some`one"]})
    scenario.model("select 1 as id", "worded", grants={"select on x to y; --": ["someone"]})
    found = messages(scenario.fail())
    for name in ("t", "made", "seen"):
        assert (
            f"The `grants` of {scenario.relation(name)} cannot be applied: this Spark has no GRANT"
            in found[name]
        )
        assert "Nothing was built." in found[name]
    assert "'select on x to y; --' is no privilege, which are words such as `select`." in found["worded"]
    assert scenario.tables() == []


def test_descriptions_are_stored_before_the_load_and_as_often_tried_as_the_model_says(
    scenario: Scenario, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A description that cannot be stored leaves the rows as they were; with more retries it is stored."""
    scenario.model("select 1 as id", unique_key=None)
    scenario.run()
    described(scenario, "t", "new")
    conflicts = 0

    def lose_to_others(table: Table, *args: Any, **kwargs: Any) -> None:
        nonlocal conflicts
        if conflicts:
            conflicts -= 1
            raise CommitFailedException("somebody was faster")
        commit_docs(table, *args, **kwargs)

    monkeypatch.setattr("dbt.adapters.sparkevolve.iceberg.columns.commit_docs", lose_to_others)
    scenario.model("select 2 as id", unique_key=None, commit_retries=1)
    conflicts = 2
    message = scenario.fail().message
    assert f"The descriptions of {scenario.relation()} could not be stored in 2 attempts" in message
    assert "after the load" not in message
    assert scenario.rows() == [(1,)]

    scenario.model("select 2 as id", unique_key=None, commit_retries=6)
    conflicts = 6
    scenario.run()
    assert scenario.rows() == [(1,), (2,)]
    assert scenario.table().properties["comment"] == "new"


def test_a_connection_that_is_lost_in_the_last_refresh_is_no_failure(
    scenario: Scenario, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The rows are published, and a new connection sees them; what cannot be done after it says so."""
    scenario.model("select 1 as id", unique_key=None)
    scenario.run()
    answers = SparkAdapter.execute  # what sends statements
    lost: list[str] = []

    def lose(self: SparkEvolveAdapter, sql: str, *args: object, **kwargs: object) -> object:
        if sql.strip().lower().startswith("refresh table") and self.node().outcome is not None:
            lost.append(sql)
            raise ConnectionLostError(sql, "TTransportException: reset")
        return answers(self, sql, *args, **kwargs)  # type: ignore[arg-type]

    monkeypatch.setattr(SparkAdapter, "execute", lose)
    scenario.model("select 2 as id", unique_key=None, post_hook="select count(*) from {{ this }}")
    scenario.run()
    assert len(lost) == 1
    assert scenario.rows() == [(1,), (2,)]
