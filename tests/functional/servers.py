"""What all servers of the tests have in common: a process that ends with ours, and a port on 127.0.0.1."""

import ctypes
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

from dbt.adapters.sparkevolve.spark.java import provide_java

HOST = "127.0.0.1"
# No statement of the tests runs long enough to win back what Java's second compiler and a parallel collector
# take: with them, they use more of a processor than Spark's own threads. But without the second compiler Java
# reserves a fifth of the space for compiled code, and Spark fills it within minutes: Java throws away what it
# has compiled, and compiles it again. And it collects the whole heap as often as classes have come to fill
# what it expects of them at first.
SHORT_LIVED_JAVA = (
    "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:ReservedCodeCacheSize=240m -XX:MetaspaceSize=256m"
)


class ServerError(RuntimeError):
    """A server did not start; the message ends with the tail of its log."""


def free_port() -> int:
    """Return a TCP port that nothing listens on at this moment."""
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        return int(probe.getsockname()[1])


def java() -> str:
    """Return the path of the Java that Spark runs on."""
    provide_java()
    home = os.environ.get("JAVA_HOME")
    return str(Path(home, "bin", "java")) if home else str(shutil.which("java"))


class Server:
    """What is started by ``__enter__`` and stopped at the end of the context."""

    def stop(self) -> None:
        """Stop it; harmless if it does not run."""
        raise NotImplementedError

    def __exit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()


class ServerProcess:
    """A server as a child process, which leads a process group of its own.

    Start it from a thread that outlives it (the main one): Linux ends the server when that thread ends.
    """

    def __init__(
        self,
        command: Sequence[str],
        port: int,
        log: Path,
        *,
        start_timeout: float = 120.0,
        env: Mapping[str, str] | None = None,
        **how: Any,
    ) -> None:
        """Start it and wait until its port accepts.

        Args:
            command: the command line.
            port: where it will listen.
            log: where its output goes; its folder is that of the process.
            start_timeout: seconds.
            env: its environment; None for ours.
            how: further arguments of ``subprocess.Popen``.

        Raises:
            ServerError: it ended, or does not accept in time.
        """
        self.log = log
        with log.open("ab") as output:
            self._process = subprocess.Popen(
                command,
                cwd=log.parent,
                env=env,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # Ctrl-C is for pytest, which then stops it
                preexec_fn=_die_with_parent if sys.platform == "linux" else None,
                **how,
            )
        try:
            self._wait_until_ready(port, start_timeout)
        except BaseException:
            self.stop()
            raise

    def stop(self, timeout: float = 10.0) -> None:
        """Stop it and wait for its end; harmless if it has ended."""
        if self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGTERM)
            try:
                self._process.wait(timeout)
            except subprocess.TimeoutExpired:
                os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

    def _log_tail(self, lines: int = 40) -> str:
        """Return the last lines of its log, without the frames of Java stack traces."""
        text = self.log.read_text(encoding="utf-8", errors="replace")
        kept = [line for line in text.splitlines() if not line.lstrip().startswith(("at ", "... "))]
        return "\n".join(kept[-lines:])

    def _wait_until_ready(self, port: int, start_timeout: float) -> None:
        deadline = time.monotonic() + start_timeout
        while True:
            code = self._process.poll()
            if code is not None:
                problem = f"ended with exit code {code} before it accepted connections"
                break
            try:
                socket.create_connection((HOST, port), timeout=1).close()
                return
            except OSError:
                pass
            if time.monotonic() > deadline:
                problem = f"did not listen on port {port} within {start_timeout:g} s"
                break
            time.sleep(0.1)
        raise ServerError(f"{self._process.args} {problem}; the end of {self.log}:\n{self._log_tail()}")


def _die_with_parent() -> None:
    """Ask Linux to end this process with its parent, even if the parent is killed."""
    pr_set_pdeathsig = 1
    ctypes.CDLL(None).prctl(pr_set_pdeathsig, signal.SIGTERM)
