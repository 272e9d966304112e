"""folders of a project -> Listing, Contents: which files there are, and their content."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from hashlib import blake2b
from pathlib import Path
from posixpath import splitext
from typing import NamedTuple

from mvbuild.cache.lazy import Lazy
from mvbuild.dataclass import dataclass
from mvbuild.diagnostics import Diagnostic, ProjectError, error
from mvbuild.source import SourceFile, Span

_READ = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
"""Opening a pipe without a writer must not block; it is refused afterwards."""
LARGEST_TEXT = 10_000_000
"""The limit of bytes in a SQL or YAML file."""
LARGEST_SEED = 25_000_000
LARGEST_LOCK = 25_000_000


class Found(NamedTuple):
    """A file below one of the paths. `path` is relative to the root, `folders` are those between the path and the file."""

    path: str
    folders: tuple[str, ...]
    suffix: str
    """`.sql`, in lower case."""

    @property
    def stem(self) -> str:
        name = self.path.rpartition("/")[2]
        return name.rpartition(".")[0] or name


@dataclass(frozen=True, slots=True)
class Listing:
    """Files and folders below some paths, ordered by name, without hidden ones."""

    files: tuple[Found, ...]
    folders: frozenset[tuple[str, ...]]


def list_files(root: Path, paths: Iterable[str], *, without: Path) -> Listing:
    """Everything below the paths except the folder `without`; each folder once, however many links lead to it."""
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
        if entry.is_file(follow_symlinks=False):
            yield Found(path.replace(os.sep, "/"), folders, splitext(entry.name)[1].lower())
        elif _leads_to(entry.is_dir):
            inner = (*folders, entry.name)
            all_folders.add(inner)
            yield from _walk(entry.path, path, inner, seen, all_folders)
        elif entry.is_symlink():
            yield Found(path.replace(os.sep, "/"), folders, splitext(entry.name)[1].lower())


def _leads_to(check: Callable[[], bool]) -> bool:
    """A link to itself leads nowhere; reading it reports that."""
    try:
        return check()
    except OSError:
        return False


class LazySourceFile(Lazy, SourceFile):
    """A file of which only the path and the hash are known."""

    __slots__ = ("_later",)


class FilesChanged(Exception):
    """A file was changed while the project was being read. It is no `ProjectError`, so that no stage continues without the file."""

    def __init__(self, path: str) -> None:
        message = f"{path} was changed while mvbuild was reading the project"
        self.diagnostics = (error("unreadable-file", message, _start(path), help="Run the command again."),)
        super().__init__(message)


class Contents:
    """The files of a project, each read once, so that the text that was hashed is the text that is parsed. Every method raises
    FilesChanged for a file whose known hash is wrong by now."""

    def __init__(self, root: Path) -> None:
        self._root = str(root)
        self._read: dict[str, bytes | SourceFile] = {}
        """A text replaces the bytes that it was decoded from, because large projects are read completely."""
        self._hashes: dict[str, str] = {}
        self._unread: tuple[str, ...] = ()
        self._forget: Callable[[], None] | None = None

    def expect(self, hashes: Mapping[str, str], forget: Callable[[], None]) -> None:
        """The known hashes of files, which then need not be read. `forget` is called if one of them is wrong."""
        self._hashes.update(hashes)
        self._unread, self._forget = tuple(hashes), forget

    def of(self, path: str, largest: int) -> bytes:
        """The bytes of a file; call it before `text`. Raises ProjectError."""
        found = self._read.get(path)
        if isinstance(found, bytes):
            return found
        known = self._hashes.get(path)
        try:
            content = read_bytes(os.path.join(self._root, path), path, largest)  # noqa: PTH118  (many are read)
        except ProjectError:
            if known is None:
                raise
            content = None
        hashed = blake2b(content, digest_size=16).hexdigest() if content is not None else ""
        if content is None or known not in (None, hashed):
            if self._forget is not None:
                self._forget()
            raise FilesChanged(path)
        self._hashes[path] = hashed
        self._read[path] = content
        return content

    def hash(self, path: str, largest: int) -> str:
        """The hash of the bytes. Raises ProjectError."""
        if path not in self._hashes:
            self.of(path, largest)
        return self._hashes[path]

    def text(self, path: str) -> SourceFile:
        r"""The text with \n line ends, without a byte order mark. Raises ProjectError."""
        found = self._read.get(path)
        if not isinstance(found, SourceFile):
            found = self._read[path] = decode(path, self.of(path, LARGEST_TEXT))
        return found

    def later(self, path: str) -> SourceFile:
        """The same; a file that was not read, because its hash is known, is read when its text is needed."""
        if path in self._read or path not in self._hashes:
            return self.text(path)
        return LazySourceFile.of(partial(self._text_of, path), {"path": path})

    def complete(self) -> None:
        """Read what was not read yet. A command that needs one file may take hours, and must see all as they were when it began."""
        for path in self._unread:
            if path not in self._read:
                self.of(path, LARGEST_SEED)
        self._unread = ()

    def _text_of(self, path: str, _: str) -> Mapping[str, str]:
        self.complete()
        return {"text": self.text(path).text}

    def texts(self, paths: Iterable[str], report: list[Diagnostic]) -> Iterator[SourceFile]:
        """The texts of the files that can be read."""
        for path in paths:
            try:
                yield self.text(path)
            except ProjectError as exc:
                report.extend(exc.diagnostics)


def read_text(root: Path, path: str) -> SourceFile:
    """Read a single file, see `Contents.text`."""
    return Contents(root).text(path)


def read_bytes(file: str | Path, path: str, largest: int) -> bytes:
    """The content of a regular file: reading a pipe or a device may never end. Raises ProjectError."""
    try:
        opened = os.open(file, _READ)
        try:
            found = os.fstat(opened)
            is_plain = stat.S_ISREG(found.st_mode)
            content = _content(opened, found.st_size + 1) if is_plain and found.st_size <= largest else b""
        finally:
            os.close(opened)
    except OSError as exc:
        raise ProjectError([error("unreadable-file", f"{path} cannot be read: {exc.strerror or exc}", _start(path))]) from exc
    if not is_plain:
        kind = "a directory" if stat.S_ISDIR(found.st_mode) else "a pipe, a socket or a device"
        raise ProjectError([error("unreadable-file", f"{path} cannot be read: it is {kind}", _start(path))])
    size = max(found.st_size, len(content))
    if size > largest:
        message = f"{path} is {size / 1e6:,.1f} MB; the limit is {largest // 1_000_000} MB"
        raise ProjectError([error("file-too-large", message, _start(path))])
    return content


def decode(path: str, content: bytes) -> SourceFile:
    """Bytes -> text. Raises ProjectError at the first byte that is not UTF-8, and at a Git conflict."""
    try:
        file = SourceFile(path, _normal(content.decode("utf-8")))
    except UnicodeDecodeError as exc:
        start = len(_normal(content[: exc.start].decode("utf-8")))
        file = SourceFile(path, _normal(content.decode("utf-8", "replace")))
        message = f"{path} is not valid UTF-8: byte 0x{content[exc.start]:02X}"
        raise ProjectError([error("unreadable-file", message, Span(file, start, start + 1), help="Save it as UTF-8.")]) from exc
    conflict = _conflict(file) if b"<<<<<<<" in content else None
    if conflict:
        raise ProjectError([error("merge-conflict", f"{path} has an unresolved Git conflict", conflict)])
    return file


def _conflict(file: SourceFile) -> Span | None:
    """The line that begins a Git conflict, if the two other lines follow."""
    at, begin = 0, None
    for marker in ("<<<<<<<", "=======", ">>>>>>>"):
        found = re.compile(rf"^{marker}(?: .*)?$", re.MULTILINE).search(file.text, at)
        if found is None:
            return None
        at, begin = found.end(), begin or Span(file, found.start(), found.end())
    return begin


def _content(opened: int, size: int) -> bytes:
    """Up to the end of the file, or `size` bytes. A file that has as many bytes as the system says is not asked for more."""
    content = os.read(opened, size)
    while len(content) < size - 1 and (more := os.read(opened, size - len(content))):
        content += more
    return content


def _normal(text: str) -> str:
    return text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")


def _start(path: str) -> Span:
    return Span(SourceFile(path, ""), 0, 0)
