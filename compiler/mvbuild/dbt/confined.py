"""A folder + a relative path -> the file to write below the folder; a path that leads out of the folder is refused."""

from __future__ import annotations

from pathlib import Path
from posixpath import isabs, normpath

from mvbuild.diagnostics import ProjectError, error


def is_inside(path: str) -> bool:
    """Whether a relative path, as written, stays below the folder that it starts from."""
    plain = normpath(path.replace("\\", "/"))
    return not isabs(plain) and plain != ".." and not plain.startswith("../") and not Path(path).is_absolute()


def writable(folder: Path, path: str) -> Path:
    """The file `path` below `folder`. Links on the disk are followed. Raises ProjectError before anything outside is touched."""
    file = folder / path
    if is_inside(path) and file.parent.resolve().is_relative_to(folder.resolve()):
        return file
    help = "Move the files into the project, or replace the link by a folder, and import again."
    raise ProjectError([error("unwritable-target", f"'{path}' leads out of {folder}, so nothing is written there", help=help)])


def write_text(folder: Path, path: str, text: str) -> None:
    """Write a file below `folder`, and create the folders between. Raises ProjectError as `writable` does."""
    file = writable(folder, path)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")
