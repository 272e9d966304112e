"""a name in a file -> the place where it is defined."""

from __future__ import annotations

import re
from pathlib import Path

from mvbuild.lsp.names import Names, home_of
from mvbuild.lsp.positions import normal
from mvbuild.lsp.sql_text import Named, cte_heads, macros, named_at
from mvbuild.source import SourceFile, Span

_YAML_NAME = re.compile(r"^\s*-?\s*\{?\s*name:\s*['\"]?([\w.]+)")


def definition(root: Path, path: str, text: str, offset: int, names: Names | None) -> Span | None:
    """`names` is None until the project has compiled once; until then, files are found by their names."""
    named = name_in_yaml(text, offset) if path.endswith((".yml", ".yaml")) else named_at(text, offset)
    if named is None:
        return None
    if named.kind == "macro":
        return macro(root, path, text, named.parts[0], names)
    head = cte_heads(text).get(named.parts[0].lower()) if named.kind == "name" else None
    here = head.at if head else None
    if here is not None:
        return Span(SourceFile(path, text), here, here + len(named.parts[0]))
    if names is None:
        return _by_file(root, named)
    node = names.node(named)
    return home_of(node) if node is not None else None


def name_in_yaml(text: str, offset: int) -> Named | None:
    """ref() and source() in a test; or the name of a model or seed that an entry describes."""
    found = named_at(text, offset)
    if found is not None and found.kind in ("ref", "source"):
        return found
    start = text.rfind("\n", 0, offset) + 1
    match = _YAML_NAME.match(text[start:].partition("\n")[0])
    if match is None or not match.start(1) <= offset - start <= match.end(1):
        return None
    return Named(kind="ref", parts=(match[1],), start=start + match.start(1), end=start + match.end(1))


def macro(root: Path, path: str, text: str, name: str, names: Names | None) -> Span | None:
    for file in (SourceFile(path, text), *macro_files(root, names)):
        found = macros(file.text).get(name)
        if found:
            return Span(file, found[0], found[0] + len(name))
    return None


def macro_files(root: Path, names: Names | None) -> tuple[SourceFile, ...]:
    if names is not None:
        return names.graph.project.macros
    return tuple(read_file(root, path) for path in sorted((root / "macros").rglob("*.sql")))


def read_file(root: Path, path: Path) -> SourceFile:
    """The text of a file; empty if it cannot be read."""
    try:
        return SourceFile(path.relative_to(root).as_posix(), normal(path.read_bytes().decode("utf-8", "replace")))
    except OSError:
        return SourceFile(path.relative_to(root).as_posix(), "")


def _by_file(root: Path, named: Named) -> Span | None:
    if named.kind == "source":
        return None
    for folder, suffix in (("models", "sql"), ("seeds", "csv")):
        for path in sorted((root / folder).rglob(f"*.{suffix}")):
            if path.stem.lower() == named.parts[-1].lower():
                return Span(SourceFile(path.relative_to(root).as_posix(), ""), 0, 0)
    return None
