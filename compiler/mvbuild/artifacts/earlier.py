"""Graph + what an earlier run wrote below target/ -> the parts that are still the same, and are not made again."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import IO, Any

from mvbuild.artifacts.files import Stamp, stamp_of
from mvbuild.artifacts.run_results import plain_beginning
from mvbuild.dataclass import dataclass
from mvbuild.diagnostics import ProjectError
from mvbuild.graph.model import Graph, NodeId

_MANIFEST = "manifest"
_RESULTS = "run_results"
_BLOCK = 1 << 20


@dataclass(frozen=True, kw_only=True)
class Earlier:
    """Artifacts made from the same files, except those of some models."""

    stale: frozenset[NodeId]
    """The models whose entries in the manifest have another text."""
    stamps: Mapping[NodeId, Stamp]
    """The stamps of the files below target/compiled that contain the current SQL."""
    has_units: bool
    """Whether the manifest also depends on files of unit tests."""
    file: IO[str] = field(repr=False)
    """The manifest, at its beginning."""
    lines: Iterator[str] = field(repr=False)

    def entry(self, id: NodeId) -> str | None:
        """The entry of a node or test; to be called in the order of the graph."""
        line, name = next(self.lines, ""), f"{json.dumps(id)}: "
        if id in self.stale or not line.startswith(name):
            return None
        return line[len(name) :].rstrip("\n").removesuffix(",")

    def again(self, **metadata: str) -> Iterator[str] | None:
        """The manifest with other `metadata`, in pieces; None if it has to be made from the graph, entry by entry."""
        if self.stale or self.has_units:
            return None
        # Everything before the entries is on the first line.
        head, nodes, end = self.file.readline().partition(_NODES)
        return self._again({**json.loads(f"{head}}}")["metadata"], **metadata}, nodes) if nodes and not end else None

    def _again(self, metadata: Mapping[str, Any], nodes: str) -> Iterator[str]:
        yield f'{{"metadata": {json.dumps(metadata)}{nodes}'
        while block := self.file.read(_BLOCK):
            yield block


_NODES = ', "nodes": {\n'


def earlier_artifacts(graph: Graph, manifest: Path) -> Earlier | None:
    """The artifacts of an earlier run; None if there is no such manifest, or it was changed, so that everything has to be made."""
    known = _known(graph, _MANIFEST)
    if known is None or graph.outlined is None:
        return None
    try:
        stale = graph.outlined.changed.union(known["changed"])
        stamps = {id: (time, size) for id, (time, size) in known["compiled"].items() if id not in stale}
        file = _opened(manifest, known["stamp"])
        has_units = known["units"]
    except (OSError, ValueError, LookupError, TypeError, AttributeError):
        return None
    return Earlier(stale=stale, stamps=stamps, has_units=has_units, file=file, lines=_entries(file)) if file is not None else None


def remember_artifacts(graph: Graph, stamp: Stamp, stamps: Mapping[NodeId, Stamp], *, has_units: bool) -> None:
    """Called after everything was written. The next run compares the stamps with the files that it finds: if another run wrote some of
    them in the meantime, or was killed halfway, they are made again. `stamp`: that of the manifest."""
    if graph.outlined is None:
        return
    content = {"changed": sorted(graph.outlined.changed), "stamp": stamp, "compiled": stamps, "units": has_units}
    _remember(graph, _MANIFEST, content)


def has_unit_tests(graph: Graph) -> bool:
    """Whether a file that the graph does not depend on may change the manifest: the rows of a unit test."""
    try:
        return bool(graph.unit_tests)
    except (ProjectError, OSError):
        return True


def earlier_results(graph: Graph, path: Path) -> Mapping[str, str]:
    """The entries of nodes with which an earlier run had nothing to do, by how they begin."""
    known = _known(graph, _RESULTS)
    if known is None or graph.outlined is None or graph.outlined.changed or known.get("changed"):
        return {}
    try:
        file = _opened(path, known["stamp"])
    except (OSError, ValueError, LookupError, TypeError):
        return {}
    if file is None:
        return {}
    plain = plain_beginning()
    with file:
        lines = (line.partition(plain) for line in file)
        return {head: f"{head}{found}{rest}".rstrip("\n").removesuffix(",") for head, found, rest in lines if found}


def remember_results(graph: Graph, stamp: Stamp) -> None:
    """Called after run_results.json was written."""
    if graph.outlined is not None:
        _remember(graph, _RESULTS, {"changed": sorted(graph.outlined.changed), "stamp": stamp})


def _known(graph: Graph, name: str) -> dict[str, Any] | None:
    """What was remembered of an artifact of this very graph."""
    text = graph.project.cache.artifacts.get(name)
    if text is None or graph.outlined is None or not _is_as_compiled(graph):
        return None
    try:
        known: dict[str, Any] = json.loads(text)
        return known if known["graph"] == graph.outlined.key else None
    except (ValueError, LookupError, TypeError):
        return None


def _remember(graph: Graph, name: str, content: Mapping[str, Any]) -> None:
    if graph.outlined is not None and _is_as_compiled(graph):
        text = json.dumps({"graph": graph.outlined.key, **content}, separators=(",", ":"))
        graph.project.cache.artifacts.put(name, text)


def _is_as_compiled(graph: Graph) -> bool:
    """Whether the graph is unchanged: a catalog may have changed nodes, by expanding views or by the case of names."""
    compiled = graph.outlined.nodes.values() if graph.outlined else ()
    return len(graph.nodes) == len(compiled) and all(a is b for a, b in zip(graph.nodes.values(), compiled, strict=True))


def _opened(path: Path, stamp: Sequence[int]) -> IO[str] | None:
    """The file with that stamp, even if another run replaces it in the meantime."""
    file = path.open(encoding="utf-8", newline="\n")
    if list(stamp_of(file.fileno())) == stamp:
        return file
    file.close()
    return None


def _entries(file: Iterable[str]) -> Iterator[str]:
    """Everything before the entries is on the first line."""
    lines = iter(file)
    next(lines, None)
    yield from lines
