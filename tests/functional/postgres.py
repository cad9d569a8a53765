"""Run a real PostgreSQL server, of whatever version is installed, for a SQL catalog.

It keeps its files in a folder of its own and listens on 127.0.0.1 only, with a password. A server does not
run as root, so root starts it as the user ``postgres``, whom Debian's package makes.
"""

import os
import pwd
import secrets
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from tests.functional.servers import HOST, Server, ServerProcess, free_port

_USER = "iceberg"


class Postgres(Server):
    """A PostgreSQL server as a child process; use it as a context manager, in a thread that outlives it."""

    def __init__(self) -> None:
        """Choose a password; nothing runs before the context is entered."""
        self.password = secrets.token_hex(16)
        self.port = 0
        self._folder: Path | None = None
        self._process: ServerProcess | None = None

    @staticmethod
    def programs() -> Path | None:
        """Return the folder of the newest server's programs; None if there is none."""
        debian = sorted(
            Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: int(path.parts[-3])
        )
        found = shutil.which("initdb") or (str(debian[-1]) if debian else None)
        return Path(found).parent if found else None

    @property
    def uri(self) -> str:
        """The address of its database, for SQLAlchemy."""
        return f"postgresql+psycopg2://{_USER}:{self.password}@{HOST}:{self.port}/postgres"

    def __enter__(self) -> "Postgres":
        """Start it and wait until it accepts connections."""
        programs = self.programs()
        assert programs is not None
        self._folder = folder = Path(tempfile.mkdtemp(prefix="sparkevolve-postgres-"))
        (folder / "password").write_text(self.password)
        who: dict[str, Any] = {}
        if os.geteuid() == 0:
            user = pwd.getpwnam("postgres")
            for path in (folder, folder / "password"):
                os.chown(path, user.pw_uid, user.pw_gid)
            who = {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": ()}
        data = str(folder / "data")
        command = [str(programs / "initdb"), "-D", data, "-U", _USER, "--auth=scram-sha-256", "--no-sync"]
        subprocess.run(
            [*command, "--encoding=UTF8", "--locale=C", f"--pwfile={folder}/password"],
            check=True,
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            **who,
        )
        self.port = free_port()
        server = [str(programs / "postgres"), "-D", data, "-h", HOST, "-p", str(self.port), "-k", "", "-F"]
        self._process = ServerProcess(server, self.port, folder / "log", **who)
        return self

    def stop(self) -> None:
        """Stop it and remove its files."""
        if self._process is not None:
            self._process.stop()
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
