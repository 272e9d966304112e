"""location -> bytes and back: metadata files on the local disk directly, elsewhere through PyIceberg's FileIO."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyiceberg.io import FileIO

_READERS = 8
"""Object stores answer in tens of milliseconds: the metadata of a whole project is read side by side."""


class Files(Protocol):
    """Where metadata files are kept."""

    def read(self, location: str) -> bytes:
        """OSError if there is none."""

    def read_all(self, locations: list[str]) -> list[bytes | Exception]:
        """Each one's content, or why it could not be read."""

    def write(self, location: str, content: bytes) -> None:
        """A new file; never over an old one."""

    def delete(self, location: str) -> None:
        """Nothing happens if there is none."""


def local_path(location: str) -> Path | None:
    """Java writes file:/abs, PyIceberg file:///abs; neither escapes characters."""
    if location.startswith("file:"):
        rest = location[len("file:") :]
        return Path("/" + rest.lstrip("/"))
    return None if "://" in location else Path(location)


class FileStore:
    """Files by location, with the properties of the catalog for those that are not local."""

    def __init__(self, properties: Mapping[str, str]) -> None:
        self._properties = dict(properties)

    def io(self, location: str) -> FileIO:
        from pyiceberg.io import load_file_io

        return load_file_io(self._properties, location)

    def read(self, location: str) -> bytes:
        path = local_path(location)
        if path is not None:
            return path.read_bytes()
        with self.io(location).new_input(location).open() as stream:
            return stream.read()

    def read_all(self, locations: list[str]) -> list[bytes | Exception]:
        if len(locations) < 2 or all(local_path(location) for location in locations):
            return [self._try(location) for location in locations]
        with ThreadPoolExecutor(_READERS) as pool:
            return list(pool.map(self._try, locations))

    def write(self, location: str, content: bytes) -> None:
        path = local_path(location)
        if path is None:
            with self.io(location).new_output(location).create(overwrite=False) as stream:
                stream.write(content)
            return
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("xb") as file:
            file.write(content)

    def delete(self, location: str) -> None:
        path = local_path(location)
        if path is not None:
            path.unlink(missing_ok=True)
            return
        with suppress(FileNotFoundError):
            self.io(location).delete(location)

    def _try(self, location: str) -> bytes | Exception:
        try:
            return self.read(location)
        except Exception as error:  # noqa: BLE001  FileIO implementations raise what they like
            return error
