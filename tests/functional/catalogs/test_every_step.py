"""Each step of what this adapter is for, on each catalog that is a server: they differ in nothing."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.functional.catalogs.test_by_profile_alone import LenientMetastore
from tests.functional.catalogs.test_hive_metastore import check_all_types
from tests.functional.catalogs.test_servers import meet_other_writers
from tests.functional.catalogs.test_strict_rest import FIRST, FIRST_ROWS, LATER, LATER_ROWS, STRATEGIES
from tests.functional.conftest import running_catalog, scenario_of
from tests.functional.duckdb_reader import duckdb_rows
from tests.functional.harness import Scenario
from tests.functional.metastore import HiveMetastore
from tests.functional.worker import Worker

pytestmark = pytest.mark.servers

KEPT: dict[str, Any] = {"removed_columns": "keep"}
MODELS = {**STRATEGIES, "kept": KEPT}
NAMES = [*MODELS, "cities", "lettered", "lettered_dlt", "plain", "versions"]
PROPERTIES = """
models:
  - name: by_key
    description: it's
    columns: [{name: id, description: a key, data_tests: [unique, not_null]}]
    config: {persist_docs: {relation: true, columns: true}, audits: ['id is not null']}
"""
SNAPSHOT = (
    "{% snapshot versions %}{{ config(unique_key='id', strategy='check', check_cols=['v']) }}"
    "select id, v from {{ ref('by_key') }}{% endsnapshot %}"
)


@pytest.fixture(params=["rest", "postgresql", "mysql", "hive"])
def placed(
    request: pytest.FixtureRequest,
    method: str,
    spark_sql: object,
    profile_target: dict[str, Any],
    tmp_path: Path,
) -> Iterator[Scenario]:
    """A dbt project on a catalog of each kind; Spark runs already."""
    if method != "session":
        pytest.skip("the server has one catalog")
    folder = tmp_path / "server"
    folder.mkdir()
    if request.param != "hive":
        with running_catalog(request.param, folder) as properties:
            yield from scenario_of(properties, profile_target, tmp_path)
        return
    if not HiveMetastore.can_run():
        pytest.skip("this pyspark lacks Derby's tools")
    # Before Hive 3, what is inside of a struct changes only where its operator lets it.
    with LenientMetastore(folder) as metastore:
        yield from scenario_of(metastore.properties, profile_target, tmp_path)


def build(scenario: Scenario, *arguments: str) -> None:
    run = scenario.dbt(*(arguments or ("build",)))
    assert run.success, run.message or run.log


def is_clean(scenario: Scenario, *names: str) -> None:
    assert scenario.tables() == sorted(names)
    for name in names:
        assert set(scenario.table(name).metadata.refs) == {"main"}, name


def test_every_step(placed: Scenario) -> None:
    scenario = placed
    create_and_evolve(scenario)
    refuse(scenario)
    refresh(scenario)
    build(scenario, "docs", "generate")
    documented = json.loads((scenario.folder / "target/catalog.json").read_text())["nodes"]
    columns = ["id", "v", "s", "gone", "added"]
    assert list(documented["model.case.by_key"]["columns"]) == columns
    assert documented["model.case.by_key"]["metadata"]["comment"] == "it's"
    is_clean(scenario, *NAMES)


def create_and_evolve(scenario: Scenario) -> None:
    """Create, lose and add columns, widen one, add a field in a struct: by each strategy, and keep."""
    letters = {"on_bad_rows": "dead_letter"}
    for name, config in MODELS.items():
        scenario.model(FIRST_ROWS, name=name, **config)
    scenario.model("select 1 as id, 5 as n", name="lettered", **letters)
    scenario.model("select id, v from {{ ref('by_key') }}", name="plain", materialized="table")
    scenario.file("seeds/cities.csv", "id,name\n1,Kyjiw\n")
    scenario.file("snapshots/versions.sql", SNAPSHOT)
    scenario.file("models/properties.yml", PROPERTIES)
    build(scenario, "debug")
    build(scenario)
    ids = {name: scenario.field_ids(name) for name in MODELS}
    for name, config in MODELS.items():
        scenario.model(LATER_ROWS, name=name, **config)
    scenario.model("select * from values (2, '6'), (3, 'six') as rows(id, n)", name="lettered", **letters)
    scenario.file("seeds/cities.csv", "id,name\n1,Kyjiw\n2,Lwiw\n")
    build(scenario)
    for name in ("by_key", "straight", "windowed"):
        assert scenario.rows(name) == LATER, name
        assert sorted(duckdb_rows(scenario.table(name))) == LATER, name
    # MERGE and `keep` leave what the model no longer returns.
    for name in ("merged", "kept"):
        assert scenario.rows(name) == [(*LATER[0][:3], "g", "n"), LATER[1]], name
    assert scenario.rows("appended") == [FIRST, *LATER]
    assert (scenario.rows("lettered"), len(scenario.rows("lettered_dlt"))) == ([(1, 5), (2, 6)], 1)
    for name in MODELS:
        assert ids[name].items() <= scenario.field_ids(name).items(), name
        assert scenario.types(name)["v"] == "long", name
    assert scenario.docs("by_key")["id"] == "a key"
    assert scenario.rows("plain") == [(1, 5000000000), (2, 20)]
    assert scenario.rows("cities") == [(1, "Kyjiw"), (2, "Lwiw")]
    versions = sorted((row[0], row[1], row[-1] is None) for row in scenario.rows("versions"))
    assert versions == [(1, 10, False), (1, 5000000000, True), (2, 20, True)]
    is_clean(scenario, *NAMES)


def refuse(scenario: Scenario) -> None:
    """Leave the table as it was: after a type that does not fit, and after an audit that fails."""
    before = scenario.state("by_key")
    scenario.model("select 1 as id, 'text' as v", name="by_key", **MODELS["by_key"])
    assert "Column `v` is bigint in the table" in scenario.fail("--select", "by_key").message
    assert scenario.state("by_key") == before
    # The columns are there by then, and the rows are not published.
    scenario.model("select cast(null as int) as id, 1 as v", name="by_key", **MODELS["by_key"])
    assert "audit" in scenario.fail("--select", "by_key").message
    assert scenario.rows("by_key") == before[1]
    is_clean(scenario, *NAMES)


def refresh(scenario: Scenario) -> None:
    """Replace all rows, with the columns of old and without them."""
    scenario.model("select 9 as id, 1 as v", name="by_key", **MODELS["by_key"])
    scenario.model("select 9 as id, 1 as v", name="merged", full_refresh_schema="replace", **MODELS["merged"])
    build(scenario, "run", "--full-refresh", "--select", "by_key", "merged")
    assert scenario.rows("by_key") == [(9, 1, None, None, None)]
    assert scenario.rows("merged") == [(9, 1)]


@pytest.mark.parametrize("publish", ["branch", "direct"])
def test_every_type(placed: Scenario, publish: str) -> None:
    check_all_types(placed, publish)


@pytest.mark.parametrize("placed", ["nessie"], indirect=True)
def test_every_type_where_tables_have_no_branches(placed: Scenario) -> None:
    placed.model("select 1 as id", "branched")
    refused = placed.fail("--select", "branched")
    assert "with `publish: branch`: the catalog `lake` (REST) keeps no branches of a table" in refused.message
    assert "Set `publish: direct`" in refused.message
    assert placed.tables() == []
    (placed.folder / "models/branched.sql").unlink()
    check_all_types(placed, "direct")


def test_other_writers_and_a_process_that_is_killed(
    placed: Scenario, monkeypatch: pytest.MonkeyPatch
) -> None:
    scenario = placed
    meet_other_writers(scenario, monkeypatch)
    monkeypatch.undo()
    steps = {
        "m_staged": "staged",
        "m_evolved": "evolved",
        "m_inserted": "inserted",
        "m_published": "published",
    }
    for name in steps:
        scenario.model("select 1 as id, 'a' as v, 10 as gone", name)
    build(scenario, "run", "--select", *steps)
    for name in steps:
        scenario.model("select 1 as id, 'B' as v, 7 as n", name)
    with Worker() as worker:
        worker.run_until_killed(scenario, steps)
    old, replaced = [(1, "a", 10)], [(1, "B", None, 7)]
    assert scenario.rows("m_staged") == old
    assert scenario.rows("m_evolved") == scenario.rows("m_inserted") == [(*old[0], None)]
    assert scenario.rows("m_published") == replaced
    build(scenario, "run", "--select", *steps)
    for name in steps:
        assert scenario.rows(name) == replaced, name
    is_clean(scenario, "t", *steps)
