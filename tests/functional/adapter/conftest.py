"""What the suites of dbt-tests-adapter need besides the fixtures of all functional tests."""

import os
from collections.abc import Iterator

import pytest
from dbt.adapters.factory import reset_adapters


@pytest.fixture(scope="class", autouse=True)
def fresh_adapter() -> None:
    """Forget the adapter of earlier tests: the suites would take it, and its profile."""
    reset_adapters()


@pytest.fixture(scope="class")
def logs_dir(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Keep dbt's logs out of the repository."""
    folder = str(tmp_path_factory.mktemp("logs"))
    os.environ["DBT_LOG_PATH"] = folder
    yield folder
    del os.environ["DBT_LOG_PATH"]
