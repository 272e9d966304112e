"""environment -> the warm engines of this user, and their end."""

from __future__ import annotations

import os
import signal
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Literal

from mvbuild.adapters.spark.warm.folder import folders
from mvbuild.adapters.spark.warm.identity import machine
from mvbuild.dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mvbuild.adapters.spark.warm.folder import Folder, Record

_STOP_SECONDS = 40.0
_PAUSE = 0.05
_LOOK_SECONDS = 1.0
"""A server looks now and then whether it is used, and cleans up after a command: meanwhile it only seems to be in use."""


State = Literal["idle", "in use", "starting", "ending"]


@dataclass(frozen=True, slots=True, kw_only=True)
class WarmEngine:
    """A server that is running. `record` is None while it starts. `ending`: it ends after the command that uses it."""

    pid: int
    state: State
    record: Record | None
    idle_seconds: float


def warm_engines(env: Mapping[str, str]) -> list[WarmEngine]:
    """Those of this machine."""
    found = []
    for folder in folders(env) if os.name == "posix" else ():
        pid = folder.owner()
        if pid is not None:
            found.append(_described(folder, pid))
    return [engine for engine in found if engine.record is None or engine.record.machine == machine()]


def _described(folder: Folder, pid: int) -> WarmEngine:
    record = folder.record()
    free = folder.unused(_LOOK_SECONDS)
    if free is not None:
        free.release()
    idle = max(0.0, time.time() - folder.used() / 1e9) if free is not None else 0.0
    state: State = "in use" if free is None else "idle"
    if record is None:
        record = folder.retired()
        state = "starting" if record is None else "ending"
    return WarmEngine(pid=pid, state=state, record=record, idle_seconds=idle)


def stop_warm_engines(env: Mapping[str, str], *, force: bool) -> tuple[list[WarmEngine], list[WarmEngine]]:
    """End those that no command uses, with `force` all: what has ended, and what will end when the command that uses it does."""
    ended, later = [], []
    for folder in folders(env) if os.name == "posix" else ():
        pid = folder.owner()
        if pid is None:
            folder.remove()
            continue
        engine = _described(folder, pid)
        if engine.record is not None and engine.record.machine != machine():
            continue
        folder.retire()
        if engine.state in ("in use", "ending") and not force:
            later.append(engine)
            continue
        with suppress(OSError):
            os.kill(pid, signal.SIGTERM)
        _wait(folder, pid)
        folder.remove()
        ended.append(engine)
    return ended, later


def _wait(folder: Folder, pid: int) -> None:
    """Until it has ended; one that hangs is killed."""
    end = time.monotonic() + _STOP_SECONDS
    while folder.is_alive():
        if time.monotonic() >= end:
            with suppress(OSError):
                os.killpg(pid, signal.SIGKILL)
            end += _STOP_SECONDS
        time.sleep(_PAUSE)
