"""path of an Iceberg table in no catalog -> TableState, from the newest metadata file below it."""

from __future__ import annotations

import os
import re
from dataclasses import replace
from typing import TYPE_CHECKING

from mvbuild.adapters.iceberg.files import FileStore, local_path
from mvbuild.adapters.iceberg.metadata import parse, state
from mvbuild.adapters.sources.failures import source_errors
from mvbuild.dataclass import dataclass
from mvbuild.ports.states import TableState

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mvbuild.ports.sources import SourceLocation

_HINT = "version-hint.text"
_NAME = re.compile(r"(?:v(?P<version>\d+)|(?P<number>\d+)-[^/]+?)(?:\.gz)?\.metadata\.json(?:\.gz)?\Z")


@dataclass(frozen=True, slots=True, kw_only=True)
class _File:
    """A metadata file by its name: `v3.metadata.json` of the Hadoop layout, `00003-<uuid>.metadata.json` of catalogs."""

    name: str
    number: int
    is_hadoop: bool


def load(location: SourceLocation, properties: Mapping[str, str]) -> TableState | None:
    """The state, or None if the table does not exist. Options of the location override the `properties` of the target's catalog."""
    settings = {**properties, **location.options}
    files = FileStore(settings)
    folder = f"{location.identifier.name}/metadata"
    with source_errors(location):
        names = _names(folder, settings)
        newest = _newest(folder, names, files)
        if newest is None:
            return None
        place = f"{folder}/{newest}"
        found = state(location.identifier, place, parse(files.read(place), place), is_view=False)
        assert isinstance(found, TableState)
        return replace(found, type=location.type)


def _newest(folder: str, names: frozenset[str], files: FileStore) -> str | None:
    """The hint's version or the highest one above it, because a writer that dies does not update the hint. Without a hint, the highest
    number."""
    found = [
        _File(name=n, number=int(m["version"] or m["number"]), is_hadoop=m["version"] is not None) for n in names if (m := _NAME.match(n))
    ]
    hint = files.read(f"{folder}/{_HINT}").decode().strip() if _HINT in names else ""
    hinted = next((f for f in found if f.name in (hint, f"{hint}.metadata.json")), None)
    if hinted and not hinted.is_hadoop:
        return hinted.name
    versions = {f.number: f.name for f in found if f.is_hadoop}
    if hint.isdigit() and int(hint) in versions:
        at = int(hint)
        while at + 1 in versions:
            at += 1
        return versions[at]
    last = [f for f in found if f.number == max(f.number for f in found)]
    if len(last) < 2:
        return last[0].name if last else None
    # If two writers raced for one number, only one of them has committed; the path does not show which.
    return max(last, key=lambda f: (_updated(f"{folder}/{f.name}", files), f.name)).name


def _updated(place: str, files: FileStore) -> int:
    return int(parse(files.read(place), place).get("last-updated-ms", 0))


def _names(folder: str, settings: Mapping[str, str]) -> frozenset[str]:
    path = local_path(folder)
    if path is not None:
        try:
            return frozenset(os.listdir(path))  # noqa: PTH208  (names are all that is wanted)
        except (FileNotFoundError, NotADirectoryError):
            return frozenset()
    from pyarrow.fs import FileSelector  # type: ignore[import-untyped]
    from pyiceberg.io.pyarrow import PyArrowFileIO

    io = PyArrowFileIO(dict(settings))
    scheme, host, below = io.parse_location(folder)
    listed = io.fs_by_scheme(scheme, host).get_file_info(FileSelector(below, allow_not_found=True))
    return frozenset(info.base_name for info in listed)
