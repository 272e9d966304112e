"""location -> bytes and back: metadata files on the local disk directly, others through PyIceberg's FileIO."""

from __future__ import annotations

import os
import re
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from os.path import commonpath
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from mvbuild.adapters.iceberg.folder_contents import delete_local, list_local, list_remote, unlink

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyiceberg.io import FileIO

_UUID = re.compile(r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}")
_OF_STORES = ("s3.", "gcs.", "adls.")
_READERS = 8
"""Object stores answer in tens of milliseconds, so the metadata of a whole project is read in parallel."""


class Files(Protocol):
    """Where metadata files are stored."""

    def read(self, location: str) -> bytes:
        """Raises OSError if the file does not exist."""

    def read_all(self, locations: list[str]) -> list[bytes | Exception]:
        """The content of each file, or the error of reading it."""

    def stamp(self, location: str) -> str | None:
        """A text that differs for another metadata file, without reading it. None if there is none, or no such text."""

    def write(self, location: str, content: bytes) -> None:
        """Write a new file; an existing file is never overwritten."""

    def delete(self, location: str) -> None:
        """Delete a file. Does nothing if it does not exist."""

    def delete_all(self, locations: list[str]) -> int:
        """Delete files, and local directories that become empty. Returns how many files there were."""

    def below(self, location: str) -> list[tuple[str, int]]:
        """Every file below a location, spelled by `spelled`, with its modification time in ms since the epoch."""

    def spelled(self, location: str) -> str:
        """One spelling for all locations of the same file."""


def spelled(location: str) -> str:
    """Engines write file:/x, file:///x and /x; Hadoop's s3a and s3n are S3."""
    path = local_path(location)
    if path is not None:
        return f"file://{path.absolute()}"
    scheme, _, rest = location.partition("://")
    return f"s3://{rest}" if scheme in ("s3a", "s3n") else location


def is_unique(location: str) -> bool:
    """Whether no other metadata file ever has this location: Iceberg never changes one, and names with a UUID are not given twice."""
    return _UUID.search(location.rpartition("/")[2]) is not None


def local_path(location: str) -> Path | None:
    """Java writes file:/abs, PyIceberg file:///abs; neither escapes characters."""
    path = _local(location)
    return None if path is None else Path(path)


def _local(location: str) -> str | None:
    if location.startswith("file:"):
        return "/" + location[len("file:") :].lstrip("/")
    return None if "://" in location else location


class FileStore:
    """Files by location; files that are not local are read with the properties of the catalog."""

    def __init__(self, properties: Mapping[str, str], known: Mapping[str, FileIO] | None = None) -> None:
        """`known`: directory -> what reads and writes there, with credentials that the catalog issued for it."""
        self._properties = {**_region(properties), **properties}
        self._known = known or {}
        self._opened: dict[str, FileIO] = {}

    def io(self, location: str) -> FileIO:
        from pyiceberg.io import load_file_io

        handed_out = self._handed_out(location)
        if handed_out is not None:
            return handed_out
        # One FileIO for all files of a kind: it keeps its connections and the regions of buckets.
        scheme = location.partition("://")[0] if "://" in location else ""
        if scheme not in self._opened:
            self._opened[scheme] = load_file_io(self._properties, location)
        return self._opened[scheme]

    def _handed_out(self, location: str) -> FileIO | None:
        """The properties that the catalog issued for the nearest directory of the same store, if they contain more than the default ones;
        for a view, a catalog issues none."""
        store = "/".join(location.split("/", 3)[:3]) + "/"
        near = [(len(commonpath([folder, location])), folder) for folder in tuple(self._known) if folder.startswith(store)]
        io = self._known[max(near)[1]] if near else None
        return io if io is not None and any(key.startswith(_OF_STORES) for key in io.properties.keys() - self._properties.keys()) else None

    def read(self, location: str) -> bytes:
        path = _local(location)
        if path is not None:
            with open(path, "rb") as file:  # noqa: PTH123  a run with nothing to do reads thousands: a Path takes as long as the file
                return file.read()
        with self.io(location).new_input(location).open() as stream:
            return stream.read()

    def read_all(self, locations: list[str]) -> list[bytes | Exception]:
        if len(locations) < 2 or all(_local(location) is not None for location in locations):
            return [self._try(location) for location in locations]
        with ThreadPoolExecutor(_READERS) as pool:
            return list(pool.map(self._try, locations))

    def stamp(self, location: str) -> str | None:
        path = _local(location)
        if path is None:
            return location if is_unique(location) else None
        try:
            found = os.stat(path)  # noqa: PTH116  as in `read`
        except OSError:
            return None
        # In a file-system warehouse, a table that is created again has the same names of files.
        return f"{location} {found.st_ctime_ns} {found.st_size} {found.st_ino}"

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
            with suppress(FileNotFoundError):
                unlink(path)
            return
        with suppress(FileNotFoundError):
            self.io(location).delete(location)

    def delete_all(self, locations: list[str]) -> int:
        if len(locations) < 2 or all(local_path(location) for location in locations):
            return sum(self._delete_one(location) for location in locations)
        with ThreadPoolExecutor(_READERS) as pool:
            return sum(pool.map(self._delete_one, locations))

    def below(self, location: str) -> list[tuple[str, int]]:
        path = local_path(location)
        if path is not None:
            return list_local(path.absolute())
        return [(spelled(found), at) for found, at in list_remote(self.io(location), location)]

    def spelled(self, location: str) -> str:
        return spelled(location)

    def _delete_one(self, location: str) -> bool:
        path = local_path(location)
        if path is not None:
            return delete_local(path)
        with suppress(FileNotFoundError):
            self.io(location).delete(location)
            return True
        return False

    def _try(self, location: str) -> bytes | Exception:
        try:
            return self.read(location)
        except Exception as error:  # noqa: BLE001  FileIO implementations raise what they like
            return error


def _region(properties: Mapping[str, str]) -> dict[str, str]:
    """PyIceberg asks Amazon for the region of a bucket unless it is configured. Amazon does not know a server with its own endpoint."""
    if "s3.endpoint" not in properties or properties.keys() & {"s3.region", "client.region"}:
        return {}
    return {"s3.region": os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION") or "us-east-1"}
