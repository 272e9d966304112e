"""Graph, or the JSON of a manifest -> Version: the form in which two versions of a project are compared, whatever they were read from."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import field, fields
from datetime import timedelta
from functools import cached_property
from hashlib import sha256
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from mvbuild.dataclass import dataclass
from mvbuild.diagnostics import ProjectError
from mvbuild.graph.definition import definition, fingerprint_of
from mvbuild.graph.model import Graph, ModelNode, Node, NodeId, SeedNode, TestNode
from mvbuild.parse.libraries import PREFIXES
from mvbuild.project.counting import DEFAULT
from mvbuild.project.loaded import DataTest, Properties, SourceTable
from mvbuild.project.setting import Setting
from mvbuild.project.setting_values import written
from mvbuild.project.settings import ModelConfig, PartitionField, SeedConfig, SortField
from mvbuild.project.yaml_spans import MapNode, has_templates, plain, read_yaml
from mvbuild.source import SourceFile

if TYPE_CHECKING:
    from mvbuild.project.unit_tests import RowsAsWritten, UnitTest

_PLACES = frozenset(("catalog", "namespace", "alias", "storage_table", "storage_namespace"))
"""Settings that only say where a node is."""
_NOT_COMPARED = frozenset(("spans", "enabled", "previous_name", *_PLACES))
_MACRO = re.compile(r"\{%[-+]?\s*(macro|(?:data_)?test)\s+(\w+)")
_JINJA_COMMENT = re.compile(r"\{#.*?#\}", re.DOTALL)


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeVersion:
    """A model, seed, source or test in one version of the project."""

    id: NodeId
    name: str
    path: str
    relation: str
    """Its full name in the catalog; empty for a test."""
    text: str
    """Hash of its file, or of its text in the file."""
    body: str
    """Hash of its meaning: for a model the fingerprint of its definition, for a seed that of its rows, for a test that of its rule."""
    sql: str = ""
    """The definition of a model, with full names."""
    settings: Mapping[str, Any]
    """The settings that differ from the defaults, as plain JSON, without the names in the catalog."""
    described: Mapping[str, str]
    """Column, or "" for the node itself -> description."""
    columns: Mapping[str, str | None]
    """The columns that YAML declares, with their types."""
    outputs: tuple[str, ...] | None = None
    """Names of the columns of a model's result; None if they are not known without a catalog."""
    reads: tuple[NodeId, ...] = ()
    macros: tuple[str, ...] = ()
    """ids of the macros that its template calls directly."""
    former: str | None = None
    """`previous_name`."""

    @property
    def kind(self) -> str:
        return self.id.partition(".")[0]


@dataclass(frozen=True, kw_only=True)
class Version:
    """One version of a project."""

    name: str
    """The name that the user gave: `main`, `prod/manifest.json`."""
    nodes: Mapping[NodeId, NodeVersion]
    macros: Mapping[str, str]
    """id -> its text, without comments and redundant spaces."""
    vars: Mapping[str, str]
    """Name -> hash of its value; values may be secrets."""
    units: Mapping[NodeId, str] = field(default_factory=dict)
    """Unit test -> hash of what it says."""
    is_missing: bool = False
    """There was no project at all."""

    @cached_property
    def called(self) -> Mapping[str, frozenset[str]]:
        """Macro -> itself and those that it calls, directly or indirectly."""
        finder = MacroCalls(self.macros)
        direct = {id: frozenset(finder.of(text)) - {id} for id, text in self.macros.items()}
        return {id: _closure(id, direct) for id in direct}

    def relations(self, ids: Iterable[NodeId]) -> dict[str, NodeId]:
        """Name in the catalog, in SQL -> node."""
        return {self.nodes[id].relation: id for id in ids if id in self.nodes and self.nodes[id].relation}


_DISPATCHED = re.compile(r"\badapter\s*\.\s*dispatch\(\s*['\"](\w+)['\"]")


class MacroCalls:
    """Template text -> the ids of the macros whose names it calls, including by `adapter.dispatch`."""

    def __init__(self, ids: Iterable[str]) -> None:
        self._ids = {id.rpartition(".")[2]: id for id in ids}
        words = "|".join(sorted(map(re.escape, self._ids), key=len, reverse=True))
        self._pattern = re.compile(rf"(?<![\w.'\"])({words})\s*\(") if words else None

    def of(self, text: str) -> tuple[str, ...]:
        if self._pattern is None or "{" not in text:
            return ()
        called = [*self._pattern.findall(text), *(f"{prefix}{name}" for name in _DISPATCHED.findall(text) for prefix in PREFIXES)]
        return tuple(dict.fromkeys(self._ids[name] for name in called if name in self._ids))


def _closure(start: str, direct: Mapping[str, frozenset[str]]) -> frozenset[str]:
    seen, edge = {start}, {start}
    while edge:
        edge = {called for id in edge for called in direct[id]} - seen
        seen |= edge
    return frozenset(seen)


# --- of a graph --------------------------------------------------------------------------------------------------------------------


def version_of(graph: Graph, name: str) -> Version:
    """The version of a graph."""
    macros = macro_texts(graph)
    calls = MacroCalls(macros)
    nodes = [found for node in graph.nodes.values() if (found := _node(graph, node, calls))]
    return Version(
        name=name,
        nodes={n.id: n for n in (*nodes, *map(_test, graph.tests))},
        macros=macros,
        vars=var_hashes(graph.project.file, graph),
        units=units_of(graph),
    )


def macro_texts(graph: Graph) -> dict[str, str]:
    """`macro.<project>.<name>` -> its text."""
    found: dict[str, str] = {}
    for file in graph.project.macros:
        text = _JINJA_COMMENT.sub("", file.text)
        starts = [(m.start(), m[2] if m[1] == "macro" else f"test_{m[2]}") for m in _MACRO.finditer(text)]
        for (start, name), (end, _) in pairwise((*starts, (len(text), ""))):
            found[f"macro.{graph.project.name}.{name}"] = " ".join(text[start:end].split())
    return found


def var_hashes(file: SourceFile, graph: Graph) -> dict[str, str]:
    """Hashes of the vars as written in the project file, before templates, and of those given in addition."""
    tree, _ = read_yaml(file)
    entry = tree.get("vars") if isinstance(tree, MapNode) else None
    written = entry.node if entry else None
    values: dict[str, Any] = {e.key: plain(e.node) for e in written.entries} if isinstance(written, MapNode) else {}
    templates = {e.key for e in written.entries if has_templates(e.node)} if isinstance(written, MapNode) else set()
    # A value that neither the file nor one of its templates has was given on the command line.
    given = {name: value for name, value in graph.project.vars.items() if name not in templates and values.get(name) != value}
    return {name: _hash(value) for name, value in (values | given).items()}


def _node(graph: Graph, node: Node, calls: MacroCalls) -> NodeVersion | None:
    if isinstance(node, ModelNode):
        return _model(graph, node, calls)
    if isinstance(node, SeedNode):
        seed = node.seed
        return NodeVersion(
            id=node.id,
            name=seed.name,
            path=seed.path,
            relation=node.identifier.sql,
            text=seed.checksum,
            body=seed.checksum,
            settings=settings_of(seed.config),
            **_documented(seed.properties),
        )
    if node.source is None:
        return None
    source = node.source
    return NodeVersion(
        id=node.id,
        name=f"{source.source}.{source.name}",
        path=source.span.file.path,
        relation=node.identifier.sql,
        text="",
        body="",
        settings=source_settings(source),
        **_documented(source.properties),
    )


def _model(graph: Graph, node: ModelNode, calls: MacroCalls) -> NodeVersion:
    model = node.model
    sql = definition(graph, node).text if node.id not in graph.undefined else ""
    return NodeVersion(
        id=node.id,
        name=model.name,
        path=model.file.path,
        relation=node.identifier.sql,
        text=sha256(model.file.text.encode("utf-8", "surrogatepass")).hexdigest(),
        body=fingerprint_of(graph, node) if sql else "",
        sql=sql,
        settings=settings_of(model.config),
        outputs=node.query.columns,
        reads=tuple(dict.fromkeys(node.reads)),
        macros=calls.of(model.file.text),
        former=model.config.previous_name,
        **_documented(model.properties),
    )


def _test(test: TestNode) -> NodeVersion:
    return NodeVersion(
        id=test.id,
        name=test.name,
        path=test.span.file.path,
        relation="",
        text="",
        body=test_body(test),
        settings=settings_of_test(test),
        described={},
        columns={},
        reads=tuple(dict.fromkeys(test.reads)),
    )


def settings_of_test(test: TestNode) -> dict[str, Any]:
    """Severity, and what is not the default: how failures are counted, tags and meta."""
    counting, default = test.counting, DEFAULT
    named = {
        name: value
        for name in ("error_if", "warn_if", "fail_calc", "limit")
        if (value := getattr(counting, name)) != getattr(default, name)
    }
    labels = {"tags": list(test.tags), "meta": _plain(test.meta)}
    return {"severity": test.severity, **named, **{key: value for key, value in labels.items() if value}}


def test_body(test: TestNode) -> str:
    """Hash of a test's rule."""
    if isinstance(test.test, DataTest):
        parts = [test.test.kind, test.test.column, _plain(test.test.arguments), test.test.where]
        return _hash(parts) if test.query is None else _hash([*parts, _fingerprint(test.query.sql.text)])
    return _fingerprint(test.test.query.sql.text)


def _fingerprint(sql: str) -> str:
    from mvbuild.parse.fingerprint import fingerprint

    return fingerprint(sql)


test_body.__test__ = False  # type: ignore[attr-defined]


def units_of(graph: Graph) -> dict[NodeId, str]:
    """Unit test -> `unit_body`. Empty if one of them is wrong, which `compile`, `lint` and `test` report."""
    try:
        return {test.id(graph.project.name): unit_body(test) for test in graph.unit_tests}
    except (ProjectError, OSError):
        return {}


def unit_body(test: UnitTest) -> str:
    """Hash of what a unit test gives, changes and expects, wherever it is."""
    given = [(one.input, _rows(one.rows)) for one in test.given]
    return _hash([test.model, given, _rows(test.expect) if test.expect else None, test.overrides, test.incremental])


def _rows(rows: RowsAsWritten) -> list[Any]:
    return [rows.records, rows.columns, rows.sql, rows.random]


def _documented(properties: Properties) -> dict[str, Any]:
    described = {"": properties.description} | {c.name: c.description for c in properties.columns}
    return {
        "described": {name: text for name, text in described.items() if text},
        "columns": {c.name: c.data_type for c in properties.columns},
    }


def settings_of(config: ModelConfig | SeedConfig) -> dict[str, Any]:
    """The settings that differ from the defaults, as plain JSON."""
    default = type(config)()
    names = [f.name for f in fields(config) if f.name not in _NOT_COMPARED]
    return {name: _plain(value) for name in names if (value := getattr(config, name)) != getattr(default, name)}


def source_settings(source: SourceTable) -> dict[str, Any]:
    """What the project declares about a source, except its name in the catalog."""
    found = {"tags": list(source.tags), "meta": _plain(source.meta), "type": source.type}
    return {key: value for key, value in found.items() if value}


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _plain(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(inner) for inner in value]
    if isinstance(value, timedelta):
        return written(value)
    if isinstance(value, Setting):
        return _plain(value.value)
    if isinstance(value, PartitionField):
        inner = value.column if value.width is None else f"{value.width}, {value.column}"
        return value.column if value.transform == "identity" else f"{value.transform}({inner})"
    if isinstance(value, SortField):
        return f"{value.column} {'desc' if value.descending else 'asc'} nulls {'first' if value.nulls_first else 'last'}"
    if hasattr(value, "__dataclass_fields__"):
        return {f.name: _plain(getattr(value, f.name)) for f in fields(value)}
    return value if isinstance(value, (str, int, float, bool)) or value is None else str(value)


def _hash(value: Any) -> str:
    return sha256(json.dumps(_plain(value), sort_keys=True, default=str).encode("utf-8", "surrogatepass")).hexdigest()[:16]
