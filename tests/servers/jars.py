"""list of Maven artifacts -> their files, downloaded once from Maven Central into the user's cache and checked by their hash."""

from __future__ import annotations

import hashlib
import os
import tempfile
import urllib.error
import urllib.request
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

_CENTRAL = "https://repo1.maven.org/maven2"
_CACHE = Path.home() / ".cache" / "mvbuild" / "test-jars"
_SECONDS = 60


class NoJars(Exception):
    """They are not in the cache, and cannot be downloaded."""


@dataclass(frozen=True, kw_only=True)
class Jar:
    sha256: str
    coordinate: str
    """group:artifact:version, with a classifier where there is one."""

    @property
    def path(self) -> Path:
        return _CACHE / self._name

    @property
    def url(self) -> str:
        group, artifact, version, *_ = self.coordinate.split(":")
        return f"{_CENTRAL}/{group.replace('.', '/')}/{artifact}/{version}/{self._name}"

    @property
    def _name(self) -> str:
        return "-".join(self.coordinate.split(":")[1:]) + ".jar"


def jars(listed: Path) -> list[Path]:
    """Of a file with a line `sha256 coordinate` for each."""
    lines = [line.split() for line in listed.read_text().splitlines() if line and not line.startswith("#")]
    wanted = [Jar(sha256=sha256, coordinate=coordinate) for sha256, coordinate in lines]
    _download([jar for jar in wanted if not jar.path.exists()])
    return [jar.path for jar in wanted]


def _download(missing: Sequence[Jar]) -> None:
    _CACHE.mkdir(parents=True, exist_ok=True)
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(_fetch, missing))


def _fetch(jar: Jar) -> None:
    try:
        with urllib.request.urlopen(jar.url, timeout=_SECONDS) as answer:
            content = answer.read()
    except (urllib.error.URLError, OSError) as error:
        raise NoJars(f"{jar.coordinate} is not in {_CACHE} and Maven Central cannot be reached: {error}") from error
    found = hashlib.sha256(content).hexdigest()
    if found != jar.sha256:
        raise NoJars(f"{jar.url} has the hash {found}, not {jar.sha256}")
    # Under its name only when it is whole: another test run may be looking.
    handle, path = tempfile.mkstemp(dir=_CACHE)
    with os.fdopen(handle, "wb") as file:
        file.write(content)
    Path(path).replace(jar.path)
