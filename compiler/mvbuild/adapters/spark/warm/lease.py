"""target -> Lease: a session on a warm server, which is started if there is none; or None, and why the command starts its own Spark.

Nothing here may keep a command from its work: every wait is bounded, and a server that does not answer is replaced or left alone.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from importlib.util import find_spec
from typing import TYPE_CHECKING

from mvbuild.adapters.spark.releases import installed_release
from mvbuild.adapters.spark.warm import server
from mvbuild.adapters.spark.warm.client import import_client, open_session
from mvbuild.adapters.spark.warm.folder import Folder, NotPrivate, private_home, siblings
from mvbuild.adapters.spark.warm.identity import identity, machine
from mvbuild.dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from datetime import timedelta
    from pathlib import Path

    from pyspark.sql import SparkSession

    from mvbuild.adapters.spark.launch import Launch
    from mvbuild.adapters.spark.warm.folder import Held, Record
    from mvbuild.adapters.spark.warm.identity import Identity

_LEASE_SECONDS = 5.0
"""While a server removes what a killed command left, it cannot be leased."""
_SPARK = "4.1"
"""The only version with which it was tried that the server asks for its token."""
_ANSWER_SECONDS = 10.0
"""A server that is busy with the query of another command answers within a second."""
_START_SECONDS = 120.0
_END_SECONDS = 10.0
_PAUSE = 0.05
_CLIENT = ("grpc", "grpc_status", "google.rpc", "pandas", "zstandard")
"""What PySpark imports for Spark Connect, and does not require by itself."""
_OUT_OF_MEMORY = "Terminating due to java.lang.OutOfMemoryError"
_TAIL = 20_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """For which project and target an engine is kept, and for how long."""

    keep: timedelta
    project: str
    target: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Lease:
    """The use of a warm server by this command, in a session of its own."""

    session: SparkSession
    folder: Folder
    record: Record
    held: Held

    def release(self) -> None:
        """After the session was closed."""
        self.folder.touch()
        self.held.release()

    def why_lost(self) -> str:
        """Why the server ended, if it did."""
        end = time.monotonic() + _LEASE_SECONDS
        while self.folder.is_alive():
            if time.monotonic() >= end:
                return ""
            time.sleep(_PAUSE)
        if _OUT_OF_MEMORY in _last_lines(self.folder.log):
            return f"the warm engine ran out of memory: set spark.driver.memory in the target to give it more than {self.record.memory}"
        return f"the warm engine ended (log: {self.folder.log}); run the command again, and it starts another"


def lease(launch: Launch, wanted: Wanted, *, env: Mapping[str, str], say: Callable[[str], None]) -> Lease | None:
    """A session on the server for this launch. None if there can be none; `say` gets the reason."""
    if (version := installed_release().spark) != _SPARK:
        say(f"no warm engine (it needs Spark {_SPARK}, and this is {version})")
        return None
    lacking = [name for name in _CLIENT if not _is_installed(name)]
    if lacking or os.name != "posix":
        reason = f"{', '.join(lacking)} missing: pip install 'pyspark[connect]'" if lacking else "it needs Linux or macOS"
        say(f"no warm engine ({reason})")
        return None
    try:
        found = identity(launch, env, wanted.keep)
        folder = Folder(private_home(env) / found.fingerprint)
        folder.make()
    except NotPrivate as exc:
        say(f"no warm engine ({exc})")
        return None
    held = folder.lease(_LEASE_SECONDS)
    if held is None and _kill(folder):
        # Its server kept both locks: it hung.
        held = folder.lease(_LEASE_SECONDS)
    if held is None:
        say(f"no warm engine ({folder.path} cannot be locked)")
        return None
    got = None
    try:
        got = _leased(folder, held, _Start(launch, found, wanted), say)
        return got
    finally:
        if got is None:
            held.release()


def _is_installed(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:
        return False  # nor is the package that it is in


def _leased(folder: Folder, held: Held, start: _Start, say: Callable[[str], None]) -> Lease | None:
    record = folder.record() if folder.is_alive() else None
    if record is not None:
        session = open_session(record, _ANSWER_SECONDS)
        if session is not None:
            return Lease(session=session, folder=folder, record=record, held=held)
        if not _ended(folder, held):
            say("the warm engine does not answer, and another command uses it: starting Spark for this command")
            return None
    say("starting Spark, and keeping it warm")
    _retire_others(folder, start.wanted)
    record = start.record(folder)
    session = open_session(record, _ANSWER_SECONDS) if record is not None else None
    if record is None or session is None:
        _ended(folder, held)
        say(f"the warm engine did not start (log: {folder.log}): starting Spark for this command")
        return None
    return Lease(session=session, folder=folder, record=record, held=held)


@dataclass(frozen=True, slots=True)
class _Start:
    """The start of a server."""

    launch: Launch
    identity: Identity
    wanted: Wanted

    def record(self, folder: Folder) -> Record | None:
        """The record of the server of this folder once it is ready; another command may have started it. None if it does not start."""
        end = time.monotonic() + _START_SECONDS
        process = None
        while time.monotonic() < end:
            is_alive = folder.is_alive()
            record = folder.record() if is_alive else None
            if record is not None:
                return record
            if process is None and not is_alive:
                folder.clear()
                process = self._process(folder)
                import_client()
            elif process is not None and process.poll() is not None and not is_alive:
                return None
            time.sleep(_PAUSE)
        return None

    def _process(self, folder: Folder) -> subprocess.Popen[bytes]:
        """Settings may be secrets, so they are not on the command line."""
        order = {
            "path": sys.path,
            "folder": str(folder.path),
            "launch": server.order(self.launch),
            "keep_seconds": self.wanted.keep.total_seconds(),
            "project": self.wanted.project,
            "target": self.wanted.target,
            "machine": machine(),
        }
        log = os.open(folder.log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND, 0o600)
        try:
            process = subprocess.Popen(
                [sys.executable, "-I", "-c", server.ENTRY],
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                env=dict(self.identity.environment),
                start_new_session=True,
            )
        finally:
            os.close(log)
        assert process.stdin is not None
        with suppress(BrokenPipeError), process.stdin:
            process.stdin.write(json.dumps(order).encode())
        return process


def _ended(folder: Folder, held: Held) -> bool:
    """End a server that does not answer, unless another command uses it."""
    if not held.make_exclusive():
        return False
    try:
        return _kill(folder)
    finally:
        held.make_shared()


def _kill(folder: Folder) -> bool:
    """Whether the server, which may hang, has ended. Its process group has the JVM too."""
    pid = folder.owner()
    if pid is not None:
        with suppress(OSError):
            os.killpg(pid, signal.SIGKILL)
    end = time.monotonic() + _END_SECONDS
    while folder.is_alive():
        if time.monotonic() >= end:
            return False
        time.sleep(_PAUSE)
    return True


def _retire_others(folder: Folder, wanted: Wanted) -> None:
    """What this project used before, with other settings, is not needed again. What is dead is removed."""
    for other in siblings(folder):
        record = other.record()
        if not other.is_alive():
            other.remove()
        elif record is not None and (record.project, record.target) == (wanted.project, wanted.target):
            other.retire()


def _last_lines(log: Path) -> str:
    with suppress(OSError), log.open("rb") as file:
        file.seek(max(0, log.stat().st_size - _TAIL))
        return file.read().decode(errors="replace")
    return ""
