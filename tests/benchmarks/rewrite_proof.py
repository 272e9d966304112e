"""Random queries, data and changes: every strategy that does not refuse must leave what the full query gives.

    python tests/benchmarks/rewrite_proof.py --cases 20000 --seed 1 [--jobs 2] [--report docs/proofs/rewrite-layer.md] [--date 2026-11-21]

Case n of the run is that of seed `--seed` * 1 000 000 + n, so that any of them can be run again alone. Exit code 1 if any is wrong.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from datetime import date
from functools import partial
from pathlib import Path

import duckdb
import sqlglot

TESTS = Path(__file__).parents[1]
sys.path[:0] = [str(TESTS), str(TESTS.parent / "compiler")]

from mvbuild.incremental.strategies import STRATEGIES  # noqa: E402
from unit.incremental.groups_of_left_joins import groups_of_left_joins  # noqa: E402
from unit.incremental.on_cuts import through_cuts  # noqa: E402
from unit.incremental.on_duckdb import connected  # noqa: E402
from unit.incremental.oracle import ACCEPTED, Wrong, seen, shrunk  # noqa: E402
from unit.incremental.queries import Generated, generated  # noqa: E402
from unit.incremental.restricted_groups import restricted_groups  # noqa: E402

CHUNK = 250
SHRUNK = 5
"""How many failures are made small."""


@dataclass
class Counts:
    """What was seen. Keys of `codes`: (strategy, code); of `accepted`: (operator, whether rows went, strategy); of `cases`: (operator, whether rows went)."""

    ran: int = 0
    unchanged: int = 0
    """Those without a changed table, and those that were refused."""
    refused: int = 0
    """Queries that DuckDB does not take."""
    moved: int = 0
    codes: Counter[tuple[str, str]] = field(default_factory=Counter)
    accepted: Counter[tuple[str, bool, str]] = field(default_factory=Counter)
    cases: Counter[tuple[str, bool]] = field(default_factory=Counter)
    auxiliary: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    """With auxiliary views: (auxiliary or query, strategy, outcome)."""
    cuts: int = 0
    wrong: list[Wrong] = field(default_factory=list)
    seconds: float = 0

    def add(self, other: Counts) -> None:
        self.ran += other.ran
        self.unchanged += other.unchanged
        self.refused += other.refused
        self.moved += other.moved
        self.codes.update(other.codes)
        self.accepted.update(other.accepted)
        self.cases.update(other.cases)
        self.auxiliary.update(other.auxiliary)
        self.cuts += other.cuts
        self.wrong.extend(other.wrong)
        self.seconds += other.seconds

    def accepted_by(self, strategy: str) -> int:
        return self.codes[(strategy, ACCEPTED)]

    @property
    def runs(self) -> int:
        return sum(number for (_, code), number in self.codes.items() if code == ACCEPTED)

    def note(self, case: Generated, connection: duckdb.DuckDBPyConnection) -> None:
        found = seen(case, connection)
        self.ran += 1
        self.refused += found.is_refused
        if not found.codes:
            self.unchanged += 1
            return
        self.moved += found.moves
        goes = any(table.minus for table in case.tables)
        self.wrong.extend(found.wrong)
        self.codes.update(found.codes.items())
        for operator in case.operators:
            self.cases[(operator, goes)] += 1
            self.accepted.update((operator, goes, strategy) for strategy, code in found.codes.items() if code == ACCEPTED)


def counted(start: int, number: int, *, cuts: bool = False) -> Counts:
    """`cuts`: through auxiliary views instead of directly."""
    counts = Counts()
    began = time.process_time()
    connection = connected()
    for seed in range(start, start + number):
        if cuts:
            # Few of the general queries join rows under a condition with groups, or have groups over an outer join.
            special = {0: restricted_groups, 1: groups_of_left_joins}.get(seed % 5)
            for case in (generated(seed), *([special(seed)] if special else [])):
                found = through_cuts(case, connection, seed)
                counts.ran += 1
                counts.cuts += found.cuts
                counts.auxiliary.update(found.codes)
                counts.wrong.extend(found.wrong)
        else:
            counts.note(generated(seed), connection)
            if seed % 10 == 0:
                counts.note(groups_of_left_joins(seed), connection)
    counts.seconds = time.process_time() - began
    return counts


def report(counts: Counts, seed: int, day: str, elapsed: float, jobs: int) -> str:
    lines = [
        "# Proof of the rewrite layer",
        "",
        "Random queries over random tables, each with a random change; every strategy is asked to bring the result up to date, and what it",
        "leaves is compared with the full query at the new versions, as bags, on DuckDB. The queries are those of",
        "`tests/unit/incremental/queries.py`; any of them can be run again by its seed.",
        "",
        f"- Run on {day}: `python tests/benchmarks/rewrite_proof.py --cases {counts.ran} --seed {seed}`",
        f"- Cases (a query, its data and a change): {counts.ran:,}, of which {counts.unchanged - counts.refused:,} changed no table, {counts.refused:,} DuckDB did not take, and {counts.moved:,} changed the result",
        f"- Refreshes that were compared: {counts.runs:,}",
        f"- Wrong: **{len(counts.wrong)}**",
        f"- {elapsed:,.0f} s with {jobs} process{'es' if jobs > 1 else ''} ({counts.seconds:,.0f} s of processor time)",
        f"- DuckDB {duckdb.__version__}, sqlglot {sqlglot.__version__}",
        "",
        "## Strategies",
        "",
        "| strategy | accepted and right | wrong | refused, by code |",
        "|---|---:|---:|---|",
    ]
    for strategy in STRATEGIES:
        wrong = sum(one.strategy == strategy for one in counts.wrong)
        codes = sorted(((n, code) for (s, code), n in counts.codes.items() if s == strategy and code != ACCEPTED), reverse=True)
        refused = ", ".join(f"{code} {n:,}" for n, code in codes)
        lines.append(f"| {strategy} | {counts.accepted_by(strategy) - wrong:,} | {wrong} | {refused} |")
    lines += [
        "",
        "## Operators",
        "",
        "Cases whose query has the operator, and how many of them each strategy accepted: where rows only came / where rows went as well.",
        "",
        f"| operator | cases | {' | '.join(STRATEGIES)} |",
        f"|---|---:|{'---:|' * len(STRATEGIES)}",
    ]
    for operator in sorted({operator for operator, _ in counts.cases}):
        both = [f"{counts.cases[(operator, False)]:,} / {counts.cases[(operator, True)]:,}"]
        both += [f"{counts.accepted[(operator, False, s)]:,} / {counts.accepted[(operator, True, s)]:,}" for s in STRATEGIES]
        lines.append(f"| {operator} | {' | '.join(both)} |")
    for one in counts.wrong[:SHRUNK]:
        lines += [
            "",
            f"## Seed {one.seed}: {one.strategy}",
            "",
            one.problem,
            "",
            "```python",
            str(one).partition("\n\n")[2].rstrip(),
            "```",
        ]
    return "\n".join([*lines, ""])


def report_of_cuts(counts: Counts, seed: int, day: str, elapsed: float, jobs: int) -> str:
    lines = [
        "# Proof of auxiliary views",
        "",
        "Random queries over random tables, each with a random change. The tree of each query is cut where mvbuild would cut it, and at one or two",
        "random places. Each auxiliary view is refreshed by a strategy that does not refuse, and then the query over them by every strategy. The rows",
        "are compared with the query over the refreshed auxiliary views and with the query itself, as bags, on DuckDB.",
        "",
        f"- Run on {day}: `python tests/benchmarks/rewrite_proof.py --auxiliary-views --cases {counts.ran} --seed {seed}`",
        f"- Cases: {counts.ran:,}, with {counts.cuts:,} auxiliary views",
        f"- Wrong: **{len(counts.wrong)}**",
        f"- {elapsed:,.0f} s with {jobs} process{'es' if jobs > 1 else ''} ({counts.seconds:,.0f} s of processor time)",
        "",
        "| of | strategy | accepted and right | refused, by code |",
        "|---|---|---:|---|",
    ]
    for of in ("auxiliary", "query"):
        for strategy in STRATEGIES:
            codes = sorted(
                ((n, c) for (o, s, c), n in counts.auxiliary.items() if (o, s) == (of, strategy) and c != ACCEPTED), reverse=True
            )
            accepted = counts.auxiliary[(of, strategy, ACCEPTED)]
            lines.append(f"| {of} | {strategy} | {accepted:,} | {', '.join(f'{code} {n:,}' for n, code in codes)} |")
    for one in counts.wrong[:SHRUNK]:
        lines += ["", f"## Seed {one.seed}: {one.strategy}", "", one.problem, "", "```sql", one.query, "```"]
    return "\n".join([*lines, ""])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=float("inf"), help="begin nothing after so many")
    parser.add_argument(
        "--auxiliary-views", action="store_true", help="refresh through auxiliary views, cut where it helps and at random places"
    )
    parser.add_argument("--report", type=Path)
    parser.add_argument("--date", default=date.today().isoformat())
    chosen = parser.parse_args()
    began = time.monotonic()
    total = Counts()
    first = chosen.seed * 1_000_000
    chunks = [(first + at, min(CHUNK, chosen.cases - at)) for at in range(0, chosen.cases, CHUNK)]
    with ProcessPoolExecutor(chosen.jobs) as pool:
        for at in range(0, len(chunks), chosen.jobs):
            if time.monotonic() - began > chosen.seconds:
                break
            work = partial(counted, cuts=chosen.auxiliary_views)
            for counts in pool.map(work, *zip(*chunks[at : at + chosen.jobs], strict=True)):
                total.add(counts)
            print(
                f"{total.ran:,} cases, {total.runs or sum(total.auxiliary.values()):,} refreshes, {len(total.wrong)} wrong, {time.monotonic() - began:,.0f} s",
                flush=True,
            )
    elapsed = time.monotonic() - began
    connection = connected()
    if not chosen.auxiliary_views:
        total.wrong[:SHRUNK] = [shrunk(one, connection) for one in total.wrong[:SHRUNK]]
    if chosen.auxiliary_views:
        text = report_of_cuts(total, chosen.seed, chosen.date, elapsed, chosen.jobs)
    else:
        text = report(total, chosen.seed, chosen.date, elapsed, chosen.jobs)
    print(text)
    if chosen.report:
        chosen.report.parent.mkdir(parents=True, exist_ok=True)
        chosen.report.write_text(text, encoding="utf-8")
    return 1 if total.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
