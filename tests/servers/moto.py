"""moto -> a process on a free port that answers as S3 and Glue do. Run as a program it is that process.

Glue takes an update only over the version that it was made from, hands tables out by the hundred, and keeps names in lower case, and neither
service answers who has no keys; moto does none of it, so the program adds it.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from threading import RLock
from typing import Any
from unittest.mock import patch

from servers.postgres import free_port

BUCKET = "lake"
SECRET = "s3cr3t-of-the-lake"
KEYS = {"AWS_ACCESS_KEY_ID": "lake", "AWS_SECRET_ACCESS_KEY": SECRET}
"""Of an environment."""
_START_SECONDS = 60
_PAGE = 100


class NoServer(Exception):
    """Why moto cannot run."""


@dataclass(frozen=True, kw_only=True)
class Moto:
    uri: str

    @property
    def s3(self) -> dict[str, str]:
        """PyIceberg's properties for files there."""
        keys = {"s3.access-key-id": "lake", "s3.secret-access-key": SECRET}
        return {"s3.endpoint": self.uri, "s3.region": "us-east-1", **keys}

    @property
    def glue(self) -> dict[str, str]:
        """Of a Glue catalog; its keys are in the environment."""
        return {"type": "glue", "glue.endpoint": self.uri, "glue.region": "us-east-1", "warehouse": f"s3://{BUCKET}/warehouse", **self.s3}

    def clear(self) -> None:
        """Forget everything but an empty bucket."""
        for method, path in (("POST", "moto-api/reset"), ("PUT", BUCKET)):
            with urllib.request.urlopen(urllib.request.Request(f"{self.uri}/{path}", method=method), timeout=30):
                pass


@contextmanager
def running(root: Path) -> Iterator[Moto]:
    """NoServer if this machine cannot run it."""
    if find_spec("moto") is None or find_spec("flask") is None:
        raise NoServer("moto[glue,s3] and flask are not installed")
    port = free_port()
    path = f"import sys; sys.path[:0] = [{str(Path(__file__).parents[1])!r}]; from servers.moto import main; main({port})"
    with (root / "moto.log").open("wb") as log:
        process = subprocess.Popen([sys.executable, "-c", path], stdout=log, stderr=log)
    server = Moto(uri=f"http://127.0.0.1:{port}")
    try:
        _wait(server, process, root / "moto.log")
        yield server
    finally:
        process.kill()
        process.wait()


@contextmanager
def quick_clients() -> Iterator[None]:
    """Each client of Amazon's services reads their descriptions, 3 MB of JSON: here they are read once."""
    from botocore.loaders import JSONFileLoader

    load = cache(JSONFileLoader().load_file)
    with patch.object(JSONFileLoader, "load_file", lambda _, path: load(path)):
        yield


def _wait(server: Moto, process: subprocess.Popen[bytes], log: Path) -> None:
    end = time.monotonic() + _START_SECONDS
    while time.monotonic() < end and process.poll() is None:
        try:
            server.clear()
        except (urllib.error.URLError, OSError):
            time.sleep(0.1)
        else:
            return
    raise RuntimeError(f"moto did not start: {log.read_text()[-2000:]}")


def main(port: int) -> None:
    from moto.moto_server.werkzeug_app import DomainDispatcherApplication, MotoRequestHandler, create_backend_app
    from werkzeug.serving import run_simple

    _as_glue()
    MotoRequestHandler.protocol_version = "HTTP/1.1"
    run_simple(
        "127.0.0.1", port, _signed_only(DomainDispatcherApplication(create_backend_app)), threaded=True, request_handler=MotoRequestHandler
    )


def _signed_only(app: Any) -> Any:
    """Like Amazon, and unlike moto, refuse requests without keys, except those of `clear`."""

    def answer(environ: dict[str, Any], start_response: Any) -> Any:
        signed = "HTTP_AUTHORIZATION" in environ or "X-Amz-Signature" in environ["QUERY_STRING"]
        if (
            signed
            or environ["PATH_INFO"].startswith("/moto-api/")
            or (environ["REQUEST_METHOD"], environ["PATH_INFO"]) == ("PUT", f"/{BUCKET}")
        ):
            return app(environ, start_response)
        environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
        content = b"<Error><Code>AccessDenied</Code><Message>Access Denied</Message></Error>"
        start_response("403 Forbidden", [("Content-Type", "application/xml"), ("Content-Length", str(len(content)))])
        return [] if environ["REQUEST_METHOD"] == "HEAD" else [content]

    return answer


def _as_glue() -> None:
    from moto.core.responses import ActionResult, EmptyResult
    from moto.glue.exceptions import JsonRESTError
    from moto.glue.models import GlueBackend
    from moto.glue.responses import GlueResponse

    lock = RLock()

    def update_table(self: Any) -> Any:
        given = self.parameters
        with lock:
            table = self.glue_backend.get_table(given["DatabaseName"], given["TableInput"]["Name"])
            if given.get("VersionId") not in (None, str(table._current_version)):
                raise JsonRESTError("ConcurrentModificationException", f"Update table failed due to version mismatch: {given['VersionId']}")
            table.update(given["TableInput"])
        return EmptyResult()

    def get_tables(self: Any) -> Any:
        found = self.glue_backend.get_tables(self.parameters["DatabaseName"], self.parameters.get("Expression"))
        start = int(self.parameters.get("NextToken") or 0)
        token = {"NextToken": str(start + _PAGE)} if start + _PAGE < len(found) else {}
        return ActionResult({"TableList": [table.as_dict() for table in found[start : start + _PAGE]], **token})

    def locked(method: Any) -> Any:
        def run(*args: Any, **named: Any) -> Any:
            with lock:
                return method(*args, **named)

        return run

    GlueResponse.update_table = update_table
    GlueResponse.get_tables = get_tables
    GlueResponse.parameters = property(_in_lower_case)
    for name in ("create_table", "delete_table", "create_database"):
        setattr(GlueBackend, name, locked(getattr(GlueBackend, name)))


def _in_lower_case(self: Any) -> dict[str, Any]:
    """What a request gives, with names as Glue reads them."""
    given: dict[str, Any] = json.loads(self.body)
    for holder in (given, given.get("TableInput"), given.get("DatabaseInput")):
        for name in ("DatabaseName", "Name"):
            if isinstance(holder, dict) and isinstance(holder.get(name), str):
                holder[name] = holder[name].lower()
    return given
