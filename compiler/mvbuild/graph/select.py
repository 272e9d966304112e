"""Graph + the text of --select and --exclude -> the ids of the nodes that are meant.

The grammar is dbt's: spaces make a union, commas an intersection; `+x`, `x+`, `2+x` and `@x` reach along the graph.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from fnmatch import fnmatchcase
from pathlib import PurePosixPath

from mvbuild.diagnostics import Diagnostic, ProjectError, did_you_mean, error, warning
from mvbuild.graph.model import Graph, ModelNode, Node, NodeId, SeedNode, TableNode, ViewNode

_TERM = re.compile(r"(?P<childrens_parents>@)?(?:(?P<up>\d*)\+)?(?P<body>[^+@]+)(?:\+(?P<down>\d*))?\Z")


def select(graph: Graph, include: Iterable[str], exclude: Iterable[str]) -> tuple[frozenset[NodeId], tuple[Diagnostic, ...]]:
    """Node ids of models and seeds, and warnings for terms that match nothing. No `include` means everything."""
    buildable = {id for id, node in graph.nodes.items() if isinstance(node, ModelNode | SeedNode)}
    warnings: list[Diagnostic] = []
    words, without = _words(include), _words(exclude)
    chosen = set().union(*(_intersection(graph, w, warnings) for w in words)) if words else set(buildable)
    for word in without:
        chosen -= _intersection(graph, word, warnings)
    return frozenset(chosen & buildable), tuple(warnings)


def _words(texts: Iterable[str]) -> list[str]:
    return [word for text in texts for word in text.split()]


def _intersection(graph: Graph, word: str, warnings: list[Diagnostic]) -> set[NodeId]:
    sets = [_term(graph, term) for term in word.split(",") if term]
    found = set.intersection(*sets) if sets else set()
    if not found:
        names = [_name(n) for n in graph.nodes.values()]
        near = did_you_mean(word.strip("+@"), names)
        warnings.append(warning("unknown-selector", f"'{word}' selects nothing", help=near if near.startswith("Did") else ""))
    return found


def _term(graph: Graph, term: str) -> set[NodeId]:
    match = _TERM.match(term)
    if match is None:
        raise ProjectError(
            [
                error(
                    "unknown-selector",
                    f"The selector '{term}' cannot be read",
                    help="Examples: orders, +orders, orders+, 2+orders, tag:daily, path:models/marts.",
                )
            ]
        )
    method, _, value = match["body"].rpartition(":")
    method = method or _implied(value)
    test = _METHODS.get(method)
    if test is None:
        raise ProjectError([error("unknown-selector", f"There is no selector method '{method}'", help=did_you_mean(method, _METHODS))])
    found = {id for id, node in graph.nodes.items() if test(node, value)}
    reached = set(found)
    if match["up"] is not None:
        reached |= graph.ancestors(found, _depth(match["up"]))
    if match["down"] is not None:
        reached |= graph.descendants(found, _depth(match["down"]))
    if match["childrens_parents"]:
        reached |= graph.descendants(found)
        reached |= graph.ancestors(reached)
    return reached


def _implied(value: str) -> str:
    """As in dbt, a value with a slash is a path, and one that ends as a file does is a file."""
    return "path" if "/" in value else "file" if PurePosixPath(value).suffix in (".sql", ".csv") else "fqn"


def _depth(text: str) -> int | None:
    return int(text) if text else None


def _name(node: Node) -> str:
    if isinstance(node, ModelNode):
        return node.model.name
    return node.seed.name if isinstance(node, SeedNode) else node.identifier.name


def _by_name(node: Node, value: str) -> bool:
    """The name, with or without folders and the project before it, a folder, or the name in the catalog."""
    if not isinstance(node, ModelNode | SeedNode):
        return False
    folders = node.model.folders if isinstance(node, ModelNode) else ()
    name = _name(node)
    below_project = ".".join((*folders, name))
    full = f"{_package(node)}.{below_project}"
    return any(fnmatchcase(n, value) for n in (name, below_project, full)) or value in (*folders, _package(node), node.identifier.dotted)


def _package(node: Node) -> str:
    return node.id.split(".")[1]


def _path(node: Node) -> str:
    return node.model.file.path if isinstance(node, ModelNode) else node.seed.path if isinstance(node, SeedNode) else ""


def _by_path(node: Node, value: str) -> bool:
    path, value = _path(node), value.removeprefix("./").rstrip("/")
    return path == value or path.startswith(value + "/") or fnmatchcase(path, value)


def _by_file(node: Node, value: str) -> bool:
    path = PurePosixPath(_path(node))
    return fnmatchcase(path.name, value) or fnmatchcase(path.stem, value)


def _by_package(node: Node, value: str) -> bool:
    return _package(node) == value or (value == "this" and isinstance(node, ModelNode | SeedNode))


def _by_tag(node: Node, value: str) -> bool:
    if isinstance(node, ModelNode):
        return any(fnmatchcase(t, value) for t in node.model.config.tags)
    if isinstance(node, SeedNode):
        return any(fnmatchcase(t, value) for t in node.seed.config.tags)
    return bool(node.source and any(fnmatchcase(t, value) for t in node.source.tags))


def _by_source(node: Node, value: str) -> bool:
    source = node.source if isinstance(node, TableNode | ViewNode) else None
    if source is None:
        return False
    name = f"{source.source}.{source.name}"
    return any(fnmatchcase(n, value) for n in (source.source, name, f"{_package(node)}.{name}"))


def _by_type(node: Node, value: str) -> bool:
    return node.id.partition(".")[0] == value


def _by_materialized(node: Node, value: str) -> bool:
    return isinstance(node, ModelNode) and node.materialized == value


_METHODS: Mapping[str, Callable[[Node, str], bool]] = {
    "fqn": _by_name,
    "path": _by_path,
    "file": _by_file,
    "package": _by_package,
    "tag": _by_tag,
    "source": _by_source,
    "resource_type": _by_type,
    "config.materialized": _by_materialized,
}
