"""Java + class path -> JVM options that make Spark start in two thirds of the time: an archive of its loaded classes, kept in the cache.

The JVM checks the archive against its own build and the class path, and goes on without it where they do not fit. It is written by the JVM of
an early run when that ends, which costs that run some seconds: so not in the very first run, which in CI is often also the last.
"""

from __future__ import annotations

import hashlib
import os
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from mvbuild.adapters.spark.java import Java

_MAGIC = b"\xa8\xba\x0b\xf0"
"""Of a dynamic archive; the JVM writes the header last."""
_QUIET = ("-XX:+IgnoreUnrecognizedVMOptions", "-Xshare:auto", "-Xlog:cds=off", "-Xlog:cds+dynamic=off", "-Xlog:class+path=off")
_OLDEST_TRAINED = 17


def options(java: Java, class_path: Sequence[Path], spark_home: Path, cache: Path, *, train: bool) -> tuple[str, ...]:
    """To use the archive for this class path, or, with `train`, to write it when the JVM ends."""
    if java.major < _OLDEST_TRAINED or any(c.isspace() for c in str(cache)):
        return ()
    folder = cache / "cds"
    archive = folder / f"{_key(java, class_path, spark_home)}.jsa"
    if archive.is_file() or _adopt(archive):
        return (*_QUIET, f"-XX:SharedArchiveFile={archive}")
    if not train or any(folder.glob(f"{archive.stem}.*.tmp")):
        return ()
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        return ()
    return (*_QUIET, f"-XX:ArchiveClassesAtExit={archive.with_suffix(f'.{os.getpid()}.tmp')}")
