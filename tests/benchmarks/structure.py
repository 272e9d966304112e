"""git refs -> a table for each: lines and modules of every package, the modules with the most imports, the longest module, cycles.

.venv/bin/python tests/benchmarks/structure.py a4ad5e5 HEAD
"""

from __future__ import annotations

import argparse
import io
import json
import subprocess
import sys
import tarfile
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).parents[2]
_MOST = 10
_IMPORTS = """
import grimp, json
graph = grimp.build_graph("mvbuild", cache_dir=None)
print(json.dumps({name: sorted(graph.find_modules_directly_imported_by(name)) for name in sorted(graph.modules)}))
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Structure:
    """The code of one ref. Imports are of other modules of mvbuild, counted once a module."""

    lines: Mapping[str, int]
    """Module -> lines."""
    imports: Mapping[str, tuple[str, ...]]

    @property
    def packages(self) -> Mapping[str, tuple[int, int]]:
        """Package, or module at the top -> modules and lines."""
        modules = Counter(_package(name) for name in self.lines)
        lines: Counter[str] = Counter()
        for name, count in self.lines.items():
            lines[_package(name)] += count
        return {package: (modules[package], lines[package]) for package in sorted(modules)}

    @property
    def most_imports(self) -> list[tuple[str, int]]:
        return Counter({name: len(read) for name, read in self.imports.items()}).most_common(_MOST)

    @property
    def longest(self) -> tuple[str, int]:
        return max(self.lines.items(), key=lambda item: item[1])

    @property
    def cycles(self) -> list[list[str]]:
        return [sorted(group) for group in _components(self.imports) if len(group) > 1]


def structure(ref: str) -> Structure:
    """Reads the files of the ref, and asks grimp for its imports in a new process."""
    packed = subprocess.run(["git", "archive", ref, "compiler"], cwd=ROOT, check=True, capture_output=True).stdout
    with TemporaryDirectory() as folder:
        with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
            archive.extractall(folder, filter="data")
        code = Path(folder, "compiler")
        lines = {_module(path.relative_to(code)): len(path.read_text("utf-8").splitlines()) for path in sorted(code.rglob("*.py"))}
        found = subprocess.run([sys.executable, "-c", _IMPORTS], env={"PYTHONPATH": str(code)}, check=True, capture_output=True)
    imports = {_short(name): tuple(_short(read) for read in read_all) for name, read_all in json.loads(found.stdout).items()}
    return Structure(lines=lines, imports=imports)


def _module(path: Path) -> str:
    return _short(".".join(path.with_suffix("").parts).removesuffix(".__init__"))


def _short(name: str) -> str:
    return name.removeprefix("mvbuild").removeprefix(".") or "mvbuild"


def _package(module: str) -> str:
    return module.partition(".")[0]


def _components(edges: Mapping[str, Iterable[str]]) -> Iterator[set[str]]:
    """Strongly connected components (Kosaraju): depth first, and again on the reversed edges."""
    order: list[str] = []
    seen: set[str] = set()
    for start in edges:
        _visit(start, edges, seen, order)
    reverse: dict[str, list[str]] = {}
    for name, read_all in edges.items():
        for read in read_all:
            reverse.setdefault(read, []).append(name)
    seen = set()
    for start in reversed(order):
        group: list[str] = []
        _visit(start, reverse, seen, group)
        if group:
            yield set(group)


def _visit(start: str, edges: Mapping[str, Iterable[str]], seen: set[str], order: list[str]) -> None:
    """Append everything that can be reached and was not seen, each after what it leads to."""
    if start in seen:
        return
    seen.add(start)
    stack = [(start, iter(edges.get(start, ())))]
    while stack:
        name, following = stack[-1]
        found = next((other for other in following if other not in seen), None)
        if found is None:
            order.append(name)
            stack.pop()
        else:
            seen.add(found)
            stack.append((found, iter(edges.get(found, ()))))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("refs", nargs="+", metavar="REF", help="commits, tags or branches")
    refs = parser.parse_args().refs
    found = [structure(ref) for ref in refs]
    print("| package |" + "".join(f" {ref}: modules | lines |" for ref in refs))
    print("|---|" + "---:|---:|" * len(refs))
    for package in sorted({package for one in found for package in one.packages}):
        counts = [one.packages.get(package, (0, 0)) for one in found]
        print(f"| `{package}` |" + "".join(f" {modules:,} | {lines:,} |" for modules, lines in counts))
    print("| all |" + "".join(f" {len(one.lines):,} | {sum(one.lines.values()):,} |" for one in found))
    for ref, one in zip(refs, found, strict=True):
        name, lines = one.longest
        print(f"\n{ref}: the longest module is `{name}` ({lines} lines); cycles between modules: {one.cycles or 'none'}")
        print("\n| module | imports |\n|---|---:|")
        for name, count in one.most_imports:
            print(f"| `{name}` | {count} |")


if __name__ == "__main__":
    main()
