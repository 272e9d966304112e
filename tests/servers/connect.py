"""Spark Connect's server of PySpark -> a process on a free port: Spark with Iceberg, and without any catalog of its own."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from mvbuild.adapters.spark.catalog_conf import EXTENSIONS
from mvbuild.adapters.spark.jars import POSTGRESQL, SQLITE, cache_dir, needed_for_connect
from mvbuild.adapters.spark.releases import installed_release, installed_version
from servers.moto import KEYS
from servers.postgres import free_port
from spark import quick

_MAIN = "org.apache.spark.sql.connect.service.SparkConnectServer"
_CLIENT = ("grpc", "grpc_status", "google.rpc", "pandas", "zstandard")
_START_SECONDS = 120


class NoServer(Exception):
    """Why there is no Spark Connect on this machine."""


@dataclass(frozen=True, kw_only=True)
class Connect:
    remote: str
    log: Path


@contextmanager
def running(root: Path) -> Iterator[Connect]:
    """Its jars are those of mvbuild's cache. NoServer if this machine cannot run it."""
    java = shutil.which("java")
    release = installed_release()
    needed = (release.runtime, SQLITE, POSTGRESQL, release.aws, *needed_for_connect("local", installed_version()))
    jars = [cache_dir(os.environ) / "jars" / artifact.file_name for artifact in needed]
    lacking = [name for name in _CLIENT if find_spec(name.partition(".")[0]) is None] + [jar.name for jar in jars if not jar.is_file()]
    if java is None or lacking:
        raise NoServer("there is no Java" if java is None else f"{', '.join(lacking)} is not there")
    spark = find_spec("pyspark")
    assert spark is not None
    assert spark.origin is not None
    server = Connect(remote=f"sc://127.0.0.1:{free_port()}", log=root / "connect.log")
    path = os.pathsep.join(map(str, [*jars, f"{Path(spark.origin).parent}/jars/*"]))
    conf = [f"-D{key}={value}" for key, value in _settings(server, root).items()]
    command = [java, "-Xmx1g", *_java_options(), *conf, "-cp", path, _MAIN]
    with server.log.open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, cwd=root, env={**os.environ, **KEYS})
    try:
        _wait(server, process)
        yield server
    finally:
        process.kill()
        process.wait()


def _settings(server: Connect, root: Path) -> dict[str, str]:
    return {
        "spark.master": "local[2]",
        "spark.app.name": "connect",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": server.remote.rpartition(":")[2],
        "spark.sql.extensions": EXTENSIONS,
        "spark.sql.catalogImplementation": "in-memory",
        "spark.sql.warehouse.dir": f"file://{root}/spark-warehouse",
        **quick.QUERIES,
    }


def _java_options() -> list[str]:
    """Those of the tests, and what Spark's launcher gives to Java 17."""
    quickly = " ".join(quick.JVM.values()).split()
    found = [f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in _OPEN]
    return [*quickly, *found, "-Dio.netty.tryReflectionSetAccessible=true", "-Djdk.reflect.useDirectMethodHandle=false"]


_OPEN = (
    *("java.lang", "java.lang.invoke", "java.lang.reflect", "java.io", "java.net", "java.nio", "java.util", "java.util.concurrent"),
    *("java.util.concurrent.atomic", "sun.nio.ch", "sun.nio.cs", "sun.security.action", "sun.util.calendar", "sun.security.x509"),
)


def _wait(server: Connect, process: subprocess.Popen[bytes]) -> None:
    end = time.monotonic() + _START_SECONDS
    while time.monotonic() < end and process.poll() is None:
        try:
            socket.create_connection(("127.0.0.1", int(server.remote.rpartition(":")[2])), timeout=1).close()
        except OSError:
            time.sleep(0.1)
        else:
            return
    raise RuntimeError(f"Spark Connect did not start: {server.log.read_text()[-2000:]}")
