"""N fresh MVs in an embedded catalog -> what `mvbuild watch` uses of a core while nothing changes: less than 2 %.

    .venv/bin/python tests/benchmarks/idle_watch.py [--mvs 1000] [--minutes 11] [--format table-properties metadata-file]

The time is counted from the second poll on, and ends after the catalog was read whole at least once more. There is no Spark: `java` is a program that only
records that it was called. CPU is user and system time of the process and of all below it.
"""

from __future__ import annotations

import argparse
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parents[1] / "compiler")]

from fresh_run import Machine, resident_kb, tree  # noqa: E402
from fresh_world import Shape, make  # noqa: E402

MOST = 0.02
"""Of a core."""
START_SECONDS = 600


def cpu_seconds(pid: int) -> float:
    """Of a process and all below it, those that have ended included."""
    ticks = 0
    for one in tree(pid):
        fields = Path(f"/proc/{one}/stat").read_text().rpartition(")")[2].split()
        ticks += sum(map(int, fields[11:15] if one == pid else fields[11:13]))
    return ticks / os.sysconf("SC_CLK_TCK")


def metric(port: int, name: str) -> float:
    """0 while the watcher does not answer yet."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as answer:
            lines = answer.read().decode().splitlines()
    except OSError:
        return 0.0
    return next((float(line.split()[-1]) for line in lines if line.split()[:1] == [name]), 0.0)


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def measured(machine: Machine, root: Path, minutes: float) -> float:
    """The share of a core, after it was printed."""
    port = free_port()
    command = [sys.executable, "-m", "mvbuild.cli.main", "watch", "--project-dir", str(root), "--port", str(port), "--log-format", "json"]
    with (root / "watch.log").open("wb") as log:
        watcher = subprocess.Popen(command, stdout=log, stderr=log, env=machine.environment)
    try:
        began = time.monotonic()
        while metric(port, "mvbuild_polls_total") < 2:
            assert watcher.poll() is None, (root / "watch.log").read_text()
            assert time.monotonic() - began < START_SECONDS, "the second poll did not come"
            time.sleep(0.5)
        started, ready = cpu_seconds(watcher.pid), time.monotonic()
        polls = metric(port, "mvbuild_polls_total")
        time.sleep(minutes * 60)
        used, passed = cpu_seconds(watcher.pid) - started, time.monotonic() - ready
        polls = metric(port, "mvbuild_polls_total") - polls
        memory = sum(map(resident_kb, tree(watcher.pid))) // 1024
    finally:
        watcher.send_signal(signal.SIGTERM)
        code = watcher.wait(60)
    assert code == 0, (root / "watch.log").read_text()
    refreshes = (root / "watch.log").read_text().count('"refreshing"')
    assert refreshes == 0, f"{refreshes} refreshes began, though nothing changed"
    print(
        f"  second poll after {ready - began:.0f} s and {started:.1f} s of CPU; then {passed:.0f} s with {polls:.0f} polls:"
        f" {used:.1f} s of CPU, {100 * used / passed:.2f} % of a core; {memory} MB",
        flush=True,
    )
    return used / passed


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mvs", type=int, default=1_000)
    parser.add_argument("--format", nargs="+", default=["table-properties"])
    parser.add_argument("--minutes", type=float, default=11)
    options = parser.parse_args()
    most = 0.0
    with tempfile.TemporaryDirectory(prefix="mvbuild-idle-") as directory:
        machine = Machine(Path(directory))
        for kind in options.format:
            root = Path(directory) / kind
            make(root, options.mvs, kind, Shape())
            print(f"{options.mvs:,} MVs in the format {kind}", flush=True)
            most = max(most, measured(machine, root, options.minutes))
        assert not machine.told.exists(), "a JVM was started"
    return 0 if most < MOST else 1


if __name__ == "__main__":
    sys.exit(main())
