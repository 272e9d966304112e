"""a project that was compiled before <-> its Graph: names and edges are cached, and models are read when they are needed.

The outline is only valid for the very files that it was made from. Only a few files of models may differ: these are parsed at once, and the
graph is the same if each of them still has the names and the reads that it had.
"""

from __future__ import annotations

import gc
import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import date
from functools import partial
from typing import Any

from mvbuild.cache.keys import digest
from mvbuild.cache.lazy import Lazy
from mvbuild.diagnostics import ProjectError
from mvbuild.graph.file_facts import FileFacts, facts_of, variables_in
from mvbuild.graph.model import CachedGraph, Graph, ModelNode, Node, NodeId, SeedNode, TableNode, TestNode, tested_of, tests_of
from mvbuild.graph.outside import Outside
from mvbuild.names import TableIdentifier
from mvbuild.parse.generic_tests import is_custom
from mvbuild.parse.model import ParsedModel
from mvbuild.parse.project import parse_custom_test, parse_model, parse_test
from mvbuild.parse.templates import Templates
from mvbuild.project.files import LARGEST_TEXT, Found
from mvbuild.project.load import Opened, describe, loaded_project, model_file, read_seeds
from mvbuild.project.loaded import DataTest, LoadedProject, ModelFile, ModelVersion
from mvbuild.project.properties import Described
from mvbuild.source import Span
from mvbuild.workers import Workers

MOST_CHANGED = 20
"""With more changed models, the graph is rebuilt."""


class LazyModelFile(Lazy, ModelFile):
    """A model with only its place known."""

    __slots__ = ("_later",)


class LazyModel(Lazy, ParsedModel):
    """A model that was parsed by an earlier run."""

    __slots__ = ("_later",)


_RIGHT: Mapping[str, Any] = {"problems": (), "knows_settings": True, "mentions": ()}
"""A graph with errors is not cached."""


class LazyTest(Lazy, TestNode):
    """A test that was read by an earlier run."""

    __slots__ = ("_later",)


def frame_of(opened: Opened, env: Mapping[str, str]) -> str | None:
    """A hash of everything that a graph depends on, except the texts of its models; None if a file cannot be read."""
    try:
        facts = facts_of(opened)
    except ProjectError:
        return None
    project, target = opened.project, opened.project.target
    named = (project.name, target.name, target.catalog_name, target.namespace, target.threads)
    vars = sorted(project.vars.items(), key=lambda item: item[0])
    packages = [(one.name, sorted(one.vars.items()), [(file.path, file.text) for file in one.macros]) for one in opened.packages]
    files = (str(opened.root), str(opened.output), project.file.path, project.file.text, len(project.warnings))
    of_files = (facts.hashes, [path for path, _ in facts.of_models], packages)
    # A deprecation date that passes makes a warning.
    today = str(date.today()) if facts.has_deprecation else None
    return digest(*files, named, vars, _environment(opened, facts, env), *of_files, today)


def _environment(opened: Opened, facts: FileFacts, env: Mapping[str, str]) -> list[tuple[str, str | None]]:
    """The variables that templates read."""
    others = [opened.project.file.text, *(file.text for package in opened.packages for file in package.macros)]
    variables = variables_in(text.encode("utf-8", "surrogatepass") for text in others)
    if facts.variables is None or variables is None:
        return sorted(env.items())
    return sorted((name, env.get(name)) for name in facts.variables | variables)


# --- graph -> text -----------------------------------------------------------------------------------------------------------------


def outline_of(graph: Graph, opened: Opened) -> str | None:
    """The names and edges of a graph as JSON; None for a graph with diagnostics, which must be reported each time."""
    if graph.warnings or graph.problems:
        return None
    numbers = {id: number for number, id in enumerate(graph.nodes)}
    documents = {path: number for number, path in enumerate(opened.documents)}
    project = graph.project
    leaves = (
        {group.span.file.path for group in project.groups.values()}
        | {source.span.file.path for source in project.sources}
        | {seed.properties.patch_path for seed in project.seeds}
    )
    content = {
        "files": {f.path: opened.contents.hash(f.path, LARGEST_TEXT) for f in opened.files["model"]},
        "leaves": [path for path in opened.documents if path in leaves],
        "nodes": [_outline_of_node(node, numbers, documents) for node in graph.nodes.values()],
        "tests": [_outline_of_test(test, graph, numbers) for test in graph.tests],
        "contracts": graph.contracts,
    }
    return json.dumps(content, separators=(",", ":"))


def _outline_of_node(node: Node, numbers: Mapping[NodeId, int], documents: Mapping[str, int]) -> list[Any]:
    name = _plain(node.identifier)
    if isinstance(node, ModelNode):
        model = node.model
        described = documents[model.properties.patch_path] if model.properties.patch_path else None
        version = model.version and [model.version.model, model.version.v, model.version.latest, model.version.file]
        row = ["m", name, model.file.path, _plain(node.storage), [numbers[id] for id in node.reads], described, _face(model)]
        return [*row, version] if version else row
    if isinstance(node, SeedNode):
        return ["s", name, node.seed.name]
    assert isinstance(node, TableNode)
    return ["t", name, [node.source.source, node.source.name] if node.source else None]


def _outline_of_test(test: TestNode, graph: Graph, numbers: Mapping[NodeId, int]) -> list[Any]:
    place: int | str
    if isinstance(test.test, DataTest):
        place = next(i for i, one in enumerate(tests_of(graph.nodes[test.reads[0]])) if one is test.test)
    else:
        place = test.test.file.path
    reads, of_query = [numbers[id] for id in test.reads], [numbers[id] for id in test.query_reads]
    return [test.id, test.name, place, reads, [numbers[id] for id in test.gates], *([of_query] if of_query != reads else [])]


def _plain(identifier: TableIdentifier | None) -> list[Any] | None:
    return [identifier.catalog, identifier.namespace, identifier.name] if identifier else None


def _face(model: ParsedModel) -> str:
    """A hash of everything about a model that affects the rest of the graph."""
    config = model.config
    names = (config.catalog, config.namespace, config.alias, config.storage_namespace, config.storage_table)
    reads = [(read.kind, read.parts, read.travel and (read.travel.kind, read.travel.value)) for read in model.query.reads]
    return digest(config.materialized, config.contract, config.group, config.access, names, reads)


# --- text -> graph -----------------------------------------------------------------------------------------------------------------


def outlined(
    frame: str, text: str, nodes: Mapping[NodeId, Node], contracts: Iterable[NodeId], changed: Iterable[NodeId] = ()
) -> CachedGraph:
    return CachedGraph(key=digest(frame, text), changed=frozenset(changed), nodes=nodes, contracts=tuple(contracts))


def restored(frame: str, text: str, opened: Opened, env: Mapping[str, str]) -> Graph | None:
    """None if the graph must be rebuilt: building it reports what is wrong with a project."""
    if opened.report:
        return None
    try:
        with _no_search_for_garbage():
            content = json.loads(text)
            changed = _changed(content["files"], opened)
            graph = _graph(content, changed, opened, env) if len(changed) <= MOST_CHANGED else None
    except (ProjectError, ValueError, LookupError, TypeError, AttributeError):
        graph = None
    opened.report.clear()
    if graph is None:
        return None
    ids = [node.id for node in graph.models if node.model.file.path in changed]
    return replace(graph, outlined=outlined(frame, text, graph.nodes, content["contracts"], ids))


@contextmanager
def _no_search_for_garbage() -> Iterator[None]:
    """A graph of 10,000 MVs is 200,000 objects, all of which stay: Python would look at them several times."""
    is_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if is_enabled:
            gc.enable()


def _changed(files: Mapping[str, str], opened: Opened) -> frozenset[str]:
    """The files of models that have changed."""
    return frozenset(f.path for f in opened.files["model"] if opened.contents.hash(f.path, LARGEST_TEXT) != files[f.path])


def _graph(outline: Mapping[str, Any], changed: Collection[str], opened: Opened, env: Mapping[str, str]) -> Graph | None:
    reader = _Reader(opened, opened.files["model"], [row for row in outline["nodes"] if row[0] == "m"])
    described = describe(opened, outline["leaves"], Workers(1))
    project = loaded_project(opened, models=tuple(reader.files.values()), seeds=read_seeds(opened, described), described=described)
    reader.templates = Templates(project, env)
    if any(reader.differs(row) for row in outline["nodes"] if row[0] == "m" and row[2] in changed):
        return None
    if any(path not in reader.rows for path in changed):
        return None
    nodes = _nodes(outline["nodes"], project, reader)
    return Graph(project=project, nodes=nodes, tests=tuple(_tests(outline["tests"], nodes, project, reader)))


class _Reader:
    """Files of models -> models, one by one."""

    templates: Templates

    def __init__(self, opened: Opened, files: Sequence[Found], rows: Iterable[Sequence[Any]]) -> None:
        self._opened = opened
        self.rows = {row[2]: row for row in rows}
        self.files = {f.path: self._unread(f) for f in files}
        self._described: dict[str, Described] = {}
        self._changed: dict[str, ParsedModel] = {}

    def differs(self, row: Sequence[Any]) -> bool:
        """Whether the graph must be rebuilt for a changed model. Raises ProjectError if something is wrong with the model."""
        model = parse_model(self.files[row[2]], self.templates)
        # An inlined model, or one translated for other engines, is checked together with everything that reads it.
        if model is None or model.config.materialized == "ephemeral" or model.config.dialects or _face(model) != row[6]:
            return True
        self._changed[row[2]] = model
        return False

    def model(self, path: str) -> ParsedModel:
        known = self._changed.get(path)
        if known is not None:
            return known
        file = self.files[path]
        named = {"name": file.name, "version": file.version, "folders": file.folders, "file": file.file, **_RIGHT}
        return LazyModel.of(partial(self._model, file), named)

    def _model(self, file: ModelFile, field: str) -> Mapping[str, Any]:
        if field == "properties":
            return {field: file.properties}
        model = parse_model(file, self.templates)
        assert model is not None, file.name
        return {"config": model.config, "query": model.query}

    def _unread(self, found: Found) -> LazyModelFile:
        file = self._opened.contents.later(found.path)
        row = self.rows.get(found.path, ())
        version = None
        if len(row) > 7:
            model, v, latest, stem = row[7]
            version = ModelVersion(model=model, v=v, latest=latest, file=stem, span=Span(file, 0, 0))
        named = {"name": version.name if version else found.stem, "version": version, "folders": found.folders, "file": file}
        return LazyModelFile.of(partial(self._entry, found), named)

    def _entry(self, found: Found, _: str) -> Mapping[str, Any]:
        row = self.rows.get(found.path)
        described = self._document(self._opened.documents[row[5]]) if row and row[5] is not None else None
        entry = described.models.get(self.files[found.path].name.lower()) if described else None
        whole = model_file(self._opened, found, self.files[found.path].file, entry)
        return {"layers": whole.layers, "properties": whole.properties}

    def _document(self, path: str) -> Described:
        if path not in self._described:
            self._opened.contents.complete()
            self._described[path] = describe(self._opened, (path,), Workers(1))
        return self._described[path]


def _nodes(rows: Iterable[Sequence[Any]], project: LoadedProject, reader: _Reader) -> dict[NodeId, Node]:
    outside = Outside.of(project)
    seeds = {seed.name: seed for seed in project.seeds}
    sources = {(source.source, source.name): source for source in project.sources}
    ids: list[NodeId] = []
    nodes: dict[NodeId, Node] = {}
    for kind, name, *rest in rows:
        identifier = _identifier(name)
        node: Node
        if kind == "m":
            path, storage, reads = rest[:3]
            model = reader.model(path)
            id_ = f"model.{project.name}.{model.name}"
            stored = _identifier(storage) if storage else None
            node = ModelNode(id=id_, identifier=identifier, storage=stored, model=model, reads=tuple([ids[n] for n in reads]))
        elif kind == "s":
            node = SeedNode(id=f"seed.{project.name}.{rest[0]}", identifier=identifier, seed=seeds[rest[0]])
        elif rest[0]:
            source = sources[tuple(rest[0])]
            id_ = f"source.{project.name}.{source.source}.{source.name}"
            node = TableNode(id=id_, identifier=identifier, source=source, outside=outside.location(source))
        else:
            node = TableNode(id=f"table.{identifier}", identifier=identifier)
        nodes[node.id] = node
        ids.append(node.id)
    return nodes


def _identifier(plain: Sequence[Any]) -> TableIdentifier:
    return TableIdentifier(plain[0], tuple(plain[1]), plain[2])


def _tests(rows: Iterable[Sequence[Any]], nodes: Mapping[NodeId, Node], project: LoadedProject, reader: _Reader) -> Iterable[TestNode]:
    ids = list(nodes)
    files = {file.path: file for file in project.tests}

    def read(place: int | str, tested: NodeId, field: str) -> Mapping[str, Any]:
        if isinstance(place, int):
            test = tests_of(nodes[tested])[place]
            if field == "query":
                return {field: parse_custom_test(tested_of(nodes[tested]), test, reader.templates) if is_custom(test) else None}
            return {"test": test}
        sql = parse_test(files[place], reader.templates)
        return {"test": sql, "query": sql.query if sql else None}

    for id_, name, place, reads, gates, *of_query in rows:
        read_ids = tuple([ids[n] for n in reads])
        query_reads = tuple([ids[n] for n in of_query[0]]) if of_query else read_ids
        known = {"id": id_, "name": name, "reads": read_ids, "query_reads": query_reads, "gates": tuple([ids[n] for n in gates])}
        yield LazyTest.of(partial(read, place, read_ids[0] if read_ids else ""), known)
