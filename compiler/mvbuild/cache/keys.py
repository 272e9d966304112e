"""everything that a result depends on -> the key of the result; the version of the code, on which all results depend."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import suppress
from functools import lru_cache
from hashlib import blake2b
from pathlib import Path

from mvbuild import __version__

_LIBRARIES = ("sqlglot", "jinja2", "markupsafe", "pyyaml")
_COMPILED = "sqlglotc"
"""Which part of sqlglot is compiled; it may not be installed."""


def digest(*parts: object) -> str:
    """A hash of some values.

    >>> digest("sql", "SELECT 1") == digest("sql", "SELECT 2")
    False
    """
    return blake2b(repr(parts).encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


@lru_cache(maxsize=1)
def code_version() -> str:
    """A hash of all code that a result depends on. An installation under development keeps one version number, so the files count too."""
    return digest(__version__, sys.version_info[:3], _versions(), sorted(_stamps(str(Path(__file__).parent.parent), "")))


def _stamps(folder: str, below: str) -> Iterator[tuple[str, int, int]]:
    """Path, modification time and size of each file of the package that decides what it does."""
    with os.scandir(folder) as found:
        for entry in found:
            if entry.is_dir() and entry.name != "__pycache__":
                yield from _stamps(entry.path, f"{below}{entry.name}/")
            elif entry.name.endswith((".py", ".json")):
                stat = entry.stat()
                yield f"{below}{entry.name}", stat.st_mtime_ns, stat.st_size


def _versions() -> list[str]:
    """The versions of the libraries, by the names of the folders that describe an installation. `importlib.metadata` reads the same, and
    takes longer than everything else here."""
    found: set[str] = set()
    for folder in dict.fromkeys(sys.path):
        with suppress(OSError):
            names = (name.lower() for name in os.listdir(folder or "."))  # noqa: PTH208
            found.update(name for name in names if name.endswith((".dist-info", ".egg-info")) and name.startswith((*_LIBRARIES, _COMPILED)))
    if all(any(name.startswith(f"{library}-") for name in found) for library in _LIBRARIES):
        return sorted(found)
    # An installation in an archive, for example.
    from importlib.metadata import version

    return [version(library) for library in _LIBRARIES]
