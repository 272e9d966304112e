"""Nessie, a REST catalog -> a process on a free port of this machine, with its files in an S3 (moto): it has no warehouses on a disk."""

from __future__ import annotations

import os
import re
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from servers.jars import NoJars, jars
from servers.moto import BUCKET, SECRET, Moto
from servers.postgres import free_port

_LISTED = Path(__file__).with_name("nessie_jars.txt")
_OLDEST = 21
_START_SECONDS = 120


class NoServer(Exception):
    """Why there is no Nessie on this machine."""


@dataclass(frozen=True, kw_only=True)
class Nessie:
    uri: str
    store: Moto
    log: Path

    @property
    def properties(self) -> dict[str, str]:
        """Of a catalog, for PyIceberg. The server configures the rest; it has views, and does not announce them."""
        return {"type": "rest", "uri": self.uri, "view-endpoints-supported": "true", **self.store.s3}


@contextmanager
def running(root: Path, store: Moto) -> Iterator[Nessie]:
    """NoServer if this machine cannot run it. What it has is kept in memory."""
    java, port, management = _java(), free_port(), free_port()
    try:
        (jar,) = jars(_LISTED)
    except NoJars as error:
        raise NoServer(str(error)) from error
    server = Nessie(uri=f"http://127.0.0.1:{port}/iceberg", store=store, log=root / "nessie.log")
    settings = {
        "quarkus.http.host": "127.0.0.1",
        "quarkus.http.port": port,
        "quarkus.management.host": "127.0.0.1",
        "quarkus.management.port": management,
        "nessie.version.store.type": "IN_MEMORY",
        "nessie.catalog.default-warehouse": "lake",
        "nessie.catalog.warehouses.lake.location": f"s3://{BUCKET}/nessie",
        "nessie.catalog.service.s3.default-options.endpoint": store.uri,
        "nessie.catalog.service.s3.default-options.path-style-access": "true",
        "nessie.catalog.service.s3.default-options.region": "us-east-1",
        "nessie.catalog.service.s3.default-options.request-signing-enabled": "false",
        "nessie.catalog.service.s3.default-options.access-key": "urn:nessie-secret:quarkus:keys",
        "keys.name": "lake",
        "keys.secret": SECRET,
    }
    options = [f"-D{key}={value}" for key, value in settings.items()]
    with server.log.open("wb") as log:
        process = subprocess.Popen([java, "-Xmx512m", "-XX:+UseSerialGC", *options, "-jar", jar], stdout=log, stderr=log, cwd=root)
    try:
        _wait(server, process)
        yield server
    finally:
        process.kill()
        process.wait()


def _java() -> str:
    """Of MVBUILD_NESSIE_JAVA, JAVA_HOME, the PATH or the usual folder, the first that is new enough."""
    homes = [os.environ.get("MVBUILD_NESSIE_JAVA"), os.environ.get("JAVA_HOME"), "/usr", *sorted(map(str, Path("/usr/lib/jvm").glob("*")))]
    for home in filter(None, homes):
        java = Path(home) / "bin" / "java"
        if java.is_file() and _major(java) >= _OLDEST:
            return str(java)
    raise NoServer(f"Nessie needs Java {_OLDEST} or newer; name one in MVBUILD_NESSIE_JAVA")


def _major(java: Path) -> int:
    said = subprocess.run([java, "-version"], capture_output=True, text=True, check=False).stderr
    found = re.search(r'version "(\d+)', said)
    return int(found[1]) if found else 0


def _wait(server: Nessie, process: subprocess.Popen[bytes]) -> None:
    end = time.monotonic() + _START_SECONDS
    while time.monotonic() < end and process.poll() is None:
        try:
            with urllib.request.urlopen(f"{server.uri}/v1/config", timeout=10):
                return
        except (urllib.error.URLError, OSError):
            time.sleep(0.3)
    raise RuntimeError(f"Nessie did not start: {server.log.read_text()[-2000:]}")
