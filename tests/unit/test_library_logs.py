"""What libraries log by themselves, where the real ones do: a metastore that is not there."""

import inspect
import io
import logging
import socket
from pathlib import Path

import pytest
from py4j.java_gateway import GatewayClient, GatewayParameters
from py4j.protocol import Py4JNetworkError

from dbt.adapters.sparkevolve import impl, library_logs
from dbt.adapters.sparkevolve.errors import CatalogUnavailableError
from dbt.adapters.sparkevolve.iceberg.catalog import IcebergCatalog
from dbt.adapters.sparkevolve.iceberg.catalog_settings import resolve
from dbt.adapters.sparkevolve.library_logs import keep_in_log_file
from dbt.adapters.sparkevolve.redaction import learn


@pytest.fixture
def lines(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The debug events of dbt's."""
    found: list[str] = []
    monkeypatch.setattr(library_logs.logger, "debug", found.append)
    return found


@pytest.mark.parametrize(
    ("host", "logged", "said"),
    [
        (
            "127.0.0.1",
            "thrift.transport.TSocket: Could not connect to any of [('127.0.0.1', 1)]",
            "The Iceberg catalog `lake` at 127.0.0.1:1 cannot be reached: it refuses connections.",
        ),
        (
            "no-host.invalid",
            "thrift.transport.TSocket: failed to resolve sockaddr for no-host.invalid:1",
            "The Iceberg catalog `lake` at no-host.invalid:1 cannot be reached: its name cannot be resolved.",
        ),
    ],
)
def test_what_a_client_of_hive_logs_goes_to_the_log_file(
    lines: list[str], tmp_path: Path, host: str, logged: str, said: str
) -> None:
    assert impl.SparkEvolveAdapter.type() == "sparkevolve"  # which has imported dbt-spark
    # Whoever starts dbt in a program of his own may do so again and again.
    keep_in_log_file()
    properties = {"type": "hive", "uri": f"thrift://{host}:1", "warehouse": "file:///w"}
    catalog = IcebergCatalog(resolve("lake", properties, tmp_path), None, 30)
    # Such a one is there wherever dbt runs.
    console = logging.StreamHandler(io.StringIO())
    logging.getLogger().addHandler(console)
    try:
        with pytest.raises(CatalogUnavailableError) as raised:
            catalog.check()
    finally:
        logging.getLogger().removeHandler(console)
    assert console.stream.getvalue() == ""
    assert raised.value.msg.startswith(said)
    assert [line.splitlines()[0] for line in lines] == [logged]


def test_what_py4j_logs_goes_to_the_log_file(lines: list[str]) -> None:
    """It logs at Ctrl-C, and when Java is gone, by the root of all loggers."""
    keep_in_log_file()
    gone = socket.create_server(("127.0.0.1", 0))
    client = GatewayClient(gateway_parameters=GatewayParameters(port=gone.getsockname()[1]))
    gone.close()
    console = logging.StreamHandler(io.StringIO())
    logging.getLogger().addHandler(console)
    try:
        with pytest.raises(Py4JNetworkError):
            client.send_command("c\n")
        logging.getLogger().error("of another")
    finally:
        logging.getLogger().removeHandler(console)
    assert console.stream.getvalue() == "of another\n"
    assert all(line.partition(":")[0] in ("root", "py4j.java_gateway") for line in lines)
    # As it does with the trace.
    trace = inspect.getsource(GatewayClient.send_command)
    assert 'logging.exception("KeyboardInterrupt while sending command.")' in trace
    assert "Exception while sending command." in trace


def test_secrets_are_masked(lines: list[str]) -> None:
    learn({"password": "correct-horse-battery"})
    logging.getLogger("sqlalchemy.pool").error("closing %s", "correct-horse-battery")
    logging.getLogger("pyiceberg.catalog.hive").warning("Wait on lock for db.t")
    logging.getLogger("botocore.credentials").info("nobody has asked for this")
    assert [line.replace("correct-horse-battery", "SECRET") for line in lines] == lines
    assert [line.partition(":")[0] for line in lines] == ["sqlalchemy.pool", "pyiceberg.catalog.hive"]
    assert lines[1] == "pyiceberg.catalog.hive: Wait on lock for db.t"


def test_what_dbt_spark_was_told_to_show_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DBT_SPARK_LOG_LEVEL", "ERROR")
    part = logging.getLogger("thrift.protocol")
    handler = library_logs.DbtEventLoggingHandler(event_manager=None, level="ERROR")
    part.addHandler(handler)
    keep_in_log_file()
    assert handler in part.handlers
    monkeypatch.delenv("DBT_SPARK_LOG_LEVEL")
    keep_in_log_file()
    assert handler not in part.handlers
    assert part.propagate
