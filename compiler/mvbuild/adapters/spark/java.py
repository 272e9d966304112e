"""environment -> Java: the Java that Spark will start, checked first."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

from mvbuild.dataclass import dataclass
from mvbuild.ports.engine import EngineError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

OLDEST = 17

_VERSION = re.compile(r'version "(?:1\.)?(\d+)')
_RELEASE = re.compile(r'^JAVA_VERSION="(?:1\.)?(\d+)', re.MULTILINE)
_SECONDS = 30


@dataclass(frozen=True, slots=True, kw_only=True)
class Java:
    """`full_version` distinguishes builds; it is empty if only the major version could be read."""

    path: Path
    major: int
    full_version: str


def find_java(env: Mapping[str, str], run: Callable[[Path], str] | None = None) -> Java:
    """Find Java as Spark does: JAVA_HOME, otherwise PATH. `run` returns the output of `<path> -version`. Raises EngineError no-java or
    wrong-java."""
    home = env.get("JAVA_HOME")
    path = _below(home) if home else _on_path(env)
    java = _from_release(path) or _from_output(path, (run or _version_output)(path))
    if java.major < OLDEST:
        raise EngineError("wrong-java", f"Java {java.major} was found at {path}; Spark with Iceberg needs Java 17 or 21.")
    return java


def _below(home: str) -> Path:
    path = Path(home) / "bin" / "java"
    if not path.is_file() and not path.with_suffix(".exe").is_file():
        raise EngineError("no-java", f"JAVA_HOME is {home}, but it has no bin/java.")
    return path


def _on_path(env: Mapping[str, str]) -> Path:
    found = shutil.which("java", path=env.get("PATH", ""))
    if found is None:
        raise EngineError("no-java", "JAVA_HOME is not set and there is no `java` on PATH; Spark with Iceberg needs Java 17 or 21.")
    return Path(found)


def _from_release(path: Path) -> Java | None:
    """From the `release` file of every JDK, which saves the 50 ms of asking Java itself. A script that chooses a Java has no such file."""
    try:
        text = (path.resolve().parent.parent / "release").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    match = _RELEASE.search(text)
    return Java(path=path, major=int(match[1]), full_version=text) if match else None


def _from_output(path: Path, output: str) -> Java:
    match = _VERSION.search(output)
    if match is None:
        first = next((line.strip() for line in output.splitlines() if line.strip()), "nothing")
        raise EngineError("no-java", f"{path} does not report its version; it printed: {first}")
    return Java(path=path, major=int(match[1]), full_version=output)


def _version_output(path: Path) -> str:
    try:
        done = subprocess.run([path, "-version"], capture_output=True, text=True, errors="replace", timeout=_SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired) as exc:
        raise EngineError("no-java", f"{path} cannot be run: {exc}") from exc
    return done.stderr + done.stdout
