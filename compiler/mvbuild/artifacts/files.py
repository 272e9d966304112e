"""artifacts -> files below target/, each written whole or not at all."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mvbuild.graph.definition import definition
from mvbuild.graph.model import Graph, ModelNode, NodeId

if TYPE_CHECKING:
    from mvbuild.refresh.result import RunResult

Stamp = tuple[int, int]
"""When a file was written, in nanoseconds, and its size in bytes."""


def write_json(path: Path, content: Mapping[str, Any]) -> None:
    write_text(path, [json.dumps(content, default=str)])


def write_text(path: Path, pieces: Iterable[str]) -> Stamp:
    """Through a temporary file beside it, so that a reader never sees half a file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    with temporary.open("w", encoding="utf-8") as file:
        file.writelines(pieces)
    stamp = _stamp(temporary)
    temporary.replace(path)
    return stamp


def write_compiled(graph: Graph, known: Mapping[NodeId, Stamp]) -> dict[NodeId, Stamp]:
    """target/compiled/<project>/models/...: each model's definition as it goes into the catalog. Unchanged files are left alone.

    `known`: how files stood when an earlier run had written the same to them. Given back is how all of them stand now.
    """
    folder = graph.project.target_path / "compiled" / graph.project.name
    stamps: dict[NodeId, Stamp] = {}
    for node in graph.models:
        path = folder / node.model.file.path
        try:
            stamps[node.id] = _stamp(path)
            if known.get(node.id) == stamps[node.id] or path.read_text(encoding="utf-8") == _compiled(graph, node):
                continue
        except (FileNotFoundError, NotADirectoryError, UnicodeDecodeError):
            pass
        stamps[node.id] = write_text(path, [_compiled(graph, node)])
    return stamps


def _compiled(graph: Graph, node: ModelNode) -> str:
    return definition(graph, node).text.rstrip() + "\n"


def _stamp(path: Path) -> Stamp:
    found = path.stat()
    return found.st_mtime_ns, found.st_size


def write_executed(graph: Graph, result: RunResult) -> None:
    """target/run/<project>/models/...: the SQL that the engine ran, with its pinned snapshots."""
    for outcome in result.results:
        node = graph.nodes[outcome.node]
        if isinstance(node, ModelNode) and outcome.sql is not None:
            write_text(graph.project.target_path / "run" / graph.project.name / node.model.file.path, [outcome.sql.rstrip() + "\n"])
