"""projects that were built -> their documentation sites, opened from disk in Chromium and used: what was seen, and seconds to the first picture.

    .venv/bin/python tests/benchmarks/site.py sample_project [DIR ...]
    .venv/bin/python tests/benchmarks/fresh_run.py --mvs 10000 --format table-properties --rounds 1 --keep DIR   # a project of 10,000 MVs

Of each project it opens the front page, then finds a model by search, and looks at its graph, lineage, freshness and history, in light and dark,
and as wide as a phone. Exit code 1 if something is missing, the console has an error, or a request leaves the folder of the site.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parents[1])]

from browser.chromium import Browser, Page, browser, find_chromium  # noqa: E402

TABS = {"graph": ".picture .box", "lineage": ".picture .column", "freshness": "main .chip", "history": ".charts svg"}
"""Tab of a model -> what must be drawn in it."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("projects", type=Path, nargs="+")
    parser.add_argument("--screenshots", type=Path, help="a folder for pictures")
    options = parser.parse_args()
    executable = find_chromium()
    if executable is None:
        raise SystemExit("There is no Chromium: apt-get install chromium, or set MVBUILD_CHROMIUM")
    with tempfile.TemporaryDirectory(prefix="mvbuild-site-") as profile, browser(executable, Path(profile)) as chromium:
        wrong = [line for project in options.projects for line in _seen(chromium, project, options.screenshots)]
    print("\n".join(wrong) or "Nothing was missing.")
    return int(bool(wrong))


def _seen(chromium: Browser, project: Path, pictures: Path | None) -> Iterator[str]:
    began = time.monotonic()
    subprocess.run([sys.executable, "-m", "mvbuild.cli.main", "--quiet", "docs", "build", "--project-dir", project], check=True)
    built = time.monotonic() - began
    front = (project.resolve() / "target/site/index.html").as_uri()
    page = chromium.page()
    began = time.monotonic()
    page.open(front)
    page.until("document.querySelector('.picture .box, .tile')")
    first = time.monotonic() - began
    model = _found_by_search(page, project)
    seen = ["search"]
    for tab, drawn in TABS.items():
        page.go(f"#/node/{model}/{tab}")
        page.until(f"document.querySelector({drawn!r})")
        seen.append(tab)
        _keep(page, pictures, f"{project.name}-{tab}")
    page.scheme("dark")
    if page.js("getComputedStyle(document.body).backgroundColor") == "rgb(18, 22, 28)":
        seen.append("dark")
    narrow = chromium.page(400, 800, touch=True)
    widths = {}
    for tab in ("", *(f"/{tab}" for tab in TABS)):
        narrow.open(f"{front}#/node/{model}{tab}")
        narrow.settle()
        widths[tab] = narrow.js("document.documentElement.scrollWidth")
    _keep(narrow, pictures, f"{project.name}-phone")
    requests = [*page.requests, *narrow.requests]
    folder = front.rpartition("/")[0]
    outside = [url for url in requests if not url.startswith((folder, "about:", "data:"))]
    problems = [*page.problems, *narrow.problems]
    print(
        f"{project.name}: site built in {built:.1f} s; first picture after {first:.2f} s; {model}: {', '.join(seen)}; "
        f"widths at 400 px: {sorted(set(widths.values()))}; {len(requests)} requests, {len(outside)} outside; {len(problems)} errors in the console"
    )
    yield from (f"{project.name}: request outside: {url}" for url in outside)
    yield from (f"{project.name}: console: {problem}" for problem in problems)
    yield from (f"{project.name}: {tab or 'overview'} is {width} px wide" for tab, width in widths.items() if width != 400)
    if "dark" not in seen:
        yield f"{project.name}: not dark"


def _found_by_search(page: Page, project: Path) -> str:
    """The id of an MV, after going to it with the keyboard."""
    command = [sys.executable, "-m", "mvbuild.cli.main", "ls", "--project-dir", str(project), "--output", "name"]
    command += ["--select", "config.materialized:materialized_view", "--resource-type", "model"]
    name = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()[-1].rpartition(".")[2]
    page.key("/", "/")
    page.type(name)
    page.until("document.querySelector('#found li')")
    page.key("Enter")
    page.until(f"document.querySelector('h2').textContent.startsWith({name!r})")
    found: str = page.js("decodeURIComponent(location.hash).split('/')[2]")
    return found


def _keep(page: Page, pictures: Path | None, name: str) -> None:
    if pictures is not None:
        pictures.mkdir(parents=True, exist_ok=True)
        page.screenshot(pictures / f"{name}.png")


if __name__ == "__main__":
    sys.exit(main())
