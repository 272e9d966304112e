"""TPC-H under refresh streams -> the strategy of every query in every round, the reason where it is full, and whether its rows are right.

    python tests/benchmarks/tpch.py --scale 0.01 --rounds 10 --mode merge-on-read --report docs/proofs/tpch.md

Both sets: the 22 queries as they are, and without their outermost ORDER BY and LIMIT.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter, defaultdict
from contextlib import nullcontext
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parent), str(Path(__file__).resolve().parents[1])]

from refreshed import differs, how  # noqa: E402
from tpch_data import tables_of_tpch  # noqa: E402
from warm_spark import warm_spark  # noqa: E402

from spark.refresh_histories import as_if_large  # noqa: E402
from spark.tpch_streams import RefreshStreams, second_set  # noqa: E402

QUERIES = {p.stem: p.read_text(encoding="utf-8") for p in sorted((Path(__file__).resolve().parents[1] / "spark" / "tpch").glob("*.sql"))}
SETS = {"a": lambda sql: sql, "b": second_set}


def models(sets: str, policy: str, only: set[str], views: str = "auto") -> dict[str, str]:
    """The files of the project."""
    chosen = {f"{name}_{kind}": SETS[kind](sql) for kind in sets for name, sql in QUERIES.items() if not only or name in only}
    files = {f"models/{name}.sql": sql for name, sql in chosen.items()}
    return {**files, "mvbuild.yml": f"name: tpch\nmodels: {{+refresh_policy: {policy}, +auxiliary_views: {views}}}\n"}


def table(names: list[str], seen: dict[tuple[str, str], Counter[str]], options: argparse.Namespace, wrong: int) -> list[str]:
    """A Markdown table: for each query and kind of change the strategies, each with the number of refreshes."""
    kinds = options.kinds.split(",")
    of = f"{options.mode}, format v{options.format_version}"
    large = ", as if tables were large" if options.as_if_large else ""
    told = f"scale {options.scale:g}, {options.rounds} rounds, {options.fraction:.1%} changed in each, seed {options.seed}"
    lines = [
        f"### {of}",
        "",
        f"{told}, refresh_policy {options.policy}, auxiliary_views {options.auxiliary_views}{large}: {wrong or 'no'} differences.",
        "",
    ]
    lines += [f"| query | {' | '.join(kinds)} |", f"|---|{'---|' * len(kinds)}"]
    for name in names:
        cells = [", ".join(f"{strategy} x {times}" for strategy, times in seen[name, kind].items()) or "-" for kind in kinds]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return lines


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scale", type=float, default=0.01)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--fraction", type=float, default=0.01)
    parser.add_argument("--mode", default="merge-on-read")
    parser.add_argument("--format-version", type=int, default=2)
    parser.add_argument("--policy", default="incremental")
    parser.add_argument("--auxiliary-views", default="auto", choices=("auto", "always", "never"))
    parser.add_argument("--sets", default="ab")
    parser.add_argument("--kinds", default="inserts,deletes,updates")
    parser.add_argument("--only", default="")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--rotate", action="store_true", help="one kind of change in each round, in turn, instead of each in every round")
    parser.add_argument(
        "--as-if-large", action="store_true", help="refresh the few rows like many, and read all in mvbuild's process that it can"
    )
    parser.add_argument("--report", default="", help="a Markdown file to append the table to")
    options = parser.parse_args()
    only = set(filter(None, options.only.split(",")))
    seen: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    wrong: list[str] = []
    with warm_spark(Path(f"/tmp/mvbuild-tpch-run-{options.mode}-{options.format_version}")) as spark:
        project = tables_of_tpch(spark, options.scale, format_version=options.format_version, mode=options.mode, files={})
        project.write(models(options.sets, options.policy, only, options.auxiliary_views))
        names = sorted(p.stem for p in (project.root / "models").glob("*.sql"))
        first = project.run(threads=options.threads)
        assert first.ok, [d.message for r in first.results for d in r.diagnostics]
        streams = RefreshStreams(scale=options.scale, seed=options.seed)
        for round_ in range(options.rounds):
            kinds = options.kinds.split(",")
            for kind in kinds[round_ % len(kinds) :][:1] if options.rotate else kinds:
                for statement in getattr(streams, kind)(round_, options.fraction):
                    project.spark.sql(statement)
                began = time.monotonic()
                with as_if_large() if options.as_if_large else nullcontext():
                    result = project.run(threads=options.threads)
                seconds = time.monotonic() - began
                for one in result.results:
                    name = one.node.rpartition(".")[2]
                    if one.status == "error":
                        wrong.append(f"{name} round {round_} {kind}: {one.message[:300]}")
                    seen[name, kind][how(one)] += 1
                    if (why := one.details.get("reason")) in ("round-trip-unproven", "incremental-failed"):
                        print("   ", name, why, one.details.get("reason_message", "")[:600])
                for name in names:
                    sql = (project.root / "models" / f"{name}.sql").read_text(encoding="utf-8")
                    if differs(project, name, sql):
                        wrong.append(f"{name} differs after round {round_}, {kind}, seed {options.seed}")
                print(f"round {round_} {kind}: {seconds:.1f} s, wrong so far: {len(wrong)}", flush=True)
    lines = table(names, seen, options, len(wrong))
    print("\n".join(lines))
    if options.report:
        with Path(options.report).open("a", encoding="utf-8") as file:
            file.write("\n".join(lines) + "\n\n")
    print("\n".join(wrong) or "no difference")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
