"""dbt's own documentation page, in Chromium: the overview, a model with its columns, and the graph."""

from __future__ import annotations

import functools
import shutil
import sys
import threading
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import dbt.task.docs

from browser.chromium import browser, find_chromium

root, out = Path(sys.argv[1]), Path(sys.argv[3])
site = out / "site"
site.mkdir(exist_ok=True)
shutil.copy(Path(dbt.task.docs.__file__).parent / "index.html", site)
for name in ("manifest.json", "catalog.json"):
    shutil.copy(root / "target" / name, site)


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        """Nothing is printed."""


server = ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=str(site)))
threading.Thread(target=server.serve_forever, daemon=True).start()
executable = find_chromium()
assert executable, "there is no Chromium: apt-get install chromium"
with browser(executable, out / "profile") as chromium:
    page = chromium.page()
    address = f"http://127.0.0.1:{server.server_address[1]}"
    page.call("Page.navigate", url=f"{address}/#!/overview")
    page.until("document.body?.innerText.includes('harbor_market')")
    page.call("Page.navigate", url=f"{address}/#!/model/model.harbor_market.order_facts")
    page.until("document.body?.innerText.includes('customer_id') && document.body?.innerText.toLowerCase().includes('materialized view')")
    columns = page.js("document.querySelectorAll('.column-row, tr.column-row').length")
    broken = [problem for problem in page.problems if "exception" in problem.lower()]
    assert not broken, broken
    page.screenshot(out / "page.png")
server.shutdown()
print(f"overview and order_facts with {columns} columns; no exception")
