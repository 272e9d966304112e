"""artifacts -> files below target/, each written whole or not at all."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mvbuild.graph.definition import definition
from mvbuild.graph.model import Graph, ModelNode

if TYPE_CHECKING:
    from mvbuild.refresh.result import RunResult


def write_json(path: Path, content: Mapping[str, Any]) -> None:
    write_text(path, [json.dumps(content, default=str)])


def write_text(path: Path, pieces: Iterable[str]) -> None:
    """Through a temporary file beside it, so that a reader never sees half a file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    with temporary.open("w", encoding="utf-8") as file:
        file.writelines(pieces)
    temporary.replace(path)


def write_compiled(graph: Graph, is_same: Callable[[ModelNode], bool] = lambda _: False) -> None:
    """target/compiled/<project>/models/...: each model's definition as it goes into the catalog. Unchanged files are left alone.

    `is_same`: whether what stands there is of the same model, if anything does.
    """
    folder = graph.project.target_path / "compiled" / graph.project.name
    for node in graph.models:
        path = folder / node.model.file.path
        if is_same(node) and path.is_file():
            continue
        text = definition(graph, node).text.rstrip() + "\n"
        try:
            is_there = path.read_text(encoding="utf-8") == text
        except (FileNotFoundError, UnicodeDecodeError):
            is_there = False
        if not is_there:
            write_text(path, [text])


def write_executed(graph: Graph, result: RunResult) -> None:
    """target/run/<project>/models/...: the SQL that the engine ran, with its pinned snapshots."""
    for outcome in result.results:
        node = graph.nodes[outcome.node]
        if isinstance(node, ModelNode) and outcome.sql is not None:
            write_text(graph.project.target_path / "run" / graph.project.name / node.model.file.path, [outcome.sql.rstrip() + "\n"])
