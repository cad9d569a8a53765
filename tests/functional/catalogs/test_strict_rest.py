"""What Amazon S3 Tables and Glue's REST endpoint refuse: all works by the profile alone, or says why not."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyiceberg.catalog import load_catalog

from tests.functional.duckdb_reader import duckdb_rows
from tests.functional.harness import Scenario, session_runner
from tests.functional.rest_catalog import RestCatalog
from tests.functional.strict_rest import RULES, StrictRest

IS_INCREMENTAL = "{{ 'later' if is_incremental() else 'first' }}"
STRATEGIES: dict[str, dict[str, Any]] = {
    "by_key": {"incremental_strategy": "delete+insert"},
    "straight": {"incremental_strategy": "delete+insert", "publish": "direct"},
    "merged": {"incremental_strategy": "merge"},
    "appended": {"incremental_strategy": "append", "unique_key": None},
    "windowed": {"incremental_strategy": "insert_overwrite", "partition_by": ["id"], "unique_key": None},
}
FIRST_ROWS = "select 1 as id, 10 as v, named_struct('x', 1) as s, 'g' as gone"
LATER_ROWS = (
    "select * from values (1, 5000000000, named_struct('x', 2, 'y', 3), 'n'), (2, 20, null, 'm') "
    "as source(id, v, s, added)"
)
FIRST = (1, 10, {"x": 1, "y": None}, "g", None)
LATER = [(1, 5000000000, {"x": 2, "y": 3}, None, "n"), (2, 20, None, None, "m")]


class StrictScenario(Scenario):
    """A dbt project on a catalog that refuses what a service refuses; nobody minds what is left in it."""

    double: StrictRest
    warehouse: Path

    def clean_up(self) -> None:
        """Leave everything: the server ends with the module."""

    def is_clean(self, *names: str) -> None:
        """See that nothing was refused, and that of staged batches no table, branch or file is left."""
        assert self.double.refused == []
        assert self.tables() == sorted(names)
        for name in names:
            assert set(self.table(name).metadata.refs) == {"main"}, name
        left = {
            path.relative_to(self.warehouse).parts[1]
            for path in self.warehouse.glob(f"{self.schema}/*/**/*.*")
        }
        assert left == set(names)


# The first is the stricter one, which is in the smaller tier too.
@pytest.fixture(params=["s3tables", pytest.param("glue", marks=pytest.mark.servers)])
def strict(
    request: pytest.FixtureRequest,
    rest_server: RestCatalog,
    profile_target: dict[str, Any],
    tmp_path: Path,
) -> Iterator[StrictScenario]:
    """A dbt project on a catalog with the rules of a service."""
    properties, warehouse = rest_server.properties, rest_server.work_dir / "warehouse"
    with StrictRest(RULES[request.param], properties["uri"]) as double:
        profile = {**profile_target, "catalog_properties": double.properties}
        lake = load_catalog("lake", **properties)
        scenario = StrictScenario(
            tmp_path / "project",
            f"case_{request.param}_{request.function.__name__[5:9]}",
            profile,
            session_runner(profile, tmp_path),
            lake,
        )
        scenario.double, scenario.warehouse = double, warehouse
        # Glue's endpoint wants to be told where a table is to be; its schemas have a folder.
        folder = {"location": f"file://{warehouse}/{scenario.schema}"}
        lake.create_namespace(scenario.schema, folder if request.param == "glue" else {})
        yield scenario


def test_tables_come_and_go_by_the_rules(strict: StrictScenario) -> None:
    scenario = strict
    scenario.model(f"select 1 as id, 10 as v, '{IS_INCREMENTAL}' as run", audits=["id > 0"])
    scenario.model("select id, v from {{ ref('t') }}", name="plain", materialized="table")
    scenario.file("seeds/cities.csv", "id,name\n1,Kyjiw\n")
    scenario.file(
        "snapshots/kept.sql",
        "{% snapshot kept %}{{ config(unique_key='id', strategy='check', check_cols=['v']) }}"
        "select * from {{ ref('plain') }}{% endsnapshot %}",
    )
    # The catalog takes the empty table, and nothing that would fill or drop it: as if the run were killed.
    scenario.double.closed = "t"
    broken = scenario.dbt("run", "--select", "t")
    assert "closed" in broken.message
    assert scenario.rows() == []
    assert scenario.table().metadata.snapshots == []
    unfilled = scenario.table().metadata.table_uuid
    scenario.double.closed = ""
    scenario.double.refused.clear()

    run = scenario.dbt("build")
    assert run.success, run.message or run.log
    assert scenario.table().metadata.table_uuid != unfilled
    assert scenario.rows() == [(1, 10, "first")]
    assert scenario.field_ids() == {"id": 1, "v": 2, "run": 3}
    assert scenario.schemas() == 1
    assert scenario.rows("plain") == [(1, 10)]
    assert scenario.rows("cities") == [(1, "Kyjiw")]
    scenario.is_clean("cities", "kept", "plain", "t")

    uuids = {name: scenario.table(name).metadata.table_uuid for name in scenario.tables()}
    scenario.model(
        f"select 1 as id, 5000000000 as v, '{IS_INCREMENTAL}' as run, 'n' as added", audits=["id > 0"]
    )
    scenario.file("seeds/cities.csv", "id,name\n1,Kyjiw\n2,Lwiw\n")
    run = scenario.dbt("build")
    assert run.success, run.message or run.log
    assert scenario.rows() == [(1, 5000000000, "later", "n")]
    assert scenario.rows("plain") == [(1, 5000000000)]
    assert scenario.rows("cities") == [(1, "Kyjiw"), (2, "Lwiw")]
    versions = [(row[1], row[-1] is None) for row in scenario.rows("kept")]
    assert sorted(versions) == [(10, False), (5000000000, True)]
    # Nothing was dropped and recreated.
    assert {name: scenario.table(name).metadata.table_uuid for name in scenario.tables()} == uuids
    scenario.is_clean("cities", "kept", "plain", "t")

    # A table that a failed run has made is not there for its readers.
    scenario.model("select cast(raise_error('oh') as int) as id", name="broken")
    hook = f"create table {scenario.relation('hooked')} (x int) using iceberg"
    scenario.model("select 1 as id", name="plain", materialized="view", pre_hook=hook)
    run = scenario.dbt("run", "--select", "broken", "plain")
    failed = {result.node.name: str(result.message) for result in run.result.result}
    assert "oh" in failed["broken"]
    kind = scenario.double.kind
    assert (
        f"model.case.plain cannot be built as {scenario.relation('plain')}: the catalog `lake` ({kind}) has "
        "no views. Set `materialized` to `table`, `incremental` or `ephemeral`. Nothing of it was built."
    ) in " ".join(failed["plain"].split())
    assert scenario.rows("plain") == [(1, 5000000000)]
    scenario.file(
        "tests/fails.sql",
        "{{ config(store_failures_as='view', alias='fails') }} select id from {{ ref('plain') }}",
    )
    run = scenario.dbt("test", "--select", "fails")
    assert (
        "The failures of test.case.fails cannot be stored as "
        f"`lake`.`{scenario.schema}_dbt_test__audit`.`fails`: the catalog `lake` ({kind}) has no views. "
        "Set `store_failures_as` to `table` or `ephemeral`."
    ) in " ".join(run.message.split())
    scenario.is_clean("cities", "kept", "plain", "t")
    # What it can do is asked once by each command, and once by Spark.
    asked = [path for _, path in scenario.double.taken if path.startswith("/v1/config")]
    assert len(asked) <= 6


@pytest.mark.servers
def test_every_step_by_the_rules(strict: StrictScenario) -> None:
    scenario = strict
    for name, config in STRATEGIES.items():
        scenario.model(FIRST_ROWS, name=name, **config)
    letters = {"on_bad_rows": "dead_letter"}
    scenario.model("select 1 as id, 5 as n", name="lettered", **letters)
    scenario.model("select 1 as id", name="checked", materialized="table")
    scenario.file(
        "models/properties.yml",
        "models: [{name: by_key, description: it's, columns: [{name: id, description: a key}],"
        " config: {persist_docs: {relation: true, columns: true}, audits: ['id is not null']}},"
        " {name: checked, columns: [{name: id, data_tests: [{accepted_values: {values: [7],"
        " config: {severity: warn, store_failures: true, schema: failures}}}]}]}]\n",
    )
    debug = scenario.dbt("debug")
    assert debug.success, debug.log
    assert f"catalog `lake`: {scenario.double.kind}, in 127.0.0.1:" in debug.log
    assert "      makes a table with its rows in one commit: no" in debug.log
    assert "      has views: no" in debug.log
    for _ in range(2):
        run = scenario.dbt("build")
        assert run.success, run.message or run.log
    for name, config in STRATEGIES.items():
        scenario.model(LATER_ROWS, name=name, **config)
    scenario.model("select * from values (2, '6'), (3, 'six') as rows(id, n)", name="lettered", **letters)
    run = scenario.dbt("build")
    assert run.success, run.message or run.log
    for name in ("by_key", "straight", "windowed"):
        assert scenario.rows(name) == LATER, name
        assert sorted(duckdb_rows(scenario.table(name))) == LATER, name
    # MERGE keeps what the model no longer returns.
    assert scenario.rows("merged") == [(*LATER[0][:3], "g", "n"), LATER[1]]
    for name in STRATEGIES:
        assert scenario.columns(name) == ["id", "v", "s", "gone", "added"], name
        assert [scenario.field_ids(name)[column] for column in ("id", "v", "s", "gone")] == [1, 2, 3, 4]
    assert scenario.rows("appended") == [FIRST, FIRST, *LATER]
    assert scenario.rows("lettered") == [(1, 5), (2, 6)]
    assert len(scenario.rows("lettered_dlt")) == 1
    assert scenario.docs("by_key")["id"] == "a key"
    names = [*STRATEGIES, "lettered", "lettered_dlt", "checked"]
    scenario.is_clean(*names)

    scenario.model("select 9 as id, 1 as v", name="by_key")
    scenario.model("select 9 as id, 1 as v", name="merged", full_refresh_schema="replace")
    scenario.model("select * from values (3, '8') as rows(id, n)", name="lettered", **letters)
    run = scenario.dbt("run", "--full-refresh", "--select", "by_key", "merged", "checked")
    assert run.success, run.message or run.log
    assert scenario.rows("by_key") == [(9, 1, None, None, None)]
    assert scenario.rows("merged") == [(9, 1)]
    args = json.dumps({"model": "lettered"})
    scenario.model("select 1 as id, 5 as n", name="lettered", dead_letter_suffix="_dlt", **letters)
    replay = scenario.dbt("run-operation", "replay_dead_letters", "--args", args)
    assert replay.success, replay.log
    assert scenario.dbt("docs", "generate").success
    documented = json.loads((scenario.folder / "target/catalog.json").read_text())["nodes"]
    assert list(documented["model.case.by_key"]["columns"]) == ["id", "v", "s", "gone", "added"]
    scenario.is_clean(*names)

    # S3 Tables refuses the name, and Glue keeps it in other letters, in which dbt would not find it.
    scenario.model("select 1 as id", name="upper", alias="Upper", materialized="table")
    run = scenario.fail("--select", "upper")
    assert "takes names of lower-case letters, digits and underscores only" in run.message
    scenario.is_clean(*names)
