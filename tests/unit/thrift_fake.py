"""A server that speaks what a connection needs of HiveServer2's protocol, and falls silent on command."""

import shutil
import socket
import ssl
import subprocess
import threading
from pathlib import Path
from types import TracebackType
from typing import Any

import pytest
from TCLIService import TCLIService
from TCLIService import ttypes as t
from thrift.protocol.TBinaryProtocol import TBinaryProtocol
from thrift.transport.TTransport import TBufferedTransport, TTransportException

HOST = "127.0.0.1"


class FakeServer:
    """A Thrift server with ``auth: NOSASL``; used as a context manager.

    Attributes:
        port: where it listens.
        silent_at: the call that it does not answer, if any.
        endless: a statement with this text in it runs until it is cancelled.
        calls: the names of all calls, and the texts of statements.
    """

    def __init__(self, silent_at: str = "", tls: ssl.SSLContext | None = None) -> None:
        self.silent_at = silent_at
        self.endless = "endless"
        self.calls: list[str] = []
        self._tls = tls
        self._cancelled = False
        self._statement = ""
        self._closed = threading.Event()
        self._listener = socket.create_server((HOST, 0))
        self.port = int(self._listener.getsockname()[1])
        threading.Thread(target=self._accept, daemon=True).start()

    def __enter__(self) -> "FakeServer":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._closed.set()
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        try:
            if self._tls is not None:
                client = self._tls.wrap_socket(client, server_side=True)
            transport = TBufferedTransport(_Accepted(client))
            protocol = TBinaryProtocol(transport)
            processor = TCLIService.Processor(self)
            while True:
                processor.process(protocol, protocol)
        except (OSError, TTransportException):
            client.close()

    def _answer(self, name: str, answer: Any) -> Any:
        self.calls.append(name)
        if name == self.silent_at:
            self._closed.wait()
        answer.status = t.TStatus(statusCode=t.TStatusCode.SUCCESS_STATUS)
        return answer

    # The calls, by Thrift's names

    def OpenSession(self, req: Any) -> Any:
        session = t.TSessionHandle(sessionId=t.THandleIdentifier(guid=b"s" * 16, secret=b"s" * 16))
        version = t.TProtocolVersion.HIVE_CLI_SERVICE_PROTOCOL_V6
        return self._answer(
            "OpenSession", t.TOpenSessionResp(serverProtocolVersion=version, sessionHandle=session)
        )

    def ExecuteStatement(self, req: Any) -> Any:
        self._statement = req.statement
        self._cancelled = False
        self.calls.append(req.statement)
        operation = t.TOperationHandle(
            operationId=t.THandleIdentifier(guid=b"o" * 16, secret=b"o" * 16),
            operationType=t.TOperationType.EXECUTE_STATEMENT,
            hasResultSet=True,
        )
        if req.statement.startswith("USE"):
            return self._answer("use", t.TExecuteStatementResp(operationHandle=operation))
        return self._answer("ExecuteStatement", t.TExecuteStatementResp(operationHandle=operation))

    def GetOperationStatus(self, req: Any) -> Any:
        state = t.TOperationState.FINISHED_STATE
        if self.endless in self._statement:
            state = t.TOperationState.RUNNING_STATE
        if self._cancelled:
            state = t.TOperationState.CANCELED_STATE
        return self._answer("GetOperationStatus", t.TGetOperationStatusResp(operationState=state))

    def CancelOperation(self, req: Any) -> Any:
        self._cancelled = True
        return self._answer("CancelOperation", t.TCancelOperationResp())

    def CloseOperation(self, req: Any) -> Any:
        return self._answer("CloseOperation", t.TCloseOperationResp())

    def CloseSession(self, req: Any) -> Any:
        return self._answer("CloseSession", t.TCloseSessionResp())

    def FetchResults(self, req: Any) -> Any:
        rows = t.TRowSet(startRowOffset=0, rows=[], columns=[])
        return self._answer("FetchResults", t.TFetchResultsResp(hasMoreRows=False, results=rows))

    def GetResultSetMetadata(self, req: Any) -> Any:
        schema = t.TTableSchema(columns=[])
        return self._answer("GetResultSetMetadata", t.TGetResultSetMetadataResp(schema=schema))


class _Accepted:
    """A socket, as Thrift reads and writes it."""

    def __init__(self, client: socket.socket) -> None:
        self._client = client

    def isOpen(self) -> bool:
        return True

    def read(self, size: int) -> bytes:
        found = self._client.recv(size)
        if not found:
            raise TTransportException(TTransportException.END_OF_FILE)
        return found

    def write(self, data: bytes) -> None:
        self._client.sendall(data)

    def flush(self) -> None:
        pass

    def close(self) -> None:
        self._client.close()


def make_certificate(folder: Path, name: str, *names: str) -> Path:
    """Make a self-signed certificate for these names, and its key, in one file of PEM format."""
    if shutil.which("openssl") is None:
        pytest.skip("needs the openssl program")
    path = folder / f"{name}.pem"
    key = folder / f"{name}.key"
    subject = ["-subj", f"/CN={name}", "-addext", "subjectAltName=" + ",".join(names)]
    files = ["-keyout", str(key), "-out", str(path)]
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", *subject, *files],
        check=True,
        capture_output=True,
    )
    path.write_text(path.read_text() + key.read_text())
    return path


def server_tls(certificate: Path) -> ssl.SSLContext:
    """Return how a server with this certificate speaks TLS."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    return context
