"""Java + class path -> JVM options with which Spark starts in two thirds of the time: a cached archive of its loaded classes.

The JVM checks the archive against its own build and the class path, and ignores it if they do not fit. The JVM of an early run writes it
when it ends, which costs that run some seconds. This is not the very first run, which in CI is often also the last. An archive has 200 MB
and fits one environment only. Before another one is written, archives that were not used for a month are removed.
"""

from __future__ import annotations

import hashlib
import os
import time
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from mvbuild.adapters.spark.java import Java

_MAGIC = b"\xa8\xab\x0b\xf0"
"""The magic number of a dynamic archive; the JVM writes the header last."""
_QUIET = ("-XX:+IgnoreUnrecognizedVMOptions", "-Xshare:auto", "-Xlog:cds=off", "-Xlog:cds+dynamic=off", "-Xlog:class+path=off")
_DAY = 24 * 3600
_ABANDONED_SECONDS, _UNUSED_SECONDS = _DAY, 30 * _DAY


def options(java: Java, class_path: Sequence[Path], spark_home: Path, cache: Path, *, train: bool) -> tuple[str, ...]:
    """Options to use the archive for this class path or, with `train`, to write it when the JVM ends."""
    if any(c.isspace() for c in str(cache)):
        return ()
    folder = cache / "cds"
    archive = folder / f"{_key(java, class_path, spark_home)}.jsa"
    if archive.is_file() or _adopt(archive):
        _mark_used(archive)
        return (*_QUIET, f"-XX:SharedArchiveFile={archive}")
    if not train or not _claim(archive.with_suffix(".claim")):
        return ()
    _remove_unused(folder)
    return (*_QUIET, f"-XX:ArchiveClassesAtExit={archive.with_suffix(f'.{os.getpid()}.tmp')}")


def _key(java: Java, class_path: Sequence[Path], spark_home: Path) -> str:
    jars = [(str(jar), jar.stat().st_size, jar.stat().st_mtime_ns) for jar in class_path]
    return hashlib.sha256(repr((java.full_version, str(java.path), str(spark_home), jars)).encode()).hexdigest()[:16]


def _claim(claim: Path) -> bool:
    """One process writes the archive. If it failed, another one may try a day later."""
    with suppress(OSError):
        if claim.exists() and _age(claim) > _ABANDONED_SECONDS:
            claim.unlink()
        claim.parent.mkdir(parents=True, exist_ok=True)
        claim.touch(exist_ok=False)
        return True
    return False


def _adopt(archive: Path) -> bool:
    """Move an archive that an earlier run wrote to its final name. An unfinished one has no header and is removed."""
    for written in sorted(archive.parent.glob(f"{archive.stem}.*.tmp")):
        with suppress(OSError):
            with written.open("rb") as file:
                finished = file.read(4) == _MAGIC
            if finished:
                written.replace(archive)
                return True
            if _age(written) > _ABANDONED_SECONDS:
                written.unlink()
    return False


def _mark_used(archive: Path) -> None:
    with suppress(OSError):  # of another user
        if _age(archive) > _DAY:
            os.utime(archive)


def _remove_unused(folder: Path) -> None:
    for file in folder.iterdir():
        with suppress(OSError):
            if _age(file) > _UNUSED_SECONDS:
                file.unlink()


def _age(file: Path) -> float:
    """Seconds since it was written, or last marked as used."""
    return time.time() - file.stat().st_mtime
