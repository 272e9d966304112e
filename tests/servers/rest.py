"""Iceberg's reference REST server -> a process on a free port of this machine, over a SQLite catalog and a local warehouse."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from mvbuild.adapters.iceberg.rest_requests import Rest
from servers.jars import NoJars, jars

_LISTED = Path(__file__).with_name("rest_jars.txt")
_MAIN = "org.apache.iceberg.rest.RESTCatalogServer"
_JVM = ("-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn")
_START_SECONDS = 60


class NoServer(Exception):
    """Why there is no REST server on this machine."""


@dataclass(frozen=True, kw_only=True)
class RestServer:
    uri: str
    warehouse: Path
    log: Path

    @property
    def properties(self) -> dict[str, str]:
        """Of a catalog, for PyIceberg."""
        return {"type": "rest", "uri": self.uri}

    def clear(self) -> None:
        """Drop whatever there is."""
        from pyiceberg.catalog import load_catalog

        catalog = load_catalog("any", **self.properties)
        spaces = Rest(catalog).namespaces(())
        # Those below are found as the list grows.
        for namespace in spaces:
            spaces += Rest(catalog).namespaces(namespace)
        for namespace in reversed(spaces):
            for table in catalog.list_tables(namespace):
                catalog.drop_table(table)
            for view in catalog.list_views(namespace):
                catalog.drop_view(view)
            catalog.drop_namespace(namespace)
        catalog.close()  # type: ignore[attr-defined]
        shutil.rmtree(self.warehouse, ignore_errors=True)


@contextmanager
def running(root: Path) -> Iterator[RestServer]:
    """NoServer if this machine cannot run it."""
    java = shutil.which("java")
    if java is None:
        raise NoServer("there is no Java")
    try:
        path = os.pathsep.join(map(str, [*jars(_LISTED), *_hadoop()]))
    except NoJars as error:
        raise NoServer(str(error)) from error
    port = _free_port()
    server = RestServer(uri=f"http://127.0.0.1:{port}", warehouse=root / "warehouse", log=root / "server.log")
    with server.log.open("wb") as log:
        process = subprocess.Popen([java, *_JVM, "-cp", path, _MAIN], env=_environment(root, port), stdout=log, stderr=log)
    try:
        _wait(server, process)
        yield server
    finally:
        process.kill()
        process.wait()


def _hadoop() -> list[Path]:
    """The server's file IO is Hadoop's, and PySpark has those 50 MB. It is not imported: that takes half a second."""
    found = find_spec("pyspark")
    assert found is not None
    assert found.origin is not None
    return sorted(Path(found.origin).parent.glob("jars/hadoop-client-*.jar"))


def _environment(root: Path, port: int) -> dict[str, str]:
    """`CATALOG_A_B__C` is the catalog's property `a.b-c`."""
    settings = {
        "CATALOG_WAREHOUSE": f"file://{root}/warehouse",
        # Without patience and WAL, commits at the same time fail by the dozen.
        "CATALOG_URI": f"jdbc:sqlite:{root}/catalog.db?busy_timeout=60000&journal_mode=WAL",
        "CATALOG_JDBC_SCHEMA__VERSION": "V1",
        # As other servers do: nothing can be made in a namespace that is not there.
        "CATALOG_JDBC_STRICT__MODE": "true",
        "CATALOG_REST_PORT": str(port),
    }
    return {key: value for key, value in os.environ.items() if not key.startswith("CATALOG_")} | settings


def _wait(server: RestServer, process: subprocess.Popen[bytes]) -> None:
    end = time.monotonic() + _START_SECONDS
    while time.monotonic() < end:
        if process.poll() is not None:
            break
        try:
            with urllib.request.urlopen(f"{server.uri}/v1/config", timeout=5):
                return
        except (urllib.error.URLError, OSError):
            time.sleep(0.1)
    raise RuntimeError(f"the REST server did not start: {server.log.read_text()[-2000:]}")


def _free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])
