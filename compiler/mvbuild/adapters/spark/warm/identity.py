"""Launch + environment -> Identity: a fingerprint of everything that a server is started with, and the environment that it gets.

A server sees only variables that the fingerprint covers, and a few that do not matter. So a command never uses a server that was started
with other credentials, another time zone or another proxy; and two terminals, whose environments always differ, share a server.
"""

from __future__ import annotations

import hashlib
import os
import re
import socket
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from mvbuild import __version__
from mvbuild.dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from datetime import timedelta

    from mvbuild.adapters.spark.launch import Launch

_MATTERS = re.compile(
    r"(?:AWS|S3|AZURE|ARM|GOOGLE|GCP|GCS|CLOUDSDK|SPARK|PYSPARK|HADOOP|HDFS|HIVE|ICEBERG|PYICEBERG|JAVA|JDK_JAVA|_JAVA|LC|SSL|KRB5)_"
    r"|(?:HTTP|HTTPS|NO|ALL)_PROXY\Z|KRB5\w*\Z|LANG\Z|TZ\Z|HOME\Z|USER\Z|LOGNAME\Z|LD_LIBRARY_PATH\Z",
    re.IGNORECASE,
)
"""The variables that Java, Spark, Hadoop, Iceberg or a cloud's client may read."""
_PASSED_ON = ("PATH", "TMPDIR")
_SEPARATORS = re.compile(rf"[,{re.escape(os.pathsep)}]")
_OF_FILES = ("spark.jars", "spark.driver.extraClassPath")


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    fingerprint: str
    """Two servers with the same one are interchangeable. Secrets cannot be recovered from it."""
    environment: Mapping[str, str]


def identity(launch: Launch, env: Mapping[str, str], keep: timedelta) -> Identity:
    """`keep` is included, because a server cannot change how long it stays."""
    import pyspark

    seen = {key: value for key, value in env.items() if _MATTERS.match(key)}
    files = [*launch.class_path, *_named_files(launch), *_configuration_files(env, Path(pyspark.__file__).parent)]
    content = (
        *(__version__, pyspark.__version__, sys.executable, launch.java.full_version, str(launch.java.path)),
        *(sorted(launch.conf.items()), sorted(seen.items()), sorted(map(_state, files))),
        *(str(Path.cwd()), keep.total_seconds(), machine()),
    )
    passed = {key: env[key] for key in _PASSED_ON if key in env}
    return Identity(fingerprint=hashlib.sha256(repr(content).encode()).hexdigest()[:24], environment={**passed, **seen})


def machine() -> str:
    """This machine or container since it was started: a port on the loopback address means nothing elsewhere."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        network = Path("/proc/self/ns/net").stat().st_ino
    except OSError:
        boot, network = "", 0
    return f"{socket.gethostname()}/{boot}/{network}"


def _named_files(launch: Launch) -> Iterator[Path]:
    """The files in settings: a jar may be built again under the same name."""
    for key in _OF_FILES:
        for name in _SEPARATORS.split(launch.conf.get(key, "")):
            if name:
                yield Path(name)


def _configuration_files(env: Mapping[str, str], home: Path) -> Iterator[Path]:
    """Those of Spark and Hadoop, such as spark-defaults.conf and core-site.xml."""
    for folder in {env.get("SPARK_CONF_DIR") or f"{env.get('SPARK_HOME') or home}/conf", env.get("HADOOP_CONF_DIR") or ""}:
        if folder and Path(folder).is_dir():
            yield from Path(folder).iterdir()


def _state(path: Path) -> tuple[str, int, int]:
    try:
        found = path.stat()
    except OSError:
        return str(path), 0, 0
    return str(path), found.st_size, found.st_mtime_ns
