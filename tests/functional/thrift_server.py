"""Run a real Spark Thrift server (HiveServer2 protocol) from an installed pyspark.

pyspark's wheel ships every jar that ``sbin/start-thriftserver.sh`` of a full Spark distribution
needs, only not that script, so the server is started with pyspark's own ``bin/spark-submit``. The
scripts ``exec`` each other down to the JVM: the pid of the child process is the pid of the JVM.

Everything that the server writes (log, warehouse, scratch and temporary files) stays inside
the given directory, and everything that it opens listens on 127.0.0.1 only.
"""

from __future__ import annotations

import atexit
import importlib.util
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from dbt.adapters.sparkevolve.iceberg.catalog_settings import JDBC_DRIVERS
from dbt.adapters.sparkevolve.spark.jars import iceberg_runtime
from tests.functional.servers import HOST, SHORT_LIVED_JAVA, Server, ServerError, ServerProcess, free_port

MAIN_CLASS = "org.apache.spark.sql.hive.thriftserver.HiveThriftServer2"


def installed_spark_home() -> Path:
    """Return the directory of the installed pyspark, without importing it."""
    spec = importlib.util.find_spec("pyspark")
    if spec is None or spec.origin is None:
        raise ServerError("pyspark is not installed")
    return Path(spec.origin).parent


def spark_versions(spark_home: Path) -> tuple[str, str]:
    """Return Spark's version and its Scala's version, e.g. ``("4.1.4", "2.13")``."""
    for jar in (spark_home / "jars").glob("spark-hive-thriftserver_*.jar"):
        match = re.fullmatch(r"spark-hive-thriftserver_([\d.]+)-(.+)\.jar", jar.name)
        if match:
            return match[2], match[1]
    raise ServerError(f"no spark-hive-thriftserver jar in {spark_home / 'jars'}")


def iceberg_packages(spark_home: Path | None = None) -> list[str]:
    """Return the coordinates of the Iceberg runtime that fits Spark, and of the drivers of databases."""
    spark, _ = spark_versions(spark_home or installed_spark_home())
    return [iceberg_runtime(spark), *JDBC_DRIVERS.values()]


def local_jar(package: str) -> Path | None:
    """Return the jar of ``group:artifact:version`` if Maven or Ivy downloaded it before."""
    group, artifact, version = package.split(":")
    jar = f"{artifact}-{version}.jar"
    maven = Path.home() / ".m2" / "repository" / Path(*group.split(".")) / artifact / version / jar
    ivy = (home / "jars" / f"{group}_{jar}" for home in sorted(Path.home().glob(".ivy2*")))
    return next((path for path in (maven, *ivy) if path.is_file()), None)


def iceberg_conf(catalog: str, sqlite_file: Path, warehouse: str) -> dict[str, str]:
    """Return the Spark settings of an Iceberg catalog in SQLite that is also the default catalog.

    Let PyIceberg create the file first, and set ``PRAGMA journal_mode=wal`` on it.
    """
    prefix = f"spark.sql.catalog.{catalog}"
    return {
        "spark.sql.extensions": ("org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions"),
        prefix: "org.apache.iceberg.spark.SparkCatalog",
        f"{prefix}.type": "jdbc",
        f"{prefix}.uri": f"jdbc:sqlite:{sqlite_file}",
        f"{prefix}.warehouse": warehouse,
        f"{prefix}.jdbc.schema-version": "V1",
        f"{prefix}.jdbc.busy_timeout": "60000",
        "spark.sql.defaultCatalog": catalog,
    }


class ThriftServer(Server):
    """A ``HiveThriftServer2`` as a child process; use it as a context manager.

    ``packages`` are taken from the local Maven or Ivy repository where possible, else Spark
    downloads them. ``spark_home`` is a pyspark directory, by default the installed one.
    ``spark_conf`` is applied last, so that it can replace any default set here. Start it from a thread
    that outlives it (the main one): Linux ends the server when that thread ends.
    """

    def __init__(
        self,
        work_dir: Path,
        spark_conf: Mapping[str, str] | None = None,
        packages: Sequence[str] = (),
        jars: Sequence[Path] = (),
        *,
        spark_home: Path | None = None,
        master: str = "local[2]",
        driver_memory: str = "1g",
        start_timeout: float = 120.0,
    ) -> None:
        """Keep the settings; nothing runs before `start`."""
        self.host = HOST
        self.port = 0
        self.work_dir = work_dir.resolve()
        self.log_file = self.work_dir / "thrift-server.log"
        self.spark_home = (spark_home or installed_spark_home()).resolve()
        self._spark_conf = dict(spark_conf or {})
        self._packages = list(packages)
        self._jars = [Path(jar).resolve() for jar in jars]
        self._master = master
        self._driver_memory = driver_memory
        self._start_timeout = start_timeout
        self._process: ServerProcess | None = None

    def __enter__(self) -> ThriftServer:
        """Start the server and wait until it accepts connections."""
        self.start()
        return self

    def start(self) -> None:
        """Start the server; raise `ServerError` if it does not accept in time."""
        if self._process is not None:
            raise ServerError("this server was started already")
        for name in ("conf", "tmp", "local", "warehouse"):
            (self.work_dir / name).mkdir(parents=True, exist_ok=True)
        self.port = free_port()
        self._process = ServerProcess(
            self._command(),
            self.port,
            self.log_file,
            start_timeout=self._start_timeout,
            env=self._environment(),
        )
        atexit.register(self.stop)

    def stop(self) -> None:
        """Stop the server's process and wait for its end; harmless if it does not run."""
        process, self._process = self._process, None
        atexit.unregister(self.stop)
        if process is not None:
            process.stop()

    def _conf(self) -> dict[str, str]:
        """Return the Spark settings: quiet defaults, then the caller's."""
        tmp = self.work_dir / "tmp"
        return {
            "spark.driver.host": self.host,
            "spark.driver.bindAddress": self.host,
            "spark.ui.enabled": "false",
            "spark.ui.showConsoleProgress": "false",
            "spark.local.dir": str(self.work_dir / "local"),
            # No Hive metastore. The second group is for HiveServer2 itself, which else opens one in
            # Derby (3 s) when the first session closes: a remote one that is never tried.
            "spark.sql.catalogImplementation": "in-memory",
            "spark.hadoop.hive.metastore.uris": f"thrift://{self.host}:1",
            "spark.hadoop.hive.metastore.connect.retries": "0",
            "spark.hadoop.hive.metastore.client.connect.retry.delay": "0",
            "spark.sql.warehouse.dir": (self.work_dir / "warehouse").as_uri(),
            "spark.sql.shuffle.partitions": "2",
            "spark.hadoop.hive.exec.scratchdir": str(tmp / "hive"),
            "spark.driver.extraJavaOptions": (
                f"-Djava.io.tmpdir={tmp} -Duser.timezone=UTC -XX:-UsePerfData {SHORT_LIVED_JAVA}"
            ),
            "spark.sql.session.timeZone": "UTC",
            **self._spark_conf,
        }

    def _command(self) -> list[str]:
        """Return the command line."""
        found = {package: local_jar(package) for package in self._packages}
        jars = [*self._jars, *(jar for jar in found.values() if jar is not None)]
        missing = [package for package, jar in found.items() if jar is None]
        command = [str(self.spark_home / "bin" / "spark-submit"), "--class", MAIN_CLASS]
        command += ["--master", self._master, "--driver-memory", self._driver_memory]
        if jars:
            # Not --jars: its class loader closes too early, and then Iceberg's clean-up of
            # broadcasts fails on SIGTERM. Spark 3.5 hangs there until it is killed.
            command += ["--driver-class-path", os.pathsep.join(map(str, jars))]
        if missing:
            command += ["--packages", ",".join(missing)]
        for key, value in self._conf().items():
            command += ["--conf", f"{key}={value}"]
        command.append("spark-internal")
        for key, value in (("bind.host", self.host), ("port", str(self.port))):
            command += ["--hiveconf", f"hive.server2.thrift.{key}={value}"]
        return command

    def _environment(self) -> dict[str, str]:
        """Return the environment without anything that would change which Spark runs, and how."""
        prefixes = ("SPARK_", "PYSPARK_", "HADOOP_", "HIVE_")
        kept = {name: val for name, val in os.environ.items() if not name.startswith(prefixes)}
        return {
            **kept,
            "SPARK_HOME": str(self.spark_home),
            "SPARK_CONF_DIR": str(self.work_dir / "conf"),
            "SPARK_LOCAL_IP": self.host,
            "SPARK_LAUNCHER_OPTS": "-XX:-UsePerfData",
            "TMPDIR": str(self.work_dir / "tmp"),
        }
