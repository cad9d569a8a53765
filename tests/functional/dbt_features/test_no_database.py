"""A project whose `generate_database_name` returns none: that is the profile's catalog."""

import json
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.functional.harness import Scenario

NONE = (
    "{% macro generate_database_name(custom_database_name=none, node=none) %}"
    "{% do return(custom_database_name) %}{% endmacro %}"
)


@pytest.mark.core
def test_no_database_is_the_catalog_of_the_profile(scenario: Scenario) -> None:
    scenario.file("macros/database.sql", NONE)
    kind = "{{ 'later' if is_incremental() else 'first' }}"
    scenario.model(f"select 1 as id, '{kind}' as v", unique_key=None)
    scenario.model("select * from {{ ref('t') }}", name="v", materialized="view", unique_key=None)
    scenario.model(
        "select 1 as id, 'x' as v", name="said", database="lake", catalog_name="lake", materialized="table"
    )
    scenario.model("select 2 as id, 'y' as v", name="unsaid", catalog_name="lake", materialized="table")
    scenario.model("select 1 as id", name="broken", materialized="table", unique_key=None)
    scenario.file(
        "models/sources.yml",
        f"sources: [{{name: src, database: lake, schema: {scenario.schema}, tables: [{{name: t}}]}}]",
    )
    scenario.run()
    again = scenario.run("--exclude", "broken")
    assert "`None`" not in again.log
    assert again.log.count(f"show tables in `lake`.`{scenario.schema}`") == 1
    assert scenario.rows() == [(1, "first"), (1, "later")]

    # A table that cannot be read is an error beside the others, under the names that dbt has of them.
    broken = Path(urlsplit(scenario.table("broken").metadata_location).path)
    content = broken.read_bytes()
    broken.unlink()
    docs = scenario.dbt("docs", "generate")
    catalog = json.loads((scenario.folder / "target/catalog.json").read_text())
    assert sorted(node.rpartition(".")[2] for node in catalog["nodes"]) == ["said", "t", "unsaid", "v"]
    assert next(iter(catalog["sources"])).endswith(".src.t")
    assert not docs.success
    (error,) = catalog["errors"]
    assert f"dbt docs cannot show `{scenario.schema}`.`broken`: FileNotFoundError: " in error
    broken.write_bytes(content)

    # That another model builds the table for dead letters is seen whichever of the two says so.
    letters = {"on_bad_rows": "dead_letter", "dead_letter_suffix": "_x"}
    scenario.model("select 1 as id, 'a' as v", name="sa", **letters)
    scenario.model("select 1 as id", name="sa_x", database="lake", materialized="table", unique_key=None)
    scenario.model("select 1 as id, 'a' as v", name="sb", database="lake", **letters)
    scenario.model("select 1 as id", name="sb_x", materialized="table", unique_key=None)
    refused = scenario.fail("--select", "sa", "sb")
    for name in ("sa", "sb"):
        assert f"and that is what model.case.{name}_x builds. Set another" in refused.log
    assert not {"sa", "sb"} & set(scenario.tables())
