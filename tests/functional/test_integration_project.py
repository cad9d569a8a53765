"""The integration project, as ``make demo`` runs it, on a session and, with another profile, on Thrift."""

import shutil
from pathlib import Path
from typing import Any

import pytest

from integration_tests import demo


@pytest.mark.core
def test_five_releases_end_in_the_expected_table(
    method: str,
    profile_target: dict[str, Any],
    catalog_properties: dict[str, str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    project = tmp_path / "emoji"
    ignored = shutil.ignore_patterns(".sparkevolve", "target", "logs")
    shutil.copytree(demo.PROJECT, project, ignore=ignored)
    if method == "thrift":
        monkeypatch.setenv("SPARK_HOST", str(profile_target["host"]))
        monkeypatch.setenv("SPARK_PORT", str(profile_target["port"]))
        monkeypatch.setenv("CATALOG_URI", catalog_properties["uri"])
        monkeypatch.setenv("CATALOG_WAREHOUSE", catalog_properties["warehouse"])
    assert demo.main(["--target", method, "--project-dir", str(project)]) == 0
    assert "All as expected." in capsys.readouterr().out
    if method == "session":
        # Nothing but dbt's own folders and the embedded catalog: no metastore_db, derby.log, spark-warehouse.
        made = {path.name for path in project.iterdir()} - {path.name for path in demo.PROJECT.iterdir()}
        assert made <= {".sparkevolve", "target", "logs", ".user.yml"}
