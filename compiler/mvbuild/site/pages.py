"""Content + node -> data/<number>.js: what the page of a node says."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from mvbuild.graph.model import ModelNode, Node, SeedNode, TestNode
from mvbuild.lineage.model import Origin
from mvbuild.project.loaded import DataTest, Properties
from mvbuild.site import sql
from mvbuild.site.index import description
from mvbuild.site.model import Content
from mvbuild.site.refreshes import upkeep
from mvbuild.versions.model import settings_of, source_settings


def page(content: Content, node: Node) -> dict[str, Any]:
    """Nodes are named by their number in the index."""
    found = {
        "id": node.id,
        "description": description(node),
        "files": _files(node),
        "settings": _settings(node),
        "columns": _columns(content, node),
        "complete": node.id in content.bound.columns,
        "rows": _origins(content, content.bound.lineage[node.id].rows) if node.id in content.bound.lineage else [],
        "tests": [_test(test) for test in content.tests.get(node.id, ()) if _is_of_table(test, node)],
        **upkeep(content, node),
    }
    return found | (_sql(content, node) if isinstance(node, ModelNode) else {})


def properties_of(node: Node) -> Properties:
    """What YAML declares about a node."""
    if isinstance(node, ModelNode):
        return node.model.properties
    if isinstance(node, SeedNode):
        return node.seed.properties
    return node.source.properties if node.source else Properties()


def _files(node: Node) -> list[str]:
    """Where it is written: its own file, then the YAML that describes it."""
    if isinstance(node, ModelNode):
        own: str | None = node.model.file.path
    elif isinstance(node, SeedNode):
        own = node.seed.path
    else:
        own = node.source.span.file.path if node.source else None
    return [path for path in dict.fromkeys((own, properties_of(node).patch_path)) if path]


def _settings(node: Node) -> dict[str, str]:
    """Settings that differ from the defaults, as text."""
    if isinstance(node, ModelNode):
        found = settings_of(node.model.config)
    elif isinstance(node, SeedNode):
        found = settings_of(node.seed.config)
    else:
        found = source_settings(node.source) if node.source else {}
    return {name: _text(value) for name, value in found.items() if name != "tags"}


def _text(value: object) -> str:
    if isinstance(value, list) and all(isinstance(one, str) for one in value):
        return ", ".join(value)
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)


def _columns(content: Content, node: Node) -> list[dict[str, Any]]:
    """The columns of the query or table, in order, then those that only YAML has."""
    bound = content.bound
    declared = {c.name.lower(): c for c in properties_of(node).columns}
    tests: dict[str, list[dict[str, Any]]] = {}
    for test in content.tests.get(node.id, ()):
        if isinstance(test.test, DataTest) and test.reads[0] == node.id:
            tests.setdefault(test.test.column.lower(), []).append(_test(test))
    names = dict.fromkeys([*(c.name for c in bound.known(node.id))])
    known = {name.lower() for name in names}
    names |= dict.fromkeys(c.name for c in declared.values() if c.name.lower() not in known)
    found = []
    for name in names:
        declared_column, typed = declared.get(name.lower()), bound.column(node.id, name)
        found.append(
            {
                "name": name,
                "type": (typed.type if typed else None) or (declared_column.data_type if declared_column else None),
                "description": declared_column.description if declared_column else "",
                "tags": list(declared_column.tags) if declared_column else [],
                "tests": tests.get(name.lower(), []),
                "from": _origins(content, bound.parents(node.id, name)),
                "to": _origins(content, bound.readers(node.id, name)),
                "decides": sorted(content.places[id] for id in bound.decides(node.id, name)),
                "unsure": bound.is_unsure(node.id, name),
            }
        )
    return found


def _origins(content: Content, origins: Iterable[Origin]) -> list[tuple[int, str]]:
    return sorted((content.places[o.node], o.column) for o in origins)


def _is_of_table(test: TestNode, node: Node) -> bool:
    """Whether its place is with the whole table, not with one of its columns."""
    return not (isinstance(test.test, DataTest) and test.reads[0] == node.id)


def _test(test: TestNode) -> dict[str, Any]:
    found: dict[str, Any] = {"name": test.name, "severity": test.severity}
    if isinstance(test.test, DataTest):
        found |= {"kind": test.test.kind, "column": test.test.column, "where": test.test.where}
        found["arguments"] = {name: _text(value) for name, value in test.test.arguments.items()}
        return found
    return found | {"file": test.test.file.path, "sql": test.test.file.text}


def _sql(content: Content, node: ModelNode) -> dict[str, Any]:
    problem = content.graph.blocked.get(node.id)
    pieces = sql.compiled(content.graph, node) if node.id not in content.graph.undefined else ()
    return {
        "written": _pieces(content, sql.written(node)),
        "compiled": _pieces(content, pieces),
        "problem": {"message": problem.message, "at": str(problem.span) if problem.span else None} if problem else None,
    }


def _pieces(content: Content, pieces: Iterable[sql.Piece]) -> list[str | tuple[str, int]]:
    return [text if id is None else (text, content.places[id]) for text, id in pieces if text]
