"""Nessie -> its Iceberg REST server as a process on a free port of this machine, with its branches in memory and the files in S3.

It needs Java 21 or newer, and S3: it has no warehouse on a disk.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from servers.jars import NoJars, jars
from servers.moto import BUCKET, SECRET, Moto
from servers.postgres import free_port
from servers.rest import NoServer, RestServer, wait
from servers.trino import NoTrino, newest_java

_LISTED = Path(__file__).with_name("nessie_jars.txt")
_JVM = ("-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
_S3 = "nessie.catalog.service.s3.default-options"


@contextmanager
def running(root: Path, s3: Moto) -> Iterator[RestServer]:
    """NoServer if this machine cannot run it."""
    try:
        java, (jar,) = newest_java(), jars(_LISTED)
    except (NoJars, NoTrino) as error:
        raise NoServer(str(error)) from error
    s3.clear()
    port = free_port()
    settings = [f"-D{key}={value}" for key, value in _settings(port, s3).items()]
    server = RestServer(
        uri=f"http://127.0.0.1:{port}/iceberg",
        warehouse=root / "warehouse",
        log=root / "nessie.log",
        more={**s3.s3, "view-endpoints-supported": "true"},
    )
    with server.log.open("wb") as log:
        process = subprocess.Popen([java, *_JVM, *settings, "-jar", str(jar)], stdout=log, stderr=log)
    try:
        wait(server, process)
        yield server
    finally:
        process.kill()
        process.wait()


def _settings(port: int, s3: Moto) -> dict[str, str]:
    return {
        "quarkus.http.host": "127.0.0.1",
        "quarkus.http.port": str(port),
        "quarkus.management.port": str(free_port()),
        "quarkus.http.access-log.enabled": "false",
        "nessie.version.store.type": "IN_MEMORY",
        "nessie.catalog.default-warehouse": "warehouse",
        "nessie.catalog.warehouses.warehouse.location": f"s3://{BUCKET}/nessie",
        f"{_S3}.endpoint": s3.uri,
        f"{_S3}.path-style-access": "true",
        f"{_S3}.region": "us-east-1",
        f"{_S3}.request-signing-enabled": "false",
        f"{_S3}.access-key": "urn:nessie-secret:quarkus:keys",
        "keys.name": "lake",
        "keys.secret": SECRET,
    }
