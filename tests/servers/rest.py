"""Iceberg's reference REST server -> a process on a free port of this machine, over a SQLite catalog and a warehouse on disk or in S3."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path

from mvbuild.adapters.iceberg.rest_requests import Rest
from mvbuild.adapters.spark.jars import cache_dir
from mvbuild.adapters.spark.releases import installed_release
from servers.jars import NoJars, jars
from servers.moto import BUCKET, SECRET, Moto

_LISTED = Path(__file__).with_name("rest_jars.txt")
_LISTED_S3 = Path(__file__).with_name("rest_s3_jars.txt")
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
    more: Mapping[str, str] = field(default_factory=dict)
    """Properties that clients need besides the address."""

    @property
    def properties(self) -> dict[str, str]:
        """Of a catalog, for PyIceberg."""
        return {"type": "rest", "uri": self.uri, **self.more}

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
def running(root: Path, s3: Moto | None = None) -> Iterator[RestServer]:
    """With the files in `s3` the server hands out the keys for them. NoServer if this machine cannot run it."""
    java = shutil.which("java")
    if java is None:
        raise NoServer("there is no Java")
    try:
        path = os.pathsep.join(map(str, [*jars(_LISTED), *_hadoop(), *(_aws() if s3 else ())]))
    except NoJars as error:
        raise NoServer(str(error)) from error
    port = _free_port()
    server = RestServer(uri=f"http://127.0.0.1:{port}", warehouse=root / "warehouse", log=root / "server.log")
    with server.log.open("wb") as log:
        process = subprocess.Popen([java, *_JVM, "-cp", path, _MAIN], env=_environment(root, port, s3), stdout=log, stderr=log)
    try:
        wait(server, process)
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


def _aws() -> list[Path]:
    """Amazon's client is what the tests of Spark on S3 have in the cache."""
    bundle = cache_dir(os.environ) / "jars" / installed_release().aws.file_name
    if not bundle.is_file():
        raise NoJars(f"{bundle} is not there")
    return [*jars(_LISTED_S3), bundle]


def _environment(root: Path, port: int, s3: Moto | None) -> dict[str, str]:
    """`CATALOG_A_B__C` is the catalog's property `a.b-c`."""
    settings = {
        "CATALOG_WAREHOUSE": f"file://{root}/warehouse",
        # Without patience and WAL, commits at the same time fail by the dozen.
        "CATALOG_URI": f"jdbc:sqlite:{root}/catalog.db?busy_timeout=60000&journal_mode=WAL",
        "CATALOG_JDBC_SCHEMA__VERSION": "V1",
        # As other servers do: nothing can be made in a namespace that is not there.
        "CATALOG_JDBC_STRICT__MODE": "true",
        "CATALOG_REST_PORT": str(port),
        **(_on_s3(s3) if s3 else {}),
    }
    return {key: value for key, value in os.environ.items() if not key.startswith("CATALOG_")} | settings


def _on_s3(s3: Moto) -> Mapping[str, str]:
    return {
        "CATALOG_WAREHOUSE": f"s3://{BUCKET}/rest",
        "CATALOG_IO__IMPL": "org.apache.iceberg.aws.s3.S3FileIO",
        "CATALOG_S3_ENDPOINT": s3.uri,
        "CATALOG_S3_PATH__STYLE__ACCESS": "true",
        "CATALOG_CLIENT_REGION": "us-east-1",
        "CATALOG_S3_ACCESS__KEY__ID": "lake",
        "CATALOG_S3_SECRET__ACCESS__KEY": SECRET,
        "CATALOG_S3_SESSION__TOKEN": f"session-{SECRET}",
        "CATALOG_INCLUDE__CREDENTIALS": "true",
    }


def wait(server: RestServer, process: subprocess.Popen[bytes]) -> None:
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
