"""Random files, statistics and conditions: where metadata says "irrelevant", no row may meet the condition. And random queries: none may
change when its tables keep only the rows that can matter.

    python tests/benchmarks/relevance.py --trials 100000 --queries 2000 --seed 1 [--jobs 2] [--report docs/proofs/relevance.md] [--date 2026-11-21]

A trial is one file and one condition; 144 of them share a seed of `--seed` * 1 000 000 + n. Exit code 1 if any is wrong.
"""

from __future__ import annotations

import argparse
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from datetime import date
from pathlib import Path

import duckdb

TESTS = Path(__file__).parents[1]
sys.path[:0] = [str(TESTS), str(TESTS.parent / "compiler")]

from mvbuild.incremental.reasons import Refused  # noqa: E402
from unit.incremental.on_duckdb import connected  # noqa: E402
from unit.incremental.relevance_pushing import Pushed, pushed  # noqa: E402
from unit.incremental.relevance_trials import CONDITIONS, FILES, Counts, round_of_trials  # noqa: E402

CHUNK = 50


def trials(first: int, number: int) -> Counts:
    connection = duckdb.connect()
    connection.execute("SET threads = 1")
    return sum((round_of_trials(seed, connection) for seed in range(first, first + number)), Counts())


def queries(first: int, number: int) -> Pushed:
    connection, found = connected(), Pushed()
    for seed in range(first, first + number):
        try:
            found = found + pushed(seed, connection)
        except (Refused, duckdb.BinderException):  # DuckDB compares fewer types than Spark
            continue
    return found


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--trials", type=int, default=100_000)
    options.add_argument("--queries", type=int, default=0)
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--jobs", type=int, default=1)
    options.add_argument("--report", type=Path)
    options.add_argument("--date", type=date.fromisoformat, default=None)
    given = options.parse_args()
    start, base = time.monotonic(), given.seed * 1_000_000
    rounds = -(-given.trials // (FILES * CONDITIONS))
    with ProcessPoolExecutor(given.jobs) as pool:
        firsts = range(base, base + rounds, CHUNK)
        counted = [pool.submit(trials, at, min(CHUNK, base + rounds - at)) for at in firsts]
        asked = [pool.submit(queries, at, min(CHUNK, base + given.queries - at)) for at in range(base, base + given.queries, CHUNK)]
        found = sum((one.result() for one in counted), Counts())
        shown = sum((one.result() for one in asked), Pushed())
    text = report(given, found, shown, time.monotonic() - start)
    print(text)
    if given.report:
        given.report.write_text(text, encoding="utf-8")
    for problem in (*found.wrong, *shown.wrong):
        print(problem, file=sys.stderr)
    return 1 if found.wrong or shown.wrong else 0


def report(given: argparse.Namespace, found: Counts, shown: Pushed, seconds: float) -> str:
    share = f"{found.irrelevant / max(found.none_meets, 1):.0%}"
    return f"""# Irrelevant changes: random trials

{given.date or date.today()}, seed {given.seed}, {seconds:.0f} s:
`python tests/benchmarks/relevance.py --trials {given.trials} --queries {given.queries} --seed {given.seed} --jobs {given.jobs}`

Claim 1: where metadata says that no row of a file can meet a condition, none does. Files have random rows (NULLs, columns that are all NULL,
no rows at all, negative numbers, extremes, decimals of three scales, text beyond ASCII that is cut at 16 characters), statistics with gaps,
columns added or promoted later, partitions of several specs (identity, bucket, truncate, year, month, day, hour; also as old releases of
Iceberg computed them before 1970) and names of before a rename. Conditions are SQL text of a random grammar; DuckDB tells which rows meet them.

| | |
|---|---|
| trials (one file, one condition) | {found.trials:,} |
| of them with a file without rows | {found.empty_files:,} |
| no row meets the condition (files with rows) | {found.none_meets:,} |
| metadata said "irrelevant" (files with rows) | {found.irrelevant:,}, {share} of these |
| conditions of which nothing could be said as predicates | {found.untranslated:,} |
| changes of three files | {found.changes:,} |
| said to be irrelevant as a whole | {found.changes_irrelevant:,} |
| wrong | {len(found.wrong):,} |

Claim 2: a query gives the same rows when each of its tables keeps only the rows that meet the conditions of one of its scans. Queries are
those of the rewrite layer's proof.

| | |
|---|---|
| queries | {shown.queries:,} |
| of them narrowed: some table lost rows | {shown.narrowed:,} |
| rows left out | {shown.rows_left_out:,} of {shown.rows:,} |
| wrong | {len(shown.wrong):,} |
"""


if __name__ == "__main__":
    sys.exit(main())
