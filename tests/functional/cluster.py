"""Run a standalone Spark cluster, a master and a worker, from the installed pyspark.

Everything that it writes stays inside the given directory, and everything that it opens listens on 127.0.0.1.
"""

import os
from pathlib import Path

from tests.functional.servers import HOST, Server, ServerProcess, free_port, java
from tests.functional.thrift_server import installed_spark_home, spark_versions


class StandaloneCluster(Server):
    """A master and one worker with two cores; use it as a context manager."""

    def __init__(self, work_dir: Path) -> None:
        """Keep the folder; nothing runs before the context is entered."""
        self.work_dir = work_dir.resolve()
        self._processes: list[ServerProcess] = []
        self.master = ""

    @property
    def properties(self) -> dict[str, str]:
        """A catalog whose files the executors see too: they run on this machine."""
        return {
            "type": "sql",
            "uri": f"sqlite:///{self.work_dir}/catalog.db",
            "warehouse": f"file://{self.work_dir}/warehouse",
        }

    @property
    def spark_config(self) -> dict[str, str]:
        """What a profile needs to run on it."""
        return {"spark.master": self.master, "spark.executor.memory": "1g", "spark.driver.host": HOST}

    def executors(self) -> list[Path]:
        """The folders of all executors that the worker has had."""
        return sorted((self.work_dir / "work").glob("app-*/*"))

    def __enter__(self) -> "StandaloneCluster":
        """Start both."""
        port = free_port()
        self.master = f"spark://{HOST}:{port}"
        at = ["--host", HOST, "--port"]
        self._start("master", port, *at, str(port), "--webui-port", str(free_port()))
        port = free_port()
        further = ["--cores", "2", "--memory", "2g", "--work-dir", str(self.work_dir / "work"), self.master]
        self._start("worker", port, *at, str(port), "--webui-port", str(free_port()), *further)
        return self

    def _start(self, role: str, port: int, *arguments: str) -> None:
        home = installed_spark_home()
        # What Spark's own scripts would say: a worker starts executors with it.
        environment = {"SPARK_HOME": str(home), "SPARK_SCALA_VERSION": spark_versions(home)[1]}
        self._processes.append(
            ServerProcess(
                [
                    *(java(), "-Xmx512m", "-cp", f"{home}/jars/*"),
                    *(f"org.apache.spark.deploy.{role}.{role.capitalize()}", *arguments),
                ],
                port,
                self.work_dir / f"{role}.log",
                env={**os.environ, **environment, "SPARK_LOCAL_IP": HOST},
            )
        )

    def stop(self) -> None:
        """Stop both; executors end with their worker."""
        for process in reversed(self._processes):
            process.stop()
        self._processes.clear()
