"""Run a real MariaDB server, of whatever version is installed, for a SQL catalog by MySQL's protocol.

It keeps its files in a folder of its own and listens on 127.0.0.1 only, with a password.
"""

import os
import secrets
import shutil
import subprocess
import tempfile
from pathlib import Path

from tests.functional.servers import HOST, Server, ServerProcess, free_port

_USER = "iceberg"
_PROGRAMS = ("mariadbd", "mariadb-install-db")


class MariaDb(Server):
    """A MariaDB server as a child process; use it as a context manager, in a thread that outlives it."""

    def __init__(self, collation: str = "utf8mb4_bin") -> None:
        """Choose a password; nothing runs before the context is entered.

        Args:
            collation: how its database compares names.
        """
        self.collation = collation
        self.password = secrets.token_hex(16)
        self.port = 0
        self._folder: Path | None = None
        self._process: ServerProcess | None = None

    @staticmethod
    def programs() -> tuple[str, ...] | None:
        """Return the paths of the server and of what makes its folder; None if one is not there."""
        places = os.pathsep.join([os.environ["PATH"], "/usr/sbin"])
        found = tuple(path for name in _PROGRAMS if (path := shutil.which(name, path=places)))
        return found if len(found) == len(_PROGRAMS) else None

    @property
    def uri(self) -> str:
        """The address of its database, for SQLAlchemy."""
        return f"mysql+pymysql://{_USER}:{self.password}@{HOST}:{self.port}/lake"

    def __enter__(self) -> "MariaDb":
        """Start it and wait until it accepts connections."""
        programs = self.programs()
        assert programs is not None
        server, install = programs
        self._folder = folder = Path(tempfile.mkdtemp(prefix="sparkevolve-mariadb-"))
        # It does not run as root unless it is told to.
        common = ["--no-defaults", f"--datadir={folder}/data"] + (
            ["--user=root"] if os.geteuid() == 0 else []
        )
        subprocess.run(
            [install, *common, "--skip-test-db", "--auth-root-authentication-method=normal"],
            check=True,
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        (folder / "begin.sql").write_text(
            f"CREATE DATABASE lake CHARACTER SET utf8mb4 COLLATE {self.collation};\n"
            f"CREATE USER '{_USER}'@'%' IDENTIFIED BY '{self.password}';\n"
            f"GRANT ALL ON lake.* TO '{_USER}'@'%';\n"
            "DROP USER 'root'@'localhost';\n"
        )
        self.port = free_port()
        where = [f"--bind-address={HOST}", f"--port={self.port}", f"--socket={folder}/socket"]
        cheap = ["--skip-name-resolve", "--innodb-flush-log-at-trx-commit=0", "--innodb-buffer-pool-size=32M"]
        command = [server, *common, *where, *cheap, f"--init-file={folder}/begin.sql"]
        self._process = ServerProcess(command, self.port, folder / "log")
        return self

    def stop(self) -> None:
        """Stop it and remove its files."""
        if self._process is not None:
            self._process.stop()
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
