"""Bound + a name from the user -> the columns that a model's columns come from, or the columns computed from them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Literal

from mvbuild.dataclass import dataclass
from mvbuild.diagnostics import ProjectError, did_you_mean, error
from mvbuild.graph.model import Graph, ModelNode, Node, NodeId, SeedNode
from mvbuild.lineage.model import Bound, Origin

Direction = Literal["upstream", "downstream"]


@dataclass(frozen=True, slots=True)
class LineageTree:
    """A column and its inputs, or the columns computed from it. A column that already appears in another branch is not expanded again."""

    origin: Origin
    steps: tuple[LineageTree, ...] = ()
    again: bool = False


def around(graph: Graph, name: str) -> set[NodeId]:
    """The nodes to bind before `find` can answer for a name: its node and everything that reads it. Raises ProjectError."""
    node, _ = _named(graph, name)
    return {node.id} | graph.descendants([node.id])


def find(bound: Bound, name: str) -> tuple[Node, str | None]:
    """Find `model`, `model.column`, or a table by its catalog name, with or without a column. Raises ProjectError if it does not exist."""
    node, column = _named(bound.graph, name)
    if column is None:
        return node, None
    known = bound.column(node.id, column)
    if known is None and (node.id in bound.columns or not _names(bound, node.id, column)):
        names = [c.name for c in bound.known(node.id)]
        raise ProjectError([error("unknown-name", f"'{label(node)}' has no column '{column}'", help=did_you_mean(column, names))])
    return node, known.name if known else column


def _named(graph: Graph, name: str) -> tuple[Node, str | None]:
    """The node of a name; the rest of the name is a column."""
    node = _node(graph, name)
    if node is not None:
        return node, None
    table, _, column = name.rpartition(".")
    node = _node(graph, table) if table else None
    if node is None:
        names = [*(label(n) for n in graph.nodes.values()), *(n.model.ref_name for n in graph.models)]
        raise ProjectError([error("unknown-name", f"Unknown model or table '{name}'", help=did_you_mean(name, names))])
    return node, column.strip("`")


def _names(bound: Bound, node: NodeId, column: str) -> bool:
    """Whether a query takes a column of that name from a node whose columns are unknown."""
    return bool(bound.readers(node, column) or bound.decides(node, column))


def _node(graph: Graph, name: str) -> Node | None:
    wanted = name.replace("`", "").lower()
    for node in graph.nodes.values():
        if wanted in (label(node).lower(), node.id.lower(), node.identifier.dotted.lower(), str(node.identifier).lower()):
            return node
    return next((n for n in graph.models if n.model.ref_name.lower() == wanted and not n.model.needs_version), None)


def label(node: Node) -> str:
    """The name of a node in output."""
    if isinstance(node, ModelNode):
        return node.model.name
    if isinstance(node, SeedNode):
        return node.seed.name
    if node.source is not None:
        return f"{node.source.source}.{node.source.name}"
    return node.identifier.name if node.identifier.is_path else node.identifier.dotted


def named(bound: Bound, origin: Origin) -> str:
    return f"{label(bound.graph.nodes[origin.node])}.{origin.column}"


def tree(bound: Bound, origin: Origin, direction: Direction) -> LineageTree:
    """Every step from a column: up to base tables, or down to columns that are not read any more."""
    follow: Callable[[NodeId, str], frozenset[Origin]] = bound.parents if direction == "upstream" else bound.readers
    return _step(bound, origin, follow, set())


def _step(bound: Bound, origin: Origin, follow: Callable[[NodeId, str], frozenset[Origin]], seen: set[tuple[NodeId, str]]) -> LineageTree:
    next_ones = sorted(follow(origin.node, origin.column), key=lambda o: named(bound, o))
    if origin.key in seen and next_ones:
        return LineageTree(origin, again=True)
    seen.add(origin.key)
    return LineageTree(origin, tuple(_step(bound, o, follow, seen) for o in next_ones))


def flat(step: LineageTree) -> Iterator[Origin]:
    """Every column below the first one, each once."""
    found: dict[Origin, None] = {}
    waiting = [*step.steps]
    while waiting:
        one = waiting.pop()
        found[one.origin] = None
        waiting += one.steps
    yield from found


def affected(bound: Bound, origin: Origin) -> tuple[NodeId, ...]:
    """The nodes whose rows depend on a column, directly or through columns computed from it, in topological order."""
    columns = [origin, *flat(tree(bound, origin, "downstream"))]
    first = {id for one in columns for id in bound.decides(one.node, one.column)}
    reached = first | bound.graph.descendants(first)
    return tuple(id for id in bound.graph.nodes if id in reached)


def as_json(bound: Bound, node: Node, column: str | None, direction: Direction) -> dict[str, Any]:
    """The JSON output."""
    names = [column] if column is not None else [c.name for c in bound.known(node.id)]
    return {
        "node": node.id,
        "table": str(node.identifier),
        "complete": node.id in bound.columns,
        "direction": direction,
        "columns": [_column(bound, Origin(node.id, name), direction) for name in names],
        **({"rows": _objects(bound, bound.indirect(node.id))} if direction == "upstream" else {}),
    }


def _column(bound: Bound, origin: Origin, direction: Direction) -> dict[str, Any]:
    known = bound.column(origin.node, origin.column)
    found: dict[str, Any] = {"name": origin.column, "type": known.type if known else None}
    if direction == "upstream":
        return found | {
            "sure": not bound.is_unsure(origin.node, origin.column),
            "parents": _objects(bound, bound.parents(origin.node, origin.column)),
            "origins": _objects(bound, bound.origins(origin.node, origin.column)),
        }
    return found | {
        "readers": _objects(bound, bound.readers(origin.node, origin.column)),
        "downstream": _objects(bound, flat(tree(bound, origin, direction))),
        "rows_of": list(affected(bound, origin)),
    }


def _objects(bound: Bound, origins: Iterable[Origin]) -> list[dict[str, str]]:
    return [
        {"node": o.node, "table": str(bound.graph.nodes[o.node].identifier), "column": o.column}
        for o in sorted(origins, key=lambda o: (o.node, o.column))
    ]
