"""columns that data tests, `partition_by` and `sort_by` name + the known columns -> a diagnostic for each unknown or duplicate column."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

from mvbuild.diagnostics import Diagnostic, did_you_mean, error
from mvbuild.graph.model import Graph, ModelNode, NodeId, SeedNode, TestNode
from mvbuild.project.loaded import DataTest
from mvbuild.source import Span

ColumnsOf = Callable[[NodeId], "Sequence[str] | None"]
"""The names of a node's columns; None if not all of them are known."""


def misnamed(graph: Graph, columns: ColumnsOf, ids: Collection[NodeId]) -> Iterator[Diagnostic]:
    """Diagnostics for the settings of some nodes and the tests on them."""
    for id_ in ids:
        node = graph.nodes[id_]
        if isinstance(node, ModelNode) and node.storage is not None and (names := columns(id_)) is not None:
            yield from misnamed_in_layout(node, names)
    for test in graph.tests:
        if test.reads[:1] and test.reads[0] in ids:
            yield from misnamed_in_test(graph, test, columns)


def duplicates(graph: Graph, columns: ColumnsOf, ids: Collection[NodeId]) -> Iterator[Diagnostic]:
    """Report columns of some nodes whose names differ at most in case: neither a view nor a table can have both, whatever
    `spark.sql.caseSensitive` is."""
    for id_ in ids:
        node = graph.nodes[id_]
        if isinstance(node, ModelNode) and node.materialized != "ephemeral":
            yield from _duplicates(node, columns(id_) or ())


def _duplicates(node: ModelNode, names: Sequence[str]) -> Iterator[Diagnostic]:
    seen = Counter[str]()
    for name in names:
        if seen[name.lower()] == 1:
            span = node.query.sql.last(name, node.model.file) or node.model.file.line_span(1)
            yield duplicate(node, name, span)
        seen[name.lower()] += 1


def duplicate(node: ModelNode, name: str, span: Span) -> Diagnostic:
    """The error that two columns have one name. `span`: the second of them."""
    return error("duplicate-column", f"'{node.model.name}' has two columns named '{name}'", span, help="Rename one of them with AS.")


def misnamed_in_layout(node: ModelNode, names: Iterable[str]) -> Iterator[Diagnostic]:
    """Report columns of `partition_by` and `sort_by` that the query of the MV does not return."""
    config, known = node.model.config, {name.lower(): name for name in names}
    fields = (*(("partition_by", p.column) for p in config.partition_by), *(("sort_by", s.column) for s in config.sort_by))
    for key, name in fields:
        if name.lower() not in known:
            message = f"{key} of '{node.model.name}' names column '{name}', which its query does not return"
            yield error("bad-config", message, config.spans.get(key), help=did_you_mean(name, known.values()))


def misnamed_in_test(graph: Graph, test: TestNode, columns: ColumnsOf) -> Iterator[Diagnostic]:
    """Report an unknown column of a generic test, or an unknown `field` of the table that it compares with."""
    if not isinstance(test.test, DataTest) or test.query is not None:
        return
    asked = [(test.test.column, test.test.span)]
    if "field" in test.test.arguments:
        asked.append((str(test.test.arguments["field"]), test.test.places.get("field", test.test.span)))
    for (name, span), id_ in zip(asked, test.reads, strict=False):
        known = columns(id_)
        if known is not None and name.lower() not in {one.lower() for one in known}:
            message = f"'{_name(graph, id_)}' has no column '{name}', which the data test {test.name} asks for"
            yield error("unknown-column", message, span, help=did_you_mean(name, known))


def _name(graph: Graph, id_: NodeId) -> str:
    node = graph.nodes[id_]
    if isinstance(node, ModelNode):
        return node.model.name
    return node.seed.name if isinstance(node, SeedNode) else str(node.identifier)
