"""model + RunSession -> its rows, and where they come from."""

from __future__ import annotations

from mvbuild.diagnostics import ProjectError, did_you_mean, error
from mvbuild.freshness.leaves import node_inputs
from mvbuild.freshness.pins import leaf_table
from mvbuild.freshness.rules import judge
from mvbuild.graph.model import Graph, ModelNode, Node, NodeId, SeedNode
from mvbuild.ports.catalog import TableState
from mvbuild.ports.engine import Rows
from mvbuild.refresh.queries import prepare
from mvbuild.refresh.session import RunSession
from mvbuild.refresh.sql import pinned_sql


def choose_rows(session: RunSession, name: str, limit: int) -> tuple[Rows, str]:
    """Rows of a model or seed. An MV's storage stands for it only while it is fresh; otherwise its query is run."""
    graph = session.world.graph
    node = find(graph, name)
    freshness = judge(session.world)
    stale = frozenset(id for id, f in freshness.items() if not f.is_fresh)
    if isinstance(node, ModelNode) and node.storage is None:
        return _query(session, node, stale, limit), "query"
    storage = session.world.observed.table(node.storage if isinstance(node, ModelNode) else node.identifier)
    if isinstance(node, ModelNode) and node.id in stale:
        answer = freshness[node.id]
        return _query(session, node, stale, limit), f"query: the storage is {answer.state}, {answer.reasons[0].message}"
    if storage is None:
        raise ProjectError([error("missing-table", f"'{name}' was never built", help="Build it: mvbuild run")])
    return _stored(session, storage, limit), f"storage {storage.identifier}"


def find(graph: Graph, name: str) -> Node:
    """A model or seed by its name, or anything by its name in the catalog."""
    for node in graph.nodes.values():
        own = node.model.name if isinstance(node, ModelNode) else node.seed.name if isinstance(node, SeedNode) else ""
        if name.lower() in (own.lower(), node.identifier.dotted.lower(), str(node.identifier).lower()):
            return node
    names = [n.model.name for n in graph.models]
    raise ProjectError([error("unknown-name", f"There is no model '{name}'", help=did_you_mean(name, names))])


def _stored(session: RunSession, storage: TableState, limit: int) -> Rows:
    columns, rows = session.catalog.rows(storage, limit)
    return Rows(columns=columns, rows=tuple(rows))


def _query(session: RunSession, node: ModelNode, stale: frozenset[NodeId], limit: int) -> Rows:
    """The model's query on the current snapshots of base tables; upstream MVs that are not fresh are expanded as well."""
    graph = session.world.graph
    below = node_inputs(graph, node, stale)
    pins = session.pins(below)
    missing = [leaf_table(graph, leaf) for leaf in below.leaves if leaf not in pins]
    if missing:
        raise ProjectError(
            [error("missing-table", f"{missing[0]} does not exist", node.model.file.line_span(1), help="Build it: mvbuild run")]
        )
    sql = pinned_sql(graph, node.query, node.reads, pins, session.schema_pin, stale)
    prepare(session.engine, sql, node)
    return session.engine.rows(sql.text, limit)
