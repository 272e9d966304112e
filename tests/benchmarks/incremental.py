"""TPC-H at a scale, a small change -> how much faster each query is refreshed than in full, and how often the choice by cost was right.

    .venv/bin/python tests/benchmarks/incremental.py --scale 5 --kind inserts --fraction 0.001
    .venv/bin/python tests/benchmarks/incremental.py --scale 5 --kind deletes updates --mode copy-on-write --clustered

In one session, after changes that are not measured, so that all code is warm: rounds of three changes each, after which every query is
refreshed by `auto`, in full, and, where `auto` was full, by `incremental`, so that it is known what the other choice would have cost; each in a
pass of its own, for a statement that was just made is always faster the second time, and in each round another one is first. The report has medians. Bytes are those of the files that were expected to be read,
of those that were written, and of all files of the auxiliary views.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import geometric_mean, median
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent), str(HERE.parent.parent / "compiler")]

from refreshed import COMPLETE, how  # noqa: E402
from tpch import QUERIES, models  # noqa: E402
from tpch_data import tables_of_tpch  # noqa: E402
from warm_spark import warm_spark  # noqa: E402

from spark.tpch_streams import RefreshStreams  # noqa: E402


@dataclass
class Measured:
    """Seconds of one query's refreshes."""

    query: str
    strategy: str = ""
    reason: str = ""
    autos: list[float] = field(default_factory=list)
    fulls: list[float] = field(default_factory=list)
    incrementals: list[float] = field(default_factory=list)
    expected_bytes: int | None = None
    full_bytes: int | None = None
    rows_changed: int | None = None
    bytes_written: int | None = None
    auxiliary_bytes: int = 0

    @property
    def auto(self) -> float:
        return median(self.autos)

    @property
    def full(self) -> float:
        return median(self.fulls)

    @property
    def incremental(self) -> float | None:
        return median(self.incrementals) if self.incrementals else None

    @property
    def ratio(self) -> float:
        return self.full / self.auto if self.auto else 0.0

    @property
    def was_right(self) -> bool | None:
        """Whether `auto` took what is faster, give or take a tenth. Where `incremental` keeps no auxiliary views and `auto` does, what `auto`
        took is what counts."""
        if self.strategy not in (*COMPLETE, "reused"):
            return self.auto <= self.full * 1.1
        return None if self.incremental is None else self.full <= self.incremental * 1.1


def timed(project: Any, name: str, **options: Any) -> tuple[float, Any]:
    began = time.monotonic()
    result = project.run(name, threads=1, **options)
    seconds = time.monotonic() - began
    (found,) = [r for r in result.results if r.node.endswith(f".{name}")]
    if found.status == "error":
        print(f"    {name}: {found.message[:400]}", flush=True)
    return seconds, found


def note(one: Measured, seconds: float, found: Any) -> None:
    details = found.details
    one.autos.append(seconds)
    one.strategy, _, reason = how(found).partition(" (")
    one.reason = reason.removesuffix(")")
    one.expected_bytes, one.full_bytes = details.get("expected_bytes"), details.get("full_bytes")
    one.rows_changed = (details.get("rows_added") or 0) + (details.get("rows_removed") or 0)
    one.bytes_written = details.get("bytes_written")


def auxiliary_bytes(project: Any, query: str) -> int:
    """Of all files of the query's auxiliary views, as they are now."""
    names = [name for name in project.catalog.list_tables("main") if name[1].startswith(f"{query}__auxiliary_")]
    found = (project.catalog.load_table(name).current_snapshot() for name in names)
    return sum(int(snapshot.summary.additional_properties["total-files-size"]) for snapshot in found if snapshot)


def with_policy(project: Any, policy: str) -> None:
    project.write({"mvbuild.yml": f"name: tpch\nmodels: {{+refresh_policy: {policy}}}\n"})


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scale", type=float, default=1)
    parser.add_argument("--kind", nargs="+", default=["inserts"], choices=("inserts", "deletes", "updates"), help="one after the other")
    parser.add_argument("--fraction", type=float, default=0.001)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--mode", default="merge-on-read")
    parser.add_argument("--format-version", type=int, default=2)
    parser.add_argument("--clustered", action="store_true", help="delete and update rows of neighbouring keys")
    parser.add_argument("--only", default="")
    parser.add_argument("--set", default="b", choices=("a", "b"))
    parser.add_argument("--json", default="", help="a directory for a file of each kind")
    parser.add_argument("--report", default="", help="a Markdown file to append the table to")
    options = parser.parse_args()
    only = set(filter(None, options.only.split(",")))
    if unknown := sorted(only - QUERIES.keys()):
        parser.error(f"no such query: {', '.join(unknown)}; they are q01 to q22")
    with warm_spark(Path(f"/tmp/mvbuild-speed-{options.mode}-{options.format_version}")) as spark:
        project = tables_of_tpch(spark, options.scale, format_version=options.format_version, mode=options.mode, files={})
        for left in (project.root / "models").glob("*.sql"):
            left.unlink()
        project.write(models(options.set, "auto", only))
        names = sorted(p.stem for p in (project.root / "models").glob("*.sql"))
        began = time.monotonic()
        first = project.run(threads=2)
        assert first.ok, [d.message for r in first.results for d in r.diagnostics]
        print(f"{len(names)} MVs built in {time.monotonic() - began:.0f} s", flush=True)
        changes = Changes(project, RefreshStreams(scale=options.scale, seed=1), options)
        for number, kind in enumerate(options.kind):
            warm_up(project, names, changes, kind, is_first=number == 0)
            report(play(project, names, changes, kind, options.rounds), kind, options)
    return 0


@dataclass
class Changes:
    """Makes one change after the other, no two with the same rows."""

    project: Any
    streams: RefreshStreams
    options: argparse.Namespace
    made: int = 0

    def make(self, kind: str) -> None:
        how = {} if kind == "inserts" else {"clustered": self.options.clustered}
        for statement in getattr(self.streams, kind)(self.made, self.options.fraction, **how):
            self.project.spark.sql(statement)
        self.made += 1


def warm_up(project: Any, names: list[str], changes: Changes, kind: str, *, is_first: bool) -> None:
    """Once in full, as `auto` chooses, which makes auxiliary views, and once more from these: what Spark generates code for and the JVM
    compiles is warm in all. `auto` last, and twice: an MV that was refreshed in full, without its views, is written from them completely
    next time."""
    with_policy(project, "auto")
    if is_first:
        changes.make(kind)
        for name in names:
            timed(project, name, full_refresh=True)
    for at in range(3 if is_first else 2):
        changes.make(kind)
        began = time.monotonic()
        for name in names:
            seconds, found = timed(project, name)
            print(f"  warming up for {kind}, {at + 1}: {name} {how(found)} {seconds:.2f} s", flush=True)
        print(f"warming up for {kind}, {at + 1}: {time.monotonic() - began:.0f} s", flush=True)


def play(project: Any, names: list[str], changes: Changes, kind: str, rounds: int) -> list[Measured]:
    measured = {name: Measured(query=name) for name in names}

    def auto(one: Measured) -> None:
        note(one, *timed(project, one.query))

    def full(one: Measured) -> None:
        one.fulls.append(timed(project, one.query, full_refresh=True)[0])

    def incremental(one: Measured) -> None:
        """What the other choice would have cost."""
        if one.strategy in COMPLETE:
            seconds, found = timed(project, one.query)
            if how(found).split(" ")[0] not in COMPLETE:
                one.incrementals.append(seconds)

    for round_ in range(rounds):
        # Another one first in each round: it reads what was just written.
        first = [("auto", auto), ("auto", full)][:: 1 if round_ % 2 == 0 else -1]
        for policy, refreshed in (*first, ("incremental", incremental)):
            changes.make(kind)
            with_policy(project, policy)
            for one in measured.values():
                refreshed(one)
    for one in measured.values():
        one.auxiliary_bytes = auxiliary_bytes(project, one.query)
    return list(measured.values())


def report(measured: list[Measured], kind: str, options: argparse.Namespace) -> None:
    print(
        f"\n{'query':8} {'strategy':14} {'reason':18} {'auto s':>7} {'full s':>7} {'ratio':>6} {'incr s':>7} right  MB of MB, written, auxiliary"
    )
    for m in measured:
        inc = f"{m.incremental:7.2f}" if m.incremental is not None else "      -"
        size = f"{m.expected_bytes / 1e6:.1f} of {m.full_bytes / 1e6:.1f}" if m.expected_bytes is not None and m.full_bytes else ""
        size += f", {m.bytes_written / 1e6:.2f}" if m.bytes_written is not None else ""
        size += f", {m.auxiliary_bytes / 1e6:.1f}"
        print(f"{m.query:8} {m.strategy:14} {m.reason:18} {m.auto:7.2f} {m.full:7.2f} {m.ratio:6.1f} {inc} {m.was_right!s:5}  {size}")
    for line in summary(measured):
        print(line)
    if options.report:
        with Path(options.report).open("a", encoding="utf-8") as file:
            file.write(markdown(measured, kind, options))
    if options.json:
        text = json.dumps({"options": {**vars(options), "kind": kind}, "measured": [asdict(m) for m in measured]}, indent=1)
        Path(options.json).mkdir(parents=True, exist_ok=True)
        (Path(options.json) / f"{options.scale:g}-{kind}-{options.mode}-v{options.format_version}.json").write_text(text)


def summary(measured: list[Measured]) -> list[str]:
    ratios = [m.ratio for m in measured if m.strategy not in (*COMPLETE, "reused", "error", "no-change")]
    slower = [m.query for m in measured if m.auto > 1.1 * m.full]
    known = [m.was_right for m in measured if m.was_right is not None]
    return [
        f"geometric mean of {len(ratios)} incremental: {geometric_mean(ratios):.1f}x" if ratios else "none was incremental",
        f"slower than full by more than a tenth: {', '.join(slower) or 'none'}",
        f"the choice was right in {sum(known)} of {len(known)}",
    ]


def markdown(measured: list[Measured], kind: str, options: argparse.Namespace) -> str:
    where = " of neighbouring keys" if options.clustered and kind != "inserts" else ""
    lines = [
        f"## Scale {options.scale:g}, {options.fraction:.1%} {kind}{where}, {options.mode}, format v{options.format_version}",
        "",
        "| query | strategy | reason | auto s | full s | ratio | incremental s | auxiliary views, MB |",
    ]
    lines += ["|---|---|---|---:|---:|---:|---:|---:|"]
    for m in measured:
        forced = f"{m.incremental:.2f}" if m.incremental is not None else ""
        size = f"{m.auxiliary_bytes / 1e6:.1f}" if m.auxiliary_bytes else ""
        lines.append(f"| {m.query} | {m.strategy} | {m.reason} | {m.auto:.2f} | {m.full:.2f} | {m.ratio:.1f} | {forced} | {size} |")
    return "\n".join([*lines, "", *(f"- {line}" for line in summary(measured)), "", ""])


if __name__ == "__main__":
    sys.exit(main())
