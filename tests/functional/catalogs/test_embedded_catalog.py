"""The embedded catalog under load: many threads, several processes, one SQLite file."""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from dbt.cli.main import dbtRunner
from pyiceberg.catalog import load_catalog

from tests.functional.conftest import DRIVERS, FAST
from tests.functional.servers import SHORT_LIVED_JAVA

MODELS = [f"m{number:02}" for number in range(24)]
HALVES = (MODELS[:12], MODELS[12:])

# Each version adds a column of its own and loses that of the version before. Even models replace the row of
# key 0 and add one; odd ones append.
MODEL = """
{{{{ config(materialized='incremental', on_schema_change='append_new_columns_preserve', {config}) }}}}
select 0 as id, {{{{ var('v') }}}} as v, {{{{ var('v') }}}} as c{{{{ var('v') }}}}
union all
select {{{{ var('v') }}}} as id, {{{{ var('v') }}}} as v, {{{{ var('v') }}}} as c{{{{ var('v') }}}}
"""


@pytest.fixture
def project(tmp_path: Path, method: str) -> Path:
    """Make a project of many models on the embedded catalog."""
    if method != "session":
        pytest.skip("the embedded catalog belongs to the session method")
    folder = tmp_path / "a project with spaces"
    (folder / "models").mkdir(parents=True)
    for number, name in enumerate(MODELS):
        config = "unique_key='id'" if number % 2 == 0 else "incremental_strategy='append'"
        (folder / "models" / f"{name}.sql").write_text(MODEL.format(config=config))
    flags = {"send_anonymous_usage_stats": False, "write_json": False}
    (folder / "dbt_project.yml").write_text(
        yaml.safe_dump({"name": "stress", "version": "1.0.0", "profile": "stress", "flags": flags})
    )
    output: dict[str, Any] = {"type": "sparkevolve", "method": "session", "catalog": "lake", "schema": "s"}
    java = {"spark.driver.extraJavaOptions": SHORT_LIVED_JAVA}
    output |= {"threads": 8, "spark_config": {**FAST, **java, **DRIVERS}}
    profile = {"stress": {"target": "t", "outputs": {"t": output}}}
    (folder / "profiles.yml").write_text(yaml.safe_dump(profile))
    return folder


def arguments(project: Path, version: int, models: list[str]) -> list[str]:
    where = ["--project-dir", str(project), "--profiles-dir", str(project)]
    target = ["--target-path", str(project / f"target_{models[0]}"), "--log-path", str(project / models[0])]
    return ["--quiet", "run", "--vars", f"v: {version}", "--select", *models, *where, *target]


def test_threads_and_processes_lose_no_commit(project: Path) -> None:
    for version in (1, 2):
        result = dbtRunner().invoke(arguments(project, version, MODELS))
        assert result.success, [node.message for node in result.result or () if node.status != "success"]

    processes = [
        subprocess.Popen(
            [sys.executable, "-m", "dbt.cli.main", *arguments(project, 3, half)],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env=os.environ | {"DO_NOT_TRACK": "1"},
        )
        for half in HALVES
    ]
    outputs = [process.communicate(timeout=600)[0] for process in processes]
    assert [process.returncode for process in processes] == [0, 0], outputs

    folder = project / ".sparkevolve"
    lake = load_catalog(
        "lake", type="sql", uri=f"sqlite:///{folder}/catalog.db", warehouse=f"file://{folder}/warehouse"
    )
    assert sorted(name for _, name in lake.list_tables("s")) == MODELS
    for number, name in enumerate(MODELS):
        table = lake.load_table(("s", name))
        assert [field.name for field in table.schema().fields] == ["id", "v", "c1", "c2", "c3"]
        assert [field.field_id for field in table.schema().fields] == [1, 2, 3, 4, 5]
        assert len(table.metadata.schemas) == 3
        written = (3,) if number % 2 == 0 else (1, 2, 3)
        expected = [(0, v) for v in written] + [(v, v) for v in (1, 2, 3)]
        rows = table.scan().to_arrow().to_pylist()
        assert sorted((row["id"], row["v"]) for row in rows) == expected
        for row in rows:
            assert [row[f"c{v}"] for v in range(1, 4)] == [v if v == row["v"] else None for v in range(1, 4)]


@pytest.mark.core
def test_the_project_gets_no_litter(project: Path) -> None:
    before = {path.name for path in project.iterdir()}
    for version in (1, 2):
        assert dbtRunner().invoke(arguments(project, version, MODELS[:1])).success
    # Of the staged batch Hadoop would leave a folder with hidden checksums.
    assert [path.name for path in (project / ".sparkevolve" / "warehouse" / "s").iterdir()] == ["m00"]
    assert {path.name for path in project.iterdir()} - before == {".sparkevolve", "target_m00", "m00"}
    assert (project / ".sparkevolve" / ".gitignore").read_text() == "*\n"


def test_a_copy_of_the_project_writes_nothing_into_the_original(project: Path) -> None:
    assert dbtRunner().invoke(arguments(project, 1, MODELS[:1])).success
    folder = project / ".sparkevolve"
    assert folder.stat().st_mode & 0o777 == 0o700
    files = {path: path.stat().st_mtime_ns for path in (folder / "warehouse").rglob("*") if path.is_file()}
    copy = project.with_name("copy")
    shutil.copytree(project, copy)
    result = dbtRunner().invoke(arguments(copy, 2, MODELS[:1]))
    assert not result.success
    assert f"The embedded catalog {copy}/.sparkevolve is a copy of {folder}, and" in str(result.exception)
    kept = {path: path.stat().st_mtime_ns for path in (folder / "warehouse").rglob("*") if path.is_file()}
    assert kept == files
    shutil.rmtree(copy / ".sparkevolve")
    assert dbtRunner().invoke(arguments(copy, 2, MODELS[:1])).success
