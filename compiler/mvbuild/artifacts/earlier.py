"""Graph + what an earlier run wrote below target/ -> the parts that are still the same, and are not made again."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path

from mvbuild.artifacts.files import Stamp
from mvbuild.graph.model import Graph, NodeId

_KEY = "manifest"


@dataclass(frozen=True, kw_only=True)
class Earlier:
    """Artifacts made from the same files, except those of some models."""

    stale: frozenset[NodeId]
    """The models whose entries in the manifest have another text."""
    stamps: Mapping[NodeId, Stamp]
    """The stamps of the files below target/compiled that contain the current SQL."""
    lines: Iterator[str] = field(repr=False)

    def entry(self, id: NodeId) -> str | None:
        """The entry of a node or test; to be called in the order of the graph."""
        line, name = next(self.lines, ""), f"{json.dumps(id)}: "
        if id in self.stale or not line.startswith(name):
            return None
        return line[len(name) :].rstrip("\n").removesuffix(",")


class Checksum:
    """The checksum of a text while it is written: when it is done, the file may already be another run's."""

    def __init__(self) -> None:
        self._hash = blake2b(digest_size=16)

    def of(self, pieces: Iterable[str]) -> Iterator[str]:
        for piece in pieces:
            self._hash.update(piece.encode())
            yield piece

    def __str__(self) -> str:
        return self._hash.hexdigest()


def earlier_artifacts(graph: Graph, manifest: Path) -> Earlier | None:
    """The artifacts of an earlier run; None if there is no such manifest, or it was changed, so that everything has to be made."""
    text = graph.project.cache.artifacts.get(_KEY)
    if text is None or graph.outlined is None or not _is_as_compiled(graph):
        return None
    try:
        known = json.loads(text)
        if known["graph"] != graph.outlined.key:
            return None
        stale = graph.outlined.changed.union(known["changed"])
        stamps = {id: (time, size) for id, (time, size) in known["compiled"].items() if id not in stale}
        lines = _lines(manifest, known["checksum"])
    except (OSError, ValueError, LookupError, TypeError, AttributeError):
        return None
    return Earlier(stale=stale, stamps=stamps, lines=lines) if lines is not None else None


def remember_artifacts(graph: Graph, checksum: Checksum, stamps: Mapping[NodeId, Stamp]) -> None:
    """Called after everything was written. The next run compares checksum and stamps with the files that it finds: if another run wrote
    some of them in the meantime, or was killed halfway, they are made again."""
    if graph.outlined is None or not _is_as_compiled(graph):
        return
    known = graph.outlined
    content = {"graph": known.key, "changed": sorted(known.changed), "checksum": str(checksum), "compiled": stamps}
    graph.project.cache.artifacts.put(_KEY, json.dumps(content, separators=(",", ":")))


def _is_as_compiled(graph: Graph) -> bool:
    """Whether the graph is unchanged: a catalog may have changed nodes, by expanding views or by the case of names."""
    compiled = graph.outlined.nodes.values() if graph.outlined else ()
    return len(graph.nodes) == len(compiled) and all(a is b for a, b in zip(graph.nodes.values(), compiled, strict=True))


def _lines(manifest: Path, checksum: str) -> Iterator[str] | None:
    """The entries of the file with that checksum, even if another run replaces the file in the meantime."""
    file = manifest.open(encoding="utf-8", newline="\n")
    found = blake2b(digest_size=16)
    while block := file.buffer.read(1 << 20):
        found.update(block)
    if found.hexdigest() != checksum:
        file.close()
        return None
    file.seek(0)
    return _entries(file)


def _entries(file: Iterable[str]) -> Iterator[str]:
    """Everything before the entries is on the first line."""
    lines = iter(file)
    next(lines, None)
    yield from lines
