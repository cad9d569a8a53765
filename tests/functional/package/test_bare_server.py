"""A Thrift server that has an Iceberg catalog and none of Iceberg's SQL extensions."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyiceberg.catalog import load_catalog

from dbt.adapters.sparkevolve.iceberg.catalog_settings import resolve
from tests.functional.harness import Scenario, thrift_runner
from tests.functional.package.projects import package_project, target_of_stock
from tests.functional.servers import SHORT_LIVED_JAVA
from tests.functional.thrift_server import ThriftServer, iceberg_packages

ADDS = {"on_schema_change": "append_new_columns"}


@pytest.fixture
def bare_project(tmp_path: Path, method: str) -> Iterator[Scenario]:
    """A project with the package on such a server."""
    if method == "thrift":
        pytest.skip("starts a server of its own")
    (tmp_path / "lake").mkdir()
    properties = {
        "type": "sql",
        "uri": f"sqlite:///{tmp_path}/lake/catalog.db",
        "warehouse": f"file://{tmp_path}/lake/warehouse",
    }
    settings = resolve("lake", properties, tmp_path)
    settings.prepare()
    conf: dict[str, Any] = {
        "spark.sql.shuffle.partitions": "1",
        "spark.sql.codegen.wholeStage": "false",
        "spark.driver.extraJavaOptions": SHORT_LIVED_JAVA,
        **settings.spark,
        "spark.sql.defaultCatalog": "lake",
    }
    conf.pop("spark.sql.extensions", None)
    (tmp_path / "server").mkdir()
    with ThriftServer(tmp_path / "server", conf, iceberg_packages()) as server:
        reached = {"port": server.port}
        target = target_of_stock("thrift", reached, properties, tmp_path)
        yield package_project(
            tmp_path / "project", "bare", target, thrift_runner(reached), load_catalog("lake", **properties)
        )


def test_without_extensions_rows_go_straight_into_the_table_or_nowhere(bare_project: Scenario) -> None:
    bare_project.model("select 1 as id, 'a' as b union all select 2, 'b'", **ADDS)
    bare_project.run()
    before = bare_project.state()
    bare_project.model("select 2 as id, cast(1 as bigint) as n", **ADDS)
    run = bare_project.fail()
    assert "bare.t cannot be loaded on a branch: this Spark has no `spark.sql.extensions`" in run.message
    assert "or set `publish: direct` in the model" in run.message
    assert bare_project.state() == before
    assert bare_project.tables() == ["t"]
    check = bare_project.dbt("run-operation", "sparkevolve.check")
    assert not check.success
    assert "Without them there are no branches, and each model needs `publish: direct`" in check.log
    bare_project.model("select 2 as id, cast(1 as bigint) as n", **ADDS, publish="direct")
    bare_project.run()
    assert bare_project.rows() == [(1, "a", None), (2, None, 1)]
    # `keep` and audits need a branch whatever `publish` says.
    config = {**ADDS, "publish": "direct", "removed_columns": "keep"}
    bare_project.model("select 2 as id, cast(2 as bigint) as n", **config)
    assert "cannot be loaded on a branch" in bare_project.fail().message
    assert bare_project.rows() == [(1, "a", None), (2, None, 1)]
