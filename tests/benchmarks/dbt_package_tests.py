"""Runs the integration tests of dbt_utils and dbt_expectations in mvbuild, on Spark, and counts those that pass.

    python tests/benchmarks/dbt_package_tests.py                       # both; clones them from GitHub
    python tests/benchmarks/dbt_package_tests.py dbt-utils --clones DIR

dbt_utils: `mvbuild import dbt` takes its project of integration tests over, and `mvbuild build` runs the result, with the macros that mvbuild has.
dbt_expectations: its models and tests are those of an mvbuild project that installs dbt_expectations and dbt_date as packages; each test is
compiled and run. What each package disables for Spark by itself is not counted. docs/proofs/dbt-packages.md has the result.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path[:0] = [str(Path(__file__).parents[2] / "compiler"), str(Path(__file__).parent)]

import yaml  # noqa: E402
from dbt_scorecards import Public, files, source_of  # noqa: E402

from mvbuild import api  # noqa: E402
from mvbuild.api.dependencies import deps  # noqa: E402
from mvbuild.dbt.scorecard import Item  # noqa: E402
from mvbuild.dbt.takeover import take_over  # noqa: E402
from mvbuild.dbt.write import write  # noqa: E402
from mvbuild.diagnostics import Diagnostic, ProjectError  # noqa: E402
from mvbuild.refresh.result import RunResult  # noqa: E402

UTILS = Public(name="dbt-labs/dbt-utils", commit="700764ce")
EXPECTATIONS = Public(name="calogica/dbt-expectations", commit="c7dc2af8")
DATE = Public(name="calogica/dbt-date", commit="3580a09d")


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """Of the tests of one package: how many there are, and name -> why it was refused, or what it found."""

    package: str
    tests: int
    refused: dict[str, str]
    failed: dict[str, str]

    @property
    def passed(self) -> int:
        return self.tests - len(self.refused) - len(self.failed)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="a part of the name of each package; both without one")
    parser.add_argument("--clones", type=Path, help="a folder with clones, instead of cloning from GitHub")
    given = parser.parse_args()
    outcomes = []
    for package, run in ((UTILS, of_utils), (EXPECTATIONS, of_expectations)):
        if not given.names or any(name in package.name for name in given.names):
            with tempfile.TemporaryDirectory(prefix="mvbuild-packages-") as folder:
                began = time.monotonic()
                outcomes.append(run(Path(folder), given.clones))
                print(f"{package.name}: {time.monotonic() - began:.0f} s", file=sys.stderr)
    print("| package | tests | pass | fail | refused |\n|---|---|---|---|---|")
    for one in outcomes:
        print(f"| {one.package} | {one.tests} | {one.passed} | {len(one.failed)} | {len(one.refused)} |")
    for one in outcomes:
        for title, found in (("failed", one.failed), ("refused", one.refused)):
            print(*(f"\n{one.package}: {title}", *_by_cause(found)) if found else (), sep="\n")
    return 1 if any(one.failed for one in outcomes) else 0


def _by_cause(found: dict[str, str]) -> Iterable[str]:
    """Each cause with its tests, the most frequent first."""
    for cause, number in Counter(found.values()).most_common():
        yield f"  {number:3} {cause}: {', '.join(sorted(name for name, why in found.items() if why == cause))}"


# dbt_utils


def of_utils(work: Path, clones: Path | None) -> Outcome:
    checkout(UTILS, clones, work / "package", work)
    root = work / "package" / "integration_tests"
    spark = {"type": "spark", "method": "session", "schema": "tests", "host": "none"}
    (root / "profiles.yml").write_text(yaml.safe_dump({"integration_tests": {"target": "dev", "outputs": {"dev": spark}}}))
    found = take_over(root, env=dict(os.environ))
    tests = [item for item in found.card.items if item.kind == "test"]
    refused = {_place(item): _cause(item) for item in tests if item.verdict == "refused"}
    write(found.files, work / "project", root=root, force=False)
    return outcome("dbt_utils", len(tests), refused, api.run(work / "project", all_tests=True))


def _place(item: Item) -> str:
    """Several tests may have one name."""
    return f"{item.name} ({item.span})"


def _cause(item: Item) -> str:
    return f"[{item.shown[0].code}] {item.shown[0].message}"


# dbt_expectations

SCHEMA = "models/schema_tests/schema.yml"
INTERVALS = "{% macro spark__get_intervals_between(start_date, end_date, datepart) %}{{ return(10000) }}{% endmacro %}"
"""dbt_date asks the warehouse how long a spine is, and leaves out what is later than its end. So many intervals are enough for all of them."""


def of_expectations(work: Path, clones: Path | None) -> Outcome:
    for public in (EXPECTATIONS, DATE):
        checkout(public, clones, work / public.name.partition("/")[2], work)
    project = work / "project"
    shutil.copytree(work / "dbt-expectations" / "integration_tests" / "models", project / "models")
    described = yaml.safe_load((project / SCHEMA).read_text())
    (project / SCHEMA).unlink()
    settings = {"name": "dbt_expectations_integration_tests", "vars": {"dbt_date:time_zone": "America/Los_Angeles"}}
    write_yaml(project / "mvbuild.yml", settings)
    write_yaml(project / "packages.yml", {"packages": [{"local": "../dbt-expectations"}, {"local": "../dbt-date"}]})
    (project / "macros").mkdir()
    (project / "macros" / "intervals.sql").write_text(INTERVALS)
    deps(project)
    broken = remove_broken_models(project)
    tests = [Use(model=m["name"], column=c, test=t) for m in described["models"] for c, t in _uses(m)]
    refused, good = {}, []
    for number, use in enumerate(tests):
        wrong = f"its model {use.model}: {broken[use.model]}" if use.model in broken else compile_alone(project, use)
        if wrong == "disabled":
            continue
        if wrong:
            refused[f"{use.name} {number}"] = wrong
        else:
            good.append(use)
    write_yaml(project / SCHEMA, _described(good))
    return outcome("dbt_expectations", len(good) + len(refused), refused, api.run(project, all_tests=True))


@dataclass(frozen=True, kw_only=True)
class Use:
    """A test of a model or of one of its columns, as YAML has it."""

    model: str
    column: str | None
    test: Any

    @property
    def name(self) -> str:
        kind = self.test if isinstance(self.test, str) else next(iter(self.test))
        return f"{kind} of {self.model}{f'.{self.column}' if self.column else ''}"


def _uses(model: dict[str, Any]) -> Iterator[tuple[str | None, Any]]:
    yield from ((None, test) for test in model.get("tests", ()))
    for column in model.get("columns", ()):
        yield from ((column["name"], test) for test in column.get("tests", ()))


def _described(uses: Iterable[Use]) -> dict[str, Any]:
    models: dict[str, dict[str | None, list[Any]]] = {}
    for use in uses:
        models.setdefault(use.model, {}).setdefault(use.column, []).append(use.test)
    return {
        "models": [
            {
                "name": name,
                "tests": columns.get(None, []),
                "columns": [{"name": column, "tests": tests} for column, tests in columns.items() if column],
            }
            for name, columns in models.items()
        ]
    }


def remove_broken_models(project: Path) -> dict[str, str]:
    """Remove the models that do not compile, and those that read them. Name -> why."""
    found: dict[str, str] = {}
    while problems := compiled(project)[1]:
        files = {f.stem: f for f in (project / "models").rglob("*.sql")}
        for problem in problems:
            name = Path(problem.span.file.path).stem if problem.span else ""
            if name not in files:
                raise SystemExit(f"{problem.code} {problem.span}: {problem.message}")
            found.setdefault(name, problem.message)
            files[name].unlink(missing_ok=True)
    return found


def compile_alone(project: Path, use: Use) -> str:
    """Why a test does not compile, "disabled" if it is not one for Spark, or nothing."""
    write_yaml(project / SCHEMA, _described([use]))
    tests, problems = compiled(project)
    return f"[{problems[0].code}] {problems[0].message}" if problems else "" if tests else "disabled"


def compiled(project: Path) -> tuple[int, list[Diagnostic]]:
    """The number of its tests, and its errors."""
    try:
        graph = api.compile(project)
    except ProjectError as exc:
        return 0, [d for d in exc.diagnostics if d.severity == "error"]
    return len(graph.tests), [d for d in graph.problems if d.severity == "error"]


# Both


def checkout(public: Public, clones: Path | None, into: Path, work: Path) -> None:
    """The files of a package at its commit."""
    clone = work / "clones" / into.name
    clone.mkdir(parents=True)
    for path, content in files(source_of(public, clones, clone), public.commit):
        (into / path).parent.mkdir(parents=True, exist_ok=True)
        (into / path).write_bytes(content)


def write_yaml(path: Path, tree: Any) -> None:
    path.write_text(yaml.safe_dump(tree, sort_keys=False))


def outcome(package: str, tests: int, refused: dict[str, str], result: RunResult) -> Outcome:
    failed = {}
    for test in result.all_tests:
        if test.status in ("fail", "error", "skipped"):
            failed[f"{test.name} {test.id[-4:]}"] = f"{test.status}: {test.message}"[:160]
    for diagnostic in result.diagnostics:
        if diagnostic.severity == "error" and diagnostic.code != "test-failed":
            print(f"{diagnostic.code}: {diagnostic.message}", file=sys.stderr)
    for node in result.results:
        if node.status in ("error", "skipped"):
            print(f"{node.node}: {node.status}: {node.message}"[:300], file=sys.stderr)
    return Outcome(package=package, tests=tests, refused=refused, failed=failed)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except ProjectError as exc:
        sys.exit("\n".join(f"{d.code} {d.span}: {d.message}" for d in exc.diagnostics))
