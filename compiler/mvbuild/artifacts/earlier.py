"""Graph + the manifest of an earlier run -> the entries that are the same now, which are copied and not made again."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path

from mvbuild.graph.model import Graph, NodeId
from mvbuild.project.kept import Kept

NAME = "manifest-cache"


@dataclass(frozen=True, kw_only=True)
class Earlier:
    """A manifest that was made of the same files, but for those of some models."""

    stale: frozenset[NodeId]
    """The models whose entries, and whose files below target/compiled, are of another text."""
    lines: Iterator[str] = field(repr=False)

    def entry(self, id: NodeId) -> str | None:
        """To be asked for each node and test, in the order of the graph."""
        line, name = next(self.lines, ""), f"{json.dumps(id)}: "
        if id in self.stale or not line.startswith(name):
            return None
        return line[len(name) :].rstrip("\n").removesuffix(",")

    def is_same(self, id: NodeId) -> bool:
        return id not in self.stale


def earlier_manifest(graph: Graph, path: Path) -> Earlier | None:
    """None where all has to be made: there is no such manifest, or it is not as it was written."""
    outlined = graph.outlined
    if outlined is None or len(graph.nodes) != len(outlined.nodes):
        return None
    if any(now is not then for now, then in zip(graph.nodes.values(), outlined.nodes.values(), strict=True)):
        return None
    text = Kept(path.with_name(NAME)).get(outlined.key)
    if text is None:
        return None
    try:
        known = json.loads(text)
        if known["checksum"] != _checksum(path):
            return None
        return Earlier(stale=outlined.changed.union(known["changed"]), lines=_lines(path))
    except (OSError, ValueError, LookupError, TypeError):
        return None


def forget_manifest(path: Path) -> None:
    """Before anything is written: a run that is killed half-way leaves nothing that counts."""
    with suppress(FileNotFoundError, NotADirectoryError):
        path.with_name(NAME).unlink()


def remember_manifest(graph: Graph, path: Path) -> None:
    """After everything was written."""
    if graph.outlined is not None:
        kept = Kept(path.with_name(NAME))
        kept.put(graph.outlined.key, json.dumps({"changed": sorted(graph.outlined.changed), "checksum": _checksum(path)}))
        kept.save()


def _lines(path: Path) -> Iterator[str]:
    """What stands before the entries is the first line."""
    with path.open(encoding="utf-8") as file:
        next(file, None)
        yield from file


def _checksum(path: Path) -> str:
    check = blake2b(digest_size=16)
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            check.update(block)
    return check.hexdigest()
