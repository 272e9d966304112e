"""Graph + node -> the columns that identify its rows: by a `unique` test, or because the query groups by them."""

from __future__ import annotations

from sqlglot import exp

from mvbuild.graph.model import Graph, ModelNode, NodeId, TestNode
from mvbuild.parse.sql import tree_of
from mvbuild.project.loaded import DataTest


def unique_columns(graph: Graph, node: NodeId) -> tuple[str, ...]:
    """The columns with a `unique` test, in lower case."""
    return tuple(dict.fromkeys(column.lower() for test in graph.tests if (column := _unique_column(test, node))))


def row_key(graph: Graph, node: NodeId) -> tuple[str, ...]:
    """The first column with a `unique` test, otherwise the columns of the outermost GROUP BY if all are in the result; otherwise none."""
    unique = unique_columns(graph, node)
    found = graph.nodes[node]
    return unique[:1] if unique or not isinstance(found, ModelNode) or node in graph.undefined else _grouped(tree_of(found.query))


def _unique_column(test: TestNode, node: NodeId) -> str:
    is_of_node = isinstance(test.test, DataTest) and test.test.kind == "unique" and test.reads[:1] == (node,)
    return test.test.column if isinstance(test.test, DataTest) and is_of_node and not test.test.where else ""


def _grouped(tree: exp.Expr) -> tuple[str, ...]:
    group = tree.args.get("group") if isinstance(tree, exp.Select) else None
    if group is None or any(group.args.get(kind) for kind in ("grouping_sets", "cube", "rollup", "all", "totals")):
        return ()
    shown = list(tree.expressions)
    names = [_name(key, shown) for key in group.expressions]
    return tuple(name for name in names if name) if all(names) else ()


def _name(key: exp.Expr, shown: list[exp.Expr]) -> str:
    if isinstance(key, exp.Literal) and key.is_int:
        at = int(key.this) - 1
        return str(shown[at].alias_or_name) if 0 <= at < len(shown) else ""
    for one in shown:
        if one.unalias() == key or (isinstance(key, exp.Column) and not key.table and one.alias_or_name.lower() == key.name.lower()):
            return str(one.alias_or_name)
    return ""
