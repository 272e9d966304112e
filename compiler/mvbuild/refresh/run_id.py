"""run -> the names of its audit branches and scratch tables, and the names that other runs left over.

A name shows which process made it: `mvbuild_<host>_<pid>_<time in ms>_<random>`. If a process of this host no longer runs, what it made is
left over. For another host, only the age is known.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from hashlib import sha256

from mvbuild.dataclass import dataclass

SCRATCH_NAMESPACE = ("mvbuild_scratch",)
ABANDONED_AFTER_MS = 24 * 3600 * 1000
"""For a run on another host: no run takes a day."""

_NAME = re.compile(r"mvbuild_([0-9a-f]{8})_(\d+)_(\d+)_([0-9a-f]+)(?:_\d+)?\Z")


@dataclass(frozen=True, slots=True, kw_only=True)
class RunId:
    """One run of mvbuild, unique in the world."""

    host: str
    pid: int
    started_ms: int
    nonce: str

    @property
    def branch(self) -> str:
        """The audit branch of every storage table that this run refreshes."""
        return f"mvbuild_{sha256(self.host.encode()).hexdigest()[:8]}_{self.pid}_{self.started_ms}_{self.nonce}"

    def scratch(self, number: int) -> str:
        """The name of a scratch table in SCRATCH_NAMESPACE."""
        return f"{self.branch}_{number}"


def left_over(names: Iterable[str], run: RunId, is_alive: Callable[[int], bool]) -> tuple[str, ...]:
    """The names that a dead run left. Other names are never included."""
    return tuple(name for name in names if _is_left_over(name, run, is_alive))


def started_ms(name: str) -> int | None:
    """The start time of the run that made a branch or scratch table; None if the name is not mvbuild's."""
    match = _NAME.match(name)
    return int(match[3]) if match else None


def _is_left_over(name: str, run: RunId, is_alive: Callable[[int], bool]) -> bool:
    match = _NAME.match(name)
    if match is None or name.startswith(run.branch):
        return False
    host, pid, started = match[1], int(match[2]), int(match[3])
    if host == run.branch.split("_")[1]:
        # The same process started both: an earlier run of a notebook or an orchestrator, which did not clean up only if it died with its
        # thread. A reused process id looks the same, and is found by age.
        return not is_alive(pid) or started < run.started_ms - ABANDONED_AFTER_MS
    return started < run.started_ms - ABANDONED_AFTER_MS
