"""processes -> their processor time in seconds, which other programs on the machine change less than elapsed time. For Linux.

.venv/bin/python tests/benchmarks/processor_seconds.py COMMAND ...    # prints elapsed and processor seconds of all that it starts
"""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

_PR_SET_CHILD_SUBREAPER = 36


def of_command(command: Sequence[str], env: Mapping[str, str]) -> tuple[float, float]:
    """Elapsed and processor seconds of a command and everything that it starts."""
    done = subprocess.run([sys.executable, __file__, *command], env=env, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)}\n{done.stdout}\n{done.stderr}")
    elapsed, used = map(float, done.stdout.split())
    return elapsed, used


def of_this_and_children() -> float:
    """Processor seconds so far, of this process and of those that it started."""
    return sum(map(_used, [os.getpid(), *_below(os.getpid())]))


def _used(pid: int) -> float:
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _below(pid: int) -> list[int]:
    found = []
    for task in Path(f"/proc/{pid}/task").glob("*"):
        with suppress(OSError):  # of a thread that ended meanwhile
            for child in map(int, (task / "children").read_text().split()):
                found += [child, *_below(child)]
    return found


def main(command: Sequence[str]) -> int:
    """A JVM that outlives its parent becomes a child of this process."""
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    began = time.monotonic()
    started = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    code, elapsed, used = 0, 0.0, 0.0
    while True:
        try:
            pid, status, usage = os.wait4(-1, 0)
        except ChildProcessError:
            break
        used += usage.ru_utime + usage.ru_stime
        if pid == started.pid:
            code, elapsed = os.waitstatus_to_exitcode(status), time.monotonic() - began
    print(elapsed, used)
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
