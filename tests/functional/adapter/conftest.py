"""What the suites of dbt-tests-adapter need besides the fixtures of all functional tests."""

import os
from collections.abc import Iterator

import pytest
from dbt.adapters.factory import reset_adapters


@pytest.fixture(scope="class", autouse=True)
def fresh_adapter() -> None:
    """Forget the adapter of earlier tests: the suites would take it, and its profile."""
    reset_adapters()


@pytest.fixture(scope="class", autouse=True)
def written_artifacts(request: pytest.FixtureRequest) -> Iterator[None]:
    """Write ``manifest.json`` and the like only for classes that read it, by their mark.

    Writing them takes a quarter of these suites' time in Python, in two to ten commands of each test.
    """
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("DBT_WRITE_JSON", "1" if request.node.get_closest_marker("writes_artifacts") else "0")
        yield


@pytest.fixture(scope="class")
def logs_dir(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Keep dbt's logs out of the repository."""
    folder = str(tmp_path_factory.mktemp("logs"))
    os.environ["DBT_LOG_PATH"] = folder
    yield folder
    del os.environ["DBT_LOG_PATH"]
