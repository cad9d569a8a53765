"""A SQL catalog's database that ends connections, as by KILL or in a fail-over, or refuses what is asked."""

import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from pyiceberg.catalog import Catalog, load_catalog
from pyiceberg.schema import Schema
from pyiceberg.types import IntegerType, NestedField
from sqlalchemy import create_engine, event, text
from sqlalchemy.engine import Connection, Engine

from dbt.adapters.sparkevolve.iceberg.catalog import IcebergCatalog
from dbt.adapters.sparkevolve.iceberg.catalog_settings import resolve
from dbt.adapters.sparkevolve.spark.connections import SparkEvolveConnectionManager
from tests.functional.conftest import running_catalog, scenario_of
from tests.functional.harness import Scenario, SqlRunner, session_runner
from tests.functional.proxy import Cut, Proxy, When
from tests.unit.helpers import relation

TABLE = relation("t")
# What asks for a connection's number, and what ends the one of that number.
ENDING = {
    "postgresql": ("SELECT pg_backend_pid()", "SELECT pg_terminate_backend({})"),
    "mysql": ("SELECT connection_id()", "KILL {}"),
}
# All that a server knows of; the one that asks among them.
CONNECTIONS = {
    "postgresql": "SELECT pid FROM pg_stat_activity WHERE backend_type = 'client backend'",
    "mysql": "SELECT id FROM information_schema.processlist",
}
REFUSING = {
    "postgresql": [
        "CREATE OR REPLACE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS "
        "'BEGIN RAISE EXCEPTION ''not for you''; END'",
        "CREATE TRIGGER refuse_{table} BEFORE INSERT ON {table} FOR EACH ROW EXECUTE FUNCTION refuse()",
    ],
    "mysql": [
        "CREATE TRIGGER refuse_{table} BEFORE INSERT ON {table} FOR EACH ROW "
        "SIGNAL SQLSTATE '42000' SET MESSAGE_TEXT = 'not for you'"
    ],
}
MERGE = {"incremental_strategy": "merge"}
# What Java's driver sends to commit to a table `t`: its parameters are those of a prepared statement.
UPDATE_OF_T = r"(?s)UPDATE iceberg_tables.*\$1.*\x00\x01t\x00"
ALLOWING = {"postgresql": "DROP TRIGGER refuse_{table} ON {table}", "mysql": "DROP TRIGGER refuse_{table}"}


@pytest.fixture(scope="module", params=["postgresql", pytest.param("mysql", marks=pytest.mark.servers)])
def properties(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[str, str]]:
    """PyIceberg's properties of a SQL catalog on a server, with one table."""
    with running_catalog(request.param, tmp_path_factory.mktemp(request.param)) as found:
        direct = load_catalog("lake", **found)
        direct.create_namespace("db")
        yield found


@pytest.fixture
def direct(properties: dict[str, str]) -> Iterator[Catalog]:
    """The catalog, opened by PyIceberg alone, with a table that goes at the end."""
    catalog = load_catalog("lake", **properties)
    catalog.create_table("db.t", Schema(NestedField(1, "id", IntegerType())))
    yield catalog
    catalog.drop_table("db.t")


class Killer:
    """Ends each connection that is about to do something, so many times."""

    def __init__(self, properties: dict[str, str]) -> None:
        self._engine = create_engine(properties["uri"], isolation_level="AUTOCOMMIT")
        self._number, self._end = ENDING[self._engine.dialect.name]
        self.left = 0

    def kill(self, connection: Any) -> None:
        """End a connection of the driver."""
        self.left -= 1
        with connection.cursor() as cursor:
            cursor.execute(self._number)
            number = cursor.fetchone()[0]
        with self._engine.connect() as other:
            other.execute(text(self._end.format(number)))

    def kill_all(self) -> int:
        """End all connections but our own."""
        kind = self._engine.dialect.name
        with self._engine.connect() as other:
            ours = other.execute(text(self._number)).scalar()
            found = [row[0] for row in other.execute(text(CONNECTIONS[kind])) if row[0] not in (ours, 1)]
            ended = 0
            for number in found:
                try:
                    other.execute(text(self._end.format(number)))
                    ended += 1
                except Exception:  # it has ended itself
                    continue
        return ended

    def execute(self, statements: list[str], table: str) -> None:
        """Run statements of the operator's."""
        with self._engine.connect() as other:
            for statement in statements:
                other.execute(text(statement.format(table=table)))

    def wait_for(self, engine: Engine, point: str, times: int) -> None:
        """End connections at a point: before the UPDATE, before the COMMIT, or when that has been made."""
        self.left = times

        def before_statement(connection: Connection, cursor: Any, statement: str, *rest: Any) -> None:
            if self.left > 0 and statement.startswith("UPDATE iceberg_tables"):
                self.kill(connection.connection.dbapi_connection)

        def before_commit(connection: Connection) -> None:
            if self.left > 0:
                raw = connection.connection.dbapi_connection
                assert raw is not None
                if point == "committed":
                    raw.commit()
                self.kill(raw)

        if point == "statement":
            event.listen(engine, "before_cursor_execute", before_statement)
        else:
            event.listen(engine, "commit", before_commit)


def set_docs(lake: IcebergCatalog) -> None:
    assert lake.set_docs(TABLE, "what it is", {"id": "a number"}, 0) != []


def set_properties(lake: IcebergCatalog) -> None:
    lake.set_properties(TABLE, {"comment": "what it is"}, 0)


@pytest.mark.parametrize("point", ["statement", "commit", "committed"])
@pytest.mark.parametrize("change", [set_docs, set_properties])
def test_a_commit_whose_connection_is_ended_is_made(
    properties: dict[str, str],
    direct: Catalog,
    tmp_path: Path,
    point: str,
    change: Callable[[IcebergCatalog], None],
) -> None:
    lake = IcebergCatalog(resolve("lake", properties, tmp_path), None, 20)
    lake.check()
    killer = Killer(properties)
    engine = lake.access.opened.engine  # type: ignore[attr-defined]
    killer.wait_for(engine, point, 2 if point != "committed" else 1)
    change(lake)
    assert killer.left == 0
    table = direct.load_table("db.t")
    assert table.properties["comment"] == "what it is"
    if change is set_docs:
        # What has been committed is seen, and is not committed again.
        assert len(table.metadata.metadata_log) == 1


@pytest.fixture
def spark_scenario(
    properties: dict[str, str],
    method: str,
    spark_sql: SqlRunner,
    profile_target: dict[str, Any],
    tmp_path: Path,
) -> Iterator[Scenario]:
    """A dbt project whose catalog is in the database."""
    if method != "session":
        pytest.skip("the server has one catalog")
    profile = {**profile_target, "catalog_properties": properties}
    reader = load_catalog("lake", **properties)
    # The test's own reader looks first whether its connection is there still.
    reader.engine = create_engine(properties["uri"], pool_pre_ping=True)  # type: ignore[attr-defined]
    schema = f"case_{uuid.uuid4().hex[:10]}"
    scenario = Scenario(tmp_path / schema, schema, profile, session_runner(profile, tmp_path), reader)
    yield scenario
    scenario.clean_up()


def test_connections_that_are_ended_before_each_statement_are_opened_again(
    spark_scenario: Scenario, properties: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Spark's and PyIceberg's, from the first statement to the last."""
    scenario, killer, ended = spark_scenario, Killer(properties), []
    add_query = SparkEvolveConnectionManager.add_query

    def killed_before(*args: Any, **named: Any) -> Any:
        ended.append(killer.kill_all())
        return add_query(*args, **named)

    monkeypatch.setattr(SparkEvolveConnectionManager, "add_query", killed_before)
    scenario.model("select 1 as id, 'a' as old", unique_key="id")
    scenario.run()
    scenario.model("select 2 as id, 5 as n union all select 1, 4", unique_key="id")
    scenario.run()
    assert scenario.rows() == [(1, None, 4), (2, None, 5)]
    assert scenario.schemas() == 2
    assert scenario.tables() == ["t"]
    assert sum(map(bool, ended)) > 10


def a_moment_later() -> bool:
    time.sleep(0.5)
    return True


@pytest.mark.parametrize("publish", ["direct", "branch"])
def test_a_commit_whose_answer_spark_never_gets_leaves_a_table_that_can_be_read(
    properties: dict[str, str],
    method: str,
    profile_target: dict[str, Any],
    tmp_path: Path,
    publish: str,
) -> None:
    """Iceberg sends it again, takes the one that was made for another writer's, and deletes files of it."""
    if method != "session" or not properties["uri"].startswith("postgresql"):
        pytest.skip("the statement is known by PostgreSQL's protocol, in a session of our own")
    port = create_engine(properties["uri"]).url.port
    assert port is not None
    # It reads the list of each snapshot, as `remove_orphan_files` does.
    all_manifests = "select count(*) from {}.all_manifests"
    with Proxy(port) as proxy:
        # So the driver sends the text of a statement each time.
        direct = {**properties, "jdbc.prepareThreshold": "0"}
        through = {**direct, "uri": properties["uri"].replace(f":{port}/", f":{proxy.port}/")}
        for scenario in scenario_of(through, profile_target, tmp_path):
            scenario.model("select 1 as id, 'a' as v union all select 3, 'a'", publish=publish, **MERGE)
            scenario.run()
            scenario.model("select 3 as id, 'b' as v union all select 4, 'b'", publish=publish, **MERGE)
            before = scenario.table().metadata.current_snapshot_id
            # The first one makes the branch. What the proxy has sent is done well before it goes on.
            cut = Cut(UPDATE_OF_T, When.FINISHED, is_finished=a_moment_later, loses_answer=True)
            cut.after = 0 if publish == "direct" else 1
            proxy.cut(cut)
            if publish == "branch":
                scenario.run()
            else:
                run = scenario.fail()
                assert "Found conflicting files" in run.message
                assert (
                    f"which nobody could read any more. {scenario.relation()} has been put back to the "
                    f"snapshot before it, {before}: it has none of the changes of this statement. Run again."
                ) in run.message
                assert "Nobody has told" not in run.message
                assert scenario.table().metadata.current_snapshot_id == before
                assert scenario.rows() == [(1, "a"), (3, "a")]
                # The snapshot without a list is no longer among those whose lists are read.
                listed = scenario.table().inspect.all_manifests().num_rows
                assert scenario.sql(all_manifests.format(scenario.relation())) == [(listed,)]
                scenario.run()
            assert scenario.rows() == [(1, "a"), (3, "b"), (4, "b")]
            assert cut.seen > cut.after + cut.times
            assert proxy.failures == []
            proxy.cut()
            if publish == "direct":
                # What puts it back by hand, where nobody else does.
                last = scenario.table().metadata.current_snapshot()
                assert last is not None
                Path(urlsplit(last.manifest_list).path).unlink()
                found = scenario.sql(
                    f"select parent_id from {scenario.relation()}.snapshots as s "
                    f"join {scenario.relation()}.refs as r using (snapshot_id) where r.name = 'main'"
                )
                assert found == [(before,)]
                scenario.sql(f"call lake.system.set_current_snapshot('{scenario.schema}.t', {before})")
                assert scenario.rows() == [(1, "a"), (3, "a")]
                assert scenario.sql(f"select count(*) from {scenario.relation()}") == [(2,)]
                with pytest.raises(Exception, match=Path(last.manifest_list).name):
                    scenario.sql(all_manifests.format(scenario.relation()))


def test_what_a_database_refuses_spark_names_its_catalog(
    spark_scenario: Scenario, properties: dict[str, str]
) -> None:
    """And does not leave open whether it was done."""
    scenario, killer = spark_scenario, Killer(properties)
    kind = create_engine(properties["uri"]).dialect.name
    scenario.model("select 1 as id", materialized="table")
    scenario.model("select * from `lakes`.`x`.`t`", "misspelt", materialized="table")
    scenario.run("--select", "t")
    port = create_engine(properties["uri"]).url.port
    asked = f"Spark has asked the Iceberg catalog `lake` at 127.0.0.1:{port}."
    for table, command in (
        ("iceberg_tables", lambda: scenario.fail("--select", "u").message),
        ("iceberg_namespace_properties", lambda: scenario.dbt("debug").log),
    ):
        scenario.model("select 1 as id", "u", materialized="table")
        killer.execute(REFUSING[kind], table)
        try:
            said = command()
        finally:
            killer.execute([ALLOWING[kind]], table)
        assert "not for you" in said
        assert asked in said
        assert "Nobody has told" not in said
    assert "The profile states no catalog `lakes`, but `lake`. Did you mean `lake`? Where Spark has none" in (
        scenario.fail("--select", "misspelt").message
    )
