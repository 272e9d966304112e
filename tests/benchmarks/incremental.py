"""TPC-H at a scale, a small change -> how much faster each query is refreshed than in full, and how often the choice by cost was right.

    .venv/bin/python tests/benchmarks/incremental.py --scale 5 --kind inserts --fraction 0.001
    .venv/bin/python tests/benchmarks/incremental.py --scale 5 --kind deletes --mode copy-on-write --clustered

In one session, after a change that is not measured, so that all code is warm: rounds of three changes each, after which every query is
refreshed by `auto`, in full, and by `incremental`, so that it is known what the other choice would have cost; each in a pass of its own, for a
statement that was just made is always faster the second time, and each round begins with another one. The report has medians. Bytes are those of the files that were expected to be read,
and of those that were written.
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
        """Whether `auto` took what is faster, give or take a tenth."""
        if self.incremental is None:
            return None
        took_incremental = self.strategy not in ("full", "reused")
        return self.incremental <= self.full * 1.1 if took_incremental else self.full <= self.incremental * 1.1


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
    one.strategy = details.get("strategy") or found.status
    one.reason = details.get("reason") or ""
    one.expected_bytes, one.full_bytes = details.get("expected_bytes"), details.get("full_bytes")
    one.rows_changed = (details.get("rows_added") or 0) + (details.get("rows_removed") or 0)
    one.bytes_written = details.get("bytes_written")


def with_policy(project: Any, policy: str) -> None:
    project.write({"mvbuild.yml": f"name: tpch\nmodels: {{+refresh_policy: {policy}}}\n"})


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scale", type=float, default=1)
    parser.add_argument("--kind", default="inserts", choices=("inserts", "deletes", "updates"))
    parser.add_argument("--fraction", type=float, default=0.001)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--mode", default="merge-on-read")
    parser.add_argument("--format-version", type=int, default=2)
    parser.add_argument("--clustered", action="store_true")
    parser.add_argument("--only", default="")
    parser.add_argument("--set", default="b", choices=("a", "b"))
    parser.add_argument("--json", default="")
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
        streams = RefreshStreams(scale=options.scale, seed=1)

        def change(round_: int) -> None:
            how = {} if options.kind == "inserts" else {"clustered": options.clustered}
            for statement in getattr(streams, options.kind)(round_, options.fraction, **how):
                project.spark.sql(statement)

        # Once incrementally, once more in full: what Spark generates code for and the JVM compiles is warm in both.
        with_policy(project, "incremental")
        change(0)
        for how in ({}, {"full_refresh": True}):
            for name in names:
                timed(project, name, **how)
        measured = {name: Measured(query=name) for name in names}

        def auto(one: Measured) -> None:
            note(one, *timed(project, one.query))

        def full(one: Measured) -> None:
            one.fulls.append(timed(project, one.query, full_refresh=True)[0])

        def incremental(one: Measured) -> None:
            seconds, found = timed(project, one.query)
            if found.details.get("strategy") not in (None, "full"):
                one.incrementals.append(seconds)

        passes = [("auto", auto), ("auto", full), ("incremental", incremental)]
        for round_ in range(options.rounds):
            for number in range(len(passes)):
                # Another one first in each round: it reads what was just written.
                policy, refreshed = passes[(number + round_) % len(passes)]
                change(3 * round_ + number + 1)
                with_policy(project, policy)
                for one in measured.values():
                    refreshed(one)
            for one in measured.values():
                print(
                    f"{one.query} {one.strategy:14} {one.reason:16} auto {one.auto:6.2f} s  full {one.full:6.2f} s  {one.ratio:5.1f}x",
                    flush=True,
                )
        report(list(measured.values()), options)
    return 0


def report(measured: list[Measured], options: argparse.Namespace) -> None:
    print(f"\n{'query':8} {'strategy':14} {'reason':18} {'auto s':>7} {'full s':>7} {'ratio':>6} {'incr s':>7} right  MB of MB, written")
    for m in measured:
        inc = f"{m.incremental:7.2f}" if m.incremental is not None else "      -"
        size = f"{m.expected_bytes / 1e6:.1f} of {m.full_bytes / 1e6:.1f}" if m.expected_bytes is not None and m.full_bytes else ""
        size += f", {m.bytes_written / 1e6:.2f}" if m.bytes_written is not None else ""
        print(f"{m.query:8} {m.strategy:14} {m.reason:18} {m.auto:7.2f} {m.full:7.2f} {m.ratio:6.1f} {inc} {m.was_right!s:5}  {size}")
    for line in summary(measured):
        print(line)
    if options.report:
        with Path(options.report).open("a", encoding="utf-8") as file:
            file.write(markdown(measured, options))
    if options.json:
        Path(options.json).write_text(json.dumps({"options": vars(options), "measured": [asdict(m) for m in measured]}, indent=1))


def summary(measured: list[Measured]) -> list[str]:
    ratios = [m.ratio for m in measured if m.strategy not in ("full", "reused", "error", "no-change")]
    slower = [m.query for m in measured if m.auto > 1.1 * m.full]
    known = [m.was_right for m in measured if m.was_right is not None]
    return [
        f"geometric mean of {len(ratios)} incremental: {geometric_mean(ratios):.1f}x" if ratios else "none was incremental",
        f"slower than full by more than a tenth: {', '.join(slower) or 'none'}",
        f"the choice was right in {sum(known)} of {len(known)}",
    ]


def markdown(measured: list[Measured], options: argparse.Namespace) -> str:
    how = f"{options.kind}{' of neighbouring keys' if options.clustered else ''}, {options.mode}, format v{options.format_version}"
    lines = [
        f"## Scale {options.scale:g}, {options.fraction:.1%} {how}",
        "",
        "| query | strategy | reason | auto s | full s | ratio | incremental s |",
    ]
    lines += ["|---|---|---|---:|---:|---:|---:|"]
    for m in measured:
        forced = f"{m.incremental:.2f}" if m.incremental is not None else ""
        lines.append(f"| {m.query} | {m.strategy} | {m.reason} | {m.auto:.2f} | {m.full:.2f} | {m.ratio:.1f} | {forced} |")
    return "\n".join([*lines, "", *(f"- {line}" for line in summary(measured)), "", ""])


if __name__ == "__main__":
    sys.exit(main())
