"""Run Iceberg's own REST catalog server, the one of its compatibility tests, over a SQLite file.

Its classes and Jetty come from Maven Central, and the file system of the warehouse from the installed
pyspark's Hadoop. It listens on 127.0.0.1 only.
"""

import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

from py4j.java_gateway import JavaGateway, JavaObject

from dbt.adapters.sparkevolve.iceberg.capabilities import Kind
from tests.functional.servers import HOST, Server, java
from tests.functional.thrift_server import installed_spark_home
from tests.printed_profiles import as_printed

_PROJECT = Path(__file__).with_name("rest_catalog.xml")


class RestCatalog(Server):
    """A REST catalog in a Java process of its own; use it as a context manager."""

    def __init__(self, work_dir: Path) -> None:
        """Keep the folder; nothing runs before the context is entered."""
        self.work_dir = work_dir.resolve()
        self._gateway: JavaGateway | None = None
        self._server: JavaObject | None = None

    @staticmethod
    def can_run() -> bool:
        """Tell whether Maven is there, which brings the server."""
        return shutil.which("mvn") is not None

    @property
    def properties(self) -> dict[str, Any]:
        """The profile's properties of it: those of the page without ``warehouse``, which it has by itself."""
        assert self._server is not None
        uri = f"http://{HOST}:{self._server.getURI().getPort()}"
        return as_printed(Kind.REST.value, uri=uri, warehouse=None)

    def __enter__(self) -> "RestCatalog":
        """Start it."""
        gateway = JavaGateway.launch_gateway(
            classpath=self._class_path(),
            java_path=java(),
            die_on_exit=True,
            redirect_stderr=(self.work_dir / "rest.log").open("w"),
        )
        self._gateway = gateway
        jvm = gateway.jvm
        catalog = jvm.org.apache.iceberg.jdbc.JdbcCatalog()
        catalog.setConf(jvm.org.apache.hadoop.conf.Configuration())
        settings = {
            "uri": f"jdbc:sqlite:{self.work_dir}/rest.db",
            "warehouse": f"file://{self.work_dir}/warehouse",
            "jdbc.schema-version": "V1",
            "jdbc.busy_timeout": "60000",
        }
        properties = jvm.java.util.HashMap()
        for name, value in settings.items():
            properties.put(name, value)
        catalog.initialize("rest", properties)
        adapter = jvm.org.apache.iceberg.rest.RESTCatalogAdapter(catalog)
        servlet = jvm.org.apache.iceberg.rest.RESTCatalogServlet(adapter)
        context = jvm.org.eclipse.jetty.ee10.servlet.ServletContextHandler()
        context.addServlet(jvm.org.eclipse.jetty.ee10.servlet.ServletHolder(servlet), "/*")
        self._server = jvm.org.eclipse.jetty.server.Server(jvm.java.net.InetSocketAddress(HOST, 0))
        self._server.setHandler(context)
        self._server.start()
        return self

    def _class_path(self) -> str:
        found = self.work_dir / "class_path.txt"
        command = ["mvn", "--quiet", "--batch-mode", "--file", str(_PROJECT), "dependency:build-classpath"]
        subprocess.run([*command, f"-Dmdep.outputFile={found}"], check=True, timeout=300)
        hadoop = sorted((installed_spark_home() / "jars").glob("hadoop-client-*.jar"))
        return os.pathsep.join([found.read_text().strip(), *map(str, hadoop)])

    def stop(self) -> None:
        """Stop it."""
        if self._gateway is not None:
            self._gateway.shutdown()
