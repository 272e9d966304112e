"""a Trino distribution -> a running Trino on a free port that reads one Iceberg REST catalog, and the rows of its queries.

`MVBUILD_TRINO` is the unpacked distribution. Without it the tar.gz is fetched from Maven Central (820 MB) into the user's cache and unpacked
there, with its Iceberg plugin alone. `MVBUILD_TRINO_JAVA` is the home of a Java 24 or newer.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tarfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mvbuild.adapters.spark.jars import cache_dir
from servers.postgres import free_port

VERSION = "476"
CATALOG = "lake"
_URL = f"https://repo1.maven.org/maven2/io/trino/trino-server/{VERSION}/trino-server-{VERSION}.tar.gz"
_START_SECONDS = 240
_JAVAS = ("/usr/lib/jvm/temurin-25-jdk-amd64", "/usr/lib/jvm/temurin-24-jdk-amd64")
_JVM = (
    "-Xmx1500m",
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",
    "-Djdk.attach.allowAttachSelf=true",
    "-Djdk.nio.maxCachedBufferSize=2000000",
    "-Dfile.encoding=UTF-8",
    "--add-modules=jdk.incubator.vector",
    "--enable-native-access=ALL-UNNAMED",
    "--sun-misc-unsafe-memory-access=allow",
)


class NoTrino(Exception):
    """Why there is no Trino on this machine."""


class TrinoError(Exception):
    """What Trino says of a query that fails."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    types: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]
    """As the protocol gives them: numbers, texts, booleans, None."""


@dataclass(frozen=True, kw_only=True)
class Trino:
    uri: str
    log: Path

    def run(self, sql: str, *, zone: str = "UTC", schema: str = "main") -> Result:
        """TrinoError if it fails."""
        headers = {"X-Trino-User": "proof", "X-Trino-Catalog": CATALOG, "X-Trino-Schema": schema, "X-Trino-Time-Zone": zone}
        # Without it timestamps lose their microseconds.
        headers["X-Trino-Client-Capabilities"] = "PARAMETRIC_DATETIME"
        page = _call(urllib.request.Request(f"{self.uri}/v1/statement", data=sql.encode(), headers=headers))
        rows: list[tuple[Any, ...]] = []
        types: tuple[str, ...] = ()
        while True:
            if "error" in page:
                raise TrinoError(page["error"]["message"])
            types = types or tuple(c["type"] for c in page.get("columns") or ())
            rows += [tuple(row) for row in page.get("data") or ()]
            if "nextUri" not in page:
                return Result(types=types, rows=tuple(rows))
            page = _call(urllib.request.Request(page["nextUri"], headers=headers))


@contextmanager
def running(root: Path, rest_uri: str) -> Iterator[Trino]:
    """Over the tables and views of a REST catalog. NoTrino if this machine cannot run it."""
    java, home, port = newest_java(), _home(), free_port()
    root.mkdir(parents=True, exist_ok=True)
    (root / "plugin").unlink(missing_ok=True)
    (root / "plugin").symlink_to(home / "plugin")
    _configure(root, port, rest_uri)
    trino = Trino(uri=f"http://127.0.0.1:{port}", log=root / "trino.log")
    where = ("-Dconfig=etc/config.properties", f"-Dnode.data-dir={root}/data", "-Dlog.levels-file=etc/log.properties")
    node = ("-Dnode.environment=proof", "-Dnode.id=proof", "-Dcatalog.config-dir=etc/catalog")
    with trino.log.open("wb") as log:
        command = [java, *_JVM, *where, *node, "-cp", f"{home}/lib/*", "io.trino.server.TrinoServer"]
        process = subprocess.Popen(command, cwd=root, stdout=log, stderr=log)
    try:
        _wait(trino, process)
        yield trino
    finally:
        process.kill()
        process.wait()


def _configure(root: Path, port: int, rest_uri: str) -> None:
    files: dict[str, Mapping[str, str]] = {
        "config.properties": {
            "coordinator": "true",
            "node-scheduler.include-coordinator": "true",
            "http-server.http.port": str(port),
            "discovery.uri": f"http://127.0.0.1:{port}",
            "query.max-memory": "500MB",
            "query.max-memory-per-node": "500MB",
            "memory.heap-headroom-per-node": "300MB",
        },
        "log.properties": {"io.trino": "WARN"},
        f"catalog/{CATALOG}.properties": {
            "connector.name": "iceberg",
            "iceberg.catalog.type": "rest",
            "iceberg.rest-catalog.uri": rest_uri,
            "fs.hadoop.enabled": "true",
        },
    }
    for name, properties in files.items():
        path = root / "etc" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(f"{key}={value}\n" for key, value in properties.items()))


def _call(request: urllib.request.Request) -> dict[str, Any]:
    with urllib.request.urlopen(request, timeout=120) as answer:
        found: dict[str, Any] = json.load(answer)
    return found


def _wait(trino: Trino, process: subprocess.Popen[bytes]) -> None:
    end = time.monotonic() + _START_SECONDS
    while time.monotonic() < end and process.poll() is None:
        try:
            if not _call(urllib.request.Request(f"{trino.uri}/v1/info"))["starting"]:
                trino.run("SELECT 1")
                return
        except (urllib.error.URLError, OSError, TrinoError):
            pass
        time.sleep(0.5)
    raise RuntimeError(f"Trino did not start: {trino.log.read_text()[-2000:]}")


def newest_java() -> str:
    homes = (os.environ.get("MVBUILD_TRINO_JAVA"), *_JAVAS)
    found = next((Path(home) / "bin" / "java" for home in homes if home and (Path(home) / "bin" / "java").is_file()), None)
    if found is None:
        raise NoTrino("there is no Java 24 or newer; name one in MVBUILD_TRINO_JAVA")
    return str(found)


def _home() -> Path:
    given = os.environ.get("MVBUILD_TRINO")
    home = Path(given) if given else cache_dir(os.environ) / f"trino-server-{VERSION}"
    if given and not (home / "lib").is_dir():
        raise NoTrino(f"MVBUILD_TRINO: {home} has no lib/")
    return home if (home / "lib").is_dir() else _fetched(home)


def _fetched(home: Path) -> Path:
    archive, unpacked = home.with_suffix(".tar.gz"), home.with_suffix(".new")
    home.parent.mkdir(parents=True, exist_ok=True)
    try:
        if not archive.is_file():
            part, _ = urllib.request.urlretrieve(_URL, archive.with_suffix(".part"))
            Path(part).rename(archive)
    except OSError as error:
        raise NoTrino(f"{_URL}: {error}") from error
    # Files of plugins are hard links to each other's, so that all are unpacked before the others go.
    shutil.rmtree(unpacked, ignore_errors=True)
    with tarfile.open(archive) as tar:
        tar.extractall(unpacked, filter="data")
    top = unpacked / home.name
    for plugin in (top / "plugin").iterdir():
        if plugin.name != "iceberg":
            shutil.rmtree(plugin)
    shutil.rmtree(top / "secrets-plugin", ignore_errors=True)
    top.rename(home)
    archive.unlink()
    unpacked.rmdir()
    return home
