"""Graph + method and value of a selector -> the ids of the nodes and tests that it finds. Information beyond the graph is in `known`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import PurePosixPath
from typing import Any

from mvbuild.diagnostics import Diagnostic, ProjectError, did_you_mean, error
from mvbuild.graph.access import group_of, group_of_test
from mvbuild.graph.exposures import exposures_of
from mvbuild.graph.model import Graph, ModelNode, Node, NodeId, SeedNode, TableNode, TestNode, ViewNode
from mvbuild.project.loaded import DataTest, ModelVersion, Properties, SourceTable
from mvbuild.project.model_versions import order
from mvbuild.project.settings import ACCESSES, ALIASES, KNOWN_MODEL_SETTINGS, KNOWN_SEED_SETTINGS
from mvbuild.selection.grammar import Criterion
from mvbuild.selection.known import Known
from mvbuild.versions.model import settings_of

Item = Node | TestNode
Find = Callable[[Graph, Known, str], set[NodeId]]
RESOURCE_TYPES = ("model", "seed", "source", "test", "unit_test", "exposure")
_SETTINGS = KNOWN_MODEL_SETTINGS | KNOWN_SEED_SETTINGS | {"severity"}
_VERSIONS = ("latest", "prerelease", "old", "none")
_WILD = frozenset("*?[")
_INSTEAD: Mapping[str, str] = {
    "source_status": "mvbuild compares MVs with their tables itself: use `stale:` or `fresh:`.",
    "wildcard": "You can use wildcards in any value: `*.marts.*`, `tag:night*`.",
    **dict.fromkeys(
        ("metric", "semantic_model", "saved_query", "function"),
        "mvbuild has no metrics, semantic models, saved queries or functions.",
    ),
}


def check(criterion: Criterion) -> Criterion:
    """Check the criterion itself. Raises ProjectError if its method is not known."""
    method, _, path = criterion.method.partition(".")
    if criterion.method not in METHODS and not (method == "config" and path):
        raise ProjectError([_unknown(criterion)])
    return criterion


def find(graph: Graph, known: Known, criterion: Criterion) -> set[NodeId]:
    """What the method itself finds, before `+` and `@`. Raises ProjectError for an unknown method or value."""
    path = check(criterion).method.partition(".")[2]
    try:
        return _config(graph, path, criterion.value) if path else METHODS[criterion.method](graph, known, criterion.value)
    except ProjectError as exc:
        raise ProjectError(_at(d, criterion) for d in exc.diagnostics) from exc


def _at(diagnostic: Diagnostic, criterion: Criterion) -> Diagnostic:
    """The place in selectors.yml, if it came from there."""
    if diagnostic.span is not None or criterion.span is None:
        return diagnostic
    return error(diagnostic.code, diagnostic.message, criterion.span, help=diagnostic.help)


def _unknown(criterion: Criterion) -> Diagnostic:
    name = criterion.method
    if name == "config":
        message, help = "'config' needs the name of a setting", "Write it after a dot: `config.materialized:view`."
    else:
        message = f"Unknown selector method '{name}'"
        help = _INSTEAD.get(name) or did_you_mean(name, (*METHODS, "config"))
    return error("unknown-selector", message, criterion.span, help=help)


# --- of the graph alone ------------------------------------------------------------------------------------------------------------


def items(graph: Graph) -> Iterable[Item]:
    """Everything that selectors can name."""
    return (*graph.nodes.values(), *graph.tests)


def kind_of(id_: NodeId) -> str:
    """The type of a resource. A table that is read by its plain name is like a source."""
    kind = id_.partition(".")[0]
    return "source" if kind == "table" else kind


def name_of(item: Item) -> str:
    if isinstance(item, ModelNode):
        return item.model.name
    if isinstance(item, SeedNode):
        return item.seed.name
    return item.name if isinstance(item, TestNode) else item.identifier.name


def _fqn(graph: Graph, known: Known, value: str) -> set[NodeId]:  # noqa: ARG001
    """The name, with or without folders and the project before it, a folder, or the name in the catalog. With wildcards, names in the
    catalog count only if nothing else matches, so that `marts.*` is always the folder if there is one."""
    parts = value.split(".")
    found = {i.id for i in items(graph) if _is_named(i, value, parts)}
    return found or ({i.id for i in items(graph) if _is_in_catalog(i, parts)} if len(parts) > 1 and _WILD & set(value) else found)


def _is_in_catalog(item: Item, parts: Sequence[str]) -> bool:
    if not isinstance(item, ModelNode | SeedNode):
        return False
    catalog, *name = item.identifier.parts
    return _leads(parts, name) or _leads(parts, [catalog, *name])


def _is_named(item: Item, value: str, parts: Sequence[str]) -> bool:
    if isinstance(item, TableNode | ViewNode):
        return False
    name = name_of(item)
    version = item.model.version if isinstance(item, ModelNode) else None
    if name == value or (version is not None and value in (version.model, f"{version.model}_v{version.v}")):
        return True
    folders = item.model.folders if isinstance(item, ModelNode) else ()
    package = item.id.split(".", 2)[1]
    if value.isidentifier():
        return value in (package, (folders[0] if folders else name).partition(".")[0])
    # Dots in folders and names separate levels as well.
    levels = ".".join((*folders, name)).split(".")
    if fnmatchcase(name, value) or _leads(parts, levels) or _leads(parts, [package, *levels]):
        return True
    return not isinstance(item, TestNode) and value in (item.identifier.dotted, str(item.identifier))


def _leads(parts: Sequence[str], levels: Sequence[str]) -> bool:
    """Whether the parts are the first of the levels; from the first wildcard on, they must match all remaining levels."""
    if len(parts) > len(levels):
        return False
    for at, part in enumerate(parts):
        if _WILD & set(part):
            return fnmatchcase(".".join(levels[at:]), ".".join(parts[at:]))
        if part != levels[at]:
            return False
    return True


def paths_of(item: Item) -> tuple[str, ...]:
    """The item's file, and the YAML that describes it."""
    if isinstance(item, ModelNode):
        return _paths(item.model.file.path, item.model.properties)
    if isinstance(item, SeedNode):
        return _paths(item.seed.path, item.seed.properties)
    if isinstance(item, TestNode):
        return (item.span.file.path,)
    return (item.source.span.file.path,) if item.source else ()


def _paths(path: str, properties: Properties) -> tuple[str, ...]:
    return (path, properties.patch_path) if properties.patch_path else (path,)


def _path(graph: Graph, known: Known, value: str) -> set[NodeId]:  # noqa: ARG001
    """The file itself, or any folder around it; `*` stays within a level and `**` does not, as for files on disk."""
    wanted = PurePosixPath(value.removeprefix("./")).parts
    return set() if not value else {i.id for i in items(graph) if any(_is_below(path, wanted) for path in paths_of(i))}


def _is_below(path: str, wanted: Sequence[str]) -> bool:
    return _leads_path(wanted, path.split("/"))


def _leads_path(wanted: Sequence[str], levels: Sequence[str]) -> bool:
    if not wanted:
        return True
    if wanted[0] == "**":
        return any(_leads_path(wanted[1:], levels[at:]) for at in range(len(levels)))
    return bool(levels) and fnmatchcase(levels[0], wanted[0]) and _leads_path(wanted[1:], levels[1:])


def _file(graph: Graph, known: Known, value: str) -> set[NodeId]:  # noqa: ARG001
    files = ((i.id, PurePosixPath(path)) for i in items(graph) for path in paths_of(i)[:1])
    return {id for id, file in files if fnmatchcase(file.name, value) or fnmatchcase(file.stem, value)}


def _package(graph: Graph, known: Known, value: str) -> set[NodeId]:  # noqa: ARG001
    package = graph.project.name if value == "this" else value
    return {i.id for i in items(graph) if not i.id.startswith("table.") and fnmatchcase(i.id.split(".")[1], package)}


def _tag(graph: Graph, known: Known, value: str) -> set[NodeId]:  # noqa: ARG001
    return {i.id for i in items(graph) if any(fnmatchcase(tag, value) for tag in tags_of(i))}


def tags_of(item: Item) -> tuple[str, ...]:
    if isinstance(item, ModelNode):
        return item.model.config.tags
    if isinstance(item, SeedNode):
        return item.seed.config.tags
    if isinstance(item, TestNode):
        return item.tags
    return item.source.tags if item.source else ()


def _group(graph: Graph, known: Known, value: str) -> set[NodeId]:  # noqa: ARG001
    groups = {**{id: group_of(node) for id, node in graph.nodes.items()}, **{t.id: group_of_test(t, graph.nodes) for t in graph.tests}}
    return {id for id, group in groups.items() if group is not None and fnmatchcase(group, value)}


def _version(graph: Graph, known: Known, value: str) -> set[NodeId]:  # noqa: ARG001
    if value not in _VERSIONS:
        message = f"Unknown kind of version '{value}'"
        raise ProjectError([error("unknown-selector", message, help=did_you_mean(value, _VERSIONS))])
    return {node.id for node in graph.models if _age(node.model.version) == value}


def _age(version: ModelVersion | None) -> str:
    if version is None or version.is_latest:
        return "none" if version is None else "latest"
    return "old" if order([version.v, version.latest])[0] == version.v else "prerelease"


def _access(graph: Graph, known: Known, value: str) -> set[NodeId]:  # noqa: ARG001
    if not _WILD & set(value) and value not in ACCESSES:
        raise ProjectError([error("unknown-selector", f"Unknown access '{value}'", help=did_you_mean(value, ACCESSES))])
    return {node.id for node in graph.models if fnmatchcase(node.model.config.access, value)}


def _source(graph: Graph, known: Known, value: str) -> set[NodeId]:  # noqa: ARG001
    parts = value.split(".")
    if len(parts) > 3:
        help = "Write source:NAME, source:NAME.TABLE or source:PROJECT.NAME.TABLE."
        raise ProjectError([error("unknown-selector", f"'source:{value}' has too many parts", help=help)])
    project, name, table = {1: ["*", *parts, "*"], 2: ["*", *parts]}.get(len(parts), parts)
    found = ((id, n.source) for id, n in graph.nodes.items() if isinstance(n, TableNode | ViewNode) and n.source)
    return {
        id
        for id, source in found
        if fnmatchcase(source.source, name) and fnmatchcase(source.name, table) and fnmatchcase(graph.project.name, project)
    }


def _resource_type(graph: Graph, known: Known, value: str) -> set[NodeId]:
    if value not in RESOURCE_TYPES:
        message = f"Unknown resource type '{value}'"
        raise ProjectError([error("unknown-selector", message, help=did_you_mean(value, RESOURCE_TYPES))])
    if value == "unit_test":
        return _unit_test(graph, known, "*")
    if value == "exposure":
        return _exposure(graph, known, "*")
    return {i.id for i in items(graph) if i.id.partition(".")[0] == value}


def _test_type(graph: Graph, known: Known, value: str) -> set[NodeId]:
    if value == "unit":
        return _unit_test(graph, known, "*")
    wanted = {"generic": (True,), "singular": (False,), "data": (True, False)}.get(value)
    if wanted is None:
        message = f"Unknown test type '{value}'"
        raise ProjectError([error("unknown-selector", message, help=did_you_mean(value, ("generic", "singular", "data", "unit")))])
    return {test.id for test in graph.tests if isinstance(test.test, DataTest) in wanted}


def _unit_test(graph: Graph, known: Known, value: str) -> set[NodeId]:  # noqa: ARG001
    """The name of a unit test, also after that of the project."""
    project = graph.project.name
    return {test.id(project) for test in graph.unit_tests if fnmatchcase(test.name, value) or fnmatchcase(f"{project}.{test.name}", value)}


def _exposure(graph: Graph, known: Known, value: str) -> set[NodeId]:  # noqa: ARG001
    """The name of an exposure, also after that of the project."""
    project = graph.project.name
    return {
        one.id
        for one in exposures_of(graph)
        if fnmatchcase(one.exposure.name, value) or fnmatchcase(f"{project}.{one.exposure.name}", value)
    }


def _test_name(graph: Graph, known: Known, value: str) -> set[NodeId]:  # noqa: ARG001
    """The kind of a generic test, or the name of a SQL test."""
    return {t.id for t in graph.tests if fnmatchcase(t.test.kind if isinstance(t.test, DataTest) else t.name, value)}


# --- configuration -----------------------------------------------------------------------------------------------------------------


def _config(graph: Graph, path: str, value: str) -> set[NodeId]:
    name, *below = path.split(".")
    if name not in _SETTINGS:
        raise ProjectError([error("unknown-selector", f"Unknown setting '{name}'", help=did_you_mean(name, _SETTINGS))])
    name = ALIASES.get(name, name)
    return {i.id for i in items(graph) if _has(_descend(_settings(i, name), [name, *below]), value)}


def _settings(item: Item, name: str) -> Mapping[str, Any]:
    if isinstance(item, TestNode):
        return {"severity": item.severity, "enabled": True, "materialized": "test", "tags": item.tags, "meta": item.meta}
    if isinstance(item, TableNode | ViewNode):
        return _of_source(item.source)
    config = item.model.config if isinstance(item, ModelNode) else item.seed.config
    first: dict[str, Any] = {"materialized": "seed"} if isinstance(item, SeedNode) else {}
    if name in ("catalog", "namespace", "alias"):
        identifier = item.identifier
        first |= {"catalog": identifier.catalog, "namespace": ".".join(identifier.namespace), "alias": identifier.name}
    found = first | settings_of(config)
    if name not in found and hasattr(config, name):
        found[name] = getattr(config, name)
    window = found.pop("max_staleness", None)
    freshness = {"freshness": {"max_staleness": window}} if window is not None else {}
    storage = {"storage": {"format": found["storage_format"]}} if "storage_format" in found else {}
    return found | freshness | storage


def _of_source(source: SourceTable | None) -> Mapping[str, Any]:
    return {"tags": list(source.tags), "meta": source.meta, "enabled": True} if source else {}


def _descend(value: Any, path: Sequence[str]) -> Any:
    for at, key in enumerate(path):
        if not isinstance(value, Mapping):
            return None
        # A key may contain dots, as those of table properties do.
        rest = ".".join(path[at:])
        if rest in value:
            return value[rest]
        value = value.get(key)
    return value


def _has(value: Any, wanted: str) -> bool:
    if isinstance(value, (list, tuple)):
        return any(_has(item, wanted) for item in value)
    if isinstance(value, bool):
        return wanted.lower() == str(value).lower()
    return value is not None and not isinstance(value, Mapping) and fnmatchcase(str(value), wanted)


# --- of what is known besides ------------------------------------------------------------------------------------------------------


def _state(graph: Graph, known: Known, value: str) -> set[NodeId]:
    return known.state(graph, value)


def _result(graph: Graph, known: Known, value: str) -> set[NodeId]:
    return known.result(graph, value)


def _fresh(graph: Graph, known: Known, value: str) -> set[NodeId]:
    return _fqn(graph, known, value or "*") & {id for id, state in known.freshness(f"fresh:{value}").items() if state == "fresh"}


def _stale(graph: Graph, known: Known, value: str) -> set[NodeId]:
    """Everything that is not proven fresh: a run refreshes it."""
    return _fqn(graph, known, value or "*") & {id for id, state in known.freshness(f"stale:{value}").items() if state != "fresh"}


def _git(graph: Graph, known: Known, value: str) -> set[NodeId]:
    changed = known.changed_files(graph, value or "HEAD")
    return {i.id for i in items(graph) if not changed.isdisjoint(paths_of(i))}


METHODS: Mapping[str, Find] = {
    "fqn": _fqn,
    "path": _path,
    "file": _file,
    "package": _package,
    "tag": _tag,
    "group": _group,
    "access": _access,
    "version": _version,
    "source": _source,
    "resource_type": _resource_type,
    "test_type": _test_type,
    "test_name": _test_name,
    "unit_test": _unit_test,
    "exposure": _exposure,
    "state": _state,
    "result": _result,
    "fresh": _fresh,
    "stale": _stale,
    "git": _git,
    "selector": lambda graph, known, value: set(),  # noqa: ARG005 - select.py puts its definition in the place
}
