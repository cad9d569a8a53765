"""Run a real PostgreSQL server, of whatever version is installed, for a SQL catalog.

It keeps its files in a folder of its own and listens on 127.0.0.1 only, with a password. A server does not
run as root, so root starts it as the user ``postgres``, whom Debian's package makes.
"""

import os
import pwd
import secrets
import shutil
import socket
import subprocess
import tempfile
import time
from pathlib import Path
from types import TracebackType
from typing import Any

from tests.functional.thrift_server import HOST, _die_with_parent, free_port

_USER = "iceberg"


class Postgres:
    """A PostgreSQL server as a child process; use it as a context manager, in a thread that outlives it."""

    def __init__(self) -> None:
        """Choose a password; nothing runs before the context is entered."""
        self.password = secrets.token_hex(16)
        self.port = 0
        self._folder: Path | None = None
        self._process: subprocess.Popen[bytes] | None = None

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
        how: dict[str, Any] = {"cwd": folder, "stdin": subprocess.DEVNULL}
        if os.geteuid() == 0:
            user = pwd.getpwnam("postgres")
            for path in (folder, folder / "password"):
                os.chown(path, user.pw_uid, user.pw_gid)
            how |= {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": ()}
        data = str(folder / "data")
        command = [str(programs / "initdb"), "-D", data, "-U", _USER, "--auth=scram-sha-256", "--no-sync"]
        subprocess.run(
            [*command, "--encoding=UTF8", "--locale=C", f"--pwfile={folder}/password"],
            check=True,
            stdout=subprocess.DEVNULL,
            **how,
        )
        self.port = free_port()
        with (folder / "log").open("wb") as log:
            self._process = subprocess.Popen(
                [str(programs / "postgres"), "-D", data, "-h", HOST, "-p", str(self.port), "-k", "", "-F"],
                stdout=log,
                stderr=log,
                start_new_session=True,
                preexec_fn=_die_with_parent,
                **how,
            )
        deadline = time.monotonic() + 60
        while self._process.poll() is None and time.monotonic() < deadline:
            try:
                socket.create_connection((HOST, self.port), timeout=1).close()
            except OSError:
                time.sleep(0.1)
            else:
                return self
        text = (folder / "log").read_text()[-4000:]
        self.stop()
        raise RuntimeError(f"PostgreSQL does not listen; its log:\n{text}")

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Stop it."""
        self.stop()

    def stop(self) -> None:
        """Stop its process, wait for its end and remove its files; harmless if it does not run."""
        process, self._process = self._process, None
        if process is not None:
            process.terminate()
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
