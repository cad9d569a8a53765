"""What Spark's one Java has of the profile that runs, where profiles take turns in a process."""

import socket
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest
from py4j.protocol import Py4JJavaError

from dbt.adapters.sparkevolve.errors import ProfileError
from dbt.adapters.sparkevolve.iceberg.catalog_settings import resolve
from dbt.adapters.sparkevolve.spark.session import SESSIONS
from tests.functional.servers import HOST
from tests.unit.thrift_fake import make_certificate, server_tls

GLUE = {"type": "glue", "warehouse": "s3://w", "glue.region": "eu-central-1"}
NAMES = ("aws.accessKeyId", "aws.secretAccessKey", "aws.sessionToken", "javax.net.ssl.trustStore")


@pytest.fixture(autouse=True)
def _only_in_session(method: str) -> None:
    if method != "session":
        pytest.skip("a server is started by its operator")


def glue(key: str, **further: Any) -> dict[str, Any]:
    return {**GLUE, "glue.access-key-id": key, "glue.secret-access-key": f"secret of {key}", **further}


def test_java_has_what_the_profile_says_that_runs_now(profile_target: dict[str, Any], tmp_path: Path) -> None:
    authority = make_certificate(tmp_path, "server", f"IP:{HOST}")
    rest = {"type": "rest", "uri": "https://127.0.0.1:1/", "ssl": {"cabundle": str(authority)}}

    def session(properties: dict[str, Any]) -> Any:
        settings = resolve("lake", properties, tmp_path)
        return SESSIONS.get(settings, profile_target["spark_config"], {}, tmp_path)

    jvm = session(GLUE).sparkContext._jvm
    system = jvm.java.lang.System

    def found() -> list[str | None]:
        return [system.getProperty(name) for name in NAMES]

    def is_trusted() -> bool:
        with socket.create_server((HOST, 0)) as listener, ThreadPoolExecutor() as threads:
            threads.submit(answer, listener)
            sockets = jvm.javax.net.ssl.SSLContext.getDefault().getSocketFactory()
            with closing(sockets.createSocket(HOST, listener.getsockname()[1])) as client:
                try:
                    client.startHandshake()
                except Py4JJavaError as exc:
                    return "unable to find valid certification path" not in str(exc)
                return True

    def answer(listener: socket.socket) -> None:
        client, _ = listener.accept()
        with client, suppress(OSError), server_tls(authority).wrap_socket(client, server_side=True):
            pass

    before = found()
    assert before[0] is None
    system.setProperty("aws.sessionToken", "the program's")
    try:
        dev, prod = glue("DEV"), glue("PROD", **{"glue.session-token": "token"})
        has_dev = ["DEV", "secret of DEV", "the program's", before[3]]
        has_prod = ["PROD", "secret of PROD", "token", before[3]]
        for properties, said in (
            (dev, has_dev),
            (prod, has_prod),
            (dev, has_dev),
            (prod, has_prod),
            (GLUE, [None, None, "the program's", before[3]]),
        ):
            session(properties)
            assert found() == said
        assert not is_trusted()
        session(rest)
        assert found()[:3] == [None, None, "the program's"]
        store = str(found()[3])
        assert store.startswith(str(tmp_path / ".sparkevolve" / "trusted-"))
        assert is_trusted()
        # One that cannot be used leaves nothing of the profile before, and is tried again.
        (tmp_path / "no.pem").write_text("")
        for _ in range(2):
            with pytest.raises(ProfileError, match="has no certificate"):
                session({**rest, "ssl": {"cabundle": str(tmp_path / "no.pem")}})
        assert found()[3] == before[3]
        assert not is_trusted()
        session(rest)
        assert found()[3] == store
        assert is_trusted()
        session(dev)
        assert found() == has_dev
        assert not is_trusted()
    finally:
        system.clearProperty("aws.sessionToken")
        session(GLUE)
    assert found() == before
