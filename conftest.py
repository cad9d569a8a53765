"""Options and plugins of the whole pytest run, which pytest takes from the root only."""

import pytest

pytest_plugins = ["dbt.tests.fixtures.project"]


def pytest_addoption(parser: pytest.Parser) -> None:
    """Let the functional tests run on a session or on a Thrift server, and with one catalog or another."""
    parser.addoption("--profile", choices=("session", "thrift"), default="session")
    parser.addoption("--catalog", choices=("sqlite", "postgresql", "mysql", "rest"), default="sqlite")
    parser.addoption("--mode", choices=("adapter", "package"), default="adapter", help="what is tested")
    parser.addoption("--soak", type=int, default=14, help="how often the model of test_soak.py is run")
