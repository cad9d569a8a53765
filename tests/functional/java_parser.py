"""Iceberg's own parser of metadata files."""

import os
from unittest import mock

from py4j import java_gateway, protocol
from py4j.java_gateway import JavaGateway
from py4j.protocol import Py4JJavaError

from tests.functional.servers import java
from tests.functional.thrift_server import iceberg_packages, installed_spark_home, local_jar


class JavaParser:
    """Iceberg's parser in a small Java process of its own: a test may end Spark."""

    def __init__(self) -> None:
        self._gateway: JavaGateway | None = None

    def refusal(self, path: str, is_view: bool) -> str | None:
        """Return why Iceberg refuses to read the metadata file of a table or view; None if it reads it."""
        if self._gateway is None:
            self._gateway = self._launch()
        iceberg = self._gateway.jvm.org.apache.iceberg
        parser = iceberg.view.ViewMetadataParser if is_view else iceberg.TableMetadataParser
        try:
            # PySpark makes errors of its own of all that Py4J raises, and asks Spark for an object that
            # is in this one: another may have its number there.
            with mock.patch.object(java_gateway, "get_return_value", protocol.get_return_value):
                parser.read(iceberg.Files.localInput(path))
        except Py4JJavaError as exc:
            return " ".join(exc.java_exception.toString().split())
        return None

    def _launch(self) -> JavaGateway:
        jar = local_jar(iceberg_packages()[0])
        assert jar is not None, "Spark has brought no Iceberg"
        return JavaGateway.launch_gateway(
            classpath=os.pathsep.join([str(jar), str(installed_spark_home() / "jars" / "*")]),
            java_path=java(),
            javaopts=["-Xmx256m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"],
            die_on_exit=True,
        )

    def close(self) -> None:
        """End the process."""
        if self._gateway is not None:
            self._gateway.shutdown()
            self._gateway = None
