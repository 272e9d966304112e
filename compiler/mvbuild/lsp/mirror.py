"""project directory + unsaved texts -> a directory in which the project looks as if they were saved.

Everything else in it is a link. So creating it takes no time, and everything that reads projects can read this one.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from mvbuild.lsp.positions import normal


@contextmanager
def mirrored(root: Path, texts: Mapping[str, str]) -> Iterator[Path]:
    """`texts`: by their paths in the project. Returns the project itself if all of them are saved."""
    unsaved = {tuple(path.split("/")): text for path, text in texts.items() if not _is_saved(root / path, text)}
    if not unsaved:
        yield root
        return
    with TemporaryDirectory(prefix="mvbuild-lsp-", ignore_cleanup_errors=True) as folder:
        # Files beside the project are included: a model path may lead to them.
        _fill(root.parent, Path(folder) / "mirror", {(root.name, *path): text for path, text in unsaved.items()})
        yield Path(folder) / "mirror" / root.name


def _is_saved(path: Path, text: str) -> bool:
    try:
        return normal(path.read_bytes().decode("utf-8")) == normal(text)
    except (OSError, UnicodeDecodeError):
        return False


def _fill(source: Path, place: Path, texts: Mapping[tuple[str, ...], str]) -> None:
    place.mkdir()
    own = {path[0] for path in texts}
    if source.is_dir():
        for child in os.scandir(source):
            if child.name not in own:
                (place / child.name).symlink_to(child.path)
    for name in own:
        below = {path[1:]: text for path, text in texts.items() if path[0] == name}
        if () in below:
            (place / name).write_text(below[()], encoding="utf-8", errors="surrogatepass", newline="")
        else:
            _fill(source / name, place / name, below)
