"""The second way to publish, for suites that run in both."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from dbt.tests.util import run_dbt


class PublishDirect:
    """Run a suite once more, with `publish: direct` in the project."""

    @pytest.fixture(scope="class")
    def dbt_project_yml(self, dbt_project_yml: dict[str, Any], project_root: Any) -> dict[str, Any]:
        dbt_project_yml.setdefault("models", {})["+publish"] = "direct"
        Path(project_root, "dbt_project.yml").write_text(yaml.safe_dump(dbt_project_yml))
        return dbt_project_yml

    def test_the_models_publish_directly(self, project: Any) -> None:
        nodes = run_dbt(["parse"]).nodes.values()
        assert {n.config.get("publish") for n in nodes if n.resource_type == "model"} == {"direct"}
