"""LoadedProject + ParsedProject -> Graph: every table that a query reads becomes an edge to the node that it names."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import field, replace
from hashlib import sha256

from mvbuild.dataclass import dataclass
from mvbuild.diagnostics import Diagnostic, Note, ProjectError, did_you_mean, error
from mvbuild.graph.access import forbidden, forbidden_tests
from mvbuild.graph.auxiliary_names import names_of_auxiliary_views
from mvbuild.graph.broken import with_broken, with_problems
from mvbuild.graph.deprecation import deprecated
from mvbuild.graph.model import Graph, ModelNode, Node, NodeId, SeedNode, TableNode, TestNode, tested_of, tests_of
from mvbuild.graph.order import topological
from mvbuild.graph.outside import Outside
from mvbuild.graph.target_lags import bad_lags
from mvbuild.graph.time_travel import bad_travel
from mvbuild.names import STORAGE_SUFFIX, TableIdentifier
from mvbuild.parse.generic_tests import is_custom
from mvbuild.parse.generic_tests import key_of as test_key
from mvbuild.parse.model import ParsedModel, ParsedTest, Query, Read
from mvbuild.parse.project import ParsedProject
from mvbuild.project.loaded import DataTest, LoadedProject, Seed, SourceTable
from mvbuild.project.table_calls import table_call
from mvbuild.source import SourceFile, Span

_UNKNOWN = "__settings_unknown"


def build(project: LoadedProject, parsed: ParsedProject) -> Graph:
    """The graph of a project, or one ProjectError with all unresolved names, all collisions of names and all cycles."""
    try:
        return _build(project, parsed)
    except ProjectError as exc:
        raise ProjectError((*(d for model in parsed.models for d in model.problems), *exc.diagnostics)) from None


def _build(project: LoadedProject, parsed: ParsedProject) -> Graph:
    outside = Outside.of(project)
    directory = _Directory(project, outside, diagnostics=list(outside.diagnostics))
    for seed in project.seeds:
        if seed.config.enabled:
            directory.add_seed(seed)
    for source in project.sources:
        directory.add_source(source)
    # Those that may have another name than they seem to have take none from the others.
    for model in sorted(parsed.models, key=lambda model: not model.knows_settings):
        directory.add_model(model)
    nodes: dict[NodeId, Node] = {}
    for model in parsed.models:
        node = directory.model_node(model)
        nodes[node.id] = node
    nodes = {**directory.leaves, **nodes}
    if not directory.diagnostics:
        directory.diagnostics += [*bad_travel(nodes), *names_of_auxiliary_views(nodes)]
    if directory.diagnostics:
        raise ProjectError(directory.diagnostics)
    ordered = topological(nodes)
    tests = _tests(project, parsed, directory, ordered)
    if directory.diagnostics:
        raise ProjectError(directory.diagnostics)
    nodes = {**{id: n for id, n in directory.leaves.items() if id not in ordered}, **ordered}
    refused = tuple(forbidden(project, nodes))
    if of_others := [*(d for id, d in refused if id in directory.leaves), *forbidden_tests(project, nodes, tests)]:
        raise ProjectError([*(d for id, d in refused if id not in directory.leaves), *of_others])
    nodes = with_problems(nodes, refused)
    warnings = (*project.warnings, *parsed.warnings, *deprecated(nodes, project.invocation.started))
    graph = Graph(project=project, nodes=nodes, tests=tests, warnings=warnings)
    return with_broken(replace(graph, nodes=with_problems(nodes, bad_lags(graph))))


@dataclass
class _Directory:
    """Names -> node ids, while the graph is built. Names are compared as in Spark, ignoring case."""

    project: LoadedProject
    outside: Outside
    leaves: dict[NodeId, Node] = field(default_factory=dict)
    by_identifier: dict[tuple[str, ...], NodeId] = field(default_factory=dict)
    by_name: dict[str, NodeId] = field(default_factory=dict)
    by_source: dict[tuple[str, str], NodeId] = field(default_factory=dict)
    claims: dict[tuple[str, ...], tuple[str, Span]] = field(default_factory=dict)
    """Catalog name -> what has it in this project, and where that was declared."""
    diagnostics: list[Diagnostic] = field(default_factory=list)
    wrong: dict[NodeId, Diagnostic] = field(default_factory=dict)
    """The errors of single models, which block only these."""

    def add_seed(self, seed: Seed) -> None:
        config = seed.config
        node = SeedNode(
            id=f"seed.{self.project.name}.{seed.name}",
            identifier=self._identifier(config.catalog, self._namespace(config.namespace), config.alias or seed.name, None),
            seed=seed,
        )
        self.leaves[node.id] = node
        self.by_name[seed.name.lower()] = node.id
        span = Span(SourceFile(seed.path, ""), 0, 0)
        self._claim(node.identifier, node.id, f"the seed '{seed.name}'", span, "Give one of them another `alias:` or `namespace:`.")

    def add_source(self, source: SourceTable) -> None:
        outside = self.outside.location(source)
        # An error in the name of another metastore has been reported already.
        catalog = None if (source.catalog or "").lower() in self.outside.metastores else source.catalog
        identifier = outside.identifier if outside else self._identifier(catalog, source.namespace, source.identifier, source.span)
        id_ = f"source.{self.project.name}.{source.source}.{source.name}"
        self.by_source[source.source.lower(), source.name.lower()] = id_
        # A source may describe a seed's table: then the seed is the node, since mvbuild writes it.
        known = self.by_identifier.get(identifier.key)
        if known:
            self.by_source[source.source.lower(), source.name.lower()] = known
            self._same_type(source, self.leaves[known])
            return
        self.leaves[id_] = TableNode(id=id_, identifier=identifier, source=source, outside=outside)
        self.by_identifier[identifier.key] = id_
        self.claims[identifier.key] = (f"the source '{source.source}.{source.name}'", source.span)

    def _same_type(self, source: SourceTable, known: Node) -> None:
        other = known.source if isinstance(known, TableNode) else None
        if other and other.type != source.type:
            one, two = f"{source.source}.{source.name}", f"{other.source}.{other.name}"
            message = f"'{one}' and '{two}' are the same path, of type {source.type} and of type {other.type}"
            span = source.places.get("path", source.span)
            self.diagnostics.append(error("bad-config", message, span, notes=(Note(message="the other", span=other.span),)))

    def add_model(self, model: ParsedModel) -> None:
        id_ = self._model_id(model)
        self.by_name[model.name.lower()] = id_
        if model.version is not None and model.version.is_latest:
            self.by_name[model.version.model.lower()] = id_
        if model.config.materialized == "ephemeral":
            return
        if (wrong := self._other_catalog(model.config.catalog, model.name, model.config.spans.get("catalog"))) is not None:
            self.wrong[id_] = wrong
        span = model.config.spans.get("alias") or model.config.spans.get("namespace") or model.file.line_span(1)
        identifier = self._model_identifier(model)
        if not model.knows_settings or id_ in self.wrong:
            self.by_identifier.setdefault(identifier.key, id_)
            return
        free = self._claim(identifier, id_, f"the model '{model.name}'", span, "Give one of them another `alias:` or `namespace:`.")
        if model.config.materialized == "materialized_view" and (free or "storage_table" in model.config.spans):
            span = model.config.spans.get("storage_table") or span
            what = f"the storage table of the model '{model.name}'"
            self._claim(self._storage(model, identifier), id_, what, span, "Rename one of them; see `storage_table:`.")

    def model_node(self, model: ParsedModel) -> ModelNode:
        identifier = self._model_identifier(model)
        storage = self._storage(model, identifier) if model.config.materialized == "materialized_view" else None
        id_ = self._model_id(model)
        if id_ in self.wrong:
            model = replace(model, problems=(*model.problems, self.wrong[id_]), knows_settings=False)
        if not model.knows_settings and any(name is not None and name.key in self.claims for name in (identifier, storage)):
            # Another model has these names for certain: what is done with this one must not be done with that.
            identifier = identifier._replace(name=f"{identifier.name}{_UNKNOWN}")
            storage = storage and storage._replace(name=f"{storage.name}{_UNKNOWN}")
        known = len(self.diagnostics)
        found = [(read, node) for read in model.query.reads if (node := self.resolve(read, reader=id_)) is not None]
        if model.problems:
            # What is unresolved is among them. The other reads count: for selections, and for tests of what it reads.
            del self.diagnostics[known:]
            model = replace(model, query=replace(model.query, reads=tuple(read for read, _ in found)))
        mentions = (self._mentioned(names) for names in model.mentions)
        return ModelNode(
            id=id_,
            identifier=identifier,
            storage=storage,
            model=model,
            reads=tuple(node for _, node in found),
            may_read=tuple(dict.fromkeys(id for id in mentions if id is not None and id != id_)),
        )

    def _mentioned(self, names: tuple[str, ...]) -> NodeId | None:
        """The node that a text names, if it does."""
        target = self.project.target.catalog_name.lower()
        parts = names[1:] if len(names) > 2 and names[0].lower() == target else names
        by_name = self.by_name.get(names[0].lower()) if len(names) == 1 else None
        return by_name or self.by_identifier.get(self._full_name(parts).key)

    def resolve(self, read: Read, reader: NodeId | None) -> NodeId | None:
        """The node that a read names; a name that the project does not know becomes a table of the catalog."""
        if read.kind == "ref":
            return self._ref(read.parts[-1], read.span)
        if read.kind == "source":
            return self._source(read.parts, read.span)
        elsewhere = self.outside.identifier(read.parts)
        if elsewhere:
            return self._declared(elsewhere, read)
        parts = self._without_catalog(read)
        if parts is None:
            return None
        identifier = self._full_name(parts)
        known = self.by_identifier.get(identifier.key)
        if known:
            return known
        if len(parts) == 1 and self.by_name.get(parts[0].lower(), reader) != reader:
            return self.by_name[parts[0].lower()]
        if len(parts) == 2 and (parts[0].lower(), parts[1].lower()) in self.by_source:
            return self.by_source[parts[0].lower(), parts[1].lower()]
        return self._table(identifier)

    def _declared(self, identifier: TableIdentifier, read: Read) -> NodeId | None:
        """A table of another metastore: mvbuild reads only declared ones."""
        found = self.by_identifier.get(identifier.key)
        if found is None:
            message = f"The table '{identifier}' is in another metastore than the target's, and no source declares it"
            help = f"Declare it under `sources:`, with `catalog: {identifier.catalog}`."
            self.diagnostics.append(error("unresolved-source", message, read.span, help=help))
        return found

    def _table(self, identifier: TableIdentifier) -> NodeId:
        # One node per spelling: which of them the catalog has is only known when it is observed.
        id_ = f"table.{identifier}"
        self.leaves[id_] = TableNode(id=id_, identifier=identifier)
        return id_

    def _ref(self, name: str, span: Span) -> NodeId | None:
        found = self.by_name.get(name.lower())
        if found is None:
            versions = {model.name.lower() for model in self.project.models if model.version is not None}
            help = did_you_mean(name, self.by_name.keys() - versions)
            self.diagnostics.append(error("unresolved-ref", f"Unknown model or seed '{name}'", span, help=help))
        return found

    def _source(self, parts: tuple[str, ...], span: Span) -> NodeId | None:
        source, table = parts[0].lower(), parts[-1].lower()
        found = self.by_source.get((source, table))
        if found is None:
            known = [f"{s}.{t}" for s, t in self.by_source]
            self.diagnostics.append(
                error(
                    "unresolved-source",
                    f"Unknown source table '{parts[0]}.{parts[-1]}'",
                    span,
                    help=did_you_mean(".".join(parts), known),
                )
            )
        return found

    def _without_catalog(self, read: Read) -> tuple[str, ...] | None:
        """The parts of a plain name below the target's catalog; None (and a diagnostic) if it names another catalog."""
        target = self.project.target
        parts = read.parts
        if len(parts) > 2 and parts[0].lower() == target.catalog_name.lower():
            return parts[1:]
        others = {k.removeprefix("spark.sql.catalog.") for k in target.spark.config if k.startswith("spark.sql.catalog.")} | {
            "spark_catalog"
        }
        if len(parts) > 1 and parts[0] in {o for o in others if "." not in o}:
            self.diagnostics.append(
                error(
                    "missing-table",
                    f"'{'.'.join(parts)}' is in catalog '{parts[0]}', and mvbuild only reads catalog '{target.catalog_name}'",
                    read.span,
                    help="Move the table, or choose the target whose catalog has it.",
                )
            )
            return None
        return parts

    def _full_name(self, parts: tuple[str, ...]) -> TableIdentifier:
        target = self.project.target
        return TableIdentifier(target.catalog_name, parts[:-1] or target.namespace, parts[-1])

    def _model_id(self, model: ParsedModel) -> NodeId:
        return f"model.{self.project.name}.{model.name}"

    def _model_identifier(self, model: ParsedModel) -> TableIdentifier:
        config = model.config
        return self._identifier(None, self._namespace(config.namespace), config.alias or model.name, None)

    def _storage(self, model: ParsedModel, identifier: TableIdentifier) -> TableIdentifier:
        config = model.config
        namespace = self._namespace(config.storage_namespace) if config.storage_namespace else identifier.namespace
        return TableIdentifier(identifier.catalog, namespace, config.storage_table or f"{identifier.name}{STORAGE_SUFFIX}")

    def _namespace(self, configured: tuple[str, ...] | None) -> tuple[str, ...]:
        return self.project.target.namespace_of(configured)

    def _identifier(self, catalog: str | None, namespace: tuple[str, ...], name: str, span: Span | None) -> TableIdentifier:
        if (wrong := self._other_catalog(catalog, name, span)) is not None:
            self.diagnostics.append(wrong)
        return TableIdentifier(self.project.target.catalog_name, namespace, name)

    def _other_catalog(self, catalog: str | None, name: str, span: Span | None) -> Diagnostic | None:
        target = self.project.target
        if catalog is None or catalog == target.catalog_name:
            return None
        message = f"'{name}' is configured for catalog '{catalog}', and target '{target.name}' has catalog '{target.catalog_name}'"
        help = "Leave `catalog` out, or run with the target whose catalog it is. A source of another metastore needs its `properties`."
        return error("bad-config", message, span, help=help)

    def _claim(self, identifier: TableIdentifier, id_: NodeId, what: str, span: Span, help: str) -> bool:
        """Whether the name is free; if not, that is an error."""
        self.by_identifier.setdefault(identifier.key, id_)
        other, place = self.claims.setdefault(identifier.key, (what, span))
        is_free = (other, place) == (what, span)
        if not is_free:
            message = f"{what[0].upper()}{what[1:]} and {other} are both named {identifier.dotted} in the catalog"
            self.diagnostics.append(error("duplicate-name", message, span, help=help, notes=(Note(message=other, span=place),)))
        return is_free


def _tests(project: LoadedProject, parsed: ParsedProject, directory: _Directory, nodes: Mapping[NodeId, Node]) -> tuple[TestNode, ...]:
    order = {id: i for i, id in enumerate(nodes)}
    tests = [t for node in (*nodes.values(), *directory.leaves.values()) for t in _generic_tests(node, parsed, directory)]
    tests += [(t, (), t.query) for t in parsed.tests]
    out: dict[NodeId, TestNode] = {}
    for test, before, query in tests:
        of_query = tuple(id for r in query.reads if (id := directory.resolve(r, None)) is not None) if query else ()
        reads = tuple(dict.fromkeys((*before, *of_query))) if before and query else (*before, *of_query)
        id_ = f"test.{project.name}.{test.name}.{sha256(repr((test.name, reads)).encode()).hexdigest()[:10]}"
        gates = _gates(test, reads, nodes, order)
        out[id_] = TestNode(id=id_, name=test.name, test=test, reads=reads, query=query, query_reads=of_query, gates=gates)
    return tuple(out.values())


def _generic_tests(
    node: Node, parsed: ParsedProject, directory: _Directory
) -> Iterable[tuple[DataTest | ParsedTest, tuple[NodeId, ...], Query | None]]:
    """Each with what it reads besides the reads of its query."""
    for test in tests_of(node):
        if is_custom(test):
            yield test, (node.id,), parsed.custom[test_key(tested_of(node), test)]
        elif "to" in test.arguments and (to := _to(test, directory)) is not None:
            yield test, (node.id, to), None
        else:
            yield test, (node.id,), None


def _to(test: DataTest, directory: _Directory) -> NodeId | None:
    text = str(test.arguments.get("to", ""))
    span = test.places.get("to", test.span)
    call = table_call(text)
    if call is None:
        parts = tuple(p.strip("` ") for p in text.split("."))
        read = Read(kind="name", parts=parts, start=0, end=0, span=span, alias=None, travel=None, qualifiers=())
        return directory.resolve(read, None)
    return directory._source(call.names, span) if call.kind == "source" else directory._ref(call.model, span)


def _gates(
    test: DataTest | ParsedTest, reads: tuple[NodeId, ...], nodes: Mapping[NodeId, Node], order: Mapping[NodeId, int]
) -> tuple[NodeId, ...]:
    """The MVs below what the test reads; a generic test of something other than an MV gates nothing."""
    if isinstance(test, DataTest) and not _is_mv(nodes.get(reads[0]) if reads else None):
        return ()
    return tuple(sorted({mv for read in reads for mv in _materialized(read, nodes)}, key=lambda id: order[id]))


def _materialized(id_: NodeId, nodes: Mapping[NodeId, Node]) -> set[NodeId]:
    """The MV itself, or the MVs below a view or ephemeral model. What cannot be read may read all that it mentions."""
    found: set[NodeId] = set()
    seen, edge = {id_}, [id_]
    while edge:
        node = nodes.get(edge.pop())
        if node is None:
            continue
        if isinstance(node, ModelNode) and node.storage is not None:
            found.add(node.id)
            if node.model.knows_settings:
                continue
        below = (*node.reads, *(node.may_read if isinstance(node, ModelNode) else ()))
        edge += (new := [id for id in below if id not in seen])
        seen.update(new)
    return found


def _is_mv(node: Node | None) -> bool:
    return isinstance(node, ModelNode) and node.storage is not None
