"""A synthetic project of N MVs -> the seconds of each stage of `mvbuild plan`, all stale and all fresh, on a catalog in memory.

    .venv/bin/python tests/benchmarks/scale.py [--models 1000] [--profile STAGE]

Every MV joins a base table with two MVs of the layer above; ten layers. The engine computes nothing, so that a run is only what mvbuild does.
"""

from __future__ import annotations

import argparse
import cProfile
import pstats
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE.parent.parent / "compiler")]

from mvbuild import api  # noqa: E402
from mvbuild.artifacts.manifest import manifest  # noqa: E402
from mvbuild.freshness.observe import observe  # noqa: E402
from mvbuild.freshness.rules import judge  # noqa: E402
from mvbuild.graph.resolve import build  # noqa: E402
from mvbuild.parse.project import parse_project  # noqa: E402
from mvbuild.plan.build import build_plan  # noqa: E402
from mvbuild.project.load import load_project  # noqa: E402
from mvbuild.selection.select import select  # noqa: E402
from mvbuild.workers import Workers  # noqa: E402
from unit.worlds import Shop, base_table, write_project  # noqa: E402

LAYERS = 10


def files(models: int) -> dict[str, str]:
    found = {"mvbuild.yml": "name: wide\n"}
    width = max(1, models // LAYERS)
    for number in range(models):
        layer, place = divmod(number, width)
        reads = [f"raw.t{place % 50}"]
        if layer:
            reads += [f"{{{{ ref('m{(layer - 1) * width + (place + step) % width}') }}}}" for step in range(2)]
        joins = "".join(f" JOIN {table} AS j{n} ON a.id = j{n}.id" for n, table in enumerate(reads[1:]))
        name, folder = f"m{number}", f"models/layer{layer}"
        found[f"{folder}/{name}.sql"] = f"SELECT a.id\nFROM {reads[0]} AS a{joins}\nWHERE a.id > {number}\n"
        found[f"{folder}/{name}.yml"] = f"models: [{{name: {name}, columns: [{{name: id, data_tests: [not_null]}}]}}]\n"
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", type=int, default=1000)
    parser.add_argument("--profile", default="", metavar="STAGE")
    options = parser.parse_args()

    def timed(name: str, action: Callable[[], Any]) -> Any:
        began = perf_counter()
        if options.profile and options.profile in name:
            profile = cProfile.Profile()
            result = profile.runcall(action)
            pstats.Stats(profile).sort_stats("cumulative").print_stats(45)
        else:
            result = action()
        print(f"{name:>16}: {perf_counter() - began:7.2f} s", flush=True)
        return result

    with tempfile.TemporaryDirectory(prefix="mvbuild-scale-") as directory:
        shop = Shop(write_project(Path(directory), files(options.models)))
        for number in range(50):
            base_table(shop.catalog, f"raw.t{number}")
        project = timed("load", lambda: load_project(shop.root, target=None, vars={}, env={}))
        parsed = timed("parse", lambda: parse_project(project, env={}, workers=Workers(1)))
        graph = timed("graph", lambda: build(project, parsed))
        for state in ("stale", "fresh"):
            world = timed(f"observe, {state}", lambda: observe(graph, shop.catalog, at_ms=0))
            timed(f"judge, {state}", lambda world=world: judge(world))
            chosen, _ = timed(f"select, {state}", lambda world=world: select(world.graph, ["+m999", "tag:x", "m1+"], []))
            chosen = frozenset(n.id for n in world.graph.models)
            planned = timed(f"plan, {state}", lambda world=world, chosen=chosen: build_plan(world, chosen))
            result = timed(f"run, {state}", lambda planned=planned: shop.run(planned=planned, threads=4))
            assert result.ok
            assert {r.status for r in result.results} == {"success" if state == "stale" else "reused"}
            timed(f"manifest, {state}", lambda world=world: manifest(world.graph, version="", generated_at="", invocation_id=""))
            timed(f"artifacts, {state}", lambda world=world, result=result: api.write_artifacts(world.graph, result))
    return 0


if __name__ == "__main__":
    sys.exit(main())
