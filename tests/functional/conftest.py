"""Fixtures of the functional tests: real dbt, real Spark, a real Iceberg catalog that PyIceberg shares.

One Spark (a session in this process, or a Thrift server) and one catalog serve the whole pytest run; each
test class or scenario has a schema of its own.
"""

import gc
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import pyspark
import pytest
from dbt_common.behavior_flags import BehaviorFlagRendered
from dbt_common.tests import enable_test_caching
from pyiceberg.catalog import Catalog, load_catalog

from dbt.adapters.sparkevolve.iceberg.catalog_settings import JDBC_DRIVERS, resolve
from dbt.adapters.sparkevolve.spark.jars import iceberg_runtime
from dbt.adapters.sparkevolve.spark.session_config import EXTENSIONS
from tests.functional.harness import Scenario, SqlRunner, session_runner, thrift_runner
from tests.functional.intruders import intrude as intrude
from tests.functional.java_names import remember_java_names
from tests.functional.java_parser import JavaParser
from tests.functional.metastore import HiveMetastore
from tests.functional.mysql import MariaDb
from tests.functional.nessie import Nessie
from tests.functional.package.losses import why_skipped
from tests.functional.package.projects import package_project, target_of_stock
from tests.functional.postgres import Postgres
from tests.functional.rest_catalog import RestCatalog
from tests.functional.servers import SHORT_LIVED_JAVA
from tests.functional.thrift_server import ThriftServer, iceberg_packages
from tests.metadata_files import BadMetadataError, MetadataFiles
from tests.printed_profiles import as_printed
from tests.table_metadata import CLOCK_TOLERANCE_MS

# Small data, many statements: what makes each statement cheap.
FAST = {
    "spark.sql.shuffle.partitions": "1",
    "spark.default.parallelism": "1",
    "spark.sql.codegen.wholeStage": "false",
    # The text of each plan is for Spark's page, which nobody opens.
    "spark.sql.ui.explainMode": "simple",
    "spark.driver.memory": "2g",
}
# One Spark serves all tests of a process, whichever begins, and some have a catalog of their own.
DRIVERS = {"spark.jars.packages": ",".join(dict.fromkeys(JDBC_DRIVERS.values()))}

# dbt's own switch for suites like this one: a process parses the text of a macro once, not in each command.
enable_test_caching()
remember_java_names()
# Each command makes some hundred thousand objects that live to its end. Python would look fifty times for
# those that are in no use any more: a fifth of what dbt's parser takes.
gc.set_threshold(50_000, 10, 10)
# dbt looks through the whole call stack for the module that defines a flag of its behaviour, for each flag of
# each command. It is the same module each time; under pytest, whose stack is deep, that took a seventh of the
# tests' time.
BehaviorFlagRendered._default_source = staticmethod(cache(BehaviorFlagRendered._default_source))

# The modules that take longest begin, so that no worker is left alone with one of them at the end; those with
# the fewest tests come last.
LONGEST = (
    "failures/test_crashes.py",
    "failures/test_cancellation.py",
    "catalogs/test_embedded_catalog.py",
    "failures/test_soak.py",
    "settings/test_spark_settings.py",
    "publication/test_parallel_runs.py",
    "publication/test_writers_in_any_order.py",
    "package/test_job.py",
    "backfill/test_backfill.py",
    "plan/test_plan_with_hooks.py",
    "dead_letters/test_failures.py",
    "columns/test_restore.py",
    "test_integration_project.py",
    "dead_letters/test_property.py",
    "nested/test_generated_values.py",
    "types/test_generated_types.py",
    "types/test_hostile_types.py",
    "package/test_bare_server.py",
    "package/test_retry.py",
)

METADATA_FILES = pytest.StashKey[MetadataFiles]()


@pytest.fixture(scope="session", autouse=True)
def metadata_files(
    tmp_path_factory: pytest.TempPathFactory, pytestconfig: pytest.Config
) -> Iterator[MetadataFiles]:
    """All metadata files that the tests write: each catalog has its warehouse in pytest's folder."""
    parser = JavaParser()
    files = MetadataFiles(tmp_path_factory.getbasetemp(), parser.refusal)
    files.pass_over()
    pytestconfig.stash[METADATA_FILES] = files
    yield files
    parser.close()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Put the longest modules first, and the others by how many tests they have; those stay in their order.

    With ``--mode package``, skip what the dbt package is known not to do.
    """
    for item in items if config.getoption("--mode") == "package" else ():
        reason = why_skipped(item.nodeid)
        if reason:
            item.add_marker(pytest.mark.skip(reason=reason))
    place = {name: number for number, name in enumerate(LONGEST)}
    tests = Counter(item.path for item in items)

    def turn(item: pytest.Item) -> tuple[int, int]:
        number = place.get("/".join(item.path.parts[-2:]), place.get(item.path.name, len(place)))
        return number, -tests[item.path]

    items.sort(key=turn)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Pass over what unit tests of the same run have written, some of it wrong on purpose."""
    files = item.config.stash.get(METADATA_FILES, None)
    if files is not None:
        files.pass_over()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    """Check the metadata files that a test has written, before its own fixtures remove any.

    A test that has failed already keeps its own error; what is found is shown beside it.
    """
    files = item.config.stash[METADATA_FILES]
    tolerance_ms = CLOCK_TOLERANCE_MS if item.get_closest_marker("another_writer_at_once") else 0
    try:
        yield
    except BaseException:
        try:
            files.check(tolerance_ms=tolerance_ms)
        except BadMetadataError as exc:
            item.add_report_section("call", "metadata", str(exc))
        raise
    else:
        files.check(tolerance_ms=tolerance_ms)
    finally:
        files.forget_scenarios()


@contextmanager
def running_catalog(kind: str, folder: Path) -> Iterator[dict[str, str]]:
    """Have a catalog of a kind, with its server; give PyIceberg's properties of it."""
    warehouse = f"file://{folder}/warehouse"
    if kind == "rest":
        if not RestCatalog.can_run():
            pytest.skip("needs Maven")
        with RestCatalog(folder) as rest:
            yield rest.properties
    elif kind == "postgresql":
        if Postgres.programs() is None:
            pytest.skip("needs a PostgreSQL server's programs")
        with Postgres() as postgres:
            yield as_printed("postgresql", uri=postgres.uri, warehouse=warehouse)
    elif kind == "mysql":
        if MariaDb.programs() is None:
            pytest.skip(
                "needs a MariaDB server's programs (Debian: mariadb-server-core, mariadb-client-core)"
            )
        pytest.importorskip("pymysql", reason="needs PyMySQL: pip install pymysql")
        with MariaDb() as mariadb:
            yield as_printed("mysql", uri=mariadb.uri, warehouse=warehouse)
    elif kind == "nessie":
        pytest.importorskip("boto3")
        if not Nessie.can_run():
            pytest.skip("needs Maven, and Java 21 and SeaweedFS (`make test-catalogs`)")
        with Nessie(folder) as nessie:
            yield nessie.properties
    else:
        yield as_printed("sqlite", uri=f"sqlite:///{folder}/catalog.db", warehouse=warehouse)


@pytest.fixture(scope="session")
def method(request: pytest.FixtureRequest) -> str:
    """How dbt reaches Spark in this pytest run."""
    return str(request.config.getoption("--profile"))


@pytest.fixture(scope="session")
def catalog_properties(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[str, str]]:
    """PyIceberg's properties of the catalog of this pytest run."""
    with running_catalog(request.config.getoption("--catalog"), tmp_path_factory.mktemp("lake")) as found:
        yield found


@pytest.fixture(scope="session")
def profile_target(
    request: pytest.FixtureRequest,
    method: str,
    catalog_properties: dict[str, str],
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[dict[str, Any]]:
    """The profile's output, without a schema."""
    common = {
        "type": "sparkevolve",
        "catalog": "lake",
        "threads": 4,
        "catalog_properties": catalog_properties,
    }
    if method == "session":
        config = {**FAST, "spark.driver.extraJavaOptions": SHORT_LIVED_JAVA, **DRIVERS}
        # A session that is there already takes no jar, and this one is large.
        if any("[nessie" in item.nodeid for item in request.session.items):
            version = iceberg_runtime(pyspark.__version__).rpartition(":")[2]
            config["spark.jars.packages"] += f",org.apache.iceberg:iceberg-aws-bundle:{version}"
        yield {**common, "method": "session", "spark_config": config}
    else:
        settings = resolve("lake", catalog_properties, tmp_path_factory.mktemp("unused"))
        settings.prepare()
        # As a server is set up by its operator: Iceberg's cache is on, unlike in our own sessions, and
        # partitions are overwritten one by one.
        cached = {key: value for key, value in settings.spark.items() if not key.endswith("cache-enabled")}
        conf = {
            **FAST,
            **cached,
            "spark.sql.extensions": EXTENSIONS,
            "spark.sql.defaultCatalog": "lake",
            "spark.sql.sources.partitionOverwriteMode": "dynamic",
        }
        folder = tmp_path_factory.mktemp("thrift")
        with ThriftServer(folder, conf, iceberg_packages()) as server:
            yield {**common, "method": "thrift", "host": "127.0.0.1", "port": server.port, "user": "dbt"}


@pytest.fixture(scope="class")
def dbt_profile_target(profile_target: dict[str, Any]) -> dict[str, Any]:
    """What dbt-tests-adapter's fixtures make a profile from."""
    return dict(profile_target)


@pytest.fixture(scope="session")
def spark_sql(
    method: str, profile_target: dict[str, Any], tmp_path_factory: pytest.TempPathFactory
) -> SqlRunner:
    """Runs a statement beside dbt, in a Spark session that dbt does not use, and returns its rows."""
    if method == "session":
        return session_runner(profile_target, tmp_path_factory.mktemp("runner"))
    return thrift_runner(profile_target)


@pytest.fixture(scope="session")
def stock_target(
    method: str,
    profile_target: dict[str, Any],
    spark_sql: SqlRunner,
    catalog_properties: dict[str, str],
    tmp_path_factory: pytest.TempPathFactory,
) -> dict[str, Any]:
    """The output of a profile of dbt-spark, for the dbt package, without a schema."""
    return target_of_stock(method, profile_target, catalog_properties, tmp_path_factory.mktemp("stock"))


@pytest.fixture
def lake(catalog_properties: dict[str, str]) -> Catalog:
    """The catalog, opened afresh by PyIceberg: the reader that is independent of the code under test."""
    return load_catalog("lake", **catalog_properties)


@pytest.fixture
def scenario_factory(
    request: pytest.FixtureRequest,
    profile_target: dict[str, Any],
    spark_sql: SqlRunner,
    lake: Catalog,
    tmp_path: Path,
) -> Iterator[Callable[..., Scenario]]:
    """Make dbt projects, each with a schema of its own that goes at the end.

    With ``--mode package`` they are projects of stock dbt-spark that have the dbt package installed.
    """
    made: list[Scenario] = []
    is_package = request.config.getoption("--mode") == "package"

    def make(**profile: Any) -> Scenario:
        schema = f"case_{uuid.uuid4().hex[:10]}"
        folder = tmp_path / schema
        if is_package:
            target = {**request.getfixturevalue("stock_target"), **profile}
            scenario = package_project(folder, schema, target, spark_sql, lake)
        else:
            scenario = Scenario(folder, schema, {**profile_target, **profile}, spark_sql, lake)
        made.append(scenario)
        return scenario

    yield make
    for scenario in made:
        scenario.clean_up()


@pytest.fixture
def scenario(scenario_factory: Callable[..., Scenario]) -> Scenario:
    """A dbt project with a schema of its own."""
    return scenario_factory()


@pytest.fixture(scope="session")
def metastore(
    method: str, spark_sql: SqlRunner, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[HiveMetastore]:
    """A Hive metastore; Spark runs already, with the jars that the other catalog needs."""
    if method != "session":
        pytest.skip("the server has one catalog")
    if not HiveMetastore.can_run():
        pytest.skip("this pyspark lacks Derby's tools")
    with HiveMetastore(tmp_path_factory.mktemp("metastore")) as server:
        yield server


@pytest.fixture(scope="session")
def rest_server(
    method: str, spark_sql: SqlRunner, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[RestCatalog]:
    """A REST catalog, whoever of a worker's tests wants one; Spark runs already."""
    if method != "session":
        pytest.skip("the server has one catalog")
    if not RestCatalog.can_run():
        pytest.skip("needs Maven")
    with RestCatalog(tmp_path_factory.mktemp("rest")) as server:
        yield server


@pytest.fixture(
    scope="session", params=["rest", "postgresql", pytest.param("mysql", marks=pytest.mark.servers)]
)
def server_properties(
    request: pytest.FixtureRequest,
    method: str,
    spark_sql: SqlRunner,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[dict[str, str]]:
    """PyIceberg's properties of a catalog that is a server; Spark runs already."""
    if method != "session":
        pytest.skip("the server has one catalog")
    if request.param == "rest":
        yield request.getfixturevalue("rest_server").properties
        return
    with running_catalog(request.param, tmp_path_factory.mktemp(request.param)) as properties:
        yield properties


@pytest.fixture
def server_scenario(
    server_properties: dict[str, str], profile_target: dict[str, Any], tmp_path: Path
) -> Iterator[Scenario]:
    """A dbt project whose catalog is a server."""
    yield from scenario_of(server_properties, profile_target, tmp_path)


@pytest.fixture
def hive_scenario(
    metastore: HiveMetastore, profile_target: dict[str, Any], tmp_path: Path
) -> Iterator[Scenario]:
    """A dbt project whose catalog is a Hive metastore."""
    yield from scenario_of(metastore.properties, profile_target, tmp_path)


def scenario_of(
    properties: dict[str, str], profile_target: dict[str, Any], folder: Path
) -> Iterator[Scenario]:
    """Make a dbt project with a catalog of its own, and remove it at the end."""
    profile = {**profile_target, "catalog_properties": properties}
    schema = f"case_{uuid.uuid4().hex[:10]}"
    sql = session_runner(profile, folder)
    scenario = Scenario(folder / schema, schema, profile, sql, load_catalog("lake", **properties))
    yield scenario
    scenario.clean_up()
