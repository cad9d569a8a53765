"""The package from a Git repository, and the project in it, as a user has them."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import Any

import pytest
import yaml
from dbt.adapters.factory import reset_adapters
from dbt.cli.main import dbtRunner
from pyiceberg.catalog import Catalog

from tests.functional.package.projects import PACKAGE

MADE = shutil.ignore_patterns("target", "logs", "dbt_packages", "package-lock.yml", ".user.yml")


def git(folder: Path, *arguments: str) -> None:
    """Run Git without the settings of whoever runs the tests."""
    author = {
        f"GIT_{who}_{what}": "dbt@localhost" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")
    }
    environment = {**os.environ, **author, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}
    subprocess.run(["git", *arguments], cwd=folder, env=environment, check=True, capture_output=True)


@pytest.fixture
def repository(tmp_path: Path) -> str:
    """The address of a Git repository that has the package in a folder, under the tag v1."""
    work, bare = tmp_path / "work", tmp_path / "bare.git"
    shutil.copytree(PACKAGE, work / "dbt_package", ignore=MADE)
    git(work, "init", "--quiet")
    git(work, "add", ".")
    git(work, "commit", "--quiet", "--message", "The package")
    git(work, "tag", "v1")
    git(tmp_path, "clone", "--quiet", "--bare", str(work), str(bare))
    return bare.as_uri()


@pytest.fixture
def own_project(
    repository: str,
    tmp_path: Path,
    stock_target: dict[str, Any],
    lake: Catalog,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Path]:
    """The package's own project, that has the package from Git, on the tests' Spark."""
    project = tmp_path / "own"
    shutil.copytree(PACKAGE / "integration_tests", project, ignore=MADE)
    package = {"git": repository, "subdirectory": "dbt_package", "revision": "v1"}
    (project / "packages.yml").write_text(yaml.safe_dump({"packages": [package]}))
    profiles = yaml.safe_load((project / "profiles.yml").read_text(encoding="utf-8"))
    name = next(iter(profiles))
    profiles[name]["outputs"][profiles[name]["target"]] = {**stock_target, "schema": "own_project"}
    (project / "profiles.yml").write_text(yaml.safe_dump(profiles))
    monkeypatch.chdir(project)
    monkeypatch.setenv("DBT_SEND_ANONYMOUS_USAGE_STATS", "false")
    reset_adapters()
    yield project
    for table in lake.list_tables("own_project"):
        lake.drop_table(table)
    lake.drop_namespace("own_project")


def test_the_packages_own_project_is_as_expected_from_git(own_project: Path, lake: Catalog) -> None:
    commands = (["deps"], *(["build", "--vars", f"release: {release}"] for release in (1, 2)))
    for command in commands:
        assert dbtRunner().invoke(command).success, command
    assert (own_project / "dbt_packages/sparkevolve/macros/incremental.sql").exists()
    table = lake.load_table(("own_project", "latest_orders"))
    assert [(f.name, str(f.field_type)) for f in table.schema().fields] == [
        ("id", "int"),
        ("amount", "long"),
        ("note", "string"),
        ("paid", "date"),
    ]
    rows = [tuple(row.values()) for row in table.scan().to_arrow().to_pylist()]
    assert sorted(rows, key=lambda row: row[0]) == [
        (1, 10, "first", None),
        (2, 3_000_000_000, None, date(2024, 1, 2)),
        (3, 30, None, date(2024, 1, 3)),
    ]
