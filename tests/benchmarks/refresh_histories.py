"""Random tables, histories and MVs: after every step what is called fresh is compared with the query, and after every run each MV.

    python tests/benchmarks/refresh_histories.py --histories 500 --seed 1 [--jobs 2] [--journal FILE] [--report docs/proofs/end-to-end.md]

History n is that of seed `--seed` + n, so that any of them can be run again alone: `--histories 1 --seed <its seed>`. Exit code 1 if any is wrong.
With a journal, what it has already is not played again.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import date
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parent), str(Path(__file__).resolve().parents[1])]

from in_parts import in_parts  # noqa: E402
from journal import Journal, commit_now  # noqa: E402
from warm_spark import warm_spark  # noqa: E402

from mvbuild.adapters.iceberg import net_rows  # noqa: E402
from mvbuild.refresh import few_rows  # noqa: E402
from spark.history_features import FEATURES  # noqa: E402
from spark.refresh_histories import MODES, Case, Seen, made, played, shrunk  # noqa: E402


def case_of(seed: int, chosen: argparse.Namespace) -> Case:
    version, mode = MODES[seed % len(MODES)]
    return made(seed, version, mode, rounds=chosen.rounds, mvs=chosen.mvs, features=chosen.features, together=chosen.together)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--histories", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--minutes", type=float, default=600, help="begin no history after so many")
    parser.add_argument("--rounds", type=int, default=5, help="runs of each history, besides the first")
    parser.add_argument("--mvs", type=int, default=8, help="besides those of the features; 0 for those alone")
    parser.add_argument("--features", nargs="*", choices=list(FEATURES), help="of every history; some by chance if none are given")
    parser.add_argument("--auxiliary-views", default="auto", choices=["auto", "never", "always"], help="the setting of every MV")
    parser.add_argument("--together", type=int, default=2, help="how many features a history has by chance")
    parser.add_argument("--shrink", type=float, default=0, help="seconds to make a failing case smaller")
    parser.add_argument("--log", action="store_true", help="print the statements of a failing case")
    parser.add_argument("--directory", type=Path, default=Path(f"/tmp/mvbuild-histories-{time.time_ns()}"))
    parser.add_argument("--jobs", type=int, default=1, help="processes, each with a Spark of its own")
    parser.add_argument("--engine", action="store_true", help="nothing is read or written without Spark, which mvbuild does where it can")
    parser.add_argument("--as-if-large", action="store_true", help="refresh all few rows like many, instead of those of odd seeds")
    parser.add_argument("--journal", type=Path)
    parser.add_argument("--report", type=Path)
    parser.add_argument("--date", default=date.today().isoformat())
    chosen = parser.parse_args()
    began, journal = time.monotonic(), Journal(path=chosen.journal, counts=Seen, commit=commit_now())
    seeds, known = range(chosen.seed, chosen.seed + chosen.histories), journal.read()
    total, commits = Seen(), {commit for seed, (commit, _) in known.items() if seed in seeds}
    for seed in known.keys() & set(seeds):
        total.add(known[seed][1])
    for one in in_parts(_play, [seed for seed in seeds if seed not in known], chosen, journal, jobs=chosen.jobs):
        total.add(one)
        commits.add(journal.commit)
    elapsed = time.monotonic() - began
    print(line(total, elapsed))
    print("refreshes:", {" ".join(filter(None, key)): n for key, n in total.refreshes.most_common()})
    if total.auxiliary:
        print("auxiliary views:", {" ".join(filter(None, key)): n for key, n in total.auxiliary.most_common()})
    print("steps:", dict(total.steps.most_common()))
    print("judged after steps:", dict(total.checked.most_common()), "blocked:", dict(total.blocked.most_common()))
    for one in total.unproven[:5]:
        print("unproven:", one[:1500])
    if chosen.report:
        chosen.report.write_text(report(total, chosen, sorted(commits)), encoding="utf-8")
    return 1 if total.failures else 0


def _play(seeds: Sequence[int], chosen: argparse.Namespace, journal: Journal[Seen]) -> Seen:
    """Of one process, with a Spark of its own."""
    if chosen.engine:
        net_rows.MAX_VALUES = few_rows.MAX_ROWS = -1
    total, began = Seen(), time.monotonic()
    directory = chosen.directory / f"seeds-{seeds[0]}"
    numbers = iter(range(10**9))
    with warm_spark(directory, memory="2g", small=True) as spark:

        def play(case: Case) -> Seen:
            large = True if chosen.as_if_large else None
            return played(case, directory / f"case-{next(numbers)}", spark, auxiliary=chosen.auxiliary_views, large=large)

        for seed in seeds:
            if time.monotonic() - began > chosen.minutes * 60:
                break
            case = case_of(seed, chosen)
            seen = play(case)
            journal.add(seed, replace(seen, log=[]))
            total.add(seen)
            if seen.failures:
                _tell(case, seen, chosen, play)
            if total.histories % 5 == 0:
                print(line(total, time.monotonic() - began), flush=True)
    return total


def _tell(case: Case, seen: Seen, chosen: argparse.Namespace, play: Callable[[Case], Seen]) -> None:
    again = f"--histories 1 --seed {case.seed} --rounds {chosen.rounds} --mvs {chosen.mvs} --together {chosen.together}"
    again += f" --features {' '.join(chosen.features)}" if chosen.features else ""
    again += " --as-if-large" if chosen.as_if_large else ""
    again += f" --auxiliary-views {chosen.auxiliary_views}" if chosen.auxiliary_views != "auto" else ""
    print(f"FAILED: {seen.failures[0]}\n  python tests/benchmarks/refresh_histories.py {again}", flush=True)
    if chosen.log:
        print("\n".join(seen.log))
    if chosen.shrink:
        small = shrunk(case, lambda c: bool(play(c).failures), seconds=chosen.shrink)
        last = play(small)
        print(f"SMALLER: {last.failures[0] if last.failures else small}\n" + "\n".join(last.log), flush=True)


def line(seen: Seen, elapsed: float) -> str:
    refreshes = sum(seen.refreshes.values())
    return f"{seen.histories} histories, {seen.runs} runs, {refreshes:,} refreshes, {len(seen.failures)} failed, {elapsed:,.0f} s"


def report(seen: Seen, chosen: argparse.Namespace, commits: Sequence[str]) -> str:
    by_strategy: dict[str, Counter[str]] = defaultdict(Counter)
    for (strategy, reason), number in seen.refreshes.items():
        by_strategy[strategy][reason] += number
    incremental = sum(n.total() for s, n in by_strategy.items() if s != "full")
    again = f"--histories {seen.histories} --seed {chosen.seed} --rounds {chosen.rounds} --mvs {chosen.mvs} --together {chosen.together}"
    lines = [
        "# Proof end to end",
        "",
        "Random base tables with random histories, and projects of random MVs over them (MVs that read MVs, views and ephemeral models between, all",
        "storage layouts and formats), on Spark and Iceberg. After every one to three steps one `mvbuild run` with `refresh_policy: incremental`;",
        "after every run each MV is compared with its full query over the base tables, as bags, both ways. A second run must have nothing to do,",
        "no branch, scratch table or temporary view may be left, and an incremental refresh may write no row that did not change.",
        "",
        f"Steps are commits of every kind to base tables, and {chosen.together} of these in each history: "
        + ", ".join(FEATURES)
        + ". After every step, what",
        "`mvbuild status` calls fresh and what a reader calls fresh that knows only the property-based specification has the rows that plain Spark",
        "computes then, and so has what `mvbuild.read` serves, in the session as it is.",
        "",
        f"- Run on {chosen.date}: `python tests/benchmarks/refresh_histories.py {again}`",
        f"- Histories: {seen.histories:,}, in turn over tables of " + ", ".join(f"v{v} {m}" for v, m in MODES),
        f"- Runs that were checked: {seen.runs:,}, with {sum(seen.refreshes.values()):,} refreshes of MVs, {incremental:,} of them not full (`no-change` among them)",
        f"- MVs that `mvbuild verify` checked besides: {seen.verified:,}",
        "- After steps: " + ", ".join(f"{what} {n:,}" for what, n in seen.checked.most_common()),
        f"- Failed: **{len(seen.failures)}**",
        f"- On {', '.join(commits)}",
        "",
        "| strategy | refreshes | reasons |",
        "|---|---:|---|",
    ]
    for strategy, reasons in sorted(by_strategy.items(), key=lambda item: -item[1].total()):
        told = ", ".join(f"{reason} {n:,}" for reason, n in reasons.most_common() if reason)
        lines.append(f"| {strategy} | {reasons.total():,} | {told} |")
    lines += ["", "Commits between the runs: " + ", ".join(f"{what} {n:,}" for what, n in seen.steps.most_common()) + "."]
    for failure in seen.failures:
        lines += ["", "```", failure, "```"]
    return "\n".join([*lines, ""])


if __name__ == "__main__":
    sys.exit(main())
