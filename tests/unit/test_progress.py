"""What is said of statements that take long."""

import threading
import time

import pytest
from dbt_common.events.contextvars import log_contextvars

from dbt.adapters.sparkevolve.spark import progress
from dbt.adapters.sparkevolve.spark.progress import Progress, Tasks, progress_text
from dbt.adapters.sparkevolve.terminal import StatusLine


class Shown(StatusLine):
    """A line that keeps what it is given."""

    def __init__(self, is_wanted: bool) -> None:
        super().__init__()
        self.wanted = is_wanted
        self.texts: list[str] = []

    @property
    def is_wanted(self) -> bool:
        return self.wanted

    def show(self, text: str) -> None:
        self.texts.append(text)

    def clear(self) -> None:
        self.texts.append("")


def until(done: threading.Event, is_so: "list[str]") -> None:
    end = time.monotonic() + 10
    while len(is_so) < 2 and time.monotonic() < end:
        time.sleep(0.01)
    done.set()


def test_a_line_is_logged_now_and_then(monkeypatch: pytest.MonkeyPatch) -> None:
    texts: list[str] = []
    monkeypatch.setattr(progress.logger, "info", texts.append)
    watch = Progress(Shown(is_wanted=False), every=0.05)
    with (
        log_contextvars(node_info={"unique_id": "model.shop.orders"}),
        watch.watched(lambda: Tasks(3, 8)),
    ):
        until(threading.Event(), texts)
    assert texts[0] == "model.shop.orders: a statement has been running for 0 s, 3 of 8 tasks done"
    said = len(texts)
    time.sleep(0.2)
    assert len(texts) == said


def test_a_terminal_gets_a_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "SHOWN_AFTER_SECONDS", 0)
    line = Shown(is_wanted=True)
    watch = Progress(line, every=0.05)

    def fails() -> Tasks:
        raise ConnectionRefusedError

    with watch.watched(fails):
        until(threading.Event(), line.texts)
    assert line.texts[0] == "Spark  0 s"
    end = time.monotonic() + 10
    while line.texts[-1] and time.monotonic() < end:
        time.sleep(0.01)
    assert line.texts[-1] == ""
    line.texts.clear()
    with watch.watched(lambda: Tasks(1, 4)), watch.watched(lambda: None):
        until(threading.Event(), line.texts)
    assert line.texts[1] == "Spark  [=====>              ] 1/4 tasks, 0 s (and 1 more)"


def test_texts() -> None:
    assert progress_text("n", 90, None) == "n: a statement has been running for 90 s"
    assert progress_text("n", 30, Tasks(0, 1)).endswith("30 s, 0 of 1 task done")
