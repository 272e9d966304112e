"""Column lineage of a synthetic project: layers of joins and aggregates, bound to schemas.

    .venv/bin/python tests/benchmarks/lineage.py [--models 1000]

Prints what compiling takes, and what binding and tracing all columns to base columns takes on top of it.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path
from time import perf_counter, process_time

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent.parent / "compiler")]

from wide_project import lock_sources, write_project  # noqa: E402

from mvbuild import api  # noqa: E402
from mvbuild.lineage.bind import bind  # noqa: E402
from mvbuild.lineage.lock import of_lock, read_lock  # noqa: E402


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", type=int, default=1000)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        root = Path(directory) / "wide"
        write_project(root, options.models)
        lock_sources(root)
        started, used = perf_counter(), process_time()
        graph = api.compile(root)
        print(f"compile: {perf_counter() - started:.1f} s ({process_time() - used:.1f} s of CPU)")
        started, used = perf_counter(), process_time()
        tables = read_lock(graph)
        assert tables is not None
        bound = bind(graph, of_lock(tables, graph))
        middle = process_time()
        assert not bound.diagnostics, bound.diagnostics[0]
        origins = sum(len(bound.origins(id, column.name)) for id in bound.lineage for column in bound.columns[id])
        indirect = sum(len(bound.indirect(id)) for id in bound.lineage)
        wall, cpu = perf_counter() - started, process_time() - used
        print(f"lineage: {wall:.1f} s ({cpu:.1f} s of CPU, {process_time() - middle:.1f} of them for the way to base columns)")
        print(
            f"{options.models} models, {sum(map(len, bound.columns.values()))} columns, {origins} origins, {indirect} that decide on rows"
        )
        print(f"{1000 * cpu / options.models:.2f} ms of CPU a model: {10_000 * cpu / options.models:.0f} s for 10,000")


if __name__ == "__main__":
    main()
