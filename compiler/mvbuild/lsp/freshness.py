"""a project -> the freshness of its MVs, which `mvbuild status` reads from the catalog in a separate process.

A catalog may be slow or never answer. So nothing waits for it: the last result is shown, and a process that takes too long is ended.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import field
from pathlib import Path
from typing import Any

from mvbuild.dataclass import dataclass
from mvbuild.lsp.check import CheckOptions
from mvbuild.project.setting import EMPTY
from mvbuild.project.targets import embedded_catalog

LIMIT = 30.0
"""The catalog's time limit in seconds."""
MAX_AGE_SECONDS = 60.0
"""The age in seconds after which a result is requested again when it is shown."""


@dataclass(slots=True, kw_only=True)
class Freshness:
    """The latest known result. `problem`: why there is no newer one."""

    root: Path
    choices: CheckOptions
    say: Callable[[str], None] = lambda _: None
    """Receives the outcome of each request, for the editor's log."""
    states: Mapping[str, Mapping[str, Any]] = field(default_factory=lambda: EMPTY)
    problem: str = ""
    asked_at: float | None = None
    answered_at: float | None = None
    _task: asyncio.Task[None] | None = None

    def wanted(self, *, embedded: bool) -> None:
        """Start a request in the background, unless there is a recent or running one. Must be called in an event loop."""
        now = time.monotonic()
        is_busy = self._task is not None and not self._task.done()
        if not self.choices.freshness or is_busy or (self.asked_at is not None and now - self.asked_at < MAX_AGE_SECONDS):
            return
        if embedded and not Path(embedded_catalog(self.root)["uri"].removeprefix("sqlite:///")).exists():
            self.problem = "nothing has been built yet"
            return
        self.asked_at = now
        self._task = asyncio.get_running_loop().create_task(self._ask())

    def sentence(self, node: str) -> str:
        """One line of Markdown about an MV; empty if the catalog must not be read."""
        if not self.choices.freshness:
            return ""
        found = self.states.get(node)
        if found is None:
            reason = self.problem or ("it is not in the catalog" if self.answered_at is not None else "asking the catalog")
            return f"**freshness** unknown: {reason}"
        reasons = "; ".join(str(reason.get("message", "")) for reason in found.get("reasons") or ())
        refreshed = f", refreshed {found['refreshed_at']}" if found.get("refreshed_at") else ""
        age = f" (as of {time.monotonic() - self.answered_at:.0f} s ago)" if self.answered_at is not None else ""
        return f"**{found.get('state')}**{refreshed}{f': {reasons}' if reasons else ''}{age}"

    async def _ask(self) -> None:
        command = [sys.executable, "-m", "mvbuild.cli.main", "status", "--output", "json", "--project-dir", str(self.root)]
        command += ["--target", self.choices.target] if self.choices.target else []
        command += ["--vars", json.dumps(dict(self.choices.vars))] if self.choices.vars else []
        pipe, nothing = asyncio.subprocess.PIPE, asyncio.subprocess.DEVNULL
        process = await asyncio.create_subprocess_exec(*command, stdin=nothing, stdout=pipe, stderr=pipe)
        try:
            out, errors = await asyncio.wait_for(process.communicate(), LIMIT)
            self._answered(process.returncode, out, errors.decode("utf-8", "replace"))
        except asyncio.TimeoutError:
            self.problem = f"the catalog did not answer in {LIMIT:.0f} s"
        finally:
            if process.returncode is None:
                with suppress(ProcessLookupError):
                    process.kill()
        self.say(f"freshness of {self.root}: {self.problem or f'{len(self.states)} MVs'}")

    def _answered(self, code: int | None, out: bytes, errors: str) -> None:
        if code != 0:
            first = next((line for line in errors.splitlines() if line.startswith("error[")), "the catalog cannot be reached")
            self.problem = first.partition(": ")[2] or first
            return
        try:
            self.states = {found["unique_id"]: found for found in json.loads(out)}
        except (ValueError, KeyError, TypeError):
            self.problem = "the output of `mvbuild status` cannot be parsed"
            return
        self.problem, self.answered_at = "", time.monotonic()
