"""Plays three batches of inserts, updates and late rows, and compares dbt's incremental table with the query of the MV.

    python tests/benchmarks/dbt_batches.py                             # the models of the tests
    python tests/benchmarks/dbt_batches.py --project jaffle-shop spellbook --clones DIR
    python tests/benchmarks/dbt_batches.py --project ../shop --trials 40

For each incremental model that `mvbuild import dbt` takes: dbt's query is run over the first batch, and merged twice more with is_incremental()
as the strategy says; the MV's query is run over all rows at the end. What must be equal is written in docs/proofs/dbt-batches.md. A model is
run on DuckDB, and on a local Spark if DuckDB cannot run it. A project is one of tests/benchmarks/dbt_scorecards.py, by a part of its name, or a folder.
Exit code 1 if a model differs and the import does not say so.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

TESTS = Path(__file__).parents[1]
sys.path[:0] = [str(TESTS), str(TESTS.parent / "compiler"), str(Path(__file__).parent)]

import yaml  # noqa: E402
from dbt_scorecards import PROJECTS, Public, source_of, unpacked  # noqa: E402

from mvbuild.dbt.takeover import Takeover, take_over  # noqa: E402
from unit.dbt.batch_engines import DuckDb, Engine, Spark  # noqa: E402
from unit.dbt.batch_runs import Played, play  # noqa: E402
from unit.dbt.incremental_cases import RUN_DAYS, taken_models  # noqa: E402
from unit.dbt.projects import taken  # noqa: E402


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--project", nargs="*", default=[], help="public projects or folders, instead of the models of the tests")
    parser.add_argument("--clones", type=Path, help="a folder with clones, instead of cloning from GitHub")
    parser.add_argument("--vars", default="{}", help="variables of a folder")
    parser.add_argument("--trials", type=int, default=12, help="histories of each kind for each model")
    parser.add_argument(
        "--engine", choices=["duckdb", "spark", "both"], default="both", help="default: DuckDB, then Spark for what is left"
    )
    parser.add_argument("--function", action="append", default=[], help="a function that a project's Spark has, as after CREATE FUNCTION")
    parser.add_argument("--model", nargs="*", default=[], help="only models whose name contains one of these")
    given = parser.parse_args()
    of_engines: dict[str, list[Callable[[], Engine]]] = {"duckdb": [DuckDb], "spark": [lambda: Spark(given.function)]}
    engines = of_engines.get(given.engine) or [engine for each in of_engines.values() for engine in each]
    verdicts: Counter[str] = Counter()
    failed = False
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="mvbuild-batches-") as work:
        for where, takeover in _imports(given, Path(work)):
            for model in takeover.incremental:
                name = f"{where}: {model.item.name}" if given.project else where
                if model.item.verdict not in ("changed", "unchanged") or (given.model and not any(part in name for part in given.model)):
                    continue
                played = play(model, given.trials, takeover.card.adapter, engines=engines)
                verdicts[f"{played.verdict} on {played.engine}" if played.changed else played.verdict] += 1
                print(f"{played.verdict:13} {played.engine:6} {name}: {_words(played)}", flush=True)
                failed |= bool(played.differs)
    print(f"\n{', '.join(f'{n} {verdict}' for verdict, n in sorted(verdicts.items()))}; {time.monotonic() - began:.0f} s")
    return int(failed)


def _imports(given: argparse.Namespace, work: Path) -> Iterator[tuple[str, Takeover]]:
    if not given.project:
        for at, (name, files) in enumerate(taken_models().items()):
            yield name, taken(work / str(at), files, vars=RUN_DAYS)
    for name in given.project:
        if Path(name, "dbt_project.yml").exists():
            yield name, take_over(Path(name), vars=yaml.safe_load(given.vars), env=dict(os.environ))
            continue
        public = next(p for p in PROJECTS if name in p.name)
        root = unpacked(public, source_of(public, given.clones, work / "clone" / name), work / "projects" / name)
        yield public.name, take_over(root, vars=_vars(public), env={**os.environ, **dict(public.env)})


def _vars(public: Public) -> Mapping[str, Any]:
    found: Mapping[str, Any] = yaml.safe_load(public.options[1]) if public.options[:1] == ("--vars",) else {}
    return found


def _words(played: Played) -> str:
    if not played.changed and not played.differs:
        return played.reason
    counts = ", ".join(f"{n} {kind}" for kind, n in played.counts.items())
    said = "; ".join(f"{kind}: {text}" for kind, text in {**played.differs, **played.said}.items())
    stopped = f"; stopped: {played.reason}" if played.reason else ""
    return f"{counts}; {played.changed} changed the result{'; ' + said if said else ''}{stopped}"


if __name__ == "__main__":
    code = main()
    sys.stdout.flush()
    # A query that took too long may still run in its thread, and DuckDB aborts a process that ends meanwhile.
    os._exit(code)
