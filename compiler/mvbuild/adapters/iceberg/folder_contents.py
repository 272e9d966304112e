"""a location -> the files below it; files -> deleted: on the local disk, and through PyIceberg's two kinds of FileIO."""

from __future__ import annotations

import datetime as dt
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyiceberg.io import FileIO

_OF_A_TABLE = ("data", "metadata")
NOTE = "mvbuild-base.text"
"""Files that mvbuild leaves in a directory, which are useless without the other files there."""


def list_local(root: Path) -> list[tuple[str, int]]:
    found = []
    for folder, _, names in os.walk(root):
        checksums = {_checksum(name) for name in names}
        for name in names:
            path = Path(folder, name)
            if name in checksums:
                continue  # a part of the file that it belongs to
            try:
                found.append((f"file://{path}", path.stat().st_mtime_ns // 1_000_000))
            except FileNotFoundError:
                continue  # another process deleted it first
    return found


def delete_local(path: Path) -> bool:
    try:
        unlink(path)
    except FileNotFoundError:
        return False
    prune(path.parent)
    return True


def unlink(path: Path) -> None:
    """Delete a file and the checksum that Hadoop's local file system wrote: Spark would refuse the next file of that name because of it."""
    forget_checksum(path)
    path.unlink()


def forget_checksum(path: Path) -> None:
    path.with_name(_checksum(path.name)).unlink(missing_ok=True)


def _checksum(name: str) -> str:
    return f".{name}.crc"


def _is_checksum(name: str) -> bool:
    return name.startswith(".") and name.endswith(".crc")


def prune(folder: Path) -> None:
    """Remove empty directories up to that of the table. The directory above is a namespace, which may be empty."""
    inner = ""
    while True:
        try:
            names = [path.name for path in folder.iterdir()]
            if all(name == NOTE or _is_checksum(name) for name in names):
                # Checksums of files that were deleted by a writer that does not know about checksums.
                for name in names:
                    (folder / name).unlink(missing_ok=True)
            folder.rmdir()
        except OSError:
            return
        if inner in _OF_A_TABLE:
            return
        inner, folder = folder.name, folder.parent


def list_remote(io: FileIO, location: str) -> Iterator[tuple[str, int]]:
    """(location, modification time in ms) of each file."""
    made: Any = io
    parts = urlsplit(location)
    if hasattr(made, "fs_by_scheme"):
        yield from _by_arrow(made.fs_by_scheme(parts.scheme, parts.netloc), parts.scheme, f"{parts.netloc}{parts.path}")
    else:
        yield from _by_fsspec(made.get_fs(parts.scheme), parts.scheme, location)


def _by_arrow(system: Any, scheme: str, path: str) -> Iterator[tuple[str, int]]:
    from pyarrow.fs import FileSelector, FileType  # type: ignore[import-untyped]

    for info in system.get_file_info(FileSelector(path, allow_not_found=True, recursive=True)):
        if info.type == FileType.File:
            yield f"{scheme}://{info.path}", (info.mtime_ns or 0) // 1_000_000


def _by_fsspec(system: Any, scheme: str, location: str) -> Iterator[tuple[str, int]]:
    for path, info in system.find(location, detail=True).items():
        at = next((info[name] for name in ("LastModified", "last_modified", "updated", "mtime", "created") if name in info), 0)
        yield path if "://" in path else f"{scheme}://{path}", _ms(at)


def _ms(at: Any) -> int:
    if isinstance(at, str):
        at = dt.datetime.fromisoformat(at)
    return int(at.timestamp() * 1000) if isinstance(at, dt.datetime) else int(at * 1000)
