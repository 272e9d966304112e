"""graph -> a stamp of the files of its project, which differs if one of them was edited, added or removed."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path

from mvbuild.diagnostics import ProjectError
from mvbuild.graph.model import Graph
from mvbuild.project.load import open_project

_SUFFIXES = (".sql", ".yml", ".yaml", ".csv", ".lock")


def folders_of(graph: Graph) -> tuple[Path, ...]:
    """The folders that the project reads."""
    project, reading = graph.project, graph.reading
    try:
        opened = open_project(project.root, target=reading.target, vars=reading.vars, env=reading.env, target_path=project.target_path)
    except ProjectError:
        return ()
    return tuple(project.root / path for paths in opened.project.paths.values() for path in paths)


def stamp_of(graph: Graph, folders: tuple[Path, ...]) -> int:
    """Reads no file, only the times and sizes of files."""
    places = {str(folder) for folder in folders}
    found: Mapping[str, tuple[int, int]] = dict(_of_root(graph.project.root)) | {
        path: at for folder in sorted(places) for path, at in _below(folder, str(graph.project.target_path))
    }
    return hash(tuple(sorted(found.items())))


def _of_root(root: Path) -> Iterator[tuple[str, tuple[int, int]]]:
    with os.scandir(root) as entries:
        for entry in entries:
            if entry.name.endswith(_SUFFIXES) and entry.is_file():
                at = entry.stat()
                yield entry.path, (at.st_mtime_ns, at.st_size)


def _below(folder: str, without: str) -> Iterator[tuple[str, tuple[int, int]]]:
    try:
        with os.scandir(folder) as scan:
            entries = list(scan)
    except OSError:
        return
    for entry in entries:
        if entry.name.startswith(".") or entry.path == without:
            continue
        try:
            if entry.is_dir():
                yield from _below(entry.path, without)
            elif entry.name.endswith(_SUFFIXES):
                at = entry.stat()
                yield entry.path, (at.st_mtime_ns, at.st_size)
        except OSError:
            # It was removed in the meantime, or is a link to nothing: compiling reports that.
            continue
