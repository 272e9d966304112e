"""Content -> a folder: index.html, assets/ and data/. Unchanged files are not rewritten, and obsolete ones are removed."""

from __future__ import annotations

import html
import json
from collections.abc import Iterator
from hashlib import blake2b
from importlib.resources import files
from pathlib import Path
from typing import Any

from mvbuild.artifacts.files import write_text
from mvbuild.diagnostics import ProjectError, error
from mvbuild.site.index import index, search
from mvbuild.site.model import Content, Written
from mvbuild.site.pages import page

MARK = '<meta name="generator" content="mvbuild docs">'
"""A folder with this line in its index.html is a site, whose files may be replaced."""
SCRIPTS = (
    *("dagre/dagre.js", "elements.js", "words.js", "data.js", "code.js", "drawing.js", "graph.js", "lineage.js"),
    *("history.js", "upkeep.js", "node.js", "overview.js", "search.js"),
)
"""In the order in which a page needs them; `app.js` comes last, after the data of the project."""


def write_site(content: Content, folder: Path) -> Written:
    """Raises ProjectError if the folder contains something else, or cannot be written."""
    try:
        _require_site(folder)
        stamp = _write_data(content, folder / "data")
        stamp = _write_assets(folder / "assets", stamp)
        _put(folder / "index.html", _shell(content, stamp))
    except OSError as exc:
        raise ProjectError([error("unwritable-target", f"Cannot write to {folder}: {exc.strerror or exc}")]) from exc
    return Written(pages=len(content.graph.nodes), seen=content.seen is not None)


def script(call: str, *arguments: Any) -> str:
    """`site.page(12, {...})`, in plain ASCII, so that no text of a user can end a script or an HTML comment."""
    parts = [json.dumps(a, ensure_ascii=True, separators=(",", ":"), default=str).replace("<", "\\u003c") for a in arguments]
    return f"site.{call}({','.join(parts)});\n"


def _require_site(folder: Path) -> None:
    if not folder.exists():
        return
    if not folder.is_dir():
        raise ProjectError([error("unwritable-target", f"{folder} is a file", help="Choose another folder with --output.")])
    front = folder / "index.html"
    is_ours = front.is_file() and MARK in front.read_text(encoding="utf-8", errors="replace")
    if not is_ours and next(folder.iterdir(), None) is not None:
        message = f"{folder} holds other files"
        raise ProjectError([error("unwritable-target", message, help="Choose an empty or new folder with --output.")])


def _write_data(content: Content, folder: Path) -> str:
    """Returns a hash of everything written: pages request scripts with it, so that browsers do not use cached scripts of an earlier
    build."""
    stamp, written = blake2b(digest_size=8), set[str]()
    for name, text in _data(content):
        stamp.update(text.encode())
        _put(folder / name, text)
        written.add(name)
    # `docs serve` answers this one with the address of the live freshness.
    _put(folder / "live.js", script("live", None))
    for left in folder.glob("*.js"):
        if left.name not in written and left.name != "live.js":
            left.unlink()
    return stamp.hexdigest()


def _data(content: Content) -> Iterator[tuple[str, str]]:
    yield "index.js", script("index", index(content))
    yield "search.js", script("columns", search(content))
    for node in content.graph.nodes.values():
        at = content.places[node.id]
        yield f"{at}.js", script("page", at, page(content, node))
        # Many definitions need not be in memory at the same time.
        content.graph.definitions.pop(node.id, None)


def _write_assets(folder: Path, stamp: str) -> str:
    """Copied unchanged from the package, with a stamp of the assets and the data."""
    assets = files("mvbuild.site").joinpath("assets")
    all_of_it = blake2b(stamp.encode(), digest_size=8)
    for name in (*SCRIPTS, "app.js", "site.css", "icon.svg", "dagre/LICENSE"):
        text = assets.joinpath(name).read_text(encoding="utf-8")
        all_of_it.update(text.encode())
        _put(folder / name, text)
    return all_of_it.hexdigest()


def _put(path: Path, text: str) -> None:
    try:
        if path.read_text(encoding="utf-8") == text:
            return
    except (FileNotFoundError, NotADirectoryError, UnicodeDecodeError):
        pass
    write_text(path, [text])


def _shell(content: Content, stamp: str) -> str:
    """The page that every address of the site opens."""
    title = html.escape(content.graph.project.name)
    scripts = "".join(
        f'  <script src="{name}?{stamp}"></script>\n'
        for name in (*(f"assets/{s}" for s in SCRIPTS), "data/index.js", "data/live.js", "assets/app.js")
    )
    return f"""<!doctype html>
<html lang="en" data-stamp="{stamp}">
<head>
  <meta charset="utf-8">
  <meta name="viewport" content="width=device-width, initial-scale=1">
  {MARK}
  <meta name="color-scheme" content="light dark">
  <title>{title}</title>
  <link rel="icon" href="assets/icon.svg?{stamp}" type="image/svg+xml">
  <link rel="stylesheet" href="assets/site.css?{stamp}">
</head>
<body>
  <noscript>This site needs JavaScript. It loads nothing from the network.</noscript>
  <div id="site"></div>
{scripts}</body>
</html>
"""
