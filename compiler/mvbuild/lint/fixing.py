"""findings with fixes -> edited files: each is proven on its text before it is written, and on the project afterwards."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from sqlglot import exp

from mvbuild.dataclass import dataclass
from mvbuild.diagnostics import ProjectError, error
from mvbuild.graph.model import Graph, ModelNode
from mvbuild.lint.model import Edit, Finding, Fix
from mvbuild.parse.sql import parse_query, tree_of
from mvbuild.parse.templates import Templates
from mvbuild.project.setting import Layer
from mvbuild.project.settings import Own
from mvbuild.project.yaml_spans import plain, read_yaml
from mvbuild.source import SourceFile

_MOST_PASSES = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Fixed:
    """The result of --fix: the project as it is now, and path -> how many findings were fixed in it."""

    graph: Graph
    counts: Mapping[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Candidate:
    """A file with fixes that fit together."""

    file: SourceFile
    text: str
    fixes: tuple[Fix, ...]
    count: int
    """How many findings they fix."""


def fix_all(graph: Graph, find: Callable[[Graph], Sequence[Finding]], recompile: Callable[[], Graph], env: Mapping[str, str]) -> Fixed:
    """Repeat until nothing is left to fix. A fix that changes the meaning of the project is undone, and not tried again."""
    counts: dict[str, int] = {}
    refused: set[tuple[str, str]] = set()
    for _ in range(_MOST_PASSES):
        candidates = [c for c in _candidates(graph, find(graph)) if (c.file.path, c.text) not in refused]
        proven = [c for c in candidates if _is_proven(graph, c, env)]
        if not proven:
            break
        graph, kept = _apply_all(graph, proven, recompile)
        refused |= {(c.file.path, c.text) for c in candidates if c not in kept}
        for candidate in kept:
            counts[candidate.file.path] = counts.get(candidate.file.path, 0) + candidate.count
    return Fixed(graph=graph, counts=counts)


def proven_edits(graph: Graph, findings: Sequence[Finding], env: Mapping[str, str]) -> tuple[Edit, ...]:
    """The edits that fix findings of one file, without those that overlap earlier ones; none if they are not proven on its text."""
    proven = [c for c in _candidates(graph, findings) if _is_proven(graph, c, env)]
    return tuple(edit for candidate in proven for fix in candidate.fixes for edit in fix.edits)


def _apply_all(graph: Graph, candidates: Sequence[_Candidate], recompile: Callable[[], Graph]) -> tuple[Graph, list[_Candidate]]:
    """Write all of them; if that changes the project, one after the other."""
    new = _apply(graph, candidates, recompile)
    if new is not None:
        return new, list(candidates)
    kept = []
    for candidate in candidates if len(candidates) > 1 else ():
        new = _apply(graph, [candidate], recompile)
        if new is not None:
            graph = new
            kept.append(candidate)
    return graph, kept


def _apply(graph: Graph, candidates: Sequence[_Candidate], recompile: Callable[[], Graph]) -> Graph | None:
    """The project with the edits; None, and the files as they were, if the project changed."""
    root = graph.project.root
    before = {candidate.file.path: (root / candidate.file.path).read_bytes() for candidate in candidates}
    changed: dict[str, bytes] = {}
    kept = False
    try:
        for candidate in candidates:
            path = candidate.file.path
            _write(root / path, _like(before[path], candidate))
            changed[path] = before[path]
        new = recompile()
        kept = len(new.problems) <= len(graph.problems) and _is_same(graph, new, set(before))
    except OSError as exc:
        raise ProjectError([error("unwritable-file", f"Cannot write to {exc.filename}: {exc.strerror or exc}")]) from exc
    except ProjectError:
        return None
    finally:
        for path, content in changed.items() if not kept else ():
            _write(root / path, content)
    return new if kept else None


# Which fixes fit together


def _candidates(graph: Graph, findings: Iterable[Finding]) -> Iterator[_Candidate]:
    files = {file.path: file for file in (*(n.model.file for n in graph.models), graph.project.file, *graph.project.documents)}
    by_file: dict[str, list[Finding]] = {}
    for finding in findings:
        if finding.found.fix is not None and finding.span.file.path in files:
            by_file.setdefault(finding.span.file.path, []).append(finding)
    for path, found in by_file.items():
        fixes: list[Fix] = []
        taken: list[tuple[int, int]] = []
        count = 0
        for finding in found:
            fix = finding.found.fix
            assert fix is not None
            places = [(edit.span.start, edit.span.end) for edit in fix.edits]
            if places in ([(e.span.start, e.span.end) for e in known.edits] for known in fixes):
                count += 1
            elif all(end <= s or e <= start for start, end in places for s, e in taken):
                fixes.append(fix)
                taken += places
                count += 1
        yield _Candidate(file=files[path], text=_edited(files[path].text, fixes), fixes=tuple(fixes), count=count)


def _edited(text: str, fixes: Iterable[Fix]) -> str:
    edits = sorted((edit for fix in fixes for edit in fix.edits), key=lambda e: e.span.start, reverse=True)
    for edit in edits:
        text = text[: edit.span.start] + edit.new + text[edit.span.end :]
    return text


# Proof


def _is_proven(graph: Graph, candidate: _Candidate, env: Mapping[str, str]) -> bool:
    """The text parses to exactly the tree that the fixes make of the old one, with the same configuration."""
    node = next((n for n in graph.models if n.model.file.path == candidate.file.path), None)
    if node is None:
        return _is_same_yaml(candidate)
    old, new = (_rendered(graph, node, text, env) for text in (candidate.file.text, candidate.text))
    if old is None or new is None or _values(old[1]) != _values(new[1]):
        return False
    expected = old[0]
    try:
        for fix in candidate.fixes:
            if fix.rewrite is not None:
                fix.rewrite(expected)
        return expected == new[0]
    except RecursionError:
        return False


def _rendered(graph: Graph, node: ModelNode, text: str, env: Mapping[str, str]) -> tuple[exp.Expr, tuple[Layer, ...]] | None:
    own = Own(model=node.model.name, namespace=node.model.config.namespace, alias=node.model.config.alias)
    templates = Templates(graph.project, env)
    rendered = templates.renderer.render(SourceFile(node.model.file.path, text), own)
    query, problems = parse_query(rendered.text, templates.names_in_text(own, rendered.layers)) if rendered.text else (None, ())
    if query is None or any(d.severity == "error" for d in (*problems, *rendered.diagnostics)):
        return None
    return tree_of(query), rendered.layers


def _values(layers: Iterable[Layer]) -> list[dict[str, object]]:
    return [{key: setting.value for key, setting in layer.items()} for layer in layers]


def _is_same_yaml(candidate: _Candidate) -> bool:
    old, _ = read_yaml(candidate.file)
    new, problems = read_yaml(SourceFile(candidate.file.path, candidate.text))
    return not problems and (old is None) == (new is None) and (old is None or new is None or plain(old) == plain(new))


def _is_same(old: Graph, new: Graph, edited: set[str]) -> bool:
    """The same models and tests, and the same query of every model whose file was not edited; edited files are proven above."""
    nodes = {node.id: node for node in new.models}
    if [node.id for node in sorted(old.models, key=_id)] != sorted(nodes) or {t.id for t in old.tests} != {t.id for t in new.tests}:
        return False
    for node in old.models:
        other = nodes[node.id]
        if node.identifier != other.identifier or node.storage != other.storage:
            return False
        is_apart = node.model.file.path not in edited and node.query.sql.text != other.query.sql.text
        if is_apart or node.query.columns not in (None, other.query.columns):
            return False
    return True


def _id(node: ModelNode) -> str:
    return node.id


# Files


def _like(before: bytes, candidate: _Candidate) -> bytes:
    """The new text with the byte order mark and the line ends of the old file, each in its place."""
    raw = before.decode("utf-8")
    mark = "\ufeff" if raw.startswith("\ufeff") else ""
    ends = _line_ends(raw)
    if all(end == "\n" for end in ends):
        return (mark + candidate.text).encode("utf-8")
    out: list[str] = []
    line, at = 0, 0
    for edit in sorted((edit for fix in candidate.fixes for edit in fix.edits), key=lambda e: e.span.start):
        kept = candidate.file.text[at : edit.span.start]
        out.append(_with_ends(kept, ends, line))
        line += kept.count("\n")
        out.append(edit.new.replace("\n", ends[min(line, len(ends) - 1)]))
        line += candidate.file.text.count("\n", edit.span.start, edit.span.end)
        at = edit.span.end
    out.append(_with_ends(candidate.file.text[at:], ends, line))
    return (mark + "".join(out)).encode("utf-8")


def _line_ends(raw: str) -> list[str]:
    ends = []
    at = 0
    while at < len(raw):
        if raw.startswith("\r\n", at):
            ends.append("\r\n")
            at += 1
        elif raw[at] in "\r\n":
            ends.append(raw[at])
        at += 1
    return ends


def _with_ends(text: str, ends: Sequence[str], first: int) -> str:
    pieces = text.split("\n")
    return "".join(piece + (ends[first + i] if i < len(pieces) - 1 else "") for i, piece in enumerate(pieces))


def _write(path: Path, content: bytes) -> None:
    """Write the whole file at once, with its permissions: after an interruption there is the old file or the new one."""
    target = path.resolve()
    scratch = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    try:
        scratch.write_bytes(content)
        scratch.chmod(target.stat().st_mode & 0o7777)
        scratch.replace(target)
    except OSError as exc:
        # The user knows nothing of the other name.
        raise OSError(exc.errno, exc.strerror, str(path)) from exc
    finally:
        scratch.unlink(missing_ok=True)
