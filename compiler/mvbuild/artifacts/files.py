"""artifacts -> files below target/, each written completely or not at all."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mvbuild.graph.model import Graph, ModelNode

if TYPE_CHECKING:
    from mvbuild.refresh.result import RunResult

Stamp = tuple[int, int]
"""When a file was written, in nanoseconds, and its size in bytes."""


def write_json(path: Path, content: Mapping[str, Any]) -> None:
    write_text(path, [json.dumps(content, default=str)])


def write_text(path: Path, pieces: Iterable[str]) -> Stamp:
    """Through a temporary file beside it, so that a reader never sees half a file."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        file = temporary.open("w", encoding="utf-8")
    except FileNotFoundError:
        path.parent.mkdir(parents=True, exist_ok=True)
        file = temporary.open("w", encoding="utf-8")
    try:
        with file:
            file.writelines(pieces)
        stamp = stamp_of(temporary)
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    return stamp


def stamp_of(path: Path | str | int) -> Stamp:
    """The stamp of a file as it is now. A number is that of an open file."""
    found = os.stat(path)  # noqa: PTH116  many are looked at
    return found.st_mtime_ns, found.st_size


def write_executed(graph: Graph, result: RunResult) -> None:
    """target/run/<project>/models/...: the SQL that the engine ran, with its pinned snapshots."""
    for outcome in result.results:
        node = graph.nodes[outcome.node]
        if isinstance(node, ModelNode) and outcome.sql is not None:
            write_text(graph.project.target_path / "run" / graph.project.name / node.model.file.path, [outcome.sql.rstrip() + "\n"])
