"""A catalog that is away: what the error says, how soon it comes, and what is waited for."""

import re
import socket
import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from datetime import datetime, timezone
from email.utils import format_datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from pyiceberg.catalog import AVAILABLE_CATALOGS, Catalog, CatalogType
from pyiceberg.exceptions import (
    CommitStateUnknownException,
    ForbiddenError,
    ServerError,
    ServiceUnavailableError,
    TooManyRequestsError,
    UnauthorizedError,
)
from requests import HTTPError, Response

from dbt.adapters.sparkevolve.cancellation import Cancellation
from dbt.adapters.sparkevolve.errors import CatalogAnswerError, CatalogUnavailableError, PublishError
from dbt.adapters.sparkevolve.iceberg import outages
from dbt.adapters.sparkevolve.iceberg.access import CatalogAccess
from dbt.adapters.sparkevolve.iceberg.addresses import address
from dbt.adapters.sparkevolve.iceberg.capabilities import capabilities_of
from dbt.adapters.sparkevolve.iceberg.catalog import IcebergCatalog
from dbt.adapters.sparkevolve.iceberg.catalog_settings import CatalogSettings, resolve
from dbt.adapters.sparkevolve.iceberg.outages import Watch
from dbt.adapters.sparkevolve.iceberg.publication import Published
from dbt.adapters.sparkevolve.iceberg.retry import answer
from dbt.adapters.sparkevolve.redaction import learn
from dbt.adapters.sparkevolve.relation import SparkEvolveRelation
from dbt.adapters.sparkevolve.warning import not_removed
from tests.unit.conftest import MakeTable
from tests.unit.helpers import append, columns, relation

HOST = "127.0.0.1"
SECRET = "not-for-others"


def closed_port() -> int:
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        return int(probe.getsockname()[1])


def properties(kind: str, host: str, port: int) -> dict[str, Any]:
    uris = {
        "postgresql": f"postgresql+psycopg2://me:{SECRET}@{host}:{port}/lake",
        "rest": f"http://{host}:{port}/catalog?password={SECRET}",
        "hive": f"thrift://{host}:{port}",
    }
    return {"type": {"postgresql": "sql"}.get(kind, kind), "uri": uris[kind], "warehouse": "file:///tmp/w"}


def gateway(kind: str, host: str, port: int, seconds: float, folder: Path) -> IcebergCatalog:
    return IcebergCatalog(resolve("lake", properties(kind, host, port), folder), None, seconds)


@contextmanager
def within(seconds: float) -> Iterator[None]:
    started = time.monotonic()
    yield
    assert time.monotonic() - started < seconds


KINDS = ("postgresql", "rest", "hive")


@pytest.mark.parametrize("kind", KINDS)
def test_a_catalog_that_refuses_connections(kind: str, tmp_path: Path) -> None:
    """At once, since a run that begins does not wait."""
    port = closed_port()
    catalog = gateway(kind, HOST, port, 60, tmp_path)
    with within(10), pytest.raises(CatalogUnavailableError) as error:
        catalog.check()
    assert str(error.value.msg) == (
        f"The Iceberg catalog `lake` at {HOST}:{port} cannot be reached: it refuses connections. See to it "
        "that it runs, and that `catalog_properties` of the profile name it; then run again."
    )
    assert (error.value.catalog, error.value.address) == ("lake", f"{HOST}:{port}")
    assert error.value.reason == "it refuses connections"


@pytest.mark.parametrize("kind", KINDS)
def test_a_catalog_without_an_address(kind: str, tmp_path: Path) -> None:
    catalog = gateway(kind, "no-such-host.invalid", 1, 60, tmp_path)
    with (
        within(30),
        pytest.raises(CatalogUnavailableError, match=r"no-such-host\.invalid:1 .* its name") as error,
    ):
        catalog.check()
    assert SECRET not in str(error.value)


@pytest.mark.parametrize("kind", KINDS)
def test_a_catalog_that_says_nothing(kind: str, tmp_path: Path) -> None:
    with socket.create_server((HOST, 0)) as server:
        catalog = gateway(kind, HOST, server.getsockname()[1], 1, tmp_path)
        with within(10), pytest.raises(CatalogUnavailableError, match="it does not answer") as error:
            catalog.find(relation("t"))
        # What is left of a run does not wait again.
        with within(3), pytest.raises(CatalogUnavailableError):
            catalog.drop_branch(relation("t"), "b")
    assert SECRET not in str(error.value)


def test_a_folder_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    settings = resolve("lake", {"type": "sql", "uri": f"sqlite:///{tmp_path}/file/c.db"}, tmp_path)
    with pytest.raises(CatalogUnavailableError, match="its file cannot be opened") as error:
        IcebergCatalog(settings).check()
    assert error.value.address == f"{tmp_path}/file/c.db"


def test_a_catalog_that_answers_and_cannot_be_opened(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """It is there, and what is in it fails with its name; nobody is told to start it."""
    for exc, text in (
        (ForbiddenError("not for you"), "lets nobody in: not for you. Correct what "),
        (ServerError("Internal: oh"), "cannot be opened by PyIceberg: Internal: oh. See whether "),
        (ValueError("no JSON"), "cannot be opened by PyIceberg: no JSON. See whether it is the server that "),
    ):
        catalog = gateway("rest", HOST, 1, 60, tmp_path)

        def fail(*args: Any, exc: Exception = exc) -> Catalog:
            raise exc

        monkeypatch.setitem(AVAILABLE_CATALOGS, CatalogType.REST, fail)
        for ask in (catalog.check, lambda: catalog.capabilities, lambda: catalog.find(relation("t"))):  # noqa: B023
            with pytest.raises(CatalogUnavailableError) as raised:
                ask()
            assert raised.value.msg.startswith(f"The Iceberg catalog `lake` at {HOST}:1 {text}")
            assert "`catalog_properties` of the profile" in raised.value.msg
            assert raised.value.of_another().msg == raised.value.msg


def test_a_catalog_that_lets_nobody_in_says_so_at_a_commit(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """As where a further catalog is asked first when descriptions are stored."""

    def fail(*args: Any) -> Catalog:
        raise ForbiddenError("not for you")

    monkeypatch.setitem(AVAILABLE_CATALOGS, CatalogType.REST, fail)
    catalog = gateway("rest", HOST, 1, 60, tmp_path)
    with pytest.raises(CatalogUnavailableError) as raised:
        catalog.set_docs(relation("t"), "d", {}, 0)
    assert raised.value.msg == (
        "The descriptions of `lake`.`db`.`t` could not be stored. The Iceberg catalog `lake` at "
        f"{HOST}:1 lets nobody in: not for you. Correct what `catalog_properties` of the profile say of it: "
        "the address, user and password, the database."
    )
    assert raised.value.undone == "The descriptions of `lake`.`db`.`t` could not be stored"
    assert raised.value.of_another().msg == raised.value.msg


PAGE = f"<html><style>b {{}}</style><b>Sign in</b><p>Bearer {SECRET}, \n please{' now' * 99}</html>"
WORDS = "Sign in Bearer *****, please now now"


@contextmanager
def answering(status: int, body: str, folder: Path, *, stops: bool = False) -> Iterator[IcebergCatalog]:
    """Have a REST catalog that can be opened, and answers all else with this, or with most of it."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            is_config = self.path.startswith("/v1/config")
            content = (b"{}" if is_config else body.encode()).replace(
                b"{}", b'{"defaults": {}, "overrides": {}}'
            )
            self.send_response(200 if is_config else status)
            self.send_header("Content-Length", str(len(content) + (stops and not is_config)))
            self.end_headers()
            self.wfile.write(content)

        do_POST = do_HEAD = do_GET

        def log_message(self, *_: Any) -> None:
            pass

    with ThreadingHTTPServer((HOST, 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        uri = f"http://{HOST}:{server.server_address[1]}"
        learn({"token": SECRET})
        yield IcebergCatalog(resolve("lake", {"type": "rest", "uri": uri, "token": SECRET}, folder), None, 2)
        server.shutdown()


@pytest.mark.parametrize(
    ("status", "body", "said"),
    [
        (
            200,
            PAGE,
            f"no answer of a REST catalog (Invalid JSON: expected value at line 1 column 1): {WORDS}",
        ),
        (200, '{"metadata": {', "no answer of a REST catalog (Invalid JSON: EOF while parsing an object at"),
        (
            200,
            "",
            "no answer of a REST catalog (Invalid JSON: EOF while parsing a value at line 1 column 0). The",
        ),
        (200, "[]", "no answer of a REST catalog (Input should be an object). The log"),
        (403, PAGE, f"HTTP 403: {WORDS}"),
        (500, '{"error": "plain"}', 'HTTP 500: {"error": "plain"}. The log'),
        (501, "", "NotImplementedError: RestError: Not Implemented. The log"),
    ],
)
def test_a_page_in_place_of_an_answer_is_told_in_short(
    status: int, body: str, said: str, tmp_path: Path
) -> None:
    """Nothing is wrong with the table: nobody is told to drop it."""
    with answering(status, body, tmp_path) as catalog:
        for what, ask in (
            ("`lake`.`db`.`t`", lambda: catalog.find(relation("t"))),
            ("`lake`.`db`", lambda: catalog.table_names("db")),
            ("`lake`.`db`", lambda: catalog.namespace_exists("db")),
            ("`lake`.`db`", lambda: catalog.access.folder_of("db")),
        ):
            with pytest.raises(CatalogAnswerError) as error:
                ask()
            assert error.value.msg.startswith(
                f"The Iceberg catalog `lake` at {catalog.access.settings.where} has answered with an error "
                f"when it was asked for {what}: {said}"
            )
            assert len(error.value.msg) < 500
            assert SECRET not in error.value.msg


def test_an_answer_that_stops_in_its_middle_is_an_outage(tmp_path: Path) -> None:
    with (
        answering(200, '{"metadata": ', tmp_path, stops=True) as catalog,
        pytest.raises(CatalogUnavailableError, match="it closed the connection"),
    ):
        catalog.find(relation("t"))


def test_a_catalog_that_hides_a_schema_is_there(
    lake: IcebergCatalog, other: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    def forbid(*args: Any) -> bool:
        raise ForbiddenError("not for you")

    monkeypatch.setattr(lake.access.opened, "namespace_exists", forbid)
    lake.check()


def test_an_error_that_a_catalog_answers_with_names_the_table(
    lake: IcebergCatalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*args: Any) -> Any:
        raise answers.pop()

    monkeypatch.setattr(lake.access.opened, "load_table", fail)
    answers: list[Exception] = [ServerError("Injected: injected.")]
    with pytest.raises(CatalogAnswerError) as error:
        lake.load(relation("t"))
    assert error.value.msg == (
        f"The Iceberg catalog `lake` at {lake.access.settings.where} has answered with an error when it was "
        "asked for `lake`.`db`.`t`: Injected: injected. The log of its server tells more; run again when "
        "that is mended."
    )
    assert answer(lake.access, error.value) == error.value.msg.rstrip(".")
    answers.append(ServiceUnavailableError("busy"))
    with pytest.raises(ServiceUnavailableError):
        lake.load(relation("t"))


def test_an_error_that_a_catalog_answers_with_names_the_schema(
    lake: IcebergCatalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*args: Any) -> Any:
        raise UnauthorizedError("NotAuthorizedException: who are you?")

    opened = lake.access.opened
    for name, ask in (
        ("list_tables", lambda: lake.table_names("db")),
        ("namespace_exists", lambda: lake.namespace_exists("db")),
        ("load_namespace_properties", lambda: lake.access.folder_of("db")),
    ):
        monkeypatch.setattr(opened, name, fail)
        with pytest.raises(CatalogAnswerError) as error:
            ask()
        assert error.value.msg == (
            f"The Iceberg catalog `lake` at {lake.access.settings.where} has answered with an error when it "
            "was asked for `lake`.`db`: NotAuthorizedException: who are you?. The log of its server tells "
            "more; run again when that is mended."
        )


@pytest.mark.parametrize(
    ("answered", "known"),
    [
        (ForbiddenError("not for you"), ""),
        (CommitStateUnknownException("Server error: oh"), ", as far as is known; the next run finds out"),
        (NotImplementedError("RestError: no"), ", as far as is known; the next run finds out"),
    ],
)
def test_a_commit_that_a_catalog_refuses_names_the_table_and_what_was_not_done(
    lake: IcebergCatalog,
    target: SparkEvolveRelation,
    monkeypatch: pytest.MonkeyPatch,
    answered: Exception,
    known: str,
) -> None:
    def fail(*args: Any) -> Any:
        raise answered

    monkeypatch.setattr(lake.access.opened, "commit_table", fail)
    for undone, commit in (
        (f"The descriptions of {target} could not be stored", lambda: lake.set_docs(target, "d", {}, 0)),
        (f"Properties of {target} could not be set", lambda: lake.set_properties(target, {"a": "b"}, 0)),
        (f"A branch of {target} could not be removed", lambda: lake.drop_branch(target, "b")),
    ):
        with pytest.raises(CatalogAnswerError) as error:
            commit()
        assert error.value.msg == (
            f"{undone}{known}: the Iceberg catalog `lake` at {lake.access.settings.where} has answered with "
            f"an error: {str(answered).rstrip('.')}. The log of its server tells more; run again when that "
            "is mended."
        )


def test_a_file_that_stays_locked_is_told_apart_from_one_that_is_away(
    settings: CatalogSettings, target: SparkEvolveRelation
) -> None:
    hasty = str(settings.pyiceberg["uri"]).replace("timeout=60", "timeout=0.1")
    lake = IcebergCatalog(replace(settings, pyiceberg={**settings.pyiceberg, "uri": hasty}))
    lake.check()
    with closing(sqlite3.connect(str(settings.sqlite_file), isolation_level=None)) as holder:
        holder.execute("BEGIN IMMEDIATE")
        with pytest.raises(CatalogUnavailableError) as error:
            lake.set_docs(target, "d", {}, 0)
    assert error.value.msg == (
        f"The descriptions of {target} could not be stored. The Iceberg catalog `lake` is the SQLite file "
        f"{settings.sqlite_file}, and another program has held its lock for 60 s: one that writes a lot at "
        "once, one with a transaction that it has not ended, such as a browser of databases, or a copy or "
        "backup of the file. See which one has it open, end that, and run again."
    )
    lake.set_docs(target, "d", {}, 0)


def test_what_a_database_refuses_is_told_without_the_statement(
    lake: IcebergCatalog, target: SparkEvolveRelation, settings: CatalogSettings
) -> None:
    """As to a user who may only read it."""
    with sqlite3.connect(str(settings.sqlite_file)) as database:
        for change in ("UPDATE", "DELETE"):
            database.execute(
                f"CREATE TRIGGER no_{change} BEFORE {change} ON iceberg_tables "
                "BEGIN SELECT RAISE(ABORT, 'not for you'); END"
            )
    for undone, change_it in (
        (f"The descriptions of {target} could not be stored", lambda: lake.set_docs(target, "d", {}, 0)),
        (f"A branch of {target} could not be removed", lambda: lake.drop_branch(target, "b")),
        (f"{target} could not be removed", lambda: lake.purge(target)),
    ):
        with pytest.raises(CatalogAnswerError) as error:
            change_it()
        # Who warns of what is left says it where the error does not.
        said = error.value.msg if "removed" in undone else f"It could not be removed: {error.value.msg}"
        assert not_removed("It", error.value) == said
        assert error.value.msg == (
            f"{undone}: the Iceberg catalog `lake` at {lake.access.settings.where} has answered with an "
            "error: not for you. The log of its server tells more; run again when that is mended."
        )
    assert lake.load(target).scan().to_arrow().to_pylist() == [{"id": 1}]
    with sqlite3.connect(str(settings.sqlite_file)) as database:
        database.execute("ALTER TABLE iceberg_tables RENAME TO gone")
    with pytest.raises(CatalogAnswerError, match=r"for `lake`\.`db`\.`t`: no such table: iceberg_tables\."):
        lake.find(target)


def test_what_is_left_is_named_where_the_error_is_about_something_else(
    lake: IcebergCatalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By what the error knows: a table, or an answer, may have any words in it."""

    def fail(*args: Any) -> Any:
        raise ServerError("a file could not be removed")

    monkeypatch.setattr(lake.access.opened, "load_table", fail)
    with pytest.raises(CatalogAnswerError) as error:
        lake.drop_branch(relation("t"), "b")
    assert not error.value.names_leftover
    assert not_removed("The branch b", error.value) == f"The branch b could not be removed: {error.value.msg}"


@pytest.mark.parametrize("status", [429, 503])
def test_a_catalog_that_stays_busy_is_not_said_to_have_other_writers(
    lake: IcebergCatalog, target: SparkEvolveRelation, monkeypatch: pytest.MonkeyPatch, status: int
) -> None:
    response = Response()
    response.status_code = status
    asked: list[None] = []

    def fail(*args: Any) -> Any:
        asked.append(None)
        kind = {429: TooManyRequestsError, 503: ServiceUnavailableError}[status]
        raise kind("SlowDown: busy") from HTTPError("busy", response=response)

    monkeypatch.setattr(lake.access.opened, "commit_table", fail)
    with pytest.raises(CatalogUnavailableError) as error:
        lake.set_docs(target, "d", {}, 1)
    assert len(asked) == 2
    assert (
        f" cannot be reached: it answers with HTTP {status}. The descriptions of {target} could not be "
        "stored, as far as is known; the next run finds out. See to it "
    ) in error.value.msg


@pytest.mark.parametrize("said", ["1", "date", "99999", "soon"])
def test_a_catalog_is_left_alone_as_long_as_it_asks(
    lake: IcebergCatalog, target: SparkEvolveRelation, monkeypatch: pytest.MonkeyPatch, said: str
) -> None:
    """At most as long as it may be away; what is no time is passed over."""
    lake.access.watch = Watch(replace(lake.access.settings, sqlite_file=None), 2, lake.access.cancellation)
    response = Response()
    response.status_code = 503
    response.headers["Retry-After"] = (
        format_datetime(datetime.fromtimestamp(time.time() + 2, timezone.utc)) if said == "date" else said
    )
    failures = [None]
    real = lake.access.opened.commit_table

    def commit_table(*args: Any) -> Any:
        if failures:
            failures.pop()
            raise ServiceUnavailableError("SlowDown: busy") from HTTPError("busy", response=response)
        return real(*args)

    monkeypatch.setattr(lake.access.opened, "commit_table", commit_table)
    started = time.monotonic()
    lake.set_docs(target, "d", {}, 1)
    assert {"1": 1, "date": 1, "99999": 2, "soon": 0}[said] <= time.monotonic() - started < 5


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"uri": f"postgresql+psycopg2://me:{SECRET}@h/lake"}, "h:5432"),
        ({"uri": f"mysql+pymysql://me:{SECRET}@h/lake"}, "h:3306"),
        ({"uri": f"https://me:{SECRET}@h/x?token={SECRET}"}, "h:443"),
        ({"uri": "thrift://h"}, "h:9083"),
        ({"uri": "http://[::1]:8181/c"}, "::1:8181"),
        ({"uri": "sqlite:////a/b.db"}, "/a/b.db"),
        ({"uri": "http://h:port"}, "an address that cannot be read"),
        ({"type": "glue", "glue.region": "eu-central-1"}, "AWS in eu-central-1"),
        ({"type": "rest"}, "no address"),
    ],
)
def test_an_address_has_no_secret(given: dict[str, str], text: str) -> None:
    assert address(given) == text


class Failing:
    """A question that meets an outage so many times, and then is answered."""

    def __init__(self, times: int) -> None:
        self.left = times

    def __call__(self) -> str:
        if self.left:
            self.left -= 1
            raise ConnectionRefusedError(111, "refused")
        return "answer"


@pytest.fixture
def watch(settings: CatalogSettings, monkeypatch: pytest.MonkeyPatch) -> Watch:
    """A watch over a server that has answered once, with short pauses."""
    return watching(settings, monkeypatch, 5, Cancellation())


def watching(
    settings: CatalogSettings, monkeypatch: pytest.MonkeyPatch, seconds: float, cancellation: Cancellation
) -> Watch:
    monkeypatch.setattr(outages, "LONGEST_PAUSE_SECONDS", 0.01)
    made = Watch(replace(settings, sqlite_file=None), seconds, cancellation)
    made.ask(Failing(0))
    return made


def test_an_outage_during_a_run_is_waited_out(watch: Watch) -> None:
    assert watch.ask(Failing(20)) == "answer"


def test_an_outage_is_not_waited_out_for_ever(
    settings: CatalogSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    watch = watching(settings, monkeypatch, 1.2, Cancellation())
    with within(4), pytest.raises(CatalogUnavailableError) as error:
        watch.ask(Failing(10**9), "It was not done")
    assert error.value.waited_seconds >= 1.2
    assert str(error.value.msg).endswith(
        " It was not done. See to it that it runs, and that `catalog_properties` of the profile name it; "
        "then run again. `catalog_timeout` is how long a run waits for it."
    )
    # Only once.
    with within(0.5), pytest.raises(CatalogUnavailableError):
        watch.ask(Failing(10**9))


def test_a_run_that_was_cancelled_does_not_wait(
    settings: CatalogSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    cancellation = Cancellation()
    watch = watching(settings, monkeypatch, 5, cancellation)
    thread = threading.Thread(target=cancellation.cancel)
    thread.start()
    thread.join()
    with within(1), pytest.raises(CatalogUnavailableError):
        watch.ask(Failing(10**9))


def test_another_error_is_handed_on_at_once(watch: Watch) -> None:
    def fail() -> None:
        raise ValueError("no outage")

    with within(1), pytest.raises(ValueError, match="no outage"):
        watch.ask(fail)


def served(settings: CatalogSettings, seconds: float = 60) -> IcebergCatalog:
    """Return the catalog as one behind a server, that is waited for: a file is not."""
    return IcebergCatalog(replace(settings, sqlite_file=None), None, seconds)


@pytest.fixture
def target(make_table: MakeTable, other: Catalog) -> SparkEvolveRelation:
    """A table with a row, and a branch on which a run has loaded another."""
    made = make_table(columns("id int"), [{"id": 1}])
    table = other.load_table("db.t")
    assert table.metadata.current_snapshot_id is not None
    with table.manage_snapshots() as manage:
        manage.create_branch(table.metadata.current_snapshot_id, "b", max_ref_age_ms=3_600_000)
    append(table, [{"id": 2}], "b")
    return made


def rows(other: Catalog) -> list[int]:
    return sorted(row["id"] for row in other.load_table("db.t").scan().to_arrow().to_pylist())


@pytest.mark.parametrize("retries", [0, 4])
@pytest.mark.parametrize("is_made", [False, True])
def test_a_publication_waits_for_a_catalog_that_restarts(
    settings: CatalogSettings,
    other: Catalog,
    target: SparkEvolveRelation,
    monkeypatch: pytest.MonkeyPatch,
    retries: int,
    is_made: bool,
) -> None:
    """It goes away while the commit is made, or before, and comes back two seconds later."""
    lake = served(settings)
    base = lake.base(target, lambda: None)
    real_commit, real_load = lake.access.opened.commit_table, lake.access.opened.load_table
    away_until: list[float] = []

    def commit(*args: Any) -> Any:
        if away_until:
            return real_commit(*args)
        if is_made:
            real_commit(*args)
        away_until.append(time.monotonic() + 2)
        raise ConnectionResetError("it goes away")

    def load(*args: Any) -> Any:
        if away_until and time.monotonic() < away_until[0]:
            raise ConnectionRefusedError(111, "away")
        return real_load(*args)

    monkeypatch.setattr(lake.access.opened, "commit_table", commit)
    monkeypatch.setattr(lake.access.opened, "load_table", load)
    assert lake.publish(target, base, "b", retries) == Published.YES
    assert rows(other) == [1, 2]
    assert set(other.load_table("db.t").metadata.refs) == {"main"}


@pytest.mark.parametrize("is_sent", [False, True])
def test_a_publication_to_a_catalog_that_stays_away(
    settings: CatalogSettings,
    target: SparkEvolveRelation,
    monkeypatch: pytest.MonkeyPatch,
    is_sent: bool,
) -> None:
    lake = served(settings, 1.2)
    base = lake.base(target, lambda: None)
    real_load = lake.access.opened.load_table
    is_away = [not is_sent]

    def fail(*args: Any) -> Any:
        is_away[0] = True
        raise ConnectionRefusedError(111, "away")

    def load(*args: Any) -> Any:
        return fail() if is_away[0] else real_load(*args)

    monkeypatch.setattr(lake.access.opened, "commit_table", fail)
    monkeypatch.setattr(lake.access.opened, "load_table", load)
    with within(6), pytest.raises((CatalogUnavailableError, PublishError)) as error:
        lake.publish(target, base, "b", 4)
    if is_sent:
        assert isinstance(error.value, PublishError)
        assert error.value.snapshot_id == base.table.metadata.refs["b"].snapshot_id
    else:
        assert isinstance(error.value, CatalogUnavailableError)
    text = str(error.value)
    assert re.search(r"cannot be reached: it refuses connections, for \d s now\. ", text)
    assert "away" not in text
    if not is_sent:
        assert f"The batch was not published: readers of {target} see the rows that were there." in text


@pytest.mark.parametrize("what", ["descriptions", "branch"])
def test_small_commits_wait_for_a_catalog_that_restarts(
    settings: CatalogSettings,
    other: Catalog,
    target: SparkEvolveRelation,
    monkeypatch: pytest.MonkeyPatch,
    what: str,
) -> None:
    """It closes the connection in the commit: once, and then time after time."""
    lake = served(settings)
    real, calls = lake.access.opened.commit_table, [ConnectionResetError("it goes away")]

    def commit_table(*args: Any) -> Any:
        if calls:
            raise calls.pop()
        return real(*args)

    def change(number: int) -> None:
        if what == "branch":
            lake.drop_branch(target, "b")
        else:
            lake.set_docs(target, f"text {number}", {}, 0)

    def found() -> Any:
        table = other.load_table("db.t")
        return set(table.metadata.refs) if what == "branch" else table.properties.get("comment")

    before = found()
    monkeypatch.setattr(lake.access.opened, "commit_table", commit_table)
    calls += [ConnectionResetError("it goes away")] * 9
    with pytest.raises(CatalogUnavailableError) as raised:
        change(1)
    undone = {
        "descriptions": f"The descriptions of {target} could not be stored, ",
        "branch": f"A branch of {target} could not be removed, ",
    }
    text = f"it closed the connection. {undone[what]}as far as is known; the next run finds out. "
    assert text in str(raised.value.msg)
    assert found() == before
    del calls[1:]
    change(2)
    assert found() == ({"main"} if what == "branch" else "text 2")


@pytest.mark.parametrize(
    ("failures", "is_known"),
    [
        ([OSError("disk full")] * 2, True),
        # The catalog may carry it out after it was looked at.
        ([TimeoutError("no answer")] * 6, False),
        ([TimeoutError("no answer"), OSError("disk full"), OSError("disk full")], False),
    ],
    ids=["refused", "silent", "silent once"],
)
def test_whether_a_publication_is_known_not_to_be_made(
    lake: IcebergCatalog,
    other: Catalog,
    target: SparkEvolveRelation,
    monkeypatch: pytest.MonkeyPatch,
    failures: list[Exception],
    is_known: bool,
) -> None:
    left = list(failures)

    def fail(*args: Any) -> Any:
        raise left.pop(0)

    base = lake.base(target, lambda: None)
    monkeypatch.setattr(lake.access.opened, "commit_table", fail)
    with pytest.raises(PublishError) as error:
        lake.publish(target, base, "b", 1)
    head = other.load_table("db.t").metadata.refs["b"].snapshot_id
    assert error.value.snapshot_id == (None if is_known else head)
    assert ("Readers see the table as it was before; run again." in str(error.value.msg)) == is_known
    assert rows(other) == [1]


@pytest.mark.parametrize(
    ("kind", "request_"),
    [("sql", "load_table"), ("sql", "drop_table"), ("rest", "purge_table"), ("glue", "drop_table")],
)
def test_a_catalog_that_does_not_answer_while_a_table_is_removed(
    settings: CatalogSettings,
    make_table: MakeTable,
    monkeypatch: pytest.MonkeyPatch,
    kind: str,
    request_: str,
) -> None:
    table = make_table(columns("id int"), [{"id": 1}])
    lake = served(settings, 0.5)
    is_rest = {"type": "rest", "rest.signing-name": kind, "uri": "http://h"}
    can = capabilities_of({"type": "sql"} if kind == "sql" else is_rest)
    monkeypatch.setattr(CatalogAccess, "capabilities", can)
    lake.load(table)
    ended = threading.Event()
    asked: list[str] = []

    def wait(*args: Any) -> None:
        asked.append(request_)
        ended.wait(30)
        raise ConnectionError("the test has ended")

    monkeypatch.setattr(lake.access.opened, request_, wait)
    try:
        with within(5), pytest.raises(CatalogUnavailableError) as error:
            lake.purge(table, "file:///nowhere")
    finally:
        ended.set()
    assert "cannot be reached: it does not answer. `lake`.`db`.`t` could not be removed" in error.value.msg
    # Once is enough.
    assert asked == [request_]
