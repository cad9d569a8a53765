"""A TCP proxy in front of a server, which cuts connections where a test wants it to."""

import re
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from types import TracebackType

HOST = "127.0.0.1"
_LONGEST_SECONDS = 60.0
_TO_RUN_SECONDS = 4.0


class When(Enum):
    """When the client's connection is cut, and what becomes of the statement."""

    NEVER_SENT = "the server never gets the statement"
    RUNNING = "the server goes on with the statement"
    FINISHED = "the server has finished the statement"
    LATE = "the server gets the statement when the test says so"


@dataclass
class Cut:
    """One cut.

    Attributes:
        pattern: what is in the request that carries the statement.
        when: when the connection is cut.
        times: how often.
        is_finished: for ``FINISHED``, whether the server has finished the statement.
        keeps_client: whether the client's connection is kept instead: it waits, and a test can kill it.
        loses_answer: for ``FINISHED``, whether the client gets nothing of the answer, however quick it is.
        after: how many requests with the pattern are handed on first.
        seen: how many requests with the pattern came from clients.
    """

    pattern: str
    when: When
    times: int = 1
    is_finished: Callable[[], bool] = lambda: True
    keeps_client: bool = False
    loses_answer: bool = False
    after: int = 0
    seen: int = field(default=0, init=False)


class Proxy:
    """Hands on what clients and server say; used as a context manager."""

    def __init__(self, server_port: int) -> None:
        self._server_port = server_port
        self._cuts: list[Cut] = []
        self._held: list[tuple[socket.socket, bytes]] = []
        self._lock = threading.Lock()
        self._listener = socket.create_server((HOST, 0))
        self.port = int(self._listener.getsockname()[1])
        self.failures: list[BaseException] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def __enter__(self) -> "Proxy":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None:
        _close(self._listener)
        for server, _ in self._held:
            _close(server)

    def cut(self, *cuts: Cut) -> None:
        """Cut connections like this from now on."""
        with self._lock:
            self._cuts = list(cuts)

    def deliver(self) -> None:
        """Give the server the statements that come late, and time to run them."""
        late = [(server, request) for server, request in self._held if request]
        for server, request in late:
            server.sendall(request)
        if late:
            time.sleep(_TO_RUN_SECONDS)

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            server = socket.create_connection((HOST, self._server_port))
            is_deaf = threading.Event()
            ends = (client, server, is_deaf)
            threading.Thread(target=self._hand_on_requests, args=ends, daemon=True).start()
            threading.Thread(target=_hand_on, args=(server, client, is_deaf), daemon=True).start()

    def _hand_on_requests(
        self, client: socket.socket, server: socket.socket, is_deaf: threading.Event
    ) -> None:
        try:
            while request := client.recv(1 << 16):
                cut = self._cut_for(request)
                if cut is None:
                    server.sendall(request)
                    continue
                if cut.loses_answer:
                    is_deaf.set()
                if cut.when in (When.RUNNING, When.FINISHED):
                    server.sendall(request)
                if cut.when == When.FINISHED:
                    _wait_for(cut.is_finished)
                if not cut.keeps_client:
                    _close(client)
                if cut.when == When.NEVER_SENT:
                    break
                # The server, which would stop what runs for a client that is gone, does not notice.
                with self._lock:
                    self._held.append((server, request if cut.when == When.LATE else b""))
                return
        except OSError:
            pass
        except BaseException as exc:
            self.failures.append(exc)
        _close(client)
        _close(server)

    def _cut_for(self, request: bytes) -> Cut | None:
        text = request.decode("latin-1")
        with self._lock:
            for cut in self._cuts:
                if re.search(cut.pattern, text):
                    cut.seen += 1
                    return cut if cut.after < cut.seen <= cut.after + cut.times else None
        return None


def kill_when_sent(folder: Path, cut: Cut, *command: str) -> None:
    """Run dbt in a process of its own, which is killed once it has sent the statement of a cut."""
    process = subprocess.Popen(
        [sys.executable, "-m", "dbt.cli.main", *command, "--profiles-dir", "."],
        cwd=folder,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        while not cut.seen:
            assert process.poll() is None, process.communicate()[0]
            time.sleep(0.05)
    finally:
        process.kill()
        process.communicate()


def _hand_on(server: socket.socket, client: socket.socket, is_deaf: threading.Event) -> None:
    try:
        while answer := server.recv(1 << 16):
            if not is_deaf.is_set():
                client.sendall(answer)
    except OSError:
        return
    _close(client)


def _wait_for(condition: Callable[[], bool]) -> None:
    until = time.monotonic() + _LONGEST_SECONDS
    while not condition():
        assert time.monotonic() < until, "the statement does not end"
        time.sleep(0.05)


def _close(connection: socket.socket) -> None:
    try:
        connection.shutdown(socket.SHUT_RDWR)
    except OSError:
        pass
    connection.close()
