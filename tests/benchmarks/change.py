"""random histories of tables -> how many changes between their snapshots are not exact; and how fast a change is found.

    .venv/bin/python tests/benchmarks/change.py --histories 500 --seed 1 [--jobs 2] [--journal FILE] [--report docs/proofs/change.md]
    .venv/bin/python tests/benchmarks/change.py --timing

Each history is some ten commits of every kind by Spark; for every ordered pair of its snapshots, and the empty table, plus and minus must
be what turns the rows of one into those of the other. A failure prints the command that makes it again. With a journal, what it has already
is not played again.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from time import perf_counter
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent), str(HERE.parent.parent / "compiler")]

from in_parts import in_parts  # noqa: E402
from journal import Journal, commit_now  # noqa: E402

from mvbuild.adapters import open_catalog  # noqa: E402
from mvbuild.adapters.spark import start_engine  # noqa: E402
from mvbuild.names import TableIdentifier  # noqa: E402
from mvbuild.ports.states import TableState  # noqa: E402
from mvbuild.project.loaded import SparkSettings, Target  # noqa: E402
from spark import quick  # noqa: E402
from spark.change_pairs import Checker  # noqa: E402
from spark.histories import KINDS, History  # noqa: E402


@dataclass
class Counts:
    histories: int = 0
    pairs: int = 0
    wrong: list[str] = field(default_factory=list)
    tables: Counter[str] = field(default_factory=Counter)
    steps: Counter[str] = field(default_factory=Counter)
    sides: Counter[str] = field(default_factory=Counter)

    def add(self, other: Counts) -> None:
        self.histories += other.histories
        self.pairs += other.pairs
        self.wrong += other.wrong
        for mine, theirs in ((self.tables, other.tables), (self.steps, other.steps), (self.sides, other.sides)):
            mine.update(theirs)

    def __str__(self) -> str:
        return f"{self.histories:,} histories, {self.pairs:,} pairs, {len(self.wrong)} histories failed"


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--histories", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--commits", type=int, default=10)
    parser.add_argument("--pairs", type=int, help="of each history at most so many, drawn by the seed; all unless given")
    parser.add_argument("--minutes", type=float, default=600, help="start no history after that")
    parser.add_argument("--jobs", type=int, default=1, help="processes, each with a Spark of its own")
    parser.add_argument("--journal", type=Path)
    parser.add_argument("--report", type=Path)
    parser.add_argument("--date", default=date.today().isoformat())
    parser.add_argument("--timing", action="store_true", help="time the metadata work alone; no Spark")
    options = parser.parse_args()
    if options.timing:
        with tempfile.TemporaryDirectory(prefix="mvbuild-change-") as root:
            return timing(Path(root))
    start, journal = perf_counter(), Journal(path=options.journal, counts=Counts, commit=commit_now())
    seeds, known = range(options.seed, options.seed + options.histories), journal.read()
    total, commits = Counts(), {commit for seed, (commit, _) in known.items() if seed in seeds}
    for seed in known.keys() & set(seeds):
        total.add(known[seed][1])
    for counts in in_parts(_checked, [seed for seed in seeds if seed not in known], options, journal, jobs=options.jobs):
        total.add(counts)
        commits.add(journal.commit)
    seconds = perf_counter() - start
    print(f"{total}, {seconds:.0f} s\nsteps: {dict(total.steps.most_common())}\nsides: {dict(total.sides.most_common())}")
    if options.report:
        options.report.write_text(_report(total, options, sorted(commits)), encoding="utf-8")
    return 1 if total.wrong else 0


def _checked(seeds: Sequence[int], options: argparse.Namespace, journal: Journal[Counts]) -> Counts:
    """Of one process, with a Spark of its own."""
    total, start = Counts(), perf_counter()
    with tempfile.TemporaryDirectory(prefix="mvbuild-change-") as name:
        root = Path(name)
        properties = {"type": "sql", "uri": f"sqlite:///{root}/catalog.db", "warehouse": (root / "warehouse").as_uri()}
        settings = SparkSettings(master="local[2]", config={"spark.driver.memory": "1g", **quick.JVM, **quick.QUERIES})
        target = Target(
            name="bench", catalog_name="lake", catalog=properties, namespace=("main",), spark=settings, threads=2, embedded=True
        )
        catalog: Any = open_catalog("lake", properties, embedded=True)
        engine: Any = start_engine(target, log_file=root / "spark.log", env=os.environ)
        catalog.ensure_namespace(("h",))
        catalog.ensure_namespace(("mvbuild_scratch",))
        for seed in seeds:
            if perf_counter() - start > options.minutes * 60:
                break
            counts = _history(catalog, engine.session, seed, options)
            journal.add(seed, counts)
            total.add(counts)
            if total.histories % 10 == 0:
                print(f"{total}, {perf_counter() - start:.0f} s", flush=True)
        engine.close()
    return total


def _history(catalog: Any, session: Any, seed: int, options: argparse.Namespace) -> Counts:
    version, mode = KINDS[seed % len(KINDS)]
    counts = Counts(histories=1, tables=Counter([f"v{version} {mode}"]))
    history = History(session, f"lake.h.t{seed}", seed, version, mode)
    try:
        counts.steps.update(history.commits(options.commits))
        (table,) = catalog.load([TableIdentifier("lake", ("h",), f"t{seed}")]).values()
        assert isinstance(table, TableState), table
        checker = Checker(spark=session, catalog=catalog, table=table)
        checked = checker.pairs(options.pairs, seed)
        counts.pairs = len(checked)
        wrong = checker.wrong(checked)
        counts.sides.update(checker.kinds)
    except Exception as error:  # noqa: BLE001  a long run goes on
        wrong = {(0, 0): f"{type(error).__name__}: {str(error)[:1500]}"}
    if wrong:
        of = f" --pairs {options.pairs}" if options.pairs else ""
        again = f"python tests/benchmarks/change.py --histories 1 --seed {seed} --commits {options.commits}{of}"
        pair, what = next(iter(wrong.items()))
        counts.wrong.append(f"v{version} {mode}: {len(wrong)} pairs, {pair[0]} -> {pair[1]}: {what[:1500]}\n  {again}")
        print(f"FAILED: {counts.wrong[-1]}", flush=True)
        if options.histories == 1:
            print("\n".join(history.log))
    session.sql(f"DROP TABLE IF EXISTS lake.h.t{seed} PURGE")
    return counts


def _report(counts: Counts, options: argparse.Namespace, commits: Sequence[str]) -> str:
    of = f" --pairs {options.pairs}" if options.pairs else ""
    lines = [
        "# Proof of the change between snapshots",
        "",
        f"Random tables, each with a history of {options.commits} random commits by Spark. For ordered pairs of its snapshots, and the empty table, the",
        "change is found from metadata, both sides are read by Spark, and `old + plus - minus` must be `new` as bags, the minus side a part of the old.",
        "",
        f"- Run on {options.date}: `python tests/benchmarks/change.py --histories {counts.histories} --seed {options.seed}{of}`",
        f"- Histories: {counts.histories:,}; of tables " + ", ".join(f"{kind} {n:,}" for kind, n in sorted(counts.tables.items())),
        f"- Pairs of snapshots: {counts.pairs:,}",
        f"- Histories with a difference: **{len(counts.wrong)}**",
        f"- On {', '.join(commits)}",
        "",
        "Commits: " + ", ".join(f"{what} {n:,}" for what, n in counts.steps.most_common()) + ".",
        "",
        "How the sides were given: " + ", ".join(f"{what} {n:,}" for what, n in counts.sides.most_common()) + ".",
    ]
    for failure in counts.wrong:
        lines += ["", "```", failure, "```"]
    return "\n".join([*lines, ""])


def timing(root: Path) -> int:
    from behaviour.large import MANIFESTS, timed

    for how in ("append", "rewrite", "delete"):
        seconds, change, total = timed(root / how, how)
        share = change.manifest_bytes_read / total
        print(f"{how}: {seconds * 1000:.0f} ms, {change.manifests_read} of {MANIFESTS} manifests, {share:.2%} of {total} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
