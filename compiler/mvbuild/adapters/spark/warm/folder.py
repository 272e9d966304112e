"""environment -> the folders of this user's warm engines: of each, its record, its two locks and its log.

`lock` is locked by the server while it lives, and contains its process id. `lease` is locked, shared, by every command that uses the
server. `record.json` has the port and the token. Only this user can read the folder.
"""

from __future__ import annotations

import json
import os
import shutil
import stat
import time
from contextlib import contextmanager, suppress
from dataclasses import asdict, field
from pathlib import Path
from typing import TYPE_CHECKING

from mvbuild.adapters.spark.jars import cache_dir
from mvbuild.dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_PAUSE = 0.02


class NotPrivate(Exception):
    """The folder cannot be made, or others can read it. The text says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """A running server, as it describes itself."""

    pid: int
    """The process that owns the JVM; the JVM is in its process group."""
    port: int
    token: str = field(repr=False)
    started_ms: int
    keep_seconds: float
    memory: str
    """The limit of its heap."""
    project: str
    """The project for which it was started."""
    target: str
    machine: str
    """See `identity.machine`: a folder may be shared by machines."""


@dataclass(frozen=True, slots=True)
class Folder:
    """The folder of one engine. Its name is the fingerprint of everything that the engine was started with."""

    path: Path

    @property
    def log(self) -> Path:
        return self.path / "spark.log"

    @property
    def _record(self) -> Path:
        return self.path / "record.json"

    @property
    def _retired(self) -> Path:
        return self.path / "retired.json"

    def make(self) -> None:
        with _private(self.path):
            self.path.mkdir(mode=0o700, exist_ok=True)

    def record(self) -> Record | None:
        """None if there is none, or if it cannot be read: then another server replaces it."""
        return _read(self._record)

    def write(self, record: Record) -> None:
        partial = self.path / "record.partial"
        partial.touch(mode=0o600)
        partial.write_text(json.dumps(asdict(record)), encoding="utf-8")
        partial.replace(self._record)

    def retire(self) -> None:
        """Without its record, a server ends as soon as no command uses it."""
        with suppress(OSError):
            self._record.replace(self._retired)

    def retired(self) -> Record | None:
        """The record that a server had before `retire`."""
        return _read(self._retired)

    def clear(self) -> None:
        """Remove the records of a dead server."""
        for path in (self._record, self._retired):
            path.unlink(missing_ok=True)

    def is_alive(self) -> bool:
        """Whether a server has its lock."""
        held = Held.of(self.path / "lock", shared=True)
        if held is not None:
            held.release()
        return held is None and self.path.exists()

    def owner(self) -> int | None:
        """The process id of the server, if it is alive."""
        if not self.is_alive():
            return None
        try:
            return int((self.path / "lock").read_text(encoding="ascii"))
        except (OSError, ValueError):
            return None

    def own(self, seconds: float) -> Held | None:
        """The lock of a server, for this process. Others look at the lock now and then, so one attempt is not enough."""
        held = Held.of(self.path / "lock", wait=seconds)
        if held is not None:
            os.truncate(held.descriptor, 0)
            os.write(held.descriptor, str(os.getpid()).encode("ascii"))
        return held

    def lease(self, seconds: float) -> Held | None:
        """The use of the server by a command: the server does not end while there is one."""
        held = Held.of(self.path / "lease", shared=True, wait=seconds)
        if held is not None:
            self.touch()
        return held

    def touch(self) -> None:
        """Note that the server is used now."""
        with suppress(OSError):
            os.utime(self.path / "lease")

    def used(self) -> int:
        """A number that is another one after each use."""
        try:
            return (self.path / "lease").stat().st_mtime_ns
        except OSError:
            return 0

    def unused(self, seconds: float = 0.0) -> Held | None:
        """If no command uses the server: until this is released, none can begin to."""
        return Held.of(self.path / "lease", wait=seconds)

    def remove(self) -> None:
        """Remove what a dead server left. Does nothing if it is alive, or if a command is about to start it."""
        free = self.unused()
        held = Held.of(self.path / "lock") if free is not None else None
        if held is not None:
            shutil.rmtree(self.path, ignore_errors=True)
        for each in (free, held):
            if each is not None:
                each.release()


@dataclass(frozen=True, slots=True)
class Held:
    """A lock that this process has, until `release` or its end, however it ends."""

    descriptor: int

    @staticmethod
    def of(path: Path, *, shared: bool = False, wait: float = 0.0) -> Held | None:
        """None if others have it for `wait` seconds, or if it cannot be made."""
        import fcntl

        try:
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError:
            return None
        end = time.monotonic() + wait
        while True:
            try:
                fcntl.flock(descriptor, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
            except OSError:
                if time.monotonic() >= end:
                    os.close(descriptor)
                    return None
                time.sleep(_PAUSE)
            else:
                return Held(descriptor)

    def make_exclusive(self) -> bool:
        """Whether no other process shares it; if one does, this one still does too."""
        import fcntl

        try:
            fcntl.flock(self.descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            self.make_shared()
            return False
        return True

    def make_shared(self) -> None:
        import fcntl

        fcntl.flock(self.descriptor, fcntl.LOCK_SH)

    def release(self) -> None:
        with suppress(OSError):
            os.close(self.descriptor)


def _read(path: Path) -> Record | None:
    try:
        return Record(**json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        return None


@contextmanager
def _private(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as exc:
        raise NotPrivate(f"{path} cannot be made: {exc.strerror or exc}") from exc


def home(env: Mapping[str, str]) -> Path:
    """The folder of this user's engines. The cache may be shared by users, so its name has the user's number."""
    return cache_dir(env) / f"engines-{os.getuid()}"


def private_home(env: Mapping[str, str]) -> Path:
    """`home`, made if it is missing. Raises NotPrivate."""
    path = home(env)
    with _private(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.mkdir(mode=0o700, exist_ok=True)
        found = path.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or found.st_mode & 0o077:
        raise NotPrivate(f"{path} must be your own directory, readable only by you (mode 700)")
    return path


def folders(env: Mapping[str, str]) -> list[Folder]:
    """All of this user's."""
    path = home(env)
    return [Folder(each) for each in sorted(path.iterdir()) if each.is_dir()] if path.is_dir() else []


def siblings(folder: Folder) -> list[Folder]:
    """The other folders of the same user."""
    return [Folder(each) for each in folder.path.parent.iterdir() if each.is_dir() and each != folder.path]
