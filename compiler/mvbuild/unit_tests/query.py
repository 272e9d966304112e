"""UnitTest + graph -> the SQL of its model, with the given rows in place of what it reads."""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import replace
from datetime import datetime, timezone

from mvbuild.cache.store import Cache
from mvbuild.dataclass import dataclass
from mvbuild.diagnostics import Diagnostic, ProjectError, did_you_mean, error
from mvbuild.freshness.expansion import expanded_sql
from mvbuild.freshness.leaves import is_leaf
from mvbuild.freshness.observed import Leaf
from mvbuild.graph.model import Graph, ModelNode, NodeId, SeedNode, TableNode
from mvbuild.names import TableIdentifier
from mvbuild.parse.file import parse_file
from mvbuild.parse.model import Query, Read
from mvbuild.parse.templates import Templates
from mvbuild.project.settings import Own
from mvbuild.project.table_calls import table_call
from mvbuild.project.unit_tests import Given, RowsAsWritten, UnitTest
from mvbuild.source import MappedText
from mvbuild.unit_tests.clock import at_time
from mvbuild.unit_tests.random_rows import random_rows
from mvbuild.unit_tests.values import Types, problems, rows_sql


@dataclass(frozen=True, slots=True, kw_only=True)
class Columns:
    """The columns of a table. `complete`: there are no others."""

    types: Types
    complete: bool


ColumnsOf = Mapping[NodeId, Columns]


@dataclass(frozen=True, slots=True, kw_only=True)
class TestQuery:
    """The query of a unit test. `inputs`: the rows of each table as SQL."""

    __test__ = False

    node: ModelNode
    sql: str
    inputs: Mapping[NodeId, str]
    rows: Mapping[NodeId, RowsAsWritten]


def model_of(graph: Graph, test: UnitTest) -> ModelNode:
    """Raises ProjectError for an unknown model."""
    node = graph.nodes.get(f"model.{graph.project.name}.{test.model}")
    if not isinstance(node, ModelNode):
        help = did_you_mean(test.model, [n.model.name for n in graph.models])
        raise ProjectError(
            [error("bad-unit-test", f"The unit test '{test.name}' names an unknown model '{test.model}'", test.span, help=help)]
        )
    return node


def test_query(graph: Graph, test: UnitTest, columns: ColumnsOf, *, names: Mapping[NodeId, str] | None = None) -> TestQuery:
    """Raises ProjectError with everything that is wrong with the test. `names`: tables to read instead of the given rows."""
    report: list[Diagnostic] = []
    node, query, reads, inputs_given = _inputs(graph, test, report)
    rows: dict[NodeId, RowsAsWritten] = {}
    for id_, given in inputs_given.items():
        of = columns.get(id_, Columns(types={}, complete=False))
        rows[id_] = _made(given, of, f"{test.name} {given.input}", report)
        report += problems(rows[id_], of.types, complete=of.complete, what=given.input)
    if report:
        raise ProjectError(report)
    inputs = {id_: rows_sql(one, columns[id_].types if id_ in columns else {}) for id_, one in rows.items()}
    sql = _with_rows(graph, query, reads, names or inputs).text
    clock = test.overrides.clock
    return TestQuery(node=node, sql=at_time(sql, clock) if clock else sql, inputs=inputs, rows=rows)


test_query.__test__ = False  # type: ignore[attr-defined]


def wrong_unit_tests(graph: Graph) -> tuple[Diagnostic, ...]:
    """What is wrong with unit tests whatever the types of columns are: unknown models and inputs, tables without rows, malformed rows."""
    try:
        tests = graph.unit_tests
    except ProjectError as exc:
        return exc.diagnostics
    report: list[Diagnostic] = []
    for test in tests:
        if f"model.{graph.project.name}.{test.model}" in graph.undefined:
            continue
        try:
            _inputs(graph, test, report)
        except ProjectError as exc:
            report += (d for d in exc.diagnostics if d.code == "bad-unit-test")
    return tuple(report)


def _inputs(graph: Graph, test: UnitTest, report: list[Diagnostic]) -> tuple[ModelNode, Query, tuple[NodeId, ...], dict[NodeId, Given]]:
    """The model, its query with the overrides and what that reads, and the given tables. Raises ProjectError without a query."""
    node = model_of(graph, test)
    query, reads = _overridden(graph, test, node)
    found: dict[NodeId, Given] = {}
    for given in test.given:
        id_ = _input(graph, node, given)
        if id_ is not None:
            found[id_] = given
            continue
        help = did_you_mean(given.input, [_said(graph, read) for read in dict.fromkeys(node.reads)])
        report.append(error("bad-unit-test", f"Unknown input {given.input} of the unit test '{test.name}'", given.span, help=help))
    # An unknown input is probably the one that seems to be missing.
    for id_ in dict.fromkeys(_leaves(graph, reads, found)) if len(found) == len(test.given) else ():
        if id_ not in found:
            help = f"Add `- {{input: {_said(graph, id_)}, rows: []}}` to `given:`."
            message = f"The unit test '{test.name}' gives no rows for {_said(graph, id_)}, which the model '{test.model}' reads"
            report.append(error("bad-unit-test", message, test.span, help=help))
    return node, query, reads, found


def _made(given: Given, of: Columns, seed: str, report: list[Diagnostic]) -> RowsAsWritten:
    if given.rows.random is None:
        return given.rows
    types = {name: type_ for name, type_ in of.types.items() if type_}
    if not types or len(types) < len(of.types):
        message = f"The columns of {given.input} and their types are unknown, so rows cannot be generated"
        report.append(error("bad-unit-test", message, given.span, help="Declare the columns with `data_type:`, or create the table."))
    return random_rows(given.rows, types, seed)


def _with_rows(graph: Graph, query: Query, reads: tuple[NodeId, ...], inputs: Mapping[NodeId, str]) -> MappedText:
    """Given tables are leaves, whatever they are in the project."""
    nodes = dict(graph.nodes)
    for id_ in inputs:
        nodes[id_] = TableNode(id=id_, identifier=TableIdentifier(graph.project.target.catalog_name, ("given",), id_))
    return expanded_sql(replace(graph, nodes=nodes), query, reads, lambda leaf: _relation(leaf, inputs))


def _relation(leaf: Leaf, inputs: Mapping[NodeId, str]) -> str:
    assert leaf.node is not None
    return inputs[leaf.node]


def _leaves(graph: Graph, reads: tuple[NodeId, ...], given: Container[NodeId]) -> list[NodeId]:
    """What must be given: the query of an ephemeral model is part of the tested one; everything else has rows of its own."""
    found: list[NodeId] = []
    for id_ in reads:
        node = graph.nodes[id_]
        if id_ not in given and isinstance(node, ModelNode) and node.materialized == "ephemeral" and not is_leaf(node):
            found += _leaves(graph, node.reads, given)
        else:
            found.append(id_)
    return found


def _input(graph: Graph, node: ModelNode, given: Given) -> NodeId | None:
    if given.input.strip() == "this":
        return node.id
    call = table_call(given.input)
    if call:
        names = (call.model.lower(),) if call.kind == "ref" else tuple(name.lower() for name in call.names)
        return _named(graph, call.kind, names)
    return _named(graph, "name", tuple(part.strip("` ").lower() for part in given.input.split(".")))


def _named(graph: Graph, kind: str, names: tuple[str, ...]) -> NodeId | None:
    for node in graph.nodes.values():
        if kind == "ref" and isinstance(node, ModelNode | SeedNode):
            version = node.model.version if isinstance(node, ModelNode) else None
            own = node.model.name if isinstance(node, ModelNode) else node.seed.name
            if own.lower() == names[-1] or (version and version.is_latest and version.model.lower() == names[-1]):
                return node.id
        elif kind == "source" and isinstance(node, TableNode) and node.source:
            if (node.source.source.lower(), node.source.name.lower()) == names:
                return node.id
        elif kind == "name":
            identifier = node.identifier
            full = tuple(part.lower() for part in (identifier.catalog, *identifier.namespace, identifier.name))
            if full[-len(names) :] == names and len(names) > 1:
                return node.id
    if kind == "source":
        return _named(graph, "name", names)  # a seed that a source describes
    return None


def _said(graph: Graph, id_: NodeId) -> str:
    node = graph.nodes[id_]
    if isinstance(node, ModelNode):
        version = node.model.version
        return f"ref('{version.model}', v={version.v!r})" if version else f"ref('{node.model.name}')"
    if isinstance(node, SeedNode):
        return f"ref('{node.seed.name}')"
    source = node.source if isinstance(node, TableNode) else None
    return f"source('{source.source}', '{source.name}')" if source else node.identifier.dotted


def _overridden(graph: Graph, test: UnitTest, node: ModelNode) -> tuple[Query, tuple[NodeId, ...]]:
    """The model's query with the overrides of the test."""
    changed = test.overrides
    if not (changed.macros or changed.vars or changed.env_vars or (changed.clock and "run_started_at" in node.model.file.text)):
        if node.id in graph.undefined:
            raise ProjectError([graph.undefined[node.id]])
        return node.query, node.reads
    project = replace(graph.project, vars={**graph.project.vars, **changed.vars}, cache=Cache())
    if changed.clock:
        project = replace(project, invocation=replace(project.invocation, started=_time(test, changed.clock)))
    templates = Templates(project, {**graph.reading.env, **changed.env_vars}, changed.macros)
    file = next(m for m in project.models if m.name == node.model.name)
    parsed = parse_file(file.file, Own(model=file.name).configured(file.layers), templates)
    wrong = [d for d in (*parsed.rendering, *parsed.sql) if d.severity == "error"]
    if wrong or parsed.query is None:
        raise ProjectError(wrong)
    before = {(read.kind, read.parts): id_ for read, id_ in zip(node.query.reads, node.reads, strict=True)}
    return parsed.query, tuple(before.get((read.kind, read.parts)) or _read(graph, read, test) for read in parsed.query.reads)


def _read(graph: Graph, read: Read, test: UnitTest) -> NodeId:
    found = _named(graph, read.kind, tuple(part.lower() for part in read.parts))
    if found is None:
        raise ProjectError(
            [error("bad-unit-test", f"With these overrides the model reads an unknown table {'.'.join(read.parts)}", test.span)]
        )
    return found


def _time(test: UnitTest, clock: str) -> datetime:
    try:
        found = datetime.fromisoformat(clock)
    except ValueError:
        raise ProjectError([error("bad-unit-test", f"'{clock}' is not a time", test.span, help="Write '2026-01-31 12:00:00'.")]) from None
    return found if found.tzinfo else found.replace(tzinfo=timezone.utc)
