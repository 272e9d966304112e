"""random histories of tables -> how many changes between their snapshots are not exact; and how fast a change is found.

    .venv/bin/python tests/benchmarks/change.py --histories 500 --seed 1
    .venv/bin/python tests/benchmarks/change.py --timing

Each history is some ten commits of every kind by Spark; for every ordered pair of its snapshots, and the empty table, plus and minus must
be what turns the rows of one into those of the other. A failure prints the command that makes it again.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
from collections import Counter
from pathlib import Path
from time import perf_counter
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE.parent.parent / "compiler")]

from mvbuild.adapters import open_catalog  # noqa: E402
from mvbuild.adapters.spark import start_engine  # noqa: E402
from mvbuild.names import TableIdentifier  # noqa: E402
from mvbuild.ports.catalog import TableState  # noqa: E402
from mvbuild.project.loaded import SparkSettings, Target  # noqa: E402
from spark.change_pairs import Checker  # noqa: E402
from spark.histories import KINDS, History  # noqa: E402

QUICK = {"spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN", "spark.sql.adaptive.enabled": "false"}
"""Tables of a few rows are read before their code would be compiled."""


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--histories", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--commits", type=int, default=10)
    parser.add_argument("--pairs", type=int, help="of each history at most so many, drawn by the seed; all unless given")
    parser.add_argument("--minutes", type=float, default=600, help="start no history after that")
    parser.add_argument("--timing", action="store_true", help="time the metadata work alone; no Spark")
    options = parser.parse_args()
    root = Path(tempfile.mkdtemp(prefix="mvbuild-change-"))
    try:
        return timing(root) if options.timing else run(root, options)
    finally:
        shutil.rmtree(root, ignore_errors=True)


def run(root: Path, options: Any) -> int:
    warehouse = root / "warehouse"
    warehouse.mkdir()
    properties = {"type": "sql", "uri": f"sqlite:///{root}/catalog.db", "warehouse": warehouse.as_uri()}
    spark = SparkSettings(master="local[2]", config={"spark.driver.memory": "1g", "spark.sql.shuffle.partitions": "1", **QUICK})
    target = Target(name="bench", catalog_name="lake", catalog=properties, namespace=("main",), spark=spark, threads=2, embedded=True)
    catalog: Any = open_catalog("lake", properties, embedded=True)
    engine: Any = start_engine(target, log_file=root / "spark.log", env=os.environ)
    catalog.ensure_namespace(("h",))
    catalog.ensure_namespace(("mvbuild_scratch",))
    done, pairs, failed, writing, kinds, steps, start = 0, 0, 0, 0.0, Counter[str](), Counter[str](), perf_counter()
    for at in range(options.histories):
        if perf_counter() - start > options.minutes * 60:
            break
        seed = options.seed + at
        version, mode = KINDS[seed % len(KINDS)]
        of = f" --pairs {options.pairs}" if options.pairs else ""
        again = f".venv/bin/python tests/benchmarks/change.py --histories 1 --seed {seed} --commits {options.commits}{of}"
        history = History(engine.session, f"lake.h.t{seed}", seed, version, mode)
        began = perf_counter()
        try:
            steps.update(history.commits(options.commits))
            writing += perf_counter() - began
            (table,) = catalog.load([TableIdentifier("lake", ("h",), f"t{seed}")]).values()
            assert isinstance(table, TableState), table
            checker = Checker(spark=engine.session, catalog=catalog, table=table)
            checked = checker.pairs(options.pairs, seed)
            pairs += len(checked)
            wrong = checker.wrong(checked)
            kinds.update(checker.kinds)
        except Exception as error:  # noqa: BLE001  a long run goes on
            wrong = {(0, 0): f"{type(error).__name__}: {str(error)[:1500]}"}
        if wrong:
            failed += 1
            pair, what = next(iter(wrong.items()))
            print(f"FAILED: v{version} {mode}: {len(wrong)} pairs, {pair[0]} -> {pair[1]}: {what[:1500]}\n  {again}")
            if options.histories == 1:
                print("\n".join(history.log))
        done += 1
        engine.session.sql(f"DROP TABLE IF EXISTS lake.h.t{seed} PURGE")
        if done % 10 == 0:
            print(f"{done} histories, {pairs} pairs, {failed} failed, {perf_counter() - start:.0f} s", flush=True)
    print(
        f"{done} histories, {pairs} pairs, {failed} histories failed, {perf_counter() - start:.0f} s ({writing:.0f} s of it to write them)"
    )
    print("steps:", dict(steps.most_common()))
    print("sides:", dict(kinds.most_common()))
    engine.close()
    return 1 if failed else 0


def timing(root: Path) -> int:
    from behaviour.large import MANIFESTS, timed

    for how in ("append", "rewrite", "delete"):
        seconds, change, total = timed(root / how, how)
        share = change.manifest_bytes_read / total
        print(f"{how}: {seconds * 1000:.0f} ms, {change.manifests_read} of {MANIFESTS} manifests, {share:.2%} of {total} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
