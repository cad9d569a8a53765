"""The page of schemas in a real browser: a window and a phone, by day and by night, and hostile names."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dbt.adapters.sparkevolve.load.schema_page import page
from tests.unit.pages import AT, HOSTILE, stories

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
if CHROMIUM is None:
    pytest.skip("needs Chromium: apt-get install chromium", allow_module_level=True)
sync_api = pytest.importorskip("playwright.sync_api", reason="needs playwright: pip install playwright")
PHONE = {"width": 360, "height": 740}


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with sync_api.sync_playwright() as playwright:
        # In a container without a user namespace Chromium has no sandbox; the page is our own file.
        opened = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield opened
        opened.close()


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> str:
    path: Path = tmp_path_factory.mktemp("page") / "schema.html"
    path.write_text(page("shop", stories(), AT), encoding="utf-8", errors="backslashreplace")
    return path.as_uri()


class Tab:
    """A tab that notes what the page asks for and complains of."""

    def __init__(self, browser: Any, address: str, **context: Any) -> None:
        self.page = browser.new_context(**context).new_page()
        self.problems: list[str] = []
        self.requests: list[str] = []
        self.page.on("console", lambda message: self.problems.append(message.text))
        self.page.on("pageerror", lambda error: self.problems.append(str(error)))
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.goto(address)

    def lanes(self, model: str) -> list[str]:
        """The names of the lanes that can be seen."""
        box = self.page.locator(f'[id="model.shop.{model}"] .lane:not([hidden]) bdi')
        return [str(text) for n, text in enumerate(box.all_text_contents()) if n % 2 == 0]

    def asks_for_nothing(self, address: str) -> None:
        assert self.problems == []
        assert [url for url in self.requests if url not in (address, "data:,")] == []
        assert self.page.evaluate("window.harmed") is None


def colour(tab: Tab) -> list[int]:
    found = tab.page.evaluate("getComputedStyle(document.body).backgroundColor.match(/\\d+/g).map(Number)")
    return list(found)


def test_lanes_events_search_and_keys(browser: Any, address: str) -> None:
    tab = Tab(browser, address, viewport={"width": 1280, "height": 900}, color_scheme="light")
    assert tab.page.title() == "shop: columns over time"
    assert tab.lanes("orders") == ["order_id", "amount", "note", "channel", "address", "extra"]
    labels = [
        mark.get_attribute("aria-label")
        for mark in tab.page.locator('[id="model.shop.orders"] .mark:not(.created)').all()
    ]
    assert labels[0] == (
        "changed `amount` (2) from int to bigint. Schema 1, 2020-01-02 12:00 UTC, dbt run "
        "6f0c6d4c-5f4a-4a3c-9c53-0a1d4f6f2b01"
    )
    assert len(labels) == 6
    kinds = tab.page.locator("#kinds button").all_text_contents()
    assert kinds == ["×dropped1", "+added303", "↔renamed8", "↑widened1", "∅padded301"]

    # Fields are folded below their column.
    tab.page.get_by_role("button", name="Fields inside address").click()
    assert tab.lanes("orders") == ["order_id", "amount", "note", "channel", "address", "zip", "extra"]
    tab.page.get_by_role("button", name="Fields inside address").click()

    # The keyboard reaches each event, and what is told of it goes with Escape.
    tab.page.locator('[id="model.shop.orders"] .mark[tabindex="0"]').focus()
    tab.page.keyboard.press("ArrowDown")
    tab.page.keyboard.press("ArrowRight")
    tip = tab.page.locator("#tip")
    assert "changed `amount` (2) from int to bigint" in str(tip.text_content())
    assert "dbt run 6f0c6d4c" in str(tip.text_content())
    tab.page.keyboard.press("ArrowLeft")
    assert str(tip.text_content()).endswith(f"3 snapshots with it, the first {2**62 + 1}; then 30 rows")
    tab.page.keyboard.press("Escape")
    assert not tip.is_visible()

    # By a kind of event, by a column, by a field that is folded, by a run, by a table.
    tab.page.locator("#kinds button", has_text="widened").click()
    assert (tab.lanes("orders"), tab.lanes("wide")) == (["amount"], [])
    tab.page.locator("#kinds button", has_text="widened").click()
    search = tab.page.get_by_label("Search tables, columns, types and runs")
    search.fill("ZIP")
    assert tab.lanes("orders") == ["address", "zip"]
    assert tab.page.locator("#found").text_content() == "1 table, 1 column or field"
    search.fill("c299")
    assert (tab.lanes("orders"), tab.lanes("wide")) == ([], ["c299"])
    assert tab.page.locator(".model:visible").count() == 1
    search.fill("model.shop.orders")
    assert tab.lanes("orders") == ["order_id", "amount", "note", "channel", "address", "extra"]
    search.fill("")
    assert tab.page.locator(".model:visible").count() == 4
    assert len(tab.lanes("wide")) == 300
    assert "has no such Iceberg table" in str(tab.page.locator('[id="model.shop.away"]').text_content())

    # What others have named is a text.
    names = tab.page.locator(".model").nth(1).locator(".lane bdi").all_text_contents()[::2]
    assert [name.replace("\ufffd", "\ud83d") for name in names] == list(HOSTILE)
    assert colour(tab) == [251, 250, 247]
    tab.asks_for_nothing(address)


def test_a_phone_at_night(browser: Any, address: str) -> None:
    tab = Tab(browser, address, viewport=PHONE, color_scheme="dark", has_touch=True, is_mobile=True)
    assert max(colour(tab)) < 40
    widths = tab.page.evaluate("[document.documentElement.scrollWidth, window.innerWidth]")
    assert widths == [360, 360]
    tab.page.locator('[id="model.shop.orders"] .mark.widened').tap()
    box = tab.page.locator("#tip").bounding_box()
    assert box is not None
    assert box["x"] >= 0
    assert box["x"] + box["width"] <= 360
    tab.page.get_by_text("3 snapshots, rows and sizes").first.tap()
    assert tab.page.locator("td", has_text=str(2**62 + 3)).first.text_content() == str(2**62 + 3)
    assert tab.page.evaluate("document.documentElement.scrollWidth") == 360
    tab.asks_for_nothing(address)


def test_a_link_leads_to_a_table(browser: Any, address: str) -> None:
    tab = Tab(browser, f"{address}#model.shop.wide", viewport={"width": 1280, "height": 900})
    top = tab.page.evaluate("document.getElementById('model.shop.wide').getBoundingClientRect().top")
    assert 0 <= top < 450
