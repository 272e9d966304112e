"""folders of a project -> Listing, SourceFiles: which files there are, and their text."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from mvbuild.diagnostics import Diagnostic, ProjectError, error
from mvbuild.source import SourceFile, Span

LARGEST_TEXT = 10_000_000
"""Bytes of a file of SQL or YAML."""
LARGEST_SEED = 25_000_000
LARGEST_LOCK = 25_000_000


@dataclass(frozen=True, slots=True)
class Found:
    """A file below one of the paths. `path` is relative to the root, `folders` are those between the path and the file."""

    path: str
    folders: tuple[str, ...]

    @property
    def stem(self) -> str:
        return PurePosixPath(self.path).stem

    @property
    def suffix(self) -> str:
        return PurePosixPath(self.path).suffix.lower()


@dataclass(frozen=True, slots=True)
class Listing:
    """Files and folders below some paths, in the order of their names; hidden ones are left out."""

    files: tuple[Found, ...]
    folders: frozenset[tuple[str, ...]]


def list_files(root: Path, paths: Iterable[str], *, without: Path) -> Listing:
    """Everything below the paths but for the folder `without`, each folder once, however many links lead to it."""
    files: dict[str, Found] = {}
    folders: set[tuple[str, ...]] = set()
    excluded = os.path.realpath(without)
    for path in paths:
        top = os.path.normpath(root / path)
        for found in _walk(top, os.path.relpath(top, root), (), {excluded}, folders):
            files.setdefault(found.path, found)
    return Listing(tuple(files.values()), frozenset(folders))


def _walk(directory: str, relative: str, folders: tuple[str, ...], seen: set[str], all_folders: set[tuple[str, ...]]) -> Iterator[Found]:
    real = os.path.realpath(directory)
    if real in seen:
        return
    seen.add(real)
    try:
        with os.scandir(directory) as scan:
            entries = sorted((e for e in scan if not e.name.startswith(".")), key=lambda e: e.name)
    except (FileNotFoundError, NotADirectoryError):
        return
    except OSError as exc:
        path = relative.replace(os.sep, "/")
        raise ProjectError([error("unreadable-file", f"The folder {path} cannot be read: {exc.strerror}", _start(path))]) from exc
    for entry in entries:
        path = entry.name if relative == "." else f"{relative}/{entry.name}"
        if _leads_to(entry.is_dir):
            inner = (*folders, entry.name)
            all_folders.add(inner)
            yield from _walk(entry.path, path, inner, seen, all_folders)
        elif entry.is_symlink() or entry.is_file():
            yield Found(path.replace(os.sep, "/"), folders)


def _leads_to(check: Callable[[], bool]) -> bool:
    """A link that leads to itself leads to nothing; it is found again when it is read."""
    try:
        return check()
    except OSError:
        return False


def read_text(root: Path, path: str) -> SourceFile:
    """A file of the project, line ends as \\n, without a byte order mark. Raises ProjectError."""
    return decode(path, read_bytes(root / path, path, LARGEST_TEXT))


def read_bytes(file: Path, path: str, largest: int) -> bytes:
    """The content of a plain file: a pipe or a device could be read for ever. Raises ProjectError."""
    try:
        found = file.stat()
        if not stat.S_ISREG(found.st_mode):
            kind = "a directory" if stat.S_ISDIR(found.st_mode) else "a pipe, a socket or a device"
            raise ProjectError([error("unreadable-file", f"{path} cannot be read: it is {kind}", _start(path))])
        with file.open("rb") as stream:
            content = stream.read(largest + 1) if found.st_size <= largest else b""
    except OSError as exc:
        raise ProjectError([error("unreadable-file", f"{path} cannot be read: {exc.strerror or exc}", _start(path))]) from exc
    size = max(found.st_size, len(content))
    if size > largest:
        message = f"{path} has {size / 1e6:,.1f} MB, and mvbuild reads {largest // 1_000_000} MB at most"
        raise ProjectError([error("file-too-large", message, _start(path))])
    return content


def decode(path: str, content: bytes) -> SourceFile:
    """Bytes -> text. Raises ProjectError at the first byte that is no UTF-8."""
    try:
        return SourceFile(path, _normal(content.decode("utf-8")))
    except UnicodeDecodeError as exc:
        start = len(_normal(content[: exc.start].decode("utf-8")))
        file = SourceFile(path, _normal(content.decode("utf-8", "replace")))
        message = f"{path} is no UTF-8 text: byte 0x{content[exc.start]:02X}"
        raise ProjectError([error("unreadable-file", message, Span(file, start, start + 1), help="Save it as UTF-8.")]) from exc


def read_all(root: Path, found: Iterable[Found], report: list[Diagnostic]) -> Iterator[tuple[Found, SourceFile]]:
    """The files that can be read."""
    for item in found:
        try:
            yield item, read_text(root, item.path)
        except ProjectError as exc:
            report.extend(exc.diagnostics)


def _normal(text: str) -> str:
    return text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")


def _start(path: str) -> Span:
    return Span(SourceFile(path, ""), 0, 0)
