"""Graph -> the files below target/compiled, and the fingerprint of each model; several processes share the work if there are many."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from mvbuild.artifacts.files import Stamp, stamp_of, write_text
from mvbuild.graph.definition import definition, fingerprint_key, fingerprint_of
from mvbuild.graph.model import Graph, ModelNode, NodeId
from mvbuild.parse.fingerprint import fingerprint
from mvbuild.workers import Workers

FEWEST = 1_000
"""With this many models, another process pays off."""
_Task = tuple[str, str, bool]
"""A path below the folder, the definition that belongs there, and whether its fingerprint is needed too."""


def write_compiled(graph: Graph, known: Mapping[NodeId, Stamp], workers: Workers) -> Iterator[tuple[NodeId, Stamp]]:
    """Write target/compiled/<project>/models/...: each model's definition as it goes into the catalog. Unchanged files are not written.

    `known`: the stamps of files that an earlier run wrote with the same content. Yields their current stamps, one model after the other.
    From then on, the fingerprint of the model is known.
    """
    folder = graph.project.target_path / "compiled" / graph.project.name
    below = f"{folder}{os.sep}"  # a run with nothing to do looks at thousands: joining a Path takes as long as its file
    new: list[ModelNode] = []
    for node in graph.models:
        if node.id in graph.undefined:
            continue
        stamp = known.get(node.id)
        if stamp is not None and stamp == _stamp(below + node.model.file.path):
            yield node.id, stamp
        else:
            new.append(node)
    helpers = workers if len(new) >= FEWEST else Workers(1)
    for at, found in helpers.shared(write_models, folder, _Tasks(graph, new)):
        node = new[at]
        if found is None:
            fingerprint_of(graph, node)
            yield node.id, _write(folder / node.model.file.path, definition(graph, node).text)
            continue
        stamp, made = found
        if made is not None:
            graph.project.cache.fingerprints.put(fingerprint_key(definition(graph, node)), made)
        yield node.id, stamp


class _Tasks(Sequence[_Task]):
    """The tasks; each one is made when a process is ready for it."""

    def __init__(self, graph: Graph, nodes: Sequence[ModelNode]) -> None:
        self._graph, self._nodes = graph, nodes

    def __len__(self) -> int:
        return len(self._nodes)

    def __getitem__(self, at: Any) -> Any:
        node = self._nodes[at]
        sql = definition(self._graph, node)
        return node.model.file.path, sql.text, self._graph.project.cache.fingerprints.get(fingerprint_key(sql)) is None


def write_models(folder: Path, tasks: Sequence[_Task]) -> list[tuple[Stamp, str | None]]:
    """The function that another process runs."""
    return [(_write(folder / path, text), fingerprint(text) if wanted else None) for path, text, wanted in tasks]


def _write(path: Path, text: str) -> Stamp:
    content = text.rstrip() + "\n"
    with suppress(FileNotFoundError, NotADirectoryError, UnicodeDecodeError):
        stamp = stamp_of(path)
        if path.read_text(encoding="utf-8") == content:
            return stamp
    return write_text(path, [content])


def _stamp(path: str) -> Stamp | None:
    with suppress(FileNotFoundError, NotADirectoryError):
        return stamp_of(path)
    return None
