"""everything that a result depends on -> the key of the result; the version of the code, on which all results depend."""

from __future__ import annotations

import sys
from functools import lru_cache
from hashlib import blake2b
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from mvbuild import __version__

_LIBRARIES = ("sqlglot", "sqlglotc", "jinja2", "markupsafe", "pyyaml")


def digest(*parts: object) -> str:
    """A hash of some values.

    >>> digest("sql", "SELECT 1") == digest("sql", "SELECT 2")
    False
    """
    return blake2b(repr(parts).encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


@lru_cache(maxsize=1)
def code_version() -> str:
    """A hash of all code that a result depends on. An installation under development keeps one version number, so the files count too."""
    package = Path(__file__).parent.parent
    found = (path for pattern in ("*.py", "*/*.py", "*/*/*.py", "*/*.json") for path in package.glob(pattern))
    stamps = sorted((str(path.relative_to(package)), (s := path.stat()).st_mtime_ns, s.st_size) for path in found)
    return digest(__version__, sys.version_info[:3], [_version(name) for name in _LIBRARIES], stamps)


def _version(library: str) -> str:
    try:
        return version(library)
    except PackageNotFoundError:
        return ""
