"""A site opened from disk in Chromium, and used as a person would: by mouse, by keyboard, on a phone, in the dark.

Skipped where there is no Chromium (`apt-get install chromium`, or MVBUILD_CHROMIUM). MVBUILD_SCREENSHOTS is a folder for pictures of what
the tests have seen.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from threading import Thread

import pytest

from browser.chromium import Browser, Page, browser, find_chromium
from mvbuild import api
from mvbuild.api import sessions
from mvbuild.incremental.table_changes import Changes
from mvbuild.site.serve import SiteServer
from unit.worlds import SCHEMA, Shop, append, shop

CHROMIUM = find_chromium()
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium: apt-get install chromium, or set MVBUILD_CHROMIUM")
HOSTILE = "<img src=x onerror=document.title=1> </script><script>document.title=1</script> `code` and [a link](https://example.com/)"
FILES = {
    "mvbuild.yml": "name: shop\n",
    "models/staging/cleaned.sql": "{{ config(materialized='ephemeral') }}\nSELECT id FROM raw.orders WHERE id > 0\n",
    "models/staging/orders.sql": "{{ config(materialized='view') }}\nSELECT id FROM {{ ref('cleaned') }}\n",
    "models/marts/daily.sql": "SELECT id, /* <b>not bold</b> */ id + 1 AS next_id FROM {{ ref('orders') }}\n",
    "models/marts/daily.yml": (
        f"models:\n  - name: daily\n    description: '{HOSTILE}'\n    config: {{tags: [report]}}\n"
        "    columns: [{name: id, description: The order., data_tests: [not_null, unique]}]\n"
    ),
    "models/marts/monthly.sql": "SELECT id, next_id FROM {{ ref('daily') }}\n",
}


@pytest.fixture(scope="module")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    assert CHROMIUM is not None
    with browser(CHROMIUM, tmp_path_factory.mktemp("profile")) as made:
        yield made


@pytest.fixture(scope="module")
def of(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shop]:
    """Three refreshes, and a change that none of them has seen."""
    made = shop(tmp_path_factory.mktemp("shop"), FILES)
    made.changes = Changes(made.catalog.changes)
    made.engine.schema = {
        **SCHEMA,
        "fields": [{"id": at, "name": name, "type": "long", "required": False} for at, name in ((1, "id"), (2, "next_id"))],
    }
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sessions, "open_catalog", lambda *_, **__: made.catalog)
        patch.setattr("mvbuild.api.documentation._not_created", lambda _: None)
        for rows in (4, 5, 6):
            append(made.catalog, "raw.orders", rows)
            made.clock.at_ms += 60_000
            assert made.run().ok
        append(made.catalog, "raw.orders", 7)
        api.build_docs(made.root)
        yield made


@pytest.fixture
def front(of: Shop) -> str:
    return (of.root / "target/site/index.html").as_uri()


@pytest.fixture
def page(chromium: Browser, front: str, request: pytest.FixtureRequest) -> Iterator[Page]:
    """The front page; afterwards nothing may have gone wrong, and nothing may have been asked for outside of the folder."""
    made = chromium.page()
    made.open(front)
    yield made
    pictures = os.environ.get("MVBUILD_SCREENSHOTS")
    if pictures:
        Path(pictures).mkdir(parents=True, exist_ok=True)
        made.screenshot(Path(pictures) / f"{request.node.name}.png")
    assert made.problems == []
    folder = front.rpartition("/")[0]
    assert [url for url in made.requests if not url.startswith((folder, "about:", "data:"))] == []


def test_the_front_page_says_what_there_is_and_what_is_stale(page: Page) -> None:
    assert page.text("h2") == "shop"
    assert "2 materialized views" in page.texts(".tile")
    assert [line.split()[0] for line in page.texts("main .links li")] == ["daily", "monthly"]
    assert "A run would now refresh 2." in page.text("main")
    assert len(page.texts(".picture .box")) == 5


def test_one_walks_from_the_graph_to_a_model_and_through_its_sql(page: Page) -> None:
    page.click(".picture .box", "daily")
    page.until("document.querySelector('h2').textContent.startsWith('daily')")
    assert page.texts(".columns tbody th") == ["id", "next_id"]
    assert "never null" in page.text(".columns")
    page.click(".tabs a", "SQL")
    assert "lake.default.orders" in page.text("pre") or "orders" in page.text("pre a")
    page.click("button", "As written")
    assert page.text("pre a") == "{{ ref('orders') }}"
    page.click("pre a")
    page.until("document.querySelector('h2').textContent.startsWith('orders')")
    assert "cleaned" in page.text(".two")
    page.js("history.back()")
    page.until("document.querySelector('h2').textContent.startsWith('daily')")


def test_texts_of_the_project_never_become_elements(page: Page) -> None:
    page.go("#/node/model.shop.daily")
    page.until("document.querySelector('.prose')")
    assert "<img src=x onerror=document.title=1> </script>" in page.text(".prose")
    assert page.js("document.querySelectorAll('main img, main script').length") == 0
    assert page.texts(".prose code") == ["code"]
    assert page.js("document.querySelector('.prose a').href") == "https://example.com/"
    assert page.js("document.title") == "daily · shop"
    page.go("#/node/model.shop.daily/sql")
    page.until("document.querySelector('pre')")
    assert "/* <b>not bold</b> */" in page.text("pre")


def test_a_column_is_followed_to_its_source_and_to_what_is_made_of_it(page: Page) -> None:
    page.go("#/node/model.shop.daily/lineage")
    page.until("document.querySelector('.picture .column')")
    page.click(".picture .column", "next_id")
    page.until("document.querySelector('.column.chosen')")
    assert page.texts(".picture .head .name") == ["daily", "orders", "cleaned", "raw.orders", "monthly"]
    assert len(page.texts(".picture .edge")) == 4
    page.click(".picture .column", "monthly.next_id")
    page.until("document.querySelector('h2').textContent.startsWith('monthly')")
    assert page.texts(".column.chosen") == ["monthly.next_idnext_id"]


def test_the_graph_of_a_node_and_folders_that_fold(page: Page) -> None:
    page.go("#/node/model.shop.cleaned/graph")
    page.until("document.querySelector('.picture')")
    assert len(page.texts(".picture .box")) == 4  # two steps to each side
    page.js(
        "(() => { const s = document.querySelectorAll('.controls select')[1]; s.value = '1000'; s.dispatchEvent(new Event('change')); })()"
    )
    assert len(page.texts(".picture .box")) == 5
    page.go("#/graph")
    page.until("document.querySelector('.fold')")
    page.click(".fold", "marts")
    assert len(page.texts(".picture .box:not(.closed)")) == 3
    page.click(".box.closed", "marts")
    assert len(page.texts(".picture .box:not(.closed)")) == 5


def test_freshness_says_every_reason_and_what_comes_next(page: Page) -> None:
    page.go("#/node/model.shop.daily/freshness")
    page.until("document.querySelector('.reasons')")
    assert "base-table-changed" in page.text(".reasons")
    assert "unseen for" in page.text(".reasons")
    assert "The next run refreshes it." in page.text("main")
    assert "raw.orders" in page.text("main table")


def test_history_is_a_chart_and_a_table(page: Page) -> None:
    page.go("#/node/model.shop.daily/history")
    page.until("document.querySelector('.charts svg')")
    assert page.texts("figcaption")[-1] == "Seconds"
    assert page.js("document.querySelectorAll('.charts figure:first-child g.bar').length") == 3
    assert [row.split()[0] for row in page.texts("tbody th")] == ["3", "2", "1"]
    assert "never-refreshed" in page.texts("tbody tr")[-1]


def test_everything_is_found_by_keyboard(page: Page) -> None:
    page.key("/", "/")
    page.type("monthl")
    page.until("document.querySelector('#found li')")
    page.key("Enter")
    page.until("document.querySelector('h2').textContent.startsWith('monthly')")
    page.key("/", "/")
    page.type("next_id")  # a column
    page.until("document.querySelector('#found li')?.textContent.startsWith('daily.next_id')")
    page.key("ArrowDown")
    page.key("ArrowUp")
    page.key("Enter")
    page.until("document.querySelector('.column.chosen')")
    page.js("document.querySelector('.picture').focus()")
    before = page.js("document.querySelector('.picture > g').getAttribute('transform')")
    page.key("ArrowLeft")
    page.key("+", "+")
    assert page.js("document.querySelector('.picture > g').getAttribute('transform')") != before
    page.js("document.querySelector('.picture .column').focus()")
    page.key("Enter")
    page.until("document.querySelector('.column.chosen')")


def test_light_and_dark(page: Page) -> None:
    ground = "getComputedStyle(document.body).backgroundColor"
    assert page.js(ground) == "rgb(255, 255, 255)"
    page.scheme("dark")
    assert page.js(ground) == "rgb(18, 22, 28)"
    page.click(".theme")  # light, whatever the system says
    assert page.js(ground) == "rgb(255, 255, 255)"
    page.click(".theme")
    assert page.js(ground) == "rgb(18, 22, 28)"


@pytest.mark.parametrize("tab", ["", "/sql", "/lineage", "/lineage/id", "/graph", "/freshness", "/history"])
def test_nothing_is_wider_than_a_phone(chromium: Browser, front: str, tab: str) -> None:
    page = chromium.page(400, 800, touch=True)
    page.open(f"{front}#/node/model.shop.daily{tab}")
    page.settle()
    assert page.js("document.documentElement.scrollWidth") == 400
    page.click(".menu")
    assert page.js("getComputedStyle(document.querySelector('.side')).display") == "block"
    page.click(".side a", "monthly")
    page.until("document.querySelector('h2').textContent.startsWith('monthly')")
    assert page.js("getComputedStyle(document.querySelector('.side')).display") == "none"
    assert page.problems == []


def test_a_site_that_is_served_shows_what_is_fresh_now(of: Shop, chromium: Browser) -> None:
    with SiteServer(of.root / "target/site", 0, api.live_freshness(of.root)) as server:
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            assert of.run().ok  # the site was built before
            page = chromium.page()
            page.open(f"{server.url}#/node/model.shop.daily/freshness")
            page.until("document.querySelector('.live').textContent === 'live'")
            page.until("document.querySelector('main .chip').textContent.includes('fresh')")
            assert "changed since this site was built" in page.text("main .note")
            assert page.problems == []
            assert {url.split("/")[2] for url in page.requests if url.startswith("http")} == {server.url.split("/")[2]}
        finally:
            server.shutdown()
            thread.join()
