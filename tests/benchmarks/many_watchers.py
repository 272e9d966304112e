"""Several watchers keep one project fresh while writers commit and watchers are killed -> whether every target lag and every snapshot is right.

    python tests/benchmarks/many_watchers.py --catalog postgres --minutes 10      # or rest, sqlite

Every so often a watcher is killed (SIGKILL) and started again. Afterwards:

* each snapshot that ever became current is compared with the query at the snapshots that it records, as by many_runs.py;
* from the times of all commits follows how far each MV was ever behind. Where that is more than its target lag, a watcher must have said so.
  They look about once a second, so a target that is exceeded for less than `--unnoticed` seconds may go unreported;
* each watcher ends with exit code 0 on SIGTERM, and one more `mvbuild run` succeeds.
"""

from __future__ import annotations

import argparse
import json
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

sys.path[:0] = [str(Path(__file__).resolve().parent), str(Path(__file__).resolve().parents[1])]

import pyarrow as pa  # noqa: E402
from many_runs import QUERIES, ROWS, project_in, served, write, wrong  # noqa: E402
from pyiceberg.catalog import Catalog, load_catalog  # noqa: E402

from spark.projects import ENVIRONMENT, command_line  # noqa: E402

LAGS = {"by_group": "downstream", "above": "60s", "joined": "45s"}
TARGET_MS = {"above": 60_000, "joined": 45_000}
"""Those of `LAGS` that are durations."""
STOP_SECONDS = 120


@dataclass
class Watching:
    """One watcher, started again after it was killed."""

    project: Path
    log: Path
    kills: int = 0
    processes: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def start(self) -> None:
        command = [*command_line(self.project, "watch"), "--log-format", "json", "--target-path", str(self.log.with_suffix(""))]
        with self.log.open("ab") as output:
            self.processes.append(subprocess.Popen(command, stdout=output, stderr=output, env=ENVIRONMENT))

    def kill(self) -> None:
        self.processes[-1].kill()
        self.processes[-1].wait()
        self.kills += 1

    def end(self) -> int:
        """The exit code after SIGTERM."""
        process = self.processes[-1]
        process.send_signal(signal.SIGTERM)
        try:
            return process.wait(timeout=STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            return process.wait()

    def events(self) -> Iterator[dict[str, Any]]:
        for line in self.log.read_text(encoding="utf-8", errors="replace").splitlines():
            if line.startswith('{"at_ms"'):
                yield json.loads(line)


@dataclass(frozen=True, kw_only=True)
class Behind:
    """An MV was behind from the oldest change that it had not seen to its next refresh."""

    name: str
    since_ms: int
    until_ms: int

    @property
    def late_from_ms(self) -> int:
        return self.since_ms + TARGET_MS[self.name]

    @property
    def over_ms(self) -> int:
        """By how much the target lag was exceeded."""
        return self.until_ms - self.late_from_ms


def behind(properties: Mapping[str, str], end_ms: int) -> list[Behind]:
    """Every time between two refreshes of an MV with a target lag, from the commits of all tables."""
    catalog = load_catalog("lake", **properties)
    tables = {name: catalog.load_table(f"raw.{name}").metadata for name in ("a", "b")}
    places = {name: {s.snapshot_id: at for at, s in enumerate(_in_order(m))} for name, m in tables.items()}
    times = {name: [s.timestamp_ms for s in _in_order(m)] for name, m in tables.items()}
    pins = {mv: _pins(catalog.load_table(f"main.{mv}__storage").metadata) for mv in QUERIES}
    of_parent = {id: base for _, id, base in pins["by_group"]}
    found = []
    for name in TARGET_MS:
        refreshes = pins[name]
        for (_, _, read), until in zip(refreshes, [*(at for at, *_ in refreshes[1:]), end_ms], strict=True):
            base: dict[str, int] = {}
            for source, id in read.items():
                base |= of_parent[id] if source == "by_group__storage" else {source: id}
            unseen = [times[t][at] for t, pin in base.items() if (at := places[t][pin] + 1) < len(times[t])]
            if unseen and min(unseen) < until:
                found.append(Behind(name=name, since_ms=min(unseen), until_ms=until))
    return found


def _in_order(metadata: Any) -> list[Any]:
    return sorted(metadata.snapshots, key=lambda s: s.sequence_number)


def _pins(metadata: Any) -> list[tuple[int, int, dict[str, int]]]:
    """(time of publishing, snapshot, what it read) of each refresh."""
    by_id = {s.snapshot_id: s for s in metadata.snapshots}
    states = [(e.timestamp_ms, e.snapshot_id, json.loads(by_id[e.snapshot_id].summary["refresh-state"])) for e in metadata.snapshot_log]
    return [(at, id, {s["name"]: s["snapshot-id"] for s in state["source-states"]}) for at, id, state in states]


def unreported(seen: Sequence[Behind], watchers: Sequence[Watching], unnoticed_ms: int) -> list[str]:
    """The violations of target lags that no watcher reported."""
    reported = [one for watcher in watchers for one in late_times(list(watcher.events()))]
    found = []
    for one in seen:
        is_reported = any(name == one.name and since <= one.until_ms and until >= one.late_from_ms for name, since, until in reported)
        if one.over_ms > unnoticed_ms and not is_reported:
            over = f"{one.name} was {one.over_ms / 1000:.1f} s over its target lag at {one.until_ms}"
            found.append(f"{over}, and no watcher reported it")
    return found


def late_times(events: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, int, int]]:
    """MV, from when, and until when one watcher called it late. A watcher that was started again has forgotten it."""
    since: dict[str, int] = {}
    for event in events:
        name, at = str(event.get("name", "")).rpartition(".")[2], int(event["at_ms"])
        if event["event"] == "late":
            since.setdefault(name, at)
        elif event["event"] == "in-time" and name in since:
            yield name, since.pop(name), at
        elif event["event"] == "started":
            yield from ((late, begin, at) for late, begin in since.items())
            since.clear()
    yield from ((late, begin, sys.maxsize) for late, begin in since.items())


def watched(catalog: Catalog, project: Path, root: Path, chosen: argparse.Namespace) -> tuple[list[Watching], list[str], int]:
    """The watchers after the time is over, what went wrong with their processes, and the time at which they were stopped."""
    chance, end = random.Random(chosen.seed), time.monotonic() + chosen.minutes * 60
    watchers = [Watching(project=project, log=root / f"watch-{at}.log") for at in range(chosen.watchers)]
    for one in watchers:
        one.start()
    problems = []
    next_kill, is_built = end, False
    while (now := time.monotonic()) < end:
        time.sleep(min(0.5, end - now))
        for at, one in enumerate(watchers):
            if (code := one.processes[-1].poll()) is not None:
                problems.append(f"watcher {at} ended by itself with exit code {code}")
                one.start()
        if not is_built and all(catalog.table_exists(f"main.{name}__storage") for name in QUERIES):
            # A watcher that is killed while it starts Spark, again and again, never builds anything.
            is_built, next_kill = True, time.monotonic() + chosen.kill_every
        if time.monotonic() >= next_kill and end - time.monotonic() > chosen.kill_every / 2:
            one = chance.choice(watchers)
            one.kill()
            one.start()
            next_kill += chosen.kill_every
    stopped_ms = round(time.time() * 1000)
    problems += [] if is_built else ["the MVs were not built in time: give it more minutes"]
    problems += [f"watcher {at} ended with exit code {code}" for at, one in enumerate(watchers) if (code := one.end())]
    return watchers, problems, stopped_ms


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--catalog", choices=("postgres", "rest", "sqlite"), default="postgres")
    parser.add_argument("--watchers", type=int, default=2)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--kill-every", type=float, default=60, help="seconds between two kills")
    parser.add_argument("--unnoticed", type=float, default=5, help="seconds")
    parser.add_argument("--seed", type=int, default=1)
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="mvbuild-watchers-") as folder, ExitStack() as servers:
        root = Path(folder)
        properties = servers.enter_context(served(chosen.catalog, root))
        catalog = load_catalog("lake", **properties)
        for namespace in ("raw", "main"):
            catalog.create_namespace_if_not_exists(namespace)
        for name in ("raw.a", "raw.b"):
            catalog.create_table(name, ROWS).append(pa.Table.from_pylist([{"id": 1, "grp": 1, "amount": 1}], schema=ROWS))
        project, stop, writes = project_in(root, properties), threading.Event(), []
        lines = [f"  - {{name: {name}, config: {{target_lag: {lag}}}}}" for name, lag in LAGS.items()]
        (project / "models" / "lags.yml").write_text("\n".join(["models:", *lines, ""]), encoding="utf-8")
        writers = [
            threading.Thread(target=lambda n=n, s=s: writes.append(write(properties, n, s, stop))) for s, n in enumerate(("raw.a", "raw.b"))
        ]
        for writer in writers:
            writer.start()
        try:
            watchers, found, stopped_ms = watched(catalog, project, root, chosen)
        finally:
            stop.set()
            for writer in writers:
                writer.join()
        if any("not built" in one for one in found):
            print("\n".join(found))
            return 1
        seen = behind(properties, stopped_ms)
        last = subprocess.run(command_line(project, "run"), env=ENVIRONMENT, check=False, capture_output=True, text=True)
        found += [] if last.returncode == 0 else [f"the last run failed: {last.stdout[-2000:]}{last.stderr[-2000:]}"]
        looked, not_right = wrong(properties)
        found += not_right + unreported(seen, watchers, round(chosen.unnoticed * 1000))
        print(f"{chosen.catalog}: {chosen.watchers} watchers, {chosen.minutes:g} minutes, {sum(writes)} commits of writers")
        _tell(watchers, seen)
        print(f"{looked} refreshes looked at, {len(found)} problems")
        if found:
            print("\n".join(found))
            print("\n".join(one.log.read_text(encoding="utf-8", errors="replace")[-3000:] for one in watchers))
    return 1 if found else 0


def _tell(watchers: Sequence[Watching], seen: Sequence[Behind]) -> None:
    events = Counter(str(event["event"]) for one in watchers for event in one.events())
    print(f"{sum(one.kills for one in watchers)} kills, events: {dict(events.most_common())}")
    for name, target in TARGET_MS.items():
        of = [one for one in seen if one.name == name]
        most = max((one.until_ms - one.since_ms for one in of), default=0)
        over = sum(one.over_ms > 0 for one in of)
        print(f"{name}: target lag {target // 1000} s, most behind {most / 1000:.1f} s, over its target {over} of {len(of)} times")


if __name__ == "__main__":
    sys.exit(main())
