"""file <-> the checksum that Hadoop writes beside it in a local file system: `data/x.parquet`, `data/.x.parquet.crc`."""

from __future__ import annotations

import re
from collections.abc import Iterable

from mvbuild.ports.catalog import Catalog

_CHECKSUM = re.compile(r"(.*/)\.([^/]+)\.crc\Z", re.DOTALL)


def checked(file: str) -> str | None:
    """The file that this is the checksum of; None if it is none."""
    match = _CHECKSUM.match(file)
    return match[1] + match[2] if match else None


def checksum(file: str) -> str:
    """Where the checksum of a file would be."""
    folder, _, name = file.rpartition("/")
    return f"{folder}/.{name}.crc"


def dangling(listed: Iterable[tuple[str, int]]) -> set[str]:
    """Checksums of files that are gone: who deleted those did not know of them."""
    names = {file for file, _ in listed}
    return {file for file in names if (of := checked(file)) is not None and of not in names}


def delete_with_checksums(catalog: Catalog, files: Iterable[str]) -> int:
    """How many files there were. Checksums, which nothing lists, go first: a directory that holds one is not empty."""
    files = sorted(files)
    catalog.delete_files(checksum(f) for f in files if _is_local(f))
    return catalog.delete_files(files)


def _is_local(file: str) -> bool:
    return file.startswith(("file:", "/"))
