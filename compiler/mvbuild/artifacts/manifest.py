"""Graph -> target/manifest.json in the shape of dbt's manifest v12, for the tools that read it."""

from __future__ import annotations

import json
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from datetime import timedelta
from hashlib import sha256
from typing import Any, TypeGuard

from mvbuild.artifacts.docs import docs
from mvbuild.artifacts.exposures import exposures
from mvbuild.artifacts.groups import group_map, groups
from mvbuild.artifacts.unit_tests import unit_tests
from mvbuild.graph.definition import definition, fingerprint_of
from mvbuild.graph.model import Graph, ModelNode, Node, NodeId, SeedNode, TableNode, TestNode, ViewNode
from mvbuild.names import TableIdentifier
from mvbuild.project.counting import Counting
from mvbuild.project.loaded import DataTest, Properties
from mvbuild.project.source_freshness import PERIODS, SourceFreshness
from mvbuild.versions.model import MacroCalls, macro_texts, settings_of, settings_of_test, source_settings, test_body, var_hashes

SCHEMA = "https://schemas.getdbt.com/dbt/manifest/v12.json"

_ENCODER = json.JSONEncoder(default=str)

# Readers choose an adapter by this name and refuse unknown ones. MVs are Spark's.
ADAPTER = "spark"


def manifest(graph: Graph, *, version: str, generated_at: str, invocation_id: str) -> dict[str, Any]:
    """The manifest as a JSON object. Everything without a dbt equivalent is in `config.meta.mvbuild`."""
    found = dict(entries(graph))
    nodes = {id: entry for id, entry in found.items() if entry["resource_type"] != "source"}
    sources = {entry["unique_id"]: entry for entry in found.values() if entry["resource_type"] == "source"}
    return _around(graph, nodes, sources, version=version, generated_at=generated_at, invocation_id=invocation_id)


def manifest_text(
    graph: Graph, *, version: str, generated_at: str, invocation_id: str, known: Callable[[NodeId], str | None] = lambda _: None
) -> Iterator[str]:
    """The manifest as JSON text, in pieces, because all entries of a large project together would need a lot of memory.

    Each entry of `nodes` is a line. `known` is called for each of them in turn, and returns its text if an earlier manifest has it.
    """
    names = published_ids(graph)
    read = {id: _reads(one, names) for id, one in _all(graph) if not isinstance(one, TableNode | ViewNode)}
    parents = {id: {"depends_on": {"nodes": nodes}} for id, nodes in read.items()}
    sources = {names[id]: _source(graph, n, names[id]) for id, n in graph.nodes.items() if _is_read_only(n)}
    whole = _around(graph, parents, sources, version=version, generated_at=generated_at, invocation_id=invocation_id)
    for name, value in whole.items():
        yield f"{'{' if name == 'metadata' else ', '}{json.dumps(name)}: "
        if name != "nodes":
            yield json.dumps(value, default=str)
            continue
        yield "{"
        separator, calls = "\n", MacroCalls(macro_texts(graph))
        for id, one in _all(graph):
            if not isinstance(one, TableNode | ViewNode):
                yield f"{separator}{json.dumps(id)}: {known(id) or _ENCODER.encode(_entry(graph, one, calls, names))}"
                separator = ",\n"
        yield "\n}"
    yield "}"


def entries(graph: Graph, ids: Container[NodeId] | None = None) -> Iterator[tuple[NodeId, dict[str, Any]]]:
    """The manifest's entries for nodes and tests; all of them, or some."""
    calls, names = MacroCalls(macro_texts(graph)), published_ids(graph)
    for id, one in _all(graph):
        if ids is None or id in ids:
            yield id, _entry(graph, one, calls, names)


def published_ids(graph: Graph) -> Mapping[NodeId, str]:
    """Node -> its `unique_id` in artifacts. dbt's readers look up what a node depends on, so a table that is read by its plain name is a
    source there: `source.<project>.<catalog>.<namespace>.<name>`, which no declared source has."""
    names = {id: id for id in graph.nodes}
    for id, node in graph.nodes.items():
        if _is_read_only(node) and node.source is None:
            names[id] = f"source.{graph.project.name}.{id.partition('.')[2]}"
    return names


def _all(graph: Graph) -> Iterator[tuple[NodeId, Node | TestNode]]:
    """Everything that has an entry; tests follow the first node that they read."""
    tests: dict[NodeId, list[TestNode]] = {}
    for test in graph.tests:
        tests.setdefault(test.reads[0] if test.reads else "", []).append(test)
    for id, node in graph.nodes.items():
        yield id, node
        yield from ((test.id, test) for test in tests.pop(id, ()))
    yield from ((test.id, test) for rest in tests.values() for test in rest)


def _is_read_only(node: Node) -> TypeGuard[TableNode | ViewNode]:
    return isinstance(node, TableNode | ViewNode)


def _reads(node: Node | TestNode, names: Mapping[NodeId, str]) -> list[str]:
    """What a node depends on, without duplicates. dbt's readers take the last one as the tested node of a `relationships` test."""
    reads = [names[id] for id in dict.fromkeys(node.reads)]
    # The length first: `test` may still be unread, and reads the YAML of its model.
    return reads[::-1] if len(reads) > 1 and isinstance(node, TestNode) and isinstance(node.test, DataTest) else reads


def _entry(graph: Graph, node: Node | TestNode, calls: MacroCalls, names: Mapping[NodeId, str]) -> dict[str, Any]:
    if isinstance(node, TestNode):
        return _test(graph, node, names)
    if isinstance(node, ModelNode):
        return _model(graph, node, calls, names)
    if isinstance(node, SeedNode):
        return _seed(graph, node)
    return _source(graph, node, names[node.id])


def _around(
    graph: Graph, nodes: dict[str, Any], sources: dict[str, Any], *, version: str, generated_at: str, invocation_id: str
) -> dict[str, Any]:
    """The manifest except for its nodes, of which only the parents are read."""
    macros = macro_texts(graph)
    calls = MacroCalls(macros)
    units, shown = unit_tests(graph), exposures(graph)
    parents = {id: list(n["depends_on"].get("nodes", ())) for id, n in (nodes | units | shown).items()} | {id: [] for id in sources}
    children: dict[str, list[str]] = {id: [] for id in parents}
    for id_, of_node in parents.items():
        for parent in of_node:
            children.setdefault(parent, []).append(id_)
    return {
        "metadata": {
            "dbt_schema_version": SCHEMA,
            "dbt_version": "2.0.0",
            "generated_at": generated_at,
            "invocation_id": invocation_id,
            # dbt's readers accept only their own keys here, but any key in `env`.
            "env": {"mvbuild_version": version, "mvbuild_vars": json.dumps(var_hashes(graph.project.file, graph))},
            "project_name": graph.project.name,
            "project_id": sha256(graph.project.name.encode()).hexdigest()[:32],
            "adapter_type": ADAPTER,
        },
        "nodes": nodes,
        "sources": sources,
        "macros": {id: _macro(graph, id, text, calls) for id, text in macros.items()},
        "docs": docs(graph),
        "exposures": shown,
        "metrics": {},
        "groups": groups(graph),
        "selectors": {},
        "disabled": {},
        "parent_map": parents,
        "child_map": children,
        "group_map": group_map(graph),
        "saved_queries": {},
        "semantic_models": {},
        "unit_tests": units,
    }


def _base(graph: Graph, id_: NodeId, name: str, path: str, properties: Properties, identifier: TableIdentifier) -> dict[str, Any]:
    project = graph.project.name
    return {
        "unique_id": id_,
        "name": name,
        "resource_type": id_.partition(".")[0],
        "package_name": project,
        "original_file_path": path,
        "path": path.partition("/")[2] or path,
        "patch_path": f"{project}://{properties.patch_path}" if properties.patch_path else None,
        "database": identifier.catalog,
        "schema": ".".join(identifier.namespace),
        "alias": identifier.name,
        "relation_name": identifier.sql,
        "description": properties.description,
        "columns": {
            c.name: {
                "name": c.name,
                "description": c.description,
                "data_type": c.data_type,
                "tags": list(c.tags),
                "meta": dict(c.meta),
                "constraints": [],
                "quote": None,
            }
            for c in properties.columns
        },
        "docs": {"show": True, "node_color": None},
        "created_at": 0,
    }


def _model(graph: Graph, node: ModelNode, calls: MacroCalls, names: Mapping[NodeId, str]) -> dict[str, Any]:
    model, config = node.model, node.model.config
    sql = definition(graph, node).text if node.id not in graph.undefined else None
    mine = {
        "storage_table": str(node.storage) if node.storage else None,
        "refresh_policy": config.refresh_policy,
        "partition_by": [
            f"{p.transform}({p.column})" if p.width is None else f"{p.transform}({p.width}, {p.column})" for p in config.partition_by
        ],
        "max_staleness_seconds": config.max_staleness.total_seconds() if config.max_staleness else None,
        "fingerprint": fingerprint_of(graph, node) if sql is not None else None,
        "settings": settings_of(config),
        "columns": list(node.query.columns) if node.query.columns is not None else None,
        "previous_name": config.previous_name,
    }
    version, deprecation = model.version, model.properties.deprecation
    own = (version.model, f"v{version.v}") if version else (model.name,)
    return _base(graph, node.id, own[0], model.file.path, model.properties, node.identifier) | {
        "fqn": [graph.project.name, *model.folders, *own],
        "language": "sql",
        "raw_code": model.file.text,
        "compiled": sql is not None,
        "compiled_code": sql,
        "compiled_path": sql and f"{graph.project.target_path.name}/compiled/{graph.project.name}/{model.file.path}",
        "checksum": {"name": "sha256", "checksum": sha256(model.file.text.encode()).hexdigest()},
        "config": {
            "enabled": True,
            "materialized": config.materialized,
            "alias": config.alias,
            "group": config.group,
            "access": config.access,
            "schema": ".".join(node.identifier.namespace),
            "database": node.identifier.catalog,
            "tags": list(config.tags),
            "meta": {**config.meta, "mvbuild": mine},
            "tblproperties": dict(config.table_properties),
        },
        "tags": list(config.tags),
        "meta": dict(config.meta),
        "depends_on": {"macros": list(calls.of(model.file.text)), "nodes": _reads(node, names)},
        **_references(graph, node.reads),
        "access": config.access,
        "constraints": [],
        "group": config.group,
        "version": version.v if version else None,
        "latest_version": version.latest if version else None,
        "deprecation_date": deprecation.date if deprecation else None,
        "unrendered_config": {},
    }


def _references(graph: Graph, reads: Sequence[NodeId]) -> dict[str, Any]:
    """`refs` and `sources` as dbt lists them."""
    nodes = [graph.nodes[id] for id in dict.fromkeys(reads)]
    return {
        "refs": [{"name": _short(n), "package": None, "version": None} for n in nodes if not _is_read_only(n)],
        "sources": [list(_source_name(n)) for n in nodes if _is_read_only(n)],
    }


def _seed(graph: Graph, node: SeedNode) -> dict[str, Any]:
    seed = node.seed
    return _base(graph, node.id, seed.name, seed.path, seed.properties, node.identifier) | {
        "fqn": [graph.project.name, seed.name],
        "raw_code": "",
        "checksum": {"name": "sha256", "checksum": seed.checksum},
        "config": {
            "enabled": True,
            "materialized": "seed",
            "group": seed.config.group,
            "schema": ".".join(node.identifier.namespace),
            "database": node.identifier.catalog,
            "tags": list(seed.config.tags),
            "meta": {**seed.config.meta, "mvbuild": {"fingerprint": seed.checksum, "settings": settings_of(seed.config)}},
        },
        "tags": list(seed.config.tags),
        "meta": dict(seed.config.meta),
        "depends_on": {"macros": []},
        "root_path": str(graph.project.root),
        "group": seed.config.group,
    }


def _source_name(node: TableNode | ViewNode) -> tuple[str, str]:
    """The names of a source and its table; for a table that is read by its plain name, the namespace and the name."""
    if node.source:
        return node.source.source, node.source.name
    return ".".join(node.identifier.namespace), node.identifier.name


def _source(graph: Graph, node: TableNode | ViewNode, id_: str) -> dict[str, Any]:
    """A declared source, or a table that is read by its plain name; `node` in its meta says which."""
    declared = node.source
    path = declared.span.file.path if declared else graph.project.file.path
    properties = declared.properties if declared else Properties()
    of, name = _source_name(node)
    mine = {"fingerprint": "", "settings": source_settings(declared)} if declared else {"node": node.id}
    base = _base(graph, id_, name, path, properties, node.identifier)
    return {key: value for key, value in base.items() if key not in ("alias", "docs")} | {
        "fqn": id_.split(".")[1:],
        "source_name": of,
        "source_description": "",
        "identifier": node.identifier.name,
        "loader": "",
        "config": {
            "enabled": True,
            "tags": list(declared.tags) if declared else [],
            "meta": {**(declared.meta if declared else {}), "mvbuild": mine},
        },
        "tags": list(declared.tags) if declared else [],
        "meta": dict(declared.meta) if declared else {},
        "freshness": criteria(declared.freshness) if declared and declared.freshness else None,
        "quoting": {},
    }


def criteria(freshness: SourceFreshness) -> dict[str, Any]:
    """As dbt writes them."""
    return {"warn_after": _age(freshness.warn_after), "error_after": _age(freshness.error_after), "filter": None}


def _age(age: timedelta | None) -> dict[str, Any]:
    if age is None:
        return {"count": None, "period": None}
    period = next(name for name in ("day", "hour", "minute") if not age % PERIODS[name])
    return {"count": age // PERIODS[period], "period": period}


def _test(graph: Graph, test: TestNode, names: Mapping[NodeId, str]) -> dict[str, Any]:
    generic = test.test if isinstance(test.test, DataTest) else None
    project = graph.project.name
    file = test.test.span.file.path if isinstance(test.test, DataTest) else test.test.file.path
    mine = {"fingerprint": test_body(test), "settings": settings_of_test(test), "reads": list(test.reads)}
    found = {
        "unique_id": test.id,
        "name": test.name,
        "resource_type": "test",
        "package_name": project,
        "original_file_path": file,
        "path": f"{test.name}.sql",
        "fqn": [project, test.name],
        "alias": test.name,
        "database": graph.project.target.catalog_name,
        "schema": ".".join(graph.project.target.namespace),
        "relation_name": None,
        "description": "",
        "columns": {},
        "raw_code": "" if isinstance(test.test, DataTest) else test.test.file.text,
        "language": "sql",
        "checksum": {"name": "none", "checksum": ""},
        "config": {
            "enabled": True,
            "materialized": "test",
            "severity": test.severity,
            **_counting(test.counting, generic),
            "tags": list(test.tags),
            "meta": {**test.meta, "mvbuild": mine},
        },
        "tags": list(test.tags),
        "meta": dict(test.meta),
        "depends_on": {"macros": [], "nodes": _reads(test, names)},
        **_references(graph, test.reads[::-1] if generic else test.reads),
        "created_at": 0,
    }
    return found | (_generic(generic, names[test.reads[0]]) if generic else {})


def _counting(counting: Counting, generic: DataTest | None) -> dict[str, Any]:
    return {
        "where": generic.where if generic else None,
        "error_if": counting.error_if,
        "warn_if": counting.warn_if,
        "fail_calc": counting.fail_calc,
        "limit": counting.limit,
        "store_failures": counting.store,
        "store_failures_as": "table" if counting.store else None,
    }


def _generic(test: DataTest, tested: str) -> dict[str, Any]:
    """What dbt writes for generic tests only: its readers take every test with `test_metadata`, even null, for a generic one."""
    return {
        "column_name": test.column,
        "attached_node": tested,
        "test_metadata": {"name": test.kind, "kwargs": {"column_name": test.column, **test.arguments}, "namespace": None},
    }


def _macro(graph: Graph, id_: str, text: str, calls: MacroCalls) -> dict[str, Any]:
    return {
        "unique_id": id_,
        "name": id_.rpartition(".")[2],
        "resource_type": "macro",
        "package_name": graph.project.name,
        "path": "",
        "original_file_path": "",
        "macro_sql": text,
        "depends_on": {"macros": [one for one in calls.of(text) if one != id_]},
        "description": "",
        "meta": {},
        "docs": {"show": True, "node_color": None},
        "patch_path": None,
        "arguments": [],
        "created_at": 0,
        "supported_languages": None,
    }


def _short(node: Node) -> str:
    if isinstance(node, ModelNode):
        return node.model.version.model if node.model.version else node.model.name
    return node.seed.name if isinstance(node, SeedNode) else node.identifier.name
