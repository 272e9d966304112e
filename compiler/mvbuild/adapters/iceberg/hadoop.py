"""names <-> numbered metadata files in the directories of a warehouse: the layout of Iceberg's HadoopCatalog, on a local file system.

A table is `<warehouse>/<namespace>/<name>/metadata/v<N>.metadata.json`, with `version-hint.text`; Spark reads and writes it too. An MV is
`v<N>.mv.metadata.json` there, with `mv-version-hint.text`; Spark sees no table in it. The highest number is current. The next file is
written completely under another name and then linked to its number. Creating a link succeeds or fails in one step, so only one of two
writers wins, and readers never see half a file. Hints only say where to start looking: they may be behind.
"""

from __future__ import annotations

import errno
import os
import re
import uuid
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from mvbuild.adapters.iceberg.files import local_path
from mvbuild.adapters.iceberg.folder_contents import NOTE, forget_checksum, prune, unlink
from mvbuild.adapters.iceberg.folders import exact_folder
from mvbuild.adapters.iceberg.pointers import next_number
from mvbuild.adapters.iceberg.scratch import FOLDER as SCRATCH
from mvbuild.ports.catalog import CatalogError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from mvbuild.adapters.iceberg.pointers import Key, Kind, Swap
    from mvbuild.names import TableIdentifier

_HINTS: dict[Kind, str] = {"MV": "mv-version-hint.text", "TABLE": "version-hint.text"}
_SUFFIXES: dict[Kind, tuple[str, ...]] = {"MV": (".mv.metadata.json",), "TABLE": (".metadata.json", ".gz.metadata.json")}
_FILE = re.compile(r"v(\d+)((?:\.gz|\.mv)?\.metadata\.json)")
_NO_LINKS = (errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK, errno.EXDEV)


class FilePointers:
    """The directories of one warehouse. A namespace is a directory; so is a table, with `metadata` in it."""

    has_views = False
    atomic = False
    spark_reads_views = True

    def __init__(self, warehouse: str) -> None:
        root = local_path(warehouse)
        assert root is not None
        self._warehouse = warehouse.rstrip("/")
        self._root = root

    def find(self, keys: Iterable[Key]) -> dict[Key, tuple[str, Kind]]:
        return {key: found for key in dict.fromkeys(keys) if (found := self._current(key))}

    def foreign(self, keys: Iterable[Key]) -> dict[Key, str]:  # noqa: ARG002
        return {}

    def names(self, namespace: str) -> list[Key]:
        with suppress(FileNotFoundError, NotADirectoryError):
            folders = sorted(entry.name for entry in os.scandir(self._folder(namespace)) if entry.is_dir())
            return [(namespace, name) for name in folders if self._current((namespace, name))]
        return []

    def views(self) -> list[Key]:
        return [key for key in self._walk(()) if (found := self._current(key)) and found[1] == "MV"]

    def location(self, identifier: TableIdentifier) -> str:
        return "/".join((self._warehouse, *map(exact_folder, (*identifier.namespace, identifier.name))))

    def scratch_location(self, scratch: TableIdentifier) -> str:
        return self.location(scratch)

    def borrowed(self, location: str) -> list[str]:
        """The files of a table that Spark wrote into the directories of scratch tables, found by a note in each."""
        wanted = local_path(location)
        found = []
        for note in self._root.glob(f"{SCRATCH}/*/{NOTE}"):
            with suppress(FileNotFoundError):
                if local_path(note.read_text()) == wanted:
                    found.append(f"{self._warehouse}/{SCRATCH}/{note.parent.name}/metadata")
        return found

    def hints(self, key: Key) -> list[str]:
        places = (f"{self._metadata(key)}/{name}" for name in _HINTS.values())
        return [place for place in places if _path(place).exists()]

    def place(self, key: Key, kind: Kind, folder: str, old: str | None, suffix: str) -> str:  # noqa: ARG002
        return f"{self._metadata(key)}/v{next_number(old, 1)}{suffix}"

    def draft(self, location: str) -> str:
        folder, _, name = location.rpartition("/")
        return f"{folder}/.{uuid.uuid4()}.{name}.tmp"

    def swap(self, swaps: Sequence[Swap]) -> bool:
        if len(swaps) != 1:
            raise CatalogError("A file-system warehouse changes one table or materialized view at a time.")
        (swap,) = swaps
        if swap.new is None:
            return self.delete(swap.key, swap.old or "")
        new, draft = _path(swap.new), _path(swap.written or "")
        found = self._current(swap.key)
        if (found[0] if found else None) != swap.old or not _claim(draft, new):
            return False
        if swap.old is not None and not _path(swap.old).exists() and not self._is_passed(swap.new):
            # It was dropped after it was read.
            new.unlink(missing_ok=True)
            return False
        self._hint(new)
        return True

    def delete(self, key: Key, location: str) -> bool:
        """The numbered files are deleted, the newest last: until then readers see the unchanged entry."""
        found = self._current(key)
        if found is None or found[0] != location:
            return False
        last, folder = _path(location), _path(location).parent
        aside = folder / f".{uuid.uuid4()}.dropped.tmp"
        older = [path for number, path in self._numbered(folder, found[1]) if path != last and number < _number(last.name)]
        for path in (*older, folder / _HINTS[found[1]]):
            with suppress(FileNotFoundError):
                unlink(path)
        forget_checksum(last)
        try:
            last.rename(aside)
        except FileNotFoundError:
            return False
        if self._is_passed(location):
            aside.rename(last)
            return False
        aside.unlink()
        if key[0] == SCRATCH:
            # Unless manifests remain, which may belong to the base table by now.
            prune(folder)
        return True

    def has_namespace(self, namespace: str) -> bool:
        return self._folder(namespace).is_dir() and not (self._folder(namespace) / "metadata").is_dir()

    def add_namespace(self, namespace: str) -> None:
        self._folder(namespace).mkdir(parents=True, exist_ok=True)

    def note_base(self, key: Key, location: str) -> None:
        """Note the base of a scratch table, because files written for it may become part of the base table."""
        folder = self._folder(key[0]) / key[1]
        folder.mkdir(parents=True, exist_ok=True)
        (folder / NOTE).write_text(location)

    def _folder(self, namespace: str) -> Path:
        return self._root.joinpath(*namespace.split("."))

    def _metadata(self, key: Key) -> str:
        return "/".join((self._warehouse, *key[0].split("."), key[1], "metadata"))

    def _current(self, key: Key) -> tuple[str, Kind] | None:
        if "/" in key[1] or not key[1].strip(". "):
            return None
        place = self._metadata(key)
        folder = _path(place)
        for kind in _HINTS:
            number = _newest(folder, kind)
            for suffix in _SUFFIXES[kind]:
                if number and (folder / f"v{number}{suffix}").exists():
                    return f"{place}/v{number}{suffix}", kind
        return None

    def _walk(self, namespace: tuple[str, ...]) -> Iterator[Key]:
        with suppress(FileNotFoundError, NotADirectoryError):
            for entry in sorted(os.scandir(self._root.joinpath(*namespace)), key=lambda e: e.name):
                if not entry.is_dir() or entry.name == SCRATCH:
                    continue
                if (Path(entry.path) / "metadata").is_dir():
                    yield ".".join(namespace), entry.name
                else:
                    yield from self._walk((*namespace, entry.name))

    def _numbered(self, folder: Path, kind: Kind) -> list[tuple[int, Path]]:
        return [(int(match[1]), folder / match[0]) for match in _matches(folder, kind)]

    def _is_passed(self, location: str) -> bool:
        """Whether there is a file with the next number."""
        path = _path(location)
        match = _FILE.fullmatch(path.name)
        assert match
        suffixes = _SUFFIXES["MV"] if match[2] in _SUFFIXES["MV"] else _SUFFIXES["TABLE"]
        return any((path.parent / f"v{int(match[1]) + 1}{suffix}").exists() for suffix in suffixes)

    def _hint(self, new: Path) -> None:
        match = _FILE.fullmatch(new.name)
        assert match
        kind: Kind = "MV" if match[2] in _SUFFIXES["MV"] else "TABLE"
        # The commit is valid; readers find it without the hint too.
        with suppress(OSError):
            draft = new.parent / f".{uuid.uuid4()}.hint.tmp"
            draft.write_text(match[1])
            forget_checksum(new.parent / _HINTS[kind])
            draft.replace(new.parent / _HINTS[kind])


def _claim(draft: Path, new: Path) -> bool:
    """Link `draft` to the name `new`, unless that exists."""
    other = [new.parent / f"v{_number(new.name)}{suffix}" for suffix in _SUFFIXES["TABLE"]] if ".mv." not in new.name else []
    if any(path.exists() for path in other):
        return False
    try:
        os.link(draft, new)
        forget_checksum(new)
    except FileExistsError:
        return False
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        return _copied(draft, new)
    with suppress(OSError):
        draft.unlink()
    return True


def _copied(draft: Path, new: Path) -> bool:
    """For file systems without links: the name is still taken exclusively, but a reader may see the file before it is complete."""
    try:
        with new.open("xb") as target:
            target.write(draft.read_bytes())
    except FileExistsError:
        return False
    with suppress(OSError):
        draft.unlink()
    return True


def _newest(folder: Path, kind: Kind) -> int:
    """The highest number; 0 if there is none."""

    def exists(number: int) -> bool:
        return any((folder / f"v{number}{suffix}").exists() for suffix in _SUFFIXES[kind])

    try:
        number = int((folder / _HINTS[kind]).read_text())
    except (OSError, ValueError):
        number = 0
    if not number or not exists(number):
        # There is no hint, or it is so far behind that its file is gone.
        number = max((int(match[1]) for match in _matches(folder, kind)), default=0)
    while number and exists(number + 1):
        number += 1
    return number


def _matches(folder: Path, kind: Kind) -> list[re.Match[str]]:
    try:
        names = [path.name for path in folder.iterdir()]
    except (FileNotFoundError, NotADirectoryError):
        return []
    return [match for name in names if (match := _FILE.fullmatch(name)) and match[2] in _SUFFIXES[kind]]


def _number(name: str) -> int:
    match = _FILE.fullmatch(name)
    return int(match[1]) if match else 0


def _path(location: str) -> Path:
    path = local_path(location)
    assert path is not None
    return path
