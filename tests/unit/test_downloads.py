"""Which processes wait for each other before Spark downloads its jars."""

import fcntl
import functools
import http.server
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dbt.adapters.sparkevolve.spark import downloads
from dbt.adapters.sparkevolve.spark.downloads import PACKAGES, Downloads, one_at_a_time


class Cache:
    """A folder of Spark's for jars, that is empty until something has been downloaded."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.has_jars, self.looks = folder, False, 0

    def config(self) -> dict[str, str]:
        self.looks += 1
        return (
            {"spark.jars": "x.jar"}
            if self.has_jars
            else {PACKAGES: "g:x:1", "spark.jars.ivy": str(self.folder)}
        )


@pytest.fixture
def cache(tmp_path: Path) -> Cache:
    return Cache(tmp_path / "ivy")


def is_locked(folder: Path) -> bool:
    with (folder / "dbt-sparkevolve-download.lock").open("ab") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


def test_the_folder_is_locked_while_jars_are_downloaded(cache: Cache) -> None:
    with one_at_a_time(cache.config) as config:
        assert PACKAGES in config
        assert is_locked(cache.folder)
    assert not is_locked(cache.folder)
    with pytest.raises(ValueError, match="no Java"), one_at_a_time(cache.config):
        raise ValueError("no Java")
    assert not is_locked(cache.folder)


def test_who_has_waited_looks_again_for_the_jars(cache: Cache, monkeypatch: pytest.MonkeyPatch) -> None:
    waits, given, texts = threading.Event(), [], []

    def say(text: str) -> None:
        texts.append(text)
        waits.set()

    monkeypatch.setattr(downloads.logger, "info", say)

    def second() -> None:
        with one_at_a_time(cache.config) as config:
            given.append(config)

    thread = threading.Thread(target=second)
    with one_at_a_time(cache.config):
        thread.start()
        assert waits.wait(60)
        assert given == []
        cache.has_jars = True
    thread.join(60)
    assert given == [{"spark.jars": "x.jar"}]
    assert texts == ["Another process is downloading Spark's jars: waiting for it"]


def test_nobody_waits_where_the_jars_are(cache: Cache) -> None:
    cache.has_jars = True
    with one_at_a_time(cache.config) as config:
        assert config == {"spark.jars": "x.jar"}
    assert cache.looks == 1
    assert not cache.folder.exists()


def test_without_a_folder_of_its_own_the_lock_is_in_the_users_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(downloads, "user_home", lambda: tmp_path)
    with one_at_a_time(lambda: {PACKAGES: "g:x:1"}):
        assert is_locked(tmp_path / ".cache" / "dbt-sparkevolve")


@pytest.mark.parametrize("trouble", ["no folder", "no locks"])
def test_where_nothing_can_be_locked_the_run_goes_on(
    cache: Cache, trouble: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any) -> None:
        raise OSError("No locks available")

    if trouble == "no folder":
        cache.folder.write_text("a file")
    else:
        monkeypatch.setattr(fcntl, "flock", refuse)
    with one_at_a_time(cache.config) as config:
        assert PACKAGES in config


JAR = "g-1.jar"


class Repository(http.server.SimpleHTTPRequestHandler):
    """A Maven repository of one jar."""

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


@pytest.fixture
def repository(tmp_path: Path) -> Iterator[str]:
    (tmp_path / "served").mkdir()
    (tmp_path / "served" / JAR).write_bytes(b"x" * 2500)
    handler = functools.partial(Repository, directory=str(tmp_path / "served"))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def test_a_download_is_told_with_its_size(
    repository: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts: list[str] = []
    monkeypatch.setattr(downloads.logger, "info", texts.append)
    cached = tmp_path / "ivy" / "cache" / "o" / "g" / "jars"
    cached.mkdir(parents=True)
    (cached / JAR).write_bytes(b"x" * 2500)
    (tmp_path / "ivy" / "jars").mkdir()
    with Downloads({"spark.jars.ivy": str(tmp_path / "ivy")}) as told:
        told.watch(":: resolving dependencies ::")
        told.watch(f"downloading {repository}/{JAR} ...")
        while not texts:
            time.sleep(0.01)
        told.watch("\t[SUCCESSFUL ] o#g;1!g.jar (2437ms)")
        told.watch(f"downloading {repository.replace('//', '//me:secret@')}/gone.jar ...")
        while len(texts) < 3:
            time.sleep(0.01)
        told.watch("\t[FAILED     ] o#g;1!g.jar (12ms)")
    assert texts == [
        "Downloading g-1.jar (2.5 kB) from 127.0.0.1",
        "Downloaded g-1.jar, 2.5 kB, in 2.4 s",
        "Downloading gone.jar from 127.0.0.1",
    ]
