"""How many threads can ask a SQL catalog at once."""

import sqlite3
import threading
import time
from pathlib import Path

import pytest
from pyiceberg.catalog import load_catalog
from sqlalchemy.pool import QueuePool

from dbt.adapters.sparkevolve.iceberg.catalog import IcebergCatalog
from dbt.adapters.sparkevolve.iceberg.catalog_settings import resolve
from dbt.adapters.sparkevolve.iceberg.embedded import BUSY_SECONDS

THREADS = 40


def test_pyiceberg_has_fifteen_connections_and_gives_up_after_half_a_minute(tmp_path: Path) -> None:
    """Why the gateway makes an engine of its own: once this fails, see whether it still has to."""
    pool = load_catalog("lake", type="sql", uri=f"sqlite:///{tmp_path}/c.db").engine.pool  # type: ignore[attr-defined]
    assert isinstance(pool, QueuePool)
    assert (pool.size(), pool._max_overflow, pool.timeout()) == (5, 10, 30.0)
    assert pool.timeout() < BUSY_SECONDS


def test_each_thread_has_a_connection_and_waits_for_the_lock_alone(tmp_path: Path) -> None:
    settings = resolve("lake", {}, tmp_path)
    lake = IcebergCatalog(settings)
    assert not lake.namespace_exists("n0")
    inner = lake.access.opened
    pool = inner.engine.pool  # type: ignore[attr-defined]
    failures: list[Exception] = []

    def create(number: int) -> None:
        try:
            inner.create_namespace(f"n{number}")
        except Exception as exc:
            failures.append(exc)

    writer = sqlite3.connect(str(settings.sqlite_file), isolation_level=None)
    writer.execute("BEGIN IMMEDIATE")
    threads = [threading.Thread(target=create, args=(number,)) for number in range(THREADS)]
    try:
        for thread in threads:
            thread.start()
        deadline = time.monotonic() + 20
        while pool.checkedout() < THREADS and time.monotonic() < deadline:
            time.sleep(0.01)
        assert pool.checkedout() == THREADS
        assert lake.namespace_exists("n0") is False, "who only reads does not wait"
    finally:
        writer.execute("COMMIT")
        writer.close()
        for thread in threads:
            thread.join(timeout=BUSY_SECONDS)
    assert failures == []
    assert {name for (name,) in inner.list_namespaces()} == {f"n{number}" for number in range(THREADS)}
    assert pool.checkedout() == 0


def test_a_postgresql_catalog_has_no_limit_either(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    pytest.importorskip("psycopg2")
    uri = "postgresql+psycopg2://me:hidden-1@127.0.0.1:1/db"
    properties = {"type": "sql", "uri": uri, "warehouse": "/w", "init_catalog_tables": "false"}
    pool = IcebergCatalog(resolve("lake", properties, tmp_path)).access.opened.engine.pool  # type: ignore[attr-defined]
    assert pool._max_overflow == -1
    assert pool._pre_ping, "a connection that a restart of the server has cut is opened again"
